"""What requests and answers say beside their rows: keys, tiers, hosts, links to the documentation, broken databases."""

import base64
import json
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.service_running import PATIENCE_S, TIER_IDS, Running, running

from oddsengine_service.accounts.database import StoreError
from oddsengine_service.accounts.keys import KeyStore, KeyTerms

MISSING_KEY = "API key required: send it as X-API-Key or Authorization: Bearer"
BASIC = "Basic " + base64.b64encode(b"reader:of-the-proxy").decode()


def sent(port: int, *lines: str, body: bytes = b"") -> bytes:
    """What comes back for a request made by hand."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as one:
        one.sendall("\r\n".join([*lines, "connection: close", "", ""]).encode() + body)
        got = b""
        while part := one.recv(1 << 16):
            got += part
        return got


# ---- who asks ----


@pytest.mark.parametrize("tier", TIER_IDS)
def test_the_tier_is_in_a_header(service: Running, tier: str) -> None:
    with service.client(tier) as client:
        for path in ("/odds?limit=1", "/odds?limit=0", "/nothing"):
            assert client.get(path).headers["x-tier"] == tier
    with service.client(None) as client:
        assert client.get("/sports").headers["x-tier"] == "free"


def test_basic_authorization_is_for_somebody_else(service: Running) -> None:
    with service.client(None, headers={"Authorization": BASIC}) as client:
        assert client.get("/sportsbooks?api_key=demo_pro").headers["x-tier"] == "pro"
        assert client.get("/sports").status_code == 200
        with client.stream("GET", "/stream/odds?api_key=demo_enterprise") as answer:
            assert answer.status_code == 200
        answer = client.get("/odds")
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
        assert answer.json()["error"]["message"] == MISSING_KEY
        assert client.get("/odds", headers={"X-API-Key": "demo_pro"}).status_code == 200


def test_a_key_in_the_query_of_an_endpoint_that_takes_none_there_is_named(service: Running) -> None:
    with service.client(None) as client:
        for path in ("/odds", "/events"):
            answer = client.get(f"{path}?api_key=demo_pro")
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
            why = f"; {path} does not accept api_key in the query"
            assert answer.json()["error"]["message"] == MISSING_KEY + why


# ---- where it is ----


@pytest.mark.parametrize("path", ["/api/v1/odds", "/api/v1/odds?api_key=x", "/nothing", "/api/v1/nothing"])
def test_documentation_links_are_absolute(service: Running, path: str) -> None:
    found = httpx2.get(f"{service.origin}{path}", timeout=PATIENCE_S).json()["error"]
    assert found["docs"] == f"{service.origin}/docs#{found['code']}"
    assert httpx2.get(found["docs"], timeout=PATIENCE_S).status_code == 200
    odd = httpx2.get(f"{service.origin}{path}", headers={"Host": 'a"><script>'}, timeout=PATIENCE_S).json()["error"]
    assert odd["docs"] == f"http://localhost/docs#{found['code']}"


def test_documentation_links_have_the_address_of_the_settings(tmp_path: Path) -> None:
    with running(tmp_path, events=2, url="https://odds.example.com") as server:
        for path in ("/api/v1/odds", "/api/v1/mcp", "/nothing"):
            error = httpx2.get(f"{server.origin}{path}", timeout=PATIENCE_S).json()["error"]
            assert error["docs"].startswith("https://odds.example.com/docs#")
        got = sent(server.port, "GET /api/v1/health HTTP/1.1")
        assert b'"docs":"https://odds.example.com/docs#validation_error"' in got


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["GET /api/v1/feeds HTTP/1.1"], 400),
        (["GET /api/v1/feeds HTTP/1.1", "host: x", "host: x"], 400),
        (["GET /api/v1/feeds HTTP/1.1", "host: x", "Host: y"], 400),
        (["GET / HTTP/1.1"], 400),
        (["POST /api/v1/odds/batch HTTP/1.1", "content-length: 2"], 400),
        (["GET /api/v1/feeds HTTP/1.1", "host: x"], 200),
        (["GET /api/v1/feeds HTTP/1.0"], 200),
        (["GET /api/v1/feeds HTTP/1.0", "host: x", "host: x"], 400),
    ],
)
def test_one_host(service: Running, lines: list[str], status: int) -> None:
    got = sent(service.port, *lines, body=b"{}" if lines[0].startswith("POST") else b"")
    assert got.startswith(f"HTTP/1.1 {status} ".encode()), got[:200]
    if status == 400:
        error = json.loads(got.partition(b"\r\n\r\n")[2])["error"]
        assert "Host" in error["message"]
        assert error["docs"].startswith(f"http://127.0.0.1:{service.port}/docs#")


# ---- parameters ----


@pytest.mark.parametrize("query", ["until=", "since=", "until=%20"])
def test_a_time_is_not_empty(service: Running, query: str) -> None:
    with service.client() as client:
        for path in (f"/odds/history?event={service.ids()['event']}&{query}", f"/historical/clv?{query}"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "validation_error")
            assert query[:5] in answer.json()["error"]["message"]


def test_a_state_that_is_none(service: Running) -> None:
    with service.client() as client:
        for path in ("/odds", "/odds/best", "/opportunities/low_hold", "/opportunities/middles"):
            assert client.get(f"{path}?state=NJ").status_code == 200
            answer = client.get(f"{path}?state=zz")
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "validation_error")


def test_best_prices_by_field_order_and_limits(service: Running) -> None:
    with service.client() as client:
        every = client.get("/odds/best?limit=200").json()
        whole = {row["id"]: row for row in every["data"]}
        falling = client.get("/odds/best?limit=200&sort=-odds_decimal").json()["data"]
        prices = [row["odds_decimal"] for row in falling]
        assert prices == sorted(prices, reverse=True)
        some = client.get("/odds/best?limit=200&fields=id,odds_american,odds_decimal_net").json()["data"]
        assert [set(row) for row in some] == [{"id", "odds_american", "odds_decimal_net"}] * len(some)
        assert all(row["odds_decimal_net"] == whole[row["id"]]["odds_decimal_net"] for row in some)
        total = 0
        for query in ("min_odds=120", "max_odds=119.99"):
            page = client.get(f"/odds/best?limit=200&{query}&sort=-odds_decimal").json()
            least = query.startswith("min")
            assert all((row["odds_american"] >= 120) == least for row in page["data"])
            total += page["meta"]["total"]
        assert total == every["meta"]["total"]
        assert client.get("/odds/best?fields=colour").status_code == 400


def test_a_batch_names_the_events_it_did_not_find(service: Running) -> None:
    event = service.ids()["event"]
    with service.client() as client:
        found = client.post("/odds/batch", json={"event_ids": [event, "nobody", "nothing"]}).json()
        assert found["meta"]["missing"] == ["nobody", "nothing"]
        assert "meta" not in client.post("/odds/batch", json={"event_ids": [event]}).json()


# ---- a database that cannot be used ----


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 KB."""
    where = tmp_path / "disk"
    where.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(where)], capture_output=True, check=False
    )
    if not made or made.returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    with running(small_disk, events=2) as server, server.client("pro") as client:
        made = client.post("/account/keys", json={"name": "before"})
        assert made.status_code == 201
        with (small_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):  # no space is left
            while True:
                filler.write(b"\0" * 4096)
        answers = [client.post("/account/keys", json={"name": "x" * 100}) for _ in range(40)]
        refused = [answer for answer in answers if answer.status_code != 201]
        assert refused, "the disk is full"
        for answer in refused:
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) in ((507, "insufficient_storage"), (503, "unavailable"))
            assert "nothing was changed" in error["message"]
            assert str(small_disk) not in answer.text
        assert client.get("/odds?limit=1").status_code == 200, "whoever only reads does not notice"
        listed = client.get("/account/keys").json()["data"]
        assert len(listed) == 2 + len(answers) - len(refused)  # the fixed one, and what was made
        (small_disk / "filler").unlink()
        assert client.post("/account/keys", json={"name": "after"}).status_code == 201
        assert '"event":"failure"' in server.log_text()


