"""Read prices from a file, a folder, a glob pattern, an object store or standard input.

The format of a file follows from its suffix; that of standard input from its first bytes. JSON can be a list of rows, a
response of this API in either envelope, or a response of The Odds API (a list of events, one event, or a historical
response) with decimal or American odds. CSV can be a season of football-data.co.uk: opening and closing prices become
rows of their own (`closing`), with the final score as `home_goals` and `away_goals` (`oddsengine.feeds.football_data`).

URLs (`s3://`, `gs://`, `az://`, `hf://`, `https://`, `file://`) and Parquet in hive partitions
(`odds/date=2026-02-08/part.parquet`) are read by polars, so all files must have the same columns; partition keys become
columns. To read a part of an archive, pass a query to the finders:
`oe.find_ev(pl.scan_parquet("s3://odds/", hive_partitioning=True).filter(date=day))`.
"""

import glob
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from oddsengine.bounds import excerpt
from oddsengine.feeds import FeedError, football_data
from oddsengine.feeds.the_odds_api import RequestScope, TheOddsApi
from oddsengine.tables.column_names import Columns
from oddsengine.tables.column_report import recognised
from oddsengine.tables.files import (
    READABLE,
    Rows,
    bad_lines,
    decoded,
    odds_table,
    read_rows,
    reason_of,
    scan_table,
    with_bad,
)
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.schema import (
    ODDS_SCHEMA,
    OTHER_ROW,
    ROW,
    OddsError,
    OddsTable,
    check_odds,
    row_column,
    warn_of_names,
)

STANDARD_INPUT = "-"
ODDS_FORMATS = ("decimal", "american")
_PARQUET = b"PAR1"
_SHEETS = (".xlsx", ".xls", ".xlsb", ".ods")
_ADDRESS = re.compile(r"[a-z][a-z0-9+]+://", re.IGNORECASE)


