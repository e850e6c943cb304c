"""The fetcher of SportsGameOdds against a local aggregator."""

import asyncio
from typing import Any

import pytest
from sources.test_polling import answering_with
from support.local_servers import new_hub, running
from support.sportsgameodds import Aggregator, event, page

import oddsengine as oe
from oddsengine import catalog
from oddsengine.feeds.sportsgameodds import LEAGUES
from oddsengine.sources.failure import FetchError
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import SettingsError, SportsGameOddsSettings
from oddsengine.sources.sportsgameodds_client import source
from oddsengine.testing.local_servers import Answering, Request, http, served
from oddsengine.testing.simulated_clock import SimulatedLoop

KEY = "0123456789abcdef"
QUICK: dict[str, Any] = dict(
    timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0, requests_a_minute=1_000_000
)  # fmt: skip


def fetched(aggregator: Aggregator, **settings: Any) -> Any:
    with served(aggregator) as url:
        return oe.fetch("sportsgameodds", **{"sport": "nfl", "url": url, "key": KEY} | QUICK | settings)


def test_fetch_reads_a_league_in_one_line() -> None:
    aggregator = Aggregator()
    odds = fetched(aggregator)
    assert odds.height == 10
    assert sorted(odds["sportsbook"].unique()) == ["draftkings", "fanduel"]
    ((_, asked),) = aggregator.asked
    assert asked.headers["x-api-key"] == KEY
    assert KEY not in str(asked.query)
    assert (asked.query["leagueID"], asked.query["oddsAvailable"]) == (["NFL"], ["true"])
    assert not {"bookmakerID", "includeAltLines"} & asked.query.keys()


def test_books_and_alternate_lines_are_asked_for() -> None:
    aggregator = Aggregator()
    fetched(aggregator, books=["draftkings", "fanduel"], alternates=True)
    query = aggregator.asked[0][1].query
    assert (query["bookmakerID"], query["includeAltLines"]) == (["draftkings,fanduel"], ["true"])


def test_all_pages_are_read() -> None:
    aggregator = Aggregator(*(event(ident=f"ev{n}") for n in range(5)))
    aggregator.size = 2
    assert fetched(aggregator)["event_id"].n_unique() == 5
    assert len(aggregator.asked) == 3


def test_a_list_may_end_with_a_page_that_is_not_there() -> None:
    """The cursor of the last page is answered with 404, and so is a league without events."""
    aggregator = Aggregator()

    async def last(request: Request, answering: Answering) -> bool:
        if "cursor" in request.query:
            await answering.answer({"success": False, "error": "No events found"}, 404)
        else:
            await answering.answer(page(*aggregator.events, cursor="more"))
        return True

    aggregator.special = last
    assert fetched(aggregator).height == 10
    aggregator.special = None
    aggregator.spoil("/events/", answering_with({"success": False, "error": "No events found"}, 404))
    assert fetched(aggregator).height == 0


def test_the_requests_of_the_free_plan_are_enough() -> None:
    """Six pages for each of three leagues: ten requests in the first minute."""
    aggregator = Aggregator(*(event(ident=f"{league}{n}", leagueID=league) for league in "ABC" for n in range(6)))
    aggregator.size = 1
    assert aggregator.check is not None
    aggregator.check.pace = True

    async def run() -> None:
        hub = new_hub()
        async with http(aggregator) as url:
            feed = SportsGameOddsSettings(
                name="s", kind="sportsgameodds", sports=("A", "B", "C"), url=url, key_env="KEY"
            )
            async with running(hub, source(feed, {"key_env": KEY}, Secrets([KEY]))):
                await asyncio.sleep(55.0)
                assert len(aggregator.asked) == 10
                await asyncio.sleep(600.0)
                assert hub.statuses()[0].status == "ok"

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(run())


def test_a_key_is_needed_and_never_said() -> None:
    with pytest.raises(SettingsError, match="SPORTS_GAME_ODDS_API_KEY"):
        oe.fetch("sportsgameodds", sport="nfl")
    aggregator = Aggregator()
    aggregator.spoil("/events/", answering_with({"error": f"{KEY} is not a key"}, 401))
    with pytest.raises(FetchError, match="check the key") as error:
        fetched(aggregator)
    assert KEY not in str(error.value)


def test_our_ids_of_leagues() -> None:
    assert set(LEAGUES) <= set(catalog.leagues())
