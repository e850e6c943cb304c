"""Metrics: each opportunity once, streams apart from requests, the process, the event loop, steps and sources."""

import asyncio
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from support.logs import logged
from support.service_running import METRICS_TOKEN, PATIENCE_S, Running, until

from oddsengine.live.engine import Engine
from oddsengine_service.errors import Problem
from oddsengine_service.feeds.status import SourceStatus
from oddsengine_service.gauges import Gauges, source_metrics
from oddsengine_service.http.middleware import Errors, RequestLog, Requests
from oddsengine_service.monitoring.metrics import Metrics
from oddsengine_service.node import Node

ROOT = Path(__file__).parents[2]


def metrics(service: Running) -> dict[str, Metric]:
    answer = httpx2.get(
        f"{service.origin}/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}, timeout=PATIENCE_S
    )
    assert answer.status_code == 200
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def value(family: Metric, suffix: str = "", **labels: str) -> float:
    """The only sample with some labels."""
    (found,) = [
        sample.value
        for sample in family.samples
        if sample.name == family.name + suffix and labels.items() <= sample.labels.items()
    ]
    return float(found)


def test_an_opportunity_that_several_views_show_counts_once(service: Running) -> None:
    engine = service.node.engine
    views = [engine.view(), engine.view(min_ev=0.5), engine.view(books=["fanduel", "draftkings", "betmgm"])]
    ids = [view.ids() for view in views]
    counted = metrics(service)["oddsengine_opportunities"]
    every = [view.ids() for view in engine.views]
    for kind in ids[0]:
        once = {ident for each in every for ident in each[kind]}
        assert value(counted, kind=kind) == len(once)
    assert sum(map(len, ids[1].values())) > 0, "or they would not be counted twice"
    assert {sample.labels["kind"] for sample in counted.samples} == set(ids[0])
    for view in views:
        view.close()


def test_how_long_a_stream_was_open_is_no_time_of_a_request(service: Running) -> None:
    def timed(route: str) -> float:
        """How many answers of a route were timed; a refused stream, here or in an earlier test, is one of them."""
        return sum(
            sample.value
            for sample in metrics(service)["oddsengine_request_seconds"].samples
            if sample.name.endswith("_count") and sample.labels["route"] == route
        )

    assert value(metrics(service)["oddsengine_streams"]) == 0
    before = timed("/stream/odds")
    with service.client("enterprise") as client:
        client.get("/odds?limit=1")
        with client.stream("GET", "/stream/odds") as stream:
            assert stream.status_code == 200
            lines = stream.iter_lines()  # the stream ends with it
            next(lines)
            assert value(metrics(service)["oddsengine_streams"]) == 1
    until(lambda: value(metrics(service)["oddsengine_stream_seconds"], "_count") > 0, "the end of the stream")
    assert timed("/odds") > 0
    assert timed("/stream/odds") == before
    counted = metrics(service)["oddsengine_requests"].samples
    assert sum(s.value for s in counted if s.name.endswith("_total") and s.labels["route"] == "/stream/odds") > 0
    refused = httpx2.get(f"{service.base}/stream/odds", headers={"X-API-Key": "demo_free"}, timeout=PATIENCE_S)
    assert refused.status_code in (403, 429)
    assert timed("/stream/odds") == before + 1, "a refusal is an answer like any other"


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "failures"),
    [
        (Problem(429, "rate_limited", "later"), 429, []),
        (caused(Problem(503, "keys_unavailable", "later"), OSError()), 503, ["OSError"]),
        (ConnectionResetError(), 499, []),
        (asyncio.CancelledError(), 499, []),
        (ZeroDivisionError(), 500, ["ZeroDivisionError"]),
    ],
)
def test_a_request_that_ends_with_an_error(
    error: BaseException, status: int, failures: list[str], streamed: bool
) -> None:
    """It is logged and counted once; a client that is still there gets the error, so a stream has not begun."""
    sent, counts = list[Any](), Metrics()
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": "/api/v1/x", "query_string": b"", "headers": [], "client": ("::1", 1)
    }  # fmt: skip

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        scope["state"]["request"].streamed = streamed
        raise error

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    began = time.perf_counter()
    call = Requests(Errors(app, ""), RequestLog(counts))(scope, receive, send)
    ends = pytest.raises(asyncio.CancelledError) if isinstance(error, asyncio.CancelledError) else nullcontext()
    with logged() as found, ends:
        asyncio.run(call)
    most = time.perf_counter() - began
    lines = found.lines
    assert [line["status"] for line in lines if line["event"] == "request"] == [status]
    assert [line["error"] for line in lines if line["event"] == "failure"] == failures
    assert [message.get("status") for message in sent] == ([] if status == 499 else [status, None])
    families = {family.name: family for family in text_string_to_metric_families(counts.text().decode())}
    assert value(families["oddsengine_requests"], "_total", status=str(status)) == 1.0
    still = streamed and status == 499
    timed = {name: "_count" in str(families[f"oddsengine_{name}_seconds"].samples) for name in ("stream", "request")}
    assert timed == {"stream": still, "request": not still}
    spent = families["oddsengine_stream_seconds" if still else "oddsengine_request_seconds"]
    assert 0.0 <= value(spent, "_sum") <= most


