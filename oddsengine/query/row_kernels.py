"""Query kernels: filtering, ordering, best prices and main lines.

Rows are stored by term: `terms` lists the terms event by event with offsets `block`; `slots` lists the rows term by
term and book by book, with offsets `first`. Slots that were freed or reused are skipped.

Columns of the kernels:

- `key`, `state`, `flags`, `seen`, `start`, `odds`, `american`, `changed`, `rejected`, `moved`, `judged`, `partition`,
  `starts` (per slot): the columns of the board's `Rows`; `starts` are its `start`
- `event`, `terms`, `place`, `ways` (per term, or per position of a term): its event; the term at a position; the
  position of a term, in `best_prices` its `place` of `TermColumns`; and what its moneyline depends on
- `rank` (int32 per book): order of books
- `block` (int64 per event), `first` (int64 per position): offsets of the terms of events, and of the rows of terms
- `slots`, `book` (int32): rows in that order, or the rows in question, and their books
- `begin` (int64 per event): start of the event, or `NO_TIME`
- `price`: price of each of `slots`
- `low`, `high`: the limits
- `out`: the rows to write
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import numpy as np

from oddsengine._jit import kernel
from oddsengine.columns import NO_TIME
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, FREE, LIVE, ON
from oddsengine.identity.packed_terms import unpack_in_kernel
from oddsengine.identity.raw_labels import DRAW

_BYTE, _FLAGS, _VERDICT = 255, 8, 16  # bits of a row's state: the main line, and places of flags and verdict


@kernel
def update_keys(key, state, indexed_key):
    """Count the slots whose key has changed, and update `indexed_key` with the current keys.

    `indexed_key` (int64 per slot) are the keys of the last call.
    """
    n_new = 0
    for s in range(state.size):
        if state[s] != FREE and key[s] != indexed_key[s]:
            indexed_key[s] = key[s]
            n_new += 1
    return n_new


@kernel
def sort_rows(key, state, place, rank, first, slots, book):
    """Sort rows by the position of their term, then by the rank of their book; `first` (zeros) becomes the offsets.

    `book` receives the book of each row in that order.
    """
    places = first.size - 1
    for s in range(state.size):
        if state[s] != FREE:
            first[place[key[s] >> BOOK_BITS] + 1] += 1
    for p in range(places):
        first[p + 1] += first[p]
    for s in range(state.size):
        if state[s] != FREE:
            p = place[key[s] >> BOOK_BITS]
            slots[first[p]] = s
            first[p] += 1
    for p in range(places, 0, -1):
        first[p] = first[p - 1]
    first[0] = 0
    for p in range(places):
        a, b = first[p], first[p + 1]
        for i in range(a + 1, b):
            s = slots[i]
            r = rank[key[s] & BOOK_MASK]
            j = i
            while j > a and rank[key[slots[j - 1]] & BOOK_MASK] > r:
                slots[j] = slots[j - 1]
                j -= 1
            slots[j] = s
        for i in range(a, b):
            book[i] = key[slots[i]] & BOOK_MASK


@kernel
def first_starts(key, state, start, event, begin, slots):
    """Find the earliest start among the rows of each event without one; the maximum int64 if there is none."""
    for s in range(state.size):
        if state[s] == ON and start[s] != NO_TIME:
            e = event[key[s] >> BOOK_BITS]
            if begin[e] == NO_TIME:
                slots[e] = min(slots[e], start[s])


@kernel
def scan(
    events, block, terms, first, slots, book, is_match, state, flags, start, moved, judged, marked, begin, books,
    wanted_state, live, changed_after, day, end, out,
):  # fmt: skip
    """Write the slots of matching rows to `out`, in order, and return their number.

    `is_match` is by term, `books` by book; `wanted_state` is a state; `live` is 0, 1 or -1 for both. Rows must be
    changed, rejudged or marked after `changed_after`, and start between `day` and `end`.

    - `events`: the events in order
    - `changed_after`, `day`, `end`: microseconds, or `NO_TIME`
    - `marked` (int64 per slot): when the row was marked
    - `books` (uint8 per book): 1 for those wanted
    """
    n = 0
    has_day = day != NO_TIME
    has_after = changed_after != NO_TIME
    for at in range(events.size):
        e = events[at]
        for p in range(block[e], block[e + 1]):
            if is_match[terms[p]] == 0:
                continue
            for i in range(first[p], first[p + 1]):
                s = slots[i]
                if books[book[i]] == 0 or state[s] != wanted_state:
                    continue
                if has_after and max(moved[s], judged[s], marked[s]) <= changed_after:
                    continue
                if live >= 0 and (flags[s] & LIVE) != live:
                    continue
                if has_day:
                    t = start[s] if start[s] != NO_TIME else begin[e]
                    if not day <= t < end:
                        continue
                out[n] = s
                n += 1
    return n


@kernel
def between(slots, price, low, high, out):
    """Write the rows with prices between two limits to `out` and return their number."""
    n = 0
    for at in range(slots.size):
        out[n] = slots[at]
        n += low <= price[at] <= high
    return n


@kernel
def page_between(slots, price, low, high, offset, out):
    """Count the rows with prices between two limits; fill `out` with those after the first `offset`.

    Returns the count, and how many were written.

    `offset` is a number of rows.
    """
    least, most = np.int32(low), np.int32(high)
    total = 0
    for at in range(price.size):
        total += (price[at] >= least) & (price[at] <= most)
    n_passed = 0
    n_written = 0
    if total > offset:
        for at in range(price.size):
            if n_written == out.size:
                break
            if least <= price[at] <= most:
                if n_passed >= offset:
                    out[n_written] = slots[at]
                    n_written += 1
                n_passed += 1
    return total, n_written


@kernel
def best_prices(
    rows, net, key, state, flags, seen, rejected, partition, rank, ways, outcome, outcome_drawn, start, size, pool,
    place, is_cached, draws, best_row, groups, out,
):  # fmt: skip
    """Find the best price of each outcome among some rows, in order of its first row, and return their number.

    Prices are compared after commission: `net` is per row of `rows`. `outcome` and `outcome_drawn` are outcomes by
    term, without and with a draw quoted by the row's book in that market. The draws of a partition are computed once:
    `is_cached` and `draws` cache them. `best_row` (-1) is by outcome and live flag.

    - `rows` (int32): the rows
    - `start`, `size`, `pool`: the columns of the board's `Partitions`
    - `groups` (int64): scratch array: the outcomes found
    """
    n = 0
    width = draws.shape[1]
    for at in range(rows.size):
        s = rows[at]
        if rejected[s] != 0:
            continue
        t, b = key[s] >> BOOK_BITS, key[s] & BOOK_MASK
        g = outcome[t]
        if ways[t] != 0:
            u = partition[s]
            if is_cached[u] == 0:
                is_cached[u] = 1
                for w in range(width):
                    draws[u, w] = 0
                for k in range(start[u], start[u] + size[u]):
                    o = pool[k]
                    if (
                        state[o] == ON
                        and ways[key[o] >> BOOK_BITS] != 0
                        and unpack_in_kernel(0, place[key[o] >> BOOK_BITS, 1], 0, 0).side == DRAW
                    ):
                        c = key[o] & BOOK_MASK
                        draws[u, c >> 6] |= np.uint64(1) << np.uint64(c & 63)
            if (draws[u, b >> 6] >> np.uint64(b & 63)) & np.uint64(1):
                g = outcome_drawn[t]
        g = g * 2 + (flags[s] & LIVE)
        top = best_row[g]
        if top < 0:
            groups[n] = g
            n += 1
            best_row[g] = at
            continue
        o = rows[top]
        if net[at] > net[top] or (
            net[at] == net[top] and (seen[s] > seen[o] or (seen[s] == seen[o] and rank[b] < rank[key[o] & BOOK_MASK]))
        ):
            best_row[g] = at
    for i in range(n):
        out[i] = rows[best_row[groups[i]]]
    return n


@kernel
def row_states(slots, key, odds, american, seen, changed, starts, flags, rejected, event, begin, main, out):
    """Write the state of each row beside its texts to `out` (7 columns); equal states mean equal rows.

    `odds` and `american` are passed as bits, `main` by position among `slots`.

    The columns are key, odds, American odds, last seen, last change, start, and flags with the verdict.
    """
    for at in range(slots.size):
        s = slots[at]
        out[at, 0] = key[s]
        out[at, 1] = odds[s]
        out[at, 2] = american[s]
        out[at, 3] = seen[s]
        out[at, 4] = changed[s]
        out[at, 5] = starts[s] if starts[s] != NO_TIME else begin[event[key[s] >> BOOK_BITS]]
        out[at, 6] = np.int64(rejected[s]) << _VERDICT | np.int64(flags[s]) << _FLAGS | (main[at] & _BYTE)


__all__ = [
    "best_prices",
    "between",
    "first_starts",
    "page_between",
    "row_states",
    "scan",
    "sort_rows",
    "update_keys",
]  # fmt: skip
