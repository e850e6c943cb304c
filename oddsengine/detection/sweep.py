"""Detection: which accepted prices of the users' books form an opportunity.

Users with the same fair prices (see `references`) are searched together, and every case of a search includes its
user. Everything here is local to an event.

`sweep` is a fast pass over all offers: the best price per outcome, their sum per market, the best edge against the
reference, and pairs of lines. It may list too many candidates but never misses one. Other functions check them:

- `best_legs`, `pair_legs`: the best admissible prices, one per outcome (arbitrage, low hold) or line (middles)
- `edges`: each book's edge over the fair probability (+EV)

Prices are after commission. The sum of a market with an outcome that no book offers is infinite.

Columns of the kernels:

- `markets`, `segments`, `rows`, `market`, `threshold`, `kind`, `book`, `seen`, `equivalent`: as in `Groups`
- `two_sided`, `provider`: as in `Traits`
- `net`, `reason`, `own`, `width`, `trusted`, `doubt`, `reference`, `fair`, `live`, `rank`, `weight`, `member`,
  `weighted`, `timed`: as in `FairPrices`; `reference` is a book, `NONE` or `CONSENSUS`
- `wanted`, `counted`, `suspects`: as in `FairPrices`, but `wanted` is (books, users), 1.0 or 0.0, where a kernel
  serves all users at once
- `who` (int64 per case): the user
- `candidates` (int64 per case): the market
- `low`, `high` (int64 per case): markets of the first leg and of the last; equal if all legs are in one market
- `legs` (int32, cases by outcomes): rows, padded with `NONE`
- `live_limit`: the time since which a live leg must have been seen
- `gap_live`, `gap_prematch`: the gaps allowed between the times of legs, microseconds
- `two_books`: whether the legs must be at two books at least
- `floor`: the least overround by which a consensus without weights divides
- `width_limit`: overround above which a reference is not trusted alone
- `least_worth` (float64 per user): the least product of fair probability and price, 1 plus the least edge
- `out_who`, `out_row`, `out_fair`, `out_width`, `out_gap`, `out_seen`, `out_doubt`: the columns of `Edges` to write
- `ids` (int32), `fairs` (float64): scratch arrays for the providers and fair probabilities of other books
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import fused, kernel
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import EARLIEST, LATEST, NO_TIME, NONE, Bytes, Floats, Ints, Longs, Words
from oddsengine.guards.main_markets import main_markets
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import Groups, first_gap, step
from oddsengine.identity.table_identity import Identity
from oddsengine.maths.devig import devig_groups
from oddsengine.pricing import close as fair_close
from oddsengine.pricing.close import CONSENSUS, SUSPECT
from oddsengine.pricing.commission import PriceDepth, netted, on_winnings
from oddsengine.pricing.model import ModelPrices
from oddsengine.pricing.references import FairPrices, devig_method, fair_prices, view_spec

_ANY_EDGE = -0.5  # a user who asks for less gets every market with a reference
_HALF = 50  # hundredths of a half line
_NO_DIGITS = -1  # digits of nan
PAIR = 2
_MANY_ROWS = 64  # longer lists of prices are sorted even for one user


_NOT_JUDGED = np.uint8(np.iinfo(np.uint8).max)  # instead of a guard


class Thresholds(dict[str, Floats]):
    """The thresholds of some users, by name: one value per user, as fractions where they are given in percent.

    What is not searched for has one that nothing reaches; `kinds.thresholds` makes them.
    """

    @classmethod
    def stack(cls, several: Sequence["Thresholds"]) -> "Thresholds":
        """Combine the thresholds of several users, in order."""
        return cls((name, np.concatenate([each[name] for each in several])) for name in several[0])


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
    """The selected rows of some cases, (n, outcomes) padded with -1, their odds, and the sums of 1/odds."""

    rows: Ints
    odds: Floats  # in this combination: better where legs pay commission together; nan beyond
    total: Floats


def prices_of(
    identity: Identity,
    guarded: Verdicts,
    off: frozenset[int],
    books: Iterable[str] | None,
    sharp: Any,
    method: str,
    commission: Mapping[str, float] | None,
    *,
    include: Container[str] = (),
    board: fair_close.CloseInput | None = None,
    model: ModelPrices | None = None,
    ladder: Words | None = None,
    stake: float | None = None,
    depth: PriceDepth | None = None,
) -> FairPrices:
    """Return the prices of one user: `view_spec` and `fair_prices` in one call."""
    spec = view_spec(
        identity.books, identity.traits, books, sharp, method, commission, include=include, model=model, stake=stake
    )
    return fair_prices(identity.groups, identity.traits, guarded, spec, off, board=board, ladder=ladder, depth=depth)


@fused
def _sweep(
    in_market, in_ladder, wanted, least_edge, most_sum, slack, least_value, least_distance, bound, markets, segments,
    rows, book, net, reason, kind, two_sided, threshold, fair, reference, close, equivalent, best, cost, total,
    best_worth, sum_who, sum_market, sum_total, edge_who, edge_market, pair_who, pair_low, pair_high, pair_over,
    pair_under, count,
):  # fmt: skip
    """One pass for all users: markets with a low sum of best prices or a possible edge, and pairs of lines.

    The best price of an outcome may also be that of an equivalent outcome.

    `wanted` (books, users) is 1.0 or 0.0. Scratch arrays: `best` and `cost` (segments of a ladder, users) are the
    best prices and their inverses; `total` and `best_worth` (users) are the sum and the best edge of a market.
    `count` is set to the number of candidates of each of the three kinds, including those that do not fit in the
    arrays.

    - `in_market`, `in_ladder`: as `markets` and `ladders` of `Scope`
    - `least_edge`, `most_sum`, `least_value`, `least_distance` (per user): thresholds: of +EV, on the sum of a
      market, of the EV of a middle, and of the distance of its lines in hundredths
    - `slack`: as in `Fees`, by which `most_sum` is larger in markets of more than two outcomes
    - `bound`: largest sum of a pair
    - `close` (float64 per segment): the estimator's probabilities, or empty
    - `sum_who`, `sum_market`, `sum_total`, `edge_who`, `edge_market`, `pair_who`, `pair_low`, `pair_high`,
      `pair_over`, `pair_under`: the columns of `Candidates` to write
    """
    n_sums, n_edges, n_pairs = 0, 0, 0
    users = wanted.shape[1]
    any_pairs = False
    for v in range(users):
        any_pairs |= least_value[v] < np.inf
    for at in range(markets.size - 1):
        first, last = markets[at], markets[at + 1]
        has_pairs = any_pairs and in_ladder[at] != 0 and two_sided[kind[at]] != 0
        base = segments[first]
        for m in range(first, last):
            if in_market[m] == 0 and not has_pairs:
                continue
            for s in range(segments[m], segments[m + 1]):
                top, price = best[s - base], cost[s - base]
                for v in range(users):
                    top[v] = 0.0
                t = s
                while True:
                    for i in range(rows[t], rows[t + 1]):
                        if reason[i] != ACCEPTED:
                            continue
                        by_user, x = wanted[book[i]], net[i]
                        for v in range(users):
                            y = x * by_user[v]
                            top[v] = y if y > top[v] else top[v]
                    t = equivalent[t] if equivalent.size > 0 else s
                    if t == s:
                        break
                for v in range(users):
                    price[v] = 1.0 / top[v]
            if in_market[m] == 0:
                continue
            for v in range(users):
                total[v] = 0.0
                best_worth[v] = np.inf if reference[m] == CONSENSUS else 0.0
            for s in range(segments[m], segments[m + 1]):
                top, price, p = best[s - base], cost[s - base], fair[s]
                for v in range(users):
                    total[v] += price[v]
                    a = top[v] * p
                    best_worth[v] = a if a > best_worth[v] else best_worth[v]
            allowance = slack if segments[m + 1] - segments[m] > PAIR else 1.0
            for v in range(users):
                if total[v] <= most_sum[v] * allowance:
                    if n_sums < sum_who.size:
                        sum_who[n_sums] = v
                        sum_market[n_sums] = m
                        sum_total[n_sums] = total[v]
                    n_sums += 1
                if reference[m] != NONE and (best_worth[v] >= 1.0 + least_edge[v] or least_edge[v] <= _ANY_EDGE):
                    if n_edges < edge_who.size:
                        edge_who[n_edges] = v
                        edge_market[n_edges] = m
                    n_edges += 1
        if not has_pairs:
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
                    if threshold[low] % 100 == _HALF and threshold[high] % 100 == _HALF and p >= q:
                        worth = 1.0 + p - q
                        if close.size > 0:  # shifted as in `tails`
                            a, b = close[segments[low]], close[segments[high]]
                            odds_p, odds_q = p / (1.0 - p), q / (1.0 - q)
                            shift = np.sqrt(a / (1.0 - a) / odds_p * (b / (1.0 - b)) / odds_q)
                            worth = 1.0 + 1.0 / (1.0 + 1.0 / (odds_p * shift)) - 1.0 / (1.0 + 1.0 / (odds_q * shift))
                            worth = np.inf if np.isnan(worth) else worth
                for v in range(users):
                    x = over[v] + under[v]
                    if x > bound or threshold[high] - threshold[low] < least_distance[v]:
                        continue
                    if not (worth / x - 1.0 >= least_value[v]):
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
    """Candidates for the exact checks, in order of market, then user."""

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


def sweep(prices: FairPrices, thresholds: Thresholds, scope: Scope) -> Candidates:
    """List candidates in one pass over the offers of all users; it may list too many but never misses one."""
    g, limits = prices.groups, prices.limits
    epsilon = limits.epsilon
    bound = 1.0 / (1.0 + limits.middle_floor - epsilon)
    sum_most = np.maximum(most_implied(thresholds, epsilon), 1.0 + thresholds["max_hold"] + epsilon)
    widest = int(np.diff(g.segments[g.markets]).max(initial=0))
    users, inside = thresholds["min_ev"].size, int(np.count_nonzero(scope.markets))
    best, cost = np.empty((2, widest, users))
    totals, mosts = np.empty((2, users))
    count = np.zeros(3, np.int64)
    most = min(users * inside, inside + 4096)
    room = [most, most, 4096 + 3 * inside * users]
    while True:
        sums, edges, pairs = room
        sum_who, sum_market = np.empty((2, sums), np.int64)
        edge_who, edge_market = np.empty((2, edges), np.int64)
        pair_who, low, high = np.empty((3, pairs), np.int64)
        over, under = np.empty((2, pairs))
        total = np.empty(sums)
        _sweep(
            scope.markets, scope.ladders, prices.by_book, thresholds["min_ev"] - epsilon, sum_most,
            prices.fees.slack, thresholds["min_middle_ev"] - 2.0 * epsilon,
            np.round(thresholds["min_size"] * 100.0).astype(np.int64), bound, g.markets, g.segments, g.rows, g.book,
            prices.net, prices.reason, g.kind, prices.traits.two_sided, g.threshold, prices.fair, prices.reference,
            np.empty(0) if prices.close is None else prices.close.segment, g.equivalent, best, cost, totals, mosts,
            sum_who, sum_market, total, edge_who, edge_market, pair_who, low, high, over, under, count,
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


def most_implied(thresholds: Thresholds, epsilon: float) -> Floats:
    """The largest sum of 1/odds of an arbitrage, per user; it has a profit unless the minimum is below 0."""
    most = 1.0 / (1.0 + thresholds["min_profit"] - epsilon)
    return np.where(thresholds["min_profit"] < 0.0, most, np.minimum(most, break_even(epsilon)))


@kernel
def _best_of(order, ends, n, is_sorted, book, net, wanted, seen, earliest, latest, two_books, out):
    """Best row of each of `n` lists of rows, seen within [early, late] or at an unknown time.

    `two_books` requires at least two books. Returns the sum of 1/odds, or infinity if there is no such set.

    - `order`, `ends`: rows of all lists, and the offsets of each
    - `is_sorted`: whether each is sorted by price
    - `wanted` (uint8 per book): the books of the user
    - `earliest`, `latest`: times
    - `out` (int32, n): the rows to write
    """
    total = 0.0
    is_one_book = True
    for k in range(n):
        out[k] = NONE
    for k in range(n):
        for i in order[ends[k] : ends[k + 1]]:
            if wanted[book[i]] == 0 or (seen[i] != NO_TIME and not earliest <= seen[i] <= latest):
                continue
            if out[k] < 0 or net[i] > net[out[k]]:
                out[k] = i
            if is_sorted:
                break
        if out[k] < 0:
            return np.inf
        total += 1.0 / net[out[k]]
        if book[out[k]] != book[out[0]]:
            is_one_book = False
    if not two_books or not is_one_book:
        return total
    # All from one book: find the best replacement of one leg. Among equals, replace the last leg if the new book sorts
    # after the old one, else the earlier leg, so that the tuple of books sorts first.
    only_book = book[out[0]]
    least = np.inf
    place, row = NONE, NONE
    for k in range(n):
        other_row = NONE
        for i in order[ends[k] : ends[k + 1]]:
            if (
                book[i] == only_book
                or wanted[book[i]] == 0
                or (seen[i] != NO_TIME and not earliest <= seen[i] <= latest)
            ):
                continue
            if other_row < 0 or net[i] > net[other_row]:
                other_row = i
            if is_sorted:
                break
        if other_row < 0:
            continue
        t = 0.0
        for j in range(n):
            t += 1.0 / net[other_row if j == k else out[j]]
        is_better = t < least
        if t == least:
            if book[other_row] > only_book:
                is_better = book[row] > only_book or book[other_row] < only_book
            else:
                is_better = False
        if is_better:
            least, place, row = t, k, other_row
    if place < 0:
        return np.inf
    out[place] = row
    return least


@kernel
def _rank(order, first, end, book, net, market, own_market, precedence):
    """Sort part of a list of rows by price, the best first; equal ones by book, and then those of the market first.

    - `first` and `end` are offsets in `order`
    - `own_market`: the market; rows of others are prices of equivalent outcomes, in the order of `precedence` (int32
      per market)
    """
    gap = first_gap(end - first)
    while gap > 0:
        for k in range(first + gap, end):
            i, at = order[k], k
            while at - gap >= first:
                other_row = order[at - gap]
                m, other_market = market[i], market[other_row]
                if net[i] != net[other_row]:
                    is_before = net[i] > net[other_row]
                elif book[i] != book[other_row]:
                    is_before = book[i] < book[other_row]
                elif m == other_market:
                    is_before = i < other_row
                elif own_market in (m, other_market):
                    is_before = m == own_market
                else:
                    is_before = precedence[m] < precedence[other_market]
                if not is_before:
                    break
                order[at] = other_row
                at -= gap
            order[at] = i
        gap //= 3


@kernel
def _legs(
    who, low, high, segments, rows, equivalent, market, precedence, live, book, net, reason, wanted, seen, timed,
    live_limit, gap_live, gap_prematch, two_books, out, totals, order, ends, trial,
):  # fmt: skip
    """Best admissible legs of each case; if timed, seen within a gap of each other, and live ones since `live_limit`.

    A case is a market (low and high are equal), whose outcomes also have the prices of their equivalent outcomes, or
    the first outcome of one market and the last of another. Rows of equal cases, which are adjacent, are sorted by
    price once, and so are long lists and those of equivalent outcomes. A case without a set has no legs.

    - `precedence`: as in `_rank`
    - `out` (int32, cases by outcomes), `totals` (float64 per case): the legs to write, and the sums of their 1/odds
    - `order`, `ends`, `trial`: scratch arrays for `_best_of`
    """
    bound = np.int64(1) << np.int64(62)
    ends[0] = 0
    is_sorted, is_shared = False, False
    for c in range(low.size):
        m, z = low[c], high[c]
        has_equivalents = m == z and equivalent.size > 0
        wanted_books = wanted[who[c]]
        n = segments[m + 1] - segments[m] if m == z else np.int64(2)
        is_repeat = c > 0 and low[c - 1] == m and high[c - 1] == z
        has_repeat = c + 1 < low.size and low[c + 1] == m and high[c + 1] == z
        if not is_repeat or (has_repeat and not is_sorted):
            is_shared = False
            for k in range(n):
                s = segments[z + 1] - 1 if k > 0 and m != z else segments[m] + k
                t, j = s, ends[k]
                while True:
                    for i in range(rows[t], rows[t + 1]):
                        if reason[i] == ACCEPTED:
                            order[j] = i
                            j += 1
                            is_shared |= t != s
                    t = equivalent[t] if has_equivalents else s
                    if t == s:
                        break
                ends[k + 1] = j
            is_sorted = has_repeat or is_shared or ends[n] > _MANY_ROWS
            for k in range(n if is_sorted else 0):
                _rank(order, ends[k], ends[k + 1], book, net, market, z if k > 0 else m, precedence)
        for k in range(out.shape[1]):
            out[c, k] = NONE
        gap = gap_live if live[m] != 0 else gap_prematch
        seen_limit = live_limit if live[m] != 0 else -bound - bound
        if not timed or live[m] == 0:
            totals[c] = _best_of(
                order, ends, n, is_sorted, book, net, wanted_books, seen, -bound - bound, bound, two_books, trial
            )
            if totals[c] == np.inf:
                continue
            earliest, latest = bound, -bound - bound
            for k in range(n):
                out[c, k] = trial[k]
                if seen[trial[k]] != NO_TIME:
                    earliest = min(earliest, seen[trial[k]])
                    latest = max(latest, seen[trial[k]])
            if not timed or latest <= earliest or latest - earliest <= gap:
                continue
            for k in range(n):
                out[c, k] = NONE
        totals[c] = np.inf
        for first in range(n):
            s = segments[z + 1] - 1 if first > 0 and m != z else segments[m] + first
            for at in range(ends[first + 1] - ends[first] if is_shared else rows[s + 1] - rows[s]):
                i = order[ends[first] + at] if is_shared else rows[s] + at
                if reason[i] != ACCEPTED or wanted_books[book[i]] == 0 or seen[i] < seen_limit or seen[i] == NO_TIME:
                    continue
                latest = seen[i] + gap
                t = _best_of(
                    order, ends, n, is_sorted, book, net, wanted_books, seen, seen[i], latest, two_books, trial
                )
                is_better = t < totals[c]
                if t == totals[c] and t < np.inf:
                    for k in range(n):
                        if book[trial[k]] != book[out[c, k]]:
                            is_better = book[trial[k]] < book[out[c, k]]
                            break
                if is_better:
                    totals[c] = t
                    for k in range(n):
                        out[c, k] = trial[k]


@kernel
def _belong(market, legs, segments, row_market, equivalent, precedence, out):
    """Whether each case belongs to its market: some legs are its own, and no market before it has the same bets.

    Legs of other markets are prices of equivalent outcomes. Where all outcomes of two markets are equivalent
    (a clean sheet of one side is no goal of the other), what mixes both would be found twice.

    - `market` (int64 per case): market of the case
    - `legs` (int32, cases by outcomes): rows
    - `row_market` (int32 per row): its market
    - `precedence`: as in `_rank`
    - `out` (uint8 per case): 1 if it belongs
    """
    for c in range(market.size):
        m, has_own, is_repeated = market[c], False, False
        n = segments[m + 1] - segments[m]
        for k in range(n):
            other_market = row_market[legs[c, k]]
            if other_market == m:
                has_own = True
            elif precedence[other_market] < precedence[m] and segments[other_market + 1] - segments[other_market] == n:
                shared = 0
                for s in range(segments[m], segments[m + 1]):
                    t = equivalent[s]
                    while t != s:
                        if segments[other_market] <= t < segments[other_market + 1]:
                            shared += 1
                        t = equivalent[t]
                is_repeated |= shared == n
        out[c] = has_own and not is_repeated


def best_legs(prices: FairPrices, who: Longs, markets: Longs, *, distinct: bool) -> Legs:
    """Best admissible prices of the outcomes of some markets and of their equivalent outcomes, each for one user.

    Ties go to the smallest tuple of books. `distinct` requires at least two books. A market without a set, or whose
    set belongs to another market, has an infinite total.
    """
    g, (rows, total) = prices.groups, _choose(prices, who, markets, markets, prices.widest, distinct=distinct)
    if g.equivalent.size:
        found = np.flatnonzero(total < np.inf)
        belongs = np.empty(found.size, np.uint8)
        _belong(markets[found], rows[found], g.segments, g.market, g.equivalent, _precedence(prices), belongs)
        elsewhere = found[belongs == 0]
        rows[elsewhere], total[elsewhere] = NONE, np.inf
    odds = _odds(prices, rows)
    if odds.shape[1] > PAIR and prices.fees.slack > 1.0:
        market, book = g.market[rows].astype(np.int64), g.book[rows]
        cost = costs(odds)
        rate = on_winnings(g.book, rows, g.live_of(rows), prices.fees)
        together = netted(cost, rate, market * prices.traits.provider.size + book)
        better = together != cost
        odds[better] = 1.0 / together[better]
        changed = better.any(axis=1)
        total[changed] = together[changed].sum(axis=1)
    return Legs(rows, odds, total)


def _odds(prices: FairPrices, rows: Ints) -> Floats:
    """Return the odds of some legs, (n, legs) padded with -1; nan beyond."""
    return np.where(rows >= 0, prices.net[np.maximum(rows, 0)], np.nan)


def costs(odds: Floats) -> Floats:
    """Return 1/odds: money for one unit of payout; 0 where there are none."""
    return np.nan_to_num(1.0 / odds)


def pair_legs(prices: FairPrices, who: Longs, low: Longs, high: Longs) -> Legs:
    """Best admissible prices of pairs of lines, over the low one and under the high one, at two books."""
    rows, total = _choose(prices, who, low, high, PAIR, distinct=True)
    return Legs(rows, _odds(prices, rows), total)


def _precedence(prices: FairPrices) -> Ints:
    """Per market: its place among those of its equivalent outcomes."""
    g = prices.groups
    return prices.traits.order[g.kind[g.ladder]]


def _choose(
    prices: FairPrices, who: Longs, low: Longs, high: Longs, most: int, *, distinct: bool
) -> tuple[Ints, Floats]:  # fmt: skip
    """The best rows of each case, and the sums of their 1/odds."""
    rows, totals = np.empty((low.size, most), np.int32), np.empty(low.size)
    if low.size:
        g = prices.groups
        _legs(
            who, low, high, g.segments, g.rows, g.equivalent, g.market, _precedence(prices), prices.live, g.book,
            prices.net, prices.reason, prices.wanted, g.seen, *timing(prices), distinct, rows, totals,
            np.empty(g.row.size, np.int32), np.empty(most + 1, np.int64), np.empty(most, np.int32),
        )  # fmt: skip
    return rows, totals


@kernel
def _share(
    who, market, legs, segments, rows, row_market, side, book, net, reason, wanted, seen, live, timed, live_limit,
    gap_live, gap_prematch, ends, out,
):  # fmt: skip
    """Write the rows of its own market that share the price of each leg, and where they end.

    - `market` (int64 per case): market of the case
    - `row_market`, `side` (int32 per row): its market, and its outcome there
    - `ends`, `out`: offsets by leg and case, and rows, to write
    """
    bound = np.int64(LATEST)
    n = 0
    for k in range(legs.shape[1]):
        for c in range(market.size):
            leg = legs[c, k]
            if leg >= 0:
                earliest_leg, latest_leg = bound, -bound - 1
                for other_leg in legs[c]:
                    if other_leg >= 0 and seen[other_leg] != NO_TIME:
                        earliest_leg, latest_leg = min(earliest_leg, seen[other_leg]), max(latest_leg, seen[other_leg])
                is_live = live[market[c]] != 0
                gap = gap_live if is_live else gap_prematch
                begin, s = n, segments[row_market[leg]] + side[leg]
                for i in range(rows[s], rows[s + 1]):
                    if net[i] != net[leg] or reason[i] != ACCEPTED or wanted[who[c], book[i]] == 0:
                        continue
                    if i != leg and book[i] == book[leg]:
                        continue  # of the leg's book, only the leg
                    if timed and i != leg:
                        earliest, latest = earliest_leg, max(latest_leg, seen[i])
                        if seen[i] != NO_TIME:
                            earliest = min(earliest, seen[i])
                        if (latest > earliest and latest - earliest > gap) or (is_live and seen[i] < live_limit):
                            continue
                    # A book with the same price under two market names counts once.
                    if n == begin or book[out[n - 1]] != book[i]:
                        out[n] = i
                        n += 1
            ends[k * market.size + c + 1] = n


def sharing(prices: FairPrices, who: Longs, market: Longs, legs: Ints) -> tuple[Longs, Ints]:
    """Return the rows with the price of each leg that pass the timing rules with the other legs, a row per book.

    For the book of the leg, that is the leg itself.

    The first legs of all cases are first; the rows of leg `i` are those from `ends[i]` to `ends[i + 1]`.
    """
    g = prices.groups
    held = legs.T[legs.T >= 0]
    segment = g.segments[g.market[held]] + g.side[held]
    ends = np.zeros(legs.size + 1, np.int64)
    rows = np.empty(int((g.rows[segment + 1] - g.rows[segment]).sum()), np.int32)
    _share(
        who, market, legs, g.segments, g.rows, g.market, g.side, g.book, prices.net, prices.reason, prices.wanted,
        g.seen, prices.live, *timing(prices), ends, rows,
    )  # fmt: skip
    return ends, rows[: ends[-1]]


@kernel
def _two_digits(probability):
    """A number that differs if two significant digits of a `probability` do; ties have a number of their own."""
    if np.isnan(probability):
        return np.int64(_NO_DIGITS)
    millionths = np.int64(np.round(probability * 1e6))
    unit = np.int64(10000)
    while unit > 1 and millionths < 10 * unit:
        unit //= 10
    double_rest = 2 * (millionths % unit)
    return unit * (2 * (millionths // unit) + (2 if double_rest > unit else 1 if double_rest == unit else 0))


@kernel
def _hash_shown(legs, fair, main, slot, has_moved, ends, sharers, out):
    """Hash the main line, fair probabilities and sharing rows of each case; bit 0: a leg or one of these moved.

    - `main` (uint8 per case): 1 for the main line
    - `fair` (float64, cases by outcomes): fair probabilities
    - `slot` (int32 per row): slot on the board
    - `has_moved` (uint8 per row): 1 if the price moved
    - `ends`, `sharers`: offsets and rows, as from `_share`
    - `out` (uint64 per case): hashes
    """
    for c in range(out.size):
        h = step(np.uint64(1), np.uint64(main[c]))
        any_moved = np.uint64(0)
        for k in range(legs.shape[1]):
            h = step(h, np.uint64(_two_digits(fair[c, k])))
            if legs[c, k] >= 0:
                any_moved |= np.uint64(has_moved[legs[c, k]])
            for i in range(ends[k * out.size + c], ends[k * out.size + c + 1]):
                h = step(h, np.uint64(slot[sharers[i]]))
                any_moved |= np.uint64(has_moved[sharers[i]])
        out[c] = h << np.uint64(1) | any_moved


@kernel
def _on_main_lines(
    who, market, ladder, markets, segments, rows, book, net, reason, wanted, stamp, work, mains, no_counts, out
):
    """Whether each case is on the main line of its ladder for its user; cases of a ladder are adjacent.

    `stamp`, `work`, `mains` and `no_counts` are scratch arrays for `main_markets`; `out` (uint8 per case) is written.

    - `market` (int64 per case), `ladder`: market of the case, and ladder of a market
    """
    tick = np.int64(0)
    for c in range(market.size):
        at = ladder[market[c]]
        if c == 0 or at != ladder[market[c - 1]]:
            tick = main_markets(
                np.int64(at), markets, segments, rows, book, net, reason, wanted, stamp, tick, work, mains, no_counts
            )
        out[c] = mains[who[c]] == market[c]


def on_main_lines(prices: FairPrices, who: Longs, market: Longs) -> Bytes:
    """1 for each case on the main line of its ladder among the prices of its user; cases are in order of market."""
    g, (users, books) = prices.groups, prices.wanted.shape
    out = np.empty(market.size, np.uint8)
    _on_main_lines(
        who, market, g.ladder, g.markets, g.segments, g.rows, g.book, prices.net, prices.reason, prices.by_book,
        np.full(books, -1, np.int64), np.empty((5, users)), np.empty(users, np.int64), np.empty(0, np.int32), out,
    )  # fmt: skip
    return out


def shown_hash(
    prices: FairPrices, legs: Ints, fair: Floats, main: Bytes, moved: npt.NDArray[np.bool_], ends: Longs, sharers: Ints
) -> Words:
    """Hash what rows of low holds show: if theirs is the main line, fair probabilities, and rows from `sharing`."""
    out = np.empty(legs.shape[0], np.uint64)
    _hash_shown(legs, fair, main, prices.groups.row, moved.view(np.uint8), ends, sharers, out)
    return out


@kernel
def _span(b, first, end, book, trusted, own, seen):
    """The oldest time of a book's trusted prices in a market's rows, and the oldest and newest known times.

    The rows are those from `first` to `end`; `b` is the book.
    """
    oldest_time = np.int64(LATEST)
    earliest, latest = np.int64(LATEST), np.int64(EARLIEST)
    for i in range(first, end):
        if book[i] == b and trusted[i] != 0 and not np.isnan(own[i]):
            oldest_time = min(oldest_time, seen[i])
            if seen[i] != NO_TIME:
                earliest = min(earliest, seen[i])
                latest = max(latest, seen[i])
    return oldest_time, earliest, latest


@kernel
def _apart(
    s, m, judged_book, rows, book, own, width, trusted, reference, fair, weight, member, weighted, floor, width_limit
):
    """Fair probability of a segment of market m from its reference without the judged book; nan if none is left.

    `s` is the segment, `m` its market and `judged_book` the book.
    """
    ref = reference[m]
    if ref == NONE:
        return np.nan
    if ref == judged_book:
        return np.nan
    if ref >= 0:
        return fair[s]
    p, weight_sum, width_sum, members = 0.0, 0.0, 0.0, 0
    for i in range(rows[s], rows[s + 1]):
        b = book[i]
        if trusted[i] == 0 or np.isnan(own[i]) or b == judged_book or member[b] == 0:
            continue
        w = weight[b] if weighted else 1.0 / max(width[i], floor)
        p += w * own[i]
        width_sum += w * width[i]
        weight_sum += w
        members += 1
    if members == 0 or (members < 2 and (not weighted or width_sum > width_limit * weight_sum)):
        return np.nan
    return p / weight_sum


@kernel
def _edges(
    who, candidates, segments, rows, book, provider, net, reason, wanted, seen, own, width, trusted, doubt, reference,
    fair, weight, member, counted, weighted, live, timed, live_limit, gap_live, gap_prematch, floor, width_limit,
    least_worth, equivalent, market, out_who, out_row, out_fair, out_width, out_gap, out_seen, out_doubt, ids, fairs,
):  # fmt: skip
    """Offers with an edge of at least the user's `least_worth` - 1 in some markets.

    For each: user, row, fair probability, width, gap, oldest time, and whether it or its reference is doubtful.
    """
    count = 0
    for c in range(candidates.size):
        m = candidates[c]
        ref = reference[m]
        if ref == NONE:
            continue
        wanted_books, counted_books, worth_limit = wanted[who[c]], counted[who[c]], least_worth[who[c]]
        s0, s1 = segments[m], segments[m + 1]
        seen_limit = live_limit if timed and live[m] != 0 else NO_TIME
        time_gap = gap_live if live[m] != 0 else gap_prematch
        for s in range(s0, s1):
            begin = count
            for r in range(rows[s], rows[s + 1]):
                if reason[r] != ACCEPTED or wanted_books[book[r]] == 0 or book[r] == ref:
                    continue
                if ref >= 0 and not (fair[s] * net[r] >= worth_limit):
                    continue
                if seen[r] < seen_limit:
                    continue
                p, weight_sum, width_sum, members = 0.0, 0.0, 0.0, 0
                oldest_time = seen[r]
                is_doubtful = doubt[r]
                for i in range(rows[s], rows[s + 1]):
                    b = book[i]
                    if trusted[i] == 0 or np.isnan(own[i]) or b == book[r]:
                        continue
                    if b != ref if ref >= 0 else member[b] == 0:
                        continue
                    if timed:
                        oldest_of_book, earliest, latest = _span(b, rows[s0], rows[s1], book, trusted, own, seen)
                        if seen[r] != NO_TIME:
                            earliest, latest = min(earliest, seen[r]), max(latest, seen[r])
                        if oldest_of_book < seen_limit or (latest > earliest and latest - earliest > time_gap):
                            continue
                        oldest_time = min(oldest_time, oldest_of_book)
                    is_doubtful |= doubt[i]
                    w = 1.0
                    if ref < 0:
                        w = weight[b] if weighted else 1.0 / max(width[i], floor)
                    p += w * own[i]
                    width_sum += w * width[i]
                    weight_sum += w
                    members += 1
                # A wide reference is not trusted alone, whether the consensus is the catalog's or the user's.
                is_alone = ref < 0 and members < 2 and (not weighted or width_sum > width_limit * weight_sum)
                if members == 0 or is_alone:
                    continue
                p /= weight_sum
                # Of the outcomes that settle on the same fact, the one that is least likely decides.
                t = equivalent[s] if equivalent.size > 0 else s
                while t != s:
                    if rows[t] < rows[t + 1]:
                        q = _apart(
                            t, market[rows[t]], book[r], rows, book, own, width, trusted, reference, fair, weight,
                            member, weighted, floor, width_limit,
                        )  # fmt: skip
                        if not np.isnan(q):
                            p = min(p, q)
                    t = equivalent[t]
                if not (p * net[r] >= worth_limit):
                    continue
                if not timed:
                    for i in range(rows[s], rows[s + 1]):
                        b = book[i]
                        if trusted[i] == 0 or np.isnan(own[i]) or b == book[r]:
                            continue
                        if b == ref if ref >= 0 else member[b] != 0:
                            oldest_of_book, _, _ = _span(b, rows[s0], rows[s1], book, trusted, own, seen)
                            oldest_time = min(oldest_time, oldest_of_book)
                n = 0
                for i in range(rows[s], rows[s + 1]):
                    b = book[i]
                    f = provider[b]
                    if np.isnan(own[i]) or counted_books[b] == 0 or f == provider[book[r]]:
                        continue
                    if (ref >= 0 and f == provider[ref]) or (ref < 0 and member[b] != 0):
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
                if count > begin and book[out_row[count - 1]] == book[r]:
                    if net[out_row[count - 1]] >= net[r]:
                        continue
                    count -= 1
                out_who[count] = who[c]
                out_row[count] = r
                out_fair[count] = p
                out_width[count] = width_sum / weight_sum
                out_gap[count] = gap
                out_seen[count] = oldest_time
                out_doubt[count] = is_doubtful
                count += 1
    return count


class Edges(NamedTuple):
    """Offers with an edge: user, row, fair probability, width of the reference, gap to the other books, and so on."""

    who: Longs
    row: Ints
    fair: Floats
    width: Floats
    gap: Floats
    seen: Longs
    doubt: Bytes


@kernel
def _close_edges(
    who, candidates, segments, rows, book, net, reason, wanted, suspects, outlier, seen, doubt, live, timed, live_limit,
    least_worth, equivalent, fair, width, flags, segment, out_who, out_row, out_fair, out_width, out_gap, out_seen,
    out_doubt,
):  # fmt: skip
    """Offers in some markets whose edge over the estimator's fair price is at least the user's `least_worth` - 1.

    - `outlier`: code of the guard whose pre-match prices `suspects` includes
    - `fair`, `width` (float64 per row), `flags` (uint16 per row), `segment` (float64 per segment): as `row`, `width`,
      `flags` and `segment` of the estimator's `Fair`
    """
    count = 0
    for c in range(candidates.size):
        m, wanted_books, worth_limit = candidates[c], wanted[who[c]], least_worth[who[c]]
        seen_limit = live_limit if timed and live[m] != 0 else NO_TIME
        allowed_reason = outlier if suspects[who[c]] != 0 and live[m] == 0 else np.uint8(ACCEPTED)
        for s in range(segments[m], segments[m + 1]):
            begin = count
            for r in range(rows[s], rows[s + 1]):
                p = fair[r]
                if (
                    (reason[r] != ACCEPTED and reason[r] != allowed_reason)
                    or (reason[r] == ACCEPTED and (flags[r] & SUSPECT) != 0 and suspects[who[c]] == 0)
                    or wanted_books[book[r]] == 0
                    or np.isnan(p)
                    or seen[r] < seen_limit
                ):
                    continue
                # Of the outcomes that settle on the same fact, the one that is least likely decides.
                t = equivalent[s] if equivalent.size > 0 else s
                while t != s:
                    if not np.isnan(segment[t]):
                        p = min(p, segment[t])
                    t = equivalent[t]
                if not (p * net[r] >= worth_limit):
                    continue
                # One row a book: the better of its prices, which stand side by side.
                if count > begin and book[out_row[count - 1]] == book[r]:
                    if net[out_row[count - 1]] >= net[r]:
                        continue
                    count -= 1
                out_who[count], out_row[count], out_fair[count], out_width[count] = who[c], r, p, width[r]
                out_gap[count], out_seen[count], out_doubt[count] = np.nan, seen[r], doubt[r]
                count += 1
    return count


def _room(g: Groups, markets: Longs) -> Edges:
    """Columns for all prices of some markets."""
    n = int((g.rows[g.segments[markets + 1]] - g.rows[g.segments[markets]]).sum())
    numbers = np.empty((3, n))
    ends = np.empty(n, np.int64), np.empty(n, np.uint8)
    return Edges._make((np.empty(n, np.int64), np.empty(n, np.int32), *numbers, *ends))


def edges(prices: FairPrices, who: Longs, markets: Longs, least: Floats) -> Edges:
    """All offers of a user in some markets with an edge of at least the user's `least` (a fraction)."""
    if prices.close is None:
        return sharp_edges(prices, who, markets, least)
    g, n = prices.groups, 0
    out = _room(g, markets)
    if out.row.size:
        n = _close_edges(
            who, markets, g.segments, g.rows, g.book, prices.net, prices.reason, prices.wanted, prices.suspects,
            np.uint8(CODES["outlier"]), g.seen, prices.doubt, prices.live, prices.timed,
            oldest_live(prices), 1.0 + least, g.equivalent, prices.close.row, prices.close.width,
            prices.close.flags, prices.close.segment, *out,
        )  # fmt: skip
    return Edges._make(column[:n] for column in out)


