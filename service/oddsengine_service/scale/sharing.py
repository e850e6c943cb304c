"""Shared state besides the log: keys, counts of requests and streams, and usage by account.

Keys are in a bucket that every process watches and copies to its own database. A change is made in the bucket first,
conditional on the previous revision, so that of two concurrent changes one is rejected. Counts are broadcast: each
process counts its own requests and adds those of the others. Usage is a stream of counters, one per account and day,
that all processes add to and copy.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from nats.errors import Error as NatsError
from nats.js.api import ConsumerConfig, DeliverPolicy, KeyValueConfig, StorageType, StreamConfig
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue

from oddsengine_service.accounts.database import StoreError
from oddsengine_service.accounts.keys import KeysError, KeyStore, open_store
from oddsengine_service.accounts.limits import USAGE_DAYS, WINDOW_S, Limits, Usage
from oddsengine_service.replication import AccountDay, Replication
from oddsengine_service.scale.link import TROUBLE, LogConnection
from oddsengine_service.scale.shard_log import bucket_of
from oddsengine_service.settings import Settings

SEND_S = 0.1  # minimum interval between two broadcasts
SILENT_S = 2.0  # after which the streams of a silent process are no longer counted
_PEPPER = "pepper"
_USAGE = "usage"
_USAGE_SEEN_D = 38  # days of totals that are copied: a month and the week in which it began
_IDLE_S = 30.0  # without a new total; then the consumer is recreated, in case it was lost


class SharedKeys(Replication):
    """Keeps a key store, which was opened with it, in sync with the shard's other processes."""

    def __init__(self, link: LogConnection) -> None:
        self._link = link
        self._store: KeyStore
        self._revisions: dict[str, int] = {}
        self._bucket: KeyValue | None = None
        self._changes: Any = None  # the bucket's watcher

    async def open(self, store: KeyStore) -> None:
        """Copy all keys; `watch` follows changes from there.

        Raises `KeysError` if the pepper here differs from the one used for those keys.
        """
        config = KeyValueConfig("keys", history=5, storage=StorageType.FILE, replicas=self._link.scale.replicas)
        self._bucket = await bucket_of(self._link.client.jetstream(), config)
        self._store, check = store, store.pepper_check.encode()
        try:
            there = (await self._bucket.get(_PEPPER)).value
        except KeyNotFoundError:
            with suppress(KeyWrongLastSequenceError):
                await self._bucket.create(_PEPPER, check)
            there = (await self._bucket.get(_PEPPER)).value
        if there != check:
            raise KeysError("the pepper here is not that of the shared keys; copy the file of another process")
        self._changes = await self._bucket.watchall()
        rows = []
        while (entry := await self._changes.updates(timeout=5.0)) is not None:
            rows += self._row(entry)
        await asyncio.to_thread(self._store.merge_rows, rows)

    async def watch(self) -> None:
        while True:
            try:
                entry = await self._changes.updates(timeout=3600.0)
            except TROUBLE:
                continue
            if entry is not None and (rows := self._row(entry)):
                await asyncio.to_thread(self._store.merge_rows, rows)

    def _row(self, entry: Any) -> list[dict[str, Any]]:
        if entry.key == _PEPPER or not entry.value:
            return []
        self._revisions[entry.key] = entry.revision
        return [msgspec.json.decode(entry.value)]

    def key_changed(self, row: dict[str, Any]) -> None:
        """Change a key for all processes, or reject the change; called in the thread that writes the store."""
        try:
            self._revisions[row["id"]] = self._link.call(self._put(row["id"], msgspec.json.encode(row)))
        except KeyWrongLastSequenceError:
            raise StoreError("the key was changed by another request at the same time; check it and retry") from None
        except TROUBLE as error:
            raise StoreError(f"the shared keys cannot be changed now: {error or type(error).__name__}") from None

    async def _put(self, ident: str, value: bytes) -> int:
        if self._bucket is None:
            raise TimeoutError("not connected")
        revision = self._revisions.get(ident)
        return await (
            self._bucket.create(ident, value) if revision is None else self._bucket.update(ident, value, revision)
        )


