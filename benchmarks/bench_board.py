"""A whole table: the detection pass, and from a frame to results, compared with table expressions.

    pytest benchmarks/bench_board.py -o python_files='bench_*.py' --benchmark-enable --benchmark-only

The table expressions compute the same four results without identity or guards (`idioms.py`). Rows of one group share a
board, so ratios of one run are comparable. `odds.max()` is a lower bound for any pass over the prices.
"""

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from idioms import coded, four_kinds, keyed
from synthetic import board as make_board

import oddsengine as oe
from oddsengine.detection import question as boards
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import Question, prepare
from oddsengine.detection.sweep import sweep
from oddsengine.maths.devig import devig_groups
from oddsengine.pricing.references import FairPrices

SIZES = (2_000, 10_000, 100_000, 1_000_000)
STRING_KEY = ["event_id", "market_type", "player_name"]


@pytest.fixture(scope="module", params=SIZES, ids=lambda n: f"{n:,}")
def frame(request: pytest.FixtureRequest) -> pl.DataFrame:
    return make_board(request.param)


@pytest.fixture(scope="module")
def question(frame: pl.DataFrame) -> Question:
    wants = thresholds(min_ev=0.0, min_profit=0.5, max_profit=10.0, max_hold=2.0, min_middle_ev=0.0)
    return boards.ask(prepare(frame), None, None, "power", None, wants)


def detection(question: Question) -> None:
    """The pass over all offers, including the fair probabilities from the references' prices."""
    view = question.prices
    devig_groups(*reference_prices(view), view.method)
    sweep(view, question.thresholds, question.scope)


@cache
def reference_prices(view: FairPrices) -> tuple[Any, Any]:
    """Prices of the references, market after market, and the offsets of the markets."""
    g = view.groups
    own = (g.book == view.columns.reference[g.market]) & (view.columns.trusted != 0) & ~np.isnan(view.columns.own)
    sizes = np.bincount(g.market[own], minlength=g.threshold.size)
    return view.columns.net[own], np.concatenate(([0], np.cumsum(sizes[sizes > 0])))


@pytest.mark.benchmark(group="detection pass")
def test_least(benchmark: Any, frame: pl.DataFrame) -> None:
    odds = np.array(frame["odds_decimal"])
    benchmark(odds.max)


@pytest.mark.benchmark(group="detection pass")
def test_pass(benchmark: Any, question: Question) -> None:
    detection(question)
    benchmark(detection, question)


@pytest.mark.benchmark(group="detection pass")
def test_idiom_integer_keys(benchmark: Any, frame: pl.DataFrame) -> None:
    rows = coded(frame)
    sharp = rows["book"][int(np.flatnonzero(np.array(frame["sportsbook"] == "pinnacle"))[0])]
    benchmark(lambda: pl.collect_all(four_kinds(rows.lazy(), ["ladder"], "book", sharp)))


@pytest.mark.benchmark(group="frame to results")
def test_results(benchmark: Any, frame: pl.DataFrame) -> None:
    oe.find_all(frame)
    benchmark(lambda: oe.find_all(frame))


@pytest.mark.benchmark(group="frame to results")
def test_results_shuffled(benchmark: Any, frame: pl.DataFrame) -> None:
    rows = frame.sample(fraction=1.0, shuffle=True, seed=1)
    benchmark(lambda: oe.find_all(rows))


@pytest.mark.benchmark(group="frame to results")
def test_idiom_string_keys(benchmark: Any, frame: pl.DataFrame) -> None:
    benchmark(lambda: pl.collect_all(four_kinds(keyed(frame).lazy(), STRING_KEY, "sportsbook", "pinnacle")))


@pytest.mark.benchmark(group="frame to results")
def test_idiom_string_keys_shuffled(benchmark: Any, frame: pl.DataFrame) -> None:
    rows = frame.sample(fraction=1.0, shuffle=True, seed=1)
    benchmark(lambda: pl.collect_all(four_kinds(keyed(rows).lazy(), STRING_KEY, "sportsbook", "pinnacle")))
