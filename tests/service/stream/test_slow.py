"""Readers that are slow: several changes of a row reach them as one, and those that stop are cut off."""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.effort import less
from support.stream_running import PATIENCE_S, Client, Served, heard, lasting, moment, price, total, wait_for

from oddsengine_service.request import BASE
from oddsengine_service.stream import events
from oddsengine_service.stream.backlog import Backlog
from oddsengine_service.stream.events import StreamEvent
from oddsengine_service.stream.sse import CHUNK

BOOKS = ("a", "b")
IDS = tuple("pqr")
SOME = st.sets(st.sampled_from(IDS), min_size=1)


def raw(row: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(row))


class Reader:
    """Holds what events say, and takes offence at one that does not fit what it holds."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}

    def take(self, bodies: list[bytes]) -> None:
        for body in bodies:
            first, second, *_ = body.decode().split("\n")
            name, data = first.removeprefix("event: "), json.loads(second.removeprefix("data: "))
            if name == "snapshot":
                assert data["count"] == len(data["odds"]) <= CHUNK
                self.rows.update({row["id"]: row for row in data["odds"]})
                if data["offset"] + data["count"] == data["total"]:
                    assert data["total"] == len(self.rows)
            elif name == "odds:update":
                for row in data["odds"]:
                    assert self.rows[row["id"]]["book"] == data["book"]
                    self.rows[row["id"]].update(row)
            elif name == "odds:removed":
                for id_ in data["ids"]:
                    assert self.rows.pop(id_)["book"] == data["book"]
            elif name.endswith("detected"):
                self.rows.update({row["id"]: row for row in data})
            elif name == "gamestate:update":
                self.rows.update(data)
            else:
                for id_ in data.get("expired") or data["ids"]:
                    del self.rows[id_]


class Slow(RuleBasedStateMachine):
    """Everybody gets every event; the slow reader gets what it missed in one go, now and then."""

    family = "odds"

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, dict[str, Any]] = {}
        self.prompt, self.slow = Reader(), Reader()
        self.backlog = Backlog()
        self.clock = 0  # no two rows are equal

    def tell(self, some: list[StreamEvent]) -> None:
        self.prompt.take(events.bodies(some))
        self.backlog.merge(some)

    def book(self, id_: str) -> str:
        return BOOKS[IDS.index(id_) % len(BOOKS)]

    @rule(ids=SOME)
    def come(self, ids: set[str]) -> None:
        """Whole rows: new ones, and such as no delta can describe."""
        some = sorted(ids)
        fresh = [id_ not in self.rows for id_ in some]
        for id_ in some:
            self.clock += 1
            self.rows[id_] = {"id": id_, "book": self.book(id_), "price": self.clock, "link": self.clock}
        rows = [raw(self.rows[id_]) for id_ in some]
        if self.family == "odds":
            self.tell(events.SSE.added(some, rows, fresh, len(self.rows)))
        elif self.family == "gamestate":
            self.tell(events.played({id_: self.rows[id_] for id_ in some}, fresh))
        else:
            self.tell(events.SSE.detected(self.family, some, rows, fresh))

    @rule(ids=SOME)
    def move(self, ids: set[str]) -> None:
        for book in BOOKS:
            some = [id_ for id_ in sorted(ids) if id_ in self.rows and self.book(id_) == book]
            for id_ in some:
                self.clock += 1
                self.rows[id_] = {**self.rows[id_], "price": self.clock}
            if self.family == "odds":
                self.tell(
                    events.SSE.moved(
                        book, some, [raw({"id": id_, "price": self.rows[id_]["price"]}) for id_ in some], len(self.rows)
                    )
                )
            elif some and self.family == "gamestate":
                self.tell(events.played({id_: self.rows[id_] for id_ in some}, [False] * len(some)))
            elif some:
                rows = [raw(self.rows[id_]) for id_ in some]
                self.tell(events.SSE.detected(self.family, some, rows, [False] * len(some)))

    @rule(ids=SOME)
    def leave(self, ids: set[str]) -> None:
        for book in BOOKS:
            some = [id_ for id_ in sorted(ids) if id_ in self.rows and self.book(id_) == book]
            for id_ in some:
                del self.rows[id_]
            if self.family == "odds":
                self.tell(events.SSE.removed(book, some, len(self.rows)))
            else:
                self.tell(
                    events.forgotten(some) if self.family == "gamestate" else events.SSE.expired(self.family, some)
                )

    @rule()
    def catch_up(self) -> None:
        assert self.backlog.size >= 0
        self.slow.take(self.backlog.frames())
        self.backlog = Backlog()
        assert self.slow.rows == self.prompt.rows

    @invariant()
    def prompt_is_right(self) -> None:
        assert self.prompt.rows == self.rows

    def teardown(self) -> None:
        self.catch_up()


class SlowOpportunities(Slow):
    family = "arb"


class SlowGames(Slow):
    family = "gamestate"


TestSlow = Slow.TestCase
TestSlowOpportunities = SlowOpportunities.TestCase
TestSlowGames = SlowGames.TestCase


@given(st.integers(0, 3 * CHUNK))
def test_what_was_missed_comes_in_parts(count: int) -> None:
    ids = [f"{n:05d}" for n in range(count)]
    backlog, reader = Backlog(), Reader()
    reader.rows = {id_: {"id": id_, "book": "a", "price": 1} for id_ in ids}
    backlog.merge(events.SSE.moved("a", ids, [raw({"id": id_, "price": 2}) for id_ in ids], count))
    backlog.merge(events.SSE.moved("a", ids[:7], [raw({"id": id_, "price": 3}) for id_ in ids[:7]], count))
    frames = backlog.frames()
    assert [b'"partial":true' in frame for frame in frames] == [True] * (len(frames) - 1) + [False] * bool(frames)
    reader.take(frames)
    assert [reader.rows[id_]["price"] for id_ in ids] == [3] * min(count, 7) + [2] * (count - 7)


# ---- on a socket ----


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Served]:
    served = Served(folder, **settings)
    try:
        yield served
    finally:
        served.stop()
        assert "failure" not in served.text.getvalue(), served.text.getvalue()


LINES = [100.5 + at for at in range(300)]


def board(odds: float, event: str = "slow", book: str = "fanduel") -> list[dict[str, Any]]:
    return [total(event, book, side, line, odds) for line in LINES for side in ("Over", "Under")]


def in_rest(served: Served, **query: Any) -> dict[str, dict[str, Any]]:
    rows = served.rows("/odds", "enterprise", query)
    return {id_: lasting(row) for id_, row in rows.items() if row["is_active"]}


def plain(rows: dict[str, dict[str, Any]], like: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows with the fields that others have."""
    names = set(next(iter(like.values()))) if like else set()
    return {id_: {name: row[name] for name in names} for id_, row in rows.items()}


