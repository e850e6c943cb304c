"""The server: builds a node from settings, and runs it until it is stopped."""

import asyncio
import contextlib
import errno
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import wait
from contextlib import asynccontextmanager
from email.utils import formatdate
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import uvicorn
from msgspec import structs
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp

from oddsengine.matching import Matcher
from oddsengine.sources.secrets import Secrets
from oddsengine_service import demo
from oddsengine_service.api import Api
from oddsengine_service.app import application
from oddsengine_service.bettors import bets
from oddsengine_service.bettors.alerts import Alerts, ShareError
from oddsengine_service.bettors.plugin_targets import plugin_targets
from oddsengine_service.bettors.targets import Sender
from oddsengine_service.board.futures_board import stated_fields
from oddsengine_service.board.writer import StalledError
from oddsengine_service.clock import Clock
from oddsengine_service.feeds.build import sources
from oddsengine_service.feeds.check import quarantine, state_file
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.gauges import Gauges
from oddsengine_service.http.connections import CHECK_S, Connections
from oddsengine_service.http.cors import Origins, is_loopback
from oddsengine_service.http.middleware import Authenticate
from oddsengine_service.http.protocol import connecting_to
from oddsengine_service.http.request import BASE
from oddsengine_service.live_markets import PATH as LIVE
from oddsengine_service.live_markets import SOURCES, LiveMarkets
from oddsengine_service.lock import lock_folder, note_address
from oddsengine_service.mcp.endpoint import PATHS as MCP_PATHS
from oddsengine_service.mcp.endpoint import Mcp
from oddsengine_service.monitoring import log
from oddsengine_service.monitoring.memory import collect_rarely, share_arenas, trim
from oddsengine_service.monitoring.metrics import Listener, Metrics
from oddsengine_service.node import Node, open_node
from oddsengine_service.node_constants import EVERY_S, FairFile
from oddsengine_service.replication import ALONE, Replication
from oddsengine_service.routes.filter_routes import LISTS
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.settings import ArchiveSettings, Settings, SettingsError, make_folder, secret, with_sources
from oddsengine_service.site import Site
from oddsengine_service.ws.session import PATHS
from oddsengine_service.ws.ws_protocol import MOST_MESSAGE, SocketProtocol

_SWITCH = 0.0005  # seconds; how soon a computing thread yields to the event loop
_LAG_EVERY = 0.25  # seconds between two measurements of the event loop's lag
_SWEEP_EVERY = 10.0  # s
_TRIM_EVERY = 3  # sweeps
_SETTLE_EVERY = 10.0  # s
_TIDY_EVERY = 3600.0  # for records of revoked keys
_TICK = 1.0  # seconds between two steps without quotes
_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # where this machine finds what listens on all addresses
_AGAIN_S = 5.0  # minimum time between the starts of two nodes
_CURLS = """  curl -H 'X-API-Key: demo_pro' '{at}/odds?market=main&limit=3'
  curl -H 'X-API-Key: demo_pro' '{at}/opportunities/ev?min_ev=1&limit=3'
  curl -H 'X-API-Key: demo_hobby' '{at}/opportunities/arbitrage?min_profit=-1&format=csv'"""


