"""Calculators: hedges, free bets, boosts, parlays and middles. Odds d are decimal, after commission; s is a stake.

A commission c on the winnings of the other side, as exchanges charge, turns its odds h into 1 + (h - 1) (1 - c) first.

**Hedge.** With a bet of s at d and the other side at h, staking s d / h gives both results the same profit,

    profit = s d - s - s d / h

and staking s / (h - 1) loses nothing if the other side wins, with the remaining profit if the first bet wins.

**Lay.** To lay at l is to back the other outcomes at l / (l - 1), with the liability as the stake. So the other side h
of a hedge may be a lay price, and its commission is charged in the same way.

**Qualifying bet.** A bet of B at b, laid at l with the stake L = b B / (l - c), results in L (1 - c) - B either way.
Where a fee is charged per contract, the lay is b B contracts on the other outcomes, so L = b B / l.

**Free bet.** Its stake F is not returned with the winnings (or is, with `returned`). Hedged with H = F (d - 1) / h, or
F d / h, it earns F (d - 1) - H whatever happens; as a share of F, that is its conversion.

**Boost.** Winnings are raised by a share b of at most 3: d' = 1 + (d - 1) (1 + b). With a maximum M of what a boost
adds to the winnings of a stake s, d' = d + min((d - 1) b, M / s).

**Parlay.** Odds multiply, and so do probabilities of independent legs. Legs of one game are not independent.

**Middle.** Stakes on two lines in proportion to the other's odds, s1 = T d2 / (d1 + d2), have the same profit on either
side of the middle. With a probability p of winning both, EV = p (s1 d1 + s2 d2) + (1 - p) s1 d1 - T.
"""

from collections.abc import Sequence
from math import isfinite, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from oddsengine.columns import Floats
from oddsengine.maths.depth import lay_to_back
from oddsengine.maths.odds import charged, probabilities

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


class Qualifying(NamedTuple):
    """The hedge of a bet that qualifies for an offer."""

    stake: float  # on the other side, with a fee per contract; of a lay, the liability
    lay_stake: float | None  # the backer's stake, if the other side is a lay; times the lay odds: contracts
    result: float  # profit or, mostly, loss, whichever side wins


class Parlay(NamedTuple):
    """A parlay."""

    odds: float
    prob: float | None  # None without probabilities of the legs
    ev: float | None  # per unit staked


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


def _money(**amounts: float) -> None:
    for name, value in amounts.items():
        if not (value >= 0.0 and isfinite(value)):
            raise ValueError(f"{name} must be a finite amount of 0 or more, got {value}")


def _chance(prob: float, name: str = "prob") -> float:
    """Check a probability."""
    probabilities(prob, name)
    if not (0.0 <= prob <= 1.0):
        raise ValueError(f"{name} must be from 0 to 1, got {prob:g}")
    return prob


def _net(odds: float, commission: float, fee: float = 0.0) -> float:
    """Odds after a commission on winnings and a fee per contract."""
    if not 0.0 <= commission < 1.0:
        raise ValueError(f"commission must be from 0 to below 1, 0.02 for 2 %, got {commission:g}")
    if not (fee >= 0.0 and isfinite(fee)):
        raise ValueError(f"fee must be a number of 0 or more, 0.07 for 0.07 p (1 - p) per contract, got {fee:g}")
    return float(charged(odds, commission, fee)) if commission or fee else odds


