"""The layout: rows of some partitions, sorted into `Groups`.

A table and a live board use the same sort. Each row has a *term* (a raw label with its line) and a book; what a term
means is packed into sort keys (`packed_terms`), and `gather` sorts the rows of partitions by them. On the board, terms
and partitions are kept (`board.names`, `board.partitions`); for a table they are made once
(`identity.table_identity`).

A partition contains the rows of one event and live flag that any guard or detector combines: the moneyline and spreads
of one period (with its totals if the distribution of the margin depends on them), or one other kind of market.
"""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine._jit import inlined, kernel
from oddsengine.bounds import excerpt
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import NONE, Bytes, Floats, Int, Ints, Longs, Words
from oddsengine.identity.groups import Groups, first_gap, intern
from oddsengine.identity.linked_outcomes import Rules, linked
from oddsengine.identity.packed_terms import LINE_BITS, UNREAD, PackedTerm, line_key_in_kernel, unpack_in_kernel
from oddsengine.identity.raw_labels import DRAW, MAYBE_DRAW, moneyline
from oddsengine.identity.traits import MarketKind

BOOK_BITS = 16
BOOK_MASK = (1 << BOOK_BITS) - 1
FREE, ON, REMOVED = 0, 1, 2  # states of a row
LIVE, SUSPENDED, MISMATCH, FLAP = 1, 2, 4, 8  # flags of a row
_NAME_BITS = 32  # bits of the rank of a market's name, below that of the book
_NAME_MASK = (1 << _NAME_BITS) - 1
_MOVES, _MOVES_OF_ROW = 64, 16  # rows moved by insertion, of a partition and for each row, before it is given up
_OTHER_GAME, _SUSPENDED = CODES["other_game"], CODES["suspended"]
_AMBIGUOUS, _NO_LINE = CODES["ambiguous_moneyline"], CODES["no_line"]

_MARGIN = ("moneyline", "moneyline_3way", "spread")  # families whose ladders are read together


def too_many(what: str, name: str, most: int) -> OverflowError:
    """The error for one book or player more than a key can hold."""
    return OverflowError(f"too many {what}: {excerpt(name)} is number {most + 1:,}, a board takes up to {most:,}")


def partition_of(kind: MarketKind, sport: str, league: str, verdict: int, two_way: int) -> Hashable:
    """Name of the partition of a term within its event and live flag; None if the term belongs to no market."""
    together = kind.family in _MARGIN or (not verdict and kind.family in catalog.with_equivalents(sport))
    if kind.family == "total":  # a Skellam margin is scaled by the total
        shape = catalog.shape("spread", sport, league)
        together |= shape is not None and shape.name == "skellam"
    if together:
        return kind.period
    return None if verdict and not two_way else kind


def ranks(terms: PackedTerm) -> Longs:
    """Rank terms by ladder, line and side."""
    ladder, first = intern(terms.ladder.astype(np.uint64))
    rank = np.empty(first.size, np.int64)
    rank[np.argsort(terms.ladder[first])] = np.arange(first.size)
    out = np.empty(ladder.size, np.int64)
    out[np.argsort(rank[ladder] << LINE_BITS | terms.line)] = np.arange(ladder.size)
    return out


class PriceColumns(NamedTuple):
    """Columns of all rows, by slot."""

    key: Longs  # term << 16, book
    odds: Floats
    seen: Longs
    start: Longs  # of the event
    state: Bytes
    flags: Bytes
    same: Bytes  # consecutive observations of the same price


class TermColumns(NamedTuple):
    """Columns by term, book and market name."""

    place: Longs  # (terms, 4): the fields of `PackedTerm`
    tie: Words  # order of equal prices, by term
    book_rank: Ints
    name_rank: Ints
    outcomes: Longs  # number, by kind


class Lists(NamedTuple):
    """Slots of the rows of each partition, and its event and live flag."""

    start: Longs
    size: Ints
    pool: Ints
    event: Ints
    live: Bytes


class PartitionColumns(NamedTuple):
    """Some partitions sorted as a board of their own; `groups.row` is the slot."""

    groups: Groups
    partitions: Longs
    ladder_partition: Ints  # per ladder: index into `partitions`
    start: Longs  # per row: start of the event
    flap: Bytes  # per row
    confirmed: Bytes  # per row
    out: Ints  # slots of rows that identity rejects
    why: Bytes  # code of the reason, per slot of `out`


class SortKeys(NamedTuple):
    """Scratch arrays: the rows of a partition in order, with their sort keys."""

    order: Ints  # slots
    ladder: Longs  # as in `PackedTerm`, like the next
    line: Longs
    names: Longs  # ranks of the book and of the market's name


