"""Every request: its id, log line and metrics, and its response: cached, from the router, or an error envelope."""

import asyncio
import hashlib
import itertools
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from starlette.types import ASGIApp, Receive, Scope, Send

from oddsengine_service.log import Log
from oddsengine_service.metrics import Metrics
from oddsengine_service.problems import INTERNAL, Problem, origin_of
from oddsengine_service.request import Request
from oddsengine_service.responses import Headers, RawResponse, json_response


class RequestMiddleware:
    """Puts a `Request` into the scope's state as `request`, and serves what `hit` returns or calls the application.

    It responds to every error raised behind it.
    """

    def __init__(
        self, app: ASGIApp, hit: Callable[[Request], RawResponse | None], base: str, log: Log, metrics: Metrics,
        trusted: Iterable[str], origin: str,
    ) -> None:  # fmt: skip
        self._app, self._hit, self._base, self._log, self._metrics = app, hit, base, log, metrics
        self.trusted, self._origin = frozenset(trusted), origin
        stem = hashlib.blake2b(f"{time.time_ns()}".encode(), digest_size=5).hexdigest().encode()
        self._ids = (b"req_%b%08x" % (stem, at) for at in itertools.count(1))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        request = self.begin(scope)
        try:
            whole = self._hit(request)
            if whole is not None:
                for message in request.messages(whole):
                    await send(message)
                return
            await self._app(scope, receive, send)
        except Problem as problem:
            if problem.__cause__ is not None:  # an internal error, reported to the caller in one sentence
                self._log.failure(request.ident, request.path, problem.__cause__)
            await self.refuse(request, problem, send)
        except ConnectionError:  # the client has disconnected
            request.status = 499
        except asyncio.CancelledError:
            request.status = 499
            raise
        except Exception as error:
            self._log.failure(request.ident, request.path, error)
            failure = Problem(500, "internal_error", INTERNAL, request_id=request.ident.decode())
            with suppress(RuntimeError):  # the response may have started
                await self.refuse(request, failure, send)
        finally:
            self.end(request)

    def begin(self, scope: Scope) -> Request:
        """Assign the request id, and put the request into the scope's state."""
        request = Request(next(self._ids), scope, self._base, self.trusted)
        scope.setdefault("state", {})["request"] = request
        return request

    def end(self, request: Request) -> None:
        """Count a request, and log it."""
        spent, route = time.perf_counter() - request.started, request.endpoint.path
        self._metrics.answered(route, request.method, request.status, spent, stream=request.streamed)
        self._log.request(
            request.ident, request.method, route, request.path, request.status, spent, request.caller, request.address
        )

    async def refuse(self, request: Request, problem: Problem, send: Send) -> None:
        """Respond with an error envelope."""
        request.streamed = False
        await request.send(send, refusal(problem, self._origin or origin_of(request.host)))


def refusal(problem: Problem, origin: str) -> RawResponse:
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
