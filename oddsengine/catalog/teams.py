"""Team names: what books call a team, brought to one name."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from oddsengine.catalog import files
from oddsengine.catalog.names import normalise
from oddsengine.catalog.sports import sport


class Team(NamedTuple):
    """One team as its league names it, and what else it is called."""

    sport: str
    league: str
    name: str
    aliases: tuple[str, ...]


@cache
def teams() -> tuple[Team, ...]:
    """Every team of the catalog."""
    return tuple(
        Team(row["sport"], row["league"], row["name"], files.words(row["aliases"])) for row in files.rows("teams.csv")
    )


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    tables: dict[str, dict[str, str]] = {}
    for team in teams():
        names = tables.setdefault(team.sport, {})
        canonical = normalise(team.name)
        for name in (team.name, *team.aliases):
            names[normalise(name)] = canonical
    return MappingProxyType({id_: MappingProxyType(names) for id_, names in tables.items()})


_NONE: Mapping[str, str] = MappingProxyType({})


def team_aliases(sport_id: str) -> Mapping[str, str]:
    """Every known name of a sport's teams, normalised, to the normalised canonical name.

    Examples
    --------
    >>> team_aliases("basketball")["la lakers"]
    'los angeles lakers'
    """
    return _tables().get(sport(sport_id).id, _NONE)