class Counts(msgspec.Struct, array_like=True):
    """Counts of a process; `counts` has only changed ones, `streams` all open ones."""

    who: str
    minute: int
    counts: dict[str, int]
    streams: dict[str, int]


class SharedCounts(Replication):
    """Broadcasts the counts of this process, and adds those of the others."""

    def __init__(self, link: LogConnection, name: str) -> None:
        self._link, self._name = link, name
        self._limits: Limits
        self._requests, self._open = Counter[str](), Counter[str]()  # of other processes: of this minute, now
        self._minute = 0
        self._subject = f"counts.{link.scale.shard}"
        self._sent: tuple[int, dict[str, int]] = (0, {})
        self._streams: dict[str, int] = {}
        self._others: dict[str, tuple[int, dict[str, int]]] = {}  # minute and counts by process
        self._streams_of: dict[str, tuple[float, dict[str, int]]] = {}
        self._due = asyncio.Event()
        self._at = 0.0

    def requests_left(self, who: str, minute: int, left: int, count: int = 0) -> int:
        """Broadcasts at once if the unsent count is a large part of what is left; thread-safe."""
        if self._minute == minute:
            left -= self._requests[who]
        unsent = count - self._sent[1].get(who, 0)
        if count and left >= 0 and unsent * 4 * (len(self._others) + 1) > left and not self._due.is_set():
            with suppress(RuntimeError):  # the loop is closed
                self._link.loop.call_soon_threadsafe(self._due.set)
        return left

    def streams_elsewhere(self, who: str) -> int:
        return self._open[who]

    async def share(self, limits: Limits) -> None:
        self._limits = limits
        await self._link.client.subscribe(self._subject, cb=self._receive)
        first = True
        while True:
            with suppress(*TROUBLE):
                await self._send(everything=first)
                first = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), SEND_S)
            self._due.clear()
            self._forget()

    async def _send(self, *, everything: bool = False) -> None:
        minute, counts, streams = self._limits.counts_here()
        sent = self._sent[1] if self._sent[0] == minute else {}
        fresh = {key: count for key, count in counts.items() if sent.get(key) != count}
        now = self._link.loop.time()
        if not (fresh or everything or streams != self._streams or now - self._at > SILENT_S / 4):
            return
        self._sent, self._streams, self._at = (minute, counts), streams, now
        await self._link.client.publish(
            self._subject, msgspec.msgpack.encode(Counts(self._name, minute, fresh, streams))
        )

    async def _receive(self, message: Any) -> None:
        received = msgspec.msgpack.decode(message.data, type=Counts)
        if received.who == self._name:
            return
        if received.who not in self._others:
            self._sent = (0, {})  # a new process knows nothing
            self._due.set()
        if received.minute > self._minute:
            self._requests, self._minute = Counter(), received.minute
        minute, counts = self._others.get(received.who, (0, {}))
        counts = counts if minute == received.minute else {}
        if received.minute == self._minute:
            for key, count in received.counts.items():
                self._requests[key] += count - counts.get(key, 0)
        self._others[received.who] = received.minute, counts | received.counts
        self._streams_of[received.who] = self._link.loop.time(), received.streams
        self._add_streams()

    def _forget(self) -> None:
        """Drop the streams of silent processes, and processes silent for a minute."""
        now = self._link.loop.time()
        silent = [who for who, (at, _) in self._streams_of.items() if now - at > SILENT_S]
        for who in silent:
            if self._streams_of[who][1]:
                self._streams_of[who] = self._streams_of[who][0], {}
                self._add_streams()
            if now - self._streams_of[who][0] > WINDOW_S:
                del self._streams_of[who]
                self._others.pop(who, None)

    def _add_streams(self) -> None:
        self._open = sum((Counter(streams) for _, streams in self._streams_of.values()), Counter())


