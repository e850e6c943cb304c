"""Streams of an event each and requests over two gateways, while processes and servers are killed by a seed.

    python benchmarks/scale_chaos.py --seconds 600 --streams 1000 --seed 1

Every stream resumes where it broke off, on whichever gateway takes it. No client may see a price go back in time, a row
twice in a snapshot, an update twice, or an opportunity after its expiry. Prints a line of JSON: what was done, how long
streams had nothing, how long it took until updates went on, and what was wrong (nothing).
"""

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.nats_running import servers, wait_for
from support.scale_running import Process, run

STREAM = "/api/v1/stream/all?resume=true&min_ev=0&min_profit=0"
PATHS = ("/odds?limit=50", "/odds/best?limit=20", "/events", "/opportunities/ev?min_ev=0", "/opportunities/arbitrage")
HEADERS = "Host: chaos\r\nX-API-Key: demo_enterprise\r\nAccept-Encoding: identity\r\n\r\n"
TROUBLE = (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError)


@lru_cache(maxsize=4096)
def parsed(data: bytes) -> Any:
    """Many streams carry the same bytes."""
    return json.loads(data)


async def asked(port: int, path: str, within: float) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter, bool]:
    """Send a request; the status, what follows the headers, and whether that comes in chunks."""
    async with asyncio.timeout(within):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        writer.write(f"GET {path} HTTP/1.1\r\n{HEADERS}".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
    return int(head.split()[1]), reader, writer, b"transfer-encoding: chunked" in head


async def events(reader: asyncio.StreamReader, *, chunked: bool) -> AsyncIterator[dict[bytes, bytes]]:
    """The events of a stream, as fields."""
    rest = b""
    while True:
        if chunked:
            size = int(await reader.readline(), 16)
            data = (await reader.readexactly(size + 2))[:-2]
        else:
            data = await reader.read(1 << 16)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\n\n")
        for each in whole:
            yield dict(line.split(b": ", 1) for line in each.split(b"\n") if b": " in line and line[:1] != b":")


class Client:
    """One reader of prices and opportunities, who comes back to whichever gateway answers."""

    def __init__(self, gateways: list[Process], number: int, event: str) -> None:
        self.gateways, self.at, self.path = gateways, number, f"{STREAM}&event={event}"
        self.changed: dict[str, str] = {}  # by row, when its price last changed
        self.open: dict[str, str] = {}  # by opportunity, when it was detected
        self.expired: dict[str, str] = {}
        self.wrong: Counter[str] = Counter()
        self.events = self.connections = self.resumed = 0
        self.gaps: list[float] = []  # of a tenth of a second and more
        self.last, self.ident = 0, "evt_0"

    async def read(self) -> None:
        """Read until cancelled."""
        heard = time.monotonic()
        while True:
            self.at += 1
            path = self.path + f"&last_event_id={self.ident}"
            writer = None
            with suppress(*TROUBLE):
                status, reader, writer, chunked = await asked(self.gateways[self.at % 2].port, path, 10.0)
                if status == 200:
                    self.connections += 1
                    async for event in events(reader, chunked=chunked):
                        if b"data" in event:
                            now = time.monotonic()
                            if now - heard >= 0.1:
                                self.gaps.append(now - heard)
                            heard = now
                            self.take(event)
            if writer is not None:
                writer.close()
            await asyncio.sleep(0.5)

    def take(self, event: dict[bytes, bytes]) -> None:
        """Look at one event."""
        self.events += 1
        kind, data = event.get(b"event", b"").decode(), parsed(event[b"data"])
        ident = event.get(b"id", b"evt_0").decode()
        number = int(ident.removeprefix("evt_").partition(".")[0])
        if kind == "connected":
            self.resumed += bool(data.get("resumed"))
            return
        if number:
            self.wrong["update twice"] += number < self.last
            self.last, self.ident = max((number, ident), (self.last, self.ident))
        if kind in ("snapshot", "odds:update"):
            rows = data if isinstance(data, list) else data.get("data", data.get("odds", []))
            self.wrong["row twice"] += len(rows) - len({row["id"] for row in rows})
            for row in rows:
                if at := row.get("odds_changed_at"):
                    self.wrong["price back in time"] += at < self.changed.get(row["id"], "")
                    self.changed[row["id"]] = at
        elif kind in ("ev:detected", "arb:detected"):
            rows = data if isinstance(data, list) else data.get("data", data.get("opportunities", []))
            for row in rows:
                self.wrong["after its expiry"] += self.expired.get(row["id"]) == row["detected_at"]
                self.open[row["id"]] = row["detected_at"]
        elif kind in ("ev:expired", "arb:expired"):
            for ident in data["expired"]:
                if ident in self.open:
                    self.expired[ident] = self.open.pop(ident)


class Asker:
    """One who asks for pages, of both gateways in turn."""

    def __init__(self, gateways: list[Process], number: int) -> None:
        self.gateways, self.at = gateways, number
        self.answers: Counter[str] = Counter()
        self.seconds: list[float] = []

    async def ask(self) -> None:
        """Ask until cancelled."""
        while True:
            self.at += 1
            began = time.monotonic()
            try:
                path = f"/api/v1{PATHS[self.at % len(PATHS)]}"
                status, reader, writer, _ = await asked(self.gateways[self.at % 2].port, path, 10.0)
                writer.close()
                self.answers[str(status)] += 1
                if status == 200:
                    self.seconds.append(time.monotonic() - began)
                del reader
            except TROUBLE:
                self.answers["no answer"] += 1
            await asyncio.sleep(0.5)


async def moves(clients: list[Client]) -> float:
    """Seconds until some stream gets an update that nobody had."""
    began, last = time.monotonic(), max(client.last for client in clients)
    while max(client.last for client in clients) <= last and time.monotonic() - began < 120.0:
        await asyncio.sleep(0.05)
    return time.monotonic() - began


def quantile(values: list[float], share: float) -> float:
    """One of the values, rounded."""
    return round(sorted(values)[min(len(values) - 1, int(share * len(values)))], 3) if values else 0.0


async def chaos(arguments: argparse.Namespace, found: Any, shard: Any) -> dict[str, Any]:
    """Read and kill for a while."""
    chance = random.Random(arguments.seed)
    gateways = [process for process in shard.processes if process.role == "gateway"]
    wait_for(lambda: gateways[0].get("/events").json()["data"] != [], "there are events", 120.0)
    ids = [event["id"] for event in gateways[0].get("/events").json()["data"]]
    clients = [Client(gateways, at, ids[at % len(ids)]) for at in range(arguments.streams)]
    askers = [Asker(gateways, at) for at in range(arguments.askers)]
    running = []
    for work in (*(client.read for client in clients), *(asker.ask for asker in askers)):
        running.append(asyncio.create_task(work()))
        await asyncio.sleep(0.001)
    done: Counter[str] = Counter()
    recovered: dict[str, list[float]] = {}
    until = time.monotonic() + arguments.seconds
    while time.monotonic() < until:
        await asyncio.sleep(chance.uniform(4.0, 10.0))
        victim = chance.choice([*shard.processes, *found])
        stops = chance.random() < 0.3
        what = f"{'stopped' if stops else 'killed'} {getattr(victim, 'role', 'server')}"
        done[what] += 1
        act = victim.send if isinstance(victim, Process) else victim.kill
        await asyncio.to_thread(act, signal.SIGSTOP if stops else signal.SIGKILL)
        going_on = asyncio.create_task(moves(clients))
        await asyncio.sleep(chance.uniform(1.0, 3.0))
        await asyncio.to_thread(act, signal.SIGCONT) if stops else await asyncio.to_thread(victim.start)
        recovered.setdefault(what, []).append(await going_on)
    await asyncio.to_thread(wait_for, lambda: all(each.ready for each in gateways), "gateways are ready", 120.0)
    await asyncio.sleep(3.0)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    failed = [task for task in running if not task.cancelled()]
    gaps = [gap for client in clients for gap in client.gaps]
    wrong = sum((client.wrong for client in clients), Counter[str]())
    seconds = [took for asker in askers for took in asker.seconds]
    return {
        "seed": arguments.seed, "seconds": arguments.seconds, "streams": arguments.streams, "done": dict(done),
        "connections": sum(client.connections for client in clients),
        "resumed": sum(client.resumed for client in clients),
        "events": sum(client.events for client in clients), "wrong": {k: v for k, v in wrong.items() if v},
        "failed": [repr(task.exception()) for task in failed][:3],
        "gap_s": {"p50": quantile(gaps, 0.5), "p99": quantile(gaps, 0.99), "max": round(max(gaps), 1)},
        "updates_go_on_after_s": {
            what: {"p50": round(quantile(took, 0.5), 1), "max": round(max(took), 1)} for what, took in recovered.items()
        },
        "answers": dict(sum((asker.answers for asker in askers), Counter[str]())),
        "answer_s": {"p50": quantile(seconds, 0.5), "p99": quantile(seconds, 0.99)},
        "client_cpu_s": round(resource.getrusage(resource.RUSAGE_SELF).ru_utime), "load": os.getloadavg()[0],
    }  # fmt: skip


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--askers", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1 << 16, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    with (
        servers(folder / "nats", 3) as found,
        run(folder, found, steps=10**9, pause_s=1.0, lease_s=3.0, snapshot_s=10.0, forked=False) as shard,
    ):
        for name, role in (("w1", "writer"), ("w2", "writer"), ("g1", "gateway"), ("g2", "gateway")):
            shard.add(name, role, NO_LIMITS="1", CHECK_S="10")
        wait_for(lambda: all(each.ready for each in shard.processes if each.role == "gateway"), "gateways", 180.0)
        print(json.dumps(asyncio.run(chaos(arguments, found, shard))))


if __name__ == "__main__":
    main()
