"""What stands between: proxies that hold answers back, connections that are used again, clients that vanish."""

import asyncio
import contextlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.stream_running import PATIENCE_S, Chunks, Client, Served, heard, moment, price, wait_for

from oddsengine_service.accounts.keys import KeyTerms
from oddsengine_service.http.request import BASE

HOLDS = 1 << 16  # bytes that a proxy gathers before it passes them on


SERVED = {"stalled": 7.0, "send_buffer": 40_000}


class Plain:
    """A reverse proxy that gathers what comes, unless the answer asks it not to."""

    def __init__(self, upstream: int, _: Path) -> None:
        self._upstream = upstream
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._loop.call_soon(self._ready.set)
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(task)
        self._loop.run_until_complete(asyncio.sleep(0))  # connections are closed at the next turn of the loop
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        there, out = await asyncio.open_connection("127.0.0.1", self._upstream)
        out.write(head)
        passing = asyncio.ensure_future(self._forward(there, writer))
        leaving = asyncio.ensure_future(reader.read())  # until the client goes
        try:
            await asyncio.wait([passing, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            passing.cancel()
            leaving.cancel()
            for each in (out, writer):
                each.close()

    async def _forward(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await there.readuntil(b"\r\n\r\n")).lower()
        writer.write(head)
        at_once = b"x-accel-buffering: no\r\n" in head and b"no-transform" in head
        held = b""
        while data := await there.read(HOLDS):
            held += data
            if at_once or len(held) >= HOLDS:
                writer.write(held)
                await writer.drain()
                held = b""
        writer.write(held)
        await writer.drain()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)


_NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  gzip on; gzip_proxied any;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://127.0.0.1:{upstream}; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


class Nginx:
    """The real thing, with its buffering as it is by default."""

    def __init__(self, upstream: int, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        file = folder / "nginx.conf"
        file.write_text(_NGINX.format(folder=folder, port=self.port, upstream=upstream))
        self._process = subprocess.Popen(
            [_nginx, "-p", folder, "-c", file, "-e", folder / "errors"], stdout=subprocess.DEVNULL
        )
        wait_for(self._listens)

    def _listens(self) -> bool:
        assert self._process.poll() is None
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)


_nginx: Any = shutil.which("nginx")
PROXIES: list[type[Any]] = [Plain, *([Nginx] if _nginx else [])]


@pytest.mark.parametrize("made", PROXIES)
def test_events_pass_through_a_proxy_one_by_one(
    served: Served, tmp_path: Path, made: Callable[[int, Path], Any]
) -> None:
    proxy = made(served.port, tmp_path)
    try:
        now = moment()
        served.step([price("proxied", "fanduel", side, 1.9) for side in ("Home", "Away")], now)
        client = Client(proxy.port, "/stream/events/proxied", served.key("sharp"))
        assert client.ready.wait(PATIENCE_S)
        assert len(client.odds) == 2
        for tick in range(1, 6):  # each arrives before the next is made
            served.step([price("proxied", "fanduel", "Home", 1.9 - tick / 20)], now + timedelta(seconds=tick))
            assert heard(client, "odds:update", tick)["odds"][0]["odds_decimal"] == pytest.approx(1.9 - tick / 20)
        heard(client, "heartbeat")
        assert b"chunked" in client.head.lower()
        limits = served.node.limits
        assert limits.streams("account-sharp") == 1
        client.close()
        wait_for(lambda: limits.streams("account-sharp") == 0)
    finally:
        proxy.close()


def test_a_connection_is_used_again(served: Served) -> None:
    """A request, a stream until its key is revoked, and a request again: on one connection."""
    made = served.keys.create("account-again", KeyTerms("sharp", streaming=True))
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S) as line:

        def ask(path: str, key: str) -> None:
            line.sendall(f"GET {BASE}{path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n\r\n".encode())

        def read(until: Callable[[bytes], Any]) -> bytes:
            data = b""
            while not until(data):
                part = line.recv(65536)
                assert part, data
                data += part
            return data

        def whole(data: bytes) -> bool:
            head, end, body = data.partition(b"\r\n\r\n")
            sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
            return bool(end) and len(body) == int(sizes[0].split(b":")[1])

        ask("/sports", made.key)
        assert read(whole).startswith(b"HTTP/1.1 200")
        ask("/stream/odds?event=none", made.key)
        data = read(lambda data: b"snapshot:complete" in data)
        served.keys.revoke(made.record.id)
        data += read(lambda data: data.endswith(b"0\r\n\r\n"))
        head, _, body = data.partition(b"\r\n\r\n")
        assert b"connection: close" not in head.lower()
        chunks = Chunks()
        assert b"event: connected" in chunks.feed(body)
        assert chunks.ended
        ask("/sports", served.key("sharp"))
        assert read(whole).startswith(b"HTTP/1.1 200")


def test_the_kernel_holds_little_for_a_stream(served: Served) -> None:
    client = Client(served.port, "/stream/odds", served.key("sharp"), event="none")
    assert client.ready.wait(PATIENCE_S)
    (subscriber,) = served.hub.subscribers.open
    line = subscriber.connection.transport.get_extra_info("socket")
    assert line.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (40_000, 80_000)  # Linux counts its own needs too
    client.close()
    assert client.ended.wait(PATIENCE_S)
