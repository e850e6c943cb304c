"""Live prediction markets beside the demo: a second node with real prices, below `/live`.

It is started when somebody asks for it, since the demo calls no other host by itself, and stops when it has not been
read for a while. `GET /live/state` says how it is, and `POST /live/state?league=nfl` starts it, at most once in a
while, since anybody who reaches the demo can ask. Neither is part of the API, and only the demo of `oddsengine serve`
has them.

    off         not asked for, or stopped
    starting    its sources are being read
    ready       there are games
    failed      there are none; `reason` says why, and the node is stopped again
"""

import asyncio
import gc
from collections.abc import Callable
from math import ceil, inf
from typing import Protocol
from urllib.parse import parse_qs

import msgspec
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from oddsengine import catalog
from oddsengine.sources import KINDS
from oddsengine_service.errors import Problem, must_be, one_of, origin_of, quoted, wrong_method
from oddsengine_service.feeds.status import SourceStatus
from oddsengine_service.http.cors import Origins
from oddsengine_service.http.middleware import refusal
from oddsengine_service.http.responses import EncodedResponse, json_response
from oddsengine_service.monitoring import log
from oddsengine_service.node import Node

PATH = "/live"
STATE = f"{PATH}/state"
SOURCES = ("kalshi", "polymarket")
IDLE_S = 300.0  # without a reader until it stops
START_S = 90.0  # until a source that has neither answered nor failed counts as failed
AGAIN_S = 30.0  # between two starts
_LOOK_S = 0.5
_METHODS = ("GET", "HEAD", "POST")
_OFF, _STARTING, _READY, _FAILED = "off", "starting", "ready", "failed"


class LiveState(msgspec.Struct, frozen=True):
    """What `/live/state` says."""

    state: str
    league: str = ""
    games: int = 0
    reason: str = ""


class NamedLeague(msgspec.Struct, frozen=True):
    """A league that can be chosen."""

    id: str
    name: str


class LiveNode(Protocol):
    """The second node, and its application."""

    app: Starlette
    node: Node


def leagues() -> tuple[NamedLeague, ...]:
    """The leagues that all of the sources have."""
    first, *others = (KINDS[name].leagues for name in SOURCES)
    both = [league for league in first if all(league in other for other in others)]
    return tuple(NamedLeague(league, catalog.league(league).name) for league in both)


