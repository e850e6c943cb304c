"""What the four kinds are found with: what some callers see of some prices, as arrays; no table, no text.

A search is made of a whole board or of every market of a few events alike; what is found of an event is the same.
Two searches of one board at different times are compared by the ids of what they find.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from oddsengine import tails
from oddsengine.detect import Offers, Scope, Swept, Wants, close_candidates, sweep
from oddsengine.find.ids import Hashes
from oddsengine.groups import Floats, Ints, Longs, Words


@dataclass(frozen=True, eq=False)
class Search:
    """What some callers see and want, with what the kinds share."""

    view: Offers
    wants: Wants
    scope: Scope
    hashes: Hashes
    forms: tails.Forms
    cap: bool  # an edge may be too large to be believed

    @property
    def epsilon(self) -> float:
        """How far every threshold gives way, a fraction."""
        return self.view.limits.epsilon

    @cached_property
    def swept(self) -> Swept:
        """The candidates of all kinds."""
        if self.view.close is None:
            return sweep(self.view, self.wants, self.scope)
        swept = sweep(self.view, self.wants._replace(edge=np.full_like(self.wants.edge, np.inf)), self.scope)
        who, market = close_candidates(self.view, self.wants.edge - self.epsilon, self.scope.markets)
        return swept._replace(edge_who=who, edge_market=market)

    @cached_property
    def curves(self) -> tails.Curves:
        """What ladders are linked to."""
        return tails.curves(self.view.groups, self.forms)


class Chosen(NamedTuple):
    """Best prices: rows (n, outcomes), -1 beyond a case's outcomes, the sum of their 1/odds, and the case's id."""

    rows: Ints
    total: Floats
    id: Words

    def only(self, keep: Longs) -> "Chosen":
        """Some of them."""
        return Chosen(self.rows[keep], self.total[keep], self.id[keep])


class Cases(NamedTuple):
    """Callers, markets and the best prices of their outcomes."""

    who: Longs
    market: Longs
    legs: Chosen

    def only(self, keep: Longs) -> "Cases":
        """Some of them."""
        return Cases(self.who[keep], self.market[keep], self.legs.only(keep))
