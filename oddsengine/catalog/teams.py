"""Teams: names used by books, resolved to one name."""

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from oddsengine.catalog import data_files
from oddsengine.catalog.leagues import league, leagues
from oddsengine.catalog.spelling import normalise
from oddsengine.catalog.sports import sport


class Team(NamedTuple):
    """A team as named by its league.

    `aliases` apply throughout the sport, `in_league` only if the league is known (New York).
    """

    sport: str
    league: str
    name: str
    aliases: tuple[str, ...] = ()
    id: str = ""
    in_league: tuple[str, ...] = ()


def _team(id_: str, entry: Mapping[str, object]) -> Team:
    league_ = leagues()[str(entry["league"])]
    lists = {key: entry.get(key, ()) for key in ("aliases", "in_league")}
    names = {key: tuple(value) if isinstance(value, (list, tuple)) else () for key, value in lists.items()}
    return Team(league_.sport, league_.id, str(entry["name"]), id=id_, **names)


@cache
def teams() -> tuple[Team, ...]:
    """Return every team of the catalog."""
    return tuple(
        _team(id_, entry) for id_, entry in data_files.amended("teams", data_files.entries("teams.csv")).items()
    )


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    owners: dict[str, dict[str, str]] = {}
    for each in teams():
        names = map(normalise, (each.name, *each.aliases))
        data_files.claimed(owners.setdefault(each.sport, {}), names, each.id, f"teams of {each.sport}")
    canonical = {each.id: normalise(each.name) for each in teams()}
    tables = {id_: {name: canonical[owner] for name, owner in names.items()} for id_, names in owners.items()}
    return MappingProxyType({id_: MappingProxyType(names) for id_, names in tables.items()})


_NONE: Mapping[str, str] = MappingProxyType({})


def team_aliases(sport_id: str) -> Mapping[str, str]:
    """Map normalised names of a sport's teams to the normalised canonical name.

    Examples
    --------
    >>> team_aliases("basketball")["la lakers"]
    'los angeles lakers'
    """
    return _tables().get(sport(sport_id).id, _NONE)


@cache
def _by_name() -> Mapping[tuple[str, str], Team]:
    """Map (sport, id or canonical name) to teams."""
    ids = {(each.sport, normalise(each.id)): each for each in teams()}
    return ids | {(each.sport, normalise(each.name)): each for each in teams()}


@cache
def _by_league() -> Mapping[str, Mapping[str, Team]]:
    """Map leagues to the names of their teams."""
    owners: dict[str, dict[str, str]] = {}
    for each in teams():
        names = map(normalise, (each.name, *each.aliases, *each.in_league))
        data_files.claimed(owners.setdefault(each.league, {}), names, each.id, f"teams of {each.league}")
    by_id = {each.id: each for each in teams()}
    return {id_: {name: by_id[owner] for name, owner in names.items()} for id_, names in owners.items()}


@lru_cache(maxsize=16384)
def team(text: str, sport_id: str, league_id: str = "") -> Team | None:
    """Return a team by name or id; None if it is unknown, or ambiguous without the league.

    Examples
    --------
    >>> [found and found.id for found in (team("Sixers", "nba"), team("IND", "basketball"), team("IND", "nba", "nba"))]
    ['philadelphia_76ers', None, 'indiana_pacers']
    """
    name = normalise(text)
    if match := _by_league().get(league(league_id, sport_id).id, {}).get(name):
        return match
    within = sport(sport_id).id
    return _by_name().get((within, team_aliases(within).get(name, name)))


@lru_cache(maxsize=16384)
def team_name(text: str, sport_id: str, league_id: str = "") -> str:
    """Return the full name of a team of a league, so that all books' names of an event's teams are one; else the text.

    Examples
    --------
    >>> team_name("Suns", "basketball", "nba"), team_name("Suns", "basketball", "ncaab"), team_name("Ajax", "soccer")
    ('Phoenix Suns', 'Suns', 'Ajax')
    """
    found = team(text, sport_id, league_id)
    own = found is not None and (not league_id or found.league == league(league_id, sport_id).id)
    return found.name if found is not None and own else text


@lru_cache(maxsize=16384)
def certain_team(text: str, sport_id: str, league_id: str = "") -> Team | None:
    """Return the team of a name that is one throughout its sport, unless a league is named that is not the team's.

    In another league a nickname is another team's (the Hornets of a college), and a city alone is none's.

    Examples
    --------
    >>> named = ("Hornets", "nba"), ("Hornets", ""), ("Hornets", "ncaab"), ("Charlotte", "nba")
    >>> [certain_team(name, "basketball", league) is not None for name, league in named]
    [True, True, False, False]
    """
    within, name = sport(sport_id).id, normalise(text)
    found = _by_name().get((within, team_aliases(within).get(name, name)))
    return found if found is not None and (not league_id or found.league == league(league_id, sport_id).id) else None
