"""Commission: prices after the commission of an exchange or the fee of a prediction market.

A book with the commission c on winnings turns decimal odds d into 1 + (d - 1) (1 - c). A fee F p (1 - p) per contract,
with the price p = 1 / d, turns them into 1 / (p + F p (1 - p)); this is how prediction markets charge. Rates and fees
are in the catalog (`books.toml`), and callers may replace the commission of a book.

A price may have charges of its own, such as those of its market, and levels (`PriceDepth`). What it offers is after its
own charges, and for the caller's stake if there is one; the fee of that order is rounded up to a cent. Fair prices are
estimated from the best levels, after the charges of the books: a charge is the same on all sides of a market, and the
fair price does not depend on the stake.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine._jit import kernel
from oddsengine.identity.groups import Bytes, Floats, Groups, Ints, Longs
from oddsengine.identity.traits import Traits
from oddsengine.maths.depth import fee_per_unit, rounded_fee, walk
from oddsengine.maths.odds import charged
from oddsengine.tables.levels import COMMISSION, FEE, LEVELS, FlatLevels


class PriceDepth(NamedTuple):
    """Charges and levels of single prices, of those that have some; rows are places among all prices."""

    charged: Longs  # rows with charges other than their book's
    commission: Floats  # of these; nan: that of the book
    fee: Floats  # likewise
    levels: FlatLevels  # of rows with levels, by row

    @classmethod
    def of_table(cls, table: pl.DataFrame, rows: Ints | Longs) -> "PriceDepth | None":
        """Those of some rows of a table; None if it has no columns of them."""
        columns = table.columns
        if not {LEVELS, COMMISSION, FEE}.intersection(columns):
            return None
        nothing = np.full(rows.size, np.nan)
        own = [table[name].to_numpy()[rows] if name in columns else nothing for name in (COMMISSION, FEE)]
        at = np.flatnonzero(~(np.isnan(own[0]) & np.isnan(own[1])))
        levels = FlatLevels(np.empty(0, np.int64), np.empty(0), np.empty(0))
        if LEVELS in columns:
            levels = FlatLevels.of_column(table[LEVELS].gather(rows))
        return cls(at, own[0][at], own[1][at], levels)


def offered(
    odds: Floats, book: Ints | Longs, net: Floats, depth: PriceDepth | None, rate: Floats, fee: Floats,
    replaced: Bytes | None = None, stake: float | None = None,
) -> Floats:  # fmt: skip
    """Prices after the charges of each, and for a stake; never better than at the best level.

    - `odds`, `book` (per price): prices and the codes of their books
    - `net` (per price): prices after the charges of the books
    - `depth`: None if no price has charges or levels of its own
    - `rate`, `fee` (per book): commission, and F
    - `replaced` (per book): 1 if they are the caller's, and apply to all its prices; None: to no book
    - `stake`: None is the best level
    """
    net = net.copy()
    of_row, fee_of_row = rate[book], fee[book]
    if depth is not None:
        _own_charges(odds, book, net, depth, of_row, fee_of_row, replaced)
    if stake is None:
        return net
    best, some = net.copy(), np.flatnonzero(fee_of_row > 0.0)
    due = stake * net[some] * fee_per_unit(odds[some], of_row[some], fee_of_row[some])
    net[some] *= stake / (stake + rounded_fee(due) - due)
    if depth is not None and (levels := depth.levels).at.size:
        paid = walk(levels.at, levels.odds, levels.stake, stake, of_row[levels.at], fee_of_row[levels.at])
        filled = paid.stake > 0.0
        at, due = paid.ladder[filled], paid.fee[filled]
        net[at] = np.minimum(best[at], paid.payout[filled] / (paid.stake[filled] + rounded_fee(due) - due))
    return net


def _own_charges(
    odds: Floats, book: Ints | Longs, net: Floats, depth: PriceDepth, of_row: Floats, fee_of_row: Floats,
    replaced: Bytes | None,
) -> None:  # fmt: skip
    """Put the charges of single prices into those of all rows, and their prices into `net`."""
    own = slice(None) if replaced is None else replaced[book[depth.charged]] == 0
    at = depth.charged[own]
    of_row[at] = np.where(np.isnan(depth.commission[own]), of_row[at], depth.commission[own])
    fee_of_row[at] = np.where(np.isnan(depth.fee[own]), fee_of_row[at], depth.fee[own])
    net[at] = charged(odds[at], of_row[at], fee_of_row[at])


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
