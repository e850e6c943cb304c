"""Guards: what is kept away from the detectors, and why.

One function a guard, in the order they run. A guard sees the prices that those before it left, judges all of them, and
only then sets any aside, so the order of rows cannot matter. Guards look at quoted prices of all books, one event at a
time. q = 1 / odds; the logit of q is -log(odds - 1). Books of one feed count once in a median or a count.
The thresholds are data: `catalog/guards.toml`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine import catalog
from oddsengine._jit import kernel
from oddsengine.groups import NO_TIME, Bytes, Floats, Groups, Ints, Longs
from oddsengine.markets import Identity, times
from oddsengine.reasons import CODES
from oddsengine.schema import OddsTable

SECOND = 1_000_000


class Guarded(NamedTuple):
    """Verdicts on the rows of `Groups`."""

    aside: Bytes  # 0, or the code of the guard that set the row aside
    measure: Floats  # what that guard measured
    stingy: Bytes  # 1: too low to be a reference, though honest as an offer
    now: int  # microseconds, or NO_TIME where no row has a time


class _Board(NamedTuple):
    """What the guards read, and the two columns they write."""

    groups: Groups
    identity: Identity
    table: OddsTable
    now: int
    prob: Floats  # 1 / odds, per row
    logit: Floats  # of it
    segment: Ints  # per row
    feed: Ints  # per book
    order: Ints  # rows by ladder, book, market, outcome
    runs: Longs  # (ladder, book) -> order
    prop: Bytes  # per ladder
    aside: Bytes
    measure: Floats
    stingy: Bytes
    limits: catalog.Thresholds
    marks: tuple[Floats, Floats]  # what a guard notes of a row, nan else; whoever reads them wipes them
    compared: list[tuple[Floats, Ints, Ints]]  # the last comparison with the other feeds, while it holds

    def set_aside(self, rows: npt.NDArray[Any], guard: str, measure: Any = np.nan) -> None:
        """Set rows (a mask) aside unless an earlier guard has."""
        fresh = rows & (self.aside == 0)
        self.aside[fresh] = CODES[guard]
        self.measure[fresh] = measure[fresh] if isinstance(measure, np.ndarray) else measure

    def spread(self, mark: Floats, guard: str, *, whole: bool) -> None:
        """Set aside the book's market (or whole ladder) of every marked row; a mark is its measure, nan is none."""
        _spread(mark, self.order, self.runs, self.groups.market, int(whole), CODES[guard], self.aside, self.measure)


@kernel
def _runs(ladder_rows, book, books, order, starts, count):
    """Rows by ladder and book (stable), and where each such run starts."""
    found = 0
    for at in range(ladder_rows.size - 1):
        a, b = ladder_rows[at], ladder_rows[at + 1]
        low, high = books, -1
        for i in range(a, b):
            k = book[i]
            count[k] += 1
            low = min(low, k)
            high = max(high, k)
        place = a
        for k in range(low, high + 1):
            if count[k] > 0:
                starts[found] = place
                found += 1
                place += count[k]
                count[k] = place - count[k]
        for i in range(a, b):
            k = book[i]
            order[count[k]] = i
            count[k] += 1
        for k in range(low, high + 1):
            count[k] = 0
    starts[found] = book.size
    return found


@kernel
def _spread(mark, order, runs, market, whole, code, aside, measure):
    """Set aside, with the largest mark, each run (or its market) that holds a marked row; wipes the marks."""
    for r in range(runs.size - 1):
        i = runs[r]
        while i < runs[r + 1]:
            j = i
            worst = np.nan
            while j < runs[r + 1] and (whole != 0 or market[order[j]] == market[order[i]]):
                x = mark[order[j]]
                mark[order[j]] = np.nan
                if not np.isnan(x) and not (abs(x) <= abs(worst)):
                    worst = x
                j += 1
            if not np.isnan(worst):
                for k in range(i, j):
                    if aside[order[k]] == 0:
                        aside[order[k]] = code
                        measure[order[k]] = worst
            i = j


