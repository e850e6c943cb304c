"""Positions: arbitrages and low holds as an account bets on them, one leg after the other.

**Stakes.** Every outcome pays the same after fees, as far as the venues' steps allow: the stakes are rounded down, each
leg for the least that those before it pay. All of them fit the limits, or nothing is sent.

**Legs** are in the order in which they are sent, thinnest first. Each waits for the final answer to the one before, and
is sent for the least that the legs before it pay, never for more than was planned. When one gets nothing, or too little
for the next one's minimum, the others are not sent. What is left open then is held to the result: nothing hedges it
(`oddsengine.cover` says which bets would).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from oddsengine.backtesting.trades import EVENT_COLUMNS, Trade
from oddsengine.board.facts import moments_of
from oddsengine.staking.rules import StakeRules
from oddsengine.tables.casts import TIME

POSITIONS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "decided_at": TIME,
    "kind": pl.String,  # arbitrage or low_hold
    "outcome": pl.String,  # whole, part, open or none, as of `FILLS_SCHEMA`; waiting before the last answer
    "reason": pl.String,  # why the first leg that fell short did
    **EVENT_COLUMNS,
    "market_type": pl.String,  # of the first leg
    "sportsbooks": pl.List(pl.String),  # by leg
    "shown_percent": pl.Float64,  # the profit of an arbitrage, or the hold
    "wanted": pl.Float64,  # stakes of all legs, as planned
    "stake": pl.Float64,  # filled
    "locked": pl.Float64,  # the least that an outcome pays without a push, less the stakes; null before the last answer
    "locked_percent": pl.Float64,  # of the stakes; null without any
    "opportunity_id": pl.String,
}
"""Columns of `Account.positions`."""

_OF_BET = tuple(name for name in EVENT_COLUMNS if name != "is_live")  # which the order has


def split(units: float, net_odds: Sequence[float], rules: Sequence[StakeRules]) -> list[float]:
    """Return the stakes on the legs for some units of payout, in the order in which they are sent.

    Examples
    --------
    >>> split(100.0, [2.0, 2.5], [StakeRules(0.0, 0.01), StakeRules(0.0, 3.0)])
    [48.75, 39.0]
    """
    payout = min(rule.whole(units / odds) * odds for odds, rule in zip(net_odds, rules, strict=True))
    stakes = []
    for odds, rule in zip(net_odds, rules, strict=True):
        stakes.append(rule.whole(payout / odds))
        payout = min(payout, stakes[-1] * odds)
    return stakes


@dataclass(slots=True, eq=False)
class Position:
    """The bets on one opportunity of several legs; lists are in the order in which the legs are sent."""

    decided: int  # microseconds
    shown: float  # percent
    trades: list[Trade]
    rules: list[StakeRules]
    lots: list[float]  # steps of the venues alone, in money: what a fill may fall short by
    planned: float  # all stakes

    @property
    def is_waiting(self) -> bool:
        """Whether a leg is with its venue."""
        return any(trade.status == "waiting" for trade in self.trades)

    @property
    def left(self) -> list[Trade]:
        """The legs that are not sent yet."""
        return [trade for trade in self.trades if trade.status == "planned"]

    @property
    def least_payout(self) -> float:
        """The least that a leg pays of those that were sent."""
        return min(trade.payout for trade in self.trades if trade.status != "planned")

    def next_stake(self) -> float:
        """The stake on the next leg for what those before it got; 0: it is too small."""
        at = len(self.trades) - len(self.left)
        order, rule = self.trades[at].order, self.rules[at]
        stake = min(order.stake, rule.whole(self.least_payout / order.net_odds))
        return stake if stake > 0.0 and rule.allows(stake) else 0.0

    def outcome(self) -> str:
        """What has become of it."""
        if self.is_waiting or self.left:
            return "waiting"
        if not any(trade.stake for trade in self.trades):
            return "none"
        short = [
            not trade.stake or trade.order.stake - trade.stake > 1.05 * lot + 1e-6 * trade.order.stake
            for trade, lot in zip(self.trades, self.lots, strict=True)
        ]
        if any(short[1:]):  # the next legs were ordered for what those before had got
            return "open"
        return "part" if short[0] else "whole"

    def row(self) -> dict[str, Any]:
        """Return it in `POSITIONS_SCHEMA`."""
        legs = sorted(self.trades, key=lambda trade: trade.leg)
        short_first = sorted(self.trades, key=lambda trade: trade.stake >= trade.order.stake)
        first, outcome, stake = legs[0], self.outcome(), sum(trade.stake for trade in legs)
        locked = None if outcome == "waiting" else min(trade.payout for trade in legs) - stake
        return {
            **{name: first.order.bet[name] for name in _OF_BET},
            "decided_at": moments_of(np.array([self.decided], np.int64)).to_list()[0], "kind": first.kind,
            "outcome": outcome,
            "reason": next((each.reason for each in short_first if each.reason and outcome != "waiting"), None),
            "is_live": first.order.is_live, "market_type": first.order.bet["market_type"],
            "sportsbooks": [trade.order.sportsbook for trade in legs], "shown_percent": self.shown,
            "wanted": self.planned, "stake": stake, "locked": locked,
            "locked_percent": None if locked is None or not stake else 100.0 * locked / stake,
            "opportunity_id": first.opportunity,
        }  # fmt: skip
