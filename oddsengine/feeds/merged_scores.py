"""Game states, merged from the readings of several sources.

A reading is what one source reports about one game at one time; the newest reading of each source counts. Sources can
be slow, stuck or wrong, so the parts of a state are merged separately. *Recent* readings are less than `RECENT_S` older
than the newest one of the game.

**Score.** Each recent reading votes for its score, with a weight that falls linearly from 1 for the newest reading to 0
at `RECENT_S`. The score with the largest weight wins; among equals the newer, then the higher. A score that is lower
than the previous one, for either team, wins only if more than half of the recent sources report it and the previous
score had stood for at least `LATE_S` (a goal disallowed), or if no source reports at least the previous score;
otherwise the heaviest score that is not lower wins. So a single stuck source delays nothing, and slow sources never
take a score back: if sources are less than `LATE_S` late and never go back themselves, neither does the merged score.

**Period, clock and possession** are those of the recent reading with the most progress. **The end** is accepted when
half of the recent sources report it.

**Time.** A state is `stale` if no source reported for `STALE_S`. A game leaves `ENDED_S` after its end, or if no source
reported for `SILENT_S`; after its end it does not return while sources still report it. Games that are only reported as
over, or without a score, are not shown.

Readings are applied in order of the time they were seen; readings of one time can arrive in any order. Times are UTC
microseconds and passed in; no clock is read.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

SECOND = 1_000_000
RECENT_S = 30
LATE_S = 20
STALE_S = 60
ENDED_S = 600
SILENT_S = 1800
ARRIVAL = -1  # `ScoreReading.seen` of a source without times: seen on arrival
FINAL = "FT"
CLOCKS_UP = frozenset(
    {
        "soccer", "futsal", "handball", "rugby_union", "rugby_league", "bandy", "field_hockey", "gaelic_football",
        "hurling", "kabaddi",
    }
)  # fmt: skip
"""Sports whose clock shows the time played; in others it shows the time left in the period."""

Score = tuple[int, int]
_RECENT, _LATE = RECENT_S * SECOND, LATE_S * SECOND
_PERIOD = re.compile(r"([A-Z]+)(\d{0,2})")
_TIMED = re.compile(r"(\d{1,3})(?::(\d{1,2}))?'?(?:\+(\d{1,2})(?::(\d{1,2}))?'?)?")
_LAST_SECONDS = re.compile(r"\d{1,2}\.\d{1,3}")
_LATER = {"OT": 100.0, "ET": 100.0, "SO": 200.0, "PEN": 200.0}  # after every regular period
_BREAKS = {"HT": 2.5, "BT": 150.0}
_NOWHERE = -1.0


class ScoreReading(NamedTuple):
    """One source's report of a game. Periods are Q3, 2H, P2, S2, T5 or B5 (of an inning), OT1, SO, HT or FT."""

    event: str
    source: str
    seen: int  # microseconds, or `ARRIVAL`
    home: int | None = None
    away: int | None = None
    period: str = ""
    clock: str = ""
    possession: str = ""  # home or away
    over: bool = False
    sport: str = ""

    @property
    def score(self) -> Score | None:
        """Both scores; None unless the source gives both."""
        return None if self.home is None or self.away is None else (self.home, self.away)


class State(NamedTuple):
    """The merged state of a game."""

    home: int | None
    away: int | None
    period: str
    clock: str
    possession: str
    over: bool
    primary: str  # the source with the most progress
    sources: int  # number of recent sources
    stale: bool
    changed: int  # when anything other than `seen` last changed
    seen: int  # of the newest reading


class GameChanges(NamedTuple):
    """Changes of one step: new or changed states, and games that left."""

    changed: Mapping[str, State]
    removed: tuple[str, ...]


def progress(sport: str, period: str, clock: str) -> tuple[float, float]:
    """Return the progress of a game as (period, time within it); larger is later.

    Examples
    --------
    >>> progress("basketball", "Q3", "2:10") > progress("basketball", "Q3", "11:40") > progress("basketball", "HT", "")
    True
    >>> progress("soccer", "2H", "45+2") > progress("soccer", "1H", "45+2") > progress("soccer", "1H", "31:07")
    True
    >>> progress("baseball", "B5", "") > progress("baseball", "T5", "") > progress("baseball", "B4", "")
    True
    """
    return _place(period.strip().upper()), _elapsed(sport, clock.strip())


