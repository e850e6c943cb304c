"""Main lines of one board, by set of books.

The main line of a ladder follows from the accepted prices of some books (`guards.main_markets.main_lines`). It is
stored by slot, and computed again where a price of the partition has changed or was judged since.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from oddsengine.board.ageing import REMEMBERED_S
from oddsengine.board.state import Board
from oddsengine.columns import NO_TIME, SECOND, Ints, Longs, grown
from oddsengine.identity.layout import BOOK_BITS

NOT_COMPUTED = 2


class MainLines:
    """The main lines among the prices of some books; None for all."""

    def __init__(self, books: frozenset[str] | None) -> None:
        self.books = books
        self.marks = np.empty(0, np.uint8)  # by slot: 1 main line, 0 other line, or `NOT_COMPUTED`
        self.changed = np.empty(0, np.int64)  # by slot: when that last changed
        self.outdated = np.empty(0, bool)  # by partition
        self.encoded: tuple[dict[int, Any], ...] = ({}, {})  # rows of this update, by slot: all, best

    def forget(self) -> None:
        """Compute all partitions again: their numbers have changed."""
        self.outdated = np.empty(0, bool)


class LineSets:
    """The sets of books that have been asked for."""

    def __init__(self) -> None:
        self._sets: dict[frozenset[str] | None, MainLines] = {}
        self._read: tuple[int, bool] = -1, False  # number of the board, and whether it was judged, as of `outdate`
        self._now = NO_TIME  # its time

    def __iter__(self) -> Iterator[MainLines]:
        return iter(self._sets.values())

    def for_books(self, books: frozenset[str] | None) -> MainLines:
        lines = self._sets.get(books)
        if lines is None:
            lines = self._sets[books] = MainLines(books)
        return lines

    def renamed(self) -> None:
        """Compute everything again, after partitions were renumbered."""
        for lines in self:
            lines.forget()

    def outdate(self, board: Board, *, judged: bool) -> None:
        """Mark what has changed since the last call as outdated."""
        rows, names, number = board.rows, board.names, board.number
        partitions = names.partitions.size
        if self._read not in ((number, judged), (number, True)):
            if self._now == NO_TIME or board.now - self._now >= REMEMBERED_S * SECOND:  # removals may be forgotten
                self.renamed()
            else:
                last = np.maximum(rows.moved[: rows.top], rows.judged[: rows.top])
                changed = np.flatnonzero(last >= self._now)
                affected = partitions_of(board, changed.astype(np.int32))
                for lines in self:
                    lines.outdated[affected[affected < lines.outdated.size]] = True
            self._read, self._now = (number, judged), board.now
        for lines in self:
            lines.marks = grown(lines.marks, rows.top, NOT_COMPUTED)
            lines.changed = grown(lines.changed, rows.top, NO_TIME)
            lines.outdated = grown(lines.outdated, partitions, fill=True)


def partitions_of(board: Board, slots: Ints) -> Longs:
    """The partitions of some rows, and those that they were in before their live flag changed."""
    names, rows = board.names, board.rows
    of_terms = names.terms.partitions.values[rows.key[slots] >> BOOK_BITS].ravel()
    partitions = np.unique(np.concatenate((of_terms, rows.partition[slots])))
    return partitions[(partitions >= 0) & (partitions < names.partitions.size)].astype(np.int64)
