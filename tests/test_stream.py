"""The stream over real sockets: a client that follows the merge rules holds what the board has."""

import asyncio
import contextlib
import io
import itertools
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn

from oddsengine import catalog
from oddsengine.engine import Engine
from oddsengine.simulate import World
from service.api import stream as route
from service.api.odds import FILTERS, filter_of, index_of
from service.app import BASE, Api
from service.bus import LocalBus
from service.endpoints import Ask, Caller, Endpoint
from service.keys import KeyStore, Terms
from service.limits import MemoryLimits
from service.log import Log
from service.metrics import Metrics
from service.node import Node
from service.params import parse
from service.stream import sse
from service.stream.finds import EV_STEPS, KINDS, PROFIT_STEPS, _step, steady
from service.stream.moves import STALE
from service.wire.arbitrage import arbitrage
from service.wire.ev import ev
from service.wire.low_hold import low_hold
from service.wire.middles import middle
from service.wire.odds import ODDS, odds

PATIENCE_S = 20.0  # on a busy machine; nothing waits so long when all is well
BEAT_S = 0.5
START = datetime(2026, 2, 7, 18, 0, tzinfo=UTC)


def named(text: str) -> set[str]:
    return set(text.split())


DELTA = {"id", "odds_american", "odds_decimal", "odds_probability", "line", "is_live", "odds_changed_at"}
EV = named("""
    id game_id external_event_id selection_id ev_percentage odds_american odds_decimal no_vig_odds
    fair_probability market_width devig_method sharp_book selection market line sportsbook game sport league
    home_team away_team start_time is_live confidence_score kelly_percent book_count arb_available arb_profit
    is_player_prop player_name stat_category possibly_stale oldest_odds_age_seconds warnings detected_at
""")
ARB = named("""
    id event_id event_name sport league market_type line profit_percent implied_total is_live legs detected_at
""")
LEG = {"sportsbook", "selection", "odds_american", "odds_decimal", "implied_probability", "stake_percent"}
MIDDLE = named("""
    id event_id event_name sport league market_type side1 side2 middle_size middle_numbers middle_probability
    expected_value quality_score detected_at
""")
MIDDLE_SIDE = {"book", "selection", "line", "odds", "stake_percent", "odds_age_seconds", "deep_link"}
HOLD = named("""
    id event_id event_name sport league market_type line home_team away_team start_time hold_percentage is_live
    all_books side1 side2 detected_at
""")
HOLD_SIDE = {"selection", "books", "line", "odds", "deep_links"}
FULL = named("""
    id sportsbook event_id sport league home_team away_team market_type selection selection_type odds_american
    odds_decimal odds_probability line event_start_time is_live last_seen_at odds_changed_at deep_link
""")
FRESH = {"last_seen_at", "odds_changed_at", *STALE}


class App:
    """An interface with nothing but the stream."""

    def __init__(self, node: Node, log: Log) -> None:
        self.node = node
        self.api = Api(node, route.endpoints, log, Metrics())
        self.loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self.api(scope, receive, send)
            return
        await receive()
        self.loop = asyncio.get_running_loop()
        assert isinstance(self.node.bus, LocalBus)
        self.node.bus.begin()
        await asyncio.to_thread(self.node.warm)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


class Stopping(uvicorn.Server):
    """Ends streams before it stops."""

    async def shutdown(self, sockets: Any = None) -> None:
        app: Any = self.config.app
        if "stream" in app.node.parts:
            await app.node.parts["stream"].close()
        await super().shutdown(sockets)


