"""Damaged messages and snapshots are noticed, said, and passed over; nothing of them reaches the board."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from oddsengine.live.engine import Engine
from oddsengine.live.recorder import Recorder
from oddsengine.live.snapshot import SnapshotError
from oddsengine.simulate import World
from oddsengine_service.history.closing_store import Closings
from oddsengine_service.node import Node
from oddsengine_service.scale import closings as closings_module
from oddsengine_service.scale.compression import DamagedError, compressed, decompressed
from oddsengine_service.scale.follower import Follower, Snapshot, closed, opened
from oddsengine_service.scale.log_messages import BatchStep, Entry, FormError, packed, unpacked
from oddsengine_service.scale.log_reader import LogReader
from oddsengine_service.scale.node_changes import Changes
from oddsengine_service.scale.shard_log import LogMessage, LogRange
from oddsengine_service.wire.splits_response import MoneylineSplit, Sides, SplitsGiven

NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)


class Messages(Recorder):
    """A recorder that makes the log's message of each step."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def batch(self, batch: Any, slept: Any = ()) -> None:
        self.bodies.append(packed([Entry("step", BatchStep(len(self.bodies) + 1, batch))]))


@pytest.fixture(scope="module")
def bodies() -> list[bytes]:
    engine, messages = Engine(), Messages()
    engine.record(messages)
    for batch in World(3, events=2, live=0.4, tick=5.0).run(60):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    return messages.bodies


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node(Engine(), None, None)  # type: ignore[arg-type]
    yield made
    made.close()


def flipped(data: bytes, rng: random.Random) -> bytes:
    held = bytearray(data)
    held[rng.randrange(len(held))] ^= 1 << rng.randrange(8)
    return bytes(held)


