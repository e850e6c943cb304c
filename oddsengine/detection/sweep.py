"""Detection: which accepted prices of the callers' books form an opportunity.

Callers with the same fair prices (see `references`) are searched together: `offers` adds a table of the books that each
of them may bet, and every case of a search includes its caller. Everything here is local to an event.

`sweep` is a fast pass over all offers: the best price per outcome, their sum per market, the best edge against the
reference, and pairs of lines. It may list too many candidates but never misses one. Other functions check them:

- `best_legs`, `pair_legs`: the best admissible prices, one per outcome (arbitrage, low hold) or line (middles)
- `edges`: each book's edge over the fair probability (+EV)

Prices are after commission. The sum of a market with an outcome that no book offers is infinite.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import fused, kernel
from oddsengine.catalog.reasons import CODES
from oddsengine.guards.verdicts import Verdicts, main_lines
from oddsengine.identity.groups import NO_TIME, Bytes, Floats, Groups, Ints, Longs, Words, first_gap, step
from oddsengine.identity.table import Identity
from oddsengine.maths.devig import devig_groups
from oddsengine.pricing import close as fair_close
from oddsengine.pricing.references import FairPrices, ViewSpec, devig_method, fair_prices, view_spec

_MANY_ROWS = 64  # longer lists of prices are sorted even for one caller


@dataclass(frozen=True, eq=False)
class Offers(FairPrices):
    """Fair prices shared by some callers, and the books that each of them may bet."""

    wanted: Bytes  # (callers, books): its prices are offers
    counted: Bytes  # (callers, books): it counts in medians
    suspects: Bytes  # per caller: 1 if +EV includes pre-match prices rejected by `outlier`

    @cached_property
    def offer(self) -> npt.NDArray[np.bool_]:
        """Per row: may be a leg of the first caller."""
        return np.asarray((self.reason == 0) & (self.wanted[0][self.groups.book] != 0))

    @cached_property
    def _lines(self) -> tuple[Bytes, Ints]:
        return main_lines(self.groups, self.net, (~self.offer).view(np.uint8), self.wanted.shape[1])

    @property
    def main(self) -> Bytes:
        """Per market: the main line of its ladder, for the first caller."""
        return self._lines[0]

    @property
    def books(self) -> Ints:
        """Per market: how many of the first caller's books offer it."""
        return self._lines[1]


class Wants(NamedTuple):
    """The thresholds of some callers, one array per threshold; fractions. Infinite values disable a kind."""

    edge: Floats  # minimum EV of +EV, inf: disabled
    profit: Floats  # minimum profit of an arbitrage, inf: disabled
    most_profit: Floats  # maximum profit of an arbitrage or middle; more is treated as an error
    hold: Floats  # maximum hold of a low hold, -inf: disabled
    worth: Floats  # minimum EV of a middle, -inf: any, inf: disabled
    size: Floats  # minimum distance between a middle's lines

    @classmethod
    def from_thresholds(
        cls, *, min_ev: float | None = None, min_profit: float | None = None, max_profit: float | None = None,
        max_hold: float | None = None, min_middle_ev: float | None = None, min_size: float = 0.0,
    ) -> "Wants":  # fmt: skip
        """Thresholds of one caller, in percent; None disables a kind, or the limit of `max_profit`."""
        columns = (
            np.inf if min_ev is None else min_ev / 100.0,
            np.inf if min_profit is None else min_profit / 100.0,
            np.inf if max_profit is None else max_profit / 100.0,
            -np.inf if max_hold is None else max_hold / 100.0,
            np.inf if min_middle_ev is None else min_middle_ev / 100.0,
            min_size,
        )
        return cls(*(np.array([column], np.float64) for column in columns))

    @classmethod
    def stack(cls, several: Sequence["Wants"]) -> "Wants":
        """Combine the thresholds of several callers, in order."""
        return cls(*map(np.concatenate, zip(*several, strict=True)))


class Scope(NamedTuple):
    """Where to search; open opportunities elsewhere are left unchanged."""

    markets: Bytes  # per market: 1 to search for +EV, arbitrages and low holds
    ladders: Bytes  # per ladder: 1 to search for middles
    fair: Bytes  # per market: 1 if these searches need its fair probabilities

    @classmethod
    def everything(cls, groups: Groups) -> "Scope":
        """The whole board."""
        every = np.ones(groups.threshold.size, np.uint8)
        return cls(every, np.ones(groups.event.size, np.uint8), every)


class Legs(NamedTuple):
    """The selected rows of some cases, (n, outcomes) padded with -1, and the sums of their 1/odds."""

    rows: Ints
    total: Floats


def offers(prices: FairPrices, callers: Sequence[ViewSpec]) -> Offers:
    """Add the books of some callers to fair prices computed from the rest of their parameters."""
    wanted, counted = (np.stack([getattr(caller, name) for caller in callers]) for name in ("wanted", "counted"))
    suspects = np.array([caller.suspects for caller in callers], np.uint8)
    return Offers(**vars(prices), wanted=wanted, counted=counted, suspects=suspects)


