"""Another node: its stream, or its REST lists and deltas.

Prices keep the ages they have upstream. Some upstreams report when they see a price again (`seen=true`); others are
asked for all of their prices every `freshen` seconds.
"""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from oddsengine.feeds import Payload
from oddsengine.feeds.interface import InterfaceStream, read_page
from oddsengine_service.feeds.freshness import too_slow
from oddsengine_service.feeds.gamestate import GameStateSource
from oddsengine_service.feeds.retry import Backoff, alongside, keep_trying, parsed
from oddsengine_service.feeds.secrets import Secrets
from oddsengine_service.feeds.sink import Failure, Sink
from oddsengine_service.feeds.sse import Stream
from oddsengine_service.feeds.web import Web
from oddsengine_service.settings import Interface as Settings

_PAGE = 200  # maximum rows per page
_STEP = timedelta(seconds=1)


def source(feed: Settings, key: str, secrets: Secrets) -> "InterfaceSource | InterfacePages":
    return InterfaceSource(feed, key, secrets) if feed.stream else InterfacePages(feed, key, secrets)


def _filters(feed: Settings) -> dict[str, str | int]:
    fields = {"sportsbook": feed.books, "sport": feed.sports, "league": feed.leagues, "market": feed.markets}
    return {name: ",".join(values) for name, values in fields.items() if values}


class _Upstream:
    """Common parts of both ways to read another node: prices, and game states if configured."""

    def __init__(self, feed: Settings, key: str, secrets: Secrets) -> None:
        self.feed, self._secrets = feed, secrets
        self._headers = {"x-api-key": key} if key else {}

    async def run(self, sink: Sink) -> None:
        async with Web(self.feed, self._secrets, self._headers) as web:
            prices = keep_trying(self.feed, sink, lambda backoff: self._attempt(web, sink, backoff))
            if not self.feed.games:
                await prices
                return
            async with asyncio.TaskGroup() as group:
                group.create_task(prices)
                group.create_task(GameStateSource(self.feed).run(web, sink))

    async def _attempt(self, web: Web, sink: Sink, backoff: Backoff) -> float:
        raise NotImplementedError


class InterfaceSource(_Upstream):
    """The stream; each connection starts with a snapshot."""

    def __init__(self, feed: Settings, key: str, secrets: Secrets) -> None:
        super().__init__(feed, key, secrets)
        self._stream = Stream(feed.silence, feed.body_bytes)
        self._reader = InterfaceStream()

    async def _attempt(self, web: Web, sink: Sink, backoff: Backoff) -> float:
        feed = self.feed
        sink.expect(feed.name, "", feed.silence)
        url, query = feed.url.rstrip("/") + "/stream", {"channel": "odds", "seen": "true", **_filters(feed)}
        async with (
            alongside(self._freshen(web, sink)) as freshening,
            aclosing(self._stream.connect(web, url, query)) as events,
        ):
            async for event in events:
                if freshening.done():
                    await freshening
                if event is None:
                    sink.alive(feed.name)
                    continue
                payload = await parsed(feed, sink, event.data, self._reader.read, event.event, event.data)
                await self._pass_on(sink, payload)
                if self._reader.ready:
                    backoff.reset()
                    sink.caught_up(feed.name)
        raise Failure("the stream ended")

    async def _pass_on(self, sink: Sink, payload: Payload) -> None:
        if payload.quotes or payload.removed or payload.games:
            await sink.deliver(self.feed.name, payload)
        elif self._reader.ready:  # so far there was only a greeting
            sink.alive(self.feed.name)
        errors = self._reader.errors.total()
        sink.warn(self.feed.name, f"the upstream reported {errors} errors of its own" if errors else "")
        self._reader.errors.clear()

    async def _freshen(self, web: Web, sink: Sink) -> None:
        """Request the times at which prices were last seen, if the upstream's stream does not report them."""
        feed, backoff = self.feed, Backoff(self.feed.backoff, self.feed.backoff_cap)
        wait = feed.freshen
        while True:
            await asyncio.sleep(wait)
            wait = feed.freshen
            seen = not self._reader.ready or self._reader.says_seen
            sink.conflict(feed.name, too_slow(feed, seen=seen))
            if seen:
                continue
            sink.expect(feed.name, "ages", feed.freshen + feed.timeout)
            try:
                payloads, _ = await _pages(feed, web, sink, "/odds", {})
            except Failure as failure:
                sink.failed(feed.name, failure, "ages")
                wait = max(wait, backoff.wait(failure))
                continue
            backoff.reset()
            payload = self._reader.renew(row for payload in payloads for row in payload.quotes)
            if payload.quotes:
                await sink.deliver(feed.name, payload, "ages")
            else:
                sink.alive(feed.name, "ages")


