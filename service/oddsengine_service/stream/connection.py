"""One connection: its pending data, with one write at a time, and how far its client has read.

Everything here runs in the event loop. Pending data is joined into one write; if the server accepts the write at once,
as it does while the client reads, no task is woken.
"""

import asyncio
import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

try:
    import fcntl
    import termios
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

WRITE = 1 << 16  # bytes of one write
PIECE = 1 << 15  # bytes of a shared piece
WAITING = b": preparing the snapshot\n"


Piece = bytes | memoryview


@dataclass(frozen=True)
class ReaderLimits:
    """Limits on the data and the time that readers may take; readers beyond them are cut off."""

    reader_bytes: int = 4 << 20  # bytes pending at two checks in a row, without the snapshot
    account_bytes: int = 16 << 20  # the same of all readers of an account; those with the most are cut off
    node_bytes: int = 256 << 20  # the same of all readers
    stalled: float = 30.0  # seconds without any byte received or acknowledged
    linger: float = 5.0  # seconds to receive the rest after the stream ends
    send_buffer: int = 1 << 18  # bytes; the kernel's default is megabytes; 0 leaves it


def unsent(transport: Any) -> int:
    """Bytes not acknowledged by the client: the server's and, if available, the kernel's."""
    if transport is None:
        return 0
    size: int = transport.get_write_buffer_size()
    line = transport.get_extra_info("socket")
    if fcntl is None or line is None:
        return size
    with contextlib.suppress(OSError, ValueError):
        answer = fcntl.ioctl(line.fileno(), termios.TIOCOUTQ, struct.pack("i", 0))
        size += struct.unpack("i", answer)[0]
    return size


class _Rest:
    """The rest of a coroutine that was started by hand."""

    def __init__(self, begun: Generator[Any, Any, Any], waits: Any) -> None:
        self._begun, self._waits = begun, waits

    def __await__(self) -> Generator[Any, Any, Any]:
        yield self._waits
        return (yield from self._begun)


class ReadProgress:
    """How far a client has read, and whether that is too slow."""

    __slots__ = ("_limits", "_queued", "_received", "_since", "sent")

    def __init__(self, limits: ReaderLimits) -> None:
        self._limits = limits
        self.sent = self._received = 0  # bytes sent; bytes received at the last check
        self._queued = 0  # bytes sent or pending at the last call of `overdue`
        self._since = time.monotonic()  # when it last received something, or had nothing pending; or the end

    def overdue(self, pending: int, beginning: int) -> int:
        """Bytes pending since the last call, without the snapshot."""
        left = min(pending, self._queued - self.sent) - beginning
        self._queued = self.sent + pending
        return max(left, 0)

    def end(self) -> None:
        """Begin to wait for the client to receive the rest."""
        self._since = time.monotonic()

    def lingers(self, now: float) -> bool:
        """Whether the client has not received the rest in time."""
        return now - self._since > self._limits.linger

    def stalls(self, now: float, left: int, *, writing: bool) -> bool:
        """Whether the client has received nothing for too long, with so many bytes left to receive."""
        received = self.sent - left
        if received > self._received or not (left or writing):  # slow, but not stalled
            self._since = now
        self._received = received
        return now - self._since > self._limits.stalled


