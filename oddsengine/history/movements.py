"""Price history of an event from a bounded memory of changes.

A *move* is a price that differs from the same row's previous one in decimal odds, live flag or suspension. `Ring`
records the newest moves of the whole board; the opening of each row is stored separately and never overwritten.
`history.archive.moves` returns the same moves from an archive.
"""

import threading
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine.board.names import Names
from oddsengine.board.rows import row_ids
from oddsengine.columns import NO_TIME, Bools, Bytes, Floats, Ints, Longs, Words, grown
from oddsengine.identity.layout import LIVE, SUSPENDED
from oddsengine.identity.raw_labels import RawLabel
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.query.board_terms import TermIndex
from oddsengine.query.filter import LATEST

MOST_MOVES, MOST_ROWS = 1 << 20, 1 << 18  # of a ring
_SHOWN = LIVE | SUSPENDED


class PricedEvent(NamedTuple):
    """An event with prices. `start` is in microseconds, NO_TIME if unknown; sport and league are the source's words."""

    id: str
    sport: str
    league: str
    start: int


class EventMoves(NamedTuple):
    """Moves of the rows of one or more events, in order of time per row; the first one is the row's opening."""

    raw_labels: list[RawLabel]  # by row
    books: list[str]
    row: Longs
    at: Longs  # when the board applied it
    odds: Floats
    american: Floats  # nan if derived from `odds`
    flags: Bytes

    @property
    def live(self) -> Bools:
        """Whether each price is live."""
        return np.asarray((self.flags & LIVE) != 0)

    @property
    def active(self) -> Bools:
        """Whether each price can be bet, i.e. is not suspended."""
        return np.asarray((self.flags & SUSPENDED) == 0)


def changed_prices(quotes: pl.DataFrame) -> pl.DataFrame:
    """Return the quotes that are moves; late quotes and repeated prices are dropped.

    Quotes are in order of `recorded_at`, and of the same price if they have the same `row`. The price of a suspended
    quote that has none is the previous one.
    """
    frame = (
        quotes.filter(pl.col("last_seen_at") >= pl.col("last_seen_at").cum_max().over("row"))
        .with_columns(pl.col("odds_decimal", "odds_american").forward_fill().over("row"))
        .filter(pl.col("odds_decimal").is_not_null())  # suspended before its first price
        .filter(pl.struct("row", "recorded_at").is_last_distinct())
    )
    return frame.filter(
        pl.any_horizontal(
            pl.col(name).ne_missing(pl.col(name).shift().over("row"))
            for name in ("odds_decimal", "is_active", "is_live")
        )
    )


def nothing() -> EventMoves:
    """Moves of an event without prices."""
    none = np.empty(0)
    return EventMoves([], [], none.astype(np.int64), none.astype(np.int64), none, none, none.astype(np.uint8))


# ---- in memory ----


