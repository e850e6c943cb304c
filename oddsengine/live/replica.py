"""Copies of the board for readers: as it is, so that readers never wait for a step, and as it was some time ago.

The engine's own board changes while a step runs. Once a step is complete, its writes are repeated on each copy as soon
as they are old enough and nobody reads it: by the writer, or else by the next reader. Repeating is cheap, because
nothing is judged or searched again. So a reader sees the state of exactly one update, and waits only for other readers
and for writes to be repeated.
"""

import copy
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from oddsengine.board.open import OpenSet, OpenTable
from oddsengine.board.state import Board
from oddsengine.catalog import FairTable
from oddsengine.columns import NO_TIME, SECOND
from oddsengine.live.key import ViewKey
from oddsengine.tables.timestamps import time_of


@dataclass(eq=False)
class ReadState:
    """What readers see: a board, and what its active views have open."""

    board: Board
    opened: OpenTable
    rows: dict[ViewKey, int]  # active views and their rows of `opened`
    fair: FairTable  # constants of the fair price at the close
    samples: bool  # whether momentum is sampled

    @property
    def number(self) -> int:
        """Number of the last step."""
        return self.board.number

    @property
    def now(self) -> datetime | None:
        """Time of the last step."""
        return time_of(self.board.now)

    def open(self, view: ViewKey) -> OpenSet:
        """The open opportunities of a view; empty if it is suspended."""
        return OpenSet(self.opened, self.rows.get(view, -1))

    def copied(self) -> "ReadState":
        """An equal state; texts are shared."""
        board = copy.deepcopy(self.board)
        board.names.numbering = self.board.names.numbering
        return replace(self, board=board, opened=copy.deepcopy(self.opened), rows=dict(self.rows))

    @classmethod
    def empty(cls, like: "ReadState") -> "ReadState":
        """A board without prices, with the guards and constants of another one."""
        return cls(Board(like.board.off, like.board.limits), OpenTable(), {}, like.fair, samples=False)


Write = Callable[[ReadState], None]


class Written(NamedTuple):
    """What was written up to the end of a step, or since then."""

    number: int  # of the step
    now: int
    writes: Sequence[Write] | ReadState  # a state: to begin from


class Replica:
    """A copy of an engine's board and open opportunities as they were some time ago, or after the last step."""

    def __init__(self, state: ReadState, lag: int = 0, *, needs_copy: bool = False) -> None:
        self._shown = state
        self._lag = lag  # microseconds
        self._lock = threading.RLock()
        self._readers = 0  # nested reads of the thread that holds the lock
        self._waiting: deque[Written] = deque()  # not yet old enough; only the writer uses it
        self._due: deque[Written] = deque()  # the writer appends, whoever holds the lock repeats
        self._reached = state.board.number, state.board.now
        self.since = state.board.now  # time of the copy from which it began, or is going to
        self._needs_copy = needs_copy  # of the board, to begin from
        self._fails = False  # a reader found that writes cannot be repeated; the writer does not know yet
        self.failure = ""  # why writes could not be repeated; empty once it has begun anew

    @property
    def number(self) -> int:
        """Number of the step that a new reader sees."""
        return 0 if self.failure else self._reached[0]

    @property
    def now(self) -> int:
        """Time of the step that readers see."""
        return int(NO_TIME) if self.failure else self._reached[1]

    # ---- for the writer ----

    def needs_copy(self) -> bool:
        """Whether it has neither a board nor one to begin from; what is written is then left out."""
        if self._fails:
            self._fails, self._needs_copy = False, True
            self._waiting.clear()
        return self._needs_copy

    def enqueue(self, written: Written) -> None:
        """Add writes to repeat together, or a copy of the board to begin from; what is now old enough is due."""
        if self.needs_copy() and not isinstance(written.writes, ReadState):
            return
        self._needs_copy = False
        if isinstance(written.writes, ReadState):
            self.since = written.now
        self._waiting.append(written)
        while self._waiting and self._waiting[0].now <= written.now - self._lag:
            self._due.append(self._waiting[0])
            self._reached = self._waiting.popleft()[:2]

    def follow(self) -> None:
        """Repeat what is due, unless somebody is reading: then the next reader does."""
        if self._due and self._lock.acquire(blocking=False):
            try:
                self._repeat()
            finally:
                self._lock.release()

    # ---- for readers ----

    @contextmanager
    def reading(self) -> Iterator[ReadState]:
        """The latest state, which does not change until the end of the with statement."""
        with self._lock:
            self._repeat()
            self._readers += 1
            try:
                yield self._shown
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
        if self._readers:
            return
        try:
            while self._due:
                writes = self._due[0].writes
                if isinstance(writes, ReadState):
                    self._shown, self.failure = writes, ""
                elif not self.failure:
                    for write in writes:
                        write(self._shown)
                self._due.popleft()
        except BaseException as error:
            # Rather nothing than a board that is older than promised, or half of an update.
            self._due.clear()
            self._shown, self.failure, self._fails = ReadState.empty(self._shown), repr(error), True
            if not isinstance(error, Exception):
                raise
            late = f"the board delayed by {self._lag / SECOND:g} s is empty until a copy is old enough"
            what = late if self._lag else "the board is copied again for readers"
            warnings.warn(f"{what}: {error!r}", RuntimeWarning, stacklevel=3)
