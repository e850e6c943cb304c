"""Quotes read from JSON text in one pass are what the table's way makes of the same rows."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.effort import less

from oddsengine.board.names import Names
from oddsengine.board.quotes import QuoteReader, Quotes, _frame
from oddsengine.tables.schema import OddsError

ROW = {
    "event_id": "e", "sport": "tennis", "home_team": "X", "away_team": "Y", "market_type": "moneyline",
    "selection": "X", "sportsbook": "a", "odds_decimal": 1.9,
}  # fmt: skip
BOOKS = ("pinnacle", "Ünï", 'quo"te', "back\\slash", "tab\tbed", "é", "a")


def moments() -> st.SearchStrategy[str]:
    zones: Any = st.sampled_from([UTC, timezone(timedelta(hours=-5)), timezone(timedelta(hours=5, minutes=30)), None])
    times = st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31), timezones=zones)
    forms = st.sampled_from([datetime.isoformat, lambda t: t.isoformat().replace("+00:00", "Z"), str])
    return st.builds(lambda t, form: form(t), times, forms)


def rows() -> st.SearchStrategy[dict[str, Any]]:
    level = st.fixed_dictionaries({"odds_decimal": st.floats(0.9, 5.0), "stake": st.floats(0, 1e4) | st.integers(0, 9)})
    odds = st.one_of(st.floats(1.001, 1e4), st.integers(2, 50), st.integers(1010, 99000).map(lambda x: x / 1000))
    more = {
        "sportsbook": st.sampled_from(BOOKS), "odds_decimal": odds | st.just(0.5), "selection": st.sampled_from("XY"),
        "line": st.none() | st.sampled_from([0.0, -0.0, 2.5, -3, 10]), "odds_american": st.none() | st.just(-110),
        "last_seen_at": st.none() | moments(), "timestamp": st.none() | moments(),
        "odds_changed_at": st.none() | moments(), "event_start_time": st.none() | moments(),
        "is_live": st.none() | st.booleans(), "is_active": st.none() | st.booleans(),
        "rejected_upstream": st.none() | st.booleans(), "id": st.none() | st.text(max_size=5),
        "deep_link": st.none() | st.just("https://a.test/?b=1"), "max_bet": st.none() | st.floats(1, 1e6),
        "league": st.none() | st.just(""), "volume": st.none() | st.integers() | st.text(max_size=3),
        "levels": st.none() | st.lists(level, max_size=3) | st.just("2.2:100 2.0:3.5"),
        "commission": st.none() | st.sampled_from([0, 0.02, 1.0]), "contract_fee": st.none() | st.just(0.07),
    }  # fmt: skip
    return st.fixed_dictionaries({}, optional=more).map(lambda some: {**ROW, **some})


def read(door: QuoteReader, quotes: Any, names: Names) -> dict[str, Any]:
    return columns(door, door.read_quotes(quotes, names), names)


def columns(door: QuoteReader, said: Quotes, names: Names) -> dict[str, Any]:
    term, book = door.codes(said, names)
    return {
        "term": term.tolist(), "book": book.tolist(), "odds": said.odds.tolist(), "seen": said.seen.tolist(),
        "american": np.nan_to_num(said.american).tolist(), "changed": said.changed.tolist(),
        "start": said.start.tolist(), "flags": said.flags.tolist(), "links": said.links,
        "rejected": said.rejected.rows(),
    }  # fmt: skip


def by_table(quotes: list[dict[str, Any]], names: Names) -> dict[str, Any]:
    door = QuoteReader()
    return columns(door, door._table(_frame(quotes), names), names)


@given(st.lists(rows(), min_size=1, max_size=6), st.sampled_from([None, 1]), st.booleans())
@settings(max_examples=less(150, 40), deadline=None)
def test_a_text_is_what_its_rows_are_as_a_table(quotes: list[dict[str, Any]], indent: int | None, plain: bool) -> None:
    names = Names(frozenset())
    known = by_table(quotes, names)
    door = QuoteReader()
    text = json.dumps(quotes, indent=indent, ensure_ascii=plain).encode()
    first, again = read(door, text, names), read(door, text, names)
    assert first == known
    assert again == known
    assert read(door, quotes, names) == known


def decimals() -> st.SearchStrategy[str]:
    """Numbers of up to twenty digits with a point somewhere and a power of ten."""
    whole, power = st.integers(-(10**20), 10**20), st.integers(-45, 45)
    return st.builds(lambda a, b: f"{a}e{b}", whole, power) | st.builds(
        lambda a, b: f"{a}.{b}", st.integers(-99, 99), st.integers(0, 10**18)
    )


@given(st.floats(allow_nan=False, allow_infinity=False).map(repr) | decimals())
@example("9007199254740993")
@example("9007199254740991.5")
@example("1e22")
@example("123456789012345e-22")
@example("-1000000000e-7")
@settings(max_examples=less(2000, 400), deadline=None)
def test_a_number_is_rounded_as_python_does(number: str) -> None:
    text = json.dumps([{**ROW, "odds_american": 7.0}]).replace("7.0", number).encode()
    said = QuoteReader().read_quotes(text, Names(frozenset()))
    if said.rejected.height == 0:
        assert said.american.tolist() == [100.0 if float(number) == -100.0 else float(number)]  # one price: evens


@given(st.data())
@settings(max_examples=less(300, 100), deadline=None)
def test_what_is_no_json_is_refused_or_read_as_json_is(data: st.DataObject) -> None:
    """One byte of a good text is another one, or gone."""
    text = bytearray(
        json.dumps([{**ROW, "last_seen_at": "2026-02-08T10:00:00Z", "is_live": True, "x": 1.5e3}] * 2).encode()
    )
    at = data.draw(st.integers(0, len(text) - 1))
    text[at : at + 1] = data.draw(
        st.sampled_from([b"", b'"', b"}", b"]", b",", b"\\", b"0", b"\x00", b"\xff", b"-", b"e"])
    )
    names = Names(frozenset())
    door = QuoteReader()
    try:
        known: Any = json.loads(bytes(text))
    except ValueError:
        known = None
    if not isinstance(known, list) or not all(isinstance(row, dict) for row in known):
        with pytest.raises(OddsError):
            door.read_quotes(bytes(text), names)
        return
    assert read(door, bytes(text), names) == by_table(known, names)


@pytest.mark.parametrize(
    "field",
    ['"odds_decimal": 01.9', '"odds_decimal": 1.', '"odds_decimal": .9', '"odds_decimal": +2', '"odds_decimal": 2e',
     '"is_live": True', '"is_live": nul', '"league": "a\nb"', '"league": "a', "'league': null", '"league" null', "}{",
     '"x\\": null, "y": null'],
)  # fmt: skip
def test_broken_json_is_an_error(field: str) -> None:
    """Also in a row whose texts are known, which are not read again."""
    door, names = QuoteReader(), Names(frozenset())
    door.codes(door.read_quotes(json.dumps([ROW]), names), names)
    with pytest.raises(OddsError, match="JSON list of objects"):
        door.read_quotes(f"[{json.dumps(ROW)[:-1]}, {field}}}]", names)


@pytest.mark.parametrize(
    "field",
    ['"x": null', '"x": true', '"x": false', '"x": -1.5e3', '"x": "a\\\\\\"b"', '"is_live": true', '"is_live": false',
     '"is_active": null', '"deep_link": "https://a.test"', '"odds_american": 12345678901234567890.5',
     '"last_seen_at": "2026-02-08T10:00:00.123456+05:30"', '"league": null', '"line": null', '"line": -0.0'],
)  # fmt: skip
def test_usual_rows_are_read_without_a_table(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever field comes first or last; a row that is unusual is read as a table is, several times as slowly."""
    row, rows_of_tables = json.dumps(ROW), list[Any]()
    monkeypatch.setattr(QuoteReader, "_table", lambda *given: rows_of_tables.append(given))
    for text in (f"{{{field}, {row[1:]}", f"{row[:-1]}, {field}}}", f"{row[:-1]} , {field} }}, {row}"):
        assert QuoteReader().read_quotes(f"[{text}]", Names(frozenset())).rejected.is_empty()
    assert rows_of_tables == []
    QuoteReader().read_quotes(f'[{row[:-1]}, "odds_decimal": "1.9"}}]', Names(frozenset()))
    assert len(rows_of_tables) == 1


