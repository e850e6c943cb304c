"""Commission: prices after commissions and fees, and several bets in one market of an exchange."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.maths import net_odds as twin

from oddsengine.identity.traits import BookFees, book_fees
from oddsengine.maths.odds import charged
from oddsengine.pricing.commission import Fees, PriceDepth, after_fees, netted, offered, on_winnings
from oddsengine.tables.levels import FlatLevels

NO_LEVELS = FlatLevels(np.empty(0, np.int64), np.empty(0), np.empty(0))


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
def test_a_fee_never_improves_a_price(odds: float, rate: float, fee: float) -> None:
    assert 1.0 <= charged(odds, rate, fee) <= odds * (1.0 + 1e-12)


def paid(stakes: list[float], odds: list[float], rates: list[float], market: list[int], winner: int) -> float:
    """What comes back if an outcome wins: of each market its net winnings less commission, and the stakes."""
    back = sum(stakes)
    for one in set(market):
        here = [at for at, each in enumerate(market) if each == one]
        net = sum(stakes[at] * (odds[at] - 1.0) if at == winner else -stakes[at] for at in here)
        back += net - rates[here[0]] * max(0.0, net)
    return back


@given(
    st.lists(st.floats(1.5, 30.0), min_size=3, max_size=5),
    st.lists(st.sampled_from([0.0, 0.02, 0.05, 0.1]), min_size=3, max_size=3),
    st.lists(st.integers(0, 2), min_size=5, max_size=5),
)
def test_every_outcome_pays_the_same_where_commission_is_on_net_winnings(
    odds: list[float], rate: list[float], places: list[int]
) -> None:
    market = places[: len(odds)]
    rates = [rate[one] for one in market]
    alone = charged(odds, rates)
    cost = netted(1.0 / alone[None], np.array([rates]), np.array([market]))[0]
    assert np.all(cost <= 1.0 / alone + 1e-12)
    if len(set(market)) > 1:
        returned = [paid(cost.tolist(), odds, rates, market, winner) for winner in range(len(odds))]
        assert returned == pytest.approx([1.0] * len(odds))
    else:
        assert cost.tolist() == (1.0 / alone).tolist()


def test_the_worked_example_of_two_bets_at_one_exchange() -> None:
    """Back 7.0 with 20 and lay 4.0 for 35, a bet of 105 on the others at 4 / 3: 15 either way, 14.25 after 5 %."""
    stakes, odds = [20.0, 105.0], [7.0, 4.0 / 3.0]
    assert [paid(stakes, odds, [0.05, 0.05], [0, 0], winner) - 125.0 for winner in (0, 1)] == pytest.approx([14.25] * 2)


def test_own_commissions_of_prices_come_before_those_of_their_book_and_after_the_users() -> None:
    own = PriceDepth(np.array([1, 3]), np.array([0.1, 0.2]), np.array([np.nan, 0.07]), NO_LEVELS)
    book, rows = np.array([0, 0, 1, 1, 1], np.int32), np.array([[0, 1, 2], [3, 4, 1]], np.int32)
    no_fee, before = np.zeros(2), np.zeros(rows.shape, np.uint8)
    of_book = BookFees(np.array([0.05, 0.02]), no_fee, no_fee, np.full(2, 0.01))
    fees = Fees(of_book, np.zeros(2, np.uint8), own)
    assert on_winnings(book, rows, before, fees).tolist() == [[0.05, 0.1, 0.02], [0.0, 0.02, 0.1]]
    assert fees.slack == pytest.approx(1.0 / 0.8)
    users = fees._replace(replaced=np.array([1, 0], np.uint8))
    assert on_winnings(book, rows, before, users).tolist() == [[0.05, 0.05, 0.02], [0.0, 0.02, 0.05]]
    assert on_winnings(book, rows, before, fees._replace(depth=None)).tolist() == [
        [0.05, 0.05, 0.02],
        [0.02, 0.02, 0.05],
    ]


def test_a_fee_in_play_is_not_due_before_the_start() -> None:
    fees = book_fees(["novig", "kalshi", "betfair_exchange"])
    odds, book = np.array([2.0, 2.0, 2.0, 2.0, 3.0]), np.array([0, 0, 1, 1, 2])
    live = np.array([0, 1, 0, 1, 1], np.uint8)
    expected = [2.0, 1.0 / (0.5 + 0.0075), 1.0 / 0.5175, 1.0 / 0.5175, 2.9]
    assert after_fees(odds, book, live, fees).tolist() == pytest.approx(expected)


def test_the_fee_of_an_order_is_rounded_as_its_book_does() -> None:
    """A dollar at 0.50 with F of 0.03 is 1.97 contracts, whose fee is 0.01478."""
    of_book = book_fees(["novig", "polymarket", "corner_shop"])
    odds, book, live = np.full(3, 2.0), np.arange(3), np.ones(3, np.uint8)
    fees = Fees(of_book._replace(live_fee=np.full(3, 0.03)), np.zeros(3, np.uint8), None)
    net = after_fees(odds, book, live, fees.of_book)
    contracts = 1.0 / 0.5075
    costs = [contracts * 0.5 + fee for fee in (0.01478, 0.01478, 0.02)]
    assert offered(odds, book, live, net, fees, 1.0).tolist() == pytest.approx([contracts / cost for cost in costs])
