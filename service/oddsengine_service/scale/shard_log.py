"""The log of a shard on NATS JetStream, and the only code that interprets JetStream's errors.

A message names the sequence that it must follow, so that a delayed writer is rejected, and carries the epoch of its
writer. A missing reply is not a rejection: the same message is sent again with the same id until it is stored or
rejected; for half a minute while a server is connected, and without limit otherwise.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from nats.errors import MaxPayloadError
from nats.js.api import (
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    KeyValueConfig,
    ObjectMeta,
    ObjectStoreConfig,
    StorageType,
    StreamConfig,
)
from nats.js.errors import (
    APIError,
    DigestMismatchError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NotFoundError,
    ObjectNotFoundError,
)
from nats.js.kv import KeyValue
from nats.js.object_store import ObjectStore

from oddsengine_service.monitoring import log
from oddsengine_service.scale.link import TROUBLE, LogConnection

SILENT_S = 3.0  # the writer steps every second; after this silence the follower subscribes again
_ACK_S = 2.0
_AGAIN_S = 0.05
_UNSTORED_S = 30.0  # for a connected server to store a message; electing a leader takes less
_UNANSWERED_S = 5.0  # after which a request at the start that is repeated counts as a failure
_WRONG_SEQUENCE = 10071
_LATE_S = 10.0  # for a log that seems shorter than before to have its end again
_LOAD_S = 60.0  # timeout of a snapshot; lost parts never arrive

Reply = TypeVar("Reply")


class RefusedError(Exception):
    """Another message is stored at this position: there is another writer."""


class LostError(Exception):
    """The log is another one than before, or no longer has the next message."""


class UnstoredError(Exception):
    """The servers persistently fail to store messages; the message says why."""


class LogMessage(NamedTuple):
    """One message of the log."""

    sequence: int
    epoch: int
    body: bytes


class LogRange(NamedTuple):
    """The log's range of messages; `created_at` distinguishes streams of the same name."""

    first: int
    last: int
    created_at: int  # microseconds


class Lease:
    """The lease of the writer, renewed five times within `lease_s`; `epoch` is its first revision."""

    def __init__(self, bucket: KeyValue, key: str, holder: bytes, revision: int) -> None:
        self._bucket, self._key, self._holder = bucket, key, holder
        self.epoch = self._revision = revision

    async def renew(self) -> bool:
        """Extend the lease by `lease_s`; False if another process has it.

        If it expired while no server responded, it is acquired again; the log rejects this writer if another one
        has started.
        """
        try:
            self._revision = await self._bucket.update(self._key, self._holder, last=self._revision)
        except KeyWrongLastSequenceError:
            try:
                there = await self._bucket.get(self._key)
                if there.value != self._holder:
                    return False
                self._revision = there.revision or 0  # ours: the reply to the last renewal was lost
            except KeyNotFoundError:
                try:
                    self._revision = await self._bucket.create(self._key, self._holder)
                except KeyWrongLastSequenceError:
                    return False
        return True

    async def release(self) -> None:
        await self._bucket.delete(self._key, last=self._revision)


