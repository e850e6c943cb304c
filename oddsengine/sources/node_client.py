"""Another node: its stream, or its REST lists and deltas.

Prices keep the ages they have upstream. Some upstreams report when they see a price again (`seen=true`); others are
asked for all of their prices every `freshen` seconds.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from datetime import UTC, timedelta
from typing import Any, NamedTuple

from oddsengine.feeds import Payload
from oddsengine.feeds.gamestate import GameStates, read_states
from oddsengine.feeds.node_api import InterfaceStream, OddsPage, read_page
from oddsengine.feeds.sse_parser import ServerSentEvent
from oddsengine.sources.failure import Failure
from oddsengine.sources.polling_checks import too_slow
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, alongside, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import InterfaceSettings
from oddsengine.sources.sse_client import Stream
from oddsengine.sources.web import Web

_PAGE = 200  # maximum rows per page
_STEP = timedelta(seconds=1)
_GAMES = "gamestate"  # the part of a source that is its game states


def source(feed: InterfaceSettings, env: Mapping[str, str], secrets: Secrets) -> "InterfaceSource | InterfacePages":
    return (InterfaceSource if feed.stream else InterfacePages)(feed, env, secrets)


def _filters(feed: InterfaceSettings) -> dict[str, str | int]:
    fields = {"sportsbook": feed.books, "sport": feed.sports, "league": feed.leagues, "market": feed.markets}
    return {name: ",".join(values) for name, values in fields.items() if values}


async def _follow(
    feed: InterfaceSettings, receiver: Receiver, part: str, events: AsyncGenerator[ServerSentEvent | None, None],
    receive: Callable[[ServerSentEvent], Awaitable[None]], freshen: Coroutine[Any, Any, None],
) -> float:  # fmt: skip
    """Receive events until the connection fails; meanwhile `freshen` requests what the stream does not send."""
    receiver.expect(feed.name, part, feed.silence)
    async with alongside(freshen) as freshening, aclosing(events):
        async for event in events:
            if freshening.done():
                await freshening
            if event is None:
                receiver.alive(feed.name, part)
            else:
                await receive(event)
    raise Failure("the stream ended")


class _Upstream:
    """Common parts of both ways to read another node: prices, and game states if configured."""

    def __init__(self, feed: InterfaceSettings, env: Mapping[str, str], secrets: Secrets) -> None:
        self.feed, self._secrets = feed, secrets
        self._headers = {"x-api-key": env["key_env"]} if env["key_env"] else {}

    async def run(self, receiver: Receiver) -> None:
        async with Web(self.feed, self._secrets, receiver, self._headers) as web:
            prices = keep_trying(self.feed, receiver, lambda backoff: self._attempt(web, receiver, backoff))
            if not self.feed.games:
                await prices
                return
            games = GameStateSource(self.feed)
            async with asyncio.TaskGroup() as group:
                group.create_task(prices)
                group.create_task(
                    keep_trying(self.feed, receiver, lambda backoff: games.attempt(web, receiver, backoff), _GAMES)
                )

    async def _attempt(self, web: Web, receiver: Receiver, backoff: Backoff) -> float:
        raise NotImplementedError


class GameStateSource:
    """Game states, from the stream or REST; prices are not affected if the upstream's key has no access to them."""

    def __init__(self, feed: InterfaceSettings) -> None:
        self._feed = feed
        self._query = {name: words for name, words in _filters(feed).items() if name in ("sport", "league")}
        self._stream = Stream(feed.silence, feed.body_bytes)
        self._reader = GameStates()

    async def attempt(self, web: Web, receiver: Receiver, backoff: Backoff) -> float:
        feed, url = self._feed, self._feed.url.rstrip("/")
        if feed.stream:
            events = self._stream.connect(web, f"{url}/stream/gamestate", self._query)
            return await _follow(
                feed,
                receiver,
                _GAMES,
                events,
                lambda event: self._receive(receiver, backoff, event),
                self._freshen(receiver),
            )
        receiver.expect(feed.name, _GAMES, feed.interval + feed.timeout)
        body = (await web.get(f"{url}/gamestate", self._query)).body
        await receiver.deliver(feed.name, await parsed(feed, receiver, body, read_states, body), _GAMES)
        backoff.reset()
        return feed.interval

    async def _receive(self, receiver: Receiver, backoff: Backoff, event: ServerSentEvent) -> None:
        feed = self._feed
        payload = await parsed(feed, receiver, event.data, self._reader.read, event.event, event.data)
        if payload.scores or payload.refused:
            await receiver.deliver(feed.name, payload, _GAMES)
            backoff.reset()
        else:
            receiver.alive(feed.name, _GAMES)

    async def _freshen(self, receiver: Receiver) -> None:
        """Repeat the current states between two messages of the upstream."""
        while True:
            await asyncio.sleep(self._feed.freshen)
            payload = self._reader.alive()
            if payload.scores:
                await receiver.deliver(self._feed.name, payload, _GAMES)


