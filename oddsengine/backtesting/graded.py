"""Grade bets that were placed elsewhere: closing line value, EV at the close, and results (`grade`).

The history is replayed as in a backtest, so bets are graded by the same closes as the trades of `backtest`, with the
same code (`grading`). `placed_bets` reads the bets and finds their events.

    clv           odds / closing_odds - 1: against the last odds of the same book before the start
    ev_at_close   net_odds closing_probability - 1: by the fair probability at the close of the other books
    profit        stake times the share won or lost, by `net_odds`
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.closes import Closes
from oddsengine.backtesting.formats import History
from oddsengine.backtesting.grading import (
    TOO_FEW,
    bet_shares,
    closing_evs,
    final_scores,
    own_closing,
    placed_before,
    why_no_close,
)
from oddsengine.backtesting.parts import planned, play
from oddsengine.backtesting.placed_bets import (
    RESULTS,
    UNKNOWN,
    Bets,
    Event,
    HistoryEvents,
    find_events,
    on_events,
    read_bets,
)
from oddsengine.backtesting.replay import engine_of, source, steps
from oddsengine.backtesting.summary import aligned, counts, event_codes, percent, returned
from oddsengine.bounds import excerpt
from oddsengine.columns import Floats
from oddsengine.history.clv import means
from oddsengine.progress import Tick
from oddsengine.staking.outcomes import profits
from oddsengine.tables.column_names import Columns
from oddsengine.tables.frames import IntoFrame
from oddsengine.tape import Tape

GRADED_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "history_event_id": pl.String,  # null: not in the history
    "closing_odds": pl.Float64,  # decimal: the last of the same book before the start
    "closing_probability": pl.Float64,  # fair, at the other books' close, given no push
    "clv": pl.Float64,  # fraction
    "ev_at_close": pl.Float64,  # fraction, after commission
    "result": pl.String,  # one of `RESULTS`
    "settled_by": pl.String,  # bet: its own result; score: the final score
    "profit": pl.Float64,
    "no_clv": pl.String,  # why `clv` is null
    "no_close": pl.String,  # why `ev_at_close` is null
    "no_result": pl.String,  # why `result` is null
}
"""Columns that `grade` adds to those of the bets."""

_NAMES = {share: name for name, (share, _) in RESULTS.items()}


class GradedSummary(NamedTuple):
    """Summary of graded bets, with standard errors clustered by event."""

    bets: int
    events: int
    priced: int  # bets with closing odds
    clv: float  # mean of these
    clv_error: float
    beat_close: float  # share of these with a CLV above 0
    closed: int  # bets with a fair price at the close
    ev_at_close: float  # mean of these
    ev_at_close_error: float
    settled: int  # bets with a result
    won: int  # half won counts as won, half lost as lost
    lost: int
    pushed: int
    staked: float  # on these
    profit: float
    rate: float  # profit per unit staked
    rate_error: float
    no_clv: dict[str, int]  # bets by reason
    no_close: dict[str, int]
    no_result: dict[str, int]

    def __str__(self) -> str:
        """The figures in words, one per line."""
        s = self
        beat = "unknown" if math.isnan(s.beat_close) else f"{s.beat_close:.0%}"
        return aligned(
            [
                ("bets", f"{s.bets:,}"),
                ("events", f"{s.events:,}"),
                ("bets with closing odds", f"{s.priced:,}"),
                ("CLV", percent(s.clv, s.clv_error)),
                ("beat the closing odds", beat),
                *((f"bets without closing odds: {why}", f"{count:,}") for why, count in s.no_clv.items()),
                ("bets with a fair price at the close", f"{s.closed:,}"),
                ("EV at the close", percent(s.ev_at_close, s.ev_at_close_error)),
                *((f"bets without a close: {why}", f"{count:,}") for why, count in s.no_close.items()),
                ("bets with a result", f"{s.settled:,}"),
                ("won, lost, pushed", f"{s.won:,}, {s.lost:,}, {s.pushed:,}"),
                ("staked", f"{s.staked:,.2f}"),
                ("profit", f"{s.profit:,.2f}"),
                ("return on stakes", percent(s.rate, s.rate_error)),
                *((f"bets without a result: {why}", f"{count:,}") for why, count in s.no_result.items()),
            ]
        )


@dataclass(frozen=True)
class Graded:
    """Graded bets.

    Attributes
    ----------
    bets
        The given bets in order, all their columns, and those of `GRADED_SCHEMA`. A given column of the name of an added
        one is kept as `..._given`.
    stakes
        The stakes of the bets in money.
    events
        Their events, by which errors are clustered: the history's id, or what the bet says.
    """

    bets: pl.DataFrame
    stakes: Floats
    events: pl.Series

    def summary(self) -> GradedSummary:
        """Summary figures; printed, one per line."""
        bets = self.bets.with_columns(event_id=self.events)
        event, one = event_codes(bets), np.zeros(bets.height, np.int64)
        value = bets["clv"].fill_null(np.nan).to_numpy()
        clv, beat, close = (
            means(values, one, event, 1)
            for values in (
                value,
                np.where(np.isnan(value), np.nan, value > 0.0),
                bets["ev_at_close"].fill_null(np.nan).to_numpy(),
            )
        )
        has = bets["profit"].is_not_null().to_numpy()
        settled, stakes = bets.filter(has), self.stakes[has]
        gains = settled["profit"].to_numpy() / np.maximum(stakes, 1e-300)
        result = returned(event_codes(settled), stakes, gains)
        share = settled["result"].replace_strict({name: of[0] for name, of in RESULTS.items()}, return_dtype=pl.Float64)
        return GradedSummary(
            bets.height, self.events.n_unique(), int(clv.size[0]), float(clv.mean[0]), float(clv.error[0]),
            float(beat.mean[0]), int(close.size[0]), float(close.mean[0]), float(close.error[0]), settled.height,
            int((share > 0.0).sum()), int((share < 0.0).sum()), int((share == 0.0).sum()), float(stakes.sum()),
            float(settled["profit"].sum()), result.rate, result.error,
            counts(bets["no_clv"]), counts(bets["no_close"]), counts(bets["no_result"]),
        )  # fmt: skip


def grade(
    bets: IntoFrame | str | os.PathLike[str],
    history: Any,
    *,
    results: IntoFrame | None = None,
    columns: Columns | None = None,
    closing_odds: Literal["history", "bets"] = "history",
    every: float = 1.0,
    processes: int | None = 1,
    client: Any = None,
    progress: bool | Callable[[int], None] = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Graded:
    """Grade bets placed elsewhere: closing line value, EV at the close, and results.

    Parameters
    ----------
    bets
        A frame, a list of dicts, or a CSV, JSON or Parquet file. Each has a market, a selection, odds in any format,
        and its event: `event_id`, the teams, or words such as ``Celtics @ Lakers``. Optional: the book, line, stake
        (1), the day or start of the game, `placed_at`, and `result`. `oddsengine.backtesting.placed_bets` has the
        details.
    history
        As for `backtest`: a frame, a path, a tape, or seasons of football-data.co.uk (``"E0.csv"``).
    results
        Final scores by `event_id` of the history, as for `backtest`. None: those in the history, if any.
    columns
        Names of the bets' columns and what they are: ``{"Bet": "selection"}``. Common names need none.
    closing_odds
        "history", or "bets": the bets' own `closing_odds` where they have any, and the history's elsewhere.
    every, processes, client, progress, storage_options
        As for `scan_history`.

    Returns
    -------
    Graded
        `.bets` has the bets in order with `GRADED_SCHEMA`; `.summary()` prints one figure per line. A bet's own result
        counts before the score. `clv` is against the same book's closing odds, `ev_at_close` by the other books' close.

    Raises
    ------
    OddsError
        If a bet is invalid; the message names it, counting from 1. A bet not found in the history is no error.
    ValueError
        If the history or a parameter is invalid.

    Examples
    --------
    >>> from oddsengine.simulate.football_seasons import seasons
    >>> import oddsengine as oe, pathlib, tempfile
    >>> season = pathlib.Path(tempfile.mkdtemp(), "E0.csv")
    >>> rows = next(seasons(1)).data.splitlines(keepends=True)
    >>> _ = season.write_bytes(b"".join(rows[:41]))  # the first 40 games
    >>> bet = {"Date": "2020-08-14", "Event": "West Ham v Chelsea", "Market": "1X2", "Selection": "West Ham",
    ...        "Sportsbook": "Bet365", "Odds": "+120", "Stake": 10}
    >>> oe.grade([bet], season).bets.select("closing_odds", pl.col("clv", "ev_at_close").round(3), "result").row(0)
    (2.09, 0.053, 0.016, 'lost')
    """
    if closing_odds not in ("history", "bets"):
        raise ValueError(f"closing_odds must be history or bets, got {excerpt(closing_odds)}")
    given = read_bets(bets, columns)
    scores = final_scores(results)
    past = source(history, every, storage_options)
    if results is None:
        scores = final_scores(getattr(past, "results", None))
    wanted = _Wanted(given.table)
    parts = play(_play, wanted, [past], planned([past], wanted, processes, client), progress=progress)
    found = find_events(given.table, sorted((event for part in parts for event in part.events), key=attrgetter("id")))
    table = on_events(given.table, found)
    before = pl.col("event_start_time") - pl.duration(microseconds=1)
    table = table.with_columns(
        placed_at=pl.coalesce("placed_at", before),
        history_event_id=pl.Series([of.event and of.event.id for of in found], dtype=pl.String),
        missing=pl.Series([of.missing for of in found], dtype=pl.String),
    )
    closes = [part.closes for part in parts if part.closes is not None]
    own = given.closing_odds if closing_odds == "bets" else np.full(table.height, np.nan)
    closed = pl.concat(closes) if closes else None
    table = _with_results(_with_closes(table, closed, own, parts[0].fair), given, scores)
    day = pl.coalesce("event_date", "event_start_time").dt.date().cast(pl.String).fill_null("")
    games = table.select(pl.coalesce("history_event_id", pl.format("{} {}", "event_id", day))).to_series()
    return Graded(_joined(given.given, table.select(*GRADED_SCHEMA)), table["stake"].to_numpy(), games)


class _Wanted(NamedTuple):
    """What a history is played with."""

    bets: pl.DataFrame


class _Past(NamedTuple):
    """What grading needs of a history or a part of it."""

    events: list[Event]
    closes: pl.DataFrame | None  # of the games that a bet may be on
    fair: catalog.FairTable  # in force at the end


def _play(wanted: _Wanted, history: History | Tape, tick: Tick) -> _Past:
    engine = engine_of(history)
    closes, listed = Closes(engine), HistoryEvents(engine)
    for now, _, prices, _ in steps(engine, history):
        closes.follow(now)
        listed.follow()
        tick(now, prices)
    events, closed = listed.take(), closes.take_closed(everything=True)
    if closed is not None:
        theirs = {of.event.id for of in find_events(wanted.bets, events) if of.event}
        closed = closed.filter(pl.col("event_id").is_in(theirs))
    return _Past(events, closed, engine.fair)


def _with_closes(
    bets: pl.DataFrame, closes: pl.DataFrame | None, own: Floats, table: catalog.FairTable
) -> pl.DataFrame:
    """Add the values at the close to bets; `own` are closing odds that count before those of the history."""
    if not bets.height:
        return bets.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in GRADED_SCHEMA.items())
    early = placed_before(bets) & bets["missing"].is_null()
    ev = np.where(early.to_numpy(), closing_evs(bets, closes, table), np.nan)
    quoted = own_closing(bets, closes, table)
    last = pl.Series(own).fill_nan(None).fill_null(quoted["closing_odds"].set(~early, None))
    bets = bets.with_columns(
        quoted.select("readable", "market", "book"),
        closing_odds=last,
        clv=pl.col("odds_decimal") / last - 1.0,
        ev_at_close=pl.Series(ev).fill_nan(None),
    )
    bets = bets.with_columns(closing_probability=(pl.col("ev_at_close") + 1.0) / pl.col("net_odds"))
    raw_label = (
        pl.when(~pl.col("readable"))
        .then(pl.lit("market or selection not recognised"))
        .when(~pl.col("market"))
        .then(pl.lit("market not quoted at the close"))
    )
    at_book = (
        raw_label.when(pl.col("sportsbook") == UNKNOWN)
        .then(pl.lit("no sportsbook given"))
        .when("book")
        .then(pl.lit("closed on another line at the sportsbook"))
        .otherwise(pl.lit("not quoted by the sportsbook at the close"))
    )
    parts = {"no_clv": ("clv", at_book), "no_close": ("ev_at_close", raw_label.otherwise(pl.lit(TOO_FEW)))}
    return bets.with_columns(
        pl.when(pl.col(value).is_null())
        .then(pl.coalesce("missing", pl.when(why != TOO_FEW).then(why), detail))
        .alias(name)
        for name, (value, detail) in parts.items()
        for why in [why_no_close(closes, pl.col(value))]
    )


def _with_results(bets: pl.DataFrame, given: Bets, scores: Mapping[str, tuple[float, float]]) -> pl.DataFrame:
    """Add results and profits to bets: by their own results, else by the score."""
    ours = ~np.isnan(given.share)
    unknown = given.cashed_out | bets["missing"].is_not_null().to_numpy()
    by_score = np.where(unknown, np.nan, bet_shares(bets, scores))
    share = np.where(ours, given.share, by_score)
    profit = bets["stake"].to_numpy() * profits(share, bets["net_odds"].to_numpy())
    settled = pl.Series(share).fill_nan(None)
    scored = pl.col("event_id").is_in(list(scores))
    return bets.with_columns(
        result=settled.replace_strict(_NAMES, return_dtype=pl.String),
        settled_by=pl.when(settled.is_null()).then(None).when(pl.Series(ours)).then(pl.lit("bet")).otherwise(pl.lit("score")),
        profit=pl.Series(profit, dtype=pl.Float64).fill_nan(None),
        no_result=pl.when(settled.is_null()).then(
            pl.coalesce(
                pl.when(pl.Series(given.cashed_out)).then(pl.lit("cashed out")), "missing",
                pl.when(scored).then(pl.lit("not settled by the score")).otherwise(pl.lit("no score")),
            )
        ),
    )  # fmt: skip


def _joined(given: pl.DataFrame, added: pl.DataFrame) -> pl.DataFrame:
    """Return both tables side by side; given columns of the name of an added one get another."""
    taken, other = {*given.columns, *added.columns}, {}
    for name in given.columns:
        if name in added.columns:
            free = f"{name}_given"
            while free in taken:
                free += "_given"
            taken.add(free)
            other[name] = free
    return given.rename(other).hstack(added)
