"""The outbox: what the parts of a writer's node took in, in order, until it is in the log."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from oddsengine.engine import Batch, Engine, ViewKey
from oddsengine_service.node import Node, StalledError
from oddsengine_service.scale.messages import Entry, FuturesPrices, Scores, SplitsRecord, Step, packed

MOST_QUOTES = 200_000  # in one message: about 1.5 MB
STALLED_S = 10.0  # of steps that wait; then no more are made
_SLACK_S = 5.0  # for what belongs to the last step
_BYTES = 200  # of a quote in a message whose names are all new; most take 7
_HEAD = 65_536  # of a message: headers, statuses of sources


class TooLargeError(ValueError):
    """A step that no message can hold; the message is one sentence."""


class Outbox:
    """Gathers entries from the writer's thread; recorded by the engine as a tape is.

    `max_payload` says how many bytes a message may have.
    """

    def __init__(self, node: Node, wake: Callable[[], None], max_payload: Callable[[], int]) -> None:
        self._engine: Engine = node.engine
        self._wake, self._max_payload = wake, max_payload
        self._lock = threading.Lock()
        self._entries: deque[tuple[Entry, float]] = deque()
        self._engine.record(self)
        for part in (node.games, node.futures, node.splits):
            part.tell = self.tell

    # ---- from the writer's thread ----

    def tell(self, kind: str, *what: Any) -> None:
        """Take something in that is no step.

        Raises
        ------
        StalledError
            If the log takes nothing; whoever tells must not have changed anything yet.
        """
        if kind == "futures" and what[0] is None:  # the step that they came with failed
            with self._lock:
                at = next(at for at in range(len(self._entries) - 1, -1, -1) if self._entries[at][0].kind == "futures")
                del self._entries[at]
            return
        self._check(STALLED_S + _SLACK_S)
        make: dict[str, Callable[..., Any]] = {"scores": Scores, "futures": FuturesPrices, "splits": SplitsRecord}
        self._put(Entry(kind, make[kind](*what) if kind in make else list(what)))

    def batch(self, batch: Batch, slept: Sequence[ViewKey] = ()) -> None:
        """Take a step in.

        Raises
        ------
        StalledError
            If steps of ten seconds wait already; the engine takes this one back.
        TooLargeError
            If it does not fit into a message; the engine takes it back too.
        """
        self._check(STALLED_S)
        number, quotes, most = self._engine.number + 1, len(batch.links), self._max_payload()
        if quotes * _BYTES > most and (size := len(packed([Entry("step", Step(number, batch))]))) > most - _HEAD:
            raise TooLargeError(
                f"a step of {quotes:,} quotes makes a message of {size:,} bytes, and the servers' max_payload is "
                f"{most:,}; send the quotes in smaller batches, or set max_payload to at most 64MB"
            )
        with self._lock:
            taken_back = [each for each in self._entries if each[0].kind == "step" and each[0].value.number >= number]
            for each in taken_back:
                self._entries.remove(each)
        self._put(Entry("step", Step(number, batch)))

    def note(self, kind: str, what: object) -> None:
        """Views, and constants of fair prices, are each process's own."""

    def _check(self, most: float) -> None:
        if self.waiting_s > most:
            raise StalledError(f"the log has taken no step for {self.waiting_s:.0f} s")

    def _put(self, entry: Entry) -> None:
        with self._lock:
            self._entries.append((entry, time.monotonic()))
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
        """Entries up to a step that the engine has made, at least one step, and no more than so many quotes."""
        made, quotes, end = self._engine.number, 0, 0
        with self._lock:
            for at, (entry, _) in enumerate(self._entries):
                if entry.kind != "step":
                    continue
                quotes += len(entry.value.batch.links)
                if entry.value.number > made or (end and quotes > most):
                    break
                end = at + 1
            return [entry for entry, _ in list(self._entries)[:end]]

    def stored(self, n: int) -> None:
        """The first entries are in the log."""
        with self._lock:
            for _ in range(n):
                self._entries.popleft()

    @property
    def most_quotes(self) -> int:
        """So many quotes fit into a message, whatever their names."""
        return max(1, (self._max_payload() - _HEAD) // _BYTES)

    @property
    def making(self) -> bool:
        """Whether what waits ends with a step that the engine is about to make."""
        with self._lock:
            return bool(self._entries) and self._entries[-1][0].kind == "step"

    @property
    def waiting_s(self) -> float:
        """For how long the oldest entry has waited."""
        with self._lock:
            return time.monotonic() - self._entries[0][1] if self._entries else 0.0
