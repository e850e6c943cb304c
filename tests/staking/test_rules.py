"""Stakes that venues accept: a minimum, and whole steps."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import maths as naive_maths
from staking.test_stakes import bets

import oddsengine as oe
from oddsengine.maths.odds import charged
from oddsengine.staking.rules import stake_rules


def arbitrage(*legs: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(
        {"id": ["1"], "event_name": "A @ B", "event_id": "e", "market_type": "moneyline",
         "line": pl.Series([None], dtype=pl.Float64), "legs": [list(legs)]}
    )  # fmt: skip


def leg(book: str, side: str, odds: float, **own: Any) -> dict[str, Any]:
    rules = dict.fromkeys(("max_bet", "min_bet", "bet_step", "bet_delay"))
    return {"sportsbook": book, "selection": side, "odds_decimal": odds, "net_odds": odds} | rules | own


@given(
    st.lists(
        st.tuples(st.floats(1.3, 8.0), st.sampled_from([1.0, 2.0, 5.0]), st.floats(0.0, 30.0), st.floats(0.0, 12.0)),
        min_size=2,
        max_size=3,
    ),
    st.integers(0, 24),
)
def test_no_way_above_the_minimums_is_better(legs: list[tuple[float, float, float, float]], most: int) -> None:
    odds, steps, limits, least = (list(column) for column in zip(*legs, strict=True))
    stakes, profit = oe.round_stakes(odds, float(most), steps, limits, least)
    if stakes.any():
        assert (stakes >= [each - 1e-9 for each in least]).all()
        assert profit == pytest.approx(float((stakes * odds).min() - stakes.sum()), abs=1e-9)
    assert profit == pytest.approx(naive_maths.limited_stakes(odds, most, steps, limits, least), abs=1e-9)


@pytest.mark.parametrize("least", [-1.0, float("nan"), float("inf")])
def test_minimums_are_numbers(least: float) -> None:
    with pytest.raises(ValueError, match="least must be finite and 0 or more"):
        oe.round_stakes([2.0, 2.1], 10.0, 1.0, least=[least, 0.0])


def test_a_plan_stakes_no_less_than_the_minimum() -> None:
    legs = [leg("x", "A", 2.2, max_bet=3.0), leg("y", "B", 2.1, min_bet=2.0)]
    assert oe.arbitrage_plan(arbitrage(*legs), bankroll=100)["stake"].to_list() == [3.0, 3.0]
    legs[1]["min_bet"] = 5.0  # more than the other leg can balance
    assert oe.arbitrage_plan(arbitrage(*legs), bankroll=100).height == 0
    legs[1]["min_bet"] = 4.0  # 3 at 2.2 pays less than 3 + 4
    assert oe.arbitrage_plan(arbitrage(*legs), bankroll=100).height == 0
    legs[1] |= {"min_bet": -4.0}
    with pytest.raises(oe.OddsError, match="arbitrage 1: min_bet must be 0 or more, got -4"):
        oe.arbitrage_plan(arbitrage(*legs), bankroll=100)
    legs[1] |= {"min_bet": None, "bet_step": 0.0}
    with pytest.raises(oe.OddsError, match="arbitrage 1: bet_step must be above 0, got 0"):
        oe.arbitrage_plan(arbitrage(*legs), bankroll=100)


@pytest.mark.parametrize(("step", "expected"), [(1.0, 0.8), (0.1, 0.4), (5.0, 4.8)])
def test_a_plan_is_in_steps_of_the_venue(step: float, expected: float) -> None:
    """Of a step that is asked for, the nearest multiple is taken."""
    legs = [leg("x", "A", 2.5, bet_step=0.4), leg("y", "B", 2.1)]
    (stake, other) = oe.arbitrage_plan(arbitrage(*legs), bankroll=100, step=step)["stake"].to_list()
    assert stake / expected == pytest.approx(round(stake / expected))
    assert other / step == pytest.approx(round(other / step))
    assert stake > 40.0


def test_contracts_of_a_plan_are_whole_with_their_fee() -> None:
    """A contract at 0.40 with a fee of 0.07 p (1 - p) costs 0.4168."""
    net = float(charged(2.5, 0.0, 0.07))
    legs = [leg("kalshi", "A", 2.5, net_odds=net, bet_step=0.4, min_bet=0.4), leg("y", "B", 2.1)]
    stake = oe.arbitrage_plan(arbitrage(*legs), bankroll=100, step=0.1)["stake"][0]
    assert stake / 0.4168 == pytest.approx(round(stake / 0.4168), abs=1e-6)
    taxed = leg("betfair_exchange", "A", 2.5, net_odds=2.45, bet_step=0.4)  # a commission leaves stakes as they are
    stake = oe.arbitrage_plan(arbitrage(taxed, legs[1]), bankroll=100, step=0.1)["stake"][0]
    assert stake / 0.4 == pytest.approx(round(stake / 0.4))


def test_the_fee_of_bets_in_play_counts_where_there_is_none_before() -> None:
    bet = {"sportsbook": "novig", "odds_decimal": 2.0, "net_odds": float(charged(2.0, 0.0, 0.03)), "bet_step": 0.005}
    assert stake_rules(bet).step == pytest.approx(0.005 * (0.5 + 0.03 * 0.25) / 0.5)
    assert stake_rules(bet | {"net_odds": 2.0}).step == pytest.approx(0.005)


def test_a_portfolio_keeps_to_the_rules_of_venues() -> None:
    frame = bets(("moneyline", "Lakers", None, 1.7, 0.62), ("total_points", "Over", 221.5, 2.0, 0.52))
    free = oe.kelly_portfolio(frame, bankroll=100).bets["stake"].to_list()
    assert [round(stake, 2) for stake in free] == [7.7, 3.98]
    ruled = frame.with_columns(min_bet=pl.Series([2.0, None]), bet_step=pl.Series([0.5, 0.4]))
    assert oe.kelly_portfolio(ruled, bankroll=100).bets["stake"].to_list() == [7.5, 3.6]
    assert oe.kelly_portfolio(ruled, bankroll=100, step=2).bets["stake"].to_list() == [8.0, 4.0]
    small = frame.with_columns(min_bet=pl.Series([None, 5.0]))
    first, second = oe.kelly_portfolio(small, bankroll=100).bets["stake"].to_list()
    alone = oe.kelly_portfolio(frame.head(1), bankroll=100).bets["stake"].item()
    assert (first, second) == (pytest.approx(alone), 0.0)
    # Without a bankroll stakes are fractions, to which amounts do not apply.
    assert oe.kelly_portfolio(small).bets["stake"].to_list() == oe.kelly_portfolio(frame).bets["stake"].to_list()
    with pytest.raises(oe.OddsError, match="bet 2: bet_step must be above 0, got 0"):
        oe.kelly_portfolio(frame.with_columns(bet_step=pl.Series([None, 0.0])), bankroll=100)
