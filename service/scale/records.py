"""Closing lines and bets on their way: the writer's recorder puts them into a stream, every process stores them."""

import io
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import polars as pl
import zstandard

from oddsengine.closing import Bets, Close
from oddsengine_service.closing import Closings

_KEPT = 1000  # of a process that stands by: what the writer may have lost
_NUMBERS = {"outcome": np.uint64, "start": np.int64, "at": np.int64, "odds": np.float64, "price": np.float64,
            "ev": np.float64, "fair": np.float64}  # fmt: skip


@dataclass
class Records:
    """What a recorder says, until it is in the log; keeps the last of it where somebody else writes."""

    writing: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()

    def show(self, bets: Bets) -> None:
        """+EV prices were shown, or shown again."""
        self._put("show", {name: _plain(column) for name, column in bets._asdict().items()})

    def put(self, close: Close) -> None:
        """An event closed."""
        lines = io.BytesIO()
        close.lines.write_ipc_stream(lines)
        self._put("close", [*close[:7], lines.getvalue(), close.outcome.tolist(), close.fair.tolist()])

    def take_back(self, event_id: str) -> None:
        """An event that closed did not begin after all."""
        self._put("take_back", event_id)

    def _put(self, kind: str, value: Any) -> None:
        with self._lock:
            self._waiting.append(zstandard.compress(msgspec.msgpack.encode([kind, value])))
            while not self.writing and len(self._waiting) > _KEPT:
                self._waiting.popleft()

    def first(self) -> bytes | None:
        """What is next to be stored."""
        with self._lock:
            return self._waiting[0] if self._waiting else None

    def stored(self) -> None:
        """It is in the log."""
        with self._lock:
            self._waiting.popleft()


def store(closings: Closings, born: int, sequence: int, body: bytes) -> None:
    """Store one record, and with it how far the stream was read."""
    kind, value = msgspec.msgpack.decode(zstandard.decompress(body))
    closings.reached(born, sequence)
    if kind == "show":
        columns: dict[str, Any] = {
            name: np.array(c, _NUMBERS[name]) if name in _NUMBERS else c for name, c in value.items()
        }
        closings.show(Bets(**columns))
    elif kind == "close":
        *about, lines, outcome, fair = value
        frame = pl.read_ipc_stream(io.BytesIO(lines))
        closings.put(Close._make((*about, frame, np.array(outcome, np.uint64), np.array(fair))))
    elif kind == "take_back":
        closings.take_back(value)


def _plain(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)
