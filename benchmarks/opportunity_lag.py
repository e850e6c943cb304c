"""Lag of the opportunity stream: from the start of a step to the socket of each client.

    python benchmarks/opportunity_lag.py [--events 155] [--clients 1000] [--seconds 60]

The server and the clients are processes of their own. The prices are those of a simulated market, 155 events being
about 100,000 prices; what changed comes ten times a second. The lag of an opportunity is counted from the first step
after which it was to be read again; one client in fifty notes which ones it gets, the others only take bytes. Beside
it: how long the step took, and how long `GET /opportunities/ev` took, once a second.
"""

import argparse
import asyncio
import bisect
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

KEY = "x"
TICK_S = 0.1
READERS = 50  # of so many clients one reads ids
_ID = re.compile(rb'"id":"(?:[^"]*:)?([0-9a-f]{16})"')
Arrivals = list[tuple[float, list[str]]]


def serve(args: argparse.Namespace) -> None:
    """A node with a board, and a step a second from the line `go` on; prints the times of the steps at the end."""
    import uvicorn  # noqa: PLC0415
    import uvloop  # noqa: PLC0415
    from serving import api_of, configured  # noqa: PLC0415

    from oddsengine.live.engine import Engine  # noqa: PLC0415
    from oddsengine.simulate import FeedBatch, World  # noqa: PLC0415
    from oddsengine_service import demo  # noqa: PLC0415
    from oddsengine_service.accounts.limits import Limits  # noqa: PLC0415
    from oddsengine_service.node import Node  # noqa: PLC0415
    from oddsengine_service.stream.watched_view import PART, Watch  # noqa: PLC0415
    from oddsengine_service.tiers import TIERS, Caller  # noqa: PLC0415

    class Everybody:
        def find(self, _: str) -> Caller:
            tier = TIERS["enterprise"]
            return Caller("load", "load", tier, 10_000_000, 100_000, tier.features)

    node = Node(Engine(), Everybody(), Limits())  # type: ignore[arg-type]
    world = World(demo.SEED, events=args.events, tick=TICK_S, live=0.1, dissent=0.7, exchange_hold=3.0)
    first, *batches = world.run(args.seconds + 1.0)
    begun, spent, reads = list[float](), list[float](), list[tuple[float, dict[str, int]]]()

    def step(batch: FeedBatch) -> None:
        node.write(node.step, batch.quotes, batch.now, complete=batch.complete, events=batch.events).result()

    def begin_read(watch: Watch, *, whole: bool) -> set[int]:
        first = dict(islice(watch._outdated.items(), None if whole else PART))
        reads.append((time.perf_counter(), {f"{id_:016x}": number for id_, number in first.items()}))
        return begin(watch, whole=whole)

    begin, Watch.begin_read = Watch.begin_read, begin_read  # type: ignore[method-assign, assignment]

    def steps() -> None:
        sys.stdin.readline()
        for batch in batches[: round(args.seconds / TICK_S)]:
            began = time.perf_counter()
            begun.append(began)
            step(batch)
            spent.append(time.perf_counter() - began)
            time.sleep(max(0.0, TICK_S - (time.perf_counter() - began)))
        time.sleep(1.0)
        changes = sum(len(batch.quotes) for batch in batches) / len(batches) / TICK_S
        print(
            json.dumps({"begun": begun, "spent": spent, "reads": reads, "rows": node.engine.size, "quotes": changes}),
            flush=True,
        )
        os._exit(0)

    async def run() -> None:
        await asyncio.to_thread(node.warm)
        step(first)
        server = uvicorn.Server(configured(api_of(node)))
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        threading.Thread(target=steps, daemon=True).start()
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await serving

    sys.setswitchinterval(0.0005)  # this and the loop as in the server
    uvloop.run(run())


