"""The slow twin of the one-pass parser: `json.loads`, then a look at every value."""

import json
import math
import re
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, NamedTuple

_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(?:Z|([+-])([01]\d|2[0-3]):?([0-5]\d))?", re.ASCII
)


class Fields(NamedTuple):
    """Names of fields by what their values may be, beside null; fields that are not listed may be any scalar."""

    texts: Collection[str]
    numbers: Collection[str]
    moments: Collection[str]
    flags: Collection[str]
    lists: Collection[str] = ()  # may also be lists of objects of scalars


def moment(text: str) -> int | None:
    """Microseconds since 1970 of a time in one of the supported forms; UTC if it has no zone."""
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        return None
    local, sign, hours, minutes = parts.groups()
    try:
        time = datetime.fromisoformat(local)
    except ValueError:
        return None
    zone = (60 * int(hours) + int(minutes)) * (-1 if sign == "-" else 1) if sign else 0
    return (time - datetime(1970, 1, 1)) // timedelta(microseconds=1) - zone * 60_000_000


def scan(text: bytes, fields: Fields) -> list[dict[str, Any]] | None:
    """The rows of a text, numbers as floats and times as microseconds; None if anything in it is not supported."""
    try:
        rows = json.loads(text.decode(), object_pairs_hook=lambda row: _row(row, fields), parse_constant=_refuse)
    except ValueError:
        return None
    return rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else None


def _refuse(value: Any) -> Any:
    raise ValueError(f"not supported: {value}")


def _row(pairs: list[tuple[str, Any]], fields: Fields) -> dict[str, Any]:
    """A row of which every value is supported, also those of a field that is repeated."""
    return {name: _value(name, value, fields) for name, value in pairs} or _refuse(pairs)


def _value(name: str, value: Any, fields: Fields) -> Any:
    if value is None:
        return None
    if isinstance(value, list) and name in fields.lists:
        return value if all(isinstance(each, dict) for each in value) else _refuse(value)
    if isinstance(value, list | dict):
        _refuse(value)
    if name in fields.texts and not isinstance(value, str):
        _refuse(value)
    if name in fields.flags and not isinstance(value, bool):
        _refuse(value)
    if name in fields.numbers:
        return _refuse(value) if isinstance(value, bool | str) else float(value)
    if name in fields.moments:
        time = moment(value) if isinstance(value, str) else None
        return _refuse(value) if time is None else time
    return value


def number(row: dict[str, Any], name: str) -> float:
    """A number of a row; nan if it has none."""
    value = row.get(name)
    return math.nan if value is None else float(value)
