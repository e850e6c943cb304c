"""The application: a request in, an answer out; keys, limits, ids, errors, caching and logs around every endpoint.

Everything under `/api/v1` is answered here; the rest (the document of the interface, the page) is a small Starlette
application beside it. An answer that hangs on nothing but the board's update, the request and the caller's rights is
computed once and kept until the next update; who asks for it meanwhile gets the same bytes.

Two ways lead to the same answers. Plain ASGI is one. The other, `at_once`, is for a server that has a request in whole
and can send bytes (`service.direct`): what is kept, what takes no waiting and what is refused goes out before a task is
made for it; of anything else it says so, and ASGI goes on from where it stopped.
"""

import asyncio
import hashlib
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import msgspec

from oddsengine_service.answers import NO_STORE, Answers, Kept, Whole, encode, encoded
from oddsengine_service.endpoints import Answer, Ask, Endpoint
from oddsengine_service.keys import StoreError
from oddsengine_service.log import Log
from oddsengine_service.metrics import Metrics
from oddsengine_service.node import Node
from oddsengine_service.params import parse
from oddsengine_service.problems import Problem, invalid, masked, origin_of
from oddsengine_service.request import Pairs, Request, pairs
from oddsengine_service.store import Room
from oddsengine_service.tiers import ANONYMOUS, TIERS, Caller, Tier, required

BASE = "/api/v1"
MOST_BODY = 1 << 20
BODY_S = 10.0  # a body that takes longer is given up
FAILED_RATE = 600  # wrong keys a minute and address
FEW_NAMES = 10  # that the event loop looks up
LARGE = 1 << 20  # bytes; the event loop compresses no larger body

Scope = Mapping[str, Any]
_Known = dict[Any, Kept | asyncio.Future[Kept]]
_HEALTH = "/health"  # answers also while the node starts or is busy, and however often it is asked


