"""Reference data, events and health over the wire: against plain loops over the board's table."""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.handler_calls import answer, ask, found, node, world

import oddsengine_service.routes.catalog_routes as module
import oddsengine_service.routes.event_routes as events_module
import oddsengine_service.routes.health_routes as health_module
from oddsengine import catalog
from oddsengine.live.engine import Engine
from oddsengine_service.errors import Problem
from oddsengine_service.node import Node
from oddsengine_service.tiers import TIERS, books_of

SPORTS, SPORT = (found(module.endpoints, path) for path in ("/sports", "/sports/{sportId}"))
LEAGUES, LEAGUE = (found(module.endpoints, path) for path in ("/leagues", "/leagues/{leagueId}"))
BOOKS, BOOK = (found(module.endpoints, path) for path in ("/sportsbooks", "/sportsbooks/{bookId}"))
MARKETS, TEAMS = (found(module.endpoints, path) for path in ("/markets", "/teams"))
EVENTS, EVENT, EVENT_MARKETS = (
    found(events_module.endpoints, path) for path in ("/events", "/events/{eventId}", "/events/{eventId}/markets")
)
HEALTH = found(health_module.endpoints, "/health")
FIELDS = {
    SPORTS: "id name event_count live_count leagues slug active numerical_id",
    LEAGUES: "id name sport event_count live_count slug active sport_id country numerical_id",
    BOOKS: "id name display_name is_sharp has_live_odds has_player_props regions requires_tier status event_count "
    "last_update unlisted slug active numerical_id places",
    MARKETS: "id name description hasLine examples event_count selection_count sports numerical_id",
    TEAMS: "id name sport leagues aliases event_count live_count numerical_id",
    EVENTS: "id external_ids sport league home_team away_team start_time status is_live book_count markets books "
    "game_state",
}


@cache
def here() -> Node:
    return node(world(5, 3, events=20, hazards=True, live=0.3))


@cache
def table(tier: str) -> list[dict[str, Any]]:
    """Rows of the board that a tier sees."""
    own = books_of(tier)
    rows = [
        {**row, "market_type": catalog.published_name(row["market_type"], row["sport"], row["stat_category"] or "")}
        for row in here().engine.table().to_dicts()
    ]
    return [row for row in rows if own is None or catalog.book(row["sportsbook"]).id in own]


@cache
def stands() -> dict[str, dict[str, Any]]:
    return {row["event_id"]: row for row in here().engine.events().to_dicts()}


def games(tier: str) -> dict[str, list[dict[str, Any]]]:
    out: dict[str, list[dict[str, Any]]] = {}
    for row in table(tier):
        out.setdefault(row["event_id"], []).append(row)
    return out


@pytest.mark.parametrize("endpoint", FIELDS, ids=lambda endpoint: endpoint.path)
def test_fields_are_the_published_ones(endpoint: Any) -> None:
    got = answer(endpoint, here())
    assert got["success"] is True
    assert got["data"]
    for row in got["data"]:
        assert list(row) == FIELDS[endpoint].split()


def test_places_of_a_book_answer_as_the_catalog_does() -> None:
    rows = answer(BOOKS, here(), {"catalog": "true"})["data"]
    assert {"kalshi", "draftkings", "betmgm", "polymarket"} <= {row["id"] for row in rows}
    for row in rows:
        told = row["places"]
        places = catalog.Places(frozenset(told["open"]), frozenset(told["closed"]), frozenset(told["unknown"]))
        for place in ("US", "US-MA", "US-NV", "US-NJ", "US-CA", "GB", "CA-ON", "SE"):
            assert places.takes_bets(place) is catalog.places(row["id"]).takes_bets(place), (row["id"], place)
    for query, known in (
        ({"location": "US-NJ"}, (True,)),
        ({"location": "US-NJ", "location_unknown": "true"}, (True, None)),
    ):
        found = answer(BOOKS, here(), {"catalog": "true", **query})["data"]
        assert [row["id"] for row in found] == [
            row["id"] for row in rows if catalog.places(row["id"]).takes_bets("US-NJ") in known
        ]