@kernel
def _close_candidates(scope, segments, rows, book, net, fair, wanted, least_worth, best_worth, out_who, out_market):
    """Users and markets in which the largest product of fair probability and price reaches `least_worth`.

    `wanted` (books, users) is 1.0 or 0.0. Returns their number, including those that do not fit in the arrays.

    - `scope` (uint8 per market): 1 if it is searched
    - `fair` (float64 per row): the estimator's
    - `best_worth` (float64 per user): scratch array
    - `out_market` (int64): markets
    """
    count = 0
    for m in range(scope.size):
        if scope[m] == 0:
            continue
        best_worth[:] = -1.0
        for i in range(rows[segments[m]], rows[segments[m + 1]]):
            worth = fair[i] * net[i]
            if np.isnan(worth):
                continue
            by_user = wanted[book[i]]
            for v in range(best_worth.size):
                best_worth[v] = max(best_worth[v], worth * by_user[v])
        for v in range(best_worth.size):
            if best_worth[v] >= least_worth[v]:
                if count < out_who.size:
                    out_who[count], out_market[count] = v, m
                count += 1
    return count


def close_candidates(prices: FairPrices, least: Floats, markets: Bytes) -> tuple[Longs, Longs]:
    """Pairs of a user and one of some markets where a price may have an edge over the estimator's fair price."""
    g, room = prices.groups, 4096
    close = prices.close
    if close is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    most = np.empty(least.size)
    while True:
        who, market = np.empty((2, room), np.int64)
        n = _close_candidates(
            markets, g.segments, g.rows, g.book, prices.net, close.row, prices.by_book, 1.0 + least, most, who, market
        )
        if n <= room:
            return who[:n], market[:n]
        room = n


