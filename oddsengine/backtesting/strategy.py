"""Backtesting and paper trading of betting strategies.

A `Strategy` decides which +EV prices to bet on, and the stakes. A `Trader` applies it to an engine with paper money: it
reads the view after each step, places orders, and receives fills after the latency. `backtest` replays a history
through an engine with a trader, so both share one implementation, and decisions only see the board at that time.

**Fills.** An order is due after `latency_s` seconds, in play after the venue's `bet_delay` as well, and answered by the
next step: filled if the price is still available, not suspended, and at most the tolerance below the odds of the
decision; at those odds, or the lower ones.
Otherwise it is rejected with a reason. A step more than `ANSWER_S` later, as in a history of opening and closing
odds, does not tell what the book would have answered: the order is filled at the odds of the decision, as `unobserved`.
If the snapshots of an event are usually further apart than that (`sparse`), so is every order whose price is not seen
again in that time, although there are snapshots of other events, and those that wait at the end of the history.
Stakes are whole steps, within limits, and within the cash that is not in open bets. Each outcome of a market is bet on
at most once, at any book.

**Results.** By the final score, if known and decisive (`staking.outcomes.settled`); else by the closing line, the
mean profit at the fair price of the other books' close (`backtesting.grading`), less the share of stakes that a push on
a whole or quarter line returns; else there is none. Standard errors are clustered by event.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.calibrations import Fair, fair_by_time
from oddsengine.backtesting.closes import Closes
from oddsengine.backtesting.formats import History, is_own_format
from oddsengine.backtesting.grading import bet_gains, closing_evs, final_scores, why_no_close
from oddsengine.backtesting.replay import cadence, check_books, engine_of, source, span, steps
from oddsengine.backtesting.summary import BacktestSummary, counts, event_codes, returned
from oddsengine.board.facts import moments_of
from oddsengine.bounds import check_number
from oddsengine.columns import SECOND, Floats
from oddsengine.detection.model_input import IntoModel, read_model
from oddsengine.detection.question import Sharp
from oddsengine.history.clv import means
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.maths import scoring
from oddsengine.maths.devig import Method
from oddsengine.progress import ticking
from oddsengine.staking.rules import stake_rules
from oddsengine.staking.stakes import kelly_portfolio
from oddsengine.tables.casts import TIME
from oddsengine.tables.column_names import Columns
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.levels import BET_DELAY
from oddsengine.tables.schema import OddsError, with_games
from oddsengine.tables.timestamps import micros
from oddsengine.tape import Tape

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

RESULT_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "closing_ev": pl.Float64,  # fraction: EV at the other books' close, given no push
    "gain": pl.Float64,  # per unit staked, by the score
    "graded_by": pl.String,  # score; close, if there is only an expected profit; or null
    "profit": pl.Float64,  # by the score
    "expected_profit": pl.Float64,  # at the other books' close
    "no_close": pl.String,  # why `closing_ev` is null
    "no_result": pl.String,  # why the `gain` of a filled order is null
}
"""Columns that `backtest` adds to those of `TRADES_SCHEMA`."""

_OPTIONAL = {"max_ev": -np.inf, "max_odds": 1.0, "max_hours": 0.0, "max_bet": 0.0, "max_event": 0.0}
"""Limits of a `Strategy` that may be None, and their minimum."""

_HOURS = [1.0, 3.0, 6.0, 12.0, 24.0, 48.0]
_HOUR_NAMES = ["<1", "1-3", "3-6", "6-12", "12-24", "24-48", ">48"]
STATUSES = ("waiting", "filled", "rejected")
ANSWER_S = 1800  # s: the longest time from when an order is due to the step that answers it
_MOST_S = 31_536_000  # s: a year
UNOBSERVED = "unobserved"
"""Reason of an order that was filled without such a step."""
Staking = Literal["flat", "kelly", "portfolio"]


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A betting rule: which +EV prices to bet on, and the stakes.

    Subclasses can override `choose` and `stakes`.

    Parameters
    ----------
    books, sharp, method, commission, model
        As for `Engine.view`: EV is measured against the fair price at the close unless `sharp`, another `method` or a
        `model` is given.
    min_ev, max_ev
        Expected value in percent.
    min_odds, max_odds
        Decimal odds.
    sports, markets
        Ids of sports and market types; None is all.
    live
        Whether to bet on live prices.
    max_hours
        Maximum hours before the start.
    staking
        "flat": `size` of the initial bankroll on each. "kelly": `size` of the Kelly stake. "portfolio": `size` of the
        growth-optimal stakes on simultaneous bets (`kelly_portfolio`).
    size
        See `staking`.
    max_bet, max_event
        Maximum stake on a bet and on an event; the maximum bet of a price applies as well.
    step
        Stakes are whole multiples of this.

    Examples
    --------
    >>> Strategy(min_ev=3.0, books=("fanduel", "betmgm"), staking="flat", size=0.01).books
    ('fanduel', 'betmgm')
    >>> class Favourites(Strategy):
    ...     def choose(self, rows):
    ...         return rows.filter(pl.col("odds_decimal") < 2.0)
    >>> Favourites(min_ev=3.0).choose(pl.DataFrame({"odds_decimal": [1.8, 2.4]})).height
    1
    """

    books: tuple[str, ...] | None = None
    sharp: Sharp = None
    method: Method | None = None
    commission: Mapping[str, float] | None = None
    model: IntoModel | None = field(default=None, compare=False)
    min_ev: float = 2.0
    max_ev: float | None = None
    min_odds: float = 1.0
    max_odds: float | None = None
    sports: tuple[str, ...] | None = None
    markets: tuple[str, ...] | None = None
    live: bool = False
    max_hours: float | None = None
    staking: Staking = "kelly"
    size: float = 0.25
    max_bet: float | None = None
    max_event: float | None = None
    step: float = 0.01

    def __post_init__(self) -> None:
        if self.staking not in ("flat", "kelly", "portfolio"):
            raise ValueError(f"staking must be flat, kelly or portfolio, got {self.staking!r}")
        check_number("size", self.size, above=0.0, most=1.0)
        check_number("step", self.step, above=0.0)
        check_number("min_ev", self.min_ev)
        check_number("min_odds", self.min_odds)
        for name, least in _OPTIONAL.items():
            check_number(name, getattr(self, name), least, optional=True)
        for name in ("sports", "markets"):
            if isinstance(value := getattr(self, name), str):
                raise ValueError(f"{name} must be a list of names, got {value!r}")
        for name in self.sports or ():
            if name not in catalog.sports():
                raise ValueError(f"sports must be among {', '.join(catalog.sports())}, got {name!r}")

    def choose(self, ev: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a frame of +EV prices (`EV_SCHEMA`) to bet on."""
        keep = (pl.col("net_odds") >= self.min_odds) & ~pl.col("unconfirmed")
        if not self.live:
            keep &= ~pl.col("is_live")
        if self.max_ev is not None:
            keep &= pl.col("ev_percentage") <= self.max_ev
        if self.max_odds is not None:
            keep &= pl.col("net_odds") <= self.max_odds
        if self.sports is not None:
            keep &= pl.col("sport").is_in(self.sports)
        if self.markets is not None:
            keep &= pl.col("market_type").is_in(self.markets)
        if self.max_hours is not None:
            keep &= (pl.col("event_start_time") - pl.col("detected_at")).dt.total_seconds() <= self.max_hours * 3600.0
        return ev.filter(keep)

    def stakes(self, chosen: pl.DataFrame, bankroll: float, start: float) -> Floats:
        """Return the stake on each chosen row, before limits and steps, given the current and initial bankroll.

        Parameters
        ----------
        chosen
            The rows that `choose` returned.
        bankroll
            What the bankroll is now.
        start
            What it was at first.
        """
        if self.staking == "flat":
            return np.full(chosen.height, self.size * start)
        if self.staking == "portfolio":
            portfolio = kelly_portfolio(chosen, bankroll=bankroll, fraction=self.size, max_event=self.max_event)
            return portfolio.bets["stake"].to_numpy()
        return chosen["kelly_percent"].to_numpy() * (self.size * bankroll)


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
            raise ValueError(f"tolerance must be from 0 to below 1, got {tolerance!r}")
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


@dataclass(frozen=True)
class Backtest:
    """Result of a backtest.

    Attributes
    ----------
    trades
        `TRADES_SCHEMA` and `RESULT_SCHEMA`, in order of decision.
    bankroll
        Initial bankroll.
    cadence_s
        Median number of seconds between two snapshots of an event; nan if unknown, as for a tape.
    """

    trades: pl.DataFrame
    bankroll: float
    strategy: Strategy = field(default_factory=Strategy)
    cadence_s: float = math.nan

    @property
    def bets(self) -> pl.DataFrame:
        """The filled orders."""
        return self.trades.filter(status="filled")

    def equity(self) -> pl.DataFrame:
        """Bankroll over time: `at`, the start of each event with a result, and `bankroll` after it."""
        return self._over_time("profit")

    def expected_equity(self) -> pl.DataFrame:
        """Bankroll over time as `equity`, with the expected profit at the close of each bet instead of its result."""
        return self._over_time("expected_profit")

    def _over_time(self, profit: str) -> pl.DataFrame:
        settled = self.bets.drop_nulls(profit).with_columns(at=pl.coalesce("event_start_time", "placed_at"))
        by_time = settled.group_by("at").agg(pl.col(profit).sum()).sort("at")
        return by_time.select("at", bankroll=self.bankroll + pl.col(profit).cum_sum())

    def summary(self) -> BacktestSummary:
        """Summary figures; printed, one per line."""
        bets = self.bets
        settled = bets.drop_nulls("gain")
        stakes = settled["stake"].to_numpy()
        result = returned(event_codes(settled), stakes, settled["gain"].to_numpy())
        others = bets.filter(graded_by="close")
        expected = returned(
            event_codes(others), others["stake"].to_numpy(), (others["expected_profit"] / others["stake"]).to_numpy()
        )
        close = means(bets["closing_ev"].fill_null(np.nan).to_numpy(), np.zeros(bets.height, int), event_codes(bets), 1)
        path = np.concatenate([[self.bankroll], self.equity()["bankroll"].to_numpy()])
        status = dict(self.trades["status"].value_counts().iter_rows())
        reasons = self.trades.filter(status="rejected")["reason"].value_counts(sort=True)
        return BacktestSummary(
            self.trades.height, bets.height, bets.filter(reason=UNOBSERVED).height, status.get("waiting", 0),
            dict(reasons.iter_rows()), bets["event_id"].n_unique(), float(stakes.sum()), result.profit,
            result.rate, result.error, _mean(bets["ev"]), int(close.size[0]), float(close.mean[0]),
            float(close.error[0]),
            settled.height, others.height, float(others["stake"].sum()), expected.profit, expected.rate, expected.error,
            float(scoring.drawdown(np.maximum(path, 1e-9)).max()) if settled.height else math.nan,
            counts(bets["no_close"]), counts(bets["no_result"]), self.cadence_s, self.cadence_s > ANSWER_S,
        )  # fmt: skip

    def by(self, column: str) -> pl.DataFrame:
        """Mean EV and closing EV of the bets by a column of `trades`, with standard errors clustered by event.

        `hours` groups by the time from decision to start.
        """
        bets = self.bets
        if column == "hours":
            hours = (bets["event_start_time"] - bets["placed_at"]).dt.total_seconds() / 3600.0
            at = np.searchsorted(_HOURS, hours.fill_null(0.0).to_numpy())
            bets = bets.with_columns(hours=pl.Series(_HOUR_NAMES).gather(at))
        groups = bets[column].cast(pl.String).fill_null("").unique().sort()
        place = {name: at for at, name in enumerate(groups.to_list())}
        of = np.array([place[name] for name in bets[column].cast(pl.String).fill_null("").to_list()], np.int64)
        ev = means(bets["ev"].to_numpy(), of, event_codes(bets), len(place))
        close = means(bets["closing_ev"].fill_null(np.nan).to_numpy(), of, event_codes(bets), len(place))
        frame = pl.DataFrame(
            {
                column: groups,
                "bets": ev.size,
                "ev": ev.mean,
                "graded": close.size,
                "closing_ev": close.mean,
                "error": close.error,
            }
        )
        if column == "hours":
            return frame.sort(pl.col("hours").replace_strict(_HOUR_NAMES, range(len(_HOUR_NAMES)), default=-1))
        return frame.sort("graded", "bets", column, descending=[True, True, False])


def _mean(column: pl.Series) -> float:
    mean = column.mean()
    return float("nan") if mean is None else float(mean)  # type: ignore[arg-type]


def backtest(
    history: Any,
    strategy: Strategy,
    *,
    bankroll: float = 1000.0,
    latency_s: float = 5.0,
    tolerance: float = 0.0,
    settle_hours: float = 3.0,
    results: IntoFrame | None = None,
    columns: Columns | None = None,
    fair: Fair = None,
    every: float = 1.0,
    progress: bool | Callable[[int], None] = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Backtest:
    """Backtest a strategy on a history.

    Parameters
    ----------
    history
        As for `scan_history`: a frame, a lazy query, the path of a table, of an archive or of seasons of
        football-data.co.uk (``"E0.csv"``), or the folder of a tape.
    strategy
        The betting rule.
    bankroll, latency_s, tolerance, settle_hours
        As for `Trader`.
    results
        Final scores: `event_id`, `home_score` and `away_score` (or `home_goals` and `away_goals`). None: those in the
        history, if any.
    columns
        Names of the history's columns, as for `check_odds`: ``{"seen": "last_seen_at"}``.
    fair, every, progress, storage_options
        As for `scan_history`. Grades by the close use the constants in force at the end.

    Returns
    -------
    Backtest
        Trades with their results, and summaries.

    Raises
    ------
    ValueError
        If the history or a parameter is invalid, or a book occurs neither in the history nor in the catalog.

    Examples
    --------
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> summary = backtest(SAMPLE_BOARD, Strategy(min_ev=5.0, staking="flat", size=0.01)).summary()
    >>> summary.placed, summary.filled, summary.no_result
    (2, 2, {'no score; no snapshot in the 30 minutes before the start': 2})
    """
    fair_at = None if fair is None else fair_by_time(fair)
    if strategy.model is not None:
        strategy = replace(strategy, model=read_model(strategy.model, _events(history, columns)))
    past, cadence_s = cadence(source(history, every, storage_options, columns))
    engine = engine_of(past)
    trader = Trader(
        engine, strategy, bankroll=bankroll, latency_s=latency_s, tolerance=tolerance, settle_hours=settle_hours,
        sparse=cadence_s > ANSWER_S,
    )  # fmt: skip
    scores = final_scores(results if results is not None else getattr(past, "results", None))
    for event, (home, away) in scores.items():
        trader.settle(event, home, away)
    closes = Closes(engine)
    with ticking(span(past), progress=progress) as tick:
        for now, update, _ in steps(engine, past, fair_at):
            trader.follow(update)
            closes.follow(now)
            tick(now)
    trader.finish()
    check_books(engine, trader.view)
    graded = _graded(trader.trades(), closes.take_closed(everything=True), scores, engine.fair)
    return Backtest(graded, bankroll, strategy, cadence_s)


def _events(history: Any, columns: Columns | None) -> pl.DataFrame:
    """The events of a history, which a model need not repeat; none of a file."""
    if not isinstance(history, pl.LazyFrame):
        if isinstance(history, str | os.PathLike | History | Tape):
            return pl.DataFrame()
        history = to_polars(history).lazy()
    history = with_games(history, columns, turn=not is_own_format(history.collect_schema().names()))
    known = history.collect_schema().names()
    names = [name for name in ("event_id", "sport", "league", "home_team", "away_team") if name in known]
    events: pl.DataFrame = history.select(names).unique(maintain_order=True).collect()
    return events


def _graded(
    trades: pl.DataFrame,
    closes: pl.DataFrame | None,
    scores: Mapping[str, tuple[float, float]],
    table: catalog.FairTable,
) -> pl.DataFrame:
    closing = closing_evs(trades, closes, table)
    gain = bet_gains(trades, scores)
    filled = (trades["status"] == "filled").to_numpy()
    expected = closing * (1.0 - trades["push_probability"].fill_null(0.0).to_numpy()) * trades["stake"].to_numpy()
    without = (
        pl.when(pl.col("event_id").is_in(list(scores)))
        .then(pl.lit("not settled by the score"))
        .otherwise(pl.lit("no score"))
    )
    graded = trades.with_columns(
        closing_ev=pl.Series(closing, dtype=pl.Float64, nan_to_null=True),
        gain=pl.Series(np.where(filled, gain, np.nan), dtype=pl.Float64, nan_to_null=True),
        expected_profit=pl.Series(np.where(filled, expected, np.nan), dtype=pl.Float64, nan_to_null=True),
    ).with_columns(
        graded_by=pl.when(pl.col("gain").is_not_null())
        .then(pl.lit("score"))
        .when(pl.col("expected_profit").is_not_null())
        .then(pl.lit("close")),
        profit=pl.col("gain") * pl.col("stake"),
        no_close=why_no_close(closes, pl.col("closing_ev")),
        no_result=pl.when(pl.Series(filled) & pl.col("gain").is_null()).then(
            pl.concat_str(without, why_no_close(closes, pl.col("closing_ev")), separator="; ", ignore_nulls=True)
        ),
    )
    return graded.select(*trades.columns, *RESULT_SCHEMA)
