"""The largest size of arbitrages between prices with levels (`oddsengine.tables.levels`)."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from oddsengine import catalog
from oddsengine.maths.depth import largest_arbitrage
from oddsengine.pricing.references import commission_rates
from oddsengine.tables.levels import COMMISSION, FEE, LEVELS


def largest_arbitrages(found: pl.DataFrame, *, commission: Mapping[str, float] | None = None) -> pl.DataFrame:
    """Add the largest size of arbitrages over all levels of their legs' prices.

    Parameters
    ----------
    found
        The result of `find_arbitrage`. Of a leg without `levels`, `max_bet` is the only level; without either, its size
        is unknown, and so is that of the arbitrage.
    commission
        As given to `find_arbitrage`.

    Returns
    -------
    polars.DataFrame
        `found` with `largest_stakes` (of the legs, in their order), `largest_payout` and `largest_profit`, in money.

    Examples
    --------
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1", "market_type": "total_points", "line": 220.5, "sportsbook": ["x1", "x2"],
    ...         "selection": ["Over", "Under"], "odds_decimal": [2.20, 1.90],
    ...         "levels": ["2.20:100 2.16:200 2.10:500", "1.90:80 1.88:150 1.85:400"],
    ...     }
    ... )
    >>> from oddsengine.detection.finders import find_arbitrage
    >>> found = largest_arbitrages(find_arbitrage(odds))
    >>> found.select(pl.col("largest_payout", "largest_profit").round(2)).row(0)
    (434.0, 4.93)
    """
    rates = {catalog.book(book).id: rate for book, rate in commission_rates(commission).items()}
    sizes = [largest_of_legs(legs, rates) for legs in found["legs"].to_list()]
    schema: dict[str, Any] = {
        "largest_stakes": pl.List(pl.Float64),
        "largest_payout": pl.Float64,
        "largest_profit": pl.Float64,
    }
    return found.hstack(pl.DataFrame(sizes, schema=schema, orient="row"))


def largest_of_legs(
    legs: Iterable[Mapping[str, Any]], rates: Mapping[str, float]
) -> tuple[list[float] | None, float | None, float | None]:
    """Stakes, payout and profit of the largest arbitrage of some legs; None if the size of any is unknown.

    `rates` are the caller's commissions by id of the book.
    """
    ladders, commissions, fees = [], [], []
    for leg in legs:
        levels = leg.get(LEVELS) or []
        ladder = [(level["odds_decimal"], level["stake"]) for level in levels]
        if not ladder and leg["max_bet"] is not None:
            ladder = [(leg["odds_decimal"], leg["max_bet"])]
        if not ladder:
            return None, None, None
        book = catalog.book(leg["sportsbook"])
        own, fee = leg.get(COMMISSION), leg.get(FEE)
        commission, fee = book.commission if own is None else own, book.fee if fee is None else fee
        if book.id in rates:
            commission, fee = rates[book.id], 0.0
        ladders.append(ladder)
        commissions.append(commission)
        fees.append(fee)
    best = largest_arbitrage(ladders, commissions=commissions, fees=fees)
    return list(best.stakes), best.payout, best.profit
