"""What every source must do, by the checks of `oddsengine.testing`, and what this one does. Install it first."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cornerbook.reader import read

import oddsengine as oe
from oddsengine.feeds.tracking import ListedIds
from oddsengine.feeds.turns import Received
from oddsengine.sources.failure import FetchError
from oddsengine.testing import SOURCE_CHECKS, Request, SourceCase, SourceServer, iso, now, served

NOW = datetime(2026, 12, 1, 18, tzinfo=UTC)


def market(kind: str, line: float | None, *selections: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "type": kind, "line": line,
        "selections": [{"id": ident, "side": side, "odds": odds} for ident, side, odds in selections],
    }  # fmt: skip


WINNER = market("winner", None, ("w1", "home", "1.80"), ("w2", "away", "2.10"))
HANDICAP = market("handicap", -2.5, ("h1", "home", "1.91"), ("h2", "away", "1.95"))
TOTAL = market("total", 221.5, ("t1", "over", "1.90"), ("t2", "under", "1.92"))


def games(*markets: dict[str, Any]) -> dict[str, Any]:
    start = iso(now() + timedelta(hours=3))
    game = {"id": "g1", "home": "Boston Celtics", "away": "Los Angeles Lakers", "starts_at": start, "state": "upcoming"}
    return {"games": [game | {"markets": list(markets)}]}


class Cornerbook(SourceServer):
    """Cornerbook on this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.markets = [WINNER, TOTAL]

    def reply(self, request: Request) -> Any:
        if request.headers.get("x-api-key") != "my-secret-key":
            return {"error": "no such key"}, 401
        return games(*self.markets) if request.path == "/v1/games" else ({}, 404)

    def change(self) -> None:
        self.markets = [market("winner", None, ("w1", "home", "1.85"), ("w2", "away", "2.05")), TOTAL]

    def remove(self) -> None:
        self.markets = [WINNER]


CASE = SourceCase(
    "cornerbook", Cornerbook, Cornerbook.change, Cornerbook.remove, {"sport": "nba", "key": "my-secret-key"}
)  # fmt: skip


@pytest.mark.parametrize("check", SOURCE_CHECKS)
def test_it_is_a_source(check: Callable[[SourceCase], None]) -> None:
    check(CASE)


def test_prices_are_read_with_their_lines() -> None:
    payload = read("NBA", Received(json.dumps(games(WINNER, HANDICAP, TOTAL)).encode(), NOW), ListedIds())
    rows = [(row["market_type"], row["selection"], row["line"], row["odds_decimal"]) for row in payload.quotes]
    assert rows == [
        ("moneyline", "Boston Celtics", None, 1.8), ("moneyline", "Los Angeles Lakers", None, 2.1),
        ("point_spread", "Boston Celtics", -2.5, 1.91), ("point_spread", "Los Angeles Lakers", 2.5, 1.95),
        ("total_points", "Over", 221.5, 1.9), ("total_points", "Under", 221.5, 1.92),
    ]  # fmt: skip


def test_a_market_that_the_catalog_does_not_have_is_counted() -> None:
    body = json.dumps(games(market("tip_off", None, ("x", "home", "1.9")))).encode()
    assert read("NBA", Received(body, NOW), ListedIds()).unmapped == {("cornerbook", "tip_off"): 1}


def test_it_is_fetched_by_its_name() -> None:
    with served(Cornerbook()) as url:
        odds = oe.fetch("cornerbook", sport="nba", key="my-secret-key", url=url)
        assert odds["sportsbook"].to_list() == ["cornerbook"] * 4
        with pytest.raises(FetchError, match="check the key"):
            oe.fetch("cornerbook", sport="nba", key="other-key", url=url)
