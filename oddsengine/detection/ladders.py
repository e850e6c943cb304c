"""Prices with depth: every price of a table for a stake, and the largest size of arbitrages.

The optional column `levels` has the levels of a price, a list of structs `odds_decimal` and `stake`: what each level
takes, before commission. `odds_decimal` of the row is the best level, and `max_bet` what that one takes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.columns import Floats, Longs
from oddsengine.maths.depth import largest_arbitrage, walk
from oddsengine.pricing.references import commission_rates
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.schema import OddsError, named

LEVELS = "levels"
_FIELDS = ("odds_decimal", "stake")


def for_stake(odds: IntoFrame, stake: float | None, commission: Mapping[str, float] | None = None) -> IntoFrame:
    """Price a table for a stake: what each ladder pays for it, after commission, as one price.

    Where a ladder takes less than the stake, the price is that of all of it. `max_bet` becomes what the ladder takes.
    Rows without levels stay as they are. None as the stake changes nothing.

    Raises `ValueError` for a stake that is not above 0, `OddsError` for a level that is none.
    """
    if stake is None:
        return odds
    if isinstance(stake, bool) or not isinstance(stake, int | float) or not 0.0 < stake < np.inf:
        raise ValueError(f"stake must be None or a finite amount above 0, got {stake!r}")
    table = named(to_polars(odds))
    if LEVELS not in table.columns:
        return table
    at, odds_of, size = _flat(table[LEVELS])
    rate, fee = _charges(table["sportsbook"].cast(pl.String), commission)
    found = walk(at, odds_of, size, stake, rate[at], fee[at])
    priced = found.stake > 0.0
    row = found.ladder[priced]
    odds_new, limit = np.full((2, table.height), np.nan)
    odds_new[row] = _before_charges(found.payout[priced] / found.stake[priced], rate[row], fee[row])
    limit[row] = found.room[priced]
    new = pl.Series(odds_new, nan_to_null=True)
    columns = {"odds_decimal": pl.coalesce(new, "odds_decimal" if "odds_decimal" in table.columns else pl.lit(None))}
    known = pl.col("max_bet").cast(pl.Float64) if "max_bet" in table.columns else pl.lit(None, pl.Float64)
    columns["max_bet"] = pl.coalesce(pl.Series(limit, nan_to_null=True), known)
    if "odds_american" in table.columns:  # of the best level, so it would contradict
        columns["odds_american"] = pl.when(new.is_null()).then(pl.col("odds_american"))
    return table.with_columns(**columns)


def _flat(levels: pl.Series) -> tuple[Longs, Floats, Floats]:
    """Row, odds and stake of every level."""
    inner = getattr(levels.dtype, "inner", None)
    if not isinstance(levels.dtype, pl.List) or not isinstance(inner, pl.Struct):
        raise OddsError(f"levels must be lists of structs with odds_decimal and stake, got {levels.dtype}")
    names = [field.name for field in inner.fields]
    if missing := [name for name in _FIELDS if name not in names]:
        raise OddsError(f"levels must have the fields odds_decimal and stake; {', '.join(missing)} is missing")
    flat = pl.DataFrame({"at": pl.int_range(levels.len(), eager=True), "level": levels}).explode("level")
    flat = flat.drop_nulls("level").unnest("level")
    odds, stake = (flat[name].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy() for name in _FIELDS)
    at = flat["at"].to_numpy()
    wrong = ~((odds > 1.0) & (odds < np.inf) & (stake >= 0.0) & (stake < np.inf))
    if wrong.any():
        first = int(wrong.argmax())
        raise OddsError(
            f"levels of row {at[first] + 1}: odds_decimal must be above 1 and stake at least 0, "
            f"got {odds[first]:g} and {stake[first]:g}"
        )
    return at, odds, stake


def _charges(books: pl.Series, commission: Mapping[str, float] | None) -> tuple[Floats, Floats]:
    """Commission and fee of each row."""
    own = {catalog.book(name).id: rate for name, rate in commission_rates(commission).items()}
    known = {}
    for name in books.unique().to_list():
        book = catalog.book(name or "")
        known[name] = (own[book.id], 0.0) if book.id in own else (book.commission, book.fee)
    pairs = np.array([known[name] for name in books.to_list()], np.float64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _before_charges(net: Floats, rate: Floats, fee: Floats) -> Floats:
    """Odds that are `net` after commission and fee: the inverse of `charged`."""
    q = 1.0 / net
    # p + F p (1 - p) = q: the smaller root
    root = (1.0 + fee) ** 2 - 4.0 * fee * q
    with np.errstate(all="ignore"):
        p = np.where(fee > 0.0, (1.0 + fee - np.sqrt(np.maximum(root, 0.0))) / (2.0 * np.where(fee > 0.0, fee, 1.0)), q)
    return np.asarray(1.0 + (1.0 / p - 1.0) / (1.0 - rate))


def largest_arbitrages(
    found: pl.DataFrame, odds: IntoFrame, *, commission: Mapping[str, float] | None = None
) -> pl.DataFrame:
    """Add the largest size of arbitrages over all levels of their legs' prices.

    Parameters
    ----------
    found
        The result of `find_arbitrage`.
    odds
        The table that it was found in. Of a price without `levels`, `max_bet` is the only level; without either, its
        size is unknown, and so is that of the arbitrage.
    commission
        As given to `find_arbitrage`.

    Returns
    -------
    polars.DataFrame
        `found` with `largest_stakes` (of the legs, in their order), `largest_payout` and `largest_profit`, in money.

    Examples
    --------
    >>> levels = [[(2.20, 100), (2.16, 200), (2.10, 500)], [(1.90, 80), (1.88, 150), (1.85, 400)]]
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1", "market_type": "total_points", "line": 220.5, "sportsbook": ["x1", "x2"],
    ...         "selection": ["Over", "Under"], "odds_decimal": [2.20, 1.90],
    ...         "levels": [[{"odds_decimal": d, "stake": s} for d, s in side] for side in levels],
    ...     }
    ... )
    >>> from oddsengine.detection.finders import find_arbitrage
    >>> found = largest_arbitrages(find_arbitrage(odds), odds)
    >>> found.select(pl.col("largest_payout", "largest_profit").round(2)).row(0)
    (434.0, 4.93)
    """
    table = named(to_polars(odds))
    own = table["row"].to_list() if "row" in table.columns else range(1, table.height + 1)
    at = {row: place for place, row in enumerate(own)}
    levels: dict[int, list[tuple[float, float]]] = {}
    if LEVELS in table.columns:
        for place, price, size in zip(*(column.tolist() for column in _flat(table[LEVELS])), strict=True):
            levels.setdefault(place, []).append((price, size))
    rate, fee = _charges(table["sportsbook"].cast(pl.String), commission)
    sizes = [_largest(legs, at, levels, rate, fee) for legs in found["legs"].to_list()]
    schema: dict[str, Any] = {
        "largest_stakes": pl.List(pl.Float64),
        "largest_payout": pl.Float64,
        "largest_profit": pl.Float64,
    }
    return found.hstack(pl.DataFrame(sizes, schema=schema, orient="row"))


def _largest(
    legs: Iterable[Mapping[str, Any]], at: Mapping[int, int], levels: Mapping[int, list[tuple[float, float]]],
    rate: Floats, fee: Floats,
) -> tuple[list[float] | None, float | None, float | None]:  # fmt: skip
    ladders, places = [], []
    for leg in legs:
        place = at[leg["row"]]
        single = [] if leg["max_bet"] is None else [(leg["odds_decimal"], leg["max_bet"])]
        ladders.append(levels.get(place) or single)
        places.append(place)
    if not all(ladders):
        return None, None, None
    best = largest_arbitrage(ladders, commissions=rate[places].tolist(), fees=fee[places].tolist())
    return list(best.stakes), best.payout, best.profit
