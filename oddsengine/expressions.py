"""Polars expressions over columns of odds: `pl.col("odds").odds`.

Importing `oddsengine` registers the namespace. Each method is the expression of a function of this package and gives
the same numbers; no answer is null, as is usual in frames.

=================================  ==========================================================================
expression                         function
=================================  ==========================================================================
`implied()`                        `decimal_to_probability`
`to_american()`                    `decimal_to_american`
`from_american()`                  `american_to_decimal`
`edge(prob)`                       `value.edge`
`kelly(prob, fraction)`            `kelly`
`hold(by)`, `devig(method, by)`    `hold`, `devig_groups`: of the market that a row belongs to
=================================  ==========================================================================

All but the last line are made of polars' own operations. A market is the rows that agree in the columns `by`; without
`by` it is the whole column. Rows of a market need not be adjacent, though it is faster if they are. `hold` and `devig`
call Python once for the whole column, and never once a market: neighbouring rows with equal keys form runs, runs are
put together by the hash of their keys, and runs that share a hash are compared key by key.

Results are named after the column of odds. In a column of decimal odds a price of -100 or less is American and null;
where one stands in it (in its group, under `over` and `agg`), whole prices of 100 or more count as American too, as
`check_odds` has it. In a column of positive American prices alone nothing tells +110 from decimal odds of 110.

`.devig().over("event")` is the same as `.devig(by="event")`. Where something stands between the two, such as
`.devig().alias("p").over("event")`, polars calls Python once a group, which takes a thousand times as long.
"""

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from oddsengine._jit import kernel
from oddsengine.columns import Floats, Longs, Words
from oddsengine.devig import DEVIG_METHODS, devig_groups
from oddsengine.groups import intern

IntoExpr = pl.Expr | str | float
By = pl.Expr | str | Iterable[pl.Expr | str] | None
_PerMarket = Callable[[Floats, Longs], Floats]  # prices market by market and offsets, to a number a row


@kernel
def _bounds(run: NDArray[np.uint32], runs: int) -> Longs:
    """Where each run begins, and the number of rows."""
    out = np.empty(runs + 1, np.int64)
    for i in range(run.size):
        if i == 0 or run[i] != run[i - 1]:
            out[run[i]] = i
    out[runs] = run.size
    return out


@kernel
def _layout(first: Longs, starts: Longs, rows: Longs, offsets: Longs) -> None:
    """Rows market by market, into `rows`, and where each market begins, into `offsets`.

    Run i is the rows from starts[i] to starts[i + 1], and belongs to the market that run first[i] <= i begins.
    """
    n = first.size
    market = np.empty(n, np.int64)
    markets = 0
    for i in range(n):
        if first[i] == i:
            market[i] = markets
            markets += 1
            offsets[markets] = 0
        else:
            market[i] = market[first[i]]
        offsets[market[i] + 1] += starts[i + 1] - starts[i]
    offsets[0] = 0
    for k in range(markets):
        offsets[k + 1] += offsets[k]
    place = offsets[:markets].copy()
    for i in range(n):
        for row in range(starts[i], starts[i + 1]):
            rows[place[market[i]]] = row
            place[market[i]] += 1


def _markets(keys: Sequence[pl.Series]) -> tuple[Longs | None, Longs]:
    """Rows market by market, None where they are so already, and the offsets of the markets."""
    frame = pl.DataFrame({str(at): key for at, key in enumerate(keys)})
    run = frame.select(pl.struct(pl.all()).rle_id()).to_series().to_numpy()
    bounds = _bounds(run, int(run[-1]) + 1 if run.size else 0)
    runs = frame[bounds[:-1]] if bounds.size <= run.size else frame
    first = _leaders(runs, runs.hash_rows().to_numpy())
    markets = int((first == np.arange(first.size)).sum())
    if markets == first.size:
        return None, bounds
    rows, offsets = np.empty(frame.height, np.int64), np.empty(markets + 1, np.int64)
    _layout(first, bounds, rows, offsets)
    return rows, offsets


