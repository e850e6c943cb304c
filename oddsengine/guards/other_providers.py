"""Guards that compare a book's prices with those of other providers.

Books of one provider count once in medians and counts. Medians are weighted; counts are of providers. A provider is
represented by a fresh price if it has one, else by a witness.

- `groups`: the rows and their markets
- `limits`, `verdicts`: as their classes say
- `provider` (int32 per book): as in `Traits`
- `contest` (int64 per ladder): the first ladder with its event, live flag and kind
- `code`: code of the guard that is run
- `ladders`, `repeats`, `spread` (int64): the ladders or segments of `Places`
- `main` (uint8 per market): 1 for the main line of its ladder
"""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NONE, Bytes, Float, Floats, Int, Ints, Longs
from oddsengine.guards.judgement import Limits, RowVerdicts
from oddsengine.guards.own_prices import end_of_contest
from oddsengine.identity.groups import Groups

_PROVIDERS_THAT_AGREE = 3  # a price is doubted if at least two other providers agree


class Voices(NamedTuple):
    """The providers that quote a segment, by price: one price of each. Scratch arrays, as long as there are books."""

    ids: Ints  # the provider
    owners: Ints  # its book
    prices: Floats
    weights: Floats  # 1, or that of a witness


class Tally(NamedTuple):
    """What `bias` counts of one side of a contest, per book. Scratch arrays."""

    median: Floats  # gap to the other providers; nan if it was not computed
    last_ladder: Longs
    subjects: Longs  # number of those that others quote too
    compared: Longs  # number of such prices
    low: Longs  # how many of these are low


@kernel
def find_voices(
    a: Int, b: Int, book: Ints, provider: Ints, odds: Floats, reason: Bytes, witness: Floats, voices: Voices
) -> int:
    """One price per provider among rows a..b, sorted ascending, and its weight. Returns the number of providers.

    A provider's fresh prices have priority over witnesses, then its book of the lowest rank, then the lowest price.

    - `a`, `b`: the first row and the end of the rows
    - `book`, `odds`: as in `Groups`
    - `reason`, `witness`: as in `RowVerdicts`
    """
    ids, owners, prices, weights = voices.ids, voices.owners, voices.prices, voices.weights
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
def median_of_rest(f: Int, count: Int, voices: Voices) -> Float:
    """Weighted median probability without provider f, which is one of at least two.

    `f` is its number; `count` is the number of providers.
    """
    ids, prices, weights = voices.ids, voices.prices, voices.weights
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
            median: Float = 0.5 * (1.0 / prices[lower_provider] + 1.0 / prices[k])
            return median
        weight_below += weights[k]
        if 2.0 * weight_below > total:
            median = 1.0 / prices[k]
            return median
        if 2.0 * weight_below == total:
            lower_provider = k
    return np.nan


@kernel
def conflicts(
    repeats: Longs, groups: Groups, provider: Ints, limits: Limits, code: Int, verdicts: RowVerdicts, voices: Voices
) -> None:
    """If a book's market names price one outcome too differently, reject those not nearest the other books' median.

    A rejected name loses all its prices of the ladder.
    """
    least = limits.conflict_others
    markets, segments, rows, market = groups.markets, groups.segments, groups.rows, groups.market
    ladder, book, odds, name = groups.ladder, groups.book, groups.odds, groups.name
    reason, measure, witness = verdicts.reason, verdicts.measure, verdicts.witness
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
            if difference > limits.conflict_gap:
                middle, nearest = 0.0, np.inf
                count = find_voices(a, b, book, provider, odds, reason, witness, voices) - 1
                if count >= least:
                    m = median_of_rest(provider[book[i]], count + 1, voices)
                    middle = np.log(m / (1.0 - m))
                    for k in range(i, j):
                        if reason[k] == ACCEPTED:
                            nearest = min(nearest, abs(-np.log(odds[k] - 1.0) - middle))
                for k in range(i, j):
                    if reason[k] == ACCEPTED and (count < least or abs(-np.log(odds[k] - 1.0) - middle) > nearest):
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
def _speaks(row: Int, start: Int, book: Ints, provider: Ints, reason: Bytes) -> int:
    """1 if no row before this one in its segment (from `start`) is an accepted price of the same provider, else 0.

    - `row`: a row of the segment
    - `book`, `reason`: as in `Groups` and `RowVerdicts`
    """
    for k in range(start, row):
        if provider[book[k]] == provider[book[row]] and reason[k] == ACCEPTED:
            return 0
    return 1


