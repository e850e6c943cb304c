"""Rows from columns to bytes: `numbers` for whole columns, and the encoding of opportunities.

Flat kinds are encoded by columns, outside of Python; rows with lists of their own (legs, sides by book) one by one.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import polars as pl

AGES = (
    "oldest_odds_age_seconds", "odds_age_seconds", "possibly_stale", "warnings", "confidence", "confidence_score",
    "quality_score", "timestamp", "ev_low", "ev_high", "ev_error", "prob_positive", "kelly_shrunk",
)  # fmt: skip
"""Fields that time alone changes: numbers, flags, times and lists of texts."""
_AGE = re.compile(rb'"(?:%b)":(?:\[[^\]]*\]|[^,}]*)' % "|".join(AGES).encode())
_encode = msgspec.json.Encoder().encode


def rounded_of(column: pl.Expr, digits: int) -> pl.Expr:
    """`numbers.rounded` of a column."""
    shown = column.round(digits)
    return pl.when(shown == 0.0).then(0.0).otherwise(shown)  # polars leaves `+ 0.0` out, which would keep a minus zero


def american_of(column: pl.Expr) -> pl.Expr:
    """`numbers.american` of a column."""
    shown = column.round(2)
    return pl.when(shown == -100.0).then(100.0).otherwise(shown)


def moment_of(column: pl.Expr) -> pl.Expr:
    """`numbers.moment` of a column."""
    return column.dt.to_string("%Y-%m-%dT%H:%M:%S%.6fZ")


def mapped(column: pl.Series, meaning: Callable[[str], str | None]) -> pl.Series:
    """A column of texts whose values are mapped; null stays null."""
    names = column.unique().drop_nulls()
    return column.replace_strict(names, [meaning(name) for name in names], default=None, return_dtype=pl.String)


class Encoding(NamedTuple):
    """How the rows of a frame of opportunities of one kind go out."""

    struct: type[msgspec.Struct]
    columns: Callable[[pl.DataFrame], pl.DataFrame] | None = None  # of flat kinds
    row: Callable[[Mapping[str, Any]], msgspec.Struct] | None = None  # of others

    def raw(self, frame: pl.DataFrame) -> list[msgspec.Raw]:
        """The bytes of each row."""
        if self.columns is not None:
            return _json(self.columns(frame))
        assert self.row is not None
        return [msgspec.Raw(_encode(self.row(row))) for row in frame.iter_rows(named=True)]

    def with_prints(self, frame: pl.DataFrame) -> tuple[list[msgspec.Raw], list[int]]:
        """The bytes of each row, and a 64-bit hash of the row without its ages."""
        if self.columns is not None:
            columns = self.columns(frame)
            prints = columns.select(pl.struct(pl.exclude(AGES)).struct.json_encode().hash())
            return _json(columns), prints.to_series().to_list()
        raw = self.raw(frame)
        return raw, [hash(steady(row)) for row in raw]


def _json(columns: pl.DataFrame) -> list[msgspec.Raw]:
    if not columns.height:
        return []
    encoded = columns.select(pl.struct(pl.all()).struct.json_encode()).to_series()
    return [msgspec.Raw(row) for row in encoded.cast(pl.Binary).to_list()]


def steady(row: bytes | msgspec.Raw) -> bytes:
    """The text of an opportunity without its ages; a name in quotes stands nowhere within a text."""
    return _AGE.sub(b"", row)