class Service:
    """A node, the application that serves it, and what runs while it is served."""

    def __init__(
        self, node: Node, settings: Settings, environ: Mapping[str, str], run: Callable[["Service"], Any],
        authenticate: Authenticate | None = None, *, sender: Sender, fair: FairFile | None, ends: contextlib.ExitStack,
        live: str | None = None, owns_process: bool = False,
    ) -> None:  # fmt: skip
        self._owns_process = owns_process
        self.node, self.settings, self.environ = node, settings, environ
        self.metrics = Metrics()
        options = settings.service
        self.origin = options.url
        self.socket_paths: tuple[str, ...] = PATHS
        self.stream_paths: tuple[str, ...] = (f"{BASE}/stream",)
        self.connections = Connections(
            options.connections, options.trusted, stalled=options.stalled, unread=options.unread_bytes
        )
        self.alerts = Alerts(node, node.records, sender, LISTS, node.clock.time, self.origin, self._in_share)
        self.api = Api(node, ENDPOINTS, self.metrics, options.trusted, authenticate, self.alerts, strict=options.strict)
        self.metrics.add(Gauges(node, lambda: self.api.hub))
        self._metrics_token = secret(settings, "service.metrics_token_env", environ)
        if options.metrics_port and not is_loopback(options.metrics_host) and not self._metrics_token:
            raise SettingsError(
                f"{settings.file}: service.metrics_host {options.metrics_host!r} is not loopback, so metrics need a "
                "token: set service.metrics_token_env"
            )
        self.ends = ends  # closed at the end
        self.fair = fair  # if its changes are followed
        self.metrics.add(node.replication)
        self.loop: asyncio.AbstractEventLoop  # the loop that serves requests
        self._has_run = False
        self.restart_reason = ""  # reason to rebuild the node
        self._run = run
        self.site = Site(self.api, self.metrics, self._metrics_token, live)
        origins = options.origins or (("*",) if node.demo else ())
        self._tools = Mcp(self.api, Origins(origins, self.origin))
        self.app = application(
            self.api, {**self.site.apps, **dict.fromkeys(MCP_PATHS, self._tools)}, lifespan=self._lifespan,
            origins=origins, address=self.origin,
        )  # fmt: skip
        self.served: ASGIApp = self.app  # by `oddsengine serve`
        self.live: LiveMarkets | None = None

    def offer_live(self, make: Callable[[str], "Service"]) -> None:
        """Offer live prediction markets beside this demo; `make` builds their node for a league."""
        self.served = self.live = LiveMarkets(self.app, make, self.origin)
        self.socket_paths += tuple(LIVE + path for path in self.socket_paths)
        self.stream_paths += tuple(LIVE + path for path in self.stream_paths)

    async def stop(self) -> None:
        """Stop what would not end by itself: streams."""
        self.node.closing.set()
        if self.live is not None:
            await self.live.stop()
        if self.api.hub is not None:
            await self.api.hub.close()
        await self._tools.stop()

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run the node, and what has to be done regularly. Raises `RuntimeError` if it has run before."""
        if self._has_run:
            raise RuntimeError("a node runs once: make another one for another run")
        self._has_run = True
        self.loop = asyncio.get_running_loop()
        running = asyncio.create_task(asyncio.to_thread(self._start))
        jobs: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self._measure_lag,
            self._check_connections,
            self._sweep,
            self._follow_fair,
            partial(self._regularly, "bets", _SETTLE_EVERY, partial(bets.settle, self.node, self.node.records)),
            partial(self._regularly, "alerts", self.settings.alerts.every, self.alerts.begin),
            partial(self._regularly, "records", _TIDY_EVERY, self._tidy),
        ]
        tasks = [asyncio.create_task(self._always(job)) for job in jobs]
        try:
            yield
        finally:  # also if the application around the node fails
            for task in tasks:
                task.cancel()
            self.node.closing.set()
            try:
                await self.stop()
                with contextlib.suppress(Exception):
                    await running  # it writes until it ends
            finally:
                self.node.close()
                self.ends.close()
                log.event("stopped")

    async def _always(self, job: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a job, and begin again after an error."""
        while True:
            try:
                return await job()
            except Exception as error:
                log.failure(b"-", "(background)", error)
                await asyncio.sleep(_SWEEP_EVERY)

    def restart(self, reason: str) -> None:
        """Discard this node and continue with a new one."""
        if not self.restart_reason and not self.node.closing.is_set():
            self.restart_reason = reason
            self.node.wait_for(reason)
            log.event("restarts", reason=reason)

    async def _measure_lag(self) -> None:
        """Measure how late the event loop runs."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_EVERY
            await asyncio.sleep(_LAG_EVERY)
            self.metrics.lag.observe(max(0.0, loop.time() - due))

    async def _check_connections(self) -> None:
        """Close connections whose responses are not read."""
        while True:
            await asyncio.sleep(CHECK_S)
            self.connections.check()

    async def _sweep(self) -> None:
        """Free the memory of views that nobody reads."""
        for turn in count(1):
            await asyncio.sleep(_SWEEP_EVERY)
            await run_in_threadpool(self.node.boards.views.sweep)
            if turn % _TRIM_EVERY == 0:
                await run_in_threadpool(trim)

    async def _follow_fair(self) -> None:
        """Put the table of fair prices in force when its file changes; each process of a cluster has its own."""
        while self.fair is not None:
            await asyncio.sleep(EVERY_S)
            await run_in_threadpool(self.fair.check, self.node)

    async def _regularly(self, name: str, every: float, job: Callable[[], Any]) -> None:
        """Run a job every few seconds; an error is in `failures` until the job succeeds."""
        while True:
            await asyncio.sleep(every)
            replication = self.node.replication
            if not replication.records.writes_records or not (self.node.ready or replication.standing_by):
                continue  # in a cluster, one process does it
            try:
                await run_in_threadpool(job)
                self.node.report(name, "")
            except Exception as error:
                if name not in self.node.failures:
                    log.failure(b"-", f"({name})", error)
                self.node.report(name, f"{type(error).__name__}: {error}")

    def _in_share(self, account: str, job: Callable[[], Any], seconds: float) -> Any:
        """Run a job in an account's share of the answer threads; call it from other threads."""
        running = asyncio.run_coroutine_threadsafe(self.api.pool.run(account, job), self.loop)
        until = time.monotonic() + seconds
        while not running.done() and time.monotonic() < until and not self.node.closing.is_set():
            wait([running], 0.1)
        if not running.done() and running.cancel():
            raise ShareError
        return running.result()

    def _tidy(self) -> None:
        """Delete the records of revoked keys, which nobody can read."""
        self.node.records.drop({record.id for record in self.node.keys.list() if not record.active})

    def _start(self) -> None:
        """Warm up, then feed the board; runs in its own thread."""
        try:
            if self._run is demonstrate:
                self.node.wait_for(demo.OPENING)
            self.node.warm()
            if self._owns_process:
                collect_rarely()
            if self.node.ready:  # else it is logged later: by a gateway once it has caught up, and by the demo
                log.event("ready", seconds=round(self.node.clock.time() - self.node.started, 2))
            self.node.replication.run(self, self._run)
        except BaseException as error:
            self.node.report("feed", f"{type(error).__name__}: {error}")
            log.failure(b"-", "(start)", error)

    def listen_for_metrics(self) -> None:
        """Serve metrics on a separate port. Raises `ValueError` if the port is not available."""
        host, port = self.settings.service.metrics_host, self.settings.service.metrics_port
        try:
            listener = Listener(self.metrics, host, port, self._metrics_token)
        except OSError as error:
            raise ValueError(
                f"cannot listen on {host} port {port} for service.metrics_port: {error.strerror or error}"
            ) from None
        self.ends.callback(listener.close)


