"""Details of the interface over a socket: names of parameters, keys, methods, links, pages, figures and MCP errors."""

import http.client
import json
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from support.service_running import PATIENCE_S, Running, running
from websockets.sync.client import connect

from oddsengine import catalog
from oddsengine_service.monitoring.metrics import METHODS
from oddsengine_service.routes import history_routes
from oddsengine_service.site import description, documents

Json = dict[str, Any]


# ---- parameters ----

# path, name in the interface, other names
NAMES = [
    ("/historical/clv", "group_by", ("by",)),
    ("/historical/clv", "from", ("since",)),
    ("/historical/clv", "to", ("until",)),
    ("/odds/closing", "event_id", ("event",)),
    ("/odds/comparison", "event", ("event_id",)),
    ("/odds", "event", ("event_id",)),
    ("/splits", "event", ("event_id",)),
    ("/ws", "event_id", ("event",)),
]


@pytest.mark.parametrize(("path", "name", "others"), NAMES)
def test_parameters_have_the_names_of_the_interface(
    service: Running, path: str, name: str, others: tuple[str, ...]
) -> None:
    declared = description()["paths"][path]["get"]["parameters"]
    (found,) = [param for param in declared if param["name"] == name]
    for other in others:
        assert f"`{other}`" in found["description"]
        assert other not in [param["name"] for param in declared]


def test_clv_takes_both_names(service: Running) -> None:
    with service.client() as client:
        for name in ("group_by", "by"):
            body = client.get("/historical/clv", params={name: "league", "from": "2026-02-01T00:00:00Z"}).json()
            assert body["meta"]["group_by"] == "league"
            assert "ignored" not in body["meta"]
        late = client.get("/historical/clv?since=2026-02-02T00:00:00Z&until=2026-02-01T00:00:00Z")
    assert late.status_code == 400
    assert late.json()["error"]["message"].startswith("to must not be before from")
    with service.client() as client:
        wrong = client.get("/historical/clv?since=noon")
    assert wrong.json()["error"]["message"].startswith("since must be a time"), "the name that was given"


def test_a_socket_is_filtered_by_event_id(service: Running) -> None:
    event = service.ids()["event"]
    for name in ("event_id", "event"):
        with connect(
            f"ws://127.0.0.1:{service.port}/ws?channels=odds&{name}={event}",
            additional_headers={"X-API-Key": "demo_enterprise"},
        ) as client:
            kinds: dict[str, Json] = {}
            while "snapshot:complete" not in kinds:
                message = json.loads(client.recv(timeout=PATIENCE_S))
                kinds[message["type"]] = message
        assert kinds["subscribed"]["eventIds"] == [event]
        assert {row["event_id"] for row in kinds["initial"]["data"]} == {event}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/splits/history", "invalid_request"),
        ("/odds/closing", "validation_error"),
        ("/odds/history", "validation_error"),
    ],
)
def test_only_the_splits_history_has_a_code_of_its_own(service: Running, path: str, code: str) -> None:
    with service.client() as client:
        answer = client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_limits_of_numbers_are_written_out(service: Running) -> None:
    with service.client() as client:
        error = client.get("/odds?min_odds=high").json()["error"]
    assert error["message"] == "min_odds must be a number from -1,000,000,000 to 1,000,000,000, got 'high'"


# ---- keys ----


def test_an_empty_key_is_no_key(service: Running) -> None:
    with service.client(None) as client:
        headers: dict[str, str]
        for headers in ({"X-API-Key": ""}, {"Authorization": "Bearer"}, {"X-API-Key": "", "Authorization": "Bearer"}):
            assert client.get("/sports", headers=headers).status_code == 200
            refused = client.get("/odds", headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
            assert "required" in refused.json()["error"]["message"]
        assert client.get("/sports?api_key=").status_code == 200
        for headers, query in (
            ({"X-API-Key": "", "Authorization": "Bearer demo_pro"}, ""),
            ({"X-API-Key": "", "Authorization": "Bearer"}, "?api_key=demo_pro"),
        ):
            answer = client.get(f"/sports{query}", headers=headers)
            assert (answer.status_code, answer.headers["x-tier"]) == (200, "pro")
        assert client.get("/sports", headers={"X-API-Key": "nobody"}).status_code == 401


# ---- methods ----


@pytest.mark.parametrize("method", ["FOO", "get", "BREW-COFFEE"])
@pytest.mark.parametrize("path", ["/api/v1/odds", "/docs"])
def test_a_method_that_http_does_not_define_is_not_allowed(service: Running, method: str, path: str) -> None:
    client = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE_S)
    client.request(method, path, headers={"X-API-Key": "demo_pro"})
    answer = client.getresponse()
    error = json.loads(answer.read())["error"]
    client.close()
    assert (answer.status, error["code"]) == (405, "method_not_allowed")
    assert method in error["message"]
    assert answer.headers["allow"] == ", ".join(sorted(METHODS))


