"""The application: a request in, an answer out; keys, limits, ids, errors, caching and logs around every endpoint.

Everything under `/api/v1` is answered here, by plain ASGI; the rest (the document of the interface, the page) is a
small Starlette application beside it. An answer that hangs on nothing but the board's update, the request and the
caller's rights is computed once and kept until the next update; who asks for it meanwhile gets the same bytes.
"""

import asyncio
import gzip
import hashlib
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import msgspec
import zstandard

from service.endpoints import Answer, Ask, Caller, Endpoint
from service.log import Log, masked
from service.metrics import Metrics
from service.node import Node
from service.params import parse
from service.problems import Problem, invalid
from service.store import Room
from service.tiers import ANONYMOUS_RATE, TIERS, required

BASE = "/api/v1"
MOST_BODY = 1 << 20
BODY_S = 10.0  # a body that takes longer is given up
FAILED_RATE = 600  # wrong keys a minute and address
CODINGS = ("zstd", "gzip")  # of bodies, the best one first
SMALL = 1024  # bytes; smaller bodies are not compressed
KEPT, KEPT_BYTES = 4096, 64 << 20  # answers of one update
ANONYMOUS = Caller("", "", TIERS["free"], ANONYMOUS_RATE, 0, TIERS["free"].features)

Scope = Mapping[str, Any]
Headers = list[tuple[bytes, bytes]]
_encode = msgspec.json.Encoder().encode
_HEALTH = "/health"  # answers also while the node starts, and however often it is asked
_no_store = (b"cache-control", b"no-store")
_close = (b"connection", b"close")
_revalidate = (b"cache-control", b"private, no-cache")
_vary = (b"vary", b"Accept-Encoding, X-API-Key, Authorization")


