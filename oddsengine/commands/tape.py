"""The commands on tapes: `record`, `replay`, `archive`."""

import argparse
import json
import math
import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NamedTuple, Self

import msgspec

from oddsengine.board.state import Batch
from oddsengine.bounds import excerpt
from oddsengine.commands.output import counted, echo, wrapped
from oddsengine.commands.report import format_time
from oddsengine.history.archive import archived, compact, rows_of, write
from oddsengine.live.engine import Engine
from oddsengine.live.key import ViewKey
from oddsengine.live.recorder import Recorder
from oddsengine.live.view import View
from oddsengine.progress import Progress
from oddsengine.simulate import World
from oddsengine.tape import Tape, TapeError, engine_for, play, resume

_SHOWN = 60  # characters of an invalid line in messages


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """One batch as a line of JSON."""

    now: datetime | None = None
    quotes: msgspec.Raw = msgspec.Raw(b"[]")
    removed: list[str] = []
    complete: list[str | tuple[str, str | None]] = []
    events: list[dict[str, Any]] = []


class _BatchItem(NamedTuple):
    """A batch to record, the progress so far, and its name in error messages."""

    batch: Mapping[str, Any]
    done: float | None
    name: str


class _DeferredInterrupt:
    """Defers an interruption while `busy`, so that a step is never partial."""

    def __init__(self) -> None:
        self.busy = self.interrupted = False
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        if not self.busy:
            self.busy = True  # a second interruption is not deferred
            raise KeyboardInterrupt


def record_command(arguments: argparse.Namespace) -> None:
    if (arguments.source is None) == (arguments.simulate is None):
        word = "neither" if arguments.source is None else "both"
        raise ValueError(f"give either --from or --simulate, got {word}")
    began, interrupted, tally = time.perf_counter(), False, _Counter()
    is_new = not os.path.lexists(arguments.tape)
    with ExitStack() as stack:
        interrupt = stack.enter_context(_DeferredInterrupt())
        if arguments.source is None:
            batches = _simulated(arguments)
        elif arguments.source == "-":
            batches = _parsed(sys.stdin.buffer, "standard input", 0)
        else:
            file = stack.enter_context(open(arguments.source, "rb"))
            batches = _parsed(file, arguments.source, os.fstat(file.fileno()).st_size)
        with Progress("steps") as restoring:
            engine, writer = resume(
                arguments.tape, sync=arguments.sync,
                on_update=lambda update: restoring(None, update.number, f"restoring {arguments.tape}"),
            )  # fmt: skip
        if writer.torn:
            print(f"oddsengine record: {writer.torn}; the incomplete end was removed", file=sys.stderr)
        before = engine.number
        try:
            with writer, Progress("quotes") as progress:
                engine.record(tally)
                engine.view(keep=True)
                for item in batches:
                    interrupt.busy = True
                    _step(engine, item, before if arguments.source is None else 0)
                    done = counted(engine.number - before, "batch", "batches")
                    progress(item.done, tally.quotes, _time(engine.now), done)
                    interrupt.busy = False
                    if interrupt.interrupted:
                        raise KeyboardInterrupt
                interrupt.busy = True
        except KeyboardInterrupt:
            interrupted = True
        except _BatchError as error:
            if engine.number:
                raise ValueError(f"{error}; the batches before it were recorded") from None
            if is_new:
                shutil.rmtree(arguments.tape)
            raise ValueError(f"{error}; nothing was recorded") from None
    tape, spent = Tape(arguments.tape), time.perf_counter() - began
    lines = [] if tape.last > before or interrupted else [_why_nothing(arguments)]
    lines += [
        f"{counted(tape.last - before, 'batch', 'batches')} with {counted(tally.quotes, 'quote')} recorded "
        f"in {spent:.2f} s" + (", until interrupted" if interrupted else ""),
        f"{tape.path}: {_contents(tape)}; {tape.size / 1e6:,.1f} MB",
        f"state hash {engine.state_hash()}",
    ]
    echo(wrapped(lines) + "\n")
    if interrupted:
        raise KeyboardInterrupt


def _why_nothing(arguments: argparse.Namespace) -> str:
    if arguments.source is not None:
        return f"nothing was recorded: {arguments.source} has no batches"
    return (
        f"nothing was recorded: a simulation always starts at the same time, and the tape already covers its first "
        f"{arguments.seconds:,} s; use a larger --seconds"
    )


