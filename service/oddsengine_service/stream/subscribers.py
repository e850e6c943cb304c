"""The subscribers of a node; everything here runs in the event loop."""

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any

from oddsengine_service.node import Node
from oddsengine_service.stream.checks import Checks, Heartbeats
from oddsengine_service.stream.connection import ReaderLimits, StreamConnection
from oddsengine_service.stream.sending import Delivery, Rounds
from oddsengine_service.stream.stream_events import Wire
from oddsengine_service.stream.subscriber import Subscriber

HEARTBEAT_S = 30.0


class Subscribers:
    """All subscribers of a node: they enter, get what is delivered, are checked, and leave."""

    def __init__(self, node: Node, *, heartbeat: float = HEARTBEAT_S, **limits: Any) -> None:
        self.closed = False
        self.open: dict[Subscriber, None] = {}
        self._turns = itertools.count()
        self._limits = ReaderLimits(**limits)
        self.rounds = Rounds(node, self._prepare_round)
        self.delivery = Delivery(node, self.open, self.rounds)
        self.checks = Checks(node, self.open, self.delivery, self._limits)
        self.heartbeats = Heartbeats(node, self.open, self.delivery, heartbeat)

    @property
    def streams(self) -> int:
        """Number of open streams."""
        return len(self.open)

    def enter(
        self, send: Any, account: str, key: str, check: Callable[[], bool], wire: Wire, first: list[bytes],
        kind: type[StreamConnection] = StreamConnection,
    ) -> Subscriber:  # fmt: skip
        """Add a subscriber, and send it the first frames."""
        made = Subscriber(kind(send, self._limits), account, key, check, wire, next(self._turns))
        self.open[made] = None
        self.delivery.start(made, first)
        return made

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber immediately."""
        subscriber.connection.drop()
        subscriber.waiting = None
        del self.open[subscriber]
        self.delivery.stop(subscriber)

    def end_all(self) -> None:
        """End every stream after sending what is pending."""
        self.delivery.hand_out()
        for subscriber in tuple(self.open):
            subscriber.connection.end()

    async def close(self, within: float) -> None:
        """End every stream; abort those that do not receive the rest in time."""
        self.closed = True
        self.checks.stop()
        self.heartbeats.stop()
        self.end_all()
        until = time.monotonic() + within
        while self.open and time.monotonic() < until:
            await asyncio.sleep(0.01)
        for subscriber in tuple(self.open):
            self.checks.cut(subscriber, "the server stops")

    def _prepare_round(self) -> None:
        self.checks.cut_slow()
        self.delivery.hand_out()