def sharp_edges(prices: FairPrices, who: Longs, markets: Longs, least: Floats, beside: Ints | None = None) -> Edges:
    """As `edges`, over the references in order of preference, whatever the method.

    With `beside`, only those of the books and outcomes of some rows.
    """
    g, limits, n = prices.groups, prices.limits, 0
    out = _room(g, markets)
    reason = prices.reason
    if beside is not None:
        is_judged = np.zeros((g.rows.size - 1, prices.traits.provider.size), bool)
        is_judged[g.segments[g.market[beside]] + g.side[beside], g.book[beside]] = True
        reason = np.where(is_judged[g.segments[g.market] + g.side, g.book], reason, _NOT_JUDGED)
    if out.row.size:
        books = prices.traits.provider.size
        n = _edges(
            who, markets, g.segments, g.rows, g.book, prices.traits.provider, prices.net, reason, prices.wanted, g.seen,
            prices.own, prices.width, prices.trusted, prices.doubt, prices.reference, prices.fair, prices.weight,
            prices.member, prices.counted, prices.weighted, prices.live, *timing(prices), limits.reference_floor,
            limits.reference_wide + limits.epsilon, 1.0 + least, g.equivalent, g.market, *out,
            np.empty(books, np.int32), np.empty(books),
        )  # fmt: skip
    return Edges._make(column[:n] for column in out)


