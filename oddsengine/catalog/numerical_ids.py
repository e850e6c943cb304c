"""Numerical ids: a small number for every id in the catalog, for clients that store numbers.

`numbers.csv` is the registry. Numbers count from 1 in each domain, in the order of its lines, and never change: a line
is never edited, moved or removed. New ids are appended; `python -m oddsengine.catalog.numerical_ids` prints those that
are missing.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from oddsengine.catalog import data_files
from oddsengine.catalog.books import books
from oddsengine.catalog.leagues import leagues
from oddsengine.catalog.listings import listings
from oddsengine.catalog.sports import sports
from oddsengine.catalog.teams import teams

DOMAINS = ("sport", "league", "sportsbook", "market", "team")


@cache
def _registry() -> Mapping[str, Mapping[str, int]]:
    table: dict[str, dict[str, int]] = {domain: {} for domain in DOMAINS}
    for row in data_files.read_csv("numbers.csv"):
        numbers = table[row["domain"]]
        numbers[row["id"]] = len(numbers) + 1
    return MappingProxyType(table)


def numerical_id(domain: str, id_: str) -> int | None:
    """Return the number of an id; None if it is not in the registry, such as ids of your own file.

    Parameters
    ----------
    domain : str
        ``sport``, ``league``, ``sportsbook``, ``market`` or ``team``.
    id_ : str
        Catalog id; for a team ``sport/id``.

    Examples
    --------
    >>> numerical_id("sportsbook", "pinnacle"), numerical_id("team", "basketball/boston_celtics")
    (1, 2)
    >>> numerical_id("league", "unknown") is None
    True
    """
    return _registry()[domain].get(id_)


def missing() -> list[tuple[str, str]]:
    """Return (domain, id) of packaged ids that are not in the registry."""
    every = {
        "sport": list(sports()), "league": list(leagues()), "sportsbook": list(books()), "market": list(listings()),
        "team": [f"{team.sport}/{team.id}" for team in teams()],
    }  # fmt: skip
    numbers = _registry()
    return [(domain, id_) for domain in DOMAINS for id_ in dict.fromkeys(every[domain]) if id_ not in numbers[domain]]


if __name__ == "__main__":
    for domain, id_ in missing():
        print(f"{domain},{id_}")
