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

**Shapes**, for where no ladder of prices gives G. Each has one location to fit, and grows with it in the
usual stochastic order, so that the fit has one answer:

- ``POISSON``, totals of goals. The location is the mean.
- ``NEGATIVE_BINOMIAL``, totals of corners, shots, a player's count. The location is the mean, the scale v is
  variance over mean, at least 1. P(0) = exp(-mean log(v)/(v - 1)) and P(x + 1) = P(x) (mean + x (v - 1)) /
  (v (x + 1)); v = 1 is Poisson.
- ``NORMAL``, totals of points. G(h) = 1 - Phi((h - location)/scale); the scale is the standard deviation.
- ``SKELLAM``, margins of goals and runs: the difference of two Poisson numbers. The location is the
  difference of the means, the scale their sum, which is the variance. Where the level is given, P(0) is that
  level, and what was above it is handed to +1 and -1 in proportion to P(X > 0) and P(X < 0): overtime ends
  by one.
- ``MARGIN``, margins in football and basketball. P(m) is proportional to weight(abs(m)) phi((m -
  location)/scale) inside a table of weights (3 and 7 points are common, 1 and 2 are not) and to the plain
  discrete Normal beyond it. Where the level is given P(0) is that level, and the others share the rest in
  proportion.

The Skellam scale is the expected total where goals are Poisson; runs in baseball are more spread, about
twice the total.

**Limits.** A Poisson or negative binomial mean lies in (0, 700), a Skellam difference within plus and minus
its scale, that of a Normal margin within 30 scales of 0. A probability that no location there can give has no
answer: ``nan``. So has a line that is not a multiple of a quarter, a price of 1 or less, and a pair of lines
without a whole number strictly between them. Tails lose relative precision below about 1e-10.

References: J. G. Skellam, "The frequency distribution of the difference between two Poisson variates",
J. R. Statist. Soc. 109 (1946), https://doi.org/10.2307/2981372. H. Stern, "On the probability of winning a
football game", The American Statistician 45 (1991), https://doi.org/10.1080/00031305.1991.10475798 (the
Normal margin). M. J. Maher, "Modelling association football scores", Statistica Neerlandica 36 (1982),
https://doi.org/10.1111/j.1467-9574.1982.tb00782.x (Poisson goals).

Arguments of the kernels:

- `shape`, `scale`, `level`, `location` (per row): the shape, such as `POISSON`, and its numbers; level is nan if not
  given
- `weights` (per number): those of a Normal margin; (tables, numbers) where `table` is the row of each
- `table` (per row): a row of `weights`
- `home`, `away`, `mean`: means of the two teams' numbers, and of a number
- `prob`: the chance of over, fair and with pushes left out
- `points` (rows by n): half points, hundredths
- `odds`: decimal price
- `k`, `x`, `line`: the number, the argument, and a line in hundredths
- `over_line`, `under_line` (per middle, hundredths), `over_odds`, `under_odds`: the two bets
- `low`, `high`, `d1`, `d2`: those of one middle
- `tail` (rows by 4): P(X > point) at the points of `window`
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddsengine._jit import allocating, kernel
from oddsengine.columns import Floats
from oddsengine.maths.odds import decimal_odds

Integers = NDArray[np.int64]

POISSON = 0
SKELLAM = 1
NEGATIVE_BINOMIAL = 2
NORMAL = 3
MARGIN = 4

KINDS = {
    "poisson": POISSON,
    "skellam": SKELLAM,
    "negative_binomial": NEGATIVE_BINOMIAL,
    "normal": NORMAL,
    "margin": MARGIN,
}

_TOL = 1e-9  # of the fit, in log-odds of the anchor's probability; one more secant step follows
_STEPS = 80  # of the fit; from _SECANT on it only bisects
_SECANT = 16
_MEAN_MOST = 700.0  # exp(-mean) stays a normal float
_SCALES_MOST = 30.0  # the farthest location of a Normal margin, in scales
_ROUNDING = 1e-12  # how far a tail may rise and still count as level
_NOTHING = 1e-18  # a term of a sum that no longer matters
_QUARTER, _HALF, _THREE_QUARTERS = 25, 50, 75  # fractions of a line, hundredths
_ROOT2 = math.sqrt(2.0)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


