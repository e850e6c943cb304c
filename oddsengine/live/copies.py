"""What readers of an engine see: its state after the last completed step, and the copies that repeat its writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from weakref import WeakMethod

from oddsengine.columns import NO_TIME
from oddsengine.live.replica import ReadState, Replica, Write, Written


class Copies:
    """The copies of an engine's state; only the thread that holds the engine's lock writes.

    `settle` searches what was postponed.
    """

    def __init__(self, state: ReadState, settle: WeakMethod[Callable[[], None]]) -> None:
        self._state = state
        self._settles = settle  # weak: an engine that nobody refers to is freed at once
        self.number, self.now = 0, int(NO_TIME)  # of the last completed step
        self.published = 0, 0  # numbers of terms and books in the batches of all completed steps
        self.keeps_replica = False
        self.replica: Replica | None = None  # made by the first reader that finds none
        self.delayed: dict[float, Replica] = {}  # by seconds
        self._writes: list[Write] = []  # not yet given to the copies

    # ---- writing ----

    def write(self, write: Write) -> None:
        """Write to the engine's state; the copies have to repeat it."""
        write(self._state)
        self.repeat(write)

    def repeat(self, write: Write) -> None:
        """The copies have to repeat what the engine has written."""
        if self.replica is not None or self.delayed:
            self._writes.append(write)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """If the with statement fails, the copies do not repeat what was written inside of it."""
        count = len(self._writes)
        try:
            yield
        except BaseException:
            del self._writes[count:]
            raise

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """The copies repeat what is written inside of the with statement, or are made anew if that fails."""
        try:
            yield
            self.publish()
        except BaseException:
            self.reset()
            raise

    def publish(self) -> None:
        """Show readers what was written."""
        board, (self._writes, writes) = self._state.board, ([], self._writes)
        self.number, self.now = board.number, board.now
        if self.replica is not None and self.replica.failure:
            self.replica = None
        for each in self._all() if writes else ():
            each.enqueue(Written(board.number, board.now, writes))

    def follow(self) -> None:
        """Let the copies repeat what was written."""
        for each in self._all():
            each.follow()

    def reset(self) -> None:
        """Show readers a board that was not reached by a step."""
        board, late = self._state.board, self.delayed
        self.number, self.now, self.replica, self._writes = board.number, board.now, None, []
        self.published = len(board.names.terms.raw_labels), len(board.names.books.values)
        if not late:
            return
        self.delayed = {}  # they do not repeat how the board is judged: they get a copy of what comes of it
        try:
            with suppress(Exception):  # else the next step judges
                self._settle()
        finally:
            self.delayed, self._writes = late, []
            for delayed in late.values():
                delayed.enqueue(self._copied())

    # ---- the copies ----

    def _settle(self) -> None:
        settle = self._settles()
        assert settle is not None, "the engine is gone"
        settle()

    def delay(self, replica: Replica, seconds: float) -> None:
        """Let a copy repeat what is written, and begin from the board as it is."""
        self.delayed[seconds] = replica
        if self._state.board.number:
            replica.enqueue(self._copied())

    def restart(self) -> None:
        """Give the board to delayed copies that need one to begin from."""
        for delayed in self.delayed.values():
            if delayed.needs_copy() and self._state.board.number:
                delayed.enqueue(self._copied())

    def missing(self) -> bool:
        """Whether a replica is to be made: the first one, or after one that could not repeat a write."""
        return self.keeps_replica and (self.replica is None or bool(self.replica.failure))

    def renew(self) -> Replica | None:
        """The replica, made anew if it is missing; None while a batch is being applied."""
        if self._state.board.pending:
            return None
        if self.missing():
            self._settle()
            self.replica = Replica(self._state.copied())
        return self.replica

    def _copied(self) -> Written:
        """A copy of the board, from which readers can begin."""
        board = self._state.board
        return Written(board.number, board.now, self._state.copied())

    def _all(self) -> list[Replica]:
        late = list(self.delayed.values())
        return late if self.replica is None else [self.replica, *late]
