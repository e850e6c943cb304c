"""Rows: the prices on the board, one slot each, in flat columns.

A price keeps its slot while it is on the board and while its removal is remembered; then the slot is reused. Prices are
looked up by *key* (the code of the term times 2^16, plus the code of the book) in a hash table with open addressing.
`_apply` applies quotes in order and returns the effect of each; nothing else writes a price. Each row has a short
history of the prices seen (`flap`), which sets the flag `FLAP`.

Columns of the kernels:

- `key`, `ids`, `odds`, `american`, `seen`, `changed`, `start`, `moved`, `renewed`, `state`, `flags`, `level`,
  `level_time`, `level_observation`, `observations`, `same`, `depth`, `record` (per slot): the columns of `Rows`; `key`
  is also that of ids
- `slot`, `slots`: the row, or rows
- `table`, `by_key`, `by_id` (int32, 2^k places): hash tables: a slot, or `NONE` where free
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import allocating, kernel
from oddsengine.board.flap import SECONDS, Levels, full, observe
from oddsengine.board.row_depth import Depth
from oddsengine.board.row_links import depth_columns
from oddsengine.columns import NO_TIME, NONE, SECOND, Bytes, Floats, Ints, Longs, Words, dtype_of
from oddsengine.identity.groups import mix
from oddsengine.identity.layout import FLAP, FREE, LIVE, MISMATCH, ON, REMOVED, SUSPENDED
from oddsengine.pricing.commission import PriceDepth

REJECTED = 32  # by the node that the quote comes from
FLAGS_OF_QUOTE = LIVE | SUSPENDED | MISMATCH | REJECTED
_NOT_FLAP, _NOT_OF_QUOTE = 255 ^ FLAP, 255 ^ FLAGS_OF_QUOTE  # not ~FLAP: numpy has no negative unsigned bytes
NO_PRICE = 16  # quotes only: suspended without a price

# Effects of a quote, combined as bits. STATUS: suspended, reopened, start or flap changed, or anything that is only
# displayed, such as the American price as given or the row's own texts. MEMBER: its market loses or regains it.
SEEN, PRICE, LIVENESS, STATUS, NEW, LATE, UNKNOWN, MEMBER = 1, 2, 4, 8, 16, 32, 64, 128
MOVED = PRICE | LIVENESS | STATUS | NEW


class Rows:
    """The columns, and hash tables of rows by key and by id. Only `Board` writes to them."""

    key: Longs
    id: Words
    odds: Floats
    american: Floats  # as given; nan if it is derived from `odds`
    seen: Longs
    changed: Longs
    start: Longs
    moved: Longs  # when it last changed on the board or was removed
    renewed: Longs  # when its last quote was applied
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
    level: npt.NDArray[np.uint16]  # newest price level, a probability in 65535ths; see `flap`
    level_time: npt.NDArray[np.uint16]  # second at which it was last seen, modulo 2^16
    level_observation: Bytes  # number of that observation, modulo 2^8
    observations: Bytes  # number of observations, modulo 2^8
    same: Bytes  # consecutive observations of the same price, up to 255
    depth: Bytes  # levels in use
    record: Ints  # place of the earlier levels in `flap`, -1 if there are none
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
QUOTED = (
    "odds", "american", "seen", "changed", "start", "moved", "renewed", "state", "flags", "level", "level_time",
    "level_observation", "observations", "same", "depth", "record",
)  # fmt: skip
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
def _place(key, size):
    """Where the probe for a key begins in a table of 2^k places.

    `size` is the number of places.
    """
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(h >> np.uint64(24)) & (size - 1)


@kernel
def _fill(slots, key, table):
    """Insert slots into an empty table."""
    for i in range(slots.size):
        at = _place(key[slots[i]], table.size)
        while table[at] >= 0:
            at = (at + 1) & (table.size - 1)
        table[at] = slots[i]


@kernel
def _seek(wanted_key, key, state, table):
    """Slot of a key, `NONE` if there is none. Skips places of freed rows and of slots reused for another key.

    `wanted_key` is the key.
    """
    at = _place(wanted_key, table.size)
    while table[at] != NONE:
        slot = table[at]
        if key[slot] == wanted_key and state[slot] != FREE:
            return slot
        at = (at + 1) & (table.size - 1)
    return np.int32(NONE)


@kernel
def _find(wanted_keys, key, state, table, out):
    """Slots of keys, `NONE` for a key without one.

    `wanted_keys` are the keys; `out` is written.
    """
    for i in range(wanted_keys.size):
        out[i] = _seek(wanted_keys[i], key, state, table)


@kernel
def _enter(slot, slot_key, table):
    """Insert one slot.

    `slot_key` is its key.
    """
    at = _place(slot_key, table.size)
    while table[at] != NONE:
        at = (at + 1) & (table.size - 1)
    table[at] = slot


@kernel
def _identify(slot, first_id, ids, state, table):
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
@allocating
def _apply(
    first, q_key, q_odds, q_american, q_seen, q_changed, q_start, q_flags, q_id, now, key, ids, odds, american, seen,
    changed, start, moved, renewed, state, flags, level, level_time, level_observation, observations, same, depth,
    record, levels, by_key, by_id, spare, n_spare, top, away, back, window, most_observations, least_same,
    least_returns, out_slot, out_effect,
):  # fmt: skip
    """Apply quotes in order, from `first` until `levels` is full; `out_effect` gets the effect of each.

    Returns the next quote, top, free slots left and rows inserted.

    - `q_key`, `q_odds`, `q_american`, `q_seen`, `q_changed`, `q_start`, `q_flags`: the columns of `CodedQuotes`
    - `q_id` (uint64 per quote): id of the row, if it is new
    - `now`: time of the batch, microseconds
    - `levels`, `away`, `back`, `window`, `most_observations`, `least_same`, `least_returns`: as in `observe`
    - `spare` (int32), `n_spare`: free slots, and their number
    - `top`: slots ever used
    - `out_slot` (int32 per quote): the row, or `NONE`
    - `out_effect` (uint8 per quote): bits such as `SEEN`
    """
    n_entered = 0
    for i in range(first, q_key.size):
        if full(levels):
            return i, top, n_spare, n_entered
        out_slot[i] = NONE
        time = now if q_seen[i] == NO_TIME else min(q_seen[i], now)
        quote_flags = q_flags[i] & FLAGS_OF_QUOTE
        has_no_price = (q_flags[i] & NO_PRICE) != 0
        slot = _seek(q_key[i], key, state, by_key)
        is_new = slot < 0
        if is_new:
            if has_no_price:
                out_effect[i] = UNKNOWN
                continue
            if n_spare > 0:
                n_spare -= 1
                slot = spare[n_spare]
            else:
                slot = np.int32(top)
                top += 1
            key[slot] = q_key[i]
            state[slot] = ON
            _enter(slot, q_key[i], by_key)
            _identify(slot, q_id[i], ids, state, by_id)
            n_entered += 1
            observations[slot] = 0
            same[slot] = 0
            depth[slot] = 0
            record[slot] = NONE
            flags[slot] = 0
            odds[slot] = 0.0
            seen[slot] = time
            changed[slot] = NO_TIME
            start[slot] = NO_TIME
        elif time < seen[slot] or (state[slot] == REMOVED and time < moved[slot]):
            out_slot[i] = slot
            out_effect[i] = LATE
            continue
        elif state[slot] == REMOVED:
            if has_no_price:
                out_effect[i] = UNKNOWN
                continue
            is_new = True
            state[slot] = ON
        out_slot[i] = slot
        last_time = seen[slot]
        price = odds[slot] if has_no_price else q_odds[i]
        effect = SEEN
        if is_new:
            effect |= NEW
        if price != odds[slot]:
            effect |= PRICE
        if ((quote_flags ^ flags[slot]) & LIVE) != 0:
            effect |= LIVENESS
            depth[slot] = 0  # another market: the history starts again
            flags[slot] = flags[slot] & _NOT_FLAP
        if ((quote_flags ^ flags[slot]) & (SUSPENDED | MISMATCH | REJECTED)) != 0:
            effect |= STATUS
        if ((quote_flags ^ flags[slot]) & (SUSPENDED | MISMATCH)) != 0:
            effect |= MEMBER
        if (effect & (NEW | PRICE | LIVENESS)) != 0:
            change_time = time if q_changed[i] == NO_TIME else min(q_changed[i], time)
            changed[slot] = (
                change_time if change_time >= changed[slot] else time
            )  # it cannot have changed before what it replaces
        is_observation = time > last_time or price != odds[slot] or depth[slot] == 0
        flags[slot] = (flags[slot] & _NOT_OF_QUOTE) | quote_flags
        if not has_no_price:
            odds[slot] = q_odds[i]
            if q_american[i] != american[slot] and not (np.isnan(q_american[i]) and np.isnan(american[slot])):
                effect |= STATUS
            american[slot] = q_american[i]
        if q_start[i] != NO_TIME and q_start[i] != start[slot]:
            start[slot] = q_start[i]
            effect |= STATUS
        seen[slot] = time
        renewed[slot] = now
        if (quote_flags & SUSPENDED) != 0 and depth[slot] > 0:
            # Suspended quotes are not observations, but without them the short seconds could wrap around unnoticed.
            seconds = (time // SECOND - np.int64(level_time[slot])) & SECONDS
            if seconds > window:
                depth[slot] = 0
        if is_observation and (quote_flags & SUSPENDED) == 0:
            flap = flags[slot] & FLAP
            observe(
                slot, time, last_time, 1.0 / price, level, level_time, level_observation, observations, same, depth,
                record, flags, levels, away, back, window, most_observations, least_same, least_returns,
            )  # fmt: skip
            if (flags[slot] & FLAP) != flap:
                effect |= STATUS
        if (effect & MOVED) != 0:
            moved[slot] = now
        out_effect[i] = effect
    return q_key.size, top, n_spare, n_entered
