"""Prices with depth: ladders of levels, what a stake gets from one, and the largest arbitrage between several.

A level is decimal odds d and the stake s that they take. Bought are units of payout: a unit costs q = 1 / d, and the
level has s d of them. A commission c on winnings makes q = 1 / (1 + (d - 1) (1 - c)); a fee of F p (1 - p) per
contract, with the price p = 1 / d, makes q = p + F p (1 - p), while the level still has s d contracts.

**A stake** is filled from the best level on. Its odds are payout / stake. Where the fee of an order is rounded up, to a
cent for example, the order costs that much more: its odds are payout / (stake + what rounding adds).

**The largest arbitrage** of outcomes that cover everything buys the same payout of each. While the best remaining
levels cost less than 1 together, the smallest of them is bought whole. Every ladder is sorted, so no other choice
earns more: this solves the linear program

    maximise  P - sum of q u      subject to  sum of u = P for each outcome,  0 <= u <= units of the level

**Lay.** To lay X at d, with a backer's stake s, is to back not-X with the liability s (d - 1) at d / (d - 1): it wins s
on the liability. A commission on winnings applies to these odds as to any other.
"""

from collections.abc import Sequence
from math import inf, isfinite, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from oddsengine.bounds import excerpt
from oddsengine.columns import Floats, Longs
from oddsengine.maths.odds import charged

_CERTAIN = 1.0 - 1e-12  # what a unit of each outcome costs at most in an arbitrage
_NO_FEE = 1e-9  # steps, by which a rounding error may exceed a multiple


class Fill(NamedTuple):
    """What a stake gets."""

    stake: float  # what is placed: less than asked if the levels take less
    payout: float  # if the bet wins, with the stake
    odds: float  # payout / stake, after commission or fee; nan if nothing is placed


class LargestArbitrage(NamedTuple):
    """The largest arbitrage between some ladders."""

    stakes: tuple[float, ...]  # by ladder
    payout: float  # whichever outcome wins
    profit: float


class Walk(NamedTuple):
    """What a stake gets from each of several ladders, by ladder."""

    ladder: Longs  # numbers of the ladders that have levels, ascending
    stake: Floats
    payout: Floats
    room: Floats  # the stake that all levels take
    fee: Floats  # the part of `stake` that is a fee per contract, before it is rounded


def walk(
    ladder: Longs, odds: Floats, size: Floats, stake: float, commission: ArrayLike = 0.0, fee: ArrayLike = 0.0
) -> Walk:
    """Fill a stake from each of several ladders, from its best level on.

    Parameters
    ----------
    ladder, odds, size
        Per level: the number of its ladder, its decimal odds and the stake that it takes.
    stake
        The stake, with the fee if there is one.
    commission, fee
        Per level, or one for all; as in `fill`.
    """
    cost, units = _costs(odds, size, commission, fee)
    due = fee_per_unit(odds, commission, fee)
    if ladder.size > 1 and not ((np.diff(ladder) > 0) | ((np.diff(ladder) == 0) & (np.diff(cost) >= 0.0))).all():
        order = np.lexsort((cost, ladder))
        ladder, cost, units, due = ladder[order], cost[order], units[order], due[order]
    room = cost * units
    start = np.flatnonzero(np.diff(ladder, prepend=-1))
    if not start.size:
        return Walk(ladder, room, room, room, room)
    counts = np.diff(np.append(start, ladder.size))
    of, place = np.repeat(np.arange(start.size), counts), np.arange(ladder.size) - np.repeat(start, counts)
    rooms = np.zeros((start.size, int(counts.max())))  # one ladder a row: they do not see each other
    rooms[of, place] = room
    placed = np.clip(stake - (np.cumsum(rooms, axis=1)[of, place] - room), 0.0, room)
    bought = placed / cost
    return Walk(ladder[start], *(np.add.reduceat(values, start) for values in (placed, bought, room, bought * due)))


def fee_per_unit(odds: Floats, commission: ArrayLike, fee: ArrayLike) -> Floats:
    """Fee for a unit of payout, F p (1 - p), with the price p after a commission."""
    p = 1.0 / charged(odds, commission)
    return np.asarray(fee) * p * (1.0 - p)


def rounded_fee(fee: ArrayLike, step: ArrayLike = 0.01) -> Floats:
    """Fees of orders, rounded up to a multiple of `step`."""
    step = np.asarray(step, np.float64)
    return np.asarray(np.ceil(np.asarray(fee, np.float64) / step - _NO_FEE) * step)