class _Counter(Recorder):
    """Counts recorded batches."""

    def __init__(self) -> None:
        self.quotes = 0

    def batch(self, batch: Batch, suspended: Sequence[ViewKey] = ()) -> None:
        self.quotes += batch.quoted.key.size


class _BatchError(ValueError):
    """A batch that cannot be applied; the message names it and the reason."""


def _step(engine: Engine, item: _BatchItem, before: int) -> None:
    """Apply one batch, unless it was already recorded (`before`)."""
    if before and engine.now is not None and item.batch["now"] <= engine.now:
        return
    try:
        engine.step(**item.batch)
    except TapeError:
        raise
    except (ValueError, TypeError) as error:
        raise _BatchError(f"{item.name}: {error}") from None


def _simulated(arguments: argparse.Namespace) -> Iterator[_BatchItem]:
    world = World(arguments.simulate, events=arguments.events, hazards=arguments.hazards)
    for at, batch in enumerate(world.run(arguments.seconds)):
        yield _BatchItem(batch._asdict(), at / max(arguments.seconds, 1.0), f"batch {at + 1} of the simulation")


def _parsed(file: BinaryIO, name: str, size: int) -> Iterator[_BatchItem]:
    decoder = msgspec.json.Decoder(_Line)
    read = 0
    for number, text in enumerate(file, 1):
        read += len(text)
        if not text.strip():
            continue
        where = f"{name}, line {number}"
        try:
            item = decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            start = text.decode("utf-8", "replace").strip()
            excerpt = start if len(start) <= _SHOWN else start[:_SHOWN] + "..."
            raise _BatchError(f"{where} is not a batch ({error}): {excerpt}") from None
        batch = {name: getattr(item, name) for name in ("now", "removed", "complete", "events")}
        yield _BatchItem({**batch, "quotes": bytes(item.quotes)}, read / size if size else None, where)


def replay_command(arguments: argparse.Namespace) -> None:
    tape = Tape(arguments.tape)
    since, until = arguments.since, arguments.to
    if since is not None and until is not None and until < since:
        raise ValueError(f"--to {_time(until)} is before --from {_time(since)}")
    began = time.perf_counter()
    engine = engine_for(tape)
    seen: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    with ExitStack() as stack:
        out = _output(arguments.updates, stack)
        progress = stack.enter_context(Progress("quotes"))
        pace = _Pace(arguments.speed)
        for step, update in play(tape, engine, until=until):
            now = engine.now
            assert now is not None
            due = since is None or now >= since
            seen.update(steps=1, quotes=step.batch.quoted.key.size, late=update.late, shown=due)
            refused.update(step.batch.rejected)
            refused.update(dict(update.rejected.group_by("guard").len().iter_rows()))
            if due:
                pace(update.now)
                if out is not None:
                    views = engine.views
                    out.write(update.json(views[0] if views else None) + b"\n")
            progress(_done(tape, until, seen["steps"], now), seen["quotes"], _time(now))
        if out is not None:
            out.flush()
    spent = time.perf_counter() - began
    first = tape.since if seen["steps"] else None
    facts = {
        "steps": seen["steps"],
        "shown": seen["shown"],
        "quotes": seen["quotes"],
        "since": None if first is None else format_time(first),
        "until": None if engine.now is None else format_time(engine.now),
        "rows": engine.table().height,
        "views": [_described(view) for view in engine.views],
        "late": seen["late"],
        "refused": dict(sorted(refused.items())),
        "state_hash": engine.state_hash(),
        "torn": tape.torn,
    }
    if arguments.json:
        text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    else:
        text = wrapped(_summary(facts, spent)) + "\n"
    if arguments.updates == "-":
        sys.stderr.write(text)
    else:
        echo(text)


def _done(tape: Tape, until: datetime | None, steps: int, now: datetime) -> float:
    """Return the progress of a replay, by steps, or by time if it ends early."""
    since, end = tape.since, tape.until
    if until is None or since is None or end is None or until >= end:
        return steps / max(tape.steps, 1)
    return (now - since) / max(until - since, timedelta(microseconds=1))


