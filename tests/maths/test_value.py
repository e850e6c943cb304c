"""Edge and confidence: worked examples, the slow twins, and the direction of each factor."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import maths as naive_maths

from oddsengine.maths.value import confidence, edge

PROBS = st.floats(0.0, 1.0)


@given(PROBS, st.floats(1.001, 1000.0))
def test_edge_twin(prob: float, odds: float) -> None:
    assert edge(prob, odds) == pytest.approx(naive_maths.edge(prob, odds), abs=1e-9)


@given(st.floats(0.001, 0.999))
def test_fair_odds_have_no_edge(prob: float) -> None:
    assert edge(prob, 1.0 / prob) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("prob", "odds"), [(math.nan, 2.0), (-0.2, 2.0), (0.5, 1.0), (0.5, math.inf), (0.5, math.nan)])
def test_edge_without_answer(prob: float, odds: float) -> None:
    assert np.isnan(edge([prob, 0.5], [odds, 2.0])).tolist() == [True, False]


def test_confidence_factors() -> None:
    """One factor at a time, from a reference of 2 %, in agreement, seen now, no long shot, 3 %."""
    whole = dict(width=0.02, gap=0.0, age=0.0, live=False, prob=0.5, edge=0.03)
    assert confidence(**whole) == pytest.approx(100.0)
    assert confidence(**{**whole, "width": 0.06}) == pytest.approx(50.0)
    assert confidence(**{**whole, "width": 0.30}) == pytest.approx(20.0)
    assert confidence(**{**whole, "gap": 0.15}) == pytest.approx(100.0 / math.e)
    assert confidence(**{**whole, "gap": math.nan}) == pytest.approx(70.0)
    assert confidence(**{**whole, "age": 300.0}) == pytest.approx(100.0 / math.e)
    assert confidence(**{**whole, "age": 15.0, "live": True}) == pytest.approx(100.0 / math.e)
    assert confidence(**{**whole, "prob": 0.025}) == pytest.approx(50.0)
    assert confidence(**{**whole, "edge": 0.175}) == pytest.approx(50.0)
    assert confidence(**{**whole, "edge": 0.31}) == 0.0


@given(
    st.floats(0.0, 0.3),
    st.one_of(st.none(), st.floats(0.0, 3.0)),
    st.floats(0.0, 900.0),
    st.booleans(),
    PROBS,
    st.floats(-0.1, 0.5),
)
def test_confidence_twin(width: float, gap: float | None, age: float, live: bool, prob: float, edge: float) -> None:
    ours = confidence(width, math.nan if gap is None else gap, age, live, prob, edge)
    assert ours == pytest.approx(naive_maths.confidence(width, gap, age, live, prob, edge), abs=1e-9)
    assert 0.0 <= ours <= 100.0


def test_confidence_edges() -> None:
    assert confidence(0.02, [0.1, -0.1], 0.0, False, 0.5, 0.03).tolist() == pytest.approx(
        [100.0 * math.exp(-2 / 3)] * 2
    )
    assert confidence(0.02, 0.0, -5.0, True, 0.5, 0.03) == pytest.approx(100.0)  # a clock that is ahead
    assert np.isnan(confidence([math.nan, 0.02], 0.0, 0.0, False, 0.5, [0.03, math.nan])).all()
    assert confidence([], [], [], [], [], []).shape == (0,)
