"""Bets, saved filters and marks of a key, over a real socket."""

import csv
import io
import random
import re
import sqlite3
import stat
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from support.service_running import Running, running

from oddsengine.feeds.merged_scores import ScoreReading
from oddsengine.tables.timestamps import micros
from oddsengine_service.accounts import records as records_module
from oddsengine_service.accounts.database import DatabaseError
from oddsengine_service.accounts.keys import KeyStore, KeyTerms, open_store
from oddsengine_service.accounts.records import FILE, MOST, Records
from oddsengine_service.bettors import bets as rules
from oddsengine_service.bettors.bet_report import MOST_POINTS, report
from oddsengine_service.errors import Problem
from oddsengine_service.node import open_node
from oddsengine_service.settings import load

BET = {
    "sportsbook": "fanduel", "selection": "Boston Celtics", "selection_type": "home", "odds_decimal": 2.1,
    "stake": 100.0, "sport": "basketball", "league": "nba", "home_team": "Boston Celtics", "away_team": "Miami Heat",
    "market_type": "moneyline", "event_id": "g1", "fair_probability": 0.5,
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("bets"), events=2) as server:
        yield server


@pytest.fixture
def client(server: Running) -> Iterator[httpx2.Client]:
    """A client with a key of its own."""
    assert isinstance(server.node.keys, KeyStore)
    made = server.node.keys.create("bettor", KeyTerms("pro"))
    with server.client(None, headers={"X-API-Key": made.key}) as client:
        yield client


def bet_of(at: datetime) -> rules.Bet:
    return msgspec.convert({**BET, "id": "b", "placed_at": at}, rules.Bet)


def placed(client: httpx2.Client, **other: Any) -> dict[str, Any]:
    answer = client.post("/bets", json={**BET, **other})
    assert answer.status_code == 201, answer.text
    bet: dict[str, Any] = answer.json()["data"]
    return bet


def changed(client: httpx2.Client, bet: dict[str, Any], **changes: Any) -> dict[str, Any]:
    answer = client.patch(f"/bets/{bet['id']}", json=changes)
    assert answer.status_code == 200, answer.text
    bet = answer.json()["data"]
    return bet


@pytest.mark.parametrize("field", ["sportsbook", "selection"])
def test_a_bet_is_on_something_at_some_book(client: httpx2.Client, field: str) -> None:
    answer = client.post("/bets", json={**BET, field: ""})
    message = f"invalid request body: {field} must be a string of at least 1 character, got 0 characters"
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)


def test_a_bet_is_placed_settled_and_deleted(client: httpx2.Client) -> None:
    bet = placed(client)
    assert (bet["result"], bet["profit"], bet["ev_percent"]) == (None, None, 5.0)
    won = changed(client, bet, result="won", closing_probability=0.49)
    assert (won["profit"], won["graded_by"], won["clv_percent"]) == (110.0, "hand", 2.9)
    assert changed(client, bet, result="half_lost")["profit"] == -50.0
    assert changed(client, bet, result="void")["profit"] == 0.0
    again = changed(client, bet, result=None, note="asked the book")
    assert (again["profit"], again["graded_by"], again["note"]) == (None, None, "asked the book")
    assert client.delete(f"/bets/{bet['id']}").json()["data"] == {"deleted": True}
    assert client.delete(f"/bets/{bet['id']}").status_code == 404


@pytest.mark.parametrize(
    ("bet", "score", "result", "profit"),
    [
        ({}, (100, 99), "won", 110.0),
        ({}, (99, 100), "lost", -100.0),
        ({"market_type": "point_spread", "line": -3.0}, (103, 100), "push", 0.0),
        ({"market_type": "point_spread", "line": -3.25}, (103, 100), "half_lost", -50.0),
        ({"market_type": "point_spread", "line": -2.75}, (103, 100), "half_won", 55.0),
        ({"market_type": "total_points", "line": 200.5, "selection": "Over 200.5", "selection_type": "over"},
         (101, 100), "won", 110.0),
        ({"sportsbook": "betfair_ex_uk"}, (100, 99), "won", None),
        ({"event_start_time": "2026-01-01T19:00:00-05:00"}, (100, 99), "won", 110.0),
        ({"event_start_time": "0001-01-01T00:00:00+02:00"}, (100, 99), "won", 110.0),
    ],
)  # fmt: skip
def test_a_score_settles_as_the_market_says(
    client: httpx2.Client, bet: dict[str, Any], score: tuple[int, int], result: str, profit: float | None
) -> None:
    done = changed(client, placed(client, **bet), home_score=score[0], away_score=score[1])
    assert done["result"] == result
    if bet.get("sportsbook"):  # after commission
        assert 100 < done["profit"] < 110
    else:
        assert done["profit"] == profit


