"""Query kernels: filtering, ordering, best prices and main lines.

Rows are stored by term: `terms` lists the terms event by event with offsets `block`; `slots` lists the rows term by
term and book by book, with offsets `first`. Slots that were freed or reused are skipped.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import numpy as np

from oddsengine._jit import kernel


@kernel
def update_keys(key, state, indexed, main, recoded):
    """Count the slots whose key has changed, and update `known` with the current keys.

    A new price in a slot has no main-line mark yet, unless keys were only renumbered (`recoded`).
    """
    new = 0
    for s in range(state.size):
        if state[s] != 0 and key[s] != indexed[s]:
            indexed[s] = key[s]
            if not recoded:
                main[s] = 2
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
def prices(slots, odds, american, out):
    """American odds in hundredths as published: as quoted, else converted from decimal; -100 becomes +100."""
    for at in range(slots.size):
        s = slots[at]
        x = american[s]
        if np.isnan(x):
            win = odds[s] - 1.0
            x = win * 100.0 if win >= 1.0 else -100.0 / win
        x = np.rint(x * 100.0)
        x = 10_000.0 if x == -10_000.0 else x
        out[at] = np.int32(min(max(x, -2_000_000_000.0), 2_000_000_000.0))


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
def best(
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
def mark_main_lines(
    units, start, size, pool, key, state, flags, odds, place, last, now, ladder, line, count, outer, books, looked,
    main, marked,
):  # fmt: skip
    """Mark the rows of units that were not `looked` at: 1 on the main line of their market, 0 on other lines.

    The main line is the line quoted by most books, then the most balanced, then the lowest. Suspended prices and prices
    whose two formats disagree do not count. A row whose mark changes gets `marked = now`, unless it had none (2). The
    remaining arguments are buffers for the lines of one unit.
    """
    for at in range(units.size):
        if looked[units[at]] == 0:
            _mark(
                units[at], start, size, pool, key, state, flags, odds, place, last, now, ladder, line, count, outer,
                books, looked, main, marked,
            )  # fmt: skip


@kernel
def _mark(
    u, start, size, pool, key, state, flags, odds, place, last, now, ladder, line, count, outer, books, looked, main,
    marked,
):  # fmt: skip
    """Mark the rows of one unit."""
    wide = books.shape[1]
    looked[u] = 1
    n = 0
    k = 0
    for i in range(start[u], start[u] + size[u]):
        s = pool[i]
        t = key[s] >> 16
        if state[s] != 1 or (flags[s] & 6) or (place[t, 3] & 255):
            continue
        h, x = place[t, 0], place[t, 1] >> 4
        tried = 0
        while tried < n and not (ladder[k] == h and line[k] == x):
            k = k + 1 if k + 1 < n else 0
            tried += 1
        if tried == n:
            k = n
            n += 1
            ladder[k], line[k], count[k] = h, x, 0
            outer[k, 0], outer[k, 1] = 0.0, 0.0
            for w in range(wide):
                books[k, w] = 0
        b = key[s] & 65535
        bit = np.uint64(1) << np.uint64(b & 63)
        if not books[k, b >> 6] & bit:
            books[k, b >> 6] |= bit
            count[k] += 1
        side = place[t, 1] & 15
        if side == 0:
            outer[k, 0] = max(outer[k, 0], odds[s])
        if side == last[h >> 44]:
            outer[k, 1] = max(outer[k, 1], odds[s])
    # The main line of each ladder keeps its count; the others are set to 0.
    for k in range(n):
        if count[k] == 0:
            continue
        chosen = k
        for j in range(n):
            if ladder[j] != ladder[k] or j == k or count[j] == 0:
                continue
            a = _apart(outer[chosen, 0], outer[chosen, 1])
            b = _apart(outer[j, 0], outer[j, 1])
            if count[j] > count[chosen] or (
                count[j] == count[chosen] and (b < a or (b == a and line[j] < line[chosen]))
            ):
                chosen = j
        for j in range(n):
            if ladder[j] == ladder[k] and j != chosen:
                count[j] = 0
    k = 0
    for i in range(start[u], start[u] + size[u]):
        s = pool[i]
        t = key[s] >> 16
        h, x = place[t, 0], place[t, 1] >> 4
        tried = 0
        while tried < n and not (ladder[k] == h and line[k] == x):
            k = k + 1 if k + 1 < n else 0
            tried += 1
        mark = 1 if tried < n and count[k] > 0 else 0
        if main[s] != mark:
            if main[s] != 2 and state[s] == 1:
                marked[s] = now
            main[s] = mark


@kernel
def states(
    slots, key, odds, american, seen, changed, starts, flags, rejected, unit, event, begin, lined, start, size, pool,
    state, price, place, last, now, ladder, line, count, outer, books, looked, main, marked, out,
):  # fmt: skip
    """Write the state of each row beside its texts to `out` (7 columns); equal states mean equal rows.

    `odds` and `american` are passed as bits, `price` as numbers for `mark_main_lines`, whose other arguments follow.
    """
    for at in range(slots.size):
        s = slots[at]
        t = key[s] >> 16
        rest = place[t, 3]
        mark = 1
        if rest & 255:
            mark = 2
        elif (rest >> 8) & 255 == 0 and lined[place[t, 0] >> 44]:
            u = unit[s]
            if looked[u] == 0:
                _mark(
                    u, start, size, pool, key, state, flags, price, place, last, now, ladder, line, count, outer, books,
                    looked, main, marked,
                )  # fmt: skip
            mark = main[s]
        out[at, 0] = key[s]
        out[at, 1] = odds[s]
        out[at, 2] = american[s]
        out[at, 3] = seen[s]
        out[at, 4] = changed[s]
        out[at, 5] = starts[s] if starts[s] != -9223372036854775808 else begin[event[t]]
        out[at, 6] = np.int64(rejected[s]) << 16 | np.int64(flags[s]) << 8 | mark


@kernel
def _apart(first, last):
    """Distance of the two outer sides of a line from even; infinite if one of them is missing."""
    return abs(1.0 / first - 1.0 / last) if first > 0.0 and last > 0.0 else np.inf


__all__ = [
    "best", "between", "first_starts", "mark_main_lines", "page_between", "prices", "scan", "sort_rows", "states",
    "update_keys",
]  # fmt: skip
