"""Answers that leave before a task is made for their request.

A connection has most requests in one piece, and most of them want what is kept. Such a GET is handed to the application
as a call that returns bytes (`at_once`), and they are written; whatever else comes, and whatever `at_once` has no bytes
for, takes the way of ASGI. Order is kept: only a request that no other one stands before is answered so.
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from oddsengine_service.app import BASE
from oddsengine_service.protocol import Protocol

AT_ONCE = 16  # requests of one piece; then other connections have their turn
_STATUS = dict(STATUS_LINE)
_ROOT = BASE.encode() + b"/"
_SLOW = frozenset({b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"origin"})  # Origin: `cors` answers


def _slow(header: tuple[bytes, bytes]) -> bool:
    """Whether a header asks for more than an answer."""
    name, value = header
    return name in _SLOW or (name == b"connection" and value.lower() != b"keep-alive")


class Direct(Protocol):
    """One connection."""

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        self._at_once = getattr(self.app, "at_once", None)
        self._left = AT_ONCE

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._left = AT_ONCE
        super().data_received(data)

    def admit(self) -> None:
        """Answer now what can be."""
        if not self._answered():
            self._unset_keepalive_if_required()  # an answer before it, in the same piece, set it
            super().admit()

    def _answered(self) -> bool:
        url, cycle = self.url, self.cycle
        if (
            self._at_once is None
            or not self._left
            or not url.startswith(_ROOT)
            or b"%" in url.partition(b"?")[0]
            or b"#" in url
            or (cycle is not None and not cycle.response_complete)
            or self.flow.write_paused
            or self.parser.get_method() != b"GET"
            or self.parser.get_http_version() != "1.1"
            or any(map(_slow, self.headers))
        ):
            return False
        path, _, query = url.partition(b"?")
        request, whole = self._at_once(
            path[len(BASE) :].decode("ascii"), query, self.headers, self.client[0] if self.client else ""
        )
        if whole is None:
            self.scope["state"]["request"] = request
            return False
        self._left -= 1
        date = b"".join(b"%b: %b\r\n" % pair for pair in self.server_state.default_headers)
        head = b"%b%b%b%b\r\n" % (_STATUS[whole.status], date, request.head, whole.head)
        self.transport.write(head)
        if whole.body:
            self.transport.write(whole.body)
        HttpToolsProtocol.on_response_complete(self)  # there is no body to wait for
        return True
