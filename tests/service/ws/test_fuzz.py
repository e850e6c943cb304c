"""Whatever a client sends as bytes or messages: the node stays well, and others are served."""

import json
import os
import socket
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.socket_running import SocketClient, told
from support.stream_running import PATIENCE_S, Served, moment, price, wait_for
from websockets.exceptions import ConnectionClosed

from oddsengine_service.http.request import BASE

EXAMPLES = 30
CHANNELS = st.lists(st.sampled_from(["odds", "ev", "arbitrage", "middles", "low_hold", "news", ""]), max_size=4)
TEXTS = st.text(max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FILTERS = st.dictionaries(
    st.sampled_from(["sports", "sportsbooks", "leagues", "markets", "eventIds", "min_ev", "max_odds", "state", "x"]),
    VALUES | st.lists(TEXTS, max_size=3), max_size=4,
)  # fmt: skip
MESSAGES = st.one_of(
    st.text(max_size=200),
    st.binary(max_size=200),
    VALUES.map(json.dumps),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["subscribe", "ping", "auth", "x"])},
        optional={"channels": CHANNELS | VALUES, "filters": FILTERS | VALUES},
    ).map(json.dumps),
)


@pytest.fixture(scope="module")
def served(served: Served) -> Served:
    served.step([price("calm", "betmgm", "Home", 1.9), price("calm", "betmgm", "Away", 1.9)], moment())
    return served


@pytest.fixture(scope="module")
def other(served: Served) -> SocketClient:
    client = SocketClient(served, "enterprise", channels="odds", event_id="calm")
    assert client.ready.wait(PATIENCE_S)
    return client


def frame(first: int, payload: bytes, *, masked: bool = True, claimed: int | None = None) -> bytes:
    """One frame, well formed or not."""
    size = len(payload) if claimed is None else claimed
    mask = 0x80 if masked else 0
    head = bytes((first, mask | size)) if size < 126 else struct.pack("!BBH", first, mask | 126, size & 0xFFFF)
    key = os.urandom(4) if masked else b""
    return head + key + bytes(b ^ key[i % 4] if masked else b for i, b in enumerate(payload))


FRAMES = st.lists(
    st.builds(
        frame, st.integers(0, 255), st.binary(max_size=150), masked=st.booleans(),
        claimed=st.none() | st.integers(0, 65_535),
    ) | st.binary(max_size=60),
    min_size=1, max_size=6,
)  # fmt: skip


def handshake(served: Served) -> socket.socket:
    """A connection that has asked for a WebSocket."""
    line = socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S)
    line.sendall(
        f"GET {BASE}/ws?channels=odds&event_id=none&api_key={served.key('sharp')} HTTP/1.1\r\nHost: x\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    return line


def upgraded(served: Served) -> socket.socket:
    line = handshake(served)
    data = b""
    while b"snapshot:complete" not in data:
        data += line.recv(65_536)
    return line


def test_malformed_frames_cost_others_nothing(served: Served, other: SocketClient) -> None:
    @given(frames=FRAMES)
    @settings(max_examples=EXAMPLES, deadline=None)
    def send(frames: list[bytes]) -> None:
        with upgraded(served) as line:
            try:
                for each in frames:
                    line.sendall(each)
                line.shutdown(socket.SHUT_WR)
                while line.recv(65_536):
                    pass
            except OSError:
                pass

    send()
    calm(other)


def test_a_client_that_is_gone_before_it_is_served(served: Served, other: SocketClient) -> None:
    """Its connection is closed while the server still makes its subscription."""
    for _ in range(20):
        with handshake(served) as line:
            line.settimeout(5.0)
            assert line.recv(200).startswith(b"HTTP/1.1 101")
            try:
                line.sendall(b"\xff" * 40)
                while line.recv(65_536):
                    pass
            except OSError:
                pass
    calm(other)
    assert "failure" not in served.logged.text


def test_whatever_is_said_is_answered(served: Served, other: SocketClient) -> None:
    @given(messages=st.lists(MESSAGES, min_size=1, max_size=8))
    @settings(max_examples=EXAMPLES, deadline=None)
    def say(messages: list[str | bytes]) -> None:
        client = SocketClient(served, "enterprise", channels="odds", event_id="calm")
        try:
            for each in messages:
                client.socket.send(each)
            client.say("ping")
            told(client, "pong")
        except ConnectionClosed:
            raise AssertionError(client.code) from None
        client.close()
        assert client.ended.wait(PATIENCE_S)

    say()
    calm(other)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("POST /api/v1/ws HTTP/1.1", b"404 405 401"),
        ("GET /api/v1/ws HTTP/1.0", b"426 401"),
        ("GET /api/v1/markets HTTP/1.1", b"401"),
        (f"GET /api/v1/ws?x={'y' * 20_000} HTTP/1.1", b"400"),
    ],
)
def test_handshakes_that_are_none(served: Served, other: SocketClient, line: str, status: bytes) -> None:
    for more in ("", "Sec-WebSocket-Version: 13\r\n", "Sec-WebSocket-Version: 7\r\nSec-WebSocket-Key: x\r\n"):
        with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S) as client:
            client.sendall(f"{line}\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{more}\r\n".encode())
            answer = b""
            try:
                while data := client.recv(65_536):
                    answer += data
            except ConnectionError:
                pass
        assert answer.split()[1] in status.split(), answer
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"], answer
    calm(other)


@pytest.mark.parametrize(
    ("more", "status", "code", "why"),
    [
        ("", b"400", "validation_error", "missing Sec-WebSocket-Key header"),
        ("Sec-WebSocket-Key: x\r\n", b"400", "validation_error", "invalid Sec-WebSocket-Key header: x"),
    ],
)
def test_a_failed_handshake_is_an_error_like_all_others(
    served: Served, more: str, status: bytes, code: str, why: str
) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S) as client:
        client.sendall(
            f"GET {BASE}/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\n{more}\r\n".encode()
        )
        answer = b""
        while data := client.recv(65_536):
            answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == status
    assert b"application/json" in head
    error = json.loads(body)["error"]
    assert (error["code"], error["docs"]) == (code, f"http://x/docs#{code}")
    assert error["message"].startswith(f"invalid WebSocket handshake: {why}")


def test_a_flood_of_pings_is_cut_off(served: Served, other: SocketClient) -> None:
    before = served.app.connections._total
    with upgraded(served) as line:
        line.settimeout(PATIENCE_S)
        try:
            while True:
                line.sendall(frame(0x89, b"x" * 100) * 50)
        except OSError:
            pass
    calm(other)
    wait_for(lambda: served.app.connections._total <= before)


def calm(other: SocketClient) -> None:
    """Somebody else is still served."""
    beats = other.names.count("heartbeat")
    wait_for(lambda: other.names.count("heartbeat") > beats or bool(other.faults) or other.ended.is_set())
    assert not other.faults
    assert not other.ended.is_set()
