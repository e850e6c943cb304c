"""Processes that start at once: forked from one that has imported everything and done nothing.

A command of its own imports for a second and a half and loads the compiled kernels; here that is done once for all the
tests of a worker. What depends on how an interpreter starts (its flags, its variables, what it imports) needs a real
process, and so does every platform but Linux.
"""

import atexit
import ctypes
import gc
import importlib
import os
import pickle
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

CLI = "from oddsengine_cli import main; raise SystemExit(main())"
# With a fifth of the demo's games: it starts in one second instead of five.
SMALL_DEMO = f"from oddsengine_service import demo; demo.run_world.__kwdefaults__['events'] = 12; {CLI}"
PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL
_TESTS = Path(__file__).parents[1]
_IMPORTS = (
    "httpx2", "nats", "oddsengine.commands.cli", "oddsengine_service.server", "oddsengine_service.demo",
    "oddsengine_service.accounts.keys", "oddsengine_service.scale.roles",
)  # fmt: skip
_NUMBER = 8  # bytes


def with_parent() -> None:
    """A child of a test that is killed dies too (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def python(
    code: str, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, forked: bool = True,
    **files: Any,
) -> "Forked | subprocess.Popen[str]":  # fmt: skip
    """A process that runs Python code with these words, as `Popen` would start it; its pipes are of text."""
    if not forked or sys.platform != "linux":
        command = [sys.executable, "-c", code, *words]
        return subprocess.Popen(command, cwd=cwd, env=env, text=True, preexec_fn=with_parent, **files)  # noqa: PLW1509
    return Forked(code, words, str(cwd or Path.cwd()), dict(os.environ if env is None else env), **files)


def ran(code: str, *words: str, given: str | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """The same to its end, and what it said."""
    with python(code, *words, stdin=DEVNULL if given is None else PIPE, stdout=PIPE, stderr=PIPE, **more) as process:
        out, err = process.communicate(given, timeout=120)
    return subprocess.CompletedProcess(words, process.returncode or 0, out, err)


class Forked:
    """A forked process: `Popen` as far as tests use it."""

    def __init__(
        self, code: str, words: Sequence[str], cwd: str, env: Mapping[str, str],
        stdin: Any = None, stdout: Any = None, stderr: Any = None,
    ) -> None:  # fmt: skip
        if not _parents:
            _parents.append(_Parent())
        files: list[int] = []
        opened: list[int] = []  # of them, those that are closed here
        mine: list[IO[str] | None] = [None, None, None]
        for number, given in enumerate((stdin, stdout, stderr)):
            if given == PIPE:
                read, write = os.pipe()
                mine[number] = os.fdopen(write, "w") if number == 0 else os.fdopen(read)
                opened.append(read if number == 0 else write)
            elif given == DEVNULL:
                opened.append(os.open(os.devnull, os.O_RDWR))
            if given in (PIPE, DEVNULL):
                files.append(opened[-1])
            else:
                files.append(number if given is None else given if isinstance(given, int) else given.fileno())
        self.stdin, self.stdout, self.stderr = mine
        self.returncode: int | None = None
        self._waiting = threading.Lock()
        try:
            self.pid, self._status = _parents[0].start((code, list(words), cwd, dict(env)), files)
        finally:
            for each in opened:
                os.close(each)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self.stdout, self.stderr, self.stdin):
            if file is not None and not file.closed:
                file.close()
        self.wait()

    def __del__(self) -> None:
        if self.returncode is None and hasattr(self, "_status"):
            os.close(self._status)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its status."""
        with self._waiting:
            if self.returncode is None:
                if not select.select([self._status], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
                found = os.read(self._status, 2 * _NUMBER)  # nothing, if the process that forked it was killed
                os.close(self._status)
                status, spent = int.from_bytes(found[:_NUMBER]), int.from_bytes(found[_NUMBER:])
                self.returncode = os.waitstatus_to_exitcode(status if found else int(signal.SIGKILL))
                _spent.append(spent / 1e6)
            return self.returncode

    def poll(self) -> int | None:
        """Its status; None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Write its input, read what it says to the end, and wait."""
        files = [file for file in (self.stdout, self.stderr) if file is not None and not file.closed]
        with ThreadPoolExecutor(2) as pool:
            reads = [pool.submit(file.read) for file in files]
            try:
                if self.stdin is not None and not self.stdin.closed:
                    with suppress(BrokenPipeError), self.stdin:
                        self.stdin.write(given or "")
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        said = {id(file): read.result() for file, read in zip(files, reads, strict=True)}
        for file in files:
            file.close()
        return said.get(id(self.stdout), ""), said.get(id(self.stderr), "")


def forked_s() -> float:
    """Processor seconds of all forked processes that have ended: they are not children of this process."""
    return sum(_spent)


_spent: list[float] = []

# ---- the process that forks ----


class _Parent:
    """The process that forks; started when it is first needed."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                preexec_fn=with_parent,  # noqa: PLW1509  it calls nothing that locks
            )
        _send(self._socket, _kernels())
        atexit.register(self._end)

    def start(self, request: Any, files: list[int]) -> tuple[int, int]:
        """Fork a process with these as its first files; its number, and where its status will come."""
        status, theirs = os.pipe()
        with self._lock:
            _send(self._socket, request, [*files, theirs])
            os.close(theirs)
            return int.from_bytes(_read(self._socket, _NUMBER)), status

    def _end(self) -> None:
        self._socket.close()
        self._process.wait(30)


_parents: list[_Parent] = []


def _kernels() -> list[tuple[str, list[Any]]]:
    """Kernels that this process has: names, and signatures."""
    from oddsengine._jit import dispatchers

    return [(name, list(made.signatures)) for name, made in dispatchers.items() if name.startswith("oddsengine.")]


def _send(to: socket.socket, value: Any, files: Sequence[int] = ()) -> None:
    text = pickle.dumps(value)
    socket.send_fds(to, [len(text).to_bytes(_NUMBER)], list(files))
    to.sendall(text)


def _read(source: socket.socket, size: int) -> bytes:
    text = b""
    while len(text) < size:
        part = source.recv(size - len(text))
        if not part:
            raise EOFError
        text += part
    return text


def _receive(source: socket.socket) -> tuple[Any, list[int]]:
    size, files, _, _ = socket.recv_fds(source, _NUMBER, 4)
    if not size:
        raise EOFError
    return pickle.loads(_read(source, int.from_bytes(size))), files


def _pool() -> list[str]:
    """Threads that polars works in; those that it only begins with hold nothing."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if re.fullmatch(r"polars-\d+|async-executor.*", name)]


def _fork(asked: socket.socket) -> tuple[str, list[str]] | None:
    """Fork until nobody asks any more; in a forked process the code and words that it is to run."""
    running: dict[int, int] = {}  # process -> where its status goes
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([asked.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            while running and (ended := os.wait4(-1, os.WNOHANG))[0]:
                number, status, used = ended
                spent = round((used.ru_utime + used.ru_stime) * 1e6)
                os.write(running[number], status.to_bytes(_NUMBER) + spent.to_bytes(_NUMBER))
                os.close(running.pop(number))
        if asked.fileno() not in ready:
            continue
        try:
            (code, words, cwd, env), files = _receive(asked)
        except (EOFError, ConnectionError):
            return None
        assert not _pool(), "a process in whose threads polars works cannot be forked"
        if number := os.fork():
            running[number] = files.pop()
            for each in files:
                os.close(each)
            asked.sendall(number.to_bytes(_NUMBER))
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with_parent()
        for number, each in enumerate(files[:3]):
            os.dup2(each, number)
        for each in {*files, *running.values(), woken, wakes, asked.detach()}:
            os.close(each)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(n, "r" if n == 0 else "w", closefd=False) for n in range(3)
        )  # fmt: skip
        sys.stderr.reconfigure(line_buffering=True)
        return code, words


def _main(number: int) -> None:
    asked = socket.socket(fileno=number)
    for name in _IMPORTS:
        importlib.import_module(name)
    from oddsengine._jit import dispatcher_named

    for name, signatures in _receive(asked)[0]:
        for each in signatures:
            dispatcher_named(name).compile(each)
    gc.collect()
    gc.freeze()  # what a forked process does not look at again, it does not copy
    found = _fork(asked)
    if found is not None:
        sys.argv = ["-c", *found[1]]
        exec(compile(found[0], "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    sys.path[0] = str(_TESTS)
    _main(int(sys.argv[1]))
