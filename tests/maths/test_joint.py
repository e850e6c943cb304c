"""Joint probabilities of two bets from the prices of their four parlays."""

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from naive import devig as naive

from oddsengine.maths.devig import DEVIG_METHODS
from oddsengine.maths.joint import joint_probabilities


def test_by_hand() -> None:
    """Implied 0.5, 0.25, 0.25 and 0.25 are 1.25 together: each is divided by that."""
    joint = joint_probabilities([2.0, 4.0, 4.0, 4.0], "multiplicative")
    assert joint == pytest.approx((0.4, 0.2, 0.2, 0.2))
    assert (joint.first, joint.second) == pytest.approx((0.6, 0.6))
    assert joint.correlation == pytest.approx((0.4 - 0.36) / 0.24)


@given(st.floats(0.2, 0.8), st.floats(0.2, 0.8), st.floats(1.02, 1.3))
def test_independent_bets_have_no_correlation(p: float, q: float, margin: float) -> None:
    fair = [p * q, p * (1.0 - q), (1.0 - p) * q, (1.0 - p) * (1.0 - q)]
    joint = joint_probabilities([1.0 / (margin * x) for x in fair], "multiplicative")
    assert joint == pytest.approx(fair)
    assert (joint.first, joint.second) == pytest.approx((p, q))
    assert joint.correlation == pytest.approx(0.0, abs=1e-9)


@given(st.lists(st.floats(0.05, 1.0), min_size=4, max_size=4), st.floats(1.0, 1.3))
def test_the_four_are_one_market(parts: list[float], margin: float) -> None:
    prices = [sum(parts) / (margin * part) for part in parts]
    assume(min(prices) > 1.01)
    joint = joint_probabilities(prices)
    assert joint == pytest.approx(naive.power(prices), abs=1e-9)
    assert -1.0 <= joint.correlation <= 1.0
    a, b = joint.first, joint.second
    values = [(1.0 - a) * (1.0 - b), -(1.0 - a) * b, -a * (1.0 - b), a * b]  # products of deviations
    covariance = sum(p * x for p, x in zip(joint, values, strict=True))
    assert joint.correlation == pytest.approx(covariance / math.sqrt(a * (1.0 - a) * b * (1.0 - b)), abs=1e-9)
    other = joint_probabilities([prices[at] for at in (1, 0, 3, 2)])  # with the second's other side
    assert other.correlation == pytest.approx(-joint.correlation, abs=1e-9)


@pytest.mark.parametrize("method", [*sorted(set(DEVIG_METHODS) - {"worst_case"}), "wpo", {"shin": 0.5, "power": 0.5}])
def test_any_method(method: Any) -> None:
    assert sum(joint_probabilities([2.6, 4.5, 4.5, 2.6], method)) == pytest.approx(1.0)


@pytest.mark.parametrize(("prices", "message"), [
    ([2.0, 4.0, 4.0], r"prices must be the decimal odds of four parlays, each above 1, got \[2.0, 4.0, 4.0\]"),
    ([2.0, 4.0, 4.0, 1.0], "four parlays, each above 1"),
    ([260, 450, 450, -110], "four parlays, each above 1"),
    ([2.0, 4.0, 4.0, math.nan], "four parlays, each above 1"),
    ([2.0, 4.0, 4.0, math.inf], "four parlays, each above 1"),
    ([260, 450, 450, 300], "together imply somewhat more than 1, got 0.01162"),
    ([1.9, 1.9, 1.9, 1.9], "together imply somewhat more than 1, got 2.105"),
])  # fmt: skip
def test_what_has_no_joint_probabilities(prices: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        joint_probabilities(prices)


def test_a_method_has_to_give_a_distribution() -> None:
    with pytest.raises(ValueError, match="method 'worst_case' gives no probabilities that sum to 1, got"):
        joint_probabilities([2.6, 4.5, 4.5, 2.6], "worst_case")
