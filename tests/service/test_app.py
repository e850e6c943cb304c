"""The application as others use it: without our server, mounted in theirs, and without garbage."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.service_running import Running, running


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
