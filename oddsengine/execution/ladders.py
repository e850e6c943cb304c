"""Ladders: what a board offers at one price, level by level, after the venue's fees.

A level is bought in units of payout. It has `units` of them, and one costs `price`, and `fee` on top where the venue
charges per contract. A commission on winnings is in the price. A price without levels is one level of `max_bet`, or of
an unknown size, which counts as unlimited.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import inf, isnan
from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.board.row_links import LINKS, SEPARATOR
from oddsengine.board.state import Board
from oddsengine.catalog.books import Book
from oddsengine.columns import Ints, Longs
from oddsengine.detection.arbitrage_sizes import currency_rates
from oddsengine.identity.groups import distinct
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, LIVE, ON, SUSPENDED
from oddsengine.identity.packed_terms import unpack
from oddsengine.maths.depth import fee_per_unit
from oddsengine.maths.odds import charged
from oddsengine.tables.levels import BET_DELAY, BET_STEP, MIN_BET

_SAME = 1.0 + 1e-9
_CONTRACT = 0.02
_RULES = tuple(map(LINKS.index, ("max_bet", MIN_BET, BET_STEP, BET_DELAY)))


class Level(NamedTuple):
    """One level of a ladder."""

    odds: float  # as the venue shows them
    price: float  # of one unit of payout, without a fee per contract
    fee: float  # on top, before it is rounded
    units: float  # of payout; `inf` if its size is unknown

    @property
    def cost(self) -> float:
        """What one unit of payout costs."""
        return self.price + self.fee


class Ladder(NamedTuple):
    """A price as it stands at one moment."""

    row: int  # the id of the price
    key: int  # its term and book
    book: Book
    levels: tuple[Level, ...]  # cheapest first
    is_active: bool  # neither suspended nor removed
    is_live: bool
    seen: int  # microseconds
    fee_step: float  # to whose multiples the fee of an order is rounded up
    min_stake: float  # before fees, like the next
    step: float  # stakes are whole multiples of it; 0 for any
    lot: float  # units of payout are whole multiples of it, of contracts that are sold whole; 0 for any
    delay: int  # microseconds that the venue holds a bet in play

    @property
    def is_known(self) -> bool:
        """Whether its size is known."""
        return all(level.units < inf for level in self.levels)


class Terms(NamedTuple):
    """What a row says about stakes; 0 where it says nothing."""

    max_bet: float
    min_stake: float
    step: float
    delay: int


class Ladders:
    """Reads the ladders of a board.

    Parameters
    ----------
    commission
        The user's rates by book; they replace those of the catalog and of prices.
    rates
        Worth of one unit of a currency in the money of stakes, see `largest_arbitrages`.
    strict
        Whether a size in a currency without a rate is an error; otherwise such a price has no ladder.
    """

    def __init__(
        self, commission: Iterable[tuple[str, float]] = (), rates: Mapping[str, float] | None = None, *,
        strict: bool = True,
    ) -> None:  # fmt: skip
        self._own = {catalog.book(book).id: rate for book, rate in commission}
        self._worth, self._strict = currency_rates(rates), strict
        self._books: dict[str, Book] = {}

    def of_id(self, board: Board, row: int) -> Ladder | None:
        """The ladder of a price; None: it is gone."""
        slot = int(board.rows.find_ids(np.array([row], np.uint64))[0])
        return None if slot < 0 else self.of_slot(board, slot)

    def of_slot(self, board: Board, slot: int) -> Ladder | None:
        """The ladder of a row; None: it is gone."""
        rows = board.rows
        if rows.state[slot] != ON:
            return None
        key, flags, odds = int(rows.key[slot]), int(rows.flags[slot]), float(rows.odds[slot])
        name = board.names.books.values[key & BOOK_MASK]
        book = self._books.get(name)
        if book is None:
            book = self._books[name] = catalog.book(name)
        terms = _terms(rows.links[slot]) if slot < len(rows.links) else _NO_TERMS
        is_live = flags & LIVE != 0
        commission, fee = self._fees(rows.deep.fees(slot), book, live=is_live)
        # A level that is better contradicts the price.
        sizes = [level for level in rows.deep.levels(slot) if level[0] <= odds * _SAME]
        sizes = sizes or [(odds, terms.max_bet or inf)]
        if sizes[0][1] == inf:
            worth = self._worth.get(book.currency, 1.0)  # needed for the venue's steps at most
        elif book.currency and book.currency not in self._worth and not self._strict:
            return None
        else:
            worth = self._rate(book)
        levels = _levels(tuple(sizes), commission, fee, worth)
        is_whole = terms.step > 0.0 and abs(terms.step * odds - 1.0) < _CONTRACT  # it is the price of one
        return Ladder(
            int(rows.id[slot]), key, book, levels, flags & SUSPENDED == 0, is_live, int(rows.seen[slot]),
            book.fee_step * worth, terms.min_stake * worth, 0.0 if is_whole else terms.step * worth,
            worth if is_whole else 0.0, terms.delay,
        )  # fmt: skip

    def _fees(self, own: tuple[float, float], book: Book, *, live: bool) -> tuple[float, float]:
        fee = book.contract_fee(live=live)
        if book.id in self._own:
            return self._own[book.id], fee
        commission, of_row = own
        return book.commission if isnan(commission) else commission, fee if isnan(of_row) else of_row

    def _rate(self, book: Book) -> float:
        """Worth of its currency. Raises `ValueError` if that is unknown."""
        if book.currency and book.currency not in self._worth:
            raise ValueError(
                f"sizes at {book.id} are in {book.currency}: give its exchange rate, such as rates={{'USD': 1, "
                f"'{book.currency}': ...}}; rates given: {', '.join(self._worth)}"
            )
        return self._worth.get(book.currency, 1.0)


@lru_cache(maxsize=1 << 16)
def _terms(link: str | None) -> Terms:
    texts = (link or "").split(SEPARATOR)
    max_bet, min_stake, step, delay = (float(texts[at] or 0.0) if at < len(texts) else 0.0 for at in _RULES)
    return Terms(max_bet, min_stake, step, round(delay * 1e6))


_NO_TERMS = Terms(0.0, 0.0, 0.0, 0)


@lru_cache(maxsize=1 << 16)
def _levels(
    sizes: tuple[tuple[float, float], ...], commission: float, fee: float, worth: float
) -> tuple[Level, ...]:  # fmt: skip
    """Levels, cheapest first, of odds and stakes in the currency of their book, best first."""
    out: list[Level] = []
    for odds, size in sizes:
        stake = size * worth
        if stake <= 0.0 or isnan(stake):
            continue
        net = float(charged(np.float64(odds), commission))
        price = 1.0 / net
        if out and out[-1].odds == odds:
            out[-1] = out[-1]._replace(units=out[-1].units + stake * net)
            continue
        # A fee is charged for each contract, which pays 1; a commission is taken from what the bet wins.
        out.append(Level(odds, price, float(fee_per_unit(np.array(odds), commission, fee)), stake * net))
    return tuple(sorted(out, key=lambda level: level.cost))


def refusal(ladder: Ladder | None, *, live: bool) -> str:
    """Why a price does not take an order that was decided before the start or in play; empty if it may."""
    if ladder is None:
        return "gone"
    if not ladder.is_active:
        return "suspended"
    return "" if ladder.is_live == live else "in play"


def rows_of_bet(board: Board, term: int) -> Ints:
    """Slots of all prices of the bet that a term means, at any book."""
    market, sides, side = _market(board, term)
    return _rows(board, market[sides == side], np.arange(len(board.names.books.values)))


def rows_against(board: Board, key: int) -> Ints:
    """Slots of the other outcome's prices in the market of a price, at its book; none if it has not two outcomes."""
    market, sides, side = _market(board, key >> BOOK_BITS)
    slots = _rows(board, market, np.array([key & BOOK_MASK]))
    of = dict(zip(market.tolist(), sides.tolist(), strict=True))
    side_of = np.array([of[term] for term in (board.rows.key[slots] >> BOOK_BITS).tolist()], np.int64)
    others = distinct(side_of[side_of != side])
    against: Ints = slots[side_of == others[0]] if others.size == 1 else slots[:0]
    return against


def _market(board: Board, term: int) -> tuple[Longs, Longs, int]:
    """The terms of a term's market, their sides, and its own."""
    terms = board.names.terms
    alike = terms.of_event(int(terms.event.values[term]))
    alike = alike[terms.place.values[alike, 0] == terms.place.values[term, 0]]
    parts, own = unpack(*terms.place.values[alike].T), unpack(*terms.place.values[term].tolist())
    same = parts.threshold == own.threshold
    return alike[same], parts.side[same], own.side


def _rows(board: Board, terms: Longs, books: Longs) -> Ints:
    """Slots of the prices of some terms at some books."""
    slots = board.rows.find((terms[:, None] << BOOK_BITS | books).ravel())
    found: Ints = slots[(slots >= 0) & (board.rows.state[slots] == ON)]
    return found
