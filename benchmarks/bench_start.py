"""Start: importing, and the first result of a process, each in a fresh interpreter.

`cold` compiles every kernel into an empty cache; `warm` finds them there.
"""

import os
import subprocess
import sys
import tempfile
from typing import Any

import pytest

FIRST = """
import time
import polars as pl
rows = [("pinnacle", "home", 1.95), ("pinnacle", "away", 1.95), ("fanduel", "home", 2.1), ("fanduel", "away", 1.8)]
frame = pl.DataFrame(
    [
        dict(sportsbook=b, event_id="e", sport="basketball", home_team="A", away_team="B", market_type="moneyline",
             selection="A" if s == "home" else "B", odds_decimal=d)
        for b, s, d in rows
    ]
)
import oddsengine
start = time.perf_counter()
assert oddsengine.find_ev(frame).height == 1
print(time.perf_counter() - start)
"""


def run(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | env, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.benchmark(group="start", min_rounds=7)
@pytest.mark.parametrize("what", ["pass", "import numpy, polars", "import oddsengine"])
def test_import(benchmark: Any, what: str) -> None:
    run(what)
    benchmark(run, what)


@pytest.mark.benchmark(group="start")
def test_first_result_warm(benchmark: Any) -> None:
    run(FIRST)
    benchmark.extra_info["seconds_after_import"] = min(float(run(FIRST)) for _ in range(5))
    benchmark.pedantic(run, args=(FIRST,), rounds=5)


@pytest.mark.benchmark(group="compile")
def test_compile_cold(benchmark: Any) -> None:
    def cold() -> None:
        with tempfile.TemporaryDirectory() as cache:
            run("import oddsengine; oddsengine.load_kernels()", NUMBA_CACHE_DIR=cache)

    benchmark.pedantic(cold, rounds=1)
