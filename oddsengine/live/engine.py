"""The engine: batches of prices in, updates out.

`Engine.step` is the only method that changes anything. It applies a batch to the board, judges what the batch touched,
searches it for every active view, and returns the differences. Time is an argument: the same batches give the same
updates, byte for byte. Ages are judged at whole seconds (`Engine.moment`): a step that begins a new second also
processes everything that time alone has changed.

Reading is thread-safe, and a reader sees the state of exactly one update. It waits at most for the current step, and
with `Engine.keep_replica` not at all.
"""

import re
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.board.ageing import REMEMBERED_S
from oddsengine.board.changes import REPRICED, at_close, loosen, remember, scope, since_last_search, voting
from oddsengine.board.event_status import STATUSES
from oddsengine.board.facts import Facts
from oddsengine.board.names import Names
from oddsengine.board.open import SAME, Difference, Hits, OpenSet, OpenTable
from oddsengine.board.quotes import QuoteReader, Quotes, readable
from oddsengine.board.rows import MOVED, NEW, REJECTED, SEEN, UNKNOWN, CodedQuotes
from oddsengine.board.state import AppliedBatch, Batch, Board
from oddsengine.board.units import LOOSE
from oddsengine.catalog.reasons import CODES, GUARDS, NAMES, UNCOMPARED, Guards, enabled, thresholds_of
from oddsengine.columns import LATEST, NO_TIME, SECOND, Bytes, Ints, Longs, Words
from oddsengine.detection import tails
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.model_input import IntoModel, read_model
from oddsengine.detection.question import Sharp, prepare
from oddsengine.detection.sweep import Scope
from oddsengine.guards.verdicts import Verdicts, alone, honour, judge
from oddsengine.identity.groups import Groups, distinct
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, LIVE, ON, UnitColumns
from oddsengine.identity.wording import Wording
from oddsengine.live import replica
from oddsengine.live.delayed import DelayedBoard
from oddsengine.live.key import ViewKey
from oddsengine.live.reading import Readable
from oddsengine.live.replica import ReadState, Replica, Write, Written
from oddsengine.live.update import Update, ViewChange
from oddsengine.live.view import IDLE_S, View, search
from oddsengine.maths.devig import Method
from oddsengine.pricing import close as fair_close
from oddsengine.pricing.close import Fair
from oddsengine.pricing.momentum import LadderSamples, Memory
from oddsengine.pricing.references import CLOSE, fair_prices
from oddsengine.tables.frames import IntoFrame
from oddsengine.tables.schema import BAD_ROW_SCHEMA, NONE_REJECTED
from oddsengine.tables.timestamps import micros, time_of

RELEASED_S = 30  # a view that is not read for this long after its release, too
MOST_THREADS = 64
_LEAST_ROWS = 20_000  # of a part that is worth a thread
_PART = 1 << 14  # rows searched for a new view before other threads get a turn
_PAUSE_S = 0.0005  # between two parts
_UNCOMPARED = np.isin(np.arange(len(NAMES)), [CODES[name] for name in UNCOMPARED])
_ID = re.compile("[0-9a-f]{16}")
Frame = IntoFrame | Iterable[Mapping[str, Any]] | bytes | str


class SearchResult(NamedTuple):
    """Result of a search for the open sets of some views; not yet applied."""

    views: list[View]
    rows: Longs  # rows of the views in the open table
    hits: Hits
    difference: Difference


class PendingView(NamedTuple):
    """A view for which a part of the board is still to be searched; steps keep the searched part up to date."""

    view: View
    units: Longs  # not yet searched
    names: Names  # the names that these codes belong to
    table: OpenTable


class Findings(NamedTuple):
    """Findings of a search over some units, and state to store for the next one."""

    some: UnitColumns
    searched: list[SearchResult]
    fresh: bool  # what had changed was searched, and not everything for a new view
    sampled: LadderSamples | None  # momentum of the markets
    estimates: tuple[Groups, Bytes, Fair] | None  # estimates to store, and their markets


class Recorder:
    """What an engine tells a recorder; changes of views and constants apply from the next batch on."""

    def batch(self, batch: Batch, slept: Sequence[ViewKey] = ()) -> None:
        """A batch was applied, and some views were suspended before it; an exception makes the engine undo it."""
        raise NotImplementedError

    def view_woke(self, view: ViewKey) -> None:
        """A view is active."""

    def view_slept(self, view: ViewKey) -> None:
        """A view is suspended."""

    def fair_changed(self, table: catalog.FairTable) -> None:
        """The constants of the fair price are others."""


