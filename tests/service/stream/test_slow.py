"""Readers that are slow get every event up to a bound, and are cut off beyond it; those that stop are cut off too."""

import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.effort import less, some
from support.socket_running import SocketClient
from support.stream_running import PATIENCE_S, Client, Served, heard, lasting, moment, price, total, wait_for

from oddsengine_service.http.request import BASE
from oddsengine_service.stream.connection import ReaderLimits


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Served]:
    served = Served(folder, **settings)
    try:
        yield served
    finally:
        served.stop()
        assert "failure" not in served.logged.text, served.logged.text


LINES = [100.5 + at for at in range(300)]
MOST = less(ReaderLimits().reader_bytes, 1 << 20)  # bytes that may be pending for a reader


def board(odds: float, event: str = "slow", book: str = "fanduel") -> list[dict[str, Any]]:
    return [total(event, book, side, line, odds) for line in LINES for side in ("Over", "Under")]


def in_rest(served: Served, **query: Any) -> dict[str, dict[str, Any]]:
    rows = served.rows("/odds", "enterprise", query)
    return {id_: lasting(row) for id_, row in rows.items() if row["is_active"]}


def plain(rows: dict[str, dict[str, Any]], like: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows with the fields that others have."""
    names = set(next(iter(like.values()))) if like else set()
    return {id_: {name: row[name] for name in names} for id_, row in rows.items()}


@pytest.fixture(params=["sse", "websocket"])
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


def follow(served: Served, kind: str, tier: str, before: Any = None, **query: Any) -> Any:
    """A client that has its snapshot, or what it missed."""
    client: Any
    if kind == "websocket":
        client = SocketClient(served, tier, channels="odds", before=before, room=4096, **query)
    else:
        headers = {"Last-Event-ID": before.last} if before is not None else {}
        client = Client(
            served.port, "/stream/odds", served.key(tier), headers=headers, before=before, room=4096, resume="true",
            **query,
        )  # fmt: skip
    assert client.ready.wait(PATIENCE_S)
    assert not client.ended.is_set(), client.faults
    return client


def pending(served: Served, tier: str) -> list[int]:
    """Bytes pending for the readers of an account."""
    return [each.connection.size for each in tuple(served.hub.subscribers.open) if each.account == f"account-{tier}"]


class Moving:
    """A board whose prices all change with every step, seen by a client that keeps up."""

    def __init__(self, served: Served) -> None:
        self.served, self.tick, self.begun = served, 0, moment()
        self.step()
        self.prompt = follow(served, "sse", "enterprise")

    def step(self) -> None:
        """Some leave, others come back, and the rest has other prices."""
        self.tick += 1
        rows = [*board(1.5 + self.tick % 90 / 100.0), *board(1.5 + self.tick % 80 / 100.0, book="betmgm")[::2]]
        if self.tick % 5 == 0:
            rows = [row for at, row in enumerate(rows) if (at + self.tick) % 7]
        self.served.step(rows, self.begun + timedelta(seconds=self.tick), complete=["fanduel", "betmgm"])

    def until(self, true: Callable[[], Any]) -> None:
        """Step until something holds; whoever keeps up has one step before the next."""
        delivery = self.served.hub.subscribers.delivery
        while not true():
            assert self.tick < 500, "it did not come to be"
            self.step()
            wait_for(lambda: delivery.number == self.served.engine.number and not delivery._queue)
            wait_for(lambda: not any(pending(self.served, "enterprise")))

    def checked(self) -> None:
        """Wait until slow readers were looked at three times, while few prices change."""
        checks, seen = self.served.hub.subscribers.checks, set[float]()

        def looked() -> bool:
            seen.add(checks.slow_at)
            now = self.begun + timedelta(seconds=self.tick, milliseconds=len(seen))
            self.served.step([price("another", "fanduel", "Home", 1.5 + time.monotonic() % 1.0)], now)
            return len(seen) > 3

        wait_for(looked, 60.0)

    def until_cut(self) -> None:
        """Step until a reader is cut off, with time to look at slow readers after every step."""
        for _ in range(20):
            if not self.served.hub.subscribers.checks.cuts:
                self.until(lambda at=self.tick: self.tick > at)  # type: ignore[misc]
                self.checked()

    def agree(self, *clients: Any) -> None:
        """Wait until clients hold what the list has."""
        for client in (self.prompt, *clients):
            want = in_rest(
                self.served, **{name: client.query[name] for name in ("sportsbook",) if name in client.query}
            )
            wait_for(lambda c=client, w=want: plain(c.held(), w) == w or c.faults, 60.0)  # type: ignore[misc]
            assert not client.faults, client.faults
            assert len(want) > 50


@pytest.mark.parametrize("kind", some(["websocket", "sse"], 1))
def test_a_reader_that_pauses_gets_every_event(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, stalled=1000.0, send_buffer=8192, reader_bytes=MOST) as served:
        moving = Moving(served)
        steady, paused = follow(served, kind, "pro"), follow(served, kind, "sharp")
        paused.reading.clear()
        moving.until(lambda: sum(pending(served, "sharp")) > 0.6 * MOST)
        moving.checked()
        assert served.hub.subscribers.checks.cuts == 0
        assert len(paused.names) < len(steady.names) / 2
        paused.reading.set()
        moving.agree(steady, paused)
        wait_for(lambda: paused.names.count("odds:update") == steady.names.count("odds:update"))
        if kind == "sse":
            assert paused.ids == sorted(paused.ids)
            # heartbeats name the update that a client holds
            wait_for(lambda: paused.observations[-1].prices == served.engine.number)
        for client in (steady, paused):
            client.close()


def test_the_bounds_are_those_of_the_docs() -> None:
    most = ReaderLimits()
    assert (most.reader_bytes, most.account_bytes, most.node_bytes) == (4 << 20, 16 << 20, 256 << 20)


def test_a_reader_with_too_much_pending_is_cut_off_and_resumes(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, stalled=1000.0, send_buffer=8192, reader_bytes=MOST) as served:
        moving = Moving(served)
        subscribers = served.hub.subscribers
        steady, slow = follow(served, kind, "pro"), follow(served, kind, "sharp")
        slow.reading.clear()
        moving.until(lambda: sum(pending(served, "sharp")) > MOST - (600 << 10))
        moving.checked()
        assert subscribers.checks.cuts == 0
        moving.until_cut()
        wait_for(lambda: served.node.limits.streams("account-sharp") == 0)
        assert (subscribers.checks.cuts, subscribers.streams) == (1, 2)
        assert '"the client is too slow"' in served.logged.text
        assert MOST < int(re.findall(r'"waiting":(\d+)', served.logged.text)[0]) < 2 * MOST
        slow.reading.set()
        assert slow.ended.wait(PATIENCE_S)
        assert not slow.faults
        again = follow(served, kind, "sharp", slow)
        assert again.resumed
        moving.step()
        moving.agree(steady, again)
        for client in (steady, again):
            client.close()


def test_the_websockets_of_another_server_have_the_same_bounds(tmp_path: Path) -> None:
    """What counts is what that server has not accepted."""
    with serving(tmp_path, plain=True, stalled=1000.0, reader_bytes=MOST) as served:
        moving = Moving(served)
        subscribers = served.hub.subscribers
        steady, paused = follow(served, "websocket", "pro"), follow(served, "websocket", "sharp")
        paused.reading.clear()
        moving.until(lambda: sum(pending(served, "sharp")) > 0.6 * MOST)
        moving.checked()
        assert subscribers.checks.cuts == 0
        paused.reading.set()
        moving.agree(steady, paused)
        wait_for(lambda: paused.names.count("odds:update") == steady.names.count("odds:update"))
        paused.reading.clear()
        moving.until(lambda: subscribers.checks.cuts)
        wait_for(lambda: served.node.limits.streams("account-sharp") == 0)
        assert (subscribers.checks.cuts, subscribers.streams) == (1, 2)
        paused.reading.set()
        assert paused.ended.wait(PATIENCE_S)
        again = follow(served, "websocket", "sharp", paused)
        assert again.resumed
        moving.agree(steady, again)
        for client in (steady, again):
            client.close()


BOTH = [(kind, other) for kind in ("sse", "websocket") for other in ("websocket", "sse")]


@pytest.mark.parametrize(("kind", "other"), some(BOTH, 2))
def test_the_largest_reader_of_an_account_with_too_much_pending_is_cut_off(
    tmp_path: Path, kind: str, other: str
) -> None:
    """Not one of another account, though it has as much pending."""
    with serving(tmp_path, stalled=1000.0, send_buffer=8192, reader_bytes=1 << 30, account_bytes=4 << 20) as served:
        moving = Moving(served)
        subscribers = served.hub.subscribers
        largest, alone = follow(served, kind, "sharp"), follow(served, kind, "pro")
        small = [follow(served, other, "sharp", sportsbook="betmgm") for _ in range(2)]
        for client in (largest, alone, *small):
            client.reading.clear()
        moving.until(lambda: sum(pending(served, "sharp")) > 4 << 20 or subscribers.checks.cuts)
        moving.until_cut()
        wait_for(lambda: len(pending(served, "sharp")) == 2)
        assert (subscribers.checks.cuts, subscribers.streams) == (1, 4)
        assert '"the clients of the account are too slow"' in served.logged.text
        for client in (largest, alone, *small):
            client.reading.set()
        assert largest.ended.wait(PATIENCE_S)
        again = follow(served, kind, "sharp", largest)
        assert again.resumed
        moving.step()
        moving.agree(alone, again, *small)
        assert subscribers.checks.cuts == 1
        for client in (alone, again, *small):
            client.close()


@pytest.mark.parametrize("kind", some(["sse", "websocket"], 1))
def test_the_largest_reader_of_a_node_with_too_much_pending_is_cut_off(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, stalled=1000.0, send_buffer=8192, node_bytes=less(2 << 20, 1 << 20)) as served:
        moving = Moving(served)
        subscribers = served.hub.subscribers
        largest, small = follow(served, kind, "sharp"), follow(served, kind, "pro", sportsbook="betmgm")
        for client in (largest, small):
            client.reading.clear()
        moving.until(lambda: sum(pending(served, "sharp")) > less(2 << 20, 1 << 20) or subscribers.checks.cuts)
        moving.until_cut()
        wait_for(lambda: subscribers.streams == 2)
        assert (len(pending(served, "sharp")), len(pending(served, "pro"))) == (0, 1)
        assert '"the clients of the node are too slow"' in served.logged.text
        for client in (largest, small):
            client.reading.set()
        moving.agree(small)
        assert subscribers.checks.cuts == 1
        small.close()


@pytest.mark.exhaustive
def test_a_steady_reader_is_not_cut_off_however_slow(tmp_path: Path) -> None:
    """Its kernel has no room most of the time, and reports progress in steps, but it reads all the time."""
    with serving(tmp_path, stalled=2.0, send_buffer=8192) as served:
        served.step(board(1.9), moment())
        slow = Client(served.port, "/stream/odds", served.key("sharp"), bite=1024, pause=0.05, room=4096)
        assert slow.ready.wait(3 * PATIENCE_S)
        assert set(slow.odds) == set(in_rest(served))
        assert served.hub.subscribers.checks.cuts == 0
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
    [{"stalled": 1.0, "send_buffer": 8192}, {"reader_bytes": 60_000, "send_buffer": 8192}],
    ids=["takes nothing", "has too much pending"],
)
def test_a_reader_that_stops_is_cut_off_and_nobody_else(tmp_path: Path, bounds: dict[str, Any]) -> None:
    with serving(tmp_path, **bounds) as served:
        now = moment()
        served.step(board(1.9), now)
        good = [Client(served.port, "/stream/odds", served.key("enterprise")) for _ in range(3)]
        assert all(client.ready.wait(PATIENCE_S) for client in good)
        line = stopped(served, "sharp")
        subscribers, limits = served.hub.subscribers, served.node.limits
        for tick in range(1, 400):
            served.step(board(1.62 + tick % 35 / 100.0), now + timedelta(milliseconds=10 * tick))
            wait_for(lambda n=tick: all(client.names.count("odds:update") >= n for client in good))  # type: ignore[misc]
            if limits.streams("account-sharp") == 0:
                break
        wait_for(lambda: subscribers.checks.cuts == 1)
        wait_for(lambda: limits.streams("account-sharp") == 0)
        assert subscribers.streams == 3
        served.step(board(3.0), now + timedelta(seconds=60))
        wait_for(lambda: all({row["odds_decimal"] for row in c.odds.values()} == {3.0} for c in good))
        assert not any(client.faults for client in good)
        assert '"stream cut off"' in served.logged.text
        assert served.key("sharp") not in served.logged.text
        line.close()
    # Those who still listened were told that it ends.
    assert all(client.ended.wait(PATIENCE_S) and client.clean for client in good)


def test_a_websocket_of_another_server_is_cut_off_if_it_accepts_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, plain=True, stalled=1.0) as served:
        moving = Moving(served)
        slow = follow(served, "websocket", "sharp")
        slow.reading.clear()
        # Bytes may be pending for a moment only: keep going until a step leaves as much as the sockets cannot hold.
        moving.until(lambda: served.hub.subscribers.checks.cuts or sum(pending(served, "sharp")) > 500_000)
        wait_for(lambda: served.hub.subscribers.checks.cuts == 1)
        wait_for(lambda: served.node.limits.streams("account-sharp") == 0)
        assert '"the client is not reading"' in served.logged.text
        slow.reading.set()
        assert slow.ended.wait(PATIENCE_S)


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
    least = {"reader_bytes": 20_000, "account_bytes": 20_000, "node_bytes": 20_000}
    with serving(tmp_path, send_buffer=8192, **least) as served:
        now = moment()
        served.step(board(1.9), now)
        client = Client(served.port, "/stream/odds", served.key("enterprise"))
        assert client.ready.wait(PATIENCE_S)
        served.step(board(1.95), now + timedelta(seconds=1))
        moved = heard(client, "odds:update")
        assert moved["count"] == 2 * len(LINES)
        wait_for(lambda: {row["odds_decimal"] for row in client.odds.values()} == {1.95})
        assert served.hub.subscribers.checks.cuts == 0
        client.close()
