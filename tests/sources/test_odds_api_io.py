"""The fetcher of Odds-API.io against a local aggregator."""

from typing import Any

import pytest
from sources.test_fetching import served
from support.odds_api_io import MAIN, Aggregator, event

import oddsengine as oe
from oddsengine import catalog
from oddsengine.feeds.odds_api_io import LEAGUES, SPORTS
from oddsengine.sources.failure import FetchError
from oddsengine.sources.settings import SettingsError

KEY = "0123456789abcdef"
QUICK: dict[str, Any] = dict(timeout=5.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0)


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


def test_events_come_ten_at_a_time() -> None:
    aggregator = Aggregator(*(event(ident=n) for n in range(25)))
    assert fetched(aggregator)["event_id"].n_unique() == 25
    assert [len(one.query["eventIds"][0].split(",")) for _, one in aggregator.asked[1:]] == [10, 10, 5]


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
