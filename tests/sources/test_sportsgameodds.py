"""The fetcher of SportsGameOdds against a local aggregator."""

from typing import Any

import pytest
from sources.test_fetching import served
from sources.test_polling import answering_with
from support.sportsgameodds import Aggregator, event

import oddsengine as oe
from oddsengine import catalog
from oddsengine.feeds.sportsgameodds import LEAGUES
from oddsengine.sources.failure import FetchError
from oddsengine.sources.settings import SettingsError

KEY = "0123456789abcdef"
QUICK: dict[str, Any] = dict(timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0)


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


def test_a_key_is_needed_and_never_said() -> None:
    with pytest.raises(SettingsError, match="SPORTS_GAME_ODDS_API_KEY"):
        oe.fetch("sportsgameodds", sport="nfl")
    aggregator = Aggregator()
    aggregator.spoil("/events", answering_with({"error": f"{KEY} is not a key"}, 401))
    with pytest.raises(FetchError, match="check the key") as error:
        fetched(aggregator)
    assert KEY not in str(error.value)


def test_our_ids_of_leagues() -> None:
    assert set(LEAGUES) <= set(catalog.leagues())
