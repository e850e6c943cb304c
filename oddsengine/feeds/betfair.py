"""Betfair's exchange stream: market change messages from the socket or from historical files, line by line.

Messages are changes, so `BetfairMarkets` holds every market: `img` replaces a market, a size of 0 removes a price, and
a definition replaces the previous one. The best back price becomes the quote, and its size the maximum bet. In a market
of two runners, to lay one is to back the other: the better of both is the quote, a lay with its liability as the
maximum bet. Lay prices of other markets are no quotes. Prices of a suspended market are suspended; a runner without an
offer is removed.

The live stream has no names of teams or runners: they come from the market catalogue (`add_catalogue`). Markets without
names are listed in `unnamed`. Prices count as seen while the stream is alive, see `tracking`.
"""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import Name, Text, Time, decode, moment
from oddsengine.feeds.depth import Ladder, crossed, price_of
from oddsengine.feeds.names import THREE_WAY, MarketName, against, league, market, side_of, teams_of
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.feeds.tracking import StreamRows

BOOK = "betfair_exchange"
_SOURCE = "the Betfair stream"
_DRAW = 58805  # selection id of every draw
_BACK = ("batb", "bdatb", "atb")  # best by level, the same with virtual prices, all by price
_LAY = ("batl", "bdatl", "atl")
_PAIR = 2
# Event types: https://docs.developer.betfair.com, listEventTypes.
_SPORTS = {
    "1": "soccer", "2": "tennis", "3": "golf", "4": "cricket", "5": "rugby_union", "6": "boxing",
    "1477": "rugby_league", "3503": "darts", "6422": "snooker", "6423": "football",
    "7511": "baseball", "7522": "basketball", "7524": "hockey", "61420": "aussie_rules", "468328": "handball",
    "998917": "volleyball", "26420387": "mma", "27454571": "esports",
}  # fmt: skip
_TOTALS = re.compile(r"(OVER_UNDER|FIRST_HALF_GOALS)_(\d{1,4})(_CORNR)?")
_ASIAN = {
    "ASIAN_HANDICAP": "asian_handicap", "HANDICAP": "point_spread", "ALT_TOTAL_GOALS": "asian_total_goals",
    "COMBINED_TOTAL": "total_points", "TOTAL_POINTS": "total_points",
}  # fmt: skip
_HANDICAPS = ("ASIAN_HANDICAP", "HANDICAP")
_PLAIN = {"HALF_TIME": "1st_half_moneyline_3way"}
_NOTHING = Payload()

RunnerKey = tuple[int, float]
Levels = dict[float, tuple[float, float]]  # level or price -> price, size


class _RunnerDefinition(msgspec.Struct):
    id: int
    hc: float | None = None
    name: Text | None = None
    status: str = "ACTIVE"


class _Definition(msgspec.Struct):
    status: str = "OPEN"
    inPlay: bool = False  # noqa: N815
    bettingType: str = "ODDS"  # noqa: N815
    marketType: str = ""  # noqa: N815
    marketBaseRate: float | None = None  # noqa: N815
    marketTime: Time = None  # noqa: N815
    eventId: str = ""  # noqa: N815
    eventTypeId: str = ""  # noqa: N815
    eventName: Text | None = None  # noqa: N815
    runners: list[_RunnerDefinition] = []


class _RunnerChange(msgspec.Struct):
    id: int
    hc: float | None = None
    tv: float | None = None
    batb: list[tuple[float, float, float]] | None = None
    bdatb: list[tuple[float, float, float]] | None = None
    atb: list[tuple[float, float]] | None = None
    batl: list[tuple[float, float, float]] | None = None
    bdatl: list[tuple[float, float, float]] | None = None
    atl: list[tuple[float, float]] | None = None


class _MarketChange(msgspec.Struct):
    id: Name
    img: bool | None = None
    marketDefinition: _Definition | None = None  # noqa: N815
    rc: list[_RunnerChange] | None = None


