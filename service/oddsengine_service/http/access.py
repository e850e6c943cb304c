"""Access control: identifies the caller, and checks the key, the rate limit and the tier."""

import hmac
import time
from functools import lru_cache

from oddsengine_service.accounts.limits import Room
from oddsengine_service.errors import Problem
from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.request import Request
from oddsengine_service.http.responses import Headers
from oddsengine_service.http.v4_headers import credits_of
from oddsengine_service.node import Node
from oddsengine_service.tiers import ANONYMOUS, Caller, feature_above

FAILED_RATE = 600  # invalid keys per minute and address
_HEADERS = "X-API-Key or Authorization: Bearer"
HEALTH = "/health"  # available while the node starts, and not limited


class Access:
    """Checks requests against a node's keys and limits; if users are `signed_in` elsewhere, there are no keys."""

    def __init__(self, node: Node, *, signed_in: bool = False) -> None:
        self._node, self._signed_in = node, signed_in

    def admit(self, request: Request, endpoint: Endpoint) -> None:
        """Identify the caller and count the request; call it once per request.

        Raises
        ------
        Problem
            401, 429, 503, 403.
        """
        if request.admitted:
            return
        request.endpoint, request.admitted = endpoint, True
        caller = request.caller = self.caller(endpoint, request)
        if endpoint.path != HEALTH:
            self._count(caller, request)
            if self._node.replication.standing_by:
                raise Problem(503, "not_ready", "this node only writes the log; call a gateway")
            if not self._node.ready:
                raise Problem(503, "not_ready", "the node is starting; retry in a few seconds")
        if endpoint.key == "operator" and not self._is_operator(request):
            raise Problem(401, "unauthorized", "operator token required: Authorization: Bearer TOKEN")
        if caller.reads_only and endpoint.writes:
            raise Problem(
                403, "secret_replaced",
                "this secret was replaced by a rotation and may only read until it expires; use the new one",
            )  # fmt: skip
        if endpoint.feature and endpoint.feature not in caller.features:
            code = "feature_required" if endpoint.feature == "ev" else "tier_restricted"
            raise feature_above(endpoint.feature, caller.tier, code)

    def _is_operator(self, request: Request) -> bool:
        token = self._node.splits_token
        return bool(token) and hmac.compare_digest(request.word().encode("utf-8", "replace"), token.encode())

    def caller(self, endpoint: Endpoint, request: Request) -> Caller:
        """Identify the caller; an invalid key is rejected even if no key is needed.

        Raises
        ------
        Problem
            401; 429 for an address that sends many invalid keys.
        """
        if request.sign_in_error is not None:
            raise request.sign_in_error
        if self._signed_in and endpoint.key != "operator":
            if request.signed_in is None and endpoint.key == "needed":
                raise Problem(401, _unauthorized(request, endpoint, missing=True), "sign in first")
            return ANONYMOUS if request.signed_in is None else request.signed_in
        key = request.credential(in_query=endpoint.query_key)
        if key is None:
            if endpoint.key == "needed":
                message = f"API key required: send it as {'apiKey or ' if request.is_v4 else ''}{_HEADERS}"
                if not endpoint.query_key and request.credential(in_query=True) is not None:
                    message += f"; {endpoint.path} does not accept api_key in the query"
                raise Problem(401, _unauthorized(request, endpoint, missing=True), message)
            return ANONYMOUS
        if endpoint.key in ("none", "operator"):
            return ANONYMOUS
        found = self._find(key)
        if found is None:
            room = self._node.limits.count_request(f"failed {request.address}", FAILED_RATE)
            if not room.allowed:
                raise limited(room, "invalid keys")
            if request.is_v4 and self._node.keys.revoked(key.decode("latin-1")):
                raise Problem(401, "DEACTIVATED_KEY", "this API key was revoked")
            raise Problem(401, _unauthorized(request, endpoint), "invalid API key")
        return found

    def unrouted(self, request: Request) -> None:
        """Count a request to an unknown path, if it has a valid key."""
        key = None if self._signed_in else request.credential(in_query=False)
        found = self._find(key) if key else request.signed_in
        if found is not None:
            self._count(found, request)

    def _find(self, key: bytes) -> Caller | None:
        return self._node.keys.find(key.decode("latin-1"))

    def _count(self, caller: Caller, request: Request) -> None:
        room = self._node.limits.count_request(caller.account or f"address {request.address}", caller.rate)
        remaining = (b"x-ratelimit-remaining", b"%d" % room.remaining)
        request.headers += (*_room(room.limit, room.reset, caller.tier.delay, caller.tier.id), remaining)
        if request.is_v4:
            request.headers += credits_of(room, self._node.limits.this_month(caller.account))
        if not room.allowed:
            raise limited(room, "requests")


def limited(room: Room, what: str) -> Problem:
    """The response to a caller who has reached a limit."""
    wait = max(1, room.reset - int(time.time()))
    return Problem(
        429, "rate_limited", f"rate limit of {room.limit} {what} a minute exceeded; retry in {wait} s", retry_after=wait
    )


def _unauthorized(request: Request, endpoint: Endpoint, *, missing: bool = False) -> str:
    if request.is_v4:
        return "MISSING_KEY" if missing else "INVALID_KEY"
    return "invalid_api_key" if endpoint.path.startswith(("/stream", "/ws")) else "unauthorized"


@lru_cache(maxsize=256)
def _room(limit: int, reset: int, delay: int, tier: str) -> Headers:
    """Rate-limit headers, except the remaining number."""
    return [
        (b"x-ratelimit-limit", b"%d" % limit), (b"x-ratelimit-reset", b"%d" % reset),
        (b"x-data-delay", b"%d" % delay), (b"x-tier", tier.encode()),
    ]  # fmt: skip