def test_a_slow_reader_holds_what_everybody_holds(tmp_path: Path) -> None:
    with serving(tmp_path, behind=40_000, send_buffer=8192) as served:
        now = moment()
        served.step(board(1.9), now)
        good = Client(served.port, "/stream/odds", served.key("enterprise"))
        slow = Client(served.port, "/stream/odds", served.key("sharp"), bite=4096, pause=0.004, room=4096)
        assert good.ready.wait(PATIENCE_S)
        assert slow.ready.wait(PATIENCE_S)
        lines = served.hub.lines
        tick = 0
        while lines.merged < less(400, 200):
            assert tick < 4000
            tick += 1
            later = now + timedelta(milliseconds=100 * tick)
            odds = 1.5 + tick % 90 / 100.0
            if tick % 5 == 0:  # some leave, others come, and come back
                served.step(board(odds)[tick % 7 :: 3], later, complete=["fanduel"])
            elif tick % 7 == 0:
                served.step([price("slow", "betmgm", "Home", odds, is_active=tick % 2 == 0)], later)
            else:
                served.step(board(odds)[tick % 11 :: 2], later)
        served.step(board(3.0, "other", "betmgm"), now + timedelta(seconds=3600))
        want = in_rest(served)
        for client in (good, slow):
            wait_for(lambda c=client: plain(c.held(), c.held()) == plain(want, c.held()) or c.faults, 60.0)  # type: ignore[misc]
            assert not client.faults
            assert set(client.held()) == set(want)
            # a heartbeat names no update while its reader is behind
            wait_for(lambda c=client: c.looks and c.looks[-1].prices == served.engine.number)  # type: ignore[misc]
            assert client.ids == sorted(set(client.ids))
        assert lines.cuts == 0
        assert slow.names.count("odds:update") < good.names.count("odds:update")
        for client in (good, slow):
            client.close()