def view(
    identity: Identity,
    guarded: Verdicts,
    off: frozenset[int],
    books: Iterable[str] | None,
    sharp: Any,
    method: str,
    commission: Mapping[str, float] | None,
    *,
    suspects: bool = False,
    board: fair_close.CloseInput | None = None,
) -> Offers:
    """Return the offers of one caller: `view_spec`, `fair_prices` and `offers` in one call."""
    spec = view_spec(identity.books, identity.traits, books, sharp, method, commission, suspects=suspects)
    return offers(fair_prices(identity.groups, identity.traits, guarded, spec, off, board=board), [spec])


@fused
def _sweep(
    in_market, in_ladder, wanted, edge_least, sum_most, worth_least, apart, bound, markets, segments, rows, book, net,
    reason, kind, two_sided, threshold, fair, reference, close,
    best, cost, total, most, sum_who, sum_market, sum_total, edge_who, edge_market, pair_who, pair_low, pair_high,
    pair_over, pair_under, count,
):  # fmt: skip
    """One pass for all callers: markets with a low sum of best prices or a possible edge, and pairs of lines.

    `wanted` (books, callers) is 1.0 or 0.0. Scratch arrays: `best` and `cost` (segments of a ladder, callers) are the
    best prices and their inverses; `total` and `most` (callers) are the sum and the best edge of a market. `count` is
    set to the number of candidates of each of the three kinds, including those that do not fit in the arrays.
    """
    n_sums, n_edges, n_pairs = 0, 0, 0
    callers = wanted.shape[1]
    pairing = False
    for v in range(callers):
        pairing |= worth_least[v] < np.inf
    for at in range(markets.size - 1):
        first, last = markets[at], markets[at + 1]
        whole = pairing and in_ladder[at] != 0 and two_sided[kind[at]] != 0
        base = segments[first]
        for m in range(first, last):
            if in_market[m] == 0 and not whole:
                continue
            for s in range(segments[m], segments[m + 1]):
                top, price = best[s - base], cost[s - base]
                for v in range(callers):
                    top[v] = 0.0
                for i in range(rows[s], rows[s + 1]):
                    if reason[i] != 0:
                        continue
                    mine, x = wanted[book[i]], net[i]
                    for v in range(callers):
                        y = x * mine[v]
                        top[v] = y if y > top[v] else top[v]
                for v in range(callers):
                    price[v] = 1.0 / top[v]
            if in_market[m] == 0:
                continue
            for v in range(callers):
                total[v] = 0.0
                most[v] = np.inf if reference[m] == -2 else 0.0
            for s in range(segments[m], segments[m + 1]):
                top, price, p = best[s - base], cost[s - base], fair[s]
                for v in range(callers):
                    total[v] += price[v]
                    a = top[v] * p
                    most[v] = a if a > most[v] else most[v]
            for v in range(callers):
                if total[v] <= sum_most[v]:
                    if n_sums < sum_who.size:
                        sum_who[n_sums] = v
                        sum_market[n_sums] = m
                        sum_total[n_sums] = total[v]
                    n_sums += 1
                if reference[m] != -1 and (most[v] >= 1.0 + edge_least[v] or edge_least[v] <= -0.5):
                    if n_edges < edge_who.size:
                        edge_who[n_edges] = v
                        edge_market[n_edges] = m
                    n_edges += 1
        if not whole:
            continue
        # Pairs of lines with a whole number strictly between them. If one reference has both half lines, the best
        # prices must reach the threshold with its probabilities.
        for high in range(first, last):
            under = cost[segments[high + 1] - 1 - base]
            for low in range(first, high):
                if threshold[low] // 100 + 1 > -(-threshold[high] // 100) - 1:
                    continue
                over = cost[segments[low] - base]
                worth = np.inf
                if reference[low] >= 0 and reference[low] == reference[high]:
                    p, q = fair[segments[low]], fair[segments[high]]
                    if threshold[low] % 100 == 50 and threshold[high] % 100 == 50 and p >= q:
                        worth = 1.0 + p - q
                        if close.size > 0:  # shifted as in `tails`
                            a, b = close[segments[low]], close[segments[high]]
                            odds_p, odds_q = p / (1.0 - p), q / (1.0 - q)
                            by = np.sqrt(a / (1.0 - a) / odds_p * (b / (1.0 - b)) / odds_q)
                            worth = 1.0 + 1.0 / (1.0 + 1.0 / (odds_p * by)) - 1.0 / (1.0 + 1.0 / (odds_q * by))
                            worth = np.inf if np.isnan(worth) else worth
                for v in range(callers):
                    x = over[v] + under[v]
                    if x > bound or threshold[high] - threshold[low] < apart[v]:
                        continue
                    if not (worth / x - 1.0 >= worth_least[v]):
                        continue
                    if n_pairs < pair_who.size:
                        pair_who[n_pairs] = v
                        pair_low[n_pairs] = low
                        pair_high[n_pairs] = high
                        pair_over[n_pairs] = best[segments[low] - base, v]
                        pair_under[n_pairs] = best[segments[high + 1] - 1 - base, v]
                    n_pairs += 1
    count[0], count[1], count[2] = n_sums, n_edges, n_pairs


