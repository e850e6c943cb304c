"""A fifth kind of opportunity, `support.standouts`, is everywhere that the four are.

It is registered in processes of their own: the rest of this one has four kinds.
"""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import polars as pl
import pytest
from service.mcp.test_mcp import client
from support.forking import CLI as _CLI
from support.forking import DEVNULL, PIPE, SMALL_DEMO, python, ran
from support.service_running import PATIENCE_S, until
from websockets.sync.client import connect

KEY = "demo_enterprise"
_TESTS = Path(__file__).parents[1]
_REGISTERED = f"import sys; sys.path.insert(0, {str(_TESTS)!r}); import support.standouts\n"
CLI = f"{_REGISTERED}{_CLI}"

LIBRARY = f"""{_REGISTERED}
import json, tempfile
import numpy as np
import oddsengine as oe
from oddsengine.simulate import World
from dataclasses import replace
import polars as pl
from oddsengine.detection import middles
from oddsengine.detection.kinds import KINDS, MIDDLES, Threshold, register
from oddsengine.detection.sweep import Thresholds
from oddsengine.live import snapshot, snapshot_checks
from oddsengine.tape import Tape, engine_for, play, resume

# Another one in pairs of lines, which uses the finder of middles with a threshold of its own.
def wide(search):
    limits = Thresholds(search.thresholds, min_middle_ev=search.thresholds["min_wide"], min_size=np.zeros(
        search.thresholds["min_wide"].size))
    found = middles.find_hits(replace(search, thresholds=limits))
    return found._replace(legs=found.legs._replace(id=~found.legs.id))

leg = pl.List(pl.Struct({{"sportsbook": pl.String, "selection": pl.String}}))
more = {{"line": pl.Float64, "legs": leg}}
register(replace(
    MIDDLES, name="wide", one="wide", event="", schema=dict(MIDDLES.schema) | more, find=wide,
    build=lambda question, found: MIDDLES.build(question, found).with_columns(
        line=pl.lit(None, pl.Float64), legs=pl.lit(None, leg)),
    thresholds=(Threshold("min_wide", 0.0, np.inf, none=-np.inf, steps=(0.0, None)),),
))
pairs = oe.Engine()
both = pairs.view(keep=True, min_wide=-8.0, min_size=2.0, min_middle_ev=-8.0)
for _, batch in zip(range(4), World(8, events=12, live=0.3).run(600.0)):
    pairs.step(batch.quotes, batch.now, events=batch.events)
    shown = both.opportunities()
    afresh = oe.find_all(pairs.table(), now=pairs.moment, min_wide=-8.0, min_size=2.0, min_middle_ev=-8.0)
    for kind in KINDS:
        assert shown[kind]["id"].str.tail(16).sort().equals(afresh[kind]["id"].str.tail(16).sort()), kind
assert shown["wide"].height > shown["middles"].height > 0
held = snapshot.dump(pairs)
held["kinds"] = [name.replace("wide", "gone") for name in held["kinds"]]  # as if it had been another's
held["checksum"] = snapshot_checks.checksum(held)
another = oe.Engine()
snapshot.restore(another, held)
assert sum(another.open_counts().values()) == sum(pairs.open_counts().values())

folder = tempfile.mkdtemp() + "/tape"
engine, writer = resume(folder)
updates, seen, sizes = [], [], []
with writer:
    views = [engine.view(method="close", keep=True, min_lead=least) for least in (0.5, 4.0)]
    for number, batch in zip(range(12), World(5, events=6, live=0.3).run(600.0)):
        update = engine.step(batch.quotes, batch.now, events=batch.events)
        updates += [update.json(view) for view in views]
        for view, least in zip(views, (0.5, 4.0)):
            shown, afresh = (
                found["standout"].drop("odds_id", "detected_at", strict=False)
                for found in (view.opportunities(), oe.find_all(engine.table(), now=engine.moment, min_lead=least))
            )
            assert shown.equals(afresh), (number, least)
            sizes.append(shown.height)
            words = np.array([int(ident, 16) for ident in shown["id"][:3]], np.uint64)
            some = view.opportunities(["standout"], ids=words)["standout"]
            assert sorted(some["id"]) == sorted(shown["id"][:3])
assert min(sizes) > 0 and sizes[0] > sizes[1]
detected = [each for text in updates for each in json.loads(text).get("detected", ())]
born = [each for each in detected if each["kind"] == "standout"]
assert born and all(each["lead_percent"] > 0.5 - 1e-6 and len(each["legs"]) == 1 for each in born)

again, other = [], engine_for(Tape(folder))
held = [other.view(method="close", keep=True, min_lead=least) for least in (0.5, 4.0)]
for _, update in play(Tape(folder), other):
    again += [update.json(view) for view in held]
assert again == updates, "a tape gives the same bytes"
scan = oe.scan_history(folder, kinds=["standout"])
assert set(scan["kind"]) == {{"standout"}}
print("fine", len(born), scan.height)
"""


@contextmanager
def node(folder: Path) -> Iterator[str]:
    """The origin of a demo in whose process the kind is registered."""
    words = ("serve", "--demo", "--port", "0")
    with python(
        f"{_REGISTERED}{SMALL_DEMO}", *words, cwd=folder, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, forked=False
    ) as process:
        try:
            assert process.stdout is not None
            origin = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert origin, process.stderr.read() if process.stderr else ""
            with httpx2.Client(base_url=f"{origin[0]}/api/v1", headers={"X-API-Key": KEY}, timeout=PATIENCE_S) as asks:
                until(lambda: asks.get("/opportunities/standout").status_code == 200, "ready")
            yield origin[0]
        finally:
            process.send_signal(signal.SIGTERM)
            _, logged = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in logged, logged


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with node(tmp_path_factory.mktemp("registered")) as origin:
        yield origin


