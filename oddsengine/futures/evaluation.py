"""Evaluation of one futures market: rejected prices, completeness of its field, fair prices, hold and arbitrage.

d' is a price after commission, q = 1 / d', w the number of winners, n the contestants of the field. Over all books:

    a book's sum      S_b = sum of q over the field, if the book quotes every contestant
    its margin        S_b / w - 1
    fair              p_i from the reference's whole field (`winners.fair`), sum p_i = w
    edge              p_i d' - 1, for prices of other providers

and over the books that can be bet at, with the best d' of each contestant:

    hold              S / w - 1
    arbitrage         profit w / S - 1, stake share (1 / d'_i) / S, where S < w: whoever the w winners are, total stakes
                      of 1 return w / S

**Guards**, in order; each judges the prices left by the previous ones:

1. suspended, decimal and American price disagree, mid prices, one selection priced twice by one book (the lower price
   stays if they are close);
2. `stale`: not seen for an hour; a price without a time counts as seen on arrival;
3. `other_field`: an "any other" of a book that does not list exactly the contestants of the configured field;
4. `book_sum`: all prices of a book whose own whole field sums to less than w (for an exchange, slightly less);
5. `outlier`: a price more generous than the median of at least three other providers, by more than the bound of games
   in
   log-odds. A price too low by the same bound disqualifies its book as the reference.

A market is **complete** if its field is known, no book quotes anybody outside it, it has more contestants than winners,
and every contestant has a price left. Otherwise there is no fair price, hold or arbitrage. The **reference** is the
first sharp book whose own field is complete, whose margin is not too wide, and whose prices can be de-vigged. There is
no consensus.

An arbitrage needs at least two providers and prices as fresh as those of games (ten minutes), and must be below the cap
of games. Edges above the cap of games are not reported.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.catalog import futures_catalog as kinds
from oddsengine.columns import Bools, Floats, Longs
from oddsengine.detection.opportunity_ids import hash_text, hexadecimal
from oddsengine.detection.sweep import break_even
from oddsengine.futures.identity import ANY_OTHER
from oddsengine.futures.sheets import Sheet
from oddsengine.futures.winners import fair
from oddsengine.identity.groups import mix
from oddsengine.identity.traits import book_fees, providers
from oddsengine.maths.odds import charged

REASONS = ("", "unusable", "stale", "other_field", "book_sum", "outlier", "ev_cap")
UNUSABLE, STALE, OTHER_FIELD, BOOK_SUM, OUTLIER, EV_CAP = range(1, 7)
_SECOND = 1_000_000


class FieldArbitrage(NamedTuple):
    """Stakes on a whole field. A leg is a contestant; `book` is the index of its book in the sheet."""

    id: str
    profit: float  # fraction
    implied: float  # sum of implied probabilities divided by the number of winners: below 1
    book: Longs
    odds: Floats  # after commission
    share: Floats


class Evaluation(NamedTuple):
    """Result for one market. Tables have the sheet's shape; columns over contestants are in the order of its field."""

    sheet: Sheet
    rejected: npt.NDArray[np.int8]  # codes of `REASONS`; 0 is not rejected
    complete: bool | None  # None if the field is unknown
    why: str  # why it is not complete, or empty
    reference: str  # a book, or empty
    margin: float  # of the reference; nan without one
    fair: Floats  # by selection; nan if unknown
    edge: Floats  # by price, fraction; nan if unknown
    best: Longs  # by selection: index of the best book that can be bet at, -1 for none
    hold: float  # nan unless every contestant has such a price
    arbitrage: FieldArbitrage | None
    capped: bool  # whether an arbitrage was above the cap


