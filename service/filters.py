"""Filters: what the words of a request mean, over the distinct values of a column.

A sport, league, market or team is asked for by any name that the catalog knows; a name that it does not know has to be
the row's own. Each function takes distinct values and says of each whether it is meant: how often it occurs in a column
does not matter.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.engine import micros
from oddsengine.query import LATEST
from oddsengine_service.params import Param
from oddsengine_service.problems import invalid, shown

Bools = npt.NDArray[np.bool_]
Text = str | None
EASTERN = ZoneInfo("America/New_York")
DAYS = ("today", "tomorrow", "week")


def _day(name: str, value: str) -> str:
    word = value.strip().lower()
    if word in DAYS[:2]:
        return word
    try:
        if date.fromisoformat(word).isoformat() == word:  # it reads other forms too
            return word
    except ValueError:
        pass
    raise invalid(f"{name} must be YYYY-MM-DD, today or tomorrow, got {shown(value)}")


def _state(name: str, value: str) -> str:
    word = value.strip().lower()
    if word not in catalog.states():
        raise invalid(f"{name} must be one of {', '.join(sorted(catalog.states()))}, got {shown(value)}")
    return word


STATE = Param(
    "state",
    _state,
    {"type": "string", "enum": sorted(catalog.states())},
    "US state for the links to books, two letters.",
)
DATE = Param(
    "date",
    _day,
    {"anyOf": [{"type": "string", "enum": list(DAYS[:2])}, {"type": "string", "format": "date"}]},
    "Day of the start in US Eastern time: YYYY-MM-DD, today or tomorrow.",
)


def span(day: str, now: datetime) -> tuple[int, int]:
    """Begin and end, in microseconds, of a day of US Eastern time; `week` is seven days from today's first moment.

    Examples
    --------
    >>> from datetime import UTC
    >>> begin, end = span("today", datetime(2026, 3, 8, 12, tzinfo=UTC))  # clocks go forward
    >>> (end - begin) // 3_600_000_000
    23
    """
    today = now.astimezone(EASTERN).date()
    first = {"today": today, "week": today, "tomorrow": today + timedelta(days=1)}.get(day)
    try:
        first = date.fromisoformat(day) if first is None else first
        after = first + timedelta(days=7 if day == "week" else 1)
        return _midnight(first), _midnight(after)
    except OverflowError:  # the last day there is: nothing begins then
        return LATEST, LATEST


def _midnight(day: date) -> int:
    return micros(datetime(day.year, day.month, day.day, tzinfo=EASTERN))


# ---- names ----


@lru_cache(maxsize=16384)
def _plain(word: str) -> str:
    return catalog.normalise(word).replace(" ", "_")


@lru_cache(maxsize=16384)
def sport_id(word: Text) -> str:
    """Id of a sport by any name; a word that is none stands for itself."""
    return catalog.sport(word or "").id


@lru_cache(maxsize=16384)
def league_id(word: Text, sport: Text) -> str:
    """Id of a league in a sport."""
    return catalog.league(word or "", sport_id(sport)).id


@lru_cache(maxsize=65536)
def _team_id(name: str, sport: str, league: str) -> str:
    known = catalog.team(name, sport, league)
    return known.id if known is not None else _plain(name)


def team_id(name: Text, sport: Text, league: Text) -> str:
    """Id of a team; of one that the catalog does not know, its name as a word."""
    return _team_id(name or "", sport_id(sport), league_id(league, sport)) if name else ""


# ---- which values are meant ----


def in_sports(asked: Sequence[str], sports: Iterable[Text]) -> list[bool]:
    """Of each sport."""
    wanted = {sport_id(word) for word in asked}
    return [sport_id(sport) in wanted for sport in sports]


def in_leagues(asked: Sequence[str], places: Iterable[tuple[Text, Text]]) -> list[bool]:
    """Of each (sport, league)."""
    return [any(league_id(league, sport) == league_id(word, sport) for word in asked) for sport, league in places]


def in_markets(asked: Sequence[str], places: Iterable[tuple[Any, ...]]) -> list[bool]:
    """Of each (sport, market type), perhaps with line and side: it has a name, or belongs to a category, that is given.

    Examples
    --------
    >>> in_markets(["main"], [("football", "h2h"), ("football", "1st_half_totals"), ("football", "player_points")])
    [True, False, False]
    >>> in_markets(["props", "1st_half_total_points"], [("football", "1st_half_totals"), ("nba", "player_points")])
    [True, True]
    """
    types = {kind for word in asked for kind in catalog.categories().get(word.lower(), (word,))}
    props = "player_*" in types
    out = []
    for sport, market, *rest in places:
        line, side = rest or (None, None)
        within = sport_id(sport)
        meant = catalog.market_type(market or "", within)
        name = catalog.published_name(market or "", within)
        prop = props and (meant.is_prop or (not meant.usable and name.startswith("player_")))
        out.append(prop or any(catalog.is_market(kind, name, within, "", line, side or "") for kind in types))
    return out


def with_teams(asked: Sequence[str], games: Iterable[tuple[Text, Text, Text, Text]]) -> list[bool]:
    """Of each (sport, league, home, away)."""
    out = []
    for sport, league, *teams in games:
        wanted = {team_id(word, sport, league) for word in asked}
        out.append(any(team and team_id(team, sport, league) in wanted for team in teams))
    return out


@lru_cache(maxsize=65536)
def folded(name: str) -> str:
    """A text as it compares: no case, no accents, no marks."""
    return catalog.normalise(name)


def containing(part: str, texts: Iterable[Text]) -> list[bool]:
    """Of each text; a part that is only marks is part of none."""
    wanted = folded(part)
    return [bool(wanted) and wanted in folded(name or "") for name in texts]


def named(asked: Sequence[str], texts: Iterable[Text]) -> list[bool]:
    """Of each text: it is one of those asked for, whatever its case and accents."""
    wanted = {folded(word) for word in asked} - {""}
    return [folded(name or "") in wanted for name in texts]


def chosen(asked: Sequence[str], selections: Iterable[tuple[Text, Text]]) -> list[bool]:
    """Of each (selection, its type)."""
    texts, types = {folded(word) for word in asked} - {""}, {word.lower() for word in asked}
    return [folded(text or "") in texts or kind in types for text, kind in selections]


# ---- what nobody knows ----


def strangers(query: Any, seen: Callable[[], "Seen"]) -> dict[str, list[str]]:
    """Ids of a request that neither the catalog nor the board knows, by parameter; `seen` is only asked if need be."""
    found: dict[str, list[str]] = {}
    for name, (known, of) in _KNOWN.items():
        missing = [word for word in query.get(name) or () if not known(word)]
        if missing:
            here = {_plain(value) for value in of(seen())}
            missing = [word for word in missing if _plain(word) not in here]
        if missing:
            found[name] = missing
    return found


class Seen:
    """Ids that a board has."""

    def __init__(
        self, sports: Collection[str], leagues: Collection[str], books: Collection[str], markets: Collection[str]
    ) -> None:
        self.sports, self.leagues, self.books, self.markets = sports, leagues, books, markets


def known_book(word: str) -> bool:
    """Whether the catalog has a book."""
    return catalog.book(word).id in catalog.books()


@lru_cache(maxsize=4096)
def known_league(word: str) -> bool:
    """Whether the catalog has a league, in any sport."""
    return any(catalog.league(word, sport).id in catalog.leagues() for sport in catalog.sports())


def known_market(word: str) -> bool:
    """Whether the catalog has a market type or a category."""
    return word.lower() in catalog.categories() or word in catalog.listings() or catalog.market_type(word).usable


_KNOWN: dict[str, tuple[Callable[[str], bool], Callable[[Seen], Collection[str]]]] = {
    "sport": (lambda word: catalog.sport(word).id in catalog.sports(), lambda seen: seen.sports),
    "league": (known_league, lambda seen: seen.leagues),
    "sportsbook": (known_book, lambda seen: seen.books),
    "add_sportsbook": (known_book, lambda seen: seen.books),
    "market": (known_market, lambda seen: seen.markets),
}
