"""The chance of a middle from the ladders of several books: who speaks, and how often."""

from typing import Any

import polars as pl
import pytest

import oddsengine

LEVEL, LOWER = ((1.80, 2.05), (2.05, 1.80)), ((1.91, 1.91), (1.96, 1.86))  # over and under at 220.5, at 224.5
LADDERS = {"betrivers": LEVEL, "unibet": LEVEL, "fanduel": LOWER}  # the first two are one feed


def rows(book: str, prices: Any) -> list[dict[str, Any]]:
    return [
        {
            "sportsbook": book, "event_id": "e", "sport": "basketball", "league": "nba", "market_type": "total_points",
            "home_team": "Boston Celtics", "away_team": "Los Angeles Lakers", "selection": side, "line": line,
            "odds_decimal": odds, "is_live": False,
        }
        for line, pair in zip((220.5, 224.5), prices, strict=True)
        for side, odds in zip(("Over", "Under"), pair, strict=True)
    ]  # fmt: skip


def chance(books: list[str] | None = None, **more: Any) -> float:
    """Of the only middle, by the median of the books."""
    board = pl.DataFrame([row for book, prices in (LADDERS | more).items() for row in rows(book, prices)])
    found = oddsengine.find_middles(board, min_ev=-100, guards=[], books=books, method="multiplicative")
    return float(found["middle_probability"][0])


def between(prices: Any) -> float:
    """What one book says."""
    low, high = (under / (over + under) for over, under in prices)
    return float(low - high)


def test_sister_books_are_one_voice() -> None:
    assert chance() == pytest.approx((between(LEVEL) + between(LOWER)) / 2)


def test_only_the_caller_s_books_speak() -> None:
    assert chance(["betrivers", "unibet"]) == pytest.approx(between(LEVEL))


def test_the_middle_one_of_three_feeds_speaks() -> None:
    between_both = ((1.85, 1.98), (2.02, 1.82))
    assert between(LOWER) < between(between_both) < between(LEVEL)
    assert chance(bet365=between_both) == pytest.approx(between(between_both))
