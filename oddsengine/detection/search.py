"""Inputs shared by the searches of all kinds, and what a search leaves open, as arrays without tables or texts.

A search covers a whole board, or all markets of a few events; the results for an event are the same. Results of the
same board at different times are compared by id.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from oddsengine.columns import Floats, Ints, Longs, Words
from oddsengine.detection import tails
from oddsengine.detection.edges import close_candidates
from oddsengine.detection.legs import best_legs, costs, unconfirmed
from oddsengine.detection.opportunity_ids import Hashes, of_markets
from oddsengine.detection.sweep import PAIR, Candidates, Scope, Thresholds, sweep
from oddsengine.identity.groups import Groups
from oddsengine.pricing.references import FairPrices

LEGS = 3
PROMISED = ("ev_low", "ev_high", "ev_error", "still_there")
"""What rows of +EV bets at the close say of the EV; nan where it is not known."""
FIGURES = 5  # the last is 1 where the opportunity is unconfirmed, plus twice the flags of a fair price at the close


class Opened(NamedTuple):
    """What a search leaves open of one kind: opportunities at or above the thresholds, and within the caps."""

    who: Longs
    id: Words
    market: Longs
    rows: Ints  # (n, legs), -1 beyond
    figures: Floats  # (n, FIGURES): what differs if the opportunity has changed
    shown: Words | None = None  # a hash of what else its row shows; None: of nothing that other prices change
    promised: Floats | None = None  # (n, PROMISED): of +EV bets at the close, if the search is asked for it


class Located(NamedTuple):
    """What was found, for explanations: ids as published, markets, legs and the cost of each."""

    id: list[str]
    markets: Longs  # (n, markets)
    rows: Ints  # (n, legs), -1 beyond
    cost: Floats


@dataclass(frozen=True, eq=False)
class Search:
    """One search: the offers of some users, their limits, and intermediate results shared by the kinds."""

    prices: FairPrices
    thresholds: Thresholds
    scope: Scope
    hashes: Hashes
    forms: tails.Forms
    cap: bool  # whether the plausibility caps are active
    found: Candidates | None = field(default=None, kw_only=True)  # what is open already, instead of a sweep
    promises: bool = field(default=False, kw_only=True)  # find `PROMISED` too

    @property
    def epsilon(self) -> float:
        """Tolerance of thresholds, as a fraction."""
        return self.prices.limits.epsilon

    @cached_property
    def swept(self) -> Candidates:
        """Candidates of all kinds."""
        if self.found is not None:
            return self.found
        if self.prices.close is None:
            return sweep(self.prices, self.thresholds, self.scope)
        least = self.thresholds["min_ev"]
        others = Thresholds(self.thresholds, min_ev=np.full_like(least, np.inf))
        swept = sweep(self.prices, others, self.scope)
        who, market = close_candidates(self.prices, least - self.epsilon, self.scope.markets)
        return swept._replace(edge_who=who, edge_market=market)

    @cached_property
    def curves(self) -> tails.Curves:
        """Tail curves of the ladders."""
        return tails.curves(self.prices.groups, self.forms)


class BestPrices(NamedTuple):
    """Best prices, as columns."""

    rows: Ints  # (n, outcomes), -1 beyond a case's outcomes
    odds: Floats  # (n, outcomes): after commission, in this combination; nan beyond
    total: Floats  # sum of 1/odds
    id: Words  # of the case

    @property
    def cost(self) -> Floats:
        """(n, outcomes): money for one unit of payout, 0 beyond."""
        return costs(self.odds)

    def only(self, keep: Longs) -> "BestPrices":
        """Return a selection of the rows."""
        return BestPrices(self.rows[keep], self.odds[keep], self.total[keep], self.id[keep])


class Cases(NamedTuple):
    """Users, markets and the best price of each outcome."""

    who: Longs
    market: Longs
    legs: BestPrices

    @property
    def id(self) -> Words:
        """Their ids."""
        return self.legs.id

    def only(self, keep: Longs) -> "Cases":
        """Return a selection of the rows."""
        return Cases(self.who[keep], self.market[keep], self.legs.only(keep))


def own_legs(groups: Groups, market: Longs, rows: Ints) -> Longs:
    """The first leg of each case, (n, legs) padded with -1, that is a price of the market itself."""
    is_own = (rows >= 0) & (groups.market[np.maximum(rows, 0)] == market[:, None])
    return np.asarray(is_own.argmax(axis=1))


def cases(search: Search, kind: str, most: Floats, least: float = -np.inf, *, distinct: bool) -> Cases:
    """The markets whose best prices sum to at most `most` of their user, with the prices."""
    v, swept = search.prices, search.swept
    several = v.groups.outcomes[swept.sum_market] > PAIR
    near = np.flatnonzero(swept.total <= most[swept.sum_who] * np.where(several, v.fees.slack, 1.0))
    who, market = swept.sum_who[near], swept.sum_market[near]
    legs = best_legs(v, who, market, distinct=distinct)
    keep = np.flatnonzero((legs.total <= most[who]) & (legs.total >= least))
    who, market, rows = who[keep], market[keep], legs.rows[keep]
    named = of_markets(kind, v.groups, search.hashes, market, rows)
    return Cases(who, market, BestPrices(rows, legs.odds[keep], legs.total[keep], named))


def opened(search: Search, hits: Cases, shown: Words | None = None) -> Opened:
    """Markets as what is open: figures are the sum of 1/odds, the odds of each leg, and whether a leg is doubtful."""
    odds = hits.legs.odds[:, :LEGS]
    figures = np.full((odds.shape[0], FIGURES), np.nan)
    figures[:, 0] = hits.legs.total
    figures[:, -1] = unconfirmed(search.prices, hits.legs.rows)
    figures[:, 1 : 1 + odds.shape[1]] = odds
    return Opened(hits.who, hits.legs.id, hits.market, hits.legs.rows, figures, shown)
