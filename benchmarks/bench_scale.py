"""A writer, its stand-by and gateways over a real server: lag, rate, take-over, start of a gateway, shared limits.

    python benchmarks/bench_scale.py [lag] [rate] [start] [takeover] [limits]

A simulated market of `--events` games (150: 100,000 prices) is polled book by book and game by game; a batch is JSON
of so many quotes as the sources brought them, most of which say the price that was there. Times are read from one clock
by all processes of this machine. Beside them, in the same run: the round trip of a message of the same size through
the bare log, and what a step costs where nothing is shared.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import httpx2
import msgspec
import nats
import numpy as np
from support import scale_process
from support.nats_running import Servers, servers, wait_for
from support.scale_running import Process, Run, run

from oddsengine.live.engine import Engine
from oddsengine.simulate import World
from oddsengine_service.board.writer import StalledError

OPENED = 25  # steps after which the board is full for sure
OPENING = 10_000  # prices of a step while the board is filled
LINKED = os.environ.get("LINKED") == "1"  # every quote with the texts of its own
POLLED = 170_000  # quotes that are made before, and taken in turn


# ---- one process ----


def texts(events: int, quotes: int, n: int) -> tuple[list[bytes], list[bytes]]:
    """The first prices of a simulated market, and what its sources bring then, in batches of one size."""
    world = World(5, events=events, start=datetime.now(UTC), live=0.3, dissent=0.7, exchange_hold=3.0)
    polls = world.run(1e9)
    opening = next(polls).quotes
    later: list[dict[str, Any]] = []
    while len(later) < n * quotes:
        later += next(polls).quotes
    for quote in (*opening, *later):
        for name in ("last_seen_at",) if LINKED else ("last_seen_at", "deep_link", "external_event_id"):
            quote.pop(name, None)

    def cut(rows: list[Any], size: int) -> list[bytes]:
        return [msgspec.json.encode(rows[at : at + size]) for at in range(0, len(rows), size)]

    return cut(opening, OPENING), cut(later[: n * quotes], quotes)


def process(config: str, *_: str) -> None:
    """A writer or a gateway that notes when each step was done."""
    games, quotes, pace = int(os.environ["EVENTS"]), int(os.environ["QUOTES"]), float(os.environ["STEP_S"])
    n = -(-POLLED // max(1, quotes))
    opening, batches = texts(games, quotes, n) if os.environ["ROLE"] == "writer" else ([], [])
    notes = Path(config).with_suffix(".steps").open("a", buffering=1)

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def does(self: Engine, *arguments: Any, **more: Any) -> Any:
            began, used = time.monotonic(), time.thread_time()
            found = work(self, *arguments, **more)
            now = time.monotonic()
            print(self.number, began, now, time.thread_time() - used, file=notes)
            return found

        return does

    for name in ("step", "feed"):
        setattr(Engine, name, noted(getattr(Engine, name)))

    def feed(service: Any, *_: Any) -> None:
        node = service.node

        def step(text: bytes) -> None:
            while not node.closing.is_set():
                try:
                    node.write(lambda: node.step(text)).result()
                    return
                except StalledError:
                    time.sleep(0.1)

        for text in opening[node.engine.number :]:
            step(text)
        due, at = time.monotonic(), node.engine.number
        while not node.closing.wait(max(0.0, due - time.monotonic())):
            step(batches[at % n])
            due, at = max(due + pace, time.monotonic() - 1.0), at + 1

    scale_process.feed = feed
    scale_process.main(config, "0", "0")


# ---- what is measured ----


class Steps:
    """When a process was done with each step, and what that took of its thread."""

    def __init__(self, folder: Path, name: str) -> None:
        self.began: dict[int, float] = {}
        self.done: dict[int, float] = {}
        self.used: dict[int, float] = {}
        path = folder / f"{name}.steps"
        for line in (path.read_text() if path.exists() else "").splitlines():
            number, began, done, used = line.split()
            self.began.setdefault(int(number), float(began))
            self.done.setdefault(int(number), float(done))
            self.used.setdefault(int(number), float(used))


def spread(values: list[float], unit: float = 1e3) -> dict[str, float]:
    """Median and tails, in milliseconds."""
    found = np.array(values) * unit
    return {f"p{q}": round(float(np.percentile(found, q)), 1) for q in (50, 90, 99)} | {"n": len(values)}


@contextmanager
def shard(folder: Path, n: int, *, gateways: int, standby: bool, **more: Any) -> Iterator[Run]:
    """A full board that is fed, and what follows it."""
    settings = {key: str(value) for key, value in more.items() if key.isupper()}
    rest = {key: value for key, value in more.items() if not key.isupper()}
    with servers(folder / "nats", n) as found, run(folder, found, steps=0, pause_s=0.0, forked=False, **rest) as made:
        made.program = Path(__file__).resolve()
        made.add("w1", "writer", ROLE="writer", **settings)
        for at in range(gateways):
            made.add(f"g{at + 1}", "gateway", ROLE="gateway", **settings)
        wait_for(lambda: number_of(made, "w1") > OPENED, "the board is full", 120.0)
        if standby:
            made.add("w2", "writer", ROLE="writer", **settings)
        wait_for(lambda: all(each.ready for each in made.processes if each.role == "gateway"), "gateways", 120.0)
        yield made


def number_of(made: Run, name: str) -> int:
    """The last step of a process."""
    return max(Steps(made.folder, name).done, default=0)


def lag(folder: Path, options: argparse.Namespace, quotes: int, pace: float, seconds: float) -> dict[str, Any]:
    """From the writer's step until it is applied at two gateways."""
    with shard(folder, options.servers, gateways=options.gateways, standby=False, lease_s=5.0, snapshot_s=10.0,
               EVENTS=options.events, QUOTES=quotes, STEP_S=pace, CHECK_S=60) as made:  # fmt: skip
        time.sleep(options.settle)
        first, began = number_of(made, "w1"), time.monotonic()
        time.sleep(seconds)
        writer, took = Steps(folder, "w1"), time.monotonic() - began
        last = max(writer.done)
        time.sleep(1.0)
        followers = [Steps(folder, f"g{at + 1}") for at in range(options.gateways)]
        bare = asyncio.run(round_trip(made.servers, 10_000 if quotes < 5_000 else 70_000))
        cpu = {each.name: cpu_of(each) for each in made.processes}
    numbers = range(first + 1, last + 1)
    both = [(f, n) for f in followers for n in numbers if n in f.done]
    slowest = min(sum(each.done.get(n, 1e18) < began + took for n in numbers) for each in followers)
    return {
        "wanted_quotes_s": round(quotes / pace) if pace else 0, "writer_quotes_s": round(len(numbers) * quotes / took),
        "slowest_gateway_quotes_s": round(slowest * quotes / took),
        "lag_from_end_of_step_ms": spread([f.done[n] - writer.done[n] for f, n in both]),
        "lag_from_begin_of_step_ms": spread([f.done[n] - writer.began[n] for f, n in both]),
        "step_ms": spread([writer.done[n] - writer.began[n] for n in numbers]),
        "step_cpu_ms": spread([writer.used[n] for n in numbers]),
        "apply_ms": spread([f.done[n] - f.began[n] for f, n in both]),
        "apply_cpu_ms": spread([f.used[n] for f, n in both]),
        "bare_log": bare, "cpu_s": cpu,
    }  # fmt: skip


