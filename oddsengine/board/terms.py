"""Terms: raw labels with their lines, interpreted once, with a column per property."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from oddsengine.board.codes import Copyable, GrowingColumn
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import Bools, Longs
from oddsengine.detection.opportunity_ids import hash_text
from oddsengine.identity.packed_terms import PackedTerm, of_another_game, unpack
from oddsengine.identity.raw_labels import RawLabel, TermMeanings, parts_of_rows, read_raw_labels, thresholds
from oddsengine.identity.traits import MarketKind

_NO_LINE = CODES["no_line"]


class Reading(NamedTuple):
    """Side, subject and threshold of a term, for one orientation of its event's teams."""

    side: int
    subject: str
    threshold: int


class Meaning(NamedTuple):
    """The meaning of one raw label with its line."""

    kind: MarketKind
    with_draw: MarketKind
    two_way: int
    verdict: int
    teams: tuple[str, str]
    league: tuple[str, str]  # ids of sport and league
    straight: Reading
    swapped: Reading


def meanings(raw_labels: Sequence[RawLabel], off: frozenset[int]) -> Iterator[Meaning]:
    """Interpret raw labels with their lines; `off` are codes of disabled guards."""
    terms = read_raw_labels(parts_of_rows(raw_labels), off)
    line = np.array([np.nan if raw_label[-1] is None else raw_label[-1] for raw_label in raw_labels], np.float64)
    straight, fits = thresholds(terms, line, terms.side)
    swapped, _ = thresholds(terms, line, terms.side_swapped)
    lined = np.array([kind.has_line for kind in terms.kinds], bool)[terms.kind]
    stray = ~fits & (lined | (_NO_LINE not in off)) & (terms.verdict == 0)
    columns = (
        terms.kind, terms.with_draw, terms.two_way, np.where(stray, _NO_LINE, terms.verdict), terms.home,
        terms.away, terms.sport, terms.league, terms.side, terms.subject, straight, terms.side_swapped,
        terms.subject_swapped, swapped,
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return (_meaning(terms, *row) for row in rows)  # all that can fail has been done


def _meaning(
    terms: TermMeanings, kind: int, with_draw: int, two_way: int, verdict: int, home: int, away: int, sport: int,
    league: int, side: int, subject: int, threshold: int, side_swapped: int, subject_swapped: int,
    threshold_swapped: int,
) -> Meaning:  # fmt: skip
    names, kinds = terms.names, terms.kinds
    return Meaning(
        kinds[kind], kinds[with_draw], two_way, verdict, (names[home], names[away]), (names[sport], names[league]),
        Reading(side, terms.subject_name(subject), threshold),
        Reading(side_swapped, terms.subject_name(subject_swapped), threshold_swapped),
    )  # fmt: skip


def term_hashes(raw_label: RawLabel, meaning: Meaning) -> tuple[np.uint64, np.uint64]:
    """Hashes of event, market, subject and side, with and without the line; of the texts if these are unknown."""
    sides = meaning.with_draw.outcomes
    market = "|".join(raw_label[at] or "" for at in (5, 10, 6))
    if meaning.verdict or not 0 <= meaning.straight.side < len(sides):
        stem = f"{raw_label[0]}|{market}|{raw_label[9]}|{raw_label[11]}|{raw_label[7]}|{raw_label[8]}"
        text = f"{stem}|{raw_label[-1]}"
    else:
        stem = f"{raw_label[0]}|{market}|{meaning.straight.subject}|{sides[meaning.straight.side]}"
        text = f"{stem}|{meaning.straight.threshold}"
    return _hash(text), _hash(stem)


def _hash(text: str) -> np.uint64:
    """As `hash_text`, without caching the text."""
    return np.uint64(hash_text.__wrapped__(text))


class Term(NamedTuple):
    """The columns of one term."""

    event: int
    place: PackedTerm
    other: PackedTerm
    swapped: bool
    partitions: tuple[int, int]
    published: int
    id: np.uint64
    stem: np.uint64
    tie: int


class Terms(Copyable):
    """Codes of raw labels with their lines, and their columns."""

    def __init__(self) -> None:
        self.codes: dict[RawLabel, int] = {}  # also of raw labels that have "" for None
        self.raw_labels: list[RawLabel] = []
        self.event = GrowingColumn(np.int32)
        self.place = GrowingColumn(np.int64, 4)  # the fields of `PackedTerm`
        self.other = GrowingColumn(np.int64, 4)  # the same with home and away swapped
        self.swapped = GrowingColumn(np.uint8)
        self.partitions = GrowingColumn(np.int32, 2)  # pre-match, live
        self.published = GrowingColumn(np.int32)  # market type in responses: a code of `Names.published_names`
        self.id = GrowingColumn(np.uint64)  # of event, market, subject, side and line
        self.stem = GrowingColumn(np.uint64)  # the same without the line
        self.tie = GrowingColumn(np.uint32)  # checksum of its texts, see `identity.groups.checksum`

    @property
    def complete(self) -> int:
        """Number of terms that have all columns."""
        sizes: list[int] = [getattr(self, name).size for name in Term._fields]
        return min(len(self.raw_labels), *sizes)

    def append(self, raw_label: RawLabel, term: Term) -> None:
        """Add a raw label that has no code."""
        code = len(self.raw_labels)
        self.raw_labels.append(raw_label)
        self.event.append(term.event)
        self.place.append(term.place)
        self.other.append(term.other)
        self.swapped.append(term.swapped)
        self.partitions.append(term.partitions)
        self.published.append(term.published)
        self.id.append(term.id)
        self.stem.append(term.stem)
        self.tie.append(term.tie)
        self.codes[raw_label] = code

    def of_event(self, event: int) -> Longs:
        """Codes of the terms of an event."""
        return np.flatnonzero(self.event.values == event)

    def of_another_game(self, terms: Longs) -> Longs:
        """Those of some terms that name another game than their event's."""
        others: Longs = terms[unpack(0, 0, 0, self.place.values[terms, 3]).other_game != 0]
        return others

    def separate(self, terms: Longs, others: Bools) -> None:
        """Flag which of some terms name another game than their event's."""
        for column in (self.place.values, self.other.values):
            column[terms, 3] = of_another_game(column[terms, 3], others)

    def swap(self, terms: Longs, swapped: Bools) -> bool:
        """Swap home and away of terms that now name the teams the other way round; return whether any do."""
        moved: Longs = terms[self.swapped.values[terms] != swapped]
        place, other = self.place.values, self.other.values
        self.swapped.values[moved] ^= 1
        place[moved], other[moved] = other[moved], place[moved]
        return moved.size > 0
