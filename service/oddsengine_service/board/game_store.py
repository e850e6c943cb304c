"""Game states as the service shows them: one store per node, changed only by its writer.

Readings of sources are merged by `oddsengine.feeds.merged_scores`; this module adds the names of the teams and encodes
the rows. States are not part of the board or of a tape: no price or opportunity depends on them, and after a restart
they come back with the next responses of the sources.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from oddsengine.feeds.merged_scores import SECOND, Scoreboard, ScoreReading
from oddsengine.tables.timestamps import micros
from oddsengine_service.replication import ALONE, Replication
from oddsengine_service.tiers import TIERS
from oddsengine_service.wire.envelopes import GameState
from oddsengine_service.wire.games_response import Standing, Teams, standing, state_of

Listener = Callable[[Mapping[str, Any], Iterable[str]], None]
Rows = Mapping[str, Standing]
_LATEST_S = max(tier.delay for tier in TIERS.values())
_NOWHERE = Teams("", "", "", "")


class GameBoard:
    """The states of a node's games, by event."""

    def __init__(self, replication: Replication = ALONE) -> None:
        self._replication = replication
        self._board = Scoreboard()
        self._teams: dict[str, Teams] = {}
        self._rows: Rows = {}
        self._past: deque[tuple[int, Rows]] = deque([(-1, self._rows)])  # with the time from which they held
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()

    # ---- from the writer ----

    def put(self, readings: Iterable[ScoreReading], now: datetime, teams: Mapping[str, Teams] | None = None) -> None:
        """Apply readings of sources, and let time pass."""
        readings = list(readings)
        self._replication.changed("scores", readings, now, dict(teams or {}))
        with self._lock:
            self._teams |= teams or {}
            change = self._board.step(readings, micros(now))
            if len(self._teams) > len(self._board):
                self._teams = {event: team for event, team in self._teams.items() if event in self._board}
            if not (change.changed or change.removed):
                return
            fresh = {
                event: standing(state, self._teams.get(event, _NOWHERE)) for event, state in change.changed.items()
            }
            self._rows = {event: row for event, row in {**self._rows, **fresh}.items() if event in self._board.states}
            self._past.append((self._board.now, self._rows))
            while len(self._past) > 1 and self._past[1][0] <= self._board.now - _LATEST_S * SECOND:
                self._past.popleft()
            for listener in tuple(self._listeners):  # a listener may remove itself
                listener(_plain(fresh), change.removed)

    def drop(self, source: str, event: str) -> None:
        """Drop a source's readings of an event, if it turned out to be another event."""
        self._replication.changed("unscored", source, event)
        with self._lock:
            self._board.drop(source, event)

    def dump(self) -> dict[str, Any]:
        with self._lock:
            return {"board": self._board.dump(), "teams": dict(self._teams), "rows": list(self._past)}

    def restore(self, state: Mapping[str, Any]) -> None:
        with self._lock:
            self._board.restore(state["board"])
            self._teams = msgspec.convert(state["teams"], dict[str, Teams])
            past = [(since, msgspec.convert(rows, dict[str, Standing])) for since, rows in state["rows"]]
            self._past = deque(past)
            self._rows = past[-1][1]

    # ---- from anywhere ----

    def states(self, delay: int = 0) -> Rows:
        """Game states now, or some seconds ago."""
        if not delay:
            return self._rows
        with self._lock:
            then = self._board.now - delay * SECOND
            return next((rows for since, rows in reversed(self._past) if since <= then), {})

    def state_of(self, event: str) -> GameState | None:
        """The current state of a game, as included in opportunities."""
        return state_of(self._rows.get(event))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a function with all states, then with each change. Returns a function that stops it."""
        with self._lock:
            self._listeners.append(listener)
            if self._rows:
                listener(_plain(self._rows), ())
        return lambda: self._listeners.remove(listener)


def _plain(rows: Rows) -> dict[str, Any]:
    return {event: msgspec.to_builtins(row) for event, row in rows.items()}
