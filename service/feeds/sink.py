"""The protocol by which fetchers report payloads, failures and heartbeats. `Hub` implements it."""

from datetime import datetime
from typing import Protocol

from oddsengine.feeds import Payload


class Failure(Exception):  # noqa: N818  it is expected, and no error of ours
    """A failed request; the message is for the operator and contains no secrets."""

    def __init__(self, reason: str, *, wait: float | None = None, fatal: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait  # the wait that the source asks for
        self.fatal = fatal  # retrying will not help: an invalid key, for example


class Sink(Protocol):
    """Receiver of payloads and reports of fetchers."""

    def now(self) -> datetime:
        """Return the time."""

    async def deliver(self, source: str, payload: Payload, part: str = "") -> None:
        """Apply a payload completely; raises `Failure` if it is rejected."""

    async def unreadable(self, source: str, body: bytes, reason: str) -> None:
        """Save a body that failed to parse."""

    def expect(self, source: str, part: str, within: float, *, polled: bool = False) -> None:
        """Set how often a part of a source is expected to report; `polled`: its payloads list all its books."""

    def alive(self, source: str, part: str = "") -> None:
        """Report that a feed is alive without new data."""

    def failed(self, source: str, failure: Failure, part: str = "") -> None:
        """Report a failed request."""

    def warn(self, source: str, reason: str) -> None:
        """Report a problem of a source that keeps running; an empty reason clears it."""

    def conflict(self, source: str, reason: str) -> None:
        """Report why a source's prices cannot be kept fresh; an empty reason clears it."""

    def credits(self, source: str, left: int | None, used: int | None, an_hour: float | None) -> None:
        """Report the credits left, used and spent per hour."""

    def caught_up(self, source: str, *, ended: bool = False) -> None:
        """Report that the initial data has been delivered; `ended`: no more will follow."""
