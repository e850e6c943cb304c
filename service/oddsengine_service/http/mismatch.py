"""What is wrong with a JSON value, in the terms of JSON instead of those of Python."""

import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from oddsengine_service.errors import TYPES, invalid, must_be, one_of, quoted

_AT = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)
_EXPECTED = re.compile(
    r"Expected `(?P<types>[^`]+)`(?: (?P<length>of length )?(?P<sign>[<>]=?)? ?(?P<limit>[\d.e+-]+))?"
    r"(?:, got `?(?P<got>[^`]+)`?)?"
)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_SIGNS = {">=": "of at least ", "<=": "of at most ", ">": "above ", "<": "below ", None: "of "}
_ITEMS = {"str": "character", "array": "item", "object": "field"}


def decode(raw: bytes | str, kind: Any, whole: str, code: str = "validation_error") -> Any:
    """Decode JSON to a struct; `whole` says in messages what it is. Raises `Problem` 400."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise invalid(mismatch(str(error), decoded(raw), kind, whole), code) from None
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise invalid(f"{whole} is not valid JSON: {error}", code) from None


def mismatch(error: str, value: Any, kind: Any, whole: str) -> str:
    """Say which field of a decoded JSON value does not match a struct, what came and what is allowed.

    Parameters
    ----------
    error
        The text of a `msgspec.ValidationError`.
    value
        The JSON as `decoded` returns it.
    kind
        The struct it was converted to.
    whole
        What the value is, such as `request body`.

    Examples
    --------
    >>> class Bet(msgspec.Struct):
    ...     stake: float
    >>> mismatch("Expected `float` > 0.0 - at `$.stake`", {"stake": -1}, Bet, "request body")
    'invalid request body: stake must be a number above 0, got -1'
    >>> mismatch("Object missing required field `stake`", {}, Bet, "request body")
    'invalid request body: stake is required'
    """
    text, path = _AT.fullmatch(error).groups()  # type: ignore[union-attr]  # matches everything
    field = (path or "").removeprefix(".")
    steps = re.findall(r"(?:^|\.)([^.\[]+)|\[(\d+|\.\.\.)\]", field)
    hint = _hint(kind, steps)
    if unknown := _UNKNOWN.fullmatch(text):
        where = f" at {field}" if field else ""
        struct = _struct(hint)
        allowed = f"; allowed: {', '.join(struct.__struct_encode_fields__)}" if struct is not None else ""
        return f"unknown field {quoted(unknown[1])} in the {whole}{where}{allowed}"
    if missing := _MISSING.fullmatch(text):
        return f"invalid {whole}: {field}{'.' if field else ''}{missing[1]} is required"
    came = _described(value, steps)
    if text.startswith("Invalid enum value"):
        allowed, came = one_of([str(each) for each in _values(hint)]), came or text.removeprefix("Invalid enum value ")
    elif pattern := re.fullmatch("Expected `str` matching regex (.*)", text, re.DOTALL):
        example = _example(hint)
        allowed = f"a string such as {example!r}" if example else f"a string that matches {pattern[1]}"
    elif text == "Invalid RFC3339 encoded datetime":
        allowed = TYPES["datetime"]
    elif expected := _EXPECTED.fullmatch(text):
        allowed, came = _allowed(expected), _described(value, steps, counted=bool(expected["length"]))
        came = came or TYPES.get(expected["got"], expected["got"] or "another value")
    else:
        return f"invalid {whole}: {field}{': ' if field else ''}{text}"
    return f"invalid {whole}: {must_be(field, allowed, came)}"


def decoded(raw: bytes | str) -> Any:
    """JSON decoded without a schema; `UNSET` if it is not valid after the part that did not match."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return msgspec.UNSET


def _allowed(expected: re.Match[str]) -> str:
    names = expected["types"].split(" | ")
    out = " or ".join(TYPES.get(name, name) for name in names)
    if not expected["limit"]:
        return out
    limit, sign = float(expected["limit"]), _SIGNS[expected["sign"]]
    return f"{out} {sign}{_count(int(limit), names[0])}" if expected["length"] else f"{out} {sign}{limit:,.10g}"


def _count(number: int, kind: str) -> str:
    return f"{number:,} {_ITEMS.get(kind, 'item')}{'' if number == 1 else 's'}"


def _described(value: Any, steps: list[tuple[str, str]], *, counted: bool = False) -> str:
    """The value at a path, or its length, for a message; empty if the path names no single value."""
    for key, index in steps:
        try:
            value = value[key] if key else value[int(index)]
        except (LookupError, TypeError, ValueError):
            return ""
    if value is msgspec.UNSET:
        return ""
    if counted and isinstance(value, str | list | dict):
        return _count(len(value), {str: "str", list: "array"}.get(type(value), "object"))
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    return msgspec.json.encode(value).decode()[:60]


def _hint(kind: Any, steps: list[tuple[str, str]]) -> Any:
    """The type of the field at a path; None if it is not known."""
    for key, _ in steps:
        struct = _struct(kind)
        if key:
            kind = get_type_hints(struct, include_extras=True).get(key) if struct is not None else None
    return kind


def _struct(hint: Any) -> Any:
    """The struct in the type of a field, such as that of a list's items."""
    return hint if isinstance(hint, type(msgspec.Struct)) else next(filter(None, map(_struct, get_args(hint))), None)


def _example(hint: Any) -> Any:
    """An example of a type with a pattern; None if it has none."""
    if isinstance(hint, msgspec.Meta):
        return hint.examples[0] if hint.examples else None
    return next(filter(None, map(_example, get_args(hint))), None)


def _values(hint: Any) -> list[Any]:
    """The values that a `Literal` in a type allows."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [value for part in get_args(hint) for value in _values(part)]
