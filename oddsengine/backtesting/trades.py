"""Trades: the orders of an account, from the decision to the last answer."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from oddsengine.board.facts import moments_of
from oddsengine.execution.venues import BetOrder
from oddsengine.tables.casts import TIME

EVENT_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "event_id": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "event_start_time": TIME,
    "is_live": pl.Boolean,
}
TRADES_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "placed_at": TIME,  # when it was sent, or decided if it was not
    "status": pl.String,  # one of `STATUSES`
    "reason": pl.String,  # why it was rejected, not filled in whole, or not sent; or `UNOBSERVED`
    **EVENT_COLUMNS,
    "market_type": pl.String,
    "market_segment": pl.String,
    "player_name": pl.String,
    "team_side": pl.String,
    "selection": pl.String,
    "selection_type": pl.String,
    "line": pl.Float64,
    "sportsbook": pl.String,
    "odds_decimal": pl.Float64,  # of the fill, or of the order
    "net_odds": pl.Float64,  # after fees
    "fair_probability": pl.Float64,  # given no push; null of a leg, like the next two
    "push_probability": pl.Float64,  # null if unknown
    "ev": pl.Float64,  # fraction, at the odds above, given no push
    "wanted": pl.Float64,  # stake of the order
    "stake": pl.Float64,  # filled
    "kind": pl.String,  # ev; or of which a leg is: arbitrage, low_hold
    "opportunity_id": pl.String,
    "leg": pl.Int64,  # from 0
    "odds_id": pl.String,
    "order_id": pl.String,
}
"""Columns of `Account.trades`."""

BET_FACTS = (
    "event_id", "sport", "league", "home_team", "away_team", "event_start_time", "market_type", "market_segment",
    "player_name", "team_side", "selection", "selection_type", "line", "fair_probability", "push_probability",
)  # fmt: skip
"""What an order says of the bet."""
STATUSES = ("planned", "waiting", "filled", "rejected", "not sent")
"""A leg that may be sent later; sent, and not answered finally; filled, in whole or in part; not filled; a leg that is
not sent any more, as one before got nothing or too little, or the account has halted."""


NOT_SENT = ("planned", "not sent")
"""Those of orders that the venue does not know."""


@dataclass(slots=True, eq=False)
class Trade:
    """One order, from its decision."""

    order: BetOrder
    kind: str
    opportunity: str  # id
    leg: int
    starts: int  # of its event, microseconds; a large number if unknown
    odds: float  # of the fill, or of the order
    net_odds: float
    ev: float | None
    status: str = "planned"
    reason: str | None = None
    stake: float = 0.0  # filled so far
    answered: int = 0  # when its final answer was made, microseconds

    @property
    def staked(self) -> float:
        """Money that it took, or may take."""
        return self.order.stake if self.status in ("planned", "waiting") else self.stake

    @property
    def payout(self) -> float:
        """Of what is filled, if the bet wins."""
        return self.stake * self.net_odds

    def row(self) -> dict[str, Any]:
        """Return it in `TRADES_SCHEMA`."""
        order = self.order
        return {
            **{name: order.bet[name] for name in BET_FACTS},
            "placed_at": moments_of(np.array([order.sent], np.int64)).to_list()[0], "status": self.status,
            "reason": self.reason, "is_live": order.is_live, "sportsbook": order.sportsbook,
            "odds_decimal": self.odds, "net_odds": self.net_odds, "ev": self.ev, "wanted": order.stake,
            "stake": self.stake, "kind": self.kind, "opportunity_id": self.opportunity, "leg": self.leg,
            "odds_id": order.odds_id, "order_id": order.id,
        }  # fmt: skip
