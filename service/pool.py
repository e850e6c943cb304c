"""Threads that compute answers, shared fairly: accounts take turns, and none has all threads at once.

Python runs in one thread at a time, so an account whose answers take long slows down everybody, even those who are
answered from the cache. While others are active, an account therefore has `RATE` seconds of computing a second, and may
save up `BURST`; alone it has all there is.
"""

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

THREADS = 4
SHARE = 2  # threads that one account may have
RATE, BURST = 0.25, 2.0
ACTIVE_S = 1.0  # after its last request an account counts as active
_LOOK_S = 0.02
_MOST_ACTIVE = 10_000
_Result = TypeVar("_Result")


class _Job(NamedTuple):
    call: Callable[[], Any]
    done: asyncio.Future[Any]


class _Budget:
    """Seconds of computing that an account has left."""

    __slots__ = ("at", "left")

    def __init__(self, now: float) -> None:
        self.left, self.at = BURST, now

    def spend(self, now: float, seconds: float = 0.0) -> float:
        """What is left after some seconds more."""
        self.left = min(BURST, self.left + (now - self.at) * RATE) - seconds
        self.at = now
        return self.left


class Pool:
    """Answer threads; used from the event loop only."""

    def __init__(
        self, threads: int = THREADS, share: int = SHARE, clock: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._free, self._share, self._clock = threads, share, clock
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="answer")
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()  # the account whose turn is next comes first
        self._running: dict[str, int] = {}
        self._budgets: dict[str, _Budget] = {}
        self._last: OrderedDict[str, float] = OrderedDict()  # request of each account, oldest first
        self._timer: asyncio.TimerHandle | None = None

    def note(self, account: str) -> None:
        """Note that an account is active."""
        self._last[account] = self._clock()
        self._last.move_to_end(account)
        if len(self._last) > _MOST_ACTIVE:
            self._last.popitem(last=False)

    async def run(self, account: str, call: Callable[[], _Result]) -> _Result:
        """Compute something in a thread, when it is the account's turn."""
        self.note(account)
        done: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account, deque()).append(_Job(call, done))
        self._start()
        return await done

    def _start(self) -> None:
        while self._free:
            account = next((who for who in self._waiting if self._may_run(who)), None)
            if account is None:
                self._wake_later()
                return
            jobs = self._waiting[account]
            job = jobs.popleft()
            if jobs:
                self._waiting.move_to_end(account)
            else:
                del self._waiting[account]
            if job.done.cancelled():
                continue
            self._free -= 1
            self._running[account] = self._running.get(account, 0) + 1
            self._threads.submit(self._run, asyncio.get_running_loop(), account, job)

    def _may_run(self, account: str) -> bool:
        if self._running.get(account, 0) >= self._share:
            return False
        budget = self._budgets.get(account)
        return budget is None or budget.spend(self._clock()) > 0.0 or not self._others(account)

    def _others(self, account: str) -> bool:
        """Whether another account was active just now."""
        latest = [who for who, _ in zip(reversed(self._last), range(2), strict=False) if who != account]
        return bool(latest) and self._clock() - self._last[latest[0]] < ACTIVE_S

    def _wake_later(self) -> None:
        """Look again while somebody waits for seconds to come."""
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._start()

    def _run(self, loop: asyncio.AbstractEventLoop, account: str, job: _Job) -> None:
        """In a thread."""
        result, error, began = None, None, time.thread_time()
        try:
            result = job.call()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._finish, account, job, result, error, time.thread_time() - began)

    def _finish(self, account: str, job: _Job, result: Any, error: BaseException | None, spent: float) -> None:
        self._free += 1
        self._running[account] -= 1
        if not self._running[account]:
            del self._running[account]
        self._charge(account, spent)
        if not job.done.cancelled():
            if error is None:
                job.done.set_result(result)
            else:
                job.done.set_exception(error)
        self._start()

    def _charge(self, account: str, spent: float) -> None:
        now = self._clock()
        budget = self._budgets.get(account)
        if budget is None:
            if len(self._budgets) > _MOST_ACTIVE:  # whoever has saved up all needs none
                self._budgets = {who: each for who, each in self._budgets.items() if each.spend(now) < BURST}
            budget = self._budgets[account] = _Budget(now)
        budget.spend(now, spent)


class Turns:
    """Jobs of accounts for one thread: the account that had the least of its time comes next.

    This is start-time fair queueing: however long an account's jobs take, another one waits for one of them at most.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ready = threading.Condition()
        self._jobs: dict[Hashable, deque[Callable[[], None]]] = {}
        self._used: dict[Hashable, float] = {}  # by each account; who comes back begins where the thread is
        self._at = 0.0  # what the account whose job was taken last had used by then
        self._running: tuple[Hashable, float] | None = None
        self._ended = False

    def put(self, account: Hashable, job: Callable[[], None]) -> None:
        """Add a job; from any thread."""
        with self._ready:
            if account not in self._jobs:
                self._jobs[account] = deque()
                self._used[account] = max(self._at, self._used.get(account, 0.0))
            self._jobs[account].append(job)
            self._ready.notify()

    def end(self) -> None:
        """Let whoever waits go."""
        with self._ready:
            self._ended = True
            self._ready.notify_all()

    def next(self) -> Callable[[], None] | None:
        """Wait for a job; None at the end. The thread has done the one before."""
        with self._ready:
            self._charge()
            self._ready.wait_for(lambda: self._jobs or self._ended)
            if self._ended:
                return None
            account = min(self._jobs, key=self._used.__getitem__)
            job = self._jobs[account].popleft()
            if not self._jobs[account]:
                del self._jobs[account]
            self._at, self._running = self._used[account], (account, self._clock())
            return job

    def _charge(self) -> None:
        if self._running is not None:
            account, began = self._running
            self._used[account] += self._clock() - began
            self._running = None
        self._used = {who: used for who, used in self._used.items() if who in self._jobs or used > self._at}