class Draws(NamedTuple):
    """Scratch arrays: what the moneylines of a partition's books quote."""

    quoted: Bytes  # per book: bits `DRAW` and `MAYBE_DRAW`; 0 on entry
    books: Longs  # those that quote either


class RowColumns(NamedTuple):
    """The columns of `PartitionColumns` beside `Groups`, to write."""

    ladder_partition: Ints
    start: Longs
    flap: Bytes
    confirmed: Bytes
    out: Ints
    why: Bytes


class Counts(NamedTuple):
    """How much of the columns of `Groups` and `RowColumns` is written."""

    rows: Int
    segments: Int
    markets: Int
    ladders: Int
    out: Int


@kernel
def enrol(slots: Ints, partition: npt.NDArray[np.integer], start: Longs, size: Ints, pool: Ints) -> None:
    """Append each slot to its partition's list, which has enough room.

    - `slots`, `partition` (per slot): the rows, and the partition of each
    - `start`, `size` (per partition), `pool`: as in `Lists`
    """
    for i in range(slots.size):
        u = partition[slots[i]]
        pool[start[u] + size[u]] = slots[i]
        size[u] += 1


def listed(slots: Ints, partition: npt.NDArray[np.integer], partitions: int = 0) -> tuple[Ints, Longs, Ints]:
    """List slots by partition, in their order; returns all lists, and where each starts and its size."""
    sizes = np.bincount(partition, minlength=partitions)
    start, size, pool = np.cumsum(sizes) - sizes, np.zeros(sizes.size, np.int32), np.empty(slots.size, np.int32)
    enrol(slots, partition, start, size, pool)
    return pool, start, size


@inlined
def _before(
    slot: Int, ladder: Int, line: Int, names: Int, at: Int, sort: SortKeys, prices: PriceColumns, tie: Words
) -> bool:
    """Whether a row comes before the one at a place: by ladder, line, outcome, book, market name, price, time, text.

    `slot`, `ladder`, `line` and `names` are the row's own slot and sort keys; the other row is at place `at`. `tie` is
    that of the terms.
    """
    other = sort.order[at]
    if ladder != sort.ladder[at]:
        return ladder < sort.ladder[at]
    if line != sort.line[at]:
        return line < sort.line[at]
    if names != sort.names[at]:
        return names < sort.names[at]
    if prices.odds[slot] != prices.odds[other]:
        return prices.odds[slot] < prices.odds[other]
    if prices.seen[slot] != prices.seen[other]:
        return prices.seen[slot] > prices.seen[other]
    tie_slot, tie_other = tie[prices.key[slot] >> BOOK_BITS], tie[prices.key[other] >> BOOK_BITS]
    return tie_slot < tie_other if tie_slot != tie_other else prices.key[slot] < prices.key[other]


@inlined
def _move(to: Int, at: Int, sort: SortKeys) -> None:
    """Move the row at place `at` to the place `to`."""
    sort.order[to] = sort.order[at]
    sort.ladder[to] = sort.ladder[at]
    sort.line[to] = sort.line[at]
    sort.names[to] = sort.names[at]


@inlined
def _put(to: Int, slot: Int, ladder: Int, line: Int, names: Int, sort: SortKeys) -> None:
    """Put a row, `slot` with the sort keys `ladder`, `line` and `names`, at the place `to`."""
    sort.order[to] = slot
    sort.ladder[to] = ladder
    sort.line[to] = line
    sort.names[to] = names


@kernel
def _sort(count: Int, sort: SortKeys, prices: PriceColumns, tie: Words) -> None:
    """Sort the rows of a partition by Shell's method.

    `count` is the number of rows, and `tie` that of the terms.
    """
    gap = first_gap(count)
    while gap > 0:
        for k in range(gap, count):
            slot, ladder, line, names = sort.order[k], sort.ladder[k], sort.line[k], sort.names[k]
            j = k
            while j >= gap and _before(slot, ladder, line, names, j - gap, sort, prices, tie):
                _move(j, j - gap, sort)
                j -= gap
            _put(j, slot, ladder, line, names, sort)
        gap //= 3


@inlined
def _quoted_draws(first: Int, end: Int, lists: Lists, prices: PriceColumns, terms: TermColumns, draws: Draws) -> int:
    """Note whose moneyline quotes the draw, or an outcome that is not recognised and may be the draw.

    The rows of the partition are those from `first` to `end` of its list. Returns the number of books.
    """
    n_books = 0
    for k in range(first, end):
        slot = lists.pool[k]
        t = prices.key[slot] >> BOOK_BITS
        if prices.state[slot] != ON:
            continue
        term = unpack_in_kernel(terms.place[t, 0], terms.place[t, 1], terms.place[t, 2], terms.place[t, 3])
        if term.two_way != 0 and term.other_game == 0 and (term.side == DRAW or term.side == UNREAD):  # noqa: PLR1714
            b = prices.key[slot] & BOOK_MASK
            if draws.quoted[b] == 0:
                draws.books[n_books] = b
                n_books += 1
            draws.quoted[b] |= np.uint8(DRAW) if term.side == DRAW else np.uint8(MAYBE_DRAW)
    return n_books