class Api:
    """The interface under its base path."""

    def __init__(
        self, node: Node, endpoints: Iterable[Endpoint], log: Log, metrics: Metrics, trusted: Iterable[str] = (),
        origin: str = "",
    ) -> None:  # fmt: skip
        self.node, self.log, self.metrics = node, log, metrics
        self._origin = origin
        self._trusted = frozenset(trusted)
        self._exact: dict[str, dict[str, Endpoint]] = {}
        self._patterned: list[tuple[list[str], dict[str, Endpoint]]] = []
        for endpoint in endpoints:
            if "{" not in endpoint.path:
                self._exact.setdefault(endpoint.path, {})[endpoint.method] = endpoint
                continue
            parts = endpoint.path.split("/")
            known = next((methods for pattern, methods in self._patterned if pattern == parts), None)
            if known is None:
                known = {}
                self._patterned.append((parts, known))
            known[endpoint.method] = endpoint
        self._answers = {delay: Answers() for delay in {tier.delay for tier in TIERS.values()}}
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="answer")
        self._ids = _ids()

    # ---- one request ----

    def at_once(self, path: str, query: bytes, headers: Pairs, address: str) -> tuple[Request, Whole | None]:
        """Answer a GET without a body, if that takes no waiting; else `__call__` goes on with the request."""
        request = Request(next(self._ids), "GET", path, query, headers, address, self._trusted)
        try:
            self._admit(request, path)
            kept = self._at_hand(request)
        except Problem as problem:
            whole = self._refusal(request, problem)
        except Exception as error:
            whole = self._failure(request, error)
        else:
            if kept is None or len(kept.answer.body) > LARGE:
                return request, None
            whole = kept.sent(request.etag, request.codings)
        self._tell(request, whole.status)
        return request, whole

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        request: Request | None = scope.get("state", {}).get("request")
        method = scope["method"]
        status, streamed = 500, False
        try:
            try:
                kept: Kept | None = None
                if request is None:  # no `at_once` went before
                    request = self.request(scope)
                    raw: bytes = scope.get("raw_path") or scope["path"].encode()
                    self._admit(request, raw[len(BASE) :].decode("latin-1"))
                    kept = self._at_hand(request)
                endpoint = request.endpoint
                stream = getattr(endpoint.answer, "stream", None)
                if stream is not None:
                    status, streamed = 200, method != "HEAD"
                    await stream(self, endpoint, request.caller, request, request.values, receive, send)
                    return
                body = await self._body(endpoint, request, receive) if endpoint.body is not None else None
                kept = kept or await self._answer(request, body)
                if len(kept.answer.body) > LARGE:
                    loop = asyncio.get_running_loop()
                    whole = await loop.run_in_executor(self._pool, kept.sent, request.etag, request.codings)
                else:
                    whole = kept.sent(request.etag, request.codings)
                status = whole.status
                await _send(send, whole, request, method)
            except Problem as problem:
                status, streamed = problem.status, False
                assert request is not None
                await _send(send, self._refusal(request, problem), request, method)
            except ConnectionError:  # nobody is there to be answered
                status = 499
            except asyncio.CancelledError:
                status = 499
                raise
            except Exception as error:
                assert request is not None
                failure = self._failure(request, error)
                with suppress(RuntimeError):  # the answer may have begun
                    await _send(send, failure, request, method)
        finally:
            if request is not None:
                self._tell(request, status, stream=streamed)

    def request(self, scope: Scope) -> Request:
        """Read the head of a request."""
        client = scope.get("client")
        address = client[0] if client else ""
        path = scope["path"][len(BASE) :]
        return Request(
            next(self._ids), scope["method"], path, scope["query_string"], scope["headers"], address, self._trusted
        )

    def _failure(self, request: Request, error: Exception) -> Whole:
        self.log.failure(request.ident, request.path, error)
        message = "something failed here, not in the request"
        return self._refusal(request, Problem(500, "internal_error", message, request_id=request.ident.decode()))

    def _refusal(self, request: Request, problem: Problem) -> Whole:
        if problem.__cause__ is not None:  # our failure, reported to the caller in a sentence
            self.log.failure(request.ident, request.path, problem.__cause__)
        return _refusal(problem, self._origin or origin_of(request.host))

    def _tell(self, request: Request, status: int, *, stream: bool = False) -> None:
        """Count the request, and log it."""
        spent = time.perf_counter() - request.started
        route = request.endpoint.path
        self.metrics.answered(route, request.method, status, spent, stream=stream)
        self.log.answered(
            request.ident, request.method, route, request.path, status, spent, request.caller,
            request.address,
        )  # fmt: skip

    # ---- may it be asked ----

    def _admit(self, request: Request, raw: str) -> None:
        """Find who asks for what, and whether they may; count it.

        Raises
        ------
        Problem
            404, 405, 401, 429, 503, 403.
        """
        try:
            endpoint = request.endpoint = self._find(request, raw)
        except Problem:
            self._count_unrouted(request)
            raise
        caller = self._caller(endpoint, request)
        request.caller = caller
        if endpoint.path != _HEALTH:
            self._count(caller, request)
            if not self.node.ready:
                raise Problem(503, "not_ready", "the node is starting; try again in a few seconds")
        if endpoint.feature and endpoint.feature not in caller.features:
            raise _lacking(endpoint.feature, caller)

    def _find(self, request: Request, raw: str) -> Endpoint:
        path, method = request.path, request.method
        slashed = "%2" in raw and "%2f" in raw.lower()  # part of a name, and so of a pattern
        methods = None if slashed else self._exact.get(path)
        values: dict[str, str] = {}
        if methods is None:
            parts = raw.split("/")
            for pattern, known in self._patterned:
                if len(pattern) == len(parts) and all(
                    p == q or p[:1] == "{" for p, q in zip(pattern, parts, strict=True)
                ):
                    values = {p[1:-1]: unquote(q) for p, q in zip(pattern, parts, strict=True) if p[:1] == "{"}
                    methods = known
                    if all(values.values()):
                        break
        if methods is None or not all(values.values()):
            asked = masked(path)[:100]
            raise Problem(404, "not_found", f"there is no {BASE}{asked}; /openapi.json describes what there is")
        endpoint = methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
            raise Problem(
                405,
                "method_not_allowed",
                f"{BASE}{masked(path)[:100]} takes {allowed}, got {method[:20]}",
                allow=allowed,
            )
        request.values = values
        return endpoint

    def _caller(self, endpoint: Endpoint, request: Request) -> Caller:
        """Who asks; a key that nobody has is refused also where none is needed."""
        key = request.given_key(in_query=endpoint.query_key)
        if key is None:
            if endpoint.key == "needed":
                raise Problem(
                    401, _unauthorized(endpoint), "a key is needed: send it as X-API-Key, or Authorization: Bearer"
                )
            return ANONYMOUS
        if endpoint.key == "none":
            return ANONYMOUS
        found = self._found(key)
        if found is None:
            room = self.node.limits.take(f"failed {request.address}", FAILED_RATE)
            if not room.allowed:
                raise limited(room, "wrong keys")
            raise Problem(401, _unauthorized(endpoint), "the key is not valid")
        return found

    def _found(self, key: bytes) -> Caller | None:
        try:
            return self.node.keys.find(key.decode("latin-1"))
        except StoreError as error:
            raise error.problem() from error

    def _count(self, caller: Caller, request: Request) -> None:
        room = self.node.limits.take(caller.account or f"address {request.address}", caller.rate)
        request.head += _room(room.limit, room.reset, caller.tier) % room.remaining
        if not room.allowed:
            raise limited(room, "requests")

    def _count_unrouted(self, request: Request) -> None:
        """Count a request that no endpoint takes, if its key is somebody's."""
        key = request.given_key(in_query=False)
        found = self._found(key) if key else None
        if found is not None:
            self._count(found, request)

    async def _body(self, endpoint: Endpoint, request: Request, receive: Any) -> Any:
        """Read and check a JSON body."""
        try:
            async with asyncio.timeout(BODY_S):
                raw = await _read(receive)
        except TimeoutError:
            raise Problem(408, "request_timeout", f"the body did not arrive within {BODY_S:g} s") from None
        raw = _unpacked(raw, request.coded.strip().lower())
        assert endpoint.body is not None
        try:
            return msgspec.json.decode(raw, type=endpoint.body)
        except msgspec.ValidationError as error:
            raise invalid(f"the body does not fit: {error}") from None
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise invalid(f"the body is no JSON: {error}") from None

    # ---- the answer ----

    def _place(self, request: Request) -> tuple[Answers, _Known, Any]:
        """Where an answer is kept that hangs on the board's update, and its key there."""
        endpoint, caller = request.endpoint, request.caller
        answers = self._answers[caller.tier.delay]
        known = answers.at(self.node.board(caller.tier).number)
        return answers, known, (endpoint, request.query, tuple(request.values.values()), caller.rights)

    def _at_hand(self, request: Request) -> Kept | None:
        """The answer if it is kept, or takes no waiting; None if it does."""
        endpoint = request.endpoint
        if endpoint.path == _HEALTH:  # in no queue: the workers may be busy for seconds
            return Kept(encoded(endpoint.answer(self._ask(request, None, quick=True))))
        if endpoint.body is not None or endpoint.lasts == "never":
            return None
        answers, known, key = self._place(request)
        kept = known.get(key)
        if kept is None and endpoint.quick and _names(request.query) <= FEW_NAMES:
            try:
                kept = Kept(encoded(endpoint.answer(self._ask(request, None, quick=True))))
            except BlockingIOError:
                return None
            answers.bytes += len(request.query)  # of the key, which is remembered either way
            if key in answers.asked:  # an answer that nobody asks for again is not kept
                known[key] = kept
                answers.bytes += len(kept.answer.body)
            else:
                answers.asked.add(key)
        return kept if isinstance(kept, Kept) else None

    async def _answer(self, request: Request, body: Any) -> Kept:
        """The answer: kept, being computed for somebody else, or computed now."""
        endpoint = request.endpoint
        loop = asyncio.get_running_loop()
        if endpoint.lasts == "never" or body is not None:
            answer = await loop.run_in_executor(self._pool, _computed, endpoint.answer, self._ask(request, body))
            return Kept(answer, cacheable=endpoint.method == "GET")
        answers, known, key = self._place(request)
        kept = known.get(key)
        if isinstance(kept, Kept):
            return kept
        if kept is not None:
            return await asyncio.shield(kept)
        ask = self._ask(request, body)
        future: asyncio.Future[Kept] = loop.create_future()
        known[key] = future
        try:
            made = Kept(await loop.run_in_executor(self._pool, _computed, endpoint.answer, ask))
        except BaseException as error:
            known.pop(key, None)
            if not future.done():
                future.set_exception(error if isinstance(error, Exception) else ConnectionError("given up"))
                future.exception()  # nobody may be waiting
            raise
        future.set_result(made)
        known[key] = made
        answers.bytes += len(made.answer.body) + len(request.query)
        return made

    def _ask(self, request: Request, body: Any, *, quick: bool = False) -> Ask:
        endpoint, caller = request.endpoint, request.caller
        query, ignored = parse(request.query, endpoint.by_name)
        if ignored and endpoint.query_key:
            ignored = [name for name in ignored if name != "api_key"]
        board = self.node.board(caller.tier) if self.node.ready else self.node.engine
        token = request.word() if endpoint.key == "none" else ""
        return Ask(caller, query, request.values, body, board, self.node, ignored, token, quick)


