"""Replication of closing lines and bets: the writer appends them to a stream, and every process stores them."""

import io
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from oddsengine.history.closing import Bets, Close
from oddsengine_service.accounts.database import StoreError
from oddsengine_service.history.closing_store import Closings
from oddsengine_service.monitoring import log as node_log
from oddsengine_service.scale.compression import DamagedError, compressed, decompressed
from oddsengine_service.scale.outbox import PendingItems
from oddsengine_service.scale.shard_log import LogMessage, SharedLog

_MOST = 256 << 20  # bytes, maximum size of an unpacked record
_KEPT = 1000  # on a stand-by process, in case the writer loses them


class PendingClosings(PendingItems[bytes]):
    """Records until they are in the log; retains the last ones while another process writes."""

    def __init__(self, writes: Callable[[], bool]) -> None:
        super().__init__()
        self._writes = writes

    def show(self, bets: Bets) -> None:
        """Add +EV prices that were shown, for the first time or again."""
        self._put("show", _plain(bets))

    def put(self, close: Close) -> None:
        self._put("close", _plain(close))

    def discard(self, event_id: str) -> None:
        """Discard the close of an event that was postponed."""
        self._put("take_back", event_id)

    def _put(self, kind: str, value: Any) -> None:
        with self._lock:
            self._items.append((compressed(msgspec.msgpack.encode([kind, value])), time.monotonic()))
            while not self._writes() and len(self._items) > _KEPT:
                self._items.popleft()

    def first(self) -> bytes | None:
        with self._lock:
            return self._items[0][0] if self._items else None


async def stored(log: SharedLog, closings: Closings, report: Callable[[str], None]) -> None:
    """Store every record of a stream."""
    created_at = (await log.bounds()).created_at
    await log.store(closings.database.place(created_at), partial(store, closings, created_at), StoreError, report)


def store(closings: Closings, created_at: int, message: LogMessage) -> None:
    """Store one record together with its position in the stream; one that is damaged is left out."""
    try:
        kind, value = msgspec.msgpack.decode(decompressed(message.body, _MOST), type=tuple[str, Any])
    except (DamagedError, msgspec.MsgspecError) as error:
        node_log.event("record left out", logging.ERROR, sequence=message.sequence, message=str(error))
        kind, value = "", None
    with closings.database.transaction():
        closings.database.reached(created_at, message.sequence)
        if kind == "show":
            closings.show(Bets(**_restored(value)))
        elif kind == "close":
            closings.put(Close(**_restored(value)))
        elif kind == "take_back":
            closings.discard(value)


def _plain(record: Bets | Close) -> dict[str, Any]:
    """The fields of a record: arrays with their dtypes, frames as Arrow, everything else unchanged."""
    out: dict[str, Any] = {}
    for name, value in record._asdict().items():
        if isinstance(value, np.ndarray):
            out[name] = ["array", value.dtype.str, value.tolist()]
        elif isinstance(value, pl.DataFrame):
            frame = io.BytesIO()
            value.clone().write_ipc_stream(frame)  # writing locks a frame
            out[name] = ["frame", frame.getvalue()]
        else:
            out[name] = ["plain", value]
    return out


def _restored(fields: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, (kind, *value) in fields.items():
        if kind == "array":
            out[name] = np.array(value[1], value[0])
        else:
            out[name] = pl.read_ipc_stream(io.BytesIO(value[0])) if kind == "frame" else value[0]
    return out
