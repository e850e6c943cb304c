"""What is asked of a board: which rows, in which order, from where on."""

import base64
from typing import Any, NamedTuple

import msgspec
import numpy as np

from oddsengine_service.problems import invalid

Key = tuple[Any, ...]
LATEST = np.iinfo(np.int64).max
SORTS = (
    "odds_american", "odds_decimal", "probability", "timestamp", "event_start_time", "sportsbook", "sport", "league",
)  # fmt: skip


class Filter(NamedTuple):
    """What the rows of an answer have in common; None is no condition. American prices, times in microseconds."""

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
    seen: bool = False  # rows that were only seen again count as changed `after`


class Cursor(NamedTuple):
    """Where a page ended: the sort and its value, and the last row's place in the order (or only its event's)."""

    sort: str
    value: int | float | str | None
    start: int
    event: str
    rest: tuple[str, str, str, str, int, int, str, str, int, str] | None  # of the term, then the book

    def text(self) -> str:
        """What a caller holds."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, sort: str, *, rows: bool = True) -> "Cursor":
        """Read it back.

        Raises
        ------
        Problem
            400 if it is none, or one of another order.
        """
        try:
            raw = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
            found = msgspec.json.decode(raw, type=cls)
        except (ValueError, msgspec.DecodeError, RecursionError):
            raise invalid("cursor is none of ours: send next_cursor of the page before, unchanged") from None
        textual = sort.lstrip("-") in ("sportsbook", "sport", "league")
        fits = isinstance(found.value, str) if textual else isinstance(found.value, float | int)
        beyond = not isinstance(found.value, str | None) and not abs(found.value) <= LATEST
        fits = fits if sort else found.value is None
        if beyond or not fits or found.sort != sort or (found.rest is not None) != rows:
            raise invalid("cursor belongs to a list in another order: keep sort and group_by as they were")
        return found