@pytest.mark.parametrize("tier", ["free", "hobby", "sharp"])
def test_counts_are_those_of_the_callers_books(tier: str) -> None:
    played = games(tier)
    sports: dict[str, set[str]] = {}
    leagues: dict[str, set[str]] = {}
    for event, rows in played.items():
        sports.setdefault(rows[0]["sport"], set()).add(event)
        leagues.setdefault(rows[0]["league"], set()).add(event)
    live = {event for event in played if stands()[event]["status"] == "live"}
    for endpoint, expected in ((SPORTS, sports), (LEAGUES, leagues)):
        got = {row["id"]: row for row in answer(endpoint, here(), tier=tier)["data"]}
        assert {id_: row["event_count"] for id_, row in got.items()} == {k: len(v) for k, v in expected.items()}
        assert {id_: row["live_count"] for id_, row in got.items()} == {k: len(v & live) for k, v in expected.items()}
        assert all(row["active"] and row["slug"] == id_ for id_, row in got.items())
    types: dict[str, set[str]] = {}
    for row in table(tier):
        types.setdefault(row["market_type"], set()).add(row["event_id"])
    got = {row["id"]: row for row in answer(MARKETS, here(), tier=tier)["data"]}
    assert {id_: row["event_count"] for id_, row in got.items()} == {k: len(v) for k, v in types.items()}


def test_selections_count_once_however_many_books_offer_them() -> None:
    now = datetime(2026, 2, 8, tzinfo=UTC)
    engine = Engine()
    engine.step(
        [
            {
                "event_id": "e", "sport": "basketball", "league": "nba", "home_team": "Boston Celtics",
                "away_team": "Los Angeles Lakers", "market_type": "total_points", "line": line, "sportsbook": book,
                "selection": side, "odds_decimal": 1.9, "last_seen_at": now,
            }
            for book in ("draftkings", "fanduel", "betmgm")
            for line in (220.5, 221.5)
            for side in ("Over", "Under")
        ],
        now,
    )  # fmt: skip
    (row,) = answer(MARKETS, node(engine))["data"]
    assert (row["id"], row["event_count"], row["selection_count"], row["sports"]) == (
        "total_points", 1, 4, ["basketball"],
    )  # fmt: skip
    assert row["hasLine"] is True


def test_empty_ones_on_demand() -> None:
    some, every = (answer(SPORTS, here(), {"include_empty": flag})["data"] for flag in (False, True))
    assert {row["id"] for row in every} >= set(catalog.sports()) > {row["id"] for row in some}
    assert [row for row in every if row["active"]] == some
    empty = next(row for row in every if not row["active"])
    assert (empty["event_count"], empty["live_count"], empty["leagues"]) == (0, 0, [])
    soccer = answer(LEAGUES, here(), {"include_empty": True, "sport": "soccer"})["data"]
    assert {row["sport"] for row in soccer} == {"soccer"}
    assert len(soccer) == sum(each.sport == "soccer" for each in catalog.leagues().values())


def test_one_by_one() -> None:
    for row in answer(SPORTS, here())["data"]:
        assert answer(SPORT, here(), path={"sportId": row["id"]})["data"] == row
    for row in answer(LEAGUES, here())["data"]:
        assert answer(LEAGUE, here(), path={"leagueId": row["id"]})["data"] == row
    for row in answer(BOOKS, here())["data"]:
        assert answer(BOOK, here(), path={"bookId": row["id"]})["data"] == row
    assert answer(SPORT, here(), path={"sportId": "tennis"})["data"]["event_count"] == 0
    assert answer(LEAGUE, here(), path={"leagueId": "england_premier_league"})["data"]["country"] == "England"
    for endpoint, name in ((SPORT, "sportId"), (LEAGUE, "leagueId"), (BOOK, "bookId")):
        with pytest.raises(Problem) as problem:
            answer(endpoint, here(), path={name: "no such thing"})
        assert (problem.value.status, problem.value.code) == (404, "not_found")


# ---- books ----


def test_books_have_their_events_and_times() -> None:
    rows = here().engine.table().to_dicts()
    for row in answer(BOOKS, here(), {"include_unlisted": True})["data"]:
        mine = [each for each in rows if catalog.book(each["sportsbook"]).id == row["id"]]
        assert row["event_count"] == len({each["event_id"] for each in mine})
        assert datetime.fromisoformat(row["last_update"]) == max(each["last_seen_at"] for each in mine)
        known = catalog.book(row["id"])
        assert (row["is_sharp"], row["requires_tier"]) == (known.sharp, known.requires_tier)


