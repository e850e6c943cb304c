"""Market and outcome of every price of a table, or the reason why it has none.

A market is (event, live flag, period, family, subject, line). `raw_label` parses every *distinct* raw label once, and
`layout` sorts the rows.

A collision of two 64-bit hashes would merge two raw labels; with a million of them the probability is 3e-8.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine.catalog.reasons import CODES
from oddsengine.columns import Bools, Bytes, Ints, Longs, Words
from oddsengine.identity.groups import Groups, intern, mix, settle
from oddsengine.identity.layout import (
    BOOK_BITS,
    MISMATCH,
    ON,
    SUSPENDED,
    Lists,
    PriceColumns,
    TermColumns,
    gather,
    listed,
    partition_of,
    ranks,
    too_many,
)
from oddsengine.identity.linked_outcomes import rules
from oddsengine.identity.packed_terms import MOST_SUBJECTS, UNREAD, TermParts, pack
from oddsengine.identity.raw_labels import (
    RAW_LABEL,
    SUBJECTS,
    Game,
    TermMeanings,
    crossed,
    distinct,
    game,
    leading,
    leading_league,
    other_games,
    parts_of_frame,
    read_raw_labels,
    thresholds,
)
from oddsengine.identity.traits import MarketKind, Traits, traits
from oddsengine.tables.schema import OddsTable


class Identity(NamedTuple):
    """The identity of a table's prices."""

    groups: Groups
    kinds: tuple[MarketKind, ...]
    books: tuple[str, ...]  # sorted; books are indices
    verdict: Bytes  # per table row: 0, or the code of an identity or row guard
    swapped: npt.NDArray[np.bool_]  # per table row: names the event's teams the other way round
    sports: tuple[tuple[catalog.Sport, str], ...]  # per event: sport and league
    names: pl.Series  # sorted distinct names; the name of a subject from 3 on is at subject - 3
    traits: Traits  # of the kinds and books


