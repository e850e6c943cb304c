"""What the columns of a table were taken for, and what it still needs to be a table of odds."""

from collections.abc import Collection

import polars as pl

from oddsengine.tables.column_names import Columns, added, days, renamed
from oddsengine.tables.schema import ODDS_SCHEMA, Reading, missing_of, read_columns

RECOGNISED_SCHEMA: dict[str, pl.DataType] = {
    "column": pl.String(),
    "taken_for": pl.String(),
    "why": pl.String(),
    "example": pl.String(),
}
"""Columns of `columns_of`."""

_SHOWN = 60  # characters of an example


def recognised(frame: pl.DataFrame, columns: Columns | None = None, first_line: int | None = None) -> pl.DataFrame:
    """Return a row per column of a table, and one per column that it still needs, in `RECOGNISED_SCHEMA`."""
    reading = read_columns(frame, columns, first_line=first_line)
    taken = {theirs: name for name, theirs in reading.words.names.items() if theirs in frame.columns}
    mapped, more = renamed(columns), added(columns)
    rows = [_row(frame, theirs, name, reading, mapped) for theirs, name in taken.items()]
    rows += [(name, name, "added by columns=", None) for name in more]
    rows += [(None, name, "needed, and no column is taken for it", None) for name in missing_of(reading.frame.columns)]
    return pl.DataFrame(rows, schema=RECOGNISED_SCHEMA, orient="row")


def _row(
    frame: pl.DataFrame, theirs: str, name: str, reading: Reading, mapped: Collection[str]
) -> tuple[str | None, ...]:
    values = frame[theirs].drop_nulls()
    example = str(values[0])[:_SHOWN] if values.len() else None
    if theirs in reading.taken:
        use = reading.taken[theirs]
        unused = use.startswith("not used")
        return (theirs, None, use, example) if unused else (theirs, use, "its name, and the other columns", example)
    if theirs in mapped:
        return theirs, name, "columns= says so", example
    if name not in ODDS_SCHEMA:
        if name in days([name]) and "event_start_time" not in reading.frame.columns:
            return theirs, "day of the game", "tells apart games of the same teams", example
        if theirs in reading.games:
            return theirs, "teams of the game", "the name of a game", example
        return theirs, None, "not used, and kept", example
    why = "its name" if name == theirs else f"a common name of {name}"
    if theirs in reading.games:
        why += ", with the teams"
    if name in ("odds_decimal", "odds_american") and theirs.casefold().strip() in ("odds", "price"):
        why = "its values"
    return theirs, name, why, example