@pytest.fixture
def asks(origin: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=f"{origin}/api/v1", headers={"X-API-Key": KEY}, timeout=PATIENCE_S) as made:
        yield made


def test_views_tapes_and_scans_have_it() -> None:
    """Processor time 5 s: a process of its own, and a world of twelve steps that is recorded and played."""
    done = ran(LIBRARY, forked=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("fine"), done.stdout


def test_commands_have_it() -> None:
    words = ("scan", "--sample", "--kind", "standout")
    first = f"from oddsengine_cli import main; assert not main({[*words, '--format', 'json']})\n"
    done = ran(f"{_REGISTERED}{first}{_CLI}", *words, forked=False)  # both in one process, which takes two seconds
    assert done.returncode == 0, done.stderr
    found, end = json.JSONDecoder().raw_decode(done.stdout)
    rows = found["standout"]
    assert rows
    assert [row["lead_percent"] for row in rows] == sorted((row["lead_percent"] for row in rows), reverse=True)
    table = done.stdout[end:].lstrip()
    assert table.startswith(f"Standouts: prices well above those of every other book ({len(rows)})\nLead %  Event")


def test_a_list_has_it(asks: httpx2.Client) -> None:
    body = asks.get("/opportunities/standout", params={"min_lead": 1, "limit": 50, "sort": "lead"}).json()
    leads = [row["lead_percent"] for row in body["data"]]
    assert len(leads) > 3
    assert leads == sorted(leads)
    assert min(leads) >= 1.0 - 1e-6
    row = body["data"][-1]
    assert (row["start_time"] and row["player_id"] is None) or row["player_name"]
    table = pl.read_ipc_stream(asks.get("/opportunities/standout", params={"min_lead": 1, "format": "arrow"}).content)
    assert (table.schema["lead_percent"], table.schema["detected_at"]) == (pl.Float64(), pl.Datetime("us", "UTC"))
    assert table["lead_percent"].min() >= 1.0 - 1e-6  # type: ignore[operator]
    few = asks.get("/opportunities/standout", params={"min_lead": leads[-1] - 1e-4}).json()
    assert 0 < few["meta"]["total"] < body["meta"]["total"]
    bad = asks.get("/opportunities/standout", params={"sort": "profit"})
    assert bad.status_code == 400
    assert "lead" in bad.json()["error"]["message"]
    one = asks.get(f"/opportunities/standout/{row['id']}")
    assert one.status_code in (200, 404)  # the board moves
    assert one.status_code == 404 or one.json()["data"]["id"] == row["id"]
    plain = asks.get("/opportunities/standout", headers={"X-API-Key": "demo_hobby"})
    assert plain.status_code == 403
    assert plain.json()["error"]["message"].startswith("standout requires the pro tier")


def test_the_documents_have_it(origin: str) -> None:
    openapi = httpx2.get(f"{origin}/openapi.json").json()
    listed = openapi["paths"]["/opportunities/standout"]["get"]
    assert {"min_lead", "max_lead", "sort", "sport"} <= {each["name"] for each in listed["parameters"]}
    assert "lead_percent" in openapi["components"]["schemas"]["Standout"]["properties"]
    assert "standout:detected" in httpx2.get(f"{origin}/asyncapi.json").text


def test_a_stream_has_it(asks: httpx2.Client) -> None:
    names: dict[str, Any] = {}
    with asks.stream("GET", "/stream", params={"channel": "opportunities"}) as stream:
        name = ""
        for line in stream.iter_lines():
            kind, _, text = line.partition(": ")
            if kind == "event":
                name = text
            elif kind == "data":
                names[name] = json.loads(text)
            if "snapshot:complete" in names:
                break
    rows = names["standout:detected"]
    assert rows
    assert min(row["lead_percent"] for row in rows) >= 2.0 - 1e-6


def test_a_websocket_has_it(origin: str) -> None:
    address = f"ws{origin.removeprefix('http')}/ws?api_key={KEY}&channels=standout"
    with connect(address, max_size=None, open_timeout=20) as socket:
        said: dict[str, Any] = {}
        while "opportunities_snapshot" not in said:
            message = json.loads(socket.recv(PATIENCE_S))
            said[message["type"]] = message
    assert said["connected"]["features"]["standout"] is True
    assert said["subscribed"]["channels"] == ["standout"]
    assert said["opportunities_snapshot"]["standout"]


def test_tools_have_it(origin: str) -> None:
    class Served:
        base = f"{origin}/api/v1"

    async def ask() -> tuple[list[str], Any]:
        async with client(Served(), "enterprise") as made:  # type: ignore[arg-type]
            tools = await made.list_tools()
            found = await made.call_tool("find_standout", {"min_lead": 1.0, "limit": 3})
            return [tool.name for tool in tools.tools], json.loads(found.content[0].text)

    names, found = asyncio.run(ask())
    assert "find_standout" in names
    assert len(found["rows"]) == 3
    assert {"id", "event", "sportsbook", "selection", "lead_percent"} <= set(found["rows"][0])


def test_filters_and_bets_take_it(asks: httpx2.Client) -> None:
    made = asks.put("/filters/mine", json={"list": "standout", "query": "min_lead=3"})
    assert made.status_code in (200, 201), made.text
    refused = asks.put("/filters/mine", json={"list": "nothing"})
    assert refused.status_code == 400
    assert "standout" in refused.json()["error"]["message"]


def test_watch_of_a_node_has_it(origin: str) -> None:
    words = ("watch", "--url", origin, "--kind", "standout")
    environ = {**os.environ, "ODDSENGINE_API_KEY": KEY}
    with python(CLI, *words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environ, forked=False) as process:
        assert process.stdout is not None
        said = ""
        while "Lead %" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert "Standouts: " in said
