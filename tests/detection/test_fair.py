"""Fair figures of every row: those of the finders, in the order of the rows."""

import csv
import math
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pricing.test_close import NOW, SOME, moneylines
from support.rows import nothing

import oddsengine as oe
from oddsengine.tables.sample import SAMPLE_BOARD

with Path(SAMPLE_BOARD).open(encoding="utf-8", newline="") as _file:  # polars would start threads on import
    ODDS = pl.DataFrame(
        [{name: text or None for name, text in row.items()} for row in csv.DictReader(_file)], infer_schema_length=None
    )
KEY = ["sportsbook", "event_id", "market_type", "selection", "line", "odds_decimal"]


@pytest.mark.parametrize("chosen", [{}, {"sharp": "pinnacle"}, {"method": "shin"}], ids=str)
def test_its_default_reference_is_that_of_the_finders(chosen: dict[str, Any]) -> None:
    rows, wanted = oe.fair(ODDS, **chosen), oe.find_ev(ODDS, **chosen)
    assert wanted.height
    assert rows.filter(pl.col("ev") > 0.0)["ev"].sort().to_list() == (wanted["ev_percentage"] / 100.0).sort().to_list()


@pytest.mark.parametrize("sharp", [None, "pinnacle", {"pinnacle": 3.0, "circa": 1.0}])
def test_it_agrees_with_find_ev(sharp: str | dict[str, float] | None) -> None:
    rows = oe.fair(oe.read_odds(SAMPLE_BOARD), sharp=sharp, method="shin")
    wanted = oe.find_ev(ODDS, sharp=sharp, method="shin", min_ev=1.0)
    got = rows.filter(pl.col("ev") >= 0.01).sort("ev", descending=True)
    assert got["ev"].to_list() == pytest.approx((wanted["ev_percentage"] / 100.0).to_list())
    assert sorted(got["fair_probability"]) == pytest.approx(sorted(wanted["fair_probability"]))
    assert sorted(got["reference"]) == sorted(wanted["sharp_book"])


def test_the_estimator_of_the_close_gives_the_figures_of_find_ev() -> None:
    rows = oe.fair(oe.read_odds(SAMPLE_BOARD), method="close")
    wanted = oe.find_ev(ODDS, method="close", min_ev=0.5)
    got = rows.filter(pl.col("ev") >= 0.005).sort("ev", descending=True)
    assert wanted.height
    assert got["ev"].to_list() == pytest.approx((wanted["ev_percentage"] / 100.0).to_list())
    assert sorted(got["reference"]) == sorted(wanted["sharp_book"])
    known = wanted.drop_nulls("ev_high").join(got, left_on="odds_id", right_on="id", how="inner")
    for row in known.iter_rows(named=True):
        p = row["fair_probability"]
        x = math.log(p / (1 - p)) + 1.645 * row["fair_error"] / (p * (1 - p))
        assert row["net_odds"] / (1 + math.exp(-x)) - 1 == pytest.approx(row["ev_high"] / 100.0, abs=2e-5)


def test_rows_come_back_in_their_order_with_their_columns() -> None:
    shuffled = ODDS.sample(fraction=1.0, shuffle=True, seed=3).with_columns(note=pl.int_range(pl.len()))
    rows = oe.fair(shuffled)
    assert rows.columns == [*shuffled.columns, *oe.FAIR_COLUMNS]
    assert_frame_equal(rows.drop(*oe.FAIR_COLUMNS), shuffled)
    again = oe.fair(ODDS).with_columns(note=pl.int_range(pl.len()))
    figures = [*KEY, "fair_probability", "fair_error", "hold", "ev"]
    assert_frame_equal(rows.select(figures).sort(figures), again.select(figures).sort(figures), abs_tol=1e-12)


def capped(rows: pl.DataFrame) -> pl.Series:
    return rows.filter(guard="ev_cap")["row"]


