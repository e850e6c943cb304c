import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.strategies import not_prices, prices

import oddsengine
from oddsengine.history import clv
from oddsengine.maths import calculators, middle, odds, scoring, value

Floats = npt.NDArray[np.float64]

# Even money, 6/4, 4/6, 9/2 and 1/4 in all notations: the conversion table of any bookmaker's help page, e.g.
# https://en.wikipedia.org/wiki/Odds#Gambling_usage
TABLE = [
    # decimal, American, probability, fraction
    (2.0, 100.0, 0.5, (1, 1)),
    (2.5, 150.0, 0.4, (3, 2)),
    (5 / 3, -150.0, 0.6, (2, 3)),
    (5.5, 450.0, 2 / 11, (9, 2)),
    (1.25, -400.0, 0.8, (1, 4)),
]


@pytest.mark.parametrize(("decimal", "american", "probability", "fraction"), TABLE)
def test_one_price_in_every_notation(
    decimal: float, american: float, probability: float, fraction: tuple[int, int]
) -> None:
    assert odds.american_to_decimal(american) == pytest.approx(decimal, rel=1e-15)
    assert odds.decimal_to_american(decimal) == pytest.approx(american, rel=1e-15)
    assert odds.decimal_to_probability(decimal) == pytest.approx(probability, rel=1e-15)
    assert odds.probability_to_decimal(probability) == pytest.approx(decimal, rel=1e-15)
    assert odds.fractional_to_decimal(*fraction) == pytest.approx(decimal, rel=1e-15)
    numerator, denominator = odds.decimal_to_fractional(decimal)
    assert (float(numerator), float(denominator)) == fraction


def test_even_money_is_plus_100_and_never_minus() -> None:
    assert odds.decimal_to_american(2.0) == 100.0
    assert odds.decimal_to_american(np.nextafter(2.0, 1.0)) < -100.0
    assert odds.american_to_decimal(-100) == 2.0
    assert odds.american_to_decimal(100) == 2.0


@pytest.mark.parametrize("american", [0.0, -0.0, 99.999, -99.999, 1.0, np.inf, -np.inf, np.nan, -1e300])
def test_american_odds_that_are_none(american: float) -> None:
    assert math.isnan(odds.american_to_decimal(american))


DECIMAL = {
    "decimal_to_american": odds.decimal_to_american,
    "decimal_to_probability": odds.decimal_to_probability,
    "decimal_to_fractional": odds.decimal_to_fractional,
    "devig": oddsengine.devig,
    "devig_groups": lambda prices: oddsengine.devig_groups(prices, [0, 2]),
    "kelly": lambda prices: oddsengine.kelly(0.5, prices),
    "kelly_exclusive": lambda prices: oddsengine.kelly_exclusive([0.5, 0.5], prices),
    "hold": oddsengine.hold,
    "arbitrage_stakes": lambda prices: oddsengine.arbitrage_stakes(prices, 100.0),
    "round_stakes": lambda prices: oddsengine.round_stakes(prices, 100.0, 1.0),
    "edge": lambda prices: value.edge(0.5, prices),
    "clv": lambda prices: clv.clv(prices, 0.5),
    "settle_over": lambda prices: middle.settle_over([50, 50], prices, 1),
    "gains": lambda prices: scoring.gains([prices], [0]),
}


@pytest.mark.parametrize("function", DECIMAL.values(), ids=DECIMAL)
def test_american_odds_and_text_are_no_decimal_odds(function: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="got -110, which is American: convert with american_to_decimal"):
        function([-110, 102])
    with pytest.raises(ValueError, match="decimal numbers, got the string"):
        function(["+120", "+130"])


@given(not_prices())
@example(1e308 * 10)
def test_decimal_odds_that_are_none(price: float) -> None:
    assert math.isnan(odds.decimal_to_american(price))
    assert math.isnan(odds.decimal_to_probability(price))
    assert all(math.isnan(part) for part in odds.decimal_to_fractional(price))


