"""History of a node: closing lines, the bets that were shown, and price movements."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from oddsengine.history.closing import ClosingRecorder, Store
from oddsengine.history.movements import Ring
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine_service.accounts.database import StoreError
from oddsengine_service.history.archiving import NodeArchive
from oddsengine_service.history.closing_store import opened

_WAITING = 1000  # queued jobs
_RECENT = 1 << 18  # price movements in memory if an archive has all of them
_GRADED_EVERY_S, _GRADED_D = 300.0, 30


class Past:
    """The history of a node: closing lines, bets, and price movements.

    Parameters
    ----------
    engine
        The engine whose updates are followed.
    folder
        The data folder; None keeps everything in memory.
    archive
        Has all price movements; without it only recent ones are kept, in memory.
    records
        Whether closing lines and bets are recorded here; else another process does.
    store
        Stores what is recorded; None is `closings` itself.
    failed
        Called with the error when something could not be written, and with None when writing works again; the engine
        continues.
    method
        Of the view whose +EV prices count as shown; see `Engine.view`.
    """

    def __init__(
        self, engine: Engine, folder: str | Path | None = None, archive: NodeArchive | None = None,
        failed: Callable[[Exception | None], None] = lambda _: None, method: str = "close", *, records: bool = True,
        store: Store | None = None,
    ) -> None:  # fmt: skip
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="closing")
        self._room = threading.BoundedSemaphore(_WAITING)
        self._failed = failed
        self._unwritten: deque[Callable[[], None]] = deque(maxlen=_WAITING)  # since the disk is full
        self.closings = opened(folder)
        self.recent = Ring(engine) if archive is None else Ring(engine, most=_RECENT)
        self.history: Ring | NodeArchive = self.recent if archive is None else archive
        self._recorder: ClosingRecorder | None = None
        self._graded: tuple[int, float | None, float | None, float | None] | None = None
        self._graded_at = -_GRADED_EVERY_S
        if records:
            self._recorder = ClosingRecorder(engine, store or self.closings, self._later, method=method)

    def follow(self, update: Update) -> None:
        """Record an update; in the thread that made it, before the next step."""
        if self._recorder is not None:
            self._recorder.follow(update)
        self.recent.follow(update)

    def play(self, states: Mapping[str, Any], _: Iterable[str] = ()) -> None:
        """Settle the bets of finished games; a listener of the game states."""
        for event, state in states.items():
            home, away = state["home_score"], state["away_score"]
            if not state["is_live"] and home is not None and away is not None:
                self._later(partial(self.closings.settle, event, home, away))

    def lately(self) -> tuple[int, float | None, float | None, float | None] | None:
        """EV and CLV of the last 30 days, cached; None before the first result."""
        now = time.monotonic()
        if now >= self._graded_at + _GRADED_EVERY_S:
            self._graded_at = now
            with suppress(RuntimeError):  # closed
                self._pool.submit(self._grade)
        return self._graded

    def _grade(self) -> None:
        self._graded = self.closings.lately(_GRADED_D)

    def _later(self, job: Callable[[], None]) -> None:
        """Queue a job; blocks while too many are queued."""
        self._room.acquire()
        try:
            self._pool.submit(self._do, job)
        except RuntimeError:  # closed
            self._room.release()

    def _do(self, job: Callable[[], None]) -> None:
        self._unwritten.append(job)
        self._write()
        self._room.release()

    def _write(self) -> None:
        """Write what has not been written, in order; while the database cannot be written, it is retained."""
        before = self.closings.changes
        while self._unwritten:
            try:
                self._unwritten[0]()
            except StoreError as error:
                self._failed(error)
                return
            except Exception as error:
                self._failed(error)
            self._unwritten.popleft()
        if self.closings.changes > before:
            self._failed(None)

    def settle(self) -> None:
        """Wait until everything queued is written."""
        self._pool.submit(lambda: None).result()

    def close(self) -> None:
        self._pool.shutdown(wait=True)
        self._write()
        self.closings.close()
