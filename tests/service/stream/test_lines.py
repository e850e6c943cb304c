"""Events that are queued for all subscribers, and those who get theirs at another moment."""

import asyncio
import io
import math
import threading
import time
from datetime import UTC, datetime

import msgspec
import pytest

from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.query import RowFilter
from oddsengine_service.log import Log
from oddsengine_service.node import Node
from oddsengine_service.stream import sending
from oddsengine_service.stream.events import SSE, Resumable, StreamEvent, Wire
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
    return Subscribers(node, Log(io.StringIO(), quiet=True), **bounds), group


def admitted(lines: Subscribers, group: PriceGroup, wire: Wire, client: Client) -> Subscriber:
    """A subscriber that has its snapshot of update 1."""
    subscriber = lines.enter(client, "account", "key", lambda: True, wire, [])
    lines.register(group, subscriber, 0)
    lines.admit(subscriber, BoardFrames(1, [], b"data: complete\n\n"), [], 0, 1)
    return subscriber


def moved(row: str, value: int) -> StreamEvent:
    """A change of one row."""
    body = b'event: odds:update\ndata: {"id":"%b","n":%d}\n\n' % (row.encode(), value)
    raw = msgspec.Raw(b'{"id":"%b","n":%d}' % (row.encode(), value))
    return StreamEvent(body, "odds", [row], [raw], partly=True, book="b", total=1)


def pause(lines: Subscribers) -> None:
    """Let the next flush wait a little, so that events are queued."""
    lines._flush_at = asyncio.get_running_loop().time() + 0.02


def test_a_slow_reader_that_catches_up_gets_what_is_queued_before_the_number_of_its_update() -> None:
    async def run() -> None:
        wire = Resumable("0a")
        lines, group = lines_and_group(wire, behind=10)
        client = Client()
        subscriber = admitted(lines, group, wire, client)
        await asyncio.sleep(0)
        client.open.clear()
        for number in (2, 3, 4):
            lines.deliver([(group, number, [moved("a", number)])], number)
            await asyncio.sleep(0.05)
        assert subscriber.backlog is not None
        pause(lines)
        lines.deliver([(group, 5, [moved("z", 5)])], 5)
        lines.deliver([], 6)
        client.open.set()
        await asyncio.sleep(0.1)
        assert client.text.count(b'"id":"z"') == 1
        ids = [int(line[8:].partition(b".")[0]) for line in client.text.splitlines() if line.startswith(b"id: evt_")]
        assert ids == sorted(ids)
        assert client.text.index(b'"id":"z"') > client.text.index(b"id: evt_%d" % ids[-1])

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
