"""Writing the logs: what the leading writer makes is stored in order."""

import asyncio
import time
from contextlib import suppress
from typing import Any

import msgspec

from oddsengine_service.node import Node
from oddsengine_service.scale.closings import PendingClosings
from oddsengine_service.scale.follower import Follower
from oddsengine_service.scale.link import LogConnection
from oddsengine_service.scale.log_messages import Entry, Sources, StateCheck, packed
from oddsengine_service.scale.outbox import Outbox
from oddsengine_service.scale.shard_log import SharedLog
from oddsengine_service.wire.splits_response import SplitsGiven

CHECK_S = 60.0  # between two state hashes in the log
SOURCES_S = 10.0  # between two unchanged statuses of sources
_MADE_S = 0.001  # between two checks whether a step in the outbox has been made


class LogWriter:
    """Stores the steps and the records of this process, as long as it leads; on the link's loop."""

    def __init__(
        self, node: Node, link: LogConnection, board: SharedLog, past: SharedLog, closings: PendingClosings,
        follower: Follower,
    ) -> None:  # fmt: skip
        self._node, self._link, self._board, self._past = node, link, board, past
        self._closings, self._follower = closings, follower  # whose position is after the last message stored
        self._news = asyncio.Event()
        self.outbox = Outbox(node, self._wake, lambda: link.client.max_payload)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._link.loop.call_soon_threadsafe(self._news.set)

    async def publish(self) -> None:
        """Store pending entries, one message at a time."""
        outbox, epoch = self.outbox, self._follower.epoch
        last = self._follower.sequence
        checked = sourced = time.monotonic()
        published: Any = None
        while True:
            entries = outbox.first()
            if not entries and outbox.making:
                await asyncio.sleep(_MADE_S)
                continue
            if not entries:
                self._news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.05)
                continue
            entries, body = await asyncio.to_thread(outbox.fitting)
            more = []
            now = time.monotonic()
            sources = self._sources()
            if sources is not None and (sources != published or now - sourced > SOURCES_S):
                published, sourced = sources, now
                more.append(Entry("sources", sources))
            if now - checked > CHECK_S:
                check = await asyncio.to_thread(self._check, entries)
                if check is not None:
                    checked = now
                    more.append(Entry("check", check))
            if more:
                body = await asyncio.to_thread(packed, [*entries, *more])
            last = await self._board.append(body, last, epoch)
            self._follower.resume(last, epoch)
            outbox.stored(len(entries))

    def _sources(self) -> Sources | None:
        feeds = self._node.feeds
        return None if feeds is None or feeds is self._follower.feeds else Sources(feeds.statuses(), feeds.books())

    def _check(self, entries: list[Entry]) -> StateCheck | None:
        """The state hash after the last step of a message; None if more steps were made meanwhile."""
        last = next(entry.value.number for entry in reversed(entries) if entry.kind == "step")
        with self._node.engine.still():
            if self._node.engine.number != last:
                return None
            return StateCheck(last, self._node.engine.state_hash(views=False))

    async def publish_records(self, after: int) -> None:
        """Store pending closing lines and bets after a message."""
        epoch = self._follower.epoch
        while True:
            body = self._closings.first()
            if body is None:
                await asyncio.sleep(0.02)
                continue
            after = await self._past.append(body, after, epoch)
            self._closings.stored()

    async def take_splits(self, message: Any) -> None:
        """Store betting splits that a gateway sends."""
        splits = msgspec.json.decode(message.data, type=list[SplitsGiven])
        accepted = await self._node.written(lambda: self._node.put_splits(splits, self._node.clock.now()))
        put = time.monotonic()
        while accepted and time.monotonic() - self.outbox.waiting_s <= put:  # stored with the next step
            await asyncio.sleep(0.005)
        await message.respond(b"%d" % accepted)

    async def finish(self) -> None:
        """Wait for a moment until pending entries are stored."""
        until = time.monotonic() + 2.0
        while self.outbox.first() and time.monotonic() < until:
            await asyncio.sleep(0.01)
