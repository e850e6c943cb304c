"""What rows of the board are worth: fair probabilities, EV and holds."""

from typing import NamedTuple

import numpy as np

from oddsengine.columns import Floats, Ints, Longs
from oddsengine.detection.edges import edges
from oddsengine.detection.market_fair import market_fair
from oddsengine.live.replica import ReadState
from oddsengine.pricing.references import CLOSE, fair_prices, view_spec


class RowFair(NamedTuple):
    """Columns of some rows; nan where nothing is known."""

    probability: Floats  # fair, of the row's outcome, from all books
    ev: Floats  # a fraction, by all books but the row's; nan for a price that may not be bet
    hold: Floats  # of the row's book in the row's market: the sum of 1 / odds, less 1
    own: Floats  # fair probability by the book's own prices
    outcome: Longs  # equal for rows on one outcome at one line, -1 if their market is not compared
    ladder: Longs  # equal for rows of one market at any line; -1 likewise


def fair_of_rows(shown: ReadState, slots: Ints, books: frozenset[str] | None, method: str) -> RowFair:
    """Value some rows as the +EV list does, whatever their EV.

    Parameters
    ----------
    shown
        The board.
    slots
        The rows.
    books
        The books that may be bet; None for all.
    method
        ``close``, or the de-vig method of the catalog's reference books.
    """
    out = RowFair(*np.full((4, slots.size), np.nan), *np.full((2, slots.size), -1, np.int64))
    board, names = shown.board, shown.board.names
    some = board.gather(np.unique(board.rows.partition[slots]).astype(np.int64))
    g, traits = some.groups, names.tables.traits
    if not g.row.size:
        return out
    guarded = board.verdicts(g.row)
    spec = view_spec(names.books.ranked(), traits, books, None, method, None)
    estimated = board.estimated(some, guarded.reason, g.row, shown.fair)[0] if method == CLOSE else None
    depth = board.rows.price_depth(g.row, levels=False)
    view = fair_prices(g, traits, guarded, spec, board.off, board=estimated, depth=depth)
    by_slot = np.argsort(g.row)
    at = by_slot[np.minimum(np.searchsorted(g.row, slots, sorter=by_slot), g.row.size - 1)]
    found = np.flatnonzero(g.row[at] == slots)  # the other rows are in no market that is compared
    at = at[found]
    market = g.market[at].astype(np.int64)
    markets, place = np.unique(market, return_inverse=True)
    probability, ev = market_fair(view, markets), np.full(g.row.size, np.nan)
    hits = edges(view, np.zeros(markets.size, np.int64), markets, np.full(1, -np.inf))
    ev[hits.row] = hits.fair * view.columns.net[hits.row] - 1.0
    segment = np.searchsorted(g.rows, at, side="right") - 1
    out.probability[found] = probability[place, segment - g.segments[market]]
    out.ev[found], out.hold[found], out.own[found] = ev[at], view.columns.width[at], view.columns.own[at]
    out.outcome[found], out.ladder[found] = segment, g.ladder[market]
    return out
