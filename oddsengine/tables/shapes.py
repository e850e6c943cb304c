"""What the shapes of tables have in common: the author's words, the result, and the columns of prices and lines."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import polars as pl

from oddsengine.tables.casts import is_empty
from oddsengine.tables.column_names import AMERICAN, ANY_FORMAT, DECIMAL, place

SOURCE_ROW, SOURCE_COLUMN = "source_row", "source_column"
PRICES = (DECIMAL, AMERICAN, ANY_FORMAT)
TEXTS = (pl.String, pl.Categorical, pl.Enum)
SELECTIONS = {"draw": "Draw", "over": "Over", "under": "Under", "yes": "Yes", "no": "No"}
"""Selections by side; those of teams are their names."""
SPREADS = ("spread", "spread line", "line", "handicap", "asian handicap", "hcap", "hcp", "ah", "runline", "puckline")
"""Plain names of columns with the line of a spread that do not say whose it is."""


class Long(NamedTuple):
    """A table with a row per price, and what its columns were taken for."""

    frame: pl.DataFrame
    taken: dict[str, str]  # by column of the table, in its words
    rows: bool  # whether rows are those of the table


class Words(NamedTuple):
    """How the author of a table calls its columns and rows."""

    names: Mapping[str, str]  # by the names that the columns have now
    first_line: int | None = None
    position: pl.Series | None = None  # of each row in the input; None: in order

    def __call__(self, name: str) -> str:
        """Return the author's name of a column."""
        return self.names.get(name, name)

    def place(self, row: int) -> str:
        """Name a row."""
        return place(row if self.position is None else int(self.position[row]), self.first_line)

    def listed(self, names: Iterable[str]) -> str:
        """Name columns."""
        quoted = [repr(self(name)) for name in names]
        return f"the column{'s' if len(quoted) > 1 else ''} {' and '.join(quoted)}"


def numbered(frame: pl.DataFrame) -> pl.DataFrame:
    """Number the rows of a table, from 0."""
    return frame.with_row_index(SOURCE_ROW)


def as_given(frame: pl.DataFrame, name: str) -> pl.Expr:
    """A column of prices: numbers, or text."""
    return pl.col(name) if frame.schema[name].is_numeric() else pl.col(name).cast(pl.String)


def stacked(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Join the prices of all columns in the order of the table's rows, without those that are missing."""
    long = pl.concat(parts, how="diagonal_relaxed").sort(SOURCE_ROW, maintain_order=True)
    empty = pl.Series([True]).new_from_index(0, long.height)
    for name in PRICES:
        if name in long.columns:
            empty &= is_empty(long[name])
    return long.filter(~empty)


def line_number(name: str) -> pl.Expr:
    """A line as a number; what is none is null, and rejected as missing."""
    text = pl.col(name).cast(pl.String).str.strip_chars().str.replace(",", ".", literal=True)
    text = text.str.replace("\u2212", "-", literal=True).str.replace("\u00bd", ".5", literal=True)
    return text.str.replace(r"(?i)^(pk|pick|pickem)$", "0").cast(pl.Float64, strict=False)


def plain(name: str) -> str:
    """Write a name in lower case with single spaces."""
    return re.sub(r"[\s_.\-]+", " ", name).strip().casefold()
