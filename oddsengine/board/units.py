"""Units: rows that are judged and searched together, and `gather`, which sorts some units into a small board.

A unit contains the rows of one event and live flag that any guard or detector combines: the moneyline and spreads of
one period (with its totals if the distribution of the margin depends on them), or one other kind of market. `gather`
sorts the rows of some units into `Groups`, in the same order as the rows of a table. The unit's list is left in that
order, which makes the next sort faster.
"""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import kernel
from oddsengine.board.names import Names
from oddsengine.board.rows import Rows
from oddsengine.groups import NO_TIME, Bytes, Groups, Ints, Longs
from oddsengine.identity import DRAW, MAYBE_DRAW, moneyline
from oddsengine.reasons import CODES
from oddsengine.twins import linked


class Units:
    """The rows of each unit: lists of slots in one pool."""

    def __init__(self) -> None:
        self.start = np.zeros(256, np.int64)
        self.size = np.zeros(256, np.int32)
        self.room = np.zeros(256, np.int32)
        self.pool = np.empty(4096, np.int32)
        self.end = 0  # end of the used part of the pool
        self.dirty = np.zeros(256, np.uint8)
        self.wake = np.full(256, NO_TIME)  # earliest time at which time alone can change a result
        self.until = np.zeros(256, np.int64)  # a price seen again later may be too far from another in time

    def count(self, units: int) -> None:
        """Allocate columns for this many units."""
        if units > self.start.size:
            more = max(units, 2 * self.start.size) - self.start.size
            for name in ("start", "size", "room", "dirty", "until", "wake"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate((old, np.full(more, NO_TIME if name == "wake" else 0, old.dtype))))

    def enrol(self, slots: Ints, unit: Ints) -> None:
        """Add rows to the lists of their units; `unit` is the column of all rows."""
        # Count the new rows first, so that each list grows at most once.
        unit_of = unit[slots]
        units, more = np.unique(unit_of, return_counts=True)
        size = self.size[units] + more
        wider = self._wider(units, size)
        if self.end + int(wider.sum()) > self.pool.size:
            self.pack(int((size + size // 4 + 1).sum()))
            wider = self._wider(units, size)  # packing trims all lists, including those that had enough room
        self.end = _widen(units, wider, self.start, self.size, self.room, self.pool, self.end)
        _enrol(slots, unit, self.start, self.size, self.pool)

    def leave(self, slots: Ints, unit: Ints) -> None:
        """Remove rows from the lists of their units."""
        _leave(slots, unit, self.start, self.size, self.pool)

    def rows(self, units: Longs) -> Ints:
        """Slots of all rows in some units."""
        size = self.size[units]
        at = np.repeat(self.start[units] - (np.cumsum(size) - size), size) + np.arange(int(size.sum()))
        return self.pool[at]

    def _wider(self, units: Ints, size: Ints) -> Ints:
        """New room for each list that is too small for its size, else 0."""
        wider: Ints = np.where(size > self.room[units], size + size // 4 + 1, 0).astype(np.int32)
        return wider

    def pack(self, more: int) -> None:
        """Move all lists to a new pool with room for some more slots."""
        used = int(self.size.sum())
        pool = np.empty(max(4096, used + used // 4 + 2 * self.start.size + 2 * more), np.int32)
        self.end = _pack(self.start, self.size, self.room, self.pool, pool)
        self.pool = pool


class Gathered(NamedTuple):
    """Some units sorted as a board of their own; `groups.row` is the slot."""

    groups: Groups
    units: Longs
    ladder_unit: Ints  # per ladder: index into `units`
    start: Longs  # per row: start of the event
    flap: Bytes  # per row
    confirmed: Bytes  # per row
    out: Ints  # slots of rows that identity rejects
    why: Bytes  # code of the reason, per slot of `out`


@kernel
def _pack(start, size, room, pool, out):
    """Copy all lists to a new pool, with an eighth of spare room each. Returns the end."""
    end = np.int64(0)
    for u in range(start.size):
        if room[u] == 0:
            continue
        for k in range(size[u]):
            out[end + k] = pool[start[u] + k]
        start[u] = end
        room[u] = min(room[u], size[u] + size[u] // 8 + 1)
        end += room[u]
    return end


@kernel
def _widen(units, wider, start, size, room, pool, end):
    """Move lists that need more room to the end of the pool. Returns the new end."""
    for at in range(units.size):
        if wider[at] > 0:
            u = units[at]
            for k in range(size[u]):
                pool[end + k] = pool[start[u] + k]
            start[u] = end
            room[u] = wider[at]
            end += wider[at]
    return end


@kernel
def _enrol(slots, unit, start, size, pool):
    """Append each slot to its unit's list, which has enough room."""
    for i in range(slots.size):
        u = unit[slots[i]]
        pool[start[u] + size[u]] = slots[i]
        size[u] += 1


@kernel
def _leave(slots, unit, start, size, pool):
    """Remove each slot from its unit's list, preserving the order of the others."""
    for i in range(slots.size):
        u = unit[slots[i]]
        a, n = start[u], size[u]
        k = 0
        while k < n and pool[a + k] != slots[i]:
            k += 1
        if k == n:
            continue
        for j in range(k, n - 1):
            pool[a + j] = pool[a + j + 1]
        size[u] = n - 1


@kernel
def _gather(
    units, u_start, u_size, pool, unit_event, unit_live, key, odds, seen, start, state, flags, same,
    agree, place, tie,
    book_rank, name_rank, outcomes, c_mismatch, c_suspended, c_ambiguous, c_no_line,
    high, low, held, drawn, touched,
    row, book, name, price, time, market, side, begin, flap, confirmed, rows, segments, markets, threshold, event, live,
    kind, subject, ladder, ladder_unit, out, why,
):  # fmt: skip
    """Sort rows of units into flat columns with offsets. Returns counts of rows, segments, markets, ladders, out."""
    n_rows, n_segments, n_markets, n_ladders, n_out = 0, 0, 0, 0, 0
    rows[0] = 0
    segments[0] = 0
    markets[0] = 0
    for at in range(units.size):
        u = units[at]
        a, n = u_start[u], u_size[u]
        # Books whose moneyline quotes the draw, or an outcome that is not recognised and may be the draw.
        marks = 0
        for k in range(n):
            slot = pool[a + k]
            t = key[slot] >> 16
            if state[slot] == 1 and (place[t, 3] & 65_280) != 0:
                where = place[t, 1] & 15
                if where in (1, 15):
                    b = key[slot] & 65535
                    if drawn[b] == 0:
                        touched[marks] = b
                        marks += 1
                    drawn[b] |= np.uint8(DRAW) if where == 1 else np.uint8(MAYBE_DRAW)
        count = 0
        kept = n_out
        for k in range(n):
            slot = pool[a + k]
            if state[slot] != 1:
                out[n_out] = slot
                why[n_out] = 0
                n_out += 1
                continue
            t = key[slot] >> 16
            verdict = place[t, 3] & 255
            ways = (place[t, 3] >> 8) & 255
            h = place[t, 0]
            lo = place[t, 1]
            b = key[slot] & 65535
            if ways != 0:
                three, where, verdict = moneyline(ways, drawn[b], lo & 15, verdict, c_ambiguous, c_no_line)
                lo = (lo & -16) | where
                if three:
                    h = place[t, 2]
            if flags[slot] & 4 and c_mismatch != 0:
                verdict = c_mismatch
            if flags[slot] & 2:
                verdict = c_suspended
            if verdict != 0:
                out[n_out] = slot
                why[n_out] = verdict
                n_out += 1
                continue
            second = (np.int64(book_rank[b]) << 32) | np.int64(name_rank[place[t, 3] >> 16])
            j = count
            while j > 0:
                i = held[j - 1]
                less = False
                if h != high[j - 1, 0]:
                    less = h < high[j - 1, 0]
                elif lo != high[j - 1, 1]:
                    less = lo < high[j - 1, 1]
                elif second != low[j - 1]:
                    less = second < low[j - 1]
                elif odds[slot] != odds[i]:
                    less = odds[slot] < odds[i]
                elif seen[slot] != seen[i]:
                    less = seen[slot] > seen[i]
                else:
                    mine, other = tie[t], tie[key[i] >> 16]
                    less = mine < other if mine != other else key[slot] < key[i]
                if not less:
                    break
                held[j] = i
                high[j, 0] = high[j - 1, 0]
                high[j, 1] = high[j - 1, 1]
                low[j] = low[j - 1]
                j -= 1
            held[j] = slot
            high[j, 0] = h
            high[j, 1] = lo
            low[j] = second
            count += 1
        for k in range(marks):
            drawn[touched[k]] = 0
        # Store this order in the unit's list; rows that are left out go to its end.
        for k in range(count):
            pool[a + k] = held[k]
        for k in range(n - count):
            pool[a + count + k] = out[kept + k]
        last_ladder = np.int64(-1)
        last_market = np.int64(-1)
        segment = np.int64(0)
        for k in range(count):
            slot = held[k]
            h, lo = high[k, 0], high[k, 1]
            if k == 0 or h != last_ladder:
                last_ladder = h
                last_market = -1
                event[n_ladders] = unit_event[u]
                live[n_ladders] = unit_live[u]
                kind[n_ladders] = np.int32(h >> 44)
                subject[n_ladders] = np.int32((h >> 20) & 16_777_215)
                ladder_unit[n_ladders] = at
                n_ladders += 1
                markets[n_ladders] = n_markets
            if (lo >> 4) != last_market:
                last_market = lo >> 4
                threshold[n_markets] = np.int32(last_market - 1_073_741_824)
                ladder[n_markets] = n_ladders - 1
                segment = n_segments
                for _ in range(outcomes[kind[n_ladders - 1]]):
                    n_segments += 1
                    rows[n_segments] = 0
                n_markets += 1
                segments[n_markets] = n_segments
                markets[n_ladders] = n_markets
            where = np.int32(lo & 15)
            rows[segment + where + 1] += 1
            row[n_rows] = slot
            book[n_rows] = np.int32(low[k] >> 32)
            name[n_rows] = np.int32(low[k] & 4_294_967_295)
            price[n_rows] = odds[slot]
            time[n_rows] = seen[slot]
            market[n_rows] = n_markets - 1
            side[n_rows] = where
            begin[n_rows] = start[slot]
            flap[n_rows] = (flags[slot] >> 3) & 1
            confirmed[n_rows] = same[slot] >= agree
            n_rows += 1
    for s in range(n_segments):
        rows[s + 1] += rows[s]
    return n_rows, n_segments, n_markets, n_ladders, n_out


def gather(rows: Rows, names: Names, held: Units, units: Longs, mismatch: bool, agree: int) -> Gathered:  # noqa: FBT001
    """Sort some units into a board of their own.

    `mismatch`: reject rows whose decimal and American prices differ. `agree`: consecutive looks that confirm a price.
    """
    n = int(held.size[units].sum())
    most = int(held.size[units].max(initial=0)) + 1
    facts = names.traits
    width = int(facts.outcomes.max(initial=2))
    ints = np.empty((8, n + 1), np.int32)
    per_market = np.empty((7, n + 1), np.int32)
    price, time, begin = np.empty(n + 1), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    flap, confirmed, why, live = np.empty((4, n + 1), np.uint8)
    offsets, segments, markets = np.empty(n * width + 2, np.int64), np.empty(n + 2, np.int64), np.empty(n + 2, np.int64)
    row, book, name, market, side, out = ints[:6]
    threshold, event, kind, subject, ladder, ladder_unit = per_market[:6]
    books = len(names.books)
    n_rows, n_segments, n_markets, n_ladders, n_out = _gather(
        units, held.start, held.size, held.pool, names.unit_event.values, names.unit_live.values, rows.key, rows.odds,
        rows.seen, rows.start, rows.state, rows.flags, rows.same, agree, names.place.values, names.tie.values,
        names.book_rank, names.name_rank, facts.outcomes, CODES["price_mismatch"] * mismatch, CODES["suspended"],
        CODES["ambiguous_moneyline"], CODES["no_line"], np.empty((most, 2), np.int64), np.empty(most, np.int64),
        np.empty(most, np.int32),
        np.zeros(books + 1, np.uint8), np.empty(books + 1, np.int64),
        row, book, name, price, time, market, side, begin, flap, confirmed, offsets, segments, markets, threshold,
        event, live, kind, subject, ladder, ladder_unit, out, why,
    )  # fmt: skip
    groups = Groups(
        row=row[:n_rows],
        book=book[:n_rows],
        name=name[:n_rows],
        odds=price[:n_rows],
        seen=time[:n_rows],
        market=market[:n_rows],
        side=side[:n_rows],
        rows=offsets[: n_segments + 1],
        segments=segments[: n_markets + 1],
        markets=markets[: n_ladders + 1],
        threshold=threshold[:n_markets],
        event=event[:n_ladders],
        live=live[:n_ladders],
        kind=kind[:n_ladders],
        subject=subject[:n_ladders],
        ladder=ladder[:n_markets],
    )
    groups = linked(groups, names.twins)
    return Gathered(
        groups, units, ladder_unit[:n_ladders], begin[:n_rows], flap[:n_rows], confirmed[:n_rows], out[:n_out],
        why[:n_out],
    )  # fmt: skip