def test_numbers_of_many_digits_are_those_of_their_rows() -> None:
    odds = ["1.90000000000000000001", "2.1", "3.14159265358979323846", "0.30000000000000004e1"]
    american = ["-110", "12345678901234567890.5", "9007199254740993", "100.00000000000000000001"]
    rows = [
        json.dumps(ROW).replace("1.9", f'{decimal}, "odds_american": {whole}')
        for decimal, whole in zip(odds, american, strict=True)
    ]
    said = QuoteReader().read_quotes(f"[{', '.join(rows)}]", Names(frozenset()))
    assert said.odds.tolist() == [float(number) for number in odds]
    assert said.american.tolist() == [float(number) for number in american]


def test_a_text_that_ends_too_early_is_an_error() -> None:
    text = json.dumps([{**ROW, "odds_decimal": 1.9, "line": "-2.5e-13", "is_live": False, "x": None, "y": "text"}])
    text = text.replace('"-2.5e-13"', "-2.5e-13")
    for at in range(1, len(text)):
        with pytest.raises(OddsError):
            QuoteReader().read_quotes(text[:at], Names(frozenset()))


def test_texts_are_met_once() -> None:
    door, names = QuoteReader(), Names(frozenset())
    text = msgspec.json.encode([ROW, {**ROW, "sportsbook": "b"}])
    first = door.read_quotes(text, names)
    assert (first.new_terms, first.new_books) != ([], [])
    door.codes(first, names)
    second = door.read_quotes(text, names)
    assert (second.new_terms, second.new_books) == ([], [])
    assert second.book.tolist() == [0, 1]
    assert (
        door.read_quotes(msgspec.json.encode([{**ROW, "league": empty} for empty in ("", None)]), names).new_terms == []
    )
    other = Names(frozenset())  # whose codes are its own
    assert door.read_quotes(text, other).new_books == ["a", "b"]