@kernel
def crossings(
    ladders: Longs, groups: Groups, provider: Ints, limits: Limits, code: Int, verdicts: RowVerdicts, opponents: Bytes,
    pairs: Longs, providers: Longs,
) -> None:  # fmt: skip
    """Reject the book that contradicts most other providers across a ladder's lines, until no two contradict.

    - `opponents` (uint8, books by providers): scratch array: 1 if they contradict each other
    - `pairs`, `providers` (int64 per book): scratch arrays: the prices and providers that do
    """
    markets, segments, rows, book, odds = groups.markets, groups.segments, groups.rows, groups.book, groups.odds
    reason, measure, points = verdicts.reason, verdicts.measure, limits.cross_points
    for at in ladders:
        low, high = markets[at], markets[at + 1]
        while True:
            for k in range(provider.size):
                pairs[k], providers[k] = 0, 0
                for f in range(provider.size):
                    opponents[k, f] = 0
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
                                    opponents[k, provider[o]] = 1
                                    opponents[o, provider[k]] = 1
            worst = 0
            for k in range(provider.size):
                for f in range(provider.size):
                    providers[k] += opponents[k, f]
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
def bias(
    ladders: Longs, contest: Longs, groups: Groups, provider: Ints, limits: Limits, code: Int, verdicts: RowVerdicts,
    voices: Voices, tally: Tally, gaps: Floats,
) -> None:  # fmt: skip
    """Reject a book's prices of one side of a contest's props if, over enough subjects, the median gap is below -gap.

    The first pass (`judged_book` is `NONE`) counts; then the median is computed for each book with half of its prices
    low.

    - `gaps` (float64 per row): scratch array: the gaps of one book, sorted
    """
    gap, least_subjects = limits.bias_gap, limits.bias_subjects
    markets, segments, rows = groups.markets, groups.segments, groups.rows
    ladder, book, odds = groups.ladder, groups.book, groups.odds
    reason, measure, witness = verdicts.reason, verdicts.measure, verdicts.witness
    median, last_ladder, subjects = tally.median, tally.last_ladder, tally.subjects
    n_compared, n_low = tally.compared, tally.low
    end = 0
    for at in ladders:
        if at < end:
            continue
        begin = contest[at]
        end = end_of_contest(begin, contest)
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
                    if judged_book >= 0 or top - 1.0 >= limits.bias_ratio * (bottom - 1.0):
                        count = find_voices(a, b, book, provider, odds, reason, witness, voices)
                    for i in range(a, b):
                        k = book[i]
                        if reason[i] != ACCEPTED or (judged_book >= 0 and k != judged_book):
                            continue
                        x = 0.0  # all prices are close, so any value above -gap will do
                        if count > 0:
                            q = median_of_rest(provider[k], count, voices)
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
def outliers(
    spread: Longs, groups: Groups, provider: Ints, main: Bytes, limits: Limits, code: Int, verdicts: RowVerdicts,
    voices: Voices,
) -> None:  # fmt: skip
    """Reject a book's market with a price far above the other providers; set `not_reference` for one far below them."""
    segments, rows, market, book, odds = groups.segments, groups.rows, groups.market, groups.book, groups.odds
    reason, measure = verdicts.reason, verdicts.measure
    witness, not_reference = verdicts.witness, verdicts.not_reference
    for s in spread:
        a, b = rows[s], rows[s + 1]
        if b - a <= limits.outlier_others:
            continue
        count = find_voices(a, b, book, provider, odds, reason, witness, voices)
        if count <= limits.outlier_others:
            continue
        m = market[a]
        base = limits.outlier_main if main[m] != 0 else limits.outlier_other
        for i in range(a, b):
            if reason[i] != ACCEPTED:
                continue
            q = median_of_rest(provider[book[i]], count, voices)
            gap = -np.log(odds[i] - 1.0) - np.log(q / (1.0 - q))
            bound = base + limits.outlier_slope / (q * (1.0 - q))
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
def doubts(
    spread: Longs, groups: Groups, provider: Ints, main: Bytes, limits: Limits, confirmed: Bytes, verdicts: RowVerdicts,
    voices: Voices,
) -> None:  # fmt: skip
    """Mark a book's market doubtful if a price is far above the other providers, which agree but are few.

    A price confirmed by a second observation is not doubtful.

    - `confirmed` (uint8 per row): as in `PriceFacts`
    """
    segments, rows, market, book, odds = groups.segments, groups.rows, groups.market, groups.book, groups.odds
    reason, doubt, witness = verdicts.reason, verdicts.doubt, verdicts.witness
    ids, prices = voices.ids, voices.prices
    for s in spread:
        a, b = rows[s], rows[s + 1]
        if b - a < _PROVIDERS_THAT_AGREE:
            continue
        count = find_voices(a, b, book, provider, odds, reason, witness, voices)
        if count < _PROVIDERS_THAT_AGREE or count > limits.outlier_others:
            continue
        m = market[a]
        base = limits.outlier_main if main[m] != 0 else limits.outlier_other
        for i in range(a, b):
            if reason[i] != ACCEPTED or confirmed[i] != 0:
                continue
            f = provider[book[i]]
            low, high = np.inf, 0.0
            for k in range(count):
                if ids[k] != f:
                    low = min(low, prices[k])
                    high = max(high, prices[k])
            if np.log(high - 1.0) - np.log(low - 1.0) > limits.agreement:
                continue
            q = median_of_rest(f, count, voices)
            if np.log(odds[i] - 1.0) - np.log(high - 1.0) > base + limits.outlier_slope / (q * (1.0 - q)):
                for j in range(rows[segments[m]], rows[segments[m + 1]]):
                    if book[j] == book[i] and reason[j] == ACCEPTED:
                        doubt[j] = 1
