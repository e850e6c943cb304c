"""Lines: the streams of a node in its event loop. Who listens, what they are sent, and what time does to them."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.log import Log
from service.node import Node
from service.stream.finds import Finds
from service.stream.games import Games
from service.stream.prices import Prices, Taken
from service.stream.sse import RETRY, Failure, Heartbeat, clock, frame, numbered
from service.stream.subscriber import LIMIT, Subscriber

HEARTBEAT_S = 30.0
PARTS = 30  # of the subscribers, that get their heartbeats one after the other
CHECK_S = 0.5  # between two looks at keys, stalled readers and failures
PAUSE_S = 0.02  # between two rounds of writing, at least; what comes meanwhile is joined
UPSTREAM = "upstream_error"

Group = Prices | Finds | Games


class _Members:
    """A group as the event loop has it."""

    __slots__ = ("prices", "subscribers")

    def __init__(self, *, prices: bool) -> None:
        self.prices = prices  # their events are kept for those who are still waiting
        self.subscribers: dict[Subscriber, None] = {}


class Lines:
    """Every subscriber of a node, and the groups they are of."""

    def __init__(self, node: Node, log: Log, *, heartbeat: float = HEARTBEAT_S, limit: int = LIMIT) -> None:
        self.closed = False
        self.events = self.cuts = 0
        self._node, self._log = node, log
        self._heartbeat, self._limit = heartbeat, limit
        self._loop = asyncio.get_running_loop()
        self._sequence, self._turns = itertools.count(1), itertools.count()
        self._subscribers: dict[Subscriber, None] = {}
        self._groups: dict[Group, _Members] = {}
        self._due: list[Subscriber] = []
        self._flushing, self._flush_at = False, 0.0
        self._failures: frozenset[str] = frozenset()
        self._turn = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tick()
        self._beat()

    # ---- who listens ----

    def enter(self, send: Any, account: str, key: str, check: Callable[[], bool], connected: bytes) -> Subscriber:
        """Somebody new, who gets `connected` at once."""
        made = Subscriber(send, account, key, check, self._cut, self._limit)
        made.turn = next(self._turns)
        self._subscribers[made] = None
        made.begin([RETRY, *numbered([connected], self._sequence)])
        made.flush()
        return made

    def leave(self, subscriber: Subscriber) -> None:
        """Forget somebody; at once."""
        subscriber.gone = True
        subscriber.drop()
        del self._subscribers[subscriber]
        for members in self._groups.values():
            members.subscribers.pop(subscriber, None)

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._subscribers)

    def end_all(self) -> None:
        """End every stream once what waits is sent."""
        for subscriber in tuple(self._subscribers):
            subscriber.end()

    async def close(self, within: float) -> None:
        """End every stream; cut those off that do not take the rest in time."""
        self.closed = True
        for timer in self._timers.values():
            timer.cancel()
        self.end_all()
        until = time.monotonic() + within
        while self._subscribers and time.monotonic() < until:
            await asyncio.sleep(0.01)
        for subscriber in tuple(self._subscribers):
            subscriber.cut("the server stops")

    # ---- what goes out ----

    def deliver(self, batches: list[tuple[Group, int, list[bytes]]]) -> None:
        """Give groups their events, each with the number of its update."""
        for group, number, frames in batches:
            members = self._groups.get(group)
            if members is None or not members.subscribers:
                continue
            joined = b"".join(numbered(frames, self._sequence))
            count = 0
            for subscriber in members.subscribers:
                if subscriber.waiting is None:
                    subscriber.take(joined)
                    self._due.append(subscriber)
                    count += 1
                elif members.prices:
                    subscriber.waiting.append((number, frames))
            self.events += count * len(frames)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flushing and self._due:
            self._flushing = True
            wait = self._flush_at - self._loop.time()
            if wait > 0.0:
                self._loop.call_later(wait, self._flush)
            else:
                self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send what waits; then let as much time pass as that took, so that more is joined and others run too."""
        began = time.perf_counter()
        self._flushing = False
        due, self._due = self._due, []
        for subscriber in due:
            if subscriber.size:
                subscriber.flush()
        spent = time.perf_counter() - began
        self._flush_at = self._loop.time() + spent + max(PAUSE_S, spent)

    def register(self, group: Group, subscriber: Subscriber) -> None:
        """Make somebody one of a group."""
        if subscriber in self._subscribers:
            members = self._groups.get(group)
            if members is None:
                members = self._groups[group] = _Members(prices=isinstance(group, Prices))
            members.subscribers[subscriber] = None

    def admit(self, subscriber: Subscriber, taken: Taken, frames: list[bytes]) -> None:
        """Send somebody the beginning, what else is open, and what came after the beginning's update."""
        if subscriber.gone or subscriber.waiting is None:
            return
        later = [body for number, bodies in subscriber.waiting if number > taken.number for body in bodies]
        subscriber.waiting = None
        every = [*taken.frames[:-1], *frames, taken.frames[-1], *later]
        subscriber.begin(numbered(every, self._sequence))
        self.events += len(every)
        subscriber.flush()

    def close_group(self, group: Group) -> None:
        """Forget a group that nobody is of."""
        self._groups.pop(group, None)

    def refuse(self, subscriber: Subscriber) -> None:
        """End a stream that would need one view too many."""
        message = "too many sets of books are followed already; ask for a usual one, or later"
        subscriber.take(frame("error", Failure(UPSTREAM, message)))
        subscriber.end()

    def _tell_all(self, told: bytes, some: Iterable[Subscriber]) -> None:
        for subscriber in some:
            subscriber.take(told)
            self._due.append(subscriber)
        self._flush_soon()

    # ---- what time does ----

    def _beat(self) -> None:
        """Send heartbeats, to a part of the subscribers at a time."""
        parts = PARTS if self._heartbeat >= 3.0 else 1
        self._turn = (self._turn + 1) % parts
        told = frame("heartbeat", Heartbeat(clock()))
        self._tell_all(told, [s for s in self._subscribers if s.turn % parts == self._turn and s.waiting is None])
        if not self.closed:
            self._timers["beat"] = self._loop.call_later(self._heartbeat / parts, self._beat)

    def _tick(self) -> None:
        """Look after keys, readers and sources."""
        if self.closed:
            return
        self._timers["tick"] = self._loop.call_later(CHECK_S, self._tick)
        now = time.monotonic()
        valid: dict[str, bool] = {}
        for subscriber in tuple(self._subscribers):
            if subscriber.key not in valid:
                valid[subscriber.key] = _holds(subscriber.check)
            if not valid[subscriber.key]:
                subscriber.end()
            if subscriber.overdue(now):
                subscriber.cut("it reads nothing")
        failures = frozenset(self._failing())
        for name in sorted(failures - self._failures):
            message = f"the source {name} does not answer; its prices age out until it does"
            self._tell_all(frame("error", Failure(UPSTREAM, message)), tuple(self._subscribers))
        self._failures = failures

    def _failing(self) -> Iterable[str]:
        yield from tuple(self._node.failures)
        feeds = self._node.parts.get("hub")
        for source in feeds.statuses() if feeds is not None else ():
            if source.status == "down":
                yield source.name

    def _cut(self, subscriber: Subscriber, reason: str) -> None:
        self.cuts += 1
        self._log.say(
            "stream cut off", account=subscriber.account, key=subscriber.key, reason=reason, waiting=subscriber.size
        )


def _holds(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:
        return False


class LineMetrics(Collector):
    """Streams, counted when somebody looks."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def collect(self) -> Iterable[Metric]:
        """Every figure."""
        lines = self._lines
        yield GaugeMetricFamily("oddsengine_streams", "Streams that are open", lines.streams)
        yield CounterMetricFamily("oddsengine_stream_events", "Events sent on streams", lines.events)
        yield CounterMetricFamily("oddsengine_stream_cuts", "Streams cut off because their reader was slow", lines.cuts)
