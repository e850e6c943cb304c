"""Value: the edge of a price over a fair probability, and its confidence score.

**Edge.** A unit staked at decimal odds d on an outcome of probability p earns p d - 1 on average. If a push is
possible, p is the probability given no push, and a stake earns the edge times 1 - P(push).

**Confidence.** 100 W B F L E, five factors from 0 to 1, one for each source of error:

    W = 1 - (width - 0.02) / 0.08, clipped to [0.2, 1]   margin of the reference
    B = exp(-gap / 0.15)                                 disagreement of other books, in log-odds
    F = exp(-age / 300), live exp(-age / 15)             age of the price in seconds
    L = sqrt(min(1, p / 0.10))                           long shots, whose p is uncertain
    E = 1 - (edge - 0.05) / 0.25, clipped to [0, 1]      implausibly large edges

The gap is the distance of the reference's log-odds from those of the median of the other books' fair
probabilities. With fewer than two other books there is no gap (``nan``), and B is 0.7.

The constants were chosen from a few recorded boards. Results are ``nan`` for invalid input.
"""

import numpy as np
from numpy.typing import ArrayLike

from oddsengine.columns import Floats
from oddsengine.maths.odds import decimal_odds, probabilities

_ALONE = 0.7  # B with fewer than two other books


def edge(prob: ArrayLike, odds: ArrayLike) -> Floats:
    """Return the mean profit per unit staked.

    Parameters
    ----------
    prob : array_like of float
        Fair probability of winning, given no push.
    odds : array_like of float
        Decimal odds.

    Returns
    -------
    ndarray of float
        Fractions; ``nan`` for a probability outside [0, 1] or odds of 1 or less. Percentages raise `ValueError`.

    Examples
    --------
    >>> edge([0.52, 0.48], 2.0).round(4).tolist()
    [0.04, -0.04]
    """
    p, d = np.broadcast_arrays(probabilities(prob), decimal_odds(odds))
    valid = (p >= 0.0) & (p <= 1.0) & (d > 1.0) & (d < np.inf)
    return np.asarray(np.where(valid, p, np.nan) * d - 1.0)


def confidence(
    width: ArrayLike, gap: ArrayLike, age: ArrayLike, live: ArrayLike, prob: ArrayLike, edge: ArrayLike
) -> Floats:
    """Return the confidence score of an edge, from 0 to 100.

    Parameters
    ----------
    width : array_like of float
        Margin of the reference's market: the sum of its implied probabilities, minus 1.
    gap : array_like of float
        Distance from the median of the other books, in log-odds; ``nan`` with fewer than two of them.
    age : array_like of float
        Seconds since the price was seen.
    live : array_like of bool
        Whether the game is live.
    prob : array_like of float
        Fair probability.
    edge : array_like of float
        Edge as a fraction.

    Returns
    -------
    ndarray of float
        Scores; ``nan`` if anything except the gap is unknown.

    Examples
    --------
    >>> confidence(0.02, 0.0, 0.0, False, 0.5, 0.03).tolist()
    100.0
    >>> confidence([0.06, 0.02], np.nan, 0.0, False, [0.5, 0.025], [0.03, 0.175]).round(2).tolist()
    [35.0, 17.5]
    """
    width, gap, age, prob, edge = (np.asarray(x, dtype=np.float64) for x in (width, gap, age, prob, edge))
    narrow = np.clip(1.0 - (width - 0.02) / 0.08, 0.2, 1.0)
    shared = np.where(np.isnan(gap), _ALONE, np.exp(-np.abs(gap) / 0.15))
    fresh = np.exp(-np.maximum(age, 0.0) / np.where(np.asarray(live, dtype=np.bool_), 15.0, 300.0))
    likely = np.sqrt(np.clip(prob / 0.10, 0.0, 1.0))
    sober = np.clip(1.0 - (edge - 0.05) / 0.25, 0.0, 1.0)
    return np.asarray(100.0 * narrow * shared * fresh * likely * sober)
