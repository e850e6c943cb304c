"""Frames of other libraries in, flat frames out.

Whatever takes a table of prices takes a polars DataFrame or LazyFrame, a pandas DataFrame, a pyarrow Table or
RecordBatchReader, and any other object with the Arrow PyCapsule interface (`__arrow_c_stream__`), such as a DuckDB
relation or a narwhals frame. A lazy query is collected; a named pandas index becomes columns. pandas needs pyarrow.

Results are polars DataFrames, so `.to_pandas()` and `.to_arrow()` are at hand. Where their columns are structs or lists
of structs, `flatten` gives the same as plain columns, for spreadsheets and pandas, and with `join` for CSV.
"""

from typing import Protocol

import polars as pl


class ArrowStream(Protocol):
    """An object with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with an Arrow stream of record batches."""


IntoFrame = pl.DataFrame | pl.LazyFrame | ArrowStream
"""What is taken for a frame."""


class _Stream:
    """The Arrow stream of an object and nothing else: polars would drop a pandas index."""

    def __init__(self, data: ArrowStream) -> None:
        self.__arrow_c_stream__ = data.__arrow_c_stream__


def to_polars(data: IntoFrame) -> pl.DataFrame:
    """A polars DataFrame of any frame.

    Parameters
    ----------
    data
        A polars DataFrame, which is returned as it is, or LazyFrame, or an object with the Arrow PyCapsule interface.

    Raises
    ------
    TypeError
        If it is none of these.
    ModuleNotFoundError
        If it is a pandas DataFrame and pyarrow is not installed.
    """
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if hasattr(data, "__arrow_c_stream__"):
        try:
            frame = pl.DataFrame(_Stream(data))
        except pl.exceptions.SchemaError:  # a column, not a table
            pass
        else:
            return frame.drop("__index_level_0__", strict=False)  # an index without a name
    kind = type(data)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
    )
    raise TypeError(f"expected a frame of polars, pandas or pyarrow, or one with __arrow_c_stream__, got {name}")


def flatten(frame: IntoFrame, separator: str = "_", join: str | None = None) -> pl.DataFrame:
    """The flat twin of a frame: no structs, no lists of structs.

    Parameters
    ----------
    frame
        Any result frame.
    separator
        Stands between the names of a struct and its field.
    join
        Stands between the values of a list, which becomes one text, as CSV needs it; a null among them becomes empty.
        None leaves lists.

    Returns
    -------
    polars.DataFrame
        A column of lists of structs, `legs`, becomes one row an entry: `leg` counts them from 1, `leg_odds_decimal` and
        so on are the fields, and a row with an empty list keeps one row of nulls. The fields of a struct `side1` become
        columns `side1_line` and so on, at any depth; a list of structs within one becomes a list for each field. Lists
        of plain values stay, or are joined. A name that is taken gets the separator at its end, `_` if that is empty.

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
    """Lists as texts."""
    inner = dtype.inner
    if isinstance(inner, pl.List):
        return lists.list.eval(_joined(pl.element(), inner, join).fill_null("")).list.join(join)
    return lists.list.eval(pl.element().cast(pl.String).fill_null("")).list.join(join)


def _fields(dtype: pl.DataType) -> list[str]:
    """Fields of a struct or of a list of structs; none of anything else."""
    inner = dtype.inner if isinstance(dtype, pl.List) else dtype
    return [field.name for field in inner.fields] if isinstance(inner, pl.Struct) else []


def _replace(frame: pl.DataFrame, nested: str, entry: str, separator: str) -> pl.DataFrame:
    """A frame with the fields of a column, named after the entry, in its place."""
    at, dtype = frame.get_column_index(nested), frame.schema[nested]
    others = [name for name in frame.columns if name != nested]
    made = []
    for field in _fields(dtype):
        of = pl.element().struct.field(field) if isinstance(dtype, pl.List) else pl.col(nested).struct.field(field)
        name = _free(f"{entry}{separator}{field}", others, separator)
        made.append((pl.col(nested).list.eval(of) if isinstance(dtype, pl.List) else of).alias(name))
    return frame.select(*frame.columns[:at], *made, *frame.columns[at + 1 :])


def _free(name: str, taken: list[str], separator: str) -> str:
    """The name, with separators at its end where it is taken."""
    while name in taken:
        name += separator or "_"
    return name
