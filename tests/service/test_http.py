"""The interface over a socket: bodies, errors, keys, headers, tiers, a node's life, and what describes it.

Every field that the contract names is in `contract/test_conformance.py`.
"""

import asyncio
import gzip
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import msgspec
import pytest
import zstandard
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families
from support.contract import KINDS, READ, UNCHANGING, check
from support.service_running import (
    METRICS_TOKEN,
    PATIENCE_S,
    SPLITS_TOKEN,
    TIER_IDS,
    Running,
    has,
    until,
    without_main_lines,
)

import oddsengine_cli as cli
from oddsengine import catalog
from oddsengine_service.healthcheck import FILE as LOCK
from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.pool import THREADS
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.server import serve
from oddsengine_service.settings import load
from oddsengine_service.site import documents
from oddsengine_service.tiers import TIERS, books_of, required

Json = dict[str, Any]


# ---- the server ----


@pytest.fixture
def ids(service: Running) -> dict[str, str]:
    """Ids that every tier sees."""
    return service.ids()


# ---- bodies ----


def test_data_of_a_comparison_and_a_batch_are_lists_by_name(service: Running, ids: dict[str, str]) -> None:
    with service.client() as client:
        for name in ("event", "event_id"):
            side_by_side = client.get("/odds/comparison", params={name: ids["event"]}).json()
            check(side_by_side, "DataEnvelope", "body")
            assert set(side_by_side["data"]) == set(client.get(f"/events/{ids['event']}/markets").json()["data"])
            for market, rows in side_by_side["data"].items():
                check(rows, "[Odds]", f"data.{market}")
                assert {row["market_type"] for row in rows} == {market}
        batch = client.post("/odds/batch", json={"event_ids": [ids["event"], "nobody"]}).json()
    check(batch, "DataEnvelope", "body")
    assert list(batch["data"]) == [ids["event"], "nobody"]
    check(batch["data"][ids["event"]], "[Odds]", "data")
    assert batch["data"][ids["event"]]
    assert batch["data"]["nobody"] == []
    assert batch["meta"]["missing"] == ["nobody"]


def test_removed_rows_of_a_delta(service: Running) -> None:
    with service.client() as client:
        since = client.get("/odds/delta?since=2026-02-07T18:00:00Z").json()["meta"]["server_time"]
        for _ in range(40):
            service.advance(3)
            body = client.get("/odds/delta", params={"since": since}).json()
            if body["removed"]:
                break
        assert body["removed"]
        check(body["removed"], "[Removed]", "removed")
        assert all(row["removed_at"] > since for row in body["removed"])
        early = client.get("/odds/delta?since=2020-01-01T00:00:00Z").json()
    assert early["meta"]["since_clamped"] is True
    assert "since_clamped" not in body["meta"]


def test_splits_have_an_envelope_of_their_own(service: Running, ids: dict[str, str]) -> None:
    with service.client("free") as client:
        body = client.get("/splits?limit=1").json()
        history = client.get("/splits/history", params={"event_id": ids["event"]}).json()
    assert "success" not in body
    check(body["pagination"], "Pagination", "pagination")
    assert KINDS["time"](body["updated_at"])
    times = [entry["ts"] for entry in history["data"]]
    assert times == sorted(times)
    assert (history["meta"]["oldest"], history["meta"]["newest"]) == (times[0], times[-1])


def test_the_formulas(service: Running) -> None:
    with service.client() as client:
        value = client.get("/opportunities/ev?limit=200").json()["data"]
        sure = client.get("/opportunities/arbitrage?limit=200").json()["data"]
    assert value
    assert sure
    for row in value:
        edge = row["fair_probability"] * row["odds_decimal_net"] - 1.0
        assert row["ev_percentage"] == pytest.approx(100.0 * edge, abs=1e-3)
        assert row["ev_percent"] == row["ev_percentage"]
        assert row["devig_book"] == row["sharp_book"]
    for row in sure:
        total = sum(leg["implied_probability"] for leg in row["legs"]) * 100.0
        assert row["implied_total"] == pytest.approx(total, abs=1e-3)
        assert row["profit_percent"] == pytest.approx(1e4 / row["implied_total"] - 100.0, abs=1e-3)
        assert 0.5 <= row["profit_percent"] <= 10.0
        assert sum(leg["stake_percent"] for leg in row["legs"]) == pytest.approx(100.0, abs=1e-6)
        for leg in row["legs"]:
            assert leg["stake_percent"] == pytest.approx(1e4 * leg["implied_probability"] / total, abs=1e-2)


def test_pages(service: Running) -> None:
    with service.client() as client:
        first = client.get("/odds?limit=150").json()
        second = client.get("/odds?limit=150&offset=150").json()
        last = client.get(f"/odds?limit=200&offset={first['meta']['total'] // 200 * 200 % 5000}").json()
        assert first["pagination"] | {"next_cursor": ""} == {
            "limit": 150, "offset": 0, "has_more": True, "next_offset": 150, "next_cursor": "",
        }  # fmt: skip
        assert not {row["id"] for row in first["data"]} & {row["id"] for row in second["data"]}
        assert last["pagination"]["offset"] + last["meta"]["count"] <= last["meta"]["total"]
        capped = client.get("/odds?limit=200&offset=5000").json()
        assert capped["pagination"]["has_more"] is True
        assert capped["pagination"]["next_offset"] is None
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = client.get("/odds", params={"limit": 200, "market": "main", **cursor}).json()
            seen += [row["id"] for row in page["data"]]
            if not page["pagination"]["has_more"]:
                break
            cursor = {"cursor": page["pagination"]["next_cursor"]}
        assert page["pagination"]["next_cursor"] is None
    assert len(seen) == len(set(seen)) == page["meta"]["total"]


def test_csv_of_arbitrages(service: Running) -> None:
    with service.client() as client:
        answer = client.get("/opportunities/arbitrage?format=csv&min_profit=-5&limit=200")
    header = (
        "event,sport,market,line,profit%,implied_total,book1,selection1,odds1,stake1%,book2,selection2,odds2,stake2%,"
        "is_live,is_alternate_line,possibly_stale,warnings,detected_at"
    )
    lines = answer.text.split("\r\n")
    assert lines[0] == header
    assert len(lines) > 2
    assert answer.headers["content-type"].startswith("text/csv")
    named = r'attachment; filename="arbitrage_\d{4}-\d\d-\d\d\.csv"'
    assert re.fullmatch(named, answer.headers["content-disposition"])


def test_what_is_unknown_or_ignored_is_said(service: Running) -> None:
    with service.client() as client:
        for path in ("/odds", "/odds/best", "/events", "/opportunities/ev", "/opportunities/arbitrage", "/splits"):
            body = client.get(path, params={"sport": "quidditch", "sportsbook": "nobodys", "colour": "red"}).json()
            assert body["data"] == [], path
            assert body["meta"]["unknown"] == {"sport": ["quidditch"], "sportsbook": ["nobodys"]}, path
            assert body["meta"]["ignored"] == ["colour"], path
        for path in ("/sports", "/leagues", "/sportsbooks", "/markets", "/teams", "/account", "/account/keys"):
            assert client.get(path, params={"colour": "red"}).json()["meta"]["ignored"] == ["colour"], path
        assert client.get("/odds?min_odds=+500&limit=1").json()["data"][0]["odds_american"] >= 500


