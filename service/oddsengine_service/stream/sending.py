"""Events on their way to subscribers: passed to all who get them, and written in rounds; all in the event loop."""

import asyncio
import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from oddsengine_service.node import Node
from oddsengine_service.stream.connection import StreamConnection
from oddsengine_service.stream.group_games import GameGroup
from oddsengine_service.stream.group_opportunities import OpportunityGroup
from oddsengine_service.stream.group_prices import BoardFrames, PriceGroup
from oddsengine_service.stream.stream_events import Wire
from oddsengine_service.stream.subscriber import Subscriber

PAUSE_S = 0.02  # minimum between two rounds of writing; data in between is joined
GIVE_WAY_S = 0.02  # maximum that a round waits for steps of the engine, which need the same processor
_LOOK_S = 0.001  # between two checks whether the step has ended
_PART_S = 0.01  # of a round, without other tasks

Group = PriceGroup | OpportunityGroup | GameGroup


class GroupEvents(NamedTuple):
    """Events of a group from one update."""

    group: Group
    number: int  # of the update
    events: list[bytes]


class _Batch(NamedTuple):
    """Events of a group that are queued."""

    group: Group
    number: int  # of the update
    events: list[bytes]
    place: int  # `global_seq` of the latest update at that time


class _Cohort:
    """Subscribers with the same groups, for whom frames are packed once."""

    __slots__ = ("groups", "subscribers")

    def __init__(self, groups: frozenset[Group]) -> None:
        self.groups = groups
        self.subscribers: dict[Subscriber, None] = {}


class Rounds:
    """Rounds of writing to connections, before each of which `prepare` is called."""

    def __init__(self, node: Node, prepare: Callable[[], None]) -> None:
        self._node, self._prepare = node, prepare
        self._loop = asyncio.get_running_loop()
        self.due: list[StreamConnection] = []  # to write to in the next round
        self._running = False  # a round is scheduled or under way
        self._again = False  # another one is needed after it
        self.next_at = 0.0  # when the next one may begin

    def request(self) -> None:
        """Have a round as soon as one may begin."""
        if self._running:
            self._again = True
        else:
            self._schedule()

    def _schedule(self) -> None:
        self._running = True
        wait = self.next_at - self._loop.time()
        if wait > 0.0:
            self._loop.call_later(wait, self.write)
        else:
            self._loop.call_soon(self.write)

    def write(self) -> None:
        """Send pending data."""
        self._prepare()
        self._again = False
        due, self.due = self.due, []
        self._write_to(due, 0.0, 0.0, None)

    def _write_to(self, due: Sequence[StreamConnection], spent: float, waited: float, since: float | None) -> None:
        """Write to connections; then pause for half as long as that took, so that more is joined.

        It is interrupted while a step runs, because writing to a thousand streams would make the step twice as long,
        and every few milliseconds for other tasks. `since` is when it was interrupted for a step, if it was.
        """
        began = time.perf_counter()
        waited += began - since if since is not None else 0.0
        self._running = False
        for place, connection in enumerate(due):
            waits = self._node.stepping and waited < GIVE_WAY_S
            now = time.perf_counter()
            if waits or (place and now - began > _PART_S):
                self._running = True
                rest = due[place:], spent + now - began, waited, now if waits else None
                self._loop.call_later(_LOOK_S if waits else 0.0, self._write_to, *rest)
                return
            if connection.size:
                connection.flush()
        spent += time.perf_counter() - began
        self.next_at = self._loop.time() + max(PAUSE_S, spent / 2.0)
        if self._again:
            self._schedule()


