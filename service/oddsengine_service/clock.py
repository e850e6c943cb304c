"""The node's clock: monotonic, and corrected by the wall clock.

Ages, steps and rate limits need a clock that runs at the speed of real time. The wall clock may be set, by a person, by
NTP or by the host of a virtual machine. So time is taken from a monotonic clock, and the wall clock only corrects it:

    wall clock ahead               adopted at once: at worst, prices look older than they are
    ... by more than five minutes  adopted after a minute, in case it is an error
    wall clock behind              the node's clock runs 1 % slower until the wall clock has caught up
    ... after it was ahead         the node's clock goes back at once, if it has dated nothing in between

When a machine resumes from suspend, both clocks have advanced by as much, which is no jump.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

OFF_S = 2.0  # larger differences between the clocks are reported as a fault
LEVEL_S = 0.1  # smaller differences count as agreement
SLOWER = 100  # while the wall clock is behind, one part in this many is withheld
SENSIBLE_S = 300.0  # largest forward jump of the wall clock that is adopted at once
LASTING_S = 60.0  # how long a larger jump must last before it is adopted
ROUGH_NS = 20_000_000  # `rough_time` may be this old
_SECOND = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _unset() -> Callable[[], int]:
    """Return a monotonic clock, if possible one that includes the time the machine is suspended."""
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC_RAW"):  # Linux; macOS
        if hasattr(time, name):
            return partial(time.clock_gettime_ns, getattr(time, name))
    return time.monotonic_ns


_STEADY = _unset()


class Clock:
    """The time in UTC; thread-safe.

    Parameters
    ----------
    wall
        The wall clock: nanoseconds since 1970.
    passed
        A clock that is never set: nanoseconds since any fixed point.
    on_fault
        Called with a message when the wall clock is found to have been set, and when both clocks agree again.
    """

    def __init__(
        self, wall: Callable[[], int] = time.time_ns, passed: Callable[[], int] = _STEADY,
        on_fault: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.on_fault = on_fault
        self._wall, self._passed = wall, passed
        self._lock = threading.Lock()
        self._at, self._read_at = wall(), passed()
        self._last = 0  # microseconds; last result of `now`
        self._beyond: int | None = None  # since when the wall clock has been too far ahead
        self._without: int | None = None  # the time without the last jump, while no result of `now` is after it
        self._fault = ""
        self._rough, self._rough_until = 0.0, 0
        self.ahead = 0.0  # seconds by which this clock was ahead of the wall clock at the last reading

    def now(self) -> datetime:
        """Return the time, later than any time returned before."""
        with self._lock:
            message = self._read()
            self._last = last = max(self._at // 1000, self._last + 1)
            if self._without is not None and last * 1000 > self._without:
                self._without = None
        self._report(message)
        return _EPOCH + timedelta(microseconds=last)

    def time(self) -> float:
        """Return the time in seconds since 1970; decreases only if a jump is taken back that `now` has not seen."""
        with self._lock:
            message = self._read()
            at = self._at
        self._report(message)
        return at / _SECOND

    def rough_time(self) -> float:
        """Return `time`, up to 20 ms old, for use in every request."""
        passed = self._passed()
        if passed >= self._rough_until:
            self._rough, self._rough_until = self.time(), passed + ROUGH_NS
        return self._rough

    def fault(self) -> str:
        """Return the problem with the wall clock, or an empty string."""
        self.time()
        return self._fault

    def _read(self) -> str:
        """Advance the clock, with the lock held. Returns a message to log, or an empty string."""
        wall, passed = self._wall(), self._passed()
        spent, self._read_at = max(0, passed - self._read_at), passed
        at = self._at + spent
        message = ""
        if self._without is not None:
            self._without += spent
            if wall < at:
                at, self._without = max(wall, self._without), None
        if wall < at:
            at -= min(at - wall, spent // SLOWER)
            self._beyond = None
        elif wall - at <= SENSIBLE_S * _SECOND or self._lasts(passed):
            if wall - at > OFF_S * _SECOND:
                self._without = at if self._without is None else self._without
                message = (
                    f"the wall clock jumped forward by {(wall - at) / _SECOND:.0f} s; prices are now older by as much"
                )
            at, self._beyond = wall, None
        self._at, self.ahead = at, (at - wall) / _SECOND
        return self._judged() or message

    def _lasts(self, passed: int) -> bool:
        """Whether a large jump of the wall clock has lasted long enough to be trusted."""
        if self._beyond is None:
            self._beyond = passed
        return passed - self._beyond >= LASTING_S * _SECOND

    def _judged(self) -> str:
        """Compare both clocks. Returns a message if their state changed."""
        was, off = self._fault, abs(self.ahead)
        if off > OFF_S and self.ahead > 0.0:
            self._fault = f"the wall clock is {off:.0f} s behind the node's clock"
        elif off > OFF_S:
            self._fault = f"the wall clock is {off:.0f} s ahead of the node's clock"
        elif off < LEVEL_S:
            self._fault = ""
        if bool(was) == bool(self._fault):
            return ""
        if not self._fault:
            return "the wall clock and the node's clock agree again"
        return self._fault + (
            ", which runs 1 % slower until they agree; restart to adopt the wall clock"
            if self.ahead > 0.0
            else f", which follows after {LASTING_S:.0f} s"
        )

    def _report(self, message: str) -> None:
        if message and self.on_fault is not None:
            self.on_fault(message)
