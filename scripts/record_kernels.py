"""Writes the list of kernels that are compiled ahead (oddsengine/compiling/kernels.tsv), by calling every kernel.

    python scripts/record_kernels.py

Three processes, with a cache of their own: one compiles everything that `PARTS` call, and notes how long each kernel
took; with those in the cache a second scans the sample board, and a third calls everything again: what they load is
what Python calls. Run it when a kernel is added, renamed, or called with other types; it takes two minutes.
"""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numba.core import event

from oddsengine import _jit
from oddsengine._cache import Folders
from oddsengine._compilers import INNER, LIST, REST, SCAN, text_of
from oddsengine.detection.finders import find_all, markets, rejected
from oddsengine.feeds.price_files import read_odds
from oddsengine.live.engine import Engine
from oddsengine.maths import distributions, middle
from oddsengine.maths.devig import DEVIG_METHODS, devig, devig_groups
from oddsengine.maths.shape_fitting import fit
from oddsengine.query import Index, RowFilter
from oddsengine.simulate import World
from oddsengine.staking import portfolio
from oddsengine.staking.same_bets import same_bets
from oddsengine.staking.stakes import arbitrage_plan, kelly_portfolio
from oddsengine.tables.expressions import OddsExpr
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine.tables.timestamps import timestamps

HEADER = """\
# Kernels and the types that they are compiled for, those that take longest first: from scripts/record_kernels.py.
# Seconds of its own compilation, what calls it (scan, rest; inner: only other kernels), kernel, which it calls, types.
"""


# ---- calls of every kernel ----


def scan() -> None:
    """What `oddsengine scan` calls, with the stakes on rows that are one bet."""
    ev = find_all(read_odds(SAMPLE_BOARD)).ev
    same_bets(ev, ev.height)


def tables() -> None:
    """The sample board: finders, markets, rejected prices, stakes."""
    odds = read_odds(SAMPLE_BOARD)
    everything = find_all(odds, min_ev=-5.0, min_profit=-1.0, max_hold=5.0, include=["suspect", "one_sided"])
    find_all(odds, sharp=["pinnacle"], method="power", commission={"fanduel": 0.01})
    find_all(odds, commission={"bet365": 0.01}, guards=[])
    markets(odds)
    rejected(odds)
    kelly_portfolio(everything.ev.head(30))
    arbitrage_plan(everything.arbitrage, bankroll=1000.0)


def maths() -> None:
    """Margins, stakes, middles."""
    prices = np.array([[1.9, 2.1], [1.5, 3.0]])
    for method in DEVIG_METHODS:
        devig(prices, method)
        devig(np.array([2.0, 3.0, 9.0]), method)
        devig_groups(np.array([1.9, 2.1, 2.0, 3.0, 9.0]), np.array([0, 2, 5]), method)
    pl.DataFrame({"by": [0, 1, 0, 1], "odds": 1.9}).select(OddsExpr(pl.col("odds")).devig(by="by"))
    even = portfolio.GameColumns.from_pairs([([0.6, 0.4], [[1.0], [-1.0]])])
    portfolio.best_stakes(even, portfolio.StakeLimits.none(1))
    shapes = distributions.Shapes.of([0, 1, 2, 3, 4], 3.0)
    location = fit(shapes, 250, 0.5)
    points = middle.window([250] * 5, [450] * 5).points
    middle.evaluate(250, 450, 1.9, 1.9, distributions.tail(shapes, location, points))


