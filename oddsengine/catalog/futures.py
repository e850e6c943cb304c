"""Futures: what is decided over a season, who takes part where that is known, and how seasons are written."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from oddsengine.catalog import files
from oddsengine.catalog.leagues import league, leagues
from oddsengine.catalog.names import normalise
from oddsengine.catalog.sports import sport, sports
from oddsengine.catalog.teams import teams

TYPES = ("TEAM", "PLAYER", "OVER_UNDER", "YES_NO")
_TOP = re.compile(r"top_([1-9][0-9]?)(?:_finish)?")
_YEARS = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:\s*[-/\u2013]\s*((?:19|20)?\d\d))?(?!\d)")
_BEGINS = 7  # month from which a date belongs to the season that begins


class Kind(NamedTuple):
    """One thing that is decided. `places` is 0, and `type` empty, where the name does not say it."""

    id: str
    name: str
    type: str = ""
    places: int = 0
    whole_league: bool = False  # every team of the league takes part


class Limits(NamedTuple):
    """Thresholds of futures; futures.toml says what they mean."""

    stale_s: float
    forget_s: float
    reference_wide: float
    reference_wide_two: float


@cache
def _data() -> Mapping[str, Any]:
    return files.toml("futures.toml")


@cache
def limits() -> Limits:
    """The thresholds that the package ships with."""
    return Limits(**_data()["thresholds"])


@cache
def _kinds() -> Mapping[str, Kind]:
    """Every name of a kind to the kind."""
    owners: dict[str, str] = {}
    made = {}
    for id_, entry in _data()["kinds"].items():
        files.claimed(owners, (id_, *entry["aliases"]), id_, "kinds of futures")
        made[id_] = Kind(
            id_, entry["name"], entry["type"], entry.get("places", 0), whole_league=entry.get("field") == "league"
        )
    return MappingProxyType({name: made[owner] for name, owner in owners.items()})


@lru_cache(maxsize=4096)
def kind(text: str) -> Kind:
    """Look up what a name says is decided; one that is not known is a kind of its own.

    Examples
    --------
    >>> kind("Super Bowl Winner").id, kind("Top 4 Finish")[:4], kind("Coach of the Year").id
    ('championship', ('top_4_finish', 'top 4 finish', '', 4), 'coach_of_the_year')
    """
    name = normalise(text).replace(" ", "_")
    found = _kinds().get(name)
    if found is not None:
        return found
    top = _TOP.fullmatch(name)
    if top:
        return Kind(f"top_{top[1]}_finish", f"top {top[1]} finish", "", int(top[1]))
    return Kind(name, text.strip())


@lru_cache(maxsize=4096)
def competition(text: str, sport_id: str = "") -> tuple[str, str]:
    """Give a league's id and what else its text says: the NBA's cup is not the NBA's title.

    Examples
    --------
    >>> competition("NBA"), competition("nba_cup"), competition("Serie A - Italy", "soccer")
    (('nba', ''), ('nba', 'cup'), ('italy_serie_a', ''))
    """
    parts = normalise(text).split()
    heads = [league("_".join(parts[:n]), sport_id or None) for n in range(1, len(parts) + 1)]
    whole = next((head for head in reversed(heads) if head.id in leagues()), None)
    if whole is None:
        return (heads[-1].id if parts else ""), ""
    n = next(n for n, head in enumerate(heads, 1) if head.id == whole.id)
    rest = " ".join(parts[n:])
    return whole.id, "" if rest == normalise(whole.country) else rest


@lru_cache(maxsize=4096)
def split(key: str) -> tuple[str, str, str]:
    """Take a source's key apart into sport, league and what is decided; empty where it does not say.

    Examples
    --------
    >>> split("americanfootball_nfl_super_bowl_winner"), split("golf_masters_tournament_winner")
    (('football', 'nfl', 'super bowl winner'), ('golf', 'golf_masters', 'tournament winner'))
    >>> split("politics_us_presidential_election_winner")
    ('', '', 'politics us presidential election winner')
    """
    parts = normalise(key).split()
    for n in range(1, len(parts) + 1):
        within = sport("_".join(parts[:n])).id
        if within in sports():
            found, rest = competition(" ".join(parts[n:]), within)
            return (within, found, rest) if found in leagues() else (within, "", " ".join(parts[n:]))
    return "", "", " ".join(parts)


@lru_cache(maxsize=4096)
def season(text: str, league_id: str, when: datetime | None = None) -> str:
    """Write a season in one way: what the text says, else what follows from a date of it; empty if neither does.

    Examples
    --------
    >>> from datetime import UTC
    >>> season("2026/2027", "nba"), season("Season 2026", "mlb"), season("", "nba", datetime(2027, 6, 1, tzinfo=UTC))
    ('2026-27', '2026', '2026-27')
    """
    found = _YEARS.search(text)
    if found:
        first = int(found[1])
        second = None if found[2] is None else int(found[2]) % 100
        return f"{first}-{second:02d}" if second is not None else str(first)
    if when is None:
        return ""
    if league_id in _data()["seasons"]["split"]:
        first = when.year if when.month >= _BEGINS else when.year - 1
        return f"{first}-{(first + 1) % 100:02d}"
    return str(when.year)


def without_season(text: str) -> str:
    """A market's name without the season's.

    Examples
    --------
    >>> without_season("Championship Winner 2026/27")
    'Championship Winner'
    """
    return " ".join(_YEARS.sub(" ", text).split())


@cache
def contestants(league_id: str) -> tuple[str, ...]:
    """Names of all teams of a league; empty where the catalog does not know them all.

    Examples
    --------
    >>> len(contestants("nba")), contestants("england_premier_league")
    (30, ())
    """
    found = tuple(team.name for team in teams() if team.league == league_id)
    return found if len(found) == _data()["fields"].get(league_id) else ()
