"""Game states of sources: what their parsers read, and what reaches a node over sockets."""

import asyncio
import json
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.local_servers import running, until
from support.service_running import Running

from oddsengine.feeds import FeedError, Game, Payload
from oddsengine.feeds.gamestate import GameStates, read_states
from oddsengine.feeds.merged_scores import ARRIVAL, ScoreReading
from oddsengine.feeds.the_odds_api import ScoresParser
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources import node_client as interface
from oddsengine.sources.credits import Target, nearness, plan
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import InterfaceSettings, TheOddsApiSettings
from oddsengine.sources.the_odds_api_client import TheOddsApiSource
from oddsengine.testing.local_servers import Answering, Request, http, iso, now
from oddsengine_service.board.game_store import GameBoard
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub

NBA = "basketball_nba"
HEADERS = {"x-requests-remaining": "1000000000", "x-requests-used": "7", "x-requests-last": "1"}
HOME, AWAY = "Boston Celtics", "Los Angeles Lakers"


def listed(ident: str = "g1", scores: Any = ("101", "99"), **more: Any) -> dict[str, Any]:
    """One game of a list of scores; they come in any order."""
    told = None if scores is None else [{"name": AWAY, "score": scores[1]}, {"name": HOME, "score": scores[0]}]
    return {
        "id": ident, "sport_key": NBA, "sport_title": "NBA", "commence_time": "2026-02-07T18:00:00Z",
        "completed": False, "home_team": HOME, "away_team": AWAY, "scores": told, "last_update": None, **more,
    }  # fmt: skip


def read(scores: ScoresParser, *games: Any, sport: str = NBA) -> Payload:
    return scores.read(json.dumps(games).encode(), sport)


# ---- lists of scores ----


def test_scores_are_told_by_names() -> None:
    payload = read(ScoresParser(), listed(), listed("later", None), listed("done", ("88", "90"), completed=True))
    assert payload.scores == (
        ScoreReading("g1", "", ARRIVAL, 101, 99, sport="basketball"),
        ScoreReading("done", "", ARRIVAL, 88, 90, over=True, sport="basketball"),
    )
    assert [(game.id, game.league, game.home, game.away, game.status) for game in payload.games] == [
        ("g1", "nba", HOME, AWAY, ""), ("done", "nba", HOME, AWAY, "ended"),
    ]  # fmt: skip
    assert not payload.refused


def test_a_game_that_two_lists_miss_is_over() -> None:
    scores = ScoresParser()
    read(scores, listed("a"), listed("b"))
    read(scores, listed("c"), sport="icehockey_nhl")
    assert [r.event for r in read(scores, listed("b")).scores] == ["b"]
    assert [(r.event, r.over, r.score) for r in read(scores, listed("b")).scores] == [
        ("b", False, (101, 99)), ("a", True, (101, 99)),
    ]  # fmt: skip
    assert [r.event for r in read(scores, listed("b")).scores] == ["b"]  # said once
    read(scores)
    assert [r.over for r in read(scores, listed("b")).scores] == [False]  # it was missing once only
    read(scores)
    assert [(r.event, r.over) for r in read(scores).scores] == [("b", True)]


def test_what_does_not_read_ends_nothing() -> None:
    scores = ScoresParser()
    read(scores, listed("a"), listed("b"))
    for _ in range(3):
        payload = read(scores, listed("b"), {"id": "a", "sport_key": NBA, "scores": 7})
        assert [r.event for r in payload.scores] == ["b"]
        assert payload.refused == {"a game that is not valid": 1}
    for body in (b"[", b'{"message": "no", "error_code": "INVALID_KEY"}', b"7", b'[{"x": 1}]'):
        with pytest.raises(FeedError):
            scores.read(body, NBA)
    read(scores, listed("b"))
    assert [(r.event, r.over) for r in read(scores, listed("b")).scores] == [("b", False), ("a", True)]