class LiveMarkets:
    """The application of the demo, with that of live prediction markets below `PATH`.

    Parameters
    ----------
    demo
        The application of everything else.
    make
        Makes the second node for a league; called in another thread.
    address
        Of the demo, if it has another than those of this machine.
    """

    def __init__(self, demo: ASGIApp, make: Callable[[str], LiveNode], address: str = "") -> None:
        self._demo, self._make = demo, make
        self._origins = Origins((), address, local=True)
        self._started_at = -inf
        self._leagues = leagues()
        self.state = LiveState(_OFF)
        self._running: LiveNode | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._changing = asyncio.Lock()
        self._readers, self._read_at = 0, 0.0  # requests in progress, and when the last one ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request or a WebSocket."""
        path: str = scope.get("path", "")
        if path != PATH and not path.startswith(f"{PATH}/"):
            await self._demo(scope, receive, send)
        elif path == STATE and scope["type"] == "http":
            await (await self._answer(scope))(scope, receive, send)
        elif path != PATH and (running := self._running) is not None:
            await self._read(running, {**scope, "root_path": PATH}, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1001})
        else:
            await self._not_running(scope)(scope, receive, send)

    async def _read(self, running: LiveNode, scope: Scope, receive: Receive, send: Send) -> None:
        self._readers += 1
        try:
            await running.app(scope, receive, send)
        finally:
            self._readers -= 1
            self._read_at = asyncio.get_running_loop().time()

    def _not_running(self, scope: Scope) -> EncodedResponse:
        """The page leads to that of the demo, where live prediction markets can be chosen."""
        if scope["path"] == PATH and self._running is not None:
            return EncodedResponse(307, [(b"location", f"{PATH}/".encode()), (b"content-length", b"0")], b"")
        if scope["path"] in (PATH, f"{PATH}/"):
            return EncodedResponse(307, [(b"location", b"/"), (b"content-length", b"0")], b"")
        why = self.state.reason or "they were not chosen"
        return _refused(Problem(503, "unavailable", f"no live prediction markets: {why}", retry_after=5), scope)

    async def _answer(self, scope: Scope) -> EncodedResponse:
        method, host = scope["method"], dict(scope["headers"]).get(b"host", b"")
        try:
            if method not in _METHODS:
                raise wrong_method(STATE, method, _METHODS)
            if not self._origins.allow(scope["headers"], host):
                raise Problem(403, "origin_not_allowed", "only the demo's own page may ask for live prediction markets")
            if method == "POST":
                await self.start(self._league(scope["query_string"]))
        except Problem as problem:
            return _refused(problem, scope)
        document = {**msgspec.to_builtins(self.state), "leagues": msgspec.to_builtins(self._leagues)}
        return json_response(200, {"data": document})

    def _league(self, query: bytes) -> str:
        given, known = parse_qs(query.decode("latin-1")).get("league", [""])[-1], [each.id for each in self._leagues]
        if given not in known:
            raise Problem(400, "validation_error", must_be("league", one_of(known), quoted(given)))
        return given

    # ---- the second node ----

    async def start(self, league: str) -> None:
        """Start it for a league, unless it runs for that league already. Raises `Problem` 429 if it is too early."""
        loop = asyncio.get_running_loop()
        async with self._changing:
            if self.state.league == league and self.state.state in (_STARTING, _READY):
                return
            if (left := ceil(max(0.0, self._started_at + AGAIN_S - loop.time()))) > 0:
                message = f"a league is read at most every {AGAIN_S:g} s; retry in {left} s"
                raise Problem(429, "rate_limited", message, retry_after=left)
            self._started_at = loop.time()
            await self._end()
            self._stopping.clear()
            self.state = LiveState(_STARTING, league)
            self._task = asyncio.create_task(self._run(league))

    async def stop(self) -> None:
        """Stop it, and wait for its end."""
        async with self._changing:
            await self._end()

    async def _end(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await self._task
            self._task = None

    async def _run(self, league: str) -> None:
        log.event("live markets", state=_STARTING, league=league)
        try:
            running = await asyncio.to_thread(self._make, league)
            async with running.app.router.lifespan_context(running.app):
                self._running, self._read_at = running, asyncio.get_running_loop().time()
                try:
                    end = await self._follow(running.node, league)
                finally:
                    self._running = None
        except Exception as error:
            log.failure(b"-", PATH, error)
            end = LiveState(_FAILED, league, reason="their node could not be started; its log says why")
        self.state = end
        running = None  # type: ignore[assignment]  # so that its memory can be freed
        await asyncio.to_thread(gc.collect)
        log.event("live markets", state=end.state, league=league, reason=end.reason)

    async def _follow(self, node: Node, league: str) -> LiveState:
        """Say how a node is until it has to stop. Returns the state in which it ends."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not self._stopping.is_set():
            sources = node.feeds.statuses() if node.feeds is not None else []  # before the board, which has all of them
            games = (await asyncio.to_thread(node.engine.rejected_by, "stale"))["event_id"].n_unique()
            if games or self.state.state == _READY:
                self.state = LiveState(_READY, league, games)
            elif why := self._why_none(node, sources, league, late=loop.time() > began + START_S):
                return LiveState(_FAILED, league, reason=why)
            if not self._readers and loop.time() > self._read_at + IDLE_S:
                return LiveState(_OFF, league, reason=f"stopped, as nobody read them for {IDLE_S / 60.0:g} minutes")
            try:
                async with asyncio.timeout(_LOOK_S):
                    await self._stopping.wait()
            except TimeoutError:
                continue
        return LiveState(_OFF, league)

    def _why_none(self, node: Node, sources: list[SourceStatus], league: str, *, late: bool) -> str:
        """Why a node has no games; empty while they may still come."""
        if "feed" in node.failures:
            return "their feeds could not be started; the log says why"
        known = [each for each in sources if each.caught_up or each.failures]
        if len(known) < len(SOURCES) and not late:
            return ""
        name = next(each.name for each in self._leagues if each.id == league)
        return "; ".join(_why(each, name) for each in sources) or "the sources did not start"


def _why(source: SourceStatus, league: str) -> str:
    """Why a source has no games, for people: without the addresses and times that are in the log."""
    name = catalog.book(source.name).name
    if source.failures:
        words = source.public.partition(", since ")[0].rpartition(": ")[2]
        return f"{name} {words.removeprefix('it ')}"
    return f"{name} has no {league} games with prices" if source.caught_up else f"{name} has not answered yet"


def _refused(problem: Problem, scope: Scope) -> EncodedResponse:
    return refusal(problem, origin_of(dict(scope["headers"]).get(b"host", b"")))