def test_what_is_ignored_is_said_in_a_header(service: Running) -> None:
    """Also of responses without `meta`, and of those that are cached."""
    said = '299 - "ignored parameters: colour, a%22%0A"'
    ignored = {"colour": "red", 'a"\n': "1"}
    with service.client() as client:
        for path in ("/odds?limit=1", "/odds?limit=1", "/sports", "/opportunities/arbitrage?format=csv", "/account"):
            answer = client.get(path, params={**httpx2.QueryParams(path.partition("?")[2]), **ignored})
            assert answer.headers["warning"] == said, path
        v4 = client.get(f"{service.origin}/v4/sports", params=ignored)
        assert v4.headers["warning"] == said
        with client.stream("GET", "/stream/gamestate", params=ignored) as stream:
            assert stream.headers["warning"] == said
        assert "warning" not in client.get("/health", params=ignored).headers, "it is shared"
        assert "warning" not in client.get("/odds?limit=1").headers


# ---- errors ----

# name, method, path, tier (None: no key), what is sent, status, code
ERRORS: list[tuple[str, str, str, str | None, Json, int, str]] = [
    ("no route", "GET", "/nothing", "pro", {}, 404, "not_found"),
    ("no route, no key", "GET", "/nothing/at/all", None, {}, 404, "not_found"),
    ("empty segment", "GET", "/events//odds", "pro", {}, 404, "not_found"),
    ("method", "POST", "/odds", "pro", {}, 405, "method_not_allowed"),
    ("method of a pattern", "DELETE", "/events/x", "pro", {}, 405, "method_not_allowed"),
    ("another method", "OPTIONS", "/odds", "pro", {}, 405, "method_not_allowed"),
    ("batch by GET", "GET", "/odds/batch", "pro", {}, 405, "method_not_allowed"),
    ("no key", "GET", "/odds", None, {}, 401, "unauthorized"),
    ("no key for ev", "GET", "/opportunities/ev", None, {}, 401, "unauthorized"),
    ("wrong key", "GET", "/odds", None, {"headers": {"X-API-Key": "nobody"}}, 401, "unauthorized"),
    ("wrong key, none needed", "GET", "/sports", None, {"headers": {"X-API-Key": "x"}}, 401, "unauthorized"),
    ("empty key", "GET", "/odds", None, {"headers": {"X-API-Key": ""}}, 401, "unauthorized"),
    ("wrong bearer", "GET", "/odds", None, {"headers": {"Authorization": "Bearer x"}}, 401, "unauthorized"),
    ("basic", "GET", "/odds", None, {"headers": {"Authorization": "Basic ZGVtbzo="}}, 401, "unauthorized"),
    ("binary key", "GET", "/odds", None, {"headers": {"X-API-Key": b"\xff\x00\x01"[:1]}}, 401, "unauthorized"),
    ("ev for hobby", "GET", "/opportunities/ev", "hobby", {}, 403, "feature_required"),
    ("ev for free", "GET", "/opportunities/ev", "free", {}, 403, "feature_required"),
    ("arbs for free", "GET", "/opportunities/arbitrage", "free", {}, 403, "tier_restricted"),
    ("middles for hobby", "GET", "/opportunities/middles", "hobby", {}, 403, "tier_restricted"),
    ("low hold for free", "GET", "/opportunities/low_hold", "free", {}, 403, "tier_restricted"),
    ("a book above", "GET", "/odds?sportsbook=pinnacle", "free", {}, 403, "tier_restricted"),
    ("a book above, added", "GET", "/odds?add_sportsbook=pinnacle", "hobby", {}, 403, "tier_restricted"),
    ("a book above, in a batch", "POST", "/odds/batch", "free",
     {"json": {"event_ids": ["x"], "sportsbook": "pinnacle"}}, 403, "tier_restricted"),
    ("unknown sport", "GET", "/sports/quidditch", "pro", {}, 404, "not_found"),
    ("unknown league", "GET", "/leagues/quidditch", "pro", {}, 404, "not_found"),
    ("unknown book", "GET", "/sportsbooks/nobodys", "pro", {}, 404, "not_found"),
    ("unknown event", "GET", "/events/nothing", "pro", {}, 404, "not_found"),
    ("its markets", "GET", "/events/nothing/markets", "pro", {}, 404, "not_found"),
    ("its odds", "GET", "/events/nothing/odds", "pro", {}, 404, "not_found"),
    ("unknown middle", "GET", "/opportunities/middles/0123456789abcdef", "pro", {}, 404, "not_found"),
    ("unknown key", "DELETE", "/account/keys/oe_0123456789ab", "pro", {}, 404, "not_found"),
    ("unknown key rotated", "POST", "/account/keys/oe_0123456789ab/rotate", "pro", {}, 404, "not_found"),
    ("a body where none is taken", "POST", "/account/keys/oe_0123456789ab/rotate", "pro",
     {"json": {"grace_seconds": 60}}, 400, "validation_error"),
    ("a body of a list", "GET", "/odds", "pro", {"content": b"[]"}, 400, "validation_error"),
    ("a body that is revoked", "DELETE", "/account/keys/oe_0123456789ab", "pro",
     {"json": {"id": 1}}, 400, "validation_error"),
    ("a body of a stream", "GET", "/stream?channel=odds", "enterprise", {"content": b"x"}, 400, "validation_error"),
    ("an empty object as the body", "POST", "/account/keys/oe_0123456789ab/rotate", "pro",
     {"json": {}}, 404, "not_found"),
    ("spaces as the body", "POST", "/account/keys/oe_0123456789ab/rotate", "pro",
     {"content": b" {\n} "}, 404, "not_found"),
    ("limit 0", "GET", "/odds?limit=0", "pro", {}, 400, "validation_error"),
    ("limit 201", "GET", "/events?limit=201", "pro", {}, 400, "validation_error"),
    ("limit is no number", "GET", "/odds/best?limit=ten", "pro", {}, 400, "validation_error"),
    ("limit is a fraction", "GET", "/odds?limit=1.5", "pro", {}, 400, "validation_error"),
    ("offset 5001", "GET", "/opportunities/ev?offset=5001", "pro", {}, 400, "validation_error"),
    ("offset -1", "GET", "/opportunities/arbitrage?offset=-1", "pro", {}, 400, "validation_error"),
    ("sort", "GET", "/odds?sort=colour", "pro", {}, 400, "validation_error"),
    ("sort of ev", "GET", "/opportunities/ev?sort=colour", "pro", {}, 400, "validation_error"),
    ("live", "GET", "/odds?live=perhaps", "pro", {}, 400, "validation_error"),
    ("min_odds", "GET", "/odds?min_odds=high", "pro", {}, 400, "validation_error"),
    ("nan", "GET", "/opportunities/ev?min_ev=nan", "pro", {}, 400, "validation_error"),
    ("infinity", "GET", "/opportunities/ev?max_ev=inf", "pro", {}, 400, "validation_error"),
    ("date", "GET", "/odds?date=2026-02-30", "pro", {}, 400, "validation_error"),
    ("date_range", "GET", "/opportunities/ev?date_range=year", "pro", {}, 400, "validation_error"),
    ("group_by", "GET", "/odds?group_by=sport", "pro", {}, 400, "validation_error"),
    ("fields", "GET", "/odds?fields=id,colour", "pro", {}, 400, "validation_error"),
    ("format", "GET", "/opportunities/arbitrage?format=xml", "pro", {}, 400, "validation_error"),
    ("region", "GET", "/sportsbooks?region=MARS", "pro", {}, 400, "validation_error"),
    ("cursor", "GET", "/odds?cursor=abc", "pro", {}, 400, "validation_error"),
    ("middle id", "GET", "/opportunities/middles/xyz", "pro", {}, 400, "validation_error"),
    ("comparison of nothing", "GET", "/odds/comparison", "pro", {}, 400, "validation_error"),
    ("delta since never", "GET", "/odds/delta", "pro", {}, 400, "validation_error"),
    ("delta since a word", "GET", "/odds/delta?since=yesterday", "pro", {}, 400, "validation_error"),
    ("history of nothing", "GET", "/splits/history", "pro", {}, 400, "invalid_request"),
    ("history from a word", "GET", "/splits/history?event_id=x&start_time=noon", "pro", {}, 400, "validation_error"),
    ("twice", "GET", "/odds?limit=1&limit=2", "pro", {}, 400, "validation_error"),
    ("no UTF-8", "GET", "/odds?sport=%ff%fe", "pro", {}, 400, "validation_error"),
    ("batch of nothing", "POST", "/odds/batch", "pro", {"json": {"event_ids": []}}, 400, "validation_error"),
    ("batch without ids", "POST", "/odds/batch", "pro", {"json": {}}, 400, "validation_error"),
    ("batch is a list", "POST", "/odds/batch", "pro", {"json": []}, 400, "validation_error"),
    ("batch of numbers", "POST", "/odds/batch", "pro", {"json": {"event_ids": [1]}}, 400, "validation_error"),
    ("no JSON", "POST", "/odds/batch", "pro", {"content": b"{event_ids"}, 400, "validation_error"),
    ("no body", "POST", "/odds/batch", "pro", {}, 400, "validation_error"),
    ("six for free", "POST", "/odds/batch", "free", {"json": {"event_ids": list("abcdef")}}, 400, "validation_error"),
    ("a coding", "POST", "/odds/batch", "pro",
     {"content": b"x", "headers": {"Content-Encoding": "br"}}, 415, "validation_error"),
    ("too large", "POST", "/odds/batch", "pro", {"content": b" " * ((1 << 20) + 1)}, 413, "payload_too_large"),
    ("stream, no key", "GET", "/stream", None, {}, 401, "invalid_api_key"),
    ("stream, wrong key", "GET", "/stream/odds?api_key=x", None, {}, 401, "invalid_api_key"),
    ("stream for free", "GET", "/stream", "free", {}, 403, "tier_restricted"),
    ("stream for hobby", "GET", "/stream/all", "hobby", {}, 403, "tier_restricted"),
    ("stream of games for pro", "GET", "/stream?channel=gamestate", "pro", {}, 403, "tier_restricted"),
    ("stream of nothing", "GET", "/stream?channel=colours", "pro", {}, 400, "validation_error"),
    ("stream of a word", "GET", "/stream?min_ev=high", "pro", {}, 400, "validation_error"),
    ("stream of a book above", "GET", "/stream?sportsbook=sbobet", "pro", {}, 403, "tier_restricted"),
    ("a key above", "POST", "/account/keys", "hobby", {"json": {"tier": "pro"}}, 403, "tier_restricted"),
    ("a key of no tier", "POST", "/account/keys", "hobby", {"json": {"tier": "gold"}}, 400, "validation_error"),
    ("splits without a token", "POST", "/splits", "enterprise", {"json": {"splits": []}}, 401, "unauthorized"),
    ("splits, wrong token", "POST", "/splits", None,
     {"content": b"{", "headers": {"Authorization": "Bearer x"}}, 401, "unauthorized"),
    ("splits of nothing", "POST", "/splits", None,
     {"json": {"splits": []}, "headers": {"Authorization": f"Bearer {SPLITS_TOKEN}"}}, 400, "validation_error"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "tier", "sent", "status", "code"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS]
)
def test_every_error(
    service: Running, method: str, path: str, tier: str | None, sent: Json, status: int, code: str
) -> None:
    with service.client(tier) as client:
        answer = client.request(method, path, **sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    check(answer.json(), "Error", "body")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert re.fullmatch(r"req_[0-9a-f]+", answer.headers["x-request-id"])
    if status == 405:
        assert method not in answer.headers["allow"]
    if status == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")
    if status == 413:  # the rest of the body is not read
        assert answer.headers["connection"] == "close"
    page = documents("").reference.answer.body.decode()
    assert f'id="{code}"' in page, "what the error's docs point at"


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if e.body and e.path != "/mcp"], ids=lambda e: e.path)
def test_an_unknown_field_of_a_body_is_refused(service: Running, endpoint: Endpoint) -> None:
    assert endpoint.body is not None
    with service.client() as client:
        headers = {"Authorization": f"Bearer {SPLITS_TOKEN}"}
        answer = client.request(endpoint.method, endpoint.path, json={"colour": "red"}, headers=headers)
    fields = [field.encode_name for field in msgspec.structs.fields(endpoint.body)]
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        400, f"unknown field 'colour' in the request body; allowed: {', '.join(fields)}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spread", "message"),
    [
        (
            {"colour": "red"},
            "unknown field 'colour' in the request body at splits[0].spread; "
            "allowed: away_odds, home_odds, handle_pct, bets_pct",
        ),
        (
            {"handle_pct": {"draw": 1.0}},
            "unknown field 'draw' in the request body at splits[0].spread.handle_pct; allowed: away, home",
        ),
    ],
)
def test_an_unknown_field_within_a_body_is_refused(service: Running, spread: dict[str, Any], message: str) -> None:
    shares = {"away": 0.25, "home": 0.75}
    whole = {"away_odds": 3.5, "home_odds": -3.5, "handle_pct": shares, "bets_pct": shares}
    record = {"event_id": "nested", "sportsbook": "circa", "spread": {**whole, **spread}}
    with service.client(None) as client:
        headers = {"Authorization": f"Bearer {SPLITS_TOKEN}"}
        answer = client.post("/splits", json={"splits": [record]}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)


