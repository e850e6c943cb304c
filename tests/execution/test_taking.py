"""Orders that take what is there: worked numbers, against a fill unit by unit, and what was taken before."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oddsengine import catalog
from oddsengine.execution.ladders import Ladder, Level
from oddsengine.execution.taking import Taken, fill, units_by_odds

KALSHI = catalog.book("kalshi")


def ladder(*levels: tuple[float, float], fee: float = 0.0, least: float = 0.0, step: float = 0.0) -> Ladder:
    """A ladder of contracts: prices in cents, and how many there are."""
    some = [
        Level(100.0 / cents, cents / 100.0, fee * (cents / 100.0) * (1.0 - cents / 100.0), n) for cents, n in levels
    ]
    return Ladder(1, 0, KALSHI, tuple(some), True, False, 0, 0.01, least, 0.0, step, 0)


def test_a_fee_is_rounded_up_once_for_the_order() -> None:
    """A hundred contracts at 0.50 with a fee of 0.07 p (1 - p) cost 51.75, one costs 0.52."""
    book = ladder((50, 100), fee=0.07)
    for contracts, cost in ((100.0, 51.75), (1.0, 0.52)):
        got = fill(book, book.levels, contracts, 0.6)
        assert (got.units, got.reason) == (contracts, "")
        assert got.cost == pytest.approx(cost)


@pytest.mark.parametrize(
    ("wanted", "limit", "whole", "units", "cost", "reason"),
    [
        (150.0, 0.42, False, 150.0, 61.5, ""),  # two levels
        (400.0, 0.42, False, 300.0, 124.5, "not enough"),
        (400.0, 0.42, True, 0.0, 0.0, "not in whole"),
        (300.0, 0.42, True, 300.0, 124.5, ""),
        (50.0, 0.405, False, 50.0, 20.0, ""),  # the limit leaves the second level out
        (150.0, 0.405, False, 100.0, 40.0, "not enough"),
        (50.0, 0.39, False, 0.0, 0.0, "price moved"),
        (0.5, 0.42, False, 0.0, 0.0, "too small"),  # less than a contract
        (1.0, 0.42, False, 0.0, 0.0, "too small"),  # less than the smallest bet
    ],
)
def test_what_an_order_gets(
    wanted: float, limit: float, whole: bool, units: float, cost: float, reason: str
) -> None:  # fmt: skip
    book = ladder((40, 100), (42, 200), (45, 500), least=1.0, step=1.0)
    if cost == 61.5:
        cost = 100 * 0.40 + 50 * 0.42
    if cost == 124.5:
        cost = 100 * 0.40 + 200 * 0.42
    got = fill(book, book.levels, wanted, limit, all_or_nothing=whole)
    assert got.reason == reason
    assert [got.units, got.cost] == pytest.approx([units, cost])
    assert sum(units for _, units in got.levels) == pytest.approx(got.units)


books = st.lists(st.tuples(st.integers(5, 95), st.integers(1, 30)), max_size=5, unique_by=lambda level: level[0])


@given(books.map(sorted), st.integers(1, 80), st.integers(5, 95), st.booleans(), st.sampled_from([0.0, 0.07]))
def test_an_order_is_filled_unit_by_unit(
    levels: list[tuple[int, int]], wanted: int, cents: int, whole: bool, fee: float
) -> None:
    book = ladder(*levels, fee=fee)
    limit = cents / 100.0
    got = fill(book, book.levels, float(wanted), limit, all_or_nothing=whole)
    costs = [level.cost for level in book.levels for _ in range(int(level.units)) if level.cost <= limit + 1e-9]
    taken = [] if whole and len(costs) < wanted else costs[:wanted]
    assert got.units == len(taken)
    assert sum(taken) - 1e-9 <= got.cost < sum(taken) + 0.01 + 1e-9  # with the fee rounded up
    assert bool(got.reason) == (len(taken) < wanted)


# ---- liquidity is used once ----


@dataclass
class OneByOne:
    """Which units of each level are ours, in the order in which they came."""

    units: dict[float, list[bool]] = field(default_factory=dict)

    def show(self, levels: list[tuple[int, int]]) -> None:
        shown = {100.0 / cents: n for cents, n in levels}
        self.units = {odds: self.units.get(odds, [])[:n] for odds, n in shown.items()}
        for odds, n in shown.items():  # of a level that shrinks ours are the last to leave; what is added is new
            mine = sum(self.units[odds])
            self.units[odds] += [False] * (n - len(self.units[odds]))
            assert sum(self.units[odds]) <= mine

    def left(self) -> dict[float, int]:
        return {odds: n for odds, units in self.units.items() if (n := len(units) - sum(units))}

    def take(self, odds: float, n: int) -> None:
        free = [at for at, is_mine in enumerate(self.units[odds]) if not is_mine]
        for at in free[:n]:
            self.units[odds][at] = True
        self.units[odds].sort(reverse=True)


@given(st.lists(st.tuples(books.map(sorted), st.integers(1, 40), st.integers(5, 95)), min_size=1, max_size=6))
def test_what_was_taken_is_taken_until_more_is_shown(looks: list[tuple[list[tuple[int, int]], int, int]]) -> None:
    taken, slow = Taken(), OneByOne()
    for number, (levels, wanted, cents) in enumerate(looks):
        book = ladder(*levels)
        if number:
            taken.observe(1, units_by_odds(book))
            taken.passed()
        slow.show(levels)
        left = taken.left(book)
        assert {level.odds: level.units for level in left} == slow.left()
        got = fill(book, left, float(wanted), cents / 100.0)
        taken.take(1, got.levels)
        for odds, units in got.levels:
            slow.take(odds, int(units))


def test_before_and_after_a_step_are_two_ladders() -> None:
    """What we take in a step is gone from both."""
    taken, before, after = Taken(), ladder((40, 100)), ladder((40, 60), (41, 50))
    taken.take(1, [(2.5, 80.0)])
    taken.observe(1, units_by_odds(after))
    assert [level.units for level in taken.left(before, before=True)] == [20.0]
    assert [level.units for level in taken.left(after)] == [50.0]  # of the 60 none is new
    taken.take(1, [(2.5, 10.0)])
    assert [level.units for level in taken.left(before, before=True)] == [10.0]
    taken.passed()
    assert [level.units for level in taken.left(after, before=True)] == [50.0]
    taken.observe(1, units_by_odds(None))  # the price is removed
    assert [level.units for level in taken.left(after)] == [60.0, 50.0]
    assert not list(taken.rows)
