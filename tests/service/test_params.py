"""Query parameters: every limit on both of its sides, without a server."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import pytest

from oddsengine_service.errors import Problem
from oddsengine_service.http.params import (
    MOST_QUERY,
    Param,
    Query,
    Words,
    parse,
    text_of,
)
from oddsengine_service.wire.texts import MOST_TEXT, MOST_WORDS


class Sample(Query):
    books: Annotated[Words, Param("Books.", aliases=("sportsbook",))] = None
    sports: Annotated[Words, Param("Sports.", choices=("tennis", "soccer"))] = None
    name: Annotated[str | None, Param("A name.")] = None
    live: Annotated[bool | None, Param("Live only.")] = None
    edge: Annotated[float | None, Param("Edge.")] = None
    odds: Annotated[float | None, Param("Odds.", low=1.0, high=10.0)] = None
    limit: Annotated[int, Param("Rows.", low=1, high=500)] = 50
    order: Annotated[str | None, Param("Order.", choices=("ev", "age"), signed=True)] = None
    group: Annotated[str | None, Param("Group.", choices=("event",))] = None
    parts: Annotated[Words, Param("Parts.", choices=("side",))] = None
    since: Annotated[datetime | None, Param("Since.")] = None
    until: Annotated[datetime | None, Param("Until.", unix=True)] = None


class Required(Query):
    team: Annotated[str, Param("Some id.")]
    other: Annotated[str | None, Param("Other.")] = None


class RequiredWithCode(Query):
    team: Annotated[str, Param("Some id.", missing="invalid_request")]
    other: Annotated[str | None, Param("Other.")] = None


WORDS = [f"w{at}" for at in range(MOST_WORDS + 1)]
MALFORMED = "malformed query string: it must be up to 200 percent-encoded name=value pairs in UTF-8"
NOON = datetime(2026, 2, 8, 12, tzinfo=UTC)


def read(query: str | bytes | dict[str, Any], kind: type[Query] = Sample) -> tuple[dict[str, Any], list[str]]:
    text = urlencode(query) if isinstance(query, dict) else query
    values, ignored = parse(text if isinstance(text, bytes) else text.encode(), kind)
    return vars(values), ignored


@pytest.mark.parametrize(("query", "values"), [
    ("", {}),
    ("books=", {}),
    ("books=+", {}),
    ("books=a,b,,a", {"books": ("a", "b")}),
    ("books=a&books=b&sportsbook=c", {"books": ("a", "b", "c")}),
    ("name=a&name=a", {"name": "a"}),
    ("&".join(["name=a"] * 200), {"name": "a"}),
    ("&".join(["name=%61"] * 200), {"name": "a"}),
    ({"name": "x" * MOST_TEXT}, {"name": "x" * MOST_TEXT}),
    ({"books": ",".join(WORDS[:-1])}, {"books": tuple(WORDS[:-1])}),
    ("sports=soccer,tennis", {"sports": ("soccer", "tennis")}),
    ("sports=soccer&sports=tennis", {"sports": ("soccer", "tennis")}),
    ("live=true", {"live": True}),
    ("live=+1", {"live": True}),
    ("live=False", {"live": False}),
    ("live=0", {"live": False}),
    ("edge=1e9", {"edge": 1e9}),
    ("edge=-1e9", {"edge": -1e9}),
    ("odds=1", {"odds": 1.0}),
    ("odds=10", {"odds": 10.0}),
    ("limit=1", {"limit": 1}),
    ("limit=%2B500", {"limit": 500}),
    ("order=-ev", {"order": "-ev"}),
    ("since=2026-02-08T12:00:00Z", {"since": NOON}),
    ("since=2026-02-08T12:00:00", {"since": NOON}),
    ("since=2026-02-08%2012:00:00", {"since": NOON}),
    ("since=2026-02-08T13:00:00+01:00", {"since": NOON}),
    (f"until={int(NOON.timestamp())}", {"until": NOON}),
])  # fmt: skip
def test_values(query: str | dict[str, Any], values: dict[str, Any]) -> None:
    assert read(query) == (values, [])


@pytest.mark.parametrize(("query", "said"), [
    ({"books": ",".join(WORDS)}, "books must have at most 500 entries, got 501"),
    ({"books": "x" * (MOST_TEXT + 1)}, "books must have at most 200 characters, got 201"),
    ({"name": "x" * (MOST_TEXT + 1)}, "name must have at most 200 characters, got 201"),
    ("name=%00", "name must not contain NUL characters"),
    ("name=a&name=b", "name must not be repeated, got 'a' and 'b'"),
    ("sports=tennis,golf", "sports must be one or more of tennis, soccer, got 'golf'"),
    ("live=2", "live must be true or false, got '2'"),
    ("edge=1_0", "edge must be a number from -1,000,000,000 to 1,000,000,000, got '1_0'"),
    ("edge=1000000001", "edge must be a number from -1,000,000,000 to 1,000,000,000, got '1000000001'"),
    ("edge=-1000000001", "edge must be a number from -1,000,000,000 to 1,000,000,000, got '-1000000001'"),
    ("edge=nan", "edge must be a number from -1,000,000,000 to 1,000,000,000, got 'nan'"),
    ({"edge": "\u0661"}, "edge must be a number from -1,000,000,000 to 1,000,000,000, got '\u0661'"),
    ("odds=0.99", "odds must be a number from 1 to 10, got '0.99'"),
    ("odds=10.01", "odds must be a number from 1 to 10, got '10.01'"),
    ("limit=0", "limit must be a whole number from 1 to 500, got '0'"),
    ("limit=501", "limit must be a whole number from 1 to 500, got '501'"),
    ("limit=1.0", "limit must be a whole number from 1 to 500, got '1.0'"),
    ({"limit": "0" * 18 + "1"}, "limit must be a whole number from 1 to 500, got '0000000000000000001'"),
    ("limit=-%2B5", "limit must be a whole number from 1 to 500, got '-+5'"),
    ("group=sport", "group must be event, got 'sport'"),
    ("parts=line,side", "parts must be side, got 'line'"),
    ("order=roi", "order must be one of ev, age, -ev, -age, got 'roi'"),
    ("since=1", "since must be a time (RFC 3339, such as 2026-02-08T18:00:00Z), got '1'"),
    ("since=2026-02-08T13:00:00+01",
     "since must be a time (RFC 3339, such as 2026-02-08T18:00:00Z), got '2026-02-08T13:00:00 01'"),
    ("until=x", "until must be a time (RFC 3339 or Unix seconds, such as 2026-02-08T18:00:00Z), got 'x'"),
    ("since=", "since must be a time (RFC 3339, such as 2026-02-08T18:00:00Z), got ''"),
    (b"name=\xff", MALFORMED),
    ("&".join(["name=a"] * 201), MALFORMED),
    ("&".join(["name=%61"] * 201), MALFORMED),
])  # fmt: skip
def test_errors(query: str | bytes | dict[str, Any], said: str) -> None:
    with pytest.raises(Problem) as caught:
        read(query)
    assert (caught.value.status, caught.value.code, str(caught.value)) == (400, "validation_error", said)


def test_a_query_string_may_have_16_kib() -> None:
    longest = b"x=" + b"a" * (MOST_QUERY - 2)
    assert read(longest) == ({}, ["x"])
    with pytest.raises(Problem, match=r"^query string must be at most 16,384 bytes, got 16,385$"):
        read(longest + b"a")


def test_unknown_parameters_are_named() -> None:
    assert read({"nonsense": 1, "y" * (MOST_TEXT + 1): 2, "limit": 5}) == ({"limit": 5}, ["nonsense", "y" * MOST_TEXT])


@pytest.mark.parametrize(("kind", "code"), [(Required, "validation_error"), (RequiredWithCode, "invalid_request")])
def test_what_is_required(kind: type[Query], code: str) -> None:
    assert read("team=x", kind) == ({"team": "x"}, [])
    for query in ("", "other=x", "team=+"):
        with pytest.raises(Problem, match=r"^team is required: some id$") as caught:
            read(query, kind)
        assert caught.value.code == code


class Books(Query):
    some: Annotated[Words, Param("Books.")] = None
    known: Annotated[Words, Param("Books.", choices=WORDS)] = None


@pytest.mark.parametrize("name", ["some", "known"])
def test_the_patterns_say_what_is_read(name: str) -> None:
    schema = re.compile(Books.declared[name].schema["pattern"])
    assert schema.search(",".join(WORDS[:-1]))
    assert not schema.search(",".join(WORDS))


@pytest.mark.parametrize(("name", "allowed", "schema"), [
    ("live", "true or false", {"type": "boolean"}),
    ("edge", "a number from -1,000,000,000 to 1,000,000,000", {"type": "number", "minimum": -1e9, "maximum": 1e9}),
    ("odds", "a number from 1 to 10", {"type": "number", "minimum": 1.0, "maximum": 10.0}),
    ("limit", "a whole number from 1 to 500", {"type": "integer", "minimum": 1, "maximum": 500}),
    ("group", "event", {"type": "string", "enum": ["event"]}),
])  # fmt: skip
def test_what_a_parameter_allows_is_described(name: str, allowed: str, schema: dict[str, Any]) -> None:
    field = Sample.declared[name]
    assert (field.allowed, field.schema) == (allowed, schema)


@pytest.mark.parametrize(("value", "text"), [
    (True, "true"), (False, "false"), (0, "0"), (2.5, "2.5"), ("a,b", "a,b"), (["a", 1], "a,1"),
])  # fmt: skip
def test_values_of_json_as_text(value: Any, text: str) -> None:
    assert text_of("name", value) == text


def test_objects_are_no_text() -> None:
    allowed = "name must be a string, a number, true, false, or a list of strings and numbers"
    for value, got in (({}, "an object"), ([{}], "a list of other things")):
        with pytest.raises(Problem, match=f"^{allowed}, got {got}$"):
            text_of("name", value)


class Renamed(Sample):
    """A parameter whose name is no name of an attribute, and one that is declared again."""

    begin: Annotated[datetime | None, Param("Begin.", name="from", aliases=("start",))] = None
    limit: Annotated[int, Param("Fewer rows.", low=1, high=10)] = 5


def test_a_query_has_the_parameters_of_its_bases_and_may_declare_them_again() -> None:
    assert read("from=2026-02-08T12:00:00Z&limit=10", Renamed) == ({"begin": NOON, "limit": 10}, [])
    assert read("start=2026-02-08T12:00:00Z&begin=1", Renamed) == ({"begin": NOON}, ["begin"])
    with pytest.raises(Problem, match=r"^limit must be a whole number from 1 to 10, got '11'$"):
        read("limit=11", Renamed)
    query, _ = parse(b"", Renamed)
    assert (query.limit, query.get("begin"), query.get("nonsense")) == (5, None, None)
    values = query.values({"limit": 7, "begin": "any"})
    assert values[list(Renamed.declared.defaults).index("limit")] == 7
    assert len(values) == len(Renamed.declared.all)
