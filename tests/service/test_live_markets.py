"""Live prediction markets beside the demo, of servers on this machine that speak the exchanges' protocols."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.exchanges_running import Exchanges, exchanges, led_to
from support.service_running import PATIENCE_S, Running, running, until
from websockets.sync.client import connect

from oddsengine.sources import KINDS
from oddsengine_service import live_markets
from oddsengine_service.live_markets import SOURCES, leagues


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests start it again and again."""
    monkeypatch.setattr(live_markets, "AGAIN_S", 0.0)


@pytest.fixture(scope="module")
def venues() -> Iterator[Exchanges]:
    with exchanges() as served:
        yield served


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, venues: Exchanges) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("demo"), offers_live=True, settings=venues.environ) as server:
        yield server


def state(server: Running, league: str = "", **headers: str) -> dict[str, Any]:
    """What the demo says; it starts a league, if there is one."""
    url, more = f"{server.origin}/live/state", {"params": {"league": league}, "headers": headers} if league else {}
    answer = httpx2.request("POST" if league else "GET", url, timeout=PATIENCE_S, **more)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["data"])


def reached(server: Running, *names: str) -> dict[str, Any]:
    until(lambda: state(server)["state"] in names, f"one of {names}")
    return state(server)


def of_live(server: Running) -> httpx2.Client:
    return httpx2.Client(
        base_url=f"{server.origin}/live/api/v1", headers={"X-API-Key": "demo_enterprise"}, timeout=PATIENCE_S
    )


def started(server: Running, league: str = "nfl") -> dict[str, Any]:
    state(server, league)
    return reached(server, "ready", "failed")


def stopped(server: Running) -> None:
    """Stop what runs, as its end does."""
    live, loop = server.service.live, server.service.loop
    assert live is not None
    asyncio.run_coroutine_threadsafe(live.stop(), loop).result(PATIENCE_S)


def test_nothing_is_read_before_it_is_asked_for(demo: Running, venues: Exchanges) -> None:
    stopped(demo)
    before = venues.requests
    said = state(demo)
    assert (said["state"], said["league"], said["games"]) == ("off", "", 0)
    page = httpx2.get(f"{demo.origin}/").text
    assert 'data-market="simulated" data-live="/live"' in page
    for path in ("/live", "/live/"):
        answer = httpx2.get(f"{demo.origin}{path}")
        assert (answer.status_code, answer.headers["location"]) == (307, "/")
    with of_live(demo) as client:
        answer = client.get("/odds")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert answer.json()["error"]["message"] == "no live prediction markets: they were not chosen"
    with pytest.raises(Exception, match=r"rejected|HTTP"), connect(f"ws://127.0.0.1:{demo.port}/live/api/v1/ws"):
        pass
    assert venues.requests == before


def test_the_choices_are_the_leagues_of_all_sources(demo: Running) -> None:
    said = {each["id"]: each["name"] for each in state(demo)["leagues"]}
    assert said == {each.id: each.name for each in leagues()}
    assert (said["nfl"], said["england_premier_league"]) == ("NFL", "Premier League")
    assert all(league in KINDS[name].leagues for league in said for name in SOURCES)
    assert "atp_challenger" not in said  # of Kalshi only


