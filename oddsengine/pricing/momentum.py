"""Momentum of the markets of a live board: the only input of a fair price that depends on earlier boards.

Stored per ladder: the momentum at the last sample and at the last change, both with their minutes; and per book, its
line and logits at both, an entry for each logit (one if there are two outcomes). A sample is the board at the end of a
minute in which it changed; moves since then count in full. The result does not depend on how the quotes of a minute
were divided into batches, and time alone changes nothing that is stored.

Columns of the kernels:

- `keys` (uint64 per ladder): a unique hash, not 0
- `markets`, `threshold`: as in `Groups`
- `outcomes` (int64 per ladder): number of outcomes; two have one logit, more have one each
- `minute` (int64 per ladder): the beginning of the event's minute, microseconds
- `provider` (int32 per book): as in `Traits`
- `momentum`, `slots`, `changed`, `base`, `sampled`, `start`, `n_book`, `n_line`, `n_x`: the columns of
  `LadderSamples`; `base` is the momentum at the last sample, `sampled` its minute, and `start` the offset of the
  ladder's books in the last three, whose second index is `_SAMPLE` or `_LATEST`
- `s_keys`, `s_slot`: hash table of the stored ladders: key (0: free) and slot
- `s_base`, `s_sampled`, `s_value`, `s_latest` (per slot): momentum at the last sample and its minute, and at the last
  change and its minute
- `begins`, `s_seen`, `s_begun` (per ladder, per slot): start of the event; momentum and start as last searched
- `s_start`, `s_size`, `s_room` (per slot): first entry, number of entries, and room
- `p_book`, `p_line`, `p_x` (per entry): code of the book, its lines and its logits, at `_SAMPLE` and at `_LATEST`
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from typing import NamedTuple

import numpy as np

from oddsengine._jit import kernel
from oddsengine.catalog import FairTable
from oddsengine.columns import NO_TIME, NONE, Bytes, Floats, Ints, Longs, Words, spans
from oddsengine.identity.groups import Groups, checksum, mix
from oddsengine.pricing.provider_votes import clip
from oddsengine.pricing.votes import BookLogits

SECOND = 1_000_000
_SAMPLE, _LATEST = 0, 1  # the two stored states of a ladder


@kernel
def _find(key, keys, size):
    """Place of a `key` in a table of 2^k slots, or the free slot where it belongs.

    `keys` has `size` slots; 0 is free.
    """
    at = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - 1)
    while keys[at] != np.uint64(0) and keys[at] != key:
        at = (at + 1) & (size - 1)
    return at


@kernel
def _sample(
    needed, keys, markets, outcomes, minute, threshold, slope, reach, v_start, v_book, v_x, provider, index, c, s_keys,
    s_slot, s_base, s_sampled, s_value, s_latest, s_start, s_size, p_book, p_line, p_x, line_vote, first_entry,
    is_previous, lines, momentum, slots, changed, base, sampled, start, n_book, n_line, n_x,
):  # fmt: skip
    """Momentum of each ladder at its minute, and the state to store for ladders that changed; stores nothing itself.

    - `needed` (uint8 per ladder): 0 to skip it
    - `slope`, `reach` (per ladder): as in `KindParameters`
    - `v_start`, `v_book`, `v_x`: votes, as `start`, `book` and `x` of `BookLogits`
    - `index` (int32 per book): the code under which the book is stored
    - `c`: the constants of `catalog/fair.toml`
    - `line_vote`, `lines`, `is_previous` (per book): scratch arrays: the vote on the book's line, the line, and whether
      it is the previous one
    - `first_entry` (per stored book): scratch array: its first stored entry
    """
    end = 0
    for at in range(keys.size):
        start[at] = end
        slots[at], sampled[at], changed[at] = NONE, minute[at], 0
        for k in range(momentum.shape[1]):
            base[at, k], momentum[at, k] = 0.0, 0.0
        if needed[at] == 0:
            continue
        comps = outcomes[at] if outcomes[at] > 2 else 1
        place = _find(keys[at], s_keys, s_keys.size)
        slot = s_slot[place] if s_keys[place] == keys[at] else NONE
        slots[at] = slot
        first = s_start[slot] if slot >= 0 else 0
        size = s_size[slot] if slot >= 0 else 0
        for e in range(first, first + size, comps):
            first_entry[p_book[e]] = e
        # Each book's line: its previous one as long as that is near even money, else the most balanced.
        count = 0
        for m in range(markets[at], markets[at + 1]):
            for v in range(v_start[m], v_start[m + 1]):
                b = v_book[v]
                e, w = first_entry[index[b]], line_vote[b]
                follows_line = e >= 0 and p_line[e, _LATEST] == threshold[m] and abs(v_x[v, 0]) <= c.momentum_line_keep
                if w < 0:
                    k = end + count
                    while k > end and n_book[k - 1] > b:
                        n_book[k] = n_book[k - 1]
                        k -= 1
                    n_book[k] = b
                    count += 1
                if w < 0 or follows_line or (is_previous[b] == 0 and abs(v_x[v, 0]) < abs(v_x[w, 0])):
                    line_vote[b], lines[b] = v, threshold[m]
                    is_previous[b] = 1 if follows_line else 0
        is_new = slot < 0
        state = (
            _LATEST if not is_new and minute[at] > s_latest[slot] else _SAMPLE
        )  # which of the two stored states is the sample
        sampled[at] = minute[at]
        decay = 1.0
        if not is_new:
            sampled[at] = s_latest[slot] if state == _LATEST else s_sampled[slot]
            decay = 2.0 ** (-(minute[at] - sampled[at]) / (c.momentum_half_life_s * 1e6))
        for k in range(momentum.shape[1]):
            base[at, k] = 0.0 if is_new else (s_value[slot, k] if state == _LATEST else s_base[slot, k])
            momentum[at, k] = 0.0
        is_changed = is_new
        providers = 0
        for i in range(end, end + count):
            b = n_book[i]
            v, line, e = line_vote[b], lines[b], first_entry[index[b]]
            n_line[i, _SAMPLE], n_line[i, _LATEST] = line, line
            for k in range(comps):
                n_x[i, _SAMPLE, k], n_x[i, _LATEST, k] = np.nan, v_x[v, k]
            if e >= 0:
                n_line[i, _SAMPLE] = p_line[e, state]
                for k in range(comps):
                    n_x[i, _SAMPLE, k] = p_x[e + k, state]
                    is_changed |= p_x[e + k, _LATEST] != v_x[v, k]
                is_changed |= p_line[e, _LATEST] != line
            else:
                is_changed = True
            is_counted = False
            for j in range(end, i):
                is_counted |= provider[n_book[j]] == provider[b]
            if is_counted:
                continue
            providers += 1
            shift = 0.0
            if line != n_line[i, _SAMPLE]:
                if np.isnan(slope[at]) or abs(line - n_line[i, _SAMPLE]) > reach[at]:
                    continue
                shift = slope[at] * (n_line[i, _SAMPLE] - line) / 100.0
            for k in range(comps):
                d = n_x[i, _LATEST, k] + shift - n_x[i, _SAMPLE, k]
                if not np.isnan(d):
                    momentum[at, k] += clip(d, c.momentum_move_clip)
        for k in range(momentum.shape[1]):
            momentum[at, k] = base[at, k] * decay + momentum[at, k] / max(providers, 1)
        for i in range(end, end + count):
            line_vote[n_book[i]] = NONE
            is_previous[n_book[i]] = 0
            n_book[i] = index[n_book[i]]
            first_entry[n_book[i]] = NONE
        # Books that are gone: their sample stays until the minute ends.
        end += count
        for e in range(first, first + size, comps):
            if first_entry[p_book[e]] < 0:
                continue
            first_entry[p_book[e]] = NONE
            is_changed |= not np.isnan(p_x[e, _LATEST])
            if not np.isnan(p_x[e, state]):
                n_book[end], n_line[end, _SAMPLE], n_line[end, _LATEST] = p_book[e], p_line[e, state], p_line[e, state]
                for k in range(comps):
                    n_x[end, _SAMPLE, k], n_x[end, _LATEST, k] = p_x[e + k, state], np.nan
                end += 1
        changed[at] = 1 if is_changed else 0
    start[keys.size] = end


@kernel
def _entries(keys, s_keys, s_slot, s_size):
    """Number of stored entries of some ladders."""
    n = 0
    for key in keys:
        place = _find(key, s_keys, s_keys.size)
        if s_keys[place] == key:
            n += s_size[s_slot[place]]
    return n


@kernel
def _remember(
    ladders, keys, slots, minute, begins, outcomes, momentum, base, sampled, start, n_book, n_line, n_x, s_keys, s_slot,
    s_base, s_sampled, s_value, s_latest, s_seen, s_begun, s_start, s_size, s_room, p_book, p_line, p_x, used, end,
):  # fmt: skip
    """Store the changes; the arrays have enough room. Returns the new numbers of ladders and entries.

    - `ladders`: the ladders to store
    - `used`, `end`: the numbers of stored ladders and entries
    """
    for at in ladders:
        slot = slots[at]
        if slot < 0:
            place = _find(keys[at], s_keys, s_keys.size)
            slot = used
            used += 1
            s_keys[place], s_slot[place] = keys[at], slot
            s_room[slot] = 0
        comps = outcomes[at] if outcomes[at] > 2 else 1
        n = (start[at + 1] - start[at]) * comps
        if n > s_room[slot]:
            s_start[slot], s_room[slot] = end, n + comps
            end += n + comps
        s_size[slot], s_sampled[slot], s_latest[slot], s_begun[slot] = n, sampled[at], minute[at], begins[at]
        for k in range(momentum.shape[1]):
            s_base[slot, k], s_value[slot, k], s_seen[slot, k] = base[at, k], momentum[at, k], momentum[at, k]
        for i in range(n):
            e, j = s_start[slot] + i, start[at] + i // comps
            p_book[e] = n_book[j]
            for state in range(2):
                p_line[e, state] = n_line[j, state]
                p_x[e, state] = n_x[j, state, i % comps]
    return used, end


class LadderSamples(NamedTuple):
    """The result of `Memory.refresh` for some ladders, to be passed to `commit`."""

    keys: Words
    minute: Longs
    begins: Longs  # start of the event
    outcomes: Longs
    momentum: Floats  # (ladders, widest)
    slots: Ints
    changed: Bytes
    base: Floats
    sampled: Longs
    start: Longs
    book: Ints
    line: Ints
    x: Floats
    slots_of: int  # for which numbering of slots, see `Memory`


_WIDEST = 3
_OLD_S = 48 * 3600  # ladders unchanged for longer are dropped when room is needed


class Memory:
    """The momentum of every ladder of a live board.

    `refresh` only reads and `commit` writes, so a step that fails changes nothing.
    """

    def __init__(self) -> None:
        self._books: dict[str, int] = {}
        self._index: tuple[tuple[str, ...], Ints] = ((), np.empty(0, np.int32))
        self._grown = 0  # how often slots were numbered anew
        self.used = 0  # ladders
        self.end = 0  # entries
        self._keys, self._slot = np.zeros(1024, np.uint64), np.zeros(1024, np.int32)
        self._of = np.zeros(512, np.uint64)  # the key of each ladder
        self._base, self._value = np.zeros((512, _WIDEST)), np.zeros((512, _WIDEST))
        self._sampled, self._latest, self._start = np.zeros((3, 512), np.int64)
        self._size, self._room = np.zeros((2, 512), np.int32)
        self._book, self._line = np.zeros(4096, np.int32), np.zeros((4096, 2), np.int32)
        self._x = np.zeros((4096, 2))
        self.forget_search()

    def forget_search(self) -> None:
        """Forget what the last search of each ladder used."""
        self._seen, self._begun = np.full_like(self._value, np.nan), np.full_like(self._latest, NO_TIME)

    def refresh(
        self, keys: Words, groups: Groups, logits: BookLogits, minute: Longs, begins: Longs, slope: Floats,
        reach: Longs, provider: Ints, books: tuple[str, ...], table: FairTable, needed: Bytes | None = None,
    ) -> LadderSamples:  # fmt: skip
        """Momentum of the ladders of some groups, each at its minute.

        Parameters
        ----------
        keys
            A unique hash of each ladder.
        groups, logits
            All prices of these ladders, and their votes.
        minute, begins
            Per ladder; see `Times`.
        slope, reach
            Per ladder; see `KindParameters`.
        provider, books
            Providers and ids of the books, by code.
        needed
            Per ladder: 1 to compute it, 0 to skip it and keep its stored state; None means all.
        """
        g = groups
        index = self._codes(books)
        ladders, width = keys.size, logits.x.shape[1]
        n = logits.book.size + _entries(keys, self._keys, self._slot, self._size)
        outcomes = g.outcomes[g.markets[:-1]] if ladders else np.empty(0, np.int64)
        made = LadderSamples(
            keys, minute, begins, outcomes, np.empty((ladders, width)), np.empty(ladders, np.int32),
            np.empty(ladders, np.uint8), np.empty((ladders, width)), np.empty(ladders, np.int64),
            np.empty(ladders + 1, np.int64), np.empty(n, np.int32), np.empty((n, 2), np.int32),
            np.full((n, 2, width), np.nan), self._grown,
        )  # fmt: skip
        if width > _WIDEST:
            raise ValueError(f"momentum needs markets of up to {_WIDEST} outcomes, got {width}")
        _sample(
            np.ones(ladders, np.uint8) if needed is None else needed, keys, g.markets, outcomes, minute, g.threshold,
            slope, reach, logits.start, logits.book, logits.x, provider, index, table.constants,
            self._keys, self._slot, self._base, self._sampled, self._value, self._latest, self._start, self._size,
            self._book, self._line, self._x,
            np.full(provider.size, -1, np.int32), np.full(len(self._books) + 1, -1, np.int32),
            np.zeros(provider.size, np.uint8), np.empty(provider.size, np.int32),
            made.momentum, made.slots, made.changed, made.base, made.sampled, made.start, made.book, made.line, made.x,
        )  # fmt: skip
        return made

    def renewed(self, made: LadderSamples) -> Bytes:
        """Ladders whose momentum or start differs from those of the last search."""
        slots, width = made.slots, made.momentum.shape[1]
        same = (slots >= 0) & (self._begun[slots] == made.begins)
        other = ~same | (self._seen[slots, :width] != made.momentum).any(axis=1)
        return np.asarray(other).view(np.uint8)

    def commit(self, made: LadderSamples) -> None:
        """Store what changed, and what the search used."""
        if made.slots_of != self._grown:  # another part of the same step made room since
            known = (made.slots >= 0) | (made.changed != 0)
            made = made._replace(slots=np.where(known, self._slots(made.keys), -1).astype(np.int32))
        held = np.flatnonzero(made.slots >= 0)
        self._seen[made.slots[held], : made.momentum.shape[1]] = made.momentum[held]
        self._begun[made.slots[held]] = made.begins[held]
        some = np.flatnonzero(made.changed)
        if not some.size:
            return
        comps = np.where(made.outcomes > 2, made.outcomes, 1)[some]
        sizes, slots = np.diff(made.start)[some] * comps, made.slots
        new = some[slots[some] < 0]
        moves = (slots[some] < 0) | (sizes > self._room[slots[some]])
        more = int((sizes + comps)[moves].sum())
        if self.used + new.size > self._of.size or self.end + more > self._book.size:
            self._grow(new.size, int((sizes + comps).sum()), int(made.minute.max()))
            slots = self._slots(made.keys)
            new = some[slots[some] < 0]
        self._of[self.used : self.used + new.size] = made.keys[new]
        self.used, self.end = _remember(
            some, made.keys, slots, made.minute, made.begins, made.outcomes, made.momentum, made.base, made.sampled,
            made.start, made.book, made.line, made.x,
            self._keys, self._slot, self._base, self._sampled, self._value, self._latest, self._seen, self._begun,
            self._start, self._size, self._room, self._book, self._line, self._x, self.used, self.end,
        )  # fmt: skip

    def learn(self, books: tuple[str, ...]) -> None:
        """Number some books."""
        self._codes(books)

    def books(self) -> dict[str, int]:
        """The codes under which books are stored."""
        return dict(self._books)

    def rename(self, books: dict[str, int]) -> None:
        """Store books under these codes from now on."""
        self._books, self._index = books, ((), np.empty(0, np.int32))

    def _codes(self, books: tuple[str, ...]) -> Ints:
        known, index = self._index
        if known != books:
            index = np.array([self._books.setdefault(book, len(self._books)) for book in books], np.int32)
            self._index = books, index
        return index

    def _slots(self, keys: Words) -> Ints:
        places = np.array([_find(key, self._keys, self._keys.size) for key in keys], np.int64)
        return np.where(self._keys[places] == keys, self._slot[places], -1).astype(np.int32)

    def _grow(self, ladders: int, entries: int, now: int) -> None:
        """Make room, and drop ladders that have not changed for two days."""
        self._grown += 1
        kept = np.flatnonzero(self._latest[: self.used] >= now - _OLD_S * SECOND)
        size = self._size[kept].astype(np.int64)
        room, pool = kept.size + ladders, int(size.sum()) + entries
        room, pool = room + room // 4 + 512, pool + pool // 4 + 4096
        at = spans(self._start[kept], self._start[kept] + size)
        by_ladder = ("_of", "_base", "_value", "_sampled", "_latest", "_seen", "_begun", "_start", "_size", "_room")
        for names, stay, most in ((("_book", "_line", "_x"), at, pool), (by_ladder, kept, room)):
            for name in names:
                old = getattr(self, name)
                more = np.zeros((most, *old.shape[1:]), old.dtype)
                more[: stay.size] = old[stay]
                setattr(self, name, more)
        self._start[: kept.size], self._room[: kept.size] = np.cumsum(size) - size, size
        self.used, self.end = kept.size, at.size
        table = 1 << (3 * room // 2).bit_length()
        self._keys, self._slot = np.zeros(table, np.uint64), np.zeros(table, np.int32)
        for slot, key in enumerate(self._of[: self.used]):
            place = _find(key, self._keys, table)
            self._keys[place], self._slot[place] = key, slot

    def digest(self) -> int:
        """Hash of everything stored; equal memories have equal hashes."""
        names = np.array([checksum([book]) for book in self._books], np.uint64)
        total = 0
        for slot in range(self.used):
            first, n = self._start[slot], self._size[slot]
            comps = int((self._book[first : first + n] == self._book[first]).sum()) if n else 1
            entry, x = slice(first, first + n, comps), np.full((n // comps, 2, _WIDEST), np.nan)
            x[:, :, :comps] = self._x[first : first + n].reshape(-1, comps, 2).swapaxes(1, 2)
            parts = mix(
                names[self._book[entry]], *self._line[entry].T.astype(np.int64),
                *np.ascontiguousarray(x.reshape(-1, 2 * _WIDEST).T).view(np.int64),
            )  # fmt: skip
            own = mix(
                self._of[slot : slot + 1], self._sampled[slot : slot + 1], self._latest[slot : slot + 1],
                *np.ascontiguousarray(self._base[slot]).view(np.int64).reshape(-1, 1),
                *np.ascontiguousarray(self._value[slot]).view(np.int64).reshape(-1, 1),
            )  # fmt: skip
            total += int(own[0]) ^ int(parts.sum(dtype=np.uint64))
        return total & ((1 << 64) - 1)
