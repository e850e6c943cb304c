"""Novig, an exchange of contracts that pay a cent: its lists of games and markets, and order books (version 3).

All orders are bids. A bid of P on one outcome of two is an offer of the other at 1 - P: its odds are 1 / (1 - P), and
it takes a stake of 1 - P cents for each contract of the bid.

- **Sides.** Outcomes have abbreviations of teams, in no order. The strike of a spread is the line of the home side, so
  a spread also says what a game's teams are called; where both say so, they have to agree.
- **Fees** are those of the market: of takers, c P (1 - P) a contract, always or in play only, which is from its start
  on even where the list of games does not say so yet.
- **Lines.** Each market is a request, so of each type of a game only the lines in the middle of its list are read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import Level, Name, Text, inside, moment, number, plain, valid_items
from oddsengine.feeds.feed_names import league, market, teams_of, with_line
from oddsengine.feeds.order_books import Ladder, ladder, own_fee, price_of
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.feeds.turns import GamePieces, ListedGames, Received, Turn
from oddsengine.feeds.venue_contracts import values_of
from oddsengine.tables.levels import BET_STEP, MIN_BET

BOOK = "novig"
SOURCE = "Novig"
LEAGUES: Mapping[str, str] = {
    "boxing": "Boxing", "cfl": "CFL", "england_premier_league": "EPL", "france_ligue_1": "Ligue 1",
    "germany_bundesliga": "Bundesliga", "italy_serie_a": "Serie A", "japan_npb": "NPB", "korea_kbo": "KBO",
    "mlb": "MLB", "mma": "UFC", "nba": "NBA", "ncaa_baseball": "NCAABSB", "ncaab": "NCAAB", "ncaaf": "NCAAF",
    "nfl": "NFL", "nhl": "NHL", "spain_la_liga": "La Liga", "uefa_champions_league": "Champions League",
    "uefa_europa_league": "Europa League", "usa_mls": "MLS", "wnba": "WNBA", "wncaab": "NCAAWB",
}  # fmt: skip
"""Its names of leagues, by our ids."""

_EVENT_STATUSES, _MARKET_STATUSES = values_of(BOOK, "event_status"), values_of(BOOK, "market_status")
_CHARGED = values_of(BOOK, "charged")
OPEN = {"OPEN_PREGAME": "upcoming", "OPEN_INGAME": "live"}
"""Statuses of events whose markets can be open."""
_WINNERS = {"MONEY": "moneyline", "MONEY_1H": "1st_half_moneyline", "FIRST_SET_MONEYLINE": "1st_set_moneyline"}
_SPREADS = {"SPREAD": "point_spread", "SPREAD_1H": "1st_half_point_spread", "SET_SPREAD": "set_handicap"}
_TOTALS = {
    "TOTAL": "total_points", "TOTAL_1H": "1st_half_total_points", "FIRST_INNING_TOTAL": "1st_inning_total_runs",
    "TOTAL_SETS": "total_sets",
}  # fmt: skip
TYPES = (*_WINNERS, *_SPREADS, *_TOTALS)
"""Its types of markets that are read."""
_CENT = 0.01
_SAME = 1e-9


class _Event(msgspec.Struct):
    eventId: Name  # noqa: N815
    league: Text
    status: Text
    description: Text
    sport: Text = ""
    startsTs: int | None = None  # noqa: N815


class _Fee(msgspec.Struct):
    coefficient: str | float
    charged: Text


class _Outcome(msgspec.Struct):
    outcomeId: Name  # noqa: N815
    name: Name


class _Market(msgspec.Struct):
    marketId: Name  # noqa: N815
    eventId: Name  # noqa: N815
    marketType: Text  # noqa: N815
    status: Text
    fee: _Fee
    outcomes: list[_Outcome]
    strike: str | float | None = None


class _Order(msgspec.Struct):
    price: str | float
    qty: int


class NovigMarket(NamedTuple):
    """A market that is to be read: its game, and the rows of its two outcomes by their ids."""

    id: str
    game: Game
    rows: Mapping[str, dict[str, Any]]
    in_catalog: bool
    live_fee: float


def next_place(body: bytes) -> str:
    """Return where the next page begins, or an empty string. Raises `FeedError` if this is not JSON."""
    place = inside(plain(body, SOURCE), "next")
    return place if isinstance(place, str) else ""


def read_events(pages: Sequence[bytes], now: datetime, within: float = 1e9) -> ListedGames:
    """Parse pages of events: those that are open and start at most so many seconds from now.

    Raises `FeedError` if a page is not valid.
    """
    refused: Counter[str] = Counter()
    games: dict[str, Game] = {}
    until = now + timedelta(seconds=within)
    for body in pages:
        for event in _items(body, "events", Level(_Event, "an event"), refused):
            game = _game(event)
            if event.status not in _EVENT_STATUSES:
                refused["an event whose status is not known"] += 1
            elif event.status not in OPEN or (game.start is not None and game.start > until):
                continue
            elif not game.home:
                refused["an event that is not a game of two"] += 1
            else:
                games[game.id] = game
    return ListedGames(games, refused)


def read_markets(pages: Sequence[bytes], listed: ListedGames, lines: int = 1_000) -> list[NovigMarket]:
    """Parse pages of markets: the open ones of games, by their start, and of each type so many lines.

    Raises `FeedError` if a page is not valid.
    """
    by_type: defaultdict[tuple[str, str], dict[str, _Market]] = defaultdict(dict)
    for body in pages:
        for one in _items(body, "markets", Level(_Market, "a market"), listed.refused):
            if one.eventId not in listed.games or one.marketType not in TYPES:
                continue
            if one.status not in _MARKET_STATUSES or one.fee.charged not in _CHARGED:
                listed.refused["a market whose status or fee is not known"] += 1
            elif one.status == "OPEN":
                by_type[one.eventId, one.marketType][one.marketId] = one
    short = {event: _short_names(by_type, event) for event in listed.games}
    found = []
    for game in listed.by_start():
        for kind in TYPES:
            for one in _in_the_middle(by_type.get((game.id, kind), {}).values(), lines):
                if (made := _market(one, game, short[game.id])) is None:
                    listed.refused["a market whose outcomes are not understood"] += 1
                else:
                    found.append(made)
    return found


class NovigPrices(GamePieces):
    """Its prices, and what was listed before, by part of the exchange.

    Examples
    --------
    >>> NovigPrices().read("nfl", {}, [], {}).quotes
    []
    """

    def read(
        self, part: str, games: Mapping[str, Game], markets: Sequence[NovigMarket], books: Mapping[str, Received]
    ) -> Payload:  # fmt: skip
        """Parse the books of all markets of some games; a market without one has no prices.

        Raises `FeedError` if one is not valid; the state is unchanged.
        """
        turn = Turn()
        for one in markets:
            if one.id not in books:
                turn.refused["a market without an order book"] += 1
                continue
            book = books[one.id]
            prices = _prices(book.body, list(one.rows), turn.refused)
            for outcome, levels in prices.items():
                if levels:
                    contract = dict.fromkeys((MIN_BET, BET_STEP), _CENT / levels[0][0])
                    row = one.rows[outcome] | price_of(levels) | contract | {"last_seen_at": book.at}
                    if one.game.start is not None and book.at >= one.game.start:  # the list may be older
                        row |= {"is_live": True} | own_fee(BOOK, one.live_fee)
                    turn.put(row, in_catalog=one.in_catalog)
        return self.piece(part, games, turn)


def _items(body: bytes, what: str, level: Level, refused: Counter[str]) -> list[Any]:
    listed = inside(plain(body, SOURCE), "items")
    return valid_items(listed, level, refused, SOURCE, f"not a payload of {SOURCE}: it has no list of {what}")[0]


def _game(event: _Event) -> Game:
    own = {name: ident for ident, name in LEAGUES.items()}.get(event.league, "")
    entry = catalog.leagues().get(own)
    sport = entry.sport if entry is not None else catalog.sport(event.sport.lower()).id
    where = own if entry is not None else league(event.league, sport)
    teams = teams_of(event.description)
    return Game(event.eventId, sport, where, *teams, moment(event.startsTs), OPEN.get(event.status, ""))


def _in_the_middle(markets: Iterable[_Market], most: int) -> list[_Market]:
    """The markets whose lines are nearest to the middle of all lines: others are less often bet on."""
    listed = list(markets)
    lines = [line for one in listed if (line := number(one.strike)) is not None]
    middle = median(lines) if lines else 0.0
    listed.sort(key=lambda one: (abs((number(one.strike) or 0.0) - middle), one.marketId))
    return listed[:most]


def _short_names(by_type: Mapping[tuple[str, str], Mapping[str, _Market]], event: str) -> dict[str, str]:
    """Sides by the names that spreads of a game have for its teams; nothing if they contradict each other."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for kind in _SPREADS:
        for one in by_type.get((event, kind), {}).values():
            strike, names = number(one.strike), [with_line(each.name) for each in one.outcomes]
            if strike and {line for _, line in names} == {strike, -strike}:
                for name, line in names:
                    found[name].add("home" if line == strike else "away")
    sides = {name: side for name, each in found.items() if len(each) == 1 for side in each}
    return sides if len(sides) == len(found) and len({*sides.values()}) == len(sides) else {}