def test_a_database_that_somebody_else_has_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing waits, and is refused with a sentence; reading goes on."""
    monkeypatch.setattr("oddsengine_service.accounts.keys.WAIT_S", 0.5)
    with running(tmp_path, events=2) as server, server.client("pro") as client:
        key = client.post("/account/keys", json={"name": "mine"}).json()["data"]["key"]
        other = sqlite3.connect(tmp_path / "keys.sqlite", isolation_level=None)
        try:
            other.execute("BEGIN EXCLUSIVE")
            assert client.get("/odds?limit=1", headers={"X-API-Key": key}).status_code == 200
            answer = client.post("/account/keys", json={"name": "more"})
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (503, "unavailable")
            assert (answer.headers["retry-after"], error["retry_after"]) == ("1", 1)
            assert "keys.sqlite" not in answer.text
        finally:
            other.close()
        assert client.post("/account/keys", json={"name": "more"}).status_code == 201


def test_a_database_that_cannot_be_read_is_left_alone_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every try may wait for a lock, and the event loop with it."""
    store = KeyStore(tmp_path / "keys", tmp_path / "pepper")
    key = store.create("acme", KeyTerms("pro")).key
    tries = []

    class Locked:
        def execute(self, *_: Any) -> Any:
            tries.append(1)
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error

    reader = store._reader.connection
    monkeypatch.setattr(store._reader, "connection", Locked())
    for _ in range(50):
        with pytest.raises(StoreError, match="locked"):
            store.find(key)
    assert len(tries) == 1
    monkeypatch.setattr(store._reader, "connection", reader)
    monkeypatch.setattr("time.monotonic", lambda: 1e12)
    found = store.find(key)
    assert found is not None
    assert found.account == "acme"
    monkeypatch.undo()
    store.close()
