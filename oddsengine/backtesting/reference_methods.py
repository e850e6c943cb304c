"""Methods that the benchmark compares ours with: one book without its margin, the median, the file's average, packages.

Packages are called with Pinnacle's prices. They are left out where they are not installed.
"""

import importlib
import io
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import numpy as np

from oddsengine.columns import Floats
from oddsengine.fair_functions import MarketPrices, Method
from oddsengine.feeds.football_data import MARKET_AVERAGE
from oddsengine.maths.devig import devig

PINNACLE = "pinnacle"
PINNACLE_METHODS = ("power", "shin", "multiplicative", "odds_ratio")


def alone(prices: MarketPrices, book: str, remove: Callable[[tuple[float, ...]], Any]) -> Any:
    """Return one book's prices without their margin; None if it quotes none."""
    odds = prices.odds.get(book)
    return None if odds is None else remove(odds)


def _answered(prob: Floats) -> Floats | None:
    """Return None for prices that a method of margin removal has no answer for."""
    return None if np.isnan(prob).any() else prob


def removed(odds: tuple[float, ...], method: str) -> Floats | None:
    """Return fair probabilities by one of `DEVIG_METHODS`."""
    return _answered(devig(odds, method))


def single(book: str, method: str = "power") -> Method:
    """The prices of one book without their margin."""
    return partial(alone, book=book, remove=partial(removed, method=method))


def median(prices: MarketPrices) -> Floats | None:
    """The median of all books, each without its margin by the power method, scaled to sum to 1."""
    every = devig(list(prices.odds.values()))
    every = every[~np.isnan(every).any(axis=1)]
    if not every.size:
        return None
    middle = np.median(every, axis=0)
    return np.asarray(middle / middle.sum())


def references() -> dict[str, Method]:
    """The methods by name, without single books and the file's average."""
    named = {f"Pinnacle, {method.replace('_', ' ')}": single(PINNACLE, method) for method in PINNACLE_METHODS}
    return {**named, "median of all, power": median}


def average() -> Method:
    """The file's market average, which is no book, without its margin."""
    return single(MARKET_AVERAGE)


def packages() -> dict[str, Method]:
    """Methods of other packages that are installed, by name."""
    found: dict[str, Method] = {}
    for name, module, calls in _PACKAGES:
        try:
            loaded = importlib.import_module(module)
        except ImportError:
            continue
        for method, call in calls(loaded):
            found[f"{name}, {method}"] = partial(alone, book=PINNACLE, remove=call)
    return found


def _penaltyblog(module: Any) -> Iterable[tuple[str, Callable[[tuple[float, ...]], Any]]]:
    for method in ("power", "shin"):
        yield method, partial(_implied, module, method)


def _implied(module: Any, method: str, odds: tuple[float, ...]) -> Any:
    return module.calculate_implied(list(odds), method).probabilities


def _shin(module: Any) -> Iterable[tuple[str, Callable[[tuple[float, ...]], Any]]]:
    yield "Pinnacle", lambda odds: module.calculate_implied_probabilities(list(odds))


def _goto(module: Any) -> Iterable[tuple[str, Callable[[tuple[float, ...]], Any]]]:
    def call(odds: tuple[float, ...]) -> Any:
        with redirect_stdout(io.StringIO()):  # it prints what it refuses
            return module.goto_conversion(list(odds))

    yield "Pinnacle", call


_PACKAGES = (
    ("penaltyblog", "penaltyblog.implied", _penaltyblog),
    ("shin", "shin", _shin),
    ("goto_conversion", "goto_conversion", _goto),
)