def cpu_of(each: Process) -> float:
    """Processor seconds of a process so far."""
    assert each._process is not None
    fields = Path(f"/proc/{each._process.pid}/stat").read_text().rpartition(")")[2].split()
    return round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 1)


async def round_trip(found: Servers, size: int) -> dict[str, Any]:
    """Storing a message until it is acknowledged, and until another client has it."""
    writer, reader = await nats.connect(found.urls), await nats.connect(found.urls)
    log = writer.jetstream()
    await log.add_stream(name="bare", subjects=["bare"], num_replicas=3 if len(found) > 1 else 1)
    heard = asyncio.Queue[float]()

    async def hear(_: Any) -> None:
        heard.put_nowait(time.monotonic())

    await reader.jetstream().subscribe("bare", cb=hear, ordered_consumer=True)
    stored, came, body = [], [], os.urandom(size)
    for _ in range(300):
        began = time.monotonic()
        await log.publish("bare", body)
        stored.append(time.monotonic() - began)
        came.append(await heard.get() - began)
        await asyncio.sleep(0.005)
    await writer.close()
    await reader.close()
    return {"acknowledged_ms": spread(stored), "received_ms": spread(came)}


def start(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """A new gateway beside one that answers, at 14,000 quotes a second."""
    with shard(folder, options.servers, gateways=1, standby=False, lease_s=5.0, snapshot_s=10.0,
               EVENTS=options.events, QUOTES=1400, STEP_S=0.1, CHECK_S=60) as made:  # fmt: skip
        time.sleep(options.warm)
        took = []
        for at in range(options.times):
            began = time.monotonic()
            new = made.add(f"n{at}", "gateway", ROLE="gateway", EVENTS="0", QUOTES="0", STEP_S="1", CHECK_S="60")
            wait_for(lambda new=new: new.ready and '"ready"' in new.log, "the new gateway", 120.0)
            said = [json.loads(line) for line in new.log.splitlines() if '"ready"' in line]
            took.append({
                "from_exec_s": round(time.monotonic() - began, 2), "cpu_s": cpu_of(new),
                "from_settings_s": said[-1]["seconds"], "steps": len(Steps(folder, new.name).done),
            })  # fmt: skip
            new.end()
        return {"ready": took}


def takeover(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The active writer is killed; until the stand-by's first step is applied at a gateway."""
    lease = options.lease
    with shard(folder, options.servers, gateways=1, standby=True, lease_s=lease, snapshot_s=10.0,
               EVENTS=30, QUOTES=200, STEP_S=0.1, CHECK_S=60) as made:  # fmt: skip
        took = []
        for at in range(options.times):
            active, other = sorted(
                (each for each in made.processes if each.role == "writer"), key=lambda w: not w.leads
            )
            wait_for(lambda other=other: other.health.get("code") is not None and number_of(made, other.name) > 0,
                     "the stand-by follows", 120.0)  # fmt: skip
            time.sleep(2.0 + 0.37 * at)
            active.send(signal.SIGKILL)
            killed = time.monotonic()
            last = number_of(made, active.name)
            wait_for(lambda last=last: number_of(made, "g1") > last + 2, "steps go on", 60.0)
            took.append(min(t for t in Steps(folder, "g1").done.values() if t > killed + 0.5) - killed)
            (folder / f"{active.name}.steps").unlink()
            (folder / f"{active.name}.log").unlink()
            active.start()
        return {"lease_s": lease, "allowed_s": lease + 1.5, "took_s": [round(each, 2) for each in took],
                "median_s": round(statistics.median(took), 2), "max_s": round(max(took), 2)}  # fmt: skip


def limits(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One account, far above its limit, over three gateways for most of a minute."""
    with shard(folder, options.servers, gateways=3, standby=False, lease_s=5.0, snapshot_s=10.0,
               EVENTS=10, QUOTES=50, STEP_S=1.0, CHECK_S=60) as made:  # fmt: skip
        gateways = [each for each in made.processes if each.role == "gateway"]
        answer = gateways[0].get("/events?limit=1", "hobby")
        found = {}
        for tier in ("hobby", "pro"):
            answer = gateways[0].get("/events?limit=1", tier)
            rate = int(answer.headers["X-RateLimit-Limit"])
            time.sleep(60.0 - time.time() % 60.0 + 1.0)
            allowed, refused, until = [0] * 6, [0] * 6, time.time() + 50.0

            def ask(
                at: int, tier: str = tier, until: float = until, allowed: Any = allowed, refused: Any = refused
            ) -> None:
                with httpx2.Client(headers={"X-API-Key": f"demo_{tier}"}) as client:
                    while time.time() < until and refused[at] < 100:
                        status = client.get(gateways[at % 3].base + "/events?limit=1").status_code
                        allowed[at] += status == 200
                        refused[at] += status == 429

            threads = [threading.Thread(target=ask, args=(at,)) for at in range(6)]
            began = time.time()
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            found[tier] = {"limit": rate, "allowed": sum(allowed), "refused": sum(refused),
                           "requests_s": round((sum(allowed) + sum(refused)) / (time.time() - began))}  # fmt: skip
        return found


def main() -> None:
    """Run what was named, or all."""
    if len(sys.argv) > 1 and sys.argv[1].endswith(".toml"):
        process(*sys.argv[1:])
        return
    every: dict[str, Callable[[Path, argparse.Namespace], Any]] = {
        "lag": lambda folder, o: lag(folder, o, round(14_000 / o.steps), 1.0 / o.steps, o.seconds),
        "rate": lambda folder, o: lag(folder, o, round(100_000 / o.rate_steps), 1.0 / o.rate_steps, o.seconds),
        "start": start, "takeover": takeover, "limits": limits,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="|".join(every))
    parser.add_argument("--events", type=int, default=150)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--steps", type=float, default=10.0, help="a second")
    parser.add_argument("--rate-steps", type=float, default=5.0, help="a second, of `rate`")
    parser.add_argument("--gateways", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--settle", type=float, default=5.0)
    parser.add_argument("--warm", type=float, default=95.0, help="seconds before the first start")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--lease", type=float, default=5.0)
    options = parser.parse_args()
    for name in options.what or every:
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            print(name, json.dumps(every[name](Path(folder), options)), f"load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
