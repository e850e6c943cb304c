"""Guards: which prices are rejected before detection, and why.

The guards run in the documented order. Each guard sees the prices that the guards before it accepted, judges all of
them, and only then rejects any, so the order of rows cannot matter. A verdict depends only on the quoted prices of all
books in the ladders of one event, live flag, period and family. q = 1 / odds; the logit of q is -log(odds - 1). Books
of one provider count once in medians and counts. The thresholds are in `catalog/guards.toml`.

`_survey` reads every price once. It rejects prices that are wrong by themselves, and lists the few places where another
guard could reject something. For that it compares the lowest and highest prices of whole segments; rejecting prices
only narrows these ranges, so no place is missed. The other guards visit only the places listed for them.

A row is rejected if `reason` is the code of a guard; `measure` is the value that guard measured, else nan.

Witnesses: a price that `stale` rejected still counts in medians for a while, with `witness_weight` up to twice the
age at which it became stale and `witness_weight_old` after that. Medians are weighted; counts are of providers. A
provider is represented by a fresh price if it has one.

Columns of the kernels:

- `markets`, `segments`, `rows`, `market`, `ladder`, `subject`, `threshold`, `event`, `live`, `kind`, `book`, `name`,
  `odds`, `seen`: as in `Groups`
- `lined`, `prop`, `team`, `full`, `provider`, `mid`, `parlay`: as in `Traits`; the last three per book, the others per
  kind
- `start` (int64 per row): start of the row's event, microseconds or `NO_TIME`
- `flap`, `confirmed` (uint8 per row): as in `judge`
- `reason` (uint8 per row, in and out): code of the guard that rejected the row, or `ACCEPTED`
- `measure` (float64 per row, in and out): what that guard measured; nan if nothing. Between two passes of a guard, a
  number marks a row that is still to be rejected
- `witness` (float64 per row): weight of a stale price in medians, else 0
- `not_reference`, `doubt` (uint8 per row, out): as in `Verdicts`
- `contest` (int64 per ladder): the first ladder with its event, live flag and kind
- `code`: code of the guard that is run
- `candidates`, `ladders`, `contests`, `repeats`, `spread` (int64): the markets, ladders or segments that `_survey`
  listed for a guard
- `main` (uint8 per market): 1 for the main line of its ladder
- `others`, `least_lines`, `least_subjects`: numbers of providers, lines and subjects that a guard asks for
- `gap`, `bound_main`, `bound_other`, `slope`, `agreement`: thresholds, differences of logits
- `ids`, `owners` (int32 per provider), `prices`, `weights` (float64 per provider): scratch arrays for `_voices`: the
  providers that quote a segment, by price, their books, prices and weights
- `stale_code`, `started_code`, `mid_price_code`, `parlay_only_code`: codes of guards, 0 if disabled
- `seen_limit`, `seen_limit_live`: times before which a price is stale, pre-match and in play
- `start_limit`: time before which an event has started, or `NO_TIME`
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import NO_TIME, NONE, Bytes, Floats, Ints, Longs
from oddsengine.identity.groups import Groups
from oddsengine.identity.table_identity import Identity, times
from oddsengine.identity.traits import Traits
from oddsengine.tables.schema import OddsTable

SECOND = 1_000_000
_BOTH_TEAMS = 3  # bits of the subjects home and away
_PROVIDERS_THAT_AGREE = 3  # a price is doubted if at least two other providers agree
_NO_SEGMENT = -2  # not next to any segment, not even the first
# Lists of places that `_survey` fills.
_LISTS = 10
_TWICE, _WRONG, _SUMMED, _TEAMS, _CROSSED, _FLAPPING, _SPREAD, _PROPS, _PLAIN, _EXACT = range(_LISTS)


class Verdicts(NamedTuple):
    """Verdicts on the rows of `Groups`."""

    reason: Bytes  # code of the guard that rejected the row, or 0
    measure: Floats  # the value that guard measured
    not_reference: Bytes  # 1: too low to be a reference, though usable as an offer
    doubt: Bytes  # 1: an opportunity that uses the price is unconfirmed
    now: int  # microseconds, or NO_TIME if no row has a time
    limits: catalog.Thresholds


class _GuardCodes(NamedTuple):
    """The codes of a board's guards in the order they run; 0 for a disabled guard."""

    stale: int
    started_not_live: int
    mid_price_source: int
    parlay_only: int
    duplicate_outcome: int
    ladder: int
    internal_conflict: int
    book_sum: int
    one_team_lines: int
    ladder_cross: int
    bias: int
    outlier: int
    few_witnesses: int
    flap: int


@kernel
def _alone(
    seen, start, live, mid, parlay, seen_limit, start_limit, stale_code, started_code, mid_price_code, parlay_only_code
):
    """Code of the guard that rejects a price regardless of all others; 0 if none does.

    `seen` and `start` are times; `live`, `mid` and `parlay` are those of the price and its book.
    """
    if seen < seen_limit and (live or seen != NO_TIME):
        return stale_code
    if not live and start < start_limit and start != NO_TIME:
        return started_code
    if parlay_only_code != ACCEPTED and parlay != 0:
        return parlay_only_code
    if mid_price_code != ACCEPTED and mid != 0:
        return mid_price_code
    return ACCEPTED


@kernel
def _each_alone(
    seen, start, live, mid, parlay, seen_limit, seen_limit_live, start_limit, stale_code, started_code, mid_price_code,
    parlay_only_code, out,
):  # fmt: skip
    """`_alone` for many prices.

    - `out` (uint8 per row): the codes
    """
    for i in range(seen.size):
        limit = seen_limit_live if live[i] else seen_limit
        out[i] = _alone(
            seen[i], start[i], live[i] != 0, mid[i], parlay[i], limit, start_limit, stale_code, started_code,
            mid_price_code, parlay_only_code,
        )  # fmt: skip


