"""Limits in the memory of one process: requests a minute, streams at once, and how many requests an account made.

A window is a minute of the clock, `floor(now / 60)`; so its end is known to everybody without asking, and several nodes
agree on it. Its number is part of what is counted, `who/minute`, and the counter is a storage of the package `limits`:
one that several nodes share is another of its storages, given to `MemoryLimits`, and nothing else.

The package's own storage in memory is not used. Ten thousands of addresses make its sweep through all counters hold
everything up for milliseconds, a hundred times a second, and under threads it loses counts. `Windows` has the same
interface, forgets a few counters whenever it makes one, and holds a bounded number of them.
"""

import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from ipaddress import IPv6Address
from pathlib import Path
from typing import NamedTuple, Protocol

from limits.storage import Storage

from oddsengine_service.keys import connect
from oddsengine_service.store import Limits, Room

WINDOW_S = 60
MOST_COUNTERS = 200_000  # beyond it the oldest are forgotten
USAGE_DAYS = 400  # that are kept
_SWEPT = 4  # old counters that a new one takes along
_FLUSH_S = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (
    account TEXT NOT NULL, day INTEGER NOT NULL, requests INTEGER NOT NULL, PRIMARY KEY (account, day)
) WITHOUT ROWID
"""
_DAY_S = 86_400
_EPOCH = date(1970, 1, 1)


class Used(NamedTuple):
    """Requests of an account that were answered: this day, week (from Monday) and month, UTC."""

    today: int
    this_week: int
    this_month: int


class Counting(Limits, Protocol):
    """Limits that also say how an account stands, without counting anything."""

    def room(self, who: str, rate: int) -> Room:
        """What is left of the minute."""

    def used(self, account: str) -> Used:
        """Requests of an account."""


class Windows(Storage):
    """Counters that expire."""

    STORAGE_SCHEME = None

    def __init__(self, most: int = MOST_COUNTERS, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._most, self._clock = most, clock
        self._lock = threading.Lock()
        self._held: OrderedDict[str, list[float]] = OrderedDict()  # count, end; the oldest is first

    def __len__(self) -> int:
        return len(self._held)

    @property
    def base_exceptions(self) -> type[Exception]:
        """What may go wrong."""
        return ValueError

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Count; a counter that is new ends after `expiry` seconds."""
        with self._lock:
            counter = self._held.get(key)
            if counter is None or counter[1] <= self._clock():
                counter = self._begin(key, expiry)
            counter[0] += amount
            return int(counter[0])

    def _begin(self, key: str, expiry: float) -> list[float]:
        now, held = self._clock(), self._held
        held.pop(key, None)
        for _ in range(_SWEPT):
            if not held or (len(held) < self._most and held[next(iter(held))][1] > now):
                break
            held.popitem(last=False)
        counter = held[key] = [0, now + expiry]
        return counter

    def get(self, key: str) -> int:
        """Read a counter."""
        counter = self._held.get(key)
        return 0 if counter is None or counter[1] <= self._clock() else int(counter[0])

    def get_expiry(self, key: str) -> float:
        """When a counter ends."""
        counter = self._held.get(key)
        return self._clock() if counter is None else counter[1]

    def check(self) -> bool:
        """It is always well."""
        return True

    def reset(self) -> int:
        """Forget all counters."""
        with self._lock:
            count = len(self._held)
            self._held.clear()
            return count

    def clear(self, key: str) -> None:
        """Forget a counter."""
        with self._lock:
            self._held.pop(key, None)