class StreamConnection:
    """The output of one connection; this class sends a response in parts, and others override what differs."""

    __slots__ = (
        "_beginning", "_ending", "_pending", "_progress", "_send", "_task", "_writing", "gone", "size", "transport",
    )  # fmt: skip
    _joined = WRITE  # bytes pending that are sent in one write

    def __init__(self, send: Callable[[Any], Any], limits: ReaderLimits) -> None:
        self.gone = self._ending = False
        self.size = 0  # bytes pending
        self.transport: Any = _direct(getattr(send, "__self__", None))
        _watch(self.transport, limits)
        self._task = asyncio.current_task()  # cancelled if the transport is not accessible
        self._send = send
        self._pending: list[Piece] = []
        self._beginning = 0  # bytes of the snapshot still pending
        self._writing: asyncio.Task[None] | None = None
        self._progress = ReadProgress(limits)

    # ---- input ----

    def begin(self, pieces: Iterable[bytes], number: int = 0) -> None:
        """Queue a snapshot, of any size."""
        del number  # update after these frames; not used here
        for piece in pieces:
            self._beginning += len(piece)
            self.size += len(piece)
            self._pending.extend(parts(piece))

    @staticmethod
    def packed(batches: Sequence[tuple[Sequence[bytes], int]]) -> Any:
        """Prepare frames for `take`, each batch with its `global_seq`; done once for all recipients."""
        joined = b"".join(frame for frames, _ in batches for frame in frames)
        return parts(joined), len(joined)

    def take(self, packed: Any) -> None:
        """Queue events; `flush` sends them."""
        if self.gone or self._ending:
            return
        pieces, size = packed
        self._pending.extend(pieces)
        self.size += size

    def idle(self) -> None:
        """Send a comment as a heartbeat while the snapshot is being prepared."""
        if self._pending or self._writing is not None:
            return
        self._pending.append(WAITING)
        self.size += len(WAITING)
        self.flush()

    def overdue(self) -> int:
        """Bytes pending since the last call, without the snapshot."""
        return self._progress.overdue(self.size, self._beginning)

    # ---- output ----

    def flush(self) -> None:
        """Send what is pending."""
        while self._pending and self._writing is None and not self.gone:
            if self.size <= self._joined:
                body = b"".join(self._pending)
                self._pending.clear()
            else:
                body = self._some()
            self.size -= len(body)
            self._beginning = max(0, self._beginning - len(body))
            self._write(body)
        if self._ending and not self._pending and self._writing is None and not self.gone:
            self.gone = True
            self._write(b"", last=True)

    def _some(self) -> bytes:
        size, n = 0, 0
        for piece in self._pending:
            if n and size + len(piece) > WRITE:
                break
            size, n = size + len(piece), n + 1
        body = b"".join(self._pending[:n])
        del self._pending[:n]
        return body

    def sending(self, body: bytes, *, last: bool) -> Any:
        """A coroutine that sends bytes, or the end."""
        return self._send({"type": "http.response.body", "body": body, "more_body": not last})

    def _write(self, body: bytes, *, last: bool = False) -> None:
        self._progress.sent += len(body)
        sending = self.sending(body, last=last).__await__()
        try:
            waits = next(sending)
        except StopIteration:
            return
        except Exception:  # servers raise what they like, and others must get their events
            self.gone = True
            return
        self._writing = asyncio.get_running_loop().create_task(self._finish(_Rest(sending, waits)))

    async def _finish(self, rest: _Rest) -> None:
        try:
            await rest
        except Exception:
            self.gone = True
        finally:
            self._writing = None
        self.flush()

    # ---- end ----

    def end(self) -> None:
        """Send what is pending, then end the response."""
        if not self._ending:
            self._ending = True
            self._progress.end()
        self.flush()

    def refuse(self, code: str, error: bytes) -> None:
        """Send an error, and end."""
        del code  # already in the error
        self.begin([error])
        self.end()

    def revoke(self) -> None:
        """End because the key is no longer valid or its rights have changed."""
        self.end()

    def lingers(self, now: float) -> bool:
        """Whether the client does not receive the rest."""
        return self._ending and not self.gone and self._progress.lingers(now)

    def stalls(self, now: float) -> bool:
        """Whether the client has received nothing for too long, or has disconnected."""
        if self.gone or self._ending:
            return False
        return self._progress.stalls(now, unsent(self.transport), writing=self._writing is not None)

    def drop(self) -> None:
        """Discard what is pending, and all that would follow."""
        self.gone = True
        self._pending.clear()
        self.size = self._beginning = 0

    def abort(self) -> None:
        """Discard what is pending, and close the connection."""
        self.drop()
        if self.transport is not None:
            self.transport.abort()
        elif self._task is not None:
            self._task.cancel()


SERVER_SEND = "oddsengine.send"


def server_send(scope: Mapping[str, Any], send: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The server's own `send`, past the middleware, if the server is ours: streams write to its transport."""
    found = scope.get("extensions", {}).get(SERVER_SEND)
    return send if found is None else cast(Callable[[Any], Any], found())


def parts(body: bytes) -> list[Piece]:
    """Split a body into pieces that are sent one by one, without copies, since many subscribers may share it."""
    if len(body) <= PIECE:
        return [body]
    view = memoryview(body)
    return [view[at : at + PIECE] for at in range(0, len(body), PIECE)]


class DirectTransport:
    """A transport that writes to its socket immediately while nothing else is pending.

    An event loop writes at the end of a round, and uvloop keeps the GIL for all writes of it: with a thousand streams,
    engine steps would wait for them. `os.write` releases the GIL.
    """

    __slots__ = ("_file", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._file: int = transport.get_extra_info("socket").fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write; the event loop gets what the socket does not accept, and errors."""
        transport, sent = self._transport, 0
        if not (transport.get_write_buffer_size() or transport.is_closing()):
            with contextlib.suppress(OSError):
                sent = os.write(self._file, data)
        if sent < len(data):
            transport.write(memoryview(data)[sent:] if sent else data)


def _direct(response: Any) -> Any:
    """The transport of a response, which writes to its socket from now on unless it is encrypted."""
    transport = getattr(response, "transport", None)
    if fcntl is None or transport is None or not transport.get_extra_info("socket"):
        return transport
    if transport.get_extra_info("sslcontext") is None:
        response.transport = transport = DirectTransport(transport)
    return transport


def _watch(transport: Any, limits: ReaderLimits) -> None:
    """Limit the kernel's buffer, and fail the connection if sent data is not acknowledged.

    A client may disappear without closing the connection.
    """
    line = transport.get_extra_info("socket") if transport is not None else None
    if line is None:
        return
    with contextlib.suppress(OSError, ValueError):  # it may be closed already
        if limits.send_buffer:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.send_buffer)
