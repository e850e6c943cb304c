"""A matching engine for contracts on two outcomes, of which one pays 1 and the other nothing.

An order is a bid for contracts on one outcome, at a price in ticks, `ticks` of which make 1. A bid for one outcome at q
is an offer of the other at ticks - q, so the bids for both outcomes are one book, and two of them trade once their
prices sum to at least `ticks`. The order that was there first gets its own price, and the one that arrives what is left
of 1. Among resting orders the best price comes first, then the first to arrive.

Sizes are whole numbers of millionths of a contract (`CONTRACT`), and costs are ticks times sizes: nothing is rounded.
"""

from bisect import bisect_left, insort
from enum import IntEnum
from typing import NamedTuple

CONTRACT = 1_000_000
"""Units of size of a contract."""


class Action(IntEnum):
    """What a trader wants: an order that rests, one that does not, or to cancel; or that the market opens or closes."""

    LIMIT, TAKE, CANCEL, OPEN, CLOSE = range(5)


class Intent(NamedTuple):
    """One action at an exact time, in microseconds. It never depends on what became of others."""

    at: int
    kind: Action
    number: int = 0  # of the order
    outcome: int = 0  # 0 or 1
    price: int = 0  # ticks: the most that a contract may cost
    size: int = 0


class Traded(NamedTuple):
    """What an order has traded: units of size, and their cost in ticks times units."""

    size: int = 0
    cost: int = 0


_NOTHING = Traded()


class MatchingEngine:
    """The resting orders of one market. It is closed at first, and takes no orders while it is.

    Examples
    --------
    >>> book = MatchingEngine()
    >>> book.open()
    >>> book.bid(1, outcome=1, price=40, size=5 * CONTRACT)
    >>> book.bid(2, outcome=0, price=62, size=8 * CONTRACT)
    >>> book.traded(2) == (5 * CONTRACT, 60 * 5 * CONTRACT), book.offers(1, 10) == [(38, 3 * CONTRACT)]
    (True, True)
    """

    def __init__(self, ticks: int = 100) -> None:
        self.ticks = ticks
        self.is_open = False
        self._prices: tuple[list[int], list[int]] = [], []  # of bids, ascending, by outcome
        self._levels: tuple[dict[int, dict[int, int]], dict[int, dict[int, int]]] = {}, {}  # sizes, by price and order
        self._resting: dict[int, tuple[int, int]] = {}  # outcome and price, by order
        self._traded: dict[int, Traded] = {}

    def apply(self, intent: Intent) -> None:
        """Do what an intent says."""
        _, kind, number, outcome, price, size = intent
        if kind == Action.CANCEL:
            self.cancel(number)
        elif kind == Action.OPEN:
            self.open()
        elif kind == Action.CLOSE:
            self.close()
        else:
            self.bid(number, outcome, price, size, rests=kind == Action.LIMIT)

    def open(self) -> None:
        """Take orders from now on."""
        self.is_open = True

    def close(self) -> None:
        """Cancel all orders, and take no more."""
        self.is_open = False
        self._resting.clear()
        for prices, levels in zip(self._prices, self._levels, strict=True):
            prices.clear()
            levels.clear()

    def bid(self, number: int, outcome: int, price: int, size: int, *, rests: bool = True, whole: bool = False) -> None:
        """Trade an order with those that are there, best first; what is left rests, or goes.

        A `whole` order trades nothing if not all of it trades at once.
        """
        if not self.is_open or (whole and self.offered(outcome, price) < size):
            return
        prices, levels = self._prices[1 - outcome], self._levels[1 - outcome]
        while size and prices and prices[-1] + price >= self.ticks:
            best = prices[-1]
            level = levels[best]
            for other, there in list(level.items()):
                taken = min(size, there)
                self._record(number, taken, self.ticks - best)
                self._record(other, taken, best)
                size -= taken
                if taken < there:
                    level[other] = there - taken
                    break
                del level[other], self._resting[other]
                if not size:
                    break
            if not level:
                del levels[best]
                prices.pop()
        if size and rests:
            self._rest(number, outcome, price, size)

    def _rest(self, number: int, outcome: int, price: int, size: int) -> None:
        levels = self._levels[outcome]
        if price not in levels:
            levels[price] = {}
            insort(self._prices[outcome], price)
        levels[price][number] = size
        self._resting[number] = outcome, price

    def cancel(self, number: int) -> None:
        """Remove an order; nothing happens if it is gone."""
        place = self._resting.pop(number, None)
        if place is None:
            return
        outcome, price = place
        level = self._levels[outcome][price]
        del level[number]
        if not level:
            del self._levels[outcome][price]
            prices = self._prices[outcome]
            del prices[bisect_left(prices, price)]

    def _record(self, number: int, size: int, price: int) -> None:
        was = self._traded.get(number, _NOTHING)
        self._traded[number] = Traded(was.size + size, was.cost + size * price)

    def traded(self, number: int) -> Traded:
        """Return what an order has traded since it arrived."""
        return self._traded.get(number, _NOTHING)

    def offers(self, outcome: int, most: int) -> list[tuple[int, int]]:
        """Return price and size of the best levels at which an outcome can be bought."""
        levels = self._levels[1 - outcome]
        best = reversed(self._prices[1 - outcome][-most:])
        return [(self.ticks - price, sum(levels[price].values())) for price in best]

    def offered(self, outcome: int, price: int) -> int:
        """Return how much of an outcome can be bought at a price or better."""
        bids, levels = self._prices[1 - outcome], self._levels[1 - outcome]
        return sum(sum(levels[at].values()) for at in bids[bisect_left(bids, self.ticks - price) :])
