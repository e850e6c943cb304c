"""Groups: the priced rows of a board as sorted flat columns with offsets.

Rows are sorted by event, live flag, period and family, subject, line, outcome and book. Three offset arrays
divide them: `ladders -> markets -> segments -> rows`. A market has one segment for every outcome of its
family, even if no book quotes it. The markets of a ladder are sorted by threshold (hundredths): the line of a
total, or minus the home handicap of a spread, so that outcome 0 (over, home) gets less likely along the ladder.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine._jit import kernel
from oddsengine.columns import NO_TIME, Bytes, Floats, Ints, Longs, Words

_ALONE: Longs = np.empty(0, np.int64)


class Groups(NamedTuple):
    """Sorted columns and offsets; the module docstring describes the order."""

    row: Ints  # position in the table, per row
    book: Ints  # rank of the book's id, per row
    name: Ints  # rank of the market type's own name, per row
    odds: Floats  # quoted decimal price, per row
    seen: Longs  # last seen, microseconds, per row
    market: Ints  # market of the row, per row
    side: Ints  # outcome of the row in its market's order, per row
    rows: Longs  # segment -> rows
    segments: Longs  # market -> segments
    markets: Longs  # ladder -> markets
    threshold: Ints  # hundredths, per market
    event: Ints  # per ladder
    live: Bytes  # per ladder
    kind: Ints  # per ladder: index into the identity's kinds
    subject: Ints  # per ladder: 0 none, 1 home, 2 away, from 3 a player
    ladder: Ints  # per market
    twin: Longs = _ALONE  # per segment: the next one that settles on the same fact, or itself; see `twins`

    @property
    def outcomes(self) -> Longs:
        """Number of outcomes, per market."""
        return np.diff(self.segments)


@kernel
def _intern(hashes, skip, start, found, keys, codes, out, first):
    """Assign codes to 64-bit hashes by first appearance (-1 for skipped rows), using an empty table of 2^k slots.

    Starts at row `start` with `found` distinct hashes. Returns the row at which it stopped (the end, or the row where
    the table was half full) and the number of distinct hashes by then.
    """
    size = codes.size
    for k in range(found):
        h = hashes[first[k]]
        at = np.int64((h * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - 1)
        while codes[at] >= 0:
            at = (at + 1) & (size - 1)
        keys[at] = h
        codes[at] = k
    for i in range(start, hashes.size):
        if skip[i] != 0:
            out[i] = -1
            continue
        h = hashes[i]
        at = np.int64((h * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - 1)
        while codes[at] >= 0 and keys[at] != h:
            at = (at + 1) & (size - 1)
        if codes[at] < 0:
            if found * 2 >= size:
                return i, found
            keys[at] = h
            codes[at] = found
            first[found] = i
            found += 1
        out[i] = codes[at]
    return hashes.size, found


def intern(hashes: Words, skip: Bytes | None = None, expected: int = 0) -> tuple[Ints, Ints]:
    """Codes 0, 1, 2 ... of distinct hashes by first appearance (-1 if skipped), and the first row of each.

    `expected` is the number of distinct hashes to allocate for; the table grows if there are more.
    """
    n = hashes.size
    hashes = np.require(hashes, requirements=["C", "W"])
    if skip is None:
        skip = np.zeros(n, np.uint8)
    out, first = np.empty(n, np.int32), np.empty(n, np.int32)
    row, found, size = 0, 0, max(1 << 13, 2 << expected.bit_length())
    while True:
        # Start small: a small table stays in the processor's cache.
        keys, codes = np.empty(size, np.uint64), np.full(size, -1, np.int32)
        row, found = _intern(hashes, skip, row, found, keys, codes, out, first)
        if row == n:
            return out, first[:found].copy()
        size *= 4


def distinct(values: Ints) -> Ints:
    """Sorted distinct values; for a few hundred this is several times as fast as `np.unique`."""
    ordered = np.sort(values)
    new = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    out: Ints = ordered[new]
    return out


@kernel
def step(h: Any, value: Any) -> Any:
    """Add one number to a hash of numbers."""
    h = (h ^ value) * np.uint64(0x9E3779B97F4A7C15)
    h = h ^ (h >> np.uint64(29))
    h = h * np.uint64(0xBF58476D1CE4E5B9)
    return h ^ (h >> np.uint64(32))


@kernel
def _mix(h, column):
    """Add one column to the hashes of rows; a column of size 1 is broadcast."""
    for i in range(h.size):
        h[i] = step(h[i], column[i if column.size > 1 else 0])


def mix(*columns: npt.NDArray[np.integer] | int) -> Words:
    """Hash the rows of integer columns to 64 bits; the same on every run and machine."""
    words = [np.atleast_1d(np.asarray(column)).astype(np.uint64) for column in columns]
    sizes = {column.size for column in words} - {1} or {1}
    if len(sizes) > 1:
        raise ValueError(f"columns must have equal lengths or length 1, got lengths {sorted(sizes)}")
    h = np.zeros(sizes.pop(), np.uint64)
    for column in words:
        _mix(h, column)
    return h


@kernel
def _place(
    code, side, rank, segments, rows, book, name, odds, seen,
    out_row, out_book, out_name, out_odds, out_seen, end,
):  # fmt: skip
    """Place rows in their segments, sorted by book, then name, price (lowest first) and time (newest first)."""
    n = code.size
    total = rows.size - 1
    for i in range(n):
        if code[i] >= 0:
            rows[segments[rank[code[i]]] + side[i] + 1] += 1
    for s in range(total):
        rows[s + 1] += rows[s]
    for s in range(total):
        end[s] = rows[s]
    for i in range(n):
        if code[i] >= 0:
            s = segments[rank[code[i]]] + side[i]
            at = end[s]
            end[s] = at + 1
            out_row[at] = i
            out_book[at] = book[i]
            out_name[at] = name[i]
            out_odds[at] = odds[i]
            out_seen[at] = seen[i]
    for s in range(total):
        for i in range(rows[s] + 1, rows[s + 1]):
            r, b, k, d, t = out_row[i], out_book[i], out_name[i], out_odds[i], out_seen[i]
            at = i
            while at > rows[s]:
                j = at - 1
                if out_book[j] < b:
                    break
                if out_book[j] == b:
                    if out_name[j] < k:
                        break
                    if out_name[j] == k:
                        if out_odds[j] < d:
                            break
                        if out_odds[j] == d and out_seen[j] >= t:
                            break
                out_row[at], out_book[at], out_name[at] = out_row[j], out_book[j], out_name[j]
                out_odds[at], out_seen[at] = out_odds[j], out_seen[j]
                at = j
            out_row[at], out_book[at], out_name[at], out_odds[at], out_seen[at] = r, b, k, d, t


class Keys(NamedTuple):
    """Identity of every row of a table, in the table's order."""

    code: Ints  # market of the row by first appearance, -1 if identity rejects the row
    side: npt.NDArray[np.int8]
    threshold: Ints  # per market, as are the next four columns
    event: Ints
    live: Bytes
    kind: Ints
    subject: Ints
    book: Ints  # per row
    name: Ints  # per row


