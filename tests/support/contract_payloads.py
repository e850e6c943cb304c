"""Payloads that are made from a contract: as it allows, or with something that it does not know."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st

from oddsengine.feeds.contract import Contract
from oddsengine.feeds.contract_types import (
    Choice,
    Either,
    Encoded,
    FieldType,
    ListOf,
    MapOf,
    OneOf,
    Optional,
    Record,
    Scalar,
)

UNHEARD_OF = "unheard_of"
_IDS = ("1", "2", "3")  # few, so that the parts of a payload name each other
_TIMES = ("2026-11-29T18:00:00Z", "2026-11-29T18:00:00.123456+00:00", "2026-12-24T00:15:00Z")
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "text": st.sampled_from((*_IDS, "Fulham vs Chelsea", "Over 2.5", "", "x" * 300)),
    "boolean": st.booleans(),
    "integer": st.sampled_from((0, 1, 2, 3, -1, 10_000, 2**53)),
    "number": st.sampled_from((0, 0.5, 1.91, 2, -3.5, 1e9)),
    "decimal": st.sampled_from(("0", "0.5", "1.910", "-3.5", "+2.25")),
    "any": st.sampled_from((None, "x", 1, [], {})),
    "time": st.sampled_from(_TIMES),
    "date": st.just("2026-11-29"),
    "seconds": st.sampled_from((1_795_975_200, 1_796_000_000)),
    "milliseconds": st.sampled_from((1_795_975_200_000, 1_796_000_000_123)),
}


def payloads(
    contract: Contract, name: str, *, strange: bool = False, given: Mapping[str, st.SearchStrategy[Any]] | None = None
) -> st.SearchStrategy[Any]:  # fmt: skip
    """Return documents of a table: fields without need may be absent or null, and numbers are at their limits.

    `strange`: also values that no enumeration has, numbers as text, null, and fields that are new. `given` has the
    values of some fields, by table and field, such as `event.id`.
    """
    return _of(contract.types[name], strange, given or {}, 0)


def _of(
    kind: FieldType, strange: bool, given: Mapping[str, st.SearchStrategy[Any]], deep: int
) -> st.SearchStrategy[Any]:  # fmt: skip
    inner = [_of(part, strange, given, deep + 1) for part in kind.parts()] if not isinstance(kind, Record) else []
    if isinstance(kind, Record):
        return _records(kind, strange, given, deep)
    if isinstance(kind, Choice | Either):
        return st.one_of(inner)
    if isinstance(kind, OneOf):
        usual = st.sampled_from(kind.values)
        return st.one_of(usual, usual, st.just(UNHEARD_OF)) if strange else usual
    if isinstance(kind, Optional):
        return st.none() | inner[0]
    if isinstance(kind, Encoded):
        return inner[0].map(lambda value: msgspec.json.encode(value).decode())
    if isinstance(kind, MapOf):
        return st.dictionaries(st.sampled_from(_IDS), inner[0], max_size=3)
    if isinstance(kind, ListOf):
        lists = st.lists(inner[0], max_size=3)
        return lists.map(lambda items: ",".join(map(str, items))) if kind.commas else lists
    assert isinstance(kind, Scalar)
    values = _SCALARS[kind.name.split(" ")[0]]
    if kind.least is not None and kind.most is not None:
        integral = kind.name.startswith("integer")
        limits = [kind.least, (kind.least + kind.most) / 2, kind.most]
        values = st.sampled_from([int(limit) if integral else limit for limit in limits])
    return values | values | values.map(str) | st.none() if strange else values


def _records(
    kind: Record, strange: bool, given: Mapping[str, st.SearchStrategy[Any]], deep: int
) -> st.SearchStrategy[Any]:  # fmt: skip
    needed: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for name, field in kind.fields.items():
        values = given.get(f"{kind.name}.{name}") or _of(field, strange, given, deep + 1)
        (optional if isinstance(field, Optional) else needed)[name] = values
    if strange:
        optional["new_here"] = st.sampled_from((1, "x", None, {}))
    return st.fixed_dictionaries(needed, optional=optional)


def unheard_of(contract: Contract, name: str, document: Any) -> Iterator[tuple[str, Any]]:
    """Yield a document again and again, each time with another value that decides what a price is unheard of.

    Also yields where that is, such as `markets[1].state`.
    """
    for path in _deciding(contract.types[name], document, ()):
        changed = msgspec.json.decode(msgspec.json.encode(document))
        place = changed
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = UNHEARD_OF
        yield "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip("."), changed


def _deciding(kind: FieldType, value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(kind, OneOf):
        if kind.decides and value is not None:
            yield path
    elif isinstance(kind, Optional | Either):
        for part in kind.parts():
            yield from _deciding(part, value, path)
    elif isinstance(kind, Record) and isinstance(value, dict):
        for name, field in kind.fields.items():
            if name in value:
                yield from _deciding(field, value[name], (*path, name))
    elif isinstance(kind, Choice) and isinstance(value, dict) and value.get(kind.by) in kind.of:
        yield from _deciding(kind.of[value[kind.by]], value, path)
    elif isinstance(kind, ListOf | MapOf) and isinstance(value, list | dict):
        keys = range(len(value)) if isinstance(value, list) else list(value)
        for key in keys:
            yield from _deciding(kind.item, value[key], (*path, key))
