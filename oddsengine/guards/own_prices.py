"""Guards that judge a book by its own prices: each as if there were no other book.

- `groups`: the rows and their markets
- `limits`, `verdicts`: as their classes say
- `contest` (int64 per ladder): the first ladder with its event, live flag and kind
- `code`: code of the guard that is run
- `candidates`, `ladders`, `contests`, `repeats` (int64): the markets, ladders or segments of `Places`
"""

import numpy as np

from oddsengine._jit import kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NONE, Bytes, Floats, Int, Longs
from oddsengine.guards.judgement import Limits, RowVerdicts
from oddsengine.identity.groups import Groups

_BOTH_TEAMS = 3  # bits of the subjects home and away
_NO_SEGMENT = -2  # not next to any segment, not even the first


@kernel
def end_of_contest(begin: Int, contest: Longs) -> int:
    """The end of the ladders of a contest.

    `begin` is its first ladder.
    """
    end = begin + 1
    while end < contest.size - 1 and contest[end] == begin:
        end += 1
    return end


@kernel
def exact(
    candidates: Longs, contest: Longs, groups: Groups, limits: Limits, code: Int, verdicts: RowVerdicts,
    n_complete: Longs, n_exact: Longs,
) -> None:  # fmt: skip
    """Reject a book's market if its two sides sum to exactly 1, and all its prices of a contest if most markets do.

    A single market that sums to slightly less is left to `book_sum`, which rejects the ladder.

    - `n_complete`, `n_exact` (int64 per book): scratch arrays
    """
    markets, segments, rows = groups.markets, groups.segments, groups.rows
    ladder, book, odds = groups.ladder, groups.book, groups.odds
    reason, measure = verdicts.reason, verdicts.measure
    last_contest = NONE
    for c in candidates:
        begin = contest[ladder[c]]
        if begin == last_contest:
            continue
        last_contest = begin
        end = end_of_contest(begin, contest)
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
                if abs(p + q - 1.0) > limits.exact_near:
                    continue
                n_exact[k] += 1
                if p + q < limits.exact_sum:
                    continue
                for r in range(first, i):
                    measure[r] = p + q if reason[r] == ACCEPTED else measure[r]
                for r in range(other_first, j):
                    measure[r] = p + q if reason[r] == ACCEPTED else measure[r]
        for i in range(rows[segments[markets[begin]]], rows[segments[markets[end]]]):
            k = book[i]
            if reason[i] == ACCEPTED and (n_exact[k] > limits.exact_share * n_complete[k] or not np.isnan(measure[i])):
                reason[i] = code
                measure[i] = 1.0


@kernel
def duplicates(repeats: Longs, groups: Groups, limits: Limits, code: Int, verdicts: RowVerdicts) -> None:
    """Of a book's prices of one outcome and market name, reject all but the lowest if within the gap, else all."""
    rows, book, odds, name = groups.rows, groups.book, groups.odds, groups.name
    reason, measure = verdicts.reason, verdicts.measure
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
                    if reason[k] == ACCEPTED and not (difference <= limits.duplicate_gap and k == lowest_row):
                        reason[k] = code
                        measure[k] = difference
            i = j


@kernel
def ladders_reversed(
    ladders: Longs, groups: Groups, limits: Limits, code: Int, verdicts: RowVerdicts, over: Floats, under: Floats,
    worst: Floats,
) -> None:  # fmt: skip
    """Reject a book's ladder if its first outcome gets likelier, or its last less likely, with the threshold.

    `over` and `under` are, per book, the lowest logit of its overs and the highest of its unders on the lines so far.

    `worst` is the largest step the wrong way.
    """
    gap = limits.ladder_gap
    markets, segments, rows, book, odds = groups.markets, groups.segments, groups.rows, groups.book, groups.odds
    reason, measure = verdicts.reason, verdicts.measure
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
def sums(
    candidates: Longs, groups: Groups, limits: Limits, code: Int, verdicts: RowVerdicts, low_sums: Floats,
    last_segment: Longs, total: Floats, low_total: Floats,
) -> None:  # fmt: skip
    """Reject a book's ladder if one of its complete markets sums too low; reject only the market if it sums too high.

    `last_segment` is, per book, the last segment of the market so far without a gap before it; `total` is the sum up
    to it.

    - `low_sums` (float64 per book): sums that are too low
    - `low_total` (float64 per book): scratch array: the largest sum of a ladder that is too low
    """
    markets, segments, rows = groups.markets, groups.segments, groups.rows
    ladder, book, odds = groups.ladder, groups.book, groups.odds
    reason, measure = verdicts.reason, verdicts.measure
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
                    elif total[k] > limits.high_sum:
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
def one_team(
    contests: Longs, contest: Longs, groups: Groups, limits: Limits, code: Int, verdicts: RowVerdicts, line: Longs,
    teams: Longs, lines: Longs, has_both: Longs,
) -> None:  # fmt: skip
    """Reject a book's team totals if it has enough lines and none of them for both teams.

    - `line`, `teams`, `lines`, `has_both` (int64 per book): scratch arrays: the line so far and its teams (bits, as
      in `subject`), the number of lines, and whether one has both teams
    """
    least_lines = limits.one_team_lines
    markets, segments, rows, ladder = groups.markets, groups.segments, groups.rows, groups.ladder
    threshold, subject, book = groups.threshold, groups.subject, groups.book
    reason, measure = verdicts.reason, verdicts.measure
    for at in contests:
        low, high = markets[at], markets[end_of_contest(at, contest)]
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
def flaps(candidates: Longs, groups: Groups, flap: Bytes, code: Int, verdicts: RowVerdicts) -> None:
    """Reject a book's market if one of its prices flaps, even if that price is already rejected.

    - `flap` (uint8 per row): as in `PriceFacts`
    """
    segments, rows, book = groups.segments, groups.rows, groups.book
    reason, measure = verdicts.reason, verdicts.measure
    for m in candidates:
        a, b = rows[segments[m]], rows[segments[m + 1]]
        for i in range(a, b):
            if flap[i] == 0:
                continue
            for j in range(a, b):
                if book[j] == book[i] and reason[j] == ACCEPTED:
                    reason[j] = code
                    measure[j] = 1.0
