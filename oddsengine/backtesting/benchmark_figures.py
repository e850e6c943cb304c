"""What the answers of methods were worth: prices joined with their closes and results, and figures of each method."""

from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting import reference_methods
from oddsengine.backtesting.against import bets, losses
from oddsengine.backtesting.benchmark_runs import (
    AVERAGE,
    BESIDE,
    ENTERED,
    OURS,
    SINGLE,
    WITHOUT,
    Answered,
    PlayedSeason,
)
from oddsengine.backtesting.cells import CELLS, cell, weighted_mean
from oddsengine.backtesting.season_prices import Outcomes
from oddsengine.history.closing_consensus import closing_logits, votes_at
from oddsengine.pricing import close_errors

BEST = "best single book"
LEAST_EV = 1.0  # %
LOSSES = ("close", "result")
_LEAST_SHARE = 0.5  # of the games that a single book must quote
_FIGURES = ("graded", "events", "shown", "worth", "worth_se", "bias", "bias_se", "ratio", "ratio_se", "inside_90")

BENCHMARK_SCHEMA: dict[str, type[pl.DataType]] = {
    "method": pl.String,
    "markets": pl.Int64,  # that it was asked for
    "answered": pl.Int64,
    **{name: CELLS[name] for name in _FIGURES},
    "loss_prices": pl.Int64,  # prices of the log losses
    **{
        name: pl.Float64
        for truth in LOSSES
        for name in (f"{truth}_loss", f"{truth}_excess", f"{truth}_excess_se")  # over ours
    },
    "seconds": pl.Float64,  # of processor time
}
"""Columns of `Benchmark.table`; `inside_90`: percent of closes in the 90 % range, of methods that say an error."""


def judged_prices(played: PlayedSeason, after: Outcomes, table: catalog.FairTable) -> pl.DataFrame:
    """Return the prices that have a close, with a column of probabilities for each method, null without an answer."""
    closing = closing_logits(played.prices, votes_at(after.closes, table))
    prices = played.prices.with_columns(close=closing["x"].fill_nan(None)).drop_nulls("close")
    rows = played.observations.drop("ours").join(prices, on="price", how="inner", maintain_order="left")
    by = pl.col("home_goals").cast(pl.Int64) - pl.col("away_goals")
    won = pl.when(by > 0).then(pl.lit("home")).when(by < 0).then(pl.lit("away")).when(by == 0).then(pl.lit("draw"))
    results = after.results.select("event_id", won=won)
    rows = rows.join(results, on="event_id", how="left", maintain_order="left")
    rows = rows.with_columns(result=(pl.col("outcome") == pl.col("won")).cast(pl.Float64)).drop("won")
    hours = rows["hours"].to_numpy()
    ours = close_errors.standard_errors(rows["sport"], rows["league"], hours, table)
    rows = rows.with_columns(pl.Series(f"error {OURS}", ours))
    for answer in played.answers:
        on = ["event_id", "outcome", *(["sportsbook"] if "sportsbook" in answer.table.columns else [])]
        said = answer.table
        if "error" in said.columns:  # in logits from here on
            said = said.with_columns(pl.col("error") / (pl.col("prob") * (1.0 - pl.col("prob"))))
        said = said.rename({"prob": answer.method, "error": f"error {answer.method}"}, strict=False)
        rows = rows.join(said, on=on, how="left", maintain_order="left")
    return rows


def compared(
    rows: pl.DataFrame, answers: list[Answered], games: int, cap: float
) -> pl.DataFrame:  # fmt: skip
    """Return `BENCHMARK_SCHEMA`."""
    every = list(dict.fromkeys(answer.method for answer in answers))
    entered = [name for name in every if name.startswith(ENTERED)]
    names = [name for name in every if name not in entered]
    own = {OURS, WITHOUT, BESIDE, AVERAGE, *reference_methods.references()}
    singles = {name for name in names if name.startswith(SINGLE)}
    quoted = {
        name: sum(answer.answered for answer in answers if answer.method == name) for name in singles
    }  # fmt: skip
    common = rows.drop_nulls([name for name in names if name in own and rows[name].null_count() < rows.height])
    often = [name for name in singles if quoted[name] >= _LEAST_SHARE * games]
    best = min(often, key=lambda name: (_excess(common, name, "close")[0], name), default=None)
    shown = [name for name in names if name not in singles or name == best]
    place = shown.index(AVERAGE)
    order = [*(name for name in shown[:place] if name != best), *([best] if best else []), *shown[place:], *entered]
    made = []
    for name in order:
        of = [answer for answer in answers if answer.method == name]
        counts = {
            "markets": sum(answer.markets for answer in of), "answered": sum(answer.answered for answer in of),
            "seconds": sum(answer.seconds for answer in of),
        }  # fmt: skip
        book = name.removeprefix(SINGLE)
        label = f"{BEST}, power: {book}" if name == best else name.removeprefix(ENTERED)
        made.append({"method": label, **counts, **_figures(rows, common, name, cap)})
    return pl.DataFrame(made, schema=BENCHMARK_SCHEMA).fill_nan(None)


def _figures(rows: pl.DataFrame, common: pl.DataFrame, name: str, cap: float) -> dict[str, Any]:
    """Return the figures of one method: bets of all prices that it judges, and losses on the common ones."""
    own = rows.filter(100.0 * (pl.col(name) * pl.col("net") - 1.0) <= cap)
    figures = cell(bets(own, name, LEAST_EV))
    out = {figure: figures[figure] for figure in _FIGURES}
    part = common.drop_nulls(name)
    out["loss_prices"] = part.height
    for truth in LOSSES if part.height else ():
        out[f"{truth}_excess"], out[f"{truth}_excess_se"], out[f"{truth}_loss"] = _excess(part, name, truth)
    if name == OURS:
        out |= {f"{truth}_{of}": None for truth in LOSSES for of in ("excess", "excess_se")}
    return out


def _excess(common: pl.DataFrame, name: str, truth: str) -> tuple[float, float, float]:
    """Return a method's log loss less ours, its error by game, and the log loss itself, on the prices it judges."""
    part = common.drop_nulls([name, truth])
    if not part.height:
        return np.nan, np.nan, np.nan
    theirs, ours = losses(part, name, truth), losses(part, OURS, truth)
    game = part["event_id"].rank("dense").to_numpy().astype(np.int64) - 1
    weight = np.ones(part.height)
    return *weighted_mean(theirs - ours, weight, game), float(theirs.mean())