class Delivery:
    """Events for groups of subscribers, and their numbers.

    Events are queued, and passed to the subscribers when these are next written to, so the cost of an update does not
    depend on the number of subscribers. Before anything else is sent to a subscriber, it is passed the queued events.
    """

    def __init__(self, node: Node, open_: Mapping[Subscriber, None], rounds: Rounds) -> None:
        self.made = self.events = 0
        self._open, self._rounds = open_, rounds
        self.number = 0  # of the latest update
        # The start of `global_seq`, which does not repeat after a restart.
        self._first = int((node.replication.began or node.started) * 1000.0)
        self._sequence = itertools.count(1)
        self._cohorts: dict[frozenset[Group], _Cohort] = {}
        self._queue: list[_Batch] = []  # not yet passed to all subscribers
        self._start = 0  # number of earlier batches

    # ---- numbers ----

    def global_seq(self, number: int) -> int:
        """The number of an update as shown to clients."""
        return self._first + number

    def number_of(self, global_seq: int) -> int:
        """The update for a number shown to clients; out of range for one from before a restart."""
        return global_seq - self._first

    # ---- subscribers ----

    def start(self, subscriber: Subscriber, first: list[bytes]) -> None:
        """Send a new subscriber its first frames."""
        subscriber.connection.begin(subscriber.wire.opening(first, self._sequence))
        subscriber.connection.flush()

    def change(self, subscriber: Subscriber, first: list[bytes]) -> None:
        """Replace a subscription; these frames precede its new snapshot."""
        if subscriber.connection.gone:
            return
        self._enroll(subscriber, frozenset())
        subscriber.waiting = []
        self._begin(subscriber, first, 0)
        subscriber.connection.flush()

    def register(self, group: Group, subscriber: Subscriber, number: int) -> None:
        """Add a subscriber to a group that has reached an update."""
        if subscriber in self._open:
            group.reached = group.reached or number
            known = subscriber.cohort.groups if subscriber.cohort is not None else frozenset()
            self._enroll(subscriber, known | {group})

    def admit(self, subscriber: Subscriber, taken: BoardFrames, frames: list[bytes], since: int, latest: int) -> None:
        """Send a subscriber its snapshot, or what it missed since an update, and the events after it."""
        if subscriber.connection.gone or subscriber.waiting is None:
            return
        self.hand(subscriber)
        waited = [(number, events) for number, events in subscriber.waiting if number > taken.number]
        subscriber.number = taken.number
        subscriber.waiting = None
        beginning = subscriber.wire.beginning(taken.frames, frames)
        self._begin(subscriber, beginning, since)
        self._begin(subscriber, [taken.complete], min(taken.number or latest, latest))
        for update, events in waited:
            self._begin(subscriber, events, update)
        self.events += len(beginning) + 1 + sum(len(events) for _, events in waited)
        subscriber.connection.flush()

    def stop(self, subscriber: Subscriber) -> None:
        """Deliver nothing more to a subscriber."""
        self._enroll(subscriber, frozenset())

    def _enroll(self, subscriber: Subscriber, groups: frozenset[Group]) -> None:
        """Subscribe to the events of these groups from now on."""
        self.hand(subscriber)
        if (left := subscriber.cohort) is not None:
            del left.subscribers[subscriber]
            if not left.subscribers:
                del self._cohorts[left.groups]
        subscriber.cohort = None
        if groups:
            subscriber.cohort = self._cohorts.setdefault(groups, _Cohort(groups))
            subscriber.cohort.subscribers[subscriber] = None

    def _begin(self, subscriber: Subscriber, frames: list[bytes], number: int) -> None:
        """Queue frames that bring a subscriber to an update; 0 for none."""
        place = self.global_seq(number) if number else 0
        subscriber.connection.begin(subscriber.wire.numbered(frames, self._sequence, place), place)

    # ---- events ----

    def deliver(self, batches: list[GroupEvents], latest: int) -> None:
        """Send groups their events, each with the number of its update; all up to `latest` have been delivered then."""
        self.number = latest
        for group, number, events in batches:
            group.reached = number
            if events:
                self._queue.append(_Batch(group, number, events, self.global_seq(latest)))
                self.made += len(events)
        if self._queue:
            self._rounds.request()

    def send(self, events: bytes, subscriber: Subscriber, number: int = 0) -> None:
        """Send a subscriber an event that has no id and is not part of the board."""
        self.hand(subscriber)
        connection = subscriber.connection
        connection.take(connection.packed([((events,), self.global_seq(number) if number else 0)]))
        self._rounds.due.append(connection)
        self._rounds.request()

    def hand_out(self) -> None:
        """Pass queued events to all subscribers."""
        queued: dict[Group, list[int]] = {}
        for place, batch in enumerate(self._queue):
            queued.setdefault(batch.group, []).append(place)
        due = self._rounds.due
        for cohort in self._cohorts.values() if queued else ():
            places = sorted(place for group in cohort.groups for place in queued.get(group, ()))
            if not places:
                continue
            batches = [self._queue[place] for place in places]
            first = min((batch.number for batch in batches if isinstance(batch.group, PriceGroup)), default=math.inf)
            packed: Any = None
            count = sum(len(batch.events) for batch in batches)
            for subscriber in cohort.subscribers:
                if subscriber.waiting is not None or subscriber.number >= first or subscriber.handed > self._start:
                    self.hand(subscriber)
                    continue
                connection = subscriber.connection
                if packed is None:
                    packed = connection.packed(self._frames(subscriber.wire, batches))
                connection.take(packed)
                due.append(connection)
                self.events += count
        self._start += len(self._queue)
        self._queue.clear()

    def hand(self, subscriber: Subscriber) -> None:
        """Pass queued events to one subscriber."""
        rest = self._queue[max(subscriber.handed - self._start, 0) :]
        subscriber.handed = self._start + len(self._queue)
        for batch in rest:
            prices = isinstance(batch.group, PriceGroup)
            if subscriber.cohort is None or batch.group not in subscriber.cohort.groups:
                continue
            if subscriber.waiting is not None:
                if prices:  # all other events are in its snapshot
                    subscriber.waiting.append((batch.number, batch.events))
            elif prices and batch.number <= subscriber.number:  # already in its snapshot
                continue
            else:
                connection = subscriber.connection
                connection.take(connection.packed(self._frames(subscriber.wire, [batch])))
                self._rounds.due.append(connection)
                self.events += len(batch.events)

    def _frames(self, wire: Wire, batches: Iterable[_Batch]) -> list[tuple[list[bytes], int]]:
        return [(wire.numbered(each.events, self._sequence, each.place), each.place) for each in batches]
