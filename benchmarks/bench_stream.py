"""Streams under load: events to many clients, beside a server that writes the same bytes with asyncio and nothing else.

    python benchmarks/bench_stream.py                       # every case, and the targets; about four minutes
    python benchmarks/bench_stream.py --websocket           # WebSockets beside Server-Sent Events, in turns
    python benchmarks/bench_stream.py --clients 100 1000 [--seconds 6] [--rate 100] [--groups 1] [--stopped 0]

Servers and the client are processes of their own. Each update moves six prices of one book, which is one event of about
1 KB for every client. `cpu` is the server's; `own` is without what the same steps take with nobody there.
Latency is from before the engine's step to the client's socket, of one client in ten.
"""

import argparse
import asyncio
import contextlib
import gc
import itertools
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import uvloop

KEY = "x"
ROWS = 1000
MOST_UNSENT = 1 << 20  # bytes for one client of the baseline
ANSWER_S = 150.0  # within which a child answers, or is killed
BOOKS = ("pinnacle", "draftkings", "fanduel", "betmgm", "caesars")
LEAGUES = ("nba", "nfl", "mlb", "nhl")


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def commands() -> asyncio.Queue[str]:
    """What the parent says, a line each; the process ends when the parent does, whatever its event loop is doing."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line.strip())
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    return lines


# ---- the servers ----


def quotes(tick: int, now: datetime, only: int | None = None) -> list[dict[str, Any]]:
    """The opening board, or six moved prices of one book."""
    out = []
    per = ROWS // (2 * len(BOOKS))
    for game in range(per):
        if only is not None and not (only <= game < only + 3):
            continue
        for book in BOOKS if only is None else (BOOKS[tick % len(BOOKS)],):
            home = (
                0.5 + ((tick * 7 + game * 3) % 50 - 25) / 5000.0
            )  # prices that no guard rejects: such rows are sent whole
            for side, chance in (("Home", home), ("Away", 1.0 - home)):
                out.append(
                    {
                        "sportsbook": book, "event_id": f"event_{game:03d}", "sport": "basketball",
                        "league": LEAGUES[game % 4], "home_team": f"Home {game}", "away_team": f"Away {game}",
                        "market_type": "moneyline", "selection": f"{side} {game}", "selection_type": side.lower(),
                        "odds_decimal": 1.0 / (1.045 * chance),
                        "last_seen_at": now, "odds_changed_at": now,
                    }
                )  # fmt: skip
    return out


async def ours(args: argparse.Namespace) -> None:
    import uvicorn  # noqa: PLC0415
    from serving import api_of, configured  # noqa: PLC0415

    from oddsengine.live.engine import Engine  # noqa: PLC0415
    from oddsengine_service.accounts.limits import Limits  # noqa: PLC0415
    from oddsengine_service.node import Node  # noqa: PLC0415
    from oddsengine_service.tiers import TIERS, Caller  # noqa: PLC0415

    class Everybody:
        def find(self, _: str) -> Caller:
            tier = TIERS["enterprise"]
            return Caller("load", "load", tier, 10_000_000, 100_000, tier.features)

    sys.setswitchinterval(args.switch)
    limits = Limits()
    node = Node(Engine(), cast(Any, Everybody()), limits, stream_settings={"stalled": args.stalled})
    api = api_of(node)
    await asyncio.to_thread(node.warm)
    node.write(node.step, quotes(0, datetime.now(UTC)), datetime.now(UTC)).result()
    server = uvicorn.Server(configured(api))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    spent: list[float] = []
    numbers = itertools.count(1)  # a price that was there before does not move

    def run(stop: threading.Event, rate: float) -> int:
        ticks, at = 0, time.perf_counter()
        games = ROWS // (2 * len(BOOKS))
        while not stop.is_set():
            tick, ticks = next(numbers), ticks + 1
            at += 1.0 / rate
            time.sleep(max(0.0, at - time.perf_counter()))
            now = datetime.now(UTC)
            node.write(node.step, quotes(tick, now, tick % (games - 3)), now).result()
        return ticks

    def observe(seconds: float, label: str = "") -> None:
        del label
        spent.append(seconds)

    node.steps.observe = observe  # type: ignore[method-assign]

    async def turn(rate: float) -> Any:
        stop = threading.Event()
        return stop, asyncio.create_task(asyncio.to_thread(run, stop, rate))

    def cuts() -> int:
        return api.hub.subscribers.checks.cuts if api.hub is not None else 0

    await _commands(server.servers[0].sockets[0].getsockname()[1], turn, args, spent, cuts)
    await serving


async def raw(args: argparse.Namespace) -> None:
    """One `transport.write` an event and client."""
    clients: set[Any] = set()
    body = b"id: evt_1234567\nevent: odds:update\ndata: {" + b"x" * args.size + b"}\n\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

    class Writing(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.transport.write(head + b"16\r\nevent: snapshot:complete\r\n\r\n")
            clients.add(self.transport)

        def connection_lost(self, _: Any) -> None:
            clients.discard(self.transport)

    loop = asyncio.get_running_loop()
    server = await loop.create_server(Writing, "127.0.0.1", 0, backlog=8192)

    async def run(stop: threading.Event, rate: float) -> int:
        tick, at = 0, time.perf_counter()
        while not stop.is_set():
            tick += 1
            at += 1.0 / rate
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            stamp = datetime.now(UTC).isoformat(timespec="microseconds")[:26].encode()
            event = body[:60] + b'"odds_changed_at":"' + stamp + b'Z"' + body[60 + 47 :]
            chunk = b"%x\r\n%b\r\n" % (len(event), event)
            for transport in clients:
                if transport.get_write_buffer_size() < MOST_UNSENT:  # else memory grows until the machine stands still
                    transport.write(chunk)
        return tick

    async def turn(rate: float) -> Any:
        stop = threading.Event()
        return stop, asyncio.create_task(run(stop, rate))

    await _commands(server.sockets[0].getsockname()[1], turn, args, [], int)


async def _commands(port: int, turn: Any, args: argparse.Namespace, spent: list[float], cuts: Any) -> None:
    """Do what the parent says: go, stop, memory."""
    say(port=port)
    lines = commands()
    stop: Any = None
    task: Any = None
    before = began = 0.0
    while True:
        line = await lines.get()
        if line == "go":
            gc.collect()
            spent.clear()
            before, began = cpu(), time.perf_counter()
            stop, task = await turn(args.rate)
        elif line == "stop":
            stop.set()
            ended = time.perf_counter()
            ticks = await task
            steps = sorted(spent)
            p90, p99 = (steps[int(len(steps) * q)] if steps else 0.0 for q in (0.9, 0.99))
            say(ticks=ticks, cpu=cpu() - before, wall=ended - began, step_p90=p90, step_p99=p99)
        else:
            say(memory=memory(), cuts=cuts())


# ---- the client ----


async def clients(args: argparse.Namespace) -> None:
    """Hold connections; count events, and how late they are."""
    loop = asyncio.get_running_loop()
    events = total = complete = lost = 0
    lines = commands()
    mark = b'"type":"odds:update"' if args.wire == "websocket" else b"\nevent: odds:update"
    delays: list[float] = []
    measuring = False

    class Reading(asyncio.Protocol):
        def __init__(self, at: int) -> None:
            self.at, self.tail = at, b""
            self.begun = self.stopped = False

        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            if self.at < args.stopped:  # else the kernel would read a megabyte for it
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
            # A market that nobody knows changes the filter and not what fits.
            markets = f"&market=moneyline,other_{self.at % args.groups}" if args.groups > 1 else ""
            path = f"/api/v1/stream/odds?api_key={KEY}{markets}"
            more = ""
            if args.wire == "websocket":
                path = f"/api/v1/ws?channels=odds&api_key={KEY}{markets}"
                more = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                more += "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            transport.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())

        def data_received(self, data: bytes) -> None:
            nonlocal events, total, complete
            total += len(data)
            if not self.begun:
                if b"snapshot:complete" in self.tail + data:
                    self.begun = True
                    complete += 1
                    if self.at < args.stopped:
                        self.stopped = True
                        self.transport.pause_reading()
                self.tail = data[-40:]
                return
            if not measuring:
                return
            events += data.count(mark)
            if self.at % 10 == 9:
                at = data.rfind(b'odds_changed_at":"')
                if at >= 0 and len(data) >= at + 44:
                    text = data[at + 18 : at + 44].decode()
                    delays.append(time.time() - datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())

        def connection_lost(self, _: Any) -> None:
            nonlocal lost
            lost += not self.stopped

    began = time.perf_counter()
    for first in range(0, args.n, 200):
        await asyncio.gather(
            *(
                loop.create_connection(lambda at=at: Reading(at), "127.0.0.1", args.port)  # type: ignore[misc]
                for at in range(first, min(args.n, first + 200))
            )
        )
    until = time.perf_counter() + 90
    while complete < args.n and time.perf_counter() < until:
        await asyncio.sleep(0.02)
    say(complete=complete, seconds=time.perf_counter() - began)
    while True:
        line = await lines.get()
        if line == "go":
            measuring, events, total, began = True, 0, 0, time.perf_counter()
            delays.clear()
        else:
            measuring, seconds = False, time.perf_counter() - began
            late = sorted(delays)
            p50, p99 = (late[int(len(late) * q)] if late else -1.0 for q in (0.5, 0.99))
            say(events=events, bytes=total, seconds=seconds, p50=p50, p99=p99, lost=lost)


# ---- the parent ----


class Child:
    """A process that is told what to do, line by line."""

    def __init__(self, *words: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, word: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        timer = threading.Timer(ANSWER_S, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            raise SystemExit(f"{self.process.args!r} did not answer within {ANSWER_S:g} s")
        return dict(json.loads(line))

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.wait()


def measured(kind: str, n: int, args: argparse.Namespace, size: int) -> dict[str, Any]:
    more = (
        "--rate", args.rate, "--groups", args.groups, "--size", size, "--switch", args.switch,
        "--stopped", args.stopped, "--stalled", args.stalled, "--wire", args.wire,
    )  # fmt: skip
    with contextlib.ExitStack() as children:
        server = children.enter_context(Child("--role", kind, *more))
        port = server.hear()["port"]
        idle = {"cpu": 0.0, "ticks": 1, "step_p90": 0.0, "step_p99": 0.0}
        if kind == "ours":
            server.tell("go")
            time.sleep(2.0)
            server.tell("stop")
            idle = server.hear()
        server.tell("memory")
        before = server.hear()["memory"]
        client = children.enter_context(Child("--role", "clients", "--n", n, "--port", port, *more))
        joined = client.hear()
        server.tell("memory")
        held = server.hear()["memory"] - before
        server.tell("go")
        time.sleep(1.0)
        client.tell("go")
        spent, reading = -server.cpu(), -client.cpu()
        time.sleep(args.seconds / 2)
        server.tell("memory")
        middle = server.hear()
        time.sleep(args.seconds / 2)
        client.tell("stop")
        spent, reading = spent + server.cpu(), reading + client.cpu()
        server.tell("stop")
        used, got = server.hear(), client.hear()
        server.tell("memory")
        last = server.hear()
    ticks = used["ticks"] * args.seconds / used["wall"]
    own = max(spent - idle["cpu"] / idle["ticks"] * ticks, 1e-3)
    rate = got["events"] / got["seconds"]
    return {
        "server": kind, "wire": args.wire, "clients": n, "joined_s": round(joined["seconds"], 2),
        "events/s": round(rate),
        "events/cpu_s": round(rate * args.seconds / spent), "events/own_cpu_s": round(rate * args.seconds / own),
        "own_ms/update": round(own / ticks * 1e3, 3),
        "updates/s": round(used["ticks"] / used["wall"], 1), "p50_ms": round(got["p50"] * 1e3, 1),
        "p99_ms": round(got["p99"] * 1e3, 1), "cpu_share": round(spent / args.seconds, 2),
        "client_cpu_share": round(reading / args.seconds, 2),
        **{f"{name}_ms": round(used[name] * 1e3, 2) for name in ("step_p90", "step_p99")},
        **{f"idle_{name}_ms": round(idle[name] * 1e3, 2) for name in ("step_p90", "step_p99")},
        "kb_per_client": round(held / n / 1024, 1), "mb_middle": round((middle["memory"] - before) / 2**20, 1),
        "mb_after": round((last["memory"] - before) / 2**20, 1),
        "cuts": last["cuts"],
        "bytes/event": round(got["bytes"] / max(got["events"], 1)),
        "lost": got["lost"],
    }  # fmt: skip


def websockets(args: argparse.Namespace) -> None:
    """The same rows over both, in turns; the ratio is of the CPU for each update, without that of the steps."""
    ratios = []
    for n in args.clients or [300]:
        for _ in range(3):
            cost = {}
            for wire in ("sse", "websocket"):
                found = measured("ours", n, argparse.Namespace(**{**vars(args), "wire": wire}), 1000)
                print(json.dumps(found), flush=True)
                cost[wire] = found["own_ms/update"]
            ratios.append(cost["websocket"] / cost["sse"])
        print(f"{n:,} clients: CPU of WebSockets, of that of SSE: {sorted(ratios)[len(ratios) // 2]:.2f}   <= 1.3")


def suite(args: argparse.Namespace) -> None:
    """Every case that has a target, one after the other; machines differ, ratios less."""

    def run(kind: str, n: int, size: int = 1000, **more: Any) -> dict[str, Any]:
        found = measured(kind, n, argparse.Namespace(**{**vars(args), **more}), size)
        print(json.dumps(found), flush=True)
        return found

    told: list[tuple[str, str, str]] = []
    steps: dict[str, Any] = {}
    for n, least in ((100, 0.5), (1000, 0.6), (5000, 1.0)):
        ours = run("ours", n)
        raw_ = run("raw", n, ours["bytes/event"] - 60)
        ratio = ours["events/own_cpu_s"] / raw_["events/own_cpu_s"]
        told.append((f"{n:,} clients: events per CPU-second, of raw asyncio's", f"{ratio:.2f}", f">= {least:g}"))
        if n == 1000:
            steps = ours
            told.append(("1,000 clients, 100 updates/s: p99 ms from step to socket", f"{ours['p99_ms']:g}", "< 100"))
        if n == 5000:
            told.append(("5,000 clients, 100 updates/s: events/s", f"{ours['events/s']:,}", ">= 450,000"))
            told.append(("5,000 clients: p99 ms, connections lost", f"{ours['p99_ms']:g}, {ours['lost']}", "< 1000, 0"))
    groups = run("ours", 1000, groups=50)
    told.append(("1,000 clients of 50 filter sets: p99 ms", f"{groups['p99_ms']:g}", "< 150"))
    idle = run("ours", 5000, rate=0.2, seconds=10.0)
    told.append(("5,000 idle clients: KB each, beside the kernel's", f"{idle['kb_per_client']:g}", "< 25"))
    told.append(("5,000 clients through a snapshot of 1,000 rows: s", f"{idle['joined_s']:g}", "< 60"))
    before = run("ours", 900, seconds=12.0)
    beside = run("ours", 1000, stopped=100, stalled=3.0, seconds=12.0)
    ratio = beside["p99_ms"] / before["p99_ms"]
    told.append(("900 readers beside 100 that stopped: p99, as without", f"{ratio:.2f}", "<= 1.5"))
    grown = f"{beside['mb_middle']:g} -> {beside['mb_after']:g}, {beside['cuts']} cut"
    told.append(("the same: MB after the cut-off, and later", grown, "flat, 100"))
    ratios = [steps[f"{name}_ms"] / max(steps[f"idle_{name}_ms"], 1e-3) for name in ("step_p90", "step_p99")]
    told.append(("engine's steps with 1,000 streams: p90, p99, as without", "{:.2f}, {:.2f}".format(*ratios), "<= 1.5"))
    for name, figure, target in told:
        print(f"{name:<58} {figure:>24}   {target}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", default="parent")
    parser.add_argument("--clients", type=int, nargs="+", default=[])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--n", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--stopped", type=int, default=0, help="clients that stop reading after their snapshot")
    parser.add_argument("--stalled", type=float, default=30.0, help="seconds until those are cut off")
    parser.add_argument("--only", default="")
    parser.add_argument("--wire", default="sse", choices=("sse", "websocket"))
    parser.add_argument("--websocket", action="store_true", help="compare WebSockets with Server-Sent Events")
    parser.add_argument("--switch", type=float, default=0.0005, help="seconds between two switches of threads")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    if args.role != "parent":
        uvloop.run({"ours": ours, "raw": raw, "clients": clients}[args.role](args))
        return
    if args.websocket:
        websockets(args)
        return
    if not args.clients:
        suite(args)
    for n in args.clients:
        size = args.size
        for kind in ("ours", "raw"):
            if args.only and kind != args.only:
                continue
            found = measured(kind, n, args, size)
            size = found["bytes/event"] - 60 if kind == "ours" else size
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
