"""The last rows of opportunities that ended: for ten minutes, and so many bytes.

A process knows the rows that it sent. Those that are open are with whoever reads them, the views of lists and alerts
and the watches of streams; those that end come here, and those that were looked up by id at once. Other processes of a
cluster have their own. The oldest rows make room for new ones, and of those that end at once only so many are
remembered, so that neither a feed that stops nor a large stream that closes removes all the others.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple, Protocol

import msgspec

REMEMBERED_S = 600.0
BYTES, AT_ONCE = 16 << 20, 2_000  # of all rows; rows that end at once

_Key = tuple[int, str, str]  # board, kind and id


class _LastRow(NamedTuple):
    """A row as it was last, and when it ended or was last read."""

    at: float
    raw: msgspec.Raw
    size: int


class RowHolder(Protocol):
    """Whoever has rows that were sent and are open, as far as it has read."""

    def sent_row(self, board: object, kind: str, ident: str) -> msgspec.Raw | None:
        """The last row of an opportunity on a board; None if it has none. Thread-safe."""


class EndedRows:
    """Remembers the rows of ended opportunities; thread-safe."""

    def __init__(self, most: int = BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._rows: OrderedDict[_Key, _LastRow] = OrderedDict()  # ended longest ago first
        self._lock = threading.Lock()
        self.bytes = 0
        self.holders: tuple[RowHolder, ...] = ()

    def enter(self, holder: RowHolder) -> None:
        with self._lock:
            self.holders = *self.holders, holder

    def leave(self, holder: RowHolder) -> None:
        with self._lock:
            self.holders = tuple(each for each in self.holders if each is not holder)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, board: object, kind: str, rows: Iterable[tuple[str, msgspec.Raw]]) -> None:
        """Remember the rows of a board that ended, by id."""
        with self._lock:
            now = self._clock()
            for ident, raw in islice(rows, AT_ONCE):
                key, row = (id(board), kind, ident), _LastRow(now, raw, memoryview(raw).nbytes)
                self._drop(key)
                self._rows[key] = row
                self.bytes += row.size
            self._shrink(now)

    def forget(self, board: object, kind: str, ids: Iterable[str]) -> None:
        """Forget rows that were sent again: whoever did so has newer ones."""
        with self._lock:
            for ident in ids if self._rows else ():
                self._drop((id(board), kind, ident))

    def find(self, board: object, kind: str, ident: str) -> msgspec.Raw | None:
        """The last row of an opportunity that is open, or ended on a board at most ten minutes ago."""
        with self._lock:
            self._shrink(self._clock())
            row = self._rows.get((id(board), kind, ident))
        if row is not None:
            return row.raw
        rows = (holder.sent_row(board, kind, ident) for holder in self.holders)
        return next((raw for raw in rows if raw is not None), None)

    def _drop(self, key: _Key) -> None:
        row = self._rows.pop(key, None)
        if row is not None:
            self.bytes -= row.size

    def _shrink(self, now: float) -> None:
        while self._rows:
            key, row = next(iter(self._rows.items()))
            if row.at >= now - REMEMBERED_S and self.bytes <= self._most:
                return
            self._drop(key)