def test_allowed_methods_are_those_of_all_endpoints(service: Running) -> None:
    methods = {method for route in service.service.api.routes.values() for method in route.endpoints}
    assert sorted(methods | {"HEAD"}) == sorted(METHODS)


@pytest.mark.parametrize("path", ["/ws", "/api/v1/ws"])
def test_a_socket_needs_an_upgrade(service: Running, path: str) -> None:
    answer = httpx2.get(service.origin + path, headers={"X-API-Key": "demo_pro"}, timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()["error"]["code"]) == (426, "upgrade_required")
    assert answer.headers["upgrade"] == "websocket"
    assert "upgrade" in answer.headers["connection"].lower()
    assert httpx2.get(service.origin + path, timeout=PATIENCE_S).status_code == 401
    for code in ("upgrade_required", "origin_not_allowed"):
        assert f'id="{code}"'.encode() in documents("").reference.answer.body, "what the error's docs point at"


# ---- links ----


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with one game: the links of a source, one that needs a state, and none."""
    with running(tmp_path_factory.mktemp("linked"), events=1) as server:
        now = server.node.engine.now
        assert now is not None
        urls = {
            "betmgm": "https://sports.{state}.betmgm.com/en/sports/events/7",
            "draftkings": "https://sportsbook.draftkings.com/event/7",
        }
        rows = [
            {
                "sportsbook": book, "event_id": "linked", "sport": "basketball", "league": "nba",
                "home_team": "Boston Celtics", "away_team": "Miami Heat", "market_type": "total_points", "line": line,
                "selection": side, "odds_decimal": odds, "is_live": False, "deep_link": urls.get(book),
                "event_start_time": now + timedelta(hours=3), "last_seen_at": now,
            }
            for book, line, over, under in (
                ("betmgm", 220.5, 2.0, 1.85), ("caesars", 220.5, 1.86, 1.99), ("draftkings", 223.5, 1.85, 2.02),
                ("fanduel", 220.5, 2.0, 1.84), ("pinnacle", 220.5, 1.93, 1.93), ("pinnacle", 223.5, 1.98, 1.88),
            )
            for side, odds in (("Over", over), ("Under", under))
        ]  # fmt: skip
        server.node.write(server.node.step, rows, now).result(PATIENCE_S)
        yield server


@pytest.mark.parametrize("state", ["", "nj"])
def test_sides_link_to_their_books_as_their_prices_do(linked: Running, state: str) -> None:
    with linked.client() as client:
        where: Json = {"event": "linked", "limit": 200} | ({"state": state} if state else {})
        prices = {row["id"]: row["deep_link"] for row in client.get("/odds", params=where).json()["data"]}
        holds = client.get("/opportunities/low_hold", params={**where, "max_hold": 10}).json()["data"]
        middles = client.get("/opportunities/middles", params={**where, "min_ev": -50}).json()["data"]
    assert holds
    assert middles
    books = set()
    for row in holds:
        for side in (row["side1"], row["side2"]):
            assert set(side["deep_links"]) == set(side["books"])
            for book, link in side["deep_links"].items():
                assert link == prices[side["odds_ids"][book]]
                books.add(book)
    for row in middles:
        for side in (row["side1"], row["side2"]):
            assert side["deep_link"] == prices[side["odds_id"]]
            books.add(side["book"])
    assert books >= {"betmgm", "caesars", "draftkings", "fanduel"}
    assert not any("{" in link for link in prices.values())


def test_streams_have_the_links_of_lists(linked: Running) -> None:
    with linked.client() as client:
        held = client.get("/opportunities/low_hold?event=linked&limit=200").json()["data"]
        links = {row["id"]: [row[side]["deep_links"] for side in ("side1", "side2")] for row in held}
        with client.stream("GET", "/stream?event=linked&min_ev=50") as answer:
            name, seen = "", {}
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: ") and name == "low_hold:detected":
                    for row in json.loads(line.removeprefix("data: ")):
                        seen[row["id"]] = [row[side]["deep_links"] for side in ("side1", "side2")]
                elif name == "snapshot:complete":
                    break
    assert seen == links != {}


# ---- references of arbitrages ----


def test_an_arbitrage_names_the_reference_of_its_ev(service: Running) -> None:
    with service.client() as client:
        rows = client.get("/opportunities/arbitrage?min_profit=-99&limit=200").json()["data"]
        named = client.get("/opportunities/ev?min_ev=-100&limit=200").json()["data"]
    assert any(row["ev_available"] for row in rows)
    sharps = {(row["odds_id"], row["ev_percentage"]): row["sharp_book"] for row in named}
    matched = 0
    for row in rows:
        assert (row["devig_book"] is not None) is row["ev_available"] is (row["ev_percentage"] is not None)
        for leg in row["legs"]:
            if (sharp := sharps.get((leg["odds_id"], row["ev_percentage"]))) is not None:
                assert row["devig_book"] == sharp
                matched += 1
    assert matched


# ---- pages ----


def test_closing_lines_have_the_limits_of_other_lists(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = service.ids()
    declared = description()["paths"]["/historical/odds/closing"]["get"]["parameters"]
    (limit,) = [param["schema"] for param in declared if param["name"] == "limit"]
    assert (limit["default"], limit["minimum"], limit["maximum"]) == (50, 1, 200)
    with service.client() as client:
        whole = client.get("/historical/odds/closing?limit=200").json()
        assert whole["meta"]["count"] == whole["meta"]["total"] > 0
        assert ids["closed"] in [row["event_id"] for row in whole["data"]]
        monkeypatch.setattr(history_routes, "MOST_LINES", 1)  # one event is a page
        seen, offset = [], 0
        while True:
            page = client.get("/historical/odds/closing", params={"offset": offset}).json()
            assert len(page["data"]) == 1
            seen += page["data"]
            if not page["pagination"]["has_more"]:
                break
            offset = page["pagination"]["next_offset"]
    assert seen == whole["data"]


# ---- figures ----

SIX_DIGITS = ("odds", "probability", "kelly", "conversion", "break_even")


@pytest.mark.parametrize(
    "path",
    [
        "hedge?stake=100&odds=3.1&against=1.7",
        "middle?total=100&odds=1.87&against=1.91&probability=0.07",
        "boost?odds=2.7&boost=33&probability=0.29",
        "free-bet?stake=77&odds=3.3&against=1.41",
        "free-bet?stake=77&odds=3.3&lay=3.41&commission=2",
        "qualifying?stake=77&odds=3.3&lay=3.41&commission=2",
        "parlay?odds=1.87,2.31,1.91&probabilities=0.53,0.41,0.52",
        "arbitrage?odds=2.17,2.03&total=101&step=0",
    ],
)
def test_figures_are_rounded(service: Running, path: str) -> None:
    with service.client() as client:
        figures = client.get(f"/calculators/{path}").json()["data"]
    for name, value in figures.items():
        for number in value if isinstance(value, list) else [value]:
            assert number == round(number, 6 if name in SIX_DIGITS else 4), name


def test_matched_bets(service: Running) -> None:
    """Against a lay price with a commission; the figures are those of the library's worked examples."""
    with service.client() as client:

        def ask(path: str) -> Any:
            return client.get(f"/calculators/{path}").json()

        assert ask("qualifying?stake=10&odds=2&lay=2.1&commission=5")["data"] == {
            "stake": 10.7317, "lay_stake": 9.7561, "result": -0.7317,
        }  # fmt: skip
        assert ask("qualifying?stake=10&odds=2&against=1.909091")["data"]["lay_stake"] is None
        assert ask("free-bet?stake=50&odds=3&lay=3.05&commission=5")["data"]["profit"] == 31.6667
        assert ask("hedge?stake=100&odds=3&against=2&commission=10")["data"]["stake"] == 157.8947
        for path in ("qualifying?odds=2", "free-bet?odds=2&against=2&lay=2"):
            assert "give either against" in ask(path)["error"]["message"]