@kernel
def _survey(
    markets, segments, rows, event, live, kind, seen, start, book, odds, flap, lined, prop, team, full, mid, parlay,
    low_sums, now, seen_limit, seen_limit_live, start_limit, stale_code, started_code, mid_price_code, parlay_only_code,
    rise_ratio, high_sum, cross_points, spread_ratio, spread_ratio_prop, exact_tolerance, full_weight_limit,
    full_weight_limit_live, witness_limit, witness_limit_live, weight, weight_old, reason, measure, witness, contest,
    notes,
):  # fmt: skip
    """Judge every row by itself, and list the segments, markets and ladders that other guards have to check.

    `contest` is set, per ladder, to the first ladder with its event, live flag and kind; `witness` to the weight of a
    stale price in medians, else 0. Returns the lengths of the lists: segments with two prices of one book; ladders
    that may run the wrong way; markets that may sum to too little or too much; contests of team totals; ladders where
    books may contradict each other; markets with a price that flaps; segments with prices far apart; of the ladders of
    these, props, and pre-match full-game ladders other than props; two-way markets where a book may sum to exactly 1.

    - `now`: microseconds, or `NO_TIME`
    - `low_sums` (float64 per book), `high_sum`: limits on the sum of a market's probabilities
    - `rise_ratio`, `spread_ratio`, `spread_ratio_prop`: ratios of odds - 1 between lines, and within a segment, that
      have to be looked at
    - `cross_points`: difference in probability between lines that has to be looked at
    - `exact_tolerance`: distance from a sum of exactly 1
    - `full_weight_limit`, `full_weight_limit_live`, `witness_limit`, `witness_limit_live`: times since which a stale
      price has the full weight, and any
    - `weight`, `weight_old`: the weights of a stale price
    - `notes` (int64, lists by places, out): the lists, a row each
    """
    n_twice, n_wrong, n_summed, n_teams, n_crossed = 0, 0, 0, 0, 0
    n_flapping, n_spread, n_props, n_plain, n_exact = 0, 0, 0, 0, 0
    least_sum = 0.0
    no_time = np.int64(NO_TIME)
    for k in range(low_sums.size):
        least_sum = max(least_sum, low_sums[k])
    for at in range(markets.size - 1):
        is_live, ladder_kind = live[at] != 0, kind[at]
        contest[at] = at
        if at > 0 and event[at] == event[at - 1] and live[at] == live[at - 1] and ladder_kind == kind[at - 1]:
            contest[at] = contest[at - 1]
        elif team[ladder_kind] != 0:
            notes[_TEAMS, n_teams] = at
            n_teams += 1
        limit = seen_limit_live if is_live else seen_limit
        full_weight_since = full_weight_limit_live if is_live else full_weight_limit
        witness_since = witness_limit_live if is_live else witness_limit
        ratio = spread_ratio_prop if prop[ladder_kind] != 0 else spread_ratio
        over_top, under_low = 0.0, np.inf  # highest over and lowest under price of the lines so far
        over_q, under_q = np.inf, 0.0  # lowest over and highest under probability of the lines so far
        is_reversed, is_crossed = False, False
        n_spread_before = n_spread
        for m in range(markets[at], markets[at + 1]):
            first, last = segments[m], segments[m + 1] - 1
            floor, ceiling = 0.0, 0.0  # bounds on the sum of any book's market
            is_complete = first <= last
            has_flap = False
            for s in range(first, last + 1):
                bottom, top = np.inf, 0.0
                lowest, highest = np.inf, 0.0  # the same, including witnesses
                previous_book = NONE
                has_repeat = False
                for i in range(rows[s], rows[s + 1]):
                    x = np.nan
                    w = 0.0
                    b, t = book[i], seen[i]
                    verdict = _alone(
                        t, start[i], is_live, mid[b], parlay[b], limit, start_limit, stale_code, started_code,
                        mid_price_code, parlay_only_code,
                    )  # fmt: skip
                    if verdict == ACCEPTED:
                        bottom = min(bottom, odds[i])
                        top = max(top, odds[i])
                    elif verdict == stale_code:
                        x = np.inf if t == NO_TIME else (now - t) / SECOND
                        if t >= witness_since and t != NO_TIME:
                            other_verdict = _alone(
                                t, start[i], is_live, mid[b], parlay[b], no_time, start_limit, stale_code, started_code,
                                mid_price_code, parlay_only_code,
                            )  # fmt: skip
                            if other_verdict == ACCEPTED:
                                w = weight if t >= full_weight_since else weight_old
                                lowest = min(lowest, odds[i])
                                highest = max(highest, odds[i])
                    elif verdict == started_code:
                        x = (now - start[i]) / SECOND
                    witness[i] = w
                    reason[i] = verdict
                    measure[i] = x
                    has_repeat |= b == previous_book
                    previous_book = b
                    has_flap |= flap[i] != 0
                if has_repeat:
                    notes[_TWICE, n_twice] = s
                    n_twice += 1
                if top == 0.0:
                    is_complete = False
                    continue
                if max(top, highest) - 1.0 >= ratio * (min(bottom, lowest) - 1.0):
                    notes[_SPREAD, n_spread] = s
                    n_spread += 1
                q_low, q_high = 1.0 / top, 1.0 / bottom
                floor += q_low
                ceiling += q_high
                if s == first:
                    is_reversed |= over_top - 1.0 >= rise_ratio * (bottom - 1.0)
                    is_crossed |= q_high - over_q > cross_points
                    over_top = max(over_top, top)
                    over_q = min(over_q, q_low)
                if s == last:
                    is_reversed |= top - 1.0 >= rise_ratio * (under_low - 1.0)
                    is_crossed |= under_q - q_low > cross_points
                    under_low = min(under_low, bottom)
                    under_q = max(under_q, q_high)
            if is_complete and (floor < least_sum or ceiling > high_sum):
                notes[_SUMMED, n_summed] = m
                n_summed += 1
            if is_complete and last == first + 1 and floor <= 1.0 + exact_tolerance <= ceiling + 2.0 * exact_tolerance:
                notes[_EXACT, n_exact] = m
                n_exact += 1
            if has_flap:
                notes[_FLAPPING, n_flapping] = m
                n_flapping += 1
        if lined[ladder_kind] != 0 and is_reversed:
            notes[_WRONG, n_wrong] = at
            n_wrong += 1
        if lined[ladder_kind] != 0 and is_crossed:
            notes[_CROSSED, n_crossed] = at
            n_crossed += 1
        if n_spread > n_spread_before:
            if prop[ladder_kind] != 0:
                notes[_PROPS, n_props] = at
                n_props += 1
            elif full[ladder_kind] != 0 and not is_live:
                notes[_PLAIN, n_plain] = at
                n_plain += 1
    return n_twice, n_wrong, n_summed, n_teams, n_crossed, n_flapping, n_spread, n_props, n_plain, n_exact


