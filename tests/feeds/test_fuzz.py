"""No input makes a reader raise anything but its own error, hang, or keep half of what it could not read.

The samples of every source are mutated as values (fields deleted, other types, huge and tiny numbers, deep nesting,
items doubled) and as bytes (cut, flipped, doubled keys, other encodings); whatever is read must pass the board's door.
"""

import copy
import math
import random
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from feeds.test_samples import SAMPLES, Bound, Sample
from hypothesis import given, settings
from hypothesis import strategies as st
from support.effort import less

from oddsengine.board.names import Names
from oddsengine.board.quotes import QuoteReader
from oddsengine.feeds import FeedError, Payload, football_data, table
from oddsengine.feeds.sse_parser import EventParser
from oddsengine.live.engine import Engine

NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
_SECONDS = 5.0
_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.0, 0.5, 100.0, 1e308, -1e308, 5e-324, 2**63, -(2**63), "", "x", "Draw", "1.91",
    "NaN", "1e400", "\x00", "é\u202e💥", "a" * 5000, [], {}, [[]], {"a": {"b": []}}, [None], "2026-02-30T00:00:00Z",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", 1e18, 10**15, -5,
)  # fmt: skip
_BYTES = (
    b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"NaN", b"Infinity", b"1e999", b'"\\ud800"', b'"\\udc00"', b'"\xff"',
    b"{}", b"[]", b"null",
    b'{"id":1,"id":2}', b"9" * 400, b"-", b'"', b",", b"}", b"\r\n", b"[" * 3000, b'{"a":' * 3000,
)  # fmt: skip


def state(read: Any) -> Any:
    """All that a reader remembers, as a copy."""
    if not isinstance(read, Bound):
        return None
    return copy.deepcopy(vars_of(read.reader))


def vars_of(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {name: vars_of(value) for name, value in thing.items()}
    if type(thing).__module__.startswith("oddsengine.feeds") and hasattr(thing, "__dict__"):
        return {name: vars_of(value) for name, value in vars(thing).items()}
    return thing


def payloads(found: Any) -> list[Payload]:
    if isinstance(found, football_data.SeasonFile):
        return list(found.payloads())
    return [getattr(found, "payload", found)]


def survive(sample: Sample, data: bytes) -> None:
    """Read; what was not read has left no trace, and what was read can be applied."""
    read = sample.make()
    before = state(read)
    said, began = "", time.process_time()
    try:
        found = read(data)
    except FeedError as error:
        found, said = None, str(error)
    assert time.process_time() - began < _SECONDS
    if found is None:
        assert said
        assert len(said) < 1000
        assert state(read) == before
        return
    engine = Engine()
    for payload in payloads(found):
        assert isinstance(payload, Payload)
        assert all(type(row.get("id", "")) in (str, type(None)) for row in payload.quotes)
        assert all(type(given) is str for given in payload.removed)
        QuoteReader().read_quotes(payload.quotes, Names(frozenset()))
        update = engine.step(payload.quotes, NOW if engine.now is None else engine.now)
        for odds in update.facts.odds[update.rows].tolist():
            assert math.isnan(odds) or 1.0 < odds < math.inf


def mutated(value: Any, rng: random.Random) -> Any:
    """A value with one place changed."""
    places = list(walk(value, []))
    path = rng.choice(places)
    if not path:
        return rng.choice(_ODD)
    out = copy.deepcopy(value)
    holder = out
    for step in path[:-1]:
        holder = holder[step]
    last, how = path[-1], rng.random()
    if how < 0.25:
        del holder[last]
    elif how < 0.35 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[last]))
    elif how < 0.45:
        deep: Any = holder[last]
        for _ in range(rng.choice((1, 5, 60))):
            deep = [deep]
        holder[last] = deep
    elif how < 0.55 and isinstance(holder, dict):
        holder[rng.choice(list(holder))] = copy.deepcopy(holder[last])
    else:
        holder[last] = rng.choice(_ODD)
    return out


def walk(value: Any, path: list[Any]) -> Any:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from walk(inner, [*path, name])


JSON = [name for name, sample in SAMPLES.items() if sample.data[:1] in b"[{" and not name.endswith("ndjson")]


@pytest.mark.parametrize("name", JSON)
@given(seed=st.integers(0, 2**32 - 1), changes=st.integers(1, 4))
def test_mutated_values(name: str, seed: int, changes: int) -> None:
    rng = random.Random(seed)
    value = msgspec.json.decode(SAMPLES[name].data)
    for _ in range(changes):
        value = mutated(value, rng)
    survive(SAMPLES[name], msgspec.json.encode(value))


@pytest.mark.parametrize("name", SAMPLES)
@given(seed=st.integers(0, 2**32 - 1))
def test_mutated_bytes(name: str, seed: int) -> None:
    rng = random.Random(seed)
    data = SAMPLES[name].data
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        to = min(to, at + rng.choice((0, 1, 3, 40, len(data))))
        put = rng.choice(_BYTES) if rng.random() < 0.6 else bytes(rng.randrange(256) for _ in range(rng.choice((1, 3))))
        data = data[:at] + put + data[to:]
    survive(SAMPLES[name], data)


@pytest.mark.parametrize("name", SAMPLES)
def test_cut_anywhere(name: str) -> None:
    data = SAMPLES[name].data
    for at in range(0, len(data), max(1, len(data) // 25)):
        survive(SAMPLES[name], data[:at])


@pytest.mark.parametrize("name", SAMPLES)
def test_other_encodings_and_nothing(name: str) -> None:
    text = SAMPLES[name].data.decode("utf-8-sig")
    for data in (text.encode("utf-16"), text.encode("utf-32"), b"\xef\xbb\xbf" + text.encode(), *_BYTES):
        survive(SAMPLES[name], data)


@given(st.binary(max_size=300), st.sampled_from([".csv", ".json", ".ndjson", ".parquet", ".xls", ""]))
@settings(max_examples=less(100, 30))
def test_tables_of_anything(data: bytes, suffix: str) -> None:
    survive(Sample(data, lambda: lambda body: table.read(body, suffix)), data)


JSONISH = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**63), 2**63)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(JSONISH, st.sampled_from(sorted(SAMPLES)))
def test_json_of_anything(value: Any, name: str) -> None:
    survive(SAMPLES[name], msgspec.json.encode(value))


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_streams_of_anything(chunks: list[bytes]) -> None:
    reader = EventParser(most=200)
    for chunk in chunks:
        try:
            for event in reader.feed(chunk):
                assert event.event
                assert b"\r" not in event.data
        except FeedError:
            break


def test_a_reader_that_half_applies_is_caught() -> None:
    """The check itself: a reader that keeps something before it raises does not survive."""

    class Careless:
        def __init__(self) -> None:
            self.kept = 0

        def read(self, data: bytes) -> Payload:
            self.kept += 1
            raise FeedError("No.")

    def make() -> Bound:
        reader = Careless()
        return Bound(reader, reader.read)

    Careless.__module__ = "oddsengine.feeds.careless"
    with pytest.raises(AssertionError):
        survive(Sample(b"", make), b"")
