"""What orders of ours would have been filled at the exchanges of a world.

The intents of everyone else are played again through a fresh order book, with ours among them, each at the time at
which it arrives. Nobody reacts to us: who wanted what we have taken takes what is next, within the same limit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from math import floor
from typing import NamedTuple

from oddsengine.bounds import check_bool, check_number, excerpt
from oddsengine.columns import SECOND
from oddsengine.simulate.exchanges import Exchanges, MarketKey, TradedMarket
from oddsengine.simulate.order_books import CONTRACT, MatchingEngine
from oddsengine.simulate.simulated_labels import AWAY, Place
from oddsengine.simulate.simulated_leagues import MONEYLINE

_MICROSECOND = timedelta(microseconds=1)
_MOST = 1e9  # contracts
_WHOLE = 1e-6  # a number of contracts that is this close to a whole one is whole
_ROUNDING = 1e-9  # of prices, in ticks


class SimulatedOrder(NamedTuple):
    """An order of ours for contracts that pay 1 if the selection wins.

    `odds` are the lowest that it accepts, before fees. With `until` None, what is not filled on arrival is cancelled;
    otherwise it rests until then. `all_or_nothing` fills it whole on arrival, or not at all.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> sent = datetime(2026, 2, 7, 18, tzinfo=UTC)
    >>> SimulatedOrder("kalshi", "e1", "moneyline", "Celtics", None, sent, odds=1.9, contracts=100).all_or_nothing
    False
    """

    book: str
    event_id: str
    market_type: str
    selection: str
    line: float | None
    sent: datetime
    odds: float
    contracts: float
    all_or_nothing: bool = False
    until: datetime | None = None


class SimulatedFill(NamedTuple):
    """What became of an order: the contracts that were filled, their cost before fees, and when it arrived."""

    contracts: float
    cost: float
    arrived: datetime


class Arrival(NamedTuple):
    """An order of ours as its venue receives it; times in microseconds of world time."""

    at: int
    outcome: int
    price: int  # ticks: the most that a contract may cost
    size: int
    whole: bool  # all of it on arrival, or nothing
    until: int | None


class Truth(NamedTuple):
    """What decides about the orders of a world."""

    exchanges: Exchanges
    books: tuple[str, ...]
    place: Callable[[str, str, str, float | None], Place]
    seed: int
    start: datetime
    now: datetime


def fill(orders: Iterable[SimulatedOrder], truth: Truth) -> list[SimulatedFill]:
    """Return what would have been filled of some orders, in their order."""
    received: dict[MarketKey, list[tuple[int, Arrival]]] = {}
    count = 0
    for count, order in enumerate(orders, 1):
        try:
            key, arrival = receive(order, truth)
        except ValueError as error:
            raise ValueError(f"order {count}: {error}") from None
        received.setdefault(key, []).append((count - 1, arrival))
    fills: dict[int, SimulatedFill] = {}
    for key, ours in received.items():
        done = replay(truth.exchanges.markets[key], [arrival for _, arrival in ours])
        for (number, arrival), (contracts, cost) in zip(ours, done, strict=True):
            fills[number] = SimulatedFill(contracts, cost, truth.start + arrival.at * _MICROSECOND)
    return [fills[number] for number in range(count)]


def receive(order: SimulatedOrder, truth: Truth) -> tuple[MarketKey, Arrival]:
    """Return the market to which an order goes, and how it arrives there."""
    check_order(order)
    exchanges = truth.exchanges
    if order.book not in exchanges.delays:
        if not exchanges.delays:
            raise ValueError(f"this world has no order books, got an order for {excerpt(order.book)}")
        raise ValueError(f"book must be one of {', '.join(exchanges.delays)}, got {excerpt(order.book)}")
    place = truth.place(order.event_id, order.market_type, order.selection, order.line)
    key = truth.books.index(order.book), place.event, place.ladder, place.quarters
    market = exchanges.markets.get(key)
    if market is None:
        raise ValueError(f"{order.book} has no order book of {order.market_type} {order.selection} {order.line}")
    sent = (order.sent - truth.start) // _MICROSECOND
    least, most = exchanges.delays[order.book]
    share = share_of(truth.seed, order.book, place, sent)
    waits = market.bet_delay if sent >= exchanges.live_from.get(place.event, sent + 1) else 0
    latest = max(order.sent + timedelta(seconds=most + waits), order.until or order.sent)
    if latest > truth.now:
        raise ValueError(f"the world has run until {truth.now}, and the order can trade until {latest}: run it further")
    at = sent + round((least + share * (most - least) + waits) * SECOND)
    until = None if order.until is None else (order.until - truth.start) // _MICROSECOND
    outcome = int(place.side == AWAY) if place.ladder == MONEYLINE else place.side
    price, size = (
        limit_price(order.odds, market.venue.ticks),
        units(order.contracts, order.book, whole=market.venue.whole),
    )
    return key, Arrival(at, outcome, price, size, order.all_or_nothing, until)


def check_order(order: SimulatedOrder) -> None:
    """Raise if an order cannot be sent."""
    if not isinstance(order, SimulatedOrder):
        raise ValueError(f"an order must be a SimulatedOrder, got {excerpt(order)}")
    for name in ("book", "event_id", "market_type", "selection"):
        if not isinstance(text := getattr(order, name), str):
            raise ValueError(f"{name} must be a string, got {excerpt(text)}")
    check_number("odds", order.odds, above=1.0)
    check_number("contracts", order.contracts, above=0.0, most=_MOST)
    check_bool("all_or_nothing", order.all_or_nothing)
    for name, time in (("sent", order.sent), ("until", order.until)):
        if time is None and name == "until":
            continue
        if not isinstance(time, datetime) or time.utcoffset() is None:
            raise ValueError(f"{name} must be a datetime with a time zone, got {excerpt(time)}")
    if order.until is not None and order.all_or_nothing:
        raise ValueError("until must be None with all_or_nothing, as nothing of such an order can rest")
    if order.until is not None and order.until <= order.sent:
        raise ValueError(f"until must be after sent, {order.sent}, got {order.until}")


def limit_price(odds: float, ticks: int) -> int:
    """Return the highest price in ticks at which a contract has at least some decimal odds.

    Examples
    --------
    >>> limit_price(2.5, 100), limit_price(2.51, 100)
    (40, 39)
    """
    return floor(ticks / odds + _ROUNDING)


def units(contracts: float, book: str, *, whole: bool) -> int:
    """Return the size of an order in units; an error if the book sells whole contracts only, and these are not."""
    if whole and (abs(contracts - round(contracts)) > _WHOLE or round(contracts) < 1):
        raise ValueError(f"contracts must be a whole number at {book}, got {contracts!r}")
    return round(contracts) * CONTRACT if whole else max(1, round(contracts * CONTRACT))


def share_of(seed: int, book: str, place: Place, sent: int) -> float:
    """Return a random number from 0 to below 1 that depends only on the world, and where and when an order is sent."""
    digest = blake2b(repr((seed, book, *place, sent)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2.0**64


def replay(market: TradedMarket, arrivals: Sequence[Arrival]) -> list[tuple[float, float]]:
    """Return the contracts and the cost of each of our orders in one market, all of them in it together.

    What others do comes before what we do at the same microsecond.
    """
    book = MatchingEngine(market.venue.ticks)
    intents = iter(market.intents)
    intent = next(intents, None)
    for at, number, is_new in _actions(arrivals):
        while intent is not None and intent.at <= at:
            book.apply(intent)
            intent = next(intents, None)
        arrival = arrivals[number]
        if is_new:
            rests = arrival.until is not None
            book.bid(-1 - number, arrival.outcome, arrival.price, arrival.size, rests=rests, whole=arrival.whole)
        else:
            book.cancel(-1 - number)
    traded = [book.traded(-1 - number) for number in range(len(arrivals))]
    return [(each.size / CONTRACT, each.cost / (CONTRACT * market.venue.ticks)) for each in traded]


def _actions(arrivals: Sequence[Arrival]) -> Iterator[tuple[int, int, bool]]:
    """Yield when our orders arrive and when they are cancelled, by time: number of the order, and whether it is new."""
    actions = []
    for number, arrival in enumerate(arrivals):
        if arrival.until is not None and arrival.until < arrival.at:
            continue  # it has expired on its way
        actions.append((arrival.at, 0, number))
        if arrival.until is not None:
            actions.append((arrival.until, 1, number))
    for at, is_end, number in sorted(actions):
        yield at, number, not is_end
