"""The application as others use it: without our server, mounted in theirs, and without garbage."""

import asyncio
import gc
import json
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from support.effort import some
from support.service_running import PATIENCE_S, Running, running, until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from oddsengine_service import Account, application, demo
from oddsengine_service.monitoring import log
from oddsengine_service.settings import SettingsError


@pytest.fixture(scope="module", autouse=True)
def small_demo() -> Iterator[None]:
    """Demos of a few games: those of a week take seconds to start, and a part of the processor afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "DAYS", 1)
        patch.setattr(demo, "run_world", partial(demo.run_world, events=12))
        yield


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(Path(tmp_path_factory.mktemp("node"))) as server:
        yield server


def scope_of(path: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"limit=3",
        "client": ("127.0.0.1", 1), "headers": [(b"host", b"x"), (b"x-api-key", b"demo_enterprise"), *headers],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/v1/odds", [], 200), ("/api/v1/odds", [(b"if-none-match", b"*")], 304),
        ("/api/v1/odds", [(b"origin", b"https://example.com")], 200), ("/", [], 200),
        ("/api/v1/account", [], 200), ("/api/v1/odds/best", [(b"if-none-match", b"x")], 200),
        ("/api/v1/nowhere", [], 404), ("/api/v1/teams/none", [], 404),
    ],
)  # fmt: skip
def test_a_request_leaves_no_reference_cycle(
    service: Running, path: str, headers: list[tuple[bytes, bytes]], status: int
) -> None:  # fmt: skip
    """Else the garbage collector has to look for it, which takes longer than a request."""
    count, seen = 100, set[int]()

    async def receive() -> Any:
        raise AssertionError("there is no body")

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            seen.add(message["status"])

    async def ask(times: int) -> None:
        for _ in range(times):
            await service.service.app(scope_of(path, *headers), receive, send)

    async def cycles() -> int:
        await ask(3)  # the first one is computed
        gc.collect()
        await ask(count)
        return gc.collect()

    gc.disable()
    try:
        assert asyncio.run(cycles()) < count
    finally:
        gc.enable()
    assert seen == {status}


# ---- mounted ----

PAGES = "https://odds.example"  # whose pages may use the node


class Named:
    """The parent's own authentication: a header names the user."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        extensions = {} if b"x-bare" in headers else scope.get("extensions", {})  # as of a server that has none
        user = headers.get(b"x-user", b"").decode()
        await self._app({**scope, "user": user, "extensions": extensions}, receive, send)


def account(scope: Any) -> Account | None:
    name = scope["user"]
    return Account(name, "free" if name == "guest" else "enterprise") if name else None


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """An application of somebody else with a node below /odds, on a plain uvicorn."""
    environ = {
        "ODDSENGINE_DATA_FOLDER": str(tmp_path_factory.mktemp("data")),
        "ODDSENGINE_SERVICE_ORIGINS": PAGES,
    }  # fmt: skip
    node = application(environ=environ, demo=True, authenticate=account)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with node.router.lifespan_context(node):
            yield

    async def own(_: Any) -> PlainTextResponse:
        return PlainTextResponse("mine")

    app = Starlette(
        routes=[Route("/own", own), Mount("/odds", node)], lifespan=lifespan, middleware=[Middleware(Named)]
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started, "the start")
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S, headers={"x-user": "ann"}) as client:
        until(lambda: bool(client.get("/odds/api/v1/opportunities/ev?min_ev=0").json().get("data")), "the world")
        yield client
    server.should_exit = True
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_mounted_node_answers_below_its_path(mounted: httpx2.Client) -> None:
    assert mounted.get("/own").text == "mine"
    rows = mounted.get("/odds/api/v1/odds?limit=5").json()["data"]
    assert len(rows) == 5
    assert mounted.get("/odds/api/v1/events/none").status_code == 404
    assert mounted.get("/api/v1/odds").status_code == 404
    found = mounted.get("/odds/api/v1/nowhere").json()["error"]
    assert found["docs"] == f"{str(mounted.base_url).rstrip('/')}/odds/docs#not_found"
    links = mounted.post("/odds/api/v1/deeplinks/batch", json={"ids": [row["id"] for row in rows]}).json()["data"]
    for link in filter(None, links.values()):
        assert mounted.get(link).status_code == 302


