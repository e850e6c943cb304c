"""Query parameters shared by several endpoints, and detection of unknown ids."""

from collections.abc import Callable, Collection, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from oddsengine import catalog
from oddsengine.query import LATEST, BoardIds, values
from oddsengine.tables.timestamps import micros
from oddsengine_service.http.params import Param, choices
from oddsengine_service.http.problems import invalid, one_of, quoted

EASTERN = ZoneInfo("America/New_York")
DAYS = ("today", "tomorrow", "week")


def _day(name: str, value: str) -> str:
    word = value.strip().lower()
    if word in DAYS[:2]:
        return word
    try:
        if date.fromisoformat(word).isoformat() == word:  # fromisoformat accepts other forms too
            return word
    except ValueError:
        pass
    raise invalid(f"{name} must be YYYY-MM-DD, today or tomorrow, got {quoted(value)}")


def _state(name: str, value: str) -> str:
    word = value.strip().lower()
    if word not in catalog.link_states():
        raise invalid(f"{name} must be {one_of(sorted(catalog.link_states()))}, got {quoted(value)}")
    return word


STATE = Param(
    "state",
    _state,
    {"type": "string", "enum": sorted(catalog.link_states())},
    "US state for links to sportsbooks, two letters.",
)
INCLUDE = choices(
    "include",
    "`suspect` adds +EV prices that the guard `outlier` rejects as too generous, before the game, with the flag "
    "`suspect`. `refs` adds what the ids of rows and legs mean: home, away, sport_ref, league_ref, market_ref, "
    "sportsbook_ref.",
    ("suspect", "refs"),
)
REFS = choices(
    "include", "`refs` adds what the ids of a row mean: home, away, sport_ref, league_ref, market_ref, sportsbook_ref.",
    ("refs",),
)  # fmt: skip
DATE = Param(
    "date",
    _day,
    {"anyOf": [{"type": "string", "enum": list(DAYS[:2])}, {"type": "string", "format": "date"}]},
    "Start date in US Eastern time: YYYY-MM-DD, today or tomorrow.",
)


def span(day: str, now: datetime) -> tuple[int, int]:
    """Start and end, in microseconds, of a day in US Eastern time; `week` is seven days from the start of today.

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
    except OverflowError:  # the last possible day: nothing begins then
        return LATEST, LATEST


def _midnight(day: date) -> int:
    return micros(datetime(day.year, day.month, day.day, tzinfo=EASTERN))


Words = Sequence[str] | None


def in_places(sport: Words, league: Words, places: Sequence[tuple[str, str]]) -> list[bool]:
    """Which places (pairs of sport and league) match the parameters `sport` and `league`; None means no condition."""
    matches = [True] * len(places) if sport is None else values.in_sports(sport, [place[0] for place in places])
    if league is None:
        return matches
    return [one and other for one, other in zip(matches, values.in_leagues(league, places), strict=True)]


def in_place(sport: Words, league: Words, place: tuple[str, str]) -> bool:
    return (sport is None and league is None) or in_places(sport, league, [place])[0]


# ---- unknown ids ----


def unknown_ids(query: Any, seen: Callable[[], BoardIds]) -> dict[str, list[str]]:
    """Ids in a request that neither the catalog nor the board has, by parameter; `seen` is called only if needed."""
    unknown: dict[str, list[str]] = {}
    for name, (is_known, ids_of) in _KNOWN.items():
        missing = [word for word in query.get(name) or () if not is_known(word)]
        if missing:
            here = {values.slug(value) for value in ids_of(seen())}
            missing = [word for word in missing if values.slug(word) not in here]
        if missing:
            unknown[name] = missing
    return unknown


_KNOWN: dict[str, tuple[Callable[[str], bool], Callable[[BoardIds], Collection[str]]]] = {
    "sport": (lambda word: catalog.sport(word).id in catalog.sports(), lambda seen: seen.sports),
    "league": (values.is_league, lambda seen: seen.leagues),
    "sportsbook": (values.is_book, lambda seen: seen.books),
    "add_sportsbook": (values.is_book, lambda seen: seen.books),
    "market": (values.is_market, lambda seen: seen.markets),
}
