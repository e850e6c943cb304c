"""The bus delivers every update of the engine, in order, to subscribers."""

import asyncio
from collections.abc import Callable

from oddsengine.update import Update

Listener = Callable[[Update], None]


class Bus:
    """Updates within a process: published in the engine's thread, delivered in the event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: list[Listener] = []

    def begin(self) -> None:
        """Deliver updates in the running event loop."""
        self._loop = asyncio.get_running_loop()

    def publish(self, update: Update) -> None:
        if self._listeners and self._loop is not None:
            self._loop.call_soon_threadsafe(self._deliver, update)

    def listen(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _deliver(self, update: Update) -> None:
        for listener in tuple(self._listeners):
            listener(update)
