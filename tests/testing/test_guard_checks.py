"""The checks of guards: a good one passes, and each finds a fault that was put in."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from oddsengine import Guard
from oddsengine.testing import GUARD_CHECKS, GuardCase
from oddsengine.testing.guard_checks import (
    it_agrees_with_its_twin,
    it_is_pure,
    order_does_not_matter,
    other_sections_do_not_matter,
    verdicts_are_booleans,
)

ODDS = pl.col("odds_decimal")
BET = ("market", "outcome", "odds_decimal")
Check = Callable[[GuardCase], None]


def far(prices: pl.DataFrame) -> pl.Series:
    return prices.select(1.1 * ODDS.median().over("market", "outcome") < ODDS).to_series()


def slow_far(rows: Sequence[Mapping[str, Any]]) -> list[bool]:
    bets: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        bets.setdefault((row["market"], row["outcome"]), []).append(row["odds_decimal"])
    out = []
    for row in rows:
        odds = sorted(bets[row["market"], row["outcome"]])
        median = (odds[(len(odds) - 1) // 2] + odds[len(odds) // 2]) / 2.0
        out.append(row["odds_decimal"] > 1.1 * median)
    return out


@pytest.mark.parametrize("check", GUARD_CHECKS)
def test_a_good_guard_passes(check: Check) -> None:
    check(GuardCase(Guard(far, "far above the median", BET), twin=slow_far))


class Remembers:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, prices: pl.DataFrame) -> pl.Series:
        self.calls += 1
        return prices["odds_decimal"] > 2.0 + self.calls


class Jumps:
    """Rejects what has changed by more than a tenth since it was last seen."""

    def __init__(self) -> None:
        self.last: dict[tuple[Any, ...], float] = {}

    def __call__(self, prices: pl.DataFrame) -> list[bool]:
        out = []
        for *bet, odds in prices.select(
            "event_id", "sportsbook", "market", "outcome", "is_live", "odds_decimal"
        ).rows():
            before = self.last.get(tuple(bet), odds)
            out.append(abs(odds - before) > 0.1 * before)
            self.last[tuple(bet)] = odds
        return out


def best_of_event(prices: pl.DataFrame) -> pl.Series:
    """The best price of a selection, whatever period it is on, and in play or not."""
    best = ODDS.max().over("event_id", "market_type", "selection")
    return prices.select((best <= ODDS) & (pl.len().over("event_id", "market_type", "selection") > 4)).to_series()


def no_nulls(prices: pl.DataFrame) -> list[bool]:
    if prices["league"].null_count():
        raise ValueError("a null")
    return [False] * prices.height


def changes(prices: pl.DataFrame) -> pl.Series:
    prices[0, "odds_decimal"] = 1.5
    return prices["odds_decimal"] > 9.0


@pytest.mark.parametrize(
    ("check", "guard", "message"),
    [
        (
            verdicts_are_booleans,
            Guard(lambda p: p["odds_decimal"], "x"),
            "it must return a boolean for each price, got",
        ),
        (verdicts_are_booleans, Guard(lambda p: p["none"], "x"), "it raises ColumnNotFoundError"),
        (verdicts_are_booleans, Guard(lambda p: p["odds_decimal"] > 1.0, "x"), "prices of a usual board"),
        (verdicts_are_booleans, Guard(far, "x", ("colour",)), "its columns must be among event_id, "),
        (verdicts_are_booleans, "no-such-guard", "no installed package registers the guard 'no-such-guard'"),
        (order_does_not_matter, Guard(lambda p: [True] + [False] * (p.height - 1), "x"), "in another order, such as"),
        (order_does_not_matter, Guard(lambda p: p["market"] == 3, "x"), "in another order, such as"),
        (
            other_sections_do_not_matter,
            Guard(lambda p: p.select(2.0 * ODDS.median() < ODDS).to_series(), "x", ("odds_decimal",)),
            "have another verdict without the other sections",
        ),
        (
            other_sections_do_not_matter,
            Guard(best_of_event, "x", ("event_id", "market_type", "selection", "odds_decimal")),
            "have another verdict without the other sections",
        ),
        (
            other_sections_do_not_matter,
            Guard(lambda p: [False] * max(p.height, 2), "x"),
            "1 prices: it must return a boolean for each price, got .* for 1",
        ),
        (it_is_pure, Guard(Remembers(), "x"), "have another verdict a second time"),
        (it_is_pure, Guard(Jumps(), "x"), "have another verdict a second time"),
        (verdicts_are_booleans, Guard(no_nulls, "x"), "it raises ValueError: a null"),
        (verdicts_are_booleans, Guard(far, "x", ("line", "line")), "its columns must be different"),
        (it_is_pure, Guard(changes, "x", ("odds_decimal",)), "it must not change the prices"),
        (it_agrees_with_its_twin, Guard(far, "x", BET), "have another verdict as its twin sees them"),
    ],
)
def test_a_fault_is_found(check: Check, guard: Guard | str, message: str) -> None:
    def none(rows: Sequence[Mapping[str, Any]]) -> list[bool]:
        return [False] * len(rows)

    with pytest.raises(AssertionError, match=message):
        check(GuardCase(guard, twin=none))


def test_a_twin_that_rejects_nothing_proves_nothing() -> None:
    never = Guard(lambda prices: prices["odds_decimal"] > 1e6, "x", ("odds_decimal",))
    case = GuardCase(never, twin=lambda rows: [row["odds_decimal"] > 1e6 for row in rows])
    with pytest.raises(AssertionError, match="must have some that it rejects"):
        it_agrees_with_its_twin(case)
