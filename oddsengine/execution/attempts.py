"""Attempts: the orders that an opportunity takes, one after the other, and what becomes of them.

Each opportunity is attempted once, when it is first shown, by every bettor: one kind, one stake, one bound. A bettor
takes liquidity from itself only. Of the two bounds one is what was there at least, the other what was there at most:

                          at least                            at most
    an order arrives      as late as its venue may be         as early as it may be
    and finds             the worse of the looks around it    the better of them
    in a history without  nothing                             what was shown when it was sent
    snapshots then
    in a queue            see `queues`

**Legs.** Thinnest first, each leg is sent when the one before has been answered, for what that got; or all at once. A
limit is the cost of the last unit that the plan wanted. What is left of it may rest.

**The other leg.** When all have been answered and their payouts differ, the missing ones are ordered at the best price
of any book: a hedge. It has a delay of its own, and need not be filled either.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from operator import attrgetter
from typing import Literal, NamedTuple

from oddsengine.board.state import Board
from oddsengine.catalog.books import Book
from oddsengine.columns import SECOND
from oddsengine.execution.ladders import Ladder, Ladders, Level, refusal, rows_against, rows_of_bet
from oddsengine.execution.queues import Queue
from oddsengine.execution.taking import NOTHING, Fill, Taken, cheapest, cost_of, fill, rounded, rounding, stake_of
from oddsengine.execution.watched import WatchedPrices
from oddsengine.identity.layout import BOOK_BITS
from oddsengine.maths.depth import buy_together

Legs = Literal["thinnest", "together"]
LEGS: tuple[str, ...] = ("thinnest", "together")
OUTCOMES = ("whole", "part", "hedged", "open", "none")
"""`whole`, `part`: the legs are balanced, for all or part of the stake; `hedged`: they are by a hedge; `open`: they are
not balanced; `none`: nothing was bought."""
OPEN = 1e-6  # of the payout: less is not open
UNOBSERVED = "unobserved"
"""Reason of an order whose answer is not known."""
ANSWER_S = 1800  # s: the longest time from when an order arrives to the snapshot that answers it
_SAME = 1.0 + 1e-9
_NEVER = 1 << 62
_RESTING = ("price moved", "not enough", "taken")  # of which the rest can wait
_WAIT_S = 30  # s: a price that is not seen again by then stands, as streams send what changes only
EXCHANGE_S, BOOK_S = (0.2, 1.0), (2.0, 8.0)
"""Seconds until an order arrives, at least and at most: an order over an interface, and a bet slip."""


class Rules(NamedTuple):
    """How opportunities are attempted."""

    stakes: tuple[float, ...]
    delays: Mapping[str, tuple[float, float]] = {}  # seconds by id of the book, least and most
    delay_s: tuple[float, float] | None = None  # of other books; None: as above
    legs: str = "thinnest"
    all_or_nothing: bool = False  # whether orders are
    rest_s: float = 0.0  # how long what is left of an order rests, at exchanges
    sparse: bool = False  # whether no order is judged by a price that was not seen since it arrived

    def delay(self, book: Book, *, least: bool) -> int:
        """Microseconds until an order of a bound arrives, without the venue's own delay in play."""
        early, late = self.delays.get(book.id) or self.delay_s or (EXCHANGE_S if book.exchange else BOOK_S)
        return round((late if least else early) * SECOND)


class NewOpportunity(NamedTuple):
    """An opportunity, when it is first shown."""

    number: int  # the caller's
    kind: str
    slots: tuple[int, ...]  # rows of its legs
    worth: float  # the most that a unit of payout of each leg may cost together


class Bettor(NamedTuple):
    """Whose orders take liquidity from each other."""

    kind: str
    stake: float
    least: bool

    @property
    def bound(self) -> str:
        """Its name."""
        return "least" if self.least else "most"


