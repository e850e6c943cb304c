"""What a node serves outside the API: the live page, the API reference, the OpenAPI document and metrics."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from oddsengine_service import pages
from oddsengine_service.app import BASE, Api
from oddsengine_service.endpoints import NOWHERE, Answer
from oddsengine_service.log import Log
from oddsengine_service.metrics import CONTENT_TYPE, UNAUTHORIZED, Metrics, allowed
from oddsengine_service.middleware.access import limited
from oddsengine_service.middleware.requests import RequestMiddleware
from oddsengine_service.openapi import document
from oddsengine_service.problems import Problem, no_such_path, wrong_method
from oddsengine_service.request import Request
from oddsengine_service.responses import CachedResponse, Header, RawResponse, encode
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.tiers import ANONYMOUS_RATE

EXAMPLES = Path(__file__).with_name("examples.json")  # responses; written by `scripts/make_examples.py`
_METHODS = ("GET", "HEAD")
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
        self._api, self._log, self._metrics, self._token = api, log, metrics, token
        self.requests = RequestMiddleware(self._serve, lambda _: None, "", log, metrics, api.requests.trusted, origin)
        # Fails at startup, with a name, if an endpoint cannot be described.
        self.document = document(ENDPOINTS, BASE, msgspec.json.decode(EXAMPLES.read_bytes()))
        self.page = pages.reference(self.document)
        described = CachedResponse(Answer(encode(self.document)))
        reference = CachedResponse(Answer(self.page.encode(), type="text/html; charset=utf-8"))
        self._pages: dict[str, Callable[[Request], Awaitable[RawResponse]]] = {
            "/": self._live, "/openapi.json": partial(self._described, described),
            "/docs": partial(self._described, reference), "/metrics": self._measured,
        }  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.requests(scope, receive, send)

    async def _serve(self, scope: Scope, _: Receive, send: Send) -> None:
        """Answer a request."""
        request: Request = scope["state"]["request"]
        request.headers += _SECURE
        whole = await self._answer(request)
        own = {name for name, _ in whole.headers}
        request.headers = [pair for pair in request.headers if pair[0] not in own]
        await request.send(send, whole)

    async def _answer(self, request: Request) -> RawResponse:
        page = self._pages.get(request.path)
        if page is None:
            raise no_such_path(request.path, "/docs")
        request.endpoint = replace(NOWHERE, path=request.path)
        if request.method not in _METHODS:
            raise wrong_method(request.path, request.method, _METHODS)
        return await page(request)

    async def _described(self, whole: CachedResponse, request: Request) -> RawResponse:
        """Serve a large document, with a limit per address."""
        room = self._api.node.limits.count_request(f"address {request.address}", ANONYMOUS_RATE)
        if not room.allowed:
            raise limited(room, "requests")
        return await run_in_threadpool(whole.sent, request.etag, request.codings)

    @cached_property
    def live(self) -> pages.Live:
        return pages.live(BASE, "demo_enterprise" if self._api.node.demo else "")

    async def _live(self, _: Request) -> RawResponse:
        policy = (b"content-security-policy", self.live.policy.encode())
        return _page("text/html; charset=utf-8", self.live.html.encode(), policy, (b"cache-control", b"no-cache"))

    async def _measured(self, request: Request) -> RawResponse:
        if not self._token:
            raise Problem(404, "not_found", "metrics are served on a separate port; see [service] metrics_port")
        if not allowed(request.received.get(b"authorization", b"").decode("latin-1"), self._token):
            raise Problem(401, "unauthorized", UNAUTHORIZED)
        return _page(CONTENT_TYPE, self._metrics.text())


def _page(kind: str, body: bytes, *headers: Header) -> RawResponse:
    return RawResponse(200, [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), *headers], body)
