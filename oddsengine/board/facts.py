"""Facts: what the board said of some rows at one moment.

Taking facts copies a few numbers per row; columns are made when they are read. The board may change meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, reduce
from itertools import groupby
from operator import or_
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine.board.names import Names
from oddsengine.board.row_links import LINKS, SEPARATOR, depth_columns, link_columns, own_parts, typed
from oddsengine.board.rows import REJECTED, Rows
from oddsengine.columns import NO_TIME, Bytes, Floats, Ints, Longs, Words
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, FLAP, LIVE, SUSPENDED
from oddsengine.identity.raw_labels import RAW_LABEL, RawLabel
from oddsengine.maths.odds import quoted_american
from oddsengine.tables.casts import TIME
from oddsengine.tables.schema import ODDS_SCHEMA

P = TypeVar("P")


class Facts(NamedTuple):
    """Rows, in order of slot."""

    slot: Ints
    key: Longs
    id: Words
    odds: Floats
    american: Floats
    seen: Longs
    changed: Longs
    start: Longs
    moved: Longs
    flags: Bytes
    rejected: Bytes
    confirmed: Bytes  # confirmed by a second observation
    links: list[str | None]
    raw_labels: list[RawLabel]  # by term; only appended to
    books: list[str]

    @classmethod
    def from_slots(cls, rows: Rows, names: Names, slots: Ints, agree: int) -> "Facts":
        """Copy some distinct slots; `agree` is the number of consecutive observations that confirm a price."""
        slots = np.sort(slots)
        at = slots.astype(np.intp)
        return cls(
            slots, rows.key[at], rows.id[at], rows.odds[at], rows.american[at], rows.seen[at],
            rows.changed[at], rows.start[at], rows.moved[at], rows.flags[at], rows.rejected[at],
            (rows.same[at] >= agree).view(np.uint8), rows.links_of(slots), names.terms.raw_labels,
            names.books.values,
        )  # fmt: skip

    @classmethod
    def frame_of(cls, parts: Iterable["Facts"]) -> pl.DataFrame:
        """Facts of several moments, one after the other, as an odds table without own columns."""
        return pl.concat(
            cls._make((*columns, [], first.raw_labels, first.books)).frame()
            for first, columns in joined(parts, lambda part: part.raw_labels, lambda part: part.columns)
        )

    def places(self, slots: Ints | Longs) -> Longs:
        """Indices of some slots in these columns."""
        return np.searchsorted(self.slot, slots)

    def take(self, at: Longs) -> "Facts":
        """Some of the rows, in any order (`places` cannot be used on the result)."""
        links = [self.links[i] for i in at.tolist()] if self.links else []
        return Facts._make((*(column[at] for column in self.columns), links, self.raw_labels, self.books))

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """The arrays, one value per row."""
        return cast(tuple[npt.NDArray[Any], ...], self[: self._fields.index("links")])

    @property
    def term(self) -> Longs:
        """The code of each row's raw label, in `raw_labels`."""
        return self.key >> BOOK_BITS

    @property
    def book(self) -> Longs:
        """The code of each row's book, in `books`."""
        return self.key & BOOK_MASK

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """Whether each row is live."""
        return np.asarray((self.flags & LIVE) != 0)

    @property
    def active(self) -> npt.NDArray[np.bool_]:
        """Whether each row is active, not suspended."""
        return np.asarray((self.flags & SUSPENDED) == 0)

    @property
    def prices(self) -> Floats:
        """American prices: as given, else converted from the decimal price."""
        return quoted_american(self.odds, self.american)

    @property
    def texts(self) -> list[RawLabel]:
        """The raw label of each row."""
        raw_labels = self.raw_labels
        return [raw_labels[t] for t in (self.key >> BOOK_BITS).tolist()]

    @property
    def sportsbooks(self) -> list[str]:
        """The book of each row."""
        books = self.books
        return [books[b] for b in (self.key & BOOK_MASK).tolist()]

    def frame(self) -> pl.DataFrame:
        """The rows as an odds table (`ODDS_SCHEMA`), `id` being the source's own."""
        columns = Columns(self)
        own = depth_columns(reduce(or_, map(own_parts, self.links), 0))
        return columns.table([*ODDS_SCHEMA, *own])


def joined(
    parts: Iterable[P], codes: Callable[[P], object], columns: Callable[[P], Iterable[npt.NDArray[Any]]]
) -> Iterator[tuple[P, list[npt.NDArray[Any]]]]:
    """The columns of several moments, one after the other: runs with the same codes, which an engine may renumber.

    Yields the first part of each run, and the columns of the run.
    """
    for _, alike in groupby(parts, key=lambda part: id(codes(part))):
        some = list(alike)
        yield some[0], [np.concatenate(column) for column in zip(*map(columns, some), strict=True)]


