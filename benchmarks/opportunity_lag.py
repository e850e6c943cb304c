"""Lag of the opportunity stream: from the start of a step to the socket of each client.

    python benchmarks/opportunity_lag.py [--rows 100_000] [--clients 1000] [--changes 1400] [--seconds 60]

The server and the clients are processes of their own. Once a second a step moves the prices of some rows by up to two
percent; the lag of an event is counted from the last step that began before it arrived. Beside it: how long the step
took, and how long `GET /opportunities/ev` took after each step, as a client that polls would see it.
"""

import argparse
import asyncio
import io
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from boards import board

KEY = "x"


def serve(args: argparse.Namespace) -> None:
    """A node with a board, and a step a second from the line `go` on; prints the times of the steps at the end."""
    import uvicorn  # noqa: PLC0415

    from oddsengine.engine import Engine  # noqa: PLC0415
    from oddsengine_service.app import Api  # noqa: PLC0415
    from oddsengine_service.bus import Bus  # noqa: PLC0415
    from oddsengine_service.limits import Limits  # noqa: PLC0415
    from oddsengine_service.log import Log  # noqa: PLC0415
    from oddsengine_service.metrics import Metrics  # noqa: PLC0415
    from oddsengine_service.node import Node  # noqa: PLC0415
    from oddsengine_service.routes import opportunities, stream  # noqa: PLC0415
    from oddsengine_service.tiers import TIERS, Caller  # noqa: PLC0415

    class Everybody:
        def find(self, _: str) -> Caller:
            tier = TIERS["enterprise"]
            return Caller("load", "load", tier, 10_000_000, 100_000, tier.features)

    now = datetime.now(UTC)
    frame = board(args.rows).with_columns(event_start_time=pl.lit(now + timedelta(hours=5)), last_seen_at=pl.lit(now))
    node = Node(Engine(), Everybody(), Limits(), Bus())
    api = Api(node, (*stream.endpoints, *opportunities.endpoints), Log(io.StringIO(), quiet=True), Metrics())
    rng, begun, spent = np.random.default_rng(1), list[float](), list[float]()

    def steps() -> None:
        sys.stdin.readline()
        while len(begun) < args.seconds:
            some = frame.sample(args.changes, seed=int(rng.integers(1 << 31)))
            moved = pl.col("odds_decimal") * pl.Series(rng.uniform(0.98, 1.02, some.height))
            at = datetime.now(UTC)
            rows = some.with_columns(moved, last_seen_at=pl.lit(at)).to_dicts()
            began = time.perf_counter()
            begun.append(began)
            node.write(node.step, rows, at).result()
            spent.append(time.perf_counter() - began)
            time.sleep(max(0.0, 1.0 - (time.perf_counter() - began)))
        time.sleep(1.0)
        print(json.dumps({"begun": begun, "spent": spent}), flush=True)
        os._exit(0)

    async def run() -> None:
        node.bus.begin()
        await asyncio.to_thread(node.warm)
        node.write(node.step, frame, now).result()
        config = uvicorn.Config(
            api, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="off", backlog=8192
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        threading.Thread(target=steps, daemon=True).start()
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await serving

    asyncio.run(run())


async def watch(port: int, clients: int, heard: list[float], complete: list[int]) -> None:
    """Hold streams, and note when events with opportunities arrive."""
    loop = asyncio.get_running_loop()

    class Reading(asyncio.Protocol):
        def __init__(self) -> None:
            self.tail, self.begun = b"", False

        def connection_made(self, transport: Any) -> None:
            path = f"/api/v1/stream?channel=opportunities&min_ev=0&api_key={KEY}"
            transport.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

        def data_received(self, data: bytes) -> None:
            if not self.begun:
                if b"snapshot:complete" in self.tail + data:
                    self.begun = True
                    complete[0] += 1
                self.tail = data[-40:]
            elif b":detected" in data or b":expired" in data:
                heard.append(time.perf_counter())

    for first in range(0, clients, 100):
        await asyncio.gather(
            *(loop.create_connection(Reading, "127.0.0.1", port) for _ in range(first, min(clients, first + 100)))
        )
    while complete[0] < clients:
        await asyncio.sleep(0.05)


def poll(port: int, stop: threading.Event, taken: list[float]) -> None:
    """Ask for +EV prices ten times a second."""
    url = f"http://127.0.0.1:{port}/api/v1/opportunities/ev?limit=50"
    while not stop.wait(0.1):
        began = time.perf_counter()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers={"X-API-Key": KEY})) as answer:
                answer.read()
        except OSError:  # the server has ended
            return
        taken.append(time.perf_counter() - began)


def quantiles(seconds: list[float]) -> str:
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1e3
    return f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms, most {max(seconds) * 1e3:,.0f} ms"


def main() -> None:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=1400, help="rows that a step moves")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args)
        return
    words = [f"--{name}={getattr(args, name)}" for name in ("rows", "clients", "changes", "seconds")]
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin
    assert server.stdout
    port = int(server.stdout.readline())
    heard, complete, taken, stop = list[float](), [0], list[float](), threading.Event()

    async def run() -> str:
        began = time.perf_counter()
        await watch(port, args.clients, heard, complete)
        print(f"{args.clients:,} streams complete after {time.perf_counter() - began:.1f} s", flush=True)
        heard.clear()
        threading.Thread(target=poll, args=(port, stop, taken), daemon=True).start()
        server.stdin.write("go\n")  # type: ignore[union-attr]
        server.stdin.flush()  # type: ignore[union-attr]
        return await asyncio.to_thread(server.stdout.readline)  # type: ignore[union-attr]

    said = json.loads(asyncio.run(run()))
    stop.set()
    begun = np.array(said["begun"][5:])
    arrived = np.array([at for at in heard if at >= begun[0]])
    lags = (arrived - begun[np.searchsorted(begun, arrived, side="right") - 1]).tolist()
    print(f"{args.rows:,} rows, {args.clients:,} clients, {args.changes:,} changes a second: {len(lags):,} events")
    print(f"step                  {quantiles(said['spent'][5:])}")
    print(f"step to socket        {quantiles(lags)}")
    print(f"GET /opportunities/ev {quantiles(taken[20:])}")


if __name__ == "__main__":
    main()
