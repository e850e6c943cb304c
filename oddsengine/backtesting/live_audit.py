"""An audit of the tapes of a node that goes on: each step is read once, and each game graded once.

`follow_tapes` reads what the tapes in a data folder have had since the last call, also of one that is being written,
and writes to the folder `truth`, each file atomically:

- `state`: where it has ended, as a snapshot of the engine; prices shown whose games are not graded yet; and closes.
- `weeks/2026-W48.parquet`: the graded prices of the games that began in that week; the last `WEEKS` are kept.
- `fills/2026-W48.parquet`: how many of the opportunities shown in that week could be had (`fill_record`).
- `references/2026-W48.parquet`: how good each book's prices were as a reference (`reference_samples.SUMS`).
- `report.json`: what is served (`truth_report`).

**What is shown.** The prices are those that a node lists by default, so none that are suspect. Tapes are played with
the constants that they were recorded with.

**Once.** A price counts when it first reaches a threshold, however many tapes it is in. A game is graded `SETTLE_S`
after its close, since a start can be put off and the close may be in the next tape; without a close, that long after
the start. A state that is damaged or of another version is not used: the tapes that are there are read again, and
prices that are graded stay as they are.
"""

import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from oddsengine.backtesting import fill_record
from oddsengine.backtesting.closes import Closes, newest
from oddsengine.backtesting.delays import Later
from oddsengine.backtesting.grading import BEFORE_START, SHOWN_SCHEMA, THRESHOLDS, grade_shown, with_closes
from oddsengine.backtesting.reference_samples import ReferenceSamples, sums_at_close
from oddsengine.backtesting.replay import span
from oddsengine.backtesting.shown import SHOWN_COLUMNS, ShownPrices
from oddsengine.backtesting.truth_report import start_of, truth_report, week_of
from oddsengine.catalog.fair_constants import fair_content, read_fair_table
from oddsengine.columns import SECOND
from oddsengine.history.truth_file import TRUTH, TruthReport, encoded_report, report_file
from oddsengine.live.engine import Engine
from oddsengine.live.snapshot import dump, restore
from oddsengine.live.update import Update
from oddsengine.progress import ticking
from oddsengine.tables.files import write_whole
from oddsengine.tape import Tape, TapeError, engine_for

if sys.platform != "win32":
    import fcntl

TAPES = "tapes"
WEEKS = 26
SETTLE_S = 6 * 3600
_FORMAT = 1
_SAVED_EVERY = 86_400 * SECOND  # of a tape's time
_KEY, _REFERENCE = ["ident", "threshold"], ["event", "book", "market"]


class _State(msgspec.Struct):
    """Where the audit has ended."""

    format: int = _FORMAT
    tape: str = ""  # the one that was read last
    step: int = 0
    now: int | None = None  # of its last step
    fair: dict[str, Any] = {}  # constants in force then
    engine: dict[str, Any] | None = None  # a snapshot
    pending: bytes = b""  # prices shown, and what the board said of them
    closes: bytes = b""
    samples: bytes = b""  # of what books said some hours before
    left_out: dict[str, str] = {}  # tapes that could not be read


class _Weeks:
    """A folder with a Parquet file for each ISO week, in which each row of a key is kept as it came first."""

    def __init__(self, folder: Path, key: list[str]) -> None:
        self._folder, self._key = folder, key
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, columns: list[str] | None = None, newest: int = WEEKS) -> pl.DataFrame:
        """The rows of the newest weeks; no columns if there are none."""
        parts = sorted(self._folder.glob("*.parquet"))[-newest:]
        weeks = [self._week(part, columns) for part in parts]
        return pl.concat(weeks, how="diagonal_relaxed") if parts else pl.DataFrame()

    def add(self, rows: pl.DataFrame, start: pl.Expr) -> None:
        """Add rows to the weeks of their starts, in unix seconds; those of a game that is put off are kept once."""
        for (week,), part in rows.with_columns(week=week_of(start)).partition_by("week", as_dict=True).items():
            path = self._folder / f"{week}.parquet"
            new = part.drop("week")
            known = self.read(self._key, newest=3)
            if known.height:
                new = new.join(known, on=self._key, how="anti", maintain_order="left")
            if path.exists():
                new = pl.concat([self._week(path), new], how="diagonal_relaxed")
            buffer = io.BytesIO()
            new.unique(self._key, keep="first", maintain_order=True).write_parquet(buffer)
            write_whole(path, buffer.getvalue())
        for old in sorted(self._folder.glob("*.parquet"))[:-WEEKS]:
            old.unlink()

    def _week(self, path: Path, columns: list[str] | None = None) -> pl.DataFrame:
        try:
            week = pl.read_parquet(path, columns=columns)
            week.select(self._key)
        except pl.exceptions.PolarsError as error:
            why = str(error).splitlines()[0]
            raise ValueError(f"{path} cannot be read: {why}; delete it to go on without its games") from None
        return week


