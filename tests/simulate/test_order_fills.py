"""What would have been filled: crafted markets, a world whose intents a naive twin plays again, and what is refused."""

from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pytest
from naive import order_books as naive

from oddsengine.simulate import FeedBatch, SimulatedOrder, World
from oddsengine.simulate.exchanges import TradedMarket
from oddsengine.simulate.order_books import CONTRACT, Action, Intent
from oddsengine.simulate.order_fills import Arrival, replay
from oddsengine.simulate.simulated_venues import VENUES, Venue
from oddsengine.simulate.world import START

WORDS = {Action.LIMIT: naive.LIMIT, Action.TAKE: naive.TAKE, Action.CANCEL: naive.CANCEL} | {
    Action.OPEN: naive.OPEN, Action.CLOSE: naive.CLOSE,
}  # fmt: skip
FIVE = 5 * CONTRACT


def market(*intents: Intent) -> TradedMarket:
    made = TradedMarket(Venue(100, whole=True, busy=1.0, delay=(0.0, 0.0)), np.random.default_rng(1))
    made.intents = [Intent(0, Action.OPEN), *intents]
    return made


def take(at: int, price: int, size: int = FIVE, **more: Any) -> Arrival:
    return Arrival(**{"at": at, "outcome": 0, "price": price, "size": size, "whole": False, "until": None} | more)


LADDER = (Intent(1, Action.LIMIT, 1, 1, 40, FIVE), Intent(2, Action.LIMIT, 2, 1, 39, FIVE))  # offers at 60 and 61


def test_levels_are_used_once_by_us_and_by_those_who_come_after() -> None:
    ladder = market(*LADDER)
    assert replay(ladder, [take(5, 61, 2 * FIVE)]) == [(10.0, 6.05)]
    assert replay(ladder, [take(5, 60, 2 * FIVE)]) == [(5.0, 3.0)]
    assert replay(ladder, [take(5, 61), take(6, 61), take(7, 61)]) == [(5.0, 3.0), (5.0, 3.05), (0.0, 0.0)]
    assert replay(ladder, [take(6, 61), take(5, 61)]) == [(5.0, 3.05), (5.0, 3.0)]  # who arrives first
    # The taker after us takes the next level, and so nothing of what it takes without us is left.
    after = market(*LADDER, Intent(6, Action.TAKE, 3, 0, 61, FIVE))
    assert replay(after, [take(7, 61)]) == [(5.0, 3.05)]
    assert replay(after, [take(5, 60), take(7, 61)]) == [(5.0, 3.0), (0.0, 0.0)]


def test_a_whole_order_is_filled_at_once_or_not_at_all() -> None:
    assert replay(market(*LADDER), [take(5, 60, 6 * CONTRACT, whole=True), take(6, 60)]) == [(0.0, 0.0), (5.0, 3.0)]


def test_a_resting_order_waits_for_those_ahead_of_it() -> None:
    ahead = Intent(1, Action.LIMIT, 1, 0, 55, FIVE)
    first, second = Intent(10, Action.TAKE, 2, 1, 45, FIVE), Intent(20, Action.TAKE, 3, 1, 45, 3 * CONTRACT)
    rest = take(5, 55, until=30)
    assert replay(market(ahead, first), [rest]) == [(0.0, 0.0)]
    assert replay(market(ahead, first, second), [rest]) == [(3.0, 1.65)]
    assert replay(market(ahead, first, second), [rest._replace(until=19)]) == [(0.0, 0.0)]
    assert replay(market(ahead, first, second), [rest._replace(until=20)]) == [(3.0, 1.65)]
    gone = Intent(8, Action.CANCEL, 1)
    assert replay(market(ahead, gone, first), [rest]) == [(5.0, 2.75)]
    closed = Intent(15, Action.CLOSE), Intent(16, Action.OPEN)
    assert replay(market(ahead, first, *closed, second), [rest]) == [(0.0, 0.0)]
    assert replay(market(*LADDER), [take(5, 61, until=4)]) == [(0.0, 0.0)]  # expired on its way


# ---- a world ----


@cache
def played() -> tuple[World, list[FeedBatch]]:
    books = ["kalshi", "betfair_exchange", "polymarket", "fanduel"]
    world = World(17, events=3, live=0.4, tick=2.0, books=books, main_lines=True, traders=True)
    return world, list(world.run(100.0))


def orders(*, live: bool, later: float = 0.0) -> list[SimulatedOrder]:
    """An order for one contract more than the two best levels of each early price, at the price of the second."""
    world, batches = played()
    made = []
    for batch in batches:
        for row in batch.quotes:
            levels = row.get("levels", ())
            if len(levels) > 1 and row["is_live"] == live and batch.now < world.now - timedelta(seconds=60):
                size = sum(level["stake"] * level["odds_decimal"] for level in levels[:2])
                made.append(
                    SimulatedOrder(
                        row["sportsbook"], row["event_id"], row["market_type"], row["selection"], row.get("line"),
                        batch.now + timedelta(seconds=later), levels[1]["odds_decimal"], round(size) + 1.0,
                    )
                )  # fmt: skip
    return made


