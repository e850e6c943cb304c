"""One subscriber: a connection, what was delivered to it, and what it asks for."""

from collections import deque
from collections.abc import Callable
from typing import Any

from oddsengine_service.stream.connection import StreamConnection
from oddsengine_service.stream.stream_events import Wire


class SubscriptionRequests:
    """The subscriptions of a subscriber; only for the hub's thread."""

    __slots__ = ("current", "groups", "pending")

    def __init__(self) -> None:
        self.current: Any = None  # the subscription
        self.groups: list[Any] = []  # of the subscription
        self.pending: deque[tuple[Any, list[bytes] | None]] = deque()  # subscriptions to process, and first frames


class Subscriber:
    """A connection with what was delivered to it; in the event loop, but for its requests.

    `waiting` queues events while the snapshot is being prepared; None afterwards.
    """

    __slots__ = (
        "account", "check", "cohort", "connection", "handed", "key", "number", "requests", "resume_key", "turn",
        "waiting", "wire",
    )  # fmt: skip

    def __init__(
        self, connection: StreamConnection, account: str, key: str, check: Callable[[], bool], wire: Wire, turn: int
    ) -> None:  # fmt: skip
        self.connection, self.wire = connection, wire
        self.account, self.key, self.check = account, key, check
        self.turn = turn  # its number, by which the work of timers is divided
        self.waiting: list[tuple[int, list[bytes]]] | None = []
        self.number = 0  # the update of the snapshot
        self.cohort: Any = None  # whose events it gets
        self.handed = 0  # batches that it was handed, or that are not for it, of all that were queued
        self.resume_key: Any = None  # the subscription that its client may resume
        self.requests = SubscriptionRequests()