@kernel
def _fairest(
    who, markets, segments, rows, equivalent, book, net, reason, wanted, own, width, trusted, reference, fair, weight,
    member, weighted, floor, out, place, odds, ends,
):  # fmt: skip
    """Fair probability of each outcome of some markets from the reference, with no book left out.

    If there is none but every outcome is offered, the best offers, also of equivalent outcomes, and their places in
    `out` are written to `odds` and `place`, market after market. Returns the number of such markets.

    - `out` (float64, markets by outcomes): probabilities to write
    - `ends` (int64): offsets of the markets in `odds`
    """
    n_bare = 0
    at = np.int64(0)
    for c in range(markets.size):
        for k in range(out.shape[1]):
            out[c, k] = np.nan
        m = markets[c]
        if m < 0:
            continue
        wanted_books = wanted[who[c]]
        n = segments[m + 1] - segments[m]
        is_incomplete, is_offered = False, True
        for k in range(n):
            s = segments[m] + k
            sum_p, sum_w, top = 0.0, 0.0, 0.0
            t = s
            while True:
                for i in range(rows[t], rows[t + 1]):
                    if reason[i] == ACCEPTED and wanted_books[book[i]] != 0:
                        top = max(top, net[i])
                t = equivalent[t] if equivalent.size > 0 else s
                if t == s:
                    break
            for i in range(rows[s], rows[s + 1]):
                if member[book[i]] != 0 and trusted[i] != 0 and not np.isnan(own[i]):
                    w = weight[book[i]] if weighted else 1.0 / max(width[i], floor)
                    sum_p += w * own[i]
                    sum_w += w
            if reference[m] >= 0:
                out[c, k] = fair[s]
            elif reference[m] == CONSENSUS and sum_w > 0.0:
                out[c, k] = sum_p / sum_w
            is_incomplete = is_incomplete or np.isnan(out[c, k])
            is_offered = is_offered and top > 0.0
            odds[at + k] = top
            place[at + k] = c * out.shape[1] + k
        if is_incomplete and is_offered:
            at += n
            n_bare += 1
            ends[n_bare] = at
    return n_bare