@pytest.mark.parametrize("probability", [0.0, -0.0, 1.0, -0.5, 1.0 + 1e-10, np.nan, np.inf, 5e-324])
def test_probabilities_that_are_none(probability: float) -> None:
    assert math.isnan(odds.probability_to_decimal(probability))


@pytest.mark.parametrize("pair", [(0, 1), (-1, 2), (1, 0), (-1, -2), (np.nan, 1), (1, np.inf), (np.inf, 1)])
def test_fractions_that_are_none(pair: tuple[float, float]) -> None:
    assert math.isnan(odds.fractional_to_decimal(*pair))


def test_whole_american_odds_survive_the_round_trip() -> None:
    whole = np.arange(100, 1_000_000, 7.0)
    for american in (whole, -whole[1:]):
        back = odds.decimal_to_american(odds.american_to_decimal(american))
        np.testing.assert_array_equal(np.rint(back), american)


@given(prices())
def test_round_trips(price: float) -> None:
    assert odds.american_to_decimal(odds.decimal_to_american(price)) == pytest.approx(price, rel=1e-14)
    assert odds.probability_to_decimal(odds.decimal_to_probability(price)) == pytest.approx(price, rel=1e-14)


@given(st.integers(1, 2000), st.integers(1, 100))
@example(1, 100)
@example(100, 30)
def test_fractions_survive_the_round_trip(numerator: int, denominator: int) -> None:
    fraction = Fraction(numerator, denominator)
    n, m = odds.decimal_to_fractional(odds.fractional_to_decimal(numerator, denominator))
    assert (float(n), float(m)) == (fraction.numerator, fraction.denominator)


@given(prices(), st.integers(1, 60))
@example(1.001, 60)
def test_no_fraction_is_closer(price: float, bound: int) -> None:
    """The standard library's best rational is the twin; below the least fraction the answer is 1 / bound."""
    n, m = odds.decimal_to_fractional(price, bound)
    best = max(Fraction(price - 1.0).limit_denominator(bound), Fraction(1, bound))
    profit = price - 1.0
    assert n >= 1
    assert m <= bound
    assert abs(float(n) / float(m) - profit) <= abs(float(best) - profit) * (1 + 1e-9) + 1e-15 * price


@pytest.mark.parametrize(
    ("function", "low", "high", "sign"),
    [
        (odds.american_to_decimal, 100.0, 5000.0, 1.0),
        (odds.american_to_decimal, -5000.0, -100.0, 1.0),
        (odds.decimal_to_probability, 1.01, 500.0, -1.0),
        (odds.probability_to_decimal, 0.001, 0.999, -1.0),
        (odds.decimal_to_american, 2.0, 500.0, 1.0),
        (odds.decimal_to_american, 1.01, 1.999, 1.0),
        (odds.fractional_to_decimal, 0.01, 500.0, 1.0),
    ],
)
def test_monotone(function: Callable[[Floats], Floats], low: float, high: float, sign: float) -> None:
    assert (sign * np.diff(function(np.linspace(low, high, 2001))) > 0.0).all()


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("5/2", (5, 2)),
        (" 5 / 2 ", (5, 2)),
        ("5-2", (5, 2)),
        ("5:2", (5, 2)),
        ("7", (7, 1)),
        ("Evens", (1, 1)),
        ("EVS", (1, 1)),
        ("3.5/1", (3.5, 1)),
    ],
)
def test_text_of_fractions(text: str, pair: tuple[float, float]) -> None:
    n, m = odds.parse_fractional(text)
    assert (float(n), float(m)) == pair


@pytest.mark.parametrize("text", ["", "SP", "5/", "/2", "-5/2", "5/2/1", "5//2", "1e3", "٥/٢", "nan"])
def test_text_that_is_no_fraction(text: str) -> None:
    assert all(math.isnan(part) for part in odds.parse_fractional(text))


@given(st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 100)), max_size=5))
def test_text_survives_the_round_trip(pairs: list[tuple[int, int]]) -> None:
    written = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    n, m = odds.parse_fractional(odds.format_fractional(written[:, 0], written[:, 1]))
    np.testing.assert_array_equal(np.stack([n, m], axis=1), written)