@kernel
def _duplicates(order, runs, segment, name, logit, aside, gap, mark):
    """Mark prices of one book, outcome and market name: all but the lowest if within the gap, else all."""
    for r in range(runs.size - 1):
        i = runs[r]
        while i < runs[r + 1]:
            first = order[i]
            j = i + 1
            while j < runs[r + 1] and segment[order[j]] == segment[first] and name[order[j]] == name[first]:
                j += 1
            if j > i + 1:
                kept = -1
                low, high = np.inf, -np.inf
                count = 0
                for k in range(i, j):
                    row = order[k]
                    if aside[row] == 0:
                        count += 1
                        low = min(low, logit[row])
                        if logit[row] > high:
                            high = logit[row]
                            kept = row
                if count > 1:
                    for k in range(i, j):
                        row = order[k]
                        if aside[row] == 0 and not (high - low <= gap and row == kept):
                            mark[row] = high - low
            i = j


@kernel
def _ladders(order, runs, market, side, outcomes, threshold, lined, logit, aside, gap, mark):
    """Mark one price of each run whose over-like side gets likelier, or under-like less likely, with the threshold.

    Returns how many are marked.
    """
    found = 0
    for r in range(runs.size - 1):
        if lined[market[order[runs[r]]]] == 0:
            continue
        worst = gap
        at = -1
        for over in range(2):
            best, here = np.inf, np.inf
            now = np.int32(-2147483648)
            for i in range(runs[r], runs[r + 1]):
                row = order[i]
                if aside[row] != 0:
                    continue
                if over == 1 and side[row] != 0:
                    continue
                if over == 0 and side[row] != outcomes[market[row]] - 1:
                    continue
                x = logit[row] if over == 1 else -logit[row]
                if threshold[market[row]] != now:
                    now = threshold[market[row]]
                    best = min(best, here)
                    here = np.inf
                if x - best > worst:
                    worst = x - best
                    at = row
                here = min(here, x)
        if at >= 0:
            mark[at] = worst
            found += 1
    return found


@kernel
def _feeds(a, b, book, feed, odds, aside, skip, ids, prices):
    """One price a feed among rows a..b: its smallest book's lowest surviving one. Returns how many feeds."""
    count = 0
    last = -1
    for i in range(a, b):
        f = feed[book[i]]
        if aside[i] != 0 or f == skip:
            continue
        at = 0
        while at < count and ids[at] != f:
            at += 1
        if at == count:
            ids[at] = f
            prices[at] = odds[i]
            count += 1
            last = book[i]
        elif book[i] == last and ids[count - 1] == f:
            prices[at] = min(prices[at], odds[i])
    return count


