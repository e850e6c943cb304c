"""Unknown callers: many connections, many addresses, pages asked for again and again."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

import httpx2
import pytest
from support.forking import CLI, DEVNULL, PIPE, SMALL_DEMO, python
from support.logs import logged
from support.service_running import PATIENCE_S, Running, running, until

from oddsengine_service.errors import Problem
from oddsengine_service.http.connections import Connections


def status(port: int) -> int:
    one = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        one.request("GET", "/api/v1/health")
        return one.getresponse().status
    finally:
        one.close()


# ---- connections ----


def test_an_address_has_so_many_connections(tmp_path: Path) -> None:
    with running(tmp_path, events=2, connections="5") as server, contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S))
        until(lambda: server.service.connections._total == 5, "five connections")
        got = b""
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as refused:
            while part := refused.recv(1 << 16):
                got += part
        assert got.startswith(b"HTTP/1.1 429 ")
        assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "rate_limited"
        stack.close()
        until(lambda: server.service.connections._total == 0, "none")
        assert status(server.port) == 200
        said = [json.loads(line) for line in server.log_text().splitlines()]
        (line,) = [line for line in said if line["event"] == "connections refused"]
        assert (line["address"], line["count"]) == ("127.0.0.1", 1)


def test_bounds_of_connections() -> None:
    now = [0.0]
    some = Connections(trusted=["10.0.0.1"], files=256, clock=lambda: now[0])
    assert (some.most, some.each) == (160, 40)
    with logged() as found:
        for at in range(40):
            some.enter(f"2001:db8::{at:x}")
        for _ in range(30):
            with pytest.raises(Problem) as refused:
                some.enter("2001:db8::ffff")
            assert refused.value.status == 429
        some.enter("2001:db8:1::1")
        for _ in range(160 - 41):
            some.enter("10.0.0.1")
        with pytest.raises(Problem) as refused:
            some.enter("203.0.113.7")
        assert refused.value.status == 503
        now[0] = 11.0
        with pytest.raises(Problem):
            some.enter("203.0.113.7")
        some.leave("10.0.0.1")
        some.enter("203.0.113.7")
    assert [(line["address"], line["count"]) for line in found.lines] == [("2001:db8::ffff", 1), ("203.0.113.7", 31)]


# ---- responses that nobody reads ----


class Idler:
    """A client that asks for a long page, and reads it when told to."""

    def __init__(self, server: Running, tier: str, address: str = "127.0.0.1", page: int = 0) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self.socket.settimeout(PATIENCE_S)
        self.socket.bind((address, 0))
        self.socket.connect(("127.0.0.1", server.port))
        path = f"/api/v1/odds?group_by=event&limit=200&min_odds={-90_000 - page}"
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: demo_{tier}\r\n\r\n".encode())

    def __enter__(self) -> "Idler":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def read(self, size: int = -1) -> int:
        """Read some bytes, or all until the connection is closed. Returns how many there were."""
        count = 0
        with contextlib.suppress(ConnectionResetError):
            while size < 0 or count < size:
                part = len(self.socket.recv(1 << 12))
                if not part:
                    break
                count += part
        return count


def accounts(server: Running) -> list[str]:
    """The account of each response that the server holds and has looked at, by address."""
    written = tuple(server.service.connections.written)
    payers = sorted(each.payers for each in written if each.left >= 0 and each.transport.get_write_buffer_size())
    return [account for _, account in payers]


def test_a_response_that_is_not_read_is_given_up(tmp_path: Path) -> None:
    with running(tmp_path, stalled="2") as server:
        with server.client("pro") as client:
            size = len(client.get("/odds?group_by=event&limit=200&min_odds=-90000").content)
        with Idler(server, "pro") as idle, Idler(server, "pro", page=1) as slow:
            until(lambda: len(accounts(server)) == 2, "two responses unread")
            end = time.monotonic() + 4.0
            while time.monotonic() < end:
                assert slow.read(1) > 0
                time.sleep(0.02)
            until(lambda: len(accounts(server)) == 1, "one given up")
            assert idle.read() < size
            slow.socket.sendall(b"GET /api/v1/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert slow.read() > size / 2
            until(lambda: not server.service.connections.written)
        said = [json.loads(line) for line in server.log_text().splitlines()]
        (line,) = [line for line in said if line["event"] == "unread response closed"]
        assert (line["address"], line["account"], line["reason"]) == ("127.0.0.1", "demo_pro", "nothing read for 2 s")


def test_an_account_and_an_address_leave_so_much_unread(tmp_path: Path) -> None:
    """The last connection of each remains."""
    with running(tmp_path, stalled="600", unread_bytes="1000") as server, contextlib.ExitStack() as stack:
        for page, at in enumerate(("127.0.0.1", "127.0.0.2", "127.0.0.2")):
            stack.enter_context(Idler(server, "pro", at, page))
        stack.enter_context(Idler(server, "enterprise", "127.0.0.3"))
        until(lambda: accounts(server) == ["demo_pro", "demo_enterprise"], "one of each account")
        stack.enter_context(Idler(server, "sharp", "127.0.0.3"))
        until(lambda: accounts(server) == ["demo_pro", "demo_sharp"], "one of each address")


def test_few_files_and_many_sockets_that_say_little(tmp_path: Path) -> None:
    """Those of one address leave room for everybody else; the node says so, and does not spin."""
    few = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); {SMALL_DEMO}"
    process = python(few, "serve", "--demo", "--port", "0", cwd=tmp_path, stdout=PIPE, stderr=PIPE)
    try:
        assert process.stdout is not None
        origin = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert origin
        port = int(origin[1])
        until(lambda: status(port) == 200, "ready")
        with contextlib.ExitStack() as stack:
            for _ in range(400):
                one = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
                with contextlib.suppress(OSError):
                    one.sendall(b"GET /api/v1/health HTTP/1.1\r\n")
            other = socket.create_connection(("127.0.0.1", port), PATIENCE_S, source_address=("127.0.0.2", 0))
            with other:
                other.sendall(b"GET /api/v1/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                assert other.recv(100).startswith(b"HTTP/1.1 200 ")
            assert len(os.listdir(f"/proc/{process.pid}/fd")) < 200
        until(lambda: status(port) == 200, "room")
    finally:
        process.send_signal(signal.SIGTERM)
        _, logged = process.communicate(timeout=PATIENCE_S)
    lines = [json.loads(line) for line in logged.splitlines()]
    assert 1 <= sum(line["event"] == "connections refused" for line in lines) <= 10
    assert "Traceback" not in logged


# ---- who is meant by an address ----


def test_a_forwarded_address_is_believed_of_proxies_only(tmp_path: Path) -> None:
    """Twelve requests a minute and address, whatever a caller writes into the header."""

    def answers(port: int, headers: list[list[tuple[str, str]]]) -> list[int]:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=PATIENCE_S) as client:
            return [client.get("/sports", headers=each).status_code for each in headers]

    name = "X-Forwarded-For"
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    with running(tmp_path / "a", events=2) as server:
        assert answers(server.port, [[(name, f"198.51.100.{n}")] for n in range(14)])[-2:] == [429, 429]
    with running(tmp_path / "b", events=2, trusted="127.0.0.1,10.0.0.2") as server:
        for each in (
            [[(name, f"198.51.100.{n}, 203.0.113.1")] for n in range(14)],  # what the caller wrote itself
            [[(name, f"198.51.100.{n}"), (name, "203.0.113.2, 10.0.0.2")] for n in range(14)],  # two proxies
            [[(name, f"203.0.113.3:{n + 1000}")] for n in range(14)],  # with a port
            [[(name, f"2001:db8:7::{n:x}")] for n in range(14)],  # one network
            [[(name, f"[2001:DB8:8:0:{n:x}::1]:{n + 1}")] for n in range(14)],
            [[(name, ("::ffff:", "")[n % 2] + "203.0.113.5")] for n in range(14)],
            [[(name, f"nobody-{n}")] for n in range(14)],
        ):
            assert answers(server.port, each) == [200] * 12 + [429] * 2, each[0]
        assert answers(server.port, [[(name, f"203.0.113.{100 + n}")] for n in range(14)]) == [200] * 14


# ---- the description ----


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
def test_the_description_is_made_once_and_counted(service: Running, path: str) -> None:
    service.clock.pass_minute()
    made = []
    with httpx2.Client(base_url=service.origin, timeout=PATIENCE_S) as client:
        first = client.get(path)
        assert first.status_code == 200
        etag = first.headers["etag"]
        again = client.get(path, headers={"If-None-Match": etag})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert client.get(path, headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"
        made = [client.get(path).status_code for _ in range(11)]
        refused = client.get(path)
    assert made == [200] * 9 + [429] * 2
    assert refused.json()["error"]["code"] == "rate_limited"
    assert int(refused.headers["retry-after"]) >= 1
    service.clock.pass_minute()
    begun = time.monotonic()
    assert httpx2.head(service.origin + path, timeout=PATIENCE_S).content == b""
    assert time.monotonic() - begun < PATIENCE_S / 10


def test_health_names_no_address(tmp_path: Path) -> None:
    (tmp_path / "oddsengine.toml").write_text(
        '[service]\nport = 0\n[feeds.main]\nkind = "interface"\nurl = "http://127.0.0.1:1/api/v1"\n'
    )
    process = python(CLI, "serve", cwd=tmp_path, stdout=PIPE, stderr=DEVNULL)
    try:
        assert process.stdout is not None
        origin = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert origin
        answer = httpx2.get(f"{origin[0]}/api/v1/health", timeout=PATIENCE_S)

        def ready() -> bool:
            nonlocal answer
            answer = httpx2.get(f"{origin[0]}/api/v1/health", timeout=PATIENCE_S)
            return "starting" not in answer.text

        until(ready, "ready")
        assert "127.0.0.1" not in answer.text
        assert "/api/v1" not in answer.text
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


if sys.platform == "win32":
    pytest.skip("files are bound otherwise there", allow_module_level=True)