@kernel
def _count(mean: float, ratio: float, k: int) -> tuple[float, float]:
    """P(X > k) and P(X = k), X negative binomial with variance `ratio` times the mean."""
    if k < 0:
        return 1.0, 0.0
    excess = ratio - 1.0
    if excess > 0.0:
        mass = math.exp(-mean * math.log1p(excess) / excess)
    else:
        mass = math.exp(-mean)
    cumulative = mass
    for x in range(k):
        mass *= (mean + x * excess) * (1.0 / (ratio * (x + 1)))
        cumulative += mass
        if mass < _NOTHING and x > mean:
            mass = 0.0
            break
    return max(0.0, 1.0 - cumulative), mass


@kernel
def _skellam(home: float, away: float, k: int) -> tuple[float, float]:
    """P(X > k) and P(X = k), X the difference of Poisson numbers with these two means."""
    away_mass = math.exp(-away)  # P(away number = j)
    home_mass = 0.0  # P(home number = k + j)
    home_cumulative = 0.0  # P(home number <= k + j)
    if k >= 0:
        home_mass = math.exp(-home)
        home_cumulative = home_mass
        for x in range(k):
            home_mass *= home * (1.0 / (x + 1))
            home_cumulative += home_mass
    tail = 0.0
    mass = 0.0
    j = 0
    i = k
    while away_mass > _NOTHING or j <= away:
        if i == 0 and k < 0:
            home_mass = math.exp(-home)
            home_cumulative = home_mass
        tail += away_mass * (1.0 - home_cumulative)
        mass += away_mass * home_mass
        j += 1
        i += 1
        away_mass *= away * (1.0 / j)
        if i > 0:
            home_mass *= home * (1.0 / i)
            home_cumulative += home_mass
    return tail, mass


@kernel
def _skellam_level(home: float, away: float, level: float, k: int) -> tuple[float, float]:
    """P(X > k) and P(X = k) after P(X = 0) is set to `level` and the difference is given to +1 and -1.

    `home` and `away` are means.
    """
    if k < -1 or k > 1:
        return _skellam(home, away, k)
    tail_above, mass_at_zero = _skellam(home, away, 0 * k)  # a literal 0 would be compiled as a second kernel
    share = tail_above / (1.0 - mass_at_zero)
    if k == 0:
        return share * (1.0 - level), level
    tail, mass = _skellam(home, away, k)
    if k == 1:
        mass += (mass_at_zero - level) * share
    else:
        tail = level + share * (1.0 - level)
        mass += (mass_at_zero - level) * (1.0 - share)
    if mass < 0.0:
        return math.nan, math.nan
    return tail, mass


@kernel
def _upper(x: float) -> float:
    """P(Z > x), Z standard Normal."""
    return 0.5 * math.erfc(x / _ROOT2)


@kernel
def _margin(location: float, scale: float, level: float, weights: Floats, k: int) -> tuple[float, float]:
    """P(X > k) and P(X = k), X a Normal margin times weights[abs(m)] with P(0) set to `level`."""
    last = weights.size - 1
    while math.isnan(weights[last]):
        last -= 1
    precision = 0.5 / (scale * scale)
    zero = _DENSITY / scale * math.exp(-location * location * precision)
    mass_above = _upper((last + 0.5 - location) / scale)
    mass_below = _upper((last + 0.5 + location) / scale)
    total = mass_above + mass_below  # of all numbers but 0
    tail = mass_above
    mass = 0.0
    change = math.exp(-2.0 * precision)
    for side in (1, -1):
        density = zero
        ratio = math.exp((2.0 * side * location - 1.0) * precision)
        for m in range(1, last + 1):
            density *= ratio
            ratio *= change
            term = weights[m] * density
            total += term
            if side * m > k:
                tail += term
            elif side * m == k:
                mass = term
    zero *= weights[0]
    if k > last:
        tail = _upper((k + 0.5 - location) / scale)
        mass = _upper((k - 0.5 - location) / scale) - tail
    elif k < -last:
        tail_beyond = _upper((location - k - 0.5) / scale)
        tail += mass_below - tail_beyond
        mass = tail_beyond - _upper((location - k + 0.5) / scale)
    if math.isnan(level):
        level = zero / (total + zero)
    factor = (1.0 - level) / total
    if k == 0:
        return tail * factor, level
    if k < 0:
        return tail * factor + level, mass * factor
    return tail * factor, mass * factor


