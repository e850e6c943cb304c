"""The views of an engine: which of them are active, and who keeps them so."""

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from oddsengine.board.names import Names
from oddsengine.board.open import OpenSet, OpenTable
from oddsengine.columns import LATEST, NO_TIME, SECOND, Longs
from oddsengine.detection.kinds import KINDS
from oddsengine.live import writes
from oddsengine.live.copies import Copies
from oddsengine.live.key import ViewKey
from oddsengine.live.recorder import Recorder
from oddsengine.live.replica import ReadState
from oddsengine.live.searcher import Searcher
from oddsengine.live.view import IDLE_S, View
from oddsengine.pricing.references import CLOSE

RELEASED_S = 30  # a view that is not read for this long after its release, too
_PART = 1 << 14  # rows searched for a new view before other threads get a turn
_PAUSE_S = 0.0005  # between two parts


class PendingView(NamedTuple):
    """A view for which a part of the board is still to be searched; steps keep the searched part up to date."""

    view: View
    partitions: Longs  # not yet searched
    names: Names  # the names that these codes belong to
    table: OpenTable


class ActiveViews:
    """The views that steps search for. Whoever changes them holds the engine's lock."""

    def __init__(
        self, state: ReadState, copies: Copies, searcher: Searcher, lock: threading.RLock,
        recorders: Sequence[Recorder],
    ) -> None:  # fmt: skip
        self._state, self._copies, self._searcher = state, copies, searcher
        self._lock, self._recorders = lock, recorders
        self.known: WeakValueDictionary[ViewKey, View] = WeakValueDictionary()  # as long as they are referenced
        self.active: dict[ViewKey, View] = {}
        self._pending: dict[ViewKey, PendingView] = {}

    def searched(self) -> list[View]:
        """Views that steps search for: active ones, and those being resumed."""
        return [*self.active.values(), *(each.view for each in self._pending.values())]

    # ---- who keeps them ----

    def add(self, view: View) -> None:
        """A view that equal parameters return from now on."""
        self.known[view.wanted] = view

    def find(self, wanted: ViewKey, *, wider: bool = False) -> View | None:
        """The view with some parameters; `wider`: or one that is kept, with more kinds."""
        view = self.known.get(wanted)
        if view is not None or not wider:
            return view
        more = (each for each in self.active.values() if each.kept and set(wanted.kinds) < set(each.wanted.kinds))
        return next((each for each in more if each.wanted._replace(kinds=wanted.kinds) == wanted), None)

    def release(self, view: View) -> None:
        """Undo one `keep`."""
        if view.kept == 1:
            self._let_go(view)
        view.kept -= view.kept > 0

    def need(self, view: View, board: Hashable, seconds: float) -> None:
        """Keep a view active for a delayed board for some seconds; with 0, it is suspended as after `release`.

        It takes no lock: readers do not wait for a step.
        """
        if seconds:
            view.needed[board] = LATEST if seconds == np.inf else max(0, self._now) + round(seconds * SECOND)
            return
        view.needed.pop(board, None)
        self._let_go(view)

    def close(self, view: View) -> None:
        """Suspend a view, whoever keeps it, unless a delayed board shows it."""
        view.kept, view.restored = 0, False
        if view.active and not self._kept(view):
            for recorder in self._recorders:
                recorder.view_suspended(view.wanted)
            with self._copies.repeated():
                self.suspend(view)

    def idle(self) -> list[View]:
        """Views that nobody reads, to be suspended in this step."""
        last = self._now - IDLE_S * SECOND
        for view in self.active.values():
            if view.read_at == NO_TIME:  # created before the first step
                view.read_at = now = self._now
                view.needed = {board: until + now * (until != LATEST) for board, until in view.needed.items()}
        return [view for view in self.active.values() if view.read_at < last and not self._kept(view)]

    def _kept(self, view: View) -> bool:
        """Whether somebody keeps a view active: a user, or a delayed board that shows it."""
        return view.kept > 0 or any(until > self._now for until in tuple(view.needed.values()))

    def _let_go(self, view: View) -> None:
        """Suspend a view soon unless it is read."""
        if view.read_at != NO_TIME:
            view.read_at = min(view.read_at, self._now - (IDLE_S - RELEASED_S) * SECOND)

    @property
    def _now(self) -> int:
        return self._state.board.now

    # ---- suspending and resuming ----

    def suspend(self, view: View) -> None:
        """Stop searching for a view."""
        self._drop(view)
        del self.active[view.wanted]

    def _drop(self, view: View) -> None:
        row = view.open.row if view.open.table is self._state.opened else -1  # else its table is gone
        view.active, view.open = False, OpenSet()
        if row >= 0:
            self._copies.write(writes.suspended(view.wanted, row))

    def restart(self) -> None:
        """Make every active view search the whole board again."""
        self._pending.clear()
        for view in list(self.active.values()):
            self.suspend(view)
            self.resume(view)

    def begin_again(self, table: OpenTable) -> None:
        """Begin with an open table in which nothing is open."""
        for each in self._pending.values():
            each.view.open = OpenSet()
        self._pending.clear()  # an unfinished search starts again
        for view in self.active.values():
            view.open = table.add()
        self._state.opened = table
        self._state.rows = {wanted: view.open.row for wanted, view in self.active.items()}

    def resume(self, view: View) -> None:
        """Search the whole board for a view that was not kept up to date, in parts, so that others get a turn."""
        try:
            while not self.advance(view):
                threading.Event().wait(_PAUSE_S)  # other threads acquire the lock
        except BaseException:
            with self._lock:
                self._pending.pop(view.wanted, None)
                if view.wanted not in self.active:
                    self._drop(view)
            raise

    def advance(self, view: View) -> bool:
        """Search the next part of the board for a view. Returns True once the view is active.

        Threads that wait for the same view share the work. If no step judges, the whole search is one part: a
        replay resumes the view at the end of the search, and must not find that steps did more than without it.
        """
        with self._lock, self._copies.repeated():
            if view.active:
                return True
            state, pending = self._state, self._pending.get(view.wanted)
            board = state.board
            part = _PART if state.samples or self._searcher.judges else board.rows.top
            if pending is None or pending.names is not board.names or pending.table is not state.opened:
                pending = self._begin(view)
            partitions = pending.partitions
            some = 1 + int(np.searchsorted(np.cumsum(board.partitions.size[partitions]), part))
            if partitions.size:
                self._searcher.keep(self._searcher.whole(partitions[:some], view))
            if some < partitions.size:
                self._pending[view.wanted] = pending._replace(partitions=partitions[some:])
                return False
            self._show(view, self._dated(view))
            self._pending.pop(view.wanted, None)
            self.active[view.wanted] = view
            view.active, view.resumed_at = True, board.now
            for recorder in self._recorders:
                recorder.view_resumed(view.wanted)
            return True

    def _begin(self, view: View) -> PendingView:
        """Begin a search of the whole board."""
        state = self._state
        if view.wanted.method == CLOSE and not state.samples:
            self._copies.write(writes.sampling)
        self._searcher.settle(self.searched())
        self._drop(view)
        view.open = state.opened.add()
        self._copies.repeat(writes.added(view.open.row))
        partitions = np.flatnonzero(state.board.partitions.size[: state.board.names.partitions.size])
        return PendingView(view, partitions, state.board.names, state.opened)

    def redate(self, view: View, detected_at: Callable[[int, int], int | None]) -> None:
        """Set when what a view has open was detected, by id and kind; None leaves it."""
        with self._copies.repeated():
            table, places = self._state.opened, view.open.places()
            since = table.detected_at[places].copy()
            for at, (ident, kind) in enumerate(
                zip(table.id[places].tolist(), table.kind[places].tolist(), strict=True)
            ):
                found = detected_at(ident, kind)
                since[at] = since[at] if found is None else found
            self._show(view, since)

    def _show(self, view: View, detected_at: Longs) -> None:
        """Show what a view has open, detected at these times."""
        self._copies.write(writes.resumed(view.wanted, view.open.row, view.open.places(), detected_at))

    def _dated(self, view: View) -> Longs:
        """When what a resumed view has open was detected: as in an active view of equal conditions, or now."""
        table, places = self._state.opened, view.open.places()
        detected_at = np.full(places.size, self._now)
        for code, kind in enumerate(KINDS):
            if kind not in view.wanted.kinds:
                continue
            conditions = view.wanted.conditions(kind)
            equal = (
                each for each in self.active.values()
                if kind in each.wanted.kinds and each.wanted.conditions(kind) == conditions
            )  # fmt: skip
            found = next(equal, None)
            if found is not None:
                mine, theirs = np.flatnonzero(table.kind[places] == code), found.open.places()
                theirs = theirs[table.kind[theirs] == code]
                _, at, of = np.intersect1d(table.id[places[mine]], table.id[theirs], return_indices=True)
                detected_at[mine[at]] = table.detected_at[theirs[of]]
        return detected_at
