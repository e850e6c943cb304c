"""Fixtures and start times."""

from datetime import datetime

import numpy as np

from oddsengine import catalog
from oddsengine.catalog.spelling import slug
from oddsengine.columns import Floats, Longs
from oddsengine.simulate.simulated_labels import Fixture
from oddsengine.simulate.simulated_leagues import FIRST_NAMES, LAST_NAMES, LEAGUES, PLAYERS, SimulatedLeague

_DAY = 86400.0
_BEGIN = (0.1, 8.0)  # hours after the opening at which a day's games start
_GRID = 300.0  # s: announced start times are multiples of this
_DEEPEST = 0.8  # maximum share of a game played at the opening


def schedule(
    events: int, days: int, start: datetime, live: float, pace: float, rng: np.random.Generator
) -> tuple[Longs, Floats]:
    """Return the league of each event and its start in seconds.

    Rounds of a league are a day apart. With `days`, each day has so many events, at all hours.
    """
    league = np.arange(events * max(days, 1)) % len(LEAGUES)
    games = np.array([len(_teams(each)) // 2 for each in LEAGUES])[league]
    day = np.arange(league.size) // events if days else np.arange(events) // len(LEAGUES) // games
    hours = rng.uniform(_BEGIN[0], 24.0 if days else _BEGIN[1], league.size)
    past = start.timestamp() % _GRID
    begins = np.ceil((hours * 3600.0 + past) / _GRID) * _GRID - past + day * _DAY
    minutes = np.array([each.minutes for each in LEAGUES])[league]
    ago = -rng.uniform(0.0, _DEEPEST, league.size) * minutes * 60.0 / pace
    return league, np.where((rng.random(league.size) < live) & (day == 0), ago, begins)


def fixtures(league: Longs, begins: Floats, start: datetime, rng: np.random.Generator) -> list[Fixture]:
    """Pair the teams of every league in each round, and name events and players."""
    names: set[str] = set()
    waiting: dict[int, list[tuple[str, str]]] = {place: [] for place in range(len(LEAGUES))}
    made = []
    for place, seconds in zip(league.tolist(), begins.tolist(), strict=True):
        if not waiting[place]:
            teams = _teams(LEAGUES[place])
            order = rng.permutation(len(teams)).tolist()
            waiting[place] = [(teams[a], teams[b]) for a, b in zip(order[::2], order[1::2], strict=False)]
        home, away = waiting[place].pop()
        when = datetime.fromtimestamp(round(start.timestamp() + seconds, 3) // _GRID * _GRID, start.tzinfo)
        name = _name(names, LEAGUES[place], home, away, when)
        made.append(Fixture(name, LEAGUES[place], home, away, _players(rng), when))
    return made


def _teams(league: SimulatedLeague) -> list[str]:
    return [team.name for team in catalog.teams() if team.league == league.id]


def _players(rng: np.random.Generator) -> tuple[str, ...]:
    """Draw players with distinct last names."""
    first = rng.integers(0, len(FIRST_NAMES), PLAYERS).tolist()
    last = rng.permutation(len(LAST_NAMES))[:PLAYERS].tolist()
    return tuple(f"{FIRST_NAMES[a]} {LAST_NAMES[b]}" for a, b in zip(first, last, strict=True))


def _name(taken: set[str], league: SimulatedLeague, home: str, away: str, when: datetime) -> str:
    base = f"{league.id}_{slug(away)}_{slug(home)}_{when:%Y-%m-%d}"
    name = next(n for n in (base, *(f"{base}_{again}" for again in range(2, 100))) if n not in taken)
    taken.add(name)
    return name