class SharedLog:
    """One of the streams of a shard: `board`, which all processes follow, `records` or `bettors`.

    With `latest`, it retains only the newest message of each subject, indefinitely, and sequences have gaps.
    """

    def __init__(self, link: LogConnection, kind: str, *, latest: bool = False) -> None:
        self._link, self.scale, self._latest = link, link.scale, latest
        self.name = f"{kind}-{self.scale.shard}"
        self.subject = f"{kind}.{self.scale.shard}"
        self.trouble = ""  # why the current message is not stored yet
        self._created_at = 0
        self._passed_over: set[str] = set()  # names of damaged snapshots
        self._own = secrets.token_hex(4)  # ids differ between writers

    @property
    def _subjects(self) -> str:
        return f"{self.subject}.>" if self._latest else self.subject

    @property
    def _js(self) -> Any:
        return self._link.client.jetstream(timeout=_ACK_S)

    # ---- operations ----

    async def append(self, body: bytes, after: int, epoch: int, below: str = "") -> int:
        """Store a message right after a sequence, and return its own; `below` is added to its subject.

        Raises `RefusedError` if another message is stored there; `LostError` if the stream was recreated;
        `UnstoredError` if it is too large, or was not stored for half a minute.
        """
        ident = f"{self.scale.shard}-{epoch}-{after}-{self._own}"
        headers = {"epoch": str(epoch), "Nats-Msg-Id": ident, "Nats-Expected-Last-Sequence": str(after)}
        until = time.monotonic() + _UNSTORED_S
        while True:
            if self._link.disconnected_s:
                until = time.monotonic() + _UNSTORED_S
            elif time.monotonic() > until:
                raise UnstoredError(f"{self.name} stored nothing for {_UNSTORED_S:g} s: {self.trouble}")
            try:
                stored = await self._js.publish(self.subject + below, body, stream=self.name, headers=headers)
            except APIError as error:
                if error.err_code == _WRONG_SEQUENCE:
                    if await self._stored(after + 1, ident):
                        return after + 1
                    await self.bounds()  # detects a recreated stream
                    raise RefusedError(str(error.description)) from None
                # Not the leader, no quorum, or the same message is still in process: send it again.
                self.trouble = str(error.description)
            except MaxPayloadError:
                raise UnstoredError(
                    f"a message of {len(body):,} bytes is more than max_payload of the servers, which is "
                    f"{self._link.client.max_payload:,}; set it to 8MB"
                ) from None
            except TROUBLE as error:
                self.trouble = str(error) or type(error).__name__
                if not self._link.disconnected_s:
                    await self._exists()
            else:
                if stored.seq != after + 1:
                    raise RefusedError(f"{self.name} stored message {ident} as {stored.seq}")
                self.trouble = ""
                return after + 1
            await asyncio.sleep(_AGAIN_S)

    async def follow(self, after: int) -> AsyncIterator[LogMessage | None]:
        """Messages after a sequence, in order and without gaps; None now and then while there are none.

        Raises `LostError` if the log lacks the next message, or is another one.
        """
        short = float("inf")  # since when the log has seemed to end before what was read
        while not self._link.closing:
            try:
                bounds = await self.bounds()
                short = min(short, time.monotonic()) if bounds.last < after else float("inf")
                if bounds.last < after and time.monotonic() - short < _LATE_S:
                    yield None  # a server that has just started may not be up to date
                    await asyncio.sleep(_AGAIN_S)
                    continue
                if bounds.last < after or (bounds.first > after + 1 and bounds.last > after and not self._latest):
                    raise LostError(
                        f"{self.name} holds messages {bounds.first} to {bounds.last}; the next to read is {after + 1}"
                    )
                config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=after + 1)
                messages = await self._js.subscribe(
                    self._subjects, stream=self.name, ordered_consumer=True, config=config, idle_heartbeat=1.0
                )
            except TROUBLE:
                yield None
                await asyncio.sleep(_AGAIN_S)
                continue
            try:
                while True:
                    message = await messages.next_msg(timeout=SILENT_S)
                    sequence = message.metadata.sequence.stream
                    if sequence <= after or (sequence > after + 1 and not self._latest):
                        break
                    after = sequence
                    yield LogMessage(sequence, int((message.headers or {}).get("epoch", 0)), message.data)
            except TROUBLE:
                yield None
            finally:
                with suppress(*TROUBLE):
                    await messages.unsubscribe()

    async def store(
        self, after: int, keep: Callable[[LogMessage], None], full: type[Exception], report: Callable[[str], None]
    ) -> None:
        """Pass the messages after a sequence to `keep`, in a thread.

        While it raises `full`, as for a full disk, the message is retried; `report` gets the error, then an empty text.
        """
        async for message in self.follow(after):
            while message is not None:
                try:
                    await asyncio.to_thread(keep, message)
                    report("")
                    break
                except full as error:
                    report(str(error))
                    await asyncio.sleep(1.0)

    async def bounds(self) -> LogRange:
        """The range of the stream. Raises `LostError` if it is another stream than before, or does not exist."""
        try:
            info = await self._js.stream_info(self.name)
        except NotFoundError:
            raise LostError(f"stream {self.name} is gone") from None
        created_at = round(info.created.timestamp() * 1e6)
        if self._created_at and created_at != self._created_at:
            raise LostError(f"stream {self.name} was created again")
        self._created_at = created_at
        return LogRange(info.state.first_seq, info.state.last_seq, created_at)

    async def save(self, about: Mapping[str, str], data: bytes, keep: int = 3) -> None:
        """Store a snapshot, retaining the given number of newest ones; `about` has its sequence and metadata."""
        store = await self._snapshots()
        name = f"{self.scale.shard}.{int(about['sequence']):020}"
        await store.put(name, data, ObjectMeta(headers=dict(about)))
        for each in (await self._saved(store))[:-keep]:
            await store.delete(each.name)

    async def load(
        self, fits: Callable[[Mapping[str, str]], bool], read: Callable[[bytes], Any]
    ) -> tuple[dict[str, str], Any] | None:
        """The newest snapshot whose `about` fits, parsed by `read`; None if there is none.

        Damaged ones are skipped, and logged once: with missing or altered parts, or if `read` raises `ValueError`.
        """
        store = await self._snapshots()
        for each in reversed(await self._saved(store)):
            about = {key: str(value) for key, value in (each.headers or {}).items()}
            if fits(about):
                try:
                    async with asyncio.timeout(_LOAD_S) as limit:
                        stored = await store.get(each.name)
                    return about, await asyncio.to_thread(read, bytes(stored.data or b""))
                except (DigestMismatchError, ValueError) as error:
                    self._pass_over(each.name, str(error) or "damaged: its digest is another one")
                except TimeoutError:
                    if not limit.expired():  # the server did not respond
                        raise
                    self._pass_over(each.name, "damaged: parts of it are missing")
        return None

    def _pass_over(self, name: str, reason: str) -> None:
        if name not in self._passed_over:
            self._passed_over.add(name)
            log.event("snapshot passed over", logging.ERROR, snapshot=name, message=reason)

    async def newest(self) -> Mapping[str, str] | None:
        saved = await self._saved(await self._snapshots())
        return saved[-1].headers if saved else None

    async def lease(self, holder: str) -> Lease | None:
        """Acquire the writer's lease; None while another process has it."""
        leases = await bucket_of(self._js, KeyValueConfig(
            f"leases_{self.scale.lease_s:g}".replace(".", "_"), ttl=self.scale.lease_s, history=1,
            replicas=self.scale.replicas, storage=StorageType.FILE,
        ))  # fmt: skip
        key = f"writer.{self.scale.shard}"
        try:
            return Lease(leases, key, holder.encode(), await leases.create(key, holder.encode()))
        except (KeyWrongLastSequenceError, KeyNotFoundError):  # taken, or taken until just now
            return None

    # ---- helpers ----

    async def open(
        self, hours: float = 0.0, most: int = -1, report: Callable[[str], None] = lambda _: None
    ) -> LogRange:
        """Create the stream if it does not exist; 0 hours is forever, -1 is any number of bytes."""
        config = StreamConfig(
            name=self.name, subjects=[self._subjects], max_age=hours * 3600.0, max_bytes=most, storage=StorageType.FILE,
            num_replicas=self.scale.replicas, discard=DiscardPolicy.OLD, deny_delete=True, deny_purge=True,
            max_msgs_per_subject=1 if self._latest else -1, duplicate_window=120.0, allow_direct=True,
        )  # fmt: skip
        self._created_at = 0

        async def found() -> LogRange:
            try:
                return await self.bounds()
            except LostError:
                await self._js.add_stream(config)  # another process may be faster
                raise TimeoutError("it has just been created") from None

        return await until_answered(found, f"stream {self.name} cannot be opened", report)

    async def _exists(self) -> None:
        """Distinguish a deleted stream from one that does not respond."""
        with suppress(*TROUBLE):
            await self.bounds()

    async def _stored(self, sequence: int, ident: str) -> bool:
        """Whether the message stored at a position is ours."""
        try:
            message = await self._js.get_msg(self.name, seq=sequence)
        except TROUBLE:
            return False
        return bool((message.headers or {}).get("Nats-Msg-Id") == ident)

    async def _snapshots(self) -> ObjectStore:
        try:
            store: ObjectStore = await self._js.object_store("snapshots")
        except NotFoundError:
            config = ObjectStoreConfig(storage=StorageType.FILE, replicas=self.scale.replicas)
            store = await self._js.create_object_store("snapshots", config)
        return store

    async def _saved(self, store: ObjectStore) -> list[Any]:
        try:
            objects = await store.list()
        except (NotFoundError, ObjectNotFoundError):
            return []
        own = [each for each in objects if each.name.startswith(f"{self.scale.shard}.") and not each.deleted]
        return sorted(own, key=lambda each: each.name)


async def until_answered(
    ask: Callable[[], Awaitable[Reply]], failure: str, report: Callable[[str], None], every: float = _AGAIN_S
) -> Reply:
    """Ask until there is an answer; `report` gets the reason if that takes long, then an empty text."""
    begun = time.monotonic()
    while True:
        try:
            reply = await ask()
        except TROUBLE as error:
            if time.monotonic() - begun > _UNANSWERED_S:
                report(f"{failure}: {getattr(error, 'description', None) or error or type(error).__name__}")
            await asyncio.sleep(every)
        else:
            report("")
            return reply


async def bucket_of(js: Any, config: KeyValueConfig) -> KeyValue:
    try:
        bucket: KeyValue = await js.key_value(config.bucket)
    except NotFoundError:
        bucket = await js.create_key_value(config)
    return bucket
