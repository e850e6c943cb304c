"""Replay a tape, and resume recording it."""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from oddsengine.catalog import FairTable, read_fair_table
from oddsengine.columns import NO_TIME
from oddsengine.live.engine import Engine
from oddsengine.live.key import ViewKey
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.tables.timestamps import micros
from oddsengine.tape.blocks import Note, TapeError, TapeStep
from oddsengine.tape.reading import RUNS, Tape, engine_for
from oddsengine.tape.writing import TapeWriter, without


def replay(
    tape: Tape | str | os.PathLike[str],
    engine: Engine | None = None,
    *,
    on_update: Callable[[Update], None] | None = None,
    until: datetime | None = None,
) -> Engine:
    """Replay a tape.

    Views are resumed and suspended as recorded. Views that were active at the end stay active until they have not been
    read for a while.

    Parameters
    ----------
    tape
        A tape or its folder.
    engine
        Engine at a step of this tape, which continues from there; None creates an engine with the recorded guards and
        fair-price constants. Views that are already active stay active.
    on_update
        Called with each update.
    until
        Last time to replay; None replays to the end.

    Raises
    ------
    TapeError
        If the tape is damaged, does not continue the engine's step, or was recorded with other guards.

    Examples
    --------
    >>> import tempfile
    >>> from oddsengine import World
    >>> path = tempfile.mkdtemp()
    >>> engine, writer = resume(path)
    >>> with writer:
    ...     steps = [engine.step(batch.quotes, batch.now) for batch in World(7, events=2).run(3)]
    >>> numbers = []
    >>> again = replay(path, on_update=lambda update: numbers.append(update.number))
    >>> numbers, again.state_hash() == engine.state_hash()
    ([1, 2, 3, 4], True)
    """
    tape = tape if isinstance(tape, Tape) else Tape(tape)
    engine = engine_for(tape) if engine is None else engine
    for _, update in play(tape, engine, until=until):
        if on_update is not None:
            on_update(update)
    return engine


def play(tape: Tape, engine: Engine, *, until: datetime | None = None) -> Iterator[tuple[TapeStep, Update]]:
    """Replay step by step, yielding each recorded step and its update."""
    off, own = tape.without, without(engine.guards)
    off = tuple(text for text in off if text.removesuffix(RUNS) not in engine.stopped_guards)
    if own != off:
        raise TapeError(
            f"{tape.path} was recorded with guards disabled: {', '.join(off) or '(none)'}, "
            f"but the engine has disabled {', '.join(own) or '(none)'}"
        )
    if engine.number + 1 < tape.first:
        raise TapeError(f"{tape.path} starts at step {tape.first}, but the engine is at step {engine.number}")
    watch = _ViewKeeper(engine, tape.fair)
    try:
        for step in tape.between(until=until, after=engine.number):
            watch.apply(step.notes)
            yield step, engine.feed(step.batch)
        if engine.number == tape.last:
            watch.apply(tape.closing)
    finally:
        watch.leave()


class _ViewKeeper:
    """Resumes and suspends views as recorded on the tape."""

    def __init__(self, engine: Engine, fair: FairTable | None) -> None:
        self._engine = engine
        self._fair = fair is not None and fair == engine.fair  # else the engine has its own constants
        self._others = {view.wanted for view in engine.views}
        self._held: dict[ViewKey, View] = {}

    def apply(self, notes: Sequence[Note]) -> None:
        for kind, value in notes:
            if kind == "fair":
                table = read_fair_table(value)
                if self._fair and table != self._engine.fair:
                    self._engine.fair = table
                continue
            if kind == "without":
                for guard in self._engine.plugin_guards:
                    if guard.name + RUNS not in value:
                        self._engine.stop_guard(guard.name)
                continue
            if value in self._others:
                continue
            if kind == "wake":
                parameters = value.content | {"sharp": value.reference, "commission": dict(value.commission)}
                self._held[value] = self._engine.view(**parameters, keep=True)
            elif value in self._held:
                self._engine.close(self._held.pop(value))

    def leave(self) -> None:
        """Let views be suspended as usual when they are not read."""
        now = self._engine.now
        for view in self._held.values():
            view.kept, view.restored = 0, False
            view.read_at = int(NO_TIME) if now is None else micros(now)


def resume(
    path: str | os.PathLike[str],
    engine: Engine | None = None,
    *,
    sync: str = "block",
    block_rows: int = 20_000,
    block_s: float = 1.0,
    segment_bytes: int = 64 << 20,
    on_update: Callable[[Update], None] | None = None,
) -> tuple[Engine, TapeWriter]:
    """Continue or create a tape: returns an engine at the end of the tape, and its writer.

    Parameters
    ----------
    path
        Folder of the tape, created if missing.
    engine, on_update
        As for `replay`.
    sync, block_rows, block_s, segment_bytes
        As for `TapeWriter`.

    Examples
    --------
    >>> import tempfile
    >>> from oddsengine import World
    >>> path = tempfile.mkdtemp()
    >>> engine, writer = resume(path)
    >>> with writer:  # what is written when it is left is all
    ...     steps = [engine.step(batch.quotes, batch.now) for batch in World(7, events=2).run(3)]
    >>> engine, writer = resume(path)
    >>> writer.close()
    >>> engine.number
    4
    """
    writer = TapeWriter(path, sync=sync, block_rows=block_rows, block_s=block_s, segment_bytes=segment_bytes)
    try:
        tape = Tape(path)  # with the torn end removed
        engine = replay(tape, engine, on_update=on_update) if tape.steps or engine is None else engine
        writer.follow(engine)
    except BaseException:
        writer.close()
        raise
    return engine, writer
