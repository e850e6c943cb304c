"""Open sets: the opportunities that the views of an engine have open, stored by view and partition.

A search over some partitions replaces what was open in the searched markets. `compare` determines the difference for
each opportunity (new, changed, unchanged, expired) without changing anything, and `commit` applies it. Both process all
views of a search at once. Opportunities are identified by id; if only figures change, the id and the time of first
detection stay the same.

Arguments of the kernels:

- `views` (per view): row of `head`, negative if suspended
- `partitions` (per partition of the search): the partition
- `head` (int32, rows by partitions), `heads` (int32 per partition), `following` (int32 per place): chains of places, as
  in `OpenTable` and `OpenColumns`; `heads` is a row of `head`
- `ends`: as in `Difference`
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import kernel
from oddsengine.board.changed_markets import IN_LADDERS, IN_MARKETS
from oddsengine.columns import NONE, Bools, Bytes, Floats, Int, Ints, Longs, Words, grown
from oddsengine.detection.kinds import KINDS
from oddsengine.detection.search import FIGURES, LEGS

SAME, CHANGED, NEW = 0, 1, 2
_ONE = np.uint64(1)


_COMPACT = 1 << 12  # places; smaller tables are not worth it
_UNUSED = {"partition": -1, "legs": -1, "following": -1}  # in places that are not used


class Hits(NamedTuple):
    """Opportunities found by a search, sorted by view, then partition."""

    id: Words
    kind: Bytes  # code in `KINDS`
    partition: Ints
    legs: Ints  # (n, LEGS) slots of the board, -1 beyond
    figures: Floats  # (n, FIGURES); by kind, see `Kind.figures`
    shown: Words  # of kinds that are `hashed`: a hash of what else their rows show, see `low_hold.shown`
    own: Bytes  # which leg is a price of the opportunity's market; others may be the same bets in other markets

    @property
    def size(self) -> int:
        """Number of opportunities."""
        return int(self.id.size)

    def take(self, at: npt.NDArray[np.integer] | npt.NDArray[np.bool_] | slice) -> "Hits":
        """A selection of them."""
        return Hits._make(column[at] for column in self)

    def values(self) -> Floats:
        """The main figure of each, in percent."""
        value = np.empty(self.size)
        for code, kind in enumerate(KINDS.values()):
            here = self.kind == code
            value[here] = kind.percent(self.figures[here])
        return value

    def net_odds(self) -> Floats:
        """The legs' odds after commission, shape (n, LEGS); nan beyond."""
        out = np.full((self.size, LEGS), np.nan)
        for code, kind in enumerate(KINDS.values()):
            here = self.kind == code
            out[here, : len(kind.odds)] = self.figures[here][:, kind.odds]
        return out

    @classmethod
    def none(cls) -> "Hits":
        """No opportunities."""
        return cls(
            np.empty(0, np.uint64),
            np.empty(0, np.uint8),
            np.empty(0, np.int32),
            np.empty((0, LEGS), np.int32),
            np.empty((0, FIGURES)),
            np.empty(0, np.uint64),
            np.empty(0, np.uint8),
        )


class OpenColumns(NamedTuple):
    """The opportunities that are open, by place."""

    id: Words
    kind: Bytes
    partition: Ints  # `NONE`: the place is free
    legs: Ints  # this and the next two as in `Hits`
    figures: Floats
    shown: Words  # or 0: whatever its row shows
    detected_at: Longs  # when it was found first, microseconds
    following: Ints  # the next place of the same view and partition, `NONE` at the end


class Difference(NamedTuple):
    """The effect of a search on the open sets of its views."""

    ends: Longs  # (views * partitions + 1): offsets of the hits of each view and partition
    status: Bytes  # per hit: SAME, CHANGED, NEW
    old: Ints  # per hit: its place, -1 if new
    expired: Ints  # places that were not found again, by view
    expired_ends: Longs  # (views + 1)
    affected: Ints  # unchanged places whose rows may show something else, by view
    affected_ends: Longs  # (views + 1)


