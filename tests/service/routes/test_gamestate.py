"""Game states over real sockets: the answers, who may ask, filters, the stream, and what they add to other rows."""

import asyncio
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Any

import pytest
from sharpapi import AsyncSharpAPI, SharpAPI
from sharpapi.models import GameState
from support.effort import less
from support.service_running import TIER_IDS, Running
from support.stream_running import Client, Served, full_board, heard, price, wait_for

from oddsengine.feeds.merged_scores import ENDED_S, STALE_S, ScoreReading
from oddsengine.simulate import World
from oddsengine_service.accounts.keys import KeyTerms
from oddsengine_service.board.game_store import GameBoard
from oddsengine_service.demo import apply_batch, teams_of
from oddsengine_service.wire.games_response import Teams

Row = dict[str, Any]
FIELDS: dict[str, tuple[type, ...]] = {
    "home_team": (str,), "away_team": (str,), "sport": (str,), "league": (str,), "home_score": (int,),
    "away_score": (int,), "is_live": (bool,), "game_period": (str,), "game_clock": (str, type(None)),
    "possession": (str, type(None)), "primary_book": (str,), "book_count": (int,), "stale": (bool,),
    "updated_at": (str,),
}  # fmt: skip
PERIODS = re.compile("Q[1-4]|[12]H|P[1-3]|[TB][1-9]|FT")
T0 = datetime(2026, 2, 7, 18, 0, tzinfo=UTC)
_days = count(1)
NBA = Teams("basketball", "nba", "Home", "Away")


@pytest.fixture(scope="module")
def served(served: Served) -> Served:
    served.made["late"] = served.keys.create(
        "account-late", KeyTerms("free", frozenset({"odds", "gamestate"}), rate=100_000)
    )
    return served


@pytest.fixture
def listen(served: Served) -> Iterator[Callable[..., Client]]:
    clients: list[Client] = []

    def make(path: str, tier: str = "enterprise", **more: Any) -> Client:
        clients.append(Client(served.port, path, served.key(tier), **more))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
        assert not client.faults, client.faults


def day() -> datetime:
    """A moment after everything that was told so far, which has left by then."""
    return T0 + timedelta(days=next(_days))


def said(event: str, home: int, away: int, at: datetime, source: str = "draftkings", **more: Any) -> ScoreReading:
    return ScoreReading(event, source, round(at.timestamp() * 1e6), home, away, **more)


def tell(served: Served, at: datetime, *readings: ScoreReading, teams: Teams = NBA) -> None:
    games = served.node.games
    served.node.write(games.put, readings, at, {reading.event: teams for reading in readings}).result(60)


def get(server: Running, path: str, tier: str = "enterprise") -> Any:
    with server.client(tier) as client:
        answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def flat(data: dict[str, dict[str, Row]]) -> dict[str, Row]:
    return {event: row for events in data.values() for event, row in events.items()}


# ---- what is answered ----


def test_the_states_of_a_world(service: Running) -> None:
    data = get(service, "/gamestate")["data"]
    rows = flat(data)
    assert len(rows) >= 2
    world, points = service.film.world, service.film.tick(service.shown - 1).points
    place = {fixture.id: at for at, fixture in enumerate(world.fixtures)}
    for sport, events in data.items():
        for event, row in events.items():
            assert list(row) == list(FIELDS)
            assert all(isinstance(row[name], kinds) for name, kinds in FIELDS.items()), row
            assert row["sport"] == sport
            assert PERIODS.fullmatch(row["game_period"])
            assert row["is_live"] == (row["game_period"] != "FT")
            fixture = world.fixtures[place[event]]
            assert (row["home_team"], row["away_team"]) == (fixture.home, fixture.away)
            assert row["home_score"] <= points[place[event], 0]
            assert row["away_score"] <= points[place[event], 1]
            assert row["primary_book"] in world.books
            assert 1 <= row["book_count"] <= len(world.books)
    assert list(data) == sorted(data)


