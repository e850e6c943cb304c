"""The estimator alone: a market with 12 books, compared with the classical reference in the same run.

    pytest benchmarks/bench_estimator.py -o python_files='bench_*.py' --benchmark-enable --benchmark-only

A board of ladders of five lines with 12 books each. Each round evaluates all markets: every book's de-vigged prices
(`votes`), then for each of the 12 the fair price by the 11 others and neighbouring lines. `extra_info` has microseconds
per market.
"""

from typing import Any

import numpy as np
import polars as pl
import pytest
from synthetic import BOOKS, NOW

from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import ask, prepare
from oddsengine.guards.verdicts import Verdicts
from oddsengine.pricing import close as fair_close
from oddsengine.pricing import votes
from oddsengine.pricing.references import FairPrices, ViewSpec, fair_prices, view_spec

EVENTS, LINES, VOTERS = 2_000, 5, 12


def ladders() -> pl.DataFrame:
    """Totals of basketball games, as quoted by 12 books."""
    rng = np.random.default_rng(1)
    event, line, book = (part.ravel() for part in np.indices((EVENTS, LINES, VOTERS)))
    logit = -0.11 * (line - 2) + rng.normal(0.0, 0.03, event.size)
    p = 1.0 / (1.0 + np.exp(-logit))
    odds = np.round(1.0 / (np.stack([p, 1.0 - p], axis=1) * 1.045), 3).ravel()
    pick, side = np.repeat(np.arange(event.size), 2), np.tile([0, 1], event.size)
    ids = pl.Series([f"nba_{at}" for at in range(EVENTS)])
    return pl.DataFrame({"odds_decimal": odds}).with_columns(
        pl.Series("sportsbook", BOOKS).gather(book[pick]),
        ids.gather(event[pick]).alias("event_id"),
        pl.lit("basketball").alias("sport"),
        pl.lit("nba").alias("league"),
        pl.lit("Home").alias("home_team"),
        pl.lit("Away").alias("away_team"),
        pl.lit("total_points").alias("market_type"),
        pl.Series("selection", ["Over", "Under"]).gather(side),
        pl.Series("line", 220.5 + line[pick]),
        pl.lit(NOW).alias("last_seen_at"),
        (NOW - pl.duration(seconds=pl.lit(pl.Series(rng.integers(0, 3_600, pick.size))))).alias("odds_changed_at"),
        (NOW + pl.duration(hours=pl.lit(20))).alias("event_start_time"),
    )


@pytest.fixture(scope="module")
def view() -> FairPrices:
    return ask(prepare(ladders(), [], NOW), None, None, None, None, thresholds(min_ev=0.0)).prices


def said(benchmark: Any, view: FairPrices) -> None:
    assert view.groups.outcomes.size == EVENTS * LINES
    assert view.groups.row.size == EVENTS * LINES * VOTERS * 2
    if benchmark.stats is not None:
        benchmark.extra_info["microseconds a market"] = benchmark.stats.stats.median / view.groups.outcomes.size * 1e6


@pytest.mark.benchmark(group="fair prices of 10,000 markets of 12 books")
def test_classical_reference(benchmark: Any, view: FairPrices) -> None:
    guarded = Verdicts(
        view.columns.reason,
        np.zeros(0),
        np.zeros(view.columns.reason.size, np.uint8),
        view.columns.doubt,
        view.now,
        view.limits,
    )
    words: ViewSpec = view_spec(BOOKS[:VOTERS], view.traits, None, "pinnacle", "power", None)
    benchmark(fair_prices, view.groups, view.traits, guarded, words, frozenset())
    said(benchmark, view)


@pytest.mark.benchmark(group="fair prices of 10,000 markets of 12 books")
def test_votes(benchmark: Any, view: FairPrices) -> None:
    assert view.board is not None
    benchmark(
        votes.of_books,
        view.groups,
        view.columns.net,
        view.board.times.changed,
        view.columns.reason,
        view.widest,
        view.board.of.table,
    )
    said(benchmark, view)


@pytest.mark.benchmark(group="fair prices of 10,000 markets of 12 books")
@pytest.mark.parametrize("judged", [2, 1], ids=["every book judged", "the market itself"])
def test_estimate(benchmark: Any, view: FairPrices, judged: int) -> None:
    read, traits = view.board, view.traits
    assert read is not None
    needed = np.full(view.groups.outcomes.size, judged, np.uint8)
    fair = benchmark(
        fair_close.estimate, read.of, view.groups, traits, view.columns.net, view.columns.reason,
        fair_close.gross(traits, traits.fees), read.times, read.momentum, read.logits, needed,
    )  # fmt: skip
    assert np.isnan(fair.row).all() == (judged == 1)
    said(benchmark, view)
