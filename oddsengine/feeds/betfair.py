"""Betfair's exchange stream: market change messages from the socket or from historical files, line by line.

Messages are changes, so `BetfairMarkets` holds every market: `img` replaces a market, a size of 0 removes a price, and
a definition replaces the previous one. The best back price becomes the quote, and its size the maximum bet. In a market
of two runners, to lay one is to back the other: the better of both is the quote, a lay with its liability as the
maximum bet. Lay prices of other markets are no quotes. Prices of a suspended market are suspended; a runner without an
offer is removed.

The live stream has no names of teams or runners: they come from the market catalogue (`name`). Prices count as seen
while the stream is alive, see `tracking`.

With `last_trades`, for BASIC history, which has nothing else, the rows are prices of the last trades: of a book of
their own, which the catalog says makes no offers, and seen when they were traded.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from math import inf
from typing import Any, NamedTuple

from oddsengine import catalog
from oddsengine.feeds.betfair_format import (
    HANDICAPS,
    SPORTS,
    Catalogue,
    Definition,
    MarketChange,
    RunnerChange,
    RunnerDefinition,
    meaning,
    message_decoder,
)
from oddsengine.feeds.decoding import decode, moment
from oddsengine.feeds.feed_names import THREE_WAY, against, league, side_of, teams_of
from oddsengine.feeds.order_books import Ladder, crossed, price_of
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.feeds.tracking import StreamRows
from oddsengine.feeds.venue_contracts import values_of
from oddsengine.tables.levels import MIN_BET, MOST_DELAY

BOOK, LAST_TRADED = "betfair_exchange", "betfair_last_traded"
_SOURCE = "the Betfair stream"
DRAW = 58805  # selection id of every draw
_BACK = ("batb", "bdatb", "atb")  # best by level, the same with virtual prices, all by price
_LAY = ("batl", "bdatl", "atl")
_PAIR = 2
_STATUSES, _BETTING = values_of("betfair", "market_status"), values_of("betfair", "betting_type")
_RUNNER_STATUSES = values_of("betfair", "runner_status")
_NOTHING = Payload()

RunnerKey = tuple[int, float]
Levels = dict[float, tuple[float, float]]  # level or price -> price, size


class _MarketState(NamedTuple):
    """The current state of one market: definition, and the ladders, matched volume and last trades of its runners."""

    definition: Definition | None
    ladders: dict[RunnerKey, dict[str, Levels]]
    matched: dict[RunnerKey, float]
    traded: dict[RunnerKey, tuple[float, datetime | None]]

    def copied(self) -> "_MarketState":
        """A copy that can be changed."""
        return _MarketState(self.definition, dict(self.ladders), dict(self.matched), dict(self.traded))


class BetfairMarkets:
    """The markets of one subscription.

    `min_bet` is the account's smallest stake, of backers; 0 if it is not known. `last_trades`: rows are the prices of
    the last trades. `renewed` is as in `StreamRows`.

    Examples
    --------
    >>> markets = BetfairMarkets()
    >>> markets.read(b'{"op":"mcm","clk":"AAA","pt":1770573600000,"ct":"HEARTBEAT"}').quotes, markets.clk
    ((), 'AAA')
    """

    def __init__(self, min_bet: float = 0.0, *, last_trades: bool = False, renewed: float | None = None) -> None:
        self._min_bet, self._last_trades = min_bet, last_trades
        self._markets: dict[str, _MarketState] = {}
        self._handicaps: dict[str, set[str]] = {}  # event -> its markets of handicaps
        self._quoted: dict[str, dict[str, None]] = {}  # market -> ids of its quotes
        self._names: dict[str, dict[int, str]] = {}  # market -> runner -> name
        self._events: dict[str, tuple[str, str]] = {}  # market -> event name, competition
        self._held = StreamRows(renewed)
        self._segments: list[MarketChange] | None = None
        self._segments_fresh = False
        self._awaited = False  # whether the image of the last subscription is still to come
        self._subscription: int | None = None  # whose messages have the clock; None: all
        self.clk = ""  # sent to resume the stream
        self.initial_clk = ""
        self.late = False  # Betfair reports that it is behind
        self.closed: set[str] = set()  # markets that the last message closed
        self.offers = self.trades = 0  # changes of offers, and of the price of the last trade

    def read(self, line: bytes) -> Payload:
        """Parse one line.

        Raises `FeedError` if it is not a stream message, or reports a failed request. The state is unchanged, but a
        change is lost: reconnect with `initial_clk` and `clk`.
        """
        self.closed = set()
        message = decode(message_decoder, line.strip(), _SOURCE)
        if message.op == "status" and message.statusCode == "FAILURE":
            why = message.errorMessage or "no reason given"
            raise FeedError(f"Betfair rejected the request: {message.errorCode or 'unknown'}, {why[:200]}")
        if message.op == "connection":
            self._segments = None
        if message.op != "mcm":
            return _NOTHING
        fresh, changes = message.ct == "SUB_IMAGE", message.mc or []
        is_replaced = message.id is not None and self._subscription not in (None, message.id)
        if is_replaced and (message.segmentType or fresh):
            return _NOTHING  # the image of the subscription in its place is to come
        if message.segmentType in ("SEG", "SEG_END"):
            if self._segments is None:
                raise FeedError("received part of a segmented message without its start")
            fresh, changes = self._segments_fresh, [*self._segments, *changes]
        elif self._segments is not None:
            raise FeedError("a segmented message is incomplete")
        if message.segmentType in ("SEG_START", "SEG"):
            self._segments, self._segments_fresh = changes, fresh
            return _NOTHING
        self._segments = None
        when = moment(message.pt)
        payload = self._apply(changes, when, fresh=fresh) if changes or fresh else Payload(moment=when)
        if not is_replaced:
            self.clk = message.clk or self.clk
            self.initial_clk = message.initialClk or self.initial_clk
        self.late = message.status == 503 if message.status is not None else False
        return payload

    def subscribe(self, number: int, markets: Collection[str], *, anew: bool) -> None:
        """Expect the messages of another subscription, to these markets.

        Changes of the one before still count until its image is there. `anew`: it is another filter than before, for
        which the clocks are not valid.
        """
        self._subscription, self._segments = number, None
        if anew:
            self.clk = self.initial_clk = ""
        self._awaited = not (self.clk and self.initial_clk)
        self._names = {market: names for market, names in self._names.items() if market in markets}
        self._events = {market: event for market, event in self._events.items() if market in markets}

    def name(self, entries: Iterable[Catalogue]) -> Payload:
        """Learn names from the catalogue; returns the quotes that were waiting for them."""
        updated: dict[str, _MarketState] = {}
        for entry in entries:
            market = entry.marketId
            names = {runner.selectionId: runner.runnerName for runner in entry.runners}
            event, competition = ((part and part.name) or "" for part in (entry.event, entry.competition))
            if (self._names.get(market), self._events.get(market)) == (names, (event, competition)):
                continue
            self._names[market], self._events[market] = names, (event, competition)
            if market in self._markets:
                updated[market] = self._markets[market]
        return self._emit(updated, dict.fromkeys(updated), None, set()) if updated else _NOTHING

    def alive(self, now: datetime) -> Payload:
        """Report that the stream is alive; returns rows to renew, usually none.

        None are renewed while an image is to come: heartbeats do not say that prices of another subscription hold.
        """
        rows = [] if self.late or self._awaited else self._held.due(now)
        return Payload(quotes=rows) if rows else _NOTHING

    # ---- messages ----

    def _apply(self, changes: Iterable[MarketChange], when: datetime | None, *, fresh: bool) -> Payload:
        """Apply changes to a copy of the state, build the quotes, and commit only if both succeed."""
        staged: dict[str, _MarketState] = {}
        changed: dict[str, set[RunnerKey] | None] = {}  # None: all runners
        nothing = _MarketState(None, {}, {}, {})
        for change in changes:
            market_id = change.id
            before = staged.get(market_id) or (nothing if fresh else self._markets.get(market_id, nothing))
            whole = bool(change.img) or change.marketDefinition is not None or market_id not in self._markets or fresh
            definition = change.marketDefinition or (None if change.img else before.definition)
            _, ladders, matched, traded = nothing.copied() if change.img else before.copied()
            keys: set[RunnerKey] = set()
            for runner in change.rc or ():
                key = (runner.id, runner.hc or 0.0)
                keys.add(key)
                ladders[key] = _changed(ladders.get(key, {}), runner)
                if runner.ltp is not None:
                    self.trades += 1
                    traded[key] = runner.ltp, when
                self.offers += any(getattr(runner, name) for name in (*_BACK, *_LAY))
                if definition is not None and any(getattr(runner, name) is not None for name in _LAY):
                    keys.add(_opponents(definition).get(key, key))
                if runner.tv is not None:
                    matched[key] = runner.tv
            staged[market_id] = _MarketState(definition, ladders, matched, traded)
            old = changed.get(market_id, set())
            changed[market_id] = None if whole or old is None else old | keys
        left = {market_id for market_id in self._quoted if market_id not in staged} if fresh else set()
        payload = self._emit(staged, changed, when, left)
        if fresh:
            self._markets, self._handicaps, self._awaited = {}, {}, False
        for market_id, state in staged.items():
            self._note_handicaps(market_id, state.definition)
            if state.definition is not None and state.definition.status == "CLOSED":
                self.closed.add(market_id)
                self._markets.pop(market_id, None)
                self._names.pop(market_id, None)
                self._events.pop(market_id, None)
            else:
                self._markets[market_id] = state
        return payload

    def _emit(
        self,
        markets: dict[str, _MarketState],
        changed: dict[str, set[RunnerKey] | None],
        when: datetime | None,
        left: set[str],
    ) -> Payload:
        """Return quotes of the changed runners, and the ids of quotes that are gone."""
        games: dict[str, Game] = {}
        quotes: list[dict[str, Any]] = []
        removed: list[str] = [given for market_id in sorted(left) for given in self._quoted[market_id]]
        unmapped: Counter[tuple[str, str]] = Counter()
        refused: Counter[str] = Counter()
        quoted: dict[str, dict[str, None]] = {}
        for given, state in markets.items():
            before = self._quoted.get(given, {})
            why = _why_refused(state.definition)
            if state.definition is None or why or state.definition.status == "CLOSED":
                if why:
                    refused[why] += 1
                removed += list(before)
                quoted[given] = {}
                game = None if state.definition is None or why else self._game(given, state.definition)
                if game is not None and state.definition is not None and state.definition.marketType == "MATCH_ODDS":
                    games[game.id] = game._replace(status="ended")
                continue
            game = self._game(given, state.definition)
            if game is None:
                refused["a market whose teams are not known yet"] += 1
                continue
            rows = self._rows(given, state, game, changed[given], unmapped, refused)
            games.setdefault(game.id, game)
            now = dict(before) if changed[given] is not None else {}
            for row_id, row in rows.items():
                if row is None:
                    now.pop(row_id, None)
                    if row_id in before:
                        removed.append(row_id)
                else:
                    now[row_id] = None
                    quotes.append(row)
            if changed[given] is None:
                removed += [row_id for row_id in before if row_id not in now and row_id not in rows]
            quoted[given] = now
        self._commit(quotes, removed, quoted, left)
        if when is not None:
            quotes = [{"last_seen_at": when} | row for row in quotes]
        return Payload(list(games.values()), quotes, (), removed, unmapped, refused, when)

    def _commit(
        self, quotes: list[dict[str, Any]], removed: list[str], quoted: dict[str, dict[str, None]], left: set[str]
    ) -> None:  # fmt: skip
        """Commit the state behind emitted quotes."""
        self._held.drop(removed)
        self._held.put(quotes)
        for market_id in left:
            del self._quoted[market_id]
        for market_id, ids in quoted.items():
            if ids:
                self._quoted[market_id] = ids
            else:
                self._quoted.pop(market_id, None)

    def _game(self, market_id: str, definition: Definition) -> Game | None:
        """Return the game of a market, if its teams are known."""
        event_name, competition = self._events.get(market_id, ("", ""))
        name = event_name or definition.eventName or ""
        if not definition.eventId:
            return None
        home, away = teams_of(name)
        if not home:
            return None
        sport = SPORTS.get(definition.eventTypeId, "")
        status = "live" if definition.inPlay else "upcoming"
        where = league(competition, sport)
        return Game(definition.eventId, sport, where, home, away, moment(definition.marketTime), status)

    def _note_handicaps(self, market_id: str, definition: Definition | None) -> None:
        """Record whether an event has a market of handicaps, whose prices are for the bets that lays of sides are."""
        if definition is None or definition.marketType not in HANDICAPS:
            return
        markets = self._handicaps.setdefault(definition.eventId, set())
        if definition.status != "CLOSED":
            markets.add(market_id)
            return
        markets.discard(market_id)
        if not markets:
            del self._handicaps[definition.eventId]

    def _rows(
        self,
        market_id: str,
        state: _MarketState,
        game: Game,
        keys: set[RunnerKey] | None,
        unmapped: Counter[tuple[str, str]],
        refused: Counter[str],
    ) -> dict[str, dict[str, Any] | None]:
        """Return rows of runners by id, None without a price; a runner without a name has none."""
        definition = state.definition or Definition()
        draw = any(runner.id == DRAW for runner in definition.runners)
        meant = meaning(definition.marketType, definition.bettingType, game.sport, draw)
        shared = game.fields | {
            "sportsbook": BOOK, "market_type": meant.market.name, "is_live": definition.inPlay, "market_id": market_id,
            "external_event_id": game.id,
        }  # fmt: skip
        if (rate := _commission(definition)) != catalog.book(BOOK).commission:
            shared["commission"] = rate
        if (delay := definition.betDelay) is not None and 0 <= delay <= MOST_DELAY and (delay or definition.inPlay):
            shared["bet_delay"] = float(delay)
        key_lines = _key_lines(definition)
        names = self._names.get(market_id, {})
        other = _opponents(definition)
        out: dict[str, dict[str, Any] | None] = {}
        for runner in definition.runners:
            key = (runner.id, runner.hc or 0.0)
            if keys is not None and key not in keys:
                continue
            if runner.status not in _RUNNER_STATUSES:
                refused["a runner whose status is not known"] += 1
            row_id = f"{market_id}/{runner.id}/{key[1]:g}"
            name = names.get(runner.id) or runner.name or ("Draw" if runner.id == DRAW else "")
            if meant.market.name == THREE_WAY and game.sport == "soccer":
                has_handicaps = game.id in self._handicaps and runner.id != DRAW
                laid = None if has_handicaps else _against(state, definition, runner, name, game)
                least = {} if laid is None else self._least(laid["odds_decimal"], laid=True)
                out[f"{row_id}/lay"] = None if laid is None else shared | laid | least | {"id": f"{row_id}/lay"}
            price = self._price(state, key, other.get(key))
            if price is None or runner.status != "ACTIVE":
                out[row_id] = None
                continue
            if not name:
                refused["a runner whose name is not known yet"] += 1
                continue
            if not meant.market.in_catalog:
                unmapped[BOOK, meant.market.name] += 1
            main = {"is_main_line": key in key_lines} if key_lines else {}
            out[row_id] = shared | main | price | {
                "id": row_id, "selection": name, "selection_id": str(runner.id),
                "selection_type": side_of(name, game.home, game.away) or _word(name),
                "line": key[1] if meant.by_runner else meant.line,
                "volume": state.matched.get(key),
                "is_active": definition.status == "OPEN",
            }  # fmt: skip
        return out

    def _price(self, state: _MarketState, key: RunnerKey, other: RunnerKey | None) -> dict[str, Any] | None:
        """Fields of the price of a runner: its best offer, or its last trade, which has no size and pays nothing."""
        if self._last_trades:
            odds, when = state.traded.get(key, (0.0, None))
            if not 1.0 < odds < inf:
                return None
            return {"sportsbook": LAST_TRADED, "odds_decimal": odds, "last_seen_at": when, "commission": None}
        bets, is_laid = _offer(state.ladders, key, other)
        return price_of(bets) | self._least(bets[0][0], laid=is_laid) if bets else None

    def _least(self, odds: float, *, laid: bool) -> dict[str, float]:
        """The smallest stake at a price; of a lay it is the liability for the smallest stake of a backer."""
        return {MIN_BET: self._min_bet / (odds - 1.0) if laid else self._min_bet} if self._min_bet else {}


def _why_refused(definition: Definition | None) -> str:
    """Return why a market cannot be read; empty if it can."""
    if definition is None:
        return "a market without a definition"
    if definition.status not in _STATUSES:
        return "a market whose status is not known"
    return "" if definition.bettingType in _BETTING else "a market whose type of betting is not known"


def _key_lines(definition: Definition) -> set[RunnerKey]:
    """The runners of a market's main line, with their handicaps there; none if it has no handicaps."""
    lines = definition.keyLineDefinition
    return {(line.id, line.hc or 0.0) for line in lines.kl} if lines else set()


