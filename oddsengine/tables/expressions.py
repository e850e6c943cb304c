"""Polars expressions over columns of odds: `pl.col("odds").odds`.

Importing `oddsengine` registers the namespace. Each method corresponds to a function of this package and gives the same
numbers, with null instead of nan.

=================================  ==========================================================================
expression                         function
=================================  ==========================================================================
`implied()`                        `decimal_to_probability`
`to_american()`                    `decimal_to_american`
`from_american()`                  `american_to_decimal`
`edge(prob)`                       `maths.value.edge`
`kelly(prob, fraction)`            `kelly`
`hold(by)`, `devig(method, by)`    `hold`, `devig_groups`: of a row's market
=================================  ==========================================================================

All but the last line are native polars expressions. A market is the rows with equal columns `by`; without `by`, the
whole column. Rows of a market need not be adjacent, but it is faster if they are. `hold` and `devig` call Python once
for the whole column, not once per market: rows are grouped by the 64-bit hash of their keys, and keys with equal hashes
are compared.

Results are named after the column of odds. In a column of decimal odds, a price of -100 or less is American and becomes
null; if there is one (in the group, under `over` and `agg`), whole prices of 100 or more count as American too, as in
`check_odds`. A column of positive American prices only cannot be told apart from decimal odds.

`.devig().over("event")` is the same as `.devig(by="event")`. With another expression in between, such as
`.devig().alias("p").over("event")`, polars calls Python once per group, which is a thousand times slower.
"""

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import polars as pl

from oddsengine._jit import allocating, kernel
from oddsengine.bounds import check_number, excerpt
from oddsengine.columns import Floats, Ints, Longs, Words
from oddsengine.maths.devig import Method, devig_groups, method_name
from oddsengine.maths.odds import probabilities

IntoExpr = pl.Expr | str | float
By = pl.Expr | str | Iterable[pl.Expr | str] | None
_CODED = (pl.Categorical, pl.Enum)
_PerMarket = Callable[[Floats, Longs], Floats]  # prices market by market and offsets -> a number per row


@kernel
@allocating
def _cut(hashes: Words, market: Ints, first: Longs, late_rows: Ints) -> tuple[int, int]:
    """Number the markets of rows by first appearance of their hash, and return the `first` row of each.

    Rows that continue a market after other rows go into `late_rows`. Returns the number of markets and of such rows.
    Without room for `market`, stops at the first such row. A table entry has half of a hash and, below it, a market
    number from 1.

    `hashes` are those of the rows.
    """
    n, runs = hashes.size, 1
    for i in range(1, n):
        runs += hashes[i] != hashes[i - 1]
    size = 4
    while size < 4 * runs:
        size *= 2
    table, low = np.zeros(size, np.uint64), np.uint64(0xFFFFFFFF)
    markets, n_late, m = 0, 0, np.int32(0)
    for i in range(n):
        if i == 0 or hashes[i] != hashes[i - 1]:
            mixed_hash = hashes[i] * np.uint64(0x9E3779B97F4A7C15)
            at = np.int64(mixed_hash >> np.uint64(20)) & (size - 1)
            while True:
                entry = table[at]
                if entry == np.uint64(0):
                    first[markets] = i
                    m = np.int32(markets)
                    markets += 1
                    table[at] = (mixed_hash & ~low) | np.uint64(markets)
                    break
                k = np.int64(entry & low) - 1
                if (entry ^ mixed_hash) <= low and hashes[first[k]] == hashes[i]:
                    if not market.size:
                        return markets, 1
                    late_rows[n_late] = i
                    n_late += 1
                    m = np.int32(k)
                    break
                at = (at + 1) & (size - 1)
        if market.size:
            market[i] = m
    return markets, n_late


@kernel
@allocating
def _layout(market: Ints, rows: Longs, offsets: Longs) -> None:
    """Sort rows by `market` into `rows`, keeping their order, and write `offsets` (initially zeros)."""
    for m in market:
        offsets[m + 1] += 1
    for m in range(1, offsets.size):
        offsets[m] += offsets[m - 1]
    place = offsets[:-1].copy()
    for i in range(market.size):
        rows[place[market[i]]] = i
        place[market[i]] += 1


