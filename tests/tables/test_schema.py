"""The door: what may come in, in which forms, and what is put aside with which reason."""

import math
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oddsengine as oe
from oddsengine.tables.casts import CASTS, PRICE_REASONS, TIME
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine.tables.schema import BAD_ROW_SCHEMA, ODDS_SCHEMA, OddsError, OddsTable, OddsWarning, check_odds

NOON = datetime(2026, 2, 8, 12, 0, tzinfo=UTC)
NO_NUMBER, NO_TIME, NO_PRICE = CASTS[pl.Float64][1], CASTS[pl.Datetime][1], PRICE_REASONS["odds_decimal"]


def prices(**columns: Any) -> pl.DataFrame:
    """Build a frame of the needed columns, each as long as the longest of those given."""
    height = max((len(v) for v in columns.values() if isinstance(v, (list, pl.Series))), default=1)
    needed = {"sportsbook": "a", "event_id": "e", "market_type": "moneyline", "selection": "home"}
    if not {"odds_decimal", "odds_american"} & columns.keys():
        needed["odds_decimal"] = 2.0  # type: ignore[assignment]
    return pl.DataFrame(
        {name: v if isinstance(v, (list, pl.Series)) else [v] * height for name, v in (needed | columns).items()}
    )


def faults(table: OddsTable) -> list[tuple[Any, ...]]:
    return table.rejected.rows()


def test_a_table_has_every_column_in_order() -> None:
    table = check_odds(prices(colour="red"))
    assert isinstance(table, OddsTable)
    assert table.columns == [*ODDS_SCHEMA, "colour", "row", "price_mismatch"]
    assert dict(table.schema) == ODDS_SCHEMA | {
        "colour": pl.String(), "row": pl.UInt32(), "price_mismatch": pl.Boolean(),
    }  # fmt: skip
    assert table.row(0, named=True) == dict.fromkeys(ODDS_SCHEMA) | {
        "sportsbook": "a", "event_id": "e", "market_type": "moneyline", "selection": "home",
        "odds_decimal": 2.0, "odds_american": 100.0, "odds_probability": 0.5,
        "is_live": False, "is_active": True, "flap": False, "rejected_upstream": False, "confirmed": False,
        "colour": "red", "row": 0, "price_mismatch": False,
    }  # fmt: skip
    assert dict(table.rejected.schema) == BAD_ROW_SCHEMA
    assert table.rejected.height == 0


def test_nulls_of_flags_take_the_default() -> None:
    table = check_odds(prices(is_live=[None, True], is_active=[None, False], flap=[None, True]))
    assert table.select("is_live", "is_active", "flap").rows() == [(False, True, False), (True, False, True)]


def test_a_checked_table_passes_as_it_is() -> None:
    table = check_odds(prices(odds_decimal=[2.0, 0.5]))
    assert check_odds(table) is table


def test_a_part_of_a_checked_table_keeps_its_row_numbers() -> None:
    table = check_odds(prices(odds_decimal=[0.5, 2.0, 3.0, 4.0]))
    for part in (
        table[1:],
        table.filter(pl.col("odds_decimal") > 2.0),
        pickle.loads(pickle.dumps(table))[1:],
    ):
        again = check_odds(part)
        assert again is not part
        assert again["row"].to_list() == [2, 3]
        assert again.rejected.height == 0
        assert again.equals(check_odds(again))


def test_a_part_that_was_spoilt_is_checked_again() -> None:
    table = check_odds(prices(odds_decimal=[2.0, 3.0]))
    again = check_odds(table.with_columns(odds_decimal=pl.lit(0.9), odds_american=None))
    assert again.height == 0
    assert again.rejected["row"].to_list() == [0, 1]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt32, pl.String])
def test_a_column_row_of_the_input_stays(dtype: type[pl.DataType]) -> None:
    given = pl.DataFrame(prices(odds_decimal=[2.0, 0.5, 3.0])).with_columns(row=pl.Series([7, 8, 9]).cast(dtype))
    with pytest.warns(
        OddsWarning, match="'row' of the input stays as it is; the position of each row, from 0, is 'odds"
    ):
        table = check_odds(given)
    assert table["row"].to_list() == given["row"].to_list()[::2]
    assert table["odds_row"].to_list() == [0, 2]
    assert table.rejected["odds_row"].to_list() == [1]
    again = check_odds(table.filter(pl.col("odds_decimal") > 2.0))  # says nothing: it was checked before
    assert (again["row"].to_list(), again["odds_row"].to_list()) == (given["row"].to_list()[2:], [2])
    assert check_odds(given, columns={"row": "line"})["line"].to_list() == [7.0, 9.0]


