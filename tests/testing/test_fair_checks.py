"""The checks of fair prices: a good one passes them, and each fault that is planted in it is caught."""

import time
from collections.abc import Callable
from typing import Any

import pytest

import oddsengine as oe
from oddsengine.testing import FAIR_CHECKS
from oddsengine.testing import fair_checks as checks


def fair(prices: oe.MarketPrices) -> list[float] | None:
    books = [oe.devig(odds, "power") for odds in prices.odds.values()]
    return None if len(books) < 3 else [sum(shares) / len(books) for shares in zip(*books, strict=True)]


@pytest.mark.parametrize("check", FAIR_CHECKS)
def test_a_good_one_passes(check: Callable[[Any], None]) -> None:
    check(fair)


def _margin(prices: oe.MarketPrices) -> list[float]:
    return [1.0 / odds for odds in next(iter(prices.odds.values()))]


def _first_book(prices: oe.MarketPrices) -> list[float] | None:
    return oe.devig(next(iter(prices.odds.values())), "power").tolist() if prices.odds else None


def _first_outcome(prices: oe.MarketPrices) -> list[float]:
    rest = len(prices.outcomes) - 1
    return [0.4] + [0.6 / rest] * rest


def _slow(prices: oe.MarketPrices) -> list[float] | None:
    time.sleep(0.05)
    return fair(prices)


def _counting() -> Callable[[oe.MarketPrices], Any]:
    asked: list[str] = []

    def method(prices: oe.MarketPrices) -> list[float]:
        asked.append(prices.market)
        return [
            0.5 + len(asked) / 1000,
            *[(0.5 - len(asked) / 1000) / (len(prices.outcomes) - 1)] * (len(prices.outcomes) - 1),
        ]

    return method


def _changing(prices: oe.MarketPrices) -> list[float] | None:
    prices.odds.pop("fanduel", None)  # type: ignore[attr-defined]
    return fair(prices)


@pytest.mark.parametrize(
    ("method", "check", "says"),
    [
        (_margin, checks.answers_are_probabilities, "a sum other than 1 (1 time, first 1.025641)"),
        (lambda _: [0.5, 0.5], checks.answers_are_probabilities, "2 probabilities for 3 outcomes"),
        (lambda _: None, checks.answers_are_probabilities, "to some of the 9 markets, it has none"),
        (lambda prices: prices.odds["pinnacle"], checks.answers_are_probabilities, "a probability outside 0 and 1"),
        (_slow, checks.answers_are_probabilities, "a call over 0.01 s"),
        (_first_book, checks.order_does_not_matter, "its books in another order must have the same answer"),
        (_first_outcome, checks.order_does_not_matter, "its outcomes in another order must have the same answer"),
        (_counting(), checks.it_is_pure, "the same prices a second time must have the same answer"),
        (_changing, checks.it_is_pure, "must not change the prices"),
    ],
    ids=["margin", "length", "none", "odds", "slow", "first book", "first outcome", "counting", "changing"],
)
def test_a_planted_fault_is_found(
    method: Any, check: Callable[[Any], None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oddsengine.fair_functions.LIMIT_S", 0.01 if method is _slow else 5.0)
    with pytest.raises(AssertionError) as error:
        check(method)
    assert says in str(error.value)