def _markets(keys: Sequence[pl.Series], hashes: Words | None = None) -> tuple[Longs | None, Longs]:
    """Return rows sorted by market, or None if they are already, and the offsets of the markets."""
    coded = (key.to_physical() if key.dtype in _CODED else key for key in keys)
    frame = pl.DataFrame({str(at): key for at, key in enumerate(coded)})
    n = frame.height
    if not n:
        return None, np.zeros(1, np.int64)
    hashes = frame.hash_rows().to_numpy(writable=True) if hashes is None else hashes
    market: Ints = np.empty(0, np.int32)
    again, first = market, np.empty(n + 1, np.int64)
    markets, repeated = _cut(hashes, market, first, again)
    if not repeated:
        first[markets] = n
        return None, first[: markets + 1]
    market, again = np.empty(n, np.int32), np.empty(n, np.int32)
    markets, repeated = _cut(hashes, market, first, again)
    again = again[:repeated]
    if not frame[again].equals(frame[first[market[again]]]):  # two keys have the same hash
        ranks = frame.select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy()
        leaders, of = np.unique(ranks, return_inverse=True)
        market, markets = of.astype(np.int32), leaders.size
    rows, offsets = np.empty(n, np.int64), np.zeros(markets + 1, np.int64)
    _layout(market, rows, offsets)
    return rows, offsets


@kernel
@allocating
def _decimal(prices: Floats) -> Floats:
    """Convert to decimal odds, nan if invalid, including American odds.

    `prices` may be American from -100 on, and then also from 100.
    """
    is_american = False
    for x in prices:
        is_american |= x <= -100.0
    out = np.empty_like(prices)
    for i in range(prices.size):
        x = prices[i]
        is_valid = x > 1.0 and x < np.inf and not (is_american and x >= 100.0 and x == np.round(x))
        out[i] = x if is_valid else np.nan
    return out


def _per_market(function: _PerMarket) -> Callable[[Sequence[pl.Series]], pl.Series]:
    """Wrap a function of markets as a function of columns: odds first, then keys."""

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        odds, *keys = columns
        texts = odds.cast(pl.String) if odds.dtype in _CODED else odds
        # Writable, as it is for several chunks: kernels are compiled for one kind of array.
        prices = _decimal(texts.cast(pl.Float64).fill_null(np.nan).to_numpy(writable=True))
        rows, offsets = _markets(keys) if keys else (None, np.array([0, prices.size]))
        if rows is None:
            out = function(prices, offsets)
        else:
            out = np.empty_like(prices)
            out[rows] = function(prices[rows], offsets)
        return pl.Series(odds.name, out, nan_to_null=True)

    return apply


def _holds(prices: Floats, offsets: Longs) -> Floats:
    """Return the hold of each row's market."""
    if not prices.size:
        return prices
    count = np.diff(offsets)
    total = np.add.reduceat(1.0 / prices, offsets[:-1])
    return np.repeat(np.where(count > 1, total - 1.0, np.nan), count)


class _MarketExpr(pl.Expr):
    """An expression over one market; its `over` evaluates all markets together."""

    _odds: pl.Expr
    _function: _PerMarket

    @classmethod
    def of(cls, odds: pl.Expr, function: _PerMarket) -> "_MarketExpr":
        """Build the expression that treats the whole column as one market."""
        made = cls.__new__(cls)
        made.__dict__.update(_mapped(odds, function, []).__dict__)
        made._odds, made._function = odds, function
        return made

    def over(self, partition_by: Any = None, *more: Any, **options: Any) -> pl.Expr:
        """Evaluate by groups; see `polars.Expr.over`."""
        if partition_by is None or any(value is not None for value in options.values()):
            return super().over(partition_by, *more, **options)
        return _mapped(self._odds, self._function, [*_keys(partition_by), *more])


def _keys(by: By) -> list[pl.Expr | str]:
    if by is None:
        return []
    keys = [by] if isinstance(by, pl.Expr | str) else list(by) if isinstance(by, Iterable) else [by]
    for key in keys:
        if not isinstance(key, pl.Expr | str):
            raise TypeError(f"by must be column names or expressions, got {excerpt(key)}")
    return keys


def _mapped(odds: pl.Expr, function: _PerMarket, keys: Sequence[pl.Expr | str]) -> pl.Expr:
    return pl.map_batches([odds, *keys], _per_market(function), return_dtype=pl.Float64)


def _expr(value: IntoExpr) -> pl.Expr:
    if isinstance(value, pl.Expr | str):
        return pl.col(value) if isinstance(value, str) else value
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"prob must be a column name, an expression or a number, got {excerpt(value)}")
    return pl.lit(float(probabilities(value)))


def _where(valid: pl.Expr, value: pl.Expr) -> pl.Expr:
    """`value` if valid and finite, else null; named after the first column of `value`."""
    return pl.when(valid & value.is_finite()).then(value)


