"""Arbitrage: stakes on every outcome of a market that pay the same whatever happens.

**Hold.** With the best price d_i of each outcome, S = sum of 1/d_i. The hold is S - 1: what the market
keeps. Below 0 it is an arbitrage, and the profit per unit staked is 1/S - 1; a little above 0 is a low hold,
the cheap way to turn money over.

**Stakes.** The share (1/d_i)/S on outcome i pays 1/S of the total, the same for each.

**Whole stakes.** Books take stakes in steps, and stakes that stand out are looked at. Which stakes, each a
whole number s_i of steps and their sum at most the total, leave the most in the worst case? The profit is
the least payout less what was staked ::

    profit = step (min over i of d_i s_i  -  sum of s_i)

and the answer here is exact, not the rounding of the equal-payout stakes. In units of a step, let the least
payout of the best stakes be t. Lowering each s_i to ceil(t/d_i), the fewest steps that still pay t, keeps
the payout and can only save money. So only stakes of that form matter, and among those only where t is a
payout d_i k of some outcome, for between two such payouts the stakes do not change. As every s_i only grows
with t, the sum of steps does too, and t ends where it passes the total. That leaves fewer values of t than
steps.

Each outcome may have a step and a limit of its own: then the payouts looked at are those of its own steps, up to the
least payout that the limits allow. A limit on several outcomes together, as where one book has two of them, is a
smaller total for those: their stakes grow with t, too.

They are walked from the top. Stakes that pay t cost at least t S, so the profit is at most t (1 - S), and
the walk ends where that is below the best found: after about n S/(1 - S) values, however large the total.

Staking nothing is one of the choices. So the profit is never negative, and a market that is no arbitrage
gets stakes of 0; so has an arbitrage too thin for the steps.

Reference: N. Vlastakis, G. Dotsis and R. N. Markellos, "How efficient is the European football betting
market? Evidence from arbitrage and trading strategies", Journal of Forecasting 28 (2009),
https://doi.org/10.1002/for.1085. The search over breakpoints of ceilings is elementary.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddsengine.odds import decimal_odds

Floats = NDArray[np.float64]

_MOST_STEPS = 10_000_000
_SLACK = 1e-9  # relative; what floats may lose in a payout that is meant to be equal
_BLOCK = 4096  # values of t looked at together


class WholeStakes(NamedTuple):
    """Stakes in whole steps, and the profit they leave in the worst case, both in units of money."""

    stakes: Floats
    profit: float


def _prices(odds: ArrayLike) -> Floats:
    """Decimal odds with an axis of outcomes; nan where they are no price."""
    d = decimal_odds(odds)
    if d.ndim == 0 or d.shape[-1] == 0:
        raise ValueError(f"odds must have an axis of outcomes with at least one, got shape {d.shape}")
    return np.where((d > 1.0) & (d < np.inf), d, np.nan)


def hold(odds: ArrayLike) -> Floats:
    """Sum of implied probabilities minus 1.

    Parameters
    ----------
    odds : array_like of float
        Decimal odds; the outcomes of a market are along the last axis.

    Returns
    -------
    ndarray of float
        Fractions, negative for an arbitrage; ``nan`` where a price is missing or not above 1.

    Examples
    --------
    >>> hold([[2.10, 2.05], [1.91, 1.91]]).round(4).tolist()
    [-0.036, 0.0471]
    """
    return np.asarray((1.0 / _prices(odds)).sum(axis=-1) - 1.0)


def arbitrage_stakes(odds: ArrayLike, total: ArrayLike) -> Floats:
    """Stakes that pay the same whichever outcome happens.

    Parameters
    ----------
    odds : array_like of float
        Decimal odds; the outcomes of a market are along the last axis.
    total : array_like of float
        Money to be staked on a market: one number, or one for each market.

    Returns
    -------
    ndarray of float
        Money on each outcome; ``nan`` for a market where a price is missing or not above 1.

    Examples
    --------
    >>> arbitrage_stakes([2.10, 2.05], 100.0).round(2).tolist()
    [49.4, 50.6]
    """
    implied = 1.0 / _prices(odds)
    shares = implied / implied.sum(axis=-1, keepdims=True)
    return np.asarray(np.asarray(total, dtype=np.float64)[..., None] * shares)


def round_stakes(odds: ArrayLike, total: float, step: ArrayLike, limits: ArrayLike = np.inf) -> WholeStakes:
    """Stakes of whole steps with the largest profit in the worst case.

    Parameters
    ----------
    odds : array_like of float
        Decimal odds of the outcomes of one market, after commission.
    total : float
        Money that the stakes may not exceed in sum.
    step : array_like of float
        The unit of a stake, in the same money: one, or one for each outcome; the total is at most ten million of them.
    limits : array_like of float
        Most money on an outcome: one number, or one for each.

    Returns
    -------
    WholeStakes
        Stakes and the profit they leave in the worst case; both 0 where nothing is the best choice.

    Examples
    --------
    >>> round_stakes([2.10, 2.05], total=100.0, step=5.0)
    WholeStakes(stakes=array([50., 50.]), profit=2.5)
    >>> round_stakes([1.91, 1.91], total=100.0, step=5.0)
    WholeStakes(stakes=array([0., 0.]), profit=0.0)
    >>> round_stakes([2.10, 2.00], total=1000.0, step=[1.0, 5.0], limits=[100.0, 500.0])
    WholeStakes(stakes=array([100., 105.]), profit=5.0)
    """
    return _whole_stakes(odds, total, step, limits, np.zeros((0, 1)), np.zeros(0))


def joint_stakes(
    odds: ArrayLike, total: float, step: ArrayLike, limits: ArrayLike, members: ArrayLike, ends: ArrayLike
) -> WholeStakes:
    """`round_stakes` with limits on several outcomes together: `ends` of each, `members` are (limits, outcomes).

    Examples
    --------
    >>> joint_stakes([4.0, 3.5, 3.6], 1000.0, 5.0, np.inf, [[True, True, False]], [10.0])
    WholeStakes(stakes=array([5., 5., 5.]), profit=2.5)
    """
    return _whole_stakes(odds, total, step, limits, np.asarray(members, np.float64), np.asarray(ends, np.float64))


def _whole_stakes(
    odds: ArrayLike, total: float, step: ArrayLike, limits: ArrayLike, members: Floats, ends: Floats
) -> WholeStakes:
    d = _prices(odds)
    if d.ndim != 1 or np.isnan(d).any():
        raise ValueError(f"odds must be a list of finite numbers above 1, got {np.asarray(odds).tolist()}")
    unit = np.array(np.broadcast_to(np.asarray(step, dtype=np.float64), d.shape))
    if not ((unit > 0.0) & np.isfinite(unit)).all():
        raise ValueError(f"step must be finite and above 0, got {np.asarray(step).tolist()}")
    if not (total >= 0.0 and total / unit.min() <= _MOST_STEPS):
        raise ValueError(f"total must be from 0 to {_MOST_STEPS} steps of {unit.min()}, got {total}")
    most = np.broadcast_to(np.asarray(limits, dtype=np.float64), d.shape)
    if not (most >= 0.0).all():
        raise ValueError(f"limits must be 0 or more, got {np.asarray(limits).tolist()}")
    # In units of the smallest step, so that whole numbers stay whole.
    smallest = float(unit.min())
    unit, most, spent = unit / smallest, most / smallest, total / smallest * (1.0 + _SLACK)
    ends = ends / smallest * (1.0 + _SLACK)
    top_steps = np.floor(np.minimum(most, spent) / unit * (1.0 + _SLACK))
    margin = 1.0 - float((1.0 / d).sum())
    best = np.zeros(len(d))
    profit = 0.0
    # What the total can promise, and what each outcome's limit can.
    top = min(spent / float((1.0 / d).sum()), float((top_steps * unit * d).min()))
    for some, end in zip(members, ends, strict=True):
        top = min(top, end / float((some / d).sum()))
    while top > 0.0 and top * margin > profit:
        # The block of payouts below top: as many steps back on each outcome as the block holds.
        low = max(0.0, top - _BLOCK / float((1.0 / (d * unit)).sum()))
        payouts = np.concatenate([pay * np.arange(np.floor(low / pay), top / pay + 1.0) for pay in d * unit])
        payouts = payouts[(payouts > 0.0) & (payouts <= top * (1.0 + _SLACK))]
        steps = np.ceil(payouts[:, None] / (d * unit) * (1.0 - _SLACK))
        stakes = steps * unit
        fits = (stakes.sum(axis=-1) <= spent) & (steps <= top_steps).all(axis=-1)
        for some, end in zip(members, ends, strict=True):
            fits &= stakes @ some <= end
        stakes = stakes[fits]
        left = (stakes * d).min(axis=-1) - stakes.sum(axis=-1)
        if left.size and left.max() > profit:
            profit = float(left.max())
            best = stakes[left.argmax()]
        top = low
    # Through text, money in steps of 0.1 is 0.3 and not 0.30000000000000004.
    return WholeStakes(np.array([float(f"{x:.12g}") for x in best * smallest]), float(f"{profit * smallest:.12g}"))
