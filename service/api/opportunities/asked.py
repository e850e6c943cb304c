"""What the lists of opportunities share: whose books, which view, the order of parameters, parts of answers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from oddsengine import catalog
from oddsengine.columns import Floats, Longs
from oddsengine.query import Seen
from oddsengine_service import filters
from oddsengine_service.api.odds import (
    ADD_SPORTSBOOK,
    EVENT,
    LEAGUE,
    LIVE,
    MARKET,
    MAX_ODDS,
    MIN_ODDS,
    SPORT,
    SPORTSBOOK,
    TEAM,
    Q,
    books_for,
    index_of,
)
from oddsengine_service.endpoints import Ask
from oddsengine_service.params import choice, flag, number, text, words
from oddsengine_service.sifting import EPSILON
from oddsengine_service.views import Opened
from oddsengine_service.wire.numbers import exact

TAG = "Opportunities"

AGE = number("max_odds_age", "Most seconds since the oldest price was seen.", 0.0)
RANGE = choice("date_range", "When it begins, in US Eastern time.", filters.DAYS)
PROP = flag("is_player_prop", "true: player props only; false: none.")
MAIN = flag("is_main_line", "true: main lines only; false: other lines only.")
PLAYER = text("player_name", "Part of a player's name.")
STAT = words("stat_category", "Statistics of player props, such as points.")
STATE = filters.STATE
COMMON = (
    SPORT, LEAGUE, SPORTSBOOK, ADD_SPORTSBOOK, MARKET, EVENT, LIVE, TEAM, filters.DATE, RANGE, Q, PROP,
    MAIN, PLAYER, STAT, AGE, MIN_ODDS, MAX_ODDS,
)  # fmt: skip


# ---- who asks for what ----


class Asked(NamedTuple):
    """A request's books, and the ids in it that nobody knows."""

    books: frozenset[str] | None
    unknown: dict[str, list[str]]


def asked(ask: Ask) -> Asked:
    """Books of an answer: the tier's or those asked for, as far as they exist.

    Raises
    ------
    Problem
        403 if a book is above the tier.
    """
    query = ask.query
    strange = filters.strangers(query, lambda: _seen(ask))
    if query.get("event") is not None:
        with index_of(ask).reading() as reading:
            missing = [event for event in query["event"] if not reading.has_event(event)]
        if missing:
            strange["event"] = missing
    books = books_for(ask, query["sportsbook"], query.get("add_sportsbook"))
    if books is not None:
        words = [word for name in ("sportsbook", "add_sportsbook") for word in strange.get(name, ())]
        books -= {catalog.book(word).id for word in words}
    return Asked(books, strange)


def _seen(ask: Ask) -> Seen:
    return ask.node.stats.at(ask.board, None).known


def opened(ask: Ask, kind: str, books: frozenset[str] | None, **wanted: Any) -> Opened:
    """What is open of a kind in the view of a request."""
    return ask.node.views.at(ask.board, books, ask.caller.account, kinds=(kind,), **wanted)


def at_most(value: float, steps: Sequence[float]) -> float:
    """The first step that is not above a value; steps fall."""
    return next((step for step in steps if step <= value + EPSILON), steps[-1])


# ---- parts of answers ----


def paged(ask: Ask, places: Longs) -> list[int]:
    """The places on the page that is asked for."""
    offset = ask.query["offset"]
    rows: list[int] = places[offset : offset + ask.query["limit"]].tolist()
    return rows


def echo(query: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Filters as they were understood."""
    return {name: query.get(name) for name in names}


def source(ask: Ask) -> str:
    """Where prices come from."""
    return "simulator" if ask.node.demo else "live"


def mean(values: Floats) -> float:
    """The mean as it is shown; 0 of nothing."""
    return exact(float(values.mean())) if values.size else 0.0


def most(values: Floats) -> float:
    """The largest as it is shown; 0 of nothing."""
    return exact(float(values.max())) if values.size else 0.0


def met(ask: Ask) -> set[str]:
    """Ids of the books that the board has met."""
    return {catalog.book(name).id for name in ask.board.books}
