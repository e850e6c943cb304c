"""A server with nothing but the interface, on a socket of this machine, and a client that follows the merge rules."""

import asyncio
import contextlib
import itertools
import json
import random
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx2
import uvicorn
from support.effort import pause
from support.logs import Logged

from oddsengine.detection.kinds import KINDS
from oddsengine.live.engine import Engine
from oddsengine.simulate import World
from oddsengine_service.accounts.keys import KeyStore, KeyTerms
from oddsengine_service.accounts.limits import Limits
from oddsengine_service.api import Api
from oddsengine_service.app import application
from oddsengine_service.http.connections import Connections
from oddsengine_service.http.protocol import connecting_to
from oddsengine_service.http.request import BASE
from oddsengine_service.monitoring.metrics import Metrics
from oddsengine_service.node import Node
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.stream import sse
from oddsengine_service.wire.encoded_columns import AGES
from oddsengine_service.ws.session import PATHS
from oddsengine_service.ws.ws_protocol import MOST_MESSAGE, SocketProtocol

PATIENCE_S = 20.0  # on a busy machine; nothing waits so long when all is well
BEAT_S = 0.5
START = datetime(2026, 2, 7, 18, 0, tzinfo=UTC)


DELTA = {"id", "odds_american", "odds_decimal", "odds_probability", "line", "is_live", "odds_changed_at"}
FRESH = {"last_seen_at", "odds_changed_at", "timestamp", "probability"}  # what no delta carries, or ages alone move


def without_ages(value: Any) -> Any:
    """An opportunity without its ages, fair probabilities to two digits."""
    if isinstance(value, dict):
        return {
            name: f"{each:.2g}" if name == "fair_probability" and each is not None else without_ages(each)
            for name, each in value.items()
            if name not in AGES
        }
    return [without_ages(each) for each in value] if isinstance(value, list) else value


class Host:
    """An interface without the pages."""

    origin = ""
    socket_paths: tuple[str, ...] = PATHS
    stream_paths: tuple[str, ...] = (f"{BASE}/stream",)

    def __init__(self, node: Node) -> None:
        self.node = node
        self.api = Api(node, ENDPOINTS, Metrics())
        self.connections = Connections()
        self.app = application(self.api, {}, lifespan=self._lifespan, address="https://odds.example.com")
        self.loop: asyncio.AbstractEventLoop | None = None

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        self.loop = asyncio.get_running_loop()
        await asyncio.to_thread(self.node.warm)
        yield


class Stopping(uvicorn.Server):
    """Ends streams before it stops."""

    def __init__(self, config: uvicorn.Config, api: Api) -> None:
        super().__init__(config)
        self._api = api

    async def shutdown(self, sockets: Any = None) -> None:
        if self._api.hub is not None:
            await self._api.hub.close()
        await super().shutdown(sockets)


