"""Query kernels: filtering, ordering, best prices and main lines.

Rows are stored by term: `terms` lists the terms event by event with offsets `block`; `slots` lists the rows term by
term and book by book, with offsets `first`. Slots that were freed or reused are skipped.

Arguments of the kernels:

- `key`, `state`, `seen`, `start`, `odds`, `american`, `changed`, `rejected`, `moved`, `judged`, `partition`, `starts`,
  `flags` (per slot): the columns of the board's `Rows`; `starts` are its `start`
- `event`, `place` (per term): its event, and its position among the terms in order
- `rank` (int32 per book): order of books
- `first` (int64 per position): offsets of the rows of terms
- `slots`, `book` (int32): rows in that order, or the rows in question, and their books
- `begin` (int64 per event): start of the event, or `NO_TIME`
- `price`: price of each of `slots`
- `low`, `high`: the limits
- `out`: the rows to write
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import kernel
from oddsengine.columns import NO_TIME, Bytes, Floats, Int, Ints, Longs, Words
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, FREE, LIVE, ON, Lists, PriceColumns
from oddsengine.identity.packed_terms import unpack_in_kernel
from oddsengine.identity.raw_labels import DRAW

_BYTE, _FLAGS, _VERDICT = 255, 8, 16  # bits of a row's state: the main line, and places of flags and verdict


class RowOrder(NamedTuple):
    """The rows of a board in order: event by event, term by term, book by book."""

    events: Ints  # the events in question, in order
    block: Longs  # event -> its terms
    terms: Ints
    first: Longs  # position of a term -> its rows
    slots: Ints
    book: Ints  # of each of these
    begin: Longs  # start of the event, or `NO_TIME`


class RowConditions(NamedTuple):
    """Which rows match; times in microseconds."""

    is_match: Bytes  # per term: 1 if it matches
    books: Bytes  # per book: 1 if it is wanted
    state: int
    live: int  # 0, 1, or -1 for both
    changed_after: int  # changed, rejudged or marked after this time, or `NO_TIME`
    day: int  # earliest start, or `NO_TIME`
    end: int  # time before which the event starts


class TermOutcomes(NamedTuple):
    """The outcome that each term is on."""

    ways: Bytes  # not 0 for moneylines, whose outcome depends on what the book quotes
    outcome: Ints  # without a draw quoted by the row's book in that market
    outcome_drawn: Ints  # with one
    place: Longs  # (terms, 4): as in `TermColumns`


class QuotedDraws(NamedTuple):
    """Which books quote a draw in each partition, computed when the first of its rows is met."""

    is_cached: Bytes  # per partition
    draws: Words  # (partitions, words): a bit per book


@kernel
def update_keys(key: Longs, state: Bytes, indexed_key: Longs) -> int:
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
def sort_rows(key: Longs, state: Bytes, place: Ints, rank: Ints, first: Longs, slots: Ints, book: Ints) -> None:
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
def first_starts(key: Longs, state: Bytes, start: Longs, event: Ints, begin: Longs, slots: Longs) -> None:
    """Find the earliest start among the rows of each event without one; the maximum int64 if there is none."""
    for s in range(state.size):
        if state[s] == ON and start[s] != NO_TIME:
            e = event[key[s] >> BOOK_BITS]
            if begin[e] == NO_TIME:
                slots[e] = min(slots[e], start[s])


@kernel
def scan(
    order: RowOrder, prices: PriceColumns, moved: Longs, judged: Longs, marked: Longs, wanted: RowConditions, out: Ints
) -> int:
    """Write the slots of matching rows to `out`, in order, and return their number.

    `marked` (int64 per slot) is when the row was marked.
    """
    n = 0
    has_day = wanted.day != NO_TIME
    has_after = wanted.changed_after != NO_TIME
    for e in order.events:
        for p in range(order.block[e], order.block[e + 1]):
            if wanted.is_match[order.terms[p]] == 0:
                continue
            for i in range(order.first[p], order.first[p + 1]):
                s = order.slots[i]
                if wanted.books[order.book[i]] == 0 or prices.state[s] != wanted.state:
                    continue
                if has_after and max(moved[s], judged[s], marked[s]) <= wanted.changed_after:
                    continue
                if wanted.live >= 0 and (prices.flags[s] & LIVE) != wanted.live:
                    continue
                if has_day:
                    t = prices.start[s] if prices.start[s] != NO_TIME else order.begin[e]
                    if not wanted.day <= t < wanted.end:
                        continue
                out[n] = s
                n += 1
    return n


@kernel
def between(slots: Ints, price: Ints, low: Int, high: Int, out: Ints) -> int:
    """Write the rows with prices between two limits to `out` and return their number."""
    n = 0
    for at in range(slots.size):
        out[n] = slots[at]
        n += low <= price[at] <= high
    return n


@kernel
def page_between(slots: Ints, price: Ints, low: Int, high: Int, offset: Int, out: Ints) -> tuple[int, int]:
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
def _find_draws(u: Int, prices: PriceColumns, terms: TermOutcomes, lists: Lists, quoted: QuotedDraws) -> None:
    """Find the books that quote a draw in a partition.

    `u` is the partition.
    """
    quoted.is_cached[u] = 1
    for w in range(quoted.draws.shape[1]):
        quoted.draws[u, w] = 0
    for k in range(lists.start[u], lists.start[u] + lists.size[u]):
        o = lists.pool[k]
        t = prices.key[o] >> BOOK_BITS
        if prices.state[o] != ON or terms.ways[t] == 0:
            continue
        term = unpack_in_kernel(terms.place[t, 0], terms.place[t, 1], terms.place[t, 2], terms.place[t, 3])
        if term.side == DRAW:
            c = prices.key[o] & BOOK_MASK
            quoted.draws[u, c >> 6] |= np.uint64(1) << np.uint64(c & 63)


@kernel
def best_prices(
    rows: Ints, net: Floats, prices: PriceColumns, rejected: Bytes, partition: Ints, rank: Ints, terms: TermOutcomes,
    lists: Lists, quoted: QuotedDraws, best_row: Ints, groups: Longs, out: Ints,
) -> int:  # fmt: skip
    """Find the best price of each outcome among some rows, in order of its first row, and return their number.

    Prices are compared after commission: `net` is per row of `rows`. `best_row` (-1) is by outcome and live flag.

    - `rows` (int32): the rows
    - `groups` (int64): scratch array: the outcomes found
    """
    key, seen = prices.key, prices.seen
    n = 0
    for at in range(rows.size):
        s = rows[at]
        if rejected[s] != 0:
            continue
        t, b = key[s] >> BOOK_BITS, key[s] & BOOK_MASK
        g = terms.outcome[t]
        if terms.ways[t] != 0:
            u = partition[s]
            if quoted.is_cached[u] == 0:
                _find_draws(u, prices, terms, lists, quoted)
            if (quoted.draws[u, b >> 6] >> np.uint64(b & 63)) & np.uint64(1):
                g = terms.outcome_drawn[t]
        g = g * 2 + (prices.flags[s] & LIVE)
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
def row_states(
    slots: Ints, key: Longs, odds: Longs, american: Longs, seen: Longs, changed: Longs, starts: Longs, flags: Bytes,
    rejected: Bytes, event: Ints, begin: Longs, main: npt.NDArray[np.int8], out: Longs,
) -> None:  # fmt: skip
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
