"""Accounts at venues that refuse, delay, fill in part, repeat themselves and cannot be reached: limits hold."""

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bet_venues import BOOKS, DAY, EVENTS, LIMITS, NOON, Script, Venue, bet, frame, legs, micros, start, step
from support.effort import less

from oddsengine.backtesting.accounts import Account
from oddsengine.backtesting.strategy import Strategy
from oddsengine.execution.venues import BetAnswer, BetOrder, order_id


def check_limits(account: Account, venue: Venue, over: set[str], today: int) -> None:
    """Everything that the venue has taken, or may take, is within limits, with the legs that may be sent today."""
    assert max(Counter(venue.calls).values(), default=1) == 1
    sums: defaultdict[tuple[Any, ...], float] = defaultdict(float)
    for ident, order in venue.taken.items():
        assert order.stake <= 40.0
        staked, day = venue.staked(ident), order.sent // DAY
        sums["day", day] += staked
        if order.sportsbook == "fanduel":
            sums["fanduel", day] += staked
        if order.bet["event_id"] not in over:
            sums["event", order.bet["event_id"]] += staked
    for trade in account.trades().filter(status="planned").iter_rows(named=True):
        assert trade["event_id"] not in over
        sums["day", today] += trade["wanted"]
        sums["event", trade["event_id"]] += trade["wanted"]
        if trade["sportsbook"] == "fanduel":
            sums["fanduel", today] += trade["wanted"]
    most = {"day": 140.0, "fanduel": 110.0, "event": 90.0}
    assert all(total <= most[kind] + 1e-6 for (kind, _), total in sums.items())
    assert account.cash >= -1e-6


def check_money(account: Account, venue: Venue, won: dict[str, bool], over: set[str]) -> None:
    """What is staked and cash are the bankroll and what has been won."""
    trades = account.trades()
    staked = result = 0.0
    for row in trades.iter_rows(named=True):
        if row["status"] == "waiting":
            staked += row["wanted"]
        elif row["event_id"] in over:
            winner = "home" if won[row["event_id"]] else "away"
            result += row["stake"] * (row["net_odds"] - 1.0 if row["selection_type"] == winner else -1.0)
        else:
            staked += row["stake"]
        if row["status"] != "waiting":
            assert row["stake"] == pytest.approx(venue.filled.get(row["order_id"], 0.0))
    assert account.cash + staked == pytest.approx(account.start + result)


PRICES = ((), (2.1, 2.05), (2.05, 1.99), (3.2, 3.1, 3.3), (2.02, 1.985))
"""Of two arbitrages and one with a draw, and of a low hold."""


@dataclass
class Chains:
    """The orders of the legs of each opportunity in the order in which they may be sent, and what was planned."""

    account: Account
    venue: Venue
    of: dict[str, list[str]] = field(default_factory=dict)  # by order
    planned: dict[str, float] = field(default_factory=dict)
    sent: int = 0  # second and third legs

    def add(self, some: pl.DataFrame, now: int) -> None:
        """Legs are chosen."""
        orders = [order_id(ident, leg, now) for ident, leg in some.select("id", "leg").iter_rows()]
        self.of |= dict.fromkeys(orders, orders)

    def note(self) -> None:
        """What is planned after a step."""
        trades = self.account.trades().filter(status="planned")
        self.planned |= dict(trades.select("order_id", "wanted").iter_rows())

    def check(self, order: BetOrder) -> None:
        """A leg is sent after the final answer to those before, for what they pay at most, and none after a halt."""
        assert self.account.halted is None
        chain, filled = self.of.get(order.id, [order.id]), self.venue.filled
        before = chain[: chain.index(order.id)]
        assert self.venue.final.issuperset(before)
        self.sent += bool(before)
        for each in before:
            assert order.stake * order.net_odds <= filled[each] * self.venue.taken[each].net_odds * (1.0 + 1e-9)
        assert order.stake <= self.planned.get(order.id, order.stake) + 1e-9


