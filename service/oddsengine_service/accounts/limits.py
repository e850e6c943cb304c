"""Rate limits in the memory of one process: requests per minute, concurrent streams, and usage per account.

A window is a minute of the clock, `floor(now / 60)`, so clients know when it ends. All counts are reset when a minute
begins.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from ipaddress import IPv6Address
from pathlib import Path
from typing import NamedTuple

import msgspec

from oddsengine_service.accounts.database import Database, DatabaseError
from oddsengine_service.replication import ALONE, AccountDay, Replication

WINDOW_S = 60
MOST_COUNTERS = 200_000  # the least recently used are dropped beyond this
USAGE_DAYS = 400  # days of usage that are stored
_FLUSH_S = 5.0
_SCHEMA = """CREATE TABLE IF NOT EXISTS usage (
    account TEXT NOT NULL, day INTEGER NOT NULL, requests INTEGER NOT NULL, PRIMARY KEY (account, day)
) WITHOUT ROWID"""
_DAY_S = 86_400
_EPOCH = date(1970, 1, 1)


class UsageCounts(NamedTuple):
    """Requests of an account: today, this week (from Monday) and this month, UTC."""

    today: int
    this_week: int
    this_month: int


class Room(msgspec.Struct, frozen=True, gc=False):
    """The rest of a caller's minute."""

    limit: int
    remaining: int
    reset: int  # Unix time at which the window ends
    allowed: bool


