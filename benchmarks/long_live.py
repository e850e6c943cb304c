"""Long runs of the live board: sustained changes with five views and a tape; memory over millions of updates.

    python benchmarks/long_live.py sustained --minutes 10
    python benchmarks/long_live.py memory --updates 10_000_000
    python benchmarks/long_live.py bytes
    python benchmarks/long_live.py readers --changes 1_000
    python benchmarks/long_live.py copies

The first two print one line a while and a summary. Percentiles are of whole steps, garbage collection included.
"""

import argparse
import gc
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from synthetic import NOW, board

from oddsengine import catalog, load_kernels
from oddsengine.board.rows import CodedQuotes
from oddsengine.board.state import Batch
from oddsengine.columns import NO_TIME
from oddsengine.identity.layout import LIVE
from oddsengine.live.engine import Engine
from oddsengine.tape import TapeWriter

TIERS = ("free", "hobby", "pro", "sharp")


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def changes(
    engine: Engine, rng: np.random.Generator, count: int, now: int, origin: npt.NDArray[np.float64] | None = None
) -> Batch:
    """Move the prices of some rows by up to a percent, from `origin` by slot, or from the current price.

    From the current price, books disagree more with every step: after three changes of each price there are twice as
    many +EV bets and five times as many arbitrages as on the first board.
    """
    rows = engine.state.board.rows
    slots = rng.choice(engine.state.board.on(), count, replace=False)
    before = (rows.odds if origin is None else origin)[slots]
    odds = np.clip(before * (1.0 + (rng.random(count) - 0.5) * 0.02), 1.01, 50.0)
    none = np.full(count, NO_TIME)
    quoted = CodedQuotes(
        rows.key[slots], odds, np.full(count, np.nan), np.full(count, now), none, none, rows.flags[slots] & LIVE
    )
    return Batch(now, [], [], quoted, [None] * count, np.empty(0, np.uint64), [], [], {})


def loaded(rows: int) -> Engine:
    """Return an engine with a board."""
    load_kernels()
    engine = Engine()
    engine.step(board(rows), NOW)
    return engine


def sustained(minutes: float, rows: int, count: int, method: str) -> None:
    """Step as fast as one core allows; `method` is that of the views."""
    engine = loaded(rows)
    for tier in TIERS:
        engine.view(catalog.tier_books(tier), method=method, keep=True)
    engine.view(["pinnacle", "draftkings", "fanduel"], method=method, keep=True)
    gc.collect()
    gc.freeze()
    rng, origin = np.random.default_rng(1), engine.state.board.rows.odds.copy()
    with tempfile.TemporaryDirectory() as folder, TapeWriter(folder) as writer:
        engine.record(writer)
        spent: list[float] = []
        began, said = time.perf_counter(), 0.0
        now = NOW
        while (passed := time.perf_counter() - began) < minutes * 60.0:
            now += timedelta(milliseconds=1)
            batch = changes(engine, rng, count, round(now.timestamp() * 1e6), origin)
            start = time.perf_counter()
            engine.feed(batch).json(engine.views[0])
            spent.append(time.perf_counter() - start)
            if passed - said > 30.0:
                said = passed
                print(f"{passed:6.0f} s  {line(spent, count)}  {writer.size / 1e6:,.0f} MB of tape", flush=True)
        print(f"steps of {count:,}: {line(spent, count)}; {len(engine.views)} views, tape on, {rows:,} rows")
        print(f"open: {engine.open_counts()}")


def line(spent: list[float], count: int) -> str:
    """Format the times of steps."""
    middle, late = np.quantile(spent, [0.5, 0.99]) * 1e3
    return f"{count * len(spent) / sum(spent):,.0f} changes/s, p50 {middle:.2f} ms, p99 {late:.2f} ms"