def read_odds(
    source: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
    odds_format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> OddsTable:
    """Read prices from a file, a folder, a glob pattern, an object store or standard input.

    Parameters
    ----------
    source
        A .csv, .parquet, .json, .ndjson or .jsonl file with the columns required by `check_odds`, a JSON response of
        The Odds API or this API, or a CSV file of football-data.co.uk; a folder (not recursive), or a pattern such as
        ``odds/**/*.json``, in order of names; a folder or pattern of Parquet in hive partitions; the URL of Parquet,
        CSV or NDJSON, such as ``s3://odds/2026/**/*.parquet``; or ``-`` for standard input.
    columns
        Names of the file's columns, and what they are in `ODDS_SCHEMA`, as for `check_odds`.
    odds_format
        Odds format of responses of The Odds API, one of `ODDS_FORMATS`; None detects it for each file.
    storage_options
        Credentials and settings of the object store, as in `polars.scan_parquet`.

    Returns
    -------
    OddsTable
        The valid rows; the others, including unreadable lines, are in `.rejected`. Rows are numbered across files.

    Raises
    ------
    OddsError
        If a file does not exist, is not an odds table, or changes while it is read.

    Examples
    --------
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> odds = read_odds(SAMPLE_BOARD)
    >>> odds.height, odds.rejected.height
    (1951, 4)
    """
    if odds_format not in (None, *ODDS_FORMATS):
        raise OddsError(f"odds_format must be one of {', '.join(ODDS_FORMATS)}, got {excerpt(odds_format)}")
    if source == STANDARD_INPUT:
        data = sys.stdin.buffer.read()
        return _read("standard input", data, _suffix_of(data), columns, odds_format)
    if _ADDRESS.match(str(source)):
        return _scanned(str(source), columns, storage_options)
    if _is_partitioned(Path(source)):
        return _scanned(str(source), columns, None)
    return _joined([_read_file(path, columns, odds_format) for path in files_of(source)])


def columns_of(source: str | os.PathLike[str] | IntoFrame, *, columns: Columns | None = None) -> pl.DataFrame:
    """Say what each column of a table of odds is taken for, and what the table still needs.

    Parameters
    ----------
    source
        A file, as for `read_odds`, or a frame, as for `check_odds`.
    columns
        Names of its columns, and what they are in `ODDS_SCHEMA`, as for both.

    Returns
    -------
    polars.DataFrame
        `column`, the name in the table, null for what the table still needs; `taken_for`, a column of `ODDS_SCHEMA` or
        what a column of another shape has, null if it is not used; `why`; and an `example`, the first value.

    Raises
    ------
    OddsError
        If the table can be read in several ways.

    Examples
    --------
    >>> table = {"game": ["Celtics @ Lakers"], "home_odds": ["-120"], "away_odds": ["+105"], "note": ["late"]}
    >>> columns_of(table).select("column", "taken_for").rows()[:3]
    [('game', 'event_id'), ('home_odds', 'odds of home, moneyline'), ('away_odds', 'odds of away, moneyline')]
    >>> columns_of(table).select("column", "taken_for").rows()[3:]
    [('note', None), (None, 'sportsbook')]
    """
    if not isinstance(source, str | os.PathLike):
        try:
            return recognised(to_polars(source), columns)
        except TypeError as error:
            raise OddsError(f"not an odds table: {error}") from None
    path = files_of(source)[0]
    rows = _rows_of(path, columns)
    try:
        return recognised(rows.frame, columns, rows.first_line)
    except OddsError as error:
        raise OddsError(f"{path.name}: {error}") from None


def _rows_of(path: Path, columns: Columns | None) -> Rows:
    """Read the rows of a file that is a table."""
    data, suffix = _contents(path), path.suffix.lower()
    try:
        if (suffix == ".csv" and not columns and football_data.is_season(data)) or (
            suffix == ".json" and _is_the_odds_api(decoded(data))
        ):
            raise OddsError("it has the format of a source, whose columns need no names: read_odds reads it")
        return read_rows(data, suffix)
    except OddsError as error:
        raise OddsError(f"{path.name}: {error}") from None


def _is_partitioned(path: Path) -> bool:
    """Whether a path is a folder, or a pattern of Parquet files, in hive partitions."""
    if path.is_dir():
        return any("=" in child.name and child.is_dir() for child in path.iterdir())
    if path.suffix.lower() != ".parquet" or not glob.has_magic(str(path)) or path.exists():
        return False
    return any("=" in part for name in glob.glob(str(path), recursive=True) for part in Path(name).parts[:-1])


def _scanned(source: str, columns: Columns | None, storage_options: Mapping[str, Any] | None) -> OddsTable:
    """Read a source with polars."""
    try:
        frame = scan_table(source, storage_options, infer_schema=False)
        if frame is not None:
            return check_odds(frame, columns=columns)
    except OddsError as error:
        raise OddsError(f"{source}: {error}") from error
    except (pl.exceptions.PolarsError, OSError) as error:
        first = str(error).strip().partition("\n")[0]
        raise OddsError(f"cannot read {source}: {first[:200].rstrip('.')}") from error
    raise OddsError(f"cannot read {source}: a URL must end in .parquet, .csv, .ndjson or .jsonl")


def files_of(source: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a path, a folder or a pattern.

    Raises
    ------
    OddsError
        If a folder or a pattern has no readable files.
    """
    path = Path(source)
    if path.is_dir():
        try:
            within = sorted(file for file in path.iterdir() if file.suffix.lower() in READABLE and file.is_file())
        except OSError as error:
            raise OddsError(f"cannot read {path}: {reason_of(error)}") from error
        if not within:
            raise OddsError(f"{path} has no files that end in {', '.join(READABLE)}")
        return within
    if glob.has_magic(str(path)) and not path.exists():
        matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
        if not matches:
            raise OddsError(f"no file matches {path}")
        return [file for match in matches for file in (files_of(match) if match.is_dir() else [match])]
    return [path]


def _read_file(path: Path, columns: Columns | None, odds_format: str | None) -> OddsTable:
    return _read(path.name, _contents(path), path.suffix.lower(), columns, odds_format)


def _contents(path: Path) -> bytes:
    """Read a file, which must not change meanwhile."""
    if path.suffix.lower() not in READABLE:
        sheet = f"; a frame is read by oe.check_odds(pl.read_excel({path.name!r}))" if path.suffix in _SHEETS else ""
        raise OddsError(f"cannot read {path.name}: the suffix must be one of {', '.join(READABLE)}{sheet}")
    try:
        before = path.stat()
        data = path.read_bytes()
        after = path.stat()
    except OSError as error:
        raise OddsError(f"cannot read {path}: {reason_of(error)}") from error
    was, is_ = ((each.st_mtime_ns, each.st_size) for each in (before, after))
    if was != is_ and stat.S_ISREG(after.st_mode):
        raise OddsError(
            f"{path} was changed while it was read; read it again, and replace such a file by renaming a new one"
        )
    return data


def _suffix_of(data: bytes) -> str:
    """Detect the format of unnamed content."""
    if data.startswith(_PARQUET):
        return ".parquet"
    return ".json" if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{") else ".csv"


def _read(name: str, data: bytes, suffix: str, columns: Columns | None, odds_format: str | None) -> OddsTable:
    if not data:
        raise OddsError(f"{name} is empty")
    try:
        if suffix == ".csv" and not columns and football_data.is_season(data):
            return _season(football_data.read(data))
        if suffix == ".json":
            document = decoded(data)
            if _is_error(document):
                raise OddsError(f"this is an error response: {_message(document)}")
            if _is_the_odds_api(document):
                if columns:
                    raise OddsError("a response of The Odds API has no columns to name; columns must be None")
                return _the_odds_api(data, odds_format)
        rows = read_rows(data, suffix)
        warn_of_names(rows.frame, columns)
        return odds_table(rows, columns)
    except (OddsError, FeedError) as error:
        raise OddsError(f"{name}: {error}") from error


def _is_error(document: Any) -> bool:
    return isinstance(document, dict) and "data" not in document and ("error" in document or "error_code" in document)


def _message(document: Mapping[str, Any]) -> str:
    error = document.get("error")
    message = error.get("message") if isinstance(error, dict) else document.get("message") or error
    return str(message or document.get("error_code"))[:200].rstrip(".")


def _is_the_odds_api(document: Any) -> bool:
    """Whether a JSON document has events with bookmakers."""
    events = document.get("data", document) if isinstance(document, dict) else document
    first = next(iter(events), None) if isinstance(events, list) else events
    return isinstance(first, dict) and ("bookmakers" in first or "sport_key" in first)


def _the_odds_api(data: bytes, odds_format: str | None) -> OddsTable:
    """Read a response of The Odds API; invalid parts are appended as rejected rows."""
    american = None if odds_format is None else odds_format == "american"
    payload = TheOddsApi(american=american).read(data, RequestScope.of(()))
    return quotes_table(payload.quotes, payload.refused, len(payload.futures))


def quotes_table(quotes: Sequence[Mapping[str, Any]], refused: Counter[str], futures: int) -> OddsTable:
    """Return the quotes of payloads as a table; what parsers refused, and outrights, are rejected rows at its end."""
    refused = refused + Counter({"an outright, which find_futures reads": futures})
    table = check_odds(
        pl.DataFrame(quotes, schema_overrides=ODDS_SCHEMA, infer_schema_length=None)
        if quotes
        else pl.DataFrame(schema=ODDS_SCHEMA)
    )
    return _with_refused(table, len(quotes), refused.elements())


def _season(season: football_data.SeasonFile) -> OddsTable:
    """Return a season of prices with its results; what the parser refused are rejected rows at its end."""
    scores = season.results.select("event_id", "home_goals", "away_goals")
    table = check_odds(season.quotes.join(scores, on="event_id", how="left", maintain_order="left"))
    return _with_refused(table, season.quotes.height, season.refused.elements())


def _with_refused(table: OddsTable, before: int, reasons: Iterable[str]) -> OddsTable:
    """Append rejected rows for what a parser refused, after the rows before."""
    bad = bad_lines((before + at, "", reason) for at, reason in enumerate(reasons))
    return with_bad(table, bad)


def _joined(tables: Sequence[OddsTable]) -> OddsTable:
    """Concatenate tables and number their rows consecutively."""
    if len(tables) == 1:
        return tables[0]
    parts: tuple[list[pl.DataFrame], ...] = ([], [], [])
    name = OTHER_ROW if any(OTHER_ROW in table.columns for table in tables) else ROW
    before = 0
    for table in tables:
        own, frames = row_column(table.columns), (table, table.rejected, table.unpriced)
        for part, frame in zip(parts, frames, strict=True):
            position = (pl.col(own) + before).cast(pl.UInt32).alias(name)
            part.append(frame.with_columns(position).drop([] if own == name else own))
        before += 1 + max((int(n) for frame in frames for n in frame[own].top_k(1)), default=-1)
    odds, rejected, unpriced = (pl.concat(part, how="diagonal_relaxed") for part in parts)
    return OddsTable(odds, rejected, unpriced)
