"""Middles: two bets on one number that can both win.

**The question.** X is a whole number: the home team's margin, or a total. One bet is over L1 at odds d1, the
other under L2 at odds d2, at another book, with L1 < L2. Every X strictly between the lines wins both
bets. What is the chance of that, and what is the pair worth?

**Stakes and payoffs.** With S = 1/d1 + 1/d2 the shares of the total stake are (1/d1)/S and (1/d2)/S, so that
either bet alone pays 1/S. Hence, per unit staked in total::

    worst case  1/S - 1     (one bet wins, one loses)
    best case   2/S - 1     (both win)
    expected    sum over x of P(X = x) * return(x)

Without pushes the expectation is (1 + P)/S - 1 with P the chance of the window: break even at P = S - 1.

**Settlement.** Lines are integers, in hundredths (2.5 is 250). For an over bet let u = (100 x - L)/50, cut
to [-1, 1]; an under bet has -u. The return per unit staked is 1 + (d - 1) max(u, 0) - max(-u, 0). That one
formula is a win (u = 1), a loss (-1), a push on a whole line (0), and on a quarter line the half win (1/2)
and the half loss (-1/2): a quarter line is two bets of half the stake, on the whole and on the half line
beside it. So a window such as 2.75 to 3.25, whose only number wins half of each bet, has a best case below
2/S - 1.

**What must be known of X.** Only its tail G(h) = P(X > h) at half points. A half line needs G at itself. A
whole line n needs G at n - 1/2 and n + 1/2, whose difference is the chance m of the push; a quarter line
needs the same two around its whole neighbour. Four points at most (`oddsengine.detection.tails` reads them). With m
and G at the upper point, of the stake of an over bet ::

    won   G + a m         a = 1/2 on lines n - 1/4, else 0
    back  b m             b = 1 on whole lines, 1/2 on quarter lines, 0 on half lines

is won or comes back on average, and the rest is lost. The chance that a price on such a line speaks of, the
two-way one that ignores pushes, is won / (won + lost).

**Limits.** No answer, ``nan``, has a line that is not a multiple of a quarter, a price of 1 or less, and a pair of
lines without a whole number strictly between them. Where no ladder of prices gives G, a distribution does that is
fitted to one price (`oddsengine.maths.distributions`, `oddsengine.maths.shape_fitting`).

Arguments of the kernels:

- `points` (rows by n): half points, hundredths
- `over_line`, `under_line` (per middle, hundredths), `over_odds`, `under_odds`: the two bets
- `odds`: decimal price
- `low`, `high`, `d1`, `d2`: those of one middle
- `tail` (rows by 4): P(X > point) at the points of `window`
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from oddsengine._jit import allocating, kernel
from oddsengine.columns import Floats
from oddsengine.maths.distributions import Integers, flat, whole
from oddsengine.maths.odds import decimal_odds

_ROUNDING = 1e-12  # how far a tail may rise and still count as level
_QUARTER, _HALF, _THREE_QUARTERS = 25, 50, 75  # fractions of a line, hundredths


@kernel
def _gross(distance: int, odds: float) -> float:
    """Return per unit of a bet whose number is `distance` hundredths on the winning side of the line."""
    u = min(max(distance / 50.0, -1.0), 1.0)
    return 1.0 + (odds - 1.0) * u if u > 0.0 else 1.0 + u


@kernel
def _expected(low: int, high: int, d1: float, d2: float, tail: Floats) -> tuple[float, float]:
    """Probability of the window and expected value of over `low` and under `high`; nan if the tails are unusable."""
    fraction1, fraction2 = low % 100, high % 100
    window = tail[0 if fraction1 == _THREE_QUARTERS else 1] - tail[3 if fraction2 == _QUARTER else 2]
    push1 = tail[0] - tail[1]
    push2 = tail[2] - tail[3]
    if not (window >= -_ROUNDING and push1 >= -_ROUNDING and push2 >= -_ROUNDING):
        return math.nan, math.nan
    win1 = tail[1] + (0.5 * push1 if fraction1 == _THREE_QUARTERS else 0.0)
    win2 = 1.0 - tail[2] + (0.5 * push2 if fraction2 == _QUARTER else 0.0)
    return1 = push1 if fraction1 == 0 else 0.5 * push1
    return2 = push2 if fraction2 == 0 else 0.5 * push2
    s = 1.0 / d1 + 1.0 / d2
    w1 = 1.0 / (d1 * s)
    w2 = 1.0 / (d2 * s)
    return max(0.0, window), w1 * (win1 * d1 + return1) + w2 * (win2 * d2 + return2) - 1.0


@kernel
@allocating
def _evaluate(over_line: Integers, under_line: Integers, over_odds: Floats, under_odds: Floats, tail: Floats) -> Floats:
    """Rows probability, ev, worst and best, (4, m), of m middles; tail (m, 4) at the points of `window`."""
    out = np.empty((4, over_line.size))
    for i in range(over_line.size):
        for row in range(4):
            out[row, i] = math.nan
        low = over_line[i]
        high = under_line[i]
        d1 = over_odds[i]
        d2 = under_odds[i]
        first = low // 100 + 1
        last = -(-high // 100) - 1
        if (
            first > last
            or low % _QUARTER != 0
            or high % _QUARTER != 0
            or not (1.0 < d1 < math.inf and 1.0 < d2 < math.inf)
        ):
            continue
        s = 1.0 / d1 + 1.0 / d2
        w1 = 1.0 / (d1 * s)
        w2 = 1.0 / (d2 * s)

        best = 0.0
        # If both bets can win in full, they do so from the second number on; beside quarter lines a push can be better.
        for x in (first - 1, first, min(first + 1, last), last, last + 1):
            best = max(best, w1 * _gross(100 * x - low, d1) + w2 * _gross(high - 100 * x, d2))
        out[2, i] = 1.0 / s - 1.0
        out[3, i] = best - 1.0
        out[0, i], out[1, i] = _expected(low, high, d1, d2, tail[i])
    return out


@kernel
def _promising(
    over_line: Integers, under_line: Integers, over_odds: Floats, under_odds: Floats, tail: Floats, of: Integers,
    least: Floats, out: Integers,
) -> int:  # fmt: skip
    """Indices of middles worth at least `least`, and of those that cannot lose; `of` is the row of `tail` (rows, 4).

    `least` is per middle; the indices are written to `out`. Returns their number.
    """
    n = 0
    for i in range(of.size):
        d1, d2 = over_odds[i], under_odds[i]
        _, worth = _expected(over_line[i], under_line[i], d1, d2, tail[of[i]])
        if worth >= least[i] or 1.0 / d1 + 1.0 / d2 < 1.0:
            out[n] = i
            n += 1
    return n


@kernel
@allocating
def points(over_line: Integers, under_line: Integers) -> Integers:
    """The points of `window`, (m, 4), of flat columns of lines."""
    out = np.empty((over_line.size, 4), np.int64)
    for i in range(over_line.size):
        for k in range(2):
            line = over_line[i] if k == 0 else under_line[i]
            fraction = line % 100
            base = line - fraction + (100 if fraction == _THREE_QUARTERS else 0)
            out[i, 2 * k] = line if fraction == _HALF else base - _HALF
            out[i, 2 * k + 1] = line if fraction == _HALF else base + _HALF
    return out


class Window(NamedTuple):
    """The whole numbers strictly between two lines, and the points where the tail of X is needed."""

    first: Integers
    last: Integers
    size: Integers
    points: Integers


class MiddleValue(NamedTuple):
    """Value of a middle, as fractions of the total stake; `prob` is the probability of its window."""

    prob: Floats
    ev: Floats
    worst: Floats
    best: Floats


def window(over_line: ArrayLike, under_line: ArrayLike) -> Window:
    """Whole numbers strictly between two lines.

    Parameters
    ----------
    over_line, under_line : array_like of int
        Lines in hundredths, whole, half or quarter; they broadcast.

    Returns
    -------
    Window
        `first` and `last` number inside, their count (`size`, 0 if there is none), and `points`, the half
        points in hundredths where `evaluate` needs the tail: below and above the number that the over line can
        push on, then the same for the under line. A half line appears twice.

    Examples
    --------
    >>> window(250, 350)
    Window(first=array(3), last=array(3), size=array(1), points=array([250, 250, 350, 350]))
    >>> window([-300, 225], [250, 400]).points.tolist()
    [[-350, -250, 250, 250], [150, 250, 350, 450]]
    """
    low, high = np.broadcast_arrays(whole(over_line, "over_line"), whole(under_line, "under_line"))
    first = np.asarray(low // 100 + 1)
    last = np.asarray(-(-high // 100) - 1)
    size = np.asarray(np.maximum(0, last - first + 1))
    return Window(first, last, size, points(low.flatten(), high.flatten()).reshape(*low.shape, 4))


def settle_over(line: ArrayLike, odds: ArrayLike, number: ArrayLike) -> Floats:
    """Return per unit staked on over, the stake included.

    Parameters
    ----------
    line : array_like of int
        Line in hundredths; ``nan`` comes back for one that is not a multiple of a quarter.
    odds : array_like of float
        Decimal odds.
    number : array_like of int
        The result.

    Examples
    --------
    >>> settle_over([200, 225, 250, 275], 1.9, 2).tolist()
    [1.0, 0.5, 0.0, 0.0]
    >>> settle_over([200, 225, 250, 275], 1.9, 3).tolist()
    [1.9, 1.9, 1.9, 1.45]
    """
    lines = whole(line, "line")
    return _settle(lines, 100 * whole(number, "number") - lines, odds)


def settle_under(line: ArrayLike, odds: ArrayLike, number: ArrayLike) -> Floats:
    """Return per unit staked on under, the stake included; the arguments are those of `settle_over`.

    Examples
    --------
    >>> settle_under([200, 225, 250, 275], 1.9, 2).tolist()
    [1.0, 1.45, 1.9, 1.9]
    """
    lines = whole(line, "line")
    return _settle(lines, lines - 100 * whole(number, "number"), odds)


def _settle(line: Integers, distance: Integers, odds: ArrayLike) -> Floats:
    """Return per unit; `distance` is how many hundredths the number is on the winning side of the line."""
    u = np.clip(distance / 50.0, -1.0, 1.0)
    back = 1.0 + (decimal_odds(odds) - 1.0) * np.maximum(u, 0.0) + np.minimum(u, 0.0)
    return np.where(line % 25 == 0, back, np.nan)


def evaluate(
    over_line: ArrayLike, under_line: ArrayLike, over_odds: ArrayLike, under_odds: ArrayLike, tail: ArrayLike
) -> MiddleValue:
    """Value of middles, given the tail at the points of `window`.

    Parameters
    ----------
    over_line, under_line : array_like of int
        Lines in hundredths.
    over_odds, under_odds : array_like of float
        Decimal odds.
    tail : array_like of float, (..., 4)
        P(X > h) at the `points` of `window`.

    Returns
    -------
    Middle
        Fractions of the total stake. `prob` and `ev` are ``nan`` if the tail is unknown or rises; all four
        are if no whole number is inside or a price is not above 1.

    Examples
    --------
    >>> from oddsengine.maths.distributions import KINDS, Shapes, tail
    >>> lines = [250], [350]
    >>> chance = tail(Shapes.of(KINDS["poisson"]), [2.9], window(*lines).points)
    >>> found = evaluate(*lines, 1.95, 1.95, chance)
    >>> [round(float(figure[0]), 4) for figure in found]
    [0.2237, 0.1931, -0.025, 0.95]
    """
    curve = np.asarray(tail, dtype=np.float64)
    if curve.shape[-1:] != (4,):
        raise ValueError(f"tail must end in an axis of 4 points, got shape {curve.shape}")
    low, high = whole(over_line, "over_line"), whole(under_line, "under_line")
    d1, d2 = decimal_odds(over_odds), decimal_odds(under_odds)
    shape = np.broadcast_shapes(low.shape, high.shape, d1.shape, d2.shape, curve.shape[:-1])
    columns = [*flat(shape, low, high, d1, d2), flat((*shape, 4), curve)[0].reshape(-1, 4)]
    return MiddleValue._make(column.reshape(shape) for column in evaluate_columns(*columns))


def evaluate_columns(
    over_line: Integers, under_line: Integers, over_odds: Floats, under_odds: Floats, tail: Floats
) -> MiddleValue:
    """`evaluate` for flat columns and rows of four tails, without checks."""
    return MiddleValue(*_evaluate(over_line, under_line, over_odds, under_odds, tail))


def promising(
    over_line: Integers, under_line: Integers, over_odds: Floats, under_odds: Floats, tail: Floats, of: Integers,
    least: Floats,
) -> Integers:  # fmt: skip
    """Indices of middles that reach their own minimum value or cannot lose; for flat columns and without checks.

    `tail` are rows of four tails, `of` is the row of each middle.
    """
    out = np.empty(of.size, np.int64)
    n = _promising(over_line, under_line, over_odds, under_odds, tail, of, least, out)
    return out[:n]


def quality(ev: ArrayLike, prob: ArrayLike, source: ArrayLike, age: ArrayLike) -> Floats:
    """Score of a middle from 0 to 100.

    45 points for an expected value of 5 % or more, 25 for a probability of 25 % or more, 20 for the source of
    that probability, and 10 for prices seen just now. Each falls in proportion; an age above two minutes and a
    negative expected value subtract points.

    Parameters
    ----------
    ev : array_like of float
        Expected value as a fraction of the total stake.
    prob : array_like of float
        Probability of the window.
    source : array_like of float
        Confidence in that probability, from 0 to 1.
    age : array_like of float
        Seconds since the older price was seen.

    Examples
    --------
    >>> quality([0.02, 0.10], [0.15, 0.30], [1.0, 0.4], [12.0, 0.0]).round(2).tolist()
    [62.0, 88.0]
    """
    ev, prob, source, age = (np.asarray(x, dtype=np.float64) for x in (ev, prob, source, age))
    points = 45.0 * np.minimum(1.0, ev / 0.05) + 25.0 * np.minimum(1.0, prob / 0.25)
    points = points + 20.0 * source + 10.0 * (1.0 - age / 120.0)
    return np.asarray(np.clip(points, 0.0, 100.0))
