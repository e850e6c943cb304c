"""Sheets: the prices of one market as a table of selections by books, matched to the market's field.

Names of players are matched within the market: a name matches a contestant of the configured field, or a full name that
other books use, if it matches no other (`match_player`). Two full names are merged only if each is the other's only
match. Remaining names stay separate. The result depends on the set of names, not on their order.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.columns import NO_TIME, Bools, Floats, Longs
from oddsengine.futures.fields import Field, field_of
from oddsengine.futures.identity import ANY_OTHER, FuturesMarket
from oddsengine.matching import match_player
from oddsengine.matching.persons import parse_person as read_person


class Sheet(NamedTuple):
    """A market's prices. Tables have a row per selection and a column per book; `row` is the board row, -1 for none."""

    market: FuturesMarket
    field: Field | None
    places: int  # number of winners; 0 if unknown
    names: tuple[str, ...]  # of the selections
    books: tuple[str, ...]  # ids, sorted
    place: Longs  # by contestant of the field: index of the selection, -1 if nobody quotes it
    strangers: tuple[str, ...]  # selections outside the field
    row: Longs
    odds: Floats  # decimal, as quoted; nan for none
    seen: Longs  # microseconds
    usable: Bools  # not suspended, both formats agree, one per book
    own_field: Bools  # by book: its "any other" is that of the configured field


def sheets_of(
    table: pl.DataFrame, markets: Mapping[str, FuturesMarket], fields: Mapping[str, Field]
) -> dict[str, Sheet]:
    columns = ("pick", "book", "odds_decimal", "last_seen_at", "is_active", "price_mismatch")
    parts = table.select("market_id", *columns).with_row_index("at").partition_by("market_id", maintain_order=True)
    made = {}
    for part in parts:
        market = markets[part["market_id"][0]]
        made[market.id] = _sheet(market, field_of(market, fields), part)
    return made


def _sheet(market: FuturesMarket, field: Field | None, part: pl.DataFrame) -> Sheet:
    picks, ids = part["pick"].to_list(), part["book"].to_list()
    called = _called(market, picks, () if field is None else field.contestants)
    names = tuple(sorted(set(called.values())))
    books = tuple(sorted(set(ids)))
    at_name = {name: at for at, name in enumerate(names)}
    at_book = {book: at for at, book in enumerate(books)}
    i = np.array([at_name[called[pick]] for pick in picks], np.int64)
    j = np.array([at_book[book] for book in ids], np.int64)
    quoted = part["odds_decimal"].to_numpy()
    order = np.lexsort((part["at"].to_numpy(), -quoted))  # of two prices of one book, the lower is written last
    shape = (len(names), len(books))
    row, odds, seen = np.full(shape, -1, np.int64), np.full(shape, np.nan), np.full(shape, NO_TIME)
    usable, count, high = np.zeros(shape, np.bool_), np.zeros(shape, np.int64), np.full(shape, np.nan)
    where = i[order], j[order]
    row[where], odds[where] = part["at"].to_numpy()[order], quoted[order]
    seen[where] = part["last_seen_at"].dt.epoch("us").to_numpy()[order]
    fine = (part["is_active"] & ~part["price_mismatch"]).to_numpy()
    usable[where] = fine[order]
    np.add.at(count, (i, j), 1)
    np.fmax.at(high, (i, j), quoted)
    usable &= (count < 2) | (_logit(odds) - _logit(high) <= catalog.thresholds().duplicate_gap)
    entries = [catalog.book(book) for book in books]
    usable &= ~np.array([book.mid_price or book.parlay_only for book in entries], np.bool_)
    keys = {catalog.normalise(name): at for name, at in at_name.items()}
    contestants = () if field is None else tuple(map(catalog.normalise, field.contestants))
    place = np.array([keys.get(key, -1) for key in contestants], np.int64)
    strangers = tuple(
        name for name in names if field is not None and catalog.normalise(name) not in contestants and name != ANY_OTHER
    )
    return Sheet(
        market, field, market.places if field is None else field.places, names, books, place, strangers, row, odds,
        seen, usable, _own_field(row >= 0, names, place, field),
    )  # fmt: skip


def _own_field(listed: Bools, names: Sequence[str], place: Longs, field: Field | None) -> Bools:
    """Flag the books whose "any other" is that of the configured field: they list exactly the contestants it names."""
    if field is None or ANY_OTHER not in field.contestants or ANY_OTHER not in names or (place < 0).any():
        return np.zeros(listed.shape[1], np.bool_)
    return np.asarray(listed.all(axis=0))


def _logit(odds: Floats) -> Floats:
    """Log-odds of implied probabilities."""
    return np.asarray(-np.log(odds - 1.0))


# ---- names ----


def _called(market: FuturesMarket, picks: Collection[str], contestants: Sequence[str]) -> dict[str, str]:
    """Return the name of each selection in its market."""
    first: dict[str, str] = {}
    for text in sorted({*picks}, key=_fullness):
        first.setdefault(catalog.normalise(text), text)
    fields_by_market = {catalog.normalise(name): name for name in contestants}
    spelled = {text: fields_by_market.get(catalog.normalise(text)) or first[catalog.normalise(text)] for text in picks}
    if market.type != "PLAYER":
        return spelled
    people = {name for name in spelled.values() if name != ANY_OTHER}
    same = _people(people, [name for name in contestants if name != ANY_OTHER])
    return {text: same.get(name, name) for text, name in spelled.items()}


def _fullness(text: str) -> tuple[bool, int, int, str]:
    """Sort key of spellings, fullest first: surnames last, more letters, more accents."""
    return "," in text, -len(text), -sum(not char.isascii() for char in text), text


def _people(people: Collection[str], contestants: Sequence[str]) -> dict[str, str]:
    """Map each player's name to the name used in the market."""
    if contestants:
        return {name: match_player(name, contestants).name or name for name in people}
    whole = sorted(name for name in people if not read_person(name).initials)
    fit = {name: match_player(name, [other for other in whole if other != name]).name for name in whole}
    called = {}
    for name in whole:
        other = fit[name]
        mutual = other is not None and fit[other] == name
        called[name] = min(name, other, key=_fullness) if mutual and other else name
    names = set(called.values())
    for name in people:
        if name not in called:
            called[name] = match_player(name, names).name or name
    return called
