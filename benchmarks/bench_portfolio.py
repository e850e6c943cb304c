"""Growth-optimal stakes on 200 bets with limits per bet and book.

pytest benchmarks --benchmark-enable -o python_files='bench_*.py' -k portfolio --benchmark-columns=min,median
"""

from typing import Any

import numpy as np
import pytest

from oddsengine.staking.portfolio import GameColumns, StakeLimits, best_stakes

BETS = 200


def games(count: int, scenarios: int) -> GameColumns:
    """Games with equal numbers of bets, with edges from -5 % to 8 %."""
    rng = np.random.default_rng(count)
    pairs = []
    for _ in range(count):
        p = rng.dirichlet(np.full(scenarios, 2.0))
        won = rng.random((scenarios, BETS // count)) < 0.5
        odds = np.clip(rng.uniform(0.95, 1.08, BETS // count) / np.maximum(p @ won, 0.05), 1.05, 20.0)
        pairs.append((p, np.where(won, odds - 1.0, -1.0)))
    return GameColumns.from_pairs(pairs)


@pytest.mark.parametrize(("count", "scenarios"), [(200, 2), (50, 12), (1, 300)])
def test_portfolio(benchmark: Any, count: int, scenarios: int) -> None:
    books = np.arange(BETS) % 8 == np.arange(8)[:, None]
    limits = StakeLimits(np.full(BETS, 0.02), books, np.full(8, 0.1))
    of = games(count, scenarios)
    best_stakes(of, limits)
    benchmark(best_stakes, of, limits)