@kernel
def _ends(who: Longs, partition: Ints, partitions: Longs, ends: Longs) -> None:
    """Offsets of the hits of each view and partition.

    `who` and `partition` (per hit) are the view and the partition.
    """
    i = 0
    for c in range(ends.size - 1):
        ends[c] = i
        while i < who.size and who[i] == c // partitions.size and partition[i] == partitions[c % partitions.size]:
            i += 1
    ends[ends.size - 1] = i


@kernel
def _compare(
    views: Longs, partitions: Longs, head: Ints, opened: OpenColumns, hits: Hits, reach: Bytes, is_paired: Bools,
    is_hashed: Bools, out: Difference,
) -> None:  # fmt: skip
    """Match the hits of each view and partition with what is open there and was searched.

    - `is_paired`, `is_hashed` (bool per kind): as `paired` and `hashed` of `Kind`
    - `reach` (uint8 per slot): which searches reached a row: `IN_MARKETS`, `IN_LADDERS`
    - `out`: to write, but for its `ends`
    """
    n_expired, n_affected = 0, 0
    for v in range(views.size):
        out.expired_ends[v], out.affected_ends[v] = n_expired, n_affected
        for at in range(partitions.size):
            a, b = out.ends[v * partitions.size + at], out.ends[v * partitions.size + at + 1]
            for i in range(a, b):
                out.status[i] = NEW
                out.old[i] = NONE
            p = head[views[v], partitions[at]] if views[v] >= 0 else NONE
            while p >= 0:
                kind, first_leg = opened.kind[p], opened.legs[p, 0]
                i = a
                while i < b and not (hits.id[i] == opened.id[p] and hits.kind[i] == kind):
                    i += 1
                if i == b:
                    if reach[first_leg] & (IN_LADDERS if is_paired[kind] else IN_MARKETS):
                        out.expired[n_expired] = p
                        n_expired += 1
                    elif reach[first_leg] != 0:
                        out.affected[n_affected] = p
                        n_affected += 1
                else:
                    out.old[i] = p
                    is_same = True
                    for k in range(opened.figures.shape[1]):
                        x, y = opened.figures[p, k], hits.figures[i, k]
                        if x != y and not (np.isnan(x) and np.isnan(y)):
                            is_same = False
                    for k in range(opened.legs.shape[1]):
                        if opened.legs[p, k] != hits.legs[i, k]:
                            is_same = False
                    out.status[i] = SAME if is_same else CHANGED
                    if is_hashed[kind]:
                        is_same_row = opened.shown[p] >> _ONE == hits.shown[i] >> _ONE and hits.shown[i] & _ONE == 0
                    else:
                        is_same_row = reach[first_leg] == 0
                    if is_same and not is_same_row:
                        out.affected[n_affected] = p
                        n_affected += 1
                p = opened.following[p]
    out.expired_ends[views.size], out.affected_ends[views.size] = n_expired, n_affected


