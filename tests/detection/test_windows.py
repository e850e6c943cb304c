"""The probability of a middle from its two lines: a slow twin that adds up the results, and what it must agree with."""

import math
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oddsengine as oe
from oddsengine import catalog
from oddsengine.detection.windows import middle_value

Chances = dict[int, float]


def normal(location: float, sd: float, numbers: range) -> Chances:
    at = NormalDist(location, sd).cdf
    return {n: at(n + 0.5) - at(n - 0.5) for n in numbers}


def poisson(mean: float, numbers: range) -> Chances:
    return {n: math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in numbers if n >= 0}


def two_way(chances: Chances, line: float) -> float:
    """Probability of over at a half or whole line, pushes left out."""
    won = sum(p for n, p in chances.items() if n > line)
    lost = sum(p for n, p in chances.items() if n < line)
    return won / (won + lost)


def located(family: str, scale: float, line: float, prob: float, numbers: range) -> Chances:
    """The distribution whose over at `line` has `prob`, by bisection."""
    low, high = (-100.0, 400.0) if family == "normal" else (1e-3, 100.0)
    for _ in range(100):
        middle = 0.5 * (low + high)
        chances = normal(middle, scale, numbers) if family == "normal" else poisson(middle, numbers)
        low, high = (middle, high) if two_way(chances, line) < prob else (low, middle)
    return chances


@given(st.integers(380, 500), st.integers(1, 12), st.floats(0.2, 0.8), st.integers(-10, 10))
def test_a_total_of_points_is_the_sum_of_its_results(low: int, size: int, prob: float, shift: int) -> None:
    line1, line2, at = low / 2.0, (low + size) / 2.0, (low + shift) / 2.0
    sd = catalog.sport("basketball").scores_in("nba").total
    assert sd is not None
    chances = located("normal", sd.sd, at, prob, range(0, 500))
    expected = sum(p for n, p in chances.items() if line1 < n < line2)
    found = oe.middle_probability("nba", "total", line1, line2, prob=prob, at=at).item()
    assert found == pytest.approx(expected, abs=1e-7)


@given(st.integers(1, 8), st.integers(1, 8), st.floats(0.2, 0.8))
def test_a_total_of_goals_is_the_sum_of_its_results(low: int, size: int, prob: float) -> None:
    line1, line2 = low / 2.0, (low + size) / 2.0
    chances = located("poisson", 1.0, line1, prob, range(0, 120))
    expected = sum(p for n, p in chances.items() if line1 < n < line2)
    found = oe.middle_probability("soccer", "total_goals", line1, line2, prob=prob, at=line1).item()
    assert found == pytest.approx(expected, abs=1e-7)


def test_half_way_between_the_lines_is_even() -> None:
    plain = oe.middle_probability("nfl", "spread", -2.5, 3.5)
    assert plain.shape == ()
    assert plain == oe.middle_probability("nfl", "spread", -2.5, 3.5, prob=0.5, at=-3)
    assert plain == pytest.approx(oe.middle_probability("football", "spread", 3.5, -2.5), abs=1e-12)  # teams swapped
    assert plain > oe.middle_probability("nfl", "spread", -1.5, 2.5) > 0.0  # 3 is more frequent than 2


def test_columns_are_their_rows() -> None:
    frame = pl.DataFrame({"over": [220.5, 221.0, 222.5], "under": [222.5, 224.5, 220.5], "prob": [0.5, 0.55, 0.5]})
    found = oe.middle_probability("nba", "total", frame["over"], frame["under"], prob=frame["prob"])
    rows = [oe.middle_probability("nba", "total", a, b, prob=p).item() for a, b, p in frame.iter_rows()]
    assert found.tolist() == rows
    assert rows[2] == 0.0  # over the higher line and under the lower: no result wins both


def test_a_finder_without_a_ladder_says_the_same() -> None:
    """Of a main line at 221.5, with lines on both sides of it at two more books."""
    prices = {"pinnacle": (221.5, 1.95, 1.95), "fanduel": (220.5, 2.0, 1.83), "draftkings": (223.5, 1.83, 2.0)}
    rows = [
        {"event_id": "e", "sport": "basketball", "league": "nba", "home_team": "Boston Celtics",
         "away_team": "Los Angeles Lakers", "market_type": "total_points", "sportsbook": book, "line": line,
         "selection": side, "odds_decimal": odds}
        for book, (line, over, under) in prices.items() for side, odds in (("Over", over), ("Under", under))
    ]  # fmt: skip
    board = pl.DataFrame(rows)
    found = oe.find_middles(board, min_ev=-100.0, guards=[], method="power").filter(
        pl.col("probability_source") == "shape", pl.col("side1").struct.field("line") == 220.5,
        pl.col("side2").struct.field("line") == 223.5,
    )  # fmt: skip
    expected = oe.middle_probability("basketball", "total", 220.5, 223.5, at=221.5, league="nba").item()
    assert found["middle_probability"].to_list() == pytest.approx([expected], rel=1e-6)


def test_the_value_follows_from_the_probability() -> None:
    """With half lines: EV = (1 + P) / S - 1."""
    value = middle_value("nhl", "spread", -1.5, 2.5, 2.6, 1.45, expected_total=6.0)
    total = 1.0 / 2.6 + 1.0 / 1.45
    assert value.prob == oe.middle_probability("nhl", "spread", -1.5, 2.5, expected_total=6.0)
    assert value.ev == pytest.approx((1.0 + value.prob) / total - 1.0)
    assert value.worst == pytest.approx(1.0 / total - 1.0)


@pytest.mark.parametrize(
    ("words", "more", "message"),
    [
        (("quidditch", "total", 1, 2), {}, r"sport must be one of .*soccer.*, got 'quidditch'"),
        (("nba", "moneyline", 1, 2), {}, r"known distribution, .*; got 'moneyline' in Basketball"),
        (("nba", "magic", 1, 2), {}, "got 'magic'"),
        (("nba", "total", 220.1, 222), {}, "line1 must be multiples of a quarter .*, got 220.1"),
        (("nba", "total", 220.5, math.nan), {}, "line2 must be multiples of a quarter .*, got nan"),
        (("nba", "total", 220.5, 222), {"at": 0.3}, "at must be multiples of a quarter .*, got 0.3"),
        (("nba", "total", 220.5, 222), {"prob": 1.0}, "prob must be above 0 and below 1, got 1.0"),
        (("nhl", "spread", -1.5, 2.5), {}, "spread in Ice hockey needs expected_total, got None"),
        (("nhl", "spread", -1.5, 2.5), {"expected_total": -6.0}, "expected_total must be .* above 0, got -6.0"),
        (("nba", "total", 220.5, 222), {"expected_total": 221.0}, "does not use expected_total, got 221.0"),
    ],
)
def test_what_cannot_be_calculated_is_named(words: tuple[str, str, float, float], more: dict[str, float],
                                            message: str) -> None:  # fmt: skip
    with pytest.raises(ValueError, match=message):
        oe.middle_probability(*words, **more)  # type: ignore[arg-type]


def test_a_league_may_be_named_as_a_sport() -> None:
    lines = ("total", 220.5, 224.5)
    assert oe.middle_probability("nba", *lines) == oe.middle_probability("basketball", *lines, league="nba")
    assert oe.middle_probability("nba", *lines) != oe.middle_probability("basketball", *lines)
    assert np.isfinite(oe.middle_probability("ncaaf", "spread", -6.5, 7.5))
