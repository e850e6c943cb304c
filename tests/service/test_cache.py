"""The response cache in front of the router, and the threads behind it: equal bytes, in order, fair to every caller."""

import asyncio
import gzip
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import httpx2
import msgspec
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from support.live_strategies import feed, row_ids
from support.service_running import Running, until

from oddsengine.live.engine import Engine
from oddsengine.query import Index, RowFilter
from oddsengine_service.accounts.keys import KeyStore, KeyTerms
from oddsengine_service.errors import Problem
from oddsengine_service.http.access import Access
from oddsengine_service.http.cache import Cache
from oddsengine_service.http.endpoints import Answer
from oddsengine_service.http.request import Request
from oddsengine_service.http.responses import CachedResponse
from oddsengine_service.pool import QUICK, Pool, Turns
from oddsengine_service.wire.odds_response import RowEncoder, odds

PATHS = (
    "/odds?limit=7", "/odds?market=main&min_odds=-200&limit=9", "/odds/best?limit=5", "/opportunities/ev?limit=3",
    "/opportunities/arbitrage?min_profit=0", "/opportunities/middles?limit=2", "/opportunities/low_hold?limit=2",
    "/sports", "/markets", "/odds?limit=0", "/odds?sport=nope", "/nowhere", "/events/none",
    "/odds?sort=sportsbook&limit=3", "/account", "/opportunities/arbitrage?format=csv",
)  # fmt: skip
PIECE = ("/odds?limit=1", "/stream?channel=opportunities")
SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=max(3, settings().max_examples // 8))
Answered = tuple[int, dict[str, str], bytes]
MOVING = {"date", "x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    server = Running(tmp_path_factory.mktemp("direct")).start()
    yield server
    server.stop()


def asked(running: Running, path: str, **headers: str) -> Answered:
    """An answer over a socket."""
    running.clock.pass_minute()
    line = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    line.request("GET", f"/api/v1{path}", headers={"X-API-Key": "demo_enterprise", **headers})
    got = line.getresponse()
    found = got.status, {name.lower(): value for name, value in got.getheaders()}, got.read()
    line.close()
    return found


def steady(answer: Answered) -> Answered:
    status, headers, body = answer
    return status, {name: value for name, value in headers.items() if name not in MOVING | {"connection"}}, body


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_what_is_kept_is_what_was_made(running: Running, path: str, coding: str) -> None:
    ways = [asked(running, path, **{"Accept-Encoding": coding}) for _ in range(2)]
    if path == "/account":  # its numbers move with every request
        ways = [(status, headers, b"") for status, headers, _ in ways]
    first, second = map(steady, ways)
    assert first == second
    assert set(ways[0][1]) == set(ways[1][1])


def test_an_answer_is_computed_once_a_board(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = running.service.api.routes["/odds"].endpoints
    endpoint, calls = methods["GET"], list[Any]()

    def counted(ask: Any) -> Any:
        calls.append(ask)
        return endpoint.answer(ask)

    monkeypatch.setitem(methods, "GET", replace(endpoint, answer=counted))
    for _ in range(3):
        assert asked(running, "/odds?limit=3&offset=2")[0] == 200
    assert len(calls) == 1
    running.advance()
    assert asked(running, "/odds?limit=3&offset=2")[0] == 200
    assert len(calls) == 2


@pytest.mark.parametrize("end", [None, Problem(400, "validation_error", "no"), asyncio.CancelledError()])
def test_equal_requests_wait_for_one_computation(running: Running, end: BaseException | None) -> None:
    """An error is theirs too, and the next one begins anew; if whoever began it goes away, the others do not."""
    node, pool, calls, go = running.node, Pool(), list[int](), threading.Event()
    cache = Cache(node, Access(node), pool)
    scope = {"method": "GET", "path": "/api/v1/x", "query_string": b"", "headers": []}

    def compute() -> CachedResponse:
        calls.append(1)
        go.wait(30)
        if isinstance(end, Problem) and len(calls) == 1:
            raise end
        return CachedResponse(Answer(b"{}"))

    async def run() -> None:
        def begin() -> asyncio.Task[CachedResponse]:
            request = Request(b"req_1", scope, frozenset())
            return asyncio.create_task(cache.answer(request, lambda: pool.submit("one", compute)))

        tasks = [begin() for _ in range(3)]
        await asyncio.sleep(0)
        if isinstance(end, asyncio.CancelledError):
            tasks[0].cancel()
        go.set()
        first, *others = await asyncio.gather(*tasks, return_exceptions=True)
        assert len(calls) == 1
        if isinstance(end, Problem):
            assert first is others[0] is others[1] is end
        else:
            assert isinstance(others[0], CachedResponse)
            assert others == [others[0]] * 2
            assert type(first) is asyncio.CancelledError if end else first is others[0]
        assert isinstance(await begin(), CachedResponse)
        assert len(calls) == (2 if isinstance(end, Problem) else 1)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_shared_answer_is_computed_at_the_first_turn_of_whoever_waits(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the queue of the account that asked first, which has other requests before it."""
    methods, go, path = running.service.api.routes["/odds"].endpoints, threading.Event(), "/odds?limit=2&offset=17"
    endpoint = methods["GET"]

    def answer(context: Any) -> Any:
        if context.query.limit == 1:
            go.wait(60)
        return endpoint.answer(context)

    monkeypatch.setitem(methods, "GET", replace(endpoint, answer=answer))
    pool, keys, got = running.service.api.pool, running.node.keys, list[int]()
    assert isinstance(keys, KeyStore)
    running.advance()  # nothing is cached
    costly = [f"/odds?limit=1&sort=sport&offset={at}" for at in range(5)]
    threads = []
    for at, each in enumerate([*costly, path]):
        thread = threading.Thread(target=lambda each=each: got.append(asked(running, each)[0]))
        threads.append(thread)
        thread.start()
        until(lambda at=at: sum(map(len, pool._waiting.values())) == max(0, at - 1))  # type: ignore[misc]
    try:
        other = keys.create("other", KeyTerms("enterprise")).key
        assert asked(running, path, **{"X-API-Key": other})[0] == 200
        assert not go.is_set()
    finally:
        go.set()
        for thread in threads:
            thread.join(60)
    assert got == [200] * 6


def test_a_cached_response_is_for_its_method_and_its_caller(running: Running) -> None:
    with httpx2.Client(base_url=running.base, timeout=30.0) as client:
        running.clock.pass_minute()
        for _ in range(2):
            assert client.get("/sports").headers["x-tier"] == "free"
        key = {"X-API-Key": "demo_pro"}
        kept = [client.get("/sports", headers=key).headers for _ in range(2)]
        assert [headers["x-tier"] for headers in kept] == ["pro", "pro"]
        assert int(kept[0]["x-ratelimit-remaining"]) == int(kept[1]["x-ratelimit-remaining"]) + 1
        assert client.head("/sports", headers=key).status_code == 200
        assert client.post("/sports", headers=key).status_code == 405
        assert client.get("/sports", headers={"X-API-Key": "nobody"}).status_code == 401


def test_whoever_is_served_from_the_cache_is_active(running: Running) -> None:
    active = []
    with httpx2.Client(base_url=running.base, timeout=30.0) as client:
        for key in ("demo_pro", "demo_sharp") * 2:
            running.clock.pass_minute()
            assert client.get("/sports", headers={"X-API-Key": key}).status_code == 200
            active.append(running.service.api.pool._active[0][0])
    assert active[2:] == active[:2] != active[1:3]


def test_requests_to_unknown_paths_are_counted_by_the_key_in_their_headers(running: Running) -> None:
    counted = "x-ratelimit-remaining"
    with httpx2.Client(base_url=running.base, timeout=30.0) as client:
        for path in ("/nowhere", "/nowhere/at/all"):
            assert counted in client.get(path, headers={"X-API-Key": "demo_pro"}).headers
            assert counted not in client.get(path, headers={"X-API-Key": "nobody"}).headers
            assert counted not in client.get(path).headers
            assert counted not in client.get(f"{path}?api_key=demo_pro").headers


def test_an_address_has_so_many_invalid_keys_a_minute(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oddsengine_service.http.access.FAILED_RATE", 3)
    with httpx2.Client(base_url=running.base, timeout=30.0) as client:
        for _ in range(2):
            running.clock.pass_minute()
            found = [client.get("/odds", headers={"X-API-Key": "nobody"}) for _ in range(5)]
            assert [each.status_code for each in found] == [401, 401, 401, 429, 429]
            assert "3 invalid keys a minute" in found[-1].json()["error"]["message"]
            assert client.get("/sports", headers={"X-API-Key": "demo_pro"}).status_code == 200


def test_what_is_kept_for_a_free_key_is_not_for_nobody(running: Running) -> None:
    """Both have the rights of the free tier, but one may not ask."""
    path = "/odds?limit=2&offset=1"
    for _ in range(2):
        assert asked(running, path, **{"X-API-Key": "demo_free"})[0] == 200
    with running.client(None) as client:
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"X-API-Key": "nobody"}).status_code == 401
    free, pro = (asked(running, path, **{"X-API-Key": f"demo_{tier}"})[1]["x-tier"] for tier in ("free", "pro"))
    assert (free, pro) == ("free", "pro")


def test_an_account_fills_only_its_share_of_the_cache(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oddsengine_service.http.cache.BYTES", 200_000)
    running.advance()
    first = asked(running, "/odds?limit=1", **{"X-API-Key": "demo_sharp"})
    for offset in range(20):
        assert asked(running, f"/odds?limit=20&offset={offset}", **{"X-API-Key": "demo_pro"})[0] == 200
    version = running.service.api.cache._versions[0]
    assert 30_000 < max(version.by_account.values()) <= 50_000
    assert len(version.answers) < 20
    assert steady(asked(running, "/odds?limit=1", **{"X-API-Key": "demo_sharp"})) == steady(first)


def test_accounts_take_turns_in_the_answer_threads() -> None:
    """One with many requests has half of the threads at most, and the other's request comes next."""

    async def run() -> list[str]:
        pool, order, lock = Pool(threads=4, share=2), list[str](), threading.Lock()
        busy, most, release = [0], [0], threading.Event()

        def job(name: str) -> None:
            with lock:
                order.append(name)
                busy[0] += name == "hog"
                most[0] = max(most[0], busy[0])
            if name == "hog":
                release.wait(20)
            with lock:
                busy[0] -= name == "hog"

        hogs = [asyncio.create_task(pool.run("hog", lambda: job("hog"))) for _ in range(10)]
        await asyncio.sleep(0)
        others = [asyncio.create_task(pool.run("other", lambda: job("other"))) for _ in range(5)]
        await asyncio.gather(*others)
        assert not any(hog.done() for hog in hogs)
        release.set()
        await asyncio.gather(*hogs)
        assert most == [2]
        return order

    assert asyncio.run(asyncio.wait_for(run(), 60))[:7].count("other") == 5


def test_quick_jobs_run_on_the_event_loop_after_one_in_a_thread() -> None:
    """Jobs of a kind whose last one took long, or of an account with others waiting or without a budget, do not."""

    def job(seconds: float = 0.0) -> int:
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass
        return threading.get_ident()

    async def run() -> None:
        here, pool, release = threading.get_ident(), Pool(clock=lambda: 0.0), threading.Event()
        assert pool.run_here("one", job, "list") is None
        assert await pool.run("one", job) != here
        assert pool.run_here("one", job, None) is None
        assert await pool.run("one", job, "list") != here
        assert pool.run_here("one", job, "list") == here
        assert pool.run_here("one", job, "another") is None
        assert pool.run_here("one", lambda: job(2 * QUICK), "list") == here
        assert pool.run_here("one", job, "list") is None
        assert await pool.run("one", job, "list") != here
        before = [asyncio.create_task(pool.run("one", lambda: release.wait(20))) for _ in range(3)]
        await asyncio.sleep(0)
        assert pool.run_here("one", job, "list") is None
        assert pool.run_here("two", job, "list") == here
        release.set()
        await asyncio.gather(*before)
        assert pool.run_here("one", job, "list") == here
        pool._charge("one", 3.0)
        pool.note("two")
        assert pool.run_here("one", job, "list") is None

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize(("path", "quick"), [
    ("/odds?limit=5&min_odds=-{}", True), ("/odds/best?limit=5&offset={}", True),
    ("/opportunities/ev?limit=5&max_ev={}", True), ("/opportunities/arbitrage?limit=5&min_profit=0.{}", True),
    ("/odds?limit=5&sort=sport&min_odds=-{}", False), ("/odds?group_by=event&min_odds=-{}", False),
])  # fmt: skip
def test_lists_that_differ_in_limits_are_quick(
    running: Running, monkeypatch: pytest.MonkeyPatch, path: str, *, quick: bool
) -> None:
    pool, run_here, made = running.service.api.pool, running.service.api.pool.run_here, set[bool]()

    def noted(*job: Any) -> Any:
        response = run_here(*job)
        made.add(response is not None)
        return response

    monkeypatch.setattr(pool, "run_here", noted)
    monkeypatch.setattr("oddsengine_service.pool.QUICK", 1.0)  # on a busy machine, too
    for at in range(200):
        assert asked(running, path.format(200 + at))[0] == 200
        if True in made or (not quick and at > 10):
            break
    assert made == ({True, False} if quick else {False})


@pytest.mark.parametrize("others", [True, False])
def test_while_others_are_active_an_account_has_its_budget(*, others: bool) -> None:
    """After a costly answer it waits for seconds to come; alone it does not."""

    async def run() -> int:
        now = [0.0]
        pool = Pool(clock=lambda: now[0])
        pool._charge("hog", 3.0)  # more than it may save up
        if others:
            pool.note("other")
        hog = asyncio.create_task(pool.run("hog", lambda: None))
        waited = 0
        while not hog.done():
            await asyncio.sleep(0.005)
            if others:
                assert await pool.run("other", lambda: "now") == "now"
                now[0] += 0.5
                waited += 1
        return waited

    waited = asyncio.run(asyncio.wait_for(run(), 60))
    assert waited >= 8 if others else waited == 0


def test_jobs_of_streams_go_to_who_used_the_least_time() -> None:
    now, done = [0.0], list[str]()
    turns = Turns(clock=lambda: now[0])

    def run(times: int) -> None:
        for _ in range(times):
            job = turns.next()
            assert job is not None
            job()

    def put(account: str, seconds: float, name: str) -> None:
        def job() -> None:
            now[0] += seconds
            done.append(name)

        turns.put(account, job)

    for n in range(3):
        put("hog", 3.0, f"hog{n}")
    run(1)
    for n in range(4):
        put("other", 1.0, f"other{n}")
    run(6)
    assert done == ["hog0", "other0", "other1", "other2", "hog1", "other3", "hog2"]
    now[0] += 100.0  # time in which nobody waits counts for nobody
    for n in range(2):
        put("hog", 1.0, f"again{n}")
        put("late", 1.0, f"late{n}")
    run(4)
    assert done[-4:] == ["late0", "late1", "again0", "again1"]
    put("hog", 1.0, "whole")
    turns.put("hog", lambda: done.append("next part"), first=True)
    run(2)
    assert done[-2:] == ["next part", "whole"]
    turns.end()
    assert turns.next() is None


def test_a_request_that_waits_is_counted_once(running: Running) -> None:
    running.clock.pass_minute()
    line = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    left = []
    for path in ("/odds?limit=3", "/account", "/odds?sort=-odds_american&limit=2", "/odds?limit=3", "/nowhere"):
        line.request("GET", f"/api/v1{path}", headers={"X-API-Key": "demo_pro"})
        got = line.getresponse()
        got.read()
        left.append(int(got.headers["x-ratelimit-remaining"]))
    line.close()
    assert left == [left[0] - n for n in range(5)]


@contextmanager
def held(hold: Callable[[], AbstractContextManager[Any]]) -> Iterator[threading.Event]:
    """Another thread holds something; the event is set once it no longer does."""
    begun, let_go, ended = threading.Event(), threading.Event(), threading.Event()

    def run() -> None:
        with hold():
            begun.set()
            let_go.wait(60)
        ended.set()

    holder = threading.Thread(target=run)
    holder.start()
    assert begun.wait(10)
    try:
        yield ended
    finally:
        let_go.set()
        holder.join(20)


def test_what_another_reader_holds_is_waited_for_elsewhere(running: Running) -> None:
    """The event loop goes on, and the answer comes when the reader is done."""
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.append(asked(running, "/odds?limit=1&offset=3")[0]))
    with held(running.node.engine.shown):
        asking.start()
        assert asked(running, "/health")[0] in (200, 503)
        assert asked(running, "/nowhere")[0] == 404
        assert found == []
    asking.join(20)
    assert found == [200]


def test_nobody_waits_for_a_step(running: Running) -> None:
    """While the board is written, requests are answered from the update before."""
    paths = (
        "/odds?limit=1&offset=4", "/odds/best?limit=2", "/odds?group_by=event&limit=1", "/events?limit=1", "/sports",
        "/sportsbooks", "/markets", "/opportunities/ev?limit=2", "/opportunities/arbitrage?limit=2", "/account",
    )  # fmt: skip
    for kind in ("ev", "arbitrage"):  # their views are active from here on: to resume one takes the board
        assert asked(running, f"/opportunities/{kind}?limit=1")[0] == 200
    with held(running.node.engine.still) as ended:
        for path in paths:
            assert asked(running, path)[0] == 200, path
        assert not ended.is_set()


def test_requests_in_one_piece_are_answered_in_order(running: Running) -> None:
    """Pipelined ones: some at once, some after a wait."""
    paths = ["/odds?limit=1", "/account", "/odds?limit=2", "/odds?sort=-sport&limit=3", "/nowhere", "/odds?limit=1"]
    running.clock.pass_minute()

    async def run() -> list[int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        lines = [f"GET /api/v1{path} HTTP/1.1\r\nhost: x\r\nx-api-key: demo_enterprise\r\n\r\n" for path in paths]
        writer.write("".join(lines).encode())
        sizes = []
        for _ in paths:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(part[15:]) for part in head.lower().split(b"\r\n") if part.startswith(b"content-length:"))
            body = json.loads(await reader.readexactly(length))
            sizes.append(len(body["data"]) if isinstance(body.get("data"), list) else len(body))
        writer.close()
        return sizes

    assert asyncio.run(asyncio.wait_for(run(), 30)) == [1, 2, 2, 3, 1, 1]


def test_a_kept_answer_does_not_end_the_stream_behind_it(running: Running) -> None:
    """What is set when a connection rests is taken back when the next request came in the same piece."""
    asked(running, PIECE[0])
    running.clock.pass_minute()

    async def run() -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        lines = [f"GET /api/v1{path} HTTP/1.1\r\nhost: x\r\nx-api-key: demo_enterprise\r\n\r\n" for path in PIECE]
        writer.write("".join(lines).encode())
        await reader.readuntil(b"event: connected")
        port = writer.get_extra_info("sockname")[1]
        held: list[Any] = list(running._server.server_state.connections)
        (mine,) = [one for one in held if one.client[1] == port]
        rests = mine.timeout_keep_alive_task is not None
        writer.close()
        return rests

    assert not asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_large_bodies_are_packed_elsewhere(running: Running, monkeypatch: pytest.MonkeyPatch, coding: str) -> None:
    seen = []
    pack, compressor = gzip.compress, zstandard.ZstdCompressor

    def noted(*args: Any, **words: Any) -> Any:
        seen.append(threading.current_thread().name)
        return (pack if coding == "gzip" else compressor)(*args, **words)

    monkeypatch.setattr(*((gzip, "compress") if coding == "gzip" else (zstandard, "ZstdCompressor")), noted)
    monkeypatch.setattr("oddsengine_service.http.responses.LARGE", 4000)
    query = f"/odds?limit=50&offset={11 if coding == 'gzip' else 12}"
    for _ in range(2):
        status, headers, _ = asked(running, query, **{"Accept-Encoding": coding})
        assert (status, headers["content-encoding"]) == (200, coding)
    assert len(seen) == 1
    assert seen[0].startswith("answer")


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /api/v1/odds?limit=1#x HTTP/1.1\r\nhost: x\r\nx-api-key: demo_pro\r\nconnection: close\r\n\r\n",
        b"GET /api/v1/odds?limit=1 HTTP/1.0\r\nx-api-key: demo_pro\r\n\r\n",
        b"GET http://x/api/v1/odds?limit=1 HTTP/1.1\r\nhost: x\r\nx-api-key: demo_pro\r\nconnection: close\r\n\r\n",
        b"GET /api/v1/%6fdds?limit=1 HTTP/1.1\r\nhost: x\r\nx-api-key: demo_pro\r\nconnection: close\r\n\r\n",
        b"GET /api/v1/odds?limit=1 HTTP/1.1\r\nhost: x\r\nx-api-key: demo_pro\r\ncontent-length: 0\r\n"
        b"connection: close\r\n\r\n",
    ],
    ids=["fragment", "1.0", "absolute", "escaped", "with a body"],
)
def test_unusual_forms_of_a_request(running: Running, request_: bytes) -> None:
    running.clock.pass_minute()

    async def run() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(request_)
        found = await reader.read()
        writer.close()
        return found

    found = asyncio.run(asyncio.wait_for(run(), 30))
    assert found.startswith(b"HTTP/1.1 200 "), found[:300]


# ---- rows that were sent before ----


def encoded(rows: Any) -> list[bytes]:
    return [msgspec.json.encode(row) for row in rows]


@FEW
@given(SEEDS, st.booleans())
def test_a_row_that_was_sent_before_says_what_the_board_says_now(seed: int, linked: bool) -> None:
    """Whatever moves: prices, times, main lines, starts, links, suspensions, names."""
    engine = Engine()
    said = feed(seed, 3, 5, pauses=(0.0, 0.4, 1.0))
    first = said.first()
    engine.step(first.quotes, first.now)
    index = Index(engine)
    for at in range(8):
        with index.reader() as reader:
            slots = reader.matching_rows(RowFilter(), {})
            some = slots[np.arange(slots.size) % 3 != at % 3]
            shown, whole = RowEncoder(reader, some), odds(reader.take(some))
            again = RowEncoder(reader, some)
        assert encoded(shown.encode()) == encoded(whole)
        assert encoded(again.encode()) == encoded(whole)
        here = row_ids(engine.table())
        if len(here) < 3:
            return
        step = said.step(here)
        quotes = step.quotes
        if linked and len(quotes):
            quotes = [{**row, "deep_link": f"https://example.com/{at}"} for row in quotes]
        engine.step(quotes, step.now, removed=step.removed, complete=step.complete, events=step.events)


@pytest.mark.parametrize("kind", ["ev", "arbitrage", "middles", "low_hold"])
def test_what_was_open_before_anybody_asked_has_its_time(running: Running, kind: str) -> None:
    """The lists over all books are of a view that is always active."""
    _, _, body = asked(running, f"/opportunities/{kind}?limit=200")
    found = {row["detected_at"] for row in json.loads(body)["data"]}
    assert found
    assert min(found) < max(found)


def test_encoded_rows_are_bounded_within_one_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oddsengine_service.wire.odds_response._MOST_ENCODED", 20)
    engine = Engine()
    first = feed(7, 3, 5).first()
    engine.step(first.quotes, first.now)
    index = Index(engine)
    with index.reader(judged=True) as reader:
        slots = reader.matching_rows(RowFilter(), {})
        assert slots.size > 60
        for at in range(0, slots.size, 10):
            shown, whole = RowEncoder(reader, slots[at : at + 10]), odds(reader.take(slots[at : at + 10]))
            assert encoded(shown.encode()) == encoded(whole)
            assert max(map(len, (index.encoded, *reader.lines.encoded))) <= 30


def test_what_an_answer_raises_comes_back() -> None:
    async def run() -> None:
        pool = Pool()
        with pytest.raises(RuntimeError, match="StopIteration"):
            await pool.run("a", lambda: next(iter(())))
        with pytest.raises(ZeroDivisionError):
            await pool.run("a", lambda: 1 // 0)
        assert await asyncio.gather(*(pool.run("a", lambda n=n: n) for n in range(50))) == list(range(50))  # type: ignore[misc]

    asyncio.run(asyncio.wait_for(run(), 60))
