"""The traders of one simulated market, who arrive by Poisson processes of known rates.

All of them trade around a fair probability, what their exchange believes of the market. What they do never depends on
the orders of others, so the same intents can be played again beside further orders:

- **makers** post bids for both outcomes on several levels, around their own opinion. When the fair probability moves
  they take some seconds to cancel all and post anew, and they do so now and then anyway. At times all of a market lean
  to one side for some seconds, as if others' orders had moved them;
- **posters** leave one order, mostly at a worse price than the fair one and sometimes at a better one, and cancel it
  later;
- **takers** take what there is, a few cents beyond the fair price;
- **sharps** know the fair probability at once, and take what is clearly better.
"""

from heapq import heappop, heappush
from math import ceil, floor, inf, log
from operator import attrgetter

import numpy as np

from oddsengine.columns import EARLIEST, SECOND
from oddsengine.simulate.order_books import CONTRACT, Action, Intent
from oddsengine.simulate.simulated_venues import Venue

POSTERS, TAKERS, SHARPS = 0.1, 0.06, 0.12
"""Arrivals per second in one market before the start, each multiplied by `Venue.busy`."""
IN_PLAY = 2.5
"""Multiplier of all rates in play."""
MAKERS = (1.0, 2.5, 6.0)
"""Mean seconds until each maker has posted anew, after the fair probability moved."""
LEANS, LEANS_FOR = 100.0, 10.0
"""Mean seconds until the makers of a market lean to one side, and for which they do."""
_LEAN, _MOST_LEAN = 0.03, 0.2  # by how much they lean on average and at most, at a probability of a half
_RENEW = 60.0  # s between renewals of a maker otherwise, on average
_OPINION = 0.002  # standard deviation of a maker's opinion, as a probability
_HALF_SPREAD = (0.004, 0.014)  # least and most between a maker's opinion and its best bid
_MOVED = 0.003  # by how much the fair probability moves before makers post anew
_LEVELS, _APART = 4, 0.01  # of a maker
_GENEROUS, _ABOVE = 0.2, 0.02  # share of posters who bid more than fair; by how much on average, at a half
_LEAST_BELOW, _BELOW = 0.005, 0.03  # by how much the others bid less
_STAYS = 45.0  # s until a poster cancels, on average
_BEYOND = 0.03  # what takers pay beyond the fair price, at most
_EDGE = 0.007  # what sharps want below it
_MOST, _TAIL = 500.0, 0.9  # of a size in dollars, which has the tail of a Pareto distribution
_LEAST_POSTED, _LEAST_TAKEN, _LEAST_SHARP = 20.0, 5.0, 50.0
_AT = attrgetter("at")


