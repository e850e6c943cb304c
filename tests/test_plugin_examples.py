"""The plugins of `examples/`: built as wheels, installed beside the package, and run against a node.

Nothing is downloaded, and nothing is installed into the environment of the tests.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from service.test_operated import a_key
from support.forking import CLI, PIPE, python
from support.service_running import PATIENCE_S

import oddsengine
from oddsengine.testing import Request, SourceServer, iso, now, served

ROOT = Path(__file__).parents[1]
NAMES = ("plugin_source", "plugin_fair")
MOST_LINES = 150


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both plugins, installed from their wheels."""
    pytest.importorskip("setuptools", minversion="77", reason="building needs setuptools 77: make setup installs it")
    wheels, target = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("packages")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    offline = ["--no-deps", "--no-index"]
    sources = []
    for name in NAMES:
        sources.append(tmp_path_factory.mktemp(name))
        subprocess.run(["cp", "-r", f"{ROOT / 'examples' / name}/.", sources[-1]], check=True)
    build = ["wheel", *offline, "--no-build-isolation", "--wheel-dir", str(wheels), *map(str, sources)]
    subprocess.run([*pip, *build], check=True)
    install = ["install", *offline, "--no-compile", "--target", str(target), *map(str, sorted(wheels.glob("*.whl")))]
    subprocess.run([*pip, *install], check=True)
    return target


def environ(packages: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(packages), "PYTEST_ADDOPTS": "", **more}


def cli(packages: Path) -> str:
    """The command line with the plugins."""
    return f"import sys; sys.path.insert(0, {str(packages)!r}); {CLI}"


@pytest.mark.parametrize("name", NAMES)
def test_its_own_tests_pass(name: str, packages: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(ROOT / "examples" / name / "tests")], cwd=tmp_path,
        capture_output=True, text=True, check=False,
        env=environ(packages, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTHONDONTWRITEBYTECODE="1"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_they_are_listed(packages: Path) -> None:
    with python(cli(packages), "plugins", "--format", "json", stdout=PIPE) as done:
        assert done.stdout is not None
        rows = json.loads(done.stdout.read())
    assert {
        ("oddsengine.sources", "cornerbook", "oddsengine-cornerbook", "0.1.0", None),
        ("oddsengine.fair", "weighted_books", "oddsengine-weighted-books", "0.1.0", None),
        ("oddsengine.sources", "odds_api_io", "oddsengine", oddsengine.__version__, None),
    } <= {(row["group"], row["name"], row["package"], row["version"], row["problem"]) for row in rows}


class Cornerbook(SourceServer):
    """The book on this machine, with one game."""

    def reply(self, request: Request) -> Any:
        if request.headers.get("x-api-key") != "key-of-mine":
            return {"error": "no such key"}, 401
        selections = [{"id": "w1", "side": "home", "odds": "1.80"}, {"id": "w2", "side": "away", "odds": "2.10"}]
        game = {
            "id": "g1", "home": "Boston Celtics", "away": "Los Angeles Lakers", "state": "upcoming",
            "starts_at": iso(now() + timedelta(hours=3)), "markets": [{"type": "winner", "selections": selections}],
        }  # fmt: skip
        return {"games": [game], "news": []}


def test_a_node_serves_what_the_source_reads(packages: Path, tmp_path: Path) -> None:
    key = a_key(tmp_path)
    with served(Cornerbook()) as url:
        (tmp_path / "oddsengine.toml").write_text(
            "[service]\nport = 0\n[feeds.corner]\nkind = 'cornerbook'\nsports = ['NBA']\nkey_env = 'CORNERBOOK_KEY'\n"
            f"url = '{url}'\n"
        )
        env = environ(packages, CORNERBOOK_KEY="key-of-mine")
        log = tmp_path / "log"
        with (
            log.open("w") as file,
            python(cli(packages), "serve", cwd=tmp_path, env=env, stdout=PIPE, stderr=file) as process,
        ):
            try:
                assert process.stdout is not None
                origin = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
                assert origin, log.read_text()
                base, headers = f"{origin[0]}/api/v1", {"X-API-Key": key}
                with httpx2.Client(base_url=base, headers=headers, timeout=PATIENCE_S) as client:
                    end = time.monotonic() + PATIENCE_S
                    while len(rows := client.get("/odds").json().get("data", [])) < 2:
                        assert time.monotonic() < end, log.read_text()
                        time.sleep(0.2)
                    (feed,) = client.get("/feeds").json()["data"]
            finally:
                process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
    assert sorted((row["sportsbook"], row["selection"], row["odds_decimal"]) for row in rows) == [
        ("cornerbook", "Boston Celtics", 1.8), ("cornerbook", "Los Angeles Lakers", 2.1),
    ]  # fmt: skip
    assert (feed["kind"], feed["status"], feed["reason"]) == ("cornerbook", "green", "data in time")
    assert (feed["new_fields"], feed["unknown_values"]) == (1, 0), "of its contract: the news"
    assert "key-of-mine" not in log.read_text()


def test_the_template_of_a_source_is_short() -> None:
    folder = ROOT / "examples/plugin_source"
    files = [folder / "pyproject.toml", *(folder / "cornerbook").glob("*.*")]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) < MOST_LINES