def hedge(stake: float, odds: float, against: float, *, commission: float = 0.0) -> Hedge:
    """Hedge an open bet: stakes on the other side for equal profit, and for no loss.

    Parameters
    ----------
    stake : float
        Stake of the open bet.
    odds : float
        Its decimal odds.
    against : float
        Decimal odds of the other side.
    commission : float
        Share of winnings that the book of the other side keeps, 0.02 for 2 %.

    Returns
    -------
    Hedge
        `stake` and `profit`, the same whichever side wins; and `no_loss_stake`, with which the other side's win costs
        nothing, and `no_loss_profit`, what then remains if the open bet wins. A profit below 0 is a loss.

    Raises
    ------
    ValueError
        For odds that are not above 1, a stake below 0, or a commission outside 0 to 1.

    Examples
    --------
    With 100 at 3.00 and the other side at 2.00, staking 150 earns 50 whatever happens.

    >>> hedge(100, 3.0, 2.0)
    Hedge(stake=150.0, profit=50.0, no_loss_stake=100.0, no_loss_profit=100.0)
    """
    _checked(odds=odds, against=against)
    _money(stake=stake)
    net = _net(against, commission)
    other, least = stake * odds / net, stake / (net - 1.0)
    return Hedge(other, stake * odds - stake - other, least, stake * (odds - 1.0) - least)


def _other(against: float | None, lay: float | None) -> float:
    """Odds of the other side, given as such or as a lay price."""
    if (against is None) == (lay is None):
        raise ValueError("give either against, odds of the other side, or lay, odds at which the bet can be laid")
    return lay_to_back(lay)[0] if lay is not None else float(against)  # type: ignore[arg-type]


def qualifying(
    stake: float, odds: float, against: float | None = None, *, lay: float | None = None, commission: float = 0.0,
    fee: float = 0.0,
) -> Qualifying:  # fmt: skip
    """Hedge a bet that an offer requires: the same result whichever side wins, mostly a small loss.

    Parameters
    ----------
    stake : float
        Stake of the bet.
    odds : float
        Its decimal odds.
    against : float, optional
        Decimal odds of the other side; or `lay`.
    lay : float, optional
        Decimal odds at which the bet itself can be laid.
    commission, fee : float
        Of the book of the other side, as in `free_bet`.

    Returns
    -------
    Qualifying
        `stake` on the other side, the liability of a lay, including a fee per contract; `lay_stake`, the backer's
        stake, of which the liability without that fee is ``lay - 1`` times; and `result`. At an exchange of contracts
        that pay 1, ``lay_stake * lay`` of them are bought.

    Raises
    ------
    ValueError
        For odds that are not above 1, a stake below 0, a commission outside 0 to 1, or both `against` and `lay`.

    Examples
    --------
    >>> [round(x, 4) for x in qualifying(10, 2.0, lay=2.1, commission=0.05)]
    [10.7317, 9.7561, -0.7317]
    """
    other_odds = _other(against, lay)
    _checked(odds=odds, against=other_odds)
    _money(stake=stake)
    net = _net(other_odds, commission, fee)
    other = stake * odds / net
    liability = other * net / _net(other_odds, commission)  # without the fee
    return Qualifying(other, None if lay is None else liability / (lay - 1.0), other * (net - 1.0) - stake)


def free_bet(
    amount: float, odds: float, against: float | None = None, *, lay: float | None = None, returned: bool = False,
    commission: float = 0.0, fee: float = 0.0,
) -> FreeBet:  # fmt: skip
    """Hedge a free bet: what is kept of it whichever side wins.

    Parameters
    ----------
    amount : float
        The free bet.
    odds : float
        Decimal odds at which it is placed. Long odds keep more of it.
    against : float, optional
        Decimal odds of the other side; or `lay`.
    lay : float, optional
        Decimal odds at which the bet itself can be laid; `stake` of the result is then the liability, including a
        fee per contract.
    returned : bool
        Whether its stake is paid back with the winnings. Mostly it is not.
    commission : float
        Share of winnings that the book of the other side keeps, 0.02 for 2 %.
    fee : float
        F of a fee of F p (1 - p) per contract there, 0.07 for Kalshi.

    Returns
    -------
    FreeBet
        `stake` on the other side, `profit`, the same whichever side wins, and `conversion`, the profit as a share of
        the free bet.

    Raises
    ------
    ValueError
        For odds that are not above 1, an amount below 0, a commission outside 0 to 1, or both `against` and `lay`.

    Examples
    --------
    >>> free_bet(100, 5.0, 1.25)
    FreeBet(stake=320.0, profit=80.0, conversion=0.8)

    Laid at an exchange with a commission of 5 %, the liability is 68.33:

    >>> [round(x, 2) for x in free_bet(50, 3.0, lay=3.05, commission=0.05)]
    [68.33, 31.67, 0.63]
    """
    other_odds = _other(against, lay)
    _checked(odds=odds, against=other_odds)
    _money(amount=amount)
    net = _net(other_odds, commission, fee)
    paid = amount * (odds if returned else odds - 1.0)
    other = paid / net
    profit = min(paid - other, other * (net - 1.0))
    share = odds if returned else odds - 1.0
    return FreeBet(other, profit, share * (net - 1.0) / net)


