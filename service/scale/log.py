"""The log of a shard on NATS JetStream: seven methods, and the only code that knows how JetStream says no.

A message names the sequence that it must follow, so that a writer who wakes up late is refused, and carries the epoch
of its writer. No answer is no refusal: the same message is sent again, with the same id, until it is stored or refused;
for half a minute while a server is connected, and without limit while none is.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from nats.errors import Error as NatsError
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

from oddsengine_service.scale.link import Link

SILENT_S = 3.0  # the writer steps every second; after so long the follower subscribes again
_ACK_S = 2.0
_AGAIN_S = 0.05
_UNSTORED_S = 30.0  # in which a connected server did not store a message; a leader is elected in less
_WRONG_SEQUENCE = 10071
_LATE_S = 10.0  # in which a log that seems shorter than it was has to have its end again
_LOAD_S = 60.0  # for a snapshot; parts that are lost do not come at all


class RefusedError(Exception):
    """Another message stands where ours should: somebody else writes."""


class LostError(Exception):
    """The log is not the one that was followed: it is another stream's birth, or no longer has what comes next."""


class UnstoredError(Exception):
    """The servers do not store messages, and that is no passing trouble; the message says why."""


class Message(NamedTuple):
    """One message of the log."""

    sequence: int
    epoch: int
    body: bytes


class Bounds(NamedTuple):
    """What the log holds now; `born` tells one stream from another of the same name."""

    first: int
    last: int
    born: int  # microseconds


class Lease:
    """The right to try to write, renewed five times within `lease_s`; `epoch` is its first revision."""

    def __init__(self, bucket: KeyValue, key: str, holder: bytes, revision: int) -> None:
        self._bucket, self._key, self._holder = bucket, key, holder
        self.epoch = self._revision = revision

    async def renew(self) -> bool:
        """Hold it for another `lease_s`; False if somebody else has it.

        One that ended while no server answered is taken again; the log refuses this writer if another one began.
        """
        try:
            self._revision = await self._bucket.update(self._key, self._holder, last=self._revision)
        except KeyWrongLastSequenceError:
            try:
                there = await self._bucket.get(self._key)
                if there.value != self._holder:
                    return False
                self._revision = there.revision or 0  # ours: the answer to the last renewal was lost
            except KeyNotFoundError:
                try:
                    self._revision = await self._bucket.create(self._key, self._holder)
                except KeyWrongLastSequenceError:
                    return False
        return True

    async def release(self) -> None:
        """Give it to whoever waits."""
        await self._bucket.delete(self._key, last=self._revision)