@pytest.mark.exhaustive
def test_a_steady_reader_is_not_cut_off_however_slow(tmp_path: Path) -> None:
    """Its kernel has no room most of the time, and reports progress in steps, but it reads all the time."""
    with serving(tmp_path, stalled=2.0, send_buffer=8192) as served:
        served.step(board(1.9), moment())
        slow = Client(served.port, "/stream/odds", served.key("sharp"), bite=1024, pause=0.05, room=4096)
        assert slow.ready.wait(3 * PATIENCE_S)
        assert set(slow.odds) == set(in_rest(served))
        assert served.hub.lines.cuts == 0
        slow.close()


def stopped(served: Served, tier: str) -> socket.socket:
    """A client that asks, and then reads nothing."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(("127.0.0.1", served.port))
    line.sendall(f"GET {BASE}/stream/odds?api_key={served.key(tier)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    wait_for(lambda: served.node.limits.streams(f"account-{tier}") == 1)
    return line


@pytest.mark.parametrize(
    "bounds",
    [{"stalled": 1.0, "send_buffer": 8192}, {"limit": 60_000, "behind": 20_000, "send_buffer": 8192}],
    ids=["takes nothing", "misses too much"],
)
def test_a_reader_that_stops_is_cut_off_and_nobody_else(tmp_path: Path, bounds: dict[str, Any]) -> None:
    with serving(tmp_path, **bounds) as served:
        now = moment()
        served.step(board(1.9), now)
        good = [Client(served.port, "/stream/odds", served.key("enterprise")) for _ in range(3)]
        assert all(client.ready.wait(PATIENCE_S) for client in good)
        line = stopped(served, "sharp")
        lines, limits = served.hub.lines, served.node.limits
        for tick in range(1, 400):
            served.step(board(1.62 + tick % 35 / 100.0), now + timedelta(milliseconds=10 * tick))
            wait_for(lambda n=tick: all(client.names.count("odds:update") >= n for client in good))  # type: ignore[misc]
            if limits.streams("account-sharp") == 0:
                break
        wait_for(lambda: lines.cuts == 1)
        wait_for(lambda: limits.streams("account-sharp") == 0)
        assert lines.streams == 3
        served.step(board(3.0), now + timedelta(seconds=60))
        wait_for(lambda: all({row["odds_decimal"] for row in c.odds.values()} == {3.0} for c in good))
        assert not any(client.faults for client in good)
        served.log.flush()
        assert '"stream cut off"' in served.text.getvalue()
        assert served.key("sharp") not in served.text.getvalue()
        line.close()
    # Those who still listened were told that it ends.
    assert all(client.ended.wait(PATIENCE_S) and client.clean for client in good)


UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


@pytest.mark.parametrize(("path", "headers"), [("/health", ""), ("/ws", UPGRADE)], ids=["a request", "an upgrade"])
def test_a_stream_with_a_request_behind_it_ends_with_its_connection(tmp_path: Path, path: str, headers: str) -> None:
    with serving(tmp_path, stalled=1000.0) as served:
        other = Client(served.port, "/stream/odds", served.key("enterprise"))
        assert other.ready.wait(PATIENCE_S)
        for _ in range(3):
            line = socket.create_connection(("127.0.0.1", served.port), PATIENCE_S)
            for at in ("/stream/odds", path):
                key = f"Host: x\r\nX-API-Key: {served.key('sharp')}\r\n"
                line.sendall(f"GET {BASE}{at} HTTP/1.1\r\n{key}{headers if at == path else ''}\r\n".encode())
            wait_for(lambda: served.node.limits.streams("account-sharp") == 1)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
            line.close()
            wait_for(lambda: served.node.limits.streams("account-sharp") == 0)
        beats = other.names.count("heartbeat")
        wait_for(lambda: other.names.count("heartbeat") > beats + 1)
        other.close()


def test_a_large_step_cuts_nobody_off(tmp_path: Path) -> None:
    """What many get at once is no sign of a slow reader, however large it is."""
    with serving(tmp_path, behind=20_000, limit=60_000, send_buffer=8192) as served:
        now = moment()
        served.step(board(1.9), now)
        client = Client(served.port, "/stream/odds", served.key("enterprise"))
        assert client.ready.wait(PATIENCE_S)
        served.step(board(1.95), now + timedelta(seconds=1))
        moved = heard(client, "odds:update")
        assert moved["count"] == 2 * len(LINES)
        wait_for(lambda: {row["odds_decimal"] for row in client.odds.values()} == {1.95})
        assert served.hub.lines.cuts == 0
        client.close()