class Served:
    """A node on a port, and who may use it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.text = io.StringIO()
        self.log = Log(self.text, quiet=True)
        self.keys = KeyStore(folder / "keys.sqlite", folder / "pepper")
        self.engine = Engine()
        self.node = Node(self.engine, self.keys, MemoryLimits(), LocalBus())
        self.node.parts["stream settings"] = {"heartbeat": BEAT_S, **settings}
        self.app = App(self.node, self.log)
        config = uvicorn.Config(
            self.app, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="on", ws="none",
            timeout_graceful_shutdown=5,
        )  # fmt: skip
        self.server = Stopping(config)
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()
        wait_for(lambda: self.server.started, 60.0)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.made = {
            name: self.keys.create(f"account-{name}", terms)
            for name, terms in {
                "free": Terms("free"), "hobby": Terms("hobby", streaming=True), "bare": Terms("pro"),
                "pro": Terms("pro", streaming=True), "sharp": Terms("sharp", streaming=True, rate=100_000, streams=500),
                "enterprise": Terms("enterprise", rate=100_000),
            }.items()
        }  # fmt: skip

    def key(self, tier: str) -> str:
        return self.made[tier].key

    def step(self, quotes: Any = (), now: datetime | None = None, **more: Any) -> Any:
        return self.node.write(self.node.step, quotes, now, **more).result(60)

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()
        self.node.close()
        self.keys.close()

    @property
    def hub(self) -> Any:
        return self.node.parts["stream"]


def wait_for(true: Callable[[], Any], within: float = PATIENCE_S) -> None:
    until = time.monotonic() + within
    while not true():
        assert time.monotonic() < until, "it did not come to be"
        time.sleep(0.01)


class Client(threading.Thread):
    """Follows the merge rules, and notes whatever breaks a promise."""

    def __init__(self, port: int, path: str, key: str, *, headers: dict[str, str] | None = None, **query: Any) -> None:
        super().__init__(daemon=True)
        self.address, self.path, self.key, self.more = ("127.0.0.1", port), path, key, headers or {}
        self.query = {name: value for name, value in query.items() if value is not None}
        self.odds: dict[str, dict[str, Any]] = {}
        self.finds: dict[str, dict[str, dict[str, Any]]] = {name: {} for name, _ in KINDS.values()}
        self.names: list[str] = []
        self.samples: dict[str, Any] = {}
        self.ids: list[int] = []
        self.faults: list[str] = []
        self.beats = 0
        self.status, self.head, self.body = 0, b"", b""
        self.ready = threading.Event()
        self.ended = threading.Event()
        self.clean = False
        self.lock = threading.Lock()
        self.socket = socket.create_connection(self.address, timeout=30)
        self.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        try:
            with self.socket, self.socket.makefile("rb") as file:
                self._follow(file)
        except OSError:
            pass
        except Exception as error:
            self.faults.append(repr(error))
        finally:
            self.ended.set()
            self.ready.set()

    def _follow(self, file: Any) -> None:
        lines = [f"GET {BASE}{self.path}?{urlencode(self.query)} HTTP/1.1", "Host: x", f"X-API-Key: {self.key}"]
        lines += [f"{name}: {value}" for name, value in self.more.items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self.status = int(file.readline().split()[1])
        head = list(iter(file.readline, b"\r\n"))
        self.head = b"".join(head)
        if self.status != 200:
            length = next(int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length"))
            self.body = file.read(length)
            return
        text = b""
        while True:
            size = file.readline()
            if not size:
                return
            if int(size, 16) == 0:
                self.clean = True
                return
            text += file.read(int(size, 16))
            file.read(2)
            *events, text = text.split(b"\n\n")
            for event in events:
                self._event(event.decode())

    def _event(self, text: str) -> None:
        fields = dict(line.split(": ", 1) for line in text.split("\n"))
        name, data = fields["event"], json.loads(fields["data"])
        if "id" in fields:
            self.ids.append(int(fields["id"].removeprefix("evt_")))
        elif name not in ("heartbeat", "error"):
            self.faults.append(f"{name} has no id")
        with self.lock:
            self.names.append(name)
            self.samples[name] = data
            if name == "heartbeat":
                self.beats += 1
            elif name.startswith(("snapshot", "odds:")):
                self._prices(name, data)
            elif ":" in name and not name.startswith("gamestate"):
                kind, what = name.split(":")
                if what == "detected":
                    self.finds[kind].update({row["id"]: row for row in data})
                else:
                    for id_ in data["expired"]:
                        if self.finds[kind].pop(id_, None) is None:
                            self.faults.append(f"expired {id_} was not here")
        if name == "snapshot:complete":
            self.ready.set()

    def _prices(self, name: str, data: Any) -> None:
        if name == "snapshot":
            if data["count"] != len(data["odds"]) or data["count"] > sse.CHUNK:
                self.faults.append(f"count of snapshot is {data['count']} of {len(data['odds'])}")
            self.odds.update({row["id"]: row for row in data["odds"]})
            later = "snapshot:complete" in self.names
            left = data["total"] - data["offset"] - data["count"]
            if ((left > 0) != data["has_more"] and not later) or (later and data["has_more"]):
                self.faults.append("has_more is wrong")
            if later and left == 0 and data["total"] != len(self.odds):
                self.faults.append(f"total is {data['total']}, {len(self.odds)} are here")
        elif name == "snapshot:complete":
            if data["total_odds"] != len(self.odds):
                self.faults.append("total_odds is wrong")
            if self.path != "/stream" and data["books"] != sorted({row["sportsbook"] for row in self.odds.values()}):
                self.faults.append("books are wrong")
        elif name == "odds:update":
            for delta in data["odds"]:
                row = self.odds.get(delta["id"])
                if row is None:
                    self.faults.append(f"delta of {delta['id']}, which is not here")
                    continue
                if row["sportsbook"] != data["book"] or set(delta) != DELTA:
                    self.faults.append(f"delta {delta} of {data['book']}")
                row.update(delta)
        elif name == "odds:removed":
            for id_ in data["ids"]:
                row = self.odds.pop(id_, None)
                if row is None or row["sportsbook"] != data["book"]:
                    self.faults.append(f"removed {id_}, which is not here")

    def held(self) -> dict[str, dict[str, Any]]:
        with self.lock:
            return {id_: {k: v for k, v in row.items() if k not in FRESH} for id_, row in self.odds.items()}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("stream"))
    yield made
    made.stop()
    assert "failure" not in made.text.getvalue(), made.text.getvalue()


@pytest.fixture
def listen(served: Served) -> Iterator[Callable[..., Client]]:
    made: list[Client] = []

    def client(path: str = "/stream", tier: str = "enterprise", **query: Any) -> Client:
        found = Client(served.port, path, served.key(tier), **query)
        made.append(found)
        return found

    yield client
    for each in made:
        each.close()
    for each in made:
        each.ended.wait(PATIENCE_S)


def expected(served: Served, tier: str, query: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What REST has under the same filters: its active rows."""
    endpoint = Endpoint("/odds", print, "", "", None, FILTERS)
    terms = served.made[tier].record.terms
    read, _ = parse(urlencode(query).encode(), endpoint.by_name)
    caller: Caller = terms.caller("a", "k")
    asked = Ask(caller, read, {}, None, served.engine, served.node, ())
    with index_of(asked).reading() as reading:
        found = reading.take(reading.rows(filter_of(asked, reading.now), {}))
    rows = [json.loads(sse._encode(row)) for row in odds(found)]
    return {row["id"]: {k: v for k, v in row.items() if k not in FRESH} for row in rows if row["is_active"]}


