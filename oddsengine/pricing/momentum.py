"""Momentum of the markets of a live board: the only input of a fair price that depends on earlier boards.

Stored per ladder: the momentum at the last sample and at the last change, both with their minutes; and per book, its
line and logits at both, an entry for each logit (one if there are two outcomes). A sample is the board at the end of a
minute in which it changed; moves since then count in full. The result does not depend on how the quotes of a minute
were divided into batches, and time alone changes nothing that is stored. A ladder that has not changed for two days
counts as new.

Arguments of the kernels:

- `votes`: the votes of a board
- `index` (int32 per book): the code under which the book is stored
- `markets`, `threshold`: as in `Groups`
- `samples`: its `keys`, `minute` and `outcomes` are given, the others are to write
"""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import kernel
from oddsengine.catalog import FairTable
from oddsengine.catalog.fair_constants import Constants
from oddsengine.columns import NO_TIME, NONE, SECOND, Bytes, Float, Floats, Int, Ints, Longs, Words, spans
from oddsengine.identity.groups import Groups, checksum, mix
from oddsengine.pricing.provider_votes import clip
from oddsengine.pricing.votes import BookLogits

_SAMPLE, _LATEST = 0, 1  # the two stored states of a ladder
_OLD_US = 48 * 3600 * SECOND  # a ladder that has not changed for longer counts as new
_DROP_US = _OLD_US + 3600 * SECOND  # and is dropped when room is needed: minutes of events begin at different times


class StoredLadders(NamedTuple):
    """What is stored: a hash table of ladders, columns by slot of a ladder, and entries, by ladder and book."""

    keys: Words  # 2^k places: the key of a ladder, 0 where free
    slot: Ints  # per place: its slot
    base: Floats  # (slots, widest): momentum at the last sample
    sampled: Longs  # minute of that sample
    value: Floats  # (slots, widest): momentum at the last change
    latest: Longs  # minute of that change
    seen: Floats  # (slots, widest): momentum as last searched
    begun: Longs  # start of the event as last searched
    start: Longs  # first entry
    size: Ints  # number of entries
    room: Ints  # and room for them
    book: Ints  # code of the entry's book
    line: Ints  # (entries, 2): its line at `_SAMPLE` and at `_LATEST`, hundredths
    x: Floats  # (entries, 2): its logit at both


class BookLines(NamedTuple):
    """Scratch arrays: each book's line of one ladder."""

    vote: Ints  # per book: the vote on its line, or `NONE`
    line: Ints  # per book: the line, hundredths
    is_previous: Bytes  # per book: 1 if it is the previous one
    first_entry: Ints  # per stored book: its first stored entry, or `NONE`


class LadderSamples(NamedTuple):
    """The result of `Memory.refresh` for some ladders, to be passed to `commit`."""

    keys: Words  # unique hashes, not 0
    minute: Longs  # the beginning of the event's minute, microseconds
    begins: Longs  # start of the event
    outcomes: Longs  # number; two have one logit, more have one each
    momentum: Floats  # (ladders, widest)
    slots: Ints  # where each is stored, or `NONE`
    changed: Bytes  # 1: to store
    base: Floats  # (ladders, widest): momentum at the last sample
    sampled: Longs  # its minute
    start: Longs  # ladder -> books
    book: Ints  # per book of a ladder: its code
    line: Ints  # (books, 2): its line at `_SAMPLE` and at `_LATEST`, hundredths
    x: Floats  # (books, 2, widest): its logits at both
    slots_of: int  # for which numbering of slots, see `Memory`


@kernel
def _find(key: Int, keys: Words, size: Int) -> Int:
    """Place of a `key` in a table of 2^k slots, or the free slot where it belongs.

    `keys` has `size` slots; 0 is free.
    """
    at = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - 1)
    while keys[at] != np.uint64(0) and keys[at] != key:
        at = (at + 1) & (size - 1)
    return at