@inlined
def _collect_rows(
    first: Int, end: Int, n_out: Int, lists: Lists, prices: PriceColumns, terms: TermColumns, mismatch_code: Int,
    quoted: Bytes, sort: SortKeys, rest: RowColumns,
) -> tuple[Int, Int]:  # fmt: skip
    """Sort the rows of a partition that have a market, and list the others. Returns the numbers of both by then.

    - `first`, `end`: where the partition's list is
    - `n_out`: number of rows listed so far
    - `mismatch_code`: code of a mismatch, 0 if these are accepted
    - `quoted`: as in `Draws`
    """
    # A list is nearly sorted, since each sort leaves it so; insertion is given up for one that is not.
    count, n_moves, most_moves = 0, 0, _MOVES + _MOVES_OF_ROW * (end - first)
    for k in range(first, end):
        slot = lists.pool[k]
        if prices.state[slot] != ON:
            rest.out[n_out] = slot
            rest.why[n_out] = ACCEPTED
            n_out += 1
            continue
        t, b = prices.key[slot] >> BOOK_BITS, prices.key[slot] & BOOK_MASK
        ladder, line = terms.place[t, 0], terms.place[t, 1]
        term = unpack_in_kernel(ladder, line, terms.place[t, 2], terms.place[t, 3])
        verdict = term.verdict
        if term.two_way != 0:
            is_three_way, side, verdict = moneyline(term.two_way, quoted[b], term.side, verdict, _AMBIGUOUS, _NO_LINE)
            line = line_key_in_kernel(term.threshold, side)
            if is_three_way:
                ladder = terms.place[t, 2]
        if term.other_game != 0:
            verdict = _OTHER_GAME
        if prices.flags[slot] & MISMATCH and mismatch_code != ACCEPTED:
            verdict = mismatch_code
        if prices.flags[slot] & SUSPENDED:
            verdict = _SUSPENDED
        if verdict != ACCEPTED:
            rest.out[n_out] = slot
            rest.why[n_out] = verdict
            n_out += 1
            continue
        names = (np.int64(terms.book_rank[b]) << _NAME_BITS) | np.int64(terms.name_rank[term.name])
        j = count
        while j > 0 and n_moves < most_moves and _before(slot, ladder, line, names, j - 1, sort, prices, terms.tie):
            _move(j, j - 1, sort)
            j -= 1
            n_moves += 1
        _put(j, slot, ladder, line, names, sort)
        count += 1
    if n_moves >= most_moves:
        _sort(count, sort, prices, terms.tie)
    return count, n_out


@inlined
def _write_rows(
    at: Int, partition: Int, count: Int, begin: Counts, lists: Lists, prices: PriceColumns, outcomes: Longs,
    least_same: Int, sort: SortKeys, g: Groups, rest: RowColumns,
) -> Counts:  # fmt: skip
    """Append the sorted rows of a partition to the columns of a board.

    - `at`: index of the `partition` among those that are sorted
    - `count`: number of its rows
    - `begin`: what is written so far
    - `outcomes`: as in `TermColumns`
    - `least_same`: observations of a price that confirm it
    """
    n_rows, n_segments, n_markets, n_ladders = begin.rows, begin.segments, begin.markets, begin.ladders
    last_ladder, last_threshold, segment = np.int64(NONE), np.int64(NONE), begin.segments
    for k in range(count):
        slot, ladder = sort.order[k], sort.ladder[k]
        term = unpack_in_kernel(ladder, sort.line[k], ladder, np.int64(0))
        is_new = k == 0 or ladder != last_ladder
        if is_new:
            last_ladder = ladder
            g.event[n_ladders] = lists.event[partition]
            g.live[n_ladders] = lists.live[partition]
            g.kind[n_ladders] = np.int32(term.kind)
            g.subject[n_ladders] = np.int32(term.subject)
            rest.ladder_partition[n_ladders] = at
            n_ladders += 1
            g.markets[n_ladders] = n_markets
        if is_new or term.threshold != last_threshold:
            last_threshold = term.threshold
            g.threshold[n_markets] = np.int32(term.threshold)
            g.ladder[n_markets] = n_ladders - 1
            segment = n_segments
            for _ in range(outcomes[g.kind[n_ladders - 1]]):
                n_segments += 1
                g.rows[n_segments] = 0
            n_markets += 1
            g.segments[n_markets] = n_segments
            g.markets[n_ladders] = n_markets
        side = np.int32(term.side)
        g.rows[segment + side + 1] += 1
        g.row[n_rows] = slot
        g.book[n_rows] = np.int32(sort.names[k] >> _NAME_BITS)
        g.name[n_rows] = np.int32(sort.names[k] & _NAME_MASK)
        g.odds[n_rows] = prices.odds[slot]
        g.seen[n_rows] = prices.seen[slot]
        g.market[n_rows] = n_markets - 1
        g.side[n_rows] = side
        rest.start[n_rows] = prices.start[slot]
        rest.flap[n_rows] = np.uint8(prices.flags[slot] & FLAP != 0)
        rest.confirmed[n_rows] = prices.same[slot] >= least_same
        n_rows += 1
    return Counts(n_rows, n_segments, n_markets, n_ladders, begin.out)


