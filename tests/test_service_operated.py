"""A node as an operator runs it, from the command line: a settings file, keys, a catalog of its own, tapes."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_running import PATIENCE_S, until

from oddsengine.tape import Tape

COMMAND = [sys.executable, "-c", "from oddsengine.cli import main; raise SystemExit(main())"]
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
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@contextmanager
def serving(folder: Path, key: str) -> Iterator[httpx.Client]:
    with subprocess.Popen(
        [*COMMAND, "serve"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            origin = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert origin, process.stderr.read() if process.stderr else ""
            with httpx.Client(base_url=f"{origin[0]}/api/v1", headers={"X-API-Key": key}, timeout=PATIENCE_S) as client:
                until(lambda: client.get("/odds?limit=1").status_code == 200, "ready")
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
    ("text", "word"), [("[books.x]\nregions = 3\n", "regions"), ("[shops.x]\n", "shops"), ("[[[", "cannot be read")]
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


def test_history_outlives_a_node_that_writes_tapes(tmp_path: Path) -> None:
    settings(tmp_path, tape=True)
    key = a_key(tmp_path)

    def told(client: httpx.Client) -> tuple[str, Any]:
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


def test_a_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "serve", "--demo", "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        origin = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert origin
        base = f"{origin[0]}/api/v1"
        until(lambda: httpx.get(f"{base}/health", timeout=PATIENCE_S).status_code == 200, "ready")
        assert httpx.get(f"{base}/odds?limit=1", headers={"X-API-Key": "demo_pro"}).status_code == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert list(tmp_path.iterdir()) == []
