"""Moves: what an update means to somebody who holds the active prices of the board.

An update names the rows that are not what they were. Whether such a row is new to a subscriber, moved, or left depends
on what it was before, which a `Mirror` remembers: per row whether it is shown, and what of it no delta can carry.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.board.facts import Facts
from oddsengine.board.quotes import SEPARATOR
from oddsengine.board.rows import BOOK_BITS, LIVE, ON, STATUS, SUSPENDED
from oddsengine.board.state import Board
from oddsengine.columns import NO_TIME, Ints, Longs
from oddsengine.query import Found, Index, Marks, Terms
from oddsengine.timestamps import timestamps
from oddsengine.update import Update, hexadecimal
from oddsengine_service.stream.sse import OddsDelta, raw
from oddsengine_service.wire.numbers import americans
from oddsengine_service.wire.odds import ODDS, fields_of

_BOOK = (1 << BOOK_BITS) - 1
Bools = npt.NDArray[np.bool_]
_NONE: Bools = np.empty(0, bool)


class Rows(NamedTuple):
    """Rows of an update: facts, codes of their terms and books as `terms` has them, and what they were before."""

    facts: Facts
    term: Longs
    book: Longs
    was_live: Bools = _NONE  # without meaning for rows that were not shown

    @property
    def live(self) -> Bools:
        """Which rows are live now."""
        live: Bools = (self.facts.flags & LIVE) != 0
        return live


class Became(NamedTuple):
    """Of the rows that changed: which moved, are to be sent whole (which of these were not shown), are suspended."""

    rows: Longs  # places of those rows among the facts
    moved: Bools
    whole: Bools
    fresh: Bools
    hidden: Bools
    gone: Bools  # of the rows that left the board: which were shown
    others: Bools  # of the rows that only `Marks` names: which were shown
    was_live: Bools  # of the rows that changed, and of those that left the board: the flag before this update
    gone_live: Bools


class Mirror:
    """What is shown of a board, by slot."""

    def __init__(self, board: Board, number: int) -> None:
        rows = board.rows
        self.number = number
        self._shown = (rows.state == ON) & ((rows.flags & SUSPENDED) == 0)
        self._live = (rows.flags & LIVE) != 0
        self._start = rows.start.copy()
        self._links: list[str | None] = list(rows.links)

    def take(self, update: Update, marks: Marks | None) -> "Became":
        """What became of the rows of an update."""
        facts = update.facts
        rows = np.union1d(update.rows, update.judged)
        what = np.zeros(rows.size, np.uint8)
        what[np.searchsorted(rows, update.rows)] = update.what
        slots = facts.slot[rows]
        self._room(int(max(slots.max(initial=-1), update.gone.slot.max(initial=-1))) + 1)
        self.number = update.number
        active = (facts.flags[rows] & SUSPENDED) == 0
        was, was_live = self._shown[slots], self._live[slots]
        other = was & active & ((what & STATUS) != 0)
        if other.any():
            other &= (self._start[slots] != facts.start[rows]) | self._relinked(facts, rows, slots, other)
        other |= was & active & np.isin(rows, update.judged)
        if marks is not None:
            other |= was & active & marks.changed
        self._shown[slots] = active
        self._live[slots] = (facts.flags[rows] & LIVE) != 0
        self._start[slots] = facts.start[rows]
        self._note(facts, rows, slots)
        new = active & (~was | other)
        gone, gone_live = self._shown[update.gone.slot], self._live[update.gone.slot]
        self._shown[update.gone.slot] = False
        others = np.empty(0, bool) if marks is None else self._shown[marks.others.slot]
        return Became(
            rows, was & active & ~new, new, ~was[new], was & ~active, gone, others, was_live, gone_live
        )  # fmt: skip

    def _room(self, top: int) -> None:
        have = self._shown.size
        if top > have:
            more = max(top, have + have // 4) - have
            self._shown = np.concatenate((self._shown, np.zeros(more, bool)))
            self._live = np.concatenate((self._live, np.zeros(more, bool)))
            self._start = np.concatenate((self._start, np.full(more, NO_TIME)))

    def _relinked(self, facts: Facts, at: Longs, slots: Ints, among: Bools) -> Bools:
        out = np.zeros(slots.size, bool)
        if facts.links:
            n = len(self._links)
            for i in np.flatnonzero(among).tolist():
                slot = int(slots[i])
                out[i] = facts.links[at[i]] != (self._links[slot] if slot < n else None)
        return out

    def _note(self, facts: Facts, at: Longs, slots: Ints) -> None:
        if not facts.links or not slots.size:
            return
        links = self._links
        links.extend([None] * (int(slots.max()) + 1 - len(links)))
        for slot, i in zip(slots.tolist(), at.tolist(), strict=True):
            links[slot] = facts.links[i]


class Moves:
    """One update as groups need it: rows that moved, are sent whole, and left. Each is encoded when first sent.

    `crossed` are those of the rows that moved that went live, or are no longer: new to who wants only one of these.
    """

    def __init__(self, update: Update, mirror: Mirror, index: Index, marks: Marks | None) -> None:
        self.number, self.now = update.number, update.now
        became = mirror.take(update, marks)
        facts = update.facts
        is_live = (facts.flags[became.rows] & LIVE) != 0
        crossed = became.moved & (became.was_live != is_live)
        lost, unshown = (
            (update.gone.take(np.flatnonzero(which)), became.gone_live[which]) for which in (became.gone, ~became.gone)
        )
        moved, changed, hidden, over = (
            (facts.take(became.rows[which]), became.was_live[which])
            for which in (became.moved, became.whole, became.hidden, crossed)
        )
        whole, was_live = changed
        main, fresh = np.full(whole.id.size, -1, np.int8), became.fresh
        if marks is not None:
            others = marks.others.take(np.flatnonzero(became.others))
            whole, was_live = _both(whole, others), np.concatenate((was_live, (others.flags & LIVE) != 0))
            main = np.concatenate((marks.main[became.whole], marks.others_main[became.others]))
            fresh = np.concatenate((fresh, np.zeros(int(became.others.sum()), bool)))
        every = moved, (whole, was_live), hidden, lost, unshown, over
        self.terms = _terms(index, [part for part, _ in every])
        self._index = index
        self._update = update
        self.moved, self.new, self.hidden, left, never, self.crossed = (self._resolved(*part) for part in every)
        self.left = [self.hidden, left]
        self.lost = [left, never]  # whether they were shown or not
        kept = _places(whole, self.new)
        self.fresh: list[bool] = fresh[kept].tolist()
        crossed_main = np.full(over[0].id.size, -1, np.int8) if marks is None else marks.main[crossed]
        self._main: dict[int, list[int]] = {
            id(self.new): main[kept].tolist(), id(self.crossed): crossed_main[_places(over[0], self.crossed)].tolist(),
        }  # fmt: skip
        self._deltas: list[msgspec.Raw] | None = None
        self._fulls: dict[tuple[int, str], list[msgspec.Raw]] = {}
        self._ids: dict[int, list[str]] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing is to be told."""
        return not (self.moved.term.size or self.new.term.size or any(part.term.size for part in self.left))

    def _resolved(self, facts: Facts, was_live: Bools) -> Rows:
        """Rows by the codes of now; a row that cannot be found any more is left out, for its removal is on its way."""
        if facts.wordings is self.terms.names.wordings:
            return Rows(facts, facts.key >> BOOK_BITS, facts.key & _BOOK, was_live)
        with self._index.reading() as reading:  # terms have other codes since
            rows = reading.board.rows
            there = np.flatnonzero(
                (facts.slot < rows.top) & (rows.id[np.minimum(facts.slot, rows.top - 1)] == facts.id)
            )
            facts = facts.take(there)
            key = rows.key[facts.slot]
        return Rows(facts, key >> BOOK_BITS, key & _BOOK, was_live[there])

    def again(self) -> tuple[Rows, list[str], list[str]] | None:
        """Rows that were only seen again, their ids and when; None where terms have other codes since."""
        update = self._update
        terms = self.terms
        if not update.again.size or update.facts.wordings is not terms.names.wordings:
            return None
        key = update.again_key
        if int(key.max()) >> BOOK_BITS >= terms.columns["prop"].size:
            return None
        return (
            Rows(update.facts, key >> BOOK_BITS, key & _BOOK),
            hexadecimal(update.again),
            timestamps(update.again_seen),
        )

    # ---- encoded ----

    def ids(self, rows: Rows) -> list[str]:
        """Ids of one of the parts."""
        found = self._ids.get(id(rows))
        if found is None:
            found = self._ids[id(rows)] = hexadecimal(rows.facts.id)
        return found

    def deltas(self) -> list[msgspec.Raw]:
        """The rows that moved."""
        if self._deltas is None:
            self._deltas = self._delta(self.moved)
        return self._deltas

    def locks(self) -> list[msgspec.Raw]:
        """The rows that were suspended."""
        return self._delta(self.hidden)

    def _delta(self, rows: Rows) -> list[msgspec.Raw]:
        facts, said = rows.facts, self.terms.said
        return raw(
            map(
                OddsDelta, self.ids(rows), americans(facts.odds, facts.american),
                np.round(facts.odds, 6).tolist(), np.round(1.0 / facts.odds, 6).tolist(),
                [said[t].line for t in rows.term.tolist()], ((facts.flags & LIVE) != 0).tolist(),
                timestamps(facts.changed),
            )
        )  # fmt: skip

    def fulls(self, part: Rows, state: str) -> list[msgspec.Raw]:
        """The rows that are new, or that crossed, with links for a state."""
        found = self._fulls.get((id(part), state))
        if found is None:
            found = self._fulls[id(part), state] = raw(shown(self._found(part), state))
        return found

    def _found(self, part: Rows) -> Found:
        facts, term, index = part.facts, part.term, self._index
        start = facts.start
        if (start == NO_TIME).any():
            with index.reading():  # an event's start holds for its rows
                if index.terms is self.terms:
                    start = np.where(start == NO_TIME, index.begin[self.terms.names.event.values[term]], start)
        return Found(
            term.tolist(), part.book.tolist(), facts.id, facts.odds, facts.american, facts.seen, facts.changed,
            start, facts.moved, facts.flags, facts.rejected, self._main[id(part)], facts.links or None, self.terms.said,
            book_ids(facts.books),
        )  # fmt: skip


