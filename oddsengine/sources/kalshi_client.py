"""Kalshi: lists of its markets, which need no key, and its stream of order books, which needs one.

Each league is read in turns: its open events with their milestones, then the markets of each series of these games,
whose lists have the best price of both sides. With a key, books come from the stream (`kalshi_stream`), and lists are
read rarely, for new markets and statuses, or at once when the stream or its statuses were lost. A connection that
answers pings may have stopped to send changes: if it was `quiet` for so long, its prices are not renewed until it has
sent a book again.

Announced changes of fees are read every ten minutes, and markets are priced anew when their time comes.

Requests keep to the tokens of the account (`polling`). "Too many requests" comes without a time to wait.
"""

import asyncio
import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any

from oddsengine.feeds import Payload
from oddsengine.feeds.kalshi import KalshiMarkets
from oddsengine.feeds.kalshi_format import next_cursor
from oddsengine.feeds.kalshi_series import SERIES
from oddsengine.sources.failure import HTTP_UNAUTHORIZED, RATE_LIMITED, REFUSED, Failure
from oddsengine.sources.polling import PacedWeb, Query, TokenBucket, parameter
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import KalshiSettings, SettingsError
from oddsengine.sources.web import Web

__all__ = ["SERIES", "KalshiSource"]

_EVENTS, _MARKETS, _TARGETS, _BOOKS = 200, 1000, 100, 100  # of one request; more than its limit is refused
_CALL = 10.0  # tokens of a request; a batch costs as many as its items would alone
_FEES_S = 21_600.0  # after which the fee of a series is read again
_CHANGES_S, _REPRICE_S = 600.0, 1.0  # between two lists of announced changes of fees, and two looks at them
_CHANGES = 1000  # of one request
_STREAM, _FEES = "stream", "fees"  # parts