@pytest.mark.parametrize(
    ("bet", "why"),
    [
        ({"market_type": "player_points", "line": 20.5, "selection": "Over 20.5", "selection_type": "over",
          "player_name": "Jayson Tatum"}, "market_type 'player_points'"),
        ({"market_type": "no such market"}, "market_type 'no such market'"),
        ({"market_type": ""}, "no market_type"),
        ({"sportsbook": "kalshi", "sport": "football", "league": "nfl"}, "market_type 'moneyline' and a tie"),
    ],
)  # fmt: skip
def test_a_score_that_does_not_settle_a_bet_is_refused(client: httpx2.Client, bet: dict[str, Any], why: str) -> None:
    bet = placed(client, **bet)
    scores = {"home_score": 101, "away_score": 101 if "tie" in why else 100}
    answer = client.patch(f"/bets/{bet['id']}", json=scores)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == (
        f"home_score and away_score do not settle a bet with {why}; pass result: won, half_won, push, half_lost, lost "
        "or void"
    )
    assert client.get("/bets").json()["data"] == [bet]
    settled = changed(client, bet, **scores, result="won")
    assert (settled["result"], settled["home_score"], settled["graded_by"]) == ("won", 101, "hand")


@pytest.mark.parametrize("result", ["lost", "void", None])
def test_a_result_that_contradicts_the_score_is_refused(client: httpx2.Client, result: str | None) -> None:
    bet = placed(client)
    scores = {"home_score": 100, "away_score": 99}
    answer = client.patch(f"/bets/{bet['id']}", json={**scores, "result": result})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == (
        f"result must be that of the score 100 to 99, won, got {result or 'null'}; pass result alone to override it"
    )
    assert client.get("/bets").json()["data"] == [bet]
    assert changed(client, bet, **scores, result="won")["result"] == "won"
    assert changed(client, bet, result="lost")["result"] == "lost"


def test_nothing_is_visible_to_another_key(server: Running, client: httpx2.Client) -> None:
    bet = placed(client)
    client.put("/filters/mine", json={"list": "ev", "query": "min_ev=2"})
    client.put("/marks/opportunity", json={"hidden": True})
    assert isinstance(server.node.keys, KeyStore)
    made = server.node.keys.create("bettor", KeyTerms("pro"))  # even one of the same account
    with server.client(None, headers={"X-API-Key": made.key}) as other:
        for path in ("/bets", "/filters", "/marks"):
            assert client.get(path).json()["data"]
            assert other.get(path).json()["data"] == []
        assert other.get("/bets?format=csv").text.count("\n") == 1
        assert other.patch(f"/bets/{bet['id']}", json={"result": "lost"}).status_code == 404
        for path in (f"/bets/{bet['id']}", "/filters/mine", "/marks/opportunity"):
            assert other.delete(path).status_code == 404
    with server.client(None) as nobody:
        assert nobody.get("/bets").status_code == 401
    assert client.get("/bets").json()["data"][0]["id"] == bet["id"]


def test_list_summary_and_export(client: httpx2.Client) -> None:
    first, second = placed(client, note="=1+1"), placed(client, stake=50.0)
    changed(client, first, result="won", closing_probability=0.5)
    found = client.get("/bets?limit=1").json()
    assert found["data"][0]["id"] == second["id"]
    assert found["pagination"]["has_more"] is True
    assert found["meta"]["summary"] == {
        "count": 2, "settled": 1, "open": 1, "staked": 100.0, "profit": 110.0, "roi_percent": 110.0, "expected": 5.0,
        "open_staked": 50.0, "open_expected": 2.5, "avg_clv_percent": 5.0, "beat_close": 1.0, "with_close": 1,
        "with_fair": 1, "profit_with_fair": 110.0,
    }  # fmt: skip
    assert [bet["id"] for bet in client.get("/bets?status=open").json()["data"]] == [second["id"]]
    answer = client.get("/bets?format=csv&status=settled")
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["id"], row["profit"], row["note"], row["is_live"]) == (first["id"], "110.0", "'=1+1", "false")
    assert "attachment" in answer.headers["content-disposition"]