def evaluate(
    sheet: Sheet, now: int, books: Collection[str] | None = None, sharp: Sequence[str] | None = None,
    method: str = "power", *, outliers: bool = True,
) -> Evaluation:  # fmt: skip
    """Evaluate a market at a time in microseconds.

    `books` are those that can be bet at (None: all), `sharp` the reference books in order of preference (None: the
    catalog's).
    """
    net = _after_commission(sheet)
    rejected, too_low = _rejected(sheet, net, now, outliers=outliers)
    left = rejected == 0
    complete, why = _complete(sheet, left)
    reference, margin, of_field = -1, np.nan, np.empty(0)
    if complete:
        reference, margin, of_field = _reference(sheet, net, left & ~too_low, sharp, method)
    probs = np.full(len(sheet.names), np.nan)
    if reference >= 0:
        probs[sheet.place] = of_field
    edge = _edges(sheet, net, left, probs, reference)
    limits = catalog.thresholds()
    wild = edge > limits.ev_cap + limits.epsilon
    rejected[wild], edge[wild] = EV_CAP, np.nan
    available = np.array([books is None or book in books for book in sheet.books], np.bool_)
    offered = left & available & ~wild
    best = _best(net, offered)
    hold, arbitrage, capped = np.nan, None, False
    if complete:
        hold = _implied(sheet, net, best) - 1.0
        fresh = sheet.seen >= now - round(limits.stale_prematch_s * _SECOND)
        arbitrage, capped = _arbitrage(sheet, net, _best(net, offered & fresh))
    name = sheet.books[reference] if reference >= 0 else ""
    return Evaluation(sheet, rejected, complete, why, name, margin, probs, edge, best, hold, arbitrage, capped)


def _after_commission(sheet: Sheet) -> Floats:
    fees = book_fees(sheet.books)
    return charged(sheet.odds, fees.commission, fees.fee)


def _rejected(sheet: Sheet, net: Floats, now: int, *, outliers: bool) -> tuple[npt.NDArray[np.int8], Bools]:
    """Return the rejection code of each price, and the prices that are too low for a reference."""
    rejected = np.where(sheet.usable, 0, UNUSABLE).astype(np.int8)
    limit = now - round(kinds.thresholds().stale_s * _SECOND)
    rejected[(rejected == 0) & (sheet.seen < limit)] = STALE
    if ANY_OTHER in sheet.names:
        other = sheet.names.index(ANY_OTHER)
        rejected[other, (rejected[other] == 0) & ~sheet.own_field] = OTHER_FIELD
    if sheet.field is not None:
        sums = _sums(sheet, net, rejected == 0)
        low = catalog.thresholds().book_sum_low, catalog.thresholds().book_sum_low_exchange
        exchange = np.array([catalog.book(book).exchange for book in sheet.books], np.bool_)
        short = sums < sheet.places * (np.where(exchange, low[1], low[0]) - catalog.thresholds().epsilon)
        rejected[(rejected == 0) & short] = BOOK_SUM
    if not outliers:
        return rejected, np.zeros(rejected.shape, np.bool_)
    generous, too_low = _outliers(sheet, net, rejected == 0)
    rejected[generous] = OUTLIER
    return rejected, too_low


def _sums(sheet: Sheet, net: Floats, left: Bools) -> Floats:
    """Sum each book's implied probabilities over the field; infinite unless it quotes every contestant."""
    if not sheet.place.size or (sheet.place < 0).any():
        return np.full(len(sheet.books), np.inf)
    q = np.where(left, 1.0 / net, np.inf)
    return np.asarray(q[sheet.place].sum(axis=0))


def _outliers(sheet: Sheet, net: Floats, left: Bools) -> tuple[Bools, Bools]:
    """Flag prices too generous or too low compared with the median of the other providers; one book per provider."""
    limits = catalog.thresholds()
    generous, too_low = np.zeros(net.shape, np.bool_), np.zeros(net.shape, np.bool_)
    provider = providers(sheet.books)
    q = np.where(left, 1.0 / net, np.nan)
    voices = np.full(net.shape, np.nan)
    for j in range(provider.size - 1, -1, -1):
        voices[left[:, j], provider[j]] = q[left[:, j], j]
    for f in set(provider.tolist()):
        others = np.delete(voices, f, axis=1)
        enough = (~np.isnan(others)).sum(axis=1) >= limits.outlier_others
        if not enough.any():
            continue
        middle = np.nanmedian(others[enough], axis=1)[:, None]
        bound = limits.outlier_other + limits.outlier_slope / (middle * (1.0 - middle)) + limits.epsilon
        own = np.ix_(enough, provider == f)
        gap = _logit(q[own]) - _logit(middle)
        generous[own], too_low[own] = gap < -bound, gap > bound
    return generous, too_low


