"""Commission: prices after the commission of an exchange or the fee of a prediction market.

A book with the commission c on winnings turns decimal odds d into 1 + (d - 1) (1 - c). A fee F p (1 - p) per contract,
with the price p = 1 / d, turns them into 1 / (p + F p (1 - p)); this is how prediction markets charge, some of them in
play only. Rates and fees are in the catalog (`books.toml`), and users may replace the commission of a book.

A price may have fees of its own, such as those of its market, and levels (`PriceDepth`). What it offers is after its
own fees, and for the user's stake if there is one; the fee of that order is rounded up, mostly to a cent. Fair
prices are estimated from the best levels, after the fees of the books: a fee is the same on all sides of a
market, and the fair price does not depend on the stake.

Commission is due on the net winnings of a market: several bets of one arbitrage in one market of an exchange pay less
than each would alone (`netted`).
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine._jit import kernel
from oddsengine.columns import Bytes, Floats, Ints, Longs
from oddsengine.identity.groups import Groups
from oddsengine.identity.traits import BookFees, Traits
from oddsengine.maths.depth import fee_per_unit, rounded_fee, walk
from oddsengine.maths.odds import charged
from oddsengine.tables.levels import COMMISSION, FEE, LEVELS, FlatLevels


class PriceDepth(NamedTuple):
    """Fees and levels of single prices, of those that have some; rows are places among all prices."""

    charged: Longs  # rows with fees other than their book's
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


class Fees(NamedTuple):
    """What bets cost: by book, and of single prices."""

    of_book: BookFees
    replaced: Bytes  # per book: 1 if they are the user's, and apply to all its prices
    depth: PriceDepth | None

    @property
    def slack(self) -> float:
        """By how much the sum of 1/odds of bets that pay commission together may be too large, at most."""
        own = np.empty(0) if self.depth is None else np.nan_to_num(self.depth.commission)
        return 1.0 / (1.0 - max(float(self.of_book.commission.max(initial=0.0)), float(own.max(initial=0.0))))


def offered(
    odds: Floats, book: Ints | Longs, live: Bytes, net: Floats, fees: Fees, stake: float | None = None
) -> Floats:  # fmt: skip
    """Prices after the fees of each, and for a stake; never better than at the best level.

    - `odds`, `book`, `live` (per price): prices, the codes of their books, and 1 in play
    - `net` (per price): prices after the fees of the books
    - `stake`: None is the best level
    """
    net, depth, of_book = net.copy(), fees.depth, fees.of_book
    of_row, fee_of_row = of_book.commission[book], of_book.contract_fees(book, live)
    if depth is not None:
        at = depth.charged[fees.replaced[book[depth.charged]] == 0]
        of_row[at], fee_of_row[at] = _fees_of(book, at, live[at], fees)
        net[at] = charged(odds[at], of_row[at], fee_of_row[at])
    if stake is None:
        return net
    best, some = net.copy(), np.flatnonzero(fee_of_row > 0.0)
    due = stake * net[some] * fee_per_unit(odds[some], of_row[some], fee_of_row[some])
    step = of_book.fee_step[book]
    net[some] *= stake / (stake + rounded_fee(due, step[some]) - due)
    if depth is not None and (levels := depth.levels).at.size:
        paid = walk(levels.at, levels.odds, levels.stake, stake, of_row[levels.at], fee_of_row[levels.at])
        filled = paid.stake > 0.0
        at, due = paid.ladder[filled], paid.fee[filled]
        net[at] = np.minimum(best[at], paid.payout[filled] / (paid.stake[filled] + rounded_fee(due, step[at]) - due))
    return net


def on_winnings(book: Ints, rows: Ints | Longs, live: Bytes, fees: Fees) -> Floats:
    """Commission on the winnings of some rows, of which `book` has the book of all; 0 of those with a fee instead.

    `live` is 1 for those of the rows that are in play.
    """
    rate, fee = _fees_of(book, rows, live, fees)
    return np.where(fee == 0.0, rate, 0.0)


def _fees_of(book: Ints | Longs, rows: Ints | Longs, live: Bytes, fees: Fees) -> tuple[Floats, Floats]:
    """Commission and fee of some rows: their own, or those of their books."""
    of_book, depth = fees.of_book, fees.depth
    rate, fee = of_book.commission[book[rows]], of_book.contract_fees(book[rows], live)
    if depth is None or not depth.charged.size:
        return rate, fee
    at = np.minimum(np.searchsorted(depth.charged, rows), depth.charged.size - 1)
    own = (depth.charged[at] == rows) & (fees.replaced[book[rows]] == 0)
    return (
        np.where(own & ~np.isnan(depth.commission[at]), depth.commission[at], rate),
        np.where(own & ~np.isnan(depth.fee[at]), depth.fee[at], fee),
    )


def netted(cost: Floats, rate: Floats, market: Longs) -> Floats:
    """Money that each leg of some cases needs for one unit of payout, if commission is on a market's net winnings.

    If one of the legs in a market wins with odds d, the stakes of the others there are lost, and lower the winnings on
    which the commission c is due. For equal payouts a leg needs

        (1 / d) / (1 - c + c A),   A = sum of 1 / d over the legs in the market

    With A of 1 or more there are no net winnings, and it needs 1 / d. Where all legs of a case are in one market at one
    book, each is taken alone: such a case wins nothing.

    Parameters
    ----------
    cost
        (cases, legs): 1/odds of each leg after the commission that it would pay alone; 0 if there is no such leg.
    rate
        (cases, legs): commission.
    market
        (cases, legs): equal numbers are bets in one market at one book.

    Examples
    --------
    >>> cost, rate = np.array([[1 / 2.8, 1 / 3.4, 1 / 3.1]]), np.array([[0.1, 0.1, 0.0]])
    >>> netted(cost, rate, np.array([[0, 1, 2]])).round(4).tolist()
    [[0.3571, 0.2941, 0.3226]]
    >>> netted(cost, rate, np.array([[0, 0, 2]])).round(4).tolist()
    [[0.347, 0.2839, 0.3226]]
    """
    out = cost.copy()
    held = cost > 0.0
    for k in range(cost.shape[1]):
        together = (market == market[:, k : k + 1]) & held
        count = together.sum(axis=1)
        some = np.flatnonzero(held[:, k] & (rate[:, k] > 0.0) & (count > 1) & (count < held.sum(axis=1)))
        if not some.size:
            continue
        c = rate[some, k : k + 1]
        # The price without commission: 1 / cost = 1 + (d - 1) (1 - c).
        alone = np.where(together[some], cost[some], 1.0)
        gross = np.where(together[some], alone * (1.0 - c) / (1.0 - alone * c), 0.0)
        total = gross.sum(axis=1)
        out[some, k] = gross[:, k] / np.where(total < 1.0, 1.0 - c[:, 0] + c[:, 0] * total, 1.0)
    return out


@kernel
def _after_fees(odds, book, live, commission, fee, live_fee, net):
    """Prices of some books after a commission on winnings, and a fee of F p (1 - p) per contract.

    - `odds`, `book`, `live` (per price): prices, the codes of their books, and 1 in play
    - `commission`, `fee`, `live_fee` (per book): as in `BookFees`
    - `net` (per price): to write
    """
    for i in range(odds.size):
        c, f = commission[book[i]], fee[book[i]]
        if live[i] != 0:
            f = live_fee[book[i]]
        x = odds[i]
        if c != 0.0 or f != 0.0:
            x = 1.0 + (x - 1.0) * (1.0 - c)
            if f > 0.0:
                p = 1.0 / x
                x = 1.0 / (p + f * p * (1.0 - p))
        net[i] = x


def after_fees(odds: Floats, book: Ints | Longs, live: Bytes, fees: BookFees) -> Floats:
    """Prices after the fees of their books; `live` is 1 in play."""
    net = np.empty(odds.size)
    _after_fees(odds, book.astype(np.int32, copy=False), live, fees.commission, fees.fee, fees.live_fee, net)
    return net


def after_commission(groups: Groups, traits: Traits) -> Floats:
    """Prices of a board after the commissions of the catalog."""
    if not traits.fees.charging.any():
        return groups.odds
    return after_fees(groups.odds, groups.book, groups.live_of(slice(None)), traits.fees)