class Candidates(NamedTuple):
    """Candidates for the exact checks, in order of market, then caller."""

    sum_who: Longs
    sum_market: Longs
    total: Floats  # sum of 1/odds of the best prices
    edge_who: Longs
    edge_market: Longs
    pair_who: Longs
    low: Longs  # pairs of lines, equal pairs adjacent: market of the over
    high: Longs  # market of the under
    over: Floats  # best price of the over, whenever seen
    under: Floats
    bound: float  # largest sum of 1/odds of a pair


def sweep(view: Offers, wants: Wants, scope: Scope) -> Candidates:
    """List candidates in one pass over the offers of all callers; it may list too many but never misses one."""
    g, limits = view.groups, view.limits
    epsilon = limits.epsilon
    bound = 1.0 / (1.0 + limits.middle_floor - epsilon)
    sum_most = np.maximum(most_implied(wants, epsilon), 1.0 + wants.hold + epsilon)
    widest = int(np.diff(g.segments[g.markets]).max(initial=0))
    callers, inside = wants.edge.size, int(np.count_nonzero(scope.markets))
    best, cost = np.empty((2, widest, callers))
    totals, mosts = np.empty((2, callers))
    wanted, count = view.wanted.T.astype(np.float64, order="C"), np.zeros(3, np.int64)
    most = min(callers * inside, inside + 4096)
    room = [most, most, 4096 + inside]
    while True:
        sums, edges, pairs = room
        sum_who, sum_market = np.empty((2, sums), np.int64)
        edge_who, edge_market = np.empty((2, edges), np.int64)
        pair_who, low, high = np.empty((3, pairs), np.int64)
        over, under = np.empty((2, pairs))
        total = np.empty(sums)
        _sweep(
            scope.markets, scope.ladders, wanted, wants.edge - epsilon, sum_most, wants.worth - 2.0 * epsilon,
            np.round(wants.size * 100.0).astype(np.int64), bound, g.markets, g.segments, g.rows, g.book, view.net,
            view.reason, g.kind, view.traits.two_sided, g.threshold, view.fair, view.reference,
            np.empty(0) if view.close is None else view.close.segment,
            best, cost, totals, mosts, sum_who, sum_market, total, edge_who, edge_market,
            pair_who, low, high, over, under, count,
        )  # fmt: skip
        if (count <= room).all():
            s, e, p = count.tolist()
            return Candidates(
                sum_who[:s], sum_market[:s], total[:s], edge_who[:e], edge_market[:e],
                pair_who[:p], low[:p], high[:p], over[:p], under[:p], bound,
            )  # fmt: skip
        room = np.maximum(count, room).tolist()


def break_even(epsilon: float) -> float:
    """The largest sum of 1/odds that has a profit; above it, best prices are a low hold."""
    return 1.0 / (1.0 + epsilon)


def most_implied(wants: Wants, epsilon: float) -> Floats:
    """The largest sum of 1/odds of an arbitrage, per caller; it has a profit unless the minimum is below 0."""
    most = 1.0 / (1.0 + wants.profit - epsilon)
    return np.where(wants.profit < 0.0, most, np.minimum(most, break_even(epsilon)))


@kernel
def _best_of(order, ends, n, ranked, book, net, wanted, seen, early, late, distinct, out):
    """Best row of each of n lists of rows, seen within [early, late] or at an unknown time.

    The lists are parts of `order`, sorted by price if `ranked`.

    `distinct` requires at least two books. Returns the sum of 1/odds, or infinity if there is no such set.
    """
    total = 0.0
    same = True
    for k in range(n):
        out[k] = -1
    for k in range(n):
        for i in order[ends[k] : ends[k + 1]]:
            if wanted[book[i]] == 0 or (seen[i] != NO_TIME and not early <= seen[i] <= late):
                continue
            if out[k] < 0 or net[i] > net[out[k]]:
                out[k] = i
            if ranked:
                break
        if out[k] < 0:
            return np.inf
        total += 1.0 / net[out[k]]
        if book[out[k]] != book[out[0]]:
            same = False
    if not distinct or not same:
        return total
    # All from one book: find the best replacement of one leg. Among equals, replace the last leg if the new book sorts
    # after the old one, else the earlier leg, so that the tuple of books sorts first.
    alone = book[out[0]]
    least = np.inf
    place, row = -1, -1
    for k in range(n):
        other = -1
        for i in order[ends[k] : ends[k + 1]]:
            if book[i] == alone or wanted[book[i]] == 0 or (seen[i] != NO_TIME and not early <= seen[i] <= late):
                continue
            if other < 0 or net[i] > net[other]:
                other = i
            if ranked:
                break
        if other < 0:
            continue
        t = 0.0
        for j in range(n):
            t += 1.0 / net[other if j == k else out[j]]
        smaller = t < least
        if t == least:
            if book[other] > alone:
                smaller = book[row] > alone or book[other] < alone
            else:
                smaller = False
        if smaller:
            least, place, row = t, k, other
    if place < 0:
        return np.inf
    out[place] = row
    return least


