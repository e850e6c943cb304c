"""Thread pool for responses, shared fairly: accounts take turns, and none may occupy all threads.

Python runs one thread at a time, so an account with expensive requests slows down all others, even those that are
served from the cache. While other accounts are active, an account therefore gets `RATE` seconds of computing per
second, and may save up `BURST`; otherwise it is not limited.

A job that several accounts wait for runs once, at the first turn of any of them.

A job may name its `kind`, jobs that cost about the same. Once one of a kind took less than `QUICK` in a thread, the
others run on the event loop, because passing a job to a thread and back costs more than that.
"""

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, Generic, TypeVar

from oddsengine_service.accounts.limits import Bucket
from oddsengine_service.errors import Problem

THREADS = 4
SHARE = 2  # threads per account
OUTGOING, PLACES = 64, 2  # threads that wait for other hosts, in total and per account
RATE, BURST = 0.25, 2.0
QUICK = 0.0004  # seconds
ACTIVE_S = 1.0  # an account counts as active for this long after its last request
_LOOK_S = 0.02
_MOST_BUDGETS = 10_000
_MOST_KINDS = 4_096
_Result = TypeVar("_Result")


class Job(Generic[_Result]):
    """A function to run once; `done` is its result."""

    __slots__ = ("account", "accounts", "call", "done", "kind")

    def __init__(self, call: Callable[[], _Result], done: "asyncio.Future[_Result]", kind: Hashable) -> None:
        self.call, self.done, self.kind = call, done, kind
        self.accounts: set[str] = set()  # in whose queues it is or was
        self.account: str | None = None  # at whose turn it was started


class Pool:
    """Worker threads. They take jobs from the queues themselves, so a busy thread never sleeps between two jobs."""

    def __init__(
        self, threads: int = THREADS, share: int = SHARE, clock: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._threads, self._share, self._clock = threads, share, clock  # `_threads`: not started yet
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._waiting: OrderedDict[str, deque[Job[Any]]] = OrderedDict()  # in order of turns
        self._running: dict[str, int] = {}
        self._budgets: dict[str, Bucket] = {}  # seconds of computing that accounts have left
        self._costs: dict[Hashable, float] = {}  # seconds of the last job, by kind
        self._active = ("", -ACTIVE_S), ("", -ACTIVE_S)  # the last request, and the last request of another account
        self._done: deque[tuple[Job[Any], Any, BaseException | None]] = deque()
        self._posted = False  # a call of `_settle` is scheduled

    # ---- in the event loop ----

    def note(self, account: str) -> None:
        """Record that an account is active."""
        last, before = self._active
        self._active = (account, self._clock()), before if last[0] == account else last

    def run_here(self, account: str, call: Callable[[], _Result], kind: Hashable) -> _Result | None:
        """Run a function here if its kind is quick and it is the account's turn; otherwise return None."""
        if kind is None or self._costs.get(kind, QUICK) >= QUICK or account in self._waiting:
            return None
        with self._lock:
            if not self._may_run(account):
                return None
        self.note(account)
        began = time.thread_time()
        try:
            return call()
        finally:
            spent = self._costs[kind] = time.thread_time() - began
            with self._lock:
                self._charge(account, spent)

    async def run(self, account: str, call: Callable[[], _Result], kind: Hashable = None) -> _Result:
        """Run a function in a thread, when it is the account's turn."""
        return await self.submit(account, call, kind).done

    def submit(self, account: str, call: Callable[[], _Result], kind: Hashable = None) -> Job[_Result]:
        """Queue a function for a thread."""
        job = Job(call, asyncio.get_running_loop().create_future(), kind)
        self.join(account, job)
        with self._lock:
            while self._threads:
                self._threads -= 1
                threading.Thread(target=self._work, name="answer", daemon=True).start()
        return job

    def join(self, account: str, job: Job[Any]) -> None:
        """Queue a job for another account too, if it has not started."""
        self.note(account)
        with self._ready:
            if job.account is None and account not in job.accounts:
                job.accounts.add(account)
                self._waiting.setdefault(account, deque()).append(job)
                self._ready.notify()

    def _settle(self) -> None:
        """Pass results on to their futures."""
        self._posted = False
        while self._done:
            job, result, error = self._done.popleft()
            if job.done.cancelled():
                continue
            if error is None:
                job.done.set_result(result)
            else:
                job.done.set_exception(error)

    # ---- in the threads ----

    def _work(self) -> None:
        while True:
            job = self._next()
            result, began = None, time.thread_time()
            error: BaseException | None = None
            try:
                result = job.call()
            except StopIteration as raised:  # not allowed in a future
                error = RuntimeError(repr(raised))
            except BaseException as raised:
                error = raised
            self._finish(job, time.thread_time() - began)
            self._done.append((job, result, error))
            loop = job.done.get_loop()
            del job, result, error
            if not self._posted:
                self._posted = True
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._settle)

    def _next(self) -> Job[Any]:
        """Wait for a job whose account may run."""
        with self._ready:
            while (job := self._take()) is None:
                self._ready.wait(_LOOK_S if self._waiting else None)  # a budget refills with time
            return job

    def _take(self) -> Job[Any] | None:
        while (account := next((who for who in self._waiting if self._may_run(who)), None)) is not None:
            jobs = self._waiting[account]
            job = jobs.popleft()
            if jobs:
                self._waiting.move_to_end(account)
            else:
                del self._waiting[account]
            if job.account is None and not job.done.cancelled():
                job.account = account
                self._running[account] = self._running.get(account, 0) + 1
                return job
        return None

    def _may_run(self, account: str) -> bool:
        if self._running.get(account, 0) >= self._share:
            return False
        budget = self._budgets.get(account)
        return budget is None or budget.take_tokens(self._clock()) > 0.0 or not self._others(account)

    def _others(self, account: str) -> bool:
        """Whether another account was active recently."""
        last, before = self._active
        who, at = before if last[0] == account else last
        return bool(who) and self._clock() - at < ACTIVE_S

    def _finish(self, job: Job[Any], spent: float) -> None:
        account = job.account
        assert account is not None
        with self._ready:
            self._running[account] -= 1
            if not self._running[account]:
                del self._running[account]
            self._charge(account, spent)
            if job.kind is not None:
                if len(self._costs) >= _MOST_KINDS:
                    self._costs.clear()
                self._costs[job.kind] = spent

    def _charge(self, account: str, spent: float) -> None:
        now = self._clock()
        budget = self._budgets.get(account)
        if budget is None:
            if len(self._budgets) > _MOST_BUDGETS:  # a full budget need not be stored
                self._budgets = {who: each for who, each in self._budgets.items() if each.take_tokens(now) < BURST}
            budget = self._budgets[account] = Bucket(RATE, BURST, now)
        budget.take_tokens(now, spent)


