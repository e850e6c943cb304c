"""Prices for subscribers with equal filters: selection of rows, events of an update, and the first snapshot."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from oddsengine.columns import Bools, Floats, Ints, Longs
from oddsengine.live.update import hexadecimal
from oddsengine.query import BoardReader, Index, RowChanges, RowFilter, TermFilter, TermIndex, book_ids
from oddsengine.tables.timestamps import timestamps
from oddsengine_service.stream.moves import RowForm, UpdateMoves, rows_in
from oddsengine_service.stream.sse import OddsSeen, raw
from oddsengine_service.stream.stream_events import SSE, Wire, renewed
from oddsengine_service.wire.numbers import american, americans


class BoardFrames(NamedTuple):
    """The board at one update as frames, and the frame that ends a snapshot."""

    number: int
    frames: list[bytes]
    complete: bytes


class MissedChanges(NamedTuple):
    """Changes since an update, from the hub's history."""

    since: int
    number: int  # last update included
    changed: Longs  # by slot: number of the last update that changed it
    lost: Sequence[tuple[int, TermIndex, list[RowChanges]]]  # removed rows, by update


class PriceGroup:
    """One group: the rows of a filter in one form. Everything but `snapshot` and `replay` is for the hub's thread.

    With `seen` it is for nodes that pass prices on: it includes suspended rows, and reports when rows were seen again.
    """

    def __init__(
        self, wanted: RowFilter, form: RowForm, index: Index, wire: Wire = SSE, *, seen: bool = False
    ) -> None:  # fmt: skip
        self.wanted, self.form, self.wire, self.seen = wanted, form, wire, seen
        self._suspended = seen or wire.keeps_suspended
        self._partial = wanted.live is not None or wanted.low is not None or wanted.high is not None
        self.members = 0
        self.reached = 0  # number of the last update delivered; only in the event loop
        self._index = index
        self._chosen = TermFilter(wanted)
        with index.reader(lines=wanted.lines) as reader:
            self.number = reader.number
            self.total = int(self._active(reader).size)

    def events(self, moves: UpdateMoves) -> list[bytes]:
        """Events of this group for an update."""
        if moves.number <= self.number:
            return []
        self.number = moves.number
        out: list[bytes] = []
        if self._suspended and (at := self._chosen.matching_rows(moves.hidden, moves.terms)).size:
            at = at[self._was(moves.hidden, at)]
            self.total -= at.size
            locks = moves.locks()
            for book, some in _by_book(moves.hidden, at):
                out += self.wire.locked(book, [locks[i] for i in some])
        for rows in moves.lost if self._suspended else moves.left:
            at = self._chosen.matching_rows(rows, moves.terms)
            if rows is moves.lost[1]:  # suspended before and not counted; it may have changed since
                out += self._removals(moves, rows, at)
            else:
                out += self._removed(moves, rows, at[self._was(rows, at)])
        new, moving = (
            self._chosen.matching_rows(moves.new, moves.terms),
            self._chosen.matching_rows(moves.moved, moves.terms),
        )
        new = new[moves.concerned(self.wanted.lines)[new]]
        fresh = np.array(moves.fresh, bool)
        if (matched := moves.matched(self.wanted)) is not None:  # sports of events have changed
            left = np.setdiff1d(np.flatnonzero(matched & ~fresh), new)
            out += self._removed(moves, moves.new, left[self._was(moves.new, left)])
            fresh |= ~matched
        fresh = fresh[new]
        if self._partial:  # changes can move rows into and out of the filter
            held, stays = self._was(moves.new, new) & ~fresh, self._is(moves.new, new)
            out += self._removed(moves, moves.new, new[held & ~stays])
            new, fresh = new[stays], ~held[stays]
            held, stays = self._was(moves.moved, moving), self._is(moves.moved, moving)
            out += self._removed(moves, moves.moved, moving[held & ~stays])
            come, moving = moving[~held & stays], moving[held & stays]
            out += self._added(moves, moves.moved, come, [True] * come.size)
        out += self._added(moves, moves.new, new, fresh.tolist())
        if moving.size:
            deltas = moves.deltas()
            for book, some in _by_book(moves.moved, moving):
                out += self.wire.moved(book, [deltas[i] for i in some])
        return out + self._renewed(moves) if self.seen else out

    def _was(self, rows: RowChanges, at: Longs) -> Bools:
        """Which rows matched `live` and the price limits before this update."""
        return self._within(rows.before.live[at], rows.before.odds[at], rows.before.american[at])

    def _is(self, rows: RowChanges, at: Longs) -> Bools:
        """Which rows match now."""
        return self._within(rows.live[at], rows.facts.odds[at], rows.facts.american[at])

    def _within(self, live: Bools, odds: Floats, quoted: Floats) -> Bools:
        wanted, within = self.wanted, np.ones(live.size, bool)
        if wanted.live is not None:
            within &= live == wanted.live
        if live.size and (wanted.low is not None or wanted.high is not None):
            price = np.array(americans(odds, quoted))
            within &= price >= (-np.inf if wanted.low is None else american(wanted.low))
            within &= price <= (np.inf if wanted.high is None else american(wanted.high))
        return within

    def _removed(self, moves: UpdateMoves, rows: RowChanges, at: Longs) -> list[bytes]:
        self.total -= at.size
        return self._removals(moves, rows, at)

    def _removals(self, moves: UpdateMoves, rows: RowChanges, at: Longs) -> list[bytes]:
        out, ids = list[bytes](), moves.ids(rows) if at.size else []
        for book, some in _by_book(rows, at):
            out += self.wire.removed(book, [ids[i] for i in some])
        return out

    def _added(self, moves: UpdateMoves, rows: RowChanges, at: Longs, fresh: list[bool]) -> list[bytes]:
        """Rows that entered, or that changed in a way no delta can describe; only the former add to the total."""
        if not at.size:
            return []
        places, names = at.tolist(), book_ids(rows.facts.books)
        books = [names[book] for book in rows.book[at].tolist()]
        self.total += sum(fresh)
        fulls = moves.fulls(rows, self.form, places, self.wanted.lines)
        return self.wire.added(fulls, self.total, books)

    def _renewed(self, moves: UpdateMoves) -> list[bytes]:
        """When rows were last seen: both changed rows, whose delta does not include it, and rows seen again."""
        facts, ids = moves.moved.facts, moves.ids(moves.moved)
        times = timestamps(facts.seen)
        at = self._chosen.matching_rows(moves.moved, moves.terms).tolist()
        seen_at = [(ids[i], times[i]) for i in at]
        if (again := moves.renewed()) is not None:
            seen, ids, times = again
            seen_at += [(ids[i], times[i]) for i in self._chosen.matching_rows(seen, moves.terms).tolist()]
        return renewed(raw(OddsSeen(*each) for each in seen_at))

    def _active(self, reader: BoardReader) -> Ints:
        return reader.active(reader.matching_rows(self.wanted, {}))

    def replay(self, missed: MissedChanges, *, exact: bool) -> BoardFrames | None:
        """Rows that changed since an update, as they are now; from any thread.

        None if it has to be `exact`, and the board is already past the latest update.
        Whatever changed is sent whole, so it does not matter what the client has of it.
        """
        wire, wanted = self.wire, self.wanted
        with self._index.reader(judged=True, lines=self.wanted.lines) as reader:
            if exact and reader.number != missed.number:
                return None
            every = reader.matching_rows(wanted._replace(live=None, low=None, high=None), {})
            every = every[every < missed.changed.size]
            every = every[missed.changed[every] >= missed.since]
            active = self._active(reader)
            held = np.isin(every, reader.matching_rows(wanted, {}) if self._suspended else active)
            here, away = reader.take(every[held]), reader.take(every[~held])
            total, names = active.size, reader.books_of(active)
        out, chosen = list[bytes](), TermFilter(wanted)
        removed: dict[str, list[str]] = {}
        for id_, code in zip(hexadecimal(away.id), away.book, strict=True):
            removed.setdefault(away.books[code], []).append(id_)
        for number, terms, parts in missed.lost:
            for rows in parts if number >= missed.since else ():
                for book, some in _by_book(rows, chosen.matching_rows(rows, terms)):
                    every_id = hexadecimal(rows.facts.id)
                    removed.setdefault(book, []).extend(every_id[i] for i in some)
        for name, lost in sorted(removed.items()):
            out += wire.removed(name, list(dict.fromkeys(lost)))
        out += wire.added(raw(rows_in(self.form)(here)), total, [here.books[book] for book in here.book])
        return BoardFrames(missed.number, out, wire.complete(names, total, resumed=True))

    def snapshot(self) -> BoardFrames:
        """A snapshot of the current rows; thread-safe."""
        with self._index.reader(judged=True, lines=self.wanted.lines) as reader:
            number = reader.number
            found = reader.take(reader.matching_rows(self.wanted, {}) if self.seen else self._active(reader))
        rows = rows_in(self.form)(found)
        books = sorted({row["sportsbook"] for row in rows})
        return BoardFrames(number, self.wire.snapshot(rows), self.wire.complete(books, len(rows), resumed=False))


def nothing(wire: Wire = SSE, *, games: bool = False, resumed: bool = False) -> BoardFrames:
    """The snapshot of a subscription without prices."""
    return BoardFrames(0, [] if games or resumed else wire.empty(), wire.complete([], 0, resumed=resumed))


def _by_book(rows: RowChanges, at: Longs) -> Iterator[tuple[str, list[int]]]:
    """Indices by book, in order of the books' ids."""
    if not at.size:
        return
    books = rows.book[at]
    ids = book_ids(rows.facts.books)
    for code in sorted(np.unique(books).tolist(), key=ids.__getitem__):
        yield ids[code], at[books == code].tolist()
