"""Kelly stakes: the fraction of the bankroll that maximises its growth.

**One bet.** With probability p of winning at decimal odds d, a stake of the fraction f grows the bankroll by
p log(1 + f (d - 1)) + (1 - p) log(1 - f) on average. The best fraction is ::

    f = (p d - 1) / (d - 1)        0 where that is negative

**Mutually exclusive outcomes of one event**, of which exactly one happens, or none of those listed. With
stakes f_i the growth is ::

    sum over i of p_i log(1 - F + f_i d_i) + (1 - P) log(1 - F)        F = sum f_i, P = sum p_i

The answer is exact, by Smoczynski and Tomkins. Take the outcomes one by one in falling order of p_i d_i, and
follow the reserve rate ::

    R = (1 - sum of p_i taken) / (1 - sum of 1/d_i taken)        1 before any is taken

An outcome lowers R exactly when its p_i d_i is above it, so R falls first and rises after. Stop at its
smallest value: f_i = p_i - R/d_i for the outcomes taken, 0 for the others. An outcome with p_i d_i below 1
may be taken: it insures the others.

**Sums.** If P is below 1, the rest is the probability of an unlisted outcome that loses every stake; prices with
sum 1/d < 1 are then not a sure bet, and the formula applies unchanged. P = 1 means the list is complete. If
sum 1/d < 1 then, no stake is ever lost: R = 0, f_i = p_i, and the whole bankroll is staked, however small the
margin. If probabilities are uncertain, use a fraction. P above 1 has no solution; within 1e-9 it counts as 1.

**A fraction** of the stakes, such as one half, trades growth for smaller swings. It multiplies the full
stakes, which for exclusive outcomes is common practice, but not an optimum.

Results are ``nan`` for a probability outside [0, 1], odds of 1 or less, and values that are not finite;
probabilities in percent and fractions above 1 raise `ValueError`. For exclusive outcomes one such entry makes the
whole event nan; leave out outcomes that cannot be bet, and their probability belongs to the rest.

References: J. L. Kelly, "A new interpretation of information rate", Bell System Technical Journal 35 (1956),
https://doi.org/10.1002/j.1538-7305.1956.tb03809.x. P. Smoczynski and D. Tomkins, "An explicit solution to
the problem of optimizing the allocations of a bettor's wealth when wagering on horse races", Mathematical
Scientist 35 (2010).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddsengine.columns import Floats
from oddsengine.maths.odds import decimal_odds, probabilities

_ROUNDING = 1e-9  # tolerance of probabilities that sum to 1
_SURE = 1e-12  # a smaller margin is rounding, not a sure bet


def _fraction(fraction: ArrayLike) -> Floats:
    """Check the fraction of full Kelly."""
    part = np.asarray(fraction, dtype=np.float64)
    if not np.all((part > 0.0) & (part <= 1.0)):
        raise ValueError(f"fraction must be above 0 and at most 1, got {part.tolist()}")
    return part


def _usable(probs: Floats, odds: Floats) -> NDArray[np.bool_]:
    """Flag usable pairs of probabilities and odds."""
    return (probs >= 0.0) & (probs <= 1.0) & (odds > 1.0) & (odds < np.inf)


def kelly(prob: ArrayLike, odds: ArrayLike, fraction: ArrayLike = 1.0) -> Floats:
    """Return the Kelly stake of single bets as a fraction of the bankroll.

    Parameters
    ----------
    prob : array_like of float
        Probability of winning.
    odds : array_like of float
        Decimal odds; the three arguments broadcast.
    fraction : array_like of float
        Fraction of the full stake, above 0 and at most 1.

    Returns
    -------
    ndarray of float
        Stakes, 0 or more; ``nan`` without a solution.

    Examples
    --------
    >>> kelly([0.55, 0.50, 0.45], 2.0).round(4).tolist()
    [0.1, 0.0, 0.0]
    >>> kelly(0.55, 2.0, fraction=0.25).round(4)
    np.float64(0.025)
    """
    part = _fraction(fraction)
    p, d = np.broadcast_arrays(probabilities(prob), decimal_odds(odds))
    valid = _usable(p, d)
    safe = np.where(valid, d, 2.0)
    full = np.maximum(0.0, (np.where(valid, p, np.nan) * safe - 1.0) / (safe - 1.0))
    return np.asarray(part * full)


def shrunk_kelly(prob: Floats, odds: Floats, se: Floats) -> Floats:
    """Return the Kelly stake for an uncertain probability, as a fraction of the bankroll.

    An edge e with standard error s is reduced to e / (1 + s^2 / e^2), so that probable noise has little weight.

    Parameters
    ----------
    prob : ndarray of float
        Probability of winning.
    odds : ndarray of float
        Decimal odds.
    se : ndarray of float
        Standard error of the log-odds of `prob`.

    Examples
    --------
    >>> shrunk_kelly(np.array([0.55, 0.55]), np.array([2.0, 2.0]), np.array([0.0, 0.2])).round(4).tolist()
    [0.1, 0.0505]
    """
    edge = prob * odds - 1.0
    spread = prob * (1.0 - prob) * se * odds
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(edge > 0.0, edge * edge / (edge * edge + spread * spread), 0.0)
    return np.asarray(share * np.maximum(edge, 0.0) / (odds - 1.0))


def kelly_exclusive(probs: ArrayLike, odds: ArrayLike, fraction: ArrayLike = 1.0) -> Floats:
    """Return Kelly stakes on mutually exclusive outcomes, as fractions of the bankroll.

    Parameters
    ----------
    probs : array_like of float
        Probabilities; the outcomes of an event are along the last axis, and sum to at most 1.
    odds : array_like of float
        Decimal odds of the same outcomes.
    fraction : array_like of float
        Fraction of the full stakes, above 0 and at most 1: one number, or one per event.

    Returns
    -------
    ndarray of float
        Stakes, 0 or more; ``nan`` for all outcomes of an event without a solution.

    Examples
    --------
    >>> kelly_exclusive([0.5, 0.3, 0.2], [2.2, 3.6, 3.0]).round(4).tolist()
    [0.1604, 0.0925, 0.0]
    >>> kelly_exclusive([0.5, 0.5], [2.1, 2.1]).tolist()
    [0.5, 0.5]
    """
    part = _fraction(fraction)
    p, d = probabilities(probs, "probs"), decimal_odds(odds)
    if p.ndim == 0 or d.ndim == 0 or p.shape[-1] != d.shape[-1]:
        raise ValueError(f"probs and odds must have one number per outcome, got shapes {p.shape} and {d.shape}")
    p, d = np.broadcast_arrays(p, d)
    valid = np.all(_usable(p, d), axis=-1) & (p.sum(axis=-1) <= 1.0 + _ROUNDING)
    p = np.where(valid[..., None], p, 0.0)
    d = np.where(valid[..., None], d, 2.0)

    order = np.argsort(-p * d, axis=-1, kind="stable")
    unlisted = np.maximum(0.0, 1.0 - np.cumsum(np.take_along_axis(p, order, axis=-1), axis=-1))
    unpriced = 1.0 - np.cumsum(np.take_along_axis(1.0 / d, order, axis=-1), axis=-1)
    rate = np.divide(unlisted, unpriced, out=np.full_like(p, np.inf), where=unpriced > _SURE)
    stakes = np.maximum(0.0, p - rate.min(axis=-1, keepdims=True, initial=1.0) / d)
    return np.asarray(part[..., None] * np.where(valid[..., None], stakes, np.nan))
