"""The chance of a middle from the ladders of several books: who speaks, and how often."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

import oddsengine
from oddsengine import catalog
from oddsengine.detection import tails

LEVEL, LOWER = ((1.80, 2.05), (2.05, 1.80)), ((1.91, 1.91), (1.96, 1.86))  # over and under at 220.5, at 224.5
NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
LADDERS = {"betrivers": LEVEL, "unibet": LEVEL, "fanduel": LOWER}  # the first two are one provider


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


def test_only_the_user_s_books_speak() -> None:
    assert chance(["betrivers", "unibet"]) == pytest.approx(between(LEVEL))


def test_the_middle_one_of_three_providers_speaks() -> None:
    between_both = ((1.85, 1.98), (2.02, 1.82))
    assert between(LOWER) < between(between_both) < between(LEVEL)
    assert chance(bet365=between_both) == pytest.approx(between(between_both))


@pytest.mark.parametrize(
    ("size", "level", "users"),
    [
        (40, 18, {(0, 40): LOWER, (0, 35): LEVEL, (0, 36): None, (18, 40): LOWER}),
        (65, 32, {(0, 65): LOWER, (0, 64): None}),
    ],
)
def test_users_of_many_books_are_told_apart(size: int, level: int, users: dict[tuple[int, int], Any]) -> None:
    """Beyond 32 and 64 books too: two users share an answer only where the same books speak."""
    names = [f"book{at:02}" for at in range(size)]
    quotes = [row for at, name in enumerate(names) for row in rows(name, LEVEL if at < level else LOWER)]
    engine = oddsengine.Engine(guards=[])
    views = [
        engine.view(names[a:b], method="multiplicative", min_middle_ev=-100.0, kinds=("middles",)) for a, b in users
    ]
    engine.step(quotes, NOW)
    for view, said in zip(views, users.values(), strict=True):
        chance = between(said) if said else (between(LEVEL) + between(LOWER)) / 2
        assert view.open.table.figures[view.open.places(), 1] == pytest.approx([chance])  # found for all users at once
        assert view.opportunities().middles["middle_probability"].to_list() == pytest.approx([chance])


def test_windows_of_one_ladder_are_told_apart() -> None:
    """Books that quote one line each: every pair is judged by one shape, as if it were the only one."""
    lines = {"fanduel": (220.5, 2.02, 1.80), "draftkings": (223.5, 1.85, 1.98), "betmgm": (225.5, 1.80, 2.02)}

    def found(*books: str) -> dict[tuple[float, float], float]:
        quoted = [
            {**row, "line": line, "odds_decimal": odds}
            for book, (line, *both) in {"pinnacle": (222.5, 1.91, 1.91), **{b: lines[b] for b in books}}.items()
            for row, odds in zip(rows(book, LEVEL)[:2], both, strict=True)
        ]
        middles = oddsengine.find_middles(
            pl.DataFrame(quoted), min_ev=-100, guards=[], sharp="pinnacle", method="power"
        )
        return {
            (row["side1"]["line"], row["side2"]["line"]): row["middle_probability"]
            for row in middles.iter_rows(named=True)
        }

    every = found(*lines)
    alone = found("fanduel", "draftkings") | found("fanduel", "betmgm") | found("draftkings", "betmgm")
    assert len(every) == 6
    assert len(set(every.values())) == 6
    assert every == pytest.approx(alone)


def test_ladders_of_equal_lines_are_told_apart() -> None:
    """Two games with one pair of lines, for two users."""
    quotes = [
        {**row, "event_id": event}
        for event, prices in (("e", LEVEL), ("f", LOWER))
        for book in ("bet365", "fanduel", "betmgm")
        for row in rows(book, prices)
    ]
    engine = oddsengine.Engine(guards=[])
    views = [
        engine.view(some, method="multiplicative", min_middle_ev=-100.0, kinds=("middles",))
        for some in (["bet365", "fanduel", "betmgm"], ["bet365", "fanduel"])
    ]
    engine.step(quotes, NOW)
    for view in views:
        chances = view.open.table.figures[view.open.places(), 1]
        assert sorted(chances) == pytest.approx(sorted([between(LEVEL), between(LOWER)]))


@pytest.mark.parametrize("first", ["total_goals", "puck_line"])
def test_totals_that_users_see_differently_are_told_apart(first: str) -> None:
    """The reference prices the margin alone; how wide it is follows from the total of each user's own books."""
    few, many, even = (2.6, 1.5), (1.5, 2.6), (1.9, 1.9)
    sides = {"total_goals": ("Over", "Under"), "puck_line": ("Utah Mammoth", "Toronto Maple Leafs")}
    quotes = [
        {
            "sportsbook": book, "event_id": "e", "sport": "hockey", "league": "nhl", "market_type": market,
            "home_team": "Utah Mammoth", "away_team": "Toronto Maple Leafs", "selection": side, "odds_decimal": odds,
            "line": -line if side.startswith("Toronto") else line, "is_live": False,
        }
        for book, market, line, prices in (
            ("pinnacle", "puck_line", -1.5, (2.4, 1.6)), ("fanduel", "puck_line", -1.5, (2.5, 1.6)),
            ("betmgm", "puck_line", -3.5, (4.5, 1.25)), ("caesars", "total_goals", 5.5, few),
            ("bet365", "total_goals", 5.5, many), ("bovada", "total_goals", 5.5, even),
        )
        for side, odds in zip(sides[market], prices, strict=True)
    ]  # fmt: skip
    quotes.sort(key=lambda row: row["market_type"] != first)
    users = [["fanduel", "betmgm", total] for total in ("caesars", "bet365", "bovada")]

    def found(*some: list[str]) -> list[float]:
        engine = oddsengine.Engine(guards=[])
        words: Any = {"sharp": "pinnacle", "method": "power", "min_middle_ev": -100.0, "kinds": ("middles",)}
        views = [engine.view(books, **words) for books in some]
        engine.step(quotes, NOW)
        return [float(view.open.table.figures[view.open.places(), 1].item()) for view in views]

    alone = [found(user)[0] for user in users]
    assert len(set(alone)) == 3
    assert found(*users) == pytest.approx(alone)


