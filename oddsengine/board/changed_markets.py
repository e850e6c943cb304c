"""Changes: which markets of some partitions have to be searched again.

A row is pending if its price, times or verdict have changed since its market was last searched, and a market is
searched if one of its rows is. Where rows have come or gone, or are suspended or resumed, the partition is loose: all
of its markets are searched. An opportunity in a market without rows expires, because none of its rows is found.

If closing prices are estimated, an estimate also depends on the momentum of its ladder, the start of the event, and the
markets on neighbouring lines. These are compared for ladders in which a market has changed; elsewhere only time changes
an estimate, and `Board.due` says when.

Columns of the kernels:

- `markets`, `segments`, `rows`, `row`, `market`, `threshold`, `ladder`, `equivalent`: as in `Groups`
- `two`, `three`, `totals`: as in `Curves`
- `changed` (uint8 per market): `_CHANGED`, `_BY_EQUIVALENT` (middles of its ladder stay) or 0
- `ladders`, `needed` (uint8 per ladder, per market): 1 if middles are searched; if these searches need the fair
  probabilities
"""

import numpy as np

from oddsengine._jit import kernel
from oddsengine.board.rows import Rows
from oddsengine.columns import Bytes, Floats, Int, Ints, Longs
from oddsengine.detection.sweep import Scope
from oddsengine.detection.tails import Curves
from oddsengine.identity.groups import Groups
from oddsengine.identity.layout import PartitionColumns
from oddsengine.pricing.close import CloseInput as Estimated
from oddsengine.pricing.close_table import neighbours

IN_MARKETS, IN_LADDERS = 1, 2  # bits: the market of a row is searched, or its ladder for middles
ELSEWHERE = 3  # a row that is not gathered belongs to every scope

_CHANGED, _BY_EQUIVALENT = 1, 2  # a market has changed, or only one that is linked to it by equivalent outcomes
REPRICED, JUDGED, TIMED = 1, 2, 4  # bits: why a row is pending: it changed, its verdict did, or only its time


@kernel
def _changed(
    markets: Longs, segments: Longs, rows: Longs, row: Ints, pending: Bytes, is_whole: Bytes, changed: Bytes
) -> None:
    """Find the markets with a row that is pending; in whole ladders, all have changed.

    - `pending` (uint8 per slot): as in `Rows`
    - `is_whole` (uint8 per ladder): 1 if any of its markets may have changed
    """
    for at in range(markets.size - 1):
        for m in range(markets[at], markets[at + 1]):
            changed[m] = _CHANGED if is_whole[at] != 0 else 0
            for i in range(rows[segments[m]], rows[segments[m + 1]]):
                if pending[row[i]] != 0:
                    changed[m] = _CHANGED


@kernel
def _near(
    ladders: Bytes, is_renewed: Bytes, markets: Longs, threshold: Ints, slope: Floats, neighbour_distance: Int,
    changed: Bytes, out: Bytes,
) -> None:  # fmt: skip
    """Add to the changed markets of some ladders those beside them, and all of a ladder that is renewed.

    - `is_renewed` (uint8 per ladder): 1 if its momentum or start is another
    - `slope` (float64 per ladder): logits per point of a line
    - `neighbour_distance`: largest distance of a neighbouring line, hundredths
    - `out` (uint8 per market): as `changed`, to write
    """
    for at in range(markets.size - 1):
        if ladders[at] == 0:
            continue
        first, end = markets[at], markets[at + 1]
        for m in range(first, end):
            if is_renewed[at] != 0:
                out[m] = _CHANGED
            elif changed[m] != 0 and not np.isnan(slope[at]):
                for other_market in range(first, end):
                    if abs(threshold[other_market] - threshold[m]) <= neighbour_distance:
                        out[other_market] = _CHANGED


