"""The layout: rows of some partitions, sorted into `Groups`.

A table and a live board use the same sort. Each row has a *term* (a raw label with its line) and a book; `pack` encodes
what a term means as sort keys, and `gather` sorts the rows of partitions by them. On the board, terms and partitions
are kept (`board.names`, `board.partitions`); for a table they are made once (`identity.table_identity`).

A partition contains the rows of one event and live flag that any guard or detector combines: the moneyline and spreads
of one period (with its totals if the distribution of the margin depends on them), or one other kind of market.

Columns of the kernels:

- `slots`, `slot`: rows
- `key`, `odds`, `seen`, `start`, `state`, `flags`, `same` (per slot): as in `PriceColumns`
- `place`, `tie`, `book_rank`, `name_rank`, `outcomes`: as in `TermColumns`
- `order` (int32), `high` (int64, n by 2), `low` (int64): rows of a partition in order, and their sort keys: ladder,
  line and outcome; book and market name
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine._jit import inlined, kernel
from oddsengine.bounds import excerpt
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import NONE, Bytes, Floats, Ints, Longs, Words
from oddsengine.identity.groups import Groups, first_gap, intern
from oddsengine.identity.linked_outcomes import Rules, linked
from oddsengine.identity.raw_labels import DRAW, MAYBE_DRAW, moneyline
from oddsengine.identity.traits import MarketKind

BOOK_BITS = 16
BOOK_MASK = (1 << BOOK_BITS) - 1
FREE, ON, REMOVED = 0, 1, 2  # states of a row
LIVE, SUSPENDED, MISMATCH, FLAP = 1, 2, 4, 8  # flags of a row
MOST_SUBJECTS = 1 << 24
UNREAD = 15  # side of a term whose outcome is not recognised

# Bit fields of `pack`
_KIND, _SUBJECT, _SIDE, _NAME, _WAYS = 44, 20, 4, 17, 8  # bits below the kind, subject, line, name and ways
OTHER_GAME = 1 << 16  # bit of the last number: the term names another game than its event
_SUBJECT_MASK, SIDE_MASK, _BYTE = MOST_SUBJECTS - 1, (1 << _SIDE) - 1, 255
_ZERO = 1 << 30  # added to thresholds, which may be negative
_BOOK, _NAME_MASK = 32, (1 << 32) - 1  # bits below the rank of the book, and those of the name's
_MOVES, _MOVES_OF_ROW = 64, 16  # rows moved by insertion, of a partition and for each row, before it is given up
_LINE = 31 + _SIDE  # bits of threshold and side

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


def pack(
    kind: Any, with_draw: Any, subject: Any, threshold: Any, side: Any, name: Any, two_way: Any, verdict: Any,
    other_game: Any,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Encode terms (numbers or columns) as sort keys and verdict, four 64-bit integers of bit fields.

    0: kind, subject. 1: threshold, side. 2: as 0, for the kind with a draw.
    3: market name, `OTHER_GAME`, ways, verdict.
    """
    return (
        kind << _KIND | subject << _SUBJECT,
        (threshold + _ZERO) << _SIDE | side,
        with_draw << _KIND | subject << _SUBJECT,
        name << _NAME | other_game * OTHER_GAME | two_way << _WAYS | verdict,
    )


def kind_and_verdict(place: Longs) -> tuple[int, int, int]:
    """Decode the kind, the verdict and `two_way` of one packed term."""
    rest = int(place[3])
    return int(place[0]) >> _KIND, rest & _BYTE, rest >> _WAYS & _BYTE


def ranks(place: Sequence[Longs]) -> Longs:
    """Rank packed terms by ladder, line and side."""
    ladder, first = intern(place[0].astype(np.uint64))
    rank = np.empty(first.size, np.int64)
    rank[np.argsort(place[0][first])] = np.arange(first.size)
    out = np.empty(ladder.size, np.int64)
    out[np.argsort(rank[ladder] << _LINE | place[1])] = np.arange(ladder.size)
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

    place: Longs  # (terms, 4), see `pack`
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