@pytest.mark.parametrize(
    "call",
    [check_odds, oe.prepare, oe.find_ev, oe.find_all, oe.markets, oe.rejected, oe.why],
    ids=lambda call: call.__name__,
)
def test_a_warning_is_at_the_line_of_the_caller(call: Callable[[pl.DataFrame], object]) -> None:
    given = pl.DataFrame(prices(odds_decimal=[2.0, 3.0])).with_columns(row=7)
    with pytest.warns(OddsWarning) as said:
        call(given)
    assert "'row' of the input stays" in str(said[0].message)
    assert {each.filename for each in said} == {__file__}


def test_an_id_that_is_no_text_is_named() -> None:
    with pytest.warns(OddsWarning, match="'id' of the input is 'odds_id' in results, as text"):
        table = check_odds(prices(odds_decimal=[2.0, 3.0], id=[7, 8]))
    assert table["id"].to_list() == ["7", "8"]
    assert check_odds(prices(odds_decimal=[2.0, 3.0], id=["7", "8"]))["id"].to_list() == ["7", "8"]
    assert check_odds(prices(odds_decimal=[2.0, 3.0], id=[7, 8]), columns={"id": "market_id"})["id"].null_count() == 2


@pytest.mark.parametrize("gone", ["sportsbook", "event_id", "market_type", "selection"])
def test_a_needed_column(gone: str) -> None:
    with pytest.raises(
        OddsError, match=rf"^not an odds table: it has no {gone} \(its columns: .*\); a column .*{gone}"
    ):
        check_odds(prices().drop(gone))


def test_a_price_is_needed() -> None:
    with pytest.raises(OddsError, match="it has no odds_decimal or odds_american"):
        check_odds(prices().drop("odds_decimal"))
    with pytest.raises(OddsError, match=r"columns: none"):
        check_odds(pl.DataFrame())


@pytest.mark.parametrize("thing", [[1], "rows", None, 1, pl.Series(), pl.Series([1])])
def test_only_frames(thing: Any) -> None:
    with pytest.raises(OddsError, match=r"expected a frame of polars, pandas or pyarrow, .* got (polars\.)?\w+"):
        check_odds(thing)


@pytest.mark.parametrize(
    "column",
    [
        {"odds_decimal": [[2.0]]},
        {"selection": [{"name": "home"}]},
        {"last_seen_at": [True]},
        {"line": [date(2026, 1, 1)]},
        {"sportsbook": [b"a"]},
    ],
)
def test_a_column_of_another_kind(column: dict[str, Any]) -> None:
    with pytest.raises(OddsError, match=rf"column {next(iter(column))} has the type "):
        check_odds(prices(**column))


@pytest.mark.parametrize("written", ["+120", " +120", "+2.5", "-110", "-110.0"])
def test_a_sign_belongs_to_american_odds(written: str) -> None:
    table = check_odds(prices(odds_decimal=[written, "1.9"]))
    assert table["row"].to_list() == [1]
    assert faults(table)[0][1:] == (
        "odds_decimal", written, "an American price: give it as odds_american", "bad_price",
    )  # fmt: skip


def test_american_odds_as_decimal_are_refused_whole() -> None:
    table = check_odds(prices(sportsbook=["a", "b", "a", "c"], odds_decimal=[-110.0, 102.0, 132.0, 101.5]))
    assert table["row"].to_list() == [3]
    assert set(table.rejected["reason"]) == {"an American price: give it as odds_american"}


def test_long_shots_beside_a_book_with_american_odds_stay() -> None:
    books = ["a", "b", "a", "b", "a"]
    table = check_odds(prices(sportsbook=books, odds_decimal=[-110.0, 101.0, 132.0, 1.9, 1.8]))
    assert table["row"].to_list() == [1, 3, 4]