def test_rejected_rows_say_why_and_have_no_ev() -> None:
    rows = oe.fair(ODDS).with_row_index("row")
    # Without a fair price at the close, `rejected` still compares prices with a sharp book.
    rejected = oe.rejected(ODDS).filter((pl.col("guard") != "ev_cap") | pl.col("row").is_in(capped(rows).implode()))
    assert dict(rows.drop_nulls("guard").select("row", "guard").iter_rows()) == dict(
        rejected.select("row", "guard").iter_rows()
    )
    assert rows.drop_nulls("guard")["ev"].null_count() == rejected.height
    stale = rows.filter(guard="stale")
    assert stale.height
    assert stale["fair_probability"].is_not_null().any()


def two_way(*books: tuple[str, float, float]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "event_id": "e",
            "market_type": "total_points",
            "line": 220.5,
            "sportsbook": [book for book, _, _ in books for _ in range(2)],
            "selection": ["Over", "Under"] * len(books),
            "odds_decimal": [price for _, over, under in books for price in (over, under)],
        }
    )


def test_the_error_is_that_of_a_mean_of_the_other_books() -> None:
    odds = two_way(("pinnacle", 1.95, 1.95), ("fanduel", 2.0, 1.9), ("betmgm", 1.9, 2.0), ("caesars", 1.87, 1.95))
    rows = oe.fair(odds, method="power")
    own = {
        book: oe.devig([a, b])[0]
        for book, a, b in zip(
            rows["sportsbook"][::2], odds["odds_decimal"][::2], odds["odds_decimal"][1::2], strict=True
        )
    }
    for row in rows.filter(selection="Over").iter_rows(named=True):
        p = row["fair_probability"]
        at = math.log(p / (1 - p))
        others = [math.log(q / (1 - q)) for book, q in own.items() if book != row["sportsbook"]]
        error = p * (1 - p) * math.sqrt(sum((x - at) ** 2 for x in others) / (len(others) * (len(others) - 1)))
        assert row["fair_error"] == pytest.approx(error)
        assert row["reference"] == "pinnacle"
        assert row["hold"] == pytest.approx(
            float(oe.hold(odds.filter(sportsbook=row["sportsbook"])["odds_decimal"].to_numpy()))
        )
    over, under = (rows.filter(selection=side)["fair_error"].to_list() for side in ("Over", "Under"))
    assert over == pytest.approx(under)


def test_one_other_book_has_no_error_and_the_reference_no_edge() -> None:
    rows = oe.fair(two_way(("pinnacle", 1.95, 1.95), ("fanduel", 2.1, 1.75)), sharp="pinnacle")
    assert rows["fair_error"].null_count() == 4
    assert rows.select("ev").to_series().round(4).to_list() == [None, None, 0.05, -0.125]
    assert rows["fair_probability"].to_list() == [0.5] * 4


def test_a_member_of_the_consensus_is_left_out_of_its_own() -> None:
    weights = {"pinnacle": 1.0, "circa": 1.0}
    rows = oe.fair(two_way(("pinnacle", 2.0, 1.9), ("circa", 1.9, 2.0), ("fanduel", 2.1, 1.8)), sharp=weights)
    by_book = dict(rows.filter(selection="Over").select("sportsbook", "fair_probability").iter_rows())
    assert by_book["pinnacle"] == pytest.approx(float(oe.devig([1.9, 2.0])[0]))
    assert by_book["circa"] == pytest.approx(float(oe.devig([2.0, 1.9])[0]))
    assert by_book["fanduel"] == pytest.approx(0.5)
    assert rows["reference"].to_list() == ["consensus"] * 6
    alone = oe.fair(two_way(("pinnacle", 2.0, 1.9), ("fanduel", 2.1, 1.8)), sharp=weights)
    assert alone.filter(sportsbook="pinnacle")["fair_probability"].to_list() == [None, None]


def test_bad_rows_keep_their_places() -> None:
    odds = two_way(("pinnacle", 1.95, 1.95), ("fanduel", 2.1, 1.75)).with_columns(
        odds_decimal=pl.when(pl.int_range(pl.len()) == 2).then(0.5).otherwise("odds_decimal")
    )
    rows = oe.fair(odds, sharp="pinnacle")
    assert rows["guard"].to_list() == [None, None, "bad_price", None]
    assert rows["fair_probability"].to_list() == [0.5, 0.5, None, 0.5]
    numbered = odds.with_columns(row=pl.Series([7, 3, 9, 1], dtype=pl.UInt32))
    assert oe.fair(numbered, sharp="pinnacle").drop("row").equals(rows)


