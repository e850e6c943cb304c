"""Progress on a terminal or in a notebook, and of the compiler everywhere."""

import atexit
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple, Self

_EVERY = 0.1  # seconds between updates
_LEAST = 8  # minimum width of a bar
_CLEAR = "\r\x1b[K"
_COMPILING = "compiling kernels, once on this machine"
_QUIET_S = 2.0  # without a compilation, after which they have ended


class Progress:
    """Progress on standard error if it is a terminal or a notebook; erased at the end.

    Examples
    --------
    >>> with Progress("quotes") as progress:
    ...     progress(0.5, 1000, "18:00:00")
    """

    def __init__(self, counted: str) -> None:
        self._counted = counted
        terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._on = terminal or type(sys.stderr).__module__.startswith("ipykernel")
        self._began = self._shown = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._on:
            _write(_CLEAR)

    def __call__(self, done: float | None, count: int, *facts: str) -> None:
        """Show the fraction done (None if unknown), a count, and further text."""
        if not self._on:
            return
        now = time.monotonic()
        if now - self._shown < _EVERY:
            return
        self._shown = now
        spent = now - self._began
        parts = [*facts, f"{count:,} {self._counted}", f"{count / spent:,.0f}/s"]
        if done is not None and done > 0.0:
            parts.append(f"{_clock(spent / min(done, 1.0) - spent)} left")
        _write(_CLEAR + line(done, "  ".join(parts), shutil.get_terminal_size().columns - 1))


Tick = Callable[[int, int], None]
"""What a replay calls after each snapshot, with its time and the number of prices so far."""


@contextmanager
def ticking(span: tuple[int, int], *, progress: bool | Callable[[int], None]) -> Iterator[Tick]:
    """Return what a replay of a history calls.

    That is a bar, the caller's function, which is given the number of snapshots, or nothing.
    """
    count = 0

    def call(_now: int, _prices: int) -> None:
        nonlocal count
        count += 1
        if callable(progress):
            progress(count)

    if progress is not True:
        yield call
        return
    first, last = span
    with Progress("prices") as bar:

        def show(now: int, prices: int) -> None:
            at = f"{datetime.fromtimestamp(now / 1e6, UTC):%Y-%m-%d %H:%M}"
            bar((now - first) / max(last - first, 1), prices, at)

        yield show


class Played(NamedTuple):
    """How much of the parts of a history has been played."""

    done: float  # fraction
    snapshots: int
    prices: int
    games: int
    all_games: int


@contextmanager
def playing(*, progress: bool | Callable[[int], None]) -> Iterator[Callable[[Played], None]]:
    """Return the same for a history that is played in parts."""
    if progress is not True:
        yield lambda so_far: progress(so_far.snapshots) if callable(progress) else None
        return
    with Progress("prices") as bar:
        yield lambda so_far: bar(so_far.done, so_far.prices, f"{so_far.games:,} of {so_far.all_games:,} games")


class Reporter:
    """Reports compilation, to standard error or to `send` if that is set.

    Parameters
    ----------
    why
        Returns the reason why kernels have to be compiled; empty if there is none.
    kept
        Returns the folder that keeps them; empty if nothing does.
    """

    def __init__(self, why: Callable[[], str], kept: Callable[[], str]) -> None:
        self._why, self._kept = why, kept
        self.send: Callable[[str], None] | None = None
        self.compiled = 0  # kernels compiled by this process
        self._announced = False  # that kernels are compiled
        self._reported = 0
        self._busy = 0  # compilations that go on
        self._began = self._ended = 0.0
        self._lock = threading.Lock()

    def compiling(self, what: str = _COMPILING, count: int = 1) -> None:
        """Say before the first kernel is compiled what happens and why, and before several are, which count later."""
        with self._lock:
            if self.compiled == self._reported:
                self._began = time.monotonic()
                threading.Thread(target=self._wait, daemon=True).start()
            if not self._announced:
                atexit.register(self.say)
            if not self._announced or not count:
                self._announced = True
                why = self._why()
                self.report(f"{what} ({why}) ..." if why else f"{what} ...")
            self.compiled += count

    def begin(self) -> None:
        """Begin something that compiles: until it ends, nothing is said of how much was compiled."""
        with self._lock:
            self._busy += 1

    def end(self) -> None:
        """Note when the last compilation ended."""
        with self._lock:
            self._busy -= 1
            self._ended = time.monotonic()

    def say(self) -> None:
        """Say what was compiled since the last time."""
        with self._lock:
            count = self.compiled - self._reported
            took = (time.monotonic() if self._busy else self._ended) - self._began
            if count and (took >= 1.0 or not self._reported):  # of a few that follow later nothing was said before
                kept = f"; they are kept in {folder}" if (folder := self._kept()) else ""
                self.report(f"compiled {count} kernel{'s' * (count > 1)} in {took:.0f} s{kept}")
            self._reported = self.compiled

    def _wait(self) -> None:
        """Say it when nothing has been compiled for a while: no call knows whether it is the last that compiles."""
        while self._busy or (left := self._ended + _QUIET_S - time.monotonic()) > 0.0:
            time.sleep(_QUIET_S if self._busy else left)
        self.say()

    def report(self, text: str) -> None:
        """Report one message."""
        if self.send is not None:
            self.send(text)
        else:
            print(f"oddsengine: {text}", file=sys.stderr, flush=True)


def line(done: float | None, text: str, width: int) -> str:
    """Format one line of limited width.

    Examples
    --------
    >>> line(0.25, "10 quotes", 30), line(None, "10 quotes", 30), line(0.25, "10 quotes", 18)
    (' 25 % ###---------  10 quotes', '10 quotes', ' 25 %  10 quotes')
    """
    if done is None:
        return text[:width]
    done = min(max(done, 0.0), 1.0)
    percent = f"{int(done * 100.0):3d} %"
    room = min(40, width - len(percent) - len(text) - 4)
    if room < _LEAST:
        return f"{percent}  {text}"[:width]
    full = int(done * room)
    return f"{percent} {'#' * full}{'-' * (room - full)}  {text}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
