"""Display names and descriptions of market types and their selections."""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from oddsengine.catalog import data_files
from oddsengine.catalog.markets import FULL_GAME, MarketType, market_type


class Listing(NamedTuple):
    """A described market type. `family` is empty if it is not used; the description then says why."""

    id: str
    name: str
    description: str
    has_line: bool = False
    examples: tuple[str, ...] = ()
    family: str = ""
    period: str = FULL_GAME


class _Text(NamedTuple):
    name: str
    description: str
    examples: tuple[str, ...]
    parts: tuple[str, ...] = ()


def _of_stat(counted: str, line: str) -> _Text:
    name = f"Player {counted.removeprefix('a ').removeprefix('the ')}"
    if not line:
        return _Text(name, f"Whether one player records {counted}.", ("Yes", "No"))
    subject = counted[0].upper() + counted[1:]
    return _Text(name, f"{subject} of one player, over or under the line.", (f"Over {line}", f"Under {line}"))


@cache
def _texts() -> Mapping[str, _Text]:
    """Map market types without period to their texts."""
    groups = data_files.toml("markets.toml")["parts"]
    table = {
        f"player_{row['stat']}": _of_stat(row["counted"], row["example"])
        for row in data_files.read_csv("player_stats.csv")
    }
    for row in data_files.read_csv("market_texts.csv"):
        parts = tuple(part for group in data_files.split_list(row["parts"]) for part in groups[group])
        table[row["id"]] = _Text(row["name"], row["description"], data_files.split_list(row["examples"]), parts)
    return table


def _spoken(name: str) -> str:
    """Format a catalog name as words: `1st_half` is 1st half."""
    words = " ".join(name.replace("_", " ").split())
    return words[:1].upper() + words[1:]


def _listing(id_: str, kind: MarketType) -> Listing:
    text = _texts().get(kind.base)
    if text is None or not kind.usable:
        return Listing(id_, _spoken(id_), f"Not used: {kind.reason}.", period=kind.period)
    name, description, part = text.name, text.description, kind.period.replace("_", " ")
    # Some types imply a period (a run in the first inning) and have texts of their own.
    if kind.period not in (FULL_GAME, market_type(kind.base).period):
        name, description = f"{name}, {part}", f"{description} Only the {part} counts."
    return Listing(id_, name, description, kind.has_line, text.examples, kind.family, kind.period)


@lru_cache(maxsize=16384)
def listing(name: str, sport_id: str = "") -> Listing:
    """Describe a market type under the given name.

    Examples
    --------
    >>> listing("1st_half_point_spread").name, listing("totals").family, listing("correct_score").description
    ('Point spread, 1st half', 'total', 'Not used: one of many scores; never complete.')
    """
    return _listing(name, market_type(name, sport_id))


def _ids() -> Iterator[str]:
    for base, text in _texts().items():
        yield base
        yield from (f"{part}_{base}" for part in text.parts)


@cache
def listings() -> Mapping[str, Listing]:
    """Return all described market types by id, including their common periods.

    Examples
    --------
    >>> listings()["1st_5_innings_run_line"].description
    'Which side wins once the line is added to its runs. Only the 1st 5 innings counts.'
    """
    return MappingProxyType({id_: listing(id_) for id_ in _ids()})
