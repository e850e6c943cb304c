"""Columns that a table of odds may have for prices of exchanges: levels, fees, and what stakes a venue accepts.

- `levels`: a list of structs `odds_decimal` and `stake`, what each level takes before fees, in any order; or text
  such as ``2.2:100 2.16:200``. `odds_decimal` of the row is the best level, and `max_bet` what that one takes.
- `commission`: share of the winnings that is kept, 0.02 for 2 %.
- `contract_fee`: F of a fee of F p (1 - p) per contract, 0.07 for 0.07 p (1 - p).
- `min_bet`: the smallest stake that is accepted, before fees, in the money of `max_bet`.
- `bet_step`: stakes are whole multiples of this, before fees; of contracts, the price of one.
- `bet_delay`: seconds between a bet and its acceptance, in play.

Empty values of `commission` and `contract_fee` mean the fees of the book in the catalog, of the others that they are
not known. On a live board all are texts.
"""

from collections.abc import Iterable, Mapping
from math import nextafter
from typing import Any, NamedTuple

import polars as pl

from oddsengine.columns import Floats, Longs

LEVELS, COMMISSION, FEE = "levels", "commission", "contract_fee"
MIN_BET, BET_STEP, BET_DELAY = BET_RULES = "min_bet", "bet_step", "bet_delay"
LEVELS_TYPE = pl.List(pl.Struct({"odds_decimal": pl.Float64(), "stake": pl.Float64()}))
MOST_LEVELS = 100
"""Maximum number of levels of a price."""
MOST_STAKE = 1e12
"""Largest stake of a level, smallest stake or step."""
MOST_DELAY = 3600.0
"""Largest delay, in seconds."""
_LIMITS = {  # the smallest and the largest value
    COMMISSION: (0.0, nextafter(1.0, 0.0)), FEE: (0.0, 1.0), MIN_BET: (0.0, MOST_STAKE),
    BET_STEP: (nextafter(0.0, 1.0), MOST_STAKE), BET_DELAY: (0.0, MOST_DELAY),
}  # fmt: skip
DEPTH_SCHEMA: dict[str, pl.DataType] = {LEVELS: LEVELS_TYPE} | dict.fromkeys(_LIMITS, pl.Float64())
BAD_LEVELS = (
    f"not up to {MOST_LEVELS} levels, each with odds_decimal above 1 and a stake from 0 to {MOST_STAKE:g}, as structs "
    "or as text such as 2.2:100 2.16:200"
)
BAD_NUMBERS = {
    COMMISSION: "not from 0 to below 1", FEE: "not from 0 to 1", MIN_BET: f"not from 0 to {MOST_STAKE:g}",
    BET_STEP: f"not above 0, up to {MOST_STAKE:g}", BET_DELAY: f"not from 0 to {MOST_DELAY:g} seconds",
}  # fmt: skip
_FIELDS = ("odds_decimal", "stake")


class FlatLevels(NamedTuple):
    """Levels of several prices, one after the other."""

    at: Longs  # place of the price, ascending
    odds: Floats
    stake: Floats

    @classmethod
    def of_column(cls, levels: pl.Series) -> "FlatLevels":
        """Those of a column of the type `LEVELS_TYPE`."""
        flat = _exploded(levels).unnest("level")
        return cls(flat["at"].to_numpy(), *(flat[name].to_numpy() for name in _FIELDS))


def read_levels(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Read a column of levels: in the type `LEVELS_TYPE`, null where there are none, and where they are not valid."""
    inner = getattr(column.dtype, "inner", None)
    structs = isinstance(column.dtype, pl.List) and isinstance(inner, pl.Struct)
    if column.dtype == pl.Null or (isinstance(column.dtype, pl.List) and inner == pl.Null):
        return pl.Series(column.name, [None] * column.len(), LEVELS_TYPE), column.is_null() & False
    if structs and {field.name for field in inner.fields} >= {*_FIELDS}:  # type: ignore[union-attr]
        flat = _exploded(column).with_columns(pl.col("level").struct.field(name) for name in _FIELDS)
        flat = flat.with_columns(pl.col("level").is_null().alias("lost"))
    elif column.dtype == pl.String:
        flat = _exploded(column.str.strip_chars().str.split(" ").list.eval(pl.element().filter(pl.element() != "")))
        parts = pl.col("level").str.split_exact(":", 2).struct.rename_fields([*_FIELDS, "more"])
        flat = flat.with_columns(parts.alias("parts")).unnest("parts")
        flat = flat.with_columns(pl.col("more").is_not_null().alias("lost"))
    else:
        return pl.Series(column.name, [None] * column.len(), LEVELS_TYPE), column.is_not_null()
    odds, stake = (pl.col(name).cast(pl.Float64, strict=False) for name in _FIELDS)
    fine = odds.is_finite() & (odds > 1.0) & stake.is_between(0.0, MOST_STAKE) & ~pl.col("lost")
    grouped = (
        flat.with_columns(odds, stake)
        .group_by("at", maintain_order=True)
        .agg(pl.struct(_FIELDS).alias(LEVELS), (~fine.fill_null(False).all() | (pl.len() > MOST_LEVELS)).alias("bad"))  # noqa: FBT003
    )
    both = pl.DataFrame({"at": pl.int_range(column.len(), eager=True)}).join(
        grouped, "at", how="left", maintain_order="left"
    )
    bad = both["bad"].fill_null(False)  # noqa: FBT003
    return both[LEVELS].zip_with(~bad, pl.Series([None], dtype=LEVELS_TYPE)).alias(column.name), bad


def _exploded(column: pl.Series) -> pl.DataFrame:
    """Each level of each price; none of prices without levels."""
    some = pl.DataFrame({"at": pl.int_range(column.len(), eager=True), "level": column})
    return some.filter(pl.col("level").list.len() > 0).explode("level")


def bad_numbers(name: str, column: pl.Series) -> pl.Series:
    """Where a column of numbers is not valid."""
    return ~column.is_between(*_LIMITS[name]).fill_null(True)  # noqa: FBT003


def valid_numbers(numbers: Iterable[float | None]) -> bool:
    """Whether the numbers of one price, in the order of their columns, are valid."""
    limits = zip(numbers, _LIMITS.values(), strict=True)
    return all(number is None or least <= number <= most for number, (least, most) in limits)


def most_of_levels(table: pl.DataFrame) -> pl.Series:
    """What all levels of each price take together; of prices without levels, `max_bet`."""
    stakes = pl.col(LEVELS).list.eval(pl.element().struct.field("stake")).list.sum()
    return table.select(pl.when(pl.col(LEVELS).is_not_null()).then(stakes).otherwise("max_bet")).to_series()


def levels_text(levels: Iterable[Any] | None) -> str:
    """Levels as text, from mappings or pairs; empty if there are none.

    Examples
    --------
    >>> levels_text([{"odds_decimal": 2.2, "stake": 100.0}, (2.16, 200)])
    '2.2:100.0 2.16:200'
    """
    parts = []
    for level in levels or ():
        odds, stake = (level.get(name) for name in _FIELDS) if isinstance(level, Mapping) else level
        parts.append(f"{odds}:{stake}")
    return " ".join(parts)


def levels_of_text(text: str) -> list[tuple[float, float]]:
    """Odds and stakes of levels as text.

    Examples
    --------
    >>> levels_of_text("2.2:100.0 2.16:200")
    [(2.2, 100.0), (2.16, 200.0)]
    """
    out = []
    for part in text.split():
        odds, _, stake = part.partition(":")
        out.append((float(odds), float(stake)))
    return out
