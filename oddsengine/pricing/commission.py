"""Commission: prices after the commission of an exchange or the fee of a prediction market.

A book with the commission c on winnings turns decimal odds d into 1 + (d - 1) (1 - c). A fee F p (1 - p) per contract,
with the price p = 1 / d, turns them into 1 / (p + F p (1 - p)); this is how prediction markets charge. Rates and fees
are in the catalog (`books.toml`), and callers may replace the commission of a book.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import numpy as np

from oddsengine._jit import kernel
from oddsengine.identity.groups import Floats, Groups
from oddsengine.identity.traits import Traits


@kernel
def charge(odds, book, rate, fee, net):
    """Prices of some books after a commission on winnings, and a fee of F p (1 - p) per contract.

    - `odds`, `book` (per price): prices and the codes of their books
    - `rate`, `fee` (per book): commission, and F
    - `net` (per price): to write
    """
    for i in range(odds.size):
        c, f = rate[book[i]], fee[book[i]]
        x = odds[i]
        if c != 0.0 or f != 0.0:
            x = 1.0 + (x - 1.0) * (1.0 - c)
            if f > 0.0:
                p = 1.0 / x
                x = 1.0 / (p + f * p * (1.0 - p))
        net[i] = x


def after_commission(groups: Groups, traits: Traits) -> Floats:
    """Prices of a board after the commissions of the catalog."""
    if not (traits.commission.any() or traits.fee.any()):
        return groups.odds
    net = np.empty(groups.row.size)
    charge(groups.odds, groups.book, traits.commission, traits.fee, net)
    return net