class Ring:
    """The newest moves of a board, and the opening of every row.

    At most `most` moves and `rows` rows are kept; beyond that, the half that moved longest ago is dropped.
    """

    _ROWS = (
        ("last_at", np.int64), ("last_odds", np.float64), ("last_flags", np.uint8), ("first", np.int64),
        ("first_at", np.int64), ("first_odds", np.float64), ("first_american", np.float64), ("first_flags", np.uint8),
    )  # fmt: skip

    def __init__(self, engine: Engine, most: int = MOST_MOVES, rows: int = MOST_ROWS) -> None:
        self._engine, self._most, self._most_rows = engine, most, rows
        self._lock = threading.Lock()
        self._row = np.full(most, -1, np.int32)
        self._at, self._odds, self._american = np.zeros(most, np.int64), np.zeros(most), np.zeros(most)
        self._flags = np.zeros(most, np.uint8)
        self._end = 0  # total number of moves
        self._raw_labels: list[RawLabel] = []
        self._books: list[str] = []
        self._codes: dict[int, int] = {}  # row by id
        self._events: dict[str, list[int]] = {}
        self._rows: dict[str, npt.NDArray[Any]] = {name: np.zeros(1024, dtype) for name, dtype in self._ROWS}
        self._slot_row, self._slot_id = np.empty(0, np.int32), np.empty(0, np.uint64)
        self._begun = False
        self.since = int(NO_TIME)  # time of the first prices

    def __len__(self) -> int:
        return min(self._end, self._most)

    def follow(self, update: Update) -> None:
        """Record the changes of an update."""
        if self._begun:
            facts, at = update.facts, update.rows
            id_, slot, key = facts.id[at], facts.slot[at], facts.key[at]
            odds, american, flags = facts.odds[at], facts.american[at], facts.flags[at]
        else:
            with self._engine.still() as board:
                facts = board.facts(board.on())
            id_, slot, key, odds, american, flags = (
                facts.id, facts.slot, facts.key, facts.odds, facts.american, facts.flags,
            )  # fmt: skip
            self._begun = True
        if id_.size:
            with self._lock:
                if self.since == NO_TIME:
                    self.since = update.now
                row = self._row_codes(id_, slot, key, facts.raw_labels, facts.books)
                self._take(row, update.now, odds, american, flags & np.uint8(_SHOWN))

    def _row_codes(self, id_: Words, slot: Ints, key: Longs, raw_labels: list[RawLabel], books: list[str]) -> Longs:
        """Return the codes of rows, adding new ones."""
        slots = int(slot.max()) + 1
        self._slot_row, self._slot_id = grown(self._slot_row, slots, -1), grown(self._slot_id, slots)
        new = np.flatnonzero((self._slot_id[slot] != id_) | (self._slot_row[slot] < 0))
        if len(self._raw_labels) + new.size > self._most_rows:
            self._forget(new.size)
            new = np.flatnonzero((self._slot_id[slot] != id_) | (self._slot_row[slot] < 0))
        for at, ident, term in zip(new.tolist(), id_[new].tolist(), key[new].tolist(), strict=True):
            code = self._codes.get(ident)
            if code is None:
                code = self._codes[ident] = len(self._raw_labels)
                self._raw_labels.append(raw_labels[term >> 16])
                self._books.append(books[term & 0xFFFF])
                self._events.setdefault(raw_labels[term >> 16][0], []).append(code)
            self._slot_row[slot[at]], self._slot_id[slot[at]] = code, ident
        self._rows = {name: grown(column, len(self._raw_labels)) for name, column in self._rows.items()}
        return self._slot_row[slot].astype(np.int64)

    def _take(self, row: Longs, now: int, odds: Floats, american: Floats, flags: Bytes) -> None:
        rows = self._rows
        fresh = rows["last_at"][row] == 0
        moved = np.flatnonzero(fresh | (rows["last_odds"][row] != odds) | (rows["last_flags"][row] != flags))
        row, odds, american, flags, fresh = row[moved], odds[moved], american[moved], flags[moved], fresh[moved]
        rows["last_at"][row], rows["last_odds"][row], rows["last_flags"][row] = now, odds, flags
        number = self._end + np.arange(row.size)
        first = row[fresh]
        rows["first"][first], rows["first_at"][first] = number[fresh], now
        for name, column in (("odds", odds), ("american", american), ("flags", flags)):
            rows[f"first_{name}"][first] = column[fresh]
        place = (number % self._most)[-self._most :]
        newest = slice(max(row.size - self._most, 0), None)
        self._row[place], self._at[place] = row[newest], now
        self._odds[place], self._american[place], self._flags[place] = odds[newest], american[newest], flags[newest]
        self._end += row.size

    def _forget(self, more: int) -> None:
        """Drop the rows that moved longest ago: keep half, and leave room for more."""
        n = len(self._raw_labels)
        count = max(0, min(n // 2, self._most_rows - more))
        stay = np.sort(np.argsort(self._rows["last_at"][:n], kind="stable")[n - count :])
        code = np.full(n + 1, -1, np.int32)
        code[stay] = np.arange(count, dtype=np.int32)
        for name, column in self._rows.items():
            fresh = np.zeros_like(column)
            fresh[:count] = column[stay]
            self._rows[name] = fresh
        self._row, self._slot_row = code[self._row], code[self._slot_row]  # -1 stays -1
        self._raw_labels = [self._raw_labels[at] for at in stay.tolist()]
        self._books = [self._books[at] for at in stay.tolist()]
        self._codes = {ident: int(code[at]) for ident, at in self._codes.items() if code[at] >= 0}
        self._events = {}
        for at, raw_label in enumerate(self._raw_labels):
            self._events.setdefault(raw_label[0], []).append(at)

    def odds_at(self, slots: Ints, ids: Words, at: int) -> Floats:
        """Return the decimal odds of some rows at a time; nan if they were suspended then, or are unknown.

        The rows are those of a board with these slots and ids. Rows first seen later have their first odds. Odds are
        unknown if later moves have displaced the move that set them.
        """
        with self._lock:
            out = np.full(ids.size, np.nan)
            code = np.full(ids.size, -1, np.int64)
            same = np.flatnonzero(slots < self._slot_id.size)
            same = same[self._slot_id[slots[same]] == ids[same]]
            code[same] = self._slot_row[slots[same]]
            # A delayed board may have rows whose slots others have taken since.
            others = np.flatnonzero(code < 0)
            code[others] = [self._codes.get(ident, -1) for ident in ids[others].tolist()]
            known = np.flatnonzero(code >= 0)
            stored = min(self._end, self._most)
            number = np.arange(self._end - stored, self._end)
            place = number % self._most
            early = place[(self._row[place] >= 0) & (self._at[place] <= at)]
            # The newest move of each row: of equal indices the last is assigned.
            newest = np.full(len(self._raw_labels), -1, np.int64)
            newest[self._row[early]] = early
            rows, row = self._rows, code[known]
            cases = [rows["first_at"][row] > at, rows["last_at"][row] <= at, newest[row] >= 0]  # new, unmoved, moved
            moved = newest[row]
            odds = np.select(cases, [rows["first_odds"][row], rows["last_odds"][row], self._odds[moved]], np.nan)
            flags = np.select(cases, [rows["first_flags"][row], rows["last_flags"][row], self._flags[moved]], SUSPENDED)
            usable = (flags & SUSPENDED) == 0
            out[known[usable]] = odds[usable]
        return out

    def changes_of_event(self, event_id: str, until: int) -> EventMoves:
        """Return the price changes of an event up to a time."""
        return self.changes_of_events((event_id,), until)

    def events(self, until: int) -> list[PricedEvent]:
        """Return the events that had a price at a time or before."""
        with self._lock:
            first = self._rows["first_at"]
            firsts = {event: min(codes, key=first.__getitem__) for event, codes in self._events.items()}
            return [
                PricedEvent(event, self._raw_labels[row][1] or "", self._raw_labels[row][2] or "", int(NO_TIME))
                for event, row in firsts.items()
                if first[row] <= until
            ]

    def changes_of_events(self, events: Collection[str], until: int) -> EventMoves:
        """Return the price changes of some events up to a time."""
        with self._lock:
            codes = np.array([code for event in events for code in self._events.get(event, ())], np.int64)
            if not codes.size:
                return nothing()
            place = np.full(len(self._raw_labels) + 1, -1, np.int64)  # the last entry is for moves of dropped rows
            place[codes] = np.arange(codes.size)
            stored = min(self._end, self._most)
            places = np.flatnonzero(place[self._row[:stored]] >= 0)
            number = self._end - 1 - (self._end - 1 - places) % self._most
            rows = self._rows
            later = number > rows["first"][self._row[places]]
            places, number = places[later], number[later]
            order = np.lexsort((np.concatenate((rows["first"][codes], number)),))
            columns = [
                np.concatenate((rows[f"first_{name}"][codes], ring[places]))[order]
                for name, ring in (
                    ("at", self._at), ("odds", self._odds), ("american", self._american), ("flags", self._flags),
                )
            ]  # fmt: skip
            row = np.concatenate((np.arange(codes.size), place[self._row[places]]))[order]
            raw_labels = [self._raw_labels[code] for code in codes.tolist()]
            books = [self._books[code] for code in codes.tolist()]
        early = columns[0] <= until
        return EventMoves(raw_labels, books, row[early], *(column[early] for column in columns))


def described(moves: EventMoves) -> tuple[TermIndex, Longs, Longs, Words]:
    """Return the texts of moves, and for each row its term, book and id."""
    names = Names()
    book = np.array([names.books.code(name) for name in moves.books], np.int64)
    term = np.array(names.learn(moves.raw_labels), np.int64)
    terms = TermIndex(names)
    while not terms.learn(LATEST):
        pass
    ids = row_ids(names.terms.id.values[term], names.books.hash.values[book]) if term.size else np.empty(0, np.uint64)
    return terms, term, book, ids
