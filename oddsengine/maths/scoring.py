"""Evaluation of probabilities and bets: scores, calibration, returns and bankrolls, with errors.

**Shapes.** A row is a match, a column an outcome or a bet on it: `probs`, `odds`, `stakes` and `gains` are (matches,
columns). Bets on one match are correlated, so errors are clustered by match. Markets are placed side by side.

**Scores** of the probabilities p of a match with outcome w. Lower is better, and both are proper: the expected score is
best for the true probabilities.

    log loss   -log p_w                         Brier   sum over i of (p_i - [i = w])^2

Two forecasts of the same matches are compared by the mean difference per match, in which most of the noise cancels.
Probabilities that sum to more than 1, such as implied probabilities with their margin, have no score.

**Calibration.** Outcomes are sorted by p and cut into bins of equal size; of those with p near 0.3, 30 % should occur.
The interval of the observed share f of n is Wilson's, with z the quantile of the normal distribution:

    (f + z^2 / 2n  -+  z sqrt(f (1 - f) / n + z^2 / 4n^2)) / (1 + z^2 / n)

Since two outcomes of one match exclude each other, it is slightly too wide if both are in one bin.

**Return.** With stakes s and gains g per unit, r = sum s g / sum s. With S_m the sum of s (g - r) over match m and G
matches that were bet on, its standard error is that of a ratio of sums over clusters,

    error = sqrt(G / (G - 1) sum S_m^2) / sum s

which for equal stakes is the error of `oddsengine.history.clv`. The bootstrap resamples G matches with replacement.
Both are unreliable for long shots: one that never won is in neither, and one that won has too much weight in both.
Edges (`value.edge`) and closing line values (`history.clv.clv`) can be averaged by stake in the same way.

**Bankroll.** Bets of one time are placed simultaneously on one bankroll; if they exceed it, all are reduced in
proportion. Flat stakes add up, Kelly stakes compound.

References: G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78
(1950). T. Gneiting and A. Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102 (2007),
https://doi.org/10.1198/016214506000001437. E. B. Wilson, "Probable inference, the law of succession, and statistical
inference", JASA 22 (1927), https://doi.org/10.1080/01621459.1927.10502953. B. Efron, "Bootstrap methods: another look
at the jackknife", Annals of Statistics 7 (1979), https://doi.org/10.1214/aos/1176344552.
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from oddsengine.columns import Floats, Longs
from oddsengine.maths.kelly import kelly_exclusive
from oddsengine.maths.odds import decimal_odds, probabilities
from oddsengine.maths.value import edge

VOID = -1
"""Outcome of a void match: stakes are returned, and there is no score."""
_ROUNDING = 1e-9  # tolerance of probabilities that sum to 1
_AT_ONCE = 1 << 20  # draws held in memory


class Return(NamedTuple):
    """The return of bets."""

    bets: int
    matches: int  # with a bet
    unknown: int  # bets without a gain, excluded from all other numbers
    staked: float
    profit: float
    rate: float  # profit per unit staked
    error: float  # standard error of `rate`, by match
    low: float  # bootstrap interval of `rate`, by match
    high: float


def prices(quotes: pl.DataFrame, events: Sequence[str], sides: Sequence[str], column: str = "odds_decimal") -> Floats:
    """Arrange the odds of one book and market as a matrix.

    Parameters
    ----------
    quotes : polars.DataFrame
        One row per price: `event_id`, `selection_type`, and `column`.
    events, sides : sequence of str
        Labels of rows and columns; other quotes are ignored.
    column : str
        Column of the values.

    Returns
    -------
    ndarray of float
        Shape (events, sides); ``nan`` without a price.

    Raises
    ------
    ValueError
        If an outcome of an event has two prices: choose one first, such as the best.

    Examples
    --------
    >>> quotes = pl.DataFrame({"event_id": ["a", "a"], "selection_type": ["home", "away"], "odds_decimal": [1.8, 2.1]})
    >>> prices(quotes, ["a", "b"], ["home", "away"]).tolist()
    [[1.8, 2.1], [nan, nan]]
    """
    rows = pl.DataFrame({"event_id": pl.Series(events, dtype=pl.String)}).with_row_index("row")
    columns = pl.DataFrame({"selection_type": pl.Series(sides, dtype=pl.String)}).with_row_index("column")
    located = quotes.join(rows, on="event_id").join(columns, on="selection_type")
    place = located["row"].to_numpy().astype(np.int64) * len(sides) + located["column"].to_numpy()
    if np.unique(place).size < place.size:
        twice = located.filter(located.select("row", "column").is_duplicated()).row(0, named=True)
        raise ValueError(f"two prices for {twice['selection_type']} of {twice['event_id']}")
    out = np.full((rows.height, columns.height), np.nan)
    out.reshape(-1)[place] = located[column].to_numpy()
    return out


# ---- scores ----


def log_loss(probs: ArrayLike, outcome: ArrayLike) -> Floats:
    """Return the logarithmic score of each match.

    Parameters
    ----------
    probs : array_like of float
        Shape (matches, outcomes).
    outcome : array_like of int
        Column of the outcome, or `VOID`.

    Returns
    -------
    ndarray of float
        Nats, 0 at best; ``nan`` for a match without an outcome or with invalid probabilities.

    Examples
    --------
    >>> log_loss([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], [0, 2]).round(4).tolist()
    [0.6931, 1.6094]
    """
    p, won = _scored(probs, outcome)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(np.take_along_axis(p, np.maximum(won, 0)[:, None], 1)[:, 0]))


def brier(probs: ArrayLike, outcome: ArrayLike) -> Floats:
    """Return the Brier score of each match, over all of its outcomes.

    Parameters
    ----------
    probs : array_like of float
        Shape (matches, outcomes).
    outcome : array_like of int
        Column of the outcome, or `VOID`.

    Returns
    -------
    ndarray of float
        From 0, at best, to 2; ``nan`` as for `log_loss`.

    Examples
    --------
    >>> brier([[0.5, 0.3, 0.2], [0.0, 0.0, 1.0]], [0, 0]).round(4).tolist()
    [0.38, 2.0]
    """
    p, won = _scored(probs, outcome)
    return np.asarray(((p - (np.arange(p.shape[1]) == won[:, None])) ** 2).sum(axis=1))


def calibration(probs: ArrayLike, outcome: ArrayLike, bins: int = 10, level: float = 0.95) -> pl.DataFrame:
    """Compare predicted probabilities with observed frequencies.

    Parameters
    ----------
    probs : array_like of float
        Shape (matches, outcomes). Matches without a score are ignored.
    outcome : array_like of int
        Column of the outcome, or `VOID`.
    bins : int
        Number of bins of equal size; fewer if there are fewer outcomes.
    level : float
        Coverage of the interval.

    Returns
    -------
    polars.DataFrame
        One row per bin, ascending: `least`, `most` and `mean` probability, `count`, the `observed` share and its
        interval from `low` to `high`.

    Examples
    --------
    >>> calibration([[0.75, 0.25]] * 4, [0, 0, 1, 0], bins=2).select("mean", "count", "observed").rows()
    [(0.25, 4, 0.25), (0.75, 4, 0.75)]
    """
    if bins < 1:
        raise ValueError(f"bins must be 1 or more, got {bins}")
    z = NormalDist().inv_cdf(0.5 + _level(level) / 2.0)
    p, won = _scored(probs, outcome)
    scored = ~np.isnan(p).any(axis=1)
    right = (np.arange(p.shape[1]) == won[:, None])[scored].ravel()
    p = p[scored].ravel()
    order = np.argsort(p, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size]
    n = np.array([part.size for part in parts], dtype=np.int64)
    f = np.array([right[part].mean() for part in parts], dtype=np.float64)
    middle, half = f + z * z / (2 * n), z * np.sqrt(f * (1.0 - f) / n + z * z / (4.0 * n * n))
    return pl.DataFrame(
        {
            "least": np.array([p[part[0]] for part in parts], dtype=np.float64),
            "most": np.array([p[part[-1]] for part in parts], dtype=np.float64),
            "mean": np.array([p[part].mean() for part in parts], dtype=np.float64),
            "count": n,
            "observed": f,
            "low": (middle - half) / (1.0 + z * z / n),
            "high": (middle + half) / (1.0 + z * z / n),
        }
    )


# ---- bets ----


def flat_stakes(probs: ArrayLike, odds: ArrayLike, least: float = 0.0, stake: float = 1.0) -> Floats:
    """Return equal stakes on all prices with a sufficient edge.

    Parameters
    ----------
    probs, odds : array_like of float
        Shape (matches, outcomes): fair probabilities and decimal odds; ``nan`` is not bet on.
    least : float
        Minimum edge, exclusive, as a fraction.
    stake : float
        Stake per bet.

    Examples
    --------
    >>> flat_stakes([[0.5, 0.3, 0.2]], [[2.1, 3.0, 5.05]], least=0.02).tolist()
    [[1.0, 0.0, 0.0]]
    """
    if not 0.0 < stake < np.inf:
        raise ValueError(f"stake must be above 0, got {stake}")
    p, d = _pair(probs, odds)
    return np.asarray(np.where(edge(p, d) > least, stake, 0.0))


def kelly_stakes(probs: ArrayLike, odds: ArrayLike, least: float = 0.0, fraction: float = 1.0) -> Floats:
    """Return Kelly stakes on the exclusive outcomes of each match.

    Parameters
    ----------
    probs, odds : array_like of float
        Shape (matches, outcomes): fair probabilities and decimal odds; ``nan`` is not bet on.
    least : float
        Minimum edge, exclusive, as a fraction. Below 0, prices that only hedge others are included.
    fraction : float
        Fraction of the full stakes, above 0 and at most 1.

    Returns
    -------
    ndarray of float
        Fractions of the current bankroll.

    Examples
    --------
    >>> kelly_stakes([[0.55, 0.45], [0.55, 0.45]], [[2.0, 1.9], [2.0, float("nan")]], fraction=0.5).round(4).tolist()
    [[0.05, 0.0], [0.05, 0.0]]
    """
    p, d = _pair(probs, odds)
    taken = edge(p, d) > least
    return kelly_exclusive(np.where(taken, p, 0.0), np.where(taken, d, 2.0), fraction)


def gains(odds: ArrayLike, outcome: ArrayLike) -> Floats:
    """Return the profit per unit staked on exclusive outcomes; for lines that can push see `middle.settle_over`.

    Parameters
    ----------
    odds : array_like of float
        Decimal odds, shape (matches, outcomes).
    outcome : array_like of int
        Column of the outcome, or `VOID`.

    Returns
    -------
    ndarray of float
        ``odds - 1``, -1, or 0 for all of a void match; ``nan`` without odds.

    Examples
    --------
    >>> gains([[2.5, 3.0, 3.1], [1.5, 4.0, 7.0]], [0, -1]).tolist()
    [[1.5, -1.0, -1.0], [0.0, 0.0, 0.0]]
    """
    d = _matrix("odds", odds)
    won = _outcomes(outcome, d)[:, None]
    gain = np.where(np.arange(d.shape[1]) == won, d - 1.0, np.where(won == VOID, 0.0, -1.0))
    return np.asarray(np.where((d > 1.0) & (d < np.inf), gain, np.nan))


def returns(stakes: ArrayLike, gains: ArrayLike, seed: int, draws: int = 2000, level: float = 0.95) -> Return:
    """Return the profit per unit staked, with errors clustered by match.

    Parameters
    ----------
    stakes : array_like of float
        Shape (matches, bets), 0 for no bet.
    gains : array_like of float
        Profit per unit staked, or another value to average by stake; ``nan`` is unknown and counted separately.
    seed : int
        Seed of the bootstrap.
    draws : int
        Number of bootstrap samples.
    level : float
        Coverage of the bootstrap's interval.

    Returns
    -------
    Return
        Rates and errors are ``nan`` without bets, errors also for a single match.

    Examples
    --------
    Four bets on two matches, one of which won twice and the other lost twice:

    >>> found = returns([[1, 1], [1, 1]], [[1.0, 1.0], [-1.0, -1.0]], seed=0)
    >>> found.bets, found.matches, found.profit, found.rate, round(found.error, 3)
    (4, 2, 0.0, 0.0, 1.0)
    """
    s, g = _bets(stakes, gains)
    alpha = (1.0 - _level(level)) / 2.0
    bet = s > 0.0
    counted = bet & ~np.isnan(g)
    rows = counted.any(axis=1)
    s = np.where(counted, s, 0.0)[rows]
    won = (s * np.where(counted, g, 0.0)[rows]).sum(axis=1)
    staked = s.sum(axis=1)
    total, profit, matches = float(staked.sum()), float(won.sum()), int(rows.sum())
    rate = profit / total if matches else np.nan
    error = low = high = np.nan
    if matches > 1:
        error = float(np.sqrt(matches / (matches - 1) * ((won - rate * staked) ** 2).sum()) / total)
        low, high = np.quantile(bootstrap(won, staked, seed, draws), [alpha, 1.0 - alpha]).tolist()
    return Return(
        int(counted.sum()), matches, int((bet & ~counted).sum()), total, profit, float(rate), error, low, high
    )  # fmt: skip


def bootstrap(above: ArrayLike, below: ArrayLike, seed: int, draws: int = 2000) -> Floats:
    """Bootstrap the ratio of two sums over matches.

    Parameters
    ----------
    above, below : array_like of float
        Numerator and denominator by match, such as profit and stakes; `below` is above 0, and 1 for means.
    seed : int
        Seed of the random numbers.
    draws : int
        Number of samples.

    Returns
    -------
    ndarray of float
        Shape (draws,).

    Examples
    --------
    >>> bootstrap([0.5, 0.5], [1.0, 1.0], seed=0, draws=3).tolist()
    [0.5, 0.5, 0.5]
    """
    x, y = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or x.size == 0:
        raise ValueError(f"above and below must have one number per match, got shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (y > 0.0).all()):
        raise ValueError("above must be finite, and below above 0")
    if draws < 1:
        raise ValueError(f"draws must be 1 or more, got {draws}")
    rng = np.random.default_rng(seed)
    out = np.empty(draws)
    step = max(1, _AT_ONCE // x.size)
    for first in range(0, draws, step):
        drawn = rng.integers(0, x.size, (min(step, draws - first), x.size))
        out[first : first + step] = x[drawn].sum(axis=1) / y[drawn].sum(axis=1)
    return out


# ---- bankroll ----


def added(stakes: ArrayLike, gains: ArrayLike, moment: ArrayLike) -> Floats:
    """Return the bankroll over time if stakes are fractions of the initial bankroll.

    Parameters
    ----------
    stakes, gains : array_like of float
        Shape (matches, bets). An unknown gain counts as 0.
    moment : array_like of int
        Time index of each match, from 0 and not decreasing; bets with the same index are simultaneous.

    Returns
    -------
    ndarray of float
        1, then the bankroll after each time. It can fall below 0 if stakes are too large.

    Examples
    --------
    >>> added([[0.1], [0.1], [0.1]], [[1.0], [-1.0], [1.0]], [0, 0, 1]).round(4).tolist()
    [1.0, 1.0, 1.1]
    """
    profit, _ = _moments(stakes, gains, moment)
    return np.concatenate([[1.0], 1.0 + np.cumsum(profit)])


def compounded(stakes: ArrayLike, gains: ArrayLike, moment: ArrayLike) -> Floats:
    """Return the bankroll over time if stakes are fractions of the current bankroll.

    Parameters
    ----------
    stakes, gains : array_like of float
        Shape (matches, bets). An unknown gain counts as 0.
    moment : array_like of int
        Time index of each match, from 0 and not decreasing; bets with the same index are simultaneous.

    Returns
    -------
    ndarray of float
        1, then the bankroll after each time; never below 0.

    Examples
    --------
    >>> compounded([[0.1], [0.1], [0.1]], [[1.0], [1.0], [1.0]], [0, 0, 1]).round(4).tolist()
    [1.0, 1.2, 1.32]
    >>> compounded([[0.8], [0.8]], [[1.0], [-1.0]], [0, 0]).tolist()
    [1.0, 1.0]
    """
    profit, staked = _moments(stakes, gains, moment)
    factor = np.maximum(0.0, 1.0 + profit / np.maximum(1.0, staked))
    return np.concatenate([[1.0], np.cumprod(factor)])


def drawdown(bankroll: ArrayLike) -> Floats:
    """Return the drawdown of a bankroll: the relative distance below its maximum so far.

    Parameters
    ----------
    bankroll : array_like of float
        In order of time, initially above 0.

    Returns
    -------
    ndarray of float
        Fractions of the maximum so far; the largest is the maximum drawdown.

    Examples
    --------
    >>> drawdown([1.0, 1.25, 1.0, 0.75, 1.5]).round(4).tolist()
    [0.0, 0.0, 0.2, 0.4, 0.0]
    """
    path = np.asarray(bankroll, dtype=np.float64)
    if path.ndim != 1 or not np.isfinite(path).all() or not (path[:1] > 0.0).all():
        raise ValueError("bankroll must be finite, 1-D, and above 0 at the start")
    return np.asarray(1.0 - path / np.maximum.accumulate(path))


# ---- validation ----


def _matrix(name: str, values: ArrayLike) -> Floats:
    if name == "odds":
        x = decimal_odds(values)
    elif name == "probs":
        x = probabilities(values, name)
    else:
        x = np.asarray(values, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"{name} must have one row per match and one column per outcome, got shape {x.shape}")
    return x


def _pair(probs: ArrayLike, odds: ArrayLike) -> tuple[Floats, Floats]:
    p, d = _matrix("probs", probs), _matrix("odds", odds)
    if p.shape != d.shape:
        raise ValueError(f"probs and odds must have the same shape, got {p.shape} and {d.shape}")
    return p, d


def _codes(name: str, values: ArrayLike, matches: int) -> Longs:
    x = np.asarray(values)
    if x.shape != (matches,) or (x.size and x.dtype.kind not in "iu"):
        raise ValueError(f"{name} must have one whole number per match ({matches}), got {x.dtype} of shape {x.shape}")
    return x.astype(np.int64)


def _outcomes(outcome: ArrayLike, table: Floats) -> Longs:
    won = _codes("outcome", outcome, table.shape[0])
    if ((won < VOID) | (won >= table.shape[1])).any():
        raise ValueError(f"outcome must be a column from 0 to {table.shape[1] - 1}, or {VOID} for none")
    return won


def _scored(probs: ArrayLike, outcome: ArrayLike) -> tuple[Floats, Longs]:
    """Return probabilities, all `nan` for a match without a score, and outcomes."""
    p = _matrix("probs", probs)
    won = _outcomes(outcome, p)
    valid = ((p >= 0.0) & (p <= 1.0)).all(axis=1) & (p.sum(axis=1) <= 1.0 + _ROUNDING) & (won != VOID)
    return np.where(valid[:, None], p, np.nan), won


def _bets(stakes: ArrayLike, gains: ArrayLike) -> tuple[Floats, Floats]:
    s, g = _matrix("stakes", stakes), _matrix("gains", gains)
    if s.shape != g.shape:
        raise ValueError(f"stakes and gains must have the same shape, got {s.shape} and {g.shape}")
    if not ((s >= 0.0) & (s < np.inf)).all():
        raise ValueError("stakes must be finite and at least 0")
    if np.isinf(g).any():
        raise ValueError("gains must be finite, or nan if unknown")
    return s, g


def _moments(stakes: ArrayLike, gains: ArrayLike, moment: ArrayLike) -> tuple[Floats, Floats]:
    s, g = _bets(stakes, gains)
    when = _codes("moment", moment, s.shape[0])
    if (when < 0).any() or (np.diff(when) < 0).any():
        raise ValueError("moment must be at least 0 and must not decrease")
    size = int(when.max(initial=-1)) + 1
    profit = (s * np.nan_to_num(g)).sum(axis=1)
    won, staked = np.bincount(when, profit, size), np.bincount(when, s.sum(axis=1), size)
    return won.astype(np.float64), staked.astype(np.float64)


def _level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be above 0 and below 1, got {level}")
    return level
