"""Changes: which markets of some units have changed since they were last searched.

A market has a mark: a hash of everything a search of it depends on. Each of its rows stores 32 bits of it, different
ones for every row, and a row that moves forgets them. If all rows of a market still match its current mark, a search
would give the same result, so a step searches only the other markets. An opportunity in a market without rows expires,
because none of its rows is found.

If closing prices are estimated, a second mark covers what an estimate depends on outside its own market: the momentum
of the ladder, the start of the event, and the markets on neighbouring lines. It is compared for ladders in which a
market has changed; elsewhere only time changes an estimate, and `Board.due` says when.

Columns of the kernels:

- `markets`, `segments`, `rows`, `row`, `market`, `side`, `threshold`, `kind`, `subject`, `ladder`, `live`, `seen`,
  `twin`: as in `Groups`
- `two`, `three`, `totals`: as in `Curves`
- `reason`, `not_reference`, `doubt`: as in `Verdicts`
- `slot`: slot of a row on the board
- `parts` (uint32 per slot): the part of its market's mark that a row stores, 0 if none; one array for the first
  marks and one for the second
- `marks`, `close_marks` (uint64 per market): the first marks, and the second
- `changed` (uint8 per market): `_CHANGED`, `_BY_TWIN` (it does not spread further) or 0
- `ladders`, `needed` (uint8 per ladder, per market): 1 if middles are searched; if these searches need the fair
  probabilities
"""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import kernel
from oddsengine.board.rows import Rows
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import EARLIEST, LATEST
from oddsengine.detection.sweep import Scope
from oddsengine.detection.tails import Curves
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import NO_TIME, Bytes, Groups, Words, step
from oddsengine.identity.layout import UnitColumns
from oddsengine.pricing.close import CloseInput as Estimated
from oddsengine.pricing.close import neighbours

IN_MARKETS, IN_LADDERS = 1, 2  # bits: the market of a row is searched, or its ladder for middles
ELSEWHERE = 3  # a row that is not gathered belongs to every scope


_CHANGED, _BY_TWIN = 1, 2  # a market has changed, or only a twin of it
_TWO_WAY, _THREE_WAY, _TOTAL = 1, 2, 4  # bits: the markets that a ladder has beside it
# Places of a row's bits in its hash, after those of its reason.
_NOT_REFERENCE_AT, _DOUBT_AT, _SIDE_AT, _RECENT_AT, _SLOT_AT = 8, 9, 10, 15, 16


class Changes(NamedTuple):
    """Markets that have changed, and the marks to store after the step."""

    markets: Bytes  # per market
    marks: Words  # per market
    close: Words | None = None  # second marks, if closing prices are estimated; 0: as stored


@kernel
def _part(mark, slot):
    """The part of a market's mark that a row stores; never 0.

    `mark` is the mark.
    """
    return max(np.uint32(step(mark, np.uint64(slot)) >> np.uint64(32)), np.uint32(1))


@kernel
def _same(mark, row, first, end, parts):
    """Whether all rows of a market, at least one, store parts of its mark.

    `mark` is the mark; the market's rows are those from `first` to `end`.
    """
    for i in range(first, end):
        if parts[row[i]] != _part(mark, row[i]):
            return False
    return first < end


