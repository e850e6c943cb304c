"""Betting splits: 48 hours of records per event and book in compact form."""

import math
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.columns import SECOND
from oddsengine.engine import micros
from oddsengine.update import iso
from oddsengine_service.wire.splits import (
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
_MARKETS = ((0, 6), (6, 11), (11, 17))
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
        old = 0
        while old < len(self.times) and self.times[old] < now - KEPT_S * SECOND:
            old += 1
        if old:
            del self.times[:old]
            del self.values[: old * _WIDE]

    def at(self, place: int) -> list[float]:
        return [round(value, 4) for value in self.values[place * _WIDE : (place + 1) * _WIDE]]


class Splits:
    """All series; thread-safe."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Series] = OrderedDict()
        self.on_change: Callable[..., None] = lambda *_: None  # called with each accepted record, for a log

    def __len__(self) -> int:
        return len(self._known)

    def put(self, record: SplitsGiven, now: datetime) -> bool:
        """Add a record. Returns False if it is not newer than the last one, or too old to be stored."""
        time, latest = micros(record.fetched_at or now), micros(now)
        if time < latest - KEPT_S * SECOND:
            return False
        key = record.event_id, catalog.book(record.sportsbook).id
        with self._lock:
            series = self._known.get(key)
            if series is not None and series.times and time <= series.times[-1]:
                return False
            self.on_change("splits", record, now)
            if series is None:
                series = self._known[key] = Series(record)
            series.put(time, _numbers(record))
            series.about = record
            self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
            return True

    def dump(self) -> list[Any]:
        with self._lock:
            return [
                [*key, series.about, series.times.tobytes(), series.values.tobytes()]
                for key, series in self._known.items()
            ]

    def restore(self, state: Iterable[Any]) -> None:
        with self._lock:
            self._known.clear()
            for event, book, about, times, values in state:
                series = self._known[event, book] = Series(msgspec.convert(about, SplitsGiven))
                series.times.frombytes(times)
                series.values.frombytes(values)

    def latest(self, now: datetime) -> list[SplitsGame]:
        """The last record of each event and book up to a time, sorted by event and book."""
        last = micros(now)
        with self._lock:
            self._tidy(last)
            rows = []
            for (event, book), series in self._known.items():
                place = _upto(series.times, last)
                if place >= 0:
                    rows.append(_game(event, book, series, place))
        return sorted(rows, key=lambda row: (row.event_id, row.sportsbook))

    def history(
        self, event: str, books: Collection[str] | None, begin: int | None, end: datetime
    ) -> list[SplitsHistoryEntry]:
        """Snapshots of an event between two times, oldest first."""
        last, now = micros(end), micros(end)
        with self._lock:
            entries = []
            for (event_id, book), series in self._known.items():
                if event_id != event or (books is not None and book not in books):
                    continue
                for place in range(len(series.times)):
                    time = series.times[place]
                    if (begin is None or time >= begin) and now - KEPT_S * SECOND <= time <= last:
                        entries.append((time, book, series.at(place)))
        entries.sort(key=lambda entry: entry[:2])
        return [_entry(*each) for each in entries]

    def _tidy(self, now: int) -> None:
        for key in [key for key, series in self._known.items() if series.times[-1] < now - KEPT_S * SECOND]:
            del self._known[key]


def _upto(times: Any, last: int) -> int:
    place = len(times) - 1
    while place >= 0 and times[place] > last:
        place -= 1
    return place


# ---- conversion between records and numbers ----


def _numbers(record: SplitsGiven) -> list[float]:
    out: list[float | None] = []
    spread, total, moneyline = record.spread, record.total, record.moneyline
    for split in (spread, moneyline):
        teams: list[float | None] = [None] * 6
        if split is not None:
            money, bets = split.handle_pct, split.bets_pct
            teams = [split.away_odds, split.home_odds, money.away, money.home, bets.away, bets.home]
        out += teams
    totals: list[float | None] = [None] * 5
    if total is not None:
        over_money, over_bets = total.handle_pct, total.bets_pct
        totals = [total.line, over_money.over, over_money.under, over_bets.over, over_bets.under]
    out[6:6] = totals
    return [_NAN if value is None else float(value) for value in out]


def _nullable(value: float) -> float | None:
    return None if math.isnan(value) else value + 0.0


def _teams(numbers: list[float]) -> tuple[float | None, float | None, Sides, Sides] | None:
    if math.isnan(numbers[2]):
        return None
    away, home, *shares = numbers
    return _nullable(away), _nullable(home), Sides(*shares[:2]), Sides(*shares[2:])


def _total(numbers: list[float]) -> TotalSplit | None:
    if math.isnan(numbers[1]):
        return None
    return TotalSplit(_nullable(numbers[0]), OverUnder(*numbers[1:3]), OverUnder(*numbers[3:5]))


def _parts(numbers: list[float]) -> tuple[Any, TotalSplit | None, MoneylineSplit | None]:
    (spread, total, moneyline) = (numbers[a:b] for a, b in _MARKETS)
    result = _teams(moneyline)
    return _teams(spread), _total(total), None if result is None else MoneylineSplit(*result)


def _game(event: str, book: str, series: Series, place: int) -> SplitsGame:
    about = series.about
    spread, total, moneyline = _parts(series.at(place))
    return SplitsGame(
        event_id=event, sport=about.sport, league=about.league, sportsbook=book, home_team=about.home_team,
        away_team=about.away_team, fetched_at=iso(series.times[place]) or "",
        spread=None if spread is None else SpreadSplit(*spread), total=total, moneyline=moneyline,
    )  # fmt: skip


def _entry(time: int, book: str, numbers: list[float]) -> SplitsHistoryEntry:
    spread, total, moneyline = _parts(numbers)
    return SplitsHistoryEntry(
        book=book, ts=iso(time) or "", timestamp=time // SECOND,
        spread=None if spread is None else SpreadEntry(*spread), total=total, moneyline=moneyline,
    )  # fmt: skip