@kernel
def _choose_lines(
    at: Int, end: Int, markets: Longs, threshold: Ints, votes: BookLogits, index: Ints, line_keep: Float,
    stored: StoredLadders, lines: BookLines, samples: LadderSamples,
) -> int:  # fmt: skip
    """Each book's line: its previous one as long as that is near even money, else the most balanced.

    Writes the books in order, and returns their number.

    - `at`, `end`: the ladder, and where its books are to write
    - `line_keep`: largest distance from even money at which a book's line stays, logits
    """
    count = 0
    for m in range(markets[at], markets[at + 1]):
        for v in range(votes.start[m], votes.start[m + 1]):
            b = votes.book[v]
            e, w = lines.first_entry[index[b]], lines.vote[b]
            follows_line = e >= 0 and stored.line[e, _LATEST] == threshold[m] and abs(votes.x[v, 0]) <= line_keep
            if w < 0:
                k = end + count
                while k > end and samples.book[k - 1] > b:
                    samples.book[k] = samples.book[k - 1]
                    k -= 1
                samples.book[k] = b
                count += 1
            if w < 0 or follows_line or (lines.is_previous[b] == 0 and abs(votes.x[v, 0]) < abs(votes.x[w, 0])):
                lines.vote[b], lines.line[b] = v, threshold[m]
                lines.is_previous[b] = 1 if follows_line else 0
    return count


@kernel
def _sample(
    needed: Bytes, markets: Longs, threshold: Ints, slope: Floats, reach: Longs, votes: BookLogits, provider: Ints,
    index: Ints, c: Constants, stored: StoredLadders, lines: BookLines, samples: LadderSamples,
) -> None:  # fmt: skip
    """Momentum of each ladder at its minute, and the state to store for ladders that changed; stores nothing itself.

    - `needed` (uint8 per ladder): 0 to skip it
    - `slope`, `reach` (per ladder): as in `KindParameters`
    - `provider` (int32 per book): as in `Traits`
    """
    momentum, base, book, x = samples.momentum, samples.base, samples.book, samples.x
    end = 0
    for at in range(samples.keys.size):
        minute = samples.minute[at]
        samples.start[at] = end
        samples.slots[at], samples.sampled[at], samples.changed[at] = NONE, minute, 0
        for k in range(momentum.shape[1]):
            base[at, k], momentum[at, k] = 0.0, 0.0
        if needed[at] == 0:
            continue
        comps = samples.outcomes[at] if samples.outcomes[at] > 2 else 1
        place = _find(samples.keys[at], stored.keys, stored.keys.size)
        slot = stored.slot[place] if stored.keys[place] == samples.keys[at] else NONE
        samples.slots[at] = slot
        is_new = slot < 0 or minute - stored.latest[slot] > _OLD_US
        first = 0 if is_new else stored.start[slot]
        size = 0 if is_new else stored.size[slot]
        for e in range(first, first + size, comps):
            lines.first_entry[stored.book[e]] = e
        count = _choose_lines(
            at, end, markets, threshold, votes, index, c.momentum_line_keep, stored, lines, samples
        )  # fmt: skip
        # Which of the two stored states is the sample.
        state = _LATEST if not is_new and minute > stored.latest[slot] else _SAMPLE
        decay = 1.0
        if not is_new:
            samples.sampled[at] = stored.latest[slot] if state == _LATEST else stored.sampled[slot]
            decay = 2.0 ** (-(minute - samples.sampled[at]) / (c.momentum_half_life_s * 1e6))
        for k in range(momentum.shape[1]):
            base[at, k] = 0.0 if is_new else (stored.value[slot, k] if state == _LATEST else stored.base[slot, k])
            momentum[at, k] = 0.0
        is_changed = is_new
        providers = 0
        for i in range(end, end + count):
            b = book[i]
            v, line, e = lines.vote[b], lines.line[b], lines.first_entry[index[b]]
            samples.line[i, _SAMPLE], samples.line[i, _LATEST] = line, line
            for k in range(comps):
                x[i, _SAMPLE, k], x[i, _LATEST, k] = np.nan, votes.x[v, k]
            if e >= 0:
                samples.line[i, _SAMPLE] = stored.line[e, state]
                for k in range(comps):
                    x[i, _SAMPLE, k] = stored.x[e + k, state]
                    is_changed |= stored.x[e + k, _LATEST] != votes.x[v, k]
                is_changed |= stored.line[e, _LATEST] != line
            else:
                is_changed = True
            is_counted = False
            for j in range(end, i):
                is_counted |= provider[book[j]] == provider[b]
            if is_counted:
                continue
            providers += 1
            shift = 0.0
            distance = line - samples.line[i, _SAMPLE]
            if distance != 0:
                if np.isnan(slope[at]) or abs(distance) > reach[at]:
                    continue
                shift = slope[at] * -distance / 100.0
            for k in range(comps):
                d = x[i, _LATEST, k] + shift - x[i, _SAMPLE, k]
                if not np.isnan(d):
                    momentum[at, k] += clip(d, c.momentum_move_clip)
        for k in range(momentum.shape[1]):
            momentum[at, k] = base[at, k] * decay + momentum[at, k] / max(providers, 1)
        for i in range(end, end + count):
            lines.vote[book[i]] = NONE
            lines.is_previous[book[i]] = 0
            book[i] = index[book[i]]
            lines.first_entry[book[i]] = NONE
        # Books that are gone: their sample stays until the minute ends.
        end += count
        for e in range(first, first + size, comps):
            if lines.first_entry[stored.book[e]] < 0:
                continue
            lines.first_entry[stored.book[e]] = NONE
            is_changed |= not np.isnan(stored.x[e, _LATEST])
            if not np.isnan(stored.x[e, state]):
                book[end] = stored.book[e]
                samples.line[end, _SAMPLE], samples.line[end, _LATEST] = stored.line[e, state], stored.line[e, state]
                for k in range(comps):
                    x[end, _SAMPLE, k], x[end, _LATEST, k] = stored.x[e + k, state], np.nan
                end += 1
        samples.changed[at] = 1 if is_changed else 0
    samples.start[samples.keys.size] = end