@pytest.mark.parametrize("name", [n for n, dtype in ODDS_SCHEMA.items() if dtype == pl.String])
def test_a_text_has_a_bound(name: str) -> None:
    given = {"odds_decimal": [2.0, 2.0, 2.0], name: ["é" * 1001, "é" * 1000, "a"]}
    table = check_odds(prices(**given))
    assert table["row"].to_list() == [1, 2]
    (fault,) = faults(table)
    assert fault == (0, name, "é" * 200, "longer than 1,000 characters", "bad_value")
    assert not table.unpriced.height


@pytest.mark.parametrize("name", ["odds_decimal", "last_seen_at", "is_live", "line"])
def test_a_number_or_time_in_a_long_text(name: str) -> None:
    table = check_odds(prices(**{"odds_decimal": ["2", "2"], name: ["1" * 10_000_000, None]}))
    assert table.rejected.select("field", "reason").row(0) == (name, "longer than 1,000 characters")


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("far", [1 << 62, -(1 << 62)])
def test_times_beyond_the_calendar_are_no_times(unit: Any, far: int) -> None:
    """The others of the column are read; polars converts none of them to a datetime or text."""
    near = datetime(2026, 2, 8, 18, tzinfo=UTC)
    times = pl.Series([int(near.timestamp()) * (1000 if unit == "ms" else 1_000_000), far, None]).cast(
        pl.Datetime(unit)
    )
    price = {"sportsbook": ["a", "b", "c"], "event_id": "e", "market_type": "moneyline", "selection": "x"}
    frame = pl.DataFrame({**price, "odds_decimal": 2.0, "event_start_time": times, "last_seen_at": times})
    table = oe.check_odds(frame)
    assert table["event_start_time"].to_list() == [near, None]
    assert table.rejected.select("row", "value", "reason").rows() == [(1, f"{far} {unit} after 1970", NO_TIME)]
    with pytest.raises(ValueError, match=r"last_seen_at must be a time in every row, got '-?4611686018427387904"):
        oe.scan_history(frame)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"every": 1e300}, "every must be a number of seconds above 0, at most 31,536,000"),
     ({"latency_s": math.inf}, "latency_s must be from 0 to 31,536,000, got inf"),
     ({"settle_hours": 1e300}, "settle_hours must be from 0 to 8,760, got 1e"),
     ({"settle_hours": math.nan}, "settle_hours must be from 0 to 8,760, got nan")],
)  # fmt: skip
def test_spans_of_time_are_finite(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        oe.backtest(SAMPLE_BOARD, oe.Strategy(), **given)


def test_a_column_given_twice_is_named() -> None:
    names = ["event_id", "sportsbook", "event_id"]
    arrow = pa.table([pa.array(["x"])] * 3, names=names)
    said = "each column must occur once, got 'event_id' more than once"
    for frame in (arrow, arrow.to_reader(), pd.DataFrame([["x"] * 3], columns=names)):
        with pytest.raises(oe.OddsError, match=f"not an odds table: {said}"):
            oe.check_odds(frame)
        with pytest.raises(ValueError, match=said):
            oe.flatten(frame)


@pytest.mark.parametrize("name", ["odds_decimal", "line", "max_bet"])
def test_a_flag_is_no_number(name: str) -> None:
    table = check_odds(prices(**{"odds_decimal": [2.0, 2.0], name: [True, None]}))
    assert faults(table)[0][1:4] == (name, "true", NO_PRICE if name == "odds_decimal" else NO_NUMBER)


def test_an_offset_has_less_than_a_day() -> None:
    table = check_odds(prices(odds_decimal=[2.0], last_seen_at=["2026-02-08T18:00:00+25:00"]))
    assert table.rejected["reason"].to_list() == [NO_TIME]


def test_an_empty_table() -> None:
    for frame in (prices().clear(), pl.DataFrame(schema=ODDS_SCHEMA)):
        table = check_odds(frame)
        assert table.height == 0
        assert table.columns[: len(ODDS_SCHEMA)] == list(ODDS_SCHEMA)
        assert table.rejected.height == 0


# Prices


@pytest.mark.parametrize(
    ("american", "decimal"),
    [(100, 2.0), (150, 2.5), (-200, 1.5), (-110, 1 + 100 / 110), (400_000, 4001.0)],
)
def test_american_becomes_decimal(american: int, decimal: float) -> None:
    table = check_odds(prices(odds_american=[american]))
    assert table.select("odds_american", "odds_decimal", "odds_probability").row(0) == (
        float(american), decimal, 1.0 / decimal,
    )  # fmt: skip


def test_a_negative_limit_is_unknown() -> None:
    table = check_odds(prices(odds_american=[150, 150, 150], max_bet=[-1.0, 0.0, 20.0]))
    assert table["max_bet"].to_list() == [None, 0.0, 20.0]


def test_minus_100_is_plus_100() -> None:
    table = check_odds(prices(odds_american=[-100]))
    assert table.select("odds_american", "odds_decimal").row(0) == (100.0, 2.0)


@given(st.floats(1.000001, 1e6))
def test_the_forms_of_a_price_agree(decimal: float) -> None:
    table = check_odds(prices(odds_decimal=[decimal]))
    american = table["odds_american"].item()
    assert abs(american) >= 100.0 * (1 - 1e-12)
    again = check_odds(prices(odds_american=[american if abs(american) >= 100.0 else 100.0]))
    assert math.isclose(again["odds_decimal"].item(), decimal, rel_tol=1e-9)
    assert table["odds_probability"].item() == 1.0 / decimal


def test_the_decimal_price_wins() -> None:
    table = check_odds(prices(odds_decimal=[2.5, None], odds_american=[150, -200]))
    assert table["odds_decimal"].to_list() == [2.5, 1.5]
    assert table["odds_american"].to_list() == [150.0, -200.0]


def test_a_given_probability_is_not_read() -> None:
    for name in ("odds_probability", "probability"):
        table = check_odds(prices(odds_decimal=[4001.0], **{name: ["0.0002"]}))
        assert table["odds_probability"].item() == 1 / 4001.0
        assert "probability" not in table.columns


def test_two_prices_that_differ_are_marked_not_rejected() -> None:
    table = check_odds(
        prices(
            odds_decimal=[2.5, 2.5, 2.5, 2.5, 2.5, None],
            odds_american=[150.0, 153.0, 147.0, -150.0, 50.0, 150.0],
        )
    )
    assert table["price_mismatch"].to_list() == [False, True, True, True, True, False]
    assert table["odds_decimal"][0] == 2.5
    assert table.rejected.height == 0


def test_one_percent_apart_is_no_mismatch() -> None:
    table = check_odds(prices(odds_decimal=[2.0, 2.0], odds_american=[102.0, 102.1]))
    assert table["price_mismatch"].to_list() == [False, True]


@pytest.mark.parametrize("price", [1.0, 0.5, 0.0, -2.0, math.inf, -math.inf, 1e301])
def test_no_decimal_price(price: float) -> None:
    table = check_odds(prices(odds_decimal=[2.0, price], odds_american=150.0))
    assert table["row"].to_list() == [0]
    (fault,) = faults(table)
    assert float(fault[2]) == price
    assert fault[:2] + fault[3:] == (1, "odds_decimal", "not a finite price above 1", "bad_price")


@pytest.mark.parametrize("price", [0.0, 50.0, -99.9, 99.9, math.inf, -math.inf, -1e20, 1e305])
def test_no_american_price(price: float) -> None:
    table = check_odds(prices(odds_american=[price, 110.0]))
    assert table["row"].to_list() == [1]
    (fault,) = faults(table)
    assert fault[0:2] == (0, "odds_american")
    assert fault[4] == "bad_price"


@pytest.mark.parametrize("column", ["odds_decimal", "odds_american"])
@pytest.mark.parametrize("none", [None, math.nan])
def test_a_price_that_was_not_given(column: str, none: float | None) -> None:
    table = check_odds(prices(**{column: pl.Series([none, 150.0], dtype=pl.Float64)}))
    (fault,) = faults(table)
    assert fault[0] == 0
    assert fault[1] == column
    assert fault[3:] == ("no price given", "bad_price")


def test_a_missing_decimal_price_is_made_from_the_american() -> None:
    table = check_odds(prices(odds_decimal=[math.nan, None, 3.0], odds_american=150.0))
    assert table["odds_decimal"].to_list() == [2.5, 2.5, 3.0]


@pytest.mark.parametrize("form", ["+150", " +150 ", "+1.5e2", "150", "150.0", " 150"])
def test_american_text(form: str) -> None:
    assert check_odds(prices(odds_american=[form]))["odds_decimal"].item() == 2.5


def test_even_money_in_words() -> None:
    assert check_odds(prices(odds_american=["EVEN", "ev", "-200"]))["odds_decimal"].to_list() == [
        2.0,
        2.0,
        1.5,
    ]


# Casts


def test_text_is_read_as_what_it_stands_for() -> None:
    table = check_odds(
        prices(
            odds_decimal=["1.95", " 2.05 "],
            line=["-2.5", "+2.5"],
            is_live=["true", "0"],
            is_active=["1", "FALSE"],
            max_bet=["", "1e3"],
            event_id=pl.Series([7, 8]),
            sportsbook=pl.Series(["a", "b"], dtype=pl.Categorical),
        )
    )
    assert table.rejected.height == 0
    assert table["odds_decimal"].to_list() == [1.95, 2.05]
    assert table["line"].to_list() == [-2.5, 2.5]
    assert table["is_live"].to_list() == [True, False]
    assert table["is_active"].to_list() == [True, False]
    assert table["max_bet"].to_list() == [None, 1000.0]
    assert table["event_id"].to_list() == ["7", "8"]
    assert table["sportsbook"].to_list() == ["a", "b"]


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Int64, pl.UInt8, pl.Decimal(10, 2)])
def test_numbers_of_any_kind(dtype: Any) -> None:
    table = check_odds(prices(odds_decimal=pl.Series([2, 3]).cast(dtype), is_live=pl.Series([1, 0]).cast(dtype)))
    assert table["odds_decimal"].to_list() == [2.0, 3.0]
    assert table["is_live"].to_list() == [True, False]


