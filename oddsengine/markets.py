"""Market and outcome of every price of a table, or the reason why it has none.

A market is (event, live flag, period, family, subject, line). `identity` parses every *distinct* wording once; here
each row gets its key from its wording, live flag, line and book in one kernel.

A collision of two 64-bit hashes would merge two wordings; with a million of them the probability is 3e-8.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.groups import Bytes, Groups, Ints, Keys, Longs, cut, intern, mix, settle
from oddsengine.identity import (
    DRAW,
    MAYBE_DRAW,
    WORDING,
    Terms,
    crossed,
    distinct,
    leading,
    moneyline,
    parts_of_frame,
    read,
    threshold,
)
from oddsengine.reasons import CODES
from oddsengine.schema import OddsTable
from oddsengine.traits import Kind, Traits, traits
from oddsengine.twins import linked, rules


class Identity(NamedTuple):
    """The identity of a table's prices."""

    groups: Groups
    kinds: tuple[Kind, ...]
    books: tuple[str, ...]  # sorted; books are indices
    verdict: Bytes  # per table row: 0, or the code of an identity or row guard
    turned: npt.NDArray[np.bool_]  # per table row: names the event's teams the other way round
    sports: tuple[tuple[catalog.Sport, str], ...]  # per event: sport and league
    names: pl.Series  # sorted distinct names; the name of a subject from 3 on is at subject - 3
    traits: Traits  # of the kinds and books


