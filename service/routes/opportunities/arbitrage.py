"""The arbitrage list, as JSON and as a file.

**CSV of arbitrages.** The header has two legs, an arbitrage may have more. Each row has two: an arbitrage of three
takes two rows that agree in everything but the legs, the third standing where the first was, a fourth's columns empty.
So every row has exactly the header's columns, no leg is lost, and the stakes of one arbitrage, whose rows follow each
other, sum to 100. A text that a spreadsheet would take for a formula has a ' before it.
"""

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from oddsengine.columns import Floats
from oddsengine_service.endpoints import Answer, Context, Endpoint, answer_meta, page
from oddsengine_service.filters import REFS
from oddsengine_service.params import Param, choice, number
from oddsengine_service.routes.opportunities.filters import Shape, Sort
from oddsengine_service.routes.opportunities.games import with_games
from oddsengine_service.routes.opportunities.lists import (
    COMMON,
    PAGES,
    TAG,
    Kind,
    asked,
    at_most,
    echo,
    listed,
    met,
    paged,
    referenced,
    source,
)  # fmt: skip
from oddsengine_service.views import Bools, Table
from oddsengine_service.wire.arbitrage import ARBITRAGE, Arbitrage, ArbitragePage

_DELIMITED = ("event", "sport", "market", "line", "profit%", "implied_total", "book1", "selection1", "odds1", "stake1%",
              "book2", "selection2", "odds2", "stake2%", "is_live", "is_alternate_line", "possibly_stale", "warnings",
              "detected_at")  # fmt: skip
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.])")


_ARB_SORTS = {
    "profit": Sort("profit_percent", falling=True),
    "start_time": Sort("start_time"),
    "time": Sort("start_time"),
    "sport": Sort("sport"),
    "market": Sort("market_type"),
}
_ARB_STEPS = (0.5, 0.0, -2.0, -10.0, -99.0)


def _leg_prices(table: Table) -> tuple[Floats, Floats]:
    def spans() -> tuple[Floats, Floats]:
        legs = [[leg["odds_american"] for leg in case] for case in table.column("legs").to_list()]
        return np.array([min(case) for case in legs], float), np.array([max(case) for case in legs], float)

    return table.kept("legs", spans)


_ARB = Kind(
    "arbitrage", ARBITRAGE,
    Shape("event_id", "market_type", ("event_name",), "oldest_odds_age_seconds", _leg_prices), _ARB_SORTS,
    (("profit_percent", "min_profit", ""),),
)  # fmt: skip


def sure(context: Context) -> Any:
    """The arbitrage list, as JSON or CSV."""
    query = context.query
    books, strange = asked(context)
    found = listed(
        context, _ARB, books, _best if query["group"] == "best" else None,
        min_profit=at_most(query["min_profit"], _ARB_STEPS),
    )  # fmt: skip
    table, rows = found.table, paged(context, found.places)
    if query["format"] == "csv":
        return _download(context, table.structs(rows) if table is not None and rows else [])
    meta = {
        "source": source(context),
        "summary": found.summary("profit", "profit_percent", by_market="market_type", by_sport="sport"),
        "filters": echo(query, "sport", "league", "sportsbook", "market", "live", "min_profit"),
        "books_analyzed": len(met(context) if books is None else met(context) & books),
    }
    shown = with_games(context, table, rows, list(table.shown(rows))) if table is not None else []
    return page(
        context, referenced(context, shown), len(rows), int(found.places.size), answer_meta(context, strange, **meta)
    )


def _best(table: Table, kept: Bools | None) -> Bools:
    """The first row of each event among those kept: the frame is in order of profit."""
    at = np.arange(table.size) if kept is None else np.flatnonzero(kept)
    _, first = np.unique(table.coded("event_id").codes[at], return_index=True)
    out = np.zeros(table.size, bool)
    out[at[first]] = True
    return out


def _download(context: Context, rows: Sequence[Any]) -> Answer:
    """Arbitrages as a file; see the module."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(_DELIMITED)
    for row in rows:
        assert isinstance(row, Arbitrage)
        head = [row.event_name, row.sport, row.market_type, row.line, row.profit_percent, row.implied_total]
        tail = [
            row.is_live, row.is_alternate_line, row.possibly_stale, ";".join(row.warnings), row.detected_at,
        ]  # fmt: skip
        for at in range(0, len(row.legs), 2):
            legs: list[Any] = []
            for leg in row.legs[at : at + 2]:
                legs += [leg.sportsbook, leg.selection, leg.odds_american, leg.stake_percent]
            legs += [None] * (8 - len(legs))
            writer.writerow([_cell(value) for value in (*head, *legs, *tail)])
    now = context.board.now
    day = "" if now is None else f"{now:%Y-%m-%d}"
    name = f'attachment; filename="arbitrage_{day}.csv"'
    return Answer(out.getvalue().encode(), type="text/csv; charset=utf-8", headers=(("content-disposition", name),))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    name = str(value)
    return f"'{name}" if _FORMULA.match(name) else name


_SORT = "Sort order: profit descending, others ascending; prefix with - to reverse."
_ARB_PARAMS: tuple[Param, ...] = (
    *COMMON, REFS,
    number("min_profit", "Minimum profit in percent.", -99.0, 1000.0, default=0.5),
    choice("format", "Response format.", ("json", "csv"), default="json"),
    choice("group", "best: only the most profitable arbitrage of each event.", ("best",)),
    choice("sort", _SORT, tuple(_ARB_SORTS), signed=True, default="profit"),
    *PAGES,
)  # fmt: skip


endpoints = (
    Endpoint(
        "/opportunities/arbitrage", sure, "Arbitrage opportunities", TAG, ArbitragePage,
        _ARB_PARAMS, feature="arbitrage",
        doc="Above 10 percent nothing is shown. As CSV each row has two legs; an arbitrage of three takes two rows.",
    ),
)  # fmt: skip