# ---- MCP ----

CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
MALFORMED: list[Any] = [
    "", "{", "\x00", "NaN", "[" * 30_000, '{"id":' + "9" * 5000 + "}", '{"method":"\\ud800"}', None, 5, [], [CALL], {},
    {"result": 1}, {**CALL, "jsonrpc": "1.0"}, {**CALL, "method": 5}, {**CALL, "params": [1]},
    {"jsonrpc": "2.0", "method": 5}, {"jsonrpc": "2.0", "id": 1, "error": 5},
]  # fmt: skip
# Well-formed messages, and the codes of their errors
REFUSED: list[tuple[dict[str, Any], int]] = [
    (CALL, -32602), ({**CALL, "params": {"name": 5}}, -32602),
    ({**CALL, "params": {"name": "kelly", "arguments": []}}, -32602),
    ({**CALL, "params": {"name": "kelly", "_meta": 5}}, -32602), ({**CALL, "method": "initialize"}, -32602),
    ({**CALL, "method": "tools/list", "params": {"cursor": 5}}, -32602), ({**CALL, "method": "nothing"}, -32601),
]  # fmt: skip
VERSIONS = [None, "", "nothing", "2025-11-25", "2026-07-28"]  # of the protocol; each side of 2026 has its own parser


def said(service: Running, message: Any, version: str | None) -> httpx2.Response:
    content = message if isinstance(message, str) else json.dumps(message)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if version is not None:
        headers["MCP-Protocol-Version"] = version
    with service.client() as client:
        return client.post("/mcp", content=content, headers=headers)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_malformed_mcp_message_gets_an_error_and_is_no_failure(
    service: Running, version: str | None, caplog: pytest.LogCaptureFixture
) -> None:  # fmt: skip
    begun = service.log_text().count('"failure"')
    for message in MALFORMED:
        answer = said(service, message, version)
        assert 400 <= answer.status_code < 500, (message, answer.text)
        assert (answer.json()["id"], answer.json()["error"]["code"] < -32000) == (None, True), (message, answer.text)
    for message, _ in REFUSED:
        assert said(service, message, version).status_code < 500
    assert service.log_text().count('"failure"') == begun
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