def test_the_pages_of_a_mounted_node_know_their_path(mounted: httpx2.Client) -> None:
    assert mounted.get("/odds/openapi.json").json()["servers"] == [{"url": "/odds/api/v1"}]
    live = mounted.get("/odds/")
    assert 'data-base="/odds/api/v1"' in live.text
    assert 'href="docs"' in live.text
    assert mounted.get("/odds/docs").status_code == 200


def test_the_users_of_a_mounted_node_are_those_of_its_host(mounted: httpx2.Client) -> None:
    """Keys do not count; limits, tiers and what is stored do, by account."""
    guest = {"x-user": "guest"}
    own = mounted.get("/odds/api/v1/account").json()["data"]
    assert (own["key_id"], own["tier"], own["streaming"]["max_connections"]) == ("ann", "enterprise", 100)
    assert mounted.get("/odds/api/v1/account/keys").status_code == 404
    kept = mounted.put("/odds/api/v1/filters/mine", json={"list": "ev", "query": "min_ev=3"})
    assert kept.status_code in (200, 201), kept.text
    assert [each["name"] for each in mounted.get("/odds/api/v1/filters").json()["data"]] == ["mine"]
    assert mounted.get("/odds/api/v1/filters", headers=guest).json()["data"] == []
    assert mounted.get("/odds/api/v1/opportunities/ev", headers=guest).status_code == 403
    nobody = mounted.get("/odds/api/v1/odds", headers={"x-user": "", "x-api-key": "demo_enterprise"})
    assert (nobody.status_code, nobody.json()["error"]["code"]) == (401, "unauthorized")
    assert mounted.get("/odds/api/v1/odds?limit=1", headers=guest).headers["x-ratelimit-limit"] == "12"


def test_a_mounted_node_streams(mounted: httpx2.Client) -> None:
    """Over the send of a server that knows nothing of the node."""
    with mounted.stream("GET", "/odds/api/v1/stream/all") as stream:
        assert stream.headers["x-request-id"]
        names = []
        for line in stream.iter_lines():
            if line.startswith("event: "):
                names.append(line.removeprefix("event: "))
            if names[-1:] == ["odds:update"]:
                break
    assert names[0] == "connected"
    assert "snapshot:complete" in names


def opened(mounted: httpx2.Client, user: str, query: str = "", origin: str = "", **headers: str) -> ClientConnection:
    """A WebSocket of a user of the host."""
    address = str(mounted.base_url).replace("http", "ws", 1).rstrip("/")
    return connect(
        f"{address}/odds/api/v1/ws{query}", additional_headers={"x-user": user, **headers}, max_size=1 << 20,
        origin=Origin(origin) if origin else None, open_timeout=PATIENCE_S,
    )  # fmt: skip


