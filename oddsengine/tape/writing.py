"""Writing a tape."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Self

from oddsengine.board.state import Batch
from oddsengine.bounds import excerpt
from oddsengine.catalog import FairTable, fair_content
from oddsengine.columns import NO_TIME, SECOND
from oddsengine.live.engine import Engine
from oddsengine.live.key import ViewKey
from oddsengine.live.recorder import Recorder
from oddsengine.tape.blocks import VERSION, BufferedStep, TapeError, encoded, head, json_columns
from oddsengine.tape.recovery import CATALOGUE, Segment, segment_at, survey

if sys.platform != "win32":
    import fcntl

SYNC = ("block", "segment", "never")
_NEW = f"{CATALOGUE}.new"  # temporary name before the atomic rename


class TapeWriter(Recorder):
    """Writes a tape, new or existing.

    Steps are buffered and written in blocks. Use it as a context manager, or close it to write what is buffered.
    A tape can have one writer at a time, used in the thread that steps the engine.

    Parameters
    ----------
    path
        Folder of the tape, created if missing. A torn end is truncated, after it was copied if the catalogue lists
        steps in it.
    sync
        When to call fsync: after each `block`, when a `segment` is closed, or `never`.
    block_rows, block_s
        A block is written when it has this many quotes, or spans this many seconds of step time.
    segment_bytes
        Maximum size of a segment.

    Raises
    ------
    TapeError
        If the tape is damaged other than at its end, or another process is writing it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sync: str = "block",
        block_rows: int = 20_000,
        block_s: float = 1.0,
        segment_bytes: int = 64 << 20,
    ) -> None:
        if sync not in SYNC:
            raise ValueError(f"sync must be one of {', '.join(SYNC)}, got {excerpt(sync)}")
        self._sync, self._rows, self._span, self._most = sync, block_rows, round(block_s * SECOND), segment_bytes
        self.path = Path(path)
        self.torn: str | None = None
        """Description of a torn end that was truncated; None if the tape was complete."""
        if self.path.exists() and not self.path.is_dir():
            raise TapeError(f"{self.path} is a file; a tape must be a folder")
        self.path.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO | None = None
        self._engine: Engine | None = None
        self._broken = ""
        self._buffered: list[BufferedStep] = []
        self._notes: list[list[Any]] = []
        self._wrote: tuple[Segment, list[BufferedStep]] | None = None  # start of the last block, and its steps
        self._folder = os.open(self.path, os.O_RDONLY)
        self._open = True
        try:
            self._lock()
            begun = any(path.name != _NEW for path in self.path.iterdir())
            self._segments: list[Segment] = []
            if begun:
                files = survey(self.path)
                self._segments, self.torn = files.segments, files.torn
                if self._segments:
                    self._continue(files.lost)
            self._catalogue()
        except BaseException:
            self._leave()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def last(self) -> int:
        """Number of the last recorded step, written or buffered."""
        return self._end.last + len(self._buffered)

    @property
    def written(self) -> int:
        """Number of the last step written to a file."""
        return self._end.last

    @property
    def size(self) -> int:
        """Size of the tape in bytes."""
        return sum(segment.bytes for segment in self._segments)

    # ---- called by the engine ----

    def follow(self, engine: Engine) -> None:
        """Start recording an engine. Raises `TapeError` if the engine is not where the tape ends; see `resume`."""
        terms, books, _ = self._totals
        if engine.number != self.last or engine.published[1] != books or engine.published[0] > terms:
            raise TapeError(
                f"{self.path} ends with step {self.last}, and the engine is at step {engine.number} of something "
                f"else: only an engine restored from a tape can continue it"
            )
        if not self.last:
            self._notes.append(["without", without(engine.guards)])
            self._notes.append(["fair", fair_content(engine.fair)])
        engine.record(self)
        self._engine = engine

    def batch(self, batch: Batch, suspended: Sequence[ViewKey] = ()) -> None:
        """Record an applied batch and the views that were suspended. Nothing is recorded on failure."""
        if not self._open:
            raise TapeError(f"{self.path} is closed")
        self._agree()
        _unicode(batch)
        notes = self._notes
        texts = json_columns(batch, notes + [["sleep", spec.content] for spec in suspended if spec.model is None])
        listed, (before, books, quotes) = None, self._totals
        books_known = before
        if self._engine is not None and self._engine.published[0] != books_known:
            books_known = self._engine.published[0]
            listed = self._engine.raw_labels[:books_known]
        n = len(batch.links)
        end = books_known + len(batch.raw_labels), books + len(batch.books), quotes + n
        step = BufferedStep(batch, texts, notes, listed, before, *end)
        self._buffered.append(step)  # the only state, so an interruption leaves the whole step or nothing
        self._notes = []
        if step.quotes >= self._rows or batch.now - self._since >= self._span:
            self._write_last(notes)

    def view_resumed(self, view: ViewKey) -> None:
        if view.model is None:
            self._notes.append(["wake", view.content])

    def view_suspended(self, view: ViewKey) -> None:
        if view.model is None:
            self._notes.append(["sleep", view.content])

    def fair_changed(self, table: FairTable) -> None:
        self._notes.append(["fair", fair_content(table)])

    def guards_changed(self, guards: Mapping[str, float | bool]) -> None:
        self._notes.append(["without", [*without(guards)]])

    @property
    def _end(self) -> Segment:
        """Last segment with its current totals."""
        return self._segments[-1] if self._segments else segment_at(0, 1, 0, 0)

    @property
    def _totals(self) -> tuple[int, int, int]:
        """Counts of terms and books so far, and of buffered quotes."""
        if self._buffered:
            return self._buffered[-1][5:]
        return self._end.terms, self._end.books, 0

    @property
    def _since(self) -> int:
        """Time of the first buffered step."""
        batch = self._buffered[0].batch
        return int(NO_TIME) if batch is None else batch.now

    def _agree(self) -> None:
        """Drop the last step if the engine rolled it back after it was recorded."""
        number = self.last if self._engine is None else self._engine.number
        if number == self.last or (number > self.last and not self._open):
            return
        if number != self.last - 1 or not (self._buffered or self._wrote):
            raise TapeError(f"{self.path} is at step {self.last}, but the engine is at step {number}")
        if not self._buffered and self._wrote is not None:
            before, steps = self._wrote
            self._cut(before)
            self._buffered, self._wrote = steps, None
        self._notes = self._buffered.pop().notes + self._notes

    # ---- files ----

    def flush(self) -> None:
        """Write buffered steps."""
        self._agree()
        if self._notes:
            notes, self._notes = self._notes, []
            self._buffered.append(
                BufferedStep(None, json_columns(None, notes), notes, None, self._totals[0], *self._totals)
            )
            self._write_last(notes)
        elif self._buffered:
            self._write()

    def close(self) -> None:
        """Write buffered steps and close the tape."""
        if not self._open:
            return
        if self._engine is not None:
            self._engine.stop_recording(self)
        self._open = False
        try:
            try:
                self.flush()
            finally:
                self._end_segment()
            self._catalogue()
        finally:
            self._leave()

    def _write_last(self, notes: list[list[Any]]) -> None:
        """Write buffered steps; on failure the last one is not buffered any more, and its notes are kept."""
        try:
            self._write()
        except BaseException:
            self._buffered.pop()
            self._notes = notes
            raise

    def _write(self) -> None:
        """Append a block; on failure the file is restored."""
        if self._broken:
            raise TapeError(self._broken)
        block = encoded(self._end.last + 1, self._buffered)
        if self._file is None or (self._end.bytes and self._end.bytes + len(block) > self._most):
            self._begin_segment()
        assert self._file is not None
        before, steps, wrote = self._end, self._buffered, self._wrote
        self._append(self._file, block, before)
        try:
            written = head(block, before.bytes)
            assert written is not None
            self._segments[-1] = before.with_block(written)
            self._wrote, self._buffered = (before, steps), []
        except BaseException:  # on an interruption, the steps stay buffered
            self._segments[-1], self._wrote, self._buffered = before, wrote, steps
            self._file.truncate(before.bytes)
            raise

    def _append(self, file: BinaryIO, block: bytes, before: Segment) -> None:
        path = self.path / before.file
        if os.fstat(file.fileno()).st_size != before.bytes:
            raise TapeError(f"{path} was changed by another process while it was written")
        try:
            rest = memoryview(block)
            while rest:
                rest = rest[file.write(rest) :]
            if self._sync == "block":
                os.fsync(file.fileno())
        except BaseException as error:
            try:
                file.truncate(before.bytes)
            except OSError:
                self._broken = f"{path} could not be written ({error}) nor cut back to {before.bytes:,} bytes"
            raise

    def _lock(self) -> None:
        """Lock the tape, if the file system supports it."""
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TapeError(f"{self.path} is being written by another process") from None
        except OSError:
            pass

    def _continue(self, lost: int) -> None:
        """Truncate an incomplete block at the end; a copy is kept if the catalogue knows of steps in it."""
        segment = self._end
        path = self.path / segment.file
        self._file = path.open("ab", buffering=0)
        if path.stat().st_size > segment.bytes:
            if lost:
                aside = next(each for n in count(1) if not (each := path.with_suffix(f".damaged{n}")).exists())
                shutil.copyfile(path, aside)
                self.torn = f"{self.torn}; a copy is {aside.name}"
            self._cut(segment)

    def _cut(self, segment: Segment) -> None:
        """Truncate the last segment to its recorded size."""
        assert self._file is not None
        self._file.truncate(segment.bytes)
        self._segments[-1] = segment
        if self._sync != "never":
            os.fsync(self._file.fileno())

    def _begin_segment(self) -> None:
        before = self._end
        if self._file is not None:
            self._end_segment()
            self._catalogue()
        segment = segment_at(len(self._segments) + 1, before.last + 1, before.terms, before.books)
        path = self.path / segment.file
        if path.exists() and path.stat().st_size:  # an empty file is left by a failed attempt
            raise TapeError(f"{path} was written by another process")
        self._file = path.open("ab", buffering=0)  # at its end, also after truncation
        self._segments.append(segment)
        self._sync_folder()

    def _end_segment(self) -> None:
        if self._file is not None:
            if self._sync != "never":
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def _leave(self) -> None:
        """Close the files and release the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None
        os.close(self._folder)

    def _catalogue(self) -> None:
        """Rewrite the catalogue atomically."""
        lines = ",".join(f"\n  {json.dumps(segment._asdict())}" for segment in self._segments)
        new = self.path / _NEW
        with new.open("w", encoding="utf-8") as file:
            file.write(f'{{"format": {VERSION}, "segments": [{lines}\n]}}\n')
            if self._sync != "never":
                file.flush()
                os.fsync(file.fileno())
        new.replace(self.path / CATALOGUE)
        self._sync_folder()

    def _sync_folder(self) -> None:
        if self._sync != "never":
            os.fsync(self._folder)


def _unicode(batch: Batch) -> None:
    """Raise if a text cannot be encoded, before the batch is applied."""
    if any(batch.links):
        "".join(filter(None, batch.links)).encode()
    for raw_label in batch.raw_labels:
        "".join(filter(None, raw_label[:-1])).encode()
    if batch.books:
        "".join(batch.books).encode()


def without(guards: Mapping[str, float | bool]) -> tuple[str, ...]:
    """Disabled guards; thresholds that differ from the catalog, and guards of plugins, as `name=value`."""
    return tuple(name if value is False else f"{name}={value!r}" for name, value in guards.items())