@pytest.mark.parametrize("wrong", [("", "3"), ("7-5", "3"), (None, "3"), ("-1", "3"), ("٣", "3"), ("12345", "3")])
def test_a_score_that_is_no_number_is_none(wrong: tuple[Any, Any]) -> None:
    assert read(ScoresParser(), listed(scores=wrong)).scores == ()


def test_whole_numbers_and_strange_names() -> None:
    assert read(ScoresParser(), listed(scores=(7, 0))).scores[0].score == (7, 0)
    assert read(ScoresParser(), listed(home_team="Celtics")).scores == ()
    assert read(ScoresParser(), listed(home_team=AWAY)).scores == ()


# ---- another node ----

STATE = {
    "home_team": "A", "away_team": "B", "sport": "basketball", "league": "nba", "home_score": 3, "away_score": 4,
    "is_live": True, "game_period": "Q2", "game_clock": "1:02", "possession": "away", "primary_book": "circa",
    "book_count": 3, "stale": False, "updated_at": "2026-02-07T18:00:00Z", "new": [1],
}  # fmt: skip


def states(**more: Any) -> bytes:
    return json.dumps({"success": True, "data": {"basketball": {"e": {**STATE, **more}}, "strange": 7}}).encode()


def test_an_answer_of_states() -> None:
    (reading,) = read_states(states()).scores
    assert reading == ScoreReading("e", "", ARRIVAL, 3, 4, "Q2", "1:02", "away", False, "basketball")
    assert read_states(states(stale=True)).scores == []
    assert read_states(states(game_period="ft")).scores[0].over
    assert read_states(states(is_live=False)).scores[0].over
    assert not read_states(states(is_live=False, home_score=None)).scores[0].over
    assert read_states(states(home_score="x")).refused == {"a game state that is not valid": 1}
    for body in (b"{}", b"[]", b"x", b'{"error": {"message": "no"}}'):
        with pytest.raises(FeedError):
            read_states(body)


def test_a_channel_of_states() -> None:
    stream = GameStates()
    assert stream.read("connected", b"{}") == Payload()
    both = {"e": STATE, "f": {**STATE, "home_score": 0}}
    assert len(stream.read("gamestate:snapshot", json.dumps(both).encode()).scores) == 2
    update = stream.read("gamestate:update", json.dumps({"e": {**STATE, "home_score": 5}}).encode())
    assert [(r.event, r.score) for r in update.scores] == [("e", (5, 4))]
    assert stream.read("gamestate:removed", b'{"ids": ["f", "unheard of"]}') == Payload()
    assert [(r.event, r.score) for r in stream.alive().scores] == [("e", (5, 4))]
    for name, data in (("gamestate:update", b"x"), ("gamestate:snapshot", b"[]"), ("gamestate:removed", b"{}")):
        with pytest.raises(FeedError):
            stream.read(name, data)
    assert stream.read("heartbeat", b"{}") == Payload()
    assert [r.score for r in stream.alive().scores] == [(5, 4)]
    stream.read("gamestate:snapshot", json.dumps({"g": STATE}).encode())
    assert [r.event for r in stream.alive().scores] == ["g"]
    stream.read("connected", b"{}")
    assert stream.alive().scores == []


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*STATE, "data", "e"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(anything, st.dictionaries(st.sampled_from([*STATE, "scores", "id", "sport_key", "completed"]), anything))
def test_strange_bodies_are_refused_in_words(body: Any, state: dict[str, Any]) -> None:
    def refusing(reader: Callable[[bytes], Payload], given: Any) -> None:
        try:
            payload = reader(json.dumps(given).encode())
        except FeedError:
            return
        assert all(isinstance(reading.event, str) for reading in payload.scores)

    refusing(read_states, body)
    refusing(read_states, {"data": {"soccer": {"e": state}}})
    refusing(lambda data: GameStates().read("gamestate:update", data), {"e": state, "f": body})
    refusing(lambda data: ScoresParser().read(data, NBA), [listed(), {**listed(), **state}, body])


# ---- onto a node ----


