"""Arbitrage: hold of a market, stakes with equal payouts on all outcomes, and the best whole stakes.

**Hold.** With the best price d_i of each outcome, S = sum of 1/d_i. The hold is S - 1. Below 0 it is an
arbitrage with a profit of 1/S - 1 per unit staked; slightly above 0 it is a low hold.

**Stakes.** The share (1/d_i)/S on outcome i pays 1/S of the total, whatever the outcome.

**Whole stakes.** Books accept stakes in steps, and odd amounts attract attention. Which stakes, each a
whole number s_i of steps with a sum of at most the total, have the largest profit in the worst case? ::

    profit = step (min over i of d_i s_i  -  sum of s_i)

The solution is exact, not the rounded equal-payout stakes. In units of a step, let t be the least payout of
the best stakes. Lowering each s_i to ceil(t/d_i), the fewest steps that pay t, keeps the payout and can only
save money. So only stakes of that form need to be considered, and only those where t is a payout d_i k of
some outcome, because stakes do not change between two such payouts. Every s_i increases with t, hence so does
their sum, and t is bounded by the total. That leaves fewer values of t than steps.

Each outcome can have its own step and limit: the payouts are then those of its own steps, up to the least payout that
the limits allow. A limit on several outcomes together, as when one book has two of them, is a smaller total for these.

Payouts are tried in descending order. Stakes that pay t cost at least t S, so the profit is at most t (1 - S),
and the search ends when that is below the best so far: after about n S/(1 - S) values, whatever the total.

Staking nothing is allowed, so the profit is never negative. Without an arbitrage, or with one too small for
the steps, all stakes are 0.

Reference: N. Vlastakis, G. Dotsis and R. N. Markellos, "How efficient is the European football betting
market? Evidence from arbitrage and trading strategies", Journal of Forecasting 28 (2009),
https://doi.org/10.1002/for.1085. The search over breakpoints of ceilings is elementary.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from oddsengine.columns import Floats
from oddsengine.maths.odds import decimal_odds

_MOST_STEPS = 10_000_000
_SLACK = 1e-9  # relative rounding error of payouts meant to be equal
_BLOCK = 4096  # values of t evaluated together


class WholeStakes(NamedTuple):
    """Stakes in whole steps and their profit in the worst case, both in money."""

    stakes: Floats
    profit: float


def _prices(odds: ArrayLike) -> Floats:
    """Convert to odds with an axis of outcomes; nan for invalid prices."""
    d = decimal_odds(odds)
    if d.ndim == 0 or d.shape[-1] == 0:
        raise ValueError(f"odds must have an axis of outcomes with at least one, got shape {d.shape}")
    return np.where((d > 1.0) & (d < np.inf), d, np.nan)


def hold(odds: ArrayLike) -> Floats:
    """Return the hold of markets: the sum of implied probabilities minus 1.

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


def arbitrage_stakes(odds: ArrayLike, total: ArrayLike, limits: ArrayLike = np.inf) -> Floats:
    """Return stakes with equal payouts, the largest within limits.

    Parameters
    ----------
    odds : array_like of float
        Decimal odds; the outcomes of a market are along the last axis.
    total : array_like of float
        Maximum sum of stakes, 0 or more: one number, or one per market. Without limits it is reached.
    limits : array_like of float
        Maximum stake: one number, or one per outcome.

    Returns
    -------
    ndarray of float
        Money on each outcome; ``nan`` for a market where a price is missing or not above 1.

    Examples
    --------
    >>> arbitrage_stakes([2.10, 2.05], 100.0).round(2).tolist()
    [49.4, 50.6]
    >>> arbitrage_stakes([2.10, 2.05], 100.0, limits=[20.0, 500.0]).round(2).tolist()
    [20.0, 20.49]
    """
    implied = 1.0 / _prices(odds)
    shares = implied / implied.sum(axis=-1, keepdims=True)
    money = np.asarray(total, dtype=np.float64)
    if (money < 0.0).any():
        raise ValueError(f"total must be 0 or more, got {money.min():g}")
    most = np.asarray(limits, dtype=np.float64)
    if not (most >= 0.0).all():
        raise ValueError(f"limits must be 0 or more, got {most.tolist()}")
    stakes = np.asarray(money[..., None] * shares)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.where(stakes > most, most / stakes, 1.0).min(axis=-1, keepdims=True)
    return np.asarray(stakes * part)


