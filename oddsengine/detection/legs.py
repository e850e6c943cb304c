"""Legs: the best admissible prices, one per outcome (arbitrage, low hold) or line (middles), and what shares them.

Prices are after commission; a case is a user with a market, or with a pair of lines of a ladder.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import inlined, kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import LATEST, NO_TIME, NONE, Bool, Bytes, Float, Floats, Int, Ints, Longs, Words
from oddsengine.detection.leg_times import LegTimes, leg_times
from oddsengine.detection.sweep import PAIR
from oddsengine.guards.main_markets import main_markets
from oddsengine.identity.groups import Groups, first_gap, step
from oddsengine.pricing.commission import netted, on_winnings
from oddsengine.pricing.references import FairPrices, PricedColumns, Users

_NO_DIGITS = -1  # digits of nan
_MANY_ROWS = 64  # longer lists of prices are sorted even for one user


class Legs(NamedTuple):
    """The selected rows of some cases, (n, outcomes) padded with -1, their odds, and the sums of 1/odds."""

    rows: Ints
    odds: Floats  # in this combination: better where legs pay commission together; nan beyond
    total: Floats


@kernel
def _best_of(
    order: Ints, ends: Longs, n: Int, is_sorted: Bool, book: Ints, net: Floats, wanted: Bytes, seen: Longs,
    earliest: Int, latest: Int, two_books: Bool, out: Ints,
) -> Float:  # fmt: skip
    """Best row of each of `n` lists of rows, seen within [early, late] or at an unknown time.

    `two_books` requires at least two books. Returns the sum of 1/odds, or infinity if there is no such set.

    - `order`, `ends`: rows of all lists, and the offsets of each
    - `is_sorted`: whether each is sorted by price
    - `book`, `seen`: as in `Groups`; `net`: as in `PricedColumns`
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
def _rank(
    order: Ints, first: Int, end: Int, book: Ints, net: Floats, market: Ints, own_market: Int, precedence: Ints
) -> None:
    """Sort part of a list of rows by price, the best first; equal ones by book, and then those of the market first.

    - `first` and `end` are offsets in `order`
    - `book`, `market`: as in `Groups`; `net`: as in `PricedColumns`
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


class LegCases(NamedTuple):
    """What is searched: a user, and the markets of the first leg and of the last; equal if all are in one market."""

    who: Longs
    low: Longs
    high: Longs


class LegRows(NamedTuple):
    """Scratch arrays: the rows of each outcome of a case, which may be shared by the cases of one market."""

    order: Ints
    ends: Longs  # offsets of the outcomes' rows
    trial: Ints  # one set of legs


@inlined
def _list_rows(
    m: Int, z: Int, n: Int, is_sorted: Bool, g: Groups, columns: PricedColumns, precedence: Ints, rows: LegRows
) -> tuple[Bool, Bool]:
    """List the accepted rows of each leg of a case. Returns whether they are sorted, and whether some are equivalents.

    - `m`, `z`: markets of the first leg and of the last of `n`
    - `is_sorted`: whether they have to be sorted
    - `precedence`: as in `_rank`
    """
    has_equivalents = m == z and g.equivalent.size > 0
    is_shared = False
    for k in range(n):
        s = g.segments[z + 1] - 1 if k > 0 and m != z else g.segments[m] + k
        t, j = s, rows.ends[k]
        while True:
            for i in range(g.rows[t], g.rows[t + 1]):
                if columns.reason[i] == ACCEPTED:
                    rows.order[j] = i
                    j += 1
                    is_shared |= t != s
            t = g.equivalent[t] if has_equivalents else s
            if t == s:
                break
        rows.ends[k + 1] = j
    is_sorted = is_sorted or is_shared or rows.ends[n] > _MANY_ROWS
    for k in range(n if is_sorted else 0):
        _rank(rows.order, rows.ends[k], rows.ends[k + 1], g.book, columns.net, g.market, z if k > 0 else m, precedence)
    return is_sorted, is_shared


@kernel
def _legs(
    cases: LegCases, g: Groups, columns: PricedColumns, users: Users, precedence: Ints, times: LegTimes,
    two_books: Bool, rows: LegRows, out: Ints, totals: Floats,
) -> None:  # fmt: skip
    """Best admissible legs of each case; if timed, seen within a gap of each other, and live ones since `live_limit`.

    A case is a market (low and high are equal), whose outcomes also have the prices of their equivalent outcomes, or
    the first outcome of one market and the last of another. Rows of equal cases, which are adjacent, are sorted by
    price once, and so are long lists and those of equivalent outcomes. A case without a set has no legs.

    - `precedence`: as in `_rank`
    - `two_books`: whether the legs must be at two books at least
    - `out` (int32, cases by outcomes), `totals` (float64 per case): the legs to write, and the sums of their 1/odds
    """
    bound = np.int64(1) << np.int64(62)
    order, ends, trial = rows.order, rows.ends, rows.trial
    low, high = cases.low, cases.high
    ends[0] = 0
    is_sorted: Bool = False
    is_shared: Bool = False
    for c in range(low.size):
        m, z = low[c], high[c]
        wanted_books = users.wanted[cases.who[c]]
        n = g.segments[m + 1] - g.segments[m] if m == z else np.int64(2)
        is_repeat = c > 0 and low[c - 1] == m and high[c - 1] == z
        has_repeat = c + 1 < low.size and low[c + 1] == m and high[c + 1] == z
        if not is_repeat or (has_repeat and not is_sorted):
            is_sorted, is_shared = _list_rows(m, z, n, has_repeat, g, columns, precedence, rows)
        for k in range(out.shape[1]):
            out[c, k] = NONE
        is_live = columns.live[m] != 0
        gap = times.gap_live if is_live else times.gap_prematch
        seen_limit = times.live_limit if is_live else -bound - bound
        if not times.on or not is_live:
            totals[c] = _best_of(
                order, ends, n, is_sorted, g.book, columns.net, wanted_books, g.seen, -bound - bound, bound, two_books,
                trial,
            )  # fmt: skip
            if totals[c] == np.inf:
                continue
            earliest, latest = bound, -bound - bound
            for k in range(n):
                out[c, k] = trial[k]
                if g.seen[trial[k]] != NO_TIME:
                    earliest = min(earliest, g.seen[trial[k]])
                    latest = max(latest, g.seen[trial[k]])
            if not times.on or latest <= earliest or latest - earliest <= gap:
                continue
            for k in range(n):
                out[c, k] = NONE
        totals[c] = np.inf
        for first in range(n):
            s = g.segments[z + 1] - 1 if first > 0 and m != z else g.segments[m] + first
            for at in range(ends[first + 1] - ends[first] if is_shared else g.rows[s + 1] - g.rows[s]):
                i = order[ends[first] + at] if is_shared else g.rows[s] + at
                if (
                    columns.reason[i] != ACCEPTED or wanted_books[g.book[i]] == 0 or g.seen[i] < seen_limit
                    or g.seen[i] == NO_TIME
                ):  # fmt: skip
                    continue
                t = _best_of(
                    order, ends, n, is_sorted, g.book, columns.net, wanted_books, g.seen, g.seen[i], g.seen[i] + gap,
                    two_books, trial,
                )  # fmt: skip
                is_better = t < totals[c]
                if t == totals[c] and t < np.inf:
                    for k in range(n):
                        if g.book[trial[k]] != g.book[out[c, k]]:
                            is_better = g.book[trial[k]] < g.book[out[c, k]]
                            break
                if is_better:
                    totals[c] = t
                    for k in range(n):
                        out[c, k] = trial[k]


@kernel
def _belong(
    market: Longs, legs: Ints, segments: Longs, row_market: Ints, equivalent: Longs, precedence: Ints, out: Bytes
) -> None:
    """Whether each case belongs to its market: some legs are its own, and no market before it has the same bets.

    Legs of other markets are prices of equivalent outcomes. Where all outcomes of two markets are equivalent
    (a clean sheet of one side is no goal of the other), what mixes both would be found twice.

    - `market` (int64 per case): market of the case
    - `legs` (int32, cases by outcomes): rows
    - `segments`, `equivalent`: as in `Groups`
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
    return np.where(rows >= 0, prices.columns.net[np.maximum(rows, 0)], np.nan)


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
) -> tuple[Ints, Floats]:
    """The best rows of each case, and the sums of their 1/odds."""
    rows, totals = np.empty((low.size, most), np.int32), np.empty(low.size)
    if low.size:
        g = prices.groups
        room = LegRows(np.empty(g.row.size, np.int32), np.empty(most + 1, np.int64), np.empty(most, np.int32))
        _legs(
            LegCases(who, low, high), g, prices.columns, prices.users, _precedence(prices), leg_times(prices), distinct,
            room, rows, totals,
        )  # fmt: skip
    return rows, totals


