"""Markets per second of margin removal, compared with a plain compiled loop, batched numpy and the public packages.

    pytest benchmarks --benchmark-enable -o python_files='bench_*.py' -k devig --benchmark-columns=min,median

`extra_info` has millions of markets per second, comparable across sizes.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest

from oddsengine.maths.devig import DEVIG_METHODS, devig, devig_groups

Floats = npt.NDArray[np.float64]

OUTCOMES = (2, 3, 10)
SIZES = (1, 1_000, 100_000)
FEW = 200  # markets for the packages, which take one market per call
PASSES = 12
BLOCK = 2048  # markets per pass of batched numpy


def prices(markets: int, n: int) -> Floats:
    """Books with margins of 1 to 10 percent, applied as a power of the fair probability."""
    rng = np.random.default_rng(n)
    fair = rng.dirichlet(np.full(n, 3.0), markets)
    return np.asarray(1.0 / np.clip(fair ** rng.uniform(0.9, 0.99, (markets, 1)), 1e-4, 0.995))


def favourites(markets: int) -> Floats:
    """Two outcomes with odds down to 1.01 in hundredths: nearly every block of markets has a hard one."""
    rng = np.random.default_rng(1)
    fair = 1.0 / (1.0 + np.exp(rng.normal(0.0, 1.8, (markets, 1)) * [1.0, -1.0]))
    return np.asarray(np.clip(np.round(1.0 / (fair * rng.uniform(1.02, 1.08, (markets, 1))), 2), 1.01, 1001.0))


def measure(benchmark: Any, function: Callable[..., Any], *args: Any, markets: int) -> Any:
    """Compile first, time second."""
    function(*args)
    answer = benchmark(function, *args)
    if benchmark.stats is not None:
        rate = markets / benchmark.stats.stats.min / 1e6
        benchmark.extra_info["million_markets_per_second"] = float(f"{rate:.3g}")
    return answer


@pytest.mark.parametrize("method", DEVIG_METHODS)
@pytest.mark.parametrize("n", OUTCOMES)
@pytest.mark.parametrize("markets", SIZES)
def test_devig(benchmark: Any, markets: int, n: int, method: str) -> None:
    measure(benchmark, devig, prices(markets, n), method, markets=markets)


def test_devig_favourites(benchmark: Any) -> None:
    measure(benchmark, devig, favourites(SIZES[-1]), markets=SIZES[-1])


@pytest.mark.parametrize("layout", ["pairs", "pairs_and_triples", "two_to_twelve"])
def test_devig_groups(benchmark: Any, layout: str) -> None:
    markets = 62_500
    choices = {"pairs": [2], "pairs_and_triples": [2, 3], "two_to_twelve": list(range(2, 13))}[layout]
    sizes = np.random.default_rng(1).choice(choices, markets)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    odds = np.empty(offsets[-1])
    for n in choices:
        starts = offsets[:-1][sizes == n]
        odds[starts[:, np.newaxis] + np.arange(n)] = prices(starts.size, n)
    measure(benchmark, devig_groups, odds, offsets, markets=markets)


# A compiled loop over markets, as one would write it first.


def power_loop(odds: Floats, out: Floats) -> None:
    for i in range(odds.shape[0]):
        for j in range(odds.shape[1]):
            out[i, j] = -np.log(odds[i, j])
        k = 1.0
        for _ in range(50):
            s0, s1, s2 = 0.0, 0.0, 0.0
            for j in range(odds.shape[1]):
                log = out[i, j]
                p = np.exp(k * log)
                s0 += p
                s1 += p * log
                s2 += p * log * log
            f, first = np.log(s0), s1 / s0
            step = 2.0 * f * first / (2.0 * first * first - f * (s2 / s0 - first * first))
            k -= step
            if abs(step) < 1e-5:  # Halley: the next step would be below 1e-14
                break
        for j in range(odds.shape[1]):
            out[i, j] = np.exp(k * out[i, j])


def shin_loop(odds: Floats, out: Floats) -> None:
    for i in range(odds.shape[0]):
        total = 0.0
        for j in range(odds.shape[1]):
            total += 1.0 / odds[i, j]
        z = 0.0
        for _ in range(50):
            f, slope = -1.0, 0.0
            for j in range(odds.shape[1]):
                a = 1.0 / (odds[i, j] * odds[i, j] * total)
                r = np.sqrt(z * z + 4.0 * (1.0 - z) * a)
                p = 2.0 * a / (r + z)
                out[i, j] = p
                f += p
                slope -= p * (1.0 - p) / r
            z -= f / slope
            if abs(f) < 1e-13:
                break


def odds_ratio_loop(odds: Floats, out: Floats) -> None:
    for i in range(odds.shape[0]):
        c = 1.0
        for _ in range(50):
            f, slope = -1.0, 0.0
            for j in range(odds.shape[1]):
                p = 1.0 / (1.0 + c * (odds[i, j] - 1.0))
                out[i, j] = p
                f += p
                slope -= p * (1.0 - p) / c
            c -= f / slope
            if abs(f) < 1e-13:
                break


def multiplicative_loop(odds: Floats, out: Floats) -> None:
    for i in range(odds.shape[0]):
        total = 0.0
        for j in range(odds.shape[1]):
            total += 1.0 / odds[i, j]
        for j in range(odds.shape[1]):
            out[i, j] = 1.0 / odds[i, j] / total


LOOPS = {
    "multiplicative": multiplicative_loop,
    "power": power_loop,
    "shin": shin_loop,
    "odds_ratio": odds_ratio_loop,
}


@pytest.mark.parametrize("method", list(LOOPS))
@pytest.mark.parametrize("n", OUTCOMES)
def test_plain_njit(benchmark: Any, n: int, method: str) -> None:
    loop = numba.njit(error_model="numpy")(LOOPS[method])
    odds = prices(SIZES[-1], n)
    out = np.empty_like(odds)
    measure(benchmark, loop, odds, out, markets=SIZES[-1])
    np.testing.assert_allclose(out, devig(odds, method), rtol=0, atol=1e-11)


def test_plain_njit_favourites(benchmark: Any) -> None:
    odds = favourites(SIZES[-1])
    out = np.empty_like(odds)
    measure(benchmark, numba.njit(error_model="numpy")(power_loop), odds, out, markets=SIZES[-1])
    np.testing.assert_allclose(out, devig(odds), rtol=0, atol=1e-11)


# The same for all markets at once: contiguous columns, cache-sized blocks, as few passes as needed for 1e-12.


def multiplicative_block(odds: Floats) -> Floats:
    q = 1.0 / odds
    q /= q.sum(axis=0)
    return q


def additive_block(odds: Floats) -> Floats:
    q = 1.0 / odds
    q -= (q.sum(axis=0) - 1.0) / odds.shape[0]
    return q


def power_block(odds: Floats) -> Floats:
    p = 1.0 / odds
    log = np.log(p)
    k = np.ones(odds.shape[1])
    for _ in range(PASSES):
        total = p.sum(axis=0)
        slope = p * log
        first = slope.sum(axis=0) / total
        slope *= log
        second = slope.sum(axis=0) / total - first * first
        f = np.log(total)
        step = 2.0 * f * first / (2.0 * first * first - f * second)
        k -= step
        p = np.exp(k * log)
        if max(step.max(), -step.min()) < 1e-4:
            break
    return p


def shin_block(odds: Floats) -> Floats:
    if odds.shape[0] == 2:
        return additive_block(odds)
    a = 1.0 / odds
    total = a.sum(axis=0)
    z = (total - 1.0) / (odds.shape[0] - 1)
    a *= a
    a /= total
    for _ in range(PASSES):
        r = np.sqrt(z * z + 4.0 * (1.0 - z) * a)
        p = 2.0 * a / (r + z)
        f = p.sum(axis=0) - 1.0
        z += f / (p * (1.0 - p) / r).sum(axis=0)
        if max(f.max(), -f.min()) < 1e-13:
            break
    return np.asarray(p)


def odds_ratio_block(odds: Floats) -> Floats:
    profit = odds - 1.0
    if odds.shape[0] == 2:
        root = np.sqrt(profit[0] / profit[1])
        p = 1.0 / (1.0 + root)
        return np.stack([p, root * p])
    c = np.ones(odds.shape[1])
    for _ in range(PASSES):
        p = 1.0 / (1.0 + c * profit)
        f = p.sum(axis=0) - 1.0
        v = p * (1.0 - p)
        first, second = v.sum(axis=0), (v - v * p).sum(axis=0)
        c *= 1.0 + f * first / (first * first - f * second)
        if max(f.max(), -f.min()) < 1e-13:
            break
    return np.asarray(p)


def batched(block: Callable[[Floats], Floats], odds: Floats) -> Floats:
    out = np.empty_like(odds)
    for first in range(0, len(odds), BLOCK):
        out[first : first + BLOCK] = block(np.ascontiguousarray(odds[first : first + BLOCK].T)).T
    return out


BATCHED = {
    "multiplicative": multiplicative_block,
    "additive": additive_block,
    "power": power_block,
    "shin": shin_block,
    "odds_ratio": odds_ratio_block,
}


@pytest.mark.parametrize("method", list(BATCHED))
@pytest.mark.parametrize("n", OUTCOMES)
def test_batched_numpy(benchmark: Any, n: int, method: str) -> None:
    odds = prices(SIZES[-1], n)
    fair = measure(benchmark, batched, BATCHED[method], odds, markets=SIZES[-1])
    ours = devig(odds, method)
    np.testing.assert_allclose(fair[~np.isnan(ours)], ours[~np.isnan(ours)], rtol=0, atol=1e-11)


def test_batched_numpy_favourites(benchmark: Any) -> None:
    measure(benchmark, power_block, favourites(SIZES[-1]), markets=SIZES[-1])


# Public packages take one market per call: few markets, in the same unit.


def penaltyblog_all(rows: list[list[float]], method: str) -> None:
    calculate_implied = pytest.importorskip("penaltyblog.implied").calculate_implied
    for odds in rows:
        calculate_implied(odds, method)


def shin_all(rows: list[list[float]], method: str) -> None:
    calculate_implied_probabilities = pytest.importorskip("shin").calculate_implied_probabilities
    assert method == "shin"  # the only one it has
    for odds in rows:
        calculate_implied_probabilities(odds)


def pybettor_all(rows: list[list[float]], method: str) -> None:
    implied_prob = pytest.importorskip("pybettor").implied_prob
    for odds in rows:
        implied_prob(odds, category="dec", method=method)


def goto_conversion_all(rows: list[list[float]], method: str) -> None:
    goto_conversion = pytest.importorskip("goto_conversion").goto_conversion
    assert method == "its own"
    for odds in rows:
        goto_conversion(odds, multiplicativeIfImprudentOdds=True)


PACKAGES = [
    *((penaltyblog_all, method) for method in ("multiplicative", "additive", "power", "shin", "odds_ratio")),
    *((pybettor_all, method) for method in ("basic", "additive", "power", "shin", "odds_ratio")),
    (shin_all, "shin"),
    (goto_conversion_all, "its own"),
]


@pytest.mark.parametrize(
    ("package", "method"), PACKAGES, ids=[f"{package.__name__}-{method}" for package, method in PACKAGES]
)
@pytest.mark.parametrize("n", OUTCOMES)
def test_package(benchmark: Any, n: int, package: Callable[..., None], method: str) -> None:
    if (package, method, n) == (pybettor_all, "shin", 2):
        pytest.skip("divides by zero")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # imports and solvers of others; ours stay errors
        measure(benchmark, package, prices(FEW, n).tolist(), method, markets=FEW)