def _side(name: str, game: Game, short: Mapping[str, str]) -> str:
    """The side that an abbreviation is; empty if nothing says so, or if two things differ."""
    known = catalog.team(name, game.sport, game.league)
    teams = {"home": game.home, "away": game.away}
    own = [side for side, team in teams.items() if known and catalog.team(team, game.sport, game.league) == known]
    found = {*own, *([short[name]] if name in short else [])}
    return found.pop() if len(found) == 1 else ""


def _market(one: _Market, game: Game, short: Mapping[str, str]) -> NovigMarket | None:
    """Return the market with the rows of its outcomes; None if they are not understood."""
    name = next(names[one.marketType] for names in (_WINNERS, _SPREADS, _TOTALS) if one.marketType in names)
    kind = market(name, game.sport)
    outcomes = _outcomes(one, game, short)
    coefficient = number(one.fee.coefficient)
    if outcomes is None or coefficient is None or not 0.0 <= coefficient < 1.0:
        return None
    live = game.status == "live"
    fee = coefficient if live or one.fee.charged == "ALWAYS" else 0.0
    shared = game.fields | own_fee(BOOK, fee) | {
        "sportsbook": BOOK, "market_type": kind.name, "is_live": live, "market_id": one.marketId,
        "external_event_id": game.id,
    }  # fmt: skip
    rows = {
        outcome.outcomeId: shared | {
            "id": outcome.outcomeId, "selection_id": outcome.outcomeId, "selection": selection, "selection_type": side,
            "line": line,
        }
        for outcome, (selection, side, line) in zip(one.outcomes, outcomes, strict=True)
    }  # fmt: skip
    return NovigMarket(one.marketId, game, rows, kind.in_catalog, coefficient) if len(rows) == len(outcomes) else None


