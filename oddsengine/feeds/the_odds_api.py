"""The Odds API, version 4: odds of a sport or an event, historical odds, and scores.

It suspends a price by not listing it. What a missing price means depends on the request (`RequestScope`), and
`TheOddsApi` keeps what was listed before. Outcomes are identified by name; their order is arbitrary. A price counts as
seen when its market was last updated, and as live if that is at or after the start. A price of a book that takes picks
only in combination may be scaled: its row has the `multiplier`. Other books have no such prices.

A list of scores has upcoming and live games, and past ones on request. A live game missing from two consecutive lists
is over.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import inf
from typing import Any, NamedTuple

import msgspec

from oddsengine import catalog
from oddsengine.catalog.futures_catalog import split
from oddsengine.feeds.decoding import (
    Level,
    Name,
    Text,
    Time,
    decode_strictly,
    moment,
    number,
    past,
    plain,
    valid_items,
)
from oddsengine.feeds.feed_names import (
    THREE_WAY,
    MarketName,
    against,
    aggregated_book,
    market,
    side_of,
    sport_and_league,
)
from oddsengine.feeds.merged_scores import ARRIVAL, ScoreReading
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.feeds.the_odds_api_names import OUTCOMES
from oddsengine.feeds.tracking import ListedIds, Pair
from oddsengine.maths.depth import lay_to_back
from oddsengine.maths.odds import american_to_decimal, decimal_to_american

_SOURCE = "The Odds API"
_MISSED = 2  # lists without a game before it is over
_BACK, _LAY, _PAIR = "h2h", "h2h_lay", 2
_LAID = "_lay"  # at the end of the key of a market's lay prices
_OPPOSITE = {"home": "away", "away": "home", "over": "under", "under": "over", "yes": "no", "no": "yes"}
_OUTRIGHTS = ("outrights", "outrights_lay")  # of events that are not games of two


class _Outcome(msgspec.Struct, gc=False):
    name: Name
    price: float
    point: float | None = None
    description: Text | None = None
    link: Any = None
    sid: Any = None
    bet_limit: Any = None
    multiplier: Any = None


class _Market(msgspec.Struct, gc=False):
    key: Name
    outcomes: list[_Outcome]
    last_update: Time = None
    link: Any = None
    sid: Any = None


class _Bookmaker(msgspec.Struct, gc=False):
    key: Name
    title: Text | None = None
    markets: list[_Market] = []
    last_update: Time = None
    link: Any = None
    sid: Any = None


class _Event(msgspec.Struct, gc=False):
    id: Name
    sport_key: Name
    commence_time: Time = None
    home_team: Text | None = None
    away_team: Text | None = None
    bookmakers: list[_Bookmaker] = []


class _PastOdds(msgspec.Struct):
    timestamp: Time
    data: list[_Event] | _Event


class _TeamScore(msgspec.Struct):
    name: Name
    score: str | int | None = None


class _GameScore(msgspec.Struct):
    id: Name
    sport_key: Name
    commence_time: Time = None
    completed: bool = False
    home_team: Text | None = None
    away_team: Text | None = None
    scores: list[_TeamScore] | None = None


_LEVEL = Level(
    _Event, "an event", "bookmakers",
    Level(_Bookmaker, "a bookmaker", "markets", Level(_Market, "a market", "outcomes", Level(_Outcome, "an outcome"))),
)  # fmt: skip
_list = msgspec.json.Decoder(list[_Event])
_one = msgspec.json.Decoder(_Event)
_past = msgspec.json.Decoder(_PastOdds)
_SCORED = Level(_GameScore, "a game", "scores", Level(_TeamScore, "a score"))
_scores = msgspec.json.Decoder(list[_GameScore])


class RequestScope(NamedTuple):
    """The scope of a request: prices within it that are not in the response are removed."""

    markets: frozenset[str]  # market keys
    sport: str = ""  # a sport key, if all events of the sport were requested
    events: frozenset[str] = frozenset()  # event ids, if requested
    books: frozenset[str] | None = None  # bookmaker keys, if requested; None: the usual regions

    @classmethod
    def of(cls, markets: Iterable[str], **rest: Any) -> "RequestScope":
        """Build from any iterables."""
        sets = {name: frozenset(rest[name]) for name in ("events", "books") if rest.get(name) is not None}
        return cls(frozenset(markets), rest.get("sport", ""), **sets)


class TheOddsApi:
    """Parses responses to one API key.

    Without `american`, the odds format is detected from each payload; decimal prices that are all 100 or more would be
    taken for American ones. `markets` are all market keys that are ever requested: a request for all of them returns
    all prices of a book for an event, and sets `complete`.
    """

    def __init__(self, *, american: bool | None = None, markets: Iterable[str] | None = None) -> None:
        self._american = american
        self._every = None if markets is None else frozenset(markets)
        self._listed = ListedIds()
        self._sports: dict[str, str] = {}  # event with listed prices -> its sport key

    def read(self, data: bytes, scope: RequestScope, now: datetime | None = None) -> Payload:
        """Parse a response: a list of events, one event, or either in the historical envelope.

        Times after `now` count as now. Raises `FeedError` if the response is invalid, has another odds format, or mixes
        formats; the state is unchanged.
        """
        refused: Counter[str] = Counter()
        return self._read(*_events(data, refused), scope, now, refused)

    def read_recorded(self, data: bytes) -> Payload:
        """Parse a response whose request is not known, such as one from a file.

        What it lists says what was requested: its events, books and markets. `Payload.moment` is the time of the
        snapshot, or without one that of its newest price. Raises `FeedError` as `read` does.
        """
        refused: Counter[str] = Counter()
        events, partly, made = _events(data, refused)
        makers = [maker for event in events for maker in event.bookmakers]
        scope = RequestScope(
            frozenset(offer.key for maker in makers for offer in maker.markets),
            events=frozenset(event.id for event in events),
            books=frozenset(maker.key for maker in makers),
        )
        payload = self._read(events, partly, made, scope, made, refused)
        rows = (*payload.quotes, *payload.futures)
        newest = max((seen for row in rows if (seen := row["last_seen_at"]) is not None), default=None)
        return payload._replace(moment=made or newest)

    def forget(self, events: Iterable[str]) -> None:
        """Drop what was listed of events that are over."""
        for event in events:
            self._listed.replace(event, {}, None, None)
            self._sports.pop(event, None)

    def _read(
        self, events: list[_Event], partly: set[str], made: datetime | None, scope: RequestScope, now: datetime | None,
        refused: Counter[str],
    ) -> Payload:  # fmt: skip
        reading = _ResponseReader(made, now, refused, american=_is_american(events, american=self._american))
        for listed_event in events:
            reading.event(listed_event)
        covered = set(reading.listed) | scope.events
        if scope.sport:
            covered |= {event for event, sport in self._sports.items() if sport == scope.sport}
        covered -= partly
        removed: list[str] = []
        for event in sorted(covered):
            listed = reading.listed.get(event, {})
            removed += self._listed.removed(event, listed, scope.markets, scope.books)
        complete: list[tuple[str, str | None]] = []
        if self._every is not None and scope.markets >= self._every:
            complete = [
                (aggregated_book(key), event)
                for event in reading.listed
                if event in covered
                for key in reading.books[event]
            ]
        for event in covered:
            self._listed.replace(event, reading.listed.get(event, {}), scope.markets, scope.books)
        for event in partly:  # no removals are reported for these
            self._listed.add(event, reading.listed[event])
        self._sports |= reading.sports
        self._sports = {event: sport for event, sport in self._sports.items() if event in self._listed}
        return Payload(
            reading.games, reading.quotes, complete, removed, reading.unmapped, refused, made, futures=reading.futures
        )


class ScoresParser:
    """Parses lists of scores, one sport at a time.

    Examples
    --------
    >>> scores = ScoresParser()
    >>> listed = b'''[{"id": "g", "sport_key": "basketball_nba", "home_team": "A", "away_team": "B",
    ...     "scores": [{"name": "B", "score": "7"}, {"name": "A", "score": "9"}]}]'''
    >>> [reading.score for reading in scores.read(listed, "basketball_nba").scores]
    [(9, 7)]
    >>> [scores.read(b"[]", "basketball_nba").scores[:1] == () for _ in range(2)]
    [True, False]
    """

    def __init__(self) -> None:
        self._on: dict[
            str, dict[str, tuple[ScoreReading, int]]
        ] = {}  # sport key -> event -> last reading, lists without it

    def read(self, data: bytes, sport: str) -> Payload:
        """Parse the list of one sport; readings count as seen on arrival.

        Raises `FeedError` if the list is invalid; the state is unchanged.
        """
        refused: Counter[str] = Counter()
        games: dict[str, Game] = {}
        readings: dict[str, ScoreReading] = {}
        for game in _scored(data, refused):
            reading = _standing(game)
            if reading is not None:
                readings[game.id] = reading
                within, league = sport_and_league(game.sport_key)
                names = game.home_team or "", game.away_team or ""
                status = "ended" if game.completed else ""
                games[game.id] = Game(game.id, within, league, *names, moment(game.commence_time), status)
        before = self._on.get(sport, {})
        missing = {event: (reading, n + 1) for event, (reading, n) in before.items() if event not in readings}
        ends = {event: reading._replace(over=True) for event, (reading, n) in missing.items() if n >= _MISSED}
        if refused:  # a missing game may be among the invalid items
            missing, ends = {event: before[event] for event in missing}, {}
        on = {event: (reading, 0) for event, reading in readings.items() if not reading.over}
        self._on[sport] = on | {event: last for event, last in missing.items() if event not in ends}
        return Payload(list(games.values()), refused=refused, scores=(*readings.values(), *ends.values()))


def _scored(data: bytes, refused: Counter[str]) -> list[_GameScore]:
    """Decode the games of a list of scores."""
    scored = decode_strictly(_scores, data, _SOURCE)
    if scored is None:
        fault = f"not a payload of {_SOURCE}: it has no list of games"
        scored, _ = valid_items(_document(data), _SCORED, refused, _SOURCE, fault)
    return scored


def _document(data: bytes) -> Any:
    """Decode a response to plain lists and mappings; raises `FeedError` if it is an error."""
    document = plain(data, _SOURCE)
    if isinstance(document, dict) and ("error_code" in document or "message" in document):
        raise FeedError(f"{_SOURCE} returned an error: {str(document.get('message', document))[:200]}")
    return document


def _standing(game: _GameScore) -> ScoreReading | None:
    """Return the game state; None if a score is missing or not an integer."""
    scores = {one.name: _whole(one.score) for one in game.scores or ()}
    home, away = scores.get(game.home_team or ""), scores.get(game.away_team or "")
    if home is None or away is None or game.home_team == game.away_team:
        return None
    sport = sport_and_league(game.sport_key)[0]
    return ScoreReading(game.id, "", ARRIVAL, home, away, over=game.completed, sport=sport)


def _whole(score: str | int | None) -> int | None:
    text = str(score).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else None


def _events(data: bytes, refused: Counter[str]) -> tuple[list[_Event], set[str], datetime | None]:
    """Return the events of a response, the ids of those that lost a part, and the time of a historical response."""
    if data.lstrip()[:1] == b"[":
        if (events := decode_strictly(_list, data, _SOURCE)) is not None:
            return events, set(), None
    elif b'"timestamp"' in data[:300]:
        if (past := decode_strictly(_past, data, _SOURCE)) is not None:
            return past.data if isinstance(past.data, list) else [past.data], set(), moment(past.timestamp)
    elif (event := decode_strictly(_one, data, _SOURCE)) is not None:
        return [event], set(), None
    document, made = _document(data), None
    if isinstance(document, dict) and "data" in document:
        document, made = document["data"], _stamp(document.get("timestamp"))
    items = [document] if isinstance(document, dict) else document
    valid, parts = valid_items(items, _LEVEL, refused, _SOURCE, f"not a payload of {_SOURCE}: it has no list of events")
    return valid, {valid[at].id for at in parts}, made


def _is_american(events: Iterable[_Event], *, american: bool | None) -> bool:
    """Whether the prices of a payload are American: none of these lies between -100 and 100."""
    prices = [
        outcome.price
        for event in events for maker in event.bookmakers for offer in maker.markets for outcome in offer.outcomes
    ]  # fmt: skip
    if american:
        if prices and all(1.0 < price < 100.0 for price in prices):
            raise FeedError(f"{_SOURCE} returned decimal odds ({prices[0]:g}); expected American odds")
        return True
    negative = next((price for price in prices if -inf < price <= -100.0), None)
    if american is False:
        if negative is not None:
            raise FeedError(f"{_SOURCE} returned American odds ({negative:g}); expected decimal odds")
        return False
    decimal = next((price for price in prices if 1.0 < price < 100.0), None)
    if negative is not None and decimal is not None:
        raise FeedError(f"the payload of {_SOURCE} has both American ({negative:g}) and decimal ({decimal:g}) odds")
    return decimal is None and any(100.0 <= abs(price) < inf for price in prices)


def _stamp(value: Any) -> datetime | None:
    try:
        return moment(msgspec.convert(value, Time))
    except msgspec.ValidationError:
        return None


class _ResponseReader:
    """Quotes of one response; state is committed only after all of it was parsed."""

    def __init__(
        self, made: datetime | None, now: datetime | None, refused: Counter[str], *, american: bool
    ) -> None:  # fmt: skip
        self.games: list[Game] = []
        self.quotes: list[dict[str, Any]] = []
        self.futures: list[dict[str, Any]] = []
        self.listed: dict[str, dict[str, Pair]] = {}
        self.books: dict[str, list[str]] = {}
        self.sports: dict[str, str] = {}
        self.unmapped: Counter[tuple[str, str]] = Counter()
        self._refused = refused
        self._made, self._now = made, now
        self._field = "odds_american" if american else "odds_decimal"
        self._american = american

    def event(self, event: _Event) -> None:
        sport, league = sport_and_league(event.sport_key)
        home, away = event.home_team or "", event.away_team or ""
        start = moment(event.commence_time)
        kinds = [offer.key for maker in event.bookmakers for offer in maker.markets]
        if home or away or not kinds or not set(kinds) <= set(_OUTRIGHTS):
            self.games.append(Game(event.id, sport, league, home, away, start))
        self.sports[event.id] = event.sport_key
        chosen = _chosen(event.bookmakers)
        if len(chosen) < len(event.bookmakers):
            self._refused["another region of a book"] += len(event.bookmakers) - len(chosen)
        shared: dict[str, Any] = {
            "event_id": event.id, "sport": sport, "league": league, "home_team": home or None,
            "away_team": away or None, "event_start_time": start,
        }  # fmt: skip
        listed = self.listed.setdefault(event.id, {})
        self.books[event.id] = list(chosen)
        sides = dict(OUTCOMES) | ({home: "home", away: "away"} if home and away and home != away else {})
        for maker in chosen.values():
            of_book = shared | {"sportsbook": aggregated_book(maker.key), "sportsbook_name": maker.title}
            if isinstance(maker.sid, str):
                of_book["external_event_id"] = maker.sid
            updated = moment(maker.last_update) or self._made
            for offer in self._with_lays(maker.markets, sides, sport):
                if offer.key in _OUTRIGHTS:
                    self._outright(event, maker, offer, listed)
                    continue
                row = of_book.copy()
                seen = row["last_seen_at"] = past(moment(offer.last_update) or updated, self._now)
                row["is_live"] = start is not None and seen is not None and seen >= start
                if isinstance(offer.sid, str):
                    row["market_id"] = offer.sid
                link = offer.link if isinstance(offer.link, str) else maker.link
                if isinstance(link, str):
                    row["deep_link"] = link
                kind = market(offer.key, sport)
                row["market_type"] = kind.name
                if kind.alternate:
                    row["is_alternate_line"] = True
                if not kind.in_catalog:
                    self.unmapped[maker.key, offer.key] += len(offer.outcomes)
                # Who asks for backs is given lays too.
                pair = maker.key, _BACK if offer.key == _LAY else offer.key
                self._outcomes(offer, row, sides, kind, listed, pair)
                if offer.key == _LAY:
                    self._laid(offer, row, sides, Game(event.id, sport, league, home, away), listed, pair)

    def _with_lays(self, offers: list[_Market], sides: Mapping[str, str], sport: str) -> list[_Market]:
        """Merge lay prices into the back prices of lines of two outcomes: to lay one is to back the other.

        A line without back and lay prices of both outcomes stays as it is, and so does the winner of a soccer match, of
        which the draw may be missing.
        """
        by_key, changed = {offer.key: offer for offer in offers}, {}
        for lay in (offer for offer in offers if offer.key.endswith(_LAID) and offer.key not in _OUTRIGHTS):
            back = by_key.get(lay.key.removesuffix(_LAID))
            if back is None or (sport == "soccer" and back.key.startswith(_BACK)):
                continue
            backs, lays = _lines(back, sides), _lines(lay, sides)
            both = backs.keys() & lays.keys()
            if not both:
                continue
            better = {
                id(outcome): self._better(outcome, lays[line][_OPPOSITE[side]])
                for line in both for side, outcome in backs[line].items()
            }  # fmt: skip
            merged = {id(outcome) for line in both for outcome in lays[line].values()}
            changed[id(back)] = msgspec.structs.replace(
                back,
                outcomes=[better.get(id(outcome), outcome) for outcome in back.outcomes],
                last_update=min(filter(None, map(moment, (back.last_update, lay.last_update))), default=None),
            )
            left = [outcome for outcome in lay.outcomes if id(outcome) not in merged]
            changed[id(lay)] = msgspec.structs.replace(lay, outcomes=left)
        after = [changed.get(id(offer), offer) for offer in offers]
        return [offer for offer in after if offer.outcomes]

    def _better(self, outcome: _Outcome, laid: _Outcome) -> _Outcome:
        """Return an outcome at its own price, or at that of a lay of the opposite one if it is better."""
        price = self._decimal(laid.price)
        if not (1.0 < price < inf and (crossed := lay_to_back(price)[0]) > self._decimal(outcome.price)):
            return outcome
        return msgspec.structs.replace(outcome, price=self._quoted(crossed), bet_limit=None)

    def _decimal(self, price: float) -> float:
        return float(american_to_decimal(price)) if self._american else price

    def _quoted(self, decimal: float) -> float:
        return float(decimal_to_american(decimal)) if self._american else decimal

    def _outcomes(
        self, offer: _Market, shared: dict[str, Any], sides: Mapping[str, str], kind: MarketName,
        listed: dict[str, Pair], pair: Pair,
    ) -> None:  # fmt: skip
        stem = f"{shared['event_id']}/{pair[0]}/{offer.key}/"
        field, american, quotes, lone = self._field, self._american, self.quotes, not kind.fixed_line
        parlay_only = catalog.book(shared["sportsbook"]).parlay_only
        for outcome in offer.outcomes:
            price = outcome.price
            if not (100.0 <= abs(price) < inf if american else 1.0 < price < inf):
                self._refused["an invalid price"] += 1
                continue
            scaled = number(outcome.multiplier)
            if scaled not in (None, 1.0) and not parlay_only:
                self._refused["a price with a multiplier, of a book that takes single bets"] += 1
                continue
            name = outcome.name
            row = shared.copy()
            if scaled is not None and parlay_only:
                row["multiplier"] = scaled
            row[field] = price
            row["selection"] = name
            row["selection_type"] = sides.get(name)
            id_ = stem + name
            if outcome.description:
                self._subject(row, outcome.description, kind)
                id_ += "/" + outcome.description
            if outcome.point is not None:
                if lone:
                    row["line"] = outcome.point
                id_ += f"/{outcome.point}"
            row["id"] = id_
            if outcome.link is not None and isinstance(outcome.link, str):
                row["deep_link"] = outcome.link
            if outcome.sid is not None and isinstance(outcome.sid, str | int):
                row["selection_id"] = str(outcome.sid)
            if outcome.bet_limit is not None and isinstance(outcome.bet_limit, int | float):
                row["max_bet"] = float(outcome.bet_limit)
            if id_ in listed:
                self._refused["a price given twice"] += 1
                continue
            listed[id_] = pair
            quotes.append(row)

    def _laid(
        self, offer: _Market, shared: dict[str, Any], sides: Mapping[str, str], game: Game, listed: dict[str, Pair],
        pair: Pair,
    ) -> None:  # fmt: skip
        """Add each lay price of a three-way market as a bet against its outcome."""
        for outcome in offer.outcomes if len(offer.outcomes) > _PAIR else ():
            price = self._decimal(outcome.price)
            other = against(THREE_WAY, sides.get(outcome.name, ""), game, "asian_handicap")
            id_ = f"{shared['event_id']}/{pair[0]}/{offer.key}/{outcome.name}/against"
            if other is None or not 1.0 < price < inf or id_ in listed:
                continue
            listed[id_] = pair
            self.quotes.append(shared | other | {"id": id_, self._field: self._quoted(lay_to_back(price)[0])})

    def _outright(self, event: _Event, maker: _Bookmaker, offer: _Market, listed: dict[str, Pair]) -> None:
        """Build prices of a future: the sport key gives the market, the start its season."""
        if offer.key != "outrights":
            self._refused["a lay price"] += len(offer.outcomes)
            return
        sport, league, market_name = split(event.sport_key)
        shared = {
            "sportsbook": aggregated_book(maker.key), "sport": sport, "league": league,
            "market": market_name or offer.key, "event_start_time": moment(event.commence_time),
            "last_seen_at": past(moment(offer.last_update) or moment(maker.last_update) or self._made, self._now),
        }  # fmt: skip
        for outcome in offer.outcomes:
            price = outcome.price
            if not (100.0 <= abs(price) < inf if self._american else 1.0 < price < inf):
                self._refused["an invalid price"] += 1
                continue
            parts = (event.id, maker.key, offer.key, outcome.name, outcome.description, outcome.point)
            id_ = "/".join(str(part) for part in parts if part is not None)
            if id_ in listed:
                self._refused["a price given twice"] += 1
                continue
            link = next((one for one in (outcome.link, offer.link, maker.link) if isinstance(one, str)), None)
            listed[id_] = (maker.key, offer.key)
            self.futures.append(
                {
                    **shared, "id": id_, "selection": outcome.name, "subject": outcome.description,
                    "line": outcome.point, "deep_link": link, self._field: price,
                }
            )  # fmt: skip

    @staticmethod
    def _subject(row: dict[str, Any], described: str, kind: MarketName) -> None:
        """Return the subject of a price: a team if the market is about one, else a player."""
        if kind.team:
            row["team_side"] = side_of(described, row["home_team"] or "", row["away_team"] or "") or None
            row["selection"] = f"{described} {row['selection']}"
        else:
            row["player_name"] = described


def _lines(offer: _Market, sides: Mapping[str, str]) -> dict[tuple[Any, ...], dict[str, _Outcome]]:
    """Return the two outcomes of each line by side; none if the market has outcomes that are not one of two."""
    lines: dict[tuple[Any, ...], dict[str, _Outcome]] = {}
    for outcome in offer.outcomes:
        side = sides.get(outcome.name)
        if side not in _OPPOSITE:
            return {}
        point = -outcome.point if side == "away" and outcome.point is not None else outcome.point
        pair = lines.setdefault((outcome.description, point), {})
        if side in pair:
            return {}
        pair[side] = outcome
    return {line: pair for line, pair in lines.items() if all(_OPPOSITE[side] in pair for side in pair)}


def _chosen(makers: list[_Bookmaker]) -> dict[str, _Bookmaker]:
    """Keep one entry per book: the first by key among its regions."""
    first: dict[str, str] = {}
    by_key = {maker.key: maker for maker in reversed(makers)}
    for key in by_key:
        book_id = aggregated_book(key)
        first[book_id] = min(first.get(book_id, key), key)
    return {key: by_key[key] for key in first.values()}