class Usage:
    """Requests per account and UTC day: counted in memory, added to a file every few seconds."""

    def __init__(self, file: Path, every: float = _FLUSH_S, clock: Callable[[], float] = time.time) -> None:
        self.failure = ""  # why the last writing did not go well; what was counted is kept and tried again
        self.told: Callable[[str], None] | None = None  # called with `failure` when it begins, and when it is over
        self._clock = clock
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._waiting: dict[tuple[str, int], int] = {}
        self._file = connect(file)
        self._file.execute("PRAGMA synchronous = NORMAL")  # the last seconds may be lost with the machine
        self._file.execute(_SCHEMA)
        self._swept = 0  # the day on which old days were last forgotten
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(every,), name="usage", daemon=True)
        self._thread.start()

    def add(self, account: str, now: float) -> None:
        """Count a request."""
        key = account, int(now) // _DAY_S
        with self._lock:
            self._waiting[key] = self._waiting.get(key, 0) + 1

    def used(self, account: str) -> Used:
        """Requests of an account so far."""
        today = int(self._clock()) // _DAY_S
        week = today - (_EPOCH + timedelta(today)).weekday()
        month = (period(self._clock())[0].date() - _EPOCH).days
        with self._writing:  # what is just being written is in neither place
            rows = self._file.execute(
                "SELECT day, requests FROM usage WHERE account = ? AND day >= ?", (account, min(week, month))
            ).fetchall()
            with self._lock:
                rows += [(day, count) for (who, day), count in self._waiting.items() if who == account]
        return Used(*(sum(count for day, count in rows if day >= since) for since in (today, week, month)))

    def flush(self) -> None:
        """Write what waits."""
        today = int(self._clock()) // _DAY_S
        with self._writing:
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            if not waiting:
                return
            try:
                with self._file:
                    self._file.execute("BEGIN IMMEDIATE")
                    self._file.executemany(
                        "INSERT INTO usage VALUES (?, ?, ?) ON CONFLICT (account, day) "
                        "DO UPDATE SET requests = requests + excluded.requests",
                        [(account, day, count) for (account, day), count in waiting.items()],
                    )
                    if self._swept != today:
                        self._file.execute("DELETE FROM usage WHERE day < ?", (today - USAGE_DAYS,))
            except sqlite3.Error as error:
                self._fail(f"usage is not written: {error}")
                with self._lock:
                    for key, count in waiting.items():
                        self._waiting[key] = self._waiting.get(key, 0) + count
            else:
                self._swept = today
                self._fail("")

    def _fail(self, failure: str) -> None:
        was, self.failure = self.failure, failure
        if bool(was) != bool(failure) and self.told is not None:
            self.told(failure)

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._ended.set()
        self._thread.join()
        self.flush()
        with self._writing:
            self._file.close()

    def _run(self, every: float) -> None:
        while not self._ended.wait(every):
            self.flush()


class MemoryLimits:
    """Limits of one process. `who` is an account, or has a space in it and is none (`address 203.0.113.7`).

    An address of IPv6 counts with its network of 64 bits, which is what one subscriber has.

    `clock` never goes back, or a minute would count twice; `ahead` is how far it is ahead of the wall clock.
    """

    def __init__(
        self, usage: Usage | None = None, storage: Storage | None = None, clock: Callable[[], float] = time.time,
        ahead: Callable[[], float] = lambda: 0.0,
    ) -> None:  # fmt: skip
        self._usage, self._clock, self._ahead = usage, clock, ahead
        self._storage = Windows(clock=clock) if storage is None else storage
        self._lock = threading.Lock()
        self._open: dict[str, int] = {}

    def take(self, who: str, rate: int) -> Room:
        """Count one request."""
        now = self._clock()
        minute = int(now) // WINDOW_S
        account = " " not in who
        left = rate - self._storage.incr(f"{who if account else _counted(who)}/{minute}", WINDOW_S)
        allowed = left >= 0
        if allowed and account and self._usage is not None:
            self._usage.add(who, now)
        return Room(rate, left if allowed else 0, self._end(minute), allowed)

    def room(self, who: str, rate: int) -> Room:
        """What is left of the minute, uncounted."""
        minute = int(self._clock()) // WINDOW_S
        left = rate - self._storage.get(f"{_counted(who)}/{minute}")
        return Room(rate, max(0, left), self._end(minute), left > 0)

    def _end(self, minute: int) -> int:
        """When a minute ends, by the wall clock: callers compare it with theirs."""
        return (minute + 1) * WINDOW_S - round(self._ahead())

    def used(self, account: str) -> Used:
        """Requests of an account that were answered."""
        return Used(0, 0, 0) if self._usage is None else self._usage.used(account)

    def open(self, who: str, most: int) -> bool:
        """Take a stream's slot, if one is free; whoever took it gives it back once."""
        with self._lock:
            taken = self._open.get(who, 0)
            if taken >= most:
                return False
            self._open[who] = taken + 1
            return True

    def close(self, who: str) -> None:
        """Give a stream's slot back.

        Raises
        ------
        RuntimeError
            If none is taken: somebody gave one back twice, and so perhaps another's.
        """
        with self._lock:
            taken = self._open.get(who, 0)
            if not taken:
                raise RuntimeError(f"{who} has no stream that could end")
            if taken == 1:
                del self._open[who]
            else:
                self._open[who] = taken - 1

    def streams(self, who: str) -> int:
        """Slots that are taken."""
        return self._open.get(who, 0)


@lru_cache(maxsize=4096)
def network(address: str) -> str:
    """The addresses that count together: of IPv6 the first 64 bits; one that stands for IPv4 is that one.

    Examples
    --------
    >>> network("2001:db8::1:2:3:4"), network("::ffff:203.0.113.7"), network("203.0.113.7")
    ('2001:db8::/64', '203.0.113.7', '203.0.113.7')
    """
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{IPv6Address(int(found) >> 64 << 64)}/64"


def _counted(who: str) -> str:
    what, space, address = who.partition(" ")
    return f"{what} {network(address)}" if space else who


def period(now: float) -> tuple[datetime, datetime]:
    """The month of a time, UTC: its beginning, and the next one's."""
    start = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return start, (start + timedelta(days=32)).replace(day=1)
