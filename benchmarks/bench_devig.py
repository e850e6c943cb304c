"""Markets per second of margin removal, beside a plain compiled loop, batched numpy and the public packages.

    pytest benchmarks --benchmark-enable -o python_files='bench_*.py' -k devig --benchmark-columns=min,median

`extra_info` of every row holds millions of markets per second, so that rows of different sizes compare.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest

from oddsengine.devig import DEVIG_METHODS, devig, devig_groups

Floats = npt.NDArray[np.float64]

OUTCOMES = (2, 3, 10)
SIZES = (1, 1_000, 100_000)
FEW = 200  # markets for the packages, which take one market per call
PASSES = 12


def prices(markets: int, n: int) -> Floats:
    """Books whose margins of 1 to 10 percent lie on the long shots, as a power of the fair probability."""
    rng = np.random.default_rng(n)
    fair = rng.dirichlet(np.full(n, 3.0), markets)
    return np.asarray(1.0 / np.clip(fair ** rng.uniform(0.9, 0.99, (markets, 1)), 1e-4, 0.995))


def favourites(markets: int) -> Floats:
    """Two outcomes down to odds of 1.01 in hundredths: nearly every block of markets has a hard one."""
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


# One compiled loop over markets, libm inside: what one would write first.


def power_loop(odds: Floats, out: Floats) -> None:
    for i in range(odds.shape[0]):
        k = 1.0
        for _ in range(50):
            total, slope = 0.0, 0.0
            for j in range(odds.shape[1]):
                log = np.log(odds[i, j])
                p = np.exp(-k * log)
                total += p
                slope -= p * log
            step = np.log(total) * total / slope
            k -= step
            if abs(step) < 1e-13:
                break
        for j in range(odds.shape[1]):
            out[i, j] = odds[i, j] ** -k


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


def test_batched_numpy_favourites(benchmark: Any) -> None:
    measure(benchmark, power_batched, favourites(SIZES[-1]), markets=SIZES[-1])


# The same for all markets at once, columns first, with as few passes as reach 1e-12.


def multiplicative_batched(odds: Floats) -> Floats:
    q = 1.0 / odds
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def additive_batched(odds: Floats) -> Floats:
    q = 1.0 / odds
    return np.asarray(q - (q.sum(axis=1, keepdims=True) - 1.0) / odds.shape[1])


def power_batched(odds: Floats) -> Floats:
    log = -np.log(odds.T)
    k = np.ones(odds.shape[0])
    p = 1.0 / odds.T
    for _ in range(PASSES):
        total = p.sum(axis=0)
        first = (p * log).sum(axis=0) / total
        second = (p * log * log).sum(axis=0) / total - first * first
        f = np.log(total)
        k -= 2.0 * f * first / (2.0 * first * first - f * second)
        p = np.exp(k * log)
        if np.abs(f).max() < 1e-5:
            break
    return np.ascontiguousarray(p.T)


def shin_batched(odds: Floats) -> Floats:
    if odds.shape[1] == 2:
        return additive_batched(odds)
    q = 1.0 / odds.T
    total = q.sum(axis=0)
    a = q * q / total
    z = (total - 1.0) / (odds.shape[1] - 1)
    for _ in range(PASSES):
        r = np.sqrt(z * z + 4.0 * (1.0 - z) * a)
        p = 2.0 * a / (r + z)
        f = p.sum(axis=0) - 1.0
        z += f / (p * (1.0 - p) / r).sum(axis=0)
        if np.abs(f).max() < 1e-13:
            break
    return np.ascontiguousarray(p.T)


def odds_ratio_batched(odds: Floats) -> Floats:
    if odds.shape[1] == 2:
        root = np.sqrt((odds[:, 0] - 1.0) / (odds[:, 1] - 1.0))
        p = 1.0 / (1.0 + root)
        return np.stack([p, root * p], axis=1)
    profit = odds.T - 1.0
    c = np.ones(odds.shape[0])
    for _ in range(PASSES):
        p = 1.0 / (1.0 + c * profit)
        f = p.sum(axis=0) - 1.0
        first, second = (p * (1.0 - p)).sum(axis=0), (p * (1.0 - p) ** 2).sum(axis=0)
        c *= 1.0 + f * first / (first * first - f * second)
        if np.abs(f).max() < 1e-13:
            break
    return np.ascontiguousarray(p.T)


BATCHED = {
    "multiplicative": multiplicative_batched,
    "additive": additive_batched,
    "power": power_batched,
    "shin": shin_batched,
    "odds_ratio": odds_ratio_batched,
}


@pytest.mark.parametrize("method", list(BATCHED))
@pytest.mark.parametrize("n", OUTCOMES)
def test_batched_numpy(benchmark: Any, n: int, method: str) -> None:
    odds = prices(SIZES[-1], n)
    fair = measure(benchmark, BATCHED[method], odds, markets=SIZES[-1])
    ours = devig(odds, method)
    np.testing.assert_allclose(fair[~np.isnan(ours)], ours[~np.isnan(ours)], rtol=0, atol=1e-11)


# Public packages take one market per call: few markets, the same unit.


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
        goto_conversion(odds)


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
