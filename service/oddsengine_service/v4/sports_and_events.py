"""Sports and events of a caller's board, by the keys and ids of `/v4`."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple, TypeVar

import xxhash

from oddsengine import catalog
from oddsengine.columns import NO_TIME, SECOND
from oddsengine.feeds.feed_names import sport_and_league
from oddsengine.feeds.the_odds_api_names import sport_key
from oddsengine.query import BoardStats
from oddsengine.tables.timestamps import micros
from oddsengine_service.errors import quoted
from oddsengine_service.http.endpoints import Context
from oddsengine_service.http.params import Query
from oddsengine_service.http.v4_errors import refused
from oddsengine_service.routes.catalog_routes import own
from oddsengine_service.v4.v4_params import ID
from oddsengine_service.v4.v4_response import V4Event, V4EventOdds, V4Sport

UPCOMING = "upcoming"  # live games and the next ones, of all sports
NEXT = 8
Place = tuple[str, str]  # sport, league


class Game(NamedTuple):
    """An event with a start."""

    event: str  # our id
    sport: str
    league: str
    home: str
    away: str
    start: int  # microseconds
    live: bool


AnyEvent = TypeVar("AnyEvent", Game, V4EventOdds)


@lru_cache(maxsize=1 << 16)
def v4_id(event: str) -> str:
    """The id of an event: ours if it has the form, else a hash of it.

    Examples
    --------
    >>> v4_id("nba_7"), v4_id("bda33adca828c09dc3cac3a856aef176")
    ('5dfe7caf65684edd28968dd21c80ff51', 'bda33adca828c09dc3cac3a856aef176')
    """
    return event if ID.fullmatch(event) else xxhash.xxh3_128_hexdigest(event.encode())


def written(time: int, dates: str = "iso") -> str | int:
    """A time in whole seconds, as text or as a number.

    Examples
    --------
    >>> written(1_770_573_600_000_000), written(1_770_573_600_999_999, "unix")
    ('2026-02-08T18:00:00Z', 1770573600)
    """
    seconds = time // SECOND
    return seconds if dates == "unix" else _iso(seconds)


@lru_cache(maxsize=1 << 14)
def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- sports ----


def title(place: Place) -> str:
    """The name of a league, or of a sport without one."""
    sport, league = place
    entry = catalog.leagues().get(league)
    if entry is not None and entry.sport == sport:
        return entry.name
    return _capitals(league.replace("_", " ")) if league else group(sport)


def group(sport: str) -> str:
    """The name of a sport, in capitals as titles are."""
    entry = catalog.sports().get(sport)
    return _capitals(sport.replace("_", " ") if entry is None else entry.name)


def _capitals(text: str) -> str:
    return re.sub(r"(^|\s)(\S)", lambda match: match[1] + match[2].upper(), text)


def sport_of(place: Place, *, active: bool) -> V4Sport:
    """A league as a sport."""
    entry = catalog.leagues().get(place[1])
    country = "" if entry is None else entry.country
    description = " ".join(filter(None, (country, group(place[0]))))
    return V4Sport(sport_key(*place), group(place[0]), title(place), description, active, has_outrights=False)


def places(stats: BoardStats) -> list[Place]:
    """The leagues that have events."""
    return sorted(set(zip(stats.sports, stats.leagues, strict=True)))


def places_of(key: str, on_board: Iterable[Place]) -> set[Place] | None:
    """The leagues that a key means; None for all. Raises `Problem` 404 if it means none."""
    if key == UPCOMING:
        return None
    found = {place for place in on_board if sport_key(*place) == key}
    if found:
        return found
    sport, league = place = sport_and_league(key)
    if sport in catalog.sports() and (not league or league in catalog.leagues() or place in on_board):
        return {place}
    raise refused("UNKNOWN_SPORT", f"there is no sport {quoted(key)}; see /v4/sports", 404)


# ---- events ----


def games(context: Context, key: str) -> list[Game]:
    """The events of a sport on the caller's board, by start. One without a start is not listed.

    Raises `Problem` 404.
    """
    stats = own(context)
    wanted = places_of(key, places(stats))
    out: list[Game] = []
    coming = 0
    for at in stats.order.tolist():
        start, sport, league = int(stats.begins[at]), stats.sports[at], stats.leagues[at]
        if start == NO_TIME or (wanted is not None and (sport, league) not in wanted):
            continue
        live = bool(stats.live[at])
        if wanted is None and not live:
            coming += 1
            if coming > NEXT:
                continue
        game = stats.games[at]
        out.append(Game(game.id, sport, league, game.home, game.away, start, live))
    return out


def selected(found: Sequence[Game], key: str, query: Query) -> list[Game]:
    """The events that `eventIds` and the times of a request select; times are ignored for upcoming games."""
    ids, since, until = (query.get(name) for name in ("event_ids", "since", "until"))
    if since is not None and until is not None and until < since:
        raise refused("INVALID_COMMENCE_TIME_TO", "commenceTimeTo must not be before commenceTimeFrom")
    if ids:
        found = [game for game in found if v4_id(game.event) in ids]
    if key != UPCOMING:
        first, last = (None if time is None else micros(time) for time in (since, until))
        found = [g for g in found if (first is None or g.start >= first) and (last is None or g.start <= last)]
    return list(found)


def one(found: Iterable[AnyEvent], ident: str) -> AnyEvent:
    """The event with an id. Raises `Problem` 422 or 404."""
    if not ID.fullmatch(ident):
        raise refused("INVALID_EVENT_ID", f"the id of an event must be 32 hexadecimal digits, got {quoted(ident)}")
    match = next((e for e in found if (v4_id(e.event) if isinstance(e, Game) else e.id) == ident), None)
    if match is None:
        raise refused("EVENT_NOT_FOUND", f"there is no event {quoted(ident)} of this sport, or no longer", 404)
    return match


def event(game: Game, dates: str) -> V4Event:
    """The body of an event."""
    return V4Event(*facts(game, dates))


def facts(game: Game, dates: str) -> tuple[str, str, str, str | int, str | None, str | None]:
    """What every body says of an event."""
    place = game.sport, game.league
    return (
        v4_id(game.event), sport_key(*place), title(place), written(game.start, dates), game.home or None,
        game.away or None,
    )  # fmt: skip