@kernel
def _spread(
    markets: Longs, segments: Longs, rows: Longs, market: Ints, equivalent: Longs, two: Longs, three: Longs,
    totals: Longs, changed: Bytes, ladders: Bytes, needed: Bytes,
) -> None:  # fmt: skip
    """Add the equivalent outcomes of changed markets, and find the ladders whose tails depend on changed markets.

    An opportunity may have legs of several markets: those that are linked by equivalent outcomes, also through others,
    are searched together. `needed` is set to 1 for the markets whose fair probabilities these searches use.
    """
    is_spreading = equivalent.size > 0
    while is_spreading:
        is_spreading = False
        for m in range(changed.size):
            for s in range(segments[m], segments[m + 1]):
                t = equivalent[s]
                while t != s:
                    # A segment's market is looked up through its rows; one of two that are linked may have none.
                    if rows[t] < rows[t + 1] and (changed[m] == 0) != (changed[market[rows[t]]] == 0):
                        changed[m if changed[m] == 0 else market[rows[t]]] = _BY_EQUIVALENT
                        is_spreading = True
                    t = equivalent[t]
    for at in range(markets.size - 1):
        ladders[at] = 0
        for m in range(markets[at], markets[at + 1]):
            if changed[m] == _CHANGED:
                ladders[at] = 1
    for at in range(markets.size - 1):
        if ladders[at] == 0:
            is_linked = two[at] >= 0 and changed[two[at]] == _CHANGED
            is_linked |= three[at] >= 0 and changed[three[at]] == _CHANGED
            if totals[at] >= 0:
                for m in range(markets[totals[at]], markets[totals[at] + 1]):
                    is_linked |= changed[m] == _CHANGED
            ladders[at] = 1 if is_linked else 0
    for m in range(changed.size):
        needed[m] = changed[m] != 0
    for at in range(markets.size - 1):
        if ladders[at] == 0:
            continue
        for m in range(markets[at], markets[at + 1]):
            needed[m] = 1
        if two[at] >= 0:
            needed[two[at]] = 1
        if three[at] >= 0:
            needed[three[at]] = 1
        if totals[at] >= 0:
            for m in range(markets[totals[at]], markets[totals[at] + 1]):
                needed[m] = 1
    for s in range(equivalent.size):
        if rows[s] < rows[s + 1] and changed[market[rows[s]]] != 0:
            t = equivalent[s]
            while t != s:
                if rows[t] < rows[t + 1]:
                    needed[market[rows[t]]] = 1
                t = equivalent[t]


@kernel
def _reach(row: Ints, market: Ints, ladder: Ints, is_searched: Bytes, ladders: Bytes, reach: Bytes) -> None:
    """Per slot of a gathered row: whether its market is searched, and its ladder.

    - `is_searched` (uint8 per market): 1 if it is searched
    - `reach` (uint8 per slot, out): `IN_MARKETS` and `IN_LADDERS`
    """
    for i in range(row.size):
        m = market[i]
        reach[row[i]] = (IN_MARKETS if is_searched[m] != 0 else 0) | (IN_LADDERS if ladders[ladder[m]] != 0 else 0)


@kernel
def _loosen(
    segments: Longs, rows: Longs, live: Bytes, ladder: Ints, ladder_partition: Ints, book: Ints, changed: Bytes,
    has_change: Bytes, has_one: Bytes,
) -> None:  # fmt: skip
    """Mark all markets of partitions as changed in which one has changed and a book quotes one side only.

    - `live`, `book`: as in `Groups`
    - `ladder_partition` (per ladder): the partition
    - `has_change`, `has_one` (uint8 per partition): scratch arrays of zeros
    """
    for m in range(segments.size - 1):
        partition, s = ladder_partition[ladder[m]], segments[m]
        if changed[m] != 0:
            has_change[partition] = 1
        if has_one[partition] != 0 or segments[m + 1] - s != 2 or live[ladder[m]] != 0:
            continue
        i, j = rows[s], rows[s + 1]
        while has_one[partition] == 0 and (i < rows[s + 1] or j < rows[s + 2]):
            if i == rows[s + 1] or j == rows[s + 2] or book[i] != book[j]:
                has_one[partition] = 1
                break
            b = book[i]
            while i < rows[s + 1] and book[i] == b:
                i += 1
            while j < rows[s + 2] and book[j] == b:
                j += 1
    for m in range(segments.size - 1):
        partition = ladder_partition[ladder[m]]
        if has_change[partition] != 0 and has_one[partition] != 0:
            changed[m] = _CHANGED


