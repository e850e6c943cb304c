"""How games stand, for everybody who asks: one keeper a node, written to by its writer only.

What sources say goes through `oddsengine.games`; here it gets the names of the teams and becomes what goes out. States
are no part of the board and of no tape: no price and no opportunity hangs on them, and a node that starts anew has them
again with its sources' next answers.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from oddsengine.engine import micros
from oddsengine.games import SECOND, Reading, Scoreboard
from oddsengine_service.tiers import TIERS
from oddsengine_service.wire.envelopes import GameState
from oddsengine_service.wire.games import Standing, Teams, standing, state_of

Listener = Callable[[Mapping[str, Any], Iterable[str]], None]
Rows = Mapping[str, Standing]
_LATEST_S = max(tier.delay for tier in TIERS.values())
_NOWHERE = Teams("", "", "", "")


class Games:
    """The states of a node's games, by event."""

    def __init__(self) -> None:
        self._board = Scoreboard()
        self._teams: dict[str, Teams] = {}
        self._rows: Rows = {}
        self._past: deque[tuple[int, Rows]] = deque([(-1, self._rows)])  # since when they were so, the last of them now
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self.tell: Callable[..., None] = lambda *_: None  # hears what is taken in, where a log is written

    # ---- from the writer ----

    def put(self, readings: Iterable[Reading], now: datetime, teams: Mapping[str, Teams] | None = None) -> None:
        """Take what sources say, and let time pass."""
        readings = list(readings)
        self.tell("scores", readings, now, dict(teams or {}))
        with self._lock:
            self._teams |= teams or {}
            change = self._board.step(readings, micros(now))
            if len(self._teams) > len(self._board):
                self._teams = {event: known for event, known in self._teams.items() if event in self._board}
            if not (change.changed or change.removed):
                return
            fresh = {
                event: standing(state, self._teams.get(event, _NOWHERE)) for event, state in change.changed.items()
            }
            self._rows = {event: row for event, row in {**self._rows, **fresh}.items() if event in self._board.states}
            self._past.append((self._board.now, self._rows))
            while len(self._past) > 1 and self._past[1][0] <= self._board.now - _LATEST_S * SECOND:
                self._past.popleft()
            for listener in tuple(self._listeners):  # one may end meanwhile
                listener(_plain(fresh), change.removed)

    def drop(self, source: str, event: str) -> None:
        """Forget what a source said of an event: it was another one."""
        self.tell("unscored", source, event)
        with self._lock:
            self._board.drop(source, event)

    def dump(self) -> dict[str, Any]:
        """All that it holds as plain data, for `restore`."""
        with self._lock:
            return {"board": self._board.dump(), "teams": dict(self._teams), "rows": list(self._past)}

    def restore(self, held: Mapping[str, Any]) -> None:
        """Hold what another one held."""
        with self._lock:
            self._board.restore(held["board"])
            self._teams = msgspec.convert(held["teams"], dict[str, Teams])
            past = [(since, msgspec.convert(rows, dict[str, Standing])) for since, rows in held["rows"]]
            self._past = deque(past)
            self._rows = past[-1][1]

    # ---- from anywhere ----

    def rows(self, delay: int = 0) -> Rows:
        """How games stand, or stood some seconds ago."""
        if not delay:
            return self._rows
        with self._lock:
            then = self._board.now - delay * SECOND
            return next((rows for since, rows in reversed(self._past) if since <= then), {})

    def of(self, event: str) -> GameState | None:
        """How a game stands now, as opportunities have it."""
        return state_of(self._rows.get(event))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a function with all there is, and from now on with what changes; what is returned ends it."""
        with self._lock:
            self._listeners.append(listener)
            if self._rows:
                listener(_plain(self._rows), ())
        return lambda: self._listeners.remove(listener)


def _plain(rows: Rows) -> dict[str, Any]:
    return {event: msgspec.to_builtins(row) for event, row in rows.items()}