@kernel
def _rank(order, first, end, net):
    """Sort part of a list of rows by price, the best first, and rows of equal prices in their order."""
    gap = first_gap(end - first)
    while gap > 0:
        for k in range(first + gap, end):
            i, at = order[k], k
            while at - gap >= first:
                other = order[at - gap]
                if net[i] < net[other] or (net[i] == net[other] and i > other):
                    break
                order[at] = other
                at -= gap
            order[at] = i
        gap //= 3


@kernel
def _legs(
    who, low, high, segments, rows, live, book, net, reason, wanted, seen, timed, oldest, gap_live, gap_prematch,
    distinct, out, totals, order, ends, trial,
):  # fmt: skip
    """Best admissible legs of each case; if timed, seen within a gap of each other, and live ones since `oldest`.

    A case is a market (low and high are equal), or the first outcome of one market and the last of another. Rows of
    equal cases, which are adjacent, are sorted by price once, and so are long lists. A case without a set has no legs.
    """
    far = np.int64(1) << np.int64(62)
    ends[0] = 0
    ranked = False
    for c in range(low.size):
        m, z = low[c], high[c]
        mine = wanted[who[c]]
        n = segments[m + 1] - segments[m] if m == z else np.int64(2)
        again = c > 0 and low[c - 1] == m and high[c - 1] == z
        more = c + 1 < low.size and low[c + 1] == m and high[c + 1] == z
        if not again or (more and not ranked):
            for k in range(n):
                s = segments[z + 1] - 1 if k > 0 and m != z else segments[m] + k
                j = ends[k]
                for i in range(rows[s], rows[s + 1]):
                    if reason[i] == 0:
                        order[j] = i
                        j += 1
                ends[k + 1] = j
            ranked = more or ends[n] > _MANY_ROWS
            for k in range(n if ranked else 0):
                _rank(order, ends[k], ends[k + 1], net)
        for k in range(out.shape[1]):
            out[c, k] = -1
        gap = gap_live if live[m] != 0 else gap_prematch
        since = oldest if live[m] != 0 else -far - far
        if not timed or live[m] == 0:
            totals[c] = _best_of(order, ends, n, ranked, book, net, mine, seen, -far - far, far, distinct, trial)
            if totals[c] == np.inf:
                continue
            early, late = far, -far - far
            for k in range(n):
                out[c, k] = trial[k]
                if seen[trial[k]] != NO_TIME:
                    early = min(early, seen[trial[k]])
                    late = max(late, seen[trial[k]])
            if not timed or late <= early or late - early <= gap:
                continue
            for k in range(n):
                out[c, k] = -1
        totals[c] = np.inf
        for first in range(n):
            s = segments[z + 1] - 1 if first > 0 and m != z else segments[m] + first
            for i in range(rows[s], rows[s + 1]):
                if reason[i] != 0 or mine[book[i]] == 0 or seen[i] < since or seen[i] == NO_TIME:
                    continue
                late = seen[i] + gap
                t = _best_of(order, ends, n, ranked, book, net, mine, seen, seen[i], late, distinct, trial)
                better = t < totals[c]
                if t == totals[c] and t < np.inf:
                    for k in range(n):
                        if book[trial[k]] != book[out[c, k]]:
                            better = book[trial[k]] < book[out[c, k]]
                            break
                if better:
                    totals[c] = t
                    for k in range(n):
                        out[c, k] = trial[k]


def best_legs(view: Offers, who: Longs, markets: Longs, *, distinct: bool) -> Legs:
    """Best admissible prices of the outcomes of some markets, each for one caller.

    Ties go to the smallest tuple of books. `distinct` requires at least two books.
    """
    return _choose(view, who, markets, markets, view.widest, distinct=distinct)


def pair_legs(view: Offers, who: Longs, low: Longs, high: Longs) -> Legs:
    """Best admissible prices of pairs of lines, over the low one and under the high one, at two books."""
    return _choose(view, who, low, high, 2, distinct=True)


def _choose(view: Offers, who: Longs, low: Longs, high: Longs, most: int, *, distinct: bool) -> Legs:
    rows, totals = np.empty((low.size, most), np.int32), np.empty(low.size)
    if low.size:
        g = view.groups
        _legs(
            who, low, high, g.segments, g.rows, view.live, g.book, view.net, view.reason, view.wanted, g.seen,
            *timing(view), distinct, rows, totals,
            np.empty(g.row.size, np.int32), np.empty(most + 1, np.int64), np.empty(most, np.int32),
        )  # fmt: skip
    return Legs(rows, totals)


