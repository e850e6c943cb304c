"""Makes the kernels that come with the package, for every x86-64 processor with AVX2, not only that of this machine.

    python -m oddsengine.commands.prebuild [FOLDER]

Calls every kernel with the types that it is called with in use: first two halves side by side, then everything in one
process. A kernel that is there and up to date is loaded instead of compiled; files that nothing read are removed.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

from oddsengine import _jit, guards, momentum, query, warm
from oddsengine._cache import PORTABLE, PREBUILT, runs_portable
from oddsengine.engine import Engine
from oddsengine.opportunities import find_all, markets, rejected
from oddsengine.query import Filter, Index
from oddsengine.reading import read_odds
from oddsengine.sample import SAMPLE_BOARD
from oddsengine.simulate import World
from oddsengine.stakes import arbitrage_plan, kelly_portfolio

_SECONDS = 1800  # timeout of a process
SWITCH = "ODDSENGINE_BUILD_KERNELS"  # 0: none are made


def tables() -> None:
    """The sample board: finders, markets, rejected prices, stakes."""
    odds = read_odds(SAMPLE_BOARD)
    everything = find_all(odds, min_ev=-5.0, min_profit=-1.0, max_hold=5.0, include=["suspect"])
    find_all(odds, sharp=["pinnacle"], method="power", commission={"fanduel": 0.01})
    markets(odds)
    rejected(odds)
    kelly_portfolio(everything.ev.head(30))
    arbitrage_plan(everything.arbitrage, bankroll=1000.0)


def live() -> None:
    """A board of simulated games with feed errors: quotes, views, updates, queries, a snapshot of a minute ago."""
    world, engine = World(3, events=4, live=0.5, hazards=True), Engine()
    engine.keep_judged()
    views = [
        engine.view(keep=True, min_ev=-5.0, min_profit=-2.0, min_middle_ev=None),
        engine.view(keep=True, method="power"),
        engine.view(keep=True, books=["draftkings", "fanduel", "betmgm", "caesars"], include=["suspect"]),
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
        reader.take(reader.rows(Filter(main=True), {}))
    with engine.still() as board:
        engine.opened.rehome(board.rows.unit)
    engine.step(removed=engine.table()["row_id"].to_list()[:40], now=engine.now + timedelta(seconds=1))
    engine.step(now=engine.now + timedelta(seconds=700))
    late.table()
    momentum.warm_up()


PARTS: dict[str, Callable[[], None]] = {
    "search": warm.search, "quotes": warm.alongside, "queries": query.warm, "guards": guards.warm_up, "tables": tables,
    "live": live,
}  # fmt: skip
FIRST = ("search", "quotes")  # share few kernels, so that two processes halve the time; the others need few more


def _run(parts: Sequence[str], folder: Path) -> int:
    """Make the kernels of some parts; after all of them, remove other files. Returns how many were compiled."""
    _jit.build_folder[:] = [folder]
    for name in parts:
        PARTS[name]()
    if len(parts) == len(PARTS):
        for file in folder.glob("*.nbc"):
            if file.name not in _jit.folders().used:
                file.unlink()
    return _jit.REPORTER.compiled


def _process(parts: Sequence[str], folder: Path) -> int:
    """Run some parts in a process of their own."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    env = {**plain, "NUMBA_CPU_NAME": PORTABLE, "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, "-m", "oddsengine.commands.prebuild", "--parts", ",".join(parts), str(folder)]
    try:
        done = subprocess.run(command, env=env, timeout=_SECONDS, check=False, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"kernels could not be made within {_SECONDS} s") from None
    if done.returncode:
        raise RuntimeError(f"kernels could not be made: {done.stderr.strip()}")
    return int(done.stdout)


def prebuild(folder: Path = PREBUILT) -> int:
    """Make all kernels. Returns how many were compiled.

    Raises
    ------
    RuntimeError
        If this is not Linux on a processor with AVX2, or a kernel cannot be made.
    """
    if not runs_portable():
        raise RuntimeError(f"kernels are made on Linux, on a processor that runs {PORTABLE}")
    with ThreadPoolExecutor(len(FIRST)) as pool:
        compiled = sum(pool.map(lambda part: _process([part], folder), FIRST))
    return compiled + _process(list(PARTS), folder)


def main(arguments: Sequence[str]) -> None:
    """Make kernels, and say how many; failure is no error, since kernels are then compiled on first use."""
    if arguments[:1] == ["--parts"]:
        print(_run(arguments[1].split(","), Path(arguments[2])))
        return
    folder, began = Path(arguments[0]) if arguments else PREBUILT, time.monotonic()
    if os.environ.get(SWITCH) == "0":
        print(f"oddsengine: kernels are compiled on first use ({SWITCH}=0)")
        return
    try:
        compiled = prebuild(folder)
    except RuntimeError as error:
        print(f"oddsengine: {error}; they are compiled on first use")
        return
    size = sum(file.stat().st_size for file in folder.glob("*.nbc"))
    print(f"oddsengine: {compiled} kernels compiled in {time.monotonic() - began:.0f} s; all: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
