"""Commission: prices after commissions and fees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.maths import net_odds as twin

from oddsengine.pricing.commission import net_odds


def test_worked_examples() -> None:
    assert net_odds(3.0, 0.05, 0.0) == pytest.approx(2.9)  # 2.00 of winnings lose 5 %
    assert net_odds(2.0, 0.0, 0.07) == pytest.approx(1.0 / (0.5 + 0.0175))  # a contract at 0.50 costs 0.5175
    assert np.isnan(net_odds(np.nan, 0.05, 0.0))


@given(st.floats(1.001, 1000.0), st.sampled_from([0.0, 0.02, 0.05]), st.sampled_from([0.0, 0.05, 0.07]))
def test_twin(odds: float, rate: float, fee: float) -> None:
    assert net_odds(odds, rate, fee) == pytest.approx(twin(odds, rate, fee), rel=1e-12)
    assert net_odds([[odds], [2.0]], [rate, 0.0], [fee, 0.0]).tolist() == [
        [net_odds(odds, rate, fee), odds],
        [net_odds(2.0, rate, fee), 2.0],
    ]


@given(st.floats(1.001, 1000.0), st.floats(0.0, 0.2), st.floats(0.0, 0.2))
def test_a_charge_never_improves_a_price(odds: float, rate: float, fee: float) -> None:
    assert 1.0 <= net_odds(odds, rate, fee) <= odds * (1.0 + 1e-12)
