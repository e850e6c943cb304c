"""Threads that compute answers, shared fairly: accounts take turns, and none has all threads at once."""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

THREADS = 4
SHARE = 2  # threads that one account may have
_Result = TypeVar("_Result")


class _Job(NamedTuple):
    call: Callable[[], Any]
    done: asyncio.Future[Any]


class Pool:
    """Answer threads; used from the event loop only."""

    def __init__(self, threads: int = THREADS, share: int = SHARE) -> None:
        self._free, self._share = threads, share
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="answer")
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()  # the account whose turn is next comes first
        self._running: dict[str, int] = {}

    async def run(self, account: str, call: Callable[[], _Result]) -> _Result:
        """Compute something in a thread, when it is the account's turn."""
        done: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account, deque()).append(_Job(call, done))
        self._start()
        return await done

    def _start(self) -> None:
        while self._free:
            account = next((who for who in self._waiting if self._running.get(who, 0) < self._share), None)
            if account is None:
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

    def _run(self, loop: asyncio.AbstractEventLoop, account: str, job: _Job) -> None:
        """In a thread."""
        result, error = None, None
        try:
            result = job.call()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._finish, account, job, result, error)

    def _finish(self, account: str, job: _Job, result: Any, error: BaseException | None) -> None:
        self._free += 1
        self._running[account] -= 1
        if not self._running[account]:
            del self._running[account]
        if not job.done.cancelled():
            if error is None:
                job.done.set_result(result)
            else:
                job.done.set_exception(error)
        self._start()
