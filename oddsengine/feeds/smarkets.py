"""Smarkets, an exchange: its events, their markets, the contracts of these, and quotes.

A price is a probability in units of 0.0001, and a quantity the payout in units of 0.0001. Offers are what can be
backed, bids what can be laid. In a market of two contracts, to lay one is to back the other: the better of both
ladders is the quote (`order_books`). To lay a side of a soccer match is to back the other one with half a goal. Other
lays are no quotes.

The type of a contract (HOME, OVER) says what its outcome is; without one, its name does. The states and types that it
has are those of its contract (`contracts/smarkets.toml`); a row of another one is left out and counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import Level, Name, Text, Time, inside, moment, number, plain, valid_items
from oddsengine.feeds.feed_names import MarketName, against, league, market, outcome_of, teams_of, with_line
from oddsengine.feeds.order_books import Ladder, better, crossed, ladder, price_of
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.feeds.turns import GamePieces, ListedGames, Received, Turn
from oddsengine.feeds.venue_contracts import values_of
from oddsengine.tables.levels import BET_DELAY

BOOK = "smarkets"
SOURCE = "Smarkets"
TYPES = {
    "soccer": "football_match", "football": "american_football_match", "basketball": "basketball_match",
    "baseball": "baseball_match", "hockey": "ice_hockey_match", "tennis": "tennis_match", "mma": "mma_match",
    "boxing": "boxing_match", "cricket": "cricket_match", "darts": "darts_match", "snooker": "snooker_match",
    "rugby_union": "rugby_union_match", "rugby_league": "rugby_league_match", "handball": "handball_match",
    "volleyball": "volleyball_match",
}  # fmt: skip
"""Its types of events by our sports."""

_SPORTS = {name: sport for sport, name in TYPES.items()}
_NAMES = {
    "WINNER_3_WAY": "moneyline_3way", "WINNER_2_WAY": "moneyline", "MATCH_WINNER": "moneyline",
    "ASIAN_HANDICAP": "asian_handicap", "HANDICAP": "point_spread", "OVER_UNDER": "total_points",
    "BTTS": "both_teams_to_score",
}  # fmt: skip
_DRAW_NO_BET = "WINNER_DNB"
_DRAWN = {"soccer": "draw_no_bet", "football": "moneyline"}  # there, overtime counts and a tie is void
_LINED = ("ASIAN_HANDICAP", "HANDICAP")
_TOTAL = "OVER_UNDER"
_COMING = ("new", "upcoming", "live")
_OPEN = ("open", "live")
_EVENT_STATES, _MARKET_STATES = values_of("smarkets", "event_state"), values_of("smarkets", "market_state")
_CONTRACT_STATES, _SIDES = values_of("smarkets", "contract_state"), values_of("smarkets", "side")
_CLOSED = tuple(state for state in _CONTRACT_STATES if state not in _OPEN)
_LEAGUE = 3  # part of a slug such as /sport/football/england-premier-league/2026/...
_ONE = 10_000.0
_LONGEST_S = 60.0  # a delay of bets; more is no number of seconds
_PAIR = 2
_WORDS = {
    "HOME": "home", "AWAY": "away", "PLAYER_A": "home", "PLAYER_B": "away", "DRAW": "draw", "OVER": "over",
    "UNDER": "under", "YES": "yes", "NO": "no",
}  # fmt: skip
Ident = str | int


class _EventType(msgspec.Struct):
    domain: str = ""
    scope: str = ""


class _Event(msgspec.Struct):
    id: Ident
    name: Text
    type: str | _EventType = ""
    state: str = ""
    full_slug: str = ""
    start_datetime: Time = None


class _MarketType(msgspec.Struct):
    name: Text = ""
    param: str | float | None = None


class _Market(msgspec.Struct):
    id: Ident
    event_id: Ident
    name: Text = ""
    state: str = ""
    market_type: _MarketType | None = None
    bet_delay: float | None = None


class _ContractType(msgspec.Struct):
    name: str | None = None


class _Contract(msgspec.Struct):
    id: Ident
    market_id: Ident
    name: Name
    contract_type: _ContractType | None = None
    state_or_outcome: str | None = None


class _Quote(msgspec.Struct):
    price: float
    quantity: float


class _Quotes(msgspec.Struct):
    bids: list[_Quote]
    offers: list[_Quote]


class SmarketsMarket(NamedTuple):
    """An open market of a game."""

    id: str
    game: Game
    name: str
    kind: str  # its type
    param: float | None  # the line of a total, or of the home side
    delay: float | None  # seconds until a bet is accepted, now


def read_events(
    pages: Sequence[bytes], now: datetime, *, league: str = "", within: float = 1e9
) -> ListedGames:  # fmt: skip
    """Parse pages of events: those of one of our leagues, if it is given, that start at most so many seconds from now.

    Raises `FeedError` if a page is not valid.
    """
    refused: Counter[str] = Counter()
    games: dict[str, Game] = {}
    until = now + timedelta(seconds=within)
    for body in pages:
        for event in _items(plain(body, SOURCE), "events", Level(_Event, "an event"), refused):
            game = _game(event, now)
            if event.state and event.state not in _EVENT_STATES:
                refused["an event in a state that is not known"] += 1
            elif event.state and event.state not in _COMING:
                continue
            elif not game.home:
                refused["an event that is not a game of two"] += 1
            elif (not league or game.league == league) and (game.start is None or game.start <= until):
                games[game.id] = game
    return ListedGames(games, refused)


def next_page(body: bytes, seen: set[str]) -> list[tuple[str, str]]:
    """Return the parameters that say where the next page begins; none if there is none.

    Its other parameters are those of the request, in words that the exchange itself does not accept.

    Even the last page has a next one, with events that were there before: `seen` are those of earlier pages, and those
    of this one are added. Raises `FeedError` if this is not a page.
    """
    document = plain(body, SOURCE)
    ids = {str(event.id) for event in _items(document, "events", Level(_Event, "an event"), Counter())}
    new = ids - seen
    seen |= new
    place = inside(document, "pagination", "next_page")
    if not new or not isinstance(place, str):
        return []
    return [(name, value) for name, value in parse_qsl(urlsplit(place).query) if name.startswith("pagination_")]


def read_markets(bodies: Sequence[bytes], listed: ListedGames, kinds: Sequence[str]) -> list[SmarketsMarket]:
    """Parse lists of the markets of games: the open ones of some types. Raises `FeedError` if one is not valid."""
    out: dict[str, SmarketsMarket] = {}
    for body in bodies:
        for one in _items(plain(body, SOURCE), "markets", Level(_Market, "a market"), listed.refused):
            game = listed.games.get(str(one.event_id))
            kind = one.market_type.name if one.market_type else ""
            if game is None or kind not in kinds:
                continue
            if one.state not in _MARKET_STATES:
                listed.refused["a market in a state that is not known"] += 1
            elif one.state in _OPEN:
                param = number(one.market_type.param) if one.market_type else None
                out[str(one.id)] = SmarketsMarket(str(one.id), game, one.name, kind, param, one.bet_delay)
    return list(out.values())


class SmarketsPrices(GamePieces):
    """Its prices, and what was listed before, by part of the exchange.

    Examples
    --------
    >>> SmarketsPrices().read("nfl", {}, [], [], []).quotes
    []
    """

    def read(
        self, part: str, games: Mapping[str, Game], markets: Sequence[SmarketsMarket], contracts: Sequence[bytes],
        quotes: Sequence[Received],
    ) -> Payload:  # fmt: skip
        """Parse contracts and quotes of all markets of some games.

        Raises `FeedError` if one is not valid; the state is unchanged.
        """
        turn = Turn()
        books = _books(quotes, turn.refused)
        of_market: dict[str, dict[str, _Contract]] = {}
        for body in contracts:
            for one in _items(plain(body, SOURCE), "contracts", Level(_Contract, "a contract"), turn.refused):
                of_market.setdefault(str(one.market_id), {})[str(one.id)] = one
        for market_ in markets:
            self._prices(market_, of_market.get(market_.id, {}), books, turn)
        return self.piece(part, games, turn)

    @staticmethod
    def _prices(
        one: SmarketsMarket, contracts: Mapping[str, _Contract], books: Mapping[str, tuple[_Quotes, datetime]],
        turn: Turn,
    ) -> None:  # fmt: skip
        kind = _kind(one)
        outcomes = {ident: _outcome(contract, one, kind) for ident, contract in contracts.items()}
        for ident, outcome in outcomes.items():
            if outcome is None:
                if contracts[ident].state_or_outcome not in _CLOSED:
                    turn.refused["a contract that is not understood"] += 1
                continue
            if ident not in books:
                continue
            own, at = books[ident]
            other_side = against(kind.name, outcome["selection_type"], one.game, "asian_handicap")
            if other_side is not None and (lays := crossed(_backed(own.bids, turn.refused))):
                turn.put(outcome | other_side | price_of(lays) | {"id": f"{ident}/lay", "last_seen_at": at})
            levels = _backed(own.offers, turn.refused)
            others = [other for other in outcomes if other != ident]
            if len(outcomes) == _PAIR and (other := others[0]) in books and outcomes[other] is not None:
                levels = better(levels, crossed(_backed(books[other][0].bids, turn.refused)))
                at = min(at, books[other][1])
            if not levels:
                continue
            turn.put(outcome | price_of(levels) | {"id": ident, "last_seen_at": at}, in_catalog=kind.in_catalog)


def _items(document: Any, what: str, level: Level, refused: Counter[str]) -> list[Any]:
    fault = f"not a payload of {SOURCE}: it has no list of {what}"
    return valid_items(inside(document, what), level, refused, SOURCE, fault)[0]


def _game(event: _Event, now: datetime) -> Game:
    kind = event.type if isinstance(event.type, str) else f"{event.type.domain}_match"
    sport = _SPORTS.get(kind, "")
    parts = event.full_slug.split("/")
    where = league(parts[_LEAGUE], sport) if len(parts) > _LEAGUE else ""
    start = moment(event.start_datetime)
    live = event.state == "live" or (start is not None and start <= now)
    return Game(str(event.id), sport, where, *teams_of(event.name), start, "live" if live else "upcoming")


def _books(quotes: Sequence[Received], refused: Counter[str]) -> dict[str, tuple[_Quotes, datetime]]:
    """Return the quotes of contracts, and when they arrived."""
    books: dict[str, tuple[_Quotes, datetime]] = {}
    for body, at in quotes:
        document = plain(body, SOURCE)
        if not isinstance(document, dict):
            raise FeedError(f"not a payload of {SOURCE}: it has no quotes")
        before = len(books)
        for ident, given in document.items():
            try:
                books[ident] = msgspec.convert(given, _Quotes), at
            except (msgspec.ValidationError, RecursionError):
                refused["quotes that are not valid"] += 1
        if document and len(books) == before:
            raise FeedError(f"not a payload of {SOURCE}: none of its {len(document)} quotes is valid")
    return books


def _backed(quotes: Sequence[_Quote], refused: Counter[str]) -> Ladder:
    """Return what quotes are as bets of a backer."""
    levels: list[tuple[float | None, float | None]] = []
    for quote in quotes:
        p = quote.price / _ONE
        levels.append((1.0 / p, p * quote.quantity / _ONE) if 0.0 < p < 1.0 else (None, None))
    return ladder(levels, refused)


def _kind(one: SmarketsMarket) -> MarketName:
    """Return the market of a type."""
    name = _DRAWN.get(one.game.sport) if one.kind == _DRAW_NO_BET else _NAMES.get(one.kind)
    if name == "total_points" and one.game.sport == "soccer":
        name = "total_goals"
    if name is None:
        return MarketName(one.kind)
    return market(name, one.game.sport)


def _outcome(contract: _Contract, one: SmarketsMarket, kind: MarketName) -> dict[str, Any] | None:
    """Return the row of a contract without its price; None if it is closed, or it is not clear what it is."""
    game = one.game
    if contract.state_or_outcome not in (None, *_OPEN):
        return None
    text, line = with_line(contract.name)
    given = (contract.contract_type.name if contract.contract_type else None) or ""
    if kind.in_catalog and given and given.upper() not in _SIDES:
        return None
    meaning = _WORDS.get(given.upper()) or outcome_of(text, game.home, game.away)
    selection = {"home": game.home, "away": game.away}.get(meaning, contract.name)
    if one.kind == _TOTAL:
        total = with_line(one.name.removesuffix(" goals").removesuffix(" points"))[1]
        line, selection = _only(one.param, line, total), meaning.title()
        if line is None or meaning not in ("over", "under"):
            return None
    elif one.kind in _LINED:
        if meaning not in ("home", "away"):
            return None
        own = one.param if meaning == "home" or one.param is None else -one.param
        line = _only(own, line, _handicap(one.name, selection))
        if line is None:
            return None
    else:
        if kind.in_catalog and not meaning:
            return None
        line = None
    # Before a game it says nothing about bets in play.
    delay = one.delay if game.status == "live" and one.delay is not None and 0.0 <= one.delay <= _LONGEST_S else None
    return game.fields | {
        "sportsbook": BOOK, "is_live": game.status == "live", "market_type": kind.name, "market_id": one.id,
        "external_event_id": game.id, "selection": selection, "selection_type": meaning or None, "line": line,
        "selection_id": str(contract.id), BET_DELAY: delay,
    }  # fmt: skip


def _only(*values: float | None) -> float | None:
    """Return the line that all that have one agree on."""
    lines = {value for value in values if value is not None}
    return lines.pop() if len(lines) == 1 else None


def _handicap(name: str, team: str) -> float | None:
    """Return the line of a team in a name such as "Asian Handicap Fulham -2.5 / Chelsea +2.5"."""
    for part in name.split("/"):
        text, line = with_line(part)
        if team and f" {catalog.normalise(text)}".endswith(f" {catalog.normalise(team)}"):
            return line
    return None