def test_they_move_with_the_world(service: Running) -> None:
    before = flat(get(service, "/gamestate?live=true")["data"])
    service.advance(12)
    after = flat(get(service, "/gamestate")["data"])
    both = before.keys() & after.keys()
    assert both
    assert any(before[event] != after[event] for event in both)
    for event in both:
        assert after[event]["home_score"] >= before[event]["home_score"]
        assert datetime.fromisoformat(after[event]["updated_at"]) >= datetime.fromisoformat(before[event]["updated_at"])


def test_one_sport(service: Running) -> None:
    data = get(service, "/gamestate")["data"]
    for sport, events in data.items():
        assert get(service, f"/gamestate/{sport}")["data"] == {sport: events}
    assert get(service, "/gamestate/Ice%20Hockey")["data"] == {"hockey": data.get("hockey", {})}
    assert get(service, "/gamestate/chess")["data"] == {"chess": {}}
    with service.client() as client:
        answer = client.get("/gamestate/quidditch")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"
    assert "'quidditch'" in answer.json()["error"]["message"]


def test_filters(service: Running) -> None:
    rows = flat(get(service, "/gamestate")["data"])
    first, second = list(rows)[:2]
    cases: list[tuple[str, Callable[[str, Row], bool]]] = [
        ("sport=basketball,ice hockey", lambda _, row: row["sport"] in ("basketball", "hockey")),
        ("league=nba,soccer_epl", lambda _, row: row["league"] in ("nba", "england_premier_league")),
        (f"event={first},{second}", lambda event, _: event in (first, second)),
        ("live=true", lambda _, row: row["is_live"]),
        ("live=0", lambda _, row: not row["is_live"]),
        (f"event={first}&live=true&sport={rows[first]['sport']}", lambda event, row: event == first and row["is_live"]),
    ]
    for query, fits in cases:
        found = get(service, f"/gamestate?{query}")["data"]
        assert flat(found) == {event: row for event, row in rows.items() if fits(event, row)}, query
        assert all(found.values())
    sport, league = rows[first]["sport"], rows[first]["league"]
    found = get(service, f"/gamestate/{sport}?league={league}&event={first}")["data"]
    assert found == {sport: {first: rows[first]}}
    odd = get(service, "/gamestate?sport=quidditch&league=nba&event=e1&colour=red")
    assert odd["data"] == {}
    assert odd["meta"] == {"unknown": {"sport": ["quidditch"], "event": ["e1"]}, "ignored": ["colour"]}


@pytest.mark.parametrize("path", ["/gamestate", "/gamestate/basketball"])
def test_who_may_ask(service: Running, path: str) -> None:
    for tier in TIER_IDS[:-1]:
        with service.client(tier) as client:
            answer = client.get(path)
        assert answer.status_code == 403
        error = answer.json()["error"]
        assert error["code"] == "tier_restricted"
        assert "enterprise" in error["message"]
        assert tier in error["message"]
    with service.client(None) as client:
        assert client.get(path).json()["error"]["code"] == "unauthorized"
        assert client.get(path, headers={"X-API-Key": "nobody"}).status_code == 401
    with service.client() as client:
        assert client.get(f"{path}?live=maybe").json()["error"]["code"] == "validation_error"
        assert client.post(path).json()["error"]["code"] == "method_not_allowed"


