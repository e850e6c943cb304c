"""Calculators: what a bettor works out beside a bet. Odds d are decimal, after commission; s is a stake.

**Hedge.** A bet of s at d stands, the other side is offered at h. Laying s d / h makes both results pay alike,

    profit = s d - s - s d / h

and s / (h - 1) loses nothing if the other side wins, leaving the rest to the first bet.

**Free bet.** Its stake F is not paid back with the winnings (or is, `returned`). Hedged with H = F (d - 1) / h, or
F d / h, it keeps F (d - 1) - H whatever happens; the part of F kept is its conversion.

**Boost.** Winnings are raised by a share b: d' = 1 + (d - 1) (1 + b).

**Parlay.** Odds multiply; if legs are independent, so do probabilities. Legs of one game are not independent.

**Middle.** Stakes on two lines in proportion to the other's odds, s1 = T d2 / (d1 + d2), earn the same on either
side of the middle; with a chance p to win both, EV = p (s1 d1 + s2 d2) + (1 - p) s1 d1 - T.
"""

from collections.abc import Sequence
from math import inf, isfinite, prod
from typing import NamedTuple


class Hedge(NamedTuple):
    """Stakes on the other side, and what is earned."""

    stake: float  # both results pay alike
    profit: float
    no_loss_stake: float  # nothing is lost if the other side wins
    no_loss_profit: float  # if the first bet wins then


class FreeBet(NamedTuple):
    """The hedge of a free bet."""

    stake: float
    profit: float
    conversion: float  # share of the free bet that is kept


class Parlay(NamedTuple):
    """Legs as one bet."""

    odds: float
    prob: float
    ev: float  # per unit staked


class Middle(NamedTuple):
    """Stakes on the two lines of a middle, and what is earned."""

    stakes: tuple[float, float]
    both: float  # if both win
    one: float  # if one does
    break_even: float  # chance of both at which nothing is earned on average
    ev: float  # in money


def _checked(**odds: float) -> None:
    for name, value in odds.items():
        if not (value > 1.0 and isfinite(value)):
            raise ValueError(f"{name} must be decimal odds above 1, got {value}")


def hedge(stake: float, odds: float, against: float) -> Hedge:
    """Hedge a bet that stands.

    Examples
    --------
    100 at 3.00, the other side at 2.00: 150 earn 50 whatever happens.

    >>> hedge(100, 3.0, 2.0)
    Hedge(stake=150.0, profit=50.0, no_loss_stake=100.0, no_loss_profit=100.0)
    """
    _checked(odds=odds, against=against)
    other, least = stake * odds / against, stake / (against - 1.0)
    return Hedge(other, stake * odds - stake - other, least, stake * (odds - 1.0) - least)


def free_bet(amount: float, odds: float, against: float, *, returned: bool = False) -> FreeBet:
    """Hedge a free bet; `returned` if its stake is paid back with the winnings.

    Examples
    --------
    >>> free_bet(100, 5.0, 1.25)
    FreeBet(stake=320.0, profit=80.0, conversion=0.8)
    """
    _checked(odds=odds, against=against)
    paid = amount * (odds if returned else odds - 1.0)
    other = paid / against
    profit = min(paid - other, other * (against - 1.0))
    return FreeBet(other, profit, profit / amount if amount else 0.0)


def boost(odds: float, share: float) -> float:
    """Odds whose winnings are raised by a share.

    Examples
    --------
    >>> boost(2.0, 0.5)
    2.5
    """
    _checked(odds=odds)
    if share < 0.0:
        raise ValueError(f"share must be 0 or more, got {share}")
    return 1.0 + (odds - 1.0) * (1.0 + share)


def parlay(odds: Sequence[float], probs: Sequence[float]) -> Parlay:
    """Independent legs as one bet.

    Examples
    --------
    >>> parlay([2.0, 2.5], [0.5, 0.5])
    Parlay(odds=5.0, prob=0.25, ev=0.25)
    """
    if len(odds) != len(probs) or not odds:
        raise ValueError(f"odds and probs must have the same length, got {len(odds)} and {len(probs)}")
    for value in odds:
        _checked(odds=value)
    price, p = prod(odds), prod(probs)
    return Parlay(price, p, price * p - 1.0)


def middle_stakes(total: float, odds: float, other: float, prob: float = 0.0) -> Middle:
    """Divide an amount between the two lines of a middle; `prob` is the chance that both win.

    Examples
    --------
    >>> middle_stakes(100, 2.0, 2.0, 0.1)
    Middle(stakes=(50.0, 50.0), both=100.0, one=0.0, break_even=0.0, ev=10.0)
    """
    _checked(odds=odds, other=other)
    first = total * other / (odds + other)
    second = total - first
    one, both = first * odds - total, first * odds + second * other - total
    needed = -one / (both - one) if both > one else inf
    return Middle((first, second), both, one, max(0.0, needed), prob * both + (1.0 - prob) * one)
