"""The archive: every quote with its texts, as a Delta table of hive-partitioned Parquet.

Partitions are `day=` and `sport=`. A row is a quote with the columns of `ODDS_SCHEMA` that a source provides, and
`recorded_at`. Rows are sorted by event, market, selection, line, book and time. Writes are atomic and record which
steps of which tape they contain, so that archiving again only adds what is new. Replay tapes; query the archive.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.bounds import excerpt
from oddsengine.columns import NO_TIME
from oddsengine.history.movements import EventMoves, PricedEvent, changed_prices, nothing
from oddsengine.identity.layout import LIVE, SUSPENDED
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.tape import Tape, engine_for
from oddsengine.tape.quote_rows import COLUMNS, PIECE, SCHEMA, QuoteBuffer, quote_rows

__all__ = [
    "Archive", "ArchiveError", "CompactionResult", "QuoteBuffer", "archived", "check", "compact", "moves", "rows_of",
    "write",
]  # fmt: skip

SORTED = ["event_id", "market_type", "selection", "line", "sportsbook", "recorded_at"]
SCHEMES = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "file")


class ArchiveError(ValueError):
    """An archive that cannot be written; the message is for the user."""


def check(dest: str | Path) -> None:
    """Raise `ArchiveError` for a wrong scheme, or a folder that cannot be created or written."""
    _delta()
    scheme, is_url, _ = str(dest).partition("://")
    if is_url and scheme.lower() not in SCHEMES:
        raise ArchiveError(
            f"must be a folder or a URL with one of {', '.join(SCHEMES)} before ://, got {excerpt(str(dest))}"
        )
    if is_url:
        return
    try:
        Path(dest).mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=dest):
            pass
    except OSError as error:
        raise ArchiveError(
            f"must be a folder that can be written, got {excerpt(str(dest))}: {error.strerror}"
        ) from None


def rows_of(tape: Tape, after: int = 0, piece: int = PIECE) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the quotes of a tape after a step in pieces, each with its last step."""
    return quote_rows(tape, engine_for(tape), after=after, piece=piece)


def write(
    frame: pl.DataFrame, dest: str | Path, origin: str, until: int, options: Mapping[str, str] | None = None,
    *, after: int | None = None,
) -> None:  # fmt: skip
    """Append rows to an archive atomically; `origin` and `until` record which steps they are.

    `after` is the step up to which the archive has to have what it has of `origin`. Raises `ArchiveError` if deltalake
    is not installed, the table cannot be written, or another job has written since `after`.
    """
    delta = _delta()
    properties = delta.WriterProperties(compression="ZSTD", compression_level=3)
    commit = delta.CommitProperties(app_transactions=[delta.Transaction(app_id=origin, version=until)])
    rows = frame.select(COLUMNS).sort(SORTED, nulls_last=True, maintain_order=True)
    try:
        delta.DeltaTable.create(
            str(dest), rows.schema, mode="ignore", partition_by=["day", "sport"],
            storage_options=dict(options or {}) or None,
        )  # fmt: skip
        table = delta.DeltaTable(str(dest), storage_options=dict(options or {}) or None)
        if after is not None and (last := int(table.transaction_version(origin) or 0)) != after:
            raise ArchiveError(f"{dest} has {origin} up to step {last}: another job archives it too; nothing added")
        delta.write_deltalake(
            table,
            rows,
            mode="append",
            partition_by=["day", "sport"],
            writer_properties=properties,
            commit_properties=commit,
        )
    except (delta.exceptions.DeltaError, OSError) as error:
        raise ArchiveError(f"{dest}: {error}") from error


def archived(dest: str | Path, origin: str, options: Mapping[str, str] | None = None) -> int:
    """Return the last step of an origin in an archive; 0 for none."""
    delta = _delta()
    try:
        table = delta.DeltaTable(str(dest), storage_options=dict(options or {}) or None)
    except delta.exceptions.TableNotFoundError:
        return 0
    except (delta.exceptions.DeltaError, OSError) as error:
        raise ArchiveError(f"{dest}: {error}") from error
    return int(table.transaction_version(origin) or 0)


class CompactionResult(NamedTuple):
    """What a compaction did."""

    partitions: int
    before: int  # files of these
    after: int
    deleted: int  # files of earlier versions


