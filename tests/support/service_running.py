"""A server on a socket of this machine: the demo's keys, a small made-up board that stands still unless it is moved."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import httpx2
from msgspec import structs
from support.contract import FEATURES
from support.effort import pause
from support.logs import Logged

from oddsengine.feeds.merged_scores import ScoreReading
from oddsengine.simulate import FeedBatch, World
from oddsengine.simulate.world import START
from oddsengine_service import demo
from oddsengine_service.accounts.limits import Limits
from oddsengine_service.clock import Clock as NodeClock
from oddsengine_service.demo import add_splits, apply_batch, teams_of
from oddsengine_service.server import Server, Service, build, build_demo
from oddsengine_service.settings import load
from oddsengine_service.tiers import TIERS

TIER_IDS = tuple(TIERS)
PATIENCE_S = 60.0  # on a busy machine; nothing waits so long when all is well
SPLITS_TOKEN = "token-of-the-operator"
METRICS_TOKEN = "token-for-metrics"
_SEED, _EVENTS, _TICK = 7, 12, 5.0
demo.FUTURES_S = 600.0  # the demo's 10 make up half of a server's start
_WARM_UP = 18  # ticks: the board of 60 s ago has something too


def _begins() -> datetime:
    """When a world begins whose warm-up ends now."""
    return datetime.now(UTC) - timedelta(seconds=_TICK * _WARM_UP)


class Clock:
    """The time that limits see: it stands still but for the minutes that somebody lets pass."""

    def __init__(self) -> None:
        self._now = time.time()

    def __call__(self) -> float:
        return self._now

    def pass_minute(self) -> None:
        self._now += 60.0


class Tick(NamedTuple):
    """What a world brings, and what is true then."""

    batch: FeedBatch
    scores: Sequence[ScoreReading]
    points: Any  # (events, lanes)


class Film:
    """The ticks of a world, made once however many servers show them."""

    def __init__(self, seed: int, events: int, start: datetime) -> None:
        self.world = World(seed, events=events, live=0.4, tick=_TICK, hazards=True, start=start)
        self.teams = teams_of(self.world)
        self._batches = self.world.run(86_400.0)
        self._ticks: list[Tick] = []
        self._making = threading.Lock()

    def tick(self, number: int) -> Tick:
        with self._making:
            while len(self._ticks) <= number:
                batch = next(self._batches)
                self._ticks.append(Tick(batch, self.world.scores, self.world._games.score.copy()))
            return self._ticks[number]


film = cache(Film)


class Running:
    """A server that runs, and the world behind it."""

    def __init__(
        self, folder: Path, *, waits: bool = False, seed: int = _SEED, events: int = _EVENTS, now: bool = False,
        demonstration: bool = True, driven: NodeClock | None = None, settings: Mapping[str, str] | None = None,
        offers_live: bool = False, **options: str,
    ) -> None:  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        environ = {
            "ODDSENGINE_DATA_FOLDER": str(folder),
            "ODDSENGINE_ALERTS_EVERY": "86400",  # tests look themselves
            "ODDSENGINE_SERVICE_METRICS_TOKEN_ENV": "METRICS_TOKEN", "METRICS_TOKEN": METRICS_TOKEN,
            "ODDSENGINE_SERVICE_SPLITS_TOKEN_ENV": "SPLITS_TOKEN", "SPLITS_TOKEN": SPLITS_TOKEN,
            **{f"ODDSENGINE_SERVICE_{name.upper()}": value for name, value in options.items()}, **(settings or {}),
        }  # fmt: skip
        self.logged = Logged()
        self.clock = Clock()
        if offers_live:  # as `oddsengine serve --demo`
            self.service = build_demo(structs.replace(load(None, environ), feeds={}), environ)
        else:
            self.service = build(load(None, environ), environ, demonstration=demonstration, clock=driven)
        self.node = self.service.node
        if driven is None:
            self.node.limits = Limits(clock=self.clock)
        self.service._run = self._play
        self.begin = threading.Event()  # warming up waits for it
        if not waits:
            self.begin.set()
        warm = self.node.warm
        self.node.warm = lambda: (self.begin.wait(PATIENCE_S), warm())[1]  # type: ignore[method-assign]
        self.played = threading.Event()
        self.film = film(seed, events, _begins() if now else START)
        self.shown = 0  # ticks
        self._ids = -1, dict[str, str]()  # as of an update
        self._ticks: SimpleQueue[tuple[int, Future[None]] | None] = SimpleQueue()
        self._listening = threading.Event()
        self._server = Server(self.service, "127.0.0.1", 0, self._heard)
        self._thread = threading.Thread(target=self._server.run, name="server", daemon=True)
        self.origin = ""
        self.closed = ""

    # ---- the server ----

    def start(self) -> "Running":
        self._thread.start()
        assert self._listening.wait(PATIENCE_S)
        if self.begin.is_set():
            assert self.played.wait(PATIENCE_S), self.log_text()
        return self

    def stop(self) -> None:
        self.begin.set()
        self._server.should_exit = True
        self._ticks.put(None)
        self._thread.join(PATIENCE_S)
        self.logged.end()
        assert not self._thread.is_alive()

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])

    @property
    def base(self) -> str:
        return f"{self.origin}/api/v1"

    def log_text(self) -> str:
        return self.logged.text

    def _heard(self, origin: str) -> None:
        self.origin = origin
        self._listening.set()

    # ---- the world ----

    def advance(self, ticks: int = 1) -> None:
        """Let the world go on; its prices are on the board when this returns."""
        done: Future[None] = Future()
        self._ticks.put((ticks, done))
        done.result(PATIENCE_S)

    def close_an_event(self) -> str:
        """Id of an event that began, and has closing lines that every tier sees; made when first asked for."""
        if not self.closed:
            now = self.node.engine.now
            assert now is not None
            sides = (("Boston Celtics", "home", 1.9), ("Miami Heat", "away", 2.0))
            rows = [
                {
                    "sportsbook": book, "event_id": "closed", "sport": "basketball", "league": "nba",
                    "home_team": "Boston Celtics", "away_team": "Miami Heat", "market_type": "moneyline",
                    "selection": team, "selection_type": side, "odds_decimal": odds, "is_live": False,
                    "event_start_time": now + timedelta(seconds=7), "last_seen_at": now,
                }
                for book in ("draftkings", "fanduel", "pinnacle", "sbobet")
                for team, side, odds in sides
            ]  # fmt: skip
            self.node.write(self.node.step, rows, now).result(PATIENCE_S)
            self.advance(14)
            assert self.node.past is not None
            self.node.past.settle()  # closing lines are written by a thread of their own
            self.closed = "closed"
        return self.closed

    def ids(self) -> dict[str, str]:
        """Ids that every tier sees; looked up again when the board has changed."""
        closed = self.close_an_event()
        if self._ids[0] != self.node.engine.number:
            self._ids = self.node.engine.number, self._look_up(closed)
        return dict(self._ids[1])

    def _look_up(self, closed: str) -> dict[str, str]:
        with self.client("free") as client:
            event = next(each for each in client.get("/events").json()["data"] if each["id"] != closed)
        with self.client("pro") as client:
            middle = client.get("/opportunities/middles?min_ev=-20").json()["data"][0]
        return {
            "event": event["id"], "sport": event["sport"], "league": event["league"], "book": event["books"][0],
            "middle": middle["id"], "since": "2026-02-07T18:00:00Z", "closed": closed,
        }  # fmt: skip

    def _play(self, service: Service) -> None:
        node = service.node
        self._step(_WARM_UP)
        add_splits(node.splits, node.engine, datetime.now(UTC), hours=1)
        self.played.set()
        while (asked := self._ticks.get()) is not None:
            ticks, done = asked
            try:
                self._step(ticks)
            except BaseException as error:
                done.set_exception(error)
                raise
            done.set_result(None)

    def _step(self, ticks: int) -> None:
        for _ in range(ticks):
            batch, scores, _ = self.film.tick(self.shown)
            self.shown += 1
            self.node.write(apply_batch, self.node, batch, scores, self.film.teams, batch.now).result()

    # ---- requests ----

    def client(self, tier: str | None = "enterprise", **more: Any) -> httpx2.Client:
        """A client with a tier's key; each request of it is in a minute of its own, so that limits never matter."""
        headers = {**({} if tier is None else {"X-API-Key": f"demo_{tier}"}), **more.pop("headers", {})}
        hooks = {"request": [lambda _: self.clock.pass_minute()]}
        # Without certificates, whose reading takes longer than most requests.
        more.setdefault("verify", False)
        return httpx2.Client(base_url=self.base, headers=headers, timeout=PATIENCE_S, event_hooks=hooks, **more)


@contextmanager
def running(folder: Path, **more: Any) -> Iterator[Running]:
    """A server for a while."""
    server = Running(folder, **more)
    try:
        yield server.start()
    finally:
        server.stop()


def has(tier: str, path: str) -> bool:
    """Whether a tier may ask for a path."""
    feature = next((feature for start, feature in FEATURES.items() if path.startswith(start)), "")
    return not feature or feature in TIERS[tier].features


def until(done: Callable[[], bool], what: str = "it") -> None:
    """Wait for something that happens soon."""
    end = (look := time.monotonic()) + PATIENCE_S
    while not done():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(pause(look, 0.01))
        look = time.monotonic()


def without_main_lines(data: Any) -> Any:
    """The same without the fields that follow from all books of the tier."""
    if isinstance(data, list):
        return [without_main_lines(each) for each in data]
    if not isinstance(data, dict):
        return data
    own = ("is_main_line", "is_alternate_line")
    return {name: without_main_lines(value) for name, value in data.items() if name not in own}
