"""Compiles kernels in several processes, those of a recorded list, each after the kernels that it calls.

The list (`compiling/kernels.tsv`) has every kernel with the types that it is called with: without it kernels are only
found by calling them, and compiled one after the other. `scripts/record_kernels.py` writes it.
"""

import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from oddsengine._installation import least_processor

LIST = Path(__file__).with_name("compiling") / "kernels.tsv"
SCAN, REST, INNER = USES = "scan", "rest", "inner"
"""What calls a kernel: a scan of a table; something else; other kernels only, and tests."""
COMPILER = "ODDSENGINE_COMPILER"  # set for a process that compiles for another one
ANSWER = "ready:"  # how its answers begin; a process may print something else
_WORKER = "oddsengine.compiling.worker"
_EVERY = 5.0  # seconds between reports of progress
_SECONDS = 1800.0  # timeout
_MOST = 8  # processes: more would wait for the largest kernel
_START = 3.0  # seconds until a process compiles


class Listed(NamedTuple):
    """A kernel and the types that it is compiled for."""

    seconds: float  # that its compilation took when the list was recorded, without the kernels that it calls
    use: str
    kernel: str  # with its module
    calls: tuple[str, ...]  # other kernels
    signature: str


@cache
def _recorded() -> list[Listed]:
    lines = [line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    parts = (line.split("\t") for line in lines)
    return [
        Listed(float(seconds), use, kernel, tuple(calls.split()), signature)
        for seconds, use, kernel, calls, signature in parts
    ]


def listed(*uses: str) -> list[Listed]:
    """The kernels of some uses."""
    return [each for each in _recorded() if each.use in uses]


def with_called(*uses: str) -> list[Listed]:
    """The kernels of some uses and all that they call."""
    names: set[str] = set()
    more = {each.kernel for each in listed(*uses)}
    while more:
        names |= more
        more = {name for each in _recorded() if each.kernel in more for name in each.calls} - names
    return [each for each in _recorded() if each.kernel in names]


class _Queue:
    """Kernels to compile, each after those that it calls: first what the longest chain of callers waits for."""

    def __init__(self, kernels: Sequence[Listed]) -> None:
        self.done: list[Listed] = []
        self.files: set[str] = set()
        self.failure = ""
        after: dict[str, float] = {}

        def chain(name: str) -> float:
            if name not in after:
                after[name] = 0.0
                callers = [each for each in kernels if name in each.calls]
                after[name] = max((each.seconds + chain(each.kernel) for each in callers), default=0.0)
            return after[name]

        self._todo = sorted(kernels, key=lambda each: -each.seconds - chain(each.kernel))
        self._running: list[Listed] = []
        self.stopped = False
        self._changed = threading.Condition()

    def take(self) -> Listed | None:
        """The next kernel, as soon as there is one; None at the end."""
        with self._changed:
            while self._todo and not self.stopped:
                missing = {each.kernel for each in (*self._todo, *self._running)}
                for each in self._todo:
                    if missing.isdisjoint(name for name in each.calls if name != each.kernel):
                        self._todo.remove(each)
                        self._running.append(each)
                        return each
                self._changed.wait()
            return None

    def put(self, each: Listed, files: Iterable[str]) -> None:
        """A kernel is ready, in these files."""
        with self._changed:
            self._running.remove(each)
            self.done.append(each)
            self.files.update(files)
            self._changed.notify_all()

    def stop(self, failure: str = "") -> None:
        """Give no more kernels."""
        with self._changed:
            if not self.stopped:
                self.stopped, self.failure = True, failure
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until all are ready or it was stopped; False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: self.stopped or not (self._todo or self._running), seconds)


def use_of(kernel: str) -> str | None:
    """What calls a kernel; None if it is not in the list."""
    return next((each.use for each in _recorded() if each.kernel == kernel), None)


# ---- types as text ----

_NAMED = re.compile(r"([\w.]+)\((.*)\)")
_ARRAY = re.compile(r"(readonly )?array\((\w+), (\d)d, ([CFA])\)")


def text_of(signature: Sequence[Any]) -> str:
    """The types of a signature as the list has them: as numba writes them, named tuples with their module."""
    return "; ".join(map(_text_of, signature))


def _text_of(of: Any) -> str:
    made = getattr(of, "instance_class", None)
    if made is None:
        return str(of)
    parts = [_text_of(each) for each in of]
    if len(set(parts)) == 1:
        parts = [f"{len(parts)} x {parts[0]}"]
    return f"{made.__module__}.{made.__qualname__}({' | '.join(parts)})"


def signature_of(text: str) -> tuple[Any, ...]:
    """The types of a signature of the list."""
    return tuple(map(_type_of, text.split("; "))) if text else ()


def _type_of(text: str) -> Any:
    from numba import types  # noqa: PLC0415  the compiler loads when the first kernel is called

    if found := _ARRAY.fullmatch(text):
        readonly, dtype, ndim, layout = found.groups()
        array: Any = types.Array
        return array(getattr(types, dtype), int(ndim), layout, readonly=bool(readonly))
    if found := _NAMED.fullmatch(text):
        module, _, name = found[1].rpartition(".")
        made: Any = types.BaseTuple
        return made.from_types([_type_of(each) for each in _parts(found[2])], getattr(import_module(module), name))
    return getattr(types, text)