# ---- parts ----


def _ids() -> Iterator[bytes]:
    """Request ids: when the process began, and a counter."""
    stem = hashlib.blake2b(f"{time.time_ns()}".encode(), digest_size=5).hexdigest().encode()
    at = 0
    while True:
        at += 1
        yield b"req_%b%08x" % (stem, at)


def _names(query: bytes) -> int:
    """How many names a query lists, about."""
    return query.count(b",") + query.count(b"%2C") + query.count(b"%2c")


def _computed(answer: Callable[[Ask], Any], ask: Ask) -> Answer:
    return encoded(answer(ask))


def _unauthorized(endpoint: Endpoint) -> str:
    return "invalid_api_key" if endpoint.path.startswith(("/stream", "/ws")) else "unauthorized"


def limited(room: Room, what: str) -> Problem:
    """The answer to a caller who has reached a limit."""
    wait = max(1, room.reset - int(time.time()))
    return Problem(
        429, "rate_limited", f"{room.limit} {what} a minute are allowed; try again in {wait} s", retry_after=wait
    )


def _lacking(feature: str, caller: Caller) -> Problem:
    lowest = required(feature)
    code = "feature_required" if feature == "ev" else "tier_restricted"
    message = f"{feature} needs the tier {lowest.id} or higher; this key's is {caller.tier.id}"
    return Problem(403, code, message, required_tier=lowest.id)


