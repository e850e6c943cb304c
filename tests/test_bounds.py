"""Parameters that have to be numbers: what is one, and what the error says."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import oddsengine as oe
from oddsengine.bounds import check_bool, check_number, excerpt


@pytest.mark.parametrize("value", [0, 0.0, 1.0, np.float64(0.5), np.float32(0.5), np.int64(1), Fraction(1, 2)])
def test_numbers_within_bounds_are_taken(value: Any) -> None:
    check_number("x", value, 0.0)


@pytest.mark.parametrize(
    ("value", "bounds", "allowed"),
    [
        (math.nan, {}, "a finite number"),
        (-math.inf, {}, "a finite number"),
        ("1", {}, "a finite number"),
        (True, {}, "a finite number"),
        (10**400, {}, "a finite number"),
        (None, {}, "a finite number"),
        (math.inf, {"optional": True}, "None or a finite number"),
        (-0.1, {"least": 0.0}, "a finite number of at least 0"),
        (0, {"above": 0.0}, "a finite number above 0"),
        (1e7, {"most": 1e6}, "a finite number of at most 1,000,000"),
        (math.nan, {"least": 0.0, "most": 8760.0}, "from 0 to 8,760"),
        (0.0, {"above": 0.0, "most": 1.0}, "above 0 and at most 1"),
        (1.1, {"above": 0.0, "most": 1.0}, "above 0 and at most 1"),
    ],
)  # fmt: skip
def test_others_are_named_with_what_is_allowed(value: Any, bounds: dict[str, Any], allowed: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'x must be {allowed}, got {excerpt(value)}')}$"):
        check_number("x", value, **bounds)


def test_none_is_allowed_where_it_is_optional() -> None:
    check_number("x", None, above=0.0, optional=True)


LONG = "x" * 10_000_000
ROWS = [{"sportsbook": "a", "event_id": "e", "market_type": "moneyline", "selection": "x", "odds_decimal": 1.9}]
NOW = datetime(2026, 2, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "call",
    [
        lambda: oe.find_ev(ROWS, method=LONG),
        lambda: oe.find_ev(ROWS, method=f"shin=0.5,{LONG}=0.5"),
        lambda: oe.find_ev(ROWS, sharp=LONG),
        lambda: oe.find_ev(ROWS, sharp={LONG: LONG}),  # type: ignore[dict-item]
        lambda: oe.find_ev(ROWS, books=LONG),
        lambda: oe.find_ev(ROWS, books=[LONG]),
        lambda: oe.find_ev(ROWS, include=[LONG]),
        lambda: oe.find_ev(ROWS, min_ev=LONG),  # type: ignore[arg-type]
        lambda: oe.find_ev(pl.DataFrame({LONG: [1]})),
        lambda: oe.Engine(guards=[LONG]),
        lambda: oe.Engine(guards={LONG: 1.0}),
        lambda: oe.Engine().view(kinds=[LONG]),
        lambda: oe.Engine().step((), NOW, removed=[LONG]),
        lambda: oe.Engine().step((), NOW, complete=[(LONG, LONG, LONG)]),  # type: ignore[list-item]
        lambda: oe.Engine().step((), NOW, events=[{"event_id": LONG, "status": LONG}]),
        lambda: oe.Engine().step((), LONG),  # type: ignore[arg-type]
        lambda: oe.explain(pl.DataFrame(ROWS), LONG),
    ],
    ids=range(17),
)  # fmt: skip
def test_a_message_has_only_the_beginning_of_a_long_value(call: Callable[[], object]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"xxx\.\.\.") as caught:
        call()
    assert len(str(caught.value)) < 2000


def test_only_true_and_false_are_booleans() -> None:
    for value in (True, False):
        check_bool("x", value)
    for wrong in (None, 0, 1, "x"):
        with pytest.raises(ValueError, match=f"x must be True or False, got {wrong!r}"):
            check_bool("x", wrong)
