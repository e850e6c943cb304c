"""A second copy of the board for readers, so that readers never wait for a step, nor a step for readers.

The engine's own board changes while a step runs. Once a step is complete, its writes are repeated on the replica as
soon as nobody reads it: by the writer, or else by the next reader. Repeating is cheap, because nothing is searched
again. So a reader sees the state of exactly one update, and waits only for other readers and for writes to be repeated.
"""

import copy
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from oddsengine.board.open import Difference, Hits, OpenSet, OpenTable
from oddsengine.board.state import Batch, Board
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import Bytes, Ints, Longs
from oddsengine.identity.wording import Wording
from oddsengine.pricing.momentum import LadderSamples, Memory
from oddsengine.tables.timestamps import time_of


class ReadState(NamedTuple):
    """What readers see: a board, and what its active views have open."""

    board: Board
    opened: OpenTable
    rows: dict[Any, int]  # active views and their rows of `opened`

    @property
    def number(self) -> int:
        """Number of the last step."""
        return self.board.number

    @property
    def now(self) -> datetime | None:
        """Time of the last step."""
        return time_of(self.board.now)

    def open(self, view: Any) -> OpenSet:
        """The open opportunities of a view; empty if it is suspended."""
        return OpenSet(self.opened, self.rows.get(view, -1))


Write = Callable[[ReadState], None]


class Replica:
    """A copy of an engine's board and open opportunities."""

    def __init__(self, board: Board, opened: OpenTable, rows: Mapping[Any, int]) -> None:
        self._shown = ReadState(copy.deepcopy(board), copy.deepcopy(opened), dict(rows))
        self._shown.board.names.numbering = board.names.wordings
        self._lock = threading.RLock()
        self._readers = 0  # nested reads of the thread that holds the lock
        self._due: deque[Sequence[Write]] = deque()
        self.broken = False  # whether repeating writes failed

    def enqueue(self, writes: Sequence[Write]) -> None:
        """Writes to repeat together, in order."""
        self._due.append(writes)

    def follow(self) -> None:
        """Repeat what is due, unless somebody is reading."""
        if self._lock.acquire(blocking=False):
            try:
                self._repeat()
            finally:
                self._lock.release()

    @contextmanager
    def reading(self) -> Iterator[ReadState | None]:
        """The latest state, which does not change until the end of the with statement; None if this copy is broken."""
        with self._lock:
            self._repeat()
            self._readers += 1
            try:
                yield None if self.broken else self._shown
            finally:
                self._readers -= 1

    @property
    def reads(self) -> bool:
        """Whether this thread is reading."""
        if not self._lock.acquire(blocking=False):
            return False
        self._lock.release()
        return self._readers > 0

    @property
    def busy(self) -> bool:
        """Whether a reader would wait for another one, or for writes to be repeated."""
        if self._due or not self._lock.acquire(blocking=False):
            return True
        self._lock.release()
        return False

    def _repeat(self) -> None:
        if self._readers or self.broken:
            return
        try:
            while self._due:
                for write in self._due.popleft():
                    write(self._shown)
        except BaseException as error:
            self.broken = True
            self._due.clear()
            if not isinstance(error, Exception):
                raise
            warnings.warn(f"the board is copied again for readers: {error!r}", RuntimeWarning, stacklevel=3)


# ---- what is repeated ----


def applied(batch: Batch) -> Write:
    """A batch was applied."""

    def write(shown: ReadState) -> None:
        if shown.board.repeat(batch).regrouped:
            shown.opened.rehome(shown.board.rows.unit)

    return write


def judged(slots: Ints, guarded: Verdicts, verdicts: Bytes, rejected: Bytes) -> Write:
    """Rows were judged."""
    return lambda shown: shown.board.judge(slots, guarded, verdicts, rejected)


def searched(rows: Longs, units: Longs, hits: Hits, difference: Difference, now: int) -> Write:
    """Views were searched."""
    return lambda shown: shown.opened.commit(rows, units, hits, difference, now)


def moved(sampled: LadderSamples, memory: Memory) -> Write:
    """Momentum changed."""
    books = memory.books()

    def write(shown: ReadState) -> None:
        shown.board.momentum.rename(books)
        shown.board.momentum.commit(sampled)

    return write


def sampling(shown: ReadState) -> None:
    """Momentum is sampled from now on."""
    shown.board.momentum = Memory()


def added(row: int) -> Write:
    """A view got a row of the open table."""

    def write(shown: ReadState) -> None:
        made = shown.opened.add().row
        assert made == row, f"the replica gave row {made} to a view, the engine {row}"

    return write


def woken(view: Any, row: int, places: Ints, born: Longs) -> Write:
    """A view became active."""

    def write(shown: ReadState) -> None:
        shown.opened.born[places] = born
        shown.rows[view] = row

    return write


def dropped(view: Any, row: int) -> Write:
    """A view was suspended."""

    def write(shown: ReadState) -> None:
        shown.rows.pop(view, None)
        shown.opened.drop(row)

    return write


def completed(number: int, numbering: list[Wording], *, renumbered: bool) -> Write:
    """A step was completed; `numbering` identifies its codes of terms, see `Names`."""

    def write(shown: ReadState) -> None:
        board = shown.board
        board.keep()
        board.number = number
        if renumbered:
            board.renumber()
            shown.opened.rehome(board.rows.unit)
        board.names.numbering = numbering

    return write