class Served:
    """A node on a port, and who may use it."""

    def __init__(self, folder: Path, *, plain: bool = False, **settings: Any) -> None:
        """With `plain`, as in another application: on a uvicorn that knows nothing of the node."""
        self.logged = Logged(quiet=True)
        self.keys = KeyStore(folder / "keys.sqlite", folder / "pepper")
        self.engine = Engine()
        self.node = Node(self.engine, self.keys, Limits(), stream_settings={"heartbeat": BEAT_S, **settings})
        self.app = Host(self.node)
        own: dict[str, Any] = dict(
            http=connecting_to(self.app), ws=SocketProtocol, ws_max_size=MOST_MESSAGE, ws_ping_interval=None,
            ws_per_message_deflate=False,
        )  # fmt: skip
        config = uvicorn.Config(
            self.app.app, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="on",
            proxy_headers=False, timeout_graceful_shutdown=5, **{} if plain else own,
        )  # fmt: skip
        self.server = Stopping(config, self.app.api)
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()
        wait_for(lambda: self.server.started, 60.0)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.made = {
            name: self.keys.create(f"account-{name}", terms)
            for name, terms in {
                "free": KeyTerms("free", rate=100_000), "hobby": KeyTerms("hobby", streaming=True, rate=100_000),
                "bare": KeyTerms("pro"), "pro": KeyTerms("pro", streaming=True, rate=100_000),
                "sharp": KeyTerms("sharp", streaming=True, rate=100_000, streams=500),
                "enterprise": KeyTerms("enterprise", rate=100_000),
            }.items()
        }  # fmt: skip
        self.rest = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}{BASE}", timeout=PATIENCE_S)

    def key(self, tier: str) -> str:
        return self.made[tier].key

    def step(self, quotes: Any = (), now: datetime | None = None, **more: Any) -> Any:
        return self.node.write(self.node.step, quotes, now, **more).result(60)

    def rows(self, path: str, tier: str, query: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """All rows of a list, page by page, by their ids."""
        out: dict[str, dict[str, Any]] = {}
        while True:
            asked = {"limit": 200, "offset": len(out), **query}
            answer = self.rest.get(path, params=asked, headers={"X-API-Key": self.key(tier)})
            assert answer.status_code == 200, answer.text
            found = answer.json()
            out.update({row["id"]: row for row in found["data"]})
            if not found["pagination"]["has_more"]:
                return out

    def stop(self) -> None:
        self.rest.close()
        self.server.should_exit = True
        self._thread.join(30)
        self.logged.end()
        assert not self._thread.is_alive()
        self.node.close()
        self.keys.close()

    @property
    def hub(self) -> Any:
        return self.app.api.hub


def wait_for(true: Callable[[], Any], within: float = PATIENCE_S) -> None:
    until = (look := time.monotonic()) + within
    while not true():
        assert time.monotonic() < until, "it did not come to be"
        time.sleep(pause(look, 0.01))
        look = time.monotonic()


def lasting(row: dict[str, Any]) -> dict[str, Any]:
    """A price without what every look at it changes."""
    return {name: value for name, value in row.items() if name not in FRESH}


class Chunks:
    """The body of an answer out of its chunks, as they come."""

    def __init__(self) -> None:
        self.ended = False
        self._left, self._text = 0, b""

    def feed(self, data: bytes) -> bytes:
        self._text += data
        out = []
        while self._text and not self.ended:
            if self._left > 2:
                part = self._text[: self._left - 2]
                out.append(part)
                self._left -= len(part)
                self._text = self._text[len(part) :]
            elif self._left:  # the line end after a chunk
                part = self._text[: self._left]
                self._left -= len(part)
                self._text = self._text[len(part) :]
            else:
                size, end, rest = self._text.partition(b"\r\n")
                if not end:
                    break
                self._left, self._text = int(size, 16) + 2, rest
                self.ended = self._left == 2
        return b"".join(out)


class Look(NamedTuple):
    """What a client held at a heartbeat, and which updates that says it is of."""

    prices: int
    opportunities: int
    odds: dict[str, dict[str, Any]]
    finds: dict[str, dict[str, dict[str, Any]]]


class Client(threading.Thread):
    """Follows the merge rules, and notes whatever breaks a promise."""

    def __init__(
        self, port: int, path: str, key: str, *, headers: dict[str, str] | None = None, bite: int = 1 << 16,
        pause: float = 0.0, room: int = 0, before: "Client | None" = None, **query: Any,
    ) -> None:  # fmt: skip
        super().__init__(daemon=True)
        self.path, self.key, self.more = path, key, headers or {}
        self.bite, self.pause = bite, pause  # bytes that it reads at once, and how long it waits before the next
        self.reading = threading.Event()  # it reads nothing while this is not set
        self.reading.set()
        self.query = {name: value for name, value in query.items() if value is not None}
        self.before, self.resumed = before, False  # who resumes may be told twice of what it missed
        self.last = ""
        self.odds: dict[str, dict[str, Any]] = {}
        self.finds: dict[str, dict[str, dict[str, Any]]] = {kind.event_name: {} for kind in KINDS.values()}
        self.games: dict[str, Any] = {}
        self.names: list[str] = []
        self.samples: dict[str, Any] = {}
        self.ids: list[int] = []
        self.faults: list[str] = []
        self.beats = 0
        self.observations: list[Look] = []
        self.status, self.head, self.body = 0, b"", b""
        self.ready = threading.Event()
        self.ended = threading.Event()
        self.clean = False
        self.lock = threading.Lock()
        self.socket = socket.socket()
        self.socket.settimeout(30)
        if room:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.connect(("127.0.0.1", port))
        self.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """Break off without a word."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.socket.shutdown(socket.SHUT_RD)

    def run(self) -> None:
        try:
            with self.socket:
                self._follow()
        except OSError:
            pass
        except Exception as error:
            self.faults.append(repr(error))
        finally:
            self.ended.set()
            self.ready.set()

    def _follow(self) -> None:
        lines = [f"GET {BASE}{self.path}?{urlencode(self.query)} HTTP/1.1", "Host: x", f"X-API-Key: {self.key}"]
        lines += [f"{name}: {value}" for name, value in self.more.items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._read()
        self.head, _, data = data.partition(b"\r\n\r\n")
        self.status = int(self.head.split()[1])
        if self.status != 200:
            length = next(int(x.split(b":")[1]) for x in self.head.splitlines() if x.lower().startswith(b"content-len"))
            while len(data) < length:
                data += self._read()
            self.body = data
            return
        chunks, text = Chunks(), b""
        while not chunks.ended:
            text += chunks.feed(data)
            *events, text = text.split(b"\n\n")
            for event in events:
                self._event(event.decode())
            if not chunks.ended:
                data = self._read()
        self.clean = True

    def _read(self) -> bytes:
        self.reading.wait()
        if self.pause:
            time.sleep(self.pause)
        data = self.socket.recv(self.bite)
        if not data:
            raise ConnectionError("the server closed")
        return data

    def _event(self, text: str) -> None:
        fields = dict(line.split(": ", 1) for line in text.split("\n"))
        comment = fields.pop("", "")
        name, data = fields["event"], json.loads(fields["data"])
        if "id" in fields:
            self.last = fields["id"]
            self.ids.append(int(fields["id"].removeprefix("evt_").partition(".")[0]))
        elif name not in ("heartbeat", "error"):
            self.faults.append(f"{name} has no id")
        with self.lock:
            self.names.append(name)
            self.samples[name] = data
            if name == "connected" and data.get("resumed"):
                assert self.before is not None
                self.resumed, self.odds, self.finds = True, self.before.odds, self.before.finds
            if name == "heartbeat":
                self.beats += 1
                self._look(comment)
            elif name.startswith(("snapshot", "odds:")):
                self._prices(name, data)
            elif name.startswith("gamestate"):
                self._games(name, data)
            elif ":" in name:
                kind, what = name.split(":")
                if what == "detected":
                    self.finds[kind].update({row["id"]: row for row in data})
                else:
                    for id_ in data["expired"]:
                        if self.finds[kind].pop(id_, None) is None and not self.resumed:
                            self.faults.append(f"expired {id_} was not here")
        if name == "snapshot:complete":
            self.ready.set()

    def _look(self, comment: str) -> None:
        said = dict(part.split(" ") for part in comment.split(", ")) if comment else {}
        odds = {id_: dict(row) for id_, row in self.odds.items()}
        finds = {kind: dict(rows) for kind, rows in self.finds.items()}
        self.observations.append(Look(int(said.get("prices", 0)), int(said.get("opportunities", 0)), odds, finds))

    def _games(self, name: str, data: Any) -> None:
        if name != "gamestate:removed":
            self.games.update(data)
            return
        for event in data["ids"]:
            if self.games.pop(event, None) is None:
                self.faults.append(f"removed {event} was not here")

    def _prices(self, name: str, data: Any) -> None:
        if name == "snapshot":
            if data["count"] != len(data["odds"]) or data["count"] > sse.CHUNK:
                self.faults.append(f"count of snapshot is {data['count']} of {len(data['odds'])}")
            self.odds.update({row["id"]: row for row in data["odds"]})
            later = "snapshot:complete" in self.names
            left = data["total"] - data["offset"] - data["count"]
            if self.resumed:
                return
            if ((left > 0) != data["has_more"] and not later) or (later and data["has_more"]):
                self.faults.append("has_more is wrong")
            if later and left == 0 and data["total"] != len(self.odds):
                self.faults.append(f"total is {data['total']}, {len(self.odds)} are here")
        elif name == "snapshot:complete":
            if self.resumed:
                return
            if data["total_odds"] != len(self.odds):
                self.faults.append("total_odds is wrong")
            if self.path != "/stream" and data["books"] != sorted({row["sportsbook"] for row in self.odds.values()}):
                self.faults.append("books are wrong")
        elif name == "odds:update":
            for delta in data["odds"]:
                row = self.odds.get(delta["id"])
                if row is None:
                    if not self.resumed:
                        self.faults.append(f"delta of {delta['id']}, which is not here")
                    continue
                if row["sportsbook"] != data["book"] or set(delta) != DELTA:
                    self.faults.append(f"delta {delta} of {data['book']}")
                row.update(delta)
        elif name == "odds:removed":
            for id_ in data["ids"]:
                row = self.odds.pop(id_, None)
                if (row is None and not self.resumed) or (row is not None and row["sportsbook"] != data["book"]):
                    self.faults.append(f"removed {id_}, which is not here")

    def held(self) -> dict[str, dict[str, Any]]:
        with self.lock:
            return {id_: lasting(row) for id_, row in self.odds.items()}


# ---- boards ----

_seeds = itertools.count(1)


def world(seed: int, **more: Any) -> World:
    """A world whose time is after every other one's on this node."""
    return World(seed, start=START + timedelta(days=next(_seeds)), **more)


def turned(quotes: list[dict[str, Any]], draw: random.Random) -> list[dict[str, Any]]:
    """Quotes of which some go live, or are no longer: in half of the batches, a few rows or all of one event's."""
    if not quotes or draw.random() < 0.5:
        return quotes
    event = draw.choice(quotes)["event_id"] if draw.random() < 0.3 else ""
    return [
        {**row, "is_live": not row["is_live"]} if row["event_id"] == event or draw.random() < 0.1 else row
        for row in quotes
    ]


def play(served: Served, running: Iterator[Any], ticks: int) -> None:
    for batch in itertools.islice(running, ticks):
        served.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)


