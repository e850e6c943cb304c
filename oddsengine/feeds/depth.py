"""Levels of the prices of exchanges, as quotes carry them (`oddsengine.tables.levels`)."""

from collections.abc import Iterable
from typing import Any

_MOST = 10
"""Levels of a price that are kept."""


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