@pytest.mark.parametrize(("path", "body", "message"), [
    ("/odds/batch", {}, "event_ids is required"),
    ("/odds/batch", [], "expected an object, got an array"),
    ("/odds/batch", None, "expected an object, got null"),
    ("/odds/batch", {"event_ids": "x"}, "event_ids must be an array, got 'x'"),
    ("/odds/batch", {"event_ids": [], "market": 5}, "market must be a string or null, got 5"),
    ("/deeplinks/batch", {"ids": ["a", 1]}, "ids[1] must be a string, got 1"),
    ("/bets", {"stake": -1}, "stake must be a number above 0, got -1"),
    ("/bets", {"kind": "lay"}, "kind must be one of ev, arbitrage, low_hold, middles, other, got 'lay'"),
    ("/account/keys", {"name": "x" * 101}, "name must be a string of at most 100 characters, got 101 characters"),
    ("/alerts", {"filter": "x", "quiet_from": "9"}, "quiet_from must be a string such as '23:00', got '9'"),
    ("/bets", {"event_start_time": "noon"},
     "event_start_time must be a time (RFC 3339, such as 2026-02-08T18:00:00Z), got 'noon'"),
])  # fmt: skip
def test_a_field_of_a_body_is_described_in_terms_of_json(service: Running, path: str, body: Any, message: str) -> None:
    with service.client() as client:
        answer = client.post(path, content=json.dumps(body))
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, f"invalid request body: {message}")


@pytest.mark.parametrize(
    "body",
    [
        b'{"colour": 1e999}', b'{"colour": "\\ud800"}', b'{"colour": ' * 5000, b'{"colour": "\xff"}',
        b'{"colour": nothing}', b'{"` - at `$.colour": 1}', b'{"\\u0000": 1}', b'{"": 1}',
    ],
    ids=range(8),
)  # fmt: skip
def test_an_unknown_field_may_have_any_name_and_value(service: Running, body: bytes) -> None:
    with service.client() as client:
        answer = client.post("/odds/batch", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "validation_error")
    assert "unknown field" in answer.json()["error"]["message"]


