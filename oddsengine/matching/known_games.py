"""The games of all feeds and their events.

Names are indexed by league: a new name is compared only with those it has a word in common with (`postings`). Games are
indexed by league, half day and name, so that a new game is compared only with games nearby that have both names alike.
Adjacent half days are searched too, and the exact distance is checked afterwards.

Of the games of a source that differ only in their ids, the first is matched and the others follow it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice

from oddsengine.feeds.payload import Game
from oddsengine.matching import name_likeness
from oddsengine.matching.doubleheaders import WINDOW, DatedGame, Key, first_gap
from oddsengine.matching.postings import NameForm, Postings

MOST_LIKE = 500  # names of a source that a name may have a word in common with
MOST_ALIKE = 200  # names of a source that a name may be alike
LONGEST = 200  # characters of a name
_GAME, _WORD = 10, 4  # the work of a new game and of a word of a new name, in comparisons
_RETRY = 100  # comparisons of crowded names for each name that leaves
_SECONDS = int(WINDOW.total_seconds())

Spelling = tuple[str, str]
"""Home and away as spelled by a source."""
League = tuple[str, str]
"""Sport and league."""


@dataclass(slots=True)
class GameEntry:
    key: Key
    game: Game
    league: League
    number: int  # order of arrival
    start: datetime | None
    first: datetime | None
    event: str | None = None
    override: str = ""  # an operator's: an event id, `NEW` or `NEVER`
    is_recent: bool = True  # came since the last `Matcher.forget`
    hidden: bool = False  # not found around other games
    leader: "GameEntry | None" = None  # the entry that stands for this one
    followers: dict[Key, "GameEntry"] = field(default_factory=dict)

    @property
    def head(self) -> "GameEntry":
        """The entry that is matched: this one or its leader."""
        return self.leader or self

    @property
    def spelling(self) -> Spelling:
        """Home and away as spelled by the feed."""
        return self.game.home, self.game.away

    @property
    def dated(self) -> DatedGame:
        """The game with its starts; requires a start."""
        assert self.start is not None
        assert self.first is not None
        return DatedGame(self.key, self.start, self.first)


@dataclass(slots=True)
class MatchedEvent:
    """An event: its id never changes, and home and away stay as first seen."""

    id: str
    sport: str
    league: str
    home: str
    away: str
    number: int
    members: dict[Key, None] = field(default_factory=dict)


@lru_cache(maxsize=1 << 15)
def fit(league: League, one: Spelling, other: Spelling) -> tuple[float, bool]:
    """Score two spellings of a pair of teams; also whether home and away are swapped."""
    straight = _both(league, one[0], other[0], one[1], other[1])
    if straight == 1.0:
        return straight, False
    swapped = _both(league, one[0], other[1], one[1], other[0])
    return (swapped, True) if swapped > straight else (straight, False)


def _both(league: League, home: str, home2: str, away: str, away2: str) -> float:
    """Combine the scores of both teams; the worse one has more weight."""
    first = name_likeness.likeness(*league, home, home2)
    second = name_likeness.likeness(*league, away, away2) if first else 0.0
    if second and name_likeness.other_contest(*league, (home, home2), (away, away2)):
        return 0.0
    worse, better = min(first, second), max(first, second)
    return round(0.7 * worse + 0.3 * better, 4) if worse else 0.0


def to_utc(start: datetime) -> datetime:
    """Convert a start to UTC; without a time zone it is UTC already."""
    return start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)


class _SourceNames:
    """The names that a source lists in a league."""

    def __init__(self) -> None:
        self.number = 0
        self.postings = Postings()
        self.teams: dict[str, dict[str, None]] = {}  # by the catalog's name of the team


class LeagueNames:
    """The names of a league's games, each with the names it may be alike (itself included).

    The limits are those of each source, so that the names of one do not keep those of others apart. A name beyond them
    is `crowded`: it is alike only itself, names of the same catalog team, and names of other sources.
    """

    def __init__(self, league: League) -> None:
        self.alike: dict[str, dict[str, str]] = {}  # and the source that listed the other name, if it came later
        self.crowded: dict[str, dict[tuple[str, str], None]] = {}  # sources of the name and of the names it is like
        self._league = league
        self._sources: dict[str, _SourceNames] = {}
        self._games: dict[str, dict[str, dict[Key, None]]] = {}  # by name and source
        self._added: Counter[tuple[str, str]] = Counter()  # by name and source: how many it has added that are alike
        self._spare = 0  # comparisons that `retry` may make

    def _read(self, name: str) -> tuple[list[NameForm], str]:
        """Return the forms of a name, and its catalog team."""
        if len(name) > LONGEST:
            return [], ""
        return name_likeness.forms(*self._league, name), name_likeness.catalog_team(*self._league, name)

    def add(self, name: str, key: Key) -> int:
        """Add a game of the name; return the work: how many names it had to be compared with, and its words."""
        source = key[0]
        listed = self._games.setdefault(name, {})
        games = listed.setdefault(source, {})
        games[key] = None
        if len(games) > 1:
            return 0
        forms, team = self._read(name)
        self.alike.setdefault(name, {name: ""})
        work = 0
        if len(listed) == 1 or name in self.crowded:
            work = _WORD * sum(len(form.words) for form in forms)
            work += sum(self._compare(name, source, other) for other in self._sources)
        own = self._sources.setdefault(source, _SourceNames())
        own.number += 1
        own.postings.add(name, forms)
        if team:
            own.teams.setdefault(team, {})[name] = None
        return work

    def _compare(self, name: str, source: str, other: str) -> int:
        """Compare a name of a source with those of another, or its own; return how many."""
        forms, team = self._read(name)
        theirs = self._sources[other]
        near = dict.fromkeys(islice(theirs.postings.find(forms), MOST_LIKE + 1))
        alike = self._alike(name, near) if len(near) <= MOST_LIKE else []
        if crowded := len(near) > MOST_LIKE or len(alike) > MOST_ALIKE:
            alike = self._alike(name, islice(theirs.teams.get(team, ()), MOST_ALIKE))
        for each in alike:
            if each in self.alike[name]:
                continue
            if self._added[each, source] >= MOST_ALIKE:
                crowded = True
                continue
            self._added[each, source] += 1
            self.alike[each][name], self.alike[name][each] = source, ""
        if crowded:
            self.crowded.setdefault(name, {})[source, other] = None
        return len(near)

    def _alike(self, name: str, others: Iterable[str]) -> list[str]:
        return [other for other in others if name_likeness.likeness(*self._league, name, other)]

    def discard(self, name: str, key: Key) -> None:
        """Remove a game of the name; the last one removes the name."""
        source = key[0]
        listed = self._games[name]
        del listed[source][key]
        if listed[source]:
            return
        del listed[source]
        self._spare += _RETRY
        own, team = self._sources[source], self._read(name)[1]
        own.number -= 1
        own.postings.discard(name)
        if team:
            del own.teams[team][name]
            if not own.teams[team]:
                del own.teams[team]
        if not own.number:
            del self._sources[source]
        if listed:
            return
        del self._games[name]
        self.crowded.pop(name, None)
        for other, by in self.alike.pop(name).items():
            if other != name:
                self._less(name, by)
                self._less(other, self.alike[other].pop(name))

    def _less(self, name: str, source: str) -> None:
        if source:
            self._added[name, source] -= 1
            if not self._added[name, source]:
                del self._added[name, source]

    def retry(self) -> tuple[int, list[Key]]:
        """Compare crowded names again, the more the more names have left, each at most once.

        Return the work, and the games that are alike others now.
        """
        work, games = 0, list[Key]()
        for name in list(islice(self.crowded, max(self._spare, 0))):
            if work >= self._spare:
                break
            before = len(self.alike[name])
            work += 1
            for source, other in self.crowded.pop(name):
                if source in self._games[name] and other in self._sources:
                    work += self._compare(name, source, other)
            if len(self.alike[name]) > before:
                games += [key for each in self._games[name].values() for key in each]
        self._spare = min(self._spare - work, 0)
        return work, games

    def __bool__(self) -> bool:
        return bool(self._games)


class GameIndex:
    """Games and events, with the index over them."""

    def __init__(self) -> None:
        self.entries: dict[Key, GameEntry] = {}
        self.events: dict[str, MatchedEvent] = {}
        self.used: dict[str, datetime] = {}  # assigned ids with a start; ids are never reused
        self.work = 0  # comparisons of names and games so far
        self._names: dict[League, LeagueNames] = {}
        self._shrunk: dict[League, None] = {}  # leagues that names have left
        self._index: dict[tuple[League, int], dict[str, dict[Spelling, dict[Key, None]]]] = {}
        self._leaders: dict[object, GameEntry] = {}
        self._number = 0

    def count(self) -> int:
        """Return the next arrival number."""
        self._number += 1
        return self._number

    def reach(self, number: int) -> None:
        """Continue numbering after a number in use."""
        self._number = max(self._number, number)

    def retry(self) -> list[GameEntry]:
        """Compare crowded names again after others have left; return the games whose names are alike others now."""
        freed: dict[Key, None] = {}
        for league in self._shrunk:
            if league in self._names:
                work, keys = self._names[league].retry()
                self.work += work
                freed |= dict.fromkeys(keys)
        self._shrunk.clear()
        return [self.entries[key] for key in freed]

    def _halves(self, entry: GameEntry) -> set[int]:
        return {int(start.timestamp()) // _SECONDS for start in (entry.start, entry.first) if start is not None}

    def insert(self, entry: GameEntry) -> None:
        """Add a game; it follows another if they differ in their ids only."""
        self.entries[entry.key] = entry
        leader = self._leaders.setdefault(_identity(entry), entry)
        if leader is not entry:
            entry.leader = leader
            leader.followers[entry.key] = entry
            return
        known = self._names.setdefault(entry.league, LeagueNames(entry.league))
        self.work += _GAME + sum(known.add(name, entry.key) for name in dict.fromkeys(entry.spelling))
        self._post(entry)

    def _post(self, entry: GameEntry) -> None:
        for half in self._halves(entry):
            games = self._index.setdefault((entry.league, half), {})
            for name in entry.spelling:
                games.setdefault(name, {}).setdefault(entry.spelling, {})[entry.key] = None

    def _take_down(self, entry: GameEntry) -> None:
        for half in self._halves(entry):
            games = self._index[entry.league, half]
            for name in set(entry.spelling):
                del games[name][entry.spelling][entry.key]
                if not games[name][entry.spelling]:
                    del games[name][entry.spelling]
                if not games[name]:
                    del games[name]
            if not games:
                del self._index[entry.league, half]

    def hide(self, entry: GameEntry, *, hidden: bool) -> None:
        """Set whether a game is not found around others."""
        if hidden != entry.hidden:
            entry.hidden = hidden
            (self._take_down if hidden else self._post)(entry)

    def remove(self, entry: GameEntry) -> None:
        """Remove a game, and its event with its last game; the first of its followers leads in its place."""
        del self.entries[entry.key]
        if entry.leader is not None:
            del entry.leader.followers[entry.key]
            entry.leader = None
            return
        event = self.events.get(entry.event or "")
        heir = next(iter(entry.followers.values()), None)
        del self._leaders[_identity(entry)]
        if heir is not None:
            followers, entry.followers = entry.followers, {}
            del followers[heir.key]
            heir.leader, heir.followers = None, followers
            for follower in followers.values():
                follower.leader = heir
            self.insert(heir)
            if event is not None:
                self.join(heir, event)
        self.leave(entry)
        if not entry.hidden:
            self._take_down(entry)
        entry.hidden = False
        known = self._names[entry.league]
        for name in dict.fromkeys(entry.spelling):
            known.discard(name, entry.key)
        self._shrunk[entry.league] = None
        if not known:
            del self._names[entry.league]

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
        """Return other games of the league within the window with at least this score, without followers."""
        if entry.start is None:
            return
        alike = [self._names[entry.league].alike[name] for name in entry.spelling]
        seen: set[Key] = {entry.key}
        halves = {near for half in self._halves(entry) for near in (half - 1, half, half + 1)}
        for half in sorted(halves):
            games = self._index.get((entry.league, half), {})
            # One of its teams is like this game's home team, and one is like its away team: the fewer are searched.
            few = min(alike, key=lambda teams: sum(len(games.get(name, ())) for name in teams))
            spellings = dict.fromkeys(spelling for name in few for spelling in games.get(name, ()))
            self.work += len(spellings)
            for spelling in spellings:
                if not _crosswise(alike, spelling):
                    continue
                score, _ = fit(entry.league, spelling, entry.spelling)
                if score < least:
                    continue
                for key in games[spelling[0]][spelling]:
                    other = self.entries[key]
                    self.work += 1
                    if key not in seen and first_gap(entry.dated, other.dated) <= WINDOW:
                        seen.add(key)
                        yield score, other


def _crosswise(alike: list[dict[str, str]], spelling: Spelling) -> bool:
    """Whether both names are alike those of a game, in either order."""
    (home, away), (one, other) = alike, spelling
    return (one in home and other in away) or (other in home and one in away)


def _identity(entry: GameEntry) -> object:
    """Return what games have in common that differ in their ids only."""
    if entry.override or entry.start is None:
        return entry.key
    return entry.key[0], entry.league, entry.spelling, entry.start, entry.first
