"""The fetcher of Novig against a local exchange: pages, a request for each book, first starts first, and the pace."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from support.local_servers import new_hub, prices, running, until
from support.novig import START, Novig, event, market, total, winner

import oddsengine as oe
from oddsengine.sources.failure import FetchError
from oddsengine.sources.novig_client import source
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import NovigSettings, SettingsError
from oddsengine.testing.local_servers import http, served
from oddsengine.testing.simulated_clock import SimulatedLoop

QUICK: dict[str, Any] = dict(timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0)
CATALOG = "/v3/public/catalog"


def fetched(exchange: Novig, **settings: Any) -> Any:
    with served(exchange) as url:
        return oe.fetch("novig", **{"sport": "nfl", "url": url} | QUICK | settings)


def test_fetch_reads_a_league_in_one_line() -> None:
    exchange = Novig()
    odds = fetched(exchange)
    assert odds.select("sportsbook", "selection", "line", "odds_decimal").rows() == [
        ("novig", "New York Giants", None, 2.0), ("novig", "Dallas Cowboys", None, pytest.approx(1 / 0.52)),
        ("novig", "Dallas Cowboys", -3.5, 2.0), ("novig", "New York Giants", 3.5, pytest.approx(1 / 0.52)),
        ("novig", "Over", 45.5, 2.0), ("novig", "Under", 45.5, pytest.approx(1 / 0.52)),
    ]  # fmt: skip
    assert exchange.paths() == [
        f"{CATALOG}/events", *[f"{CATALOG}/markets"] * 3, *(f"{CATALOG}/markets/{ident}/book" for ident in "wst"),
    ]  # fmt: skip
    assert odds.sources["novig"].refused == {}


def test_a_market_that_has_just_closed_has_no_prices() -> None:
    exchange = Novig()
    del exchange.books["s"]
    odds = fetched(exchange)
    assert odds["market_type"].unique().sort().to_list() == ["moneyline", "total_points"]
    assert odds.sources["novig"].refused == {"a market without an order book": 1}


def test_all_pages_are_read_and_games_that_start_first_come_first() -> None:
    exchange = Novig(*(winner(f"w{at}", of=f"e{at}") for at in range(5)))
    exchange.events = [event(f"e{at}", start=START + timedelta(minutes=5 - at)) for at in range(5)]
    exchange.size = 2
    assert fetched(exchange, markets=["MONEY"])["event_id"].n_unique() == 5
    assert exchange.paths().count(f"{CATALOG}/events") == 3
    assert exchange.paths()[6:] == [f"{CATALOG}/markets/w{at}/book" for at in (4, 3, 2, 1, 0)]


def test_only_some_lines_of_each_type_are_read() -> None:
    exchange = Novig(*(total(f"t{at}", 40.5 + at) for at in range(9)))
    assert fetched(exchange)["line"].unique().sort().to_list() == [43.5, 44.5, 45.5]
    assert fetched(exchange, lines=1)["line"].unique().to_list() == [44.5]


@pytest.mark.parametrize("sport", ["quidditch", "NFL", "soccer"])
def test_a_part_is_a_league_or_a_sport(sport: str) -> None:
    if sport == "soccer":
        assert fetched(Novig(), sport=sport).height == 0
        return
    with pytest.raises(FetchError, match=f"'{sport}' is not a league or sport that it has; leagues are boxing, cfl, "):
        fetched(Novig(), sport=sport)


def test_settings_that_are_not_valid() -> None:
    with pytest.raises(SettingsError, match=r"markets must be a list of MONEY, .*, got \['PROPS'\]"):
        oe.fetch("novig", sport="nfl", markets=["PROPS"])
    with pytest.raises(SettingsError, match="lines must be 1 to 1000 lines of each type of a game, got 0"):
        oe.fetch("novig", sport="nfl", lines=0)


def test_the_pace_is_kept_and_prices_come_game_by_game() -> None:
    """Thirty books at two a second: after ten seconds about half of the games are there."""
    exchange = Novig(*(market(f"w{at}", "MONEY", "NYG", "DAL", of=f"e{at}") for at in range(30)))
    exchange.events = [event(f"e{at}", start=START + timedelta(days=at)) for at in range(30)]
    assert exchange.check is not None
    exchange.check.pace = True

    async def check() -> tuple[int, int]:
        hub = new_hub()
        async with http(exchange) as url:
            feed = NovigSettings(name="n", kind="novig", sports=("nfl",), url=url, within=1e7)
            async with running(hub, source(feed, {}, Secrets())):
                await asyncio.sleep(10.0)
                early = hub.engine.table()["event_id"].n_unique()
                await asyncio.sleep(15.0)
                return early, hub.engine.table()["event_id"].n_unique()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        early, late = runner.run(check())
    assert 5 < early < 25
    assert late == 30


def test_prices_of_a_game_go_when_its_last_market_closes() -> None:
    """The game is still listed, and none of its markets is open."""
    exchange = Novig(winner())

    async def check() -> None:
        hub = new_hub()
        async with http(exchange) as url:
            feed = NovigSettings(name="n", kind="novig", sports=("nfl",), url=url, interval=0.05, **QUICK)
            async with running(hub, source(feed, {}, Secrets())):
                await until(lambda: len(prices(hub)) == 2, "prices")
                exchange.markets = [winner(status="CLOSED")]
                await until(lambda: prices(hub) == {}, "no prices")

    asyncio.run(check())
