"""What nobody sends on purpose: requests made from the served description, and hostile ones made by hand."""

import gzip
import json
import re
import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from http import HTTPStatus
from typing import Any

import httpx2
import jsonschema  # type: ignore[import-untyped]
import psutil
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import (
    allow_header_conformance,
    content_type_conformance,
    not_a_server_error,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.config import SchemathesisConfig
from schemathesis.core.control import SkipTest
from schemathesis.core.failures import FailureGroup
from support.effort import ALL, some
from support.service_running import PATIENCE_S, TIER_IDS, Running, until

from oddsengine_service.http.protocol import MOST_HEAD
from oddsengine_service.tiers import TIERS, Tier
from oddsengine_service.v4.sports_and_events import v4_id

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
    response_headers_conformance, allow_header_conformance, positive_data_acceptance,
]  # fmt: skip
RECORDED = ("/odds/closing", "/odds/history")  # what they are asked for is an event
CALM_S = 20.0  # an answer that is late even for this busy machine
EXAMPLES = settings().max_examples
FEW = {  # what is wrong is the same for every tier, and slow to make
    schemathesis.GenerationMode.POSITIVE: max(2, EXAMPLES // 8),
    schemathesis.GenerationMode.NEGATIVE: max(1, EXAMPLES // 25),
}
PART = {schemathesis.GenerationMode.POSITIVE: 12, schemathesis.GenerationMode.NEGATIVE: 8}  # of the operations


# ---- from the description ----


@pytest.fixture(scope="module")
def description(service: Running) -> dict[str, Any]:
    found: dict[str, Any] = httpx2.get(f"{service.origin}/openapi.json", timeout=PATIENCE_S).json()
    return found


def operations(description: dict[str, Any], mode: schemathesis.GenerationMode) -> list[Any]:
    """What can be asked, in `make test` a part of it; streams have no end, and so no body that could be looked at."""
    config = SchemathesisConfig.from_dict(
        {"generation": {"with-security-parameters": False, "mode": mode.value, "allow-x00": True}}
    )
    # Lists of up to 500 words are made of up to 10: automata of the whole pattern take gigabytes.
    short = json.loads(re.sub(r"\{0,499\}", "{0,9}", json.dumps(description)))
    every = [each.ok() for each in schemathesis.openapi.from_dict(short, config=config).get_all_operations()]  # type: ignore[union-attr]
    ends = [each for each in every if not each.path.startswith(("/stream", "/ws", "/mcp"))]
    chosen = some(ends, PART[mode])
    return chosen + [each for each in ends if each.path in RECORDED and each not in chosen]


def obey_descriptions(case: Any, tier: Tier) -> None:
    """Keep what no schema can say and the texts do: times in order, a tier's most ids of a batch, pairs of fields."""
    if case.path.startswith(("/alerts", "/bets", "/filters", "/marks")):
        at = "2026-02-08T18:00:00Z"
        texts = {"time_zone": "UTC", "query": "sport=basketball"}
        texts |= dict.fromkeys(("settled_at", "event_start_time", "placed_at"), at)
        if isinstance(case.body, dict) and isinstance(case.body.get("bets"), list):
            case.body["bets"] = [{k: texts.get(k, plain(v)) for k, v in each.items()} for each in case.body["bets"]]
        elif isinstance(case.body, dict):
            some = {name: texts.get(name, plain(value)) for name, value in case.body.items() if name.isidentifier()}
            for pair in (("quiet_from", "quiet_to"), ("home_score", "away_score")):
                if not all(some.get(name) for name in pair):
                    some = {name: value for name, value in some.items() if name not in pair}
            case.body = some
        if case.path.startswith(("/filters", "/marks")):
            case.path_parameters = dict.fromkeys(case.path_parameters or {}, "x")
    if case.path == "/account/restore" and isinstance(case.body, dict):  # parts are tested alone
        case.body = {"format": 1, **{name: [] for name in ("bets", "marks", "filters", "alerts")}}
    if case.path.startswith("/calculators"):
        numbers = {"odds": "2.1,2.2", "probabilities": "0.5,0.5", "limits": "100,100", "total": 100, "step": 1}
        case.query = {name: numbers.get(name, value) for name, value in (case.query or {}).items()}
    if case.path.startswith("/v4/"):
        start, own = "2026-02-08T18:00:00Z", {"regions": "us", "markets": "h2h", "date": "2026-02-07T18:00:10Z"}
        own |= dict.fromkeys(("commenceTimeFrom", "commenceTimeTo"), start)
        query = case.query or {}
        case.query = {name: own.get(name, value) for name, value in query.items() if name != "bookmakers"}
        if case.path.endswith(("odds", "odds-history", "markets")):
            case.query |= {"regions": "us"}
    for first, last in (("since", "until"), ("start_time", "end_time"), ("from", "to")):
        if first in case.query and last in case.query:
            case.query = {**case.query, last: case.query[first]}
    if case.path == "/odds/batch" and isinstance(case.body, dict):
        case.body = {**case.body, "event_ids": case.body["event_ids"][: tier.batch]}


def plain(value: Any) -> Any:
    """A number without a fraction as a whole one: to a schema they are the same."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("tier", some(TIER_IDS, 1))
def test_answers_conform_whatever_is_asked(
    service: Running, description: dict[str, Any], tier: str, mode: schemathesis.GenerationMode
) -> None:
    ids = service.ids()
    v4 = {"eventId": v4_id(ids["event"]), "sportKey": "upcoming"}
    known = {"eventId": ids["event"], "sportId": ids["sport"], "leagueId": ids["league"], "bookId": "draftkings"}
    statuses: set[int] = set()
    met: dict[str, set[int]] = {}
    faults: list[str] = []
    last: list[Any] = []
    with requests.Session() as session:
        session.headers["X-API-Key"] = f"demo_{tier}"
        for operation in operations(description, mode):

            @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
            @settings(
                max_examples=FEW[mode],
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def ask(case: Any, real: bool) -> None:
                if real and case.path_parameters:
                    words = v4 if case.path.startswith("/v4/") else known
                    case.path_parameters |= {n: v for n, v in words.items() if n in case.path_parameters}
                if case.path in RECORDED and mode is schemathesis.GenerationMode.POSITIVE:
                    named = {n: ids["closed"] for n in ("event", "event_id") if n in case.query}
                    case.query = {**case.query, **named}
                if mode is schemathesis.GenerationMode.POSITIVE:
                    obey_descriptions(case, TIERS[tier])
                service.clock.pass_minute()
                last[:] = [case.method, case.path, case.query, case.body]
                base = service.origin if case.path.startswith("/v4/") else service.base
                answer = case.call(base_url=base, session=session, timeout=PATIENCE_S, allow_redirects=False)
                if len(answer.request.url) > MOST_HEAD and answer.status_code == 431:  # of the server, not the endpoint
                    return
                statuses.add(answer.status_code)
                last.append(answer.text[:300])
                met.setdefault(case.path, set()).add(answer.status_code)
                case.validate_response(answer, checks=CHECKS)

            try:
                ask()
            except SkipTest:  # nothing about it can be wrong
                continue
            except FailureGroup as group:
                faults.append(f"{operation.label}: {'; '.join(map(str, group.exceptions))}\n{last}")
    assert not faults, "\n\n".join(faults)
    assert statuses >= ({200, 404} if mode is schemathesis.GenerationMode.POSITIVE else {400})
    if mode is schemathesis.GenerationMode.POSITIVE:
        assert all(200 in met[path] for path in RECORDED), {path: met[path] for path in RECORDED}


def edges(kind: dict[str, Any]) -> Iterator[str]:
    """Values at the edges of a schema, within it and beyond."""
    yield from ("", " ", ",", "x", "0", "-1", "1", "2.1", "1.5,0.5", "2.1,3", "0.5,0.25", "2026-02-08T18:00:00Z")
    for one in kind.get("anyOf", [kind]):
        yield from map(str, one.get("enum", ())[:2])
        for name in ("minimum", "maximum"):
            yield from (repr(one[name] + step) for step in (-1, 0, 1) if name in one)
        if words := re.match(r"\^ \*\((\w+)", one.get("pattern", "")):
            yield from (words[1], f" {words[1]},", f"{words[1]},{words[1]}", f"{words[1]}x")


@cache
def validator(kind: str) -> Any:
    """Of a schema as JSON."""
    return jsonschema.Draft202012Validator(json.loads(kind))


def fits(kind: dict[str, Any], text: str) -> bool:
    """Whether a schema allows a text in a query."""
    if "anyOf" in kind:
        return any(fits(one, text) for one in kind["anyOf"])
    value: Any = text
    if kind["type"] in ("number", "integer"):
        try:
            value = float(text) if kind["type"] == "number" else int(text)
        except ValueError:
            return False
    elif kind["type"] == "boolean":
        value = {"true": True, "false": False}.get(text, text)
    elif kind.get("format") in ("date-time", "date"):
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d" + (r"T.+Z" if kind["format"] == "date-time" else ""), text))
    return bool(validator(json.dumps(kind)).is_valid(value))


def test_the_description_and_the_parser_agree_at_the_edges(service: Running, description: dict[str, Any]) -> None:
    """What is described is taken; an empty value only where the description allows one.

    In `make test` each parameter at one of the endpoints that describe it alike.
    """
    given = {
        "odds": "2.1,3.3", "probabilities": "0.5,0.4", "against": "2.1", "event_id": service.ids()["event"],
        "since": "2026-02-08T18:00:00Z", "event": service.ids()["event"], "market": "moneyline", "probability": "0.4",
        "id": "x", "market_type": "moneyline", "name": "x", "date": "2026-02-08T18:00:00Z",
    }  # fmt: skip
    faults, seen = list[str](), set[str]()
    with service.client() as client:
        for path, methods in description["paths"].items():
            if "get" not in methods or path.startswith(("/stream", "/ws")):
                continue
            place = re.sub(r"{\w+}", "x", path)
            v4 = path.startswith("/v4/")
            every = [each for each in methods["get"]["parameters"] if each["in"] == "query"]
            needed = {each["name"]: given[each["name"]] for each in every if each["required"]}
            if path.startswith("/calculators") and every[0]["schema"]["type"] == "number":
                needed["odds"] = "2.1"
            for each in every:
                name, kind = each["name"], each["schema"]
                described_as = json.dumps([name, kind], sort_keys=True)
                if described_as in seen and not ALL:
                    continue
                seen.add(described_as)
                for text in dict.fromkeys(edges(kind)):
                    described = fits(kind, text) or (not text.strip() and each.get("allowEmptyValue", False))
                    answer = client.get(f"{service.origin if v4 else ''}{place}", params={**needed, name: text})
                    message = "" if answer.status_code != 400 else answer.json()["error"]["message"]
                    message = answer.json()["message"] if answer.status_code == 422 else message
                    # No schema can say these.
                    of_two = re.search("as many numbers as|at most 1,000,000 steps|give either", message)
                    taken = name not in message or of_two is not None
                    if str(answer.status_code) not in methods["get"]["responses"]:
                        faults.append(f"{path} {name}={text!r}: {answer.status_code}")
                    if described != taken and (described or not text.strip(" ,")):
                        faults.append(f"{path} {name}={text!r}: {answer.status_code} {message}")
    assert not faults, "\n".join(faults)


def test_every_status_is_described(service: Running, description: dict[str, Any]) -> None:
    """Those that generated requests do not meet: a full disk, and what the tools' protocol needs."""
    for path, methods in description["paths"].items():
        if path.startswith(("/alerts", "/bets", "/filters", "/marks")):
            for method, operation in methods.items():
                assert ("507" in operation["responses"]) == (method != "get"), f"{method} {path}"
    statuses = description["paths"]["/mcp"]["post"]["responses"]
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with service.client(headers={"Accept": "application/json"}) as client:
        assert client.post("/mcp", json=notification).status_code == 202
        assert client.post("/mcp", json=call, headers={"Accept": "text/html"}).status_code == 406
    assert {"202", "406"} <= set(statuses)


# ---- by hand ----


def exchanged(service: Running, sent: bytes, *, wait: float = CALM_S) -> bytes:
    """What comes back for bytes, until the server closes, or says nothing for a while."""
    with socket.create_connection(("127.0.0.1", service.port), CALM_S) as one:
        got = b""
        try:
            one.sendall(sent)
            one.settimeout(wait)
            while part := one.recv(1 << 16):
                got += part
        except (ConnectionResetError, BrokenPipeError, TimeoutError):
            pass
        return got


def head(path: str, *more: str, method: str = "GET", close: bool = True) -> bytes:
    lines = [f"{method} /api/v1{path} HTTP/1.1", "host: x", "x-api-key: demo_enterprise", *more]
    lines += ["connection: close"] if close else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def posted(body: bytes, *more: str, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return head("/odds/batch", "content-type: application/json", f"content-length: {size}", *more, method="POST") + body


def chunked(body: bytes, size: int, trailers: bytes = b"") -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n" + trailers + b"\r\n"


CHUNKS = "transfer-encoding: chunked"
DEEP = b"[" * 200_000
MANY = b'{"event_ids":[' + b",".join(b'"e%d"' % n for n in range(100_000)) + b"]}"
PACKED = gzip.compress(b'{"event_ids":["x"]}')


def bomb() -> bytes:
    """The beginning of a gzip file of 200 MB of spaces: one block again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    first, again = (packer.compress(b" " * (10 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + again * 19


GZIP = "content-encoding: gzip"
# name, bytes, status; a body follows where the envelope is promised
HOSTILE: list[tuple[str, bytes, int]] = [
    ("a long value", head("/odds?sport=" + "a" * 10_000), 400),
    ("a value beyond a query", head("/odds?sport=" + "a" * 50_000), 400),
    ("100,000 ids in a query", head("/odds?event=" + ",".join(f"{n}" for n in range(9_000))), 400),
    ("600 ids in a query", head("/odds?event=" + ",".join(f"{n}" for n in range(600))), 400),
    ("a thousand parameters", head("/odds?" + "&".join(f"p{n}=1" for n in range(1_000))), 400),
    ("the same one with other values", head("/odds?" + "&".join(f"limit={n}" for n in range(1, 50))), 400),
    ("a percent sign and no more", head("/odds?sport=%"), 200),
    ("half a character", head("/odds?sport=%e2%82"), 400),
    ("a surrogate", head("/odds?sport=%ed%a0%80"), 400),
    ("a zero", head("/odds?sport=%00"), 400),
    ("a zero in a path", head("/events/%00"), 404),
    ("raw bytes in a query", head("/odds?sport=\xff\xfe"), 400),
    ("another way round", head("/odds?q=%E2%80%AEtxt"), 200),
    ("a huge number", head("/odds?limit=" + "9" * 5_000), 400),
    ("digits that are none of ours", head("/odds?limit=%D9%A1"), 400),
    ("an exponent", head("/odds?min_odds=1e400"), 400),
    ("a cursor", head("/odds?cursor=" + "A" * 3_999), 400),
    ("a path that climbs", head("/../../etc/passwd"), 404),
    ("a path that climbs, encoded", head("/%2e%2e/v1/odds"), 404),
    ("an encoded slash", head("/odds%2Fbest"), 404),
    ("an encoded slash in an id", head("/sports/basket%2fball"), 404),
    ("an overlong slash", head("/sports/%c0%af"), 404),
    ("an overlong slash in a query", head("/odds?sport=%c0%af"), 400),
    ("a slash at the end", head("/odds/"), 404),
    ("two slashes", head("//odds"), 404),
    ("another case", head("/Odds"), 404),
    ("a semicolon", head("/odds;limit=1"), 404),
    ("a host that is none", b"GET /nothing HTTP/1.1\r\nhost: [\r\nconnection: close\r\n\r\n", 404),
    ("everything at all", b"OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 404),
    ("a trace", head("/odds", method="TRACE"), 405),
    ("a tunnel", head("/odds", method="CONNECT"), 405),
    ("the whole address", head("/odds?limit=1").replace(b"GET ", b"GET http://elsewhere.example", 1), 200),
    ("HTTP/1.0", head("/markets").replace(b"HTTP/1.1", b"HTTP/1.0"), 200),
    ("another protocol", head("/markets", "connection: upgrade", "upgrade: websocket", close=False), 200),
    ("another protocol, with a body", posted(b'{"event_ids":["x"]}', "connection: upgrade", "upgrade: h2c"), 400),
    ("an expectation", posted(b'{"event_ids":["x"]}', "expect: the-impossible"), 200),
    ("as many headers as fit", head("/markets", *(f"x-{n}: {n}" for n in range(4_000))), 200),
    ("a header as large as fits", head("/markets", "x-large: " + "a" * 60_000), 200),
    ("a chunk that is none", head("/odds/batch", CHUNKS, method="POST") + b"zz\r\n", 400),
    ("a chunk without end", head("/odds/batch", CHUNKS, method="POST") + b"f" * 20 + b"\r\n", 400),
    ("a bad chunk behind an answer", head("/markets", CHUNKS) + b"zz\r\n", 400),
    ("a coding beside chunks", head("/odds/batch", "transfer-encoding: gzip", method="POST"), 400),
    ("a chunked body", head("/odds/batch", CHUNKS, method="POST") + chunked(b'{"event_ids":["x"]}', 1), 200),
    ("trailers", head("/odds/batch", CHUNKS, method="POST") + chunked(b'{"event_ids":["x"]}', 5, b"x: y\r\n"), 200),
    ("too many chunks", head("/odds/batch", CHUNKS, method="POST") + chunked(b" " * (1 << 20 | 1), 65_000), 413),
    ("a long path", head("/events/" + "a" * 20_000), 404),
    ("a path of slashes", head("/" * 5_000), 404),
    ("a long key", head("/odds").replace(b"demo_enterprise", b"k" * 20_000), 401),
    ("deep JSON", posted(DEEP), 400),
    ("deep JSON in a field", posted(b'{"event_ids":' + DEEP), 400),
    ("deep JSON that nobody reads", posted(b'{"event_ids":["x"],"more":' + DEEP + b"]" * 200_000 + b"}"), 400),
    ("100,000 ids", posted(MANY[: 1 << 20]), 413 if len(MANY) > 1 << 20 else 400),
    ("90,000 ids", posted(b'{"event_ids":[' + b",".join(b'"e%d"' % n for n in range(90_000)) + b"]}"), 400),
    ("an id of a megabyte", posted(b'{"event_ids":["' + b"a" * 1_000_000 + b'"]}'), 400),
    ("a number of a megabyte", posted(b'{"event_ids":[' + b"1" * 1_000_000 + b"]}"), 400),
    ("no UTF-8", posted(b'{"event_ids":["\xff"]}'), 400),
    ("a lone surrogate", posted(rb'{"event_ids":["\ud800"]}'), 400),
    ("UTF-16", posted('{"event_ids":["x"]}'.encode("utf-16")), 400),
    ("two values", posted(b'{"event_ids":["x"]}{}'), 400),
    ("nothing", posted(b""), 400),
    ("broken gzip", posted(b"\x1f\x8b" + b"\x00" * 100, GZIP), 400),
    ("half a gzip", posted(PACKED[:-9], GZIP), 400),
    ("a gzip that unpacks without end", posted(bomb(), GZIP), 413),
    ("a gzip that is none", posted(b'{"event_ids":["x"]}', GZIP), 400),
    ("deflate", posted(zlib.compress(b"{}"), "content-encoding: deflate"), 415),
    ("a gzip", posted(PACKED, GZIP), 200),
    ("a body of a gigabyte, announced", posted(b" " * (1 << 20 | 1), length=1 << 30), 413),
    ("no length", head("/odds/batch", method="POST"), 400),
    ("an unknown method", b"BREW /api/v1/odds HTTP/1.1\r\nhost: x\r\n\r\n", 405),
    ("a body where none is taken", head("/odds?limit=1", "content-length: 5") + b"hello", 400),
    ("an empty object where no body is taken", head("/odds?limit=1", "content-length: 2") + b"{}", 200),
    ("headers that are too long, in one piece", head("/sports", "x-a: " + "a" * 2 * MOST_HEAD), 431),
    ("too many headers, in one piece", head("/sports", *["x-a: b"] * (MOST_HEAD // 5)), 431),
    ("a path that is too long, in one piece", head("/sports?x=" + "a" * 2 * MOST_HEAD), 431),
    ("headers of the size allowed", head("/sports", "x-a: " + "a" * (MOST_HEAD - 100)), 200),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "status"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_hostile_requests_are_answered_quickly(service: Running, sent: bytes, status: int) -> None:
    begun = time.monotonic()
    got = exchanged(service, sent)
    assert time.monotonic() - begun < CALM_S
    assert got.startswith(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()), got[:300]
    if status >= 400:
        assert set(json.loads(got.partition(b"\r\n\r\n")[2])["error"]) >= {"code", "message", "docs"}
        assert len(got) < 3_000, "it is not sent back whole"
    assert_alive(service)


def assert_alive(service: Running) -> None:
    service.clock.pass_minute()
    assert exchanged(service, head("/health")).startswith(b"HTTP/1.1 200 ")


HALF_CLOSED: list[tuple[str, bytes, int]] = [
    ("a list", head("/odds?limit=200", close=False), 1),
    ("opportunities", head("/opportunities/ev", close=False), 1),
    ("a body", posted(b'{"event_ids":["x"]}'), 1),
    ("a page", b"GET /docs HTTP/1.1\r\nhost: x\r\n\r\n", 1),
    ("requests in a row", head("/odds/best", close=False) * 3, 3),
    ("half a request", head("/sports")[:-4], 0),
    ("half a body", posted(b'{"event_ids', length=100), 0),
    ("a stream", head("/stream", close=False), 0),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), [row[1:] for row in HALF_CLOSED], ids=[row[0] for row in HALF_CLOSED])
def test_a_client_that_sends_nothing_more_is_answered(service: Running, sent: bytes, answers: int) -> None:
    """`nc -N` closes its side of the connection after the request; a stream ends then, as its client has left."""
    with socket.create_connection(("127.0.0.1", service.port), CALM_S) as one:
        one.sendall(sent)
        one.shutdown(socket.SHUT_WR)
        got = b""
        while part := one.recv(1 << 16):
            got += part
    if answers:
        assert got.count(b"HTTP/1.1 200 OK\r\n") == answers
        assert got.rpartition(b"\r\n\r\n")[2]
    until(lambda: service.service.api.hub is None or not service.service.api.hub.subscribers.streams)
    assert_alive(service)


NO_REQUESTS: list[tuple[str, bytes]] = [
    ("junk", b"\x00\x01\x02\x03" * 100 + b"\r\n\r\n"),
    ("a greeting of TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50),
    ("an unknown method of no version", b"BREW /api/v1/odds HTTP\r\nhost: x\r\n\r\n"),
    ("a header without a colon", b"GET /api/v1/odds HTTP/1.1\r\nhost\r\n\r\n"),
    ("a header with a zero", b"GET /api/v1/odds HTTP/1.1\r\nhost: x\r\nx-api-key: a\x00b\r\n\r\n"),
    ("two lengths", b"POST /api/v1/odds/batch HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx"),
    ("a length and chunks", b"POST /api/v1/odds/batch HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n"
     b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a length below zero", b"POST /api/v1/odds/batch HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n"),
    ("a header without an end", b"GET /api/v1/odds HTTP/1.1\r\nx-a: " + b"a" * (8 * MOST_HEAD)),
    ("headers without an end", b"GET /api/v1/odds HTTP/1.1\r\n" + b"x-a: b\r\n" * (2 * MOST_HEAD)),
    ("a path without an end", b"GET /" + b"a" * (8 * MOST_HEAD)),
]  # fmt: skip


@pytest.mark.parametrize("sent", [row[1] for row in NO_REQUESTS], ids=[row[0] for row in NO_REQUESTS])
def test_what_is_no_request_is_refused_and_the_connection_closed(service: Running, sent: bytes) -> None:
    got = exchanged(service, sent)
    # What is refused while it is still being sent may be lost with the connection.
    if got:
        assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 ")), got[:200]
        assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "validation_error"
    else:
        assert len(sent) > MOST_HEAD
    assert_alive(service)


def test_requests_in_a_row_and_junk_behind_them(service: Running) -> None:
    some = [head(f"/sports?n={n}", close=False) for n in range(30)]
    got = exchanged(service, b"".join(some) + b"\x00junk\r\n\r\n")
    assert got.count(b"HTTP/1.1 200 ") <= 30
    assert b"HTTP/1.1 500" not in got
    service.clock.pass_minute()
    got = exchanged(service, b"".join(some) + head("/markets"))
    assert got.count(b"HTTP/1.1 200 ") == 31
    assert_alive(service)


def test_a_body_that_does_not_come_is_given_up(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oddsengine_service.http.request.BODY_S", 0.5)
    with socket.create_connection(("127.0.0.1", service.port), CALM_S) as one:
        one.sendall(posted(b'{"event_ids', length=100))
        got = b""
        while part := one.recv(1 << 16):
            got += part
    assert got.startswith(b"HTTP/1.1 408 ")
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_timeout"


def test_a_head_that_does_not_come_is_given_up(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oddsengine_service.http.protocol.HEAD_S", 0.5)
    for sent in (b"", b"GET /api/v1/odds HT", b"GET /api/v1/odds HTTP/1.1\r\nhost: x\r\n"):
        got = exchanged(service, sent)
        assert got.startswith(b"HTTP/1.1 408 "), sent
    assert_alive(service)


# What comes behind a request that needs no body, without end: how it begins, and what is repeated.
ENDLESS: list[tuple[str, bytes, bytes]] = [
    ("chunks", head("/sports", CHUNKS, close=False), chunked(b"a" * 60_000, 60_000)[: -len(b"0\r\n\r\n")]),
    ("a chunk's extension", head("/sports", CHUNKS, close=False) + b"5;", b"e" * 60_000),
    ("trailers", head("/sports", CHUNKS, close=False) + b"0\r\n", (b"x: " + b"y" * 1_000 + b"\r\n") * 60),
    ("one trailer", head("/sports", CHUNKS, close=False) + b"0\r\nx: ", b"y" * 60_000),
    ("a body", head("/sports", "content-length: 9999999999", close=False), b"a" * 60_000),
    ("a body for nobody", head("/nothing", "content-length: 9999999999", close=False, method="POST"), b"a" * 60_000),
    ("trailers of a body", head("/odds/batch", CHUNKS, close=False, method="POST") + b"0\r\n",
     (b"x: " + b"y" * 1_000 + b"\r\n") * 60),
    ("a body for a page", b"POST /docs HTTP/1.1\r\nhost: x\r\ncontent-length: 9999999999\r\n\r\n", b"a" * 60_000),
]  # fmt: skip


@pytest.mark.parametrize(("begin", "more"), [row[1:] for row in ENDLESS], ids=[row[0] for row in ENDLESS])
def test_what_does_not_end_is_cut_off_and_not_kept(service: Running, begin: bytes, more: bytes) -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    sent = 0
    with socket.create_connection(("127.0.0.1", service.port), CALM_S) as one:
        one.sendall(begin)
        try:
            while sent < 64 << 20:
                one.sendall(more)
                sent += len(more)
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert sent < 64 << 20, "it was read to the end"
    assert process.memory_info().rss - before < 48 << 20
    assert_alive(service)


def test_a_body_that_nobody_waits_for_is_given_up(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Now and then a byte of it does not hold a connection. It was answered, so it is not logged as refused."""
    monkeypatch.setattr("oddsengine_service.http.protocol.HEAD_S", 0.5)
    refused = service.log_text().count('"event":"refused"')
    for begin in (
        b"GET /docs HTTP/1.1\r\nhost: x\r\n%b\r\n\r\n" % each for each in (b"content-length: 1000", CHUNKS.encode())
    ):
        with socket.create_connection(("127.0.0.1", service.port), CALM_S) as one:
            one.sendall(begin)
            one.settimeout(0.2)
            got, ended = b"", False
            until = time.monotonic() + CALM_S
            while not ended and time.monotonic() < until:
                try:
                    part = one.recv(1 << 16)
                    got, ended = got + part, not part
                except TimeoutError:
                    one.sendall(b"1")
                except (ConnectionResetError, BrokenPipeError):
                    ended = True
        assert ended
        assert got.count(b"HTTP/1.1 ") == 1, "one request, one answer"
        assert got.startswith(b"HTTP/1.1 200 ")
    assert service.log_text().count('"event":"refused"') == refused


def test_each_request_has_one_answer(service: Running) -> None:
    """Also the first one of a connection, if it is answered before its end is read."""
    for _ in range(3):
        service.clock.pass_minute()
        with socket.create_connection(("127.0.0.1", service.port), CALM_S) as one:
            for path in ("/sports", "/sports", "/nothing", "/odds?limit=0", "/sports"):
                one.sendall(head(path, close=False))
                answer = read_one(one)
                assert answer.count(b"HTTP/1.1 ") == 1
            one.sendall(head("/sports"))
            rest = b""
            while part := one.recv(1 << 16):
                rest += part
            assert rest.count(b"HTTP/1.1 ") == 1


def read_one(one: socket.socket) -> bytes:
    """One answer, by its length."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += one.recv(1 << 16)
    found, _, body = got.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in found.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += one.recv(1 << 16)
    assert len(body) == length, "nothing stands behind it"
    return found + body


def test_slow_senders_hold_nobody_up(service: Running) -> None:
    """Two hundred who send a byte now and then, and one who asks."""
    slow = [socket.create_connection(("127.0.0.1", service.port), CALM_S) for _ in range(200)]
    try:
        for at, each in enumerate(slow):
            each.sendall(posted(b"{", length=500)[: None if at % 2 else 60])
        with service.client() as client:
            assert client.get("/odds?limit=50").status_code == 200
    finally:
        for each in slow:
            each.close()
    assert_alive(service)


@pytest.mark.exhaustive
def test_memory_stays_flat(service: Running) -> None:
    """Hundreds of the largest requests that are looked at leave nothing behind."""
    process = psutil.Process()
    large = [sent for name, sent, _ in HOSTILE if len(sent) > 8_000 and "unpacks" not in name]
    largest = next(sent for name, sent, _ in HOSTILE if "unpacks" in name)

    def round_() -> None:
        for sent in large:
            exchanged(service, sent)
        exchanged(service, largest)
        with closing(service.client()) as client:
            for n in range(100):
                client.get("/odds", params={"q": f"{n}" * 40}, headers={"X-API-Key": f"wrong {n}" * 50})
                client.get(f"/{n}" * 100)

    for _ in range(3):
        round_()
    before = process.memory_info().rss
    rounds = 8
    for _ in range(rounds):
        round_()
    grown = process.memory_info().rss - before
    assert grown < 48 << 20, f"{grown / 2**20:.0f} MB more after {rounds * len(large)} large requests"
