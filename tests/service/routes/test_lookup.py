"""An opportunity looked up again by its id: today's row, or for ten minutes why it ended."""

import json
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec
import pytest
from support.handler_calls import answer, found, node
from support.service_running import PATIENCE_S, Running, running, until

import oddsengine_service.routes.opportunities as module
from oddsengine.live.engine import Engine
from oddsengine_service.board.ended import AT_ONCE, REMEMBERED_S, EndedRows
from oddsengine_service.board.views import Views
from oddsengine_service.errors import Problem

_numbers = count()
HOURS_TO_START = 3.0
PRICES = {"pinnacle": (1.95, 1.95), "draftkings": (1.93, 1.95), "betmgm": (1.91, 1.95), "fanduel": (2.1, 1.8)}
KINDS = ("ev", "arbitrage", "low_hold", "middles")


def quotes(now: datetime, start: datetime, prices: dict[str, tuple[float, float]], **more: Any) -> list[dict[str, Any]]:
    """Prices of a game's moneyline, and of two totals that make a middle."""
    game = {
        "event_id": "e", "sport": "basketball", "league": "nba", "home_team": "Boston Celtics",
        "away_team": "Miami Heat", "is_live": False, "event_start_time": start, "last_seen_at": now, **more,
    }  # fmt: skip
    return [
        {**game, "sportsbook": book, "market_type": "moneyline", "selection": team, "odds_decimal": odds}
        for book, pair in prices.items()
        for team, odds in zip(("Boston Celtics", "Miami Heat"), pair, strict=True)
    ] + [
        {**game, "sportsbook": book, "market_type": "total_points", "selection": name, "odds_decimal": 1.97, "line": at}
        for book, at in (("fanduel", 215.5), ("draftkings", 219.5))
        for name in ("Over", "Under")
        if book in prices
    ]  # fmt: skip


