"""Edges: each book's edge over the fair probability (+EV), from the estimator or from references."""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import inlined, kernel
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import EARLIEST, LATEST, NO_TIME, NONE, Bytes, Float, Floats, Int, Ints, Longs
from oddsengine.detection.leg_times import LegTimes, leg_times
from oddsengine.identity.groups import Groups
from oddsengine.pricing.close import SUSPECT, FairColumns
from oddsengine.pricing.references import FairPrices, PricedColumns, ReferenceBooks, Users, consensus_weight

_OUTLIER = CODES["outlier"]
_NOT_JUDGED = np.uint8(np.iinfo(np.uint8).max)  # instead of a guard


class UserMarkets(NamedTuple):
    """What is searched: a user and a market each."""

    who: Longs
    market: Longs


class Edges(NamedTuple):
    """Offers with an edge."""

    who: Longs  # the user
    row: Ints
    fair: Floats  # fair probability
    width: Floats  # of the reference
    gap: Floats  # to the other books
    seen: Longs  # oldest time
    doubt: Bytes  # 1 if the price or its reference is doubtful


class OtherBooks(NamedTuple):
    """Scratch arrays: the fair probabilities of other providers, sorted."""

    ids: Ints
    fairs: Floats


@kernel
def _span(b: Int, first: Int, end: Int, g: Groups, columns: PricedColumns) -> tuple[Int, Int, Int]:
    """The oldest time of a book's trusted prices in a market's rows, and the oldest and newest known times.

    The rows are those from `first` to `end`; `b` is the book.
    """
    oldest_time = np.int64(LATEST)
    earliest, latest = np.int64(LATEST), np.int64(EARLIEST)
    for i in range(first, end):
        if g.book[i] == b and columns.trusted[i] != 0 and not np.isnan(columns.own[i]):
            oldest_time = min(oldest_time, g.seen[i])
            if g.seen[i] != NO_TIME:
                earliest = min(earliest, g.seen[i])
                latest = max(latest, g.seen[i])
    return oldest_time, earliest, latest


@kernel
def _fair_without(
    s: Int, m: Int, judged_book: Int, g: Groups, columns: PricedColumns, references: ReferenceBooks
) -> Float:
    """Fair probability of a segment of market m from its reference without the judged book; nan if none is left.

    `s` is the segment, `m` its market and `judged_book` the book.
    """
    ref = columns.reference[m]
    if ref == NONE:
        return np.nan
    if ref == judged_book:
        return np.nan
    if ref >= 0:
        return columns.fair[s]
    p, weight_sum, width_sum, members = 0.0, 0.0, 0.0, 0
    for i in range(g.rows[s], g.rows[s + 1]):
        b = g.book[i]
        if columns.trusted[i] == 0 or np.isnan(columns.own[i]) or b == judged_book or references.member[b] == 0:
            continue
        w = consensus_weight(i, b, columns, references)
        p += w * columns.own[i]
        width_sum += w * columns.width[i]
        weight_sum += w
        members += 1
    is_wide = members < 2 and (not references.weighted or width_sum > references.width_limit * weight_sum)
    if members == 0 or is_wide:
        return np.nan
    return p / weight_sum


@inlined
def _least_fair(
    p: Float, s: Int, judged_book: Int, g: Groups, columns: PricedColumns, references: ReferenceBooks
) -> Float:
    """Of the outcomes that settle on the same fact, the probability of the one that is least likely.

    `p` is that of segment `s`, without the `judged_book`.
    """
    t = g.equivalent[s] if g.equivalent.size > 0 else s
    while t != s:
        if g.rows[t] < g.rows[t + 1]:
            q = _fair_without(t, g.market[g.rows[t]], judged_book, g, columns, references)
            if not np.isnan(q):
                p = min(p, q)
        t = g.equivalent[t]
    return p


