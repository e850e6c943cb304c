"""The +EV list: prices that beat what the reference says is fair."""

from typing import Any

from oddsengine import catalog
from oddsengine.columns import Floats
from oddsengine.devig import DEVIG_METHODS
from oddsengine.query import values
from oddsengine_service.api.odds import (
    LIMIT,
    OFFSET,
)
from oddsengine_service.api.opportunities.asked import (
    COMMON,
    TAG,
    asked,
    at_most,
    echo,
    mean,
    most,
    opened,
    paged,
    source,
)
from oddsengine_service.endpoints import Ask, Endpoint, page, told
from oddsengine_service.params import Param, choice, number, text, words
from oddsengine_service.problems import Problem
from oddsengine_service.sifting import Shape, Sort, arranged, every, keep, within
from oddsengine_service.tiers import books_of
from oddsengine_service.views import Table
from oddsengine_service.wire.ev import EvPage, ev
from oddsengine_service.wire.numbers import moment

_EV_SORTS = {
    "ev": Sort("ev_percentage"),
    "odds": Sort("odds_decimal"),
    "confidence": Sort("confidence_score"),
    "confidence_score": Sort("confidence_score"),
    "kelly": Sort("kelly_percent"),
    "kelly_percent": Sort("kelly_percent"),
    "start_time": Sort("start_time"),
    "time": Sort("start_time"),
    "book_count": Sort("book_count"),
    "books": Sort("book_count"),
}
_EV_STEPS = (0.0, -2.0, -5.0, -10.0, -100.0)


def _single_prices(table: Table) -> tuple[Floats, Floats]:
    value = table.numbers("odds_american")
    return value, value


_EV = Shape("game_id", "market", ("game", "selection"), "oldest_odds_age_seconds", _single_prices)


def _reference(ask: Ask, strange: dict[str, list[str]]) -> tuple[bool, str | None]:
    """The reference that is asked for: whether there is any such, and its id.

    A sharp book may be the reference of everybody's answers; another one only of those who may see it.
    """
    word = ask.query["devig_book"]
    if word is None:
        return True, None
    book = catalog.book(word)
    if not values.known_book(word) and book.id not in ask.node.stats.at(ask.board, None).known.books:
        strange["devig_book"] = [word]
        return False, None
    own = books_of(ask.caller.tier.id)
    if own is not None and not book.sharp and book.id not in own:
        raise Problem(
            403,
            "tier_restricted",
            f"devig_book {book.id} needs the tier {book.requires_tier}; this key's is {ask.caller.tier.id}",
        )
    return True, book.id


def positive(ask: Ask) -> Any:
    """The +EV list."""
    query = ask.query
    books, strange = asked(ask)
    there, sharp = _reference(ask, strange)
    meta = {
        "source": source(ask),
        "last_update": None,
        "summary": {"count": 0, "avg_ev": 0.0, "max_ev": 0.0, "by_sportsbook": {}, "by_sport": {}, "by_market": {}},
        "filters": echo(
            query, "sport", "league", "sportsbook", "market", "min_ev", "max_ev", "live", "sort", "include"
        ),
    }  # fmt: skip
    if not there or (books is not None and not books):
        meta["last_update"] = moment(ask.board.now)
        return page(ask, [], 0, 0, told(ask, strange, **meta))
    least = at_most(query["min_ev"], _EV_STEPS)
    found = opened(ask, "ev", books, sharp=sharp, method=query["devig_method"], min_ev=least)
    table = found.table("ev", ev)
    kept = every(
        [
            keep(table, query, _EV, found.now),
            within(table, "ev_percentage", query["min_ev"] if table.size else None, query["max_ev"]),
            within(table, "market_width", query["min_market_width"], query["max_market_width"]),
            within(table, "market_width", None, query["max_hold"]),
            within(table, "kelly_percent", query["min_kelly"], query["max_kelly"]),
            within(table, "confidence_score", query["min_confidence"], query["max_confidence"]),
        ]
    )
    places = arranged(table, kept, query["sort"], _EV_SORTS)
    edges = table.numbers("ev_percentage")[places]
    meta["last_update"] = moment(found.now)
    meta["summary"] = {
        "count": int(places.size),
        "avg_ev": mean(edges),
        "max_ev": most(edges),
        "by_sportsbook": table.coded("sportsbook").counts(places),
        "by_sport": table.coded("sport").counts(places),
        "by_market": table.coded("market").counts(places),
    }
    rows = paged(ask, places)
    return page(ask, table.shown(rows), len(rows), int(places.size), told(ask, strange, **meta))


_EV_PARAMS: tuple[Param, ...] = (
    *COMMON,
    number("min_ev", "Least expected value in percent.", -100.0, 1000.0, default=0.0),
    number("max_ev", "Largest expected value in percent.", -100.0, 1000.0),
    number("min_market_width", "Least margin of the reference's market in percent."),
    number("max_market_width", "Largest margin of the reference's market in percent."),
    number("max_hold", "The same as max_market_width."),
    number("min_kelly", "Least Kelly fraction, 0 to 1."),
    number("max_kelly", "Largest Kelly fraction, 0 to 1."),
    number("min_confidence", "Least confidence score, 0 to 100."),
    number("max_confidence", "Largest confidence score, 0 to 100."),
    words("selection", "Selections, as their rows name them."),
    text("devig_book", "The book whose prices say what is fair."),
    choice("devig_method", "How its margin is removed.", tuple(DEVIG_METHODS), default="power"),
    choice("sort", "Order; - is falling.", tuple(_EV_SORTS), signed=True, default="-ev"),
    LIMIT, OFFSET,
)  # fmt: skip


endpoints = (
    Endpoint(
        "/opportunities/ev", positive, "Prices that beat the fair probability", TAG, EvPage, _EV_PARAMS,
        feature="ev", doc="One row for each book; the best first.",
    ),
)  # fmt: skip
