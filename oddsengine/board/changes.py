"""Changes: which markets of some units have changed since they were last searched.

A market has a mark: a hash of everything a search of it depends on. Each of its rows stores 32 bits of it, different
ones for every row, and a row that moves forgets them. If all rows of a market still match its current mark, a search
would give the same result, so a step searches only the other markets. An opportunity in a market without rows expires,
because none of its rows is found.

If closing prices are estimated, a second mark covers what an estimate depends on outside its own market: the momentum
of the ladder, the start of the event, and the markets on neighbouring lines. It is compared for ladders in which a
market has changed; elsewhere only time changes an estimate, and `Board.due` says when.
"""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import kernel
from oddsengine.board.rows import Rows
from oddsengine.detection.sweep import Scope
from oddsengine.detection.tails import Curves
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import NO_TIME, Bytes, Groups, Words, step
from oddsengine.identity.layout import UnitColumns
from oddsengine.pricing.close import CloseInput as Estimated
from oddsengine.pricing.close import neighbours

ELSEWHERE = 3  # a row that is not gathered belongs to every scope


class Changes(NamedTuple):
    """Markets that have changed, and the marks to store after the step."""

    markets: Bytes  # per market
    marks: Words  # per market
    close: Words | None = None  # second marks, if closing prices are estimated; 0: as stored


@kernel
def _part(mark, slot):
    """The part of a market's mark that a row stores; never 0."""
    return max(np.uint32(step(mark, np.uint64(slot)) >> np.uint64(32)), np.uint32(1))


@kernel
def _same(mark, row, first, end, stored):
    """Whether all rows of a market, at least one, store parts of its mark."""
    for i in range(first, end):
        if stored[row[i]] != _part(mark, row[i]):
            return False
    return first < end


@kernel
def _mark(
    markets, segments, rows, row, side, threshold, kind, subject, live, odds_bits, seen, ids, reason, not_reference,
    doubt, twin, two, three, totals, mark, gap, fresh, at_close, moved, begins, out, changed,
):  # fmt: skip
    """Compute the marks of all markets, and find those where they differ from those of the last search.

    Times are included only if they can decide something: in play, or if those of a ladder are further apart than an
    opportunity allows. Of the other markets a market depends on (the lines of its ladder, a moneyline, a total, twins)
    only the presence is included; their own rows show whether they changed. With `at_close`, the last price change
    and the start of the event are included too.
    """
    for at in range(markets.size - 1):
        first, end = rows[segments[markets[at]]], rows[segments[markets[at + 1]]]
        playing = live[at] != 0
        timed = playing
        if not playing:
            low, high = np.int64(9223372036854775807), np.int64(-9223372036854775808)
            for i in range(first, end):
                if reason[i] == 0 and seen[i] != NO_TIME:
                    low, high = min(low, seen[i]), max(high, seen[i])
            timed = high > low and high - low > gap
        h0 = step(np.uint64(1) if timed else np.uint64(0), np.uint64(kind[at]))
        h0 = step(h0, np.uint64(subject[at]))
        beside = (1 if two[at] >= 0 else 0) | (2 if three[at] >= 0 else 0) | (4 if totals[at] >= 0 else 0)
        h0 = step(h0, np.uint64(beside))
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
                    | np.uint64(not_reference[i]) << np.uint64(8)
                    | np.uint64(doubt[i]) << np.uint64(9)
                )
                bits |= np.uint64(side[i]) << np.uint64(10) | np.uint64(r) << np.uint64(16)
                if playing and seen[i] >= fresh:
                    bits |= np.uint64(1) << np.uint64(15)
                time = np.uint64(seen[i]) if timed else np.uint64(0)
                h = step(h ^ ids[r] ^ (time << np.uint64(7)), np.uint64(odds_bits[i]) ^ (bits << np.uint64(20)))
                if at_close:
                    h = step(step(h, np.uint64(moved[r])), np.uint64(begins[r]))
            out[m] = max(h, np.uint64(1))
            changed[m] = 0 if _same(out[m], row, a, b, mark) else 1


