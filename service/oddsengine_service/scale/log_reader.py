"""Reading the log of the board: its messages are applied to this process's node as they come."""

import asyncio
import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from oddsengine.live.snapshot import SnapshotError
from oddsengine_service.monitoring import log
from oddsengine_service.node import Node
from oddsengine_service.scale.bettors import Serving
from oddsengine_service.scale.follower import LEAST_AGE_S, Follower, Snapshot, closed, fits, opened
from oddsengine_service.scale.link import TROUBLE
from oddsengine_service.scale.log_messages import FormError
from oddsengine_service.scale.node_changes import Changes
from oddsengine_service.scale.shard_log import LogMessage, LogRange, SharedLog
from oddsengine_service.scale.tasks import Tasks

_REPLAYED = 1000  # messages before the end at start from which streams can resume


class Start(NamedTuple):
    """Where to start: what is in the log, and a snapshot that it continues."""

    bounds: LogRange
    snapshot: Snapshot | None


class LogReader:
    """Applies the log of the board until this process leads; on the link's loop."""

    def __init__(self, node: Node, board: SharedLog, changes: Changes, tasks: Tasks) -> None:
        self._node, self._board, self._tasks = node, board, tasks
        self._gateway = not changes.leads
        self.follower = Follower(node, changes)
        self._created_at = self._target = 0  # of the log; the last message at the start
        self._damaged: set[str] = set()  # sequences of snapshots that could not be restored
        self.lag_s = 0.0  # from the writer's step until it was applied here
        self._streams_of: Serving | None = None  # until its streams remember updates
        self.outdated = False  # the log has a message that cannot be read here, so this process must not lead
        self._following: Future[Any] | None = None

    # ---- the start ----

    async def find_start(self) -> Start:
        """Find the first step of the log, or a snapshot."""
        while True:
            try:
                bounds = await self._board.bounds()
                return Start(bounds, await self._snapshot(bounds.created_at, bounds.first))
            except TROUBLE:
                await asyncio.sleep(0.2)

    async def begin(self, start: Start) -> bool:
        """Start there, or if that snapshot is damaged, from an older one; False if the log begins later than any."""
        while start.snapshot is not None:
            try:
                await self._node.written(self.follower.restore, start.snapshot)
                break
            except SnapshotError as error:
                sequence = start.snapshot[0]["sequence"]
                self._damaged.add(sequence)
                log.event("snapshot passed over", logging.ERROR, sequence=sequence, message=str(error))
                start = await self.find_start()
        bounds = start.bounds
        self._created_at = bounds.created_at
        if start.snapshot is None and bounds.first > 1:
            return False
        self._target = bounds.last
        return True

    async def _snapshot(self, created_at: int, first: int) -> Snapshot | None:
        """The newest snapshot that is older than another by the largest delay, so that delayed boards are soon full.

        Without one that old, a process starts from the first message, or if the log no longer has it, from the newest.
        """

        def usable(about: Mapping[str, str], before: float = float("inf")) -> bool:
            return about.get("sequence") not in self._damaged and fits(about, created_at, first, before)

        newest = await self._board.load(usable, opened)
        if newest is None:
            return None
        old = int(newest[0]["now"]) - LEAST_AGE_S * 1e6
        older = await self._board.load(lambda about: usable(about, old), opened)
        return newest if older is None and first > 1 else older

    # ---- following ----

    def remember_streams(self, service: Serving) -> None:
        """Once this process has almost caught up, have the streams of a service remember updates."""
        self._streams_of = service

    def follow(self) -> None:
        """Apply the log as it grows."""
        self._following = self._tasks.start(self._follow())

    async def stop(self) -> None:
        """Stop following, once everything read has been applied."""
        assert self._following is not None
        self._following.cancel()
        await self._node.written(lambda: None)

    async def _follow(self) -> None:
        try:
            await self._remember(self.follower.sequence)
            self._caught_up(self.follower.sequence)
            async for message in self._board.follow(self.follower.sequence):
                if message is None:
                    continue
                await self._take(message)
        except FormError as error:
            self.outdated = True
            self._node.wait_for(str(error))
            log.event("log not followed", logging.ERROR, message=str(error))

    async def _take(self, message: LogMessage) -> None:
        await self._node.written(self.follower.apply, message)
        now = self._node.engine.now
        if now is not None:
            self.lag_s = time.time() - now.timestamp()
        await self._remember(message.sequence)
        self._caught_up(message.sequence)

    async def _remember(self, sequence: int) -> None:
        """From here on, streams remember updates, for clients that resume a stream of another gateway."""
        service = self._streams_of
        if service is None or self._node.engine.now is None or sequence < self._target - _REPLAYED:
            return
        self._streams_of, begun = None, Future[None]()
        service.loop.call_soon_threadsafe(lambda: service.api.streams().remember(lambda: begun.set_result(None)))
        await asyncio.wrap_future(begun)

    def _caught_up(self, sequence: int) -> None:
        """A gateway is ready once it has applied the messages that existed at its start."""
        if self._gateway and self._node.waits_for and sequence >= self._target:
            self._node.wait_for("")
            log.event("ready", step=self._node.engine.number, seconds=round(time.time() - self._node.started, 2))

    def catch_up(self) -> None:
        """Count as caught up with the next message, whatever was in the log at the start."""
        self._target = 0

    # ---- snapshots ----

    async def save_snapshot(self, least_s: float, retained: int) -> None:
        """Save a snapshot unless the newest one is younger; so many are retained."""
        newest, now = await self._board.newest(), self._node.engine.now
        assert now is not None
        if (
            newest is not None
            and newest.get("born") == str(self._created_at)
            and now.timestamp() - int(newest["now"]) / 1e6 < least_s
        ):
            return
        about, data = await self._node.written(self.follower.snapshot, self._created_at)
        await self._board.save(about, await asyncio.to_thread(closed, data), retained)
