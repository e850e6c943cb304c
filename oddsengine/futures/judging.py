"""Judging one market: what is set aside, whether its field is complete, what is fair, and what the best prices leave.

d' is a price after commission, q = 1 / d', w the number of places, n the contestants of the field. Over all books:

    a book's sum      S_b = sum over the field of q at that book, where it quotes everybody
    its margin        S_b / w - 1
    fair              p_i from the reference's whole field (`winners.fair`), sum p_i = w
    edge              p_i d' - 1, of every other feed's prices

and over the books that may be bet, with the best d' of each contestant:

    hold              S / w - 1
    arbitrage         profit w / S - 1, stake share (1 / d'_i) / S, where S < w: whoever the w winners are, stakes of 1
                      in all bring back w / S

**Guards**, in order; each judges what is left by those before it, all of it before it sets anything aside:

1. not offered, two forms of the price that differ, mid prices, one selection priced twice by one book (the lower price
   stays if they are near);
2. `stale`: not seen for an hour; a price without a time was seen when it came;
3. `other_field`: an "any other" of a book that does not list exactly those whom the stated field names;
4. `book_sum`: a book whose own whole field sums to less than w (an exchange's a little less): all of its prices;
5. `outlier`: a price more generous than the median of three or more other feeds, by more in log-odds than the bound of
   games: that price. One that is too stingy by the same bound keeps its book from being the reference.

**Complete** means: somebody says who takes part, nobody quotes a stranger, more take part than win, and each of them
has a price that is left. Without that there is no fair price, no hold and no arbitrage. The **reference** is the first
sharp book whose own field is whole, whose margin is not too wide, and whose prices have an answer; there is no
consensus.

An arbitrage takes two feeds at least, prices as fresh as those of games (ten minutes) only, and stays below the cap of
games; an edge above the cap of games is no edge.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine.catalog import futures as known
from oddsengine.find.ids import hexadecimal, word
from oddsengine.futures.identity import ANY_OTHER
from oddsengine.futures.sheets import Sheet
from oddsengine.futures.winners import fair
from oddsengine.groups import Floats, Longs, mix

Bools = npt.NDArray[np.bool_]
REASONS = ("", "unusable", "stale", "other_field", "book_sum", "outlier", "ev_cap")
UNUSABLE, STALE, OTHER_FIELD, BOOK_SUM, OUTLIER, EV_CAP = range(1, 7)
_SECOND = 1_000_000


class Arbitrage(NamedTuple):
    """Stakes on a whole field; a leg is a contestant, `book` the place of the book among the sheet's."""

    id: str
    profit: float  # fraction
    implied: float  # sum of implied probabilities over the places: below 1
    book: Longs
    odds: Floats  # after commission
    share: Floats


class Judged(NamedTuple):
    """What there is to say of one market. Tables are laid out as the sheet's, columns over contestants as its field."""

    sheet: Sheet
    aside: npt.NDArray[np.int8]  # places in `REASONS`; 0 is left
    complete: bool | None  # None: nobody says who takes part
    why: str  # it is not complete; empty if it is
    reference: str  # a book; empty for none
    margin: float  # the reference's; nan for none
    fair: Floats  # of every selection; nan where there is none
    edge: Floats  # of every price, fraction; nan where there is none
    best: Longs  # of every selection, the best book's place among those that may be bet; -1 for none
    hold: float  # nan where not every contestant has such a price
    arbitrage: Arbitrage | None
    capped: bool  # there was one above the cap