def test_books_are_filtered() -> None:
    every = answer(BOOKS, here())["data"]
    sharp = answer(BOOKS, here(), {"sharp": True})["data"]
    assert sharp == [row for row in every if row["is_sharp"]] != []
    assert answer(BOOKS, here(), {"sharp": False})["data"] == [row for row in every if not row["is_sharp"]]
    eu = answer(BOOKS, here(), {"region": "EU"})["data"]
    assert eu == [row for row in every if "EU" in row["regions"]] != []
    with pytest.raises(Problem):
        answer(BOOKS, here(), {"region": "MARS"})
    listed = answer(BOOKS, here(), {"catalog": True})["data"]
    assert [row["id"] for row in listed] == list(catalog.books())
    assert listed == answer(BOOKS, here(), {"include_inactive": True})["data"]
    idle = next(row for row in listed if not row["event_count"])
    assert (idle["status"], idle["last_update"], idle["active"]) == ("inactive", None, False)
    assert len(answer(BOOKS, node(Engine()), {"catalog": True})["data"]) == len(catalog.books())
    assert answer(BOOKS, node(Engine()))["data"] == []


def one_price(now: datetime, **more: Any) -> dict[str, Any]:
    return {
        "event_id": "e", "sport": "tennis", "league": "atp", "home_team": "A", "away_team": "B", "odds_decimal": 1.9,
        "market_type": "moneyline", "selection": "A", "sportsbook": "draftkings", "last_seen_at": now,
        "event_start_time": now + timedelta(hours=5), **more,
    }  # fmt: skip


@pytest.mark.parametrize(("age", "status"), [(0, "active"), (59, "active"), (61, "degraded"), (601, "down")])
def test_a_book_without_news_is_degraded_and_then_down(age: int, status: str) -> None:
    now = datetime(2026, 2, 8, tzinfo=UTC)
    engine = Engine()
    engine.step([one_price(now)], now)
    engine.step([], now + timedelta(seconds=age))
    (row,) = answer(BOOKS, node(engine))["data"]
    assert (row["status"], row["active"]) == (status, True)


def test_a_book_is_as_its_source_says() -> None:
    class Hub:
        def books(self) -> list[Any]:
            return [type("Book", (), {"book": "draftkings", "status": "down"})]

    now = datetime(2026, 2, 8, tzinfo=UTC)
    engine = Engine()
    engine.step([one_price(now), one_price(now, sportsbook="fanduel")], now)
    node_ = node(engine)
    node_.use_feeds(Hub())  # type: ignore[arg-type]
    assert {row["id"]: row["status"] for row in answer(BOOKS, node_)["data"]} == {
        "draftkings": "down", "fanduel": "active",
    }  # fmt: skip


def test_books_that_nobody_listed() -> None:
    now = datetime(2026, 2, 8, tzinfo=UTC)
    engine = Engine()
    engine.step([one_price(now, sportsbook="Corner Shop")], now)
    assert answer(BOOKS, node(engine))["data"] == []
    (row,) = answer(BOOKS, node(engine), {"include_unlisted": True})["data"]
    assert (row["id"], row["unlisted"], row["requires_tier"]) == ("corner_shop", True, "sharp")
    assert answer(EVENTS, node(engine), tier="pro")["data"] == []
    assert answer(EVENTS, node(engine))["data"][0]["books"] == ["corner_shop"]


# ---- teams ----


def test_teams_are_those_that_play() -> None:
    expected: dict[str, set[str]] = {}
    for event, rows in games("sharp").items():
        for name in (rows[0]["home_team"], rows[0]["away_team"]):
            known = catalog.team(name, rows[0]["sport"], rows[0]["league"])
            assert known is not None
            expected.setdefault(known.id, set()).add(event)
    got = {row["id"]: row for row in answer(TEAMS, here())["data"]}
    assert {id_: row["event_count"] for id_, row in got.items()} == {id_: len(at) for id_, at in expected.items()}
    some = answer(TEAMS, here(), {"q": "SAN"})["data"]
    assert some
    assert all(any("san" in catalog.normalise(text) for text in (row["name"], *row["aliases"])) for row in some)
    assert {row["sport"] for row in answer(TEAMS, here(), {"sport": "nba,hockey"})["data"]} <= {"basketball", "hockey"}
    assert all("nfl" in row["leagues"] for row in answer(TEAMS, here(), {"league": "NFL"})["data"])
    got = answer(TEAMS, here(), {"sport": "quidditch"})
    assert (got["data"], got["meta"]) == ([], {"unknown": {"sport": ["quidditch"]}})


def test_teams_of_small_leagues_have_the_name_that_rows_have() -> None:
    now = datetime(2026, 2, 8, tzinfo=UTC)
    engine = Engine()
    engine.step([one_price(now, home_team="Émile Ducros", away_team="Ana B.", selection="Ana B.")], now)
    got = {row["id"]: row["name"] for row in answer(TEAMS, node(engine))["data"]}
    assert got == {"emile_ducros": "Émile Ducros", "ana_b": "Ana B."}


# ---- events ----