class Game:
    """A game on a server's board; `change` makes the next step five seconds later."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self.event = f"look/up: {next(_numbers)}"  # ids of arbitrages and low holds contain it
        assert server.node.engine.now is not None
        self.now = server.node.engine.now
        self.start = self.now + timedelta(hours=HOURS_TO_START)
        self.step(self.quotes(PRICES))

    def quotes(self, prices: dict[str, tuple[float, float]], **more: Any) -> list[dict[str, Any]]:
        return quotes(self.now, self.start, prices, event_id=self.event, **more)

    def step(self, rows: list[dict[str, Any]], **more: Any) -> None:
        self.server.node.write(self.server.node.step, rows, self.now, **more).result(PATIENCE_S)

    def change(self, prices: dict[str, tuple[float, float]] | None = None, seconds: float = 5.0, **more: Any) -> None:
        self.now += timedelta(seconds=seconds)
        self.step(self.quotes(PRICES | (prices or {}), **more))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("lookup"), events=2) as server:
        yield server


@pytest.fixture
def game(server: Running) -> Game:
    return Game(server)


@pytest.fixture
def client(server: Running) -> Iterator[httpx2.Client]:
    with server.client("enterprise") as client:
        yield client


def listed(client: httpx2.Client, game: Game, kind: str = "ev", **more: Any) -> list[dict[str, Any]]:
    answer = client.get(f"/opportunities/{kind}", params={"event": game.event, **more})
    rows: list[dict[str, Any]] = answer.json()["data"]
    return rows


def look_up(client: httpx2.Client, ident: str, kind: str = "ev", **more: Any) -> httpx2.Response:
    return client.get(f"/opportunities/{kind}/{quote(ident, safe='')}", params=more)


def test_every_kind_is_looked_up_by_the_id_of_its_list(client: httpx2.Client, game: Game) -> None:
    for kind in KINDS:
        rows = listed(client, game, kind, **({"max_hold": 2} if kind == "low_hold" else {}))
        assert rows, kind
        for row in rows:
            found = look_up(client, row["id"], kind)
            assert found.status_code == 200, found.text
            assert found.json() == {"success": True, "data": row}
    assert game.event in listed(client, game, "arbitrage")[0]["id"]
    (row, *_) = listed(client, game)
    assert look_up(client, row["id"]).headers["etag"]
    refs = look_up(client, row["id"], include="refs", state="nj").json()["data"]
    assert refs["sportsbook_ref"]["id"] == row["sportsbook"]


def test_a_row_is_todays(client: httpx2.Client, game: Game) -> None:
    (row,) = listed(client, game)
    game.change({"fanduel": (2.2, 1.75)})
    today = look_up(client, row["id"]).json()["data"]
    assert (row["odds_decimal"], today["odds_decimal"]) == (2.1, 2.2)
    assert [today] == listed(client, game)


def reason_of(response: httpx2.Response) -> tuple[str, str]:
    assert response.status_code == 404, response.text
    error = response.json()["error"]
    assert error["code"] == "not_found"
    return error.get("reason", ""), error["message"]


def moved(game: Game) -> None:
    game.change({"fanduel": (2.0, 1.85)})


def suspended(game: Game) -> None:
    game.change()
    game.step([each | {"is_active": False} for each in game.quotes({"fanduel": (2.1, 1.8)})])


def gone(game: Game) -> None:
    game.change()
    game.step([], complete=[("fanduel", game.event)])


def started(game: Game) -> None:
    game.change(seconds=HOURS_TO_START * 3600 + 60, is_live=True)


def not_seen(game: Game) -> None:
    game.now += timedelta(hours=1)
    game.step(game.quotes({book: pair for book, pair in PRICES.items() if book != "fanduel"}))


def beaten(game: Game) -> None:
    game.change({"pinnacle": (2.3, 1.65), "draftkings": (2.3, 1.65), "betmgm": (2.3, 1.65)})


@pytest.mark.parametrize(
    ("happens", "reason", "text"),
    [
        (moved, "price_moved", "Boston Celtics at FanDuel Sportsbook moved from +110 to +100"),
        (suspended, "price_suspended", "FanDuel Sportsbook has suspended Boston Celtics"),
        (gone, "price_gone", "FanDuel Sportsbook does not offer Boston Celtics any more"),
        (started, "event_started", "the event has started"),
        (not_seen, "book_stale", "Boston Celtics at FanDuel Sportsbook was not seen for too long"),
        (beaten, "below_threshold", "its price stands, but the fair price has moved, and the EV is too low"),
    ],
)
def test_an_answer_says_why_it_ended(client: httpx2.Client, game: Game, happens: Any, reason: str, text: str) -> None:
    (row,) = listed(client, game)
    happens(game)
    assert reason_of(look_up(client, row["id"])) == (reason, f"opportunity '{row['id']}' has ended: {text}")
    assert row["id"] not in [each["id"] for each in listed(client, game)]
    assert reason_of(look_up(client, row["id"]))[0] == reason  # the list was read since


def test_arbitrages_say_which_leg_ended(client: httpx2.Client, game: Game) -> None:
    (row,) = listed(client, game, "arbitrage")
    game.change({"fanduel": (2.0, 1.85)})
    reason, text = reason_of(look_up(client, row["id"], "arbitrage"))
    assert reason == "price_moved"
    assert text.endswith("has ended: Boston Celtics at FanDuel Sportsbook moved from +110 to +100")


def test_what_fell_below_the_lists_threshold_is_answered_with_its_figures(client: httpx2.Client, game: Game) -> None:
    (row,) = listed(client, game)
    fair = {"pinnacle": (2.07, 1.85), "draftkings": (2.05, 1.85), "betmgm": (2.03, 1.85)}
    game.change(fair)
    assert listed(client, game) == []
    found = look_up(client, row["id"])
    assert found.status_code == 200, found.text
    assert -2.0 < found.json()["data"]["ev_percentage"] < 0.0
    (low,) = [
        each for each in listed(client, game, min_ev=-2) if each["sportsbook"] == "fanduel" and each["id"] == row["id"]
    ]
    assert found.json()["data"] == low


def test_unknown_ids(client: httpx2.Client, game: Game) -> None:
    for kind in KINDS:
        reason, text = reason_of(look_up(client, "0" * 16, kind))
        assert (reason, text.partition(": ")[2]) == ("", "unknown id, or ended more than ten minutes ago")
    assert reason_of(look_up(client, "no id"))[0] == ""
    assert look_up(client, "no id", "middles").status_code == 400


def test_books_tiers_and_references_are_those_of_the_list(server: Running, client: httpx2.Client, game: Game) -> None:
    (row,) = listed(client, game)
    others = "pinnacle,draftkings,betmgm"
    assert reason_of(look_up(client, row["id"], sportsbook=others))[0] == ""
    assert [look_up(client, row["id"], sportsbook="fanduel").json()["data"]] == listed(
        client, game, sportsbook="fanduel"
    )
    sharp = look_up(client, row["id"], devig_book="pinnacle").json()["data"]
    assert sharp["reference"] == "pinnacle"
    assert listed(client, game, devig_book="pinnacle") == [sharp]
    assert look_up(client, row["id"], devig_book="nobody").status_code == 404
    with server.client("free") as free:
        assert look_up(free, row["id"]).status_code == 403
    moved(game)
    assert reason_of(look_up(client, row["id"], sportsbook=others))[0] == ""  # not of its books
    assert reason_of(look_up(client, row["id"], sportsbook="fanduel"))[0] == "price_moved"


def test_a_stream_remembers_what_it_sent(server: Running, client: httpx2.Client, game: Game) -> None:
    seen: dict[str, Any] = {}
    names: list[str] = []

    def listen() -> None:
        with client.stream("GET", "/stream/opportunities", params={"event": game.event, "min_ev": 0}) as events:
            name = ""
            for line in events.iter_lines():
                if line.startswith("event: "):
                    name = line[7:]
                    names.append(name)
                elif line.startswith("data: ") and name == "ev:detected":
                    seen.update({row["id"]: row for row in json.loads(line[6:])})
                if name == "ev:expired" and line.startswith("data: "):
                    return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    until(lambda: "snapshot:complete" in names and bool(seen))
    moved(game)
    thread.join(PATIENCE_S)
    (ident,) = seen
    assert reason_of(look_up(client, ident))[0] == "price_moved"


def test_a_closed_view_remembers_what_it_sent() -> None:
    engine, ev = Engine(), found(module.endpoints, "/opportunities/ev")
    now = datetime.fromisoformat("2026-02-08T12:00:00Z")
    here = node(engine)
    here.boards.views = Views(idle=0.0, ended=here.boards.ended)
    start = now + timedelta(hours=3)
    engine.step(quotes(now, start, PRICES), now)
    (row,) = answer(ev, here)["data"]
    assert here.boards.views.sweep() == 1
    later = now + timedelta(minutes=2)
    engine.step(quotes(later, start, PRICES | {"fanduel": (2.0, 1.85)}), later)
    with pytest.raises(Problem) as problem:
        answer(found(module.endpoints, "/opportunities/ev/{id}"), here, path={"id": row["id"]})
    assert problem.value.extra["reason"] == "price_moved"


ONE = "/opportunities/ev/{id}"


class Board:
    """A board and a node without a server; `time` is that of the memory."""

    def __init__(self) -> None:
        self.time = [1000.0]
        self.engine, self.now = Engine(), datetime.fromisoformat("2026-02-08T12:00:00Z")
        self.start = self.now + timedelta(hours=HOURS_TO_START)
        self.node = node(self.engine)
        self.node.boards.ended = EndedRows(clock=lambda: self.time[0])
        self.node.boards.views = Views(ended=self.node.boards.ended)
        self.change(*PRICES["fanduel"])

    def change(self, home: float, away: float, seconds: float = 5.0, **others: tuple[float, float]) -> None:
        self.now += timedelta(seconds=seconds)
        self.engine.step(quotes(self.now, self.start, PRICES | others | {"fanduel": (home, away)}), self.now)

    def listed(self, **query: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = answer(found(module.endpoints, "/opportunities/ev"), self.node, query)["data"]
        return rows

    def look_up(self, ident: str) -> dict[str, Any]:
        row: dict[str, Any] = answer(found(module.endpoints, ONE), self.node, path={"id": ident})["data"]
        return row

    def end_of(self, ident: str) -> Problem:
        with pytest.raises(Problem) as problem:
            self.look_up(ident)
        return problem.value


@pytest.fixture
def board() -> Board:
    return Board()


def test_a_row_that_only_a_lookup_sent_is_remembered_for_ten_minutes(board: Board) -> None:
    (row,) = Board().listed()
    assert board.look_up(row["id"])["id"] == row["id"]
    board.change(2.0, 1.85)
    assert board.end_of(row["id"]).extra["reason"] == "price_moved"
    board.time[0] += REMEMBERED_S + 1.0  # the view is read still, but not by a list, which would see the end
    assert board.end_of(row["id"]).extra == {}


def test_the_row_that_was_sent_last_says_why_it_ended(board: Board) -> None:
    (row,) = board.listed(min_ev=1)  # of another view than the lookup
    board.change(2.2, 1.75)
    assert board.look_up(row["id"])["odds_decimal"] == 2.2  # newer than the list's
    board.change(2.0, 1.85)
    assert board.end_of(row["id"]).message.endswith("moved from +120 to +100")
    for seconds in (5.0, 60.0):
        board.change(2.1, 1.8, seconds)
    assert board.listed()[0]["odds_decimal"] == 2.1  # newer than the lookup's
    board.change(2.0, 1.85)
    assert board.end_of(row["id"]).message.endswith("moved from +110 to +100")


def test_prices_that_are_equal_in_whole_american_odds_are_told_in_decimal(board: Board) -> None:
    board.change(2.0512, 1.8)
    (row,) = board.listed()
    board.change(2.0485, 1.8, pinnacle=(2.3, 1.65), draftkings=(2.3, 1.65), betmgm=(2.3, 1.65))
    assert board.end_of(row["id"]).message.endswith("Boston Celtics at FanDuel Sportsbook moved from 2.0512 to 2.0485")


# ---- memory ----


def raw(size: int) -> msgspec.Raw:
    return msgspec.Raw(b'"' + b"x" * (size - 2) + b'"')


def test_rows_are_remembered_for_ten_minutes() -> None:
    time, board = [1000.0], object()
    rows = EndedRows(clock=lambda: time[0])
    rows.add(board, "ev", [("a", raw(10))])
    time[0] += REMEMBERED_S
    rows.add(board, "ev", [("b", raw(10))])
    assert rows.find(board, "ev", "a") is not None
    time[0] += 1.0
    assert rows.find(board, "ev", "a") is None
    assert rows.find(board, "ev", "b") is not None
    assert rows.find(board, "arbitrage", "b") is rows.find(object(), "ev", "b") is None
    assert (len(rows), rows.bytes) == (1, 10)


def test_the_oldest_rows_make_room() -> None:
    rows, board = EndedRows(most=100), object()
    for ident in "abcd":
        rows.add(board, "ev", [(ident, raw(30))])
    rows.add(board, "ev", [("b", raw(40))])  # it ended again
    rows.add(board, "ev", [("e", raw(20))])
    assert [ident for ident in "abcde" if rows.find(board, "ev", ident) is not None] == ["b", "d", "e"]
    assert rows.bytes == 90
    rows = EndedRows()
    rows.add(board, "ev", ((str(at), raw(10)) for at in range(AT_ONCE + 5)))
    assert len(rows) == AT_ONCE
