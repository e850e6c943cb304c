"""Pages of a list as a table: CSV for spreadsheets, or one Arrow IPC stream.

Both have the rows and values of the JSON page, and the same columns: the fields of its rows in their order, where a
field of an object is a column of its own (`rejection` is `rejection_guard` and `rejection_reason`). In Arrow, times are
timestamps in microseconds, UTC, numbers are float64, counts int64, and lists are lists; an object with keys of its own
(`odds_ids`) is a list of `key` and `value`. In CSV, times are text as in JSON, lists of texts or numbers are joined by
semicolons, and other lists are JSON.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from io import BytesIO
from typing import Any, NamedTuple

import msgspec
import polars as pl
from msgspec import inspect

from oddsengine_service.http.downloads import csv_file
from oddsengine_service.http.endpoints import Answer, Context
from oddsengine_service.http.params import Param
from oddsengine_service.wire.numbers import TIME

CSV, ARROW = "csv", "arrow"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
TOTAL, NEXT_OFFSET, NEXT_CURSOR = "x-total-count", "x-next-offset", "x-next-cursor"
FORMAT = Param(
    "Response format. `csv` and `arrow`, which is one IPC stream, are the rows of the page as a table.",
    choices=("json", CSV, ARROW),
)
_MOMENT, _TIME = pl.Datetime("us", "UTC"), "%Y-%m-%dT%H:%M:%S%.fZ"
_PLAIN: dict[type[inspect.Type], pl.DataType] = {
    inspect.StrType: pl.String(), inspect.FloatType: pl.Float64(), inspect.IntType: pl.Int64(),
    inspect.BoolType: pl.Boolean(),
}  # fmt: skip
_encode = msgspec.json.Encoder().encode


class Column(NamedTuple):
    """A column: where its values are in a row, and their type."""

    name: str
    path: tuple[str, ...]
    type: pl.DataType

    def values(self, rows: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Its values, as in JSON."""
        out: list[Any] = list(rows)
        for name in self.path:
            out = [None if value is None else value.get(name) for value in out]
        return out


class Table:
    """How the data of a response is a table."""

    def __init__(self, name: str, struct: Any, rows: Callable[[Any], Sequence[Mapping[str, Any]]] = list) -> None:
        self._name, self._struct, self._rows = name, struct, rows

    @cached_property
    def columns(self) -> list[Column]:
        """The columns of all rows."""
        return list(_columns(inspect.type_info(self._struct)))

    def answer(self, context: Context, response: Mapping[str, Any]) -> Answer:
        """A response as a file in the format of the request; of `fields`, if it names any, in their order."""
        fields = context.query.get("fields") or ()
        columns = [each for name in fields for each in self.columns if each.path[0] == name] or self.columns
        rows = self._rows(msgspec.json.decode(_encode(response["data"])))
        now = context.board.now
        name = f"{self._name}_{'' if now is None else f'{now:%Y-%m-%d}'}"
        found = _csv(name, columns, rows) if context.query.get("format") == CSV else _arrow(name, columns, rows)
        return found._replace(headers=(*found.headers, *_page_headers(response)))


def with_tables(answer: Callable[[Context], Any], table: Table) -> Callable[[Context], Any]:
    """An endpoint's answer that is a table where the request's format is one."""

    def answered(context: Context) -> Any:
        response = answer(context)
        return table.answer(context, response) if context.query.get("format") in (CSV, ARROW) else response

    return answered


def _page_headers(response: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """What a page in JSON says about the next one."""
    pages, meta = response.get("pagination") or {}, response.get("meta") or {}
    total = meta.get("total")  # of /historical/clv, the figures of all rows
    for name, value in (
        (TOTAL, total if isinstance(total, int) else None), (NEXT_OFFSET, pages.get("next_offset")),
        (NEXT_CURSOR, pages.get("next_cursor")),
    ):  # fmt: skip
        if value is not None:
            yield name, str(value)


# ---- formats ----


def _csv(name: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Answer:
    cells = zip(*(map(_cell, column.values(rows)) for column in columns), strict=True)
    return csv_file(name, [[column.name for column in columns], *cells])


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, list) and not any(isinstance(each, (list, dict)) for each in value):
        return ";".join("" if each is None else str(_cell(each)) for each in value)
    return _encode(value).decode() if isinstance(value, (list, dict)) else value


def _arrow(name: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Answer:
    out = BytesIO()
    frame = pl.DataFrame([_series(column, column.values(rows)) for column in columns])
    frame.write_ipc_stream(out, compat_level=pl.CompatLevel.oldest())  # whose types every reader of Arrow has
    headers = (("content-disposition", f'attachment; filename="{name}.arrows"'),)
    return Answer(out.getvalue(), type=ARROW_TYPE, headers=headers)


def _series(column: Column, values: list[Any]) -> pl.Series:
    if column.type == _MOMENT:
        return pl.Series(column.name, values, pl.String).str.to_datetime(_TIME, time_unit="us", time_zone="UTC")
    if column.type.is_nested():
        values = [_typed(value, column.type) for value in values]
    return pl.Series(column.name, values, column.type)


def _typed(value: Any, of: pl.DataType) -> Any:
    """A value of JSON as polars takes it, in a column of lists."""
    if value is None:
        return None
    if of == _MOMENT:
        return datetime.fromisoformat(value)
    if isinstance(of, pl.List):
        items = [{"key": key, "value": each} for key, each in value.items()] if isinstance(value, dict) else value
        return [_typed(each, of.inner) for each in items]  # type: ignore[arg-type]
    if isinstance(of, pl.Struct):
        return {field.name: _typed(value.get(field.name), field.dtype) for field in of.fields}  # type: ignore[arg-type]
    return value


# ---- columns ----


def _columns(struct: inspect.Type, path: tuple[str, ...] = ()) -> Iterable[Column]:
    assert isinstance(struct, inspect.StructType)
    for field in struct.fields:
        kind, place = _present(field.type), (*path, field.encode_name)
        if isinstance(kind, inspect.StructType):
            yield from _columns(kind, place)
        else:
            yield Column("_".join(place), place, _dtype(kind))


def _present(kind: inspect.Type) -> inspect.Type:
    """The type of a field whose value is there."""
    if isinstance(kind, inspect.UnionType):
        return next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    return kind


def _dtype(kind: inspect.Type) -> pl.DataType:
    """The column type of a field of JSON."""
    kind = _present(kind)
    if isinstance(kind, inspect.Metadata):
        of_schema, extra = kind.extra_json_schema or {}, kind.extra or {}
        is_time = of_schema.get("format") == "date-time" or extra.get("format") == TIME
        return _MOMENT if is_time else _dtype(kind.type)
    if isinstance(kind, inspect.ListType):
        return pl.List(_dtype(kind.item_type))
    if isinstance(kind, inspect.DictType):
        return pl.List(pl.Struct({"key": _dtype(kind.key_type), "value": _dtype(kind.value_type)}))
    if isinstance(kind, inspect.StructType):
        return pl.Struct({field.encode_name: _dtype(field.type) for field in kind.fields})
    return _PLAIN[type(kind)]