def _leaders(runs: pl.DataFrame, hashes: Words) -> Longs:
    """For each run the first one with the same keys."""
    codes, firsts = intern(hashes, expected=hashes.size)
    first = firsts[codes].astype(np.int64)
    again = np.flatnonzero(first != np.arange(first.size))
    if not again.size or runs[again].equals(runs[first[again]]):
        return first
    ranks = runs.select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy()  # two keys share a hash
    _, leaders, of = np.unique(ranks, return_index=True, return_inverse=True)
    return leaders[of].astype(np.int64)


def _per_market(function: _PerMarket) -> Callable[[Sequence[pl.Series]], pl.Series]:
    """A function of columns, odds first and then keys, that applies another to the markets they make."""

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        odds, *keys = columns
        prices = odds.cast(pl.Float64).fill_null(np.nan).to_numpy()
        decimal = (prices > 1.0) & (prices < np.inf)  # American odds are no error here
        if (prices <= -100.0).any():
            decimal &= (prices < 100.0) | (prices != np.round(prices))
        prices = np.where(decimal, prices, np.nan)
        rows, offsets = _markets(keys) if keys else (None, np.array([0, prices.size]))
        if rows is None:
            out = function(prices, offsets)
        else:
            out = np.empty_like(prices)
            out[rows] = function(prices[rows], offsets)
        return pl.Series(odds.name, out, nan_to_null=True)

    return apply


def _holds(prices: Floats, offsets: Longs) -> Floats:
    """The hold of its market, for every row."""
    if not prices.size:
        return prices
    count = np.diff(offsets)
    total = np.add.reduceat(1.0 / prices, offsets[:-1])
    return np.repeat(np.where(count > 1, total - 1.0, np.nan), count)


class _MarketExpr(pl.Expr):
    """An expression over one market, whose `over` takes all markets together."""

    _odds: pl.Expr
    _function: _PerMarket

    @classmethod
    def of(cls, odds: pl.Expr, function: _PerMarket) -> "_MarketExpr":
        """The expression that takes the whole column for one market."""
        made = cls.__new__(cls)
        made.__dict__.update(_mapped(odds, function, []).__dict__)
        made._odds, made._function = odds, function
        return made

    def over(self, partition_by: Any = None, *more: Any, **options: Any) -> pl.Expr:
        """Evaluate by groups; see `polars.Expr.over`."""
        if partition_by is None or any(value is not None for value in options.values()):
            return super().over(partition_by, *more, **options)
        return _mapped(self._odds, self._function, [*_keys(partition_by), *more])


def _keys(by: By) -> list[pl.Expr | str]:
    if by is None:
        return []
    keys = [by] if isinstance(by, pl.Expr | str) else list(by) if isinstance(by, Iterable) else [by]
    for key in keys:
        if not isinstance(key, pl.Expr | str):
            raise TypeError(f"by must be names of columns or expressions, got {key!r}")
    return keys


def _mapped(odds: pl.Expr, function: _PerMarket, keys: Sequence[pl.Expr | str]) -> pl.Expr:
    return pl.map_batches([odds, *keys], _per_market(function), return_dtype=pl.Float64)


def _expr(value: IntoExpr) -> pl.Expr:
    if isinstance(value, pl.Expr | str):
        return pl.col(value) if isinstance(value, str) else value
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"prob must be the name of a column, an expression or a number, got {value!r}")
    return pl.lit(float(value))


def _where(valid: pl.Expr, value: pl.Expr) -> pl.Expr:
    """`value` where valid and finite, else null; named as `value` is, which is after its first column."""
    return pl.when(valid & value.is_finite()).then(value)


