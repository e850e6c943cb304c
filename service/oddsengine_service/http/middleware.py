"""Every request: its id, log line and metrics, and an error envelope if it fails."""

import asyncio
import hashlib
import itertools
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oddsengine_service.errors import INTERNAL, Problem, origin_of
from oddsengine_service.http.cache import Cache
from oddsengine_service.http.request import Request
from oddsengine_service.http.responses import EncodedResponse, Headers, json_response
from oddsengine_service.http.v4_errors import v4_problem
from oddsengine_service.http.v4_headers import credits_of
from oddsengine_service.monitoring import log
from oddsengine_service.monitoring.metrics import Metrics
from oddsengine_service.tiers import Account

Authenticate = Callable[[Scope], Account | None]
POLICY = b"content-security-policy"
_SECURE: Headers = [  # outside the API
    (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
    (POLICY, b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"),
]  # fmt: skip


class RequestLog:
    """Assigns ids to requests, and logs, counts and times them."""

    def __init__(self, metrics: Metrics, trusted: Iterable[str] = ()) -> None:
        self._metrics = metrics
        self.trusted = frozenset(trusted)  # proxies whose X-Forwarded-For counts
        stem = hashlib.blake2b(f"{time.time_ns()}".encode(), digest_size=5).hexdigest().encode()
        self._ids = (b"req_%b%08x" % (stem, at) for at in itertools.count(1))

    def begin(self, scope: Scope) -> Request:
        """Assign the request id, and put the request into the scope's state."""
        request = Request(next(self._ids), scope, self.trusted)
        if not request.is_api:
            request.headers += _SECURE
        scope.setdefault("state", {})["request"] = request
        return request

    def end(self, request: Request) -> None:
        """Count a request, and log it."""
        spent, route = time.perf_counter() - request.started, request.endpoint.path
        self._metrics.answered(route, request.method, request.status, spent, stream=request.streamed)
        log.request(
            request.ident, request.method, route, request.path, request.status, spent, request.caller, request.address
        )


class Requests:
    """Middleware that puts a `Request` into the state of the scope, and logs and counts it at its end.

    With `authenticate`, that says whose request it is, and keys do not count.
    """

    def __init__(self, app: ASGIApp, requests: RequestLog, authenticate: Authenticate | None = None) -> None:
        self._app, self._requests, self._authenticate = app, requests, authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request or a WebSocket."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = self._requests.begin(scope)
        if self._authenticate is not None:
            self._sign_in(request, scope, self._authenticate)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                message["headers"] = [*request.headers, *message["headers"]]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            request.status = 499
            raise
        finally:
            self._requests.end(request)

    @staticmethod
    def _sign_in(request: Request, scope: Scope, authenticate: Authenticate) -> None:
        """Find out whose request it is; an error is raised where access is checked, as all others are."""
        try:
            account = authenticate(scope)
            request.signed_in = None if account is None else account.caller()
        except Exception as error:
            request.sign_in_error = error


class Errors:
    """Middleware that responds to every error raised behind it; `origin` is the node's address, if it is known."""

    def __init__(self, app: ASGIApp, origin: str) -> None:
        self._app, self._origin = app, origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request: Request = scope["state"]["request"]
        try:
            await self._app(scope, receive, send)
        except Problem as problem:
            if problem.__cause__ is not None:  # an internal error, reported to the caller in one sentence
                log.failure(request.ident, request.path, problem.__cause__)
            try:
                await self._refuse(problem, scope, receive, send)
            except RuntimeError:  # the response has started
                log.failure(request.ident, request.path, problem)
        except ConnectionError:  # the client has disconnected
            request.status = 499
        except Exception as error:
            log.failure(request.ident, request.path, error)
            failure = Problem(500, "internal_error", INTERNAL, request_id=request.ident.decode())
            with suppress(RuntimeError):  # the response may have started
                await self._refuse(failure, scope, receive, send)

    async def _refuse(self, problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
        request: Request = scope["state"]["request"]
        request.streamed = False
        if request.is_v4:
            problem = v4_problem(problem)
            if not any(name == b"x-requests-used" for name, _ in request.headers):
                request.headers += credits_of(None, 0)
        response = refusal(problem, self._origin or origin_of(request.host) + request.root)
        await response(scope, receive, send)


class ResponseCache:
    """Middleware that serves cached responses in front of the router."""

    def __init__(self, app: ASGIApp, cache: Cache) -> None:
        self._app, self._cache = app, cache

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            response = self._cache.hit(scope["state"]["request"])
            if response is not None:
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


def refusal(problem: Problem, origin: str) -> EncodedResponse:
    """A problem as a response."""
    headers: Headers = []
    if "retry_after" in problem.extra:
        headers.append((b"retry-after", b"%d" % problem.extra["retry_after"]))
    if "allow" in problem.extra:
        headers.append((b"allow", problem.extra["allow"].encode()))
    if problem.status == 426:
        headers += [(b"upgrade", b"websocket"), (b"connection", b"upgrade")]
    if problem.status in (408, 413):  # the rest of the body is not read
        headers.append((b"connection", b"close"))
    if problem.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="oddsengine"'))
    return json_response(problem.status, problem.body(origin), *headers)
