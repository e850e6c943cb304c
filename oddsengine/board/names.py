"""Names: codes for the texts of quotes (terms, books, kinds, events), with a column per property.

A *term* is one wording with its line: an offer without its book. It is interpreted once, when first quoted. Codes are
assigned in order of appearance and columns only grow, so a reference to a column stays valid; `Names.renewed` makes a
smaller set when most terms are no longer used.
"""

import copy
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import Ints, Longs, Words, grown
from oddsengine.detection.ids import Hashes, hash_books, hash_text, hash_texts, ladders
from oddsengine.detection.tails import Forms, forms
from oddsengine.identity.groups import Groups, checksum, distinct
from oddsengine.identity.layout import (
    BOOK_BITS,
    BOOK_MASK,
    MOST_SUBJECTS,
    OTHER_GAME,
    UNREAD,
    kind_and_verdict,
    pack,
    too_many,
    unit_of,
)
from oddsengine.identity.traits import MarketKind, Traits, traits
from oddsengine.identity.twins import Rules, rules
from oddsengine.identity.wording import (
    Game,
    Wording,
    crossed,
    game,
    leading,
    leading_league,
    other_games,
    parts_of_rows,
    read_wordings,
    thresholds,
)
from oddsengine.pricing.close import Estimator, estimator
from oddsengine.pricing.model import ModelPrices

_NO_LINE, _OTHER_GAME = CODES["no_line"], CODES["other_game"]
T = TypeVar("T")


class GrowingColumn:
    """A numpy column with `append`; growing it leaves earlier `values` unchanged."""

    def __init__(self, dtype: npt.DTypeLike, width: int = 1) -> None:
        self._data: npt.NDArray[Any] = np.zeros(256 if width == 1 else (256, width), dtype)
        self.size = 0

    def __copy__(self) -> "GrowingColumn":
        fresh = GrowingColumn.__new__(GrowingColumn)
        fresh._data, fresh.size = self._data.copy(), self.size
        return fresh

    def append(self, value: Any) -> None:
        """Add one value (or row of values)."""
        self._data = grown(self._data, self.size + 1)
        self._data[self.size] = value
        self.size += 1

    @property
    def values(self) -> npt.NDArray[Any]:
        """The current values, writable in place by the owner."""
        return self._data[: self.size]


class Votes:
    """What the rows of an event say, where they may disagree: the distinct answers, and how many rows give each."""

    def __init__(self) -> None:
        self.answers: list[dict[tuple[str, str], int]] = []  # by event: answer -> code
        self.rows = GrowingColumn(np.int32)  # by answer: number of rows on the board
        self.event = GrowingColumn(np.int32)  # by answer
        self.lead = GrowingColumn(np.int32)  # by event: the answer that applies
        self.many = GrowingColumn(np.uint8)  # by event: 1: more than one answer

    def __copy__(self) -> "Votes":
        fresh = Votes()
        fresh.answers = [dict(answers) for answers in self.answers]
        for name in ("rows", "event", "lead", "many"):
            setattr(fresh, name, copy.copy(getattr(self, name)))
        return fresh

    def code(self, event: int, answer: tuple[str, str]) -> int:
        """Code of an answer; a new one is added."""
        answers = self.answers[event]
        code = answers.get(answer)
        if code is None:
            code = answers[answer] = self.rows.size
            self.rows.append(0)
            self.event.append(event)
            if len(answers) > 1:
                self.many.values[event] = 1
            else:
                self.lead.values[event] = code
        return code

    def open(self) -> None:
        """Add an event."""
        self.answers.append({})
        self.lead.append(-1)
        self.many.append(0)

    def count(self, came: Ints, went: Ints) -> Ints:
        """Count rows that come and go, by the codes of their answers; return their events with several answers."""
        one = np.int32(1)  # of the column's type: others are converted one element at a time
        np.add.at(self.rows.values, came, one)
        np.subtract.at(self.rows.values, went, one)
        events = self.event.values[np.concatenate((came, went))]
        contested: Ints = events[self.many.values[events] != 0]
        return contested

    def recount(self, codes: Ints) -> None:
        """Count all rows again, by the codes of their answers."""
        self.rows.values[:] = np.bincount(codes, minlength=self.rows.size)

    def decide(self, event: int, choose: Callable[..., Ints], ignored: Ints | None = None) -> tuple[str, str] | None:
        """Let `choose` decide again which answer of an event applies; return it if it is another one.

        `ignored` are the codes of the answers of rows that do not count, unless all are.
        """
        answers = self.answers[event]
        codes = np.fromiter(answers.values(), np.int64)
        rows = self.rows.values[codes]
        if ignored is not None and ignored.size < rows.sum():
            rows = rows - (ignored[:, None] == codes).sum(axis=0)
        codes, given = codes[rows > 0], np.array(list(answers))[rows > 0]
        if not codes.size:
            return None
        at = int(choose(np.zeros(codes.size, np.int64), given[:, 0], given[:, 1], rows[rows > 0], 1)[0])
        if codes[at] == self.lead.values[event]:
            return None
        self.lead.values[event] = codes[at]
        return str(given[at, 0]), str(given[at, 1])