class Kept:
    """An encoded answer, and its other encodings once somebody asked for them."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.etag = b'"%s"' % hashlib.blake2b(answer.body, digest_size=12).hexdigest().encode()
        self._packed: dict[str, bytes] = {}
        self.tags = frozenset(self.tag(coding) for coding in ("", *CODINGS))

    def tag(self, coding: str) -> bytes:
        """The validator of the body in a coding: other bytes, another one."""
        return b'%s-%s"' % (self.etag[:-1], coding.encode()) if coding else self.etag

    def packed(self, coding: str) -> bytes:
        """The body in a coding."""
        body = self._packed.get(coding)
        if body is None:
            pack = _zstd if coding == "zstd" else _gzip
            body = self._packed[coding] = pack(self.answer.body)
        return body


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, 5, mtime=0)


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(3).compress(body)


class Answers:
    """Answers of one update of one board."""

    def __init__(self) -> None:
        self.number = -1
        self.known: dict[Any, Kept | asyncio.Future[Kept]] = {}
        self.bytes = 0

    def at(self, number: int) -> dict[Any, Kept | asyncio.Future[Kept]]:
        """Those of an update; older ones are forgotten."""
        if number != self.number or len(self.known) > KEPT or self.bytes > KEPT_BYTES:
            self.number, self.known, self.bytes = number, {}, 0
        return self.known


class Request:
    """What the headers of a request say, read once."""

    __slots__ = (
        "address", "bearer", "codings", "etag", "headers", "key", "last_event", "length", "method", "query", "started",
    )  # fmt: skip

    def __init__(self, scope: Scope, trusted: frozenset[str]) -> None:
        self.started = time.perf_counter()
        self.query: bytes = scope["query_string"]
        self.method: str = scope["method"]
        self.key: bytes | None = None
        self.bearer: bytes | None = None
        self.etag = self.codings = b""
        self.last_event: bytes | None = None
        self.length = 0
        self.headers: Headers = []
        forwarded = b""
        for name, value in scope["headers"]:
            if name == b"x-api-key":
                self.key = value
            elif name == b"authorization":
                self.bearer = value
            elif name == b"if-none-match":
                self.etag = value
            elif name == b"accept-encoding":
                self.codings = value[:200]
            elif name == b"last-event-id":
                self.last_event = value
            elif name == b"x-forwarded-for":
                forwarded = value
        client = scope.get("client")
        self.address = client[0] if client else ""
        if forwarded and self.address in trusted:
            self.address = forwarded.rsplit(b",", 1)[-1].strip().decode("latin-1")[:64]


class Api:
    """The interface under its base path."""

    def __init__(
        self, node: Node, endpoints: Iterable[Endpoint], log: Log, metrics: Metrics, trusted: Iterable[str] = ()
    ) -> None:
        self.node, self.log, self.metrics = node, log, metrics
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
        self._forever: dict[Any, Kept] = {}
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="answer")
        self._ids = _ids()

    # ---- one request ----

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        request = Request(scope, self._trusted)
        ident = next(self._ids)
        headers = request.headers
        headers.append((b"x-request-id", ident))
        method = scope["method"]
        path = scope["path"][len(BASE) :]
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        endpoint: Endpoint | None = None
        caller = ANONYMOUS
        status = 500
        try:
            try:
                endpoint, values = self._find(method, path, raw[len(BASE) :].decode("latin-1"))
                caller = self._caller(endpoint, request)
                if endpoint.path != _HEALTH:
                    self._count(caller, request)
                    if not self.node.ready:
                        raise Problem(503, "not_ready", "the node is starting; try again in a few seconds")
                if endpoint.feature and endpoint.feature not in caller.features:
                    raise _lacking(endpoint.feature, caller)
                stream = getattr(endpoint.answer, "stream", None)
                if stream is not None:
                    status = 200
                    await stream(self, endpoint, caller, request, values, receive, send)
                    return
                body = await self._body(endpoint, scope, receive) if endpoint.body is not None else None
                kept = await self._answer(endpoint, caller, request, values, body)
                status = await _send(send, kept, request, method)
            except Problem as problem:
                status = problem.status
                await _send_problem(send, problem, headers, method)
            except ConnectionError:  # nobody is there to be answered
                status = 499
            except asyncio.CancelledError:
                status = 499
                raise
            except Exception as error:
                self.log.failure(ident, path, error)
                ours = Problem(
                    500, "internal_error", "something failed here, not in the request", request_id=ident.decode()
                )
                with suppress(RuntimeError):  # the answer may have begun
                    await _send_problem(send, ours, headers, method)
        finally:
            spent = time.perf_counter() - request.started
            route = endpoint.path if endpoint is not None else "(none)"
            self.metrics.answered(route, method, status, spent)
            self.log.answered(ident, method, route, path, status, spent, caller, request.address)

    def _find(self, method: str, path: str, raw: str) -> tuple[Endpoint, dict[str, str]]:
        methods = self._exact.get(path)
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
        return endpoint, values

    def _caller(self, endpoint: Endpoint, request: Request) -> Caller:
        """Who asks; a key that nobody has is refused also where none is needed."""
        key = request.key
        if key is None and request.bearer is not None:
            key = _bearer(request.bearer)
        if key is None and endpoint.query_key and b"api_key=" in request.query:
            key = _query_key(request.query)
        if key is None:
            if endpoint.key == "needed":
                raise Problem(
                    401, _unauthorized(endpoint), "a key is needed: send it as X-API-Key, or Authorization: Bearer"
                )
            return ANONYMOUS
        if endpoint.key == "none":
            return ANONYMOUS
        found = self.node.keys.find(key.decode("latin-1"))
        if found is None:
            room = self.node.limits.take(f"failed {request.address}", FAILED_RATE)
            if not room.allowed:
                raise _limited(room, "wrong keys")
            raise Problem(401, _unauthorized(endpoint), "the key is not valid")
        return found

    def _count(self, caller: Caller, request: Request) -> None:
        room = self.node.limits.take(caller.account or f"address {request.address}", caller.rate)
        request.headers += [
            (b"x-ratelimit-limit", _digits(room.limit)),
            (b"x-ratelimit-remaining", b"%d" % room.remaining),
            (b"x-ratelimit-reset", _digits(room.reset)),
            (b"x-data-delay", _digits(caller.tier.delay)),
        ]
        if not room.allowed:
            raise _limited(room, "requests")

    async def _body(self, endpoint: Endpoint, scope: Scope, receive: Any) -> Any:
        """Read and check a JSON body."""
        coding = next((value for name, value in scope["headers"] if name == b"content-encoding"), b"")
        try:
            async with asyncio.timeout(BODY_S):
                raw = await _read(receive)
        except TimeoutError:
            raise Problem(408, "request_timeout", f"the body did not arrive within {BODY_S:g} s") from None
        raw = _unpacked(raw, coding.strip().lower())
        assert endpoint.body is not None
        try:
            return msgspec.json.decode(raw, type=endpoint.body)
        except msgspec.ValidationError as error:
            raise invalid(f"the body does not fit: {error}") from None
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise invalid(f"the body is no JSON: {error}") from None

    async def _answer(
        self, endpoint: Endpoint, caller: Caller, request: Request, values: dict[str, str], body: Any
    ) -> Kept:
        """The answer: kept, being computed for somebody else, or computed now."""
        key = (endpoint, request.query, tuple(values.values()), caller.rights)
        if endpoint.lasts == "always":
            found = self._forever.get(key)
            if found is None:
                found = Kept(_encoded(endpoint.answer(self._ask(endpoint, caller, request, values, body))))
                if len(self._forever) < KEPT:
                    self._forever[key] = found
            return found
        if endpoint.lasts == "never" or body is not None:
            ask = self._ask(endpoint, caller, request, values, body)
            loop = asyncio.get_running_loop()
            return Kept(await loop.run_in_executor(self._pool, _computed, endpoint.answer, ask))
        answers = self._answers[caller.tier.delay]
        known = answers.at(self.node.board(caller.tier).number)
        kept = known.get(key)
        if isinstance(kept, Kept):
            return kept
        if kept is not None:
            return await asyncio.shield(kept)
        ask = self._ask(endpoint, caller, request, values, body)
        loop = asyncio.get_running_loop()
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
        answers.bytes += len(made.answer.body)
        return made

    def _ask(self, endpoint: Endpoint, caller: Caller, request: Request, values: dict[str, str], body: Any) -> Ask:
        query, ignored = parse(request.query, endpoint.by_name)
        ignored = [name for name in ignored if not (name == "api_key" and endpoint.query_key)]
        board = self.node.board(caller.tier) if self.node.ready else self.node.engine
        token = "" if endpoint.key != "none" else _bearer(request.bearer or b"").decode("latin-1")
        return Ask(caller, query, values, body, board, self.node, ignored, token)


# ---- parts ----


def _ids() -> Any:
    """Request ids: when the process began, and a counter."""
    stem = hashlib.blake2b(f"{time.time_ns()}".encode(), digest_size=5).hexdigest()
    at = 0
    while True:
        at += 1
        yield f"req_{stem}{at:08x}".encode()


def _computed(answer: Callable[[Ask], Any], ask: Ask) -> Answer:
    return _encoded(answer(ask))


def _encoded(found: Any) -> Answer:
    return found if isinstance(found, Answer) else Answer(_encode(found))


def _unauthorized(endpoint: Endpoint) -> str:
    return "invalid_api_key" if endpoint.path.startswith("/stream") else "unauthorized"


def _limited(room: Room, what: str) -> Problem:
    wait = max(1, room.reset - int(time.time()))
    return Problem(
        429, "rate_limited", f"{room.limit} {what} a minute are allowed; try again in {wait} s", retry_after=wait
    )


def _lacking(feature: str, caller: Caller) -> Problem:
    lowest = required(feature)
    code = "feature_required" if feature == "ev" else "tier_restricted"
    return Problem(403, code, f"{feature} needs the tier {lowest.id} or higher; this key's is {caller.tier.id}")


def _bearer(value: bytes) -> bytes:
    """What an Authorization header bears; nothing if it is of another scheme."""
    scheme, _, word = value.partition(b" ")
    return word.strip() if scheme.lower() == b"bearer" else b""


def _query_key(query: bytes) -> bytes:
    for part in query.split(b"&"):
        if part.startswith(b"api_key="):
            return unquote(part[8:].decode("latin-1")).encode("latin-1", "replace")
    return b""


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


async def _send(send: Any, kept: Kept, request: Request, method: str) -> int:
    """Send an answer, or 304 where the caller has it."""
    answer, headers = kept.answer, request.headers
    status = answer.status
    body = answer.body
    coding = _coding(request.codings) if status == 200 and len(body) >= SMALL else ""
    if status == 200 and method != "POST":
        tag = kept.tag(coding)
        headers += [(b"etag", tag), _revalidate, _vary]
        if request.etag and _matches(request.etag, kept):
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return 304
    else:
        headers += [_no_store, _vary]
    if coding:
        body = kept.packed(coding)
        headers.append((b"content-encoding", coding.encode()))
    if status != 204:
        headers += [(b"content-type", answer.type.encode()), (b"content-length", b"%d" % len(body))]
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})
    return status


@lru_cache(maxsize=256)
def _digits(number: int) -> bytes:
    return b"%d" % number


def _matches(given: bytes, kept: Kept) -> bool:
    """Whether a caller has this answer, in whatever coding."""
    if given in kept.tags:
        return True
    return given.strip() == b"*" or any(part.strip().removeprefix(b"W/") in kept.tags for part in given.split(b","))


@lru_cache(maxsize=1024)
def _coding(accepted: bytes) -> str:
    """The first of our codings that a caller takes; one with weight 0 is not taken, `*` is any that is not named."""
    weights: dict[str, bool] = {}
    for part in accepted.decode("latin-1").lower().split(","):
        name, _, weight = part.partition(";")
        weights[name.strip()] = weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return next((coding for coding in CODINGS if weights.get(coding, weights.get("*", False))), "")


async def _send_problem(send: Any, problem: Problem, headers: Headers, method: str) -> None:
    body = _encode(problem.body())
    headers = [*headers, (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), _no_store]
    if "retry_after" in problem.extra:
        headers.append((b"retry-after", b"%d" % problem.extra["retry_after"]))
    if "allow" in problem.extra:
        headers.append((b"allow", problem.extra["allow"].encode()))
    if problem.status in (408, 413):  # the rest of the body is not waited for
        headers.append(_close)
    if problem.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="oddsengine"'))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})
