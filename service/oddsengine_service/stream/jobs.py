"""What the hub's thread has to do."""

import asyncio
import queue
from collections.abc import Callable
from typing import Any, NamedTuple

from oddsengine_service.stream.resuming import RecentUpdates

Job = Callable[[], None]


class _Waiting(NamedTuple):
    number: int  # of the update to wait for
    job: Job


class Jobs:
    """Jobs for the hub's thread, and calls for the event loop.

    `put` and `post` are for any thread, all else for the hub's.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, updates: RecentUpdates) -> None:
        self._loop, self._updates = loop, updates
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting: list[_Waiting] = []  # in order of their updates

    def put(self, job: Job | None) -> None:
        """Have a job done after the earlier ones; None ends the thread."""
        self._queue.put(job)

    def post(self, call: Callable[..., None], *args: Any) -> None:
        """Call something in the event loop."""
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop is closed
            self._queue.put(None)

    def get(self, timeout: float | None) -> Job | None:
        """The next job. Raises `queue.Empty`."""
        return self._queue.get(timeout=timeout)

    def after_update(self, number: int, job: Job) -> None:
        """Do a job once an update and all before it have been processed."""
        latest = self._updates.number
        if latest is None:
            return
        if number <= latest:
            job()
        else:
            self._waiting.append(_Waiting(number, job))
            self._waiting.sort(key=lambda each: each.number)

    def updated(self, number: int) -> None:
        """Do what waited for an update that has been processed."""
        while self._waiting and self._waiting[0].number <= number:
            self._waiting.pop(0).job()

    def forget_waiting(self) -> None:
        """Drop the jobs that wait for an update."""
        self._waiting.clear()
