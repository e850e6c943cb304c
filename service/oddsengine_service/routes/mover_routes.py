"""Movers: the markets whose prices moved most in the last minutes, and those where books disagree."""

from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from oddsengine.columns import NO_TIME, SECOND
from oddsengine.maths.rounding import exact
from oddsengine.query import ORDERS, Movers, find_movers, ordered
from oddsengine.tables.timestamps import timestamps
from oddsengine_service.errors import Problem
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, page
from oddsengine_service.http.params import Param
from oddsengine_service.routes.odds_routes import filter_of, reading
from oddsengine_service.shared_params import Pages, Prices
from oddsengine_service.wire.envelopes import Counted, PageWith, Share
from oddsengine_service.wire.numbers import known, percent
from oddsengine_service.wire.odds_response import Odds, odds

MOST_MINUTES = 180


class Mover(msgspec.Struct):
    """One market: the outcome that shortened most, at the line that most books quote."""

    odds: Odds  # the best price now
    ev_percentage: float | None
    fair_probability: Share | None
    move_points: float
    probability_before: Share
    probability_now: Share
    books: int
    shorter: int
    longer: int
    spread_points: float | None


class MoversMeta(Counted, kw_only=True):
    """The time with which prices are compared."""

    since: Annotated[str | None, Meta(description="Later than `minutes` ago if the node has no older prices.")]


class MoversPage(PageWith[Mover, MoversMeta]):
    """A page of movers."""


def listed(context: Context) -> dict[str, Any]:
    query: MoversQuery = context.query
    past = context.node.past
    if past is None:
        raise Problem(404, "not_found", "this process has no price history")
    missing: dict[str, list[str]] = {}
    with reading(context) as reader:
        found = filter_of(context, reader.now)
        slots = reader.matching_rows(found, missing)
        since = reader.now - query.minutes * 60 * SECOND if reader.now != NO_TIME else reader.now
        ids, decimal, usable = reader.quoted(slots)
        earlier = past.recent.odds_at(slots, ids, since)
        if query.sort == "move":  # most of a board has not moved, and need not be valued
            some = reader.beside(slots, decimal < earlier)
            slots, decimal, usable, earlier = slots[some], decimal[some], usable[some], earlier[some]
        fair = reader.fair(slots, found.books, context.node.boards.method)
        moved = find_movers(fair, decimal, reader.net(slots), earlier, usable)
        if query.sort == "move":
            moved = moved.take(np.flatnonzero(moved.now > moved.before))
        total = moved.best.size
        moved = moved.take(ordered(moved, query.sort)[query.offset : query.offset + query.limit])
        rows = reader.take(slots[moved.best])
    values = zip(odds(rows), fair.ev[moved.best].tolist(), fair.probability[moved.best].tolist(), strict=True)
    shown = [_mover(*each, moved, at) for at, each in enumerate(values)]
    known_since = max(since, past.recent.since)
    begins = timestamps(np.array([known_since]))[0] if NO_TIME not in (since, past.recent.since) else None
    return page(context, shown, len(shown), total, answer_meta(context, missing, since=begins))


def _mover(row: Odds, ev: float, share: float, moved: Movers, at: int) -> Mover:
    before, now = float(moved.before[at]), float(moved.now[at])
    return Mover(
        row, percent(ev), known(share), exact(100.0 * (now - before)), exact(before), exact(now), int(moved.books[at]),
        int(moved.shorter[at]), int(moved.longer[at]), percent(float(moved.spread[at])),
    )  # fmt: skip


class MoversQuery(Pages, Prices):
    """Parameters of the movers."""

    minutes: Annotated[int, Param("How far to look back, in minutes.", low=1, high=MOST_MINUTES)] = 10
    sort: Annotated[
        str,
        Param("`move`: largest moves first; `spread`: largest disagreements between books first.", choices=ORDERS),
    ] = "move"


endpoints = (
    Endpoint(
        "/odds/movers", listed, "Movers: largest moves and disagreements", "Odds", MoversPage,
        MoversQuery,
        doc="One row per market, for the outcome that shortened most, at the line that most books quote: the average "
        "implied probability (margin included) of the books with a price both then and now, how many of them shortened "
        "(`shorter`) and drifted (`longer`), the gap between the books' highest and lowest no-vig probability "
        "(`spread_points`), and the best price left (`odds`). At least 3 books are needed. A price first seen after "
        "that time is compared with its first value. `sort=move` has only prices that shortened.",
    ),
)  # fmt: skip