# ---- sources of the board ----


def demonstrate(service: Service) -> None:
    demo.run_world(service.node, hazards=service.settings.service.demo_hazards)


def tick(service: Service) -> None:
    while not service.node.closing.wait(_TICK):
        with contextlib.suppress(StalledError):
            service.node.write(service.node.step).result()


def feeding(settings: Settings, environ: Mapping[str, str]) -> Callable[[Service], None]:
    """The sources of the settings; invalid ones are rejected before anything runs."""
    secrets = Secrets()
    made = sources(settings, environ, secrets)
    fields = stated_fields(settings)

    def run(service: Service) -> None:
        node = service.node
        overrides = Path(settings.matching.overrides) if settings.matching.overrides else None
        node.futures.state(fields)
        hub = Hub(
            node, Matcher(), clock=node.clock.now, payloads=quarantine(settings, secrets), overrides=overrides,
            games=node.games, futures=node.futures, replication=node.replication, ages=True,
        )  # fmt: skip
        hub.applier.adopt(node.replication.decisions.values())
        node.use_feeds(hub)
        with secrets.out_of_logs():
            asyncio.run(_until(node, hub.run(made, state=state_file(settings))))

    return run


async def _until(node: Node, work: Coroutine[Any, Any, None]) -> None:
    """Run a function until the node closes."""
    running = asyncio.create_task(work)
    while not running.done() and not node.closing.is_set():
        await asyncio.wait([running], timeout=0.1)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


# ---- running ----