class Before(NamedTuple):
    """Some rows as they were before a batch; undefined for rows that were not shown."""

    shown: npt.NDArray[np.bool_]  # on the board and not suspended
    live: npt.NDArray[np.bool_]
    odds: Floats
    american: Floats
    start: Longs
    links: list[str | None]  # empty if no row has any

    def take(self, at: Any) -> "Before":
        """Some of them."""
        links = [self.links[i] for i in np.arange(self.shown.size)[at].tolist()] if self.links else []
        return Before._make((*(column[at] for column in self.columns), links))

    def followed_by(self, more: "Before") -> "Before":
        """These rows and some more; without their links."""
        both = zip(self.columns, more.columns, strict=True)
        return Before._make((*(np.concatenate(pair) for pair in both), []))

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """The arrays, one value per row."""
        return self.shown, self.live, self.odds, self.american, self.start

    @classmethod
    def none(cls) -> "Before":
        """No rows."""
        flags, numbers = np.empty(0, bool), np.empty(0)
        return cls(flags, flags, numbers, numbers, np.empty(0, np.int64), [])

    @classmethod
    def unchanged(cls, facts: Facts) -> "Before":
        """Rows that were as they are."""
        return cls(facts.active, facts.live, facts.odds, facts.american, facts.start, facts.links)


class Columns:
    """Columns of `ODDS_SCHEMA`, each made when it is first read."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._made: dict[str, pl.Series] = {}
        self._apart: dict[int, list[str]] = {}  # own texts by row

    def column(self, name: str, at: Longs) -> pl.Series:
        """One column of some rows; `id` is the board's."""
        if name == "id":
            return pl.Series(hexadecimal(self._facts.id[at]), dtype=pl.String)
        if name in LINKS and self._facts.links:
            part = LINKS.index(name)  # few rows: without a query
            rows = map(self._split, at.tolist())
            texts = [texts[part] or None if len(texts) > part else None for texts in rows]
            return typed(name, pl.Series(texts, dtype=pl.String))
        return self._column(name)[self._terms[1][at] if name in LABELS else at]

    def table(self, names: list[str]) -> pl.DataFrame:
        """Some columns of all rows; `id` is the source's own."""
        links = [name for name in names if name in LINKS] if self._facts.links else []
        self._made |= zip(links, link_columns(self._facts.links, links), strict=True)
        columns = {name: self._column(name).alias(name) for name in names}
        if texts := [column for name, column in columns.items() if name in LABELS]:
            columns |= {column.name: column for column in pl.DataFrame(texts)[self._terms[1]]}
        return pl.DataFrame(list(columns.values()))

    def _column(self, name: str) -> pl.Series:
        column = self._made.get(name)
        if column is None:
            column = self._made[name] = self._make(name)
        return column

    def _make(self, name: str) -> pl.Series:
        """One column of all rows; of the raw label: of all terms."""
        if name in LABELS:
            at = LABELS[name]
            return pl.Series([raw_label[at] for raw_label in self._terms[0]], dtype=ODDS_SCHEMA[name])
        if name in LINKS and self._facts.links:
            return link_columns(self._facts.links, [name])[0]
        if name in _MADE:
            return pl.Series(_MADE[name](self._facts)).cast(ODDS_SCHEMA[name])
        return pl.Series([None], dtype=ODDS_SCHEMA[name]).new_from_index(0, self._facts.slot.size)

    def _split(self, row: int) -> list[str]:
        """The own texts of a row, apart."""
        found = self._apart.get(row)
        if found is None:
            found = self._apart[row] = (self._facts.links[row] or "").split(SEPARATOR)
        return found

    @cached_property
    def _terms(self) -> tuple[list[RawLabel], Longs]:
        terms, of = np.unique(self._facts.term, return_inverse=True)
        raw_labels = self._facts.raw_labels
        return [raw_labels[term] for term in terms.tolist()], of


LABELS = {name: at for at, name in enumerate((*RAW_LABEL, "line"))}
"""Columns of raw labels, and their places in one."""
_MADE: dict[str, Callable[[Facts], Any]] = {
    "sportsbook": lambda facts: pl.Series(facts.books, dtype=pl.String)[facts.book],
    "odds_decimal": lambda facts: facts.odds,
    "odds_american": lambda facts: facts.prices,
    "odds_probability": lambda facts: 1.0 / facts.odds,
    "is_live": lambda facts: facts.live,
    "is_active": lambda facts: facts.active,
    "flap": lambda facts: (facts.flags & FLAP) != 0,
    "rejected_upstream": lambda facts: (facts.flags & REJECTED) != 0,
    "confirmed": lambda facts: facts.confirmed != 0,
    "last_seen_at": lambda facts: moments_of(facts.seen),
    "odds_changed_at": lambda facts: moments_of(facts.changed),
    "event_start_time": lambda facts: moments_of(facts.start),
}


def moments_of(micros: Longs) -> pl.Series:
    """Convert microseconds to times; null if unknown."""
    column = pl.Series(micros, dtype=pl.Int64)
    if (micros == NO_TIME).any():
        column = pl.Series(micros.view("M8[us]"))
    return column.cast(TIME)
