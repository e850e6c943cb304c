"""Accounts of paper money: stakes on what a strategy chose, and how its orders are answered.

An order is due after `latency_s` seconds, in play after the venue's `bet_delay` as well, and answered by the
next step: filled if the price is still available, not suspended, and at most the tolerance below the odds of the
decision; at those odds, or the lower ones.
Otherwise it is rejected with a reason. A step more than `ANSWER_S` later, as in a history of opening and closing
odds, does not tell what the book would have answered: the order is filled at the odds of the decision, as `unobserved`.
If the snapshots of an event are usually further apart than that (`sparse`), so is every order whose price is not seen
again in that time, although there are snapshots of other events, and those that wait at the end of the history.
Stakes are whole steps, within limits, and within the cash that is not in open bets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.backtesting.grading import bet_gains
from oddsengine.backtesting.strategy import Strategy
from oddsengine.board.facts import moments_of
from oddsengine.bounds import check_number, excerpt
from oddsengine.columns import SECOND
from oddsengine.execution.attempts import ANSWER_S, UNOBSERVED
from oddsengine.staking.rules import stake_rules
from oddsengine.tables.casts import TIME
from oddsengine.tables.levels import BET_DELAY

TRADES_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "placed_at": TIME,
    "status": pl.String,  # one of `STATUSES`
    "reason": pl.String,  # why it was rejected; or `UNOBSERVED`
    "event_id": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "event_start_time": TIME,
    "is_live": pl.Boolean,
    "market_type": pl.String,
    "market_segment": pl.String,
    "player_name": pl.String,
    "team_side": pl.String,
    "selection": pl.String,
    "selection_type": pl.String,
    "line": pl.Float64,
    "sportsbook": pl.String,
    "odds_decimal": pl.Float64,  # of the fill, or of the order
    "net_odds": pl.Float64,  # after commission
    "fair_probability": pl.Float64,  # given no push
    "push_probability": pl.Float64,  # null if unknown
    "ev": pl.Float64,  # fraction, at the odds above, given no push
    "stake": pl.Float64,
    "odds_id": pl.String,
}
"""Columns of `Account.trades`."""

STATUSES = ("waiting", "filled", "rejected")
_MOST_S = 31_536_000  # s: a year


class Offer(NamedTuple):
    """A price as it stands when an order for it is answered."""

    odds: float
    is_active: bool
    is_live: bool
    seen: int  # microseconds


@dataclass
class Order:
    """One bet, from its decision."""

    row: dict[str, Any]
    placed: int
    due: int
    status: str = "waiting"
    reason: str | None = None


Offers = Callable[[list[Order]], list[Offer | None]]
"""What stands of the prices of some orders; None: it is gone."""


class Latency(NamedTuple):
    """How long an order takes to be answered."""

    micros: int

    @classmethod
    def of(cls, latency_s: float) -> "Latency":
        """Validate the parameter `latency_s`."""
        check_number("latency_s", latency_s, 0.0, most=_MOST_S)
        return cls(round(latency_s * SECOND))

    def due(self, now: int, row: Mapping[str, Any]) -> int:
        """When the answer to an order for a +EV price is due that is placed now."""
        return now + self.micros + (round((row.get(BET_DELAY) or 0.0) * SECOND) if row["is_live"] else 0)


class Account:
    """The money of a strategy, and its orders.

    The parameters are those of `Trader`.
    """

    def __init__(
        self, strategy: Strategy, *, bankroll: float, latency: Latency, tolerance: float, settle_hours: float,
        sparse: bool,
    ) -> None:  # fmt: skip
        check_number("bankroll", bankroll, above=0.0)
        check_number("settle_hours", settle_hours, 0.0, most=_MOST_S / 3600)
        if not 0.0 <= tolerance < 1.0:
            raise ValueError(f"tolerance must be from 0 to below 1, got {excerpt(tolerance)}")
        self._strategy, self.start, self.cash = strategy, bankroll, bankroll
        self._latency, self._tolerance, self._sparse = latency, tolerance, sparse
        self._settled_after = round(settle_hours * 3600 * SECOND)
        self._orders: list[Order] = []
        self._waiting: list[Order] = []
        self._open: list[Order] = []
        self._scores: dict[str, tuple[float, float]] = {}

    def follow(self, now: int, chosen: pl.DataFrame | None, offers: Offers) -> int:
        """Process a step: release what is over, answer what is due, and place orders. Returns how many."""
        self._release(now)
        self._answer(now, offers)
        placed = 0 if chosen is None else self._place(chosen, now)
        if placed:
            self._answer(now, offers)  # without latency
        return placed

    def trades(self) -> pl.DataFrame:
        """Return all orders in order of decision, in `TRADES_SCHEMA`."""
        rows = [{**order.row, "status": order.status, "reason": order.reason} for order in self._orders]
        return pl.DataFrame(rows, schema=TRADES_SCHEMA) if rows else pl.DataFrame(schema=TRADES_SCHEMA)

    def settle(self, event_id: str, home_score: float, away_score: float) -> None:
        """Record a final score; bets on the event are paid when they are due."""
        self._scores[event_id] = (home_score, away_score)

    def finish(self) -> None:
        """End a sparse history: orders that no step answered are filled, as `unobserved`."""
        if self._sparse and self._waiting:
            self._answer(max(order.due for order in self._waiting), lambda due: [None] * len(due))

    def _place(self, chosen: pl.DataFrame, now: int) -> int:
        bankroll = self.cash + sum(order.row["stake"] for order in (*self._open, *self._waiting))
        stakes = np.asarray(self._strategy.stakes(chosen, bankroll, self.start), dtype=np.float64)
        most, step = self._strategy.max_bet, self._strategy.step
        placed = 0
        for row, stake in zip(chosen.iter_rows(named=True), stakes.tolist(), strict=True):
            money = min(stake, *(each for each in (most, row["max_bet"]) if each is not None), self.cash)
            if self._strategy.max_event is not None:
                on_event = (*self._open, *self._waiting)
                used = sum(o.row["stake"] for o in on_event if o.row["event_id"] == row["event_id"])
                money = min(money, self._strategy.max_event - used)
            rules = stake_rules(row, step)
            money = rules.whole(money)
            if not (money > 0.0 and rules.allows(money)):
                continue
            order = Order(_trade(row, money, now), now, self._latency.due(now, row))
            self._orders.append(order)
            self._waiting.append(order)
            self.cash -= money
            placed += 1
        return placed

    def _answer(self, now: int, offers: Offers) -> None:
        """Process the orders that are due."""
        due = [order for order in self._waiting if order.due <= now]
        if not due:
            return
        self._waiting = [order for order in self._waiting if order.due > now]
        for order, offer in zip(due, offers(due), strict=True):
            seen_since = offer is not None and offer.seen >= order.due
            late = now - order.due > ANSWER_S * SECOND or (self._sparse and not seen_since)
            reason = UNOBSERVED if late else self._fill(order.row, offer)
            order.status = "filled" if late or reason is None else "rejected"
            order.reason = reason
            if order.status == "filled":
                self._open.append(order)
            else:
                self.cash += order.row["stake"]

    def _fill(self, bet: dict[str, Any], offer: Offer | None) -> str | None:
        """Fill a bet at the current odds, or reject it with a reason."""
        if offer is None:
            return "gone"
        if not offer.is_active:
            return "suspended"
        if offer.is_live != bet["is_live"]:
            return "in play"
        if offer.odds < bet["odds_decimal"] * (1.0 - self._tolerance) - 1e-9:
            return "price moved"
        if offer.odds < bet["odds_decimal"]:
            share = (offer.odds - 1.0) / (bet["odds_decimal"] - 1.0)
            bet["odds_decimal"] = offer.odds
            bet["net_odds"] = 1.0 + (bet["net_odds"] - 1.0) * share
            bet["ev"] = bet["net_odds"] * bet["fair_probability"] - 1.0
        return None

    def _release(self, now: int) -> None:
        """Release the stakes of finished events, with profits if the score is known."""
        over = [order for order in self._open if order.row["start"] + self._settled_after <= now]
        if not over:
            return
        self._open = [order for order in self._open if order.row["start"] + self._settled_after > now]
        trades = pl.DataFrame([order.row for order in over], schema_overrides=TRADES_SCHEMA)
        gains = bet_gains(trades, self._scores)
        for order, gain in zip(over, np.nan_to_num(gains).tolist(), strict=True):
            self.cash += order.row["stake"] * (1.0 + gain)


def _trade(row: Mapping[str, Any], stake: float, now: int) -> dict[str, Any]:
    same = ("sport", "league", "home_team", "away_team", "is_live", "player_name", "team_side", "selection",
            "selection_type", "line", "sportsbook", "odds_decimal", "net_odds", "fair_probability", "push_probability",
            "odds_id", "market_segment")  # fmt: skip
    start = row["event_start_time"]
    return {
        "placed_at": moments_of(np.array([now], np.int64)).to_list()[0],
        "event_id": row["event_id"],
        "market_type": row["market_type"],
        "event_start_time": start,
        "ev": row["ev_percentage"] / 100.0,
        "stake": stake,
        "start": 1 << 60 if start is None else round(start.timestamp() * SECOND),
        **{name: row[name] for name in same},
    }
