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

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import Literal, NamedTuple

from oddsengine.board.state import Board
from oddsengine.catalog.books import Book
from oddsengine.columns import SECOND
from oddsengine.execution.ladders import BoardLadders, Ladder, Ladders, Level, refusal
from oddsengine.execution.plans import Plan, plan_for
from oddsengine.execution.queues import Queue
from oddsengine.execution.taking import NOTHING, Fill, Taken, cost_of, fill, largest, rounded, smallest, units_by_odds
from oddsengine.execution.watched import WatchedPrices
from oddsengine.identity.layout import BOOK_BITS

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


@dataclass(slots=True, eq=False)
class Bettor:
    """Whose orders take liquidity from each other."""

    stake: float
    least: bool
    taken: Taken = field(default_factory=Taken)

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
    plan: Plan
    sequence: tuple[int, ...]  # legs that are not sent yet
    filled: list[float]  # units, without hedges
    cost: list[float]
    hedged: list[float]  # units
    hedge_cost: float = 0.0
    waiting: int = 0  # orders that are not answered
    is_there: bool | None = None  # whether it was still there when its first order arrived; None: unobserved
    reason: str = ""  # why nothing was ordered, or the first leg that fell short did

    @property
    def least_open(self) -> float:
        """The difference between the payouts of its legs up to which it is not open."""
        return self.plan.lot * (1.0 - 1e-6)

    @property
    def outcome(self) -> str:
        """One of `OUTCOMES`."""
        if not any(self.cost):
            return "none"
        both = [units + hedge for units, hedge in zip(self.filled, self.hedged, strict=True)]
        if max(both) - min(both) > max(OPEN * max(both), self.least_open):
            return "open"
        if self.hedge_cost:
            return "hedged"
        return "part" if self.plan.is_short or self.reason else "whole"


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
        self._sent = self._last_step = 0
        self._due: list[tuple[int, int, Order]] = []  # by arrival, then as they were sent
        self._unseen: list[Order] = []  # have arrived, and their price has not been seen since
        self._resting: list[Order] = []
        self._prices = WatchedPrices()
        self._bettors: dict[str, list[Bettor]] = {}  # by kind, those of a stake together
        self._users: dict[int, set[Bettor]] = defaultdict(set)  # by price: who took from it, while it shows that
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
        shown, rows = BoardLadders(self._ladders, board), list(changed)
        changers = set[Bettor]()
        # What is still to be answered arrives later than this, unless it follows an order that rests.
        since = self._last_step - _WAIT_S * SECOND
        self._prices.begin(min([since, *(order.until for order in self._resting)]))
        self._last_step = now
        for row, ladder in zip(rows, shown.of_ids(rows), strict=True):
            self._prices.change(row, ladder, now)
            users, levels = self._users.pop(row, set()), units_by_odds(ladder)
            for bettor in users:
                bettor.taken.observe(row, levels)
                changers.add(bettor)
                if row in bettor.taken.rows:
                    self._users[row].add(bettor)
        self._rest(shown, now)
        self._answer_due(shown, now)
        new = list(found)
        shown.of_slots(slot for each in new for slot in each.slots)  # together, which is faster than one by one
        for each in new:
            self._begin(now, each, shown.of_slots(each.slots))
        self._answer_due(shown, now)  # what arrives at once
        for bettor in changers:
            bettor.taken.passed()
        if len(self.watched) > self._most:
            self._forget()

    def _answer_due(self, shown: BoardLadders, now: int) -> None:
        """Answer the orders that have arrived; the lower bound waits until the price is seen again."""
        given_up, arrived = now - _WAIT_S * SECOND, [order for at, _, order in self._due if at <= now]
        waiting, self._unseen = self._unseen, []
        seen = self._last_seen(shown, now, {order.ladder.row for order in (*waiting, *arrived)})
        for order in chain(waiting, self._arriving(now)):
            row = order.ladder.row
            if row not in seen:  # it was sent in this step
                seen |= self._last_seen(shown, now, {leg.row for leg in order.attempt.legs} | {row})
            if order.attempt.bettor.least and order.arrives > max(given_up, seen[row]):
                self._unseen.append(order)
            else:
                self._answer(shown, now, order)

    def _last_seen(self, shown: BoardLadders, now: int, rows: Collection[int]) -> dict[int, int]:
        """When some prices were seen last; a price that is gone counts as seen now."""
        out, prices = dict[int, int](), self._prices
        for row, at in zip(rows, shown.seen_at(rows), strict=True):
            # An order that arrives at the moment of a change may have got either price: it waits for the next look.
            out[row] = now if prices.shown(row) is None else max(at, prices.changed_at(row) - 1)
        return out

    def _arriving(self, now: int) -> Iterator[Order]:
        """The orders that have arrived, also of those that are sent in the meantime."""
        while self._due and self._due[0][0] <= now:
            yield heappop(self._due)[-1]

    def finish(self, board: Board, now: int) -> None:
        """The history is over: orders on their way find nothing."""
        shown = BoardLadders(self._ladders, board)
        self._prices.begin(0)
        while self._resting or self._unseen or self._due:
            self._rest(shown, now, over=True)
            unseen, self._unseen = self._unseen, []
            for order in unseen:  # as they stand
                self._answer(shown, now, order)
            if self._due:
                self._answered(shown, now, heappop(self._due)[-1], Fill(reason=UNOBSERVED))

    def take_done(self) -> list[Attempt]:
        """The attempts that have ended since the last call."""
        done, self._done = self._done, []
        return done

    def _forget(self) -> None:
        """Watch no longer what does not matter any more."""
        kept = set(self._users)
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
        if new.kind not in self._bettors:
            self._bettors[new.kind] = [Bettor(stake, least) for stake in self._rules.stakes for least in (True, False)]
        stake, before, plan = 0.0, list[Sequence[Level]](), None
        for bettor in self._bettors[new.kind]:
            left = [bettor.taken.left(leg) for leg in legs]
            if plan is None or bettor.stake != stake or left != before:  # both bounds of a stake mostly have one plan
                stake, before, plan = bettor.stake, left, plan_for(legs, left, new.worth, bettor.stake)
            nothing = [0.0] * len(legs)
            attempt = Attempt(
                new.number, bettor, legs, plan, plan.sequence, nothing, [*nothing], [*nothing], reason=plan.reason
            )
            if plan.sequence:
                self._next(now, attempt)
            else:
                self._done.append(attempt)

    def _next(self, sent: int, attempt: Attempt) -> None:
        """Send the next leg, or all, for what the legs before it got."""
        count = 1 if self._rules.legs == "thinnest" else len(attempt.sequence)
        legs, attempt.sequence, plan = attempt.sequence[:count], attempt.sequence[count:], attempt.plan
        answered = plan.sequence[: len(plan.sequence) - len(attempt.sequence) - len(legs)]
        units = min([attempt.filled[leg] for leg in answered], default=plan.units)
        for leg in legs:
            self._send(Order(attempt, leg, False, attempt.legs[leg], sent, units, plan.limits[leg]))  # noqa: FBT003

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

    def _answer(self, shown: BoardLadders, now: int, order: Order) -> None:
        """Answer an order by what is shown, and was shown before this step."""
        attempt, row, arrives = order.attempt, order.ladder.row, order.arrives
        least, taken, ladder = attempt.bettor.least, attempt.bettor.taken, self._prices.shown(row)
        late = now - arrives > ANSWER_S * SECOND
        late |= self._rules.sparse and (ladder is None or shown.seen_at((row,))[0] < arrives)
        if attempt.is_there is None and not (late or order.is_hedge):
            looks = (False,) if arrives >= now else (True, False)
            attempt.is_there = (all if least else any)(self._is_there(attempt, before=before) for before in looks)
        if late and least:
            got = Fill(reason=UNOBSERVED)
        elif late:
            got = self._fill(order, order.ladder, taken.left(order.ladder))
        else:
            around = self._prices.around(row, arrives, order.ladder) or [(ladder, False)]
            fills = (self._fill_at(order, each, taken, before=before) for each, before in around)
            got = smallest(fills) if least else largest(fills, order.units)
        self._take(attempt.bettor, row, got.levels)
        if not (late or order.is_hedge) and self._rest_on(shown, order, ladder, got):
            return
        self._answered(shown, now, order, got)

    def _take(self, bettor: Bettor, row: int, levels: Sequence[tuple[float, float]]) -> None:
        """A bettor takes some units of some levels of a price."""
        if levels:
            bettor.taken.take(row, levels)
            self._users[row].add(bettor)

    def _fill_at(self, order: Order, ladder: Ladder | None, taken: Taken, *, before: bool = False) -> Fill:
        why = refusal(ladder, live=order.ladder.is_live)
        if ladder is None or why:
            return Fill(reason=why)
        return self._fill(order, ladder, taken.left(ladder, before=before))

    def _fill(self, order: Order, ladder: Ladder, levels: Sequence[Level]) -> Fill:
        return fill(ladder, levels, order.units, order.limit.cost, all_or_nothing=self._rules.all_or_nothing)

    def _is_there(self, attempt: Attempt, *, before: bool) -> bool:
        """Whether the best levels of all legs cost no more than the limits, now or before this step."""
        for leg, limit in zip(attempt.legs, attempt.plan.limits, strict=True):
            ladder = self._prices.shown(leg.row, before=before)
            if ladder is None or not ladder.levels or refusal(ladder, live=leg.is_live):
                return False
            if ladder.levels[0].cost > limit.cost * _SAME:
                return False
        return True

    def _answered(self, shown: BoardLadders, now: int, order: Order, got: Fill) -> None:
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
                self._hedge(shown, now, attempt)
        if not attempt.waiting:
            self._done.append(attempt)

    # ---- the other leg ----

    def _hedge(self, shown: BoardLadders, now: int, attempt: Attempt) -> None:
        """Order what some legs have less than others."""
        most = max(attempt.filled)
        for leg, units in enumerate(attempt.filled):
            if len(attempt.legs) > 1 and most - units > max(OPEN * most, attempt.least_open):
                for ladder, limit, some in self._cheapest(shown, attempt, leg, most - units):
                    self._send(Order(attempt, leg, True, ladder, now, some, limit))  # noqa: FBT003

    def _cheapest(
        self, shown: BoardLadders, attempt: Attempt, leg: int, units: float
    ) -> list[tuple[Ladder, Level, float]]:  # fmt: skip
        """The prices of a leg's bet at which some units cost least, the last level of each, and how many it has."""
        taken, every = attempt.bettor.taken, list[tuple[Level, Ladder]]()
        for ladder in shown.of_bet(attempt.legs[leg].key >> BOOK_BITS):
            if self._books is None or ladder.book.id in self._books:
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

    def _rest_on(self, shown: BoardLadders, order: Order, ladder: Ladder | None, got: Fill) -> bool:
        """Let what is left of an order rest, if it may; whether it does."""
        rest = round(self._rules.rest_s * SECOND)
        if not rest or self._rules.all_or_nothing or ladder is None or not ladder.is_active:
            return False
        left = rounded(ladder, [order.limit._replace(units=inf)], order.units - got.units)
        if left <= 1e-9 or got.reason not in _RESTING or left * order.limit.price < ladder.min_stake * (1.0 - 1e-9):
            return False
        if ladder.is_live != order.ladder.is_live or not ladder.book.exchange:
            return False
        other = shown.against(ladder)
        if other is None:
            return False
        limit = order.limit
        order.queue = Queue(limit.odds, left * limit.price * limit.odds, other, least=order.attempt.bettor.least)
        order.got, order.until, order.against = got, order.arrives + rest, other.row
        for each in (other, ladder):
            self._prices.watch(each, order.arrives)
        self._resting.append(order)
        return True

    def _rest(self, shown: BoardLadders, now: int, *, over: bool = False) -> None:
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
                    bettor, against = order.attempt.bettor, self._prices.shown(order.against)
                    self._take(bettor, ladder.row, queue.follow(against, bettor.taken.left(ladder)))
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
            self._answered(shown, now, order, filled)
