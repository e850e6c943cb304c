"""An index of one board: its terms as codes, its rows in sort order, and cached query results and encoded rows.

Rows are sorted by event start, event, market, line, side and book, so prices do not change the order. An event's start
is its first known one: a postponed event keeps its position, and pagination by cursor returns every row once.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from oddsengine import catalog
from oddsengine.board.names import Names
from oddsengine.board.state import Board
from oddsengine.columns import NO_TIME, Ints, Longs, grown
from oddsengine.identity.layout import BOOK_BITS, ON
from oddsengine.identity.traits import book_fees
from oddsengine.live.readable import Readable
from oddsengine.live.update import Update
from oddsengine.query.board_terms import TermIndex
from oddsengine.query.filter import LATEST
from oddsengine.query.main_lines import LineSets
from oddsengine.query.reader import BoardReader, Marks
from oddsengine.query.row_kernels import first_starts, sort_rows, update_keys

_Slots = tuple[Ints, dict[str, list[str]]]
_CHUNK = 500  # terms read at a time while the writer waits
_MOST_CACHED = 2_000_000  # rows of cached results


class Index:
    """Terms and rows of one board, in sort order."""

    def __init__(self, engine: Readable) -> None:
        self.engine = engine
        self._mutex = threading.RLock()
        self._keys = np.empty(0, np.int64)  # key of every slot, as indexed in `slots`
        self._at = -1
        self._starts: dict[str, int] = {}
        self._outdated: TermIndex | None = None  # the terms before a change of sports or leagues
        self.relabelled: tuple[int, TermIndex] | None = None  # the same, and when they changed
        self.lines = LineSets()
        self.marked = np.empty(0, np.int64)  # by slot: when the start or the sport of its event last changed
        self.books: list[str] = []  # ids, by code
        self.terms: TermIndex
        self._rename(Names())

    def _rename(self, names: Names) -> None:
        if self._at >= 0 and names is self.terms.names:
            self._outdated = self._outdated or self.terms
        self.terms = TermIndex(names)
        self._keys = np.empty(0, np.int64)
        self.lines.renamed()
        self.first = np.zeros(1, np.int64)
        self.slots, self.book = np.empty(0, np.int32), np.empty(0, np.int32)
        self.encoded: dict[Any, msgspec.Raw] = {}  # encoded rows by content
        self._cached_slots: dict[Hashable, _Slots] = {}  # cached results of this update
        self._cached_rows = 0  # total rows in it
        self.begin = np.empty(0, np.int64)
        self.events = np.empty(0, np.int32)  # in sort order
        self.event_keys: list[tuple[int, str]] = []
        self.spot = np.empty(0, np.int32)  # position of each event in that order
        self.books, self.rank = [], np.empty(0, np.int32)
        self.fees = book_fees(())
        self._ranks: dict[str, tuple[Ints, list[str]]] = {}

    @contextmanager
    def reader(self, *, judged: bool = False, lines: frozenset[str] | None = None) -> Iterator["BoardReader"]:
        """Lock the board and bring the index up to date; with `judged`, guards are evaluated as of now.

        `lines` are the books whose prices decide main lines, all if None.
        """
        with self._mutex:
            while self.engine.number != self._at:  # many new terms are read in chunks
                with self.engine.shown(judged=False) as shown:
                    board = shown.board
                    if self.terms.outdated(board.names):
                        self._rename(board.names)
                    if len(board.names.terms.raw_labels) - len(self.terms.texts) <= _CHUNK:
                        break
                    self.terms.learn(_CHUNK)
            with self.engine.shown(judged=judged) as shown:
                board = shown.board
                if board.number != self._at or self.terms.outdated(board.names):
                    self._refresh(board)
                    self._at = board.number
                yield BoardReader(self, shown, self.lines.for_books(lines), judged=judged)

    @property
    def busy(self) -> bool:
        """Whether `reader` would wait for another thread, or bring the index up to date first."""
        if self.engine.number != self._at or not self._mutex.acquire(blocking=False):
            return True
        self._mutex.release()
        return self.engine.busy

    def _refresh(self, board: Board) -> None:
        names, rows = board.names, board.rows
        if self.terms.outdated(names):
            self._rename(names)
        learnt = len(self.terms.texts)
        while not self.terms.learn(LATEST):
            pass
        self.terms.swap()
        state, top = rows.state[: rows.top], rows.top
        new = len(names.books.values) > len(self.books) or len(self.terms.texts) > learnt
        if new:
            self._books(names)
        self._keys = grown(self._keys, top, -1)
        self.marked = grown(self.marked, top, NO_TIME)
        if self._outdated is not None and self._outdated.names is names:
            self.relabelled = board.now, self._outdated
            moved = self.terms.relabelled(self._outdated)
            self.marked[:top][(state == ON) & moved[rows.key[:top] >> BOOK_BITS]] = board.now
            self.lines.renamed()  # its rows are in other partitions now
        self._outdated = None
        if update_keys(rows.key, state, self._keys) or new:
            self.first = np.zeros(len(self.terms.texts) + 1, np.int64)
            self.slots, self.book = np.empty(top, np.int32), np.empty(top, np.int32)
            sort_rows(rows.key, state, self.terms.place, self.rank, self.first, self.slots, self.book)
        self._order(board)
        self._cached_slots, self._cached_rows = {}, 0
        for lines in self.lines:
            lines.encoded = {}, {}

    def _books(self, names: Names) -> None:
        ids = [catalog.book(name).id for name in names.books.values]
        self.books.extend(ids[len(self.books) :])
        order = sorted(range(len(ids)), key=ids.__getitem__)
        self.rank = np.empty(len(ids), np.int32)
        self.rank[order] = np.arange(len(ids), dtype=np.int32)
        self.fees = book_fees(ids)
        self._ranks.clear()

    def _order(self, board: Board) -> None:
        """Sort events. Only events without a known start can change position."""
        names, rows = board.names, board.rows
        ids = names.events.values[self.begin.size :]
        if ids:
            starts = [self._starts.get(id_, int(NO_TIME)) for id_ in ids]
            self.begin = np.concatenate((self.begin, np.array(starts, np.int64)))
        elif not (self.begin == NO_TIME).any():
            return
        earliest = np.full(self.begin.size, LATEST)
        first_starts(rows.key, rows.state[: rows.top], rows.start, names.terms.event.values, self.begin, earliest)
        new = np.flatnonzero(earliest != LATEST)
        if not new.size and not ids:
            return
        self.begin[new] = earliest[new]
        self._start(board, new)
        for e in new.tolist():
            self._starts[names.events.values[e]] = int(earliest[e])
        if len(self._starts) > 4 * self.begin.size + 1024:
            self._starts = {id_: start for id_, start in self._starts.items() if id_ in names.events.codes}
        starts = [LATEST if start == NO_TIME else start for start in self.begin.tolist()]
        keyed = sorted((start, id_, e) for e, (start, id_) in enumerate(zip(starts, names.events.values, strict=True)))
        self.events = np.array([e for _, _, e in keyed], np.int32)
        self.event_keys = [(start, id_) for start, id_, _ in keyed]
        self.spot = np.empty(self.events.size, np.int32)
        self.spot[self.events] = np.arange(self.events.size, dtype=np.int32)

    def follow(self, update: Update) -> "Marks":
        """Return main lines and event starts changed by an update. Called by the writer right after the step.

        A moved price can change the main line, and the first start of an event applies to its rows without one.
        """
        with self.reader(judged=True) as reader:
            return reader.follow(update)

    def _start(self, board: Board, events: Longs) -> None:
        """Mark rows without a start of their own as changed with the start of their event."""
        rows = board.rows
        without = np.flatnonzero((rows.state[: rows.top] == ON) & (rows.start[: rows.top] == NO_TIME))
        event = board.names.terms.event.values[rows.key[without] >> BOOK_BITS]
        self.marked[without[np.isin(event, events)]] = board.now

    def cached(self, key: Hashable, make: Callable[[], _Slots]) -> _Slots:
        """Cache rows that match a query until the next update."""
        entry = self._cached_slots.get(key)
        if entry is None:
            entry = make()
            if self._cached_rows + entry[0].size > _MOST_CACHED:
                self._cached_slots, self._cached_rows = {}, 0
            self._cached_slots[key] = entry
            self._cached_rows += entry[0].size
        return entry

    def ranks(self, column: str) -> tuple[Ints, list[str]]:
        """Return the rank of each code of a column by text, and the sorted texts."""
        columns: dict[str, Callable[[], list[str]]] = {
            "sportsbook": lambda: self.books,
            "sport": lambda: self.terms.columns["sport"].texts,
            "league": lambda: [league for _, league in self.terms.columns["league"].texts],
        }
        texts = columns[column]()
        cached = self._ranks.get(column)
        if cached is None or cached[0].size != len(texts):
            order = sorted(set(texts))
            place = {text: at for at, text in enumerate(order)}
            cached = self._ranks[column] = np.array([place[text] for text in texts], np.int32), order
        return cached