def _outcomes(one: _Market, game: Game, short: Mapping[str, str]) -> list[tuple[str, str, float | None]] | None:
    """Return selection, side and line of both outcomes; None if they are not the two of the market."""
    strike = number(one.strike)
    names = [with_line(each.name) for each in one.outcomes]
    if one.marketType in _TOTALS:
        made = [(text.title(), catalog.normalise(text), line) for text, line in names]
        lines = {line for _, line in names}
        right = strike is not None and lines == {strike} and {side for _, side, _ in made} == {"over", "under"}
        return list(made) if right and len(made) == len({side for _, side, _ in made}) else None
    sides = [_side(text, game, short) for text, _ in names]
    if sorted(sides) != ["away", "home"]:
        return None
    teams = {"home": game.home, "away": game.away}
    if one.marketType in _WINNERS:
        plain_ = all(line is None for _, line in names)
        return [(teams[side], side, None) for side in sides] if plain_ else None
    if strike is None:
        return None
    wanted = {"home": strike, "away": -strike}
    if any(line is None or abs(line - wanted[side]) > _SAME for side, (_, line) in zip(sides, names, strict=True)):
        return None
    return [(teams[side], side, wanted[side]) for side in sides]


def _prices(body: bytes, outcomes: Sequence[str], refused: Counter[str]) -> dict[str, Ladder]:
    """Return what can be bet on each of two outcomes: the bids on the other one."""
    given = inside(plain(body, SOURCE), "orders")
    if not isinstance(given, dict):
        raise FeedError(f"not a payload of {SOURCE}: it has no orders")
    orders: Mapping[str, Any] = given
    bids: dict[str, list[tuple[float, int]]] = {}
    for outcome in outcomes:
        level = Level(_Order, "an order")
        fault = f"not a payload of {SOURCE}: it has no orders of an outcome"
        listed = valid_items(orders.get(outcome, []), level, refused, SOURCE, fault)[0]
        bids[outcome] = [(p, one.qty) for one in listed if (p := number(one.price)) is not None and 0.0 < p < 1.0]
        if len(bids[outcome]) < len(listed):
            refused["an order that is not valid"] += len(listed) - len(bids[outcome])
    first, second = outcomes
    best = [max((p for p, _ in bids[outcome]), default=0.0) for outcome in outcomes]
    if sum(best) > 1.0 + _SAME:
        refused["a book whose bids are above its offers"] += 1
        return {}
    return {
        outcome: ladder([(1.0 / (1.0 - p), qty * (1.0 - p) * _CENT) for p, qty in bids[other]], refused)
        for outcome, other in ((first, second), (second, first))
    }
