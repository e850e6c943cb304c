"""Defects that a reader found, each kept as the smallest board that showed it."""

from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.rows import HOME, MOMENT, moneyline, nothing, row, table, total

import oddsengine as oe
from oddsengine.detection.sweep import Wants

NHL: dict[str, Any] = dict(sport="hockey", league="nhl", home_team="Utah Mammoth", away_team="Boston Bruins")
SOCCER: dict[str, Any] = dict(event_id="x", league="b", home_team="FC Schalke 04", away_team="Hannover 96")


def arbs(board: pl.DataFrame, **words: Any) -> pl.DataFrame:
    return oe.find_arbitrage(board, now=MOMENT, **words)


@pytest.mark.parametrize("sport", ["soccer", "Soccer", " SOCCER", "association football", "soccer_epl"])
def test_a_sport_is_found_however_it_is_written(sport: str) -> None:
    words: dict[str, Any] = dict(SOCCER, sport=sport)
    board = table(
        row("betmgm", "moneyline", "FC Schalke 04", 2.2, **words),
        row("betmgm", "moneyline", "Hannover 96", 1.8, **words),
        row("caesars", "moneyline", "FC Schalke 04", 1.8, **words),
        row("caesars", "moneyline", "Hannover 96", 2.2, **words),
    )
    with nothing("4 of 4 rows are rejected: ambiguous_moneyline 4"):
        assert arbs(board).height == 0
    assert set(oe.rejected(board, now=MOMENT)["guard"]) == {"ambiguous_moneyline"}


def test_a_moneyline_with_a_misspelt_team_names_the_selection_that_was_not_recognised() -> None:
    board = table(
        row("betmgm", "moneyline", "Los Angeles Lakers", 2.2),
        row("betmgm", "moneyline", "Bostn Celtcs", 1.8),
        row("caesars", "moneyline", "Los Angeles Lakers", 2.1),
    )
    reasons = {(book, text): (guard, why) for book, text, guard, why in oe.rejected(board, now=MOMENT).select(
        "sportsbook", "selection", "guard", "reason").rows()}  # fmt: skip
    assert reasons == {
        ("betmgm", "Los Angeles Lakers"): (
            "ambiguous_moneyline", "the book's other selection is neither team, and may be the draw: 'Bostn Celtcs'",
        ),
        ("betmgm", "Bostn Celtcs"): ("unknown_outcome", "the selection is not an outcome of the market"),
    }  # fmt: skip


@pytest.mark.parametrize("spelling", ["DraftKings", "dk", "draftkings "])
def test_two_spellings_of_a_book_are_one_book(spelling: str) -> None:
    with nothing("4 of 4 rows are rejected: duplicate_outcome 4"):
        assert arbs(table(moneyline("draftkings", 2.1, 1.8), moneyline(spelling, 1.8, 2.1))).height == 0


def test_caller_may_spell_a_book_as_they_like() -> None:
    board = table(moneyline("Pinnacle", 1.95, 1.95), moneyline("FanDuel", 2.1, 1.8))
    assert oe.find_ev(board, books=["fanduel"], sharp="PINNACLE", now=MOMENT)["sportsbook"].to_list() == ["FanDuel"]


@pytest.mark.parametrize(
    "draw", [dict(selection="Unentschieden"), dict(selection="Draw", is_live="maybe"), dict(selection="Draw", odds=0.5)]
)
def test_a_draw_that_does_not_read_makes_no_two_way_moneyline(draw: dict[str, Any]) -> None:
    home, away = NHL["home_team"], NHL["away_team"]
    words: dict[str, Any] = {**NHL, **draw}
    rows = [
        row("betmgm", "moneyline", home, 2.5, **NHL),
        row("betmgm", "moneyline", words.pop("selection"), words.pop("odds", 4.2), **words),
        row("caesars", "moneyline", away, 1.8, **NHL),
        row("caesars", "moneyline", home, 2.0, **NHL),
    ]
    frame = pl.DataFrame([r | {"is_live": str(r["is_live"]).lower()} for r in rows], infer_schema_length=None)
    assert arbs(frame).height == 0


def test_a_number_in_a_name_is_not_its_line() -> None:
    words: dict[str, Any] = dict(SOCCER, sport="soccer")
    board = table(
        row("a1", "asian_handicap", "FC Schalke 04 -0.5", 2.1, -0.5, selection_type="away", **words),
        row("b1", "asian_handicap", "Hannover 96 +0.5", 2.1, 0.5, selection_type="home", **words),
    )
    with nothing("2 of 2 rows are rejected: side_conflict 2"):
        assert arbs(board).height == 0
    assert set(oe.rejected(board, now=MOMENT)["guard"]) == {"side_conflict"}


def test_the_cap_of_a_middle_is_the_callers() -> None:
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
        ({"include": None}, "include must be a list of suspect, got None"),
        ({"include": [["suspect"]]}, "include must be a list of suspect, got"),
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


def test_a_view_may_be_kept_by_any_truth_value() -> None:
    nothing: Any = None
    assert oe.Engine().view(keep=nothing).kept == 0


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
    thresholds: dict[str, Any] = dict(min_ev=np.float32(1), min_size=2)  # other types would compile the detectors again
    assert {column.dtype for column in Wants.from_thresholds(**thresholds)} == {np.dtype(np.float64)}


def test_row_numbers_that_repeat_are_made_anew() -> None:
    frame = table(moneyline("a", 0.5, 0.5), moneyline("b", 1.9, 1.9)).with_columns(row=pl.lit(1, pl.UInt32))
    assert oe.rejected(frame)["row"].to_list() == [1, 2]


def test_futures_know_no_stranger_either() -> None:
    odds = pl.DataFrame(
        {"sportsbook": "corner_shop", "league": "nba", "market": "To make the playoffs 2026-27", "subject": "Spurs",
         "selection": ["Yes", "No"], "odds_decimal": [1.5, 2.7]}
    )  # fmt: skip
    assert oe.find_futures(odds, books=["corner_shop"], sharp=["pinnacle"]).odds.height == 2
    with pytest.raises(ValueError, match=r"^sharp: no prices of pinacle; the books are corner_shop$"):
        oe.find_futures(odds, sharp=["pinacle"])


@pytest.mark.parametrize("first", [0.5, 1.9])
def test_markets_where_the_teams_are_named_best_by_a_row_without_a_price(first: float) -> None:
    board = table(
        row("betmgm", "point_spread", HOME, first, -3.5, home_team=" "),
        row("betmgm", "total_points", "Over", 1.9, 220.5, home_team="Boston Basketball"),
        row("caesars", "point_spread", HOME, 0.5, -3.5),
        row("caesars", "point_spread", "Los Angeles Lakers", 0.5, 3.5),
    )
    assert oe.markets(board, now=MOMENT)["event_id"].to_list() == ["e"]
