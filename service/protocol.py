"""HTTP/1.1 as uvicorn reads it, with bounds: how large a request may be, and how long it may take.

What an application does not read of a body is bounded here too, and so is what may stand behind one. What cannot be
read as a request gets the interface's error envelope.
"""

import asyncio
from functools import partial
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from oddsengine_service.connections import Connections
from oddsengine_service.problems import Problem

MOST_HEAD = 64 << 10  # bytes of the first line and all headers
HEAD_S = 15.0  # for all of them to arrive, and for a body that nobody waits for
MOST_SENT = 8 << 20  # bytes of one body on the wire: a megabyte in small chunks is several


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        self._head = True  # the parser stands before the end of a head
        self._fresh = True  # which began with what is being read now
        self._body = False  # it stands within a body
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._connections: Connections = self.app.connections
        self._counted = False

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        try:
            self._connections.enter(self._address)
        except Problem as problem:
            self.refuse(problem)
            return
        self._counted = True
        self._timer = self.loop.call_later(HEAD_S, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing."""
        self._stop()
        if self._counted:
            self._counted = False
            self._connections.leave(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless a head or a body is too long; one that came at once is as long as a read at most."""
        self._fresh = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._body:
            self._size += len(data)
            if self._size > MOST_SENT:
                message = f"request body must be at most {MOST_SENT:,} bytes on the wire"
                self.refuse(Problem(413, "payload_too_large", message))
        if not self._head:
            return
        self._size = len(data) if self._fresh else self._size + len(data)
        if self._size > MOST_HEAD and not self._fresh:
            self.refuse(Problem(431, "validation_error", f"request headers must be at most {MOST_HEAD:,} bytes"))
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self._late)

    def on_message_begin(self) -> None:
        """Read a head."""
        self._head = self._fresh = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what stands behind a body is of no use to anybody."""
        if self._head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Read a body, or what comes next."""
        self.headed()
        if self.transport.is_closing():
            return
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts == 1 or (not hosts and self.parser.get_http_version() == "1.0"):
            self.admit()
        else:
            message = f"a request must have exactly one Host header, got {hosts or 'none'}"
            self.refuse(Problem(400, "validation_error", message))

    def admit(self) -> None:
        """Answer the request that was read."""
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body, unless its request was refused."""
        if self.cycle is not None and not self.transport.is_closing():
            super().on_body(body)

    def headed(self) -> None:
        """A head is read; a body follows, or nothing."""
        self._head, self._body, self._size = False, True, 0
        self._stop()

    def on_message_complete(self) -> None:
        """Wait for the next head, without haste: `timeout_keep_alive` bounds that."""
        if self.cycle is not None:  # else it was answered before there was one
            super().on_message_complete()
        self._body, self._size = False, 0
        self._stop()

    def on_response_complete(self) -> None:
        """Wait for what is left of a body that was answered already, for a while."""
        super().on_response_complete()
        if self._body and self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(HEAD_S, self._late)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request."""
        self.refuse(Problem(400, "validation_error", f"malformed request: {msg}"))

    def refuse(self, problem: Problem) -> None:
        """Answer for the application, and close; where an answer is under way, only close."""
        cycle = self.cycle
        answered = cycle is not None and cycle.response_complete and self._body
        waits = cycle is not None and cycle.more_body and not (cycle.response_started or self.pipeline)
        if not answered and (cycle is None or cycle.response_complete or waits):
            body = msgspec.json.encode(problem.body(self._origin()))
            head = (
                f"HTTP/1.1 {problem.status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n"
                f"cache-control: no-store\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()

    def _origin(self) -> str:
        """The node's address, as the caller used it."""
        host, port = self.server or ("localhost", 80)
        return getattr(self.app, "origin", "") or f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def _late(self) -> None:
        self._timer = None
        if (self._head or self._body) and not self.transport.is_closing():
            self.refuse(Problem(408, "request_timeout", f"request headers did not arrive within {HEAD_S:g} s"))

    def _should_upgrade(self) -> bool:
        """Whether a request opens a WebSocket, where there is one; any other is answered in this protocol."""
        path = self.url.partition(b"?")[0].decode("latin-1")
        return (
            path in getattr(self.app, "socket_paths", ())
            and self.parser.get_method() == b"GET"
            and self.parser.get_http_version() == "1.1"
            and super()._should_upgrade()
        )

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over; it stays counted until it is closed."""
        if self.transport.is_closing():
            return
        self._stop()
        self._head = self._body = False
        super().handle_websocket_upgrade()
        if self._counted:
            self._counted = False
            upgraded: Any = self.transport.get_protocol()
            upgraded.release = partial(self._connections.leave, self._address)

    def _unsupported_upgrade_warning(self) -> None:
        """Answer in this protocol, and close: what comes behind such a request is read by nobody."""
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