def apart(have: dict[str, Any], want: dict[str, Any]) -> dict[str, Any]:
    return {k: (have.get(k), want.get(k)) for k in {*have, *want} if have.get(k) != want.get(k)}


def agree(clients: Sequence[tuple[Client, Callable[[], Any], Callable[[], Any]]]) -> None:
    """Each client holds at a heartbeat what is expected, now that the board is still."""
    wants = [wanted() for _, _, wanted in clients]
    starts = [client.beats for client, _, _ in clients]
    until = time.monotonic() + PATIENCE_S
    for (client, held, _), want, beats in zip(clients, wants, starts, strict=True):
        while not (client.beats > beats and held() == want):
            assert not client.faults, (client.query, client.faults[:3])
            assert not client.ended.is_set(), client.query
            if time.monotonic() > until:
                have = held()
                odd = [k for k in {*have, *want} if have.get(k) != want.get(k)]
                told = [apart(have.get(k, {}), want.get(k, {})) for k in odd[:2]]
                raise AssertionError((client.query, len(have), len(want), told))
            time.sleep(0.02)


_seeds = itertools.count(1)


def world(seed: int, **more: Any) -> World:
    """A world whose time is after every other one's on this node."""
    return World(seed, start=START + timedelta(days=next(_seeds)), **more)


def play(served: Served, running: Iterator[Any], ticks: int) -> None:
    for batch in itertools.islice(running, ticks):
        served.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)


# ---- prices ----


