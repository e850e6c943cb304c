"""One node on one data folder, and the port of its metrics."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from support.effort import less, some
from support.forking import CLI, PIPE, Forked, python
from support.service_running import METRICS_TOKEN, PATIENCE_S, Running

from oddsengine_cli import main
from oddsengine_service.healthcheck import FILE
from oddsengine_service.lock import lock_folder
from oddsengine_service.server import serve
from oddsengine_service.settings import SettingsError, load

Process = Forked | subprocess.Popen[str]


def begin(folder: Path, **more: str) -> Process:
    """A node without a source, on a port of its own."""
    environ = {**os.environ, "ODDSENGINE_DATA_FOLDER": str(folder / "data"), **more}
    return python(CLI, "serve", "--port", "0", cwd=folder, env=environ, stdout=PIPE, stderr=PIPE)


@contextmanager
def ending(*processes: Process) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate(timeout=PATIENCE_S)


def origin(process: Process) -> str:
    """Where a node listens, once it does."""
    assert process.stdout is not None
    found = re.fullmatch(r"Page: (http://127\.0\.0\.1:\d+)/\n", process.stdout.readline())
    assert found, "the address of the page comes first"
    return found[1]


def refusal(process: Process) -> str:
    """What a node said that did not begin."""
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (2, "")
    assert "Traceback" not in err
    (sentence,) = [line for line in err.splitlines() if line.startswith("oddsengine serve: ")]
    return sentence


@pytest.mark.parametrize("how", some([signal.SIGKILL, signal.SIGTERM], 1))
def test_a_folder_is_one_nodes_until_it_ends(
    tmp_path: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However it ends. Keys are made meanwhile."""
    first = begin(tmp_path)
    with ending(first):
        origin(first)
        first.send_signal(how)
        first.communicate(timeout=PATIENCE_S)
    assert (tmp_path / "data" / FILE).exists()
    second = begin(tmp_path)
    with ending(second):
        origin(second)
        said = refusal(begin(tmp_path))
        assert f"'{tmp_path / 'data'}' is in use by another node (process {second.pid})" in said
        monkeypatch.setenv("ODDSENGINE_DATA_FOLDER", str(tmp_path / "data"))
        assert main(["keys", "create", "--account", "me", "--tier", "pro", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["key"]


def network(pid: int) -> set[int]:
    """The local ports of all the network sockets of a process."""
    links = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    tables = [Path(f"/proc/{pid}/net/{name}") for name in ("tcp", "tcp6", "udp", "udp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[9] in inodes}


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="reads /proc")
def test_one_node_opens_no_socket_but_its_own(tmp_path: Path) -> None:
    """Without `[scale]` there is no server, and nothing else is called."""
    node = begin(tmp_path)
    with ending(node):
        address = origin(node)
        for _ in range(3):
            assert httpx2.get(f"{address}/api/v1/health", timeout=PATIENCE_S).status_code in (200, 503)
            assert network(node.pid) == {int(address.rpartition(":")[2])}


def test_of_nodes_that_begin_at_the_same_moment_one_runs(tmp_path: Path) -> None:
    nodes = [begin(tmp_path) for _ in range(less(3, 2))]
    with ending(*nodes):
        said = []
        for node in nodes:
            assert node.stdout is not None
            said.append(node.stdout.readline())
        assert sum(bool(line) for line in said) == 1
        for node, line in zip(nodes, said, strict=True):
            if not line:
                assert "is in use by another node" in refusal(node)


def test_a_node_that_cannot_begin_gives_its_folder_back(tmp_path: Path, service: Running) -> None:
    environ = {"ODDSENGINE_DATA_FOLDER": str(tmp_path), "ODDSENGINE_SERVICE_PORT": str(service.port)}
    settings = load(None, environ)
    with pytest.raises(ValueError, match="cannot listen"):
        serve(settings, environ, demonstration=True, announce=lambda _: None)
    lock_folder(settings).close()


@pytest.mark.skipif(sys.platform == "win32", reason="terminals")
@pytest.mark.parametrize("options", [[], ["--log-requests"]])
def test_requests_are_logged_to_a_terminal_on_demand(tmp_path: Path, options: list[str]) -> None:
    ours, theirs = os.openpty()
    environ = {**os.environ, "ODDSENGINE_DATA_FOLDER": str(tmp_path)}
    node = python(CLI, "serve", "--port", "0", *options, cwd=tmp_path, env=environ, stdout=PIPE, stderr=theirs)
    os.close(theirs)
    with ending(node), os.fdopen(ours, errors="replace") as terminal:
        httpx2.get(f"{origin(node)}/docs", timeout=PATIENCE_S)
        node.send_signal(signal.SIGTERM)
        node.wait(PATIENCE_S)
        lines = list[str]()
        with suppress(OSError):  # how a terminal ends
            lines += iter(terminal.readline, "")
    assert any('"event":"stopped"' in line for line in lines)
    assert any('"path":"/docs"' in line for line in lines) == bool(options)


# ---- the port of metrics ----


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as some:
        some.bind((host, 0))
        return int(some.getsockname()[1])


def test_metrics_listen_on_loopback_whatever_the_service_does(tmp_path: Path) -> None:
    port = free_port()
    node = begin(tmp_path, ODDSENGINE_SERVICE_METRICS_PORT=str(port), ODDSENGINE_SERVICE_HOST="0.0.0.0")
    with ending(node):
        assert node.stdout is not None
        assert node.stdout.readline()
        answer = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S)
        assert answer.status_code == 200
        assert "oddsengine_requests" in answer.text
        assert httpx2.get(f"http://127.0.0.1:{port}/other", timeout=PATIENCE_S).status_code == 404
        with pytest.raises(httpx2.ConnectError):  # another address of the machine
            httpx2.get(f"http://127.0.0.2:{port}/metrics", timeout=PATIENCE_S)


def test_metrics_listen_where_they_are_told_and_need_their_token(tmp_path: Path) -> None:
    port = free_port("127.0.0.2")
    node = begin(
        tmp_path, ODDSENGINE_SERVICE_METRICS_PORT=str(port), ODDSENGINE_SERVICE_METRICS_HOST="127.0.0.2",
        ODDSENGINE_SERVICE_METRICS_TOKEN_ENV="SECRET_OF_METRICS", SECRET_OF_METRICS=METRICS_TOKEN,
    )  # fmt: skip
    at = f"http://127.0.0.2:{port}/metrics"
    with ending(node):
        origin(node)
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": METRICS_TOKEN}):
            refused = httpx2.get(at, headers=headers, timeout=PATIENCE_S)
            assert refused.status_code == 401
            assert "oddsengine_requests" not in refused.text
        answer = httpx2.get(at, headers={"Authorization": f"Bearer {METRICS_TOKEN}"}, timeout=PATIENCE_S)
        assert answer.status_code == 200
        assert "oddsengine_requests" in answer.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "metrics.example"])
def test_metrics_for_other_machines_need_a_token(
    tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ODDSENGINE_DATA_FOLDER", str(tmp_path))
    monkeypatch.setenv("ODDSENGINE_SERVICE_METRICS_PORT", "9000")
    monkeypatch.setenv("ODDSENGINE_SERVICE_METRICS_HOST", host)
    assert main(["serve", "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert f"service.metrics_host '{host}' is not loopback, so metrics need a token" in said


def test_a_folder_is_locked_within_a_process_too(tmp_path: Path) -> None:
    settings = load(None, {"ODDSENGINE_DATA_FOLDER": str(tmp_path)})
    first = lock_folder(settings)
    with pytest.raises(SettingsError, match=f"in use by another node .process {os.getpid()}."):
        lock_folder(settings)
    first.close()
    lock_folder(settings).close()


def test_health_is_computed_a_bounded_number_of_times_a_second(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr("oddsengine_service.api.HEALTH_RATE", 1)
    with service.client(None) as client:
        begun = time.monotonic()
        answers = [client.get("/health") for _ in range(40)]
        seconds = time.monotonic() - begun
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) <= seconds + 2
