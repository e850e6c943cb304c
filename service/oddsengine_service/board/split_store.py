"""Betting splits: 48 hours of records per event and book in compact form."""

import math
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import astuple

from oddsengine import catalog
from oddsengine.columns import SECOND
from oddsengine.maths.rounding import exact
from oddsengine.tables.timestamps import micros, timestamp
from oddsengine_service.replication import ALONE, Replication
from oddsengine_service.wire.splits_response import (
    MoneylineSplit,
    OverUnder,
    Sides,
    SplitsGame,
    SplitsGiven,
    SplitsHistoryEntry,
    SpreadEntry,
    SpreadSplit,
    TotalSplit,
)

KEPT_S = 48 * 3600
EVERY_S = 300  # seconds between two snapshots
MOST = 2000  # pairs of event and book; the least recently updated is dropped first
_ON_TIME_S = 30  # seconds by which a snapshot may be early
_WIDE = 17  # numbers per snapshot: spread 6, total 5, moneyline 6; nan if missing
_PARTS = (("spread", 0, 6), ("total", 6, 11), ("moneyline", 11, 17))
_NAN = float("nan")


class Series:
    """One event at one book."""

    def __init__(self, record: SplitsGiven) -> None:
        self.about = record
        self.times = array("q")  # microseconds, ascending
        self.values = array("f")

    def put(self, time: int, numbers: list[float]) -> None:
        """Add a snapshot, which must be newer than the last one, or replace that one if it is recent."""
        before = self.times[-2] if len(self.times) > 1 else None
        if before is not None and time - before < (EVERY_S - _ON_TIME_S) * SECOND:
            self.times.pop()
            del self.values[-_WIDE:]
        self.times.append(time)
        self.values.extend(numbers)
        self.forget(time)

    def forget(self, now: int) -> None:
        old = bisect_left(self.times, now - KEPT_S * SECOND)
        del self.times[:old]
        del self.values[: old * _WIDE]

    def at(self, place: int) -> list[float]:
        return [exact(value) for value in self.values[place * _WIDE : (place + 1) * _WIDE]]


class Splits:
    """All series; thread-safe."""

    def __init__(self, most: int = MOST, replication: Replication = ALONE) -> None:
        self._most, self._replication = most, replication
        self._lock = threading.Lock()
        self._series: OrderedDict[tuple[str, str], Series] = OrderedDict()

    def __len__(self) -> int:
        return len(self._series)

    def put(self, record: SplitsGiven, now: datetime) -> bool:
        """Add a record. Returns False if it is not newer than the last one, or too old to be stored."""
        time, latest = micros(record.fetched_at or now), micros(now)
        if time < latest - KEPT_S * SECOND:
            return False
        key = record.event_id, catalog.book(record.sportsbook).id
        with self._lock:
            series = self._series.get(key)
            if series is not None and series.times and time <= series.times[-1]:
                return False
            self._replication.changed("splits", record, now)
            if series is None:
                series = self._series[key] = Series(record)
            series.put(time, _numbers(record))
            series.about = record
            self._series.move_to_end(key)
            while len(self._series) > self._most:
                self._series.popitem(last=False)
            return True

    def dump(self) -> list[Any]:
        with self._lock:
            return [
                [*key, series.about, series.times.tobytes(), series.values.tobytes()]
                for key, series in self._series.items()
            ]

    def restore(self, state: Iterable[Any]) -> None:
        with self._lock:
            self._series.clear()
            for event, book, about, times, values in state:
                series = self._series[event, book] = Series(msgspec.convert(about, SplitsGiven))
                series.times.frombytes(times)
                series.values.frombytes(values)

    def latest(self, now: datetime) -> list[SplitsGame]:
        """The last record of each event and book up to a time, sorted by event and book."""
        last = micros(now)
        with self._lock:
            self._tidy(last)
            rows = []
            for (event, book), series in self._series.items():
                place = bisect_right(series.times, last) - 1
                if place >= 0:
                    rows.append(_game(event, book, series, place))
        return sorted(rows, key=lambda row: (row.event_id, row.sportsbook))

    def history(
        self, event: str, books: Collection[str] | None, begin: int | None, end: datetime
    ) -> list[SplitsHistoryEntry]:
        """Snapshots of an event between two times, oldest first."""
        last = micros(end)
        first = last - KEPT_S * SECOND if begin is None else max(begin, last - KEPT_S * SECOND)
        with self._lock:
            entries = [
                (series.times[place], book, series.at(place))
                for (event_id, book), series in self._series.items()
                if event_id == event and (books is None or book in books)
                for place in range(bisect_left(series.times, first), bisect_right(series.times, last))
            ]
        entries.sort(key=lambda entry: entry[:2])
        return [_entry(*each) for each in entries]

    def _tidy(self, now: int) -> None:
        for key in [key for key, series in self._series.items() if series.times[-1] < now - KEPT_S * SECOND]:
            del self._series[key]


# ---- conversion between records and numbers ----


def _numbers(record: SplitsGiven) -> list[float]:
    """The fields of all parts, in their order."""
    out: list[float | None] = []
    for name, begin, end in _PARTS:
        part = getattr(record, name)
        if part is None:
            out += [None] * (end - begin)
        else:
            *lines, money, bets = astuple(part)
            out += [*lines, *astuple(money), *astuple(bets)]
    return [_NAN if value is None else float(value) for value in out]


def _parts(numbers: list[float], spread: type[SpreadSplit | SpreadEntry]) -> dict[str, Any]:
    kinds = spread, TotalSplit, MoneylineSplit
    return {name: _part(kind, numbers[a:b]) for kind, (name, a, b) in zip(kinds, _PARTS, strict=True)}


def _part(kind: type[msgspec.Struct], numbers: list[float]) -> Any:
    *lines, first, second, third, fourth = numbers
    if math.isnan(first):
        return None
    sides = OverUnder if kind is TotalSplit else Sides
    given = [None if math.isnan(line) else line + 0.0 for line in lines]
    return kind(*given, sides(first, second), sides(third, fourth))


def _game(event: str, book: str, series: Series, place: int) -> SplitsGame:
    about = series.about
    return SplitsGame(
        event_id=event, sport=about.sport, league=about.league, sportsbook=book, home_team=about.home_team,
        away_team=about.away_team, fetched_at=timestamp(series.times[place]) or "",
        **_parts(series.at(place), SpreadSplit),
    )  # fmt: skip


def _entry(time: int, book: str, numbers: list[float]) -> SplitsHistoryEntry:
    return SplitsHistoryEntry(
        book=book, ts=timestamp(time) or "", timestamp=time // SECOND, **_parts(numbers, SpreadEntry)
    )