def moment() -> datetime:
    return START + timedelta(days=next(_seeds))


def price(event: str, book: str, selection: str, odds_: float, **more: Any) -> dict[str, Any]:
    return {
        "sportsbook": book, "event_id": event, "sport": "basketball", "league": "nba", "home_team": "Home",
        "away_team": "Away", "market_type": "moneyline", "selection": selection, "odds_decimal": odds_, **more,
    }  # fmt: skip


def total(event: str, book: str, side: str, line: float, odds_: float) -> dict[str, Any]:
    return price(event, book, f"{side} {line}", odds_, market_type="total_points", line=line)


def heard(client: Client, name: str, times: int = 1) -> Any:
    wait_for(lambda: client.names.count(name) >= times or client.faults)
    assert not client.faults, client.faults
    return client.samples[name]


def full_board(event: str) -> list[dict[str, Any]]:
    """One opportunity of each kind."""
    rows = [price(event, "pinnacle", "Home", 2.0), price(event, "pinnacle", "Away", 1.95)]
    rows += [price(event, "draftkings", "Home", 2.12), price(event, "draftkings", "Away", 1.8)]
    rows += [price(event, "fanduel", "Home", 1.85), price(event, "fanduel", "Away", 1.95)]
    for book, line, over, under in (("pinnacle", 210.5, 1.93, 1.96), ("pinnacle", 214.5, 2.3, 1.68)):
        rows += [total(event, book, "Over", line, over), total(event, book, "Under", line, under)]
    rows += [total(event, "draftkings", "Over", 210.5, 1.98), total(event, "draftkings", "Under", 210.5, 1.86)]
    rows += [total(event, "fanduel", "Over", 214.5, 1.86), total(event, "fanduel", "Under", 214.5, 1.98)]
    return rows
