"""Movers: the markets whose prices moved most in the last minutes, and those that books disagree about."""

import math
from typing import Annotated, Any

import msgspec
import numpy as np

from oddsengine.columns import NO_TIME, SECOND
from oddsengine.query import ORDERS, find_movers, ordered
from oddsengine_service import filters
from oddsengine_service.filters import Pages, Places
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, page
from oddsengine_service.http.params import Param
from oddsengine_service.http.problems import Problem
from oddsengine_service.routes.odds import filter_of, reading
from oddsengine_service.wire.envelopes import Page, Share
from oddsengine_service.wire.numbers import rounded
from oddsengine_service.wire.odds import Odds, odds

MOST_MINUTES = 180


class Mover(msgspec.Struct):
    """One market: the outcome that got shorter, at the line that most books quote."""

    odds: Odds  # the longest price now
    ev_percentage: float | None
    fair_probability: Share | None
    move_points: float
    probability_before: Share
    probability_now: Share
    books: int
    shorter: int
    longer: int
    spread_points: float | None


def listed(context: Context) -> dict[str, Any]:
    query: MoversQuery = context.query
    past = context.node.past
    if past is None:
        raise Problem(404, "not_found", "this process has no price history")
    missing: dict[str, list[str]] = {}
    with reading(context) as reader:
        found = filter_of(context, reader.now)
        slots = reader.matching_rows(found, missing)
        fair = reader.fair(slots, found.books, context.node.method)
        ids, decimal, usable = reader.quoted(slots)
        since = reader.now - query.minutes * 60 * SECOND
        earlier = past.recent.odds_at(ids, since if reader.now != NO_TIME else reader.now)
        moved = find_movers(fair, decimal, reader.net(slots), earlier, usable)
        if query.sort == "move":
            moved = moved.take(np.flatnonzero(moved.now > moved.before))
        total = moved.best.size
        moved = moved.take(ordered(moved, query.sort)[query.offset : query.offset + query.limit])
        rows = reader.take(slots[moved.best])
    columns = (
        fair.ev[moved.best] * 100.0, fair.probability[moved.best], (moved.now - moved.before) * 100.0, moved.before,
        moved.now, moved.books, moved.shorter, moved.longer, moved.spread * 100.0,
    )  # fmt: skip
    figures = zip(*(map(_known, column.tolist()) for column in columns), strict=True)
    shown = [Mover(row, *each) for row, each in zip(odds(rows), figures, strict=True)]
    return page(context, shown, len(shown), total, answer_meta(context, missing))


def _known(value: Any) -> Any:
    """A rounded number; None for nan."""
    if isinstance(value, int):
        return value
    return None if math.isnan(value) else rounded(value)


class MoversQuery(Pages, Places):
    """Parameters of the movers."""

    minutes: Annotated[int, Param("How far to look back, in minutes.", low=1, high=MOST_MINUTES)] = 10
    sort: Annotated[
        str,
        Param("`move`: what got shorter most first; `spread`: what books disagree about most.", choices=ORDERS),
    ] = "move"
    sportsbook: filters.Sportsbook = None
    market: filters.Market = None
    event: filters.Event = None
    live: filters.Live = None


endpoints = (
    Endpoint(
        "/odds/movers", listed, "Largest moves and disagreements", "Odds", Page[Mover],
        MoversQuery,
        doc="One row per market, of the outcome that got shorter, at the line that most books quote: the mean "
        "probability in the prices of the books that had one then and have one now (their margins included), how many "
        "of them went shorter and longer, how far the books' own fair probabilities are apart (`spread_points`), and "
        "the longest price that is left (`odds`). At least 3 books are needed. A price that the node first saw later "
        "is compared with its first one.",
    ),
)  # fmt: skip
