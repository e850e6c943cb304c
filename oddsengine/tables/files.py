"""Parse odds tables from file contents, and write result tables: CSV, Parquet, JSON and NDJSON, by suffix.

Of a damaged file, the intact part is read. CSV is read as text, so that one bad number does not fail the file; its
fields are separated by the comma, semicolon or tab that its header has most of. A line of the wrong length, that is not
UTF-8, or that is not a JSON object becomes a rejected row. Positions count data lines from 0, including blank ones;
errors count the lines of the file from 1. Input that is not an odds table raises `OddsError`.
"""

import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import EACCES, EISDIR, ENOENT
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl
import polars.selectors as cs

from oddsengine.bounds import excerpt
from oddsengine.tables.column_names import Columns, is_header, place
from oddsengine.tables.schema import (
    BAD_ROW_SCHEMA,
    NONE_REJECTED,
    ODDS_SCHEMA,
    ROW,
    OddsError,
    OddsTable,
    check_rows,
    row_column,
)
from oddsengine.tables.shapes import SOURCE_ROW

_MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8
_FIRST_LINES = 20  # of a CSV file, among which its header is
_SHOWN = 200  # characters of a bad line in the report
_FIRST_OF_CSV = 2  # line of the first row, after the header
_SEPARATORS = (b",", b";", b"\t")  # of fields in CSV; of equally many in the header, the first


class Rows(NamedTuple):
    """The rows of a file as they are."""

    frame: pl.DataFrame
    position: pl.Series | None = None  # of each row among the data lines, from 0; None: in order
    bad: pl.DataFrame = NONE_REJECTED  # invalid lines
    first_line: int | None = None  # the line of the first row; None if rows are not lines

    def place(self, position: int) -> str:
        """Name a row by its line in the file."""
        return place(position, self.first_line)


def read_table(data: bytes, suffix: str, columns: Columns | None = None) -> OddsTable:
    """Parse the contents of an odds file, whose suffix is one of `READABLE`.

    JSON is a list of rows, or an object with one as `data` or `odds`. `columns` is as for `check_odds`. Invalid rows,
    including unreadable lines, are in `.rejected`. Raises `OddsError` if the data is not an odds table.
    """
    return odds_table(read_rows(data, suffix), columns)


def odds_table(rows: Rows, columns: Columns | None) -> OddsTable:
    """Validate the rows of a file as `check_odds` does."""
    table, bad = check_rows(rows.frame, columns, rows.position, rows.first_line), rows.bad
    if SOURCE_ROW not in table.columns:
        table = with_bad(table, bad)
        table.first_line = rows.first_line
        return table
    # Rows are prices, and lines that could not be read follow them.
    places = pl.Series([rows.place(row) for row in bad[ROW]], dtype=pl.String)
    after = table.height + table.rejected.height
    return with_bad(
        table,
        bad.with_columns(
            (pl.int_range(pl.len()) + after).cast(pl.UInt32).alias(ROW), reason=pl.col("reason") + "; " + places
        ),
    )


def with_bad(table: OddsTable, bad: pl.DataFrame) -> OddsTable:
    """Add lines that could not be parsed to the rejected rows of a table."""
    if not bad.height:
        return table
    name = row_column(table.columns)
    return OddsTable(table, pl.concat([table.rejected, bad.rename({ROW: name})]).sort(name), table.unpriced)


def read_rows(data: bytes, suffix: str) -> Rows:
    """Parse the contents of a file of any table."""
    reader = _READERS.get(suffix.lower())
    if reader is None:
        raise OddsError(f"the suffix must be one of {', '.join(READABLE)}, got {excerpt(suffix)}")
    return reader(data)


def scan_table(path: str, storage_options: Mapping[str, Any] | None, **csv: Any) -> pl.LazyFrame | None:
    """A lazy query over files, a folder of Parquet files or a URL; `csv` are options for CSV.

    None if the suffix is none of .parquet, .csv, .ndjson and .jsonl.
    """
    options = None if storage_options is None else dict(storage_options)
    suffix = os.path.splitext(path.partition("?")[0].rstrip("*/"))[1].lower()
    if suffix in ("", ".parquet") or "=" in suffix:
        return pl.scan_parquet(path, hive_partitioning=True, storage_options=options)
    if suffix in (".ndjson", ".jsonl"):
        return pl.scan_ndjson(path, infer_schema_length=None, storage_options=options)
    return pl.scan_csv(path, storage_options=options, **csv) if suffix == ".csv" else None


