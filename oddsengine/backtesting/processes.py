"""Processes that play parts of a history side by side."""

import contextlib
import math
import multiprocessing
import pickle
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeVar

from oddsengine import _compilers, _jit
from oddsengine.bounds import excerpt
from oddsengine.catalog import data_files
from oddsengine.compiling.loading import load_kernels

P = TypeVar("P")
R = TypeVar("R")
_MOST = 64
_EVERY = 0.2  # seconds between messages of progress


def check_processes(processes: Any) -> int:
    """Validate the `processes` parameter; None is one per core."""
    if processes is None:
        return _compilers.processes()
    if not isinstance(processes, int) or isinstance(processes, bool) or not 1 <= processes <= _MOST:
        raise ValueError(f"processes must be from 1 to {_MOST}, or None for one per core, got {excerpt(processes)}")
    return processes


class _Worker(NamedTuple):
    number: int
    process: Any
    answers: Connection


def play_parts(
    play: Callable[[P, Callable[[int], None]], R], parts: Sequence[P], processes: int, progress: Callable[[int], None]
) -> list[R]:
    """Play each part in a process of its own, so many at a time, and return the results in order.

    Parameters
    ----------
    play
        A function of a module, called with a part and with a function that it calls with the number of its snapshots
        so far.
    parts
        The parts.
    processes
        How many run at a time.
    progress
        Called with the number of snapshots so far, of all parts.

    Raises
    ------
    ChildProcessError
        If a process ends before it has answered. What a part raises is raised here.
    """
    _have_kernels()
    context = multiprocessing.get_context("spawn")
    waiting, running = list(enumerate(parts))[::-1], dict[Connection, _Worker]()
    results, counts = dict[int, R](), [0] * len(parts)
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                number, part = waiting.pop()
                answers, theirs = context.Pipe(duplex=False)
                process = context.Process(
                    target=_answer, args=(theirs, play, part, data_files.own.changes), daemon=True
                )
                process.start()
                theirs.close()
                running[answers] = _Worker(number, process, answers)
            ready = wait(list(running))
            for worker in [each for each in running.values() if each.answers in ready]:
                try:
                    kind, value = worker.answers.recv()
                except EOFError:
                    worker.process.join()
                    raise ChildProcessError(_ended(worker.process.exitcode)) from None
                if kind == "count":
                    counts[worker.number] = value
                    progress(sum(counts))
                    continue
                if kind == "error":
                    raise value
                results[worker.number] = value
                worker.process.join()
                del running[worker.answers]
    finally:
        for worker in running.values():
            worker.process.kill()
        for worker in running.values():
            worker.process.join()
    return [results[number] for number in range(len(parts))]


def _ended(status: int | None) -> str:
    how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
    return (
        f"a process that played a part of the history ended ({how}), perhaps for lack of memory; nothing was kept. A "
        'script that starts processes needs `if __name__ == "__main__":` around what it does'
    )


def _have_kernels() -> None:
    """Compile what is missing, once, before several processes do."""
    kernels = {each.kernel for each in _compilers.with_called(_compilers.SCAN, _compilers.REST)}
    if not kernels <= _jit.folders().kernels():
        load_kernels()


def _answer(
    answers: Connection, play: Callable[[P, Callable[[int], None]], R], part: P, own: data_files.Changes
) -> None:
    """Play a part in this process, with the parent's own catalog, and send the result or the error."""
    data_files.own.changes = own
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the parent ends this process
    said = -math.inf

    def tick(count: int) -> None:
        nonlocal said
        if time.monotonic() - said >= _EVERY:
            said = time.monotonic()
            answers.send(("count", count))

    with contextlib.suppress(BrokenPipeError):  # the parent has ended
        try:
            found = play(part, tick)
        except Exception as error:
            answers.send(("error", _sendable(error)))
        else:
            answers.send(("found", found))


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
