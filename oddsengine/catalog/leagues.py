"""Leagues: names used by sources, resolved to ids."""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from oddsengine.catalog import data_files
from oddsengine.catalog.spelling import slug
from oddsengine.catalog.sports import sport, sports


class League(NamedTuple):
    """A league. `country` is a country or region; empty if unknown, like `sport`."""

    id: str
    name: str
    sport: str = ""
    country: str = ""
    aliases: tuple[str, ...] = ()


@cache
def leagues() -> Mapping[str, League]:
    """Return leagues by id."""
    table = {}
    for id_, entry in data_files.amended("leagues", data_files.entries("leagues.csv")).items():
        table[id_] = League(id_, **{**entry, "aliases": tuple(entry.get("aliases", ()))})
    return MappingProxyType(table)


def _names(league: League) -> Iterator[str]:
    """Return every spelling of a league: `premier_league_england` and `england_premier_league` beside those given."""
    name, country = slug(league.name), slug(league.country)
    yield league.id
    yield from map(slug, league.aliases)
    if country:
        yield f"{country}_{name}"
        yield f"{name}_{country}"


@cache
def _by_sport() -> Mapping[str, Mapping[str, League]]:
    """Map each sport to the spellings of its leagues. Explicit names take precedence over derived ones."""
    owners: dict[str, dict[str, str]] = {id_: {} for id_ in sports()}
    for each in leagues().values():
        data_files.claimed(owners[each.sport], _names(each), each.id, f"leagues of {each.sport}")
    alike: dict[tuple[str, str], list[str]] = {}
    for each in leagues().values():
        alike.setdefault((each.sport, slug(each.name)), []).append(each.id)
    for (sport_id, name), ids in alike.items():
        if len(ids) == 1:
            owners[sport_id].setdefault(name, ids[0])
    return {id_: {name: leagues()[owner] for name, owner in names.items()} for id_, names in owners.items()}


@cache
def _by_name() -> Mapping[str, League | None]:
    """Map spellings to leagues across sports; None if two sports share one. Ids take precedence."""
    table: dict[str, League | None] = {}
    for names in _by_sport().values():
        for name, each in names.items():
            table[name] = each if table.get(name, each) is each else None
    return table | dict(leagues())


def _without_sport(name: str) -> Iterator[tuple[str, str]]:
    """Return each split of `soccer_germany_bundesliga` into a sport and a league name."""
    parts = name.split("_")
    for size in range(1, len(parts)):
        word = "_".join(parts[:size])
        sport_ = sport(word)
        if word in (sport_.id, *sport_.aliases) and sport_.id in sports():
            yield sport_.id, "_".join(parts[size:])


@lru_cache(maxsize=16384)
def league(text: str, sport_id: str | None = None) -> League:
    """Return a league by any spelling; an unknown league keeps its name.

    Parameters
    ----------
    text
        Id, name, alias or code of a league, optionally with a sport before it, or a country before or after.
    sport_id
        Sport or an alias. Without it, names shared by two sports are unknown.

    Examples
    --------
    >>> league("NBA").id, league("soccer_epl").id, league("Serie A - Italy").id, league("E0", "soccer").name
    ('nba', 'england_premier_league', 'italy_serie_a', 'Premier League')
    >>> league("F1", "soccer").id, league("F1", "motorsports").id, league("Sunday League", "soccer")[:3]
    ('france_ligue_1', 'formula_1', ('sunday_league', 'Sunday League', 'soccer'))
    """
    name = slug(text)
    within = sport(sport_id).id if sport_id else ""
    match = _by_sport().get(within, {}).get(name) if within else _by_name().get(name)
    if match is not None:
        return match
    for id_, rest in _without_sport(name):
        if within in ("", id_) and (match := _by_sport()[id_].get(rest)):
            return match
    return League(name, text, within)