@kernel
def enrol(slots, partition, start, size, pool):
    """Append each slot to its partition's list, which has enough room.

    `partition` (per slot) is the partition of each row; `start`, `size` (per partition) and `pool` are as in `Lists`.
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
def _before(slot, h, lo, names, at, high, low, order, odds, seen, tie, key):
    """Whether a row comes before the one at a place: by ladder, line, outcome, book, market name, price, time, text.

    `h`, `lo` and `names` are the row's own sort keys; the other row is at place `at`.
    """
    i = order[at]
    if h != high[at, 0]:
        return h < high[at, 0]
    if lo != high[at, 1]:
        return lo < high[at, 1]
    if names != low[at]:
        return names < low[at]
    if odds[slot] != odds[i]:
        return odds[slot] < odds[i]
    if seen[slot] != seen[i]:
        return seen[slot] > seen[i]
    tie_slot, tie_other = tie[key[slot] >> BOOK_BITS], tie[key[i] >> BOOK_BITS]
    return tie_slot < tie_other if tie_slot != tie_other else key[slot] < key[i]


@kernel
def _sort(count, high, low, order, odds, seen, tie, key):
    """Sort the rows of a partition by Shell's method.

    `count` is the number of rows.
    """
    gap = first_gap(count)
    while gap > 0:
        for k in range(gap, count):
            slot, h, lo, names = order[k], high[k, 0], high[k, 1], low[k]
            j = k
            while j >= gap and _before(slot, h, lo, names, j - gap, high, low, order, odds, seen, tie, key):
                order[j] = order[j - gap]
                high[j, 0] = high[j - gap, 0]
                high[j, 1] = high[j - gap, 1]
                low[j] = low[j - gap]
                j -= gap
            order[j] = slot
            high[j, 0] = h
            high[j, 1] = lo
            low[j] = names
        gap //= 3


@kernel
def _gather(
    partitions, p_start, p_size, pool, partition_event, partition_live, key, odds, seen, start, state, flags, same,
    place, tie, book_rank, name_rank, outcomes, least_same, mismatch_code, other_game_code, suspended_code,
    ambiguous_code, no_line_code, high, low, order, draws, draw_books, row, book, name, price, time, market, side,
    begin, flap, confirmed, rows, segments, markets, threshold, event, live, kind, subject, ladder, ladder_partition,
    out, why,
):  # fmt: skip
    """Sort rows of partitions into flat columns with offsets. Returns counts of rows, segments, markets, ladders, out.

    - `partitions`: the partitions
    - `p_start`, `p_size`, `pool`, `partition_event`, `partition_live`: the columns of `Lists`
    - `least_same`: observations of a price that confirm it
    - `mismatch_code`, `other_game_code`, `suspended_code`, `ambiguous_code`, `no_line_code`: codes of verdicts; the
      first is 0 if mismatches are accepted
    - `draws` (uint8 per book), `draw_books`: scratch arrays: what a book's moneyline quotes (`DRAW`, `MAYBE_DRAW`),
      and the books that quote either
    - `row`, `book`, `name`, `price`, `time`, `market`, `side`, `rows`, `segments`, `markets`, `threshold`, `event`,
      `live`, `kind`, `subject`, `ladder`: the columns of `Groups` to write
    - `begin`, `flap`, `confirmed`, `ladder_partition`, `out`, `why`: the other columns of `PartitionColumns` to write;
      `begin` is its `start`
    """
    n_rows, n_segments, n_markets, n_ladders, n_out = 0, 0, 0, 0, 0
    rows[0] = 0
    segments[0] = 0
    markets[0] = 0
    for at in range(partitions.size):
        u = partitions[at]
        a, n = p_start[u], p_size[u]
        # Books whose moneyline quotes the draw, or an outcome that is not recognised and may be the draw.
        n_draw_books = 0
        for k in range(n):
            slot = pool[a + k]
            t = key[slot] >> BOOK_BITS
            if state[slot] == ON and (place[t, 3] >> _WAYS) & _BYTE != 0 and place[t, 3] & OTHER_GAME == 0:
                outcome = place[t, 1] & SIDE_MASK
                if outcome in (DRAW, UNREAD):
                    b = key[slot] & BOOK_MASK
                    if draws[b] == 0:
                        draw_books[n_draw_books] = b
                        n_draw_books += 1
                    draws[b] |= np.uint8(DRAW) if outcome == DRAW else np.uint8(MAYBE_DRAW)
        # A list is nearly sorted, since each sort leaves it so; insertion is given up for one that is not.
        count, n_moves, most_moves = 0, 0, _MOVES + _MOVES_OF_ROW * n
        first_out = n_out
        for k in range(n):
            slot = pool[a + k]
            if state[slot] != ON:
                out[n_out] = slot
                why[n_out] = ACCEPTED
                n_out += 1
                continue
            t = key[slot] >> BOOK_BITS
            verdict = place[t, 3] & _BYTE
            ways = (place[t, 3] >> _WAYS) & _BYTE
            h = place[t, 0]
            lo = place[t, 1]
            b = key[slot] & BOOK_MASK
            if ways != 0:
                is_three_way, outcome, verdict = moneyline(
                    ways, draws[b], lo & SIDE_MASK, verdict, ambiguous_code, no_line_code
                )
                lo = (lo & ~SIDE_MASK) | outcome
                if is_three_way:
                    h = place[t, 2]
            if place[t, 3] & OTHER_GAME != 0:
                verdict = other_game_code
            if flags[slot] & MISMATCH and mismatch_code != ACCEPTED:
                verdict = mismatch_code
            if flags[slot] & SUSPENDED:
                verdict = suspended_code
            if verdict != ACCEPTED:
                out[n_out] = slot
                why[n_out] = verdict
                n_out += 1
                continue
            names = (np.int64(book_rank[b]) << _BOOK) | np.int64(name_rank[place[t, 3] >> _NAME])
            j = count
            while (
                j > 0
                and n_moves < most_moves
                and _before(slot, h, lo, names, j - 1, high, low, order, odds, seen, tie, key)
            ):
                order[j] = order[j - 1]
                high[j, 0] = high[j - 1, 0]
                high[j, 1] = high[j - 1, 1]
                low[j] = low[j - 1]
                j -= 1
                n_moves += 1
            order[j] = slot
            high[j, 0] = h
            high[j, 1] = lo
            low[j] = names
            count += 1
        if n_moves >= most_moves:
            _sort(count, high, low, order, odds, seen, tie, key)
        for k in range(n_draw_books):
            draws[draw_books[k]] = 0
        # Store this order in the partition's list; rows that are left out go to its end.
        for k in range(count):
            pool[a + k] = order[k]
        for k in range(n - count):
            pool[a + count + k] = out[first_out + k]
        last_ladder = np.int64(NONE)
        last_market = np.int64(NONE)
        segment = np.int64(0)
        for k in range(count):
            slot = order[k]
            h, lo = high[k, 0], high[k, 1]
            if k == 0 or h != last_ladder:
                last_ladder = h
                last_market = NONE
                event[n_ladders] = partition_event[u]
                live[n_ladders] = partition_live[u]
                kind[n_ladders] = np.int32(h >> _KIND)
                subject[n_ladders] = np.int32((h >> _SUBJECT) & _SUBJECT_MASK)
                ladder_partition[n_ladders] = at
                n_ladders += 1
                markets[n_ladders] = n_markets
            if (lo >> _SIDE) != last_market:
                last_market = lo >> _SIDE
                threshold[n_markets] = np.int32(last_market - _ZERO)
                ladder[n_markets] = n_ladders - 1
                segment = n_segments
                for _ in range(outcomes[kind[n_ladders - 1]]):
                    n_segments += 1
                    rows[n_segments] = 0
                n_markets += 1
                segments[n_markets] = n_segments
                markets[n_ladders] = n_markets
            outcome = np.int32(lo & SIDE_MASK)
            rows[segment + outcome + 1] += 1
            row[n_rows] = slot
            book[n_rows] = np.int32(low[k] >> _BOOK)
            name[n_rows] = np.int32(low[k] & _NAME_MASK)
            price[n_rows] = odds[slot]
            time[n_rows] = seen[slot]
            market[n_rows] = n_markets - 1
            side[n_rows] = outcome
            begin[n_rows] = start[slot]
            flap[n_rows] = np.uint8(flags[slot] & FLAP != 0)
            confirmed[n_rows] = same[slot] >= least_same
            n_rows += 1
    for s in range(n_segments):
        rows[s + 1] += rows[s]
    return n_rows, n_segments, n_markets, n_ladders, n_out


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
    width = int(meaning.outcomes.max(initial=2))
    ints = np.empty((8, n + 1), np.int32)
    per_market = np.empty((7, n + 1), np.int32)
    price, time, begin = np.empty(n + 1), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    flap, confirmed, why, live = np.empty((4, n + 1), np.uint8)
    offsets, segments, markets = np.empty(n * width + 2, np.int64), np.empty(n + 2, np.int64), np.empty(n + 2, np.int64)
    row, book, name, market, side, out = ints[:6]
    threshold, event, kind, subject, ladder, ladder_partition = per_market[:6]
    books = meaning.book_rank.size
    n_rows, n_segments, n_markets, n_ladders, n_out = _gather(
        partitions, *held, *prices, *meaning, agree,
        CODES["price_mismatch"] * mismatch, CODES["other_game"], CODES["suspended"], CODES["ambiguous_moneyline"],
        CODES["no_line"],
        np.empty((most, 2), np.int64), np.empty(most, np.int64), np.empty(most, np.int32),
        np.zeros(books + 1, np.uint8), np.empty(books + 1, np.int64),
        row, book, name, price, time, market, side, begin, flap, confirmed, offsets, segments, markets, threshold,
        event, live, kind, subject, ladder, ladder_partition, out, why,
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
    return PartitionColumns(
        linked(groups, equivalents), partitions, ladder_partition[:n_ladders], begin[:n_rows], flap[:n_rows],
        confirmed[:n_rows], out[:n_out], why[:n_out],
    )  # fmt: skip
