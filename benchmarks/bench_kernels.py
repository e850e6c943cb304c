"""Kernels of the package beside those of this machine (`oddsengine compile`): margin removal, in a process for each.

The latter are compiled into an empty cache first. Times are of 100,000 markets, in one thread.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CODE = """
import json, sys, time
from pathlib import Path
import numpy as np
from oddsengine import DEVIG_METHODS, _jit, devig_groups
from oddsengine._cache import Folders
if sys.argv[1] == "own":
    _jit.making.append(Folders.to_make(Path(sys.argv[2]), portable=False))
random, markets, best = np.random.default_rng(7), 100_000, {}
for outcomes in (2, 3):
    probs = random.dirichlet(np.full(outcomes, 4.0), markets).clip(0.02)
    odds = (1.0 / (1.05 * probs / probs.sum(1, keepdims=True))).ravel()
    offsets = np.arange(0, outcomes * markets + 1, outcomes)
    for method in DEVIG_METHODS:
        times = []
        for _ in range(20):
            began = time.thread_time()
            devig_groups(odds, offsets, method)
            times.append(time.thread_time() - began)
        best[f"{method} {outcomes}"] = round(1000.0 * min(times), 2)
print(json.dumps(best))
"""


def times(which: str, cache: Path) -> dict[str, float]:
    """Milliseconds by method and number of outcomes."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, which, str(cache)], env=os.environ | {"ODDSENGINE_CACHE": str(cache)},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


@pytest.mark.benchmark(group="kernels")
def test_own_kernels(benchmark: Any, tmp_path: Path) -> None:
    times("own", tmp_path / "own")
    best: dict[str, dict[str, float]] = {}
    for _ in range(5):  # in turn, as the machine may be busy
        for which in ("own", "prebuilt"):
            for name, value in times(which, tmp_path / which).items():
                seen = best.setdefault(which, {})
                seen[name] = min(value, seen.get(name, value))
    benchmark.extra_info["ms"] = best
    benchmark.extra_info["ratio"] = {name: round(best["prebuilt"][name] / ms, 2) for name, ms in best["own"].items()}
    print(json.dumps(benchmark.extra_info, indent=1))
    benchmark.pedantic(times, args=("own", tmp_path / "own"), rounds=1)
