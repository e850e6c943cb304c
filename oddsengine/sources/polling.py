"""Sources that are asked for everything in turns: requests at a limited rate, page by page, part by part.

All requests of a source share a bucket of tokens. "Too many requests" is not the end of a turn: the request is repeated
after the wait that the source asks for, or an increasing one, and the others wait too.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import TypeVar

from oddsengine import catalog
from oddsengine.feeds import Payload
from oddsengine.feeds.turns import Received
from oddsengine.sources.failure import RATE_LIMITED, Failure
from oddsengine.sources.polling_checks import too_slow
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import FeedSettings, PolledSettings
from oddsengine.sources.web import Web

MOST_PAGES = 200
_BURST_S = 1.0
_MARGIN_S = 1.0  # requests are under way for different times
_EPOCH = 1e9  # a time, and not a number of seconds
Query = list[tuple[str, str | int | float | bool | None]]
T = TypeVar("T")


class TokenBucket:
    """A token bucket that holds the tokens of one second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._spent_until = 0.0  # when the tokens taken so far are there again

    async def take(self, tokens: float) -> None:
        """Wait for tokens."""
        now = asyncio.get_running_loop().time()
        self._spent_until = max(self._spent_until, now - _BURST_S) + tokens / self._rate
        await asyncio.sleep(max(0.0, self._spent_until - now))

    def pause(self, seconds: float) -> None:
        """Pause all requests for some seconds."""
        self._spent_until = max(self._spent_until, asyncio.get_running_loop().time() + seconds)


class RequestWindow:
    """At most so many requests in any so many seconds, and what the headers of answers say about them."""

    def __init__(self, requests: int, seconds: float) -> None:
        self._most, self._seconds = requests, seconds + _MARGIN_S
        self._times: deque[float] = deque()
        self._from = 0.0  # when the next one may be

    async def take(self, tokens: float = 1.0) -> None:
        """Wait for a place."""
        loop = asyncio.get_running_loop()
        begin = max(loop.time(), self._from)
        while len(self._times) >= self._most:
            begin = max(begin, self._times.popleft() + self._seconds)
        self._times.append(begin)
        await asyncio.sleep(max(0.0, begin - loop.time()))

    def pause(self, seconds: float) -> None:
        """Pause all requests for some seconds."""
        self._from = max(self._from, asyncio.get_running_loop().time() + seconds)

    def follow_limits(self, headers: Mapping[str, str], now: datetime) -> None:
        """Take over a lower limit, and wait for the end of a window that has no place left."""
        limit, left, reset = (headers.get(f"x-ratelimit-{name}", "") for name in ("limit", "remaining", "reset"))
        self._adapt(_number(limit), _number(left), _number(reset) or _time(reset), now)

    def _adapt(self, limit: float | None, left: float | None, reset: float | None, now: datetime) -> None:
        if limit is not None and limit >= 1.0:
            self._most = min(self._most, int(limit))
        if left is not None and left < 1.0 and reset is not None:
            seconds = reset - now.timestamp() if reset > _EPOCH else reset
            self.pause(min(max(0.0, seconds), self._seconds))


def _number(text: str) -> float | None:
    """Return the number of a header, of which the last one counts if there are several."""
    try:
        value = float(text.rpartition(",")[2])
    except ValueError:
        return None
    return value if isfinite(value) else None


