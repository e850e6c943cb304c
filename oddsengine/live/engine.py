"""The engine: batches of prices in, updates out.

`Engine.step` is the only method that changes anything. It applies a batch to the board, judges what the batch affected,
searches it for every active view, and returns the differences. Time is an argument: the same batches give the same
updates, byte for byte. Ages are judged at whole seconds (`Engine.moment`): a step that begins a new second also
processes everything that time alone has changed.

Reading is thread-safe, and a reader sees the state of exactly one update. It waits at most for the current step, and
with `Engine.keep_replica` not at all.
"""

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from weakref import WeakMethod

import numpy as np

from oddsengine import catalog
from oddsengine.board.ageing import REMEMBERED_S
from oddsengine.board.open import OpenTable
from oddsengine.board.quotes import QuoteReader, Quotes
from oddsengine.board.rows import CodedQuotes
from oddsengine.board.state import Batch, Board
from oddsengine.bounds import excerpt
from oddsengine.catalog.reasons import CODES, GUARDS, NAMES, Guards, enabled, listed, thresholds_of
from oddsengine.columns import Longs
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.model_input import IntoModel, read_model
from oddsengine.detection.question import Sharp, prepare
from oddsengine.guards import plugin_guards
from oddsengine.guards.plugin_guards import LoadedGuard
from oddsengine.identity.layout import BOOK_BITS
from oddsengine.identity.raw_labels import RawLabel
from oddsengine.live import writes
from oddsengine.live.active import ActiveViews
from oddsengine.live.copies import Copies
from oddsengine.live.delayed import DelayedBoard
from oddsengine.live.key import ViewKey
from oddsengine.live.readable import Readable
from oddsengine.live.recorder import Recorder
from oddsengine.live.replica import ReadState, Replica
from oddsengine.live.searcher import Findings, Searcher
from oddsengine.live.step_input import read_complete, read_events, read_now, read_removed
from oddsengine.live.update import Update, update_of
from oddsengine.live.view import IDLE_S, View
from oddsengine.maths.devig import Method
from oddsengine.pricing.momentum import Memory
from oddsengine.tables.frames import IntoFrame
from oddsengine.tables.timestamps import micros, time_of

Frame = IntoFrame | Iterable[Mapping[str, Any]] | bytes | str