def test_any_flipped_bit_and_any_cut_is_noticed() -> None:
    data = msgspec.msgpack.encode({"rows": list(range(300)), "text": "price " * 50})
    stored = compressed(data)
    assert decompressed(stored, 1 << 20) == data
    for at in range(len(stored) * 8):
        held = bytearray(stored)
        held[at // 8] ^= 1 << at % 8
        try:
            again = decompressed(bytes(held), 1 << 20)
        except DamagedError as error:
            assert str(error).startswith("damaged: ")  # noqa: PT017
        else:
            assert again == data, at
    for end in range(len(stored)):
        with pytest.raises(DamagedError):
            decompressed(stored[:end], 1 << 20)
    with pytest.raises(DamagedError):
        decompressed(stored + b"x", 1 << 20)


def test_more_than_may_be_stored_takes_no_memory() -> None:
    with pytest.raises(DamagedError, match=r"damaged: 1,048,576 bytes, of at most 1,000"):
        decompressed(compressed(bytes(1 << 20)), 1000)


def test_what_was_stored_without_a_checksum_is_read() -> None:
    assert decompressed(zstandard.compress(b"price" * 100), 1 << 20) == b"price" * 100


def test_a_damaged_message_is_one_that_cannot_be_read(bodies: list[bytes], node: Node) -> None:
    follower, rng = Follower(node, Changes()), random.Random(1)
    follower.apply(LogMessage(1, 1, bodies[0]))
    before = node.engine.number, node.engine.state_hash()
    for body in (b"", bodies[1][:1], bodies[1][:-1], bodies[1] + b"x", *(flipped(bodies[1], rng) for _ in range(100))):
        try:
            assert unpacked(body)[0].value.number == 2  # a bit of the frame's header that says nothing
        except FormError:
            with pytest.raises(FormError, match=r"^the log holds "):
                follower.apply(LogMessage(2, 1, body))
        assert (node.engine.number, node.engine.state_hash()) == before
    follower.apply(LogMessage(2, 1, bodies[1]))
    assert node.engine.number == 2


@pytest.mark.parametrize(
    "content",
    [{"a": 1}, [["step", 5]], [["step", [1, 2]]], [["step", [1, 0, [], [], [b"123"] * 7, {}, b"", [], [], {}]]],
     [["check", ["x", "y"]]], [["splits", None]]],
)  # fmt: skip
def test_content_that_is_no_entry_cannot_be_read(content: Any) -> None:
    with pytest.raises(FormError, match=r"^the log holds a message that cannot be read: "):
        unpacked(packed([])[:1] + compressed(msgspec.msgpack.encode(content)))


class Board:
    """A log that ends at a damaged message, and has some snapshots."""

    name = "board-main"

    def __init__(self, bodies: list[bytes], *snapshots: tuple[Mapping[str, str], bytes], first: int = 1) -> None:
        self._bodies, self._snapshots, self._first = bodies, snapshots, first

    async def bounds(self) -> LogRange:
        return LogRange(self._first, len(self._bodies), 7)

    async def load(self, fits: Callable[[Mapping[str, str]], bool], read: Callable[[bytes], Any]) -> Any:
        return next(((about, read(data)) for about, data in reversed(self._snapshots) if fits(about)), None)

    async def follow(self, after: int) -> Any:
        for sequence, body in enumerate(self._bodies[after:], after + 1):
            yield LogMessage(sequence, 1, body)


def test_a_damaged_message_stops_the_reader(bodies: list[bytes], node: Node, caplog: pytest.LogCaptureFixture) -> None:
    """As one of a newer version does: this process does not serve, and will not lead."""
    reader = LogReader(node, Board([*bodies[:3], bodies[3][:-2]]), Changes(), None)  # type: ignore[arg-type]
    with caplog.at_level(logging.INFO, "oddsengine"):
        asyncio.run(reader._follow())
    assert reader.outdated
    assert node.engine.number == 3
    assert not node.ready
    assert node.waits_for.startswith("the log holds a message that cannot be read: damaged: ")
    assert "log not followed" in caplog.text


def snapshot_of(bodies: list[bytes]) -> tuple[Mapping[str, str], bytes]:
    """A snapshot after some messages, with splits too."""
    node = Node(Engine(), None, None)  # type: ignore[arg-type]
    try:
        follower = Follower(node, Changes())
        for sequence, body in enumerate(bodies, 1):
            follower.apply(LogMessage(sequence, 1, body))
        split = MoneylineSplit(120.0, -140.0, Sides(0.6, 0.4), Sides(0.55, 0.45))
        node.splits.put(SplitsGiven(event_id="e", sportsbook="draftkings", moneyline=split), NOW)
        about, data = follower.snapshot(7)
        return about, closed(data)
    finally:
        node.close()


def with_content(snapshot: tuple[Mapping[str, str], bytes], change: Callable[[Any], Any]) -> Snapshot:
    about, state = snapshot[0], opened(snapshot[1])
    change(state)
    return about, state


def contents(node: Node) -> Any:
    return node.games.dump(), node.futures.board.table.to_dicts(), node.futures.board.markets, node.splits.dump()


def spoil_prices(state: Any) -> None:
    state["engine"]["rows"]["odds"][2] = b"\x01" + state["engine"]["rows"]["odds"][2][1:]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "prices": spoil_prices,
    "games": lambda state: state.update(games={"board": 5}),
    "futures": lambda state: state["futures"].update(table=b"no table"),
    "splits": lambda state: state.update(splits=[["e", "dk", {}, b"", b""]]),
    "sources": lambda state: state.update(sources=[5]),
    "decisions": lambda state: state.update(decisions=[5]),
    "engine": lambda state: state.pop("engine"),
    "another's description": lambda state: state["about"].update(sequence="1"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_damaged_snapshot_leaves_the_node_as_it_was(
    bodies: list[bytes], node: Node, change: Callable[[Any], Any]
) -> None:
    whole = snapshot_of(bodies)
    follower = Follower(node, Changes())
    before = contents(node)
    with pytest.raises(SnapshotError, match=r"^the snapshot "):
        follower.restore(with_content(whole, change))
    assert contents(node) == before
    assert (node.engine.number, follower.sequence, len(follower.decisions)) == (0, 0, 0)
    follower.restore((whole[0], opened(whole[1])))
    assert node.engine.number == follower.sequence == len(bodies)
    assert len(node.splits) == 1


@pytest.mark.parametrize("older", [True, False])
def test_a_start_passes_over_a_damaged_snapshot(
    bodies: list[bytes], node: Node, caplog: pytest.LogCaptureFixture, *, older: bool
) -> None:
    """It starts from the one before, or where there is none, from the first message that is left."""
    first, last = snapshot_of(bodies[:4]), snapshot_of(bodies[:8])
    state = opened(last[1])
    spoil_prices(state)
    bad = last[0], closed(msgspec.msgpack.encode(state))
    board = Board(bodies, *([first] if older else []), bad, first=3 if older else 1)
    reader = LogReader(node, board, Changes(), None)  # type: ignore[arg-type]

    async def begin() -> bool:
        start = await reader.find_start()
        if start.snapshot is None:  # it is not old enough for delayed boards
            start = start._replace(snapshot=(bad[0], opened(bad[1])))
        return await reader.begin(start)

    with caplog.at_level(logging.INFO, "oddsengine"):
        assert asyncio.run(begin())
    assert node.engine.number == reader.follower.sequence == (4 if older else 0)
    assert caplog.text.count("snapshot passed over") == 1


def test_a_start_waits_where_only_a_damaged_snapshot_is_left(bodies: list[bytes], node: Node) -> None:
    about, data = snapshot_of(bodies[:8])
    state = opened(data)
    spoil_prices(state)
    reader = LogReader(node, Board(bodies, (about, closed(msgspec.msgpack.encode(state))), first=3), Changes(), None)  # type: ignore[arg-type]

    async def begin() -> bool:
        return await reader.begin(await reader.find_start())

    assert not asyncio.run(begin())
    assert node.engine.number == 0


def test_a_damaged_record_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The others are stored."""
    waiting, closings = closings_module.PendingClosings(lambda: True), Closings(tmp_path / "closing.sqlite")
    try:
        for event in ("e1", "e2"):
            waiting.discard(event)
        body = waiting.first()
        assert body is not None
        with caplog.at_level(logging.INFO, "oddsengine"):
            closings_module.store(closings, 7, LogMessage(1, 1, body[:-3]))
            closings_module.store(closings, 7, LogMessage(2, 1, body))
        assert closings.database.place(7) == 2
        assert caplog.text.count("record left out") == 1
    finally:
        closings.close()