@kernel
def _mark(
    markets, segments, rows, row, side, threshold, kind, subject, live, odds_bits, seen, ids, reason, not_reference,
    doubt, twin, two, three, totals, parts, gap, live_limit, with_close, price_changed, start, marks, changed,
):  # fmt: skip
    """Compute the marks of all markets, and find those where they differ from those of the last search.

    Times are included only if they can decide something: in play, or if those of a ladder are further apart than an
    opportunity allows. Of the other markets a market depends on (the lines of its ladder, a moneyline, a total, twins)
    only the presence is included; their own rows show whether they changed. With `with_close`, the last price change
    and the start of the event are included too.

    - `odds_bits` (uint64 per row): the prices
    - `ids` (uint64 per slot): ids of the rows
    - `gap`: gap allowed between the times of legs, microseconds
    - `live_limit`: the time since which a live leg must have been seen
    - `price_changed`, `start` (int64 per slot): last price change, and start of the event
    """
    for at in range(markets.size - 1):
        first, end = rows[segments[markets[at]]], rows[segments[markets[at + 1]]]
        is_live = live[at] != 0
        is_timed = is_live
        if not is_live:
            earliest, latest = np.int64(LATEST), np.int64(EARLIEST)
            for i in range(first, end):
                if reason[i] == ACCEPTED and seen[i] != NO_TIME:
                    earliest, latest = min(earliest, seen[i]), max(latest, seen[i])
            is_timed = latest > earliest and latest - earliest > gap
        h0 = step(np.uint64(1) if is_timed else np.uint64(0), np.uint64(kind[at]))
        h0 = step(h0, np.uint64(subject[at]))
        links = (
            (_TWO_WAY if two[at] >= 0 else 0)
            | (_THREE_WAY if three[at] >= 0 else 0)
            | (_TOTAL if totals[at] >= 0 else 0)
        )
        h0 = step(h0, np.uint64(links))
        for m in range(markets[at], markets[at + 1]):
            h0 = step(h0, np.uint64(np.int64(threshold[m])))
        for m in range(markets[at], markets[at + 1]):
            a, b = rows[segments[m]], rows[segments[m + 1]]
            h = step(h0, np.uint64(np.int64(threshold[m])))
            for s in range(segments[m], segments[m + 1] if twin.size else segments[m]):
                t = twin[s]
                while t != s:
                    h = step(h, np.uint64(1) if rows[t] < rows[t + 1] else np.uint64(0))
                    t = twin[t]
            for i in range(a, b):
                r = row[i]
                bits = (
                    np.uint64(reason[i])
                    | np.uint64(not_reference[i]) << np.uint64(_NOT_REFERENCE_AT)
                    | np.uint64(doubt[i]) << np.uint64(_DOUBT_AT)
                )
                bits |= np.uint64(side[i]) << np.uint64(_SIDE_AT) | np.uint64(r) << np.uint64(_SLOT_AT)
                if is_live and seen[i] >= live_limit:
                    bits |= np.uint64(1) << np.uint64(_RECENT_AT)
                time = np.uint64(seen[i]) if is_timed else np.uint64(0)
                h = step(h ^ ids[r] ^ (time << np.uint64(7)), np.uint64(odds_bits[i]) ^ (bits << np.uint64(20)))
                if with_close:
                    h = step(step(h, np.uint64(price_changed[r])), np.uint64(start[r]))
            marks[m] = max(h, np.uint64(1))
            changed[m] = 0 if _same(marks[m], row, a, b, parts) else _CHANGED


@kernel
def _close_marks(
    chosen_ladders, markets, segments, rows, row, threshold, slope, neighbour_distance, start, momentum_bits, marks,
    parts, close_marks, changed,
):  # fmt: skip
    """Compute the second marks of the chosen ladders; markets where they differ have changed too.

    - `chosen_ladders` (uint8 per ladder): 1 for those to compute
    - `slope` (float64 per ladder): logits per point of a line
    - `neighbour_distance`: largest distance of a neighbouring line, hundredths
    - `start` (int64 per ladder), `momentum_bits` (uint64, ladders by components): start and momentum
    """
    for at in range(markets.size - 1):
        if chosen_ladders[at] == 0:
            continue
        h0 = step(np.uint64(2), np.uint64(start[at]))
        for k in range(momentum_bits.shape[1]):
            h0 = step(h0, np.uint64(momentum_bits[at, k]))
        for m in range(markets[at], markets[at + 1]):
            a, b = rows[segments[m]], rows[segments[m + 1]]
            h = h0
            if not np.isnan(slope[at]):
                for other_market in range(markets[at], markets[at + 1]):
                    if other_market != m and abs(threshold[other_market] - threshold[m]) <= neighbour_distance:
                        h = step(h, marks[other_market])
            close_marks[m] = max(h, np.uint64(1))
            if not _same(close_marks[m], row, a, b, parts):
                changed[m] = _CHANGED


@kernel
def _store(marks, row, market, other_slots, parts):
    """Store the marks of some markets in their rows; rows that were left out have none.

    `other_slots` are those of the rows that were left out.
    """
    for i in range(row.size):
        if marks[market[i]] != np.uint64(0):
            parts[row[i]] = _part(marks[market[i]], row[i])
    for slot in other_slots:
        parts[slot] = 0


@kernel
def _spread(markets, rows, market, twin, two, three, totals, changed, ladders, needed):
    """Add the twins of changed markets, and find the ladders whose tails depend on changed markets.

    `needed` is set to 1 for the markets whose fair probabilities these searches use.
    """
    for s in range(twin.size):
        t = twin[s]
        while t != s:
            # A segment's market is looked up through its rows, so empty segments are skipped.
            if rows[t] < rows[t + 1] and changed[market[rows[t]]] == _CHANGED and rows[s] < rows[s + 1]:
                m = market[rows[s]]
                if changed[m] == 0:
                    changed[m] = _BY_TWIN
                break
            t = twin[t]
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
    for s in range(twin.size):
        if rows[s] < rows[s + 1] and changed[market[rows[s]]] != 0:
            t = twin[s]
            while t != s:
                if rows[t] < rows[t + 1]:
                    needed[market[rows[t]]] = 1
                t = twin[t]