def market_fair(prices: FairPrices, markets: Longs, who: Longs | None = None) -> Floats:
    """Fair probabilities of some markets, (n, outcomes): the estimator's, the reference's, or those of the best prices.

    `who` is the user of each (None: the first). The probabilities of market -1 are nan.
    """
    g, n = prices.groups, markets.size
    fair = np.empty((n, prices.widest))
    place, odds, ends = np.empty(fair.size, np.int64), np.empty(fair.size), np.zeros(n + 1, np.int64)
    bare = _fairest(
        np.zeros(n, np.int64) if who is None else who, markets, g.segments, g.rows, g.equivalent, g.book, prices.net,
        prices.reason, prices.wanted, prices.own, prices.width, prices.trusted, prices.reference, prices.fair,
        prices.weight, prices.member, prices.weighted, prices.limits.reference_floor, fair, place, odds, ends,
    )  # fmt: skip
    if bare:
        used = ends[bare]
        fair.reshape(-1)[place[:used]] = devig_groups(odds[:used], ends[: bare + 1], devig_method(prices.method))
    if prices.close is not None:
        outcome = np.arange(prices.widest)
        inside = (outcome < g.outcomes[markets][:, None]) & (markets >= 0)[:, None]
        close = prices.close.segment[np.where(inside, g.segments[markets][:, None] + outcome, 0)]
        known = (inside <= ~np.isnan(close)).all(axis=1) & (markets >= 0)
        fair[known] = np.where(inside, close, np.nan)[known]
    return fair


