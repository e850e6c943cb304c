"""Rows that are encoded by columns are those that plain Python would write, field by field."""

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_running import without_ages

from oddsengine import catalog, find_ev
from oddsengine.query import values
from oddsengine_service.wire.columns import AGES, steady
from oddsengine_service.wire.ev import EV, Ev
from oddsengine_service.wire.numbers import american, moment, rounded

SCHEMA = find_ev(pl.DataFrame(schema={
    "sportsbook": pl.String, "event_id": pl.String, "market_type": pl.String, "selection": pl.String,
    "odds_decimal": pl.Float64,
})).schema  # fmt: skip
SIX = {"odds_decimal", "fair_probability", "kelly_percent", "push_probability", "prob_positive", "kelly_shrunk"}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pl.Float64: st.floats(-1e6, 1e6) | st.sampled_from([-100.0, -0.00001, 1e-6, 112.125, math.nan]),
    pl.Int64: st.integers(0, 1 << 40),
    pl.Boolean: st.booleans(),
    pl.String: st.sampled_from(["draftkings", "Nikola Jokić", 'a "b"\\\n\u2028']) | TEXTS,
    pl.Datetime: st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    pl.List: st.lists(TEXTS, max_size=2),
}
NEVER_NULL = {f.name for f in msgspec.structs.fields(Ev) if f.type in (float, int, bool, list[str])} | {
    "sportsbook", "net_odds", "id",
}  # fmt: skip
ROWS = st.fixed_dictionaries(
    {
        name: VALUES[dtype.base_type()] | (st.nothing() if name in NEVER_NULL - {"flags"} else st.none())
        for name, dtype in SCHEMA.items()
    }
    | {
        "odds_american": st.floats(-1e6, -100.0) | st.floats(100.0, 1e6),
        "no_vig_odds": st.floats(100.0, 1e6) | st.none(),
    }
)


def written(row: dict[str, Any]) -> dict[str, Any]:
    """A row by plain Python."""
    out: dict[str, Any] = {}
    for field in msgspec.structs.fields(Ev):
        name = {"ev_percent": "ev_percentage", "devig_book": "sharp_book", "odds_decimal_net": "net_odds"}.get(
            field.name, field.name
        )
        value: Any = values.player_id(row["player_name"]) if name == "player_id" else row[name]
        if name in ("odds_american", "no_vig_odds"):
            value = None if value is None else american(value)
        elif isinstance(value, float):
            value = rounded(value, 6 if name in SIX | {"net_odds"} else 4)
        elif isinstance(value, datetime):
            value = moment(value)
        elif name == "sportsbook":
            value = catalog.book(value).id
        elif value is None and field.type in (str, list[str]):
            value = "" if field.type is str else []
        out[field.name] = None if isinstance(value, float) and math.isnan(value) else value
    return out


def alike(one: Any, other: Any) -> bool:
    """Equal, or the two neighbours between which a half stands."""
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1.01e-6) or abs(one - other) <= 0.0101
    return bool(one == other)


@settings(max_examples=40)
@given(st.lists(ROWS, max_size=2))
def test_rows_by_columns_are_those_of_plain_python(rows: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA)
    raw, steady = EV.with_prints(frame)
    assert raw == EV.raw(frame)
    for row, got, mark in zip(rows, raw, steady, strict=True):
        shown = msgspec.json.decode(got)
        want = written(row)
        assert list(shown) == list(want)
        assert not [(name, want[name], shown[name]) for name in want if not alike(want[name], shown[name])]
        assert not [name for name in shown if str(shown[name]) == "-0.0"]
        again = EV.with_prints(pl.DataFrame([row | {"confidence_score": 1.0, "warnings": ["x"]}], schema=SCHEMA))
        moved = EV.with_prints(pl.DataFrame([row | {"book_count": row["book_count"] + 1}], schema=SCHEMA))
        assert again[1] == [mark] != moved[1]


AGED = (
    st.floats(-1e9, 1e9)
    | st.none()
    | st.booleans()
    | st.just("2026-11-22T13:00:00.000000Z")
    | st.lists(TEXTS.filter(lambda text: "]" not in text), max_size=2)
)
FIELDS = st.dictionaries(st.sampled_from(["id", "line", 'warnings":1', "a,b"]), st.integers(0, 1) | TEXTS, max_size=3)


@st.composite
def opportunities(draw: st.DrawFn) -> dict[str, Any]:
    """Fields in any order, ages among them, with sides that have ages too."""
    flat = [*draw(FIELDS).items(), *draw(st.dictionaries(st.sampled_from(AGES), AGED, max_size=3)).items()]
    side = dict(draw(st.permutations([*draw(FIELDS).items(), ("odds_age_seconds", draw(AGED))])))
    return dict(draw(st.permutations([*flat, ("side1", side), ("legs", [side])])))


@settings(max_examples=200)
@given(opportunities())
def test_the_text_without_ages_tells_the_same_rows_apart(row: dict[str, Any]) -> None:
    """Other ages leave it as it is, anything else changes it."""

    def aged(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: 7 if name in AGES else aged(each) for name, each in value.items()}
        return [aged(each) for each in value] if isinstance(value, list) else value

    text = steady(msgspec.json.encode(row))
    assert steady(msgspec.json.encode(aged(row))) == text
    for name in without_ages(row):
        assert steady(msgspec.json.encode(row | {name: "something else"})) != text
    for name in row["side1"].keys() - set(AGES):
        assert steady(msgspec.json.encode(row | {"side1": row["side1"] | {name: 2}})) != text
