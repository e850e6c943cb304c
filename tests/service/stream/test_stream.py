"""The stream over a real socket, one thing at a time: payloads, tiers, slots, refusals, and how a stream ends."""

import json
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sharpapi.models import OddsLine
from support.stream_running import (
    DELTA,
    PATIENCE_S,
    Client,
    Served,
    full_board,
    heard,
    moment,
    price,
    total,
    wait_for,
)

from oddsengine.feeds.merged_scores import ScoreReading
from oddsengine.live.active import RELEASED_S
from oddsengine.live.engine import IDLE_S
from oddsengine.tables.timestamps import micros
from oddsengine_service.accounts.keys import KeyTerms
from oddsengine_service.http.request import BASE
from oddsengine_service.stream import resuming
from oddsengine_service.wire.odds_response import ODDS


def named(text: str) -> set[str]:
    return set(text.split())


EV = named("""
    id game_id external_event_id selection_id ev_percentage odds_american odds_decimal no_vig_odds
    fair_probability market_width devig_method sharp_book selection market line sportsbook game sport league
    home_team away_team start_time is_live confidence_score kelly_percent book_count arb_available arb_profit
    is_player_prop player_name player_id stat_category possibly_stale oldest_odds_age_seconds warnings detected_at
""")
ARB = named("""
    id event_id event_name sport league market_type line profit_percent implied_total is_live legs detected_at
""")
LEG = {"sportsbook", "selection", "odds_american", "odds_decimal", "implied_probability", "stake_percent"}
MIDDLE = named("""
    id event_id event_name sport league market_type side1 side2 middle_size middle_numbers middle_probability
    expected_value quality_score detected_at
""")
MIDDLE_SIDE = {"book", "selection", "line", "odds", "stake_percent", "odds_age_seconds", "deep_link"}
HOLD = named("""
    id event_id event_name sport league market_type line home_team away_team start_time hold_percentage is_live
    all_books side1 side2 detected_at
""")
GAME = named("""
    home_team away_team sport league home_score away_score is_live game_period game_clock primary_book book_count
""")
HOLD_SIDE = {"selection", "books", "line", "odds", "deep_links"}
FULL = named("""
    id sportsbook event_id sport league home_team away_team market_type selection selection_type odds_american
    odds_decimal odds_probability line event_start_time is_live last_seen_at odds_changed_at deep_link
""")


@pytest.fixture
def listen(served: Served) -> Iterator[Callable[..., Client]]:
    made: list[Client] = []

    def client(path: str = "/stream", tier: str = "enterprise", **query: Any) -> Client:
        found = Client(served.port, path, served.key(tier), **query)
        made.append(found)
        return found

    yield client
    for each in made:
        each.close()
    for each in made:
        each.ended.wait(PATIENCE_S)