def test_providers_of_ladders_that_are_asked_for_several_times() -> None:
    offsets, provider, out = np.arange(3), np.arange(2, dtype=np.int32), np.empty(4, np.int64)
    tails._providers(
        np.array([0, 0, 1, 1]), offsets, offsets, np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), provider,
        np.zeros(3, np.uint8), np.full(3, -1), out,
    )  # fmt: skip
    assert out.tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize("low", [50, -50])
def test_a_ladder_without_a_line_at_one_half_is_shifted_to_the_moneyline(low: int) -> None:
    """The moneyline is the board's first market, and 1 % of the games end level."""
    tail, close, level = np.array([[0.58, 0.58, 0.44, 0.44]]), np.array([0.6, 0.4, 0.45, 0.55]), 0.01
    known = [0.6 * 0.99 + (0.0 if low > 0 else level)] * 2 + [0.45] * 2
    logits = [np.log(q / (1.0 - q)) for q in (np.array(known), tail[0])]
    wanted = 1.0 / (1.0 + np.exp(-logits[1] - np.mean(logits[0] - logits[1])))
    none, offsets = np.full(2, -1), np.array([0, 2, 4])
    tails._centre(
        np.array([1]), np.array([[low, low, 150, 150]]), np.arange(3), offsets, np.array([0, 150], np.int32),
        np.array([-1, 0]), none, np.array([np.nan, level]), close, np.array([1], np.uint8), tail,
    )  # fmt: skip
    assert tail[0] == pytest.approx(wanted)


def margins(favourite: str, league: str, *quotes: tuple[str, str, float | None, tuple[float, ...]]) -> pl.DataFrame:
    """Prices of (book, market, line of the favourite, favourite and other and draw)."""
    other = {"Home": "Away", "Away": "Home"}[favourite]
    return pl.DataFrame([
        {
            "sportsbook": book, "event_id": "e", "sport": catalog.league(league).sport, "league": league,
            "market_type": market, "home_team": "Home", "away_team": "Away", "selection": side,
            "line": None if line is None else line if side == favourite else -line, "odds_decimal": odds,
            "is_live": False,
        }
        for book, market, line, prices in quotes
        for side, odds in zip((favourite, other, "Draw"), prices, strict=False)
    ])  # fmt: skip


def test_a_fitted_margin_is_the_same_from_either_side() -> None:
    """Scaled to the moneyline above 0 as below."""
    chances = []
    for favourite in ("Home", "Away"):
        board = margins(
            favourite, "nba", ("fanduel", "point_spread", -3.5, (1.91, 1.91)),
            ("betmgm", "point_spread", -6.5, (2.3, 1.62)), ("caesars", "moneyline", None, (1.5, 2.6)),
        )  # fmt: skip
        found = oddsengine.find_middles(board, min_ev=-100, guards=[], sharp="fanduel", method="power")
        chances.append(found["middle_probability"].to_list())
    assert 0.05 < chances[0][0] < 0.3
    assert chances[0] == pytest.approx(chances[1], abs=1e-6)


def test_a_fitted_margin_across_zero() -> None:
    board = margins(
        "Home", "nba", ("fanduel", "point_spread", 3.5, (1.7, 2.15)), ("betmgm", "point_spread", -3.5, (2.15, 1.7)),
        ("caesars", "moneyline", None, (1.91, 1.91)),
    )  # fmt: skip
    (chance,) = oddsengine.find_middles(board, min_ev=-100, guards=[], sharp="fanduel", method="power")[
        "middle_probability"
    ]
    assert chance == pytest.approx(0.2, abs=0.1)


def test_three_ways_say_what_a_ladder_lacks_around_zero() -> None:
    """Favourite wins by exactly one: moneyline less the half line, on a board that begins with this moneyline."""
    three, half = (2.0, 4.0, 3.5), (3.2, 1.35)
    for favourite in ("Home", "Away"):
        board = margins(
            favourite, "epl", ("bet365", "moneyline", None, three), ("betmgm", "asian_handicap", 0.0, (2.5, 1.6)),
            ("bet365", "asian_handicap", -1.5, half),
        )  # fmt: skip
        found = oddsengine.find_middles(board, min_ev=-100, guards=[], method="multiplicative")
        win, clear = (1.0 / prices[0] / sum(1.0 / odds for odds in prices) for prices in (three, half))
        assert found["middle_probability"].to_list() == pytest.approx([win - clear])