class KalshiSource:
    """The fetcher."""

    def __init__(self, feed: KalshiSettings, env: Mapping[str, str], secrets: Secrets) -> None:
        self.feed = feed
        self.reader = KalshiMarkets()
        self.new_markets = False  # lists may have new markets for the stream
        self._secrets = secrets
        self._leagues = list(dict.fromkeys(SERIES.get(sport, sport) for sport in feed.sports))
        self._bucket = TokenBucket(feed.rate)
        self._announced_at = -inf  # when changes of fees were read
        self._fees_read_at: dict[str, float] = {}  # by series: when its fee was read
        self._lock = asyncio.Lock()  # of the reader, which parses in threads; payloads are delivered in their order
        self._waiting = set(self._leagues)
        self._listed = asyncio.Event()  # every league was read once
        self._lost = asyncio.Event()  # replaced after each loss of the stream or of statuses
        self._streaming = False
        self._updated_at = -inf  # when the stream last sent a book or a change
        self._no_books = False  # order books need a key
        self._stream = _stream(feed, env["key_env"], env["private_key_env"]) if env["private_key_env"] else None
        if self._stream is not None:
            self._waiting.add(_STREAM)

    async def run(self, receiver: Receiver) -> None:
        await self._disconnected(receiver)  # an earlier run may have ended with a bug
        async with Web(self.feed, self._secrets, receiver) as web, asyncio.TaskGroup() as group:
            for winners in self._leagues:
                paced = PacedWeb(self.feed, self.feed.url, web, self._bucket, receiver, winners)
                group.create_task(self._league(paced, receiver, winners))
            paced = PacedWeb(self.feed, self.feed.url, web, self._bucket, receiver, _FEES)
            group.create_task(
                keep_trying(self.feed, receiver, lambda backoff: self._reprice(paced, receiver, backoff), _FEES)
            )
            if self._stream is not None:
                group.create_task(self._follow(receiver))

    # ---- lists ----

    async def _league(self, web: PacedWeb, receiver: Receiver, winners: str) -> None:
        await keep_trying(
            self.feed, receiver, lambda backoff: self._turn(web, receiver, winners, backoff), winners
        )  # fmt: skip

    async def _turn(self, web: PacedWeb, receiver: Receiver, winners: str, backoff: Backoff) -> float:
        """Read all that a league has now, and wait for its next turn."""
        feed, reader, lost = self.feed, self.reader, self._lost  # what is lost during this turn ends its wait
        receiver.expect(feed.name, winners, 2.0 * self._interval + feed.timeout, polled=True)
        query: Query = [("series_ticker", winners), ("status", "open"), ("with_milestones", "true"), ("limit", _EVENTS)]
        pages = await _pages(web, "/events", query)
        await self._apply(receiver, winners, pages, lambda: reader.add_events(winners, pages, receiver.now()))
        await self._name(web, receiver, winners)
        async with self._lock:
            all_series = reader.series(winners)
        for series in all_series:
            if feed.series and series not in (winners, *feed.series):
                continue
            if await self._read_fees(web, receiver, winners, series):
                await self._list(web, receiver, winners, series)
        if feed.order_books and self._stream is None and not self._no_books:
            await self._order_books(web, receiver, winners)
        receiver.alive(feed.name, winners)
        backoff.reset()
        self.new_markets = True
        self._begun(receiver, winners)
        with suppress(TimeoutError):
            receiver.expect(feed.name, winners, 2.0 * self._interval + feed.timeout, polled=True)
            async with asyncio.timeout(self._interval):
                await lost.wait()
        return 0.0

    @property
    def _interval(self) -> float:
        """Seconds between two turns of a league."""
        return self.feed.refresh if self._streaming else self.feed.interval

    async def _list(self, web: PacedWeb, receiver: Receiver, winners: str, series: str) -> None:
        query: Query = [
            ("series_ticker", series), ("status", "open"), ("mve_filter", "exclude"), ("limit", _MARKETS),
        ]  # fmt: skip
        pages = await _pages(web, "/markets", query)
        await self._apply(
            receiver, winners, pages, lambda: self.reader.read_markets(series, pages, receiver.now())
        )  # fmt: skip
        await self._name(web, receiver, winners)

    async def _read_fees(self, web: PacedWeb, receiver: Receiver, winners: str, series: str) -> bool:
        """Request the fee of a series every few hours. Returns whether it is known; without it, prices are wrong."""
        now = asyncio.get_running_loop().time()
        if now < self._fees_read_at.get(series, -inf) + _FEES_S:
            return True
        try:
            body = (await web.get(f"/series/{series}", [], _CALL)).body
        except Failure as failure:
            if failure.kind == RATE_LIMITED or series == winners:
                raise
            receiver.warn(self.feed.name, f"the fee of {series} cannot be read: {failure}")
            async with self._lock:
                return self.reader.has_fee(series)
        await self._apply(receiver, winners, [body], lambda: self.reader.add_series(series, body, receiver.now()))
        self._fees_read_at[series] = now
        return True

    async def _reprice(self, web: PacedWeb, receiver: Receiver, backoff: Backoff) -> float:
        """Read announced changes of fees now and then, and price the markets anew whose fee changes."""
        feed, reader, now = self.feed, self.reader, asyncio.get_running_loop().time()
        receiver.expect(feed.name, _FEES, 2.0 * _CHANGES_S + feed.timeout, polled=True)
        if now >= self._announced_at + _CHANGES_S:
            try:
                of_series = [(await web.get("/series/fee_changes", [], _CALL)).body]
                of_events = await _pages(web, "/events/fee_changes", [("limit", _CHANGES)])
            except Failure as failure:
                if failure.kind != REFUSED:
                    raise
                receiver.warn(feed.name, f"announced changes of fees cannot be read: {failure}")
            else:
                bodies = [*of_series, *of_events]
                await self._apply(receiver, _FEES, bodies, lambda: reader.add_fee_changes(of_series, of_events))
            self._announced_at = now
            backoff.reset()
            receiver.alive(feed.name, _FEES)
        async with self._lock:
            payload = reader.reprice(receiver.now())
            if payload.quotes or payload.removed:
                await self._deliver(receiver, _FEES, payload)
        return _REPRICE_S

    async def _name(self, web: PacedWeb, receiver: Receiver, winners: str) -> None:
        """Request the names of teams and players that lack them."""
        while True:
            async with self._lock:
                wanted = list(self.reader.unnamed)[:_TARGETS]
            if not wanted:
                return
            query: Query = [*(("ids", one) for one in wanted), ("page_size", _TARGETS)]
            body = (await web.get("/structured_targets", query, _CALL)).body
            await self._apply(
                receiver, winners, [body], lambda: self.reader.add_targets(body, wanted, receiver.now())  # noqa: B023
            )  # fmt: skip

    async def _order_books(self, web: PacedWeb, receiver: Receiver, winners: str) -> None:
        async with self._lock:
            tickers = self.reader.open_markets(winners)
        for at in range(0, len(tickers), _BOOKS):
            batch = tickers[at : at + _BOOKS]
            query: Query = [("tickers", ticker) for ticker in batch]
            try:
                body = (await web.get("/markets/orderbooks", query, _CALL * len(batch))).body
            except Failure as failure:
                if failure.status != HTTP_UNAUTHORIZED:
                    raise
                self._no_books = True
                receiver.warn(self.feed.name, "order books need a key; prices are those of lists of markets")
                return
            await self._apply(
                receiver, winners, [body], lambda: self.reader.read_order_books(body, receiver.now())  # noqa: B023
            )  # fmt: skip

    async def _apply(
        self, receiver: Receiver, part: str, bodies: Sequence[bytes], parse: Callable[[], Payload]
    ) -> None:  # fmt: skip
        """Parse bodies, and deliver what they say."""
        async with self._lock:
            payload = await parsed(self.feed, receiver, b"\n".join(bodies), parse)
            await self._deliver(receiver, part, payload)

    async def _deliver(self, receiver: Receiver, part: str, payload: Payload) -> None:
        if any((payload.quotes, payload.removed, payload.games, payload.refused, payload.unmapped)):
            await receiver.deliver(self.feed.name, payload, part)
        else:
            receiver.alive(self.feed.name, part)

    def _begun(self, receiver: Receiver, part: str) -> None:
        """Record that a part was read once."""
        self._waiting.discard(part)
        if self._waiting <= {_STREAM}:
            self._listed.set()
        if not self._waiting:
            receiver.caught_up(self.feed.name)

    # ---- the stream ----

    async def _follow(self, receiver: Receiver) -> None:
        await self._listed.wait()
        await keep_trying(self.feed, receiver, lambda backoff: self._connection(receiver, backoff), _STREAM)

    async def _connection(self, receiver: Receiver, backoff: Backoff) -> float:
        """Follow one connection to its end, which is a failure."""
        feed, reader = self.feed, self.reader
        assert self._stream is not None
        receiver.expect(feed.name, _STREAM, feed.silence + feed.timeout)
        try:
            async with self._stream.connection() as connection:
                self._updated_at = asyncio.get_running_loop().time()
                while True:
                    ended: list[str] = []
                    if self.new_markets or reader.reopened:
                        self.new_markets = reader.reopened = False
                        async with self._lock:
                            tickers = reader.open_markets()
                            # A list without a market ends its book, which is still followed if it opened meanwhile.
                            ended = [ticker for ticker in tickers if not reader.is_streamed(ticker)]
                        await connection.follow(tickers)
                    doubtful = await self._read_next(receiver, await connection.receive())
                    if reader.statuses_lost:
                        raise Failure("a gap in the statuses of markets")
                    if connection.lists_due:
                        connection.lists_due = False
                        if _STREAM not in self._waiting:  # the first time, lists were read just before
                            self._list_now()
                    await connection.repair((*doubtful, *ended))
                    if not self._streaming and connection.complete(reader.is_streamed):
                        self._streaming = True
                        backoff.reset()
                        self._begun(receiver, _STREAM)
        except Failure:
            await self._disconnected(receiver)
            raise

    async def _disconnected(self, receiver: Receiver) -> None:
        """Suspend the prices of the stream; lists have them until it is back."""
        async with self._lock:
            payload = self.reader.disconnected(receiver.now())
            if payload.quotes or payload.removed:
                await receiver.deliver(self.feed.name, payload, _STREAM)
        self.new_markets = True
        if self._streaming:
            self._streaming = False
            self._list_now()

    def _list_now(self) -> None:
        """End the wait of all leagues for their next turn."""
        self._lost.set()
        self._lost = asyncio.Event()

    async def _read_next(self, receiver: Receiver, message: bytes | None) -> list[str]:
        """Deliver what a message says, and renew prices that have not changed; return the markets to read again."""
        reader, now = self.reader, asyncio.get_running_loop().time()
        async with self._lock:
            updates = reader.updates
            if message is not None:
                payload = await parsed(self.feed, receiver, message, reader.read, message, receiver.now())
                await self._deliver(receiver, _STREAM, payload)
            if reader.updates > updates:
                self._updated_at = now
            is_quiet = now - self._updated_at > self.feed.quiet
            renewed = Payload() if is_quiet else reader.alive(receiver.now())
            if message is None or renewed.quotes:
                await self._deliver(receiver, _STREAM, renewed)
            return list(dict.fromkeys((*reader.doubtful, *reader.streamed)) if is_quiet else reader.doubtful)


async def _pages(web: PacedWeb, path: str, query: Query) -> list[bytes]:
    """Request all pages of a list."""
    return [page.body for page in await web.pages(path, query, parameter("cursor", next_cursor), _CALL)]


def _stream(feed: KalshiSettings, key: str, private_key: str) -> Any:
    """Create the stream; raises `SettingsError` if what it needs is not installed or the private key is not valid."""
    try:
        module = importlib.import_module("oddsengine.sources.kalshi_stream")
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"{feed.name}: the stream of Kalshi needs the package {error.name}: pip install 'oddsengine[kalshi]'"
        ) from None
    return module.KalshiStream(feed, key, private_key)