def test_many_texts_are_told_apart() -> None:
    door, names = QuoteReader(), Names(frozenset())
    quotes = [{**ROW, "event_id": f"event {at}", "line": at % 7 / 2, "market_type": "total"} for at in range(9000)]
    text = msgspec.json.encode(quotes)
    terms, _ = door.codes(door.read_quotes(text, names), names)
    assert np.unique(terms).size == 9000
    assert (door.read_quotes(text, names).term == terms).all()


DAY = "2026-02-08"


@pytest.mark.parametrize(
    "text",
    [
        f"{DAY}T10:20", f"{DAY} 00:00:00", f"{DAY}T23:59:59Z", f"{DAY}t10:20:30z", f"{DAY}T10:20:30.5Z",
        f"{DAY}T10:20:30.123456+05:30", f"{DAY}T10:20:30-0530", f"{DAY}T10:20+23:59", "2024-02-29T00:00:00",
        "1969-12-31T23:59:59.999999", "0001-03-01T00:00:00Z", f"{DAY}T24:00:00Z", f"{DAY}T10:20:60Z",
        f"{DAY}T10:20:30+24:00", f"{DAY}T10:20:30+05", f"{DAY}T10:20:3Z", f"{DAY}T10:20:30.",
        f"{DAY}T10:20:30.1234567Z", f"{DAY}T10:20:30.123456789Z", f"{DAY}T10:20:30,5Z", f"{DAY}x10:20:30",
        "2026-02-29T00:00:00Z", "2026-13-01T00:00", "1900-02-29T00:00:00", "0000-01-01T00:00:00",
        f"{DAY}T10:20:30 Z", f" {DAY}T10:20:30Z", DAY, "", "1770573600",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["last_seen_at", "event_start_time"])
def test_a_time_is_read_as_that_of_a_table(name: str, text: str) -> None:
    quotes = [{**ROW, name: text}, {**ROW, "selection": "Y"}]
    known = by_table(quotes, Names(frozenset()))
    for given_ in (json.dumps(quotes).encode(), quotes):
        assert read(QuoteReader(), given_, Names(frozenset())) == known
