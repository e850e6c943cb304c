"""The sweep: one pass over the offers of all users for what may be an opportunity.

Users with the same fair prices (see `references`) are searched together, and every case of a search includes its user.
Everything here is local to an event. The sweep finds the best price per outcome, their sum per market, the best edge
against the reference, and pairs of lines. It may list too many candidates but never misses one. `legs` and `edges`
check them.

Prices are after commission. The sum of a market with an outcome that no book offers is infinite.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from oddsengine._jit import fused, inlined
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NONE, Bytes, Float, Floats, Int, Longs, Words
from oddsengine.guards.verdicts import Verdicts
from oddsengine.identity.groups import Groups
from oddsengine.identity.table_identity import Identity
from oddsengine.pricing.close import CloseInput
from oddsengine.pricing.commission import PriceDepth
from oddsengine.pricing.model import ModelPrices
from oddsengine.pricing.references import FairPrices, PricedColumns, fair_prices, view_spec
from oddsengine.pricing.votes import CONSENSUS

_ANY_EDGE = -0.5  # a user who asks for less gets every market with a reference
_HALF = 50  # hundredths of a half line
PAIR = 2


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
    board: CloseInput | None = None,
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


class SweepLimits(NamedTuple):
    """What has to be reached for a candidate; per user unless noted."""

    least_edge: Floats  # of +EV
    most_sum: Floats  # of 1/odds of a market
    slack: float  # for all users, as in `Fees`: `most_sum` is larger by it in markets of more than two outcomes
    least_value: Floats  # EV of a middle
    least_distance: Longs  # of its lines, hundredths
    bound: float  # for all users: largest sum of 1/odds of a pair


class BestOffers(NamedTuple):
    """Scratch arrays of a ladder: what each user's books offer."""

    best: Floats  # (segments, users): best price
    cost: Floats  # (segments, users): its inverse
    total: Floats  # per user: sum of a market
    best_worth: Floats  # per user: best product of price and fair probability in a market


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


class SweepCounts(NamedTuple):
    """Number of candidates found, including those that do not fit in the arrays."""

    sums: Int
    edges: Int
    pairs: Int


@inlined
def _best_prices(s: Int, place: Int, g: Groups, columns: PricedColumns, by_book: Floats, offers: BestOffers) -> None:
    """The best price of an outcome, or of an equivalent one, for each user.

    `s` is its segment, written at `place`; `by_book` is as in `Users`.
    """
    top, price = offers.best[place], offers.cost[place]
    users = top.size
    for v in range(users):
        top[v] = 0.0
    t = s
    while True:
        for i in range(g.rows[t], g.rows[t + 1]):
            if columns.reason[i] != ACCEPTED:
                continue
            by_user, x = by_book[g.book[i]], columns.net[i]
            for v in range(users):
                y = x * by_user[v]
                top[v] = y if y > top[v] else top[v]
        t = g.equivalent[t] if g.equivalent.size > 0 else s
        if t == s:
            break
    for v in range(users):
        price[v] = 1.0 / top[v]


@inlined
def _check_market(
    m: Int, base: Int, n_sums: Int, n_edges: Int, g: Groups, columns: PricedColumns, limits: SweepLimits,
    offers: BestOffers, out: Candidates,
) -> tuple[Int, Int]:  # fmt: skip
    """List a market for the users whose sum of best prices is low, and those who may have an edge.

    - `m`: the market; `base` is the first segment of its ladder
    - `n_sums`, `n_edges`: numbers of candidates so far; returned with the new ones
    """
    total, best_worth = offers.total, offers.best_worth
    users = total.size
    for v in range(users):
        total[v] = 0.0
        best_worth[v] = np.inf if columns.reference[m] == CONSENSUS else 0.0
    for s in range(g.segments[m], g.segments[m + 1]):
        top, price, p = offers.best[s - base], offers.cost[s - base], columns.fair[s]
        for v in range(users):
            total[v] += price[v]
            a = top[v] * p
            best_worth[v] = a if a > best_worth[v] else best_worth[v]
    allowance = limits.slack if g.segments[m + 1] - g.segments[m] > PAIR else 1.0
    for v in range(users):
        if total[v] <= limits.most_sum[v] * allowance:
            if n_sums < out.sum_who.size:
                out.sum_who[n_sums] = v
                out.sum_market[n_sums] = m
                out.total[n_sums] = total[v]
            n_sums += 1
        if columns.reference[m] != NONE and (
            best_worth[v] >= 1.0 + limits.least_edge[v] or limits.least_edge[v] <= _ANY_EDGE
        ):
            if n_edges < out.edge_who.size:
                out.edge_who[n_edges] = v
                out.edge_market[n_edges] = m
            n_edges += 1
    return n_sums, n_edges


@inlined
def _pair_worth(low: Int, high: Int, g: Groups, columns: PricedColumns, close: Floats) -> Float:
    """The most that a pair of lines is worth if one reference has both half lines; infinite if that is not known.

    `low` and `high` are its markets; `close` is as in `_sweep`.
    """
    worth = np.inf
    if columns.reference[low] >= 0 and columns.reference[low] == columns.reference[high]:
        p, q = columns.fair[g.segments[low]], columns.fair[g.segments[high]]
        if g.threshold[low] % 100 == _HALF and g.threshold[high] % 100 == _HALF and p >= q:
            worth = 1.0 + p - q
            if close.size > 0:  # shifted as in `tails`
                a, b = close[g.segments[low]], close[g.segments[high]]
                odds_p, odds_q = p / (1.0 - p), q / (1.0 - q)
                shift = np.sqrt(a / (1.0 - a) / odds_p * (b / (1.0 - b)) / odds_q)
                worth = 1.0 + 1.0 / (1.0 + 1.0 / (odds_p * shift)) - 1.0 / (1.0 + 1.0 / (odds_q * shift))
                worth = np.inf if np.isnan(worth) else worth
    return worth


