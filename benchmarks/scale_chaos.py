"""Streams over two gateways while processes and servers are killed and stopped at random, from a seed.

    python benchmarks/scale_chaos.py --seconds 600 --streams 1000 --seed 1

No client may see a price go back in time or a row twice in a snapshot, nor an opportunity after its expiry. Prints one
line of JSON: what was done, how long streams had nothing, and what was wrong (nothing).
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from nats_running import servers, wait_for
from scale_running import Process, run


class Client:
    """One reader of prices and opportunities, who comes back to whichever gateway answers."""

    def __init__(self, gateways: list[Process], number: int) -> None:
        self.gateways, self.number = gateways, number
        self.changed: dict[str, str] = {}  # by row, when its price last changed
        self.expired: set[str] = set()
        self.wrong: Counter[str] = Counter()
        self.events = self.connections = 0
        self.gaps: list[float] = []
        self.last = ""

    async def read(self) -> None:
        """Read until cancelled."""
        heard = time.monotonic()
        at = self.number
        while True:
            at += 1
            base = self.gateways[at % len(self.gateways)].base
            url = f"{base}/stream/all?resume=true&sport=basketball" + (
                f"&last_event_id={self.last}" if self.last else ""
            )
            with suppress(httpx.HTTPError):
                async with (
                    httpx.AsyncClient(timeout=httpx.Timeout(5.0, read=30.0)) as client,
                    client.stream("GET", url, headers={"X-API-Key": "demo_enterprise"}) as answer,
                ):
                    if answer.status_code == 200:
                        self.connections += 1
                        kind = ""
                        async for line in answer.aiter_lines():
                            if line.startswith("event: "):
                                kind = line[7:]
                            elif line.startswith("id: "):
                                self.last = line[4:]
                            elif line.startswith("data: "):
                                now = time.monotonic()
                                self.gaps.append(now - heard)
                                heard = now
                                self.take(kind, json.loads(line[6:]))
            await asyncio.sleep(0.2)

    def take(self, kind: str, data: Any) -> None:
        """Look at one event."""
        self.events += 1
        if kind == "snapshot":
            self.expired.clear()
        rows = data.get("data", data.get("odds", [])) if isinstance(data, dict) else data
        rows = rows if isinstance(rows, list) else [rows]
        ids = [row.get("id") for row in rows if isinstance(row, dict)]
        self.wrong["twice"] += len(ids) - len(set(ids))
        for row in rows:
            if not isinstance(row, dict) or "id" not in row:
                continue
            if kind in ("snapshot", "odds:update") and row.get("odds_changed_at"):
                before = self.changed.get(row["id"], "")
                self.wrong["back in time"] += row["odds_changed_at"] < before
                self.changed[row["id"]] = row["odds_changed_at"]


async def chaos(arguments: argparse.Namespace, found: Any, shard: Any) -> dict[str, Any]:
    """Read and kill for a while."""
    chance = random.Random(arguments.seed)
    gateways = [process for process in shard.processes if process.role == "gateway"]
    clients = [Client(gateways, at) for at in range(arguments.streams)]
    reading = [asyncio.create_task(client.read()) for client in clients]
    done: Counter[str] = Counter()
    until = time.monotonic() + arguments.seconds
    while time.monotonic() < until:
        await asyncio.sleep(chance.uniform(4.0, 10.0))
        victim = chance.choice([*shard.processes, *found])
        stops = chance.random() < 0.3
        done[f"{'stopped' if stops else 'killed'} {getattr(victim, 'role', 'server')}"] += 1
        act = victim.send if isinstance(victim, Process) else victim.kill
        await asyncio.to_thread(act, signal.SIGSTOP if stops else signal.SIGKILL)
        await asyncio.sleep(chance.uniform(1.0, 3.0))
        await asyncio.to_thread(act, signal.SIGCONT) if stops else await asyncio.to_thread(victim.start)
    await asyncio.to_thread(wait_for, lambda: all(each.ready for each in gateways), "gateways are ready", 120.0)
    await asyncio.sleep(3.0)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)
    gaps = sorted(gap for client in clients for gap in client.gaps)
    wrong = sum((client.wrong for client in clients), Counter())
    return {
        "seed": arguments.seed, "seconds": arguments.seconds, "streams": arguments.streams, "done": dict(done),
        "connections": sum(client.connections for client in clients),
        "events": sum(client.events for client in clients), "wrong": {k: v for k, v in wrong.items() if v},
        "gap_p50_s": round(gaps[len(gaps) // 2], 3), "gap_max_s": round(gaps[-1], 1), "load": os.getloadavg()[0],
    }  # fmt: skip


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    with (
        servers(folder / "nats", 3) as found,
        run(folder, found, steps=10**9, pause_s=0.2, lease_s=3.0, snapshot_s=5.0) as shard,
    ):
        for name, role in (("w1", "writer"), ("w2", "writer"), ("g1", "gateway"), ("g2", "gateway")):
            shard.add(name, role)
        wait_for(lambda: all(each.ready for each in shard.processes), "all are ready", 180.0)
        print(json.dumps(asyncio.run(chaos(arguments, found, shard))))


if __name__ == "__main__":
    main()