def test_a_message_names_the_parameter_what_came_and_what_is_allowed(service: Running) -> None:
    with service.client() as client:
        for method, path, message in (
            ("GET", "/odds?limit=900", "limit must be a whole number from 1 to 200, got '900'"),
            ("GET", "/odds?group_by=sport", "group_by must be event, got 'sport'"),
            ("GET", "/odds?include=all", "include must be refs, got 'all'"),
            ("GET", "/odds?state=xx", "state must be one of "),
            ("GET", "/odds/delta", "since is required: a time of the board, such as"),
            ("POST", "/odds", "method must be one of GET, HEAD for /api/v1/odds, got POST"),
            ("GET", "/odds/batch", "method must be POST for /api/v1/odds/batch, got GET"),
            ("BREW", "/odds", "method must be one of DELETE, GET, HEAD, PATCH, POST, PUT for this server, got BREW"),
            ("POST", "/odds/batch", "request body must be a JSON object, got an empty body"),
            ("DELETE", "/mcp", "method must be POST for /api/v1/mcp, got DELETE"),
        ):
            assert client.request(method, path).json()["error"]["message"].startswith(message)
        for name, got in (("%2e%2e", "'..'"), ("a%0a", r"'a\n'"), ("x" * 201, "201 characters")):
            answer = client.put(f"/filters/{name}", json={"list": "ev"})
            assert answer.json()["error"]["message"] == (
                f"filterName must be 1 to 200 printable characters, not . or .., got {got}"
            )
    answer = httpx2.post(f"{service.origin}/docs", timeout=PATIENCE_S)
    assert answer.json()["error"]["message"] == "method must be one of GET, HEAD for /docs, got POST"
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/api/v1", "/api/v1/"])
def test_the_base_path_leads_on(service: Running, path: str) -> None:
    answer = httpx2.get(service.origin + path, timeout=PATIENCE_S)
    assert answer.status_code == 200
    for name in ("page", "docs", "openapi", "asyncapi", "health"):
        where = service.origin + answer.json()["data"][name]
        assert httpx2.get(where, timeout=PATIENCE_S).status_code in (200, 429), where


