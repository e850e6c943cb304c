"""Middles: compile first, time second. Baselines: the slow twins of tests/naive/maths.py.

python benchmarks/bench_middle.py
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
from naive import maths as naive_maths

from oddsengine.maths.distributions import KINDS, Shapes, tail
from oddsengine.maths.middle import evaluate, window
from oddsengine.maths.shape_fitting import fit

WEIGHTS = [[1.0] * 25, [1.0, 0.5, 0.5, 2.5, 0.7, 0.6, 1.1, 1.7, *[1.0] * 17]]
CASES = {  # name: scale, level, table, lines from and to
    "poisson": (1.0, np.nan, 0, (150, 650)),
    "negative_binomial": (1.3, np.nan, 0, (650, 1250)),
    "normal": (14.0, np.nan, 0, (3550, 5550)),
    "skellam": (6.1, 0.0, 0, (-250, 250)),
    "margin": (13.2, 0.003, 1, (-1050, 1050)),
}
SIZES = (10, 1_000, 100_000)


def best_of(function: Callable[..., object], *args: object, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    start = time.perf_counter()
    one = Shapes.of(KINDS["poisson"])
    fit(one, 250, 0.5)
    curve = tail(one, 2.5, [250, 250, 350, 350])
    evaluate(250, 350, 1.95, 1.95, curve)
    print(f"first calls (compiling, or loading the cache) {time.perf_counter() - start:.2f} s")

    rng = np.random.default_rng(1)
    print("us per row                 " + "".join(f"{size:>12,}" for size in SIZES) + "     plain Python")
    for name, (scale, level, table, (low, high)) in CASES.items():
        shape = Shapes.of(KINDS[name], scale, level, table, WEIGHTS)
        fits, tails = [], []
        for size in SIZES:
            line = rng.integers(low // 50, high // 50 + 1, size) * 50
            prob = rng.uniform(0.35, 0.65, size)
            found = fit(shape, line, prob)
            points = window(line - 50, line + 100).points
            fits.append(1e6 * best_of(fit, shape, line, prob) / size)
            tails.append(1e6 * best_of(tail, shape, found, points) / size)
        args = (name, float(scale), level, WEIGHTS[table], int(line[0]), float(prob[0]))
        slow = 1e6 * best_of(naive_maths.fit, *args, repeats=3)
        print(f"fit  {name:20}" + "".join(f"{value:12.3f}" for value in fits) + f"{slow:12.0f}")
        print(f"tail {name:20}" + "".join(f"{value:12.3f}" for value in tails))
    values = []
    for size in SIZES:
        line = rng.integers(-20, 20, size) * 25
        curve = np.sort(rng.uniform(0.3, 0.7, (size, 4)))[:, ::-1].copy()
        odds = rng.uniform(1.7, 2.3, (2, size))
        values.append(1e6 * best_of(evaluate, line, line + 200, *odds, curve) / size)
    print(f"{'evaluate':25}" + "".join(f"{value:12.3f}" for value in values))


if __name__ == "__main__":
    main()
