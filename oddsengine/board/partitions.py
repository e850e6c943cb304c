"""Partitions: rows that are judged and searched together: their codes, and lists of slots.

`layout` says which rows belong together. Its `gather` leaves a partition's list in sorted order, which makes the next
sort faster.

Columns of the kernels:

- `start`, `size`, `room` (per partition), `pool`: as in `Partitions`
- `partitions`, `new_room`: the partitions, and the new room of each list, 0 if it has enough
- `slots`: rows to remove
- `partition` (per slot): the partition of each row
"""

from collections.abc import Hashable
from typing import Any, Self

import numpy as np

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.board.codes import Copyable, GrowingColumn
from oddsengine.columns import NO_TIME, Ints, Longs, grown, spans
from oddsengine.identity.layout import enrol, partition_of
from oddsengine.identity.traits import MarketKind

DIRTY, LOOSE = 1, 2  # bits: some of its rows have changed; any of its markets may have, as where rows come or go


class PartitionCodes(Copyable):
    """Codes of partitions: by event, live flag, and group of terms that are judged and searched together."""

    def __init__(self) -> None:
        self._codes: dict[tuple[int, int, int], int] = {}
        self._groups: dict[Hashable, int] = {}
        self.event = GrowingColumn(np.int32)
        self.live = GrowingColumn(np.uint8)
        self.of_event: list[list[int]] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        fresh = super().__deepcopy__(memo)
        fresh.of_event = [list(partitions) for partitions in self.of_event]
        return fresh

    @property
    def size(self) -> int:
        """Number of partitions."""
        return self.event.size

    def of_term(
        self, event: int, sport: tuple[catalog.Sport, str], kind: MarketKind, verdict: int, two_way: int
    ) -> tuple[int, int]:
        """Codes of the pre-match and the live partition of a term of an event, which is of a sport and league."""
        name = partition_of(kind, sport[0].id, sport[1], verdict, two_way)
        group = self._groups.setdefault(name, len(self._groups))
        return self._code(event, 0, group), self._code(event, 1, group)

    def _code(self, event: int, live: int, group: int) -> int:
        key = (event, live, group)
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = self.event.size
            self.event.append(event)
            self.live.append(live)
            if event == len(self.of_event):
                self.of_event.append([])
            self.of_event[event].append(code)
        return code


class Partitions:
    """The rows of each partition: lists of slots in one pool."""

    def __init__(self) -> None:
        self.start = np.zeros(256, np.int64)
        self.size = np.zeros(256, np.int32)
        self.room = np.zeros(256, np.int32)
        self.pool = np.empty(4096, np.int32)
        self.end = 0  # end of the used part of the pool
        self.dirty = np.zeros(256, np.uint8)  # `DIRTY`, `LOOSE`: to be judged and searched again
        self.due_at = np.full(256, NO_TIME)  # earliest time at which time alone can change a result
        self.until = np.zeros(256, np.int64)  # a price seen again later may be too far from another in time

    def count(self, partitions: int) -> None:
        """Allocate columns for this many partitions."""
        for name in ("start", "size", "room", "dirty", "until", "due_at"):
            setattr(self, name, grown(getattr(self, name), partitions, NO_TIME if name == "due_at" else 0))

    def enrol(self, slots: Ints, partition: Ints) -> None:
        """Add rows to the lists of their partitions; `partition` is the column of all rows."""
        # Count the new rows first, so that each list grows at most once.
        partition_of = partition[slots]
        partitions, more = np.unique(partition_of, return_counts=True)
        size = self.size[partitions] + more
        wider = self._wider(partitions, size)
        if self.end + int(wider.sum()) > self.pool.size:
            self.pack(int((size + size // 4 + 1).sum()))
            wider = self._wider(partitions, size)  # packing trims all lists, including those that had enough room
        self.end = _widen(partitions, wider, self.start, self.size, self.room, self.pool, self.end)
        enrol(slots, partition, self.start, self.size, self.pool)

    def leave(self, slots: Ints, partition: Ints) -> None:
        """Remove rows from the lists of their partitions."""
        _leave(slots, partition, self.start, self.size, self.pool)

    def loosen(self, partitions: Ints | Longs) -> None:
        """Have all markets of some partitions searched again."""
        self.dirty[partitions] = DIRTY | LOOSE

    def slots_of(self, partitions: Longs) -> Ints:
        """Slots of all rows in some partitions."""
        return self.pool[spans(self.start[partitions], self.start[partitions] + self.size[partitions])]

    def _wider(self, partitions: Ints, size: Ints) -> Ints:
        """New room for each list that is too small for its size, else 0."""
        wider: Ints = np.where(size > self.room[partitions], size + size // 4 + 1, 0).astype(np.int32)
        return wider

    def pack(self, more: int) -> None:
        """Move all lists to a new pool with room for some more slots."""
        used = int(self.size.sum())
        pool = np.empty(max(4096, used + used // 4 + 2 * self.start.size + more + more // 8), np.int32)
        self.end = _pack(self.start, self.size, self.room, self.pool, pool)
        self.pool = pool


@kernel
def _pack(start: Longs, size: Ints, room: Ints, pool: Ints, out: Ints) -> int:
    """Copy all lists to a new pool, with an eighth of spare room each. Returns the end.

    `out` is the new pool.
    """
    end = 0
    for u in range(start.size):
        if room[u] == 0:
            continue
        for k in range(size[u]):
            out[end + k] = pool[start[u] + k]
        start[u] = end
        room[u] = min(room[u], size[u] + size[u] // 8 + 1)
        end += room[u]
    return end


@kernel
def _widen(partitions: Ints, new_room: Ints, start: Longs, size: Ints, room: Ints, pool: Ints, end: int) -> int:
    """Move lists that need more room to the end of the pool. Returns the new end.

    `end` is that of the used part of the pool.
    """
    for at in range(partitions.size):
        if new_room[at] > 0:
            u = partitions[at]
            for k in range(size[u]):
                pool[end + k] = pool[start[u] + k]
            start[u] = end
            room[u] = new_room[at]
            end += new_room[at]
    return end


@kernel
def _leave(slots: Ints, partition: Ints, start: Longs, size: Ints, pool: Ints) -> None:
    """Remove each slot from its partition's list, preserving the order of the others."""
    for i in range(slots.size):
        u = partition[slots[i]]
        a, n = start[u], size[u]
        k = 0
        while k < n and pool[a + k] != slots[i]:
            k += 1
        if k == n:
            continue
        for j in range(k, n - 1):
            pool[a + j] = pool[a + j + 1]
        size[u] = n - 1