WORDS = {
    "sport": st.sampled_from(["football", "basketball,soccer", "ice hockey", "tennis"]),
    "league": st.sampled_from(["nfl", "nba,mlb", "soccer_epl"]),
    "sportsbook": st.sampled_from(["draftkings", "betfair_exchange,circa", "polymarket_mid"]),
    "live": st.booleans(),
    "has_score": st.booleans(),
    "team": st.sampled_from(["lakers,chiefs", "Arsenal", "boston_celtics", "nobody"]),
    "date": st.sampled_from(["today", "tomorrow", "2026-02-07", "2026-02-08"]),
    "q": st.sampled_from(["SAN", "ý", "an", "@"]),
    "limit": st.integers(1, 30),
    "offset": st.integers(0, 12),
}


@given(
    st.lists(st.sampled_from(sorted(WORDS)), unique=True, max_size=4).flatmap(
        lambda names: st.fixed_dictionaries({name: WORDS[name] for name in names})
    ),
    st.sampled_from(["pro", "sharp"]),
)
def test_events_are_what_plain_loops_find(q: dict[str, Any], tier: str) -> None:
    books = set(q["sportsbook"].split(",")) if "sportsbook" in q else None
    if books is not None and tier == "pro" and not books <= (books_of("pro") or set()):
        with pytest.raises(Problem):
            answer(EVENTS, here(), q, tier)
        return
    eastern = ZoneInfo("America/New_York")
    now = here().engine.now
    assert now is not None
    today = now.astimezone(eastern).date()
    kept = []
    for event, every in games(tier).items():
        rows = [row for row in every if books is None or catalog.book(row["sportsbook"]).id in books]
        if not rows:
            continue
        row, known = rows[0], stands()[event]
        start = known["event_start_time"]
        day = {"today": today, "tomorrow": today + timedelta(days=1)}.get(q.get("date", ""))
        day = day if "date" not in q or day is not None else datetime.fromisoformat(q["date"]).date()
        names = catalog.normalise(f"{row['away_team']} @ {row['home_team']}")
        teams = [catalog.team(word, row["sport"], row["league"]) for word in q.get("team", "").split(",")]
        mine = [catalog.team(name, row["sport"], row["league"]) for name in (row["home_team"], row["away_team"])]
        if (
            ("sport" not in q or row["sport"] in [catalog.sport(word).id for word in q["sport"].split(",")])
            and (
                "league" not in q
                or row["league"] in [catalog.league(w, row["sport"]).id for w in q["league"].split(",")]
            )
            and ("live" not in q or (known["status"] == "live") == q["live"])
            and not q.get("has_score")
            and ("team" not in q or any(team is not None and team in mine for team in teams))
            and ("date" not in q or start.astimezone(eastern).date() == day)
            and ("q" not in q or (catalog.normalise(q["q"]) != "" and catalog.normalise(q["q"]) in names))
        ):
            kept.append((start, event, rows))
    kept.sort(key=lambda each: each[:2])
    got = answer(EVENTS, here(), q, tier)
    offset = q.get("offset", 0)
    page = kept[offset : offset + q.get("limit", 50)]
    assert [row["id"] for row in got["data"]] == [event for _, event, _ in page]
    assert got["meta"]["total"] == len(kept)
    for row, (start, event, rows) in zip(got["data"], page, strict=True):
        ids = {catalog.book(each["sportsbook"]).id for each in rows}
        assert row["books"] == sorted(ids)
        assert row["book_count"] == len(ids)
        assert row["markets"] == sorted({each["market_type"] for each in rows})
        assert row["status"] == stands()[event]["status"]
        assert row["is_live"] == (row["status"] == "live")
        assert datetime.fromisoformat(row["start_time"]) == start
        external = {catalog.book(each["sportsbook"]).id: each["external_event_id"] for each in rows}
        assert row["external_ids"] == {book: ident for book, ident in external.items() if ident}


def test_one_event() -> None:
    for row in answer(EVENTS, here(), {"limit": 3}, "hobby")["data"]:
        assert answer(EVENT, here(), tier="hobby", path={"eventId": row["id"]})["data"] == row
        assert answer(EVENT_MARKETS, here(), tier="hobby", path={"eventId": row["id"]})["data"] == row["markets"]
    for endpoint in (EVENT, EVENT_MARKETS):
        with pytest.raises(Problem) as problem:
            answer(endpoint, here(), path={"eventId": "no such game"})
        assert problem.value.status == 404