class _Files:
    """The files of an audit in a data folder."""

    def __init__(self, folder: Path) -> None:
        self.home, self.report = folder / TRUTH, report_file(folder)
        self.graded = _Weeks(self.home / "weeks", _KEY)
        self.references = _Weeks(self.home / "references", _REFERENCE)
        self.fills = _Weeks(self.home / "fills", fill_record.KEY)

    def state(self) -> _State:
        """The state of the last call; an empty one if there is none that can be used."""
        with suppress(OSError, zlib.error, msgspec.DecodeError):
            found = msgspec.msgpack.decode(zlib.decompress((self.home / "state").read_bytes()), type=_State)
            if found.format == _FORMAT:
                return found
        return _State()

    def put_state(self, state: _State) -> None:
        write_whole(self.home / "state", zlib.compress(msgspec.msgpack.encode(state), 1))


def reference_sums(folder: str | os.PathLike[str]) -> pl.DataFrame:
    """What the record in a data folder says of books as references (`reference_samples.SUMS`); maybe no rows."""
    home = Path(folder) / TRUTH / "references"
    return _Weeks(home, _REFERENCE).read() if home.is_dir() else pl.DataFrame()


def follow_tapes(folder: str | os.PathLike[str], *, progress: bool = False) -> TruthReport:
    """Read what is new on the tapes of a data folder, grade the games that are over, and write the report.

    Parameters
    ----------
    folder
        The data folder of a node that records tapes.
    progress
        Show a bar on standard error.

    Raises
    ------
    ValueError
        If the folder has no tapes, or another process does this for it.
    """
    paths = _tapes(Path(folder))
    files = _Files(Path(folder))
    with _alone(files.home):
        state = files.state()
        for path in [path for path in paths if path.name >= state.tape]:
            try:
                _follow(path, state, files, progress=progress)
                state.left_out.pop(path.name, None)
            except (TapeError, OSError) as error:  # the node may delete old ones
                state.left_out[path.name] = str(error)
        state.left_out = {name: why for name, why in state.left_out.items() if name in {path.name for path in paths}}
        return _report(state, files)


