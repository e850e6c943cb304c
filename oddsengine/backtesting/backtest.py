"""Backtests of betting strategies.

A `Strategy` decides which +EV prices to bet on, and the stakes. A history is played through an engine, whole or in
parts side by side: `Choices` collects what the strategy chooses at each step, and what stands of these prices when the
book would have answered. Then an `Account` decides on the stakes in order of time, since a bankroll ties all bets
together. A `Trader` does the same step by step, so paper trading and backtests share one implementation, and decisions
only see the board at that time.

**Results.** By the final score, if known and decisive (`staking.outcomes.settled`); else by the closing line, the
mean profit at the fair price of the other books' close (`backtesting.grading`), less the share of stakes that a push on
a whole or quarter line returns; else there is none. Standard errors are clustered by event.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.accounts import Account
from oddsengine.backtesting.calibrations import Fair, fair_by_time
from oddsengine.backtesting.choices import Choices, in_order
from oddsengine.backtesting.closes import Closes
from oddsengine.backtesting.formats import History, is_own_format
from oddsengine.backtesting.grading import bet_gains, closing_evs, final_scores, why_no_close
from oddsengine.backtesting.parts import planned, play
from oddsengine.backtesting.positions import POSITIONS_SCHEMA
from oddsengine.backtesting.replay import cadence, check_books, engine_of, source, steps
from oddsengine.backtesting.strategy import Strategy
from oddsengine.backtesting.summary import BacktestSummary, counts, event_codes, position_summaries, returned
from oddsengine.backtesting.trades import NOT_SENT
from oddsengine.columns import NO_TIME, Longs
from oddsengine.detection.arbitrage_sizes import currency_rates
from oddsengine.detection.model_input import read_model
from oddsengine.execution.attempts import ANSWER_S, UNOBSERVED
from oddsengine.execution.paper import Latency, Look, PaperVenue
from oddsengine.history.clv import means
from oddsengine.maths import scoring
from oddsengine.progress import Tick
from oddsengine.tables.column_names import Columns
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.schema import with_games
from oddsengine.tape import Tape

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

_RESULTS = ("profit", "expected_profit")

_HOURS = [1.0, 3.0, 6.0, 12.0, 24.0, 48.0]
_HOUR_NAMES = ["<1", "1-3", "3-6", "6-12", "12-24", "24-48", ">48"]


@dataclass(frozen=True)
class Backtest:
    """Result of a backtest.

    Attributes
    ----------
    trades
        `TRADES_SCHEMA` and `RESULT_SCHEMA`, in order of decision.
    positions
        Arbitrages and low holds in order of decision: `POSITIONS_SCHEMA`, and `profit` and `expected_profit`, null
        unless they are known of all bets.
    bankroll
        Initial bankroll.
    cadence_s
        Median number of seconds between two snapshots of an event, of the first 64; nan if unknown, as for a tape.
    halted
        Why the account was halted at the end; None if it was not.
    """

    trades: pl.DataFrame
    bankroll: float
    strategy: Strategy = field(default_factory=Strategy)
    cadence_s: float = math.nan
    halted: str | None = None
    positions: pl.DataFrame = field(default_factory=lambda: _with_results(pl.DataFrame(schema=POSITIONS_SCHEMA), None))

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
        on_ev = bets.filter(kind="ev")
        closing = on_ev["closing_ev"].fill_null(np.nan).to_numpy()
        close = means(closing, np.zeros(on_ev.height, int), event_codes(on_ev), 1)
        path = np.concatenate([[self.bankroll], self.equity()["bankroll"].to_numpy()])
        status = dict(self.trades["status"].value_counts().iter_rows())
        placed = self.trades.filter(~pl.col("status").is_in(NOT_SENT))
        reasons = self.trades.filter(status="rejected")["reason"].value_counts(sort=True)
        return BacktestSummary(
            placed.height, bets.height, bets.filter(reason=UNOBSERVED).height, status.get("waiting", 0),
            dict(reasons.iter_rows()), bets["event_id"].n_unique(), float(stakes.sum()), result.profit,
            result.rate, result.error, _mean(on_ev["ev"]), int(close.size[0]), float(close.mean[0]),
            float(close.error[0]),
            settled.height, others.height, float(others["stake"].sum()), expected.profit, expected.rate, expected.error,
            float(scoring.drawdown(np.maximum(path, 1e-9)).max()) if settled.height else math.nan,
            counts(on_ev["no_close"]), counts(bets["no_result"]), self.cadence_s, self.cadence_s > ANSWER_S,
            bets.filter((pl.col("stake") < pl.col("wanted")) & pl.col("reason").is_not_null()).height, self.halted,
            position_summaries(self.positions),
        )  # fmt: skip

    def by(self, column: str) -> pl.DataFrame:
        """Mean EV and closing EV of the bets by a column of `trades`, with standard errors clustered by event.

        `hours` groups by the time from decision to start. Only bets on +EV prices have an EV, and closing EVs are
        theirs; by `kind`, also those of legs.
        """
        bets = self.bets
        if column == "hours":
            hours = (bets["event_start_time"] - bets["placed_at"]).dt.total_seconds() / 3600.0
            at = np.searchsorted(_HOURS, hours.fill_null(0.0).to_numpy())
            bets = bets.with_columns(hours=pl.Series(_HOUR_NAMES).gather(at))
        groups = bets[column].cast(pl.String).fill_null("").unique().sort()
        place = {name: at for at, name in enumerate(groups.to_list())}
        of = np.array([place[name] for name in bets[column].cast(pl.String).fill_null("").to_list()], np.int64)
        ev = means(bets["ev"].fill_null(np.nan).to_numpy(), of, event_codes(bets), len(place))
        graded = pl.lit(column == "kind") | (pl.col("kind") == "ev")
        closing = bets.select(pl.when(graded).then("closing_ev").fill_null(np.nan)).to_series()
        close = means(closing.to_numpy(), of, event_codes(bets), len(place))
        frame = pl.DataFrame(
            {
                column: groups,
                "bets": np.bincount(of, minlength=len(place)),
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
    rates: Mapping[str, float] | None = None,
    results: IntoFrame | None = None,
    columns: Columns | None = None,
    fair: Fair = None,
    every: float = 1.0,
    processes: int | None = 1,
    client: Any = None,
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
    bankroll, latency_s, tolerance, settle_hours, rates
        As for `Trader`.
    results
        Final scores: `event_id`, `home_score` and `away_score` (or `home_goals` and `away_goals`). None: those in the
        history, if any.
    columns
        Names of the history's columns, as for `check_odds`: ``{"seen": "last_seen_at"}``.
    fair, every, progress, storage_options
        As for `scan_history`. Grades by the close use the constants in force at the end.
    processes, client
        As for `audit`: games are played side by side, then stakes are decided in order of time. The result is the same,
        if what the strategy chooses of a game does not depend on other games or earlier choices.

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
    if strategy.model is not None:
        strategy = replace(strategy, model=read_model(strategy.model, _events(history, columns)))
    past = source(history, every, storage_options, columns)
    cadence_s = cadence(past)
    latency, looks = Latency.of(latency_s), dict[str, Look]()
    currency_rates(rates)  # raises if they are not valid
    venue = PaperVenue(looks, latency, sparse=cadence_s > ANSWER_S)
    account = Account(strategy, venue, bankroll=bankroll, tolerance=tolerance, settle_hours=settle_hours)
    scores = final_scores(results if results is not None else getattr(past, "results", None))
    for event, (home, away) in scores.items():
        account.settle(event, home, away)
    wanted = _Wanted(strategy, latency, None if rates is None else dict(rates), fair)
    parts = play(_play, wanted, [past], planned([past], wanted, processes, client), progress=progress)
    for part in parts:
        looks.update(part.looks)
    _stake(account, venue, parts)
    closes = [part.closes for part in parts if part.closes is not None]
    table = max(parts, key=lambda part: part.now).fair
    graded = _graded(account.trades(), pl.concat(closes) if closes else None, scores, table)
    positions = _with_results(account.positions(), graded)
    return Backtest(graded, bankroll, strategy, cadence_s, account.halted, positions)


class _Wanted(NamedTuple):
    """What a backtest plays a history with; see `backtest`."""

    strategy: Strategy
    latency: Latency
    rates: Mapping[str, float] | None
    fair: Fair


_STEP = "step"


class _Rows(NamedTuple):
    """What was chosen at all steps, with the number of the step; None: nothing."""

    ev: pl.DataFrame | None
    legs: pl.DataFrame | None


class _Chosen(NamedTuple):
    """What a strategy chose in a history or a part of it."""

    rows: _Rows
    looks: dict[str, Look]  # by id of an order: what stood of its price when it was due
    steps: Longs  # times of all steps
    closes: pl.DataFrame | None  # of the games of the rows
    fair: catalog.FairTable  # in force at the end

    @property
    def now(self) -> int:
        """Time of the last step."""
        return int(self.steps[-1]) if self.steps.size else NO_TIME


def _play(wanted: _Wanted, history: History | Tape, tick: Tick) -> _Chosen:
    fair_at = None if wanted.fair is None else fair_by_time(wanted.fair)
    engine = engine_of(history)
    choices = Choices(engine, wanted.strategy, wanted.latency, wanted.rates)
    closes, times = Closes(engine), list[int]()
    ev, legs = list[pl.DataFrame](), list[pl.DataFrame]()
    for now, update, prices, _ in steps(engine, history, fair_at):
        chosen = choices.after(update)
        for some, of in ((chosen.ev, ev), (chosen.legs, legs)):
            if some is not None:
                of.append(some.with_columns(pl.lit(len(times), pl.Int64).alias(_STEP)))
        times.append(now)
        closes.follow(now)
        tick(now, prices)
    check_books(engine, choices.view)
    wanted.strategy.check_books(engine.books)
    rows = _Rows(*(pl.concat(some, how="diagonal_relaxed") if some else None for some in (ev, legs)))
    closed = closes.take_closed(everything=True)
    if closed is not None:
        events = {event for some in rows if some is not None for event in some["event_id"].unique().to_list()}
        closed = closed.filter(pl.col("event_id").is_in(list(events)))
    return _Chosen(rows, choices.looks, np.array(times, np.int64), closed, engine.fair)


def _stake(account: Account, venue: PaperVenue, parts: Sequence[_Chosen]) -> None:
    """Decide on the stakes of everything that was chosen, in order of time, and answer the orders."""
    if len(parts) == 1:  # of a tape: several steps can have the same time
        times, places = parts[0].steps, [np.arange(parts[0].steps.size)]
    else:
        times = np.unique(np.concatenate([part.steps for part in parts]))
        places = [np.searchsorted(times, part.steps) for part in parts]
    both = zip(*(part.rows for part in parts), strict=True)
    ev, legs = (_by_step(some, places, times.size) for some in both)
    for now, prices, several in zip(times.tolist(), ev, legs, strict=True):
        venue.follow(now)
        account.follow(now, prices, several)
    venue.finish()
    account.receive()


def _by_step(
    parts: Sequence[pl.DataFrame | None], places: Sequence[Longs], steps: int
) -> Iterator[pl.DataFrame | None]:  # fmt: skip
    """What all parts chose at each step, in order; the steps of each part are at some places."""
    found = [
        rows.with_columns(pl.Series(_STEP, place[rows[_STEP].to_numpy()]))
        for rows, place in zip(parts, places, strict=True) if rows is not None
    ]  # fmt: skip
    if not found:
        yield from repeat(None, steps)
        return
    rows = in_order(pl.concat(found, how="diagonal_relaxed"), _STEP)
    ends = np.searchsorted(rows[_STEP].to_numpy(), np.arange(steps + 1)).tolist()
    for a, b in pairwise(ends):
        yield rows[a:b] if a < b else None


def _with_results(positions: pl.DataFrame, trades: pl.DataFrame | None) -> pl.DataFrame:
    """Positions with the results of their bets."""
    if trades is None or not positions.height:
        return positions.with_columns(pl.lit(None, pl.Float64).alias(name) for name in _RESULTS)
    known = (
        pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()).otherwise(None).alias(name)
        for name in _RESULTS
    )
    bets = trades.filter(pl.col("status") == "filled").group_by("opportunity_id").agg(*known)
    joined = positions.join(bets, on="opportunity_id", how="left", maintain_order="left")
    return joined.with_columns(pl.when(pl.col("outcome") != "waiting").then(pl.col(name)) for name in _RESULTS)


def _events(history: Any, columns: Columns | None) -> pl.DataFrame:
    """The events of a history, which a model need not repeat; none of a file."""
    if not isinstance(history, pl.LazyFrame):
        if isinstance(history, str | os.PathLike | History | Tape):
            return pl.DataFrame()
        history = to_polars(history).lazy()
    history = with_games(history, columns, reshape=not is_own_format(history.collect_schema().names()))
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
    # The close of one leg alone says nothing of what all of them are worth.
    alone = (pl.col("kind") != "ev") & (
        (pl.col("status") == "filled") & pl.col("expected_profit").is_null()
    ).any().over("opportunity_id")  # fmt: skip
    by_close = pl.col("graded_by") == "close"
    graded = graded.with_columns(
        expected_profit=pl.when(~alone).then(pl.col("expected_profit")),
        graded_by=pl.when(~(alone & by_close)).then(pl.col("graded_by")),
    )
    return graded.select(*trades.columns, *RESULT_SCHEMA)
