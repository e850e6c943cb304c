"""What a node serves outside the API: the live page, the API reference, the OpenAPI document and metrics."""

import threading
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from oddsengine_service import pages
from oddsengine_service.app import BASE, Api
from oddsengine_service.endpoints import Answer
from oddsengine_service.log import Log
from oddsengine_service.metrics import CONTENT_TYPE, UNAUTHORIZED, Metrics, allowed
from oddsengine_service.middleware.access import limited
from oddsengine_service.openapi import document
from oddsengine_service.problems import INTERNAL, Problem, origin_of, quoted, wrong_method
from oddsengine_service.request import Request as Head
from oddsengine_service.responses import CachedResponse, encode
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.samples import samples
from oddsengine_service.tiers import ANONYMOUS_RATE

_SECURE = (
    (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    ),
)  # fmt: skip


class Site:
    """The pages as an ASGI application; without `token`, metrics are not among them."""

    def __init__(self, api: Api, log: Log, metrics: Metrics, token: str, origin: str) -> None:
        self._api, self._log, self._metrics, self._token, self._origin = api, log, metrics, token, origin
        self._describing = threading.Lock()
        document(ENDPOINTS, BASE)  # fails at startup, with a name, if an endpoint cannot be documented
        own = [
            Route("/", self._live),
            Route("/openapi.json", partial(self._described, lambda: self._document)),
            Route("/docs", partial(self._described, lambda: self._page)),
            Route("/metrics", self._measured),
        ]
        self._app = Starlette(
            routes=own, exception_handlers={HTTPException: _refused, Problem: _problem_answer, Exception: _failed}
        )
        self._app.router.redirect_slashes = False  # it would redirect to the host that the request names

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        scope["oddsengine.origin"] = self._origin
        try:
            await self._app(scope, receive, _with_headers(send))
        except Exception as error:  # a response was already sent
            self._log.failure(b"-", scope["path"], error)

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The OpenAPI document, with examples from a fictional board."""
        return document(ENDPOINTS, BASE, samples(ENDPOINTS, partial(self._log.failure, b"(sample)")))

    @cached_property
    def _document(self) -> CachedResponse:
        return CachedResponse(Answer(encode(self.document)))

    @cached_property
    def page(self) -> str:
        return pages.reference(self.document)

    @cached_property
    def _page(self) -> CachedResponse:
        return CachedResponse(Answer(self.page.encode(), type="text/html; charset=utf-8"))

    async def _described(self, which: Callable[[], CachedResponse], request: Request) -> Response:
        """Serve a document that is generated on first use, with a limit per address."""
        head = Head(b"-", request.scope, "", self._api.requests.trusted)
        room = self._api.node.limits.take(f"address {head.address}", ANONYMOUS_RATE)
        if not room.allowed:
            raise limited(room, "requests")
        whole = (await run_in_threadpool(self._made, which)).sent(head.etag, head.codings)
        response = Response(whole.body if request.method != "HEAD" else b"", whole.status)
        response.raw_headers = list(whole.headers)
        return response

    def _made(self, which: Callable[[], CachedResponse]) -> CachedResponse:
        with self._describing:
            return which()

    @cached_property
    def live(self) -> pages.Live:
        return pages.live(BASE, "demo_enterprise" if self._api.node.demo else "")

    async def _live(self, _: Request) -> Response:
        headers = {"content-security-policy": self.live.policy, "cache-control": "no-cache"}
        return HTMLResponse(self.live.html, headers=headers)

    async def _measured(self, request: Request) -> Response:
        if not self._token:
            raise HTTPException(404, "metrics are on a listener of their own; see [service] metrics_port")
        if not allowed(request.headers.get("authorization", ""), self._token):
            raise HTTPException(401, UNAUTHORIZED)
        return Response(self._metrics.text(), headers={"content-type": CONTENT_TYPE})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status, message, path = error.status_code, str(error.detail), request.scope["path"]
    if status == 405 and error.headers is not None:
        problem = wrong_method(path, request.method, error.headers["Allow"].split(", "))
        return _problem(request, problem, {"allow": problem.extra["allow"]})
    if message == HTTPStatus(status).phrase:  # no message was given
        message = f"there is no {quoted(path)}"
    codes = {404: "not_found", 401: "unauthorized"}
    return _problem(request, Problem(status, codes.get(status, "validation_error"), message), error.headers)


async def _problem_answer(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return _problem(request, problem, {"retry-after": str(problem.extra["retry_after"])})


async def _failed(request: Request, _: Exception) -> Response:
    return _problem(request, Problem(500, "internal_error", INTERNAL))


def _problem(request: Request, problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    host = request.headers.get("host", "").encode("latin-1")
    body = problem.body(request.scope["oddsengine.origin"] or origin_of(host))
    return JSONResponse(body, problem.status, headers={**(headers or {}), "cache-control": "no-store"})


def _with_headers(send: Any) -> Any:
    async def secured(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ())]
            own = {name for name, _ in headers}
            message = {**message, "headers": [*headers, *(pair for pair in _SECURE if pair[0] not in own)]}
        await send(message)

    return secured