def write_table(frame: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table; in CSV, columns of lists and structs become JSON text.

    Parameters
    ----------
    frame
        Any table of this package.
    path
        A .csv, .parquet, .ndjson or .jsonl file.

    Raises
    ------
    OddsError
        If the suffix is not supported or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "odds.csv")
    >>> write_table(pl.DataFrame({"sportsbook": ["fanduel"], "odds_decimal": [2.1]}), path)
    >>> path.read_text().splitlines()
    ['sportsbook,odds_decimal', 'fanduel,2.1']
    """
    path = Path(path)
    check_target(path)
    try:
        with replaced(path) as new:
            _WRITERS[path.suffix.lower()](frame, new)
            if path.is_file() and new != path:
                shutil.copymode(path, new)
    except OSError as error:
        raise OddsError(f"cannot write {path}: {reason_of(error)}") from error
    except pl.exceptions.PolarsError as error:
        raise OddsError(f"cannot write {path}: {error}") from error


def check_target(path: str | os.PathLike[str], read: Iterable[str] = ()) -> None:
    """Raise `OddsError` if `write_table` cannot write a file, or would write over files that are read.

    `read` are files, folders and patterns of them; URLs among them are not compared.
    """
    path = Path(path)
    if path.suffix.lower() not in _WRITERS:
        raise OddsError(f"cannot write {path.name}: the suffix must be one of {', '.join(_WRITERS)}")
    fault = EISDIR if path.is_dir() else 0 if path.parent.is_dir() else ENOENT
    if fault or not os.access(path.parent, os.W_OK):
        raise OddsError(f"cannot write {path}: {os.strerror(fault or EACCES).lower()}")
    target = path.resolve()
    for source in read:
        for each in glob(source) or [source]:
            if target.is_relative_to(Path(each).resolve()):
                raise OddsError(f"cannot write {path}: it would be among what is read, {excerpt(source)}")


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """The path at which to write a file, which takes the place of `path` once it is whole.

    A reader sees the old content or the new one. What is no file, such as a device or a pipe, is written to.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not (path.is_file() or path.is_dir()):
        yield path
        return
    new = path.with_name(f".{path.name}.new")
    try:
        yield new
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: a reader sees the old content or the new one."""
    with replaced(path) as new:
        new.write_bytes(content)


def reason_of(error: OSError) -> str:
    """Describe an error of the system or of polars in a few words."""
    return (error.strerror or str(error)).split(" (os error", 1)[0].lower()


def bad_lines(lines: Iterable[tuple[int, str, str]]) -> pl.DataFrame:
    """Build rows of `rejected` for lines that could not be parsed: position, text, reason."""
    rows = [(row, "", line[:_SHOWN], reason, "bad_value") for row, line, reason in lines]
    return pl.DataFrame(rows, schema=BAD_ROW_SCHEMA, orient="row")


def _positions(rows: Iterable[int]) -> pl.Series:
    return pl.Series(rows, dtype=pl.UInt32)


# CSV


def _read_csv(data: bytes) -> Rows:
    if b"\0" in data:
        raise OddsError("not a CSV file in UTF-8 (it contains NUL bytes)")
    data, above = _from_header(data.removeprefix(_MARK))
    header = data[:65536].split(b"\n", 1)[0]
    separator = max(_SEPARATORS, key=header.count)
    names = [name.strip() for name in _fields(header.decode("utf-8", "replace"), separator.decode())]
    if twice := [name for name in dict.fromkeys(names) if name and names.count(name) > 1]:
        raise OddsError(f"each column must occur once, got {', '.join(map(repr, twice))} more than once")
    read = _read_from_header(data, separator)
    return read._replace(first_line=None if read.first_line is None else read.first_line + above)


def _from_header(data: bytes) -> tuple[bytes, int]:
    """Leave out what is above the header, such as a title; also returns how many lines that is."""
    lines = data[:65536].splitlines(keepends=True)[:_FIRST_LINES]
    most = 0  # cells of a line above
    for at, line in enumerate(lines):
        separator = max(_SEPARATORS, key=line.count).decode()
        cells = [cell for cell in _fields(line.decode("utf-8", "replace"), separator) if cell.strip()]
        if is_header(cells):
            return (data[sum(map(len, lines[:at])) :], at) if 2 * most <= len(cells) else (data, 0)
        most = max(most, len(cells))
    return data, 0


def _read_from_header(data: bytes, separator: bytes) -> Rows:
    header = data[:65536].split(b"\n", 1)[0]
    try:
        header.decode("utf-8")  # polars does not check the header's encoding
        frame = pl.read_csv(data, infer_schema=False, separator=separator.decode()).rename(str.strip)
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        return _read_csv_by_line(data, separator.decode())
    frame = frame.select(pl.all().str.strip_chars())
    left_out = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    short, in_lines = _short_lines(data, frame, separator.decode())
    position = pl.int_range(frame.height, dtype=pl.UInt32, eager=True)
    if short.height:
        left_out |= position.is_in(short[ROW].implode())
    first_line = _FIRST_OF_CSV if in_lines else None
    if not left_out.any():
        return Rows(frame, first_line=first_line)
    return Rows(frame.filter(~left_out), position.filter(~left_out), short, first_line)


def _short_lines(data: bytes, frame: pl.DataFrame, separator: str) -> tuple[pl.DataFrame, bool]:
    """Find lines with fewer fields than the header: the last price of a truncated file may be cut.

    Also returns whether rows are lines; a cell with a line break has several.
    """
    expected = frame.width
    suspect = frame[:, expected - 1].is_null()
    if not suspect.any():
        return NONE_REJECTED, len(data.splitlines()) == frame.height + 1
    lines = pl.read_csv(
        data,
        infer_schema=False,
        has_header=False,
        separator="\x1f",
        quote_char=None,
        truncate_ragged_lines=True,
        new_columns=["line"],
    ).slice(1)
    if lines.height != frame.height:  # a cell with a line break: lines and rows do not correspond
        return NONE_REJECTED, False
    fields = pl.col("line").str.replace_all('"[^"]*"', "").str.count_matches(separator, literal=True) + 1
    lines = lines.with_row_index(ROW).filter(suspect).with_columns(fields=fields)
    lines = lines.filter(pl.col("fields") < expected)
    short = lines.select(ROW, "line", "fields").iter_rows()
    return bad_lines((row, line, _wrong_length(count, expected)) for row, line, count in short), True


def _wrong_length(fields: int, expected: int) -> str:
    return f"the line has {fields} fields, the header {expected}"


def _read_csv_by_line(data: bytes, separator: str) -> Rows:
    """Read a damaged file line by line: intact lines are kept, and an open quote ends with its line."""
    header, *lines = [line.decode("utf-8", errors="replace") for line in data.splitlines()] or [""]
    names = [name.strip() for name in _fields(header, separator)]
    if not names or len(set(names)) < len(names) or _line_fault(header):
        raise OddsError("not a CSV file in UTF-8 with a header of distinct names")
    good: list[list[str | None]] = []
    good_rows: list[int] = []
    bad: list[tuple[int, str, str]] = []
    for row, line in enumerate(lines):
        if not line.strip():
            continue
        reason = _line_fault(line)
        fields = [] if reason else _fields(line, separator)
        if not reason and len(fields) != len(names):
            reason = _wrong_length(len(fields), len(names))
        if reason:
            bad.append((row, line, reason))
        else:
            good_rows.append(row)
            good.append([field.strip() or None for field in fields])
    frame = pl.DataFrame(good, schema=dict.fromkeys(names, pl.String), orient="row")
    return Rows(frame, _positions(good_rows), bad_lines(bad), _FIRST_OF_CSV)


def _fields(line: str, separator: str) -> list[str]:
    """Split a line; empty if it cannot be parsed."""
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def _line_fault(line: str) -> str:
    if "\ufffd" in line:
        return "not UTF-8"
    return "a quote is not closed" if line.count('"') % 2 else ""


# NDJSON


def _read_ndjson(data: bytes) -> Rows:
    data = data.removeprefix(_MARK)
    if data.lstrip()[:1] == b"[":
        raise OddsError("not NDJSON with one object per line: it is a JSON array")
    lines = data.splitlines()
    if all(lines) and data.lstrip()[:1] == b"{":
        try:
            frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
        except pl.exceptions.PolarsError:
            return _read_ndjson_by_line(lines)
        if frame.height == len(lines):
            return Rows(frame, first_line=1)
    return _read_ndjson_by_line(lines)


def _read_ndjson_by_line(lines: list[bytes]) -> Rows:
    """Read a damaged or mixed file line by line, with all values as text."""
    good: list[dict[str, str | None]] = []
    good_rows: list[int] = []
    bad: list[tuple[int, str, str]] = []
    names: dict[str, Any] = {}
    for row, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, dict):
            names |= dict.fromkeys(entry, pl.String)
            good_rows.append(row)
            good.append({name: _as_text(value) for name, value in entry.items()})
        else:
            bad.append((row, line.decode("utf-8", errors="replace"), "not a JSON object"))
    if not good:
        raise OddsError("not NDJSON: no line is a JSON object")
    frame = pl.DataFrame(good, schema=names)
    return Rows(frame, _positions(good_rows), bad_lines(bad), 1)


def _as_text(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", errors="replace").decode("utf-8")  # unpaired surrogates are not valid text


# JSON


def _read_json(data: bytes) -> Rows:
    rows = rows_of(decoded(data))
    if not rows:
        return Rows(pl.DataFrame(schema=dict.fromkeys(ODDS_SCHEMA, pl.String)))
    return _read_ndjson(b"\n".join([msgspec.json.encode(row) for row in rows]))._replace(first_line=None)


def decoded(data: bytes) -> Any:
    """Decode JSON; several objects, one per line, become a list. Raises `OddsError` if the data is not valid JSON."""
    data = data.removeprefix(_MARK)
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise OddsError("not a JSON table: it is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        try:
            return msgspec.json.decode(b"[" + b",".join([line for line in data.splitlines() if line.strip()]) + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise OddsError(f"not valid JSON: {error}") from None


def rows_of(document: Any) -> list[Any]:
    """Return the rows of a decoded document: a list, one row, or an object with a list as `data` or `odds`."""
    rows = document
    if isinstance(document, dict):
        rows = next((document[name] for name in ("data", "odds") if name in document), [document])
    if not isinstance(rows, list):
        raise OddsError("not an odds table: the JSON has no list of rows")
    return rows


# Parquet


def _read_parquet(data: bytes) -> Rows:
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise OddsError("not a Parquet file, or it is damaged") from error
    return Rows(frame)


# Writing


def _write_csv(frame: pl.DataFrame, path: Path) -> None:
    flat = [
        pl.when(pl.col(name).is_not_null()).then(
            pl.struct(name).struct.json_encode().str.strip_prefix(f"{{{json.dumps(name)}:").str.strip_suffix("}")
        )
        for name, dtype in frame.schema.items()
        if dtype.is_nested()
    ]
    frame = frame.with_columns(flat).with_columns(
        cs.datetime(time_zone="*").dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    )
    frame.write_csv(path, datetime_format="%Y-%m-%dT%H:%M:%S%.6fZ")


_READERS: dict[str, Callable[[bytes], Rows]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".json": _read_json,
    ".ndjson": _read_ndjson,
    ".jsonl": _read_ndjson,
}
READABLE = tuple(_READERS)
"""Suffixes of readable files."""
_WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    ".csv": _write_csv,
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".ndjson": lambda frame, path: frame.write_ndjson(path),
    ".jsonl": lambda frame, path: frame.write_ndjson(path),
}
