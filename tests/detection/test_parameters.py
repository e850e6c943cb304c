"""Parameters of the finders: what they may be, and what a user's choice does."""

from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.rows import HOME, MOMENT, moneyline, nothing, row, table, total

import oddsengine as oe
from oddsengine.detection.kinds import thresholds


def arbs(board: pl.DataFrame, **words: Any) -> pl.DataFrame:
    return oe.find_arbitrage(board, now=MOMENT, **words)


def test_a_user_may_spell_a_book_as_they_like() -> None:
    board = table(moneyline("Pinnacle", 1.95, 1.95), moneyline("FanDuel", 2.1, 1.8))
    assert oe.find_ev(board, books=["fanduel"], sharp="PINNACLE", now=MOMENT)["sportsbook"].to_list() == ["FanDuel"]


def test_the_cap_of_a_middle_is_the_users() -> None:
    board = table(total("betmgm", 220.5, 2.1, 1.75), total("caesars", 222.5, 1.75, 2.05))
    shown = {most: oe.find_middles(board, max_profit=most, guards=[], now=MOMENT).height for most in (3.0, 10.0, None)}
    assert shown == {3.0: 0, 10.0: 1, None: 1}


def test_a_better_price_that_may_not_be_a_leg_hides_no_other() -> None:
    live: dict[str, Any] = dict(is_live=True)
    rows = [
        *moneyline("pinnacle", 2.0, 1.9, **live),
        row("caesars", "moneyline", HOME, 2.14, age=0, **live),
        row("caesars", "h2h", HOME, 2.16, age=9, **live),
    ]
    assert oe.find_ev(table(rows), method="power", now=MOMENT)["odds_decimal"].to_list() == [2.14]


def test_prices_have_no_part_in_an_arbitrage_id() -> None:
    def found(first: float, second: float) -> list[str]:
        two = [row("a1", "moneyline", HOME, first), row("a1", "h2h", HOME, second)]
        return arbs(table(two, moneyline("b1", 1.7, 2.1)))["id"].to_list()

    assert found(2.10, 2.11) == found(2.11, 2.10)


def test_what_sharp_may_be() -> None:
    board = table(moneyline("pinnacle", 1.95, 1.95), moneyline("circa", 1.9, 2.0), moneyline("c", 2.2, 1.7))
    weights = {"pinnacle": 1, "circa": 1}
    one, two = (oe.find_ev(board, sharp=w, now=MOMENT) for w in (weights, MappingProxyType(weights)))
    assert one.equals(two)
    assert set(one["sharp_book"]) == {"consensus"}
    for wrong in ({"pinnacle", "circa"}, 5, [5]):
        with pytest.raises(TypeError, match="sharp must be a book"):
            oe.find_ev(board, sharp=wrong)  # type: ignore[arg-type]


BLEND = {"shin": 1.0, "power": 3.0}


@pytest.mark.parametrize(
    ("method", "name"),
    [("wpo", "additive"), (BLEND, "power=3.0,shin=1.0"), ("shin=1,power=3", "power=3.0,shin=1.0"), ("goto", "goto")],
)
def test_a_method_is_the_same_everywhere(method: Any, name: str) -> None:
    """In finders, on a live board, in expressions and in `devig`."""
    prices = [1.95, 2.05]
    board = table(moneyline("pinnacle", prices[0], prices[1]), moneyline("c", 2.3, 1.7))
    fair = oe.devig(prices, method)
    found = oe.find_ev(board, method=method, sharp="pinnacle", guards=[], now=MOMENT)
    assert found["fair_probability"].to_list() == pytest.approx([fair[0]], abs=1e-12)
    assert oe.devig(prices, name).tolist() == fair.tolist()
    engine = oe.Engine(guards=[])
    view = engine.view(method=method, sharp="pinnacle", keep=True)
    assert view.wanted.method == name
    assert engine.view(method=name, sharp="pinnacle").wanted == view.wanted
    engine.step(board, MOMENT)
    assert view.opportunities().ev["fair_probability"].to_list() == found["fair_probability"].to_list()
    shown = oe.explain(board, found["id"][0], method=method, sharp="pinnacle", guards=[], now=MOMENT)
    assert shown.method == name
    column = pl.DataFrame({"odds": prices}).select(pl.col("odds").odds.devig(method))  # type: ignore[attr-defined]
    assert column["odds"].to_list() == fair.tolist()


