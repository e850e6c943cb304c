"""Query parameters, declared once: for parsing query strings and messages, and for OpenAPI and tools.

    class GamesQuery(Query):
        live: Annotated[bool | None, Param("true: live games only; false: others only.")] = None
        limit: Annotated[int, Param("Maximum number of games.", low=1, high=200)] = 50

A parameter without a default is required. An invalid value is a `validation_error` that names the parameter, the value
and what is allowed. Undeclared parameters are ignored and listed in `meta` of the response.
"""

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints
from urllib.parse import parse_qsl

from oddsengine.tables.timestamps import aware
from oddsengine_service.errors import TYPES, invalid, must_be, one_of, quoted
from oddsengine_service.wire.texts import MOST_TEXT, MOST_WORDS, WORDS_PATTERN

MOST_QUERY = 16_384  # bytes of a query string
MOST_FIELDS = 200
MOST_LIMIT, MOST_OFFSET = 200, 5000  # of a page
LARGEST = 1e9  # of a number without declared limits
_MOST_CACHED, _MOST_CACHED_TEXT = 1_000, 40  # parsed values of a query, and their characters

Words = tuple[str, ...] | None
"""A comma-separated list."""
_NUMBERS = {int: re.compile(r"\s*[+-]?[0-9]{1,18}\s*"), float: re.compile("[^_\x80-\U0010ffff]*")}
_TEXT_PATTERN, _NAME_PATTERN = r"^[^\x00]*$", r"^[^\x00]*[^\x00\s][^\x00]*$"


_MISSING = object()


class Query:
    """The parameters of a request: subclasses declare them, an instance has the values that were given."""

    declared: ClassVar["Fields"]

    def __init_subclass__(cls) -> None:
        cls.declared = Fields(cls)

    def get(self, name: str) -> Any:
        """The value of a parameter; None if the endpoint does not have it."""
        return getattr(self, name, None)

    def values(self, replaced: Mapping[str, Any]) -> tuple[Hashable, ...]:
        """All values, some of them replaced."""
        return tuple({**self.declared.defaults, **vars(self), **replaced}.values())


AnyQuery = TypeVar("AnyQuery", bound=Query)


@dataclass(frozen=True)
class Param:
    """What a parameter means and allows, beside its type and default."""

    doc: str
    low: float = -LARGEST
    high: float = LARGEST
    choices: Sequence[str] = ()
    signed: bool = False  # choices may be preceded by -
    unix: bool = False  # a time may be Unix seconds
    name: str = ""  # if it is not that of the attribute
    aliases: tuple[str, ...] = ()
    missing: str = "validation_error"  # code of the error if it is required and missing
    code: str = "validation_error"  # code of the error if it is not valid
    check: Callable[[str, str], None] | None = None  # raises `Problem` for a name and value, before it is read
    read: Callable[[str], Any] | None = None  # instead of that of the type; raises `ValueError`
    allowed: str = ""  # what `read` allows, for the message
    schema: Mapping[str, Any] | None = None  # JSON Schema, instead of that of the type


class Field:
    """One parameter of a query: how it is read from text, and described."""

    def __init__(self, attribute: str, hint: Any, param: Param, default: Any) -> None:
        kind = next(each for each in (get_args(hint) if isinstance(hint, UnionType) else (hint,)) if each != NoneType)
        self.attribute, self.name, self.param, self.kind = attribute, param.name or attribute, param, kind
        self.required, self.default = default is _MISSING, None if default is _MISSING else default
        self.several = kind == tuple[str, ...]  # repeated parameters are combined
        self.blank = kind is not datetime  # an empty value counts as missing
        self.doc = f"{param.doc} Comma-separated." if self.several else param.doc
        self.choices = [*param.choices, *(f"-{word}" for word in param.choices if param.signed)]
        self.allowed, schema = self._described()
        self.schema: Mapping[str, Any] = param.schema or schema

    def read(self, name: str, value: str) -> Any:
        """Read a value; the name is for messages. Raises `Problem` 400."""
        if self.param.check is not None:
            self.param.check(name, value)
        if self.several:
            return self._read_words(name, value)
        if self.kind is str and not self.allowed:
            return _text(name, value)
        try:
            return self.param.read(value) if self.param.read is not None else self._read_one(value)
        except (ValueError, LookupError, OverflowError, OSError):
            raise invalid(must_be(name, self.allowed, quoted(value)), self.param.code) from None

    def with_default(self) -> dict[str, Any]:
        """The schema with the default, if there is one."""
        default = ",".join(self.default) if isinstance(self.default, tuple) else self.default
        return {**self.schema, **({} if default is None else {"default": default})}

    def _read_words(self, name: str, value: str) -> tuple[str, ...]:
        out = tuple(dict.fromkeys(word.strip() for word in value.split(",") if word.strip()))
        if len(out) > MOST_WORDS:
            raise invalid(f"{name} must have at most {MOST_WORDS} entries, got {len(out):,}")
        for word in out:
            _text(name, word)
        if self.choices and (unknown := [word for word in out if word not in self.choices]):
            raise invalid(must_be(name, self.allowed, quoted(unknown[0])), self.param.code)
        return out

    def _read_one(self, value: str) -> Any:
        """Read a value of one word. Raises `ValueError` or another error if it is not allowed."""
        param, word = self.param, value.strip()
        if self.choices:
            return self.choices[self.choices.index(word)]
        if self.kind is bool:
            return {"true": True, "1": True, "false": False, "0": False}[word.lower()]
        if self.kind is datetime:
            return time_of(word, unix=param.unix)
        number: float = self.kind(word) if _NUMBERS[self.kind].fullmatch(value) else math.nan
        if not param.low <= number <= param.high:
            raise ValueError(word)
        return number

    def _described(self) -> tuple[str, Mapping[str, Any]]:
        """What is allowed, for messages, and as JSON Schema."""
        param, low, high = self.param, self.param.low, self.param.high
        if self.several and self.choices:
            each = "one or more of " if len(self.choices) > 1 else ""
            one = f" *({'|'.join(self.choices)})? *"
            pattern = f"^{one}(,{one}){{0,{MOST_WORDS - 1}}}$"
            return f"{each}{', '.join(self.choices)}", {"type": "string", "pattern": pattern}
        if self.several:
            return "", {"type": "string", "pattern": WORDS_PATTERN}
        if self.choices:
            return one_of(self.choices), {"type": "string", "enum": self.choices}
        if self.kind is bool:
            return TYPES["bool"], {"type": "boolean"}
        if self.kind is float:
            allowed = f"a number from {low:,.15g} to {high:,.15g}"
            return allowed, {"type": "number", "minimum": low, "maximum": high}
        if self.kind is int:
            allowed = f"a whole number from {low} to {high}"
            return allowed, {"type": "integer", "minimum": low, "maximum": high}
        if self.kind is datetime:
            time = {"type": "string", "format": "date-time"}
            if not param.unix:
                return TYPES["datetime"], time
            unix = {"type": "string", "pattern": "^[0-9]{1,11}$"}
            return TYPES["datetime"].replace("RFC 3339", "RFC 3339 or Unix seconds"), {"anyOf": [time, unix]}
        pattern = _NAME_PATTERN if self.required else _TEXT_PATTERN
        return param.allowed, {"type": "string", "maxLength": MOST_TEXT, "pattern": pattern}