@kernel
def _tail_mass(shape: int, location: float, scale: float, level: float, weights: Floats, k: int) -> tuple[float, float]:
    """P(X > k) and P(X = k) of any shape."""
    if shape == MARGIN:
        return _margin(location, scale, level, weights, k)
    if shape == NORMAL:
        tail = _upper((k + 0.5 - location) / scale)
        return tail, _upper((k - 0.5 - location) / scale) - tail
    if shape == SKELLAM:
        home = 0.5 * (scale + location)
        away = 0.5 * (scale - location)
        if math.isnan(level):
            return _skellam(home, away, k)
        return _skellam_level(home, away, level, k)
    return _count(location, 1.0 if shape == POISSON else scale, k)


@kernel
def _possible(shape: int, scale: float) -> bool:
    """Whether the scale is valid for the shape; a Poisson total has none."""
    if shape == POISSON:
        return True
    if shape == NEGATIVE_BINOMIAL:
        return scale >= 1.0
    return scale > 0.0


@kernel
def _deviate(prob: float) -> float:
    """Approximate the Normal quantile to 5e-4, Abramowitz and Stegun (1964) 26.2.23.

    `prob` is the probability.
    """
    lesser = min(prob, 1.0 - prob)
    t = math.sqrt(-2.0 * math.log(lesser))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    return z if prob > 0.5 else -z


@kernel
def _fit_one(shape: int, scale: float, level: float, weights: Floats, line: int, prob: float) -> float:
    """Solve for the location where the two-way chance of over `line` (hundredths) is `prob`."""
    fraction = line % 100
    if fraction % _QUARTER != 0 or not 0.0 < prob < 1.0:
        return math.nan
    k = line // 100
    push_won = 0.0
    push_returned = 0.5
    if fraction == _THREE_QUARTERS:
        k += 1
        push_won = 0.5
    elif fraction == 0:
        push_returned = 1.0
    elif fraction == _HALF:
        push_returned = 0.0

    z = _deviate(prob)
    if shape in (POISSON, NEGATIVE_BINOMIAL):
        low = 0.0
        high = _MEAN_MOST
        ratio = 1.0 if shape == POISSON else scale
        spread = math.sqrt(ratio * max(0.5, line * 0.01))
        guess = max(0.2, line * 0.01 + 0.2 * ratio + z * spread)
    elif shape == SKELLAM:
        low = -scale
        high = scale
        spread = math.sqrt(scale)
        guess = line * 0.01 + z * spread
    else:
        centre = 0.0 if shape == MARGIN else line * 0.01
        low = centre - _SCALES_MOST * scale
        high = centre + _SCALES_MOST * scale
        spread = scale
        guess = line * 0.01 + z * spread
    if not low < guess < high:
        guess = 0.5 * (low + high)

    target = math.log(prob / (1.0 - prob))
    slope = _DENSITY * math.exp(-0.5 * z * z) / (prob * (1.0 - prob) * spread)
    x = guess
    previous_x = 0.0
    previous_miss = 0.0
    for step in range(_STEPS):
        tail, mass = _tail_mass(shape, x, scale, level, weights, k)
        win = tail + push_won * mass
        loss = 1.0 - push_returned * mass - win
        if math.isnan(win):
            return math.nan
        if loss <= 0.0:
            miss = math.inf
        elif win <= 0.0:
            miss = -math.inf
        else:
            miss = math.log(win / loss) - target
        if step > 0 and abs(previous_miss - miss) > 0.0:
            slope = (miss - previous_miss) / (x - previous_x)
        move = x - miss / slope
        if abs(miss) <= _TOL:
            return min(max(move, low), high)
        if miss > 0.0:
            high = x
        else:
            low = x
        previous_x = x
        previous_miss = miss
        if step >= _SECANT or not low < move < high:
            move = 0.5 * (low + high)
        x = move
    return math.nan


@kernel
@allocating
def _fit(
    shape: Integers,
    scale: Floats,
    level: Floats,
    table: Integers,
    weights: Floats,
    line: Integers,
    prob: Floats,
) -> Floats:
    """Locations, one per row. All arguments are (m,), except weights (tables, numbers), whose row is `table`."""
    out = np.empty(shape.size)
    for i in range(shape.size):
        out[i] = math.nan
        if _possible(shape[i], scale[i]):
            out[i] = _fit_one(shape[i], scale[i], level[i], weights[table[i]], line[i], prob[i])
    return out