def live() -> None:
    """A board of simulated games with feed errors: quotes, views, updates, queries, a snapshot of a minute ago."""
    world, engine = World(3, events=4, live=0.5, hazards=True), Engine()
    engine.keep_judged()
    views = [
        engine.view(keep=True, min_ev=-5.0, min_profit=-2.0, min_middle_ev=None),
        engine.view(keep=True, method="power"),
        engine.view(keep=True, books=["draftkings", "fanduel", "betmgm", "caesars"], include=["suspect", "one_sided"]),
    ]
    index, late = Index(engine), engine.delayed(2)
    for batch in world.run(30.0):
        uncompared = [{**quote, "market_type": "correct_score"} for quote in batch.quotes[:1]]
        update = engine.step([*batch.quotes, *uncompared], batch.now, complete=batch.complete, events=batch.events)
        index.follow(update)
        for view in views:
            view.opportunities()
            update.of(view)
    assert engine.now is not None
    with index.reader(judged=True) as reader:
        reader.take(reader.matching_rows(RowFilter(main=True), {}))
        slots = reader.matching_rows(RowFilter(main=True, low=-500.0), {})
        reader.listed(RowFilter(low=-500.0), {}, "", 1, 0)
        reader.take(reader.best(RowFilter(), {}))
        reader.states(slots)
    with engine.still() as board:
        engine.state.opened.rehome(board.rows.partition)
        board.rows.index()
        board.partitions.pack(board.partitions.pool.size)
        timestamps(board.rows.seen)
    engine.step(removed=engine.table()["row_id"].to_list()[:40], now=engine.now + timedelta(seconds=1))
    engine.step(now=engine.now + timedelta(seconds=700))
    late.table()


PARTS: tuple[Callable[[], None], ...] = (scan, tables, maths, live)


# ---- processes ----


class Seconds(event.Listener):
    """How long each kernel took to compile, without the kernels that it calls."""

    def __init__(self) -> None:
        self.by_kernel: dict[str, float] = defaultdict(float)
        self._open: list[list[float]] = []  # when each began, and the seconds of those inside it

    def on_start(self, event: Any) -> None:
        """Note when a compilation begins."""
        self._open.append([time.perf_counter(), 0.0])

    def on_end(self, event: Any) -> None:
        """Note how long it took."""
        began, inside = self._open.pop()
        took = time.perf_counter() - began
        function = event.data["dispatcher"].py_func
        self.by_kernel[f"{function.__module__}.{function.__qualname__}"] += took - inside
        if self._open:
            self._open[-1][1] += took


def signatures() -> Iterator[tuple[str, str, str]]:
    """The kernels that this process has, also as entries, those that each calls, and its types."""
    for name, made in _jit.dispatchers.items():
        for signature in made.overloads:
            yield name, " ".join(sorted(set(calls(made.py_func)))), text_of(signature)


def calls(function: Any) -> Iterator[str]:
    """The kernels that a kernel calls, also through those that are inlined."""
    for name in function.__code__.co_names:
        used = function.__globals__.get(name)
        if _jit.is_kernel(used) and "inline" in used.options:
            yield from calls(used.py_func)
        elif _jit.is_kernel(used):
            yield f"{used.py_func.__module__}.{used.py_func.__qualname__}"


def calling(folder: Path, names: str) -> None:
    """Call parts in this process, and print the kernels that it has then."""
    _jit.making[:] = [Folders.to_make(folder, portable=False)]
    _jit.REPORTER.send = lambda _: None
    seconds = Seconds()
    event.register("numba:compile", seconds)  # type: ignore[no-untyped-call]
    for part in PARTS:
        if part.__name__ in names.split(","):
            part()
    found = sorted(set(signatures()))
    print(json.dumps([[*each, seconds.by_kernel[each[0]]] for each in found]))


def called(folder: Path, *parts: Callable[[], None]) -> dict[tuple[str, str, str], float]:
    """What a process that calls parts has: seconds by kernel, what it calls, and types."""
    command = [sys.executable, __file__, str(folder), ",".join(part.__name__ for part in parts)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=1800)
    return {(kernel, called, text): seconds for kernel, called, text, seconds in json.loads(done.stdout)}


def main() -> None:
    """Write the list."""
    os.environ.pop("NUMBA_DISABLE_JIT", None)
    with TemporaryDirectory() as folder:
        print("compiling every kernel in one process ...", flush=True)
        everything = called(Path(folder), *PARTS)
        of_scan, of_python = called(Path(folder), scan), called(Path(folder), *PARTS)
    lines = []
    for key, seconds in sorted(everything.items(), key=lambda each: (-each[1], each[0])):
        use = SCAN if key in of_scan else REST if key in of_python else INNER
        lines.append("\t".join((f"{seconds:.2f}", use, *key)) + "\n")
    LIST.write_text(HEADER + "".join(lines), encoding="utf-8")
    print(f"{len(lines)} kernels in {LIST}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        calling(Path(sys.argv[1]), sys.argv[2])
    else:
        main()
