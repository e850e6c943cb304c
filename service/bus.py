"""The bus: every update of the engine, in order, to whoever serves it."""

import asyncio
from collections.abc import Callable

from oddsengine.update import Update

Listener = Callable[[Update], None]


class Bus:
    """Updates within one process: published in the engine's thread, heard in the event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: list[Listener] = []

    def begin(self) -> None:
        """Deliver in the event loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def publish(self, update: Update) -> None:
        """Tell everybody."""
        if self._listeners and self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell, update)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a function with every update from now on."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self, update: Update) -> None:
        for listener in tuple(self._listeners):
            listener(update)
