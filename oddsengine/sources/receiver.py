"""What a fetcher delivers to, and reports to: the board of a node, or the caller of `fetch` and `source`."""

from datetime import datetime
from typing import Protocol

from oddsengine.feeds import Payload
from oddsengine.sources.failure import Failure
from oddsengine.sources.source_settings import FeedSettings


class Receiver(Protocol):
    """Receives payloads and reports; `source` is the name of a feed, and `part` one of its parts that fail alone."""

    ages: bool  # whether prices become stale here unless they are delivered again

    def now(self) -> datetime:
        """Return the time, UTC."""

    async def deliver(self, source: str, payload: Payload, part: str = "") -> None:
        """Take a payload. Raises `Failure` if it is rejected."""

    async def received(self, source: str, place: str, body: bytes) -> None:
        """Take note of an answer to a request (`GET /v3/events/`), or a message of a connection, by its name."""

    async def unreadable(self, source: str, body: bytes, reason: str) -> None:
        """Take a body that failed to parse."""

    def expect(self, source: str, part: str, within: float, *, polled: bool = False) -> None:
        """A part will report within so many seconds; `polled`: its payloads list all its books."""

    def alive(self, source: str, part: str = "") -> None:
        """A part is alive, and has nothing new."""

    def failed(self, source: str, failure: Failure, part: str = "") -> None:
        """A request or connection failed; the fetcher tries again."""

    def warn(self, source: str, reason: str, public: str = "") -> None:
        """A problem of a source that keeps running; an empty reason clears it.

        `public` says it without addresses, names of files, and texts of the source.
        """

    def conflict(self, source: str, reason: str) -> None:
        """Why a source's prices cannot be kept fresh; an empty reason clears it."""

    def takes(self, source: str, seconds: float) -> None:
        """How long it takes to read all of a source within the limits of its requests."""

    def credits(self, source: str, left: int | None, used: int | None, an_hour: float | None) -> None:
        """The credits left and used, and those planned for an hour."""

    def written(self, source: str, at: datetime | None) -> None:
        """When the oldest document of a source was written; None if it has none."""

    def caught_up(self, source: str, *, ended: bool = False) -> None:
        """All that the source has at first was delivered; `ended`: no more will follow."""


class Source(Protocol):
    """A fetcher."""

    @property
    def feed(self) -> FeedSettings:
        """Its settings."""

    async def run(self, receiver: Receiver) -> None:
        """Fetch until there is no more data, or until cancelled."""
