"""A node: one engine with its data sources and stores. Every request is answered from it.

Its `Writer` changes the engine.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from oddsengine import load_kernels
from oddsengine.catalog import FairTable
from oddsengine.history.archive import ArchiveError
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine_service.accounts.keys import KeyStore, open_store
from oddsengine_service.accounts.limits import Limits, Usage
from oddsengine_service.accounts.records import FILE as RECORDS
from oddsengine_service.accounts.records import Records
from oddsengine_service.board.boards import Boards
from oddsengine_service.board.freshness import Freshness
from oddsengine_service.board.futures_board import NodeFutures
from oddsengine_service.board.game_store import GameBoard
from oddsengine_service.board.node_guards import GuardWatch, guards_of
from oddsengine_service.board.split_store import Splits
from oddsengine_service.board.writer import Writer
from oddsengine_service.clock import Clock
from oddsengine_service.feeds.status import Feeds
from oddsengine_service.history import recording
from oddsengine_service.history.archiving import NodeArchive
from oddsengine_service.history.past import Past
from oddsengine_service.history.recording import NodeTape
from oddsengine_service.history.truth import TruthFile
from oddsengine_service.monitoring import log
from oddsengine_service.replication import ALONE, Replication
from oddsengine_service.settings import Settings, SettingsError, secret
from oddsengine_service.wire.encodings import encodings
from oddsengine_service.wire.splits_response import SplitsGiven

VERSION = "v1"


_MOST_SEARCHES = 4  # threads of a large step


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

    Readers use the board of their tier (`boards`) from any thread. Ages are measured by `clock`.

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
    past
        The history; None keeps none.
    truth
        The report of what the EV shown was worth; None is none.
    replication
        How the node shares its state with other processes.
    splits_token
        Token for posting splits; empty disables it.
    rates
        Rates of currencies, for the largest sizes of arbitrages; empty: those between two currencies are unknown.
    stream_settings
        Arguments of `stream.subscribers.Subscribers`.
    on_compile
        Receives messages about the compilation of kernels.
    """

    def __init__(
        self, engine: Engine, keys: KeyStore, limits: Limits, *, demo: bool = False, simulated: bool = False,
        clock: Clock | None = None, reference: str = "close", failures: Failures | None = None,
        records: Records | None = None,
        past: Past | None = None, truth: TruthFile | None = None, replication: Replication = ALONE,
        splits_token: str = "", rates: Mapping[str, float] = MappingProxyType({}),
        stream_settings: Mapping[str, Any] = MappingProxyType({}),
        on_compile: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(engine)
        self.keys, self.limits = keys, limits
        self.demo, self.simulated = demo, simulated  # everybody knows its keys; its prices are invented
        self.replication = replication
        self.ready, self.waits_for = False, replication.waits_for  # see `wait_for`
        self.clock = Clock() if clock is None else clock
        self.started = self.clock.time()
        self.changed_at = 0.0  # when the board last changed
        self.failures = Failures() if failures is None else failures
        self._guards = GuardWatch(engine, self.failures.report)
        self.games, self.futures = GameBoard(replication), NodeFutures((), replication)
        self.splits = Splits(replication=replication)
        self.splits_token = splits_token
        self.rates = rates
        self.boards = Boards(engine, _method(reference), encodings(rates))
        self.freshness = Freshness(engine, self.clock.time)
        self.past = past
        self.truth = TruthFile() if truth is None else truth
        self.feeds: Feeds | None = None
        self.records = Records() if records is None else records
        self.stream_settings = stream_settings
        self.closing = threading.Event()
        self._on_compile = on_compile
        if past is not None:
            self.games.listen(past.play)
        replication.attach(self)

    def warm(self) -> None:
        """Load the kernels and create the delayed boards; the node is ready afterwards."""
        load_kernels(self._on_compile)
        self.boards.delay()
        self.engine.keep_replica()
        self.ready = not self.waits_for

    def wait_for(self, what: str) -> None:
        """Serve no API requests until something has happened; an empty text makes the node ready."""
        self.ready, self.waits_for = not what, what

    def use_feeds(self, feeds: Feeds) -> None:
        """Show the statuses of these feeds."""
        self.feeds = feeds

    def step(self, quotes: Any = (), now: datetime | None = None, **more: Any) -> Update:
        """Apply a batch and publish the update; only in the writer (`write`)."""
        return super().step(quotes, self.clock.now() if now is None else now, **more)

    def put_splits(self, splits: Iterable[SplitsGiven], now: datetime) -> int:
        """Store records of betting splits. Returns how many were new."""
        splits = list(splits)
        stored = self.replication.put_splits(splits)
        return sum(self.splits.put(record, now) for record in splits) if stored is None else stored

    def publish(self, update: Update) -> None:
        if self.past is not None:
            self.past.follow(update)
        if update.what.size or update.seen:
            self.changed_at = self.clock.time()
        for delay, board in self.boards.late.items():
            self.report(f"board delayed by {delay} s", board.failure)
        super().publish(update)

    def stepped(self, seconds: float) -> None:
        self._guards.after(seconds)

    def report(self, name: str, failure: str) -> None:
        """Set a current failure; an empty one ends it."""
        self.failures.report(name, failure)

    def close(self) -> None:
        """Finish the current job and cancel the others."""
        self.closing.set()
        super().close()


def _method(reference: str) -> str:
    return "power" if reference == "classical" else "close"


def open_node(
    settings: Settings, environ: Mapping[str, str], ends: ExitStack, *, fair: FairTable | None = None,
    demonstration: bool = False, clock: Clock | None = None, replication: Replication = ALONE,
) -> Node:  # fmt: skip
    """Open the node that the settings specify. What has to be closed with it is in `ends`.

    Raises `SettingsError` if a setting is not valid, and `DatabaseError` if a file of the data folder is not.
    """
    clock, options, folder = Clock() if clock is None else clock, settings.service, Path(settings.data.folder)
    failures = Failures(_log_failure)
    ends.callback(replication.close)  # if the rest fails
    store = ends.enter_context(closing(open_store(settings, demo=demonstration, replication=replication.keys)))
    if store.warning and settings.scale is None and not demonstration:  # else the keys come from the log
        log.event("keys", message=store.warning)
    usage = ends.enter_context(closing(Usage(
        folder / settings.keys.file, clock=clock.time, on_failure=partial(failures.report, "usage"),
        replication=replication.usage,
    )))  # fmt: skip
    records = ends.enter_context(closing(Records(
        None if demonstration else folder / RECORDS, replication.records, partial(failures.report, "damaged records"),
    )))  # fmt: skip
    if records.is_new and settings.scale is None and not demonstration and store.is_used:
        failures.report(
            "records file", f"{folder / RECORDS} was missing or empty, although keys of this folder have been used: if "
            "bets, filters and alerts were lost, stop the node and restore the file from a backup",
        )  # fmt: skip
    ends.callback(replication.close)
    guards = guards_of(settings, failures.report)
    engine = Engine(guards=guards, fair=fair, threads=min(os.cpu_count() or 1, _MOST_SEARCHES))
    method = _method(settings.fair.reference)
    if settings.data.tape and not demonstration:
        where = folder / recording.FOLDER
        tape = NodeTape(engine, where, settings.data.tape_days, clock.now(), partial(failures.raised, "tape"))
        ends.callback(tape.close)
    archive: NodeArchive | None = None
    if settings.archive.to:
        started = f"node {clock.now():%Y-%m-%dT%H:%M:%S.%fZ}"
        try:
            archive = NodeArchive(
                engine, folder, settings.archive, lambda: replication.origin or started,
                partial(failures.report, "archive"), lambda: replication.writes,
            )  # fmt: skip
        except ArchiveError as error:
            raise SettingsError(f"{settings.file}: archive.to: {error}") from None
        ends.callback(archive.close)
    past = ends.enter_context(closing(Past(
        engine, None if demonstration else folder, archive, failed=partial(failures.raised, "closing"), method=method,
        records=replication.leads, store=replication.closings,
    )))  # fmt: skip
    return Node(
        engine, store, Limits(usage, clock.rough_time, lambda: clock.ahead, replication=replication.counts),
        demo=demonstration, simulated=demonstration and not settings.feeds, clock=clock,
        reference=settings.fair.reference, failures=failures, records=records,
        past=past, truth=TruthFile.of_settings(settings),
        replication=replication, splits_token=secret(settings, "service.splits_token_env", environ),
        rates=settings.rates.table,
        stream_settings={
            "heartbeat": options.heartbeat, "stalled": options.stalled, "send_buffer": options.send_buffer,
        },
        on_compile=lambda text: log.event("kernels", message=text),
    )  # fmt: skip


def _log_failure(name: str, failure: str) -> None:
    """Log that something begins to fail, or works again; `/health` only names it."""
    if failure:
        log.event("failing", logging.WARNING, what=name, error=failure)
    else:
        log.event("works again", what=name)
