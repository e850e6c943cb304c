"""Payloads that are made from a contract: as it allows, or with something that it does not know."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from hypothesis import strategies as st

from oddsengine.feeds import Payload
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
from oddsengine.feeds.venue_contracts import Contract

UNHEARD_OF = "unheard_of"
_IDS = ("1", "2", "3")  # few, so that the parts of a payload name each other
_TIMES = ("2026-11-29T18:00:00Z", "2026-11-29T18:00:00.123456+00:00", "2026-12-24T00:15:00Z")
_SCALARS: dict[str, tuple[Any, ...]] = {
    "text": (*_IDS, "Fulham vs Chelsea", "Over 2.5", "", "x" * 300),
    "boolean": (True, False),
    "integer": (0, 1, 2, 3, -1, 10_000, 2**53),
    "number": (0, 0.5, 1.91, 2, -3.5, 1e9),
    "decimal": ("0", "0.5", "1.910", "-3.5", "+2.25"),
    "any": (None, "x", 1, [], {}),
    "time": _TIMES,
    "date": ("2026-11-29",),
    "seconds": (1_795_975_200, 1_796_000_000),
    "milliseconds": (1_795_975_200_000, 1_796_000_000_123),
}
_NOTHING, _NEW = object(), object()
Path = tuple[str | int, ...]  # to a value of a document


def payloads(contract: Contract, name: str) -> st.SearchStrategy[Any]:
    """Return documents of a table: fields without need may be absent or null, and numbers are at their limits."""
    return _of(contract.types[name])


def _of(kind: FieldType) -> st.SearchStrategy[Any]:
    if isinstance(kind, Record):
        fields = {name: _of(field) for name, field in kind.fields.items()}
        optional = {name: fields.pop(name) for name, field in kind.fields.items() if isinstance(field, Optional)}
        return st.fixed_dictionaries(fields, optional=optional)
    if isinstance(kind, OneOf):
        return st.sampled_from(kind.values)
    if isinstance(kind, Scalar):
        return st.sampled_from(_values(kind))
    inner = [_of(part) for part in kind.parts()]
    if isinstance(kind, Choice | Either):
        return st.one_of(inner)
    if isinstance(kind, Optional):
        return st.none() | inner[0]
    if isinstance(kind, Encoded):
        return inner[0].map(lambda value: msgspec.json.encode(value).decode())
    if isinstance(kind, MapOf):
        return st.dictionaries(st.sampled_from(_IDS), inner[0], max_size=3)
    assert isinstance(kind, ListOf)
    lists = st.lists(inner[0], max_size=3)
    return lists.map(lambda items: ",".join(map(str, items))) if kind.commas else lists


def _values(kind: Scalar) -> tuple[Any, ...]:
    """Return some values of a scalar, among them its limits."""
    if kind.least is None or kind.most is None:
        return _SCALARS[kind.name]
    limits = (kind.least, (kind.least + kind.most) / 2, kind.most)
    return tuple(map(int, limits)) if kind.name.startswith("integer") else limits


def mutated(contract: Contract, name: str, document: Any, within: Path = ()) -> st.SearchStrategy[Any]:
    """Return a document of a table with some things changed, all of them within a place of it.

    A field is missing, null or new, an enumeration has a new value, a number is a text, too large or none.
    """
    places = [
        (path, kind) for path, kind in _places(contract.types[name], document, ()) if path[: len(within)] == within
    ]
    changes = st.lists(st.sampled_from(places).flatmap(_change), min_size=1, max_size=3)
    return changes.map(lambda found: _changed(document, found))


def _change(place: tuple[Path, FieldType]) -> st.SearchStrategy[tuple[Path, Any]]:
    path, kind = place
    values: list[Any] = [_NOTHING, None]
    if isinstance(kind, OneOf):
        values += [*kind.values, UNHEARD_OF, 5]
    elif isinstance(kind, Scalar):
        values += [*_values(kind), *map(str, _values(kind)), -1, 1e300, "", [], True]
    elif isinstance(kind, Record):
        values += [_NEW, [], "x"]
    else:
        values += [[], {}, "x", 5]
    return st.sampled_from(values).map(lambda value: (path, value))


def _changed(document: Any, changes: Sequence[tuple[Path, Any]]) -> Any:
    whole = [msgspec.json.decode(msgspec.json.encode(document))]
    for path, value in changes:
        *steps, last = 0, *path
        with suppress(KeyError, IndexError, TypeError):  # an earlier change has removed it
            place: Any = whole
            for step in steps:
                place = place[step]
            if value is _NEW:
                place[last]["new_here"] = 1
            elif value is _NOTHING and isinstance(place, dict):
                del place[last]
            else:
                place[last] = None if value is _NOTHING else value
    return whole[0]


def _places(kind: FieldType, value: Any, path: Path) -> Iterator[tuple[Path, FieldType]]:
    """Yield each value of a document, with its type."""
    if isinstance(kind, Optional):
        yield from _places(kind.item, value, path)
        return
    if isinstance(kind, Either):
        yield from _places(next((item for item in kind.items if item.accepts(value)), kind.items[0]), value, path)
        return
    yield path, kind
    if isinstance(kind, Record) and isinstance(value, dict):
        for name, field in kind.fields.items():
            if name in value:
                yield from _places(field, value[name], (*path, name))
    elif isinstance(kind, Choice) and isinstance(value, dict) and value.get(kind.by) in kind.of:
        yield from _places(kind.of[value[kind.by]], value, path)
    elif isinstance(kind, ListOf | MapOf) and isinstance(value, list | dict):
        for key in range(len(value)) if isinstance(value, list) else list(value):
            yield from _places(kind.item, value[key], (*path, key))


def unheard_of(contract: Contract, name: str, document: Any) -> Iterator[tuple[str, Any]]:
    """Yield a document again and again, each time with another value that decides what a price is unheard of.

    Also yields where that is, such as `markets[1].state`.
    """
    for path, kind in _places(contract.types[name], document, ()):
        if isinstance(kind, OneOf) and kind.decides:
            place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
            yield place, _changed(document, [(path, UNHEARD_OF)])


def lost_rows(
    contract: Contract, name: str, document: Any, read: Callable[[Any], Payload]
) -> Iterator[tuple[str, list[dict[str, Any]], Payload]]:  # fmt: skip
    """Read a document of a table with each value that decides unheard of: where it is, the rows lost, and the rest.

    Fails if no row is lost, or if nothing says so; a price that takes part of another may change.
    """
    before = read(document)
    counted = sum(before.refused.values()) + sum(before.unmapped.values())
    for place, changed in unheard_of(contract, name, document):
        payload = read(changed)
        left = {row["id"] for row in payload.quotes}
        lost = [row for row in before.quotes if row["id"] not in left]
        unmapped = sum(payload.unmapped.values())
        assert lost or unmapped, place
        assert sum(payload.refused.values()) + unmapped > counted, place
        yield place, lost, payload