class Traders:
    """Draws the intents of one market, from one span of time to the next."""

    def __init__(self, venue: Venue, rng: np.random.Generator) -> None:
        self._rng, self._ticks = rng, venue.ticks
        self._rates = venue.busy * np.array([POSTERS, TAKERS, SHARPS])
        self._opinion = (_OPINION * rng.standard_normal(len(MAKERS))).tolist()
        self._half = rng.uniform(*_HALF_SPREAD, len(MAKERS)).tolist()
        self._orders: list[list[int]] = [[] for _ in MAKERS]  # those that each maker has posted
        self._due = [inf] * len(MAKERS)  # when each posts anew
        self._seen = -1.0  # the fair probability to which the makers have reacted, or will
        self._lean, self._turn = 0.0, EARLIEST  # what makers add to the fair probability, and when that changes
        self._leaving: list[tuple[int, int]] = []  # when posters cancel, and what
        self._number = 0
        self._uniforms: list[float] = []

    def leave(self) -> None:
        """Forget all orders: the market has closed."""
        self._orders = [[] for _ in MAKERS]
        self._due, self._leaving, self._seen = [inf] * len(MAKERS), [], -1.0
        self._turn = EARLIEST

    def act(self, begin: int, end: int, prob: float, *, live: bool) -> list[Intent]:
        """Return what they do after `begin` and until `end`, in microseconds, by time.

        `prob` is the fair probability of outcome 0.
        """
        intents: list[Intent] = []
        if self._turn <= begin:
            self._lean, self._turn = 0.0, begin + self._wait(LEANS)
        while begin < end:
            until = min(end, self._turn)
            self._quote(begin, until, prob + self._lean * 4.0 * prob * (1.0 - prob), intents)
            self._others(begin, until, prob, IN_PLAY if live else 1.0, intents)
            begin = until
            if begin == self._turn:
                self._lean, wait = (0.0, LEANS) if self._lean else (self._draw_lean(), LEANS_FOR)
                self._turn = begin + self._wait(wait)
        while self._leaving and self._leaving[0][0] <= end:
            intents.append(Intent(self._leaving[0][0], Action.CANCEL, heappop(self._leaving)[1]))
        intents.sort(key=_AT)  # stable: a maker cancels before it posts anew
        return intents

    def _draw_lean(self) -> float:
        size = min(-_LEAN * log(1.0 - self._uniform()), _MOST_LEAN)
        return size if self._uniform() < 0.5 else -size

    def _quote(self, begin: int, end: int, prob: float, intents: list[Intent]) -> None:
        """Let makers post around a probability, which is the fair one unless they lean."""
        if abs(prob - self._seen) >= _MOVED:
            self._seen = prob
            self._due = [min(due, begin + self._wait(mean)) for due, mean in zip(self._due, MAKERS, strict=True)]
        for maker in range(len(MAKERS)):
            while self._due[maker] <= end:
                self._renew(maker, int(self._due[maker]), prob, intents)
                self._due[maker] += self._wait(_RENEW)

    def _others(self, begin: int, end: int, prob: float, busy: float, intents: list[Intent]) -> None:
        """Let posters, takers and sharps act around the fair probability."""
        posters, takers, sharps = self._rng.poisson(self._rates * busy * (end - begin) / SECOND).tolist()
        for _ in range(posters):
            self._post(self._time(begin, end), prob, intents)
        for _ in range(takers):
            at, outcome = self._time(begin, end), int(self._uniform() < 0.5)
            price = min(ceil((_of(prob, outcome) + _BEYOND) * self._ticks), self._ticks - 1)
            self._add(intents, at, Action.TAKE, outcome, price, _LEAST_TAKEN)
        for _ in range(sharps):
            at = self._time(begin, end)
            for outcome in (0, 1):
                price = floor((_of(prob, outcome) - _EDGE) * self._ticks)
                self._add(intents, at, Action.TAKE, outcome, price, _LEAST_SHARP)

    def _renew(self, maker: int, at: int, prob: float, intents: list[Intent]) -> None:
        intents += [Intent(at, Action.CANCEL, number) for number in self._orders[maker]]
        self._orders[maker] = []
        for outcome, opinion in enumerate((self._opinion[maker], -self._opinion[maker])):
            best = _of(prob, outcome) + opinion - self._half[maker]
            for level in range(_LEVELS):
                price = floor((best - level * _APART) * self._ticks)
                number = self._add(intents, at, Action.LIMIT, outcome, price, _LEAST_POSTED)
                self._orders[maker] += [number] if number else []

    def _post(self, at: int, prob: float, intents: list[Intent]) -> None:
        outcome, generous = int(self._uniform() < 0.5), self._uniform() < _GENEROUS
        far = -log(1.0 - self._uniform())
        more = _ABOVE * 4.0 * prob * (1.0 - prob) * far if generous else -_LEAST_BELOW - _BELOW * far
        price = round((_of(prob, outcome) + more) * self._ticks)
        number = self._add(intents, at, Action.LIMIT, outcome, price, _LEAST_TAKEN)
        if number:
            heappush(self._leaving, (at + self._wait(_STAYS), number))

    def _add(self, intents: list[Intent], at: int, kind: Action, outcome: int, price: int, least: float) -> int:
        """Add an order for a random amount of money; returns its number, 0 if there is no such price."""
        dollars = min(least * (1.0 - self._uniform()) ** (-1.0 / _TAIL), _MOST)
        if not 0 < price < self._ticks:
            return 0
        self._number += 1
        contracts = max(1, round(dollars * self._ticks / price))
        intents.append(Intent(at, kind, self._number, outcome, price, contracts * CONTRACT))
        return self._number

    def _uniform(self) -> float:
        if not self._uniforms:
            self._uniforms = self._rng.random(256).tolist()
        return self._uniforms.pop()

    def _wait(self, mean: float) -> int:
        return 1 - int(log(1.0 - self._uniform()) * mean * SECOND)

    def _time(self, begin: int, end: int) -> int:
        return begin + 1 + int(self._uniform() * (end - begin))


def _of(prob: float, outcome: int) -> float:
    return 1.0 - prob if outcome else prob
