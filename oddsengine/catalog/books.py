"""Sportsbooks: which are sharp, exchanges, mid prices, sisters, and what they keep of a win."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from oddsengine.catalog import files


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
    table = {alias: book for book in books().values() for alias in book.aliases}
    return table | dict(books())


def book(id_: str) -> Book:
    """Look a book up by its id or an alias; an unknown one has no flag set.

    Examples
    --------
    >>> book("pinnacle").sharp, book("betfair_ex_eu").id, book("corner_shop").sharp
    (True, 'betfair_exchange', False)
    """
    return _by_alias().get(id_) or Book(id_, id_)
