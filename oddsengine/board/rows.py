"""Rows: the prices on the board, one slot each, in flat columns.

A price keeps its slot while it is on the board and while its removal is remembered; then the slot is reused. Prices are
looked up by *key* (the code of the term times 2^16, plus the code of the book) in a hash table with open addressing.
`_apply` applies quotes in order and returns the effect of each; nothing else writes a price. Each row has a short
history of the prices seen (`flap`), which sets the flag `FLAP`.

Arguments of the kernels:

- `key`, `ids`, `state` (per slot): the columns of `Rows`; `key` is also that of ids
- `slot`, `slots`: the row, or rows
- `table` (int32, 2^k places): hash table: a slot, or `NONE` where free
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import kernel
from oddsengine.board.flap import SECONDS, FlapLimits, Levels, RowHistory, is_full, observe
from oddsengine.board.row_depth import Depth
from oddsengine.board.row_links import depth_columns
from oddsengine.columns import NO_TIME, NONE, SECOND, Bytes, Floats, Int, Ints, Longs, Words, dtype_of
from oddsengine.identity.groups import mix
from oddsengine.identity.layout import FLAP, FREE, LIVE, MISMATCH, ON, REMOVED, SUSPENDED, PriceColumns
from oddsengine.pricing.commission import PriceDepth

REJECTED = 32  # by the node that the quote comes from
FLAGS_OF_QUOTE = LIVE | SUSPENDED | MISMATCH | REJECTED
_NOT_FLAP, _NOT_OF_QUOTE = 255 ^ FLAP, 255 ^ FLAGS_OF_QUOTE  # not ~FLAP: numpy has no negative unsigned bytes
NO_PRICE = 16  # quotes only: suspended without a price

# Effects of a quote, combined as bits. STATUS: suspended, reopened, start or flap changed, or anything that is only
# displayed, such as the American price as given or the row's own texts. MEMBER: its market loses or regains it.
SEEN, PRICE, LIVENESS, STATUS, NEW, LATE, UNKNOWN, MEMBER = 1, 2, 4, 8, 16, 32, 64, 128
MOVED = PRICE | LIVENESS | STATUS | NEW


class QuotedColumns(NamedTuple):
    """The columns of `Rows` that quotes change, by slot, without those of the history; times in microseconds."""

    key: Longs  # term << 16, book; that of a row stays
    id: Words  # likewise
    odds: Floats
    american: Floats  # as given; nan if it is derived from `odds`
    seen: Longs
    changed: Longs  # last change of the price, `NO_TIME` if unknown
    start: Longs  # of the event, `NO_TIME` if unknown
    moved: Longs  # when the row last changed on the board or was removed
    renewed: Longs  # when its last quote was applied
    state: Bytes
    flags: Bytes


class SlotTables(NamedTuple):
    """Where rows are, and where there is room."""

    by_key: Ints  # 2^k places: a slot, or `NONE` where free
    by_id: Ints  # likewise
    spare: Ints  # free slots


class Rows:
    """The columns, and hash tables of rows by key and by id. Only `Board` writes to them."""

    key: Longs  # this and the next ten: see `QuotedColumns`
    id: Words
    odds: Floats
    american: Floats
    seen: Longs
    changed: Longs
    start: Longs
    moved: Longs
    renewed: Longs
    state: Bytes
    flags: Bytes
    partition: Ints
    member: Bytes  # 1: in that partition's list
    reason: Bytes  # code of identity or of the guard that rejected it last, 0 if none did
    rejected: Bytes  # why it cannot be bet; unlike `reason`, 0 for markets that are only not compared
    judged: Longs  # when `rejected` last changed
    not_reference: Bytes
    doubt: Bytes
    pending: Bytes  # why its market has to be searched again, see `changed_markets`; 0 if it has not
    close: Floats  # estimated closing probability of its outcome then; see `pricing.close.remember`
    level: npt.NDArray[np.uint16]  # this and the next six: see `flap.RowHistory`
    level_time: npt.NDArray[np.uint16]
    level_observation: Bytes
    observations: Bytes
    same: Bytes
    depth: Bytes
    record: Ints
    own: Bytes  # which of its own texts are calculated with, see `row_depth`

    def __init__(self, room: int = 1024) -> None:
        for name, dtype in COLUMNS.items():
            setattr(self, name, np.zeros(room, dtype))
        self.levels = Levels.none()
        self.deep = Depth()
        self.links: list[str | None] = []
        self.top = 0  # highest slot ever used, plus 1
        self.spare = np.empty(0, np.int32)  # free slots
        self.spares = 0
        self.by_key = np.full(2048, -1, np.int32)
        self.by_id = np.full(2048, -1, np.int32)
        self.entries = 0  # used places of `by_key`, including those of freed rows

    def room_for(self, more: int) -> None:
        """Allocate so that `more` rows can be added."""
        need = self.top + more
        if need > self.key.size:
            size = max(need, self.key.size + self.key.size // 4)
            for name, dtype in COLUMNS.items():
                old = getattr(self, name)
                new = np.empty(size, dtype)
                new[: old.size] = old
                new[old.size :] = 0
                setattr(self, name, new)
        if (self.entries + more) * 3 > self.by_key.size * 2:
            self.index(more)

    @property
    def quoted(self) -> QuotedColumns:
        """The columns that quotes change."""
        return QuotedColumns(
            self.key, self.id, self.odds, self.american, self.seen, self.changed, self.start, self.moved, self.renewed,
            self.state, self.flags,
        )  # fmt: skip

    @property
    def history(self) -> RowHistory:
        """The latest prices of each row."""
        return RowHistory(
            self.level, self.level_time, self.level_observation, self.observations, self.same, self.depth, self.record,
            self.levels,
        )  # fmt: skip

    @property
    def tables(self) -> SlotTables:
        """Where rows are, and where there is room."""
        return SlotTables(self.by_key, self.by_id, self.spare)

    @property
    def prices(self) -> PriceColumns:
        """The columns that are sorted."""
        return PriceColumns(self.key, self.odds, self.seen, self.start, self.state, self.flags, self.same)

    def index(self, more: int = 0) -> None:
        """Rebuild both tables from the columns."""
        taken = np.flatnonzero(self.state[: self.top] != FREE).astype(np.int32)
        size = 2048
        while size * 2 < 3 * (taken.size + more):
            size *= 2
        self.by_key = np.full(size, -1, np.int32)
        self.by_id = np.full(size, -1, np.int32)
        _fill(taken, self.key, self.by_key)
        _fill(taken, self.id.view(np.int64), self.by_id)
        self.entries = taken.size

    def find(self, keys: Longs) -> Ints:
        """Slots of some keys, -1 for a key without one."""
        out = np.empty(keys.size, np.int32)
        _find(keys, self.key, self.state, self.by_key, out)
        return out

    def find_ids(self, ids: Words) -> Ints:
        """Slots of some ids, -1 for an id without one."""
        out = np.empty(ids.size, np.int32)
        _find(ids.view(np.int64), self.id.view(np.int64), self.state, self.by_id, out)
        return out

    def links_of(self, slots: Ints) -> list[str | None]:
        """The own texts of some rows; empty if no row on the board has any."""
        links, n = self.links, len(self.links)
        return [links[s] if s < n else None for s in slots.tolist()] if links else []

    def link(self, slot: int, link: str | None) -> None:
        """Set the own texts of a row."""
        links = self.links
        if slot >= len(links):
            links.extend([None] * (slot + 1 - len(links)))
        links[slot] = link
        self.own[slot] = self.deep.put(slot, link)

    def own_columns(self) -> tuple[str, ...]:
        """Those of the columns `DEPTH_SCHEMA` that any row on the board has."""
        if self.deep.is_empty:
            return ()
        return depth_columns(int(np.bitwise_or.reduce(self.own[: self.top][self.state[: self.top] == ON])))

    def price_depth(self, slots: Ints, *, levels: bool) -> PriceDepth | None:
        """Fees, and levels if asked for, of some rows; None if none of them has any."""
        return None if self.deep.is_empty else self.deep.take(slots, self.own[slots], levels=levels)

    def release(self, slots: Ints) -> None:
        """Free the slots of removed rows."""
        if not slots.size:
            return
        self.state[slots] = FREE
        self.levels.release(self.record[slots])
        for slot in slots.tolist() if self.links else ():
            if slot < len(self.links):
                self.link(slot, None)
        kept = self.spare[: self.spares]
        self.spare = np.concatenate((kept, slots.astype(np.int32)))
        self.spares = self.spare.size
        # Freed rows stay in both tables, as places that match nothing, until the tables are rebuilt.


COLUMNS = {name: dtype_of(column) for name, column in Rows.__annotations__.items()}
"""Dtypes of the columns of `Rows`."""
QUOTED = (*QuotedColumns._fields[2:], *RowHistory._fields[:-1])
"""The columns of a row that quotes for it change; the others are derived, or belong to it for good."""


class CodedQuotes(NamedTuple):
    """A batch of quotes as codes, ready for `apply`; this is what a tape records."""

    key: Longs
    odds: Floats
    american: Floats
    seen: Longs
    changed: Longs  # the source's own time, or NO_TIME
    start: Longs
    flags: Bytes


def row_ids(terms: Words, books: Words) -> Words:
    """Ids of rows from the hashes of their terms (event, market, subject, side, line) and books."""
    return mix(terms, books)


@kernel
def _place(key: Int, size: Int) -> Int:
    """Where the probe for a key begins in a table of 2^k places.

    `size` is the number of places.
    """
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(h >> np.uint64(24)) & (size - 1)


@kernel
def _fill(slots: Ints, key: Longs, table: Ints) -> None:
    """Insert slots into an empty table."""
    for i in range(slots.size):
        at = _place(key[slots[i]], table.size)
        while table[at] >= 0:
            at = (at + 1) & (table.size - 1)
        table[at] = slots[i]


@kernel
def _seek(wanted_key: Int, key: Longs, state: Bytes, table: Ints) -> Int:
    """Slot of a key, `NONE` if there is none. Skips places of freed rows and of slots reused for another key.

    `wanted_key` is the key.
    """
    at = _place(wanted_key, table.size)
    while table[at] != NONE:
        slot = table[at]
        if key[slot] == wanted_key and state[slot] != FREE:
            return np.int32(slot)
        at = (at + 1) & (table.size - 1)
    return np.int32(NONE)


@kernel
def _find(wanted_keys: Longs, key: Longs, state: Bytes, table: Ints, out: Ints) -> None:
    """Slots of keys, `NONE` for a key without one.

    `wanted_keys` are the keys; `out` is written.
    """
    for i in range(wanted_keys.size):
        out[i] = _seek(wanted_keys[i], key, state, table)


@kernel
def _enter(slot: Int, slot_key: Int, table: Ints) -> None:
    """Insert one slot.

    `slot_key` is its key.
    """
    at = _place(slot_key, table.size)
    while table[at] != NONE:
        at = (at + 1) & (table.size - 1)
    table[at] = slot


@kernel
def _identify(slot: Int, first_id: Int, ids: Words, state: Bytes, table: Ints) -> None:
    """Give a row its id, or the next free one if another row has it, and insert it into the table of ids.

    `first_id` is the id to try first.
    """
    h = first_id
    while True:
        at = _place(np.int64(h), table.size)
        is_taken = False
        while table[at] != NONE:
            other_slot = table[at]
            if other_slot != slot and ids[other_slot] == h and state[other_slot] != FREE:
                is_taken = True
                break
            at = (at + 1) & (table.size - 1)
        if not is_taken:
            break
        h = (h ^ np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        h = h ^ (h >> np.uint64(29))
    ids[slot] = h
    _enter(slot, np.int64(h), table)


@kernel
def _start_row(
    slot: Int, row_key: Int, row_id: Int, time: Int, rows: QuotedColumns, history: RowHistory, tables: SlotTables
) -> None:
    """Put a row without a price into a free slot.

    `row_key` and `row_id` are its key and the id to try first, `time` is when it was seen.
    """
    rows.key[slot] = row_key
    rows.state[slot] = ON
    _enter(slot, row_key, tables.by_key)
    _identify(slot, row_id, rows.id, rows.state, tables.by_id)
    history.observations[slot] = 0
    history.same[slot] = 0
    history.depth[slot] = 0
    history.record[slot] = NONE
    rows.flags[slot] = 0
    rows.odds[slot] = 0.0
    rows.seen[slot] = time
    rows.changed[slot] = NO_TIME
    rows.start[slot] = NO_TIME


@kernel
def _apply(
    first: Int, quotes: CodedQuotes, ids: Words, now: Int, rows: QuotedColumns, history: RowHistory, tables: SlotTables,
    n_spare: int, top: int, limits: FlapLimits, out_slot: Ints, out_effect: Bytes,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Apply quotes in order, from `first` until no record of levels is free; `out_effect` gets the effect of each.

    Returns the next quote, top, free slots left and rows inserted.

    - `ids` (uint64 per quote): id of the row, if it is new
    - `now`: time of the batch, microseconds
    - `n_spare`: number of free slots
    - `top`: slots ever used
    - `out_slot` (int32 per quote): the row, or `NONE`
    - `out_effect` (uint8 per quote): bits such as `SEEN`
    """
    n_entered = 0
    for i in range(first, quotes.key.size):
        if is_full(history.levels):
            return i, top, n_spare, n_entered
        out_slot[i] = NONE
        time = now if quotes.seen[i] == NO_TIME else min(quotes.seen[i], now)
        quote_flags = quotes.flags[i] & FLAGS_OF_QUOTE
        has_no_price = (quotes.flags[i] & NO_PRICE) != 0
        slot = _seek(quotes.key[i], rows.key, rows.state, tables.by_key)
        is_new = slot < 0
        if is_new:
            if has_no_price:
                out_effect[i] = UNKNOWN
                continue
            if n_spare > 0:
                n_spare -= 1
                slot = np.int32(tables.spare[n_spare])
            else:
                slot = np.int32(top)
                top += 1
            _start_row(slot, quotes.key[i], ids[i], time, rows, history, tables)
            n_entered += 1
        elif time < rows.seen[slot] or (rows.state[slot] == REMOVED and time < rows.moved[slot]):
            out_slot[i] = slot
            out_effect[i] = LATE
            continue
        elif rows.state[slot] == REMOVED:
            if has_no_price:
                out_effect[i] = UNKNOWN
                continue
            is_new = True
            rows.state[slot] = ON
        out_slot[i] = slot
        last_time = rows.seen[slot]
        price = rows.odds[slot] if has_no_price else quotes.odds[i]
        effect = SEEN
        if is_new:
            effect |= NEW
        if price != rows.odds[slot]:
            effect |= PRICE
        if ((quote_flags ^ rows.flags[slot]) & LIVE) != 0:
            effect |= LIVENESS
            history.depth[slot] = 0  # another market: the history starts again
            rows.flags[slot] = rows.flags[slot] & _NOT_FLAP
        if ((quote_flags ^ rows.flags[slot]) & (SUSPENDED | MISMATCH | REJECTED)) != 0:
            effect |= STATUS
        if ((quote_flags ^ rows.flags[slot]) & (SUSPENDED | MISMATCH)) != 0:
            effect |= MEMBER
        if (effect & (NEW | PRICE | LIVENESS)) != 0:
            change_time = time if quotes.changed[i] == NO_TIME else min(quotes.changed[i], time)
            # It cannot have changed before what it replaces.
            rows.changed[slot] = change_time if change_time >= rows.changed[slot] else time
        is_observation = time > last_time or price != rows.odds[slot] or history.depth[slot] == 0
        rows.flags[slot] = (rows.flags[slot] & _NOT_OF_QUOTE) | quote_flags
        if not has_no_price:
            rows.odds[slot] = quotes.odds[i]
            quote_american = quotes.american[i]
            if quote_american != rows.american[slot] and not (
                np.isnan(quote_american) and np.isnan(rows.american[slot])
            ):
                effect |= STATUS
            rows.american[slot] = quote_american
        if quotes.start[i] != NO_TIME and quotes.start[i] != rows.start[slot]:
            rows.start[slot] = quotes.start[i]
            effect |= STATUS
        rows.seen[slot] = time
        rows.renewed[slot] = now
        if (quote_flags & SUSPENDED) != 0 and history.depth[slot] > 0:
            # Suspended quotes are not observations, but without them the short seconds could wrap around unnoticed.
            seconds = (time // SECOND - np.int64(history.level_time[slot])) & SECONDS
            if seconds > limits.window:
                history.depth[slot] = 0
        if is_observation and (quote_flags & SUSPENDED) == 0:
            flap = rows.flags[slot] & FLAP
            observe(slot, time, last_time, 1.0 / price, history, rows.flags, limits)
            if (rows.flags[slot] & FLAP) != flap:
                effect |= STATUS
        if (effect & MOVED) != 0:
            rows.moved[slot] = now
        out_effect[i] = effect
    return quotes.key.size, top, n_spare, n_entered