class _TermReading(NamedTuple):
    """Side, subject and threshold of a term, for one orientation of its event's teams."""

    side: int
    subject: str
    threshold: int


class _Term(NamedTuple):
    """The meaning of one wording with its line."""

    kind: MarketKind
    with_draw: MarketKind
    two_way: int
    verdict: int
    teams: tuple[str, str]
    league: tuple[str, str]  # ids of sport and league
    straight: _TermReading
    turned: _TermReading


class Names:
    """Codes and columns of terms, books, kinds, events and units."""

    def __init__(self, off: frozenset[int] = frozenset()) -> None:
        self._off = off  # codes of disabled guards
        # Terms
        self.terms: dict[Wording, int] = {}
        self.wordings: list[Wording] = []
        self.numbering = self.wordings  # the list whose positions are the codes: of the names that this is a copy of
        self.event = GrowingColumn(np.int32)
        self.place = GrowingColumn(np.int64, 4)  # sort keys of its rows: see `identity.layout.pack`
        self.other = GrowingColumn(np.int64, 4)  # the same with home and away swapped
        self.turned = GrowingColumn(np.uint8)
        self.pair = GrowingColumn(np.int32)  # code in `pairs`
        self.league = GrowingColumn(np.int32)  # code in `leagues`
        self.game = GrowingColumn(np.int32)  # code in `games`
        self.tie = GrowingColumn(np.uint32)  # checksum of its texts, see `identity.groups.checksum`
        self.id = GrowingColumn(np.uint64)  # of event, market, subject, side and line
        self.stem = GrowingColumn(np.uint64)  # the same without the line
        self.published = GrowingColumn(np.int32)  # market type in responses: an index into `published_names`
        self.units = GrowingColumn(np.int32, 2)  # pre-match, live
        # Books, market names, subjects, kinds
        self.books: list[str] = []
        self.book_codes: dict[str, int] = {}
        self._book_hash: Words = np.empty(0, np.uint64)  # of row ids, by the spelling that came first
        self._book_id_hash: Words = np.empty(0, np.uint64)  # of ids of opportunities
        self._book_rank: Ints = np.empty(0, np.int32)
        self.market_names: list[str] = []
        self._market_codes: dict[str, int] = {}
        self._name_rank: Ints = np.empty(0, np.int32)
        self.published_names: list[str] = []
        self._published_codes: dict[str, int] = {}
        self.subjects: list[str] = ["", "home", "away"]
        self._subject_hash = GrowingColumn(np.uint64)
        self._kind_hash = GrowingColumn(np.uint64)
        self._event_hash = GrowingColumn(np.uint64)
        for subject in self.subjects:
            self._subject_hash.append(hash_text(subject))
        self._resolved: dict[str, tuple[Hashable, Any]] = {}  # tables for the kinds and events, and for which
        self._subject_codes: dict[str, int] = {"": 0, "\x00home": 1, "\x00away": 2}
        self.kinds: list[MarketKind] = []
        self._kind_codes: dict[MarketKind, int] = {}
        # Events, units
        self.events: list[str] = []  # ids
        self.event_codes: dict[str, int] = {}
        self.event_units: list[list[int]] = []
        self.sports: list[tuple[catalog.Sport, str]] = []  # sport and id of the league
        self.pairs = Votes()  # names of home and away
        self.leagues = Votes()  # ids of sport and league
        self.games: list[Game] = []
        self._game_codes: dict[Game, int] = {}
        self._teams: list[Game] = []  # by event: all that its terms name
        self._others: dict[int, frozenset[int]] = {}  # by event whose rows were separated: codes of other games
        self._moves = 0  # how often `sports` has changed
        self.relabelled = 0  # how often it did for an event with terms that lack a sport or league of their own
        self.unit_codes: dict[tuple[int, int, int], int] = {}
        self.unit_event = GrowingColumn(np.int32)
        self.unit_live = GrowingColumn(np.uint8)
        self._groups: dict[Any, int] = {}
        self._traits: Traits | None = None
        self.whole = True  # False while they change, and after a change that was interrupted

    def __deepcopy__(self, memo: Any) -> "Names":
        """Copy what can change; texts and read-only objects are shared."""
        fresh = Names.__new__(Names)
        for name, value in vars(self).items():
            setattr(fresh, name, copy.copy(value))
        fresh.event_units = [list(units) for units in self.event_units]
        fresh.numbering = fresh.wordings
        return fresh

    @property
    def terms_held(self) -> int:
        """Number of terms that are complete in all columns."""
        columns = (
            self.event, self.pair, self.league, self.game, self.turned, self.place, self.other, self.units, self.id,
            self.stem, self.tie, self.published,
        )  # fmt: skip
        return min(len(self.wordings), *(column.size for column in columns))

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
                self.whole = False
                self.books.append(name)
                self.book_codes["\x00" + known] = code
                self._traits = None
                self.whole = True
            self.book_codes[name] = code
        return code

    @property
    def book_id_hash(self) -> Words:
        """Hashes of the books' ids in the catalog."""
        if self._book_id_hash.size < len(self.books):
            more = hash_books(self.books[self._book_id_hash.size :])
            self._book_id_hash = np.concatenate((self._book_id_hash, more))
        return self._book_id_hash

    @property
    def book_hash(self) -> Words:
        """Hashes of the books' names."""
        if self._book_hash.size < len(self.books):
            self._book_hash = np.concatenate((self._book_hash, hash_texts(self.books[self._book_hash.size :])))
        return self._book_hash

    @property
    def book_rank(self) -> Ints:
        """Ranks of the books by name."""
        if self._book_rank.size < len(self.books):
            self._book_rank = _ranks(self.books)
        return self._book_rank

    @property
    def name_rank(self) -> Ints:
        """Ranks of the sources' names of markets."""
        if self._name_rank.size < len(self.market_names):
            self._name_rank = _ranks(self.market_names)
        return self._name_rank

    def find_book(self, name: str) -> int | None:
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
        return self._current("forms", lambda: forms(self.kinds, self.sports))

    @property
    def twins(self) -> Rules:
        """Outcomes of the kinds that settle on the same fact in the sports of the events."""
        return self._current("twins", lambda: rules(self.kinds, self.sports))

    def estimator(self, table: catalog.FairTable) -> Estimator:
        """The estimator's table, resolved for the kinds, events and books."""
        return self._current(
            "estimator",
            lambda: estimator(self.kinds, self.sports, self.sorted_books(), table),
            len(self.books),
            id(table),
        )

    def _current(self, name: str, make: Callable[[], T], *more: Hashable) -> T:
        """A table for the kinds and the sports of the events, made again once these, or `more`, have changed."""
        now = len(self.kinds), len(self.events), self._moves, *more
        if name not in self._resolved or self._resolved[name][0] != now:
            self._resolved[name] = now, make()
        return cast(T, self._resolved[name][1])

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
        books = np.empty_like(self.book_id_hash)
        books[self.book_rank] = self.book_id_hash
        return Hashes(ladder, books)

    def ladders_of(self, groups: Groups, model: ModelPrices) -> Words:
        """Hashes of ladders for a model: 0 where the event's teams are the other way round than the model's."""
        ladder = self.hashes(groups).ladder.copy()
        for event in distinct(groups.event).tolist():
            teams = model.teams.get(int(self._event_hash.values[event]))
            lead = int(self.pairs.lead.values[event])
            if teams is None or lead < 0:
                continue
            pairs = self.pairs.answers[event]
            home, away = list(pairs)[list(pairs.values()).index(lead)]
            if crossed(*(np.array([name]) for name in (*teams, home, away))).item():
                ladder[groups.event == event] = 0
        return ladder

    def _market_name(self, name: str) -> int:
        code = self._market_codes.get(name)
        if code is None:
            code = self._market_codes[name] = len(self.market_names)
            self.market_names.append(name)
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

    def _kind(self, kind: MarketKind) -> int:
        code = self._kind_codes.get(kind)
        if code is None:
            code = self._kind_codes[kind] = len(self.kinds)
            self.kinds.append(kind)
            self._kind_hash.append(hash_text(f"{kind.period}/{kind.family}"))
            self._traits = None
        return code

    def _subject(self, name: str, kind: MarketKind) -> int:
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
            self._subject_hash.append(hash_text(name))
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
        terms = read_wordings(parts_of_rows(wordings), self._off)
        line = np.array([np.nan if wording[-1] is None else wording[-1] for wording in wordings], np.float64)
        straight, fits = thresholds(terms, line, terms.side)
        turned, _ = thresholds(terms, line, terms.side_turned)
        lined = np.array([kind.has_line for kind in terms.kinds], bool)[terms.kind]
        stray = ~fits & (lined | (_NO_LINE not in self._off)) & (terms.verdict == 0)
        names, kinds = terms.names, terms.kinds
        columns = (
            terms.kind, terms.with_draw, terms.two_way, np.where(stray, _NO_LINE, terms.verdict), terms.home,
            terms.away, terms.sport, terms.league, terms.side, terms.subject, straight, terms.side_turned,
            terms.subject_turned, turned,
        )  # fmt: skip
        self.whole = False
        for wording, kind, with_draw, two_way, verdict, home, away, sport, league, *readings in zip(
            wordings, *(column.tolist() for column in columns), strict=True
        ):
            readings[1], readings[4] = terms.subject_name(readings[1]), terms.subject_name(readings[4])
            both = _TermReading(*readings[:3]), _TermReading(*readings[3:])
            teams, place = (names[home], names[away]), (names[sport], names[league])
            self._append(wording, _Term(kinds[kind], kinds[with_draw], two_way, verdict, teams, place, *both))
        self.whole = True

    def _append(self, wording: Wording, term: "_Term") -> None:
        stem, text = _identifying(wording, term)
        event = self._event(wording[0], term)
        pair, league = self.pairs.code(event, term.teams), self.leagues.code(event, term.league)
        group = self._group(term.kind, term.verdict, term.two_way, event)
        flip = self._turned(pair, event)
        named = self._game(event, term)
        apart = int(named in self._others.get(event, ()))
        readings = (term.turned, term.straight) if flip else (term.straight, term.turned)
        place, other = (self._packed(term, wording, reading, apart) for reading in readings)
        units = self._unit(event, 0, group), self._unit(event, 1, group)
        published = self._published(wording, event)
        ids = np.uint64(_stable(text)), np.uint64(_stable(stem)), checksum(wording)
        code = len(self.wordings)
        self.wordings.append(wording)
        self.event.append(event)
        self.pair.append(pair)
        self.league.append(league)
        self.game.append(named)
        self.turned.append(flip)
        self.place.append(place)
        self.other.append(other)
        self.units.append(units)
        self.published.append(published)
        for column, value in zip((self.id, self.stem, self.tie), ids, strict=True):
            column.append(value)
        self.terms[wording] = code

    def _packed(
        self, term: "_Term", wording: Wording, reading: "_TermReading", apart: int
    ) -> tuple[int, int, int, int]:
        """Sort keys and verdict of a term's rows."""
        return pack(
            self._kind(term.kind), self._kind(term.with_draw), self._subject(reading.subject, term.kind),
            reading.threshold, reading.side if reading.side >= 0 else UNREAD, self._market_name(wording[5] or ""),
            term.two_way, term.verdict, apart,
        )  # fmt: skip

    def _group(self, kind: MarketKind, verdict: int, two_way: int, event: int) -> int:
        """Code of the group of terms that are judged and searched together within an event."""
        sport, league = self.sports[event]
        name = unit_of(kind, sport.id, league, verdict, two_way)
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

    # ---- events: which team is home, which sport and league they are of ----

    def _event(self, name: str, term: "_Term") -> int:
        code = self.event_codes.get(name)
        if code is None:
            code = self.event_codes[name] = len(self.events)
            self.events.append(name)
            self._event_hash.append(hash_text(name))
            self.event_units.append([])
            self.sports.append(_sport(term.league))
            self.pairs.open()
            self.leagues.open()
            self._teams.append(frozenset())
        return code

    def _game(self, event: int, term: "_Term") -> int:
        """Code of the game that a term names; a new one is added."""
        named = frozenset[str]() if _OTHER_GAME in self._off else game(*term.league, *term.teams)
        if not named <= self._teams[event]:
            self._teams[event] |= named
        code = self._game_codes.get(named)
        if code is None:
            code = self._game_codes[named] = len(self.games)
            self.games.append(named)
        return code

    def _turned(self, pair: int, event: int) -> int:
        """Whether a pair names the teams in the opposite order to its event."""
        lead = int(self.pairs.lead.values[event])
        return 0 if pair == lead else int(self._crossed(event, lead)[pair])

    def _crossed(self, event: int, lead: int) -> dict[int, bool]:
        """For each pair of an event, whether it names the teams in the opposite order to the leading pair."""
        pairs = self.pairs.answers[event]
        home, away = np.array(list(pairs)).T
        at = list(pairs.values()).index(lead)
        return dict(zip(pairs.values(), crossed(home, away, home[at], away[at]).tolist(), strict=True))

    @property
    def contested(self) -> Ints:
        """The events about whose teams, sport or league rows may disagree."""
        return np.flatnonzero(self.pairs.many.values | self.leagues.many.values).astype(np.int32)

    def disputed(self, events: Ints) -> Ints:
        """Those of some events whose terms name more than two teams."""
        return np.array([event for event in events.tolist() if len(self._teams[event]) > 2], np.int32)

    def settle(self, events: Iterable[int], keys: Longs) -> list[int]:
        """Decide again about some events, from the current rows; return those whose terms changed.

        `keys` are the keys of all rows on the board of those that are `disputed`.
        """
        changed = []
        self.whole = False
        event_of = self.event.values[keys >> BOOK_BITS]
        order = np.argsort(event_of, kind="stable")
        keys, event_of = keys[order], event_of[order]
        for event in events:
            separated, pairs, leagues = False, None, None
            if len(self._teams[event]) > 2:
                own = keys[slice(*np.searchsorted(event_of, (event, event + 1)))]
                separated = self._separate(event, own)
                term = own >> BOOK_BITS
                apart = term[self.place.values[term, 3] & OTHER_GAME != 0]
                pairs, leagues = self.pair.values[apart], self.league.values[apart]
            turned = self.pairs.decide(event, leading, pairs) is not None and self._turn(event)
            league = self.leagues.decide(event, leading_league, leagues)
            if league is not None:
                self.sports[event] = _sport(league)
                self._regroup(event)
            if separated or turned or league is not None:
                changed.append(event)
        self.whole = True
        return changed

    def _separate(self, event: int, keys: Longs) -> bool:
        """Decide which terms of an event name another game, from its rows; return whether that changed."""
        ballot = self.game.values[keys >> BOOK_BITS].astype(np.int64) << BOOK_BITS
        ballot |= self.traits.feed[self.book_rank[keys & BOOK_MASK]]
        votes: dict[int, Counter[Game]] = {}
        for at, count in zip(*(each.tolist() for each in np.unique(ballot, return_counts=True)), strict=True):
            votes.setdefault(at & BOOK_MASK, Counter())[self.games[at >> BOOK_BITS]] = count
        others = frozenset(self._game_codes[named] for named in other_games(list(votes.values())))
        if others == self._others.get(event, frozenset()):
            return False
        self._others[event] = others
        terms = np.flatnonzero(self.event.values == event)
        flag = np.isin(self.game.values[terms], list(others)) * OTHER_GAME
        for column in (self.place.values, self.other.values):
            column[terms, 3] = column[terms, 3] & ~OTHER_GAME | flag
        return True

    def _turn(self, event: int) -> bool:
        """Swap home and away of the terms that name the teams of an event the other way round than before."""
        flips = self._crossed(event, int(self.pairs.lead.values[event]))
        moved = False
        place, other = self.place.values, self.other.values
        for term in np.flatnonzero(self.event.values == event).tolist():
            flip = flips[int(self.pair.values[term])]
            if flip != self.turned.values[term]:
                moved = True
                self.turned.values[term] = flip
                place[term], other[term] = other[term].copy(), place[term].copy()
        return moved

    def _regroup(self, event: int) -> None:
        """Assign the terms of an event to units again after its sport or league changed.

        Terms without a sport of their own are published under that of the event.
        """
        self._moves += 1
        lacking = False
        for term in np.flatnonzero(self.event.values == event).tolist():
            kind, verdict, two_way = kind_and_verdict(self.place.values[term])
            group = self._group(self.kinds[kind], verdict, two_way, event)
            self.units.values[term] = self._unit(event, 0, group), self._unit(event, 1, group)
            wording = self.wordings[term]
            if not (wording[1] and wording[2]):
                lacking = True
                self.published.values[term] = self._published(wording, event)
        self.relabelled += lacking


def _sport(league: tuple[str, str]) -> tuple[catalog.Sport, str]:
    """The sport and the id of a league, from the ids of both."""
    return catalog.sport(league[0]), league[1]


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
    """As `ids.hash_text`, without caching the text."""
    return int(hash_text.__wrapped__(text))


def _ranks(names: list[str]) -> Ints:
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int32)
    rank[order] = np.arange(len(names), dtype=np.int32)
    return rank


def _interned(wording: Wording) -> Wording:
    """A wording with interned texts."""
    return tuple(sys.intern(part) if type(part) is str else part for part in wording)