@kernel
def _exact(
    candidates, contest, markets, segments, rows, ladder, book, odds, tolerance, least_sum, share, code, reason,
    measure, n_complete, n_exact,
):  # fmt: skip
    """Reject a book's market if its two sides sum to exactly 1, and all its prices of a contest if most markets do.

    A single market that sums to slightly less is left to `book_sum`, which rejects the ladder.

    - `tolerance`: distance from 1 that counts as exactly 1
    - `least_sum`: sum below which a market is left to `book_sum`
    - `share`: share of a book's markets above which all are rejected
    - `n_complete`, `n_exact` (int64 per book): scratch arrays
    """
    last_contest = NONE
    for c in candidates:
        begin = contest[ladder[c]]
        if begin == last_contest:
            continue
        last_contest = begin
        end = begin + 1
        while end < markets.size - 1 and contest[end] == begin:
            end += 1
        for k in range(n_complete.size):
            n_complete[k], n_exact[k] = 0, 0
        for m in range(markets[begin], markets[end]):
            s = segments[m]  # all markets of a kind have as many outcomes, here two
            i, j = rows[s], rows[s + 1]
            while i < rows[s + 1]:
                first, k = i, book[i]
                p, q = 0.0, 0.0
                while i < rows[s + 1] and book[i] == k:
                    if reason[i] == ACCEPTED:
                        p = max(p, 1.0 / odds[i])
                    i += 1
                while j < rows[s + 2] and book[j] < k:
                    j += 1
                other_first = j
                while j < rows[s + 2] and book[j] == k:
                    if reason[j] == ACCEPTED:
                        q = max(q, 1.0 / odds[j])
                    j += 1
                if p == 0.0 or q == 0.0:
                    continue
                n_complete[k] += 1
                if abs(p + q - 1.0) > tolerance:
                    continue
                n_exact[k] += 1
                if p + q < least_sum:
                    continue
                for r in range(first, i):
                    measure[r] = p + q if reason[r] == ACCEPTED else measure[r]
                for r in range(other_first, j):
                    measure[r] = p + q if reason[r] == ACCEPTED else measure[r]
        for i in range(rows[segments[markets[begin]]], rows[segments[markets[end]]]):
            if reason[i] == ACCEPTED and (n_exact[book[i]] > share * n_complete[book[i]] or not np.isnan(measure[i])):
                reason[i] = code
                measure[i] = 1.0


@kernel
def _duplicates(repeats, rows, book, name, odds, gap, code, reason, measure):
    """Of a book's prices of one outcome and market name, reject all but the lowest if within the gap, else all."""
    for s in repeats:
        i = rows[s]
        while i < rows[s + 1]:
            j = i
            lowest_row = NONE
            lowest, highest = np.inf, 0.0
            count = 0
            while j < rows[s + 1] and book[j] == book[i] and name[j] == name[i]:
                if reason[j] == ACCEPTED:
                    count += 1
                    highest = max(highest, odds[j])
                    if odds[j] < lowest:
                        lowest = odds[j]
                        lowest_row = j
                j += 1
            if count > 1:
                difference = np.log(highest - 1.0) - np.log(lowest - 1.0)
                for k in range(i, j):
                    if reason[k] == ACCEPTED and not (difference <= gap and k == lowest_row):
                        reason[k] = code
                        measure[k] = difference
            i = j


@kernel
def _ladders(ladders, markets, segments, rows, book, odds, gap, code, reason, measure, over, under, worst):
    """Reject a book's ladder if its first outcome gets likelier, or its last less likely, with the threshold.

    `over` and `under` are, per book, the lowest logit of its overs and the highest of its unders on the lines so far.

    `worst` is the largest step the wrong way.
    """
    for at in ladders:
        a, b = rows[segments[markets[at]]], rows[segments[markets[at + 1]]]
        for i in range(a, b):
            over[book[i]], under[book[i]], worst[book[i]] = np.inf, -np.inf, gap
        for m in range(markets[at], markets[at + 1]):
            first, last = segments[m], segments[m + 1] - 1
            for s in range(first, last + 1):
                if first < s < last:
                    continue
                i = rows[s]
                while i < rows[s + 1]:
                    k = book[i]
                    bottom, top = np.inf, -np.inf
                    while i < rows[s + 1] and book[i] == k:
                        if reason[i] == ACCEPTED:
                            x = -np.log(odds[i] - 1.0)
                            bottom = min(bottom, x)
                            top = max(top, x)
                        i += 1
                    if s == first:
                        worst[k] = max(worst[k], top - over[k])
                        over[k] = min(over[k], bottom)
                    if s == last:
                        worst[k] = max(worst[k], under[k] - bottom)
                        under[k] = max(under[k], top)
        for i in range(a, b):
            if reason[i] == ACCEPTED and worst[book[i]] > gap:
                reason[i] = code
                measure[i] = worst[book[i]]


