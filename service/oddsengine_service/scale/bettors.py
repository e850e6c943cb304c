"""Records of bettors in a cluster: the writer stores them, and every process has a copy.

A gateway forwards requests that change records to the writer. The writer executes them, and a change takes effect once
it is in a stream that retains the newest version of every record. A gateway reads this stream to its end before it
responds.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol

import msgspec
from nats.errors import NoRespondersError

from oddsengine_service.accounts.database import StoreError
from oddsengine_service.accounts.records import Records
from oddsengine_service.api import Api
from oddsengine_service.errors import INTERNAL, Problem
from oddsengine_service.http.endpoints import Answer, Context, Endpoint
from oddsengine_service.monitoring import log
from oddsengine_service.node import Node
from oddsengine_service.replication import RecordChange, Replication
from oddsengine_service.scale.link import TROUBLE, LogConnection
from oddsengine_service.scale.shard_log import LogMessage, LostError, RefusedError, SharedLog, UnstoredError
from oddsengine_service.tiers import TIERS, Caller

_ASK_S = 15.0  # a test message to slow targets takes ten seconds
_STORE_S = 5.0
_READ_S = 5.0  # timeout for pending changes
_AGAIN_S = 0.05
_encode = msgspec.msgpack.Encoder().encode


class ForwardedRequest(msgspec.Struct, array_like=True):
    """A request authorised by a gateway."""

    method: str
    path: str  # of the endpoint
    values: Mapping[str, str]
    body: msgspec.Raw
    ignored: list[str]
    account: str
    key: str
    tier: str
    rate: int
    streams: int
    features: list[str]


class WriterReply(msgspec.Struct, array_like=True):
    """The writer's result, and its position in the stream; with a code it is a `Problem`."""

    status: int
    body: bytes = b""
    sequence: int = 0
    code: str = ""
    message: str = ""
    extra: dict[str, Any] = {}


class Serving(Protocol):
    """What a process of a cluster needs of the service that runs in it."""

    api: Api
    loop: asyncio.AbstractEventLoop

    def restart(self, reason: str) -> None:
        """Discard this node and continue with a new one."""


