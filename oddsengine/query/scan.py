"""Query kernels: filtering, ordering, best prices and main lines.

Rows are stored by term: `terms` lists the terms event by event with offsets `block`; `slots` lists the rows term by
term and book by book, with offsets `first`. Slots that were freed or reused are skipped.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import numpy as np

from oddsengine._jit import kernel


@kernel
def update_keys(key, state, indexed):
    """Count the slots whose key has changed, and update `indexed` with the current keys."""
    new = 0
    for s in range(state.size):
        if state[s] != 0 and key[s] != indexed[s]:
            indexed[s] = key[s]
            new += 1
    return new


@kernel
def sort_rows(key, state, place, rank, first, slots, book):
    """Sort rows by the position of their term, then by the rank of their book; `first` (zeros) becomes the offsets.

    `book` receives the book of each row in that order.
    """
    places = first.size - 1
    for s in range(state.size):
        if state[s] != 0:
            first[place[key[s] >> 16] + 1] += 1
    for p in range(places):
        first[p + 1] += first[p]
    for s in range(state.size):
        if state[s] != 0:
            p = place[key[s] >> 16]
            slots[first[p]] = s
            first[p] += 1
    for p in range(places, 0, -1):
        first[p] = first[p - 1]
    first[0] = 0
    for p in range(places):
        a, b = first[p], first[p + 1]
        for i in range(a + 1, b):
            s = slots[i]
            r = rank[key[s] & 65535]
            j = i
            while j > a and rank[key[slots[j - 1]] & 65535] > r:
                slots[j] = slots[j - 1]
                j -= 1
            slots[j] = s
        for i in range(a, b):
            book[i] = key[slots[i]] & 65535


@kernel
def first_starts(key, state, start, event, begin, slots):
    """Find the earliest start among the rows of each event without one; the maximum int64 if there is none."""
    for s in range(state.size):
        if state[s] == 1 and start[s] != -9223372036854775808:
            e = event[key[s] >> 16]
            if begin[e] == -9223372036854775808:
                slots[e] = min(slots[e], start[s])


@kernel
def scan(
    events, block, terms, first, slots, book, ok, state, flags, start, moved, judged, marked, begin, books,
    wanted_state, live, after, day, end, out,
):  # fmt: skip
    """Write the slots of matching rows to `out`, in order, and return their number.

    `ok` is by term, `books` by book; `wanted` is a state; `live` is 0, 1 or -1 for both. Rows must be changed, rejudged
    or marked after `after`, and start between `day` and `end`.
    """
    n = 0
    dated = day != -9223372036854775808
    moving = after != -9223372036854775808
    for at in range(events.size):
        e = events[at]
        for p in range(block[e], block[e + 1]):
            if ok[terms[p]] == 0:
                continue
            for i in range(first[p], first[p + 1]):
                s = slots[i]
                if books[book[i]] == 0 or state[s] != wanted_state:
                    continue
                if moving and max(moved[s], judged[s], marked[s]) <= after:
                    continue
                if live >= 0 and (flags[s] & 1) != live:
                    continue
                if dated:
                    t = start[s] if start[s] != -9223372036854775808 else begin[e]
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
    """
    least, most = np.int32(low), np.int32(high)
    total = 0
    for at in range(price.size):
        total += (price[at] >= least) & (price[at] <= most)
    passed = 0
    written = 0
    if total > offset:
        for at in range(price.size):
            if written == out.size:
                break
            if least <= price[at] <= most:
                if passed >= offset:
                    out[written] = slots[at]
                    written += 1
                passed += 1
    return total, written


@kernel
def best_prices(
    rows, net, key, state, flags, seen, rejected, unit, rank, ways, plain, drawn, start, size, pool, place, looked,
    draws, held, groups, out,
):  # fmt: skip
    """Find the best price of each outcome among some rows, in order of its first row, and return their number.

    Prices are compared after commission: `net` is per row of `rows`. `plain` and `drawn` are outcomes by term, without
    and with a draw quoted by the row's book in that market. The draws of a unit are computed once: `looked` and `draws`
    cache them. `held` (-1) is by outcome and live flag.
    """
    n = 0
    wide = draws.shape[1]
    for at in range(rows.size):
        s = rows[at]
        if rejected[s] != 0:
            continue
        t, b = key[s] >> 16, key[s] & 65535
        g = plain[t]
        if ways[t] != 0:
            u = unit[s]
            if looked[u] == 0:
                looked[u] = 1
                for w in range(wide):
                    draws[u, w] = 0
                for k in range(start[u], start[u] + size[u]):
                    o = pool[k]
                    if state[o] == 1 and ways[key[o] >> 16] != 0 and (place[key[o] >> 16, 1] & 15) == 1:
                        c = key[o] & 65535
                        draws[u, c >> 6] |= np.uint64(1) << np.uint64(c & 63)
            if (draws[u, b >> 6] >> np.uint64(b & 63)) & np.uint64(1):
                g = drawn[t]
        g = g * 2 + (flags[s] & 1)
        top = held[g]
        if top < 0:
            groups[n] = g
            n += 1
            held[g] = at
            continue
        o = rows[top]
        if net[at] > net[top] or (
            net[at] == net[top] and (seen[s] > seen[o] or (seen[s] == seen[o] and rank[b] < rank[key[o] & 65535]))
        ):
            held[g] = at
    for i in range(n):
        out[i] = rows[held[groups[i]]]
    return n


@kernel
def row_states(slots, key, odds, american, seen, changed, starts, flags, rejected, event, begin, main, out):
    """Write the state of each row beside its texts to `out` (7 columns); equal states mean equal rows.

    `odds` and `american` are passed as bits, `main` by position among `slots`.
    """
    for at in range(slots.size):
        s = slots[at]
        out[at, 0] = key[s]
        out[at, 1] = odds[s]
        out[at, 2] = american[s]
        out[at, 3] = seen[s]
        out[at, 4] = changed[s]
        out[at, 5] = starts[s] if starts[s] != -9223372036854775808 else begin[event[key[s] >> 16]]
        out[at, 6] = np.int64(rejected[s]) << 16 | np.int64(flags[s]) << 8 | (main[at] & 255)


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
