"""The price of one market, and bets by it. The package has to be installed."""

import pytest
from weighted_books import fair

import oddsengine as oe
from oddsengine.tables.sample import SAMPLE_BOARD


def market(**odds: tuple[float, ...]) -> oe.MarketPrices:
    return oe.MarketPrices("moneyline", ("home", "away"), "nba", None, None, odds, {}, sport="basketball")


def test_books_that_agree_are_all_right() -> None:
    found = fair(market(pinnacle=(1.9, 1.9), fanduel=(1.87, 1.87), betmgm=(1.8, 1.8)))
    assert found == pytest.approx([0.5, 0.5])


def test_a_sharp_book_counts_more() -> None:
    sharp = fair(market(pinnacle=(1.5, 2.7), fanduel=(1.9, 1.9), betmgm=(1.9, 1.9)))
    other = fair(market(bovada=(1.5, 2.7), fanduel=(1.9, 1.9), betmgm=(1.9, 1.9)))
    assert sharp is not None
    assert other is not None
    assert sharp[0] > other[0] > 0.5
    assert sum(sharp) == pytest.approx(1.0)


def test_two_books_are_too_few() -> None:
    assert fair(market(pinnacle=(1.9, 1.9), fanduel=(1.87, 1.87))) is None


def test_bets_are_found_by_its_name() -> None:
    bets = oe.find_ev(oe.read_odds(SAMPLE_BOARD), model="weighted_books", min_ev=2)
    assert bets["reference"].unique().to_list() == ["model"]
    assert bets["ev_percentage"].is_between(2, 30).all()