@kernel
def _reach(row, market, ladder, is_searched, ladders, reach):
    """Per slot of a gathered row: whether its market is searched, and its ladder.

    - `is_searched` (uint8 per market): 1 if it is searched
    - `reach` (uint8 per slot, out): `IN_MARKETS` and `IN_LADDERS`
    """
    for i in range(row.size):
        m = market[i]
        reach[row[i]] = (IN_MARKETS if is_searched[m] != 0 else 0) | (IN_LADDERS if ladders[ladder[m]] != 0 else 0)


def since_last_search(
    some: UnitColumns, guarded: Verdicts, curves: Curves, rows: Rows, due: Bytes | None = None
) -> Changes:
    """Find what has changed in some units since they were last searched.

    `due` is 1 for units that have changed through time alone; it is given if closing prices are estimated.
    """
    g, limits = some.groups, guarded.limits
    marks, changed = np.empty(g.threshold.size, np.uint64), np.empty(g.threshold.size, np.uint8)
    fresh = NO_TIME if guarded.now == NO_TIME else guarded.now - round(limits.stale_live_leg_s * 1e6)
    _mark(
        g.markets, g.segments, g.rows, g.row, g.side, g.threshold, g.kind, g.subject, g.live,
        g.odds.view(np.int64), g.seen, rows.id, guarded.reason, guarded.not_reference, guarded.doubt, g.twin,
        curves.two, curves.three, curves.totals, rows.mark,
        round(limits.stale_prematch_gap_s * 1e6), fresh, due is not None, rows.changed, rows.start, marks,
        changed,
    )  # fmt: skip
    if due is not None:
        changed |= due[some.units][some.ladder_unit][g.ladder]
    return Changes(changed, marks)


def remember(changes: Changes, some: UnitColumns, rows: Rows) -> None:
    """Store the marks of some units for the next search."""
    _store(changes.marks, some.groups.row, some.groups.market, some.out, rows.mark)
    if changes.close is not None:
        _store(changes.close, some.groups.row, some.groups.market, some.out, rows.close_mark)


@kernel
def _voting(ladder, segments, rows, is_searched, needed, out):
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


def voting(some: UnitColumns, changes: Changes, curves: Curves, *, stored: bool) -> Bytes:
    """Ladders whose votes a search may need; if estimates are stored, those of other whole markets are reused."""
    g, out = some.groups, np.zeros(some.groups.event.size, np.uint8)
    where = scope(some, _ladders(g, changes)[g.ladder], curves)
    _voting(g.ladder, g.segments, g.rows, where.markets if stored else where.fair, where.fair, out)
    return out


def at_close(some: UnitColumns, changes: Changes, board: Estimated, rows: Rows) -> Changes:
    """Add the markets of the changed ladders whose closing price depends on a change in another market."""
    g, momentum = some.groups, board.momentum
    sport = board.of.lines.sport[g.event]
    close, changed = np.zeros(changes.marks.size, np.uint64), changes.markets.copy()
    _close_marks(
        _ladders(g, changes), g.markets, g.segments, g.rows, g.row, g.threshold, board.of.lines.slope[g.kind, sport],
        neighbours(board.of.table), board.times.start,
        (np.zeros((g.event.size, 1)) if momentum is None else momentum).view(np.int64), changes.marks,
        rows.close_mark, close, changed,
    )  # fmt: skip
    return changes._replace(markets=changed, close=close)


def _ladders(g: Groups, changes: Changes) -> Bytes:
    """Ladders with at least one changed market."""
    out = np.zeros(g.event.size, np.uint8)
    out[g.ladder[changes.markets != 0]] = 1
    return out


def scope(some: UnitColumns, changed: Bytes, curves: Curves) -> Scope:
    """Where to search: changed markets, their twins, and the ladders whose tails depend on them."""
    g, n = some.groups, some.groups.threshold.size
    out = Scope(changed.copy(), np.empty(g.event.size, np.uint8), np.empty(n, np.uint8))
    _spread(
        g.markets, g.rows, g.market, g.twin, curves.two, curves.three, curves.totals,
        out.markets, out.ladders, out.fair,
    )  # fmt: skip
    return out


def reach(some: UnitColumns, scope: Scope, out: Bytes) -> None:
    """Write the scopes of the gathered rows to `out`, one byte per slot."""
    g = some.groups
    _reach(g.row, g.market, g.ladder, scope.markets, scope.ladders, out)