@kernel
def _voices(a, b, book, provider, odds, reason, witness, ids, owners, prices, weights):
    """One price per provider among rows a..b, sorted ascending, and its weight. Returns the number of providers.

    A provider's fresh prices have priority over witnesses, then its book of the lowest rank, then the lowest price.

    `a` and `b` are the first row and the end of the rows.
    """
    count = 0
    for i in range(a, b):
        is_fresh = reason[i] == ACCEPTED
        w = 1.0 if is_fresh else witness[i]
        if w == 0.0:
            continue
        f = provider[book[i]]
        at = 0
        while at < count and ids[at] != f:
            at += 1
        replace = False
        if at == count:
            count += 1
            replace = True
        elif weights[at] < 1.0 and is_fresh:
            replace = True
        elif book[i] == owners[at] and (weights[at] == 1.0) == is_fresh:
            replace = odds[i] < prices[at] or (odds[i] == prices[at] and w > weights[at])
        if replace:
            ids[at], owners[at], prices[at], weights[at] = f, book[i], odds[i], w
    for x in range(1, count):
        f, o, p, w = ids[x], owners[x], prices[x], weights[x]
        y = x
        while y > 0 and prices[y - 1] > p:
            ids[y], owners[y], prices[y], weights[y] = ids[y - 1], owners[y - 1], prices[y - 1], weights[y - 1]
            y -= 1
        ids[y], owners[y], prices[y], weights[y] = f, o, p, w
    return count


@kernel
def _rest(f, count, ids, prices, weights):
    """Weighted median probability without provider f, which is one of at least two.

    `f` is its number; `count` is the number of providers.
    """
    total = 0.0
    for k in range(count):
        if ids[k] != f:
            total += weights[k]
    weight_below = 0.0
    lower_provider = NONE
    for k in range(count):
        if ids[k] == f:
            continue
        if lower_provider >= 0:
            return 0.5 * (1.0 / prices[lower_provider] + 1.0 / prices[k])
        weight_below += weights[k]
        if 2.0 * weight_below > total:
            return 1.0 / prices[k]
        if 2.0 * weight_below == total:
            lower_provider = k
    return np.nan


@kernel
def _conflicts(
    repeats, ladder, markets, segments, rows, market, book, name, provider, odds, gap, others, code, reason, measure,
    witness, ids, owners, prices, weights,
):  # fmt: skip
    """If a book's market names price one outcome too differently, reject those not nearest the other books' median.

    A rejected name loses all its prices of the ladder.
    """
    for s in repeats:
        a, b = rows[s], rows[s + 1]
        i = a
        while i < b:
            j = i
            lowest, highest = np.inf, 0.0
            names = 0
            last_name = NONE
            while j < b and book[j] == book[i]:
                if reason[j] == ACCEPTED:
                    lowest = min(lowest, odds[j])
                    highest = max(highest, odds[j])
                    if name[j] != last_name:
                        last_name = name[j]
                        names += 1
                j += 1
            difference = np.log(highest - 1.0) - np.log(lowest - 1.0) if names > 1 else 0.0
            if difference > gap:
                middle, nearest = 0.0, np.inf
                count = _voices(a, b, book, provider, odds, reason, witness, ids, owners, prices, weights) - 1
                if count >= others:
                    m = _rest(provider[book[i]], count + 1, ids, prices, weights)
                    middle = np.log(m / (1.0 - m))
                    for k in range(i, j):
                        if reason[k] == ACCEPTED:
                            nearest = min(nearest, abs(-np.log(odds[k] - 1.0) - middle))
                for k in range(i, j):
                    if reason[k] == ACCEPTED and (count < others or abs(-np.log(odds[k] - 1.0) - middle) > nearest):
                        measure[k] = difference  # rejected below, once all books have been judged
            i = j
    for s in repeats:
        for k in range(rows[s], rows[s + 1]):
            if np.isnan(measure[k]) or (reason[k] != ACCEPTED and reason[k] != code):
                continue
            at = ladder[market[k]]
            for j in range(rows[segments[markets[at]]], rows[segments[markets[at + 1]]]):
                if book[j] == book[k] and name[j] == name[k] and (reason[j] == ACCEPTED or reason[j] == code):
                    reason[j] = code
                    measure[j] = measure[k] if np.isnan(measure[j]) else max(measure[j], measure[k])


@kernel
def _sums(
    candidates, markets, segments, rows, ladder, book, odds, low_sums, high_sum, code, reason, measure, last_segment,
    total, low_total,
):  # fmt: skip
    """Reject a book's ladder if one of its complete markets sums too low; reject only the market if it sums too high.

    `last_segment` is, per book, the last segment of the market so far without a gap before it; `total` is the sum up
    to it.

    - `low_sums` (float64 per book), `high_sum`: limits on the sum
    - `low_total` (float64 per book): scratch array: the largest sum of a ladder that is too low
    """
    for k in range(last_segment.size):
        last_segment[k] = _NO_SEGMENT
    c = 0
    while c < candidates.size:
        at = ladder[candidates[c]]
        a, b = rows[segments[markets[at]]], rows[segments[markets[at + 1]]]
        any_low = False
        for i in range(a, b):
            low_total[book[i]] = 0.0
        while c < candidates.size and ladder[candidates[c]] == at:
            first, last = segments[candidates[c]], segments[candidates[c] + 1] - 1
            c += 1
            for s in range(first, last + 1):
                i = rows[s]
                while i < rows[s + 1]:
                    k = book[i]
                    q = 0.0
                    while i < rows[s + 1] and book[i] == k:
                        if reason[i] == ACCEPTED:
                            q = max(q, 1.0 / odds[i])
                        i += 1
                    if q == 0.0:
                        continue
                    if s == first:
                        total[k] = q
                    elif last_segment[k] == s - 1:
                        total[k] += q
                    else:
                        continue
                    last_segment[k] = s
                    if s < last:
                        continue
                    if total[k] < low_sums[k]:
                        low_total[k] = max(low_total[k], total[k])
                        any_low = True
                    elif total[k] > high_sum:
                        for j in range(rows[first], rows[last + 1]):
                            if book[j] == k and reason[j] == ACCEPTED:
                                reason[j] = code
                                measure[j] = total[k]
        if any_low:
            for i in range(a, b):
                if low_total[book[i]] > 0.0 and (reason[i] == ACCEPTED or reason[i] == code):
                    reason[i] = code
                    measure[i] = low_total[book[i]]