@dataclass(slots=True, eq=False)
class Attempt:
    """An opportunity as one bettor tries to take it; lists are by leg."""

    number: int  # of the opportunity
    bettor: Bettor
    legs: tuple[Ladder, ...]  # when it was shown
    units: float  # of payout of each leg, as planned
    limits: tuple[Level, ...]  # the last level of each leg that the plan wanted
    is_short: bool  # the levels did not take the stake
    lot: float = 0.0  # the largest step of payouts of its legs: a smaller difference between them is not open
    sequence: list[int] = field(default_factory=list)  # legs that are not sent yet
    waiting: int = 0  # orders that are not answered
    filled: list[float] = field(default_factory=list)  # units, without hedges
    cost: list[float] = field(default_factory=list)
    hedged: list[float] = field(default_factory=list)  # units
    hedge_cost: float = 0.0
    is_there: bool | None = None  # whether it was still there when its first order arrived; None: unobserved
    reason: str = ""  # why the first leg that fell short did

    @property
    def outcome(self) -> str:
        """One of `OUTCOMES`."""
        if not any(self.cost):
            return "none"
        both = [units + hedge for units, hedge in zip(self.filled, self.hedged, strict=True)]
        if max(both) - min(both) > max(OPEN * max(both), self.lot * (1.0 - 1e-6)):
            return "open"
        if self.hedge_cost:
            return "hedged"
        return "part" if self.is_short or self.reason else "whole"


@dataclass(slots=True, eq=False)
class Order:
    """An order, from when it is sent."""

    attempt: Attempt
    leg: int
    is_hedge: bool
    ladder: Ladder  # on which it was decided
    sent: int  # microseconds
    units: float
    limit: Level  # the last level that it may take
    arrives: int = 0
    got: Fill = NOTHING
    until: int = 0  # when it stops resting
    queue: Queue | None = None
    against: int = -1  # the price of the other outcome, if it rests


