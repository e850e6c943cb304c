"""Rows that are encoded by columns are those that plain Python would write, field by field."""

import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.effort import less
from support.stream_running import without_ages

from oddsengine import catalog
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.question import extended
from oddsengine.detection.result_columns import ARBITRAGE_SCHEMA, EV_SCHEMA, LOW_HOLD_SCHEMA, MIDDLES_SCHEMA
from oddsengine.maths.odds import charged
from oddsengine.maths.rounding import exact
from oddsengine.query import values
from oddsengine.tables.levels import BET_RULES
from oddsengine_service.wire.contract import Ev, HoldSide, Leg, LowHold, MiddleSide, decorated, stateless
from oddsengine_service.wire.encoded_columns import AGES, american_of, steady
from oddsengine_service.wire.encodings import ENCODINGS
from oddsengine_service.wire.envelopes import GameState
from oddsengine_service.wire.numbers import american, americans, format_time, rounded

SCHEMAS = {"ev": EV_SCHEMA, "arbitrage": ARBITRAGE_SCHEMA, "low_hold": LOW_HOLD_SCHEMA, "middles": MIDDLES_SCHEMA}
SIX = {"odds_decimal", "decimal", "fair_probability", "implied_probability", "probability", "middle_probability",
       "kelly_percent", "push_probability", "prob_positive", "still_there", "kelly_shrunk", "odds_decimal_net",
       "key_number_probability", "tie_probability"}  # fmt: skip
AMERICAN = {"odds_american", "no_vig_odds", "american"}
BOOKS = {"sportsbook", "book"}
OTHER_NAMES = {
    "ev": {"ev_percent": "ev_percentage", "devig_book": "sharp_book", "odds_decimal_net": "net_odds",
           "game_id": "event_id", "game": "event_name", "market": "market_type", "start_time": "event_start_time"},
    "arbitrage": {"ev_percent": "ev_percentage", "devig_book": "sharp_book", "start_time": "event_start_time",
                  "timestamp": "last_seen_at"},
    "low_hold": {"odds_age_seconds": "oldest_odds_age_seconds", "start_time": "event_start_time"},
    "middles": {"roi_percentage": "expected_value", "start_time": "event_start_time"},
}  # fmt: skip
OF_SIDES = {"book": "sportsbook", "american": "odds_american", "decimal": "odds_decimal",
            "probability": "implied_probability"}  # fmt: skip
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
WORDS = ("draftkings", "Nikola Jokić", 'a "b"\\\n\u2028', "", "home", "away", "\x00\x1f")
NUMBERS = (-100.0, -0.00001, 1e-6, 112.125, 0.0, 3.0, 1e6)
NAMED = ("draftkings", "DraftKings", "Pinnacle", "home made", 'a"b')
STRUCTS: list[type[msgspec.Struct]] = [*(each.struct for each in ENCODINGS.values()), Leg, HoldSide, MiddleSide]
NEVER_NULL = {
    "sportsbook", "book", "net_odds", "id", "side1", "side2", "odds", "legs", "books", "all_books", "odds_ids",
    "deep_links", "deep_link", "max_bets", "warnings", "middle_numbers", "key_numbers", "worst_case_loss",
    "stake_percent", "row", "rows", "each",
    *(name for one in STRUCTS for name, kind in get_type_hints(one).items() if kind in (float, int, bool)),
} | {"american", "decimal", "implied_probability", "probability", "line", "fair_probability"}  # fmt: skip
NULLABLE = {"line": {"ev", "arbitrage", "low_hold"}, "fair_probability": {"ev", "low_hold"}}