def heard(client: ClientConnection, kind: str) -> list[dict[str, Any]]:
    """Messages up to the first one of a type."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["type"] != kind:
        found.append(json.loads(client.recv(timeout=PATIENCE_S)))
    return found


def test_a_mounted_node_has_a_websocket(mounted: httpx2.Client) -> None:
    """Over the send of a server that knows nothing of the node: each message is one of the server's."""
    with opened(mounted, "ann") as client:
        assert client.response is not None
        assert client.response.headers["x-request-id"]
        found = heard(client, "snapshot:complete")
        names = [message["type"] for message in found]
        assert names[:3] == ["connected", "subscribed", "opportunities_snapshot"]
        assert set(names[3:-1]) == {"opportunities_snapshot", "initial"}
        assert found[0]["tier"] == "enterprise"
        assert sum(message["count"] for message in found if message["type"] == "initial") == found[-1]["total"] > 0
        found += heard(client, "odds:update")
        client.send(json.dumps({"type": "ping"}))
        found += heard(client, "pong")
        client.send(json.dumps({"type": "subscribe", "channels": ["odds"], "filters": {"sportsbooks": ["pinnacle"]}}))
        found += heard(client, "subscribed")
        assert (found[-1]["channels"], found[-1]["sportsbooks"]) == (["odds"], ["pinnacle"])
        again = heard(client, "snapshot:complete")
        assert {message["source"] for message in again if message["type"] == "initial"} == {"pinnacle"}
        found += again + heard(client, "odds:update")
        assert [message["seq"] for message in found] == list(range(1, len(found) + 1))
        client.send("no json")
        assert heard(client, "error")[-1]["code"] == "invalid_message"
    assert mounted.get("/odds/api/v1/account").json()["data"]["streaming"]["max_connections"] == 100


@pytest.mark.parametrize(("user", "close", "code"), [("", 4001, "invalid_api_key"), ("guest", 4003, "tier_restricted")])
def test_a_websocket_of_a_mounted_node_asks_who_it_is(
    mounted: httpx2.Client, user: str, close: int, code: str
) -> None:  # fmt: skip
    with opened(mounted, user, "?api_key=demo_enterprise") as client:
        (message,) = heard(client, "error")
        with pytest.raises(ConnectionClosed):
            client.recv(timeout=PATIENCE_S)
    assert (message["seq"], message["code"], client.close_code) == (1, code, close)


@pytest.mark.parametrize("bare", [{}, {"x-bare": "1"}])
def test_a_websocket_of_a_mounted_node_is_not_for_pages_of_others(mounted: httpx2.Client, bare: dict[str, str]) -> None:
    """A server without responses to a handshake refuses by its own 403."""
    with pytest.raises(InvalidStatus) as refused, opened(mounted, "ann", origin="https://evil.example", **bare):
        pass
    assert refused.value.response.status_code == 403
    assert (b"origin_not_allowed" in refused.value.response.body) == (not bare)
    for origin in (PAGES, str(mounted.base_url).rstrip("/")):
        with opened(mounted, "ann", origin=origin, **bare) as client:
            heard(client, "connected")


def test_what_a_client_sends_to_a_mounted_node_is_limited(mounted: httpx2.Client) -> None:
    """The server itself takes megabytes."""
    for text, times, close in (("x" * 40_000, 1, 1009), ('{"type":"ping"}', 50, 4029)):
        with opened(mounted, "ann", "?channels=ev") as client:
            heard(client, "connected")
            for _ in range(times):
                client.send(text)
            with pytest.raises(ConnectionClosed):
                heard(client, "never")
            assert client.close_code == close


def test_the_records_of_a_mounted_node_go_to_the_handlers_of_its_host(
    mounted: httpx2.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """By the levels of the host's loggers."""

    def requests() -> list[tuple[str, str, str]]:
        found = [record for record in caplog.records if record.name == "oddsengine.requests"]
        return [(record.levelname, record.getMessage(), vars(record)["facts"]["account"]) for record in found]

    with caplog.at_level(logging.INFO, "oddsengine"):
        mounted.get("/odds/api/v1/odds?limit=1&secret=word")
        mounted.get("/odds/api/v1/events/none")
        until(lambda: len(requests()) == 2, "two records")
    assert requests() == [("INFO", "GET /odds 200", "ann"), ("INFO", "GET /events/none 404", "ann")]
    assert "word" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.ERROR, "oddsengine.requests"), caplog.at_level(logging.INFO, "oddsengine"):
        mounted.get("/odds/api/v1/odds?limit=1")
        log.event("ready")
        until(lambda: bool(caplog.records))
    assert [record.name for record in caplog.records] == ["oddsengine.node"]


