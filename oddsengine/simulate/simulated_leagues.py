"""Leagues of the simulated world: scoring parameters and market names.

A team scores in jumps (a goal, a run, a touchdown), each worth one of `marks` points. Figures are rounded from public
results; basketball scores one point at a time, which gives margins the spread of real games.
"""

import math
from typing import NamedTuple

MONEYLINE, SPREAD, TOTAL, HOME_TOTAL, AWAY_TOTAL, PART_TOTAL, FIRST_PROP = range(7)
PLAYERS = 6
LADDERS = FIRST_PROP + PLAYERS
"""Ladders of an event: moneyline, spread, totals, and one prop per player."""


class SimulatedLeague(NamedTuple):
    """A league. Lines are counted in quarters: `steps` is the grid of a ladder, `bases` its offset."""

    sport: str
    id: str
    home: float  # mean jumps per game
    away: float
    spread_of_strength: float  # standard deviation of the logarithm of a team's jumps
    marks: tuple[tuple[int, float], ...]  # points of a jump, and its frequency
    bonus: int  # points added by the winner of an overtime; 0: a game may end level
    prior: float  # prior weight of a team's opening rating, in jumps
    news: float  # reports per hour on each team, each worth one jump
    minutes: float  # duration including breaks
    part: float  # share of the game in the first part
    size: int  # scores and margins stay well below half of it
    names: tuple[str, str, str]  # of spread, total and the first part's total
    other_names: tuple[str, str, str]  # the same at books with generic names
    stat: str
    stat_mean: float
    steps: tuple[int, int, int, int, int]  # spread, total, team total, part total, prop
    bases: tuple[int, int, int, int, int]
    pauses: bool = True  # books suspend a game after a score

    @property
    def draws(self) -> bool:
        """Whether a game may end level."""
        return self.bonus == 0

    @property
    def drift(self) -> float:
        """Approximate standard deviation, in logits, of an even moneyline per hour of reports."""
        jump, square = (sum(share * points**power for points, share in self.marks) for power in (1, 2))
        points = jump * math.hypot(self.home, self.away) * math.sqrt(self.news) / self.prior
        return 1.6 * points / math.sqrt((self.home + self.away) * square)

    @property
    def grid(self) -> tuple[tuple[int, int], ...]:
        """Step and base of every ladder; moneylines have none."""
        spread, total, team, part, prop = zip(self.steps, self.bases, strict=True)
        return ((1, 0), spread, total, team, team, part, *[prop] * PLAYERS)


ONES = ((1, 1.0),)
LEAGUES = (
    SimulatedLeague(
        "basketball", "nba", 114.0, 111.5, 0.035, ONES, 4, 1000.0, 60.0, 140.0, 0.5, 512,
        ("point_spread", "total_points", "1st_half_total_points"), ("spreads", "totals", "1st_half_totals"),
        "points", 19.0, (2, 4, 4, 4, 4), (0, 2, 2, 2, 2), pauses=False,
    ),
    SimulatedLeague(
        "soccer", "england_premier_league", 1.55, 1.25, 0.25, ONES, 0, 200.0, 20.0, 112.0, 0.5, 64,
        ("asian_handicap", "total_goals", "1st_half_total_goals"), ("spreads", "totals", "1st_half_totals"),
        "shots", 2.4, (1, 2, 4, 2, 4), (0, 0, 2, 0, 2),
    ),
    SimulatedLeague(
        "hockey", "nhl", 3.2, 2.9, 0.12, ONES, 1, 250.0, 25.0, 150.0, 1.0 / 3.0, 64,
        ("puck_line", "total_goals", "1st_period_total_goals"), ("spreads", "totals", "1st_period_totals"),
        "shots_on_goal", 2.8, (4, 2, 4, 2, 4), (2, 0, 2, 0, 2),
    ),
    SimulatedLeague(
        "baseball", "mlb", 4.6, 4.4, 0.14, ONES, 1, 200.0, 20.0, 170.0, 5.0 / 9.0, 64,
        ("run_line", "total_runs", "1st_5_innings_total_runs"), ("spreads", "totals", "1st_5_innings_totals"),
        "total_bases", 1.7, (4, 2, 4, 2, 4), (2, 0, 2, 0, 2),
    ),
    SimulatedLeague(
        "football", "nfl", 4.3, 4.0, 0.12, ((7, 0.6), (3, 0.4)), 3, 300.0, 15.0, 190.0, 0.5, 256,
        ("point_spread", "total_points", "1st_half_total_points"), ("spreads", "totals", "1st_half_totals"),
        "receptions", 5.0, (2, 2, 4, 2, 4), (0, 0, 2, 0, 2),
    ),
)  # fmt: skip
"""The leagues; events are assigned to them in turn."""

PLAYER_PRIOR = 100.0
PLAYER_NEWS = 15.0
"""`prior` and `news` of a player's statistic."""

FIRST_NAMES = (
    "Aaron", "Bastian", "Caleb", "Darnell", "Emil", "Felix", "Gabriel", "Héctor", "Isaiah", "Jonas", "Kofi", "Luka",
    "Marcus", "Nils", "Oscar", "Pavel", "Quentin", "Rafael", "Søren", "Tyrese", "Umar", "Viktor", "Wesley", "Zoran",
)  # fmt: skip
LAST_NAMES = (
    "Abbott", "Brännström", "Castellano", "Dawkins", "Eriksen", "Fontaine", "Gallagher", "Hartmann", "Ivanović",
    "Jeffers", "Kowalski", "Lindqvist", "Mbeki", "Novák", "Okafor", "Prendergast", "Quiñones", "Rasmussen", "Sandoval",
    "Thornton", "Ueda", "Vasquez", "Whitfield", "Zielinski",
)  # fmt: skip
"""Players are fictional."""
