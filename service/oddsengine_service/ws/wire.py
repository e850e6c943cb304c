"""Messages of a WebSocket: JSON objects with `type`, `seq` and `timestamp`.

`seq` differs by connection, so a message is encoded once for all recipients without its opening brace, and each
connection prepends `{"seq":N,`. Rows are the same bytes as in Server-Sent Events.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from oddsengine.detection.kinds import KINDS
from oddsengine_service.stream.sse import raw
from oddsengine_service.stream.stream_events import Wire
from oddsengine_service.ws.ws_messages import (
    DETECTED,
    EXPIRED,
    MESSAGES,
    ExpiredIds,
    OpportunitiesSnapshot,
    SocketComplete,
    SocketError,
    SocketHeartbeat,
    SocketMessage,
    SocketRemoved,
)

MOST_FRAME = 256 << 10  # bytes of one message
MOST_ROWS = 200_000  # bytes of the rows of one message
MOST_OPPORTUNITIES = 300  # opportunities per message
CHANNELS = {kind.event_name: kind.name for kind in KINDS.values()}
"""Channels by the names that kinds have in events."""
_encode = msgspec.json.Encoder().encode


def encoded(message: SocketMessage) -> bytes:
    """A message without its opening brace.

    Examples
    --------
    >>> encoded(SocketHeartbeat(timestamp="2026-02-08T18:00:00.000Z"))
    b'"type":"heartbeat","timestamp":"2026-02-08T18:00:00.000Z"}'
    """
    return _encode(message)[1:]


def chunks(sizes: Iterable[int], most: int) -> Iterator[slice]:
    """Split a list into parts whose messages stay below the maximum size of a frame."""
    first = at = size = 0
    for at, each in enumerate(sizes):
        if at > first and (size + each > MOST_ROWS or at - first >= most):
            yield slice(first, at)
            first, size = at, 0
        size += each + 1
    if size:
        yield slice(first, at + 1)


class Messages(Wire):
    """The message format of WebSockets."""

    comments = False
    keeps_suspended = True

    # ---- payloads ----

    def price_event(self, name: str, book: str, rows: Sequence[Any], *, more: bool = False) -> bytes:
        del more
        return encoded(MESSAGES[name](source=book, data=rows, count=len(rows)))

    def removal(self, book: str, ids: Sequence[str]) -> bytes:
        return encoded(SocketRemoved(source=book, ids=ids, count=len(ids)))

    def detection(self, kind: str, rows: Sequence[Any]) -> bytes:
        return encoded(DETECTED[kind](data=rows))

    def expiration(self, kind: str, ids: Sequence[str]) -> bytes:
        return encoded(EXPIRED[kind](data=ExpiredIds(ids)))

    def parts(self, rows: Sequence[Any]) -> list[slice]:
        """Split rows, or ids, into parts that fit into one message."""
        return list(chunks(map(_size, rows), 1 << 30))

    def opportunity_parts(self, rows: Sequence[Any]) -> list[slice]:
        """Split opportunities into parts that fit into one message."""
        return list(chunks(map(_size, rows), MOST_OPPORTUNITIES))

    def id_parts(self, ids: Sequence[str]) -> list[slice]:
        """Split ids into parts that fit into one message."""
        return self.parts(ids)

    # ---- prices ----

    def added(self, rows: Sequence[Any], total: int, books: Sequence[str]) -> list[bytes]:
        del total
        by_book: dict[str, list[Any]] = {}
        for row, book in zip(rows, books, strict=True):
            by_book.setdefault(book, []).append(row)
        return [body for book in sorted(by_book) for body in self.moved(book, by_book[book])]

    def locked(self, book: str, deltas: Sequence[Any]) -> list[bytes]:
        """Suspended prices: an update that says so, and the same rows as `odds:locked`."""
        inactive = [msgspec.Raw(bytes(delta)[:-1] + b',"is_active":false}') for delta in deltas]
        return self.moved(book, inactive) + self.moved(book, inactive, "odds:locked")

    def snapshot(self, rows: Sequence[Mapping[str, Any]]) -> list[bytes]:
        """`initial` messages, at least one per book."""
        by_book: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            by_book.setdefault(row["sportsbook"], []).append(row)
        out = []
        for book in sorted(by_book):
            data = raw(by_book[book])
            out += [self.price_event("initial", book, data[part]) for part in self.parts(data)]
        return out

    def empty(self) -> list[bytes]:
        return []

    def opened(self, kind: str, rows: Sequence[Any]) -> list[bytes]:
        """All open opportunities of a kind, in parts if one message would be too large."""
        parts = self.opportunity_parts(rows)
        if len(parts) < 2:
            return [encoded(OpportunitiesSnapshot(**{CHANNELS[kind]: rows}))]
        out = []
        for at, part in enumerate(parts, 1):
            fields: dict[str, Any] = {CHANNELS[kind]: rows[part], "chunk": at, "totalChunks": len(parts)}
            out.append(encoded(OpportunitiesSnapshot(**fields)))
        return out

    # ---- the connection ----

    def complete(self, books: list[str], total: int, *, resumed: bool) -> bytes:
        return encoded(SocketComplete(books=books, total=total, resumed=resumed))

    def heartbeat(self, moment: str) -> bytes:
        return encoded(SocketHeartbeat(timestamp=moment))

    def error(self, code: str, message: str) -> bytes:
        return encoded(SocketError(code=code, message=message))

    def beginning(self, prices: list[bytes], others: list[bytes]) -> list[bytes]:
        return [*others, *prices]

    def opening(self, connected: list[bytes], _: Iterator[int]) -> list[bytes]:
        return connected

    def numbered(self, frames: Sequence[bytes], _: Iterator[int], number: int = 0) -> list[bytes]:
        """Unchanged: each connection numbers its own messages."""
        del number
        return list(frames)


def _size(row: str | msgspec.Raw) -> int:
    """Size of a row, or of an id as JSON, in bytes."""
    return len(row) + 2 if isinstance(row, str) else memoryview(row).nbytes


WS = Messages()