@kernel
def _share(
    who, market, legs, segments, rows, book, net, reason, wanted, seen, live, timed, oldest, gap_live, gap_prematch,
    ends, out,
):  # fmt: skip
    """Write the rows that share the price of each leg, and where they end."""
    far = np.int64(9223372036854775807)
    n = 0
    for k in range(legs.shape[1]):
        for c in range(market.size):
            leg = legs[c, k]
            if leg >= 0:
                first, last = far, -far - 1
                for other in legs[c]:
                    if other >= 0 and seen[other] != NO_TIME:
                        first, last = min(first, seen[other]), max(last, seen[other])
                playing = live[market[c]] != 0
                gap = gap_live if playing else gap_prematch
                begun = n
                for i in range(rows[segments[market[c]] + k], rows[segments[market[c]] + k + 1]):
                    if net[i] != net[leg] or reason[i] != 0 or wanted[who[c], book[i]] == 0:
                        continue
                    if i != leg and book[i] == book[leg]:
                        continue  # of the leg's book, only the leg
                    if timed and i != leg:
                        early, late = first, max(last, seen[i])
                        if seen[i] != NO_TIME:
                            early = min(early, seen[i])
                        if (late > early and late - early > gap) or (playing and seen[i] < oldest):
                            continue
                    # A book with the same price under two market names counts once.
                    if n == begun or book[out[n - 1]] != book[i]:
                        out[n] = i
                        n += 1
            ends[k * market.size + c + 1] = n


def sharing(view: Offers, who: Longs, market: Longs, legs: Ints) -> tuple[Longs, Ints]:
    """Return the rows with the price of each leg that pass the timing rules with the other legs, a row per book.

    For the book of the leg, that is the leg itself.

    The first legs of all cases are first; the rows of leg `i` are those from `ends[i]` to `ends[i + 1]`.
    """
    g = view.groups
    side, case = np.nonzero(legs.T >= 0)
    segment = g.segments[market[case]] + side
    ends = np.zeros(legs.size + 1, np.int64)
    rows = np.empty(int((g.rows[segment + 1] - g.rows[segment]).sum()), np.int32)
    _share(
        who, market, legs, g.segments, g.rows, g.book, view.net, view.reason, view.wanted, g.seen, view.live,
        *timing(view), ends, rows,
    )  # fmt: skip
    return ends, rows[: ends[-1]]


