"""Events that are queued for all subscribers, those who get theirs at another moment, and those who are cut off."""

import asyncio
import math
import threading
import time
from datetime import UTC, datetime

import pytest

from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.query import RowFilter
from oddsengine_service.node import Node
from oddsengine_service.stream import sending
from oddsengine_service.stream.group_prices import BoardFrames, PriceGroup
from oddsengine_service.stream.moves import RowForm
from oddsengine_service.stream.sending import GroupEvents
from oddsengine_service.stream.sse import frame
from oddsengine_service.stream.stream_events import SSE, Resumable, Wire
from oddsengine_service.stream.subscriber import Subscriber
from oddsengine_service.stream.subscribers import Subscribers


class Client:
    """Takes what is sent to it, while its gate is open."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, message: dict[str, object]) -> None:
        await self.open.wait()
        body = message.get("body", b"")
        assert isinstance(body, bytes)
        self.bodies.append(body)

    @property
    def text(self) -> bytes:
        """All that it got."""
        return b"".join(self.bodies)


def subscribers_and_group(wire: Wire, **bounds: int) -> tuple[Subscribers, PriceGroup]:
    """The subscribers of a node without a server, and a group."""
    node = Node(Engine(), None, None)  # type: ignore[arg-type]
    group = PriceGroup(RowFilter(), RowForm(), node.boards.index(node.engine), wire)
    return Subscribers(node, **bounds), group


def admitted(subscribers: Subscribers, group: PriceGroup, wire: Wire, client: Client) -> Subscriber:
    """A subscriber that has its snapshot of update 1."""
    subscriber = subscribers.enter(client, "account", "key", lambda: True, wire, [])
    subscribers.delivery.register(group, subscriber, 0)
    subscribers.delivery.admit(subscriber, BoardFrames(1, [], b"data: complete\n\n"), [], 0, 1)
    return subscriber


def moved(row: str, value: int) -> bytes:
    """A change of one row."""
    return b'event: odds:update\ndata: {"id":"%b","n":%d}\n\n' % (row.encode(), value)


def pause(subscribers: Subscribers) -> None:
    """Let the next flush wait a little, so that events are queued."""
    subscribers.rounds.next_at = asyncio.get_running_loop().time() + 0.02


@pytest.mark.parametrize("wire", [SSE, Resumable("0a")])
def test_a_reader_that_pauses_gets_every_event_in_order(wire: Wire) -> None:
    async def run() -> None:
        subscribers, group = subscribers_and_group(wire, reader_bytes=1000)
        client = Client()
        subscriber = admitted(subscribers, group, wire, client)
        client.open.clear()
        for number in range(2, 12):
            subscribers.delivery.deliver([GroupEvents(group, number, [moved("a", number)])], number)
            subscribers.rounds.write()
            subscribers.checks.slow_at = 0.0  # as if half a second had passed
        assert subscriber.connection.size > 400
        pause(subscribers)
        subscribers.delivery.deliver([GroupEvents(group, 12, [moved("a", 12)])], 12)
        subscribers.delivery.deliver([], 13)
        client.open.set()
        async with asyncio.timeout(20):
            while b'"n":12' not in client.text:
                await asyncio.sleep(0.001)
        numbers = [int(line[:-1].rpartition(b":")[2]) for line in client.text.splitlines() if b'"n":' in line]
        assert numbers == list(range(2, 13))
        ids = [int(line[8:].partition(b".")[0]) for line in client.text.splitlines() if line.startswith(b"id: evt_")]
        assert ids == sorted(ids)
        assert not subscribers.checks.cuts

    asyncio.run(run())


class Stopped:
    """A client that takes one byte and then stops, in a task of its own, which ends when it is cut off."""

    def __init__(self, subscribers: Subscribers, account: str, snapshot: int = 0) -> None:
        self._subscribers, self._account, self._snapshot = subscribers, account, snapshot
        self.subscriber: Subscriber
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        client = Client()
        client.open.clear()
        self.subscriber = self._subscribers.enter(client, self._account, "key", lambda: True, SSE, [])
        self.subscriber.connection.begin([b"x" * self._snapshot])
        self.subscriber.waiting = None
        try:
            await asyncio.sleep(1000)
        finally:
            self._subscribers.leave(self.subscriber)

    def send(self, size: int) -> None:
        self._subscribers.delivery.send(b"x" * size, self.subscriber)


def cut_off(subscribers: Subscribers, *readers: Stopped) -> list[bool]:
    """Which readers are gone after a round of writing at which they are checked."""
    subscribers.checks.slow_at = 0.0
    subscribers.rounds.write()
    return [reader.subscriber.connection.gone for reader in readers]


def test_a_reader_with_more_than_its_bound_is_cut_off() -> None:
    async def run() -> None:
        subscribers, _ = subscribers_and_group(SSE)
        stopped, other = Stopped(subscribers, "a", snapshot=9 << 20), Stopped(subscribers, "a")
        await asyncio.sleep(0)
        for megabytes in range(1, 5):
            stopped.send(1 << 20)
            other.send(1 << 19)
            assert cut_off(subscribers, stopped, other) == [False, False], megabytes
        assert cut_off(subscribers, stopped, other) == [False, False]  # 4 MB are not too much
        stopped.send(1)
        assert cut_off(subscribers, stopped, other) == [False, False]  # the last byte is new
        assert cut_off(subscribers, stopped, other) == [True, False]
        assert stopped.subscriber.connection.size == 0
        await asyncio.wait([stopped.task])
        assert (subscribers.streams, subscribers.checks.cuts) == (1, 1)

    asyncio.run(run())


def test_a_large_step_is_not_too_much_before_its_readers_had_time_for_it() -> None:
    async def run() -> None:
        subscribers, group = subscribers_and_group(SSE, reader_bytes=1000, account_bytes=1000, node_bytes=1000)
        client = Client()
        subscriber = admitted(subscribers, group, SSE, client)
        subscribers.delivery.deliver([], 1)
        await asyncio.sleep(0)
        for number in range(2, 6):
            client.open.clear()
            for rows in (3000, 1):  # the small step is not handed out before readers were looked at
                subscribers.delivery.deliver(
                    [GroupEvents(group, number, [moved(f"row {at}", number) for at in range(rows)])], number
                )
                subscribers.checks.slow_at = 0.0
                subscribers.rounds.write()
            assert subscriber.connection.size > 50_000
            client.open.set()
            async with asyncio.timeout(20):
                while subscriber.connection.size:
                    await asyncio.sleep(0.001)
        assert not subscribers.checks.cuts

    asyncio.run(run())


@pytest.mark.parametrize(
    ("bounds", "gone"),
    [
        ({"account_bytes": 40_000}, [True, False, False, True, False]),  # 90,000 of account a, and 40,000 of b
        ({"account_bytes": 39_000}, [True, False, False, True, True]),
        (
            {"account_bytes": 60_000, "node_bytes": 100_000},
            [True, False, False, False, False],
        ),  # those cut off count no more
        ({"node_bytes": 130_000}, [False, False, False, False, False]),
        ({"node_bytes": 129_000}, [False, False, False, False, True]),
        ({"node_bytes": 70_000}, [True, False, False, False, True]),
        ({"node_bytes": 10_000}, [True, True, False, True, True]),
        ({"account_bytes": 39_000, "node_bytes": 30_000}, [True, False, False, True, True]),
        ({"reader_bytes": 30_000, "account_bytes": 40_000, "node_bytes": 60_000}, [True, False, False, True, True]),
    ],
)
def test_the_readers_with_the_most_are_cut_off_until_the_rest_fits(bounds: dict[str, int], gone: list[bool]) -> None:
    async def run() -> None:
        subscribers, _ = subscribers_and_group(SSE, **bounds)
        sizes = {"a": (35_000, 15_000, 10_000, 30_000), "b": (40_000,)}
        readers = [(Stopped(subscribers, account), size) for account, each in sizes.items() for size in each]
        await asyncio.sleep(0)
        for reader, size in readers:
            reader.send(size)
        stopped = [reader for reader, _ in readers]
        assert cut_off(subscribers, *stopped) == [False] * 5
        assert cut_off(subscribers, *stopped) == gone
        assert cut_off(subscribers, *stopped) == gone
        assert subscribers.checks.cuts == sum(gone)

    asyncio.run(run())


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
def test_an_event_has_no_end_of_a_line_in_its_texts(end: str) -> None:
    """Some clients split lines where Unicode does."""
    sent = frame("odds", {"league": f"é{end}"})
    assert sent.decode().splitlines() == ["event: odds", f'data: {{"league":"é\\u{ord(end):04x}"}}', ""]


@pytest.mark.parametrize("wire", [SSE, Resumable("0a")])
def test_queued_events_are_sent_before_a_stream_ends(wire: Wire) -> None:
    async def run() -> None:
        subscribers, group = subscribers_and_group(wire)
        client = Client()
        admitted(subscribers, group, wire, client)
        pause(subscribers)
        subscribers.delivery.deliver([GroupEvents(group, 2, [moved("a", 2)])], 2)
        subscribers.end_all()
        await asyncio.sleep(0.05)
        assert b'"n":2' in client.text

    asyncio.run(run())


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("longest", [sending.GIVE_WAY_S, math.inf])
def test_a_round_of_writing_waits_for_a_step_but_not_for_long(
    monkeypatch: pytest.MonkeyPatch, longest: float, *, fails: bool
) -> None:
    monkeypatch.setattr(sending, "GIVE_WAY_S", longest)
    running, may_end = threading.Event(), threading.Event()

    async def run() -> None:
        subscribers, group = subscribers_and_group(SSE)
        client = Client()
        admitted(subscribers, group, SSE, client)
        node = subscribers.rounds._node

        def step() -> Update:
            running.set()
            may_end.wait()
            1 // (not fails)
            return node.engine.step(now=datetime(2026, 1, 1, tzinfo=UTC))

        done = node.write(node._published, step)
        await asyncio.to_thread(running.wait)
        subscribers.delivery.deliver([GroupEvents(group, 2, [moved("a", 2)])], 2)
        subscribers.delivery.deliver([GroupEvents(group, 3, [moved("b", 3)])], 3)
        async with asyncio.timeout(20):
            if longest < 1.0:
                while b'"id":"b"' not in client.text:
                    await asyncio.sleep(0.001)
            else:
                await asyncio.sleep(0.1)
                assert b'"id"' not in client.text
            may_end.set()
            while b'"id":"b"' not in client.text:
                await asyncio.sleep(0.001)
        assert client.text.count(b'"id"') == 2
        assert isinstance(await asyncio.to_thread(done.exception, 20), ZeroDivisionError if fails else type(None))

    asyncio.run(run())


def test_a_round_of_writing_waits_as_long_for_a_step_in_a_busy_event_loop() -> None:
    """The time counts, not how often the loop had the time to look."""

    async def run() -> None:
        subscribers, group = subscribers_and_group(SSE)
        client = Client()
        admitted(subscribers, group, SSE, client)
        subscribers.rounds._node.stepping = True
        subscribers.delivery.deliver([GroupEvents(group, 2, [moved("a", 2)])], 2)
        turns = 0
        while b'"id":"a"' not in client.text:
            time.sleep(sending.GIVE_WAY_S)
            turns += 1
            await asyncio.sleep(0)
        assert turns <= 4

    asyncio.run(run())


def test_a_round_of_writing_lets_other_tasks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_PART_S", 0.0)

    async def run() -> None:
        subscribers, group = subscribers_and_group(SSE)
        clients = [Client() for _ in range(5)]
        for client in clients:
            admitted(subscribers, group, SSE, client)
        subscribers.delivery.deliver([GroupEvents(group, 2, [moved("a", 2)])], 2)
        received = set[int]()
        async with asyncio.timeout(20):
            while 5 not in received:
                await asyncio.sleep(0)
                received.add(sum(b'"id"' in client.text for client in clients))
        assert {1, 2, 3, 4, 5} <= received

    asyncio.run(run())