def round_stakes(
    odds: ArrayLike, total: float, step: ArrayLike, limits: ArrayLike = np.inf, least: ArrayLike = 0.0
) -> WholeStakes:
    """Return stakes in whole steps with the largest profit in the worst case.

    Parameters
    ----------
    odds : array_like of float
        Decimal odds of the outcomes of one market, after commission.
    total : float
        Maximum sum of stakes.
    step : array_like of float
        Step of stakes: one number, or one per outcome. The total is at most ten million steps.
    limits : array_like of float
        Maximum stake: one number, or one per outcome.
    least : array_like of float
        Smallest stake that is accepted: one number, or one per outcome.

    Returns
    -------
    WholeStakes
        Stakes and their profit in the worst case; both are 0 if no stakes are profitable.

    Examples
    --------
    >>> round_stakes([2.10, 2.05], total=100.0, step=5.0)
    WholeStakes(stakes=array([50., 50.]), profit=2.5)
    >>> round_stakes([1.91, 1.91], total=100.0, step=5.0)
    WholeStakes(stakes=array([0., 0.]), profit=0.0)
    >>> round_stakes([2.10, 2.00], total=1000.0, step=[1.0, 5.0], limits=[100.0, 500.0])
    WholeStakes(stakes=array([100., 105.]), profit=5.0)
    >>> round_stakes([2.10, 2.05], total=100.0, step=1.0, limits=[3.0, 100.0], least=[0.0, 4.0])
    WholeStakes(stakes=array([0., 0.]), profit=0.0)
    """
    return joint_stakes(odds, total, step, limits, np.zeros((0, 1)), np.zeros(0), least)


def joint_stakes(
    odds: ArrayLike, total: float, step: ArrayLike, limits: ArrayLike, members: ArrayLike, ends: ArrayLike,
    least: ArrayLike = 0.0,
) -> WholeStakes:  # fmt: skip
    """`round_stakes` with joint limits: `ends` are the limits, `members` (limits, outcomes) what each applies to.

    Examples
    --------
    >>> joint_stakes([4.0, 3.5, 3.6], 1000.0, 5.0, np.inf, [[True, True, False]], [10.0])
    WholeStakes(stakes=array([5., 5., 5.]), profit=2.5)
    """
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
    low_ends = np.broadcast_to(np.asarray(least, dtype=np.float64), d.shape)
    if not ((low_ends >= 0.0) & np.isfinite(low_ends)).all():
        raise ValueError(f"least must be finite and 0 or more, got {np.asarray(least).tolist()}")
    # In units of the smallest step, so that integers stay exact.
    smallest = float(unit.min())
    fewest = np.ceil(low_ends / unit * (1.0 - _SLACK))  # steps
    unit, most, spent = unit / smallest, most / smallest, total / smallest * (1.0 + _SLACK)
    ends = np.asarray(ends, np.float64) / smallest * (1.0 + _SLACK)
    members = np.asarray(members, np.float64)
    top_steps = np.floor(np.minimum(most, spent) / unit * (1.0 + _SLACK))
    margin = 1.0 - float((1.0 / d).sum())
    best = np.zeros(len(d))
    profit = 0.0
    # The payout that the total allows, and that each outcome's limit allows.
    top = min(spent / float((1.0 / d).sum()), float((top_steps * unit * d).min()))
    for chosen, end in zip(members, ends, strict=True):
        top = min(top, end / float((chosen / d).sum()))
    while top > 0.0 and top * margin > profit:
        # The block of payouts below `top`, with as many steps for each outcome as the block has room for.
        low = max(0.0, top - _BLOCK / float((1.0 / (d * unit)).sum()))
        payouts = np.concatenate([pay * np.arange(np.floor(low / pay), top / pay + 1.0) for pay in d * unit])
        payouts = payouts[(payouts > 0.0) & (payouts <= top * (1.0 + _SLACK))]
        steps = np.maximum(np.ceil(payouts[:, None] / (d * unit) * (1.0 - _SLACK)), fewest)
        stakes = steps * unit
        fits = (stakes.sum(axis=-1) <= spent) & (steps <= top_steps).all(axis=-1)
        for chosen, end in zip(members, ends, strict=True):
            fits &= stakes @ chosen <= end
        stakes = stakes[fits]
        left = (stakes * d).min(axis=-1) - stakes.sum(axis=-1)
        if left.size and left.max() > profit:
            profit = float(left.max())
            best = stakes[left.argmax()]
        top = low
    # Via text, so that multiples of 0.1 are 0.3 and not 0.30000000000000004.
    return WholeStakes(np.array([float(f"{x:.12g}") for x in best * smallest]), float(f"{profit * smallest:.12g}"))