def memory(updates: int, rows: int) -> None:
    """Print resident memory before and after many updates in place, with a tenth of the rows replaced."""
    engine = loaded(rows)
    engine.view(keep=True)
    rng = np.random.default_rng(2)
    frame = board(rows)
    now, done, said = NOW, 0, 0
    before = None
    while done < updates:
        now += timedelta(seconds=1)
        engine.feed(changes(engine, rng, 10_000, round(now.timestamp() * 1e6)))
        done += 10_000
        if done % 500_000 == 0:  # churn: rows leave and are forgotten, others come, with lines nobody had
            gone = engine.table()["row_id"].sample(rows // 10, seed=done)
            engine.step((), now, removed=gone)
            fresh = frame.sample(rows // 10, seed=done).with_columns(
                line=pl.col("line") + done // 500_000 * 0.5, last_seen_at=pl.lit(now), is_live=pl.lit(value=False),
                event_start_time=pl.lit(now + timedelta(hours=5)),
            )  # fmt: skip
            engine.step(fresh, now)
            now += timedelta(minutes=11)
            engine.step(engine.table().with_columns(last_seen_at=pl.lit(now)).drop("row_id", "flap"), now)
        if done >= updates // 10 and before is None:
            gc.collect()
            before = resident()
        if done - said >= 1_000_000:
            said = done
            print(f"{done:,} updates: {resident() / 1e6:,.1f} MB resident, {engine.size:,} rows", flush=True)
    gc.collect()
    assert before is not None
    print(f"{before / 1e6:,.1f} MB after {updates // 10:,} updates, {resident() / 1e6:,.1f} MB after {done:,}")


def columns(part: Any, done: set[int]) -> Iterator[npt.NDArray[Any]]:
    """Yield all arrays of an object and its parts, each once."""
    if id(part) in done:
        return
    done.add(id(part))
    if isinstance(part, np.ndarray):
        yield part
    for each in part if isinstance(part, tuple) else getattr(part, "__dict__", {}).values():
        yield from columns(each, done)


def size(rows: int) -> None:
    """Print the bytes of a board and of one view over it per price, without texts; with every price moved, too."""
    engine = loaded(rows)
    engine.view(keep=True)
    for what in ("after loading", "after a change of every price"):
        held = sum(array.nbytes for part in (engine.state.board, engine.state.opened) for array in columns(part, set()))
        print(f"{held / engine.size:.0f} bytes per price {what}, {engine.size:,} prices")
        engine.feed(changes(engine, np.random.default_rng(1), engine.size, round(NOW.timestamp() * 1e6) + 1))


def moved(engine: Engine, count: int) -> Iterator[Batch]:
    """Move the prices of some rows again and again, a millisecond apart; a batch has to be applied before the next."""
    rng, origin, now = np.random.default_rng(1), engine.state.board.rows.odds.copy(), NOW
    while True:
        now += timedelta(milliseconds=1)
        yield changes(engine, rng, count, round(now.timestamp() * 1e6), origin)


def stepped(engine: Engine, batches: Iterator[Batch], steps: int) -> list[float]:
    """Apply some batches; returns the processor time of each step."""
    spent = []
    for _ in range(steps):
        batch = next(batches)
        began = time.thread_time()
        engine.feed(batch)
        spent.append(time.thread_time() - began)
    return spent


def readers(rows: int, count: int, steps: int) -> None:
    """Print how long steps take, and what a reader waits beside them, without a replica and with one."""
    for replica in (False, True):
        engine = loaded(rows)
        for tier in TIERS:
            engine.view(catalog.tier_books(tier), keep=True)
        if replica:
            engine.keep_replica()
        batches = moved(engine, count)
        waits: list[float] = []
        ended = threading.Event()
        reader = threading.Thread(target=_read, args=(engine, waits, ended))
        reader.start()
        spent = stepped(engine, batches, steps)
        ended.set()
        reader.join()
        middle, late = np.quantile(waits, [0.5, 0.99]) * 1e3
        print(
            f"{'with' if replica else 'without'} a replica: processor time of a step of {count:,} p50 "
            f"{np.median(spent) * 1e3:.1f} ms; a reader waits p50 {middle:.2f} ms, p99 {late:.2f} ms, at most "
            f"{max(waits) * 1e3:.1f} ms ({len(waits):,} reads)"
        )


def _read(engine: Engine, waits: list[float], ended: threading.Event) -> None:
    while not ended.wait(0.003):
        began = time.perf_counter()
        with engine.shown():
            waits.append(time.perf_counter() - began)


def copies(rows: int, count: int, steps: int) -> None:
    """Print the processor time of a step, and bytes per price besides texts, with the copies that a node keeps."""
    engine = loaded(rows)
    for tier in TIERS:
        engine.view(catalog.tier_books(tier), keep=True)
    engine.view(["pinnacle", "draftkings", "fanduel"], keep=True)
    gc.collect()
    gc.freeze()
    batches = moved(engine, count)
    held = sum(array.nbytes for part in (engine.state.board, engine.state.opened) for array in columns(part, set()))
    late = None
    for what in ("the engine alone", "and a copy for readers", "and a board delayed by 20 steps"):
        if what.startswith("and a copy"):
            engine.keep_replica()
        elif what.startswith("and a board"):
            late = engine.delayed(0.02)
        spent = stepped(engine, batches, steps)
        if what != "the engine alone":
            with (engine if late is None else late).shown() as shown:
                held += sum(array.nbytes for part in (shown.board, shown.opened) for array in columns(part, set()))
        least, middle = np.quantile(spent[steps // 3 :], [0.1, 0.5]) * 1e3
        print(f"{what}: p10 {least:.2f} ms, p50 {middle:.2f} ms; {held / engine.size:.0f} bytes per price")


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("sustained")
    one.add_argument("--minutes", type=float, default=10.0)
    one.add_argument("--rows", type=int, default=1_000_000)
    one.add_argument("--changes", type=int, default=100)
    one.add_argument("--method", default="close")
    two = commands.add_parser("memory")
    two.add_argument("--updates", type=int, default=10_000_000)
    two.add_argument("--rows", type=int, default=100_000)
    three = commands.add_parser("bytes")
    three.add_argument("--rows", type=int, default=1_000_000)
    four = commands.add_parser("readers")
    four.add_argument("--rows", type=int, default=100_000)
    four.add_argument("--changes", type=int, default=1_000)
    four.add_argument("--steps", type=int, default=200)
    five = commands.add_parser("copies")
    five.add_argument("--rows", type=int, default=300_000)
    five.add_argument("--changes", type=int, default=100)
    five.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.command == "bytes":
        size(arguments.rows)
    elif arguments.command == "copies":
        copies(arguments.rows, arguments.changes, arguments.steps)
    elif arguments.command == "readers":
        readers(arguments.rows, arguments.changes, arguments.steps)
    elif arguments.command == "sustained":
        sustained(arguments.minutes, arguments.rows, arguments.changes, arguments.method)
    else:
        memory(arguments.updates, arguments.rows)


if __name__ == "__main__":
    main()