class Bucket:
    """A token bucket: gains `rate` tokens a second, and holds at most `burst`."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._at = burst, now

    def take_tokens(self, now: float, tokens: float = 0.0) -> float:
        """Take some tokens. Returns what is left, below 0 if there were fewer."""
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) * self._rate) - tokens
        self._at = now
        return self._tokens


class Usage:
    """Requests per account and UTC day: counted in memory, written to a file every few seconds.

    In a cluster the file has the totals of all processes.
    """

    def __init__(
        self, file: Path, every: float = _FLUSH_S, clock: Callable[[], float] = time.time,
        on_failure: Callable[[str], None] = lambda _: None, replication: Replication = ALONE,
    ) -> None:  # fmt: skip
        self.failure = ""  # why the last write failed; the counts are retained and written later
        self._on_failure = on_failure  # called when writing starts to fail, and when it works again
        self._clock, self._replication = clock, replication
        self._lock, self._flushing = threading.Lock(), threading.Lock()
        self._waiting: dict[AccountDay, int] = {}
        self._batch: dict[AccountDay, int] = {}  # being written
        self._batches = 0
        self._file = Database(file, [_SCHEMA], durable=False)
        self._stored = self.totals()  # what the file has of this month, in memory
        self._swept = 0  # day on which old days were last deleted
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(every,), name="usage", daemon=True)
        self._thread.start()

    def add(self, account: str, now: float) -> None:
        key = account, int(now) // _DAY_S
        with self._lock:
            self._waiting[key] = self._waiting.get(key, 0) + 1

    def used(self, account: str) -> UsageCounts:
        today, week, month = self._periods()
        with self._file.reading() as base:  # a batch that is being written is in neither place
            rows = base.execute(
                "SELECT day, requests FROM usage WHERE account = ? AND day >= ?", (account, min(week, month))
            ).fetchall()
            with self._lock:
                waiting = [*self._waiting.items(), *self._batch.items()]
        rows += [(day, count) for (who, day), count in waiting if who == account]
        return UsageCounts(*(sum(count for day, count in rows if day >= since) for since in (today, week, month)))

    def this_month(self, account: str) -> int:
        """Requests of an account in this month, without reading the file, which another process may block."""
        days = [(account, day) for day in _days_of(*period(self._clock()))]
        with self._lock:
            return sum(part.get(day, 0) for part in (self._stored, self._waiting, self._batch) for day in days)

    def _periods(self) -> tuple[int, int, int]:
        """Today, and the first days of the week and of the month."""
        today = int(self._clock()) // _DAY_S
        week = today - (_EPOCH + timedelta(today)).weekday()
        return today, week, (period(self._clock())[0].date() - _EPOCH).days

    def totals(self) -> dict[AccountDay, int]:
        with self._file.reading() as base:
            rows = base.execute("SELECT account, day, requests FROM usage WHERE day >= ?", (min(self._periods()),))
            return {(account, day): count for account, day, count in rows}

    def adopt_totals(self, totals: Mapping[AccountDay, int]) -> None:
        """Adopt the totals of all processes; totals never decrease."""
        with self._file.transaction() as base:
            self._write(base, "max(requests, excluded.requests)", totals)
        with self._lock:
            self._store_totals(totals)

    def flush(self) -> None:
        with self._flushing:
            with self._lock:
                if not self._batch and self._waiting:
                    self._batch, self._waiting = self._waiting, {}
                    self._batches += 1
            if not self._batch:
                return
            try:
                today = self._periods()[0]
                totals = self._replication.add_usage(self._batches, self._batch)
                with self._file.lock:
                    with self._file.transaction() as base:
                        if totals is None:
                            self._write(base, "requests + excluded.requests", self._batch)
                        else:
                            self._write(base, "max(requests, excluded.requests)", totals)
                        if self._swept != today:
                            base.execute("DELETE FROM usage WHERE day < ?", (today - USAGE_DAYS,))
                    with self._lock:
                        if totals is None:
                            totals = {day: self._stored.get(day, 0) + count for day, count in self._batch.items()}
                        self._store_totals(totals)
                        self._batch, self._swept = {}, today
            except (DatabaseError, OSError) as error:
                self._fail(f"usage is not written: {error}")
            except Exception as error:  # the thread that calls this goes on
                self._fail(f"usage is not written: {type(error).__name__}: {error}")
            else:
                self._fail("")

    def _store_totals(self, totals: Mapping[AccountDay, int]) -> None:
        """Note what the file has now, and drop what is before this month."""
        for day, count in totals.items():
            self._stored[day] = max(self._stored.get(day, 0), count)
        month = self._periods()[2]
        if any(day < month for _, day in self._stored):
            self._stored = {key: count for key, count in self._stored.items() if key[1] >= month}

    def _write(self, base: sqlite3.Connection, change: str, counts: Mapping[AccountDay, int]) -> None:
        base.executemany(
            f"INSERT INTO usage VALUES (?, ?, ?) ON CONFLICT (account, day) DO UPDATE SET requests = {change}",
            [(account, day, count) for (account, day), count in counts.items()],
        )

    def _fail(self, failure: str) -> None:
        was, self.failure = self.failure, failure
        if bool(was) != bool(failure):
            self._on_failure(failure)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self.flush()
        self._file.close()

    def _run(self, every: float) -> None:
        while not self._ended.wait(every):
            self.flush()


class Limits:
    """Limits of one process. `who` is an account, or contains a space and is an address (`address 203.0.113.7`).

    IPv6 addresses count by their /64 network, since a subscriber usually has all of it.

    `clock` must not go back, or a minute would count twice; `ahead` is how far it is ahead of the wall clock. Beyond
    `most` counters, the least recently used are dropped.
    """

    def __init__(
        self, usage: Usage | None = None, clock: Callable[[], float] = time.time,
        ahead: Callable[[], float] = lambda: 0.0, most: int = MOST_COUNTERS, replication: Replication = ALONE,
    ) -> None:  # fmt: skip
        self._replication = replication
        self.usage, self._clock, self._ahead, self._most = usage, clock, ahead, most
        self._lock = threading.Lock()
        self._now, self._reset = 0.0, 0
        self._minute, self._counts = 0, dict[str, int]()  # requests of this minute
        self._open: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def count_request(self, who: str, rate: int) -> Room:
        now = self._clock()
        account = " " not in who
        key = who if account else _counted(who)
        with self._lock:
            if now != self._now:  # a rough clock returns the same time for many requests
                self._now, minute = now, int(now) // WINDOW_S
                if minute != self._minute:
                    self._minute, self._counts = minute, {}
                self._reset = self._end(minute)
            minute, reset = self._minute, self._reset
            count = self._counts.pop(key, 0) + 1
            if len(self._counts) >= self._most:
                del self._counts[next(iter(self._counts))]
            self._counts[key] = count
        left = self._replication.requests_left(key, minute, rate - count, count)
        allowed = left >= 0
        if allowed and account and self.usage is not None:
            self.usage.add(who, now)
        return Room(rate, left if allowed else 0, reset, allowed)

    def room(self, who: str, rate: int) -> Room:
        """The rest of the minute, without counting a request."""
        minute = int(self._clock()) // WINDOW_S
        key = _counted(who)
        left = rate - (self._counts.get(key, 0) if minute == self._minute else 0)
        left = self._replication.requests_left(key, minute, left)
        return Room(rate, max(0, left), self._end(minute), left > 0)

    def _end(self, minute: int) -> int:
        """End of a minute by the wall clock, which clients compare with theirs."""
        return (minute + 1) * WINDOW_S - round(self._ahead())

    def used(self, account: str) -> UsageCounts:
        return UsageCounts(0, 0, 0) if self.usage is None else self.usage.used(account)

    def this_month(self, account: str) -> int:
        return 0 if self.usage is None else self.usage.this_month(account)

    def open(self, who: str, most: int) -> bool:
        """Take a stream slot if one is free; the caller must release it once."""
        with self._lock:
            taken = self._open.get(who, 0)
            if taken + self._replication.streams_elsewhere(who) >= most:
                return False
            self._open[who] = taken + 1
            return True

    def close(self, who: str) -> None:
        """Release a stream slot. Raises `RuntimeError` if there is none: a slot was released twice."""
        with self._lock:
            taken = self._open.get(who, 0)
            if not taken:
                raise RuntimeError(f"{who} has no open stream")
            if taken == 1:
                del self._open[who]
            else:
                self._open[who] = taken - 1

    def streams(self, who: str) -> int:
        """Slots in use."""
        return self._open.get(who, 0) + self._replication.streams_elsewhere(who)

    def counts_here(self) -> tuple[int, dict[str, int], dict[str, int]]:
        """Counts of this process: the minute, its requests, its open streams."""
        with self._lock:
            return self._minute, dict(self._counts), dict(self._open)


@lru_cache(maxsize=4096)
def network(address: str) -> str:
    """The network that an address counts for: its /64 for IPv6, and the IPv4 address for a mapped one.

    Examples
    --------
    >>> network("2001:db8::1:2:3:4"), network("::ffff:203.0.113.7"), network("203.0.113.7")
    ('2001:db8::/64', '203.0.113.7', '203.0.113.7')
    """
    if ":" not in address:
        return address
    try:
        ip = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return f"{IPv6Address(int(ip) >> 64 << 64)}/64"


def _counted(who: str) -> str:
    what, space, address = who.partition(" ")
    return f"{what} {network(address)}" if space else who


def _days_of(start: datetime, end: datetime) -> range:
    """The days of a month, UTC, since 1970."""
    return range((start.date() - _EPOCH).days, (end.date() - _EPOCH).days)


def period(now: float) -> tuple[datetime, datetime]:
    """The month of a time, UTC: its start, and the start of the next."""
    start = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return start, (start + timedelta(days=32)).replace(day=1)
