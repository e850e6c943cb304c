"""One request: its request line and headers, parsed once, and what is determined while it is handled."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from types import MappingProxyType
from urllib.parse import unquote

from starlette.types import Receive, Scope

from oddsengine_service.errors import Problem
from oddsengine_service.http.endpoints import NOWHERE, Endpoint
from oddsengine_service.http.responses import Headers
from oddsengine_service.tiers import ANONYMOUS, Caller

BASE = "/api/v1"
V4 = "/v4"  # not below the base path
BODY_S = 10.0  # timeout of a body
_UNDER, _UNDER_V4 = f"{BASE}/", f"{V4}/"


class Request:
    """One request or WebSocket; `headers` are added to its response, whatever it is."""

    status = 500
    streamed = admitted = False
    endpoint: Endpoint = NOWHERE
    caller: Caller = ANONYMOUS
    signed_in: Caller | None = None  # by the application that has the node in it
    sign_in_error: Exception | None = None  # of that application
    values: Mapping[str, str] = MappingProxyType({})  # path parameters

    def __init__(self, ident: bytes, scope: Scope, trusted: frozenset[str]) -> None:
        self.started = time.perf_counter()
        client = scope.get("client")
        address: str = client[0] if client else ""
        self.ident, self.address = ident, address
        self.method: str = scope.get("method", "GET")
        if scope.get("type") == "websocket":
            self.status = 404  # unless it is routed
        path: str = scope["path"]
        self.raw: bytes = scope.get("raw_path") or path.encode()  # as received
        self.root: str = scope.get("root_path", "")  # where the application is mounted
        if self.root and path.startswith(f"{self.root}/"):  # else a proxy has removed it
            path = path[len(self.root) :]
            self.raw = b"/" + self.raw.split(b"/", self.root.count("/") + 1)[-1]  # escaped in any way
        if path == BASE:
            path, self.raw = _UNDER, self.raw + b"/"
        self.is_v4 = path.startswith(_UNDER_V4)
        self._v4_key, self.query = b"", scope["query_string"]
        if self.is_v4:  # some clients put a slash at the end; the key is no part of what the response depends on
            path, self.raw = path.rstrip("/"), self.raw.rstrip(b"/")
            self._v4_key, self.query = _without_key(self.query)
        self.whole = path  # decoded
        self.is_api = self.is_v4 or path.startswith(_UNDER)
        self.path = path[len(BASE) :] if path.startswith(_UNDER) else path  # below the base path
        self.headers: Headers = [(b"x-request-id", ident)]
        pairs = scope["headers"]
        given: dict[bytes, bytes] = dict(pairs)  # the last of each name
        self.received = given
        self.etag = given.get(b"if-none-match", b"")
        codings = given.get(b"accept-encoding", b"")
        self.codings = (codings if len(given) == len(pairs) else _list(b"accept-encoding", pairs))[:200]
        if b"x-forwarded-for" in given and address in trusted:
            self.address = _forwarded(_list(b"x-forwarded-for", pairs).decode("latin-1"), address, trusted)

    @property
    def has_body(self) -> bool:
        """Whether a body follows, by its headers."""
        return self.received.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.received

    @property
    def host(self) -> bytes:
        return self.received.get(b"host", b"")

    @property
    def account(self) -> str:
        """The account that resources are charged to; without a key, the address."""
        return self.caller.account or self.address

    def word(self) -> str:
        """Bearer token of an operator."""
        return bearer(self.received.get(b"authorization", b"")).decode("latin-1")

    def credential(self, *, in_query: bool) -> bytes | None:
        """The key: `X-API-Key`, a bearer token, or `api_key` in the query if allowed; empty ones count as missing.

        Below `/v4` it is `apiKey` in the query.

        An `Authorization` header of another scheme is ignored; it may be for a proxy.
        """
        if key := self.received.get(b"x-api-key") or bearer(self.received.get(b"authorization", b"")):
            return key
        if self.is_v4:
            return self._v4_key or None
        return _query_key(self.query) or None if in_query and b"api_key=" in self.query else None


async def read_body(receive: Receive, most: int, what: str) -> bytes:
    """Read the body of a request.

    Raises `Problem` 413 if it is longer than `most` bytes, 408 if it takes longer than `BODY_S`.
    """
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionError("the client disconnected")
                part = message.get("body", b"")
                size += len(part)
                if size > most:
                    raise Problem(413, "payload_too_large", f"{what} must be at most {most:,} bytes")
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Problem(408, "request_timeout", f"{what} did not arrive within {BODY_S:g} s") from None


def _list(name: bytes, pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The value of a header that is a list, which may be divided among several lines."""
    return b",".join(value for each, value in pairs if each == name)


def _forwarded(hops: str, address: str, trusted: frozenset[str]) -> str:
    """The client of the last trusted proxy; earlier entries of the header may be forged.

    Examples
    --------
    >>> proxies = frozenset({"10.0.0.1", "10.0.0.2"})
    >>> _forwarded("198.51.100.1, 203.0.113.7:4711, 10.0.0.2", "10.0.0.1", proxies)
    '203.0.113.7'
    >>> _forwarded("203.0.113.7, [2001:DB8::1]:443", "10.0.0.1", proxies), _forwarded("x", "10.0.0.1", proxies)
    ('2001:db8::1', '10.0.0.1')
    """
    for hop in reversed(hops.split(",")):
        text = hop.strip()
        if text.startswith("["):
            text = text[1:].partition("]")[0]
        elif text.count(":") == 1:
            text = text.partition(":")[0]
        try:
            address = str(ip_address(text.partition("%")[0]))
        except ValueError:
            return address
        if address not in trusted:
            return address
    return address


def bearer(value: bytes) -> bytes:
    """The bearer token of an Authorization header; empty for another scheme."""
    return value.partition(b" ")[2].strip() if _scheme(value) == b"bearer" else b""


def _scheme(value: bytes) -> bytes:
    return value.partition(b" ")[0].lower()


def _query_key(query: bytes) -> bytes:
    for part in query.split(b"&"):
        if part.startswith(b"api_key="):
            return unquote(part[8:].decode("latin-1")).encode("latin-1", "replace")
    return b""


def _without_key(query: bytes) -> tuple[bytes, bytes]:
    """Split a query into its last `apiKey` and the rest.

    Examples
    --------
    >>> _without_key(b"regions=us&apiKey=oe%5F1&markets=h2h"), _without_key(b"all=true")
    ((b'oe_1', b'regions=us&markets=h2h'), (b'', b'all=true'))
    """
    if b"apiKey=" not in query:
        return b"", query
    parts = query.split(b"&")
    keys = [unquote(part[7:].decode("latin-1")) for part in parts if part.startswith(b"apiKey=")]
    rest = b"&".join(part for part in parts if not part.startswith(b"apiKey="))
    return (keys[-1].encode("latin-1", "replace") if keys else b""), rest
