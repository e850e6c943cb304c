"""The fetcher of SX Bet against a local exchange: leagues, pages of markets, and a book for each."""

from typing import Any

import pytest
from support.local_servers import game
from support.sx_bet import START, SxBet, book, market, soccer, winner

import oddsengine as oe
from oddsengine.sources.failure import FetchError
from oddsengine.testing.local_servers import Answering, Request, served

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
    assert "x-sx-api-key" not in listed.headers


@pytest.mark.parametrize("sport", ["soccer", "England Premier League", "english premier league"])
def test_a_part_is_a_sport_or_a_league(sport: str) -> None:
    exchange = SxBet(winner(), soccer("0xs", ("Fulham", "Not Fulham"), 1))
    if sport != "soccer":
        with pytest.raises(FetchError, match="is not a known league or sport"):
            fetched(exchange, sport=sport)
        return
    assert fetched(exchange, sport=sport)["selection"].to_list() == ["Fulham", "Chelsea"]


def test_its_own_label_of_a_league_is_a_part_too() -> None:
    exchange = SxBet(winner(), soccer("0xs", ("Fulham", "Not Fulham"), 1))
    assert fetched(exchange, sport="English Premier League")["selection"].to_list() == ["Fulham", "Chelsea"]


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
    assert {request.headers["x-sx-api-key"] for _, request in exchange.asked} == {"0123456789abcdef"}


def test_a_market_that_has_just_closed_has_no_prices() -> None:
    exchange = SxBet(winner(), winner("0x2", sportXeventId="L2"))
    del exchange.books["0x2"]
    odds = fetched(exchange)
    assert odds["event_id"].unique().to_list() == ["L100"]
    assert odds.sources["sx_bet"].refused == {"a market without an order book": 1}


def test_with_a_sportsbook_its_levels_are_the_size_of_an_arbitrage() -> None:
    """Fetched together the games are matched; only one source has levels."""
    exchange = SxBet()
    exchange.books["0xw"] = book([], [(0.48, 3.0), (0.46, 30.0)])  # Dallas at 0.52 for 3.25, then at 0.54

    async def both(request: Request, answering: Answering) -> None:
        if not request.path.startswith("/v4"):
            await exchange(request, answering)
        elif request.path.endswith("/events"):
            await answering.answer([{"id": "g1", "commence_time": START.isoformat()}])
        else:
            listed = game("g1", "Seattle Seahawks", "Dallas Cowboys", (2.3, 1.5), ("draftkings",))
            await answering.answer([listed | {"sport_key": "americanfootball_nfl", "commence_time": START.isoformat()}])

    with served(both) as url:
        odds = oe.fetch(
            {
                "sx_bet": {"sport": "nfl", "url": url} | QUICK,
                "american": {"kind": "the_odds_api", "sport": "nfl", "key": "0123456789", "url": url, "timeout": 5.0},
            }
        )
    assert odds["event_id"].n_unique() == 1
    assert sorted(odds["levels"].list.len().to_list(), key=str) == [2, None, None]
    found = oe.find_arbitrage(odds, stake=20.0)
    assert found.height == 1
    dallas = next(leg for leg in found["legs"][0] if leg["sportsbook"] == "sx_bet")
    whole = (3.25 / 0.52 + 16.75 / 0.54) / 20.0  # of the winnings, SX Bet keeps 1 %
    assert dallas["net_odds"] == pytest.approx(1.0 + 0.99 * (whole - 1.0), abs=1e-3)