def test_fractions_without_text() -> None:
    assert odds.format_fractional([0.0, np.nan, np.inf, 5.0], [1.0, 1.0, 1.0, 0.0]).tolist() == [""] * 4


def test_shape_is_kept() -> None:
    for function in (odds.american_to_decimal, odds.decimal_to_american, odds.decimal_to_probability):
        assert function(np.full((2, 0, 3), 150.0)).shape == (2, 0, 3)
        assert isinstance(function(150), np.float64)
    assert odds.fractional_to_decimal(np.ones((3, 1)), np.ones(2)).shape == (3, 2)
    assert odds.parse_fractional(np.array([["1/2"], ["3/4"]]))[1].shape == (2, 1)
    assert odds.parse_fractional(np.array([], dtype=np.str_))[0].shape == (0,)


def test_denominator_bound() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        odds.decimal_to_fractional(2.5, 0)


def bets(**columns: float) -> pl.DataFrame:
    row = {"event_id": "e", "sportsbook": "b", "market_type": "total_points", "selection": "Over", "line": 220.5}
    return pl.DataFrame([{**row, "odds_decimal": 2.0, "fair_probability": 0.55, "fair_error": 0.01, **columns}])


PERCENTAGES: dict[str, tuple[Callable[[], Any], str]] = {
    "kelly": (lambda: oddsengine.kelly(55, 2.0), r"prob must be from 0 to 1, got 55: a probability of 55 % is 0\.55"),
    "one of many": (lambda: oddsengine.kelly([0.5, math.nan, 52.5], 2.0), "prob must be from 0 to 1, got 52.5"),
    "fraction": (lambda: oddsengine.kelly(0.55, 2.0, 25), "fraction must be above 0 and at most 1, got 25"),
    "kelly_exclusive": (lambda: oddsengine.kelly_exclusive([50, 30], [2.2, 3.6]), "probs must be from 0 to 1, got 50"),
    "probability_to_decimal": (lambda: oddsengine.probability_to_decimal([25]), "prob must be from 0 to 1, got 25"),
    "edge": (lambda: value.edge(52, 2.0), "prob must be from 0 to 1, got 52"),
    "clv": (lambda: clv.clv(2.1, 50), "closing must be from 0 to 1, got 50"),
    "expression": (lambda: oddsengine.OddsExpr(pl.col("odds")).kelly(52.0), "prob must be from 0 to 1, got 52"),
    "log_loss": (lambda: scoring.log_loss([[50, 50]], [0]), "probs must be from 0 to 1, got 50"),
    "kelly_stakes": (lambda: scoring.kelly_stakes([[50, 50]], [[2.1, 2.1]]), "probs must be from 0 to 1, got 50"),
    "boost": (lambda: calculators.boost(3.0, 50), r"share must be from 0 to 3, 0\.5 for a boost of 50 %, got 50"),
    "parlay": (lambda: calculators.parlay([2.0], [55]), "probs must be from 0 to 1, got 55"),
    "middle_stakes": (lambda: calculators.middle_stakes(100, 2.0, 2.0, 10), "prob must be from 0 to 1, got 10"),
    "cover": (lambda: oddsengine.cover([1, 0], [2.1, 2], [1.9, 1.9], [55, 45]), "probs must be the probabilities of"),
    "fair_probability": (
        lambda: oddsengine.kelly_portfolio(bets(fair_probability=55.0)),
        "fair_probability must be above 0 and below 1, got 55",
    ),
    "fair_error": (
        lambda: oddsengine.kelly_portfolio(bets(fair_error=2.0)), "fair_error must be 0 or more and below 1, got 2"
    ),
    "portfolio": (lambda: oddsengine.kelly_portfolio(bets(), fraction=25), "at most 1, got 25"),
    "commission": (
        lambda: oddsengine.find_ev(bets(), commission={"betfair_exchange": 2}),
        "commission of betfair_exchange must be a rate from 0 to below 1, got 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PERCENTAGES)
def test_percentages_are_no_probabilities(case: str) -> None:
    call, said = PERCENTAGES[case]
    with pytest.raises(ValueError, match=said):
        call()