class Engine(Readable):
    """A live board with its guards and views.

    Parameters
    ----------
    guards
        Names of the guards to run (None: all), or a mapping of changes, such as `{"stale": 300, "flap": False}`.
    fair
        Constants of the fair price at the close; None is the catalog's table.
    threads
        How many threads search the partitions of a large step, of a thousand changes or more. Results do not depend on
        it.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> engine = Engine()
    >>> update = engine.step(
    ...     [
    ...         {"sportsbook": "a", "event_id": "e", "sport": "tennis", "home_team": "X", "away_team": "Y",
    ...          "market_type": "moneyline", "selection": side, "odds_decimal": odds}
    ...         for side, odds in (("X", 1.9), ("Y", 1.95))
    ...     ],
    ...     now=datetime(2026, 2, 8, tzinfo=UTC),
    ... )
    >>> update.number, update.changed["new"].to_list()
    (1, [True, True])
    """

    def __init__(self, *, guards: Guards = None, fair: catalog.FairTable | None = None, threads: int = 1) -> None:
        guards = listed(guards)
        self._loaded = plugin_guards.loaded(guards)
        self._stopped: list[str] = []  # names of those of plugins that do not run any more
        self._off = frozenset(CODES[name] for name in GUARDS) - enabled(guards)
        table = catalog.chosen_fair_table(fair)
        self.state = ReadState(Board(self._off, thresholds_of(guards)), OpenTable(), {}, table, samples=False)
        self._lock = threading.RLock()
        self._reader = QuoteReader()
        self._recorders: list[Recorder] = []
        self._copies = Copies(self.state, WeakMethod(self._settle))
        self._searcher = Searcher(self.state, self._copies, self._off, threads, self._loaded)
        self._active = ActiveViews(self.state, self._copies, self._searcher, self._lock, self._recorders)
        self._delayed: dict[float, DelayedBoard] = {}

    # ---- writing ----

    def step(
        self,
        quotes: Frame = (),
        now: datetime | None = None,
        *,
        removed: Iterable[str] = (),
        complete: Iterable[str | tuple[str, str | None]] = (),
        events: Iterable[Mapping[str, Any]] = (),
    ) -> Update:
        """Apply one batch at a time `now`; completely or, if anything fails, not at all.

        Parameters
        ----------
        quotes
            Prices as a frame, mappings, or the JSON text of a list; see `ODDS_SCHEMA`. Quotes are applied in order,
            so the last one for a price wins. A quote older than the current one of its price is ignored. Without
            `last_seen_at`, it counts as seen now. With `is_active` false the price is suspended, and may be
            omitted. Invalid rows are rejected and listed in the update; the others are applied.
        now
            The current time, which must not go back. None is the newest `last_seen_at` of the quotes, if that is
            later.
        removed
            Ids of removed rows (`Update.changed`, `Engine.table`).
        complete
            Books, or (book, event) pairs, for which the quotes are complete: prices that are not listed are
            removed.
        events
            Notices about events: `event_id`, `status` (one of upcoming, live, ended, postponed, cancelled) and,
            optionally, `event_start_time`.

        Raises
        ------
        OddsError
            If `quotes` is not a list of quotes.
        ValueError
            If `now` is missing or goes back, or an id, a book, an event or a status is not valid.
        """
        with self._lock:
            read = self._reader.read_quotes(quotes, self.state.board.names)
            try:
                batch = self._batch(read, now, removed, complete, events)
            except BaseException:
                self._mend()
                raise
            return self._feed(batch, read)

    def feed(self, batch: Batch) -> Update:
        """Apply a batch that is already in this engine's codes, such as one from a tape."""
        return self._feed(batch, None)

    def codes(self, raw_labels: Iterable[RawLabel], books: Iterable[str]) -> tuple[Longs, Longs]:
        """Codes of raw labels and books, for callers that build large batches for `feed`.

        New ones belong to the next batch: `raw_labels` and `books` from `published` on. The codes are valid as long
        as `raw_labels` is the same list.
        """
        with self._lock:
            names = self.state.board.names
            try:
                terms = names.learn(list(raw_labels))
                return np.array(terms, np.int64), np.array([names.books.code(book) for book in books], np.int64)
            except BaseException:
                self._mend()
                raise

    def expect(self, raw_labels: Sequence[RawLabel]) -> None:
        """Interpret raw labels together that the next batches are going to have; replaces those expected before."""
        with self._lock:
            self.state.board.names.expect(raw_labels)

    def _feed(self, batch: Batch, read: Quotes | None) -> Update:
        with self._lock, self._copies.undone():
            board, before, number = self.state.board, self.state.board.moment, self.state.board.number
            if self._searcher.guards != self.plugin_guards:
                self._searcher.guards = self.plugin_guards
                board.search_again()
            names, partitions = board.names, board.names.partitions.size
            try:
                applied = board.apply(batch)
                self._copies.repeat(writes.applied(batch))
                if applied.regrouped:
                    self.state.opened.rehome(board.rows.partition)
                idle = self._active.idle()
                views = [view for view in self._active.searched() if view not in idle]
                findings = self._searcher.step(views, before)
                update = update_of(self.state, batch, applied, findings, read)
                for recorder in self._recorders:
                    recorder.batch(batch, [view.wanted for view in idle])
                # The step is complete from here on; an interruption only makes the views search everything again.
                board.number = number + 1
                board.keep()
                self._commit(findings, idle)
                self._copies.publish()
            except BaseException:
                if board.number == number:
                    board.undo()
                    self._mend()
                    if board.names is not names or names.partitions.size > partitions:
                        self._copies.reset()  # partitions that the copies lack: they would give their numbers to others
                else:
                    board.keep()  # if it was interrupted before that
                    self._recompute()
                    self._follow()
                raise
        try:
            self._follow()
        except BaseException:  # interrupted: readers must not wait for the next step
            self._follow()
            raise
        return update

    def _commit(self, search: Sequence[Findings], idle: Sequence[View]) -> None:
        board = self.state.board
        for findings in search:
            self._searcher.keep(findings)
        for view in idle:
            self._active.suspend(view)
        if renumbered := board.compact():
            self.state.opened.rehome(board.rows.partition)
        self._copies.repeat(writes.completed(board.number, board.names.terms.raw_labels, renumbered=renumbered))
        self._copies.published = len(board.names.terms.raw_labels), len(board.names.books.values)

    def _mend(self) -> None:
        """Repair what an interrupted call left."""
        board = self.state.board
        names = board.names
        board.mend()
        self.state.opened.rehome(board.rows.partition)
        if board.names is not names:
            self._copies.reset()

    def _recompute(self) -> None:
        board = self.state.board
        board.mend()
        board.rebuild()
        self._active.begin_again(OpenTable())
        self._copies.reset()

    def _settle(self) -> None:
        """Judge and search what was postponed while no view was active."""
        self._searcher.settle(self._active.searched())

    def _follow(self) -> None:
        """Let the copies repeat what was written."""
        if self._copies.delayed:
            with self._lock:
                self._copies.restart()
        self._copies.follow()

    def restored(self, number: int, momentum: Memory | None, stopped: Iterable[str] = ()) -> None:
        """Continue from a restored board, with the given step number and what a snapshot remembers of momentum.

        `stopped` are names of guards of plugins that do not run any more.
        """
        with self._lock:
            self._stopped = [*stopped]
            self._searcher.guards = self.plugin_guards
            if momentum is not None:
                self.state.samples, self.state.board.momentum = True, momentum
            self.state.board.number = number
            self._copies.reset()
            self._active.restart()

    def record(self, recorder: Recorder) -> None:
        """Pass every batch from now on to a recorder, and the views that are active."""
        with self._lock:
            for view in self._active.active.values():
                recorder.view_resumed(view.wanted)
            self._recorders.append(recorder)

    def stop_recording(self, recorder: Recorder) -> None:
        """Stop passing batches to the recorder."""
        with self._lock:
            self._recorders.remove(recorder)

    def _batch(
        self, read: Quotes, now: datetime | None, removed: Iterable[str],
        complete: Iterable[str | tuple[str, str | None]], events: Iterable[Mapping[str, Any]],
    ) -> Batch:  # fmt: skip
        """Convert the input to codes. New names are added; nothing else changes."""
        names = self.state.board.names
        moment = read_now(now, read, self.state.board.now)
        ids, whole, notices = read_removed(removed), read_complete(complete), read_events(events)
        term, book = self._reader.codes(read, names)
        key = (term.astype(np.int64) << BOOK_BITS) | book
        quoted = CodedQuotes(key, read.odds, read.american, read.seen, read.changed, read.start, read.flags)
        counts = dict(read.rejected.group_by("guard").len().iter_rows()) if read.rejected.height else {}
        learnt, known = self._copies.published
        raw_labels, books = names.terms.raw_labels[learnt:], names.books.values[known:]
        return Batch(moment, raw_labels, books, quoted, read.links, ids, whole, notices, counts)

    # ---- reading ----

    @property
    def books(self) -> Sequence[str]:
        """All books so far, by code."""
        return self.state.board.names.books.values

    @property
    def raw_labels(self) -> Sequence[RawLabel]:
        """The raw labels of terms, by code."""
        return self.state.board.names.terms.raw_labels

    @property
    def published(self) -> tuple[int, int]:
        """Numbers of terms and books in the batches of all completed steps."""
        return self._copies.published

    def view(
        self,
        books: Iterable[str] | None = None,
        sharp: Sharp = None,
        method: Method | None = None,
        *,
        commission: Mapping[str, float] | None = None,
        min_ev: float = 0.0,
        min_profit: float = 0.5,
        max_hold: float = 2.0,
        min_size: float = 0.0,
        min_middle_ev: float | None = 0.0,
        max_profit: float | None = 10.0,
        kinds: Iterable[str] = KINDS,
        include: Iterable[str] = (),
        model: IntoModel | None = None,
        stake: float | None = None,
        keep: bool = False,
        wider: bool = False,
        **thresholds: float | None,
    ) -> View:
        """A view: the opportunities over exactly some books, kept up to date from now on.

        Equal parameters return the same view. A view that is not read for five minutes is suspended and costs
        nothing; reading it resumes it, at the cost of one search of the board. Updates do not include suspended views,
        so to follow a view by its updates, use `keep`.

        Parameters
        ----------
        books, sharp, method, commission, stake, min_ev, min_profit, max_hold, min_size, min_middle_ev, max_profit
            As for `find_all`.
        thresholds
            Those of kinds of your own (docs/kinds.md).
        kinds
            Kinds to search for: some of ev, arbitrage, low_hold, middles. Fewer cost less; arbitrages and low holds
            alone cost least.
        include
            `suspect` also lists +EV that is too good to be true or has one sharp book as its only reference,
            `one_sided` that whose fair price needs books that quote one side only.
        model
            Your own probabilities, as for `find_ev`, but no column. Teams and sports that it does not name are those
            of the events on the board now. The view is neither in tapes nor in snapshots.
        keep
            Never suspend the view, until `View.release`.
        wider
            Allow returning an existing `keep` view with more kinds and otherwise equal parameters. It costs
            nothing, and its detection times are those of that view.
        """
        read_ = None if model is None else read_model(model, prepare(self.table(), guards=[]))
        wanted = ViewKey.from_parameters(
            books, sharp, method, commission, kinds, include, read_, stake=stake, min_ev=min_ev, min_profit=min_profit,
            max_hold=max_hold, min_size=min_size, min_middle_ev=min_middle_ev, max_profit=max_profit, **thresholds,
        )  # fmt: skip
        return self.view_of(wanted, keep=keep, wider=wider)

    def view_of(self, wanted: ViewKey, *, keep: bool = False, wider: bool = False, restored: bool = False) -> View:
        """The active view with some parameters; see `view`. The first to keep one that was `restored` takes it over."""
        with self._lock:
            view = self._active.find(wanted, wider=wider)
            if view is None:
                view = View(self, wanted)
                self._active.add(view)
            view.kept += bool(keep) and not view.restored
            view.restored = (view.restored and not keep) or (keep and restored)
            view.read_at = self.state.board.now
        try:
            self._active.resume(view)
        except BaseException:
            if keep:
                self.release(view)
            raise
        return view

    def release(self, view: View) -> None:
        """Undo one `keep`; a view that nobody else keeps is suspended unless it is read within half a minute."""
        with self._lock:
            self._active.release(view)

    def need(self, view: View, board: Hashable, seconds: float) -> None:
        """Keep a view active for a delayed board for some seconds; with 0, it is suspended as after `release`.

        It takes no lock: readers do not wait for a step.
        """
        self._active.need(view, board, seconds)

    def close(self, view: View) -> None:
        """Suspend a view, whoever keeps it, unless a delayed board shows it; reading it resumes it."""
        with self._lock:
            self._active.close(view)

    def active_views(self) -> list[View]:
        """The active views; only within `still`, where `views` would wait for readers of a replica."""
        return list(self._active.active.values())

    @property
    def guards(self) -> dict[str, float | bool]:
        """Differences from the catalog's guards, in the form of `guards` of `Engine` and `find_all`."""
        usual, limits = catalog.thresholds(), self.state.board.limits
        changes: dict[str, float | bool] = {NAMES[code]: False for code in sorted(self._off)}
        changes |= {guard.name: True for guard in self.plugin_guards}
        both = zip(usual._fields, usual, limits, strict=True)
        return changes | {name: now for name, was, now in both if now != was}

    @property
    def plugin_guards(self) -> tuple[LoadedGuard, ...]:
        """The guards of plugins that run, in their order."""
        return tuple(guard for guard in self._loaded if guard.name not in self._stopped)

    @property
    def stopped_guards(self) -> tuple[str, ...]:
        """Names of guards of plugins that were stopped."""
        return tuple(self._stopped)

    def stop_guard(self, name: str) -> None:
        """Run a guard of a plugin no more, from the next step on, which judges everything again."""
        with self._lock:
            if name not in [guard.name for guard in self.plugin_guards]:
                raise ValueError(f"no guard of a plugin that runs has the name {excerpt(name)}")
            self._stopped.append(name)
            for recorder in self._recorders:
                recorder.guards_changed(self.guards)

    @property
    def fair(self) -> catalog.FairTable:
        """Constants of the fair price at the close; after a change, the next step searches everything again."""
        return self.state.fair

    @fair.setter
    def fair(self, table: catalog.FairTable) -> None:
        with self._lock, self._copies.repeated():
            if table is not self.state.fair:
                self._copies.write(writes.refitted(table))
                for recorder in self._recorders:
                    recorder.fair_changed(table)
                self.state.board.search_again()

    @property
    def off(self) -> frozenset[int]:
        """Codes of disabled guards."""
        return self._off

    @property
    def number(self) -> int:
        """Number of completed steps."""
        return self._copies.number

    @property
    def now(self) -> datetime | None:
        """Time of the last step."""
        return time_of(self._copies.now)

    @contextmanager
    def shown(self, *, judged: bool = True) -> Iterator[ReadState]:
        """The state after the last step, for readers; it does not change until the end of the with statement.

        With `judged` false, verdicts may be those of an earlier step.
        """
        while (found := self._readable()) is not None:
            with found.reading() as shown:
                if not found.failure:
                    yield shown
                    return
        with self._lock:
            if judged:
                self._settle()
            yield self.state

    @contextmanager
    def reading(self, view: View) -> Iterator[ReadState]:
        """As `shown`; the view is active meanwhile."""
        while True:
            self.touch(view)
            with self.shown() as shown:
                if view.wanted in shown.rows:
                    yield shown
                    return
            if self._copies.replica is not None and self._copies.replica.reads:
                raise RuntimeError(f"{view} cannot be resumed inside of another read, whose state must not change")
            self._active.resume(view)  # waits for whoever resumes it, if it is not yet shown

    def touch(self, view: View) -> None:
        """Resume a view, or keep it active: somebody reads it."""
        if not view.active:
            self._active.resume(view)
        view.read_at = self.state.board.now

    @contextmanager
    def still(self, *, judged: bool = False) -> Iterator[Board]:
        """Lock the board, so that no step begins; without `judged`, verdicts may be from an earlier step."""
        with self._lock:
            if judged:
                self._settle()
            yield self.state.board

    @property
    def busy(self) -> bool:
        """Whether a reader would wait for another thread."""
        if self._copies.keeps_replica:
            return self._copies.replica is None or self._copies.replica.busy
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return False
        return True

    # ---- copies for readers ----

    def keep_replica(self) -> None:
        """Keep a second copy of the board for readers, so that neither they nor steps wait for each other.

        It needs as much memory as the board, without the texts, and a step costs 5 to 20 % more. Every step judges, as
        with `keep_judged`. Readers of the copy take turns.
        """
        with self._lock:
            self._searcher.judges = self._copies.keeps_replica = True
        self._readable()

    def delayed(self, seconds: float) -> DelayedBoard:
        """Return this board as it was some seconds ago: the same updates, later.

        It is empty until the first update is old enough; if created after the first step, it starts with the current
        board, that many seconds from now. It is a second copy of the numbers, but not of the texts, which repeats what
        the steps have written. Every step judges, as with `keep_judged`. Its views are this engine's, read late: see
        `DelayedBoard.view`.
        """
        if not (isinstance(seconds, int | float) and 0 < seconds <= REMEMBERED_S):
            raise ValueError(f"delayed must be in seconds, above 0 and at most {REMEMBERED_S}, got {excerpt(seconds)}")
        with self._lock:
            if seconds not in self._delayed:
                self._searcher.judges = True
                self._settle()
                made = DelayedBoard(self, self.state, seconds)
                self._copies.delay(made.replica, seconds)
                self._delayed[seconds] = made
            return self._delayed[seconds]

    def _readable(self) -> Replica | None:
        """The replica, if one is kept; made anew if repeating failed, or the board was replaced."""
        if self._copies.missing():
            with self._lock:
                return self._copies.renew()
        return self._copies.replica

    def keep_judged(self) -> None:
        """Judge in every step from now on, so that each update lists all changed verdicts (`Update.judged`).

        Otherwise, while no view is active, prices are judged on demand.
        """
        with self._lock:
            self._searcher.judges = True

    def keep_promised(self) -> None:
        """Find in every step from now on what new and changed +EV bets say of their EV (`ViewChange.promised`)."""
        with self._lock:
            self._searcher.promises = True

    def redate(self, view: View, detected_at: Callable[[int, int], int | None]) -> None:
        """Set when what a view has open was detected, by id and kind; None leaves it."""
        with self._lock:
            self._active.redate(view, detected_at)

    def _view(self, wanted: ViewKey) -> View | None:
        return self._active.known.get(wanted)


__all__ = ["IDLE_S", "REMEMBERED_S", "Batch", "CodedQuotes", "Engine", "ViewKey", "micros"]