@kernel
def _conflicts(rows, book, name, feed, odds, logit, aside, gap, others, mark, ids, prices):
    """Mark, of one book's two market names for one outcome too far apart, those not nearest the others' median."""
    for s in range(rows.size - 1):
        i = rows[s]
        while i < rows[s + 1]:
            j = i + 1
            while j < rows[s + 1] and book[j] == book[i]:
                j += 1
            low, high = np.inf, -np.inf
            names = 0
            seen = -1
            for k in range(i, j):
                if aside[k] == 0:
                    low = min(low, logit[k])
                    high = max(high, logit[k])
                    if name[k] != seen:
                        seen = name[k]
                        names += 1
            if names > 1 and high - low > gap:
                count = _feeds(rows[s], rows[s + 1], book, feed, odds, aside, feed[book[i]], ids, prices)
                nearest = np.inf
                middle = 0.0
                if count >= others:
                    for x in range(1, count):
                        for y in range(x, 0, -1):
                            if prices[y] < prices[y - 1]:
                                prices[y], prices[y - 1] = prices[y - 1], prices[y]
                    m = 0.5 * (1.0 / prices[(count - 1) // 2] + 1.0 / prices[count // 2])
                    middle = np.log(m / (1.0 - m))
                    for k in range(i, j):
                        if aside[k] == 0:
                            nearest = min(nearest, abs(logit[k] - middle))
                for k in range(i, j):
                    if aside[k] == 0 and (count < others or abs(logit[k] - middle) > nearest):
                        mark[k] = high - low
            i = j


@kernel
def _sums(order, runs, market, side, outcomes, book, prob, aside, low, high, cheap, dear, q):
    """Mark a row of each complete market of one book whose probabilities sum too low, or too high.

    Returns how many are marked.
    """
    found = 0
    for r in range(runs.size - 1):
        i = runs[r]
        while i < runs[r + 1]:
            m = market[order[i]]
            n = outcomes[m]
            for k in range(n):
                q[k] = 0.0
            j = i
            while j < runs[r + 1] and market[order[j]] == m:
                row = order[j]
                if aside[row] == 0:
                    q[side[row]] = max(q[side[row]], prob[row])
                j += 1
            total = 0.0
            complete = n > 0
            for k in range(n):
                total += q[k]
                if q[k] == 0.0:
                    complete = False
            if complete:
                if total < low[book[order[i]]]:
                    cheap[order[i]] = total
                    found += 1
                elif total > high:
                    dear[order[i]] = total
                    found += 1
            i = j
    return found


@kernel
def _speaks(row, start, market, side, book, feed, aside, mark):
    """1 if no sister of the row's book stands before it at the same outcome, else 0."""
    k = row - 1
    while k >= start and market[k] == market[row] and side[k] == side[row]:
        if feed[book[k]] == feed[book[row]] and aside[k] == 0 and np.isnan(mark[k]):
            return 0
        k -= 1
    return 1


@kernel
def _crossed(
    ladder_rows, market, side, outcomes, threshold, lined, book, feed, prob, aside, points, mark, pairs, against
):
    """Mark a row of each book that contradicts other feeds across a ladder's lines, worst first, till none does.

    Returns how many are marked.
    """
    marked = 0
    feeds = feed.size
    for at in range(ladder_rows.size - 1):
        a, b = ladder_rows[at], ladder_rows[at + 1]
        if b - a < 2 or lined[market[a]] == 0:
            continue
        while True:
            # A pass over the ladder tells whether any two prices contradict; few ladders have any.
            found = False
            for over in range(2):
                best, here = np.inf, np.inf
                now = np.int32(-2147483648)
                for step in range(b - a):
                    row = a + step if over == 1 else b - 1 - step
                    if aside[row] != 0 or not np.isnan(mark[row]):
                        continue
                    if side[row] != (0 if over == 1 else outcomes[market[row]] - 1):
                        continue
                    q = prob[row]
                    if threshold[market[row]] != now:
                        now = threshold[market[row]]
                        best = min(best, here)
                        here = np.inf
                    if q - best > points:
                        found = True
                    here = min(here, q)
            if not found:
                break
            for k in range(feeds):
                pairs[k] = 0
                for f in range(feeds):
                    against[k, f] = 0
            for i in range(a, b):
                if aside[i] != 0 or not np.isnan(mark[i]):
                    continue
                over = side[i] == 0
                if not over and side[i] != outcomes[market[i]] - 1:
                    continue
                for j in range(a, b):
                    if aside[j] != 0 or not np.isnan(mark[j]) or side[j] != side[i]:
                        continue
                    if feed[book[i]] == feed[book[j]]:
                        continue
                    if over and threshold[market[i]] <= threshold[market[j]]:
                        continue
                    if not over and threshold[market[i]] >= threshold[market[j]]:
                        continue
                    if prob[i] - prob[j] > points:
                        pairs[book[i]] += _speaks(j, a, market, side, book, feed, aside, mark)
                        pairs[book[j]] += _speaks(i, a, market, side, book, feed, aside, mark)
                        against[book[i], feed[book[j]]] = 1
                        against[book[j], feed[book[i]]] = 1
            most, most_pairs = 0, np.int64(0)
            for k in range(feeds):
                n = 0
                for f in range(feeds):
                    n += against[k, f]
                if n > most or (n == most and pairs[k] > most_pairs):
                    most, most_pairs = n, pairs[k]
            if most == 0:
                break
            for i in range(a, b):
                if aside[i] == 0 and np.isnan(mark[i]) and pairs[book[i]] == most_pairs:
                    n = 0
                    for f in range(feeds):
                        n += against[book[i], f]
                    if n == most:
                        mark[i] = most
                        marked += 1
    return marked


@kernel
def _others(rows, book, feed, odds, aside, far, median, count, suspects, ids, prices, without):
    """For every surviving row: the median probability of the other feeds of its segment, and how many they are.

    Suspects are the rows whose odds of q differ from the median's by the factor `far` or more. Returns their number.
    """
    found = 0
    for s in range(rows.size - 1):
        a, b = rows[s], rows[s + 1]
        if b - a < 2:
            continue
        n = _feeds(a, b, book, feed, odds, aside, np.int32(-1), ids, prices)
        if n < 2:
            continue
        for x in range(1, n):
            y = x
            p, f = prices[x], ids[x]
            while y > 0 and prices[y - 1] > p:
                prices[y] = prices[y - 1]
                ids[y] = ids[y - 1]
                y -= 1
            prices[y] = p
            ids[y] = f
        low, high = (n - 2) // 2, (n - 1) // 2
        for k in range(n):
            i = low + 1 if low >= k else low
            j = high + 1 if high >= k else high
            without[k] = 1.0 / prices[i] if i == j else 0.5 * (1.0 / prices[i] + 1.0 / prices[j])
        for row in range(a, b):
            if aside[row] == 0:
                k = 0
                while ids[k] != feed[book[row]]:
                    k += 1
                m = without[k]
                median[row] = m
                count[row] = n - 1
                ratio = (odds[row] - 1.0) * m / (1.0 - m)
                if ratio >= far or ratio * far <= 1.0:
                    suspects[found] = row
                    found += 1
    return found


@kernel
def _main_lines(markets, segments, rows, book, odds, aside, stamp, main, offered):
    """Mark the main line of each ladder: most books, then best balanced, then lowest."""
    for at in range(markets.size - 1):
        chosen = np.int64(-1)
        most = 0
        best = np.inf
        for m in range(markets[at], markets[at + 1]):
            n = 0
            first, last = 0.0, 0.0
            for s in range(segments[m], segments[m + 1]):
                top = 0.0
                for i in range(rows[s], rows[s + 1]):
                    if aside[i] == 0:
                        top = max(top, odds[i])
                        if stamp[book[i]] != m:
                            stamp[book[i]] = m
                            n += 1
                if s == segments[m]:
                    first = top
                last = top
            offered[m] = n
            apart = np.inf
            if first > 0.0 and last > 0.0:
                apart = abs(1.0 / first - 1.0 / last)
            if n > most or (n == most and n > 0 and apart < best):
                most, best, chosen = n, apart, m
        if chosen >= 0:
            main[chosen] = 1


def main_lines(groups: Groups, odds: Floats, aside: Bytes, books: int) -> tuple[Bytes, Ints]:
    """1 for the main line of each ladder among the prices not set aside, and the number of books of each market."""
    main = np.zeros(groups.threshold.size, np.uint8)
    offered = np.zeros(groups.threshold.size, np.int32)
    stamp = np.full(books, -1, np.int64)
    _main_lines(groups.markets, groups.segments, groups.rows, groups.book, odds, aside, stamp, main, offered)
    return main, offered


def _scratch(board: _Board) -> tuple[Ints, Floats, Floats]:
    """Room for one price a feed."""
    n = len(board.identity.books) + 1
    return np.empty(n, np.int32), np.empty(n), np.empty(n)


def _marked(board: _Board, guard: str) -> None:
    """Set aside the rows that are marked themselves, and wipe the marks."""
    mark = board.marks[0]
    rows = np.flatnonzero(mark == mark)  # noqa: PLR0124  nan is no mark
    board.aside[rows] = CODES[guard]
    board.measure[rows] = mark[rows]
    mark[rows] = np.nan


def _stale(board: _Board) -> None:
    if board.now == NO_TIME:
        return
    limits, seen = board.limits, board.groups.seen
    old = seen < board.now - round(limits.stale_prematch_s * SECOND)
    old &= seen != NO_TIME
    if board.groups.live.any():
        late = seen < board.now - round(limits.stale_live_s * SECOND)
        old = np.where(_live_rows(board.groups), late, old)
    rows = np.flatnonzero(old)
    measure = np.full(old.size, np.nan)
    measure[rows] = np.where(seen[rows] == NO_TIME, np.inf, (board.now - seen[rows]) / SECOND)
    board.set_aside(old, "stale", measure)


def _live_rows(groups: Groups) -> npt.NDArray[np.bool_]:
    return np.asarray((groups.live[groups.ladder] != 0)[groups.market])


def _started_not_live(board: _Board) -> None:
    start = times(board.table, "event_start_time")
    if board.now == NO_TIME or not ((start < board.now) & (start != NO_TIME)).any():
        return
    start = start[board.groups.row]
    late = (start != NO_TIME) & (start < board.now) & ~_live_rows(board.groups)
    board.set_aside(late, "started_not_live", (board.now - start) / SECOND)


def _mid_price_source(board: _Board) -> None:
    mid = np.array([catalog.book(b).mid_price for b in board.identity.books], bool)
    if mid.any():
        board.set_aside(mid[board.groups.book], "mid_price_source")


def _duplicate_outcome(board: _Board) -> None:
    g, mark = board.groups, board.marks[0]
    _duplicates(
        board.order,
        board.runs,
        board.segment,
        g.name,
        board.logit,
        board.aside,
        board.limits.duplicate_gap,
        mark,
    )
    _marked(board, "duplicate_outcome")


def _lined(board: _Board) -> Bytes:
    kinds = np.array([k.has_line for k in board.identity.kinds], np.uint8)
    g = board.groups
    return kinds[g.kind[g.ladder]] if kinds.size else np.zeros(0, np.uint8)


def _ladder(board: _Board) -> None:
    g, mark = board.groups, board.marks[0]
    found = _ladders(
        board.order, board.runs, g.market, board.groups.side, g.outcomes, g.threshold, _lined(board), board.logit,
        board.aside, board.limits.ladder_gap, mark,
    )  # fmt: skip
    if found:
        board.spread(mark, "ladder", whole=True)


def _internal_conflict(board: _Board) -> None:
    g, mark = board.groups, board.marks[0]
    limit = board.limits
    _conflicts(
        g.rows,
        g.book,
        g.name,
        board.feed,
        g.odds,
        board.logit,
        board.aside,
        limit.conflict_gap,
        limit.conflict_others,
        mark,
        *_scratch(board)[:2],
    )
    _marked(board, "internal_conflict")


def _book_sum(board: _Board) -> None:
    g, (cheap, dear) = board.groups, board.marks
    limit, epsilon = board.limits, board.limits.epsilon
    exchange = np.array([catalog.book(b).exchange for b in board.identity.books], bool)
    low = np.where(exchange, limit.book_sum_low_exchange, limit.book_sum_low) - epsilon
    found = _sums(
        board.order, board.runs, g.market, board.groups.side, g.outcomes, g.book, board.prob, board.aside, low,
        limit.book_sum_high + epsilon, cheap, dear, np.empty(int(g.outcomes.max(initial=2))),
    )  # fmt: skip
    if found:
        board.spread(cheap, "book_sum", whole=True)
        board.spread(dear, "book_sum", whole=False)


def _one_team_lines(board: _Board) -> None:
    g = board.groups
    team_kinds = np.array([k.subject == "team" for k in board.identity.kinds], bool)
    if not team_kinds.any():
        return
    rows = np.flatnonzero(team_kinds[g.kind][g.ladder][g.market] & (board.aside == 0))
    if not rows.size:
        return
    ladder = g.ladder[g.market[rows]]
    contest = (g.event[ladder].astype(np.int64) * 2 + g.live[ladder]) * team_kinds.size + g.kind[ladder]
    owner = contest * len(board.identity.books) + g.book[rows]
    owners, owner_of = np.unique(owner, return_inverse=True)
    line = owner_of * (1 << 31) + (g.threshold[g.market[rows]].astype(np.int64) + (1 << 30))
    lines, line_of = np.unique(line, return_inverse=True)
    teams = np.zeros(lines.size, np.int64)
    np.bitwise_or.at(teams, line_of, g.subject[ladder])
    of_owner = lines >> 31
    count = np.bincount(of_owner, minlength=owners.size)
    both = np.bincount(of_owner, weights=teams == 3, minlength=owners.size)
    bad = (count >= board.limits.one_team_lines) & (both == 0)
    mask = np.zeros(board.aside.size, bool)
    mask[rows] = bad[owner_of]
    measure = np.zeros(board.aside.size)
    measure[rows] = count[owner_of]
    board.set_aside(mask, "one_team_lines", measure)


def _ladder_cross(board: _Board) -> None:
    g, mark, books = board.groups, board.marks[0], len(board.identity.books)
    found = _crossed(
        g.rows[g.segments[g.markets]], g.market, board.groups.side, g.outcomes, g.threshold, _lined(board), g.book,
        board.feed, board.prob, board.aside, board.limits.cross_points, mark,
        np.empty(books, np.int64), np.empty((books, books), np.uint8),
    )  # fmt: skip
    if found:
        board.spread(mark, "ladder_cross", whole=True)


def _compare(board: _Board) -> tuple[Floats, Ints, Ints]:
    """Median probability of each row's other feeds, their number, and the rows that differ enough to be looked at."""
    if not board.compared:
        g, limit = board.groups, board.limits
        n = board.aside.size
        median, count, suspects = np.empty(n), np.zeros(n, np.int32), np.empty(n, np.int32)
        far = float(np.exp(min(limit.bias_gap, limit.outlier_main, limit.outlier_other) - limit.epsilon))
        found = _others(g.rows, g.book, board.feed, g.odds, board.aside, far, median, count, suspects, *_scratch(board))
        board.compared.append((median, count, suspects[:found]))
    return board.compared[0]


def _gap(board: _Board, rows: npt.NDArray[np.integer], median: Floats) -> Floats:
    """Logit of each row's price minus that of the others' median."""
    m = median[rows]
    return np.asarray(board.logit[rows] - np.log(m / (1.0 - m)))


def _bias(board: _Board) -> None:
    g, limit = board.groups, board.limits
    if not board.prop.any():
        return
    median, count, suspects = _compare(board)
    suspects = suspects[board.prop[g.ladder[g.market[suspects]]] != 0]
    low = suspects[_gap(board, suspects, median) < -limit.bias_gap]
    if not low.size:
        return
    # Each book's side of one prop of one event; the rows of those where any price is low.
    every = np.flatnonzero(board.prop[g.ladder][g.market] != 0)
    key = _prop_side(board, every)
    inside = np.isin(key, _prop_side(board, low))
    every, key = every[inside], key[inside]
    order = np.argsort(key, kind="stable")
    mark = np.full(board.aside.size, np.nan)
    for rows in np.split(every[order], np.flatnonzero(np.diff(key[order])) + 1):
        compared = rows[(count[rows] >= 1) & (board.aside[rows] == 0)]
        subjects = np.unique(g.subject[g.ladder[g.market[compared]]]).size
        middle = float(np.median(_gap(board, compared, median)))
        if subjects >= limit.bias_subjects and middle < -limit.bias_gap:
            mark[rows] = middle  # also where nobody else quotes it
    board.set_aside(~np.isnan(mark), "bias", mark)
    board.compared.clear()


def _prop_side(board: _Board, rows: npt.NDArray[np.integer]) -> Longs:
    """One number for each row's event, live flag, period and family, side and book."""
    g = board.groups
    ladder = g.ladder[g.market[rows]]
    contest = (g.event[ladder].astype(np.int64) * 2 + g.live[ladder]) * len(board.identity.kinds) + g.kind[ladder]
    return np.asarray((contest * 64 + g.side[rows]) * len(board.identity.books) + g.book[rows])


def _outlier(board: _Board) -> None:
    g, limit = board.groups, board.limits
    median, count, suspects = _compare(board)
    rows = suspects[count[suspects] >= limit.outlier_others]
    if not rows.size:
        return
    gap = _gap(board, rows, median)
    market = g.market[rows]
    ladder = g.ladder[market]
    full = np.array([k.period == "full_game" for k in board.identity.kinds], bool)[g.kind[ladder]]
    main = main_lines(g, g.odds, board.aside, len(board.identity.books))[0][market] != 0
    plain = main & full & (board.prop[ladder] == 0) & (g.live[ladder] == 0)
    m = median[rows]
    bound = np.where(plain, limit.outlier_main, limit.outlier_other) + limit.outlier_slope / (m * (1.0 - m))
    generous, low = board.marks
    generous[rows[gap < -bound]] = gap[gap < -bound]
    low[rows[gap > bound]] = 1.0
    board.spread(generous, "outlier", whole=False)
    ignored = np.zeros(board.aside.size)
    _spread(low, board.order, board.runs, g.market, 0, 1, board.stingy, ignored)


def _flap(board: _Board) -> None:
    if not board.table["flap"].any():
        return
    mark = np.where(board.table["flap"].to_numpy()[board.groups.row], 1.0, np.nan)
    board.spread(mark, "flap", whole=False)


# In the order they run; the guards before these look at one row and are part of identity.
_BOARD_GUARDS: dict[str, Callable[[_Board], None]] = {
    "stale": _stale,
    "started_not_live": _started_not_live,
    "mid_price_source": _mid_price_source,
    "duplicate_outcome": _duplicate_outcome,
    "ladder": _ladder,
    "internal_conflict": _internal_conflict,
    "book_sum": _book_sum,
    "one_team_lines": _one_team_lines,
    "ladder_cross": _ladder_cross,
    "bias": _bias,
    "outlier": _outlier,
    "flap": _flap,
}


def guard(table: OddsTable, identity: Identity, off: frozenset[int], now: int) -> Guarded:
    """Run every guard that is not off over the rows that have a market.

    Parameters
    ----------
    table, identity
        A checked table and what `markets.identify` made of it.
    off
        Codes of guards that do not run.
    now
        Microseconds, or `NO_TIME`: no price has an age.
    """
    g = identity.groups
    n = g.row.size
    books = len(identity.books)
    order, runs = np.empty(n, np.int32), np.empty(n + 1, np.int64)
    found = _runs(g.rows[g.segments[g.markets]], g.book, books, order, runs, np.zeros(books + 1, np.int64))
    prop = np.array([k.prop for k in identity.kinds], np.uint8)
    board = _Board(
        groups=g,
        identity=identity,
        table=table,
        now=now,
        prob=1.0 / g.odds,
        logit=-np.log(g.odds - 1.0),
        segment=np.repeat(np.arange(g.rows.size - 1, dtype=np.int32), np.diff(g.rows)),
        feed=identity.traits.feed,
        order=order,
        runs=runs[: found + 1],
        prop=prop[g.kind] if prop.size else np.zeros(0, np.uint8),
        aside=np.zeros(n, np.uint8),
        measure=np.full(n, np.nan),
        stingy=np.zeros(n, np.uint8),
        limits=catalog.thresholds(),
        marks=(np.full(n, np.nan), np.full(n, np.nan)),
        compared=[],
    )
    for name, run in _BOARD_GUARDS.items():
        if CODES[name] not in off and n:
            run(board)
    return Guarded(board.aside, board.measure, board.stingy, now)