@kernel
def _share(
    who: Longs, market: Longs, legs: Ints, g: Groups, columns: PricedColumns, wanted: Bytes, times: LegTimes,
    ends: Longs, out: Ints,
) -> None:  # fmt: skip
    """Write the rows of its own market that share the price of each leg, and where they end.

    - `who`, `market` (per case), `legs` (cases by outcomes): the user, the market, and rows padded with `NONE`
    - `wanted`: as in `Users`
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
                    if other_leg >= 0 and g.seen[other_leg] != NO_TIME:
                        earliest_leg = min(earliest_leg, g.seen[other_leg])
                        latest_leg = max(latest_leg, g.seen[other_leg])
                is_live = columns.live[market[c]] != 0
                gap = times.gap_live if is_live else times.gap_prematch
                begin, s = n, g.segments[g.market[leg]] + g.side[leg]
                for i in range(g.rows[s], g.rows[s + 1]):
                    if columns.net[i] != columns.net[leg] or columns.reason[i] != ACCEPTED:
                        continue
                    if wanted[who[c], g.book[i]] == 0:
                        continue
                    if i != leg and g.book[i] == g.book[leg]:
                        continue  # of the leg's book, only the leg
                    if times.on and i != leg:
                        earliest, latest = earliest_leg, max(latest_leg, g.seen[i])
                        if g.seen[i] != NO_TIME:
                            earliest = min(earliest, g.seen[i])
                        if (latest > earliest and latest - earliest > gap) or (
                            is_live and g.seen[i] < times.live_limit
                        ):
                            continue
                    # A book with the same price under two market names counts once.
                    if n == begin or g.book[out[n - 1]] != g.book[i]:
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
    _share(who, market, legs, g, prices.columns, prices.users.wanted, leg_times(prices), ends, rows)
    return ends, rows[: ends[-1]]


@kernel
def _two_digits(probability: Float) -> Int:
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
def _hash_shown(
    legs: Ints, fair: Floats, main: Bytes, slot: Ints, has_moved: Bytes, ends: Longs, sharers: Ints, out: Words
) -> None:
    """Hash the main line, fair probabilities and sharing rows of each case; bit 0: a leg or one of these moved.

    - `legs` (int32, cases by outcomes): rows, padded with `NONE`
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
    who: Longs, market: Longs, g: Groups, columns: PricedColumns, by_book: Floats, stamp: Longs, work: Floats,
    mains: Longs, no_counts: Ints, out: Bytes,
) -> None:  # fmt: skip
    """Whether each case is on the main line of its ladder for its user; cases of a ladder are adjacent.

    `stamp`, `work`, `mains` and `no_counts` are scratch arrays for `main_markets`; `out` (uint8 per case) is written.

    - `who`, `market` (per case): the user and the market
    - `by_book`: as in `Users`
    """
    tick: Int = np.int64(0)
    for c in range(market.size):
        at = g.ladder[market[c]]
        if c == 0 or at != g.ladder[market[c - 1]]:
            tick = main_markets(
                np.int64(at), g.markets, g.segments, g.rows, g.book, columns.net, columns.reason, by_book, stamp, tick,
                work, mains, no_counts,
            )  # fmt: skip
        out[c] = mains[who[c]] == market[c]


