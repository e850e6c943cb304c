"""uvicorn's HTTP/1.1 protocol with limits on the size of a request and the time it may take.

Also limits bodies that the application does not read, and data that follows a body. Malformed requests get the error
envelope of the API.
"""

import asyncio
import logging
import re
import sys
from functools import partial
from types import MethodType
from typing import Any, Protocol

from httptools import HttpParserInvalidMethodError
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from oddsengine_service.errors import Problem, wrong_method
from oddsengine_service.http.connections import Connections
from oddsengine_service.http.middleware import refusal
from oddsengine_service.monitoring import log
from oddsengine_service.monitoring.metrics import METHODS
from oddsengine_service.stream.connection import SERVER_SEND

MOST_HEAD = 64 << 10  # bytes of the request line and all headers
HEAD_S = 15.0  # for the head to arrive, and for a body that is not read
_METHOD = re.compile(rb"([!#$%&'*+.^_`|~\w-]{1,20}) [^ \r\n]+ HTTP/1\.[01]\r?\n")
MOST_SENT = 8 << 20  # bytes of one body on the wire: in small chunks, one megabyte takes several


class _Logger(logging.LoggerAdapter[logging.Logger]):
    """uvicorn's logger with a client's address."""

    @property
    def level(self) -> int:
        return self.logger.level


async def _send_unchunked(cycle: Any, message: Any) -> None:
    """Send without chunks, which HTTP/1.0 does not have: a body of unknown length ends with the connection."""
    if message["type"] == "http.response.start":
        if b"content-length" not in dict(message.get("headers", ())):
            cycle.chunked_encoding = False
    elif cycle.chunked_encoding is False and not cycle.expected_content_length:
        cycle.expected_content_length = len(message.get("body", b""))
    await RequestResponseCycle.send(cycle, message)


class Host(Protocol):
    """What a connection knows of the node that it leads to."""

    connections: Connections
    origin: str  # the node's address, if it is known
    socket_paths: tuple[str, ...]  # paths that may be upgraded to a WebSocket
    stream_paths: tuple[str, ...]  # what the paths of streams begin with


