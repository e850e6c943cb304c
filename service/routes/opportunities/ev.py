"""The +EV list: prices that beat what the reference says is fair."""

from typing import Any

from oddsengine import catalog
from oddsengine.columns import Floats
from oddsengine.devig import DEVIG_METHODS
from oddsengine.query import values
from oddsengine_service import filters
from oddsengine_service.endpoints import Context, Endpoint, answer_meta, page
from oddsengine_service.params import Param, choice, number, text, words
from oddsengine_service.problems import Problem
from oddsengine_service.routes.opportunities.filters import Shape, Sort
from oddsengine_service.routes.opportunities.lists import (
    COMMON,
    PAGES,
    TAG,
    Kind,
    asked,
    at_most,
    echo,
    listed,
    paged,
    referenced,
    source,
)
from oddsengine_service.tiers import books_of
from oddsengine_service.views import Table
from oddsengine_service.wire.ev import EV, EvPage
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


_EV = Kind(
    "ev", EV, Shape("game_id", "market", ("game", "selection"), "oldest_odds_age_seconds", _single_prices), _EV_SORTS,
    (
        ("ev_percentage", "min_ev", "max_ev"), ("market_width", "min_market_width", "max_market_width"),
        ("market_width", "", "max_hold"), ("kelly_percent", "min_kelly", "max_kelly"),
        ("confidence_score", "min_confidence", "max_confidence"),
    ),
)  # fmt: skip


def reference(context: Context, strange: dict[str, list[str]]) -> tuple[bool, str | None]:
    """The reference that is asked for: whether there is any such, and its id.

    A sharp book may be the reference of everybody's answers; another one only of those who may see it.
    """
    word = context.query.get("devig_book")
    if word is None:
        return True, None
    book = catalog.book(word)
    if not values.known_book(word) and book.id not in context.node.stats.at(context.board, None).ids.books:
        strange["devig_book"] = [word]
        return False, None
    own = books_of(context.caller.tier.id)
    if own is not None and not book.sharp and book.id not in own:
        raise Problem(
            403,
            "tier_restricted",
            f"devig_book {book.id} requires the {book.requires_tier} tier; "
            f"this key has the {context.caller.tier.id} tier",
        )
    return True, book.id


def positive(context: Context) -> Any:
    """The +EV list."""
    query = context.query
    books, strange = asked(context)
    there, sharp = reference(context, strange)
    found = listed(
        context, _EV, books if there else frozenset(), sharp=sharp, method=query["devig_method"],
        include=tuple(name for name in query["include"] or () if name != "refs"),
        min_ev=at_most(query["min_ev"], _EV_STEPS),
    )  # fmt: skip
    rows = paged(context, found.places)
    meta = {
        "source": source(context),
        "last_update": moment(found.now),
        "summary": found.summary(
            "ev", "ev_percentage", by_sportsbook="sportsbook", by_sport="sport", by_market="market"
        ),
        "filters": echo(
            query, "sport", "league", "sportsbook", "market", "min_ev", "max_ev", "live", "sort", "include"
        ),
    }  # fmt: skip
    shown = found.table.shown(rows) if found.table is not None else []
    return page(
        context, referenced(context, shown), len(rows), int(found.places.size), answer_meta(context, strange, **meta)
    )


_EV_PARAMS: tuple[Param, ...] = (
    *COMMON,
    number("min_ev", "Minimum expected value in percent.", -100.0, 1000.0, default=0.0),
    number("max_ev", "Maximum expected value in percent.", -100.0, 1000.0),
    number("min_market_width", "Minimum hold of the reference market in percent."),
    number("max_market_width", "Maximum hold of the reference market in percent."),
    number("max_hold", "Alias of max_market_width."),
    number("min_kelly", "Minimum Kelly fraction, 0 to 1."),
    number("max_kelly", "Maximum Kelly fraction, 0 to 1."),
    number("min_confidence", "Minimum confidence score, 0 to 100."),
    number("max_confidence", "Maximum confidence score, 0 to 100."),
    words("selection", "Selections as written in the rows."),
    text("devig_book", "Reference book for fair prices; default: all other books, at the close."),
    choice(
        "devig_method", "De-vig method; without `devig_book` it is that of the first sharp book's prices.",
        tuple(DEVIG_METHODS),
    ),
    filters.INCLUDE,
    choice("sort", "Sort order; prefix with - for descending.", tuple(_EV_SORTS), signed=True, default="-ev"),
    *PAGES,
)  # fmt: skip


endpoints = (
    Endpoint(
        "/opportunities/ev", positive, "+EV opportunities", TAG, EvPage, _EV_PARAMS,
        feature="ev", doc="One row for each book; the best first.",
    ),
)  # fmt: skip