@kernel
def _gather(
    partitions: Longs, lists: Lists, prices: PriceColumns, terms: TermColumns, least_same: Int, mismatch_code: Int,
    sort: SortKeys, draws: Draws, g: Groups, rest: RowColumns,
) -> Counts:  # fmt: skip
    """Sort the rows of `partitions` into flat columns with offsets, `g` and `rest`, and each of their lists in place.

    - `least_same`: observations of a price that confirm it
    - `mismatch_code`: code of a mismatch, 0 if these are accepted
    """
    zero = np.int64(0)
    written = Counts(zero, zero, zero, zero, zero)
    g.rows[0], g.segments[0], g.markets[0] = 0, 0, 0
    for at in range(partitions.size):
        partition = partitions[at]
        first = lists.start[partition]
        end = first + lists.size[partition]
        n_books = _quoted_draws(first, end, lists, prices, terms, draws)
        n_out = written.out
        count, all_out = _collect_rows(first, end, n_out, lists, prices, terms, mismatch_code, draws.quoted, sort, rest)
        for k in range(n_books):
            draws.quoted[draws.books[k]] = 0
        # Store this order in the partition's list; rows that are left out go to its end.
        for k in range(count):
            lists.pool[first + k] = sort.order[k]
        for k in range(end - first - count):
            lists.pool[first + count + k] = rest.out[n_out + k]
        written = Counts(written.rows, written.segments, written.markets, written.ladders, all_out)
        written = _write_rows(at, partition, count, written, lists, prices, terms.outcomes, least_same, sort, g, rest)
    for s in range(written.segments):
        g.rows[s + 1] += g.rows[s]
    return written


def gather(
    prices: PriceColumns,
    meaning: TermColumns,
    equivalents: Rules,
    held: Lists,
    partitions: Longs,
    *,
    mismatch: bool,
    agree: int = 0,
) -> PartitionColumns:
    """Sort some partitions into a board of their own, and their lists in place.

    `mismatch`: reject rows whose decimal and American prices differ. `agree`: consecutive observations that confirm a
    price.
    """
    n = int(held.size[partitions].sum())
    most = int(held.size[partitions].max(initial=0)) + 1
    width, books = int(meaning.outcomes.max(initial=2)), meaning.book_rank.size
    row, book, name, market, side, out = np.empty((6, n + 1), np.int32)
    threshold, event, kind, subject, ladder, ladder_partition = np.empty((6, n + 1), np.int32)
    seen, start = np.empty((2, n + 1), np.int64)
    flap, confirmed, why, live = np.empty((4, n + 1), np.uint8)
    segments, markets = np.empty((2, n + 2), np.int64)
    room = Groups(
        row, book, name, np.empty(n + 1), seen, market, side, np.empty(n * width + 2, np.int64), segments, markets,
        threshold, event, live, kind, subject, ladder,
    )  # fmt: skip
    rest = RowColumns(ladder_partition, start, flap, confirmed, out, why)
    written = Counts(*map(int, _gather(
        partitions, held, prices, meaning, agree, CODES["price_mismatch"] * mismatch,
        SortKeys(np.empty(most, np.int32), *np.empty((3, most), np.int64)),
        Draws(np.zeros(books + 1, np.uint8), np.empty(books + 1, np.int64)), room, rest,
    )))  # fmt: skip
    rows, ladders = slice(written.rows), slice(written.ladders)
    groups = Groups(
        row[rows], book[rows], name[rows], room.odds[rows], seen[rows], market[rows], side[rows],
        room.rows[: written.segments + 1], segments[: written.markets + 1],
        markets[: written.ladders + 1], threshold[: written.markets], event[ladders], live[ladders], kind[ladders],
        subject[ladders], ladder[: written.markets],
    )  # fmt: skip
    return PartitionColumns(
        linked(groups, equivalents), partitions, ladder_partition[ladders], start[rows], flap[rows], confirmed[rows],
        out[: written.out], why[: written.out],
    )  # fmt: skip