def _time(text: str) -> float | None:
    """Return the time of a header in ISO 8601."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


class PacedWeb:
    """Requests for one part of a source, within the rate of the whole source."""

    def __init__(
        self, feed: FeedSettings, url: str, web: Web, bucket: TokenBucket, receiver: Receiver, part: str
    ) -> None:  # fmt: skip
        self._feed, self._url, self._web, self._bucket = feed, url.rstrip("/"), web, bucket
        self._receiver, self._part = receiver, part
        self.least = 0.0  # seconds of a turn, with the pause after it

    def now(self) -> datetime:
        return self._receiver.now()

    async def get(
        self, path: str, query: Query, tokens: float = 1.0, window: RequestWindow | None = None
    ) -> Received:  # fmt: skip
        """Request a body, again if there were too many requests; `window` is the limit of such requests, if any."""
        backoff = Backoff(self._feed.backoff, self._feed.backoff_cap)
        while True:
            if window is not None:
                await window.take()
            await self._bucket.take(tokens)
            try:
                answer = await self._web.get(self._url + path, query)
            except Failure as failure:
                if failure.kind != RATE_LIMITED:
                    raise
                self._receiver.failed(self._feed.name, failure, self._part)
                (window or self._bucket).pause(backoff.wait(failure))
            else:
                if window is not None:
                    window.follow_limits(answer.headers, self._receiver.now())
                return Received(answer.body, self._receiver.now())

    async def deliver(self, payload: Payload) -> None:
        """Deliver a piece of a turn before its end."""
        await self._receiver.deliver(self._feed.name, payload, self._part)

    def takes(self, seconds: float) -> None:
        """Report how long a turn of all parts takes within the limits; the next one begins no earlier."""
        self.least = seconds
        self._receiver.takes(self._feed.name, seconds)
        oldest = catalog.thresholds().stale_prematch_s
        self._receiver.conflict(
            self._feed.name,
            f"all of its prices take {seconds:.0f} s to read, but prices older than {oldest:g} s are rejected as stale"
            if seconds > oldest
            else too_slow(self._feed),
        )

    async def pages(
        self, path: str, query: Query, following: Callable[[bytes], Query], tokens: float = 1.0,
        window: RequestWindow | None = None, nothing: int | None = None,
    ) -> list[Received]:  # fmt: skip
        """Request all pages of a list.

        `following` returns the parameters of the page after one, which replace those of the same name; nothing after
        the last. `nothing` is the status of a page that has no items, with which a list may end too.
        """
        pages: list[Received] = []
        more: Query = []
        while len(pages) < MOST_PAGES:
            names = {name for name, _ in more}
            wanted = [*((name, value) for name, value in query if name not in names), *more]
            try:
                page = await self.get(path, wanted, tokens, window)
            except Failure as failure:
                if nothing is None or failure.status != nothing:
                    raise
                return pages
            before, more = more, await self.parsed([page.body], lambda: following(page.body))  # noqa: B023
            pages.append(page)
            if not more:
                return pages
            if more == before:
                break
        raise Failure(f"the pages of {path} do not end")

    async def parsed(self, bodies: Sequence[bytes], parse: Callable[[], T]) -> T:
        """Parse bodies; those that are not valid are saved, and raise `Failure`."""
        return await parsed(self._feed, self._receiver, b"\n".join(bodies), parse)


def parameter(name: str, place: Callable[[bytes], str | int]) -> Callable[[bytes], Query]:
    """Return the `following` of `pages` for a source whose pages have the place of the next one, empty or 0 at the end.

    Examples
    --------
    >>> following = parameter("cursor", bytes.decode)
    >>> following(b"abc"), following(b"")
    ([('cursor', 'abc')], [])
    """
    return lambda page: [(name, found)] if (found := place(page)) else []


def chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Divide items into lists of up to `size`.

    Examples
    --------
    >>> chunks(["a", "b", "c"], 2)
    [['a', 'b'], ['c']]
    """
    return [items[at : at + size] for at in range(0, len(items), size)]


Read = Callable[[PacedWeb, str], Awaitable[Payload]]


class PolledSource:
    """A fetcher that reads the parts of a source every `interval`; `read` reads all that one has now."""

    def __init__(
        self, feed: PolledSettings, secrets: Secrets, read: Read, headers: Mapping[str, str] | None = None
    ) -> None:  # fmt: skip
        self.feed = feed
        self._secrets, self._read, self._headers = secrets, read, headers
        self._parts = list(dict.fromkeys(feed.sports))
        self._waiting = set(self._parts)
        self._took: dict[str, float] = {}  # seconds of the last turn

    async def run(self, receiver: Receiver) -> None:
        feed, bucket = self.feed, TokenBucket(self.feed.rate)
        async with Web(feed, self._secrets, receiver, self._headers) as web, asyncio.TaskGroup() as group:
            for part in self._parts:
                paced = PacedWeb(feed, feed.url, web, bucket, receiver, part)
                group.create_task(self._follow(paced, receiver, part))

    async def _follow(self, web: PacedWeb, receiver: Receiver, part: str) -> None:
        await keep_trying(self.feed, receiver, lambda backoff: self._turn(web, receiver, part, backoff), part)

    async def _turn(self, web: PacedWeb, receiver: Receiver, part: str, backoff: Backoff) -> float:
        """Read a part, and deliver it."""
        feed, loop = self.feed, asyncio.get_running_loop()
        began = loop.time()
        self._expect(web, receiver, part)
        await receiver.deliver(feed.name, await self._read(web, part), part)
        self._took[part] = loop.time() - began
        self._expect(web, receiver, part)
        backoff.reset()
        self._waiting.discard(part)
        if not self._waiting:
            receiver.caught_up(feed.name)
        return self._pause(web, part)

    def _pause(self, web: PacedWeb, part: str) -> float:
        """Return the seconds between two turns."""
        return max(self.feed.interval, web.least - self._took.get(part, 0.0))

    def _expect(self, web: PacedWeb, receiver: Receiver, part: str) -> None:
        longest = 2.0 * (self._pause(web, part) + self._took.get(part, 0.0)) + self.feed.timeout
        receiver.expect(self.feed.name, part, longest, polled=True)
