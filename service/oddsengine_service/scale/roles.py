"""The two roles: a gateway follows the log and serves requests; a writer follows until it gets the lease, then leads.

Whenever the state of a process is in doubt, it discards its node and starts again as a follower
(`Service.restart`): if the log is another one, a step was rejected, the lease was lost, or the state differs from
the writer's.
"""

import asyncio
import math
import os
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from nats.js.errors import APIError
from prometheus_client.core import GaugeMetricFamily, Metric

from oddsengine_service.errors import Problem
from oddsengine_service.monitoring import log
from oddsengine_service.node import VERSION, Node
from oddsengine_service.scale.bettors import Serving, SharedRecords
from oddsengine_service.scale.changes import Changes
from oddsengine_service.scale.closings import PendingClosings, stored
from oddsengine_service.scale.follower import LEAST_AGE_S, DivergedError, Follower, Snapshot, closed, fits, opened
from oddsengine_service.scale.link import TROUBLE, LogConnection
from oddsengine_service.scale.log import (
    Lease,
    LogMessage,
    LostError,
    RefusedError,
    SharedLog,
    UnstoredError,
    until_answered,
)  # fmt: skip
from oddsengine_service.scale.messages import Begin, Entry, FormError, Sources, StateCheck, packed
from oddsengine_service.scale.outbox import STALLED_S, Outbox
from oddsengine_service.scale.sharing import SharedCounts, SharedKeys, SharedUsage
from oddsengine_service.settings import Settings
from oddsengine_service.wire.splits import SplitsGiven

CHECK_S = 60.0  # between two state hashes in the log
SOURCES_S = 10.0  # between two unchanged statuses of sources
GONE_S = 60.0  # without a connection; then a gateway is not ready
_ASK_S = 5.0
_MADE_S = 0.001  # between two checks whether a step in the outbox has been made
_REPLAYED = 1000  # messages before the end at start from which streams can resume
_SLOW_S = 2.0  # pending for longer counts as a failure
_RECORDS_HOURS, _RECORDS_BYTES = 400 * 24.0, 4 << 30
_DOUBTFUL = (DivergedError, LostError, RefusedError, UnstoredError)
_MAX_PAYLOAD = 8_000_000  # recommended max_payload of the servers


