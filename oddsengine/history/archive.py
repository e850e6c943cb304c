"""The archive: every quote with its texts, as a Delta table of hive-partitioned Parquet.

Partitions are `day=` and `sport=`. A row is a quote with the columns of `ODDS_SCHEMA` that a source provides, and
`recorded_at`. Rows are sorted by event, market, selection, line, book and time. Writes are atomic and record which
steps of which tape they contain, so that archiving again only adds what is new. Replay tapes; query the archive.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine.board.facts import moments_of
from oddsengine.board.rows import NO_PRICE, REJECTED
from oddsengine.board.state import Batch
from oddsengine.columns import NO_TIME
from oddsengine.history.lines import EventMoves, nothing
from oddsengine.identity.layout import BOOK_BITS, BOOK_MASK, LIVE, SUSPENDED
from oddsengine.identity.wording import WORDING
from oddsengine.live.engine import Engine
from oddsengine.maths.odds import quoted_american
from oddsengine.tables.schema import ODDS_SCHEMA
from oddsengine.tape import Tape, engine_for

COLUMNS = (
    "day", *WORDING, "line", "sportsbook", "odds_decimal", "odds_american", "is_live", "is_active",
    "event_start_time", "last_seen_at", "odds_changed_at", "rejected_upstream", "recorded_at",
)  # fmt: skip
SORTED = ["event_id", "market_type", "selection", "line", "sportsbook", "recorded_at"]
SCHEMES = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "file")
PIECE = 2_000_000  # quotes sorted and written at a time


class ArchiveError(ValueError):
    """An archive that cannot be written; the message is for the user."""


def check(dest: str | Path) -> None:
    """Raise `ArchiveError` for a wrong scheme, or a folder that cannot be created or written."""
    _delta()
    scheme, is_url, _ = str(dest).partition("://")
    if is_url and scheme.lower() not in SCHEMES:
        raise ArchiveError(f"must be a folder or a URL with one of {', '.join(SCHEMES)} before ://, got {str(dest)!r}")
    if is_url:
        return
    try:
        Path(dest).mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=dest):
            pass
    except OSError as error:
        raise ArchiveError(f"must be a folder that can be written, got {str(dest)!r}: {error.strerror}") from None


class QuoteBuffer:
    """Quotes of batches as codes, until their texts are looked up.

    An engine occasionally renumbers the codes of terms; collected quotes are resolved before that.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._words, self._books = list(engine.wordings), list(engine.books)
        self._batches: list[tuple[int, Batch]] = []
        self._frames: list[pl.DataFrame] = []
        self.quotes = 0
        self.last = engine.number  # step number

    def add(self, batch: Batch) -> None:
        """Add a batch that is about to be applied."""
        if self._batches and self.last > self._engine.number:  # the step was rolled back because of another failure
            self.quotes -= len(self._batches.pop()[1].links)
            self._words = list(self._engine.wordings[: self._engine.published[0]])
        if len(self._words) != self._engine.published[0]:  # codes were renumbered
            self._resolve()
            self._words = list(self._engine.wordings[: self._engine.published[0]])
        self._words += batch.wordings
        self._books = [*self._engine.books[: self._engine.published[1]], *batch.books]
        self.last = self._engine.number + 1
        self._batches.append((self.last, batch))
        self.quotes += len(batch.links)

    def rows(self) -> pl.DataFrame:
        """Return all collected quotes as rows, with the number of their `step`."""
        self._resolve()
        self._frames = [pl.concat(self._frames)] if self._frames else []
        return self._frames[0] if self._frames else pl.DataFrame(schema=_SCHEMA | {"step": pl.Int64()})

    def drain(self) -> pl.DataFrame:
        """Return all collected quotes and clear them."""
        rows = self.rows()
        self._frames, self.quotes = [], 0
        return rows

    def _resolve(self) -> None:
        batches, self._batches = self._batches, []
        if sum(len(batch.links) for _, batch in batches):
            steps = np.repeat([n for n, _ in batches], [len(batch.links) for _, batch in batches])
            rows = _rows([batch for _, batch in batches], self._words, self._books)
            self._frames.append(rows.with_columns(step=pl.Series(steps, dtype=pl.Int64)))


_SCHEMA = {name: pl.Date() if name == "day" else ODDS_SCHEMA.get(name, ODDS_SCHEMA["last_seen_at"]) for name in COLUMNS}