def test_empty_tables_and_prepared_boards() -> None:
    odds = two_way(("pinnacle", 1.95, 1.95), ("fanduel", 2.1, 1.75))
    assert oe.fair(odds.clear()).columns == [*odds.columns, *oe.FAIR_COLUMNS]
    prepared = oe.fair(oe.prepare(odds), sharp="pinnacle")
    assert prepared["ev"].equals(oe.fair(odds, sharp="pinnacle")["ev"])
    assert all(a <= b for a, b in pairwise(prepared["row"]))
    assert np.isfinite(prepared["ev"].drop_nulls().to_numpy()).all()


def test_numbers_of_rows_that_came_do_not_matter() -> None:
    bad = ODDS.with_columns(
        odds_decimal=pl.when(pl.int_range(pl.len()) == 3).then(0.5).otherwise("odds_decimal"),
        odds_american=pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise("odds_american"),
    )
    wanted = oe.fair(bad)
    half = pl.int_range(pl.len()) % (ODDS.height // 2)
    for numbers in (half, pl.when(half > 5).then(half)):
        rows = oe.fair(bad.with_columns(row=numbers.cast(pl.UInt32)))
        assert rows.drop("row").equals(wanted)


@pytest.mark.parametrize("book", ["pinnacle", "novig"])
def test_one_reference_that_was_not_measured_alone_gives_no_fair_price(book: str) -> None:
    odds, is_measured = two_way((book, 1.9, 2.05), ("betmgm", 2.1, 1.75)), book == "pinnacle"
    with nullcontext() if is_measured else nothing("no fair price"):
        rows = oe.fair(odds).filter(sportsbook="betmgm")
    for name in ("fair_probability", "ev", "reference"):
        assert rows[name].is_not_null().to_list() == [is_measured] * 2


def test_columns_row_and_id_of_the_caller_stay() -> None:
    own = ODDS.with_columns(row=pl.lit(7), id=pl.int_range(pl.len()))  # nothing is renamed, so there is no warning
    assert oe.fair(own).select("row", "id").equals(own.select("row", "id"))


def test_columns_of_the_caller_are_not_overwritten() -> None:
    with pytest.raises(oe.OddsError, match="odds must not have columns that fair adds, got hold, ev: rename or drop"):
        oe.fair(ODDS.with_columns(ev=1.0, hold=2.0))


def test_net_odds_are_after_commission() -> None:
    odds = two_way(("pinnacle", 1.95, 1.95), ("fanduel", 2.1, 1.75))
    rows = oe.fair(odds, sharp="pinnacle", commission={"fanduel": 0.5})
    assert rows["net_odds"].to_list() == pytest.approx([1.95, 1.95, 1.55, 1.375])


@pytest.mark.parametrize(("live", "wins"), [(False, 2.1), (True, 1.0 / (1 / 2.1 + 0.03 / 2.1 * (1 - 1 / 2.1)))])
def test_a_fee_in_play_lowers_prices_in_play_only(live: bool, wins: float) -> None:
    odds = two_way(("pinnacle", 1.95, 1.95), ("novig", 2.1, 1.75)).with_columns(is_live=live)
    rows = oe.fair(odds, sharp="pinnacle", guards=[]).filter(sportsbook="novig")
    assert rows["net_odds"][0] == pytest.approx(wins)
    assert rows["ev"][0] == pytest.approx(0.5 * wins - 1.0)


def test_the_error_over_a_reference_is_the_spread_of_the_other_books_around_it() -> None:
    said = dict(zip((*SOME, "pinnacle"), (0.0, 0.1, -0.1, 0.05, 0.3, 0.02), strict=True))
    rows = oe.fair(pl.DataFrame(moneylines(said)), sharp="pinnacle", now=NOW).filter(selection="Home")
    assert rows.height == len(said)
    for book, p, error in rows.select("sportsbook", "fair_probability", "fair_error").iter_rows():
        if book == "pinnacle":
            continue
        apart = sum((x - math.log(p / (1.0 - p))) ** 2 for other, x in said.items() if other != book)
        assert error == pytest.approx(p * (1.0 - p) * math.sqrt(apart / (5.0 * 4.0)))
