"""One HTTP client per source: complete bodies within a deadline, and every error as a `Failure`.

Bodies are decoded here in pieces and not by the HTTP library: a few kilobytes on the wire may decode to gigabytes, so
the size limit is checked after every piece. A body may have one content coding.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

import httpx2

from oddsengine.sources.codings import ACCEPTED, decoder_of
from oddsengine.sources.failure import TIMEOUT, UNREACHABLE, Failure, of_status
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_recording import Answer, pieces, query_of, wire
from oddsengine.sources.source_settings import FeedSettings

_AGENT = "oddsengine"
_SHOWN = 200  # bytes of an error body that are logged
Query = Mapping[str, str | int] | list[tuple[str, str | int | float | bool | None]]


class Web:
    """A client of one source; its receiver takes note of what comes."""

    def __init__(
        self, feed: FeedSettings, secrets: Secrets, receiver: Receiver, headers: Mapping[str, str] | None = None
    ) -> None:  # fmt: skip
        self._feed, self._secrets, self._receiver = feed, secrets, receiver
        self._client = httpx2.AsyncClient(
            headers={"user-agent": _AGENT, "accept-encoding": ACCEPTED, **(headers or {})}, timeout=feed.timeout,
            follow_redirects=False,
        )  # fmt: skip

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def get(self, url: str, query: Query | None = None) -> Answer:
        return await self._whole(self._client.build_request("GET", url, params=query or None))

    async def post(self, url: str, headers: Mapping[str, str], form: Mapping[str, str] | bytes) -> Answer:
        """Send a form, or a body, and get a body."""
        request = (
            self._client.build_request("POST", url, headers=headers, content=form)
            if isinstance(form, bytes)
            else self._client.build_request("POST", url, headers=headers, data=dict(form))
        )
        return await self._whole(request)

    async def _whole(self, request: httpx2.Request) -> Answer:
        """Send a request, and return the complete body."""
        if (through := wire()) is None:
            whole = await self._asked(request)
        else:
            query = query_of(request.url.query)
            whole = await through.answer(request.method, request.url.path, query, lambda: self._asked(request))
        await self._receiver.received(self._feed.name, f"{request.method} {request.url.path}", whole.body)
        return whole

    async def _asked(self, request: httpx2.Request) -> Answer:
        body = bytearray()
        try:
            async with asyncio.timeout(self._feed.timeout), self._opened(request) as response:
                async for part in _decoded(response):
                    body += part
                    if len(body) > self._feed.body_bytes:
                        raise Failure(f"response body of more than {self._feed.body_bytes} bytes")
        except TimeoutError:
            raise Failure(f"no complete response within {self._feed.timeout:g} s", kind=TIMEOUT) from None
        return Answer(bytes(body), response.headers)

    @asynccontextmanager
    async def stream(
        self, url: str, query: Query | None, headers: Mapping[str, str], silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream; it fails after `silence` seconds without data."""
        timeout = httpx2.Timeout(self._feed.timeout, read=silence)
        request = self._client.build_request("GET", url, params=query or None, headers=headers, timeout=timeout)
        through = wire()
        if through is not None and through.offline:
            yield pieces(through.through(url, None))
            return
        async with self._opened(request, silence) as response:
            chunks = _decoded(response)
            yield chunks if through is None else pieces(through.through(url, _Chunks(chunks, self._feed.body_bytes)))

    @asynccontextmanager
    async def _opened(self, request: httpx2.Request, silence: float | None = None) -> AsyncIterator[httpx2.Response]:
        try:
            response = await self._client.send(request, stream=True)
            try:
                if response.status_code != httpx2.codes.OK:
                    raise await self._unwelcome(response)
                yield response
            finally:
                await response.aclose()
        except httpx2.TimeoutException as error:
            what = "no complete response" if silence is None else "no data"
            seconds = self._feed.timeout if silence is None else silence
            where = " while connecting" if isinstance(error, httpx2.ConnectTimeout) else ""
            raise Failure(f"{what} within {seconds:g} s{where}", kind=TIMEOUT) from None
        except httpx2.ConnectError as error:
            raise Failure(
                f"{request.url.host} cannot be reached: {error or 'no reason given'}", kind=UNREACHABLE
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            why = self._secrets.clean(str(error)) or "no reason given"
            raise Failure(f"the connection failed: {type(error).__name__}: {why}") from None

    async def _unwelcome(self, response: httpx2.Response) -> Failure:
        """Create the failure for an unsuccessful response."""
        head = bytearray()
        with suppress(Failure, TimeoutError):  # the status is enough
            async with asyncio.timeout(self._feed.timeout / 2.0):
                async for part in _decoded(response):
                    head += part
                    if len(head) >= _SHOWN:
                        break
        text = " ".join(self._secrets.clean(head.decode("utf-8", "replace"))[:_SHOWN].split())
        wait = retry_after(response.headers.get("retry-after"), datetime.now(UTC))
        return of_status(response.status_code, text, wait)


class _Chunks:
    """A body that comes in pieces, as a connection of whole lines: what is private is found in those only."""

    def __init__(self, chunks: AsyncIterator[bytes], most: int) -> None:
        self._chunks, self._most = chunks, most
        self._rest = b""  # of a line that has not ended

    async def send(self, message: bytes) -> None:
        raise NotImplementedError

    async def receive(self) -> bytes:
        while True:
            chunk = await anext(self._chunks, b"")
            whole, end, rest = (self._rest + chunk).rpartition(b"\n")
            self._rest = rest
            if not chunk and not rest:
                raise StopAsyncIteration
            if not chunk or len(rest) > self._most:
                self._rest = b""
                return whole + end + rest
            if end:
                return whole + end


async def _decoded(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield a body without its content coding, in pieces.

    Raises `Failure` if the coding is not supported, or the body does not have it.
    """
    named = response.headers.get("content-encoding", "")
    decoder = decoder_of(named)
    async for part in response.aiter_raw():
        for piece in decoder.pieces(part):
            yield piece
            await asyncio.sleep(0)  # a long body leaves the event loop to others
    if not decoder.ended:
        raise Failure(f"a truncated {named} body")


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks to wait: a number, or a date.

    Examples
    --------
    >>> retry_after("2.5", datetime(2026, 1, 1, tzinfo=UTC))
    2.5
    >>> retry_after("Thu, 01 Jan 2026 00:00:07 GMT", datetime(2026, 1, 1, tzinfo=UTC))
    7.0
    """
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
