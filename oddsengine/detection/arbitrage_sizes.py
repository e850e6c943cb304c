"""The largest size of arbitrages between prices with levels (`oddsengine.tables.levels`).

Sizes are in the currency of each book, which the catalog has for exchanges; one that is not known is taken for that of
the other legs. Sizes in different currencies are only compared at the caller's rates. A USDC counts as a USD.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from oddsengine import catalog
from oddsengine.bounds import check_number, excerpt
from oddsengine.catalog.books import CURRENCIES
from oddsengine.maths.depth import largest_arbitrage
from oddsengine.pricing.references import commission_rates
from oddsengine.tables.levels import COMMISSION, FEE, LEVELS

_SAME = 1.0 + 1e-9
_READ = ("sportsbook", "odds_decimal", "max_bet", LEVELS, COMMISSION, FEE)  # fields of a leg
_RATES = {"USD": 1.0, "USDC": 1.0}


class LargestSize(NamedTuple):
    """The largest size of an arbitrage; None if it is not known."""

    stakes: list[float] | None = None  # of the legs
    payout: float | None = None
    profit: float | None = None
    currency: str | None = None  # of these amounts, if it is known


def largest_arbitrages(
    found: pl.DataFrame, *, commission: Mapping[str, float] | None = None, rates: Mapping[str, float] | None = None
) -> pl.DataFrame:
    """Add the largest size of arbitrages over all levels of their legs' prices.

    Parameters
    ----------
    found
        The result of `find_arbitrage`. Of a leg without `levels`, `max_bet` is the only level; without either, its size
        is unknown, and so is that of the arbitrage.
    commission
        As given to `find_arbitrage`.
    rates
        Worth of one unit of each currency in the first one, whose rate is 1: ``{"USD": 1, "GBP": 1.27}``. Sizes in
        several currencies are unknown without it.

    Returns
    -------
    polars.DataFrame
        `found` with `largest_stakes` (of the legs, in their order), `largest_payout` and `largest_profit`, all in
        `largest_currency`: that of the legs, or if they have several the first one of `rates`; null if it is unknown.

    Raises
    ------
    ValueError
        For a commission or a rate that is none.

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
    own = {catalog.book(book).id: rate for book, rate in commission_rates(commission).items()}
    worth = currency_rates(rates)
    held = [name for name in _READ if name in {field.name for field in found.schema["legs"].inner.fields}]  # type: ignore[attr-defined]
    legs = found["legs"].list.eval(pl.struct(pl.element().struct.field(name) for name in held))
    sizes = [
        largest_of_legs(each, own, worth, live=live)
        for each, live in zip(legs.to_list(), found["is_live"].to_list(), strict=True)
    ]
    schema: dict[str, Any] = {
        "largest_stakes": pl.List(pl.Float64),
        "largest_payout": pl.Float64,
        "largest_profit": pl.Float64,
        "largest_currency": pl.String,
    }
    return found.with_columns(pl.DataFrame(sizes, schema=schema, orient="row"))


def currency_rates(rates: Mapping[str, float] | None) -> Mapping[str, float]:
    """Validate the rates of currencies; the first one has the rate 1."""
    if rates is None:
        return _RATES
    if not isinstance(rates, Mapping):
        raise ValueError(f"rates must be a rate by currency, such as {{'USD': 1, 'GBP': 1.27}}, got {excerpt(rates)}")
    for name, rate in rates.items():
        if name not in CURRENCIES:
            raise ValueError(f"rates must be of {', '.join(CURRENCIES)}, got {excerpt(name)}")
        check_number(f"the rate of {name}", rate, above=0.0)
    if next(iter(rates.values()), 1.0) != 1.0:
        raise ValueError(f"the first of rates must be 1, got {excerpt(dict(rates))}")
    worth = {name: float(rate) for name, rate in rates.items()}
    dollar = worth.get("USD", worth.get("USDC"))
    return worth if dollar is None else worth | {name: worth.get(name, dollar) for name in ("USD", "USDC")}


def largest_of_legs(
    legs: Iterable[Mapping[str, Any]],
    commissions: Mapping[str, float],
    rates: Mapping[str, float] = _RATES,
    *,
    live: bool = False,
) -> LargestSize:
    """The largest arbitrage of some legs.

    `commissions` are the caller's, by id of the book; `rates` are from `currency_rates`; `live`: they are in play.
    """
    listed = list(legs)
    books = [catalog.book(leg["sportsbook"]) for leg in listed]
    named = list(dict.fromkeys(book.currency for book in books if book.currency))
    worth = dict.fromkeys(["", *named], 1.0)
    if len(named) > 1:
        if any(name not in rates for name in named):
            return LargestSize()
        worth |= {name: rates[name] for name in named}
        named = [next(iter(rates))]
    ladders, shares, fees = [], [], []
    for leg, book in zip(listed, books, strict=True):
        most = leg["odds_decimal"] * _SAME  # a level that is better contradicts the price
        levels = [level for level in leg.get(LEVELS) or () if level["odds_decimal"] <= most]
        ladder = [(level["odds_decimal"], level["stake"] * worth[book.currency]) for level in levels]
        if not ladder and leg["max_bet"] is not None:
            ladder = [(leg["odds_decimal"], leg["max_bet"] * worth[book.currency])]
        if not ladder:
            return LargestSize()
        own, fee = leg.get(COMMISSION), leg.get(FEE)
        share, fee = book.commission if own is None else own, book.contract_fee(live=live) if fee is None else fee
        if book.id in commissions:
            share, fee = commissions[book.id], 0.0
        ladders.append(ladder)
        shares.append(share)
        fees.append(fee)
    best = largest_arbitrage(ladders, commissions=shares, fees=fees)
    return LargestSize(list(best.stakes), best.payout, best.profit, named[0] if named else None)
