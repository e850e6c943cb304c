"""Cross-origin requests: by hand, and from a page of another origin in a real browser."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.chromium import launched
from support.service_running import PATIENCE_S, Running, running

from oddsengine_service.settings import SettingsError, load

HERE = "https://app.example.com"
EXPOSED = {
    "etag", "retry-after", "x-data-delay", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset",
    "x-request-id", "x-tier",
}  # fmt: skip


def preflight(service: Running, method: str, *headers: str, origin: str = HERE, path: str = "/odds") -> httpx2.Response:
    asked = {"Origin": origin, "Access-Control-Request-Method": method}
    if headers:
        asked["Access-Control-Request-Headers"] = ",".join(headers)
    return httpx2.options(service.base + path, headers=asked, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A node for the pages of one origin."""
    with running(tmp_path_factory.mktemp("cors"), events=2, origins=HERE) as server:
        yield server


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", ("x-api-key", "if-none-match")),
        ("GET", ("authorization", "last-event-id")),
        ("POST", ("x-api-key", "content-type")),
        ("DELETE", ("x-api-key",)),
    ],
)
def test_a_preflight_allows_what_clients_send(service: Running, method: str, headers: tuple[str, ...]) -> None:
    answer = preflight(service, method, *headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert method in answer.headers["access-control-allow-methods"]
    allowed = {name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")}
    assert allowed >= set(headers)


def test_every_method_of_the_interface_is_allowed(service: Running) -> None:
    paths = httpx2.get(httpx2.URL(service.base).join("/openapi.json"), timeout=PATIENCE_S).json()["paths"].values()
    methods = {method.upper() for operations in paths for method in operations} - {"PARAMETERS"}
    assert methods >= {"GET", "POST", "PUT", "PATCH", "DELETE"}
    for method in methods:
        assert preflight(service, method).status_code == 200


@pytest.mark.parametrize(
    ("path", "statuses"),
    [
        ("/odds?limit=1", {200}), ("/odds?limit=0", {400}), ("/nothing", {404}), ("/opportunities/ev", {200}),
        ("/health", {200, 503}),  # on a busy machine a source may be late
    ],
)  # fmt: skip
def test_every_answer_may_be_read_with_its_limits(service: Running, path: str, statuses: set[int]) -> None:
    with service.client(headers={"Origin": HERE}) as client:
        for _ in range(3):  # the third one is an answer from memory
            answer = client.get(path)
            assert answer.status_code in statuses
            assert answer.headers["access-control-allow-origin"] == "*"
            exposed = {name.strip().lower() for name in answer.headers["access-control-expose-headers"].split(",")}
            assert exposed >= EXPOSED
            assert "access-control-allow-credentials" not in answer.headers


def test_a_stream_may_be_read(service: Running) -> None:
    with (
        service.client(headers={"Origin": HERE}) as client,
        client.stream("GET", "/stream/odds?limit=1") as answer,
    ):
        assert answer.headers["access-control-allow-origin"] == "*"
        assert next(answer.iter_lines())
    refused = httpx2.get(f"{service.base}/stream?api_key=x", headers={"Origin": HERE}, timeout=PATIENCE_S)
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "*")


def test_only_the_origins_of_the_settings(closed: Running) -> None:
    with closed.client() as client:
        mine = client.get("/odds?limit=1", headers={"Origin": HERE})
        theirs = client.get("/odds?limit=1", headers={"Origin": "https://elsewhere.example.com"})
    assert mine.headers["access-control-allow-origin"] == HERE
    assert "Origin" in mine.headers["vary"]
    assert "Accept-Encoding" in mine.headers["vary"]
    assert "access-control-allow-origin" not in theirs.headers
    assert preflight(closed, "POST", "x-api-key").headers["access-control-allow-origin"] == HERE
    refused = preflight(closed, "POST", "x-api-key", origin="https://elsewhere.example.com")
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "validation_error"
    assert "access-control-allow-origin" not in refused.headers


def test_off_without_the_setting(tmp_path: Path) -> None:
    with running(tmp_path, events=2, demonstration=False) as server:
        answer = httpx2.get(f"{server.base}/sports", headers={"Origin": HERE}, timeout=PATIENCE_S)
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert preflight(server, "GET").status_code == 405


@pytest.mark.parametrize("origin", ["app.example.com", "https://app.example.com/", "https://*.example.com", "ftp://x"])
def test_an_origin_that_is_none(origin: str) -> None:
    with pytest.raises(SettingsError, match="must be a list of origins such as"):
        load(None, {"ODDSENGINE_SERVICE_ORIGINS": origin})


# ---- in a browser ----


@contextmanager
def page_server() -> Iterator[str]:
    """An empty page on an origin of its own."""

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title>")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


FETCH = """async ([url, how]) => {
    try {
        const answer = await fetch(url, how);
        const headers = Object.fromEntries(answer.headers);
        return {status: answer.status, headers, body: await answer.json()};
    } catch (error) { return {failed: String(error)}; }
}"""
LISTEN = """url => new Promise((resolve, reject) => {
    const source = new EventSource(url);
    source.addEventListener("snapshot:complete", event => { source.close(); resolve(JSON.parse(event.data)); });
    source.onerror = () => { source.close(); reject(new Error("the stream failed")); };
})"""


def test_a_page_of_another_origin(service: Running, closed: Running) -> None:
    with page_server() as elsewhere, launched() as browser:
        page = browser.new_page()
        page.goto(elsewhere)
        key = {"X-API-Key": "demo_enterprise"}
        found = page.evaluate(FETCH, [f"{service.base}/odds?limit=1", {"headers": key}])
        assert (found["status"], found["headers"]["x-tier"]) == (200, "enterprise")
        assert int(found["headers"]["x-ratelimit-remaining"]) > 0
        etag = {**key, "If-None-Match": found["headers"]["etag"]}
        assert page.evaluate(FETCH, [f"{service.base}/odds?limit=1", {"headers": etag}]).get("status") in (200, None)
        wrong = page.evaluate(
            FETCH, [f"{service.base}/odds?limit=0", {"headers": {"Authorization": "Bearer demo_pro"}}]
        )
        assert (wrong["status"], wrong["body"]["error"]["code"]) == (400, "validation_error")
        posted = {"method": "POST", "headers": {**key, "Content-Type": "application/json"}, "body": '{"name": "web"}'}
        made = page.evaluate(FETCH, [f"{service.base}/account/keys", posted])
        assert made["status"] == 201
        gone = f"{service.base}/account/keys/{made['body']['data']['id']}"
        assert page.evaluate(FETCH, [gone, {"method": "DELETE", "headers": key}])["status"] == 200
        complete = page.evaluate(LISTEN, f"{service.base}/stream?channel=odds&api_key=demo_enterprise")
        assert complete["status"] == "ready"
        assert "failed" in page.evaluate(FETCH, [f"{closed.base}/odds?limit=1", {"headers": key}])
