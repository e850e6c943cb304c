"""Names: codes for the texts of quotes (terms, books, kinds, events), with a column per property.

A *term* is one wording with its line: an offer without its book. It is interpreted once, when first quoted. Codes are
assigned in order of appearance and columns only grow, so a reference to a column stays valid; `Names.renewed` makes a
smaller set when most terms are no longer used.
"""

import copy
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.fair_close import Estimator, estimator
from oddsengine.find.ids import Hashes, ladders, word, words
from oddsengine.groups import Groups, Ints, Words, checksum
from oddsengine.identity import Wording, crossed, leading, parts_of_rows, read, thresholds
from oddsengine.layout import BOOK_BITS, MOST_SUBJECTS, UNREAD, pack, too_many, unit_of
from oddsengine.reasons import CODES
from oddsengine.tails import Forms, forms
from oddsengine.traits import Kind, Traits, traits
from oddsengine.twins import Rules, rules

_NO_LINE = CODES["no_line"]


class Column:
    """A numpy column with `append`; growing it leaves earlier `values` unchanged."""

    def __init__(self, dtype: npt.DTypeLike, width: int = 1) -> None:
        self._data: npt.NDArray[Any] = np.zeros(256 if width == 1 else (256, width), dtype)
        self.size = 0

    def __copy__(self) -> "Column":
        fresh = Column.__new__(Column)
        fresh._data, fresh.size = self._data.copy(), self.size
        return fresh

    def append(self, value: Any) -> None:
        """Add one value (or row of values)."""
        if self.size == self._data.shape[0]:
            grown = np.zeros((self.size + max(256, self.size // 2), *self._data.shape[1:]), self._data.dtype)
            grown[: self.size] = self._data
            self._data = grown
        self._data[self.size] = value
        self.size += 1

    @property
    def values(self) -> npt.NDArray[Any]:
        """The current values, writable in place by the owner."""
        return self._data[: self.size]


class Event(NamedTuple):
    """One event, and the pairs of team names (home, away) that its rows use."""

    id: str
    pairs: dict[tuple[str, str], int]  # team names -> code in `Names.pair_rows`


class _Reading(NamedTuple):
    """Side, subject and threshold of a term, for one orientation of its event's teams."""

    side: int
    subject: str
    threshold: int


class _Term(NamedTuple):
    """The meaning of one wording with its line."""

    kind: Kind
    with_draw: Kind
    two_way: int
    verdict: int
    teams: tuple[str, str]
    straight: _Reading
    turned: _Reading


class Names:
    """Codes and columns of terms, books, kinds, events, pairs of teams and units."""

    def __init__(self, off: frozenset[int] = frozenset()) -> None:
        self._off = off  # codes of disabled guards
        # Terms
        self.terms: dict[Wording, int] = {}
        self.wordings: list[Wording] = []
        self.event = Column(np.int32)
        self.place = Column(np.int64, 4)  # sort keys of its rows: see `layout.pack`
        self.other = Column(np.int64, 4)  # the same with home and away swapped
        self.turned = Column(np.uint8)
        self.pair = Column(np.int32)
        self.tie = Column(np.uint32)  # checksum of its texts, see `groups.checksum`
        self.id = Column(np.uint64)  # of event, market, subject, side and line
        self.stem = Column(np.uint64)  # the same without the line
        self.published = Column(np.int32)  # market type in responses: an index into `published_names`
        self.units = Column(np.int32, 2)  # pre-match, live
        # Books, market names, subjects, kinds
        self.books: list[str] = []
        self.book_hash: Words = np.empty(0, np.uint64)
        self.book_codes: dict[str, int] = {}
        self.book_rank: Ints = np.empty(0, np.int32)
        self.market_names: list[str] = []
        self._market_codes: dict[str, int] = {}
        self.name_rank: Ints = np.empty(0, np.int32)
        self.published_names: list[str] = []
        self._published_codes: dict[str, int] = {}
        self.subjects: list[str] = ["", "home", "away"]
        self._subject_hash = Column(np.uint64)
        self._kind_hash = Column(np.uint64)
        self._event_hash = Column(np.uint64)
        for subject in self.subjects:
            self._subject_hash.append(word(subject))
        self._forms: Forms | None = None
        self._formed = (-1, -1)
        self._estimator: Estimator | None = None
        self._estimated = (-1, -1, -1, -1)
        self._twins: Rules | None = None
        self._twinned = (-1, -1)
        self._subject_codes: dict[str, int] = {"": 0, "\x00home": 1, "\x00away": 2}
        self.kinds: list[Kind] = []
        self._kind_codes: dict[Kind, int] = {}
        # Events, pairs, units
        self.events: list[Event] = []
        self.event_codes: dict[str, int] = {}
        self.event_units: list[list[int]] = []
        self.sports: list[tuple[catalog.Sport, str]] = []
        self.pair_rows = Column(np.int32)  # number of rows on the board with these team names
        self.pair_event = Column(np.int32)
        self.event_lead = Column(np.int32)  # the pair that decides who is home
        self.event_many = Column(np.uint8)  # 1: more than one pair
        self.unit_codes: dict[tuple[int, int, int], int] = {}
        self.unit_event = Column(np.int32)
        self.unit_live = Column(np.uint8)
        self._groups: dict[Any, int] = {}
        self._traits: Traits | None = None

    def __deepcopy__(self, memo: Any) -> "Names":
        """Copy what can change; texts and read-only objects are shared."""
        fresh = Names.__new__(Names)
        for name, value in vars(self).items():
            setattr(fresh, name, copy.copy(value))
        fresh.events = [Event(event.id, dict(event.pairs)) for event in self.events]
        fresh.event_units = [list(units) for units in self.event_units]
        return fresh

    def _term_columns(self) -> tuple[Column, ...]:
        return (
            self.event, self.pair, self.turned, self.place, self.other, self.units, self.id, self.stem, self.tie,
            self.published,
        )  # fmt: skip

    @property
    def terms_held(self) -> int:
        """Number of terms that are complete in all columns."""
        columns = self._term_columns()
        return min(len(self.wordings), *(column.size for column in columns))

    @property
    def whole(self) -> bool:
        """Whether all columns have consistent lengths, so that no insertion was interrupted."""
        terms = self._term_columns()
        events = (len(self.event_units), len(self.sports), len(self.event_codes))
        lengths = [
            {len(self.wordings), *(column.size for column in terms)},
            {len(self.events), *events, self._event_hash.size, self.event_lead.size, self.event_many.size},
            {self.pair_rows.size, self.pair_event.size, sum(len(event.pairs) for event in self.events)},
            {self.unit_event.size, self.unit_live.size, len(self.unit_codes)},
            {len(self.kinds), len(self._kind_codes), self._kind_hash.size},
            {len(self.subjects), self._subject_hash.size, len(self._subject_codes)},
            {len(self.market_names), len(self._market_codes), self.name_rank.size},
            {len(self.published_names), len(self._published_codes)},
            {len(self.books), self.book_rank.size, self.book_hash.size},
        ]
        return all(len(found) == 1 for found in lengths) and len(self.terms) >= len(self.wordings)

    # ---- books and market names ----

    def book(self, name: str) -> int:
        """Code of a book in any spelling; a new book is added."""
        code = self.book_codes.get(name)
        if code is None:
            known = catalog.book(name).id
            code = self.book_codes.get("\x00" + known)
            if code is None:
                code = len(self.books)
                if code >= 1 << BOOK_BITS:
                    raise too_many("books", name, 1 << BOOK_BITS)
                self.books.append(name)
                self.book_codes["\x00" + known] = code
                self.book_rank = _ranks(self.books)
                self.book_hash = words(self.books)
                self._traits = None
            self.book_codes[name] = code
        return code

    def known_book(self, name: str) -> int | None:
        """Code of a book, or None if it was never quoted."""
        return self.book_codes.get(name, self.book_codes.get("\x00" + catalog.book(name).id))

    def sorted_books(self) -> tuple[str, ...]:
        """The books in order of rank."""
        return tuple(sorted(self.books))

    @property
    def traits(self) -> Traits:
        """Traits of the kinds, and of the books in order of rank."""
        if self._traits is None:
            self._traits = traits(self.kinds, self.sorted_books())
        return self._traits

    @property
    def forms(self) -> Forms:
        """Distributions of the kinds in the sports of the events."""
        now = len(self.kinds), len(self.events)
        if self._forms is None or self._formed != now:
            self._forms, self._formed = forms(self.kinds, self.sports), now
        return self._forms

    @property
    def twins(self) -> Rules:
        """Outcomes of the kinds that settle on the same fact in the sports of the events."""
        now = len(self.kinds), len(self.events)
        if self._twins is None or self._twinned != now:
            self._twins, self._twinned = rules(self.kinds, self.sports), now
        return self._twins

    def estimator(self, table: catalog.FairTable) -> Estimator:
        """The estimator's table, resolved for the kinds, events and books."""
        now = len(self.kinds), len(self.events), len(self.books), id(table)
        if self._estimator is None or self._estimated != now:
            self._estimator = estimator(self.kinds, self.sports, self.sorted_books(), table)
            self._estimated = now
        return self._estimator

    def event_hashes(self, groups: Groups) -> Words:
        """Hashes of the events' ids, per ladder."""
        return cast(Words, self._event_hash.values[groups.event])

    def unit_event_hashes(self) -> Words:
        """Hashes of the events' ids, per unit."""
        return cast(Words, self._event_hash.values[self.unit_event.values])

    def hashes(self, groups: Groups) -> Hashes:
        """Hashes from which the ids of opportunities in some gathered units are computed."""
        g = groups
        ladder = ladders(
            self._event_hash.values[g.event], g.live, self._kind_hash.values[g.kind],
            self._subject_hash.values[g.subject],
        )  # fmt: skip
        books = np.empty_like(self.book_hash)
        books[self.book_rank] = self.book_hash
        return Hashes(ladder, books)

    def _market_name(self, name: str) -> int:
        code = self._market_codes.get(name)
        if code is None:
            code = self._market_codes[name] = len(self.market_names)
            self.market_names.append(name)
            self.name_rank = _ranks(self.market_names)
        return code

    def _published(self, wording: Wording, event: int) -> int:
        """Code of the market type under which a wording is published; a new one is added."""
        sport = wording[1] or self.sports[event][0].id
        name = catalog.published_name(wording[5] or "", sport, wording[10] or "", wording[6] or "")
        code = self._published_codes.get(name)
        if code is None:
            code = self._published_codes[name] = len(self.published_names)
            self.published_names.append(name)
        return code

    def _kind(self, kind: Kind) -> int:
        code = self._kind_codes.get(kind)
        if code is None:
            code = self._kind_codes[kind] = len(self.kinds)
            self.kinds.append(kind)
            self._kind_hash.append(word(f"{kind.period}/{kind.family}"))
            self._traits = None
        return code

    def _subject(self, name: str, kind: Kind) -> int:
        if kind.subject != "player":
            return self._subject_codes["\x00" + name if name else ""]
        if not name:
            return 0
        code = self._subject_codes.get(name)
        if code is None:
            if len(self.subjects) == MOST_SUBJECTS:
                raise too_many("players", name, MOST_SUBJECTS)
            code = self._subject_codes[name] = len(self.subjects)
            self.subjects.append(name)
            self._subject_hash.append(word(name))
        return code

    # ---- terms ----

    def learn(self, wordings: Sequence[Wording]) -> list[int]:
        """Codes of wordings with their lines; new ones are interpreted and added together."""
        plain = [(*(text or None for text in wording[:-1]), wording[-1]) for wording in wordings]  # "" counts as None
        self._add(list(map(_interned, dict.fromkeys(wording for wording in plain if wording not in self.terms))))
        codes = [self.terms[wording] for wording in plain]
        self.terms.update(zip(wordings, codes, strict=True))
        return codes

    def renewed(self, used: npt.NDArray[np.integer]) -> "Names":
        """New names with the same books, and only the terms whose codes are in `used` (ascending), renumbered."""
        fresh = Names(self._off)
        for book in self.books:
            fresh.book(book)
        fresh._add([self.wordings[code] for code in used.tolist()])
        return fresh

    def _add(self, wordings: Sequence[Wording]) -> None:
        if not wordings:
            return
        terms = read(parts_of_rows(wordings), self._off)
        line = np.array([np.nan if wording[-1] is None else wording[-1] for wording in wordings], np.float64)
        straight, fits = thresholds(terms, line, terms.side)
        turned, _ = thresholds(terms, line, terms.side_turned)
        lined = np.array([kind.has_line for kind in terms.kinds], bool)[terms.kind]
        stray = ~fits & (lined | (_NO_LINE not in self._off)) & (terms.verdict == 0)
        names, kinds = terms.names, terms.kinds
        columns = (
            terms.kind, terms.with_draw, terms.two_way, np.where(stray, _NO_LINE, terms.verdict), terms.home,
            terms.away, terms.side, terms.subject, straight, terms.side_turned, terms.subject_turned, turned,
        )  # fmt: skip
        for wording, kind, with_draw, two_way, verdict, home, away, *readings in zip(
            wordings, *(column.tolist() for column in columns), strict=True
        ):
            readings[1], readings[4] = terms.subject_name(readings[1]), terms.subject_name(readings[4])
            both = _Reading(*readings[:3]), _Reading(*readings[3:])
            self._append(
                wording, _Term(kinds[kind], kinds[with_draw], two_way, verdict, (names[home], names[away]), *both)
            )

    def _append(self, wording: Wording, term: "_Term") -> None:
        stem, text = _identifying(wording, term)
        event = self._event(wording)
        pair = self._pair(event, term.teams)
        group = self._group(term, event)
        flip = self._turned(pair, event)
        readings = (term.turned, term.straight) if flip else (term.straight, term.turned)
        place, other = (self._packed(term, wording, reading) for reading in readings)
        units = self._unit(event, 0, group), self._unit(event, 1, group)
        published = self._published(wording, event)
        ids = np.uint64(_stable(text)), np.uint64(_stable(stem)), checksum(wording)
        # Nothing below can fail, so the columns keep equal lengths.
        code = len(self.wordings)
        self.wordings.append(wording)
        self.event.append(event)
        self.pair.append(pair)
        self.turned.append(flip)
        self.place.append(place)
        self.other.append(other)
        self.units.append(units)
        self.published.append(published)
        for column, value in zip((self.id, self.stem, self.tie), ids, strict=True):
            column.append(value)
        self.terms[wording] = code

    def _packed(self, term: "_Term", wording: Wording, reading: "_Reading") -> tuple[int, int, int, int]:
        """Sort keys and verdict of a term's rows."""
        return pack(
            self._kind(term.kind), self._kind(term.with_draw), self._subject(reading.subject, term.kind),
            reading.threshold, reading.side if reading.side >= 0 else UNREAD, self._market_name(wording[5] or ""),
            term.two_way, term.verdict,
        )  # fmt: skip

    def _group(self, term: "_Term", event: int) -> int:
        """Code of the group of terms that are judged and searched together within an event."""
        sport, league = self.sports[event]
        name = unit_of(term.kind, sport.id, league, term.verdict, term.two_way)
        return self._groups.setdefault(name, len(self._groups))

    def _unit(self, event: int, live: int, group: int) -> int:
        key = (event, live, group)
        code = self.unit_codes.get(key)
        if code is None:
            code = self.unit_codes[key] = self.unit_event.size
            self.unit_event.append(event)
            self.unit_live.append(live)
            self.event_units[event].append(code)
        return code

    # ---- events, and which team is home ----

    def _event(self, wording: Wording) -> int:
        name = wording[0]
        code = self.event_codes.get(name)
        if code is None:
            code = self.event_codes[name] = len(self.events)
            self.events.append(Event(name, {}))
            self._event_hash.append(word(name))
            self.event_units.append([])
            self.sports.append((catalog.sport(wording[1] or ""), wording[2] or ""))
            self.event_lead.append(-1)
            self.event_many.append(0)
        return code

    def _pair(self, event: int, teams: tuple[str, str]) -> int:
        pairs = self.events[event].pairs
        code = pairs.get(teams)
        if code is None:
            code = pairs[teams] = self.pair_rows.size
            self.pair_rows.append(0)
            self.pair_event.append(event)
            if len(pairs) > 1:
                self.event_many.values[event] = 1
            else:
                self.event_lead.values[event] = code
        return code

    def _turned(self, pair: int, event: int) -> int:
        """Whether a pair names the teams in the opposite order to its event."""
        lead = int(self.event_lead.values[event])
        return 0 if pair == lead else int(self._crossed(event, lead)[pair])

    def _crossed(self, event: int, lead: int) -> dict[int, bool]:
        """For each pair of an event, whether it names the teams in the opposite order to the leading pair."""
        pairs = self.events[event].pairs
        home, away = np.array(list(pairs)).T
        at = list(pairs.values()).index(lead)
        return dict(zip(pairs.values(), crossed(home, away, home[at], away[at]).tolist(), strict=True))

    def settle(self, events: Sequence[int]) -> list[int]:
        """Decide again which team is home in some events, from the current rows; return the events that changed."""
        changed = []
        for event in events:
            pairs = self.events[event].pairs
            codes = np.fromiter(pairs.values(), np.int64)
            rows = self.pair_rows.values[codes]
            codes, teams = codes[rows > 0], np.array(list(pairs))[rows > 0]
            if not codes.size:
                continue
            at = int(leading(np.zeros(codes.size, np.int64), teams[:, 0], teams[:, 1], rows[rows > 0], 1)[0])
            first = int(codes[at])
            if first == self.event_lead.values[event]:
                continue
            self.event_lead.values[event] = first
            flips = self._crossed(event, first)
            moved = False
            place, other = self.place.values, self.other.values
            for term in np.flatnonzero(self.event.values == event).tolist():
                pair = int(self.pair.values[term])
                if flips[pair] != self.turned.values[term]:
                    moved = True
                    self.turned.values[term] = flips[pair]
                    place[term], other[term] = other[term].copy(), place[term].copy()
                if pair == first:
                    wording = self.wordings[term]
                    self.sports[event] = (catalog.sport(wording[1] or ""), wording[2] or "")
            if moved:
                changed.append(event)
        return changed


def _identifying(wording: Wording, term: _Term) -> tuple[str, str]:
    """Text that a row's id is hashed from, without and with the line: event, market, subject, side; else the texts."""
    sides = term.with_draw.outcomes
    market = "|".join(wording[at] or "" for at in (5, 10, 6))
    if term.verdict or not 0 <= term.straight.side < len(sides):
        stem = f"{wording[0]}|{market}|{wording[9]}|{wording[11]}|{wording[7]}|{wording[8]}"
        return stem, f"{stem}|{wording[-1]}"
    stem = f"{wording[0]}|{market}|{term.straight.subject}|{sides[term.straight.side]}"
    return stem, f"{stem}|{term.straight.threshold}"


def _stable(text: str) -> int:
    """As `ids.word`, without caching the text."""
    return int(word.__wrapped__(text))


def _ranks(names: list[str]) -> Ints:
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int32)
    rank[order] = np.arange(len(names), dtype=np.int32)
    return rank


def _interned(wording: Wording) -> Wording:
    """A wording with interned texts."""
    return tuple(sys.intern(part) if type(part) is str else part for part in wording)