@pytest.mark.parametrize(
    ("note", "cell"),
    [
        ("  =1+1", "'  =1+1"), ("\t@SUM(A1)", "'\t@SUM(A1)"), (" \u00a0+cmd", "' \u00a0+cmd"),
        ("\u001f-x", "'\u001f-x"), ("＝1+1", "'＝1+1"), ("＋1", "'＋1"), (" －1", "' －1"), ("＠x", "'＠x"),
        ("\n=1", "'\n=1"), ("\ufeff=1", "'\ufeff=1"),
        (" -110", " -110"), ("+150", "+150"), ("a = b", "a = b"), ("  a", "  a"),
    ],
)  # fmt: skip
def test_a_cell_that_a_spreadsheet_would_compute_is_text(client: httpx2.Client, note: str, cell: str) -> None:
    placed(client, note=note)
    (row,) = csv.DictReader(io.StringIO(client.get("/bets?format=csv").content.decode(), newline=""))
    assert row["note"] == cell


def test_a_void_bet_is_expected_to_earn_nothing() -> None:
    bet = rules.figures(bet_of(datetime.now(UTC)))
    void = rules.figures(msgspec.structs.replace(bet, result="void", graded_by="hand"))
    found = rules.summary([bet, void])
    assert (found.count, found.settled, found.staked, found.profit, found.expected) == (2, 0, 0, 0, 0)
    assert (found.open, found.open_staked, found.open_expected) == (1, 100.0, 5.0)


def test_expected_profit_is_compared_with_the_profit_of_the_same_bets() -> None:
    known, unknown = (
        rules.figures(msgspec.structs.replace(bet_of(datetime.now(UTC)), id=str(p), result="won", fair_probability=p))
        for p in (0.5, None)
    )
    found = rules.summary([known, unknown])
    assert (found.settled, found.profit, found.expected) == (2, 220.0, 5.0)
    assert (found.with_fair, found.profit_with_fair) == (1, 110.0)
    (first, last) = report([known, unknown]).course
    assert (first.profit - (first.expected or 0.0), last.profit - (last.expected or 0.0)) == (105.0, 105.0)


def test_the_node_adds_the_close_and_the_result(server: Running, client: httpx2.Client) -> None:
    event = server.close_an_event()
    bet = placed(client, event_id=event, sportsbook="fanduel")
    assert server.node.past is not None
    server.node.past.settle()
    rules.settle(server.node, server.node.records)
    closed = next(each for each in client.get("/bets").json()["data"] if each["id"] == bet["id"])
    assert closed["closing_odds"] == 1.9
    assert closed["clv_percent"] == pytest.approx(100 * (2.1 * closed["closing_probability"] - 1), abs=1e-3)
    now = datetime.now(UTC)
    for at, over in ((now, False), (now + timedelta(seconds=1), True)):
        reading = ScoreReading(event, "a", micros(at), 101, 99, "Q4", "00:00", over=over, sport="basketball")
        server.node.write(server.node.games.put, [reading], at).result()
    rules.settle(server.node, server.node.records)
    done = next(each for each in client.get("/bets").json()["data"] if each["id"] == bet["id"])
    assert (done["result"], done["graded_by"], done["profit"]) == ("won", "score", 110.0)
    assert rules.settle(server.node, server.node.records) == 0


