"""Kelly stakes: three sizes, compared with a loop in plain Python.

python benchmarks/bench_kelly.py
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
from naive import maths as naive_maths

from oddsengine.maths.kelly import kelly, kelly_exclusive

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
    print("us per bet or event   " + "".join(f"{size:>12,}" for size in SIZES) + "   plain Python, 1,000")
    prob, odds = rng.uniform(0.1, 0.9, SIZES[-1]), rng.uniform(1.1, 9.0, SIZES[-1])
    times = [1e6 * best_of(kelly, prob[:size], odds[:size]) / size for size in SIZES]
    slow = 1e3 * best_of(
        lambda: [naive_maths.kelly(p, d) for p, d in zip(prob[:1000].tolist(), odds[:1000].tolist(), strict=True)]
    )
    print(f"{'kelly':22}" + "".join(f"{value:12.4f}" for value in times) + f"{slow:12.4f}")
    for outcomes in (2, 3, 10):
        probs = rng.dirichlet(np.ones(outcomes), SIZES[-1])
        prices = np.maximum(1.01, rng.uniform(0.8, 1.1, probs.shape) / probs)
        times = [1e6 * best_of(kelly_exclusive, probs[:size], prices[:size]) / size for size in SIZES]
        few = list(zip(probs[:5].tolist(), prices[:5].tolist(), strict=True))
        slow = 1e6 / 5 * best_of(lambda rows: [naive_maths.kelly_exclusive(p, d) for p, d in rows], few, repeats=1)
        print(f"exclusive, {outcomes:2} outcomes" + "".join(f"{value:12.4f}" for value in times) + f"{slow:12.0f}")


if __name__ == "__main__":
    main()
