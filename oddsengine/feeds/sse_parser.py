"""Incremental parser of Server-Sent Events with bounded memory.

Implements the HTML standard, section 9.2: lines end with LF, CR or both; an event ends at an empty line and is dropped
if it has no data; a line starting with a colon is a comment; ids with a zero byte are ignored.
"""

from typing import NamedTuple

from oddsengine.feeds.payload import FeedError

MOST = 32 << 20
_MARK = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """An event. `id` is the last id sent by the stream so far."""

    event: str
    data: bytes
    id: str = ""


class EventParser:
    r"""A parser for one connection, and events of at most some bytes.

    Examples
    --------
    >>> reader = EventParser()
    >>> reader.feed(b"id: 7\nevent: odds\nda"), reader.feed(b"ta: {}\n\n")
    ([], [ServerSentEvent(event='odds', data=b'{}', id='7')])
    """

    def __init__(self, most: int = MOST) -> None:
        self.last_id = ""  # for the `Last-Event-ID` of the next connection
        self.retry: int | None = None  # reconnection delay in milliseconds, if sent
        self.comments = 0  # comments also show that the stream is alive
        self._most = most
        self._tail: list[bytes] = []  # of an unfinished line
        self._pending = 0  # bytes of it
        self._size = 0  # bytes of the event so far
        self._data: list[bytes] = []
        self._event = b""
        self._begun = False
        self._head = b""  # incomplete byte order mark
        self._after_return = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Feed a chunk and return the events it completes.

        Raises `FeedError` if an event is too large. The rest of the chunk is lost, so the connection must be reopened.
        """
        if not self._begun:
            chunk = self._head + chunk
            if len(chunk) < len(_MARK) and _MARK.startswith(chunk):
                self._head = chunk
                return []
            self._begun, self._head = True, b""
            chunk = chunk.removeprefix(_MARK)
        if self._after_return and chunk:
            self._after_return = False
            chunk = chunk.removeprefix(b"\n")
        if not chunk:
            return []
        self._after_return = chunk.endswith(b"\r")
        lines = chunk.splitlines()
        rest = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        events: list[ServerSentEvent] = []
        for at, line in enumerate(lines):
            whole = line
            if at == 0 and self._tail:
                whole = b"".join((*self._tail, line))
                self._tail, self._pending = [], 0
            self._line(whole, events)
        if rest:
            self._tail.append(rest)
            self._pending += len(rest)
            self._held(0)
        return events

    def _line(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if not line:
            if self._data:
                name = self._event.decode("utf-8", "replace") or "message"
                events.append(ServerSentEvent(name, b"\n".join(self._data), self.last_id))
            self._data, self._event, self._size = [], b"", 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._held(len(value) + 1)
        elif field == b"event":
            self._event = value
            self._held(len(value))
        elif field == b"id":
            if b"\0" not in value:
                self.last_id = value[:4096].decode("utf-8", "replace")
        elif field == b"retry":
            if value.isdigit() and len(value) < 10:
                self.retry = int(value)
        elif not field:
            self.comments += 1

    def _held(self, more: int) -> None:
        self._size += more
        if self._size + self._pending > self._most:
            self._data, self._event, self._tail, self._size, self._pending = [], b"", [], 0, 0
            raise FeedError(f"an event of the stream is larger than {self._most:,} bytes")