def test_a_bet_by_hand_is_on_the_next_game_of_its_teams(server: Running, client: httpx2.Client) -> None:
    """And says why, if it will have no closing line."""
    with server.client("enterprise") as reader:
        odds = reader.get("/odds?live=false&is_main_line=true&market=main&limit=200").json()["data"]
    rows = {row["selection_type"]: row for row in odds if row["market_segment"] == "full_game"}
    for side in ("home", "over"):
        row = rows[side]
        event = {"home_team": row["home_team"], "away_team": row["away_team"]}
        typed = row["home_team"] if side == "home" else "Over"
        selection = typed if row["line"] is None else f"{typed} {row['line']:+g}".replace("-", "−")
        bet = {"sportsbook": row["sportsbook"], "selection": selection, "odds_decimal": 2.0, "stake": 1.0, **event}
        assert client.post("/bets/import", json={"bets": [bet]}).json()["data"]["imported"] == 1
        (found,) = client.get(f"/bets?sportsbook={row['sportsbook']}&limit=1").json()["data"]
        same = ("event_id", "market_type", "selection_type", "line", "sport", "league")
        assert {name: found[name] for name in same} == {name: row[name] for name in same}
        assert (found["odds_id"], found["no_close"], found["selection"]) == (row["id"], None, selection)
    hand = {**BET, "event_id": None, "selection_type": None, "league": "", "sport": ""}
    for changes, why in (
        ({}, "no game of Boston Celtics and Miami Heat to come is on the board"),
        ({"selection": "Over 3", "home_team": "", "away_team": ""}, "it names no team"),
        ({"event_id": "other"}, "event other is not on the board"), ({"is_live": True}, "placed in play"),
        ({**event, "selection": "Nobody"}, f"no price of it in {event['away_team']} @ {event['home_team']} is on the "
         "board"),
    ):  # fmt: skip
        assert placed(client, **{**hand, **changes})["no_close"] == why


def test_a_bet_by_hand_is_on_no_other_game_or_market_than_it_says(server: Running, client: httpx2.Client) -> None:
    """Its close and its result would be those of another bet."""
    with server.client("enterprise") as reader:
        rows = reader.get("/odds?live=false&market=moneyline&limit=200").json()["data"]
    row = max(rows, key=lambda row: row["event_start_time"])
    at, home = datetime.fromisoformat(row["event_start_time"]), row["home_team"]
    hand = {"sportsbook": row["sportsbook"], "selection": home, "odds_decimal": 2.0, "stake": 1.0}
    none = f"no game of {home} to come is on the board"
    for changes, why in (
        ({"event_start_time": (at + timedelta(hours=1)).isoformat(), "sport": row["sport"].title()}, None),
        ({"event_start_time": (at + timedelta(days=2)).isoformat()}, none),
        ({"event_start_time": (at - timedelta(days=2)).isoformat()}, none),
        ({"sport": "chess"}, none), ({"league": "other"}, none),
        ({"market_segment": "1st_half"}, "a bet on a prop or a period needs an event_id"),
        ({"player_name": "Ann Lee"}, "a bet on a prop or a period needs an event_id"),
        ({"placed_at": (datetime.now(UTC) - timedelta(hours=3)).isoformat()}, "it was placed hours ago, and needs an "
         "event_start_time"),
    ):  # fmt: skip
        bet = client.post("/bets", json={**hand, **changes}).json()["data"]
        assert (bet["no_close"], bet["event_id"]) == (why, None if why else row["event_id"]), changes


