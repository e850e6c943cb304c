"""Messages of a WebSocket: JSON objects with `type`, `seq` and `timestamp`.

`seq` differs for each connection, so a message is encoded without its opening brace, once for all who get it, and each
connection puts `{"seq":N,` before it. Rows are the same bytes as in Server-Sent Events.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from oddsengine_service.stream.events import ODDS, SEEN, StreamEvent, Wire
from oddsengine_service.stream.sse import clock, raw

MOST_FRAME = 256 << 10  # bytes of one message
MOST_ROWS = 200_000  # bytes of the rows of one message
MOST_OPPORTUNITIES = 300  # in one message
CHANNELS = {"ev": "ev", "arb": "arbitrage", "middles": "middles", "low_hold": "low_hold"}
"""Channels by the names that kinds have in events."""
_encode = msgspec.json.Encoder().encode
_ID = 24  # bytes of an id in a list


def message(kind: str, **fields: Any) -> bytes:
    """A message without its opening brace.

    Examples
    --------
    >>> message("heartbeat", timestamp="2026-02-08T18:00:00.000Z")
    b'"type":"heartbeat","timestamp":"2026-02-08T18:00:00.000Z"}'
    """
    return _encode({"type": kind, "timestamp": clock()} | fields)[1:]


def chunks(sizes: Iterable[int], most: int) -> Iterator[slice]:
    """Consecutive parts of a list whose messages stay below the bound of a frame."""
    first = at = size = 0
    for at, each in enumerate(sizes):
        if at > first and (size + each > MOST_ROWS or at - first >= most):
            yield slice(first, at)
            first, size = at, 0
        size += each + 1
    if size:
        yield slice(first, at + 1)


def _rows(rows: Sequence[Any], most: int = 1 << 30) -> list[slice]:
    return list(chunks((memoryview(row).nbytes for row in rows), most))


def _ids(ids: Sequence[str]) -> Iterator[slice]:
    return chunks((len(id_) + 3 for id_ in ids), 1 << 30)


class Messages(Wire):
    """What a WebSocket is sent."""

    comments = False
    keeps_suspended = True

    # ---- prices ----

    @staticmethod
    def removed(book: str, ids: Sequence[str], total: int) -> list[StreamEvent]:
        """Prices that left the board or the filters."""
        return [
            StreamEvent(
                message("odds:removed", source=book, ids=ids[some], count=len(ids[some])),
                ODDS, ids[some], None, book=book, total=total,
            )
            for some in _ids(ids)
        ]  # fmt: skip

    @staticmethod
    def added(
        ids: Sequence[str], rows: Sequence[Any], fresh: Sequence[bool], total: int, books: Sequence[str] = ()
    ) -> list[StreamEvent]:  # fmt: skip
        """Whole prices, by book."""
        out = []
        for book in sorted(set(books)):
            at = [i for i, each in enumerate(books) if each == book]
            own = [rows[i] for i in at]
            for some in _rows(own):
                body = message("odds:update", source=book, data=own[some], count=len(own[some]))
                places = at[some]
                out.append(
                    StreamEvent(
                        body, ODDS, [ids[i] for i in places], own[some], [fresh[i] for i in places], book=book,
                        total=total,
                    )
                )  # fmt: skip
        return out

    @staticmethod
    def moved(book: str, ids: Sequence[str], deltas: Sequence[Any], total: int) -> list[StreamEvent]:
        """What moved of a book's prices."""
        return [
            StreamEvent(
                message("odds:update", source=book, data=deltas[some], count=len(deltas[some])),
                ODDS, ids[some], deltas[some], partly=True, book=book, total=total,
            )
            for some in _rows(deltas)
        ]  # fmt: skip

    @staticmethod
    def locked(book: str, ids: Sequence[str], deltas: Sequence[Any], total: int) -> list[StreamEvent]:
        """Prices that are suspended: an update that says so, and the same rows as `odds:locked`."""
        inactive = [msgspec.Raw(bytes(delta)[:-1] + b',"is_active":false}') for delta in deltas]
        out = Messages.moved(book, ids, inactive, total)
        for some in _rows(inactive):
            body = message("odds:locked", source=book, data=inactive[some], count=len(inactive[some]))
            out.append(StreamEvent(body, SEEN, ids[some], inactive[some]))
        return out

    def snapshot(self, rows: Sequence[Mapping[str, Any]]) -> list[bytes]:
        """`initial` messages, at least one for each book."""
        by_book: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            by_book.setdefault(row["sportsbook"], []).append(row)
        out = []
        for book in sorted(by_book):
            data = raw(by_book[book])
            out += [message("initial", source=book, data=data[some], count=len(data[some])) for some in _rows(data)]
        return out

    def empty(self) -> list[bytes]:
        """Nothing."""
        return []

    def complete(self, books: list[str], total: int, *, resumed: bool) -> bytes:
        """The message that ends the beginning."""
        return message("snapshot:complete", books=books, total=total, resumed=resumed, progressive=False)

    # ---- opportunities ----

    @staticmethod
    def detected(kind: str, ids: Sequence[str], rows: Sequence[Any], fresh: Sequence[bool]) -> list[StreamEvent]:
        """Opportunities that are new, or whose figures moved."""
        return [
            StreamEvent(message(f"{kind}:detected", data=rows[some]), kind, ids[some], rows[some], fresh[some])
            for some in _rows(rows, MOST_OPPORTUNITIES)
        ]

    @staticmethod
    def expired(kind: str, ids: Sequence[str]) -> list[StreamEvent]:
        """Opportunities that are no more."""
        return [
            StreamEvent(message(f"{kind}:expired", data={"expired": ids[some]}), kind, ids[some], None)
            for some in _ids(ids)
        ]

    def opened(self, kind: str, ids: Sequence[str], rows: Sequence[Any]) -> list[bytes]:
        """All opportunities of a kind, in chunks where one message would be too large."""
        del ids
        parts = _rows(rows, MOST_OPPORTUNITIES)
        if len(parts) < 2:
            return [message("opportunities_snapshot", **{CHANNELS[kind]: rows})]
        out = []
        for at, some in enumerate(parts, 1):
            fields: dict[str, Any] = {CHANNELS[kind]: rows[some], "chunk": at, "totalChunks": len(parts)}
            out.append(message("opportunities_snapshot", **fields))
        return out

    # ---- the connection ----

    def beginning(self, prices: list[bytes], others: list[bytes]) -> list[bytes]:
        """Opportunities before prices."""
        return [*others, *prices]

    def heartbeat(self, moment: str) -> bytes:
        """A sign of life."""
        return message("heartbeat", timestamp=moment)

    def error(self, code: str, message_: str) -> bytes:
        """A failure."""
        return message("error", code=code, message=message_)

    def opening(self, connected: list[bytes], _: Iterator[int]) -> list[bytes]:
        """What is sent at once."""
        return connected

    def numbered(self, frames: Sequence[bytes], _: Iterator[int], number: int = 0) -> list[bytes]:
        """Each connection numbers its own."""
        del number
        return list(frames)


WS = Messages()
