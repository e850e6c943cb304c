"""What all endpoints share, and how a request to one becomes a response.

A method of a path checks access, reads the body, and has the response computed by a thread of the pool; streams are
served on the event loop.
"""

import time
from collections.abc import Hashable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from starlette.types import Receive, Scope, Send

from oddsengine_service.errors import invalid, quoted, wrong_method
from oddsengine_service.http.access import HEALTH, Access
from oddsengine_service.http.bodies import body_of, refuse_body
from oddsengine_service.http.cache import Cache
from oddsengine_service.http.endpoints import Answer, Context, Endpoint, Targets
from oddsengine_service.http.middleware import Authenticate, RequestLog
from oddsengine_service.http.params import parse
from oddsengine_service.http.request import V4, Request
from oddsengine_service.http.responses import CachedResponse, warning_of
from oddsengine_service.monitoring.metrics import Metrics
from oddsengine_service.node import Node
from oddsengine_service.pool import OutgoingPool, Pool
from oddsengine_service.stream.stream_hub import StreamHub

HEALTH_RATE = 50  # computed per second; beyond it the last response is reused


class Api:
    """What all endpoints share: access, caches and threads."""

    def __init__(
        self, node: Node, endpoints: Iterable[Endpoint], metrics: Metrics, trusted: Iterable[str] = (),
        authenticate: Authenticate | None = None, targets: Targets | None = None, *, strict: bool = False,
    ) -> None:  # fmt: skip
        self.node = node
        self._strict = strict
        self.authenticate, self.targets = authenticate, targets
        self.access = Access(node, signed_in=authenticate is not None)
        self.pool, self.outgoing = Pool(), OutgoingPool()
        self.routes: dict[str, Methods] = {}  # by path
        for endpoint in endpoints:
            self.routes.setdefault(endpoint.path, Methods(self)).endpoints[endpoint.method] = endpoint
        self.cache = Cache(node, self.access, self.pool)
        self.requests = RequestLog(metrics, trusted)
        self.hub: StreamHub | None = None  # once there was a subscriber
        self._last_health: CachedResponse | None = None
        self._second = self._computed = 0

    def streams(self) -> StreamHub:
        """All streams; created on first use, in the event loop."""
        if self.hub is None:
            node = self.node
            self.hub = StreamHub(node, node.boards.index(node.engine), **node.stream_settings)
            node.games.listen(self.hub.games)
        return self.hub

    async def answer(self, request: Request, receive: Receive) -> CachedResponse:
        endpoint = request.endpoint
        body = await body_of(endpoint, request, receive) if endpoint.body is not None else None
        if endpoint.path == HEALTH:  # not queued: the threads may be busy for seconds
            return self._health(request)

        if endpoint.cache == "records" and endpoint.method == "GET":
            await self.node.replication.records.records_current()
        context, account = self.context(request, body), request.account
        if endpoint.cache == "records" and endpoint.method != "GET":
            answer = await self.node.replication.records.forward(endpoint, context)
            if answer is not None:
                return CachedResponse(_warned(answer, context), cacheable=False)

        def computed() -> CachedResponse:
            response = CachedResponse(_warned(endpoint.response(context), context), cacheable=endpoint.method == "GET")
            response.sent(request.etag, request.codings)  # compressed here, not on the event loop
            return response

        if endpoint.outgoing:
            return await self.outgoing.run(account, computed)
        if not endpoint.cacheable or body is not None:
            return await self.pool.run(account, computed)
        kind = _job_kind(context, request)
        return await self.cache.answer(
            request, lambda: self.pool.run_here(account, computed, kind) or self.pool.submit(account, computed, kind)
        )

    def _health(self, request: Request) -> CachedResponse:
        """Return the node's health, cached for a moment."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._computed = second, 0
        if self._last_health is None or self._computed < HEALTH_RATE:
            self._computed += 1
            self._last_health = CachedResponse(request.endpoint.response(self.context(request)))
        return self._last_health

    def context(self, request: Request, body: Any = None) -> Context:
        """Build the context of a request. Raises `Problem` 400 if a parameter is not valid."""
        endpoint, caller, node = request.endpoint, request.caller, self.node
        query, ignored = parse(request.query, endpoint.query)
        if ignored and endpoint.query_key:
            ignored = [name for name in ignored if name != "api_key"]
        if not endpoint.path.startswith(V4):  # which ignores what it does not know, as others do
            self.refuse(ignored, endpoint.query.declared)
        board = node.boards.of(caller.tier) if node.ready else node.engine
        return Context(caller, query, request.values, body, board, node, ignored, request.root, self.targets)

    def refuse(self, ignored: Sequence[str], known: Iterable[str]) -> None:
        """Raise `Problem` 400 if parameters are ignored and this node is strict about them."""
        if ignored and self._strict:
            near = get_close_matches(ignored[0], [*known], 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            allowed = ", ".join(sorted(known)) or "none"
            raise invalid(f"{quoted(ignored[0])} is not a parameter of this request{hint} (allowed: {allowed})")


def _warned(answer: Answer, context: Context) -> Answer:
    """A response with the header that names parameters that are ignored."""
    if not context.ignored:
        return answer
    return answer._replace(headers=(*answer.headers, ("warning", warning_of(context.ignored))))


def _job_kind(context: Context, request: Request) -> Hashable:
    """The kind of a request's job for the pool: the board's version, the rights, and what the endpoint says."""
    endpoint, caller = request.endpoint, context.caller
    kind = None if endpoint.job_kind is None else endpoint.job_kind(context)
    if kind is None:
        return None
    return endpoint.path, context.board.number, caller.tier.id, caller.features, request.codings, kind


class Methods:
    """The methods of one path, as an ASGI application."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.endpoints: dict[str, Endpoint] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        request: Request = scope["state"]["request"]
        endpoint = self.endpoints.get("GET" if request.method == "HEAD" else request.method)
        if endpoint is None:
            self._api.access.unrouted(request)
            raise wrong_method(
                request.whole, request.method, {*self.endpoints, *(["HEAD"] * ("GET" in self.endpoints))}
            )
        request.values = scope["path_params"]
        self._api.access.admit(request, endpoint)
        if endpoint.body is None and request.has_body:
            await refuse_body(endpoint, request, receive)
        if endpoint.stream is not None:
            request.streamed = request.method != "HEAD"
            await endpoint.stream(self._api, request, scope, receive, send)
            return
        answer = await self._api.answer(request, receive)
        response = answer.at_hand(request.etag, request.codings)
        if response is None:
            response = await self._api.pool.run(request.account, lambda: answer.sent(request.etag, request.codings))
        await response(scope, receive, send)
