"""What a fetcher may tell: payloads, failures, signs of life. `Hub` is the one that listens."""

from datetime import datetime
from typing import Protocol

from oddsengine.feeds import Payload


class Failure(Exception):  # noqa: N818  it is expected, and no error of ours
    """A try that failed; the message is for the operator and holds no secret."""

    def __init__(self, reason: str, *, wait: float | None = None, fatal: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait  # what the source asks for
        self.fatal = fatal  # it will not get better by itself: a key that is refused, say


class Sink(Protocol):
    """Whoever takes what fetchers bring."""

    def now(self) -> datetime:
        """Tell the time."""

    async def deliver(self, source: str, payload: Payload, part: str = "") -> None:
        """Take a payload, whole or, as a `Failure`, not at all."""

    async def unreadable(self, source: str, body: bytes, reason: str) -> None:
        """Keep a body that did not parse."""

    def expect(self, source: str, part: str, within: float, *, polled: bool = False) -> None:
        """Know that a part of a source should be heard of that often; `polled`: its payloads list all its books."""

    def alive(self, source: str, part: str = "") -> None:
        """Know that a source is well though it had nothing to say."""

    def failed(self, source: str, failure: Failure, part: str = "") -> None:
        """Know that a try failed."""

    def warn(self, source: str, reason: str) -> None:
        """Know what is wrong with a source that goes on; an empty reason takes it back."""

    def conflict(self, source: str, reason: str) -> None:
        """Know why a source's prices cannot be kept fresh; an empty reason takes it back."""

    def credits(self, source: str, left: int | None, used: int | None, an_hour: float | None) -> None:
        """Know what a source that is paid by credits has left, has used, and costs."""

    def caught_up(self, source: str, *, ended: bool = False) -> None:
        """Know that all there was at first has been delivered; `ended`: and that no more will come."""
