"""The output of one WebSocket, whose messages each have a `seq` of this connection."""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oddsengine_service.stream.connection import WRITE, ReaderLimits, StreamConnection
from oddsengine_service.ws.wire import WS

NORMAL, TOO_LARGE, BAD_KEY, NO_STREAMING, TOO_MANY = 1000, 1009, 4001, 4003, 4029
"""Codes with which a connection is closed."""
_PING = b"\x89\x00"
_TEXT = 0x81  # one complete message
_LONG, _LONGEST = struct.Struct("!BBH").pack, struct.Struct("!BBQ").pack  # heads of frames from 126 and 65,536 bytes


def kind_for(send: Callable[[Any], Any]) -> "type[Socket]":
    """The kind of socket for the `send` of a server."""
    return FrameSocket if hasattr(getattr(send, "__self__", None), "write_frames") else Socket


class Socket(StreamConnection):
    """One connection of any ASGI server, which sends messages one by one.

    Pending items are pairs: the start of a message with its `seq`, and the shared rest.
    """

    __slots__ = ("_end", "_seq")
    _joined = 0  # every write is one message

    def __init__(self, send: Callable[[Any], Any], limits: ReaderLimits) -> None:
        super().__init__(send, limits)
        self._seq = 0
        self._end = NORMAL, ""  # code and reason

    @staticmethod
    def packed(batches: Sequence[tuple[Sequence[bytes], int]]) -> Any:
        """Messages without framing."""
        return batches

    def take(self, packed: Any) -> None:
        if not (self.gone or self._ending):
            self.size += sum(self._queue(messages, number) for messages, number in packed)

    def begin(self, pieces: Iterable[bytes], number: int = 0) -> None:
        """Queue a snapshot."""
        size = self._queue(pieces, number)
        self._beginning += size
        self.size += size

    def _queue(self, messages: Iterable[bytes], number: int) -> int:
        total, seq, pending, framing = 0, self._seq, self._pending, self._framing
        place = b'"global_seq":%d,' % number if number else b""
        for body in messages:
            seq += 1
            head = b'{"seq":%d,%b' % (seq, place)
            head = framing(len(head) + len(body)) + head
            pending.append(head)
            pending.append(body)
            total += len(head) + len(body)
        self._seq = seq
        return total

    @staticmethod
    def _framing(size: int) -> bytes:
        """What precedes a message of so many bytes: nothing, where the server makes frames."""
        return b""

    def idle(self) -> None:
        """Nothing: pings are up to the server, and no message may precede the snapshot."""

    def _some(self) -> bytes:
        body = b"".join(self._pending[:2])
        del self._pending[:2]
        return body

    async def sending(self, body: bytes, *, last: bool) -> None:
        try:
            await self._send(self._closing() if last else {"type": "websocket.send", "text": body.decode()})
        except Exception:  # once a connection is closed, servers raise what they like, and others must get their events
            self.gone = True

    def _closing(self) -> dict[str, Any]:
        code, reason = self._end
        return {"type": "websocket.close", "code": code, "reason": reason}

    def refuse(self, code: str, error: bytes, close: int = TOO_MANY) -> None:
        """Send an error, and close."""
        if not (self.gone or self._ending):
            self.begin([error])
            self.close(close, code)

    def revoke(self) -> None:
        """Close because the key is no longer valid or its rights have changed."""
        code = "invalid_api_key"
        self.refuse(code, WS.error(code, "the key was revoked, or has other rights now"), BAD_KEY)

    def close(self, code: int, reason: str) -> None:
        self._end = code, reason
        self.end()


class FrameSocket(Socket):
    """One connection of our server, which is given whole frames, many in one write."""

    __slots__ = ("_frames",)
    _joined = WRITE

    def __init__(self, send: Callable[[Any], Any], limits: ReaderLimits) -> None:
        super().__init__(send, limits)
        self._frames = send.__self__.write_frames  # type: ignore[attr-defined]

    @staticmethod
    def _framing(size: int) -> bytes:
        if size < 126:
            return bytes((_TEXT, size))
        return _LONG(_TEXT, 126, size) if size < 65_536 else _LONGEST(_TEXT, 127, size)

    def idle(self) -> None:
        """Send a ping; no message may precede the snapshot."""
        if not self._pending and self._writing is None:
            self._pending += (_PING, b"")
            self.size += len(_PING)
            self.flush()

    def _some(self) -> bytes:
        """Only whole frames: the library writes others between them."""
        size, n = 0, 0
        while n < len(self._pending):
            size += len(self._pending[n]) + len(self._pending[n + 1])
            if n and size > WRITE:
                break
            n += 2
        body = b"".join(self._pending[:n])
        del self._pending[:n]
        return body

    async def sending(self, body: bytes, *, last: bool) -> None:
        try:
            if last:
                await self._send(self._closing())
            else:
                await self._frames(body)
        except OSError:
            self.gone = True