def _place(period: str) -> float:
    match = _PERIOD.fullmatch(period)
    if period == FINAL:
        return float("inf")
    if period in _BREAKS:
        return _BREAKS[period]
    if match is None:  # "2H", or unknown
        return 2.0 * int(period[0]) - 1.0 if period in ("1H", "2H") else _NOWHERE
    word, digits = match[1], match[2]
    number = int(digits or 1)
    if word in _LATER:
        return _LATER[word] + number
    if word in ("T", "B") and digits:
        return 2.0 * number - (word == "T")
    return float(number) if word in ("Q", "P", "S") and digits else _NOWHERE


def _elapsed(sport: str, clock: str) -> float:
    if _LAST_SECONDS.fullmatch(clock):
        return -float(clock)
    match = _TIMED.fullmatch(clock)
    if match is None:
        return float("-inf")
    minutes, seconds, more, more_seconds = (int(part or 0) for part in match.groups())
    elapsed = 60.0 * (minutes + more) + seconds + more_seconds
    return elapsed if sport in CLOCKS_UP else -elapsed


def swapped_sides(reading: ScoreReading) -> ScoreReading:
    """Swap home and away of a reading."""
    possession = {"home": "away", "away": "home"}.get(reading.possession, reading.possession)
    return reading._replace(home=reading.away, away=reading.home, possession=possession)


# ---- a single time ----


def recent(readings: Iterable[ScoreReading]) -> list[ScoreReading]:
    """Return the recent readings by source."""
    ordered = sorted(readings, key=lambda reading: reading.source)
    newest = max((reading.seen for reading in ordered), default=0)
    return [reading for reading in ordered if reading.seen > newest - _RECENT]


def consensus(
    readings: Collection[ScoreReading], before: Score | None = None, since: int | None = None
) -> Score | None:
    """Merge the scores of recent readings; `before` is the previous score, unchanged `since` (None: for long).

    Examples
    --------
    >>> quick, slow = ScoreReading("e", "a", 9 * SECOND, 1, 0), ScoreReading("e", "b", 5 * SECOND, 0, 0)
    >>> consensus([quick, slow]), consensus([quick, slow._replace(seen=10 * SECOND)], before=(1, 0))
    ((1, 0), (1, 0))
    >>> consensus([quick._replace(home=0), slow], before=(1, 0))
    (0, 0)
    """
    newest = max((reading.seen for reading in readings), default=0)
    weights: dict[Score, tuple[int, int, int]] = {}  # weight, newest, count
    for reading in readings:
        if reading.score is not None:
            weight, last, n = weights.get(reading.score, (0, 0, 0))
            weights[reading.score] = weight + _RECENT - (newest - reading.seen), max(last, reading.seen), n + 1
    if not weights:
        return before

    def heaviest(scores: Iterable[Score]) -> Score:
        return max(scores, key=lambda score: (*weights[score][:2], sum(score), score))

    winner = heaviest(weights)
    if before is None or not _lower(winner, before):
        return winner
    voters = sum(n for *_, n in weights.values())
    standing = [score for score in weights if not _lower(score, before)]
    late = since is None or newest - since >= _LATE
    return winner if not standing or (late and 2 * weights[winner][2] > voters) else heaviest(standing)


def _lower(score: Score, before: Score) -> bool:
    return score[0] < before[0] or score[1] < before[1]


def merge(readings: Collection[ScoreReading], before: Score | None = None, since: int | None = None) -> State:
    """Merge the last readings of a game's sources, at least one."""
    current = recent(readings)
    newest = max(reading.seen for reading in current)
    home, away = consensus(current, before, since) or (None, None)
    ends = [reading for reading in current if reading.over]
    if 2 * len(ends) >= len(current):
        lead = max(ends, key=lambda reading: reading.seen)
        shown_part = FINAL, "", "", True
    else:
        running = [reading for reading in current if not reading.over]
        lead = max(running, key=lambda r: (*progress(r.sport, r.period, r.clock), r.seen))
        shown_part = lead.period, lead.clock, lead.possession, False
    return State(home, away, *shown_part, lead.source, len(current), stale=False, changed=newest, seen=newest)


# ---- all games, over time ----


