"""How many prices are on a board, and how many of them are stale."""

import threading
from collections.abc import Callable
from typing import NamedTuple

from oddsengine.live.engine import Engine

_EVERY_S = 1.0  # between two counts, each of which takes 14 ms for 200,000 prices


class BoardCounts(NamedTuple):
    """Numbers of a whole board; `stale` are the prices that the guard of that name rejects."""

    events: int
    books: int
    prices: int
    stale: int


class Freshness:
    """The counts of one board, renewed at most once a second."""

    def __init__(self, engine: Engine, time: Callable[[], float]) -> None:
        self._engine, self._time = engine, time
        self._lock = threading.Lock()
        self._counted = float("-inf")
        self._counts = BoardCounts(0, 0, 0, 0)

    def counts(self) -> BoardCounts:
        with self._lock:
            now = self._time()
            if not 0.0 <= now - self._counted < _EVERY_S:
                pairs = self._engine.rejected_by("stale")
                self._counts = BoardCounts(
                    pairs["event_id"].n_unique(), pairs["sportsbook"].n_unique(), int(pairs["prices"].sum()),
                    int(pairs["rejected"].sum()),
                )  # fmt: skip
                self._counted = now
            return self._counts
