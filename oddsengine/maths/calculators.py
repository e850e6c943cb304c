"""Calculators: hedges, free bets, boosts, parlays and middles. Odds d are decimal, after commission; s is a stake.

**Hedge.** With a bet of s at d and the other side at h, staking s d / h gives both results the same profit,

    profit = s d - s - s d / h

and staking s / (h - 1) loses nothing if the other side wins, with the remaining profit if the first bet wins.

**Free bet.** Its stake F is not returned with the winnings (or is, with `returned`). Hedged with H = F (d - 1) / h, or
F d / h, it earns F (d - 1) - H whatever happens; as a share of F, that is its conversion.

**Boost.** Winnings are raised by a share b of at most 3: d' = 1 + (d - 1) (1 + b).

**Parlay.** Odds multiply, and so do probabilities of independent legs. Legs of one game are not independent.

**Middle.** Stakes on two lines in proportion to the other's odds, s1 = T d2 / (d1 + d2), have the same profit on either
side of the middle. With a probability p of winning both, EV = p (s1 d1 + s2 d2) + (1 - p) s1 d1 - T.
"""

from collections.abc import Sequence
from math import isfinite, prod
from typing import NamedTuple

from oddsengine.maths.odds import probabilities

MOST_BOOST = 3.0  # a larger share is one in percent


class Hedge(NamedTuple):
    """Stakes on the other side, and their profit."""

    stake: float  # equal profit on both sides
    profit: float
    no_loss_stake: float  # no loss if the other side wins
    no_loss_profit: float  # profit if the first bet wins then


class FreeBet(NamedTuple):
    """The hedge of a free bet."""

    stake: float
    profit: float
    conversion: float  # profit as a share of the free bet


class Parlay(NamedTuple):
    """A parlay."""

    odds: float
    prob: float
    ev: float  # per unit staked


class MiddleStakes(NamedTuple):
    """Stakes on the two lines of a middle, and their profit."""

    stakes: tuple[float, float]
    both: float  # profit if both win
    one: float  # profit if one wins
    break_even: float  # probability of both at which EV is 0
    ev: float | None  # in money; None without a probability


def _checked(**odds: float) -> None:
    for name, value in odds.items():
        if not (value > 1.0 and isfinite(value)):
            raise ValueError(f"{name} must be decimal odds above 1, got {value}")


def _chance(prob: float, name: str = "prob") -> float:
    """Check a probability."""
    probabilities(prob, name)
    if not (0.0 <= prob <= 1.0):
        raise ValueError(f"{name} must be from 0 to 1, got {prob:g}")
    return prob


def hedge(stake: float, odds: float, against: float) -> Hedge:
    """Hedge an open bet.

    Examples
    --------
    With 100 at 3.00 and the other side at 2.00, staking 150 earns 50 whatever happens.

    >>> hedge(100, 3.0, 2.0)
    Hedge(stake=150.0, profit=50.0, no_loss_stake=100.0, no_loss_profit=100.0)
    """
    _checked(odds=odds, against=against)
    other, least = stake * odds / against, stake / (against - 1.0)
    return Hedge(other, stake * odds - stake - other, least, stake * (odds - 1.0) - least)


def free_bet(amount: float, odds: float, against: float, *, returned: bool = False) -> FreeBet:
    """Hedge a free bet; with `returned`, its stake is returned with the winnings.

    Examples
    --------
    >>> free_bet(100, 5.0, 1.25)
    FreeBet(stake=320.0, profit=80.0, conversion=0.8)
    """
    _checked(odds=odds, against=against)
    paid = amount * (odds if returned else odds - 1.0)
    other = paid / against
    profit = min(paid - other, other * (against - 1.0))
    share = odds if returned else odds - 1.0
    return FreeBet(other, profit, share * (against - 1.0) / against)


def boost(odds: float, share: float) -> float:
    """Return odds with winnings raised by a share, 0.5 for 50 %.

    Examples
    --------
    >>> boost(2.0, 0.5)
    2.5
    """
    _checked(odds=odds)
    if not 0.0 <= share <= MOST_BOOST:
        raise ValueError(f"share must be from 0 to {MOST_BOOST:g}, 0.5 for a boost of 50 %, got {share:g}")
    return 1.0 + (odds - 1.0) * (1.0 + share)


def parlay(odds: Sequence[float], probs: Sequence[float]) -> Parlay:
    """Combine independent legs.

    Examples
    --------
    >>> parlay([2.0, 2.5], [0.5, 0.5])
    Parlay(odds=5.0, prob=0.25, ev=0.25)
    """
    if len(odds) != len(probs) or not odds:
        raise ValueError(f"odds and probs must have the same length, got {len(odds)} and {len(probs)}")
    for value in odds:
        _checked(odds=value)
    price, p = prod(odds), prod(_chance(prob, "probs") for prob in probs)
    return Parlay(price, p, price * p - 1.0)


def middle_stakes(total: float, odds: float, other: float, prob: float | None = None) -> MiddleStakes:
    """Divide a stake between the two lines of a middle; `prob` is the probability that both win.

    Examples
    --------
    >>> middle_stakes(100, 2.0, 2.0, 0.1)
    MiddleStakes(stakes=(50.0, 50.0), both=100.0, one=0.0, break_even=0.0, ev=10.0)
    """
    _checked(odds=odds, other=other)
    if prob is not None:
        _chance(prob)
    first = total * other / (odds + other)
    second = total - first
    one, both = first * odds - total, first * odds + second * other - total
    needed = (odds + other) / (odds * other) - 1.0  # -one / (both - one)
    ev = None if prob is None else prob * both + (1.0 - prob) * one
    return MiddleStakes((first, second), both, one, max(0.0, needed), ev)