@lru_cache(maxsize=256)
def _room(limit: int, reset: int, tier: Tier) -> bytes:
    """The header lines of a limit, all but what remains."""
    return (
        b"x-ratelimit-limit: %d\r\nx-ratelimit-reset: %d\r\nx-data-delay: %d\r\nx-tier: %b\r\n"
        b"x-ratelimit-remaining: %%d\r\n" % (limit, reset, tier.delay, tier.id.encode())
    )


async def _read(receive: Any) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the caller left")
        part = message.get("body", b"")
        size += len(part)
        if size > MOST_BODY:
            raise Problem(413, "payload_too_large", f"a body may have {MOST_BODY:,} bytes")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _unpacked(raw: bytes, coding: bytes) -> bytes:
    if coding in (b"", b"identity"):
        return raw
    if coding != b"gzip":
        raise Problem(415, "validation_error", f"content-encoding must be gzip or identity, got {coding[:40]!r}")
    unpack = zlib.decompressobj(31)
    try:
        out = unpack.decompress(raw, MOST_BODY + 1)
    except zlib.error as error:
        raise invalid(f"the body is no gzip: {error}") from None
    if len(out) > MOST_BODY or unpack.unconsumed_tail:
        raise Problem(413, "payload_too_large", f"a body may have {MOST_BODY:,} bytes")
    if not unpack.eof:
        raise invalid("the body is no whole gzip: it ends too early")
    return out


def _refusal(problem: Problem, origin: str) -> Whole:
    body = encode(problem.body(origin))
    head = b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body) + NO_STORE
    if "retry_after" in problem.extra:
        head += b"retry-after: %d\r\n" % problem.extra["retry_after"]
    if "allow" in problem.extra:
        head += b"allow: %b\r\n" % problem.extra["allow"].encode()
    if problem.status in (408, 413):  # the rest of the body is not waited for
        head += b"connection: close\r\n"
    if problem.status == 401:
        head += b'www-authenticate: Bearer realm="oddsengine"\r\n'
    return Whole(problem.status, head, body)


async def _send(send: Any, whole: Whole, request: Request, method: str) -> None:
    headers = pairs(request.head + whole.head)
    await send({"type": "http.response.start", "status": whole.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else whole.body})
