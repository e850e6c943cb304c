"""Encodes rows of opportunities from columns to bytes.

The fields of a struct determine the conversion of a frame's columns: floats are rounded, `Time` is formatted as RFC
3339, null becomes an empty text if a field is never null. A `RowEncoding` lists the fields that need anything else.
Responses and stream events have the same bytes.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.maths.rounding import AMERICAN_DIGITS
from oddsengine.query import values
from oddsengine.tables.levels import DEPTH_SCHEMA
from oddsengine.tables.timestamps import timestamps
from oddsengine_service.wire.numbers import BOOK, TIME, rounded_column

AGES = (
    "oldest_odds_age_seconds", "odds_age_seconds", "possibly_stale", "warnings", "confidence", "confidence_score",
    "quality_score", "timestamp", "ev_low", "ev_high", "ev_error", "prob_positive", "kelly_shrunk",
    "still_there",
)  # fmt: skip
"""Fields that time alone changes."""
Own = Mapping[str, Any]
_encode = msgspec.json.Encoder().encode


class RowEncoding:
    """How the rows of a frame of one kind are encoded.

    Parameters
    ----------
    struct
        One row.
    own
        Fields by path, such as `side.line`, that do not follow from the column of their name: the name of another
        column, an array of numbers, or a list of final values. It gets the frame, and the sides of all its rows, the
        first ones before the second ones.
    """

    def __init__(self, struct: type[msgspec.Struct], own: Callable[[pl.DataFrame, pl.DataFrame], Own]) -> None:
        self.struct, self._own = struct, own

    def rows(self, frame: pl.DataFrame) -> list[msgspec.Struct]:
        if not frame.height:
            return []
        columns = [_present(frame[name]) for name in frame.columns if name.startswith("side")]
        sides = pl.concat(columns).struct.unnest() if columns else frame
        own = {"player_id": list(map(values.player_id, frame["player_name"].to_list())), **self._own(frame, sides)}
        if columns:
            own |= _sides(self.struct, frame, sides, own)
        return list(_rows(self.struct, frame, "", own))

    def raw(self, frame: pl.DataFrame) -> list[msgspec.Raw]:
        """The bytes of each row."""
        return [msgspec.Raw(_encode(row)) for row in self.rows(frame)]

    def with_prints(self, frame: pl.DataFrame) -> tuple[list[msgspec.Raw], list[int]]:
        """The bytes of each row, and a 64-bit hash of its `steady` fields."""
        rows = self.rows(frame)
        return [msgspec.Raw(_encode(row)) for row in rows], [hash(_encode(steady(row))) for row in rows]


def _rows(struct: type[msgspec.Struct], frame: pl.DataFrame, path: str, own: Own) -> Iterable[Any]:
    return map(struct, *(_column(field, frame, path + field.name, own) for field in fields(struct)))


def _sides(struct: type[msgspec.Struct], frame: pl.DataFrame, sides: pl.DataFrame, own: Own) -> dict[str, list[Any]]:
    """The sides of all rows, made together."""
    each = [field for field in fields(struct) if field.name.startswith("side")]
    made = iter(list(_rows(each[0].kind, sides, "side.", own)))
    return {name: _with_nulls(made, frame[name]) for name, _, _ in each}


def _present(column: pl.Series) -> pl.Series:
    return (column.drop_nulls() if column.null_count() else column).rename("side")


def _with_nulls(rows: Iterable[Any], column: pl.Series) -> list[Any]:
    """The next of some rows for each entry of a column that is not null."""
    rows = iter(rows)
    if not column.null_count():
        return list(islice(rows, len(column)))
    return [next(rows) if there else None for there in column.is_not_null()]


class Field(NamedTuple):
    """A field of a struct: its type without its format, and that, empty if it has none."""

    name: str
    kind: Any
    form: str


@lru_cache
def fields(struct: type[msgspec.Struct]) -> list[Field]:
    """The fields of a struct."""
    kinds = get_type_hints(struct)
    return [Field(each.name, kinds[each.name], _form(each.type)) for each in msgspec.structs.fields(struct)]


def _form(kind: Any) -> str:
    """The format of a type, or of those inside of it."""
    for meta in getattr(kind, "__metadata__", ()):
        if meta.extra is not None:
            return str(meta.extra["format"])
    return next(filter(None, map(_form, get_args(kind))), "")


def _column(field: Field, frame: pl.DataFrame, path: str, own: Own) -> list[Any]:
    """One field of all rows."""
    name, kind, form = field
    source = own.get(path, name)
    if isinstance(source, list):
        return source
    if isinstance(source, np.ndarray):
        return rounded_column(source, form)
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    nested = [one for one in kinds if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    if nested and source not in frame.columns:  # of columns beside it
        return list(_rows(nested[0], frame, f"{path}.", own))
    if source in DEPTH_SCHEMA and source not in frame.columns:  # no price on the board has it
        return [None] * frame.height
    column = frame[source]
    if float in kinds:
        return rounded_column(column.to_numpy(), form)
    if form == TIME:
        times = timestamps(column.to_numpy().view(np.int64))  # null is NaT, which is NO_TIME
        return [time or "" for time in times] if kind is str else times
    if form == BOOK and get_origin(kind) is not list:
        missing = "" if kind is str else None
        return [missing if book is None else book_id(book) for book in column.to_list()]
    if get_origin(kind) is list:
        (inner,) = get_args(kind)
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            return parts(list(_rows(inner, flat(column).struct.unnest(), f"{path}.", own)), column)
        lists = column.to_list()
        if form == BOOK:
            return [list(map(book_id, each)) for each in lists]
        return [each or [] for each in lists] if column.null_count() else lists
    if nested:
        if column.null_count() == len(column):
            return [None] * len(column)
        return _with_nulls(_rows(nested[0], _present(column).struct.unnest(), f"{path}.", own), column)
    plain: list[Any] = (column.fill_null("") if kind is str and column.null_count() else column).to_list()
    return plain


def flat(lists: pl.Series) -> pl.Series:
    """All entries of a column of lists."""
    return lists.explode(empty_as_null=False, keep_nulls=False)


def parts(entries: list[Any], lists: pl.Series) -> list[list[Any]]:
    """Entries of `flat`, or what was made of them, as lists again."""
    ends = accumulate(lists.list.len().to_list(), initial=0)
    return [entries[begin:end] for begin, end in pairwise(ends)]


@lru_cache(maxsize=4096)
def book_id(name: str) -> str:
    return catalog.book(name).id


@lru_cache(maxsize=4096)
def home_page(book: str, state: str = "") -> str | None:
    """A book's home page, in a US state if one is given; None for a book without links."""
    link = catalog.link(book, state=state)
    return link.url if link else None


