"""What a stream outlives, how it ends when it has to, and that what many get is encoded once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from support.service_running import running
from support.stream_running import PATIENCE_S, Client, Served, heard, moment, price, wait_for

from oddsengine_service.accounts.keys import KeyStore, KeyTerms
from oddsengine_service.server import Server, build
from oddsengine_service.settings import load
from oddsengine_service.stream import sse


class Source(BaseHTTPRequestHandler):
    """A table of prices, or a failure."""

    def do_GET(self) -> None:
        server: Any = self.server
        body = server.table().encode()
        self.send_response(200 if server.well else 503)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "text/csv")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Sources(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Source)
        self.well, self.odds = True, 1.9
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def table(self) -> str:
        now = datetime.now(UTC)
        begins = (now + timedelta(hours=5)).replace(microsecond=0, minute=0, second=0)
        names = (
            "sportsbook,event_id,sport,league,home_team,away_team,market_type,selection,odds_decimal,event_start_time"
        )
        rows = [
            f"fanduel,game,basketball,nba,Boston Celtics,Miami Heat,moneyline,{side},{self.odds},{begins.isoformat()}"
            for side in ("Boston Celtics", "Miami Heat")
        ]
        return "\n".join([names, *rows, ""])


@contextmanager
def fed(folder: Path, source: Sources) -> Iterator[tuple[int, str]]:
    """A whole node with one source; its port, and a key."""
    address = f"http://127.0.0.1:{source.server_address[1]}/odds.csv"
    feed = {"KIND": "table", "URL": address, "INTERVAL": "0.1", "DOWN_AFTER": "0.4"}
    feed |= {"BACKOFF": "0.05", "BACKOFF_CAP": "0.1"}
    environ = {f"ODDSENGINE_FEEDS_MINE_{name}": value for name, value in feed.items()}
    environ |= {"ODDSENGINE_DATA_FOLDER": str(folder), "ODDSENGINE_SERVICE_HEARTBEAT": "0.2"}
    environ |= {"ODDSENGINE_SERVICE_STALLED": "7", "ODDSENGINE_SERVICE_SEND_BUFFER": "50000"}
    service = build(load(None, environ), environ, demonstration=False)
    store = service.node.keys
    assert isinstance(store, KeyStore)
    key = store.create("account", KeyTerms("sharp", streaming=True)).key
    at: SimpleQueue[str] = SimpleQueue()
    server = Server(service, "127.0.0.1", 0, at.put)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        origin = at.get(timeout=60)
        wait_for(lambda: service.node.ready, 60)
        yield int(origin.rpartition(":")[2]), key
        assert service.api.hub is not None
        limits = service.api.hub.subscribers._limits
        assert (limits.stalled, limits.send_buffer) == (7.0, 50_000)
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def test_an_outage_of_a_source_is_told_and_passes(tmp_path: Path) -> None:
    source = Sources()
    try:
        with fed(tmp_path, source) as (port, key):
            client = Client(port, "/stream/odds", key)
            assert client.ready.wait(PATIENCE_S)
            wait_for(lambda: len(client.odds) == 2)
            assert "error" not in client.names
            for odds in (2.0, 2.1):
                failures = client.names.count("error")
                source.well, source.odds = False, odds
                told = heard(client, "error", failures + 1)
                assert set(told) == {"code", "message"}
                assert told["code"] == "upstream_error"
                assert "mine" in told["message"]
                beats = client.beats
                wait_for(lambda n=beats: client.beats > n)  # type: ignore[misc]
                source.well = True
                wait_for(lambda x=odds: {row["odds_decimal"] for row in client.odds.values()} == {x})  # type: ignore[misc]
            assert not client.faults
            assert not client.ended.is_set()
        assert client.ended.wait(PATIENCE_S)
        assert client.clean
    finally:
        source.shutdown()
        source.server_close()


def test_a_server_that_stops_ends_streams_cleanly(tmp_path: Path) -> None:
    with running(tmp_path, events=2) as server:
        clients = [
            Client(server.port, "/stream", "demo_enterprise", channel=channel)
            for channel in ("odds", "opportunities", "gamestate", "all")
        ]
        assert all(client.ready.wait(PATIENCE_S) for client in clients)
        server.advance()
    for client in clients:
        assert client.ended.wait(PATIENCE_S)
        assert client.clean
        assert not client.faults


SERVED = {"heartbeat": 1000.0}


def test_what_is_sent_to_many_is_encoded_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    encodings = 0
    encode = sse._encode

    def counted(value: Any) -> bytes:
        nonlocal encodings
        encodings += 1
        return encode(value)

    monkeypatch.setattr(sse, "_encode", counted)
    now, taken = moment(), []
    prices = [("Home", 1.9), ("Away", 1.95)]
    served.step([price("once", "fanduel", side, odds) for side, odds in prices], now)
    clients: list[Client] = []
    for many in (1, 50):
        while len(clients) < many:
            clients.append(Client(served.port, "/stream/odds", served.key("sharp"), event="once"))
            assert clients[-1].ready.wait(PATIENCE_S)
        delivery = served.hub.subscribers.delivery
        before, sent, made = encodings, delivery.events, delivery.made
        for tick in range(5):
            odds = round(1.5 + (many + tick) / 100.0, 2)
            now += timedelta(seconds=1)
            served.step([price("once", "fanduel", side, odds) for side, _ in prices], now)
            wait_for(lambda o=odds: all({r["odds_decimal"] for r in c.odds.values()} == {o} for c in clients))  # type: ignore[misc]
        assert delivery.made - made == 5
        assert delivery.events - sent == 5 * many
        taken.append(encodings - before)
    assert taken[0] == taken[1] == 5 * 3  # two rows, and the event of both
    other = Client(served.port, "/stream/odds", served.key("sharp"), event="once", market="moneyline")
    assert other.ready.wait(PATIENCE_S)
    before = encodings
    served.step([price("once", "fanduel", side, 3.0) for side, _ in prices], now + timedelta(seconds=1))
    wait_for(lambda: {row["odds_decimal"] for row in other.odds.values()} == {3.0})
    assert encodings - before == 4  # rows are shared by all groups
    for client in [*clients, other]:
        client.close()
        assert client.ended.wait(PATIENCE_S)
        assert not client.faults