class InterfaceSource(_Upstream):
    """The stream; each connection starts with a snapshot."""

    def __init__(self, feed: InterfaceSettings, env: Mapping[str, str], secrets: Secrets) -> None:
        super().__init__(feed, env, secrets)
        self._stream = Stream(feed.silence, feed.body_bytes)
        self._reader = InterfaceStream()

    async def _attempt(self, web: Web, receiver: Receiver, backoff: Backoff) -> float:
        query = {"channel": "odds", "seen": "true", **_filters(self.feed)}
        events = self._stream.connect(web, self.feed.url.rstrip("/") + "/stream", query)
        return await _follow(
            self.feed,
            receiver,
            "",
            events,
            lambda event: self._receive(receiver, backoff, event),
            self._freshen(web, receiver),
        )

    async def _receive(self, receiver: Receiver, backoff: Backoff, event: ServerSentEvent) -> None:
        payload = await parsed(
            self.feed, receiver, event.data, self._reader.read, event.event, event.data, receiver.now()
        )  # fmt: skip
        await self._forward(receiver, payload)
        if self._reader.ready:
            backoff.reset()
            receiver.caught_up(self.feed.name)

    async def _forward(self, receiver: Receiver, payload: Payload) -> None:
        if payload.quotes or payload.removed or payload.games:
            await receiver.deliver(self.feed.name, payload)
        elif self._reader.ready:  # so far there was only a greeting
            receiver.alive(self.feed.name)
        errors = self._reader.errors.total()
        receiver.warn(self.feed.name, f"the upstream reported {errors} errors" if errors else "")
        self._reader.errors.clear()

    async def _freshen(self, web: Web, receiver: Receiver) -> None:
        """Request the times at which prices were last seen, if the upstream's stream does not report them."""
        feed, backoff = self.feed, Backoff(self.feed.backoff, self.feed.backoff_cap)
        wait = feed.freshen
        while True:
            await asyncio.sleep(wait)
            wait = feed.freshen
            seen = not self._reader.ready or self._reader.reports_seen
            receiver.conflict(feed.name, too_slow(feed, seen=seen))
            if seen:
                continue
            receiver.expect(feed.name, "ages", feed.freshen + feed.timeout)
            try:
                payloads = (await _list(feed, web, receiver, "/odds", {})).payloads
            except Failure as failure:
                receiver.failed(feed.name, failure, "ages")
                wait = max(wait, backoff.wait(failure))
                continue
            backoff.reset()
            payload = self._reader.renew((row for payload in payloads for row in payload.quotes), receiver.now())
            if payload.quotes:
                await receiver.deliver(feed.name, payload, "ages")
            else:
                receiver.alive(feed.name, "ages")


class InterfacePages(_Upstream):
    """REST: a full list, then deltas."""

    def __init__(self, feed: InterfaceSettings, env: Mapping[str, str], secrets: Secrets) -> None:
        super().__init__(feed, env, secrets)
        self._since: str | None = None
        self._listed: set[str] = set()
        self._all_at = 0.0  # time of the last complete request

    async def _attempt(self, web: Web, receiver: Receiver, backoff: Backoff) -> float:
        feed = self.feed
        receiver.expect(feed.name, "", feed.interval + feed.timeout)
        if self._since is None:
            await self._snapshot(web, receiver)
            receiver.caught_up(feed.name)
        else:
            await self._changes(web, receiver, self._since)
        backoff.reset()
        receiver.alive(feed.name)
        return feed.interval

    async def _snapshot(self, web: Web, receiver: Receiver) -> None:
        """Fetch everything; prices that are no longer listed are removed."""
        self._all_at = asyncio.get_running_loop().time()
        listing = await _list(self.feed, web, receiver, "/odds", {})
        listed = {row["id"] for payload in listing.payloads for row in payload.quotes}
        removed = [] if listing.cut else sorted(self._listed - listed)
        for payload in listing.payloads:
            await self._apply(receiver, payload)
        await self._apply(receiver, Payload(removed=removed))  # last, since a price may be listed under another id
        self._since = listing.since
        receiver.warn(self.feed.name, _CUT if listing.cut else "")

    async def _changes(self, web: Web, receiver: Receiver, since: str) -> None:
        try:
            listing = await _list(self.feed, web, receiver, "/odds/delta", {"since": since, "seen": "true"})
        except Failure as failure:
            if failure.fatal:
                self._since = None  # `since` may be the reason for the failure
            raise
        for payload in listing.payloads:
            await self._apply(receiver, payload)
        receiver.conflict(self.feed.name, too_slow(self.feed, seen=listing.seen))
        due = not listing.seen and asyncio.get_running_loop().time() - self._all_at >= self.feed.freshen
        self._since = None if listing.cut or listing.since_clamped or due else listing.since

    async def _apply(self, receiver: Receiver, payload: Payload) -> None:
        if not (payload.quotes or payload.removed):
            return
        await receiver.deliver(self.feed.name, payload)
        self._listed.difference_update(payload.removed)
        self._listed.update(row["id"] for row in payload.quotes)


_CUT = "the upstream lists no more rows than this by offset: ask for fewer sports, leagues or books"


class _OddsList(NamedTuple):
    """All pages of a list."""

    payloads: list[Payload]
    since: str  # to request changes from then on
    since_clamped: bool
    seen: bool  # rows that were only seen again are included
    cut: bool  # there are more rows


async def _list(
    feed: InterfaceSettings, web: Web, receiver: Receiver, path: str, query: dict[str, str | int]
) -> _OddsList:
    """Fetch all pages, by cursor if there is one, otherwise by offset."""
    base: dict[str, str | int] = {**_filters(feed), **query, "limit": _PAGE}
    place: dict[str, str | int] = {}
    pages: list[OddsPage] = []
    requested_at = (receiver.now().astimezone(UTC) - _STEP).isoformat().replace("+00:00", "Z")
    while True:
        body = (await web.get(feed.url.rstrip("/") + path, {**base, **place})).body
        page = await parsed(feed, receiver, body, read_page, body)
        pages.append(page)
        if page.has_more and page.next_cursor:
            place = {"cursor": page.next_cursor}
        elif page.has_more and page.next_offset is not None and page.next_offset > int(place.get("offset", -1)):
            place = {"offset": page.next_offset}
        else:
            first, payloads = pages[0], [page.payload for page in pages]
            return _OddsList(
                payloads, first.server_time or requested_at, first.since_clamped, first.seen, page.has_more
            )