@inlined
def _check_pairs(
    first: Int, last: Int, n_pairs: Int, g: Groups, columns: PricedColumns, close: Floats, limits: SweepLimits,
    offers: BestOffers, out: Candidates,
) -> Int:  # fmt: skip
    """List the pairs of lines of a ladder with a whole number strictly between them.

    If one reference has both half lines, the best prices must reach the threshold with its probabilities.

    - `first`, `last`: markets of the ladder
    - `n_pairs`: number of candidates so far; returned with the new ones
    - `close`: as in `_sweep`
    """
    base = g.segments[first]
    for high in range(first, last):
        under_place = g.segments[high + 1] - 1 - base
        under = offers.cost[under_place]
        for low in range(first, high):
            if g.threshold[low] // 100 + 1 > -(-g.threshold[high] // 100) - 1:
                continue
            over_place = g.segments[low] - base
            over = offers.cost[over_place]
            worth = _pair_worth(low, high, g, columns, close)
            for v in range(limits.least_value.size):
                x = over[v] + under[v]
                if x > limits.bound or g.threshold[high] - g.threshold[low] < limits.least_distance[v]:
                    continue
                if not (worth / x - 1.0 >= limits.least_value[v]):
                    continue
                if n_pairs < out.pair_who.size:
                    out.pair_who[n_pairs] = v
                    out.low[n_pairs] = low
                    out.high[n_pairs] = high
                    out.over[n_pairs] = offers.best[over_place, v]
                    out.under[n_pairs] = offers.best[under_place, v]
                n_pairs += 1
    return n_pairs


@fused
def _sweep(
    scope: Scope, g: Groups, columns: PricedColumns, by_book: Floats, two_sided: Bytes, close: Floats,
    limits: SweepLimits, offers: BestOffers, out: Candidates,
) -> SweepCounts:  # fmt: skip
    """One pass for all users: markets with a low sum of best prices or a possible edge, and pairs of lines.

    - `by_book`: as in `Users`
    - `two_sided`: as in `Traits`
    - `close` (float64 per segment): the estimator's probabilities, or empty
    """
    n_sums: Int = 0
    n_edges: Int = 0
    n_pairs: Int = 0
    any_pairs = False
    for v in range(limits.least_value.size):
        any_pairs |= limits.least_value[v] < np.inf
    for at in range(g.markets.size - 1):
        first, last = g.markets[at], g.markets[at + 1]
        has_pairs = any_pairs and scope.ladders[at] != 0 and two_sided[g.kind[at]] != 0
        base = g.segments[first]
        for m in range(first, last):
            if scope.markets[m] == 0 and not has_pairs:
                continue
            for s in range(g.segments[m], g.segments[m + 1]):
                _best_prices(s, s - base, g, columns, by_book, offers)
            if scope.markets[m] != 0:
                n_sums, n_edges = _check_market(m, base, n_sums, n_edges, g, columns, limits, offers, out)
        if has_pairs:
            n_pairs = _check_pairs(first, last, n_pairs, g, columns, close, limits, offers, out)
    return SweepCounts(n_sums, n_edges, n_pairs)


def sweep(prices: FairPrices, thresholds: Thresholds, scope: Scope) -> Candidates:
    """List candidates in one pass over the offers of all users; it may list too many but never misses one."""
    g, limits = prices.groups, prices.limits
    epsilon = limits.epsilon
    bound = 1.0 / (1.0 + limits.middle_floor - epsilon)
    within = SweepLimits(
        least_edge=thresholds["min_ev"] - epsilon,
        most_sum=np.maximum(most_implied(thresholds, epsilon), 1.0 + thresholds["max_hold"] + epsilon),
        slack=float(prices.fees.slack),
        least_value=thresholds["min_middle_ev"] - 2.0 * epsilon,
        least_distance=np.round(thresholds["min_size"] * 100.0).astype(np.int64),
        bound=bound,
    )
    widest = int(np.diff(g.segments[g.markets]).max(initial=0))
    users, inside = thresholds["min_ev"].size, int(np.count_nonzero(scope.markets))
    offers = BestOffers(*np.empty((2, widest, users)), *np.empty((2, users)))
    close = np.empty(0) if prices.close is None else prices.close.segment
    most = min(users * inside, inside + 4096)
    room = [most, most, 4096 + 3 * inside * users]
    while True:
        sums, edges, pairs = room
        sum_who, sum_market = np.empty((2, sums), np.int64)
        edge_who, edge_market = np.empty((2, edges), np.int64)
        pair_who, low, high = np.empty((3, pairs), np.int64)
        over, under = np.empty((2, pairs))
        out = Candidates(
            sum_who, sum_market, np.empty(sums), edge_who, edge_market, pair_who, low, high, over, under, bound
        )
        found = _sweep(
            scope, g, prices.columns, prices.users.by_book, prices.traits.two_sided, close, within, offers, out
        )
        count = np.array(found)
        if (count <= room).all():
            s, e, p = count.tolist()
            return Candidates(
                sum_who[:s], sum_market[:s], out.total[:s], edge_who[:e], edge_market[:e],
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