class _Message(msgspec.Struct):
    op: str
    pt: int | None = None
    clk: str | None = None
    initialClk: str | None = None  # noqa: N815
    ct: str | None = None
    segmentType: str | None = None  # noqa: N815
    status: int | None = None
    mc: list[_MarketChange] | None = None
    statusCode: str | None = None  # noqa: N815
    errorCode: str | None = None  # noqa: N815
    errorMessage: str | None = None  # noqa: N815


class _NamedItem(msgspec.Struct):
    id: str = ""
    name: str = ""


class _RunnerName(msgspec.Struct):
    selectionId: int  # noqa: N815
    runnerName: Text  # noqa: N815


class _Catalogue(msgspec.Struct):
    marketId: Name  # noqa: N815
    event: _NamedItem | None = None
    competition: _NamedItem | None = None
    runners: list[_RunnerName] = []


class _CatalogueResult(msgspec.Struct):
    result: list[_Catalogue]


_message = msgspec.json.Decoder(_Message)
_catalogues = msgspec.json.Decoder(list[_Catalogue])
_answer = msgspec.json.Decoder(_CatalogueResult)


class _MarketState(NamedTuple):
    """The current state of one market: definition, and the ladders and matched volume of its runners."""

    definition: _Definition | None
    ladders: dict[RunnerKey, dict[str, Levels]]
    matched: dict[RunnerKey, float]


class MarketMapping(NamedTuple):
    """The meaning of a market: its catalog name, and where its line comes from."""

    market: MarketName
    line: float | None  # line of the market
    by_runner: bool  # each runner has its own line, the handicap


@lru_cache(maxsize=4096)
def meaning(market_type: str, betting_type: str, sport: str, draw: bool = False) -> MarketMapping:  # noqa: FBT001, FBT002
    """Return the meaning of a Betfair market type.

    Examples
    --------
    >>> meaning("OVER_UNDER_25", "ODDS", "soccer")[:2][1], meaning("MATCH_ODDS", "ODDS", "tennis").market.name
    (2.5, 'moneyline')
    """
    total = _TOTALS.fullmatch(market_type)
    if betting_type.startswith("ASIAN_HANDICAP") and market_type in _ASIAN:
        return MarketMapping(market(_ASIAN[market_type], sport), None, by_runner=True)
    if betting_type != "ODDS":
        return MarketMapping(MarketName(market_type), None, by_runner=True)
    if total:
        name = "total_corners" if total[3] else "total_goals"
        half = "1st_half_" if total[1] == "FIRST_HALF_GOALS" else ""
        return MarketMapping(market(half + name, sport), int(total[2]) / 10.0, by_runner=False)
    if market_type == "MATCH_ODDS":
        return MarketMapping(market(THREE_WAY if draw else "moneyline", sport), None, by_runner=False)
    kind_of = market(_PLAIN.get(market_type, market_type), sport)
    return MarketMapping(kind_of, None, by_runner=False)


