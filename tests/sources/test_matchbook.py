"""The fetcher of Matchbook against a local exchange."""

from typing import Any

import pytest
from support.matchbook import TOTAL, Matchbook, event, market

import oddsengine as oe
from oddsengine.sources.failure import FetchError
from oddsengine.testing.local_servers import served

QUICK: dict[str, Any] = dict(timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0)


def fetched(exchange: Matchbook, **settings: Any) -> Any:
    with served(exchange) as url:
        return oe.fetch("matchbook", **{"sport": "england_premier_league", "url": url} | QUICK | settings)


def test_fetch_reads_a_league_in_one_line() -> None:
    exchange = Matchbook(event(), event(ident=2, competition="Spanish La Liga"))
    odds = fetched(exchange)
    assert sorted(odds.select("selection", "line").rows(), key=str) == [
        ("Chelsea", 0.5), ("Chelsea", None), ("Draw", None), ("Fulham", None), ("No", None), ("Over", 2.5),
        ("Under", 2.5),
    ]  # fmt: skip
    assert (odds["sportsbook"].unique().to_list(), odds["event_id"].unique().to_list()) == (["matchbook"], ["100"])
    (asked,) = [request.query for _, request in exchange.asked if request.path == "/events"]
    assert (asked["sport-ids"], asked["states"], asked["price-depth"]) == (["15"], ["open,suspended"], ["5"])
    assert "market-types" not in asked
    assert exchange.currencies == ["GBP"]
    other = Matchbook()
    fetched(other, currency="EUR")
    assert other.currencies == ["EUR"]


def test_all_pages_are_read() -> None:
    exchange = Matchbook(*(event(market("total", *TOTAL["runners"], name="Total", ident=n), ident=n) for n in range(5)))
    exchange.size = 2
    assert fetched(exchange, markets=["one_x_two", "total"])["event_id"].n_unique() == 5
    asked = [request.query for _, request in exchange.asked if request.path == "/events"]
    assert [(one["offset"], one["market-types"]) for one in asked] == [
        (["0"], ["one_x_two,total"]), (["2"], ["one_x_two,total"]), (["4"], ["one_x_two,total"]),
    ]  # fmt: skip


def test_a_sport_that_it_lacks_is_said() -> None:
    with pytest.raises(FetchError, match="'mlb' is not a league or sport that it has; sports are basketball, football"):
        fetched(Matchbook(), sport="mlb")
