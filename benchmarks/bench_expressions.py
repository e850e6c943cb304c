"""De-vig inside a polars query, compared with the matrix call and with a Python call per group.

pytest benchmarks --benchmark-enable -o python_files='bench_*.py' -k expressions --benchmark-columns=min,median
"""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from bench_devig import prices

import oddsengine as oe

MARKETS = 100_000
KEYS = ["event", "market", "book"]
ODDS: Any = pl.col("odds")


def quotes(markets: int) -> pl.DataFrame:
    """Two rows per market with text keys: 40 markets per event, of 10 types at 4 books."""
    at = pl.int_range(2 * markets, eager=True) // 2
    return pl.DataFrame(
        {
            "number": at,
            "event": "event_" + (at // 40).cast(pl.String),
            "market": "market_" + (at % 10).cast(pl.String),
            "book": "book_" + (at // 10 % 4).cast(pl.String),
            "odds": prices(markets, 2).ravel(),
        }
    )


FRAME = quotes(MARKETS)
CODED = FRAME.with_columns(pl.col(KEYS).cast(pl.Categorical))
SHUFFLED = FRAME.sample(fraction=1.0, shuffle=True, seed=1)
FEW = quotes(MARKETS // 10)
MATRIX = FRAME["odds"].to_numpy().reshape(-1, 2)
CASES: dict[str, Callable[[], Any]] = {
    "matrix": lambda: oe.devig(MATRIX),
    "frame to matrix and back": lambda: FRAME.with_columns(
        p=pl.Series(oe.devig(FRAME["odds"].to_numpy().reshape(-1, 2)).ravel())
    ),
    "by text keys": lambda: FRAME.with_columns(p=ODDS.odds.devig(by=KEYS)),
    "by categories": lambda: CODED.with_columns(p=ODDS.odds.devig(by=KEYS)),
    "by an integer": lambda: FRAME.with_columns(p=ODDS.odds.devig(by="number")),
    "by text keys, shuffled": lambda: SHUFFLED.with_columns(p=ODDS.odds.devig(by=KEYS)),
    "sum over text keys": lambda: FRAME.with_columns(p=(1.0 / ODDS).sum().over(KEYS)),
    "a call a group, a tenth of the markets": lambda: FEW.with_columns(p=ODDS.odds.devig().alias("p").over(KEYS)),
}


@pytest.mark.parametrize("case", CASES)
def test_expressions(benchmark: Any, case: str) -> None:
    CASES[case]()
    benchmark(CASES[case])