def test_no_blend_has_the_close() -> None:
    with pytest.raises(ValueError, match=r"a blend must be of .*, got 'close'"):
        oe.find_ev(table(moneyline("c", 2.2, 1.7)), method={"close": 1.0, "shin": 1.0})
    with pytest.raises(ValueError, match=r"method must be one of .*, close .or an alias.*, got 'guess'"):
        oe.find_ev(table(moneyline("c", 2.2, 1.7)), method="guess")


def test_a_wide_reference_is_not_trusted_alone_with_weights_either() -> None:
    board = table(moneyline("circa", 1.7, 1.7), moneyline("c", 2.15, 1.7))
    with nothing("no fair price"):
        assert oe.find_ev(board, sharp={"pinnacle": 3, "circa": 1}, now=MOMENT).height == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"min_ev": None}, "min_ev must be a finite number, got None"),
        ({"max_ev": np.nan}, "max_ev must be None or a finite number, got nan"),
        ({"books": [None]}, "books must be strings, got None"),
        ({"books": 5}, "books must be a list of book ids, got 5"),
        ({"commission": 0.02}, r"commission must be a rate by book, .* got 0\.02"),
        ({"commission": {1: 0.02}}, "the keys of commission must be book ids, got 1"),
        ({"commission": {"c": "x"}}, "commission of c must be a rate from 0 to below 1, got 'x'"),
        ({"include": None}, "include must be a list of suspect, one_sided, got None"),
        ({"include": [["suspect"]]}, "include must be a list of suspect, one_sided, got"),
        ({"kinds": None}, "kinds must be a list of ev, arbitrage, low_hold, middles, got None"),
        ({"kinds": [["ev"]]}, "kinds must be a list of"),
        ({"guards": False}, "guards must be a list of guard names, or changes by name, got False"),
        ({"guards": [1]}, "unknown guard '1'; allowed: bad_price, "),
        ({"fair": 5}, "fair must be a FairTable .*, got 5"),
    ],
)
def test_parameters_that_mean_nothing_are_errors_and_no_empty_list(words: dict[str, Any], message: str) -> None:
    board = table(moneyline("pinnacle", 1.95, 1.95), moneyline("c", 2.1, 1.8))
    if not words.keys() & {"kinds", "fair"}:
        with pytest.raises(ValueError, match=message):
            oe.find_ev(board, **words)
    engine = {name: words.pop(name) for name in ("guards", "fair") if name in words}
    if "max_ev" not in words:
        with pytest.raises((ValueError, TypeError), match=message):
            oe.Engine(**engine).view(**words)


def test_thresholds_that_have_a_number_need_one() -> None:
    board = table(moneyline("a", 2.1, 1.8), moneyline("b", 1.8, 2.1))
    for find, name in (
        (oe.find_arbitrage, "min_profit"), (oe.find_low_hold, "max_hold"), (oe.find_middles, "min_size"),
        (oe.find_all, "min_ev"), (oe.find_all, "min_profit"),
    ):  # fmt: skip
        nothing: dict[str, Any] = {name: None}
        with pytest.raises(ValueError, match=f"{name} must be a finite number.*, got None"):
            find(board, **nothing)
    assert oe.find_arbitrage(board, max_profit=None).height == 1
    assert oe.find_middles(board, min_ev=None, max_profit=None).height == 0


def test_numbers_of_numpy_are_numbers() -> None:
    board = table(moneyline("pinnacle", 1.95, 1.95), moneyline("c", 2.1, 1.8))
    words: dict[str, Any] = dict(method="power", min_ev=np.float32(1), commission={"c": np.float32(0.02)})
    found = oe.find_ev(board, now=MOMENT, **words)
    assert found.height == 1
    given: dict[str, Any] = dict(min_ev=np.float32(1), min_size=2)  # other types would compile the detectors again
    assert {column.dtype for column in thresholds(**given).values()} == {np.dtype(np.float64)}


def test_row_numbers_that_repeat_are_made_anew() -> None:
    checked = oe.check_odds(table(moneyline("b", 1.9, 1.9)))
    twice = checked.with_columns(row=pl.lit(1, pl.UInt32), odds_decimal=pl.lit(0.5))
    assert oe.rejected(twice)["row"].to_list() == [0, 1]