class Log:
    """One of the streams of a shard: `board`, which everything follows, `records` or `bettors`.

    With `latest` it has the newest message of each subject below its own for good, and sequences have holes.
    """

    def __init__(self, link: Link, kind: str, *, latest: bool = False) -> None:
        self._link, self.scale, self._latest = link, link.scale, latest
        self.name = f"{kind}-{self.scale.shard}"
        self.subject = f"{kind}.{self.scale.shard}"
        self.trouble = ""  # why the message that is to be stored is not stored yet
        self._born = 0
        self._own = secrets.token_hex(4)  # two writers never send the same id

    @property
    def _subjects(self) -> str:
        return f"{self.subject}.>" if self._latest else self.subject

    @property
    def _js(self) -> Any:
        return self._link.client.jetstream(timeout=_ACK_S)

    # ---- the seven ----

    async def append(self, body: bytes, after: int, epoch: int, below: str = "") -> int:
        """Store a message right after a sequence, and return its own; `below` ends its subject.

        Raises
        ------
        RefusedError
            If another message is stored there.
        LostError
            If the stream was made anew.
        UnstoredError
            If it is too large, or was not stored for half a minute.
        """
        ident = f"{self.scale.shard}-{epoch}-{after}-{self._own}"
        headers = {"epoch": str(epoch), "Nats-Msg-Id": ident, "Nats-Expected-Last-Sequence": str(after)}
        until = time.monotonic() + _UNSTORED_S
        while True:
            if self._link.gone_s:
                until = time.monotonic() + _UNSTORED_S
            elif time.monotonic() > until:
                raise UnstoredError(f"{self.name} stored nothing for {_UNSTORED_S:g} s: {self.trouble}")
            try:
                stored = await self._js.publish(self.subject + below, body, stream=self.name, headers=headers)
            except APIError as error:
                if error.err_code == _WRONG_SEQUENCE:
                    if await self._stored(after + 1, ident):
                        return after + 1
                    await self.bounds()  # tells a stream that was made anew
                    raise RefusedError(str(error.description)) from None
                # Not the leader, no quorum, the same message still in process: send it again.
                self.trouble = str(error.description)
            except MaxPayloadError:
                raise UnstoredError(
                    f"a message of {len(body):,} bytes is more than max_payload of the servers, which is "
                    f"{self._link.client.max_payload:,}; set it to 8MB"
                ) from None
            except (NatsError, OSError, TimeoutError) as error:
                self.trouble = str(error) or type(error).__name__
                if not self._link.gone_s:
                    await self._exists()
            else:
                if stored.seq != after + 1:
                    raise RefusedError(f"{self.name} stored message {ident} as {stored.seq}")
                self.trouble = ""
                return after + 1
            await asyncio.sleep(_AGAIN_S)

    async def follow(self, after: int) -> AsyncIterator[Message | None]:
        """Messages after a sequence, in order and none left out; None now and then while there are none.

        Raises
        ------
        LostError
            If the log has not what comes next, or is another one.
        """
        short = float("inf")  # since when the log seems to end before what was read
        while not self._link.closing:
            try:
                bounds = await self.bounds()
                short = min(short, time.monotonic()) if bounds.last < after else float("inf")
                if bounds.last < after and time.monotonic() - short < _LATE_S:
                    yield None  # a server that has just started may not know all it will
                    await asyncio.sleep(_AGAIN_S)
                    continue
                if bounds.last < after or (bounds.first > after + 1 and bounds.last > after and not self._latest):
                    raise LostError(f"{self.name} holds {bounds.first} to {bounds.last}, and {after + 1} was to come")
                config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=after + 1)
                messages = await self._js.subscribe(
                    self._subjects, stream=self.name, ordered_consumer=True, config=config, idle_heartbeat=1.0
                )
            except (NatsError, OSError, TimeoutError):
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
                    yield Message(sequence, int((message.headers or {}).get("epoch", 0)), message.data)
            except (NatsError, OSError, TimeoutError):
                yield None
            finally:
                with suppress(NatsError, OSError):
                    await messages.unsubscribe()

    async def bounds(self) -> Bounds:
        """What the stream holds.

        Raises
        ------
        LostError
            If it is not the stream that was there before, or none.
        """
        try:
            found = await self._js.stream_info(self.name)
        except NotFoundError:
            raise LostError(f"stream {self.name} is gone") from None
        born = round(found.created.timestamp() * 1e6)
        if self._born and born != self._born:
            raise LostError(f"stream {self.name} was made anew")
        self._born = born
        return Bounds(found.state.first_seq, found.state.last_seq, born)

    async def save(self, about: Mapping[str, str], data: bytes, keep: int = 3) -> None:
        """Keep a snapshot, and so many of the newest; `about` holds its sequence and what it was made with."""
        store = await self._snapshots()
        name = f"{self.scale.shard}.{int(about['sequence']):020}"
        await store.put(name, data, ObjectMeta(headers=dict(about)))
        for each in (await self._saved(store))[:-keep]:
            await store.delete(each.name)

    async def load(
        self, fits: Callable[[Mapping[str, str]], bool], read: Callable[[bytes], Any]
    ) -> tuple[dict[str, str], Any] | None:
        """The newest snapshot whose `about` fits, as `read` reads it; None if there is none.

        One that is damaged is passed over: its parts do not come, are not what was saved, or `read` has a `ValueError`.
        """
        store = await self._snapshots()
        for each in reversed(await self._saved(store)):
            about = {key: str(value) for key, value in (each.headers or {}).items()}
            if fits(about):
                try:
                    async with asyncio.timeout(_LOAD_S) as limit:
                        found = await store.get(each.name)
                    return about, await asyncio.to_thread(read, bytes(found.data or b""))
                except (DigestMismatchError, ValueError):
                    continue
                except TimeoutError:
                    if not limit.expired():  # it is the server that did not answer
                        raise
        return None

    async def newest(self) -> Mapping[str, str] | None:
        """What the newest snapshot says of itself."""
        found = await self._saved(await self._snapshots())
        return found[-1].headers if found else None

    async def lease(self, holder: str) -> Lease | None:
        """Take the writer's lease; None while somebody has it."""
        leases = await bucket_of(self._js, KeyValueConfig(
            f"leases_{self.scale.lease_s:g}".replace(".", "_"), ttl=self.scale.lease_s, history=1,
            replicas=self.scale.replicas, storage=StorageType.FILE,
        ))  # fmt: skip
        key = f"writer.{self.scale.shard}"
        try:
            return Lease(leases, key, holder.encode(), await leases.create(key, holder.encode()))
        except (KeyWrongLastSequenceError, KeyNotFoundError):  # somebody has it, or had it until between two looks
            return None

    # ---- parts ----

    async def open(self, hours: float = 0.0, most: int = -1) -> Bounds:
        """Make the stream, if it is not there; 0 hours are for ever, -1 is any number of bytes."""
        config = StreamConfig(
            name=self.name, subjects=[self._subjects], max_age=hours * 3600.0, max_bytes=most, storage=StorageType.FILE,
            num_replicas=self.scale.replicas, discard=DiscardPolicy.OLD, deny_delete=True, deny_purge=True,
            max_msgs_per_subject=1 if self._latest else -1, duplicate_window=120.0, allow_direct=True,
        )  # fmt: skip
        self._born = 0
        while True:
            try:
                return await self.bounds()
            except LostError:
                with suppress(APIError, NatsError, TimeoutError):  # another process may be faster
                    await self._js.add_stream(config)
            except (APIError, NatsError, OSError, TimeoutError):
                pass
            await asyncio.sleep(_AGAIN_S)

    async def _exists(self) -> None:
        """Tell a stream that is gone from one that does not answer."""
        with suppress(NatsError, OSError, TimeoutError):
            await self.bounds()

    async def _stored(self, sequence: int, ident: str) -> bool:
        """Whether our message is what is stored at a place."""
        try:
            found = await self._js.get_msg(self.name, seq=sequence)
        except (NatsError, APIError):
            return False
        return bool((found.headers or {}).get("Nats-Msg-Id") == ident)

    async def _snapshots(self) -> ObjectStore:
        try:
            store: ObjectStore = await self._js.object_store("snapshots")
        except NotFoundError:
            config = ObjectStoreConfig(storage=StorageType.FILE, replicas=self.scale.replicas)
            store = await self._js.create_object_store("snapshots", config)
        return store

    async def _saved(self, store: ObjectStore) -> list[Any]:
        try:
            found = await store.list()
        except (NotFoundError, ObjectNotFoundError):
            return []
        mine = [each for each in found if each.name.startswith(f"{self.scale.shard}.") and not each.deleted]
        return sorted(mine, key=lambda each: each.name)


async def bucket_of(js: Any, config: KeyValueConfig) -> KeyValue:
    """A bucket, made if it is not there."""
    try:
        bucket: KeyValue = await js.key_value(config.bucket)
    except NotFoundError:
        bucket = await js.create_key_value(config)
    return bucket


__all__ = ["Bounds", "Lease", "Log", "LostError", "Message", "RefusedError", "UnstoredError"]