@kernel
def _commit(
    views: Longs, partitions: Longs, head: Ints, opened: OpenColumns, hits: Hits, difference: Difference, spare: Ints,
    n_spare: int, top: int, now: Int,
) -> tuple[int, int]:  # fmt: skip
    """Remove expired, update changed and add new opportunities. Returns places ever used, and free ones.

    - `spare` (int32), `n_spare`: free places, and their number
    - `top`: places ever used
    - `now`: time of the search, microseconds
    """
    following = opened.following
    for p in difference.affected:
        opened.shown[p] = 0  # one that was not found again may show anything until it is searched
    for p in difference.expired:
        opened.partition[p] = NONE
        spare[n_spare] = p
        n_spare += 1
    for v in range(views.size):
        row = views[v]
        if row < 0:
            continue
        for at in range(partitions.size):
            last_place = np.int32(NONE)
            p = head[row, partitions[at]]
            while p >= 0:
                next_place = following[p]
                if opened.partition[p] >= 0:
                    following[p] = last_place
                    last_place = p
                p = next_place
            head[row, partitions[at]] = last_place
    for v in range(views.size):
        row = views[v]
        if row < 0:
            continue
        for at in range(partitions.size):
            for i in range(difference.ends[v * partitions.size + at], difference.ends[v * partitions.size + at + 1]):
                p = difference.old[i]
                if p < 0:
                    if n_spare > 0:
                        n_spare -= 1
                        p = spare[n_spare]
                    else:
                        p = np.int32(top)
                        top += 1
                    opened.id[p] = hits.id[i]
                    opened.kind[p] = hits.kind[i]
                    opened.partition[p] = partitions[at]
                    opened.detected_at[p] = now
                    following[p] = head[row, partitions[at]]
                    head[row, partitions[at]] = p
                for k in range(opened.legs.shape[1]):
                    opened.legs[p, k] = hits.legs[i, k]
                for k in range(opened.figures.shape[1]):
                    opened.figures[p, k] = hits.figures[i, k]
                opened.shown[p] = hits.shown[i]
    return top, n_spare


@kernel
def _places(heads: Ints, following: Ints, out: Ints) -> int:
    """Places of one view's opportunities. Returns their number, including those that do not fit in the array.

    `out` is written.
    """
    n = 0
    for u in range(heads.size):
        p = heads[u]
        while p >= 0:
            if n < out.size:
                out[n] = p
            n += 1
            p = following[p]
    return n


@kernel
def _chain(places: Ints, partition: Ints, heads: Ints, following: Ints) -> None:
    """Link places into chains by partition.

    `places` are those of one view, `partition` (per place) is as in `OpenColumns`.
    """
    heads[:] = NONE
    for p in places:
        following[p] = heads[partition[p]]
        heads[partition[p]] = p