class HttpProtocol(HttpToolsProtocol):
    """One connection, to a node that `connecting_to` says."""

    _host: Host

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        self._head = True  # the parser is within a head
        self._fresh = True  # which began with the current data
        self._body = False  # the parser is within a body
        self._data = b""  # being parsed
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._connections = self._host.connections
        self._counted = False
        self._answering: Any = None  # the cycle whose response is being sent; `cycle` is that of the last request
        self._written: Any = None  # the cycle of the last response that the client may not have read
        self.left, self.since = -1, 0.0

    @property
    def payers(self) -> tuple[str, str]:
        """Address and account of the last response."""
        request = self._written.scope["state"].get("request")
        return (self._address, "") if request is None else (request.address, request.account)

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.logger: Any = _Logger(self.logger, {"address": self._address})
        try:
            self._connections.enter(self._address)
        except Problem as problem:
            self.refuse(problem)
            return
        self._counted = True
        self._timer = self.loop.call_later(HEAD_S, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._connections.written.pop(self, None)
        if self._counted:
            self._counted = False
            self._connections.leave(self._address)
        if self._answering is not None:  # uvicorn only tells the last one
            self._answering.disconnected = not self._answering.response_complete
            self._answering.message_event.set()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]  # as in asyncio.Protocol
        """Keep the connection until the requests that have arrived are answered; a stream ends."""
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_complete:
            return False
        cycle.keep_alive = False
        return not cycle.scope["path"].startswith(self._host.stream_paths)

    def data_received(self, data: bytes) -> None:
        """Parse data, unless a head or a body is too long."""
        self._fresh, self._data = False, data
        super().data_received(data)
        self._data = b""
        if self.transport.is_closing():
            return
        if self._body:
            self._size += len(data)
            if self._size > MOST_SENT:
                message = f"request body must be at most {MOST_SENT:,} bytes on the wire"
                self._refuse(Problem(413, "payload_too_large", message))
        if not self._head:
            return
        self._size = len(data) if self._fresh else self._size + len(data)
        if self._size > MOST_HEAD and not self._fresh:
            self._refuse_head()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self._late)

    def on_message_begin(self) -> None:
        """Start of a head."""
        self._head = self._fresh = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Read a header; trailers are ignored."""
        if self._head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End of the head."""
        long = self._size + len(self._data) > MOST_HEAD and self._length() > MOST_HEAD
        self.headed()
        if self.transport.is_closing():
            return
        if long:
            self._refuse_head()
            return
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts == 1 or (not hosts and self.parser.get_http_version() == "1.0"):
            self.admit()
        else:
            message = f"a request must have exactly one Host header, got {hosts or 'none'}"
            self._refuse(Problem(400, "validation_error", message))

    def _length(self) -> int:
        """Bytes of the URL and the headers, with separators and line ends."""
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse_head(self) -> None:
        self._refuse(Problem(431, "validation_error", f"request headers must be at most {MOST_HEAD:,} bytes"))

    def admit(self) -> None:
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answering = cycle
        cycle.scope["extensions"] = {SERVER_SEND: self._send}
        if cycle.scope["http_version"] == "1.0":
            cycle.send = MethodType(_send_unchunked, cycle)
        super()._start_asgi_task(cycle, app)

    def _send(self) -> Any:
        """The `send` of the response in progress."""
        return self._answering.send

    def on_body(self, body: bytes) -> None:
        """Read a part of a body, unless its request was rejected."""
        if self.cycle is not None and not self.transport.is_closing():
            super().on_body(body)

    def headed(self) -> None:
        """The head is complete; a body follows, or nothing."""
        self._head, self._body, self._size = False, True, 0
        self._stop()

    def on_message_complete(self) -> None:
        """Wait for the next head; `timeout_keep_alive` limits that."""
        if self.cycle is not None:  # else it was rejected before
            super().on_message_complete()
        self._body, self._size = False, 0
        self._stop()

    def pause_writing(self) -> None:
        """A response is longer than what the client has read."""
        super().pause_writing()
        self._wrote()

    def _wrote(self) -> None:
        """Check later that the response is read, unless it is a stream."""
        if not self._answering.scope["path"].startswith(self._host.stream_paths):
            self._written, self.left = self._answering, -1
            self._connections.written[self] = None

    def on_response_complete(self) -> None:
        """For a while, wait for the rest of a body whose request has been answered."""
        self._wrote()
        super().on_response_complete()
        if self._body and self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(HEAD_S, self._late)

    def send_400_response(self, msg: str) -> None:
        method = _METHOD.match(self._data)
        if method is not None and isinstance(sys.exception(), HttpParserInvalidMethodError):
            self.refuse(wrong_method("this server", method[1].decode(), METHODS))
        else:
            self.refuse(Problem(400, "validation_error", f"malformed request: {msg}"))

    def _refuse(self, problem: Problem) -> None:
        """Refuse a request that was not parsed, and log it; uvicorn logs malformed ones."""
        if self.refuse(problem):
            log.refused(problem.status, problem.message, self._address)

    def refuse(self, problem: Problem) -> bool:
        """Send an error and close; if a response has started, only close. Returns whether the error was sent."""
        cycle = self.cycle
        answered = cycle is not None and cycle.response_complete and self._body
        waits = cycle is not None and cycle.more_body and not (cycle.response_started or self.pipeline)
        sent = not answered and (cycle is None or cycle.response_complete or waits)
        if sent:
            whole = refusal(problem, self._origin())
            headers = {**dict(whole.raw_headers), b"connection": b"close"}
            lines = [b"%b: %b\r\n" % pair for pair in headers.items()]
            self.transport.write(b"".join([STATUS_LINE[whole.status_code], *lines, b"\r\n", whole.body]))
        self.transport.close()
        return sent

    def _origin(self) -> str:
        """The node's address, as the client used it."""
        host, port = self.server or ("localhost", 80)
        return self._host.origin or f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def _late(self) -> None:
        self._timer = None
        if (self._head or self._body) and not self.transport.is_closing():
            self._refuse(Problem(408, "request_timeout", f"request headers did not arrive within {HEAD_S:g} s"))

    def _should_upgrade(self) -> bool:
        """Whether a request opens a WebSocket on a path that has one; others are served over HTTP.

        So is one that is sent before the response to the previous request ends.
        """
        path = self.url.partition(b"?")[0].decode("latin-1")
        return (
            path in self._host.socket_paths
            and self.parser.get_method() == b"GET"
            and self.parser.get_http_version() == "1.1"
            and (self.cycle is None or self.cycle.response_complete)
            and super()._should_upgrade()
        )

    def handle_websocket_upgrade(self) -> None:
        """Hand over the connection; it counts as open until closed."""
        if self.transport.is_closing():
            return
        self._stop()
        self._connections.written.pop(self, None)
        self._head = self._body = False
        super().handle_websocket_upgrade()
        if self._counted:
            self._counted = False
            upgraded: Any = self.transport.get_protocol()
            upgraded.release = partial(self._connections.leave, self._address)

    def _unsupported_upgrade_warning(self) -> None:
        """Respond over HTTP, and close: data after such a request cannot be parsed."""
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def connecting_to(host: Host) -> type[HttpProtocol]:
    """The protocol of the connections to a node."""
    return type("NodeProtocol", (HttpProtocol,), {"_host": host})
