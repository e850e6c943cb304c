"""The venue of paper money: worked numbers, and that no more is spent than was ordered."""

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oddsengine import catalog
from oddsengine.execution.ladders import Ladder, Level
from oddsengine.execution.paper import Latency, Look, PaperVenue
from oddsengine.execution.taking import lowered, spend
from oddsengine.execution.venues import BetAnswer, BetOrder


def ladder(
    *levels: tuple[float, float], book: str = "kalshi", fee: float = 0.0, step: float = 0.0, **of: Any
) -> Ladder:  # fmt: skip
    """Prices in cents, and how many contracts there are."""
    some = tuple(
        Level(100.0 / cents, cents / 100.0, fee * (cents / 100.0) * (1.0 - cents / 100.0), n) for cents, n in levels
    )
    plain = Ladder(1, 0, catalog.book(book), some, True, False, 0, 0.01, 0.0, step, 0.0, 0)
    return plain._replace(**of)


def order(stake: float = 10.0, number: int = 0, **of: Any) -> BetOrder:
    plain = BetOrder(str(number), "kalshi", "1", 2.0, 1.9, 2.0, stake, False, 0.0, 0, {})
    return plain._replace(**of)


def answered(stands: Ladder | None, *orders: BetOrder, at: int = 5_000_000, **of: Any) -> list[BetAnswer]:
    venue = PaperVenue({each.id: Look(stands, stands) for each in orders}, Latency.of(5.0), **of)
    for each in orders:
        venue.place(each)
    venue.follow(at)
    return venue.answers()


@pytest.mark.parametrize(
    ("stands", "stake", "payout", "odds", "reason"),
    [
        (ladder((50, inf)), 10.0, 20.0, 2.0, None),
        (ladder((48, inf)), 10.0, 20.0, 2.0, None),  # not better than decided, without a size
        (ladder((50, 30)), 10.0, 20.0, 2.0, None),
        (ladder((50, 12)), 6.0, 12.0, 2.0, "not enough"),
        (ladder((40, 10), (50, 30)), 10.0, 22.0, 2.2, None),  # 4 and 6 at the two levels
        (ladder((40, 10), (50, 30), book="fanduel"), 10.0, 20.0, 2.0, None),
        (ladder((50, 8), (52, 5), (53, 99)), 6.6, 13.0, (4.0 * 2.0 + 2.6 / 0.52) / 6.6, "not enough"),
        (ladder((50, 99), fee=0.07, step=0.5), 9.84, 19.0, 2.0, None),  # 19 contracts and 0.34: 20 cost 10.35
        (ladder((50, 99), fee=0.07, lot=1.0), 9.84, 19.0, 2.0, None),
        (ladder((53, 99)), 0.0, 0.0, None, "price moved"),
        (ladder((50, 99), min_stake=11.0), 0.0, 0.0, None, "too small"),
        (ladder((50, 0.5), step=0.5), 0.0, 0.0, None, "too small"),
        (ladder((50, 99), is_active=False), 0.0, 0.0, None, "suspended"),
        (ladder((50, 99), is_live=True), 0.0, 0.0, None, "in play"),
        (None, 0.0, 0.0, None, "gone"),
    ],
)
def test_what_an_order_gets(
    stands: Ladder | None, stake: float, payout: float, odds: float | None, reason: str | None
) -> None:  # fmt: skip
    (got,) = answered(stands, order())
    assert (got.order, got.final, got.reason) == ("0", True, reason)
    assert (got.stake, got.payout) == pytest.approx((stake, payout))
    assert got.odds == (None if odds is None else pytest.approx(odds))


def test_orders_are_answered_once_when_they_are_due() -> None:
    assert answered(ladder((50, inf)), order(), at=4_999_999) == []
    assert len(answered(ladder((50, inf)), order(), order())) == 1
    assert answered(ladder((50, inf)), order(is_live=True, delay_s=1.0)) == []
    venue = PaperVenue({}, Latency.of(5.0))
    venue.place(order())
    for name in ("0", "1"):
        venue.cancel(name)
    assert venue.answers() == [BetAnswer("1", 0.0, 0.0, final=True, reason="unknown order")]
    assert venue.answers() == []


def test_an_answer_that_is_late_or_not_seen_in_a_sparse_history_is_unobserved() -> None:
    whole = BetAnswer("0", 10.0, 20.0, final=True, reason="unobserved", odds=2.0, at=5_000_000)
    hour = 3_600_000_000
    assert answered(None, order(), at=hour) == [whole]
    assert answered(ladder((53, 99)), order(), sparse=True) == [whole]
    assert answered(ladder((53, 99), seen=5_000_000), order(), sparse=True)[0].reason == "price moved"
    for sparse, left in ((True, [whole]), (False, [])):
        venue = PaperVenue({}, Latency.of(5.0), sparse=sparse)
        venue.place(order())
        venue.finish()
        assert venue.answers() == left


def test_what_was_taken_is_not_there_twice() -> None:
    book = ladder((50, 30))
    first, second, third = answered(book, order(), order(number=1), order(number=2))
    assert [first.stake, second.stake, third.stake] == pytest.approx([10.0, 5.0, 0.0])
    assert (second.reason, third.reason) == ("not enough", "taken")
    looks = {"0": Look(book, book), "1": Look(ladder((50, 40)), lowered(book, ladder((50, 4), (51, 9))))}
    venue = PaperVenue(looks, Latency.of(0.0))
    stakes = []
    for number in range(2):  # of 20 taken, 4 may still be there
        venue.place(order(100.0 if number else 10.0, number))
        stakes += [answer.stake for answer in venue.answers()]
    assert stakes == pytest.approx([10.0, 18.0])


@given(
    cents=st.lists(st.integers(5, 95), min_size=1, max_size=4, unique=True).map(sorted),
    sizes=st.lists(st.integers(1, 60), min_size=4, max_size=4),
    money=st.integers(1, 8000),
    fee=st.sampled_from([0.0, 0.07]),
)
def test_no_more_is_spent_than_ordered_and_no_less_than_can_be(
    cents: list[int], sizes: list[int], money: int, fee: float
) -> None:  # fmt: skip
    book = ladder(*zip(cents, sizes, strict=False), fee=fee)
    got, most = spend(book, book.levels, money / 100.0), money / 100.0
    assert got.cost <= most + 1e-9
    is_all = got.units == pytest.approx(sum(sizes[: len(cents)]))
    assert is_all or got.cost > most - 0.01 - 1e-9
    if got.units > 0.0 and got.cost < most - 0.02:
        assert got.reason == "not enough"
