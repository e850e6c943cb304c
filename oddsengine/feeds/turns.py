"""What polled sources have in common: a turn reads all prices of a part of the source, such as a league.

Prices of an earlier turn that are no longer listed are removed.
"""

from collections import Counter
from datetime import datetime
from math import isfinite
from typing import Any, NamedTuple

from oddsengine.feeds.payload import Game, Payload
from oddsengine.feeds.tracking import ListedIds


class Received(NamedTuple):
    """A body, and when it arrived."""

    body: bytes
    at: datetime


class Turn:
    """The games and prices of one turn.

    Examples
    --------
    >>> turn = Turn()
    >>> turn.put({"id": "1", "sportsbook": "a", "market_type": "moneyline"})
    >>> len(turn.payload(ListedIds(), "nba").quotes)
    1
    """

    def __init__(self) -> None:
        self.games: dict[str, Game] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        self.unmapped: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[str] = Counter()

    def put(self, row: dict[str, Any]) -> None:
        """Add a price; one with the id of another is left out."""
        if row["id"] in self.rows:
            self.refused["a price given twice"] += 1
        else:
            self.rows[row["id"]] = row

    def payload(self, listed: ListedIds, part: str) -> Payload:
        """Return all of it, and the ids of earlier prices of this part that are gone."""
        now = {id_: (row["sportsbook"], row["market_type"]) for id_, row in self.rows.items()}
        removed = listed.gone(part, now, None, None)
        listed.replace(part, now, None, None)
        return Payload(
            list(self.games.values()), list(self.rows.values()), (), removed, self.unmapped, +self.refused
        )  # fmt: skip


def inside(document: Any, *names: str) -> Any:
    """Return a value within nested mappings; None if there is none.

    Examples
    --------
    >>> inside({"data": {"markets": []}}, "data", "markets"), inside([], "data")
    ([], None)
    """
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def number(value: Any) -> float | None:
    """Parse a number that may be a text; None if it is not a finite number.

    Examples
    --------
    >>> number("-1.5"), number("+150"), number(2), number("x"), number([2])
    (-1.5, 150.0, 2.0, None, None)
    """
    if value is None or isinstance(value, bool):
        return None
    try:
        parsed = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return parsed if isfinite(parsed) else None


def whole(value: int | str | None) -> int | None:
    """Parse a whole number of base units, up to 40 digits, that may be a text; None if it is not one.

    Examples
    --------
    >>> whole("50250000000000000000"), whole(5), whole("5.5"), whole("-1")
    (50250000000000000000, 5, None, None)
    """
    text = str(value)
    return int(text) if len(text) <= _DIGITS and text.isascii() and text.isdigit() else None


_DIGITS = 40
