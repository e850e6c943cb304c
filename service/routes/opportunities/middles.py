"""Middles: the list, one of them, all of them in numbers."""

import re
from typing import Any

from oddsengine import catalog
from oddsengine.columns import Longs
from oddsengine_service.endpoints import Context, Endpoint, answer_meta, data, page
from oddsengine_service.filters import REFS
from oddsengine_service.params import Param, choice, number
from oddsengine_service.problems import invalid, shown, unknown
from oddsengine_service.routes.odds import ADD_SPORTSBOOK, SPORTSBOOK
from oddsengine_service.routes.opportunities.filters import EPSILON, Shape, Sort
from oddsengine_service.routes.opportunities.lists import (
    COMMON,
    MAIN,
    PAGES,
    STATE,
    TAG,
    Kind,
    Listed,
    asked,
    echo,
    listed,
    mean,
    most,
    opened,
    paged,
    referenced,
    source,
)  # fmt: skip
from oddsengine_service.routes.opportunities.sides import rows_in_state, side_prices
from oddsengine_service.views import Table
from oddsengine_service.wire.envelopes import Data
from oddsengine_service.wire.middles import MIDDLE, BestEv, Middle, MiddlePage, MiddlesSummary
from oddsengine_service.wire.numbers import exact, moment

_ID = re.compile("[0-9a-f]{16}")


_MIDDLE_SORTS = {
    "quality": Sort("quality_score", falling=True),
    "ev": Sort("expected_value", falling=True),
    "probability": Sort("middle_probability", falling=True),
    "middle_size": Sort("middle_size", falling=True),
}
_MIDDLE_STEPS = (0.0, -2.0, -10.0)  # below them: all


_MIDDLE = Kind(
    "middles", MIDDLE,
    Shape(
        "event_id", "market_type", ("event_name",), "odds_age_seconds",
        lambda table: side_prices(table, ("side1", "side2")), None, ("side1.line", "team_side"),
    ),
    _MIDDLE_SORTS, (("expected_value", "min_ev", "max_ev"), ("middle_size", "min_size", "")),
)  # fmt: skip


def _between(context: Context, books: frozenset[str] | None) -> Listed:
    """Middles that match a request, in order."""
    least = context.query["min_ev"]
    step = next((step for step in _MIDDLE_STEPS if step <= least + EPSILON), None)
    return listed(context, _MIDDLE, books, min_middle_ev=step)


def middles(context: Context) -> Any:
    """The list of middles."""
    books, strange = asked(context)
    table, places, _ = _between(context, books)
    rows = paged(context, places)
    filters = echo(context.query, "sport", "league", "sportsbook", "market", "live", "min_ev", "min_size", "sort")
    shown_rows = rows_in_state(context, table, rows)
    meta = answer_meta(context, strange, source=source(context), last_update=moment(context.board.now), filters=filters)
    return page(context, referenced(context, shown_rows), len(rows), int(places.size), meta)


def one_middle(context: Context) -> Any:
    """One middle by its id."""
    ident = context.path["id"]
    if not _ID.fullmatch(ident):
        raise invalid(f"middle id must be 16 hexadecimal digits, got {shown(ident)}")
    books, strange = asked(context)
    if books is None or books:
        for step in (_MIDDLE_STEPS[0], None):
            table = opened(context, "middles", books, min_middle_ev=step).table("middles", MIDDLE)
            place = table.kept("ids", lambda t=table: {i: at for at, i in enumerate(t.column("id").to_list())})  # type: ignore[misc]
            if ident in place:
                return data(context, rows_in_state(context, table, [place[ident]])[0], strange)
    raise unknown("middle", ident)


def summary(context: Context) -> Any:
    """Summary of middles."""
    books, strange = asked(context)
    table, places, _ = _between(context, books)
    return data(context, _summed(table, places), strange)


def _summed(table: Table | None, places: Longs) -> MiddlesSummary:
    if table is None or not places.size:
        return MiddlesSummary(
            total=0, positive_ev_count=0, guaranteed_profit_count=0, player_prop_count=0, by_sport={}, by_market={},
            by_sportsbook={}, avg_middle_size=0.0, avg_probability=0.0, avg_ev=0.0, best_ev=None,
            has_key_numbers_count=0,
        )  # fmt: skip
    value = table.numbers("expected_value")[places]
    best = int(places[int(value.argmax())])
    books: dict[str, int] = {}
    for side in ("side1.book", "side2.book"):
        for book, n in table.coded(side).counts(places).items():
            ident = catalog.book(book).id
            books[ident] = books.get(ident, 0) + n
    keyed = table.kept("keyed", lambda: table.column("key_numbers").list.len().to_numpy() > 0)
    return MiddlesSummary(
        total=int(places.size),
        positive_ev_count=int((value > 0.0).sum()),
        guaranteed_profit_count=int(table.flags("is_guaranteed_profit")[places].sum()),
        player_prop_count=int(table.flags("is_player_prop")[places].sum()),
        by_sport=table.coded("sport").counts(places),
        by_market=table.coded("market_type").counts(places),
        by_sportsbook=dict(sorted(books.items(), key=lambda item: (-item[1], item[0]))),
        avg_middle_size=mean(table.numbers("middle_size")[places]),
        avg_probability=exact(float(table.numbers("middle_probability")[places].mean()), 6),
        avg_ev=mean(value),
        best_ev=BestEv(
            most(value), table.column("sport")[best] or "", table.column("market_type")[best]
        ),
        has_key_numbers_count=int(keyed[places].sum()),
    )  # fmt: skip


_MIDDLE_PARAMS: tuple[Param, ...] = (
    *(param for param in COMMON if param is not MAIN), REFS,
    number("min_ev", "Minimum expected value in percent.", -100.0, 1000.0, default=0.0),
    number("max_ev", "Maximum expected value in percent.", -100.0, 1000.0),
    number("min_size", "Minimum distance between the two lines.", 0.0),
    STATE,
    choice("sort", "Descending; prefix with - to reverse.", tuple(_MIDDLE_SORTS), signed=True, default="quality"),
    *PAGES,
)  # fmt: skip


endpoints = (
    Endpoint(
        "/opportunities/middles", middles, "Middle opportunities", TAG, MiddlePage, _MIDDLE_PARAMS,
        feature="middles",
    ),
    Endpoint(
        "/opportunities/middles/summary", summary, "Summary of middles", TAG, Data[MiddlesSummary], _MIDDLE_PARAMS,
        feature="middles",
    ),
    Endpoint(
        "/opportunities/middles/{id}", one_middle, "One middle", TAG, Data[Middle],
        (SPORTSBOOK, ADD_SPORTSBOOK, STATE), feature="middles",
        path_kinds={"id": {"pattern": f"^{_ID.pattern}$"}},
    ),
)  # fmt: skip
