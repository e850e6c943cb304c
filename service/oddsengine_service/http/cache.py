"""The response cache: responses per board version, in front of the router.

A response that depends only on the board version, the request and the caller's rights is computed once and cached until
the next update; requests in the meantime get the same bytes. Each account has a share of the bytes, so one that varies
its requests cannot evict the responses of others.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from oddsengine_service.http.access import Access
from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.request import Request
from oddsengine_service.http.responses import CachedResponse, EncodedResponse
from oddsengine_service.node import Node
from oddsengine_service.pool import Job, Pool
from oddsengine_service.tiers import TIERS

BYTES, ANSWERS = 64 << 20, 4096  # per board version
SHARE = 4  # an account may use one part in this many
_METHODS = frozenset({"GET", "HEAD"})


class _Version:
    """The responses of one board version."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.answers: dict[Any, CachedResponse | Job[CachedResponse]] = {}
        self.bytes = 0
        self.by_account: dict[str, int] = {}


class _CachedRoute(NamedTuple):
    """The route of a path with a query."""

    endpoint: Endpoint
    values: Mapping[str, str]


class Cache:
    """Responses of every board."""

    def __init__(self, node: Node, access: Access, pool: Pool) -> None:
        self._node, self._access, self._pool = node, access, pool
        self._versions = {delay: _Version(-1) for delay in {tier.delay for tier in TIERS.values()}}
        self._places: dict[tuple[bytes, bytes], _CachedRoute] = {}

    def hit(self, request: Request) -> EncodedResponse | None:
        """The response, if the path and query were routed before, and one is cached for the caller's rights.

        A request with a body is never answered here, since the body may be refused.

        Raises
        ------
        Problem
            As `Access.admit`.
        """
        place = self._places.get((request.raw, request.query))
        if place is None or request.method not in _METHODS or request.has_body:
            return None
        request.values = place.values
        self._access.admit(request, place.endpoint)
        kept = self._version(request).answers.get(_key(request))
        whole = kept.at_hand(request.etag, request.codings) if isinstance(kept, CachedResponse) else None
        if whole is not None:
            self._pool.note(request.account)
        return whole

    async def answer(
        self, request: Request, make: Callable[[], CachedResponse | Job[CachedResponse]]
    ) -> CachedResponse:
        """The response: cached, being computed for another caller, or computed now."""
        version, key = self._version(request), _key(request)
        kept = version.answers.get(key)
        if isinstance(kept, CachedResponse):
            return kept
        if kept is not None:
            self._pool.join(request.account, kept)
            return await asyncio.shield(kept.done)
        made = make()
        if isinstance(made, CachedResponse):
            self._keep(version, request, key, made)
            return made
        version.answers[key] = made
        made.done.add_done_callback(partial(self._made, version, request, key))
        return await asyncio.shield(made.done)  # others may wait for it too

    def _made(self, version: _Version, request: Request, key: Any, done: "asyncio.Future[CachedResponse]") -> None:
        if done.cancelled() or done.exception() is not None:
            version.answers.pop(key, None)
        else:
            self._keep(version, request, key, done.result())

    def _keep(self, version: _Version, request: Request, key: Any, made: CachedResponse) -> None:
        size = len(made.answer.body) + len(request.query)
        account = request.account
        used = version.by_account.get(account, 0) + size
        if used > BYTES // SHARE or len(version.answers) > ANSWERS:
            version.answers.pop(key, None)
            return
        version.answers[key] = made
        version.by_account[account] = used
        version.bytes += size
        self._places[request.raw, request.query] = _CachedRoute(request.endpoint, request.values)

    def _version(self, request: Request) -> _Version:
        """The responses of the caller's board now; older versions are dropped."""
        tier = request.caller.tier
        version, number = self._versions[tier.delay], self._node.boards.of(tier).number
        if version.number != number or version.bytes > BYTES:
            version = self._versions[tier.delay] = _Version(number)
            if len(self._places) > ANSWERS or not tier.delay:
                self._places = {}
        return version


def _key(request: Request) -> Any:
    """The cache key: equal for requests with equal responses. No key and a free key are different callers."""
    caller = request.caller
    return request.raw, request.query, caller.tier.id, caller.features, bool(caller.key)
