"""Feeds that are documents: a file, a folder or a URL, read once or polled."""

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import polars as pl

from oddsengine import catalog
from oddsengine.feeds import Payload
from oddsengine.feeds import football_data as history
from oddsengine.feeds import table as odds_table
from oddsengine.sources.failure import Failure
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import DocumentSettings, TableSettings
from oddsengine.sources.web import Web

Read = Callable[[bytes, str], list[Payload]]  # a document and its name
_TABLES = (".csv", ".json", ".ndjson", ".jsonl", ".parquet")
_SETTLED_S, _SETTLES_S = 1.0, 0.2  # a file as new as this may be incomplete; how long to look whether it changes
RENEW_S = 20.0  # between two deliveries of a table that has not changed; prices a minute old degrade a node
_FIRST = datetime.min.replace(tzinfo=UTC)


class _Version(NamedTuple):
    """A version of a document."""

    stamp: object  # differs from those of other versions
    written: float  # Unix time; of a URL, when it was first read


class DocumentSource:
    """The fetcher; `read` parses documents."""

    def __init__(self, feed: DocumentSettings, read: Read, suffixes: tuple[str, ...], secrets: Secrets) -> None:
        self.feed, self._read, self._suffixes, self._secrets = feed, read, suffixes, secrets
        self._stamps: dict[str, object] = {}  # a document's name -> its version when last read
        self._names: set[str] = set()  # of all documents
        self._invalid: dict[str, int] = {}  # a document's name -> its rows, of which none is valid

    async def run(self, receiver: Receiver) -> None:
        async with Web(self.feed, self._secrets, receiver) as web:
            await keep_trying(self.feed, receiver, lambda backoff: self._turn(web, receiver, backoff))

    async def _turn(self, web: Web, receiver: Receiver, backoff: Backoff) -> float | None:
        await self._read_changed(web, receiver)
        receiver.warn(self.feed.name, *self._problem())
        receiver.alive(self.feed.name)
        backoff.reset()
        receiver.caught_up(self.feed.name, ended=not self.feed.interval)
        return self.feed.interval or None

    async def _read_changed(self, web: Web, receiver: Receiver) -> None:
        feed = self.feed
        receiver.expect(feed.name, "", feed.interval + feed.timeout)
        read: dict[str, tuple[_Version, list[Payload]]] = {}
        async with aclosing(self._changed(web)) as documents:
            async for name, version, body in documents:
                payloads = await parsed(feed, receiver, body, self._read, body, name)
                read[name] = version, payloads
                self._invalid.pop(name, None)
                if not any(payload.quotes for payload in payloads) and (refused := _refused(payloads)):
                    self._invalid[name] = refused
        await self._deliver(receiver, read)
        self._stamps |= {name: version.stamp for name, (version, _) in read.items()}

    async def _deliver(self, receiver: Receiver, read: Mapping[str, tuple["_Version", list[Payload]]]) -> None:
        """Deliver documents that changed."""
        payloads = [payload for _, of_document in read.values() for payload in of_document]
        for payload in sorted(payloads, key=lambda one: one.moment or _FIRST):
            await receiver.deliver(self.feed.name, payload)

    def _problem(self) -> tuple[str, str]:
        """Documents without a valid row, whose earlier prices are still used; and that without names of files."""
        what = f"none of the {sum(self._invalid.values()):,} rows of {{}} is valid"
        named = ", ".join(sorted(self._invalid))
        return (what.format(named), what.format("its latest data")) if named else ("", "")

    async def _changed(self, web: Web) -> AsyncGenerator[tuple[str, "_Version", bytes], None]:
        """Yield documents that changed: name, version, body."""
        if self.feed.url:
            body = (await web.get(self.feed.url)).body
            stamp: object = hashlib.sha256(body).digest()
            self._names = {self.feed.url}
            if self._stamps.get(self.feed.url) != stamp:
                yield self.feed.url, _Version(stamp, time.time()), body
            return
        files = await asyncio.to_thread(self._files)
        self._names = set(map(str, files))
        for removed in self._invalid.keys() - self._names:
            del self._invalid[removed]
        for path in files:
            try:
                about = await asyncio.to_thread(path.stat)
                stamp = about.st_mtime_ns, about.st_size
                if self._stamps.get(str(path)) == stamp:
                    continue
                if about.st_size > self.feed.body_bytes:
                    raise Failure(f"{path} has more than {self.feed.body_bytes} bytes")
                body = await asyncio.to_thread(path.read_bytes)
                if abs(time.time() - about.st_mtime) < _SETTLED_S:
                    await asyncio.sleep(_SETTLES_S)
                after = await asyncio.to_thread(path.stat)
                if stamp != (after.st_mtime_ns, after.st_size):
                    raise Failure(f"{path} was changed while it was read; replace it by renaming a new file")
                yield str(path), _Version(stamp, about.st_mtime), body
            except OSError as error:
                raise Failure(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None

    def _files(self) -> list[Path]:
        root = Path(self.feed.path)
        if root.is_dir():
            return sorted(path for path in root.rglob("*") if path.suffix.lower() in self._suffixes)
        if not root.exists():
            raise Failure(f"{root}: no such file")
        return [root]


class TableSource(DocumentSource):
    """The fetcher of tables. A table lists the prices that there are, so they do not age while it stays as it is.

    Where prices age, it is delivered again from time to time, without prices in play; those with a time of their own
    keep it. A table older than `max_age` has no prices until it is written again.
    """

    def __init__(self, feed: TableSettings, secrets: Secrets) -> None:
        super().__init__(feed, _Tables(feed.columns).read, _TABLES, secrets)
        self._max_age = feed.max_age
        self._current: dict[str, _Table] = {}
        self._read_at = -math.inf  # monotonic

    async def _turn(self, web: Web, receiver: Receiver, backoff: Backoff) -> float | None:
        if not receiver.ages:
            return await super()._turn(web, receiver, backoff)
        feed, due = self.feed, self._read_at + (self.feed.interval or math.inf)
        if self._read_at == -math.inf or time.monotonic() >= due:
            await self._read_changed(web, receiver)
            self._read_at = time.monotonic()
            self._current = {name: table for name, table in self._current.items() if name in self._names}
        await self._renew(receiver)
        receiver.expect(feed.name, "", max(feed.interval, RENEW_S) + feed.timeout)
        receiver.warn(feed.name, *self._problem())
        receiver.alive(feed.name)
        written = min((table.written for table in self._current.values()), default=None)
        receiver.written(feed.name, None if written is None else datetime.fromtimestamp(written, UTC))
        backoff.reset()
        receiver.caught_up(feed.name)
        return max(0.0, min(RENEW_S, self._read_at + (feed.interval or math.inf) - time.monotonic()))

    async def _deliver(self, receiver: Receiver, read: Mapping[str, tuple[_Version, list[Payload]]]) -> None:
        for name, (version, (payload,)) in read.items():
            before, table = self._current.pop(name, None), _Table(version.written, payload)
            if not self._is_old(table):
                await receiver.deliver(self.feed.name, self._with_others(payload))
                table.delivered_at, table.seen_at = time.monotonic(), receiver.now()
            elif before is not None:  # whose prices `_renew` removes
                table.payload, table.delivered_at = before.payload, before.delivered_at
            self._current[name] = table  # at the end: of two prices of one bet, that of the last one read holds

    async def _renew(self, receiver: Receiver) -> None:
        """Remove the prices of tables that are too old, and deliver the others again before they become stale."""
        for table in self._current.values():
            if table.delivered_at is not None and self._is_old(table):
                await receiver.deliver(self.feed.name, self._with_others(Payload(complete=table.books)))
                table.delivered_at = None
        tables = [table for table in self._current.values() if table.delivered_at is not None]
        now = time.monotonic()
        if any(now >= (table.delivered_at or now) + RENEW_S for table in tables):
            # At once: of two prices of one bet, the first would be on the board for a moment.
            games = [game for table in tables for game in table.payload.games]
            await receiver.deliver(
                self.feed.name, Payload(games, [quote for table in tables for quote in table.renewed])
            )
            for table in tables:
                table.delivered_at = now

    def _with_others(self, payload: Payload) -> Payload:
        """Add the prices of the other tables that list a book of a payload, which would seem to be gone."""
        books = {catalog.book(book).id for book, _ in payload.complete}
        others = [
            table for table in self._current.values()
            if table.delivered_at is not None
            and not self._is_old(table)
            and any(catalog.book(book).id in books for book, _ in table.books)
        ]  # fmt: skip
        if not others:
            return payload
        games = [game for table in others for game in table.payload.games]
        quotes = [quote for table in others for quote in table.quotes]
        return payload._replace(games=[*games, *payload.games], quotes=[*quotes, *payload.quotes])

    def _problem(self) -> tuple[str, str]:
        old = sum(map(self._is_old, self._current.values()))
        if not old:
            return super()._problem()
        what = f"{old} of {len(self._current)} files are" if len(self._current) > 1 else "the file is"
        why = f"{what} older than max_age, {self._max_age:g} s"
        return why, why

    def _is_old(self, table: "_Table") -> bool:
        return self._max_age is not None and time.time() - table.written > self._max_age


@dataclass
class _Table:
    """The table of one document."""

    written: float  # Unix time
    payload: Payload
    delivered_at: float | None = None  # monotonic; None: its prices are not there
    seen_at: datetime | None = None  # when it was read

    @property
    def books(self) -> list[tuple[str, str | None]]:
        return [(book, None) for book in dict.fromkeys(quote["sportsbook"] for quote in self.payload.quotes)]

    @property
    def quotes(self) -> list[dict[str, Any]]:
        """All of its prices; those in play were seen when it was read."""
        return [
            {"last_seen_at": self.seen_at, **quote} if quote.get("is_live") else quote for quote in self.payload.quotes
        ]

    @property
    def renewed(self) -> list[dict[str, Any]]:
        """Its prices before the games."""
        return [quote for quote in self.payload.quotes if not quote.get("is_live")]


def _refused(payloads: list[Payload]) -> int:
    """How many rows of a document are not valid."""
    return sum(payload.refused.total() for payload in payloads)


def football_data(feed: DocumentSettings, _: Mapping[str, str], secrets: Secrets) -> DocumentSource:
    """CSV files of football-data.co.uk; the prices of each time are one payload."""
    return DocumentSource(feed, lambda body, _: _history(body), (".csv",), secrets)


def _history(body: bytes) -> list[Payload]:
    read = history.read(body)
    games = {game.id: game for game in read.games}
    payloads = []
    for moment, frame in read.moments():
        rows = frame.select(pl.exclude("closing")).to_dicts()
        named = [games[event] for event in dict.fromkeys(row["event_id"] for row in rows)]
        payloads.append(Payload(named, rows, moment=moment))
    if payloads:
        payloads[0] = payloads[0]._replace(refused=read.refused)
    return payloads or [Payload(refused=read.refused)]


def table(feed: TableSettings, _: Mapping[str, str], secrets: Secrets) -> TableSource:
    """A table of odds."""
    return TableSource(feed, secrets)


class _Tables:
    """Reads tables, and remembers the books of each: a book that is no longer listed has no prices."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self._books: dict[str, set[str]] = {}

    def read(self, body: bytes, name: str) -> list[Payload]:
        payload = odds_table.read(body, PurePosixPath(urlsplit(name).path).suffix, self._columns)
        if not payload.complete:
            return [payload]
        books = {book for book, _ in payload.complete}
        removed = sorted(self._books.get(name, set()) - books)
        self._books[name] = books
        return [payload._replace(complete=[*payload.complete, *((book, None) for book in removed)])]
