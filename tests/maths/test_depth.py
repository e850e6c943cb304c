"""Ladders: worked numbers, and laws of walking them; the largest arbitrage against a linear program."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oddsengine.maths.calculators import free_bet, qualifying
from oddsengine.maths.depth import contract_odds, fill, largest_arbitrage, lay_to_back
from oddsengine.maths.odds import charged

YES = [(0.60, 11392.59), (0.61, 10214.24), (0.62, 2654.72), (0.63, 809.25)]  # asks: price, contracts
NO = [(0.41, 152.0), (0.42, 1026.0), (0.43, 383.0), (0.44, 1152.0)]


def levels(contracts: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(1.0 / p, p * size) for p, size in contracts]


@pytest.mark.parametrize(
    ("asks", "stake", "fee", "spent", "units", "odds"),
    [
        (YES, 1_000.0, 0.0, 1_000.0, 1666.67, 1.6667),
        (YES, 10_000.0, 0.0, 10_000.0, 16580.2064, 1.658021),
        (YES, 10_000.0, 0.07, 10_000.0, 16136.9230, 1.613692),
        (YES, 20_000.0, 0.0, 15221.99, 25070.80, 1.647012),
        (NO, 500.0, 0.0, 500.0, 1193.7209, 2.387442),
    ],
)
def test_stakes_at_a_prediction_market(
    asks: Any, stake: float, fee: float, spent: float, units: float, odds: float
) -> None:
    for order in (1, -1):  # of the levels, which is of no importance
        found = fill(levels(asks)[::order], stake, fee=fee)
        assert found.stake == pytest.approx(spent, abs=0.005)
        assert found.payout == pytest.approx(units, abs=0.005)
        assert found.odds == pytest.approx(odds, abs=5e-5 if odds == 1.6667 else 5e-7)


ladders = st.lists(st.tuples(st.floats(1.01, 50.0), st.floats(0.0, 1e4)), min_size=1, max_size=6)
fees: st.SearchStrategy[dict[str, float]] = st.one_of(
    st.just({}), st.floats(0.0, 0.2).map(lambda c: {"commission": c}), st.floats(0.0, 0.1).map(lambda f: {"fee": f})
)


@given(ladders, st.floats(0.0, 5e4), fees)
def test_a_fill_is_the_sum_of_its_parts(ladder: Any, stake: float, charge: Any) -> None:
    """One level after the other, in plain Python."""
    left, payout, placed = stake, 0.0, 0.0
    c, f = charge.get("commission", 0.0), charge.get("fee", 0.0)
    for odds, size in sorted(ladder, reverse=True):
        net = 1.0 + (odds - 1.0) * (1.0 - c)
        p = 1.0 / net
        cost = p + f * p * (1.0 - p)
        room = size * odds * cost if f else size
        part = min(left, room)
        left, placed, payout = left - part, placed + part, payout + part / cost
    found = fill(ladder, stake, **charge)
    assert found.stake == pytest.approx(placed, rel=1e-9, abs=1e-9)
    assert found.payout == pytest.approx(payout, rel=1e-9, abs=1e-9)
    if found.stake > 1e-6:
        best = float(charged(max(odds for odds, size in ladder if size > 0.0), c, f))
        assert found.odds <= best * (1.0 + 1e-9)
        more = fill(ladder, stake * 2.0, **charge)
        assert more.odds <= found.odds * (1.0 + 1e-9)
        assert more.payout >= found.payout * (1.0 - 1e-9)


def best_payout(sides: list[list[tuple[float, float]]]) -> float:
    """The largest profit at any payout: what it costs in each ladder, cheapest levels first."""

    def cost(side: list[tuple[float, float]], payout: float) -> float:
        total = 0.0
        for odds, size in sorted(side, reverse=True):
            part = min(payout, odds * size)
            payout, total = payout - part, total + part / odds
        return total if payout < 1e-9 else math.inf

    ends = [sum(o * s for o, s in sorted(side, reverse=True)[: n + 1]) for side in sides for n in range(len(side))]
    return max(0.0, *(end - sum(cost(side, end) for side in sides) for end in ends))


def program(sides: list[list[tuple[float, float]]]) -> float:
    """The largest profit by linear programming."""
    cost = [1.0 / odds for side in sides for odds, _ in side]
    room = [(0.0, odds * size) for side in sides for odds, size in side]
    equal = np.zeros((len(sides), len(cost) + 1))
    at = 0
    for k, side in enumerate(sides):
        equal[k, at : at + len(side)], equal[k, -1] = 1.0, -1.0
        at += len(side)
    linprog = pytest.importorskip("scipy.optimize").linprog
    found = linprog([*cost, -1.0], A_eq=equal, b_eq=np.zeros(len(sides)), bounds=[*room, (0.0, None)])
    return float(-found.fun)


several = st.lists(
    st.lists(st.tuples(st.floats(1.5, 4.5), st.floats(1.0, 500.0)), min_size=1, max_size=5), min_size=2, max_size=3
)


@given(several)
def test_the_largest_arbitrage_is_the_best_of_all_payouts(sides: Any) -> None:
    assert largest_arbitrage(sides).profit == pytest.approx(best_payout(sides), rel=1e-9, abs=1e-6)


@given(several)
def test_the_largest_arbitrage_is_that_of_a_linear_program(sides: Any) -> None:
    found = largest_arbitrage(sides)
    assert found.profit == pytest.approx(program(sides), rel=1e-6, abs=1e-6)
    assert found.profit == pytest.approx(found.payout - sum(found.stakes), abs=1e-6)
    for side, stake in zip(sides, found.stakes, strict=True):
        assert fill(side, stake).payout == pytest.approx(found.payout, rel=1e-9, abs=1e-6)


def test_an_arbitrage_goes_beyond_the_best_prices() -> None:
    over, under = [(2.20, 100.0), (2.16, 200.0), (2.10, 500.0)], [(1.90, 80.0), (1.88, 150.0), (1.85, 400.0)]
    found = largest_arbitrage([over, under])
    assert found.payout == pytest.approx(434.0)
    assert found.stakes == pytest.approx((199.0741, 230.0), abs=5e-5)
    assert found.profit == pytest.approx(4.925926, abs=5e-7)
    assert found.profit / sum(found.stakes) == pytest.approx(0.011480, abs=5e-7)
    best = largest_arbitrage([over[:1], under[:1]])
    assert sum(best.stakes) == pytest.approx(149.09, abs=0.005)
    assert best.profit / sum(best.stakes) == pytest.approx(0.0195, abs=5e-5)
    assert largest_arbitrage([[(1.9, 100.0)], [(1.9, 100.0)]]) == ((0.0, 0.0), 0.0, 0.0)
    charged_ = largest_arbitrage([over, under], commissions=[0.05, 0.0])
    assert charged_.profit < found.profit


@pytest.mark.parametrize(
    ("lay", "commission", "net"),
    [
        (3.0, 0.0, 1.5),
        (3.0, 0.05, 1.475),
        (2.44, 0.0, 1.6944),
        (2.44, 0.02, 1.6806),
        (1.5, 0.0, 3.0),
        (1.5, 0.02, 2.96),
    ],
)
def test_a_lay_is_a_bet_on_the_others(lay: float, commission: float, net: float) -> None:
    assert float(charged(lay_to_back(lay)[0], commission)) == pytest.approx(net, abs=5e-5)


def test_a_lay_has_the_size_of_its_liability() -> None:
    odds, size = lay_to_back(1.71, 1038.77)
    assert (odds, size) == pytest.approx((2.408451, 737.53), abs=5e-3)


@pytest.mark.parametrize(
    ("contracts", "price", "fee", "total"),
    [(1, 0.5, 0.07, 0.02), (1, 0.5, 0.0175, 0.01), (100, 0.5, 0.07, 1.75), (100, 0.6, 0.07, 1.68),
     (1000, 0.1, 0.07, 6.30),
     (100, 0.5, 0.0175, 0.44)],
)  # fmt: skip
def test_fees_of_an_order_are_rounded_up_to_cents(contracts: int, price: float, fee: float, total: float) -> None:
    assert contracts / contract_odds(contracts, price, fee) - contracts * price == pytest.approx(total)


@pytest.mark.parametrize(
    ("amount", "odds", "lay", "commission", "stake", "liability", "result"),
    [(10, 2.0, 2.1, 0.05, 9.7561, 10.7317, -0.7317), (20, 5.0, 5.2, 0.02, 19.3050, 81.0811, -1.0811)],
)
def test_qualifying_bets(
    amount: float, odds: float, lay: float, commission: float, stake: float, liability: float, result: float
) -> None:
    found = qualifying(amount, odds, lay=lay, commission=commission)
    assert found == pytest.approx((liability, stake, result), abs=5e-5)
    # Whichever side wins:
    assert amount * (odds - 1.0) - found.stake == pytest.approx(found.result)
    assert (found.lay_stake or 0.0) * (1.0 - commission) - amount == pytest.approx(found.result)


@pytest.mark.parametrize(
    ("amount", "odds", "lay", "commission", "returned", "stake", "liability", "profit"),
    [
        (50, 3.0, 3.05, 0.05, False, 33.3333, 68.3333, 31.6667),
        (10, 3.0, 3.2, 0.02, False, 6.2893, 13.8365, 6.1635),
        (10, 3.0, 3.2, 0.02, True, 9.4340, 20.7547, 9.2453),
    ],
)
def test_free_bets_laid(
    amount: float, odds: float, lay: float, commission: float, returned: bool, stake: float, liability: float,
    profit: float,
) -> None:  # fmt: skip
    found = free_bet(amount, odds, lay=lay, returned=returned, commission=commission)
    assert (found.stake, found.profit) == pytest.approx((liability, profit), abs=5e-5)
    assert found.stake / (lay - 1.0) == pytest.approx(stake, abs=5e-5)


def test_a_fee_per_contract_on_the_other_side() -> None:
    """C = b B contracts at q whichever side wins."""
    contracts, q = 2.0 * 10.0, 0.52 + 0.07 * 0.52 * 0.48
    found = qualifying(10, 2.0, 1.0 / 0.52, fee=0.07)
    assert (found.stake, found.result) == pytest.approx((contracts * q, 10.0 - contracts * q))
    assert found.lay_stake is None


def test_a_lay_of_contracts() -> None:
    """A bet laid at 2.5 is N contracts at 0.6 on the other outcomes; the fee is no part of the lay stake."""
    contracts, price, fee = 3.0 * 10.0, 0.6, 0.07 * 0.6 * 0.4
    found = qualifying(10, 3.0, lay=2.5, fee=0.07)
    assert found.stake == pytest.approx(contracts * (price + fee))
    assert found.lay_stake == pytest.approx(contracts / 2.5)
    assert (found.lay_stake or 0.0) * 1.5 == pytest.approx(contracts * price)
    assert found.result == pytest.approx(10 * 2.0 - contracts * (price + fee))
    assert found.result == pytest.approx(contracts * (1.0 - price - fee) - 10)


def test_bad_input() -> None:
    for levels_, why in (([(1.0, 5.0)], "a level must be decimal odds above 1 and a stake of 0 or more, got"),
                         ([(2.0, -1.0)], "a level must be"), ([(math.nan, 1.0)], "a level must be")):  # fmt: skip
        with pytest.raises(ValueError, match=why):
            fill(levels_, 1.0)
    with pytest.raises(ValueError, match="stake must be a finite amount of 0 or more, got -1"):
        fill([(2.0, 1.0)], -1)
    with pytest.raises(ValueError, match="at least two ladders, got 1"):
        largest_arbitrage([[(2.0, 1.0)]])
    with pytest.raises(ValueError, match="fees must have one number for each of the 2 ladders, got 1"):
        largest_arbitrage([[(2.0, 1.0)]] * 2, fees=[0.07])
    for words in ({}, {"against": 2.0, "lay": 2.0}):
        with pytest.raises(ValueError, match="give either against, odds of the other side, or lay"):
            qualifying(10, 2.0, **words)
    assert math.isnan(fill([], 10.0).odds)