def test_every_payload_has_the_fields_it_should(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    served.step(full_board("fields"), now)
    client = listen("/stream/all", event="fields", min_ev="0.5", market="")
    assert client.ready.wait(PATIENCE_S)
    first = client.samples["connected"]
    assert set(first) == {"stream_id", "channel", "filters", "reconnected"}
    assert first["channel"] == "all"
    assert first["reconnected"] is False
    assert first["filters"] == {"sportsbook": None, "sport": None, "league": None, "event": ["fields"], "market": None}
    whole = client.samples["snapshot"]
    assert set(whole) == {"odds", "count", "total", "offset", "has_more"}
    assert set(whole["odds"][0]) >= FULL
    assert set(whole["odds"][0]) == set(ODDS)
    assert set(client.samples["snapshot:complete"]) == {"status", "books", "total_odds"}
    assert client.samples["snapshot:complete"]["status"] == "ready"
    detected = {name.split(":")[0]: client.samples[name] for name in client.samples if name.endswith("detected")}
    assert set(detected) == {"ev", "arb", "middles", "low_hold"}
    assert client.names[:2] == ["connected", "snapshot"]
    assert client.names.index("snapshot:complete") == len(client.names[: client.names.index("snapshot:complete")])
    assert all(client.names.index(f"{kind}:detected") < client.names.index("snapshot:complete") for kind in detected)
    assert set(detected["ev"][0]) >= EV
    assert set(detected["arb"][0]) >= ARB
    assert set(detected["arb"][0]["legs"][0]) >= LEG
    assert set(detected["middles"][0]) >= MIDDLE
    assert set(detected["middles"][0]["side1"]) >= MIDDLE_SIDE
    assert set(detected["low_hold"][0]) >= HOLD
    assert set(detected["low_hold"][0]["side2"]) >= HOLD_SIDE
    assert set(heard(client, "heartbeat")) == {"timestamp"}
    assert set(client.samples["gamestate:snapshot"]) == set()
    game = ScoreReading("fields", "book", micros(now), 3, 1, "Q3", "7:12", sport="basketball")
    served.node.games.put([game], now)
    played = heard(client, "gamestate:update")
    assert set(played) == {"fields"}
    assert set(played["fields"]) >= GAME

    served.step([price("fields", "draftkings", "Home", 1.9)], now + timedelta(seconds=1))
    moved = heard(client, "odds:update")
    assert set(moved) == {"odds", "count", "book", "partial"}
    assert set(moved["odds"][0]) == DELTA
    assert (moved["count"], moved["book"], moved["partial"]) == (1, "draftkings", False)
    assert set(heard(client, "ev:expired")) == {"expired", "timestamp"}
    assert set(heard(client, "arb:expired")) == {"expired", "timestamp"}
    served.step((), now + timedelta(seconds=2), complete=["draftkings"])
    gone = heard(client, "odds:removed")
    assert set(gone) == {"ids", "count", "book"}
    assert (gone["count"], gone["book"]) == (4, "draftkings")
    assert set(heard(client, "middles:expired")) == {"expired"}
    assert set(heard(client, "low_hold:expired")) == {"expired"}
    assert client.ids == sorted(set(client.ids))
    assert b"text/event-stream" in client.head
    assert b"x-accel-buffering: no" in client.head
    assert b"x-ratelimit-limit" in client.head


def test_suspended_prices_leave_and_come_back(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    rows = [price("pause", book, side, 1.9) for book in ("pinnacle", "fanduel") for side in ("Home", "Away")]
    served.step(rows, now)
    client = listen("/stream/events/pause")
    assert client.ready.wait(PATIENCE_S)
    assert len(client.odds) == 4
    served.step([price("pause", "fanduel", "Home", 1.9, is_active=False)], now + timedelta(seconds=1))
    assert heard(client, "odds:removed")["book"] == "fanduel"
    assert len(client.odds) == 3
    served.step([price("pause", "fanduel", "Home", 1.95, is_active=False)], now + timedelta(seconds=2))
    served.step([price("pause", "fanduel", "Home", 2.0)], now + timedelta(seconds=3))
    back = heard(client, "snapshot", 2)
    assert (back["count"], back["total"], back["offset"], back["has_more"]) == (1, 4, 3, False)
    assert back["odds"][0]["odds_decimal"] == 2.0
    served.step([price("pause", "betmgm", "Home", 2.0)], now + timedelta(seconds=4))
    new = heard(client, "snapshot", 3)
    assert (new["count"], new["total"], new["offset"]) == (1, 5, 4)
    begins = now + timedelta(hours=5)
    served.step([price("pause", "betmgm", "Home", 2.0, event_start_time=begins)], now + timedelta(seconds=5))
    other = heard(client, "snapshot", 4)  # no delta can say that; rows without a start have that of their event
    assert (other["count"], other["total"]) == (5, 5)
    assert {datetime.fromisoformat(row["event_start_time"]) for row in other["odds"]} == {begins}
    later = begins + timedelta(hours=1)
    served.step([price("pause", "betmgm", "Home", 2.0, event_start_time=later)], now + timedelta(seconds=6))
    other = heard(client, "snapshot", 5)
    assert (other["count"], other["total"]) == (1, 5)
    assert datetime.fromisoformat(other["odds"][0]["event_start_time"]) == later
    assert client.names.count("odds:update") == 0


def test_a_price_that_is_rejected_is_sent_whole(served: Served, listen: Callable[..., Client]) -> None:
    """Its age alone, with no view active; and a move of its price that a guard rejects. Deltas could not say it."""
    now = moment()
    rows = [price("age", book, side, 1.9) for book in ("pinnacle", "fanduel") for side in ("Home", "Away")]
    old = now - timedelta(seconds=590)
    served.step([*rows[:3], rows[3] | {"last_seen_at": old}], now)
    client = listen("/stream/events/age")
    assert client.ready.wait(PATIENCE_S)
    assert {row["rejection"] for row in client.odds.values()} == {None}
    served.step([], now + timedelta(seconds=11))
    aged = heard(client, "snapshot", 2)
    assert (aged["count"], aged["total"], aged["has_more"]) == (1, 4, False)
    assert aged["odds"][0]["rejection"] == {"guard": "stale", "reason": "not seen for too long"}
    served.step([rows[3]], now + timedelta(seconds=12))
    assert heard(client, "snapshot", 3)["odds"][0]["rejection"] is None
    served.step([price("age", "fanduel", "Home", 2.6)], now + timedelta(seconds=13))  # the book's sum is below 1
    moved = heard(client, "snapshot", 4)["odds"]
    assert {row["rejection"]["guard"] for row in moved} == {"book_sum"}
    assert [row["odds_decimal"] for row in moved if row["selection"] == "Home"] == [2.6]
    assert client.names.count("odds:update") == 0
    assert not client.faults


def test_snapshot_rows_are_the_rows_of_the_list(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    lines = (210.5, 214.5, 218.5)
    rows = [total("whole", book, side, line, 1.9) for book in ("pinnacle", "fanduel") for side in ("Over", "Under")
            for line in lines]  # fmt: skip
    served.step([*full_board("whole"), *rows, price("whole", "betmgm", "Home", 1.9, max_bet=50.0)], now)
    client = listen("/stream/odds", event="whole")
    assert client.ready.wait(PATIENCE_S)
    assert client.odds == served.rows("/odds", "enterprise", {"event": "whole"})
    for row in client.odds.values():
        line = OddsLine.model_validate(row)
        assert (line.probability, line.timestamp) == (row["odds_probability"], row["last_seen_at"])
    # One more book makes another line the main one: no other price moved, and both lines are sent again.
    before = {id_: dict(row) for id_, row in client.odds.items()}
    now += timedelta(seconds=1)
    served.step([total("whole", "betmgm", "Over", 218.5, 1.9)], now)
    heard(client, "snapshot", 2)
    held = served.rows("/odds", "enterprise", {"event": "whole"})
    assert client.odds == held
    changed = {row["line"] for id_, row in held.items() if row["is_main_line"] != before.get(id_, row)["is_main_line"]}
    assert 218.5 in changed
    assert len(changed) == 2


def test_main_lines_are_those_of_the_tier(served: Served, listen: Callable[..., Client]) -> None:
    """Each client has the main lines among the books of its key, in a stream as in a list."""
    now, everybody, own = moment(), ("bovada", "pinnacle", "circa", "espnbet"), ("draftkings", "fanduel")
    sides = ("Over", "Under")
    rows = [total("lines", book, side, 210.5, 1.9) for book in own for side in sides]
    rows += [total("lines", book, side, 214.5, 1.9) for book in (*everybody[:2], *own) for side in sides]
    served.step(rows, now)
    clients = {tier: listen("/stream/odds", tier, event="lines") for tier in ("hobby", "enterprise")}
    for tier, client in clients.items():
        assert client.ready.wait(PATIENCE_S)
        assert client.odds == served.rows("/odds", tier, {"event": "lines"})

    def mains() -> dict[str, list[float]]:
        return {
            tier: sorted({row["line"] for row in client.odds.values() if row["is_main_line"]})
            for tier, client in clients.items()
        }

    assert mains() == {"hobby": [210.5], "enterprise": [214.5]}
    before = [name for name in clients["hobby"].names if name != "heartbeat"]
    # Two more books make the other line the main one, for those who see them.
    rows = [total("lines", book, side, 210.5, 1.9) for book in everybody for side in sides]
    served.step(rows, now + timedelta(seconds=1))
    wait_for(lambda: mains() == {"hobby": [210.5], "enterprise": [210.5]})
    for tier, client in clients.items():
        assert client.odds == served.rows("/odds", tier, {"event": "lines"})
    assert [name for name in clients["hobby"].names if name != "heartbeat"] == before  # nothing changed for it


def test_large_batches_come_in_parts(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    lines = [100.5 + at for at in range(1100)]
    served.step([total("parts", "fanduel", side, line, 1.9) for line in lines for side in ("Over", "Under")], now)
    client = listen("/stream/odds", event="parts")
    assert client.ready.wait(PATIENCE_S)
    assert client.names[:5] == ["connected", "snapshot", "snapshot", "snapshot", "snapshot:complete"]
    assert client.samples["snapshot"]["offset"] == 2000
    assert len(client.odds) == 2200
    later = now + timedelta(seconds=1)
    served.step([total("parts", "fanduel", side, line, 1.95) for line in lines for side in ("Over", "Under")], later)
    last = heard(client, "odds:update", 3)
    assert (last["count"], last["partial"]) == (200, False)
    wait_for(lambda: {row["odds_decimal"] for row in client.odds.values()} == {1.95})


def test_opportunities_name_their_prices(served: Served, listen: Callable[..., Client]) -> None:
    served.step(full_board("priced"), moment())
    client = listen("/stream/all", event="priced", min_ev="0.5")
    assert client.ready.wait(PATIENCE_S)
    used: dict[str, list[tuple[str, str, float, str]]] = {kind: [] for kind in client.finds}
    for row in client.finds["ev"].values():
        used["ev"].append((row["odds_id"], row["sportsbook"], row["odds_decimal"], row["selection"]))
    for row in client.finds["arb"].values():
        used["arb"] += [(x["odds_id"], x["sportsbook"], x["odds_decimal"], x["selection"]) for x in row["legs"]]
    for row in client.finds["middles"].values():
        sides = row["side1"], row["side2"]
        used["middles"] += [(x["odds_id"], x["book"], x["odds"]["decimal"], x["selection"]) for x in sides]
    for row in client.finds["low_hold"].values():
        for side in (row["side1"], row["side2"]):
            assert list(side["odds_ids"]) == side["books"]
            used["low_hold"] += [(id_, book, side["odds"]["decimal"], client.odds[id_]["selection"])
                                 for book, id_ in side["odds_ids"].items()]  # fmt: skip
    for prices in used.values():
        assert prices
        for id_, *said in prices:
            row = client.odds[id_]
            assert said == [row["sportsbook"], row["odds_decimal"], row["selection"]]


def test_connected_says_what_it_does_not_know(served: Served, listen: Callable[..., Client]) -> None:
    served.step([price("strange", "fanduel", "Home", 1.9)], moment())
    query = {"event": "strange,none", "sport": "curling,basketball", "sportsbook": "fanduel,zork", "colour": "red"}
    for path in ("/stream/odds", "/stream"):
        client = listen(path, **query)
        assert client.ready.wait(PATIENCE_S)
        answer = served.rest.get("/odds", params=query, headers={"X-API-Key": served.key("enterprise")}).json()["meta"]
        assert client.samples["connected"]["meta"] == {name: answer[name] for name in ("unknown", "ignored")}
    assert answer["unknown"] == {"event": ["none"], "sport": ["curling"], "sportsbook": ["zork"]}


def test_live_filters_prices_and_opportunities(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    served.step(full_board("turn"), now)
    live = listen("/stream/all", event="turn", live="true", min_ev="0.5")
    before = listen("/stream/all", event="turn", live="false", min_ev="0.5")
    both = listen("/stream/all", event="turn", min_ev="0.5")
    clients = (live, before, both)
    for client in clients:
        assert client.ready.wait(PATIENCE_S)
        assert "meta" not in client.samples["connected"]
    assert [client.samples["connected"]["filters"].get("live") for client in clients] == [True, False, None]
    assert [len(client.odds) for client in clients] == [0, len(both.odds), len(full_board("turn"))]
    assert before.finds == both.finds
    assert all(before.finds.values())
    assert not any(live.finds.values())

    served.step([{**row, "is_live": True} for row in full_board("turn")], now + timedelta(seconds=1))
    whole = heard(live, "snapshot", 2)
    assert (whole["count"], whole["has_more"]) == (len(full_board("turn")), False)
    wait_for(lambda: live.held() == both.held() and not before.odds)
    assert "odds:update" in both.names
    assert "odds:removed" not in both.names
    assert "odds:update" not in before.names
    wait_for(lambda: not any(before.finds.values()) and any(live.finds.values()) and live.finds == both.finds)

    served.step([price("turn", "fanduel", "Home", 1.9, is_live=True)], now + timedelta(seconds=2))
    assert heard(live, "odds:update")["odds"][0]["odds_decimal"] == 1.9
    served.step([price("turn", "fanduel", "Home", 1.9, is_live=True, is_active=False)], now + timedelta(seconds=3))
    assert heard(live, "odds:removed")["count"] == 1
    served.step([price("turn", "fanduel", "Home", 1.9)], now + timedelta(seconds=4))  # back, and not in play after all
    wait_for(lambda: len(before.odds) == 1)
    served.step([price("turn", "fanduel", "Away", 1.95)], now + timedelta(seconds=5))
    wait_for(lambda: len(before.odds) == 2)
    assert heard(live, "odds:removed", 2)["count"] == 1
    assert not any(client.faults for client in clients)


def test_games_have_no_live_filter(listen: Callable[..., Client]) -> None:
    client = listen("/stream/gamestate", live="true")
    assert client.ready.wait(PATIENCE_S)
    assert client.samples["connected"]["meta"] == {"ignored": ["live"]}


@pytest.mark.parametrize("name", ["channel", "channels", "type"])
def test_channels_by_several_names(served: Served, listen: Callable[..., Client], name: str) -> None:
    served.step(full_board("channels"), moment())
    odds = listen("/stream", event="channels", **{name: "odds"})
    both = listen("/stream", event="channels", **{name: "odds,opportunities"})
    assert odds.ready.wait(PATIENCE_S)
    assert both.ready.wait(PATIENCE_S)
    assert odds.samples["connected"]["channel"] == "odds"
    assert both.samples["connected"]["channel"] == "odds,opportunities"
    assert len(odds.odds) == len(both.odds) > 0
    assert "arb:detected" in both.names
    assert "arb:detected" not in odds.names
    assert "gamestate:snapshot" not in both.names


def test_thresholds_are_the_subscribers_own(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    served.step(full_board("least"), now)
    low = listen("/stream", event="least", min_ev="1")
    high = listen("/stream", event="least", min_ev="4")
    assert low.ready.wait(PATIENCE_S)
    assert high.ready.wait(PATIENCE_S)
    mine = [row for row in low.finds["ev"].values() if row["sportsbook"] == "draftkings" and row["selection"] == "Home"]
    assert mine[0]["ev_percentage"] > 4.0
    assert mine[0]["id"] in high.finds["ev"]
    assert low.samples["snapshot"] == {"odds": [], "count": 0, "total": 0, "offset": 0, "has_more": False}
    served.step([price("least", "draftkings", "Home", 2.06)], now + timedelta(seconds=1))
    assert mine[0]["id"] in heard(high, "ev:expired")["expired"]
    wait_for(lambda: 1.0 <= low.finds["ev"][mine[0]["id"]]["ev_percentage"] < 4.0)
    assert "ev:expired" not in low.names


def test_tiers_get_what_they_have(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    served.step(full_board("tiers"), now)
    hobby = listen("/stream/all", "hobby", event="tiers", sportsbook="draftkings,fanduel")
    assert hobby.ready.wait(PATIENCE_S)
    kinds = {name for name in hobby.names if name.endswith("detected")}
    assert kinds <= {"arb:detected", "low_hold:detected"}
    assert not any(name.startswith("gamestate") for name in hobby.names)
    assert {row["sportsbook"] for row in hobby.odds.values()} == {"draftkings", "fanduel"}
    assert hobby.samples["connected"]["filters"]["sportsbook"] == ["draftkings", "fanduel"]


@pytest.mark.parametrize(
    ("path", "tier", "query", "status", "code"),
    [
        ("/stream", "enterprise", {"channel": "prices"}, 400, "validation_error"),
        ("/stream", "enterprise", {"channels": "odds,prices"}, 400, "validation_error"),
        ("/stream", "pro", {"channels": "odds,gamestate"}, 403, "tier_restricted"),
        ("/stream", "enterprise", {"min_ev": "much"}, 400, "validation_error"),
        ("/stream/odds", "enterprise", {"state": "zz"}, 400, "validation_error"),
        ("/stream/odds", "enterprise", {"live": "maybe"}, 400, "validation_error"),
        ("/stream/odds", "enterprise", {"live": "true", "seen": "true"}, 400, "validation_error"),
        ("/stream", None, {}, 401, "invalid_api_key"),
        ("/stream/odds", "free", {}, 403, "tier_restricted"),
        ("/stream", "bare", {}, 403, "tier_restricted"),
        ("/stream/gamestate", "sharp", {}, 403, "tier_restricted"),
        ("/stream", "pro", {"channel": "gamestate"}, 403, "tier_restricted"),
        ("/stream/odds", "hobby", {"sportsbook": "pinnacle"}, 403, "tier_restricted"),
    ],
)
def test_refusals(served: Served, path: str, tier: str | None, query: dict[str, Any], status: int, code: str) -> None:
    client = Client(served.port, path, served.key(tier) if tier else "wrong", **query)
    assert client.ended.wait(PATIENCE_S)
    client.close()
    assert client.status == status
    assert json.loads(client.body)["error"]["code"] == code


@pytest.mark.parametrize("part", [1, 1000])
def test_views_of_closed_streams_fall_asleep(
    served: Served, listen: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """Half a minute later, if nobody reads them; however many opportunities are read at once."""
    monkeypatch.setattr("oddsengine_service.stream.watched_view.PART", part)
    now = moment()
    served.step(full_board(f"asleep-{part}"), now)
    wait_for(lambda: not served.hub.opportunities.watches.open)
    served.step((), now := now + timedelta(seconds=IDLE_S + 1))
    before = served.engine.views
    books = ["pinnacle,draftkings", "pinnacle,fanduel", "draftkings,fanduel"]
    held = [listen("/stream", channel="opportunities", min_ev=-50, sportsbook=some) for some in books]
    assert all(client.ready.wait(PATIENCE_S) for client in held)
    assert len(held[0].finds["ev"]) >= 4
    assert len(served.engine.views) == len(before) + len(held)
    for client in held:
        client.close()
    wait_for(lambda: not served.hub.opportunities.watches.open)
    served.step((), now + timedelta(seconds=RELEASED_S - 1))
    assert len(served.engine.views) == len(before) + len(held)
    served.step((), now + timedelta(seconds=RELEASED_S + 1))
    assert served.engine.views == before


def test_a_set_shared_with_another_account_counts_again_once_that_has_left(
    served: Served, listen: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oddsengine_service.stream.watches.SHARE", 1)
    served.step(full_board("share"), moment())
    wait_for(lambda: not served.hub.opportunities.watches.open)
    first, second = ({"channel": "opportunities", "sportsbook": f"pinnacle,{one}"} for one in ("draftkings", "fanduel"))
    mine = listen("/stream", **first)
    assert mine.ready.wait(PATIENCE_S)
    other = listen("/stream", "sharp", **first, sport="basketball")
    assert other.ready.wait(PATIENCE_S)
    other.close()
    wait_for(lambda: sum(group.members for group in served.hub.opportunities.groups.values()) == 1)
    refused = listen("/stream", **second)
    assert refused.ended.wait(PATIENCE_S)
    assert refused.samples["error"]["code"] == "too_many_streams"
    assert "limit of 1 different sets of books per account" in refused.samples["error"]["message"]


def test_an_account_holds_a_limited_number_of_opportunities(
    served: Served, listen: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oddsengine_service.stream.watches.MOST_ROWS", 1)
    served.step(full_board("many"), moment())
    wait_for(lambda: not served.hub.opportunities.watches.open)
    first = listen("/stream", channel="opportunities", min_ev=-50, sportsbook="pinnacle,draftkings")
    assert first.ready.wait(PATIENCE_S)
    second = listen("/stream", channel="opportunities", min_ev=-50, sportsbook="pinnacle,fanduel")
    assert second.ended.wait(PATIENCE_S)
    assert second.samples["error"]["code"] == "too_many_streams"
    assert second.samples["error"]["message"].startswith(
        "limit of 1 opportunities in the streams of an account reached"
    )
    same = listen("/stream", channel="opportunities", min_ev=-50, sportsbook="pinnacle,draftkings")
    other = listen("/stream", "sharp", channel="opportunities", min_ev=-50, sportsbook="pinnacle,fanduel")
    assert same.ready.wait(PATIENCE_S)
    assert other.ready.wait(PATIENCE_S)
    assert not {"error"} & {*first.names, *same.names, *other.names}


def test_opportunities_have_the_times_of_detection_of_the_lists(served: Served, listen: Callable[..., Client]) -> None:
    """Whichever of both follows them first, and whatever other thresholds a stream has."""
    now = moment()
    for first in ("list", "stream"):
        books = "pinnacle,draftkings,fanduel" if first == "list" else "pinnacle,draftkings,fanduel,betmgm"
        query = {"sportsbook": books}
        stream = {"channel": "opportunities", "min_ev": 0, "min_profit": -1, **query}
        event = f"detected-{first}"
        served.step(full_board(event), now)
        followers = [listen("/stream", **stream)] if first == "stream" else []
        assert not followers or followers[0].ready.wait(PATIENCE_S)
        early = served.rows("/opportunities/ev", "enterprise", query)
        served.step([price(event, "fanduel", "Home", 2.04)], now := now + timedelta(seconds=5))
        followers += [listen("/stream", **stream)]
        assert followers[-1].ready.wait(PATIENCE_S)
        kinds = {"ev": "ev", "low_hold": "low-hold", "middles": "middles"}
        for kind, path in kinds.items():
            rows = served.rows(f"/opportunities/{path}", "enterprise", query)
            for client in followers:
                times = {id_: row["detected_at"] for id_, row in client.finds[kind].items()}
                assert times.items() <= {id_: row["detected_at"] for id_, row in rows.items()}.items()
                assert times or kind != "ev"
        late = {row["detected_at"] for row in served.rows("/opportunities/ev", "enterprise", query).values()}
        assert {row["detected_at"] for row in early.values()} < late


def test_slots_are_free_at_once(served: Served, listen: Callable[..., Client]) -> None:
    account = "account-pro"
    limits = served.node.limits
    wait_for(lambda: limits.streams(account) == 0)
    held = [listen("/stream", "pro") for _ in range(10)]
    assert all(client.ready.wait(PATIENCE_S) for client in held)
    assert limits.streams(account) == 10
    refused = listen("/stream", "pro")
    assert refused.ended.wait(PATIENCE_S)
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (429, "too_many_streams")
    assert b"retry-after" in refused.head
    for client in held[:3]:
        client.close()
    wait_for(lambda: limits.streams(account) == 7, 2.0)
    again = listen("/stream", "pro")
    assert again.ready.wait(PATIENCE_S)
    assert again.status == 200
    for client in [*held, again]:
        client.close()
    wait_for(lambda: limits.streams(account) == 0, 2.0)


def test_a_stream_that_waits_for_an_update_has_a_slot(
    served: Served, listen: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that wait would otherwise be without a limit."""
    monkeypatch.setattr(resuming, "REACH_S", 3.0)
    limits, filters = served.node.limits, {"event": "waited", "resume": "true"}
    first = listen("/stream/odds", "pro", **filters)
    assert first.ready.wait(PATIENCE_S)
    served.step([price("waited", "fanduel", "Home", 2.04)], moment())
    wait_for(lambda: "." in first.last)
    number, _, subscription = first.last.removeprefix("evt_").partition(".")
    first.close()
    wait_for(lambda: limits.streams("account-pro") == 0)
    ahead = f"evt_{int(number) + 7}.{subscription}"
    waiting = [listen("/stream/odds", "pro", last_event_id=ahead, **filters) for _ in range(10)]
    wait_for(lambda: limits.streams("account-pro") == 10)
    refused = listen("/stream/odds", "pro", last_event_id=ahead, **filters)
    assert refused.ended.wait(PATIENCE_S)
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (429, "too_many_streams")
    assert all(client.ended.wait(PATIENCE_S) and client.status == 503 for client in waiting)
    wait_for(lambda: limits.streams("account-pro") == 0, 2.0)


def test_who_comes_back_begins_anew(served: Served, listen: Callable[..., Client]) -> None:
    cases: tuple[dict[str, Any], ...] = ({"headers": {"Last-Event-ID": "evt_7"}}, {"last_event_id": "evt_7"})
    for more in cases:
        client = listen("/stream/odds", event="none", **more)
        assert client.ready.wait(PATIENCE_S)
        assert client.samples["connected"]["reconnected"] is True
        assert client.names[:3] == ["connected", "snapshot", "snapshot:complete"]


def test_links_lead_to_a_state(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    link = "https://sports.{state}.betmgm.com/en/sports/events/7"
    served.step([price("links", "betmgm", side, 1.9, deep_link=link) for side in ("Home", "Away")], now)
    client = listen("/stream/odds", event="links", state="NJ")
    assert client.ready.wait(PATIENCE_S)
    assert {row["deep_link"] for row in client.odds.values()} == {link.replace("{state}", "nj")}
    served.step([price("links", "fanduel", "Home", 1.9)], now + timedelta(seconds=1))
    wait_for(lambda: len(client.odds) == 3)
    assert next(row for row in client.odds.values() if row["sportsbook"] == "fanduel")["deep_link"] != link


def test_games_are_told(served: Served, listen: Callable[..., Client]) -> None:
    first = listen("/stream/gamestate", sport="basketball")
    assert first.ready.wait(PATIENCE_S)
    assert first.names == ["connected", "gamestate:snapshot", "snapshot:complete"]
    state = {"sport": "basketball", "league": "nba", "home_score": 3, "away_score": 1, "is_live": True}
    served.hub.games({"g1": state, "g2": {**state, "sport": "soccer"}})
    assert heard(first, "gamestate:update") == {"g1": state}
    second = listen("/stream", channel="gamestate")
    assert second.ready.wait(PATIENCE_S)
    assert set(second.samples["gamestate:snapshot"]) >= {"g1", "g2"}
    served.hub.games({}, ["g1", "g2"])
    assert heard(first, "gamestate:removed") == {"ids": ["g1"]}
    assert heard(second, "gamestate:removed") == {"ids": ["g1", "g2"]}


def test_outages_are_told_and_pass(served: Served, listen: Callable[..., Client]) -> None:
    client = listen("/stream/odds", event="none")
    assert client.ready.wait(PATIENCE_S)
    served.node.failures |= {"closing": "the disk is full", "feed": "it fell"}  # prices need no closing lines
    try:
        told = heard(client, "error")
    finally:
        served.node.failures.clear()
    assert set(told) == {"code", "message"}
    assert told["code"] == "upstream_error"
    assert client.names.count("error") == 1
    assert told["message"] == "source feed is not responding; its prices will become stale"
    heard(client, "heartbeat", client.names.count("heartbeat") + 1)


def test_a_revoked_key_ends_its_streams(served: Served) -> None:
    made = served.keys.create("account-revoked", KeyTerms("sharp", streaming=True))
    client = Client(served.port, "/stream/odds", made.key, event="none")
    assert client.ready.wait(PATIENCE_S)
    served.keys.revoke(made.record.id)
    assert client.ended.wait(5.0)
    assert client.clean
    wait_for(lambda: served.node.limits.streams("account-revoked") == 0, 2.0)
    client.close()


@pytest.mark.parametrize("changed", ["secret", "rights"])
def test_streams_opened_after_a_change_of_their_key_stay(tmp_path: Path, changed: str) -> None:
    """Also while an older one, whose client does not read, is ending."""
    served = Served(tmp_path, send_buffer=4096, linger=1000.0)
    now, key = moment(), served.made["pro"]
    rows = [price(f"event {n}", "draftkings", side, 1.9) for n in range(2000) for side in ("Home", "Away")]
    served.step(rows, now)
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.connect(("127.0.0.1", served.port))
        silent.sendall(f"GET {BASE}/stream/odds HTTP/1.1\r\nHost: x\r\nX-API-Key: {key.key}\r\n\r\n".encode())
        wait_for(lambda: served.hub is not None and any(each.connection.size for each in served.hub.subscribers.open))
        (older,) = served.hub.subscribers.open
        if changed == "secret":
            key = served.keys.rotate(key.record.id)
        else:
            served.keys.retier(key.record.id, tier="sharp")
        wait_for(lambda: older.connection._ending)
        newer = Client(served.port, "/stream/odds", key.key, event="event 1")
        assert newer.ready.wait(PATIENCE_S)
        beats = newer.beats
        wait_for(lambda: newer.beats > beats + 4 or newer.ended.is_set())
        assert older in served.hub.subscribers.open
        assert not newer.ended.is_set()
        newer.close()
    served.stop()


def test_streams_go_on_while_keys_cannot_be_read(served: Served, tmp_path: Path) -> None:
    other = Served(tmp_path)
    with served.logged.paused(), closing(sqlite3.connect(tmp_path / "keys.sqlite", isolation_level=None)) as file:
        client = Client(other.port, "/stream/odds", other.key("sharp"), event="none")
        assert client.ready.wait(PATIENCE_S)
        ask = partial(other.rest.get, "/sports", headers={"X-API-Key": other.key("sharp")})
        file.execute("ALTER TABLE facts RENAME TO moved")
        wait_for(lambda: ask().status_code >= 500)
        beats = client.beats
        wait_for(lambda: client.beats > beats + 3 or client.ended.is_set())
        assert not client.ended.is_set()
        file.execute("ALTER TABLE moved RENAME TO facts")
        wait_for(lambda: ask().status_code == 200)
        other.keys.revoke(other.made["sharp"].record.id)
        assert client.ended.wait(PATIENCE_S)
    other.stop()


def test_a_head_request_opens_nothing(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as line:
        request = (
            f"HEAD {BASE}/stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: {served.key('pro')}\r\n\r\n"
        )
        line.sendall(request.encode())
        answer = b"".join(iter(lambda: line.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert served.node.limits.streams("account-pro") == 0
