"""The levels of an exchange's price, from its order book: what can be backed, and what a lay of the other side is.

A ladder is a list of decimal odds and the stake that each takes, best first. The best level is the price of a row and
`max_bet` its stake; `levels` has the best of them (`oddsengine.tables.levels`). The two sides of a market of two are
often the same orders, shown twice, so a ladder and a crossed one are never added: the one with the better price counts.
"""

from collections import Counter
from collections.abc import Iterable
from math import inf
from typing import Any

from oddsengine import catalog
from oddsengine.maths.depth import lay_to_back

Ladder = list[tuple[float, float]]
_INVALID = "a level of an order book that is not valid"
_MOST = 10  # levels of a price that are kept


def levels_of(bets: Iterable[tuple[float, float]]) -> dict[str, Any]:
    """The field `levels` of a quote, from odds and stakes in any order; nothing if there is only one level.

    Examples
    --------
    >>> levels_of([(2.0, 50.0), (2.1, 10.0)])
    {'levels': [{'odds_decimal': 2.1, 'stake': 10.0}, {'odds_decimal': 2.0, 'stake': 50.0}]}
    >>> levels_of([(2.0, 50.0)])
    {}
    """
    best = sorted(bets, reverse=True)[:_MOST]
    if len(best) <= 1:
        return {}
    return {"levels": [{"odds_decimal": odds, "stake": stake} for odds, stake in best]}


def own_fee(book: str, fee: float) -> dict[str, Any]:
    """The field `contract_fee` of a quote; nothing if it is what its book always charges.

    Examples
    --------
    >>> own_fee("kalshi", 0.035), own_fee("kalshi", 0.07)
    ({'contract_fee': 0.035}, {})
    """
    known = catalog.book(book)
    usual = {known.contract_fee(live=False), known.contract_fee(live=True)}
    return {} if usual == {fee} else {"contract_fee": fee}


def ladder(levels: Iterable[tuple[float | None, float | None]], refused: Counter[str]) -> Ladder:
    """Return a ladder of back prices, from levels in any order; stakes at the same odds are added.

    Examples
    --------
    >>> ladder([(1.9, 10.0), (2.0, 5.0), (1.9, 20.0)], Counter())
    [(2.0, 5.0), (1.9, 30.0)]
    """
    taken: dict[float, float] = {}
    for odds, stake in levels:
        if odds is None or stake is None or not (1.0 < odds < inf and 0.0 <= stake < inf):
            refused[_INVALID] += 1
        elif stake > 0.0:
            taken[odds] = taken.get(odds, 0.0) + stake
    return sorted(taken.items(), reverse=True)


def crossed(lays: Ladder) -> Ladder:
    """Return what lay prices of one side are for the other; what is not the price of a bet is left out.

    Examples
    --------
    >>> crossed([(3.0, 10.0), (1.5, 8.0)])
    [(3.0, 4.0), (1.5, 20.0)]
    """
    bets = (lay_to_back(odds, stake) for odds, stake in lays)
    return sorted((bet for bet in bets if bet[0] > 1.0 and bet[1] < inf), reverse=True)


def better(own: Ladder, other: Ladder) -> Ladder:
    """Return the ladder whose best price is better.

    Examples
    --------
    >>> better([(1.9, 10.0)], [(1.95, 1.0)]), better([(1.9, 10.0)], [])
    ([(1.95, 1.0)], [(1.9, 10.0)])
    """
    return max(own, other, key=lambda levels: levels[0] if levels else (0.0, 0.0))


def price_of(levels: Ladder) -> dict[str, Any]:
    """Return the fields of a row whose price is a ladder of at least one level.

    Examples
    --------
    >>> price_of([(2.0, 5.0), (1.9, 30.0)])["max_bet"]
    5.0
    """
    odds, stake = levels[0]
    return {"odds_decimal": odds, "max_bet": stake} | levels_of(levels)
