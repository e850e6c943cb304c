"""Kelly stakes: worked examples, the slow twins, and that no other stakes grow faster."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from naive import maths as naive_maths

from oddsengine.maths.kelly import kelly, kelly_exclusive

PROBS = st.floats(0.0, 1.0)
ODDS = st.floats(1.01, 200.0)


@st.composite
def races(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Two to five outcomes whose probabilities sum to 1 or leave a rest, at odds near and far from fair."""
    count = draw(st.integers(2, 5))
    weights = draw(st.lists(st.floats(0.01, 1.0), min_size=count, max_size=count))
    rest = draw(st.sampled_from([0.0, 0.05, 0.5]))
    probs = [w / sum(weights) * (1.0 - rest) for w in weights]
    generosity = draw(st.lists(st.floats(0.6, 1.5), min_size=count, max_size=count))
    odds = [max(1.01, g / p) for g, p in zip(generosity, probs, strict=True)]
    return probs, odds


class TestKelly:
    def test_worked_example(self) -> None:
        # Kelly (1956): an even-money bet with p = 0.6 takes p - q = 0.2 of the bankroll.
        assert kelly(0.6, 2.0) == pytest.approx(0.2)

    @given(PROBS, ODDS)
    def test_twin(self, prob: float, odds: float) -> None:
        assert kelly(prob, odds) == pytest.approx(naive_maths.kelly(prob, odds), abs=1e-12)

    @given(st.floats(0.01, 0.99), ODDS, st.floats(-0.02, 0.02))
    def test_growth_is_maximal(self, prob: float, odds: float, nudge: float) -> None:
        stake = float(kelly(prob, odds))
        other = stake + nudge
        assume(0.0 <= other < 1.0)
        ours = naive_maths.growth([prob], [odds], [stake])
        assert naive_maths.growth([prob], [odds], [other]) <= ours + 1e-12

    @given(PROBS, ODDS, st.floats(0.01, 1.0))
    def test_fraction_scales(self, prob: float, odds: float, fraction: float) -> None:
        assert kelly(prob, odds, fraction) == pytest.approx(fraction * float(kelly(prob, odds)))

    @pytest.mark.parametrize(
        ("prob", "odds"),
        [(math.nan, 2.0), (0.5, math.nan), (0.5, 1.0), (0.5, 0.0), (0.5, math.inf), (1.0 + 1e-10, 2.0), (-0.1, 2.0)],
    )
    def test_no_answer(self, prob: float, odds: float) -> None:
        assert np.isnan(kelly([prob, 0.6], [odds, 2.0])).tolist() == [True, False]

    def test_edges(self) -> None:
        assert kelly([0.0, 1.0], 3.0).tolist() == [0.0, 1.0]
        assert kelly([], []).shape == (0,)
        assert kelly([[0.5], [0.6]], [2.0, 3.0, 4.0]).shape == (2, 3)

    @pytest.mark.parametrize("fraction", [0.0, -0.5, 1.5, math.nan])
    def test_bad_fraction(self, fraction: float) -> None:
        with pytest.raises(ValueError, match="fraction must be above 0 and at most 1, got"):
            kelly(0.6, 2.0, fraction)


class TestExclusive:
    def test_one_outcome_is_a_single_bet(self) -> None:
        assert kelly_exclusive([0.6], [2.0]).tolist() == pytest.approx([0.2])

    def test_insurance(self) -> None:
        # The second outcome has p d = 0.99 < 1 and is still bet: it pays when the first one loses.
        stakes = kelly_exclusive([0.5, 0.45], [2.5, 2.2])
        assert stakes[1] > 0.0
        assert kelly(0.45, 2.2) == 0.0

    @given(races())
    @example(([0.6, 0.4], [2.0, 2.0]))  # fair prices in sum: the last reserve rate is 0 / 0
    @example(([0.5, 0.5], [2.1, 2.1]))  # a sure bet
    @example(([0.9, 0.1], [1.2, 30.0]))
    def test_no_direction_grows_faster(self, race: tuple[list[float], list[float]]) -> None:
        probs, odds = race
        stakes = kelly_exclusive(probs, odds).tolist()
        assert min(stakes) >= 0.0
        assert sum(stakes) <= 1.0 + 1e-9
        if sum(1.0 / d for d in odds) < 1.0 - 1e-9 and sum(probs) > 1.0 - 1e-9:
            assert stakes == pytest.approx(probs)
        else:
            assert max(naive_maths.gains(probs, odds, stakes)) <= 1.0 + 1e-7

    @given(races())
    def test_numerical_optimum(self, race: tuple[list[float], list[float]]) -> None:
        probs, odds = race
        best = naive_maths.growth(probs, odds, kelly_exclusive(probs, odds).tolist())
        found = naive_maths.kelly_exclusive(probs, odds)
        reached = naive_maths.growth(probs, odds, found)
        assert best >= reached - 1e-9
        assert best <= reached + math.log(max(1.0, *naive_maths.gains(probs, odds, found))) + 1e-9

    @given(st.lists(races(), min_size=1, max_size=4))
    def test_events_are_independent(self, events: list[tuple[list[float], list[float]]]) -> None:
        width = 5
        probs = np.array([p + [0.0] * (width - len(p)) for p, _ in events])
        odds = np.array([d + [2.0] * (width - len(d)) for _, d in events])
        together = kelly_exclusive(probs, odds)
        for row, (p, d) in zip(together, events, strict=True):
            assert row[: len(p)].tolist() == pytest.approx(kelly_exclusive(p, d).tolist(), abs=1e-9)
            assert not row[len(p) :].any()

    @given(races(), st.floats(0.01, 1.0))
    def test_fraction_scales(self, race: tuple[list[float], list[float]], fraction: float) -> None:
        assert kelly_exclusive(*race, fraction).tolist() == pytest.approx((fraction * kelly_exclusive(*race)).tolist())

    @pytest.mark.parametrize(
        ("probs", "odds"),
        [
            ([0.7, 0.4], [2.0, 2.0]),
            ([0.5, math.nan], [2.0, 2.0]),
            ([0.5, 0.5], [2.2, 1.0]),
            ([0.5, 0.5], [2.2, math.inf]),
            ([0.5, -0.1], [2.2, 2.0]),
        ],
    )
    def test_no_answer(self, probs: list[float], odds: list[float]) -> None:
        stakes = kelly_exclusive([probs, [0.6, 0.4]], [odds, [2.0, 2.0]])
        assert np.isnan(stakes).tolist() == [[True, True], [False, False]]

    def test_edges(self) -> None:
        assert kelly_exclusive(np.empty((0, 3)), np.empty((0, 3))).shape == (0, 3)
        assert kelly_exclusive([[0.5, 0.5]] * 2, [2.2, 2.2], [0.5, 1.0]).tolist() == [
            [0.25, 0.25],
            [0.5, 0.5],
        ]
        with pytest.raises(ValueError, match="one number per outcome"):
            kelly_exclusive(0.5, 2.0)
        with pytest.raises(ValueError, match="fraction must be"):
            kelly_exclusive([0.5], [2.0], 2.0)