@kernel
def _close_marks(
    chosen, markets, segments, rows, row, threshold, slope, near, start, momentum_bits, marks, mark, out, changed
):
    """Compute the second marks of the chosen ladders; markets where they differ have changed too."""
    for at in range(markets.size - 1):
        if chosen[at] == 0:
            continue
        h0 = step(np.uint64(2), np.uint64(start[at]))
        for k in range(momentum_bits.shape[1]):
            h0 = step(h0, np.uint64(momentum_bits[at, k]))
        for m in range(markets[at], markets[at + 1]):
            a, b = rows[segments[m]], rows[segments[m + 1]]
            h = h0
            if not np.isnan(slope[at]):
                for other in range(markets[at], markets[at + 1]):
                    if other != m and abs(threshold[other] - threshold[m]) <= near:
                        h = step(h, marks[other])
            out[m] = max(h, np.uint64(1))
            if not _same(out[m], row, a, b, mark):
                changed[m] = 1


@kernel
def _store(marks, row, market, left_out, stored):
    """Store the marks of some markets in their rows; rows that were left out have none."""
    for i in range(row.size):
        if marks[market[i]] != np.uint64(0):
            stored[row[i]] = _part(marks[market[i]], row[i])
    for slot in left_out:
        stored[slot] = 0


@kernel
def _spread(markets, segments, rows, market, ladder, twin, two, three, totals, changed, ladders, needed):
    """Add the twins of changed markets, and find the ladders whose tails depend on changed markets.

    `needed` is set to 1 for the markets whose fair probabilities these searches use.
    """
    for s in range(twin.size):
        t = twin[s]
        while t != s:
            # A segment's market is looked up through its rows, so empty segments are skipped.
            if rows[t] < rows[t + 1] and changed[market[rows[t]]] == 1 and rows[s] < rows[s + 1]:
                m = market[rows[s]]
                if changed[m] == 0:
                    changed[m] = 2  # changed only through a twin: does not spread further
                break
            t = twin[t]
    for at in range(markets.size - 1):
        ladders[at] = 0
        for m in range(markets[at], markets[at + 1]):
            if changed[m] == 1:
                ladders[at] = 1
    for at in range(markets.size - 1):
        if ladders[at] == 0:
            linked = two[at] >= 0 and changed[two[at]] == 1
            linked |= three[at] >= 0 and changed[three[at]] == 1
            if totals[at] >= 0:
                for m in range(markets[totals[at]], markets[totals[at] + 1]):
                    linked |= changed[m] == 1
            ladders[at] = 1 if linked else 0
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
def _reach(row, market, ladder, markets, ladders, reach):
    """Per slot of a gathered row: 1 if its market is searched, plus 2 if its ladder is."""
    for i in range(row.size):
        m = market[i]
        reach[row[i]] = (1 if markets[m] != 0 else 0) | (2 if ladders[ladder[m]] != 0 else 0)


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
def _voting(ladder, segments, rows, searched, needed, out):
    """Flag the ladders with a market that is searched, or that is needed and lacks an outcome."""
    for m in range(ladder.size):
        votes = searched[m] != 0
        for s in range(segments[m], segments[m + 1] if needed[m] != 0 else segments[m]):
            votes |= rows[s] == rows[s + 1]
        if votes:
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
        g.markets, g.segments, g.rows, g.market, g.ladder, g.twin, curves.two, curves.three, curves.totals,
        out.markets, out.ladders, out.fair,
    )  # fmt: skip
    return out


def reach(some: UnitColumns, scope: Scope, out: Bytes) -> None:
    """Write the scopes of the gathered rows to `out`, one byte per slot."""
    g = some.groups
    _reach(g.row, g.market, g.ladder, scope.markets, scope.ladders, out)
