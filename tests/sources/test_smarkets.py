"""The fetcher of Smarkets against a local exchange: pages that never end, ids in batches, and the pace of quotes."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from support.local_servers import new_hub, running
from support.smarkets import OVER_UNDER, START, Smarkets, event, market

import oddsengine as oe
from oddsengine.sources.failure import FetchError
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.smarkets_client import source
from oddsengine.sources.source_settings import SmarketsSettings
from oddsengine.testing.local_servers import Answering, Request, http, served
from oddsengine.testing.simulated_clock import SimulatedLoop
from oddsengine_service.feeds.hub import Hub

QUICK: dict[str, Any] = dict(timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0, quotes_a_minute=100_000)


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
        "/events/", "/events/", "/events/e1/markets/", "/markets/m1,m2/quotes/", "/markets/m1,m2/contracts/",
    ]  # fmt: skip
    assert odds.sources["smarkets"].refused == {}


def test_a_contract_that_is_suspended_before_its_quotes_come_is_suspended() -> None:
    """Quotes wait for their turn, a minute at times; what contracts were before that is nothing to go by."""

    class Suspending(Smarkets):
        def reply(self, request: Request) -> Any:
            if request.path.endswith("/quotes/"):
                self.contracts = [one | {"state_or_outcome": "suspended"} for one in self.contracts]
            return super().reply(request)

    assert not fetched(Suspending())["is_active"].any()


def test_other_leagues_of_the_sport_are_left_out() -> None:
    other = event("e2", full_slug="/sport/football/spain-la-liga/2026/x")
    exchange = Smarkets(event(), other)
    exchange.markets.append(market("m9", of="e2"))
    assert fetched(exchange)["event_id"].unique().to_list() == ["e1"]
    assert "/events/e1,e2/markets/" not in exchange.paths()
    assert len(fetched(exchange, sport="soccer").sources["smarkets"].refused) == 0
    assert "/events/e1,e2/markets/" in exchange.paths()


def busy(games: int, markets: int = 1) -> Smarkets:
    """An exchange whose games start one after the other, each with so many totals; the last listed start first."""
    exchange = Smarkets(
        *(event(f"e{n}", f"Home {n} vs Away {n}", START + timedelta(minutes=games - n)) for n in range(games))
    )
    lines = [(n, at) for n in range(games) for at in range(markets)]
    exchange.markets = [
        market(f"m{n}x{at}", "OVER_UNDER", f"{at}.5", of=f"e{n}", name=f"Over/under {at}.5") for n, at in lines
    ]
    exchange.contracts = [
        one | {"id": f"{one['id']}-{n}x{at}", "market_id": f"m{n}x{at}", "name": one["contract_type"]["name"].title()}
        for n, at in lines
        for one in OVER_UNDER
    ]
    exchange.quotes = {one["id"]: exchange.quotes["c4"] for one in exchange.contracts}
    return exchange


def batches(exchange: Smarkets, what: str = "quotes") -> list[list[str]]:
    """The ids of each request."""
    return [path.split("/")[2].split(",") for path in exchange.paths() if path.endswith(f"/{what}/")]


def test_pages_that_begin_anew_end_and_ids_come_in_batches() -> None:
    exchange = busy(45)
    exchange.size = 10
    odds = fetched(exchange)
    assert (odds.height, odds["event_id"].n_unique()) == (90, 45)
    assert exchange.paths().count("/events/") == 6  # the fifth has some of the first page, the sixth no other
    exchange = busy(60)
    assert fetched(exchange).height == 120
    assert [len(ids) for ids in batches(exchange, "markets")] == [50, 10]
    assert [len(ids) for ids in batches(exchange)] == [50, 10]


def test_games_that_start_first_are_read_first_and_markets_of_a_game_together() -> None:
    exchange = busy(5, 20)
    fetched(exchange)
    assert [sorted({text.split("x")[0] for text in ids}) for ids in batches(exchange)] == [
        ["m3", "m4"], ["m1", "m2"], ["m0"],
    ]  # fmt: skip
    exchange = busy(2, 60)
    assert fetched(exchange).height == 240, "a game with more than fifty"
    assert [len(ids) for ids in batches(exchange)] == [50, 10, 50, 10]


def watched(exchange: Smarkets, minutes: float, **settings: Any) -> Hub:
    """A node after so many minutes on a simulated clock, with the settings that are usual; it refuses a faster pace."""
    assert exchange.check is not None
    exchange.check.pace = True

    async def check() -> Hub:
        hub = new_hub()
        async with http(exchange) as url:
            feed = SmarketsSettings(name="s", kind="smarkets", sports=("soccer",), url=url, **settings)
            async with running(hub, source(feed, {}, Secrets())):
                await asyncio.sleep(60.0 * minutes)
                return hub

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(check())


def test_quotes_have_a_pace_of_their_own_and_come_in_parts() -> None:
    """Of 22 requests, twenty are made in the first minute, whose games have prices while the others wait."""
    exchange = busy(22, 26)
    hub = watched(exchange, 0.8)
    assert len(batches(exchange)) == 20
    assert hub.engine.table()["event_id"].n_unique() == 20
    exchange = busy(22, 26)
    assert watched(exchange, 1.8).engine.table().height == 22 * 52
    assert len(batches(exchange)) > 22


def with_headers(**headers: str) -> Smarkets:
    """An exchange whose answers with quotes have headers."""
    exchange = busy(22, 26)

    async def limited(request: Request, answering: Answering) -> bool:
        if not request.path.endswith("/quotes/"):
            return False
        named: Mapping[str, str] = {name.replace("_", "-"): text for name, text in headers.items()}
        await answering.answer(exchange.reply(request), headers=named)
        return True

    exchange.special = limited
    return exchange


@pytest.mark.parametrize(
    ("headers", "most"),
    [
        ({"x_ratelimit_limit": "5", "x_ratelimit_remaining": "4"}, 5),
        ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "20"}, 3),
        ({"x_ratelimit_limit": "many", "x_ratelimit_remaining": "", "x_ratelimit_reset": "nan"}, 20),
        ({"x_ratelimit_limit": "1000"}, 20),
    ],
)
def test_headers_about_the_pace_are_obeyed(headers: dict[str, str], most: int) -> None:
    exchange = with_headers(**headers)
    watched(exchange, 0.95)
    assert len(batches(exchange)) == most


def test_too_many_prices_for_the_pace_are_said() -> None:
    (status,) = watched(busy(11, 30), 0.1, quotes_a_minute=1).statuses()
    assert status.reason == "all of its prices take 660 s to read, but prices older than 600 s are rejected as stale"
    (status,) = watched(busy(10, 30), 0.1, quotes_a_minute=1).statuses()
    assert status.status == "ok"


def test_fetch_says_how_long_all_of_it_takes() -> None:
    why = (
        "smarkets: not everything came within 0.5 s; its limits let all of it take 66 s, which is the least for timeout"
    )
    with served(busy(22, 26)) as url, pytest.raises(FetchError, match=why) as error:
        oe.fetch("smarkets", sport="soccer", url=url, timeout=0.5, rate=100_000.0)
    assert error.value.kind == "timeout"


def test_a_sport_that_it_lacks_is_said() -> None:
    with pytest.raises(FetchError, match="'chess' is not a league or sport that it has; sports are baseball") as error:
        fetched(Smarkets(), sport="chess")
    assert error.value.kind == "refused"
