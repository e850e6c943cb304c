"""SportsGameOdds, an aggregator: pages of events with the odds of all books.

An odd is named after its stat, whom it counts, the period, the type of bet and the side: points-home-game-ml-home. All
numbers are texts, prices are American, and each book has its own line. A price that is not available is suspended.
`fairOdds` and `bookOdds` are of no book. A price counts as seen on arrival; `lastUpdatedAt` is its last change.

`points` is the score. A full game is the period `game`, in soccer `reg`, since a game may have extra time there. Other
stats and periods, and bets whose sides are two outcomes (not_draw), keep a name that the catalog does not have, or are
left out, as are odds that ended or were cancelled, and those with a side or type of bet that its contract
(`contracts/sportsgameodds.toml`) does not have.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import Level, Name, Text, Time, inside, moment, number, plain, valid_items
from oddsengine.feeds.feed_names import MarketName, aggregated_book, league, market
from oddsengine.feeds.payload import Game, Payload
from oddsengine.feeds.tracking import ListedIds
from oddsengine.feeds.turns import Received, Turn
from oddsengine.feeds.venue_contracts import values_of

SOURCE = "SportsGameOdds"
LEAGUES = {
    "nfl": "NFL", "ncaaf": "NCAAF", "nba": "NBA", "wnba": "WNBA", "ncaab": "NCAAB", "mlb": "MLB", "nhl": "NHL",
    "england_premier_league": "EPL", "spain_la_liga": "LA_LIGA", "germany_bundesliga": "BUNDESLIGA",
    "italy_serie_a": "IT_SERIE_A", "france_ligue_1": "FR_LIGUE_1", "uefa_champions_league": "UEFA_CHAMPIONS_LEAGUE",
    "usa_mls": "MLS", "atp": "ATP", "wta": "WTA", "ufc": "UFC",
}  # fmt: skip
"""Its ids of leagues by ours."""

_OURS = {theirs: ours for ours, theirs in LEAGUES.items()}
_PERIODS = {
    "1h": "1st_half", "2h": "2nd_half", "1q": "1st_quarter", "2q": "2nd_quarter", "3q": "3rd_quarter",
    "4q": "4th_quarter", "1p": "1st_period", "2p": "2nd_period", "3p": "3rd_period", "1i": "1st_inning",
    "1ix3": "1st_3_innings", "1ix5": "1st_5_innings", "1ix7": "1st_7_innings", "1s": "1st_set", "2s": "2nd_set",
}  # fmt: skip
_BASES = {"ml": "moneyline", "sp": "point_spread", "ou": "total_points", "ml3way": "moneyline_3way"}
_STATS = {
    "basketball": {
        "points": "points", "rebounds": "rebounds", "assists": "assists", "threePointersMade": "threes",
        "blocks": "blocks", "steals": "steals",
    },
    "football": {
        "passing_yards": "passing_yards", "rushing_yards": "rushing_yards", "receiving_yards": "receiving_yards",
        "receiving_receptions": "receptions", "passing_touchdowns": "passing_touchdowns",
    },
    "baseball": {
        "batting_hits": "hits", "batting_homeRuns": "home_runs", "batting_totalBases": "total_bases",
        "pitching_strikeouts": "strikeouts",
    },
    "hockey": {"assists": "assists", "shots_onGoal": "shots_on_goal"},
}  # fmt: skip
_SIDES = {"ml": ("home", "away"), "sp": ("home", "away"), "ou": ("over", "under"), "ml3way": ("home", "draw", "away")}
_KNOWN_SIDES, _KNOWN_BETS = values_of("sportsgameodds", "side"), values_of("sportsgameodds", "bet_type")
_TEAMS = ("home", "away")
_EVERYBODY = (*_TEAMS, "all")
_NO_BOOK = "unknown"
_LEAST = 100.0  # of an American price


class _Names(msgspec.Struct):
    long: Text | None = None
    medium: Text | None = None
    short: Text | None = None


class _Team(msgspec.Struct):
    names: _Names = msgspec.field(default_factory=_Names)

    @property
    def name(self) -> str:
        return self.names.long or self.names.medium or self.names.short or ""


class _Teams(msgspec.Struct):
    home: _Team = msgspec.field(default_factory=_Team)
    away: _Team = msgspec.field(default_factory=_Team)


class _Status(msgspec.Struct):
    startsAt: Time = None  # noqa: N815
    started: bool | None = None
    live: bool | None = None
    ended: bool | None = None
    finalized: bool | None = None
    cancelled: bool | None = None


class _Player(msgspec.Struct):
    name: Text | None = None


class _Alternate(msgspec.Struct):
    odds: str | float | None = None
    spread: str | float | None = None
    overUnder: str | float | None = None  # noqa: N815
    available: bool | None = None


class _Price(_Alternate):
    isMainLine: bool | None = None  # noqa: N815
    lastUpdatedAt: Time = None  # noqa: N815
    deeplink: Any = None
    altLines: list[_Alternate] | None = None  # noqa: N815


class _Odd(msgspec.Struct):
    statID: Name  # noqa: N815
    statEntityID: Name  # noqa: N815
    periodID: Name  # noqa: N815
    betTypeID: Name  # noqa: N815
    sideID: Name  # noqa: N815
    ended: bool | None = None
    cancelled: bool | None = None
    byBookmaker: dict[str, Any] = {}  # noqa: N815


class _Event(msgspec.Struct):
    eventID: Name  # noqa: N815
    leagueID: str = ""  # noqa: N815
    sportID: str = ""  # noqa: N815
    status: _Status = msgspec.field(default_factory=_Status)
    teams: _Teams = msgspec.field(default_factory=_Teams)
    players: dict[str, _Player] | None = None
    odds: dict[str, Any] | None = None


def next_cursor(body: bytes) -> str:
    """Return the cursor of the next page, or an empty string. Raises `FeedError` if this is not JSON."""
    cursor = inside(plain(body, SOURCE), "nextCursor")
    return cursor if isinstance(cursor, str) else ""


class SportsGameOdds:
    """What was listed before, by league.

    Examples
    --------
    >>> body = b'{"success": true, "data": []}'
    >>> SportsGameOdds().read("NFL", [Received(body, datetime(2026, 1, 1))]).quotes
    []
    """

    def __init__(self) -> None:
        self._listed = ListedIds()

    def read(self, part: str, pages: Sequence[Received]) -> Payload:
        """Parse the pages of a league. Raises `FeedError` if one is not valid; the state is unchanged."""
        turn = Turn()
        fault = f"not a payload of {SOURCE}: it has no list of events"
        for body, at in pages:
            listed = inside(plain(body, SOURCE), "data")
            for event in valid_items(listed, Level(_Event, "an event"), turn.refused, SOURCE, fault)[0]:
                _read_event(event, at, turn)
        return turn.payload(self._listed, part)


def _read_event(event: _Event, at: datetime, turn: Turn) -> None:
    game = _game(event, at)
    if not (game.home and game.away):
        turn.refused["an event that is not a game of two"] += 1
        return
    turn.games[game.id] = game
    if game.status in ("ended", "cancelled"):
        return
    shared = game.fields | {"is_live": game.status == "live", "last_seen_at": at}
    for ident, given in (event.odds or {}).items():
        try:
            odd = msgspec.convert(given, _Odd)
        except (msgspec.ValidationError, RecursionError):
            turn.refused["an odd that is not valid"] += 1
            continue
        if odd.ended or odd.cancelled:
            continue
        outcome = _outcome(odd, event, game, turn.refused)
        if outcome is not None:
            row, kind = outcome
            for price in _prices(odd, f"{game.id}/{ident}", turn.refused):
                turn.put(shared | row | price, in_catalog=kind.in_catalog)


def _game(event: _Event, now: datetime) -> Game:
    status, start = event.status, moment(event.status.startsAt)
    sport = catalog.sport(event.sportID).id if event.sportID else ""
    where = _OURS.get(event.leagueID) or league(event.leagueID, sport)
    begun = status.live or (status.started if start is None else start <= now)
    name = "cancelled" if status.cancelled else "ended" if status.ended or status.finalized else ""
    teams = event.teams
    return Game(
        event.eventID, sport, where, teams.home.name, teams.away.name, start, name or ("live" if begun else "upcoming")
    )  # fmt: skip


def _kind(odd: _Odd, sport: str) -> MarketName:
    """Return the market of an odd."""
    name, full = "", "reg" if sport == "soccer" else "game"
    stat, who, period, bet = odd.statID, odd.statEntityID, odd.periodID, odd.betTypeID
    if who not in _EVERYBODY:
        known = _STATS.get(sport, {})
        if bet == "ou" and period == "game" and stat in known:
            name = f"player_{known[stat]}"
        elif (sport, stat, period, bet) == ("football", "touchdowns", "game", "yn"):
            name = "anytime_touchdown"
    elif stat == "points" and bet in _BASES:
        base = "team_total" if bet == "ou" and who in _TEAMS else _BASES[bet]
        if period == "reg" and bet == "ml3way" and sport == "hockey":
            name = "moneyline_regulation"
        elif period == full and (bet != "ml3way" or sport == "soccer"):
            name = base
        elif period in _PERIODS:
            name = f"{_PERIODS[period]}_{base}"
    found = market(name, sport) if name else None
    if found is not None and found.in_catalog:
        return found
    return MarketName(f"{stat} {period} {bet}")


def _outcome(
    odd: _Odd, event: _Event, game: Game, refused: Counter[str]
) -> tuple[dict[str, Any], MarketName] | None:  # fmt: skip
    """Return the row of an odd without book, line and price; None if its side is not one outcome."""
    kind, side, who = _kind(odd, game.sport), odd.sideID, odd.statEntityID
    if side not in _KNOWN_SIDES or odd.betTypeID not in _KNOWN_BETS:
        refused["an odd of a type that is not known"] += 1
        return None
    if side not in _SIDES.get(odd.betTypeID, (side,)):
        refused["a side that covers several outcomes"] += 1
        return None
    selection = {"home": game.home, "away": game.away}.get(side, side.title())
    row: dict[str, Any] = {"market_type": kind.name, "selection": selection, "selection_type": side}
    if side not in ("home", "away", "draw", "over", "under", "yes", "no"):
        row["selection_type"] = None
    if who not in _EVERYBODY:
        player = (event.players or {}).get(who)
        if player is None or not player.name:
            refused["a prop whose player is not known"] += 1
            return None
        row["player_name"] = player.name
    elif odd.betTypeID == "ou" and who in _TEAMS:
        row |= {"team_side": who, "selection": f"{game.home if who == 'home' else game.away} {selection}"}
    return row, kind


def _prices(odd: _Odd, ident: str, refused: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield book, line and price of an odd."""
    for name, given in odd.byBookmaker.items():
        if name == _NO_BOOK or not name:
            continue
        try:
            price = msgspec.convert(given, _Price)
        except (msgspec.ValidationError, RecursionError):
            refused["a price that is not valid"] += 1
            continue
        of_book = {"sportsbook": aggregated_book(name), "odds_changed_at": moment(price.lastUpdatedAt)}
        if isinstance(price.deeplink, str):
            of_book["deep_link"] = price.deeplink
        main = _priced(price, odd.betTypeID, refused)
        if main is not None:
            yield of_book | main | {"id": _of_line(ident, name, main), "is_alternate_line": price.isMainLine is False}
        for other in price.altLines or ():
            found = _priced(other, odd.betTypeID, refused)
            if found is not None and (main is None or found["line"] != main["line"]):
                yield of_book | found | {"id": _of_line(ident, name, found), "is_alternate_line": True}


def _of_line(ident: str, book: str, price: dict[str, Any]) -> str:
    """Return the id of a price: a line that a book leaves is another price, which is removed."""
    return f"{ident}/{book}" if price["line"] is None else f"{ident}/{book}/{price['line']:g}"


def _priced(price: _Alternate, bet: str, refused: Counter[str]) -> dict[str, Any] | None:
    """Return line, price and whether it is offered; None if one of them is missing."""
    american = number(price.odds)
    line = number({"sp": price.spread, "ou": price.overUnder}.get(bet))
    if american is None or abs(american) < _LEAST:
        refused["an invalid price"] += 1
    elif line is None and (bet in ("sp", "ou") or not isinstance(price, _Price)):
        refused["a price without its line"] += 1
    else:
        return {"line": line, "odds_american": american, "is_active": price.available is not False}
    return None