class _Game:
    """One game: the last reading of each source, and the state before the newest one."""

    def __init__(self) -> None:
        self.readings: dict[str, ScoreReading] = {}
        self.at = ARRIVAL
        self.before: Score | None = None
        self.since: int | None = None  # when that score arrived
        self.over_before: int | None = None
        self.over: int | None = None  # when the end was first accepted
        self.begun = False  # a source reported a score while it was live
        self.left = False
        self.state: State | None = None

    @property
    def score(self) -> Score | None:
        state = self.state
        return None if state is None or state.home is None or state.away is None else (state.home, state.away)

    def update(self, seen: int, readings: Iterable[ScoreReading]) -> None:
        if seen > self.at:
            if self.score != self.before:
                self.before, self.since = self.score, self.at
            self.at, self.over_before = seen, self.over
        for reading in readings:
            last = self.readings.get(reading.source)
            if last is None or _rank(reading) > _rank(last):
                self.readings[reading.source] = reading
                self.begun |= reading.score is not None and not reading.over
        self.settle()

    def settle(self) -> None:
        self.state = merge(self.readings.values(), self.before, self.since)
        since = self.at if self.over_before is None else self.over_before
        self.over = since if self.state.over else None


def _rank(reading: ScoreReading) -> tuple[int, bool, Score, str, str, str]:
    """Order of readings of one source; the largest counts."""
    score = reading.score or (-1, -1)
    return reading.seen, reading.over, score, reading.period, reading.clock, reading.possession


class Scoreboard:
    """The states of all games; changed by `step` and `drop` only.

    Examples
    --------
    >>> board = Scoreboard()
    >>> change = board.step([ScoreReading("e", "a", 0, 1, 0, "1H", "12:30", sport="soccer")], now=SECOND)
    >>> change.changed["e"].home, board.step([], now=61 * SECOND).changed["e"].stale
    (1, True)
    """

    def __init__(self) -> None:
        self.now = ARRIVAL
        self.states: dict[str, State] = {}  # states are replaced, not modified
        self._games: dict[str, _Game] = {}

    def __len__(self) -> int:
        return len(self._games)

    def __contains__(self, event: str) -> bool:
        return event in self._games

    def step(self, readings: Iterable[ScoreReading], now: int) -> GameChanges:
        """Apply readings in any order and advance the time; readings from the future count as seen now."""
        self.now = now = max(now, self.now)
        taken = [r._replace(seen=now) if r.seen == ARRIVAL or r.seen > now else r for r in readings]
        taken.sort(key=lambda reading: (reading.event, reading.seen))
        for (event, seen), simultaneous in groupby(taken, key=lambda reading: (reading.event, reading.seen)):
            self._games.setdefault(event, _Game()).update(seen, simultaneous)
        return self._settle()

    def dump(self) -> dict[str, Any]:
        """Serialise the scoreboard for `restore`."""
        return {"now": self.now, "states": self.states, "games": {id_: vars(game) for id_, game in self._games.items()}}

    def restore(self, held: Mapping[str, Any]) -> None:
        """Restore the state returned by `dump`."""
        self.now = held["now"]
        self.states = {id_: State(*state) for id_, state in held["states"].items()}
        self._games = {}
        for id_, fields in held["games"].items():
            game = self._games[id_] = _Game()
            vars(game).update(fields)
            game.readings = {source: ScoreReading(*reading) for source, reading in fields["readings"].items()}
            game.state = None if fields["state"] is None else State(*fields["state"])
            game.before = None if fields["before"] is None else (fields["before"][0], fields["before"][1])

    def drop(self, source: str, event: str) -> None:
        """Drop what a source reported about a game, after a wrong match; takes effect at the next step."""
        game = self._games.get(event)
        if game is None or game.readings.pop(source, None) is None:
            return
        if game.readings:
            game.before = game.since = None
            game.settle()
        else:
            game.state = None

    def _settle(self) -> GameChanges:
        """Compare the states with those last returned."""
        states: dict[str, State] = {}
        changed: dict[str, State] = {}
        for event, game in list(self._games.items()):
            if game.state is None or self.now - game.at >= SILENT_S * SECOND:
                del self._games[event]
                continue
            game.left |= game.over is not None and self.now - game.over >= ENDED_S * SECOND
            if game.left or not game.begun:
                continue
            states[event] = state = self._dated(game.state, self.states.get(event))
            if event not in self.states or state.changed != self.states[event].changed:
                changed[event] = state
        removed = tuple(sorted(self.states.keys() - states.keys()))
        self.states = states
        return GameChanges(changed, removed)

    def _dated(self, state: State, last: State | None) -> State:
        """Return a state with its age and the time of its last change."""
        state = state._replace(stale=not state.over and self.now - state.seen >= STALE_S * SECOND)
        same = last is not None and state._replace(changed=0, seen=0) == last._replace(changed=0, seen=0)
        return state._replace(changed=last.changed if same and last is not None else self.now)
