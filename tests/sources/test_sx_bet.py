"""The fetcher of SX Bet against a local exchange: leagues, pages of markets, and a book for each."""

from typing import Any

import pytest
from sources.test_fetching import served
from support.sx_bet import SxBet, market, soccer, winner

import oddsengine as oe
from oddsengine.sources.failure import FetchError

QUICK: dict[str, Any] = dict(timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0)


def fetched(exchange: SxBet, **settings: Any) -> Any:
    with served(exchange) as url:
        return oe.fetch("sx_bet", **{"sport": "nfl", "url": url} | QUICK | settings)


def test_fetch_reads_a_league_in_one_line() -> None:
    exchange = SxBet(winner(), soccer("0xs", ("Fulham", "Not Fulham"), 1))
    odds = fetched(exchange)
    assert sorted(odds.select("sportsbook", "selection", "odds_decimal").rows()) == [
        ("sx_bet", "Dallas Cowboys", pytest.approx(1 / 0.52)), ("sx_bet", "Seattle Seahawks", pytest.approx(2.0)),
    ]  # fmt: skip
    assert exchange.paths() == ["/sports", "/leagues/active", "/markets/active", "/orderbook-v3/snapshot"]
    (listed,) = [request for _, request in exchange.asked if request.path == "/markets/active"]
    assert listed.query["leagueId"] == ["243"]
    assert "x-api-key" not in listed.headers


@pytest.mark.parametrize("sport", ["soccer", "England Premier League", "english premier league"])
def test_a_part_is_a_sport_or_a_league(sport: str) -> None:
    exchange = SxBet(winner(), soccer("0xs", ("Fulham", "Not Fulham"), 1))
    if sport != "soccer":
        with pytest.raises(FetchError, match="is no league or sport that is known"):
            fetched(exchange, sport=sport)
        return
    assert fetched(exchange, sport=sport)["selection"].to_list() == ["Fulham"]


def test_its_own_label_of_a_league_is_a_part_too() -> None:
    exchange = SxBet(winner(), soccer("0xs", ("Fulham", "Not Fulham"), 1))
    assert fetched(exchange, sport="English Premier League")["selection"].to_list() == ["Fulham"]


def test_a_league_without_games_has_no_prices() -> None:
    assert fetched(SxBet(), sport="nba").height == 0


def test_all_pages_are_read() -> None:
    exchange = SxBet(*(winner(f"0x{n}", sportXeventId=f"L{n}") for n in range(5)))
    exchange.size = 2
    assert fetched(exchange)["event_id"].n_unique() == 5
    assert exchange.paths().count("/markets/active") == 3


def test_other_lines_are_asked_for_if_they_are_wanted() -> None:
    total = market("0xt", ("Over 50.5", "Under 50.5"), 28, line=50.5, mainLine=False)
    assert fetched(SxBet(winner(), total))["line"].drop_nulls().to_list() == []
    assert fetched(SxBet(winner(), total), main_lines=False)["line"].drop_nulls().to_list() == [50.5, 50.5]


def test_a_key_is_sent() -> None:
    exchange = SxBet()
    fetched(exchange, key="0123456789abcdef")
    assert {request.headers["x-api-key"] for _, request in exchange.asked} == {"0123456789abcdef"}


def test_a_market_that_has_just_closed_has_no_prices() -> None:
    exchange = SxBet(winner(), winner("0x2", sportXeventId="L2"))
    del exchange.books["0x2"]
    odds = fetched(exchange)
    assert odds["event_id"].unique().to_list() == ["L100"]
    assert odds.sources["sx_bet"].refused == {"a market without an order book": 1}


def test_depth_comes_with_the_table() -> None:
    odds = fetched(SxBet())
    assert odds["levels"].list.len().to_list() == [1, 1]
    assert oe.find_arbitrage(odds, stake=1.0).height == 0