def test_external_ids_are_found_though_only_one_row_has_them() -> None:
    now = datetime(2026, 2, 8, tzinfo=UTC)
    engine = Engine()
    rows = [
        one_price(now, selection=side, sportsbook=book) for book in ("draftkings", "fanduel") for side in ("A", "B")
    ]
    rows[1]["external_event_id"] = "dk-7"
    engine.step(rows, now)
    (row,) = answer(EVENTS, node(engine))["data"]
    assert row["external_ids"] == {"draftkings": "dk-7"}


@pytest.mark.parametrize("status", ["postponed", "cancelled", "live", "upcoming"])
def test_status_is_what_a_source_says(status: str) -> None:
    now = datetime(2026, 2, 8, tzinfo=UTC)
    engine = Engine()
    engine.step([one_price(now)], now, events=[{"event_id": "e", "status": status}])
    (row,) = answer(EVENTS, node(engine))["data"]
    assert row["status"] == status
    assert row["is_live"] == (status == "live")


def test_answers_follow_the_board() -> None:
    now = datetime(2026, 2, 8, tzinfo=UTC)
    engine = Engine()
    engine.step([one_price(now)], now)
    node_ = node(engine)
    assert answer(EVENTS, node_)["data"][0]["book_count"] == 1
    engine.step([one_price(now, sportsbook="fanduel")], now + timedelta(seconds=1))
    assert answer(EVENTS, node_)["data"][0]["book_count"] == 2


def test_who_needs_a_key() -> None:
    keys = {each.path: (each.key, each.query_key) for each in (*module.endpoints, *events_module.endpoints)}
    assert keys["/sports"] == keys["/leagues"] == ("optional", True)
    for path in ("/sports/{sportId}", "/leagues/{leagueId}", "/sportsbooks", "/markets", "/teams"):
        assert keys[path] == ("needed", True)
    assert keys["/events"] == ("needed", False)
    assert HEALTH.key == "none"
    assert TIERS["free"].rank == 0


# ---- health ----


def test_health() -> None:
    node_ = node(here().engine)
    assert _health(node_)[0] == 503
    assert _health(node_)[1]["checks"]["data"]["message"] == "starting"
    node_.report("log", "no suitable peers")
    assert _health(node_)[1]["checks"]["data"]["message"] == "starting; failing: log"
    node_.report("log", "")
    node_.wait_for("")
    status, body = _health(node_)
    assert (status, body["status"], body["checks"]["data"]["message"]) == (200, "degraded", "no price yet")
    node_.changed_at = datetime.now(UTC).timestamp()
    status, body = _health(node_)
    assert (status, body["status"], body["version"]) == (200, "ok", "v1")
    assert set(body) == {"status", "version", "timestamp", "checks", "fair"}
    assert set(body["checks"]) == {"cache", "data", "schema"}
    assert all(isinstance(check["latency_ms"], int) for check in body["checks"].values())
    assert all(set(check) <= {"status", "latency_ms", "message"} for check in body["checks"].values())
    node_.changed_at -= 100.0
    assert _health(node_)[1]["status"] == "degraded"
    node_.changed_at -= 1000.0
    assert _health(node_)[0] == 503
    node_.changed_at += 1100.0
    node_.failures["feed"] = "ValueError: no"
    assert _health(node_)[1]["checks"]["data"] == {
        "status": "degraded", "latency_ms": 0, "message": "failing: feed",
    }  # fmt: skip
    node_.failures.clear()
    node_.close()
    assert _health(node_)[0] == 503


def test_health_tells_a_dead_writer_and_a_broken_store() -> None:
    node_ = node(Engine())
    node_.wait_for("")
    node_.changed_at = datetime.now(UTC).timestamp()
    node_.write(lambda: None).result()
    assert _health(node_)[0] == 200
    node_._jobs.shutdown()
    assert _health(node_)[1]["checks"]["data"]["message"] == "the writer is gone"

    class Broken:
        def find(self, key: str) -> None:
            raise OSError("disk")

    node_.keys = Broken()  # type: ignore[assignment]
    assert _health(node_)[1]["checks"]["cache"]["status"] == "down"


def _health(node_: Node) -> tuple[int, Any]:
    got = HEALTH.answer(ask(HEALTH, node_))
    return got.status, msgspec.json.decode(got.body)


def test_an_event_is_named_as_most_books_name_it() -> None:
    now = datetime(2026, 2, 8, tzinfo=UTC)
    engine = Engine()
    rows = [one_price(now, sportsbook=book) for book in ("fanduel", "betmgm")]
    engine.step([one_price(now, home_team="B", away_team="A"), *rows], now)
    (row,) = answer(EVENTS, node(engine))["data"]
    assert (row["home_team"], row["away_team"]) == ("A", "B")
