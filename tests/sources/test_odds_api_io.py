"""The fetcher of Odds-API.io against a local aggregator."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.local_servers import new_hub, running
from support.odds_api_io import MAIN, Aggregator, event

import oddsengine as oe
from oddsengine import catalog
from oddsengine.feeds.odds_api_io import LEAGUES, SPORTS
from oddsengine.sources.failure import FetchError
from oddsengine.sources.odds_api_io_client import OddsApiIoSettings, source
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import SettingsError
from oddsengine.testing.local_servers import http, served
from oddsengine.testing.simulated_clock import SimulatedLoop
from oddsengine_service.feeds.status import SourceStatus

KEY = "0123456789abcdef"
QUICK: dict[str, Any] = dict(
    timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0, requests_an_hour=1_000_000
)  # fmt: skip


def fetched(aggregator: Aggregator, **settings: Any) -> Any:
    given = {"sport": "nba", "key": KEY, "books": ["Bet365", "BetMGM"]}
    with served(aggregator) as url:
        return oe.fetch("odds_api_io", **given | {"url": url} | QUICK | settings)


def test_fetch_reads_a_league_in_one_line() -> None:
    aggregator = Aggregator(event({"Bet365": MAIN, "BetMGM": MAIN[:1], "Other": MAIN}))
    odds = fetched(aggregator)
    assert odds["sportsbook"].value_counts().sort("sportsbook").rows() == [("bet365", 8), ("betmgm", 2)]
    events, prices = (request for _, request in aggregator.asked)
    assert (events.query["sport"], events.query["league"]) == (["basketball"], ["usa-nba"])
    assert (prices.query["eventIds"], prices.query["bookmakers"]) == (["1"], ["Bet365,BetMGM"])
    assert events.query["status"] == ["pending,live"]
    begin, end = (datetime.fromisoformat(events.query[name][0]) for name in ("from", "to"))
    assert end - begin == timedelta(days=2, hours=12), "two days, and games that began"
    assert abs(begin + timedelta(hours=12) - datetime.now(UTC)) < timedelta(minutes=1)


def test_events_come_ten_at_a_time() -> None:
    aggregator = Aggregator(*(event(ident=n) for n in range(25)))
    assert fetched(aggregator)["event_id"].n_unique() == 25
    assert [len(one.query["eventIds"][0].split(",")) for _, one in aggregator.asked[1:]] == [10, 10, 5]


def hours(aggregator: Aggregator, count: float, *sports: str, **settings: Any) -> SourceStatus:
    """The status of a feed after so many hours on a simulated clock; the aggregator refuses more than the free plan."""
    assert aggregator.check is not None
    aggregator.check.pace = True

    async def run() -> SourceStatus:
        hub = new_hub()
        async with http(aggregator) as url:
            feed = OddsApiIoSettings(
                name="o", kind="odds_api_io", sports=sports, url=url, key_env="KEY", books=("Bet365",), **settings
            )
            async with running(hub, source(feed, {"key_env": KEY}, Secrets([KEY]))):
                await asyncio.sleep(3600.0 * count)
                (status,) = hub.statuses()
                return status

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(run())


def test_the_free_plan_is_enough_for_a_league_and_is_kept_by_several() -> None:
    """More than an hour of requests, since that is what the plan limits."""
    winner = {"Bet365": MAIN[:1]}
    league = Aggregator(*(event(winner, ident=n) for n in range(15)))
    status = hours(league, 0.49, "basketball/usa-nba")
    assert status.status == "ok"
    assert len(league.asked) == 18, "three requests every five minutes"
    several = Aggregator(*(event(winner, ident=n) for n in range(95)))
    status = hours(several, 1.2, "basketball/usa-nba", "basketball")
    assert (status.status, status.reason) == (
        "degraded", "all of its prices take 792 s to read, but prices older than 600 s are rejected as stale",
    )  # fmt: skip
    assert len(several.asked) == 6 * 22, "a turn of 22 requests every 792 s, the first at once"


def test_its_football_is_soccer() -> None:
    soccer = event(
        sport={"name": "Football", "slug": "football"},
        league={"name": "England - Premier League", "slug": "england-premier-league"},
    )
    odds = fetched(Aggregator(event(ident=2), soccer), sport="soccer")
    assert odds["league"].unique().to_list() == ["england_premier_league"]
    assert set(LEAGUES) <= set(catalog.leagues()) | set(catalog.sports())
    assert set(SPORTS) <= set(catalog.sports())


def test_a_key_and_books_are_needed() -> None:
    with pytest.raises(SettingsError, match="ODDS_API_IO_KEY"):
        oe.fetch("odds_api_io", sport="nba", books=["Bet365"])
    with pytest.raises(SettingsError, match="books must be a list of at least one of its bookmakers"):
        oe.fetch("odds_api_io", sport="nba", key=KEY)
    with pytest.raises(FetchError, match="check the key"):
        fetched(Aggregator(), key="wrong-key-0123456")