@kernel
def _one_team(
    contests, contest, markets, segments, rows, subject, ladder, threshold, book, least_lines, code, reason, measure,
    line, teams, lines, has_both,
):  # fmt: skip
    """Reject a book's team totals if it has at least `least_lines` lines and none of them for both teams.

    - `line`, `teams`, `lines`, `has_both` (int64 per book): scratch arrays: the line so far and its teams (bits, as
      in `subject`), the number of lines, and whether one has both teams
    """
    for at in contests:
        end = at + 1
        while end < markets.size - 1 and contest[end] == at:
            end += 1
        low, high = markets[at], markets[end]
        if high - low < least_lines:
            continue
        for k in range(line.size):
            line[k], lines[k], has_both[k] = NONE, 0, 0
        for m in range(low, high):
            first = low
            while threshold[first] != threshold[m]:
                first += 1
            if first < m:
                continue
            for other_market in range(m, high):
                if threshold[other_market] != threshold[m]:
                    continue
                for i in range(rows[segments[other_market]], rows[segments[other_market + 1]]):
                    if reason[i] != ACCEPTED:
                        continue
                    k = book[i]
                    if line[k] != m:
                        line[k] = m
                        teams[k] = 0
                        lines[k] += 1
                    teams[k] |= subject[ladder[other_market]]
                    if teams[k] == _BOTH_TEAMS:
                        has_both[k] = 1
        for i in range(rows[segments[low]], rows[segments[high]]):
            if reason[i] == ACCEPTED and lines[book[i]] >= least_lines and has_both[book[i]] == 0:
                reason[i] = code
                measure[i] = lines[book[i]]


@kernel
def _speaks(row, start, book, provider, reason):
    """1 if no row before this one in its segment (from `start`) is an accepted price of the same provider, else 0.

    `row` is a row of the segment.
    """
    for k in range(start, row):
        if provider[book[k]] == provider[book[row]] and reason[k] == ACCEPTED:
            return 0
    return 1


@kernel
def _crossed(
    ladders, markets, segments, rows, book, provider, odds, points, code, reason, measure, conflicts, pairs, providers
):
    """Reject the book that contradicts most other providers across a ladder's lines, until no two contradict.

    `conflicts` is 1, per book and provider, if they contradict; `providers` and `pairs` count the providers and the
    prices that do.

    `points` is the difference in probability that is a contradiction.
    """
    for at in ladders:
        low, high = markets[at], markets[at + 1]
        while True:
            for k in range(provider.size):
                pairs[k], providers[k] = 0, 0
                for f in range(provider.size):
                    conflicts[k, f] = 0
            for m in range(low + 1, high):
                for e in range(low, m):
                    for is_over in range(2):
                        if is_over == 1:
                            hard_segment, easy_segment = segments[m], segments[e]
                        else:
                            hard_segment, easy_segment = segments[e + 1] - 1, segments[m + 1] - 1
                            if hard_segment == segments[e]:
                                continue
                        for i in range(rows[hard_segment], rows[hard_segment + 1]):
                            if reason[i] != ACCEPTED:
                                continue
                            k, q = book[i], 1.0 / odds[i]
                            for j in range(rows[easy_segment], rows[easy_segment + 1]):
                                o = book[j]
                                if reason[j] == ACCEPTED and q - 1.0 / odds[j] > points and provider[k] != provider[o]:
                                    pairs[k] += _speaks(j, rows[easy_segment], book, provider, reason)
                                    pairs[o] += _speaks(i, rows[hard_segment], book, provider, reason)
                                    conflicts[k, provider[o]] = 1
                                    conflicts[o, provider[k]] = 1
            worst = 0
            for k in range(provider.size):
                for f in range(provider.size):
                    providers[k] += conflicts[k, f]
                if providers[k] > providers[worst] or (providers[k] == providers[worst] and pairs[k] > pairs[worst]):
                    worst = k
            if providers[worst] == 0:
                break
            for i in range(rows[segments[low]], rows[segments[high]]):
                k = book[i]
                if reason[i] == ACCEPTED and providers[k] == providers[worst] and pairs[k] == pairs[worst]:
                    reason[i] = code
                    measure[i] = providers[k]


