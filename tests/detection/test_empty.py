"""Finders that return nothing for a reason say so, in the sentence of `oddsengine scan`; live boards never do."""

import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.rows import MOMENT, NBA, moneyline, nothing, row, table, total

import oddsengine as oe
from oddsengine.live.engine import Engine
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine_cli import main

FINDERS = (oe.find_ev, oe.find_arbitrage, oe.find_low_hold, oe.find_middles, oe.find_all)
INVALID = table(*(row(book, "total_points", "Over", 0.5, 220.5, **NBA) for book in "abc"))
TWO_BOOKS = table(moneyline("draftkings", 1.70, 2.22), moneyline("fanduel", 1.68, 2.24))


def stale() -> pl.DataFrame:
    old = [total(f"b{at}", 220.5, 2.0, 1.9, age=601 + at) for at in range(16)]
    return table(total("a", 220.5, 2.0, 1.9), *old)


@pytest.mark.parametrize("find", FINDERS, ids=lambda find: find.__name__)
def test_every_row_is_invalid(find: Any) -> None:
    with nothing("no valid row among 3; row 0: odds_decimal '0.5', "):
        find(INVALID)


@pytest.mark.parametrize(("suffix", "where"), [(".csv", "line 2"), (".ndjson", "line 1"), (".parquet", "row 0")])
def test_the_first_invalid_row_of_a_file_is_a_line(suffix: str, where: str, tmp_path: Path) -> None:
    path = tmp_path / f"odds{suffix}"
    oe.write_table(INVALID, path)
    assert oe.why(oe.read_odds(path)).startswith(f"no valid row among 3; {where}: odds_decimal '0.5', ")


@pytest.mark.parametrize("find", FINDERS[:2], ids=lambda find: find.__name__)
def test_nearly_all_are_stale(find: Any) -> None:
    moment = f"{MOMENT:%Y-%m-%dT%H:%M:%SZ}"
    with nothing(rf"32 of 34 rows are rejected: stale 32 \(older than 10 minutes at {moment}\)$"):
        find(stale(), now=MOMENT)
    with nothing("34 of 34 rows are rejected: stale 34"):
        find(stale(), now=MOMENT + timedelta(hours=1))


def test_two_books_have_no_fair_price() -> None:
    said = "no fair price: .* two other books .*; sharp names a reference instead"
    with nothing(said):
        assert oe.find_ev(TWO_BOOKS).height == 0
    with nothing(said):
        assert oe.find_all(TWO_BOOKS, max_hold=0.0).ev.height == 0
    with nothing(said):
        assert oe.fair(TWO_BOOKS)["ev"].null_count() == 4
    with nothing("sharp book of the catalog"):
        oe.find_ev(TWO_BOOKS, method="power")
    with nothing("a sharp book quotes in full"):
        oe.find_ev(TWO_BOOKS, sharp="pinnacle")


def test_why_is_the_sentence_of_the_warning() -> None:
    for odds, words in ((INVALID, {}), (stale(), {"now": MOMENT}), (TWO_BOOKS, {}), (TWO_BOOKS, {"sharp": "pinnacle"})):
        with pytest.warns(oe.OddsWarning) as said:
            oe.find_ev(odds, **words)
        assert [str(each.message) for each in said] == [oe.why(odds, **words)]


def test_why_without_a_reason_says_how_good_the_best_prices_are() -> None:
    said = oe.why(TWO_BOOKS, sharp="fanduel")
    edge = oe.find_ev(TWO_BOOKS, sharp="fanduel", min_ev=-100)["ev_percentage"][0]
    profit = oe.find_arbitrage(TWO_BOOKS, min_profit=-99)["profit_percent"][0]
    assert said.startswith("4 of 4 rows are usable; ")
    assert f"EV of {edge:.2f} %" in said
    assert f"pay {100 + profit:.2f} %" in said
    assert oe.why(TWO_BOOKS.clear()) == "0 of 0 rows are usable"


def test_prices_of_days_are_a_history() -> None:
    days = [TWO_BOOKS.with_columns(pl.col("last_seen_at") - timedelta(days=day)) for day in range(12)]
    assert "prices over 11 days are a history, not a board: backtest" in oe.why(pl.concat(days))
    assert "history" not in oe.why(pl.concat([TWO_BOOKS, days[9][:3]]), sharp="fanduel")


def test_rejected_rows_are_counted() -> None:
    """A book that quotes the market, but whose rows are rejected, does not quote it in full."""
    wrong = table(moneyline("draftkings", 1.70, 2.22), moneyline("pinnacle", 1.68, 2.24))
    first = pl.col("selection") == wrong["selection"][2]
    misspelt = pl.when((pl.col("sportsbook") == "pinnacle") & first).then(pl.lit("Somebody Else"))
    wrong = wrong.with_columns(misspelt.otherwise("selection").alias("selection"), selection_type=None)
    with nothing(r"quotes in full, .* 5 %; \d of 4 rows are rejected: "):
        oe.find_ev(wrong, sharp="pinnacle")


def test_a_command_says_the_same_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.csv"
    TWO_BOOKS.select("sportsbook", "event_id", "sport", "home_team", "away_team", "market_type", "selection",
                     "odds_decimal").write_csv(path)  # fmt: skip
    with pytest.warns(oe.OddsWarning) as warned:
        oe.find_ev(oe.read_odds(path))
    assert main(["scan", str(path), "--kind", "ev"]) == 0
    (text,) = (str(each.message) for each in warned)
    assert text.replace("; sharp ", "; --sharp ") in " ".join(capsys.readouterr().out.split())


def test_an_honest_nothing_is_no_warning() -> None:
    odds = oe.read_odds(SAMPLE_BOARD)
    assert oe.find_ev(odds, min_ev=29.0).height == 0
    assert oe.find_arbitrage(odds, min_profit=9.0).height == 0
    assert oe.find_ev(odds.clear()).height == 0
    assert oe.find_ev(TWO_BOOKS, sharp="fanduel", min_ev=20.0).height == 0


def test_the_warning_names_the_line_of_the_caller() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            oe.find_ev(TWO_BOOKS)
    assert [each.filename for each in said] == [__file__]  # once


def test_a_live_board_does_not_warn() -> None:
    engine = Engine()
    view = engine.view(keep=True)
    engine.step(TWO_BOOKS, MOMENT)
    engine.step(INVALID, MOMENT)
    engine.step([], MOMENT + timedelta(hours=1))
    assert not any(frame.height for frame in view.opportunities().frames.values())
