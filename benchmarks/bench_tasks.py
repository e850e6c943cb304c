"""Backtests of many tapes and queries of an archive's partitions: one process, and two Dask workers.

    python benchmarks/bench_tasks.py --tapes 8 --minutes 20

The start of the workers, and what their kernels take to load, is not counted.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from distributed import Client, LocalCluster

import oddsengine as oe
from oddsengine.simulate import World
from oddsengine.tape import TapeWriter
from oddsengine_cli import main as command


def record(folder: Path, seed: int, minutes: float) -> int:
    """A tape of a simulated market; how many quotes it has."""
    engine, quotes = oe.Engine(), 0
    start = datetime(2026, 2, 8, 18, tzinfo=UTC) + timedelta(days=seed)
    with TapeWriter(folder / f"tape{seed}") as writer:
        writer.follow(engine)
        for batch in World(seed, events=20, live=0.3, tick=5.0, start=start).run(minutes * 60.0):
            engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
            quotes += len(batch.quotes)
    return quotes


def replayed(tape: str) -> int:
    """The last step of a tape that was replayed."""
    number: int = oe.replay(tape).number
    return number


def backtested(tape: str) -> oe.Backtest:
    """A strategy on a tape."""
    return oe.backtest(tape, oe.Strategy(min_ev=1.0))


def scanned(partition: tuple[str, Any, str]) -> pl.DataFrame:
    """The opportunities of a day and sport of an archive."""
    table, day, sport = partition
    found: pl.DataFrame = oe.scan_history(pl.scan_delta(table).filter(day=day, sport=sport))
    return found


def took(work: Callable[[], Any]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turn(work: Callable[[Any], Any], of: list[Any]) -> None:
    for each in of:
        work(each)


def spread_out(client: Any, work: Callable[[Any], Any], of: list[Any]) -> None:
    client.gather(client.map(work, of, pure=False))


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tapes", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        quotes = sum(record(folder / "tapes", seed, options.minutes) for seed in range(options.tapes))
        command(["archive", str(folder / "tapes"), str(folder / "odds")])
        tapes = [str(path) for path in sorted((folder / "tapes").iterdir())]
        odds = str(folder / "odds")
        parts = [(odds, *each) for each in pl.scan_delta(odds).select("day", "sport").unique().collect().iter_rows()]
        with (
            LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            jobs: Sequence[tuple[str, Callable[[Any], Any], list[Any]]] = (
                ("replay, a task a tape", replayed, tapes), ("backtest, a task a tape", backtested, tapes),
                ("scan_history, a task a partition", scanned, parts),
            )  # fmt: skip
            for what, work, of in jobs:
                work(of[0])
                client.run(work, of[0])
                alone = took(partial(in_turn, work, of))
                spread = took(partial(spread_out, client, work, of))
                times = f"{alone:.1f} s alone, {spread:.1f} s on two workers, {alone / spread:.2f} x"
                print(f"{what}: {quotes:,} quotes, {len(of)} tasks, {times}, load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
