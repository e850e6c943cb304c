"""Legs that settle differently, over the wire: on rows, in explanations, and left out by `terms=same`."""

from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from support.handler_calls import answer, found, node
from support.rows import MOMENT
from support.socket_running import SocketClient
from support.stream_running import Client, Served, moment

import oddsengine_service.routes.opportunities as module
from oddsengine.live.engine import Engine
from oddsengine_service.errors import Problem
from oddsengine_service.mcp import tools
from oddsengine_service.node import Node
from oddsengine_service.routes.filter_routes import LISTS

ARB = found(module.endpoints, "/opportunities/arbitrage")
HOLD = found(module.endpoints, "/opportunities/low_hold")
MIDDLES = found(module.endpoints, "/opportunities/middles")
EXPLAIN = found(module.endpoints, "/opportunities/explain/{opportunityId}")
TIE = "tie: kalshi pays 0.50, draftkings returns the stake"


def game(event: str, **prices: tuple[float, float]) -> list[dict[str, Any]]:
    return [
        {
            "sportsbook": book, "event_id": event, "sport": "football", "league": "nfl", "market_type": "moneyline",
            "home_team": "Buffalo Bills", "away_team": "Miami Dolphins", "selection": name, "odds_decimal": odds,
            "last_seen_at": MOMENT, "event_start_time": MOMENT + timedelta(hours=3), "is_live": False,
        }
        for book, pair in prices.items()
        for name, odds in zip(("Buffalo Bills", "Miami Dolphins"), pair, strict=True)
    ]  # fmt: skip


def spreads(event: str, **prices: dict[float, tuple[float, float]]) -> list[dict[str, Any]]:
    return [
        row | {"market_type": "point_spread", "line": sign * line, "odds_decimal": odds}
        for book, ladder in prices.items()
        for line, pair in ladder.items()
        for row, sign, odds in zip(game(event, **{book: (2.0, 2.0)}), (1.0, -1.0), pair, strict=True)
    ]


BOARD = [
    *game("unlike", kalshi=(1.75, 2.3), draftkings=(1.62, 2.5), fanduel=(1.64, 2.46)),
    *game("alike", draftkings=(1.55, 2.7), fanduel=(1.64, 2.46), betmgm=(1.6, 2.44)),
    *game("low", kalshi=(1.7, 2.3), draftkings=(1.62, 2.4), fanduel=(1.64, 2.4)),
    *game("lower", betmgm=(1.6, 2.5), fanduel=(1.66, 2.4)),
    *spreads("pair", kalshi={-2.5: (1.97, 1.95)}, pinnacle={-2.5: (1.93, 1.93), -3.5: (2.02, 1.86)}),
    *spreads("same", fanduel={-2.5: (1.97, 1.89)}, draftkings={-2.5: (1.93, 1.93), -3.5: (2.02, 1.88)}),
]


@cache
def here() -> Node:
    engine = Engine()
    engine.step(BOARD, MOMENT)
    return node(engine)


def events(endpoint: Any, **query: Any) -> dict[str, list[bool]]:
    """Whether the rows of each event are flagged."""
    out: dict[str, list[bool]] = {}
    for row in answer(endpoint, here(), {"limit": 200, **query})["data"]:
        out.setdefault(row["event_id"], []).append(row["terms_differ"])
    return out


def test_rows_say_where_their_legs_differ_and_at_what_cost() -> None:
    rows = {row["event_id"]: row for row in answer(ARB, here())["data"]}
    row = rows["unlike"]
    assert row["terms_differ"] is True
    assert row["terms"][0] == TIE
    assert row["terms_results"] == [-8.9595, None, None]
    assert row["terms_worst_case"] == -8.9595
    assert [text.partition(":")[0] for text in row["terms"]] == ["tie", "cancelled", "postponed"]
    same = rows["alike"]
    assert (same["terms_differ"], same["terms_worst_case"], same["terms"], same["terms_results"]) == (
        False,
        None,
        [],
        [],
    )


