"""Futures: kinds of markets, contestants of leagues whose teams are all known, and formats of seasons."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from oddsengine.catalog import data_files
from oddsengine.catalog.leagues import league, leagues
from oddsengine.catalog.spelling import normalise, slug
from oddsengine.catalog.sports import sport, sports
from oddsengine.catalog.teams import teams

TYPES = ("TEAM", "PLAYER", "OVER_UNDER", "YES_NO")
_TOP = re.compile(r"top_([1-9][0-9]?)(?:_finish)?")
_YEARS = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:\s*[-/\u2013]\s*((?:19|20)?\d\d))?(?!\d)")
_BEGINS = 7  # month from which a date belongs to the season that begins


class FutureKind(NamedTuple):
    """A kind of future. `places` is 0, and `type` empty, if the name does not imply it."""

    id: str
    name: str
    type: str = ""
    places: int = 0
    whole_league: bool = False  # every team of the league takes part


class FutureThresholds(NamedTuple):
    """Thresholds of futures; futures.toml documents them."""

    stale_s: float
    forget_s: float
    reference_wide: float
    reference_wide_two: float


@cache
def _data() -> Mapping[str, Any]:
    return data_files.toml("futures.toml")


@cache
def thresholds() -> FutureThresholds:
    """Return the packaged thresholds."""
    return FutureThresholds(**_data()["thresholds"])


@cache
def _kinds() -> Mapping[str, FutureKind]:
    """Map every name of a kind to the kind."""
    owners: dict[str, str] = {}
    made = {}
    for id_, entry in _data()["kinds"].items():
        data_files.claimed(owners, (id_, *entry["aliases"]), id_, "kinds of futures")
        made[id_] = FutureKind(
            id_, entry["name"], entry["type"], entry.get("places", 0), whole_league=entry.get("field") == "league"
        )
    return MappingProxyType({name: made[owner] for name, owner in owners.items()})


@lru_cache(maxsize=4096)
def kind(text: str) -> FutureKind:
    """Return the kind of a market name; an unknown name is a kind of its own.

    Examples
    --------
    >>> kind("Super Bowl Winner").id, kind("Top 4 Finish")[:4], kind("Coach of the Year").id
    ('championship', ('top_4_finish', 'top 4 finish', '', 4), 'coach_of_the_year')
    """
    name = slug(text)
    match = _kinds().get(name)
    if match is not None:
        return match
    top = _TOP.fullmatch(name)
    if top:
        return FutureKind(f"top_{top[1]}_finish", f"top {top[1]} finish", "", int(top[1]))
    return FutureKind(name, text.strip())


@lru_cache(maxsize=4096)
def competition(text: str, sport_id: str = "") -> tuple[str, str]:
    """Split a text into the league's id and the rest: the NBA Cup is not the NBA title.

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
    """Split a source's key into sport, league and kind; missing parts are empty.

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
            league_id, rest = competition(" ".join(parts[n:]), within)
            return (within, league_id, rest) if league_id in leagues() else (within, "", " ".join(parts[n:]))
    return "", "", " ".join(parts)


@lru_cache(maxsize=4096)
def season(text: str, league_id: str, when: datetime | None = None) -> str:
    """Normalise a season from its text, or else from a date within it; empty if unknown.

    Examples
    --------
    >>> from datetime import UTC
    >>> season("2026/2027", "nba"), season("Season 2026", "mlb"), season("", "nba", datetime(2027, 6, 1, tzinfo=UTC))
    ('2026-27', '2026', '2026-27')
    """
    match = _YEARS.search(text)
    if match:
        first = int(match[1])
        second = None if match[2] is None else int(match[2]) % 100
        return f"{first}-{second:02d}" if second is not None else str(first)
    if when is None:
        return ""
    if league_id in _data()["seasons"]["split"]:
        first = when.year if when.month >= _BEGINS else when.year - 1
        return f"{first}-{(first + 1) % 100:02d}"
    return str(when.year)


def without_season(text: str) -> str:
    """Remove the season from a market's name.

    Examples
    --------
    >>> without_season("Championship Winner 2026/27")
    'Championship Winner'
    """
    return " ".join(_YEARS.sub(" ", text).split())


@cache
def contestants(league_id: str) -> tuple[str, ...]:
    """Return the names of all teams of a league; empty if the catalog is incomplete.

    Examples
    --------
    >>> len(contestants("nba")), contestants("england_premier_league")
    (30, ())
    """
    names = tuple(team.name for team in teams() if team.league == league_id)
    return names if len(names) == _data()["fields"].get(league_id) else ()