def _costs(odds: Floats, size: Floats, commission: ArrayLike, fee: ArrayLike) -> tuple[Floats, Floats]:
    """Cost per unit of payout, and number of units, of each level."""
    net = charged(odds, commission, fee)
    return 1.0 / net, size * np.where(np.asarray(fee) > 0.0, odds, net)


def _checked(levels: ArrayLike, commission: float, fee: float) -> Floats:
    """The levels of a ladder as rows of odds and stake; raise if one, or a charge, is not valid."""
    table = np.asarray(levels, np.float64).reshape(-1, 2)
    odds, stake = table.T
    wrong = ~(np.isfinite(odds) & (odds > 1.0) & np.isfinite(stake) & (stake >= 0.0))
    if wrong.any():
        came = tuple(table[int(wrong.argmax())].tolist())
        raise ValueError(f"a level must be decimal odds above 1 and a stake of 0 or more, got {came}")
    if not 0.0 <= commission < 1.0:
        raise ValueError(f"commission must be from 0 to below 1, 0.02 for 2 %, got {excerpt(commission)}")
    if not (isfinite(fee) and fee >= 0.0):
        raise ValueError(f"fee must be a number of 0 or more, 0.07 for 0.07 p (1 - p) per contract, got {excerpt(fee)}")
    return table


def fill(levels: ArrayLike, stake: float, *, commission: float = 0.0, fee: float = 0.0) -> Fill:
    """Return what a stake gets from a ladder, from the best level on.

    Parameters
    ----------
    levels : array_like
        Pairs of decimal odds and the stake that they take, in any order.
    stake : float
        The stake, with the fee if there is one.
    commission : float
        Share of the winnings that is kept, 0.02 for 2 %.
    fee : float
        F of a fee of F p (1 - p) per contract, 0.07 for Kalshi.

    Returns
    -------
    Fill
        `stake`, `payout` and `odds`; the odds are never better than the best level's.

    Raises
    ------
    ValueError
        For a level, stake, commission or fee that is none.

    Examples
    --------
    >>> fill([(2.0, 100.0), (1.9, 200.0)], 150.0)
    Fill(stake=150.0, payout=295.0, odds=1.9666666666666666)
    """
    if not (isfinite(stake) and stake >= 0.0):
        raise ValueError(f"stake must be a finite amount of 0 or more, got {excerpt(stake)}")
    odds, size = _checked(levels, commission, fee).T
    found = walk(np.zeros(odds.size, np.int64), odds, size, stake, commission, fee)
    placed, payout = float(found.stake.sum()), float(found.payout.sum())  # of one ladder, or none
    return Fill(placed, payout, payout / placed if placed > 0.0 else nan)


def largest_arbitrage(
    ladders: Sequence[ArrayLike], *, commissions: Sequence[float] = (), fees: Sequence[float] = ()
) -> LargestArbitrage:
    """Return the largest arbitrage over all levels of the outcomes of a market.

    Parameters
    ----------
    ladders
        One ladder for each outcome, as in `fill`.
    commissions, fees
        By ladder; as in `fill`. Commissions apply to each bet by itself.

    Returns
    -------
    LargestArbitrage
        `stakes`, `payout` and `profit`; all 0 if the best prices are no arbitrage.

    Raises
    ------
    ValueError
        For fewer than two ladders, or a level, commission or fee that is none.

    Examples
    --------
    >>> over, under = [(2.20, 100), (2.16, 200), (2.10, 500)], [(1.90, 80), (1.88, 150), (1.85, 400)]
    >>> found = largest_arbitrage([over, under])
    >>> round(found.payout), [round(stake, 2) for stake in found.stakes], round(found.profit, 2)
    (434, [199.07, 230.0], 4.93)
    """
    if len(ladders) < 2:
        raise ValueError(f"an arbitrage needs at least two ladders, got {len(ladders)}")
    n = len(ladders)
    rates = [_by_ladder("commissions", commissions, n), _by_ladder("fees", fees, n)]
    sides = [_best_first(ladder, c, f) for ladder, c, f in zip(ladders, *rates, strict=True)]
    bought = buy_together([list(zip(cost.tolist(), units.tolist(), strict=True)) for cost, units in sides], _CERTAIN)
    return LargestArbitrage(tuple(bought.stakes), bought.units, bought.units - sum(bought.stakes))