class BetfairMarkets:
    """The markets of one subscription.

    Examples
    --------
    >>> markets = BetfairMarkets()
    >>> markets.read(b'{"op":"mcm","clk":"AAA","pt":1770573600000,"ct":"HEARTBEAT"}').quotes, markets.clk
    ((), 'AAA')
    """

    def __init__(self) -> None:
        self._markets: dict[str, _MarketState] = {}
        self._handicaps: dict[str, set[str]] = {}  # event -> its markets of handicaps
        self._quoted: dict[str, dict[str, None]] = {}  # market -> ids of its quotes
        self._names: dict[str, dict[int, str]] = {}  # market -> runner -> name
        self._events: dict[str, tuple[str, str]] = {}  # market -> event name, competition
        self._held = StreamRows()
        self._segments: list[_MarketChange] | None = None
        self._segments_fresh = False
        self.clk = ""  # sent to resume the stream
        self.initial_clk = ""
        self.late = False  # Betfair reports that it is behind
        self.unnamed: dict[str, None] = {}  # markets without names, to be requested from the catalogue

    def read(self, line: bytes) -> Payload:
        """Parse one line.

        Raises `FeedError` if it is not a stream message, or reports a failed request. The state is unchanged, but a
        change is lost: reconnect with `initial_clk` and `clk`.
        """
        message = decode(_message, line.strip(), _SOURCE)
        if message.op == "status" and message.statusCode == "FAILURE":
            why = message.errorMessage or "no reason given"
            raise FeedError(f"Betfair rejected the request: {message.errorCode or 'unknown'}, {why[:200]}")
        if message.op == "connection":
            self._segments = None
        if message.op != "mcm":
            return _NOTHING
        fresh, changes = message.ct == "SUB_IMAGE", message.mc or []
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
        self.clk = message.clk or self.clk
        self.initial_clk = message.initialClk or self.initial_clk
        self.late = message.status == 503 if message.status is not None else False
        return payload

    def add_catalogue(self, data: bytes) -> Payload:
        """Parse a response of the market catalogue; returns the quotes that were waiting for its names.

        Raises `FeedError` if the response is not valid.
        """
        listed = data.lstrip()[:1] == b"["
        entries = decode(_catalogues, data, "the Betfair catalogue") if listed else (
            decode(_answer, data, "the Betfair catalogue").result
        )  # fmt: skip
        for entry in entries:
            self._names[entry.marketId] = {runner.selectionId: runner.runnerName for runner in entry.runners}
            competition = entry.competition.name if entry.competition else ""
            self._events[entry.marketId] = (entry.event.name if entry.event else "", competition)
        updated = {
            entry.marketId: self._markets[entry.marketId] for entry in entries if entry.marketId in self._markets
        }
        every: dict[str, set[RunnerKey] | None] = dict.fromkeys(updated)
        return self._emit(updated, every, None, set())

    def alive(self, now: datetime) -> Payload:
        """Report that the stream is alive; returns rows to renew, usually none."""
        rows = [] if self.late else self._held.due(now)
        return Payload(quotes=rows) if rows else _NOTHING

    # ---- messages ----

    def _apply(self, changes: Iterable[_MarketChange], when: datetime | None, *, fresh: bool) -> Payload:
        """Apply changes to a copy of the state, build the quotes, and commit only if both succeed."""
        staged: dict[str, _MarketState] = {}
        touched: dict[str, set[RunnerKey] | None] = {}  # None: all runners
        nothing = _MarketState(None, {}, {})
        for change in changes:
            market_id = change.id
            before = staged.get(market_id) or (nothing if fresh else self._markets.get(market_id, nothing))
            whole = bool(change.img) or change.marketDefinition is not None or market_id not in self._markets or fresh
            definition = change.marketDefinition or (None if change.img else before.definition)
            ladders, matched = ({}, {}) if change.img else (dict(before.ladders), dict(before.matched))
            keys: set[RunnerKey] = set()
            for runner in change.rc or ():
                key = (runner.id, runner.hc or 0.0)
                keys.add(key)
                ladders[key] = _changed(ladders.get(key, {}), runner)
                if definition is not None and any(getattr(runner, name) is not None for name in _LAY):
                    keys.add(_opponents(definition).get(key, key))
                if runner.tv is not None:
                    matched[key] = runner.tv
            staged[market_id] = _MarketState(definition, ladders, matched)
            old = touched.get(market_id, set())
            touched[market_id] = None if whole or old is None else old | keys
        left = {market_id for market_id in self._quoted if market_id not in staged} if fresh else set()
        payload = self._emit(staged, touched, when, left)
        if fresh:
            self._markets, self._handicaps = {}, {}
        for market_id, state in staged.items():
            self._note_handicaps(market_id, state.definition)
            if state.definition is not None and state.definition.status == "CLOSED":
                self._markets.pop(market_id, None)
                self._names.pop(market_id, None)
                self._events.pop(market_id, None)
            else:
                self._markets[market_id] = state
        return payload

    def _emit(
        self,
        markets: dict[str, _MarketState],
        touched: dict[str, set[RunnerKey] | None],
        when: datetime | None,
        left: set[str],
    ) -> Payload:
        """Return quotes of the touched runners, and the ids of quotes that are gone."""
        games: dict[str, Game] = {}
        quotes: list[dict[str, Any]] = []
        removed: list[str] = [given for market_id in sorted(left) for given in self._quoted[market_id]]
        unmapped: Counter[tuple[str, str]] = Counter()
        refused: Counter[str] = Counter()
        quoted: dict[str, dict[str, None]] = {}
        unnamed: dict[str, None] = {}
        for given, state in markets.items():
            before = self._quoted.get(given, {})
            if state.definition is None or state.definition.status == "CLOSED":
                if state.definition is None:
                    refused["a market without a definition"] += 1
                removed += list(before)
                quoted[given] = {}
                game = None if state.definition is None else self._game(given, state.definition)
                if game is not None and state.definition is not None and state.definition.marketType == "MATCH_ODDS":
                    games[game.id] = game._replace(status="ended")
                continue
            game = self._game(given, state.definition)
            if game is None:
                refused["a market whose teams are not known yet"] += 1
                unnamed[given] = None
                continue
            rows, waiting = self._rows(given, state, game, touched[given], unmapped)
            if waiting:
                refused["a runner whose name is not known yet"] += waiting
                unnamed[given] = None
            games.setdefault(game.id, game)
            now = dict(before) if touched[given] is not None else {}
            for row_id, row in rows.items():
                if row is None:
                    now.pop(row_id, None)
                    if row_id in before:
                        removed.append(row_id)
                else:
                    now[row_id] = None
                    quotes.append(row)
            if touched[given] is None:
                removed += [row_id for row_id in before if row_id not in now and row_id not in rows]
            quoted[given] = now
        self._commit(quotes, removed, quoted, left, unnamed, markets)
        if when is not None:
            quotes = [row | {"last_seen_at": when} for row in quotes]
        return Payload(list(games.values()), quotes, (), removed, unmapped, refused, when)

    def _commit(
        self, quotes: list[dict[str, Any]], removed: list[str], quoted: dict[str, dict[str, None]], left: set[str],
        unnamed: dict[str, None], markets: dict[str, _MarketState],
    ) -> None:  # fmt: skip
        """Commit the state behind emitted quotes."""
        self._held.drop(removed)
        self._held.put(quotes)
        for market_id in left:
            del self._quoted[market_id]
            self.unnamed.pop(market_id, None)
        for market_id, ids in quoted.items():
            if ids:
                self._quoted[market_id] = ids
            else:
                self._quoted.pop(market_id, None)
        for market_id in markets:
            if market_id in unnamed:
                self.unnamed[market_id] = None
            else:
                self.unnamed.pop(market_id, None)

    def _game(self, market_id: str, definition: _Definition) -> Game | None:
        """Return the game of a market, if its teams are known."""
        event_name, competition = self._events.get(market_id, ("", ""))
        name = event_name or definition.eventName or ""
        if not definition.eventId:
            return None
        home, away = teams_of(name)
        if not home:
            return None
        sport = _SPORTS.get(definition.eventTypeId, "")
        status = "live" if definition.inPlay else "upcoming"
        where = league(competition, sport)
        return Game(definition.eventId, sport, where, home, away, moment(definition.marketTime), status)

    def _note_handicaps(self, market_id: str, definition: _Definition | None) -> None:
        """Record whether an event has a market of handicaps, whose prices are for the bets that lays of sides are."""
        if definition is None or definition.marketType not in _HANDICAPS:
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
    ) -> tuple[dict[str, dict[str, Any] | None], int]:
        """Return rows of runners by id, None without a price, and the number of runners without a name."""
        definition = state.definition or _Definition()
        draw = any(runner.id == _DRAW for runner in definition.runners)
        meant = meaning(definition.marketType, definition.bettingType, game.sport, draw)
        shared = game.fields | {
            "sportsbook": BOOK, "market_type": meant.market.name, "is_live": definition.inPlay, "market_id": market_id,
            "external_event_id": game.id,
        }  # fmt: skip
        if (rate := _commission(definition)) != catalog.book(BOOK).commission:
            shared["commission"] = rate
        names = self._names.get(market_id, {})
        other = _opponents(definition)
        out: dict[str, dict[str, Any] | None] = {}
        waiting = 0
        for runner in definition.runners:
            key = (runner.id, runner.hc or 0.0)
            if keys is not None and key not in keys:
                continue
            row_id = f"{market_id}/{runner.id}/{key[1]:g}"
            name = names.get(runner.id) or runner.name or ("Draw" if runner.id == _DRAW else "")
            if meant.market.name == THREE_WAY and game.sport == "soccer":
                has_handicaps = game.id in self._handicaps and runner.id != _DRAW
                laid = None if has_handicaps else _against(state, definition, runner, name, game)
                out[f"{row_id}/lay"] = None if laid is None else shared | laid | {"id": f"{row_id}/lay"}
            bets = _offer(state.ladders, key, other.get(key))
            if not bets or runner.status != "ACTIVE":
                out[row_id] = None
                continue
            if not name:
                waiting += 1
                continue
            if not meant.market.in_catalog:
                unmapped[BOOK, meant.market.name] += 1
            out[row_id] = shared | price_of(bets) | {
                "id": row_id, "selection": name, "selection_id": str(runner.id),
                "selection_type": side_of(name, game.home, game.away) or _word(name),
                "line": key[1] if meant.by_runner else meant.line,
                "volume": state.matched.get(key),
                "is_active": definition.status == "OPEN",
            }  # fmt: skip
        return out, waiting