def _word(name: str) -> str | None:
    """Return the outcome that the first word of a runner's name denotes."""
    words = catalog.selection_words()
    normal = catalog.normalise(name)
    return words.get(normal) or words.get(normal.partition(" ")[0])


def _changed(ladders: dict[str, Levels], runner: RunnerChange) -> dict[str, Levels]:
    """Return a runner's ladders after a change; the old ones are not modified."""
    out = dict(ladders)
    for name in (*_BACK, *_LAY):
        change = getattr(runner, name)
        if change is None:
            continue
        ladder = dict(out.get(name, {}))
        for entry in change:
            place, price, size = entry[0], entry[-2], entry[-1]
            if size > 0.0:
                ladder[place] = (price, size)
            else:
                ladder.pop(place, None)
        out[name] = ladder
    return out


def _opponents(definition: Definition) -> dict[RunnerKey, RunnerKey]:
    """Return the other runner of each, in a market of two."""
    if len(definition.runners) != _PAIR or any(runner.status != "ACTIVE" for runner in definition.runners):
        return {}
    first, second = ((runner.id, runner.hc or 0.0) for runner in definition.runners)
    return {first: second, second: first}


def _against(
    state: _MarketState, definition: Definition, runner: RunnerDefinition, name: str, game: Game
) -> dict[str, Any] | None:
    """Fields of the bet against one of three: the other side with a handicap of half a goal, or No to a draw."""
    side = "draw" if runner.id == DRAW else side_of(name, game.home, game.away)
    other = against(THREE_WAY, side, game, "asian_handicap")
    bets = crossed(_ladder(state.ladders.get((runner.id, runner.hc or 0.0), {}), _LAY))
    if other is None or runner.status != "ACTIVE" or not bets:
        return None
    return price_of(bets) | other | {"selection_id": str(runner.id), "is_active": definition.status == "OPEN"}


