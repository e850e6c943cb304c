"""Odds-API.io, an aggregator: lists of events, and the odds of some of them by book.

Names of markets are free text. The keys of a market's odds say what they are: home, draw and away, over and under, yes
and no. `hdp` is the line, of handicaps that of the home side. Prices are decimal, often as texts. A price
counts as seen on arrival; `updatedAt` is its last change. A name that the catalog does not have is kept. An event with
a status that its contract (`contracts/odds_api_io.toml`) does not have is left out and counted.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from math import inf
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import Level, Name, Text, Time, moment, number, plain, salvage, valid_items
from oddsengine.feeds.feed_names import MarketName, aggregated_book, league, market
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.feeds.tracking import ListedIds
from oddsengine.feeds.turns import Received, Turn
from oddsengine.feeds.venue_contracts import values_of

SOURCE = "Odds-API.io"
SPORTS = {
    "soccer": "football", "football": "american-football", "hockey": "ice-hockey", "basketball": "basketball",
    "baseball": "baseball", "tennis": "tennis", "mma": "mixed-martial-arts", "boxing": "boxing", "cricket": "cricket",
    "handball": "handball", "volleyball": "volleyball", "darts": "darts", "esports": "esports",
}  # fmt: skip
"""Its names of sports by ours: its football is soccer."""

LEAGUES = {
    **SPORTS, "nba": "basketball/usa-nba", "nfl": "american-football/usa-nfl", "mlb": "baseball/usa-mlb",
    "nhl": "ice-hockey/usa-nhl", "england_premier_league": "football/england-premier-league",
    "usa_mls": "football/usa-mls",
}  # fmt: skip
"""Its sports, and leagues within them, by our ids."""

_OURS = {theirs: ours for ours, theirs in SPORTS.items()}
_STATUSES = values_of("odds_api_io", "event_status")
_COMING = ("", "pending", "upcoming", "live")
_DRAWN = ("basketball", "football", "baseball")  # a result of three there is one without overtime
_KEYS = ("home", "draw", "away", "over", "under", "yes", "no")
_LINES = ("over", "under")
_HALF = " ht"


class _Named(msgspec.Struct):
    name: str = ""
    slug: str = ""


class _Event(msgspec.Struct):
    id: str | int
    home: Text = ""
    away: Text = ""
    date: Time = None
    status: str = ""
    sport: _Named | str = ""
    league: _Named | str = ""


class _Market(msgspec.Struct):
    name: Name
    odds: list[dict[str, Any]]
    updatedAt: Time = None  # noqa: N815


class _Odds(_Event):
    bookmakers: dict[str, Any] = {}


def read_events(body: bytes, now: datetime, within: float = 1e9) -> list[str]:
    """Parse a list of events: the ids of those that are not over and start at most `within` seconds from now.

    Raises `FeedError` if it is not valid.

    Examples
    --------
    >>> read_events(b'[{"id": 1, "home": "A", "away": "B", "status": "pending"}]', datetime(2026, 1, 1))
    ['1']
    """
    until = now + timedelta(seconds=within)
    ids = []
    for event in _items(body, Level(_Event, "an event"), Counter()):
        start = moment(event.date)
        status = event.status.lower()
        if (status in _COMING or status not in _STATUSES) and (start is None or start <= until):
            ids.append(str(event.id))
    return ids


class OddsApiIo:
    """What was listed before, by part.

    Examples
    --------
    >>> OddsApiIo().read("basketball/usa-nba", []).quotes
    []
    """

    def __init__(self) -> None:
        self._listed = ListedIds()

    def read(self, part: str, bodies: Iterable[Received]) -> Payload:
        """Parse the odds of the events of a part. Raises `FeedError` if a body is not valid; the state is unchanged."""
        turn = Turn()
        sport = part.partition("/")[0]
        for body, at in bodies:
            events = _items(body, Level(_Odds, "an event"), turn.refused)
            books = [given for event in events for given in event.bookmakers.values() if given]
            if books and not any(isinstance(given, list) for given in books):
                raise FeedError(f"not a payload of {SOURCE}: no book has a list of markets")
            for event in events:
                _read_event(event, _OURS.get(sport, sport), at, turn)
        return turn.payload(self._listed, part)


def _items(body: bytes, level: Level, refused: Counter[str]) -> list[Any]:
    fault = f"not a payload of {SOURCE}: it has no list of events"
    return valid_items(plain(body, SOURCE), level, refused, SOURCE, fault)[0]


def _read_event(event: _Odds, sport: str, at: datetime, turn: Turn) -> None:
    start, of = moment(event.date), event.league
    names = [of] if isinstance(of, str) else [of.slug, of.name]
    where = next((own for name in names if (own := league(name, sport)) in catalog.leagues()), "")
    if not (event.home and event.away):
        turn.refused["an event that is not a game of two"] += 1
        return
    named = event.status.lower()
    if named and named not in _STATUSES:
        turn.refused["an event with a status that is not known"] += 1
        return
    live = named == "live" or (start is not None and start <= at)
    status = "ended" if named not in _COMING else "live" if live else "upcoming"
    game = Game(str(event.id), sport, where, event.home, event.away, start, status)
    turn.games[game.id] = game
    if status == "ended":
        return
    shared = game.fields | {"is_live": live, "last_seen_at": at}
    for book, given in event.bookmakers.items():
        if given is not None and not isinstance(given, list):
            turn.refused["a book without a list of markets"] += 1
        for one in salvage(given, Level(_Market, "a market"), turn.refused)[0]:
            of_book = shared | {"sportsbook": aggregated_book(book), "odds_changed_at": moment(one.updatedAt)}
            _read_market(one, f"{game.id}/{book}/{one.name}", of_book, game, turn)


def _read_market(one: _Market, stem: str, shared: dict[str, Any], game: Game, turn: Turn) -> None:
    """Add the prices of a market of a book; its odds are one or more lines."""
    three = any("draw" in entry for entry in one.odds)
    kind = _kind(one.name, game.sport, three=three)
    lined = any(word in kind.name for word in ("spread", "handicap"))
    for entry in one.odds:
        given, label = number(entry.get("hdp")), entry.get("label")
        subject = label if isinstance(label, str) else ""
        for side in _KEYS:
            if entry.get(side) is None:
                continue
            odds = number(entry[side])
            if odds is None or not 1.0 < odds < inf:
                turn.refused["an invalid price"] += 1
                continue
            if kind.in_catalog and given is None and (side in _LINES or lined):
                turn.refused["a price without its line"] += 1
                continue
            if kind.in_catalog and subject:
                turn.refused["a price with a label in a market of games"] += 1
                continue
            line = given if side in _LINES or (lined and side == "home") else None
            if lined and side == "away" and given is not None:
                line = -given
            name = {"home": game.home, "away": game.away}.get(side, side.title())
            place = "" if given is None else f"{given:g}"
            row = {
                "id": "/".join((stem, place, subject, side)), "market_type": kind.name, "odds_decimal": odds,
                "selection": f"{subject} {name}".strip(), "selection_type": side, "line": line,
            }  # fmt: skip
            turn.put(shared | row, in_catalog=kind.in_catalog)


def _kind(name: str, sport: str, *, three: bool) -> MarketName:
    """Return the market of a name, of which `three` says whether it has a draw."""
    text = catalog.normalise(name)
    half = "1st_half_" if text.endswith(_HALF) else ""
    base = text.removesuffix(_HALF)
    unknown = MarketName(name)
    if base in ("ml", "moneyline", "1x2", "match winner", "full time result"):
        if three and sport == "hockey" and not half:
            base = "moneyline_regulation"
        elif three:
            base = "" if sport in _DRAWN and not half else "moneyline_3way"
        else:
            base = "" if sport == "soccer" else "moneyline"
    elif sport == "soccer" and base == "totals":
        base = "total_goals"
    elif base == "totals":
        base = "total_points"
    elif base == "spread":
        base = "point_spread"
    found = market(half + base, sport) if base else unknown
    return found if found.in_catalog else unknown
