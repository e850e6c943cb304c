"""Places: in which countries and states a book takes bets online.

places.toml has them with their sources. What it does not say is unknown, which is not the same as closed.
"""

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any, NamedTuple

from oddsengine.bounds import excerpt
from oddsengine.catalog import data_files
from oddsengine.catalog.books import book, books
from oddsengine.catalog.links import link_states

PLACE_PATTERN = "[A-Za-z]{2}(-[A-Za-z0-9]{1,3})?"
_REGIONS = {"UK": "GB", "AU": "AU"}  # regions that are one country


class Places(NamedTuple):
    """Where a book takes bets; what is neither open nor closed is unknown."""

    open: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    source: str = ""
    dated: date | None = None

    def takes_bets(self, place: str) -> bool | None:
        """Whether it takes bets in a place, None if that is unknown; a part counts before its country.

        Of a country that is closed except for some parts it depends on the part.
        """
        for name in dict.fromkeys((place, place[:2])):
            if name in self.unknown:
                return None
            if name in self.open:
                return True
            if name in self.closed:
                return None if any(part.startswith(f"{place}-") for part in self.open) else False
        return None


def fault(name: str) -> str:
    """Return what is wrong with the code of a place, or an empty string."""
    if not re.fullmatch(PLACE_PATTERN, name) or name != name.upper():
        return "has to be a country such as GB, or a part of one such as US-NJ"
    if name.startswith("US-") and name[3:].lower() not in link_states():
        return f"is not a state: US- is followed by one of {', '.join(sorted(link_states())).upper()}"
    return ""


def place(text: str) -> str:
    """Return the code of a place.

    Raises `ValueError` if it is not one.

    Examples
    --------
    >>> place("us-nj"), place(" gb ")
    ('US-NJ', 'GB')
    """
    name = text.strip().upper()
    if problem := fault(name):
        raise ValueError(f"invalid place {excerpt(text)}: it {problem}")
    return name


@cache
def _entries() -> Mapping[str, Mapping[str, Any]]:
    return data_files.amended("places", data_files.toml("places.toml"))


@cache
def places(book_id: str) -> Places:
    """Return where a book, by id, name or alias, takes bets.

    Examples
    --------
    >>> kings = places("DraftKings")
    >>> kings.takes_bets("US-NJ"), kings.takes_bets("US-CA"), kings.takes_bets("GB")
    (True, False, None)
    """
    own = book(book_id)
    entry = _entries().get(own.id)
    if entry is None:
        return Places(
            frozenset(_REGIONS[each] for each in own.regions if each in _REGIONS), source="regions of books.toml"
        )
    some = {name: frozenset(entry.get(name, ())) for name in ("open", "closed", "unknown")}
    return Places(
        **some, source=" ".join(entry.get("source", "your own catalog file").split()), dated=entry.get("date")
    )


def takes_bets(book_id: str, where: str, *, unknown: bool = False) -> bool:
    """Whether a book takes bets in a place; `unknown` is the answer if that is not known."""
    answer = places(book_id).takes_bets(where)
    return unknown if answer is None else answer


def books_in(where: str, *, unknown: bool = False) -> tuple[str, ...]:
    """Return the ids of the books that take bets in a place, in catalog order.

    Parameters
    ----------
    where
        A country by ISO 3166-1, such as "GB", or a part of one by ISO 3166-2, such as "US-NJ".
    unknown
        Also return the books of which it is not known.

    Raises
    ------
    ValueError
        If `where` is not a place.

    Examples
    --------
    >>> books_in("US-NV"), books_in("us-or")
    (('caesars',), ('kalshi', 'draftkings'))
    >>> "kalshi" in books_in("US-MA"), "kalshi" in books_in("US-MA", unknown=True)
    (False, True)
    """
    code = place(where)
    return tuple(name for name in books() if takes_bets(name, code, unknown=unknown))