@pytest.mark.parametrize(("message", "code"), REFUSED)
def test_a_well_formed_mcp_message_gets_its_error_by_its_id(
    service: Running, message: dict[str, Any], code: int
) -> None:  # fmt: skip
    answer = said(service, message, None)
    assert (answer.status_code, answer.json()["id"], answer.json()["error"]["code"]) == (200, 7, code)


def test_mcp_takes_json_only(service: Running) -> None:
    with service.client() as client:
        answer = client.post("/mcp", content=json.dumps(CALL), headers={"Content-Type": "text/plain"})
        fine = client.post("/mcp", json={**CALL, "method": "ping"}, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "validation_error")
    assert "'text/plain'" in answer.json()["error"]["message"]
    assert fine.json() == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_every_book_of_a_row_is_an_id(linked: Running) -> None:
    now = linked.node.engine.now
    assert now is not None
    rows = [
        {
            "sportsbook": book, "event_id": "named", "sport": "basketball", "league": "nba",
            "home_team": "Denver Nuggets", "away_team": "Utah Jazz", "market_type": "moneyline",
            "selection": team, "odds_decimal": odds, "is_live": False,
            "event_start_time": now + timedelta(hours=3), "last_seen_at": now,
        }
        for book, home, away in (("Pinnacle", 1.95, 1.95), ("FanDuel", 2.08, 1.8), ("DraftKings", 1.8, 2.08))
        for team, odds in (("Denver Nuggets", home), ("Utah Jazz", away))
    ]  # fmt: skip
    linked.node.write(linked.node.step, rows, now).result(PATIENCE_S)
    with linked.client() as client:
        value = client.get("/opportunities/ev?event=named").json()["data"]
        sure = client.get("/opportunities/arbitrage?event=named").json()["data"]
    assert value
    assert sure
    for row in [*value, *sure]:
        assert catalog.book(row["devig_book"]).id == row["devig_book"]
