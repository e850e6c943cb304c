"""Groups: the priced rows of a board as sorted flat columns with offsets.

Rows are sorted by event, live flag, period and family, subject, line, outcome and book. Three offset arrays
divide them: `ladders -> markets -> segments -> rows`. A market has one segment for every outcome of its
family, even if no book quotes it. The markets of a ladder are sorted by threshold (hundredths): the line of a
total, or minus the home handicap of a spread, so that outcome 0 (over, home) gets less likely along the ladder.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine._jit import kernel
from oddsengine.columns import NO_TIME, NONE, Bytes, Floats, Ints, Longs, Words

_ALONE: Longs = np.empty(0, np.int64)
_Number = TypeVar("_Number", bound=np.integer[Any])


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
    equivalent: Longs = _ALONE  # per segment: the next one on the same fact, or itself; see `linked_outcomes`

    @property
    def outcomes(self) -> Longs:
        """Number of outcomes, per market."""
        return np.diff(self.segments)

    def live_of(self, rows: Ints | Longs | slice) -> Bytes:
        """1 for those of some rows that are in play."""
        return self.live[self.ladder[self.market[rows]]]


@kernel
def _intern(hashes, skip, start, n_codes, keys, codes, out, first):
    """Assign codes to 64-bit hashes by first appearance (`NONE` for skipped rows), using an empty table of 2^k slots.

    Starts at row `start` with `n_codes` distinct hashes. Returns the row at which it stopped (the end, or the row where
    the table was half full) and the number of distinct hashes by then.

    - `hashes` (uint64 per row), `skip` (uint8 per row): the hashes, and 1 for rows to skip
    - `keys`, `codes` (2^k slots): the table
    - `out` (int32 per row), `first` (int32 per code): codes and first rows to write
    """
    size = codes.size
    for k in range(n_codes):
        h = hashes[first[k]]
        at = np.int64((h * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - 1)
        while codes[at] >= 0:
            at = (at + 1) & (size - 1)
        keys[at] = h
        codes[at] = k
    for i in range(start, hashes.size):
        if skip[i] != 0:
            out[i] = NONE
            continue
        h = hashes[i]
        at = np.int64((h * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - 1)
        while codes[at] >= 0 and keys[at] != h:
            at = (at + 1) & (size - 1)
        if codes[at] < 0:
            if n_codes * 2 >= size:
                return i, n_codes
            keys[at] = h
            codes[at] = n_codes
            first[n_codes] = i
            n_codes += 1
        out[i] = codes[at]
    return hashes.size, n_codes


def intern(hashes: Words, skip: Bytes | None = None, expected: int = 0) -> tuple[Ints, Ints]:
    """Codes 0, 1, 2 ... of distinct hashes by first appearance (-1 if skipped), and the first row of each.

    `expected` is the number of distinct hashes to allocate for; the table grows if there are more.
    """
    n = hashes.size
    hashes = np.require(hashes, requirements=["C", "W"])
    if skip is None:
        skip = np.zeros(n, np.uint8)
    out, first = np.empty(n, np.int32), np.empty(n, np.int32)
    row, found, size = 0, 0, max(2 << min(n.bit_length(), 12), 2 << expected.bit_length())
    while True:
        # Start small: a small table stays in the processor's cache.
        keys, codes = np.empty(size, np.uint64), np.full(size, -1, np.int32)
        row, found = _intern(hashes, skip, row, found, keys, codes, out, first)
        if row == n:
            return out, first[:found].copy()
        size *= 4


def distinct(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Sorted distinct values; for a few hundred this is several times as fast as `np.unique`."""
    ordered = np.sort(values)
    new = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    out: npt.NDArray[_Number] = ordered[new]
    return out


@kernel
def first_gap(n: Any) -> Any:
    """Return the widest gap with which Shell's method sorts n values; the next ones are a third of it, down to 1.

    `n` is the number of values.
    """
    gap = 1
    while 9 * gap < n:
        gap = 3 * gap + 1
    return gap


@kernel
def step(h: Any, value: Any) -> Any:
    """Add one number to a hash of numbers.

    `h` is the hash so far, `value` the number.
    """
    h = (h ^ value) * np.uint64(0x9E3779B97F4A7C15)
    h = h ^ (h >> np.uint64(29))
    h = h * np.uint64(0xBF58476D1CE4E5B9)
    return h ^ (h >> np.uint64(32))


@kernel
def _mix(h, column):
    """Add one `column` to the hashes of rows; a column of size 1 is broadcast.

    `h` (uint64 per row) are the hashes, changed in place.
    """
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


def settle(groups: Groups, table: pl.DataFrame, raw_label: Sequence[str]) -> None:
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
    label = np.array([checksum(texts) for texts in tied.select(raw_label).iter_rows()], np.uint32)
    g.row[at] = g.row[at][np.lexsort((tied.drop("row").hash_rows().to_numpy(), label, run))]


def checksum(texts: Iterable[Any]) -> int:
    """Checksum of a raw label and its line, which orders equal prices of one bet."""
    return zlib.crc32("\x1f".join("" if label is None else str(label) for label in texts).encode("utf-8", "replace"))


__all__ = [
    "NO_TIME", "Bytes", "Floats", "Groups", "Ints", "Longs", "Words", "checksum", "intern", "mix", "settle",
]  # fmt: skip
