"""What its author says of a source, and the source while it runs against a local server of its vendor.

Everything runs on a clock that skips the waiting, so that an hour of a source passes in a moment.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from oddsengine.feeds.venue_contracts import Contract
from oddsengine.feeds.venue_contracts import find as find_contract
from oddsengine.plugins import SOURCES, Plugin, described
from oddsengine.sources import Secrets, Source, SourceKind, source_kind
from oddsengine.sources.failure import Failure
from oddsengine.sources.fetching import read_arguments
from oddsengine.sources.plugin_source import line_of, made
from oddsengine.sources.source_settings import SettingsTable
from oddsengine.testing.bad_bodies import BAD_BODIES, BadBody
from oddsengine.testing.local_servers import Answering, Request, http
from oddsengine.testing.recorder import Recorder
from oddsengine.testing.simulated_clock import SimulatedLoop
from oddsengine.testing.source_server import SourceServer

PATIENCE_S = 1800.0  # of the simulated clock
STOP_S = 5.0
STANDS_S = 10.0  # of real time: a clock that stands still for so long does not go on
_LOOK_S = 0.1
_AGAIN_S = 30.0  # until a source that has failed is run again


async def _mute(_: Request, __: Answering) -> bool:
    await asyncio.sleep(1e6)
    return True


def _silence(server: Any) -> None:
    server.special = _mute


@dataclass(frozen=True)
class SourceCase:
    """What its author says of a source.

    Parameters
    ----------
    kind
        The kind of source, or its registered name.
    serve
        Makes a local server of the vendor with at least one price; it has to check the secrets.
    change, remove
        Change the odds of a price of that server, and remove a price that it has.
    settings
        Settings of a usual feed, as arguments of `oe.fetch`: ``{"sport": "nba", "key": "my-secret-key"}``.
    address
        The setting that takes the address of the server.
    priced
        The end of the paths of requests that are answered with prices; empty is all.
    silence
        Makes the server silent; by default it does not answer any more.
    bad_bodies
        By name, what is made of the body of an answer, and whether it has to be refused whole.

    Examples
    --------
    >>> from dataclasses import fields
    >>> [each.name for each in fields(SourceCase)][:4]
    ['kind', 'serve', 'change', 'remove']
    """

    kind: SourceKind | str
    serve: Callable[[], SourceServer]
    change: Callable[[Any], None]
    remove: Callable[[Any], None]
    settings: Mapping[str, Any] = field(default_factory=dict)
    address: str = "url"
    priced: str = ""
    silence: Callable[[Any], None] = _silence
    bad_bodies: Mapping[str, BadBody] = field(default_factory=lambda: BAD_BODIES)

    @property
    def source_kind(self) -> SourceKind:
        """The kind of source."""
        return source_kind(self.kind) if isinstance(self.kind, str) else self.kind

    @property
    def contract(self) -> Contract | None:
        """What the vendor accepts and sends, if that is written down."""
        own = self.source_kind.contract
        return find_contract(self.kind) if own is None and isinstance(self.kind, str) else own

    def create(self, url: str, secrets: Secrets, **settings: Any) -> Source:
        """Create the fetcher of a feed, as a node does for a plugin."""
        kind, name = self.source_kind, "mine"
        given = {**self.settings, self.address: url, **settings}
        table, env = read_arguments(name, kind, given)
        del table["kind"]
        feed = SettingsTable("settings of the case", name, table, {}, set()).read(kind.settings, name=name, kind=name)
        secrets.add(*env.values())
        label = self.kind if isinstance(self.kind, str) else name
        return made(Plugin(SOURCES, label, "", "the case", ""), kind, feed, env, secrets)


class RunningSource:
    """A source and its server; `recorder` has what it delivers and reports."""

    def __init__(self, case: SourceCase, server: SourceServer, fetcher: Source, secrets: Secrets) -> None:
        self.case, self.server, self.secrets = case, server, secrets
        self.feed, self.recorder = fetcher.feed, Recorder()
        self.task = asyncio.create_task(self._run(fetcher))

    async def _run(self, fetcher: Source) -> None:
        """Run it; again after a failure, as a node does."""
        while not self.recorder.ended:
            try:
                await fetcher.run(self.recorder)
            except Failure as failure:
                self.recorder.failed(self.feed.name, failure)
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    async def until(self, condition: Callable[[], Any], what: str, seconds: float = PATIENCE_S) -> None:
        """Wait until something holds. Raises `AssertionError`, with the last failure, if it does not in time."""
        if await self.recorder.until(condition, seconds):
            return
        last = f"; it reported: {self.recorder.failures[-1].failure}" if self.recorder.failures else ""
        raise AssertionError(f"{what} within {seconds:g} s{last}")

    async def first_prices(self) -> None:
        """Wait until all that there is at first has come."""
        recorder = self.recorder
        await self.until(
            lambda: recorder.complete and recorder.prices(), "it must deliver prices, and call caught_up() after them,"
        )  # fmt: skip

    async def changed_price(self) -> tuple[Mapping[Any, Any], int]:
        """Wait for the first prices, change one, and wait for that.

        Returns the first prices, and how many deliveries there were before the change.
        """
        await self.first_prices()
        first, began = self.recorder.prices(), len(self.recorder.deliveries)
        self.case.change(self.server)
        await self.until(lambda: self.recorder.prices() != first, "it must deliver a changed price")
        return first, began

    async def stop(self) -> bool:
        """Cancel it; return whether it has ended in time."""
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=STOP_S)
        return self.task.done()


Scenario = Callable[[RunningSource], Awaitable[None]]


def run_source(case: SourceCase, scenario: Scenario, **settings: Any) -> None:
    """Run a source of a case against its server until a scenario has ended; `settings` go before those of the case.

    It runs in a thread, which is left behind if the source blocks it: that is an `AssertionError` after `STANDS_S`.
    """

    async def main() -> None:
        server, secrets = case.serve(), Secrets()
        async with http(server) as url:
            with secrets.out_of_logs():
                running = RunningSource(case, server, case.create(url, secrets, **settings), secrets)
                try:
                    await scenario(running)
                finally:
                    for _ in range(3):
                        if await running.stop():
                            break

    loop, ended, work = SimulatedLoop(), Future[None](), copy_context().run

    def run() -> None:
        try:
            with _closing(loop):
                loop.run_until_complete(main())
            ended.set_result(None)
        except BaseException as error:
            ended.set_exception(error)

    thread = threading.Thread(target=lambda: work(run), name="source", daemon=True)
    thread.start()
    while not wait([ended], _LOOK_S).done:
        if time.monotonic() - loop.clock.moved > STANDS_S:
            where = "for a thread of its own" if loop.clock.working else f"in {line_of(thread)}"
            raise AssertionError(f"it must await what it waits for: its event loop stands still, {where}")
    error = ended.exception()
    if error is not None and not isinstance(error, Exception):
        raise AssertionError(f"it must not end its thread: {described(error)}") from error
    ended.result()


@contextmanager
def _closing(loop: SimulatedLoop) -> Iterator[None]:
    """Close an event loop, also if a task of a source does not end, or has ended it."""
    try:
        yield
    finally:
        try:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=STOP_S))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