def test_real_games_beside_the_simulated_ones(demo: Running) -> None:
    assert started(demo) == state(demo)
    assert {k: state(demo)[k] for k in ("state", "league", "games", "reason")} == {
        "state": "ready", "league": "nfl", "games": 1, "reason": "",
    }  # fmt: skip
    with of_live(demo) as client, demo.client() as simulated:
        until(lambda: bool(client.get("/opportunities/arbitrage").json()["data"]), "the arbitrage")
        (found,) = client.get("/opportunities/arbitrage").json()["data"]
        assert {leg["sportsbook"] for leg in found["legs"]} == {"kalshi", "polymarket"}
        assert client.get("/opportunities/arbitrage").json()["meta"]["source"] == "live"
        teams = {(row["home_team"], row["sportsbook"]) for row in client.get("/odds").json()["data"]}
        assert teams == {("Seattle Seahawks", "kalshi"), ("Seattle Seahawks", "polymarket")}
        assert simulated.get("/opportunities/ev").json()["meta"]["source"] == "simulator"
        assert not [row for row in simulated.get("/odds?sportsbook=kalshi").json()["data"] if row in teams]
        assert {feed["status"] for feed in client.get("/feeds").json()["data"]} == {"green"}
    page = httpx2.get(f"{demo.origin}/live/").text
    assert 'data-base="/live/api/v1" data-demo-key="demo_enterprise" data-market="" data-live="/live"' in page
    answer = httpx2.get(f"{demo.origin}/live")
    assert (answer.status_code, answer.headers["location"]) == (307, "/live/")


def test_streams_and_sockets_of_the_live_node(demo: Running) -> None:
    started(demo)
    with of_live(demo) as client, client.stream("GET", "/stream/opportunities?min_profit=0") as stream:
        lines = stream.iter_lines()
        assert any(line == "event: arb:detected" for line in (next(lines) for _ in range(30)))
    with connect(f"ws://127.0.0.1:{demo.port}/live/api/v1/ws?api_key=demo_enterprise") as line:
        assert json.loads(line.recv(timeout=PATIENCE_S))["type"] == "connected"


def test_a_league_without_games_says_so_and_is_not_read_any_more(demo: Running, venues: Exchanges) -> None:
    started(demo)
    venues.polymarket.events, before = [], venues.polymarket.events
    try:
        said = started(demo, "ufc")
    finally:
        venues.polymarket.events = before
    assert (said["state"], said["league"]) == ("failed", "ufc")
    assert said["reason"] == "Kalshi has no UFC games with prices; Polymarket has no UFC games with prices"
    seen = venues.requests
    time.sleep(0.5)
    assert venues.requests == seen
    assert httpx2.get(f"{demo.origin}/live/").status_code == 307
    with demo.client() as client:
        assert client.get("/opportunities/ev").json()["data"]  # the simulated market goes on
    assert started(demo)["state"] == "ready"  # and the other league can be chosen again