def build(
    settings: Settings, environ: Mapping[str, str], *, demonstration: bool,
    clock: Clock | None = None, authenticate: Authenticate | None = None, live: str | None = None,
    owns_process: bool = False,
) -> Service:  # fmt: skip
    """Build a node; `live` as in `Site`. One that owns its process collects garbage as suits a node."""
    clock = Clock() if clock is None else clock
    clock.on_fault = lambda text: log.event("clock", message=text)
    follows = settings.scale is not None and settings.scale.role == "gateway"
    run: Callable[[Service], None] = demonstrate if demonstration else tick
    if settings.feeds and not follows:
        run = feeding(settings, environ)
    with contextlib.ExitStack() as guard:
        stack = guard.enter_context(contextlib.ExitStack())  # closed in reverse order, also if the rest fails
        stack.enter_context(lock_folder(settings))
        fair = FairFile(settings)
        node = open_node(
            settings, environ, stack, fair=fair.table, demonstration=demonstration, clock=clock,
            replication=_replication(settings, environ, shares_keys=not demonstration),
        )  # fmt: skip
        sender = Sender(
            private=settings.alerts.private, mail=secret(settings, "alerts.mail_env", environ),
            others=plugin_targets(settings, environ, node.failures.report),
        )  # fmt: skip
        if problem := sender.mail_problem():
            raise SettingsError(f"{settings.file}: alerts.mail_env {problem}")
        followed = None if demonstration else fair
        service = Service(
            node, settings, environ, run, authenticate, sender=sender, fair=followed, ends=stack, live=live,
            owns_process=owns_process,
        )  # fmt: skip
        guard.pop_all()  # from here on, it is the service that closes the stack
    return service


def _replication(settings: Settings, environ: Mapping[str, str], *, shares_keys: bool) -> Replication:
    """The replication that the settings specify; only here is the NATS client imported.

    Raises `SettingsError` if the client is not installed, or settings contradict each other.
    """
    if settings.scale is None:
        return ALONE
    if settings.data.tape:
        raise SettingsError(
            f"{settings.file}: data.tape cannot be combined with [scale], because the log already records every step"
        )
    try:
        from oddsengine_service.scale.roles import Member  # noqa: PLC0415
    except ImportError as error:
        raise SettingsError(
            f"{settings.file}: [scale] needs the package {error.name}; run pip install 'oddsengine[scale]'"
        ) from None
    return Member(settings, environ, shares_keys=shares_keys)


def build_demo(settings: Settings, environ: Mapping[str, str], *, owns_process: bool = False) -> Service:
    """Build the demo of `oddsengine serve` for this machine, which offers live prediction markets."""

    def make(league: str) -> Service:
        feeds = with_sources(SOURCES, [league], environ).feeds
        data = structs.replace(settings.data, folder=str(Path(settings.data.folder) / "live"), tape=False)
        there = structs.replace(settings, feeds=feeds, data=data, archive=ArchiveSettings(), scale=None)
        make_folder(there)
        return build(there, environ, demonstration=True, live="")

    service = build(settings, environ, demonstration=True, live=LIVE, owns_process=owns_process)
    service.offer_live(make)
    return service


def configured(service: Service, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        service.served, host=host, port=port, http=connecting_to(service), interface="asgi3", log_config=None,
        access_log=False, server_header=False, timeout_graceful_shutdown=10, timeout_keep_alive=75, backlog=2048,
        proxy_headers=False, ws=SocketProtocol, ws_max_size=MOST_MESSAGE, ws_ping_interval=None,
        ws_per_message_deflate=False,
    )  # fmt: skip


def serve(
    settings: Settings, environ: Mapping[str, str], *, demonstration: bool, announce: Callable[[str], None]
) -> None:
    """Serve until a signal stops the process."""
    if demonstration and settings.feeds and not is_loopback(settings.service.host):
        raise ValueError(
            "--live uses public keys, with which anybody could spend what the sources allow you: it must bind to a "
            f"loopback address, got host {settings.service.host}"
        )
    sys.setswitchinterval(_SWITCH)
    began = time.monotonic()
    quiet = sys.stderr.isatty() if settings.service.quiet is None else settings.service.quiet
    with log.written(quiet=quiet):
        while _serve(settings, environ, demonstration=demonstration, announce=announce):
            announce = lambda _: None  # noqa: E731  announced already
            time.sleep(max(0.0, began + _AGAIN_S - time.monotonic()))  # whatever ended this node may persist
            began = time.monotonic()


