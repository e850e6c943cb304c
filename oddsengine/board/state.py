"""The board: the latest price of every book, wording and line, and the effects of each batch.

`Board` owns the columns and is the only one that writes to them. It has prices, events and times, but no callers: which
books a caller may see, and which opportunities are shown, is decided from what `gather` returns.

Columns of the kernels:

- `key`, `seen`, `start`, `state`, `flags`, `moved`, `pending`, `unit` (per slot): as in `Rows`
- `slots`: rows
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.board.changes import ELSEWHERE, JUDGED, REPRICED, TIMED, reach
from oddsengine.board.facts import Before, Facts
from oddsengine.board.flap import Levels
from oddsengine.board.links import without_depth
from oddsengine.board.names import Names
from oddsengine.board.rows import (
    LATE,
    LIVENESS,
    MEMBER,
    MOVED,
    NEW,
    NO_PRICE,
    QUOTED,
    SEEN,
    STATUS,
    UNKNOWN,
    CodedQuotes,
    Rows,
    _apply,
    row_ids,
)
from oddsengine.board.units import DIRTY, Units
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import EARLIEST, LATEST, NO_TIME, Bytes, Floats, Ints, Longs, Words
from oddsengine.detection.ids import hash_text
from oddsengine.detection.sweep import Scope
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import distinct
from oddsengine.identity.layout import (
    BOOK_BITS,
    BOOK_MASK,
    FREE,
    GONE,
    LIVE,
    ON,
    SUSPENDED,
    Lists,
    PriceColumns,
    TermColumns,
    UnitColumns,
    gather,
)
from oddsengine.identity.wording import Wording
from oddsengine.pricing.close import BookLogits, Times, minutes, starts
from oddsengine.pricing.close import CloseInput as Estimated
from oddsengine.pricing.momentum import LadderSamples, Memory
from oddsengine.pricing.references import close_input

SECOND = 1_000_000
REMEMBERED_S = 600  # seconds for which removals are remembered
STATUSES = ("upcoming", "live", "ended", "postponed", "cancelled")
UPCOMING, IN_PLAY, ENDED, POSTPONED, CANCELLED = range(5)
_FEW = 65_536  # terms that are retained even if unused
_MANY = 4096  # larger batches are applied in order of units
_NOTICES_S = 86_400  # how long a notice about an event without prices is retained
_EVERY = 10 * SECOND  # interval between two checks of events
_SHOWN = ("state", "flags", "odds", "american", "start")  # columns of which readers want to know what was before
_AGED = np.array([CODES["stale"], CODES["duplicate_outcome"]], np.uint8)  # verdicts that a newer time may lift


class Batch(NamedTuple):
    """One batch in codes: all input of a step. The same batches in order produce the same board."""

    now: int
    wordings: list[Wording]  # new in this batch, in order of their codes
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
    gone: Ints  # removed slots
    late: int
    unknown: int  # suspended quotes without a price, for unknown rows
    regrouped: bool  # rows were assigned to other units, because an event is of another sport or league


class Undo(NamedTuple):
    """The state before a batch, as far as needed to undo it."""

    slots: Ints  # rows named in its quotes
    columns: dict[str, Any]  # of these, `QUOTED`
    levels: Levels  # their records, and all that were spare
    top: int
    spare: Ints
    lost: list[tuple[Ints, Bytes, Longs]]  # removed or forgotten rows: slot, state, moved
    verdicts: list[tuple[Ints, Bytes, Longs]]  # rows with a new verdict: slot, rejected, judged
    links: dict[int, str | None]
    facts: dict[str, Any]


class EventNotice(NamedTuple):
    """The last notice of a source about an event."""

    status: int
    when: int
    begins: int  # its start, NO_TIME if unknown


class EventStatuses(NamedTuple):
    """Status of events, by code."""

    status: Bytes
    begins: Longs
    over: Longs  # when each ended, NO_TIME if it has not
    last: Longs  # when any of its prices was last seen


@kernel
def _age(
    last_moment, moment, u_start, u_size, pool, wake, seen, start, state, flags, moved, pending, prematch_age, live_age,
    leg_age, witness_age, witness_age_live, leave_age, memory, dirty, left_slots, freed_slots,
):  # fmt: skip
    """Mark rows and units that time alone changed; list rows to remove and rows to forget. Returns both counts.

    A limit was passed if it lies in [last_moment, moment). `wake` is set to a unit's next limit, before which it is
    skipped.

    - `last_moment`, `moment`: the time of the last call, and of this one
    - `u_start`, `u_size`, `pool`, `wake`, `dirty`: the columns of `Units`
    - `prematch_age`, `live_age`, `leg_age`: ages at which a pre-match price, a live one and a live leg are too old;
      microseconds, like the next ones
    - `witness_age`, `witness_age_live`: ages at which a price is no longer a witness
    - `leave_age`: age at which a price leaves the board
    - `memory`: how long a removal is remembered
    - `left_slots`, `freed_slots`: the lists to write
    """
    n_left, n_freed = 0, 0
    limits = np.empty(4, np.int64)
    for u in range(dirty.size):
        if wake[u] >= moment:
            continue
        next_limit = np.int64(LATEST)
        for k in range(u_start[u], u_start[u] + u_size[u]):
            i = pool[k]
            if state[i] == GONE:
                if moved[i] + memory < moment:
                    freed_slots[n_freed] = i
                    n_freed += 1
                else:
                    next_limit = min(next_limit, moved[i] + memory)
                continue
            t = seen[i]
            if t + leave_age < moment:
                left_slots[n_left] = i
                n_left += 1
            if flags[i] & LIVE:
                limits[0], limits[1], limits[2], limits[3] = (
                    t + live_age,
                    t + leg_age,
                    t + 2 * live_age,
                    t + witness_age_live,
                )
            else:
                limits[0], limits[1], limits[2], limits[3] = (
                    t + prematch_age,
                    start[i],
                    t + 2 * prematch_age,
                    t + witness_age,
                )
            for limit in limits:
                if last_moment <= limit < moment:
                    pending[i] |= np.uint8(TIMED)
                    dirty[u] |= np.uint8(DIRTY)
                elif limit >= moment:
                    next_limit = min(next_limit, limit)
            if t + leave_age >= moment:
                next_limit = min(next_limit, t + leave_age)
        wake[u] = next_limit
    return n_left, n_freed


@kernel
def _watch(key, seen, start, state, flags, t_event, last_seen, last_live_seen, begins, start_seen):
    """For every event: when any of its prices, and any live one, was last seen; and the start by its newest price.

    - `t_event` (int32 per term): its event
    - `last_seen`, `last_live_seen`, `begins` (per event): to write
    - `start_seen` (int64 per event): when the price that `begins` comes from was seen
    """
    for i in range(seen.size):
        if state[i] != ON:
            continue
        e = t_event[key[i] >> BOOK_BITS]
        last_seen[e] = max(last_seen[e], seen[i])
        if start[i] != NO_TIME and (seen[i] > start_seen[e] or (seen[i] == start_seen[e] and start[i] > begins[e])):
            start_seen[e] = seen[i]
            begins[e] = start[i]
        if flags[i] & LIVE and seen[i] > last_live_seen[e]:
            last_live_seen[e] = seen[i]


@kernel
def _unlisted(slots, key, state, seen, books, is_listed, time, out):
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
    slots, new_reason, new_rejected, new_not_reference, new_doubt, reason, rejected, not_reference, doubt, pending,
    changed_slots, old_rejected,
):  # fmt: skip
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
def _until(units, ladder_unit, markets, segments, rows, seen, reason, gap, until):
    """Per unit: the oldest time of its accepted prices plus the gap; `EARLIEST` if they are further apart.

    - `units` (per unit of the search): the unit
    - `ladder_unit` (per ladder): its place among these
    - `markets`, `segments`, `rows`: as in `Groups`; here `seen` and `reason` are per row
    - `gap`: gap allowed between the times of legs, microseconds
    - `until` (int64 per unit): to write
    """
    at = 0
    for u in range(units.size):
        earliest, latest = np.int64(LATEST), np.int64(EARLIEST)
        while at < ladder_unit.size and ladder_unit[at] == u:
            for i in range(rows[segments[markets[at]]], rows[segments[markets[at + 1]]]):
                if reason[i] == ACCEPTED:
                    earliest = min(earliest, seen[i])
                    latest = max(latest, seen[i])
            at += 1
        if latest < earliest:
            until[units[u]] = LATEST
        elif latest - earliest > gap:
            until[units[u]] = EARLIEST
        else:
            until[units[u]] = earliest + gap


class Board:
    """Prices, names, units and events; written by one thread."""

    def __init__(self, off: frozenset[int] = frozenset(), limits: catalog.Thresholds | None = None) -> None:
        self.off = off  # codes of disabled guards
        self.limits = limits or catalog.thresholds()
        self.names = Names(off)
        self.momentum = Memory()
        self.rows = Rows()
        self.units = Units()
        self.number = 0  # of completed steps
        self.now = int(NO_TIME)
        self.moment = int(NO_TIME)  # `now` in whole seconds, at which ages are judged
        self._watched = int(NO_TIME)
        self._notices: dict[str, EventNotice] = {}  # by event id, including events without a price
        self.rejected: dict[str, int] = {}
        self._tidy_at = _FEW
        self._left = np.empty(0, np.int32)
        self._rejudged: list[Ints] = []  # rows whose rejection changed since the last completed step
        self._reach = np.empty(0, np.uint8)
        self._undo: Undo | None = None  # while a batch can be undone

    # ---- batches ----

    def apply(self, batch: Batch) -> AppliedBatch:
        """Apply a batch in a fixed order: names, quotes, removals, snapshots, events, time.

        If anything fails, the board is unchanged.
        """
        self._undo = self._remember(batch)
        try:
            return self._apply(batch, self._undo.slots.size)
        except BaseException:
            self.undo()
            raise

    def repeat(self, batch: Batch) -> AppliedBatch:
        """Apply a batch that another board with the same content has applied; it cannot be undone."""
        return self._apply(batch, int((self.rows.find(batch.quoted.key) >= 0).sum()))

    def _remember(self, batch: Batch) -> Undo:
        rows = self.rows
        slots = rows.find(batch.quoted.key)
        slots = slots[slots >= 0]
        columns = {name: getattr(rows, name)[slots] for name in QUOTED}
        records = rows.record[slots]
        levels = rows.levels.taken(records[records >= 0])
        facts = {name: getattr(self, name) for name in ("now", "moment", "_watched", "_notices", "rejected")}
        return Undo(slots, columns, levels, rows.top, rows.spare[: rows.spares].copy(), [], [], {}, facts)

    def undo(self) -> None:
        """Undo the last batch; slow, and meant for failures after it was applied."""
        past, rows = self._undo, self.rows
        if past is None:
            return
        for slots, state, moved in reversed(past.lost):
            rows.state[slots], rows.moved[slots] = state, moved
        for slots, rejected, judged in reversed(past.verdicts):
            rows.rejected[slots], rows.judged[slots] = rejected, judged
        del self._rejudged[len(self._rejudged) - len(past.verdicts) :]
        for slot, link in past.links.items():
            rows.link(slot, link)
        rows.state[past.top : rows.top] = FREE
        rows.state[past.spare] = FREE
        for name, column in past.columns.items():
            getattr(rows, name)[past.slots] = column
        records = rows.record[past.slots]
        rows.levels.undo(records[records >= 0], past.levels)
        rows.top, rows.spare, rows.spares = past.top, past.spare, past.spare.size
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
        """Rebuild everything derived from the columns: tables, units, counts. All units are marked for a new search."""
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
        rows.unit[held] = names.terms.units.values[rows.key[held] >> BOOK_BITS, rows.flags[held] & LIVE]
        self.units = Units()
        self.units.count(names.units.size)
        self.units.enrol(held, rows.unit)
        self.search_again()

    def search_again(self) -> None:
        """Have everything searched again."""
        self.rows.pending[:] = REPRICED
        self.units.loosen(np.arange(self.units.dirty.size))

    def _apply(self, batch: Batch, known: int) -> AppliedBatch:
        """Apply a batch in which so many quotes are for rows that exist."""
        names, rows = self.names, self.rows
        for book in batch.books:
            names.books.code(book)
        names.learn(batch.wordings)
        self.units.count(names.units.size)
        quoted = batch.quoted
        slots, what = self._quotes(quoted, batch.now, known)
        member = (what & MEMBER) != 0
        what &= np.uint8(255 - MEMBER)
        for at, link in self._texts(batch, slots, what):
            if self._link(int(slots[at]), link):
                what[at] |= STATUS
                rows.moved[slots[at]] = batch.now
        rows.pending[slots[(what & MOVED) != 0]] = REPRICED  # even if only what is shown changed: it is searched
        self._enrol(slots, what)
        self._rouse(slots, what)
        gone = self._removals(batch, slots)
        self._drop(gone, batch.now)
        self._take_notices(batch)
        left = self._left if self._time(batch.now) else gone[:0]
        touched = slots[(what & MOVED) != 0]
        again = slots[what == SEEN]
        # A duplicate's time may decide which of two equal prices is used.
        unit = rows.unit[again]
        moves = ((rows.flags[again] & LIVE) != 0) | np.isin(rows.rejected[again], _AGED) | (rows.doubt[again] != 0)
        again = again[moves | (rows.seen[again] > self.units.until[unit])]
        rows.pending[again] |= np.uint8(TIMED)
        for some in (touched, again):
            self.units.dirty[rows.unit[some]] |= np.uint8(DIRTY)
        self.units.loosen(rows.unit[np.concatenate((slots[member | ((what & (NEW | LIVENESS)) != 0)], gone))])
        regrouped = self._settle(slots[(what & NEW) != 0], np.concatenate((gone, left)))
        late, unknown = int((what == LATE).sum()), int((what == UNKNOWN).sum())
        if batch.rejected:
            self._refuse(batch.rejected)
        if unknown:
            self._refuse({"bad_price": unknown})
        return AppliedBatch(slots, what, np.concatenate((gone, left)), late, unknown, regrouped)

    def _quotes(self, quoted: CodedQuotes, now: int, known: int) -> tuple[Ints, Bytes]:
        rows, limits = self.rows, self.limits
        n = quoted.key.size
        slots, what = np.empty(n, np.int32), np.zeros(n, np.uint8)
        if not n:
            return slots, what
        rows.room_for(n - known)
        order = None
        if n >= _MANY:
            # Rows of one unit get adjacent slots; quotes for one row keep their order.
            order = np.argsort(self.names.terms.units.values[quoted.key >> BOOK_BITS, 0], kind="stable")
            quoted = CodedQuotes._make(column[order] for column in quoted)
        term, book = quoted.key >> BOOK_BITS, quoted.key & BOOK_MASK
        ids = row_ids(self.names.terms.id.values[term], self.names.books.hash.values[book])
        done = 0
        while done < n:
            done, rows.top, rows.spares, entered = _apply(
                done, *quoted, ids, now,
                rows.key, rows.id, rows.odds, rows.american, rows.seen, rows.changed, rows.start, rows.moved,
                rows.renewed, rows.state, rows.flags, rows.level, rows.level_time, rows.level_look, rows.looks,
                rows.same, rows.depth, rows.record, rows.levels, rows.by_key, rows.by_id, rows.spare, rows.spares,
                rows.top, limits.flap_away, limits.flap_back, int(limits.flap_window_s), limits.flap_looks,
                limits.flap_agree, limits.flap_returns_live, slots, what,
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

        A quote without texts leaves those of its row, but levels and charges are of the price that they came with.
        """
        rows, flags = self.rows, batch.quoted.flags
        if batch.links.count(None) == len(batch.links) and not rows.own[slots[slots >= 0]].any():
            return
        for at, link in enumerate(batch.links):
            if not what[at] & SEEN:
                continue
            if link is not None:
                yield at, link
            elif rows.own[slots[at]] and not flags[at] & NO_PRICE:
                yield at, without_depth(rows.links[slots[at]])

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
        """Move rows that are new, or whose live flag changed, to their units."""
        moved = distinct(slots[(what & (NEW | LIVENESS)) != 0])
        if moved.size:
            self._regroup(moved)

    def _regroup(self, moved: Ints) -> bool:
        """Move rows to the units that they belong to. Returns True if any left another one."""
        rows, names = self.rows, self.names
        unit = names.terms.units.values[rows.key[moved] >> BOOK_BITS, rows.flags[moved] & LIVE]
        member = rows.member[moved] != 0
        other = member & (rows.unit[moved] != unit)
        if other.any():
            self.units.loosen(rows.unit[moved[other]])
            self.units.leave(moved[other], rows.unit)
        enter = ~member | other
        rows.unit[moved[enter]] = unit[enter]
        rows.member[moved[enter]] = 1
        self.units.enrol(moved[enter], rows.unit)
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
                    units = np.array(names.units.of_event[names.events.codes[event]], np.int64)
                    among = self.units.slots_of(units)
                books[codes] = 1
                n = _unlisted(among, rows.key, rows.state, rows.seen, books, listed, batch.now, missing)
                books[codes] = 0
                out.append(missing[:n].copy())
        return np.unique(np.concatenate(out)).astype(np.int32) if out else np.empty(0, np.int32)

    def _drop(self, gone: Ints, now: int) -> None:
        rows = self.rows
        if self._undo is not None:
            self._undo.lost.append((gone, rows.state[gone], rows.moved[gone]))
        rows.state[gone] = GONE
        rows.moved[gone] = now
        self.units.wake[rows.unit[gone]] = NO_TIME

    def _settle(self, new: Ints, gone: Ints) -> bool:
        """Count what rows say of their events, and decide again about events on which they disagree.

        Returns True if rows moved to other units.
        """
        names, rows = self.names, self.rows
        came, went = rows.key[new] >> BOOK_BITS, rows.key[gone] >> BOOK_BITS
        contested = np.concatenate((
            names.events.pairs.count(came, went), names.events.leagues.count(came, went),
        ))  # fmt: skip
        if not contested.size:
            return False
        regrouped, contested = False, distinct(contested)
        disputed = [unit for event in names.events.disputed(contested).tolist() for unit in names.units.of_event[event]]
        slots = self.units.slots_of(np.array(disputed, np.int64))
        for event in names.settle(contested.tolist(), rows.key[slots[rows.state[slots] == ON]]):
            self.units.count(names.units.size)
            units = np.array(names.units.of_event[event], np.int64)
            self.units.loosen(units)
            self.units.wake[units] = NO_TIME
            slots = self.units.slots_of(units)
            rows.pending[slots] = REPRICED  # the teams, sport or league of their results may be others
            regrouped |= self._regroup(slots)
        return regrouped

    def _take_notices(self, batch: Batch) -> None:
        if not batch.events:
            return
        self._notices = dict(self._notices)  # a copy: the old one may be needed to undo the batch
        for event, status, start in batch.events:
            before = self._notices.get(event)
            begins = before.begins if start == NO_TIME and before is not None else start
            self._notices[event] = EventNotice(STATUSES.index(status), batch.now, begins)

    def _refuse(self, counts: Mapping[str, int]) -> None:
        """Count rejected rows."""
        self.rejected = {name: self.rejected.get(name, 0) + counts.get(name, 0) for name in {**self.rejected, **counts}}

    # ---- time ----

    def watch_gaps(self, some: UnitColumns, reason: Bytes) -> None:
        """Set, per unit, until when prices may be seen again without any effect on the gaps between them.

        A later time may move two prices too far apart for one opportunity, or bring an older one close enough.
        """
        g = some.groups
        gap = round(self.limits.stale_prematch_gap_s * SECOND)
        _until(some.units, some.ladder_unit, g.markets, g.segments, g.rows, g.seen, reason, gap, self.units.until)

    def _time(self, now: int) -> bool:
        """Advance the time. Returns True if a new whole second has begun."""
        moment = now - now % SECOND
        self.now = now
        if moment <= self.moment:
            return False
        rows, limits = self.rows, self.limits
        before = self.moment if self.moment != NO_TIME else moment
        left, freed = np.empty(rows.top, np.int32), np.empty(rows.top, np.int32)
        n_left, n_freed = _age(
            before, moment, self.units.start, self.units.size, self.units.pool, self.units.wake, rows.seen, rows.start,
            rows.state, rows.flags, rows.moved, rows.pending,
            round(limits.stale_prematch_s * SECOND), round(limits.stale_live_s * SECOND),
            round(limits.stale_live_leg_s * SECOND), round(limits.witness_prematch_s * SECOND),
            round(limits.witness_live_s * SECOND), round(limits.event_unseen_leave_s * SECOND),
            REMEMBERED_S * SECOND, self.units.dirty[: self.names.units.size], left, freed,
        )  # fmt: skip
        self.moment = moment
        self._left = np.sort(left[:n_left])
        if moment // _EVERY != self._watched // _EVERY:
            self._watched = moment
            self._left = np.unique(np.concatenate((self._left, self._watch())))
        self._drop(self._left, now)
        self.units.loosen(rows.unit[self._left])
        self._forget(np.sort(freed[:n_freed]))
        return True

    def _rouse(self, slots: Ints, what: Bytes) -> None:
        """Schedule units for the first limit that their new prices may pass."""
        rows, limits, wake = self.rows, self.limits, self.units.wake
        seen = slots[what == SEEN]
        live = (rows.flags[seen] & LIVE) != 0
        soonest = np.where(live, min(limits.stale_live_s, limits.stale_live_leg_s, limits.witness_live_s),
                           min(limits.stale_prematch_s, limits.witness_prematch_s))  # fmt: skip
        np.minimum.at(wake, rows.unit[seen], rows.seen[seen] + np.round(soonest * SECOND).astype(np.int64))
        wake[rows.unit[slots[(what & MOVED) != 0]]] = NO_TIME

    def _standing(self) -> EventStatuses:
        """Status of every event, from its prices and from notices of sources."""
        names, rows, limits = self.names, self.rows, self.limits
        last, last_live, begins, told = (np.full(len(names.events.values), NO_TIME) for _ in range(4))
        _watch(
            rows.key[: rows.top], rows.seen[: rows.top], rows.start, rows.state, rows.flags, names.terms.event.values,
            last, last_live, begins, told,
        )  # fmt: skip
        notices = [
            (names.events.codes[id_], notice) for id_, notice in self._notices.items() if id_ in names.events.codes
        ]
        for event, notice in notices:
            if notice.begins != NO_TIME:
                begins[event] = notice.begins
        unseen = self.moment - round(limits.event_unseen_s * SECOND)
        started = (begins != NO_TIME) & (begins < self.moment)
        status = np.where(last_live >= unseen, IN_PLAY, np.where(started & (last < unseen), ENDED, UPCOMING))
        over = np.where(status == ENDED, last + round(limits.event_unseen_s * SECOND), NO_TIME)
        for event, notice in notices:
            if notice.status in (UPCOMING, IN_PLAY):
                if status[event] != ENDED:
                    status[event] = notice.status
                continue
            if notice.status == POSTPONED and last_live[event] > notice.when:
                continue
            status[event] = notice.status
            over[event] = NO_TIME if notice.status == POSTPONED else notice.when
        return EventStatuses(status.astype(np.uint8), begins, over, last)

    def _watch(self) -> Ints:
        """Rows of events that ended a while ago and have not been quoted since."""
        names, rows, limits = self.names, self.rows, self.limits
        _, _, over, last = self._standing()
        leave = (over != NO_TIME) & (over < self.moment - round(limits.event_leave_s * SECOND)) & (last != NO_TIME)
        if not leave.any():
            return np.empty(0, np.int32)
        on = np.flatnonzero(rows.state[: rows.top] == ON).astype(np.int32)
        event = names.terms.event.values[rows.key[on] >> BOOK_BITS]
        # A price still quoted this long after the end stays: it would come back at once.
        quoted = rows.seen[on] > over[event] + round(limits.event_leave_s * SECOND)
        return cast(Ints, on[leave[event] & ~quoted])

    def _forget(self, slots: Ints) -> None:
        """Free the slots of rows that were removed long ago."""
        if slots.size:
            rows, links = self.rows, self.rows.links
            if self._undo is not None:
                self._undo.lost.append((slots, rows.state[slots], rows.moved[slots]))
                self._undo.links.update({s: links[s] for s in slots.tolist() if s < len(links)})
            self.units.leave(slots, self.rows.unit)
            rows.member[slots] = 0
            rows.release(slots)

    def tidy(self) -> bool:
        """Drop names without rows once they are the majority. Returns True if codes have changed."""
        names, rows = self.names, self.rows
        if len(names.terms.wordings) < self._tidy_at:
            return False
        held = np.flatnonzero(rows.state[: rows.top] != FREE)
        used = distinct(rows.key[held] >> BOOK_BITS)
        self._tidy_at = max(_FEW, 2 * used.size)
        if len(names.terms.wordings) < self._tidy_at:
            return False
        self.renumber()
        return True

    def renumber(self) -> None:
        """Drop names without rows; codes of terms change."""
        names, rows = self.names, self.rows
        held = np.flatnonzero(rows.state[: rows.top] != FREE)
        used, of = np.unique(rows.key[held] >> BOOK_BITS, return_inverse=True)
        dirty = self.units.dirty[rows.unit[held]]
        fresh = names.renewed(used)
        old = self.now - _NOTICES_S * SECOND
        self._notices = {
            id_: notice for id_, notice in self._notices.items() if id_ in fresh.events.codes or notice.when > old
        }
        rows.key[held] = of << BOOK_BITS | rows.key[held] & BOOK_MASK
        self.names = fresh
        self.rebuild()
        self.units.dirty[:] = 0
        self.units.loosen(rows.unit[held[dirty != 0]])

    def judge(self, slots: Ints, guarded: Verdicts, verdicts: Bytes, rejected: Bytes) -> None:
        """Store the guards' verdicts on some rows; the first ones are those of `guarded`."""
        rows, other, before = self.rows, np.empty(slots.size, np.int32), np.empty(slots.size, np.uint8)
        n = _judge(
            slots, verdicts, rejected, guarded.not_reference, guarded.doubt,
            rows.reason, rows.rejected, rows.not_reference, rows.doubt, rows.pending, other, before,
        )  # fmt: skip
        if n:
            other = other[:n].copy()
            if self._undo is not None:
                self._undo.verdicts.append((other, before[:n].copy(), rows.judged[other]))
            other = other[rows.state[other] == ON]
            rows.judged[other] = self.now
            self._rejudged.append(other)

    def rejudged(self) -> Ints:
        """Slots of rows that are rejected, accepted again, or rejected for another reason, since the previous step."""
        if not self._rejudged:
            return np.empty(0, np.int32)
        slots = np.unique(np.concatenate(self._rejudged))
        return cast(Ints, slots[self.rows.state[slots] == ON])

    def warm_up(self) -> None:
        """Run code that otherwise runs only rarely, so that it is compiled."""
        self.rows.index()
        self.units.pack(self.units.pool.size)

    # ---- reading ----

    def verdicts(self, slots: Ints) -> Verdicts:
        """The verdicts stored on some rows."""
        rows, nothing = self.rows, np.full(slots.size, np.nan)
        return Verdicts(
            rows.reason[slots], nothing, rows.not_reference[slots], rows.doubt[slots], self.moment, self.limits
        )

    def gather(self, units: Longs) -> UnitColumns:
        """Some units sorted as a board of their own."""
        rows, names, held = self.rows, self.names, self.units
        return gather(
            PriceColumns(rows.key, rows.odds, rows.seen, rows.start, rows.state, rows.flags, rows.same),
            TermColumns(
                names.terms.place.values,
                names.terms.tie.values,
                names.books.rank,
                names.market_names.rank,
                names.tables.traits.outcomes,
            ),
            names.tables.twins,
            Lists(held.start, held.size, held.pool, names.units.event.values, names.units.live.values),
            units,
            mismatch=CODES["price_mismatch"] not in self.off,
            agree=self.limits.flap_agree,
        )

    def estimated(
        self, some: UnitColumns, reason: Bytes, slots: Ints, table: catalog.FairTable, voting: Bytes | None = None
    ) -> tuple[Estimated, LadderSamples]:
        """Input of the estimator from some judged units, and the momentum to store.

        `voting` selects ladders (None: all).
        """
        g, names = some.groups, self.names
        of = names.tables.estimator(table)
        minute = minutes(names.events.hash.values[g.event], self.moment, table)
        sport = of.lines.sport[g.event]
        times = Times(self.rows.changed[slots], starts(g, some.start, reason, voting), minute)
        made: list[LadderSamples] = []

        def momentum(ballot: BookLogits) -> Floats:
            sampled = self.momentum.refresh(
                names.hashes(g).ladder, g, ballot, minute, times.start, of.lines.slope[g.kind, sport],
                of.lines.reach[g.kind, sport], names.tables.traits.feed, of.books, table, voting,
            )  # fmt: skip
            made.append(sampled)
            return sampled.momentum

        board = close_input(of, g, names.tables.traits, reason, times, momentum, voting)
        return board, made[0]

    def due(self, before: int, table: catalog.FairTable) -> Bytes:
        """Mark units dirty whose event began its own minute since a time. Returns them as flags."""
        units = self.names.units.size
        if before in (NO_TIME, self.moment):
            return np.zeros(units, np.uint8)
        event = self.names.events.hash.values[self.names.units.event.values]
        began = minutes(event, self.moment, table) != minutes(event, before, table)
        due: Bytes = (began & (self.units.size[:units] > 0)).view(np.uint8)
        self.units.dirty[:units] |= due
        return due

    def prepare_reach(self) -> None:
        """Allocate for `reached`."""
        if self._reach.size < self.rows.key.size:
            self._reach = np.full(self.rows.key.size, ELSEWHERE, np.uint8)

    @contextmanager
    def reached(self, some: UnitColumns, scope: Scope) -> Iterator[Bytes]:
        """Within a with statement: by slot, the scopes that rows of some units are searched in, bits of `changes`."""
        self.prepare_reach()
        try:
            reach(some, scope, self._reach)
            yield self._reach
        finally:
            self._reach[some.groups.row] = ELSEWHERE

    def facts(self, slots: Ints) -> Facts:
        """The current facts of some distinct rows."""
        return Facts.from_slots(self.rows, self.names, slots, self.limits.flap_agree)

    def before(self, slots: Ints, new: Ints) -> Before:
        """Some distinct rows, in order of slot, as they were before the batch that may still be undone.

        `new` are the rows that came with it.
        """
        if not slots.size:
            return Before.none()
        rows, past = self.rows, self._undo
        assert past is not None
        was = {name: getattr(rows, name)[slots] for name in _SHOWN}
        for lost, state, _ in reversed(past.lost):
            if lost.size:
                at, held = _places(slots, lost)
                was["state"][at] = state[held]
        at, held = _places(slots, past.slots)
        for name, column in was.items():
            column[at] = past.columns[name][held]
        links = rows.links_of(slots)
        if links and past.links:
            links = [past.links.get(slot, link) for slot, link in zip(slots.tolist(), links, strict=True)]
        shown = (was["state"] == ON) & ((was["flags"] & SUSPENDED) == 0)
        if new.size:
            shown &= ~np.isin(slots, new)
        return Before(shown, (was["flags"] & LIVE) != 0, was["odds"], was["american"], was["start"], links)

    def notices_hash(self) -> int:
        """Hash of the notices about events."""
        notices = sorted((id_, *notice) for id_, notice in self._notices.items())
        return hash_text(repr(notices)) if notices else 0

    def statuses(self) -> tuple[Bytes, Longs]:
        """Status and start of every event, by code."""
        return self._standing()[:2]

    def on(self) -> Ints:
        """Slots of all rows on the board."""
        return np.flatnonzero(self.rows.state[: self.rows.top] == ON).astype(np.int32)


def _places(slots: Ints, some: Ints) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """Where some slots are among distinct sorted ones, and which of them are there."""
    at = np.minimum(np.searchsorted(slots, some), slots.size - 1)
    held = slots[at] == some
    return at[held], held