def _logit(p: Floats) -> Floats:
    return np.asarray(np.log(p / (1.0 - p)))


def _complete(sheet: Sheet, left: Bools) -> tuple[bool | None, str]:
    """Return whether every contestant has a price, and if not, why."""
    if sheet.field is None:
        return None, "the contestants are unknown" if sheet.places else "the number of winners is unknown"
    if sheet.strangers:
        return False, f"{sheet.strangers[0]} is quoted but not in the field"
    if len(sheet.field.contestants) <= sheet.places:
        return False, "there are no more contestants than winners"
    priced = np.asarray(left.any(axis=1))
    for name, place in zip(sheet.field.contestants, sheet.place.tolist(), strict=True):
        if place < 0 or not priced[place]:
            return False, f"{name} has no usable price"
    return True, ""


def _reference(
    sheet: Sheet, net: Floats, left: Bools, sharp: Sequence[str] | None, method: str
) -> tuple[int, float, Floats]:
    """Return the first sharp book with a whole field: its index, margin, and fair probabilities of the contestants."""
    limits = kinds.thresholds()
    order = [book.id for book in catalog.books().values() if book.sharp] if sharp is None else [*sharp]
    sums = _sums(sheet, net, left) / max(sheet.places, 1)
    wide = limits.reference_wide_two if sheet.place.size == 2 else limits.reference_wide
    for book in order:
        if book in sheet.books and sums[at := sheet.books.index(book)] <= 1.0 + wide + catalog.thresholds().epsilon:
            probs = fair(net[sheet.place, at], sheet.places, method)
            if not np.isnan(probs).any():
                return at, float(sums[at]) - 1.0, probs
    return -1, np.nan, np.empty(0)


def _edges(sheet: Sheet, net: Floats, left: Bools, probs: Floats, reference: int) -> Floats:
    """Compute the edge of each remaining price of providers other than the reference's."""
    if reference < 0:
        return np.full(net.shape, np.nan)
    provider = providers(sheet.books)
    return np.asarray(np.where(left & (provider != provider[reference]), probs[:, None] * net - 1.0, np.nan))


def _best(net: Floats, left: Bools) -> Longs:
    """Return the index of the best book of each selection, the first among equals; -1 for none."""
    if not net.size:
        return np.full(net.shape[0], -1)
    return np.asarray(np.where(left.any(axis=1), np.where(left, net, -np.inf).argmax(axis=1), -1))


def _implied(sheet: Sheet, net: Floats, best: Longs) -> float:
    """Sum the implied probabilities of the best prices, divided by the number of winners; nan if one is missing."""
    book = best[sheet.place]
    return float((1.0 / net[sheet.place, book]).sum()) / sheet.places if (book >= 0).all() else np.nan


def _arbitrage(sheet: Sheet, net: Floats, best: Longs) -> tuple[FieldArbitrage | None, bool]:
    """Return the arbitrage over a whole field, and whether there was one above the cap."""
    implied, limits = _implied(sheet, net, best), catalog.thresholds()
    if not implied <= break_even(limits.epsilon):
        return None, False
    book = best[sheet.place]
    profit = 1.0 / implied - 1.0
    capped = profit > limits.arbitrage_cap + limits.epsilon
    if capped or np.unique(providers(sheet.books)[book]).size < 2:
        return None, capped
    odds = net[sheet.place, book]
    share = 1.0 / odds / (implied * sheet.places)
    return FieldArbitrage(_id(sheet, book), profit, implied, book, odds, share), False


def _id(sheet: Sheet, book: Longs) -> str:
    """Return the id of an arbitrage: its market and the books of its legs, in order of the contestants' names."""
    legs = sorted(
        (catalog.normalise(sheet.names[place]), sheet.books[at])
        for place, at in zip(sheet.place.tolist(), book.tolist(), strict=True)
    )
    code = mix(hash_text("future_arb"), hash_text(sheet.market.id), *(hash_text(text) for leg in legs for text in leg))
    return f"{sheet.market.id}:{hexadecimal(code)[0]}"