class Engine(Readable):
    """A live board with its guards and views.

    Parameters
    ----------
    guards
        Names of the guards to run (None: all), or a mapping of changes, such as `{"stale": 300, "flap": False}`.
    fair
        Constants of the fair price at the close; None is the catalog's table.
    threads
        How many threads search the units of a large step, of a thousand changes or more. Results do not depend on it.

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
        if not (isinstance(threads, int) and 1 <= threads <= MOST_THREADS):
            raise ValueError(f"threads must be from 1 to {MOST_THREADS}, got {threads!r}")
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None  # made by the first large step
        self._fair = catalog.chosen_fair_table(fair)
        self._samples = False  # momentum is maintained once a view uses the estimator
        self._due: Bytes | None = None  # units changed by time alone, while such a view is active
        self._off = frozenset(CODES[name] for name in GUARDS) - enabled(guards)
        self._reader = QuoteReader()
        self._board = Board(self._off, thresholds_of(guards))
        self._views: WeakValueDictionary[ViewKey, View] = WeakValueDictionary()  # as long as they are referenced
        self._awake: dict[ViewKey, View] = {}
        self._entering: dict[ViewKey, PendingView] = {}
        self.opened = OpenTable()
        self._lock = threading.RLock()
        self._number, self._now = 0, int(NO_TIME)  # of the last completed step, once readers see it
        self._replicates = False
        self._replica: Replica | None = None  # made by the first reader that finds none
        self._delayed: dict[float, DelayedBoard] = {}
        self._writes: list[Write] = []  # not yet given to the replica and the delayed boards
        self._recorders: list[Recorder] = []
        self._judges = False  # judge in every step, even without an active view
        self._published = 0, 0  # numbers of terms and books in recorded batches

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
            read = self._reader.read_quotes(quotes, self._board.names)
            try:
                batch = self._batch(read, now, removed, complete, events)
            except BaseException:
                self._mend()
                raise
            return self._feed(batch, read)

    def feed(self, batch: Batch) -> Update:
        """Apply a batch that is already in this engine's codes, such as one from a tape."""
        return self._feed(batch, None)

    def codes(self, wordings: Iterable[Wording], books: Iterable[str]) -> tuple[Longs, Longs]:
        """Codes of wordings and books, for callers that build large batches for `feed`.

        New ones belong to the next batch: `wordings` and `books` from `published` on. The codes are valid as long
        as `wordings` is the same list.
        """
        with self._lock:
            names = self._board.names
            try:
                terms = names.learn(list(wordings))
                return np.array(terms, np.int64), np.array([names.books.code(book) for book in books], np.int64)
            except BaseException:
                self._mend()
                raise

    def _feed(self, batch: Batch, read: Quotes | None) -> Update:
        with self._lock:
            board, before, number = self._board, self._board.moment, self._board.number
            names, units = board.names, board.names.units.size
            told = len(self._writes)
            try:
                applied = board.apply(batch)
                self._enqueue(replica.applied(batch))
                if applied.regrouped:
                    self.opened.rehome(board.rows.unit)
                idle = self._idle()
                views = [view for view in self._searched_for() if view not in idle]
                closing = any(view.wanted.method == CLOSE for view in views)
                self._due = board.due(before, self._fair) if closing else None
                findings = self._search(views)
                update = self._update(batch, applied, findings, read)
                for recorder in self._recorders:
                    recorder.batch(batch, [view.wanted for view in idle])
                # The step is complete from here on; an interruption only makes the views search everything again.
                board.number = number + 1
                board.keep()
                self._commit(batch, findings, idle)
                self._publish()
            except BaseException:
                del self._writes[told:]
                if board.number == number:
                    board.undo()
                    self._mend()
                    if board.names is not names or names.units.size > units:
                        self._reset_readers()  # units that the copies do not get: they would number others so
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

    def _commit(self, batch: Batch, search: Sequence[Findings], idle: Sequence[View]) -> None:
        board = self._board
        for findings in search:
            self._keep(findings, batch.now)
        for view in idle:
            self._sleep(view)
        if tidied := board.tidy():
            self.opened.rehome(board.rows.unit)
        self._enqueue(replica.completed(board.number, board.names.terms.wordings, renumbered=tidied))
        self._published = len(board.names.terms.wordings), len(board.names.books.values)

    def _keep(self, search: Findings, now: int) -> None:
        """Apply the result of a search to the open sets."""
        for searched in search.searched:
            self.opened.commit(searched.rows, search.some.units, searched.hits, searched.difference, now)
            self._enqueue(replica.searched(searched.rows, search.some.units, searched.hits, searched.difference, now))
        if search.fresh:
            remember(search.some, self._board.rows)
        if search.sampled is not None:
            self._board.momentum.commit(search.sampled)
            self._enqueue(replica.moved(search.sampled, self._board.momentum))
        if search.estimates is not None:
            fair_close.remember(*search.estimates, self._board.rows.close)

    def _mend(self) -> None:
        """Repair what an interrupted call left."""
        names = self._board.names
        self._board.mend()
        self.opened.rehome(self._board.rows.unit)
        if self._board.names is not names:
            self._reset_readers()

    def _recompute(self) -> None:
        board = self._board
        board.mend()
        board.rebuild()
        self.opened = OpenTable()
        for each in self._entering.values():
            each.view.open = OpenSet()
        self._entering.clear()  # an unfinished search starts again
        for view in self._awake.values():
            view.open = self.opened.add()
        self._reset_readers()

    def _reset_readers(self) -> None:
        """Show readers a board that was not reached by a step."""
        board, late = self._board, self._delayed
        self._number, self._now, self._replica, self._writes = board.number, board.now, None, []
        self._published = len(board.names.terms.wordings), len(board.names.books.values)
        if not late:
            return
        self._delayed = {}  # they do not repeat how the board is judged: they get a copy of what comes of it
        try:
            with suppress(Exception):  # else the next step judges
                self._settle()
        finally:
            self._delayed, self._writes = late, []
            for delayed in late.values():
                delayed.replica.enqueue(self._copied())

    def restored(self, number: int) -> None:
        """Continue from a restored board, with the given step number."""
        board = self._board
        board.number = number
        self._reset_readers()
        self._restart_searches()

    def _restart_searches(self) -> None:
        """Make every active view search the whole board again."""
        self._entering.clear()
        for view in list(self._awake.values()):
            self._sleep(view)
            self._wake(view)

    def warm_up(self) -> None:
        """Compile code that otherwise compiles in the middle of a long run."""
        with self._lock:
            self._board.warm_up()

    def record(self, recorder: Recorder) -> None:
        """Pass every batch from now on to a recorder, and the views that are active."""
        with self._lock:
            for view in self._awake.values():
                recorder.view_woke(view.wanted)
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
        names = self._board.names
        moment = self._moment(now, read)
        ids = _ids(removed)
        whole = [_snapshot(given) for given in _listed("complete", complete)]
        notices = [_notice(given) for given in _listed("events", events)]
        term, book = self._reader.codes(read, names)
        key = (term.astype(np.int64) << BOOK_BITS) | book
        quoted = CodedQuotes(key, read.odds, read.american, read.seen, read.changed, read.start, read.flags)
        counts = dict(read.rejected.group_by("guard").len().iter_rows()) if read.rejected.height else {}
        learnt, known = self._published
        wordings, books = names.terms.wordings[learnt:], names.books.values[known:]
        return Batch(moment, wordings, books, quoted, read.links, ids, whole, notices, counts)

    def _moment(self, now: datetime | None, read: Quotes) -> int:
        last = self._board.now
        if now is None:
            newest = int(read.seen.max()) if read.seen.size else int(NO_TIME)
            moment = max(last, newest)
            if moment == NO_TIME:
                raise ValueError("step needs `now`: neither the quotes nor an earlier step have a time")
            return _possible(moment)
        if not isinstance(now, datetime):
            raise ValueError(f"now must be a datetime, got {type(now).__name__} {now!r}")
        moment = micros(now)
        if moment < last:
            raise ValueError(f"now must not go back: got {now.isoformat()}, the last step was at {_text(last)}")
        return _possible(moment)

    # ---- the search of a step ----

    def _searched_for(self) -> list[View]:
        """Views that steps search for: active ones, and those being woken."""
        return [*self._awake.values(), *(each.view for each in self._entering.values())]

    def _search(self, views: Sequence[View]) -> list[Findings]:
        """Judge dirty units and search them for some views."""
        board = self._board
        if not (views or self._judges or self._samples):
            return []
        units = np.flatnonzero(board.units.dirty[: board.names.units.size])
        findings = self._look_everywhere(units, views)
        board.units.dirty[units] = 0
        return findings

    def _look_everywhere(self, units: Longs, views: Sequence[View]) -> list[Findings]:
        """Judge and search some units, ascending: many of them in parts, by several threads.

        Units do not depend on each other, and kernels do not hold the interpreter's lock.
        """
        rows = np.cumsum(self._board.units.size[units])
        count = min(self._threads, int(rows[-1]) // _LEAST_ROWS) if units.size else 0
        if count <= 1:
            return [self._look(units, views, fresh=True)] if units.size else []
        self._prepare(units)
        ends = np.searchsorted(rows, [rows[-1] * part // count for part in range(1, count)])
        parts = [part for part in np.split(units, ends) if part.size]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads - 1, thread_name_prefix="search")
        jobs = [self._pool.submit(self._look, part, views, fresh=True) for part in parts[1:]]
        try:
            first = self._look(parts[0], views, fresh=True)
        finally:
            wait(jobs)  # whatever happened, they write verdicts
        return [first, *(job.result() for job in jobs)]

    def _prepare(self, units: Longs) -> None:
        """Make what searches share and would otherwise make when they first need it."""
        board, names = self._board, self._board.names
        _ = (
            names.tables.traits,
            names.tables.forms,
            names.tables.twins,
            names.books.rank,
            names.market_names.rank,
        )
        if self._samples:
            board.momentum.learn(names.tables.estimator(self._fair).books)
        board.prepare_reach()
        self.opened.prepare(units)

    def _look(self, units: Longs, views: Sequence[View], *, fresh: bool) -> Findings:
        """Search some units for some views; `fresh` judges them first, and searches only what that changes."""
        board = self._board
        some = board.gather(units)
        g, rows, names = some.groups, board.rows, board.names
        slots = np.concatenate((g.row, some.out))
        guarded = self._judge(some, slots) if fresh else board.verdicts(g.row)
        alike: dict[Any, list[View]] = {}
        for view in views:
            alike.setdefault(view.wanted.shared, []).append(view)
        specs = [shared[0].spec(names) for shared in alike.values()]
        stored = all(spec.standard for spec in specs if spec.method == CLOSE)
        changed, where, votes, estimated, sampled = None, Scope.everything(g), None, None, None
        if fresh:
            due = self._due
            if self._samples and (due is None or due.size != names.units.size):
                due = np.zeros(names.units.size, np.uint8)  # nothing is due between steps
            curves = tails.curves(g, names.tables.forms)
            changed = since_last_search(some, board.units.dirty[units] // np.uint8(LOOSE), rows, due)
            if any(view.wanted.one_sided for view in views):
                changed = loosen(some, changed)
            votes = voting(some, changed, curves, stored=stored) if self._samples else None
        if self._samples:
            estimated, sampled = board.estimated(some, guarded.reason, g.row, self._fair, votes)
        if changed is not None:
            if estimated is not None and sampled is not None:
                changed = at_close(some, changed, estimated, board.momentum.renewed(sampled))
            where = scope(some, changed, curves)
            if estimated is not None:
                wanted = np.where(where.markets != 0, np.uint8(2), where.fair)
                estimated = estimated._replace(needed=wanted, known=rows.close)
        depth = {
            staked: rows.price_depth(g.row, levels=staked) for staked in {spec.stake is not None for spec in specs}
        }
        searched, estimates = [], None
        moved = (rows.pending[g.row] & REPRICED) != 0
        with board.reached(some, where) as there:
            for shared, spec in zip(alike.values(), specs, strict=True):
                seen = fair_prices(
                    g, names.tables.traits, guarded, spec, self._off,
                    referred=shared[0].wanted.referred, needed=where.fair, board=estimated,
                    ladder=None if spec.model is None else names.ladders_of(g, spec.model),
                    depth=depth[spec.stake is not None],
                )  # fmt: skip
                if seen.close is not None and spec.standard and spec.model is None:
                    estimates = g, where.fair, seen.close
                who, hits = search(some, seen, shared, where, names, self._off, moved)
                of = np.array([view.open.row for view in shared], np.int64)
                searched.append(SearchResult(shared, of, hits, self.opened.compare(of, who, units, hits, there)))
        return Findings(some, searched, fresh, sampled, estimates)

    def _judge(self, some: UnitColumns, slots: Ints) -> Verdicts:
        """Run the guards over some units, and store their verdicts on the board."""
        board, g = self._board, some.groups
        rows = board.rows
        guarded = judge(
            g, board.names.tables.traits, some.start, some.flap, some.confirmed, self._off, board.moment, board.limits
        )
        honour(guarded, rows.flags[g.row] & np.uint8(REJECTED), self._off)
        reason = np.concatenate((guarded.reason, some.why))
        rejected = reason.copy()
        rejected[g.row.size :] = self._alone(some.out, some.why)
        board.judge(slots, guarded, reason, rejected)
        self._enqueue(replica.judged(slots, guarded, reason, rejected))
        board.watch_gaps(some, guarded.reason)
        return guarded

    def _alone(self, out: Ints, why: Bytes) -> Bytes:
        """The guard that rejects each row that identity rejects; 0 if the row's market is only not compared."""
        board, rejected = self._board, why.copy()
        at = np.flatnonzero(_UNCOMPARED[why])
        if at.size:
            rows, names, slots = board.rows, board.names, out[at]
            rejected[at] = alone(
                names.tables.traits, names.books.rank[rows.key[slots] & BOOK_MASK], rows.flags[slots] & np.uint8(LIVE),
                rows.seen[slots], rows.start[slots], self._off, board.moment, board.limits,
            )  # fmt: skip
        return rejected

    def _idle(self) -> list[View]:
        """Views that nobody reads, to be suspended in this step."""
        last = self._board.now - IDLE_S * SECOND
        for view in self._awake.values():
            if view.read_at == NO_TIME:  # created before the first step
                view.read_at = now = self._board.now
                view.needed = {board: until + now * (until != LATEST) for board, until in view.needed.items()}
        return [view for view in self._awake.values() if view.read_at < last and not self._kept(view)]

    def _kept(self, view: View) -> bool:
        """Whether somebody keeps a view awake: a caller, or a delayed board that shows it."""
        return view.kept > 0 or any(until > self._board.now for until in tuple(view.needed.values()))

    # ---- the update of a step ----

    def _update(self, batch: Batch, applied: AppliedBatch, search: Sequence[Findings], read: Quotes | None) -> Update:
        board = self._board
        rows = board.rows
        moved = np.flatnonzero((applied.what & MOVED) != 0)
        moved = moved[rows.state[applied.slots[moved]] == ON]
        slots = distinct(applied.slots[moved])
        of = np.searchsorted(slots, applied.slots[moved])
        what = np.zeros(slots.size, np.uint8)
        np.bitwise_or.at(what, of, applied.what[moved])
        parts: dict[View, list[ViewChange]] = {}
        rejudged = board.rejudged()
        legs = [slots, rejudged]
        for searched in (each for findings in search for each in findings.searched):
            made, hits = self._changes(searched, batch.now)
            for view, change in made.items():
                parts.setdefault(view, []).append(change)
            legs.append(hits.legs[hits.legs >= 0])
        changes = {view: found[0] if len(found) == 1 else ViewChange.joined(found) for view, found in parts.items()}
        every = distinct(np.concatenate(legs))
        facts = board.facts(every)
        again = applied.slots[applied.what == SEEN]
        gone = board.facts(distinct(applied.gone))
        new = applied.slots[(applied.what & NEW) != 0]
        return Update(
            number=board.number + 1,
            now=batch.now,
            moment=board.moment,
            facts=facts,
            rows=facts.places(slots),
            what=what,
            judged=facts.places(rejudged),
            before=board.before(distinct(np.concatenate((slots, rejudged))), new),
            relined=self._relined(slots, what, gone),
            gone=gone,
            gone_shown=board.before(gone.slot, new).shown,
            views=changes,
            rejected=self._refused(applied, read),
            late=applied.late,
            again=rows.id[again],
            again_key=rows.key[again],
            again_seen=rows.seen[again],
        )

    def _changes(self, searched: SearchResult, now: int) -> tuple[dict[View, ViewChange], Hits]:
        """The changes of each active view, and everything in them that is new or has changed."""
        table, difference = self.opened, searched.difference
        fresh = np.flatnonzero(difference.status != SAME)
        hits, status, old = searched.hits.take(fresh), difference.status[fresh], difference.old[fresh]
        born = np.where(old < 0, now, table.born[np.maximum(old, 0)])
        ids, kinds = table.id[difference.expired], table.kind[difference.expired]
        size = (difference.ends.size - 1) // len(searched.views)
        at = np.searchsorted(fresh, difference.ends[::size]).tolist()
        out, around = difference.expired_ends.tolist(), difference.touched_ends.tolist()
        touched = table.id[difference.touched]
        changes = {
            view: ViewChange(hits, slice(at[k], at[k + 1]), status[at[k] : at[k + 1]], born[at[k] : at[k + 1]],
                         ids[out[k] : out[k + 1]], kinds[out[k] : out[k + 1]], touched[around[k] : around[k + 1]])
            for k, view in enumerate(searched.views) if view.awake
        }  # fmt: skip
        if len(changes) < len(searched.views):
            awake = np.repeat([view.awake for view in searched.views], np.diff(at))
            hits = hits.take(awake)
        return changes, hits

    def _relined(self, slots: Ints, what: Any, gone: Facts) -> dict[int, int]:
        """New rows that replace removed rows with another line: index of the new row -> index of the removed one."""
        if not gone.slot.size or not (what & NEW).any():
            return {}
        stem, key = self._board.names.terms.stem.values, self._board.rows.key
        lost = {
            (int(s), b): at
            for at, (s, b) in enumerate(zip(stem[gone.key >> BOOK_BITS], gone.key & BOOK_MASK, strict=True))
        }
        new = np.flatnonzero(what & NEW)
        named = zip(
            new.tolist(),
            stem[key[slots[new]] >> BOOK_BITS].tolist(),
            (key[slots[new]] & BOOK_MASK).tolist(),
            strict=True,
        )
        moves = {at: lost[s, b] for at, s, b in named if (s, b) in lost}
        words = self._board.names.terms.wordings
        lines = {at: words[int(key[slots[at]]) >> BOOK_BITS][-1] for at in moves}
        return {at: to for at, to in moves.items() if words[int(gone.key[to]) >> BOOK_BITS][-1] != lines[at]}

    def _refused(self, applied: AppliedBatch, read: Quotes | None) -> pl.DataFrame:
        refused = NONE_REJECTED if read is None else read.rejected
        if not applied.unknown:
            return refused
        at = np.flatnonzero(applied.what == UNKNOWN)
        rows = at if read is None or read.number is None else read.number[at]
        more = pl.DataFrame({"row": rows}).with_columns(
            field=pl.lit("odds_decimal"), value=pl.lit(""), reason=pl.lit("no price given"), guard=pl.lit("bad_price")
        )
        return pl.concat([refused, more.cast(BAD_ROW_SCHEMA)]).sort("row")  # type: ignore[arg-type]

    # ---- reading ----

    @property
    def books(self) -> Sequence[str]:
        """All books so far, by code."""
        return self._board.names.books.values

    @property
    def wordings(self) -> Sequence[Wording]:
        """The wordings of terms, by code."""
        return self._board.names.terms.wordings

    @property
    def published(self) -> tuple[int, int]:
        """Numbers of terms and books in the batches of all completed steps."""
        return self._published

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
        nothing; reading it wakes it, at the cost of one search of the board. Updates do not include suspended views,
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
        return self.awake(wanted, keep=keep, wider=wider)

    def awake(self, wanted: ViewKey, *, keep: bool = False, wider: bool = False, restored: bool = False) -> View:
        """The active view with some parameters; see `view`. The first to keep one that was `restored` takes it over."""
        with self._lock:
            view = self._views.get(wanted)
            if view is None and wider:
                more = (
                    each for each in self._awake.values() if each.kept and set(wanted.kinds) < set(each.wanted.kinds)
                )
                view = next((each for each in more if each.wanted._replace(kinds=wanted.kinds) == wanted), None)
            if view is None:
                view = self._views[wanted] = View(self, wanted)
            view.kept += bool(keep) and not view.restored
            view.restored = (view.restored and not keep) or (keep and restored)
            view.read_at = self._board.now
        try:
            self._wake(view)
        except BaseException:
            if keep:
                self.release(view)
            raise
        return view

    def release(self, view: View) -> None:
        """Undo one `keep`; a view that nobody else keeps is suspended unless it is read within half a minute."""
        with self._lock:
            if view.kept == 1 and view.read_at != NO_TIME:
                view.read_at = min(view.read_at, self._board.now - (IDLE_S - RELEASED_S) * SECOND)
            view.kept -= view.kept > 0

    def need(self, view: View, board: Hashable, seconds: float) -> None:
        """Keep a view awake for a delayed board for some seconds; with 0, it is suspended as after `release`.

        It takes no lock: readers do not wait for a step.
        """
        if seconds:
            view.needed[board] = LATEST if seconds == np.inf else max(0, self._board.now) + round(seconds * SECOND)
            return
        view.needed.pop(board, None)
        if view.read_at != NO_TIME:
            view.read_at = min(view.read_at, self._board.now - (IDLE_S - RELEASED_S) * SECOND)

    def close(self, view: View) -> None:
        """Suspend a view, whoever keeps it, unless a delayed board shows it; reading it wakes it again."""
        with self._lock:
            view.kept, view.restored = 0, False
            if view.awake and not self._kept(view):
                for recorder in self._recorders:
                    recorder.view_slept(view.wanted)
                with self._repeated():
                    self._sleep(view)

    def _sleep(self, view: View) -> None:
        self._drop(view)
        del self._awake[view.wanted]

    def _drop(self, view: View) -> None:
        row = view.open.row
        view.sleep()
        if row >= 0:
            self._enqueue(replica.dropped(view.wanted, row))

    @property
    def guards(self) -> dict[str, float | bool]:
        """Differences from the catalog's guards, in the form of `guards` of `Engine` and `find_all`."""
        usual, limits = catalog.thresholds(), self._board.limits
        changes: dict[str, float | bool] = {NAMES[code]: False for code in sorted(self._off)}
        both = zip(usual._fields, usual, limits, strict=True)
        return changes | {name: now for name, was, now in both if now != was}

    @property
    def fair(self) -> catalog.FairTable:
        """Constants of the fair price at the close; after a change, the next step searches everything again."""
        return self._fair

    @fair.setter
    def fair(self, table: catalog.FairTable) -> None:
        with self._lock, self._repeated():
            if table is not self._fair:
                self._fair = table
                self._enqueue(replica.refitted(table))
                for recorder in self._recorders:
                    recorder.fair_changed(table)
                self._board.search_again()

    @property
    def off(self) -> frozenset[int]:
        """Codes of disabled guards."""
        return self._off

    @property
    def number(self) -> int:
        """Number of completed steps."""
        return self._number

    @property
    def now(self) -> datetime | None:
        """Time of the last step."""
        return time_of(self._now)

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
            yield self._state()

    @contextmanager
    def reading(self, view: View) -> Iterator[ReadState]:
        """As `shown`; the view is active meanwhile."""
        while True:
            self.touch(view)
            with self.shown() as shown:
                if view.wanted in shown.rows:
                    yield shown
                    return
            if self._replica is not None and self._replica.reads:
                raise RuntimeError(f"{view} cannot be woken inside of another read, whose state must not change")
            self._wake(view)  # waits for whoever wakes it, if it is not yet shown

    def touch(self, view: View) -> None:
        """Wake a view, or keep it awake: somebody reads it."""
        if not view.awake:
            self._wake(view)
        view.read_at = self._board.now

    @contextmanager
    def still(self, *, judged: bool = False) -> Iterator[Board]:
        """Lock the board, so that no step begins; without `judged`, verdicts may be from an earlier step."""
        with self._lock:
            if judged:
                self._settle()
            yield self._board

    @property
    def busy(self) -> bool:
        """Whether a reader would wait for another thread."""
        if self._replicates:
            return self._replica is None or self._replica.busy
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
            self._judges = self._replicates = True
        self._readable()

    def delayed(self, seconds: float) -> DelayedBoard:
        """Return this board as it was some seconds ago: the same updates, later.

        It is empty until the first update is old enough; if created after the first step, it starts with the current
        board, that many seconds from now. It is a second copy of the numbers, but not of the texts, which repeats what
        the steps have written. Every step judges, as with `keep_judged`. Its views are this engine's, read late: see
        `DelayedBoard.view`.
        """
        if not (isinstance(seconds, int | float) and 0 < seconds <= REMEMBERED_S):
            raise ValueError(f"delayed must be in seconds, above 0 and at most {REMEMBERED_S}, got {seconds!r}")
        with self._lock:
            if seconds not in self._delayed:
                self._judges = True
                self._settle()
                made = self._delayed[seconds] = DelayedBoard(self, self._state(), seconds)
                if self._board.number:
                    made.replica.enqueue(self._copied())
            return self._delayed[seconds]

    def _state(self) -> ReadState:
        rows = {wanted: view.open.row for wanted, view in self._awake.items()}
        return ReadState(self._board, self.opened, rows, self._fair, self._samples)

    def _copied(self) -> Written:
        """A copy of the board, from which readers can begin."""
        return Written(self._board.number, self._board.now, self._state().copied())

    def _readable(self) -> Replica | None:
        """The replica, if one is kept; made anew if repeating failed, or the board was replaced."""
        found = self._replica
        if self._replicates and (found is None or found.failure):
            with self._lock:
                if self._board.pending:
                    return None
                found = self._replica
                if found is None or found.failure:
                    self._settle()
                    found = self._replica = Replica(self._state().copied())
        return found

    def _copies(self) -> list[Replica]:
        """All copies that repeat what is written."""
        late = [delayed.replica for delayed in self._delayed.values()]
        return late if self._replica is None else [self._replica, *late]

    def _enqueue(self, write: Write) -> None:
        """The copies have to repeat a write."""
        if self._replica is not None or self._delayed:
            self._writes.append(write)

    @contextmanager
    def _repeated(self) -> Iterator[None]:
        """The copies repeat what is written inside of the with statement, or are made anew if that fails."""
        try:
            yield
            self._publish()
        except BaseException:
            self._reset_readers()
            raise

    def _publish(self) -> None:
        """Show readers what was written."""
        board, (self._writes, writes) = self._board, ([], self._writes)
        self._number, self._now = board.number, board.now
        if self._replica is not None and self._replica.failure:
            self._replica = None
        for each in self._copies() if writes else ():
            each.enqueue(Written(board.number, board.now, writes))

    def _follow(self) -> None:
        """Let the copies repeat what was written."""
        for delayed in tuple(self._delayed.values()):
            with self._lock:
                if delayed.replica.needs_copy() and self._board.number:
                    delayed.replica.enqueue(self._copied())
        for each in self._copies():
            each.follow()

    def keep_judged(self) -> None:
        """Judge in every step from now on, so that each update lists all changed verdicts (`Update.judged`).

        Otherwise, while no view is active, prices are judged on demand.
        """
        with self._lock:
            self._judges = True

    def _wake(self, view: View) -> None:
        """Search the whole board for a view that was not kept up to date, in parts, so that others get a turn."""
        try:
            while not self._advance(view):
                threading.Event().wait(_PAUSE_S)  # other threads acquire the lock
        except BaseException:
            with self._lock:
                if self._entering.pop(view.wanted, None) is not None:
                    self._drop(view)
            raise

    def _advance(self, view: View) -> bool:
        """Search the next part of the board for a view. Returns True once the view is active.

        Threads that wait for the same view share the work. If no step judges, the whole search is one part: a
        replay wakes the view at the end of the search, and must not find that steps did more than without it.
        """
        with self._lock, self._repeated():
            if view.awake:
                return True
            board, entering = self._board, self._entering.get(view.wanted)
            part = _PART if self._samples or self._judges else board.rows.top
            if entering is None or entering.names is not board.names or entering.table is not self.opened:
                if view.wanted.method == CLOSE and not self._samples:
                    self._samples, board.momentum = True, Memory()
                    self._enqueue(replica.sampling)
                self._settle()
                self._drop(view)
                view.open = self.opened.add()
                self._enqueue(replica.added(view.open.row))
                units = np.flatnonzero(board.units.size[: board.names.units.size])
                entering = PendingView(view, units, board.names, self.opened)
            units = entering.units
            some = 1 + int(np.searchsorted(np.cumsum(board.units.size[units]), part))
            if units.size:
                self._keep(self._look(units[:some], [view], fresh=False), board.now)
            if some < units.size:
                self._entering[view.wanted] = entering._replace(units=units[some:])
                return False
            self._entering.pop(view.wanted, None)
            self._date(view)
            view.awake, view.woken_at = True, board.now
            self._awake[view.wanted] = view
            self._enqueue_woken(view)
            for recorder in self._recorders:
                recorder.view_woke(view.wanted)
            return True

    def redate(self, view: View, born: Callable[[int, int], int | None]) -> None:
        """Set when what a view has open was detected, by id and kind; None leaves it."""
        with self._lock, self._repeated():
            table = self.opened
            for place in view.open.places().tolist():
                since = born(int(table.id[place]), int(table.kind[place]))
                table.born[place] = table.born[place] if since is None else since
            self._enqueue_woken(view)

    def _enqueue_woken(self, view: View) -> None:
        places = view.open.places()
        self._enqueue(replica.woken(view.wanted, view.open.row, places, self.opened.born[places]))

    def _date(self, view: View) -> None:
        """Set when what a woken view has open was detected: as in an active view of equal conditions, or now."""
        table, places = self.opened, view.open.places()
        table.born[places] = self._board.now
        for code, kind in enumerate(KINDS):
            twins = (
                each
                for each in self._awake.values()
                if kind in each.wanted.kinds and each.wanted.conditions(kind) == view.wanted.conditions(kind)
            )
            twin = next(twins, None) if kind in view.wanted.kinds else None
            if twin is not None:
                theirs = twin.open.places()
                mine, theirs = (some[table.kind[some] == code] for some in (places, theirs))
                _, at, of = np.intersect1d(table.id[mine], table.id[theirs], return_indices=True)
                table.born[mine[at]] = table.born[theirs[of]]

    def _settle(self) -> None:
        """Judge and search what was postponed while no view was active."""
        board = self._board
        dirty = board.units.dirty[: board.names.units.size]
        if np.count_nonzero(dirty):
            units = np.flatnonzero(dirty)
            with self._repeated():
                for findings in self._look_everywhere(units, self._searched_for()):
                    self._keep(findings, board.now)
                board.units.dirty[units] = 0


_FIRST, _LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def _possible(moment: int) -> int:
    if not micros(_FIRST) <= moment <= micros(_LAST):
        raise ValueError(f"now must be from 1900 to 2199, got the year {np.datetime64(moment, 'us').astype('M8[Y]')}")
    return moment


def _text(micro: int) -> str:
    moment = time_of(micro)
    return "the beginning" if moment is None else moment.isoformat()


def _ids(removed: Iterable[str]) -> Words:
    ids = list(_listed("removed", removed))
    for given in ids:
        if not (isinstance(given, str) and _ID.fullmatch(given)):
            raise ValueError(f"removed must be row ids of 16 hexadecimal digits, got {given!r}")
    return np.array([int(given, 16) for given in ids], np.uint64)


def _listed(name: str, given: Any) -> Iterable[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list, got {given!r}")
    return given


def _snapshot(given: Any) -> tuple[str, str | None]:
    if isinstance(given, str):
        return readable(given), None
    if isinstance(given, Sequence) and len(given) == 2 and isinstance(given[0], str):
        return readable(given[0]), None if given[1] is None else readable(str(given[1]))
    raise ValueError(f"complete must be books or (book, event) pairs, got {given!r}")


def _notice(given: Mapping[str, Any]) -> tuple[str, str, int]:
    if not isinstance(given, Mapping):
        raise ValueError(f"events must be mappings with event_id and status, got {given!r}")
    event, status, start = given.get("event_id"), given.get("status"), given.get("event_start_time")
    if not isinstance(event, str) or not event:
        raise ValueError(f"events must have an event_id, got {dict(given)!r}")
    if status not in STATUSES:
        raise ValueError(f"status of {event} must be one of {', '.join(STATUSES)}, got {status!r}")
    if isinstance(start, str):
        start = datetime.fromisoformat(start)
    if not isinstance(start, datetime | None):
        raise ValueError(f"event_start_time of {event} must be a datetime, got {start!r}")
    event = readable(event)
    return event, str(status), int(NO_TIME) if start is None else micros(start)


__all__ = ["IDLE_S", "REMEMBERED_S", "Batch", "CodedQuotes", "Engine", "ViewKey", "micros"]
