"""Ladders: what a board offers at one price, level by level, after the venue's fees.

A level is bought in units of payout. It has `units` of them, and one costs `price`, and `fee` on top where the venue
charges per contract. A commission on winnings is in the price. A price without levels is one level of `max_bet`, or of
an unknown size, which counts as unlimited.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.board.row_links import LINKS, RULES, SEPARATOR
from oddsengine.board.state import Board
from oddsengine.catalog.books import Book
from oddsengine.columns import Bools, Floats, Ints, Longs
from oddsengine.detection.arbitrage_sizes import currency_rates
from oddsengine.identity.groups import distinct
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, LIVE, ON, SUSPENDED
from oddsengine.identity.packed_terms import unpack
from oddsengine.maths.depth import fee_per_unit
from oddsengine.maths.odds import charged
from oddsengine.pricing.commission import PriceDepth
from oddsengine.tables.levels import BET_DELAY, BET_STEP, MIN_BET

_SAME = 1.0 + 1e-9
_CONTRACT = 0.02
_IN_PLAY = (False, True)
_RULES = tuple(map(LINKS.index, (MIN_BET, BET_STEP, BET_DELAY)))
_MAX_BET = LINKS.index("max_bet")


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


class _Terms(NamedTuple):
    """What a row says about stakes; 0 where it says nothing."""

    min_stake: float
    step: float
    delay: int


_NO_TERMS = _Terms(0.0, 0.0, 0)


class _Venue(NamedTuple):
    """What the prices of a book have in common."""

    book: Book
    worth: float  # of its currency
    is_rated: bool  # whether that is known
    charges: tuple[tuple[float, float], tuple[float, float]]  # commission and fee, before the start and in play
    is_own: bool  # whether the commission is the user's


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
        self._venues: dict[str, _Venue] = {}

    def of_ids(self, board: Board, rows: Sequence[int]) -> list[Ladder | None]:
        """The ladders of some prices; None: it is gone, or of a size in a currency without a rate."""
        return self.of_slots(board, board.rows.find_ids(np.array(rows, np.uint64)))

    def of_slots(self, board: Board, slots: Ints) -> list[Ladder | None]:
        """The ladders of some rows, -1 being none; None: it is gone, or of a size in a currency without a rate."""
        out: list[Ladder | None] = [None] * slots.size
        places = np.flatnonzero((slots >= 0) & (board.rows.state[slots] == ON))
        if places.size:
            for place, ladder in zip(places.tolist(), self._read(board, slots[places]), strict=True):
                out[place] = ladder
        return out

    def _read(self, board: Board, slots: Ints) -> Iterator[Ladder | None]:
        rows, names = board.rows, board.names.books.values
        key, flags, odds = rows.key[slots], rows.flags[slots], rows.odds[slots]
        live = flags & LIVE != 0
        venues = [self._venue(names[code]) for code in (key & BOOK_MASK).tolist()]
        links = rows.links_of(slots) or [None] * slots.size
        terms = [_terms(link) if has else _NO_TERMS for link, has in zip(links, rows.own[slots] & RULES, strict=True)]
        depth = rows.price_depth(slots, levels=True)
        at, best, stake = _sizes(odds, links, depth)
        is_known = stake[np.searchsorted(at, np.arange(slots.size))] != inf  # by its first level
        unrated = is_known & np.array([not venue.is_rated for venue in venues])
        if self._strict and unrated.any():
            raise self._no_rate(venues[int(unrated.argmax())].book)
        charges = _charges(venues, live, depth)
        worth = np.array([venue.worth for venue in venues])
        levels = _levels(at, best, stake * worth[at], charges[at], slots.size)
        facts = (
            rows.id[slots].tolist(), key.tolist(), venues, levels, (flags & SUSPENDED == 0).tolist(), live.tolist(),
            rows.seen[slots].tolist(), odds.tolist(), terms, unrated.tolist(),
        )  # fmt: skip
        for ident, term, venue, some, is_active, is_live, seen, price, own, is_unrated in zip(*facts, strict=True):
            step = own.step * venue.worth
            is_whole = own.step > 0.0 and abs(own.step * price - 1.0) < _CONTRACT  # it is the price of one
            yield None if is_unrated else Ladder(
                ident, term, venue.book, some, is_active, is_live, seen, venue.book.fee_step * venue.worth,
                own.min_stake * venue.worth, 0.0 if is_whole else step, venue.worth if is_whole else 0.0, own.delay,
            )  # fmt: skip

    def _venue(self, name: str) -> _Venue:
        venue = self._venues.get(name)
        if venue is None:
            book = catalog.book(name)
            own = self._own.get(book.id)
            before, in_play = ((book.commission if own is None else own, book.contract_fee(live=at)) for at in _IN_PLAY)
            is_rated = not book.currency or book.currency in self._worth
            worth = self._worth.get(book.currency, 1.0)  # if it is not known, needed for steps at most
            venue = self._venues[name] = _Venue(book, worth, is_rated, (before, in_play), own is not None)
        return venue

    def _no_rate(self, book: Book) -> ValueError:
        return ValueError(
            f"sizes at {book.id} are in {book.currency}: give its exchange rate, such as rates={{'USD': 1, "
            f"'{book.currency}': ...}}; rates given: {', '.join(self._worth)}"
        )


class BoardLadders:
    """The ladders of a board as long as it does not change, each of which is read once."""

    def __init__(self, ladders: Ladders, board: Board) -> None:
        self._ladders, self._board = ladders, board
        self._of_slot: dict[int, Ladder | None] = {}
        self._of_bet: dict[int, list[Ladder]] = {}
        self._seen: dict[int, int] = {}

    def seen_at(self, rows: Iterable[int]) -> list[int]:
        """When some prices were seen last, microseconds; -1: it is gone."""
        wanted, known = tuple(rows), self._seen
        if unread := [row for row in dict.fromkeys(wanted) if row not in known]:
            slots = self._board.rows.find_ids(np.array(unread, np.uint64))
            known.update(zip(unread, np.where(slots < 0, -1, self._board.rows.seen[slots]).tolist(), strict=True))
        return [known[row] for row in wanted]

    def of_ids(self, rows: Sequence[int]) -> list[Ladder | None]:
        """The ladders of some prices; None: it is gone, or of a size in a currency without a rate."""
        return self.of_slots(self._board.rows.find_ids(np.array(rows, np.uint64)).tolist())

    def of_slots(self, slots: Iterable[int]) -> list[Ladder | None]:
        """The ladders of some rows, -1 being none; None: it is gone, or of a size in a currency without a rate."""
        wanted, read = tuple(slots), self._of_slot
        if unread := [slot for slot in dict.fromkeys(wanted) if slot not in read]:
            found = self._ladders.of_slots(self._board, np.array(unread, np.int32))
            read.update(zip(unread, found, strict=True))
        return [read[slot] for slot in wanted]

    def of_bet(self, term: int) -> list[Ladder]:
        """The ladders of all prices, at any book, of the bet that a term means, without those rejected or suspended."""
        if term not in self._of_bet:
            slots = _rows_of_bet(self._board, term)
            found = self.of_slots(slots[self._board.rows.rejected[slots] == 0].tolist())
            self._of_bet[term] = [ladder for ladder in found if ladder is not None and ladder.is_active]
        return self._of_bet[term]

    def against(self, ladder: Ladder) -> Ladder | None:
        """The other outcome's ladder in the market of a price, at its book; None if it has not two outcomes."""
        found = self.of_slots(_rows_against(self._board, ladder.key).tolist())
        return next((each for each in found if each is not None and each.book is ladder.book), None)