def boost(odds: float, share: float, *, stake: float | None = None, max_extra: float | None = None) -> float:
    """Return odds with winnings raised by a share.

    Parameters
    ----------
    odds : float
        Decimal odds before the boost; of a parlay, those of the whole parlay.
    share : float
        The boost, 0.5 for 50 %.
    stake : float, optional
        Stake of the bet, which `max_extra` needs.
    max_extra : float, optional
        Maximum that the boost adds to the winnings, in money.

    Returns
    -------
    float
        Decimal odds. `kelly` and the EV, ``prob * odds - 1``, follow from them.

    Raises
    ------
    ValueError
        For odds that are not above 1, a share outside 0 to 3, or `max_extra` without a stake above 0.

    Examples
    --------
    >>> boost(2.0, 0.5)
    2.5
    >>> boost(5.0, 0.5, stake=100, max_extra=50)  # the boost is worth 200, but at most 50
    5.5
    """
    _checked(odds=odds)
    if not 0.0 <= share <= MOST_BOOST:
        raise ValueError(f"share must be from 0 to {MOST_BOOST:g}, 0.5 for a boost of 50 %, got {share:g}")
    if stake is not None:
        _money(stake=stake)
    if max_extra is None:
        return float(boosted(np.float64(odds), share))
    _money(max_extra=max_extra)
    if not stake:
        raise ValueError(f"max_extra is an amount of money and needs a stake above 0, got {stake}")
    return odds + min((odds - 1.0) * share, max_extra / stake)


def boosted(odds: ArrayLike, share: float) -> Floats:
    """Return odds above 1 with winnings raised by a share, and others as they are."""
    d = np.asarray(odds, np.float64)
    return np.asarray(np.where(d > 1.0, 1.0 + (d - 1.0) * (1.0 + share), d))


def parlay(odds: Sequence[float], probs: Sequence[float] | None = None) -> Parlay:
    """Combine independent legs: all of them have to win.

    Legs of one game are not independent, and their product is wrong for them: `oddsengine.parlay` prices those too.

    Parameters
    ----------
    odds : sequence of float
        Decimal odds of the legs.
    probs : sequence of float, optional
        Their fair probabilities, as from `devig`.

    Returns
    -------
    Parlay
        `odds`, the product; `prob`, the probability that all legs win, and `ev` per unit staked: ``prob * odds - 1``.
        The last two are None without `probs`.

    Raises
    ------
    ValueError
        Without legs, for odds that are not above 1, probabilities outside 0 to 1, or another number of them.

    Examples
    --------
    >>> parlay([2.0, 2.5], [0.5, 0.5])
    Parlay(odds=5.0, prob=0.25, ev=0.25)
    >>> parlay([2.0, 2.5])
    Parlay(odds=5.0, prob=None, ev=None)
    """
    legs = list(odds)
    if not legs:
        raise ValueError("odds must have at least one leg, got none")
    for value in legs:
        _checked(odds=value)
    price = float(prod(legs))
    if probs is None:
        return Parlay(price, None, None)
    chances = list(probs)
    if len(chances) != len(legs):
        raise ValueError(f"odds and probs must have the same length, got {len(legs)} and {len(chances)}")
    p = float(prod(_chance(prob, "probs") for prob in chances))
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
