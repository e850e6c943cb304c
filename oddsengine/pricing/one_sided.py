"""One-sided prices: a fair price for markets in which books quote one side only, such as anytime scorers.

A book that quotes one of two outcomes shows no margin to remove. Its margin is learnt from the prices of the same
event and kind of market: from books that quote both sides, and from its own prices where others quote both. Then the
missing side is priced so that the two sum to the learnt book sum, which completes the market ::

    q     = 1 / odds of the price, u = ln(q / (1 - q)) its level
    B     = book sum, learnt from samples B_i at levels u_i on the same side, with weights
            w_i = 1 / (1 + ((u - u_i) / like)^2)^2
    all   : B0 = sum w B / sum w over the books that quote both sides; V0 = their variance + error^2
    provider  : B1 = (sum w B + k B0) / (sum w + k) over those of the price's odds provider
    own   : B2 likewise around B1, over that provider's one-sided prices where other providers quote both sides: with p
            their median probability, a price whose margin the power method removes to p has a book sum of
            q + (1 - p)^(ln q / ln p)
    x     = logit of the first outcome of [q, B2 - q] without its margin (power method); its error is the distance to
            that of B2 less its standard error

V1 and V2 are the variances of the samples around the new mean, in which the step before counts with the weight k.
Without enough samples in `all` there is no estimate. A sample of the price's own market does not count.

The completed markets vote in the estimator (`pricing.close`), which runs again on the markets with such votes, by the
same rules. Its results are used for prices that had no estimate before, flagged `one_sided`. Their standard error has
two more parts: the mean error of the other odds providers' margins, and the disagreement of these ::

    se^2 = se(close)^2 + (mean of the errors)^2 + (sum (x - mean)^2 + k vote_error^2) / ((n - 1 + k) n)

If the start is unknown, se(close) is that of `confidence`. In play nothing is estimated. The constants are in
`catalog/fair.toml`.

Columns of the kernels:

- `segments`, `rows`, `live`, `event`, `kind`, `ladder`, `ladders`, `book`: as in `Groups`; `ladders` is its `markets`
- `provider`: as in `Traits`
- `v_start`, `v_book`, `v_x`, `v_total`: votes, columns of `BookLogits`
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from typing import NamedTuple

import numpy as np

from oddsengine._jit import inlined, kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NONE, Bytes, Floats, Longs
from oddsengine.identity.groups import Groups
from oddsengine.identity.traits import Traits
from oddsengine.maths.devig import devig_groups
from oddsengine.pricing.close import CloseInput, Fair, estimate
from oddsengine.pricing.close_table import BITS
from oddsengine.pricing.provider_votes import insert, middle
from oddsengine.pricing.votes import EVERY_ROW, SKIP, BookLogits, is_independent

ONE_SIDED = BITS["one_sided"]
_BOTH, _COMPARED = 0, 1  # samples: of a book that quotes both sides; of a one-sided price beside others'


class Samples(NamedTuple):
    """Book sums of prices in markets of two outcomes, in order of market."""

    market: Longs
    side: Longs
    provider: Longs
    level: Floats  # logit of 1/odds
    total: Floats
    compared: Longs  # 1: a one-sided price


class OneSided(NamedTuple):
    """Prices whose book does not quote the other side, in order of market and book."""

    row: Longs
    market: Longs
    side: Longs
    total: Floats  # learnt book sum, nan if unknown
    error: Floats  # its standard error


def groups_of(g: Groups) -> Longs:
    """Number of the event, live flag and kind of each market; the ladders of one stand together."""
    new = np.ones(g.event.size, np.int64)
    new[1:] = (np.diff(g.event) != 0) | (np.diff(g.live) != 0) | (np.diff(g.kind) != 0)
    return np.cumsum(new)[g.ladder] if g.event.size else np.empty(0, np.int64)


@inlined
def _median_of_others(m, own_provider, v_start, v_book, v_x, provider, ordered):
    """Median logit of the votes on a market from providers other than one, nan if there is none; one vote per provider.

    `m` is the market, `own_provider` the provider; `ordered` is a scratch array.
    """
    n = 0
    for v in range(v_start[m], v_start[m + 1]):
        if is_independent(v, v_start[m], own_provider, v_book, provider):
            insert(ordered, n, v_x[v, 0])
            n += 1
    return middle(ordered, n) if n > 0 else np.nan


@kernel
def _collect(
    needed, segments, rows, live, ladder, book, net, reason, provider, v_start, v_book, v_x, v_total, low, high,
    ordered, p_row, p_market, p_side, s_market, s_side, s_provider, s_level, s_total, s_compared,
):  # fmt: skip
    """Find one-sided prices, and the book sums of prices to learn from. Returns the numbers of both.

    - `needed` (uint8 per market): 0 for markets to skip
    - `net`, `reason` (per row): price after commission, and the guards' verdict
    - `low`, `high`: limits of a compared sum; `ordered` (float64) is a scratch array
    - `p_row`, `p_market`, `p_side`: columns of `OneSided` to write
    - `s_market`, `s_side`, `s_provider`, `s_level`, `s_total`, `s_compared`: columns of `Samples` to write
    """
    prices, samples = 0, 0
    for m in range(segments.size - 1):
        s = segments[m]
        if needed[m] == SKIP or segments[m + 1] - s != 2 or live[ladder[m]] != 0:
            continue
        i, j = rows[s], rows[s + 1]
        end_i, end_j = rows[s + 1], rows[s + 2]
        while i < end_i or j < end_j:
            b = book[i] if j == end_j or (i < end_i and book[i] <= book[j]) else book[j]
            best_i, best_j, count_i, count_j = NONE, NONE, 0, 0
            while i < end_i and book[i] == b:
                count_i += 1
                if reason[i] == ACCEPTED and (best_i < 0 or net[i] < net[best_i]):
                    best_i = i
                i += 1
            while j < end_j and book[j] == b:
                count_j += 1
                if reason[j] == ACCEPTED and (best_j < 0 or net[j] < net[best_j]):
                    best_j = j
                j += 1
            if count_i > 0 and count_j > 0:
                v = v_start[m]
                while v < v_start[m + 1] and v_book[v] != b:
                    v += 1
                if best_i >= 0 and best_j >= 0 and v < v_start[m + 1]:
                    for side in range(2):
                        odds = net[best_i] if side == 0 else net[best_j]
                        s_market[samples], s_side[samples], s_provider[samples] = m, side, provider[b]
                        s_level[samples], s_total[samples], s_compared[samples] = -np.log(odds - 1.0), v_total[v], _BOTH
                        samples += 1
                continue
            side = 0 if count_i > 0 else 1
            r = best_i if side == 0 else best_j
            if r < 0:
                continue
            p_row[prices], p_market[prices], p_side[prices] = r, m, side
            prices += 1
            x = _median_of_others(m, provider[b], v_start, v_book, v_x, provider, ordered)
            if np.isnan(x):
                continue
            p = 1.0 / (1.0 + np.exp(-x if side == 0 else x))
            q = 1.0 / net[r]
            total = q + (1.0 - p) ** (np.log(q) / np.log(p))
            s_market[samples], s_side[samples], s_provider[samples] = m, side, provider[b]
            s_level[samples], s_compared[samples] = -np.log(net[r] - 1.0), _COMPARED
            s_total[samples] = min(max(total, low), high)
            samples += 1
    return prices, samples


@kernel
def _learn(
    p_row, p_market, begin, end, book, net, provider, like, k, error, least, s_market, s_provider, s_level, s_total,
    s_compared, total, total_error, weight, mean, squares,
):  # fmt: skip
    """Learn the book sum of each one-sided price, and its standard error; nan without enough samples.

    - `p_row`, `p_market`, `total`, `total_error`: columns of `OneSided`; the last two are written
    - `begin`, `end` (int64 per price): the samples of its group and side
    - `net` (float64 per row): price after commission
    - `like`, `k`, `error`, `least`: constants: distance of like levels, weight of the step before, error of the margins
      of all books, and least weight of their samples
    - `s_market`, `s_provider`, `s_level`, `s_total`, `s_compared`: columns of `Samples`
    - `weight`, `mean`, `squares` (float64, 3): scratch arrays: the weight, the mean and the squared distances from it
      of the samples of each step: all books, the odds provider, its one-sided prices
    """
    for i in range(p_row.size):
        m, f, level = p_market[i], provider[book[p_row[i]]], -np.log(net[p_row[i]] - 1.0)
        weight[:] = 0.0
        mean[:] = 0.0
        squares[:] = 0.0
        for s in range(begin[i], end[i]):
            is_own, is_compared = s_provider[s] == f, s_compared[s] == _COMPARED
            if s_market[s] != m and (is_own or not is_compared):
                z = (level - s_level[s]) / like
                w = 1.0 / ((1.0 + z * z) * (1.0 + z * z))
                first, last = (2, 2) if is_compared else (0, 1 if is_own else 0)
                for step in range(first, last + 1):  # in one pass (West 1979)
                    weight[step] += w
                    d = s_total[s] - mean[step]
                    mean[step] += d * w / weight[step]
                    squares[step] += w * d * (s_total[s] - mean[step])
        if weight[0] < least:
            total[i], total_error[i] = np.nan, np.nan
            continue
        centre, variance = mean[0], squares[0] / weight[0] + error * error
        for step in range(1, 3):
            d, both = mean[step] - centre, weight[step] + k
            variance = (k * variance + squares[step] + d * d * k * weight[step] / both) / both
            centre += d * weight[step] / both
        total[i], total_error[i] = centre, np.sqrt(variance)


@kernel
def _merge(
    p_book, p_market, p_x, p_error, p_total, p_seen, p_changed, v_start, v_book, v_x, v_total, v_seen, v_latest,
    v_changed, start, voter, x, total, oldest_seen, latest_seen, latest_change, error,
):  # fmt: skip
    """Insert completed markets into the votes, which stay in order of market and book.

    - `p_book`, `p_market`, `p_x`, `p_error`, `p_total`, `p_seen`, `p_changed`: the completed markets
    - `v_seen`, `v_latest`, `v_changed`: columns of `BookLogits`, as those in the module docstring
    - `start`, `voter`, `x`, `total`, `oldest_seen`, `latest_seen`, `latest_change`: the columns of all votes to write
    - `error` (float64 per vote): the error of each, 0 for books that quote both sides
    """
    n, i = 0, 0
    for m in range(v_start.size - 1):
        start[m] = n
        v = v_start[m]
        while v < v_start[m + 1] or (i < p_market.size and p_market[i] == m):
            is_own = v < v_start[m + 1]
            if is_own and i < p_market.size and p_market[i] == m:
                is_own = v_book[v] < p_book[i]
            if is_own:
                voter[n], total[n], oldest_seen[n] = v_book[v], v_total[v], v_seen[v]
                latest_seen[n], latest_change[n], error[n] = v_latest[v], v_changed[v], 0.0
                for c in range(x.shape[1]):
                    x[n, c] = v_x[v, c]
                v += 1
            else:
                voter[n], total[n], oldest_seen[n] = p_book[i], p_total[i], p_seen[i]
                latest_seen[n], latest_change[n], error[n] = p_seen[i], p_changed[i], p_error[i]
                for c in range(x.shape[1]):
                    x[n, c] = 0.0
                x[n, 0] = p_x[i]
                i += 1
            n += 1
    start[v_start.size - 1] = n


@kernel
def _variances(row, market, book, provider, v_start, v_book, v_x, error, k, vote_error, out):
    """Variance of the other odds providers' mean for some prices: that of their margins, and their disagreement.

    - `row` (int64 per price): the prices
    - `market`, `book` (per row): as in `Groups`
    - `error` (float64 per vote): as in `_merge`
    - `k`, `vote_error`: constants: weight of the usual disagreement, and this disagreement
    - `out` (float64 per price): to write
    """
    for i in range(row.size):
        m, own = market[row[i]], provider[book[row[i]]]
        n, mean, squares, margins = 0, 0.0, 0.0, 0.0
        for v in range(v_start[m], v_start[m + 1]):
            if is_independent(v, v_start[m], own, v_book, provider):
                n += 1
                d = v_x[v, 0] - mean
                mean += d / n
                squares += d * (v_x[v, 0] - mean)
                margins += error[v]
        margins /= max(n, 1)
        out[i] = margins * margins + (squares + k * vote_error * vote_error) / ((max(n, 1) - 1 + k) * max(n, 1))


def quoted(
    groups: Groups, traits: Traits, net: Floats, reason: Bytes, logits: BookLogits, board: CloseInput
) -> OneSided:
    """One-sided prices of a board, with the book sums that are learnt for them."""
    g, c = groups, board.of.table.constants
    needed = np.full(g.threshold.size, EVERY_ROW, np.uint8) if board.needed is None else board.needed
    n = g.row.size
    row, market, side = np.empty((3, n), np.int64)
    found = Samples._make((*np.empty((3, n), np.int64), *np.empty((2, n)), np.empty(n, np.int64)))
    used, sampled = _collect(
        needed, g.segments, g.rows, g.live, g.ladder, g.book, net, reason, traits.provider, logits.start, logits.book,
        logits.x, logits.total, c.vote_sum_low, c.margin_sum_high, np.empty(traits.provider.size + 1), row, market,
        side, *found,
    )  # fmt: skip
    of = 2 * groups_of(g)
    key = of[found.market[:sampled]] + found.side[:sampled]
    order = np.argsort(key, kind="stable")
    found, key = Samples._make(column[order] for column in found), key[order]
    own = of[market[:used]] + side[:used]
    some = OneSided(row[:used], market[:used], side[:used], np.empty(used), np.empty(used))
    _learn(
        some.row, some.market, np.searchsorted(key, own), np.searchsorted(key, own, "right"), g.book, net,
        traits.provider, c.margin_like, c.margin_weight, c.margin_sum_error, c.margin_least, found.market,
        found.provider, found.level, found.total, found.compared, some.total, some.error, *np.empty((3, 3)),
    )  # fmt: skip
    return some


def completed(
    groups: Groups, net: Floats, logits: BookLogits, prices: OneSided, board: CloseInput
) -> tuple[BookLogits, Floats]:
    """Votes of a board and of its one-sided prices, and the error of each, in logits."""
    g, c = groups, board.of.table.constants
    sums = np.stack([prices.total, prices.total - prices.error])
    hidden = sums - 1.0 / net[prices.row]
    fits = (sums[0] >= c.vote_sum_low) & (sums[0] <= c.vote_sum_high) & (hidden[1] > 0.0) & (hidden[0] < 1.0)
    at, hidden = np.flatnonzero(fits), hidden[:, fits]
    row, first = prices.row[at], prices.side[at] == 0
    q = np.broadcast_to(1.0 / net[row], hidden.shape)
    both = np.where(first[None, :, None], np.stack([q, hidden], axis=2), np.stack([hidden, q], axis=2))
    flat = 1.0 / both.reshape(-1)
    prob = devig_groups(flat, np.arange(0, flat.size + 1, 2), "power").reshape(2, at.size, 2)
    x = np.log(prob[..., 0] / prob[..., 1])
    known = np.flatnonzero(np.isfinite(x).all(axis=0))
    at, row, x = at[known], row[known], x[:, known]
    n, widest = logits.book.size + at.size, logits.x.shape[1]
    out = BookLogits(
        np.zeros(logits.start.size, np.int64), np.empty(n, np.int32), np.empty((n, widest)), np.empty(n),
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
    )  # fmt: skip
    error = np.empty(n)
    _merge(
        g.book[row], prices.market[at], np.ascontiguousarray(x[0]), np.abs(x[1] - x[0]), prices.total[at], g.seen[row],
        board.times.changed[row], *logits, *out, error,
    )  # fmt: skip
    return out, error


def with_one_sided(
    groups: Groups, traits: Traits, net: Floats, reason: Bytes, barred: Bytes, logits: BookLogits, board: CloseInput,
    fair: Fair,
) -> Fair:  # fmt: skip
    """Add estimates for prices that have none because too few books quote the whole market.

    Parameters
    ----------
    groups, traits, net, reason, barred
        As in `close.estimate`.
    logits, board, fair
        The votes of the books that quote the whole market, the other input, and the result for these.
    """
    g = groups
    prices = quoted(g, traits, net, reason, logits, board)
    votes, error = completed(g, net, logits, prices, board)
    needed = np.where(np.diff(votes.start) > np.diff(logits.start), np.uint8(EVERY_ROW), np.uint8(SKIP))
    more = estimate(
        board.of, g, traits, net, reason, barred, board.times, board.momentum, votes, needed, flag=ONE_SIDED
    )
    is_new = np.isnan(fair.row) & ~np.isnan(more.row)
    at = np.flatnonzero(is_new)
    own, variance, c = np.full(g.row.size, np.nan), np.empty(at.size), board.of.table.constants
    _variances(
        at, g.market, g.book, traits.provider, votes.start, votes.book, votes.x, error, c.margin_weight,
        c.margin_vote_error, variance,
    )  # fmt: skip
    close = fair.se[g.ladder[g.market[at]]]
    own[at] = np.sqrt(np.where(np.isnan(close), c.confidence_unknown_se, close) ** 2 + variance)
    return fair._replace(
        row=np.where(is_new, more.row, fair.row), flags=np.where(is_new, more.flags, fair.flags),
        others=np.where(is_new, more.others, fair.others), width=np.where(is_new, more.width, fair.width),
        votes=votes, own_se=own,
    )  # fmt: skip