def unconfirmed(prices: FairPrices, rows: Ints) -> npt.NDArray[np.bool_]:
    """Whether any leg of some sets, (n, legs) padded with -1, is doubtful."""
    return np.asarray(((rows >= 0) & (prices.doubt[np.maximum(rows, 0)] != 0)).any(axis=1))


def oldest_live(prices: FairPrices) -> int:
    """The time since which a live leg must have been seen; the earliest possible time if now is unknown."""
    return int(NO_TIME) if prices.now == NO_TIME else prices.now - round(prices.limits.stale_live_leg_s * 1e6)


def timing(prices: FairPrices) -> tuple[bool, int, int, int]:
    """Whether legs must be close in time; `oldest_live`; and the gaps allowed between live and pre-match legs."""
    limits = prices.limits
    gaps = round(limits.stale_live_gap_s * 1e6), round(limits.stale_prematch_gap_s * 1e6)
    return prices.timed, oldest_live(prices), *gaps


def ages(now: int, seen: npt.NDArray[np.int64]) -> Floats:
    """Seconds since each time, at least 0; nan if the time is unknown."""
    if now == NO_TIME:
        return np.full(seen.shape, np.nan)
    return np.where(seen == NO_TIME, np.nan, np.maximum(0, now - np.where(seen == NO_TIME, now, seen)) / 1e6)