def _terms(link: str | None) -> _Terms:
    min_stake, step, delay = (_number(link, at) for at in _RULES)
    return _Terms(min_stake, step, round(delay * 1e6))


def _number(link: str | None, at: int) -> float:
    """One of the numbers `LINKS` of a row; 0 if it has none."""
    texts = (link or "").split(SEPARATOR, at + 1)
    return float(texts[at] or 0.0) if at < len(texts) else 0.0


def _sizes(odds: Floats, links: Sequence[str | None], depth: PriceDepth | None) -> tuple[Longs, Floats, Floats]:
    """Row, odds and stake of each level, by row and best first; of a row without levels, its own."""
    at, best, stake = depth.levels if depth is not None else (np.empty(0, np.int64), np.empty(0), np.empty(0))
    fits = best <= odds[at] * _SAME  # a level that is better contradicts the price
    is_alone = np.ones(odds.size, bool)
    is_alone[at[fits]] = False
    alone = np.flatnonzero(is_alone)
    sizes = np.array([_number(links[row], _MAX_BET) or inf for row in alone.tolist()])
    rows = np.concatenate((at[fits], alone))
    order = np.argsort(rows, kind="stable")
    return rows[order], np.concatenate((best[fits], odds[alone]))[order], np.concatenate((stake[fits], sizes))[order]


def _charges(venues: Sequence[_Venue], live: Bools, depth: PriceDepth | None) -> Floats:
    """Commission and fee of each row: its own, or those of its book."""
    charges = np.array([venue.charges[is_live] for venue, is_live in zip(venues, live.tolist(), strict=True)])
    if depth is not None and depth.charged.size:
        may = np.array([not venues[row].is_own for row in depth.charged.tolist()])
        rows, own = depth.charged[may], np.column_stack((depth.commission, depth.fee))[may]
        charges[rows] = np.where(np.isnan(own), charges[rows], own)
    return charges


def _levels(at: Longs, odds: Floats, stake: Floats, charges: Floats, n: int) -> list[tuple[Level, ...]]:
    """The levels of each of n rows, cheapest first, of odds, stakes and charges, best first."""
    some = np.flatnonzero(stake > 0.0)
    if not some.size:
        return [()] * n
    at, odds, stake, (commission, fee) = at[some], odds[some], stake[some], charges[some].T
    net = charged(odds, commission)
    is_first = np.ones(at.size, bool)  # of those of a row at the same odds
    is_first[1:] = (at[1:] != at[:-1]) | (odds[1:] != odds[:-1])
    first = np.flatnonzero(is_first)
    units = np.bincount(np.cumsum(is_first) - 1, stake * net)  # adds them in order
    at, odds, price = at[first], odds[first], 1.0 / net[first]
    # A fee is charged for each contract, which pays 1; a commission is taken from what the bet wins.
    due = fee_per_unit(odds, commission[first], fee[first])
    order = np.lexsort((price + due, at))
    every = [*map(Level, *(column[order].tolist() for column in (odds, price, due, units)))]
    ends = np.searchsorted(at, np.arange(n + 1)).tolist()
    return [tuple(every[a:b]) for a, b in pairwise(ends)]


def refusal(ladder: Ladder | None, *, live: bool) -> str:
    """Why a price does not take an order that was decided before the start or in play; empty if it may."""
    if ladder is None:
        return "gone"
    if not ladder.is_active:
        return "suspended"
    return "" if ladder.is_live == live else "in play"


def _rows_of_bet(board: Board, term: int) -> Ints:
    """Slots of all prices of the bet that a term means, at any book."""
    market, sides, side = _market(board, term)
    return _rows(board, market[sides == side], np.arange(len(board.names.books.values)))


def _rows_against(board: Board, key: int) -> Ints:
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