def since_last_search(some: PartitionColumns, loose: Bytes, rows: Rows, due: Bytes | None = None) -> Bytes:
    """Markets of some partitions that have changed since they were last searched: `_CHANGED` or 0.

    `loose` is 1 for those of the partitions in which rows came or went. `due` is 1 for partitions that have changed
    through time alone; it is given if closing prices are estimated.
    """
    g, changed = some.groups, np.empty(some.groups.threshold.size, np.uint8)
    whole = loose if due is None else loose | due[some.partitions]
    _changed(g.markets, g.segments, g.rows, g.row, rows.pending, whole[some.ladder_partition], changed)
    return changed


def loosen(some: PartitionColumns, changed: Bytes) -> Bytes:
    """Add the markets that change if one-sided prices are estimated.

    Every price of a partition affects the margins in it, so one change there changes all its markets.
    """
    g, partitions, out = some.groups, some.partitions.size, changed.copy()
    _loosen(
        g.segments, g.rows, g.live, g.ladder, some.ladder_partition, g.book, out, np.zeros(partitions, np.uint8),
        np.zeros(partitions, np.uint8),
    )  # fmt: skip
    return out


def remember(some: PartitionColumns, rows: Rows) -> None:
    """Some partitions were searched."""
    rows.pending[some.groups.row] = 0
    rows.pending[some.out] = 0


@kernel
def _voting(ladder: Ints, segments: Longs, rows: Longs, is_searched: Bytes, needed: Bytes, out: Bytes) -> None:
    """Flag the ladders with a market that is searched, or that is needed and lacks an outcome.

    - `is_searched` (uint8 per market): 1 if it is searched
    - `out` (uint8 per ladder): flags
    """
    for m in range(ladder.size):
        is_voting = is_searched[m] != 0
        for s in range(segments[m], segments[m + 1] if needed[m] != 0 else segments[m]):
            is_voting |= rows[s] == rows[s + 1]
        if is_voting:
            out[ladder[m]] = 1


def voting(some: PartitionColumns, changed: Bytes, curves: Curves, *, stored: bool) -> Bytes:
    """Ladders whose votes a search may need; if estimates are stored, those of other whole markets are reused."""
    g, out = some.groups, np.zeros(some.groups.event.size, np.uint8)
    where = scope(some, ladders_with(g, changed)[g.ladder], curves)
    _voting(g.ladder, g.segments, g.rows, where.markets if stored else where.fair, where.fair, out)
    return out


def at_close(some: PartitionColumns, changed: Bytes, board: Estimated, is_renewed: Bytes) -> Bytes:
    """Add the markets of the changed ladders whose closing price depends on a change elsewhere.

    `is_renewed` is 1 for ladders whose momentum or start is another.
    """
    g, out = some.groups, changed.copy()
    slope = board.of.lines.slope[g.kind, board.of.lines.sport[g.event]]
    _near(
        ladders_with(g, changed), is_renewed, g.markets, g.threshold, slope, neighbours(board.of.table), changed, out,
    )  # fmt: skip
    return out


def ladders_with(g: Groups, changed: Bytes) -> Bytes:
    """Ladders with at least one changed market."""
    out = np.zeros(g.event.size, np.uint8)
    out[g.ladder[changed != 0]] = 1
    return out


def scope(some: PartitionColumns, changed: Bytes, curves: Curves) -> Scope:
    """Where to search: changed markets, their equivalent outcomes, and the ladders whose tails depend on them."""
    g, n = some.groups, some.groups.threshold.size
    out = Scope(changed.copy(), np.empty(g.event.size, np.uint8), np.empty(n, np.uint8))
    _spread(
        g.markets, g.segments, g.rows, g.market, g.equivalent, curves.two, curves.three, curves.totals,
        out.markets, out.ladders, out.fair,
    )  # fmt: skip
    return out


def reach(some: PartitionColumns, scope: Scope, out: Bytes) -> None:
    """Write the scopes of the gathered rows to `out`, one byte per slot."""
    g = some.groups
    _reach(g.row, g.market, g.ladder, scope.markets, scope.ladders, out)
