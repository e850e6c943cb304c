"""Hold, stakes and whole stakes: three sizes, compared with a loop in plain Python.

python benchmarks/bench_arbitrage.py
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
from naive import maths as naive_maths

from oddsengine.maths.arbitrage import arbitrage_stakes, hold, round_stakes

SIZES = (10, 1_000, 100_000)


def best_of(function: Callable[..., object], *args: object, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(1)
    odds = rng.uniform(2.5, 3.6, (SIZES[-1], 3))
    rows = odds[:1000].tolist()
    print("us per market         " + "".join(f"{size:>12,}" for size in SIZES) + "   plain Python, 1,000")
    times = [1e6 * best_of(hold, odds[:size]) / size for size in SIZES]
    slow = 1e3 * best_of(lambda: [naive_maths.hold(row) for row in rows])
    print(f"{'hold':22}" + "".join(f"{value:12.4f}" for value in times) + f"{slow:12.4f}")
    times = [1e6 * best_of(arbitrage_stakes, odds[:size], 100.0) / size for size in SIZES]
    slow = 1e3 * best_of(lambda: [naive_maths.arbitrage_stakes(row, 100.0) for row in rows])
    print(f"{'arbitrage_stakes':22}" + "".join(f"{value:12.4f}" for value in times) + f"{slow:12.4f}")

    print("round_stakes, one market, ms        100 steps      10,000   1,000,000  10,000,000")
    for name, prices in (
        ("2 outcomes, profit 3.7 %", [2.10, 2.05]),
        ("3 outcomes, profit 1.6 %", [2.7, 3.5, 3.05]),
        ("2 outcomes, profit 0.001 %", [2.00002, 2.00002]),
        ("8 outcomes, profit 2.5 %", [8.2] * 8),
    ):
        times = [1e3 * best_of(round_stakes, prices, float(t), 1.0, repeats=2) for t in (1e2, 1e4, 1e6, 1e7)]
        print(f"{name:32}" + "".join(f"{value:12.2f}" for value in times))
    slow = 1e3 * best_of(naive_maths.round_stakes, [2.7, 3.5, 3.05], 100, repeats=1)
    print(f"every way to stake 100 steps on 3 outcomes, plain Python {slow:.0f} ms")


if __name__ == "__main__":
    main()