class SharedRecords(Replication):
    """The records of one process of a cluster."""

    writes_records = False
    one_by_one = True  # each change is a message of the log

    def __init__(self, link: LogConnection, background: Callable[[Coroutine[Any, Any, None]], Any]) -> None:
        self._link, self._background = link, background
        self._node: Node
        self._log = SharedLog(link, "bettors", latest=True)
        self._subject = f"ask.{link.scale.shard}.bettors"
        self._created_at = self._epoch = 0
        self._stored = 0  # last message written by this process as the leading writer
        self._storing: asyncio.Task[None] | None = None
        self._service: Serving | None = None

    @property
    def _applied(self) -> int:
        """The last message applied to the table here."""
        return self._node.records.database.place(self._created_at)

    async def follow(self) -> None:
        """Apply the records of the stream as they change."""

        def apply(message: LogMessage) -> None:
            change = msgspec.msgpack.decode(message.body, type=RecordChange)
            follow(self._node.records, self._created_at, message.sequence, change)

        await self._log.store(self._applied, apply, StoreError, partial(self._node.report, "records"))

    async def open(self, node: Node) -> None:
        self._node = node
        self._created_at = (await self._log.open(report=partial(node.report, "log"))).created_at

    # ---- a gateway ----

    async def records_current(self) -> None:
        """Wait for everything stored by now; without a connection, the copy here is used as it is."""
        with suppress(LostError, *TROUBLE):
            if not self._link.disconnected_s:
                end = await asyncio.wrap_future(self._link.start(self._log.bounds()))
                await self._reach(end.last)

    async def _reach(self, sequence: int) -> None:
        until = time.monotonic() + _READ_S
        while self._applied < sequence and time.monotonic() < until:
            await asyncio.sleep(0.002)

    async def forward(self, endpoint: Endpoint, context: Context) -> Answer:
        """Have the writer execute a request; its changes are visible here afterwards.

        Raises `Problem`: the writer's, or 503 if it does not respond.
        """
        caller = context.caller
        forwarded = ForwardedRequest(
            endpoint.method, endpoint.path, context.path, msgspec.Raw(_encode(context.body)), list(context.ignored),
            caller.account, caller.key, caller.tier.id, caller.rate, caller.streams, sorted(caller.features),
        )  # fmt: skip
        try:
            body = await asyncio.wrap_future(self._link.start(self._call(_encode(forwarded))))
        except NoRespondersError as error:
            raise _unavailable("no writer is active to store records; nothing was changed") from error
        except TROUBLE as error:
            raise _unavailable("the writer did not answer; check whether the change was made") from error
        reply = msgspec.msgpack.decode(body, type=WriterReply)
        if reply.code:
            raise Problem(reply.status, reply.code, reply.message, **reply.extra)
        await self._reach(reply.sequence)
        return Answer(reply.body, reply.status)

    async def _call(self, body: bytes) -> bytes:
        """Call the writer; while another one takes over, there may be none for a moment."""
        until = time.monotonic() + self._link.scale.lease_s + _STORE_S
        while True:
            try:
                return bytes((await self._link.client.request(self._subject, body, _ASK_S)).data)
            except NoRespondersError:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(_AGAIN_S)

    # ---- the leading writer ----

    async def lead(self, epoch: int, service: Serving) -> None:
        """Read to the end, fence off the previous writer, and store changes from now on."""
        records, own = self._node.records, list[RecordChange]()
        self._epoch, self._service = epoch, service
        while True:
            try:
                end = (await self._log.bounds()).last
                if not end:
                    own = await asyncio.to_thread(adopt, records, self._created_at)
                self._stored = await self._log.append(_encode(RecordChange("", "writer", "")), end, epoch, ".writer")
                break
            except RefusedError:  # the previous writer stored another message
                continue
            except TROUBLE:
                await asyncio.sleep(_AGAIN_S)
        for change in own:
            await self._append(change)
        while self._applied < self._stored:
            await asyncio.sleep(_AGAIN_S)
        self.writes_records = True
        await self._link.client.subscribe(self._subject, cb=self._take)

    async def _append(self, change: RecordChange) -> None:
        name = blake2b(_encode(change.name), digest_size=16).hexdigest()
        owner = blake2b(_encode(change.owner), digest_size=8).hexdigest()
        below = f".{owner}.{change.kind}.{name}"
        self._stored = await self._log.append(_encode(change), self._stored, self._epoch, below)

    def record_changed(self, change: RecordChange) -> None:
        """Append a change to the stream; called within the transaction that makes it."""
        if not self.writes_records:
            raise Problem(503, "unavailable", "records cannot be changed at the moment", retry_after=1)
        try:
            self._link.call(self._wait_for(change), _STORE_S)
        except (LostError, RefusedError, UnstoredError, *TROUBLE) as error:
            raise _unavailable("the log takes no records now; check whether the change was made") from error
        self._node.records.database.reached(self._created_at, self._stored)

    async def _wait_for(self, change: RecordChange) -> None:
        """Append, with a timeout. A message that takes longer is not cancelled; if stored, `follow` applies it."""
        if self._storing is not None and (not self._storing.done() or self._applied < self._stored):
            raise TimeoutError
        self._storing = self._background(self._append(change))
        assert self._storing is not None
        await asyncio.shield(self._storing)

    async def _take(self, message: Any) -> None:
        self._background(self._reply(message))

    async def _reply(self, message: Any) -> None:
        assert self._service is not None
        service = self._service
        try:
            forwarded = msgspec.msgpack.decode(message.data, type=ForwardedRequest)
            answering = asyncio.run_coroutine_threadsafe(self._answered(service, forwarded), service.loop)
            answer = await asyncio.wrap_future(answering)
            reply = WriterReply(answer.status, answer.body, self._stored)
        except Problem as problem:
            reply = WriterReply(problem.status, code=problem.code, message=problem.message, extra=problem.extra)
        except Exception as error:
            log.failure(b"-", "(records)", error)
            reply = WriterReply(500, code="internal_error", message=INTERNAL)
        with suppress(*TROUBLE):
            await message.respond(_encode(reply))

    async def _answered(self, service: Serving, forwarded: ForwardedRequest) -> Answer:
        endpoint = service.api.routes[forwarded.path].endpoints[forwarded.method]
        caller = Caller(
            forwarded.account, forwarded.key, TIERS[forwarded.tier], forwarded.rate, forwarded.streams,
            frozenset(forwarded.features),
        )  # fmt: skip
        body = None if endpoint.body is None else msgspec.msgpack.decode(forwarded.body, type=endpoint.body)
        context = Context(
            caller, endpoint.query(), forwarded.values, body, self._node.engine, self._node, forwarded.ignored,
            targets=service.api.targets,
        )  # fmt: skip
        threads = service.api.outgoing if endpoint.outgoing else service.api.pool
        return await threads.run(forwarded.account, lambda: endpoint.response(context))


def follow(records: Records, created_at: int, sequence: int, change: RecordChange) -> None:
    """Apply a change from a log, unless it was made here; another log starts with an empty table."""
    database = records.database
    with database.transaction() as base:
        if database.followed[0] != created_at:
            base.execute("DELETE FROM records")
        if database.place(created_at) < sequence:
            records.apply(base, change)
            database.reached(created_at, sequence)


def adopt(records: Records, created_at: int) -> list[RecordChange]:
    """Import all records into a new, empty log."""
    with records.database.transaction() as base:
        records.database.reached(created_at, 0)
        return [RecordChange(*row) for row in base.execute("SELECT owner, kind, name, body, event FROM records")]


def _unavailable(message: str) -> Problem:
    return Problem(503, "unavailable", message, retry_after=5)
