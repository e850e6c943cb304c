"""Accounts: stakes on what a strategy chose, the orders that are sent to a venue, and what its answers make of them.

Stakes are whole steps, within limits, and within the cash that is not in open bets. **Money that was sent and is not
answered counts as staked**, all of it, also if the venue could not be reached: it may have taken the order. An order is
sent once. If it could not be sent, it is cancelled, since only the venue knows whether it has it.

An account halts by itself after too many rejections in a row, after too large a loss on a day, and after an answer that
cannot be true. Then nothing is sent but cancellations, until it is resumed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from oddsengine.backtesting.grading import bet_gains
from oddsengine.backtesting.strategy import Strategy
from oddsengine.board.facts import moments_of
from oddsengine.bounds import check_number, excerpt, is_number
from oddsengine.columns import SECOND
from oddsengine.execution.paper import MOST_S
from oddsengine.execution.venues import BetAnswer, BetOrder, BetVenue, read_answer
from oddsengine.staking.rules import stake_rules
from oddsengine.tables.casts import TIME
from oddsengine.tables.levels import BET_DELAY

TRADES_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "placed_at": TIME,
    "status": pl.String,  # one of `STATUSES`
    "reason": pl.String,  # why it was rejected, or not filled in whole; or `UNOBSERVED`
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
    "net_odds": pl.Float64,  # after fees
    "fair_probability": pl.Float64,  # given no push
    "push_probability": pl.Float64,  # null if unknown
    "ev": pl.Float64,  # fraction, at the odds above, given no push
    "wanted": pl.Float64,  # stake of the order
    "stake": pl.Float64,  # filled
    "odds_id": pl.String,
    "order_id": pl.String,
}
"""Columns of `Account.trades`."""

_BET = (
    "event_id", "sport", "league", "home_team", "away_team", "event_start_time", "market_type", "market_segment",
    "player_name", "team_side", "selection", "selection_type", "line", "fair_probability", "push_probability",
)  # fmt: skip
_OF_VENUE = ("external_event_id", "selection_id", "deep_link")  # names that an adapter may need
BY_HAND = "by hand"
"""Why an account has halted, if nobody gave a reason."""
STATUSES = ("waiting", "filled", "rejected")
"""Not answered finally; filled, in whole or in part; not filled."""
_DAY = 86_400 * SECOND
_NEVER = 1 << 60
_MOST_ODDS = 1e6
_SAME = 1.0 + 1e-9


@dataclass(slots=True, eq=False)
class Trade:
    """One order, from its decision."""

    order: BetOrder
    starts: int  # of its event, microseconds; a large number if unknown
    odds: float  # of the fill, or of the order
    net_odds: float
    ev: float
    status: str = "waiting"
    reason: str | None = None
    stake: float = 0.0  # filled so far

    @property
    def staked(self) -> float:
        """Money that it took, or may have taken."""
        return self.order.stake if self.status == "waiting" else self.stake

    def row(self) -> dict[str, Any]:
        """Return it in `TRADES_SCHEMA`."""
        order = self.order
        return {
            **{name: order.bet[name] for name in _BET},
            "placed_at": moments_of(np.array([order.sent], np.int64)).to_list()[0], "status": self.status,
            "reason": self.reason, "is_live": order.is_live, "sportsbook": order.sportsbook,
            "odds_decimal": self.odds, "net_odds": self.net_odds, "ev": self.ev, "wanted": order.stake,
            "stake": self.stake, "odds_id": order.odds_id, "order_id": order.id,
        }  # fmt: skip


class Account:
    """The money of a strategy, and its orders.

    The parameters are those of `Trader`.
    """

    def __init__(
        self, strategy: Strategy, venue: BetVenue, *, bankroll: float, tolerance: float, settle_hours: float
    ) -> None:  # fmt: skip
        check_number("bankroll", bankroll, above=0.0)
        check_number("settle_hours", settle_hours, 0.0, most=MOST_S / 3600)
        if not (is_number(tolerance) and 0.0 <= tolerance < 1.0):
            raise ValueError(f"tolerance must be from 0 to below 1, got {excerpt(tolerance)}")
        self._strategy, self._venue = strategy, venue
        self.start, self.cash = bankroll, bankroll
        self.halted: str | None = None
        self._tolerance = tolerance
        self._settled_after = round(settle_hours * 3600 * SECOND)
        self._trades: dict[str, Trade] = {}  # by id of the order
        self._waiting: dict[str, Trade] = {}
        self._open: list[Trade] = []
        self._today: list[Trade] = []  # sent on the day of the last order
        self._cancelling: dict[str, None] = {}  # ids of orders whose cancellation the venue has not heard
        self._cancelled: set[str] = set()
        self._rejections = 0  # in a row
        self._result = (0, 0.0)  # a day, and what was won on it less what was lost
        self._scores: dict[str, tuple[float, float]] = {}
        self._unscored: list[Trade] = []  # released without a score

    def __repr__(self) -> str:
        """Its money, and why it has halted."""
        halted = "" if self.halted is None else f", halted: {self.halted}"
        return f"cash {self.cash:,.2f}, {len(self._open)} open, {len(self._waiting)} waiting{halted}"

    def follow(self, now: int, chosen: pl.DataFrame | None) -> int:
        """Process a step: release what is over, hear answers, and place orders. Returns how many."""
        self._release(now)
        self.receive()
        self._cancel()
        placed = 0 if chosen is None or self.halted is not None else self._place(chosen, now)
        if placed:
            self.receive()  # without latency
        return placed

    def receive(self) -> None:
        """Process the answers of the venue, if it can be reached."""
        try:
            answers = self._venue.answers()
        except OSError:
            return
        if not isinstance(answers, list | tuple):
            self.halt(f"answers of the venue that are no list: {excerpt(answers)}")
            return
        for given in answers:
            try:
                answer = read_answer(given)
            except ValueError as error:
                self.halt(str(error))
            else:
                self._apply(answer)

    def trades(self) -> pl.DataFrame:
        """Return all orders in order of decision, in `TRADES_SCHEMA`."""
        rows = [trade.row() for trade in self._trades.values()]
        return pl.DataFrame(rows, schema=TRADES_SCHEMA) if rows else pl.DataFrame(schema=TRADES_SCHEMA)

    def settle(self, event_id: str, home_score: float, away_score: float) -> None:
        """Record a final score; bets on the event are paid when they are due."""
        self._scores[event_id] = (home_score, away_score)

    def halt(self, reason: str) -> None:
        """Place no more orders, and cancel those that are not answered; whatever the reason is, it halts."""
        if self.halted is None:
            given = BY_HAND if reason is None else reason if isinstance(reason, str) else excerpt(reason)
            self.halted = given if given.strip() else BY_HAND
            self._cancelling.update(dict.fromkeys(order for order in self._waiting if order not in self._cancelled))
            self._cancel()

    def resume(self) -> None:
        """Place orders again; rejections and the result of the day are counted from now."""
        self.halted, self._rejections, self._result = None, 0, (0, 0.0)

    # ---- orders ----

    def _place(self, chosen: pl.DataFrame, now: int) -> int:
        bankroll = self.cash + sum(trade.staked for trade in (*self._open, *self._waiting.values()))
        if bankroll <= 0.0:
            return 0
        stakes = np.asarray(self._strategy.stakes(chosen, bankroll, self.start), dtype=np.float64)
        if self._today and self._today[-1].order.sent // _DAY != now // _DAY:
            self._today = []
        placed = 0
        for row, stake in zip(chosen.iter_rows(named=True), stakes.tolist(), strict=True):
            rules = stake_rules(row, self._strategy.step)
            money = rules.whole(min(stake, self._most(row)))
            if money > 0.0 and rules.allows(money):
                placed += self._send(_order(row, money, now, self._tolerance), row["ev_percentage"] / 100.0)
            if self.halted is not None:
                break
        return placed

    def _most(self, row: Mapping[str, Any]) -> float:
        """The most that may be staked on a bet."""
        strategy, most = self._strategy, self.cash
        for limit in (strategy.max_bet, row["max_bet"]):
            if limit is not None:
                most = min(most, limit)
        book, event = row["sportsbook"], row["event_id"]
        if strategy.max_event is not None:
            standing = (*self._open, *self._waiting.values())
            most = min(most, strategy.max_event - _staked(standing, lambda trade: trade.order.bet["event_id"] == event))
        if strategy.max_daily_stake is not None:
            most = min(most, strategy.max_daily_stake - _staked(self._today, lambda _: True))
        of_venue = strategy.venue_limit(book)
        if of_venue is not None:
            most = min(most, of_venue - _staked(self._today, lambda trade: trade.order.sportsbook == book))
        return most

    def _send(self, order: BetOrder, ev: float) -> bool:
        """Send an order, unless it has been sent; it counts before the venue hears of it."""
        if order.id in self._trades:
            return False
        start = order.bet["event_start_time"]
        starts = _NEVER if start is None else round(start.timestamp() * SECOND)
        trade = Trade(order, starts, order.odds, order.net_odds, ev)
        self._trades[order.id] = self._waiting[order.id] = trade
        self._today.append(trade)
        self.cash -= order.stake
        try:
            self._venue.place(order)
        except OSError as error:
            trade.reason = f"not confirmed: {excerpt(str(error) or type(error).__name__)}"
            self._cancelling[order.id] = None
            self._rejected()
        return True

    def _cancel(self) -> None:
        """Send the cancellations that the venue has not heard."""
        for order_id in list(self._cancelling):
            if order_id in self._waiting:
                try:
                    self._venue.cancel(order_id)
                except OSError:
                    continue
                self._cancelled.add(order_id)
            del self._cancelling[order_id]

    def _rejected(self) -> None:
        self._rejections += 1
        most = self._strategy.max_rejections
        if most is not None and self._rejections >= most:
            self.halt(f"orders rejected in a row: {self._rejections}")

    # ---- answers ----

    def _apply(self, answer: BetAnswer) -> None:
        """Process an answer. Until one can be true, the whole order counts as staked."""
        trade = self._trades.get(answer.order)
        if trade is None:
            self.halt(f"an answer to an order that was not sent: {excerpt(answer.order)}")
            return
        stake, most, odds = answer.stake, trade.order.stake, answer.odds
        is_over, is_old = trade.status != "waiting", stake < trade.stake / _SAME
        if not (0.0 <= stake <= most * _SAME and stake / _SAME <= answer.payout <= stake * _MOST_ODDS):
            wrong = f"stake {stake:g} of {most:g}, payout {answer.payout:g}"
        elif odds is not None and not 1.0 <= odds <= _MOST_ODDS:
            wrong = f"odds {odds:g}"
        elif (is_over and stake > trade.stake * _SAME) or (is_old and answer.final and not is_over):
            wrong = f"stake {stake:g} after {trade.stake:g}"
        else:
            if not (is_over or is_old):
                self._fill(trade, answer._replace(stake=min(stake, most)))
            return
        trade.reason = f"an answer that cannot be true: {wrong}"
        self.halt(f"{trade.reason}, to order {answer.order}")

    def _fill(self, trade: Trade, answer: BetAnswer) -> None:
        order, bet = trade.order, trade.order.bet
        trade.stake = stake = answer.stake
        if stake > 0.0 and (answer.payout != stake * order.net_odds or answer.odds not in {None, order.odds}):
            trade.net_odds = answer.payout / stake
            share = (trade.net_odds - 1.0) / (order.net_odds - 1.0)
            trade.odds = 1.0 + (order.odds - 1.0) * share if answer.odds is None else answer.odds
            trade.ev = trade.net_odds * bet["fair_probability"] - 1.0
        if not answer.final:
            return
        del self._waiting[order.id]
        self.cash += order.stake - trade.stake
        trade.status, trade.reason = ("filled" if trade.stake > 0.0 else "rejected"), answer.reason
        if trade.stake > 0.0:
            self._open.append(trade)
            self._rejections = 0
        elif order.id not in self._cancelled and order.id not in self._cancelling:
            self._rejected()
        elif trade.reason is None:
            trade.reason = "cancelled"

    def _release(self, now: int) -> None:
        """Release the stakes of finished events, with profits if the score is known, or once it is."""
        over = [trade for trade in self._open if trade.starts + self._settled_after <= now]
        late = [trade for trade in self._unscored if trade.order.bet["event_id"] in self._scores]
        if not (over or late):
            return
        self._open = [trade for trade in self._open if trade.starts + self._settled_after > now]
        ended = [*self._unscored, *over]
        self._unscored = [trade for trade in ended if trade.order.bet["event_id"] not in self._scores]
        bets = pl.DataFrame([trade.row() for trade in (*late, *over)], schema=TRADES_SCHEMA)
        gains = np.nan_to_num(bet_gains(bets, self._scores)).tolist()
        day, result = self._result if self._result[0] == now // _DAY else (now // _DAY, 0.0)
        for at, (trade, gain) in enumerate(zip((*late, *over), gains, strict=True)):
            self.cash += trade.stake * (gain if at < len(late) else 1.0 + gain)  # that of the late ones is back
            result += trade.stake * gain
        self._result = (day, result)
        most = self._strategy.max_daily_loss
        if most is not None and result < 0.0 and -result >= most:
            self.halt(f"lost {-result:,.2f} on {moments_of(np.array([now], np.int64)).to_list()[0]:%Y-%m-%d}")


def _staked(trades: Iterable[Trade], which: Callable[[Trade], bool]) -> float:
    return sum(trade.staked for trade in trades if which(trade))


def _order(row: Mapping[str, Any], stake: float, now: int, tolerance: float) -> BetOrder:
    """The order for a +EV price; it has one leg."""
    odds = row["odds_decimal"]
    return BetOrder(
        f"{row['id'][-16:]}-0-{now:x}", row["sportsbook"], row["odds_id"], odds, odds * (1.0 - tolerance),
        row["net_odds"], stake, row["is_live"], row.get(BET_DELAY) or 0.0, now,
        {name: row[name] for name in _BET} | {name: row.get(name) for name in _OF_VENUE},
    )  # fmt: skip