def quote(game: Game, book: str = "draftkings") -> dict[str, Any]:
    return {
        "id": f"{game.id}/{book}", "sportsbook": book, "event_id": game.id, "sport": game.sport, "league": game.league,
        "home_team": game.home, "away_team": game.away, "market_type": "moneyline", "selection": game.home,
        "odds_decimal": 1.9, "event_start_time": game.start,
    }  # fmt: skip


def declared(name: str, **more: Any) -> InterfaceSettings:
    return InterfaceSettings(name=name, kind="interface", url="http://127.0.0.1:1", **more)


def test_sources_that_swap_home_and_away_agree() -> None:
    async def check() -> None:
        games = GameBoard()
        hub = Hub(Writer(Engine()), Matcher(), clock=now, games=games)
        start = now() - timedelta(hours=1)
        one = Game("x", "basketball", "nba", HOME, AWAY, start)
        two = Game("y", "basketball", "nba", AWAY, HOME, start)
        for name, game in (("one", one), ("two", two)):
            hub.add(declared(name))
            await hub.deliver(name, Payload([game], [quote(game)]))
        said = ScoreReading("x", "", ARRIVAL, 7, 2, "Q1", possession="home", sport="basketball")
        await hub.deliver("one", Payload(scores=[said]))
        turned = ScoreReading("y", "", ARRIVAL, 2, 9, "Q1", "9:00", "away", sport="basketball")
        await hub.deliver("two", Payload(scores=[turned, turned._replace(event="unheard of")]))
        ((event, row),) = games.states().items()
        assert hub.engine.table()["event_id"].unique().to_list() == [event]
        assert (row.home_team, row.away_team) == (HOME, AWAY)
        assert (row.home_score, row.away_score, row.possession) == (9, 2, "home")
        assert (row.primary_book, row.book_count, row.sport, row.league) == ("two", 2, "basketball", "nba")
        await hub.close()

    asyncio.run(check())


def test_scores_come_over_a_socket_and_cost_a_credit(caplog: pytest.LogCaptureFixture) -> None:
    """A game that is on: its score lands on the event that has prices, and it ends when it is listed no more."""
    asked: list[Request] = []
    shown = {"scores": [listed()]}
    start = iso((now() - timedelta(hours=1)).replace(microsecond=0))

    async def provider(request: Request, answering: Answering) -> None:
        if request.path.endswith("/events"):
            await answering.answer([{"id": "g1", "commence_time": start}], headers=HEADERS)
        elif request.path.endswith("/scores"):
            asked.append(request)
            await answering.answer([{**game, "commence_time": start} for game in shown["scores"]], headers=HEADERS)
        else:
            outcomes = [{"name": HOME, "price": 1.8}, {"name": AWAY, "price": 2.1}]
            market = {"key": "h2h", "last_update": iso(now()), "outcomes": outcomes}
            game = {
                **listed(),
                "commence_time": start,
                "bookmakers": [{"key": "fanduel", "title": "F", "markets": [market]}],
            }
            await answering.answer([game], headers=HEADERS)

    async def check() -> None:
        games = GameBoard()
        hub = Hub(Writer(Engine()), Matcher(), clock=now, games=games)
        async with http(provider) as url:
            feed = TheOddsApiSettings(
                name="main", kind="the_odds_api", key_env="KEY", sports=(NBA,), markets=("h2h",), url=url,
                interval=0.02, timeout=1.0, backoff=0.01, backoff_cap=0.04, scores=True,
            )  # fmt: skip
            async with running(hub, TheOddsApiSource(feed, {"key_env": "key"}, Secrets(["key"]))):
                await until(games.states, "a score")
                ((event, row),) = games.states().items()
                assert (row.home_score, row.away_score, row.is_live, row.game_period) == (101, 99, True, None)
                assert row.primary_book == "main"
                await until(lambda: hub.engine.size, "prices")
                assert set(hub.engine.table()["event_id"]) == {event}
                assert asked[0].path == f"/v4/sports/{NBA}/scores"
                assert "daysFrom" not in asked[0].query
                (status,) = hub.statuses()
                assert status.credits_an_hour == pytest.approx(2 * 3600 / 0.02)
                shown["scores"] = []
                await until(lambda: not games.states()[event].is_live, "the end")
                assert (games.states()[event].game_period, games.states()[event].home_score) == ("FT", 101)

    asyncio.run(check())