def judge(
    sheet: Sheet, now: int, books: Collection[str] | None = None, sharp: Sequence[str] | None = None,
    method: str = "power", *, outliers: bool = True,
) -> Judged:  # fmt: skip
    """Judge a market at a time in microseconds.

    `books` may be bet (None: all); `sharp` says what is fair, in order of preference (None: the catalog's sharp books).
    """
    net = _after_commission(sheet)
    aside, stingy = _aside(sheet, net, now, outliers=outliers)
    left = aside == 0
    complete, why = _complete(sheet, left)
    reference, margin, of_field = -1, np.nan, np.empty(0)
    if complete:
        reference, margin, of_field = _reference(sheet, net, left & ~stingy, sharp, method)
    probs = np.full(len(sheet.names), np.nan)
    if reference >= 0:
        probs[sheet.place] = of_field
    edge = _edges(sheet, net, left, probs, reference)
    limits = catalog.thresholds()
    wild = edge > limits.ev_cap + limits.epsilon
    aside[wild], edge[wild] = EV_CAP, np.nan
    mine = np.array([books is None or book in books for book in sheet.books], np.bool_)
    offered = left & mine & ~wild
    best = _best(net, offered)
    hold, arbitrage, capped = np.nan, None, False
    if complete:
        hold = _implied(sheet, net, best) - 1.0
        fresh = sheet.seen >= now - round(limits.stale_prematch_s * _SECOND)
        arbitrage, capped = _arbitrage(sheet, net, _best(net, offered & fresh))
    name = sheet.books[reference] if reference >= 0 else ""
    return Judged(sheet, aside, complete, why, name, margin, probs, edge, best, hold, arbitrage, capped)


def _after_commission(sheet: Sheet) -> Floats:
    charged = [catalog.book(book) for book in sheet.books]
    commission, fee = np.array([b.commission for b in charged]), np.array([b.fee for b in charged])
    p, win = 1.0 / sheet.odds, sheet.odds - 1.0
    return np.asarray(np.where(fee > 0.0, 1.0 / (p + fee * p * (1.0 - p)), 1.0 + win * (1.0 - commission)))


def _aside(sheet: Sheet, net: Floats, now: int, *, outliers: bool) -> tuple[npt.NDArray[np.int8], Bools]:
    """Why each price is not used, and which are too stingy for a reference."""
    aside = np.where(sheet.usable, 0, UNUSABLE).astype(np.int8)
    limit = now - round(known.limits().stale_s * _SECOND)
    aside[(aside == 0) & (sheet.seen < limit)] = STALE
    if ANY_OTHER in sheet.names:
        other = sheet.names.index(ANY_OTHER)
        aside[other, (aside[other] == 0) & ~sheet.own_field] = OTHER_FIELD
    if sheet.field is not None:
        sums = _sums(sheet, net, aside == 0)
        low = catalog.thresholds().book_sum_low, catalog.thresholds().book_sum_low_exchange
        exchange = np.array([catalog.book(book).exchange for book in sheet.books], np.bool_)
        short = sums < sheet.places * (np.where(exchange, low[1], low[0]) - catalog.thresholds().epsilon)
        aside[(aside == 0) & short] = BOOK_SUM
    if not outliers:
        return aside, np.zeros(aside.shape, np.bool_)
    generous, stingy = _outliers(sheet, net, aside == 0)
    aside[generous] = OUTLIER
    return aside, stingy


def _sums(sheet: Sheet, net: Floats, left: Bools) -> Floats:
    """Sum of each book's implied probabilities over the field; infinite unless it quotes everybody."""
    if not sheet.place.size or (sheet.place < 0).any():
        return np.full(len(sheet.books), np.inf)
    q = np.where(left, 1.0 / net, np.inf)
    return np.asarray(q[sheet.place].sum(axis=0))


def _outliers(sheet: Sheet, net: Floats, left: Bools) -> tuple[Bools, Bools]:
    """Prices too generous, and too stingy, beside the median of the other feeds; a feed's first book speaks for it."""
    limits = catalog.thresholds()
    generous, stingy = np.zeros(net.shape, np.bool_), np.zeros(net.shape, np.bool_)
    feeds = [catalog.book(book).feed or f"={book}" for book in sheet.books]
    names = sorted(set(feeds))
    feed = np.array([names.index(one) for one in feeds], np.int64)
    q = np.where(left, 1.0 / net, np.nan)
    voices = np.full((net.shape[0], len(names)), np.nan)
    for j in range(len(feeds) - 1, -1, -1):
        voices[left[:, j], feed[j]] = q[left[:, j], j]
    for f in range(len(names)):
        others = np.delete(voices, f, axis=1)
        enough = (~np.isnan(others)).sum(axis=1) >= limits.outlier_others
        if not enough.any():
            continue
        middle = np.nanmedian(others[enough], axis=1)[:, None]
        bound = limits.outlier_other + limits.outlier_slope / (middle * (1.0 - middle)) + limits.epsilon
        own = np.ix_(enough, feed == f)
        gap = _logit(q[own]) - _logit(middle)
        generous[own], stingy[own] = gap < -bound, gap > bound
    return generous, stingy


