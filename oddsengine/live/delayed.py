"""The live board as it was some seconds ago; created by `Engine.delayed`.

It is a copy that repeats what the steps have written, once that is old enough: nothing is applied, judged or searched a
second time. Its views are views of the engine, read from the copy.
"""

import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from math import ceil, inf
from typing import Any, Protocol
from weakref import WeakValueDictionary

from oddsengine.catalog import FairTable
from oddsengine.columns import NO_TIME, SECOND
from oddsengine.live.key import ViewKey
from oddsengine.live.readable import Readable
from oddsengine.live.replica import ReadState, Replica
from oddsengine.live.view import IDLE_S, View
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
        """Resume a view, or keep it active."""

    def need(self, view: View, board: Hashable, seconds: float) -> None:
        """Keep a view active for a delayed board for some seconds."""


class DelayedView(View):
    """A view of a delayed board."""

    def __init__(self, board: "DelayedBoard", live: View) -> None:
        super().__init__(board, live.wanted)
        self.live = live  # the engine's, which it holds on to

    def __repr__(self) -> str:
        return f"<delayed: {self.live!r}>"

    def counts(self) -> dict[str, int]:
        """Number of open opportunities by kind. Unlike that of a live view, reading it keeps the view active."""
        with self._engine.reading(self):
            return super().counts()


class DelayedBoard(Readable):
    """A live board as it was some seconds ago.

    If something cannot be repeated, it is emptied, so that nobody sees prices that are older than promised. It starts
    again from the engine's board, once that is old enough; `failure` says why until then.
    """

    def __init__(self, leader: Leader, state: ReadState, seconds: float) -> None:
        self._leader, self.seconds = leader, seconds
        self.replica = Replica(ReadState.empty(state), round(seconds * SECOND), needs_copy=True)
        self._views: WeakValueDictionary[ViewKey, View] = WeakValueDictionary()
        self._lock = threading.Lock()  # of how often they are kept

    @property
    def number(self) -> int:
        """Number of the step that a new reader sees."""
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
            return shown.board.names.books.values

    @property
    def fair(self) -> FairTable:
        """Constants of the fair price at the close."""
        with self.shown() as shown:
            return shown.fair

    def _view(self, wanted: ViewKey) -> View | None:
        return self._views.get(wanted)

    @contextmanager
    def shown(self, *, judged: bool = True) -> Iterator[ReadState]:
        """The state that it shows; it does not change until the end of the with statement."""
        with self.replica.reading() as shown:
            yield shown

    def view(self, *args: Any, keep: bool = False, **words: Any) -> DelayedView:
        """A view with the parameters of `Engine.view`, as it was.

        It is a view of the engine, so what it shows is old enough only so many seconds after it is first asked for.
        Until then, reading it raises `NotYetError`. Views with a `model` are new ones each time: hold on to them.
        """
        live = self._leader.view(*args, **words)
        with self._lock:
            found = self._views.get(live.wanted)
            if not isinstance(found, DelayedView) or found.live is not live:
                found = self._views[live.wanted] = DelayedView(self, live)
            found.kept += keep
            self._need(found)
        return found

    @contextmanager
    def reading(self, view: View) -> Iterator[ReadState]:
        """As `shown`. Raises `NotYetError` if the view is not shown yet."""
        assert isinstance(view, DelayedView)
        self._need(view)
        self._leader.touch(view.live)
        with self.shown() as shown:
            if view.wanted not in shown.rows:
                raise self._not_yet(view)
            yield shown

    def _need(self, view: DelayedView) -> None:
        """Have the engine keep a view active as long as it is shown here."""
        self._leader.need(view.live, self.seconds, inf if view.kept else self.seconds + IDLE_S)

    def _not_yet(self, view: DelayedView) -> NotYetError:
        now, since = self._leader.now, max(view.live.resumed_at, self.replica.since)
        passed = 0.0
        if now is not None and since != NO_TIME and not self.replica.failure:
            passed = max(0.0, now.timestamp() - since / SECOND)
        left = max(1, ceil(self.seconds - passed))
        return NotYetError(f"opportunities of {self.seconds:g} s ago are not known yet; ask again in {left} s", left)

    def release(self, view: View) -> None:
        """Undo one `keep`; a view that nobody else keeps is suspended unless it is read within half a minute."""
        assert isinstance(view, DelayedView)
        with self._lock:
            view.kept -= view.kept > 0
            if not view.kept:
                self._leader.need(view.live, self.seconds, 0)

    def close(self, view: View) -> None:
        """Undo every `keep`: the engine suspends its view, unless others keep or read it."""
        view.kept = 0
        self.release(view)
