"""Several processes over real servers: equal answers, and faults that no caller sees."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.effort import ALL, less
from support.forking import CLI, PIPE, python, ran
from support.nats_running import fill, free_ports, servers, small_disks, wait_for
from support.scale_running import Process, Run, run

from oddsengine_service import server
from oddsengine_service.settings import load

PATHS = (
    "/odds?limit=50", "/odds?market=main&sport=basketball", "/odds/best?limit=20", "/events", "/sports", "/leagues",
    "/sportsbooks", "/markets", "/opportunities/ev?min_ev=0", "/opportunities/arbitrage", "/opportunities/middles",
    "/gamestate", "/futures", "/opportunities/low_hold",
)  # fmt: skip


def equal_state(shard: Run, *processes: Process) -> None:
    """Every process holds what one undisturbed process does; so do the boards of a minute ago."""
    expected = shard.undisturbed()
    for process in processes:
        _reaches(process, expected)


def _reaches(process: Process, expected: tuple[int, str]) -> None:
    with suppress(AssertionError):
        wait_for(lambda: process.state() == expected, process.name)
    assert process.state() == expected, process.name


def equal_answers(one: Process, *others: Process) -> None:
    """Bodies and ETags are the same, whichever gateway answers."""
    for path in PATHS:
        answer = one.get(path)
        assert answer.status_code == 200, answer.text
        for other in others:
            again = other.get(path)
            assert again.text == answer.text, path
            assert (again.status_code, again.headers["etag"]) == (200, answer.headers["etag"])


def ready(*processes: Process) -> None:
    wait_for(lambda: all(process.ready for process in processes), "they are ready", 120.0)


def begun(shard: Run, *names: str) -> Iterator[Process]:
    for name in names:
        yield shard.add(name, "writer" if name.startswith("w") else "gateway")


def killed_and_replaced(shard: Run, leader: Process, other: Process, number: int) -> float:
    """Stop the writer that leads; how long it takes until the other one leads."""
    leader.send(number)
    return wait_for(lambda: other.leads, "the other writer leads", 10 * (shard.lease_s + 1.5))


def test_a_node_that_ends_at_once_does_not_begin_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now, lives, began = 0.0, [1.0, 0.0, 60.0, 2.0], list[float]()

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    def one_node(*_: Any, **__: Any) -> str:
        began.append(now)
        wait(lives[len(began) - 1])
        return "state is not the writer's" if len(began) < len(lives) else ""

    monkeypatch.setattr(server, "_serve", one_node)
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now, sleep=wait))
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    server.serve(load(None, {}), {}, demonstration=False, announce=lambda _: None)
    assert began == [0.0, 5.0, 10.0, 70.0]
    assert now == 72.0  # the last one was told to stop


def test_writers_and_gateways_that_are_killed(tmp_path: Path) -> None:
    with servers(tmp_path / "nats") as found, run(tmp_path, found, steps=less(80, 64), pause_s=0.08) as shard:
        w1, w2, g1 = begun(shard, "w1", "w2", "g1")
        ready(g1)
        wait_for(lambda: w1.leads or w2.leads, "a writer leads")
        first, second = (w1, w2) if w1.leads else (w2, w1)
        assert first.get("/odds").status_code == 503  # a writer answers no callers
        wait_for(lambda: g1.state()[0] > less(20, 10), "some steps")
        g1.send(signal.SIGKILL)
        killed_and_replaced(shard, first, second, signal.SIGKILL)
        g1.start()
        wait_for(lambda: second.done, "the last step", 300.0)
        ready(g1)
        equal_state(shard, second, g1)
        assert "restarts" not in g1.log


def test_a_writer_takes_no_port_of_a_gateway(tmp_path: Path) -> None:
    """It would get a part of the requests, and serves only its health."""
    (port,) = free_ports(1)
    common = {**os.environ, "ODDSENGINE_SCALE_SERVERS": "nats://127.0.0.1:9", "ODDSENGINE_SERVICE_PORT": str(port)}
    gateway, writer = (
        {**common, "ODDSENGINE_SCALE_ROLE": role, "ODDSENGINE_DATA_FOLDER": str(tmp_path / role)}
        for role in ("gateway", "writer")
    )
    with python(CLI, "serve", cwd=tmp_path, env=gateway, stdout=PIPE, stderr=PIPE) as process:
        try:
            assert process.stdout is not None
            assert f":{port}/" in process.stdout.readline()
            begun = time.monotonic()
            refused = ran(CLI, "serve", cwd=tmp_path, env=writer)
            assert refused.returncode == 2
            assert time.monotonic() - begun < 8.0  # it does not start first and end then
            assert f"cannot listen on 127.0.0.1 port {port}: it is in use" in refused.stderr
            assert "has no feeds" in refused.stderr
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
    assert "has no feeds" not in said  # its prices come from the log


@pytest.mark.exhaustive
def test_two_gateways_on_one_port(tmp_path: Path) -> None:
    """Both take connections; when one stops, the other takes all."""
    (port,) = free_ports(1)
    with servers(tmp_path / "nats") as found, run(tmp_path, found, steps=20, pause_s=0.05) as shard:
        w1 = shard.add("w1", "writer")
        g1, g2 = shard.add("g1", "gateway", port), shard.add("g2", "gateway", port)
        wait_for(lambda: all('"ready"' in process.log for process in (g1, g2)), "both are ready", 120.0)
        wait_for(lambda: w1.done, "the last step", 120.0)
        wait_for(lambda: g1.get("/odds?limit=1").is_success and all("/odds" in g.log for g in (g1, g2)), "both answer")
        g1.send(signal.SIGTERM)
        wait_for(lambda: not g1.alive, "one stops")
        assert all(g2.get("/odds?limit=1").status_code == 200 for _ in range(20))
        equal_state(shard, g2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("ignores", ["", "IGNORES_LEASE"])
def test_a_writer_that_sleeps_and_wakes_up_late(tmp_path: Path, ignores: str) -> None:
    with servers(tmp_path / "nats") as found, run(tmp_path, found, steps=150, pause_s=0.08) as shard:
        w1 = shard.add("w1", "writer", 0, **({ignores: "1"} if ignores else {}))
        wait_for(lambda: w1.leads, "the first writer leads", 120.0)
        w2, g1 = begun(shard, "w2", "g1")
        ready(g1, w2)
        wait_for(lambda: g1.state()[0] > 20, "20 steps")
        killed_and_replaced(shard, w1, w2, signal.SIGSTOP)
        w1.send(signal.SIGCONT)
        wait_for(lambda: "restarts" in w1.log, "the late writer is refused")
        wait_for(lambda: w2.done, "the last step", 300.0)
        equal_state(shard, w2, g1, w1)
        assert not w1.leads or "restarts" in w2.log  # a busy machine may keep it from renewing its lease


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_the_leading_server_of_three(tmp_path: Path, number: int) -> None:
    with servers(tmp_path / "nats", 3) as found, run(tmp_path, found, steps=150, pause_s=0.08, lease_s=2.0) as shard:
        w1, g1, g2 = begun(shard, "w1", "g1", "g2")
        ready(g1, g2)
        wait_for(lambda: g1.state()[0] > 20, "20 steps")
        leader = found.leader()
        leader.kill(number)
        before = g1.state()[0]
        wait_for(lambda: g1.state()[0] > before + 5, "the other two go on", 82.0)
        leader.kill(signal.SIGCONT) if number == signal.SIGSTOP else leader.start()
        wait_for(lambda: w1.done, "the last step", 300.0)
        equal_state(shard, w1, g1, g2)


@pytest.mark.exhaustive
def test_the_only_server_is_down_and_then_wiped(tmp_path: Path) -> None:
    with servers(tmp_path / "nats") as found, run(tmp_path, found, steps=150, pause_s=0.08) as shard:
        w1, g1 = begun(shard, "w1", "g1")
        ready(g1)
        wait_for(lambda: g1.state()[0] > 20, "20 steps")
        found[0].kill()
        wait_for(lambda: "log" in g1.health["checks"]["data"].get("message", ""), "the gateway says so")
        assert g1.get("/odds?limit=1").status_code == 200  # answers go on
        found[0].start()
        wait_for(lambda: w1.done, "the last step", 300.0)
        equal_state(shard, w1, g1)
        found[0].kill()
        found[0].wipe()
        found[0].start()
        wait_for(lambda: "restarts" in g1.log and "restarts" in w1.log, "both notice")
        wait_for(lambda: w1.log.count("\ndone ") == 2, "the world from its beginning", 300.0)
        ready(g1)
        equal_state(shard, w1, g1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [1, 3], ids=["of the only server", "of the leading server of three"])
def test_a_disk_that_is_full(tmp_path: Path, n: int) -> None:
    with (
        small_disks(tmp_path / "disks", n) as disks, servers(tmp_path / "nats", n, disks) as found,
        run(tmp_path, found, steps=250, pause_s=0.08) as shard,
    ):  # fmt: skip
        w1, g1 = begun(shard, "w1", "g1")
        ready(g1)
        wait_for(lambda: g1.state()[0] > 20, "20 steps")
        leader = found.leader()
        ballast = fill(leader.store)
        before = g1.state()[0]
        if n == 1:
            wait_for(lambda: w1.health["checks"]["data"]["status"] == "down", "the writer says so")
            wait_for(lambda: "steps not stored" in w1.log, "so does its log")
            assert g1.get("/odds?limit=1").status_code == 200  # answers go on
        else:
            wait_for(lambda: g1.state()[0] > before + 20, "the other two go on", 42.0)
        leader.kill()
        ballast.unlink()
        leader.start()
        wait_for(lambda: w1.done, "the last step", 300.0)
        equal_state(shard, w1, g1)


def test_a_delayed_board_without_a_snapshot_that_is_old_enough(tmp_path: Path) -> None:
    with servers(tmp_path / "nats") as found, run(tmp_path, found, steps=64, pause_s=0.0) as shard:
        w1 = shard.add("w1", "writer")
        wait_for(lambda: w1.done, "the last step", 120.0)
        shard.forked = not ALL  # in `make test-all` with the kernels that it loads itself
        w2 = shard.add("w2", "writer", ODDSENGINE_CACHE=str(tmp_path / "cache"))
        shard.forked = True
        wait_for(lambda: found.snapshots() > 0, "one is made, after the last step")
        g1 = shard.add("g1", "gateway")
        ready(g1)
        equal_state(shard, g1, w2)
        assert '"event":"kernels"' not in w2.log  # what comes from the log needs no kernels of its own


@pytest.mark.exhaustive
def test_a_start_from_a_snapshot_and_one_from_the_log(tmp_path: Path) -> None:
    with servers(tmp_path / "nats") as found, run(tmp_path, found, steps=100, pause_s=0.05) as shard:
        w1, g1 = begun(shard, "w1", "g1")
        wait_for(lambda: w1.done, "the last step", 300.0)
        ready(g1)
        g2 = shard.add("g2", "gateway")
        g3 = shard.add("g3", "gateway", NO_SNAPSHOTS="1")
        ready(g2, g3)
        equal_state(shard, g1, g2, g3)  # the board of a minute ago too
        equal_answers(g1, g2, g3)  # `detected_at` is in the bodies


@pytest.mark.exhaustive
def test_a_new_lease_and_a_stream_that_is_deleted(tmp_path: Path) -> None:
    with servers(tmp_path / "nats") as found, run(tmp_path, found, steps=60, pause_s=0.05) as shard:
        w1, g1 = begun(shard, "w1", "g1")
        wait_for(lambda: w1.done, "the last step", 300.0)
        w1.send(signal.SIGKILL)
        shard.lease_s, shard.steps = 1.5, 90  # another bucket, whose revisions begin again
        shard.pace = 0.05, 90, shard.pace[2]
        w2 = shard.add("w2", "writer")
        wait_for(lambda: w2.done, "the last step", 300.0)
        equal_state(shard, w2, g1)
        assert '"epoch":2' in w2.log
        found.delete("board-main")
        wait_for(lambda: "restarts" in g1.log, "the gateway notices")
        ready(g1)