def _parts(text: str) -> list[str]:
    """The types of the fields of a named tuple, some of which may be named tuples."""
    parts: list[str] = []
    for piece in text.split(" | "):
        if parts and parts[-1].count("(") > parts[-1].count(")"):
            parts[-1] += f" | {piece}"
        else:
            parts.append(piece)
    count, _, repeated = parts[0].partition(" x ")
    return [repeated] * int(count) if len(parts) == 1 and count.isdigit() else parts


# ---- processes ----


def may_start() -> bool:
    """Whether this process may start others: not an application that would start itself, nor one of a pool."""
    return (
        bool(sys.executable)
        and not getattr(sys, "frozen", False)
        and COMPILER not in os.environ
        and multiprocessing.parent_process() is None
    )


def processes() -> int:
    """How many processes compile side by side."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, _MOST)


def expected(kernels: Iterable[Listed]) -> str:
    """How long it takes to compile kernels side by side, for a message."""
    count = processes()
    seconds = _START + sum(each.seconds for each in kernels) / count
    return f"about {seconds:.0f} s in {count} process{'es' * (count > 1)}"


def compile_side_by_side(
    kernels: Sequence[Listed], folder: Path, report: Callable[[str], None], *, portable: bool
) -> set[str]:
    """Compile kernels into a folder, for every processor of this platform or for this one; those in it are kept.

    Returns
    -------
    The names of their files.

    Raises
    ------
    OSError
        If a kernel cannot be compiled or written, or a process not be started.
    """
    queue, began = _Queue(kernels), time.monotonic()
    whole = sum(each.seconds for each in kernels)
    count = min(processes(), len(kernels))
    with ExitStack() as stack:
        try:
            for _ in range(count):
                process, errors = _started(folder, stack, portable=portable)
                # No process waits for these at its end, as it would for those of an executor.
                threading.Thread(target=_feed, args=(process, errors, queue), daemon=True).start()
            while not queue.wait(_EVERY):
                spent, ready = time.monotonic() - began, sum(each.seconds for each in queue.done)
                if spent > _SECONDS:
                    raise TimeoutError(f"kernels could not be compiled within {_SECONDS:.0f} s")
                # Until a quarter is ready, the list says more than what large kernels took that are not.
                pace = (spent - _START) / ready if ready > whole / 4.0 else 1.0 / count
                left = max((whole - ready) * pace, 1.0)
                report(f"{len(queue.done)} of {len(kernels)} kernels are ready; about {left:.0f} s left ...")
        finally:
            queue.stop()  # before the processes end
    if queue.failure:
        raise ChildProcessError(f"kernels cannot be compiled: {queue.failure}")
    return queue.files


def _started(folder: Path, stack: ExitStack, *, portable: bool) -> tuple[subprocess.Popen[str], IO[str]]:
    """A process that compiles what it reads, and its standard error; it ends with the stack."""
    # The package that this process has comes first: its folder may be on the path as an empty text.
    paths = [str(LIST.parents[2]), *(str(Path(each).absolute()) for each in sys.path if each)]
    env = dict(os.environ)
    if portable:
        plain = {name: value for name, value in env.items() if not name.startswith("NUMBA_")}
        env = {**plain, "NUMBA_CPU_NAME": least_processor(), "NUMBA_CPU_FEATURES": ""}
    env[COMPILER] = "1"
    optimised = ["-" + "O" * sys.flags.optimize] if sys.flags.optimize else []  # digests see docstrings
    # Isolated: a file of the user that is named like a module of Python does not hide that.
    code = f"import sys; sys.path[:] = {paths!r}; from {_WORKER} import main; main(sys.argv[1:])"
    errors: IO[str] = stack.enter_context(TemporaryFile("w+", encoding="utf-8", errors="replace"))  # noqa: SIM115
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", *optimised, "-c", code, str(folder), "portable" * portable], env=env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
    )  # fmt: skip
    stack.enter_context(process)
    stack.callback(process.kill)
    return process, errors


def _feed(process: subprocess.Popen[str], errors: IO[str], queue: _Queue) -> None:
    """Give a process one kernel after the other, until none is left."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        while each := queue.take():
            process.stdin.write(f"{each.kernel}\t{each.signature}\n")
            process.stdin.flush()
            while not (answer := process.stdout.readline()).startswith(ANSWER):
                if not answer:
                    raise BrokenPipeError
            queue.put(each, answer.removeprefix(ANSWER).split())
        process.stdin.close()
    except (OSError, ValueError) as error:  # it has ended, or been ended
        with suppress(OSError):
            process.stdin.close()
        if queue.stopped:
            return
        status = process.wait()
        errors.seek(0)
        queue.stop(errors.read().strip() or (f"signal {-status}" if status < 0 else f"exit status {status}, {error}"))
