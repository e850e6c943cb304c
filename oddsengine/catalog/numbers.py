"""Numerical ids: a small number for every id of the catalog, for clients that store numbers.

`numbers.csv` is the registry. Numbers are dense from 1 in each domain, in the order of its lines, and frozen: a line is
never changed, moved or removed, whatever becomes of what it names. New ids get lines at the end of the file:
`python -m oddsengine.catalog.numbers` prints those that are missing.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from oddsengine.catalog import files
from oddsengine.catalog.books import books
from oddsengine.catalog.leagues import leagues
from oddsengine.catalog.listings import listings
from oddsengine.catalog.sports import sports
from oddsengine.catalog.teams import teams

DOMAINS = ("sport", "league", "sportsbook", "market", "team")


@cache
def _registry() -> Mapping[str, Mapping[str, int]]:
    table: dict[str, dict[str, int]] = {domain: {} for domain in DOMAINS}
    for row in files.rows("numbers.csv"):
        known = table[row["domain"]]
        known[row["id"]] = len(known) + 1
    return MappingProxyType(table)


def numerical_id(domain: str, id_: str) -> int | None:
    """The number of an id, None for one that the registry does not have, such as an operator's own.

    Parameters
    ----------
    domain : str
        ``sport``, ``league``, ``sportsbook``, ``market`` or ``team``.
    id_ : str
        As the catalog has it; of a team ``sport/id``.

    Examples
    --------
    >>> numerical_id("sportsbook", "pinnacle"), numerical_id("team", "basketball/boston_celtics")
    (1, 2)
    >>> numerical_id("league", "of nobody") is None
    True
    """
    return _registry()[domain].get(id_)


def missing() -> list[tuple[str, str]]:
    """Domain and id of what the shipped catalog has and the registry does not."""
    every = {
        "sport": list(sports()), "league": list(leagues()), "sportsbook": list(books()), "market": list(listings()),
        "team": [f"{team.sport}/{team.id}" for team in teams()],
    }  # fmt: skip
    known = _registry()
    return [(domain, id_) for domain in DOMAINS for id_ in dict.fromkeys(every[domain]) if id_ not in known[domain]]


if __name__ == "__main__":
    for domain, id_ in missing():
        print(f"{domain},{id_}")
