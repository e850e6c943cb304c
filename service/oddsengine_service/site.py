"""What a node serves outside the API: the live page, the API reference, its documents for machines, and metrics."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from oddsengine_service.api import Api
from oddsengine_service.errors import Problem, wrong_method
from oddsengine_service.http import asyncapi, pages
from oddsengine_service.http.access import limited
from oddsengine_service.http.endpoints import NOWHERE, Answer
from oddsengine_service.http.middleware import POLICY
from oddsengine_service.http.openapi import document
from oddsengine_service.http.request import BASE, Request
from oddsengine_service.http.responses import CachedResponse, EncodedResponse, encode, page
from oddsengine_service.monitoring.metrics import CONTENT_TYPE, UNAUTHORIZED, Metrics, allowed
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.tiers import ANONYMOUS_RATE

EXAMPLES = Path(__file__).with_name("examples.json")  # responses; written by `scripts/make_examples.py`
STREAM_EXAMPLES = EXAMPLES.with_name("stream_examples.json")  # messages; by `tests/support/stream_samples.py`
_METHODS = ("GET", "HEAD")
_MOST_ROOTS = 8  # paths that the application is mounted at, whose pages are kept


class Documents(NamedTuple):
    """What describes the API; the same for every node that is mounted at one path."""

    description: CachedResponse
    streams: CachedResponse
    reference: CachedResponse


@cache
def description() -> dict[str, Any]:
    """The OpenAPI document of a node at the root of a host.

    Raises `TypeError` if an endpoint cannot be described; the message names the operation.
    """
    return document(ENDPOINTS, BASE, msgspec.json.decode(EXAMPLES.read_bytes()))


@lru_cache(maxsize=_MOST_ROOTS)
def documents(root: str) -> Documents:
    """The documents of an application that is mounted at a path."""
    described = {**description(), "servers": [{"url": root + BASE}]}
    streams = asyncapi.document(ENDPOINTS, root + BASE, msgspec.json.decode(STREAM_EXAMPLES.read_bytes()))
    return Documents(
        CachedResponse(Answer(encode(described))),
        CachedResponse(Answer(encode(streams))),
        CachedResponse(Answer(pages.reference(described).encode(), type="text/html; charset=utf-8")),
    )


class Site:
    """The pages; without `token`, metrics are not among them.

    `live` is the path from these pages to live prediction markets, if there is a choice between them and the demo.
    """

    def __init__(self, api: Api, metrics: Metrics, token: str, live: str | None = None) -> None:
        self._api, self._metrics, self._token, self._live_path = api, metrics, token, live
        self._live_pages = {"": self._live_page("")}
        documents("")  # fails at startup, with a name, if an endpoint cannot be described
        answers: dict[str, Callable[[Request], Awaitable[EncodedResponse]]] = {
            "/": self._live,
            "/openapi.json": self._described,
            "/asyncapi.json": self._streamed,
            "/docs": self._referred,
            "/metrics": self._measured,
        }
        self.apps: dict[str, ASGIApp] = {path: _Page(path, answer) for path, answer in answers.items()}

    def _live_page(self, root: str) -> pages.Live:
        return pages.live(
            root + BASE,
            "demo_enterprise" if self._api.node.demo else "",
            simulated=self._api.node.simulated,
            live="" if self._live_path is None else root + self._live_path,
        )

    def _live_at(self, root: str) -> pages.Live:
        found = self._live_pages.get(root)
        if found is None:
            if len(self._live_pages) >= _MOST_ROOTS:
                del self._live_pages[next(iter(self._live_pages))]
            found = self._live_pages[root] = self._live_page(root)
        return found

    async def _described(self, request: Request) -> EncodedResponse:
        return await self._limited(documents(request.root).description, request)

    async def _streamed(self, request: Request) -> EncodedResponse:
        return await self._limited(documents(request.root).streams, request)

    async def _referred(self, request: Request) -> EncodedResponse:
        return await self._limited(documents(request.root).reference, request)

    async def _limited(self, whole: CachedResponse, request: Request) -> EncodedResponse:
        """Serve a large document, with a limit per address."""
        room = self._api.node.limits.count_request(f"address {request.address}", ANONYMOUS_RATE)
        if not room.allowed:
            raise limited(room, "requests")
        return await run_in_threadpool(whole.sent, request.etag, request.codings)

    async def _live(self, request: Request) -> EncodedResponse:
        live = self._live_at(request.root)
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
