"""The format of The Odds API over real sockets: bodies, parameters, errors, tiers, delay and credits."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_url

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.effort import less
from support.service_running import PATIENCE_S, Running, running
from support.stream_running import Served

from oddsengine_service.accounts.limits import Room, Usage
from oddsengine_service.http.v4_errors import CODES
from oddsengine_service.http.v4_headers import credits_of
from oddsengine_service.tiers import TIERS, books_of
from oddsengine_service.v4.sports_and_events import v4_id

NBA = "basketball_nba"
T0 = datetime(2026, 2, 7, 18, 0, tzinfo=UTC)
ID = re.compile("[0-9a-f]{32}")


def ask(server: Running, path: str, tier: str | None = "enterprise", **params: Any) -> httpx2.Response:
    server.clock.pass_minute()
    key = {} if tier is None else {"apiKey": f"demo_{tier}"}
    return httpx2.get(f"{server.origin}/v4{path}", params={**key, **params}, timeout=PATIENCE_S)


def get(server: Running, path: str, tier: str = "enterprise", **params: Any) -> Any:
    answer = ask(server, path, tier, **params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(server: Running, sport: str = NBA, **params: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = get(server, f"/sports/{sport}/events", **params)
    return found


def priced(game: dict[str, Any]) -> bool:
    """Whether several bookmakers have an event: another test may have left one that has closed."""
    return len(game["bookmakers"]) > 4


def with_market(server: Running, sport: str, key: str) -> dict[str, Any]:
    """An event with prices of a market."""
    for event in events(server, sport):
        path = f"/sports/{sport}/events/{event['id']}/odds"
        game: dict[str, Any] = get(server, path, regions="us,us_ex,eu,uk", markets=key)
        if game["bookmakers"]:
            return game
    raise AssertionError(f"no event of {sport} has {key}")


def lines(game: dict[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for maker in game["bookmakers"]:
        for market in maker["markets"]:
            if market["key"] == key:
                yield from ((maker["key"], outcome) for outcome in market["outcomes"])


# ---- bodies ----


def test_sports(service: Running) -> None:
    found = get(service, "/sports")
    assert [sport["key"] for sport in found] == sorted({sport["key"] for sport in found})
    assert all(list(s) == ["key", "group", "title", "description", "active", "has_outrights"] for s in found)
    assert all(sport["active"] for sport in found)
    every = get(service, "/sports", all="true")
    assert len(every) > 250
    assert [sport for sport in every if sport["active"]] == found
    hockey = next(sport for sport in every if sport["key"] == "icehockey_nhl")
    assert hockey == {
        "key": "icehockey_nhl", "group": "Ice Hockey", "title": "NHL", "description": "USA Ice Hockey",
        "active": True, "has_outrights": False,
    }  # fmt: skip


def test_events_are_those_of_our_own_list(service: Running) -> None:
    def own() -> dict[str, Any]:
        with service.client() as client:
            rows = client.get("/events?limit=200").json()["data"]
        return {v4_id(row["id"]): row for row in rows if row["start_time"]}  # an event without a start is not listed

    before = own()
    found = {event["id"]: event for sport in get(service, "/sports") if not sport["has_outrights"]
             for event in events(service, sport["key"])}  # fmt: skip
    after = own()
    ours = before | after  # the world goes on meanwhile: games end
    assert before.keys() & after.keys() <= found.keys() <= ours.keys()
    for ident, event in found.items():
        assert ID.fullmatch(ident)
        assert (event["home_team"], event["away_team"]) == (ours[ident]["home_team"], ours[ident]["away_team"])
        assert event["commence_time"] == ours[ident]["start_time"][:19] + "Z"
        datetime.strptime(event["commence_time"], "%Y-%m-%dT%H:%M:%SZ")


def test_odds(service: Running) -> None:
    games = get(service, f"/sports/{NBA}/odds", regions="us", markets="h2h,spreads,totals")
    assert [game["id"] for game in games] == [event["id"] for event in events(service)]
    titles: dict[str, str] = {}
    for game in filter(priced, games):
        teams = {game["home_team"], game["away_team"]}
        keys = [maker["key"] for maker in game["bookmakers"]]
        assert len(set(keys)) == len(keys)
        titles |= {maker["key"]: maker["title"] for maker in game["bookmakers"]}
        assert not {"caesars", "pinnacle"} & set(keys)
        for maker in game["bookmakers"]:
            assert maker["last_update"] == max(market["last_update"] for market in maker["markets"])
        assert {outcome["name"] for _, outcome in lines(game, "h2h")} == teams
        assert {outcome["name"] for _, outcome in lines(game, "spreads")} == teams
        assert {outcome["name"] for _, outcome in lines(game, "totals")} == {"Over", "Under"}
        for key in ("spreads", "totals"):
            by_book: dict[str, list[float]] = {}
            for book, outcome in lines(game, key):
                by_book.setdefault(book, []).append(abs(outcome["point"]))
            assert all(len(set(points)) == 1 for points in by_book.values()), "one line of each bookmaker"
        assert not any("point" in outcome or "link" in outcome for _, outcome in lines(game, "h2h"))
    assert titles["williamhill_us"] == "Caesars"


def test_other_lines_are_in_the_alternate_market(service: Running) -> None:
    event = with_market(service, NBA, "alternate_spreads")["id"]
    game = get(service, f"/sports/{NBA}/events/{event}/odds", regions="us,eu", markets="spreads,alternate_spreads")
    main = {(book, o["name"], o["point"]) for book, o in lines(game, "spreads")}
    others = {(book, o["name"], o["point"]) for book, o in lines(game, "alternate_spreads")}
    assert main
    assert others
    assert not main & others


def test_names_of_bets_on_a_single_line(service: Running) -> None:
    """A market that implies its line has names of its own, and no point."""
    game = with_market(service, "soccer_epl", "team_totals")
    path = f"/sports/soccer_epl/events/{game['id']}/odds"
    every = get(service, path, regions="us,eu,uk", markets="draw_no_bet,h2h,h2h_3_way,team_totals")
    names = {key: {outcome["name"] for _, outcome in lines(every, key)} for key in ("h2h", "h2h_3_way", "team_totals")}
    assert names["h2h"] == names["h2h_3_way"] == {game["home_team"], game["away_team"], "Draw"}
    assert names["team_totals"] == {"Over", "Under"}
    assert {o["description"] for _, o in lines(every, "team_totals")} == {game["home_team"], game["away_team"]}
    assert all("point" not in outcome for _, outcome in lines(every, "draw_no_bet"))


def test_formats(service: Running) -> None:
    decimal = get(service, f"/sports/{NBA}/odds", regions="us")
    american = get(service, f"/sports/{NBA}/odds", regions="us", oddsFormat="american", dateFormat="unix")
    for one, other in zip(filter(priced, decimal), filter(priced, american), strict=True):
        start = datetime.strptime(one["commence_time"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        assert other["commence_time"] == start.timestamp()
        assert isinstance(other["bookmakers"][0]["markets"][0]["last_update"], int)
        for (_, first), (_, second) in zip(lines(one, "h2h"), lines(other, "h2h"), strict=True):
            price = second["price"]
            assert isinstance(price, int)
            assert abs(price) >= 100
            assert 1 + (price / 100 if price > 0 else 100 / -price) == pytest.approx(first["price"], rel=0.03)


def test_links_ids_and_limits(service: Running) -> None:
    more = {"includeLinks": "true", "includeSids": "true", "includeBetLimits": "true"}
    game = next(filter(priced, get(service, f"/sports/{NBA}/odds", regions="us,eu,us_ex", **more)))
    with service.client() as client:
        rows = client.get("/odds?sport=basketball&league=nba&market=moneyline&limit=200").json()["data"]
    ours = {(row["sportsbook"], row["selection"]): row for row in rows if v4_id(row["event_id"]) == game["id"]}
    makers = {maker["key"]: maker for maker in game["bookmakers"]}
    assert any(maker["sid"] for maker in makers.values())
    seen = 0
    for book, outcome in lines(game, "h2h"):
        row = ours.get((book, outcome["name"]))
        if row is not None:
            seen += 1
            own = (row["deep_link"], row["selection_id"], row["max_bet"])
            assert (outcome["link"], outcome["sid"], outcome["bet_limit"]) == own
            assert makers[book]["sid"] == row["external_event_id"]
    assert seen


def test_filters(service: Running) -> None:
    every = events(service)
    first, *_, last = every
    assert events(service, eventIds=f"{last['id']},{'0' * 32}") == [last]
    later = [event for event in every if event["commence_time"] >= last["commence_time"]]
    assert events(service, commenceTimeFrom=last["commence_time"]) == later
    earlier = [event for event in every if event["commence_time"] <= first["commence_time"]]
    assert events(service, commenceTimeTo=first["commence_time"]) == earlier
    games = get(service, f"/sports/{NBA}/odds", bookmakers="draftkings,caesars,betfair_ex_uk", eventIds=last["id"])
    assert [game["id"] for game in games] == [last["id"]]
    keys = {maker["key"] for maker in games[0]["bookmakers"]}
    assert keys <= {"draftkings", "williamhill_us", "betfair_ex_uk"}
    assert keys
    assert get(service, "/sports/soccer_usa_mls/odds", regions="us") == []


def test_upcoming_is_what_is_on_and_the_next_eight(service: Running) -> None:
    with service.client() as client:
        live = {v4_id(row["id"]) for row in client.get("/events?live=true&limit=200").json()["data"]}
        coming = [v4_id(row["id"]) for row in client.get("/events?live=false&limit=200").json()["data"]]
    found = {game["id"] for game in get(service, "/sports/upcoming/odds", regions="us")}
    assert found == live | set(coming[:8])
    assert live
    assert len(coming) >= 8 or found == live | set(coming)


def test_markets_of_an_event(service: Running) -> None:
    ident = with_market(service, NBA, "alternate_totals")["id"]
    listed = get(service, f"/sports/{NBA}/events/{ident}/markets", regions="us,eu")
    words = {market["key"] for maker in listed["bookmakers"] for market in maker["markets"]}
    assert {"h2h", "spreads", "totals", "alternate_totals"} <= words
    assert all(list(market) == ["key", "last_update"] for maker in listed["bookmakers"] for market in maker["markets"])


def test_participants(service: Running) -> None:
    teams = get(service, f"/sports/{NBA}/participants")
    assert len(teams) == 30
    assert {"id": "boston_celtics", "full_name": "Boston Celtics"} in teams
    playing = {event[side] for event in events(service, "soccer_epl") for side in ("home_team", "away_team")}
    assert playing <= {team["full_name"] for team in get(service, "/sports/soccer_epl/participants")}


def test_outrights(service: Running) -> None:
    keys = [sport["key"] for sport in get(service, "/sports") if sport["has_outrights"]]
    assert {"basketball_nba_championship_winner", "americanfootball_nfl_super_bowl_winner"} <= set(keys)
    (event,) = events(service, keys[0])
    assert event["home_team"] is None
    with service.client() as client:
        rows = client.get("/futures/odds?limit=200&q=NBA+Champion&sportsbook=draftkings").json()["data"]
    ours = {row["selection"]: row["odds_decimal"] for row in rows if row["is_active"]}
    (title,) = get(service, "/sports/basketball_nba_championship_winner/odds", bookmakers="draftkings")
    theirs = {outcome["name"]: outcome["price"] for _, outcome in lines(title, "outrights")}
    assert theirs == ours
    assert len(ours) > 10
    path = f"/sports/basketball_nba_championship_winner/events/{title['id']}/odds"
    assert get(service, path, bookmakers="draftkings") == title
    (wins,) = get(service, "/sports/basketball_nba_regular_season_wins/odds", regions="us")
    outcomes = [outcome for _, outcome in lines(wins, "outrights")]
    assert {outcome["name"] for outcome in outcomes} == {"Over", "Under"}
    assert all(outcome["point"] and outcome["description"] for outcome in outcomes)
    for tier in ("free", "sharp"):
        assert not any(sport["has_outrights"] for sport in get(service, "/sports", tier))
        refused = ask(service, "/sports/basketball_nba_championship_winner/odds", tier, regions="us")
        assert (refused.status_code, refused.json()["error_code"]) == (401, "TIER_RESTRICTED")


def test_scores(service: Running) -> None:
    games = get(service, f"/sports/{NBA}/scores")
    assert any(game["scores"] for game in games)
    assert {game["id"] for game in games} <= {event["id"] for event in events(service)}
    for game in games:
        assert not game["completed"]
        assert (game["scores"] is None) == (game["last_update"] is None)
        if game["scores"]:
            assert [score["name"] for score in game["scores"]] == [game["home_team"], game["away_team"]]
            assert all(score["score"].isdigit() for score in game["scores"])
    for tier in ("free", "hobby", "pro", "sharp"):
        refused = ask(service, f"/sports/{NBA}/scores", tier)
        assert (refused.status_code, refused.json()["error_code"]) == (401, "TIER_RESTRICTED")


# ---- the past ----


def test_the_past_is_what_was_shown(tmp_path: Path) -> None:
    with running(tmp_path, events=less(12, 6)) as server:
        past_is_what_was_shown(server)


def past_is_what_was_shown(service: Running) -> None:
    now = service.node.engine.now
    assert now is not None
    words = {"regions": "us,eu,us_ex,uk", "markets": "h2h"}
    shown = get(service, f"/sports/{NBA}/odds", **words)
    service.advance(70)
    date = now.isoformat()
    past = get(service, f"/historical/sports/{NBA}/odds", date=date, **words)
    stamp = "%Y-%m-%dT%H:%M:%SZ"
    assert past["timestamp"] == now.strftime(stamp)
    assert past["previous_timestamp"] == (now - timedelta(seconds=300)).strftime(stamp)
    assert past["next_timestamp"] == (now + timedelta(seconds=300)).strftime(stamp)
    before = {
        (game["id"], book, outcome["name"]): outcome["price"] for game in past["data"]
        for book, outcome in lines(game, "h2h")
    }  # fmt: skip
    assert len(before) > 20
    current = {
        (game["id"], book, outcome["name"]): outcome["price"] for game in shown for book, outcome in lines(game, "h2h")
    }
    assert all(before[key] == price for key, price in current.items())
    assert get(service, f"/sports/{NBA}/odds-history/", date=date, **words) == past
    listed = get(service, f"/historical/sports/{NBA}/events", date=date)
    assert [event["id"] for event in listed["data"]] == [game["id"] for game in past["data"]]
    one = next(filter(priced, past["data"]))
    path = f"/historical/sports/{NBA}/events/{one['id']}/odds"
    assert get(service, path, date=date, **words)["data"] == one
    assert get(service, path, date=date, regions="us", markets="spreads,totals")["data"]["bookmakers"]
    assert get(service, f"/historical/sports/{NBA}/odds", date="2020-01-01T00:00:00Z", **words)["data"] == []
    latest = get(service, f"/historical/sports/{NBA}/odds", date="2099-01-01T00:00:00Z", **words)
    assert latest["next_timestamp"] is None


def test_the_past_of_a_tier(service: Running) -> None:
    assert service.node.engine.now is not None
    date = service.node.engine.now.isoformat()
    found = get(service, f"/historical/sports/{NBA}/odds", "free", date=date, regions="us")
    assert {maker["key"] for game in found["data"] for maker in game["bookmakers"]} <= {"draftkings", "fanduel"}
    assert datetime.fromisoformat(found["timestamp"]) <= service.node.engine.now - timedelta(seconds=60)


# ---- errors ----

EVENT = "e" * 32
REFUSED: list[tuple[str, dict[str, str], int, str]] = [
    (f"/sports/{NBA}/odds", {}, 422, "MISSING_REGION"),
    (f"/sports/{NBA}/odds", {"regions": "us,mars"}, 422, "INVALID_REGION"),
    (f"/sports/{NBA}/odds", {"bookmakers": "corner_shop"}, 422, "INVALID_BOOKMAKERS"),
    (f"/sports/{NBA}/odds", {"regions": "us", "markets": ","}, 422, "MISSING_MARKET"),
    (f"/sports/{NBA}/odds", {"regions": "us", "markets": "player_points"}, 422, "INVALID_MARKET"),
    (f"/sports/{NBA}/odds", {"regions": "us", "markets": "alternate_totals"}, 422, "INVALID_MARKET"),
    (f"/sports/{NBA}/odds", {"regions": "us", "markets": "coin_toss"}, 422, "INVALID_MARKET"),
    (f"/sports/{NBA}/odds", {"regions": "us", "markets": "h2h,outrights"}, 422, "INVALID_MARKET_COMBO"),
    ("/sports/basketball_nba_mvp/odds", {"regions": "us", "markets": "h2h"}, 422, "INVALID_MARKET_COMBO"),
    (f"/sports/{NBA}/odds", {"regions": "us", "dateFormat": "julian"}, 422, "INVALID_DATE_FORMAT"),
    (f"/sports/{NBA}/odds", {"regions": "us", "oddsFormat": "fractional"}, 422, "INVALID_ODDS_FORMAT"),
    (f"/sports/{NBA}/events", {"commenceTimeFrom": "2026-02-08"}, 422, "INVALID_COMMENCE_TIME_FROM"),
    (f"/sports/{NBA}/events", {"commenceTimeFrom": "2026-02-30T00:00:00Z"}, 422, "INVALID_COMMENCE_TIME_FROM"),
    (f"/sports/{NBA}/events", {"commenceTimeTo": "soon"}, 422, "INVALID_COMMENCE_TIME_TO"),
    (f"/sports/{NBA}/events", {"commenceTimeFrom": "2026-02-08T00:00:00Z", "commenceTimeTo": "2026-02-07T00:00:00Z"},
     422, "INVALID_COMMENCE_TIME_TO"),
    (f"/sports/{NBA}/events", {"eventIds": "e1"}, 422, "INVALID_EVENT_IDS"),
    (f"/sports/{NBA}/events/e1/odds", {"regions": "us"}, 422, "INVALID_EVENT_ID"),
    (f"/sports/{NBA}/events/{EVENT}/odds", {"regions": "us"}, 404, "EVENT_NOT_FOUND"),
    (f"/sports/{NBA}/events/{EVENT}/markets", {"regions": "us"}, 404, "EVENT_NOT_FOUND"),
    ("/sports/quidditch/odds", {"regions": "us"}, 404, "UNKNOWN_SPORT"),
    ("/sports/basketball_quidditch/events", {}, 404, "UNKNOWN_SPORT"),
    (f"/sports/{NBA}/scores", {"daysFrom": "4"}, 422, "INVALID_SCORES_DAYS_FROM"),
    (f"/historical/sports/{NBA}/odds", {"regions": "us"}, 422, "INVALID_HISTORICAL_TIMESTAMP"),
    (f"/historical/sports/{NBA}/odds", {"regions": "us", "date": "then"}, 422, "INVALID_HISTORICAL_TIMESTAMP"),
    (f"/historical/sports/{NBA}/events", {"date": "1969-01-01T00:00:00Z"}, 422, "INVALID_HISTORICAL_TIMESTAMP"),
    (f"/historical/sports/{NBA}/events/{EVENT}/odds", {"date": "2026-02-07T18:00:00Z", "regions": "us"}, 404,
     "EVENT_NOT_FOUND"),
    ("/sports", {"all": "maybe"}, 422, "INVALID_PARAMETER"),
    ("/sport", {}, 404, "NOT_FOUND"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "params", "status", "code"), REFUSED, ids=lambda each: str(each).replace(EVENT, "e"))
def test_errors(service: Running, path: str, params: dict[str, str], status: int, code: str) -> None:
    check(service, ask(service, path, **params), status, code)


def check(service: Running, answer: httpx2.Response, status: int, code: str) -> None:
    body = answer.json()
    assert (answer.status_code, body["error_code"]) == (status, code), answer.text
    assert list(body) == ["message", "error_code", "details_url"]
    assert body["details_url"] == f"{service.origin}/docs#{code if code in CODES else code.lower()}"
    for name in ("remaining", "used", "last"):
        assert answer.headers[f"x-requests-{name}"].isdigit()


def test_errors_of_keys(service: Running) -> None:
    check(service, ask(service, "/sports", None), 401, "MISSING_KEY")
    check(service, ask(service, "/sports", None, apiKey="nobody"), 401, "INVALID_KEY")
    check(service, ask(service, "/sports", None, api_key="demo_pro"), 401, "MISSING_KEY")
    refused = ask(service, f"/sports/{NBA}/odds", "free", bookmakers="pinnacle")
    check(service, refused, 401, "TIER_RESTRICTED")
    assert "pro" in refused.json()["message"]


def test_words_for_several_markets_are_none(service: Running) -> None:
    ident = events(service)[0]["id"]
    for word in ("props", "main", "total", "coin_toss"):
        refused = ask(service, f"/sports/{NBA}/events/{ident}/odds", regions="us", markets=f"h2h,{word}")
        check(service, refused, 422, "INVALID_MARKET")
        assert word in refused.json()["message"]


def test_every_code_is_on_the_page_that_errors_link_to(service: Running) -> None:
    page = httpx2.get(f"{service.origin}/docs", timeout=PATIENCE_S).text
    for code in (*CODES, "not_found", "method_not_allowed", "internal_error", "not_ready"):
        assert f'id="{code}"' in page


def test_methods_and_slashes(service: Running) -> None:
    plain, slashed = ask(service, "/sports"), ask(service, "/sports/")
    assert plain.content == slashed.content
    assert plain.headers["etag"] == slashed.headers["etag"]
    assert ask(service, f"/sports/{NBA}/events/{events(service)[0]['id']}/odds/", regions="us").status_code == 200
    url = f"{service.origin}/v4/sports?apiKey=demo_pro"
    head = httpx2.head(url)
    assert (head.status_code, head.content) == (200, b"")
    again = httpx2.get(url, headers={"If-None-Match": head.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "x-requests-remaining" in again.headers
    refused = httpx2.post(url)
    check(service, refused, 405, "METHOD_NOT_ALLOWED")
    assert refused.headers["allow"] == "GET, HEAD"
    with service.client("pro") as client:
        assert client.get(f"{service.origin}/v4/sports").content == httpx2.get(url).content, "the key as a header"
    assert ask(service, f"/sports/{NBA}/odds", regions="us").headers["content-encoding"] == "gzip"


# ---- tiers, delay and credits ----


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_sees_its_books(service: Running, tier: str) -> None:
    own = books_of(tier)
    with service.client(tier) as client:
        ours = {row["id"] for row in client.get("/sportsbooks").json()["data"] if own is None or row["id"] in own}
    found = set()
    for sport in get(service, "/sports", tier):
        if not sport["has_outrights"]:
            games = get(service, f"/sports/{sport['key']}/odds", tier, regions="us,us2,us_ex,us_dfs,uk,eu,au")
            found |= {maker["title"] for game in games for maker in game["bookmakers"]}
    with service.client(tier) as client:
        names = {row["name"] for row in client.get("/sportsbooks").json()["data"] if row["id"] in ours}
    assert found
    assert found <= names


def test_callers_of_a_tier_share_answers_and_no_others(service: Running) -> None:
    """The key is no part of what is cached; what it may see is."""
    bodies = {tier: ask(service, f"/sports/{NBA}/odds", tier, regions="us,eu").content for tier in TIERS}
    again = {tier: ask(service, f"/sports/{NBA}/odds", tier, regions="us,eu").content for tier in reversed(TIERS)}
    assert again == bodies
    assert bodies["free"] != bodies["hobby"] != bodies["pro"] != bodies["sharp"]


@contextmanager
def node(folder: Path) -> Iterator[Served]:
    made = Served(folder)
    try:
        yield made
    finally:
        made.stop()


def quote(now: datetime, odds: float, **more: Any) -> dict[str, Any]:
    return {
        "sportsbook": "draftkings", "event_id": "e", "sport": "basketball", "league": "nba",
        "home_team": "Boston Celtics", "away_team": "Miami Heat", "market_type": "moneyline",
        "selection": "Boston Celtics", "selection_type": "home", "odds_decimal": odds, "is_live": False,
        "event_start_time": T0 + timedelta(hours=3), "last_seen_at": now, **more,
    }  # fmt: skip


def test_delay_credits_and_revoked_keys(tmp_path: Path) -> None:
    with node(tmp_path) as served:
        at = f"http://127.0.0.1:{served.port}/v4"

        def price(tier: str) -> list[float]:
            params = {"apiKey": served.key(tier), "regions": "us"}
            answer = httpx2.get(f"{at}/sports/{NBA}/odds", params=params)
            assert answer.headers["x-data-delay"] == str(TIERS[tier].delay)
            return [outcome["price"] for game in answer.json() for _, outcome in lines(game, "h2h")]

        served.step([quote(T0, 1.5)], T0)
        assert (price("free"), price("pro")) == ([], [1.5])
        served.step([quote(T0 + timedelta(seconds=30), 1.6)], T0 + timedelta(seconds=30))
        served.step([], T0 + timedelta(seconds=61))
        assert (price("free"), price("pro")) == ([1.5], [1.6])
        served.step([], T0 + timedelta(seconds=91))
        assert price("free") == [1.6]
        suspended = quote(T0 + timedelta(seconds=92), 1.6, is_active=False)
        served.step([suspended], T0 + timedelta(seconds=92))
        assert price("pro") == []

        poor = served.keys.create("poor", _terms(rate=2))
        answers = [httpx2.get(f"{at}/sports", params={"apiKey": poor.key}) for _ in range(3)]
        if [each.status_code for each in answers] != [200, 200, 429]:  # a minute has begun meanwhile
            answers = [httpx2.get(f"{at}/sports", params={"apiKey": poor.key}) for _ in range(3)]
        third = answers[-1]
        assert third.status_code == 429
        assert third.json()["error_code"] == "EXCEEDED_FREQ_LIMIT"
        assert int(third.headers["retry-after"]) <= 60
        left = [int(each.headers["x-requests-remaining"]) for each in answers]
        assert [left[0] - left[1], left[1] - left[2]] == [1, 0]
        assert [each.headers["x-requests-last"] for each in answers] == ["1", "1", "0"]

        served.keys.revoke(poor.record.id)
        gone = httpx2.get(f"{at}/sports", params={"apiKey": poor.key})
        assert (gone.status_code, gone.json()["error_code"]) == (401, "DEACTIVATED_KEY")
        guess = httpx2.get(f"{at}/sports", params={"apiKey": poor.key[:-1] + "!"})
        assert guess.json()["error_code"] == "INVALID_KEY"
        assert httpx2.get(f"{at}/historical/sports/{NBA}/odds", params={
            "apiKey": served.key("pro"), "regions": "us", "date": "2026-02-07T18:00:00Z",
        }).json()["error_code"] == "NOT_READY", "without history"  # fmt: skip


def test_credits_used_are_the_requests_of_the_month(
    service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Usage(tmp_path / "keys.sqlite", clock=service.clock)) as usage:
        monkeypatch.setattr(service.node.limits, "usage", usage)
        used = [int(ask(service, "/sports", "sharp").headers["x-requests-used"]) for _ in range(2)]
        with service.client("sharp") as client:
            month = client.get("/account/usage").json()["data"]["requests"]["this_month"]
    assert [*used, month] == [1, 2, 3]


def test_credits_left_are_what_the_rate_limit_allows_this_month() -> None:
    """In the first minute of the last hour of a month, 59 minutes are to come."""
    reset = round(datetime(2026, 2, 28, 23, 1, tzinfo=UTC).timestamp())
    headers = dict(credits_of(Room(10, 7, reset, allowed=True), 41))
    assert headers == {
        b"x-requests-remaining": b"%d" % (7 + 590), b"x-requests-used": b"41", b"x-requests-last": b"1",
    }  # fmt: skip
    assert set(dict(credits_of(None, 0)).values()) == {b"0"}


def _terms(rate: int) -> Any:
    from oddsengine_service.accounts.keys import KeyTerms

    return KeyTerms("hobby", rate=rate)


def test_lay_prices_and_teams_that_a_book_names_the_other_way_round(tmp_path: Path) -> None:
    home, away, tie = ("Arsenal", "home"), ("Fulham", "away"), ("Draw", "draw")

    def row(book: str, side: tuple[str, str], odds: float, market: str = "moneyline", **more: Any) -> dict[str, Any]:
        teams = {"home_team": "Arsenal", "away_team": "Fulham", "sport": "soccer", "league": "soccer_epl"}
        return quote(
            T0, odds, sportsbook=book, market_type=market, selection=side[0], selection_type=side[1], **(teams | more)
        )

    with node(tmp_path) as served:
        rows = [row(book, side, odds) for book in ("betfair_exchange", "bet365", "unibet")
                for side, odds in ((home, 2.0), (tie, 3.5), (away, 4.0))]  # fmt: skip
        rows += [
            row("betfair_exchange", side, odds, "h2h_lay") for side, odds in ((home, 2.1), (tie, 3.7), (away, 4.2))
        ]
        swapped = {"home_team": "Fulham", "away_team": "Arsenal"}
        for name, side, line in (("Fulham", "home", 0.5), ("Arsenal", "away", -0.5)):
            rows.append(row("coral", (name, side), 1.9, "point_spread", line=line, **swapped))
        rows.append(row("coral", ("Heads", ""), 1.9, "Coin toss"))
        served.step(rows, T0)
        at = f"http://127.0.0.1:{served.port}/v4/sports/soccer_epl/events/{v4_id('e')}"
        key = {"apiKey": served.key("sharp"), "regions": "uk"}
        listed = httpx2.get(f"{at}/markets", params=key).json()
        assert "Coin toss" in {market["key"] for maker in listed["bookmakers"] for market in maker["markets"]}
        tossed = httpx2.get(f"{at}/odds", params={**key, "markets": "Coin toss"}).json()
        assert [outcome["name"] for _, outcome in lines(tossed, "Coin toss")] == ["Heads"]
        params = {"apiKey": served.key("sharp"), "regions": "uk", "markets": "h2h,spreads"}
        (game,) = httpx2.get(f"http://127.0.0.1:{served.port}/v4/sports/soccer_epl/odds", params=params).json()
        assert (game["home_team"], game["away_team"]) == ("Arsenal", "Fulham")
        lays = {(book, outcome["name"]): outcome["price"] for book, outcome in lines(game, "h2h_lay")}
        assert lays == {
            ("betfair_ex_uk", name): odds for name, odds in (("Arsenal", 2.1), ("Draw", 3.7), ("Fulham", 4.2))
        }
        spreads = {(book, outcome["name"]): outcome["point"] for book, outcome in lines(game, "spreads")}
        assert spreads == {("coral", "Arsenal"): -0.5, ("coral", "Fulham"): 0.5}


# ---- anything ----

WORDS = st.one_of(
    st.sampled_from(["us", "eu", "h2h", "spreads", "draftkings", "main", "props", "outrights", "h2h_lay", "iso", "1"]),
    st.text(max_size=20),
)
PARAMS = st.dictionaries(
    st.sampled_from(
        ["regions", "bookmakers", "markets", "oddsFormat", "dateFormat", "eventIds", "commenceTimeFrom",
         "commenceTimeTo", "includeLinks", "includeSids", "includeBetLimits", "daysFrom", "date", "all", "x"]
    ),
    st.one_of(
        WORDS, st.lists(WORDS, max_size=4).map(",".join),
        st.datetimes(min_value=datetime(1, 1, 1)).map(lambda at: at.isoformat() + "Z"),
    ),
    max_size=6,
)  # fmt: skip
PATHS = (
    "/sports", "/sports/{s}/odds", "/sports/{s}/events", "/sports/{s}/events/{e}/odds",
    "/sports/{s}/events/{e}/markets", "/sports/{s}/participants", "/sports/{s}/scores",
    "/historical/sports/{s}/odds", "/historical/sports/{s}/events", "/historical/sports/{s}/events/{e}/odds",
)  # fmt: skip


@given(
    path=st.sampled_from(PATHS), sport=st.one_of(st.sampled_from([NBA, "upcoming", "basketball_nba_mvp"]), WORDS),
    params=PARAMS, known=st.booleans(), tier=st.sampled_from(list(TIERS)),
)  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_is_an_internal_error(
    service: Running,
    path: str,
    sport: str,
    params: dict[str, str],
    known: bool,
    tier: str,
) -> None:
    event = events(service)[0]["id"] if known else "0" * 32
    place = quote_url(sport, safe="", errors="replace") if sport.strip("./") else "x"
    answer = ask(service, path.format(s=place, e=event), tier, **params)
    assert answer.status_code in (200, 401, 404, 422), answer.text
    if answer.status_code != 200:
        assert answer.json()["error_code"].isupper()