@pytest.mark.parametrize(
    ("endpoint", "query", "unlike", "alike"),
    [
        (ARB, {}, "unlike", "alike"),
        (HOLD, {"max_hold": 5}, "low", "lower"),
        (MIDDLES, {"min_ev": -100}, "pair", "same"),
    ],
)
def test_lists_leave_out_what_differs(endpoint: Any, query: dict[str, Any], unlike: str, alike: str) -> None:
    every, same = events(endpoint, **query), events(endpoint, **query, terms="same")
    assert any(every[unlike])
    assert not any(every[alike])
    assert unlike not in same or not all(every[unlike])
    assert same == {event: kept for event, flags in every.items() if (kept := [flag for flag in flags if not flag])}


def test_another_word_is_refused_and_ev_has_one_leg() -> None:
    with pytest.raises(Problem, match="same"):
        events(ARB, terms="different")
    read = answer(found(module.endpoints, "/opportunities/ev"), here(), {"terms": "same"})
    assert read["meta"]["ignored"] == ["terms"]


def test_saved_filters_and_tools_have_it_too() -> None:
    for name in ("arbitrage", "low_hold", "middles"):
        assert "terms" in LISTS[name].query.declared
    for tool in ("find_arbitrage", "find_low_hold", "find_middles"):
        assert "terms" in tools.BY_NAME[tool].args
    (row,) = (row for row in answer(ARB, here())["data"] if row["event_id"] == "unlike")
    shape = tools.BY_NAME["find_arbitrage"].shape
    assert shape is not None
    assert shape(row, MOMENT)["terms"][0] == TIE


def test_an_explanation_has_the_terms_side_by_side() -> None:
    (row,) = (row for row in answer(ARB, here())["data"] if row["event_id"] == "unlike")
    said = answer(EXPLAIN, here(), {"event_id": "unlike"}, path={"opportunityId": row["id"]})["data"]
    tie = said["terms"][0]
    assert (tie["case"], tie["differ"], tie["result_percent"]) == ("tie", True, -8.9595)
    assert [(leg["sportsbook"], leg["terms"]) for leg in tie["legs"]] == [
        ("kalshi", "pays 0.50"), ("draftkings", "returns the stake")
    ]  # fmt: skip
    assert all(leg["source"] and leg["date"] for leg in tie["legs"])
    assert [case["case"] for case in said["terms"]] == ["tie", "cancelled", "postponed", "overtime"]
    assert said["terms"][-1]["differ"] is False


def board(now: Any) -> list[dict[str, Any]]:
    later = now + timedelta(hours=3)
    return [
        row | {"last_seen_at": now, "event_start_time": later, "event_id": f"terms-{row['event_id']}"} for row in BOARD
    ]


def kept(finds: dict[str, dict[str, Any]]) -> set[tuple[str, bool]]:
    return {
        (row["event_id"], row["terms_differ"])
        for kind in ("arb", "low_hold", "middles")
        for row in finds[kind].values()
    }


def test_streams_and_sockets_leave_out_what_differs(served: Served) -> None:
    now = moment()
    served.step(board(now), now)
    chosen = ",".join(sorted({row["event_id"] for row in board(now)}))
    key = served.key("sharp")
    every, same = (
        Client(served.port, "/stream/opportunities", key, event=chosen, terms=terms) for terms in (None, "same")
    )
    for client in (every, same):
        assert client.ready.wait(20), client.faults
    assert ("terms-unlike", True) in kept(every.finds)
    assert kept(same.finds) == {find for find in kept(every.finds) if not find[1]}
    assert same.samples["connected"]["filters"]["terms"] == "same"
    assert "terms" not in every.samples["connected"]["filters"]
    socket = SocketClient(served, "sharp", event_id=chosen, channels="arbitrage", terms="same")
    assert socket.ready.wait(20)
    assert {row["event_id"] for row in socket.finds["arb"].values()} == {"terms-alike"}
    assert socket.samples["subscribed"]["terms"] == "same"
    socket.subscribe("arbitrage", eventIds=chosen.split(","))
    assert {row["event_id"] for row in socket.finds["arb"].values()} == {"terms-alike", "terms-unlike"}
    assert "terms" not in socket.samples["subscribed"]
    socket.subscribe("arbitrage", eventIds=chosen.split(","), terms="same")
    assert {row["event_id"] for row in socket.finds["arb"].values()} == {"terms-alike"}
    assert not [*every.faults, *same.faults, *socket.faults]
    for each in (every, same, socket):
        each.close()
