"""Processes that play parts of a history side by side."""

import contextlib
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple, Protocol, TypeVar

from oddsengine import _compilers, _jit
from oddsengine.bounds import excerpt
from oddsengine.catalog import data_files
from oddsengine.compiling.loading import load_kernels
from oddsengine.detection.kinds import KINDS
from oddsengine.progress import Tick

R = TypeVar("R")
_MOST = 61  # Windows waits for no more
_EVERY = 0.2  # seconds between messages of progress


class Sent(Protocol):
    """A part of a history."""

    def alone(self) -> Any:
        """What is sent to another process."""


def check_processes(processes: Any) -> int:
    """Validate the `processes` parameter; None is one per core."""
    if processes is None:
        return _compilers.processes()
    if not isinstance(processes, int) or isinstance(processes, bool) or not 1 <= processes <= _MOST:
        raise ValueError(f"processes must be from 1 to {_MOST}, or None for one per core, got {excerpt(processes)}")
    return processes


def may_start() -> str:
    """Why this process cannot start others; empty if it can."""
    if not _compilers.may_start():
        return "this process cannot start others (a frozen application, or one of a pool)"
    file = getattr(sys.modules["__main__"], "__file__", None)
    return "" if file is None or os.path.exists(file) else f"processes cannot read the main script again ({file})"


def unsent(arguments: Mapping[str, Any]) -> str:
    """The first of some arguments that cannot be sent to a process; empty if all can be."""
    for name, value in arguments.items():
        if isinstance(value, Mapping) and (inner := unsent(value)):
            return inner
        try:
            sent = bytes(ForkingPickler.dumps(value))
        except Exception:  # whatever its pickling raises
            return name
        if b"__main__" in sent and not hasattr(sys.modules["__main__"], "__file__"):  # a function of a notebook
            return name
    return ""


class Settings(NamedTuple):
    """What another process has to have as this one."""

    own: data_files.Changes  # of the catalog
    kinds: list[str]

    @classmethod
    def of_this_process(cls) -> "Settings":
        """Those of this process."""
        return cls(data_files.own.changes, list(KINDS))

    def take(self) -> None:
        """Take them over.

        Raises
        ------
        ValueError
            If this process does not have the kinds, or has read other entries of the catalog already.
        """
        own = data_files.own
        if self.own != own.changes:
            if late := sorted(own.used & {*self.own, *own.changes}):
                raise ValueError(
                    f"another process has read {', '.join(late)} of the catalog without your own file: start it anew, "
                    "or load the file there first"
                )
            own.changes = self.own
        if list(KINDS) != self.kinds:
            missing = ", ".join(sorted({*self.kinds} ^ {*KINDS}))
            raise ValueError(
                f"other processes do not have the same kinds of opportunities ({missing}): register them in a module "
                "that the main script imports, outside its main guard"
            )


class _Worker(NamedTuple):
    number: int
    process: Any
    connection: Connection


def play_parts(
    play: Callable[[Any, Tick], R], parts: Sequence[Sent], processes: int, progress: Callable[[int, int, int], None]
) -> list[R]:
    """Play each part in a process of its own, so many at a time, and return the results in order.

    Parameters
    ----------
    play
        A function of a module, called with a part and with what it calls after each snapshot.
    parts
        The parts.
    processes
        How many run at a time.
    progress
        Called with the number of a part, and its time and prices so far.

    Raises
    ------
    ChildProcessError
        If a process ends before it has answered. What a part raises is raised here.
    """
    _have_kernels()
    waiting, running = list(range(len(parts)))[::-1], dict[Connection, _Worker]()
    results = dict[int, R]()
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                worker = _started(waiting.pop())
                running[worker.connection] = worker
                with _living(worker):
                    worker.connection.send((play, parts[worker.number].alone(), Settings.of_this_process()))
            for connection in wait(list(running)):
                worker = running[connection]  # type: ignore[index]
                with _living(worker):
                    kind, value = worker.connection.recv()
                if kind == "so far":
                    progress(worker.number, *value)
                    continue
                if kind == "error":
                    raise value
                results[worker.number] = value
                worker.process.join()
                worker.connection.close()
                del running[worker.connection]
    finally:
        for worker in running.values():
            worker.process.kill()
        for worker in running.values():
            worker.process.join()
            worker.connection.close()
    return [results[number] for number in range(len(parts))]


def _started(number: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs,), daemon=True)
    with _without_interrupts():
        process.start()
    theirs.close()  # so that this process notices when the other one ends
    return _Worker(number, process, ours)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start a process that ignores Ctrl+C of the terminal: this one ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _living(worker: _Worker) -> Iterator[None]:
    """Raise a sentence if a process ends while it is spoken to."""
    try:
        yield
    except (EOFError, OSError):
        worker.process.join()
        status = worker.process.exitcode
        how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        raise ChildProcessError(
            f"a process that played a part of the history ended ({how}), perhaps for lack of memory; nothing was kept. "
            'A script that starts processes needs `if __name__ == "__main__":` around what it does'
        ) from None


def _have_kernels() -> None:
    """Compile what is missing, once, before several processes do."""
    kernels = {each.kernel for each in _compilers.with_called(_compilers.SCAN, _compilers.REST)}
    if not kernels <= _jit.folders().kernels():
        load_kernels()


def _answer(connection: Connection) -> None:
    """Play a part in this process, and send the result or the error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Windows this is not inherited
    said, last = -math.inf, (0, 0)

    def tick(now: int, prices: int) -> None:
        nonlocal said, last
        last = now, prices
        if time.monotonic() - said >= _EVERY:
            said = time.monotonic()
            connection.send(("so far", last))

    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the parent has ended
        try:
            play, part, settings = connection.recv()
            settings.take()
            message = ForkingPickler.dumps(("found", play(part, tick)))
            connection.send(("so far", last))
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:
            message = ForkingPickler.dumps(("error", _picklable(error)))
        connection.send_bytes(message)


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
