"""Lists for a stake, and what looks their rows up again: each at the prices that the stake gets."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.handler_calls import answer, found, node
from support.socket_running import SocketClient
from support.stream_running import Client, Served, moment, wait_for, without_ages

import oddsengine_service.routes.opportunities as module
from oddsengine.live.engine import Engine
from oddsengine.maths.depth import fill
from oddsengine_service.errors import Problem
from oddsengine_service.mcp import tools
from oddsengine_service.node import Node

NOW = datetime(2026, 2, 8, 12, tzinfo=UTC)
ARB, ONE, EXPLAIN = (
    found(module.endpoints, f"/opportunities/{path}")
    for path in ("arbitrage", "arbitrage/{id}", "explain/{opportunityId}")
)
OVER, UNDER = [(2.2, 50.0), (2.0, 500.0)], [(2.02, 500.0), (2.0, 500.0)]
STAKE = 600.0


def quotes(now: datetime, under: list[tuple[float, float]] = UNDER) -> list[dict[str, Any]]:
    """A total: for more than 50, BetMGM's over is better than FanDuel's."""
    best = under[0][0]
    prices = [("fanduel", "Over", 2.2, OVER), ("betmgm", "Over", 2.1, None), ("draftkings", "Under", best, under)]
    return [
        {
            "event_id": "e", "sport": "basketball", "home_team": "A", "away_team": "B", "market_type": "total_points",
            "line": 220.5, "is_live": False, "event_start_time": NOW + timedelta(hours=3), "last_seen_at": now,
            "sportsbook": book, "selection": side, "odds_decimal": odds,
            "levels": levels and [{"odds_decimal": d, "stake": s} for d, s in levels],
        }
        for book, side, odds, levels in prices
    ]  # fmt: skip


@pytest.fixture
def here() -> Node:
    engine = Engine()
    engine.step(quotes(NOW), NOW)
    return node(engine)


def listed(here: Node, **query: Any) -> dict[str, Any]:
    (row,) = answer(ARB, here, query)["data"]
    return dict(row)


def look_up(here: Node, ident: str, **query: Any) -> Any:
    return answer(ONE, here, query, path={"id": ident})["data"]


def reason(here: Node, ident: str, **query: Any) -> tuple[str, str]:
    with pytest.raises(Problem) as problem:
        look_up(here, ident, **query)
    return problem.value.extra["reason"], problem.value.message


def test_a_row_of_a_stake_is_looked_up_and_explained_at_that_stake(here: Node) -> None:
    best, row = listed(here), listed(here, stake=STAKE)
    assert [leg["sportsbook"] for leg in row["legs"]] == ["betmgm", "draftkings"]
    implied = 1.0 / 2.1 + 1.0 / fill(UNDER, STAKE).odds
    assert row["profit_percent"] == pytest.approx(100.0 * (1.0 / implied - 1.0), abs=1e-4)
    assert look_up(here, row["id"], stake=STAKE) == row
    assert look_up(here, best["id"]) == best
    assert len(here.boards.views) == 2  # each in the view of its list
    for query, one in (({"stake": STAKE}, row), ({}, best)):
        said = answer(EXPLAIN, here, {"event_id": "e", **query}, path={"opportunityId": one["id"]})["data"]
        assert said["figures"]["profit_percent"] == pytest.approx(one["profit_percent"], abs=1e-4)
    with pytest.raises(Problem, match="no opportunity"):
        answer(EXPLAIN, here, {"event_id": "e"}, path={"opportunityId": row["id"]})


def test_why_a_row_ended_does_not_depend_on_who_listed_it(here: Node) -> None:
    """Rows of all views are remembered together: they tell books' own prices, which no stake changes."""
    row = listed(here, stake=STAKE)
    assert reason(here, row["id"])[0] == "below_threshold"  # FanDuel's over is better at the best level
    later = NOW + timedelta(seconds=5)
    here.engine.step(quotes(later, [(1.8, 500.0)]), later)
    assert answer(ARB, here, {"stake": STAKE})["data"] == []
    told = "price_moved", "Under at DraftKings Sportsbook moved from +102 to -125"
    for query in ({}, {"stake": STAKE}, {"stake": 20}):
        why, text = reason(here, row["id"], **query)
        assert (why, text.rpartition(": ")[2]) == told


def test_of_what_ended_with_its_levels_the_best_price_stands(here: Node) -> None:
    row = listed(here, stake=STAKE)
    later = NOW + timedelta(seconds=5)
    here.engine.step(quotes(later, [(2.02, 5.0), (1.5, 500.0)]), later)
    why, text = reason(here, row["id"], stake=STAKE)
    assert (why, "further levels" in text) == ("below_threshold", True)
    assert "further levels" not in reason(here, row["id"])[1]


def test_streams_and_sockets_are_priced_for_the_stake(served: Served) -> None:
    now = moment()
    start = now + timedelta(hours=3)

    def board(now: datetime, under: list[tuple[float, float]] = UNDER) -> list[dict[str, Any]]:
        return [row | {"event_id": "staked", "event_start_time": start} for row in quotes(now, under)]

    served.step(board(now), now)
    key = served.key("sharp")
    asked: dict[str, Any] = {"event": "staked", "min_profit": -5}
    best, staked = (
        Client(served.port, "/stream/opportunities", key, stake=stake, **asked) for stake in (None, STAKE)
    )  # fmt: skip
    for client in (best, staked):
        assert client.ready.wait(20), client.faults

    def as_listed(client: Client, **query: Any) -> bool:
        listed = served.rows("/opportunities/arbitrage", "sharp", {**asked, **query})
        return bool(without_ages(list(client.finds["arb"].values())) == without_ages(list(listed.values())) != [])

    assert [leg["sportsbook"] for row in best.finds["arb"].values() for leg in row["legs"]] == ["fanduel", "draftkings"]
    assert [leg["sportsbook"] for row in staked.finds["arb"].values() for leg in row["legs"]] == [
        "betmgm",
        "draftkings",
    ]
    assert as_listed(best)
    assert as_listed(staked, stake=STAKE)
    assert staked.samples["connected"]["filters"]["stake"] == STAKE
    later = now + timedelta(seconds=5)
    served.step(board(later, [(2.02, 300.0), (1.98, 500.0)]), later)  # only further levels moved
    wait_for(lambda: as_listed(staked, stake=STAKE))
    socket = SocketClient(served, "sharp", event_id="staked", channels="arbitrage", min_profit=-5, stake=STAKE)
    assert socket.ready.wait(20)
    assert without_ages(list(socket.finds["arb"].values())) == without_ages(list(staked.finds["arb"].values()))
    assert socket.samples["subscribed"]["stake"] == STAKE
    assert not [*best.faults, *staked.faults, *socket.faults]


@pytest.mark.parametrize("tool", ["find_ev_opportunities", "find_arbitrage", "find_middles", "find_low_hold"])
def test_tools_take_a_stake_and_a_location(tool: str) -> None:
    assert {"stake", "location"} <= set(tools.BY_NAME[tool].args)
    assert {"stake", "location"} <= set(tools.BY_NAME["explain_opportunity"].args)