def test_columns_of_nothing_but_null() -> None:
    empty = pl.Series([None], dtype=pl.Null)
    table = check_odds(prices(line=empty, is_live=empty, last_seen_at=empty, home_team=empty))
    assert dict(table.schema).items() >= ODDS_SCHEMA.items()
    assert table.rejected.height == 0


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("odds_decimal", "1,950", NO_PRICE),
        ("line", "two", NO_NUMBER),
        ("max_bet", "lots", NO_NUMBER),
        ("is_live", "maybe", "not true or false"),
        ("is_active", "2", "not true or false"),
        ("last_seen_at", "yesterday", NO_TIME),
        ("event_start_time", "2026-13-01T00:00:00Z", NO_TIME),
        ("event_start_time", "2026-02-30", NO_TIME),
        ("odds_changed_at", "20260208", NO_TIME),
    ],
)
def test_a_value_that_cannot_be_read(name: str, value: str, reason: str) -> None:
    table = check_odds(prices(**{name: [value, None, ""]} | {"odds_american": 100}))
    assert table["row"].to_list() == [1, 2]
    assert faults(table) == [(0, name, value, reason, "bad_value")]


def test_a_line_that_is_not_finite() -> None:
    table = check_odds(prices(line=[math.inf, math.nan, 2.5]))
    assert table["line"].to_list() == [None, 2.5]
    assert faults(table) == [(0, "line", "inf", "not a finite number", "bad_value")]


