"""A node as an operator runs it, from the command line: a settings file, keys, a catalog of its own, tapes."""

import asyncio
import contextlib
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.effort import less, some
from support.exchanges_running import led_to
from support.forking import CLI, PIPE, SMALL_DEMO, Forked, python
from support.kalshi import Exchange, exchange
from support.service_running import PATIENCE_S, until

from oddsengine.tape import Tape
from oddsengine_cli import main

COMMAND = [sys.executable, "-c", CLI]
OWN = '[books.corner_shop]\nname = "Corner Shop"\nregions = ["UK"]\nrequires_tier = "pro"\n'


def settings(folder: Path, **data: Any) -> Path:
    """A node that reads a small table of two games that begin tomorrow."""
    start = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    table = ["sportsbook,event_id,sport,league,home_team,away_team,market_type,selection,odds_decimal,event_start_time"]
    for event, home, away in (("g1", "Boston Celtics", "Miami Heat"), ("g2", "LA Lakers", "Denver Nuggets")):
        for at, book in enumerate(("draftkings", "fanduel", "pinnacle")):
            for team, odds in ((home, 1.9 + at / 50), (away, 1.95 - at / 50)):
                table.append(f"{book},{event},basketball,nba,{home},{away},moneyline,{team},{odds},{start}")
    (folder / "table.csv").write_text("\n".join(table) + "\n")
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in data.items())
    path = folder / "oddsengine.toml"
    path.write_text(
        f'[data]\nfolder = "{folder / "data"}"\n{lines}'
        f'[service]\nport = 0\n[feeds.file]\nkind = "table"\npath = "{folder / "table.csv"}"\n'
    )
    return path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder, within this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(arguments))
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && cd "$1" && shift && exec "$@"'


def run_read_only(
    disk: Path, *arguments: str, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to whom a folder, its home too, is a disk that cannot be written, which root feels as well."""
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", _READ_ONLY, "sh", disk, *arguments], capture_output=True, text=True,
        timeout=PATIENCE_S, check=False, env={**os.environ, "HOME": str(disk), **(environ or {})},
    )  # fmt: skip


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A folder that `run_read_only` can make read-only."""
    if shutil.which("unshare") is None or run_read_only(tmp_path, "true").returncode:
        pytest.skip("no read-only disk can be had here: needs unshare and mount of Linux, and the right to use them")
    assert run_read_only(tmp_path, "touch", "written").returncode
    return tmp_path


@contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple[Forked | subprocess.Popen[str], str]]:
    """A node that listens, and its base; whoever starts it ends it."""
    code = SMALL_DEMO if "--demo" in options else CLI
    with python(code, "serve", *options, cwd=folder, stdout=PIPE, stderr=PIPE) as process:
        try:
            assert process.stdout is not None
            origin = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert origin, process.stderr.read() if process.stderr else ""
            yield process, f"{origin[0]}/api/v1"
        finally:
            process.kill()  # if it has not ended by then


@contextmanager
def ready(base: str, key: str) -> Iterator[httpx2.Client]:
    """A client of a node that has prices to give."""
    with httpx2.Client(base_url=base, headers={"X-API-Key": key}, timeout=PATIENCE_S) as client:
        until(lambda: client.get("/odds?limit=1").status_code == 200, "ready")
        yield client


@contextmanager
def serving(folder: Path, key: str, *options: str) -> Iterator[httpx2.Client]:
    with started(folder, *options) as (process, base):
        try:
            with ready(base, key) as client:
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            _, logged = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in logged


def a_key(folder: Path) -> str:
    made = run(folder, "keys", "create", "--account", "me", "--tier", "enterprise", "--json")
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["key"])