def _ranks(column: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    """Return ranks of a column's strings, and the sorted strings."""
    codes, first = distinct(column.to_frame())
    values = column[first].to_list()
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = np.empty(len(values), np.int32)
    rank[order] = np.arange(len(values), dtype=np.int32)
    return rank[codes], tuple(values[i] for i in order)


def _books(column: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    """Return ranks of a column's books, and their names; spellings of one book share the first name."""
    rank, names = _ranks(column)
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(catalog.book(name).id, name)
    books = tuple(sorted(first.values()))
    if len(books) > 1 << BOOK_BITS:
        raise too_many("books", books[1 << BOOK_BITS], 1 << BOOK_BITS)
    place = {name: at for at, name in enumerate(books)}
    same = np.array([place[first[catalog.book(name).id]] for name in names], np.int32)
    return (same[rank] if names else rank), books


def identify(table: OddsTable, off: frozenset[int]) -> Identity:
    """Identify the market of every price of a table, or the reason why it has none.

    Parameters
    ----------
    table
        A checked odds table.
    off
        Codes of disabled guards.
    """
    priced = table.height
    rows: pl.DataFrame = table
    if table.unpriced.height:
        # Rows without a price still count as quoted: a draw makes a moneyline three-way.
        rows = pl.concat([table, table.unpriced.select(table.columns)], how="vertical_relaxed")
    n = rows.height
    term, first = distinct(rows[[c for c in (*RAW_LABEL, "line") if rows[c].null_count() < n]])
    worded = rows[[*RAW_LABEL, "line"]][first]
    raw_label, raw_label_first = distinct(worded[list(RAW_LABEL)])
    texts = worded[raw_label_first]
    read_ = read_raw_labels(parts_of_frame(texts), off)
    if len(read_.names) > MOST_SUBJECTS - SUBJECTS:
        raise too_many("players", read_.names[-1], MOST_SUBJECTS - SUBJECTS)
    event, _ = distinct(texts[["event_id"]])
    market_name, names = _ranks(texts["market_type"])
    book, books = _books(rows["sportsbook"])
    facts = traits(read_.kinds, books)
    weight = np.bincount(raw_label[term], minlength=texts.height)
    pair, league = (
        _Claims.number_answers(event, *each) for each in ((read_.home, read_.away), (read_.sport, read_.league))
    )
    other = np.zeros(texts.height, bool)
    if CODES["other_game"] not in off:
        other = _of_other_games(read_, event, pair, league, _RowLabels(raw_label, term, book), facts.provider)
        weight = _without(weight, other, event)
    flip = _swapped(read_, event, pair, weight)
    sports = _sports(read_, event, league, weight)

    # By term: a raw label with its line.
    terms, event, flip = read_.take(raw_label), event[raw_label], flip[raw_label]
    side = np.where(flip, terms.side_swapped, terms.side)
    line = worded["line"].to_numpy()
    threshold, fits = thresholds(terms, line, side)
    stray = ~fits & ((facts.lined[terms.kind] != 0) | (CODES["no_line"] not in off)) & (terms.verdict == 0)
    verdict = np.where(stray, CODES["no_line"], terms.verdict)
    parts = TermParts(
        kind=terms.kind,
        with_draw=terms.with_draw,
        subject=np.where(flip, terms.subject_swapped, terms.subject),
        threshold=threshold,
        side=np.where(side < 0, UNREAD, side),
        name=market_name[raw_label],
        two_way=terms.two_way,
        verdict=verdict,
        other_game=other[raw_label],
    )
    place = pack(TermParts(*(column.astype(np.int64) for column in parts)))
    group, groups = _groups(terms, verdict, event, sports)

    # By row.
    flags = np.zeros(n, np.uint8)
    flags[rows["price_mismatch"].to_numpy()] |= MISMATCH
    flags[~rows["is_active"].to_numpy()] |= SUSPENDED
    flags[priced:] |= SUSPENDED
    live = rows["is_live"].to_numpy()
    prematch = event.astype(np.uint64) * np.uint64(2 * groups) + group
    partition_key = prematch[term] + np.uint64(groups) * live.astype(np.uint64)
    partition, partition_first = intern(partition_key)
    # Slots in the order of partitions and terms, nearly that of the layout: rows that are sorted together are close.
    by_term, _, _ = listed(np.arange(n, dtype=np.int32), ranks(place)[term])
    row, start, size = listed(by_term, partition)
    seen, unused = times(rows, "last_seen_at")[row], np.zeros(n, np.uint8)
    some = gather(
        PriceColumns(
            key=(term[row].astype(np.int64) << BOOK_BITS) | book[row], odds=rows["odds_decimal"].to_numpy()[row],
            seen=seen, start=seen, state=unused + np.uint8(ON), flags=flags[row], same=unused,
        ),
        TermColumns(
            np.stack(place, axis=1), np.zeros(first.size, np.uint32), np.arange(len(books), dtype=np.int32),
            np.arange(len(names), dtype=np.int32), facts.outcomes,
        ),
        rules(terms.kinds, sports),
        Lists(
            start, size, np.arange(n, dtype=np.int32), event[term[partition_first]],
            live[partition_first].view(np.uint8),
        ),
        np.argsort(partition_key[partition_first]),
        mismatch=CODES["price_mismatch"] not in off,
    )  # fmt: skip
    sorted_ = some.groups._replace(row=row[some.groups.row])
    settle(sorted_, rows, (*RAW_LABEL, "line"))
    reason = np.zeros(n, np.uint8)
    reason[row[some.out]] = some.why
    subjects = pl.Series(terms.names, dtype=pl.String)
    return Identity(sorted_, terms.kinds, books, reason[:priced], flip[term], sports, subjects, facts)


def _groups(
    terms: TermMeanings, verdict: Bytes, event: Ints, sports: Sequence[tuple[catalog.Sport, str]]
) -> tuple[Words, int]:
    """Number the partitions of terms within their events, and return their number."""
    leagues: dict[tuple[str, str], int] = {}
    league = np.array([leagues.setdefault((sport.id, name), len(leagues)) for sport, name in sports], np.int64)
    case, first = intern(mix(league[event], terms.kind, verdict != 0, terms.two_way))
    codes: dict[Hashable, int] = {}
    of_case: list[int] = []
    for at in first.tolist():
        sport, name = sports[event[at]]
        partition = partition_of(terms.kinds[terms.kind[at]], sport.id, name, int(verdict[at]), int(terms.two_way[at]))
        of_case.append(codes.setdefault(partition, len(codes)))
    return np.array(of_case, np.uint64)[case], max(1, len(codes))


class _Claims(NamedTuple):
    """What raw labels say of their event, of which one answer applies."""

    code: Ints  # per raw label
    first: Ints  # a raw label of each

    @classmethod
    def number_answers(cls, event: Ints, *columns: Ints) -> "_Claims":
        """Number the distinct answers in some columns, by event."""
        return cls(*intern(mix(event, *columns)))

    def counted(self, weight: Longs) -> tuple[Ints, Longs]:
        """Return a raw label of each answer that any row gives, and the number of rows."""
        rows = np.bincount(self.code, weights=weight, minlength=self.first.size)
        given = rows > 0
        return self.first[given], rows[given]


class _RowLabels(NamedTuple):
    """The raw label and the book of rows."""

    raw_label: Ints  # per term
    term: Ints  # per row
    book: Ints


def _of_other_games(
    terms: TermMeanings, event: Ints, pair: _Claims, league: _Claims, rows: _RowLabels, provider: Ints
) -> Bools:  # fmt: skip
    """Flag the raw labels of other games than their event; `provider` is by book."""
    out = np.zeros(event.size, bool)
    many = (np.bincount(event[pair.first]) > 1) | (np.bincount(event[league.first]) > 1)
    among = np.flatnonzero(many[event])
    if not among.size:
        return out
    columns = (terms.sport, terms.league, terms.home, terms.away)
    claim, first = intern(mix(pair.code[among], league.code[among]))
    of = event[among[first]]  # by claim
    names = (map(terms.names.__getitem__, column[among[first]].tolist()) for column in columns)
    games = list(map(game, *names))
    teams: dict[int, Game] = {}
    for at, named in zip(of.tolist(), games, strict=True):
        teams[at] = teams.get(at, named) | named
    disputed = np.zeros(many.size, bool)
    disputed[[at for at, named in teams.items() if len(named) > 2]] = True
    if not disputed.any():
        return out
    some = np.flatnonzero(disputed[event[rows.raw_label]][rows.term])
    claims = np.zeros(event.size, np.int64)
    claims[among] = claim
    width = int(provider.max()) + 1
    codes, counts = np.unique(
        claims[rows.raw_label[rows.term[some]]] * width + provider[rows.book[some]], return_counts=True
    )
    votes: dict[int, dict[int, Counter[Game]]] = {}
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        at, named_by = divmod(code, width)
        votes.setdefault(int(of[at]), {}).setdefault(named_by, Counter())[games[at]] += count
    rejected = {at: other_games(list(named.values())) for at, named in votes.items()}
    others = [named in rejected.get(at, ()) for at, named in zip(of.tolist(), games, strict=True)]
    out[among] = np.array(others, bool)[claim]
    return out


def _without(weight: Longs, other: Bools, event: Ints) -> Longs:
    """Return how many rows of each raw label decide about its event: none of another game, unless all are."""
    if not other.any():
        return weight
    kept = np.where(other, 0, weight)
    return np.where(np.bincount(event, weights=kept)[event] > 0, kept, weight)


def _swapped(terms: TermMeanings, event: Ints, pair: _Claims, weight: Longs) -> Bools:
    """Flag the raw labels that name the teams in the opposite order to that chosen for their event."""
    first, rows = pair.counted(weight)
    events = int(event.max(initial=-1)) + 1
    lead = first[leading(event[first], terms.home[first], terms.away[first], rows, events)]
    return crossed(terms.home, terms.away, terms.home[lead][event], terms.away[lead][event])


def _sports(terms: TermMeanings, event: Ints, league: _Claims, weight: Longs) -> tuple[tuple[catalog.Sport, str], ...]:
    """Return the sport and league chosen for each event."""
    first, rows = league.counted(weight)
    events = int(event.max(initial=-1)) + 1
    lead = first[leading_league(event[first], terms.sport[first], terms.league[first], rows, events)]
    chosen = zip(terms.sport[lead].tolist(), terms.league[lead].tolist(), strict=True)
    return tuple((catalog.sport(terms.names[sport]), terms.names[league]) for sport, league in chosen)


def times(table: pl.DataFrame, column: str) -> Longs:
    """Convert a time column to microseconds; null is the smallest integer."""
    return np.array(table[column].to_numpy()).view(np.int64)  # null is NaT, the smallest integer
