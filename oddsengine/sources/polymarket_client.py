"""Polymarket: lists of events over REST, and the order books of their markets from its WebSocket.

Every `events_interval` all events of the leagues are listed, page by page. Pages by offset, the older way, overlap,
since an event that closes moves those after it forward. The tokens of the markets are divided among sockets of up to
`socket_tokens`. A socket that fails, or hears nothing for `silence` seconds, suspends its prices; it is opened again,
and complete books follow. Books that do not arrive, and those in doubt, are requested over REST, but only while their
socket is open, since nothing else says how they change. Requests follow one another with pauses, far below the limits
of the exchange.

An open socket that answers pings may have stopped to send books. If no book or change came for `quiet_live` seconds
(`quiet_prematch` before the start), pongs renew no price: books are requested over REST, and prices are as old as the
last answer. A book that changed between two answers without a message shows that the socket has stopped; it is opened
again.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from math import inf
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from oddsengine.feeds import Payload
from oddsengine.feeds.polymarket import PolymarketMarkets
from oddsengine.feeds.polymarket_events import LEAGUES, EventsPage, League, read_leagues, read_page
from oddsengine.sources.failure import REFUSED, TIMEOUT, Failure
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, alongside, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.sockets import opened
from oddsengine.sources.source_settings import PolymarketSettings
from oddsengine.sources.web import Web

_EVENTS, _BOOKS = "events", "books"  # parts
_PAGE, _OVERLAP = 100, 5  # events
_MOST_PAGES = 200
_BATCH = 100  # books per request
_PAUSE_S = 0.05  # between two requests
_PING_S = 10.0  # between two pings, or less if `silence` is short
_FIRST_BOOK_S = 2.0  # until the first book of a subscription is requested
_SETTLE_S = 1.0  # until a book in doubt is requested, so that messages on their way arrive before
_LOOK_S = 0.2
_RELIST_S = 10.0  # least time between two lists of events
_CHECK_S = 60.0  # between two requests for a book that does not change, before the start
_ALWAYS_S = 1e9
_CODES = {"tennis": ("atp", "wta"), "soccer": tuple(code for code, (sport, _) in LEAGUES.items() if sport == "soccer")}
_ALSO = {"cbb": "ncaab", "ncaab": "cbb", "cfb": "ncaaf"}  # codes that have had another name

LEAGUE_CODES = {league: code for code, (_, league) in LEAGUES.items() if code != "ncaab"}
"""Its codes of leagues, by our ids."""


class _Socket:
    """One connection, and the tokens it is subscribed to."""

    def __init__(self, number: int) -> None:
        self.part = f"{_BOOKS} {number}"
        self.tokens: dict[str, None] = {}
        self.connection: ClientConnection | None = None
        self.heard_at: datetime | None = None
        self.updated_at = -inf  # when the last book or change came
        self.stopped = False  # a book has changed without a message

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; a connection that is closed is noticed where it is read."""
        if self.connection is not None:
            with suppress(ConnectionClosed):
                await self.connection.send(msgspec.json.encode(message).decode())


