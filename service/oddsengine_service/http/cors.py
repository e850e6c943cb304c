"""Origins: which web pages may call the API from a browser, and which headers they may read.

CORS does not apply to WebSockets and tools, so these check the origin themselves (`Origins`).
"""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from oddsengine_service.errors import Problem, origin_of
from oddsengine_service.monitoring.metrics import METHODS

REQUEST_HEADERS = ("X-API-Key", "Authorization", "Content-Type", "If-None-Match", "Last-Event-ID")
EXPOSED = (
    "ETag", "Retry-After", "Warning", "X-Data-Delay", "X-Deep-Link-Type", "X-Next-Cursor", "X-Next-Offset",
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id", "X-Requests-Last",
    "X-Requests-Remaining", "X-Requests-Used", "X-Tier", "X-Total-Count",
)  # fmt: skip


class Cors(CORSMiddleware):
    """Starlette's middleware with the headers of this API; a rejected preflight gets the error envelope."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...], address: str) -> None:
        super().__init__(app, origins, METHODS, REQUEST_HEADERS, expose_headers=EXPOSED)
        self._address = address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; one without an origin is not from a web page."""
        if scope["type"] == "http" and b"origin" in scope["state"]["request"].received:
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def preflight_response(self, request_headers: Headers) -> Response:
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        problem = Problem(response.status_code, "validation_error", bytes(response.body).decode())
        origin = self._address or origin_of(request_headers.get("host", "").encode("latin-1"))
        headers: dict[str, Any] = {n: v for n, v in response.headers.items() if not n.startswith("content-")}
        return JSONResponse(problem.body(origin), response.status_code, headers=headers)


class Origins:
    """The origins that the operator allows, and the node's own.

    The node's own origin is that of the `Host` header, which a web page can choose, by a name that leads to the node's
    address. A node that is `local` is only called by names of this machine, or as `address` says.
    """

    def __init__(self, allowed: Iterable[str], address: str = "", *, local: bool = False) -> None:
        self._allowed, self._address = frozenset(allowed), address.rstrip("/")
        self._local = local

    def allow(self, headers: Iterable[tuple[bytes, bytes]], host: bytes) -> bool:
        """Whether a request comes from an allowed origin, or not from a web page at all."""
        if self._local and not self._is_local(origin_of(host)):
            return False
        origin = next((value.decode("latin-1") for name, value in headers if name == b"origin"), None)
        if origin is None or "*" in self._allowed or origin in self._allowed:
            return True
        here = origin_of(host)
        return origin in {here, here.replace("http://", "https://", 1), self._address}

    def _is_local(self, here: str) -> bool:
        try:
            name = urlsplit(here).hostname or ""
        except ValueError:  # no address is written like that
            return False
        return is_loopback(name) or name == urlsplit(self._address).hostname


def is_loopback(host: str) -> bool:
    """Whether an address is reachable only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
