"""Writers and gateways as processes of this machine, and what tests ask of them."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
from support.effort import less
from support.forking import Forked, python
from support.nats_running import Servers, free_ports, wait_for
from support.scale_process import hashes, world

from oddsengine.live.engine import Engine
from oddsengine_service.demo import apply_batch, teams_of
from oddsengine_service.node import Node

TESTS = Path(__file__).parents[1]
CODE = (
    f"import runpy, sys; sys.path.insert(0, {str(TESTS)!r}); del sys.argv[0]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
CLIENT = httpx2.Client(verify=False, limits=httpx2.Limits(max_keepalive_connections=0))  # a TLS context costs 30 ms


class Process:
    """One process of a shard."""

    def __init__(
        self, folder: Path, name: str, role: str, servers: Servers, port: int, run: "Run", **more: str
    ) -> None:
        self.name, self.role, self.port, self._run = name, role, port, run
        self._folder = folder
        self._settings = folder / f"{name}.toml"
        self._settings.write_text(
            f'[data]\nfolder = "{folder / name}"\n[service]\nport = {port}\n'
            f'[scale]\nservers = {json.dumps(servers.urls)}\nrole = "{role}"\n'
            f"replicas = {3 if len(servers) > 2 else 1}\n"
            f"lease_s = {run.lease_s}\nsnapshot_s = {run.snapshot_s}\nlog_bytes = {64 << 20}\n"
        )
        self._more = more
        self._process: subprocess.Popen[str] | Forked | None = None
        self.start()

    def start(self) -> None:
        environ = {**os.environ, "WORLD_START": self._run.start, **self._more}
        words = str(self._run.program), str(self._settings), *map(str, self._run.pace)
        with (self._folder / f"{self.name}.log").open("ab") as out:
            self._process = python(CODE, *words, env=environ, forked=self._run.forked, stdout=out, stderr=out)

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return (self._folder / f"{self.name}.log").read_text(errors="replace")

    def send(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            self._process.wait()

    def end(self) -> None:
        if self._process is not None and self.alive:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    # ---- requests ----

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1"

    def get(self, path: str, tier: str = "enterprise", **headers: str) -> httpx2.Response:
        try:
            return CLIENT.get(self.base + path, headers={"X-API-Key": f"demo_{tier}", **headers}, timeout=60.0)
        except httpx2.TimeoutException:
            self.send(signal.SIGUSR2)  # its log says where its threads are
            time.sleep(1.0)
            raise

    @property
    def health(self) -> dict[str, Any]:
        try:
            found = CLIENT.get(self.base + "/health", timeout=5.0)
        except httpx2.HTTPError:
            return {"status": "none", "checks": {"data": {"status": "none", "message": ""}}}
        return {**found.json(), "code": found.status_code}

    def state(self) -> tuple[int, str]:
        """Number and hashes of the state, as the process says them itself."""
        before = self.log.count("\nstate ")
        self.send(signal.SIGUSR1)
        wait_for(lambda: self.log.count("\nstate ") > before and self.log.endswith("\n"), f"{self.name} says its state")
        number, found = self.log.rpartition("\nstate ")[2].splitlines()[0].split()
        return int(number), found

    @property
    def ready(self) -> bool:
        return self.health.get("code") == 200

    @property
    def leads(self) -> bool:
        """Whether it leads since it last began."""
        return '"event":"leads"' in self.log.rpartition("restarts")[2]

    @property
    def done(self) -> bool:
        """Whether the world is at its end, and this process stepped there."""
        return "\ndone " in self.log


class Run:
    """A shard on some servers, with a world of so many steps."""

    def __init__(
        self, folder: Path, servers: Servers, *, steps: int, pause_s: float, events: int = less(10, 3),
        lease_s: float = 1.0, snapshot_s: float = 1.0, forked: bool = True,
    ) -> None:  # fmt: skip
        self.folder, self.servers = folder, servers
        self.pace, self.forked = (pause_s, steps, events), forked
        self.lease_s, self.snapshot_s, self.steps = lease_s, snapshot_s, steps
        self.start, self.program = datetime.now(UTC).isoformat(), TESTS / "support" / "scale_process.py"
        self.processes: list[Process] = []

    def add(self, name: str, role: str, port: int = 0, **more: str) -> Process:
        process = Process(self.folder, name, role, self.servers, port or free_ports(1)[0], self, **more)
        self.processes.append(process)
        return process

    def undisturbed(self) -> tuple[int, str]:
        """The state of one process that makes all the steps, without any log."""
        node = Node(Engine(), None, None)  # type: ignore[arg-type]
        node.boards.delay()
        os.environ["WORLD_START"] = self.start
        made = world(self.pace[2])
        teams = teams_of(made)
        for batch in islice(made.run(1e9), self.steps):
            apply_batch(node, batch, made.scores, teams, batch.now)
        node.close()
        return node.engine.number, hashes(node)

    def logs(self) -> str:
        said = []
        for process in self.processes:
            lines = [
                line for line in process.log.splitlines() if '"event":"request"' not in line and line[:6] != "state "
            ]
            said += [f"---- {process.name}", *lines[-40:]]
        return "\n".join(said)


@contextmanager
def run(folder: Path, servers: Servers, **more: Any) -> Iterator[Run]:
    """Processes for a while; what they said is shown where a test fails."""
    made = Run(folder, servers, **more)
    try:
        yield made
    except BaseException:
        print(made.logs())
        raise
    finally:
        for process in made.processes:
            process.end()
