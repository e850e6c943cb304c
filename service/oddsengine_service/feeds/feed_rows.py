"""Maps a feed's ids of prices to rows of the board."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oddsengine.live.update import Update, hexadecimal
from oddsengine.matching import Price, PriceIds

_SPARE = 10_000  # ids of removed rows that are retained


class RowIds:
    """The row's id on our board for each price, and the ids that sources have for it."""

    def __init__(self) -> None:
        self._rows: dict[Price, str] = {}
        self._ids: dict[str, PriceIds] = {}  # by source

    def follow(self, update: Update) -> None:
        """Process added and removed rows."""
        removed = update.removed_rows
        for price in zip(removed.sportsbooks, removed.texts, strict=True):
            self._rows.pop(price, None)
        new = update.new
        prices = zip(new.sportsbooks, new.texts, strict=True)
        self._rows.update(zip(prices, hexadecimal(new.id), strict=True))

    def learn(self, source: str, quotes: Iterable[Mapping[str, Any]]) -> None:
        """Store the source's ids of its prices."""
        ids = self._ids.setdefault(source, PriceIds())
        ids.learn(quotes)
        if len(ids) > _SPARE + 2 * len(self._rows):
            ids.keep(self._rows)

    def removed(self, source: str, ids: Sequence[str], quotes: Iterable[Mapping[str, Any]]) -> list[str]:
        """Rows of our board that a payload of a source removes by id."""
        known = self._ids.get(source)
        return [] if known is None else [self._rows[at] for at in known.removed(ids, quotes) if at in self._rows]

    def forget(self, source: str, ids: Iterable[str]) -> None:
        if source in self._ids:
            self._ids[source].forget(ids)