def test_a_naive_twin_fills_the_same() -> None:
    world, _ = played()
    asked = [
        order._replace(until=order.sent + timedelta(seconds=15) if at % 3 == 0 else None, all_or_nothing=at % 3 == 1)
        for at, order in enumerate(orders(live=True) + orders(live=False))
    ]
    told = world.filled(asked)
    assert sum(fill.contracts > 0.0 for fill in told) > 50
    assert sum(0.0 < fill.contracts < order.contracts for fill, order in zip(told, asked, strict=True)) > 50
    markets = world._exchanges.markets  # type: ignore[union-attr]
    by_market: dict[Any, list[int]] = {}
    for at, order in enumerate(asked):
        place = world.place(*order[1:5])
        by_market.setdefault((world.books.index(order.book), *place[:2], place.quarters), []).append(at)
    for key, numbers in by_market.items():
        ticks = VENUES[world.books[key[0]]].ticks
        intents = [(each.at, (WORDS[each.kind], *each[2:])) for each in markets[key].intents]
        ours = [naive_order(asked[at], told[at].arrived, -1 - at, ticks) for at in numbers]
        for at, (size, cost) in zip(numbers, naive.filled(ticks, intents, ours), strict=True):
            assert told[at][:2] == (size / CONTRACT, cost / CONTRACT / ticks), asked[at]


def microseconds(time: datetime) -> int:
    return (time - START) // timedelta(microseconds=1)


def naive_order(order: SimulatedOrder, arrived: datetime, number: int, ticks: int) -> tuple[int, Any, int | None]:
    """An order in the twin's words; the selection's side is told by its text."""
    fixture = next(each for each in played()[0].fixtures if each.id == order.event_id)
    second = order.selection.startswith((fixture.away, "Under"))
    price = max(at for at in range(1, ticks) if ticks / at >= order.odds - 1e-9)
    kind = naive.WHOLE if order.all_or_nothing else naive.TAKE if order.until is None else naive.LIMIT
    until = None if order.until is None else microseconds(order.until)
    return microseconds(arrived), (kind, number, int(second), price, round(order.contracts) * CONTRACT), until


def test_orders_are_on_their_way_for_a_time_that_only_the_venue_knows() -> None:
    world, batches = played()
    delays = {row["sportsbook"]: row["bet_delay"] for batch in batches for row in batch.quotes if "bet_delay" in row}
    assert (delays["kalshi"], delays["polymarket"]) == (0.0, 3.0)
    assert set(world.delays) == {"kalshi", "betfair_exchange", "polymarket"}
    shares = []
    for live in (False, True):
        for order, fill in zip(asked := orders(live=live), world.filled(asked), strict=True):
            least, most = world.delays[order.book]
            waited = (fill.arrived - order.sent).total_seconds() - least
            if live and order.book == "betfair_exchange":
                assert 5.0 <= waited <= 8.0 + most - least
            else:
                shares.append((waited - (3.0 if live and order.book == "polymarket" else 0.0)) / (most - least))
    assert 0.0 <= min(shares) < 0.05
    assert 0.95 < max(shares) <= 1.0
    assert 0.4 < sum(shares) / len(shares) < 0.6


def test_a_price_is_there_if_an_order_is_fast_and_orders_together_get_less() -> None:
    """Most of a ladder that is shown can be had, later less of it, and two orders together get no more than one."""
    world, _ = played()

    def share(asked: list[SimulatedOrder]) -> float:
        alone = [world.filled([order])[0] for order in asked]
        return sum(fill.contracts for fill in alone) / sum(order.contracts for order in asked)

    now, later = orders(live=False)[:60], orders(live=False, later=20.0)[:60]
    assert share(now) > 0.9
    assert share(later) < share(now)
    one, two = world.filled(now), world.filled(now + now)
    assert sum(fill.contracts for fill in two) < 1.5 * sum(fill.contracts for fill in one)
    assert [fill.arrived for fill in two] == [fill.arrived for fill in one] * 2


def test_orders_that_cannot_be_sent() -> None:
    world, _ = played()
    order = next(each for each in orders(live=False) if each.book == "kalshi")
    late = world.now - timedelta(seconds=0.2)
    naive_time = order.sent.replace(tzinfo=None)
    for changes, message in (
        ({"book": "fanduel"}, "order 2: book must be one of kalshi, betfair_exchange, polymarket, got 'fanduel'"),
        ({"market_type": "point_spread", "line": 9.75}, r"kalshi has no order book of point_spread .* 9.75"),
        ({"market_type": "point_spread", "line": 9.8}, "line must be a multiple of a quarter, or None .* got 9.8"),
        ({"market_type": "team_total", "line": 9.5}, "order 2: selection must be one of team_total of "),
        ({"selection": "Nobody"}, "line must be|selection must be one of"),
        ({"event_id": "e"}, "order 2: event_id must be that of an event of this world, got 'e'"),
        ({"event_id": ["e"]}, r"event_id must be a string, got \['e'\]"),
        ({"book": None}, "book must be a string, got None"),
        ({"all_or_nothing": "no"}, "all_or_nothing must be True or False, got 'no'"),
        ({"odds": 1.0}, "odds must be a finite number above 1, got 1.0"),
        ({"contracts": 0.0}, "contracts must be above 0 and at most 1,000,000,000"),
        ({"contracts": 2.5}, "contracts must be a whole number at kalshi, got 2.5"),
        ({"sent": naive_time}, "sent must be a datetime with a time zone, got"),
        ({"sent": None}, "sent must be a datetime with a time zone, got None"),
        ({"until": "20:00"}, "until must be a datetime with a time zone, got '20:00'"),
        ({"sent": late}, "the world has run until"),
        ({"until": world.now + timedelta(seconds=1)}, "the world has run until"),
        ({"until": order.sent}, "until must be after sent"),
        ({"until": order.sent + timedelta(seconds=1), "all_or_nothing": True}, "until must be None with all_or_noth"),
    ):
        with pytest.raises(ValueError, match=message):
            world.filled([order, order._replace(**changes)])
    with pytest.raises(ValueError, match="order 2: an order must be a SimulatedOrder, got 'kalshi'"):
        world.filled([order, "kalshi"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="traders must be True or False, got 'yes'"):
        World(1, events=1, traders="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="filled needs a world with traders=True"):
        World(1, events=1).filled([])
    assert world.filled([]) == []
