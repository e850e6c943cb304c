"""OpticOdds, version 3: odds of fixtures by request, and the frames of its odds stream.

The stream refers to fixtures by id only; their teams come from requests. One `OpticOdds` therefore parses both, and
fixtures of the stream that no request has returned are listed in `unknown`. A stream resumes after `last_entry`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from math import inf
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.feeds.decoding import Level, Name, Text, Time, decode_strictly, moment, plain, valid_items
from oddsengine.feeds.feed_names import aggregated_book, league, market, side_of
from oddsengine.feeds.payload import Game, Payload
from oddsengine.feeds.tracking import ListedIds, Pair, StreamRows

_SOURCE = "OpticOdds"
_MOST_UNKNOWN = 10_000
_STATUS = {"unplayed": "upcoming", "live": "live", "half": "live", "completed": "ended", "cancelled": "cancelled"}
_HALTED = frozenset({"suspended", "delayed"})
"""Statuses of fixtures whose prices do not count until they are sent again, as are those that are not known."""


def _signed(price: float) -> float:
    return 1.0 + (price if price > 0 else -1.0 / price)


FORMATS: Mapping[str, Callable[[float], float] | None] = {
    "AMERICAN": None,
    "DECIMAL": lambda price: price,
    "PROBABILITY": lambda price: 1.0 / price,
    "MALAY": _signed,
    "HONG_KONG": lambda price: 1.0 + price,
    "INDONESIAN": _signed,
}
"""Conversion of each `odds_format` to decimal odds; American odds are kept."""


class _Reference(msgspec.Struct):
    id: Text | None = None
    name: Text | None = None


class _Row(msgspec.Struct):
    id: Name
    sportsbook: Name
    market: Name
    price: float | None = None
    name: Text | None = None
    selection: Text | None = None
    selection_line: Text | None = None
    player_id: Text | None = None
    points: float | None = None
    selection_points: float | None = None
    is_main: bool | None = None
    is_live: bool | None = None
    timestamp: Time = None
    deep_link: Any = None
    limits: Any = None
    fixture_id: Text | None = None


class _Fixture(msgspec.Struct):
    id: Name
    start_date: Time = None
    home_team_display: Text | None = None
    away_team_display: Text | None = None
    home_competitors: list[_Reference] = []
    away_competitors: list[_Reference] = []
    status: Text | None = None
    is_live: bool | None = None
    sport: _Reference | None = None
    league: _Reference | None = None
    odds: list[_Row] = []


class _Fixtures(msgspec.Struct):
    data: list[_Fixture]


class _Frame(msgspec.Struct):
    data: list[_Row]
    entry_id: Text | None = None


class _Change(msgspec.Struct):
    fixture_id: Name
    status: Text | None = None
    new_status: Text | None = None
    start_date: Time = None
    new_start_date: Time = None


class _Changes(msgspec.Struct):
    data: _Change | list[_Change]
    entry_id: Text | None = None


_FIXTURES = Level(_Fixture, "a fixture", "odds", Level(_Row, "a price"))
_answer = msgspec.json.Decoder(_Fixtures)
_frame = msgspec.json.Decoder(_Frame)
_changes = msgspec.json.Decoder(_Changes)
_NOTHING = Payload()


class OpticOdds:
    """Parses responses and stream frames of one API key, whose requests use one of `FORMATS`."""

    def __init__(self, odds_format: str = "AMERICAN") -> None:
        if odds_format not in FORMATS:
            raise ValueError(f"odds_format must be one of {', '.join(FORMATS)}, got {excerpt(odds_format)}")
        self._american = odds_format == "AMERICAN"
        self._decimal = FORMATS[odds_format]
        self._games: dict[str, Game] = {}
        self._listed = ListedIds()
        self._held = StreamRows()
        self._halted: set[str] = set()
        self.last_entry = ""  # the stream's `last_entry_id`, for the next connection
        self.unknown: dict[str, None] = {}  # fixtures of the stream that no request has returned

    def read(self, data: bytes, books: Iterable[str] = (), markets: Iterable[str] | None = None) -> Payload:
        """Parse a response with the odds of fixtures. Raises `FeedError` if it is invalid.

        `books` and `markets` (None: all) are the requested ones, by the source's names; prices of these that are not
        listed are removed.
        """
        refused: Counter[str] = Counter()
        fixtures, partly = _fixtures(data, refused)
        requested = frozenset(aggregated_book(name) for name in books)
        kinds = None if markets is None else frozenset(markets)
        unmapped: Counter[tuple[str, str]] = Counter()
        games = {fixture.id: _game(fixture) for fixture in fixtures}
        halted = {fixture.id for fixture in fixtures if _is_halted(fixture.status, refused)}
        self._halted = (self._halted - games.keys()) | halted
        quotes: list[dict[str, Any]] = []
        listed: dict[str, dict[str, Pair]] = {game: {} for game in games}
        for fixture in fixtures:
            for row in fixture.odds:
                of, locked = games[fixture.id], fixture.id in halted
                quote = self._quote(row, of, fixture.is_live, refused, unmapped, locked=locked)
                if quote is not None:
                    quotes.append(quote)
                    listed[fixture.id][row.id] = (aggregated_book(row.sportsbook), row.market)
        removed: list[str] = []
        for game, now in listed.items():
            scope = frozenset() if game in partly else requested
            removed += self._listed.removed(game, now, kinds, scope)
            self._listed.replace(game, now, kinds, scope)
        self._held.drop(removed)
        self._held.put(quotes)
        self._games |= games
        for game in games:
            self.unknown.pop(game, None)
        return Payload(list(games.values()), quotes, (), removed, unmapped, refused)

    def frame(self, event: str, data: bytes) -> Payload:
        """Parse one event of the stream.

        Raises `FeedError` if the event is invalid; the state and `last_entry` are unchanged.
        """
        if event in ("odds", "locked-odds"):
            return self._odds(data, locked=event == "locked-odds")
        if event == "fixture-status":
            return self._fixture_status(data)
        return _NOTHING

    def alive(self, now: datetime) -> Payload:
        """Report that the stream is alive; returns rows to renew, usually none."""
        rows = self._held.due(now)
        return Payload(quotes=rows) if rows else _NOTHING

    def _odds(self, data: bytes, *, locked: bool) -> Payload:
        refused: Counter[str] = Counter()
        unmapped: Counter[tuple[str, str]] = Counter()
        frame = _read(_frame, data, Level(_Row, "a price"), refused)
        quotes: dict[str, dict[str, Any]] = {}
        games: dict[str, Game] = {}
        missing: dict[str, None] = {}
        for row in frame.data:
            game = self._games.get(row.fixture_id or "")
            if game is None:
                refused["a price of a fixture that no request has told of"] += 1
                if row.fixture_id:
                    missing[row.fixture_id] = None
                continue
            quote = self._quote(row, game, row.is_live, refused, unmapped, locked=locked)
            if quote is not None:
                games[game.id] = game
                quotes[row.id] = quote
        current = self._held.rows
        moved = [
            id_ for id_, quote in quotes.items() if id_ in current and current[id_].get("line") != quote.get("line")
        ]
        rows = list(quotes.values())
        self._held.put(rows)
        for row in frame.data:
            if row.id in quotes and row.fixture_id:
                self._listed.add(row.fixture_id, {row.id: (aggregated_book(row.sportsbook), row.market)})
        if len(self.unknown) < _MOST_UNKNOWN:
            self.unknown |= missing
        self.last_entry = frame.entry_id or self.last_entry
        return Payload(list(games.values()), rows, (), moved, unmapped, refused)

    def _fixture_status(self, data: bytes) -> Payload:
        """Parse changes of fixtures; null keeps what it was. Prices of one that is halted are suspended."""
        refused: Counter[str] = Counter()
        frame = _read(_changes, data, Level(_Change, "a change of a fixture"), refused)
        changes = frame.data if isinstance(frame.data, list) else [frame.data]
        games: dict[str, Game] = {}
        suspended: dict[str, dict[str, Any]] = {}
        for change in changes:
            game = self._games.get(change.fixture_id)
            if game is None:
                continue
            word = (change.new_status or change.status or "").lower()
            start = moment(change.new_start_date) or moment(change.start_date) or game.start
            if _is_halted(word, refused):
                self._halted.add(game.id)
                rows = self._held.rows.values()
                suspended |= {row["id"]: row | {"is_active": False} for row in rows if row["event_id"] == game.id}
            elif word in _STATUS:
                if game.id in self._halted:  # its prices are requested again
                    self.unknown[game.id] = None
                self._halted.discard(game.id)
                game = game._replace(status=_STATUS[word])
            games[game.id] = game._replace(start=start)
        self._games |= games
        self._held.put(suspended.values())
        self.last_entry = frame.entry_id or self.last_entry
        return Payload(list(games.values()), list(suspended.values()), refused=refused)

    def _quote(
        self, row: _Row, game: Game, live: bool | None, refused: Counter[str],  # noqa: FBT001
        unmapped: Counter[tuple[str, str]], *, locked: bool = False,
    ) -> dict[str, Any] | None:  # fmt: skip
        """Convert a row to a quote; None if it has no price, and no locked earlier one."""
        quote: dict[str, Any] = {
            "id": row.id,
            "sportsbook": aggregated_book(row.sportsbook),
            "sportsbook_name": row.sportsbook,
        }
        price = self._price(row.price)
        if price is not None:
            quote["odds_american" if self._american else "odds_decimal"] = price
        elif not (locked and row.id in self._held.rows):
            refused["an invalid price"] += 1
            return None
        kind = market(row.market, game.sport)
        if not kind.in_catalog:
            unmapped[row.sportsbook, row.market] += 1
        points = row.points if row.points is not None else row.selection_points
        side, chosen = (row.selection_line or "").strip(), row.selection or ""
        text = side.capitalize() if side else chosen or row.name or ""
        if not text:
            refused["a price without a selection"] += 1
            return None
        if side and chosen:
            team = side_of(chosen, game.home, game.away)
            if kind.team:
                quote["team_side"] = team or None
                text = f"{chosen} {text}"
            elif kind.prop or row.player_id or not team:
                quote["player_name"] = chosen
        elif row.player_id and chosen:
            quote["player_name"] = chosen
        quote |= {
            "event_id": game.id, "sport": game.sport, "league": game.league, "home_team": game.home or None,
            "away_team": game.away or None, "event_start_time": game.start, "market_type": kind.name,
            "selection": text, "line": None if kind.fixed_line else points,
            "is_live": game.status == "live" if live is None else live, "is_active": not locked,
            "odds_changed_at": moment(row.timestamp),
        }  # fmt: skip
        if row.is_main is not None:
            quote["is_main_line"], quote["is_alternate_line"] = row.is_main, not row.is_main
        link = row.deep_link.get("desktop") if isinstance(row.deep_link, dict) else row.deep_link
        if isinstance(link, str):
            quote["deep_link"] = link
        if isinstance(row.limits, dict):
            most = row.limits.get("max", row.limits.get("max_stake"))
            if isinstance(most, int | float):
                quote["max_bet"] = float(most)
        return quote

    def _price(self, quoted: float | None) -> float | None:
        """Return the price as American or decimal, by format; None if invalid."""
        if quoted is None or quoted == 0.0:
            return None
        if self._decimal is None:
            return quoted if 100.0 <= abs(quoted) < inf else None
        price = self._decimal(quoted)
        return price if 1.0 < price < inf else None


def _is_halted(status: str | None, refused: Counter[str]) -> bool:
    """Whether the prices of a fixture of a status are suspended."""
    word = (status or "").lower()
    if word and word not in _HALTED and word not in _STATUS:
        refused[f"a status of a fixture that is not known: {word[:40]}"] += 1
        return True
    return word in _HALTED


def _fixtures(data: bytes, refused: Counter[str]) -> tuple[list[_Fixture], set[str]]:
    """Return the fixtures of a response, and the ids of those that lost a part."""
    if (answer := decode_strictly(_answer, data, _SOURCE)) is not None:
        return answer.data, set()
    document = plain(data, _SOURCE)
    items = document.get("data") if isinstance(document, dict) else None
    fault = f"not a payload of {_SOURCE}: it has no list of fixtures"
    valid, parts = valid_items(items, _FIXTURES, refused, _SOURCE, fault)
    return valid, {valid[at].id for at in parts}


def _read(decoder: Any, data: bytes, level: Level, refused: Counter[str]) -> Any:
    """Decode a stream frame, dropping invalid items."""
    if (decoded := decode_strictly(decoder, data, _SOURCE)) is not None:
        return decoded
    document = plain(data, _SOURCE)
    items = document.get("data") if isinstance(document, dict) else None
    valid, _ = valid_items(items, level, refused, _SOURCE, f"not a frame of {_SOURCE}: it has no list of data")
    entry = document.get("entry_id")
    frame = _Frame if level.kind is _Row else _Changes
    return frame(valid, entry if isinstance(entry, str) else None)


def _game(fixture: _Fixture) -> Game:
    """Return the game of a fixture, with catalog names where possible."""
    named = fixture.sport or _Reference()
    sport = catalog.sport(named.id or named.name or "").id
    where = fixture.league or _Reference()
    sides = [
        field or (competitors[0].name if competitors else None) or ""
        for field, competitors in (
            (fixture.home_team_display, fixture.home_competitors),
            (fixture.away_team_display, fixture.away_competitors),
        )
    ]
    state = _STATUS.get((fixture.status or "").lower(), "")
    status = "live" if fixture.is_live and state in ("", "upcoming") else state
    return Game(
        fixture.id,
        sport,
        league(where.id or where.name or "", sport),
        sides[0],
        sides[1],
        moment(fixture.start_date),
        status,
    )
