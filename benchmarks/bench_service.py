"""Requests a second of a node, beside the same server sending the same bytes from memory.

    python benchmarks/bench_service.py [--rows 100000] [--seconds 3] [--rounds 3] [--only 304]

Three processes on two cores: the world; the server that it is played to (uvicorn with the node, whose board stands
still, and under `/fixed/` a bare application that sends back what it was given); and the load, which is this one:
connections that each wait for their answer before they ask again. Each figure is beside its ceiling, the two in turns;
the ratio is the median of the rounds'. One is of rates, the other of the server's processor time per answer, which
other programs on the machine change less. Bodies are not compressed.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvloop
from starlette.routing import Route

from oddsengine.simulate import World
from oddsengine_service.accounts.keys import KeyStore, KeyTerms
from oddsengine_service.api import Api, Methods
from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.request import BASE
from oddsengine_service.monitoring.log import written
from oddsengine_service.server import Server, Service, build
from oddsengine_service.settings import load

ROWS_AN_EVENT = 592  # of the simulator
CONNECTIONS = 16
ACCOUNTS = 4  # a limit of a million a minute each
MOST_RATE = 1_000_000
PART, MOVING = 5_000, 500  # quotes of a step: while the board is filled, and later
TICK_S = 0.25  # of the clock for a second of the world: 16,000 quotes and 5,600 changes a second with 100,000 rows


# ---- the world ----


def tell(rows: int) -> None:
    """Play a world of so many prices into the output, each tick in parts."""
    world = World(7, events=max(1, rows // ROWS_AN_EVENT), live=0.3)
    for number, batch in enumerate(world.run(86_400.0)):
        size = MOVING if number else PART
        for at in range(0, max(1, len(batch.quotes)), max(1, size)):
            part = batch.quotes[at : at + size]
            last = at + size >= len(batch.quotes)
            more = {"events": batch.events} if last else {}
            body = msgspec.msgpack.encode((part, batch.now, more))
            sys.stdout.buffer.write(len(body).to_bytes(4, "big") + body)
        sys.stdout.buffer.flush()


def told(rows: int) -> Iterator[tuple[list[dict[str, Any]], datetime, dict[str, Any]]]:
    """A world that is played in a process of its own, so that the server's memory is the server's."""
    command = [sys.executable, __file__, "--world", "--rows", str(rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as world:
        assert world.stdout is not None
        try:
            while size := world.stdout.read(4):
                quotes, now, more = msgspec.msgpack.decode(world.stdout.read(int.from_bytes(size, "big")))
                yield quotes, now.to_datetime() if hasattr(now, "to_datetime") else now, more
        finally:
            world.kill()


# ---- the server ----


def route(api: Api, endpoint: Endpoint) -> Route:
    """The route of one more endpoint."""
    methods = Methods(api)
    methods.endpoints[endpoint.method] = endpoint
    return Route(BASE + endpoint.path, methods)


class Beside:
    """The node, and beside it what was learned: `PUT /fixed/NAME` with an answer's bytes, then `GET` sends them."""

    def __init__(self, service: Service) -> None:
        self._app = service.app
        self._known: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/fixed/"):
            await self._app(scope, receive, send)
        elif scope["method"] == "GET":
            start, body = self._known[scope["path"]]
            await send(start)
            await send(body)
        else:
            answer = b""
            while True:
                message = await receive()
                answer += message["body"]
                if not message["more_body"]:
                    break
            head, _, body_ = answer.partition(b"\r\n\r\n")
            first, *lines = head.split(b"\r\n")
            pairs = [tuple(line.split(b": ", 1)) for line in lines]
            headers = [pair for pair in pairs if pair[0] != b"date"]
            status = int(first.split()[1])
            self._known[scope["path"]] = (
                {"type": "http.response.start", "status": status, "headers": headers},
                {"type": "http.response.body", "body": body_},
            )
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})


def served(rows: int) -> None:
    """Serve until the input ends; what to ask goes to the output."""
    folder = Path(tempfile.mkdtemp())
    environ = {"ODDSENGINE_DATA_FOLDER": str(folder)}
    begun = time.perf_counter()
    with (folder / "log").open("w") as out, written(out):
        service = build(load(None, environ), environ, demonstration=True)
        assert isinstance(service.node.keys, KeyStore)
        terms = KeyTerms("enterprise", rate=MOST_RATE)
        keys = [service.node.keys.create(f"bench{n}", terms).key for n in range(ACCOUNTS)]
        trivial = Endpoint("/_trivial", lambda _: {"success": True}, "Nothing", "Health", dict)
        service.app.router.routes.insert(0, route(service.api, trivial))
        played, moving = threading.Event(), threading.Event()

        def play(served: Service) -> None:
            for quotes, now, more in told(rows):
                while played.is_set() and not moving.is_set():
                    if served.node.closing.wait(0.05):
                        return
                at = time.perf_counter()
                served.node.write(served.node.step, quotes, now, **more).result()
                if more and played.is_set() and served.node.closing.wait(max(0.0, TICK_S - (time.perf_counter() - at))):
                    return
                if more:
                    played.set()

        service._run = play
        origin: list[str] = []
        server = Server(service, "127.0.0.1", 0, origin.append)
        server.config.app = Beside(service)
        running = threading.Thread(target=server.run)
        running.start()
        played.wait()
        size = service.node.engine.size
        facts = {"origin": origin[0], "keys": keys, "rows": size, "ready_s": round(time.perf_counter() - begun, 2)}
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()
        for line in sys.stdin:
            (moving.set if line.strip() == "move" else moving.clear)()
        server.should_exit = True
        running.join()


