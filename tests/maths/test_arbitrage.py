"""Hold and arbitrage stakes against their slow twins; whole stakes against every way to stake them."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive import maths as naive_maths

from oddsengine.maths.arbitrage import arbitrage_stakes, hold, round_stakes

MARKETS = st.lists(st.floats(1.01, 100.0), min_size=1, max_size=8)


class TestHold:
    def test_worked_example(self) -> None:
        # 2.00 / 3.125 / 5.00 is 50 + 32 + 20 = 102 %: a hold of 2 %.
        assert hold([2.0, 3.125, 5.0]) == pytest.approx(0.02)

    @given(MARKETS)
    def test_twin(self, odds: list[float]) -> None:
        assert hold(odds) == pytest.approx(naive_maths.hold(odds), abs=1e-12)

    def test_edges(self) -> None:
        assert np.isnan(hold([[2.0, math.nan], [2.0, 1.0], [math.inf, 2.0], [2.0, 2.0]])).tolist() == [
            True,
            True,
            True,
            False,
        ]
        assert hold(np.empty((0, 2))).shape == (0,)
        with pytest.raises(ValueError, match="axis of outcomes"):
            hold(2.0)
        with pytest.raises(ValueError, match="at least one"):
            hold([])


class TestStakes:
    @given(MARKETS, st.floats(0.01, 1e6))
    def test_payout_is_equal(self, odds: list[float], total: float) -> None:
        stakes = arbitrage_stakes(odds, total)
        assert stakes.tolist() == pytest.approx(naive_maths.arbitrage_stakes(odds, total))
        assert stakes.sum() == pytest.approx(total)
        assert (stakes * odds).tolist() == pytest.approx([total / (1.0 + float(hold(odds)))] * len(odds))

    def test_one_total_for_each_market(self) -> None:
        stakes = arbitrage_stakes([[2.0, 2.0], [3.0, 1.5], [2.0, math.nan]], [10.0, 30.0, 10.0])
        assert stakes[:2].tolist() == pytest.approx(np.array([[5.0, 5.0], [10.0, 20.0]]))
        assert np.isnan(stakes[2]).all()


class TestWholeStakes:
    @given(st.lists(st.floats(1.05, 12.0), min_size=1, max_size=3), st.integers(0, 25))
    @example([2.1, 2.1], 20)  # equal odds: the ceiling of a payout over its own odds
    @example([2.1, 2.05], 0)
    @example([3.1, 3.1, 3.1], 25)
    @example([1.1, 12.0], 25)
    def test_no_way_is_better(self, odds: list[float], most: int) -> None:
        stakes, profit = round_stakes(odds, float(most), 1.0)
        assert stakes.sum() <= most
        assert stakes.tolist() == np.round(stakes).tolist()
        assert profit == pytest.approx(float((stakes * odds).min() - stakes.sum()), abs=1e-9)
        assert profit == pytest.approx(naive_maths.round_stakes(odds, most), abs=1e-9)

    @given(
        st.integers(2, 6),
        st.floats(0.9, 0.9999),
        st.floats(10.0, 1e6),
        st.sampled_from([0.01, 1.0, 5.0]),
        st.data(),
    )
    def test_large_totals(self, count: int, book: float, total: float, step: float, data: st.DataObject) -> None:
        weights = data.draw(st.lists(st.floats(0.1, 1.0), min_size=count, max_size=count))
        odds = [sum(weights) / w / book for w in weights]
        total = min(total, 1e7 * step)
        stakes, profit = round_stakes(odds, total, step)
        assert stakes.sum() <= total * (1.0 + 1e-9)
        assert np.allclose(stakes / step, np.round(stakes / step), rtol=1e-12, atol=0.0)
        assert profit <= total * (1.0 / book - 1.0) + 1e-6
        # Rounding every stake of the even split down can lose a payout of one step at most on each leg.
        floors = np.floor(arbitrage_stakes(odds, total) / step) * step
        assert profit >= (floors * odds).min() - floors.sum() - 1e-6

    @given(
        st.lists(
            st.tuples(st.floats(1.3, 8.0), st.sampled_from([1.0, 2.0, 5.0]), st.floats(0.0, 30.0)),
            min_size=2,
            max_size=3,
        ),
        st.integers(0, 24),
    )
    @example([(2.1, 1.0, 10.0), (2.1, 5.0, 30.0)], 24)
    def test_no_way_within_limits_is_better(self, legs: list[tuple[float, float, float]], most: int) -> None:
        odds, steps, limits = (list(column) for column in zip(*legs, strict=True))
        stakes, profit = round_stakes(odds, float(most), steps, limits)
        assert (stakes <= np.array(limits) + 1e-9).all()
        assert (np.round(stakes / steps) * steps).tolist() == pytest.approx(stakes.tolist())
        assert profit == pytest.approx(float((stakes * odds).min() - stakes.sum()), abs=1e-9)
        assert profit == pytest.approx(naive_maths.limited_stakes(odds, most, steps, limits), abs=1e-9)

    @pytest.mark.parametrize("odds", [[1.9, 1.9], [2.0, 2.0]])
    def test_nothing_is_best(self, odds: list[float]) -> None:
        stakes, profit = round_stakes(odds, 1000.0, 1.0)
        assert not stakes.any()
        assert profit == 0.0

    def test_sum_of_steps_reaches_the_total(self) -> None:
        # 0.1 + 0.2 is above 0.3 in floats; the total still holds three steps of 0.1.
        stakes, _ = round_stakes([4.0, 2.0], 0.3, 0.1)
        assert stakes.tolist() == pytest.approx([0.1, 0.2])

    @pytest.mark.parametrize(
        ("odds", "total", "step", "message"),
        [
            ([2.0, 1.0], 10.0, 1.0, "odds must be"),
            ([2.0, math.nan], 10.0, 1.0, "odds must be"),
            ([[2.0, 2.0]], 10.0, 1.0, "odds must be"),
            ([2.0, 2.1], 10.0, 0.0, "step must be"),
            ([2.0, 2.1], 10.0, math.inf, "step must be"),
            ([2.0, 2.1], -1.0, 1.0, "total must be"),
            ([2.0, 2.1], math.nan, 1.0, "total must be"),
            ([2.0, 2.1], 1e9, 0.01, "total must be"),
        ],
    )
    def test_refusals(self, odds: list[float], total: float, step: float, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            round_stakes(odds, total, step)

    def test_limits_are_not_negative(self) -> None:
        with pytest.raises(ValueError, match="limits must be 0 or more"):
            round_stakes([2.0, 2.1], 10.0, 1.0, [-1.0, 5.0])


def test_a_stake_is_never_below_nothing() -> None:
    assert arbitrage_stakes([2.0, 2.0], 0.0).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="total must be 0 or more, got -5"):
        arbitrage_stakes([[2.0, 2.0], [2.1, 2.0]], [10.0, -5.0])


@given(st.lists(st.floats(1.05, 50.0), min_size=2, max_size=6), st.floats(0.0, 1e6), st.data())
def test_equal_payouts_within_limits_are_the_largest(odds: list[float], total: float, data: st.DataObject) -> None:
    limits = data.draw(st.lists(st.floats(0.0, 1e6), min_size=len(odds), max_size=len(odds)))
    stakes = arbitrage_stakes(odds, total, limits)
    assert stakes * odds == pytest.approx(np.full(len(odds), stakes[0] * odds[0]), rel=1e-9, abs=1e-9)
    assert (stakes <= np.array(limits) * (1.0 + 1e-12) + 1e-300).all()  # the smallest floats are not so exact
    assert stakes.sum() <= total * (1.0 + 1e-12)
    at_limit = np.isclose(stakes, limits, rtol=1e-9, atol=1e-9).any()
    assert at_limit or stakes.sum() == pytest.approx(total)


def test_stakes_have_no_limits_below_zero() -> None:
    with pytest.raises(ValueError, match=r"limits must be 0 or more, got \[-1.0, 5.0\]"):
        arbitrage_stakes([2.1, 2.1], 100.0, [-1.0, 5.0])
    assert arbitrage_stakes([2.0, 4.0], 90.0, [np.inf, 10.0]).tolist() == [20.0, 10.0]
