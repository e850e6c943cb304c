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
from oddsengine_service.stream.events import SSE, Resumable, Wire
from oddsengine_service.stream.moves import RowForm
from oddsengine_service.stream.prices import BoardFrames, PriceGroup
from oddsengine_service.stream.sending import Subscribers
from oddsengine_service.stream.sse import frame
from oddsengine_service.stream.subscriber import Subscriber


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


def lines_and_group(wire: Wire, **bounds: int) -> tuple[Subscribers, PriceGroup]:
    """Lines of a node without a server, and a group."""
    node = Node(Engine(), None, None)  # type: ignore[arg-type]
    group = PriceGroup(RowFilter(), RowForm(), node.index(node.engine), wire)
    return Subscribers(node, **bounds), group


def admitted(lines: Subscribers, group: PriceGroup, wire: Wire, client: Client) -> Subscriber:
    """A subscriber that has its snapshot of update 1."""
    subscriber = lines.enter(client, "account", "key", lambda: True, wire, [])
    lines.register(group, subscriber, 0)
    lines.admit(subscriber, BoardFrames(1, [], b"data: complete\n\n"), [], 0, 1)
    return subscriber


def moved(row: str, value: int) -> bytes:
    """A change of one row."""
    return b'event: odds:update\ndata: {"id":"%b","n":%d}\n\n' % (row.encode(), value)


def pause(lines: Subscribers) -> None:
    """Let the next flush wait a little, so that events are queued."""
    lines._flush_at = asyncio.get_running_loop().time() + 0.02


@pytest.mark.parametrize("wire", [SSE, Resumable("0a")])
def test_a_reader_that_pauses_gets_every_event_in_order(wire: Wire) -> None:
    async def run() -> None:
        lines, group = lines_and_group(wire, reader_bytes=1000)
        client = Client()
        subscriber = admitted(lines, group, wire, client)
        client.open.clear()
        for number in range(2, 12):
            lines.deliver([(group, number, [moved("a", number)])], number)
            lines._flush()
            lines._check_at = 0.0  # as if half a second had passed
        assert subscriber.size > 400
        pause(lines)
        lines.deliver([(group, 12, [moved("a", 12)])], 12)
        lines.deliver([], 13)
        client.open.set()
        async with asyncio.timeout(20):
            while b'"n":12' not in client.text:
                await asyncio.sleep(0.001)
        numbers = [int(line[:-1].rpartition(b":")[2]) for line in client.text.splitlines() if b'"n":' in line]
        assert numbers == list(range(2, 13))
        ids = [int(line[8:].partition(b".")[0]) for line in client.text.splitlines() if line.startswith(b"id: evt_")]
        assert ids == sorted(ids)
        assert not lines.cuts

    asyncio.run(run())


class Stopped:
    """A client that takes one byte and then stops, in a task of its own, which ends when it is cut off."""

    def __init__(self, lines: Subscribers, account: str, snapshot: int = 0) -> None:
        self._lines, self._account, self._snapshot = lines, account, snapshot
        self.subscriber: Subscriber
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        client = Client()
        client.open.clear()
        self.subscriber = self._lines.enter(client, self._account, "key", lambda: True, SSE, [])
        self.subscriber.begin([b"x" * self._snapshot])
        self.subscriber.waiting = None
        try:
            await asyncio.sleep(1000)
        finally:
            self._lines.leave(self.subscriber)

    def send(self, size: int) -> None:
        self._lines.send(b"x" * size, self.subscriber)


def cut_off(lines: Subscribers, *readers: Stopped) -> list[bool]:
    """Which readers are gone after a round of writing at which they are checked."""
    lines._check_at = 0.0
    lines._flush()
    return [reader.subscriber.gone for reader in readers]


