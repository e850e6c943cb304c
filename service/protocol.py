"""HTTP/1.1 as uvicorn reads it, with bounds: how large the head of a request may be, and how long it may take.

What cannot be read as a request gets the interface's error envelope too.
"""

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.problems import Problem

MOST_HEAD = 64 << 10  # bytes of the first line and all headers
HEAD_S = 15.0  # for all of them to arrive


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        self._head = True  # the parser stands before the end of a head
        self._fresh = True  # which began with what is being read now
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless a head is too long; one that came at once is as long as a read at most."""
        self._fresh = False
        super().data_received(data)
        if not self._head or self.transport.is_closing():
            return
        self._size = len(data) if self._fresh else self._size + len(data)
        if self._size > MOST_HEAD and not self._fresh:
            self.refuse(Problem(431, "validation_error", f"the head of a request may have {MOST_HEAD:,} bytes"))
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self._late)

    def on_message_begin(self) -> None:
        """Read a head."""
        self._head = self._fresh = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Read a body, or what comes next."""
        self._head = False
        self._stop()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Wait for the next head, without haste: `timeout_keep_alive` bounds that."""
        super().on_message_complete()
        self._size = 0

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request."""
        self.refuse(Problem(400, "validation_error", f"this cannot be read as a request: {msg}"))

    def refuse(self, problem: Problem) -> None:
        """Answer for the application, and close; where an answer is under way, only close."""
        if self.cycle is None or self.cycle.response_complete:
            body = msgspec.json.encode(problem.body())
            head = (
                f"HTTP/1.1 {problem.status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n"
                f"cache-control: no-store\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()

    def _late(self) -> None:
        self._timer = None
        if self._head and not self.transport.is_closing():
            self.refuse(Problem(408, "request_timeout", f"the head of a request did not arrive within {HEAD_S:g} s"))

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
