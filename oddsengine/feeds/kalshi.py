"""Kalshi, an exchange of contracts that pay 1 USD: its events, milestones, structured targets, markets and order books.

A market is one contract with a Yes and a No. Its book has bids only, in any order: a bid of 0.40 for No sells Yes at
0.60, so the price of Yes is 1 less the best bid for No. A price p becomes decimal odds of 1/p before the fee
(`kalshi_fees`); `max_bet` is what the best level costs, p times its contracts.

- **Games** are in `kalshi_games`, order books in `kalshi_books`.
- **Sides.** `custom_strike` of a market has the id of its team or player, a structured target; its line is
  `floor_strike`.
- **No** is another outcome, or none (`kalshi_outcomes`). Of two markets with the same bet the better price counts.
  Multivariate events, which are parlays, are left out, and so are contracts that do not pay 1 USD or nothing.
- **A line that moves** (`metadata_updated`) is another bet: the prices of the old one are removed at once. A list that
  is older than the message does not bring it back.
- **Suspended.** Prices of a market that is paused, closed or no longer listed are suspended, and so are those of a book
  with a gap in its changes, whose bids for Yes and No cross, or with a snapshot that is not valid, until the next one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import moment
from oddsengine.feeds.feed_names import against
from oddsengine.feeds.kalshi_books import KalshiBooks
from oddsengine.feeds.kalshi_fees import OLDEST_LIST, FeeRule, KalshiFees
from oddsengine.feeds.kalshi_format import (
    BOOK,
    ONE,
    BookChange,
    Market,
    book_ladders,
    decimal,
    is_draw,
    items,
    listed_ladders,
    number,
    read_book,
    read_change,
    read_message,
    read_series,
)
from oddsengine.feeds.kalshi_games import KalshiGames
from oddsengine.feeds.kalshi_outcomes import Offer, offers_of
from oddsengine.feeds.kalshi_series import (
    LISTED,
    PROP,
    SCORER,
    UNKNOWN,
    WINNER,
    SeriesMarket,
    meaning,
)
from oddsengine.feeds.order_books import levels_of, own_fee
from oddsengine.feeds.payload import Game, Payload
from oddsengine.feeds.tracking import StreamRows
from oddsengine.feeds.venue_contracts import values_of
from oddsengine.tables.levels import BET_STEP, MIN_BET

_OPEN = "active"
_BEFORE, _OVER = {"initialized", "unopened"}, {"determined", "disputed", "amended", "finalized", "settled"}
_LIFECYCLE = {"activated": _OPEN, "deactivated": "inactive", "determined": "determined", "settled": "finalized"}
_NOT_TRADED = _OVER | _BEFORE
_KNOWN_STATUSES = values_of("kalshi", "market_status") | _NOT_TRADED
_STRIKES = values_of("kalshi", "strike_type")
ENDING = (7, 10, 25)
"""Codes of errors after which a subscription sends nothing more."""
_STATUSES = "market_lifecycle_v2"
_STATUS_TYPES = {_STATUSES, "event_lifecycle", "event_fee_update"}
_HANDLED = {"orderbook_snapshot", "orderbook_delta", _STATUSES, "event_fee_update", "subscribed", "error"}
_SIDES = {"yes": "no", "no": "yes"}
_NOTHING = Payload()


class _EventBets(NamedTuple):
    """The outcomes of an event: fields that their rows share, and the offers of each by id."""

    shared: dict[str, Any]
    offers: dict[str, list[Offer]]
    of_market: dict[str, list[str]]
    fees: dict[str, float]  # by market


class KalshiMarkets:
    """The markets of the games of one feed.

    Add the open events with their milestones, then markets series by series; `unnamed` lists the targets whose names
    are needed. Prices come from lists of markets, from order books, and from messages of the stream.

    Examples
    --------
    >>> markets = KalshiMarkets()
    >>> events = b'{"events": [{"event_ticker": "E"}], "cursor": ""}'
    >>> markets.add_events("KXNFLGAME", [events], datetime(2026, 8, 7)).refused
    Counter({'a game without a milestone': 1})
    """

    def __init__(self) -> None:
        self._games = KalshiGames()
        self._markets: dict[str, Market] = {}
        self._status: dict[str, str] = {}
        self._of_event: dict[str, dict[str, None]] = {}  # event -> its markets
        self._series: dict[str, str] = {}  # event -> its series
        self._books = KalshiBooks()
        self._fees = KalshiFees()
        self._rows: dict[str, dict[str, dict[str, Any]]] = {}  # event -> rows by id
        self._bets: dict[str, _EventBets] = {}  # by event
        self._held = StreamRows()
        self._status_sid: int | None = None  # the subscription that statuses come from
        self._unsure: dict[str, datetime] = {}  # market -> since when its status may have changed without a message
        self._amended: dict[str, tuple[datetime, datetime | None, dict[str, Any]]] = {}  # see `_amend`
        self._activated: dict[str, datetime] = {}  # when the stream last said so
        self.statuses_lost = False  # a change of a market's status may have been missed
        self.reopened = False  # the stream has opened a market; whoever follows it resets it

    # ---- lists ----

    def add_events(self, winners: str, pages: Sequence[bytes], now: datetime) -> Payload:
        """Parse the open events of a series of winners, with their milestones; games that are not listed are dropped.

        Markets of an event whose fee has changed are priced anew.

        Raises `FeedError` if a page is invalid; the state is unchanged.
        """
        refused: Counter[str] = Counter()
        events, milestones = (
            items(pages, kind, refused, required=kind == "events") for kind in ("events", "milestones")
        )
        games = self._games.replace(winners, {event.event_ticker for event in events}, milestones, refused)
        changed = self._fees.add_events(events, now)
        self._fees.keep(self._games.of_event)
        removed: list[str] = []
        for event in [event for event in self._of_event if event not in self._games.of_event]:
            removed += self._drop_event(event)
        for ident in games:
            self._games.need(self._sides(ident))
        payload = self._emit([event for event in changed if event in self._of_event], now, refused)
        described = {known.id: known for ident in games if (known := self._game(ident, None)) is not None}
        described |= {game.id: game for game in payload.games}
        return payload._replace(games=list(described.values()), removed=[*removed, *payload.removed])

    def series(self, winners: str) -> list[str]:
        """Return the series that the games of a series of winners have markets of, that one first."""
        events = [event for event, ident in self._games.of_event.items() if self._games.winners(ident) == winners]
        others = {event.partition("-")[0] for event in events} - {winners}
        return [winners, *sorted(others)]

    def add_series(self, series: str, body: bytes, now: datetime) -> Payload:
        """Parse the fee of a series; its markets are left out if it is of a form that we cannot calculate.

        Raises `FeedError` if the body is invalid; the state is unchanged.
        """
        self._fees.set_series(series, read_series(body))
        return self._emit([event for event, own in self._series.items() if own == series], now, Counter())

    def has_fee(self, series: str) -> bool:
        """Whether the fee of a series has been read."""
        return self._fees.has(series)

    def add_fee_changes(self, of_series: Sequence[bytes], of_events: Sequence[bytes]) -> Payload:
        """Parse the announced changes of fees of series and of events, in place of earlier ones; see `reprice`.

        Raises `FeedError` if a page is invalid; the state is unchanged.
        """
        refused: Counter[str] = Counter()
        changes = [
            *items(of_series, "series_fee_change_arr", refused), *items(of_events, "event_fee_changes", refused)
        ]  # fmt: skip
        refused["a change of a fee without a time"] += self._fees.announce(changes)
        return Payload(refused=+refused)

    def reprice(self, now: datetime) -> Payload:
        """Return the prices of markets whose fee has changed by now, as was announced; usually none."""
        series, events = self._fees.advance(now)
        if not (series or events):
            return _NOTHING
        changed = [event for event, own in self._series.items() if own in series or event in events]
        return self._emit(changed, now, Counter())

    def read_markets(self, series: str, pages: Sequence[bytes], now: datetime) -> Payload:
        """Parse all open markets of a series; those that are no longer listed are suspended.

        Raises `FeedError` if a page is invalid; the state is unchanged.
        """
        refused: Counter[str] = Counter()
        listed: dict[str, Market] = {}
        for market in items(pages, "markets", refused):
            if market.mve_collection_ticker:
                refused["a market of several games"] += 1
            elif market.event_ticker not in self._games.of_event:
                refused["a market of no listed game"] += 1
            elif market.status not in _KNOWN_STATUSES:
                refused["a market whose status is not known"] += 1
            elif market.strike_type is not None and market.strike_type not in _STRIKES:
                refused["a market whose strike is of an unknown kind"] += 1
            elif market.market_type not in (None, "binary"):
                refused["a market that is not binary"] += 1
            elif market.notional_value_dollars is not None and decimal(market.notional_value_dollars) != ONE:
                refused["a market whose contracts do not pay 1 USD"] += 1
            else:
                listed[market.ticker] = market
        events = {event: None for event, own in self._series.items() if own == series}
        for ticker in (ticker for event in events for ticker in self._of_event[event]):
            if ticker in listed or (self._status[ticker] == _OPEN and self._opened_since(ticker, now)):
                continue
            if self._status[ticker] == _OPEN:
                self._status[ticker] = "closed"
            self._books.close(ticker)
        for ticker, market in listed.items():
            event = market.event_ticker
            events[event] = None
            if ticker in self._markets and (left := self._markets[ticker].event_ticker) != event:
                self._of_event[left].pop(ticker, None)
                events[left] = None
            self._markets[ticker] = self._latest(market, now)
            self._fees.watch(market, now)
            streamed = self._books.is_streamed(ticker)
            # A list may be older than the stream.
            if not streamed or self._status[ticker] == _OPEN or ticker in self._unsure:
                self._set_status(ticker, "determined" if market.result else market.status)
            if now - self._unsure.get(ticker, now) >= OLDEST_LIST:
                del self._unsure[ticker]
            self._of_event.setdefault(event, {})[ticker] = None
            self._series[event] = series
            if not streamed:
                self._books.keep(ticker, listed_ladders(market, refused), refused)
            elif ticker not in self._books.ladders:
                self._books.doubt(ticker)  # its snapshot was refused; another one is needed
        return self._emit(events, now, refused)

    def add_targets(self, body: bytes, requested: Iterable[str], now: datetime) -> Payload:
        """Parse names of targets; returns the quotes that were waiting for them.

        Raises `FeedError` if the body is invalid; the state is unchanged.
        """
        refused: Counter[str] = Counter()
        named = {one.id: one.name for one in items([body], "structured_targets", refused)}
        names = {ident: named.get(ident, "") for ident in requested}
        self._games.learn(names)
        events = [event for event, ident in self._games.of_event.items() if event in self._of_event and (
            names.keys() & {*self._sides(ident), *(one for ticker in self._of_event[event]
                                                   for one in self._markets[ticker].targets)}
        )]  # fmt: skip
        return self._emit(events, now, refused)

    def read_order_books(self, body: bytes, now: datetime, ticker: str = "") -> Payload:
        """Parse order books of several markets, or of one whose `ticker` is given.

        Raises `FeedError` if the body is invalid; the state is unchanged.
        """
        refused: Counter[str] = Counter()
        if ticker:
            books = [read_book(body)]
            books[0].ticker = ticker
        else:
            books = items([body], "orderbooks", refused)
        events: dict[str, None] = {}
        for book in books:
            if book.ticker not in self._markets:
                refused["a book of an unknown market"] += 1
                continue
            if not self._books.is_streamed(book.ticker):
                self._books.keep(book.ticker, book_ladders(book, refused), refused)
            events[self._markets[book.ticker].event_ticker] = None
        return self._emit(events, now, refused)

    def open_markets(self, winners: str = "") -> list[str]:
        """Return the tickers of the open markets of games: all, or those of one series of winners."""
        return [
            ticker
            for ticker, status in self._status.items()
            if status == _OPEN
            and winners in ("", self._games.winners(self._games.of_event[self._markets[ticker].event_ticker]))
        ]

    @property
    def unnamed(self) -> dict[str, None]:
        """Targets whose names are needed."""
        return self._games.unnamed

    # ---- the stream ----

    def read(self, message: bytes, now: datetime) -> Payload:
        """Parse one message of the stream; a book counts from its first snapshot on.

        Raises `FeedError` if it is not one. The state is unchanged, but a change may be lost: call `disconnected`, and
        connect again.
        """
        given = read_message(message)
        change = read_change(given) if given.type in _HANDLED else BookChange()
        changed: dict[str, None] = {}
        refused: Counter[str] = Counter()
        if given.type in _STATUS_TYPES:
            self._status_sid = given.sid
        elif given.type == "subscribed" and change.channel == _STATUSES:
            self._status_sid = change.sid
        if given.sid is not None and given.seq is not None and not self._books.follows(given.sid, given.seq):
            changed |= dict.fromkeys(self._doubt(given.sid, refused))
        if given.type == "error" and change.code in ENDING and given.sid is not None:
            changed |= dict.fromkeys(self._books.end(given.sid))
            if given.sid == self._status_sid:
                self._unsure |= dict.fromkeys(self._books.streamed, now)
                self._activated.clear()  # what was opened may have closed since
        moved: list[str] = []
        ticker = change.market_ticker
        if ticker in self._markets and given.type in _HANDLED:
            if given.type == "orderbook_snapshot" and given.sid is not None:
                changed |= dict.fromkeys(self._books.replace(ticker, change, given.sid, refused))
            elif given.type == "orderbook_delta":
                self._books.change(ticker, change, refused)
            elif given.type == _STATUSES and change.event_type in _LIFECYCLE:
                if change.event_type == "activated":
                    self._activated[ticker] = now
                    self.reopened |= self._status[ticker] != _OPEN
                self._set_status(ticker, _LIFECYCLE[change.event_type])
                self._unsure.pop(ticker, None)
            elif given.type == _STATUSES and change.event_type == "metadata_updated":
                moved = self._amend(ticker, change.strike, now)
            changed[ticker] = None
        elif given.type == "event_fee_update" and change.event_ticker in self._of_event:
            rule = FeeRule(change.fee_type_override, change.fee_multiplier_override)
            self._fees.set_event(change.event_ticker, rule, now)
            moved = [change.event_ticker]
        if moved:
            return self._emit(moved, now, refused)
        return self._emit_changes(changed, now, refused) if changed or refused else _NOTHING

    def _amend(self, ticker: str, strike: dict[str, Any], now: datetime) -> list[str]:
        """Take another strike of a market. Returns the event of it, whose bets are others now.

        A list may be older: what was said stays for a while, or until a list has the market as updated later.
        """
        market = self._markets[ticker]
        _, since, earlier = self._amended.get(ticker, (now, moment(market.updated_time), {}))
        self._amended[ticker] = now, since, earlier | strike
        self._markets[ticker] = msgspec.structs.replace(market, **strike)
        return [market.event_ticker]

    def _set_status(self, ticker: str, status: str) -> None:
        """Take the status of a market. One that opens again needs a new book: its orders were cancelled."""
        if status == _OPEN and self._status.get(ticker, _OPEN) != _OPEN:
            self._books.doubt(ticker)
        self._status[ticker] = status

    def _opened_since(self, ticker: str, now: datetime) -> bool:
        """Whether the stream has opened a market so lately that a list without it may be older."""
        return ticker in self._activated and now - self._activated[ticker] < OLDEST_LIST

    def _latest(self, market: Market, now: datetime) -> Market:
        """Return a listed market, with the strike that the stream has said since."""
        if market.ticker not in self._amended:
            return market
        at, since, strike = self._amended[market.ticker]
        updated = moment(market.updated_time)
        is_later = since is not None and updated is not None and updated > since
        if is_later or now - at >= OLDEST_LIST:
            del self._amended[market.ticker]
            return market
        return msgspec.structs.replace(market, **strike)

    def disconnected(self, now: datetime) -> Payload:
        """Suspend all prices of the stream; lists of markets have prices again until the next snapshots."""
        streamed = self._books.streamed
        for ticker in streamed:
            self._books.doubt(ticker)
        payload = self._emit_changes(streamed, now, Counter())
        self._books.disconnect()
        self._status_sid = None
        self.statuses_lost = False
        self.reopened = False
        self._unsure.clear()
        self._activated.clear()
        self._held.clear()
        return payload

    def is_streamed(self, ticker: str) -> bool:
        """Whether the stream has sent a market's book."""
        return self._books.is_streamed(ticker)

    @property
    def streamed(self) -> list[str]:
        """The open markets whose books the stream has sent."""
        return [ticker for ticker in self._books.streamed if self._status[ticker] == _OPEN]

    @property
    def doubtful(self) -> list[str]:
        """The streamed markets whose book is not known."""
        return list(self._books.doubtful)

    @property
    def updates(self) -> int:
        """The number of books and changes of the stream that were taken."""
        return self._books.updates

    def alive(self, now: datetime) -> Payload:
        """Report that the stream is alive; returns rows to renew, usually none."""
        rows = self._held.due(now)
        return Payload(quotes=rows) if rows else _NOTHING

    def _doubt(self, sid: int, refused: Counter[str]) -> list[str]:
        """Doubt all that a subscription says: its numbers have a gap. Returns the markets of its books."""
        statuses = sid == self._status_sid
        refused["a gap in the statuses of markets" if statuses else "a gap in the changes of order books"] += 1
        self.statuses_lost |= statuses
        return self._books.doubt_all(sid)

    # ---- games ----

    def _game(self, ident: str, now: datetime | None) -> Game | None:
        """Return a game; None if its teams are not known."""
        return self._games.game(ident, self._winner_markets(ident), now)

    def _sides(self, ident: str) -> list[str]:
        """Return the targets of the home and the away side; empty if they are not known."""
        return self._games.sides(ident, self._winner_markets(ident))

    def _winner_markets(self, ident: str) -> list[Market]:
        """Return the markets of a game's winner."""
        winners = self._games.winners(ident)
        events = [event for event in self._games.events(ident) if self._series.get(event) == winners]
        return [self._markets[ticker] for event in events for ticker in self._of_event[event]]

    def _drop_event(self, event: str) -> list[str]:
        """Forget an event; returns the ids of its quotes."""
        for ticker in self._of_event.pop(event):
            for state in (self._markets, self._status, self._amended, self._unsure, self._activated):
                state.pop(ticker, None)
            self._books.drop(ticker)
        self._series.pop(event, None)
        self._bets.pop(event, None)
        removed = list(self._rows.pop(event, {}))
        self._held.drop(removed)
        return removed

    # ---- quotes ----

    def _emit(self, events: Iterable[str], now: datetime, refused: Counter[str]) -> Payload:
        """Return the games and quotes of events, and the ids of quotes that are gone."""
        games: dict[str, Game] = {}
        quotes: list[dict[str, Any]] = []
        removed: list[str] = []
        unmapped: Counter[tuple[str, str]] = Counter()
        for event in events:
            ident = self._games.of_event[event]
            waiting = self._games.need(self._sides(ident))
            game = self._game(ident, now)
            if game is None or waiting:
                refused["a market whose teams are not known yet"] += len(self._of_event[event])
                self._bets.pop(event, None)  # what was said of its lines and sides may no longer hold
                removed += self._rows.pop(event, {})
                continue
            games[ident] = game
            bets = self._event_bets(event, game, now, unmapped, refused)
            self._bets[event] = bets
            before = self._rows.get(event, {})
            rows = {key: row for key in bets.offers if (row := self._row(bets, key, before.get(key), now)) is not None}
            removed += [key for key in before if key not in rows]
            quotes += rows.values()
            self._rows[event] = rows
        self._held.drop(removed)
        held, is_streamed = self._held.rows, self._books.is_streamed
        self._held.put(row for row in quotes if row["id"] in held or is_streamed(row["market_id"]))
        return Payload(list(games.values()), quotes, (), removed, unmapped, +refused)

    def _emit_changes(self, tickers: Iterable[str], now: datetime, refused: Counter[str]) -> Payload:
        """Return the quotes of markets that changed."""
        quotes: list[dict[str, Any]] = []
        streamed: list[dict[str, Any]] = []
        removed: list[str] = []
        for ticker in tickers:
            event = self._markets[ticker].event_ticker
            if (bets := self._bets.get(event)) is None:
                continue
            rows = self._rows[event]
            for key in bets.of_market.get(ticker, ()):
                before, row = rows.get(key), self._row(bets, key, rows.get(key), now)
                if row is not None:
                    if row != before:
                        rows[key] = row
                        quotes.append(row)
                    if self._books.is_streamed(ticker) or key in self._held.rows:
                        streamed.append(row)
                elif before is not None:
                    del rows[key]
                    removed.append(key)
        self._held.drop(removed)
        self._held.put(streamed)
        return Payload((), quotes, (), removed, refused=+refused)

    def _event_bets(
        self, event: str, game: Game, now: datetime, unmapped: Counter[tuple[str, str]], refused: Counter[str]
    ) -> _EventBets:  # fmt: skip
        markets = [self._markets[ticker] for ticker in self._of_event[event]]
        meant = meaning(self._series[event], self._games.winners(game.id), game.sport)
        sides = self._sides(game.id)
        three = meant.form == WINNER and (game.sport == "soccer" or any(map(is_draw, markets)))
        market_type = (meant.with_draw if three else meant.market).name
        shared = game.fields | {
            "sportsbook": BOOK, "market_type": market_type, "is_live": game.status == "live",
            "external_event_id": event,
        }  # fmt: skip
        bets = _EventBets(shared, {}, {}, {})
        for market in markets:
            if game.status == "ended" or self._status[market.ticker] in _NOT_TRADED:
                continue
            fee = self._fees.fee(self._series[event], market, now)
            if fee is None:
                refused["a market whose fee is of another form"] += 1
                continue
            bets.fees[market.ticker] = fee
            if meant.form == UNKNOWN:
                unmapped[BOOK, meant.market.name] += 1
            for offer in self._offers(market, meant, game, sides, refused, three=three):
                bets.offers.setdefault(offer.id, []).append(offer)
                bets.of_market.setdefault(market.ticker, []).append(offer.id)
        return bets

    def _row(
        self, bets: _EventBets, key: str, before: dict[str, Any] | None, now: datetime
    ) -> dict[str, Any] | None:  # fmt: skip
        """Return the best price of an outcome; the last one, suspended, if it is in doubt; None without an offer."""
        offers = [offer for offer in bets.offers[key] if self._status[offer.market.ticker] not in _NOT_TRADED]
        start = bets.shared["event_start_time"]
        live = {"is_live": bets.shared["is_live"] or (start is not None and now >= start)}
        priced = [(*best, offer) for offer in offers if (best := self._price(offer)) is not None]
        if priced:
            price, size, offer = min(priced, key=lambda one: (_cost(one[0], bets.fees[one[2].market.ticker]), -one[1]))
            market = offer.market
            bids = self._books.ladders[market.ticker][_SIDES[offer.side]].items()
            deep = levels_of((float(1 / (ONE - bid)), float((ONE - bid) * count)) for bid, count in bids)
            fee, step = own_fee(BOOK, bets.fees[market.ticker]), float(price * market.fewest)
            return bets.shared | live | offer.outcome | deep | fee | {
                MIN_BET: step, BET_STEP: step,
                "id": key, "odds_decimal": float(1 / price), "max_bet": float(price * size),
                "market_id": market.ticker, "selection_id": f"{market.ticker}/{offer.side}", "is_active": True,
                "volume": number(market.volume_fp), "volume_24h": number(market.volume_24h_fp),
                "open_interest": number(market.open_interest_fp),
            }  # fmt: skip
        if before is None or all(self._counts(offer.market.ticker) for offer in offers):
            return None
        return before | live | {"is_active": False}

    def _counts(self, ticker: str) -> bool:
        return self._status[ticker] == _OPEN and self._books.is_known(ticker)

    def _price(self, offer: Offer) -> tuple[Decimal, Decimal] | None:
        """Return what one side of a market costs, and how many contracts; None if it is not offered."""
        if not self._counts(offer.market.ticker):
            return None
        bids = self._books.ladders[offer.market.ticker][_SIDES[offer.side]]
        if not bids:
            return None
        best = max(bids)
        return ONE - best, bids[best]

    def _offers(
        self, market: Market, meant: SeriesMarket, game: Game, sides: Sequence[str], refused: Counter[str], *,
        three: bool,
    ) -> list[Offer]:  # fmt: skip
        """Return the outcomes of a market; none while a name is needed."""
        side = next((name for name, one in zip(("home", "away"), sides, strict=True) if one in market.targets), "")
        player = ""
        if meant.form in (PROP, SCORER, LISTED):
            players = [one for one in market.targets if one not in sides]
            if self._games.need(players):
                return []
            title, colon, _ = (market.yes_sub_title or market.title or "").partition(":")
            named = [name for one in players if (name := self._games.names.get(one))]
            player = named[0] if named else title.strip() if colon else ""
        fixed = catalog.market_type(meant.market.name, game.sport).fixed_line
        names = {"home": game.home, "away": game.away}
        opposite = against(meant.with_draw.name, "draw" if is_draw(market) else side, game, "point_spread")
        offers = offers_of(market, meant.form, side, names, player, fixed, refused, three=three, opposite=opposite)
        if three and len(offers) == 1 and self._price(Offer(market, "no", {}, "")) is not None:
            refused["the No of a three-way outcome"] += 1
        return offers


def _cost(price: Decimal, fee: float) -> float:
    """What a contract costs with its fee."""
    p = float(price)
    return p + fee * p * (1.0 - p)