# ---- the load ----


class Result(NamedTuple):
    rate: float  # answers a second
    p50: float  # ms
    p99: float
    size: int  # bytes of one answer
    cpu: float  # of the server, us an answer


class Asking(asyncio.Protocol):
    """One connection: asks, reads the whole answer, asks again."""

    def __init__(self, following: Callable[[], bytes], spent: list[float], until: float) -> None:
        self._following, self._spent, self._until = following, spent, until
        self._buffer = b""
        self._missing = 0
        self.size = 0
        self.statuses: set[bytes] = set()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._at = time.perf_counter()
        self._transport.write(self._following())

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._buffer += data
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end].lower()
            self.statuses.add(head[9:12])
            at = head.find(b"content-length: ")
            length = int(head[at + 16 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            self.size = end + 4 + length
            self._missing = self.size - len(self._buffer)
            self._buffer = b""
        if not self._missing:
            now = time.perf_counter()
            self._spent.append(now - self._at)
            if now < self._until:
                self._ask()
            else:
                self._transport.close()
                self.done.set_result(None)


def processor_s(pid: int) -> float:
    """Processor time of a process, its threads included; nan where the system does not tell."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return float("nan")
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def loaded(
    port: int, pid: int, requests: Sequence[Sequence[bytes]], seconds: float, expected: bytes
) -> Result:  # fmt: skip
    """Ask for some seconds; each connection has its own requests, in a circle."""
    spent: list[float] = []
    begun, before = time.perf_counter(), processor_s(pid)
    asking = []
    for n in range(CONNECTIONS):
        mine = requests[n % len(requests)]
        place = iter(range(n, 1 << 60, CONNECTIONS))

        def following(mine: Any = mine, place: Any = place) -> Any:
            return mine[next(place) % len(mine)]

        _, one = await asyncio.get_running_loop().create_connection(
            partial(Asking, following, spent, begun + seconds), "127.0.0.1", port
        )
        asking.append(one)
    await asyncio.gather(*(one.done for one in asking))
    elapsed, used = time.perf_counter() - begun, processor_s(pid) - before
    statuses = set().union(*(one.statuses for one in asking))
    assert statuses == {expected}, statuses
    ordered = sorted(spent)
    at = [ordered[int(len(ordered) * share)] * 1e3 for share in (0.5, 0.99)]
    return Result(len(spent) / elapsed, at[0], at[1], asking[0].size, used / len(spent) * 1e6)


async def answer(port: int, request: bytes) -> bytes:
    """One whole answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
    got = await reader.read()
    writer.close()
    return got.replace(b"connection: close\r\n", b"")


def asked(path: str, key: str, more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n{more}\r\n".encode()


SAME = {
    "/odds": "/odds?market=main&limit=50",
    "/odds/best": "/odds/best?market=main&limit=50",
    "/opportunities/ev": "/opportunities/ev?limit=50",
    "/opportunities/arbitrage": "/opportunities/arbitrage?limit=50&min_profit=0",
}
OTHER: dict[str, Callable[[int], str]] = {
    "/odds": lambda n: f"/odds?market=main&limit=50&min_odds=-{1000 + n}",
    "/odds/best": lambda n: f"/odds/best?market=main&limit=50&team=&offset={n % 400}&event=&min={n}",
    "/opportunities/ev": lambda n: f"/opportunities/ev?limit=50&min_ev={n / 1e6:.6f}",
    "/opportunities/arbitrage": lambda n: f"/opportunities/arbitrage?limit=50&min_profit={n / 1e6:.6f}",
}


async def measured(facts: dict[str, Any], process: Any, seconds: float, rounds: int, only: str) -> None:
    port, keys, pid = int(facts["origin"].rpartition(":")[2]), facts["keys"], process.pid
    base = "/api/v1"

    async def beside(name: str, requests: list[list[bytes]], status: bytes = b"200") -> None:
        if only not in name:
            return
        learned = await answer(port, requests[0][0])
        path = f"/fixed/{abs(hash(name))}"
        put = f"PUT {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(learned)}\r\n\r\n".encode()
        await answer(port, put + learned)
        fixed = [[f"GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {keys[0]}\r\n\r\n".encode()]]
        ours, ceiling = [], []
        await loaded(port, pid, requests, 0.3, status)
        for _ in range(rounds):
            ceiling.append(await loaded(port, pid, fixed, seconds, status))
            ours.append(await loaded(port, pid, requests, seconds, status))
        pairs = list(zip(ours, ceiling, strict=True))
        ratio, work = (
            statistics.median(each) for each in ([a.rate / b.rate for a, b in pairs], [b.cpu / a.cpu for a, b in pairs])
        )
        one, two = (statistics.median(r.rate for r in each) for each in (ours, ceiling))
        p50, p99 = (statistics.median(getattr(r, at) for r in ours) for at in ("p50", "p99"))
        sys.stdout.write(
            f"{name:<42}{ours[0].size:>8,} B {one:>9,.0f}/s of {two:>9,.0f}/s  {ratio:>5.2f}"
            f"   CPU {statistics.median(a.cpu for a in ours):6.1f} us {work:>5.2f}"
            f"   p50 {p50:6.2f} ms  p99 {p99:6.2f} ms\n"
        )
        sys.stdout.flush()

    load_ = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    sys.stdout.write(
        f"{facts['rows']:,} rows, ready in {facts['ready_s']} s, {CONNECTIONS} connections, load {load_:.1f}\n"
    )
    await beside("trivial, with key, limits, id, log, metrics", [[asked(f"{base}/_trivial", k)] for k in keys])
    for name, path in SAME.items():
        await beside(f"{name}, the same", [[asked(base + path, k)] for k in keys])
    for name, path in SAME.items():
        first = await answer(port, asked(base + path, keys[0]))
        tag = next(line for line in first.split(b"\r\n") if line.startswith(b"etag: "))[6:].decode()
        more = f"if-none-match: {tag}\r\n"
        await beside(f"{name}, 304", [[asked(base + path, k, more) for k in keys]], b"304")
    for name, made in OTHER.items():
        start = int(time.time() * 1000) % 1_000_000
        await beside(f"{name}, others", [[asked(base + made(start + n), keys[n % len(keys)]) for n in range(50_000)]])
    idle = await loaded(port, pid, [[asked(base + SAME["/odds"], k)] for k in keys], 3 * seconds, b"200")
    process.stdin.write("move\n")
    process.stdin.flush()
    await asyncio.sleep(2.0)
    moving = await loaded(port, pid, [[asked(base + SAME["/odds"], k)] for k in keys], 3 * seconds, b"200")
    sys.stdout.write(
        f"/odds, the same, board still: {idle.rate:,.0f}/s p99 {idle.p99:.2f} ms; "
        f"moving: {moving.rate:,.0f}/s p99 {moving.p99:.2f} ms\n"
    )


def in_process(number: int = 20_000) -> None:
    """The trivial route without a socket: what is around an endpoint, in microseconds."""
    folder = Path(tempfile.mkdtemp())
    environ = {"ODDSENGINE_DATA_FOLDER": str(folder)}
    with (folder / "log").open("w") as out, written(out):
        service = build(load(None, environ), environ, demonstration=True)
        assert isinstance(service.node.keys, KeyStore)
        key = service.node.keys.create("bench", KeyTerms("enterprise", rate=MOST_RATE)).key.encode()
        trivial = Endpoint("/_trivial", lambda _: {"success": True}, "Nothing", "Health", dict)
        service.app.router.routes.insert(0, route(service.api, trivial))
        service.node.wait_for("")
        service.node.boards.late = {60: service.node.engine.delayed(60)}
        scope = {
            "type": "http", "method": "GET", "path": "/api/v1/_trivial", "raw_path": b"/api/v1/_trivial",
            "query_string": b"", "client": ("127.0.0.1", 1), "headers": [(b"host", b"x"), (b"x-api-key", key)],
        }  # fmt: skip

        async def receive() -> Any:
            raise AssertionError("there is no body")

        async def send(_: Any) -> None:
            pass

        async def run() -> float:
            begun = time.perf_counter()
            for _ in range(number):
                await service.app(dict(scope), receive, send)
            return (time.perf_counter() - begun) / number * 1e6

        spent = [uvloop.run(run()) for _ in range(3)]
        service.ends.close()
    sys.stdout.write(f"trivial route without a socket: {min(spent):.1f} us\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the names of the cases to run")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--world", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.world:
        tell(given.rows)
        return
    if given.serve:
        served(given.rows)
        return
    command = [sys.executable, __file__, "--serve", "--rows", str(given.rows)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        facts = json.loads(process.stdout.readline())
        uvloop.run(measured(facts, process, given.seconds, given.rounds, given.only))
        rss = Path(f"/proc/{process.pid}/status")
        if rss.exists():
            sys.stdout.write(next(line for line in rss.read_text().splitlines() if line.startswith("VmRSS")) + "\n")
        process.stdin.close()
    in_process()


if __name__ == "__main__":
    main()
