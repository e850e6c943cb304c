"""Polymarket: the order books (CLOB) of the markets that its events (Gamma) list, from its WebSocket and over REST.

Each of a market's two tokens has its own book, and they mirror each other: a bid of p for one token is an ask of 1 - p
for the other. What a token costs is the lower of its lowest ask and 1 minus the other's highest bid; the same offer
stands in both, so sizes are never added. The price becomes the quote, before the fee, and the size there is the
maximum bet, in dollars. Levels come in any order; the size in a change is the new total.

Messages are changes without a sequence number, so a book can miss some: `PolymarketMarkets` compares the best prices
that a message names with its own. A market with a book in doubt is suspended until a complete book arrives
(`doubtful`). A response may have a book with next to no prices although the market is liquid: it is not believed while
the list of events has a narrow spread. Suspended are also, at the start, markets whose resting orders are then
cancelled, and a market whose two books cross each other, until they do not: who buys both tokens gets a dollar, so they
never cost less together. The `hash` of a message is not checked, as it covers fields that no message has.

Messages are ordered by their timestamps; one that is ahead of our clock says nothing about the order
(`ordering_stamp`). Time is an argument. Prices count as seen while the stream is alive, see `tracking`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import Any

import msgspec

from oddsengine.feeds.decoding import number, ordering_stamp, plain
from oddsengine.feeds.order_books import levels_of
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.feeds.polymarket_events import (
    SOURCE,
    EventsPage,
    League,
    ListedMarket,
    Number,
    read_events,
)
from oddsengine.feeds.tracking import Row, StreamRows
from oddsengine.tables.levels import MIN_BET

_DIGITS = 6  # of a price; the smallest tick is 0.0001
_SAME = 1e-9
_GHOST, _NARROW = 0.02, 0.5  # the best bid of a book without prices, and the spread of a market with some
_NOTHING = Payload()


class _Level(msgspec.Struct):
    price: Number
    size: Number


class _Change(msgspec.Struct):
    price: Number
    size: Number
    side: str
    asset_id: str = ""
    token_id: str = ""  # another name of the same
    best_bid: Number = None
    best_ask: Number = None

    def __post_init__(self) -> None:
        self.asset_id, self.side = self.asset_id or self.token_id, self.side.upper()


class _Message(msgspec.Struct):
    event_type: str = ""
    type: str = ""  # another name of the same
    asset_id: str = ""
    token_id: str = ""
    market: str = ""
    bids: list[_Level] | None = None
    asks: list[_Level] | None = None
    price_changes: list[_Change] | None = None
    changes: list[_Change] | None = None  # before 2025-09: all of `asset_id`
    timestamp: str | int | None = None
    best_bid: Number = None
    best_ask: Number = None
    old_tick_size: Number = None
    new_tick_size: Number = None
    sports_market_type: str | None = None

    def __post_init__(self) -> None:
        self.event_type, self.asset_id = self.event_type or self.type, self.asset_id or self.token_id


_messages = msgspec.json.Decoder(list[_Message] | _Message)


@dataclass(slots=True)
class _Book:
    """The book of a token."""

    bids: dict[float, float] = field(default_factory=dict)  # price -> size
    asks: dict[float, float] = field(default_factory=dict)
    stamp: int = 0  # of the last message about it that has one, milliseconds
    best: tuple[float, float] | None = None  # bid and ask in the last message that had them
    read_at: datetime | None = None  # when a response had this book, if no message has changed or doubted it since


class PolymarketMarkets:
    """The markets of some leagues.

    Examples
    --------
    >>> markets = PolymarketMarkets()
    >>> markets.read(b'{"event_type":"last_trade_price"}', datetime(2026, 8, 7)).quotes, list(markets.doubtful)
    ((), [])
    """

    def __init__(self) -> None:
        self._markets: dict[str, ListedMarket] = {}
        self._market_of: dict[str, str] = {}  # token -> market
        self._listed: dict[str, frozenset[str]] = {}  # league -> markets
        self._books: dict[str, _Book] = {}
        self._held = StreamRows()
        self._starts: list[tuple[datetime, str]] = []  # heap of markets that have not started
        self._started: set[str] = set()
        self.doubtful: dict[str, None] = {}  # tokens of tradable markets without a book, or with one in doubt
        self.crossed: dict[str, None] = {}  # tokens of markets whose two books cross each other
        self.updates = 0  # books and changes that were applied
        self.missed: dict[str, None] = {}  # tokens whose book changed between two responses without a message
        self.unlisted = False  # the exchange has reported a new market of a game; whoever lists them resets it

    @property
    def tokens(self) -> dict[str, tuple[str, str]]:
        """The two tokens of each market that can be traded."""
        return {id_: market.tokens for id_, market in self._markets.items() if market.tradable}

    @property
    def unread(self) -> list[str]:
        """Tokens whose book has never arrived."""
        return [token for token in self.doubtful if token not in self._books]

    def is_live(self, token: str) -> bool:
        """Whether the game of a token is in play."""
        id_ = self._market_of.get(token, "")
        return id_ in self._started or (id_ in self._markets and self._markets[id_].game.status == "live")

    def read_at(self, token: str) -> datetime | None:
        """When responses had both books of a token's market; None if a message has changed or doubted one since."""
        market = self._markets.get(self._market_of.get(token, ""))
        times = [self._books[one].read_at if one in self._books else None for one in market.tokens] if market else []
        known = [time for time in times if time is not None]
        return min(known) if known and len(known) == len(times) else None

    def list_events(
        self, pages: Sequence[EventsPage], league: League, now: datetime, *, within: float = float("inf"),
        kinds: frozenset[str] = frozenset(),
    ) -> Payload:  # fmt: skip
        """Take all events of a league; earlier markets of it that are not listed any more are removed.

        `within` are the seconds until the latest start of a game, `kinds` the market types, all if empty.
        """
        listing = read_events(pages, league, kinds)
        far = {id_ for id_, game in listing.games.items() if game.start and (game.start - now).total_seconds() > within}
        listed = {id_: market for id_, market in listing.markets.items() if market.game.id not in far}
        ended = self._listed.get(league.code, frozenset()) - listed.keys()
        self._listed[league.code] = frozenset(listed)
        removed = [token for id_ in sorted(ended) for token in self._remove(id_)]
        refused = listing.refused.copy()
        for id_, market in listed.items():
            if any(self._market_of.get(token, id_) != id_ for token in market.tokens):
                refused["a market with the tokens of another"] += 1
            else:
                self._add(id_, market, now)
        payload = self._emit(listed, now)
        games = {id_: game for id_, game in listing.games.items() if id_ not in far}
        return payload._replace(
            games=list(games.values()), removed=[*removed, *payload.removed], unmapped=listing.unmapped,
            refused=refused,
        )  # fmt: skip

    def read(self, data: bytes, now: datetime) -> Payload:
        """Parse one message of the WebSocket, or several in a list.

        A message that is not valid puts the books that it names in doubt. Raises `FeedError` if the data are not JSON
        messages; a change may be lost then.
        """
        refused: Counter[str] = Counter()
        changed: dict[str, None] = {}
        removed: list[str] = []
        for message in self._decoded(data, refused, changed):
            kind = message.event_type
            if kind == "market_resolved":
                removed += self._remove(message.market)
            elif kind == "new_market":
                self.unlisted |= bool(message.sports_market_type)
            elif kind == "tick_size_change":
                self._tick(message, changed)
            elif kind == "best_bid_ask":
                stamp = _stamp(message, now)
                self._compare(message.asset_id, message.best_bid, message.best_ask, stamp, changed)
            elif kind in ("", "book") and message.bids is not None:
                self._replace(message, now, changed, refused)
            elif message.price_changes is not None or message.changes is not None:
                self._change(message, now, changed, refused)
        payload = self._emit(changed, now)
        return payload._replace(removed=[*removed, *payload.removed], refused=refused)

    def read_books(self, data: bytes, asked: Iterable[str], now: datetime) -> Payload:
        """Parse a response with the books of the tokens asked for.

        A book that is older than a message about it stays in doubt. One that is not in the response is in doubt, and
        empty if it was before. One that differs from that of the last response, without a message since, is `missed`.
        Raises `FeedError` if the response is not valid.
        """
        refused: Counter[str] = Counter()
        changed: dict[str, None] = {}
        messages = self._decoded(data, refused, changed)
        ghosts: set[str] = set()
        for message in messages:
            if message.bids is not None:
                before = self._books.get(message.asset_id)
                if self._is_ghost(message):
                    refused["an empty book of a liquid market"] += 1
                    ghosts.add(message.asset_id)
                    self._doubt(message.asset_id, changed)
                    continue
                self._replace(message, now, changed, refused)
                after = self._books.get(message.asset_id)
                if after is not None and after is not before:
                    after.read_at = now
                    if before is not None and before.read_at is not None and not _equal(before, after):
                        self.missed[message.asset_id] = None
        if refused.total() == len(ghosts):
            answered = {message.asset_id for message in messages}
            for token in asked:
                if token in answered:
                    continue
                if token in self.doubtful:
                    self._set(token, _Book(), changed)
                else:
                    self._doubt(token, changed)
        payload = self._emit(changed, now)
        if changed and any(token in self.crossed for token in asked):
            refused["a market whose two books cross each other"] += 1
        return payload._replace(refused=refused)

    def doubt(self, tokens: Iterable[str], now: datetime) -> Payload:
        """Suspend the prices of tokens whose connection has failed, until complete books arrive."""
        changed: dict[str, None] = {}
        for token in tokens:
            self._doubt(token, changed)
            if token in self._books:
                self._books[token].stamp, self._books[token].best = 0, None
        return self._emit(changed, now)

    def alive(self, now: datetime) -> Payload:
        """Report that the stream is alive; returns rows to renew, usually none, and those of games that start."""
        payload = self._emit({}, now)
        rows = self._held.due(now)
        if not rows:
            return payload
        changed = {row["id"] for row in payload.quotes}
        return payload._replace(quotes=[*payload.quotes, *(row for row in rows if row["id"] not in changed)])

    # ---- state ----

    def _add(self, id_: str, market: ListedMarket, now: datetime) -> None:
        before, self._markets[id_] = self._markets.get(id_), market
        start = market.game.start
        if start is not None and id_ not in self._started:
            if start <= now:
                self._started.add(id_)
            elif before is None or before.game.start != start:
                heappush(self._starts, (start, id_))
        for token in market.tokens:
            self._market_of[token] = id_
            if not market.tradable:
                self.doubtful.pop(token, None)
                self._books.pop(token, None)  # it is not followed any more
            elif token not in self._books:
                self.doubtful[token] = None

    def _remove(self, id_: str) -> list[str]:
        """Forget a market; returns the ids of its quotes."""
        market = self._markets.pop(id_, None)
        if market is None:
            return []
        self._started.discard(id_)
        quoted = [token for token in market.rows if token in self._held.rows]
        self._held.drop(quoted)
        for token in market.tokens:
            self._market_of.pop(token, None)
            for state in (self._books, self.doubtful, self.crossed, self.missed):
                state.pop(token, None)
        return quoted

    def _begin(self, now: datetime) -> dict[str, None]:
        """Return the markets that start by now; those whose orders are cancelled then are in doubt."""
        begun: dict[str, None] = {}
        while self._starts and self._starts[0][0] <= now:
            start, id_ = heappop(self._starts)
            market = self._markets.get(id_)
            if market is None or market.game.start != start or id_ in self._started:
                continue
            self._started.add(id_)
            begun[id_] = None
            if market.clears:
                for token in market.tokens:
                    self._doubt(token, begun)
        return begun

    # ---- books ----

    def _decoded(self, data: bytes, refused: Counter[str], changed: dict[str, None]) -> list[_Message]:
        try:
            messages = _messages.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return self._salvaged(data, refused, changed)
        return messages if isinstance(messages, list) else [messages]

    def _salvaged(self, data: bytes, refused: Counter[str], changed: dict[str, None]) -> list[_Message]:
        """Decode messages one by one; the books that invalid ones name are in doubt."""
        items = plain(data, SOURCE)
        items = items if isinstance(items, list) else [items]
        if not all(isinstance(item, dict) for item in items):
            raise FeedError(f"not messages of {SOURCE}")
        messages: list[_Message] = []
        for item in items:
            try:
                messages.append(msgspec.convert(item, _Message))
            except msgspec.ValidationError:
                refused["a message that is not valid"] += 1
                changes = item.get("price_changes")
                for part in (item, *(changes if isinstance(changes, list) else ())):
                    for name in ("asset_id", "token_id"):
                        self._doubt(str(part.get(name)) if isinstance(part, dict) else "", changed)
                market = self._markets.get(str(item.get("market")))
                if market is not None and "asset_id" not in item:
                    for token in market.tokens:
                        self._doubt(token, changed)
        return messages

    def _is_ghost(self, message: _Message) -> bool:
        """Whether a book has next to no prices, while the list of events has some of its market."""
        market = self._markets.get(self._market_of.get(message.asset_id, ""))
        if market is None or market.spread is None or market.spread > _NARROW:
            return False
        bids, asks = ([_price(level.price) or 0.0 for level in side or ()] for side in (message.bids, message.asks))
        return max(bids, default=0.0) <= _GHOST and min(asks, default=1.0) >= 1.0 - _GHOST

    def _doubt(self, token: str, changed: dict[str, None]) -> None:
        id_ = self._market_of.get(token)
        if id_ is None or not self._markets[id_].tradable:
            return
        self.doubtful[token] = None
        changed[id_] = None
        if token in self._books:
            self._books[token].read_at = None

    def _set(self, token: str, book: _Book, changed: dict[str, None]) -> None:
        """Take a complete book."""
        self._books[token] = book
        self.updates += 1
        self.doubtful.pop(token, None)
        changed[self._market_of[token]] = None

    def _replace(
        self, message: _Message, now: datetime, changed: dict[str, None], refused: Counter[str]
    ) -> None:  # fmt: skip
        token, before = message.asset_id, self._books.get(message.asset_id)
        if token not in self._market_of or not self._markets[self._market_of[token]].tradable:
            return
        book, stamp = _Book(), _stamp(message, now)
        for side, levels in ((book.bids, message.bids), (book.asks, message.asks or ())):
            for level in levels or ():
                price, size = _price(level.price), number(level.size)
                if price is None or size is None or size < 0.0:
                    refused["an invalid price or size"] += 1
                    self._doubt(token, changed)
                    return
                if size > 0.0:
                    side[price] = size
        best = _best(book)
        if best[0] >= best[1]:
            refused["a book whose prices cross"] += 1
            self._doubt(token, changed)
        elif before is None or not stamp or stamp >= before.stamp or (
            token not in self.doubtful and _equal(before, book)
        ):  # fmt: skip
            book.stamp = max(stamp, 0 if before is None else before.stamp)
            self._set(token, book, changed)
        elif token in self.doubtful and _same(before.best, best):
            book.stamp = before.stamp
            self._set(token, book, changed)

    def _change(self, message: _Message, now: datetime, changed: dict[str, None], refused: Counter[str]) -> None:
        stamp = _stamp(message, now)
        last: dict[str, _Change] = {}
        for change in message.price_changes if message.price_changes is not None else message.changes or ():
            token = change.asset_id or message.asset_id
            book = self._books.get(token)
            if book is None or (stamp and stamp < book.stamp):
                continue  # its first book will come, or has this already
            price, size = _price(change.price), number(change.size)
            if price is None or size is None or size < 0.0 or change.side not in ("BUY", "SELL"):
                refused["an invalid price or size"] += 1
                self._doubt(token, changed)
                continue
            levels = book.bids if change.side == "BUY" else book.asks
            if size > 0.0:
                levels[price] = size
            else:
                levels.pop(price, None)
            changed[self._market_of[token]] = None
            last[token], book.read_at = change, None
            self.updates += 1
        for token, change in last.items():
            self._compare(token, change.best_bid, change.best_ask, stamp, changed)

    def _compare(self, token: str, bid: Number, ask: Number, stamp: int, changed: dict[str, None]) -> None:
        """Doubt a book whose best prices are not those that a message names, or cross."""
        book = self._books.get(token)
        if book is None or (stamp and stamp < book.stamp):
            return
        book.stamp = stamp or book.stamp
        own = _best(book)
        if bid is not None and ask is not None:
            book.best = (number(bid) or 0.0, number(ask) or 1.0)
        else:
            book.best = None
        if own[0] >= own[1] or not (book.best is None or _same(book.best, own)):
            self._doubt(token, changed)

    def _tick(self, message: _Message, changed: dict[str, None]) -> None:
        """Doubt the books of a market whose grid gets coarser, since levels off it are gone."""
        old, new = number(message.old_tick_size), number(message.new_tick_size)
        id_ = self._market_of.get(message.asset_id, message.market)
        if id_ in self._markets and (old is None or new is None or new > old):
            for token in self._markets[id_].tokens:
                self._doubt(token, changed)

    # ---- quotes ----

    def _emit(self, markets: Iterable[str], now: datetime) -> Payload:
        """Return the quotes of markets that have changed, and the ids of those that are gone."""
        begun = self._begin(now)
        games: dict[str, Game] = {}
        quotes: list[Row] = []
        removed: list[str] = []
        for id_ in dict.fromkeys((*markets, *begun)):
            market = self._markets.get(id_)
            if market is None:
                continue
            live = market.game.status == "live" or id_ in self._started
            priced = self._has_prices(market)
            for token, row in market.rows.items():
                before = self._held.rows.get(token)
                after = self._row(market, token, row, before, live=live, priced=priced)
                if after is None and before is not None:
                    removed.append(token)
                elif after is not None and after != before:
                    games[market.game.id] = market.game
                    quotes.append(after)
        self._held.drop(removed)
        self._held.put(quotes)
        if not (quotes or removed):
            return _NOTHING
        return Payload(list(games.values()), [row | {"last_seen_at": now} for row in quotes], (), removed)

    def _has_prices(self, market: ListedMarket) -> bool:
        """Whether a market can be traded, neither book is in doubt, and they do not cross each other."""
        for token in market.tokens:
            self.crossed.pop(token, None)
        if not market.tradable or any(token in self.doubtful for token in market.tokens):
            return False
        (bid, ask), (other_bid, other_ask) = (_best(self._books[token]) for token in market.tokens)
        if bid + other_bid < 1.0 - _SAME and ask + other_ask > 1.0 + _SAME:
            return True
        self.crossed |= dict.fromkeys(market.tokens)
        return False

    def _row(
        self, market: ListedMarket, token: str, row: Mapping[str, Any], before: Row | None, *, live: bool, priced: bool
    ) -> Row | None:
        """Return the row of a token; suspended if its market is, None without an offer."""
        if market.closed:
            return None
        if not priced:
            return None if before is None else before | {"is_active": False, "is_live": live}
        other = market.tokens[market.tokens[0] == token]
        asks = _asks(self._books[token], self._books[other])
        if not asks:
            return None
        price = min(asks)
        deep = levels_of((1.0 / ask, ask * size) for ask, size in asks.items())
        least = {} if market.fewest is None else {MIN_BET: price * market.fewest}
        return {**row, **deep, **least, "odds_decimal": 1.0 / price, "max_bet": price * asks[price], "is_live": live}


def _asks(own: _Book, other: _Book) -> dict[float, float]:
    """Return what a token costs, and the size there, from its book and the mirrored one, which has the same orders."""
    asks = {round(1.0 - bid, _DIGITS): size for bid, size in other.bids.items()}
    for price, size in own.asks.items():
        asks[price] = max(size, asks.get(price, 0.0))
    return asks


def _best(book: _Book) -> tuple[float, float]:
    """Return the best bid and ask; 0 and 1 if there are none."""
    return max(book.bids, default=0.0), min(book.asks, default=1.0)


def _equal(one: _Book, other: _Book) -> bool:
    """Whether two books have the same levels."""
    return one.bids == other.bids and one.asks == other.asks


def _same(named: tuple[float, float] | None, own: tuple[float, float]) -> bool:
    return named is not None and abs(named[0] - own[0]) < _SAME and abs(named[1] - own[1]) < _SAME


def _price(value: Number) -> float | None:
    price = round(number(value) or 0.0, _DIGITS)
    return price if 0.0 < price < 1.0 else None


def _stamp(message: _Message, now: datetime) -> int:
    return ordering_stamp(number(message.timestamp), now)