class InterfacePages(_Upstream):
    """REST: a full list, then deltas."""

    def __init__(self, feed: Settings, key: str, secrets: Secrets) -> None:
        super().__init__(feed, key, secrets)
        self._since: str | None = None
        self._listed: set[str] = set()
        self._all_at = 0.0  # time of the last complete request

    async def _attempt(self, web: Web, sink: Sink, backoff: Backoff) -> float:
        feed = self.feed
        sink.expect(feed.name, "", feed.interval + feed.timeout)
        if self._since is None:
            await self._snapshot(web, sink)
            sink.caught_up(feed.name)
        else:
            await self._changes(web, sink, self._since)
        backoff.reset()
        sink.alive(feed.name)
        return feed.interval

    async def _snapshot(self, web: Web, sink: Sink) -> None:
        """Fetch everything; prices that are no longer listed are removed."""
        self._all_at = asyncio.get_running_loop().time()
        payloads, info = await _pages(self.feed, web, sink, "/odds", {})
        listed = {row["id"] for payload in payloads for row in payload.quotes}
        gone = [] if info.cut else sorted(self._listed - listed)
        for payload in payloads:
            await self._apply(sink, payload)
        await self._apply(sink, Payload(removed=gone))  # last, since a price may be listed under another id
        self._since = info.since
        sink.warn(self.feed.name, _CUT if info.cut else "")

    async def _changes(self, web: Web, sink: Sink, since: str) -> None:
        try:
            payloads, info = await _pages(self.feed, web, sink, "/odds/delta", {"since": since, "seen": "true"})
        except Failure as failure:
            if failure.fatal:
                self._since = None  # `since` may be the reason for the failure
            raise
        for payload in payloads:
            await self._apply(sink, payload)
        sink.conflict(self.feed.name, too_slow(self.feed, seen=info.seen))
        due = not info.seen and asyncio.get_running_loop().time() - self._all_at >= self.feed.freshen
        self._since = None if info.cut or info.clamped or due else info.since

    async def _apply(self, sink: Sink, payload: Payload) -> None:
        if not (payload.quotes or payload.removed):
            return
        await sink.deliver(self.feed.name, payload)
        self._listed.difference_update(payload.removed)
        self._listed.update(row["id"] for row in payload.quotes)


async def _pages(
    feed: Settings, web: Web, sink: Sink, path: str, query: dict[str, str | int]
) -> tuple[list[Payload], "_PageInfo"]:
    """Fetch all pages, by cursor if there is one, otherwise by offset."""
    payloads = []
    base: dict[str, str | int] = {**_filters(feed), **query, "limit": _PAGE}
    more: dict[str, str | int] = {}
    first: _PageInfo | None = None
    requested_at = sink.now()
    while True:
        answer = await web.get(feed.url.rstrip("/") + path, {**base, **more})
        body = answer.body
        page = await parsed(feed, sink, body, read_page, body)
        payloads.append(page.payload)
        info = _page_info(body, requested_at)
        first = first or info
        if not page.has_more:
            return payloads, first
        if info.cursor:
            more = {"cursor": info.cursor}
        elif page.next_offset is not None and page.next_offset > int(more.get("offset", -1)):
            more = {"offset": page.next_offset}
        else:
            return payloads, first._replace(cut=True)


_CUT = "the upstream lists no more rows than this by offset: ask for fewer sports, leagues or books"


class _Meta(msgspec.Struct):
    server_time: str | None = None
    since_clamped: Any = None
    seen: bool = False


class _Pagination(msgspec.Struct):
    next_cursor: str | None = None


class _Envelope(msgspec.Struct):
    meta: _Meta | None = None
    pagination: _Pagination | None = None


_envelope = msgspec.json.Decoder(_Envelope)


class _PageInfo(NamedTuple):
    """Paging information of a response."""

    since: str  # to request changes from then on
    cursor: str | None
    clamped: bool
    seen: bool  # rows that were only seen again are included
    cut: bool = False


def _page_info(body: bytes, requested_at: datetime) -> _PageInfo:
    """Parse the paging information; if the upstream gives no time, our time before the request is used."""
    try:
        envelope = _envelope.decode(body)
    except msgspec.MsgspecError:
        envelope = _Envelope()
    meta = envelope.meta or _Meta()
    since = meta.server_time or (requested_at.astimezone(UTC) - _STEP).isoformat().replace("+00:00", "Z")
    return _PageInfo(
        since, envelope.pagination.next_cursor if envelope.pagination else None, bool(meta.since_clamped), meta.seen
    )
