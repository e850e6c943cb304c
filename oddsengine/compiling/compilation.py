"""Makes all kernels: those that come with the package, or those of this machine.

Kernels of the package are for every x86-64 processor with AVX2. Those of a machine are for its own processor, in its
cache, and come before them. Both are made by calling every kernel with the types that it is called with in use, in
processes of their own: first two halves side by side, then everything in one. A kernel that is there and up to date is
loaded instead of compiled; if all are, nothing is run.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from oddsengine import _installation, _jit, query
from oddsengine._cache import PREBUILT, Folders, _replace, first_writable
from oddsengine._installation import VARIABLE, interpreted, lasting, unsupported
from oddsengine.compiling import loading as warm
from oddsengine.detection.finders import find_all, markets, rejected
from oddsengine.feeds.price_files import read_odds
from oddsengine.guards import verdicts as guards
from oddsengine.live.engine import Engine
from oddsengine.pricing import momentum
from oddsengine.query import Index, RowFilter
from oddsengine.simulate import World
from oddsengine.staking.same_bets import same_bets
from oddsengine.staking.stakes import arbitrage_plan, kelly_portfolio
from oddsengine.tables.sample import SAMPLE_BOARD

_MODULE = "oddsengine.compiling.compilation"
_SECONDS = 1800  # timeout of a process
_EVERY = 10.0  # seconds between reports of progress


# ---- calls of every kernel ----


def tables() -> None:
    """The sample board: finders, markets, rejected prices, stakes."""
    odds = read_odds(SAMPLE_BOARD)
    everything = find_all(odds, min_ev=-5.0, min_profit=-1.0, max_hold=5.0, include=["suspect", "one_sided"])
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
    with engine.still() as board:
        engine.state.opened.rehome(board.rows.partition)
    engine.step(removed=engine.table()["row_id"].to_list()[:40], now=engine.now + timedelta(seconds=1))
    engine.step(now=engine.now + timedelta(seconds=700))
    late.table()
    momentum.warm_up()


def scan() -> None:
    """What `oddsengine scan` calls, with the stakes on rows that are one bet."""
    ev = find_all(read_odds(SAMPLE_BOARD)).ev
    same_bets(ev, ev.height)


PARTS: dict[str, Callable[[], None]] = {
    "scan": scan, "search": warm.search, "quotes": warm.alongside, "queries": query.warm, "guards": guards.warm_up,
    "tables": tables, "live": live,
}  # fmt: skip
# What is made for: processes that follow each other, side by side where there are several.
USES: dict[str, list[list[list[str]]]] = {
    "scan": [[["scan"]]],
    "all": [[["search"], ["quotes"]], [list(PARTS)]],  # those two share few kernels; the others need few more
}


# ---- processes ----


def _calling(parts: Sequence[str], folder: Path, *, portable: bool) -> None:
    """Make the kernels of some parts in this process; after all of them, write the manifest."""
    folders = Folders.to_make(folder, portable=portable)
    _jit.making[:] = [folders]
    _jit.REPORTER.send = lambda _: None
    for name in parts:
        PARTS[name]()
    if len(parts) < len(PARTS):
        return
    made_for = _installation.target(portable=portable)
    if portable:
        for name in {file.name for file in folder.glob("*.nbc")} - folders.used:
            if _superseded(name, folders.used):
                (folder / name).unlink(missing_ok=True)
            else:
                folders.used.add(name)
    folders.save(_installation.manifest_of(made_for), _installation.describe(made_for, folders.used))


def _superseded(name: str, used: Iterable[str]) -> bool:
    """Whether the file of a kernel that was not called has been replaced, or its kernel is gone.

    A kernel that others call is not called itself where those were loaded; it is kept for whoever calls it directly.
    """
    kernel = name.rpartition("-")[0]
    module, _, function = kernel.rpartition(".")
    removed = not hasattr(sys.modules.get(module), function)
    return removed or any(each.rpartition("-")[0] == kernel for each in used)


def _side_by_side(jobs: Sequence[Sequence[str]], folder: Path, progress: Callable[[], None], *, portable: bool) -> None:
    """Make the kernels of some parts in processes of their own, one for each job."""
    env, paths = dict(os.environ), [str(Path(each).absolute()) for each in sys.path if each]
    if portable:
        plain = {name: value for name, value in env.items() if not name.startswith("NUMBA_")}
        env = {**plain, "NUMBA_CPU_NAME": _installation.least_processor(), "NUMBA_CPU_FEATURES": ""}
    with ExitStack() as stack:
        running = []
        for parts in jobs:
            # Isolated: a file of the user that is named like a module of Python does not hide that.
            code = f"import sys; sys.path[:] = {paths!r}; from {_MODULE} import main; main(sys.argv[1:])"
            command = [sys.executable, "-I", "-c", code, ",".join(parts), str(folder), "portable" * portable]
            log = stack.enter_context(TemporaryFile("w+", encoding="utf-8", errors="replace"))
            process = stack.enter_context(
                subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
            )
            stack.callback(process.kill)
            running.append((process, log))
        started = reported = time.monotonic()
        while not all(_ended(process, log) for process, log in running):
            if time.monotonic() > started + _SECONDS:
                raise TimeoutError(f"kernels could not be compiled within {_SECONDS} s")
            if time.monotonic() > reported + _EVERY:
                reported = time.monotonic()
                progress()
            time.sleep(0.1)


def _ended(process: subprocess.Popen[bytes], log: IO[str]) -> bool:
    """Whether a process has made its kernels."""
    if process.poll():
        log.seek(0)
        raise ChildProcessError(f"kernels cannot be compiled: {log.read().strip() or f'signal {-process.returncode}'}")
    return process.returncode == 0


def make(folder: Path, report: Callable[[str], None], *, portable: bool, use: str = "all") -> None:
    """Make the kernels of a use in a folder, and report progress.

    Raises
    ------
    OSError
        If a kernel cannot be compiled or written.
    """
    made_for, at = _installation.target(portable=portable), str(folder)
    if _installation.up_to_date(at, made_for):
        report(f"all kernels in {folder} are up to date")
        return
    report(
        f"compiling {'all kernels' if use == 'all' else f'the kernels of a {use}'} into {folder} (about a minute) ..."
    )
    began, before = time.monotonic(), _files(folder)

    def progress() -> None:
        report(f"{len(_files(folder) - before)} functions compiled so far, after {time.monotonic() - began:.0f} s ...")

    for jobs in USES[use]:
        _side_by_side(jobs, folder, progress, portable=portable)
    if use != "all":
        made = [file.name for file in folder.glob("*.nbc")]
        _replace(folder / _installation.manifest_of(made_for), _installation.describe(made_for, made, use))
        report(f"kernels of a {use} compiled in {time.monotonic() - began:.0f} s")
        return
    manifest = _installation.read_manifest(at, _installation.manifest_of(made_for))
    if not manifest:  # as on file systems without owners and modes
        raise PermissionError(f"files in {folder} are not loaded, because everybody can write to them")
    names = set(manifest["files"])
    size = sum((folder / name).stat().st_size for name in names)
    compiled = len(names & {name for name, _ in _files(folder) - before})
    report(
        f"{compiled} of {len(names)} kernels compiled in {time.monotonic() - began:.0f} s; "
        f"all: {size / 1e6:.1f} MB in {folder}"
    )


def _files(folder: Path) -> set[tuple[str, int]]:
    """Return kernels in a folder, with the times at which they were written."""
    return {(file.name, file.stat().st_mtime_ns) for file in folder.glob("*.nbc")}


# ---- where they are made ----


def prebuild(report: Callable[[str], None], folder: Path = PREBUILT, use: str = "all") -> None:
    """Make the kernels that come with the package, or those of one use.

    Raises
    ------
    OSError
        If this machine does not run them, or a kernel cannot be made.
    """
    if reason := unsupported():
        raise OSError(f"no kernels are made: {reason}")
    make(folder, report, portable=True, use=use)


def compile_kernels(report: Callable[[str], None] | None = None) -> Path:
    """Compile all kernels for the processor of this machine, into the cache on disk.

    Processes that start later load them instead of those that come with the package. Takes about a minute, and no time
    if nothing has changed.

    Parameters
    ----------
    report
        Called with messages of progress; None prints them to standard error.

    Returns
    -------
    The folder.

    Raises
    ------
    OSError
        If no folder of the cache is writable, or a kernel cannot be compiled.

    Examples
    --------
    Once on each machine, for instance when an image is built::

        python -c 'import oddsengine; oddsengine.compile_kernels()'
    """
    if interpreted():
        raise OSError("kernels are not compiled, because NUMBA_DISABLE_JIT is set")
    folder, reasons = first_writable(lasting())
    if folder is None:
        raise OSError(f"no folder is writable ({'; '.join(reasons)}); set {VARIABLE} to one for compiled kernels")
    make(folder.absolute(), report or _jit.REPORTER.report, portable=False)
    return folder


def main(arguments: Sequence[str]) -> None:
    """Make the kernels of some parts, in a process of its own."""
    parts, folder, portable = arguments
    try:
        _calling(parts.split(","), Path(folder), portable=bool(portable))
    except OSError as error:
        sys.exit(str(error))