@pytest.mark.parametrize("path", ["/nothing", "/api", "/api/v2/odds", "/favicon.ico"])
def test_elsewhere_errors_have_the_envelope_too(service: Running, path: str) -> None:
    answer = httpx2.get(service.origin + path, timeout=PATIENCE_S)
    assert answer.status_code == 404
    check(answer.json(), "Error", "body")
    assert answer.json()["error"]["code"] == "not_found"
    assert answer.json()["error"]["message"] == f"no such path: {path}; see /docs"
    assert answer.json()["error"]["docs"].endswith("#not_found")
    assert answer.headers["cache-control"] == "no-store"
    for at in ("/docs/", "/openapi.json/", "/docs//"):  # no redirect to a host that the request names
        answer = httpx2.get(f"{service.origin}{at}", headers={"Host": "elsewhere.example"}, timeout=PATIENCE_S)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found"), at
    answer = httpx2.post(f"{service.origin}/docs", timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")


def test_a_failure_of_ours_says_so_and_no_more(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("the innermost thing")

    known = service.service.api.routes["/teams"].endpoints
    monkeypatch.setitem(known, "GET", replace(known["GET"], answer=broken))
    with service.client() as client:
        answer = client.get("/teams?q=fails")
        again = client.get("/teams?q=fails")
        monkeypatch.undo()
        assert client.get("/teams?q=fails").status_code == 200
    assert answer.status_code == again.status_code == 500
    error = answer.json()["error"]
    assert error["code"] == "internal_error"
    assert error["request_id"] == answer.headers["x-request-id"] != again.headers["x-request-id"]
    assert "innermost" not in answer.text
    assert "Traceback" not in answer.text
    logged = [json.loads(line) for line in service.log_text().splitlines()]
    found = next(line for line in logged if line["event"] == "failure" and line["id"] == error["request_id"])
    assert "the innermost thing" in found["trace"]


# ---- keys ----

NEEDED = [
    "/odds", "/odds/best", "/odds/comparison?event=x", "/odds/delta?since=2026-02-07T18:00:00Z", "/events",
    "/opportunities/ev", "/opportunities/arbitrage", "/opportunities/middles", "/opportunities/low_hold", "/splits",
    "/splits/history?event_id=x", "/account", "/account/usage", "/account/keys",
]  # fmt: skip
REFERENCE = ["/sports/basketball", "/leagues/nba", "/sportsbooks", "/sportsbooks/pinnacle", "/markets", "/teams"]
OPTIONAL = ["/sports", "/leagues"]


@pytest.mark.parametrize("path", [*NEEDED, *REFERENCE, *OPTIONAL])
def test_where_a_key_may_come(service: Running, path: str) -> None:
    with service.client(None) as client:
        assert client.get(path).status_code == (200 if path in OPTIONAL else 401)
        assert client.get(path, headers={"X-API-Key": "demo_pro"}).status_code == 200
        for scheme in ("Bearer", "bearer"):
            assert client.get(path, headers={"Authorization": f"{scheme} demo_pro"}).status_code == 200
        more = path + ("&" if "?" in path else "?")
        assert client.get(f"{more}api_key=demo_pro").status_code == (401 if path in NEEDED else 200)
        assert client.get(f"{more}api_key=nobody").status_code == 401
        assert client.get(path, headers={"X-API-Key": "nobody"}).status_code == 401


def test_health_takes_any_key_or_none(service: Running) -> None:
    with service.client(None) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/health", headers={"X-API-Key": "nobody"}).status_code == 200


def test_health_does_not_wait_for_other_answers(service: Running) -> None:
    """A balancer would take a busy node for a dead one."""
    pool, release, begun = (
        service.service.api.pool,
        threading.Event(),
        threading.Barrier(THREADS + 1, timeout=PATIENCE_S),
    )

    def hold() -> None:
        begun.wait()
        release.wait(PATIENCE_S)

    busy = [
        asyncio.run_coroutine_threadsafe(pool.run(f"account {n}", hold), service.service.loop) for n in range(THREADS)
    ]
    begun.wait()
    try:
        with service.client(None) as client:
            for method in ("GET", "HEAD"):
                assert client.request(method, "/health").status_code == 200
        assert [each.done() for each in busy] == [False] * len(busy)
    finally:
        release.set()


def test_a_key_raises_the_limit_of_what_needs_none(service: Running) -> None:
    with service.client(None) as client:
        assert client.get("/sports").headers["x-ratelimit-limit"] == "12"
        assert client.get("/sports?api_key=demo_sharp").headers["x-ratelimit-limit"] == "1000"


def test_keys_are_made_rotated_and_stopped(service: Running) -> None:
    with service.client("hobby") as client:
        answer = client.post("/account/keys", json={"name": "mine", "tier": "free"})
        made = answer.json()["data"]
        assert answer.status_code == 201
        check(made, "Key", "data")
        assert (made["name"], made["tier"], made["is_active"]) == ("mine", "free", True)
        assert answer.headers["cache-control"] == "no-store"
        use = {"X-API-Key": made["key"]}
        assert client.get("/odds", headers=use).headers["x-data-delay"] == "60"
        listed = client.get("/account/keys").json()["data"]
        assert made["id"] in [key["id"] for key in listed]
        assert all("key" not in key for key in listed)
        turned = client.post(f"/account/keys/{made['id']}/rotate", headers={"If-None-Match": "*"})
        assert turned.status_code == 200
        new = {"X-API-Key": turned.json()["data"]["key"]}
        time.sleep(1.0)  # what is promised
        assert client.get("/odds", headers=use).status_code == 401
        assert client.get("/odds", headers=new).status_code == 200
        with service.client("pro") as other:
            assert other.delete(f"/account/keys/{made['id']}").status_code == 404
        gone = client.delete(f"/account/keys/{made['id']}")
        assert (gone.status_code, gone.json()["data"]["key_id"]) == (200, made["id"])
        time.sleep(1.0)
        assert client.get("/odds", headers=new).status_code == 401


def test_keys_are_in_no_log_no_answer_no_metric_no_file(service: Running, tmp_path: Path) -> None:
    with service.client("enterprise") as client:
        made = client.post("/account/keys", json={}).json()["data"]
        key = made["key"]
        secret = key.partition(".")[2]
        wrong = key[:-3] + "xyz"
        answers = []
        for word in (key, wrong):
            for path in ("/sports", "/odds", "/odds?limit=x", "/nothing", "/markets", "/teams?q=%00"):
                more = path + ("&" if "?" in path else "?")
                answers += [
                    client.get(path, headers={"X-API-Key": word}),
                    client.get(path, headers={"Authorization": f"Bearer {word}"}),
                    client.get(f"{more}api_key={word}"),
                    client.post(f"{more}api_key={word}", json={"api_key": word}),
                ]
            answers += [
                client.get(f"/account/keys/{word}"),
                client.delete(f"/account/keys/{word}"),
                client.post("/odds/batch", json={"event_ids": word}),
            ]
    assert {answer.status_code for answer in answers} >= {200, 400, 401, 404, 405}
    metrics = service.service.metrics.text().decode()
    for text in (service.log_text(), metrics, *(answer.text for answer in answers), *(str(a.headers) for a in answers)):
        assert secret[:20] not in text
    folder = Path(service.service.settings.data.folder)
    assert any(folder.iterdir())
    assert all(secret[:20].encode() not in file.read_bytes() for file in folder.iterdir())


# ---- headers ----

LIMITS = (
    "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-data-delay", "x-tier", "x-request-id",
)  # fmt: skip


@pytest.mark.parametrize("tier", TIER_IDS)
def test_limits_and_delay_stand_on_every_answer_to_a_key(service: Running, ids: dict[str, str], tier: str) -> None:
    paths = [each[0].format(**ids) for each in READ]
    paths += ["/odds?limit=0", "/events/nothing", "/odds?sportsbook=nobodys", "/opportunities/ev?sort=x"]
    with service.client(tier) as client:
        for path in paths:
            answer = client.get(path)
            assert [name for name in LIMITS if name not in answer.headers] == [], (path, answer.status_code)
            assert int(answer.headers["x-ratelimit-limit"]) == TIERS[tier].rate
            assert int(answer.headers["x-ratelimit-remaining"]) == TIERS[tier].rate - 1
            assert 0 <= int(answer.headers["x-ratelimit-reset"]) - service.clock() <= 60
            assert answer.headers["x-data-delay"] == ("60" if tier == "free" else "0")


def test_request_ids_are_unique(service: Running) -> None:
    with service.client() as client:
        found = [client.get(path).headers["x-request-id"] for path in ("/health", "/odds", "/x") for _ in range(30)]
    assert len(set(found)) == len(found) == 90


CACHED = [each[0] for each in READ if not each[0].startswith(UNCHANGING)]


@pytest.mark.parametrize("path", CACHED)
def test_what_a_client_has_is_not_sent_again(service: Running, ids: dict[str, str], path: str) -> None:
    path = path.format(**ids)
    plain = {"Accept-Encoding": "identity"}
    with service.client(headers=plain) as client:
        answer = client.get(path)
        tag = answer.headers["etag"]
        assert re.fullmatch(r'"[^"]+"', tag), "a strong one"
        assert "private" in answer.headers["cache-control"]
        assert "Accept-Encoding" in answer.headers["vary"]
        for given in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = client.get(path, headers={"If-None-Match": given})
            assert (again.status_code, again.content) == (304, b""), given
            assert again.headers["etag"] == tag
            assert "x-ratelimit-limit" in again.headers
        assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
        head = client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(answer.content))
        assert head.headers["etag"] == tag


def test_another_board_is_another_answer(service: Running) -> None:
    with service.client() as client:
        before = client.get("/odds?limit=200&live=true&sort=-timestamp")
        service.advance(2)
        after = client.get(
            "/odds?limit=200&live=true&sort=-timestamp", headers={"If-None-Match": before.headers["etag"]}
        )
    assert after.status_code == 200
    assert after.headers["etag"] != before.headers["etag"]


def raw(service: Running, path: str, *accepted: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE_S)
    with closing(connection):
        connection.putrequest("GET", f"/api/v1{path}", skip_accept_encoding=True)
        connection.putheader("X-API-Key", "demo_enterprise")
        for value in filter(None, accepted):
            connection.putheader("Accept-Encoding", value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer, answer.read()


UNPACK: dict[str | None, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "zstd": lambda b: zstandard.ZstdDecompressor().decompress(b),
    None: lambda b: b,
}


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", None), ("identity", None), ("gzip", "gzip"), ("zstd", "zstd"), ("gzip, zstd", "zstd"), ("GZIP", "gzip"),
        ("gzip;q=0", None), ("zstd;q=0, gzip;q=0.5", "gzip"), ("br", None), ("*", "zstd"), ("*, zstd;q=0", "gzip"),
        ("zstd;q=0.5, gzip", "gzip"), ("gzip;q=0.123, zstd;q=0.122", "gzip"), ("gzip ; Q=0.4, *;q=0.3", "gzip"),
        ("identity, gzip;q=0.5", None), ("identity;q=0.5, gzip;q=0.5", "gzip"), ("gzip;q=0.1", "gzip"),
        ("gzip;q=0.2, *;q=0.5", "zstd"), ("zstd;q=0.2, gzip;q=0.2, *;q=0.5", None), ("gzip;q=0.000", None),
        ("gzip;q=abc", None), ("gzip;q=2, zstd;q=-1", None), ("gzip;q=0.1234", None), ("gzip;level=5", None),
        ("gzip;q=, zstd", "zstd"), ("identity;q=0", None), ("*;q=0", None),
    ],
)  # fmt: skip
def test_bodies_are_packed_as_the_client_can(service: Running, accepted: str, coding: str | None) -> None:
    plain, expected = raw(service, "/odds?limit=100", "")
    answer, body = raw(service, "/odds?limit=100", accepted)
    assert answer.headers["content-encoding"] == coding
    assert UNPACK[coding](body) == expected
    assert int(answer.headers["content-length"] or 0) == len(body)
    assert (answer.headers["etag"] == plain.headers["etag"]) == (coding is None), "other bytes, another strong tag"
    if coding:
        assert len(body) < len(expected) / 3
    small, _ = raw(service, "/sports/basketball", accepted)
    assert small.headers["content-encoding"] is None


@pytest.mark.parametrize("accepted", ["identity;q=0, gzip;q=0.1", "gzip, *;q=0"])
def test_a_small_body_is_packed_if_the_client_takes_no_plain_one(service: Running, accepted: str) -> None:
    answer, body = raw(service, "/sports/basketball", accepted)
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == raw(service, "/sports/basketball", "")[1]


def test_an_encoding_may_be_in_any_of_several_headers(service: Running) -> None:
    answer, _ = raw(service, "/odds?limit=100", "zstd;q=0.5, gzip", "br")
    assert answer.headers["content-encoding"] == "gzip"


