"""Import responses of The Odds API: snapshots of odds, historical odds, and scores, in order of their times.

A file has one response (.json), a list of them, or one per line (.jsonl, .ndjson). A historical response has the time
of its snapshot; another one counts as known at the time of its newest price. A price that the next snapshot of its game
does not list any more, although it has other prices of the book and of the market, ends there.
"""

import heapq
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from oddsengine.feeds.decoding import moment
from oddsengine.feeds.payload import FeedError, Payload
from oddsengine.feeds.the_odds_api import ScoresParser, TheOddsApi
from oddsengine.history.import_files import HEAD, HistoryFileError, OpenFile, RecordedFile
from oddsengine.history.import_step import ImportStep, StandingPrices

_LINES = (".jsonl", ".ndjson")
_STAMP = re.compile(rb'"timestamp"\s*:\s*(?:"([^"]+)"|(\d+))')
_UPDATED = re.compile(rb'"last_update"\s*:\s*(?:"([^"]+)"|(\d+))')
_OVER = timedelta(days=2)  # after the last snapshot of a game, nothing is held of it
_EVERY = 500  # responses between two looks for such games
_FIRST = datetime.min.replace(tzinfo=UTC)
_ANY = msgspec.json.Decoder(msgspec.Raw)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_FORMATS = {None: None, "american": True, "decimal": False}


class _Response(NamedTuple):
    """A response, its time as far as it has one, and where it is from."""

    at: datetime
    number: int  # of the file; then in the file
    place: int
    data: bytes
    where: str


class _Snapshots:
    """The prices that the snapshots so far list."""

    def __init__(self, step: ImportStep, *, american: bool | None) -> None:
        self._step = step
        self._parser = TheOddsApi(american=american)
        self._prices = StandingPrices()
        self._seen: dict[str, datetime] = {}  # event -> its last snapshot
        self._count = 0

    def read(self, response: _Response) -> None:
        """Add what a response says."""
        try:
            if _is_scores(response.data):
                self._results(ScoresParser().read(response.data, ""), response.where)
                return
            payload = self._parser.read_recorded(response.data)
        except (FeedError, OverflowError) as error:  # times before the year 1 or after 9999
            self._step.left_out.add("a response that cannot be read", f"{response.where}: {error}")
            return
        self._step.left_out.add_all(payload.refused, response.where)
        if payload.futures:
            self._step.left_out.add("an outright, which is no market of a game", response.where, len(payload.futures))
        if not payload.quotes and not payload.removed:
            self._step.left_out.add("a response without prices of games", response.where)
        elif payload.moment is None:
            self._step.left_out.add("a response without a time", response.where)
        else:
            self._snapshot(payload, payload.moment, response.where)

    def _snapshot(self, payload: Payload, at: datetime, where: str) -> None:
        self._step.add(self._prices.apply(payload, at), at, where)
        self._seen |= dict.fromkeys((game.id for game in payload.games), at)
        self._count += 1
        if self._count % _EVERY == 0:
            self._forget([event for event, seen in self._seen.items() if at - seen > _OVER])

    def _forget(self, events: list[str]) -> None:
        self._parser.forget(events)
        self._prices.forget(events)
        for event in events:
            del self._seen[event]

    def _results(self, payload: Payload, where: str) -> None:
        for reading in payload.scores:
            if reading.over and reading.score is not None:
                self._step.result(reading.event, *reading.score, where)


def read(files: list[RecordedFile], step: ImportStep, odds_format: str | None) -> None:
    """Read all files."""
    snapshots = _Snapshots(step, american=_FORMATS[odds_format])
    for response in _in_order(files, step):
        snapshots.read(response)


def _in_order(files: list[RecordedFile], step: ImportStep) -> Iterator[_Response]:
    """All responses in order of time; a file is opened when its first one is due."""
    first = []
    for number, file in enumerate(files):
        if step.belongs(file, file.head()):
            first.append((_first_time(file), number))
    waiting, running = sorted(first, reverse=True), list[tuple[_Response, Iterator[_Response]]]()
    with ExitStack() as stack:
        while waiting or running:
            while waiting and (not running or waiting[-1] <= running[0][0][:2]):
                number = waiting.pop()[1]
                opened = stack.enter_context(files[number].open())
                step.reading(opened)
                responses = _responses(opened, number)
                if (response := next(responses, None)) is not None:
                    heapq.heappush(running, (response, responses))
            if not running:
                continue
            response, responses = running[0]
            yield response
            if (following := next(responses, None)) is None:
                heapq.heappop(running)
            else:
                heapq.heapreplace(running, (following, responses))


def _responses(file: OpenFile, number: int) -> Iterator[_Response]:
    found = (_Response(_time_of(data) or _FIRST, number, place, data, where)
             for place, (data, where) in enumerate(_documents(file)))  # fmt: skip
    last = _FIRST
    for response in found:
        if _FIRST < response.at < last and _STAMP.search(response.data[:HEAD]):
            raise HistoryFileError(
                f"{response.where}: its time is before that of the response before it; sort the responses of a file by "
                "time, or write each to a file of its own"
            )
        last = max(response.at, last)
        yield response._replace(at=last)
    file.close()


def _documents(file: OpenFile) -> Iterator[tuple[bytes, str]]:
    """The responses of a file, and where each is."""
    name = file.of.name
    if file.of.suffix in _LINES:
        yield from _lines(file.lines(), name)
        return
    data = file.read()
    try:
        _ANY.decode(data)
    except msgspec.MsgspecError:
        if b"\n" in data.strip():
            yield from _lines(data.splitlines(), name)
            return
    listed = _listed(data)
    if listed is None:
        yield data, name
    else:
        yield from ((item, f"{name}, response {at}") for at, item in enumerate(listed, 1))


def _lines(lines: Any, name: str) -> Iterator[tuple[bytes, str]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield line, f"{name}, line {number:,}"


def _listed(data: bytes) -> list[bytes] | None:
    """The responses in a list of them; None if the data is one response."""
    if data.lstrip()[:1] != b"[":
        return None
    try:
        items = [bytes(item) for item in _LIST.decode(data)]
    except msgspec.MsgspecError:
        return None
    return items if items and all(item.startswith(b"[") or _STAMP.search(item[:HEAD]) for item in items) else None


def _first_time(file: RecordedFile) -> datetime:
    head = file.head()
    if _STAMP.search(head) and (found := _time_of(head)) is not None:
        return found
    with file.open() as opened:
        data = next((data for data, _ in _documents(opened)), b"")
    return _time_of(data) or _FIRST


def _time_of(data: bytes) -> datetime | None:
    """The time of a response, by its texts: that of its snapshot, or else its newest update."""
    stamp = _STAMP.search(data[:HEAD])
    stamps = [stamp.groups()] if stamp else _UPDATED.findall(data)
    return max(filter(None, map(_parsed, stamps)), default=None)


def _parsed(stamp: tuple[bytes | None, bytes | None]) -> datetime | None:
    text, number = stamp
    try:
        return moment(datetime.fromisoformat(text.decode()) if text else float(number or 0))
    except (ValueError, OverflowError):
        return None


def _is_scores(data: bytes) -> bool:
    """Whether a response is a list of scores."""
    head = data[:HEAD]
    return b'"bookmakers"' not in head and b'"completed"' in head and b'"scores"' in head
