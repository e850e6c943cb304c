"""The search of an engine: it judges what a batch changed, and finds what its views have open there.

Partitions do not depend on each other, so several threads may search.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from operator import is_not
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine.board.changed_markets import REPRICED, at_close, loosen, remember, scope, since_last_search, voting
from oddsengine.board.names import Names
from oddsengine.board.open import Difference, Hits
from oddsengine.board.partitions import LOOSE
from oddsengine.board.rows import REJECTED
from oddsengine.bounds import excerpt
from oddsengine.catalog.reasons import CODES, MOST_CODES, UNCOMPARED
from oddsengine.columns import Bytes, Floats, Ints, Longs
from oddsengine.detection import tails
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.search import FIGURES, LEGS, PROMISED, Opened, Search, own_legs
from oddsengine.detection.sweep import Scope, Thresholds
from oddsengine.guards import plugin_guards
from oddsengine.guards.verdicts import Verdicts, alone, apply_rejections, judge
from oddsengine.identity.groups import Groups
from oddsengine.identity.layout import BOOK_MASK, LIVE, PartitionColumns
from oddsengine.live import writes
from oddsengine.live.copies import Copies
from oddsengine.live.part import common
from oddsengine.live.replica import ReadState
from oddsengine.live.view import Together, View
from oddsengine.pricing import close as fair_close
from oddsengine.pricing.close import Fair
from oddsengine.pricing.momentum import LadderSamples
from oddsengine.pricing.references import CLOSE, Users, fair_prices

MOST_THREADS = 64
_LEAST_ROWS = 20_000  # of a part that is worth a thread
_UNCOMPARED = np.isin(np.arange(MOST_CODES), [CODES[name] for name in UNCOMPARED])


class SearchResult(NamedTuple):
    """Result of a search for the open sets of some views; not yet applied."""

    views: list[View]
    rows: Longs  # rows of the views in the open table
    hits: Hits
    promised: Floats | None  # (hits, PROMISED), nan where there is no +EV bet; if the engine keeps it
    difference: Difference


class Findings(NamedTuple):
    """Findings of a search over some partitions, and state to store for the next one."""

    some: PartitionColumns
    searched: list[SearchResult]
    fresh: bool  # what had changed was searched, and not everything for a new view
    sampled: LadderSamples | None  # momentum of the markets
    estimates: tuple[Groups, Bytes, Fair] | None  # estimates to store, and their markets


class Searcher:
    """Judges and searches an engine's board, for the thread that holds its lock."""

    def __init__(
        self, state: ReadState, copies: Copies, off: frozenset[int], threads: int,
        guards: tuple[plugin_guards.LoadedGuard, ...] = (),
    ) -> None:  # fmt: skip
        if not (isinstance(threads, int) and 1 <= threads <= MOST_THREADS):
            raise ValueError(f"threads must be from 1 to {MOST_THREADS}, got {excerpt(threads)}")
        self._state, self._copies = state, copies
        self._off = off  # codes of disabled guards
        self.guards = guards  # of plugins
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None  # made by the first large step
        self.judges = False  # judge in every step, even without an active view
        self.promises = False  # find what rows promise of their EV

    def step(self, views: Sequence[View], before: int) -> list[Findings]:
        """Judge what a batch changed, and what time has since the second `before`, and search it for some views."""
        board = self._state.board
        if not (views or self.judges or self._state.samples):
            return []
        closing = any(view.wanted.method == CLOSE for view in views)
        due = board.due(before, self._state.fair) if closing else None
        partitions = np.flatnonzero(board.partitions.dirty[: board.names.partitions.size])
        findings = self._everywhere(partitions, views, due)
        board.partitions.dirty[partitions] = 0
        return findings

    def settle(self, views: Sequence[View]) -> None:
        """Judge and search what was postponed while no view was active."""
        board = self._state.board
        dirty = board.partitions.dirty[: board.names.partitions.size]
        if np.count_nonzero(dirty):
            partitions = np.flatnonzero(dirty)
            with self._copies.repeated():
                for findings in self._everywhere(partitions, views, None):
                    self.keep(findings)
                board.partitions.dirty[partitions] = 0

    def keep(self, found: Findings) -> None:
        """Apply the result of a search to the open sets."""
        board, write = self._state.board, self._copies.write
        for searched in found.searched:
            write(writes.searched(searched.rows, found.some.partitions, searched.hits, searched.difference, board.now))
        if found.fresh:
            remember(found.some, board.rows)
        if found.sampled is not None:
            board.momentum.commit(found.sampled)
            self._copies.repeat(writes.sampled(found.sampled, board.momentum))
        if found.estimates is not None:
            fair_close.remember(*found.estimates, board.rows.close)

    def _everywhere(self, partitions: Longs, views: Sequence[View], due: Bytes | None) -> list[Findings]:
        """Judge and search some partitions, ascending: many of them in parts, by several threads.

        Kernels do not hold the interpreter's lock.
        """
        rows = np.cumsum(self._state.board.partitions.size[partitions])
        count = min(self._threads, int(rows[-1]) // _LEAST_ROWS) if partitions.size else 0
        if count <= 1:
            return [self._changed(partitions, views, due)] if partitions.size else []
        self._prepare(partitions)
        ends = np.searchsorted(rows, [rows[-1] * part // count for part in range(1, count)])
        parts = [part for part in np.split(partitions, ends) if part.size]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads - 1, thread_name_prefix="search")
        jobs = [self._pool.submit(self._changed, part, views, due) for part in parts[1:]]
        try:
            first = self._changed(parts[0], views, due)
        finally:
            wait(jobs)  # whatever happened, they write verdicts
        return [first, *(job.result() for job in jobs)]

    def _prepare(self, partitions: Longs) -> None:
        """Make what searches share and would otherwise make when they first need it."""
        board, names = self._state.board, self._state.board.names
        _ = names.tables.traits, names.tables.forms, names.tables.equivalents, names.books.rank, names.market_names.rank
        if self._state.samples:
            board.momentum.learn(names.tables.estimator(self._state.fair).books)
        board.prepare_reach()
        self._state.opened.prepare(partitions)

    def whole(self, partitions: Longs, view: View) -> Findings:
        """Search everything in some partitions for one view."""
        return self._search(partitions, [view], fresh=False, due=None)

    def _changed(self, partitions: Longs, views: Sequence[View], due: Bytes | None) -> Findings:
        """Judge some partitions, and search what that changes."""
        return self._search(partitions, views, fresh=True, due=due)

    def _search(self, partitions: Longs, views: Sequence[View], *, fresh: bool, due: Bytes | None) -> Findings:
        """Search some partitions for some views; `fresh` judges them first, and searches only what that changes."""
        state, board = self._state, self._state.board
        some = board.gather(partitions)
        g, rows, names = some.groups, board.rows, board.names
        guarded = self._judge(some) if fresh else board.verdicts(g.row)
        alike: dict[Any, list[View]] = {}
        for view in views:
            alike.setdefault(view.wanted.shared, []).append(view)
        specs = [shared[0].spec(names) for shared in alike.values()]
        hashes = names.hashes(g)
        changed, where, votes, estimated, sampled = None, Scope.everything(g), None, None, None
        if fresh:
            if state.samples and due is None:
                due = np.zeros(names.partitions.size, np.uint8)  # nothing is due between steps
            curves = tails.curves(g, names.tables.forms)
            changed = since_last_search(some, board.partitions.dirty[partitions] // np.uint8(LOOSE), rows, due)
            if any(view.wanted.one_sided for view in views):
                changed = loosen(some, changed)
            if state.samples:
                stored = all(spec.standard for spec in specs if spec.method == CLOSE)
                votes = voting(some, changed, curves, stored=stored)
        if state.samples:
            estimated, sampled = board.estimated(some, guarded.reason, g.row, state.fair, votes, hashes)
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
                together = _together(shared, names)
                seen = fair_prices(
                    g, names.tables.traits, guarded, spec, self._off, referred=shared[0].wanted.referred,
                    needed=where.fair, board=estimated, depth=depth[spec.stake is not None], users=together.users,
                    ladder=None if spec.model is None else names.ladders_of(g, spec.model),
                )  # fmt: skip
                if seen.close is not None and spec.standard and spec.model is None:
                    estimates = g, where.fair, seen.close
                search = common(seen, together.thresholds, where, hashes, names.tables.forms, self._off)
                who, hits, promised = _find(some, Search(**search, promises=self.promises), shared, moved)
                of = np.array([view.open.row for view in shared], np.int64)
                difference = state.opened.compare(of, who, partitions, hits, there)
                searched.append(SearchResult(shared, of, hits, promised, difference))
        return Findings(some, searched, fresh, sampled, estimates)

    def _judge(self, some: PartitionColumns) -> Verdicts:
        """Run the guards over some partitions, and store their verdicts on the board."""
        board, g = self._state.board, some.groups
        rows = board.rows
        guarded = judge(
            g, board.names.tables.traits, some.start, some.flap, some.confirmed, self._off, board.moment, board.limits
        )
        apply_rejections(guarded, rows.flags[g.row] & np.uint8(REJECTED), self._off)
        plugin_guards.judge(self.guards, g, guarded.reason, lambda at, names: board.table(g.row[at], names))
        reason = np.concatenate((guarded.reason, some.why))
        rejected = reason.copy()
        rejected[g.row.size :] = self._alone(some.out, some.why)
        self._copies.write(writes.judged(np.concatenate((g.row, some.out)), guarded, reason, rejected))
        board.watch_gaps(some, guarded.reason)
        return guarded

    def _alone(self, out: Ints, why: Bytes) -> Bytes:
        """The guard that rejects each row that identity rejects; 0 if the row's market is only not compared."""
        board, rejected = self._state.board, why.copy()
        at = np.flatnonzero(_UNCOMPARED[why])
        if at.size:
            rows, names, slots = board.rows, board.names, out[at]
            rejected[at] = alone(
                names.tables.traits, names.books.rank[rows.key[slots] & BOOK_MASK], rows.flags[slots] & np.uint8(LIVE),
                rows.seen[slots], rows.start[slots], self._off, board.moment, board.limits,
            )  # fmt: skip
        return rejected


def _find(
    some: PartitionColumns, shared: Search, views: Sequence[View], moved: npt.NDArray[np.bool_]
) -> tuple[Longs, Hits, Floats | None]:
    """Find what views that share fair prices hold open within some partitions; the view of each hit first.

    `moved` says which rows of the groups have changed since the last search.
    """
    # Rows show the fair prices of a reference even if the search has none.
    moved = moved if views[0].wanted.referred else np.ones_like(moved)
    parts = [
        (code, kind.opened(shared, kind.find(shared), moved))
        for code, kind in enumerate(KINDS.values())
        if any(kind.name in view.wanted.kinds for view in views)
    ]
    return _hits(some, [(code, part) for code, part in parts if part.id.size], promises=shared.promises)


def _together(views: Sequence[View], names: Names) -> Together:
    """The books and thresholds of some views; the same views as in the last call have the same."""
    specs = [view.spec(names) for view in views]
    found = views[0].together
    if found is None or len(found.specs) != len(specs) or any(map(is_not, found.specs, specs)):
        found = Together(specs, Users.of(specs), Thresholds.stack([view.thresholds for view in views]))
        views[0].together = found
    return found


def _hits(
    some: PartitionColumns, parts: list[tuple[int, Opened]], *, promises: bool
) -> tuple[Longs, Hits, Floats | None]:
    """All kinds together, by code, sorted by view and partition; and what they promise."""
    if not parts:
        return np.empty(0, np.int64), Hits.none(), np.empty((0, len(PROMISED))) if promises else None
    g = some.groups
    sizes = [part.id.size for _, part in parts]
    n = sum(sizes)
    kind = np.repeat(np.array([code for code, _ in parts], np.uint8), sizes)
    who = np.concatenate([part.who for _, part in parts])
    ladder = g.ladder[np.concatenate([part.market for _, part in parts])]
    partition = some.partitions[some.ladder_partition[ladder]]
    legs, shown, own = np.full((n, LEGS), -1, np.int32), np.zeros(n, np.uint64), np.zeros(n, np.uint8)
    promised = np.full((n, len(PROMISED)), np.nan) if promises else None
    for code, part in parts:
        if part.figures.shape[1] != FIGURES:
            name = list(KINDS)[code]
            raise ValueError(f"the figures of {name} must be {FIGURES} columns, got {part.figures.shape[1]}")
    figures = np.concatenate([part.figures for _, part in parts])
    start = 0
    for size, (_, part) in zip(sizes, parts, strict=True):
        rows = part.rows[:, :LEGS]
        legs[start : start + size, : rows.shape[1]] = np.where(rows >= 0, g.row[np.maximum(rows, 0)], -1)
        own[start : start + size] = own_legs(g, part.market, rows)
        if part.shown is not None:
            shown[start : start + size] = part.shown
        if promised is not None and part.promised is not None:
            promised[start : start + size] = part.promised
        start += size
    ident = np.concatenate([part.id for _, part in parts])
    hits = Hits(ident, kind, partition.astype(np.int32), legs, figures, shown, own)
    order = np.argsort(who << 32 | partition, kind="stable")
    return who[order], hits.take(order), None if promised is None else promised[order]
