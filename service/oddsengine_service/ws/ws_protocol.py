"""WebSocket under uvicorn: handshake and frames by the library `websockets`, with additional limits.

The rate and size of what a client sends are limited, so that it can cause only a limited amount of work, including
frames that no application sees. Messages of the hub are sent as ready-made frames between those of the library.
"""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.http11 import Response

from oddsengine_service.accounts.limits import Bucket
from oddsengine_service.errors import INTERNAL, Problem, masked, origin_of
from oddsengine_service.http.middleware import refusal
from oddsengine_service.stream.connection import SERVER_SEND

MOST_MESSAGE = 32 << 10  # bytes of one message from a client
BURST = 256 << 10  # bytes that may arrive at once
RATE = 16 << 10  # bytes per second
_FAILED = "Failed to open a WebSocket connection: "

_log = logging.getLogger("oddsengine.ws")
_log.addHandler(logging.NullHandler())
_log.setLevel(logging.CRITICAL)  # the library logs queries, which may contain keys
_log.propagate = False


class SocketProtocol(WebSocketsSansIOProtocol):
    """One connection after its upgrade."""

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        self.logger = self.conn.logger = _log
        self.conn.reject = self._reject  # type: ignore[method-assign]  # its errors are plain text
        self.release: Callable[[], None] | None = None  # called once the connection is closed
        self._bytes = Bucket(RATE, BURST, self.loop.time())

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.release is not None:
            self.release()
            self.release = None

    def data_received(self, data: bytes) -> None:
        """Parse frames, unless the client sends too much."""
        if self._bytes.take_tokens(self.loop.time(), len(data)) < 0.0:
            self.transport.abort()
            return
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:  # the request line is too long
            self.transport.write(self._reject(400, "the request line is too long").serialize())
            self.transport.close()

    def _reject(self, status: int, text: str) -> Response:
        """A handshake that failed, as an error in the form of all others."""
        problem = Problem(status, "internal_error", INTERNAL)
        if status < 500:
            why = masked(text.removeprefix(_FAILED).rstrip(".\n"))[:200]
            code = "upgrade_required" if status == 426 else "validation_error"
            problem = Problem(status, code, f"invalid WebSocket handshake: {why}")
        request = getattr(self, "request", None)
        host = request.headers.get("Host", "") if request is not None else ""
        whole = refusal(problem, origin_of(host.encode("latin-1", "replace")))
        headers = {name.decode(): value.decode() for name, value in whole.raw_headers}
        return Response(status, HTTPStatus(status).phrase, Headers(headers | {"connection": "close"}), whole.body)

    async def run_asgi(self) -> None:
        """Run the application; what is sent past its middleware goes here."""
        extensions: dict[str, Any] = self.scope["extensions"]
        extensions[SERVER_SEND] = lambda: self.send
        await super().run_asgi()

    def handle_ping(self) -> None:
        """Reply, unless the client does not read."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def handle_parser_exception(self) -> None:
        """Close a connection that violates the protocol."""
        if self.conn.close_sent is None:  # the handshake itself
            self.transport.close()
        elif self.close_sent:
            self.conn.data_to_send()
            self.transport.close()
        else:
            super().handle_parser_exception()

    async def write_frames(self, data: bytes) -> None:
        """Write whole frames once the client has received most of the earlier ones."""
        if not self.writable.is_set():
            await self.writable.wait()
        if self.disconnected or self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        self.transport.write(data)
