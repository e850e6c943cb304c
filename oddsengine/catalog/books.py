"""Sportsbooks: sharp, exchange, parlay-only and so on, their regions, feeds, tiers and commission."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from oddsengine.catalog import data_files
from oddsengine.catalog.spelling import plain

_PLACE = re.compile(r"(.+)_([a-z]{2})")
REGIONS = ("US", "UK", "EU", "AU", "GLOBAL")
CURRENCIES = ("USD", "USDC", "GBP", "EUR")
# A tier includes the books of lower tiers.
TIERS = ("free", "hobby", "pro", "sharp")


class Book(NamedTuple):
    """A sportsbook; books.toml documents the fields."""

    id: str
    name: str
    sharp: bool = False
    exchange: bool = False
    mid_price: bool = False
    last_traded: bool = False
    parlay_only: bool = False
    commission: float = 0.0
    fee: float = 0.0
    live_fee: float | None = None
    fee_step: float = 0.01
    feed: str = ""
    aliases: tuple[str, ...] = ()
    display: str = ""
    regions: tuple[str, ...] = ()
    live: bool = True
    props: bool = True
    requires_tier: str = TIERS[-1]
    currency: str = ""  # of the sizes that it publishes

    @property
    def display_name(self) -> str:
        """Name for display."""
        return self.display or self.name

    @property
    def provider(self) -> str:
        """What books have in common whose prices one odds provider makes."""
        return self.feed or f"={self.id}"

    def contract_fee(self, *, live: bool) -> float:
        """F of its fee per contract, before the start or in play."""
        return self.live_fee if live and self.live_fee is not None else self.fee


@cache
def books() -> Mapping[str, Book]:
    """Return books by id, best reference first."""
    table = {}
    for id_, entry in data_files.amended("books", data_files.toml("books.toml")).items():
        entry["aliases"] = tuple(entry.get("aliases", ()))
        entry["regions"] = tuple(entry.get("regions", ()))
        table[id_] = Book(id_, **entry)
    return MappingProxyType(table)


@cache
def _by_alias() -> Mapping[str, Book]:
    owners: dict[str, str] = {}
    for each in books().values():
        names = (plain(word) for word in (each.id, *each.aliases, each.name))
        data_files.claimed(owners, names, each.id, "books")
    return {name: books()[id_] for name, id_ in owners.items()}


@lru_cache(maxsize=4096)
def book(id_: str) -> Book:
    """Return a book by id, name or alias, ignoring case and spaces; an unknown book has no flags.

    One of a state or a country, such as `hardrockbet_az`, has the odds provider of the book that it is of; an exchange
    does not: other customers bet there.

    Examples
    --------
    >>> book("pinnacle").sharp, book("betfair_ex_eu").id, book("Circa Sports").id, book("Corner Shop")[:3]
    (True, 'betfair_exchange', 'circa', ('corner_shop', 'Corner Shop', False))
    >>> book("hardrockbet_az").provider == book("hardrock").provider
    True
    """
    name, known = plain(id_), _by_alias()
    if (found := known.get(name)) is not None:
        return found
    if (match := _PLACE.fullmatch(name)) and (of := known.get(match[1])) and not of.exchange:
        return of._replace(
            id=name, name=f"{of.name} {match[2].upper()}", sharp=False, feed=of.provider, aliases=(), display="",
            requires_tier=TIERS[-1],
        )  # fmt: skip
    return Book(name, id_)


@cache
def tier_books(tier: str) -> tuple[str, ...]:
    """Return the ids of a tier's books, in catalog order; tiers above the last one have all.

    Examples
    --------
    >>> tier_books("free"), [len(tier_books(tier)) for tier in ("hobby", "pro")]
    (('draftkings', 'fanduel'), [5, 15])
    """
    seen = TIERS[: TIERS.index(tier) + 1] if tier in TIERS else TIERS
    return tuple(each.id for each in books().values() if each.requires_tier in seen)