def _ranks(column: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    """Return ranks of a column's strings, and the sorted strings."""
    codes, first = intern(column.hash().to_numpy())
    values = column.gather(first).to_list()
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
    place = {name: at for at, name in enumerate(books)}
    same = np.array([place[first[catalog.book(name).id]] for name in names], np.int32)
    return (same[rank] if names else rank), books


@kernel
def _key_rows(
    term, live, line, book, gone,
    t_hash2, t_hash3, t_split, t_side, t_kind, t_kind3, t_lined, t_spread, t_fixed, t_verdict,
    check_line, c_ambiguous, c_no_line,
    draws, quoted, verdict, side, kind, thresholds, key,
):  # fmt: skip
    """Compute verdict, side, kind, threshold and market hash of every row."""
    n = term.size
    golden = np.uint64(0x9E3779B97F4A7C15)
    turn = np.uint64(29)
    size = quoted.size
    for i in range(n if draws else 0):
        t = term[i]
        if t_split[t] != 0 and (t_side[t] == 1 or t_side[t] < 0):
            # An unparsed outcome may be the draw, so its book's moneyline cannot be assumed to be two-way.
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
            drawn = 0
            h = (t_hash3[t] ^ np.uint64(live[i]) ^ (np.uint64(book[i] + 1) << np.uint64(1))) * golden
            h = (h ^ (h >> turn)) | np.uint64(1)
            at = np.int64(h >> np.uint64(20)) & (size - 1)
            while quoted[at] != 0 and quoted[at] != h:
                at = (at + 1) & (size - 1)
            if quoted[at] == h:
                drawn = DRAW
            else:
                h = (
                    np.uint64(0x5851F42D4C957F2D)
                    ^ (t_hash3[t] ^ np.uint64(live[i]) ^ (np.uint64(book[i] + 1) << np.uint64(1))) * golden
                )
                h = (h ^ (h >> turn)) | np.uint64(1)
                at = np.int64(h >> np.uint64(20)) & (size - 1)
                while quoted[at] != 0 and quoted[at] != h:
                    at = (at + 1) & (size - 1)
                if quoted[at] == h:
                    drawn = MAYBE_DRAW
            three, where, why = moneyline(t_split[t], drawn, where, why, c_ambiguous, c_no_line)
            if three:
                what = t_kind3[t]
                hashed = t_hash3[t]
        at_line, fits = threshold(line[i], where, t_lined[t], t_spread[t], t_fixed[t])
        if not fits and (check_line or t_lined[t] != 0) and why == 0:
            why = c_no_line
        if gone[i] != 0:
            why = gone[i]
        verdict[i] = why
        side[i] = where
        kind[i] = what
        thresholds[i] = at_line
        h = (hashed ^ np.uint64(live[i])) * golden
        h = ((h ^ (h >> turn)) + np.uint64(np.uint32(at_line))) * golden
        key[i] = h ^ (h >> turn)


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
    term, first = distinct(rows[[c for c in WORDING if rows[c].null_count() < n]])
    weight = np.bincount(term, minlength=first.size)
    wordings = rows[list(WORDING)][first]
    terms = read(parts_of_frame(wordings), off)
    event, event_first = distinct(wordings[["event_id"]])
    lead, flip = _stand(terms, event, event_first.size, weight)
    side = np.where(flip, terms.side_turned, terms.side)
    subject = np.where(flip, terms.subject_turned, terms.subject)
    book, books = _books(rows["sportsbook"])
    name_of_term, _ = _ranks(rows["market_type"].gather(first))
    name = name_of_term[term]

    facts = traits(terms.kinds, books)
    gone = _row_verdicts(rows, off)
    gone[priced:] = CODES["bad_price"]
    live = rows["is_live"].to_numpy().astype(np.uint8)
    line = np.array(rows["line"].fill_null(float("nan")))
    verdict, place = np.empty(n, np.uint8), np.empty(n, np.int8)
    kind, cuts, key = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint64)
    draws = int(weight[(terms.two_way != 0) & ((side == 1) | (side < 0))].sum())
    quoted = np.zeros(1 << max(4, (2 * draws).bit_length()), np.uint64)
    _key_rows(
        term, live, line, book, gone,
        mix(event, terms.kind, subject), mix(event, terms.with_draw, subject),
        terms.two_way, side, terms.kind, terms.with_draw,
        facts.lined[terms.kind], facts.spread[terms.kind], terms.fixed, terms.verdict,
        CODES["no_line"] not in off, CODES["ambiguous_moneyline"], CODES["no_line"],
        draws, quoted, verdict, place, kind, cuts, key,
    )  # fmt: skip
    code, at = intern(key, verdict)
    keys = Keys(
        code=code, side=place, threshold=cuts[at], event=event[term[at]], live=live[at], kind=kind[at],
        subject=subject[term[at]], book=book, name=name,
    )  # fmt: skip
    groups = cut(keys, facts.outcomes, np.array(rows["odds_decimal"]), times(rows, "last_seen_at"))
    settle(groups, rows, (*WORDING, "line"))
    event_rows = first[lead]
    sports = tuple((catalog.sport(s or ""), t or "") for s, t in rows.select("sport", "league")[event_rows].iter_rows())
    groups = linked(groups, rules(terms.kinds, sports))
    names = pl.Series(terms.names, dtype=pl.String)
    return Identity(groups, terms.kinds, books, verdict[:priced], flip[term], sports, names, facts)


def _stand(terms: Terms, event: Ints, events: int, weight: Longs) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return one wording per event with the teams in the chosen order, and the wordings with the opposite order."""
    pair, first = intern(mix(event, terms.home, terms.away))
    if not first.size:
        return np.zeros(0, np.int32), np.zeros(0, bool)
    rows = np.bincount(pair, weights=weight, minlength=first.size)
    lead = first[leading(event[first], terms.home[first], terms.away[first], rows, events)]
    return lead, crossed(terms.home, terms.away, terms.home[lead][event], terms.away[lead][event])


def _row_verdicts(table: pl.DataFrame, off: frozenset[int]) -> Bytes:
    """Return verdicts that depend on the row alone."""
    gone = np.zeros(table.height, np.uint8)
    if CODES["price_mismatch"] not in off and table["price_mismatch"].any():
        gone[table["price_mismatch"].to_numpy()] = CODES["price_mismatch"]
    if not table["is_active"].all():
        gone[~table["is_active"].to_numpy()] = CODES["suspended"]
    return gone


def times(table: pl.DataFrame, column: str) -> Longs:
    """Convert a time column to microseconds; null is the smallest integer."""
    return np.array(table[column].to_numpy()).view(np.int64)  # null is NaT, the smallest integer