def value(rng: random.Random, kind: str, name: str, dtype: Any) -> Any:
    """A value of a column, or of a field within one."""
    free = name not in NEVER_NULL or kind in NULLABLE.get(name, ())
    if free and name not in BOOKS | {"leg", "odds", "each"} and rng.random() < 0.2:
        return None
    if name in BOOKS:
        return rng.choice(NAMED)
    if kind == "arbitrage" and name in ("odds_decimal", "max_bet"):  # of which the largest size is calculated
        return rng.uniform(1.01, 9.0) if name == "odds_decimal" else rng.choice((0.0, 50.0, 1e3))
    if name in AMERICAN:
        return rng.choice((-100.0, 100.0, -rng.uniform(100.0, 1e4), rng.uniform(100.0, 1e4)))
    if isinstance(dtype, pl.Struct):
        return {field.name: value(rng, kind, field.name, field.dtype) for field in dtype.fields}
    if isinstance(dtype, pl.List):
        if name == "books":
            return rng.sample(("draftkings", "Pinnacle", "home made", 'a"b'), rng.randint(1, 3))
        inner = "leg" if name == "legs" else "each"
        count = rng.randint(2, 4) if name == "legs" else rng.randint(0, 3)
        return [value(rng, kind, inner, dtype.inner) for _ in range(count)]
    if dtype == pl.Float64:
        return rng.choice((*NUMBERS, rng.uniform(-1e4, 1e4), rng.random()))
    if dtype.is_integer():
        return rng.randint(0, 9)
    if dtype == pl.Boolean:
        return rng.random() < 0.5
    if dtype == pl.String:
        return rng.choice(WORDS)
    return datetime.fromtimestamp(rng.randint(0, 1 << 32), UTC) + timedelta(microseconds=rng.randint(0, 999_999))


def matched(row: dict[str, Any]) -> dict[str, Any]:
    """A row of low holds with as many ids as books, and all books."""
    sides = [side for name in ("side1", "side2", "side3") if (side := row.get(name)) and "books" in side]
    for side in sides:
        side["odds_ids"] = [f"{at:016x}" for at in range(len(side["books"]))]
        side["max_bets"] = [(None, 0.00004, 250.0)[at % 3] for at in range(len(side["books"]))]
        side["deep_links"] = [{"sportsbook": book, "deep_link": f'https://{at}.com/?q="'}
                              for at, book in enumerate(side["books"][1:])]  # fmt: skip
    return row | {"all_books": sorted({book for side in sides for book in side["books"]})} if sides else row


