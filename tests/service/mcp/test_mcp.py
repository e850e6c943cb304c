"""The tools for language models, called by the official SDK's client over a real socket."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from datetime import datetime
from typing import Any

import pytest
from support.effort import some
from support.service_running import PATIENCE_S, Running

from oddsengine.maths.devig import devig
from oddsengine_cli import main
from oddsengine_service.mcp.tools import BY_NAME, MOST_BYTES, MOST_ROWS, TOOLS
from oddsengine_service.tiers import TIERS

NAMES = {
    "get_sports", "get_leagues", "get_sportsbooks", "get_markets", "get_events", "get_odds", "get_odds_delta",
    "get_best_odds", "compare_odds", "get_closing_lines", "get_futures_odds", "compare_futures_lines",
    "find_ev_opportunities", "find_arbitrage", "find_middles", "find_low_hold", "get_account_info",
    "explain_opportunity", "devig", "kelly", "what_was_rejected",
}  # fmt: skip


@contextlib.asynccontextmanager
async def client(service: Running, tier: str, way: str = "header") -> AsyncIterator[Any]:
    import httpx2  # here, because it takes half a second in each process that collects tests
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    address, headers = f"{service.base}/mcp", dict[str, str]()
    if way == "query":
        address += f"?api_key=demo_{tier}"
    else:
        headers = {"X-API-Key": f"demo_{tier}"} if way == "header" else {"Authorization": f"Bearer demo_{tier}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(address, http_client=http)) as made,
    ):
        yield made


def call(service: Running, tier: str, name: str, **arguments: Any) -> Any:
    """The answer of one call."""
    service.clock.pass_minute()

    async def ask() -> Any:
        async with client(service, tier) as made:
            return await made.call_tool(name, arguments)

    found = asyncio.run(ask())
    (content,) = found.content
    assert len(content.text) <= MOST_BYTES
    return content.text if found.is_error else json.loads(content.text)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


@pytest.mark.parametrize("way", ["header", "bearer", "query"])
def test_tools_are_listed_to_whoever_has_a_key(service: Running, way: str) -> None:
    async def ask() -> Any:
        async with client(service, "free", way) as made:
            return made.server_info, made.instructions, await made.list_tools()

    info, instructions, listed = run(ask())
    assert info.name == "oddsengine"
    assert "get_events" in instructions
    assert {tool.name for tool in listed.tools} == NAMES == set(BY_NAME)
    for tool in listed.tools:
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert all(each["description"] for each in tool.input_schema["properties"].values())


def test_rest_and_the_root_answer_alike(service: Running) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream"}
    root = service.base.removesuffix("/api/v1")
    with service.client("free", headers=headers) as http:
        answers = [http.post(address, json=body) for address in (f"{service.base}/mcp", f"{root}/mcp")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


def test_who_may_not_call_is_refused(service: Running) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with service.client(None) as http:
        assert http.post("/mcp", json=body).json()["error"]["code"] == "unauthorized"
        assert http.post("/mcp", json=body, headers={"X-API-Key": "nobody"}).status_code == 401
    with service.client("pro") as http:
        assert http.get("/mcp").status_code == 405
        assert http.delete("/mcp").headers["allow"] == "POST"
        assert http.post("/mcp", content=b"x" * 100_000).status_code == 413
        assert http.post("/mcp", content=b"no json").status_code == 415
        assert http.post("/mcp", content=b"no json", headers={"Content-Type": "application/json"}).status_code == 400
        assert http.post("/mcp", json=body, headers={"Origin": "https://evil.example"}).status_code in (200, 403, 406)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@pytest.mark.parametrize("tier", some(["pro", "free", "enterprise"], 1))
def test_every_tool_answers_as_its_endpoint(service: Running, tier: str, tool: Any) -> None:
    ids = service.ids()
    found = call(service, tier, tool.name, **_arguments(tool.name, service, ids))
    feature = {
        "find_ev_opportunities": "ev", "find_arbitrage": "arbitrage", "find_middles": "middles",
        "find_low_hold": "low_hold", "get_futures_odds": "futures", "compare_futures_lines": "futures",
    }.get(tool.name)  # fmt: skip
    if feature is not None and feature not in TIERS[tier].features:
        assert found.startswith(("tier_restricted: ", "feature_required: ")), found
        return
    if tool.name == "explain_opportunity":
        assert isinstance(found, str) == (tier == "free"), found
        return
    assert not isinstance(found, str), found
    assert datetime.fromisoformat(found["now"])
    if "rows" in found:
        assert found["shown"] == len(found["rows"]) <= MOST_ROWS
        assert ("more" in found) == (found["shown"] < found["total"])


def _arguments(name: str, service: Running, ids: dict[str, str]) -> dict[str, Any]:
    if name == "explain_opportunity":
        row = call(service, "pro", "find_ev_opportunities", limit=1, min_ev=-5)["rows"][0]
        return {"id": row["id"], "event_id": row["event_id"]}
    known: dict[str, dict[str, Any]] = {
        "compare_odds": {"event": ids["event"]}, "get_closing_lines": {"event_id": ids["closed"]},
        "get_odds_delta": {"since": ids["since"]}, "devig": {"odds": "-110,-110", "format": "american"},
        "kelly": {"probability": 0.55, "odds": "2.0", "format": "decimal"},
        "what_was_rejected": {"sport": ids["sport"]},
    }  # fmt: skip
    return known.get(name, {})


def test_pages_follow_each_other(service: Running) -> None:
    first = call(service, "enterprise", "get_odds", market="main", limit=5)
    assert first["shown"] == 5
    assert first["more"] == "call get_odds again with offset=5"
    second = call(service, "enterprise", "get_odds", market="main", limit=5, offset=5)
    assert not {row["odds_id"] for row in first["rows"]} & {row["odds_id"] for row in second["rows"]}
    many = call(service, "enterprise", "get_odds", limit=MOST_ROWS)
    assert many["shown"] <= MOST_ROWS


def test_units_say_what_they_are(service: Running) -> None:
    with service.client("pro") as http:
        listed = {row["id"]: row for row in http.get("/opportunities/ev?min_ev=-5&limit=200").json()["data"]}
    found = call(service, "pro", "find_ev_opportunities", min_ev=-5, limit=5)
    for row in found["rows"]:
        twin = listed[row["id"]]
        assert row["ev_percent"] == twin["ev_percentage"]
        assert row["full_kelly_fraction"] == twin["kelly_percent"]
        assert 0.0 < row["fair_probability"] < 1.0
        assert abs((row["fair_probability"] * row["odds_decimal"] - 1.0) * 100.0 - row["ev_percent"]) < 0.01
        assert row["event_id"] == twin["game_id"]
    price = call(service, "enterprise", "get_odds", limit=1)["rows"][0]
    assert 0.0 <= price["age_seconds"] < 600.0
    assert price["can_be_bet"] or price["rejected_because"]
    assert abs(price["implied_probability"] - 1.0 / price["odds_decimal"]) < 1e-5
    low = call(service, "pro", "find_low_hold", limit=1)["rows"][0]
    assert len(low["sides"]) >= 2
    assert {"sportsbooks", "selection", "odds_american"} <= set(low["sides"][0])
    for row in call(service, "pro", "find_arbitrage", limit=3)["rows"]:
        assert abs(sum(leg["stake_percent"] for leg in row["legs"]) - 100.0) < 0.01


def test_an_opportunity_is_explained(service: Running) -> None:
    rows = call(service, "pro", "find_ev_opportunities", min_ev=-5, limit=3, min_still_there=0)["rows"]
    assert all(0.0 <= row["still_there_probability"] <= 1.0 for row in rows)
    rows = call(service, "pro", "find_ev_opportunities", min_ev=-5, limit=3)["rows"]
    row = rows[0]
    found = call(service, "pro", "explain_opportunity", id=row["id"], event_id=row["event_id"])
    assert found["kind"] == "ev"
    assert found["figures"]["sportsbook"] == row["sportsbook"]
    assert found["prices"]
    assert {each["role"] for each in found["prices"]} <= {"leg", "reference", "offer", "other", "set aside"}
    text = call(service, "pro", "explain_opportunity", id="nothing", event_id=row["event_id"])
    assert text.startswith("not_found: ")
    assert call(service, "pro", "explain_opportunity", id=row["id"], event_id="x").startswith("not_found: ")
    assert call(service, "hobby", "explain_opportunity", id=row["id"], event_id=row["event_id"]).split(":")[0] in (
        "tier_restricted", "not_found",
    )  # fmt: skip


def test_margins_are_removed_and_stakes_computed(service: Running) -> None:
    found = call(service, "free", "devig", odds="-120,+100", format="american")
    fair = devig([1.0 + 100.0 / 120.0, 2.0])
    assert [row["fair_probability"] for row in found["data"]] == pytest.approx(fair.tolist(), abs=1e-6)
    assert found["margin_percent"] == pytest.approx((1 / (1 + 100 / 120) + 0.5 - 1) * 100, abs=1e-3)
    found = call(
        service, "free", "kelly", probability=0.55, odds="+100", format="american", bankroll=1000, fraction=0.5
    )
    assert (found["full_kelly_fraction"], found["stake_fraction"], found["stake"]) == (0.1, 0.05, 50.0)
    assert found["ev_percent"] == 10.0
    assert (
        call(service, "free", "devig", odds="-120,+100")["data"]
        == call(service, "free", "devig", odds="1.8333333333,2.0")["data"]
    )
    found = call(service, "free", "kelly", probability=0.4, odds="2.0")
    assert found["stake_fraction"] == 0.0
    assert found["advice"].startswith("no bet")


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("kelly", {"probability": 55, "odds": "2", "format": "decimal"}, "between 0 and 1"),
        (
            "kelly",
            {"probability": 0.5, "odds": "150"},
            "may be American or decimal: set format to american (-110, +150)",
        ),
        ("kelly", {"probability": 0.5, "odds": "evens"}, "odds must be American (-110, +150) or decimal (1.91, 2.5)"),
        ("devig", {"odds": "1.9,"}, "prices, separated by commas, got ''"),
        ("devig", {"odds": "2,2"}, "may be American or decimal: set format to american (-110, +150)"),
        ("devig", {"odds": "1.9,2.0", "format": "american"}, "american: -100 or less"),
        ("devig", {"odds": "-110,-110", "format": "decimal"}, "decimal: more than 1"),
        ("devig", {"odds": "1.9", "format": "decimal"}, "at least two"),
        ("get_odds", {"books": "pinnacle"}, "unknown argument 'books' of get_odds; allowed: date, "),
        ("get_odds", {"limit": 500}, "limit must be a whole number from 1 to 50"),
        ("get_odds", {"limit": "many"}, "limit must be"),
        (
            "get_odds",
            {"sport": {"a": 1}},
            "sport must be a string, a number, true, false, or a list of strings and numbers, got an object",
        ),
        ("kelly", {"probability": 0.5, "odds": "1.9,2.1"}, "odds must be a single price, that of one bet, got 2"),
        ("devig", {"odds": ",".join(["1.9"] * 41)}, "odds must have at most 40 prices, got 41"),
        ("what_was_rejected", {}, "at least one of event, sport, league, market or sportsbook is required"),
        ("compare_odds", {}, "event is required: the id of an event, from /events"),
        ("get_weather", {}, "unknown tool"),
    ],
)
def test_what_cannot_be_used_is_explained(service: Running, name: str, arguments: dict[str, Any], told: str) -> None:
    said = call(service, "enterprise", name, **arguments)
    assert isinstance(said, str)
    assert told in said


def test_lists_of_words_may_be_arrays(service: Running) -> None:
    found = call(service, "enterprise", "get_odds", sportsbook=["pinnacle", "fanduel"], limit=20)
    assert {row["sportsbook"] for row in found["rows"]} <= {"pinnacle", "fanduel"}
    assert call(service, "enterprise", "get_odds", sport="nosport")["unknown"] == {"sport": ["nosport"]}


def test_rejected_prices_have_reasons(service: Running) -> None:
    sports = [row["id"] for row in call(service, "enterprise", "get_sports")["rows"]]
    found = call(service, "enterprise", "what_was_rejected", sport=sports, limit=50)
    for row in found["rows"]:
        assert row["can_be_bet"] is False
        assert row["rejected_because"]["reason"]


def test_each_call_counts_as_one_request(service: Running) -> None:
    service.clock.pass_minute()

    async def ask() -> list[str]:
        async with client(service, "free") as made:
            await made.list_tools()
            found: list[Any] = [await made.call_tool("get_sports", {}) for _ in range(TIERS["free"].rate + 1)]
            return [each.content[0].text for each in found]

    answers = run(ask())
    assert all(answer.startswith("{") for answer in answers[:-1]), answers
    assert answers[-1].startswith("rate_limited: ")
    service.clock.pass_minute()


def over_stdio(*words: str, **environ: str) -> Any:
    """The tools of a command, and what some of them answer."""
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = StdioServerParameters(
        command=sys.executable, args=["-m", "oddsengine", "mcp", *words], env={**os.environ, **environ}
    )

    async def ask() -> Any:
        async with Client(stdio_client(command, sys.__stderr__ or sys.stderr)) as made:
            listed = await made.list_tools()
            found: Any = await made.call_tool("find_ev_opportunities", {"limit": 2})
            wrong: Any = await made.call_tool("get_odds", {"limit": 0})
            return {tool.name for tool in listed.tools}, json.loads(found.content[0].text), wrong

    return run(ask())


def test_a_file_is_served_over_stdio() -> None:
    names, found, wrong = over_stdio("--sample")
    assert names == NAMES
    assert found["rows"][0]["ev_percent"] > 0.0
    assert wrong.is_error


@pytest.mark.exhaustive
def test_a_node_is_served_over_stdio(service: Running) -> None:
    service.clock.pass_minute()
    names, found, wrong = over_stdio("--url", service.base.removesuffix("/api/v1"), ODDSENGINE_API_KEY="demo_pro")
    assert names == NAMES
    assert found["shown"] <= 2
    assert wrong.is_error


@pytest.mark.parametrize("words", [[], ["--sample", "--url", "http://x"], ["--url", "http://127.0.0.1:1"]])
def test_what_cannot_be_served_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ODDSENGINE_API_KEY", raising=False)
    assert main(["mcp", *words]) == 2
    assert capsys.readouterr().err.startswith("oddsengine mcp: ")