def _word(name: str) -> str | None:
    """Return the outcome that the first word of a runner's name denotes."""
    words = catalog.selection_words()
    normal = catalog.normalise(name)
    return words.get(normal) or words.get(normal.partition(" ")[0])


def _changed(ladders: dict[str, Levels], runner: _RunnerChange) -> dict[str, Levels]:
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


def _opponents(definition: _Definition) -> dict[RunnerKey, RunnerKey]:
    """Return the other runner of each, in a market of two."""
    if len(definition.runners) != _PAIR or any(runner.status != "ACTIVE" for runner in definition.runners):
        return {}
    first, second = ((runner.id, runner.hc or 0.0) for runner in definition.runners)
    return {first: second, second: first}


def _against(
    state: _MarketState, definition: _Definition, runner: _RunnerDefinition, name: str, game: Game
) -> dict[str, Any] | None:
    """Fields of the bet against one of three: the other side with a handicap of half a goal, or No to a draw."""
    side = "draw" if runner.id == _DRAW else side_of(name, game.home, game.away)
    other = against(THREE_WAY, side, game, "asian_handicap")
    bets = crossed(_ladder(state.ladders.get((runner.id, runner.hc or 0.0), {}), _LAY))
    if other is None or runner.status != "ACTIVE" or not bets:
        return None
    return price_of(bets) | other | {"selection_id": str(runner.id), "is_active": definition.status == "OPEN"}


