"""The location of a distribution that matches one fair price.

A price at a line gives the two-way chance of over, which ignores pushes: won / (won + lost), where the shares of the
stake that are won and lost follow from the tail at the half points around the line (`oddsengine.maths.middle`). Each
shape (`oddsengine.maths.distributions`) grows with its location, so that one location gives that chance.

It is found by secant steps in the log-odds of the chance from a guess by the Normal approximation, within a bracket
that is bisected where a step leaves it. A probability that no location can give has no answer: ``nan``. So has a line
that is not a multiple of a quarter.

Arguments of the kernels:

- `shape`, `scale`, `level`, `weights`, `table`: as in `oddsengine.maths.distributions`
- `prob`: the chance of over, fair and with pushes left out
- `line`: a line in hundredths
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from oddsengine._jit import allocating, kernel
from oddsengine.columns import Floats
from oddsengine.maths.distributions import (
    DENSITY,
    MARGIN,
    MEAN_MOST,
    NEGATIVE_BINOMIAL,
    POISSON,
    SCALES_MOST,
    SKELLAM,
    Integers,
    Shapes,
    flat,
    is_possible,
    tail_mass,
    whole,
)

_TOL = 1e-9  # of the fit, in log-odds of the anchor's probability; one more secant step follows
_STEPS = 80  # of the fit; from _SECANT on it only bisects
_SECANT = 16
_QUARTER, _HALF, _THREE_QUARTERS = 25, 50, 75  # fractions of a line, hundredths


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
        high = MEAN_MOST
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
        low = centre - SCALES_MOST * scale
        high = centre + SCALES_MOST * scale
        spread = scale
        guess = line * 0.01 + z * spread
    if not low < guess < high:
        guess = 0.5 * (low + high)

    target = math.log(prob / (1.0 - prob))
    slope = DENSITY * math.exp(-0.5 * z * z) / (prob * (1.0 - prob) * spread)
    x = guess
    previous_x = 0.0
    previous_miss = 0.0
    for step in range(_STEPS):
        tail, mass = tail_mass(shape, x, scale, level, weights, k)
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
        if is_possible(shape[i], scale[i]):
            out[i] = _fit_one(shape[i], scale[i], level[i], weights[table[i]], line[i], prob[i])
    return out


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
    >>> from oddsengine.maths.distributions import KINDS
    >>> fit(Shapes.of(KINDS["poisson"]), [250, 275], 0.5).round(4).tolist()
    [2.6741, 2.9082]
    """
    lines = whole(line, "line")
    probs = np.asarray(prob, dtype=np.float64)
    shape = np.broadcast_shapes(shapes.kind.shape, lines.shape, probs.shape)
    return fit_columns(shapes.flat(shape), *flat(shape, lines, probs)).reshape(shape)


def fit_columns(shapes: Shapes, line: Integers, prob: Floats) -> Floats:
    """`fit` for callers that keep their own flat columns, each as long as the others; nothing is checked."""
    return _fit(shapes.kind, shapes.scale, shapes.level, shapes.table, shapes.weights, line, prob)