def test_a_tag_of_any_coding_is_known(service: Running) -> None:
    tags = [raw(service, "/odds?limit=100", coding)[0].headers["etag"] or "" for coding in ("", "gzip", "zstd")]
    assert len(set(tags)) == 3
    with service.client() as client:
        for tag in tags:
            assert client.get("/odds?limit=100", headers={"If-None-Match": tag}).status_code == 304


# ---- tiers ----


def every_row(client: httpx2.Client, path: str, **params: Any) -> list[Json]:
    rows: list[Json] = []
    while True:
        page = client.get(path, params={"limit": 200, **params}).json()
        rows += page["data"]
        if not page["pagination"]["has_more"]:
            return rows
        cursor = page["pagination"].get("next_cursor")
        params |= {"cursor": cursor} if cursor else {"offset": page["pagination"]["next_offset"]}


@pytest.mark.parametrize("tier", TIER_IDS)
def test_a_tier_sees_its_books(service: Running, tier: str) -> None:
    own = books_of(tier)
    with service.client("enterprise") as client:
        there = {row["id"] for row in client.get("/sportsbooks?include_unlisted=true").json()["data"]}
    seen: set[str] = set()
    with service.client(tier) as client:
        seen |= {row["sportsbook"] for row in every_row(client, "/odds", market="main")}
        assert seen == (there if own is None else there & own)
        assert {book for row in every_row(client, "/events") for book in row["books"]} <= seen
        assert {row["sportsbook"] for row in every_row(client, "/odds/best")} <= seen
        if has(tier, "/opportunities/arbitrage"):
            arbs = every_row(client, "/opportunities/arbitrage", min_profit=-5)
            assert {leg["sportsbook"] for row in arbs for leg in row["legs"]} <= seen
            holds = every_row(client, "/opportunities/low_hold", max_hold=10)
            assert {book for row in holds for book in row["all_books"]} <= seen
        if has(tier, "/opportunities/ev"):
            assert {row["sportsbook"] for row in every_row(client, "/opportunities/ev")} <= seen
        for row in client.get("/sportsbooks").json()["data"]:
            may = TIERS[row["requires_tier"]].rank <= TIERS[tier].rank
            asked = client.get("/odds", params={"sportsbook": row["id"], "limit": 1})
            assert asked.status_code == (200 if may else 403), row["id"]
    assert TIERS[tier].books is None or len(seen) <= (TIERS[tier].books or 0)


def test_opportunities_are_computed_over_the_books_that_are_asked_for(service: Running) -> None:
    with service.client() as client:
        every = every_row(client, "/opportunities/low_hold", max_hold=10)
        two = every_row(client, "/opportunities/low_hold", max_hold=10, sportsbook="draftkings,fanduel")
    assert two
    filtered = [row for row in every if set(row["all_books"]) <= {"draftkings", "fanduel"}]
    assert len(two) > len(filtered), "a filter over the best of all books would lose them"


def test_a_free_key_sees_the_board_of_a_minute_ago(service: Running, ids: dict[str, str]) -> None:
    path = f"/events/{ids['event']}/odds"
    asked: Json = {"sportsbook": "draftkings", "limit": 200}
    live: Json = {"sportsbook": "draftkings", "limit": 200, "live": "true", "sort": "event_start_time"}
    with service.client("free") as free, service.client("enterprise") as now:
        then = now.get(path, params=asked).json()["data"], now.get("/odds", params=live).json()["data"]
        service.advance(12)
        late = free.get(path, params=asked).json()["data"], free.get("/odds", params=live).json()["data"]
        current = now.get("/odds", params=live).json()["data"]
    assert then[0]
    assert without_main_lines(list(late)) == without_main_lines(list(then))
    assert current != then[1], "the board moved meanwhile"


@pytest.mark.parametrize("tier", TIER_IDS)
def test_batches_have_the_size_of_the_tier(service: Running, tier: str) -> None:
    most = {"free": 5, "hobby": 20, "pro": 50, "sharp": 100, "enterprise": 100}[tier]
    with service.client(tier) as client:
        fits = client.post("/odds/batch", json={"event_ids": [f"e{n}" for n in range(most)]})
        beyond = client.post("/odds/batch", json={"event_ids": [f"e{n}" for n in range(most + 1)]})
    assert fits.status_code == 200
    assert len(fits.json()["data"]) == most
    assert beyond.status_code == 400


@pytest.mark.parametrize("tier", TIER_IDS)
def test_an_account_says_what_the_tier_is(service: Running, tier: str) -> None:
    rate, books, delay = {
        "free": (12, 2, 60), "hobby": (120, 5, 0), "pro": (300, 15, 0), "sharp": (1000, 999, 0),
        "enterprise": (TIERS["enterprise"].rate, 999, 0),
    }[tier]  # fmt: skip
    with service.client(tier) as client:
        found = client.get("/account").json()["data"]
    assert found["tier"] == tier
    assert found["rate_limit"] == {"requests_per_minute": rate, "max_books": books}
    assert (found["limits"]["odds_delay_seconds"], found["limits"]["max_books"]) == (delay, books)
    streams = {"streaming"} if tier in ("pro", "sharp", "enterprise") else set()
    assert {name for name, has in found["features"].items() if has} == TIERS[tier].features | streams
    assert found["streaming"]["enabled"] == (tier in ("pro", "sharp", "enterprise"))
    assert required("ev").id == "pro"


# ---- a node's life ----


def test_a_node_from_its_start_to_its_end(tmp_path: Path) -> None:
    """Not ready, ready, at its limit, stopping."""
    node = Running(tmp_path, events=2, waits=True).start()
    try:
        with httpx2.Client(base_url=node.base, headers={"X-API-Key": "demo_free"}, timeout=PATIENCE_S) as client:
            down = client.get("/health")
            assert (down.status_code, down.json()["status"]) == (503, "down")
            check(down.json(), "Health", "body")
            for path in ("/odds", "/sports", "/account", "/splits", "/sportsbooks"):
                answer = client.get(path)
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready"), path
            node.begin.set()
            assert node.played.wait(PATIENCE_S)
            until(lambda: client.get("/health").status_code == 200, "getting well")
            well = client.get("/health").json()
            check(well, "Health", "body")
            assert (well["status"], well["version"]) == ("ok", "v1")
            _limited(node, client)
        _stopped_in_flight(node)
    finally:
        node.stop()
    assert '"event":"stopped"' in node.log_text()


def _limited(node: Running, client: httpx2.Client) -> None:
    node.clock.pass_minute()
    reset = 0
    for left in range(11, -1, -1):
        answer = client.get("/odds?limit=1")
        assert answer.status_code == 200
        assert int(answer.headers["x-ratelimit-remaining"]) == left
        reset = int(answer.headers["x-ratelimit-reset"])
    beyond = client.get("/odds?limit=1")
    error = beyond.json()["error"]
    assert (beyond.status_code, error["code"]) == (429, "rate_limited")
    assert [name for name in LIMITS if name not in beyond.headers] == []
    assert beyond.headers["x-ratelimit-remaining"] == "0"
    wait = int(beyond.headers["retry-after"])
    assert wait == error["retry_after"]
    assert 1 <= wait <= reset - time.time() + 2
    assert client.get("/odds", headers={"X-API-Key": "demo_hobby"}).status_code == 200, "another account"
    node.clock.pass_minute()
    assert client.get("/odds?limit=1").status_code == 200
    with httpx2.Client(base_url=node.base, timeout=PATIENCE_S) as nobody:
        assert [nobody.get("/health").status_code for _ in range(20)] == [200] * 20, "what a balancer asks"
        found = [nobody.get("/sports").status_code for _ in range(13)]
    assert found == [200] * 12 + [429], "an address without a key"


