"""Scores as reported by books: some books report them, each with its own delay and pace.

Finished games are reported for a while. With feed errors enabled, a book occasionally repeats a score that is minutes
old. Which books report scores, and their delays, depends only on their names.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np

from oddsengine.columns import Floats, Longs
from oddsengine.feeds.merged_scores import FINAL, ScoreReading
from oddsengine.simulate.simulated_books import SimulatedBook
from oddsengine.simulate.simulated_games import ENDED, LIVE, SimulatedGames
from oddsengine.simulate.simulated_labels import Fixture

_SHARE = 0.5  # of the books that quote in play
_QUICK = (0.4, 1.6)  # s: delay of a sharp book
_LATE = (1.0, 12.0)  # the same for other books
_LOOKS = (1.0, 4.0)  # s between updates
_TELLS_END = 120.0  # s during which the end is reported
_FREEZE_EVERY = 2400.0  # s between failures of one book on one game
_FROZEN = (60.0, 240.0)  # s
_TIMED = {"basketball": ("Q", 4, 12.0), "football": ("Q", 4, 15.0), "hockey": ("P", 3, 20.0)}  # minutes of each
_HALF = 45.0
_INNINGS = 9


class _PastStates(NamedTuple):
    """Game states at one time."""

    time: float
    status: Longs
    clock: Floats
    score: Longs  # events, teams


class _Board:
    """Scores of one book."""

    def __init__(self, simulated: SimulatedBook) -> None:
        rng = np.random.default_rng(crc32(f"scores of {simulated.book.id}".encode()))
        self.book = simulated.book.id
        self.shows = bool(rng.random() < _SHARE)
        self.late = float(rng.uniform(*(_QUICK if simulated.book.sharp or simulated.book.exchange else _LATE)))
        self.every = float(rng.uniform(*_LOOKS))
        self.next = 0.0
        self.frozen: dict[int, tuple[float, ScoreReading]] = {}  # until when, and the repeated state


class Scoreboards:
    def __init__(
        self, simulated_books: Sequence[SimulatedBook], games: SimulatedGames, fixtures: Sequence[Fixture],
        rng: np.random.Generator, *,
        troubled: bool,
    ) -> None:  # fmt: skip
        live = [_Board(simulated) for simulated in simulated_books if simulated.live and not simulated.book.mid_price]
        self.boards = [board for board in live if board.shows] or live[:1]
        self._games, self._fixtures, self._rng, self._troubled = games, fixtures, rng, troubled
        self._ends = np.full(games.league.size, np.inf)
        self._ends[games.status == ENDED] = -np.inf
        self._past: deque[_PastStates] = deque()

    def look(self, now: float, stamp: int) -> list[ScoreReading]:
        """Return current reports; `stamp` is the same time in microseconds."""
        games = self._games
        self._ends[(games.status == ENDED) & np.isinf(self._ends) & (self._ends > 0)] = now
        self._past.append(_PastStates(now, games.status.copy(), games.clock.copy(), games.score[:, :2].copy()))
        while len(self._past) > 1 and self._past[1].time <= now - _LATE[1]:
            self._past.popleft()
        reports: list[ScoreReading] = []
        for board in self.boards:
            if board.next <= now:
                board.next = now + board.every
                reports += self._reports(board, now, stamp)
        return reports

    def _reports(self, board: _Board, now: float, stamp: int) -> list[ScoreReading]:
        past = next((each for each in reversed(self._past) if each.time <= now - board.late), self._past[0])
        ended = (past.status == ENDED) & (now - self._ends < _TELLS_END)
        events = np.flatnonzero((past.status == LIVE) | ended)
        fails = self._rng.random(events.size) < board.every / _FREEZE_EVERY
        lasts = self._rng.uniform(*_FROZEN, events.size)
        out = []
        for event, failing, seconds in zip(events.tolist(), fails.tolist(), lasts.tolist(), strict=True):
            reading = self._reading(board, past, event, stamp)
            if self._troubled and failing and not reading.over:
                board.frozen.setdefault(event, (now + seconds, reading))
            until, state = board.frozen.get(event, (now, reading))
            if until <= now:
                board.frozen.pop(event, None)
                state = reading
            out.append(state._replace(seen=stamp))
        return out

    def _reading(self, board: _Board, past: _PastStates, event: int, stamp: int) -> ScoreReading:
        fixture = self._fixtures[event]
        over = bool(past.status[event] == ENDED)
        home, away = past.score[event].tolist()
        state = (FINAL, "", "") if over else shown_at(fixture.league.sport, float(past.clock[event]))
        return ScoreReading(fixture.id, board.book, stamp, home, away, *state, over=over, sport=fixture.league.sport)


def shown_at(sport: str, share: float) -> tuple[str, str, str]:
    """Return period, clock and possession of a game after a share of it.

    Examples
    --------
    >>> shown_at("basketball", 0.6), shown_at("soccer", 0.75), shown_at("baseball", 0.5)
    (('Q3', '7:12', ''), ('2H', '67:30', ''), ('B5', '', 'home'))
    """
    share = min(max(share, 0.0), 1.0 - 1e-9)
    if sport == "baseball":
        half = int(share * 2 * _INNINGS)
        return f"{'TB'[half % 2]}{half // 2 + 1}", "", ("away", "home")[half % 2]
    if sport not in _TIMED:
        return f"{1 + int(share * 2)}H", _minutes(share * 2 * _HALF), ""
    letter, periods, minutes = _TIMED[sport]
    played = share * periods
    return f"{letter}{1 + int(played)}", _minutes((1.0 - played % 1.0) * minutes), ""


def _minutes(minutes: float) -> str:
    whole = int(minutes * 60.0 + 1e-6)
    return f"{whole // 60}:{whole % 60:02}"
