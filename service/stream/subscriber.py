"""One connection: what waits for it, and one write at a time.

Everything here happens in the event loop. What is pending is joined into one write; if the server lets the write
through at once, as it does while the client reads, no task is woken for it.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

WRITE = 1 << 17  # bytes of one write
PIECE = 1 << 16  # bytes of a shared piece
LIMIT = 4 << 20  # bytes that may wait, beside the beginning
STALLED_S = 60.0  # without a byte taken
LINGER_S = 5.0  # to take the rest once the stream ends


class _Rest:
    """What is left of a coroutine that was begun by hand."""

    def __init__(self, begun: Generator[Any, Any, Any], waits: Any) -> None:
        self._begun, self._waits = begun, waits

    def __await__(self) -> Generator[Any, Any, Any]:
        yield self._waits
        return (yield from self._begun)


class Subscriber:
    """Who listens. `waiting` holds what comes while the beginning is being made; None afterwards."""

    __slots__ = (
        "_beginning", "_ending", "_pending", "_send", "_since", "_writing", "account", "check", "cut_short", "gone",
        "groups", "key", "limit", "on_cut", "size", "task", "transport", "turn", "waiting", "wants",
    )  # fmt: skip

    def __init__(
        self, send: Callable[[Any], Any], account: str, key: str, check: Callable[[], bool],
        on_cut: Callable[["Subscriber", str], None], limit: int = LIMIT,
    ) -> None:  # fmt: skip
        self.account, self.key, self.check = account, key, check
        self.on_cut, self.limit = on_cut, limit
        self.wants: Any = None
        self.waiting: list[tuple[int, list[bytes]]] | None = []
        self.gone = self.cut_short = self._ending = False
        self.size = 0
        self.groups: list[Any] = []
        self.turn = 0
        self.transport: Any = getattr(getattr(send, "__self__", None), "transport", None)
        _watch(self.transport)
        self.task = asyncio.current_task()  # what to end where the transport is out of reach
        self._send = send
        self._pending: list[bytes] = []
        self._beginning = 0  # bytes of it that still wait
        self._writing: asyncio.Task[None] | None = None
        self._since = 0.0

    # ---- what comes ----

    def begin(self, pieces: Iterable[bytes]) -> None:
        """Queue what it gets at the beginning, however much that is."""
        for piece in pieces:
            self._beginning += len(piece)
            self.size += len(piece)
            self._pending.extend([piece] if len(piece) <= PIECE else _cut(piece))

    def take(self, frame: bytes) -> None:
        """Queue an event; `flush` sends it."""
        if self.gone or self._ending:
            return
        self._pending.append(frame)
        self.size += len(frame)
        if self.size - self._beginning > self.limit:
            self.cut("it does not keep up")

    # ---- what goes ----

    def flush(self) -> None:
        """Send what is pending."""
        while self._pending and self._writing is None and not self.gone:
            if self.size <= WRITE:
                body = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
                self._pending.clear()
            else:
                body = self._some()
            self.size -= len(body)
            self._beginning = max(0, self._beginning - len(body))
            self._write({"type": "http.response.body", "body": body, "more_body": True})
        if self._ending and not self._pending and self._writing is None and not self.gone:
            self.gone = True
            self._write({"type": "http.response.body", "body": b"", "more_body": False})

    def _some(self) -> bytes:
        size, n = 0, 0
        for piece in self._pending:
            if n and size + len(piece) > WRITE:
                break
            size, n = size + len(piece), n + 1
        body = b"".join(self._pending[:n])
        del self._pending[:n]
        return body

    def _write(self, message: dict[str, Any]) -> None:
        sending = self._send(message).__await__()
        try:
            waits = next(sending)
        except StopIteration:
            return
        self._since = time.monotonic()
        self._writing = asyncio.get_running_loop().create_task(self._finish(_Rest(sending, waits)))

    async def _finish(self, rest: _Rest) -> None:
        try:
            await rest
        except (ConnectionError, OSError):
            self.gone = True
        finally:
            self._writing = None
        self.flush()

    # ---- how it ends ----

    def end(self) -> None:
        """Send what is pending, then end the answer as HTTP has it."""
        if not self._ending:
            self._ending, self._since = True, time.monotonic()
        self.flush()

    def overdue(self, now: float) -> bool:
        """Whether it took nothing for too long."""
        if self.gone or (self._writing is None and not self._ending):
            return False
        return now - self._since > (LINGER_S if self._ending else STALLED_S)

    def cut(self, reason: str) -> None:
        """Close the connection; what waits is lost."""
        if self.gone:
            return
        self.gone = self.cut_short = True
        self.on_cut(self, reason)
        self.drop()
        if self.transport is not None:
            self.transport.abort()
        elif self.task is not None:
            self.task.cancel()

    def drop(self) -> None:
        """Forget what waits."""
        self._pending.clear()
        self.size = self._beginning = 0
        self.waiting = None


def _watch(transport: Any) -> None:
    """Let the connection fail if what was sent is not acknowledged: a client may vanish without a word."""
    line = transport.get_extra_info("socket") if transport is not None else None
    if line is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        with contextlib.suppress(OSError):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(STALLED_S * 1000))


def _cut(body: bytes) -> list[bytes]:
    return [body[at : at + PIECE] for at in range(0, len(body), PIECE)]


__all__ = ["LIMIT", "PIECE", "Subscriber"]
