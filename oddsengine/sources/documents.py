"""Feeds that are documents: a file, a folder or a URL, read once or polled."""

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import polars as pl

from oddsengine.feeds import Payload
from oddsengine.feeds import football_data as history
from oddsengine.feeds import table as odds_table
from oddsengine.sources.failure import Failure
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.settings import DocumentSettings, TableSettings
from oddsengine.sources.web import Web

Read = Callable[[bytes, str], list[Payload]]  # a document and its name
_TABLES = (".csv", ".json", ".ndjson", ".jsonl", ".parquet")
_SETTLED_S, _SETTLES_S = 1.0, 0.2  # a file as new as this may be incomplete; how long to look whether it changes
_FIRST = datetime.min.replace(tzinfo=UTC)


class DocumentSource:
    """The fetcher; `read` parses documents."""

    def __init__(self, feed: DocumentSettings, read: Read, suffixes: tuple[str, ...], secrets: Secrets) -> None:
        self.feed, self._read, self._suffixes, self._secrets = feed, read, suffixes, secrets
        self._stamps: dict[str, object] = {}  # a document's name -> its version when last read
        self._invalid: dict[str, int] = {}  # a document's name -> its rows, of which none is valid

    async def run(self, receiver: Receiver) -> None:
        async with Web(self.feed, self._secrets) as web:
            await keep_trying(self.feed, receiver, lambda backoff: self._turn(web, receiver, backoff))

    async def _turn(self, web: Web, receiver: Receiver, backoff: Backoff) -> float | None:
        feed = self.feed
        receiver.expect(feed.name, "", feed.interval + feed.timeout)
        payloads: list[Payload] = []
        stamps: dict[str, object] = {}
        async with aclosing(self._changed(web)) as documents:
            async for name, stamp, body in documents:
                payloads += (read := await parsed(feed, receiver, body, self._read, body, name))
                stamps[name] = stamp
                self._invalid.pop(name, None)
                if not any(payload.quotes for payload in read) and (refused := _refused(read)):
                    self._invalid[name] = refused
        for payload in sorted(payloads, key=lambda one: one.moment or _FIRST):
            await receiver.deliver(feed.name, payload)
        self._stamps |= stamps
        self._warn(receiver)
        receiver.alive(feed.name)
        backoff.reset()
        receiver.caught_up(feed.name, ended=not feed.interval)
        return feed.interval or None

    def _warn(self, receiver: Receiver) -> None:
        """Report documents without a valid row, whose earlier prices are still used."""
        what = f"none of the {sum(self._invalid.values()):,} rows of {{}} is valid"
        named, public = ", ".join(sorted(self._invalid)), "its latest data"
        receiver.warn(self.feed.name, *(what.format(each) if named else "" for each in (named, public)))

    async def _changed(self, web: Web) -> AsyncGenerator[tuple[str, object, bytes], None]:
        """Yield documents that changed: name, stamp, body."""
        if self.feed.url:
            body = (await web.get(self.feed.url)).body
            stamp: object = hashlib.sha256(body).digest()
            if self._stamps.get(self.feed.url) != stamp:
                yield self.feed.url, stamp, body
            return
        files = await asyncio.to_thread(self._files)
        for gone in self._invalid.keys() - set(map(str, files)):
            del self._invalid[gone]
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
                yield str(path), stamp, body
            except OSError as error:
                raise Failure(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None

    def _files(self) -> list[Path]:
        root = Path(self.feed.path)
        if root.is_dir():
            return sorted(path for path in root.rglob("*") if path.suffix.lower() in self._suffixes)
        if not root.exists():
            raise Failure(f"{root}: no such file")
        return [root]


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


def table(feed: TableSettings, _: Mapping[str, str], secrets: Secrets) -> DocumentSource:
    """A table of odds."""
    return DocumentSource(feed, _Tables(feed.columns).read, _TABLES, secrets)


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
        gone = sorted(self._books.get(name, set()) - books)
        self._books[name] = books
        return [payload._replace(complete=[*payload.complete, *((book, None) for book in gone)])]