def on_main_lines(prices: FairPrices, who: Longs, market: Longs) -> Bytes:
    """1 for each case on the main line of its ladder among the prices of its user; cases are in order of market."""
    g, (users, books) = prices.groups, prices.users.wanted.shape
    out = np.empty(market.size, np.uint8)
    _on_main_lines(
        who, market, g, prices.columns, prices.users.by_book, np.full(books, -1, np.int64), np.empty((5, users)),
        np.empty(users, np.int64), np.empty(0, np.int32), out,
    )  # fmt: skip
    return out


def shown_hash(
    prices: FairPrices, legs: Ints, fair: Floats, main: Bytes, moved: npt.NDArray[np.bool_], ends: Longs, sharers: Ints
) -> Words:
    """Hash what rows of low holds show: if theirs is the main line, fair probabilities, and rows from `sharing`."""
    out = np.empty(legs.shape[0], np.uint64)
    _hash_shown(legs, fair, main, prices.groups.row, moved.view(np.uint8), ends, sharers, out)
    return out


def unconfirmed(prices: FairPrices, rows: Ints) -> npt.NDArray[np.bool_]:
    """Whether any leg of some sets, (n, legs) padded with -1, is doubtful."""
    return np.asarray(((rows >= 0) & (prices.columns.doubt[np.maximum(rows, 0)] != 0)).any(axis=1))