class Attempts:
    """All attempts on a board.

    Parameters
    ----------
    rules
        How opportunities are attempted.
    ladders
        How ladders are read.
    books
        Ids of the books that hedges use; None: any.
    log
        Whether to keep all orders, in `orders`.
    """

    def __init__(
        self, rules: Rules, ladders: Ladders, books: Iterable[str] | None = None, *, log: bool = False
    ) -> None:  # fmt: skip
        self._rules, self._ladders = rules, ladders
        self._books = None if books is None else frozenset(books)
        self.orders: list[Order] | None = [] if log else None
        self._done: list[Attempt] = []
        self._sent = 0
        self._due: list[tuple[int, int, Order]] = []  # by arrival, then as they were sent
        self._unseen: list[Order] = []  # have arrived, and their price has not been seen since
        self._resting: list[Order] = []
        self._prices = WatchedPrices()
        self._taken: dict[Bettor, Taken] = defaultdict(Taken)
        self._most = 256

    @property
    def watched(self) -> Collection[int]:
        """Ids of prices whose changes matter."""
        return self._prices.rows

    @property
    def next_due(self) -> int:
        """When something has to be done although nothing changes, microseconds; a large number if nothing has."""
        if self._unseen:
            return 0
        due = self._due[0][0] if self._due else _NEVER
        return min(due, *(order.until for order in self._resting), _NEVER)

    def follow(self, board: Board, now: int, changed: Iterable[int], found: Iterable[NewOpportunity]) -> None:
        """Process a step: `changed` are ids of watched prices that changed, `found` what is first shown."""
        for row in changed:
            ladder = self._ladders.of_id(board, row)
            self._prices.change(row, ladder, now)
            for taken in self._taken.values():
                taken.observe(row, ladder)
        self._rest(board, now)
        self._answer_due(board, now)
        for each in found:
            self._begin(now, each, [self._ladders.of_slot(board, slot) for slot in each.slots])
        self._answer_due(board, now)  # what arrives at once
        self._prices.passed()
        for taken in self._taken.values():
            taken.passed()
        if len(self.watched) > self._most:
            self._forget()

    def _answer_due(self, board: Board, now: int) -> None:
        """Answer the orders that have arrived; the lower bound waits until the price is seen again."""
        waiting, self._unseen = deque(self._unseen), []
        read: dict[int, Ladder | None] = {}
        while waiting or (self._due and self._due[0][0] <= now):
            order = waiting.popleft() if waiting else heappop(self._due)[-1]
            row = order.ladder.row
            if row not in read:
                read[row] = self._ladders.of_id(board, row)
            ladder = read[row]
            is_old = (
                ladder is not None
                and ladder.seen < order.arrives
                and self._prices.after(row, order.arrives, now) is None
            )
            if is_old and order.attempt.bettor.least and now - order.arrives < _WAIT_S * SECOND:
                self._unseen.append(order)
            else:
                self._answer(board, now, order, ladder)

    def finish(self, board: Board, now: int) -> None:
        """The history is over: orders on their way find nothing."""
        while self._resting or self._unseen or self._due:
            self._rest(board, now, over=True)
            unseen, self._unseen = self._unseen, []
            for order in unseen:  # as they stand
                self._answer(board, now, order, self._ladders.of_id(board, order.ladder.row))
            if self._due:
                self._answered(board, now, heappop(self._due)[-1], Fill(reason=UNOBSERVED))

    def take_done(self) -> list[Attempt]:
        """The attempts that have ended since the last call."""
        done, self._done = self._done, []
        return done

    def _forget(self) -> None:
        """Watch no longer what does not matter any more."""
        kept = {row for taken in self._taken.values() for row in taken.rows}
        for order in (*self._unseen, *self._resting, *(each[-1] for each in self._due)):
            kept.update(leg.row for leg in (order.ladder, *order.attempt.legs))
            kept.add(order.against)
        self._prices.keep(kept)
        self._most = max(256, 2 * len(self.watched))

    # ---- legs ----

    def _begin(self, now: int, new: NewOpportunity, ladders: Sequence[Ladder | None]) -> None:
        legs = tuple(ladder for ladder in ladders if ladder is not None and ladder.is_active)
        if len(legs) < len(ladders):
            return
        for leg in legs:
            self._prices.watch(leg, now)
        for stake in self._rules.stakes:
            for least in (True, False):
                self._plan(now, new, Bettor(new.kind, stake, least), legs)

    def _plan(self, now: int, new: NewOpportunity, bettor: Bettor, legs: tuple[Ladder, ...]) -> None:
        taken = self._taken[bettor]
        left = [taken.left(leg) for leg in legs]
        plan = buy_together([[(level.cost, level.units) for level in some] for some in left], new.worth, bettor.stake)
        is_short = sum(plan.stakes) < bettor.stake * (1.0 - 1e-9)
        within = [[level for level in some if level.cost <= most] for some, most in zip(left, plan.limits, strict=True)]
        attempt = Attempt(new.number, bettor, legs, plan.units, tuple(some[-1] for some in within if some), is_short)
        attempt.filled, attempt.cost, attempt.hedged = ([0.0] * len(legs) for _ in range(3))
        if plan.units <= 0.0:
            attempt.reason = "no profit" if all(left) else "taken"
            self._done.append(attempt)
            return
        # Payouts that all venues sell, so that none is left with a part of a contract.
        attempt.lot = max((rounding(leg) for leg in legs), default=0.0)
        units = min(rounded(leg, some, plan.units) for leg, some in zip(legs, within, strict=True))
        units = min(rounded(leg, some, units) for leg, some in zip(legs, within, strict=True))
        stakes = [stake_of(cheapest(some, units)) for some in within]
        if units <= 0.0 or any(stake < leg.min_stake * (1.0 - 1e-9) for stake, leg in zip(stakes, legs, strict=True)):
            attempt.reason = "too small"
            self._done.append(attempt)
            return
        attempt.units = units
        room = [sum(level.units for level in some) for some in within]
        attempt.sequence = sorted(range(len(legs)), key=room.__getitem__)
        self._next(now, attempt)

    def _next(self, sent: int, attempt: Attempt) -> None:
        """Send the next leg, or all, for what the legs before it got."""
        count = 1 if self._rules.legs == "thinnest" else len(attempt.sequence)
        legs, attempt.sequence = attempt.sequence[:count], attempt.sequence[count:]
        unsent = {*legs, *attempt.sequence}
        units = min((each for leg, each in enumerate(attempt.filled) if leg not in unsent), default=attempt.units)
        for leg in legs:
            self._send(Order(attempt, leg, False, attempt.legs[leg], sent, units, attempt.limits[leg]))  # noqa: FBT003

    def _send(self, order: Order) -> None:
        ladder, attempt = order.ladder, order.attempt
        held = ladder.delay if ladder.is_live else 0
        order.arrives = order.sent + self._rules.delay(ladder.book, least=attempt.bettor.least) + held
        attempt.waiting += 1
        self._prices.watch(ladder, order.sent)
        self._sent += 1
        heappush(self._due, (order.arrives, self._sent, order))
        if self.orders is not None:
            self.orders.append(order)

    def _answer(self, board: Board, now: int, order: Order, ladder: Ladder | None) -> None:
        """Answer an order by what is shown, and was shown before this step."""
        attempt, row = order.attempt, order.ladder.row
        least, taken = attempt.bettor.least, self._taken[attempt.bettor]
        late = now - order.arrives > ANSWER_S * SECOND
        late |= self._rules.sparse and (ladder is None or ladder.seen < order.arrives)
        if attempt.is_there is None and not (late or order.is_hedge):
            looks = (False,) if order.arrives >= now else (True, False)
            attempt.is_there = (all if least else any)(self._is_there(attempt, before=before) for before in looks)
        if late and least:
            got = Fill(reason=UNOBSERVED)
        elif late:
            got = self._fill(order, order.ladder, taken.left(order.ladder))
        else:
            around = self._prices.around(row, order.arrives, now, order.ladder) or [(ladder, False)]
            fills = [self._fill_at(order, each, taken, before=before) for each, before in around]
            # Ties: at least takes the dearer fill, at most the earlier one, as a later improvement would be luck.
            got = (
                min(fills, key=lambda each: (each.units, -each.cost)) if least else max(fills, key=attrgetter("units"))
            )
        taken.take(row, got.levels)
        if not (late or order.is_hedge) and self._rest_on(board, order, ladder, got):
            return
        self._answered(board, now, order, got)

    def _fill_at(self, order: Order, ladder: Ladder | None, taken: Taken, *, before: bool = False) -> Fill:
        why = refusal(ladder, live=order.ladder.is_live)
        if ladder is None or why:
            return Fill(reason=why)
        return self._fill(order, ladder, taken.left(ladder, before=before))

    def _fill(self, order: Order, ladder: Ladder, levels: Sequence[Level]) -> Fill:
        return fill(ladder, levels, order.units, order.limit.cost, all_or_nothing=self._rules.all_or_nothing)

    def _is_there(self, attempt: Attempt, *, before: bool) -> bool:
        """Whether the best levels of all legs cost no more than the limits, now or before this step."""
        ladders = [self._prices.shown(leg.row, before=before) for leg in attempt.legs]
        return all(
            ladder is not None and not refusal(ladder, live=leg.is_live)
            and ladder.levels and ladder.levels[0].cost <= limit.cost * _SAME
            for ladder, leg, limit in zip(ladders, attempt.legs, attempt.limits, strict=True)
        )  # fmt: skip

    def _answered(self, board: Board, now: int, order: Order, got: Fill) -> None:
        attempt, order.got = order.attempt, got
        attempt.waiting -= 1
        if order.is_hedge:
            attempt.hedged[order.leg] += got.units
            attempt.hedge_cost += got.cost
        else:
            attempt.filled[order.leg], attempt.cost[order.leg] = got.units, got.cost
            attempt.reason = attempt.reason or got.reason
            if attempt.sequence and got.units > 0.0:
                self._next(max(order.arrives, order.until), attempt)
            elif not attempt.waiting:
                self._hedge(board, now, attempt)
        if not attempt.waiting:
            self._done.append(attempt)

    # ---- the other leg ----

    def _hedge(self, board: Board, now: int, attempt: Attempt) -> None:
        """Order what some legs have less than others."""
        most = max(attempt.filled)
        for leg, units in enumerate(attempt.filled):
            if len(attempt.legs) > 1 and most - units > max(OPEN * most, attempt.lot * (1.0 - 1e-6)):
                for ladder, limit, some in self._cheapest(board, attempt, leg, most - units):
                    self._send(Order(attempt, leg, True, ladder, now, some, limit))  # noqa: FBT003

    def _cheapest(
        self, board: Board, attempt: Attempt, leg: int, units: float
    ) -> list[tuple[Ladder, Level, float]]:  # fmt: skip
        """The prices of a leg's bet at which some units cost least, the last level of each, and how many it has."""
        taken, every = self._taken[attempt.bettor], list[tuple[Level, Ladder]]()
        slots = rows_of_bet(board, attempt.legs[leg].key >> BOOK_BITS)
        for slot in slots[board.rows.rejected[slots] == 0].tolist():
            ladder = self._ladders.of_slot(board, slot)
            if ladder is not None and ladder.is_active and (self._books is None or ladder.book.id in self._books):
                every += [(level, ladder) for level in taken.left(ladder)]
        every.sort(key=lambda each: each[0].cost)
        wanted: dict[int, tuple[Ladder, Level, float]] = {}
        for level, ladder in every:
            some = min(level.units, units)
            if some <= 0.0:
                break
            units -= some
            wanted[ladder.row] = ladder, level, some + (wanted[ladder.row][2] if ladder.row in wanted else 0.0)
        return list(wanted.values())

    # ---- orders that rest ----

    def _rest_on(self, board: Board, order: Order, ladder: Ladder | None, got: Fill) -> bool:
        """Let what is left of an order rest, if it may; whether it does."""
        rest = round(self._rules.rest_s * SECOND)
        if not rest or self._rules.all_or_nothing or ladder is None or not ladder.is_active:
            return False
        left = rounded(ladder, [order.limit._replace(units=inf)], order.units - got.units)
        if left <= 1e-9 or got.reason not in _RESTING or left * order.limit.price < ladder.min_stake * (1.0 - 1e-9):
            return False
        if ladder.is_live != order.ladder.is_live or not ladder.book.exchange:
            return False
        against = [self._ladders.of_slot(board, slot) for slot in rows_against(board, ladder.key).tolist()]
        other = next((each for each in against if each is not None and each.book is ladder.book), None)
        if other is None:
            return False
        limit = order.limit
        order.queue = Queue(limit.odds, left * limit.price * limit.odds, other, least=order.attempt.bettor.least)
        order.got, order.until, order.against = got, order.arrives + rest, other.row
        for each in (other, ladder):
            self._prices.watch(each, order.arrives)
        self._resting.append(order)
        return True

    def _rest(self, board: Board, now: int, *, over: bool = False) -> None:
        """Follow the orders that rest."""
        resting, self._resting = self._resting, []
        for order in resting:
            queue, ladder = order.queue, self._prices.shown(order.ladder.row)
            assert queue is not None
            if ladder is None or not ladder.is_active or ladder.is_live != order.ladder.is_live:
                is_over = True  # venues cancel what rests
            else:
                is_over = over or now >= order.until
                changed = self._prices.has_changed(order.against, order.ladder.row)
                # What a snapshot after its end shows may have come after it, too.
                if (changed or is_over) and not (order.attempt.bettor.least and now > order.until):
                    taken = self._taken[order.attempt.bettor]
                    taken.take(ladder.row, queue.follow(self._prices.shown(order.against), taken.left(ladder)))
            if queue.left > 1e-9 and not is_over:
                self._resting.append(order)
                continue
            limit, got = order.limit, order.got
            order.until = min(order.until, now)
            units = queue.filled / (limit.price * limit.odds)
            if order.ladder.lot:
                units = (units / order.ladder.lot + 1e-9) // 1.0 * order.ladder.lot
            cost = cost_of(order.ladder, [(limit, units)]) if units > 1e-9 else 0.0
            reason = got.reason if queue.left > 1e-9 else ""
            filled = got._replace(units=got.units + units, cost=got.cost + cost, reason=reason)
            self._answered(board, now, order, filled)