def time_of(word: str, *, unix: bool = False) -> datetime:
    """Read an RFC 3339 time; one without an offset is UTC. Raises `ValueError` or another error if it is none."""
    if unix and word.isdigit():
        return datetime.fromtimestamp(int(word), UTC)
    time = datetime.fromisoformat(word.replace(" ", "+") if word.count(":") > 2 else word)
    return aware(time)


def _text(name: str, value: str) -> str:
    if len(value) > MOST_TEXT:
        raise invalid(f"{name} must have at most {MOST_TEXT} characters, got {len(value):,}")
    if "\x00" in value:
        raise invalid(f"{name} must not contain NUL characters")
    return value.strip()


# ---- parsing ----


class Fields(dict[str, Field]):
    """The parameters of a query, by name and alias."""

    def __init__(self, query: type[Query]) -> None:
        hints = get_type_hints(query, include_extras=True)
        self.all = [
            Field(name, hint.__origin__, hint.__metadata__[-1], getattr(query, name, _MISSING))
            for name, hint in hints.items()
            if name != "declared"
        ]
        super().__init__({name: field for field in self.all for name in (field.name, *field.param.aliases)})
        self.defaults: dict[str, Any] = {field.attribute: field.default for field in self.all}
        self.required = [field for field in self.all if field.required]
        self.cached: dict[tuple[str, str], Any] = {}  # parsed values by name and text

    def parse_value(self, name: str, value: str) -> Any:
        """Parse the value of a parameter, given by name or alias; short ones are cached, because most repeat."""
        parsed = self[name].read(name, value)
        if len(value) <= _MOST_CACHED_TEXT:
            if len(self.cached) >= _MOST_CACHED:
                self.cached.clear()
            self.cached[name, value] = parsed
        return parsed


Query.declared = Fields(Query)


def parse(raw: bytes, query: type[AnyQuery]) -> tuple[AnyQuery, list[str]]:
    """Parse a query string. Returns the query, and the names of undeclared parameters."""
    if len(raw) > MOST_QUERY:
        raise invalid(f"query string must be at most {MOST_QUERY:,} bytes, got {len(raw):,}")
    fields, parsed = query.declared, query()
    ignored: list[str] = []
    texts: dict[str, str] = {}  # by attribute
    given: dict[str, str] = {}  # the name or alias of each, for messages
    for name, value in _pairs(raw) if raw else ():
        field = fields.get(name)
        if field is None:
            ignored.append(name[:MOST_TEXT])
        elif value.strip() or not field.blank:
            at = field.attribute
            if at in texts and texts[at] != value:
                if not field.several:
                    raise invalid(f"{field.name} must not be repeated, got {quoted(texts[at])} and {quoted(value)}")
                texts[at] += f",{value}"
            else:
                texts[at], given[at] = value, name
    for at, value in texts.items():
        read = fields.cached.get((given[at], value))
        setattr(parsed, at, fields.parse_value(given[at], value) if read is None else read)
    for field in fields.required:
        if field.attribute not in texts:
            doc = field.doc.rstrip(".")
            raise invalid(f"{field.name} is required: {doc[:1].lower()}{doc[1:]}", field.param.missing)
    return parsed, ignored


def text_of(name: str, value: Any) -> str:
    """A JSON value as the text of a parameter. Raises `Problem` 400."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)) and all(isinstance(each, (str, int, float)) for each in value):
        return ",".join(map(str, value))
    if isinstance(value, (str, int, float)):
        return str(value)
    got = "an object" if isinstance(value, dict) else "a list of other things"
    raise invalid(f"{name} must be a string, a number, true, false, or a list of strings and numbers, got {got}")


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        text = query.decode("ascii")
        if "%" in text or "+" in text:
            return parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
        if text.count("&") < MOST_FIELDS:
            return [(name, value) for part in text.split("&") if part for name, _, value in (part.partition("="),)]
    except ValueError:
        pass
    raise invalid(f"malformed query string: it must be up to {MOST_FIELDS} percent-encoded name=value pairs in UTF-8")
