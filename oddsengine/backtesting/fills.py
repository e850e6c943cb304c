"""Fills: when an order of paper trading or of a backtest is answered, and at which odds it is filled.

An order is due after `latency_s` seconds, in play after the venue's `bet_delay` as well, and answered by the
next step: filled if the price is still available, not suspended, and at most the tolerance below the odds of the
decision; at those odds, or the lower ones.
Otherwise it is rejected with a reason. A step more than `ANSWER_S` later, as in a history of opening and closing
odds, does not tell what the book would have answered: the order is filled at the odds of the decision, as `unobserved`.
If the snapshots of an event are usually further apart than that (`sparse`), so is every order whose price is not seen
again in that time, although there are snapshots of other events, and those that wait at the end of the history.
Stakes are whole steps, within limits, and within the cash that is not in open bets. Each outcome of a market is bet on
at most once, at any book.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from oddsengine.backtesting.grading import bet_gains
from oddsengine.backtesting.strategy import Strategy
from oddsengine.board.facts import moments_of
from oddsengine.bounds import check_number, excerpt
from oddsengine.columns import SECOND
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.staking.rules import stake_rules
from oddsengine.tables.casts import TIME
from oddsengine.tables.levels import BET_DELAY
from oddsengine.tables.schema import OddsError
from oddsengine.tables.timestamps import micros

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
"""Columns of `Trader.trades`."""

STATUSES = ("waiting", "filled", "rejected")
UNOBSERVED = "unobserved"
"""Reason of an order that was filled without such a step."""
ANSWER_S = 1800  # s: the longest time from when an order is due to the step that answers it
_MOST_S = 31_536_000  # s: a year


@dataclass
class _Order:
    """One bet, from its decision."""

    row: dict[str, Any]
    due: int
    status: str = "waiting"
    reason: str | None = None
    released: bool = False


class Trader:
    """Paper trading: a strategy on an engine.

    Parameters
    ----------
    engine
        The engine; call `follow` with every update.
    strategy
        The betting rule.
    bankroll
        Initial bankroll.
    latency_s
        Seconds from a decision to the book's response. In play the price's `bet_delay` is added.
    tolerance
        Fraction by which the odds may fall in the meantime: with 0.01, 1.98 is accepted for 2.00.
    settle_hours
        Hours after the start at which the stake is released, with its profit if `settle` was called with the score.
    sparse
        Whether snapshots of an event are more than half an hour apart: orders whose price is not seen again are filled
        at the odds of the decision.

    Examples
    --------
    >>> from oddsengine import Engine, World
    >>> world, engine = World(7, events=6), Engine()
    >>> trader = Trader(engine, Strategy(min_ev=1.0, live=True), bankroll=1000.0, latency_s=2.0)
    >>> for batch in world.run(10):
    ...     _ = trader.follow(engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events))
    >>> "filled" in set(trader.trades()["status"])
    True
    """

    def __init__(
        self, engine: Engine, strategy: Strategy, *, bankroll: float = 1000.0, latency_s: float = 5.0,
        tolerance: float = 0.0, settle_hours: float = 3.0, sparse: bool = False,
    ) -> None:  # fmt: skip
        check_number("bankroll", bankroll, above=0.0)
        check_number("latency_s", latency_s, 0.0, most=_MOST_S)
        check_number("settle_hours", settle_hours, 0.0, most=_MOST_S / 3600)
        if not 0.0 <= tolerance < 1.0:
            raise ValueError(f"tolerance must be from 0 to below 1, got {excerpt(tolerance)}")
        self.engine, self.strategy, self.start = engine, strategy, bankroll
        self.cash = bankroll
        self._latency, self._tolerance = round(latency_s * SECOND), tolerance
        self._settled_after = round(settle_hours * 3600 * SECOND)
        self._sparse = sparse
        self.view = engine.view(
            strategy.books, strategy.sharp, strategy.method, commission=strategy.commission, kinds=["ev"],
            min_ev=strategy.min_ev, model=strategy.model, keep=True,
        )  # fmt: skip
        self._orders: list[_Order] = []
        self._waiting: list[_Order] = []
        self._open: list[_Order] = []
        self._taken: set[tuple[Any, ...]] = set()
        self._scores: dict[str, tuple[float, float]] = {}

    def follow(self, update: Update) -> int:
        """Process an update: fill due orders, then decide. Returns the number of new orders."""
        self._release(update.now)
        self._answer(update.now)
        change = update.of(self.view)
        if not change.ids("ev", new=True) and not change.ids("ev", new=False):
            return 0
        placed = self._decide(update.now)
        if self._latency == 0:
            self._answer(update.now)
        return placed

    def trades(self) -> pl.DataFrame:
        """Return all orders in order of decision, in `TRADES_SCHEMA`."""
        rows = [{**order.row, "status": order.status, "reason": order.reason} for order in self._orders]
        return pl.DataFrame(rows, schema=TRADES_SCHEMA) if rows else pl.DataFrame(schema=TRADES_SCHEMA)

    def settle(self, event_id: str, home_score: float, away_score: float) -> None:
        """Record a final score; bets on the event are paid when they are due."""
        self._scores[event_id] = (home_score, away_score)

    def finish(self) -> None:
        """End a sparse history: orders that no update answered are filled, as `unobserved`."""
        if self._sparse and self._waiting:
            self._answer(max(order.due for order in self._waiting))  # none of their prices was seen since

    def _decide(self, now: int) -> int:
        try:
            chosen = self.strategy.choose(self.view.opportunities(["ev"]).ev)
        except pl.exceptions.ColumnNotFoundError as error:
            raise OddsError(f"a strategy chose by a column that +EV prices lack: {error}") from None
        if not chosen.height:
            return 0
        keys = list(
            chosen.select(
                "event_id",
                "market_type",
                "market_segment",
                "player_name",
                "team_side",
                "selection_type",
                "line",
                "is_live",
            ).iter_rows()
        )
        fresh = []
        for at, key in enumerate(keys):
            if key not in self._taken:
                self._taken.add(key)
                fresh.append(at)
        if not fresh:
            return 0
        chosen = chosen[fresh]
        bankroll = self.cash + sum(order.row["stake"] for order in (*self._open, *self._waiting))
        stakes = np.asarray(self.strategy.stakes(chosen, bankroll, self.start), dtype=np.float64)
        most, step = self.strategy.max_bet, self.strategy.step
        placed = 0
        for row, stake in zip(chosen.iter_rows(named=True), stakes.tolist(), strict=True):
            money = min(stake, *(each for each in (most, row["max_bet"]) if each is not None), self.cash)
            if self.strategy.max_event is not None:
                on_event = (*self._open, *self._waiting)
                used = sum(o.row["stake"] for o in on_event if o.row["event_id"] == row["event_id"])
                money = min(money, self.strategy.max_event - used)
            rules = stake_rules(row, step)
            money = rules.whole(money)
            if not (money > 0.0 and rules.allows(money)):
                continue
            delay = round((row.get(BET_DELAY) or 0.0) * SECOND) if row["is_live"] else 0
            order = _Order(_trade(row, money, now), now + self._latency + delay)
            self._orders.append(order)
            self._waiting.append(order)
            self.cash -= money
            placed += 1
        return placed

    def _answer(self, now: int) -> None:
        """Process the orders that are due."""
        due = [order for order in self._waiting if order.due <= now]
        if not due:
            return
        self._waiting = [order for order in self._waiting if order.due > now]
        ids = [order.row["odds_id"] for order in due]
        table = self.engine.table().filter(pl.col("row_id").is_in(ids))
        board = {row["row_id"]: row for row in table.iter_rows(named=True)}
        for order in due:
            offer = board.get(order.row["odds_id"])
            late = now - order.due > ANSWER_S * SECOND or (self._sparse and not _seen_since(offer, order.due))
            reason = UNOBSERVED if late else self._fill(order.row, offer)
            order.status = "filled" if late or reason is None else "rejected"
            order.reason = reason
            if order.status == "filled":
                self._open.append(order)
            else:
                self.cash += order.row["stake"]

    def _fill(self, bet: dict[str, Any], offer: Mapping[str, Any] | None) -> str | None:
        """Fill a bet at the current odds, or reject it with a reason."""
        if offer is None:
            return "gone"
        if not offer["is_active"]:
            return "suspended"
        if offer["is_live"] != bet["is_live"]:
            return "in play"
        if offer["odds_decimal"] < bet["odds_decimal"] * (1.0 - self._tolerance) - 1e-9:
            return "price moved"
        if offer["odds_decimal"] < bet["odds_decimal"]:
            share = (offer["odds_decimal"] - 1.0) / (bet["odds_decimal"] - 1.0)
            bet["odds_decimal"] = offer["odds_decimal"]
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
            order.released = True
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


def _seen_since(offer: Mapping[str, Any] | None, moment: int) -> bool:
    """Whether a price on the board was seen at a time or later."""
    return offer is not None and offer["last_seen_at"] is not None and micros(offer["last_seen_at"]) >= moment