def test_a_reader_with_more_than_its_bound_is_cut_off() -> None:
    async def run() -> None:
        lines, _ = lines_and_group(SSE)
        stopped, other = Stopped(lines, "a", snapshot=9 << 20), Stopped(lines, "a")
        await asyncio.sleep(0)
        for megabytes in range(1, 5):
            stopped.send(1 << 20)
            other.send(1 << 19)
            assert cut_off(lines, stopped, other) == [False, False], megabytes
        assert cut_off(lines, stopped, other) == [False, False]  # 4 MB are not too much
        stopped.send(1)
        assert cut_off(lines, stopped, other) == [False, False]  # the last byte is new
        assert cut_off(lines, stopped, other) == [True, False]
        assert stopped.subscriber.size == 0
        await asyncio.wait([stopped.task])
        assert (lines.streams, lines.cuts) == (1, 1)

    asyncio.run(run())


def test_a_large_step_is_not_too_much_before_its_readers_had_time_for_it() -> None:
    async def run() -> None:
        lines, group = lines_and_group(SSE, reader_bytes=1000, account_bytes=1000, node_bytes=1000)
        client = Client()
        subscriber = admitted(lines, group, SSE, client)
        lines.deliver([], 1)
        await asyncio.sleep(0)
        for number in range(2, 6):
            client.open.clear()
            for rows in (3000, 1):  # the small step is not handed out before readers were looked at
                lines.deliver([(group, number, [moved(f"row {at}", number) for at in range(rows)])], number)
                lines._check_at = 0.0
                lines._flush()
            assert subscriber.size > 50_000
            client.open.set()
            async with asyncio.timeout(20):
                while subscriber.size:
                    await asyncio.sleep(0.001)
        assert not lines.cuts

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
        lines, _ = lines_and_group(SSE, **bounds)
        sizes = {"a": (35_000, 15_000, 10_000, 30_000), "b": (40_000,)}
        readers = [(Stopped(lines, account), size) for account, each in sizes.items() for size in each]
        await asyncio.sleep(0)
        for reader, size in readers:
            reader.send(size)
        stopped = [reader for reader, _ in readers]
        assert cut_off(lines, *stopped) == [False] * 5
        assert cut_off(lines, *stopped) == gone
        assert cut_off(lines, *stopped) == gone
        assert lines.cuts == sum(gone)

    asyncio.run(run())


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
def test_an_event_has_no_end_of_a_line_in_its_texts(end: str) -> None:
    """Some clients split lines where Unicode does."""
    sent = frame("odds", {"league": f"é{end}"})
    assert sent.decode().splitlines() == ["event: odds", f'data: {{"league":"é\\u{ord(end):04x}"}}', ""]


@pytest.mark.parametrize("wire", [SSE, Resumable("0a")])
def test_queued_events_are_sent_before_a_stream_ends(wire: Wire) -> None:
    async def run() -> None:
        lines, group = lines_and_group(wire)
        client = Client()
        admitted(lines, group, wire, client)
        pause(lines)
        lines.deliver([(group, 2, [moved("a", 2)])], 2)
        lines.end_all()
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
        lines, group = lines_and_group(SSE)
        client = Client()
        admitted(lines, group, SSE, client)
        node = lines._node

        def step() -> Update:
            running.set()
            may_end.wait()
            1 // (not fails)
            return node.engine.step(now=datetime(2026, 1, 1, tzinfo=UTC))

        done = node.write(node._published, step)
        await asyncio.to_thread(running.wait)
        lines.deliver([(group, 2, [moved("a", 2)])], 2)
        lines.deliver([(group, 3, [moved("b", 3)])], 3)
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
        lines, group = lines_and_group(SSE)
        client = Client()
        admitted(lines, group, SSE, client)
        lines._node.stepping = True
        lines.deliver([(group, 2, [moved("a", 2)])], 2)
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
        lines, group = lines_and_group(SSE)
        clients = [Client() for _ in range(5)]
        for client in clients:
            admitted(lines, group, SSE, client)
        lines.deliver([(group, 2, [moved("a", 2)])], 2)
        received = set[int]()
        async with asyncio.timeout(20):
            while 5 not in received:
                await asyncio.sleep(0)
                received.add(sum(b'"id"' in client.text for client in clients))
        assert {1, 2, 3, 4, 5} <= received

    asyncio.run(run())
