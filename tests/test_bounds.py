"""Parameters that have to be numbers: what is one, and what the error says."""

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oddsengine.bounds import check_number


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
    with pytest.raises(ValueError, match=f"^{re.escape(f'x must be {allowed}, got {value!r}')}$"):
        check_number("x", value, **bounds)


def test_none_is_allowed_where_it_is_optional() -> None:
    check_number("x", None, above=0.0, optional=True)