@pl.api.register_expr_namespace("odds")
class OddsExpr:
    """Expressions over a column of odds, `pl.col("odds").odds`; the module's docstring lists them.

    Odds are decimal, except in `from_american`. A value that is no price gives null.
    """

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    @property
    def _number(self) -> pl.Expr:
        return self._expr.cast(pl.Float64)

    @property
    def _decimal(self) -> pl.Expr:
        """The odds, null where they are no decimal price."""
        d = self._number
        american = (d >= 100.0) & (d == d.round()) & (d <= -100.0).any()
        return pl.when((d > 1.0) & d.is_finite() & ~american).then(d)

    def implied(self) -> pl.Expr:
        """Implied probability, margin included.

        Examples
        --------
        >>> pl.DataFrame({"odds": [4.0, 1.25, 1.0]}).select(pl.col("odds").odds.implied()).to_series().to_list()
        [0.25, 0.8, None]
        """
        d = self._decimal
        return (d * 0.0 + 1.0) / d

    def to_american(self) -> pl.Expr:
        """American odds, not rounded.

        Examples
        --------
        >>> pl.DataFrame({"odds": [2.5, 1.5, 2.0]}).select(pl.col("odds").odds.to_american()).to_series().to_list()
        [150.0, -200.0, 100.0]
        """
        win = self._decimal - 1.0
        american = pl.when(win >= 1.0).then(win * 100.0).otherwise(-100.0 / win)
        return _where(american.is_finite(), american)

    def from_american(self) -> pl.Expr:
        """Decimal odds of American odds.

        Examples
        --------
        >>> frame = pl.DataFrame({"american": [150, -200, 50]})
        >>> frame.select(pl.col("american").odds.from_american()).to_series().to_list()
        [2.5, 1.5, None]
        """
        a = self._number
        odds = (a.abs() + 100.0) / pl.when(a > 0.0).then(100.0).otherwise(-a)
        return _where((a.abs() >= 100.0) & a.is_finite() & (odds > 1.0), odds)

    def edge(self, prob: IntoExpr) -> pl.Expr:
        """Mean profit per unit staked, a fraction, at a probability: a column's name, an expression or a number.

        Examples
        --------
        >>> frame = pl.DataFrame({"odds": [2.0, 2.0], "fair": [0.52, 0.48]})
        >>> frame.select(pl.col("odds").odds.edge("fair").round(4)).to_series().to_list()
        [0.04, -0.04]
        """
        p, d = _expr(prob), self._decimal
        return _where(p.is_between(0.0, 1.0), d * p - 1.0)

    def kelly(self, prob: IntoExpr, fraction: float = 1.0) -> pl.Expr:
        """Stake of a single bet as a fraction of the bankroll; `fraction` of full Kelly, above 0 and at most 1.

        Examples
        --------
        >>> frame = pl.DataFrame({"odds": [2.0, 2.0], "fair": [0.55, 0.48]})
        >>> frame.select(pl.col("odds").odds.kelly("fair", fraction=0.5).round(4)).to_series().to_list()
        [0.05, 0.0]
        """
        if not 0.0 < fraction <= 1.0:
            raise ValueError(f"fraction must be above 0 and at most 1, got {fraction}")
        edge = self.edge(prob)
        return edge.clip(lower_bound=0.0) * fraction / (self._decimal - 1.0)

    def hold(self, by: By = None) -> pl.Expr:
        """Sum of the implied probabilities of a row's market minus 1, in every row of it; null below two rows.

        Parameters
        ----------
        by
            What makes a market: names of columns, or expressions. None: the whole column is one.

        Examples
        --------
        >>> frame = pl.DataFrame({"market": ["a", "a", "b", "b"], "odds": [2.10, 2.05, 1.91, 1.91]})
        >>> frame.select(pl.col("odds").odds.hold(by="market").round(4)).to_series().to_list()
        [-0.036, -0.036, 0.0471, 0.0471]
        """
        return self._of_market(_holds, by)

    def devig(self, method: str = "power", by: By = None) -> pl.Expr:
        """Fair probability of every row, the margin of its market removed; null for a market without an answer.

        Each row counts as an outcome: remove duplicates first, `unique` has them.

        Parameters
        ----------
        method
            One of `DEVIG_METHODS`.
        by
            What makes a market: names of columns, or expressions. None: the whole column is one.

        Examples
        --------
        >>> frame = pl.DataFrame({"market": ["a", "b", "a", "b"], "odds": [1.9, 1.5, 1.9, 2.5]})
        >>> frame.select(pl.col("odds").odds.devig(by="market").round(4)).to_series().to_list()
        [0.5, 0.6379, 0.5, 0.3621]
        """
        if method not in DEVIG_METHODS:
            raise ValueError(f"method must be one of {', '.join(DEVIG_METHODS)}, got {method!r}")
        return self._of_market(lambda prices, offsets: devig_groups(prices, offsets, method), by)

    def _of_market(self, function: _PerMarket, by: By) -> pl.Expr:
        keys = _keys(by)
        return _mapped(self._number, function, keys) if keys else _MarketExpr.of(self._number, function)