class SharedUsage(Replication):
    """Adds the requests counted here to shared counters, and copies the totals to the database."""

    def __init__(self, link: LogConnection, name: str) -> None:
        self._link, self._name = link, name
        self._usage: Usage | None = None

    async def open(self, usage: Usage) -> None:
        """Create the stream of counters; a new one starts with the counts of this process."""
        config = StreamConfig(
            name=_USAGE, subjects=[f"{_USAGE}.>"], allow_msg_counter=True, max_msgs_per_subject=1,
            duplicate_window=120.0, max_age=USAGE_DAYS * 86_400.0, num_replicas=self._link.scale.replicas,
            storage=StorageType.FILE,
        )  # fmt: skip
        stream = await self._link.client.jetstream().add_stream(config)
        if not stream.state.last_seq and (totals := await asyncio.to_thread(usage.totals)):
            await self._add("first", totals)
        self._usage = usage

    def flush(self) -> None:
        """Share what is counted so far."""
        if self._usage is not None:
            self._usage.flush()

    async def follow(self) -> None:
        after: int | None = None
        while not self._link.closing:
            try:
                after = await self._follow(after)
            except TROUBLE:
                await asyncio.sleep(1.0)

    async def _follow(self, after: int | None) -> int | None:
        """Copy totals after a place in the stream until none arrives for a while. Returns where to continue.

        Each consumer gets its own configuration: the client writes into it when it recreates a consumer, which
        fails for one that starts by time. Such a consumer therefore ends after its first message.
        """
        jetstream, by_time = self._link.client.jetstream(), after is None
        if after is None:
            since = datetime.now(UTC) - timedelta(_USAGE_SEEN_D)
            config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=since)
        else:
            config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=after + 1)
        messages = await jetstream.subscribe(f"{_USAGE}.>", stream=_USAGE, ordered_consumer=True, config=config)
        try:
            while True:
                new = [await messages.next_msg(timeout=_IDLE_S)]
                while messages.pending_msgs:
                    new.append(await messages.next_msg(timeout=1.0))
                totals = {_account_day(one.subject): int(msgspec.json.decode(one.data)["val"]) for one in new}
                assert self._usage is not None
                await asyncio.to_thread(self._usage.adopt_totals, totals)
                after = new[-1].metadata.sequence.stream
                if by_time:
                    return after
        except TimeoutError:
            return after
        finally:
            with suppress(*TROUBLE):
                await messages.unsubscribe()

    def add_usage(self, batch: int, counts: Mapping[AccountDay, int]) -> Mapping[AccountDay, int] | None:
        if self._usage is None:
            return None
        if self._link.closing:
            raise OSError("the connection was closed")
        try:
            totals: dict[AccountDay, int] = self._link.call(self._add(f"{self._name}-{batch}", counts))
        except NatsError as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        return totals

    async def _add(self, batch: str, counts: Mapping[AccountDay, int]) -> dict[AccountDay, int]:
        """Add to counters, each only once per batch number. Returns the totals."""
        jetstream = self._link.client.jetstream()

        async def add(key: AccountDay, count: int) -> tuple[AccountDay, int]:
            subject = f"{_USAGE}.{key[0].replace('.', '%')}.{key[1]}"
            headers = {"Nats-Incr": str(count), "Nats-Msg-Id": f"{batch} {subject}"}
            stored = await jetstream.publish(subject, b"", headers=headers)
            return key, int(stored.val or 0)  # no value for a repeated message

        return dict(await asyncio.gather(*[add(key, count) for key, count in counts.items()]))


def _account_day(subject: str) -> AccountDay:
    _, account, day = subject.split(".")
    return account.replace("%", "."), int(day)


def open_keys(settings: Settings, environ: Mapping[str, str]) -> tuple[KeyStore, Callable[[], None]]:
    """The shared keys for a command; call the returned function at the end."""
    with ExitStack() as ends:
        link = LogConnection(settings, environ, lambda *_: None)
        ends.callback(link.close)
        shared = SharedKeys(link)
        store = ends.enter_context(closing(open_store(settings, replication=shared)))
        try:
            link.call(link.connect(), 10.0)
            link.call(shared.open(store), 10.0)
        except TimeoutError:
            servers = ", ".join(link.scale.servers)
            raise KeysError(f"{settings.file}: scale.servers do not answer: {servers}") from None
        return store, ends.pop_all().close
