"""What the four kinds are found with: one caller's view of some prices, as arrays; no table, no text.

A search is made of a whole board or of every market of a few events alike; what is found of an event is the same.
Two searches of one board at different times are compared by the ids of what they find.
"""

from dataclasses import dataclass
from typing import NamedTuple

from oddsengine.detect import Scan, View
from oddsengine.find.keys import Hashes
from oddsengine.groups import Floats, Ints, Longs, Words
from oddsengine.tails import Forms


@dataclass(frozen=True, eq=False)
class Search:
    """One caller's view of some prices, with what the kinds share."""

    view: View
    swept: Scan
    hashes: Hashes
    forms: Forms
    cap: bool  # an edge may be too large to be believed
    max_profit: float  # fraction; a larger one is never shown

    @property
    def epsilon(self) -> float:
        """How far every threshold gives way, a fraction."""
        return self.view.limits.epsilon


class Chosen(NamedTuple):
    """Best prices: rows (n, outcomes), -1 beyond a case's outcomes, the sum of their 1/odds, and the case's id."""

    rows: Ints
    total: Floats
    id: Words

    def only(self, keep: Longs) -> "Chosen":
        """Some of them."""
        return Chosen(self.rows[keep], self.total[keep], self.id[keep])


class Cases(NamedTuple):
    """Markets and the best prices of their outcomes."""

    market: Longs
    legs: Chosen

    def only(self, keep: Longs) -> "Cases":
        """Some of them."""
        return Cases(self.market[keep], self.legs.only(keep))
