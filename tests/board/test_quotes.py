"""Quotes: what is taken, in which forms, and what costs a row, at the engine and in tables."""

import json
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from live.test_interruption import NOW, quote

import oddsengine as oe


def test_a_frame_with_row_numbers_of_its_own() -> None:
    rows = [quote("x", book="a"), quote("y", book="b"), quote("z", book=""), quote("w", book="d")]
    prices = pl.Series("odds_american", [110.0, -120.0, 130.0, 140.0])
    frame = pl.DataFrame(rows).drop("odds_decimal").with_columns(prices, row=pl.Series([2, 3, 4, 5]))
    engine = oe.Engine()
    engine.step(frame, NOW)
    assert engine.table().sort("sportsbook")["odds_american"].to_list() == [110.0, -120.0, 140.0]


def test_a_link_with_the_separator_of_links() -> None:
    engine = oe.Engine()
    engine.step([quote(deep_link="https://x/?q=\x1fz\x1fz", max_bet=3.0)], NOW)
    assert engine.table().select("deep_link", "sportsbook_name", "max_bet").row(0) == ("https://x/?q= z z", None, 3.0)


def test_what_exchanges_say_beside_books_that_say_nothing(tmp_path: Path) -> None:
    """Prices of one batch with and without each field; a tape has them all."""
    given: list[dict[str, Any]] = [
        {}, {"max_bet": 3.0}, {"volume": 7.5}, {"volume": 0.0, "open_interest": 2.0, "is_main_line": True},
        {"exchange_token_id": "0x\x1f1", "volume_24h": 1e9}, {"is_alternate_line": False},
    ]  # fmt: skip
    names = ("max_bet", "volume", "volume_24h", "open_interest", "exchange_token_id", "is_main_line")
    wanted = [tuple("0x 1" if name == "exchange_token_id" and name in own else own.get(name) for name in names)
              for own in given]  # fmt: skip
    engine, writer = oe.resume(tmp_path)
    with writer:
        engine.step([quote(book=f"b{at}", **own) for at, own in enumerate(given)], NOW)
        assert engine.table().sort("sportsbook").select(names).rows() == wanted
        engine.step([quote(book="b2", volume=8.0)], NOW + timedelta(seconds=1))
    table = oe.replay(tmp_path).table().sort("sportsbook")
    assert table.equals(engine.table().sort("sportsbook"))
    assert table["volume"].to_list() == [None, None, 8.0, 0.0, None, None]


def test_a_line_that_is_no_number_makes_no_new_rows() -> None:
    engine = oe.Engine()
    for _ in range(5):
        total: dict[str, Any] = dict(sport="basketball", market_type="total_points", line=math.nan)
        engine.step([quote("Over 220.5", book="fanduel", **total)], NOW)
    assert (engine.size, len(engine.raw_labels)) == (1, 1)


@pytest.mark.parametrize("field", ["odds_decimal", "odds_american", "line", "last_seen_at"])
def test_a_number_that_is_too_large_costs_its_row(field: str) -> None:
    engine = oe.Engine()
    update = engine.step([quote(), {**quote("Y"), field: 10**400}], NOW)
    assert engine.size == 1
    assert update.rejected.select("row", "field").rows() == [(1, field)]


def test_a_number_beyond_any_in_json() -> None:
    same = '"sportsbook":"a","event_id":"e","market_type":"moneyline"'
    text = f'[{{{same},"selection":"x","odds_decimal":1e999}},{{{same},"selection":"y","odds_decimal":2.0}}]'
    engine = oe.Engine()
    assert engine.step(text, NOW).rejected["row"].to_list() == [0]
    assert engine.size == 1


@pytest.mark.parametrize("quotes", ["[" * 100_000, None, 5])
def test_what_is_no_list_of_quotes(quotes: Any) -> None:
    with pytest.raises(oe.OddsError, match=r"quotes (must be|are not)"):
        oe.Engine().step(quotes, NOW)


def test_a_suspended_row_without_a_price_beside_a_bad_one() -> None:
    bare = {name: value for name, value in quote().items() if name != "odds_decimal"}
    update = oe.Engine().step([{**bare, "is_active": False}, {**bare, "sportsbook": ""}], NOW)
    assert update.rejected.select("row", "field").rows() == [(0, "odds_decimal"), (1, "sportsbook")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"removed": 5}, "removed must be a list, got 5"),
        ({"complete": "fanduel"}, "complete must be a list, got 'fanduel'"),
        ({"events": "x"}, "events must be a list, got 'x'"),
        ({"events": [3]}, "events must be mappings with event_id and status, got 3"),
    ],
)
def test_lists_that_are_none(words: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        oe.Engine().step([], NOW, **words)


def test_a_time_that_cannot_be() -> None:
    engine = oe.Engine()
    with pytest.raises(ValueError, match="now must be from 1900 to 2199, got the year 10000"):
        engine.step([quote(last_seen_at="9999-12-31T23:59:00-12:00")])
    engine.step([quote()], NOW)
    assert engine.size == 1


def test_an_empty_text_is_none() -> None:
    engine = oe.Engine()
    for text in (None, "", None):
        engine.step([quote(player_name=text)], NOW)
    assert (engine.size, len(engine.raw_labels)) == (1, 1)


@pytest.mark.parametrize(
    "odd",
    [
        {"odds_decimal": "+120"},
        {"odds_decimal": -110.0},
        {"odds_decimal": -110},
        {"selection": "A" * 1001},
        {"deep_link": "A" * 1001},
        {"last_seen_at": "2" * 1001},
        {"line": True},
        {"max_bet": True},
        {"last_seen_at": "2026-02-08T18:00:00+25:00"},
    ],
)
@pytest.mark.parametrize("beside", [True, False])
def test_both_readers_refuse_a_row_alike(odd: dict[str, Any], beside: bool) -> None:
    rows = [quote() | odd, quote(odds=132.0, book="a"), quote()][: None if beside else 1]
    table = oe.check_odds(pl.DataFrame([{k: str(v) for k, v in row.items()} for row in rows], infer_schema_length=None))
    for given in (rows, json.dumps(rows)):
        update = oe.Engine().step(given, NOW)
        assert update.rejected.drop("value").equals(table.rejected.drop("value"))
        assert update.rejected.height == 1


def test_a_price_did_not_change_after_it_was_seen() -> None:
    engine = oe.Engine()
    early = NOW - timedelta(seconds=30)
    engine.step([quote() | {"last_seen_at": early, "odds_changed_at": NOW}], NOW)
    assert engine.table().select("last_seen_at", "odds_changed_at").row(0) == (early, early)
