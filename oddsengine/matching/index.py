"""The games of all feeds and their events.

Games are indexed by league, half day and spelling, so that a new game is compared only with nearby names. Adjacent half
days are searched too, and the exact distance is checked afterwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from oddsengine.feeds.payload import Game
from oddsengine.matching import names
from oddsengine.matching.schedule import WINDOW, Dated, Key, first_gap

_SECONDS = int(WINDOW.total_seconds())

Spelling = tuple[str, str]
"""Home and away as spelled by a source."""
League = tuple[str, str]
"""Sport and league."""


@dataclass
class GameEntry:
    key: Key
    game: Game
    league: League
    number: int  # order of arrival
    start: datetime | None
    first: datetime | None
    event: str | None = None
    decree: str = ""  # override
    touched: bool = True

    @property
    def spelling(self) -> Spelling:
        """Home and away as spelled by the feed."""
        return self.game.home, self.game.away

    @property
    def dated(self) -> Dated:
        """The game with its starts; requires a start."""
        assert self.start is not None
        assert self.first is not None
        return Dated(self.key, self.start, self.first)


@dataclass
class MatchedEvent:
    """An event: its id never changes, and home and away stay as first seen."""

    id: str
    sport: str
    league: str
    home: str
    away: str
    number: int
    members: dict[Key, None] = field(default_factory=dict)


@lru_cache(maxsize=1 << 17)
def fit(league: League, one: Spelling, other: Spelling) -> tuple[float, bool]:
    """Score two spellings of a pair of teams; also whether home and away are swapped."""
    straight = _both(league, one[0], other[0], one[1], other[1])
    if straight == 1.0:
        return straight, False
    swapped = _both(league, one[0], other[1], one[1], other[0])
    return (swapped, True) if swapped > straight else (straight, False)


def _both(league: League, home: str, home2: str, away: str, away2: str) -> float:
    """Combine the scores of both teams; the worse one has more weight."""
    first = names.likeness(*league, home, home2)
    second = names.likeness(*league, away, away2) if first else 0.0
    worse, better = min(first, second), max(first, second)
    return round(0.7 * worse + 0.3 * better, 4) if worse else 0.0


def moment(start: datetime) -> datetime:
    """Convert a start to UTC; without a time zone it is UTC already."""
    return start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)


class GameIndex:
    """Games and events, with the index over them."""

    def __init__(self) -> None:
        self.entries: dict[Key, GameEntry] = {}
        self.events: dict[str, MatchedEvent] = {}
        self.used: dict[str, datetime] = {}  # assigned ids with a start; ids are never reused
        self._index: dict[tuple[League, int], dict[Spelling, dict[Key, None]]] = {}
        self._number = 0

    def count(self) -> int:
        """Return the next arrival number."""
        self._number += 1
        return self._number

    def reach(self, number: int) -> None:
        """Continue numbering after a number in use."""
        self._number = max(self._number, number)

    def _halves(self, entry: GameEntry) -> set[int]:
        return {int(start.timestamp()) // _SECONDS for start in (entry.start, entry.first) if start is not None}

    def insert(self, entry: GameEntry) -> None:
        self.entries[entry.key] = entry
        for half in self._halves(entry):
            self._index.setdefault((entry.league, half), {}).setdefault(entry.spelling, {})[entry.key] = None

    def remove(self, entry: GameEntry) -> None:
        """Remove a game; its event is removed with its last game."""
        self.leave(entry)
        del self.entries[entry.key]
        for half in self._halves(entry):
            spellings = self._index[entry.league, half]
            spellings[entry.spelling].pop(entry.key, None)
            if not spellings[entry.spelling]:
                del spellings[entry.spelling]
            if not spellings:
                del self._index[entry.league, half]

    def leave(self, entry: GameEntry) -> None:
        event = self.events.get(entry.event or "")
        entry.event = None
        if event is not None:
            event.members.pop(entry.key, None)
            if not event.members:
                del self.events[event.id]

    def join(self, entry: GameEntry, event: MatchedEvent) -> None:
        if entry.event != event.id:
            self.leave(entry)
        entry.event = event.id
        event.members[entry.key] = None
        self.events[event.id] = event

    def around(self, entry: GameEntry, least: float) -> Iterator[tuple[float, GameEntry]]:
        """Return other games of the league within the window with at least this score."""
        if entry.start is None:
            return
        seen: set[Key] = {entry.key}
        halves = {near for half in self._halves(entry) for near in (half - 1, half, half + 1)}
        for half in sorted(halves):
            for spelling, keys in self._index.get((entry.league, half), {}).items():
                score, _ = fit(entry.league, spelling, entry.spelling)
                if score < least:
                    continue
                for key in keys:
                    other = self.entries[key]
                    if key not in seen and first_gap(entry.dated, other.dated) <= WINDOW:
                        seen.add(key)
                        yield score, other