def _commission(definition: _Definition) -> float:
    """Return the commission of a market; without a valid one, that of the book."""
    rate = definition.marketBaseRate
    return catalog.book(BOOK).commission if rate is None or not 0.0 <= rate < 100.0 else rate / 100.0


def _offer(ladders: dict[RunnerKey, dict[str, Levels]], key: RunnerKey, other: RunnerKey | None) -> Ladder:
    """Return the prices of a runner and what they take: its own, or lays of the other runner if their best is better.

    They are not added: virtual prices have both already.
    """
    own = _ladder(ladders.get(key, {}), _BACK)
    laid = [] if other is None else crossed(_ladder(ladders.get(other, {}), _LAY))
    return max(own, laid, key=lambda bets: bets[0][0] if bets else 0.0)


def _ladder(ladders: dict[str, Levels], names: tuple[str, str, str]) -> Ladder:
    """Return odds and sizes of the first of some ladders that has any, highest odds first; level 0 is the best one."""
    name = next((name for name in names if ladders.get(name)), None)
    if name is None:
        return []
    ladder, sign = ladders[name], 1.0 if names is _BACK else -1.0
    best = inf if name == names[-1] else sign * ladder[min(ladder)][0]
    bets = (bet for bet in ladder.values() if 1.0 < bet[0] < inf and bet[1] < inf)
    return sorted((bet for bet in bets if sign * bet[0] <= best), reverse=True)
