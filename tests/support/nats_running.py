"""NATS servers on this machine, real ones, one or three of them; they end with whoever started them."""

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import nats
import pytest
from nats.js.errors import NotFoundError
from support.effort import pause
from support.forking import with_parent

PATIENCE_S = 60.0  # on a busy machine; nothing waits so long when all is well
PROGRAM = Path(sys.executable).parent / "nats-server"


def free_ports(n: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on."""
    found = [socket.socket() for _ in range(n)]
    for each in found:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in found]
    for each in found:
        each.close()
    return ports


class Server:
    """One server: it can be killed, stopped for a while, wiped and started again."""

    def __init__(
        self, folder: Path, name: str, ports: tuple[int, int, int], routes: list[int], store: Path, more: str = ""
    ) -> None:  # fmt: skip
        self.folder, self.store, self.url = folder, store, f"nats://127.0.0.1:{ports[0]}"
        self._health = f"http://127.0.0.1:{ports[2]}/healthz"
        self._process: subprocess.Popen[bytes] | None = None
        self._config = folder / f"{name}.conf"
        cluster = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
        self._config.write_text(
            f'server_name: {name}\nlisten: "127.0.0.1:{ports[0]}"\nhttp: "127.0.0.1:{ports[2]}"\nmax_payload: 8MB\n'
            f'jetstream {{ store_dir: "{store}", sync_interval: always, max_file_store: 1GB }}\n'
            + more
            + (f'cluster {{ name: test, listen: "127.0.0.1:{ports[1]}", routes: [{cluster}] }}\n' if routes else "")
        )

    def start(self) -> None:
        """Start it; `ready` says when it answers."""
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "-c", self._config],
                stdout=log,
                stderr=log,
                preexec_fn=with_parent,  # noqa: PLW1509  it calls nothing that locks
            )

    @property
    def ready(self) -> bool:
        """Whether it answers and its streams are current."""
        try:
            with urlopen(self._health, timeout=1.0) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            self._process.wait()

    def wipe(self) -> None:
        """Throw away what it stored; it does not run."""
        shutil.rmtree(self.store)

    def end(self) -> None:
        """End it, whatever state it is in."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Servers(list[Server]):
    """Servers of one cluster."""

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self]

    def delete(self, stream: str) -> None:
        """Delete a stream."""

        async def ask() -> None:
            client = await nats.connect(self.urls)
            try:
                await client.jetstream().delete_stream(stream)
            finally:
                await client.close()

        asyncio.run(ask())

    def snapshots(self) -> int:
        """How many snapshots they hold."""

        async def ask() -> int:
            client = await nats.connect(self.urls)
            try:
                return len(await (await client.jetstream().object_store("snapshots")).list())
            except NotFoundError:
                return 0
            finally:
                await client.close()

        return asyncio.run(ask())

    def leader(self, stream: str = "board-main") -> Server:
        """The server that leads a stream."""

        async def ask() -> str:
            client = await nats.connect(self.urls)
            try:
                found = await client.jetstream().stream_info(stream)
                return str(found.cluster.leader) if found.cluster else "n0"
            finally:
                await client.close()

        return self[int(asyncio.run(ask())[1:])]


@contextmanager
def servers(folder: Path, n: int = 1, stores: list[Path] | None = None, config: str = "") -> Iterator[Servers]:
    """Some servers for a while; `config` is added to their settings."""
    folder.mkdir(parents=True, exist_ok=True)
    ports = free_ports(3 * n)
    own = [(ports[3 * at], ports[3 * at + 1], ports[3 * at + 2]) for at in range(n)]
    routes = [port for _, port, _ in own] if n > 1 else []
    found = Servers(
        Server(folder, f"n{at}", own[at], routes, stores[at] if stores else folder / f"n{at}", config)
        for at in range(n)
    )
    try:
        for server in found:
            server.start()
        wait_for(lambda: all(server.ready for server in found), "servers are ready")
        yield found
    finally:
        for server in found:
            server.end()


@contextmanager
def small_disks(folder: Path, n: int, megabytes: int = 128) -> Iterator[list[Path]]:
    """File systems of a bounded size for a while, in memory; skips the test where they may not be mounted."""
    made: list[Path] = []
    try:
        for at in range(n):
            path = folder / f"disk{at}"
            path.mkdir(parents=True)
            mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)]
            try:
                failed = subprocess.run(mount, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                pytest.skip("there is no program mount")
            if failed.returncode:
                pytest.skip(f"a file system cannot be mounted: {failed.stderr.strip()}")
            made.append(path)
        yield made
    finally:
        for path in made:
            subprocess.run(["umount", "-l", str(path)], check=False)


def fill(folder: Path) -> Path:
    """Take all room that is left where a folder is; the file that takes it."""
    path = folder / "ballast"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    return path


def wait_for(done: Callable[[], bool], what: str, within: float = PATIENCE_S) -> float:
    """Wait until something is true; how long it took."""
    begun = look = time.monotonic()
    while not done():
        assert time.monotonic() - begun < within, f"{what}: not within {within:g} s"
        time.sleep(pause(look, 0.03))
        look = time.monotonic()
    return time.monotonic() - begun