@pytest.mark.parametrize("name", ["sportsbook", "event_id", "market_type", "selection"])
@pytest.mark.parametrize("nothing", [None, ""])
def test_a_value_that_is_needed(name: str, nothing: str | None) -> None:
    table = check_odds(prices(**{name: ["x", nothing, "y"]}))
    assert table["row"].to_list() == [0, 2]
    assert faults(table) == [(1, name, "", "nothing given", "missing_value")]


def test_one_line_a_row_in_order_naming_the_first_fault() -> None:
    table = check_odds(
        prices(
            sportsbook=["a", None, "b", "c", None],
            odds_decimal=["0.5", "0.5", "2", "x", "2"],
            last_seen_at=[None, None, None, "x", None],
        )
    )
    assert [(row, field) for row, field, *_ in faults(table)] == [
        (0, "odds_decimal"), (1, "sportsbook"), (3, "odds_decimal"), (4, "sportsbook"),
    ]  # fmt: skip
    assert table["row"].to_list() == [2]


# Times


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-08T12:00:00Z", "2026-02-08T12:00:00.000Z", "2026-02-08T12:00:00.000000+00:00",
        "2026-02-08T13:30:00+01:30", "2026-02-08T07:00:00-0500", "2026-02-08T07:00:00-05",
        "2026-02-08 12:00:00", "2026-02-08T12:00", "2026-02-08t12:00:00z", "2026-02-08 12:00:00 UTC",
        " 2026-02-08T12:00:00Z ",
        "2026-02-08T12:00:00.000000000Z", "2026-02-08T12:00:00,000Z",
        "1770552000", "1770552000000", "1770552000.0",
    ],
)  # fmt: skip
def test_forms_of_a_time(text: str) -> None:
    assert check_odds(prices(last_seen_at=[text]))["last_seen_at"].item() == NOON


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1_770_552_000, pl.Int64),
        (1_770_552_000_000, pl.Int64),
        (1_770_552_000_000_000, pl.Int64),
        (1_770_552_000_000_000_000, pl.Int64),
        (1_770_552_000.0, pl.Float64),
        (datetime(2026, 2, 8, 12), pl.Datetime("ms")),
        (NOON, pl.Datetime("ns", "UTC")),
        (NOON.astimezone(timezone(timedelta(hours=2))), pl.Datetime("us", "Europe/Helsinki")),
    ],
)
def test_kinds_of_time(value: Any, dtype: Any) -> None:
    table = check_odds(prices(last_seen_at=pl.Series([value]).cast(dtype)))
    assert table["last_seen_at"].item() == NOON
    assert table.schema["last_seen_at"] == TIME


