"""What a node remembers of what was: closing lines, the bets that were shown, and how prices moved."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from oddsengine.closing import ClosingRecorder, Store
from oddsengine.engine import Engine
from oddsengine.history import Ring
from oddsengine.update import Update
from oddsengine_service.archiving import NodeArchive
from oddsengine_service.closing import opened

_WAITING = 1000  # jobs
_GRADED_EVERY_S, _GRADED_D = 300.0, 30


class Past:
    """All that a node remembers of what was: closing lines, bets, and how prices moved.

    Parameters
    ----------
    engine
        The engine whose updates are heard.
    folder
        The data folder; None keeps everything in memory.
    archive
        What has all moves; without it the newest are kept in memory.
    records
        Whether closing lines and bets are recorded here; else they come from somewhere else.
    store
        Takes what is recorded; None is `closings` itself.
    failed
        Told of what could not be written down; the engine goes on.
    method
        Of the view whose +EV prices count as shown; see `Engine.view`.
    """

    def __init__(
        self, engine: Engine, folder: str | Path | None = None, archive: NodeArchive | None = None,
        failed: Callable[[Exception], None] = lambda _: None, method: str = "close", *, records: bool = True,
        store: Store | None = None,
    ) -> None:  # fmt: skip
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="closing")
        self._room = threading.BoundedSemaphore(_WAITING)
        self._failed = failed
        self.closings = opened(folder)
        self.history: Ring | NodeArchive = Ring(engine) if archive is None else archive
        self._recorder: ClosingRecorder | None = None
        self._graded: tuple[int, float | None, float | None, float | None] | None = None
        self._graded_at = -_GRADED_EVERY_S
        if records:
            self._recorder = ClosingRecorder(engine, store or self.closings, self._later, method=method)

    def follow(self, update: Update) -> None:
        """Take in what a step did; in the thread that made it, before the next one."""
        if self._recorder is not None:
            self._recorder.follow(update)
        if isinstance(self.history, Ring):
            self.history.follow(update)

    def play(self, states: Mapping[str, Any], _: Iterable[str] = ()) -> None:
        """Settle the bets of games that are over; takes what `Games.listen` tells."""
        for event, state in states.items():
            home, away = state["home_score"], state["away_score"]
            if not state["is_live"] and home is not None and away is not None:
                self._later(partial(self.closings.settle, event, home, away))

    def lately(self) -> tuple[int, float | None, float | None, float | None] | None:
        """How the EV of the last 30 days did at the others' close; of a moment ago, None before the first time."""
        now = time.monotonic()
        if now >= self._graded_at + _GRADED_EVERY_S:
            self._graded_at = now
            self._later(self._grade)
        return self._graded

    def _grade(self) -> None:
        self._graded = self.closings.lately(_GRADED_D)

    def _later(self, job: Callable[[], None]) -> None:
        """Put a job behind those that wait; where too many do, wait with them."""
        self._room.acquire()
        try:
            self._pool.submit(self._do, job)
        except RuntimeError:  # closed
            self._room.release()

    def _do(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:
            self._failed(error)
        finally:
            self._room.release()

    def settle(self) -> None:
        """Wait until all that was heard is written down."""
        self._pool.submit(lambda: None).result()

    def close(self) -> None:
        """Write down what waits, and give the files up."""
        self._pool.shutdown(wait=True)
        self.closings.close()
