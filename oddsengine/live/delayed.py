"""The live board as it was some seconds ago; created by `Engine.delayed`.

It is a copy that repeats what the steps have written, once that is old enough: nothing is applied, judged or searched a
second time. Its views are views of the engine, read from the copy.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol
from weakref import WeakValueDictionary

from oddsengine.board.state import SECOND
from oddsengine.catalog import FairTable
from oddsengine.live.key import ViewKey
from oddsengine.live.reading import Readable
from oddsengine.live.replica import ReadState, Replica
from oddsengine.live.view import View
from oddsengine.tables.timestamps import time_of


class NotYetError(RuntimeError):
    """A delayed board does not have a view yet; `seconds` from now it will."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class Leader(Protocol):
    """The parts of an engine that its delayed boards use."""

    @property
    def off(self) -> frozenset[int]:
        """Codes of disabled guards."""

    @property
    def now(self) -> datetime | None:
        """Time of the last step."""

    def view(self, *args: Any, **words: Any) -> View:
        """One of its views."""

    def touch(self, view: View) -> None:
        """Wake a view, or keep it awake."""

    def release(self, view: View) -> None:
        """Undo one `keep`."""


class DelayedView(View):
    """A view of a delayed board."""

    def __init__(self, board: "DelayedBoard", live: View) -> None:
        super().__init__(board, live.wanted)
        self.live = live  # the engine's, which it keeps

    def counts(self) -> dict[str, int]:
        """Number of open opportunities by kind."""
        with self._engine.reading(self):
            return super().counts()


class DelayedBoard(Readable):
    """A live board as it was some seconds ago.

    If something cannot be repeated, it is emptied, so that nobody sees prices that are older than promised. It starts
    again from the engine's board, once that is old enough; `failure` says why until then.
    """

    def __init__(self, leader: Leader, state: ReadState, seconds: float) -> None:
        self._leader, self.seconds = leader, seconds
        self.replica = Replica(ReadState.empty(state), round(seconds * SECOND), begins=True)
        self._views: WeakValueDictionary[ViewKey, View] = WeakValueDictionary()

    @property
    def number(self) -> int:
        """Number of the step that it shows."""
        return self.replica.number

    @property
    def now(self) -> datetime | None:
        """Time of that step."""
        return time_of(self.replica.now)

    @property
    def failure(self) -> str:
        """Why it is empty, if something could not be repeated."""
        return self.replica.failure

    @property
    def busy(self) -> bool:
        """Whether a reader would wait for another thread."""
        return self.replica.busy

    @property
    def off(self) -> frozenset[int]:
        """Codes of disabled guards."""
        return self._leader.off

    @property
    def books(self) -> Sequence[str]:
        """All books so far, by code."""
        with self.shown() as shown:
            return shown.board.names.books

    @property
    def fair(self) -> FairTable:
        """Constants of the fair price at the close."""
        with self.shown() as shown:
            return shown.fair

    @contextmanager
    def shown(self, *, judged: bool = True) -> Iterator[ReadState]:
        """The state that it shows; it does not change until the end of the with statement."""
        with self.replica.reading() as shown:
            yield shown

    def view(self, *args: Any, keep: bool = False, **words: Any) -> DelayedView:
        """A view with the parameters of `Engine.view`, as it was.

        It is a view of the engine, so what it shows is old enough only so many seconds after it is first asked for.
        Until then, reading it raises `NotYetError`.
        """
        live = self._leader.view(*args, keep=keep, **words)
        found = self._views.get(live.wanted)
        if not isinstance(found, DelayedView) or found.live is not live:
            found = self._views[live.wanted] = DelayedView(self, live)
        found.kept += keep
        return found

    @contextmanager
    def reading(self, view: View) -> Iterator[ReadState]:
        """As `shown`. Raises `NotYetError` if the view is not shown yet."""
        assert isinstance(view, DelayedView)
        self._leader.touch(view.live)
        with self.shown() as shown:
            if view.wanted not in shown.rows:
                raise self._not_yet(view)
            yield shown

    def _not_yet(self, view: DelayedView) -> NotYetError:
        now = self._leader.now
        passed = 0.0 if now is None else (now.timestamp() - view.live.woken_at / SECOND)
        left = max(1, min(int(self.seconds), int(self.seconds - passed) + 1))
        return NotYetError(f"opportunities of {self.seconds:g} s ago are not known yet; ask again in {left} s", left)

    def release(self, view: View) -> None:
        """Undo one `keep`."""
        assert isinstance(view, DelayedView)
        if view.kept:
            view.kept -= 1
            self._leader.release(view.live)

    def close(self, view: View) -> None:
        """Undo every `keep`: the engine suspends its view, unless others keep or read it."""
        while view.kept:
            self.release(view)
