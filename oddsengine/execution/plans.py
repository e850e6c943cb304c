"""Plans: how much of each leg of an opportunity to order, for some stake."""

from collections.abc import Sequence
from typing import NamedTuple

from oddsengine.execution.ladders import Ladder, Level
from oddsengine.execution.taking import cheapest, rounded, rounding, stake_of
from oddsengine.maths.depth import buy_together


class Plan(NamedTuple):
    """What to order."""

    units: float  # of payout, of each leg: what is ordered, or what the stake would buy
    limits: tuple[Level, ...]  # by leg: the last level of these; none if it is nothing
    sequence: tuple[int, ...]  # the legs, the one with the least room first; none if nothing is ordered
    is_short: bool  # the levels do not take the stake
    lot: float = 0.0  # the largest step of payouts of the legs: a smaller difference between them is not open
    reason: str = ""  # why nothing is ordered


def plan_for(legs: Sequence[Ladder], left: Sequence[Sequence[Level]], worth: float, stake: float) -> Plan:
    """Plan an opportunity.

    Parameters
    ----------
    legs, left
        Its prices, and what is left of the levels of each.
    worth
        The most that a unit of payout of each leg may cost together.
    stake
        The most that all may cost.
    """
    bought = buy_together([[(level.cost, level.units) for level in some] for some in left], worth, stake)
    is_short = sum(bought.stakes) < stake * (1.0 - 1e-9)
    if bought.units <= 0.0:
        return Plan(bought.units, (), (), is_short, reason="no profit" if all(left) else "taken")
    within = [[level for level in some if level.cost <= most] for some, most in zip(left, bought.limits, strict=True)]
    limits, lot = tuple([some[-1] for some in within]), max([rounding(leg) for leg in legs])
    units = bought.units
    for _ in range(2 if lot else 0):  # payouts that all venues sell, so that none is left with a part of a contract
        units = min([rounded(leg, some, units) for leg, some in zip(legs, within, strict=True)])
    if units <= 0.0 or any(
        stake_of(cheapest(some, units)) < leg.min_stake * (1.0 - 1e-9)
        for some, leg in zip(within, legs, strict=True)
        if leg.min_stake
    ):
        return Plan(bought.units, limits, (), is_short, lot, "too small")
    room = [sum([level.units for level in some]) for some in within]
    return Plan(units, limits, tuple(sorted(range(len(legs)), key=room.__getitem__)), is_short, lot)
