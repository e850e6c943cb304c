"""Identity: which market and outcome a price belongs to, or why it belongs to none.

A market is (event, live flag, period, family, subject, line). What decides it is mostly wording, and the same
wording stands on thousands of rows. So `identify` reads every *distinct* wording once (the columns `WORDING`),
with table expressions and integer codes, and then gives each row its key from its wording, live flag, line and
book in one kernel.

Two 64-bit hashes that collide would merge two wordings; with a million of them that has a chance of 3e-8.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.groups import NO_TIME, Bytes, Groups, Ints, Keys, Longs, cut, intern, mix, settle
from oddsengine.reasons import CODES
from oddsengine.schema import OddsTable
from oddsengine.traits import Kind, Traits, traits
from oddsengine.twins import linked, rules
from oddsengine.wording import SIDES, Texts, read_texts, sides_of_type

WORDING = (
    "event_id", "sport", "league", "home_team", "away_team", "market_type", "market_segment", "selection",
    "selection_type", "player_name", "stat_category", "team_side",
)  # fmt: skip
HOME, AWAY, DRAW = (SIDES.index(side) for side in ("home", "away", "draw"))
NO_LINE = np.iinfo(np.int32).min


class Identity(NamedTuple):
    """Everything that the wordings and keys of a table say."""

    groups: Groups
    kinds: tuple[Kind, ...]
    books: tuple[str, ...]  # sorted; a row's book is its place here
    verdict: Bytes  # per table row: 0, or the code of the identity or row guard that sets it aside
    turned: npt.NDArray[np.bool_]  # per table row: its home and away are the event's away and home
    sports: tuple[tuple[catalog.Sport, str], ...]  # per event: sport and league
    names: pl.Series  # sorted distinct names; the name of a subject from 3 on is at subject - 3
    traits: Traits  # of the kinds and books


class _Terms(NamedTuple):
    """What each distinct wording means."""

    event: Ints
    kind: Ints
    two_way: Bytes  # a moneyline whose ways depend on the book: 1; in a sport with draws: 2
    side: npt.NDArray[np.int8]
    subject: Ints
    fixed: Ints  # a line that the market type fixes, hundredths, else NO_LINE
    verdict: Bytes
    flip: npt.NDArray[np.bool_]


def _distinct(frame: pl.DataFrame) -> tuple[Ints, Ints]:
    """Codes of the equal rows of a frame, and where each first stands."""
    if not frame.width:
        return np.zeros(frame.height, np.int32), np.zeros(min(frame.height, 1), np.int32)
    return intern(frame.hash_rows().to_numpy())


def _ranks(column: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    """Ranks of a column's strings in sorted order, and the sorted strings."""
    codes, first = intern(column.hash().to_numpy())
    values = column.gather(first).to_list()
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = np.empty(len(values), np.int32)
    rank[order] = np.arange(len(values), dtype=np.int32)
    return rank[codes], tuple(values[i] for i in order)


