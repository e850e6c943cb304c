"""Orders that take what is there: how much of a ladder one gets, and what we took and is not there twice.

**Liquidity is used once.** What we took of a level stays taken while the venue shows that level, until it shows more
than before: of a level that shrinks, what is left may be what we took, and what is added is new.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from oddsengine.execution.ladders import Ladder, Level
from oddsengine.maths.depth import buy_together, rounded_fee

_SAME = 1.0 + 1e-9


class Fill(NamedTuple):
    """What an order got."""

    units: float = 0.0  # of payout
    cost: float = 0.0  # with the fee
    levels: tuple[tuple[float, float], ...] = ()  # odds and units
    reason: str = ""  # why it got nothing, or less than it wanted


NOTHING = Fill()


def fill(ladder: Ladder, levels: Sequence[Level], units: float, limit: float, *, all_or_nothing: bool = False) -> Fill:
    """Fill an order for some units of payout from what is left of a ladder.

    Parameters
    ----------
    ladder
        The price; it has the venue's rules.
    levels
        What is left of its levels, cheapest first.
    units
        Units wanted. Stakes are rounded down to the venue's steps.
    limit
        The most that a unit may cost.
    all_or_nothing
        Whether the order is all or nothing.
    """
    fits = [level for level in levels if level.cost <= limit * _SAME]
    if not fits:
        return Fill(reason="price moved" if levels else "taken")
    wanted = rounded(ladder, fits, units)
    room = sum(level.units for level in fits)
    got = wanted if room >= units else rounded(ladder, fits, room)
    if got <= 0.0:
        return Fill(reason="too small")
    if all_or_nothing and got < wanted * (1.0 - 1e-9):
        return Fill(reason="not in whole")
    parts = list(cheapest(fits, got))
    if stake_of(parts) < ladder.min_stake * (1.0 - 1e-9):
        return Fill(reason="too small")
    taken = tuple((level.odds, some) for level, some in parts)
    return Fill(got, cost_of(ladder, parts), taken, "" if got >= wanted * (1.0 - 1e-9) else "not enough")


def smallest(fills: Iterable[Fill]) -> Fill:
    """The smallest fill, of equal ones the dearest; there must be one."""
    least = None
    for some in fills:
        if least is None or (some.units, -some.cost) < (least.units, -least.cost):
            least = some
        if least.units <= 0.0:
            break
    assert least is not None
    return least


def largest(fills: Iterable[Fill], units: float) -> Fill:
    """The largest fill, of equal ones the earliest: a later improvement would be luck. None has more than `units`."""
    most = None
    for some in fills:
        if most is None or some.units > most.units:
            most = some
        if most.units >= units:
            break
    assert most is not None
    return most


def rounded(ladder: Ladder, levels: Sequence[Level], units: float) -> float:
    """Units rounded down to what the venue sells: whole contracts, or stakes in whole steps."""
    if ladder.lot > 0.0:
        return (units / ladder.lot + 1e-9) // 1.0 * ladder.lot
    if ladder.step <= 0.0:
        return units
    parts = list(cheapest(levels, units))
    beyond = units - sum(some for _, some in parts)  # of levels that are not there, at the last one's price
    if not parts:
        return 0.0
    last = parts[-1][0].price
    excess = (stake_of(parts) + beyond * last + 1e-9 * ladder.step) % ladder.step
    for level, some in reversed([*parts, (parts[-1][0], beyond)]):
        if excess <= 1e-9 * ladder.step:
            break
        less = min(some, excess / level.price)
        units, excess = units - less, excess - less * level.price
    return max(units, 0.0)


def rounding(ladder: Ladder) -> float:
    """The step of payouts at a price's best level."""
    return ladder.lot or (ladder.step / ladder.levels[0].price if ladder.step and ladder.levels else 0.0)


def stake_of(parts: Iterable[tuple[Level, float]]) -> float:
    """What some units of some levels cost without a fee per contract."""
    return sum(some * level.price for level, some in parts)


def spend(ladder: Ladder, levels: Sequence[Level], money: float) -> Fill:
    """Fill an order for what some money buys of what is left of a ladder; no more is spent, with the rounded fee."""
    ladders = [[(level.cost, level.units) for level in levels]]
    for most in (money, money - ladder.fee_step):  # a fee is rounded up by less than a step
        bought = buy_together(ladders, inf, max(most, 0.0))
        got = fill(ladder, levels, bought.units, inf)
        if got.cost <= money * _SAME:
            is_short = got.units > 0.0 and most - bought.stakes[0] > money * 1e-9
            return got._replace(reason="not enough") if is_short else got
    return Fill(reason="too small")


def cheapest(levels: Iterable[Level], units: float) -> Iterator[tuple[Level, float]]:
    """The levels that some units come from, and how many of each."""
    for level in levels:
        some = min(level.units, units)
        if some <= 0.0:
            return
        yield level, some
        units -= some


def cost_of(ladder: Ladder, parts: Iterable[tuple[Level, float]]) -> float:
    """What some units of some levels cost in one order, with its fee."""
    stake = fee = 0.0
    for level, some in parts:
        stake += some * level.price
        fee += some * level.fee
    return stake + (float(rounded_fee(fee, ladder.fee_step)) if fee > 0.0 else 0.0)


def units_by_odds(ladder: Ladder | None) -> dict[float, float]:
    """Units of each level of a ladder."""
    return {level.odds: level.units for level in ladder.levels} if ladder is not None else {}


def lowered(ladder: Ladder, other: Ladder | None) -> Ladder:
    """What stands of each level of a ladder in another look at it as well."""
    shown = units_by_odds(other)
    levels = (level._replace(units=min(level.units, shown.get(level.odds, 0.0))) for level in ladder.levels)
    return ladder._replace(levels=tuple(level for level in levels if level.units > 0.0))


class Taken:
    """What we took and is not there any more, by price and level, now and before the current step."""

    def __init__(self) -> None:
        self._now: dict[int, dict[float, float]] = {}  # units by odds
        self._before: dict[int, dict[float, float]] = {}  # of prices that changed in this step

    @property
    def rows(self) -> Collection[int]:
        """Prices of which we took something."""
        return self._now

    def left(self, ladder: Ladder, *, before: bool = False) -> Sequence[Level]:
        """What is left of a ladder, cheapest first; `before`: of one that was there before this step."""
        used = self._before.get(ladder.row) if before else None
        if used is None:
            used = self._now.get(ladder.row)
        if not used:
            return ladder.levels
        left = [
            level if level.odds not in used else Level(*level[:3], level.units - used[level.odds])
            for level in ladder.levels
        ]
        return [level for level in left if level.units > 1e-9]

    def take(self, row: int, levels: Iterable[tuple[float, float]]) -> None:
        """We took some units of some levels."""
        for odds, units in levels:
            for of in (self._now.setdefault(row, {}), self._before.get(row, {})):
                of[odds] = of.get(odds, 0.0) + units

    def observe(self, row: int, shown: Mapping[float, float]) -> None:
        """The venue shows other levels, or none: `units_by_odds`."""
        used = self._now.get(row)
        if used is None:
            return
        self._before[row] = used
        still = {odds: min(units, shown[odds]) for odds, units in used.items() if odds in shown}
        if still:
            self._now[row] = still
        else:
            del self._now[row]

    def passed(self) -> None:
        """The step is over."""
        self._before.clear()
