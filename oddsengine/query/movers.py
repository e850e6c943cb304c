"""Movers: the markets whose prices moved most, and those that books disagree about."""

from typing import NamedTuple

import numpy as np

from oddsengine.columns import Bools, Floats, Longs
from oddsengine.query.fair import RowFair

LEAST_BOOKS = 3
ORDERS = ("move", "spread")


class Movers(NamedTuple):
    """Outcomes, one per market: the one that got shorter, at the line that most books quote."""

    before: Floats  # mean probability in the prices of the books that had one then and have one now
    now: Floats
    shorter: Longs  # how many of these books went shorter
    longer: Longs
    books: Longs
    spread: Floats  # between the largest and the smallest own fair probability of a book; nan if fewer than 3 have one
    best: Longs  # place of the longest price, net

    def take(self, at: Longs) -> "Movers":
        """Return some of them."""
        return Movers._make(column[at] for column in self)


def find_movers(fair: RowFair, odds: Floats, net: Floats, earlier: Floats, usable: Bools) -> Movers:
    """Compare the prices of some rows with those of an earlier time.

    Parameters
    ----------
    fair
        Of the rows.
    odds, net
        Their decimal prices, as quoted and after commission.
    earlier
        Their prices then, nan if unknown.
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
    # The longest price of each outcome is the first of its rows in this order.
    order = np.lexsort((-net[both], place))
    best = both[order[np.searchsorted(place[order], np.arange(n))]]
    # One outcome per market: most books, then the larger rise.
    ladder = fair.ladder[best]
    rank = np.lexsort((outcome, before - after, -count, ladder))
    first = rank[np.flatnonzero(np.diff(ladder[rank], prepend=-1))]
    chosen = first[count[first] >= LEAST_BOOKS]
    return Movers(before, after, shorter, longer, count, spread, best).take(chosen)


def ordered(found: Movers, by: str) -> Longs:
    """The places of movers in one of the `ORDERS`, largest first."""
    values = found.spread if by == "spread" else found.now - found.before
    return np.argsort(-np.nan_to_num(values, nan=-1.0), kind="stable")
