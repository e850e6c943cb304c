"""Accounts: stakes on what a strategy chose, the orders that are sent to a venue, and what its answers make of them.

Stakes are whole steps, within limits, and within the cash that is not in open bets. **Money that was sent and is not
answered counts as staked**, all of it, also if the venue could not be reached: it may have taken the order. So does
that of legs which are not sent yet (`positions`). An order is sent once. If it could not be sent, it is cancelled,
since only the venue knows whether it has it.

An account halts by itself after too many rejections in a row, after too large a loss on a day, and after an answer that
cannot be true. Then nothing is sent but cancellations, until it is resumed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from oddsengine.backtesting.grading import bet_gains
from oddsengine.backtesting.positions import POSITIONS_SCHEMA, Position, split
from oddsengine.backtesting.strategy import Strategy
from oddsengine.backtesting.trades import BET_FACTS, NOT_SENT, TRADES_SCHEMA, Trade
from oddsengine.board.facts import moments_of
from oddsengine.bounds import check_number, excerpt, is_number
from oddsengine.columns import SECOND
from oddsengine.execution.paper import MOST_S
from oddsengine.execution.venues import BetAnswer, BetOrder, BetVenue, order_id, read_answer
from oddsengine.staking.rules import stake_rules
from oddsengine.tables.levels import BET_DELAY

BY_HAND = "by hand"
"""Why an account has halted, if nobody gave a reason."""
_OF_VENUE = ("external_event_id", "selection_id", "deep_link")  # names that an adapter may need
_DAY = 86_400 * SECOND
_NEVER = 1 << 60
_MOST_ODDS = 1e6
_SAME = 1.0 + 1e-9


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
        self._planned: dict[str, Trade] = {}
        self._waiting: dict[str, Trade] = {}
        self._open: list[Trade] = []
        self._now, self._sent = 0, 0  # time of the last step; how many orders were sent
        self._today: list[Trade] = []  # sent on the day of the last step, or planned
        self._positions: list[Position] = []
        self._unfinished: list[Position] = []  # those with legs that are not sent yet
        self._cancelling: dict[str, None] = {}  # ids of orders whose cancellation the venue has not heard
        self._cancelled: set[str] = set()
        self._rejections = 0  # in a row
        self._result = (0, 0.0)  # a day, and what was won on it less what was lost
        self._scores: dict[str, tuple[float, float]] = {}
        self._unscored: list[Trade] = []  # released without a score
        self._new_scores: set[str] = set()  # events

    def __repr__(self) -> str:
        """Its money, and why it has halted."""
        halted = "" if self.halted is None else f", halted: {self.halted}"
        planned = f", {len(self._planned)} planned" if self._planned else ""
        return f"cash {self.cash:,.2f}, {len(self._open)} open, {len(self._waiting)} waiting{planned}{halted}"

    def follow(self, now: int, chosen: pl.DataFrame | None, legs: pl.DataFrame | None = None) -> int:
        """Process a step: release what is over, hear answers, and place orders. Returns how many.

        Parameters
        ----------
        now
            The time, microseconds.
        chosen
            +EV prices that were chosen, best first.
        legs
            Legs of the arbitrages and low holds that were chosen, best first, those of each in the order in which they
            are sent (`opportunity_legs`).
        """
        if now // _DAY != self._now // _DAY:
            self._today = list(self._planned.values())
        self._now, before = now, self._sent
        self._release(now)
        self.receive()
        self._cancel()
        if self.halted is None and not (chosen is None and legs is None):
            sent = self._sent
            self._place(chosen, legs)
            if self._sent > sent:
                self.receive()  # without latency
        return self._sent - before

    def receive(self) -> None:
        """Process the answers of the venue, and send the legs that waited for them."""
        self._hear()
        while self._send_next():
            self._hear()

    def _hear(self) -> None:
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

    def positions(self) -> pl.DataFrame:
        """Return all arbitrages and low holds in order of decision, in `POSITIONS_SCHEMA`."""
        return pl.DataFrame([position.row() for position in self._positions], schema=POSITIONS_SCHEMA)

    def settle(self, event_id: str, home_score: float, away_score: float) -> None:
        """Record a final score; bets on the event are paid when they are due."""
        self._scores[event_id] = (home_score, away_score)
        self._new_scores.add(event_id)

    def halt(self, reason: str) -> None:
        """Place no more orders, and cancel those that are not answered; whatever the reason is, it halts.

        Legs that are not sent yet are not sent later.
        """
        if self.halted is None:
            self.halted = reason if isinstance(reason, str) and reason.strip() else BY_HAND
            self._drop(list(self._planned.values()), "halted")
            self._cancelling.update(dict.fromkeys(order for order in self._waiting if order not in self._cancelled))
            self._cancel()
            if reason is not None and not isinstance(reason, str):
                self.halted = excerpt(reason)

    def resume(self) -> None:
        """Place orders again; rejections and the result of the day are counted from now."""
        self.halted, self._rejections, self._result = None, 0, (0, 0.0)

    # ---- orders ----

    def _place(self, chosen: pl.DataFrame | None, legs: pl.DataFrame | None) -> None:
        """Place arbitrages, then +EV prices, then low holds."""
        bankroll = self.cash + _staked(self._standing(), lambda _: True)
        if bankroll <= 0.0:
            return
        several = [] if legs is None else legs.partition_by("id", maintain_order=True)
        for rows in several:
            if rows["kind"][0] == "arbitrage":
                self._place_legs(rows.rows(named=True), bankroll)
        if chosen is not None:
            self._place_prices(chosen, bankroll)
        for rows in several:
            if rows["kind"][0] != "arbitrage":
                self._place_legs(rows.rows(named=True), bankroll)

    def _place_prices(self, chosen: pl.DataFrame, bankroll: float) -> None:
        stakes = np.asarray(self._strategy.stakes(chosen, bankroll, self.start), dtype=np.float64)
        for row, stake in zip(chosen.iter_rows(named=True), stakes.tolist(), strict=True):
            if self.halted is not None:
                return
            rules = stake_rules(row, self._strategy.step)
            money = rules.whole(min(stake, *self._room(row).values()))
            if money > 0.0 and rules.allows(money):
                order = self._order(row, 0, money)
                if order.id not in self._trades:
                    self._send(self._plan(order, "ev", row["id"], 0, row["ev_percentage"] / 100.0))

    def _place_legs(self, legs: Sequence[Mapping[str, Any]], bankroll: float) -> None:
        """Plan all legs of an opportunity, and send the first; nothing, if they do not fit."""
        total = self._strategy.total_stake(bankroll, self.start)
        check_number("total_stake", total)
        rules = [stake_rules(leg, self._strategy.step) for leg in legs]
        odds = [leg["net_odds"] for leg in legs]
        stakes = split(self._units(legs, total), odds, rules)
        is_allowed = all(stake > 0.0 and rule.allows(stake) for stake, rule in zip(stakes, rules, strict=True))
        orders = [self._order(leg, leg["leg"], stake) for leg, stake in zip(legs, stakes, strict=True)]
        if self.halted is not None or not is_allowed or any(order.id in self._trades for order in orders):
            return
        payout = min(stake * each for stake, each in zip(stakes, odds, strict=True))
        if sum(stakes) > payout * self._strategy.most_cost(legs[0]["kind"]) * _SAME:
            return  # as rounding has made a loss of a profit
        trades = [
            self._plan(order, leg["kind"], leg["id"], leg["leg"], None)
            for order, leg in zip(orders, legs, strict=True)
        ]  # fmt: skip
        lots = [stake_rules(leg).step or 0.0 for leg in legs]
        position = Position(self._now, legs[0]["shown"], trades, rules, lots, sum(stakes))
        self._positions.append(position)
        self._unfinished.append(position)
        self._send(trades[0])

    def _order(self, row: Mapping[str, Any], leg: int, stake: float) -> BetOrder:
        """The order for a +EV price or a leg, as if it were sent now."""
        odds = row["odds_decimal"]
        return BetOrder(
            order_id(row["id"], leg, self._now), row["sportsbook"], row["odds_id"], odds,
            odds * (1.0 - self._tolerance), row["net_odds"], stake, row["is_live"], row.get(BET_DELAY) or 0.0,
            self._now, {name: row[name] for name in BET_FACTS} | {name: row.get(name) for name in _OF_VENUE},
        )  # fmt: skip

    def _units(self, legs: Sequence[Mapping[str, Any]], total: float) -> float:
        """The most units of payout of each leg that a stake buys, and all limits allow together."""
        cost, room = defaultdict[tuple[str, str], float](float), {("total", ""): total}
        for leg in legs:
            own = self._room(leg)
            room |= own
            for limit in (*own, ("total", "")):
                cost[limit] += 1.0 / leg["net_odds"]
        return min(left / cost[limit] for limit, left in room.items())

    def _room(self, row: Mapping[str, Any]) -> dict[tuple[str, str], float]:
        """What may still be staked within each limit that applies to a bet."""
        strategy, room = self._strategy, {("cash", ""): self.cash}
        limits = [limit for limit in (strategy.max_bet, row["max_bet"]) if limit is not None]
        if limits:
            same = _staked(self._standing(), lambda trade: _is_on(trade.order, row))
            room["bet", row["odds_id"]] = min(limits) - same
        book, event = row["sportsbook"], row["event_id"]
        if strategy.max_event is not None:
            on_event = _staked(self._standing(), lambda trade: trade.order.bet["event_id"] == event)
            room["event", event] = strategy.max_event - on_event
        if strategy.max_daily_stake is not None:
            room["day", ""] = strategy.max_daily_stake - _staked(self._today, lambda _: True)
        of_venue = strategy.venue_limit(book)
        if of_venue is not None:
            room["book", book] = of_venue - _staked(self._today, lambda trade: trade.order.sportsbook == book)
        return room

    def _standing(self) -> tuple[Trade, ...]:
        """The bets whose stakes are not released, and those that may become some."""
        return (*self._open, *self._waiting.values(), *self._planned.values())

    def _plan(self, order: BetOrder, kind: str, opportunity: str, leg: int, ev: float | None) -> Trade:
        """An order that will be sent; from now on its stake counts."""
        start = order.bet["event_start_time"]
        starts = _NEVER if start is None else round(start.timestamp() * SECOND)
        trade = Trade(order, kind, opportunity, leg, starts, order.odds, order.net_odds, ev)
        self._trades[order.id] = self._planned[order.id] = trade
        self._today.append(trade)
        self.cash -= order.stake
        return trade

    def _send_next(self) -> bool:
        """Send the legs for which those before have been answered; whether there was one."""
        before, unfinished = self._sent, self._unfinished
        for position in unfinished:
            left = position.left
            if position.is_waiting or not left:
                continue
            stake, order = position.next_stake(), left[0].order
            sent = max(trade.answered for trade in position.trades)
            if stake <= 0.0:
                self._drop(left, "too small" if position.least_payout > 0.0 else "leg before failed")
                continue
            if left[0].starts <= sent and not order.is_live:
                self._drop(left, "event started")
                continue
            self.cash += order.stake - stake
            left[0].order = order._replace(stake=stake, sent=sent)
            self._send(left[0])
        self._unfinished = [position for position in unfinished if position.left]
        return self._sent > before

    def _drop(self, trades: Iterable[Trade], reason: str) -> None:
        """Legs that were planned are not sent; their stakes are free."""
        for trade in trades:
            del self._planned[trade.order.id]
            trade.status, trade.reason = "not sent", reason
            self.cash += trade.order.stake

    def _send(self, trade: Trade) -> None:
        """Send an order that was planned; it waits before the venue hears of it."""
        order = trade.order
        del self._planned[order.id]
        trade.status, self._waiting[order.id] = "waiting", trade
        self._sent += 1
        try:
            self._venue.place(order)
        except OSError as error:
            trade.reason = f"not confirmed: {excerpt(str(error) or type(error).__name__)}"
            self._cancelling[order.id] = None
            self._rejected()

    def _cancel(self) -> None:
        """Send the cancellations that the venue has not heard."""
        for order in list(self._cancelling):
            if order in self._waiting:
                try:
                    self._venue.cancel(order)
                except OSError:
                    continue
                self._cancelled.add(order)
            del self._cancelling[order]

    def _rejected(self) -> None:
        self._rejections += 1
        most = self._strategy.max_rejections
        if most is not None and self._rejections >= most:
            self.halt(f"orders rejected in a row: {self._rejections}")

    # ---- answers ----

    def _apply(self, answer: BetAnswer) -> None:
        """Process an answer. Until one can be true, the whole order counts as staked."""
        trade = self._trades.get(answer.order)
        if trade is None or trade.status in NOT_SENT:
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
            if answer.odds is not None:
                trade.odds = answer.odds
            elif order.net_odds > 1.0:
                trade.odds = 1.0 + (order.odds - 1.0) * (trade.net_odds - 1.0) / (order.net_odds - 1.0)
            if trade.ev is not None:
                trade.ev = trade.net_odds * bet["fair_probability"] - 1.0
        if not answer.final:
            return
        trade.answered = self._now if answer.at is None else min(answer.at, self._now)
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
        begun = now - self._settled_after
        self._drop([trade for trade in self._planned.values() if trade.starts <= begun], "event over")
        ends = [trade for trade in self._open if trade.starts <= begun]
        unanswered = {trade.opportunity for trade in self._waiting.values() if trade.kind != "ev"} if ends else set()
        over = [trade for trade in ends if trade.opportunity not in unanswered]  # a position is released as a whole
        new, self._new_scores = self._new_scores, set()
        late = [trade for trade in self._unscored if trade.order.bet["event_id"] in new] if new else []
        if not (over or late):
            return
        released = set(map(id, over))
        self._open = [trade for trade in self._open if id(trade) not in released]
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


def _is_on(order: BetOrder, row: Mapping[str, Any]) -> bool:
    """Whether an order takes what a price has before the start, or in play."""
    return bool(order.odds_id == row["odds_id"] and order.is_live == row["is_live"])


def _staked(trades: Iterable[Trade], which: Callable[[Trade], bool]) -> float:
    return sum(trade.staked for trade in trades if which(trade))
