"""The thread that changes the board of a node."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import Any

from oddsengine.live.engine import Batch, Engine
from oddsengine.live.update import Update
from oddsengine_service.monitoring.metrics import Histogram


class StalledError(RuntimeError):
    """The data cannot be stored at the moment; nothing was applied."""


class Writer:
    """An engine, and the thread that changes it: jobs of `write` run one after another, and only they make steps."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.followers: list[Callable[[Update], None]] = []  # called with every update, before the next step
        self.steps = Histogram("oddsengine_step_seconds", "How long steps of the engine took")
        self.stepping = False  # a step is running
        self._jobs = ThreadPoolExecutor(1, thread_name_prefix="writer")

    def step(self, quotes: Any, now: datetime | None, **more: Any) -> Update:
        """Apply a batch and publish the update; only in the writer (`write`)."""
        return self._published(self.engine.step, quotes, now, **more)

    def feed(self, batch: Batch) -> Update:
        """Apply a batch of another process's engine and publish the update; only in the writer."""
        return self._published(self.engine.feed, batch)

    def _published(self, make: Callable[..., Update], *args: Any, **more: Any) -> Update:
        began, self.stepping = time.perf_counter(), True
        try:
            update = make(*args, **more)
        finally:
            self.stepping = False
        seconds = time.perf_counter() - began
        self.steps.observe(seconds)
        self.publish(update)
        self.stepped(seconds)
        return update

    def stepped(self, seconds: float) -> None:
        """A step is over and published, which took so long."""

    def publish(self, update: Update) -> None:
        for follow in tuple(self.followers):
            follow(update)

    def write(self, job: Callable[..., Any], *args: Any, **words: Any) -> "Future[Any]":
        """Run a job in the writer, after those already queued."""
        return self._jobs.submit(job, *args, **words)

    async def written(self, job: Callable[..., Any], *args: Any) -> Any:
        """Run a job in the writer, and wait for its result without blocking the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._jobs, job, *args)

    @property
    def writing(self) -> bool:
        """Whether the writer can take jobs; its thread starts with the first one."""
        threads = list(self._jobs._threads)
        return not self._jobs._shutdown and (not threads or any(thread.is_alive() for thread in threads))

    def close(self) -> None:
        """Finish the current job and cancel the others."""
        self._jobs.shutdown(wait=True, cancel_futures=True)