@kernel
def _entries(keys: Words, s_keys: Words, s_slot: Ints, s_size: Ints) -> int:
    """Number of stored entries of the ladders with some `keys`.

    `s_keys`, `s_slot`, `s_size`: the columns of `StoredLadders`.
    """
    n = 0
    for key in keys:
        place = _find(key, s_keys, s_keys.size)
        if s_keys[place] == key:
            n += s_size[s_slot[place]]
    return n


@kernel
def _remember(
    ladders: Longs, samples: LadderSamples, stored: StoredLadders, used: int, end: int
) -> tuple[int, int]:  # fmt: skip
    """Store the changes; the arrays have enough room. Returns the new numbers of ladders and entries.

    - `ladders`: the ladders to store
    - `samples`: all of its columns are given
    - `used`, `end`: the numbers of stored ladders and entries
    """
    for at in ladders:
        slot = samples.slots[at]
        if slot < 0:
            place = _find(samples.keys[at], stored.keys, stored.keys.size)
            slot = used
            used += 1
            stored.keys[place], stored.slot[place] = samples.keys[at], slot
            stored.room[slot] = 0
        comps = samples.outcomes[at] if samples.outcomes[at] > 2 else 1
        n = (samples.start[at + 1] - samples.start[at]) * comps
        if n > stored.room[slot]:
            stored.start[slot], stored.room[slot] = end, n + comps
            end += n + comps
        stored.size[slot], stored.sampled[slot] = n, samples.sampled[at]
        stored.latest[slot], stored.begun[slot] = samples.minute[at], samples.begins[at]
        for k in range(samples.momentum.shape[1]):
            value = samples.momentum[at, k]
            stored.base[slot, k], stored.value[slot, k], stored.seen[slot, k] = samples.base[at, k], value, value
        for i in range(n):
            e, j = stored.start[slot] + i, samples.start[at] + i // comps
            stored.book[e] = samples.book[j]
            for state in range(2):
                stored.line[e, state] = samples.line[j, state]
                stored.x[e, state] = samples.x[j, state, i % comps]
    return used, end


_WIDEST = 3


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

    def _stored(self) -> StoredLadders:
        return StoredLadders(
            self._keys, self._slot, self._base, self._sampled, self._value, self._latest, self._seen, self._begun,
            self._start, self._size, self._room, self._book, self._line, self._x,
        )  # fmt: skip

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
        lines = BookLines(
            np.full(provider.size, -1, np.int32), np.empty(provider.size, np.int32), np.zeros(provider.size, np.uint8),
            np.full(len(self._books) + 1, -1, np.int32),
        )  # fmt: skip
        _sample(
            np.ones(ladders, np.uint8) if needed is None else needed, g.markets, g.threshold, slope, reach, logits,
            provider, index, table.constants, self._stored(), lines, made,
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
        made = made._replace(slots=slots)
        self.used, self.end = _remember(some, made, self._stored(), self.used, self.end)

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
        """Make room, and drop ladders that are too old to be read."""
        self._grown += 1
        kept = np.flatnonzero(self._latest[: self.used] >= now - _DROP_US)
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