def _rows(batches: Sequence[Batch], words: Sequence[Any], books: Sequence[str]) -> pl.DataFrame:
    """Return the quotes of batches with their texts."""
    key, odds, american, seen, changed, start, flags = (
        np.concatenate(column) for column in zip(*(batch.quoted for batch in batches), strict=True)
    )
    now = np.repeat([batch.now for batch in batches], [len(batch.links) for batch in batches])
    seen = np.where(seen == NO_TIME, now, np.minimum(seen, now))
    terms, of = np.unique(key >> BOOK_BITS, return_inverse=True)
    wordings = [words[term] for term in terms.tolist()]
    texts = {
        name: pl.Series(name, [wording[at] for wording in wordings], dtype=ODDS_SCHEMA[name]).gather(of)
        for at, name in enumerate((*WORDING, "line"))
    }
    bare = (flags & NO_PRICE) != 0
    priced = {"odds_decimal": odds, "odds_american": quoted_american(np.where(bare, 2.0, odds), american)}
    frame = pl.DataFrame(
        {
            **texts, "sportsbook": pl.Series(books, dtype=pl.String).gather(key & BOOK_MASK), **priced,
            "is_live": (flags & LIVE) != 0, "is_active": (flags & SUSPENDED) == 0,
            "rejected_upstream": (flags & REJECTED) != 0, "event_start_time": moments_of(start),
            "last_seen_at": moments_of(seen), "odds_changed_at": moments_of(changed), "recorded_at": moments_of(now),
            "bare": bare,
        }
    )  # fmt: skip
    prices = [pl.when(pl.col("bare")).then(None).otherwise(pl.col(name)).alias(name) for name in priced]
    return frame.with_columns(
        *prices, day=pl.col("recorded_at").dt.date(), sport=pl.col("sport").fill_null("")
    ).select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())  # fmt: skip


def rows_of(tape: Tape, after: int = 0, piece: int = PIECE) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the quotes of a tape after a step in pieces, each with its last step."""
    engine = engine_for(tape)
    buffer = QuoteBuffer(engine)
    for step in tape:
        if step.number > after:
            buffer.add(step.batch)
        engine.feed(step.batch)
        if step.number <= after:
            buffer = QuoteBuffer(engine) if step.number == after else buffer
        elif buffer.quotes >= piece:
            yield step.number, buffer.drain()
    rest = buffer.drain()
    if rest.height:
        yield buffer.last, rest


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
        gone = table.vacuum(math.ceil(keep_hours), dry_run=False, enforce_retention_duration=False)
    except delta.exceptions.TableNotFoundError:
        raise ArchiveError(f"{dest} is not an archive: it has no Delta table") from None
    except (delta.exceptions.DeltaError, OSError) as error:
        raise ArchiveError(f"{dest}: {error}") from error
    return CompactionResult(many.height, int(many["len"].sum()), after, len(gone))


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

    def rows(self, event_id: str, origin: str = "") -> tuple[pl.DataFrame, int]:
        """Return the quotes of an event, and the last archived step of `origin`, 0 for none.

        Raises `ArchiveError` if the archive cannot be read.
        """
        delta = _delta()
        try:
            table = delta.DeltaTable(self._dest)
            rows = pl.scan_delta(table).filter(pl.col("event_id") == event_id).select(COLUMNS)
            return rows.collect(engine="streaming"), int(table.transaction_version(origin) or 0)
        except delta.exceptions.TableNotFoundError:
            return pl.DataFrame(schema=_SCHEMA), 0
        except (delta.exceptions.DeltaError, OSError, pl.exceptions.PolarsError) as error:
            raise ArchiveError(f"{self._dest}: {error}") from error

    def changes_of_event(self, event_id: str, until: int) -> EventMoves:
        """Return the price changes of an event up to a time in microseconds."""
        return moves(self.rows(event_id)[0], until)


def moves(quotes: pl.DataFrame, until: int) -> EventMoves:
    """Convert quotes of an event to price changes, dropping late quotes and repeated prices."""
    key = [*WORDING, "line", "sportsbook"]
    quotes = quotes.filter(pl.col("recorded_at").dt.epoch("us") <= until).sort("recorded_at", maintain_order=True)
    if not quotes.height:
        return nothing()
    rows = quotes.select(key).unique(maintain_order=True).with_row_index("row")
    flags = (~pl.col("is_active")).cast(pl.UInt8) * SUSPENDED + pl.col("is_live").cast(pl.UInt8) * LIVE
    frame = (
        quotes.join(rows, on=key, how="left", nulls_equal=True, maintain_order="left")
        .filter(pl.col("last_seen_at") >= pl.col("last_seen_at").cum_max().over("row"))
        .with_columns(
            flags.cast(pl.UInt8).alias("flags"), pl.col("odds_decimal", "odds_american").forward_fill().over("row")
        )
        .filter(pl.col("odds_decimal").is_not_null())  # suspended before its first price
        .filter(pl.struct("row", "recorded_at").is_last_distinct())
    )
    moved = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift().over("row")) for name in ("odds_decimal", "flags")
    )
    frame = frame.filter(moved)
    return EventMoves(
        list(rows.select(*WORDING, "line").iter_rows()), rows["sportsbook"].to_list(),
        frame["row"].to_numpy().astype(np.int64), frame["recorded_at"].dt.epoch("us").to_numpy(),
        frame["odds_decimal"].to_numpy(), frame["odds_american"].fill_null(np.nan).to_numpy(),
        frame["flags"].to_numpy(),
    )  # fmt: skip
