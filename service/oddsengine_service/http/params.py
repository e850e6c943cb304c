"""Parameters, declared once for parsing query strings and for documentation.

An invalid value is a `validation_error` that names the parameter, the value and what is allowed. Undeclared parameters
are ignored and listed in `meta` of the response.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from oddsengine_service.http.problems import Problem, invalid, one_of, quoted

MOST_QUERY = 16_384  # bytes of a query string
MOST_FIELDS = 200
MOST_TEXT = 200  # characters of one value
MOST_WORDS = 500
LARGEST = 1e9  # of a number without declared limits
_MOST_CACHED, _MOST_CACHED_TEXT = 1_000, 40  # parsed values of an endpoint, and their characters


@dataclass(frozen=True)
class Param:
    """One query parameter: its name, parser and description."""

    name: str
    read: Callable[[str, str], Any]
    kind: Mapping[str, Any]  # JSON Schema
    doc: str
    default: Any = None
    required: bool = False
    aliases: tuple[str, ...] = ()
    several: bool = False  # repeated parameters are combined
    blank: bool = True  # an empty value counts as missing
    missing: str = "validation_error"  # code of the error if it is required and missing


_WORD = f"[^,\\x00]{{0,{MOST_TEXT}}}"
WORDS_PATTERN = f"^{_WORD}(,{_WORD}){{0,{MOST_WORDS - 1}}}$"
TEXT_PATTERN, NAME_PATTERN = r"^[^\x00]*$", r"^[^\x00]*[^\x00\s][^\x00]*$"


def words_param(name: str, doc: str, **more: Any) -> Param:
    kind = {"type": "string", "pattern": WORDS_PATTERN}
    return Param(name, _words, kind, doc + " Comma-separated.", several=True, **more)


def choices(name: str, doc: str, allowed: Sequence[str], **more: Any) -> Param:
    """A comma-separated list of values from a fixed set."""

    def read(name: str, value: str) -> tuple[str, ...]:
        out = _words(name, value)
        if unknown := [word for word in out if word not in allowed]:
            each = "one or more of " if len(allowed) > 1 else ""
            raise invalid(f"{name} must be {each}{', '.join(allowed)}, got {quoted(unknown[0])}")
        return out

    one = f" *({'|'.join(allowed)})? *"
    kind = {"type": "string", "pattern": f"^{one}(,{one}){{0,{MOST_WORDS - 1}}}$"}
    return Param(name, read, kind, doc + " Comma-separated.", several=True, **more)


def text(name: str, doc: str, **more: Any) -> Param:
    pattern = NAME_PATTERN if more.get("required") else TEXT_PATTERN
    return Param(name, _text, {"type": "string", "maxLength": MOST_TEXT, "pattern": pattern}, doc, **more)


def flag(name: str, doc: str, **more: Any) -> Param:
    def read(name: str, value: str) -> bool:
        known = {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower())
        if known is None:
            raise invalid(f"{name} must be true or false, got {quoted(value)}")
        return known

    return Param(name, read, {"type": "boolean"}, doc, **more)


def number(name: str, doc: str, low: float = -LARGEST, high: float = LARGEST, **more: Any) -> Param:
    def read(name: str, value: str) -> float:
        try:
            parsed = float(value.strip())
        except ValueError:
            parsed = float("nan")
        if not low <= parsed <= high or not value.isascii() or "_" in value:
            raise invalid(f"{name} must be a number from {low:,.15g} to {high:,.15g}, got {quoted(value)}")
        return parsed

    return Param(name, read, {"type": "number", "minimum": low, "maximum": high}, doc, **more)


def whole(name: str, doc: str, low: int, high: int, **more: Any) -> Param:
    def read(name: str, value: str) -> int:
        word = value.strip()
        if not re.fullmatch("[+-]?[0-9]{1,18}", word) or not low <= int(word) <= high:
            raise invalid(f"{name} must be a whole number from {low} to {high}, got {quoted(value)}")
        return int(word)

    return Param(name, read, {"type": "integer", "minimum": low, "maximum": high}, doc, **more)


def choice(name: str, doc: str, choices: Sequence[str], *, signed: bool = False, **more: Any) -> Param:
    """One value from a fixed set; `signed` ones may be preceded by -."""
    every = [*choices, *(f"-{word}" for word in choices)] if signed else list(choices)

    def read(name: str, value: str) -> str:
        word = value.strip()
        if word not in every:
            raise invalid(f"{name} must be {one_of(every)}, got {quoted(value)}")
        return word

    return Param(name, read, {"type": "string", "enum": every}, doc, **more)


def time_param(name: str, doc: str, *, unix: bool = False, **more: Any) -> Param:
    """A time: RFC 3339, or Unix seconds if `unix`."""

    def read(name: str, value: str) -> datetime:
        word = value.strip()
        try:
            if unix and word.isdigit():
                return datetime.fromtimestamp(int(word), UTC)
            time = datetime.fromisoformat(word.replace(" ", "+") if word.count(":") > 2 else word)
        except (ValueError, OverflowError, OSError):
            forms = "RFC 3339 or Unix seconds" if unix else "RFC 3339"
            allowed = f"a time ({forms}, such as 2026-02-08T18:00:00Z)"
            raise invalid(f"{name} must be {allowed}, got {quoted(value)}") from None
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    kind: Mapping[str, Any] = {"type": "string", "format": "date-time"}
    if unix:
        kind = {"anyOf": [kind, {"type": "string", "pattern": "^[0-9]{1,11}$"}]}
    return Param(name, read, kind, doc, blank=False, **more)


def _words(name: str, value: str) -> tuple[str, ...]:
    out = tuple(dict.fromkeys(word.strip() for word in value.split(",") if word.strip()))
    if len(out) > MOST_WORDS:
        raise invalid(f"{name} must have at most {MOST_WORDS} entries, got {len(out):,}")
    for word in out:
        _text(name, word)
    return out


def _text(name: str, value: str) -> str:
    if len(value) > MOST_TEXT:
        raise invalid(f"{name} must have at most {MOST_TEXT} characters, got {len(value):,}")
    if "\x00" in value:
        raise invalid(f"{name} must not contain NUL characters")
    return value.strip()


# ---- parsing ----


class DeclaredParams(dict[str, Param]):
    """The parameters of an endpoint, by name and alias."""

    def __init__(self, params: Sequence[Param]) -> None:
        super().__init__({name: param for param in params for name in (param.name, *param.aliases)})
        self.defaults: dict[str, Any] = {param.name: param.default for param in params}
        self.required = [param for param in params if param.required]
        self._parsed: dict[tuple[str, str], Any] = {}

    def parse_value(self, name: str, value: str) -> Any:
        """Parse the value of a parameter, given by name or alias; short ones are cached, because most repeat."""
        parsed = self._parsed.get((name, value))
        if parsed is None:
            parsed = self[name].read(name, value)
            if len(value) <= _MOST_CACHED_TEXT:
                if len(self._parsed) >= _MOST_CACHED:
                    self._parsed.clear()
                self._parsed[name, value] = parsed
        return parsed


def parse(query: bytes, params: DeclaredParams) -> tuple[dict[str, Any], list[str]]:
    """Values of all parameters by name, and the names of undeclared ones."""
    if len(query) > MOST_QUERY:
        raise Problem(400, "validation_error", f"query string must be at most {MOST_QUERY:,} bytes, got {len(query):,}")
    values = params.defaults.copy()
    ignored: list[str] = []
    texts: dict[str, str] = {}
    given: dict[str, str] = {}  # the name or alias of each, for messages
    for name, value in _pairs(query) if query else ():
        param = params.get(name)
        if param is None:
            ignored.append(name[:MOST_TEXT])
        elif value.strip() or not param.blank:
            if param.name in texts and texts[param.name] != value:
                if not param.several:
                    raise invalid(
                        f"{param.name} must not be repeated, got {quoted(texts[param.name])} and {quoted(value)}"
                    )
                texts[param.name] += f",{value}"
            else:
                texts[param.name], given[param.name] = value, name
    for name, value in texts.items():
        values[name] = params.parse_value(given[name], value)
    for param in params.required:
        if values[param.name] is None:
            raise invalid(f"{param.name} is required: {_lowered(param.doc.rstrip('.'))}", param.missing)
    return values, ignored


def _lowered(text: str) -> str:
    """A description without its capital letter."""
    return text[:1].lower() + text[1:]


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
