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
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
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
from oddsengine_service.scale.closings import PendingClosings, stored
from oddsengine_service.scale.follower import LEAST_AGE_S
from oddsengine_service.scale.lease import LeaseHolder
from oddsengine_service.scale.link import TROUBLE, LogConnection
from oddsengine_service.scale.log_messages import Begin, Entry, packed
from oddsengine_service.scale.log_reader import LogReader
from oddsengine_service.scale.log_writer import LogWriter
from oddsengine_service.scale.node_changes import Changes
from oddsengine_service.scale.outbox import STALLED_S
from oddsengine_service.scale.shard_log import LostError, RefusedError, SharedLog, UnstoredError, until_answered
from oddsengine_service.scale.sharing import SharedCounts, SharedKeys, SharedUsage
from oddsengine_service.scale.tasks import Tasks
from oddsengine_service.settings import Settings
from oddsengine_service.wire.splits_response import SplitsGiven

DISCONNECTED_S = 60.0  # without a connection; then a gateway is not ready
_ASK_S = 5.0
_SLOW_S = 2.0  # pending for longer counts as a failure
_RECORDS_HOURS, _RECORDS_BYTES = 400 * 24.0, 4 << 30
_MAX_PAYLOAD = 8_000_000  # recommended max_payload of the servers


class Member(Changes):
    """One process of a cluster: its link and logs, and the tasks that follow them. `role` is the configured one."""

    records: SharedRecords
    counts: SharedCounts
    usage: SharedUsage
    node: Node
    _reader: LogReader

    def __init__(self, settings: Settings, environ: Mapping[str, str], *, shares_keys: bool) -> None:
        super().__init__()
        self.link = LogConnection(settings, environ, lambda event, message: log.event(event, message=message))
        self.leads = self.link.scale.role == "writer"
        self.board, self.past = SharedLog(self.link, "board"), SharedLog(self.link, "records")
        self.closings: PendingClosings = PendingClosings(lambda: self.writes)
        self._name = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns() % 1_000_000}"
        self._tasks = Tasks(self.link)
        self._lease = LeaseHolder(
            self.board, self._name, self.link.scale.lease_s, self._tasks, lambda text: self.node.report("lease", text)
        )
        self.records = SharedRecords(self.link, self._tasks.background)
        self.counts = SharedCounts(self.link, self._name)
        self.usage = SharedUsage(self.link, self._name)
        if shares_keys:
            self.keys = SharedKeys(self.link)
        self.writes = False
        self._writer: LogWriter | None = None  # once this process leads
        self.standing_by = self.leads
        self.waits_for = "standing by" if self.leads else "waits for the log"

    # ---- what is replicated ----

    def put_splits(self, splits: Collection[SplitsGiven]) -> int | None:
        """Send records to the writer; they are in the log afterwards."""
        if self.leads:
            return None
        subject = f"ask.{self.link.scale.shard}.splits"
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
        leads.add_metric([self.link.scale.shard], self.outbox is not None)
        yield leads
        yield GaugeMetricFamily("oddsengine_log_sequence", "The last message that is in the log or was applied",
                                self._reader.follower.sequence)  # fmt: skip
        if self.outbox is None:
            yield GaugeMetricFamily(
                "oddsengine_log_lag_seconds", "From the writer's step until it was applied here", self._reader.lag_s
            )
        else:
            yield GaugeMetricFamily(
                "oddsengine_log_waiting_seconds", "For how long the oldest step waits for the log",
                self.outbox.waiting_s,
            )  # fmt: skip

    @property
    def _retained(self) -> int:
        """Number of snapshots to retain, so that one is older than any delay."""
        return 3 + math.ceil(1.25 * LEAST_AGE_S / self.link.scale.snapshot_s)

    # ---- life cycle ----

    def attach(self, node: Node) -> None:
        node.use_feeds(self.feeds)  # of the process that has them
        self.node, self._tasks.closing = node, node.closing
        self._reader = LogReader(node, self.board, self, self._tasks)

    def run(self, service: Serving, feed: Callable[[Any], None]) -> None:
        """Follow, and feed the board while this process leads; in a thread, until the node closes."""
        self._tasks.restart = service.restart
        if not self.leads:
            self._reader.remember_streams(service)
        try:
            self._live(service, feed)
        except (LostError, UnstoredError) as error:  # before following, or after it ended
            service.restart(str(error))

    def _live(self, service: Serving, feed: Callable[[Any], None]) -> None:
        node, follower = self.node, self._reader.follower
        node.write(follower.keep_views).result()
        self._tasks.wait(self._enter())
        assert node.past is not None
        self._reader.follow()
        for work in (
            stored(self.past, node.past.closings, partial(node.report, "closing")), self._watch(),
            self._save_snapshots(),
        ):  # fmt: skip
            self._tasks.start(work)
        if self.leads and self._tasks.wait(self._win()):
            node.write(follower.drop_views).result()
            node.wait_for("")
            self._tasks.start(self.records.lead(follower.epoch, service))
            log.event("leads", epoch=follower.epoch, step=node.engine.number)
            feed(service)
        node.closing.wait()

    def close(self) -> None:
        if self.link.closing:
            return
        self.usage.flush()
        if self._lease.lease is not None:
            with suppress(*TROUBLE):
                self.link.call(self._finish(), 3.0)
        self.link.close()

    async def _finish(self) -> None:
        """Store pending entries, and release the lease."""
        if self._writer is not None:
            await self._writer.finish()
        with suppress(APIError):
            await self._lease.release()

    async def _enter(self) -> None:
        """Connect, and start from a snapshot or the first step."""
        await self.link.connect()
        if (most := self.link.client.max_payload) < _MAX_PAYLOAD:
            log.event("max_payload is small", bytes=most, wanted=_MAX_PAYLOAD)
        node, tasks, scale = self.node, self._tasks, self.link.scale
        if isinstance(self.keys, SharedKeys):
            await self._until_answered(partial(self.keys.open, node.keys))
            tasks.background(self.keys.watch())
        if not self.leads:
            tasks.background(self.counts.share(node.limits))
            if (usage := node.limits.usage) is not None:
                await self._until_answered(partial(self.usage.open, usage))
                tasks.background(self.usage.follow())
        report = partial(node.report, "log")
        await self.board.open(scale.log_hours, scale.log_bytes, report)
        await self.past.open(_RECORDS_HOURS, min(_RECORDS_BYTES, scale.log_bytes), report)
        await self.records.open(node)
        tasks.background(self.records.follow())
        while True:
            start = await self._reader.find_start()
            created_at, first = start.bounds.created_at, start.bounds.first
            self.began, self.origin = created_at / 1e6, f"log {scale.shard} {created_at}"
            if await self._reader.begin(start):
                break
            node.wait_for(
                f"waits for a snapshot: the log begins at message {first}; where no process makes one, delete "
                f"stream {self.board.name}, and the writer begins a new one"
            )
            await asyncio.sleep(1.0)

    async def _until_answered(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        return await until_answered(ask, "the log is not ready", partial(self.node.report, "log"), 0.1)

    # ---- regularly ----

    async def _watch(self) -> None:
        """Report the state of the log; a disconnected gateway keeps serving its last state for a while."""
        node = self.node
        while True:
            await asyncio.sleep(0.5)
            disconnected_s, waiting = self.link.disconnected_s, 0.0 if self.outbox is None else self.outbox.waiting_s
            if disconnected_s:
                node.report("log", f"no connection for {disconnected_s:.0f} s")
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
            elif disconnected_s > DISCONNECTED_S and node.ready:
                self._reader.catch_up()
                node.wait_for("no connection to the log")

    async def _save_snapshots(self) -> None:
        """Save snapshots regularly: a stand-by writer does, else a gateway, never the leading writer."""
        wanted_s = self.link.scale.snapshot_s
        every = wanted_s * ((0.9 if self.leads else 1.2) + 0.1 * (hash(self._name) % 100) / 100.0)
        while self.outbox is None:
            await asyncio.sleep(every)
            if self.outbox is not None or self.node.engine.now is None:
                continue
            try:
                await self._reader.save_snapshot(0.8 * wanted_s, self._retained)
            except TROUBLE as error:
                self.node.report("snapshot", f"not saved: {error or type(error).__name__}")
            else:
                self.node.report("snapshot", "")

    # ---- leading ----

    async def _win(self) -> bool:
        """Wait for the lease, read to the end, and begin; True once the log has accepted it."""
        reader, follower = self._reader, self._reader.follower
        while True:
            lease = None
            with suppress(*TROUBLE):
                if reader.outdated:
                    await self._lease.release()
                else:
                    lease = await self._lease.take()
            if lease is None:
                await asyncio.sleep(self._lease.period_s)
                continue
            end = await self._until_answered(self.board.bounds)
            if reader.outdated or follower.sequence < end.last:
                await asyncio.sleep(0.01)
                continue
            await reader.stop()
            # The lease's bucket may be new, with revisions from 1 again; an older epoch would be ignored.
            epoch = max(lease.epoch, follower.epoch + 1)
            if follower.sequence >= end.last:
                with suppress(RefusedError):  # the previous writer wrote another message
                    begin = packed([Entry("begin", Begin(epoch, self._name, VERSION))])
                    follower.resume(await self.board.append(begin, follower.sequence, epoch), epoch)
                    break
            reader.follow()
        writer = self._writer = LogWriter(self.node, self.link, self.board, self.past, self.closings, follower)
        self.outbox = writer.outbox
        self.writes, self.most_quotes = True, writer.outbox.most_quotes
        self._tasks.start(writer.publish())
        self._tasks.start(self._publish_records(writer))
        await self.link.client.subscribe(f"ask.{self.link.scale.shard}.splits", cb=writer.take_splits)
        return True

    async def _publish_records(self, writer: LogWriter) -> None:
        await writer.publish_records((await self._until_answered(self.past.bounds)).last)