def _tapes(folder: Path) -> list[Path]:
    """The tapes of a data folder, oldest first: they are named after the start of the node."""
    home = folder / TAPES
    paths = sorted(path for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
    if not paths:
        raise ValueError(f"{folder} has no tapes; set tape = true in [data] to record them")
    return paths


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Let no other process write here meanwhile, if the file system supports locks."""
    file = os.open(home, os.O_RDONLY)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{home} is written by another process; only one can audit a data folder") from None
        except OSError:
            pass
        yield
    finally:
        os.close(file)


def _follow(path: Path, state: _State, files: _Files, *, progress: bool) -> None:
    """Play what is new on a tape; save where it ends, and at least once for each day of its time."""
    tape = Tape(path)
    if not tape.steps or (state.tape == path.name and tape.last <= state.step):
        return
    engine = _engine(tape, state)
    collected = _Collected(engine, state, files)
    prices, saved = 0, None
    try:
        with ticking(span(tape), progress=progress) as tick:
            for step in tape.between(after=engine.number):
                for kind, value in step.notes:
                    if kind == "fair":
                        engine.fair = read_fair_table(value)
                now = step.batch.now
                collected.follow(now, engine.feed(step.batch))
                prices += step.batch.quoted.key.size
                tick(now, prices)
                saved = now if saved is None else saved
                if now - saved >= _SAVED_EVERY:
                    collected.save(path.name)
                    saved = now
    except TapeError:
        if saved is not None:  # what is before the damage counts
            collected.save(path.name)
        raise
    collected.save(path.name)


def _engine(tape: Tape, state: _State) -> Engine:
    """An engine where the last call has ended, or at the beginning of a tape."""
    if state.tape == tape.path.name and state.engine is not None:
        engine = engine_for(tape, fair=read_fair_table(state.fair))
        with suppress(ValueError):  # of another version
            restore(engine, state.engine)
            return engine
    return engine_for(tape)


class _Collected:
    """What a tape showed: prices, and closes."""

    def __init__(self, engine: Engine, state: _State, files: _Files) -> None:
        self._engine, self._state, self._files = engine, state, files
        self._pending, self._closes = _read_frame(state.pending), _read_frame(state.closes)
        reached: dict[int, int] = {}
        for frame in (self._pending, files.graded.read(_KEY, newest=3)):  # a game may be put off by days
            for (ident,) in frame.select("ident").iter_rows() if frame.height else ():
                reached[ident] = reached.get(ident, 0) + 1
        view = engine.view(kinds=("ev",), min_ev=0.0, keep=True)
        self._shown = ShownPrices(engine, view, THRESHOLDS, Later(engine, (), every_step=True), reached)
        self._closing = Closes(engine)
        self._samples = _read_frame(state.samples)
        done = self._samples.group_by("event_id").agg(pl.col("done").max()) if self._samples.height else self._samples
        self._sampling = ReferenceSamples(engine, dict(done.iter_rows()))
        self._fills = fill_record.FillRecord(engine)
        self._now = 0

    def follow(self, now: int, update: Update) -> None:
        """Process a step."""
        self._now = now
        self._shown.follow(now, update)
        self._closing.follow(now)
        self._sampling.follow(now)
        self._fills.follow(update)

    def save(self, tape: str) -> None:
        """Grade the games that are over, and save the rest with where the tape was read to."""
        self._pending = _with_facts(pl.concat([self._pending, self._shown.take()], how="diagonal_relaxed"))
        self._samples = pl.concat([self._samples, *self._sampling.take()], how="diagonal_relaxed")
        closes = [self._closes, self._closing.take_closed(everything=True)]
        found = pl.concat([each for each in closes if each is not None], how="diagonal_relaxed")
        self._closes = newest(found) if found.height else found
        self._grade()
        filled = self._fills.take()
        if filled.height:
            self._files.fills.add(filled, fill_record.start_seconds())
        state, engine = self._state, self._engine
        state.tape, state.step, state.now = tape, engine.number, self._now
        state.fair, state.engine = fair_content(engine.fair), dump(engine)
        state.pending, state.closes = _frame_bytes(self._pending), _frame_bytes(self._closes)
        state.samples = _frame_bytes(self._samples)
        self._files.put_state(state)

    def _grade(self) -> None:
        """Grade games whose close, or start without one, is long ago, and drop their rows."""
        over = pl.col("at") + SETTLE_S * SECOND <= self._now
        times = [
            (self._pending, pl.col("event_start_time").to_physical().max()), (self._samples, pl.col("start").max()),
            (self._closes, pl.col("snapshot_at").max()),
        ]  # fmt: skip
        begins = [frame.group_by("event_id").agg(at=at) for frame, at in times if frame.height]
        if not begins:
            return
        ended = pl.concat(begins).group_by("event_id").agg(pl.col("at").max()).filter(over)["event_id"].implode()
        ends, table = pl.col("event_id").is_in(ended), self._engine.fair
        (shown, self._pending), (samples, self._samples), (closed, self._closes) = (
            (frame.filter(ends), frame.filter(~ends)) if frame.height else (frame, frame)
            for frame in (self._pending, self._samples, self._closes)
        )
        closes = closed if closed.height else None
        if shown.height:
            graded = grade_shown(with_closes(shown, closes, table), None, None, table)
            self._files.graded.add(graded.with_columns(shown["ident"]), start_of())
        if samples.height:
            self._files.references.add(sums_at_close(samples, closes, table), pl.col("start") // SECOND)


def _with_facts(shown: pl.DataFrame) -> pl.DataFrame:
    """Prices shown before the start, once for each threshold, each with what the board said when it was new.

    Those of which that is not known are of games that are graded.
    """
    if "event_id" not in shown.columns:
        return pl.DataFrame()
    own = [name for name in shown.columns if name in SHOWN_COLUMNS]
    facts = shown.filter(pl.col("event_id").is_not_null()).drop(name for name in own if name != "ident")
    rows = shown.select(own).unique(_KEY, keep="first", maintain_order=True)
    first = facts.unique("ident", keep="first", maintain_order=True)
    return rows.join(first, on="ident", how="inner", maintain_order="left").filter(BEFORE_START)


def _frame_bytes(frame: pl.DataFrame) -> bytes:
    if not frame.height:
        return b""
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return buffer.getvalue()


def _read_frame(content: bytes) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(content)) if content else pl.DataFrame()


def _report(state: _State, files: _Files) -> TruthReport:
    """Write the report of what is graded."""
    graded, sums = files.graded.read(), files.references.read()
    shown = graded if graded.height else pl.DataFrame(schema=SHOWN_SCHEMA)
    pending = _read_frame(state.pending)
    waiting = pending["event_id"].n_unique() if pending.height else 0
    name = str(state.fair.get("name", ""))
    left_out = [f"{tape}: {why}" for tape, why in sorted(state.left_out.items())]
    shares = fill_record.fill_shares(files.fills.read())
    report = truth_report(shown, sums, shares, state.now, name, waiting, left_out)
    write_whole(files.report, encoded_report(report))
    return report
