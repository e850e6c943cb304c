"""Arbitrages and low holds of an account: stakes of all legs, one leg after the other, and what becomes of them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bet_venues import LIMITS, NOON, Script, bet, legs, start, step

from oddsengine.backtesting.accounts import Account
from oddsengine.backtesting.positions import POSITIONS_SCHEMA, split
from oddsengine.backtesting.strategy import Strategy
from oddsengine.execution.venues import BetAnswer
from oddsengine.staking.rules import StakeRules

FREE = Strategy(staking="flat", size=0.2)
TWO = (("fanduel", 2.1), ("betmgm", 2.05))
EVEN = (("fanduel", 2.0), ("betmgm", 2.0))


def begin(rule: Strategy = FREE, some: pl.DataFrame | None = None, **of: Any) -> tuple[Script, Account]:
    venue = Script()
    account = start(venue, rule, **of)
    step(account, legs=legs(0, *TWO) if some is None else some)
    return venue, account


def became(account: Account) -> tuple[Any, ...]:
    return account.positions().select("outcome", "reason", "wanted", "stake", "locked").row(0)


def test_the_second_leg_is_sent_for_what_the_first_one_got() -> None:
    venue, account = begin()
    assert [order.stake for order in venue.orders] == [24.69]  # of 50: both pay 51.86
    assert account.trades().select("status", "wanted", "kind", "leg", "ev").rows() == [
        ("waiting", 24.69, "arbitrage", 0, None), ("planned", 25.29, "arbitrage", 1, None)
    ]  # fmt: skip
    assert account.cash == pytest.approx(250.0 - 24.69 - 25.29)
    assert repr(account) == "cash 200.02, 0 open, 1 waiting, 1 planned"
    venue.say(0, 12.0, final=False)
    step(account)
    assert (len(venue.orders), became(account)) == (1, ("waiting", None, pytest.approx(49.98), 12.0, None))
    venue.say(0, 12.0)
    later = NOON + timedelta(hours=1)
    assert step(account, at=later) == 1
    second = venue.orders[1]
    assert second.stake == pytest.approx(12.29)  # 12 x 2.1 / 2.05 = 12.293
    assert second.sent - venue.orders[0].sent == 3_600_000_000
    assert account.cash == pytest.approx(250.0 - 12.0 - 12.29)
    venue.say(1, 12.29)
    step(account, at=later)
    assert became(account) == ("part", None, pytest.approx(49.98), 24.29, pytest.approx(12.29 * 2.05 - 24.29))
    row = account.positions().row(0, named=True)
    assert (row["kind"], row["sportsbooks"], row["shown_percent"]) == ("arbitrage", ["fanduel", "betmgm"], 1.0)
    assert row["locked_percent"] == pytest.approx(100.0 * row["locked"] / 24.29)
    assert account.positions().schema == pl.Schema(POSITIONS_SCHEMA)


def test_a_leg_that_fails_ends_it_and_frees_the_money() -> None:
    venue, account = begin(some=legs(0, ("fanduel", 3.2), ("betmgm", 3.1), ("caesars", 3.3)))
    venue.say(0, 0.0)
    step(account)
    assert len(venue.orders) == 1
    assert account.trades().select("status", "reason").rows()[1:] == [("not sent", "leg before failed")] * 2
    assert (account.cash, became(account)[::4]) == (250.0, ("none", 0.0))
    venue, account = begin(some=legs(0, ("fanduel", 3.2), ("betmgm", 3.1), ("caesars", 3.3)))
    venue.say(0, venue.orders[0].stake)
    step(account)
    venue.say(1, 0.0)
    step(account)
    assert account.trades()["status"].to_list() == ["filled", "rejected", "not sent"]
    stake = venue.orders[0].stake
    assert (account.cash, became(account)[3:]) == (250.0 - stake, (stake, -stake))
    assert became(account)[0] == "open"


def test_without_latency_all_legs_are_sent_in_one_step() -> None:
    class AtOnce(Script):
        def place(self, order: Any) -> None:
            super().place(order)
            self.say(len(self.orders) - 1, order.stake)

    venue = AtOnce()
    account = start(venue, FREE)
    assert step(account, legs=legs(0, *TWO)) == 2
    assert (repr(account), became(account)[0]) == ("cash 200.02, 2 open, 0 waiting", "whole")


def test_a_halt_ends_what_is_planned() -> None:
    venue, account = begin()
    account.halt("rain")
    assert account.trades().select("status", "reason").row(1) == ("not sent", "halted")
    assert account.cash == pytest.approx(250.0 - 24.69)
    account.resume()
    venue.say(0, 24.69)
    step(account)
    assert (len(venue.orders), became(account)[0]) == (1, "open")


def test_no_leg_is_sent_after_its_event_is_over() -> None:
    venue, account = begin()
    venue.say(0, 24.69)
    step(account, at=NOON + timedelta(hours=5))
    assert account.trades().select("status", "reason").row(1) == ("not sent", "event over")
    assert len(venue.orders) == 1
    assert account.cash == pytest.approx(250.0 - 24.69)


@pytest.mark.parametrize(
    ("limits", "payout"),
    [
        ({}, 50.0), ({"max_bet": 20.0}, 40.0), ({"max_event": 30.0}, 30.0), ({"max_daily_stake": 44.0}, 44.0),
        ({"max_daily_stake_per_book": {"betmgm": 12.0}}, 24.0), ({"max_daily_stake_per_book": 12.0}, 24.0),
        ({"size": 1.0, "max_bet": None}, 250.0), ({"step": 10.0}, 40.0),
    ],
)  # fmt: skip
def test_all_legs_are_within_each_limit(limits: dict[str, Any], payout: float) -> None:
    venue, account = begin(replace(FREE, **limits), legs(0, *EVEN))
    assert account.trades()["wanted"].to_list() == [payout / 2.0] * 2
    assert len(venue.orders) == 1


def test_what_the_prices_take_and_their_venues_accept() -> None:
    def wanted(some: pl.DataFrame, rule: Strategy = FREE) -> list[float]:
        return begin(rule, some)[1].trades()["wanted"].to_list()

    sizes = pl.Series([None, 10.0])
    assert wanted(legs(0, *EVEN).with_columns(max_bet=sizes)) == [10.0, 10.0]
    assert wanted(legs(0, *EVEN).with_columns(bet_step=pl.Series([4.0, None]))) == [24.0, 24.0]
    assert wanted(legs(0, *EVEN).with_columns(min_bet=pl.Series([None, 25.0]))) == [25.0, 25.0]
    assert wanted(legs(0, *EVEN).with_columns(min_bet=pl.Series([None, 26.0]))) == []
    # In steps of 10 and of 7 the payouts differ by more than the profit.
    assert wanted(legs(0, *TWO).with_columns(bet_step=pl.Series([10.0, 7.0]))) == []
    coarse = legs(0, ("fanduel", 2.0), ("betmgm", 1.99), kind="low_hold").with_columns(bet_step=pl.Series([10.0, 9.0]))
    assert wanted(coarse) == []  # 10 and 9 may lose 6 %
    assert wanted(coarse, replace(FREE, max_hold=7.0)) == [10.0, 9.0]


def test_both_legs_at_one_book_count_there_together() -> None:
    rule = replace(FREE, max_daily_stake_per_book={"fanduel": 30.0})
    _, account = begin(rule, legs(0, ("fanduel", 2.0), ("fanduel", 2.0)))
    assert account.trades()["wanted"].to_list() == [15.0, 15.0]


def test_planned_legs_count_in_every_limit() -> None:
    rule = replace(LIMITS, max_daily_stake=60.0, max_event=55.0, max_daily_stake_per_book={"betmgm": 30.0})
    venue, account = begin(rule)
    assert step(account, bet(1, 0, "fanduel")) == 1
    assert venue.orders[-1].stake == pytest.approx(55.0 - 49.98)  # of the event
    assert step(account, bet(2, 1, "betmgm")) == 1
    assert venue.orders[-1].stake == pytest.approx(30.0 - 25.29)  # of the book
    assert step(account, bet(3, 2, "fanduel")) == 1
    assert venue.orders[-1].stake == pytest.approx(60.0 - 55.0 - 4.71)  # of the day
    poor = begin(replace(FREE, size=0.9), bankroll=100.0)[1]
    step(poor, bet(1, 1))
    assert poor.cash == pytest.approx(0.0, abs=0.02)


def test_a_leg_that_is_planned_at_midnight_counts_on_the_next_day() -> None:
    rule = replace(FREE, max_daily_stake=55.0)
    venue = Script()
    account = start(venue, rule)
    step(account, legs=legs(0, *TWO, event=3), at=NOON + timedelta(hours=11))
    tomorrow = NOON + timedelta(hours=13)
    assert step(account, bet(1, 3), at=tomorrow) == 1
    assert venue.orders[-1].stake == pytest.approx(55.0 - 25.29, abs=0.01)
    venue.say(0, 24.69)
    assert step(account, bet(2, 2), at=tomorrow) == 1  # the leg; nothing is left for another bet
    assert venue.orders[-1].stake == 25.29


def test_a_better_price_is_not_open_and_a_worse_one_is() -> None:
    for payout, outcome in ((24.69 * 2.2, "whole"), (24.69 * 2.0, "whole")):
        venue, account = begin()
        venue.say(0, 24.69, payout)
        step(account)
        venue.say(1, venue.orders[1].stake)
        step(account)
        assert became(account)[0] == outcome
        assert venue.orders[1].stake == pytest.approx(min(25.29, int(payout / 2.05 * 100.0) / 100.0))
    venue, account = begin()
    venue.say(0, 24.69)
    step(account)
    venue.say(1, 25.29, 25.29 * 1.9)
    step(account)
    assert became(account)[0] == "whole"  # all was filled; what is locked says that it was at worse odds
    assert became(account)[-1] < 0.0


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [(20.0, 20.0, "whole"), (20.0, 10.01, "open"), (10.01, 10.0, "part"), (20.0, 0.0, "open"), (0.0, 0.0, "none")],
)
def test_what_is_short_of_its_order_is_open_however_large_the_steps_are(
    first: float, second: float, outcome: str
) -> None:
    venue, account = begin(Strategy(staking="flat", size=0.16, step=10.0), legs(0, ("fanduel", 2.1), ("betmgm", 2.1)))
    venue.say(0, first)
    step(account)
    if first:
        venue.say(1, second)
        step(account)
    assert became(account)[0] == outcome


def test_steps_of_a_venue_are_no_reason_to_get_nothing() -> None:
    some = legs(0, ("fanduel", 2.0), ("betmgm", 2.1)).with_columns(bet_step=pl.Series([5.0, 0.01]))
    venue, account = begin(Strategy(staking="flat", size=0.06), some)
    venue.say(0, venue.orders[0].stake)
    step(account)
    venue.say(1, 0.0)
    step(account)
    assert became(account)[0] == "open"


def test_a_leg_of_before_the_start_is_not_sent_after_it() -> None:
    venue, account = begin()
    venue.say(0, 24.69)
    step(account, at=NOON + timedelta(hours=2))
    assert account.trades().select("status", "reason").row(1) == ("not sent", "event started")
    assert len(venue.orders) == 1


def test_a_position_is_released_as_a_whole() -> None:
    """The score of a game whose second leg is not answered yet counts when it is."""
    venue, account = begin(Strategy(staking="flat", size=0.05, max_daily_loss=20.0))
    account.settle("e0", 90, 100)
    venue.say(0, venue.orders[0].stake)
    step(account)
    step(account, at=NOON + timedelta(hours=6))
    assert account.halted is None
    venue.say(1, venue.orders[1].stake)
    step(account, at=NOON + timedelta(hours=7))
    step(account, at=NOON + timedelta(hours=8))
    assert account.halted is None
    assert account.cash > 250.0


def test_net_odds_of_one_are_no_division_by_zero() -> None:
    some = legs(0, ("fanduel", 1.0), ("betmgm", 50.0), kind="low_hold")
    venue, account = begin(Strategy(kinds=("low_hold",), max_hold=5.0, staking="flat", size=0.1), some)
    stake = venue.orders[0].stake
    venue.say(0, stake, stake * 1.01)
    step(account)
    assert account.trades()["odds_decimal"][0] == 1.0


def test_the_next_leg_may_be_too_small_for_its_venue() -> None:
    venue, account = begin(some=legs(0, *TWO).with_columns(min_bet=pl.Series([None, 20.0])))
    venue.say(0, 12.0)
    step(account)
    assert account.trades().select("status", "reason").row(1) == ("not sent", "too small")
    assert became(account)[:2] == ("open", "too small")


def test_arbitrages_come_first_and_low_holds_last() -> None:
    venue = Script()
    account = start(venue, replace(FREE, size=0.5))
    both = pl.concat([legs(0, *TWO), legs(1, ("fanduel", 2.0), ("betmgm", 1.99), event=1, kind="low_hold")])
    step(account, bet(9, 2), legs=both)
    assert account.trades()["kind"].to_list() == ["arbitrage", "arbitrage", "ev"]
    step(account, legs=legs(2, *EVEN).with_columns(min_bet=1.0))  # cents are left
    assert account.positions().height == 1


@pytest.mark.parametrize("is_halted", [False, True])
def test_an_answer_to_a_leg_that_was_not_sent_halts(is_halted: bool) -> None:
    venue, account = begin()
    second = account.trades()["order_id"][1]
    if is_halted:
        account.halt("rain")
        account.resume()
    for stake in (0.0, 5.0):
        venue.fresh.append(BetAnswer(second, stake, 2.0 * stake, final=True))
        step(account)
        assert account.halted == f"an answer to an order that was not sent: '{second}'"
        account.resume()
    assert account.trades()["stake"].to_list() == [0.0, 0.0]


def test_an_arbitrage_with_a_loss_needs_a_strategy_that_wants_it() -> None:
    some = legs(0, ("fanduel", 2.0), ("betmgm", 1.98))
    assert begin(some=some)[1].positions().height == 0
    assert begin(replace(FREE, min_profit=-1.0), some)[1].positions().height == 1


def test_legs_are_settled_by_the_score() -> None:
    venue, account = begin()
    venue.say(0, 24.69)
    step(account)
    venue.say(1, 25.29)
    step(account)
    account.settle("e0", 90, 100)
    step(account, at=NOON + timedelta(hours=6))
    assert account.cash == pytest.approx(250.0 - 24.69 - 25.29 + 25.29 * 2.05)


@given(
    units=st.floats(1.0, 1e6), odds=st.lists(st.floats(1.01, 50.0), min_size=2, max_size=3),
    steps=st.lists(st.sampled_from([0.01, 0.5, 1.0, 5.0]), min_size=3, max_size=3),
)  # fmt: skip
def test_stakes_are_whole_steps_and_no_leg_pays_more_than_the_one_before(
    units: float, odds: list[float], steps: list[float]
) -> None:
    rules = [StakeRules(0.0, step) for step in steps]
    stakes = split(units, odds, rules[: len(odds)])
    payout = units
    for stake, price, each in zip(stakes, odds, steps, strict=False):
        assert stake / each == pytest.approx(round(stake / each), abs=1e-6)
        assert stake * price <= payout * (1.0 + 1e-9) + 1e-8 * each * price
        payout = min(payout, stake * price)
    lots = [step * price for step, price in zip(steps, odds, strict=False)]
    assert payout >= units * (1.0 - 1e-9) - sum(lots) - max(lots)
