"""A venue of paper money: orders are answered by what a board shows when they are due.

An order is due after `latency_s` seconds, in play after the venue's `bet_delay` as well, and answered by the next step:
it takes the levels that are there, at its lowest odds or better, or is rejected with a reason. Sportsbooks never fill
it at better odds than those of the decision, nor does any venue at a price of unknown size. A step more than `ANSWER_S`
later, as in a history of opening and closing odds, does not tell what the book would have answered: the order is filled
at the odds of the decision, as `UNOBSERVED`. If the snapshots of an event are usually further apart than that
(`sparse`), so is every order whose price is not seen again in that time, although there are snapshots of other events,
and those that wait at the end of the history.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from oddsengine.board.state import Board
from oddsengine.bounds import check_number
from oddsengine.columns import SECOND
from oddsengine.execution.attempts import ANSWER_S, UNOBSERVED
from oddsengine.execution.ladders import Ladder, Ladders, refusal
from oddsengine.execution.taking import Taken, lowered, spend, units_by_odds
from oddsengine.execution.venues import BetAnswer, BetOrder

_SAME = 1.0 + 1e-9
MOST_S = 31_536_000  # s: a year


class Latency(NamedTuple):
    """How long an order takes to be answered."""

    micros: int

    @classmethod
    def of(cls, latency_s: float) -> "Latency":
        """Validate the parameter `latency_s`."""
        check_number("latency_s", latency_s, 0.0, most=MOST_S)
        return cls(round(latency_s * SECOND))

    def due(self, sent: int, delay_s: float | None, *, live: bool) -> int:
        """When the answer to an order is due; `delay_s`: of its venue in play."""
        return sent + self.micros + (round((delay_s or 0.0) * SECOND) if live else 0)


class Look(NamedTuple):
    """A price when an order for it is due."""

    ladder: Ladder | None = None  # None: it is gone
    lowest: Ladder | None = None  # what stood at each level at all times since the first order for it


class Looks:
    """Looks at the prices of a board, and remembers what stood of those with a size."""

    def __init__(self, ladders: Ladders) -> None:
        self._ladders = ladders
        self._lowest: dict[int, Ladder] = {}
        self._ended: dict[int, Ladder] = {}  # those of which no level has stood

    @property
    def watched(self) -> Collection[int]:
        """Ids of prices whose changes matter."""
        return self._lowest.keys()

    def follow(self, board: Board, changed: Iterable[int]) -> None:
        """Process a step: `changed` are ids of watched prices."""
        some = [row for row in dict.fromkeys(changed) if row in self._lowest]
        for row, ladder in zip(some, self._ladders.of_ids(board, some), strict=True):
            lowest = lowered(self._lowest.pop(row), ladder)
            (self._lowest if lowest.levels else self._ended)[row] = lowest

    def at(self, board: Board, rows: Sequence[int]) -> list[Look]:
        """Look at some prices, for which orders are due."""
        out = []
        for row, ladder in zip(rows, self._ladders.of_ids(board, rows), strict=True):
            lowest = self._lowest.get(row) or self._ended.get(row)
            if lowest is None and ladder is not None and ladder.is_known:
                lowest = self._lowest[row] = ladder
            out.append(Look(ladder, lowest))
        return out

    def sizes(self, board: Board, rows: Sequence[int]) -> list[float | None]:
        """What the best levels of some prices take; None if that is unknown."""
        out: list[float | None] = []
        for ladder in self._ladders.of_ids(board, rows):
            best = ladder.levels[0] if ladder is not None and ladder.levels and ladder.is_known else None
            out.append(None if best is None else best.units * best.cost)
        return out


class PaperVenue:
    """A venue of paper money.

    Parameters
    ----------
    looks
        What stands of the price of an order when it is due, by the order's id; none: nothing does.
    latency
        How long orders take.
    sparse
        Whether a price that is not seen again says nothing.
    """

    def __init__(
        self, looks: Mapping[str, Look], latency: Latency, *, sparse: bool = False
    ) -> None:  # fmt: skip
        self._looks, self._latency, self._sparse = looks, latency, sparse
        self._now = 0
        self._sent: set[str] = set()
        self._waiting: list[tuple[int, BetOrder]] = []
        self._ended: list[BetAnswer] = []
        self._is_over = False
        self._taken = Taken()

    def follow(self, now: int) -> None:
        """It is that late, in microseconds; the board is at that step."""
        self._now, self._is_over = now, False

    def place(self, order: BetOrder) -> None:
        """Send an order."""
        if order.id not in self._sent:
            self._sent.add(order.id)
            self._waiting.append((self._latency.due(order.sent, order.delay_s, live=order.is_live), order))

    def cancel(self, order_id: str) -> None:
        """Stop what is left of an order: nothing, as none rests, and one that was sent arrives before this does."""
        if order_id not in self._sent:
            self._ended.append(BetAnswer(order_id, 0.0, 0.0, final=True, reason="unknown order"))

    def answers(self) -> list[BetAnswer]:
        """Answer the orders that are due."""
        due = [each for each in self._waiting if each[0] <= self._now]
        ended, self._ended = self._ended, []
        self._waiting = [each for each in self._waiting if each[0] > self._now]
        ended += [self._answer(at, order, self._looks.get(order.id, Look()))._replace(at=at) for at, order in due]
        if self._is_over and self._sparse:
            ended += [_unobserved(order)._replace(at=at) for at, order in self._waiting]
            self._waiting = []
        return ended

    def finish(self) -> None:
        """End a sparse history: orders that no step answers are filled, as `UNOBSERVED`."""
        self._is_over = True

    def _answer(self, arrives: int, order: BetOrder, look: Look) -> BetAnswer:
        ladder = look.ladder
        late = self._now - arrives > ANSWER_S * SECOND
        if late or (self._sparse and (ladder is None or ladder.seen < arrives)):
            return _unobserved(order)
        why = refusal(ladder, live=order.is_live)
        if ladder is None or why:
            return _refused(order, why)
        if look.lowest is not None:
            self._taken.observe(ladder.row, units_by_odds(look.lowest))
        worst = order.min_odds - 1e-9
        levels = [level for level in self._taken.left(ladder) if level.odds >= worst]
        if not levels:
            moved = bool(ladder.levels) and ladder.levels[0].odds < worst
            return _refused(order, "price moved" if moved else "taken")
        if levels[0].units == inf:
            return _quoted(order, levels[0].odds)
        got = spend(ladder, levels, order.stake)
        if got.units <= 0.0:
            return _refused(order, got.reason)
        self._taken.take(ladder.row, got.levels)
        prices = {level.odds: level.price for level in levels}
        spent = [(odds, units * prices[odds]) for odds, units in got.levels]
        odds = sum(odds * stake for odds, stake in spent) / sum(stake for _, stake in spent)
        stake, payout = order.stake if got.cost > order.stake / _SAME else got.cost, got.units
        if not ladder.book.exchange:
            payout, odds = min(payout, stake * order.net_odds), min(odds, order.odds)
        return BetAnswer(order.id, stake, payout, final=True, reason=got.reason or None, odds=odds)


def _unobserved(order: BetOrder) -> BetAnswer:
    return BetAnswer(
        order.id, order.stake, order.stake * order.net_odds, final=True, reason=UNOBSERVED, odds=order.odds
    )


def _refused(order: BetOrder, reason: str) -> BetAnswer:
    return BetAnswer(order.id, 0.0, 0.0, final=True, reason=reason)


def _quoted(order: BetOrder, odds: float) -> BetAnswer:
    """An order at a price of unknown size: at the odds of the decision, or the lower ones that are shown."""
    odds = min(odds, order.odds)
    net = order.net_odds
    if odds < order.odds:
        share = (odds - 1.0) / (order.odds - 1.0)
        net = 1.0 + (net - 1.0) * share
    return BetAnswer(order.id, order.stake, order.stake * net, final=True, odds=odds)