class OpenTable:
    """The open opportunities of an engine's views: a row of `head` per view, and chains of places by partition."""

    def __init__(self) -> None:
        self.head: Ints = np.full((8, 256), -1, np.int32)
        self.top = 0
        self.spares = 0
        self._free = list(range(8))  # rows of `head`
        self.id: Words = np.empty(0, np.uint64)
        self.kind: Bytes = np.empty(0, np.uint8)
        self.partition: Ints = np.empty(0, np.int32)
        self.legs: Ints = np.empty((0, LEGS), np.int32)
        self.figures: Floats = np.empty((0, FIGURES))
        self.shown: Words = np.empty(0, np.uint64)
        self.detected_at: Longs = np.empty(0, np.int64)
        self.following: Ints = np.empty(0, np.int32)
        self.spare: Ints = np.empty(0, np.int32)
        self._room(256)

    def _columns(self) -> OpenColumns:
        return OpenColumns(
            self.id, self.kind, self.partition, self.legs, self.figures, self.shown, self.detected_at, self.following
        )

    def _room(self, n: int) -> None:
        for name in (*OpenColumns._fields, "spare"):
            setattr(self, name, grown(getattr(self, name), n, _UNUSED.get(name, 0)))

    def _heads(self, rows: int, partitions: int) -> None:
        """Allocate for this many views and partitions."""
        have = self.head.shape
        if rows > have[0] or partitions > have[1]:
            wide = have[1] if partitions <= have[1] else max(partitions, 2 * have[1])
            head = np.full((max(rows, have[0]), wide), -1, np.int32)
            head[: have[0], : have[1]] = self.head
            self.head = head

    def add(self) -> "OpenSet":
        """Add a view with an empty open set."""
        if not self._free:
            rows = self.head.shape[0]
            self._heads(2 * rows, 0)
            self._free = list(range(rows, 2 * rows))
        return OpenSet(self, self._free.pop())

    def drop(self, row: int) -> None:
        """Clear a view."""
        places = self.places(row)
        self.head[row] = -1
        self.partition[places] = -1
        self.spare[self.spares : self.spares + places.size] = places
        self.spares += places.size
        self._free.append(row)
        if 2 * self.spares > self.top > _COMPACT:
            self._compact()

    def _compact(self) -> None:
        """Give up free places; the order of the others stays."""
        used = np.flatnonzero(self.partition[: self.top] >= 0)
        to = np.full(self.top + 1, -1, np.int32)  # its last entry is for -1
        to[used] = np.arange(used.size)
        self.head = to[self.head]
        for name in OpenColumns._fields:
            setattr(self, name, getattr(self, name)[used])
        self.following = to[self.following]
        self.spare = np.zeros(used.size, np.int32)
        self.top, self.spares = used.size, 0

    def prepare(self, partitions: Longs) -> None:
        """Allocate for searches of some partitions."""
        self._heads(0, int(partitions.max(initial=0)) + 1)

    def compare(self, views: Longs, who: Longs, partitions: Longs, hits: Hits, reach: Bytes) -> Difference:
        """Determine the effect of a search over some partitions (ascending) for some views.

        `views` are their rows, -1 for a suspended view; `who` is each hit's index in `views`. `reach` is, by slot
        of a first leg, the scope of the search; see `board.changed_markets`.
        """
        self.prepare(partitions)
        expired, affected = np.empty((2, self.top), np.int32)
        found = Difference(
            np.empty(views.size * partitions.size + 1, np.int64), np.empty(hits.size, np.uint8),
            np.empty(hits.size, np.int32), expired, np.empty(views.size + 1, np.int64), affected,
            np.empty(views.size + 1, np.int64),
        )  # fmt: skip
        _ends(who, hits.partition, partitions, found.ends)
        _compare(
            views, partitions, self.head, self._columns(), hits, reach,
            np.array([kind.paired for kind in KINDS.values()]), np.array([kind.hashed for kind in KINDS.values()]),
            found,
        )  # fmt: skip
        expired, affected = expired[: found.expired_ends[-1]], affected[: found.affected_ends[-1]]
        # In an order that does not depend on earlier steps, so that a replay reports them in the same order.
        of = np.repeat(np.arange(views.size), np.diff(found.expired_ends))
        order = np.lexsort((self.id[expired], self.kind[expired], self.partition[expired], of))
        return found._replace(expired=expired[order], affected=affected)

    def commit(self, views: Longs, partitions: Longs, hits: Hits, difference: Difference, now: int) -> None:
        """Apply a difference."""
        self.prepare(partitions)
        self._room(self.top + hits.size + 1)
        self.top, self.spares = _commit(
            views, partitions, self.head, self._columns(), hits, difference, self.spare, self.spares, self.top, now
        )

    def rehome(self, partition: Ints) -> None:
        """Assign new partition numbers; `partition` has them by slot. That of an opportunity is its first leg's."""
        held = [self.places(row) for row in range(self.head.shape[0])]
        every = np.concatenate(held)
        self.partition[every] = partition[self.legs[every, 0]]
        self.head = np.full((len(held), max(256, int(self.partition[every].max(initial=0)) + 1)), -1, np.int32)
        for row, places in enumerate(held):
            _chain(places, self.partition, self.head[row], self.following)

    def places(self, row: int) -> Ints:
        """Places of all opportunities of a view, ascending."""
        room = 1024
        while True:
            out = np.empty(room, np.int32)
            n = _places(self.head[row], self.following, out)
            if n <= room:
                return np.sort(out[:n])
            room = n


_NO_TABLE = OpenTable()  # of suspended views


class OpenSet:
    """The open opportunities of one view: places in the table of all views."""

    def __init__(self, table: OpenTable | None = None, row: int = -1) -> None:
        self.table = _NO_TABLE if table is None else table
        self.row = row  # -1: suspended

    def places(self) -> Ints:
        """Places of all open opportunities."""
        return self.table.places(self.row) if self.row >= 0 else np.empty(0, np.int32)
