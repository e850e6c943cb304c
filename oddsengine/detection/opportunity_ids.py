"""Opportunity ids: hashes of the kind, the markets, and the book and side of each leg. Prices are not part of an id.

A board stores one hash per ladder and one per book (`Hashes`). Every id hashes `_MOST_LEGS` legs, with 0 for missing
ones, so that an id never depends on what else is on the board.
"""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.columns import Ints, Longs, Words
from oddsengine.identity.groups import Groups, mix, step

_MOST_LEGS = 8  # more than the outcomes of any family
_NONE: Longs = np.empty(0, np.int64)


class Hashes(NamedTuple):
    """Stable hashes of the parts of market and leg keys."""

    ladder: Words  # by ladder: event id, live flag, kind and subject; see `ladders`
    book: Words  # by book: its id in the catalog, whatever the spelling; see `hash_books`


@lru_cache(maxsize=1 << 16)
def hash_text(text: str) -> int:
    """Hash a text to 64 bits, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def hash_texts(texts: Iterable[str]) -> Words:
    """Hash each text."""
    return np.array([hash_text(text) for text in texts], np.uint64)


def hash_books(names: Iterable[str]) -> Words:
    """Hash each book by its id in the catalog, which all spellings of it share."""
    return hash_texts(catalog.book(name).id for name in names)


def ladders(event: Words, live: npt.NDArray[np.uint8], kind: Words, subject: Words) -> Words:
    """Hash ladders from the hashes of the event id, `period/family` and the subject's name."""
    return mix(event, live, kind, subject)


@kernel
def _hashes(
    kind: np.uint64, low: Longs, high: Longs, rows: Ints, legs: int, market_ladder: Ints, threshold: Ints, book: Ints,
    side: Ints, ladders: Words, books: Words, out: Words,
) -> None:  # fmt: skip
    """Hash cases with one market, or two if `high` is not empty. Legs with a negative row hash as 0.

    - `kind`: hash of the kind of opportunity
    - `low`, `high` (per case): markets
    - `rows` (cases by legs): rows of the legs
    - `legs`: how many are hashed
    - `market_ladder` (per market), `threshold`, `book`, `side`: as `ladder`, `threshold`, `book` and `side` of
      `Groups`
    - `ladders`, `books`: as `ladder` and `book` of `Hashes`
    - `out` (per case): the hashes to write
    """
    start = step(np.uint64(0), kind)
    for c in range(low.size):
        m = low[c]
        h = step(start, step(ladders[market_ladder[m]], np.uint64(np.int64(threshold[m]))))
        if high.size > 0:
            m = high[c]
            h = step(h, step(ladders[market_ladder[m]], np.uint64(np.int64(threshold[m]))))
        for k in range(legs):
            leg = np.uint64(0)
            if k < rows.shape[1] and rows[c, k] >= 0:
                row = rows[c, k]
                leg = step(step(np.uint64(0), books[book[row]]), np.uint64(side[row]))
            h = step(h, leg)
        out[c] = h


def _of(kind: str, g: Groups, hashes: Hashes, low: Longs, high: Longs, rows: Ints, legs: int) -> Words:
    out = np.empty(low.size, np.uint64)
    if low.size:
        _hashes(
            np.uint64(hash_text(kind)), low, high, rows, legs, g.ladder, g.threshold, g.book, g.side,
            hashes.ladder, hashes.book, out,
        )  # fmt: skip
    return out


def of_prices(kind: str, groups: Groups, hashes: Hashes, market: Longs, row: Ints) -> Words:
    """Return ids of single prices in their markets."""
    return _of(kind, groups, hashes, market, _NONE, row.reshape(-1, 1), 1)


def of_markets(kind: str, groups: Groups, hashes: Hashes, market: Longs, rows: Ints) -> Words:
    """Return ids of sets of legs in one market; `rows` is (n, outcomes), -1 for no leg."""
    return _of(kind, groups, hashes, market, _NONE, rows, _MOST_LEGS)


def of_pairs(kind: str, groups: Groups, hashes: Hashes, low: Longs, high: Longs, rows: Ints) -> Words:
    """Return ids of pairs of legs in two markets."""
    return _of(kind, groups, hashes, low, high, rows, _MOST_LEGS)


def hexadecimal(hashes: Words) -> list[str]:
    """Format ids as 16 hexadecimal digits."""
    return hashes.astype(">u8").tobytes().hex(" ", 8).split()
