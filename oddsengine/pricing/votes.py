"""Votes: the logits of each book's own complete prices of a market, as far as they may count for others."""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import kernel
from oddsengine.catalog.fair_constants import FairTable
from oddsengine.catalog.reasons import ACCEPTED, CODES
from oddsengine.columns import NONE, Bytes, Float, Floats, Int, Ints, Longs
from oddsengine.identity.groups import Groups
from oddsengine.identity.traits import Traits
from oddsengine.maths.devig import devig_groups
from oddsengine.pricing.close_table import Estimator

CONSENSUS = -2
"""The reference of a market that is a consensus, instead of a book."""
SKIP, MARKET, EVERY_ROW = 0, 1, 2
"""What is needed of a market: nothing, its own estimate, and that of every row."""
_ROUNDING = 1e-9  # equal prices give no edge
_OUTLIER, _STALE = CODES["outlier"], CODES["stale"]


class BookLogits(NamedTuple):
    """Each book's own complete prices of a market, as logits."""

    start: Longs  # market -> votes
    book: Ints
    x: Floats  # (votes, widest); a market of two outcomes uses the first column
    total: Floats  # sum of 1/odds
    seen: Longs  # last seen, of its older price
    latest: Longs  # last seen, of its newer price
    changed: Longs  # last change of any of its prices, NO_TIME if unknown


@kernel
def complete(
    needed: Bytes, segments: Longs, rows: Longs, book: Ints, net: Floats, reason: Bytes, place: Longs, pick: Ints,
    entry_rows: Ints, entry_odds: Floats, entry_ends: Longs,
) -> int:  # fmt: skip
    """The lowest price of every outcome, one entry per needed market and book that quotes all of its outcomes.

    - `needed` (per market): `SKIP`, or anything else for a market whose entries are needed
    - `segments`, `rows`, `book`: as in `Groups`
    - `net`, `reason` (per row): price after commission, and the guards' verdict
    - `place`, `pick`: scratch arrays by outcome: the next row, and the lowest price's row
    - `entry_rows`, `entry_odds`: rows and prices of the entries, to write
    - `entry_ends`: end of each entry in these, after a 0, to write
    Returns the number of entries.
    """
    at = np.int64(0)
    entries = 0
    for m in range(segments.size - 1):
        s0 = segments[m]
        n = segments[m + 1] - s0
        if n < 2 or needed[m] == SKIP:
            continue
        for k in range(n):
            place[k] = rows[s0 + k]
        i = rows[s0]
        while i < rows[s0 + 1]:
            b = book[i]
            is_complete = True
            for k in range(n):
                pick[k] = NONE
                j = place[k]
                end = rows[s0 + k + 1]
                while j < end and book[j] < b:
                    j += 1
                while j < end and book[j] == b:
                    if reason[j] == ACCEPTED and (pick[k] < 0 or net[j] < net[pick[k]]):
                        pick[k] = j
                    j += 1
                place[k] = j
                if pick[k] < 0:
                    is_complete = False
            if is_complete:
                for k in range(n):
                    entry_rows[at] = pick[k]
                    entry_odds[at] = net[pick[k]]
                    at += 1
                entries += 1
                entry_ends[entries] = at
            i = place[0]
    return entries


@kernel
def _votes(
    g: Groups, changed: Longs, entry_rows: Ints, odds: Floats, prob: Floats, ends: Longs, low: Float, high: Float,
    out: BookLogits,
) -> int:  # fmt: skip
    """Logits of the entries of `complete` whose sum of probabilities qualifies for a vote. Returns their number.

    - `changed` (per row): when a price changed
    - `entry_rows`, `odds`, `prob`, `ends`: rows and prices of the entries, their fair probabilities, and the offsets of
      the entries
    - `low`, `high`: limits on the sum of 1/odds
    """
    n, m = 0, 0
    for e in range(ends.size - 1):
        a, size = ends[e], ends[e + 1] - ends[e]
        row = entry_rows[a]
        entry_market = g.market[row]
        while m <= entry_market:
            out.start[m] = n
            m += 1
        total = 0.0
        first_seen, last_seen, last_change = g.seen[row], g.seen[row], changed[row]
        for k in range(a, a + size):
            total += 1.0 / odds[k]
            first_seen = min(first_seen, g.seen[entry_rows[k]])
            last_seen = max(last_seen, g.seen[entry_rows[k]])
            last_change = max(last_change, changed[entry_rows[k]])
        if not (low <= total <= high) or np.isnan(prob[a]):
            continue
        for k in range(1 if size == 2 else size):
            out.x[n, k] = np.log(prob[a + k] / (1.0 - prob[a + k]))
        if size == 2:
            out.x[n, 0] = np.log(prob[a] / prob[a + 1])
        out.book[n], out.total[n] = g.book[row], total
        out.seen[n], out.latest[n], out.changed[n] = first_seen, last_seen, last_change
        n += 1
    while m < out.start.size:
        out.start[m] = n
        m += 1
    return n


