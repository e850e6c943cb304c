"""Failures of requests, and retries with exponential backoff.

Waits have full jitter: after the n-th consecutive failure, anything from 0 to base 2^n seconds, at most the cap
(Brooker 2015, "Exponential backoff and jitter"). If a source says how long to wait, that is the minimum.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from oddsengine.feeds import FeedError
from oddsengine.sources.drift import LARGE
from oddsengine.sources.failure import Failure
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.source_settings import FeedSettings

LONGEST_WAIT = 3600.0  # maximum, even if a source asks for more
_MOST_DOUBLINGS = 32
T = TypeVar("T")


class Backoff:
    """Waiting times between attempts."""

    def __init__(self, base: float, cap: float, rng: random.Random | None = None) -> None:
        self._base, self._cap = base, cap
        self._rng = rng or random.Random()
        self._failed = 0

    def reset(self) -> None:
        self._failed = 0

    def wait(self, failure: Failure) -> float:
        """Return the wait after another failure."""
        most = min(self._cap, self._base * 2.0 ** min(self._failed, _MOST_DOUBLINGS))
        self._failed += 1
        least = min(failure.wait or 0.0, LONGEST_WAIT)
        if failure.fatal:
            least = max(least, self._cap / 2.0)
        return least + self._rng.uniform(0.0, most)


async def keep_trying(
    feed: FeedSettings, receiver: Receiver, attempt: Callable[[Backoff], Awaitable[float | None]], part: str = ""
) -> None:
    """Retry until cancelled, or until an attempt returns None.

    Parameters
    ----------
    attempt
        One request, or one connection from beginning to end. It returns the seconds until the next one, and calls
        `Backoff.reset` after a success.
    part
        One of several things requested from the source, which may fail independently.
    """
    backoff = Backoff(feed.backoff, feed.backoff_cap)
    while True:
        try:
            seconds = await attempt(backoff)
            if seconds is None:
                return
        except Failure as failure:
            receiver.failed(feed.name, failure, part)
            seconds = backoff.wait(failure)
        await asyncio.sleep(seconds)


@asynccontextmanager
async def alongside(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run a coroutine until the body of the with statement ends; the body has to check whether it failed."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])  # not `await task`, after which its cancellation and that of the caller look alike
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Failure):
            raise error


async def parsed(
    feed: FeedSettings, receiver: Receiver, body: bytes, parse: Callable[..., T], *arguments: Any, stream: str = ""
) -> T:  # fmt: skip
    """Parse a body, a large one in a thread; invalid bodies are saved, and raise `Failure`.

    `stream` is the connection that a message came from, by its name in the contract of the feed.
    """
    if stream:
        await receiver.received(feed.name, stream, body)
    try:
        return await asyncio.to_thread(parse, *arguments) if len(body) > LARGE else parse(*arguments)
    except FeedError as error:
        await receiver.unreadable(feed.name, body, str(error))
        raise Failure(f"invalid payload: {error}") from error
