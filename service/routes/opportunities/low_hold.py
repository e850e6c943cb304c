"""Low holds: markets whose best prices leave the books little."""

from typing import Any

from oddsengine_service.endpoints import Context, Endpoint, answer_meta, page
from oddsengine_service.filters import REFS
from oddsengine_service.params import Param, choice, number
from oddsengine_service.routes.opportunities.filters import Shape, Sort
from oddsengine_service.routes.opportunities.games import with_games
from oddsengine_service.routes.opportunities.lists import (
    COMMON,
    PAGES,
    STATE,
    TAG,
    Kind,
    asked,
    echo,
    listed,
    paged,
    referenced,
    source,
)
from oddsengine_service.routes.opportunities.sides import rows_in_state, side_prices
from oddsengine_service.wire.low_hold import LOW_HOLD, LowHoldPage
from oddsengine_service.wire.numbers import moment

_HOLD_SORTS = {
    "hold": Sort("hold_percentage"),
    "start_time": Sort("start_time"),
    "sport": Sort("sport"),
    "market": Sort("market_type"),
}
_HOLD_STEPS = (2.0, 5.0, 10.0, 25.0, 100.0)
_HOLD = Kind(
    "low_hold", LOW_HOLD,
    Shape(
        "event_id", "market_type", ("event_name",), "oldest_odds_age_seconds",
        lambda table: side_prices(table, ("side1", "side2", "side3")),
    ),
    _HOLD_SORTS, (("hold_percentage", "min_hold", "max_hold"),),
)  # fmt: skip


def holds(context: Context) -> Any:
    """The list of low holds."""
    query = context.query
    books, strange = asked(context)
    found = listed(context, _HOLD, books, max_hold=next(step for step in _HOLD_STEPS if step >= query["max_hold"]))
    rows = paged(context, found.places)
    filters = echo(query, "sport", "league", "sportsbook", "market", "live", "max_hold", "sort")
    meta = answer_meta(context, strange, source=source(context), last_update=moment(context.board.now), filters=filters)
    shown = rows_in_state(context, found.table, rows)
    if found.table is not None:
        shown = with_games(context, found.table, rows, shown)
    return page(context, referenced(context, shown), len(rows), int(found.places.size), meta)


_HOLD_PARAMS: tuple[Param, ...] = (
    *COMMON, REFS,
    number("max_hold", "Maximum hold in percent.", 0.0, 100.0, default=2.0),
    number("min_hold", "Minimum hold in percent.", 0.0, 100.0),
    STATE,
    choice("sort", "Sort order, ascending; prefix with - to reverse.", tuple(_HOLD_SORTS), signed=True, default="hold"),
    *PAGES,
)  # fmt: skip


endpoints = (
    *(
        Endpoint(
            path, holds, "Low-hold opportunities", TAG, LowHoldPage, _HOLD_PARAMS,
            feature="low_hold",
        )
        for path in ("/opportunities/low_hold", "/opportunities/low-hold")
    ),
)  # fmt: skip
