"""Prices for subscribers with equal filters: which rows are theirs, the events of an update, the first snapshot."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.board.rows import SUSPENDED
from oddsengine.columns import Ints, Longs
from oddsengine.engine import Engine
from oddsengine.query import Filter, Index, Reading, Terms
from oddsengine.timestamps import timestamps
from oddsengine_service.stream.moves import Moves, Rows, book_ids, shown
from oddsengine_service.stream.sse import CHUNK, OddsSeen, Snapshot, SnapshotComplete, frame, raw
from oddsengine_service.stream.told import Told, added, locked, moved, removed, renewed

Bools = npt.NDArray[np.bool_]


class _Column:
    """Which terms one condition lets through; texts and terms are looked at once, as they come."""

    def __init__(self, name: str, meant: Callable[[Any], bool]) -> None:
        self._name, self._meant = name, meant
        self._texts: list[bool] = []

    def over(self, terms: Terms, first: int, last: int) -> Bools:
        """Of some terms."""
        column = terms.columns[self._name]
        self._texts.extend(map(self._meant, column.texts[len(self._texts) :]))
        return np.array(self._texts, bool)[column.values[first:last]]


class Chosen:
    """The terms and books of a filter, by code; sport, league, market and event mean what they mean in queries."""

    def __init__(self, wanted: Filter) -> None:
        self._wanted = wanted
        self._terms: Terms | None = None
        self._mask = np.empty(0, bool)
        self._columns: list[list[_Column]] = []
        self._books = np.empty(0, bool)

    def of(self, rows: Rows, terms: Terms) -> Longs:
        """Places of the rows that are chosen."""
        if not rows.term.size:
            return np.empty(0, np.int64)
        if terms is not self._terms:
            self._terms, self._mask, self._columns = terms, np.empty(0, bool), self._conditions()
        if int(rows.term.max()) >= self._mask.size:
            self._learn(terms)
        chosen = self._mask[rows.term]
        if self._wanted.books is not None:
            if len(rows.facts.books) > self._books.size:
                self._books = np.array([book in self._wanted.books for book in book_ids(rows.facts.books)], bool)
            chosen = chosen & self._books[rows.book]
        return np.flatnonzero(chosen)

    def _learn(self, terms: Terms) -> None:
        first, last = self._mask.size, terms.columns["prop"].size
        new = np.ones(last - first, bool)
        for either in self._columns:
            new &= np.logical_or.reduce([column.over(terms, first, last) for column in either])
        if self._wanted.event is not None:
            wanted = set(self._wanted.event)
            new &= np.array([said.event_id in wanted for said in terms.said[first:last]], bool)
        self._mask = np.concatenate((self._mask, new))

    def _conditions(self) -> list[list[_Column]]:
        """Conditions that all hold, each of columns of which one does."""
        wanted, out = self._wanted, list[list[_Column]]()
        if wanted.sport is not None:
            sports = {catalog.sport(name).id for name in wanted.sport}
            out.append([_Column("sport", sports.__contains__)])
        if wanted.league is not None:
            leagues = wanted.league
            out.append([_Column("league", lambda place: _in_league(leagues, *place))])
        if wanted.market is not None:
            kinds = [kind for name in wanted.market for kind in catalog.categories().get(name.lower(), (name,))]
            plain = [kind for kind in kinds if kind != "player_*"]
            either = [_Column("market", lambda text: any(catalog.is_market(kind, *text) for kind in plain))]
            if len(plain) < len(kinds):
                either.append(_Column("prop", bool))
            out.append(either)
        return out


def _in_league(asked: Sequence[str], sport: str, league: str) -> bool:
    return bool(league) and any(catalog.league(name, sport or None).id == league for name in asked)


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

    def _was(self, rows: Rows, at: Longs) -> Bools:
        """Which of some rows had the flag that is wanted, before this update."""
        live = self.wanted.live
        return np.ones(at.size, bool) if live is None else rows.was_live[at] == live

    def _is(self, rows: Rows, at: Longs) -> Bools:
        """Which have it now."""
        live = self.wanted.live
        return np.ones(at.size, bool) if live is None else rows.live[at] == live

    def _removed(self, moves: Moves, rows: Rows, at: Longs) -> list[Told]:
        self.total -= at.size
        out, ids = list[Told](), moves.ids(rows) if at.size else []
        for book, some in _by_book(rows, at):
            out += removed(book, [ids[i] for i in some], self.total)
        return out

    def _added(self, moves: Moves, rows: Rows, at: Longs, fresh: list[bool]) -> list[Told]:
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
        if (again := moves.again()) is not None:
            seen, ids, times = again
            said += [(ids[i], times[i]) for i in self._chosen.of(seen, moves.terms).tolist()]
        return renewed([id_ for id_, _ in said], raw(OddsSeen(*each) for each in said))

    def _active(self, reading: Reading) -> Ints:
        slots = reading.rows(self.wanted, {})
        active: Ints = slots[(reading.board.rows.flags[slots] & SUSPENDED) == 0]
        return active

    def take(self) -> Taken:
        """The rows of now; from any thread."""
        with self._index.reading(judged=True) as reading:
            number = self._engine.number
            found = reading.take(reading.rows(self.wanted, {}) if self.seen else self._active(reading))
        rows = shown(found, self.state)
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


def _by_book(rows: Rows, at: Longs) -> Iterator[tuple[str, list[int]]]:
    """Places by book, books in order of their ids."""
    if not at.size:
        return
    books = rows.book[at]
    ids = book_ids(rows.facts.books)
    for code in sorted(np.unique(books).tolist(), key=ids.__getitem__):
        yield ids[code], at[books == code].tolist()