@kernel
@allocating
def _tail(
    shape: Integers,
    location: Floats,
    scale: Floats,
    level: Floats,
    table: Integers,
    weights: Floats,
    points: Integers,
) -> Floats:
    """P(X > point), points (m, n) being half points in hundredths; the result is (m, n)."""
    out = np.empty(points.shape)
    for i in range(points.shape[0]):
        low = 0.0
        high = _MEAN_MOST
        if shape[i] == SKELLAM:
            low = -scale[i]
            high = scale[i]
        elif shape[i] == NORMAL:
            low = -math.inf
            high = math.inf
        elif shape[i] == MARGIN:
            low = -_SCALES_MOST * scale[i]
            high = _SCALES_MOST * scale[i]
        has_answer = _possible(shape[i], scale[i]) and low <= location[i] <= high
        for j in range(points.shape[1]):
            out[i, j] = math.nan
            if j > 0 and points[i, j] == points[i, j - 1]:
                out[i, j] = out[i, j - 1]
            elif has_answer and points[i, j] % 100 == _HALF:
                out[i, j] = _tail_mass(
                    shape[i], location[i], scale[i], level[i], weights[table[i]], points[i, j] // 100
                )[0]
    return out


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


def _whole(values: ArrayLike, name: str) -> Integers:
    """Check for integers; converting a float would silently drop its fraction."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers (lines count hundredths: 2.5 is 250), got {array.dtype}")
    return array.astype(np.int64)


def _flat(shape: tuple[int, ...], *columns: NDArray[Any]) -> list[NDArray[Any]]:
    """Broadcast columns to `shape`, flat and in new memory, so that kernels are compiled for one layout only."""
    return [np.broadcast_to(column, shape).flatten() for column in columns]


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
    low, high = np.broadcast_arrays(_whole(over_line, "over_line"), _whole(under_line, "under_line"))
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
    lines = _whole(line, "line")
    return _settle(lines, 100 * _whole(number, "number") - lines, odds)


def settle_under(line: ArrayLike, odds: ArrayLike, number: ArrayLike) -> Floats:
    """Return per unit staked on under, the stake included; the arguments are those of `settle_over`.

    Examples
    --------
    >>> settle_under([200, 225, 250, 275], 1.9, 2).tolist()
    [1.0, 1.45, 1.9, 1.9]
    """
    lines = _whole(line, "line")
    return _settle(lines, lines - 100 * _whole(number, "number"), odds)


def _settle(line: Integers, distance: Integers, odds: ArrayLike) -> Floats:
    """Return per unit; `distance` is how many hundredths the number is on the winning side of the line."""
    u = np.clip(distance / 50.0, -1.0, 1.0)
    back = 1.0 + (decimal_odds(odds) - 1.0) * np.maximum(u, 0.0) + np.minimum(u, 0.0)
    return np.where(line % 25 == 0, back, np.nan)


class Shapes(NamedTuple):
    """Distributions of X without their location, as columns of one shape.

    Attributes
    ----------
    kind : ndarray of int
        Values of `KINDS`.
    scale : ndarray of float
        As described in the module docstring for each kind; a Poisson total has none.
    level : ndarray of float
        P(X = 0) of a Skellam or Normal margin; ``nan`` does not fix it.
    table : ndarray of int
        The row of `weights` for a Normal margin.
    weights : ndarray of float, (tables, numbers)
        Weight of each absolute margin 0, 1, 2 ...; larger margins have weight 1. Shorter tables are padded with
        ``nan``.
    """

    kind: Integers
    scale: Floats
    level: Floats
    table: Integers
    weights: Floats

    @classmethod
    def of(
        cls,
        kind: ArrayLike,
        scale: ArrayLike = 1.0,
        level: ArrayLike = np.nan,
        table: ArrayLike = 0,
        weights: ArrayLike = ((1.0,),),
    ) -> Self:
        """Check and broadcast the columns.

        Examples
        --------
        >>> Shapes.of(KINDS["skellam"], scale=[5.9, 6.1], level=0.0).level.tolist()
        [0.0, 0.0]
        """
        kinds = _whole(kind, "kind")
        tables = _whole(table, "table")
        scales = np.asarray(scale, dtype=np.float64)
        levels = np.asarray(level, dtype=np.float64)
        rows = np.array(weights, dtype=np.float64, order="C")
        if rows.ndim != 2 or rows.size == 0 or not np.all((rows >= 0.0) & (rows < np.inf)):
            raise ValueError(f"weights must be a non-empty table of finite numbers >= 0, got shape {rows.shape}")
        if not np.all((kinds >= POISSON) & (kinds <= MARGIN)):
            raise ValueError(f"kind must be one of {sorted(KINDS.values())}, got {np.unique(kinds).tolist()}")
        if not np.all((tables >= 0) & (tables < len(rows))):
            raise ValueError(f"table must be from 0 to {len(rows) - 1}, got {np.unique(tables).tolist()}")
        return cls._make((*np.broadcast_arrays(kinds, scales, levels, tables), rows))

    def flat(self, shape: tuple[int, ...]) -> "Shapes":
        """Flat columns of the shapes broadcast to `shape`."""
        return Shapes._make((*_flat(shape, *self[:4]), self.weights))


def fit(shapes: Shapes, line: ArrayLike, prob: ArrayLike) -> Floats:
    """Location at which a shape matches one price.

    Parameters
    ----------
    shapes : Shapes
        The shapes, which broadcast with `line` and `prob`.
    line : array_like of int
        The line of the price, in hundredths.
    prob : array_like of float
        Fair two-way probability of over at that line, that is, given no push.

    Returns
    -------
    ndarray of float
        Locations; ``nan`` if no location gives that probability.

    Examples
    --------
    >>> fit(Shapes.of(KINDS["poisson"]), [250, 275], 0.5).round(4).tolist()
    [2.6741, 2.9082]
    """
    lines = _whole(line, "line")
    probs = np.asarray(prob, dtype=np.float64)
    shape = np.broadcast_shapes(shapes.kind.shape, lines.shape, probs.shape)
    return fit_columns(shapes.flat(shape), *_flat(shape, lines, probs)).reshape(shape)


def fit_columns(shapes: Shapes, line: Integers, prob: Floats) -> Floats:
    """`fit` for callers that keep their own flat columns, each as long as the others; nothing is checked."""
    return _fit(shapes.kind, shapes.scale, shapes.level, shapes.table, shapes.weights, line, prob)


def tail(shapes: Shapes, location: ArrayLike, points: ArrayLike) -> Floats:
    """P(X > h) at half points.

    Parameters
    ----------
    shapes : Shapes
        The shapes, which broadcast with `location`.
    location : array_like of float
        Locations, as `fit` gives them.
    points : array_like of int
        Half points in hundredths; one axis more than `location`.

    Examples
    --------
    >>> tail(Shapes.of(KINDS["poisson"]), 2.5, [-50, 150, 250]).round(4).tolist()
    [1.0, 0.7127, 0.4562]
    """
    at = _whole(points, "points")
    locations = np.asarray(location, dtype=np.float64)
    shape = np.broadcast_shapes(shapes.kind.shape, locations.shape, at.shape[:-1])
    rows = _flat((*shape, at.shape[-1]), at)[0].reshape(-1, at.shape[-1])
    found = tail_columns(shapes.flat(shape), _flat(shape, locations)[0], rows)
    return found.reshape(*shape, at.shape[-1])


def tail_columns(shapes: Shapes, location: Floats, points: Integers) -> Floats:
    """`tail` for flat columns and rows of points, without checks."""
    points = np.ascontiguousarray(points)  # one layout is compiled
    return _tail(shapes.kind, location, shapes.scale, shapes.level, shapes.table, shapes.weights, points)


def mass(shapes: Shapes, location: ArrayLike, numbers: ArrayLike) -> Floats:
    """P(X = n) of whole numbers n, with one axis more than `location`; otherwise as `tail`.

    Examples
    --------
    >>> mass(Shapes.of(KINDS["poisson"]), 2.5, [2, 3]).round(4).tolist()
    [0.2565, 0.2138]
    """
    n = 100 * _whole(numbers, "numbers")
    return tail(shapes, location, n - 50) - tail(shapes, location, n + 50)


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
    >>> lines = [250], [350]
    >>> chance = tail(Shapes.of(KINDS["poisson"]), [2.9], window(*lines).points)
    >>> found = evaluate(*lines, 1.95, 1.95, chance)
    >>> [round(float(figure[0]), 4) for figure in found]
    [0.2237, 0.1931, -0.025, 0.95]
    """
    curve = np.asarray(tail, dtype=np.float64)
    if curve.shape[-1:] != (4,):
        raise ValueError(f"tail must end in an axis of 4 points, got shape {curve.shape}")
    low, high = _whole(over_line, "over_line"), _whole(under_line, "under_line")
    d1, d2 = decimal_odds(over_odds), decimal_odds(under_odds)
    shape = np.broadcast_shapes(low.shape, high.shape, d1.shape, d2.shape, curve.shape[:-1])
    columns = [*_flat(shape, low, high, d1, d2), _flat((*shape, 4), curve)[0].reshape(-1, 4)]
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
