"""A history of a million quotes: the scan, the engine alone, and the same quotes as a frame per snapshot.

python benchmarks/bench_history.py [QUOTES in millions ...]

Each case runs in a process of its own and prints CPU seconds and peak memory, relative to a scan of one snapshot, which
compiles the kernels.
"""

import datetime as dt
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import synthetic

import oddsengine as oe
from oddsengine.backtesting.replay import batches, source

EVENTS, EVERY_S, APART_S = 24, 300, 900  # simultaneous; seconds between snapshots and between starts


def write_history(path: Path, millions: float, seed: int = 1) -> int:
    """Write snapshots of 24 events with 200 prices each, one in eight of them moving; returns the count."""
    snapshots = round(millions * 189)
    total = EVENTS + snapshots * EVERY_S // APART_S + 1
    base = synthetic.board(total * 200, seed).sort("event_id", maintain_order=True).drop("last_seen_at")
    rng = np.random.default_rng(seed)
    event = base["event_id"].rank("dense").to_numpy().astype(np.int64) - 1
    pair = base.select(
        pl.struct("event_id", "sportsbook", "market_type", "player_name", pl.col("line").abs()).rank("dense")
    )
    book = pair.to_series().to_numpy()
    sign = np.where(base["selection_type"].is_in(["home", "over"]).to_numpy(), 1.0, -1.0)
    odds = base["odds_decimal"].to_numpy().copy()
    start = (np.arange(total) + 1) * APART_S
    base = base.with_columns(event_start_time=pl.lit(synthetic.NOW) + pl.Series(start[event]) * pl.duration(seconds=1))
    parts = []
    for snapshot in range(snapshots):
        now = snapshot * EVERY_S
        on = np.flatnonzero((start[event] > now) & (start[event] <= now + EVENTS * APART_S))
        moves = rng.normal(0.0, 0.03, book.max() + 1) * (rng.random(book.max() + 1) < 0.12)
        odds[on] = np.round(np.clip(odds[on] * np.exp(sign[on] * moves[book[on]]), 1.02, 60.0), 3)
        seen = synthetic.NOW + dt.timedelta(seconds=now)
        parts.append(base[on].with_columns(odds_decimal=pl.Series(odds[on]), last_seen_at=pl.lit(seen)))
    table = pl.concat(parts)
    table.with_columns(hour=pl.col("last_seen_at").dt.truncate("1h").dt.strftime("%Y-%m-%dT%H")).write_parquet(
        path, partition_by="hour"
    )
    return table.height


def scan(path: str) -> int:
    """All four kinds, with closing lines."""
    height: int = oe.scan_history(path).height
    return height


def engine(path: str) -> int:
    """The same steps, without removals."""
    one = oe.Engine()
    one.view(method="close", keep=True)
    for piece in source(path).pieces:  # type: ignore[union-attr]
        for batch in batches(one, piece):
            one.feed(batch)
    return one.number


def frames(path: str) -> int:
    """The same steps from frames."""
    one = oe.Engine()
    one.view(method="close", keep=True)
    for snapshot in source(path).snapshots:  # type: ignore[union-attr]
        one.step(snapshot.quotes, snapshot.now)
    return one.number


def measure(case: str, path: str) -> None:
    """Run one case and print its cost."""
    first = source(path)
    one = next(first.snapshots).quotes  # type: ignore[union-attr]
    oe.scan_history(one)
    before = resource.getrusage(resource.RUSAGE_SELF)
    made = {"scan": scan, "engine": engine, "frames": frames}[case](path)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    more = (after.ru_maxrss - before.ru_maxrss) / 1024
    print(f"  {case:<8}{cpu:6.1f} s CPU  peak +{more:5.0f} MB of {after.ru_maxrss / 1024:.0f}  {made:,} rows or steps")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        measure(*sys.argv[2:])
        sys.exit()
    if sys.argv[1:2] == ["--write"]:
        print(f"{write_history(Path(sys.argv[2]), float(sys.argv[3])):,} quotes")
        sys.exit()
    run = [sys.executable, __file__]  # peak memory is inherited by child processes, so this process stays small
    for millions in sys.argv[1:] or ["1", "4"]:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*run, "--write", f"{folder}/history", millions], check=True)
            for name in ("scan", "engine", "frames"):
                subprocess.run([*run, "--case", name, f"{folder}/history"], check=True)