def test_one_bet_that_breaks_holds_up_no_other(
    server: Running, client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = server.close_an_event()
    bad, bet = placed(client, event_id=event, selection="bad"), placed(client, event_id=event)
    gone, noted = placed(client, event_id=event, selection="gone"), placed(client, event_id=event, selection="noted")
    records, right = server.node.records, rules.with_close
    owner = client.get("/account").json()["data"]["key_id"]
    records.put(owner, "bet", "zz", rules.Imported(0, 0), event)  # of another form

    def close(bet: rules.Bet, lines: Any) -> rules.Bet:
        if bet.selection == "bad":
            raise KeyError("bad")
        if bet.selection == "gone":  # deleted and changed while the node computes
            client.delete(f"/bets/{gone['id']}").raise_for_status()
        if bet.selection == "noted" and not bet.note:
            changed(client, noted, note="mine")
        return right(bet, lines)

    monkeypatch.setattr(rules, "with_close", close)
    assert server.node.past is not None
    server.node.past.settle()
    with pytest.raises(KeyError, match="bad"):
        rules.settle(server.node, records)
    records.forget(owner, "bet", "zz")
    found = {each["id"]: each for each in client.get("/bets").json()["data"]}
    assert found.keys() == {bad["id"], bet["id"], noted["id"]}
    assert found[bet["id"]]["closing_odds"] == 1.9
    assert found[noted["id"]]["note"] == "mine"
    client.delete(f"/bets/{bad['id']}")


def test_a_bet_at_the_closing_price_does_not_beat_the_close() -> None:
    at = bet_of(datetime(2026, 2, 8, tzinfo=UTC))
    bets = [msgspec.structs.replace(at, clv_percent=value) for value in (0.0, 4.0, None)]
    assert (rules.summary(bets).beat_close, rules.summary(bets).avg_clv_percent) == (0.5, 2.0)


def test_one_score_alone_is_refused(client: httpx2.Client) -> None:
    bet = placed(client)
    for scores in ({"home_score": 3}, {"home_score": 3, "away_score": None}):
        assert client.patch(f"/bets/{bet['id']}", json=scores).status_code == 400


@pytest.mark.parametrize(
    "wrong", [{"stake": 0}, {"stake": -1}, {"odds_decimal": 1}, {"note": "x" * 1001}, {"selection": 3}, {"line": 1e9}]
)
def test_what_is_no_bet_is_refused(client: httpx2.Client, wrong: dict[str, Any]) -> None:
    answer = client.post("/bets", json={**BET, **wrong})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "validation_error"


def test_filters_and_marks(client: httpx2.Client) -> None:
    assert client.put("/filters/a%2Fb", json={"list": "ev", "query": "sport=soccer&min_ev=2"}).status_code == 200
    client.put("/filters/a%2Fb", json={"list": "arbitrage"})
    assert client.get("/filters").json()["data"] == [{"list": "arbitrage", "query": "", "name": "a/b"}]
    assert client.put("/filters/x", json={"list": "ev", "query": "nonsense"}).status_code == 400
    assert client.put("/filters/x", json={"list": "odds"}).status_code == 400
    refused = client.put("/filters/x", json={"list": "ev", "query": "min_ev=abc"})
    assert (refused.status_code, "min_ev" in refused.json()["error"]["message"]) == (400, True)
    for query in ("?min_ev=1", "bogus=1"):
        refused = client.put("/filters/x", json={"list": "ev", "query": query})
        assert (refused.status_code, query.partition("=")[0] in refused.json()["error"]["message"]) == (400, True)
    for name in ("%0a", "%2e%2e"):
        assert client.put(f"/filters/{name}", json={"list": "ev"}).status_code == 400
    client.put("/marks/o1", json={"hidden": True, "note": "later"})
    assert client.get("/marks").json()["data"] == [{"hidden": True, "note": "later", "id": "o1"}]
    assert client.delete("/marks/o1").status_code == 200
    assert client.get("/marks").json()["data"] == []


def test_the_file_is_its_owners_alone_and_lasts(tmp_path: Path) -> None:
    file = tmp_path / FILE
    bet = bet_of(datetime.now(UTC))
    records = Records(file)
    records.put("k", "bet", "b", bet)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    records.close()
    records = Records(file)
    assert records.all("k", "bet", rules.Bet) == [bet]
    records.close()
    (tmp_path / "broken").write_bytes(b"no database" * 100)
    with pytest.raises(DatabaseError, match="broken: file is not a database"):
        Records(tmp_path / "broken")


def test_a_damaged_record_is_named_and_the_others_are_served(server: Running, client: httpx2.Client) -> None:
    ids = [client.post("/bets", json=BET).json()["data"]["id"] for _ in range(3)]
    bad, records = ids[1], server.node.records
    with records.database.transaction() as base:
        base.execute("UPDATE records SET body = ? WHERE name = ?", (b'{"id":', bad))
    try:
        listed = client.get("/bets").json()
        assert {bet["id"] for bet in listed["data"]} >= {ids[0], ids[2]}
        assert bad not in {bet["id"] for bet in listed["data"]}
        for path in ("/bets", "/bets/report", "/account/backup"):
            assert client.get(path).json()["meta"]["damaged"] == [bad]
        assert client.get("/marks").json().get("meta") is None
        refused = client.patch(f"/bets/{bad}", json={"note": "x"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (500, "internal_error")
        assert refused.json()["error"]["message"].startswith(f"bet '{bad}' is damaged; restore it")
        assert f"the first is bet '{bad}' of key" in server.node.failures["damaged records"]
        assert client.get("/health").json()["status"] == "degraded"
    finally:
        assert client.delete(f"/bets/{bad}").status_code == 200
    assert "damaged" not in client.get("/bets").json()["meta"]
    assert "damaged records" not in server.node.failures


def test_a_missing_or_empty_file_beside_used_keys_is_reported(tmp_path: Path) -> None:
    environ = {"ODDSENGINE_DATA_FOLDER": str(tmp_path)}

    def failures() -> dict[str, str]:
        with ExitStack() as ends:
            return dict(open_node(load(None, environ), environ, ends).failures)

    with closing(open_store(load(None, environ))) as store:
        made = store.create("acme", KeyTerms("pro"))
        assert failures() == {}, "nobody has used the key"
        store.find(made.key)
    assert failures() == {}, "the file is there"
    for damage in (Path.unlink, lambda file: file.write_bytes(b"")):
        damage(tmp_path / FILE)
        assert failures()["records file"].startswith(f"{tmp_path / FILE} was missing or empty, although keys")


def test_a_locked_file_is_said_and_can_still_be_read(tmp_path: Path) -> None:
    records, bet = Records(tmp_path / FILE), bet_of(datetime.now(UTC))
    records.put("k", "bet", "b", bet)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Problem, match="database is locked"):
            records.put("k", "bet", "c", bet)
        assert records.all("k", "bet", rules.Bet) == [bet]
    records.put("k", "bet", "c", bet)
    assert len(records.all("k", "bet", rules.Bet)) == 2
    records.close()
    with closing(sqlite3.connect(tmp_path / FILE)) as other:
        other.execute("PRAGMA user_version = 7")
    with pytest.raises(DatabaseError, match="another version of oddsengine: format 7"):
        Records(tmp_path / FILE)


def test_a_key_has_a_bounded_number(client: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST, "mark", 1)
    assert client.put("/marks/a", json={}).status_code == 200
    assert client.put("/marks/a", json={"note": "again"}).status_code == 200
    answer = client.put("/marks/b", json={})
    assert answer.status_code == 400
    assert "at most 1 marks" in answer.json()["error"]["message"]


def test_a_key_has_a_bounded_size(client: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "MOST_BYTES", 3000)
    bet = placed(client)
    big = {**BET, "note": "\N{SNOWMAN}" * 800}
    answer = client.post("/bets", json=big)
    assert answer.status_code == 400
    assert re.fullmatch(
        r"a key stores at most 3,000 bytes, has [\d,]+, and this takes 3,[\d,]+ more; delete some records first",
        answer.json()["error"]["message"],
    )
    assert client.patch(f"/bets/{bet['id']}", json={"note": big["note"]}).status_code == 400
    assert client.put("/marks/a", json={"note": "x" * 500}).status_code == 200
    client.delete(f"/bets/{bet['id']}")
    monkeypatch.setattr(records_module, "MOST_BYTES", 10)
    assert client.put("/marks/a", json={"note": "x"}).status_code == 200  # smaller than before


def test_records_of_a_revoked_key_are_deleted(server: Running, client: httpx2.Client) -> None:
    assert isinstance(server.node.keys, KeyStore)
    with server.client("sharp") as other:
        other.put("/marks/a", json={}).raise_for_status()
        placed(client)
        owner = client.get("/account").json()["data"]["key_id"]
        server.node.keys.rotate(owner)
        server.service._tidy()
        assert server.node.records.all(owner, "bet", rules.Bet)
        server.node.keys.revoke(owner)
        server.service._tidy()
        assert server.node.records.all(owner, "bet", rules.Bet) == []
        assert other.get("/marks").json()["data"]


def test_old_bets_wait_no_longer() -> None:
    records = Records()
    old = bet_of(datetime.now(UTC) - timedelta(days=40))
    rules.keep(records, "k", old)
    assert records.waiting("bet", rules.Bet) == []
    early = msgspec.structs.replace(old, event_start_time=datetime.now(UTC) + timedelta(days=1))
    rules.keep(records, "k", early)
    assert records.waiting("bet", rules.Bet) == [("k", early)]
    forever = msgspec.structs.replace(
        old, placed_at=datetime.now(UTC) - timedelta(days=400), event_start_time=datetime.max
    )
    rules.keep(records, "k", forever)
    assert records.waiting("bet", rules.Bet) == []


# ---- filters, times and the report ----


def test_bets_are_filtered(client: httpx2.Client) -> None:
    made = {
        "old": placed(client, placed_at="2026-01-05T12:00:00Z", note="old one"),
        "prop": placed(client, market_type="player_points", player_name="Nikola Jokić", sportsbook="DraftKings"),
        "total": placed(client, market_type="total_points", sportsbook="bet365", placed_at="2026-02-01T00:00:00+01:00"),
    }
    assert made["total"]["placed_at"] == "2026-01-31T23:00:00Z"
    client.patch(f"/bets/{made['old']['id']}", json={"result": "won"})
    for query, names in (
        ("", {"old", "prop", "total"}), ("until=2026-02-01T00:00:00Z", {"old", "total"}),
        ("since=2026-01-31T23:00:00Z", {"prop", "total"}), ("since=2026-01-31T23:00:01Z", {"prop"}),
        ("sportsbook=draftkings,bet365", {"prop", "total"}), ("market=props", {"prop"}),
        ("market=main", {"old", "total"}), ("q=jokic", {"prop"}), ("q=OLD", {"old"}), ("status=settled", {"old"}),
        ("status=settled&market=props", set[str]()),
    ):  # fmt: skip
        answer = client.get(f"/bets?{query}").json()
        assert {bet["id"] for bet in answer["data"]} == {made[name]["id"] for name in names}, query
        assert answer["meta"]["summary"]["count"] == len(names)
        text = client.get(f"/bets?{query}&format=csv").text
        assert len(list(csv.reader(io.StringIO(text)))) == 1 + len(names)
        report = client.get(f"/bets/report?{query}").json()["data"]
        assert sum(each["count"] for each in report["sportsbooks"]) == len(names)
    late = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for answer in (
        client.post("/bets", json={**BET, "placed_at": late}),
        client.patch(f"/bets/{made['old']['id']}", json={"placed_at": late}),
    ):
        assert answer.status_code == 400
        assert "placed_at must not be in the future" in answer.text


def test_a_bet_is_corrected(client: httpx2.Client) -> None:
    bet = placed(client)
    changes = {
        "sportsbook": "bet365", "selection": "Miami Heat", "odds_decimal": 2.5, "stake": 10.0,
        "placed_at": "2026-01-05T12:00:00Z", "fair_probability": 0.41,
    }  # fmt: skip
    now = client.patch(f"/bets/{bet['id']}", json=changes).json()["data"]
    assert now | changes == now
    assert now["ev_percent"] == pytest.approx(2.5)
    assert client.patch(f"/bets/{bet['id']}", json={"selection": ""}).status_code == 400


def report_bet(at: datetime, **other: Any) -> rules.Bet:
    return rules.figures(msgspec.structs.replace(bet_of(at), **other))


def test_the_report_is_that_of_plain_python() -> None:
    rng = random.Random(4)
    begin = datetime(2026, 1, 20, tzinfo=UTC)
    bets = []
    for at in range(60):
        result = rng.choice(("won", "lost", "push", "void", None))
        closing = rng.choice((None, rng.uniform(0.4, 0.6)))
        bets.append(report_bet(
            begin + timedelta(hours=7 * at), id=f"{at:03}", stake=rng.choice((10.0, 25.0)), result=result,
            odds_decimal=rng.choice((1.9, 2.0, 2.2)), closing_probability=closing,
            fair_probability=rng.choice((None, 0.5)), sportsbook=rng.choice(("fanduel", "bet365")),
        ))  # fmt: skip
    shuffled = rng.sample(bets, len(bets))
    found = report(shuffled)
    settled = [bet for bet in bets if bet.result not in (None, "void")]
    assert found.count == sum(bet.result != "void" for bet in bets)
    assert [point.at for point in found.course] == [bet.placed_at for bet in settled]
    last = found.course[-1]
    assert last.profit == pytest.approx(sum(bet.profit or 0.0 for bet in settled), abs=0.01)
    closed = [bet for bet in settled if bet.closing_probability is not None]
    assert last.closing == pytest.approx(
        sum(bet.stake * (bet.odds_decimal * (bet.closing_probability or 0.0) - 1.0) for bet in closed)
        + sum(bet.profit or 0.0 for bet in settled if bet.closing_probability is None),
        abs=0.01,
    )
    variance = sum(
        (bet.stake * bet.odds_decimal) ** 2 * (p := bet.closing_probability or 0.0) * (1.0 - p) for bet in closed
    )
    assert last.error == pytest.approx(1.645 * variance**0.5, abs=0.01)
    for each in found.sportsbooks:
        mine = [bet for bet in bets if bet.sportsbook == each.group and bet.result != "void"]
        done = [bet for bet in mine if bet.result is not None]
        values = [(bet.stake, bet.clv_percent) for bet in done if bet.clv_percent is not None]
        mean = sum(stake * value for stake, value in values) / sum(stake for stake, _ in values)
        assert (each.count, each.with_close) == (len(mine), len(values))
        assert (each.settled, each.staked) == (len(done), sum(bet.stake for bet in done))
        assert (each.open, each.open_staked) == (len(mine) - len(done), sum(bet.stake for bet in mine) - each.staked)
        expected = [(bet.stake, bet.ev_percent) for bet in done if bet.ev_percent is not None]
        assert each.with_fair == len(expected)
        assert each.ev_percent == pytest.approx(
            sum(stake * ev for stake, ev in expected) / sum(stake for stake, _ in expected), abs=1e-3
        )
        assert each.clv_percent == pytest.approx(mean, abs=1e-3)
        assert each.clv_error is not None
        assert each.clv_error > 0.0
    equal = [
        report_bet(begin, id=str(at), result="won", closing_probability=p)
        for at, p in enumerate((0.45, 0.5, 0.55, 0.6))
    ]
    clvs = [100.0 * (2.1 * p - 1.0) for p in (0.45, 0.5, 0.55, 0.6)]
    (one,) = report(equal).markets
    assert one.clv_error == pytest.approx(1.645 * statistics.stdev(clvs) / 2.0, abs=1e-3)  # of equal stakes
    assert [each.group for each in found.months] == ["2026-01", "2026-02"]
    assert report([]).course == []


def test_the_course_of_many_bets_has_few_points_and_the_last() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    bets = [report_bet(begin + timedelta(minutes=at), id=f"{at:04}", result="won") for at in range(1203)]
    course = report(bets).course
    assert len(course) <= MOST_POINTS
    assert course[-1].at == bets[-1].placed_at
    assert course[-1].profit == pytest.approx(1203 * 110.0)


def test_bets_are_imported_once_and_all_or_none(client: httpx2.Client) -> None:
    one = {"sportsbook": "fanduel", "selection": "Celtics", "odds_decimal": 2.0, "stake": 10, "result": "won",
           "placed_at": "2026-01-05T12:00:00Z", "closing_probability": 0.52}  # fmt: skip
    two = one | {"selection": "Heat", "result": None}
    answer = client.post("/bets/import", json={"bets": [one, two, one]})
    assert answer.json()["data"] == {"imported": 2, "present": 1}
    assert client.post("/bets/import", json={"bets": [two, one | {"stake": 11}]}).json()["data"] == {
        "imported": 1, "present": 1}  # fmt: skip
    bets = {(bet["selection"], bet["stake"]): bet for bet in client.get("/bets").json()["data"]}
    assert bets.keys() == {("Celtics", 10.0), ("Heat", 10.0), ("Celtics", 11.0)}
    won = bets["Celtics", 10.0]
    assert (won["profit"], won["clv_percent"], won["graded_by"]) == (10.0, 4.0, "hand")
    for wrong, said in (
        ({"bets": [one | {"stake": 12}, one | {"odds_decimal": 0.9}]}, "bets[1].odds_decimal"),
        ({"bets": [one | {"stake": 12, "placed_at": "2999-01-01T00:00:00Z"}]}, "placed_at must not be in the future"),
        ({"bets": []}, "bets"), ({"bets": [one] * 1001}, "bets"), ({"bets": [one | {"odds": 2}]}, "odds"),
    ):  # fmt: skip
        answer = client.post("/bets/import", json=wrong)
        assert answer.status_code == 400
        assert said in answer.text
    assert client.get("/bets").json()["meta"]["total"] == 3


def test_an_import_beyond_the_limit_records_nothing(client: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST, "bet", 3)
    bets = [BET | {"stake": stake} for stake in (1, 2, 3, 4)]
    answer = client.post("/bets/import", json={"bets": bets})
    assert (answer.status_code, "at most 3 bets" in answer.text) == (400, True)
    assert client.get("/bets").json()["data"] == []
    assert client.post("/bets/import", json={"bets": bets[:3]}).json()["data"]["imported"] == 3
    assert client.post("/bets/import", json={"bets": bets[:3]}).json()["data"]["present"] == 3
