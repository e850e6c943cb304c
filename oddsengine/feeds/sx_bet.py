"""SX Bet, an exchange of markets with two outcomes: its lists of markets, and their order books (version 3).

An order of a book is a maker's bet on one outcome, at the maker's probability m in units of 1e-20. Who takes it bets on
the other outcome at 1 / (1 - m), and can stake size (1 - m) / m. Sizes are millionths of a USDC.

- **Sides.** The league says which of the two teams is at home. Lines are read from the names of outcomes, since `line`
  does not say whether it is that of the first team or the second.
- **Three-way results** are a market for each of home, draw and away. That a side of a soccer match does not win is the
  other side with half a goal; that it is not a draw is No of the market `draw`.
- **Market types** are numbers. A type whose rule about overtime differs from that of sportsbooks, or is not known,
  keeps the number as its name, which is not in the catalog.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import Level, Name, Text, inside, moment, number, plain, valid_items, whole
from oddsengine.feeds.feed_names import THREE_WAY, MarketName, against, league, market, outcome_of, side_of, with_line
from oddsengine.feeds.order_books import Ladder, ladder, price_of
from oddsengine.feeds.payload import Game, Payload
from oddsengine.feeds.tracking import ListedIds
from oddsengine.feeds.turns import Received, Turn
from oddsengine.feeds.venue_contracts import values_of

BOOK = "sx_bet"
SOURCE = "SX Bet"
_STATUSES = values_of("sx_bet", "market_status")
_ONE = 10**20
_UNITS = 1e6
_OUTRIGHT, _THREE_WAY = 274, 1
_WINNERS = {52: "moneyline", 88: "to_advance", 226: "moneyline", 1618: "1st_5_innings_moneyline"}
_SPREADS = {
    201: "game_handicap", 342: "point_spread", 866: "set_handicap", 281: "1st_5_innings_point_spread",
    53: "1st_half_point_spread",
}  # fmt: skip
_TOTALS = {
    28: "total_points", 29: "total_rounds", 77: "1st_half_total_points", 165: "total_sets", 166: "total_games",
    236: "1st_5_innings_total_points", 1536: "total_maps",
}  # fmt: skip
_YES_NO = {17: "both_teams_to_score"}
# In soccer nothing is said about overtime, and a draw voids a bet on a winner.
_SOCCER = {2: "total_goals", 3: "asian_handicap", 52: "draw_no_bet", 835: "asian_total_goals"}
_NOT_SOCCER = {63: "1st_half_moneyline"}
_DRAWN = ("basketball", "football", "hockey")  # sports in which type 52 has a draw, which sportsbooks play on
_SPREAD_TYPES = {3, 64, 65, 66, *_SPREADS}
_TOTAL_TYPES = {2, 21, 45, 46, 835, *_TOTALS}
_WINNER_TYPES = {63, 202, 203, 204, 205, *_WINNERS}
_PERIODS = {"basketball": "quarter", "football": "quarter", "hockey": "period", "tennis": "set"}
_PERIOD_OF = {
    202: (1, "moneyline"), 203: (2, "moneyline"), 204: (3, "moneyline"), 205: (4, "moneyline"),
    64: (1, "point_spread"), 65: (2, "point_spread"), 66: (3, "point_spread"),
    21: (1, "total_points"), 45: (2, "total_points"), 46: (3, "total_points"),
}  # fmt: skip
_ORDINALS = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th"}
Outcomes = list[tuple[str, str, float | None]]  # selection, outcome, line
_NO_SIDES = "a market whose outcomes are not the two teams"
_SAME = 1e-9


class _League(msgspec.Struct):
    leagueId: int  # noqa: N815
    label: Name
    sportId: int  # noqa: N815
    homeTeamFirst: bool | None = None  # noqa: N815


class _Sport(msgspec.Struct):
    sportId: int  # noqa: N815
    label: Name


class _Market(msgspec.Struct):
    marketHash: Name  # noqa: N815
    outcomeOneName: Text  # noqa: N815
    outcomeTwoName: Text  # noqa: N815
    type: int
    leagueId: int | None = None  # noqa: N815
    gameTime: int | None = None  # noqa: N815
    teamOneName: Text = ""  # noqa: N815
    teamTwoName: Text = ""  # noqa: N815
    status: str = "ACTIVE"
    sportXeventId: str = ""  # noqa: N815
    sportXEventId: str = ""  # noqa: N815  the same, as older answers have it
    line: float | str | None = None
    mainLine: bool | None = None  # noqa: N815
    liveEnabled: bool | None = None  # noqa: N815  false: no bets in play
    legs: list[Any] | None = None

    @property
    def event(self) -> str:
        return self.sportXeventId or self.sportXEventId


class _Order(msgspec.Struct):
    percentageOdds: str | int  # noqa: N815
    size: str | int


class SxLeague(NamedTuple):
    """A league with active markets; `sport` and `league` are catalog ids where possible."""

    id: int
    label: str
    sport_id: int
    sport: str
    league: str
    home_first: bool


class SxMarket(NamedTuple):
    """A market, its game, and the rows of its outcomes by the side of the book that bets on them."""

    hash: str
    game: Game
    rows: Mapping[str, dict[str, Any]]
    in_catalog: bool


class SxListing(NamedTuple):
    """The markets of some pages that are to be read, and what was left out of them."""

    markets: Sequence[SxMarket]
    refused: Counter[str]


def read_leagues(sports: bytes, leagues: bytes) -> list[SxLeague]:
    """Parse the lists of sports and of active leagues. Raises `FeedError` if one is not valid.

    Examples
    --------
    >>> sports = b'{"data": [{"sportId": 8, "label": "Football"}]}'
    >>> read_leagues(sports, b'{"data": [{"leagueId": 243, "label": "NFL", "sportId": 8, "homeTeamFirst": false}]}')
    [SxLeague(id=243, label='NFL', sport_id=8, sport='football', league='nfl', home_first=False)]
    """
    listed = _items(inside(plain(sports, SOURCE), "data"), "sports", Level(_Sport, "a sport"), Counter())
    labels = {one.sportId: catalog.sport(one.label).id for one in listed}
    out = []
    for one in _items(inside(plain(leagues, SOURCE), "data"), "leagues", Level(_League, "a league"), Counter()):
        sport = labels.get(one.sportId, "")
        own = league(one.label, sport)
        out.append(SxLeague(one.leagueId, one.label, one.sportId, sport, own, one.homeTeamFirst is not False))
    return out


def next_key(body: bytes) -> str:
    """Return the key of the next page of markets, or an empty string. Raises `FeedError` if this is not a page."""
    data = inside(plain(body, SOURCE), "data")
    key = inside(data, "nextKey") or inside(data, "paginationKey")
    return key if isinstance(key, str) else ""


def read_markets(pages: Sequence[bytes], leagues: Sequence[SxLeague], now: datetime, within: float = 1e9) -> SxListing:
    """Parse pages of active markets; games that start more than `within` seconds from now are left out.

    Raises `FeedError` if one is not valid.
    """
    refused: Counter[str] = Counter()
    by_id = {one.id: one for one in leagues}
    until = now + timedelta(seconds=within)
    markets: dict[str, SxMarket] = {}
    for body in pages:
        listed = inside(plain(body, SOURCE), "data", "markets")
        for one in _items(listed, "markets", Level(_Market, "a market"), refused):
            of = by_id.get(one.leagueId if one.leagueId is not None else -1)
            start = moment(one.gameTime)
            if one.status not in _STATUSES:
                refused["a market whose status is not known"] += 1
                continue
            if one.status != "ACTIVE" or (start is not None and start > until):
                continue
            if one.legs or one.type == _OUTRIGHT:
                refused["a parlay" if one.legs else "an outright"] += 1
            elif one.liveEnabled is False and start is not None and start <= now:
                refused["a market of a game in play that takes no bets in play"] += 1
            elif of is None or not (one.event and one.teamOneName and one.teamTwoName):
                refused["a market without a league or teams"] += 1
            elif (made := _market(one, of, start, now, refused)) is not None:
                markets[one.marketHash] = made
    return SxListing(list(markets.values()), refused)


class SxBetMarkets:
    """What was listed before, by part of the exchange.

    Examples
    --------
    >>> SxBetMarkets().read("nfl", SxListing([], Counter()), {}).quotes
    []
    """

    def __init__(self) -> None:
        self._listed = ListedIds()

    def read(self, part: str, listing: SxListing, books: Mapping[str, Received]) -> Payload:
        """Parse the order books of listed markets; a market without one has no prices.

        Raises `FeedError` if one is not valid; the state is unchanged.
        """
        turn = Turn()
        turn.refused.update(listing.refused)
        for one in listing.markets:
            turn.games[one.game.id] = one.game
            if one.hash not in books:
                turn.refused["a market without an order book"] += 1
                continue
            book = books[one.hash]
            for side, levels in _book(book.body, turn.refused).items():
                if not levels:
                    continue
                row = one.rows.get(side)
                if row is None:
                    turn.refused["the other outcome of a three-way market"] += 1
                    continue
                turn.put(row | price_of(levels) | {"last_seen_at": book.at}, in_catalog=one.in_catalog)
        return turn.payload(self._listed, part)


def _items(listed: Any, what: str, level: Level, refused: Counter[str]) -> list[Any]:
    return valid_items(listed, level, refused, SOURCE, f"not a payload of {SOURCE}: it has no list of {what}")[0]


def _book(body: bytes, refused: Counter[str]) -> dict[str, Ladder]:
    """Return what a taker can bet on each outcome: orders on the other one."""
    data = inside(plain(body, SOURCE), "data")
    order = Level(_Order, "an order")
    one, two = (_items(inside(data, side), "orders", order, refused) for side in ("outcomeOne", "outcomeTwo"))
    return {"1": _taken(two, refused), "2": _taken(one, refused)}


def _taken(orders: Sequence[_Order], refused: Counter[str]) -> Ladder:
    levels: list[tuple[float | None, float | None]] = []
    for order in orders:
        m, size = whole(order.percentageOdds), whole(order.size)
        if m is None or size is None or not 0 < m < _ONE:
            levels.append((None, None))
        else:
            levels.append((_ONE / (_ONE - m), size / _UNITS * ((_ONE - m) / m)))
    return ladder(levels, refused)


def _market(
    one: _Market, of: SxLeague, start: datetime | None, now: datetime, refused: Counter[str]
) -> SxMarket | None:  # fmt: skip
    teams = (one.teamOneName, one.teamTwoName)
    home, away = teams if of.home_first else teams[::-1]
    live = start is not None and start <= now
    game = Game(one.event, of.sport, of.league, home, away, start, "live" if live else "upcoming")
    kind = _kind(one.type, of.sport)
    outcomes = _outcomes(one, game, kind)
    if outcomes is None:
        refused[_NO_SIDES] += 1
        return None
    shared = game.fields | {
        "sportsbook": BOOK, "market_type": kind.name, "is_live": live, "market_id": one.marketHash,
        "external_event_id": game.id,
    }  # fmt: skip
    if one.mainLine is not None:
        shared["is_alternate_line"] = not one.mainLine
    rows: dict[str, dict[str, Any]] = {}
    for side, (name, meaning, line) in zip("12", outcomes, strict=False):
        ident = f"{one.marketHash}/{side}"
        rows[side] = shared | {
            "id": ident, "selection_id": ident, "selection": name, "selection_type": meaning or None, "line": line
        }  # fmt: skip
    if (other_side := against(kind.name, outcomes[0][1], game, "asian_handicap")) is not None:
        ident = f"{one.marketHash}/2"
        rows["2"] = shared | {"id": ident, "selection_id": ident} | other_side
    return SxMarket(one.marketHash, game, rows, kind.in_catalog)


def _kind(number_: int, sport: str) -> MarketName:
    """Return the market of a type."""
    name = ""
    if number_ == _THREE_WAY:
        name = THREE_WAY
    elif sport == "soccer" and number_ in _SOCCER:
        name = _SOCCER[number_]
    elif number_ in _PERIOD_OF and sport in _PERIODS:
        at, base = _PERIOD_OF[number_]
        if sport != "tennis" or base == "moneyline":
            name = f"{_ORDINALS[at]}_{_PERIODS[sport]}_{base}"
    elif sport != "soccer" and number_ in _NOT_SOCCER:
        name = _NOT_SOCCER[number_]
    elif not (number_ == 52 and sport in _DRAWN):
        name = next((names[number_] for names in (_WINNERS, _SPREADS, _TOTALS, _YES_NO) if number_ in names), "")
    if not name:
        return MarketName(f"type {number_}")
    return market(name, sport)


def _outcomes(one: _Market, game: Game, kind: MarketName) -> Outcomes | None:
    """Return selection, outcome and line of each outcome that is a bet; None if they are not understood."""
    names = (one.outcomeOneName, one.outcomeTwoName)
    if one.type == _THREE_WAY:
        side = outcome_of(names[0], game.home, game.away)
        return [("Draw" if side == "draw" else names[0], side, None)] if side in ("home", "draw", "away") else None
    if not kind.in_catalog:
        return [(name, "", None) for name in names]
    if one.type in _YES_NO:
        return _paired([(name, catalog.normalise(name), None) for name in names], {"yes", "no"})
    if one.type in _WINNER_TYPES:
        return _paired([(name, side_of(name, game.home, game.away), None) for name in names], {"home", "away"})
    split = [with_line(name) for name in names]
    texts, lines = [text for text, _ in split], [line for _, line in split if line is not None]
    if len(lines) < len(names):
        return None
    given = number(one.line)
    if given is not None and all(abs(abs(line) - abs(given)) > _SAME for line in lines):
        return None
    if one.type in _TOTAL_TYPES:
        if abs(lines[0] - lines[1]) > _SAME:
            return None
        totals: Outcomes = [
            (text.title(), catalog.normalise(text), line) for text, line in zip(texts, lines, strict=True)
        ]
        return _paired(totals, {"over", "under"})
    if one.type not in _SPREAD_TYPES or abs(lines[0] + lines[1]) > _SAME:
        return None
    spreads: Outcomes = [
        (text, side_of(text, game.home, game.away), line) for text, line in zip(texts, lines, strict=True)
    ]
    return _paired(spreads, {"home", "away"})


def _paired(outcomes: Outcomes, allowed: set[str]) -> Outcomes | None:
    """Return outcomes if they are exactly the two that are allowed."""
    return outcomes if {outcome for _, outcome, _ in outcomes} == allowed else None