class PolymarketSource:
    """The fetcher. `sports` are the exchange's codes of leagues, or `tennis` or `soccer` for several of them."""

    def __init__(self, feed: PolymarketSettings, _: Mapping[str, str], secrets: Secrets) -> None:
        self.feed = feed
        self._secrets = secrets
        self._reader = PolymarketMarkets()
        self._reading = asyncio.Lock()  # one payload is parsed and delivered at a time, in order
        self._codes = tuple(dict.fromkeys(code for sport in feed.sports for code in _CODES.get(sport, (sport,))))
        self._leagues: dict[str, League] | None = None
        self._listed = False
        self._listed_at = -inf
        self._sockets: dict[_Socket, asyncio.Task[None]] = {}
        self._socket_of: dict[str, _Socket] = {}
        self._numbers = 0
        self._ask_at: dict[str, float] = {}  # token in doubt -> time of the next request for its book
        self._checked_at: dict[str, float] = {}  # token of a quiet socket -> when its book was requested
        self._check_at = -inf  # when to look for the next of these
        self._polled_at: datetime | None = None

    async def run(self, receiver: Receiver) -> None:
        feed = self.feed
        await self._leave(receiver)
        async with Web(feed, self._secrets, receiver) as web, asyncio.TaskGroup() as group:
            books = self._request if feed.stream else self._poll
            group.create_task(
                keep_trying(feed, receiver, lambda backoff: self._list(web, receiver, group, backoff), _EVENTS)
            )
            group.create_task(keep_trying(feed, receiver, lambda backoff: books(web, receiver, backoff), _BOOKS))
            group.create_task(keep_trying(feed, receiver, lambda _: self._renew(receiver), _EVENTS))

    async def _leave(self, receiver: Receiver) -> None:
        """Suspend the prices of connections that an earlier run has left, when it ended with a bug."""
        async with self._reading:
            payload = self._reader.doubt(self._socket_of, receiver.now())
            if payload.quotes:
                await receiver.deliver(self.feed.name, payload, _BOOKS)
        self._sockets, self._socket_of, self._listed_at = {}, {}, -inf

    # ---- events ----

    async def _list(self, web: Web, receiver: Receiver, group: asyncio.TaskGroup, backoff: Backoff) -> float:
        """List the events of all leagues, and divide the tokens of their markets among sockets."""
        feed, loop = self.feed, asyncio.get_running_loop()
        if not self._due(loop.time()):
            return _LOOK_S
        self._reader.unlisted, self._listed_at = False, -inf
        receiver.expect(feed.name, _EVENTS, feed.events_interval + feed.timeout)
        if self._leagues is None:
            body = (await web.get(f"{feed.url.rstrip('/')}/sports")).body
            self._leagues = await parsed(feed, receiver, body, read_leagues, body)
        for code in self._codes:
            league = self._league(code)
            pages = await self._pages(web, receiver, league)
            async with self._reading:
                payload = self._reader.list_events(
                    pages, league, receiver.now(), within=feed.within, kinds=frozenset(feed.markets)
                )
                await receiver.deliver(feed.name, payload, _EVENTS)
        if feed.stream:
            await self._assign(receiver, group)
        self._listed, self._listed_at = True, loop.time()
        backoff.reset()
        receiver.alive(feed.name, _EVENTS)
        self._report(receiver)
        return _LOOK_S

    def _due(self, now: float) -> bool:
        """Whether the events are to be listed: in time, or earlier for a new market."""
        wait = min(self.feed.events_interval, _RELIST_S) if self._reader.unlisted else self.feed.events_interval
        return now >= self._listed_at + wait

    def _league(self, code: str) -> League:
        """Return a league under the code that we know; one that has no series is listed by its tag."""
        leagues = self._leagues or {}
        found = leagues.get(code) or leagues.get(_ALSO.get(code, "")) or League(code)
        return found._replace(code=code)

    async def _pages(self, web: Web, receiver: Receiver, league: League) -> list[EventsPage]:
        """Fetch all pages of a league's events, by cursor, or by offset if the exchange refuses that."""
        chosen = {"series_id": league.series} if league.series else {"tag_slug": league.code}
        query: dict[str, str | int] = {**chosen, "closed": "false", "limit": _PAGE}
        pages: list[EventsPage] = []
        place: dict[str, str | int] = {}
        while True:
            try:
                page = await self._page(web, receiver, "/events/keyset", query | place)
            except Failure as failure:
                if pages or failure.kind != REFUSED:
                    raise
                reason = "events are listed by offset, as pages by cursor are refused"
                receiver.warn(self.feed.name, f"{reason}: {failure}", reason)
                return await self._pages_by_offset(web, receiver, query | {"active": "true"})
            pages.append(page)
            if not page.cursor or not page.events:
                receiver.warn(self.feed.name, "")
                return pages
            if len(pages) == _MOST_PAGES or place.get("after_cursor") == page.cursor:
                raise Failure(f"the pages of {league.code} do not end")
            place = {"after_cursor": page.cursor}

    async def _pages_by_offset(self, web: Web, receiver: Receiver, query: dict[str, str | int]) -> list[EventsPage]:
        pages: list[EventsPage] = []
        seen: set[str] = set()
        offset = 0
        while True:
            page = await self._page(web, receiver, "/events", query | {"offset": offset})
            if page.events.keys() <= seen:
                return pages
            pages.append(page)
            seen |= page.events.keys()
            offset += max(1, len(page.events) - _OVERLAP)

    async def _page(self, web: Web, receiver: Receiver, path: str, query: dict[str, str | int]) -> EventsPage:
        body = (await web.get(self.feed.url.rstrip("/") + path, query)).body
        page = await parsed(self.feed, receiver, body, read_page, body)
        await asyncio.sleep(_PAUSE_S)
        return page

    def _report(self, receiver: Receiver) -> None:
        if self._listed and not self._reader.unread:
            receiver.caught_up(self.feed.name)

    # ---- sockets ----

    async def _assign(self, receiver: Receiver, group: asyncio.TaskGroup) -> None:
        """Subscribe to new tokens, both of a market on the same socket, and leave those that are gone."""
        pairs = self._reader.tokens.values()
        wanted = {token for pair in pairs for token in pair}
        removed: dict[_Socket, list[str]] = {}
        for token, socket in list(self._socket_of.items()):
            if token not in wanted:
                del socket.tokens[token], self._socket_of[token]
                removed.setdefault(socket, []).append(token)
        added: dict[_Socket, list[str]] = {}
        room = list(self._sockets)
        for pair in pairs:
            if pair[0] in self._socket_of:
                continue
            while room and len(room[0].tokens) + len(pair) > self.feed.socket_tokens:
                room.pop(0)
            if not room:
                self._numbers += 1
                room.append(_Socket(self._numbers))
            for token in pair:
                room[0].tokens[token], self._socket_of[token] = None, room[0]
                added.setdefault(room[0], []).append(token)
        for socket, tokens in removed.items():
            if socket.tokens:
                await socket.send({"assets_ids": tokens, "operation": "unsubscribe"})
            elif socket.connection is not None:
                await socket.connection.close()
        for socket, tokens in added.items():
            if socket in self._sockets:
                await socket.send({"assets_ids": tokens, "operation": "subscribe"})
            else:
                self._sockets[socket] = group.create_task(self._follow(socket, receiver))

    async def _follow(self, socket: _Socket, receiver: Receiver) -> None:
        """Keep a socket open while it has tokens."""
        await keep_trying(self.feed, receiver, lambda backoff: self._connection(socket, receiver, backoff), socket.part)
        del self._sockets[socket]
        receiver.expect(self.feed.name, socket.part, _ALWAYS_S)
        receiver.alive(self.feed.name, socket.part)

    async def _connection(self, socket: _Socket, receiver: Receiver, backoff: Backoff) -> float | None:
        """Follow one connection to its end; None if there is nothing left to follow."""
        feed = self.feed
        receiver.expect(feed.name, socket.part, feed.silence)
        try:
            if socket.tokens:
                async with opened(feed, feed.stream_url) as connection:
                    socket.connection = connection
                    async with alongside(_ping(connection, min(_PING_S, feed.silence / 1.5))):
                        await self._receive(socket, connection, receiver, backoff)
        except Failure:
            if socket.tokens:
                raise
        finally:
            socket.connection = None
        return None

    async def _receive(
        self, socket: _Socket, connection: ClientConnection, receiver: Receiver, backoff: Backoff
    ) -> None:
        """Subscribe, and apply messages until the connection fails; its prices are suspended then."""
        feed = self.feed
        try:
            loop = asyncio.get_running_loop()
            socket.updated_at, socket.stopped = loop.time(), False
            self._ask_at |= dict.fromkeys(socket.tokens, loop.time() + _FIRST_BOOK_S)
            await socket.send({"assets_ids": list(socket.tokens), "type": "market", "custom_feature_enabled": True})
            while True:
                try:
                    async with asyncio.timeout(feed.silence):
                        data = await connection.recv(decode=False)
                except TimeoutError:
                    raise Failure(f"no data within {feed.silence:g} s", kind=TIMEOUT) from None
                socket.heard_at = receiver.now()
                if data == b"PONG":
                    if socket.stopped:
                        raise Failure("books have changed without a message")
                    receiver.alive(feed.name, socket.part)
                    continue
                if await self._apply(receiver, socket.part, data, self._reader.read):
                    socket.updated_at, socket.stopped = loop.time(), False
                backoff.reset()
        except (Failure, ConnectionClosed):
            async with self._reading:
                payload = self._reader.doubt(socket.tokens, receiver.now())
                await receiver.deliver(feed.name, payload, socket.part)
            raise

    async def _apply(
        self, receiver: Receiver, part: str, data: bytes, parse: Callable[..., Payload], *arguments: Any
    ) -> bool:
        """Parse and deliver one message or response. Returns whether it had a book or a change."""
        feed = self.feed
        async with self._reading:
            before = self._reader.updates
            payload = await parsed(feed, receiver, data, parse, data, *arguments, receiver.now())
            updated = self._reader.updates > before
            if payload.quotes or payload.removed or payload.refused:
                await receiver.deliver(feed.name, payload, part)
            else:
                receiver.alive(feed.name, part)
        self._report(receiver)
        return updated

    # ---- books over REST ----

    async def _request(self, web: Web, receiver: Receiver, backoff: Backoff) -> float:
        """Request books in doubt, those that cross each other, and those of quiet sockets; their sockets are open."""
        now, doubtful = asyncio.get_running_loop().time(), self._reader.doubtful | self._reader.crossed
        receiver.expect(self.feed.name, _BOOKS, _ALWAYS_S)
        self._ask_at = {token: self._ask_at.get(token, now + _SETTLE_S) for token in doubtful}
        repaired = [token for token, at in self._ask_at.items() if at <= now and self._is_followed(token)]
        due = list(dict.fromkeys((*repaired, *self._unchecked(now))))[:_BATCH]
        if due:
            self._ask_at |= {token: now + _SETTLE_S for token in due if token in self._ask_at}
            self._checked_at |= dict.fromkeys(due, now)
            await self._books(web, receiver, due)
            for token in self._reader.missed.keys() & self._socket_of.keys():
                self._socket_of[token].stopped = True
            self._reader.missed.clear()
            backoff.reset()
        return _PAUSE_S if due else _LOOK_S

    def _is_followed(self, token: str) -> bool:
        return token in self._socket_of and self._socket_of[token].connection is not None

    def _unchecked(self, now: float) -> list[str]:
        """Return the tokens of quiet sockets whose books are to be requested."""
        if now < self._check_at:
            return []
        waits = {False: _CHECK_S, True: self.feed.interval}
        quiet = [
            (token, live)
            for socket in self._sockets
            if socket.connection is not None
            and now - socket.updated_at > min(self.feed.quiet_live, self.feed.quiet_prematch)
            for token in socket.tokens
            if self._is_quiet(socket, now, live=(live := self._reader.is_live(token)))
        ]
        self._checked_at = {token: self._checked_at[token] for token, _ in quiet if token in self._checked_at}
        due = [token for token, live in quiet if now >= self._checked_at.get(token, -inf) + waits[live]]
        self._check_at = now if due else now + _SETTLE_S
        return due

    def _is_quiet(self, socket: _Socket, now: float, *, live: bool) -> bool:
        """Whether no book or change came for so long that the socket says nothing about its prices."""
        return now - socket.updated_at > (self.feed.quiet_live if live else self.feed.quiet_prematch)

    async def _poll(self, web: Web, receiver: Receiver, backoff: Backoff) -> float:
        """Request all books."""
        feed = self.feed
        receiver.expect(feed.name, _BOOKS, feed.interval + feed.timeout)
        tokens = [token for pair in self._reader.tokens.values() for token in pair]
        began = receiver.now()
        for at in range(0, len(tokens), _BATCH):
            await self._books(web, receiver, tokens[at : at + _BATCH])
            await asyncio.sleep(_PAUSE_S)
        self._polled_at = began
        backoff.reset()
        receiver.alive(feed.name, _BOOKS)
        return feed.interval if tokens else _LOOK_S

    async def _books(self, web: Web, receiver: Receiver, tokens: list[str]) -> None:
        body = msgspec.json.encode([{"token_id": token} for token in tokens])
        headers = {"content-type": "application/json", "accept": "application/json"}
        answer = await web.post(f"{self.feed.books_url.rstrip('/')}/books", headers, body)
        await self._apply(receiver, _BOOKS, answer.body, self._reader.read_books, tokens)

    # ---- ages ----

    async def _renew(self, receiver: Receiver) -> float:
        """Prices hold as of the last message of their socket, or the last answer. Games that start are live."""
        async with self._reading:
            payload, now = self._reader.alive(receiver.now()), asyncio.get_running_loop().time()
            rows: dict[str, list[dict[str, Any]]] = {_BOOKS: []} if payload.removed else {}
            for row in payload.quotes:
                socket = self._socket_of.get(row["id"])
                if socket is None:
                    held_at = self._polled_at
                elif self._is_quiet(socket, now, live=row["is_live"]):
                    held_at = self._reader.read_at(row["id"])
                else:
                    held_at = socket.heard_at
                seen_at = row.get("last_seen_at") or held_at
                if seen_at is not None:
                    rows.setdefault(socket.part if socket else _BOOKS, []).append(row | {"last_seen_at": seen_at})
            for part, quotes in rows.items():
                await receiver.deliver(self.feed.name, payload._replace(quotes=quotes), part)
        return _LOOK_S


async def _ping(connection: ClientConnection, every: float) -> None:
    with suppress(ConnectionClosed):
        while True:
            await asyncio.sleep(every)
            await connection.send("PING")
