"""The board: the latest price of every book, raw label and line, and the effects of each batch.

`Board` owns the columns and is the only one that writes to them. It has prices, events and times, but no users: which
books a user may see, and which opportunities are shown, is decided from what `gather` returns.

Columns of the kernels:

- `key`, `seen`, `state`, `pending` (per slot): as in `Rows`
- `slots`: rows
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.board.ageing import age, schedule
from oddsengine.board.changed_markets import ELSEWHERE, JUDGED, REPRICED, TIMED, reach
from oddsengine.board.event_status import EventNotice, EventNotices
from oddsengine.board.facts import LABELS, Facts, moments_of
from oddsengine.board.flap import FlapLimits, Levels
from oddsengine.board.names import Names
from oddsengine.board.partitions import DIRTY, Partitions
from oddsengine.board.row_links import without_depth
from oddsengine.board.rows import (
    COLUMNS,
    LATE,
    LIVENESS,
    MEMBER,
    MOVED,
    NEW,
    NO_PRICE,
    SEEN,
    STATUS,
    UNKNOWN,
    CodedQuotes,
    Rows,
    _apply,
    row_ids,
)
from oddsengine.board.undo import Past, Undo
from oddsengine.catalog.reasons import ACCEPTED, CODES, MOST_CODES
from oddsengine.columns import EARLIEST, LATEST, NO_TIME, NONE, SECOND, Bytes, Floats, Int, Ints, Longs, Words
from oddsengine.detection.opportunity_ids import Hashes
from oddsengine.detection.sweep import Scope
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import distinct
from oddsengine.identity.layout import (
    BOOK_BITS,
    BOOK_MASK,
    FREE,
    LIVE,
    ON,
    REMOVED,
    Lists,
    PartitionColumns,
    TermColumns,
    gather,
)
from oddsengine.identity.raw_labels import RawLabel
from oddsengine.pricing.close import CloseInput as Estimated
from oddsengine.pricing.close import Times, starts
from oddsengine.pricing.close_table import minutes
from oddsengine.pricing.momentum import LadderSamples, Memory
from oddsengine.pricing.references import close_input
from oddsengine.pricing.votes import BookLogits
from oddsengine.tables.schema import ODDS_SCHEMA

_FEW = 65_536  # terms that are retained even if unused
_DERIVED = {"partition", "member", "pending", "close", "own"}  # columns of rows that `rebuild` or a search derives
_MANY = 4096  # larger batches are applied in order of partitions
_AGED = np.isin(np.arange(MOST_CODES), [CODES["stale"], CODES["duplicate_outcome"]])  # a newer time may lift them


class Batch(NamedTuple):
    """One batch in codes: all input of a step. The same batches in order produce the same board."""

    now: int
    raw_labels: list[RawLabel]  # new in this batch, in order of their codes
    books: list[str]  # new in this batch
    quoted: CodedQuotes
    links: list[str | None]
    removed: Words  # ids
    complete: list[tuple[str, str | None]]  # book, event
    events: list[tuple[str, str, int]]  # event, status, start or NO_TIME
    rejected: dict[str, int]


class AppliedBatch(NamedTuple):
    """Effects of a batch, by slot."""

    slots: Ints  # per quote, -1 if its row does not exist
    what: Bytes  # per quote, see `rows`
    removed: Ints  # removed slots
    late: int
    unknown: int  # suspended quotes without a price, for unknown rows
    regrouped: bool  # rows were assigned to other partitions, because an event is of another sport or league


class BoardContent(NamedTuple):
    """All that a board holds but its number, its momentum, and what is derived from the rest."""

    now: int
    moment: int
    checked: int  # when it was last checked which events have ended
    notices: dict[str, EventNotice]
    rejected: dict[str, int]
    tidy_at: int
    raw_labels: list[RawLabel]
    books: list[str]
    top: int
    columns: dict[str, npt.NDArray[Any]]  # of the rows, up to `top`
    spare: Ints
    levels: Levels
    links: dict[int, str]


@kernel
def _unlisted(
    slots: Ints, key: Longs, state: Bytes, seen: Longs, books: Bytes, is_listed: Bytes, time: Int, out: Ints
) -> int:
    """Rows of books among `slots` that are on the board, not listed, and not seen after a time. Returns a count.

    - `books` (uint8 per book): 1 for the books in question
    - `is_listed` (uint8 per slot): 1 for the rows that are listed
    - `time`: microseconds
    - `out`: the rows to write
    """
    n = 0
    for i in range(slots.size):
        s = slots[i]
        if state[s] == ON and books[key[s] & BOOK_MASK] and is_listed[s] == 0 and seen[s] <= time:
            out[n] = s
            n += 1
    return n


@kernel
def _judge(
    slots: Ints, new_reason: Bytes, new_rejected: Bytes, new_not_reference: Bytes, new_doubt: Bytes, reason: Bytes,
    rejected: Bytes, not_reference: Bytes, doubt: Bytes, pending: Bytes, changed_slots: Ints, old_rejected: Bytes,
) -> int:  # fmt: skip
    """Store verdicts, and mark rows that have another one; list rows whose rejection changed. Returns their number.

    - `new_reason`, `new_rejected`, `new_not_reference`, `new_doubt`: the verdicts of these rows; the last two may be
      empty
    - `reason`, `rejected`, `not_reference`, `doubt` (per slot): the stored ones
    - `changed_slots`, `old_rejected`: the rows and their former `rejected`, to write
    """
    n = 0
    for i in range(slots.size):
        s = slots[i]
        is_other = reason[s] != new_reason[i]
        if i < new_not_reference.size:
            is_other |= not_reference[s] != new_not_reference[i] or doubt[s] != new_doubt[i]
            not_reference[s], doubt[s] = new_not_reference[i], new_doubt[i]
        if is_other:
            pending[s] |= np.uint8(JUDGED)
        if rejected[s] != new_rejected[i]:
            changed_slots[n], old_rejected[n] = s, rejected[s]
            n += 1
        reason[s], rejected[s] = new_reason[i], new_rejected[i]
    return n


@kernel
def _until(
    partitions: Longs, ladder_partition: Ints, markets: Longs, segments: Longs, rows: Longs, seen: Longs,
    reason: Bytes, gap: Int, until: Longs,
) -> None:  # fmt: skip
    """Per partition: the oldest time of its accepted prices plus the gap; `EARLIEST` if they are further apart.

    - `partitions` (per partition of the search): the partition
    - `ladder_partition` (per ladder): its place among these
    - `markets`, `segments`, `rows`: as in `Groups`; here `seen` and `reason` are per row
    - `gap`: gap allowed between the times of legs, microseconds
    - `until` (int64 per partition): to write
    """
    at = 0
    for u in range(partitions.size):
        earliest, latest = np.int64(LATEST), np.int64(EARLIEST)
        while at < ladder_partition.size and ladder_partition[at] == u:
            for i in range(rows[segments[markets[at]]], rows[segments[markets[at + 1]]]):
                if reason[i] == ACCEPTED:
                    earliest = min(earliest, seen[i])
                    latest = max(latest, seen[i])
            at += 1
        if latest < earliest:
            until[partitions[u]] = LATEST
        elif latest - earliest > gap:
            until[partitions[u]] = EARLIEST
        else:
            until[partitions[u]] = earliest + gap


class Board:
    """Prices, names, partitions and events; written by one thread."""

    def __init__(self, off: frozenset[int] = frozenset(), limits: catalog.Thresholds | None = None) -> None:
        self.off = off  # codes of disabled guards
        self.limits = limits or catalog.thresholds()
        self.names = Names(off)
        self.momentum = Memory()
        self.rows = Rows()
        self.partitions = Partitions()
        self.number = 0  # of completed steps
        self.now = int(NO_TIME)
        self.moment = int(NO_TIME)  # `now` in whole seconds, at which ages are judged
        self.notices = EventNotices()
        self.rejected: dict[str, int] = {}
        self.tidy_at = _FEW  # number of terms from which on those without rows are looked for
        self._rejudged: list[Ints] = []  # rows whose rejection changed since the last completed step
        self._reach = np.empty(0, np.uint8)
        self._undo: Undo | None = None  # while a batch can be undone

    # ---- batches ----

    def apply(self, batch: Batch) -> AppliedBatch:
        """Apply a batch in a fixed order: names, quotes, removals, snapshots, events, time.

        If anything fails, the board is unchanged.
        """
        facts = {"now": self.now, "moment": self.moment, "notices": copy.copy(self.notices), "rejected": self.rejected}
        self._undo = Undo(self.rows, batch.quoted.key, facts, len(self._rejudged))
        try:
            return self._apply(batch, self._undo.slots.size)
        except BaseException:
            self.undo()
            raise

    def repeat(self, batch: Batch) -> AppliedBatch:
        """Apply a batch that another board with the same content has applied; it cannot be undone."""
        return self._apply(batch, int((self.rows.find(batch.quoted.key) >= 0).sum()))

    def undo(self) -> None:
        """Undo the last batch; slow, and meant for failures after it was applied."""
        past = self._undo
        if past is None:
            return
        past.restore(self.rows)
        del self._rejudged[past.rejudged :]
        for name, value in past.facts.items():
            setattr(self, name, value)
        self.mend()
        self.rebuild()
        self._undo = None

    @property
    def pending(self) -> bool:
        """Whether a batch is applied that may still be undone."""
        return self._undo is not None

    def keep(self) -> None:
        """Make the last batch permanent."""
        self._undo = None
        self._rejudged.clear()

    def mend(self) -> None:
        """Repair names if a change of them was interrupted; codes of terms do not change."""
        if not self.names.whole:
            self.names = self.names.renewed(np.arange(self.names.complete_terms))
            self.rebuild()

    def rebuild(self) -> None:
        """Rebuild everything derived from the columns: tables, partitions, counts. All partitions are searched anew."""
        rows, names = self.rows, self.names
        rows.index()
        held = np.flatnonzero(rows.state[: rows.top] != FREE).astype(np.int32)
        rows.member[:] = 0
        rows.member[held] = 1
        keys = rows.key[self.on()]
        term = keys >> BOOK_BITS
        names.events.pairs.recount(term)
        names.events.leagues.recount(term)
        disputed = np.zeros(len(names.events.values), bool)
        disputed[names.events.disputed(names.events.contested)] = True
        names.settle(names.events.contested.tolist(), keys[disputed[names.terms.event.values[term]]])
        rows.partition[held] = names.terms.partitions.values[rows.key[held] >> BOOK_BITS, rows.flags[held] & LIVE]
        self.partitions = Partitions()
        self.partitions.count(names.partitions.size)
        self.partitions.enrol(held, rows.partition)
        self.search_again()

    def search_again(self) -> None:
        """Have everything searched again."""
        self.rows.pending[:] = REPRICED
        self.partitions.loosen(np.arange(self.partitions.dirty.size))

    def _apply(self, batch: Batch, known: int) -> AppliedBatch:
        """Apply a batch in which so many quotes are for rows that exist."""
        names, rows = self.names, self.rows
        for book in batch.books:
            names.books.code(book)
        names.learn(batch.raw_labels)
        self.partitions.count(names.partitions.size)
        quoted = batch.quoted
        slots, what = self._quotes(quoted, batch.now, known)
        member = (what & MEMBER) != 0
        what &= np.uint8(255 - MEMBER)
        for at, link in self._texts(batch, slots, what):
            if self._link(int(slots[at]), link):
                what[at] |= STATUS
                rows.moved[slots[at]] = batch.now
        affected, again = (slots[which].astype(np.intp) for which in ((what & MOVED) != 0, what == SEEN))
        rows.pending[affected] = REPRICED  # even if only what is shown changed: it is searched
        self._enrol(slots, what)
        schedule(rows, self.partitions, again, affected, self.limits)
        removed = self._removals(batch, slots)
        self._drop(removed, batch.now)
        if batch.events:
            self.notices.take(batch.events, batch.now)
        left = self._time(batch.now)
        # A duplicate's time may decide which of two equal prices is used.
        partition = rows.partition[again]
        moves = ((rows.flags[again] & LIVE) != 0) | _AGED[rows.rejected[again]] | (rows.doubt[again] != 0)
        again = again[moves | (rows.seen[again] > self.partitions.until[partition])]
        rows.pending[again] |= np.uint8(TIMED)
        for some in (affected, again):
            self.partitions.dirty[rows.partition[some]] |= np.uint8(DIRTY)
        self.partitions.loosen(
            rows.partition[np.concatenate((slots[member | ((what & (NEW | LIVENESS)) != 0)], removed))]
        )
        new, removed = slots[(what & NEW) != 0], np.concatenate((removed, left))
        if self._undo is not None:
            self._undo.new = new
        regrouped = self._settle(new, removed)
        late, unknown = int((what == LATE).sum()), int((what == UNKNOWN).sum())
        if batch.rejected:
            self._refuse(batch.rejected)
        if unknown:
            self._refuse({"bad_price": unknown})
        return AppliedBatch(slots, what, removed, late, unknown, regrouped)

    def _quotes(self, quoted: CodedQuotes, now: int, known: int) -> tuple[Ints, Bytes]:
        rows, limits = self.rows, self.limits
        n = quoted.key.size
        slots, what = np.empty(n, np.int32), np.zeros(n, np.uint8)
        if not n:
            return slots, what
        rows.room_for(n - known)
        order = None
        if n >= _MANY:
            # Rows of one partition get adjacent slots; quotes for one row keep their order.
            order = np.argsort(self.names.terms.partitions.values[quoted.key >> BOOK_BITS, 0], kind="stable")
            quoted = CodedQuotes._make(column[order] for column in quoted)
        term, book = quoted.key >> BOOK_BITS, quoted.key & BOOK_MASK
        ids = row_ids(self.names.terms.id.values[term], self.names.books.hash.values[book])
        flapping = FlapLimits(
            limits.flap_away, limits.flap_back, int(limits.flap_window_s), limits.flap_observations, limits.flap_agree,
            limits.flap_returns_live,
        )  # fmt: skip
        done = 0
        while done < n:
            done, rows.top, rows.spares, entered = _apply(
                done, quoted, ids, now, rows.quoted, rows.history, rows.tables, rows.spares, rows.top, flapping,
                slots, what,
            )  # fmt: skip
            rows.entries += entered
            if done < n:
                rows.levels = rows.levels.wider()
        if order is not None:
            place = np.empty_like(order)
            place[order] = np.arange(n)
            slots, what = slots[place], what[place]
        return slots, what

    def _texts(self, batch: Batch, slots: Ints, what: Bytes) -> Iterator[tuple[int, str | None]]:
        """The own texts of the rows of a batch, by quote, while they are stored.

        A quote without texts leaves those of its row, but levels and fees are of the price that they came with.
        """
        rows, flags = self.rows, batch.quoted.flags
        if batch.links.count(None) == len(batch.links) and not rows.own[slots[slots >= 0]].any():
            return
        known = rows.links
        for at in np.flatnonzero(what & SEEN).tolist():
            link, slot = batch.links[at], slots.item(at)
            if link is not None:
                if slot >= len(known) or known[slot] != link:
                    yield at, link
            elif rows.own[slot] and not flags[at] & NO_PRICE:
                yield at, without_depth(known[slot])

    def _link(self, slot: int, link: str | None) -> bool:
        """Store a row's own texts. Returns True if they changed."""
        links = self.rows.links
        known = links[slot] if slot < len(links) else None
        if known == link:
            return False
        if self._undo is not None:
            self._undo.links.setdefault(slot, known)
        self.rows.link(slot, link)
        return True

    def _enrol(self, slots: Ints, what: Bytes) -> None:
        """Move rows that are new, or whose live flag changed, to their partitions."""
        moved = distinct(slots[(what & (NEW | LIVENESS)) != 0])
        if moved.size:
            self._regroup(moved)

    def _regroup(self, moved: Ints) -> bool:
        """Move rows to the partitions that they belong to. Returns True if any left another one."""
        rows, names = self.rows, self.names
        partition = names.terms.partitions.values[rows.key[moved] >> BOOK_BITS, rows.flags[moved] & LIVE]
        member = rows.member[moved] != 0
        other = member & (rows.partition[moved] != partition)
        if other.any():
            self.partitions.loosen(rows.partition[moved[other]])
            self.partitions.leave(moved[other], rows.partition)
        enter = ~member | other
        rows.partition[moved[enter]] = partition[enter]
        rows.member[moved[enter]] = 1
        self.partitions.enrol(moved[enter], rows.partition)
        return bool(other.any())

    def _removals(self, batch: Batch, slots: Ints) -> Ints:
        """Rows to remove: those named, and those missing from a complete snapshot."""
        rows, names = self.rows, self.names
        out: list[Ints] = []
        if batch.removed.size:
            named = rows.find_ids(batch.removed)
            named = named[named >= 0]
            out.append(named[rows.state[named] == ON])
        if batch.complete:
            listed = np.zeros(rows.top, np.uint8)
            listed[slots[slots >= 0]] = 1
            everything = np.arange(rows.top, dtype=np.int32)
            missing = np.empty(rows.top, np.int32)
            complete: dict[str | None, list[int]] = {}
            for book, event in batch.complete:
                code = names.books.find(book)
                if code is not None:
                    complete.setdefault(event, []).append(code)
            books = np.zeros(len(names.books.values), np.uint8)
            for event, codes in complete.items():  # once for all books of an event
                among = everything
                if event is not None:
                    if event not in names.events.codes:
                        continue
                    partitions = np.array(names.partitions.of_event[names.events.codes[event]], np.int64)
                    among = self.partitions.slots_of(partitions)
                books[codes] = 1
                n = _unlisted(among, rows.key, rows.state, rows.seen, books, listed, batch.now, missing)
                books[codes] = 0
                out.append(missing[:n].copy())
        return np.unique(np.concatenate(out)).astype(np.int32) if out else np.empty(0, np.int32)

    def _drop(self, removed: Ints, now: int) -> None:
        rows = self.rows
        if self._undo is not None:
            self._undo.remember_lost(rows, removed)
        rows.state[removed] = REMOVED
        rows.moved[removed] = now
        self.partitions.due_at[rows.partition[removed]] = NO_TIME

    def _settle(self, new: Ints, removed: Ints) -> bool:
        """Count what rows say of their events, and decide again about events on which they disagree.

        Returns True if rows moved to other partitions.
        """
        names, rows = self.names, self.rows
        came, went = rows.key[new] >> BOOK_BITS, rows.key[removed] >> BOOK_BITS
        contested = np.concatenate((
            names.events.pairs.count(came, went), names.events.leagues.count(came, went),
        ))  # fmt: skip
        if not contested.size:
            return False
        regrouped, contested = False, distinct(contested)
        disputed = [
            partition
            for event in names.events.disputed(contested).tolist()
            for partition in names.partitions.of_event[event]
        ]
        slots = self.partitions.slots_of(np.array(disputed, np.int64))
        for event in names.settle(contested.tolist(), rows.key[slots[rows.state[slots] == ON]]):
            self.partitions.count(names.partitions.size)
            partitions = np.array(names.partitions.of_event[event], np.int64)
            self.partitions.loosen(partitions)
            self.partitions.due_at[partitions] = NO_TIME
            slots = self.partitions.slots_of(partitions)
            rows.pending[slots] = REPRICED  # the teams, sport or league of their results may be others
            regrouped |= self._regroup(slots)
        return regrouped

    def _refuse(self, counts: Mapping[str, int]) -> None:
        """Count rejected rows."""
        self.rejected = {name: self.rejected.get(name, 0) + counts.get(name, 0) for name in {**self.rejected, **counts}}

    # ---- time ----

    def watch_gaps(self, some: PartitionColumns, reason: Bytes) -> None:
        """Set, per partition, until when prices may be seen again without any effect on the gaps between them.

        A later time may move two prices too far apart for one opportunity, or bring an older one close enough.
        """
        g = some.groups
        gap = round(self.limits.stale_prematch_gap_s * SECOND)
        _until(
            some.partitions,
            some.ladder_partition,
            g.markets,
            g.segments,
            g.rows,
            g.seen,
            reason,
            gap,
            self.partitions.until,
        )

    def _time(self, now: int) -> Ints:
        """Advance the time; return the rows that it removes, once in every second."""
        moment = now - now % SECOND
        self.now = now
        if moment <= self.moment:
            return np.empty(0, np.int32)
        rows, names, limits = self.rows, self.names, self.limits
        since = self.moment if self.moment != NO_TIME else moment
        old, freed = age(rows, self.partitions, names.partitions.size, since, moment, limits)
        self.moment = moment
        left = distinct(np.concatenate((old, self.notices.ended(rows, names, moment, limits))))
        self._drop(left, now)
        self.partitions.loosen(rows.partition[left])
        self._forget(freed)
        return left

    def _forget(self, slots: Ints) -> None:
        """Free the slots of rows that were removed long ago."""
        if slots.size:
            rows, links = self.rows, self.rows.links
            if self._undo is not None:
                self._undo.remember_lost(rows, slots)
                self._undo.links.update({s: links[s] for s in slots.tolist() if s < len(links)})
            self.partitions.leave(slots, self.rows.partition)
            rows.member[slots] = 0
            rows.release(slots)

    def compact(self) -> bool:
        """Drop names without rows once they are the majority. Returns True if codes have changed."""
        names, rows = self.names, self.rows
        if len(names.terms.raw_labels) < self.tidy_at:
            return False
        held = np.flatnonzero(rows.state[: rows.top] != FREE)
        used = distinct(rows.key[held] >> BOOK_BITS)
        self.tidy_at = max(_FEW, 2 * used.size)
        if len(names.terms.raw_labels) < self.tidy_at:
            return False
        self.renumber()
        return True

    def renumber(self) -> None:
        """Drop names without rows; codes of terms change."""
        names, rows = self.names, self.rows
        held = np.flatnonzero(rows.state[: rows.top] != FREE)
        used, of = np.unique(rows.key[held] >> BOOK_BITS, return_inverse=True)
        dirty = self.partitions.dirty[rows.partition[held]]
        fresh = names.renewed(used)
        self.notices.forget(fresh, self.now)
        rows.key[held] = of << BOOK_BITS | rows.key[held] & BOOK_MASK
        self.names = fresh
        self.rebuild()
        self.partitions.dirty[:] = 0
        self.partitions.loosen(rows.partition[held[dirty != 0]])

    def judge(self, slots: Ints, guarded: Verdicts, verdicts: Bytes, rejected: Bytes) -> None:
        """Store the guards' verdicts on some rows; the first ones are those of `guarded`."""
        rows, other, before = self.rows, np.full(slots.size, NONE, np.int32), np.empty(slots.size, np.uint8)
        past = [other, before, None]  # remembered first: an interruption must not find verdicts that are new already
        if self._undo is not None:
            self._undo.verdicts.append(past)
        n = _judge(
            slots, verdicts, rejected, guarded.not_reference, guarded.doubt,
            rows.reason, rows.rejected, rows.not_reference, rows.doubt, rows.pending, other, before,
        )  # fmt: skip
        other = other[:n].copy()
        past[:] = other, before[:n].copy(), rows.judged[other]
        if n:
            other = other[rows.state[other] == ON]
            rows.judged[other] = self.now
            self._rejudged.append(other)

    def rejudged(self) -> Ints:
        """Slots of rows that are rejected, accepted again, or rejected for another reason, since the previous step."""
        if not self._rejudged:
            return np.empty(0, np.int32)
        slots = distinct(np.concatenate(self._rejudged))
        return cast(Ints, slots[self.rows.state[slots] == ON])

    # ---- reading ----

    def verdicts(self, slots: Ints) -> Verdicts:
        """The verdicts stored on some rows."""
        rows, nothing = self.rows, np.full(slots.size, np.nan)
        return Verdicts(
            rows.reason[slots], nothing, rows.not_reference[slots], rows.doubt[slots], self.moment, self.limits
        )

    @property
    def lists(self) -> Lists:
        """The rows of each partition."""
        held, codes = self.partitions, self.names.partitions
        return Lists(held.start, held.size, held.pool, codes.event.values, codes.live.values)

    def gather(self, partitions: Longs) -> PartitionColumns:
        """Some partitions sorted as a board of their own."""
        rows, names = self.rows, self.names
        return gather(
            rows.prices,
            TermColumns(
                names.terms.place.values,
                names.terms.tie.values,
                names.books.rank,
                names.market_names.rank,
                names.tables.traits.outcomes,
            ),
            names.tables.equivalents,
            self.lists,
            partitions,
            mismatch=CODES["price_mismatch"] not in self.off,
            agree=self.limits.flap_agree,
        )

    def estimated(
        self, some: PartitionColumns, reason: Bytes, slots: Ints, table: catalog.FairTable, voting: Bytes | None = None,
        hashes: Hashes | None = None,
    ) -> tuple[Estimated, LadderSamples]:  # fmt: skip
        """Input of the estimator from some judged partitions, and the momentum to store.

        `voting` selects ladders (None: all); `hashes` are those of `Names.hashes`, if they are there already.
        """
        g, names = some.groups, self.names
        of = names.tables.estimator(table)
        minute = minutes(names.events.hash.values[g.event], self.moment, table)
        sport = of.lines.sport[g.event]
        times = Times(self.rows.changed[slots], starts(g, some.start, reason, voting), minute)
        keys = (names.hashes(g) if hashes is None else hashes).ladder
        made: list[LadderSamples] = []

        def momentum(logits: BookLogits) -> Floats:
            sampled = self.momentum.refresh(
                keys, g, logits, minute, times.start, of.lines.slope[g.kind, sport], of.lines.reach[g.kind, sport],
                names.tables.traits.provider, of.books, table, voting,
            )  # fmt: skip
            made.append(sampled)
            return sampled.momentum

        board = close_input(of, g, names.tables.traits, reason, times, momentum, voting)
        return board, made[0]

    def due(self, before: int, table: catalog.FairTable) -> Bytes:
        """Mark partitions dirty whose event began its own minute since a time. Returns them as flags."""
        partitions = self.names.partitions.size
        if before in (NO_TIME, self.moment):
            return np.zeros(partitions, np.uint8)
        event = self.names.events.hash.values[self.names.partitions.event.values]
        began = minutes(event, self.moment, table) != minutes(event, before, table)
        due: Bytes = (began & (self.partitions.size[:partitions] > 0)).view(np.uint8)
        self.partitions.dirty[:partitions] |= due
        return due

    def prepare_reach(self) -> None:
        """Allocate for `reached`."""
        if self._reach.size < self.rows.key.size:
            self._reach = np.full(self.rows.key.size, ELSEWHERE, np.uint8)

    @contextmanager
    def reached(self, some: PartitionColumns, scope: Scope) -> Iterator[Bytes]:
        """Within a with statement: by slot, the scopes that rows of some partitions are searched in, as bits."""
        self.prepare_reach()
        try:
            reach(some, scope, self._reach)
            yield self._reach
        finally:
            self._reach[some.groups.row] = ELSEWHERE

    def facts(self, slots: Ints) -> Facts:
        """The current facts of some distinct rows."""
        return Facts.from_slots(self.rows, self.names, slots, self.limits.flap_agree)

    def table(self, slots: Ints, names: Sequence[str]) -> pl.DataFrame:
        """Some columns of `ODDS_SCHEMA` of some rows, in their order: those of `LABELS`, the book and the start."""
        rows, known = self.rows, self.names
        key = rows.key[slots]
        terms, of = np.unique(key >> BOOK_BITS, return_inverse=True)
        labels = [known.terms.raw_labels[term] for term in terms.tolist()]
        columns = dict[str, pl.Series]()
        for name in names:
            if name == "sportsbook":
                columns[name] = pl.Series(known.books.values, dtype=pl.String)[key & BOOK_MASK]
            elif name == "event_start_time":
                columns[name] = moments_of(rows.start[slots])
            else:
                at = LABELS[name]
                columns[name] = pl.Series([label[at] for label in labels], dtype=ODDS_SCHEMA[name])[of]
        return pl.DataFrame(columns)

    def past(self) -> Past:
        """What rows were before the batch that may still be undone."""
        assert self._undo is not None
        return self._undo.past()

    def statuses(self) -> tuple[Bytes, Longs]:
        """Status and start of every event, by code."""
        return self.notices.statuses(self.rows, self.names, self.moment, self.limits)[:2]

    def on(self) -> Ints:
        """Slots of all rows on the board."""
        return np.flatnonzero(self.rows.state[: self.rows.top] == ON).astype(np.int32)

    # ---- as a whole ----

    def content(self) -> BoardContent:
        """Everything that is not derived; it shares the board's lists and columns, which the next batch changes."""
        rows, names, notices = self.rows, self.names, self.notices
        columns = {name: getattr(rows, name)[: rows.top] for name in COLUMNS if name not in _DERIVED}
        links = {slot: link for slot, link in enumerate(rows.links) if link is not None}
        return BoardContent(
            self.now, self.moment, notices.checked, notices.latest, self.rejected, self.tidy_at, names.terms.raw_labels,
            names.books.values, rows.top, columns, rows.spare[: rows.spares], rows.levels, links,
        )  # fmt: skip

    def restore(self, content: BoardContent) -> None:
        """Take over the content of another board, whose arrays are then this one's; if it fails, nothing changes."""
        made = Board(self.off, self.limits)
        rows, names, notices = made.rows, made.names, made.notices
        for book in content.books:
            names.books.code(book)
        names.add(content.raw_labels)
        rows.room_for(content.top)
        for name, column in content.columns.items():
            getattr(rows, name)[: content.top] = column
        rows.top, rows.spare, rows.spares, rows.levels = content.top, content.spare, content.spare.size, content.levels
        for slot, link in content.links.items():
            rows.link(slot, link)
        made.now, made.moment, made.rejected, made.tidy_at = (
            content.now, content.moment, content.rejected, content.tidy_at,
        )  # fmt: skip
        notices.checked, notices.latest = content.checked, content.notices
        made.rebuild()
        vars(self).update(vars(made))