class Member(Changes):
    """One process of a cluster: its link and logs, and the tasks that follow them. `role` is the configured one."""

    node: Node
    follower: Follower

    def __init__(self, settings: Settings, environ: Mapping[str, str], *, shares_keys: bool) -> None:
        super().__init__()
        self.link = LogConnection(settings, environ, lambda event, message: log.event(event, message=message))
        self.scale = self.link.scale
        self.leads = self.scale.role == "writer"
        self.board, self.past = SharedLog(self.link, "board"), SharedLog(self.link, "records")
        self.closings: PendingClosings = PendingClosings(lambda: self.writes)
        self.name = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns() % 1_000_000}"
        self.records = self._records = SharedRecords(self.link, self._background)
        self.counts = self._counts = SharedCounts(self.link, self.name)
        self.usage = self._usage = SharedUsage(self.link, self.name)
        self._keys = SharedKeys(self.link) if shares_keys else None
        if self._keys is not None:
            self.keys = self._keys
        self.born, self.writes = 0, False
        self.lag_s = 0.0  # from the writer's step until it was applied here
        self._lease: Lease | None = None
        self._over: Callable[[str], None] = lambda _: None
        self._tasks: list[Future[Any]] = []
        self._helpers: set[asyncio.Task[None]] = set()
        self._streams_of: Serving | None = None  # until its streams remember updates
        self._outdated = False  # the log has messages of a newer version, so this process must not lead
        self.standing_by = self.leads
        self.waits_for = "standing by" if self.leads else "waits for the log"

    # ---- what is replicated ----

    def put_splits(self, splits: Collection[SplitsGiven]) -> int | None:
        """Send records to the writer; they are in the log afterwards."""
        if self.leads:
            return None
        subject = f"ask.{self.scale.shard}.splits"
        try:
            reply = self.link.call(self.link.client.request(subject, msgspec.json.encode(splits), _ASK_S), _ASK_S + 1)
        except TROUBLE as error:
            raise Problem(503, "unavailable", "the writer does not respond; retry in 5 s", retry_after=5) from error
        return int(reply.data)

    def collect(self) -> Iterable[Metric]:
        """Metrics of this process's position in the log."""
        yield GaugeMetricFamily(
            "oddsengine_log_connected", "Whether there is a connection to the log", not self.link.disconnected_s
        )
        leads = GaugeMetricFamily("oddsengine_log_leads", "Whether this process writes the log", labels=["shard"])
        leads.add_metric([self.scale.shard], self.outbox is not None)
        yield leads
        yield GaugeMetricFamily("oddsengine_log_sequence", "The last message that is in the log or was applied",
                                self.follower.sequence)  # fmt: skip
        if self.outbox is None:
            yield GaugeMetricFamily(
                "oddsengine_log_lag_seconds", "From the writer's step until it was applied here", self.lag_s
            )
        else:
            yield GaugeMetricFamily(
                "oddsengine_log_waiting_seconds", "For how long the oldest step waits for the log",
                self.outbox.waiting_s,
            )  # fmt: skip

    @property
    def _retained(self) -> int:
        """Number of snapshots to retain, so that one is older than any delay."""
        return 3 + math.ceil(1.25 * LEAST_AGE_S / self.scale.snapshot_s)

    # ---- life cycle ----

    def attach(self, node: Node) -> None:
        node.use_feeds(self.feeds)  # of the process that has them
        self.node, self.follower = node, Follower(node, self)

    def run(self, service: Serving, feed: Callable[[Any], None]) -> None:
        """Follow, and feed the board while this process leads; in a thread, until the node closes."""
        self._over = service.restart
        if not self.leads:
            self._streams_of = service
        try:
            self._live(service, feed)
        except (LostError, UnstoredError) as error:  # before following, or after it ended
            self._over(str(error))

    def _live(self, service: Serving, feed: Callable[[Any], None]) -> None:
        node = self.node
        node.write(self.follower.keep_views).result()
        self._wait(self._enter())
        assert node.past is not None
        records = stored(self.past, node.past.closings, partial(node.report, "closing"))
        work = (self._follow(), records, self._watch(), self._save_snapshots())
        self._tasks = [self._start(each) for each in work]
        if self.leads and self._wait(self._win()):
            node.write(self.follower.drop_views).result()
            node.wait_for("")
            self._start(self._records.lead(self.follower.epoch, service))
            log.event("leads", epoch=self.follower.epoch, step=node.engine.number)
            feed(service)
        node.closing.wait()

    def close(self) -> None:
        if self.link.closing:
            return
        self._usage.flush()
        if self._lease is not None:
            with suppress(*TROUBLE):
                self.link.call(self._finish(), 3.0)
        self.link.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> "Future[Any]":
        """Start a coroutine on the link's loop; if it fails, the process starts again."""
        started = self.link.start(work)
        started.add_done_callback(self._ended)
        return started

    def _ended(self, task: "Future[Any] | asyncio.Task[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None and not self.node.closing.is_set():
            self._over(str(error) if isinstance(error, _DOUBTFUL) else f"{type(error).__name__}: {error}")

    def _background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """`_start` from within the loop, for as long as the coroutine runs."""
        task = self.link.loop.create_task(work)
        self._helpers.add(task)
        task.add_done_callback(self._helpers.discard)
        task.add_done_callback(self._ended)
        return task

    def _wait(self, work: Any) -> Any:
        """Wait for a coroutine on the link's loop until the node closes."""
        running = self.link.start(work)
        while not self.node.closing.is_set():
            with suppress(TimeoutError):
                return running.result(0.1)
            if running.done():
                return running.result()
        running.cancel()
        return None

    async def _enter(self) -> None:
        """Connect, and start from a snapshot or the first step."""
        await self.link.connect()
        if (most := self.link.client.max_payload) < _MAX_PAYLOAD:
            log.event("max_payload is small", bytes=most, wanted=_MAX_PAYLOAD)
        if self._keys is not None:
            await self._until_answered(partial(self._keys.open, self.node.keys))
            self._background(self._keys.watch())
        if not self.leads:
            self._background(self._counts.share(self.node.limits))
            if (usage := self.node.limits.usage) is not None:
                await self._until_answered(partial(self._usage.open, usage))
                self._background(self._usage.follow())
        report = partial(self.node.report, "log")
        await self.board.open(self.scale.log_hours, self.scale.log_bytes, report)
        await self.past.open(_RECORDS_HOURS, min(_RECORDS_BYTES, self.scale.log_bytes), report)
        await self._records.open(self.node)
        self._background(self._records.follow())
        while True:
            try:
                bounds = await self.board.bounds()
                snapshot = await self._snapshot(bounds.born, bounds.first)
            except TROUBLE:
                await asyncio.sleep(0.2)
                continue
            self.born, self.began = bounds.born, bounds.born / 1e6
            self.origin = f"log {self.scale.shard} {self.born}"
            if snapshot is not None:
                await self.node.written(self.follower.restore, snapshot)
            if snapshot is not None or bounds.first <= 1:
                break
            self.node.wait_for(
                f"waits for a snapshot: the log begins at message {bounds.first}; where no process makes one, delete "
                f"stream {self.board.name}, and the writer begins a new one"
            )
            await asyncio.sleep(1.0)
        self._target = bounds.last

    async def _snapshot(self, born: int, first: int) -> Snapshot | None:
        """The newest snapshot that is older than another by the largest delay, so that delayed boards are soon full.

        Without one that old, a process starts from the first message, or if the log no longer has it, from the newest.
        """
        newest = await self.board.load(lambda about: fits(about, born, first), opened)
        if newest is None:
            return None
        old = int(newest[0]["now"]) - LEAST_AGE_S * 1e6
        older = await self.board.load(lambda about: fits(about, born, first, old), opened)
        return newest if older is None and first > 1 else older

    # ---- following ----

    async def _follow(self) -> None:
        """Apply the log as it grows, until this process leads."""
        try:
            await self._remember(self.follower.sequence)
            self._caught_up(self.follower.sequence)
            async for message in self.board.follow(self.follower.sequence):
                if message is None:
                    continue
                await self._take(message)
        except FormError as error:
            self._outdated = True
            self.node.wait_for(str(error))

    async def _take(self, message: LogMessage) -> None:
        await self.node.written(self.follower.apply, message)
        now = self.node.engine.now
        if now is not None:
            self.lag_s = time.time() - now.timestamp()
        await self._remember(message.sequence)
        self._caught_up(message.sequence)

    async def _remember(self, sequence: int) -> None:
        """From here on, streams remember updates, for clients that resume a stream of another gateway."""
        service = self._streams_of
        if service is None or self.node.engine.now is None or sequence < self._target - _REPLAYED:
            return
        self._streams_of, begun = None, Future[None]()
        service.loop.call_soon_threadsafe(lambda: service.api.streams().remember(lambda: begun.set_result(None)))
        await asyncio.wrap_future(begun)

    def _caught_up(self, sequence: int) -> None:
        """A gateway is ready once it has applied the messages that existed at its start."""
        if not self.leads and self.node.waits_for and sequence >= self._target:
            self.node.wait_for("")
            log.event("ready", step=self.node.engine.number, seconds=round(time.time() - self.node.started, 2))

    async def _watch(self) -> None:
        """Report the state of the log; a disconnected gateway keeps serving its last state for a while."""
        node = self.node
        while True:
            await asyncio.sleep(0.5)
            gone, waiting = self.link.disconnected_s, 0.0 if self.outbox is None else self.outbox.waiting_s
            if gone:
                node.report("log", f"no connection for {gone:.0f} s")
            elif waiting > _SLOW_S:
                node.report("log", f"steps have waited for {waiting:.0f} s: {self.board.trouble or 'no answer'}")
            elif self.closings.waiting_s > _SLOW_S and self.outbox is not None:
                node.report("log", f"closing lines are waiting to be stored: {self.past.trouble or 'no answer'}")
            else:
                node.report("log", "")
            if self.outbox is not None:
                stalled = waiting > STALLED_S
                if stalled and node.ready:
                    log.event("steps not stored", message=node.failures["log"])
                self.standing_by = not stalled
                node.wait_for("the log takes no steps" if stalled else "")
            elif gone > GONE_S and node.ready:
                self._target = 0
                node.wait_for("no connection to the log")

    async def _save_snapshots(self) -> None:
        """Save snapshots regularly: a stand-by writer does, else a gateway, never the leading writer."""
        every = self.scale.snapshot_s * ((0.9 if self.leads else 1.2) + 0.1 * (hash(self.name) % 100) / 100.0)
        while self.outbox is None:
            await asyncio.sleep(every)
            if self.outbox is not None or self.node.engine.now is None:
                continue
            try:
                newest = await self.board.newest()
                if (
                    newest is None
                    or newest.get("born") != str(self.born)
                    or self.node.engine.now.timestamp() - int(newest["now"]) / 1e6 >= 0.8 * self.scale.snapshot_s
                ):
                    about, data = await self.node.written(self.follower.snapshot, self.born)
                    await self.board.save(about, await asyncio.to_thread(closed, data), self._retained)
            except TROUBLE as error:
                self.node.report("snapshot", f"not saved: {error or type(error).__name__}")
            else:
                self.node.report("snapshot", "")

    # ---- leading ----

    async def _win(self) -> bool:
        """Wait for the lease, read to the end, and begin; True once the log has accepted it."""
        while True:
            if self._lease is None:
                with suppress(*TROUBLE):
                    self._lease = None if self._outdated else await self.board.lease(self.name)
                if self._lease is None:
                    await asyncio.sleep(self.scale.lease_s / 5.0)
                    continue
                self._renewing = self._background(self._renew())
            end = await self._until_answered(self.board.bounds)
            if self._outdated:
                self._renewing.cancel()
                with suppress(*TROUBLE):
                    await self._lease.release()
                self._lease = None
                continue
            if self.follower.sequence < end.last:
                await asyncio.sleep(0.01)
                continue
            self._tasks[0].cancel()
            await self.node.written(lambda: None)  # everything read has been applied
            # The lease's bucket may be new, with revisions from 1 again; an older epoch would be ignored.
            epoch = max(self._lease.epoch, self.follower.epoch + 1)
            if self.follower.sequence >= end.last:
                with suppress(RefusedError):  # the previous writer wrote another message
                    begin = packed([Entry("begin", Begin(epoch, self.name, VERSION))])
                    self._last = await self.board.append(begin, self.follower.sequence, epoch)
                    break
            self._tasks[0] = self._start(self._follow())
        self.follower.resume(self._last, epoch)
        self._news = asyncio.Event()
        self.outbox = Outbox(self.node, self._wake, lambda: self.link.client.max_payload)
        self.writes, self.most_quotes = True, self.outbox.most_quotes
        self._tasks += [self._start(self._publish()), self._start(self._publish_records())]
        await self.link.client.subscribe(f"ask.{self.scale.shard}.splits", cb=self._take_splits)
        return True

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self.link.loop.call_soon_threadsafe(self._news.set)

    async def _until_answered(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        return await until_answered(ask, "the log is not ready", partial(self.node.report, "log"), 0.1)

    async def _renew(self) -> None:
        """Renew the lease; without it this process must not write."""
        lease, renewed_at = self._lease, time.monotonic()
        assert lease is not None
        while True:
            await asyncio.sleep(self.scale.lease_s / 5.0)
            try:
                async with asyncio.timeout(self.scale.lease_s / 2.5):
                    if not await lease.renew():
                        self._lease = None
                        self._over("another writer holds the lease")
                        return
                renewed_at = time.monotonic()
            except TROUBLE:
                # While no server responds, nobody can take it, and the log itself rejects late writers.
                self.node.report("lease", f"not renewed for {time.monotonic() - renewed_at:.0f} s")
            else:
                self.node.report("lease", "")

    async def _publish(self) -> None:
        """Store pending entries, one message at a time."""
        assert self.outbox is not None
        outbox, epoch = self.outbox, self.follower.epoch
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
            self._last = await self.board.append(body, self._last, epoch)
            self.follower.resume(self._last, epoch)
            outbox.stored(len(entries))

    def _sources(self) -> Sources | None:
        feeds = self.node.feeds
        return None if feeds is None or feeds is self.feeds else Sources(feeds.statuses(), feeds.books())

    def _check(self, entries: list[Entry]) -> StateCheck | None:
        """The state hash after the last step of a message; None if more steps were made meanwhile."""
        last = next(entry.value.number for entry in reversed(entries) if entry.kind == "step")
        with self.node.engine.still():
            if self.node.engine.number != last:
                return None
            return StateCheck(last, self.node.engine.state_hash(views=False))

    async def _publish_records(self) -> None:
        epoch = self.follower.epoch
        after = (await self._until_answered(self.past.bounds)).last
        while True:
            body = self.closings.first()
            if body is None:
                await asyncio.sleep(0.02)
                continue
            after = await self.past.append(body, after, epoch)
            self.closings.stored()

    async def _finish(self) -> None:
        """Store pending entries, and release the lease."""
        until = time.monotonic() + 2.0
        while self.outbox is not None and self.outbox.first() and time.monotonic() < until:
            await asyncio.sleep(0.01)
        self._renewing.cancel()
        if self._lease is not None:
            with suppress(APIError):
                await self._lease.release()

    # ---- requests from gateways ----

    async def _take_splits(self, message: Any) -> None:
        splits = msgspec.json.decode(message.data, type=list[SplitsGiven])
        assert self.outbox is not None
        accepted = await self.node.written(lambda: self.node.put_splits(splits, self.node.clock.now()))
        put = time.monotonic()
        while accepted and time.monotonic() - self.outbox.waiting_s <= put:  # stored with the next step
            await asyncio.sleep(0.005)
        await message.respond(b"%d" % accepted)
