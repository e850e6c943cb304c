"""Every name of The Odds API that we write is read as what it was written for."""

import pytest

from oddsengine import catalog
from oddsengine.feeds.feed_names import market, sport_and_league
from oddsengine.feeds.the_odds_api_names import (
    REGIONS,
    SPORT_KEYS,
    book_key,
    market_key,
    regions_of,
    sport_key,
)


def test_every_league_and_sport_has_a_key_of_its_own() -> None:
    places = [(each.sport, each.id) for each in catalog.leagues().values()] + [(each, "") for each in catalog.sports()]
    keys = {place: sport_key(*place) for place in places}
    assert {place: sport_and_league(key) for place, key in keys.items()} == {place: place for place in places}
    assert len(set(keys.values())) == len(keys)
    assert SPORT_KEYS.keys() <= catalog.leagues().keys()
    assert sport_and_league(sport_key("basketball", "sunday_league")) == ("basketball", "sunday_league")


def test_every_book_has_a_key_and_a_region() -> None:
    for id_ in catalog.books():
        assert {catalog.book(book_key(id_, regions)).id for regions in ((), *((each,) for each in REGIONS))} == {id_}
        assert regions_of(id_)
        assert set(regions_of(id_)) <= set(REGIONS)
    assert book_key("corner_shop") == "corner_shop"
    assert regions_of("corner_shop") == ()
    assert [book_key("betfair_exchange", (region,)) for region in ("uk", "eu", "au", "us")] == [
        "betfair_ex_uk", "betfair_ex_eu", "betfair_ex_au", "betfair_ex_uk",
    ]  # fmt: skip
    assert regions_of("espnbet") == ("us2",)
    assert regions_of("prizepicks") == ("us_dfs",)
    assert regions_of("unibet_fr") == ("eu", "fr")


@pytest.mark.parametrize("sport", catalog.sports())
def test_every_market_type_has_keys_of_its_own(sport: str) -> None:
    published = {catalog.published_name(name, sport) for name in catalog.listings()} - {"lay"}
    keys = {name: (market_key(name, sport), market_key(name, sport, alternate=True)) for name in published}
    for name, (key, alternate) in keys.items():
        assert catalog.published_name(key, sport) == catalog.published_name(alternate, sport) == name
        assert market(alternate, sport).alternate
        assert not market(key, sport).alternate
    every = [key for pair in keys.values() for key in pair]
    assert len(set(every)) == len(every)


def test_the_keys_that_clients_know() -> None:
    known = {
        ("moneyline", "soccer"): "h2h", ("moneyline_3way", "hockey"): "h2h_3_way", ("puck_line", "hockey"): "spreads",
        ("1st_quarter_moneyline", "basketball"): "h2h_q1", ("1st_inning_moneyline", "baseball"): "h2h_1st_1_innings",
        ("1st_5_innings_total_runs", "baseball"): "totals_1st_5_innings", ("team_total", "nba"): "team_totals",
        ("both_teams_to_score", "soccer"): "btts", ("double_chance", "soccer"): "double_chance",
        ("player_receiving_yards", "football"): "player_reception_yds", ("player_hits", "baseball"): "batter_hits",
        ("player_strikeouts", "baseball"): "pitcher_strikeouts", ("player_points", "nba"): "player_points",
        ("Coin toss", "football"): "Coin toss", ("lay", "soccer"): "h2h_lay",
    }  # fmt: skip
    assert {place: market_key(*place) for place in known} == known
