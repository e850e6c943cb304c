"""The fair probabilities of whole markets, for users whose books may be the only ones that have a price."""

from typing import NamedTuple

import numpy as np

from oddsengine._jit import kernel
from oddsengine.catalog.reasons import ACCEPTED
from oddsengine.columns import Floats, Longs
from oddsengine.identity.groups import Groups
from oddsengine.maths.devig import devig_groups
from oddsengine.pricing.references import (
    FairPrices,
    PricedColumns,
    ReferenceBooks,
    Users,
    consensus_weight,
    devig_method,
)
from oddsengine.pricing.votes import CONSENSUS


class BareMarkets(NamedTuple):
    """The best offers of markets without a reference whose outcomes are all offered, market after market; to write."""

    place: Longs  # places of the outcomes among the probabilities
    odds: Floats
    ends: Longs  # offsets of the markets


@kernel
def _fairest(
    who: Longs, markets: Longs, g: Groups, columns: PricedColumns, users: Users, references: ReferenceBooks,
    out: Floats, bare: BareMarkets,
) -> int:  # fmt: skip
    """Fair probability of each outcome of some markets from the reference, with no book left out.

    If there is none but every outcome is offered, the best offers, also of equivalent outcomes, are written to `bare`.
    Returns the number of such markets.

    - `who`, `markets`: the users and the markets; a market may be `NONE`
    - `out` (float64, markets by outcomes): probabilities to write
    """
    n_bare = 0
    at = np.int64(0)
    for c in range(markets.size):
        for k in range(out.shape[1]):
            out[c, k] = np.nan
        m = markets[c]
        if m < 0:
            continue
        wanted_books = users.wanted[who[c]]
        n = g.segments[m + 1] - g.segments[m]
        is_incomplete, is_offered = False, True
        for k in range(n):
            s = g.segments[m] + k
            sum_p, sum_w, top = 0.0, 0.0, 0.0
            t = s
            while True:
                for i in range(g.rows[t], g.rows[t + 1]):
                    if columns.reason[i] == ACCEPTED and wanted_books[g.book[i]] != 0:
                        top = max(top, columns.net[i])
                t = g.equivalent[t] if g.equivalent.size > 0 else s
                if t == s:
                    break
            for i in range(g.rows[s], g.rows[s + 1]):
                b = g.book[i]
                if references.member[b] != 0 and columns.trusted[i] != 0 and not np.isnan(columns.own[i]):
                    w = consensus_weight(i, b, columns, references)
                    sum_p += w * columns.own[i]
                    sum_w += w
            if columns.reference[m] >= 0:
                out[c, k] = columns.fair[s]
            elif columns.reference[m] == CONSENSUS and sum_w > 0.0:
                out[c, k] = sum_p / sum_w
            is_incomplete = is_incomplete or np.isnan(out[c, k])
            is_offered = is_offered and top > 0.0
            bare.odds[at + k] = top
            bare.place[at + k] = c * out.shape[1] + k
        if is_incomplete and is_offered:
            at += n
            n_bare += 1
            bare.ends[n_bare] = at
    return n_bare


def market_fair(prices: FairPrices, markets: Longs, who: Longs | None = None) -> Floats:
    """Fair probabilities of some markets, (n, outcomes): the estimator's, the reference's, or those of the best prices.

    `who` is the user of each (None: the first). The probabilities of market -1 are nan.
    """
    g, n = prices.groups, markets.size
    fair = np.empty((n, prices.widest))
    bare = BareMarkets(np.empty(fair.size, np.int64), np.empty(fair.size), np.zeros(n + 1, np.int64))
    who = np.zeros(n, np.int64) if who is None else who
    count = _fairest(who, markets, g, prices.columns, prices.users, prices.references, fair, bare)
    if count:
        ends = bare.ends[: count + 1]
        used = ends[-1]
        fair.reshape(-1)[bare.place[:used]] = devig_groups(bare.odds[:used], ends, devig_method(prices.method))
    if prices.close is not None:
        outcome = np.arange(prices.widest)
        inside = (outcome < g.outcomes[markets][:, None]) & (markets >= 0)[:, None]
        close = prices.close.segment[np.where(inside, g.segments[markets][:, None] + outcome, 0)]
        known = (inside <= ~np.isnan(close)).all(axis=1) & (markets >= 0)
        fair[known] = np.where(inside, close, np.nan)[known]
    return fair