@kernel
def _biased(
    ladders, contest, markets, segments, rows, ladder, book, provider, odds, spread_ratio, gap, least_subjects, code,
    reason, measure, witness, ids, owners, prices, weights, median, gaps, last_ladder, subjects, n_compared, n_low,
):  # fmt: skip
    """Reject a book's prices of one side of a contest's props if, over enough subjects, the median gap is below -gap.

    Per book: the numbers of `subjects` and prices (`n_compared`) that others quote too, and how many of these are
    `n_low`. The first pass (`judged_book` is `NONE`) counts; then the median is computed for each book with half of its
    prices low.

    - `spread_ratio`: ratio of odds - 1 above which a segment's gaps are computed
    - `median`, `gaps` (float64 per book, per row), `last_ladder` (int64 per book): scratch arrays
    """
    end = 0
    for at in ladders:
        if at < end:
            continue
        begin, end = contest[at], at + 1
        while end < markets.size - 1 and contest[end] == begin:
            end += 1
        if end - begin < least_subjects:
            continue
        for side in range(segments[markets[at] + 1] - segments[markets[at]]):
            for k in range(provider.size):
                last_ladder[k], subjects[k], n_compared[k], n_low[k], median[k] = NONE, 0, 0, 0, np.nan
            for judged_book in range(NONE, provider.size):
                if judged_book >= 0 and (
                    subjects[judged_book] < least_subjects or 2 * n_low[judged_book] < n_compared[judged_book]
                ):
                    continue
                n = 0
                for m in range(markets[begin], markets[end]):
                    a, b = rows[segments[m] + side], rows[segments[m] + side + 1]
                    bottom, top = np.inf, 0.0
                    f = NONE
                    has_others = False
                    for i in range(a, b):
                        if reason[i] == ACCEPTED or witness[i] > 0.0:
                            bottom = min(bottom, odds[i])
                            top = max(top, odds[i])
                            has_others |= f >= 0 and provider[book[i]] != f
                            f = provider[book[i]]
                    if not has_others:
                        continue
                    count = 0
                    if judged_book >= 0 or top - 1.0 >= spread_ratio * (bottom - 1.0):
                        count = _voices(a, b, book, provider, odds, reason, witness, ids, owners, prices, weights)
                    for i in range(a, b):
                        k = book[i]
                        if reason[i] != ACCEPTED or (judged_book >= 0 and k != judged_book):
                            continue
                        x = 0.0  # all prices are close, so any value above -gap will do
                        if count > 0:
                            q = _rest(provider[k], count, ids, prices, weights)
                            x = -np.log(odds[i] - 1.0) - np.log(q / (1.0 - q))
                        if judged_book < 0:
                            n_compared[k] += 1
                            n_low[k] += x < -gap
                            if last_ladder[k] != ladder[m]:
                                last_ladder[k] = ladder[m]
                                subjects[k] += 1
                            continue
                        place = n
                        n += 1
                        while place > 0 and gaps[place - 1] > x:
                            gaps[place] = gaps[place - 1]
                            place -= 1
                        gaps[place] = x
                if judged_book >= 0:
                    median[judged_book] = 0.5 * (gaps[(n - 1) // 2] + gaps[n // 2])
            for m in range(markets[begin], markets[end]):
                for i in range(rows[segments[m] + side], rows[segments[m] + side + 1]):
                    if reason[i] == ACCEPTED and median[book[i]] < -gap:  # even if no other book quotes it
                        reason[i] = code
                        measure[i] = median[book[i]]


@kernel
def main_markets(at, markets, segments, rows, book, odds, reason, wanted, stamp, tick, work, main_line, book_counts):
    """The main line of a ladder for each user, among the accepted prices of the user's books.

    The line with the most books, then the best balanced, then the lowest; `main_line` is set to it, or to `NONE`.
    `wanted` (books, users) is 1.0 or 0.0; `work` is (5, users). `book_counts`, unless empty, is set to the number
    of the first user's books per market. `stamp` must be below `tick` on entry; returns the next tick.

    - `at`: the ladder
    - `tick`: mark of the market in `stamp`
    """
    most, least, count, first, top = work[0], work[1], work[2], work[3], work[4]
    users = main_line.size
    for v in range(users):
        main_line[v], most[v], least[v] = NONE, 0.0, np.inf
    for m in range(markets[at], markets[at + 1]):
        for v in range(users):
            count[v] = first[v] = 0.0
        for s in range(segments[m], segments[m + 1]):
            for v in range(users):
                top[v] = 0.0
            for i in range(rows[s], rows[s + 1]):
                if reason[i] != ACCEPTED:
                    continue
                by_user, x = wanted[book[i]], odds[i]
                for v in range(users):
                    y = x * by_user[v]
                    top[v] = y if y > top[v] else top[v]
                if stamp[book[i]] != tick:
                    stamp[book[i]] = tick
                    for v in range(users):
                        count[v] += by_user[v]
            if s == segments[m]:
                for v in range(users):
                    first[v] = top[v]
        tick += 1
        if book_counts.size:
            book_counts[m] = count[0]
        for v in range(users):
            imbalance = abs(1.0 / first[v] - 1.0 / top[v]) if first[v] > 0.0 and top[v] > 0.0 else np.inf
            if count[v] > most[v] or (count[v] == most[v] and count[v] > 0.0 and imbalance < least[v]):
                most[v], least[v], main_line[v] = count[v], imbalance, m
    return tick


@kernel
def _main_lines(
    ladders, markets, segments, rows, book, odds, reason, wanted, stamp, work, main_line, main, book_counts
):
    """Mark the main line of each ladder, and count the books of each market.

    `wanted`, `stamp`, `work`, `main_line` and `book_counts` are those of `main_markets`.
    """
    tick = np.int64(0)
    for at in ladders:
        tick = main_markets(
            at, markets, segments, rows, book, odds, reason, wanted, stamp, tick, work, main_line, book_counts
        )
        if main_line[0] >= 0:
            main[main_line[0]] = 1


@kernel
def _outliers(
    spread, segments, rows, market, book, provider, odds, main, others, bound_main, bound_other, slope, code, reason,
    measure, not_reference, witness, ids, owners, prices, weights,
):  # fmt: skip
    """Reject a book's market with a price far above the other providers; set `not_reference` for one far below them."""
    for s in spread:
        a, b = rows[s], rows[s + 1]
        if b - a <= others:
            continue
        count = _voices(a, b, book, provider, odds, reason, witness, ids, owners, prices, weights)
        if count <= others:
            continue
        m = market[a]
        base = bound_main if main[m] != 0 else bound_other
        for i in range(a, b):
            if reason[i] != ACCEPTED:
                continue
            q = _rest(provider[book[i]], count, ids, prices, weights)
            gap = -np.log(odds[i] - 1.0) - np.log(q / (1.0 - q))
            bound = base + slope / (q * (1.0 - q))
            if gap < -bound:
                measure[i] = gap  # rejected below with its market, once all have been judged
            elif gap > bound:
                for j in range(rows[segments[m]], rows[segments[m + 1]]):
                    if book[j] == book[i]:
                        not_reference[j] = 1
    for s in spread:
        for i in range(rows[s], rows[s + 1]):
            if reason[i] != ACCEPTED or np.isnan(measure[i]):
                continue
            m = market[i]
            a, b = rows[segments[m]], rows[segments[m + 1]]
            worst = measure[i]
            for j in range(a, b):
                if book[j] == book[i] and reason[j] == ACCEPTED and measure[j] < worst:
                    worst = measure[j]
            for j in range(a, b):
                if book[j] == book[i] and reason[j] == ACCEPTED:
                    reason[j] = code
                    measure[j] = worst


@kernel
def _doubts(
    spread, segments, rows, market, book, provider, odds, main, others, agreement, bound_main, bound_other, slope,
    confirmed, reason, doubt, witness, ids, owners, prices, weights,
):  # fmt: skip
    """Mark a book's market doubtful if a price is far above the other providers, which agree but are at most `others`.

    A price confirmed by a second observation is not doubtful.
    """
    for s in spread:
        a, b = rows[s], rows[s + 1]
        if b - a < _PROVIDERS_THAT_AGREE:
            continue
        count = _voices(a, b, book, provider, odds, reason, witness, ids, owners, prices, weights)
        if count < _PROVIDERS_THAT_AGREE or count > others:
            continue
        m = market[a]
        base = bound_main if main[m] != 0 else bound_other
        for i in range(a, b):
            if reason[i] != ACCEPTED or confirmed[i] != 0:
                continue
            f = provider[book[i]]
            low, high = np.inf, 0.0
            for k in range(count):
                if ids[k] != f:
                    low = min(low, prices[k])
                    high = max(high, prices[k])
            if np.log(high - 1.0) - np.log(low - 1.0) > agreement:
                continue
            q = _rest(f, count, ids, prices, weights)
            if np.log(odds[i] - 1.0) - np.log(high - 1.0) > base + slope / (q * (1.0 - q)):
                for j in range(rows[segments[m]], rows[segments[m + 1]]):
                    if book[j] == book[i] and reason[j] == ACCEPTED:
                        doubt[j] = 1


@kernel
def _flaps(candidates, segments, rows, book, flap, code, reason, measure):
    """Reject a book's market if one of its prices flaps, even if that price is already rejected."""
    for m in candidates:
        a, b = rows[segments[m]], rows[segments[m + 1]]
        for i in range(a, b):
            if flap[i] == 0:
                continue
            for j in range(a, b):
                if book[j] == book[i] and reason[j] == ACCEPTED:
                    reason[j] = code
                    measure[j] = 1.0


def main_lines(g: Groups, odds: Floats, reason: Bytes, books: int, ladders: Longs | None = None) -> tuple[Bytes, Ints]:
    """1 for the main line of each ladder among the accepted prices, and the number of books of each market.

    With `ladders`, only these are looked at.
    """
    ladders = np.arange(g.event.size) if ladders is None else ladders
    main, offered = np.zeros(g.threshold.size, np.uint8), np.zeros(g.threshold.size, np.int32)
    _main_lines(
        ladders, g.markets, g.segments, g.rows, g.book, odds, reason, np.ones((books, 1)), np.full(books, -1, np.int64),
        np.empty((5, 1)), np.empty(1, np.int64), main, offered,
    )  # fmt: skip
    return main, offered


@cache
def _codes(off: frozenset[int]) -> _GuardCodes:
    return _GuardCodes(*(0 if CODES[name] in off else CODES[name] for name in _GuardCodes._fields))


def judge(
    groups: Groups, traits: Traits, start: Longs, flap: Bytes, confirmed: Bytes, off: frozenset[int], now: int,
    limits: catalog.Thresholds,
) -> Verdicts:  # fmt: skip
    """Run every enabled guard over all rows of some groups.

    Ladders of one event, live flag and kind must be passed together; leaving out others changes no verdict.

    Parameters
    ----------
    groups, traits
        The rows, and the properties of their kinds and books.
    start
        Start of the row's event: microseconds, or `NO_TIME`.
    flap
        1 for a price that keeps leaving a value and returning to it.
    confirmed
        1 for a price confirmed by a second observation.
    off
        Codes of disabled guards.
    now
        Microseconds, or `NO_TIME`, with which no price has an age.
    limits
        The thresholds.
    """
    return _judge(groups, traits, start, flap, confirmed, _codes(off), now, limits, everywhere=False)


def alone(
    traits: Traits, book: Ints, live: Bytes, seen: Longs, start: Longs, off: frozenset[int], now: int,
    limit: catalog.Thresholds,
) -> Bytes:  # fmt: skip
    """Codes of the guards that reject prices regardless of other prices, else 0; `book` as in `Groups`."""
    on = _codes(off)
    ages = on.stale and now != NO_TIME
    out = np.empty(book.size, np.uint8)
    _each_alone(
        seen, start, live, traits.mid[book], traits.parlay[book],
        now - round(limit.stale_prematch_s * SECOND) if ages else NO_TIME,
        now - round(limit.stale_live_s * SECOND) if ages else NO_TIME,
        now if on.started_not_live else NO_TIME,
        on.stale, on.started_not_live, on.mid_price_source, on.parlay_only, out,
    )  # fmt: skip
    return out


def _judge(
    g: Groups, facts: Traits, start: Longs, flap: Bytes, confirmed: Bytes, on: _GuardCodes, now: int,
    limit: catalog.Thresholds, *, everywhere: bool,
) -> Verdicts:  # fmt: skip
    """Run the guards; `everywhere` also calls kernels with empty lists of places."""
    markets, segments, rows, book, odds = g.markets, g.segments, g.rows, g.book, g.odds
    n, books, provider = odds.size, facts.provider.size, facts.provider
    reason, measure, witness = np.empty(n, np.uint8), np.empty(n), np.empty(n)
    not_reference, doubt = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    contest, notes = np.empty(markets.size, np.int64), np.empty((_LISTS, rows.size), np.int64)
    ages = on.stale and now != NO_TIME

    def before(seconds: float) -> int:
        return now - round(seconds * SECOND) if ages else int(NO_TIME)

    # `_survey` uses slightly wider thresholds, so that rounding in a logarithm cannot hide a place.
    slack = -limit.epsilon
    apart = min(limit.outlier_main, limit.outlier_other) + 4.0 * limit.outlier_slope
    high = limit.book_sum_high + limit.epsilon
    low = np.where(facts.exchange != 0, limit.book_sum_low_exchange, limit.book_sum_low) - limit.epsilon
    near = limit.mid_price_near + limit.epsilon if on.mid_price_source else -1.0
    twice, wrong, summed, teams, crossed, flapping, spread, props, plain, even = _survey(
        markets, segments, rows, g.event, g.live, g.kind, g.seen, start, book, odds, flap,
        facts.lined, facts.prop, facts.team, facts.full, facts.mid, facts.parlay, low,
        now, before(limit.stale_prematch_s), before(limit.stale_live_s),
        now if on.started_not_live else NO_TIME,
        on.stale, on.started_not_live, on.mid_price_source, on.parlay_only,
        math.exp(limit.ladder_gap + slack), high, limit.cross_points,
        math.exp(apart + slack), math.exp(min(apart, limit.bias_gap) + slack), near,
        before(2.0 * limit.stale_prematch_s), before(2.0 * limit.stale_live_s),
        before(limit.witness_prematch_s), before(limit.witness_live_s), limit.witness_weight, limit.witness_weight_old,
        reason, measure, witness, contest, notes,
    )  # fmt: skip
    voices: tuple[Any, ...] = (witness, *np.empty((2, books), np.int32), *np.empty((2, books)))
    if everywhere or (on.mid_price_source and even):
        _exact(
            notes[_EXACT, :even], contest, markets, segments, rows, g.ladder, book, odds, near, 1.0 - limit.epsilon,
            limit.mid_price_share, on.mid_price_source, reason, measure, *np.empty((2, books), np.int64),
        )  # fmt: skip
    if everywhere or (on.duplicate_outcome and twice):
        _duplicates(
            notes[_TWICE, :twice], rows, book, g.name, odds, limit.duplicate_gap, on.duplicate_outcome, reason, measure
        )
    if everywhere or (on.ladder and wrong):
        _ladders(
            notes[_WRONG, :wrong], markets, segments, rows, book, odds, limit.ladder_gap, on.ladder, reason, measure,
            *np.empty((3, books)),
        )  # fmt: skip
    if everywhere or (on.internal_conflict and twice):
        _conflicts(
            notes[_TWICE, :twice], g.ladder, markets, segments, rows, g.market, book, g.name, provider, odds,
            limit.conflict_gap, limit.conflict_others, on.internal_conflict, reason, measure, *voices,
        )  # fmt: skip
    if everywhere or (on.book_sum and summed):
        _sums(
            notes[_SUMMED, :summed], markets, segments, rows, g.ladder, book, odds, low, high, on.book_sum,
            reason, measure, np.empty(books, np.int64), *np.empty((2, books)),
        )  # fmt: skip
    if everywhere or (on.one_team_lines and teams):
        _one_team(
            notes[_TEAMS, :teams], contest, markets, segments, rows, g.subject, g.ladder, g.threshold, book,
            limit.one_team_lines, on.one_team_lines, reason, measure, *np.empty((4, books), np.int64),
        )  # fmt: skip
    if everywhere or (on.ladder_cross and crossed):
        _crossed(
            notes[_CROSSED, :crossed], markets, segments, rows, book, provider, odds, limit.cross_points,
            on.ladder_cross, reason, measure, np.empty((books, books), np.uint8), *np.empty((2, books), np.int64),
        )  # fmt: skip
    if everywhere or (on.bias and props):
        _biased(
            notes[_PROPS, :props], contest, markets, segments, rows, g.ladder, book, provider, odds,
            math.exp(limit.bias_gap + slack), limit.bias_gap, limit.bias_subjects, on.bias, reason, measure,
            *(*voices, np.empty(books), np.empty(n), *np.empty((4, books), np.int64)),
        )  # fmt: skip
    bounds = limit.outlier_main, limit.outlier_other, limit.outlier_slope
    if everywhere or (on.outlier and spread):
        main, _ = main_lines(g, odds, reason, books, notes[_PLAIN, :plain])
        _outliers(
            notes[_SPREAD, :spread], segments, rows, g.market, book, provider, odds, main, limit.outlier_others,
            *bounds, on.outlier, reason, measure, not_reference, *voices,
        )  # fmt: skip
    if everywhere or (on.few_witnesses and spread):
        main, _ = main_lines(g, odds, reason, books, notes[_PLAIN, :plain])
        _doubts(
            notes[_SPREAD, :spread], segments, rows, g.market, book, provider, odds, main, limit.outlier_others,
            limit.few_witnesses_agree + limit.epsilon, *bounds, confirmed, reason, doubt, *voices,
        )  # fmt: skip
    if everywhere or (on.flap and flapping):
        _flaps(notes[_FLAPPING, :flapping], segments, rows, book, flap, on.flap, reason, measure)
    return Verdicts(reason, measure, not_reference, doubt, now, limit)


def guard(
    table: OddsTable, identity: Identity, off: frozenset[int], now: int, limits: catalog.Thresholds | None = None
) -> Verdicts:
    """Run every enabled guard over the rows of a table that have a market.

    Parameters
    ----------
    table, identity
        A checked table and the result of `identity.table_identity.identify`.
    off
        Codes of disabled guards.
    now
        Microseconds, or `NO_TIME`, with which no price has an age.
    limits
        The thresholds; None means those of the catalog.
    """
    row = identity.groups.row
    start = times(table, "event_start_time")[row]
    rejected = table["rejected_upstream"].to_numpy()[row]
    flap, confirmed = (
        table[name].to_numpy()[row].astype(np.uint8) if table[name].any() else np.zeros(row.size, np.uint8)
        for name in ("flap", "confirmed")
    )
    limits = limits or catalog.thresholds()
    found = judge(identity.groups, identity.traits, start, flap, confirmed, off, now, limits)
    return apply_rejections(found, rejected, off)


def apply_rejections(guarded: Verdicts, rejected: Bytes, off: frozenset[int]) -> Verdicts:
    """Also reject prices that the upstream node rejected (not 0) and no guard here did.

    That node has seen more: books that it does not pass on, and earlier prices.
    """
    code = CODES["upstream"]
    if code not in off and rejected.any():
        guarded.reason[(rejected != 0) & (guarded.reason == 0)] = code
    return guarded