async def watch(port: int, clients: int, heard: Arrivals, complete: list[int], size: list[int]) -> None:
    """Hold streams, and note when opportunities arrive."""
    loop = asyncio.get_running_loop()

    class Reading(asyncio.Protocol):
        def __init__(self, place: int) -> None:
            self.tail, self.begun, self.reads = b"", False, place % READERS == 0

        def connection_made(self, transport: Any) -> None:
            path = f"/api/v1/stream?channel=opportunities&min_ev=0&api_key={KEY}"
            transport.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

        def data_received(self, data: bytes) -> None:
            size[0] += len(data)
            if not self.begun:
                if b"snapshot:complete" in self.tail + data:
                    self.begun = True
                    complete[0] += 1
                self.tail = data[-40:]
            elif self.reads:
                heard.append((time.perf_counter(), [id_.decode() for id_ in _ID.findall(data)]))

    for first in range(0, clients, 100):
        await asyncio.gather(
            *(
                loop.create_connection(partial(Reading, at), "127.0.0.1", port)
                for at in range(first, min(clients, first + 100))
            )
        )
    while complete[0] < clients:
        await asyncio.sleep(0.05)


def poll(port: int, stop: threading.Event, taken: list[float]) -> None:
    """Request +EV prices once a second."""
    url = f"http://127.0.0.1:{port}/api/v1/opportunities/ev?limit=50"
    while not stop.wait(1.0):
        began = time.perf_counter()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers={"X-API-Key": KEY})) as answer:
                answer.read()
        except OSError:  # the server has ended
            return
        taken.append(time.perf_counter() - began)


def lags_of(heard: Arrivals, begun: list[float], reads: list[tuple[float, dict[str, int]]]) -> list[float]:
    """From the step that outdated an opportunity to its arrival; the first two seconds do not count."""
    steps: dict[str, list[tuple[float, float]]] = {}
    for at, outdated in reads:
        for id_, number in outdated.items():
            if number >= 2:  # the first step loads the board
                steps.setdefault(id_, []).append((at, begun[number - 2]))
    lags = []
    for at, ids in heard:
        for id_ in ids:
            some = steps.get(id_, [])
            place = bisect.bisect(some, (at, 0.0))
            if place and some[place - 1][1] > begun[0] + 2.0:
                lags.append(at - some[place - 1][1])
    return lags


def quantiles(seconds: list[float]) -> str:
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1e3
    return f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms, most {max(seconds) * 1e3:,.0f} ms"


def main() -> None:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=155)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args)
        return
    words = [f"--{name}={getattr(args, name)}" for name in ("events", "clients", "seconds")]
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin
    assert server.stdout
    port = int(server.stdout.readline())
    heard, complete, size, taken, stop = Arrivals(), [0], [0], list[float](), threading.Event()

    async def run() -> str:
        began = time.perf_counter()
        await watch(port, args.clients, heard, complete, size)
        print(f"{args.clients:,} streams complete after {time.perf_counter() - began:.1f} s", flush=True)
        heard.clear()
        size[1:] = size[:1]
        threading.Thread(target=poll, args=(port, stop, taken), daemon=True).start()
        server.stdin.write("go\n")  # type: ignore[union-attr]
        server.stdin.flush()  # type: ignore[union-attr]
        return await asyncio.to_thread(server.stdout.readline)  # type: ignore[union-attr]

    try:
        said = json.loads(asyncio.run(run()))
    finally:
        stop.set()
        server.kill()
    lags = lags_of(heard, said["begun"], said["reads"])
    megabytes = (size[0] - size[1]) / 1e6 / args.seconds
    print(
        f"{said['rows']:,} prices, {said['quotes']:,.0f} quotes and {megabytes:,.1f} MB a second, "
        f"{args.clients:,} clients: {len(lags):,} changes read"
    )
    print(f"step                  {quantiles(said['spent'][20:])}")
    print(f"step to socket        {quantiles(lags)}")
    print(f"GET /opportunities/ev {quantiles(taken[2:])}")


if __name__ == "__main__":
    main()
