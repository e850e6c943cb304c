"""The open set: which opportunities a view holds, kept by unit, and what a search changes of it.

A search over some units replaces what was open in the markets that it searched. `compare` says what that means,
opportunity by opportunity (new, changed, the same, expired) and changes nothing; `commit` does it. An opportunity is
known by its id; a change of a figure keeps the id, the time of first detection with it.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import kernel
from oddsengine.groups import Bytes, Floats, Ints, Longs, Words

EV, ARBITRAGE, LOW_HOLD, MIDDLE = range(4)
KINDS = ("ev", "arbitrage", "low_hold", "middles")
LEGS = 3
FIGURES = 5  # the last is 1 where the opportunity is unconfirmed, plus twice the flags of a fair price at the close
SAME, CHANGED, NEW = 0, 1, 2


class Hits(NamedTuple):
    """Opportunities as a search finds them, in order of unit."""

    id: Words
    kind: Bytes
    unit: Ints
    legs: Ints  # (n, LEGS) slots of the board, -1 beyond
    figures: Floats  # (n, FIGURES); by kind, see `View.search`

    @property
    def size(self) -> int:
        """How many."""
        return int(self.id.size)

    def take(self, at: npt.NDArray[np.integer] | npt.NDArray[np.bool_] | slice) -> "Hits":
        """Some of them."""
        return Hits._make(column[at] for column in self)

    @classmethod
    def none(cls) -> "Hits":
        """No opportunities."""
        return cls(
            np.empty(0, np.uint64),
            np.empty(0, np.uint8),
            np.empty(0, np.int32),
            np.empty((0, LEGS), np.int32),
            np.empty((0, FIGURES)),
        )


class Difference(NamedTuple):
    """What a search changes."""

    status: Bytes  # per hit: SAME, CHANGED, NEW
    old: Ints  # per hit: its place in the open set, -1 where new
    expired: Ints  # places that are no longer found


@kernel
def _compare(
    units, head, following, ids, kinds, legs, figures, ends, h_id, h_kind, h_legs, h_figures, reach, status, old, gone
):
    """Match the hits of each unit with what is open there and was searched. Returns how many expired."""
    expired = 0
    for at in range(units.size):
        a, b = ends[at], ends[at + 1]
        for i in range(a, b):
            status[i] = 2
            old[i] = -1
        p = head[units[at]]
        while p >= 0:
            i = a
            while i < b and not (h_id[i] == ids[p] and h_kind[i] == kinds[p]):
                i += 1
            if i == b:
                if reach[legs[p, 0]] & (2 if kinds[p] == 3 else 1):
                    gone[expired] = p
                    expired += 1
            else:
                old[i] = p
                same = True
                for k in range(figures.shape[1]):
                    if figures[p, k] != h_figures[i, k] and not (np.isnan(figures[p, k]) and np.isnan(h_figures[i, k])):
                        same = False
                for k in range(legs.shape[1]):
                    if legs[p, k] != h_legs[i, k]:
                        same = False
                status[i] = 0 if same else 1
            p = following[p]
    return expired


@kernel
def _commit(
    units, head, following, ids, kinds, unit, legs, figures, born, ends, h_id, h_kind, h_legs, h_figures, old, gone,
    spare, spares, top, now,
):  # fmt: skip
    """Take out what expired, change what changed and add what is new. Returns places ever used, spare ones left."""
    for i in range(gone.size):
        unit[gone[i]] = -1
    for at in range(units.size):
        last = np.int32(-1)
        p = head[units[at]]
        while p >= 0:
            later = following[p]
            if unit[p] >= 0:
                following[p] = last
                last = p
            p = later
        head[units[at]] = last
    for i in range(gone.size):
        spare[spares] = gone[i]
        spares += 1
    for at in range(units.size):
        for i in range(ends[at], ends[at + 1]):
            p = old[i]
            if p < 0:
                if spares > 0:
                    spares -= 1
                    p = spare[spares]
                else:
                    p = np.int32(top)
                    top += 1
                ids[p] = h_id[i]
                kinds[p] = h_kind[i]
                unit[p] = units[at]
                born[p] = now
                following[p] = head[units[at]]
                head[units[at]] = p
            for k in range(legs.shape[1]):
                legs[p, k] = h_legs[i, k]
            for k in range(figures.shape[1]):
                figures[p, k] = h_figures[i, k]
    return top, spares


class OpenSet:
    """What one view holds open."""

    def __init__(self) -> None:
        self.head: Ints = np.full(256, -1, np.int32)
        self.top = 0
        self.spares = 0
        self._room(256)

    def _room(self, n: int) -> None:
        old = self.__dict__.get("id")
        have = 0 if old is None else old.size
        if n <= have:
            return
        n = max(n, have + have // 2)
        fresh: dict[str, npt.NDArray[np.generic]] = {
            "id": np.zeros(n, np.uint64),
            "kind": np.zeros(n, np.uint8),
            "unit": np.full(n, -1, np.int32),
            "legs": np.full((n, LEGS), -1, np.int32),
            "figures": np.zeros((n, FIGURES)),
            "born": np.zeros(n, np.int64),
            "following": np.full(n, -1, np.int32),
            "spare": np.zeros(n, np.int32),
        }
        for name, column in fresh.items():
            if have:
                column[:have] = self.__dict__[name]
            self.__dict__[name] = column

    id: Words
    kind: Bytes
    unit: Ints
    legs: Ints
    figures: Floats
    born: Longs
    following: Ints
    spare: Ints

    def compare(self, units: Longs, hits: Hits, reach: Bytes) -> tuple[Difference, Longs]:
        """What it means that a search over some units (rising) found some hits; and where each unit's hits end.

        `reach` says by slot of a first leg whether the search went there; see `board.changes`.
        """
        most = int(units.max(initial=0)) + 1
        if most > self.head.size:
            self.head = np.concatenate(
                (self.head, np.full(max(most, 2 * self.head.size) - self.head.size, -1, np.int32))
            )
        ends = np.searchsorted(hits.unit, np.append(units, most + 1)).astype(np.int64)
        status, old = np.empty(hits.size, np.uint8), np.empty(hits.size, np.int32)
        gone = np.empty(self.top, np.int32)
        n = _compare(
            units, self.head, self.following, self.id, self.kind, self.legs, self.figures, ends, hits.id, hits.kind,
            hits.legs, hits.figures, reach, status, old, gone,
        )  # fmt: skip
        gone = gone[:n]
        # In an order that no earlier step has a part in: a replay tells of them in the same one.
        order = np.lexsort((self.id[gone], self.kind[gone], self.unit[gone]))
        return Difference(status, old, gone[order]), ends

    def commit(self, units: Longs, hits: Hits, difference: Difference, ends: Longs, now: int) -> None:
        """Make it so."""
        self._room(self.top + hits.size + 1)
        self.top, self.spares = _commit(
            units, self.head, self.following, self.id, self.kind, self.unit, self.legs, self.figures, self.born, ends,
            hits.id, hits.kind, hits.legs, hits.figures, difference.old, difference.expired, self.spare, self.spares,
            self.top, now,
        )  # fmt: skip

    def rehome(self, unit: Ints) -> None:
        """Units have new numbers; `unit` has them by slot of the board. An opportunity is where its first leg is."""
        at = self.places()
        self.unit[at] = unit[self.legs[at, 0]]
        self.head = np.full(max(256, int(self.unit[at].max(initial=0)) + 1), -1, np.int32)
        for place in at.tolist():
            self.following[place] = self.head[self.unit[place]]
            self.head[self.unit[place]] = place

    def places(self) -> Longs:
        """Places of everything that is open."""
        return np.flatnonzero(self.unit[: self.top] >= 0)
