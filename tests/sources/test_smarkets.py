"""The fetcher of Smarkets against a local exchange: pages that never end, and ids twenty at a time."""

from typing import Any

import pytest
from sources.test_fetching import served
from support.smarkets import OVER_UNDER, Smarkets, event, market

import oddsengine as oe
from oddsengine.sources.failure import FetchError

QUICK: dict[str, Any] = dict(timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0)


def fetched(exchange: Smarkets, **settings: Any) -> Any:
    with served(exchange) as url:
        return oe.fetch("smarkets", **{"sport": "england_premier_league", "url": url} | QUICK | settings)


def test_fetch_reads_a_league_in_one_line() -> None:
    exchange = Smarkets()
    odds = fetched(exchange)
    assert sorted(odds.select("selection", "line").rows(), key=str) == [
        ("Chelsea", 0.5), ("Chelsea", None), ("Draw", None), ("Fulham", None), ("Over", 2.5), ("Under", 2.5),
    ]  # fmt: skip
    assert odds["sportsbook"].unique().to_list() == ["smarkets"]
    assert exchange.paths() == [
        "/events/", "/events/", "/events/e1/markets/", "/markets/m1,m2/contracts/", "/markets/m1,m2/quotes/",
    ]  # fmt: skip
    assert odds.sources["smarkets"].refused == {}


def test_other_leagues_of_the_sport_are_left_out() -> None:
    other = event("e2", full_slug="/sport/football/spain-la-liga/2026/x")
    exchange = Smarkets(event(), other)
    exchange.markets.append(market("m9", of="e2"))
    assert fetched(exchange)["event_id"].unique().to_list() == ["e1"]
    assert "/events/e1,e2/markets/" not in exchange.paths()
    assert len(fetched(exchange, sport="soccer").sources["smarkets"].refused) == 0
    assert "/events/e1,e2/markets/" in exchange.paths()


def test_pages_that_begin_anew_end_and_ids_come_in_batches() -> None:
    exchange = Smarkets(*(event(f"e{n}") for n in range(45)))
    exchange.size = 10
    exchange.markets = [market(f"m{n}", "OVER_UNDER", "2.5", of=f"e{n}") for n in range(45)]
    exchange.contracts = [
        one | {"id": f"{one['id']}-{n}", "market_id": f"m{n}"} for n in range(45) for one in OVER_UNDER
    ]
    exchange.quotes = {one["id"]: exchange.quotes["c4"] for one in exchange.contracts}
    odds = fetched(exchange)
    assert (odds.height, odds["event_id"].n_unique()) == (90, 45)
    assert exchange.paths().count("/events/") == 6  # the fifth has some of the first page, the sixth no other
    assert [path.count(",") + 1 for path in exchange.paths() if path.endswith("/quotes/")] == [20, 20, 5]


def test_a_sport_that_it_lacks_is_said() -> None:
    with pytest.raises(FetchError, match="'chess' is not a league or sport that it has; sports are baseball") as error:
        fetched(Smarkets(), sport="chess")
    assert error.value.kind == "refused"