def test_settings_that_need_a_process_of_their_own(tmp_path: Path) -> None:
    environ = {"ODDSENGINE_DATA_FOLDER": str(tmp_path), "ODDSENGINE_SERVICE_METRICS_PORT": "9100"}
    with pytest.raises(SettingsError, match=r"service\.metrics_port needs a process of its own"):
        application(environ=environ, demo=True)


# ---- a host that fails, and other ways to mount ----


def hosted(node: Starlette, prefix: str) -> TestClient:
    """A client of an application that has a node below a prefix."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with node.router.lifespan_context(node):
            yield

    return TestClient(Starlette(routes=[Mount(prefix, node)], lifespan=lifespan), raise_server_exceptions=False)


def demo_node(folder: Path, **words: Any) -> Starlette:
    return application(environ={"ODDSENGINE_DATA_FOLDER": str(folder)}, demo=True, **words)


def test_a_node_ends_with_a_host_that_fails(tmp_path: Path) -> None:
    """Its threads and files too: another node can have the folder at once. One that has run does not run again."""

    async def failing(node: Starlette) -> None:
        async with node.router.lifespan_context(node):
            await asyncio.sleep(0.5)
            raise LookupError("the database of the host")

    for _ in range(2):
        node = demo_node(tmp_path)
        with pytest.raises(LookupError):
            asyncio.run(asyncio.wait_for(failing(node), PATIENCE_S))
        with pytest.raises(RuntimeError, match="a node runs once"):
            asyncio.run(failing(node))


def test_a_background_job_that_fails_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("oddsengine_service.server._SWEEP_EVERY", 0.05)
    node, done = demo_node(tmp_path), list[int]()

    def sweep() -> None:
        done.append(1)
        if len(done) == 1:
            raise RuntimeError("can't start new thread")

    node.state.api.node.boards.views.sweep = sweep

    async def run() -> None:
        async with node.router.lifespan_context(node):
            while len(done) < 3:
                await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    assert [vars(record).get("event") for record in caplog.records].count("failure") == 1


@pytest.mark.parametrize("prefix", some(["/a/my f\u00fcr", "/my odds", "/f\u00fcr", "/a/b"], 1))
def test_a_prefix_may_have_any_characters(tmp_path: Path, prefix: str) -> None:
    node = demo_node(tmp_path, authenticate=lambda _: Account("ann"))
    at = quote(prefix)
    with hosted(node, prefix) as client:
        until(lambda: client.get(f"{at}/api/v1/events/a%20b").status_code == 404, "the node")
        assert "a b" in client.get(f"{at}/api/v1/events/a%20b").json()["error"]["message"]
        assert client.get(f"{at}/docs").status_code == 200
        assert f'data-base="{prefix}/api/v1"' in client.get(f"{at}/").text
        assert client.get(f"{at}x/docs").status_code == 404


def test_errors_of_the_hosts_authentication_are_errors_like_all_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(scope: Any) -> Account | None:
        if scope["path"].endswith("/sports"):
            return Account("ann", "nonsense")
        raise LookupError("no such session")

    node = demo_node(tmp_path, authenticate=broken)
    with hosted(node, "/odds") as client:
        for path in ("/odds", "/sports"):
            answer = client.get(f"/odds/api/v1{path}", headers={"origin": "https://example.com"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
            assert answer.headers["access-control-allow-origin"] == "*"
            assert answer.headers["x-request-id"] == answer.json()["error"]["request_id"]
    failed = [vars(record)["facts"]["error"] for record in caplog.records if vars(record).get("event") == "failure"]
    assert failed == ["LookupError", "ValueError"]


def test_a_websocket_to_another_path_is_no_error_of_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "oddsengine")
    with TestClient(demo_node(tmp_path)) as client, pytest.raises(WebSocketDisconnect):
        client.websocket_connect("/no").__enter__()
    found = [vars(record)["facts"] for record in caplog.records if vars(record).get("event") == "request"]
    assert [facts["status"] for facts in found] == [404]
