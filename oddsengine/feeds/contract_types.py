"""The types of fields in contracts, from short texts, and what is different in a document that should have one.

| text | a value |
| --- | --- |
| `text`, `boolean`, `integer`, `number`, `any` | as in JSON |
| `integer 1 to 100`, `number 0 to 1` | within limits |
| `decimal` | a number as text |
| `time`, `date` | ISO 8601 |
| `seconds`, `milliseconds` | whole, since 1970 |
| `one of a b` | one of these texts |
| `deciding one of a b` | the same, and it decides what a price is |
| `list of T`, `list of T up to 50` | a list; in a query, a parameter that is repeated |
| `comma list of T up to 50` | a text with values between commas |
| `map of T` | an object with any names |
| `encoded T` | a text that is JSON |
| `T or T` | either; `?` is of both, and an enumeration needs a name |
| `T?` | null, or no field at all |
| a name | another table of the contract |
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple

import msgspec

NEW_FIELD, NEW_VALUE, OTHER = "a new field", "a new value", "another value"
_SHOWN = 60  # characters of a value
_LONGEST = 200  # characters of a path
_LOOKED_AT = 50  # items of a list or a map, if a part of a document is looked at
_LIST = re.compile(r"(comma )?list of (.+?)(?: up to (\d+))?")
_RANGE = re.compile(r"(integer|number) (-?\d+(?:\.\d+)?) to (-?\d+(?:\.\d+)?)")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


class ContractError(ValueError):
    """A contract that is wrong itself."""


class Difference(NamedTuple):
    """A value that a contract does not know."""

    path: str  # in the document, such as `events[].state`
    kind: str  # NEW_FIELD, NEW_VALUE (of an enumeration) or OTHER
    came: str
    allowed: str
    decides: bool = False  # what a price is depends on it

    def __str__(self) -> str:
        return f"{self.path}: {self.came}; allowed: {self.allowed}"


class Walk:
    """The differences found in a document: in all of it, or in a part, which is another one with each `turn`."""

    def __init__(self, turn: int | None = None) -> None:
        self.differences: list[Difference] = []
        self._turn = turn

    def of(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return the items to look at."""
        if self._turn is None or len(items) <= _LOOKED_AT:
            return items
        step = -(-len(items) // _LOOKED_AT)
        return items[self._turn % step :: step]

    def apart(self) -> "Walk":
        """Return an empty one that looks at the same."""
        return Walk(self._turn)

    def differ(self, path: str, kind: str, value: Any, allowed: str, *, decides: bool = False) -> None:
        self.differences.append(Difference(_printable(path), kind, shown(value), allowed, decides))


def shown(value: Any) -> str:
    """Return a value in few characters."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return repr(text[:_SHOWN]) if isinstance(value, str) else text[:_SHOWN]


def _printable(path: str) -> str:
    """Return a path without what a terminal would obey; the names of fields in it are the source's."""
    short = path if len(path) <= _LONGEST else f"{path[:_LONGEST]}..."
    return "".join(one if one.isprintable() else "?" for one in short)


class FieldType:
    """A type; `name` is its text in a contract."""

    name: str

    def check(self, value: Any, path: str, walk: Walk) -> None:
        """Add what is different in a value."""
        raise NotImplementedError

    def read(self, text: str) -> Any:
        """Return the value that a parameter, a header or a part of a path is; the text itself if it is none."""
        return text

    def parts(self) -> Iterator["FieldType"]:
        """Yield the types that it is made of."""
        return iter(())

    def accepts(self, value: Any) -> bool:
        """Whether nothing is different in a value."""
        self.check(value, "", walk := Walk())
        return not walk.differences


@dataclass(frozen=True, repr=False)
class Scalar(FieldType):
    """A single value, with limits if it is a number."""

    name: str
    is_valid: Callable[[Any], bool]
    least: float | None = None
    most: float | None = None

    def check(self, value: Any, path: str, walk: Walk) -> None:
        if not self.is_valid(value) or not (
            self.least is None or self.most is None or self.least <= value <= self.most
        ):  # fmt: skip
            walk.differ(path, OTHER, value, self.name)

    def read(self, text: str) -> Any:
        if self.name.split(" ")[0] in ("boolean", "integer", "number", "seconds", "milliseconds"):
            try:
                return msgspec.json.decode(text)
            except msgspec.MsgspecError:
                pass
        return text


@dataclass(frozen=True, repr=False)
class OneOf(FieldType):
    """An enumeration of texts."""

    name: str
    values: tuple[str, ...]
    decides: bool

    def check(self, value: Any, path: str, walk: Walk) -> None:
        if value not in self.values:
            kind = NEW_VALUE if isinstance(value, str) else OTHER
            walk.differ(path, kind, value, f"one of {', '.join(self.values)}", decides=self.decides)


@dataclass(frozen=True, repr=False)
class ListOf(FieldType):
    """A list, or a text with commas."""

    name: str
    item: FieldType
    most: int | None
    commas: bool

    def check(self, value: Any, path: str, walk: Walk) -> None:
        items = value.split(",") if self.commas and isinstance(value, str) else value
        if not isinstance(items, list) or (self.commas and not isinstance(value, str)):
            walk.differ(path, OTHER, value, self.name)
            return
        if self.most is not None and len(items) > self.most:
            walk.differences.append(Difference(path, OTHER, f"{len(items)} values", self.name))
        for one in walk.of(items):
            self.item.check(self.item.read(one) if self.commas else one, f"{path}[]", walk)

    def parts(self) -> Iterator[FieldType]:
        yield self.item


@dataclass(frozen=True, repr=False)
class MapOf(FieldType):
    """An object with any names."""

    name: str
    item: FieldType

    def check(self, value: Any, path: str, walk: Walk) -> None:
        if not isinstance(value, dict):
            walk.differ(path, OTHER, value, self.name)
            return
        for one in walk.of(list(value.values())):
            self.item.check(one, f"{path}{{}}", walk)

    def parts(self) -> Iterator[FieldType]:
        yield self.item


@dataclass(frozen=True, repr=False)
class Encoded(FieldType):
    """A text that is JSON."""

    name: str
    item: FieldType

    def check(self, value: Any, path: str, walk: Walk) -> None:
        try:
            inner = msgspec.json.decode(value) if isinstance(value, str) else None
        except (msgspec.MsgspecError, RecursionError):
            inner = None
        if inner is None:
            walk.differ(path, OTHER, value, self.name)
        else:
            self.item.check(inner, path, walk)

    def parts(self) -> Iterator[FieldType]:
        yield self.item


@dataclass(frozen=True, repr=False)
class Optional(FieldType):
    """A value, null, or no field at all."""

    name: str
    item: FieldType

    def check(self, value: Any, path: str, walk: Walk) -> None:
        if value is not None:
            self.item.check(value, path, walk)

    def read(self, text: str) -> Any:
        return self.item.read(text)

    def parts(self) -> Iterator[FieldType]:
        yield self.item


@dataclass(frozen=True, repr=False)
class Either(FieldType):
    """One of several types."""

    name: str
    items: tuple[FieldType, ...]

    def check(self, value: Any, path: str, walk: Walk) -> None:
        best: list[Difference] | None = None
        for item in self.items:
            item.check(value, path, own := walk.apart())
            if best is None or len(own.differences) < len(best):
                best = own.differences
            if all(one.kind == NEW_FIELD for one in own.differences):
                break
        if best and all(one.path == path for one in best) and best[0].kind == OTHER:
            walk.differ(path, OTHER, value, self.name)
        else:
            walk.differences += best or []

    def read(self, text: str) -> Any:
        return next((found for item in self.items if item.accepts(found := item.read(text))), text)

    def parts(self) -> Iterator[FieldType]:
        yield from self.items


@dataclass(repr=False)
class Record(FieldType):
    """An object with fields."""

    name: str
    fields: Mapping[str, FieldType] = field(default_factory=dict)

    def check(self, value: Any, path: str, walk: Walk) -> None:
        if not isinstance(value, dict):
            walk.differ(path, OTHER, value, self.name)
            return
        start = f"{path}." if path else ""
        for key, one in value.items():
            known = self.fields.get(key)
            if known is None:
                walk.differ(start + key, NEW_FIELD, one, f"a field of {self.name}: {', '.join(self.fields)}")
            else:
                known.check(one, start + key, walk)
        for key, known in self.fields.items():
            if key not in value and not isinstance(known, Optional):
                walk.differences.append(Difference(start + key, OTHER, "nothing", known.name))

    def parts(self) -> Iterator[FieldType]:
        yield from self.fields.values()


@dataclass(repr=False)
class Choice(FieldType):
    """An object whose fields depend on the text of one of them."""

    name: str
    by: str
    of: Mapping[str, FieldType] = field(default_factory=dict)

    def check(self, value: Any, path: str, walk: Walk) -> None:
        if not isinstance(value, dict) or not isinstance(value.get(self.by), str):
            walk.differ(path, OTHER, value, f"{self.name}, which has {self.by}")
            return
        known = self.of.get(value[self.by])
        if known is None:
            place = f"{path}.{self.by}" if path else self.by
            walk.differ(place, NEW_VALUE, value[self.by], f"one of {', '.join(self.of)}")
        else:
            known.check(value, path, walk)

    def parts(self) -> Iterator[FieldType]:
        yield from self.of.values()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and _parses(date.fromisoformat, value)


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and "T" in value.upper().replace(" ", "T") and _parses(datetime.fromisoformat, value)


def _parses(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


_SCALARS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": _is_number,
    "any": lambda _: True,
    "decimal": lambda value: isinstance(value, str) and _NUMBER.fullmatch(value) is not None,
    "time": _is_time,
    "date": _is_date,
    "seconds": lambda value: _is_integer(value) and 10**8 < value < 10**10,
    "milliseconds": lambda value: _is_integer(value) and 10**11 < value < 10**13,
}


def parse(text: str, tables: Mapping[str, FieldType]) -> FieldType:
    """Return the type that a text describes; `tables` are those that it may name.

    Raises `ContractError` if it describes none.

    Examples
    --------
    >>> parse("list of one of a b up to 2", {}).accepts(["a", "b", "c"])
    False
    """
    if text.endswith("?"):
        return Optional(text, parse(text[:-1], tables))
    for start, decides in (("deciding one of ", True), ("one of ", False)):
        if text.startswith(start):
            return OneOf(text, tuple(text.removeprefix(start).split()), decides)
    if " or " in text:
        return Either(text, tuple(parse(part, tables) for part in text.split(" or ")))
    if found := _LIST.fullmatch(text):
        commas, item, most = found.groups()
        return ListOf(text, parse(item, tables), int(most) if most else None, bool(commas))
    if text.startswith("map of "):
        return MapOf(text, parse(text.removeprefix("map of "), tables))
    if text.startswith("encoded "):
        return Encoded(text, parse(text.removeprefix("encoded "), tables))
    if found := _RANGE.fullmatch(text):
        kind, least, most = found.groups()
        return Scalar(text, _SCALARS[kind], float(least), float(most))
    if text in _SCALARS:
        return Scalar(text, _SCALARS[text])
    if text in tables:
        return tables[text]
    raise ContractError(f"{text!r} is no type; allowed: {', '.join([*_SCALARS, *tables])}, and what is made of these")


def reached(start: Sequence[FieldType]) -> set[int]:
    """Return the identities of all types that some are made of."""
    seen: set[int] = set()
    left = list(start)
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            left += one.parts()
    return seen
