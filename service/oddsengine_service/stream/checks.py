"""Timers in the event loop: heartbeats, and checks of keys, readers and sources."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from oddsengine_service.monitoring import log
from oddsengine_service.node import Node
from oddsengine_service.stream.connection import ReaderLimits
from oddsengine_service.stream.group_opportunities import OpportunityGroup
from oddsengine_service.stream.group_prices import PriceGroup
from oddsengine_service.stream.sending import Delivery
from oddsengine_service.stream.sse import clock
from oddsengine_service.stream.stream_events import Wire
from oddsengine_service.stream.subscriber import Subscriber

PARTS = 30  # subscribers are divided into this many parts, which get heartbeats in turn
_STALE_AFTER = ("feed", "log")  # failures of the node after which no prices arrive
CHECK_S = 0.5  # between two checks of keys, stalled readers and failures
UPSTREAM = "upstream_error"


class Heartbeats:
    """Heartbeats, to one part of the subscribers at a time."""

    def __init__(self, node: Node, open_: Mapping[Subscriber, None], delivery: Delivery, interval: float) -> None:
        self._node, self._open, self._delivery = node, open_, delivery
        self._interval = interval
        self._turn = 0
        self._timer: asyncio.TimerHandle
        self._beat()

    def stop(self) -> None:
        """Send no more."""
        self._timer.cancel()

    def _beat(self) -> None:
        rounds = PARTS if self._interval >= 3.0 else 1
        self._timer = asyncio.get_running_loop().call_later(self._interval / rounds, self._beat)
        self._turn = (self._turn + 1) % rounds
        moment = clock(self._node.clock.now())
        events: dict[Wire, bytes] = {}
        self._delivery.hand_out()
        for subscriber in self._open:
            if subscriber.turn % rounds != self._turn:
                continue
            wire = subscriber.wire
            if subscriber.waiting is not None:
                subscriber.connection.idle()
            else:
                if wire not in events:
                    events[wire] = wire.heartbeat(moment)
                self._delivery.send(_reached(subscriber) + events[wire], subscriber, self._delivery.number)


class Checks:
    """Checks at which subscribers are cut off, or receive an error because a source fails."""

    def __init__(
        self, node: Node, open_: Mapping[Subscriber, None], delivery: Delivery, limits: ReaderLimits
    ) -> None:  # fmt: skip
        self._node, self._open, self._delivery, self._limits = node, open_, delivery, limits
        self._failures: frozenset[str] = frozenset()
        self._turn = 0
        self._turns = max(1, round(min(5.0, limits.stalled / 6.0) / CHECK_S))  # ticks between two checks of a reader
        self.slow_at = 0.0  # when to check slow readers again
        self.cuts = 0
        self._timer: asyncio.TimerHandle
        self._tick()

    def stop(self) -> None:
        """Check nothing more, but for slow readers."""
        self._timer.cancel()

    def _tick(self) -> None:
        """Check keys, stalled readers and sources."""
        self._timer = asyncio.get_running_loop().call_later(CHECK_S, self._tick)
        self._turn = (self._turn + 1) % self._turns
        now = time.monotonic()
        valid: dict[Callable[[], bool], bool] = {}  # checks of streams with the same secret and rights are equal
        for subscriber in tuple(self._open):
            connection = subscriber.connection
            if subscriber.check not in valid:
                valid[subscriber.check] = _holds(subscriber.check)
            if not valid[subscriber.check]:
                self._delivery.hand(subscriber)
                connection.revoke()
            if connection.lingers(now) or (subscriber.turn % self._turns == self._turn and connection.stalls(now)):
                self.cut(subscriber, "the client is not reading")
        failures = frozenset(self._failing())
        for name in sorted(failures - self._failures):
            message = f"source {name} is not responding; its prices will become stale"
            for subscriber in self._open:
                self._delivery.send(subscriber.wire.error(UPSTREAM, message), subscriber)
        self._failures = failures

    def _failing(self) -> Iterable[str]:
        yield from (name for name in _STALE_AFTER if name in self._node.failures)
        feeds = self._node.feeds
        for source in feeds.statuses() if feeds is not None else ():
            if source.status == "down":
                yield source.name

    def cut_slow(self) -> None:
        """Cut off readers with too many bytes overdue: for one reader, for an account, or for the node.

        What was queued since the previous check does not count: a large step is no sign of a slow reader. Call it
        before a round of writing: all readers have been written to since they got what is pending.
        """
        now = asyncio.get_running_loop().time()
        if now < self.slow_at:
            return
        self.slow_at = now + CHECK_S
        limits = self._limits
        overdue = [(size, subscriber) for subscriber in self._open if (size := subscriber.connection.overdue())]
        overdue.sort(key=lambda each: each[0], reverse=True)
        accounts: dict[str, list[tuple[int, Subscriber]]] = {}
        for size, subscriber in overdue:
            if size > limits.reader_bytes:
                self.cut(subscriber, "the client is too slow")
            else:
                accounts.setdefault(subscriber.account, []).append((size, subscriber))
        for readers in accounts.values():
            self._shed(readers, limits.account_bytes, "the clients of the account are too slow")
        left = [each for each in overdue if not each[1].connection.gone]
        self._shed(left, limits.node_bytes, "the clients of the node are too slow")

    def _shed(self, readers: Sequence[tuple[int, Subscriber]], most: int, reason: str) -> None:
        """Cut off the first readers until the rest has at most so many bytes."""
        total = sum(size for size, _ in readers)
        for size, subscriber in readers:
            if total <= most:
                break
            self.cut(subscriber, reason)
            total -= size

    def cut(self, subscriber: Subscriber, reason: str) -> None:
        """Close a connection and discard what is pending."""
        connection = subscriber.connection
        if connection.gone:
            return
        self.cuts += 1
        log.event(
            "stream cut off",
            logging.WARNING,
            account=subscriber.account,
            key=subscriber.key,
            reason=reason,
            waiting=connection.size,
        )
        subscriber.waiting = None
        connection.abort()


def _reached(subscriber: Subscriber) -> bytes:
    """A comment with the update that a subscriber has reached, if any."""
    if not subscriber.wire.comments or subscriber.cohort is None:
        return b""
    parts: list[bytes] = []
    for group in subscriber.cohort.groups:
        if isinstance(group, PriceGroup):
            parts.insert(0, b"prices %d" % max(group.reached, subscriber.number))
        elif isinstance(group, OpportunityGroup) and group.reached:
            parts.append(b"opportunities %d" % group.reached)
    return b": %b\n" % b", ".join(parts) if parts else b""


def _holds(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:
        return False
