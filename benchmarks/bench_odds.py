"""Conversions per second between odds formats, compared with a loop in plain Python and pybettor.

pytest benchmarks --benchmark-enable -o python_files='bench_*.py' -k odds
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oddsengine.maths import odds

SIZES = (1, 1_000, 100_000)
FEW = 1_000  # prices for pybettor

AMERICAN = np.where(np.arange(SIZES[-1]) % 2, 100.0 + np.arange(SIZES[-1]) % 900, -100.0 - np.arange(SIZES[-1]) % 900)
DECIMAL = odds.american_to_decimal(AMERICAN)
NUMERATOR, DENOMINATOR = odds.decimal_to_fractional(DECIMAL)
INPUTS: dict[Callable[..., Any], tuple[Any, ...]] = {
    odds.american_to_decimal: (AMERICAN,),
    odds.decimal_to_american: (DECIMAL,),
    odds.decimal_to_probability: (DECIMAL,),
    odds.probability_to_decimal: (1.0 / DECIMAL,),
    odds.fractional_to_decimal: (NUMERATOR, DENOMINATOR),
    odds.decimal_to_fractional: (DECIMAL,),
    odds.parse_fractional: (odds.format_fractional(NUMERATOR, DENOMINATOR),),
    odds.format_fractional: (NUMERATOR, DENOMINATOR),
}


def measure(benchmark: Any, function: Callable[..., Any], *args: Any, prices: int) -> None:
    function(*args)
    benchmark(function, *args)
    if benchmark.stats is not None:
        benchmark.extra_info["million_prices_per_second"] = float(f"{prices / benchmark.stats.stats.min / 1e6:.3g}")


@pytest.mark.parametrize("function", INPUTS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("prices", SIZES)
def test_conversion(benchmark: Any, prices: int, function: Callable[..., Any]) -> None:
    measure(benchmark, function, *(column[:prices] for column in INPUTS[function]), prices=prices)


def american_to_decimal_plainly(american: list[float]) -> list[float]:
    return [1.0 + a / 100.0 if a >= 100.0 else 1.0 - 100.0 / a for a in american]


def test_plain_python(benchmark: Any) -> None:
    measure(benchmark, american_to_decimal_plainly, AMERICAN.tolist(), prices=SIZES[-1])


@pytest.mark.parametrize("output", ["dec", "frac", "prob"])
def test_pybettor(benchmark: Any, output: str) -> None:
    convert_odds = pytest.importorskip("pybettor").convert_odds
    whole = AMERICAN[:FEW].astype(np.int64).tolist()
    measure(benchmark, convert_odds, whole, "us", output, prices=FEW)
