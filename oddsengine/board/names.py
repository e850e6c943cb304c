"""Names: codes for the texts of quotes (terms, books, kinds, events), with a column per property.

A *term* is one raw label with its line: an offer without its book. It is interpreted once, when first quoted.
`Names.renewed` makes a smaller set when most terms are no longer used.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.board.codes import Books, Codes, Copyable, HashedCodes, RankedCodes, Subjects
from oddsengine.board.events import Events
from oddsengine.board.market_tables import MarketTables
from oddsengine.board.partitions import PartitionCodes
from oddsengine.board.terms import Meaning, Reading, Term, Terms, meanings, term_hashes
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import NONE, Longs, Words
from oddsengine.detection.opportunity_ids import Hashes, ladders
from oddsengine.identity.groups import Groups, checksum, distinct
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK
from oddsengine.identity.packed_terms import UNREAD, PackedTerm, TermParts, pack, unpack
from oddsengine.identity.raw_labels import Game, RawLabel, crossed, game
from oddsengine.identity.traits import MarketKind
from oddsengine.pricing.model import ModelPrices

_OTHER_GAME = CODES["other_game"]


class Names(Copyable):
    """Everything on a board that has a code, and what changes several kinds of codes together."""

    def __init__(self, off: frozenset[int] = frozenset()) -> None:
        self._off = off  # codes of disabled guards
        self.terms = Terms()
        self.numbering = self.terms.raw_labels  # the list whose positions are the codes: of the names this is a copy of
        self.books = Books()
        self.market_names = RankedCodes()  # as sources write them
        self.published_names: Codes[str] = Codes()  # market types in responses
        self.subjects = Subjects()
        self.kinds: HashedCodes[MarketKind] = HashedCodes(_kind_text)
        self.events = Events()
        self.partitions = PartitionCodes()
        self.tables = MarketTables(self.kinds, self.events, self.books)
        self._expected: dict[RawLabel, Meaning] = {}  # of raw labels that are going to be learnt soon
        self._whole = True

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        fresh = super().__deepcopy__(memo)
        fresh.numbering = fresh.terms.raw_labels
        return fresh

    @property
    def whole(self) -> bool:
        """False while they change, and after a change that was interrupted."""
        return self._whole and self.books.whole

    @property
    def complete_terms(self) -> int:
        """Number of terms that are complete in all columns."""
        events = self.events
        by_term = (events.pairs.by_term, events.leagues.by_term, events.games.by_term)
        return min(self.terms.complete, *(column.size for column in by_term))

    # ---- ids of opportunities ----

    def hashes(self, groups: Groups) -> Hashes:
        """Hashes from which the ids of opportunities in some gathered partitions are computed."""
        g, id_hash = groups, self.books.id_hash.values
        ladder = ladders(
            self.events.hash.values[g.event], g.live, self.kinds.hash.values[g.kind],
            self.subjects.hash.values[g.subject],
        )  # fmt: skip
        books = np.empty_like(id_hash)
        books[self.books.rank] = id_hash
        return Hashes(ladder, books)

    def ladders_of(self, groups: Groups, model: ModelPrices) -> Words:
        """Hashes of ladders for a model: 0 where the event's teams are the other way round than the model's."""
        ladder = self.hashes(groups).ladder.copy()
        for event in distinct(groups.event).tolist():
            teams = model.teams.get(int(self.events.hash.values[event]))
            leader = self.events.pairs.leader(event) if teams else None
            if teams and leader and crossed(*(np.array([name]) for name in (*teams, *leader))).item():
                ladder[groups.event == event] = 0
        return ladder

    # ---- terms ----

    def learn(self, raw_labels: Sequence[RawLabel]) -> list[int]:
        """Codes of raw labels with their lines; new ones are interpreted and added together."""
        terms = self.terms.codes
        known = [terms.get(raw_label, NONE) for raw_label in raw_labels]
        if NONE not in known:
            return known
        plain = _plain(raw_labels)
        self.add(list(map(_interned, dict.fromkeys(raw_label for raw_label in plain if raw_label not in terms))))
        codes = [terms[raw_label] for raw_label in plain]
        terms.update(zip(raw_labels, codes, strict=True))
        return codes

    def expect(self, raw_labels: Sequence[RawLabel]) -> None:
        """Interpret raw labels that are going to be learnt soon: together, since one costs nearly as much as many."""
        known, plain = self.terms.codes, _plain(raw_labels)
        new = [raw_label for raw_label in dict.fromkeys(plain) if raw_label not in known]
        self._expected = dict(zip(new, meanings(new, self._off), strict=True)) if new else {}

    def renewed(self, used: npt.NDArray[np.integer]) -> "Names":
        """New names with the same books, and only the terms whose codes are in `used` (ascending), renumbered."""
        fresh = Names(self._off)
        for book in self.books.values:
            fresh.books.code(book)
        fresh.add([self.terms.raw_labels[code] for code in used.tolist()])
        return fresh

    def add(self, raw_labels: Sequence[RawLabel]) -> None:
        """Interpret and add raw labels with their lines that have no codes."""
        if not raw_labels:
            return
        others = [raw_label for raw_label in raw_labels if raw_label not in self._expected]
        read = meanings(others, self._off) if others else iter(())
        self._whole = False
        for raw_label in raw_labels:
            known = raw_label in self._expected
            self._append(raw_label, self._expected.pop(raw_label) if known else next(read))
        self._whole = True

    def _append(self, raw_label: RawLabel, meaning: Meaning) -> None:
        events = self.events
        event = events.open(raw_label[0], meaning.league)
        pair, league = events.pairs.code(event, meaning.teams), events.leagues.code(event, meaning.league)
        teams = frozenset[str]() if _OTHER_GAME in self._off else game(*meaning.league, *meaning.teams)
        named = events.games.add(event, teams)
        apart = events.games.is_other(event, named)
        swapped = events.is_swapped(event, pair)
        readings = (meaning.swapped, meaning.straight) if swapped else (meaning.straight, meaning.swapped)
        place, other = (self._packed(meaning, raw_label, reading, apart=apart) for reading in readings)
        partitions = self.partitions.of_term(
            event, events.sports[event], meaning.kind, meaning.verdict, meaning.two_way
        )
        id_, stem = term_hashes(raw_label, meaning)
        published = self._published(raw_label, event)
        term = Term(event, place, other, swapped, partitions, published, id_, stem, checksum(raw_label))
        events.pairs.by_term.append(pair)
        events.leagues.by_term.append(league)
        events.games.by_term.append(named)
        self.terms.append(raw_label, term)

    def _packed(self, meaning: Meaning, raw_label: RawLabel, reading: Reading, *, apart: bool) -> PackedTerm:
        """Sort keys and verdict of a term's rows."""
        return pack(
            TermParts(
                kind=self.kinds.code(meaning.kind),
                with_draw=self.kinds.code(meaning.with_draw),
                subject=self.subjects.of_kind(reading.subject, meaning.kind),
                threshold=reading.threshold,
                side=reading.side if reading.side >= 0 else UNREAD,
                name=self.market_names.code(raw_label[5] or ""),
                two_way=meaning.two_way,
                verdict=meaning.verdict,
                other_game=int(apart),
            )
        )

    def _published(self, raw_label: RawLabel, event: int) -> int:
        """Code of the market type under which a raw label is published."""
        sport = raw_label[1] or self.events.sports[event][0].id
        name = catalog.published_name(raw_label[5] or "", sport, raw_label[10] or "", raw_label[6] or "")
        return self.published_names.code(name)

    # ---- what rows decide about events ----

    def settle(self, events: Iterable[int], keys: Longs) -> list[int]:
        """Decide again about some events, from the current rows; return those whose terms changed.

        `keys` are the keys of all rows on the board of those that are `Events.disputed`.
        """
        changed, of, terms = [], self.events, self.terms
        self._whole = False
        event_of = terms.event.values[keys >> BOOK_BITS]
        order = np.argsort(event_of, kind="stable")
        keys, event_of = keys[order], event_of[order]
        for event in events:
            separated, apart = False, None
            if of.games.is_disputed(event):
                own = keys[slice(*np.searchsorted(event_of, (event, event + 1)))]
                separated = self._separate(event, own)
                apart = terms.of_another_game(own >> BOOK_BITS)
            swapped = of.pairs.decide(event, apart) is not None and self._swap(event)
            league = of.leagues.decide(event, apart)
            if league is not None:
                of.move(event, league)
                self._regroup(event)
            if separated or swapped or league is not None:
                changed.append(event)
        self._whole = True
        return changed

    def _separate(self, event: int, keys: Longs) -> bool:
        """Decide which terms of an event name another game, from its rows; return whether that changed."""
        games, provider = self.events.games, self.tables.traits.provider
        named = games.by_term.values[keys >> BOOK_BITS].astype(np.int64) << BOOK_BITS
        named |= provider[self.books.rank[keys & BOOK_MASK]]
        votes: dict[int, Counter[Game]] = {}
        for at, count in zip(*(each.tolist() for each in np.unique(named, return_counts=True)), strict=True):
            votes.setdefault(at & BOOK_MASK, Counter())[games.values[at >> BOOK_BITS]] = count
        if not games.decide(event, list(votes.values())):
            return False
        terms = self.terms.of_event(event)
        self.terms.separate(terms, np.isin(games.by_term.values[terms], list(games.others[event])))
        return True

    def _swap(self, event: int) -> bool:
        """Swap home and away of the terms that name the teams of an event the other way round than before."""
        swapped, terms = self.events.swapped(event), self.terms.of_event(event)
        pairs = self.events.pairs.by_term.values[terms].tolist()
        return self.terms.swap(terms, np.array([swapped[pair] for pair in pairs], bool))

    def _regroup(self, event: int) -> None:
        """Assign the terms of an event to partitions again after its sport or league changed.

        Terms without a sport of their own are published under that of the event.
        """
        lacking, terms, sport = False, self.terms, self.events.sports[event]
        for term in terms.of_event(event).tolist():
            parts = unpack(*terms.place.values[term].tolist())
            terms.partitions.values[term] = self.partitions.of_term(
                event, sport, self.kinds.values[parts.kind], parts.verdict, parts.two_way
            )
            raw_label = terms.raw_labels[term]
            if not (raw_label[1] and raw_label[2]):
                lacking = True
                terms.published.values[term] = self._published(raw_label, event)
        self.events.relabelled += lacking


def _kind_text(kind: MarketKind) -> str:
    return f"{kind.period}/{kind.family}"


def _plain(raw_labels: Sequence[RawLabel]) -> list[RawLabel]:
    """Raw labels in which "" is None."""
    return [(*(text or None for text in raw_label[:-1]), raw_label[-1]) for raw_label in raw_labels]


def _interned(raw_label: RawLabel) -> RawLabel:
    """A raw label with interned texts."""
    return tuple(sys.intern(part) if type(part) is str else part for part in raw_label)