def closed_port() -> int:
    """A port of this machine that refuses connections."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def test_hosts_that_cannot_be_reached_are_named_with_the_reason(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    environ = {**led_to("kalshi", {"url": url}), **led_to("polymarket", {"url": url})}
    with running(tmp_path, offers_live=True, events=2, settings=environ) as server:
        said = started(server)
        assert said["state"] == "failed"
        assert said["reason"] == "Kalshi cannot be reached; Polymarket cannot be reached"
        with server.client() as client:
            assert client.get("/opportunities/ev").json()["meta"]["source"] == "simulator"


def test_one_source_is_enough_and_is_waited_for(
    tmp_path: Path, venues: Exchanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(*_: Any) -> bool:
        await asyncio.sleep(2.0)
        return False

    monkeypatch.setitem(venues.kalshi.answers, "/events", late)
    environ = {**venues.environ, **led_to("polymarket", {"url": f"http://127.0.0.1:{closed_port()}"})}
    with running(tmp_path, offers_live=True, events=2, settings=environ) as server:
        assert {k: v for k, v in started(server).items() if k in ("state", "games")} == {"state": "ready", "games": 1}
        with of_live(server) as client:
            feeds = {feed["name"]: feed["status"] for feed in client.get("/feeds").json()["data"]}
        assert feeds["polymarket"] != "green"


def test_it_stops_when_nobody_reads_it(demo: Running, venues: Exchanges, monkeypatch: pytest.MonkeyPatch) -> None:
    started(demo)
    with of_live(demo) as client, client.stream("GET", "/stream/opportunities") as stream:
        lines = iter(stream.iter_lines())
        next(lines)
        monkeypatch.setattr(live_markets, "IDLE_S", 0.1)
        time.sleep(1.5)
        assert state(demo)["state"] == "ready"  # somebody reads
    said = reached(demo, "off")
    assert said["reason"].startswith("stopped, as nobody read them for")
    seen = venues.requests
    time.sleep(0.5)
    assert venues.requests == seen
    with of_live(demo) as client:
        assert "nobody read them" in client.get("/odds").json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "query", "headers", "status", "said"),
    [
        ("POST", "", {}, 400, "league must be one of nfl, ncaaf, "),
        ("POST", "?league=cricket", {}, 400, "got 'cricket'"),
        ("PUT", "", {}, 405, "method must be one of GET, HEAD, POST for /live/state, got PUT"),
        ("POST", "?league=nfl", {"Origin": "http://other.example"}, 403, "only the demo's own page may"),
        ("GET", "", {"Origin": "null"}, 403, "only the demo's own page may"),
        ("POST", "?league=nfl", {"Host": "other.example"}, 403, "only the demo's own page may"),
        ("POST", "?league=nfl", {"Host": "[1:::2]"}, 403, "only the demo's own page may"),
        ("POST", "?league=nfl", {"Host": "a.example:80", "Origin": "http://a.example:80"}, 403, "only the demo's own"),
    ],
)
def test_requests_that_are_refused(
    demo: Running, venues: Exchanges, method: str, query: str, headers: dict[str, str], status: int, said: str
) -> None:
    stopped(demo)
    seen = venues.requests
    answer = httpx2.request(method, f"{demo.origin}/live/state{query}", headers=headers)
    assert (answer.status_code, said in answer.json()["error"]["message"]) == (status, True)
    assert state(demo)["state"] == "off"
    assert venues.requests == seen


def test_the_own_page_is_allowed(demo: Running) -> None:
    assert state(demo, "nfl", Origin=demo.origin)["state"] in ("starting", "ready")
    for host in (f"localhost:{demo.port}", f"[::1]:{demo.port}"):
        assert state(demo, "nfl", Host=host, Origin=f"http://{host}")["state"] in ("starting", "ready")


def test_it_starts_once_in_a_while(demo: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    started(demo)
    monkeypatch.setattr(live_markets, "AGAIN_S", 1000.0)
    refused = httpx2.post(f"{demo.origin}/live/state?league=nba")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")
    assert 900 < int(refused.headers["retry-after"]) <= 1000
    assert refused.json()["error"]["message"].startswith("a league is read at most every 1000 s; retry in ")
    assert state(demo, "nfl")["state"] == "ready", "what runs goes on"
    monkeypatch.setattr(live_markets, "AGAIN_S", 0.0)
    assert state(demo, "nba")["league"] == "nba"


def test_nothing_of_it_is_in_the_api_or_in_another_node(demo: Running, tmp_path: Path) -> None:
    document = httpx2.get(f"{demo.origin}/openapi.json").json()
    assert not [path for path in document["paths"] if "live" in path.split("/")]
    for demonstration in (True, False):
        with running(tmp_path / str(demonstration), events=2, demonstration=demonstration) as server:
            assert httpx2.get(f"{server.origin}/live/state").status_code == 404
            assert httpx2.post(f"{server.origin}/live/state?league=nfl").status_code == 404
            assert httpx2.get(f"{server.origin}/openapi.json").json()["paths"] == document["paths"]
            assert 'data-live=""' in httpx2.get(f"{server.origin}/").text


def test_the_end_of_the_demo_ends_it_too(tmp_path: Path, venues: Exchanges) -> None:
    with running(tmp_path, offers_live=True, events=2, settings=venues.environ) as server:
        started(server)
        with of_live(server) as client, client.stream("GET", "/stream/opportunities") as stream:
            next(iter(stream.iter_lines()))
            began = time.monotonic()
            server.stop()
            assert time.monotonic() - began < 15.0
    seen = venues.requests
    time.sleep(0.5)
    assert venues.requests == seen
    assert "Traceback" not in server.log_text()
