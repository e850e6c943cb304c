"""A node: one engine with its data sources and stores. Every request is answered from it.

`Writer` is the part of it that changes the engine.
"""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from types import MappingProxyType
from typing import Any

from oddsengine import load_kernels, query
from oddsengine.live.delayed import DelayedBoard
from oddsengine.live.engine import Batch, Engine
from oddsengine.live.update import Update
from oddsengine.query import StatsCache
from oddsengine_service.accounts.keys import KeyStore
from oddsengine_service.accounts.limits import Limits
from oddsengine_service.accounts.records import Records, RecordWriter
from oddsengine_service.accounts.tiers import TIERS, Tier
from oddsengine_service.board.ended import EndedRows
from oddsengine_service.board.futures import NodeFutures
from oddsengine_service.board.games import GameBoard
from oddsengine_service.board.splits import Splits
from oddsengine_service.board.views import Board, Views
from oddsengine_service.clock import Clock
from oddsengine_service.feeds.status import Feeds
from oddsengine_service.history.past import Past
from oddsengine_service.monitoring.metrics import Histogram
from oddsengine_service.wire.splits import SplitsGiven

VERSION = "v1"


class StalledError(RuntimeError):
    """The data cannot be stored at the moment; nothing was applied."""


class Writer:
    """An engine, and the thread that changes it: jobs of `write` run one after another, and only they make steps."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.followers: list[Callable[[Update], None]] = []  # called with every update, before the next step
        self.steps = Histogram("oddsengine_step_seconds", "How long steps of the engine took")
        self.stepping = False  # a step is running
        self._jobs = ThreadPoolExecutor(1, thread_name_prefix="writer")

    def step(self, quotes: Any, now: datetime | None, **more: Any) -> Update:
        """Apply a batch and publish the update; only in the writer (`write`)."""
        return self._published(self.engine.step, quotes, now, **more)

    def feed(self, batch: Batch) -> Update:
        """Apply a batch of another process's engine and publish the update; only in the writer."""
        return self._published(self.engine.feed, batch)

    def _published(self, make: Callable[..., Update], *args: Any, **more: Any) -> Update:
        began, self.stepping = time.perf_counter(), True
        try:
            update = make(*args, **more)
        finally:
            self.stepping = False
        self.steps.observe(time.perf_counter() - began)
        self.publish(update)
        return update

    def publish(self, update: Update) -> None:
        for follow in tuple(self.followers):
            follow(update)

    def write(self, job: Callable[..., Any], *args: Any, **words: Any) -> "Future[Any]":
        """Run a job in the writer, after those already queued."""
        return self._jobs.submit(job, *args, **words)

    async def written(self, job: Callable[..., Any], *args: Any) -> Any:
        """Run a job in the writer, and wait for its result without blocking the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._jobs, job, *args)

    @property
    def writing(self) -> bool:
        """Whether the writer can take jobs; its thread starts with the first one."""
        threads = list(self._jobs._threads)
        return not self._jobs._shutdown and (not threads or any(thread.is_alive() for thread in threads))

    def close(self) -> None:
        """Finish the current job and cancel the others."""
        self._jobs.shutdown(wait=True, cancel_futures=True)


class Failures(dict[str, str]):
    """What fails at the moment, by name; `on_change` receives failures that begin, and "" when they end."""

    def __init__(self, on_change: Callable[[str, str], None] = lambda *_: None) -> None:
        super().__init__()
        self._on_change = on_change

    def report(self, name: str, failure: str) -> None:
        """Set a current failure; an empty one ends it."""
        changed = bool(failure) != (name in self)
        if failure:
            self[name] = failure
        else:
            self.pop(name, None)
        if changed:
            self._on_change(name, failure)

    def raised(self, name: str, error: Exception | None) -> None:
        """Report an error, or with None that there is none any more."""
        self.report(name, "" if error is None else str(error) or type(error).__name__)


class Node(Writer):
    """An engine with its sources and stores.

    Readers use the engine of their tier (`board`) from any thread. Ages are measured by `clock`.

    Parameters
    ----------
    engine, keys, limits
        The board, the API keys, and what each account has used.
    demo
        Whether the market is simulated, and its keys are public.
    clock
        The node's time; None is that of the machine.
    reference
        `close`, or `classical` for views that compare with a sharp book's price.
    failures
        Where failures are reported.
    records
        What API keys store: filters, alerts, bets; None keeps them in memory.
    splits_token
        Token for posting splits; empty disables it.
    stream_settings
        Arguments of `stream.sending.Subscribers`.
    on_compile
        Receives messages about the compilation of kernels.
    """

    def __init__(
        self, engine: Engine, keys: KeyStore, limits: Limits, *, demo: bool = False, clock: Clock | None = None,
        reference: str = "close", failures: Failures | None = None, records: Records | None = None,
        splits_token: str = "", stream_settings: Mapping[str, Any] = MappingProxyType({}),
        on_compile: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(engine)
        self.keys, self.limits, self.demo = keys, limits, demo
        self.ready = False
        self.waits_for = ""  # what else has to happen before the node is ready
        self.standing_by = False  # it writes the log, or may take over, and serves no API requests
        self.clock = Clock() if clock is None else clock
        self.started = self.clock.time()
        self.born = self.started  # start of the step count; the same for all processes of a cluster
        self.changed_at = 0.0  # when the board last changed
        self.failures = Failures() if failures is None else failures
        self.games, self.futures, self.splits = GameBoard(), NodeFutures(), Splits()
        self.splits_token = splits_token
        self.method = "power" if reference == "classical" else "close"  # method of views without a reference
        self.ended = EndedRows()
        self.views, self.stats = Views(method=self.method, ended=self.ended), StatsCache()
        self.splits_to: Callable[[list[SplitsGiven]], int] | None = None  # set if another process stores splits
        self.past: Past | None = None
        self.feeds: Feeds | None = None
        self.records = Records() if records is None else records
        self.shared_records: RecordWriter | None = None  # set if another process stores records
        self.stream_settings = stream_settings
        self.closing = threading.Event()
        self._on_compile = on_compile
        self._delays = sorted({tier.delay for tier in TIERS.values() if tier.delay})
        self._late: dict[int, DelayedBoard] = {}
        self._indexes: dict[Board, query.Index] = {}

    def warm(self) -> None:
        """Load the kernels and create the delayed boards; the node is ready afterwards."""
        load_kernels(self._on_compile)
        for delay in self._delays:
            self._late[delay] = self.engine.delayed(delay)
        self.engine.keep_replica()
        _collect_rarely()
        self.ready = not self.waits_for

    def board(self, tier: Tier) -> Board:
        return self._late[tier.delay] if tier.delay else self.engine

    def index(self, board: Board) -> query.Index:
        """The index of one of the node's boards; created on first use."""
        return self._indexes.get(board) or self._indexes.setdefault(board, query.Index(board))

    def step(self, quotes: Any = (), now: datetime | None = None, **more: Any) -> Update:
        """Apply a batch and publish the update; only in the writer (`write`)."""
        return super().step(quotes, self.clock.now() if now is None else now, **more)

    def put_splits(self, splits: Iterable[SplitsGiven], now: datetime) -> int:
        """Store records of betting splits. Returns how many were new."""
        if self.splits_to is not None:
            return self.splits_to(list(splits))
        return sum(self.splits.put(record, now) for record in splits)

    def publish(self, update: Update) -> None:
        if self.past is not None:
            self.past.follow(update)
        if update.what.size or update.seen:
            self.changed_at = self.clock.time()
        for delay, board in self._late.items():
            self.report(f"board delayed by {delay} s", board.failure)
        super().publish(update)

    def report(self, name: str, failure: str) -> None:
        """Set a current failure; an empty one ends it."""
        self.failures.report(name, failure)

    def close(self) -> None:
        """Finish the current job and cancel the others."""
        self.closing.set()
        super().close()


def _collect_rarely() -> None:
    """Make full garbage collections rare: each walks all texts of the board, 0.1 s for 100,000 prices."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