def _stopped_in_flight(node: Running) -> None:
    body = json.dumps({"event_ids": ["x"]}).encode()
    head = (
        "POST /api/v1/odds/batch HTTP/1.1\r\nhost: x\r\nx-api-key: demo_pro\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", node.port), PATIENCE_S) as one:
        one.sendall(head.encode() + body[:5])
        until(lambda: '"path":"/nothing"' in _asked(node), "the request in flight")
        stopping = threading.Thread(target=node.stop)
        stopping.start()
        until(node.node.closing.is_set, "stopping")
        one.sendall(body[5:])
        answer = b""
        while part := one.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"success":true' in answer
    stopping.join(PATIENCE_S)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", node.port), 1.0)


def _asked(node: Running) -> str:
    """One more request, whose line in the log says that those before were read."""
    httpx2.get(f"{node.base}/nothing", timeout=PATIENCE_S)
    return node.log_text()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_live_prices_with_public_keys_are_for_this_machine_only(
    tmp_path: Path, host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["serve", "--live", "kalshi", "--sport", "nfl", "--host", host, "--port", "0"]
    assert cli.main(words) != 0
    said = capsys.readouterr().err
    assert "loopback" in said
    assert host in said
    assert not [*tmp_path.iterdir()], "nothing was begun"


def test_an_address_that_is_taken_is_a_sentence(service: Running, tmp_path: Path) -> None:
    environ = {"ODDSENGINE_SERVICE_PORT": str(service.port), "ODDSENGINE_DATA_FOLDER": str(tmp_path)}
    sentence = f"cannot listen on 127.0.0.1 port {service.port}: it is in use; choose another port with --port"
    with pytest.raises(ValueError, match=sentence):
        serve(load(None, environ), environ, demonstration=True, announce=lambda _: None)
    assert [file.name for file in tmp_path.iterdir()] == [LOCK], "it was found before anything was begun"


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("TRUSTED", "proxy.example", "a list of addresses"), ("TRUSTED", "10.0.0.1, 300", "a list of addresses"),
        ("METRICS_TOKEN_ENV", "NOBODY_SET_IT", "is not set or empty"),
        ("SPLITS_TOKEN_ENV", "NOBODY_SET_IT", "is not set or empty"),
        ("METRICS_PORT", "http", "a port"), ("QUIET", "perhaps", "true or false"), ("PROT", "80", "is not a setting"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_used_is_a_sentence(
    tmp_path: Path, setting: str, value: str, said: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"ODDSENGINE_SERVICE_{setting}", value)
    assert cli.main(["serve", "--demo", "--port", "0"]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert said in told[0]
    assert setting.lower() in told[0].lower()


@pytest.mark.parametrize("value", ["10.0.0.1", "10.0.0.1, ::1", "2001:db8::7,fe80::1", ""])
def test_proxies_are_trusted_by_their_addresses(value: str) -> None:
    trusted = load(None, {"ODDSENGINE_SERVICE_TRUSTED": value}).service.trusted
    assert trusted == tuple(part.strip() for part in value.split(",") if part)


def test_a_listener_of_metrics_that_is_taken_is_a_sentence(service: Running, tmp_path: Path) -> None:
    environ = {"ODDSENGINE_SERVICE_METRICS_PORT": str(service.port), "ODDSENGINE_DATA_FOLDER": str(tmp_path)}
    with pytest.raises(ValueError, match=f"port {service.port} for service.metrics_port"):
        serve(load(None, environ), environ, demonstration=True, announce=lambda _: None)


def test_demo_keys_exist_only_in_a_demonstration(tmp_path: Path) -> None:
    from oddsengine_service.accounts.keys import open_store

    store = open_store(load(None, {"ODDSENGINE_DATA_FOLDER": str(tmp_path)}), demo=False)
    try:
        assert [store.find(f"demo_{tier}") for tier in TIER_IDS] == [None] * 5
    finally:
        store.close()


def _health(origin: str) -> str:
    return str(httpx2.get(f"{origin}/api/v1/health", timeout=PATIENCE_S).json()["status"])


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.exhaustive
def test_the_command_as_a_person_runs_it(tmp_path: Path) -> None:
    """Its three lines work as they are pasted, a signal ends it well, and it leaves nothing behind."""
    run = "from oddsengine_cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", run, "serve", "--demo", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(5)]
            lines = [line.strip() for line in said if line.strip().startswith("curl ")]
            assert len(lines) == 3
            assert all(f"demo_{tier}" in "".join(said) for tier in TIER_IDS)
            origin = re.search(r"http://127\.0\.0\.1:\d+", said[0])
            assert origin
            until(lambda: _health(origin[0]) == "ok", "ready")
            for line in lines:
                found = re.fullmatch(r"curl -H '(\S+): (\S+)' '(\S+)'", line)
                assert found, line
                answer = httpx2.get(found[3], headers={found[1]: found[2]}, timeout=PATIENCE_S)
                assert answer.status_code == 200
                if "csv" not in line:
                    assert answer.json()["data"], line
            with httpx2.Client(headers={"X-API-Key": "demo_pro"}, timeout=PATIENCE_S) as client:
                assert client.get(f"{origin[0]}/api/v1/splits").json()["data"]
        finally:
            process.send_signal(signal.SIGTERM)
            _, logged = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    events = [json.loads(line) for line in logged.splitlines() if not line.startswith("oddsengine: compiling")]
    assert events[-1]["event"] == "stopped"
    assert "Traceback" not in logged
    assert list(tmp_path.iterdir()) == []


def test_a_caller_who_breaks_off_is_logged_as_gone(service: Running) -> None:
    head = "POST /api/v1/odds/batch HTTP/1.1\r\nhost: x\r\nx-api-key: demo_pro\r\ncontent-length: 100\r\n\r\n"
    before = service.log_text().count('"status":499')
    with socket.create_connection(("127.0.0.1", service.port), PATIENCE_S) as line:
        line.sendall(head.encode() + b"{")
    until(lambda: service.log_text().count('"status":499') == before + 1, "the line of the log")


# ---- what describes it ----


def test_the_description_is_valid_and_whole(service: Running) -> None:
    document = httpx2.get(f"{service.origin}/openapi.json", timeout=PATIENCE_S).json()
    assert document["openapi"] == "3.1.0"
    validate(document)
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    ids_ = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(ids_) == len(set(ids_))


def test_its_examples_are_answers(service: Running) -> None:
    """Every answer with a body of JSON has one, which fits what is said of it, and the contract."""
    document = httpx2.get(f"{service.origin}/openapi.json", timeout=PATIENCE_S).json()
    kinds = {}
    for path, envelope, kind, meta in READ:
        bare = path.partition("?")[0].replace("{middle}", "{id}")
        if "group_by" not in path:
            kinds[re.sub("{(sport|league|book|event)}", r"{\1Id}", bare)] = (envelope, kind, meta)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            media = next(iter(operation["responses"].values())).get("content", {}).get("application/json")
            if media is None:
                continue
            where = f"{method} {path} example"
            example = media["example"]
            schema = {**media["schema"], "components": document["components"]}
            jsonschema_rs.Draft202012Validator(schema).validate(example)
            envelope, kind, meta = kinds.get(path, ("", "", "")) if method == "get" else ("", "", "")
            if envelope:
                check(example, envelope, where)
            if kind:
                assert example["data"], where
                check(example["data"], kind, where)
            if meta:
                check(example["meta"], meta, where)


def test_the_page_for_people(service: Running) -> None:
    answer = httpx2.get(f"{service.origin}/docs", timeout=PATIENCE_S)
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for endpoint in ENDPOINTS:
        assert f"{endpoint.method} {endpoint.path}</h3>" in answer.text
        for field in () if endpoint.body is None else endpoint.body.__struct_fields__:
            assert f"<code>{field}</code>" in answer.text, "what may stand in a body"
    for tier in TIERS.values():
        assert f"<td><code>{tier.id}</code></td><td>{tier.rate:,}</td>" in answer.text
    assert "For the tier pro and above." in answer.text
    assert "<td>number from 0 to 10,000</td>" in answer.text
    assert "<td>today | tomorrow | date</td>" in answer.text
    assert "1,000,000,000" not in answer.text, "a limit that stands for none"
    assert "<script" not in answer.text
    assert "`" not in re.sub("<style>.*</style>|<pre>.*?</pre>", "", answer.text, flags=re.DOTALL)


def test_metrics(service: Running) -> None:
    with service.client() as client:
        client.get("/odds?limit=3")
        client.get("/nothing/as/that")
    at = f"{service.origin}/metrics"
    for headers in ({}, {"Authorization": "Bearer x"}, {"X-API-Key": "demo_enterprise"}):
        refused = httpx2.get(at, headers=headers, timeout=PATIENCE_S)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
    answer = httpx2.get(at, headers={"Authorization": f"Bearer {METRICS_TOKEN}"}, timeout=PATIENCE_S)
    found = {family.name: family for family in text_string_to_metric_families(answer.text)}
    asked = found["oddsengine_requests"].samples
    assert any(s.labels == {"route": "/odds", "method": "GET", "status": "200"} and s.value > 0 for s in asked)
    assert {s.labels["route"] for s in asked} <= {
        "(none)", "/", "/docs", "/openapi.json", "/asyncapi.json", "/metrics",
        *(endpoint.path for endpoint in ENDPOINTS),
    }  # fmt: skip
    assert found["oddsengine_board_rows"].samples[0].value == service.node.engine.size
    for name in ("updates", "set_aside", "opportunities", "request_seconds"):
        assert found[f"oddsengine_{name}"].samples, name


def test_splits_of_an_operator(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {"away": 0.25, "home": 0.75}
    record = {
        "event_id": "posted", "sportsbook": "circa", "sport": "football", "league": "nfl", "home_team": "H",
        "away_team": "A", "spread": {"away_odds": 3.5, "home_odds": -3.5, "handle_pct": shares, "bets_pct": shares},
    }  # fmt: skip
    with service.client(None) as client:
        body = {"splits": [record]}
        others = [{"Authorization": f"Bearer {token}"} for token in ("x", SPLITS_TOKEN[:-1])]
        for headers in ({}, *others, {"X-API-Key": "demo_enterprise"}):
            refused = client.post("/splits", json=body, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
        with monkeypatch.context() as unset:
            unset.setattr(service.node, "splits_token", "")
            assert client.post("/splits", json=body, headers={"Authorization": "Bearer x"}).status_code == 401
        taken = client.post("/splits", json=body, headers={"Authorization": f"Bearer {SPLITS_TOKEN}"})
        assert taken.json()["data"] == {"accepted": 1, "ignored": 0}
        found = client.get("/splits?event=posted", headers={"X-API-Key": "demo_pro"}).json()["data"]
    assert [row["spread"]["handle_pct"] for row in found] == [shares]
    assert found[0]["total"] is None


def test_lines_of_the_log(service: Running) -> None:
    with service.client("pro") as client:
        answer = client.get("/odds?limit=7&secret=word")
    found = logged(service, answer)
    assert (found["event"], found["route"], found["status"], found["account"]) == ("request", "/odds", 200, "demo_pro")
    assert datetime.fromisoformat(found["at"]).tzinfo == UTC
    assert found["ms"] > 0
    assert "word" not in json.dumps(found)


def logged(service: Running, answer: httpx2.Response) -> dict[str, Any]:
    """The line of the log about a request, which is written after the answer."""
    found: list[dict[str, Any]] = []

    def there() -> bool:
        lines = [json.loads(line) for line in service.log_text().splitlines()]
        found[:] = [line for line in lines if line.get("id") == answer.headers["x-request-id"]]
        return bool(found)

    until(there, "the line of the log")
    return found[0]


@pytest.mark.parametrize(
    ("path", "route", "status"),
    [("/", "/", 200), ("/docs", "/docs", 200), ("/metrics?secret=word", "/metrics", 401), ("/nowhere", "(none)", 404)],
)
def test_requests_outside_the_api_are_logged(service: Running, path: str, route: str, status: int) -> None:
    answer = httpx2.get(f"http://127.0.0.1:{service.port}{path}", timeout=PATIENCE_S)
    assert answer.status_code == status
    found = logged(service, answer)
    assert (found["event"], found["route"], found["status"]) == ("request", route, status)
    assert found["address"] == "127.0.0.1"
    assert "word" not in json.dumps(found)


@pytest.mark.parametrize(
    ("sent", "status", "error"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, "a request must have exactly one Host header, got none"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431, "request headers must be at most 65,536 bytes"),
    ],
)  # fmt: skip
def test_requests_refused_before_they_are_parsed_are_logged(
    service: Running, sent: bytes, status: int, error: str
) -> None:
    with socket.create_connection(("127.0.0.1", service.port), PATIENCE_S) as client:
        client.sendall(sent)
        assert client.recv(100).startswith(b"HTTP/1.1 %d " % status)

    def refusals() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in service.log_text().splitlines()]
        return [line for line in lines if line["event"] == "refused" and line["status"] == status]

    until(lambda: bool(refusals()), "a line of the log")  # it is written after the response
    (found,) = refusals()
    assert (found["error"], found["address"]) == (error, "127.0.0.1")


@pytest.mark.parametrize(
    ("path", "shown", "origin", "status"),
    [("/api/v1/odds", "/odds", "https://app.example.com", 200), ("/docs", "/docs", "https://app.example.com", 200)],
)
def test_preflights_are_logged(service: Running, path: str, shown: str, origin: str, status: int) -> None:
    asked = {"Origin": origin, "Access-Control-Request-Method": "GET"}
    answer = httpx2.options(f"http://127.0.0.1:{service.port}{path}", headers=asked, timeout=PATIENCE_S)
    assert answer.status_code == status
    found = logged(service, answer)
    assert (found["method"], found["path"], found["status"]) == ("OPTIONS", shown, status)
    assert found["address"] == "127.0.0.1"


def test_the_log_has_the_address_of_a_malformed_request(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port), PATIENCE_S) as client:
        client.sendall(b"nonsense\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
    lines = [json.loads(line) for line in service.log_text().splitlines()]
    found = next(line for line in lines if line["event"] == "server")
    assert (found["level"], found["address"]) == ("warning", "127.0.0.1")


def test_every_tier_and_book_of_these_tests_exists() -> None:
    assert TIER_IDS == ("free", "hobby", "pro", "sharp", "enterprise")
    assert {"pinnacle", "draftkings", "fanduel", "circa"} <= set(catalog.books())


def test_http_1_0_gets_no_chunks(service: Running) -> None:
    """Its bodies end with the connection, if their length is not known before."""
    for path in ("/api/v1/stream/odds?sport=nope", "/api/v1/sports"):
        with closing(socket.create_connection(("127.0.0.1", service.port), PATIENCE_S)) as line:
            line.sendall(f"GET {path} HTTP/1.0\r\nx-api-key: demo_enterprise\r\n\r\n".encode())
            got = b""
            while b"snapshot:complete" not in got and (part := line.recv(1 << 16)):
                got += part
        head, _, body = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"transfer-encoding" not in head.lower()
        assert b"connection: close" in head.lower()
        assert re.match(rb"[:a-z{]", body), body[:50]