def test_a_catalog_of_ones_own_is_known_to_a_node(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    settings(tmp_path, catalog="own.toml")
    with serving(tmp_path, a_key(tmp_path)) as client:
        books = client.get("/sportsbooks?catalog=true&include_unlisted=true&include_inactive=true").json()["data"]
    (book,) = (each for each in books if each["id"] == "corner_shop")
    assert (book["name"], book["regions"], book["requires_tier"]) == ("Corner Shop", ["UK"], "pro")


@pytest.mark.parametrize(
    ("text", "word"),
    [("[books.x]\nregions = 3\n", "regions"), ("[shops.x]\n", "shops"), ("[[[", "not valid TOML")],
)
def test_a_catalog_that_cannot_be_is_refused_at_start(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    settings(tmp_path, catalog="own.toml")
    for command in (["serve"], ["feeds", "check"]):
        refused = run(tmp_path, *command)
        assert refused.returncode == 2
        assert "data.catalog: own.toml" in refused.stderr
        assert word in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("server", ["smtp.example.com:secret", "https://user:secret@smtp.example.com"])
def test_a_mail_server_that_is_none_is_refused_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    with settings(tmp_path).open("a") as file:
        file.write('[alerts]\nmail_env = "MAIL"\n')
    monkeypatch.setenv("MAIL", server)
    refused = run(tmp_path, "serve")
    assert (refused.returncode, refused.stderr) == (
        2,
        "oddsengine serve: oddsengine.toml: alerts.mail_env must name a variable that holds a mail server such as "
        "mailtos://USER:PASSWORD@smtp.example.com\n",
    )


def test_history_outlives_a_node_that_keeps_an_archive(tmp_path: Path) -> None:
    with settings(tmp_path, tape=True).open("a") as file:
        file.write(f'[archive]\nto = "{tmp_path / "archive"}"\n')
    key = a_key(tmp_path)

    def told(client: httpx2.Client) -> tuple[str, Any]:
        until(lambda: bool(client.get("/odds?limit=1").json()["data"]), "prices")
        event = client.get("/events?limit=1").json()["data"][0]["id"]
        return event, client.get(f"/odds/history?event={event}&limit=200").json()["data"]

    with serving(tmp_path, key) as client:
        event, first = told(client)
    with serving(tmp_path, key) as client:
        again, second = told(client)
    assert event == again
    openings = {entry["id"]: entry["opening"] for entry in first}
    assert openings
    assert {entry["id"]: entry["opening"] for entry in second} == openings  # not those of the second start
    tapes = sorted((tmp_path / "data" / "tapes").iterdir())
    assert [Tape(path).torn for path in tapes] == [None, None]


# ---- a disk that cannot be written ----


@pytest.mark.parametrize("used", some([True, False], 1))
def test_a_node_on_a_read_only_disk_says_so(disk: Path, used: bool) -> None:
    settings(disk)
    (disk / "data").mkdir()
    if used:
        a_key(disk)
    refused = run_read_only(disk, *COMMAND, "serve")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "oddsengine serve: oddsengine.toml: a node must be able to write to data.folder, "
        f"got '{disk / 'data'}': read-only file system\n"
    )
    keys = run_read_only(disk, *COMMAND, "keys", "create", "--account", "me", "--tier", "pro")
    assert keys.returncode == 2
    assert len(keys.stderr.splitlines()) == 1
    assert str(disk / "data" / "keys.sqlite") in keys.stderr
    assert f"{disk / 'data'} must be a folder that can be written" in keys.stderr or "read-only file" in keys.stderr


@pytest.mark.exhaustive
def test_only_the_data_folder_has_to_be_writable(disk: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Program, settings, home and the folder it is started in may be on a read-only disk."""
    data = tmp_path_factory.mktemp("data")
    settings(disk)
    script = (
        "import re, signal, subprocess, sys, httpx2\n"
        f"node = subprocess.Popen({[*COMMAND, 'serve']!r}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)\n"
        "origin = re.search('http://127.0.0.1:[0-9]+', node.stdout.readline())[0]\n"
        "print(httpx2.get(origin + '/api/v1/account', timeout=30).status_code)\n"
        "node.send_signal(signal.SIGTERM)\n"
        "sys.stderr.write(node.communicate(timeout=30)[1])\n"
    )
    ran = run_read_only(disk, sys.executable, "-c", script, environ={"ODDSENGINE_DATA_FOLDER": str(data)})
    assert ran.stdout == "401\n", ran.stderr
    assert "Traceback" not in ran.stderr
    assert (data / "keys.sqlite").exists()


# ---- the end of a node under load ----


class Load:
    """Clients that ask without a pause until the node is gone, and listen to it."""

    def __init__(self, base: str, key: str) -> None:
        self.base, self.headers = base, {"X-API-Key": key}
        self.answers: list[int] = []
        self.made: list[str] = []
        self.faults: list[str] = []
        self.streams = {"listening": 0, "ended": 0}
        work: list[Callable[[], None]] = [self._ask, self._ask, self._make_keys, self._listen, self._listen]
        self._threads = [threading.Thread(target=self._run, args=(each,), daemon=True) for each in work]
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Until all of it goes on."""
        until(lambda: len(self.answers) > 50 and len(self.made) > 5 and self.streams["listening"] == 2, "load")
        assert not self.faults, self.faults

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (httpx2.ConnectError, httpx2.ReadError, httpx2.WriteError):  # gone
            pass
        except httpx2.RemoteProtocolError as error:
            if "without sending a response" not in str(error):  # gone too, but in the middle of an answer
                self.faults.append(str(error))
        except Exception as error:
            self.faults.append(repr(error))

    def _ask(self) -> None:
        with httpx2.Client(base_url=self.base, headers=self.headers, timeout=PATIENCE_S) as client:
            while True:
                for path in ("/odds?limit=200", "/opportunities/ev?min_ev=-50", "/account"):
                    self.answers.append(client.get(path).status_code)

    def _make_keys(self) -> None:
        with httpx2.Client(base_url=self.base, headers=self.headers, timeout=PATIENCE_S) as client:
            while True:
                answer = client.post("/account/keys", json={"name": "more"})
                self.answers.append(answer.status_code)
                if answer.status_code == 201:
                    self.made.append(answer.json()["data"]["key"])

    def _listen(self) -> None:
        with (
            httpx2.Client(base_url=self.base, headers=self.headers, timeout=PATIENCE_S) as client,
            client.stream("GET", "/stream/all") as answer,
        ):
            self.answers.append(answer.status_code)
            for line in answer.iter_lines():
                self.streams["listening"] += line == "event: snapshot:complete"
        self.streams["ended"] += 1  # with the last chunk, else it had raised


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A folder with a node's settings, and a key that may ask as often as it can."""
    settings(tmp_path)
    monkeypatch.setenv("ODDSENGINE_FEEDS_FILE_INTERVAL", "0.3")
    words = ("--account", "me", "--tier", "enterprise", "--rate", "1000000", "--json")
    made = run(tmp_path, "keys", "create", *words)
    assert made.returncode == 0, made.stderr
    return tmp_path, str(json.loads(made.stdout)["key"])


def test_a_node_that_is_told_to_stop_under_load(busy: tuple[Path, str]) -> None:
    """Requests are answered whole or refused, streams end properly, and it takes no longer than is documented."""
    folder, key = busy
    with started(folder) as (process, base):
        with ready(base, key):
            load = Load(base, key)
            load.wait()
        process.send_signal(signal.SIGTERM)
        _, logged = process.communicate(timeout=20)  # streams have 5 s, requests 10 s
        load.join()
    assert not load.faults, load.faults
    assert load.streams["ended"] == 2
    assert set(load.answers) <= {200, 201, 503}
    assert "Traceback" not in logged
    assert [json.loads(line)["event"] for line in logged.splitlines()][-1] == "stopped"
    with started(folder) as (process, base), ready(base, load.made[-1]) as client:
        assert client.get("/account").status_code == 200
        assert len(client.get("/account/keys").json()["data"]) >= len(load.made) + 1
        process.send_signal(signal.SIGTERM)
        assert "Traceback" not in process.communicate(timeout=20)[1]


def test_a_node_that_is_killed_under_load_comes_back(busy: tuple[Path, str]) -> None:
    """The folder is free at once, keys whose making was answered work, and the databases are whole."""
    folder, key = busy
    made = [key]
    for _ in range(less(2, 1)):
        with started(folder) as (process, base), ready(base, key) as client:
            for each in made[-20:]:
                assert client.get("/account", headers={"X-API-Key": each}).status_code == 200
            load = Load(base, key)
            load.wait()
            process.kill()
            _, logged = process.communicate(timeout=20)
            load.join()
        made += load.made
        assert "Traceback" not in logged
    for name in ("keys.sqlite", "closing.sqlite"):
        with contextlib.closing(sqlite3.connect(folder / "data" / name)) as file:
            assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert len(made) > less(10, 5)


# ---- live prices without a settings file ----


def test_live_prices_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server that speaks Kalshi's protocol, beside a settings file whose feeds are not read."""
    settings(tmp_path)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def of_loop(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE_S)

    served = exchange(Exchange())
    try:
        monkeypatch.setenv("ODDSENGINE_FEEDS_KALSHI_URL", of_loop(served.__aenter__())["url"])
        with serving(tmp_path, "demo_enterprise", "--live", "kalshi", "--sport", "nfl", "--port", "0") as client:
            until(lambda: client.get("/odds").json().get("data"), "prices")
            rows = client.get("/odds").json()["data"]
            assert {(row["sportsbook"], row["home_team"]) for row in rows} == {("kalshi", "Seattle Seahawks")}
            assert client.get("/opportunities/ev").json()["meta"]["source"] == "live"
            origin = str(client.base_url).removesuffix("/api/v1/")
            assert 'data-demo-key="demo_enterprise" data-market="" data-live=""' in client.get(f"{origin}/").text
            assert client.get(f"{origin}/live/state").status_code == 404  # the choice is of the demo
    finally:
        of_loop(served.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


def folder_of(base: str) -> Path:
    """The folder of a demo, which is there as long as it runs."""
    locks = Path(tempfile.gettempdir()).glob("oddsengine-demo-*/node.lock")
    return next(lock.parent for lock in locks if f"{base}/health" in lock.read_text())


def test_a_demo_for_other_machines_offers_no_live_prices(tmp_path: Path) -> None:
    with started(tmp_path, "--demo", "--host", "0.0.0.0", "--port", "0") as (process, base):
        assert base.startswith("http://127.0.0.1:")
        with ready(base, "demo_pro") as client:
            assert client.get("/odds?limit=1").json()["data"]
            origin = str(client.base_url).removesuffix("/api/v1/")
            assert client.get(f"{origin}/live/state").status_code == 404
            assert 'data-live=""' in client.get(f"{origin}/").text
        folder = folder_of(base)
        assert (folder / "keys.sqlite").is_file()
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert not folder.exists()
    assert "Anyone who reaches this port can use the demo: its keys are public." in said


def test_the_demo_offers_live_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here of a server that nobody runs."""
    for name in ("kalshi", "polymarket"):
        for variable, value in led_to(name, {"url": "http://127.0.0.1:9"}).items():
            monkeypatch.setenv(variable, value)
    with serving(tmp_path, "demo_enterprise", "--demo", "--port", "0") as client:
        folder = folder_of(str(client.base_url).rstrip("/"))
        url = str(client.base_url).removesuffix("/api/v1/") + "/live/state"
        assert client.get(url).json()["data"]["state"] == "off"
        assert client.post(f"{url}?league=nba").json()["data"]["state"] == "starting"
        until(lambda: client.get(url).json()["data"]["state"] != "starting", "an answer")
        said = client.get(url).json()["data"]
        assert (said["state"], said["reason"]) == ("failed", "Kalshi cannot be reached; Polymarket cannot be reached")
    assert not folder.exists()  # ended by SIGTERM


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--live", "kalshi"], "--live takes sources and --sport their leagues: --live kalshi,polymarket --sport nfl"),
        (["--sport", "nfl"], "--live takes sources and --sport their leagues: --live kalshi,polymarket --sport nfl"),
        (["--live", "kalshi", "--sport", "nfl", "--demo"], "give either --live or --demo, got both"),
        (["--live", "kalshi", "--sport", "nfl", "--config", "x.toml"], "give either --live or --config, got both"),
        (["--live", "nobody", "--sport", "nfl"], "'nobody' is not a kind of source; allowed: "),
        (["--live", "table", "--sport", "nfl"], "oddsengine.toml: feeds.table needs path or url"),
    ],
)
def test_live_prices_that_cannot_be_served(tmp_path: Path, words: list[str], reason: str) -> None:
    refused = run(tmp_path, "serve", *words)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"oddsengine serve: {reason}")