def test_the_process_the_event_loop_and_steps_are_measured(service: Running) -> None:
    service.advance()
    found = metrics(service)
    assert value(found["oddsengine_step_seconds"], "_count") == service.node.engine.number
    until(lambda: value(metrics(service)["oddsengine_event_loop_lag_seconds"], "_count") > 0, "a look at the loop")
    if Path("/proc/self/stat").exists():
        assert value(found["process_cpu_seconds"], "_total") > 0
        assert value(found["process_resident_memory_bytes"]) > 10_000_000
        assert value(found["process_open_fds"]) > 3


NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
METERED = SourceStatus(
    name="american", kind="the_odds_api", status="degraded", reason="late", last_payload=NOW - timedelta(seconds=40),
    last_seen=NOW - timedelta(seconds=4), payloads=7, quotes=700, events=9, quarantined=0, failures=1,
    failures_total=3, unmapped=0, refused=0, credits_left=400, credits_used=100, credits_an_hour=12.5,
    books=("fanduel",), prices=400, stale=300, conflict=True,
)  # fmt: skip
NEW = SourceStatus(
    name="new", kind="interface", status="starting", reason="", last_payload=None, last_seen=None, payloads=0,
    quotes=0, events=0, quarantined=0, failures=0, failures_total=0, unmapped=0, refused=0, credits_left=None,
    credits_used=None, credits_an_hour=None, books=(),
)  # fmt: skip


def test_sources_are_measured() -> None:
    found = {family.name.removeprefix("oddsengine_feed_"): family for family in source_metrics([METERED, NEW], NOW)}
    american = {
        name: value(family, "_total" if family.type == "counter" else "", feed="american")
        for name, family in found.items()
        if name != "status"
    }
    assert american == {
        "age_seconds": 4.0, "payload_age_seconds": 40.0, "credits_left": 400.0, "credits_used": 100.0,
        "credits_per_hour": 12.5, "prices": 400.0, "stale_ratio": 0.75,
        "payloads": 7.0, "quotes": 700.0, "failures": 3.0,
    }  # fmt: skip
    status = {s.labels["status"]: s.value for s in found["status"].samples if s.labels["feed"] == "american"}
    assert status == {"starting": 0.0, "ok": 0.0, "degraded": 1.0, "down": 0.0}
    assert {name for name, family in found.items() if any(s.labels["feed"] == "new" for s in family.samples)} == {
        "status", "prices", "payloads", "quotes", "failures",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["GET", "made-up"])
def test_methods_are_a_few(name: str) -> None:
    counted = Metrics()
    counted.answered("/odds", name, 200, 0.1)
    assert f'method="{name if name == "GET" else "other"}"' in counted.text().decode()


def test_what_fails_is_measured_before_the_node_is_ready_too() -> None:
    node = Node(Engine(), None, None)  # type: ignore[arg-type]

    def failing() -> list[tuple[dict[str, str], float]]:
        families = {family.name: family for family in Gauges(node).collect()}
        return [(sample.labels, sample.value) for sample in families["oddsengine_failing"].samples]

    assert not node.ready
    node.report("closing", "the disk is full")
    assert failing() == [({"what": "closing"}, 1.0)]
    node.report("closing", "")
    assert failing() == []
    node.close()


def test_a_delayed_board_that_fails_is_measured_until_it_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    node, now = Node(Engine(), None, None), NOW  # type: ignore[arg-type]
    node.boards.late = {60: node.engine.delayed(60)}

    def stepped() -> list[str]:
        nonlocal now
        node.step([], now)
        now += timedelta(seconds=60)
        return sorted(node.failures)

    assert [stepped() for _ in range(3)] == [[], [], []]
    with monkeypatch.context() as patch:
        patch.setattr(node.boards.late[60].replica._shown.board, "repeat", lambda *_: 1 / 0)
        with pytest.warns(RuntimeWarning, match="delayed by 60 s"):
            assert stepped() == ["board delayed by 60 s"]
    families = {family.name: family for family in Gauges(node).collect()}
    assert [sample.labels for sample in families["oddsengine_failing"].samples] == [{"what": "board delayed by 60 s"}]
    assert [stepped() for _ in range(2)] == [["board delayed by 60 s"], []]
    assert node.boards.late[60].number == 5
    node.close()


def test_every_metric_is_documented(service: Running) -> None:
    text = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    sources = {family.name for family in source_metrics([METERED], NOW)}
    for name in {name for name in metrics(service) if name.startswith("oddsengine_")} | sources:
        plain = name.removeprefix("oddsengine_")
        assert f"`{plain}`" in text or f"`{plain}_total`" in text, name
