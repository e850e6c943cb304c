"""Rows of opportunities from columns to bytes, outside of Python.

The fields of a struct say what becomes of a frame's columns: floats are rounded, times are written as RFC 3339, null
becomes an empty text where a field is never null. An `Encoding` names what follows none of these rules. The same bytes
go out in answers and in events of streams.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from types import UnionType
from typing import Any, get_args, get_origin

import msgspec
import polars as pl

from oddsengine import catalog
from oddsengine.query import values

AGES = (
    "oldest_odds_age_seconds", "odds_age_seconds", "possibly_stale", "warnings", "confidence", "confidence_score",
    "quality_score", "timestamp", "ev_low", "ev_high", "ev_error", "prob_positive", "kelly_shrunk",
)  # fmt: skip
"""Fields that time alone changes: numbers, flags, times and lists of texts."""
_AGE = r'"(?:{})":(?:\[[^\]]*\]|[^,}}]*)'.format("|".join(AGES))  # a name in quotes stands nowhere within a text
_SIX_DIGITS = frozenset({
    "odds_decimal", "decimal", "odds_decimal_net", "fair_probability", "implied_probability", "probability",
    "middle_probability", "key_number_probability", "push_probability", "prob_positive", "kelly_percent",
    "kelly_shrunk",
})  # fmt: skip
_AMERICAN = frozenset({"odds_american", "no_vig_odds", "american"})
_TIMES = frozenset({"start_time", "detected_at", "timestamp"})
_BOOKS = frozenset({"sportsbook", "book", "books", "all_books"})
_OBJECT = "@"  # stands for an object whose names are data, until the row is a text
Own = Mapping[str, str | pl.Expr]
Renamed = tuple[tuple[str, str], ...]


def american_of(column: pl.Expr) -> pl.Expr:
    """`numbers.american` of a column."""
    rounded = column.round(2)
    return pl.when(rounded == -100.0).then(100.0).otherwise(rounded)


def _rounded(column: pl.Expr, digits: int) -> pl.Expr:
    rounded = column.round(digits)
    # polars leaves `+ 0.0` out, which would keep a minus zero
    return pl.when(rounded == 0.0).then(0.0).otherwise(rounded)


class Encoding:
    """How the rows of a frame of one kind are encoded.

    Parameters
    ----------
    struct
        One row.
    books
        Columns with names of books, flat.
    own
        Fields by path, such as `side1.line`: the column with another name, or an expression. Called when the first row
        is encoded.
    objects
        Fields that are objects with names of their own, in the order of a row: lists of names and of values.
    """

    def __init__(
        self, struct: type[msgspec.Struct], books: Sequence[pl.Expr], own: Callable[[], Own] = dict,
        objects: Sequence[tuple[str, pl.Expr, pl.Expr]] = (),
    ) -> None:  # fmt: skip
        self.struct, self._books, self._objects = struct, books, objects
        self._own_of = own
        self._columns = lru_cache(maxsize=16)(self._columns_with)

    def raw(self, frame: pl.DataFrame) -> list[msgspec.Raw]:
        """The bytes of each row."""
        return _raw(self._texts(frame)) if frame.height else []

    def with_prints(self, frame: pl.DataFrame) -> tuple[list[msgspec.Raw], list[int]]:
        """The bytes of each row, and a 64-bit hash of the row without its ages."""
        if not frame.height:
            return [], []
        texts = self._texts(frame)
        return _raw(texts), steady(texts).hash().to_list()

    @cached_property
    def _own(self) -> Own:
        return self._own_of()

    def _texts(self, frame: pl.DataFrame) -> pl.Series:
        names = {name for column in self._books for name in frame.select(column.unique()).to_series().drop_nulls()}
        renamed = tuple((name, ident) for name in sorted(names) if (ident := catalog.book(name).id) != name)
        players = frame["player_name"].unique().drop_nulls()
        ids = [values.player_id(name) for name in players]
        player_id = frame["player_name"].replace_strict(players, ids, default=None, return_dtype=pl.String)
        rows = frame.with_columns(player_id.alias("player_id")).select(self._columns(renamed))
        texts = rows.select(pl.struct(pl.all()).struct.json_encode()).to_series()
        for name, keys, items in self._objects:
            texts = _with_object(texts, name, frame, keys, items, renamed)
        return texts

    def _columns_with(self, renamed: Renamed) -> list[pl.Expr]:
        return self._fields(self.struct, pl.col, "", renamed)

    def _fields(
        self, struct: type[msgspec.Struct], column: Callable[[str], pl.Expr], path: str, renamed: Renamed
    ) -> list[pl.Expr]:
        return [
            self._field(field.name, field.type, column, path, renamed).alias(field.name)
            for field in msgspec.structs.fields(struct)
        ]

    def _field(self, name: str, kind: Any, column: Callable[[str], pl.Expr], path: str, renamed: Renamed) -> pl.Expr:
        own = self._own.get(path + name, name)
        found = column(own) if isinstance(own, str) else own
        kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
        if get_origin(kind) is dict:
            return pl.lit(_OBJECT)
        if get_origin(kind) is list:
            (inner,) = get_args(kind)
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                each = self._fields(inner, pl.element().struct.field, f"{path}{name}.", renamed)
                return found.list.eval(pl.struct(each))
            if name in _BOOKS and renamed:
                return found.list.eval(_renamed(pl.element(), renamed))
            return found.fill_null(pl.lit([], pl.List(pl.String))) if inner is str else found
        nested = next((one for one in kinds if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)
        if nested is not None:
            if not isinstance(own, str):
                return found
            made = pl.struct(self._fields(nested, found.struct.field, f"{path}{name}.", renamed))
            return made if len(kinds) == 1 else pl.when(found.is_null()).then(None).otherwise(made)
        if name in _AMERICAN:
            return american_of(found)
        if float in kinds:
            return _rounded(found, 6 if name in _SIX_DIGITS else 4)
        if name in _TIMES:
            found = found.dt.to_string("%Y-%m-%dT%H:%M:%S%.6fZ")
        if name in _BOOKS:
            found = _renamed(found, renamed)
        return found.fill_null("") if kind is str else found


def _renamed(column: pl.Expr, renamed: Renamed) -> pl.Expr:
    return column.replace(dict(renamed)) if renamed else column


def _with_object(
    texts: pl.Series, name: str, frame: pl.DataFrame, keys: pl.Expr, items: pl.Expr, renamed: Renamed
) -> pl.Series:
    """Put objects, of lists of books and values, where the first placeholders stand; rows without one stay."""
    book, value = (each.explode(empty_as_null=False, keep_nulls=False) for each in (keys, items))
    pair = pl.concat_str(_text(_renamed(book, renamed)), pl.lit(":"), _text(value))
    pairs = frame.select(pair).to_series().to_list()
    lengths = frame.select(items.list.len().fill_null(0)).to_series().to_list()
    objects, at = [], 0
    for length in lengths:
        objects.append(f'"{name}":{{{",".join(pairs[at : at + length])}}}')
        at += length
    both = pl.DataFrame([texts.alias("row"), pl.Series("object", objects, pl.String)])
    return both.select(pl.col("row").str.replace(f'"{name}":"{_OBJECT}"', pl.col("object"), literal=True)).to_series()


def _text(column: pl.Expr) -> pl.Expr:
    """Texts as JSON."""
    return pl.struct(v=column).struct.json_encode().str.strip_prefix('{"v":').str.strip_suffix("}")


def _raw(texts: pl.Series) -> list[msgspec.Raw]:
    return [msgspec.Raw(row) for row in texts.cast(pl.Binary).to_list()]


def steady(texts: pl.Series) -> pl.Series:
    """Texts of opportunities without their ages."""
    return texts.str.replace_all(_AGE, "")


__all__ = ["AGES", "Encoding", "american_of", "steady"]
