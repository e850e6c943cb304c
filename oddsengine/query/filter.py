"""Query parameters: filter, sort order and cursor."""

import re
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np

Key = tuple[Any, ...]
LATEST = np.iinfo(np.int64).max
SORTS = (
    "odds_american", "odds_decimal", "probability", "timestamp", "event_start_time", "sportsbook", "sport", "league",
)  # fmt: skip


class RowFilter(NamedTuple):
    """Conditions on rows; None is no condition. American odds, times in microseconds."""

    books: frozenset[str] | None = None
    sport: tuple[str, ...] | None = None
    league: tuple[str, ...] | None = None
    market: tuple[str, ...] | None = None
    event: tuple[str, ...] | None = None
    team: tuple[str, ...] | None = None
    q: str | None = None
    player: str | None = None
    stat: tuple[str, ...] | None = None
    selection: tuple[str, ...] | None = None
    prop: bool | None = None
    main: bool | None = None
    live: bool | None = None
    low: float | None = None
    high: float | None = None
    day: tuple[int, int] | None = None
    after: int | None = None
    lines: frozenset[str] | None = None  # for streams: the books whose prices decide main lines
    seen: bool = False  # count rows that were only seen again as changed `after`

    def unlimited(self) -> "RowFilter":
        """Return the filter without limits on the price."""
        return self if self.low is None and self.high is None else self._replace(low=None, high=None)


class Cursor(NamedTuple):
    """Position after a page: the sort and its value, and the sort key of the last row (or only of its event)."""

    sort: str
    value: int | float | str | None
    start: int
    event: str
    rest: tuple[Any, ...] | None  # sort key of the term, then the book; see `_REST`

    def text(self) -> str:
        """Encode as published: fields joined by `~`, using only characters that need no escaping in URLs."""
        first = f"{self.sort}~{'' if self.value is None else _escaped(self.value)}~{self.start}~{_quoted(self.event)}"
        return first if self.rest is None else f"{first}~{_rest_text(self.rest)}"

    @classmethod
    def read(cls, text: str) -> "Cursor":
        """Parse a cursor; every text that matches `CURSOR_PATTERN` is one.

        Raises `ValueError` if the text is not a cursor.
        """
        if len(text) > MOST_CURSOR or not _CURSOR.fullmatch(text):
            raise ValueError("invalid cursor: pass next_cursor unchanged")
        sort, value, start, event, *rest = text.split("~")
        worth: int | float | str | None = None
        if sort:
            worth = _unescaped(value) if sort.lstrip("-") in TEXTUAL else _number(value)
        place = [_whole(field) if kind is int else _unescaped(field) for kind, field in zip(_REST, rest, strict=False)]
        return cls(sort, worth, _whole(start), _unescaped(event), tuple(place) or None)


def _escaped(value: Any) -> str:
    """Escape a field with `.` instead of `%`."""
    if not isinstance(value, str):
        return repr(value).replace("+", "")
    return _quoted(value)


@lru_cache(maxsize=4096)
def _rest_text(rest: tuple[Any, ...]) -> str:
    return "~".join(map(_escaped, rest))


@lru_cache(maxsize=4096)
def _quoted(value: str) -> str:
    return quote(value, safe="").replace(".", "%2E").replace("~", "%7E").replace("%", ".")


def _unescaped(field: str) -> str:
    return unquote(field.replace(".", "%"), errors="replace")


def _whole(field: str) -> int:
    return max(-LATEST, min(int(field), LATEST))


def _number(field: str) -> int | float:
    return _whole(field) if field.lstrip("-").isdigit() else float(field)


TEXTUAL = ("sportsbook", "sport", "league")  # sorted as text
MOST_CURSOR = 12_000  # characters
_T, _W = "(?:[A-Za-z0-9_-]|[.][0-9A-F]{2})*", "-?[0-9]{1,19}"
_NUMBERS = [name for name in (*SORTS, "moved", "renewed") if name not in TEXTUAL]
_REST = (str, str, str, str, int, int, str, str, int, str)
CURSOR_PATTERN = (
    f"(?:~|-?(?:{'|'.join(TEXTUAL)})~{_T}|-?(?:{'|'.join(_NUMBERS)})~{_W}(?:[.][0-9]{{1,25}})?(?:e-?[0-9]{{1,2}})?)"
    f"~{_W}~{_T}(?:~{'~'.join(_W if kind is int else _T for kind in _REST)})?"
)
_CURSOR = re.compile(CURSOR_PATTERN)