class WaitingThreads(Executor):
    """Threads for jobs that wait for other hosts; the process does not wait for them when it ends.

    They are started as needed and end with the last job. The threads of `ThreadPoolExecutor` delay the end.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._most, self._name = threads, name
        self._lock = threading.Lock()
        self._jobs: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._running = 0

    def submit(self, fn: Callable[..., _Result], /, *args: Any, **kwargs: Any) -> "Future[_Result]":
        future: Future[_Result] = Future()
        with self._lock:
            self._jobs.append((future, partial(fn, *args, **kwargs)))
            if self._running < self._most:
                self._running += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._running -= 1
                    return
                future, call = self._jobs.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)


class OutgoingPool:
    """Threads for jobs that wait for other hosts, so that these occupy no answer thread; used in the event loop."""

    def __init__(self) -> None:
        self._threads = WaitingThreads(OUTGOING, "outgoing")
        self._running: dict[str, int] = {}

    async def run(self, account: str, call: Callable[[], _Result]) -> _Result:
        """Run a function in a thread. Raises `Problem` 429 if `PLACES` of the account are running."""
        running = self._running.get(account, 0)
        if running >= PLACES:
            message = f"{running} requests of this account wait for other hosts; retry in a few seconds"
            raise Problem(429, "rate_limited", message, retry_after=2)
        self._running[account] = running + 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        finally:
            self._running[account] -= 1
            if not self._running[account]:
                del self._running[account]


class Turns:
    """Jobs of accounts for one thread; the account that has used the least time is next.

    This is start-time fair queueing: however long an account's jobs take, another account waits for at most one of
    them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ready = threading.Condition()
        self._jobs: dict[Hashable, deque[Callable[[], None]]] = {}
        self._used: dict[Hashable, float] = {}  # time used; an account that returns starts at the current level
        self._at = 0.0  # what the account of the last job had used by then
        self._running: tuple[Hashable, float] | None = None
        self._ended = False

    def put(self, account: Hashable, job: Callable[[], None], *, first: bool = False) -> None:
        """Add a job, or the next part of one before the account's other jobs; from any thread."""
        with self._ready:
            if account not in self._jobs:
                self._jobs[account] = deque()
                self._used[account] = max(self._at, self._used.get(account, 0.0))
            (self._jobs[account].appendleft if first else self._jobs[account].append)(job)
            self._ready.notify()

    def end(self) -> None:
        with self._ready:
            self._ended = True
            self._ready.notify_all()

    def next(self) -> Callable[[], None] | None:
        """Wait for the next job; None at the end. Calling it again ends the previous job."""
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
