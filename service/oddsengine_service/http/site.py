"""What a node serves outside the API: the live page, the API reference, its documents for machines, and metrics."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from oddsengine_service.accounts.tiers import ANONYMOUS_RATE
from oddsengine_service.api import Api
from oddsengine_service.http import asyncapi, pages
from oddsengine_service.http.access import limited
from oddsengine_service.http.endpoints import NOWHERE, Answer
from oddsengine_service.http.middleware import POLICY
from oddsengine_service.http.openapi import document
from oddsengine_service.http.problems import Problem, wrong_method
from oddsengine_service.http.request import BASE, Request
from oddsengine_service.http.responses import CachedResponse, EncodedResponse, encode, page
from oddsengine_service.monitoring.metrics import CONTENT_TYPE, UNAUTHORIZED, Metrics, allowed
from oddsengine_service.routing import ENDPOINTS

EXAMPLES = Path(__file__).parents[1] / "examples.json"  # responses; written by `scripts/make_examples.py`
STREAM_EXAMPLES = EXAMPLES.with_name("stream_examples.json")  # messages; by `tests/support/stream_samples.py`
_METHODS = ("GET", "HEAD")
_MOST_ROOTS = 8  # paths that the application is mounted at, whose pages are kept


class Site:
    """The pages; without `token`, metrics are not among them.

    `live` is the path from these pages to live prediction markets, if there is a choice between them and the demo.
    """

    def __init__(self, api: Api, metrics: Metrics, token: str, live: str | None = None) -> None:
        self._api, self._metrics, self._token, self._live_path = api, metrics, token, live
        # Fails at startup, with a name, if an endpoint cannot be described.
        self.document = document(ENDPOINTS, BASE, msgspec.json.decode(EXAMPLES.read_bytes()))
        self._streams = msgspec.json.decode(STREAM_EXAMPLES.read_bytes())
        self.page = pages.reference(self.document)
        self._by_root = {"": self._texts("")}
        answers: dict[str, Callable[[Request], Awaitable[EncodedResponse]]] = {
            "/": self._live,
            "/openapi.json": self._described,
            "/asyncapi.json": self._streamed,
            "/docs": self._referred,
            "/metrics": self._measured,
        }
        self.apps: dict[str, ASGIApp] = {path: _Page(path, answer) for path, answer in answers.items()}

    def _texts(self, root: str) -> "_Texts":
        """The pages of an application that is mounted at a path."""
        document = {**self.document, "servers": [{"url": root + BASE}]}
        reference = pages.reference(document).encode()
        return _Texts(
            CachedResponse(Answer(encode(document))),
            CachedResponse(Answer(encode(asyncapi.document(ENDPOINTS, root + BASE, self._streams)))),
            CachedResponse(Answer(reference, type="text/html; charset=utf-8")),
            pages.live(
                root + BASE,
                "demo_enterprise" if self._api.node.demo else "",
                simulated=self._api.node.simulated,
                live="" if self._live_path is None else root + self._live_path,
            ),
        )

    def _at(self, request: Request) -> "_Texts":
        found = self._by_root.get(request.root)
        if found is None:
            if len(self._by_root) >= _MOST_ROOTS:
                del self._by_root[next(iter(self._by_root))]
            found = self._by_root[request.root] = self._texts(request.root)
        return found

    async def _described(self, request: Request) -> EncodedResponse:
        return await self._limited(self._at(request).document, request)

    async def _streamed(self, request: Request) -> EncodedResponse:
        return await self._limited(self._at(request).streams, request)

    async def _referred(self, request: Request) -> EncodedResponse:
        return await self._limited(self._at(request).reference, request)

    async def _limited(self, whole: CachedResponse, request: Request) -> EncodedResponse:
        """Serve a large document, with a limit per address."""
        room = self._api.node.limits.count_request(f"address {request.address}", ANONYMOUS_RATE)
        if not room.allowed:
            raise limited(room, "requests")
        return await run_in_threadpool(whole.sent, request.etag, request.codings)

    async def _live(self, request: Request) -> EncodedResponse:
        live = self._at(request).live
        request.headers[:] = [pair for pair in request.headers if pair[0] != POLICY]
        policy = (POLICY, live.policy.encode())
        return page("text/html; charset=utf-8", live.html.encode(), policy, (b"cache-control", b"no-cache"))

    async def _measured(self, request: Request) -> EncodedResponse:
        if not self._token:
            raise Problem(
                404, "not_found", "metrics need [service] metrics_token_env, or metrics_port for a port of their own"
            )
        if not allowed(request.received.get(b"authorization", b"").decode("latin-1"), self._token):
            raise Problem(401, "unauthorized", UNAUTHORIZED)
        return page(CONTENT_TYPE, self._metrics.text())


class _Texts(NamedTuple):
    """The pages as they are under one path."""

    document: CachedResponse
    streams: CachedResponse
    reference: CachedResponse
    live: pages.Live


class _Page:
    """One page, as an ASGI application."""

    def __init__(self, path: str, answer: Callable[[Request], Awaitable[EncodedResponse]]) -> None:
        self._endpoint, self._answer = replace(NOWHERE, path=path), answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request: Request = scope["state"]["request"]
        request.endpoint = self._endpoint
        if request.method not in _METHODS:
            raise wrong_method(request.path, request.method, _METHODS)
        response = await self._answer(request)
        await response(scope, receive, send)
