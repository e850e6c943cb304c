"""Lines: the streams of a node in its event loop: subscribers, delivery, heartbeats and timeouts."""

import asyncio
import itertools
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from oddsengine_service.monitoring import log
from oddsengine_service.node import Node
from oddsengine_service.stream.events import Wire
from oddsengine_service.stream.games import GameGroup
from oddsengine_service.stream.opportunities import OpportunityGroup
from oddsengine_service.stream.prices import BoardFrames, PriceGroup
from oddsengine_service.stream.sse import clock
from oddsengine_service.stream.subscriber import ReaderLimits, Subscriber

HEARTBEAT_S = 30.0
PARTS = 30  # subscribers are divided into this many parts, which get heartbeats in turn
_STALE_AFTER = ("feed", "log")  # failures of the node after which no prices arrive
CHECK_S = 0.5  # between two checks of keys, stalled readers and failures
PAUSE_S = 0.02  # minimum between two rounds of writing; data in between is joined
GIVE_WAY_S = 0.02  # maximum that a round waits for steps of the engine, which need the same processor
_LOOK_S = 0.001  # between two looks whether the step has ended
_PART_S = 0.01  # of a round, without other tasks
UPSTREAM = "upstream_error"

Group = PriceGroup | OpportunityGroup | GameGroup


class _Batch(NamedTuple):
    """Events of a group from one update."""

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