def settle(groups: Groups, table: pl.DataFrame, wording: Sequence[str]) -> None:
    """Order rows that are equal in all columns of `groups` by their texts, so that the table's order cannot matter."""
    g = groups
    same = np.ones(max(g.row.size - 1, 0), bool)
    for column in (g.market, g.side, g.book, g.name, g.odds, g.seen):
        same &= column[1:] == column[:-1]
    if not same.any():
        return
    member = np.zeros(g.row.size, bool)
    member[1:] |= same
    member[:-1] |= same
    at = np.flatnonzero(member)
    run = np.cumsum(~np.concatenate(([False], same)))[at]
    tied = table[g.row[at]]
    said = np.array([checksum(texts) for texts in tied.select(wording).iter_rows()], np.uint32)
    g.row[at] = g.row[at][np.lexsort((tied.drop("row").hash_rows().to_numpy(), said, run))]


def checksum(texts: Iterable[Any]) -> int:
    """Checksum of a wording and its line, which orders equal prices of one bet."""
    return zlib.crc32("\x1f".join("" if said is None else str(said) for said in texts).encode("utf-8", "replace"))


def cut(keys: Keys, outcomes: Longs, odds: Floats, seen: Longs) -> Groups:
    """Sort the rows that have a market into `Groups`; `outcomes` is the number of outcomes of each kind."""
    event, live, kind, subject, threshold = keys.event, keys.live, keys.kind, keys.subject, keys.threshold
    size = event.size
    ladder_code, ladder_first = intern(mix(event, live, kind, subject))
    ladder_order = np.lexsort(
        (
            subject[ladder_first],
            (event[ladder_first].astype(np.int64) * 2 + live[ladder_first]) * outcomes.size + kind[ladder_first],
        )
    )
    ladder_rank = np.empty(ladder_order.size, np.int32)
    ladder_rank[ladder_order] = np.arange(ladder_order.size, dtype=np.int32)
    at = ladder_first[ladder_order]

    market_ladder = ladder_rank[ladder_code]
    key = (market_ladder.astype(np.int64) << 32) + (threshold.astype(np.int64) + (1 << 31))
    market_order = np.argsort(key)
    rank = np.empty(size, np.int32)
    rank[market_order] = np.arange(size, dtype=np.int32)
    ladder = market_ladder[market_order]
    markets = np.zeros(at.size + 1, np.int64)
    np.cumsum(np.bincount(ladder, minlength=at.size), out=markets[1:])
    segments = np.zeros(size + 1, np.int64)
    np.cumsum(outcomes[kind[market_order]], out=segments[1:])

    used = int(np.count_nonzero(keys.code >= 0))
    rows = np.zeros(int(segments[-1]) + 1, np.int64)
    row, book, name = (np.empty(used, np.int32) for _ in range(3))
    price, time = np.empty(used), np.empty(used, np.int64)
    _place(
        keys.code, keys.side, rank, segments, rows, keys.book, keys.name, odds, seen,
        row, book, name, price, time, np.empty_like(rows),
    )  # fmt: skip
    of_segment = np.repeat(np.arange(size, dtype=np.int32), np.diff(segments))
    per_segment = np.diff(rows)
    side = (np.arange(of_segment.size) - segments[of_segment]).astype(np.int32)
    return Groups(
        row=row,
        book=book,
        name=name,
        odds=price,
        seen=time,
        market=np.repeat(of_segment, per_segment),
        side=np.repeat(side, per_segment),
        rows=rows,
        segments=segments,
        markets=markets,
        threshold=threshold[market_order],
        event=event[at],
        live=live[at],
        kind=kind[at],
        subject=subject[at],
        ladder=ladder,
    )


__all__ = [
    "NO_TIME", "Bytes", "Floats", "Groups", "Ints", "Keys", "Longs", "Words", "checksum", "cut", "intern", "mix",
    "settle",
]  # fmt: skip