def _serve(
    settings: Settings, environ: Mapping[str, str], *, demonstration: bool, announce: Callable[[str], None]
) -> str:
    """Serve with one node. Returns why another one is needed, or an empty string."""
    options = settings.service
    listeners = _listeners(settings)
    try:
        share_arenas()
        local = is_loopback(options.host)
        if demonstration and not settings.feeds and local:
            service = build_demo(settings, environ, owns_process=True)
        else:
            service = build(settings, environ, demonstration=demonstration, owns_process=True)

        def listens(at: str) -> None:
            try:
                note_address(settings, f"{at}{BASE}/health")
            except OSError as error:
                log.event("lock", error=f"the address is not noted: {error.strerror or error}")
            announce(_hello(at, demonstration=demonstration, feeds=list(settings.feeds), local=local))

        server = Server(service, options.host, options.port, listens)
        if options.metrics_port:
            try:
                service.listen_for_metrics()
            except ValueError:
                service.ends.close()
                raise
        try:
            server.run(listeners)
        except OSError as error:  # another process was faster to listen
            raise _unavailable(settings, error) from None
    finally:
        for listener in listeners:
            listener.close()
    return service.restart_reason


def _listeners(settings: Settings) -> list[socket.socket]:
    """Bind to the address of the settings, before anything is started.

    Raises `ValueError` if that is not possible, or `SettingsError` if another node has the data folder, too.
    """
    host, port, scale = settings.service.host, settings.service.port, settings.scale
    try:
        return _bound(host, port, shared=scale is not None and scale.role == "gateway")
    except OSError as error:
        lock_folder(settings).close()
        raise _unavailable(settings, error) from None


def _unavailable(settings: Settings, error: OSError) -> ValueError:
    at = f"cannot listen on {settings.service.host} port {settings.service.port}"
    if error.errno == errno.EADDRINUSE:
        return ValueError(f"{at}: it is in use; choose another port with --port or service.port")
    return ValueError(f"{at}: {(error.strerror or str(error)).lower()}")


def _bound(host: str, port: int, *, shared: bool) -> list[socket.socket]:
    """Sockets on a port of every address of a host.

    Several gateways of this machine can share a port; a writer would get requests of theirs.
    """
    bound: list[socket.socket] = []
    failure = OSError(errno.EADDRNOTAVAIL, "not an address of this machine")
    for family, *_, address in dict.fromkeys(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)):
        try:
            made = socket.socket(family)
            bound.append(made)
            if os.name == "posix":  # elsewhere it would share a port that is in use
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if shared and hasattr(socket, "SO_REUSEPORT"):
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            made.bind((address[0], port, *address[2:]))
            port = made.getsockname()[1]
        except OSError as error:
            bound.pop().close()
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # such as IPv6 where there is none
                for other in bound:
                    other.close()
                raise
    if not bound:
        raise failure
    return bound


class Server(uvicorn.Server):
    """Reports its address once it listens, and ends streams before it waits for requests in flight."""

    def __init__(self, service: Service, host: str, port: int, ready: Callable[[str], None]) -> None:
        super().__init__(configured(service, host, port))
        self._service, self._ready = service, ready

    async def startup(self, sockets: Any = None) -> None:
        try:
            await super().startup(sockets)
        except OSError:
            await self.lifespan.shutdown()
            raise
        if self.started:
            host, port = _HERE.get(self.config.host, self.config.host), self.servers[0].sockets[0].getsockname()[1]
            self._ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def on_tick(self, counter: int) -> bool:
        """End if another node is needed.

        While the wall clock is wrong, `Date` is the node's time, by which ages of prices are measured.
        """
        over = await super().on_tick(counter) or bool(self._service.restart_reason)
        clock = self._service.node.clock
        if counter % 10 == 0 and clock.fault():
            self.server_state.default_headers = [(b"date", formatdate(clock.time(), usegmt=True).encode())]
        return over

    async def shutdown(self, sockets: Any = None) -> None:
        await self._service.stop()
        await super().shutdown(sockets)
        log.flush()  # the signal that stopped the server is raised again, and may end the process


def _market(feeds: Sequence[str]) -> str:
    return f"Live prices of {', '.join(feeds)}" if feeds else "Simulated market in real time"


def _hello(at: str, *, demonstration: bool, feeds: Sequence[str], local: bool) -> str:
    lines = [f"Page: {at}/", f"API: {at}{BASE}; reference: {at}/docs"]
    if demonstration:
        lines += [
            f"{_market(feeds)}; API keys: demo_free, demo_hobby, demo_pro, demo_sharp, demo_enterprise",
            _CURLS.format(at=at + BASE),
        ]
    if demonstration and not local:
        lines.append("Anyone who reaches this port can use the demo: its keys are public. It offers no live markets.")
    return "\n".join(lines) + "\n"
