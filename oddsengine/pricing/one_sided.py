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

Arguments of the kernels:

- `book` (per row): as in `Groups`
- `net`, `reason` (per row): price after commission, and the guards' verdict
- `provider`: as in `Traits`
- `votes`: the votes of the books that quote the whole market
"""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import inlined, kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import NONE, Bytes, Float, Floats, Int, Ints, Longs
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
    compared: Longs  # `_COMPARED`: a one-sided price; else `_BOTH`


class OneSided(NamedTuple):
    """Prices whose book does not quote the other side, in order of market and book."""

    row: Longs
    market: Longs
    side: Longs
    total: Floats  # learnt book sum, nan if unknown
    error: Floats  # its standard error


class Learning(NamedTuple):
    """Constants of what is learnt about margins, see `Constants`."""

    like: float  # distance of like levels
    weight: float  # of the step before
    error: float  # of the margins of all books
    least: float  # weight of their samples


class Moments(NamedTuple):
    """Scratch arrays (3) of the samples of each step: all books, the odds provider, its one-sided prices."""

    weight: Floats
    mean: Floats
    squares: Floats  # squared distances from the mean


class CompletedMarkets(NamedTuple):
    """One-sided prices with the missing side, in order of market and book: a vote each."""

    book: Ints
    market: Longs
    x: Floats  # logit of the first outcome
    error: Floats  # its error
    total: Floats  # sum of 1/odds
    seen: Longs
    changed: Longs


def groups_of(g: Groups) -> Longs:
    """Number of the event, live flag and kind of each market; the ladders of one stand together."""
    new = np.ones(g.event.size, np.int64)
    new[1:] = (np.diff(g.event) != 0) | (np.diff(g.live) != 0) | (np.diff(g.kind) != 0)
    return np.cumsum(new)[g.ladder] if g.event.size else np.empty(0, np.int64)


@inlined
def _median_of_others(m: Int, own_provider: Int, votes: BookLogits, provider: Ints, ordered: Floats) -> Float:
    """Median logit of the votes on a market from providers other than one, nan if there is none; one vote per provider.

    `m` is the market, `own_provider` the provider; `ordered` is a scratch array.
    """
    n = 0
    for v in range(votes.start[m], votes.start[m + 1]):
        if is_independent(v, votes.start[m], own_provider, votes.book, provider):
            insert(ordered, n, votes.x[v, 0])
            n += 1
    return middle(ordered, n) if n > 0 else np.nan


@kernel
def _collect(
    needed: Bytes, groups: Groups, net: Floats, reason: Bytes, provider: Ints, votes: BookLogits, low: Float,
    high: Float, ordered: Floats, prices: OneSided, samples: Samples,
) -> tuple[int, int]:  # fmt: skip
    """Find one-sided prices, and the book sums of prices to learn from. Returns the numbers of both.

    - `needed` (uint8 per market): 0 for markets to skip
    - `low`, `high`: limits of a compared sum; `ordered` (float64) is a scratch array
    - `prices`: to write, but for its sums and errors
    - `samples`: to write
    """
    segments, rows, book = groups.segments, groups.rows, groups.book
    n_prices, n_samples = 0, 0
    for m in range(segments.size - 1):
        s = segments[m]
        if needed[m] == SKIP or segments[m + 1] - s != 2 or groups.live[groups.ladder[m]] != 0:
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
                v = votes.start[m]
                while v < votes.start[m + 1] and votes.book[v] != b:
                    v += 1
                if best_i >= 0 and best_j >= 0 and v < votes.start[m + 1]:
                    for side in range(2):
                        n, odds = n_samples, net[best_i] if side == 0 else net[best_j]
                        samples.market[n], samples.side[n], samples.provider[n] = m, side, provider[b]
                        samples.level[n], samples.total[n] = -np.log(odds - 1.0), votes.total[v]
                        samples.compared[n] = _BOTH
                        n_samples += 1
                continue
            side = 0 if count_i > 0 else 1
            r = best_i if side == 0 else best_j
            if r < 0:
                continue
            prices.row[n_prices], prices.market[n_prices], prices.side[n_prices] = r, m, side
            n_prices += 1
            x = _median_of_others(m, provider[b], votes, provider, ordered)
            if np.isnan(x):
                continue
            p = 1.0 / (1.0 + np.exp(-x if side == 0 else x))
            q = 1.0 / net[r]
            total = q + (1.0 - p) ** (np.log(q) / np.log(p))
            n = n_samples
            samples.market[n], samples.side[n], samples.provider[n] = m, side, provider[b]
            samples.level[n], samples.compared[n] = -np.log(net[r] - 1.0), _COMPARED
            samples.total[n] = min(max(total, low), high)
            n_samples += 1
    return n_prices, n_samples


@kernel
def _learn(
    prices: OneSided, begin: Longs, end: Longs, book: Ints, net: Floats, provider: Ints, constants: Learning,
    samples: Samples, moments: Moments,
) -> None:  # fmt: skip
    """Learn the book sum of each one-sided price, and its standard error; nan without enough samples.

    - `prices`: its sums and errors are written
    - `begin`, `end` (int64 per price): the samples of its group and side
    """
    weight, mean, squares, k = moments.weight, moments.mean, moments.squares, constants.weight
    for i in range(prices.row.size):
        r, m = prices.row[i], prices.market[i]
        f, level = provider[book[r]], -np.log(net[r] - 1.0)
        weight[:] = 0.0
        mean[:] = 0.0
        squares[:] = 0.0
        for s in range(begin[i], end[i]):
            is_own, is_compared = samples.provider[s] == f, samples.compared[s] == _COMPARED
            if samples.market[s] != m and (is_own or not is_compared):
                z = (level - samples.level[s]) / constants.like
                w = 1.0 / ((1.0 + z * z) * (1.0 + z * z))
                first, last = (2, 2) if is_compared else (0, 1 if is_own else 0)
                for step in range(first, last + 1):  # in one pass (West 1979)
                    weight[step] += w
                    d = samples.total[s] - mean[step]
                    mean[step] += d * w / weight[step]
                    squares[step] += w * d * (samples.total[s] - mean[step])
        if weight[0] < constants.least:
            prices.total[i], prices.error[i] = np.nan, np.nan
            continue
        centre, variance = mean[0], squares[0] / weight[0] + constants.error * constants.error
        for step in range(1, 3):
            d, both = mean[step] - centre, weight[step] + k
            variance = (k * variance + squares[step] + d * d * k * weight[step] / both) / both
            centre += d * weight[step] / both
        prices.total[i], prices.error[i] = centre, np.sqrt(variance)


@kernel
def _merge(completed: CompletedMarkets, votes: BookLogits, merged: BookLogits, error: Floats) -> None:
    """Insert completed markets into the votes, which stay in order of market and book.

    - `merged`: all votes, to write
    - `error` (float64 per vote): the error of each, 0 for books that quote both sides
    """
    n, i = 0, 0
    for m in range(votes.start.size - 1):
        merged.start[m] = n
        v, end = votes.start[m], votes.start[m + 1]
        while v < end or (i < completed.market.size and completed.market[i] == m):
            is_own = v < end
            if is_own and i < completed.market.size and completed.market[i] == m:
                is_own = votes.book[v] < completed.book[i]
            if is_own:
                merged.book[n], merged.total[n], merged.seen[n] = votes.book[v], votes.total[v], votes.seen[v]
                merged.latest[n], merged.changed[n], error[n] = votes.latest[v], votes.changed[v], 0.0
                for c in range(merged.x.shape[1]):
                    merged.x[n, c] = votes.x[v, c]
                v += 1
            else:
                merged.book[n], merged.total[n], error[n] = completed.book[i], completed.total[i], completed.error[i]
                merged.seen[n], merged.latest[n] = completed.seen[i], completed.seen[i]
                merged.changed[n] = completed.changed[i]
                for c in range(merged.x.shape[1]):
                    merged.x[n, c] = 0.0
                merged.x[n, 0] = completed.x[i]
                i += 1
            n += 1
    merged.start[votes.start.size - 1] = n


@kernel
def _variances(
    row: Longs, market: Ints, book: Ints, provider: Ints, votes: BookLogits, error: Floats, k: Float, vote_error: Float,
    out: Floats,
) -> None:  # fmt: skip
    """Variance of the other odds providers' mean for some prices: that of their margins, and their disagreement.

    - `row` (int64 per price): the prices
    - `market` (per row): as in `Groups`
    - `error` (float64 per vote): as in `_merge`
    - `k`, `vote_error`: constants: weight of the usual disagreement, and this disagreement
    - `out` (float64 per price): to write
    """
    for i in range(row.size):
        m, own = market[row[i]], provider[book[row[i]]]
        n, mean, squares, margins = 0, 0.0, 0.0, 0.0
        for v in range(votes.start[m], votes.start[m + 1]):
            if is_independent(v, votes.start[m], own, votes.book, provider):
                n += 1
                d = votes.x[v, 0] - mean
                mean += d / n
                squares += d * (votes.x[v, 0] - mean)
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
    prices = OneSided._make((*np.empty((3, n), np.int64), *np.empty((2, n))))
    found = Samples._make((*np.empty((3, n), np.int64), *np.empty((2, n)), np.empty(n, np.int64)))
    used, sampled = _collect(
        needed, g, net, reason, traits.provider, logits, c.vote_sum_low, c.margin_sum_high,
        np.empty(traits.provider.size + 1), prices, found,
    )  # fmt: skip
    prices = OneSided._make(column[:used] for column in prices)
    of = 2 * groups_of(g)
    key = of[found.market[:sampled]] + found.side[:sampled]
    # Sums must not depend on the order in which players were first seen.
    order = np.lexsort((found.total[:sampled], found.level[:sampled], key))
    found, key = Samples._make(column[order] for column in found), key[order]
    own = of[prices.market] + prices.side
    _learn(
        prices, np.searchsorted(key, own), np.searchsorted(key, own, "right"), g.book, net, traits.provider,
        Learning(c.margin_like, c.margin_weight, c.margin_sum_error, c.margin_least), found,
        Moments._make(np.empty((3, 3))),
    )  # fmt: skip
    return prices


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
    made = CompletedMarkets(
        g.book[row], prices.market[at], np.ascontiguousarray(x[0]), np.abs(x[1] - x[0]), prices.total[at], g.seen[row],
        board.times.changed[row],
    )  # fmt: skip
    _merge(made, logits, out, error)
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
        at, g.market, g.book, traits.provider, votes, error, c.margin_weight, c.margin_vote_error, variance
    )  # fmt: skip
    close = fair.se[g.ladder[g.market[at]]]
    own[at] = np.sqrt(np.where(np.isnan(close), c.confidence_unknown_se, close) ** 2 + variance)
    return fair._replace(
        row=np.where(is_new, more.row, fair.row), flags=np.where(is_new, more.flags, fair.flags),
        others=np.where(is_new, more.others, fair.others), width=np.where(is_new, more.width, fair.width),
        votes=votes, own_se=own,
    )  # fmt: skip