class Subscribers:
    """All subscribers of a node, and their groups.

    Events are queued, and passed to the subscribers when these are next written to, so the cost of an update does not
    depend on the number of subscribers. Before anything else is sent to a subscriber, it is passed the queued events.
    """

    def __init__(self, node: Node, *, heartbeat: float = HEARTBEAT_S, **bounds: Any) -> None:
        self.closed = False
        self.made = self.events = self.cuts = 0
        self._node = node
        self._heartbeat, self._bounds = heartbeat, ReaderLimits(**bounds)
        self._loop = asyncio.get_running_loop()
        self.number = 0  # of the latest update
        # The start of `global_seq`, which does not repeat after a restart.
        self._first = int((node.replication.began or node.started) * 1000.0)
        self._sequence, self._turns = itertools.count(1), itertools.count()
        self._subscribers: dict[Subscriber, None] = {}
        self._cohorts: dict[frozenset[Group], _Cohort] = {}
        self._queue: list[_Batch] = []  # not yet passed to all subscribers
        self._start = 0  # number of earlier batches
        self._due: list[Subscriber] = []
        self._flushing, self._flush_at, self._check_at = False, 0.0, 0.0
        self._failures: frozenset[str] = frozenset()
        self._turn = self._look = 0
        self._looks = max(1, round(min(5.0, self._bounds.stalled / 6.0) / CHECK_S))  # ticks between two at a reader
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tick()
        self._beat()

    # ---- subscribers ----

    def enter(
        self, send: Any, account: str, key: str, check: Callable[[], bool], wire: Wire, first: list[bytes],
        kind: type[Subscriber] = Subscriber,
    ) -> Subscriber:  # fmt: skip
        """Add a subscriber, and send it the first frames."""
        made = kind(send, account, key, check, self._bounds, self._cut, wire)
        made.turn = next(self._turns)
        self._subscribers[made] = None
        made.begin(made.wire.opening(first, self._sequence))
        made.flush()
        return made

    def change(self, subscriber: Subscriber, first: list[bytes]) -> None:
        """Replace a subscription; these frames precede its new snapshot."""
        if subscriber.gone:
            return
        self._enroll(subscriber, frozenset())
        subscriber.waiting = []
        self._begin(subscriber, first, 0)
        subscriber.flush()

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber immediately."""
        subscriber.gone = True
        subscriber.drop()
        del self._subscribers[subscriber]
        self._enroll(subscriber, frozenset())

    @property
    def streams(self) -> int:
        """Number of open streams."""
        return len(self._subscribers)

    def end_all(self) -> None:
        """End every stream after sending what is pending."""
        self._hand_out()
        for subscriber in tuple(self._subscribers):
            subscriber.end()

    async def close(self, within: float) -> None:
        """End every stream; abort those that do not receive the rest in time."""
        self.closed = True
        for timer in self._timers.values():
            timer.cancel()
        self.end_all()
        until = time.monotonic() + within
        while self._subscribers and time.monotonic() < until:
            await asyncio.sleep(0.01)
        for subscriber in tuple(self._subscribers):
            subscriber.cut("the server stops")

    # ---- delivery ----

    def deliver(self, batches: list[tuple[Group, int, list[bytes]]], latest: int) -> None:
        """Send groups their events, each with the number of its update; all up to `latest` have been delivered then."""
        self.number = latest
        for group, number, events in batches:
            group.reached = number
            if events:
                self._queue.append(_Batch(group, number, events, self.global_seq(latest)))
                self.made += len(events)
        self._flush_soon()

    def _hand_out(self) -> None:
        """Pass queued events to all subscribers."""
        queued: dict[Group, list[int]] = {}
        for place, batch in enumerate(self._queue):
            queued.setdefault(batch.group, []).append(place)
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
                    self._hand(subscriber)
                else:
                    if packed is None:
                        packed = subscriber.packed(self._frames(subscriber.wire, batches))
                    subscriber.take(packed)
                    self._due.append(subscriber)
                    self.events += count
        self._start += len(self._queue)
        self._queue.clear()

    def _hand(self, subscriber: Subscriber) -> None:
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
                subscriber.take(subscriber.packed(self._frames(subscriber.wire, [batch])))
                self._due.append(subscriber)
                self.events += len(batch.events)

    def _frames(self, wire: Wire, batches: Iterable[_Batch]) -> list[tuple[list[bytes], int]]:
        return [(wire.numbered(each.events, self._sequence, each.place), each.place) for each in batches]

    def _enroll(self, subscriber: Subscriber, groups: frozenset[Group]) -> None:
        """Subscribe to the events of these groups from now on."""
        self._hand(subscriber)
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
        subscriber.begin(subscriber.wire.numbered(frames, self._sequence, place), place)

    def global_seq(self, number: int) -> int:
        """The number of an update as shown to clients."""
        return self._first + number

    def number_of(self, global_seq: int) -> int:
        """The update for a number shown to clients; out of range for one from before a restart."""
        return global_seq - self._first

    def _flush_soon(self) -> None:
        if not self._flushing and (self._due or self._queue):
            self._flushing = True
            wait = self._flush_at - self._loop.time()
            if wait > 0.0:
                self._loop.call_later(wait, self._flush)
            else:
                self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send pending data."""
        now = self._loop.time()
        if now >= self._check_at:  # all readers have been written to since they got what is pending
            self._check_at = now + CHECK_S
            self._cut_slow()
        self._hand_out()
        due, self._due = self._due, []
        self._write_to(due, 0.0, 0.0, None)

    def _write_to(self, due: Sequence[Subscriber], spent: float, waited: float, since: float | None) -> None:
        """Write to subscribers; then pause for half as long as that took, so that more is joined.

        It is interrupted while a step runs, because writing to a thousand streams would make the step twice as long,
        and every few milliseconds for other tasks. `since` is when it was interrupted for a step, if it was.
        """
        began = time.perf_counter()
        waited += began - since if since is not None else 0.0
        self._flushing = False
        for place, subscriber in enumerate(due):
            waits = self._node.stepping and waited < GIVE_WAY_S
            now = time.perf_counter()
            if waits or (place and now - began > _PART_S):
                self._flushing = True
                rest = due[place:], spent + now - began, waited, now if waits else None
                self._loop.call_later(_LOOK_S if waits else 0.0, self._write_to, *rest)
                return
            if subscriber.size:
                subscriber.flush()
        spent += time.perf_counter() - began
        self._flush_at = self._loop.time() + max(PAUSE_S, spent / 2.0)
        self._flush_soon()

    def _cut_slow(self) -> None:
        """Cut off readers with too many bytes overdue: for one reader, for an account, or for the node.

        What was queued since the previous call does not count: a large step is no sign of a slow reader.
        """
        bounds = self._bounds
        overdue = [(size, subscriber) for subscriber in self._subscribers if (size := subscriber.overdue())]
        overdue.sort(key=lambda each: each[0], reverse=True)
        accounts: dict[str, list[tuple[int, Subscriber]]] = {}
        for size, subscriber in overdue:
            if size > bounds.reader_bytes:
                subscriber.cut("the client is too slow")
            else:
                accounts.setdefault(subscriber.account, []).append((size, subscriber))
        for readers in accounts.values():
            _shed(readers, bounds.account_bytes, "the clients of the account are too slow")
        left = [each for each in overdue if not each[1].gone]
        _shed(left, bounds.node_bytes, "the clients of the node are too slow")

    def register(self, group: Group, subscriber: Subscriber, number: int) -> None:
        """Add a subscriber to a group that has reached an update."""
        if subscriber in self._subscribers:
            group.reached = group.reached or number
            known = subscriber.cohort.groups if subscriber.cohort is not None else frozenset()
            self._enroll(subscriber, known | {group})

    def admit(self, subscriber: Subscriber, taken: BoardFrames, frames: list[bytes], since: int, latest: int) -> None:
        """Send a subscriber its snapshot, or what it missed since an update, and the events after it."""
        if subscriber.gone or subscriber.waiting is None:
            return
        self._hand(subscriber)
        waited = [(number, events) for number, events in subscriber.waiting if number > taken.number]
        subscriber.number = taken.number
        subscriber.waiting = None
        beginning = subscriber.wire.beginning(taken.frames, frames)
        self._begin(subscriber, beginning, since)
        self._begin(subscriber, [taken.complete], min(taken.number or latest, latest))
        for update, events in waited:
            self._begin(subscriber, events, update)
        self.events += len(beginning) + 1 + sum(len(events) for _, events in waited)
        subscriber.flush()

    def send(self, events: bytes, subscriber: Subscriber, number: int = 0) -> None:
        """Send a subscriber an event that has no id and is not part of the board."""
        self._hand(subscriber)
        subscriber.take(subscriber.packed([((events,), self.global_seq(number) if number else 0)]))
        self._due.append(subscriber)
        self._flush_soon()

    # ---- timers ----

    def _beat(self) -> None:
        """Send heartbeats, to one part of the subscribers at a time."""
        if self.closed:
            return
        rounds = PARTS if self._heartbeat >= 3.0 else 1
        self._timers["beat"] = self._loop.call_later(self._heartbeat / rounds, self._beat)
        self._turn = (self._turn + 1) % rounds
        moment = clock(self._node.clock.now())
        events: dict[Wire, bytes] = {}
        self._hand_out()
        for subscriber in self._subscribers:
            if subscriber.turn % rounds != self._turn:
                continue
            wire = subscriber.wire
            if subscriber.waiting is not None:
                subscriber.idle()
            else:
                if wire not in events:
                    events[wire] = wire.heartbeat(moment)
                self.send(self._holds(subscriber) + events[wire], subscriber, self.number)

    def _holds(self, subscriber: Subscriber) -> bytes:
        """A comment with the update that a subscriber has reached, if any."""
        if not subscriber.wire.comments:
            return b""
        said = []
        enrolled = subscriber.cohort.groups if subscriber.cohort is not None else ()
        for group in subscriber.groups:
            if group not in enrolled:  # of a subscription that begins
                continue
            if isinstance(group, PriceGroup):
                said.append(b"prices %d" % max(group.reached, subscriber.number))
            elif isinstance(group, OpportunityGroup) and group.reached:
                said.append(b"opportunities %d" % group.reached)
        return b": %b\n" % b", ".join(said) if said else b""

    def _tick(self) -> None:
        """Check keys, stalled readers and sources."""
        if self.closed:
            return
        self._timers["tick"] = self._loop.call_later(CHECK_S, self._tick)
        self._look = (self._look + 1) % self._looks
        now = time.monotonic()
        valid: dict[Callable[[], bool], bool] = {}  # checks of streams with the same secret and rights are equal
        for subscriber in tuple(self._subscribers):
            if subscriber.check not in valid:
                valid[subscriber.check] = _holds(subscriber.check)
            if not valid[subscriber.check]:
                self._hand(subscriber)
                subscriber.revoke()
            if subscriber.lingers(now) or (subscriber.turn % self._looks == self._look and subscriber.stalls(now)):
                subscriber.cut("the client is not reading")
        failures = frozenset(self._failing())
        for name in sorted(failures - self._failures):
            message = f"source {name} is not responding; its prices will become stale"
            for subscriber in self._subscribers:
                self.send(subscriber.wire.error(UPSTREAM, message), subscriber)
        self._failures = failures

    def _failing(self) -> Iterable[str]:
        yield from (name for name in _STALE_AFTER if name in self._node.failures)
        feeds = self._node.feeds
        for source in feeds.statuses() if feeds is not None else ():
            if source.status == "down":
                yield source.name

    def _cut(self, subscriber: Subscriber, reason: str) -> None:
        self.cuts += 1
        log.event(
            "stream cut off",
            logging.WARNING,
            account=subscriber.account,
            key=subscriber.key,
            reason=reason,
            waiting=subscriber.size,
        )


def _shed(readers: Sequence[tuple[int, Subscriber]], most: int, reason: str) -> None:
    """Cut off the first readers until the rest has at most so many bytes."""
    total = sum(size for size, _ in readers)
    for size, subscriber in readers:
        if total <= most:
            break
        subscriber.cut(reason)
        total -= size


def _holds(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:
        return False