_rows = fields_of(ODDS)


def shown(found: Found, state: str) -> list[dict[str, Any]]:
    """Rows as they go out, with links for a state."""
    rows = _rows(found)
    if not state:
        return rows
    for at, row in enumerate(rows):
        link = found.links[at] if found.links is not None else None
        url = link.split(SEPARATOR, 2)[1] if link is not None else ""
        if url:
            row["deep_link"] = catalog.localised(url, state) or None
        else:
            made = catalog.link(
                row["sportsbook"], event=row["external_event_id"] or "", market=row["market_id"] or "",
                selection=row["selection_id"] or "", state=state,
            )  # fmt: skip
            row["deep_link"] = made.url if made is not None else None
    return rows


def _places(facts: Facts, rows: Rows) -> list[int]:
    """Where some of those rows stand among all of them."""
    of = {ident: at for at, ident in enumerate(facts.id.tolist())}
    return [of[ident] for ident in rows.facts.id.tolist()]


def _both(first: Facts, second: Facts) -> Facts:
    """Two parts of one board's rows as one."""
    pairs: Any = zip(first.columns, second.columns, strict=True)
    columns = [np.concatenate(pair) for pair in pairs]
    return Facts._make((*columns, first.links + second.links, first.wordings, first.books))


def book_ids(books: Sequence[str]) -> list[str]:
    """Ids of books by code."""
    return [catalog.book(name).id for name in books]


def _terms(index: Index, parts: Sequence[Facts]) -> Terms:
    """What the terms of some rows say, read as far as is needed."""
    terms = index.terms
    most = max((int(part.key.max(initial=-1)) >> BOOK_BITS for part in parts), default=-1)
    if terms.names.wordings is not parts[0].wordings or most >= terms.columns["prop"].size:
        with index.reading() as reading:
            terms = reading.terms
    return terms