def _output(path: str | None, stack: ExitStack) -> BinaryIO | None:
    if path is None or path == "-":
        return None if path is None else sys.stdout.buffer
    return stack.enter_context(Path(path).open("wb"))


class _Pace:
    """Waits until the tape's time, divided by the speed, has passed."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._first: int | None = None
        self._began = 0.0

    def __call__(self, now: int) -> None:
        if math.isinf(self._speed):
            return
        if self._first is None:
            self._first, self._began = now, time.monotonic()
        wait = self._began + (now - self._first) / 1e6 / self._speed - time.monotonic()
        if wait > 0.0:
            time.sleep(wait)


def _described(view: View) -> dict[str, Any]:
    """Describe a view and the number of open opportunities in it."""
    spec = view.wanted
    counts = {kind: len(ids) for kind, ids in view.ids().items()}
    return {"books": spec.books, "sharp": spec.sharp, "method": spec.method, "open": counts}


def _summary(facts: Mapping[str, Any], spent: float) -> list[str]:
    steps, shown = counted(facts["steps"], "step"), facts["shown"]
    steps += f" ({shown:,} shown)" if shown < facts["steps"] else ""
    when = f", {facts['since']} to {facts['until']}" if facts["steps"] else ""
    lines = [f"{steps}, {counted(facts['quotes'], 'quote')}{when}; {spent:.2f} s"]
    refused = _listed(facts["refused"])
    lines.append(
        f"{facts['rows']:,} prices on the board; {facts['late']:,} quotes were late, "
        f"{sum(facts['refused'].values()):,} refused" + (f": {refused}" if refused else "")
    )
    for view in facts["views"]:
        books = "all books" if view["books"] is None else ", ".join(view["books"])
        lines.append(f"open over {books} ({view['method']}): {_listed(view['open'])}")
    if not facts["views"]:
        lines.append("no view is active")
    lines.append(f"state hash {facts['state_hash']}")
    return lines + ([f"torn: {facts['torn']}"] if facts["torn"] else [])


def _contents(tape: Tape) -> str:
    since, until = tape.since, tape.until
    when = "" if since is None or until is None else f", {format_time(since)} to {format_time(until)}"
    return f"{counted(tape.steps, 'step')}, {counted(tape.quotes, 'quote')}{when}"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in counts.items())


def _time(now: datetime | None) -> str:
    return "" if now is None else f"{now:%Y-%m-%d %H:%M:%S}"


def archive_command(arguments: argparse.Namespace) -> None:
    folder, began, options = Path(arguments.tapes), time.monotonic(), storage_options(arguments)
    tapes = [folder] if any(folder.glob("*.tape")) else sorted(path.parent for path in folder.glob("*/00000001.tape"))
    if not tapes:
        raise TapeError(f"{folder} is not a tape or a folder of tapes")
    quotes, pieces = 0, 0
    for path in tapes:
        after = archived(arguments.dest, path.name, options)
        for last, rows in rows_of(Tape(path), after):
            write(rows, arguments.dest, path.name, last, options, after=after)
            quotes, pieces, after = quotes + rows.height, pieces + 1, last
    took = time.monotonic() - began
    if arguments.json:
        echo(json.dumps({"tapes": len(tapes), "quotes": quotes, "pieces": pieces, "seconds": round(took, 3)}) + "\n")
    else:
        source = f"{counted(quotes, 'quote')} from {counted(len(tapes), 'tape')}"
        echo(f"{source} in {counted(pieces, 'commit')}, {took:.2f} s\n")


def compact_command(arguments: argparse.Namespace) -> None:
    began = time.monotonic()
    done = compact(arguments.dest, arguments.keep_hours, storage_options(arguments))
    took = time.monotonic() - began
    if arguments.json:
        echo(json.dumps({**done._asdict(), "seconds": round(took, 3)}) + "\n")
    else:
        echo(
            f"{done.before:,} files of {done.partitions:,} days and sports merged into {done.after:,}, "
            f"{done.deleted:,} old files deleted, {took:.2f} s\n"
        )


def storage_options(arguments: argparse.Namespace) -> dict[str, str]:
    for option in arguments.option:
        if "=" not in option:
            raise ValueError(f"--option takes NAME=VALUE, got {excerpt(option)}")
    return dict(option.split("=", 1) for option in arguments.option)
