"""Venues for tests of accounts: one with faults, one that says what it is told to, and bets to send to them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from oddsengine.backtesting.accounts import Account
from oddsengine.backtesting.opportunity_legs import LEGS_SCHEMA
from oddsengine.backtesting.strategy import Strategy
from oddsengine.execution.venues import BetAnswer, BetOrder

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = 86_400_000_000
BOOKS = ("fanduel", "betmgm")
EVENTS = ("e0", "e1", "e2", "e3")
LIMITS = Strategy(
    staking="flat", size=0.2, max_bet=40.0, max_event=90.0, max_daily_stake=140.0,
    max_daily_stake_per_book={"FanDuel": 110.0}, max_rejections=4, max_daily_loss=100.0,
)  # fmt: skip


def micros(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000


def bet(number: int, event: int = 0, book: str = "fanduel", **of: Any) -> dict[str, Any]:
    """A +EV price: the home team, at 2.1, of a game that starts `event` days after the first."""
    return {
        "id": f"ev-{number:016x}", "odds_id": f"{number:016x}", "event_id": EVENTS[event], "sportsbook": book,
        "odds_decimal": 2.1, "net_odds": 2.1, "ev_percentage": 5.0, "fair_probability": 0.5, "push_probability": 0.0,
        "is_live": False, "max_bet": None, "sport": "soccer", "league": "epl", "home_team": "Lakers",
        "away_team": "Celtics", "event_start_time": NOON + timedelta(hours=2, days=event), "market_type": "moneyline",
        "market_segment": "match", "player_name": None, "team_side": None, "selection": "Lakers",
        "selection_type": "home", "line": None, **of,
    }  # fmt: skip


def frame(*bets: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(bets, schema_overrides={"max_bet": pl.Float64, "line": pl.Float64})


def legs(number: int, *prices: tuple[str, float], event: int = 0, kind: str = "arbitrage", **of: Any) -> pl.DataFrame:
    """An arbitrage or a low hold, whose legs are home, away and the draw, in the order in which they are sent."""
    rows = [
        bet(16 * number + at, event, book)
        | {"id": f"arb-{number:016x}", "kind": kind, "shown": 1.0, "leg": at, "odds_decimal": odds, "net_odds": odds}
        | {"selection": ("Lakers", "Celtics", "Draw")[at], "selection_type": ("home", "away", "draw")[at]}
        | {"fair_probability": None, "push_probability": None} | of
        for at, (book, odds) in enumerate(prices)
    ]  # fmt: skip
    return pl.DataFrame([{name: row.get(name) for name in LEGS_SCHEMA} for row in rows], schema=LEGS_SCHEMA)


@dataclass
class Venue:
    """A venue with faults; `chance(n)` is a number below n, 0 for no fault."""

    chance: Callable[[int], int]
    calls: list[str] = field(default_factory=list)  # ids of the orders that were sent, heard or not
    taken: dict[str, BetOrder] = field(default_factory=dict)
    filled: dict[str, float] = field(default_factory=dict)
    final: set[str] = field(default_factory=set)
    said: list[BetAnswer] = field(default_factory=list)
    fresh: list[BetAnswer] = field(default_factory=list)
    watch: Callable[[BetOrder], None] = lambda _: None

    def place(self, order: BetOrder) -> None:
        """Take an order, unless there is a fault."""
        self.watch(order)
        self.calls.append(order.id)
        fault = self.chance(5)
        if fault == 1:
            raise ConnectionError("not sent")
        self.taken[order.id], self.filled[order.id] = order, 0.0
        if fault == 2:
            raise TimeoutError
        if fault == 3:
            self._say(order.id, 0.0, final=True)

    def cancel(self, order_id: str) -> None:
        fault = self.chance(4)
        if fault == 1:
            raise ConnectionError("not sent")
        if order_id not in self.taken:
            self.fresh.append(BetAnswer(order_id, 0.0, 0.0, final=True, reason="unknown order"))
        elif order_id not in self.final:
            self._say(order_id, self.filled[order_id], final=True)
        if fault == 2:
            raise TimeoutError

    def answers(self) -> list[BetAnswer]:
        fault = self.chance(5)
        if fault == 1:
            raise ConnectionError("not reached")
        for order_id, order in self.taken.items():
            if order_id not in self.final and (what := self.chance(4)) < 3:
                left = order.stake - self.filled[order_id]
                self._say(order_id, order.stake - left * (0.0, 1.0, 0.5)[what], final=what < 2)
        if fault == 2:
            raise TimeoutError
        fresh, self.fresh = self.fresh, []
        self.said += fresh
        return fresh + ([self.said[-1], self.said[self.chance(len(self.said))]] if self.said and fault == 3 else [])

    def staked(self, order_id: str) -> float:
        """What it has taken of an order, or may take yet."""
        return self.filled[order_id] if order_id in self.final else self.taken[order_id].stake

    def _say(self, order_id: str, stake: float, *, final: bool) -> None:
        self.filled[order_id] = stake
        if final:
            self.final.add(order_id)
        self.fresh.append(BetAnswer(order_id, stake, stake * self.taken[order_id].net_odds, final=final))


def start(venue: Any, strategy: Strategy = LIMITS, bankroll: float = 250.0) -> Account:
    return Account(strategy, venue, bankroll=bankroll, tolerance=0.0, settle_hours=3.0)


@dataclass
class Script:
    """A venue that says what it is told to."""

    is_down: bool = False
    orders: list[BetOrder] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    fresh: list[BetAnswer] = field(default_factory=list)

    def place(self, order: BetOrder) -> None:
        self.orders.append(order)
        if self.is_down:
            raise ConnectionError("not reached")

    def cancel(self, order_id: str) -> None:
        if self.is_down:
            raise ConnectionError("not reached")
        self.cancelled.append(order_id)

    def answers(self) -> list[BetAnswer]:
        fresh, self.fresh = self.fresh, []
        return fresh

    def say(self, at: int, stake: float, payout: float | None = None, *, final: bool = True) -> None:
        order = self.orders[at]
        self.fresh.append(BetAnswer(order.id, stake, order.net_odds * stake if payout is None else payout, final))


def step(account: Account, *bets: dict[str, Any], at: datetime = NOON, legs: pl.DataFrame | None = None) -> int:
    """Process a step in which some prices are chosen, and some legs."""
    return account.follow(micros(at), frame(*bets) if bets else None, legs)