def _books(column: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    """Ranks of a column's books, and their names: two spellings of one book are one, under the first of them."""
    rank, names = _ranks(column)
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(catalog.book(name).id, name)
    books = tuple(sorted(first.values()))
    place = {name: at for at, name in enumerate(books)}
    same = np.array([place[first[catalog.book(name).id]] for name in names], np.int32)
    return (same[rank] if names else rank), books


class _Kinds:
    """The kinds met so far; a kind's code is its place."""

    def __init__(self) -> None:
        self.codes: dict[Kind, int] = {}

    def code(self, kind: Kind) -> int:
        return self.codes.setdefault(kind, len(self.codes))


def kind_of(kind: catalog.MarketType) -> Kind:
    """What guards and detectors have to know of a market type."""
    family = catalog.families().get(kind.family)
    return Kind(
        period=kind.period,
        family=kind.family,
        outcomes=kind.outcomes,
        has_line=kind.has_line or kind.fixed_line is not None,
        spread=family is not None and family.cuts == "margin",
        prop=kind.is_prop,
        subject=kind.subject,
        fraction=kind.fraction if kind.fraction > 0 else 0.0,
        stat=kind.stat_category,
    )


def _read_terms(
    wordings: pl.DataFrame, weight: Longs, kinds: _Kinds, off: frozenset[int]
) -> tuple[_Terms, Ints, pl.Series]:
    """Meaning of each wording, one wording of each event that names its teams straight, and the names met."""
    n = wordings.height
    event, event_first = _distinct(wordings.select("event_id"))
    texts = read_texts(wordings)

    columns = ["sport", "market_type", "stat_category", "market_segment", "league"]
    type_of, type_first = _distinct(wordings.select(columns))
    types = [tuple(text or "" for text in row) for row in wordings.select(columns)[type_first].iter_rows()]
    found = [catalog.meaning(*row[:4]) for row in types]
    usable = np.array([f.usable for f in found], bool)
    kind_at = np.array([kinds.code(kind_of(f)) for f in found], np.int32)
    splits = np.array([f.family == "moneyline" for f in found], bool)
    for which in np.flatnonzero(splits).tolist():
        kinds.code(three_way(kind_of(found[which])))
    draws = np.array([catalog.sport(row[0]).can_draw(row[4]) for row in types], bool)
    fixed = np.array([NO_LINE if f.fixed_line is None else round(f.fixed_line * 100) for f in found], np.int32)
    positional = np.array(["home" in f.outcomes for f in found], bool)
    wants = np.array([f.subject for f in found], dtype=np.str_)
    typed_team = np.array([place_of(f.team_side) for f in found], np.int8)
    implied = np.array([place_of(f.default_outcome) for f in found], np.int8)
    renamed = np.array([renamed_sides(f) for f in found], np.int8).reshape(len(found), len(SIDES) + 1)
    place = np.full((len(found), len(SIDES)), -1, np.int8)
    for row, f in enumerate(found):
        outcomes = ("home", "draw", "away") if splits[row] else f.outcomes
        for at, outcome in enumerate(outcomes):
            place[row, SIDES.index(outcome)] = at
    place_at = place[type_of]
    every = np.arange(n)

    # The side: what the text says, else what the source's selection type says.
    spoken = np.where(texts.word >= 0, texts.word, np.where(positional[type_of], texts.team, -1))
    type_team, type_word = sides_of_type(wordings["selection_type"])
    typed = np.where(positional[type_of], np.where(type_word >= 0, type_word, type_team), type_word)
    # An anytime scorer: yes is over 0.5, and a bare name is yes.
    spoken, typed = renamed[type_of, spoken], renamed[type_of, typed]
    spoken = np.where((spoken < 0) & (typed < 0), implied[type_of], spoken)
    both = (spoken >= 0) & (typed >= 0)
    conflict = both & (spoken != typed) & (place_at[every, spoken] >= 0) & (place_at[every, typed] >= 0)
    side_code = np.where(spoken >= 0, spoken, typed)

    # Home and away as most of the event's rows have them.
    flip, named = _flips(event, event_first.size, texts, weight)
    turned = flip & ((side_code == HOME) | (side_code == AWAY))
    side_code = np.where(turned, HOME + AWAY - side_code, side_code).astype(np.int64)
    side = place_at[every, side_code]
    side[side_code < 0] = -1

    # The subject: a player, or the team of a team total.
    subject, lost, team_conflict = _subjects(texts, wants[type_of], typed_team[type_of], type_team, flip)
    stray = (wants[type_of] == "none") & ~positional[type_of] & (texts.word >= 0) & texts.rest_is_team

    verdict = np.zeros(n, np.uint8)
    verdict[(side < 0) | lost | stray] = CODES["unknown_outcome"]
    if CODES["side_conflict"] not in off:
        verdict[conflict | team_conflict] = CODES["side_conflict"]
    verdict[~usable[type_of]] = CODES["unmapped"]
    two_way = np.where(splits[type_of], np.where(draws[type_of], 2, 1), 0).astype(np.uint8)
    terms = _Terms(
        event=event,
        kind=kind_at[type_of],
        two_way=two_way,
        side=side.astype(np.int8),
        subject=subject,
        fixed=fixed[type_of],
        verdict=verdict,
        flip=flip,
    )
    return terms, named, texts.names


def three_way(kind: Kind) -> Kind:
    """The kind of a moneyline that quotes the draw."""
    return kind._replace(family="moneyline_3way", outcomes=("home", "draw", "away"))


def place_of(side: str) -> int:
    """Place of a side in `SIDES`, -1 for none."""
    return SIDES.index(side) if side else -1


def renamed_sides(kind: catalog.MarketType) -> list[int]:
    """For every side, and at the end for none, the side that the market type makes of it."""
    renames = dict(kind.renames)
    return [place_of(renames.get(side, side)) for side in SIDES] + [-1]


def _flips(event: Ints, events: int, texts: Texts, weight: Longs) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Wordings whose home and away are turned against what most rows of the event name, and a straight one an event."""
    if not event.size:
        return np.zeros(0, bool), np.zeros(0, np.int32)
    pair, first = intern(mix(event, texts.home, texts.away))
    rows = np.bincount(pair, weights=weight, minlength=first.size)
    of_event = event[first]
    named = (texts.home[first] > 0) & (texts.away[first] > 0)
    order = np.lexsort((texts.away[first], texts.home[first], -rows, ~named, of_event))
    lead = order[np.searchsorted(of_event[order], np.arange(events))]
    home, away = texts.home[first][lead][event], texts.away[first][lead][event]
    straight = (texts.home == home) | (texts.away == away)
    crossed = ((texts.home == away) & (away > 0)) | ((texts.away == home) & (home > 0))
    return np.asarray(crossed & ~straight), first[lead]


def _subjects(
    texts: Texts,
    wants: npt.NDArray[np.str_],
    typed_team: npt.NDArray[np.int8],
    type_team: npt.NDArray[np.int8],
    flip: npt.NDArray[np.bool_],
) -> tuple[Ints, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Subject codes, where the subject is lost, and where two sources of a team differ."""
    player = wants == "player"
    team = wants == "team"
    subject = np.where(player & (texts.player > 0), texts.player + 3, 0).astype(np.int32)
    lost = player & (texts.player <= 0)

    names = np.stack([texts.team, typed_team, np.where(type_team == DRAW, -1, type_team), texts.team_side])
    high = names.max(axis=0)
    low = np.where(names < 0, high, names).min(axis=0)
    conflict = team & (high >= 0) & (low != high)
    side = np.where(flip & (high >= 0), HOME + AWAY - high, high)
    subject = np.where(team & (high >= 0), np.where(side == HOME, 1, 2), subject).astype(np.int32)
    return subject, lost | (team & (high < 0)), conflict


@kernel
def _key_rows(
    term, live, line, book, gone,
    t_hash2, t_hash3, t_split, t_side, t_kind, t_kind3, t_lined, t_spread, t_fixed, t_verdict,
    check_line, c_ambiguous, c_no_line,
    draws, quoted, verdict, side, kind, threshold, key,
):  # fmt: skip
    """Verdict, side, kind, threshold and market hash of every row."""
    n = term.size
    golden = np.uint64(0x9E3779B97F4A7C15)
    turn = np.uint64(29)
    size = quoted.size
    for i in range(n if draws else 0):
        t = term[i]
        if t_split[t] != 0 and (t_side[t] == 1 or t_side[t] < 0):
            # An outcome that does not read may be the draw: its book's moneyline is then not known to be two-way.
            odd = np.uint64(0) if t_side[t] == 1 else np.uint64(0x5851F42D4C957F2D)
            h = (t_hash3[t] ^ np.uint64(live[i]) ^ (np.uint64(book[i] + 1) << np.uint64(1))) * golden
            h = h ^ odd
            h = (h ^ (h >> turn)) | np.uint64(1)
            at = np.int64(h >> np.uint64(20)) & (size - 1)
            while quoted[at] != 0 and quoted[at] != h:
                at = (at + 1) & (size - 1)
            quoted[at] = h
    for i in range(n):
        t = term[i]
        why = t_verdict[t]
        where = t_side[t]
        what = t_kind[t]
        hashed = t_hash2[t]
        if t_split[t] != 0:
            h = (t_hash3[t] ^ np.uint64(live[i]) ^ (np.uint64(book[i] + 1) << np.uint64(1))) * golden
            h = (h ^ (h >> turn)) | np.uint64(1)
            at = np.int64(h >> np.uint64(20)) & (size - 1)
            while quoted[at] != 0 and quoted[at] != h:
                at = (at + 1) & (size - 1)
            if quoted[at] == h:
                what = t_kind3[t]
                hashed = t_hash3[t]
            else:
                where = where // 2
                h = (
                    np.uint64(0x5851F42D4C957F2D)
                    ^ (t_hash3[t] ^ np.uint64(live[i]) ^ (np.uint64(book[i] + 1) << np.uint64(1))) * golden
                )
                h = (h ^ (h >> turn)) | np.uint64(1)
                at = np.int64(h >> np.uint64(20)) & (size - 1)
                while quoted[at] != 0 and quoted[at] != h:
                    at = (at + 1) & (size - 1)
                if (t_split[t] == 2 or quoted[at] == h) and why == 0:
                    why = c_ambiguous
        at_line = 0
        if t_fixed[t] != -2147483648:
            at_line = t_fixed[t]
        elif t_lined[t] != 0:
            x = line[i] * 100.0
            near = np.rint(x)
            if not (abs(x - near) < 1e-6) or abs(near) > 1e8:
                if why == 0:
                    why = c_no_line
            else:
                at_line = np.int32(near)
                if t_spread[t] != 0 and where == 0:
                    at_line = -at_line
        elif check_line and line[i] != 0.0 and not np.isnan(line[i]) and why == 0:
            why = c_no_line
        if gone[i] != 0:
            why = gone[i]
        verdict[i] = why
        side[i] = where
        kind[i] = what
        threshold[i] = at_line
        h = (hashed ^ np.uint64(live[i])) * golden
        h = ((h ^ (h >> turn)) + np.uint64(np.uint32(at_line))) * golden
        key[i] = h ^ (h >> turn)


def identify(table: OddsTable, off: frozenset[int]) -> Identity:
    """Give every price of a table its market, or the reason why it has none.

    Parameters
    ----------
    table
        A checked odds table.
    off
        Codes of guards that are switched off.
    """
    priced = table.height
    rows: pl.DataFrame = table
    if table.unpriced.height:
        # What has no price still says what its book quotes: a draw makes a moneyline three-way.
        rows = pl.concat([table, table.unpriced.select(table.columns)], how="vertical_relaxed")
    n = rows.height
    present = [c for c in WORDING if rows[c].null_count() < n]
    term, first = _distinct(rows.select(present))
    weight = np.bincount(term, minlength=first.size)
    kinds = _Kinds()
    terms, event_terms, names = _read_terms(rows.select(WORDING)[first], weight, kinds, off)
    book, books = _books(rows["sportsbook"])
    name_of_term, _ = _ranks(rows["market_type"].gather(first))
    name = name_of_term[term]
    known = tuple(kinds.codes)
    three = np.array(
        [kinds.codes.get(three_way(k), at) if k.family == "moneyline" else at for at, k in enumerate(known)],
        np.int32,
    )
    kind3 = three[terms.kind] if n else terms.kind

    facts = traits(known, books)
    gone = _row_verdicts(rows, off)
    gone[priced:] = CODES["bad_price"]
    live = rows["is_live"].to_numpy().astype(np.uint8)
    line = np.array(rows["line"].fill_null(float("nan")))
    verdict = np.empty(n, np.uint8)
    side = np.empty(n, np.int8)
    kind = np.empty(n, np.int32)
    threshold = np.empty(n, np.int32)
    key = np.empty(n, np.uint64)
    draws = int(weight[(terms.two_way != 0) & ((terms.side == 1) | (terms.side < 0))].sum())
    quoted = np.zeros(1 << max(4, (2 * draws).bit_length()), np.uint64)
    _key_rows(
        term, live, line, book, gone,
        mix(terms.event, terms.kind, terms.subject), mix(terms.event, kind3, terms.subject),
        terms.two_way, terms.side, terms.kind, kind3,
        facts.lined[terms.kind], facts.spread[terms.kind], terms.fixed, terms.verdict,
        CODES["no_line"] not in off, CODES["ambiguous_moneyline"], CODES["no_line"],
        draws, quoted, verdict, side, kind, threshold, key,
    )  # fmt: skip
    code, at = intern(key, verdict)
    keys = Keys(
        code=code, side=side, threshold=threshold[at], event=terms.event[term[at]], live=live[at], kind=kind[at],
        subject=terms.subject[term[at]], book=book, name=name,
    )  # fmt: skip
    groups = cut(keys, facts.outcomes, np.array(rows["odds_decimal"]), times(rows, "last_seen_at"))
    settle(groups, rows, (*WORDING, "line"))
    event_rows = first[event_terms]
    sports = tuple((catalog.sport(s or ""), t or "") for s, t in rows.select("sport", "league")[event_rows].iter_rows())
    groups = linked(groups, rules(known, sports))
    return Identity(groups, known, books, verdict[:priced], terms.flip[term], sports, names, facts)


def _row_verdicts(table: pl.DataFrame, off: frozenset[int]) -> Bytes:
    """Verdicts that need nothing but the row."""
    gone = np.zeros(table.height, np.uint8)
    if CODES["price_mismatch"] not in off and table["price_mismatch"].any():
        gone[table["price_mismatch"].to_numpy()] = CODES["price_mismatch"]
    if not table["is_active"].all():
        gone[~table["is_active"].to_numpy()] = CODES["suspended"]
    return gone


def times(table: pl.DataFrame, column: str) -> Longs:
    """A time column as microseconds; null is the smallest integer."""
    return np.array(table[column].to_physical().fill_null(NO_TIME))
