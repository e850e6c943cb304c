"""An event loop whose clock skips the waiting, so that hours of a source pass in moments."""

import asyncio
import selectors
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any


class _Selector(selectors.DefaultSelector):
    """Skips the waiting: while nothing is on its way, the clock jumps to what is due next."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.working = 0.0, 0
        self.moved = time.monotonic()  # when it did last

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(min(0.001, timeout) if timeout is not None and not self.working else timeout)
        if not ready and timeout is not None and not self.working:
            self.now += max(0.0, timeout)
            self.moved = time.monotonic() if timeout > 0.0 else self.moved
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop on that clock; it stands still while threads work."""

    def __init__(self) -> None:
        self.clock = _Selector()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        self.clock.working += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(lambda _: setattr(self.clock, "working", self.clock.working - 1))
        return future
