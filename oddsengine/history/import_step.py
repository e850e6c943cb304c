"""What all importers do with what they read: count it, leave out what no market compares, and say how far they are."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.feeds.payload import Payload
from oddsengine.history.import_files import HistoryFileError, OpenFile, RecordedFile, check_source
from oddsengine.history.import_report import LeftOut
from oddsengine.history.import_writer import HistoryWriter, Row
from oddsengine.matching.price_ids import Price, PriceIds, price_of

YEARS = range(1990, 2100)
_MOST_SCORE = 10_000

Show = Callable[[float | None, int], None]
"""Called with the fraction done, None if unknown, and the number of prices so far."""


@lru_cache(maxsize=4096)
def is_compared(market_type: str, sport: str, stat: str = "") -> bool:
    """Whether prices of a market are compared with those of other books."""
    return catalog.market_type(market_type, sport, stat).usable


class ImportStep:
    """One import."""

    def __init__(self, source: str, writer: HistoryWriter, files: Sequence[RecordedFile], show: Show) -> None:
        self.source, self.writer, self.left_out = source, writer, LeftOut()
        self.remarks: list[str] = []
        self.files = 0
        self._show, self._bytes = show, max(sum(file.size for file in files), 1)
        self._open: list[OpenFile] = []
        self._done = 0

    def belongs(self, file: RecordedFile, head: bytes) -> bool:
        """Whether a file is of the source; one that the user named, and is not, raises `HistoryFileError`."""
        try:
            check_source(file.name, head, self.source)
        except HistoryFileError as problem:
            if file.given:
                raise
            self.left_out.add("a file of something else", str(problem))
            self._done += file.size
            return False
        self.files += 1
        return True

    def reading(self, file: OpenFile) -> None:
        """Count what is read of a file in the progress."""
        self._open.append(file)

    def skipped(self, file: RecordedFile) -> None:
        """Count a file in the progress that is not read."""
        self._done += file.size

    def add(self, rows: Sequence[dict[str, Any]], at: datetime, where: str) -> None:
        """Write quotes that were known at a time, if a market of the catalog compares them."""
        if rows and at.year not in YEARS:
            self.left_out.add(f"a price of the year {at.year}", where, len(rows))
            return
        kept: list[Row] = []
        for row in rows:
            if is_compared(row["market_type"], row.get("sport") or "", row.get("stat_category") or ""):
                kept.append(row)
            else:
                self.left_out.add("a price of a market that is not compared", f"{where}: {row['market_type']}")
        self.writer.add(kept, at)
        self._show(self.progress(), self.writer.prices)

    def result(self, event: str, home: int, away: int, where: str) -> None:
        """Write a final score."""
        if not (0 <= home <= _MOST_SCORE and 0 <= away <= _MOST_SCORE):
            self.left_out.add("an impossible final score", f"{where}: {excerpt(home)}, {excerpt(away)}")
        elif not self.writer.result(event, home, away):
            self.left_out.add("a final score that differs from an earlier one of the game", where)

    def progress(self) -> float:
        """The fraction of the bytes that were read."""
        closed = [file for file in self._open if file.closed]
        if closed:
            self._done += sum(file.of.size for file in closed)
            self._open = [file for file in self._open if not file.closed]
        return min((self._done + sum(file.done for file in self._open)) / self._bytes, 1.0)


class StandingPrices:
    """The prices that a source has, each with its last row."""

    def __init__(self) -> None:
        self._ids = PriceIds()
        self._rows: dict[str, dict[Price, dict[str, Any]]] = {}  # event -> price -> row

    def apply(self, payload: Payload, at: datetime) -> list[dict[str, Any]]:
        """Apply a payload, and return what it changes at a time: ends of prices as suspended rows, then new prices.

        A row that says what the row before said, seen at the same time, is left out.
        """
        out = []
        for price in self._ids.removed(payload.removed, payload.quotes):
            row = self._rows.get(price[1][0], {}).pop(price, None)
            if row is not None:
                out.append(row | {"is_active": False, "last_seen_at": at})
        self._ids.forget(payload.removed)
        self._ids.learn(payload.quotes)
        for quote in payload.quotes:
            row = quote if quote.get("last_seen_at") is not None else quote | {"last_seen_at": at}
            rows, price = self._rows.setdefault(row["event_id"], {}), price_of(row)
            if rows.get(price) != row:
                rows[price] = row
                out.append(row)
        return out

    def forget(self, events: Iterable[str]) -> None:
        """Drop the prices of events that are over."""
        for event in events:
            self._ids.forget([row["id"] for row in self._rows.pop(event, {}).values()])
