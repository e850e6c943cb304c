"""Query parameters shared by several endpoints, and detection of unknown ids."""

from collections.abc import Callable, Collection
from datetime import date, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from oddsengine import catalog
from oddsengine.query import CURSOR_PATTERN, LATEST, MOST_CURSOR, BoardIds, Cursor, values
from oddsengine.tables.timestamps import micros
from oddsengine_service.errors import invalid, one_of, quoted
from oddsengine_service.http.params import MOST_LIMIT, MOST_OFFSET, Param, Query, Words
from oddsengine_service.http.tables import FORMAT

EASTERN = ZoneInfo("America/New_York")
DAYS = ("today", "tomorrow", "week")
STATES = sorted(catalog.link_states())


# ---- parameters ----


def _day(value: str) -> str:
    word = value.strip().lower()
    if word not in DAYS[:2] and date.fromisoformat(word).isoformat() != word:  # fromisoformat accepts other forms too
        raise ValueError
    return word


def _state(value: str) -> str:
    return STATES[STATES.index(value.strip().lower())]


def _cursor(value: str) -> Cursor:
    try:
        return Cursor.read(value.strip())
    except ValueError:
        raise invalid(f"invalid cursor {quoted(value)}: pass next_cursor unchanged") from None


Format = Annotated[str, FORMAT]
Sport = Annotated[Words, Param("Sports, by id or alias.")]
League = Annotated[Words, Param("Leagues, by id or alias.")]
Sportsbook = Annotated[Words, Param("Sportsbooks; default: all books of the tier.")]
Location = Annotated[
    str | None,
    Param(
        "Only books that are known to take bets here: a country such as GB, or a part of one such as US-NJ.",
        read=catalog.place, allowed="a country such as GB, or a part of one such as US-NJ",
        schema={"type": "string", "pattern": catalog.PLACE_PATTERN},
    ),
]  # fmt: skip
LocationUnknown = Annotated[
    bool, Param("true: with `location`, also books of which it is not known whether they take bets there.")
]
AddSportsbook = Annotated[Words, Param("Sportsbooks in addition to `sportsbook`, or to the books of the tier.")]
Market = Annotated[Words, Param("Market types, or the categories main, spread, total and props.")]
Event = Annotated[Words, Param("Event ids.", aliases=("event_id",))]
OneEvent = Annotated[str, Param("The id of an event, from /events.", aliases=("event_id",))]
Live = Annotated[bool | None, Param("true: live prices only; false: pre-match prices only.")]
Team = Annotated[Words, Param("Teams, by id, name or alias.")]
Search = Annotated[str | None, Param("Part of a team, player or selection name, ignoring case and accents.")]
MinOdds = Annotated[float | None, Param("Minimum American odds.")]
MaxOdds = Annotated[float | None, Param("Maximum American odds.")]
IsMainLine = Annotated[bool | None, Param("true: main lines only; false: other lines only.")]
Stake = Annotated[
    float | None,
    Param(
        "Stake to price: exchange prices with levels are the average odds for this stake, and `max_bet` is the size of "
        "all levels. By default, the best level.",
        low=0.01,
        high=10_000_000.0,
    ),
]
Terms = Annotated[
    str | None,
    Param(
        "`same`: without arbitrages, middles and low holds whose legs are known to settle differently in some case "
        "(`terms_differ`); by default these are listed.",
        choices=("same",),
    ),
]
IsPlayerProp = Annotated[bool | None, Param("true: player props only; false: everything else.")]
State = Annotated[
    str | None,
    Param(
        "US state for links to sportsbooks, two letters.", read=_state, allowed=one_of(STATES),
        schema={"type": "string", "enum": STATES},
    ),
]  # fmt: skip
Include = Annotated[
    Words,
    Param(
        "`suspect` adds +EV prices that the guard `outlier` rejects as too generous, before the game, and those that "
        "have one exchange as their only reference, with the flag `suspect`. `one_sided` adds those whose fair price "
        "needs books that quote one side only, such as anytime scorers, before the game, with the flag `one_sided`. "
        "`refs` adds what the ids of rows and legs mean: home, away, sport_ref, league_ref, market_ref, "
        "sportsbook_ref.",
        choices=("suspect", "one_sided", "refs"),
    ),
]
Refs = Annotated[
    Words,
    Param(
        "`refs` adds what the ids of a row mean: home, away, sport_ref, league_ref, market_ref, sportsbook_ref.",
        choices=("refs",),
    ),
]
DATE = Param(
    "Start date in US Eastern time: YYYY-MM-DD, today or tomorrow.", read=_day, allowed="YYYY-MM-DD, today or tomorrow",
    schema={"anyOf": [{"type": "string", "enum": list(DAYS[:2])}, {"type": "string", "format": "date"}]},
)  # fmt: skip
Date = Annotated[str | None, DATE]
NextCursor = Annotated[
    Cursor | None,
    Param(
        "`next_cursor` of the previous page, unchanged. It keeps that list's order: `sort` and `offset` are ignored.",
        read=_cursor, schema={"type": "string", "pattern": f"^{CURSOR_PATTERN}$", "maxLength": MOST_CURSOR},
    ),
]  # fmt: skip
Seen = Annotated[
    bool | None,
    Param(
        "true: also report prices that were seen again unchanged, and on streams suspended ones; for nodes that relay "
        "prices."
    ),
]


class Pages(Query):
    """Which page of a list."""

    limit: Annotated[int, Param("Maximum number of entries on a page.", low=1, high=MOST_LIMIT)] = 50
    offset: Annotated[
        int, Param("Number of entries to skip; beyond the maximum use `cursor`.", low=0, high=MOST_OFFSET)
    ] = 0


class Places(Query):
    """Sports and leagues."""

    sport: Sport = None
    league: League = None


class Prices(Places):
    """Filters of prices."""

    sportsbook: Sportsbook = None
    location: Location = None
    location_unknown: LocationUnknown = False
    market: Market = None
    event: Event = None
    live: Live = None


# ---- their meaning ----


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


# ---- unknown ids ----


def unknown_ids(query: Query, seen: Callable[[], BoardIds], *, without: str = "") -> dict[str, list[str]]:
    """Ids in a request that neither the catalog nor the board has, by parameter; `seen` is called only if needed."""
    unknown: dict[str, list[str]] = {}
    for name, (is_known, ids_of) in _KNOWN.items():
        missing = [word for word in query.get(name) or () if name != without and not is_known(word)]
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