@kernel
def _two_digits(probability):
    """A number that differs if two significant digits of a probability do; ties have a number of their own."""
    if np.isnan(probability):
        return np.int64(-1)
    millionths = np.int64(np.round(probability * 1e6))
    unit = np.int64(10000)
    while unit > 1 and millionths < 10 * unit:
        unit //= 10
    twice = 2 * (millionths % unit)
    return unit * (2 * (millionths // unit) + (2 if twice > unit else 1 if twice == unit else 0))


@kernel
def _hash_shown(legs, fair, main, slot, moved, ends, sharers, out):
    """Hash the main line, fair probabilities and sharing rows of each case; bit 0: a leg or one of these moved."""
    for c in range(out.size):
        h = step(np.uint64(1), np.uint64(main[c]))
        again = np.uint64(0)
        for k in range(legs.shape[1]):
            h = step(h, np.uint64(_two_digits(fair[c, k])))
            if legs[c, k] >= 0:
                again |= np.uint64(moved[legs[c, k]])
            for i in range(ends[k * out.size + c], ends[k * out.size + c + 1]):
                h = step(h, np.uint64(slot[sharers[i]]))
                again |= np.uint64(moved[sharers[i]])
        out[c] = h << np.uint64(1) | again


def shown_hash(
    view: Offers, legs: Ints, fair: Floats, main: Bytes, moved: npt.NDArray[np.bool_], ends: Longs, sharers: Ints
) -> Words:
    """Hash what rows of low holds show: if theirs is the main line, fair probabilities, and rows from `sharing`."""
    out = np.empty(legs.shape[0], np.uint64)
    _hash_shown(legs, fair, main, view.groups.row, moved.view(np.uint8), ends, sharers, out)
    return out


@kernel
def _span(b, first, end, book, trusted, own, seen):
    """The oldest time of a book's trusted prices in a market's rows, and the oldest and newest known times."""
    oldest = np.int64(9223372036854775807)
    low, high = np.int64(9223372036854775807), np.int64(-9223372036854775808)
    for i in range(first, end):
        if book[i] == b and trusted[i] != 0 and not np.isnan(own[i]):
            oldest = min(oldest, seen[i])
            if seen[i] != NO_TIME:
                low = min(low, seen[i])
                high = max(high, seen[i])
    return oldest, low, high


@kernel
def _apart(s, m, judged, rows, book, own, width, trusted, reference, fair, weight, member, weighted, floor, too_wide):
    """Fair probability of a segment of market m from its reference without the judged book; nan if none is left."""
    ref = reference[m]
    if ref == -1:
        return np.nan
    if ref == judged:
        return np.nan
    if ref >= 0:
        return fair[s]
    p, total, wide, members = 0.0, 0.0, 0.0, 0
    for i in range(rows[s], rows[s + 1]):
        b = book[i]
        if trusted[i] == 0 or np.isnan(own[i]) or b == judged or member[b] == 0:
            continue
        w = weight[b] if weighted else 1.0 / max(width[i], floor)
        p += w * own[i]
        wide += w * width[i]
        total += w
        members += 1
    if members == 0 or (members < 2 and (not weighted or wide > too_wide * total)):
        return np.nan
    return p / total


@kernel
def _edges(
    who, chosen, segments, rows, book, feed, net, reason, wanted, seen, own, width, trusted, doubt, reference, fair,
    weight, member, counted, weighted, live, timed, oldest_live, gap_live, gap_prematch, floor, too_wide, leasts, twin,
    market, out_who, out_row, out_fair, out_width, out_gap, out_seen, out_doubt, ids, fairs,
):  # fmt: skip
    """Offers with an edge of at least the caller's `leasts` - 1 in the chosen markets.

    For each: caller, row, fair probability, width, gap, oldest time, and whether it or its reference is doubtful.
    """
    found = 0
    for c in range(chosen.size):
        m = chosen[c]
        ref = reference[m]
        if ref == -1:
            continue
        mine, counts, least = wanted[who[c]], counted[who[c]], leasts[who[c]]
        s0, s1 = segments[m], segments[m + 1]
        oldest = oldest_live if timed and live[m] != 0 else NO_TIME
        most_apart = gap_live if live[m] != 0 else gap_prematch
        for s in range(s0, s1):
            begin = found
            for r in range(rows[s], rows[s + 1]):
                if reason[r] != 0 or mine[book[r]] == 0 or book[r] == ref:
                    continue
                if ref >= 0 and not (fair[s] * net[r] >= least):
                    continue
                if seen[r] < oldest:
                    continue
                p, total, wide, members = 0.0, 0.0, 0.0, 0
                first = seen[r]
                unsure = doubt[r]
                for i in range(rows[s], rows[s + 1]):
                    b = book[i]
                    if trusted[i] == 0 or np.isnan(own[i]) or b == book[r]:
                        continue
                    if b != ref if ref >= 0 else member[b] == 0:
                        continue
                    if timed:
                        earliest, low, high = _span(b, rows[s0], rows[s1], book, trusted, own, seen)
                        if seen[r] != NO_TIME:
                            low, high = min(low, seen[r]), max(high, seen[r])
                        if earliest < oldest or (high > low and high - low > most_apart):
                            continue
                        first = min(first, earliest)
                    unsure |= doubt[i]
                    w = 1.0
                    if ref < 0:
                        w = weight[b] if weighted else 1.0 / max(width[i], floor)
                    p += w * own[i]
                    wide += w * width[i]
                    total += w
                    members += 1
                # A wide reference is not trusted alone, whether the consensus is the catalog's or the caller's.
                alone = ref < 0 and members < 2 and (not weighted or wide > too_wide * total)
                if members == 0 or alone:
                    continue
                p /= total
                # Of the outcomes that settle on the same fact, the one that is least likely decides.
                t = twin[s] if twin.size > 0 else s
                while t != s:
                    if rows[t] < rows[t + 1]:
                        q = _apart(
                            t, market[rows[t]], book[r], rows, book, own, width, trusted, reference, fair, weight,
                            member, weighted, floor, too_wide,
                        )  # fmt: skip
                        if not np.isnan(q):
                            p = min(p, q)
                    t = twin[t]
                if not (p * net[r] >= least):
                    continue
                if not timed:
                    for i in range(rows[s], rows[s + 1]):
                        b = book[i]
                        if trusted[i] == 0 or np.isnan(own[i]) or b == book[r]:
                            continue
                        if b == ref if ref >= 0 else member[b] != 0:
                            earliest, _, _ = _span(b, rows[s0], rows[s1], book, trusted, own, seen)
                            first = min(first, earliest)
                n = 0
                for i in range(rows[s], rows[s + 1]):
                    b = book[i]
                    f = feed[b]
                    if np.isnan(own[i]) or counts[b] == 0 or f == feed[book[r]]:
                        continue
                    if (ref >= 0 and f == feed[ref]) or (ref < 0 and member[b] != 0):
                        continue
                    k = 0
                    while k < n and ids[k] != f:
                        k += 1
                    if k < n:
                        continue
                    k = n
                    while k > 0 and fairs[k - 1] > own[i]:
                        fairs[k] = fairs[k - 1]
                        ids[k] = ids[k - 1]
                        k -= 1
                    fairs[k] = own[i]
                    ids[k] = f
                    n += 1
                gap = np.nan
                if n >= 2:
                    q = 0.5 * (fairs[(n - 1) // 2] + fairs[n // 2])
                    gap = abs(np.log(p / (1.0 - p)) - np.log(q / (1.0 - q)))
                # One row a book: the better of its admissible prices, which stand side by side.
                if found > begin and book[out_row[found - 1]] == book[r]:
                    if net[out_row[found - 1]] >= net[r]:
                        continue
                    found -= 1
                out_who[found] = who[c]
                out_row[found] = r
                out_fair[found] = p
                out_width[found] = wide / total
                out_gap[found] = gap
                out_seen[found] = first
                out_doubt[found] = unsure
                found += 1
    return found


class Edges(NamedTuple):
    """Offers with an edge: caller, row, fair probability, width of the reference, gap to the other books, and so on."""

    who: Longs
    row: Ints
    fair: Floats
    width: Floats
    gap: Floats
    seen: Longs
    doubt: Bytes


@kernel
def _close_edges(
    who, chosen, segments, rows, book, net, reason, wanted, suspects, outlier, seen, doubt, live, timed, oldest_live,
    leasts, twin, fair, width, segment, out_who, out_row, out_fair, out_width, out_gap, out_seen, out_doubt,
):  # fmt: skip
    """Offers in the chosen markets whose edge over the estimator's fair price is at least the caller's `leasts` - 1."""
    found = 0
    for c in range(chosen.size):
        m, mine, least = chosen[c], wanted[who[c]], leasts[who[c]]
        oldest = oldest_live if timed and live[m] != 0 else NO_TIME
        shows = outlier if suspects[who[c]] != 0 and live[m] == 0 else np.uint8(0)
        for s in range(segments[m], segments[m + 1]):
            begin = found
            for r in range(rows[s], rows[s + 1]):
                p = fair[r]
                if (reason[r] != 0 and reason[r] != shows) or mine[book[r]] == 0 or np.isnan(p) or seen[r] < oldest:
                    continue
                # Of the outcomes that settle on the same fact, the one that is least likely decides.
                t = twin[s] if twin.size > 0 else s
                while t != s:
                    if not np.isnan(segment[t]):
                        p = min(p, segment[t])
                    t = twin[t]
                if not (p * net[r] >= least):
                    continue
                # One row a book: the better of its prices, which stand side by side.
                if found > begin and book[out_row[found - 1]] == book[r]:
                    if net[out_row[found - 1]] >= net[r]:
                        continue
                    found -= 1
                out_who[found], out_row[found], out_fair[found], out_width[found] = who[c], r, p, width[r]
                out_gap[found], out_seen[found], out_doubt[found] = np.nan, seen[r], doubt[r]
                found += 1
    return found


def _room(g: Groups, markets: Longs) -> Edges:
    """Columns for all prices of some markets."""
    n = int((g.rows[g.segments[markets + 1]] - g.rows[g.segments[markets]]).sum())
    numbers = np.empty((3, n))
    ends = np.empty(n, np.int64), np.empty(n, np.uint8)
    return Edges._make((np.empty(n, np.int64), np.empty(n, np.int32), *numbers, *ends))


def edges(view: Offers, who: Longs, markets: Longs, least: Floats) -> Edges:
    """All offers of a caller in some markets with an edge of at least the caller's `least` (a fraction)."""
    if view.close is None:
        return sharp_edges(view, who, markets, least)
    g, n = view.groups, 0
    out = _room(g, markets)
    if out.row.size:
        n = _close_edges(
            who, markets, g.segments, g.rows, g.book, view.net, view.reason, view.wanted, view.suspects,
            np.uint8(CODES["outlier"]), g.seen, view.doubt, view.live, view.timed,
            oldest_live(view), 1.0 + least, g.twin, view.close.row, view.close.width,
            view.close.segment, *out,
        )  # fmt: skip
    return Edges._make(column[:n] for column in out)


@kernel
def _close_candidates(chosen, segments, rows, book, net, fair, wanted, least, most, out_who, out_market):
    """Callers and markets in which the largest product of fair probability and price reaches the caller's `least`.

    `wanted` (books, callers) is 1.0 or 0.0. Returns their number, including those that do not fit in the arrays.
    """
    found = 0
    for m in range(chosen.size):
        if chosen[m] == 0:
            continue
        most[:] = -1.0
        for i in range(rows[segments[m]], rows[segments[m + 1]]):
            worth = fair[i] * net[i]
            if np.isnan(worth):
                continue
            mine = wanted[book[i]]
            for v in range(most.size):
                most[v] = max(most[v], worth * mine[v])
        for v in range(most.size):
            if most[v] >= least[v]:
                if found < out_who.size:
                    out_who[found], out_market[found] = v, m
                found += 1
    return found


def close_candidates(view: Offers, least: Floats, markets: Bytes) -> tuple[Longs, Longs]:
    """Pairs of a caller and one of some markets where a price may have an edge over the estimator's fair price."""
    g, room = view.groups, 4096
    close = view.close
    if close is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    wanted, most = view.wanted.T.astype(np.float64, order="C"), np.empty(least.size)
    while True:
        who, market = np.empty((2, room), np.int64)
        n = _close_candidates(
            markets, g.segments, g.rows, g.book, view.net, close.row, wanted, 1.0 + least, most, who, market
        )
        if n <= room:
            return who[:n], market[:n]
        room = n


def sharp_edges(view: Offers, who: Longs, markets: Longs, least: Floats) -> Edges:
    """As `edges`, over the references in order of preference, whatever the method."""
    g, limits, n = view.groups, view.limits, 0
    out = _room(g, markets)
    if out.row.size:
        books = view.traits.feed.size
        n = _edges(
            who, markets, g.segments, g.rows, g.book, view.traits.feed, view.net, view.reason, view.wanted, g.seen,
            view.own, view.width, view.trusted, view.doubt, view.reference, view.fair, view.weight, view.member,
            view.counted, view.weighted, view.live, *timing(view), limits.reference_floor,
            limits.reference_wide + limits.epsilon, 1.0 + least, g.twin, g.market, *out,
            np.empty(books, np.int32), np.empty(books),
        )  # fmt: skip
    return Edges._make(column[:n] for column in out)


@kernel
def _fairest(
    who, markets, segments, rows, book, net, reason, wanted, own, width, trusted, reference, fair, weight, member,
    weighted, floor, out, place, odds, ends,
):  # fmt: skip
    """Fair probability of each outcome of some markets from the reference, with no book left out.

    If there is none but every outcome is offered, the best offers and their places in `out` are written to `odds` and
    `place`, market after market. Returns the number of such markets.
    """
    bare = 0
    at = np.int64(0)
    for c in range(markets.size):
        for k in range(out.shape[1]):
            out[c, k] = np.nan
        m = markets[c]
        if m < 0:
            continue
        mine = wanted[who[c]]
        n = segments[m + 1] - segments[m]
        missing, offered = False, True
        for k in range(n):
            s = segments[m] + k
            sum_p, sum_w, top = 0.0, 0.0, 0.0
            for i in range(rows[s], rows[s + 1]):
                if reason[i] == 0 and mine[book[i]] != 0:
                    top = max(top, net[i])
                if member[book[i]] != 0 and trusted[i] != 0 and not np.isnan(own[i]):
                    w = weight[book[i]] if weighted else 1.0 / max(width[i], floor)
                    sum_p += w * own[i]
                    sum_w += w
            if reference[m] >= 0:
                out[c, k] = fair[s]
            elif reference[m] == -2 and sum_w > 0.0:
                out[c, k] = sum_p / sum_w
            missing = missing or np.isnan(out[c, k])
            offered = offered and top > 0.0
            odds[at + k] = top
            place[at + k] = c * out.shape[1] + k
        if missing and offered:
            at += n
            bare += 1
            ends[bare] = at
    return bare


def market_fair(view: Offers, markets: Longs, who: Longs | None = None) -> Floats:
    """Fair probabilities of some markets, (n, outcomes): the estimator's, the reference's, or those of the best prices.

    `who` is the caller of each (None: the first). The probabilities of market -1 are nan.
    """
    g, n = view.groups, markets.size
    fair = np.empty((n, view.widest))
    place, odds, ends = np.empty(fair.size, np.int64), np.empty(fair.size), np.zeros(n + 1, np.int64)
    bare = _fairest(
        np.zeros(n, np.int64) if who is None else who, markets, g.segments, g.rows, g.book, view.net, view.reason,
        view.wanted, view.own, view.width, view.trusted, view.reference, view.fair, view.weight, view.member,
        view.weighted, view.limits.reference_floor, fair, place, odds, ends,
    )  # fmt: skip
    if bare:
        used = ends[bare]
        fair.reshape(-1)[place[:used]] = devig_groups(odds[:used], ends[: bare + 1], devig_method(view.method))
    if view.close is not None:
        outcome = np.arange(view.widest)
        inside = (outcome < g.outcomes[markets][:, None]) & (markets >= 0)[:, None]
        close = view.close.segment[np.where(inside, g.segments[markets][:, None] + outcome, 0)]
        known = (inside <= ~np.isnan(close)).all(axis=1) & (markets >= 0)
        fair[known] = np.where(inside, close, np.nan)[known]
    return fair


def unconfirmed(view: FairPrices, rows: Ints) -> npt.NDArray[np.bool_]:
    """Whether any leg of some sets, (n, legs) padded with -1, is doubtful."""
    return np.asarray(((rows >= 0) & (view.doubt[np.maximum(rows, 0)] != 0)).any(axis=1))


def oldest_live(view: FairPrices) -> int:
    """The time since which a live leg must have been seen; the earliest possible time if now is unknown."""
    return int(NO_TIME) if view.now == NO_TIME else view.now - round(view.limits.stale_live_leg_s * 1e6)


def timing(view: FairPrices) -> tuple[bool, int, int, int]:
    """Whether legs must be close in time; `oldest_live`; and the gaps allowed between live and pre-match legs."""
    limits = view.limits
    gaps = round(limits.stale_live_gap_s * 1e6), round(limits.stale_prematch_gap_s * 1e6)
    return view.timed, oldest_live(view), *gaps


def ages(now: int, seen: npt.NDArray[np.int64]) -> Floats:
    """Seconds since each time, at least 0; nan if the time is unknown."""
    if now == NO_TIME:
        return np.full(seen.shape, np.nan)
    return np.where(seen == NO_TIME, np.nan, np.maximum(0, now - np.where(seen == NO_TIME, now, seen)) / 1e6)
