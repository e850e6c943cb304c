"""What the lists of opportunities share: parameters, whose books, which view, filters, order and page."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.columns import Floats, Longs
from oddsengine.query import BoardIds
from oddsengine_service import filters
from oddsengine_service.endpoints import Context
from oddsengine_service.params import choice, flag, number, text, words
from oddsengine_service.routes import odds
from oddsengine_service.routes.odds import books_for, index_of
from oddsengine_service.routes.opportunities.filters import EPSILON, Shape, Sort, arranged, every, keep, within
from oddsengine_service.views import Bools, Opened, Table
from oddsengine_service.wire.columns import Encoding
from oddsengine_service.wire.numbers import exact
from oddsengine_service.wire.references import with_leg_references

TAG = "Opportunities"
STATE = filters.STATE
MAIN = flag("is_main_line", "true: main lines only; false: other lines only.")
PAGES = (odds.LIMIT, odds.OFFSET)
COMMON = (
    *odds.FILTERS[:3], odds.ADD_SPORTSBOOK, *odds.FILTERS[3:], odds.TEAM, filters.DATE,
    choice("date_range", "Start of the event in US Eastern time.", filters.DAYS), odds.Q,
    flag("is_player_prop", "true: player props only; false: everything else."), MAIN,
    number("starts_within", "Hours until the start, at most; what is in play has started.", 0.0, 10_000.0),
    text("player_name", "Part of a player's name."),
    words("stat_category", "Statistics of player props, such as points."),
    number("max_odds_age", "Maximum age of the oldest price in seconds.", 0.0), odds.MIN_ODDS, odds.MAX_ODDS,
)  # fmt: skip


class Kind(NamedTuple):
    """How opportunities of one kind are listed.

    `bounds` are columns, and the parameters that are their lower and upper limit.
    """

    name: str  # in the engine
    encoding: Encoding
    shape: Shape
    sorts: Mapping[str, Sort]
    bounds: Sequence[tuple[str, str, str]]


class Listed(NamedTuple):
    """Opportunities that match a request: where they stand in their table, in order."""

    table: Table | None  # None where the request has no books
    places: Longs
    now: datetime | None  # of the board that they are from

    def summary(self, name: str, column: str, **counted: str) -> dict[str, Any]:
        """How many there are, the mean and maximum of a column, and counts by others."""
        table, places = self.table, self.places
        values = np.empty(0) if table is None else table.numbers(column)[places]
        counts = {by: {} if table is None else table.coded(of).counts(places) for by, of in counted.items()}
        return {"count": int(places.size), f"avg_{name}": mean(values), f"max_{name}": most(values), **counts}


def listed(
    context: Context, kind: Kind, books: frozenset[str] | None,
    more: Callable[[Table, Bools | None], Bools | None] | None = None, **wanted: Any,
) -> Listed:  # fmt: skip
    """What a request lists; `wanted` says which view, `more` filters further."""
    query = context.query
    if books is not None and not books:
        return Listed(None, np.empty(0, np.int64), context.board.now)
    found = opened(context, kind.name, books, **wanted)
    table = found.table(kind.name, kind.encoding)
    kept = every(
        [
            keep(table, query, kind.shape, found.now),
            *(within(table, column, query.get(low), query.get(high)) for column, low, high in kind.bounds),
        ]
    )
    kept = kept if more is None else more(table, kept)
    return Listed(table, arranged(table, kept, query["sort"], kind.sorts), found.now)


# ---- who asks for what ----


class Selection(NamedTuple):
    """A request's books, and its unknown ids."""

    books: frozenset[str] | None
    unknown: dict[str, list[str]]


def asked(context: Context) -> Selection:
    """Books of an answer: the tier's or those asked for, as far as they exist.

    Raises
    ------
    Problem
        403 if a book is above the tier.
    """
    query = context.query
    strange = filters.strangers(query, lambda: _seen(context))
    if query.get("event") is not None:
        with index_of(context).reader() as reader:
            missing = [event for event in query["event"] if not reader.has_event(event)]
        if missing:
            strange["event"] = missing
    books = books_for(context, query["sportsbook"], query.get("add_sportsbook"))
    if books is not None:
        words = [word for name in ("sportsbook", "add_sportsbook") for word in strange.get(name, ())]
        books -= {catalog.book(word).id for word in words}
    return Selection(books, strange)


def _seen(context: Context) -> BoardIds:
    return context.node.stats.at(context.board, None).ids


def opened(context: Context, kind: str, books: frozenset[str] | None, **wanted: Any) -> Opened:
    """What is open of a kind in the view of a request."""
    return context.node.views.at(context.board, books, context.caller.account, kinds=(kind,), **wanted)


def at_most(value: float, steps: Sequence[float]) -> float:
    """The first step that is not above a value; steps fall."""
    return next((step for step in steps if step <= value + EPSILON), steps[-1])


# ---- parts of answers ----


def paged(context: Context, places: Longs) -> list[int]:
    """The places on the page that is asked for."""
    offset = context.query["offset"]
    rows: list[int] = places[offset : offset + context.query["limit"]].tolist()
    return rows


def referenced(context: Context, rows: Sequence[Any]) -> Sequence[Any]:
    """Rows as they go out, with references where the caller wants them."""
    return [with_leg_references(row) for row in rows] if "refs" in (context.query["include"] or ()) else rows


def echo(query: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Filters as they were understood."""
    return {name: query.get(name) for name in names}


def source(context: Context) -> str:
    """Where prices come from."""
    return "simulator" if context.node.demo else "live"


def mean(values: Floats) -> float:
    """The mean as it is shown; 0 of nothing."""
    return exact(float(values.mean())) if values.size else 0.0


def most(values: Floats) -> float:
    """The largest as it is shown; 0 of nothing."""
    return exact(float(values.max())) if values.size else 0.0


def met(context: Context) -> set[str]:
    """Ids of the books that the board has met."""
    return {catalog.book(name).id for name in context.board.books}
