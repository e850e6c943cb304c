"""What every fair price must do, as checks of a function of `MarketPrices`; each raises `AssertionError`.

The answers are judged by the rules of `find_ev(model=...)`: a method that has no answer to a market returns None.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from oddsengine.fair_functions import Calls, MarketPrices, Method

_AT, _START = datetime(2026, 12, 1, 18, tzinfo=UTC), datetime(2026, 12, 1, 23, tzinfo=UTC)
_CLOSE = 1e-9
T = TypeVar("T")
_TWO = {
    "pinnacle": (1.95, 1.95), "circa": (1.97, 1.93), "draftkings": (1.91, 1.91), "fanduel": (1.9, 1.94),
    "betmgm": (1.87, 1.95), "caesars": (1.91, 1.87),
}  # fmt: skip
_THREE = {
    "pinnacle": (2.7, 3.3, 2.8), "circa": (2.65, 3.35, 2.8), "draftkings": (2.6, 3.2, 2.7), "bet365": (2.62, 3.3, 2.7)
}  # fmt: skip


def market(
    name: str, outcomes: tuple[str, ...], odds: Mapping[str, tuple[float, ...]], *, line: float | None = None,
    sport: str = "basketball", league: str = "nba",
) -> MarketPrices:  # fmt: skip
    """Return the prices of a market, all seen at once.

    Examples
    --------
    >>> market("moneyline", ("home", "away"), {"pinnacle": (1.9, 2.0)}).odds
    {'pinnacle': (1.9, 2.0)}
    """
    seen = dict.fromkeys(odds, _AT)
    return MarketPrices(
        name, outcomes, league, _AT, _START, odds, seen, sport, line=line, event="e1", home="A", away="B"
    )


FAIR_MARKETS: tuple[MarketPrices, ...] = (
    market("moneyline", ("home", "away"), _TWO),
    market("moneyline", ("home", "away"), {"pinnacle": (1.01, 21.0), "circa": (1.02, 19.0), "fanduel": (1.01, 26.0)}),
    market("moneyline", ("home", "away"), {"pinnacle": (1.9, 2.0)}),
    market("moneyline", ("home", "away"), {}),
    market("moneyline", ("home", "away"), {f"book{at}": (1.8 + at / 100, 2.1 - at / 100) for at in range(30)}),
    market("moneyline", ("home", "away"), {"a": (2.1, 2.1), "b": (1.8, 1.9), "c": (1.85, 1.85)}),
    market("spread", ("home", "away"), _TWO, line=-2.5),
    market("total", ("over", "under"), _TWO, line=221.5),
    market("moneyline_3way", ("home", "draw", "away"), _THREE, sport="soccer", league="england_premier_league"),
)
"""Usual markets, and those at the edges: of one book, of none, of thirty, with margins below 0, with a favourite."""


def answers_are_probabilities(method: Method, markets: Sequence[MarketPrices] = FAIR_MARKETS) -> None:
    """Each answer is None, or probabilities above 0 and below 1 that sum to 1, of each outcome, in under a second."""
    answered = 0
    for prices in markets:
        answered += _ask(method, prices) is not None
    if not answered:
        raise AssertionError(f"it must have an answer to some of the {len(markets)} markets, it has none")


def _ask(method: Method, prices: MarketPrices) -> list[float] | None:
    calls = Calls(method)
    answer = calls.ask(prices)
    if calls.failures:
        raise AssertionError(f"{prices.market} with prices of {len(prices.odds)} books: {calls.said()}")
    return None if answer is None else answer[0].tolist()


def it_is_pure(method: Method, markets: Sequence[MarketPrices] = FAIR_MARKETS) -> None:
    """It answers the same prices alike, whatever it was asked before, and changes nothing that it gets."""
    given = copy.deepcopy(list(markets))
    first = [_ask(method, prices) for prices in given]
    if given != list(markets):
        raise AssertionError("it must not change the prices that it gets")
    again = [_ask(method, prices) for prices in reversed(given)]
    for prices, one, other in zip(markets, first, reversed(again), strict=True):
        _same(prices, one, other, "the same prices a second time")


def order_does_not_matter(method: Method, markets: Sequence[MarketPrices] = FAIR_MARKETS) -> None:
    """The order of books changes nothing, and that of outcomes only the order of probabilities."""
    for prices in markets:
        first = _ask(method, prices)
        books = prices._replace(odds=_turned(prices.odds), seen=_turned(prices.seen))
        _same(prices, first, _ask(method, books), "its books in another order")
        turned = prices._replace(
            outcomes=prices.outcomes[::-1], odds={book: odds[::-1] for book, odds in prices.odds.items()}
        )
        other = _ask(method, turned)
        _same(prices, first, None if other is None else other[::-1], "its outcomes in another order")


def _turned(table: Mapping[str, T]) -> dict[str, T]:
    return dict([*table.items()][::-1])


def _same(prices: MarketPrices, one: Any, other: Any, what: str) -> None:
    same = (one is None) == (other is None) and all(
        abs(a - b) <= _CLOSE for a, b in zip(one or (), other or (), strict=True)
    )
    if not same:
        raise AssertionError(f"{prices.market} with {what} must have the same answer, got {one} and {other}")


FAIR_CHECKS: tuple[Callable[[Method], None], ...] = (answers_are_probabilities, it_is_pure, order_does_not_matter)
"""All of them, for `pytest.mark.parametrize`."""