def test_a_day_is_its_first_moment() -> None:
    for day in (pl.Series([date(2026, 2, 8)]), ["2026-02-08"]):
        assert check_odds(prices(event_start_time=day))["event_start_time"].item() == NOON.replace(hour=0)


def test_forms_may_mix() -> None:
    forms = ["2026-02-08T12:00:00Z", "1770552000", None, "2026-02-08 12:00+00", "soon"]
    table = check_odds(prices(last_seen_at=forms))
    assert table["last_seen_at"].to_list() == [NOON, NOON, None, NOON]
    assert faults(table) == [(4, "last_seen_at", "soon", NO_TIME, "bad_value")]


@given(
    st.datetimes(datetime(1973, 3, 4), datetime(5000, 1, 1)),
    st.one_of(st.none(), st.integers(-12 * 60, 14 * 60)),
)
def test_iso_times_come_back(moment: datetime, minutes: int | None) -> None:
    zone = UTC if minutes is None else timezone(timedelta(minutes=minutes))
    moment = moment.replace(tzinfo=zone)
    text = moment.replace(tzinfo=None).isoformat() if minutes is None else moment.isoformat()
    assert check_odds(prices(last_seen_at=[text]))["last_seen_at"].item() == moment


def test_timestamp_stands_in_for_last_seen_at() -> None:
    table = check_odds(prices(timestamp=["2026-02-08T12:00:00Z"]))
    assert table["last_seen_at"].item() == NOON
    assert "timestamp" not in table.columns
    both = check_odds(prices(timestamp=["other"], last_seen_at=["2026-02-08T12:00:00Z"]))
    assert both["last_seen_at"].item() == NOON
    assert both["timestamp"].item() == "other"


# Laws


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "", None]),
            st.one_of(st.none(), st.floats(), st.floats(1.01, 10.0)),
            st.one_of(st.none(), st.floats(), st.sampled_from([110.0, -110.0])),
        ),
        max_size=12,
    )
)
def test_every_row_is_good_or_rejected_and_text_reads_alike(
    rows: list[tuple[str | None, float | None, float | None]],
) -> None:
    schema = {"sportsbook": pl.String, "odds_decimal": pl.Float64, "odds_american": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        event_id=pl.lit("e"), market_type=pl.lit("m"), selection=pl.lit("s")
    )
    table = check_odds(frame)
    assert sorted([*table["row"], *table.rejected["row"]]) == list(range(len(rows)))
    assert table["row"].is_sorted()
    for row in table.iter_rows(named=True):
        assert row["sportsbook"] == "a"
        assert 1.0 < row["odds_decimal"] < math.inf
        assert abs(row["odds_american"]) < math.inf
        assert row["odds_probability"] == 1.0 / row["odds_decimal"]
    text = check_odds(frame.with_columns(pl.col("odds_decimal", "odds_american").cast(pl.String)))
    assert text.equals(table)
    assert text.rejected.drop("value").equals(table.rejected.drop("value"))
