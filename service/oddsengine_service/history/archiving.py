"""The archive of a node: quotes are buffered in files of the data folder and committed to a Delta table every hour."""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from oddsengine.history.archive import (
    EVENT_COLUMNS,
    Archive,
    ArchiveError,
    QuoteBuffer,
    archived,
    check,
    moves,
    priced_events,
    write,
)
from oddsengine.history.movements import EventMoves, PricedEvent
from oddsengine.live.engine import Batch, Engine, ViewKey
from oddsengine.live.recorder import Recorder
from oddsengine_service.errors import Problem
from oddsengine_service.settings import ArchiveSettings

FOLDER = "archive"  # subfolder of the data folder for pending quotes
_PART = 500_000  # quotes per file


class NodeArchive(Recorder):
    """Archives the quotes of an engine; `writes` says whether this process commits to the table.

    Parameters
    ----------
    origin
        Identifies the numbering of steps: the birth of a log, or the start of a process. Steps that the table already
        has are not written again, whichever process wrote them.
    failed
        Called with the error when writing fails, and with an empty string when it works again; writing is retried.

    Raises `ArchiveError` if there can be no archive at `settings.to`.
    """

    def __init__(
        self, engine: Engine, folder: Path, settings: ArchiveSettings, origin: Callable[[], str],
        failed: Callable[[str], None], writes: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        check(settings.to)
        self._folder, self._settings, self._origin = folder / FOLDER, settings, origin
        self._failed, self._writes, self._table = failed, writes, Archive(settings.to)
        self._folder.mkdir(parents=True, exist_ok=True)
        for part in self._folder.glob("*.parquet"):  # left by an earlier start
            part.unlink()
        self._engine, self._buffer = engine, QuoteBuffer(engine)
        self._ended = threading.Event()
        engine.record(self)
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)
        self._thread.start()

    def batch(self, batch: Batch, suspended: Sequence[ViewKey] = ()) -> None:
        if self._buffer.last < self._engine.number:  # a snapshot was restored
            self._buffer = QuoteBuffer(self._engine)
        self._buffer.add(batch)
        if self._buffer.quotes >= _PART:
            self._spill()

    def _spill(self) -> None:
        rows = self._buffer.drain()
        if rows.height:
            rows.write_parquet(self._folder / f"{self._buffer.last:020}.parquet", compression="zstd")

    def _run(self) -> None:
        try:
            archived(self._settings.to, self._origin())  # its server or credentials may be wrong
        except (ValueError, OSError) as error:
            self._failed(str(error))
        while not self._ended.wait(self._settings.interval):
            self.write()

    def write(self) -> None:
        """Commit buffered quotes; a process that does not write drops those that another one has written."""
        try:
            with self._engine.still():
                self._spill()
            done = archived(self._settings.to, self._origin())
            parts = sorted(self._folder.glob("*.parquet"))
            rows = pl.concat([pl.read_parquet(part).filter(pl.col("step") > done) for part in parts]) if parts else None
            if rows is not None and rows.height and self._writes():
                last = int(rows["step"].max())  # type: ignore[arg-type]
                write(rows, self._settings.to, self._origin(), last, after=done)
                done = last
            for part in parts:
                if int(part.stem) <= done:
                    part.unlink()
            self._failed("")
        except (ValueError, OSError, pl.exceptions.PolarsError) as error:
            self._failed(str(error))

    def changes_of_event(self, event_id: str, until: int) -> EventMoves:
        """Price movements of an event up to a time: from the table and from the buffer.

        Raises `Problem` 503 if the table cannot be read.
        """
        return self.changes_of_events((event_id,), until)

    def events(self, until: int) -> list[PricedEvent]:
        """Events with quotes in the two days before a time; later entries are of newer quotes.

        Raises `Problem` 503 if the table cannot be read.
        """
        recent = self._pending(lambda rows: rows.select(EVENT_COLUMNS))
        with self._readable():
            found = self._table.events(until)
        return list({event.id: event for event in (*found, *priced_events(recent, until))}.values())

    def changes_of_events(self, events: Collection[str], until: int) -> EventMoves:
        """Price movements of some events, as `changes_of_event`."""
        pending = self._pending(lambda rows: rows.filter(pl.col("event_id").is_in(list(events))))
        with self._readable():
            rows, done = self._table.rows(events, self._origin())
        return moves(pl.concat([rows, pending.filter(pl.col("step") > done).drop("step")]), until)

    def _pending(self, some: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
        """Some of the quotes that are not known to be in the table, in order of their steps.

        Read before the table, so that quotes which are committed meanwhile are in one of them, or in both.
        """
        while True:
            with self._engine.still():
                buffered, parts = self._buffer.rows(), sorted(self._folder.glob("*.parquet"))
            with suppress(FileNotFoundError):  # committed meanwhile
                return pl.concat([some(rows).collect() for rows in (*map(pl.scan_parquet, parts), buffered.lazy())])

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Report a table that cannot be read."""
        try:
            yield
        except ArchiveError as error:
            self._failed(str(error))
            raise Problem(503, "unavailable", "the archive cannot be read now; retry later", retry_after=5) from error

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._engine.stop_recording(self)
        self.write()
