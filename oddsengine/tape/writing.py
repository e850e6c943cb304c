"""Writing a tape."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from oddsengine.board.state import SECOND, Batch
from oddsengine.engine import Engine
from oddsengine.groups import NO_TIME
from oddsengine.reasons import NAMES
from oddsengine.tape.blocks import VERSION, Kept, TapeError, encoded, head, json_of
from oddsengine.tape.files import CATALOGUE, Segment, segment_at, survey
from oddsengine.view import Wanted

SYNC = ("block", "segment", "never")
_NEW = f"{CATALOGUE}.new"  # before it takes the other's place


class TapeWriter:
    """Writes a tape; begins one or goes on with one.

    Steps are gathered and written as a block. Use as a context manager, or close it: what is gathered is written then.

    Parameters
    ----------
    path
        Its folder, made if it is not there. A torn end is cut off.
    sync
        When the system is told to put what was written on the disk: after every `block`, when a `segment` is closed,
        or `never`.
    block_rows, block_s
        A block is written when it holds so many quotes, or steps over so many seconds of their own time.
    segment_bytes
        A new segment is begun before one gets longer than this.

    Raises
    ------
    TapeError
        If the tape is damaged elsewhere than at its end.
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
            raise ValueError(f"sync must be one of {', '.join(SYNC)}, got {sync!r}")
        self._sync, self._rows, self._span, self._most = sync, block_rows, round(block_s * SECOND), segment_bytes
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        begun = any(path.name != _NEW for path in self.path.iterdir())
        self._segments = survey(self.path).segments if begun else []
        self._file: BinaryIO | None = None
        self._engine: Engine | None = None
        self._open = True
        self._broken = ""
        self._kept: list[Kept] = []
        self._notes: list[list[Any]] = []
        self._gathered = 0
        end = self._segments[-1] if self._segments else segment_at(0, 1, 0, 0)
        self._last, self._terms, self._books = end.last, end.terms, end.books
        if self._segments:
            self._continue()
        self._catalogue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def last(self) -> int:
        """Number of the last step that was recorded, written or not."""
        return self._last

    @property
    def written(self) -> int:
        """Number of the last step that is in a file."""
        return self._segments[-1].last if self._segments else 0

    @property
    def size(self) -> int:
        """Bytes of the tape."""
        return sum(segment.bytes for segment in self._segments)

    # ---- what the engine tells ----

    def follow(self, engine: Engine) -> None:
        """Record what an engine does from now on.

        Raises
        ------
        TapeError
            If the engine is not where the tape ends; see `resume`.
        """
        if engine.number != self._last or engine.told[1] != self._books or engine.told[0] > self._terms:
            raise TapeError(
                f"{self.path} ends with step {self._last}, and the engine is at step {engine.number} of something "
                f"else: a tape is gone on with by an engine that was restored from it"
            )
        if not self._last and engine.off:
            self._notes.append(["without", without(engine)])
        engine.record(self)
        self._engine = engine

    def batch(self, batch: Batch) -> None:
        """Record a batch that was applied; if this fails, nothing of it is recorded."""
        if not self._open:
            raise TapeError(f"{self.path} was closed, and records no more")
        if self._engine is not None and self._engine.number != self._last:
            self._take_back(self._engine.number)
        texts = (
            json_of([f"{row:016x}" for row in batch.removed.tolist()]), json_of(batch.complete), json_of(batch.events),
            json_of(batch.rejected), _compact(self._notes) if self._notes else None,
        )  # fmt: skip
        _unicode(batch)
        listed, known = None, self._terms
        if self._engine is not None and self._engine.told[0] != known:
            known = self._engine.told[0]
            listed = self._engine.wordings[:known]
        self._kept.append(Kept(batch, texts, listed, self._terms))
        self._gathered += batch.quoted.key.size
        self._last += 1
        self._terms = known + len(batch.wordings)
        self._books += len(batch.books)
        notes, self._notes = self._notes, []
        if self._gathered >= self._rows or batch.now - self._since >= self._span:
            try:
                self._write()
            except BaseException:
                self._forget()
                self._notes = notes
                raise

    def note(self, kind: str, wanted: Wanted) -> None:
        """Record that a view woke (`wake`) or fell asleep (`sleep`)."""
        self._notes.append([kind, wanted._asdict()])

    @property
    def _since(self) -> int:
        """Time of the first step that waits."""
        batch = self._kept[0].batch
        return int(NO_TIME) if batch is None else batch.now

    def _forget(self) -> None:
        """Make the last step that waits undone."""
        step = self._kept.pop()
        assert step.batch is not None
        self._gathered -= step.batch.quoted.key.size
        self._last -= 1
        self._terms = step.terms
        self._books -= len(step.batch.books)

    def _take_back(self, number: int) -> None:
        """Undo the last step, which the engine took back after it was recorded."""
        if number != self._last - 1 or not self._kept:
            raise TapeError(f"{self.path} is at step {self._last}, and the engine at {number}: they do not go together")
        notes = self._kept[-1].texts[-1]
        self._forget()
        self._notes = (json.loads(notes) if notes else []) + self._notes

    # ---- files ----

    def flush(self) -> None:
        """Write what is gathered, whatever it is."""
        if self._notes:
            notes, self._notes = self._notes, []
            self._kept.append(Kept(None, (None, None, None, None, _compact(notes)), None, self._terms))
            try:
                self._write()
            except BaseException:
                self._kept.pop()
                self._notes = notes
                raise
        elif self._kept:
            self._write()

    def close(self) -> None:
        """Write what is gathered, and end."""
        if not self._open:
            return
        if self._engine is not None:
            self._engine.stop_recording(self)
        self._open = False
        try:
            self.flush()
        finally:
            self._end_segment()
        self._catalogue()

    def _write(self) -> None:
        """Append a block; if that fails, the file is as it was."""
        if self._broken:
            raise TapeError(self._broken)
        before = self._segments[-1] if self._segments else segment_at(0, 1, 0, 0)
        block = encoded(before.last + 1, self._kept, self._terms, self._books)
        if self._file is None or (before.bytes and before.bytes + len(block) > self._most):
            self._begin_segment()
            before = self._segments[-1]
        assert self._file is not None
        self._append(self._file, block, before)
        written = head(block, before.bytes)
        assert written is not None
        self._segments[-1] = before.with_block(written)
        self._kept, self._gathered = [], 0

    def _append(self, file: BinaryIO, block: bytes, before: Segment) -> None:
        path = self.path / before.file
        if os.fstat(file.fileno()).st_size != before.bytes:
            raise TapeError(f"{path} was changed by somebody else while it was written")
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

    def _continue(self) -> None:
        """Cut off what is torn."""
        segment = self._segments[-1]
        path = self.path / segment.file
        self._file = path.open("ab", buffering=0)
        if path.stat().st_size > segment.bytes:
            self._file.truncate(segment.bytes)
            if self._sync != "never":
                os.fsync(self._file.fileno())

    def _begin_segment(self) -> None:
        """End the segment, if there is one, and begin the next."""
        before = self._segments[-1] if self._segments else segment_at(0, 1, 0, 0)
        if self._file is not None:
            self._end_segment()
            self._catalogue()
        segment = segment_at(len(self._segments) + 1, before.last + 1, before.terms, before.books)
        self._file = (self.path / segment.file).open("xb", buffering=0)
        self._segments.append(segment)
        self._sync_folder()

    def _end_segment(self) -> None:
        if self._file is not None:
            if self._sync != "never":
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def _catalogue(self) -> None:
        """Write the catalogue anew, whole or not at all."""
        lines = ",\n  ".join(json.dumps(segment._asdict()) for segment in self._segments)
        text = f'{{"format": {VERSION}, "segments": [\n  {lines}\n]}}\n' if lines else '{"format": 1, "segments": []}\n'
        new = self.path / _NEW
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            if self._sync != "never":
                file.flush()
                os.fsync(file.fileno())
        new.replace(self.path / CATALOGUE)
        self._sync_folder()

    def _sync_folder(self) -> None:
        if self._sync != "never":
            folder = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _compact(notes: list[list[Any]]) -> str:
    return json.dumps(notes, separators=(",", ":"))


def _unicode(batch: Batch) -> None:
    """Raise if a text cannot be written, while the batch can still be refused."""
    "".join(filter(None, batch.links)).encode()
    for wording in batch.wordings:
        "".join(filter(None, wording[:-1])).encode()
    "".join(batch.books).encode()


def without(engine: Engine) -> tuple[str, ...]:
    """Guards that are off, in their order."""
    return tuple(NAMES[code] for code in sorted(engine.off))
