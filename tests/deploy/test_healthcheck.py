"""The health check of the image, run as the image runs it, against nodes on sockets of this machine."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.effort import some
from support.forking import CLI, PIPE, python
from support.service_running import PATIENCE_S, until

from oddsengine_service.healthcheck import FILE

DOCKERFILE = (Path(__file__).parents[2] / "deploy" / "Dockerfile").read_text(encoding="utf-8")


def command() -> list[str]:
    """The command of the image, with this interpreter."""
    found = re.search(r"^HEALTHCHECK .*?CMD (\[.*?\])$", DOCKERFILE, re.MULTILINE | re.DOTALL)
    assert found is not None
    program, *words = json.loads(found[1])
    assert program == "python"
    return [sys.executable, *words]


def check(folder: Path | str) -> subprocess.CompletedProcess[str]:
    """Ask the node of a data folder, with the variables that the image has, not those that the node was given."""
    environ = {**os.environ, "ODDSENGINE_DATA_FOLDER": str(folder)}
    return subprocess.run(
        command(), env=environ, cwd="/", capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as free:
        free.bind((host, 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("source", ["file", "variable", "option"])
@pytest.mark.parametrize("host", some(["0.0.0.0", "::", "127.0.0.2"], 1))
def test_a_node_is_asked_where_it_listens(source: str, host: str, tmp_path: Path) -> None:
    """Wherever its port was set; while it starts, and once it has stopped, it is not healthy."""
    port, folder = free_port(host), tmp_path / "data"
    table, words = f'[service]\nhost = "{host}"\n', ["serve", "--config", "node.toml"]
    environ: Mapping[str, str] = {**os.environ, "ODDSENGINE_DATA_FOLDER": str(folder)}
    if source == "file":
        table += f"port = {port}\n"
    elif source == "variable":
        environ = {**environ, "ODDSENGINE_SERVICE_PORT": str(port)}
    else:
        words += ["--port", str(port)]
    (tmp_path / "node.toml").write_text(table)
    assert check(folder).returncode == 1
    with python(CLI, *words, cwd=tmp_path, env=environ, stdout=PIPE, stderr=PIPE) as node:
        try:
            assert node.stdout is not None
            assert f":{port}/" in node.stdout.readline()
            until(lambda: check(folder).returncode == 0, "healthy")
            assert '"checks"' in check(folder).stdout
        finally:
            node.send_signal(signal.SIGTERM)
            node.communicate(timeout=PATIENCE_S)
    stopped = check(folder)
    assert (stopped.returncode, stopped.stderr) == (1, "")
    assert f":{port}/api/v1/health: " in stopped.stdout


def test_a_node_that_is_down_is_not_healthy(tmp_path: Path) -> None:
    class Down(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503)
            self.end_headers()
            self.wfile.write(b'{"status": "down"}')

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Down) as server:
        threading.Thread(target=server.handle_request).start()
        (tmp_path / FILE).write_text(f"1\nhttp://127.0.0.1:{server.server_port}/api/v1/health\n")
        done = check(tmp_path)
    assert done.returncode == 1
    assert '503: {"status": "down"}' in done.stdout


def test_a_node_that_hangs_is_not_healthy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (tmp_path / FILE).write_text(f"1\nhttp://127.0.0.1:{silent.getsockname()[1]}/api/v1/health\n")
        done = check(tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "timed out" in done.stdout


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file"),
        ("", "no node listens yet"),
        ("12\n", "no node listens yet"),
        ("12\nnot an address\n", "not an address"),
    ],
)
def test_what_is_no_address_is_named(content: str | None, sentence: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / FILE).write_text(content)
    done = check(tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert sentence in done.stdout
    assert FILE in done.stdout


def test_without_a_folder_it_says_what_it_needs() -> None:
    done = check("")
    assert (done.returncode, done.stderr) == (1, "")
    assert "ODDSENGINE_DATA_FOLDER" in done.stdout


def test_it_imports_the_standard_library_only() -> None:
    """It runs every ten seconds; the settings alone import for a second."""
    code = "import sys; before = {*sys.modules}; import oddsengine_service.healthcheck; print(*{*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used = {name.partition(".")[0] for name in done.stdout.split()} - sys.stdlib_module_names
    assert used == {"oddsengine_service"}
