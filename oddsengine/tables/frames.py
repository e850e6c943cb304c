"""Input frames of other libraries, and flat output frames.

Functions that take a table of prices accept polars DataFrames and LazyFrames, pandas DataFrames, pyarrow Tables and
RecordBatchReaders, any object with the Arrow PyCapsule interface (`__arrow_c_stream__`), such as DuckDB relations and
narwhals frames, lists of rows as dicts, and dicts of columns. Lazy queries are collected; a named pandas index becomes
columns. pandas requires pyarrow.

Results are polars DataFrames, with `.to_pandas()` and `.to_arrow()`. For results with struct or list-of-struct columns,
`flatten` returns plain columns, for spreadsheets and pandas, and with `join` for CSV.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Protocol

import polars as pl


class ArrowStream(Protocol):
    """An object with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with an Arrow stream of record batches."""


IntoFrame = pl.DataFrame | pl.LazyFrame | ArrowStream | Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]
"""Types accepted as frames."""


class _Stream:
    """Exposes only the Arrow stream of an object; otherwise polars drops a pandas index."""

    def __init__(self, data: ArrowStream) -> None:
        self.__arrow_c_stream__ = data.__arrow_c_stream__


def to_polars(data: IntoFrame) -> pl.DataFrame:
    """Convert a polars frame or query, an object with the Arrow PyCapsule interface, rows or columns to a DataFrame.

    A DataFrame is returned unchanged. Raises `TypeError` for other objects, `ValueError` if a column occurs twice or
    columns differ in length, and `ModuleNotFoundError` for a pandas DataFrame if pyarrow is not installed.
    """
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if hasattr(data, "__arrow_c_stream__"):
        if twice := _twice(data):
            raise ValueError(f"each column must occur once, got {', '.join(map(repr, twice))} more than once")
        try:
            frame = pl.DataFrame(_Stream(data))
        except pl.exceptions.SchemaError:  # a column, not a table
            pass
        except ImportError as error:
            raise ModuleNotFoundError(
                f"a frame of {type(data).__module__.partition('.')[0]} needs {error.name or 'pyarrow'}: install "
                "oddsengine[pandas]"
            ) from error
        else:
            return frame.drop("__index_level_0__", strict=False)  # an unnamed index
    if isinstance(data, Mapping) or (isinstance(data, list | tuple) and all(isinstance(row, Mapping) for row in data)):
        return _from_python(data)
    kind = type(data)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
    )
    file = "; read_odds reads a file" if isinstance(data, str | PurePath) else ""
    raise TypeError(
        "expected a frame of polars, pandas or pyarrow, one with __arrow_c_stream__, a list of dicts or a dict of "
        f"lists, got {name}{file}"
    )


def _from_python(data: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """Convert rows or columns of Python values; a column of numbers and texts becomes text."""
    try:
        if isinstance(data, Mapping):
            columns = {str(name): values for name, values in data.items()}
        else:
            names = dict.fromkeys(name for row in data for name in row)
            columns = {str(name): [row.get(name) for row in data] for name in names}
        return pl.DataFrame({name: _column(values) for name, values in columns.items()})
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"not a table: {str(error).splitlines()[0]}") from None


def _column(values: Any) -> Any:
    """Write a column with texts and other values as text; polars would drop the other values."""
    if not isinstance(values, list | tuple):
        return values
    kinds = {type(value) for value in values if value is not None}
    if str in kinds and len(kinds) > 1:
        return [None if value is None else str(value) for value in values]
    return pl.Series(values, strict=False) if values else pl.Series(values, dtype=pl.String)


def _twice(data: ArrowStream) -> list[Any]:
    """Return the names of columns that occur more than once."""
    schema = getattr(data, "schema", None)  # of pyarrow
    names = getattr(data, "columns", ()) if schema is None else getattr(schema, "names", ())
    return [name for name, count in Counter(names if isinstance(names, Iterable) else ()).items() if count > 1]


def flatten(frame: IntoFrame, separator: str = "_", join: str | None = None) -> pl.DataFrame:
    """Flatten structs and lists of structs into plain columns.

    Parameters
    ----------
    frame
        Any result frame.
    separator
        Separator between the name of a struct and its field.
    join
        Separator with which lists of values are joined to text, as CSV requires; null values become empty. None keeps
        lists.

    Returns
    -------
    polars.DataFrame
        A column of lists of structs such as `legs` becomes one row per entry: `leg` counts from 1, the fields become
        `leg_odds_decimal` and so on, and an empty list becomes one row of nulls. Fields of a struct `side1` become
        columns `side1_line` and so on, at any depth; a list of structs within a struct becomes one list per field.
        A name that is already taken gets the separator (or `_` if that is empty) appended.

    Examples
    --------
    >>> arbs = pl.DataFrame({"id": ["a"], "legs": [[{"book": "x", "odds": 2.1}, {"book": "y", "odds": 2.0}]]})
    >>> flatten(arbs).rows()
    [('a', 1, 'x', 2.1), ('a', 2, 'y', 2.0)]
    """
    frame = pl.DataFrame(to_polars(frame))
    listed = next((name for name, dtype in frame.schema.items() if _fields(dtype) and isinstance(dtype, pl.List)), None)
    if listed is not None:
        entry = listed.removesuffix("s")
        number = _free(entry, frame.columns, separator)
        at = frame.get_column_index(listed)
        frame = frame.insert_column(
            at, frame.select(pl.int_ranges(1, pl.col(listed).list.len() + 1).alias(number)).to_series()
        )
        frame = frame.explode(number, listed, empty_as_null=True, keep_nulls=True)
        frame = _replace(frame, listed, entry, separator)
    while (nested := next((name for name, dtype in frame.schema.items() if _fields(dtype)), None)) is not None:
        frame = _replace(frame, nested, nested, separator)
    if join is not None:
        frame = frame.with_columns(
            _joined(pl.col(name), dtype, join) for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)
        )
    return frame


def _joined(lists: pl.Expr, dtype: pl.List, join: str) -> pl.Expr:
    inner = dtype.inner
    if isinstance(inner, pl.List):
        return lists.list.eval(_joined(pl.element(), inner, join).fill_null("")).list.join(join)
    return lists.list.eval(pl.element().cast(pl.String).fill_null("")).list.join(join)


def _fields(dtype: pl.DataType) -> list[str]:
    """Return the fields of a struct or list of structs; empty for other dtypes."""
    inner = dtype.inner if isinstance(dtype, pl.List) else dtype
    return [field.name for field in inner.fields] if isinstance(inner, pl.Struct) else []


def _replace(frame: pl.DataFrame, nested: str, entry: str, separator: str) -> pl.DataFrame:
    """Replace a column by its fields, named after the entry."""
    at, dtype = frame.get_column_index(nested), frame.schema[nested]
    others = [name for name in frame.columns if name != nested]
    made = []
    for field in _fields(dtype):
        of = pl.element().struct.field(field) if isinstance(dtype, pl.List) else pl.col(nested).struct.field(field)
        name = _free(f"{entry}{separator}{field}", others, separator)
        made.append((pl.col(nested).list.eval(of) if isinstance(dtype, pl.List) else of).alias(name))
    return frame.select(*frame.columns[:at], *made, *frame.columns[at + 1 :])


def _free(name: str, taken: list[str], separator: str) -> str:
    """Append separators to a name until it is not taken."""
    while name in taken:
        name += separator or "_"
    return name