@pytest.mark.parametrize("bankroll", [100.0, 250.0, 500.0])
@settings(max_examples=less(33_334, 80), deadline=None)
@given(script=st.binary(min_size=90, max_size=90))
def test_no_limit_is_exceeded_and_no_bet_is_sent_twice(bankroll: float, script: bytes) -> None:
    rest = iter(script)

    def chance(most: int) -> int:
        return next(rest, 0) % most

    venue = Venue(chance)
    account = start(venue, bankroll=bankroll)
    chains = Chains(account, venue)
    venue.watch = chains.check
    won = {event: bool(chance(2)) for event in EVENTS}
    for event, home in won.items():
        account.settle(event, 100 + home, 100 + (not home))
    now, number, ended = NOON, 0, set[str]()
    for _ in range(1 + chance(10)):
        now += timedelta(hours=(0, 1, 6, 24)[chance(4)])
        ended = {event for day, event in enumerate(EVENTS) if NOON + timedelta(hours=5, days=day) <= now}
        game, book, count = chance(4), BOOKS[chance(2)], chance(4)
        bets = [bet(number + at, game, book) for at in range(count) if EVENTS[game] not in ended]
        odds, other = PRICES[chance(5)], BOOKS[chance(2)]
        several = None
        if odds and EVENTS[game] not in ended:
            kind = "low_hold" if odds is PRICES[-1] else "arbitrage"
            several = legs(number, *zip((book, other, book), odds, strict=False), event=game, kind=kind)
            chains.add(several, micros(now))
        number += chance(count + 1)  # some are chosen again
        what = chance(6)
        if what == 1:
            account.halt("by hand")
        elif what == 2:
            account.resume()
        before, halted = len(venue.calls), account.halted
        account.follow(micros(now), frame(*bets) if bets else None, several)
        if halted:
            assert len(venue.calls) == before
        chains.note()
        check_limits(account, venue, ended, micros(now) // DAY)
    venue.chance = lambda _: 0
    account.halt("over")
    for _ in range(2):
        account.follow(micros(now), None)
    assert {"filled", "rejected", "not sent"}.issuperset(account.trades()["status"])
    assert "waiting" not in account.positions()["outcome"]
    assert set(venue.final) == set(venue.taken)
    account.follow(micros(now), None)
    check_money(account, venue, won, ended)


# ---- one thing at a time ----


def test_an_order_that_was_not_heard_counts_and_is_cancelled() -> None:
    venue = Script(is_down=True)
    account = start(venue)
    assert step(account, bet(0)) == 1
    step(account, bet(0))
    assert (len(venue.orders), venue.cancelled, account.cash) == (1, [], 210.0)
    assert account.trades().select("status", "reason", "wanted", "stake").row(0) == (
        "waiting", "not confirmed: 'not reached'", 40.0, 0.0,
    )  # fmt: skip
    venue.is_down = False
    step(account)
    step(account)
    assert venue.cancelled == [venue.orders[0].id]
    venue.say(0, 0.0)
    step(account)
    assert (account.cash, account.trades()["status"].item()) == (250.0, "rejected")


def test_rejections_in_a_row_halt_before_the_next_order() -> None:
    venue = Script(is_down=True)
    account = start(venue)
    bets = [bet(at, at % 4, BOOKS[at % 2], max_bet=5.0) for at in range(6)]
    step(account, *bets)
    assert (len(venue.orders), account.halted) == (4, "orders rejected in a row: 4")
    assert step(account, *bets) == 0
    venue.is_down = False
    account.resume()
    step(account, *bets[4:])
    assert len(venue.orders) == 6
    for at in (0, 1, 2, 3):
        venue.say(at, 0.0)  # not counted again
    venue.say(4, 5.0)
    step(account)
    assert account.halted is None
    assert repr(account) == "cash 240.00, 1 open, 1 waiting"


def test_what_rests_is_cancelled_and_what_it_got_stays() -> None:
    venue = Script()
    account = start(venue)
    step(account, bet(0), bet(1, 1))
    venue.say(0, 10.0, final=False)
    step(account)
    venue.say(0, 4.0, final=False)  # late
    step(account)
    assert account.trades()["stake"].to_list() == [10.0, 0.0]
    account.halt("by hand")
    account.halt("again")
    assert venue.cancelled == [order.id for order in venue.orders]
    assert step(account, bet(2, 2)) == 0
    venue.say(0, 10.0)
    venue.say(1, 0.0)
    step(account)
    assert account.trades().select("status", "reason").rows() == [("filled", None), ("rejected", "cancelled")]
    assert repr(account) == "cash 240.00, 1 open, 0 waiting, halted: by hand"


def test_the_loss_of_a_day_halts() -> None:
    venue = Script()
    account = start(venue, replace(LIMITS, max_daily_loss=60.0))
    step(account, *(bet(at, at % 2, BOOKS[at % 2]) for at in range(3)))
    for at in range(3):
        venue.say(at, venue.orders[at].stake)
    step(account)
    for event in EVENTS:
        account.settle(event, 90, 100)
    step(account, at=NOON + timedelta(hours=6))
    assert (account.halted, account.cash) == ("lost 80.00 on 2026-01-01", 130.0)
    account.resume()
    step(account, at=NOON + timedelta(hours=30))  # another day
    assert (account.halted, account.cash) == (None, 130.0)


@pytest.mark.parametrize(
    ("stake", "payout", "wrong"),
    [
        (41.0, None, "stake 41 of 40, payout 86.1"), (-1.0, None, "stake -1 of 40"), (math.nan, None, "stake nan"),
        (20.0, 19.0, "payout 19"), (20.0, math.inf, "payout inf"), (0.0, 5.0, "payout 5"),
        (5.0, None, "stake 5 after 10"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_true_halts_and_changes_nothing(stake: float, payout: float, wrong: str) -> None:
    venue = Script()
    account = start(venue)
    step(account, bet(0))
    venue.say(0, 10.0, final=False)
    venue.say(0, stake, payout)
    step(account)
    assert account.halted
    assert wrong in account.halted
    assert account.trades().select("status", "stake").row(0) == ("waiting", 10.0)
    assert account.cash == 210.0


def test_more_after_the_final_answer_and_orders_of_others_halt() -> None:
    venue = Script()
    account = start(venue)
    step(account, bet(0))
    venue.say(0, 10.0)
    venue.say(0, 10.0)
    venue.say(0, 9.0, final=False)
    step(account)
    assert (account.halted, account.cash) == (None, 240.0)
    venue.say(0, 11.0)
    step(account)
    assert account.halted == f"an answer that cannot be true: stake 11 after 10, to order {venue.orders[0].id}"
    account.resume()
    venue.fresh.append(BetAnswer(venue.orders[0].id, 10.0, 21.0, final=True, odds=0.5))
    step(account)
    assert account.halted == f"an answer that cannot be true: odds 0.5, to order {venue.orders[0].id}"
    account.resume()
    venue.fresh.append(BetAnswer("theirs", 1.0, 2.0, final=True))
    step(account)
    assert account.halted == "an answer to an order that was not sent: 'theirs'"


def test_the_odds_of_a_fill_follow_from_its_payout() -> None:
    venue = Script()
    account = start(venue)
    step(account, bet(0, net_odds=2.05), bet(1, 1))
    venue.say(0, 40.0, 80.0)
    venue.say(1, 40.0)
    step(account)
    odds = account.trades().select("odds_decimal", "net_odds", "ev").rows()
    assert odds[0] == pytest.approx((1.0 + 1.1 * 1.0 / 1.05, 2.0, 0.0))
    assert odds[1] == (2.1, 2.1, 0.05)


@pytest.mark.parametrize(
    ("reason", "halted"), [("", "by hand"), (" ", "by hand"), (None, "by hand"), (0, "0"), ([], "[]"), ("rain", "rain")]
)
def test_every_reason_halts(reason: Any, halted: str) -> None:
    venue = Script()
    account = start(venue)
    step(account, bet(0))
    account.halt(reason)
    assert account.halted == halted
    assert venue.cancelled == [venue.orders[0].id]
    assert step(account, bet(1, 1)) == 0


def test_a_reason_that_cannot_be_printed_halts() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ArithmeticError

    account = start(Script())
    account.halt(Silent())  # type: ignore[arg-type]
    assert account.halted


def test_a_score_after_the_release_is_paid_once_and_counts_on_its_day() -> None:
    venue = Script()
    account = start(venue, replace(LIMITS, max_daily_loss=40.0))
    step(account, bet(0), bet(1, 1, "betmgm"))
    for at in (0, 1):
        venue.say(at, 40.0)
    step(account)
    step(account, at=NOON + timedelta(days=3))
    assert account.cash == 250.0  # both are released, without a score
    account.settle("e0", 100, 90)
    step(account, at=NOON + timedelta(days=3))
    assert (account.cash, account.halted) == (294.0, None)
    account.settle("e1", 90, 100)
    account.settle("e0", 100, 90)
    step(account, at=NOON + timedelta(days=4))
    assert (account.cash, account.halted) == (254.0, "lost 40.00 on 2026-01-05")
    account.resume()
    step(account, at=NOON + timedelta(days=5))
    assert (account.cash, account.halted) == (254.0, None)


class Odd(float):
    """A number that cannot be compared."""

    def __le__(self, other: object) -> bool:
        raise ArithmeticError("no order")

    __lt__ = __ge__ = __gt__ = __le__


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (None, "an answer that is no BetAnswer: None"), (("0", 1.0), "an answer that is no BetAnswer: ('0', 1.0)"),
        ({"stake": None}, "stake None"), ({"stake": "40"}, "stake '40'"), ({"payout": None}, "payout None"),
        ({"odds": "x"}, "odds 'x'"), ({"odds": math.nan}, "odds nan"), ({"final": None}, "final None"),
        ({"final": 1}, "final 1"), ({"reason": 5}, "reason 5"), ({"order": []}, "order []"),
        ({"order": None}, "order None"),
        ({"stake": True}, "stake True"), ({"stake": Odd(99.0)}, "stake 99 of 40"), ({"stake": 10**400}, "stake 1000"),
    ],
)  # fmt: skip
def test_an_answer_that_is_malformed_halts_and_the_others_are_processed(wrong: Any, says: str) -> None:
    venue = Script()
    account = start(venue)
    step(account, bet(0), bet(1, 1), bet(2, 2, "betmgm"))
    venue.say(0, 40.0)
    venue.say(1, 40.0)
    if isinstance(wrong, dict):
        wrong = venue.fresh[-1]._replace(**wrong)
    venue.fresh[-1] = wrong
    venue.say(2, 10.0)
    step(account)
    assert account.halted
    assert says in account.halted
    assert account.trades()["status"].to_list() == ["filled", "waiting", "filled"]
    assert account.cash == 250.0 - 40.0 - 40.0 - 10.0


@pytest.mark.parametrize("answers", [None, 5, "no", {"a": 1}])
def test_answers_that_are_no_list_halt(answers: Any) -> None:
    venue = Script()
    account = start(venue)
    step(account, bet(0))
    venue.fresh = answers
    step(account)
    assert account.halted == f"answers of the venue that are no list: {answers!r}"
    assert account.cash == 210.0


def test_ids_of_orders_fit_where_venues_take_them() -> None:
    venue = Script()
    step(start(venue), bet(2**63))
    assert re.fullmatch("[0-9a-f-]{1,32}", venue.orders[0].id)


@pytest.mark.parametrize(
    ("limits", "staked"),
    [
        ({"max_daily_stake": 50.0}, [40.0, 10.0]), ({"max_daily_stake_per_book": 15.0}, [15.0, 15.0]),
        ({"max_daily_stake_per_book": {"betmgm": 5.0}}, [40.0, 5.0, 40.0]), ({"max_bet": 7.0}, [7.0, 7.0, 7.0, 7.0]),
    ],
)  # fmt: skip
def test_limits_of_a_day(limits: dict[str, Any], staked: list[float]) -> None:
    venue = Script()
    account = start(venue, Strategy(**{"staking": "flat", "size": 0.16, "max_bet": None, **limits}))
    bets = [bet(at, at, BOOKS[at % 2]) for at in range(4)]
    step(account, *bets[:3])
    step(account, *bets[3:])
    got = [order.stake for order in venue.orders]
    assert got == staked
    assert step(account, bet(9, 3), at=NOON + timedelta(days=1)) == 1
    for wrong in (
        {"max_daily_stake": -1.0},
        {"max_daily_stake_per_book": {"fanduel": None}},
        {"max_rejections": 0},
        {"max_daily_loss": "1"},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}.* must be"):
            Strategy(**wrong)