@pl.api.register_expr_namespace("odds")
class OddsExpr:
    """Expressions on a column of odds, `pl.col("odds").odds`; see the module docstring.

    Odds are decimal, except in `from_american`. Invalid prices become null.

    Examples
    --------
    >>> pl.DataFrame({"odds": [1.8, 2.1]}).with_columns(fair=pl.col("odds").odds.devig().round(3)).rows()
    [(1.8, 0.54), (2.1, 0.46)]
    """

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    @property
    def _number(self) -> pl.Expr:
        return self._expr.cast(pl.Float64)

    @property
    def _decimal(self) -> pl.Expr:
        """Decimal odds, null if invalid."""
        d = self._number
        american = (d >= 100.0) & (d == d.round()) & (d <= -100.0).any()
        return pl.when((d > 1.0) & d.is_finite() & ~american).then(d)

    def implied(self) -> pl.Expr:
        """Convert to implied probability, including the margin.

        Examples
        --------
        >>> pl.DataFrame({"odds": [4.0, 1.25, 1.0]}).select(pl.col("odds").odds.implied()).to_series().to_list()
        [0.25, 0.8, None]
        """
        d = self._decimal
        return (d * 0.0 + 1.0) / d

    def to_american(self) -> pl.Expr:
        """Convert to American odds, without rounding.

        Examples
        --------
        >>> pl.DataFrame({"odds": [2.5, 1.5, 2.0]}).select(pl.col("odds").odds.to_american()).to_series().to_list()
        [150.0, -200.0, 100.0]
        """
        win = self._decimal - 1.0
        american = pl.when(win >= 1.0).then(win * 100.0).otherwise(-100.0 / win)
        return _where(american.is_finite(), american)

    def from_american(self) -> pl.Expr:
        """Convert American odds to decimal.

        Examples
        --------
        >>> frame = pl.DataFrame({"american": [150, -200, 50]})
        >>> frame.select(pl.col("american").odds.from_american()).to_series().to_list()
        [2.5, 1.5, None]
        """
        a = self._number
        odds = (a.abs() + 100.0) / pl.when(a > 0.0).then(100.0).otherwise(-a)
        return _where((a.abs() >= 100.0) & a.is_finite() & (odds > 1.0), odds)

    def edge(self, prob: IntoExpr) -> pl.Expr:
        """Compute the edge, the mean profit per unit staked; `prob` is a column name, an expression or a number.

        Examples
        --------
        >>> frame = pl.DataFrame({"odds": [2.0, 2.0], "fair": [0.52, 0.48]})
        >>> frame.select(pl.col("odds").odds.edge("fair").round(4)).to_series().to_list()
        [0.04, -0.04]
        """
        p, d = _expr(prob), self._decimal
        return _where(p.is_between(0.0, 1.0), d * p - 1.0)

    def kelly(self, prob: IntoExpr, fraction: float = 1.0) -> pl.Expr:
        """Compute the Kelly stake as a fraction of the bankroll; `fraction` of full Kelly is above 0 and at most 1.

        Examples
        --------
        >>> frame = pl.DataFrame({"odds": [2.0, 2.0], "fair": [0.55, 0.48]})
        >>> frame.select(pl.col("odds").odds.kelly("fair", fraction=0.5).round(4)).to_series().to_list()
        [0.05, 0.0]
        """
        check_number("fraction", fraction, above=0.0, most=1.0)
        edge = self.edge(prob)
        return edge.clip(lower_bound=0.0) * fraction / (self._decimal - 1.0)

    def hold(self, by: By = None) -> pl.Expr:
        """Compute the hold of each row's market, the sum of implied probabilities minus 1; null for a single row.

        Parameters
        ----------
        by
            Columns that identify a market, by name or as expressions; None: the whole column is one market.

        Examples
        --------
        >>> frame = pl.DataFrame({"market": ["a", "a", "b", "b"], "odds": [2.10, 2.05, 1.91, 1.91]})
        >>> frame.select(pl.col("odds").odds.hold(by="market").round(4)).to_series().to_list()
        [-0.036, -0.036, 0.0471, 0.0471]
        """
        return self._of_market(_holds, by)

    def devig(self, method: Method = "power", by: By = None) -> pl.Expr:
        """De-vig each row's market; null for a market without a solution.

        Each row counts as an outcome, so remove duplicates first (`unique`).

        Parameters
        ----------
        method
            One of `DEVIG_METHODS`, an alias, or weights of several, as in `oddsengine.devig`.
        by
            Columns that identify a market, by name or as expressions; None: the whole column is one market.

        Examples
        --------
        >>> frame = pl.DataFrame({"market": ["a", "b", "a", "b"], "odds": [1.9, 1.5, 1.9, 2.5]})
        >>> frame.select(pl.col("odds").odds.devig(by="market").round(4)).to_series().to_list()
        [0.5, 0.6379, 0.5, 0.3621]
        """
        name = method_name(method)
        return self._of_market(lambda prices, offsets: devig_groups(prices, offsets, name), by)

    def _of_market(self, function: _PerMarket, by: By) -> pl.Expr:
        keys = _keys(by)
        return _mapped(self._expr, function, keys) if keys else _MarketExpr.of(self._expr, function)
