"""Clients that were written for The Odds API, with nothing changed but the address.

`the-odds` and `mcp-odds-api` want older packages than ours, so they run in a process of their own, from a folder:
`pip install --target FOLDER the-odds==1.0.2 mcp-odds-api==0.1.1 'mcp<2'`, named by `V4_CLIENTS`.
"""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.service_running import PATIENCE_S, Running

FOLDER = os.environ.get("V4_CLIENTS", "")
KEY = "demo_enterprise"
SPORT = "basketball_nba"


@pytest.fixture(autouse=True)
def _fresh_minute(service: Running) -> None:
    service.clock.pass_minute()


def isolated(code: str, **environ: str) -> Any:
    """What a script prints as JSON that runs with the packages of the folder only."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": FOLDER, **environ},
    )  # fmt: skip
    if "ModuleNotFoundError" in done.stderr or not FOLDER:
        pytest.skip("V4_CLIENTS names no folder with this client")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_odds_api_sdk(service: Running) -> None:
    sdk = pytest.importorskip("the_odds_api_sdk")
    client = sdk.OddsAPIClient(KEY, base_url=f"{service.origin}/v4/")
    sports = client.get_sports(all_sports=True)
    assert next(sport for sport in sports if sport.key == SPORT).active
    assert not next(sport for sport in sports if sport.key == "soccer_usa_mls").active
    events = client.get_events(SPORT, commence_time_from=datetime(2026, 1, 1, tzinfo=UTC))
    more = {"include_links": True, "include_sids": True, "include_bet_limits": True}
    for dates in ("iso", "unix"):
        games = client.get_odds(SPORT, regions=["us", "eu"], markets=["h2h", "spreads"], date_format=dates, **more)
        assert [game.id for game in games] == [event.id for event in events]
        priced = [game for game in games if len(game.bookmakers) > 4]  # another test may have left one that has closed
        assert priced
        for game in priced:
            (maker, *_) = game.bookmakers
            assert maker.link.startswith("https://")
            outcomes = {outcome.name for market in maker.markets for outcome in market.outcomes}
            assert outcomes == {game.home_team, game.away_team}
    one = client.get_event_odds(SPORT, priced[0].id, regions=["us", "eu"], markets=["alternate_totals", "totals"])
    assert {market.key for maker in one.bookmakers for market in maker.markets} == {"alternate_totals", "totals"}
    assert client.get_participants(SPORT)
    scores = client.get_scores(SPORT, days_from=3)
    assert {score.id for score in scores} >= {event.id for event in events}
    assert any(score.scores for score in scores)
    now = service.node.engine.now
    assert now is not None
    past = client.get_historical_odds(SPORT, now, regions=["us"])
    assert timedelta(0) <= now - past.timestamp < timedelta(minutes=5)
    assert {game.id for game in past.data} <= {event.id for event in events}
    assert past.data
    for call, error in (
        (lambda: client.get_odds("quidditch", regions=["us"]), sdk.OddsAPINotFoundError),
        (lambda: client.get_odds(SPORT), sdk.OddsAPIValidationError),
        (sdk.OddsAPIClient("nobody", base_url=f"{service.origin}/v4/").get_sports, sdk.OddsAPIAuthError),
    ):
        with pytest.raises(error):
            call()


def test_theoddsapi(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("theoddsapi", exc_type=ImportError)
    monkeypatch.setattr(module.TheOddsAPI, "HOST", service.origin)
    client = module.TheOddsAPI(KEY)
    assert SPORT in [sport["key"] for sport in client.get_sports()]
    assert client.get_requests_remaining() > 0  # until the end of the month
    assert client.get_requests_used() == 0, "this node has no file of usage"
    games = client.get_odds(sport=SPORT, regions="us", oddsFormat="american")
    first = max(games, key=lambda game: len(game["bookmakers"]))
    prices = [o["price"] for maker in first["bookmakers"] for m in maker["markets"] for o in m["outcomes"]]
    assert prices
    assert all(isinstance(price, int) and abs(price) >= 100 for price in prices)
    assert client.get_event_odds(sport=SPORT, eventId=first["id"], regions="us")["id"] == first["id"]
    assert client.get_scores(sport=SPORT)
    past = client.get_historical_odds(sport=SPORT, regions="us", date=service.node.engine.now.isoformat())  # type: ignore[union-attr]
    assert past["data"]


def test_parlay_api(service: Running) -> None:
    module = pytest.importorskip("parlay_api")
    client = module.ParlayAPI(KEY, base_url=service.origin)
    assert SPORT in [sport["key"] for sport in client.sports()]
    assert client._last_quota.requests_remaining > 0
    assert client._last_quota.requests_last == 1
    games = client.odds(SPORT, regions="us", markets="h2h,spreads,totals", odds_format="american")
    assert any(game["bookmakers"] for game in games)
    assert [event["id"] for event in client.events(SPORT)] == [game["id"] for game in games]
    assert client.scores(SPORT, days_from=1)
    with pytest.raises(module.InvalidAPIKeyError):
        module.ParlayAPI("nobody", base_url=service.origin).odds(SPORT, regions="us", markets="h2h")


def test_the_odds(service: Running) -> None:
    code = f"""
import json
from the_odds import OddsApiClient
client = OddsApiClient({KEY!r})
client._config.v4_base_url = "{service.origin}/v4"
games = client.v4.get_odds("upcoming", ["us"], ["h2h"], include_links=True, include_bet_limits=True)
print(json.dumps([client.v4.get_sports(all=True), games]))
"""
    sports, games = isolated(code)
    assert {sport["key"] for sport in sports} >= {SPORT, "soccer_usa_mls"}
    assert any(game["bookmakers"] for game in games)


def test_mcp_odds_api(service: Running) -> None:
    code = f"""
import asyncio, json
import mcp_odds_api.server as server
server.BASE_URL = "{service.origin}/v4"
async def main():
    events = await server.get_events("")
    games = await server.get_odds()
    first = max(games, key=lambda game: len(game["bookmakers"]))["id"]
    one = await server.get_event_odds(first, ["h2h", "alternate_totals"])
    found = [await server.get_sports(), await server.get_participants(), games, events, one]
    print(json.dumps(found))
asyncio.run(main())
"""
    sports, teams, games, events, one = isolated(code, ODDS_API_KEY=KEY, ODDS_API_SPORT=SPORT, ODDS_API_REGIONS="us,eu")
    assert SPORT in [sport["key"] for sport in sports]
    assert {event["home_team"] for event in events} <= {team["full_name"] for team in teams}
    assert [game["id"] for game in games] == [event["id"] for event in events]
    assert one["id"] in [event["id"] for event in events]
    assert {market["key"] for maker in one["bookmakers"] for market in maker["markets"]} == {"h2h", "alternate_totals"}