def sides(served: Served, client: Client, tier: str, query: dict[str, Any]) -> tuple[Any, Any]:
    """What a client holds, and what it should; links of a state are another test's."""
    filters = {name: value for name, value in query.items() if name != "state"}
    plain = "state" not in query

    def linkless(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return rows if plain else {id_: {**row, "deep_link": None} for id_, row in rows.items()}

    return lambda: linkless(client.held()), lambda: linkless(expected(served, tier, filters))


def test_a_client_holds_what_the_board_has(served: Served, listen: Callable[..., Client]) -> None:
    """Clients come at random times with random filters, lose their connections, and are right at every look."""
    draw = random.Random(5)
    running = world(11, events=14, live=0.6, pace=8.0, hazards=True).run(1e9)
    play(served, running, 2)
    table = served.engine.table()
    events = table["event_id"].unique().sort().to_list()
    leagues = table["league"].drop_nulls().unique().sort().to_list()
    sports = table["sport"].drop_nulls().unique().sort().to_list()
    books = [catalog.book(name).id for name in table["sportsbook"].unique().sort().to_list()]
    markets = ["main", "props", "total", "moneyline", "point_spread", *table["market_type"].unique().sort().to_list()]

    def some(words: list[str], most: int) -> str | None:
        return ",".join(draw.sample(words, draw.randint(1, most))) if draw.random() < 0.4 else None

    clients: list[tuple[Client, str, dict[str, Any]]] = []
    for _ in range(5):
        for _ in range(3):
            query = {
                "sport": some(sports, 2), "league": some(leagues, 3), "event": some(events, 4),
                "market": some(markets, 3), "sportsbook": some(books, 4), "state": draw.choice([None, None, "nj"]),
            }  # fmt: skip
            query = {name: value for name, value in query.items() if value is not None}
            tier = draw.choice(["enterprise", "sharp"])
            clients.append((listen("/stream/odds", tier, **query), tier, query))
            play(served, running, draw.randint(0, 3))
        play(served, running, draw.randint(1, 15))
        looked = [(client, *sides(served, client, tier, query)) for client, tier, query in clients]
        agree(looked)
        for at in draw.sample(range(len(clients)), min(2, len(clients) - 1)):
            clients[at][0].close()
        clients = [each for each in clients if not each[0].ended.wait(0.05)]
    assert sum(len(client.odds) for client, _, _ in clients) > 100
    names = {name for client, _, _ in clients for name in client.names}
    assert {"snapshot", "odds:update", "odds:removed", "heartbeat"} <= names
    for client, _, _ in clients:
        assert client.ids == sorted(set(client.ids))
        assert not client.faults


# ---- opportunities ----

_ROWS: dict[str, Any] = {"ev": ev, "arbitrage": arbitrage, "low_hold": low_hold, "middles": middle}


def open_now(served: Served, kinds: set[str], least: dict[str, float], **query: Any) -> dict[str, dict[str, Any]]:
    """What `find_all` over the board has, as it goes out."""
    books = query.get("sportsbook")
    steps: dict[str, Any] = {
        "min_ev": _step(least["ev"], EV_STEPS),
        "min_profit": _step(least["arbitrage"], PROFIT_STEPS),
    }
    view = served.engine.view(None if books is None else books.split(","), **steps)
    frames = view.opportunities()
    out: dict[str, dict[str, Any]] = {name: {} for name, _ in KINDS.values()}
    for kind, (name, _) in KINDS.items():
        for row in getattr(frames, kind).iter_rows(named=True):
            value = {"ev": "ev_percentage", "arbitrage": "profit_percent"}.get(kind)
            fits = value is None or row[value] >= least[kind] - 1e-7
            fits &= query.get("league") is None or row["league"] in query["league"].split(",")
            if kind in kinds and fits:
                out[name][row["id"]] = steady(json.loads(sse._encode(_ROWS[kind](row))))
    return out


def test_a_client_holds_what_is_open(served: Served, listen: Callable[..., Client]) -> None:
    draw = random.Random(6)
    running = world(21, events=10, live=0.5, pace=4.0).run(1e9)
    play(served, running, 2)
    every = set(KINDS)
    cases: list[tuple[str, set[str], dict[str, Any]]] = [
        ("enterprise", every, {"min_ev": "0", "min_profit": "0"}),
        ("enterprise", every, {}),
        ("sharp", every, {"min_ev": "3.5", "min_profit": "1.5"}),
        ("enterprise", every, {"sportsbook": "pinnacle,draftkings,fanduel,betmgm,caesars", "min_ev": "0.5"}),
    ]
    leagues = served.engine.table()["league"].drop_nulls().unique().sort().to_list()
    cases.append(("enterprise", every, {"league": ",".join(leagues[:2]), "min_profit": "0", "min_ev": "0"}))
    clients: list[tuple[Client, Any, Any]] = []
    for tier, kinds, query in cases:
        client = listen("/stream/opportunities", tier, **query)
        least = {"ev": float(query.get("min_ev", 2.0)), "arbitrage": float(query.get("min_profit", 0.5))}

        def held(client: Client = client) -> Any:
            with client.lock:
                return {name: {id_: steady(row) for id_, row in rows.items()} for name, rows in client.finds.items()}

        def wanted(kinds: set[str] = kinds, least: Any = least, query: Any = query) -> Any:
            return open_now(served, kinds, least, **query)

        clients.append((client, held, wanted))
        play(served, running, draw.randint(0, 3))
    for _ in range(3):
        play(served, running, draw.randint(5, 20))
        agree(clients)
    names = {name for client, _, _ in clients for name in client.names}
    assert {"ev:detected", "ev:expired", "low_hold:detected", "low_hold:expired"} <= names
    assert not names & {"odds:update", "odds:removed"}
    first = clients[0][0]
    assert first.names[0] == "connected"
    assert first.names.index("snapshot") < first.names.index("snapshot:complete")
    assert not any(name.endswith("expired") for name in first.names[: first.names.index("snapshot:complete")])


# ---- one thing at a time ----


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


def test_every_payload_has_the_fields_it_should(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    served.step(full_board("fields"), now)
    client = listen("/stream/all", event="fields", min_ev="0.5", market="")
    assert client.ready.wait(PATIENCE_S)
    first = client.samples["connected"]
    assert set(first) == {"stream_id", "channel", "filters", "reconnected"}
    assert first["channel"] == "all"
    assert first["reconnected"] is False
    assert first["filters"] == {"sportsbook": None, "sport": None, "league": None, "event": ["fields"], "market": None}
    whole = client.samples["snapshot"]
    assert set(whole) == {"odds", "count", "total", "offset", "has_more"}
    assert set(whole["odds"][0]) >= FULL
    assert set(whole["odds"][0]) == set(ODDS) - STALE
    assert set(client.samples["snapshot:complete"]) == {"status", "books", "total_odds"}
    assert client.samples["snapshot:complete"]["status"] == "ready"
    detected = {name.split(":")[0]: client.samples[name] for name in client.samples if name.endswith("detected")}
    assert set(detected) == {"ev", "arb", "middles", "low_hold"}
    assert client.names[:2] == ["connected", "snapshot"]
    assert client.names.index("snapshot:complete") == len(client.names[: client.names.index("snapshot:complete")])
    assert all(client.names.index(f"{kind}:detected") < client.names.index("snapshot:complete") for kind in detected)
    assert set(detected["ev"][0]) >= EV
    assert set(detected["arb"][0]) >= ARB
    assert set(detected["arb"][0]["legs"][0]) >= LEG
    assert set(detected["middles"][0]) >= MIDDLE
    assert set(detected["middles"][0]["side1"]) >= MIDDLE_SIDE
    assert set(detected["low_hold"][0]) >= HOLD
    assert set(detected["low_hold"][0]["side2"]) >= HOLD_SIDE
    assert set(heard(client, "heartbeat")) == {"timestamp"}
    assert set(client.samples["gamestate:snapshot"]) == set()

    served.step([price("fields", "draftkings", "Home", 1.9)], now + timedelta(seconds=1))
    moved = heard(client, "odds:update")
    assert set(moved) == {"odds", "count", "book", "partial"}
    assert set(moved["odds"][0]) == DELTA
    assert (moved["count"], moved["book"], moved["partial"]) == (1, "draftkings", False)
    assert set(heard(client, "ev:expired")) == {"expired", "timestamp"}
    assert set(heard(client, "arb:expired")) == {"expired", "timestamp"}
    served.step((), now + timedelta(seconds=2), complete=["draftkings"])
    gone = heard(client, "odds:removed")
    assert set(gone) == {"ids", "count", "book"}
    assert (gone["count"], gone["book"]) == (4, "draftkings")
    assert set(heard(client, "middles:expired")) == {"expired"}
    assert set(heard(client, "low_hold:expired")) == {"expired"}
    assert client.ids == sorted(set(client.ids))
    assert b"text/event-stream" in client.head
    assert b"x-accel-buffering: no" in client.head
    assert b"x-ratelimit-limit" in client.head


def test_suspended_prices_leave_and_come_back(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    rows = [price("pause", book, side, 1.9) for book in ("pinnacle", "fanduel") for side in ("Home", "Away")]
    served.step(rows, now)
    client = listen("/stream/events/pause")
    assert client.ready.wait(PATIENCE_S)
    assert len(client.odds) == 4
    served.step([price("pause", "fanduel", "Home", 1.9, is_active=False)], now + timedelta(seconds=1))
    assert heard(client, "odds:removed")["book"] == "fanduel"
    assert len(client.odds) == 3
    served.step([price("pause", "fanduel", "Home", 2.1, is_active=False)], now + timedelta(seconds=2))
    served.step([price("pause", "fanduel", "Home", 2.2)], now + timedelta(seconds=3))
    back = heard(client, "snapshot", 2)
    assert (back["count"], back["total"], back["offset"], back["has_more"]) == (1, 4, 3, False)
    assert back["odds"][0]["odds_decimal"] == 2.2
    served.step([price("pause", "betmgm", "Home", 2.0)], now + timedelta(seconds=4))
    new = heard(client, "snapshot", 3)
    assert (new["count"], new["total"], new["offset"]) == (1, 5, 4)
    begins = now + timedelta(hours=5)
    served.step([price("pause", "betmgm", "Home", 2.0, event_start_time=begins)], now + timedelta(seconds=5))
    other = heard(client, "snapshot", 4)  # no delta can say that
    assert (other["count"], other["total"]) == (1, 5)
    assert datetime.fromisoformat(other["odds"][0]["event_start_time"]) == begins
    assert client.names.count("odds:update") == 0


def test_large_batches_come_in_parts(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    lines = [100.5 + at for at in range(1100)]
    served.step([total("parts", "fanduel", side, line, 1.9) for line in lines for side in ("Over", "Under")], now)
    client = listen("/stream/odds", event="parts")
    assert client.ready.wait(PATIENCE_S)
    assert client.names[:5] == ["connected", "snapshot", "snapshot", "snapshot", "snapshot:complete"]
    assert client.samples["snapshot"]["offset"] == 2000
    assert len(client.odds) == 2200
    later = now + timedelta(seconds=1)
    served.step([total("parts", "fanduel", side, line, 2.0) for line in lines for side in ("Over", "Under")], later)
    last = heard(client, "odds:update", 3)
    assert (last["count"], last["partial"]) == (200, False)
    assert {row["odds_decimal"] for row in client.odds.values()} == {2.0}


def test_thresholds_are_the_subscribers_own(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    served.step(full_board("least"), now)
    low = listen("/stream", event="least", min_ev="1")
    high = listen("/stream", event="least", min_ev="4")
    assert low.ready.wait(PATIENCE_S)
    assert high.ready.wait(PATIENCE_S)
    mine = [row for row in low.finds["ev"].values() if row["sportsbook"] == "draftkings" and row["selection"] == "Home"]
    assert mine[0]["ev_percentage"] > 4.0
    assert mine[0]["id"] in high.finds["ev"]
    assert low.samples["snapshot"] == {"odds": [], "count": 0, "total": 0, "offset": 0, "has_more": False}
    served.step([price("least", "draftkings", "Home", 2.06)], now + timedelta(seconds=1))
    assert mine[0]["id"] in heard(high, "ev:expired")["expired"]
    wait_for(lambda: 1.0 <= low.finds["ev"][mine[0]["id"]]["ev_percentage"] < 4.0)
    assert "ev:expired" not in low.names


def test_tiers_get_what_they_have(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    served.step(full_board("tiers"), now)
    hobby = listen("/stream/all", "hobby", event="tiers", sportsbook="draftkings,fanduel")
    assert hobby.ready.wait(PATIENCE_S)
    kinds = {name for name in hobby.names if name.endswith("detected")}
    assert kinds <= {"arb:detected", "low_hold:detected"}
    assert not any(name.startswith("gamestate") for name in hobby.names)
    assert {row["sportsbook"] for row in hobby.odds.values()} == {"draftkings", "fanduel"}
    assert hobby.samples["connected"]["filters"]["sportsbook"] == ["draftkings", "fanduel"]


@pytest.mark.parametrize(
    ("path", "tier", "query", "status", "code"),
    [
        ("/stream", "enterprise", {"channel": "prices"}, 400, "validation_error"),
        ("/stream", "enterprise", {"min_ev": "much"}, 400, "validation_error"),
        ("/stream/odds", "enterprise", {"state": "zz"}, 400, "validation_error"),
        ("/stream", None, {}, 401, "invalid_api_key"),
        ("/stream/odds", "free", {}, 403, "tier_restricted"),
        ("/stream", "bare", {}, 403, "tier_restricted"),
        ("/stream/gamestate", "sharp", {}, 403, "tier_restricted"),
        ("/stream", "pro", {"channel": "gamestate"}, 403, "tier_restricted"),
        ("/stream/odds", "hobby", {"sportsbook": "pinnacle"}, 403, "tier_restricted"),
    ],
)
def test_refusals(served: Served, path: str, tier: str | None, query: dict[str, Any], status: int, code: str) -> None:
    client = Client(served.port, path, served.key(tier) if tier else "wrong", **query)
    assert client.ended.wait(PATIENCE_S)
    client.close()
    assert client.status == status
    assert json.loads(client.body)["error"]["code"] == code


def test_slots_are_free_at_once(served: Served, listen: Callable[..., Client]) -> None:
    account = "account-pro"
    limits = served.node.limits
    wait_for(lambda: limits.streams(account) == 0)
    held = [listen("/stream", "pro") for _ in range(10)]
    assert all(client.ready.wait(PATIENCE_S) for client in held)
    assert limits.streams(account) == 10
    refused = listen("/stream", "pro")
    assert refused.ended.wait(PATIENCE_S)
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (429, "too_many_streams")
    assert b"retry-after" in refused.head
    for client in held[:3]:
        client.close()
    wait_for(lambda: limits.streams(account) == 7, 2.0)
    again = listen("/stream", "pro")
    assert again.ready.wait(PATIENCE_S)
    assert again.status == 200
    for client in [*held, again]:
        client.close()
    wait_for(lambda: limits.streams(account) == 0, 2.0)


def test_who_comes_back_begins_anew(served: Served, listen: Callable[..., Client]) -> None:
    cases: tuple[dict[str, Any], ...] = ({"headers": {"Last-Event-ID": "evt_7"}}, {"last_event_id": "evt_7"})
    for more in cases:
        client = listen("/stream/odds", event="none", **more)
        assert client.ready.wait(PATIENCE_S)
        assert client.samples["connected"]["reconnected"] is True
        assert client.names[:3] == ["connected", "snapshot", "snapshot:complete"]


def test_links_lead_to_a_state(served: Served, listen: Callable[..., Client]) -> None:
    now = moment()
    link = "https://sports.{state}.betmgm.com/en/sports/events/7"
    served.step([price("links", "betmgm", side, 1.9, deep_link=link) for side in ("Home", "Away")], now)
    client = listen("/stream/odds", event="links", state="NJ")
    assert client.ready.wait(PATIENCE_S)
    assert {row["deep_link"] for row in client.odds.values()} == {link.replace("{state}", "nj")}
    served.step([price("links", "fanduel", "Home", 1.9)], now + timedelta(seconds=1))
    wait_for(lambda: len(client.odds) == 3)
    assert next(row for row in client.odds.values() if row["sportsbook"] == "fanduel")["deep_link"] != link


def test_games_are_told(served: Served, listen: Callable[..., Client]) -> None:
    first = listen("/stream/gamestate", sport="basketball")
    assert first.ready.wait(PATIENCE_S)
    assert first.names == ["connected", "gamestate:snapshot", "snapshot:complete"]
    state = {"sport": "basketball", "league": "nba", "home_score": 3, "away_score": 1, "is_live": True}
    served.hub.games({"g1": state, "g2": {**state, "sport": "soccer"}})
    assert heard(first, "gamestate:update") == {"g1": state}
    second = listen("/stream", channel="gamestate")
    assert second.ready.wait(PATIENCE_S)
    assert set(second.samples["gamestate:snapshot"]) == {"g1", "g2"}
    served.hub.games({}, ["g1", "g2"])
    assert heard(first, "gamestate:removed") == {"ids": ["g1"]}
    assert heard(second, "gamestate:removed") == {"ids": ["g1", "g2"]}


def test_outages_are_told_and_pass(served: Served, listen: Callable[..., Client]) -> None:
    client = listen("/stream/odds", event="none")
    assert client.ready.wait(PATIENCE_S)
    served.node.failures["feed"] = "it fell"
    try:
        told = heard(client, "error")
    finally:
        served.node.failures.clear()
    assert set(told) == {"code", "message"}
    assert told["code"] == "upstream_error"
    assert "it fell" not in told["message"]
    heard(client, "heartbeat", client.names.count("heartbeat") + 1)


def test_a_revoked_key_ends_its_streams(served: Served) -> None:
    made = served.keys.create("account-revoked", Terms("sharp", streaming=True))
    client = Client(served.port, "/stream/odds", made.key, event="none")
    assert client.ready.wait(PATIENCE_S)
    served.keys.revoke(made.record.id)
    assert client.ended.wait(5.0)
    assert client.clean
    wait_for(lambda: served.node.limits.streams("account-revoked") == 0, 2.0)
    client.close()


def test_a_head_request_opens_nothing(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as line:
        request = (
            f"HEAD {BASE}/stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: {served.key('pro')}\r\n\r\n"
        )
        line.sendall(request.encode())
        answer = b"".join(iter(lambda: line.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert served.node.limits.streams("account-pro") == 0


def test_a_reader_that_stops_is_cut_off_and_nobody_else(tmp_path: Path) -> None:
    served, line = Served(tmp_path, limit=1_000_000), socket.socket()
    try:
        now, lines = moment(), [100.5 + at for at in range(300)]

        def board(odds_: float) -> list[dict[str, Any]]:
            return [total("slow", "fanduel", side, line, odds_) for line in lines for side in ("Over", "Under")]

        served.step(board(1.9), now)
        good = [Client(served.port, "/stream/odds", served.key("enterprise")) for _ in range(3)]
        assert all(client.ready.wait(PATIENCE_S) for client in good)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", served.port))
        line.sendall(f"GET {BASE}/stream/odds?api_key={served.key('sharp')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        limits = served.node.limits
        wait_for(lambda: limits.streams("account-sharp") == 1)
        for tick in range(1, 400):
            served.step(board(1.5 + tick % 90 / 100.0), now + timedelta(milliseconds=10 * tick))
            wait_for(lambda n=tick: all(client.names.count("odds:update") >= n for client in good))  # type: ignore[misc]
            if served.hub.lines.cuts:
                break
        wait_for(lambda: served.hub.lines.cuts == 1)
        wait_for(lambda: limits.streams("account-sharp") == 0)
        assert served.hub.lines.streams == 3
        served.step(board(3.0), now + timedelta(seconds=60))
        wait_for(lambda: all({row["odds_decimal"] for row in client.odds.values()} == {3.0} for client in good))
        assert not any(client.faults for client in good)
        served.log.flush()
        assert '"stream cut off"' in served.text.getvalue()
        assert served.key("sharp") not in served.text.getvalue()
    finally:
        line.close()
        served.stop()
    # Those who still listened were told that it ends.
    assert all(client.ended.wait(PATIENCE_S) and client.clean for client in good)


def test_the_official_client_listens(served: Served) -> None:
    sharpapi = pytest.importorskip("sharpapi")
    now = moment()
    served.step(full_board("client"), now)
    with sharpapi.SharpAPI(served.key("enterprise"), base_url=f"http://127.0.0.1:{served.port}") as client:
        stream = client.stream.all()
        names = []
        for name, data in stream.iter_events():
            names.append(name)
            if name == "snapshot:complete":
                assert data["status"] == "ready"
            if name == "heartbeat":
                break
    assert names[0] == "__retry__"
    assert {"connected", "snapshot", "ev:detected", "snapshot:complete"} <= set(names)
