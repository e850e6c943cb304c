"""Prices for subscribers with equal filters: which rows are theirs, the events of an update, the first snapshot."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from oddsengine.columns import Bools, Ints, Longs
from oddsengine.engine import Engine
from oddsengine.query import Chosen, Filter, Index, Reading, RowChanges, book_ids
from oddsengine.timestamps import timestamps
from oddsengine_service.stream.moves import Moves, rows_in
from oddsengine_service.stream.sse import CHUNK, OddsSeen, Snapshot, SnapshotComplete, frame, raw
from oddsengine_service.stream.told import Told, added, locked, moved, removed, renewed


class Taken(NamedTuple):
    """The board at one update, as frames; their first is to be sent first."""

    number: int
    frames: list[bytes]


class Prices:
    """One group: rows of a filter, with links for a state. Everything but `take` belongs to the hub's thread.

    With `seen` it is for nodes that pass prices on: it has suspended rows too, and says when rows were seen again.
    """

    def __init__(self, wanted: Filter, state: str, index: Index, engine: Engine, *, seen: bool = False) -> None:
        self.wanted, self.state, self.seen = wanted, state, seen
        self.members = 0
        self._index, self._engine = index, engine
        self._chosen = Chosen(wanted)
        with index.reading() as reading:
            self.number = engine.number
            self.total = int(self._active(reading).size)

    def told(self, moves: Moves) -> list[Told]:
        """What an update means here."""
        if moves.number <= self.number:
            return []
        self.number = moves.number
        out: list[Told] = []
        if self.seen and (at := self._chosen.of(moves.hidden, moves.terms)).size:
            self.total -= at.size
            locks, ids = moves.locks(), moves.ids(moves.hidden)
            for book, some in _by_book(moves.hidden, at):
                out += locked(book, [ids[i] for i in some], [locks[i] for i in some], self.total)
        for rows in moves.lost if self.seen else moves.left:
            at = self._chosen.of(rows, moves.terms)
            out += self._removed(moves, rows, at[self._was(rows, at)])
        new, moving = self._chosen.of(moves.new, moves.terms), self._chosen.of(moves.moved, moves.terms)
        fresh = np.array(moves.fresh, bool)[new]
        if self.wanted.live is not None:  # rows come and leave by this flag too
            held, stays = self._was(moves.new, new) & ~fresh, self._is(moves.new, new)
            out += self._removed(moves, moves.new, new[held & ~stays])
            new, fresh = new[stays], ~held[stays]
            held, stays = self._was(moves.moved, moving), self._is(moves.moved, moving)
            out += self._removed(moves, moves.moved, moving[held & ~stays])
            moving = moving[held & stays]
            over = self._chosen.of(moves.crossed, moves.terms)
            over = over[self._is(moves.crossed, over)]
            out += self._added(moves, moves.crossed, over, [True] * over.size)
        out += self._added(moves, moves.new, new, fresh.tolist())
        if moving.size:
            deltas, ids = moves.deltas(), moves.ids(moves.moved)
            for book, some in _by_book(moves.moved, moving):
                out += moved(book, [ids[i] for i in some], [deltas[i] for i in some], self.total)
        return out + self._renewed(moves) if self.seen else out

    def _was(self, rows: RowChanges, at: Longs) -> Bools:
        """Which of some rows had the flag that is wanted, before this update."""
        live = self.wanted.live
        return np.ones(at.size, bool) if live is None else rows.was_live[at] == live

    def _is(self, rows: RowChanges, at: Longs) -> Bools:
        """Which have it now."""
        live = self.wanted.live
        return np.ones(at.size, bool) if live is None else rows.live[at] == live

    def _removed(self, moves: Moves, rows: RowChanges, at: Longs) -> list[Told]:
        self.total -= at.size
        out, ids = list[Told](), moves.ids(rows) if at.size else []
        for book, some in _by_book(rows, at):
            out += removed(book, [ids[i] for i in some], self.total)
        return out

    def _added(self, moves: Moves, rows: RowChanges, at: Longs, fresh: list[bool]) -> list[Told]:
        """Rows that are here now, or such that no delta can describe them; only the former add to the total."""
        if not at.size:
            return []
        fulls, ids, places = moves.fulls(rows, self.state), moves.ids(rows), at.tolist()
        self.total += sum(fresh)
        return added([ids[i] for i in places], [fulls[i] for i in places], fresh, self.total)

    def _renewed(self, moves: Moves) -> list[Told]:
        """When rows were last seen: those that moved, for a delta does not say it, and those that were seen again."""
        facts, ids = moves.moved.facts, moves.ids(moves.moved)
        times = timestamps(facts.seen)
        at = self._chosen.of(moves.moved, moves.terms).tolist()
        said = [(ids[i], times[i]) for i in at]
        if (again := moves.renewed()) is not None:
            seen, ids, times = again
            said += [(ids[i], times[i]) for i in self._chosen.of(seen, moves.terms).tolist()]
        return renewed([id_ for id_, _ in said], raw(OddsSeen(*each) for each in said))

    def _active(self, reading: Reading) -> Ints:
        return reading.active(reading.rows(self.wanted, {}))

    def take(self) -> Taken:
        """The rows of now; from any thread."""
        with self._index.reading(judged=True) as reading:
            number = self._engine.number
            found = reading.take(reading.rows(self.wanted, {}) if self.seen else self._active(reading))
        rows = rows_in(self.state)(found)
        books = sorted({row["sportsbook"] for row in rows})
        total, out = len(rows), []
        for first in range(0, max(total, 1), CHUNK):
            chunk = raw(rows[first : first + CHUNK])
            out.append(frame("snapshot", Snapshot(chunk, len(chunk), total, first, first + CHUNK < total)))
        return Taken(number, [*out, frame("snapshot:complete", SnapshotComplete("ready", books, total))])


def nothing(*, games: bool = False) -> Taken:
    """What those get at the beginning who want no prices."""
    first = [] if games else [frame("snapshot", Snapshot([], 0, 0, 0, has_more=False))]
    return Taken(0, [*first, frame("snapshot:complete", SnapshotComplete("ready", [], 0))])


def _by_book(rows: RowChanges, at: Longs) -> Iterator[tuple[str, list[int]]]:
    """Places by book, books in order of their ids."""
    if not at.size:
        return
    books = rows.book[at]
    ids = book_ids(rows.facts.books)
    for code in sorted(np.unique(books).tolist(), key=ids.__getitem__):
        yield ids[code], at[books == code].tolist()
