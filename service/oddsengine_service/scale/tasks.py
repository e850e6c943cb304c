"""Coroutines on the link's loop, on which this process depends."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from oddsengine_service.scale.follower import DivergedError
from oddsengine_service.scale.link import LogConnection
from oddsengine_service.scale.shard_log import LostError, RefusedError, UnstoredError

_DOUBTFUL = (DivergedError, LostError, RefusedError, UnstoredError)


class Tasks:
    """Coroutines that follow and write the logs; if one fails before the node closes, the process starts again."""

    def __init__(self, link: LogConnection) -> None:
        self._link = link
        self._running: set[Future[Any] | asyncio.Task[Any]] = set()  # the loop itself does not hold them
        self.closing = threading.Event()  # the node's, once there is one
        self.restart: Callable[[str], None] = lambda _: None  # the service's, once it runs

    def start(self, work: Coroutine[Any, Any, None]) -> "Future[Any]":
        """Start a coroutine; from any thread."""
        started = self._link.start(work)
        self._running.add(started)
        started.add_done_callback(self._ended)
        return started

    def background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a coroutine from within the loop."""
        task = self._link.loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait in another thread for a coroutine, until the node closes."""
        running = self._link.start(work)
        while not self.closing.is_set():
            with suppress(TimeoutError):
                return running.result(0.1)
            if running.done():
                return running.result()
        running.cancel()
        return None

    def _ended(self, task: "Future[Any] | asyncio.Task[Any]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self.closing.is_set():
            self.restart(str(error) if isinstance(error, _DOUBTFUL) else f"{type(error).__name__}: {error}")