class Bought(NamedTuple):
    """Equal payouts bought of several ladders."""

    units: float  # of payout, of each
    stakes: list[float]  # by ladder
    limits: list[float]  # by ladder: what the dearest unit cost; 0 if nothing was bought


def buy_together(ladders: Sequence[Sequence[tuple[float, float]]], worth: float, budget: float = inf) -> Bought:
    """Buy the same payout of each ladder while the next units are worth what they cost.

    Parameters
    ----------
    ladders
        By outcome: cost of a unit of payout, and number of units, of each level, cheapest first.
    worth
        The most that a unit of each may cost together.
    budget
        The most that all may cost.

    Examples
    --------
    >>> buy_together([[(0.45, 100.0), (0.5, 100.0)], [(0.52, 150.0)]], 1.0)
    Bought(units=100.0, stakes=[45.0, 52.0], limits=[0.45, 0.52])
    >>> buy_together([[(0.45, 100.0), (0.5, 100.0)], [(0.52, 150.0)]], 1.05, 133.5)
    Bought(units=135.7843137254902, stakes=[62.8921568627451, 70.6078431372549], limits=[0.5, 0.52])
    """
    n = len(ladders)
    at, left = [0] * n, [ladder[0][1] if ladder else 0.0 for ladder in ladders]
    units, stakes, limits = 0.0, [0.0] * n, [0.0] * n
    while True:
        for k, ladder in enumerate(ladders):
            while left[k] <= 0.0 and at[k] < len(ladder):
                at[k] += 1
                left[k] = ladder[at[k]][1] if at[k] < len(ladder) else 0.0
        if any(at[k] >= len(ladder) for k, ladder in enumerate(ladders)):
            break
        costs = [ladder[at[k]][0] for k, ladder in enumerate(ladders)]
        total = sum(costs)
        if total > worth or budget <= 0.0:
            break
        bought = min(*left, budget / total)
        budget = 0.0 if bought == budget / total else budget - bought * total
        units += bought
        for k, cost in enumerate(costs):
            left[k] -= bought
            stakes[k] += cost * bought
            limits[k] = cost
    return Bought(units, stakes, limits)


def _best_first(levels: ArrayLike, commission: float, fee: float) -> tuple[Floats, Floats]:
    """Cost per unit of payout and number of units of each level, best first."""
    odds, size = _checked(levels, commission, fee).T
    cost, units = _costs(odds, size, commission, fee)
    order = np.argsort(cost, kind="stable")
    return cost[order], units[order]


def _by_ladder(name: str, values: Sequence[float], n: int) -> Sequence[float]:
    if not len(values):
        return [0.0] * n
    if len(values) != n:
        raise ValueError(f"{name} must have one number for each of the {n} ladders, got {len(values)}")
    return values


def contract_odds(contracts: int, price: float, fee: float, *, step: float = 0.01) -> float:
    """Return the decimal odds of contracts bought in one order, whose fee is rounded up, as at Kalshi.

    Parameters
    ----------
    contracts : int
        Their number; each pays 1.
    price : float
        Price of one, from 0 to 1.
    fee : float
        F of the fee, F p (1 - p) per contract.
    step : float
        Amount to whose multiples the fee of the order is rounded up.

    Examples
    --------
    >>> round(contract_odds(1, 0.5, 0.07), 4), round(contract_odds(100, 0.5, 0.07), 4)
    (1.9231, 1.9324)
    """
    if not (contracts > 0 and 0.0 < price < 1.0 and fee >= 0.0 and step > 0.0):
        raise ValueError(
            f"contracts must be above 0, price between 0 and 1, fee at least 0 and step above 0, "
            f"got {excerpt(contracts)}, {price!r}, {fee!r}, {step!r}"
        )
    charged_fee = float(rounded_fee(fee * contracts * price * (1.0 - price), step))
    return contracts / (contracts * price + charged_fee)


def lay_to_back(lay: float, stake: float = 1.0) -> tuple[float, float]:
    """Return what a lay bet is as a bet on the other outcomes: its decimal odds, and its stake, the liability.

    Parameters
    ----------
    lay : float
        Decimal odds at which an outcome is laid.
    stake : float
        The backer's stake.

    Examples
    --------
    >>> lay_to_back(3.0, 10.0)
    (1.5, 20.0)
    """
    if not (isfinite(lay) and lay > 1.0):
        raise ValueError(f"lay must be decimal odds above 1, got {excerpt(lay)}")
    return lay / (lay - 1.0), stake * (lay - 1.0)