def _commission(definition: Definition) -> float:
    """Return the commission of a market; without a valid one, that of the book."""
    rate = definition.marketBaseRate
    return catalog.book(BOOK).commission if rate is None or not 0.0 <= rate < 100.0 else rate / 100.0


def _offer(ladders: dict[RunnerKey, dict[str, Levels]], key: RunnerKey, other: RunnerKey | None) -> tuple[Ladder, bool]:
    """Return the prices of a runner and what they take: its own, or lays of the other runner if their best is better.

    And whether they are lays. They are not added: virtual prices have both already.
    """
    own = _ladder(ladders.get(key, {}), _BACK)
    laid = [] if other is None else crossed(_ladder(ladders.get(other, {}), _LAY))
    best = max(own, laid, key=lambda bets: bets[0][0] if bets else 0.0)
    return best, best is laid


def _ladder(ladders: dict[str, Levels], names: tuple[str, str, str]) -> Ladder:
    """Return odds and sizes of the first of some ladders that has any, highest odds first; level 0 is the best one."""
    name = next((name for name in names if ladders.get(name)), None)
    if name is None:
        return []
    ladder, sign = ladders[name], 1.0 if names is _BACK else -1.0
    best = inf if name == names[-1] else sign * ladder[min(ladder)][0]
    bets = (bet for bet in ladder.values() if 1.0 < bet[0] < inf and bet[1] < inf)
    return sorted((bet for bet in bets if sign * bet[0] <= best), reverse=True)
