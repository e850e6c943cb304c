"""Sportsbooks: which are sharp, exchanges, mid prices, sisters, and what they keep of a win."""

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from oddsengine.catalog import files
from oddsengine.catalog.names import plain


class Book(NamedTuple):
    """One sportsbook; books.toml says what each flag means."""

    id: str
    name: str
    sharp: bool = False
    exchange: bool = False
    mid_price: bool = False
    commission: float = 0.0
    fee: float = 0.0
    feed: str = ""
    aliases: tuple[str, ...] = ()


@cache
def books() -> Mapping[str, Book]:
    """Id to book, best reference first."""
    table = {}
    for id_, entry in files.toml("books.toml").items():
        entry["aliases"] = tuple(entry.get("aliases", ()))
        table[id_] = Book(id_, **entry)
    return MappingProxyType(table)


@cache
def _by_alias() -> Mapping[str, Book]:
    table = {plain(word): book for book in books().values() for word in (*book.aliases, book.name)}
    return table | dict(books())


@lru_cache(maxsize=4096)
def book(id_: str) -> Book:
    """Look a book up by its id, name or an alias, however spaced and capitalised; an unknown one has no flag set.

    Examples
    --------
    >>> book("pinnacle").sharp, book("betfair_ex_eu").id, book("Circa Sports").id, book("Corner Shop")[:3]
    (True, 'betfair_exchange', 'circa', ('corner_shop', 'Corner Shop', False))
    """
    name = plain(id_)
    return _by_alias().get(name) or Book(name, id_)
