"""What a quote is a price of, and what a source's ids of its prices stand for."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from oddsengine.identity.raw_labels import RAW_LABEL

Price = tuple[str, tuple[Any, ...]]  # book, raw label and line


def price_of(quote: Mapping[str, Any]) -> Price:
    """What a quote is a price of: two quotes with equal ones replace each other."""
    return quote["sportsbook"], (*map(quote.get, RAW_LABEL), quote.get("line"))


class PriceIds:
    """A source's ids of its prices. A price may get another id; the earlier one then stands for nothing."""

    def __init__(self) -> None:
        self._prices: dict[str, Price] = {}
        self._ids: dict[Price, str] = {}  # the last of each price

    def __len__(self) -> int:
        return len(self._prices)

    def learn(self, quotes: Iterable[Mapping[str, Any]]) -> None:
        """Store the ids of quotes that have one."""
        for quote in quotes:
            id_ = quote.get("id")
            if id_:
                price = price_of(quote)
                self._prices[id_], self._ids[price] = price, id_

    def removed(self, ids: Sequence[str], quotes: Iterable[Mapping[str, Any]]) -> list[Price]:
        """Return the prices that a payload removes by id: those that it also quotes stay."""
        if not ids or not self._prices:
            return []
        quoted = set(map(price_of, quotes))
        named = ((id_, self._prices[id_]) for id_ in dict.fromkeys(ids) if id_ in self._prices)
        return [price for id_, price in named if self._ids.get(price) == id_ and price not in quoted]

    def forget(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            price = self._prices.pop(id_, None)
            if price is not None and self._ids.get(price) == id_:
                del self._ids[price]

    def keep(self, prices: Container[Price]) -> None:
        """Forget the ids of all other prices."""
        self._prices = {id_: price for id_, price in self._prices.items() if price in prices}
        self._ids = {price: id_ for price, id_ in self._ids.items() if price in prices}