@inlined
def _gap_to_others(
    p: Float, s: Int, judged_book: Int, ref: Int, counted: Bytes, provider: Ints, g: Groups, columns: PricedColumns,
    member: Bytes, others: OtherBooks,
) -> Float:  # fmt: skip
    """Distance in logits of a fair probability from the median of the books that are no part of the reference.

    - `p`, `s`, `judged_book`: the probability, its segment and the judged book
    - `ref`: the reference
    - `counted` (per book): those that count for the user
    - `provider`: as in `Traits`; `member`: as in `ReferenceBooks`
    """
    n = 0
    for i in range(g.rows[s], g.rows[s + 1]):
        b = g.book[i]
        f = provider[b]
        if np.isnan(columns.own[i]) or counted[b] == 0 or f == provider[judged_book]:
            continue
        if (ref >= 0 and f == provider[ref]) or (ref < 0 and member[b] != 0):
            continue
        k = 0
        while k < n and others.ids[k] != f:
            k += 1
        if k < n:
            continue
        k = n
        while k > 0 and others.fairs[k - 1] > columns.own[i]:
            others.fairs[k] = others.fairs[k - 1]
            others.ids[k] = others.ids[k - 1]
            k -= 1
        others.fairs[k] = columns.own[i]
        others.ids[k] = f
        n += 1
    gap = np.nan
    if n >= 2:
        q = 0.5 * (others.fairs[(n - 1) // 2] + others.fairs[n // 2])
        gap = abs(np.log(p / (1.0 - p)) - np.log(q / (1.0 - q)))
    return gap


@inlined
def _room_for(r: Int, begin: Int, count: Int, g: Groups, columns: PricedColumns, out: Edges) -> Int:
    """Where to write a row, one a book: the better of its prices, which stand side by side; `NONE` if it is not better.

    `r` is the row; those of its segment are written from `begin` to `count`.
    """
    at = count
    if count > begin and g.book[out.row[count - 1]] == g.book[r]:
        at = NONE if columns.net[out.row[count - 1]] >= columns.net[r] else count - 1
    return at


@kernel
def _edges(
    cases: UserMarkets, g: Groups, columns: PricedColumns, users: Users, provider: Ints, references: ReferenceBooks,
    times: LegTimes, least_worth: Floats, others: OtherBooks, out: Edges,
) -> int:  # fmt: skip
    """Offers with an edge of at least the user's `least_worth` - 1 in some markets. Returns their number.

    - `provider`: as in `Traits`
    - `least_worth` (float64 per user): the least product of fair probability and price, 1 plus the least edge
    """
    count = 0
    for c in range(cases.market.size):
        m, who = cases.market[c], cases.who[c]
        ref = columns.reference[m]
        if ref == NONE:
            continue
        wanted_books, counted_books, worth_limit = users.wanted[who], users.counted[who], least_worth[who]
        s0, s1 = g.segments[m], g.segments[m + 1]
        is_live = columns.live[m] != 0
        seen_limit = times.live_limit if times.on and is_live else NO_TIME
        time_gap = times.gap_live if is_live else times.gap_prematch
        for s in range(s0, s1):
            begin = count
            for r in range(g.rows[s], g.rows[s + 1]):
                if columns.reason[r] != ACCEPTED or wanted_books[g.book[r]] == 0 or g.book[r] == ref:
                    continue
                if ref >= 0 and not (columns.fair[s] * columns.net[r] >= worth_limit):
                    continue
                if g.seen[r] < seen_limit:
                    continue
                p: Float = 0.0
                weight_sum, width_sum, members = 0.0, 0.0, 0
                oldest_time = g.seen[r]
                is_doubtful = columns.doubt[r]
                for i in range(g.rows[s], g.rows[s + 1]):
                    b = g.book[i]
                    if columns.trusted[i] == 0 or np.isnan(columns.own[i]) or b == g.book[r]:
                        continue
                    if b != ref if ref >= 0 else references.member[b] == 0:
                        continue
                    if times.on:
                        oldest_of_book, earliest, latest = _span(b, g.rows[s0], g.rows[s1], g, columns)
                        if g.seen[r] != NO_TIME:
                            earliest, latest = min(earliest, g.seen[r]), max(latest, g.seen[r])
                        if oldest_of_book < seen_limit or (latest > earliest and latest - earliest > time_gap):
                            continue
                        oldest_time = min(oldest_time, oldest_of_book)
                    is_doubtful |= columns.doubt[i]
                    w = consensus_weight(i, b, columns, references) if ref < 0 else 1.0
                    p += w * columns.own[i]
                    width_sum += w * columns.width[i]
                    weight_sum += w
                    members += 1
                # A wide reference is not trusted alone, whether the consensus is the catalog's or the user's.
                is_wide = not references.weighted or width_sum > references.width_limit * weight_sum
                if members == 0 or (ref < 0 and members < 2 and is_wide):
                    continue
                p = _least_fair(p / weight_sum, s, g.book[r], g, columns, references)
                if not (p * columns.net[r] >= worth_limit):
                    continue
                if not times.on:
                    for i in range(g.rows[s], g.rows[s + 1]):
                        b = g.book[i]
                        if columns.trusted[i] == 0 or np.isnan(columns.own[i]) or b == g.book[r]:
                            continue
                        if b == ref if ref >= 0 else references.member[b] != 0:
                            oldest_of_book, _, _ = _span(b, g.rows[s0], g.rows[s1], g, columns)
                            oldest_time = min(oldest_time, oldest_of_book)
                at = _room_for(r, begin, count, g, columns, out)
                if at == NONE:
                    continue
                out.who[at], out.row[at], out.fair[at], out.width[at] = who, r, p, width_sum / weight_sum
                out.gap[at] = _gap_to_others(
                    p, s, g.book[r], ref, counted_books, provider, g, columns, references.member, others
                )
                out.seen[at], out.doubt[at] = oldest_time, is_doubtful
                count = at + 1
    return count


@kernel
def _close_edges(
    cases: UserMarkets, g: Groups, columns: PricedColumns, users: Users, times: LegTimes, least_worth: Floats,
    close: FairColumns, out: Edges,
) -> int:  # fmt: skip
    """Offers in some markets whose edge over the estimator's fair price is at least the user's `least_worth` - 1.

    - `least_worth`: as in `_edges`
    """
    count = 0
    for c in range(cases.market.size):
        m, who = cases.market[c], cases.who[c]
        wanted_books, worth_limit, with_suspects = users.wanted[who], least_worth[who], users.suspects[who] != 0
        is_live = columns.live[m] != 0
        seen_limit = times.live_limit if times.on and is_live else NO_TIME
        allowed_reason = np.uint8(_OUTLIER) if with_suspects and not is_live else np.uint8(ACCEPTED)
        for s in range(g.segments[m], g.segments[m + 1]):
            begin = count
            for r in range(g.rows[s], g.rows[s + 1]):
                p, reason = close.row[r], columns.reason[r]
                if (
                    (reason != ACCEPTED and reason != allowed_reason)  # noqa: PLR1714
                    or (reason == ACCEPTED and (close.flags[r] & SUSPECT) != 0 and not with_suspects)
                    or wanted_books[g.book[r]] == 0
                    or np.isnan(p)
                    or g.seen[r] < seen_limit
                ):
                    continue
                # Of the outcomes that settle on the same fact, the one that is least likely decides.
                t = g.equivalent[s] if g.equivalent.size > 0 else s
                while t != s:
                    if not np.isnan(close.segment[t]):
                        p = min(p, close.segment[t])
                    t = g.equivalent[t]
                if not (p * columns.net[r] >= worth_limit):
                    continue
                at = _room_for(r, begin, count, g, columns, out)
                if at == NONE:
                    continue
                out.who[at], out.row[at], out.fair[at], out.width[at] = who, r, p, close.width[r]
                out.gap[at], out.seen[at], out.doubt[at] = np.nan, g.seen[r], columns.doubt[r]
                count = at + 1
    return count


def _room(g: Groups, markets: Longs) -> Edges:
    """Columns for all prices of some markets."""
    n = int((g.rows[g.segments[markets + 1]] - g.rows[g.segments[markets]]).sum())
    fair, width, gap = np.empty((3, n))
    return Edges(
        np.empty(n, np.int64), np.empty(n, np.int32), fair, width, gap, np.empty(n, np.int64), np.empty(n, np.uint8)
    )


def edges(prices: FairPrices, who: Longs, markets: Longs, least: Floats) -> Edges:
    """All offers of a user in some markets with an edge of at least the user's `least` (a fraction)."""
    if prices.close is None:
        return sharp_edges(prices, who, markets, least)
    g, n = prices.groups, 0
    out = _room(g, markets)
    if out.row.size:
        n = _close_edges(
            UserMarkets(who, markets), g, prices.columns, prices.users, leg_times(prices), 1.0 + least,
            prices.close.columns, out,
        )  # fmt: skip
    return Edges._make(column[:n] for column in out)


@kernel
def _close_candidates(
    scope: Bytes, segments: Longs, rows: Longs, book: Ints, net: Floats, fair: Floats, by_book: Floats,
    least_worth: Floats, best_worth: Floats, out_who: Longs, out_market: Longs,
) -> int:  # fmt: skip
    """Users and markets in which the largest product of fair probability and price reaches `least_worth`.

    Returns their number, including those that do not fit in the arrays.

    - `scope` (per market): 1 if it is searched
    - `segments`, `rows`, `book`: as in `Groups`; `net`: as in `PricedColumns`; `by_book`: as in `Users`
    - `fair` (per row): the estimator's
    - `best_worth` (per user): scratch array
    - `out_who`, `out_market`: users and markets
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
            by_user = by_book[book[i]]
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
            markets,
            g.segments,
            g.rows,
            g.book,
            prices.columns.net,
            close.row,
            prices.users.by_book,
            1.0 + least,
            most,
            who,
            market,
        )
        if n <= room:
            return who[:n], market[:n]
        room = n


def sharp_edges(prices: FairPrices, who: Longs, markets: Longs, least: Floats, beside: Ints | None = None) -> Edges:
    """As `edges`, over the references in order of preference, whatever the method.

    With `beside`, only those of the books and outcomes of some rows.
    """
    g, columns, n = prices.groups, prices.columns, 0
    out = _room(g, markets)
    books = prices.traits.provider.size
    if beside is not None:
        is_judged = np.zeros((g.rows.size - 1, books), bool)
        is_judged[g.segments[g.market[beside]] + g.side[beside], g.book[beside]] = True
        judged = is_judged[g.segments[g.market] + g.side, g.book]
        columns = columns._replace(reason=np.where(judged, columns.reason, _NOT_JUDGED))
    if out.row.size:
        n = _edges(
            UserMarkets(who, markets), g, columns, prices.users, prices.traits.provider, prices.references,
            leg_times(prices), 1.0 + least, OtherBooks(np.empty(books, np.int32), np.empty(books)), out,
        )  # fmt: skip
    return Edges._make(column[:n] for column in out)