def steady(row: msgspec.Struct) -> list[Any]:
    """The fields of a row that decide whether it is sent again: no ages, and fair probabilities to two digits.

    Fair probabilities move slightly with every price of the market, even if no edge or hold does.
    """
    out = list(msgspec.structs.astuple(row))
    ages, fair, nested = _places(type(row))
    for at in ages:
        out[at] = None
    for at in fair:
        out[at] = out[at] if out[at] is None else f"{out[at]:.2g}"
    for at in nested:
        value = out[at]
        if isinstance(value, msgspec.Struct):
            out[at] = steady(value)
        elif value and isinstance(value[0], msgspec.Struct):
            out[at] = list(map(steady, value))
    return out


@lru_cache
def _places(struct: type[msgspec.Struct]) -> tuple[list[int], list[int], list[int]]:
    """The places of ages, of fair probabilities, and of fields that may have fields of their own."""
    places = list(enumerate(fields(struct)))
    ages = [at for at, field in places if field.name in AGES]
    fair = [at for at, field in places if field.name == "fair_probability"]
    plain = {str, float, int, bool, type(None)}
    nested = [at for at, (_, kind, _) in places if at not in ages and not {*(get_args(kind) or [kind])} <= plain]
    return ages, fair, nested


def american_of(column: pl.Expr) -> pl.Expr:
    """`numbers.american` of a column."""
    rounded = column.round(AMERICAN_DIGITS)
    return pl.when(rounded == -100.0).then(100.0).otherwise(rounded)
