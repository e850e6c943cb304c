"""Runs the source of a plugin in a thread and an event loop of its own: one that blocks holds up only itself.

What it reports and delivers is handed to the hub's event loop. A source whose event loop stands still is named, with
the line where it does.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime
from typing import Any

from oddsengine.feeds import Payload
from oddsengine.sources import Failure, Receiver, Source
from oddsengine.sources.failure import PLUGIN
from oddsengine.sources.plugin_source import line_of

BLOCKED_S = 5.0  # an event loop that stands still for so long is blocked
_LOOK_S = 1.0
_GRACE_S = 1.0  # for a source to end after it was cancelled
_MOST_WAITING = 100  # reports that the hub has not taken yet; a source that has more waits
_BLOCKS = "its plugin blocks: it does not await what it waits for"


class ThreadedSource:
    """A source in a thread; the thread of one that blocks is left behind when it is cancelled, and ends with us."""

    def __init__(self, source: Source) -> None:
        self.feed, self._source = source.feed, source

    async def run(self, receiver: Receiver) -> None:
        """Run it until it ends, and raise what it raises; an exit or an interrupt of its thread is not one of ours."""
        running = _Running(self._source, ForwardingReceiver(receiver, asyncio.get_running_loop()))
        ended = asyncio.wrap_future(running.start())
        ended.add_done_callback(lambda each: each.cancelled() or each.exception())  # also when nobody waits any more
        try:
            while not ended.done():
                await asyncio.wait([ended], timeout=_LOOK_S)
                running.look(self.feed.name)
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait([ended], timeout=_GRACE_S)
            raise
        ended.result()


class _Running:
    """A source that runs in a thread."""

    def __init__(self, source: Source, receiver: "ForwardingReceiver") -> None:
        self._source, self._receiver = source, receiver
        self._ended: Future[None] = Future()
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        self._beat = self._loop.time()  # when its event loop last moved on
        work = copy_context().run
        self._thread = threading.Thread(
            target=lambda: work(self._work), name=f"feeds.{source.feed.name}", daemon=True
        )  # fmt: skip

    def start(self) -> "Future[None]":
        self._ended.set_running_or_notify_cancel()
        self._thread.start()
        return self._ended

    def _work(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._main())
            except asyncio.CancelledError:
                self._ended.set_result(None)
            except Exception as error:
                self._ended.set_exception(error)
            except BaseException as error:
                reason = f"its plugin ends its thread: {type(error).__name__}"
                self._ended.set_exception(Failure(reason, kind=PLUGIN))
            else:
                self._ended.set_result(None)

    async def _main(self) -> None:
        self._task = asyncio.current_task()
        if not self._cancelled:
            await self._source.run(self._receiver)

    def cancel(self) -> None:
        self._cancelled = True
        self._soon(lambda: self._task is not None and self._task.cancel())

    def look(self, name: str) -> None:
        """Say whether the event loop stands still; it is asked for a sign each time."""
        stands = self._loop.time() - self._beat > BLOCKED_S and not self._ended.done()
        self._receiver.block(name, f"its plugin blocks its event loop in {line_of(self._thread)}" if stands else "")
        self._soon(self._move)

    def _move(self) -> None:
        self._beat = self._loop.time()

    def _soon(self, call: Callable[[], Any]) -> None:
        with suppress(RuntimeError):  # it has ended, and is closed
            self._loop.call_soon_threadsafe(call)


class ForwardingReceiver:
    """Hands everything to a receiver of another event loop."""

    def __init__(self, receiver: Receiver, loop: asyncio.AbstractEventLoop) -> None:
        self._receiver, self._loop = receiver, loop
        self.ages = receiver.ages
        self._room = threading.BoundedSemaphore(_MOST_WAITING)
        self._warning: tuple[str, str] = ("", "")
        self._blocked = ""

    def now(self) -> datetime:
        return self._receiver.now()

    async def deliver(self, source: str, payload: Payload, part: str = "") -> None:
        await self._there(self._receiver.deliver(source, payload, part))

    async def received(self, source: str, place: str, body: bytes) -> None:
        await self._there(self._receiver.received(source, place, body))

    async def unreadable(self, source: str, body: bytes, reason: str) -> None:
        await self._there(self._receiver.unreadable(source, body, reason))

    async def _there(self, work: Any) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _report(self, call: Callable[..., None], *words: Any, **named: Any) -> None:
        """Have a report taken; beyond `_MOST_WAITING`, wait for room."""

        def take() -> None:
            self._room.release()
            call(*words, **named)

        self._room.acquire()
        self._loop.call_soon_threadsafe(take)

    def expect(self, source: str, part: str, within: float, *, polled: bool = False) -> None:
        self._report(self._receiver.expect, source, part, within, polled=polled)

    def alive(self, source: str, part: str = "") -> None:
        self._report(self._receiver.alive, source, part)

    def failed(self, source: str, failure: Failure, part: str = "") -> None:
        self._report(self._receiver.failed, source, failure, part)

    def conflict(self, source: str, reason: str) -> None:
        self._report(self._receiver.conflict, source, reason)

    def takes(self, source: str, seconds: float) -> None:
        self._report(self._receiver.takes, source, seconds)

    def credits(self, source: str, left: int | None, used: int | None, an_hour: float | None) -> None:
        self._report(self._receiver.credits, source, left, used, an_hour)

    def written(self, source: str, at: datetime | None) -> None:
        self._report(self._receiver.written, source, at)

    def caught_up(self, source: str, *, ended: bool = False) -> None:
        self._report(self._receiver.caught_up, source, ended=ended)

    def warn(self, source: str, reason: str, public: str = "") -> None:
        self._report(self._own_warning, source, reason, public)

    def _own_warning(self, source: str, reason: str, public: str) -> None:
        self._warning = reason, public
        if not self._blocked:
            self._receiver.warn(source, reason, public)

    def block(self, source: str, reason: str) -> None:
        """Say that the source blocks, in place of its own warning, until it does not; in the receiver's event loop."""
        if bool(reason) != bool(self._blocked):
            self._blocked = reason
            self._receiver.warn(source, *((reason, _BLOCKS) if reason else self._warning))