def compact(dest: str | Path, keep_hours: float = 168.0, options: Mapping[str, str] | None = None) -> CompactionResult:
    """Merge the files of each day and sport into one, sorted by event; the newest day, still being written, is skipped.

    Readers of the table see the old files or the new ones. Old ones are deleted once they are older than `keep_hours`:
    longer than any query takes that is under way. Raises `ArchiveError` if there is no table, or it cannot be written.
    """
    delta = _delta()
    if keep_hours < 0.0:
        raise ArchiveError(f"keep_hours must be 0 or more, got {keep_hours:g}")
    try:
        table = delta.DeltaTable(str(dest), storage_options=dict(options or {}) or None)
        files = pl.DataFrame(table.get_add_actions(flatten=True)).rename(
            {"partition.day": "day", "partition.sport": "sport"}
        )
        many = (
            files.filter(pl.col("day") < pl.col("day").max()).group_by("day", "sport").len().filter(pl.col("len") > 1)
        )
        properties = delta.WriterProperties(compression="ZSTD", compression_level=3)
        after = 0
        for day, sport, _ in many.sort("day", "sport").iter_rows():
            made = table.optimize.z_order(
                ["event_id"], [("day", "=", str(day)), ("sport", "=", sport or "")], writer_properties=properties
            )
            after += made["numFilesAdded"]
        removed = table.vacuum(math.ceil(keep_hours), dry_run=False, enforce_retention_duration=False)
    except delta.exceptions.TableNotFoundError:
        raise ArchiveError(f"{dest} is not an archive: it has no Delta table") from None
    except (delta.exceptions.DeltaError, OSError) as error:
        raise ArchiveError(f"{dest}: {error}") from error
    return CompactionResult(many.height, int(many["len"].sum()), after, len(removed))


def _delta() -> Any:
    try:
        import deltalake  # noqa: PLC0415  only where an archive is written
        import deltalake.exceptions  # noqa: PLC0415
    except ImportError:
        raise ArchiveError(
            "writing an archive needs the package deltalake; run pip install 'oddsengine[archive]'"
        ) from None
    return deltalake


class Archive:
    """The quotes of an archive, a folder or the URL of an object store, which can grow while it is read."""

    def __init__(self, dest: str | Path) -> None:
        self._dest = str(dest)

    def rows(self, events: Collection[str], origin: str = "") -> tuple[pl.DataFrame, int]:
        """Return the quotes of some events, and the last archived step of `origin`, 0 for none.

        Raises `ArchiveError` if the archive cannot be read.
        """
        return self._read(pl.col("event_id").is_in(list(events)), COLUMNS, origin)

    def changes_of_event(self, event_id: str, until: int) -> EventMoves:
        """Return the price changes of an event up to a time in microseconds."""
        return moves(self.rows((event_id,))[0], until)

    def events(self, until: int) -> list[PricedEvent]:
        """Return the events with quotes in the two days before a time.

        Raises `ArchiveError` if the archive cannot be read.
        """
        last = datetime.fromtimestamp(until / 1e6, UTC).date()
        days = pl.col("day").is_between(last - timedelta(days=1), last)
        return priced_events(self._read(days, EVENT_COLUMNS)[0], until)

    def _read(self, where: pl.Expr, columns: Sequence[str], origin: str = "") -> tuple[pl.DataFrame, int]:
        """Some quotes, and the last archived step of `origin`."""
        delta = _delta()
        try:
            table = delta.DeltaTable(self._dest)
            rows = pl.scan_delta(table).filter(where).select(columns)
            return rows.collect(engine="streaming"), int(table.transaction_version(origin) or 0)
        except delta.exceptions.TableNotFoundError:
            return pl.DataFrame(schema=SCHEMA).select(columns), 0
        except (delta.exceptions.DeltaError, OSError, pl.exceptions.PolarsError) as error:
            raise ArchiveError(f"{self._dest}: {error}") from error


EVENT_COLUMNS = ("event_id", "sport", "league", "event_start_time", "recorded_at")


def priced_events(quotes: pl.DataFrame, until: int) -> list[PricedEvent]:
    """Return the events of quotes up to a time, with what was last said of each."""
    found = (
        quotes.filter(pl.col("recorded_at").dt.epoch("us") <= until)
        .sort("recorded_at", maintain_order=True)
        .group_by("event_id", maintain_order=True)
        .agg(pl.col("sport", "league", "event_start_time").drop_nulls().last())
    )
    start = pl.col("event_start_time").dt.epoch("us").fill_null(int(NO_TIME))
    columns = found.select("event_id", pl.col("sport", "league").fill_null(""), start)
    return [PricedEvent(*row) for row in columns.iter_rows()]


def moves(quotes: pl.DataFrame, until: int) -> EventMoves:
    """Convert quotes of an event to price changes, dropping late quotes and repeated prices."""
    key = [*RAW_LABEL, "line", "sportsbook"]
    quotes = quotes.filter(pl.col("recorded_at").dt.epoch("us") <= until).sort("recorded_at", maintain_order=True)
    if not quotes.height:
        return nothing()
    rows = quotes.select(key).unique(maintain_order=True).with_row_index("row")
    flags = (~pl.col("is_active")).cast(pl.UInt8) * SUSPENDED + pl.col("is_live").cast(pl.UInt8) * LIVE
    numbered = quotes.join(rows, on=key, how="left", nulls_equal=True, maintain_order="left")
    frame = changed_prices(numbered).with_columns(flags.cast(pl.UInt8).alias("flags"))
    return EventMoves(
        list(rows.select(*RAW_LABEL, "line").iter_rows()), rows["sportsbook"].to_list(),
        frame["row"].to_numpy().astype(np.int64), frame["recorded_at"].dt.epoch("us").to_numpy(),
        frame["odds_decimal"].to_numpy(), frame["odds_american"].fill_null(np.nan).to_numpy(),
        frame["flags"].to_numpy(),
    )  # fmt: skip
