"""What an update changes for a subscriber that holds the active prices of the board.

An update names rows that changed, and how they were before. That decides whether such a row is new to a subscriber, has
moved or left, or has changed in fields that a delta cannot carry.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.board.facts import Before, Facts
from oddsengine.board.rows import STATUS
from oddsengine.columns import NO_TIME, Bools, Longs, grown
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, LIVE
from oddsengine.live.update import Update
from oddsengine.query import values
from oddsengine.query.board_terms import TermIndex
from oddsengine.query.filter import RowFilter
from oddsengine.query.index import Index
from oddsengine.query.reader import Marks, OddsRows


class RowChanges(NamedTuple):
    """Rows of an update: facts, codes of their terms and books as in `terms`, and their previous state."""

    facts: Facts
    term: Longs
    book: Longs
    before: Before = Before.none()

    @property
    def live(self) -> Bools:
        live: Bools = (self.facts.flags & LIVE) != 0
        return live


class RowStates(NamedTuple):
    """Changed rows: those that moved, those to send in full (and whether they are new), and suspended ones."""

    rows: Longs  # positions among the facts
    moved: Bools
    whole: Bools
    fresh: Bools
    hidden: Bools
    removed: Bools  # removed rows: whether they were shown
    others: Bools  # rows named only by `Marks`: whether they are shown


class LastChanges:
    """By slot: the number of the last update that changed a row of the board for subscribers."""

    def __init__(self, number: int) -> None:
        self.number = number  # of the last update
        self.by_slot = np.zeros(0, np.int64)

    def note(self, update: Update, marks: Marks | None) -> None:
        """Note the rows of an update."""
        self.number = update.number
        rows = np.concatenate((update.rows, update.judged))
        slots = update.facts.slot[rows]
        changed = slots if marks is None else np.concatenate((slots, marks.others.slot))
        self.by_slot = grown(self.by_slot, int(changed.max(initial=-1)) + 1)
        self.by_slot[changed] = update.number


def classify(update: Update, marks: Marks | None) -> RowStates:
    """Classify the rows of an update."""
    facts, before = update.facts, update.before
    rows = np.union1d(update.rows, update.judged)
    changes = np.zeros(rows.size, np.uint8)
    changes[np.searchsorted(rows, update.rows)] = update.what
    active, was = facts.active[rows], before.shown
    other = was & active & ((changes & STATUS) != 0)
    if other.any():
        other &= (before.start != facts.start[rows]) | _relinked(facts, rows, before, other)
    other |= was & active & np.isin(rows, update.judged)
    if marks is not None:
        other |= was & active & marks.changed
    new = active & (~was | other)
    others = np.empty(0, bool) if marks is None else marks.others.active
    return RowStates(rows, was & active & ~new, new, ~was[new], was & ~active, update.removed_shown, others)


def _relinked(facts: Facts, at: Longs, before: Before, among: Bools) -> Bools:
    """Which rows have other texts of their own; only some are looked at."""
    out = np.zeros(at.size, bool)
    for i in np.flatnonzero(among).tolist() if facts.links else ():
        out[i] = facts.links[at[i]] != (before.links[i] if before.links else None)
    return out


class UpdateChanges:
    """One update for subscribers: rows that moved, rows to send in full, and rows that left."""

    def __init__(self, update: Update, index: Index, marks: Marks | None) -> None:
        self.number, self.now = update.number, update.now
        became = classify(update, marks)
        facts = update.facts
        removed = update.removed_rows
        lost, unshown = (_unchanged(removed.take(np.flatnonzero(which))) for which in (became.removed, ~became.removed))
        moved, changed, hidden = (
            (facts.take(became.rows[which]), update.before.take(which))
            for which in (became.moved, became.whole, became.hidden)
        )
        whole, before = changed
        fresh = became.fresh
        if marks is not None:
            others = marks.others.take(np.flatnonzero(became.others))
            whole, before = _both(whole, others), before.followed_by(Before.unchanged(others))
            fresh = np.concatenate((fresh, np.zeros(int(became.others.sum()), bool)))
        every = moved, (whole, before), hidden, lost, unshown
        self.terms = _terms(index, [part for part, _ in every])
        self._index = index
        self.update = update
        self.relabelled = None if marks is None else marks.relabelled
        self.moved, self.new, self.hidden, left, never = (self._resolved(*part) for part in every)
        self.left = [self.hidden, left]
        self.lost = [left, never]  # shown or not
        places = _places(whole, self.new)
        self.fresh: list[bool] = fresh[places].tolist()
        self._marks, self._became = marks, became
        self._places = {id(self.new): places, id(self.moved): _places(moved[0], self.moved)}
        self._main: dict[tuple[int, frozenset[str] | None], npt.NDArray[np.int8]] = {}

    def main(self, part: RowChanges, lines: frozenset[str] | None) -> npt.NDArray[np.int8]:
        """The main lines among the prices of some books, per row of `new` or `moved`, as `BoardReader.main`."""
        key = id(part), lines
        if key not in self._main:
            places, became = self._places[id(part)], self._became
            if self._marks is None:
                main = np.full(part.term.size, -1, np.int8)
            elif part is self.moved:
                main = self._marks.lines[lines].main[became.moved][places]
            else:
                own = self._marks.lines[lines]
                main = np.concatenate((own.main[became.whole], own.others[became.others]))[places]
            self._main[key] = main
        return self._main[key]

    def concerned(self, lines: frozenset[str] | None) -> Bools:
        """Per row of `new`: whether it changed for clients whose main lines are those of some books."""
        if self._marks is None:
            return np.ones(self.new.term.size, bool)
        became = self._became
        changed = self._marks.lines[lines].changed[became.others]
        return np.concatenate((np.ones(int(became.whole.sum()), bool), changed))[self._places[id(self.new)]]

    def matched(self, filter_: RowFilter) -> Bools | None:
        """Which rows of `new` matched a filter before the sports of events changed; None if none has."""
        before, new = self.relabelled, self.new
        if before is None or before.names is not self.terms.names:
            return None
        known = np.flatnonzero(new.term < len(before.texts))
        matched = np.zeros(new.term.size, bool)
        rows = new._replace(facts=new.facts.take(known), term=new.term[known], book=new.book[known])
        matched[known[TermFilter(filter_).matching_rows(rows, before)]] = True
        return matched

    @property
    def empty(self) -> bool:
        return not (self.moved.term.size or self.new.term.size or any(part.term.size for part in self.left))

    def _resolved(self, facts: Facts, before: Before) -> RowChanges:
        """Convert rows to current codes. Rows that no longer exist are left out, since their removal follows."""
        if facts.raw_labels is self.terms.names.numbering:
            return RowChanges(facts, facts.key >> BOOK_BITS, facts.key & BOOK_MASK, before)
        with self._index.reader() as reader:  # codes of terms have changed since
            rows = reader.board.rows
            remaining = np.flatnonzero(
                (facts.slot < rows.top) & (rows.id[np.minimum(facts.slot, rows.top - 1)] == facts.id)
            )
            facts = facts.take(remaining)
            key = rows.key[facts.slot]
        return RowChanges(facts, key >> BOOK_BITS, key & BOOK_MASK, before.take(remaining))

    def seen_again(self) -> RowChanges | None:
        """Rows seen again without facts of their own; None if codes of terms have changed since."""
        update = self.update
        terms = self.terms
        if not update.again.size or update.facts.raw_labels is not terms.names.numbering:
            return None
        key = update.again_key
        if int(key.max()) >> BOOK_BITS >= terms.columns["prop"].size:
            return None
        return RowChanges(update.facts, key >> BOOK_BITS, key & BOOK_MASK)

    def rows_of(self, part: RowChanges, at: Longs, lines: frozenset[str] | None = None) -> OddsRows:
        """Read the columns of some rows of `new` or `moved`, given their positions."""
        facts, term, index = part.facts.take(at), part.term[at], self._index
        start = facts.start
        if (start == NO_TIME).any():
            with index.reader():  # rows without a start have that of their event
                if index.terms is self.terms:
                    start = np.where(start == NO_TIME, index.begin[self.terms.names.terms.event.values[term]], start)
        return OddsRows(
            term.tolist(), part.book[at].tolist(), facts.id, facts.odds, facts.american, facts.seen, facts.changed,
            start, facts.moved, facts.flags, facts.rejected, self.main(part, lines)[at].tolist(), facts.links or None,
            self.terms.texts, book_ids(facts.books),
        )  # fmt: skip


class _Column:
    """The terms that match one condition, computed once per distinct text."""

    def __init__(self, name: str, meant: Callable[[Any], bool]) -> None:
        self._name, self._meant = name, meant
        self._texts: list[bool] = []

    def over(self, terms: TermIndex, first: int, last: int) -> Bools:
        """Match a range of terms."""
        column = terms.columns[self._name]
        self._texts.extend(map(self._meant, column.texts[len(self._texts) :]))
        return np.array(self._texts, bool)[column.values[first:last]]


class TermFilter:
    """The terms and books that match a filter, by code. Sport, league, market and event match as in queries."""

    def __init__(self, filter_: RowFilter) -> None:
        self._filter = filter_
        self._terms: TermIndex | None = None
        self._mask = np.empty(0, bool)
        self._columns: list[list[_Column]] = []
        self._books = np.empty(0, bool)

    def matching_rows(self, rows: RowChanges, terms: TermIndex) -> Longs:
        """Return the positions of the rows that match."""
        if not rows.term.size:
            return np.empty(0, np.int64)
        if terms is not self._terms:
            self._terms, self._mask, self._columns = terms, np.empty(0, bool), self._conditions()
        if int(rows.term.max()) >= self._mask.size:
            self._learn(terms)
        chosen = self._mask[rows.term]
        if self._filter.books is not None:
            if len(rows.facts.books) > self._books.size:
                self._books = np.array([book in self._filter.books for book in book_ids(rows.facts.books)], bool)
            chosen = chosen & self._books[rows.book]
        return np.flatnonzero(chosen)

    def _learn(self, terms: TermIndex) -> None:
        first, last = self._mask.size, terms.columns["prop"].size
        new = np.ones(last - first, bool)
        for either in self._columns:
            new &= np.logical_or.reduce([column.over(terms, first, last) for column in either])
        if self._filter.event is not None:
            filter_ = set(self._filter.event)
            new &= np.array([text.event_id in filter_ for text in terms.texts[first:last]], bool)
        self._mask = np.concatenate((self._mask, new))

    def _conditions(self) -> list[list[_Column]]:
        """List conditions that must all hold; each holds if any of its columns matches."""
        filter_, out = self._filter, list[list[_Column]]()
        if filter_.sport is not None:
            sports = set(map(values.sport_id, filter_.sport))
            out.append([_Column("sport", sports.__contains__)])
        if filter_.league is not None:
            leagues = filter_.league
            out.append([_Column("league", lambda place: values.in_league(leagues, *place))])
        if filter_.market is not None:
            kinds = [kind for name in filter_.market for kind in catalog.categories().get(name.lower(), (name,))]
            plain = [kind for kind in kinds if kind != "player_*"]
            either = [_Column("market", lambda text: any(catalog.is_market(kind, *text) for kind in plain))]
            if len(plain) < len(kinds):
                either.append(_Column("prop", bool))
            out.append(either)
        return out


def _unchanged(facts: Facts) -> tuple[Facts, Before]:
    """Rows that did not change, with their previous state."""
    return facts, Before.unchanged(facts)


def _places(facts: Facts, rows: RowChanges) -> list[int]:
    of = {ident: at for at, ident in enumerate(facts.id.tolist())}
    return [of[ident] for ident in rows.facts.id.tolist()]


def _both(first: Facts, second: Facts) -> Facts:
    pairs: Any = zip(first.columns, second.columns, strict=True)
    columns = [np.concatenate(pair) for pair in pairs]
    return Facts._make((*columns, first.links + second.links, first.raw_labels, first.books))


def book_ids(books: Sequence[str]) -> list[str]:
    return [catalog.book(name).id for name in books]


def _terms(index: Index, parts: Sequence[Facts]) -> TermIndex:
    """Read the texts of the terms of some rows, loading new terms as needed."""
    terms = index.terms
    most = max((int(part.key.max(initial=-1)) >> BOOK_BITS for part in parts), default=-1)
    if terms.names.numbering is not parts[0].raw_labels or most >= terms.columns["prop"].size:
        with index.reader() as reader:
            terms = reader.terms
    return terms