def _logit(p: Floats) -> Floats:
    return np.asarray(np.log(p / (1.0 - p)))


def _complete(sheet: Sheet, left: Bools) -> tuple[bool | None, str]:
    """Whether every contestant has a price, and if not, why."""
    if sheet.field is None:
        return None, "nobody says who takes part" if sheet.places else "nobody says how many win"
    if sheet.strangers:
        return False, f"{sheet.strangers[0]} is quoted and not of the field"
    if len(sheet.field.contestants) <= sheet.places:
        return False, "as many win as take part"
    priced = np.asarray(left.any(axis=1))
    for name, place in zip(sheet.field.contestants, sheet.place.tolist(), strict=True):
        if place < 0 or not priced[place]:
            return False, f"{name} has no price that can be used"
    return True, ""


def _reference(
    sheet: Sheet, net: Floats, left: Bools, sharp: Sequence[str] | None, method: str
) -> tuple[int, float, Floats]:
    """The first sharp book with a whole field: its place, its margin, the fair probabilities of the contestants."""
    limits = known.limits()
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
    """Edge of each price that is left, of other feeds than the reference's."""
    if reference < 0:
        return np.full(net.shape, np.nan)
    feed = [catalog.book(book).feed or f"={book}" for book in sheet.books]
    other = np.array([one != feed[reference] for one in feed], np.bool_)
    return np.asarray(np.where(left & other, probs[:, None] * net - 1.0, np.nan))


def _best(net: Floats, left: Bools) -> Longs:
    """The place of the best book for each selection, the first of equals; -1 for none."""
    if not net.size:
        return np.full(net.shape[0], -1)
    return np.asarray(np.where(left.any(axis=1), np.where(left, net, -np.inf).argmax(axis=1), -1))


def _implied(sheet: Sheet, net: Floats, best: Longs) -> float:
    """Sum of the best prices' implied probabilities over the places; nan where a contestant has none."""
    book = best[sheet.place]
    return float((1.0 / net[sheet.place, book]).sum()) / sheet.places if (book >= 0).all() else np.nan


def _arbitrage(sheet: Sheet, net: Floats, best: Longs) -> tuple[Arbitrage | None, bool]:
    """The arbitrage over a whole field, and whether there was one above the cap."""
    implied, limits = _implied(sheet, net, best), catalog.thresholds()
    if not implied < 1.0:
        return None, False
    book = best[sheet.place]
    feeds = {catalog.book(sheet.books[at]).feed or f"={sheet.books[at]}" for at in book.tolist()}
    profit = 1.0 / implied - 1.0
    capped = profit > limits.arbitrage_cap + limits.epsilon
    if capped or len(feeds) < 2:
        return None, capped
    odds = net[sheet.place, book]
    share = 1.0 / odds / (implied * sheet.places)
    return Arbitrage(_id(sheet, book), profit, implied, book, odds, share), False


def _id(sheet: Sheet, book: Longs) -> str:
    """Id of an arbitrage: its market, and the books of its legs in the order of the contestants' names."""
    legs = sorted(
        (catalog.normalise(sheet.names[place]), sheet.books[at])
        for place, at in zip(sheet.place.tolist(), book.tolist(), strict=True)
    )
    code = mix(word("future_arb"), word(sheet.market.id), *(word(text) for leg in legs for text in leg))
    return f"{sheet.market.id}:{hexadecimal(code)[0]}"