def test_scores_are_wanted_while_a_game_is_on() -> None:
    assert nearness([600.0], live=True) is None
    assert nearness([0.0], live=True) == nearness([-600.0, 90_000.0], live=True) == 0
    assert nearness([-20_000.0], live=True) is None
    odds, scores = Target("nba", 3, (-60.0, 50_000.0)), Target("nba/scores", 1, (-60.0, 50_000.0), live=True)
    assert plan([odds, scores], 30.0, None, 86_400.0).every == {"nba": 30.0, "nba/scores": 30.0}
    assert plan([odds, scores], 30.0, None, 86_400.0).an_hour == 480.0
    assert set(plan([scores._replace(starts=(60.0,))], 30.0, None, 86_400.0).every) == set()


def clock_of(service: Running) -> Callable[[], datetime]:
    """The upstream's time, which goes on also where its world stands still."""
    begin = time.monotonic()

    def clock() -> datetime:
        assert service.node.engine.now is not None
        return service.node.engine.now + timedelta(seconds=time.monotonic() - begin)

    return clock


@pytest.mark.parametrize("stream", [True, False])
def test_one_node_feeds_another(service: Running, stream: bool) -> None:
    """Another node with our interface: over its stream, or its pages, its states arrive under our events."""

    async def check() -> None:
        games = GameBoard()
        hub = Hub(Writer(Engine()), Matcher(), clock=clock_of(service), games=games)
        feed = InterfaceSettings(
            name="up", kind="interface", url=service.base, stream=stream, games=True, books=("draftkings", "pinnacle"),
            markets=("moneyline",), interval=0.1, freshen=0.05, backoff=0.05,
        )  # fmt: skip

        def theirs() -> dict[tuple[str, str], Any]:
            rows = service.node.games.states().values()
            return {(row.home_team, row.away_team): standing(row) for row in rows if not row.stale}

        def ours() -> dict[tuple[str, str], Any]:
            return {(row.home_team, row.away_team): standing(row) for row in games.states().values()}

        def standing(row: Any) -> Any:
            return (
                row.sport, row.league, row.home_score, row.away_score, row.game_period, row.game_clock, row.possession,
                row.is_live,
            )  # fmt: skip

        def same() -> bool:
            service.clock.pass_minute()
            mine = ours()
            known = {(row["home_team"], row["away_team"]) for row in hub.engine.table().iter_rows(named=True)}
            wanted = {teams: row for teams, row in theirs().items() if teams in known and (row[-1] or teams in mine)}
            return len(wanted) >= 2 and mine == wanted

        async with running(hub, interface.source(feed, {"key_env": "demo_enterprise"}, Secrets()), tick=0.1):
            await until(same, "what the upstream says")
            before = ours()
            await asyncio.to_thread(service.advance, 4)
            await until(lambda: same() and ours() != before, "what it says next")
            assert {row.primary_book for row in games.states().values()} == {"up"}
            (status,) = hub.statuses()
            assert status.status == "ok", status.reason

    asyncio.run(check())


def test_without_the_right_to_them_prices_come_all_the_same(service: Running) -> None:
    async def check() -> None:
        games = GameBoard()
        hub = Hub(Writer(Engine()), Matcher(), clock=clock_of(service), games=games)
        feed = InterfaceSettings(
            name="up", kind="interface", url=service.base, stream=False, games=True, books=("draftkings",),
            interval=0.1, backoff=0.05,
        )  # fmt: skip
        service.clock.pass_minute()
        async with running(hub, interface.source(feed, {"key_env": "demo_pro"}, Secrets())):
            await until(lambda: hub.engine.size > 50, "prices")
            await until(lambda: "gamestate" in hub.statuses()[0].reason, "the refusal")
            assert hub.statuses()[0].status == "degraded"
            assert games.states() == {}

    asyncio.run(check())
