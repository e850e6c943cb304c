"""Commission: prices after commissions and fees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.maths import net_odds as twin

from oddsengine.maths.odds import charged


def test_worked_examples() -> None:
    assert charged(3.0, 0.05, 0.0) == pytest.approx(2.9)  # 2.00 of winnings lose 5 %
    assert charged(2.0, 0.0, 0.07) == pytest.approx(1.0 / (0.5 + 0.0175))  # a contract at 0.50 costs 0.5175
    assert np.isnan(charged(np.nan, 0.05, 0.0))


@given(st.floats(1.001, 1000.0), st.sampled_from([0.0, 0.02, 0.05]), st.sampled_from([0.0, 0.05, 0.07]))
def test_twin(odds: float, rate: float, fee: float) -> None:
    assert charged(odds, rate, fee) == pytest.approx(twin(odds, rate, fee), rel=1e-12)
    assert charged([[odds], [2.0]], [rate, 0.0], [fee, 0.0]).tolist() == [
        [charged(odds, rate, fee), odds],
        [charged(2.0, rate, fee), 2.0],
    ]


@given(st.floats(1.001, 1000.0), st.floats(0.0, 0.2), st.floats(0.0, 0.2))
def test_a_charge_never_improves_a_price(odds: float, rate: float, fee: float) -> None:
    assert 1.0 <= charged(odds, rate, fee) <= odds * (1.0 + 1e-12)
