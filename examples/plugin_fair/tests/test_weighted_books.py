"""What every fair price must do, by the checks of `oddsengine.testing`, and what this one does. Install it first."""

from collections.abc import Callable
from typing import Any

import pytest
from weighted_books import fair

import oddsengine as oe
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine.testing.fair_checks import FAIR_CHECKS


@pytest.mark.parametrize("check", FAIR_CHECKS)
def test_it_is_a_fair_price(check: Callable[[Any], None]) -> None:
    check(fair)


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


def test_two_books_are_too_few() -> None:
    assert fair(market(pinnacle=(1.9, 1.9), fanduel=(1.87, 1.87))) is None


def test_bets_are_found_by_its_name() -> None:
    bets = oe.find_ev(oe.read_odds(SAMPLE_BOARD), model="weighted_books", min_ev=2)
    assert bets["reference"].unique().to_list() == ["model"]
    assert bets["ev_percentage"].is_between(2, 30).all()
