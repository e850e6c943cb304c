"""The outbox: changes to a writer's node, in order, until they are in the log."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from oddsengine.live.engine import Batch, Engine, ViewKey
from oddsengine.live.recorder import Recorder
from oddsengine_service.board.writer import StalledError
from oddsengine_service.node import Node
from oddsengine_service.scale.log_messages import BatchStep, Entry, FuturesPrices, ScoreBatch, SplitsRecord, packed

MOST_QUOTES = 200_000  # per message: about 1.5 MB
STALLED_S = 10.0  # seconds of pending steps, beyond which no more are made
_SLACK_S = 5.0  # for entries that belong to the last step
_BYTES = 200  # per quote in a message in which all names are new; most take 7
_HEAD = 65_536  # of a message: headers, statuses of sources
Item = TypeVar("Item")


class TooLargeError(ValueError):
    """The step does not fit into a message; the message is shown to the operator."""


class PendingItems(Generic[Item]):
    """Items that are not in the log yet, with the time at which each was added; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: deque[tuple[Item, float]] = deque()

    def stored(self, n: int = 1) -> None:
        """Remove the first items, which are in the log."""
        with self._lock:
            for _ in range(n):
                self._items.popleft()

    @property
    def waiting_s(self) -> float:
        with self._lock:
            return time.monotonic() - self._items[0][1] if self._items else 0.0


class Outbox(PendingItems[Entry], Recorder):
    """Collects entries in the writer's thread; attached to the engine like a tape.

    `max_payload` is the maximum size of a message in bytes.
    """

    def __init__(self, node: Node, wake: Callable[[], None], max_payload: Callable[[], int]) -> None:
        super().__init__()
        self._engine: Engine = node.engine
        self._wake, self._max_payload = wake, max_payload
        self._engine.record(self)

    # ---- from the writer's thread ----

    def add(self, kind: str, *what: Any) -> None:
        """Add a change that is not a step.

        Raises `StalledError` if the log accepts nothing; the caller must not have changed anything yet.
        """
        if kind == "futures" and what[0] is None:  # the step with these prices failed
            with self._lock:
                at = next(at for at in range(len(self._items) - 1, -1, -1) if self._items[at][0].kind == "futures")
                del self._items[at]
            return
        self._check(STALLED_S + _SLACK_S)
        make: dict[str, Callable[..., Any]] = {"scores": ScoreBatch, "futures": FuturesPrices, "splits": SplitsRecord}
        self._put(Entry(kind, make[kind](*what) if kind in make else list(what)))

    def batch(self, batch: Batch, suspended: Sequence[ViewKey] = ()) -> None:
        """Add a step.

        Raises `StalledError` if ten seconds of steps are pending; the engine rolls this one back; `TooLargeError` if it
        does not fit into a message; the engine rolls it back too.
        """
        self._check(STALLED_S)
        number, quotes, most = self._engine.number + 1, len(batch.links), self._max_payload()
        if quotes * _BYTES > most and (size := len(packed([Entry("step", BatchStep(number, batch))]))) > most - _HEAD:
            raise TooLargeError(
                f"a step of {quotes:,} quotes makes a message of {size:,} bytes, and the servers' max_payload is "
                f"{most:,}; send the quotes in smaller batches, or set max_payload to at most 64MB"
            )
        with self._lock:
            taken_back = [each for each in self._items if each[0].kind == "step" and each[0].value.number >= number]
            for each in taken_back:
                self._items.remove(each)
        self._put(Entry("step", BatchStep(number, batch)))

    def _check(self, most: float) -> None:
        if self.waiting_s > most:
            raise StalledError(f"the log has accepted no step for {self.waiting_s:.0f} s")

    def _put(self, entry: Entry) -> None:
        with self._lock:
            self._items.append((entry, time.monotonic()))
        self._wake()

    # ---- from the publisher ----

    def fitting(self) -> tuple[list[Entry], bytes]:
        """The entries of the next message, and its body."""
        most = MOST_QUOTES
        while True:
            entries = self.first(most)
            body = packed(entries)
            if len(body) <= self._max_payload() - _HEAD or not most:
                return entries, body
            most //= 2

    def first(self, most: int = MOST_QUOTES) -> list[Entry]:
        """Entries up to a completed step: at least one step, then no more than `most` quotes."""
        made, quotes, end = self._engine.number, 0, 0
        with self._lock:
            for at, (entry, _) in enumerate(self._items):
                if entry.kind != "step":
                    continue
                quotes += len(entry.value.batch.links)
                if entry.value.number > made or (end and quotes > most):
                    break
                end = at + 1
            return [entry for entry, _ in list(self._items)[:end]]

    @property
    def most_quotes(self) -> int:
        """Number of quotes that fit into a message, whatever their names."""
        return max(1, (self._max_payload() - _HEAD) // _BYTES)

    @property
    def making(self) -> bool:
        """Whether the last entry is a step that the engine is still making."""
        with self._lock:
            return bool(self._items) and self._items[-1][0].kind == "step"