def rows_of(kind: str, schema: Mapping[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    """Rows of a frame."""
    return [
        matched({name: value(rng, kind, name, dtype) for name, dtype in schema.items()})
        for _ in range(rng.randint(0, 3))
    ]


# ---- by plain Python ----


def written(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it goes out."""
    out = fields(ENCODINGS[kind].struct, {**row, **own(kind, row)}, OTHER_NAMES[kind])
    if kind == "arbitrage":
        stakes = [leg["stake_percent"] for leg in out["legs"]]
        out["legs"][-1]["stake_percent"] = rounded(100.0 - sum(stakes[:-1]))
    if kind == "middles":
        out["side2"]["stake_percent"] = rounded(100.0 - out["side1"]["stake_percent"])
    return out


def own(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that a frame lacks."""
    out: dict[str, Any] = {"player_id": values.player_id(row["player_name"]), "game_state": row.get("game_state")}
    if kind == "low_hold":
        limits, age = catalog.thresholds(), row["oldest_odds_age_seconds"]
        fades = limits.confidence_age_live_s if row["is_live"] else limits.confidence_age_s
        try:
            out["confidence"] = 100.0 * math.exp(-(limits.stale_prematch_s if age is None else age) / fades)
        except OverflowError:
            out["confidence"] = math.inf
    elif kind == "arbitrage":
        out |= largest(row["legs"])
    elif kind == "middles":
        sides, inside, keys = (row["side1"], row["side2"]), row["middle_numbers"], row["key_numbers"]
        out |= {
            "guaranteed_roi": row["worst_case_loss"] if row["is_guaranteed_profit"] else None,
            "key_number_probability": (
                0.0 if not keys else row["middle_probability"] if set(inside) <= set(keys) else None
            ),
            "market_overround": 100.0 * (sum(side["implied_probability"] for side in sides) - 1.0),
            "is_team_total": row["team_side"] is not None,
            "team_name": row[f"{row['team_side']}_team"] if row["team_side"] in ("home", "away") else None,
        }
    return out


def largest(legs: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest arbitrage of single levels: as much as the leg with the least payout takes."""
    if any(leg["max_bet"] is None for leg in legs):
        return {}
    books = [catalog.book(leg["sportsbook"]) for leg in legs]
    net = [
        float(charged(leg["odds_decimal"], book.commission, book.fee)) for leg, book in zip(legs, books, strict=True)
    ]
    payout = min(odds * leg["max_bet"] for odds, leg in zip(net, legs, strict=True))
    if sum(1.0 / odds for odds in net) >= 1.0 - 1e-12:
        payout = 0.0
    stakes = [payout / odds for odds in net]
    return {"largest_stakes": [rounded(each) for each in stakes], "largest_payout": payout,
            "largest_profit": payout - sum(stakes)}  # fmt: skip


def fields(struct: type[msgspec.Struct], row: Mapping[str, Any], other: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: field_of(name, kind, row, row.get(other.get(name, name)), other)
        for name, kind in get_type_hints(struct).items()
    }


def home(book: str) -> str | None:
    link = catalog.link(book)
    return link.url if link else None


def field_of(name: str, kind: Any, row: Mapping[str, Any], value: Any, other: Mapping[str, str]) -> Any:
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if get_origin(kind) is dict:
        if name == "odds_ids":
            return {catalog.book(book).id: id_ for book, id_ in zip(row["books"], row["odds_ids"], strict=True)}
        if name == "max_bets":
            pairs = zip(row["books"], row["max_bets"], strict=True)
            return {catalog.book(book).id: rounded(most, 4) for book, most in pairs if most is not None}
        own = {catalog.book(link["sportsbook"]).id: link["deep_link"] for link in row["deep_links"]}
        books = [catalog.book(book).id for book in row["books"]]
        links = {book: own.get(book) or home(book) for book in books}
        return {book: link for book, link in links.items() if link}
    if name == "deep_link":
        return value or home(row["sportsbook"])
    nested = [one for one in (*kinds, *get_args(kind)) if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    if name == "odds":
        return fields(nested[0], row, other)
    if nested and value is not None:
        if isinstance(value, list):
            return [fields(nested[0], each, other) for each in value]
        return fields(nested[0], value, OF_SIDES if name.startswith("side") else {})
    if name == "terms_results":
        return [rounded(each) for each in value or ()]
    if name in ("books", "all_books"):
        return [catalog.book(book).id for book in value]
    if value is None:
        return "" if kind is str else [] if get_origin(kind) is list else None
    if name in BOOKS | {"sharp_book", "devig_book"}:
        return catalog.book(value).id
    if name in AMERICAN:
        return american(value)
    if float in kinds:
        return rounded(value, digits_of(name))
    return format_time(value) if isinstance(value, datetime) else value


def digits_of(name: str) -> int:
    """How many decimal places a number has."""
    return 2 if name in AMERICAN else 6 if name in SIX else 4


def differences(want: Any, got: Any, at: str = "") -> list[Any]:
    """Where two rows differ by more than the two neighbours between which a half stands."""
    if isinstance(want, dict) and isinstance(got, dict):
        if list(want) != list(got):
            return [(at, list(want), list(got))]
        return [each for name in want for each in differences(want[name], got[name], f"{at}.{name}")]
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [each for one, other in zip(want, got, strict=True) for each in differences(one, other, at)]
    if isinstance(want, float) and isinstance(got, float | int):
        digits = digits_of(at.rpartition(".")[2])
        close = math.isclose(want, got, rel_tol=1e-9, abs_tol=1.01 * 10.0**-digits)
        return [] if close and round(got, digits) == got and str(got) != "-0.0" else [(at, want, got)]
    if isinstance(want, float) and not math.isfinite(want):
        return [] if got is None else [(at, want, got)]
    return [] if want == got else [(at, want, got)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 32))
def test_rows_by_columns_are_those_of_plain_python(kind: str, seed: int) -> None:
    rules = dict.fromkeys(BET_RULES, pl.Float64) if seed % 2 else {}  # of a board that has them
    schema, encoding = dict(extended(SCHEMAS[kind], rules)), ENCODINGS[kind]
    rows = rows_of(kind, schema, random.Random(seed))
    frame = pl.DataFrame(rows, schema=schema)
    raw, prints = encoding.with_prints(frame)
    assert raw == encoding.raw(frame)
    for row, got, mark in zip(rows, raw, prints, strict=True):
        msgspec.json.decode(got, type=encoding.struct)
        assert not differences(written(kind, row), msgspec.json.decode(got))
        aged = row | {"confidence_score": 1.0, "quality_score": 2.0, "warnings": ["x"], "possibly_stale": True}
        aged = {name: value for name, value in aged.items() if name in schema}
        _, (marked,) = encoding.with_prints(pl.DataFrame([aged], schema=schema))
        assert marked == mark
        _, (other,) = encoding.with_prints(pl.DataFrame([row | {"is_live": not row["is_live"]}], schema=schema))
        assert other != mark
        assert encoding.raw(pl.concat([frame, frame]))[: len(raw)] == raw


def test_numbers_that_are_not_finite_are_null() -> None:
    row = dict.fromkeys(EV_SCHEMA) | {
        "is_live": True,
        "sportsbook": "b",
        "odds_american": math.nan,
        "ev_percentage": math.inf,
    }
    (raw,) = ENCODINGS["ev"].raw(pl.DataFrame([row], schema=EV_SCHEMA))
    found = msgspec.json.decode(raw)
    assert found["odds_american"] is found["ev_percentage"] is None
    assert list(found) == list(Ev.__struct_fields__)


def test_a_low_hold_of_two_outcomes_has_no_third_side() -> None:
    assert LowHold.__struct_fields__[-1] == "game_state"
    odds = {"odds_american": 100.0, "odds_decimal": 2.0, "implied_probability": 0.5, "fair_probability": None}
    of_books = {"books": ["b"], "deep_links": [], "odds_ids": ["1"], "max_bets": [None]}
    side = {"selection": "a", "line": 0.0, **odds, **of_books}
    row = dict.fromkeys(LOW_HOLD_SCHEMA) | {"is_live": False, "side1": side, "side2": side, "all_books": ["b"]}
    (raw,) = ENCODINGS["low_hold"].raw(pl.DataFrame([row], schema=LOW_HOLD_SCHEMA))
    found = msgspec.json.decode(raw)
    assert found["side3"] is None
    assert found["side1"]["deep_links"] == {}
    assert found["side2"]["odds_ids"] == {"b": "1"}


@pytest.mark.parametrize(("inside", "keys", "chance"), [
    ([3], [3], 0.125), ([6, 7], [6, 7], 0.125), ([3, 4], [3], None), ([4, 5], [], 0.0),
])  # fmt: skip
def test_the_probability_of_key_numbers(inside: list[int], keys: list[int], chance: float | None) -> None:
    """That of the middle where all its numbers are key numbers; of some alone nobody says it."""
    odds = {"odds_american": 100.0, "odds_decimal": 2.0, "implied_probability": 0.5, "fair_probability": 0.5}
    side = {"sportsbook": "b", "selection": "a", "line": 1.5, **odds, "stake_percent": 50.0}
    row = dict.fromkeys(MIDDLES_SCHEMA) | {"middle_probability": 0.125, "side1": side, "side2": side}
    frame = pl.DataFrame([row | {"middle_numbers": inside, "key_numbers": keys}], schema=MIDDLES_SCHEMA)
    (raw,) = ENCODINGS["middles"].raw(frame)
    assert msgspec.json.decode(raw)["key_number_probability"] == chance


@pytest.mark.parametrize("share", [33.333349, 12.345651])
def test_the_stakes_of_a_middle_sum_to_100(share: float) -> None:
    odds = {"odds_american": 100.0, "odds_decimal": 2.0, "implied_probability": 0.5, "fair_probability": 0.5}
    sides = [
        {"sportsbook": "b", "selection": "a", "line": 1.5, **odds, "stake_percent": percent}
        for percent in (share, 100.0 - share)
    ]
    row = dict.fromkeys(MIDDLES_SCHEMA) | {"side1": sides[0], "side2": sides[1], "key_numbers": []}
    (raw,) = ENCODINGS["middles"].raw(pl.DataFrame([row], schema=MIDDLES_SCHEMA))
    shown = [msgspec.json.decode(raw)[side]["stake_percent"] for side in ("side1", "side2")]
    assert shown == [round(share, 4), round(100.0 - round(share, 4), 4)]


def test_only_a_row_that_has_a_state_gets_one() -> None:
    game = GameState("3rd quarter", "4:20", 70, 68)
    assert decorated(msgspec.Raw(b'{"game_state":null}'), game) == {"game_state": game}
    assert decorated(msgspec.Raw(b'{"id":"a"}'), game) == {"id": "a"}
    assert decorated(msgspec.Raw(b'{"game_state":null,"id":"a"}')) == {"game_state": None, "id": "a"}


def test_links_of_the_sides_of_a_row_are_those_of_a_state() -> None:
    link, other, local = "https://{state}.a.test/1", "https://a.test/2", "https://nj.a.test/1"

    def row(first: str | None, second: dict[str, str], third: str | None) -> dict[str, Any]:
        return {
            "side1": {"book": "a", "deep_link": first}, "side2": {"books": ["a", "b"], "deep_links": second},
            "side3": {"book": "caesars", "deep_link": third},
        }  # fmt: skip

    home_page = "https://sportsbook.caesars.com/"
    raw = msgspec.Raw(msgspec.json.encode(row(link, {"a": link, "b": other}, home_page)))
    assert stateless(raw)
    assert decorated(raw, state="nj") == row(local, {"a": local, "b": other}, f"{home_page}us/nj/bet")
    assert decorated(raw) == row(None, {"b": other}, home_page)
    assert not stateless(msgspec.Raw(msgspec.json.encode(decorated(raw))))


def test_american_odds_of_a_column_are_those_of_its_numbers() -> None:
    values = [-100.0, -100.004, -99.996, -100.006, 100.0, 150.129, -110.5]
    assert pl.DataFrame({"x": values}).select(american_of(pl.col("x"))).to_series().to_list() == list(
        map(american, values)
    )


def test_numbers_have_four_digits() -> None:
    assert [rounded(value) for value in (1.23456, -0.00001, None)] == [1.2346, 0.0, None]
    assert [rounded(1.23456, 2), exact(1.23456), american(-100.001)] == [1.23, 1.2346, 100.0]
    prices = americans(np.array([1.909, 2.12344, 1.9]), np.array([np.nan, np.nan, -111.116]))
    assert prices == [-110.01, 112.34, -111.12]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=less(100, 30))
@given(seed=st.integers(0, 1 << 32))
def test_the_print_of_a_row_is_that_of_all_but_its_ages(kind: str, seed: int) -> None:
    """After a change of a few fields, which may be ages or nested, prints are equal as the rest of the rows is."""
    rng = random.Random(seed)
    rows = [row for _ in range(3) for row in rows_of(kind, SCHEMAS[kind], rng)]
    for row in rows:
        other = matched(row | {name: value(rng, kind, name, SCHEMAS[kind][name]) for name in changed_fields(rng, kind)})
        frame = pl.DataFrame([row, other], schema=SCHEMAS[kind])
        raw, prints = ENCODINGS[kind].with_prints(frame)
        first, second = (without_ages(msgspec.json.decode(text)) for text in raw)
        assert (prints[0] == prints[1]) is (first == second)


def changed_fields(rng: random.Random, kind: str) -> list[str]:
    """Some columns; mostly ages."""
    aged = [name for name in SCHEMAS[kind] if name in AGES]
    return rng.sample(aged, rng.randint(0, len(aged))) + rng.sample(list(SCHEMAS[kind]), rng.randint(0, 1))


class _Odds(msgspec.Struct):
    fair_probability: float | None
    probability: float = 0.5


class _Side(msgspec.Struct):
    odds: _Odds


class _Row(msgspec.Struct):
    side1: _Side
    sides: list[_Side]


@pytest.mark.parametrize(
    ("fair", "other", "same"),
    [
        (0.502046, 0.501921, True), (0.5, 0.500001, True), (0.504, 0.506, False), (0.001, 0.009, False),
        (0.0012, 0.00123, True), (5e-05, 6e-05, False), (1.0, 0.99, False), (0.5, None, False), (None, None, True),
    ],
)  # fmt: skip
def test_fair_probabilities_count_in_two_digits(fair: float | None, other: float | None, same: bool) -> None:
    """Whoever follows a low hold does not get it again for a fraction of a percent, nor lose a whole one."""
    rows = [_Row(_Side(_Odds(one)), [_Side(_Odds(one))]) for one in (fair, other)]
    assert (steady(rows[0]) == steady(rows[1])) is same
    assert steady(_Odds(fair, 0.502046)) != steady(_Odds(fair, 0.501921))
