"""Maps a feed's ids of prices to rows of the board."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oddsengine.live.update import Update, hexadecimal
from oddsengine.matching import Price, price_of

_SPARE = 10_000  # names of removed rows that are retained


class RowIds:
    """Maps a source's id to the price it stands for, and to the row's id on our board."""

    def __init__(self) -> None:
        self._rows: dict[Price, str] = {}
        self._named: dict[str, dict[str, Price]] = {}
        self._last: dict[str, dict[Price, str]] = {}  # a price may get another id, which invalidates the old one

    def follow(self, update: Update) -> None:
        """Process added and removed rows."""
        gone = update.gone
        for price in zip(gone.sportsbooks, gone.texts, strict=True):
            self._rows.pop(price, None)
        new = update.new
        prices = zip(new.sportsbooks, new.texts, strict=True)
        self._rows.update(zip(prices, hexadecimal(new.id), strict=True))

    def learn(self, source: str, quotes: Iterable[Mapping[str, Any]]) -> None:
        """Store the source's ids of its prices."""
        named, last = self._named.setdefault(source, {}), self._last.setdefault(source, {})
        for quote in quotes:
            id_ = quote.get("id")
            if id_:
                price = price_of(quote)
                named[id_], last[price] = price, id_
        if len(named) > _SPARE + 2 * len(self._rows):
            self._named[source] = {id_: price for id_, price in named.items() if price in self._rows}
            self._last[source] = {price: id_ for price, id_ in last.items() if price in self._rows}

    def of(self, source: str, ids: Sequence[str], quotes: Iterable[Mapping[str, Any]]) -> list[str]:
        """Rows of our board for a source's ids, except those quoted in the same payload."""
        named = self._named.get(source)
        if not ids or not named:
            return []
        quoted, last = set(map(price_of, quotes)), self._last[source]
        prices = dict.fromkeys(named[id_] for id_ in ids if id_ in named and last.get(named[id_]) == id_)
        return [self._rows[price] for price in prices if price in self._rows and price not in quoted]

    def forget(self, source: str, ids: Iterable[str]) -> None:
        named = self._named.get(source, {})
        for id_ in ids:
            price = named.pop(id_, None)
            if price is not None and self._last[source].get(price) == id_:
                del self._last[source][price]
