"""The fair price at the close as an estimator with the methods of scikit-learn, which is not needed for it.

`fit` is `calibrate`, `predict` is `fair`, and `score` is how well the close was predicted. Parameters are keyword
arguments stored under their names, so that `sklearn.base.clone`, pipelines and cross-validation work. Rows of a history
may be split by time: a game of which a part lacks the close is not used in that part.
"""

import inspect
from typing import Any, Self

import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.fitting import Fit, calibrate, collect, squared
from oddsengine.catalog import FairTable
from oddsengine.catalog.reasons import Guards
from oddsengine.detection.finders import Commission, fair
from oddsengine.tables.frames import IntoFrame


class FairPrice:
    """Fair prices at the close, with constants fitted to your own history.

    Parameters
    ----------
    hours
        Use snapshots at most this long before the start.
    commission, guards
        As in `find_ev`, for predictions.
    start
        Constants to begin from: where a history does not determine one, or the fit is not better on its last third of
        games, they stay. None is the catalog's table.

    Attributes
    ----------
    table_
        The constants in use after `fit`, for `Engine(fair=...)` and `explain`.
    fit_
        The whole result of `calibrate`.

    Examples
    --------
    >>> import oddsengine as oe
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> odds = oe.read_odds(SAMPLE_BOARD)
    >>> oe.FairPrice().predict(odds).drop_nulls().select(pl.all().round(3)).row(0)  # without fit: the catalog's
    (0.479, 0.027)
    """

    table_: FairTable
    fit_: Fit

    def __init__(
        self, *, hours: float = 72.0, commission: Commission = None, guards: Guards = None,
        start: FairTable | None = None,
    ) -> None:  # fmt: skip
        self.hours, self.commission, self.guards, self.start = hours, commission, guards, start

    def __repr__(self) -> str:
        """Name the parameters that are not the defaults."""
        usual = {name: parameter.default for name, parameter in _parameters().items()}
        return f"FairPrice({', '.join(f'{k}={v!r}' for k, v in self.get_params().items() if v != usual[k])})"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the constants to a history; see `calibrate`.

        Parameters
        ----------
        X
            A history, as for `audit`.
        y
            Ignored: what is to be predicted, the close, is in the history.

        Raises
        ------
        ValueError
            If fewer than 50 games have a close; in cross-validation, in any training part.
        """
        self.fit_ = calibrate(X, fair=self.start, hours=self.hours)
        self.table_ = self._initial if self.fit_.kept else self.fit_.table
        return self

    def predict(self, X: IntoFrame) -> pl.DataFrame:
        """Return the fair probability of each price, without its own book, and its standard error at the close.

        Parameters
        ----------
        X
            Prices, one per row; see `ODDS_SCHEMA`.

        Returns
        -------
        polars.DataFrame
            `probability` and `error`, a row per price in the order of the input; null without a fair price.
        """
        found = fair(X, commission=self.commission, guards=self.guards, constants=self._in_use)
        return found.select(probability="fair_probability", error="fair_error")

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared error of the predicted log-odds at the close: higher is better.

        Parameters
        ----------
        X
            A history with closes, not the one that `fit` had.
        y
            Ignored.

        Raises
        ------
        ValueError
            If no price of the history has a close of other books.
        """
        rows = collect(X, self._in_use, self.hours)
        if not rows.height:
            raise ValueError("score requires a history with games that have a close, got none")
        return -squared(rows, self._in_use)

    @property
    def _initial(self) -> FairTable:
        return catalog.fair_table() if self.start is None else self.start

    @property
    def _in_use(self) -> FairTable:
        return getattr(self, "table_", None) or self._initial

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  as scikit-learn has it
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **params: Any) -> Self:
        """Set some parameters. Raises `ValueError` for another name."""
        if strange := [name for name in params if name not in _parameters()]:
            raise ValueError(f"the parameters of FairPrice are {', '.join(_parameters())}, got {', '.join(strange)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags, Tags, TargetTags  # noqa: PLC0415

        return Tags(
            estimator_type="regressor", target_tags=TargetTags(required=False), regressor_tags=RegressorTags(),
            requires_fit=False,
        )  # fmt: skip

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _parameters() -> dict[str, inspect.Parameter]:
    return {name: each for name, each in inspect.signature(FairPrice.__init__).parameters.items() if name != "self"}
