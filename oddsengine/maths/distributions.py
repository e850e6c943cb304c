"""Distributions of a whole number: the home team's margin, a total, a player's count.

**Shapes.** Each has one location, and grows with it in the usual stochastic order, so that a fit to one price
(`oddsengine.maths.shape_fitting`) has one answer:

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

**Tails.** G(h) = P(X > h) is given at half points. A Poisson or negative binomial mean lies in (0, 700), a Skellam
difference within plus and minus its scale, that of a Normal margin within 30 scales of 0; elsewhere there is no answer:
``nan``. Tails lose relative precision below about 1e-10.

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
- `points` (rows by n): half points, hundredths
- `k`, `x`: the number, the argument
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddsengine._jit import allocating, kernel
from oddsengine.columns import Floats

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

MEAN_MOST = 700.0  # exp(-mean) stays a normal float
SCALES_MOST = 30.0  # the farthest location of a Normal margin, in scales
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
_NOTHING = 1e-18  # a term of a sum that no longer matters
_HALF = 50  # fraction of a line, hundredths
_ROOT2 = math.sqrt(2.0)


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
    zero = DENSITY / scale * math.exp(-location * location * precision)
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
def tail_mass(shape: int, location: float, scale: float, level: float, weights: Floats, k: int) -> tuple[float, float]:
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
def is_possible(shape: int, scale: float) -> bool:
    """Whether the scale is valid for the shape; a Poisson total has none."""
    if shape == POISSON:
        return True
    if shape == NEGATIVE_BINOMIAL:
        return scale >= 1.0
    return scale > 0.0


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
        high = MEAN_MOST
        if shape[i] == SKELLAM:
            low = -scale[i]
            high = scale[i]
        elif shape[i] == NORMAL:
            low = -math.inf
            high = math.inf
        elif shape[i] == MARGIN:
            low = -SCALES_MOST * scale[i]
            high = SCALES_MOST * scale[i]
        has_answer = is_possible(shape[i], scale[i]) and low <= location[i] <= high
        for j in range(points.shape[1]):
            out[i, j] = math.nan
            if j > 0 and points[i, j] == points[i, j - 1]:
                out[i, j] = out[i, j - 1]
            elif has_answer and points[i, j] % 100 == _HALF:
                out[i, j] = tail_mass(
                    shape[i], location[i], scale[i], level[i], weights[table[i]], points[i, j] // 100
                )[0]
    return out


def whole(values: ArrayLike, name: str) -> Integers:
    """Check for integers; converting a float would silently drop its fraction."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers (lines count hundredths: 2.5 is 250), got {array.dtype}")
    return array.astype(np.int64)


def flat(shape: tuple[int, ...], *columns: NDArray[Any]) -> list[NDArray[Any]]:
    """Broadcast columns to `shape`, flat and in new memory, so that kernels are compiled for one layout only."""
    return [np.broadcast_to(column, shape).flatten() for column in columns]


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
        kinds = whole(kind, "kind")
        tables = whole(table, "table")
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
        return Shapes._make((*flat(shape, *self[:4]), self.weights))


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
    at = whole(points, "points")
    locations = np.asarray(location, dtype=np.float64)
    shape = np.broadcast_shapes(shapes.kind.shape, locations.shape, at.shape[:-1])
    rows = flat((*shape, at.shape[-1]), at)[0].reshape(-1, at.shape[-1])
    found = tail_columns(shapes.flat(shape), flat(shape, locations)[0], rows)
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
    n = 100 * whole(numbers, "numbers")
    return tail(shapes, location, n - 50) - tail(shapes, location, n + 50)
