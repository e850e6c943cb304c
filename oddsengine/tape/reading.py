"""Reading a tape."""

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl

from oddsengine.catalog import FairTable, read_fair_table
from oddsengine.columns import NO_TIME
from oddsengine.live.engine import Engine
from oddsengine.plugins import GUARDS, find
from oddsengine.tables.timestamps import micros, time_of
from oddsengine.tape.blocks import HEADER, Block, Note, TapeError, TapeStep, decoded, head, whole
from oddsengine.tape.quote_rows import FRAME_SCHEMA, price_rows
from oddsengine.tape.recovery import Segment, follows, segment_at, survey


class Tape:
    """A tape, opened for reading.

    Parameters
    ----------
    path
        Its folder.

    Raises
    ------
    TapeError
        If there is no tape, or it is damaged other than at its end. Segments listed in `catalogue.json` are checked
        when they are read.

    Examples
    --------
    >>> import tempfile
    >>> from oddsengine import World, resume
    >>> path = tempfile.mkdtemp()
    >>> engine, writer = resume(path)
    >>> with writer:
    ...     steps = [engine.step(batch.quotes, batch.now) for batch in World(7, events=2).run(3)]
    >>> tape = Tape(path)
    >>> tape.steps, tape.until - tape.since, tape.frame().height == tape.quotes
    (4, datetime.timedelta(seconds=3), True)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        files = survey(self.path)
        self._segments, self._tail = files.segments, files.last
        self.torn = files.torn
        """Description of a torn end; None if the tape is complete."""

    def __repr__(self) -> str:
        return f"<Tape {self.path}: {self.steps:,} steps, {self.quotes:,} quotes{'; torn' if self.torn else ''}>"

    @property
    def steps(self) -> int:
        return sum(segment.steps for segment in self._segments)

    @property
    def quotes(self) -> int:
        return sum(segment.quotes for segment in self._segments)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return sum(segment.bytes for segment in self._segments)

    @property
    def first(self) -> int:
        """Number of the first step; 0 if the tape is empty."""
        return self._segments[0].first if self.steps else 0

    @property
    def last(self) -> int:
        """Number of the last step; 0 if the tape is empty."""
        return self._segments[-1].last if self._segments else 0

    @property
    def since(self) -> datetime | None:
        """Time of the first step."""
        return next((time_of(s.first_now) for s in self._segments if s.first_now is not None), None)

    @property
    def until(self) -> datetime | None:
        """Time of the last step."""
        return next((time_of(s.last_now) for s in reversed(self._segments) if s.last_now is not None), None)

    @property
    def without(self) -> tuple[str, ...]:
        """Disabled guards, changed thresholds (`name=value`) and guards of plugins (`name=True`) of the engine."""
        return next((content for kind, content in reversed(self._first_notes()) if kind == "without"), ())

    @property
    def fair(self) -> FairTable | None:
        """Fair-price constants of the recorded engine; None on tapes without them."""
        constants = next((content for kind, content in self._first_notes() if kind == "fair"), None)
        return None if constants is None else read_fair_table(constants)

    def _first_notes(self) -> list[Note]:
        first = next(iter(self), None)
        return self.closing if first is None else first.notes

    @property
    def closing(self) -> list[Note]:
        """Notes after the last step."""
        if not self._tail:
            return []
        block = self._tail[-1]
        with (self.path / self._segments[-1].file).open("rb") as file:
            file.seek(block.offset)
            *_, last = decoded(block, file.read(block.end - block.offset))
        return [] if isinstance(last, TapeStep) else last

    def __iter__(self) -> Iterator[TapeStep]:
        return self.between()

    def between(
        self, since: datetime | None = None, until: datetime | None = None, *, after: int = 0
    ) -> Iterator[TapeStep]:
        """Iterate over the steps between two times, inclusive, and after a step number.

        Parameters
        ----------
        since, until
            The first and the last time, inclusive; None is that of the tape.
        after
            Leave out the steps up to this number.
        """
        low = int(NO_TIME) if since is None else micros(since)
        high = np.iinfo(np.int64).max if until is None else micros(until)
        notes: list[Note] = []
        for segment in self._segments:
            if segment.last < after or (segment.first_now is not None and segment.first_now > high):
                continue
            if segment.last_now is not None and segment.last_now < low:
                continue
            for item in self._read(segment, after, low, high):
                if not isinstance(item, TapeStep):
                    notes = notes + item
                    continue
                if item.number > after and low <= item.batch.now <= high:
                    yield item._replace(notes=notes + item.notes)
                notes = []

    def frame(
        self, where: pl.Expr | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> pl.DataFrame:
        """Return the recorded prices as one frame, in order of time: a history for `backtest`, `audit` and others.

        Rows that left the board, because their source removed them or they were too old, are in it as suspended. The
        tape is replayed from its beginning, so that this takes as long as `replay`. Only the rows selected by `where`
        are held, beside a quarter of a million others: about 200 bytes each.

        Parameters
        ----------
        where
            Rows to keep, as an expression over the columns below; None keeps all.
        since, until
            First and last time of recording, inclusive.

        Returns
        -------
        polars.DataFrame
            One row per quote: `recorded_at`, the time of the step, and those columns of `ODDS_SCHEMA` that a tape has:
            event, market, outcome, book and price, `last_seen_at`, `odds_changed_at`, `max_bet` and flags.

        Raises
        ------
        TapeError
            If the tape is damaged.

        Examples
        --------
        >>> import tempfile
        >>> import oddsengine as oe
        >>> folder = tempfile.mkdtemp() + "/tape"
        >>> engine, writer = oe.resume(folder)
        >>> with writer:
        ...     for batch in oe.World(5, events=2).run(3):
        ...         _ = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        >>> prices = oe.Tape(folder).frame(pl.col("sportsbook") == "pinnacle")
        >>> prices["sportsbook"].unique().to_list(), prices["recorded_at"].n_unique()
        (['pinnacle'], 2)
        """
        low = int(NO_TIME) if since is None else micros(since)
        engine = engine_for(self, judges=False)
        kept = [
            rows if where is None else rows.filter(where)
            for rows in price_rows(self.between(until=until), engine, since=low)
        ]
        return pl.concat([pl.DataFrame(schema=FRAME_SCHEMA), *kept])

    def _read(self, segment: Segment, after: int, low: int, high: int) -> Iterator[TapeStep | list[Note]]:
        """Read the steps of a segment, skipping blocks outside the limits."""
        path = self.path / segment.file
        now = segment_at(0, segment.first, 0, 0)
        with path.open("rb") as file:
            while now.bytes < segment.bytes:
                block = self._next(file, now, path)
                now = now.with_block(block)
                if block.steps and (now.last <= after or block.until < low or block.since > high):
                    file.seek(block.end)
                    continue
                file.seek(block.offset)
                data = file.read(block.end - block.offset)
                if whole(data, block.offset) is None:
                    raise TapeError(f"{path} is damaged at byte {block.offset:,}: its checksum is wrong")
                yield from decoded(block, data)

    def _next(self, file: BinaryIO, now: Segment, path: Path) -> Block:
        block = head(file.read(HEADER.size), now.bytes)
        if block is None:
            raise TapeError(f"{path} is damaged at byte {now.bytes:,}: expected a block")
        follows(block, path, now)
        return block


RUNS = "=True"
"""What `Tape.without` has after the name of a guard of a plugin."""


def engine_for(tape: Tape, *, fair: FairTable | None = None, judges: bool = True) -> Engine:
    """Create an engine with the guards and, unless given, the fair-price constants of the recorded one.

    One that does not judge needs no guards of plugins. Raises `TapeError` if such a guard is not installed.
    """
    guards: dict[str, float | bool] = {}
    for text in tape.without:
        name, changed, value = text.partition("=")
        if not text.endswith(RUNS):
            guards[name] = float(value) if changed else False
        elif judges:
            guards[name] = True
            if find(GUARDS, name) is None:
                raise TapeError(f"{tape.path} was recorded with the guard {name!r} of a package that is not installed")
    return Engine(guards=guards, fair=fair or tape.fair)
