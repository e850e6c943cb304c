"""Movers: the markets whose prices moved most, and those where books disagree."""

from typing import NamedTuple

import numpy as np

from oddsengine.columns import Bools, Floats, Longs
from oddsengine.query.row_values import RowFair

LEAST_BOOKS = 3
ORDERS = ("move", "spread")


class Movers(NamedTuple):
    """Outcomes, one per market: the one that shortened most, at the line that most books quote."""

    before: Floats  # mean implied probability of the books with a price both then and now
    now: Floats
    shorter: Longs  # number of these books whose price shortened
    longer: Longs  # and of those whose price drifted
    books: Longs
    spread: Floats  # between the largest and the smallest own fair probability of a book; nan if fewer than 3 have one
    best: Longs  # place of the best price, net of commission

    def take(self, at: Longs) -> "Movers":
        """Return the movers at some places."""
        return Movers._make(column[at] for column in self)


def find_movers(fair: RowFair, odds: Floats, net: Floats, earlier: Floats, usable: Bools) -> Movers:
    """Compare the prices of some rows with those of an earlier time.

    Parameters
    ----------
    fair
        What the rows are worth.
    odds, net
        Their decimal prices, as quoted and after commission.
    earlier
        Their decimal prices at the earlier time, nan if unknown.
    usable
        Whether they can be bet.
    """
    both = np.flatnonzero(usable & (fair.outcome >= 0) & ~np.isnan(earlier))
    outcome, place = np.unique(fair.outcome[both], return_inverse=True)
    n = outcome.size
    count = np.bincount(place, minlength=n)
    then, now = 1.0 / earlier[both], 1.0 / odds[both]

    def per_outcome(values: Floats | Bools) -> Floats:
        return np.bincount(place, weights=values, minlength=n).astype(np.float64)

    before, after = per_outcome(then) / np.maximum(count, 1), per_outcome(now) / np.maximum(count, 1)
    shorter, longer = per_outcome(now > then).astype(np.int64), per_outcome(now < then).astype(np.int64)
    own = fair.own[both]
    known = ~np.isnan(own)
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, place[known], own[known])
    np.maximum.at(high, place[known], own[known])
    spread = np.where(per_outcome(known) >= LEAST_BOOKS, high - low, np.nan)
    # The best price of each outcome is the first of its rows in this order.
    order = np.lexsort((-net[both], place))
    best = both[order[np.searchsorted(place[order], np.arange(n))]]
    # One outcome per market: most books, then the larger rise in probability.
    ladder = fair.ladder[best]
    rank = np.lexsort((outcome, before - after, -count, ladder))
    first = rank[np.flatnonzero(np.diff(ladder[rank], prepend=-1))]
    chosen = first[count[first] >= LEAST_BOOKS]
    return Movers(before, after, shorter, longer, count, spread, best).take(chosen)


def ordered(found: Movers, by: str) -> Longs:
    """The places of movers in one of the `ORDERS`, largest first."""
    values = found.spread if by == "spread" else found.now - found.before
    return np.argsort(-np.nan_to_num(values, nan=-1.0), kind="stable")
