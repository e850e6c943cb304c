"""Matchbook, an exchange: pages of events with their markets, runners and prices.

Prices are levels of both sides in any order: back, or win, are what can be backed, lay, or lose, what can be laid, both
with the backer's stake. In a market of two runners, to lay one is to back the other: the better of both ladders is the
quote (`order_books`). To lay a side of a soccer match is to back the other one with half a goal. Other lays are no
quotes.

A market is understood by its type. One whose name says that it is about something else (a half, corners) keeps its
name, which the catalog does not have. What a player does has the type of a total too, so a total is one of the game
only if its name is known to mean that.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.feeds.decoding import Level, Name, Text, Time, inside, moment, number, plain, valid_items
from oddsengine.feeds.feed_names import MarketName, against, league, market, outcome_of, teams_of, with_line
from oddsengine.feeds.order_books import Ladder, better, crossed, ladder, price_of
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.feeds.tracking import ListedIds
from oddsengine.feeds.turns import Received, Turn
from oddsengine.feeds.venue_contracts import values_of

BOOK = "matchbook"
SOURCE = "Matchbook"
_SPORTS = {15: "soccer"}  # whatever it is called
_WINNERS = {"one_x_two": "moneyline_3way", "money_line": "moneyline", "moneyline": "moneyline"}
_HANDICAPS, _TOTALS, _YES_NO = ("handicap", "asian_handicap"), ("total", "over_under"), ("both_to_score",)
# What is counted in a game's total, by sport; in the others it is not clear which is meant.
_COUNTED = {"soccer": "goals", "hockey": "goals", "football": "points", "basketball": "points", "baseball": "runs"}
_TOTAL_NAMES = ("total", "totals", "total {}", "total match {}", "over under", "over under {}", "over under total {}")
_OTHERS = frozenset({
    "half", "halftime", "quarter", "period", "set", "sets", "game", "games", "corner", "corners", "card", "cards",
    "booking", "bookings", "inning", "innings", "team", "player", "first", "second", "third", "1st", "2nd", "3rd",
    "frame", "frames", "leg", "legs", "map", "maps", "round", "rounds",
})  # fmt: skip
_BACK, _LAY = ("back", "win"), ("lay", "lose")
_STATES, _RUNNER_STATES = values_of("matchbook", "state"), values_of("matchbook", "runner_state")
_PAIR = 2
_SAME = 1e-9


class _Price(msgspec.Struct, rename="kebab"):
    side: str
    odds: float | None = None
    decimal_odds: float | None = None
    available_amount: float | None = None


class _Runner(msgspec.Struct):
    id: str | int
    name: Name
    status: str = "open"
    handicap: float | str | None = None
    prices: list[_Price] = []


class _Market(msgspec.Struct, rename="kebab"):
    id: str | int
    name: Text = ""
    market_type: str = ""
    status: str = "open"
    in_running_flag: bool = False
    volume: float | None = None
    handicap: float | str | None = None
    runners: list[_Runner] = []


class _Tag(msgspec.Struct):
    name: str = ""
    type: str | None = None


class _Event(msgspec.Struct, rename="kebab"):
    id: str | int
    name: Text
    sport_id: int | None = None
    start: Time = None
    status: str = "open"
    in_running_flag: bool = False
    meta_tags: list[_Tag] = []
    markets: list[_Market] = []


class _Sport(msgspec.Struct):
    id: int
    name: Name


_LEVEL = Level(_Event, "an event", "markets", Level(_Market, "a market", "runners", Level(_Runner, "a runner")))


def read_sports(body: bytes) -> dict[int, str]:
    """Parse the list of sports: our sport of each number. Raises `FeedError` if it is not valid.

    Examples
    --------
    >>> read_sports(b'{"sports": [{"id": 1, "name": "American Football"}, {"id": 15, "name": "Football"}]}')
    {1: 'football', 15: 'soccer'}
    """
    fault = f"not a payload of {SOURCE}: it has no list of sports"
    listed = inside(plain(body, SOURCE), "sports")
    sports, _ = valid_items(listed, Level(_Sport, "a sport"), Counter(), SOURCE, fault)
    return {one.id: _SPORTS.get(one.id) or catalog.sport(one.name).id for one in sports}


def next_offset(body: bytes) -> int:
    """Return the offset of the next page of events, 0 after the last. Raises `FeedError` if this is not a page."""
    document = plain(body, SOURCE)
    events, total = inside(document, "events"), inside(document, "total")
    offset = inside(document, "offset") or 0
    if not isinstance(events, list) or not isinstance(offset, int) or isinstance(offset, bool):
        raise FeedError(f"not a payload of {SOURCE}: it has no list of events")
    end = offset + len(events)
    return end if events and isinstance(total, int) and end < total else 0


class MatchbookPrices:
    """What was listed before, by part of the exchange.

    Examples
    --------
    >>> MatchbookPrices().read("nfl", [], {}, datetime(2026, 1, 1)).quotes
    []
    """

    def __init__(self) -> None:
        self._listed = ListedIds()

    def read(
        self, part: str, pages: Sequence[Received], sports: dict[int, str], now: datetime, only: str = ""
    ) -> Payload:  # fmt: skip
        """Parse the pages of a part; `only` is one of our leagues, if others are to be left out.

        Raises `FeedError` if a page is not valid; the state is unchanged.
        """
        turn = Turn()
        fault = f"not a payload of {SOURCE}: it has no list of events"
        for body, at in pages:
            listed = inside(plain(body, SOURCE), "events")
            for event in valid_items(listed, _LEVEL, turn.refused, SOURCE, fault)[0]:
                game = _game(event, sports, now)
                if event.status not in _STATES:
                    turn.refused["an event whose state is not known"] += 1
                elif not game.home:
                    turn.refused["an event that is not a game of two"] += 1
                elif not only or game.league == only:
                    turn.games[game.id] = game
                    for one in event.markets:
                        _prices(event, one, game, at, turn)
        return turn.payload(self._listed, part)


def _game(event: _Event, sports: dict[int, str], now: datetime) -> Game:
    sport = sports.get(event.sport_id or 0, "")
    competition = next((tag.name for tag in event.meta_tags if tag.type == "COMPETITION"), "")
    start = moment(event.start)
    live = event.in_running_flag or (start is not None and start <= now)
    return Game(
        str(event.id), sport, league(competition, sport), *teams_of(event.name), start, "live" if live else "upcoming"
    )  # fmt: skip


def _prices(event: _Event, one: _Market, game: Game, at: datetime, turn: Turn) -> None:
    """Add the prices of a market."""
    if one.status not in _STATES:
        turn.refused["a market whose state is not known"] += 1
        return
    kind, form = _kind(one, game.sport)
    ladders = {str(runner.id): _ladders(runner, turn.refused) for runner in one.runners if runner.status != "removed"}
    for runner in one.runners:
        ident = str(runner.id)
        if ident not in ladders:
            continue
        if runner.status not in _RUNNER_STATES:
            turn.refused["a runner whose state is not known"] += 1
            continue
        outcome = _outcome(runner, one, game, form)
        if outcome is None:
            turn.refused["a runner that is not understood"] += 1
            continue
        levels, own_lays = ladders[ident]
        shared = game.fields | {
            "sportsbook": BOOK, "is_live": one.in_running_flag or game.status == "live", "market_type": kind.name,
            "market_id": str(one.id), "external_event_id": game.id, "selection_id": ident, "id": f"{one.id}/{ident}",
            "is_active": event.status == one.status == runner.status == "open", "volume": one.volume,
            "last_seen_at": at,
        }  # fmt: skip
        other_side = against(kind.name, outcome["selection_type"], game, "asian_handicap")
        if other_side is not None and own_lays:
            turn.put(shared | other_side | price_of(crossed(own_lays)) | {"id": f"{one.id}/{ident}/lay"})
        if len(ladders) == _PAIR:
            ((_, lays),) = [both for other, both in ladders.items() if other != ident]
            levels = better(levels, crossed(lays))
        if not levels:
            continue
        turn.put(shared | outcome | price_of(levels), in_catalog=kind.in_catalog)


def _ladders(runner: _Runner, refused: Counter[str]) -> tuple[Ladder, Ladder]:
    """Return what can be backed and what can be laid."""
    if strange := sum(price.side not in _BACK + _LAY for price in runner.prices):
        refused["a price of a side that is not known"] += strange

    def levels(sides: tuple[str, ...]) -> Ladder:
        own = (price for price in runner.prices if price.side in sides)
        return ladder(((one.decimal_odds or one.odds, one.available_amount) for one in own), refused)

    return levels(_BACK), levels(_LAY)


def _kind(one: _Market, sport: str) -> tuple[MarketName, str]:
    """Return the market of a type, and its form: winner, spread, total, yes_no, or empty."""
    type_ = one.market_type.replace("-", "_")
    if not _OTHERS & set(catalog.normalise(one.name).split()):
        soccer = sport == "soccer"
        if type_ in _WINNERS:
            return market(_WINNERS[type_], sport), "winner"
        if type_ in _HANDICAPS:
            return market("asian_handicap" if soccer else "point_spread", sport), "spread"
        if type_ in _TOTALS and sport in _COUNTED and _is_game_total(one.name, _COUNTED[sport]):
            return market("total_goals" if soccer else "total_points", sport), "total"
        if type_ in _YES_NO:
            return market("both_teams_to_score", sport), "yes_no"
    return MarketName(one.name or type_ or "market"), ""


def _is_game_total(name: str, counted: str) -> bool:
    """Whether a name of a market says that it is the total of a game; its line may follow."""
    return catalog.normalise(with_line(name)[0]) in {text.format(counted) for text in _TOTAL_NAMES}


def _outcome(runner: _Runner, one: _Market, game: Game, form: str) -> dict[str, Any] | None:
    """Return selection, outcome and line of a runner; None if they are not clear."""
    text, line = with_line(runner.name)
    if not form:
        return {"selection": runner.name, "selection_type": None, "line": None}
    if form in ("winner", "yes_no"):
        meaning = outcome_of(runner.name, game.home, game.away)
        allowed = ("home", "away", "draw") if form == "winner" else ("yes", "no")
        return {"selection": runner.name, "selection_type": meaning, "line": None} if meaning in allowed else None
    given = number(runner.handicap)
    if form == "total":
        given = number(one.handicap) if given is None else given
    if line is None:
        line = given
    if line is None or (given is not None and abs(abs(line) - abs(given)) > _SAME):
        return None
    meaning = outcome_of(text, game.home, game.away)
    if meaning not in (("home", "away") if form == "spread" else ("over", "under")):
        return None
    selection = text if form == "spread" else meaning.title()
    return {"selection": selection, "selection_type": meaning, "line": line}