def of_books(
    groups: Groups, net: Floats, changed: Longs, reason: Bytes, widest: int, table: FairTable,
    needed: Bytes | None = None,
) -> BookLogits:  # fmt: skip
    """Collect the complete markets of each book as votes, including prices rejected only by `stale` or `outlier`.

    `needed` selects ladders (None: all); the others get no votes.
    """
    needed = np.ones(groups.event.size, np.uint8) if needed is None else needed
    g, n = groups, groups.row.size
    barred = ((reason != 0) & (reason != _OUTLIER) & (reason != _STALE)).view(np.uint8)
    entry_rows, entry_odds = np.empty(n, np.int32), np.empty(n)
    ends = np.zeros(n // 2 + 2, np.int64)
    count = complete(
        needed[g.ladder], g.segments, g.rows, g.book, net, barred, np.empty(widest, np.int64),
        np.empty(widest, np.int32), entry_rows, entry_odds, ends,
    )  # fmt: skip
    ends = ends[: count + 1]
    used = ends[-1]
    prob = devig_groups(entry_odds[:used], ends, "power")
    out = BookLogits(
        np.zeros(g.threshold.size + 1, np.int64), np.empty(count, np.int32), np.zeros((count, widest)),
        np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64),
    )  # fmt: skip
    c = table.constants
    fit = _votes(
        g, changed, entry_rows[:used], entry_odds[:used], prob, ends, c.vote_sum_low - 1e-9, c.vote_sum_high + 1e-9, out
    )  # fmt: skip
    return BookLogits._make((out.start, *(column[:fit] for column in out[1:])))


@kernel
def _sharpest(market: Longs, book: Ints, start: Longs, voter: Ints, provider: Ints, sharp: Floats, out: Ints) -> None:
    """The sharp with the largest weight among the votes on markets, without the judged book's provider.

    - `market`, `book` (per price): the judged prices' markets and books
    - `start`, `voter`: `start` and `book` of `BookLogits`
    - `provider`, `sharp` (per book): as in `Traits` and `Voters`
    - `out` (int32 per price): the sharps' books, or `CONSENSUS`
    """
    for i in range(market.size):
        out[i] = CONSENSUS
        largest_weight = 0.0
        for v in range(start[market[i]], start[market[i] + 1]):
            b = voter[v]
            if sharp[b] > largest_weight and provider[b] != provider[book[i]]:
                out[i], largest_weight = b, sharp[b]


def sharpest(of: Estimator, logits: BookLogits, traits: Traits, market: Longs, book: Ints) -> Ints:
    """The sharp with the most influence on a fair probability: a book's code, or -2 for a consensus without one."""
    out = np.empty(market.size, np.int32)
    _sharpest(market, book, logits.start, logits.book, traits.provider, of.voters.sharp, out)
    return out


@kernel
def is_independent(v: Int, begin: Int, own: Int, voter: Ints, provider: Ints) -> bool:
    """Whether vote `v` is not of the provider `own`, and the first of its provider on a market.

    The market's votes start at `begin`.

    `voter` has the book of each vote, `provider` the provider of each book.
    """
    f = provider[voter[v]]
    is_new = f != own
    for u in range(begin, v):
        is_new = is_new and provider[voter[u]] != f
    return is_new


@kernel
def _agreeing(
    market: Ints, book: Ints, side: Ints, net: Floats, outcomes: Longs, start: Longs, voter: Ints, x: Floats,
    provider: Ints, others: Longs, agree: Longs,
) -> None:  # fmt: skip
    """Count the providers other than the judged book's that vote on markets, and those at which the price has an edge.

    - `market`, `book`, `side`, `net` (per price): the judged prices
    - `outcomes`: as in `Groups`; `provider`: as in `Traits`
    - `start`, `voter`, `x`: `start`, `book` and `x` of `BookLogits`
    - `others`, `agree` (int64 per price): the counts to write
    """
    for i in range(market.size):
        m, others[i], agree[i] = market[i], 0, 0
        for v in range(start[m], start[m + 1]):
            if is_independent(v, start[m], provider[book[i]], voter, provider):
                logit = x[v, side[i]] if outcomes[m] > 2 else x[v, 0] if side[i] == 0 else -x[v, 0]
                others[i] += 1
                agree[i] += net[i] > (1.0 + np.exp(-logit)) * (1.0 + _ROUNDING)


def agreeing(groups: Groups, logits: BookLogits, traits: Traits, row: Ints, net: Floats) -> tuple[Longs, Longs]:
    """Count the independent books on the line of some prices, and those whose own prices imply a positive EV.

    Books of one provider count once, and a price's own provider does not count.
    """
    g = groups
    others, agree = np.empty(row.size, np.int64), np.empty(row.size, np.int64)
    _agreeing(
        g.market[row], g.book[row], g.side[row], net[row], g.outcomes, logits.start, logits.book, logits.x,
        traits.provider, others, agree,
    )  # fmt: skip
    return others, agree