def test_what_did_not_change_is_not_sent_again(service: Running) -> None:
    with service.client() as client:
        tag = client.get("/gamestate").headers["etag"]
        again = client.get("/gamestate", headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        service.advance(3)
        assert client.get("/gamestate", headers={"If-None-Match": tag}).status_code == 200


def test_the_description_has_them(service: Running) -> None:
    with service.client() as client:
        document = client.get(f"{service.origin}/openapi.json").json()
    for path in ("/gamestate", "/gamestate/{sport}"):
        operation = document["paths"][path]["get"]
        assert operation["tags"] == ["Game State"]
        example = operation["responses"]["200"]["content"]["application/json"]["example"]
        assert all(list(row) == list(FIELDS) for row in flat(example["data"]).values())
        assert flat(example["data"])
    assert list(document["components"]["schemas"]["Standing"]["properties"]) == list(FIELDS)


# ---- what they add to other rows ----


@pytest.mark.parametrize("tier", ["hobby", "enterprise"])
def test_events_with_a_score(service: Running, tier: str) -> None:
    states = flat(get(service, "/gamestate")["data"])
    every, scored, others = (
        [row["id"] for row in get(service, f"/events?limit=200{more}", tier)["data"]]
        for more in ("", "&has_score=true", "&has_score=false")
    )
    assert scored == [event for event in every if event in states]
    assert others == [event for event in every if event not in states]
    assert scored
    assert others


def test_arbitrages_of_a_game_say_how_it_stands(service: Running) -> None:
    path = "/opportunities/arbitrage?min_profit=-20&limit=200&live=true"
    states = flat(get(service, "/gamestate")["data"])
    rows = get(service, path)["data"]
    assert any(row["event_id"] in states for row in rows)
    for row in rows:
        state = states.get(row["event_id"])
        assert row["game_state"] == (
            {
                "period": state["game_period"], "clock": state["game_clock"], "score_home": state["home_score"],
                "score_away": state["away_score"],
            }
            if state is not None
            else None
        )  # fmt: skip
    without = get(service, path, "sharp")["data"]
    assert without
    assert all(row["game_state"] is None for row in without)
    assert all(row["game_state"] is None for row in get(service, path.replace("true", "false"))["data"])


@pytest.mark.parametrize("path", ["/opportunities/low_hold?max_hold=25&limit=200", "/events?limit=200"])
def test_low_holds_and_events_say_how_the_game_stands(service: Running, path: str) -> None:
    states = flat(get(service, "/gamestate")["data"])
    rows = get(service, path)["data"]
    told = 0
    for row in rows:
        state = states.get(row.get("event_id", row["id"]))
        assert (row["game_state"] is None) == (state is None)
        if state is not None:
            told += 1
            assert row["game_state"]["score_home"] == state["home_score"]
    assert told
    assert all(row["game_state"] is None for row in get(service, path, "sharp")["data"])


# ---- the official client ----


@pytest.mark.parametrize("make", [SharpAPI, AsyncSharpAPI])
def test_the_official_client(service: Running, make: type) -> None:
    service.clock.pass_minute()

    async def ask(sport: str | None) -> dict[str, dict[str, GameState]]:
        async with AsyncSharpAPI("demo_enterprise", base_url=service.origin) as client:
            found: dict[str, dict[str, GameState]] = await client.gamestate.get(sport)
        return found

    def asked(sport: str | None) -> dict[str, dict[str, GameState]]:
        if make is AsyncSharpAPI:
            return asyncio.run(ask(sport))
        with SharpAPI("demo_enterprise", base_url=service.origin) as client:
            found: dict[str, dict[str, GameState]] = client.gamestate.get(sport)
        return found

    data = get(service, "/gamestate")["data"]
    found = asked(None)
    assert {sport: set(events) for sport, events in found.items()} == {s: set(events) for s, events in data.items()}
    for sport, events in found.items():
        assert set(asked(sport)) == {sport}
        for event, state in events.items():
            assert isinstance(state, GameState)
            row = data[sport][event]
            assert (state.home_score, state.away_score) == (row["home_score"], row["away_score"])
            assert (state.game_period, state.game_clock) == (row["game_period"], row["game_clock"])
            assert (state.primary_book, state.book_count, state.stale) == (
                row["primary_book"], row["book_count"], row["stale"],
            )  # fmt: skip


def test_the_official_client_listens(service: Running) -> None:
    service.clock.pass_minute()
    with SharpAPI("demo_enterprise", base_url=service.origin) as client:
        events = client.stream.gamestate().iter_events()
        held: dict[str, Row] = {}
        for name, data in events:
            if name == "gamestate:snapshot":
                held.update(data)
            if name == "snapshot:complete":
                break
        assert held == flat(get(service, "/gamestate")["data"])
        service.advance(1)
        name, data = next(each for each in events if each[0] == "gamestate:update")
        assert all(GameState.model_validate(state).book_count for state in data.values())
        events.close()


# ---- the stream ----


def test_a_stream_holds_what_is_answered(served: Served, listen: Callable[..., Client]) -> None:
    """Through a world's games, ends among them, clients that merge hold what `/gamestate` answers."""
    books = ["pinnacle", "circa", "draftkings", "mybookie"]
    made = World(5, events=10, books=books, start=day(), live=1.0, pace=less(8, 40), tick=2.0, hazards=True)
    teams, batches = teams_of(made), made.run(3600.0)
    clients = {
        sport: listen("/stream/gamestate", event=",".join(teams), sport=sport or None)
        for sport in ("", "basketball", "soccer,hockey")
    }
    everything = listen("/stream/all", event=",".join(teams))
    for client in (*clients.values(), everything):
        assert client.ready.wait(60)
    names = [name for name in clients[""].names if name != "heartbeat"]
    assert names == ["connected", "gamestate:snapshot", "snapshot:complete"]
    ended: set[str] = set()
    for _ in range(less(5, 3)):
        for batch in islice(batches, less(40, 13)):
            served.node.write(apply_batch, served.node, batch, made.scores, teams, batch.now).result(60)
        answer = served.rest.get("/gamestate", headers={"X-API-Key": served.key("enterprise")}).json()
        rows = {event: row for event, row in flat(answer["data"]).items() if event in teams}
        ended |= {event for event, row in rows.items() if not row["is_live"]}
        for sport, client in clients.items():
            mine = {event: row for event, row in rows.items() if not sport or row["sport"] in sport.split(",")}
            wait_for(lambda c=client, m=mine: c.games == m or c.faults)  # type: ignore[misc]
        wait_for(lambda r=rows: everything.games == r or everything.faults)  # type: ignore[misc]
    assert ended
    tell(served, made.now + timedelta(seconds=ENDED_S))
    wait_for(lambda: not ended & everything.games.keys() or everything.faults)
    assert ended <= set(everything.samples["gamestate:removed"]["ids"])


def test_filters_of_a_stream_hold(served: Served, listen: Callable[..., Client]) -> None:
    soccer = Teams("soccer", "england_premier_league", "Arsenal", "Chelsea")
    now = day()
    tell(served, now, said("f1", 1, 0, now), said("f2", 2, 0, now))
    tell(served, now, said("f3", 0, 0, now, period="1H", sport="soccer"), teams=soccer)
    cases: dict[str, tuple[dict[str, str], set[str]]] = {
        "sport": ({"sport": "football,soccer"}, {"f3"}),
        "league": ({"league": "nba"}, {"f1", "f2"}),
        "event": ({"event": "f1,f3"}, {"f1", "f3"}),
    }
    clients = {name: listen("/stream/gamestate", **query) for name, (query, _) in cases.items()}
    for name, client in clients.items():
        assert client.ready.wait(60)
        assert set(client.samples["gamestate:snapshot"]) == cases[name][1]
    later = now + timedelta(seconds=5)
    tell(served, later, *(said(event, 3, 0, later) for event in ("f1", "f2", "f4")))
    wait_for(lambda: clients["event"].games["f1"]["home_score"] == 3 or clients["event"].faults)
    wait_for(lambda: set(clients["league"].games) == {"f1", "f2", "f4"} or clients["league"].faults)
    assert set(clients["event"].samples["gamestate:update"]) == {"f1"}
    assert "gamestate:update" not in clients["sport"].names


def test_states_age_and_leave(served: Served, listen: Callable[..., Client]) -> None:
    now = day()
    client = listen("/stream/gamestate", event="old,ends")
    assert client.ready.wait(60)
    tell(served, now, said("old", 1, 0, now), said("ends", 90, 88, now, period="Q4", clock="0:03"))
    wait_for(lambda: set(client.games) == {"old", "ends"} or client.faults)
    over = now + timedelta(seconds=5)
    tell(served, over, said("ends", 91, 88, over, over=True))
    wait_for(lambda: client.games["ends"]["game_period"] == "FT" or client.faults)
    assert (client.games["ends"]["is_live"], client.games["ends"]["game_clock"]) == (False, None)
    tell(served, now + timedelta(seconds=STALE_S))
    wait_for(lambda: client.games["old"]["stale"] or client.faults)
    assert client.games["ends"]["stale"] is False
    answer = served.rest.get("/gamestate/nba?event=old", headers={"X-API-Key": served.key("enterprise")}).json()
    assert answer["data"]["basketball"]["old"]["stale"] is True
    tell(served, over + timedelta(seconds=ENDED_S))
    assert heard(client, "gamestate:removed") == {"ids": ["ends"]}
    assert client.games.keys() == {"old"}


def test_detected_arbitrages_say_how_the_game_stands(served: Served, listen: Callable[..., Client]) -> None:
    now = day()
    tell(served, now, said("arb", 55, 60, now, period="Q3", clock="4:00", sport="basketball"))
    knows, others = listen("/stream/opportunities"), listen("/stream/opportunities", "sharp")
    assert knows.ready.wait(60)
    assert others.ready.wait(60)
    served.step(full_board("arb"), now)
    shown = {"period": "Q3", "clock": "4:00", "score_home": 55, "score_away": 60}

    def states(client: Client, kind: str) -> list[Any]:  # of this game; other tests leave theirs on the board
        return [row["game_state"] for row in dict(client.finds[kind]).values() if row["event_id"] == "arb"]

    for client, kind, state in ((knows, "arb", shown), (others, "arb", None), (knows, "low_hold", shown)):
        wait_for(lambda c=client, k=kind: states(c, k) or c.faults)  # type: ignore[misc]
        assert all(each == state for each in states(client, kind)), client.faults
    times = knows.names.count("arb:detected")
    later = now + timedelta(seconds=2)
    tell(served, later, said("arb", 58, 60, later, period="Q3", clock="3:58", sport="basketball"))
    served.step([price("elsewhere", "pinnacle", "Home", 1.9)], later)
    third = listen("/stream/opportunities")  # who comes later is told how it stands then
    assert third.ready.wait(60)
    scores = [row["game_state"]["score_home"] for row in third.finds["arb"].values() if row["event_id"] == "arb"]
    assert set(scores) == {58}
    assert knows.names.count("arb:detected") == times  # a score alone is no reason to send an opportunity again


def test_a_delayed_caller_sees_the_past(served: Served) -> None:
    def late(path: str) -> Any:
        answer = served.rest.get(path, headers={"X-API-Key": served.key("late")})
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    begin = day()
    served.step([price("late", "draftkings", side, 1.9, last_seen_at=begin) for side in ("Home", "Away")], begin)
    tell(served, begin, said("late", 1, 0, begin))
    for second, score in ((30, 2), (59, 3)):
        at = begin + timedelta(seconds=second)
        tell(served, at, said("late", score, 0, at))
        assert "late" not in flat(late("/gamestate"))
    for second, score in ((60, 1), (89, 1), (90, 2), (119, 3), (120, 9)):
        at = begin + timedelta(seconds=second)
        tell(served, at, said("late", 9, 0, at))
        assert flat(late("/gamestate?event=late"))["late"]["home_score"] == score
        assert len(served.node.games._past) < 10


# ---- the keeper ----


def test_the_keeper_tells_everything_once_and_forgets_names() -> None:
    games = GameBoard()
    told: list[tuple[dict[str, Any], tuple[str, ...]]] = []
    games.put([said("e", 1, 0, T0)], T0, {"e": NBA, "unsaid": NBA})
    forget = games.listen(lambda states, gone: told.append((dict(states), tuple(gone))))
    assert [set(states) for states, _ in told] == [{"e"}]
    games.put([said("e", 1, 0, T0)], T0)
    assert len(told) == 1
    assert set(games._teams) == {"e"}
    games.put([], T0 + timedelta(hours=1))
    assert told[-1] == ({}, ("e",))
    assert games.states() == {}
    forget()
    games.put([said("f", 1, 0, T0 + timedelta(hours=1))], T0 + timedelta(hours=1))
    assert len(told) == 2


def test_teams_of_a_world(service: Running) -> None:
    teams = teams_of(service.film.world)
    events = get(service, "/events?limit=200")["data"]
    met = [event for event in events if event["id"] in teams]  # others' tests put events of their own on the board
    assert met
    for event in met:
        known = teams[event["id"]]
        assert (known.sport, known.league) == (event["sport"], event["league"])
