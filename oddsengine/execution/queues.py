"""Orders that rest: a bet at a price that the venue does not offer yet, until others are ready to take the other side.

An order to bet on one of two outcomes at odds d is shown to others as an offer of the other one at d / (d - 1). It
joins the queue of what is offered there already, and is filled when that is traded or gone. A history shows how large
the level is at some times, not who leaves it:

- at least: nobody ahead leaves, and the order is filled only by what the venue offers of its own bet at its odds or
  better: what was ahead is gone by then, and the offer would have met it
- at most: everything that leaves was ahead, then this order. A level that changed, or is the best one, may have been
  traded and filled again between two looks: all that was ahead may have left, and if it had before, the order may be
  filled
"""

from collections.abc import Sequence

from oddsengine.execution.ladders import Ladder, Level

_SAME_ODDS = 2e-3  # of 1 / odds: the two sides of a level are rounded to different odds


class Queue:
    """An order that rests, as one of its bounds.

    Units here are payouts before a commission, as those of the level.
    """

    def __init__(self, odds: float, units: float, against: Ladder | None, *, least: bool) -> None:
        self._price, self._least = 1.0 / odds, least
        self.odds, self.left, self.filled = odds, units, 0.0
        self._shown, self._is_best = self._look(against)
        self._is_first = self._shown == 0.0

    def follow(self, against: Ladder | None, own: Sequence[Level]) -> list[tuple[float, float]]:
        """Look at what the venue shows of the other side, and is left of its own bet.

        Returns what of its own bet met the order, as odds and units of each level.
        """
        passes, met = not self._least and self._may_pass(against), []
        for level in own:
            some = min(_payout(level), self.left)
            if some > 0.0 and level.odds >= self.odds * (1.0 - 1e-9):
                met.append((level.odds, some / (level.price * level.odds)))
                self._fill(some)
        if passes:
            self._fill(self.left)
        return met

    def _fill(self, some: float) -> None:
        self.left -= some
        self.filled += some

    def _may_pass(self, against: Ladder | None) -> bool:
        """Whether the order may have been filled from the queue since the last look."""
        was_first, before, was_best = self._is_first, self._shown, self._is_best
        self._shown, self._is_best = self._look(against)
        moved = self._is_best or was_best or self._shown != before
        self._is_first |= moved
        return moved and was_first

    def _look(self, against: Ladder | None) -> tuple[float, bool]:
        """How much is offered at the order's price, and whether nothing better is."""
        levels, price = against.levels if against is not None else (), 1.0 - self._price
        size = sum(_payout(level) for level in levels if abs(1.0 / level.odds - price) < _SAME_ODDS)
        return size, not levels or 1.0 / levels[0].odds > price - _SAME_ODDS


def _payout(level: Level) -> float:
    """What a level pays, before a commission."""
    return level.units * level.price * level.odds
