"""Simulated futures of a season: true chances of titles, finals, wins, playoffs and awards, and books that follow them.

Every team has a strength that drifts; all chances at a time follow from the strengths at that time:

    title          softmax of the strengths: one wins
    final          1 - (1 - title)^g, with g such that they sum to two
    playoffs       logistic in the strength, shifted to sum to the number of places
    wins           Normal about games (1/2 + a tanh(strength)), less its mean so that half of all games are won

Chances of the award depend on the players' own strengths. The drift is a sum of slow waves with phases from the seed,
so prices depend on seed and time alone and can be computed for any time.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from statistics import NormalDist
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from oddsengine import catalog
from oddsengine.catalog import futures_catalog as kinds
from oddsengine.columns import Floats
from oddsengine.simulate.simulated_books import Habits, SimulatedBook, quoted, simulated_book
from oddsengine.simulate.simulated_leagues import FIRST_NAMES, LAST_NAMES
from oddsengine.tables.timestamps import aware

DEFAULT_BOOKS = (
    "pinnacle", "circa", "betonline", "draftkings", "fanduel", "betmgm", "caesars", "bet365", "espnbet", "betrivers",
    "bovada", "williamhill",
)  # fmt: skip
_WAVES = (3_600.0, 14_400.0, 50_400.0)  # s: periods of the drift
_SWING = 0.05  # amplitude of each wave, in strength
_PEOPLE = 12  # candidates for the award
_BEST, _SUBJECTS = 5, 8  # teams with win and playoff markets: after so many favourites, so many
_MARGINS = {"field": 5.0, "two": 1.3}  # as multiples of a book's margin on games
_LISTED = 0.003  # books that list no long shots omit chances below
_SPREAD = 0.12  # standard deviation of a team's share of wins
_REACH = 0.22  # maximum share of wins above one half
_ROUNDS = 60


class Race(NamedTuple):
    """A market with its true chances."""

    market: str
    type: str
    subject: str
    line: float | None
    places: int
    selections: tuple[str, ...]
    chances: Floats  # sum to the number of places


class _League(NamedTuple):
    sport: str
    id: str
    games: int
    playoffs: int
    years: int  # years that a season spans
    ends: tuple[int, int]  # month and day of the end


_LEAGUES = {
    "nba": _League("basketball", "nba", 82, 16, 2, (6, 20)),
    "nfl": _League("football", "nfl", 17, 14, 2, (2, 14)),
    "mlb": _League("baseball", "mlb", 162, 12, 1, (11, 1)),
    "nhl": _League("hockey", "nhl", 82, 16, 2, (6, 20)),
}


class FuturesSeason:
    """The futures of one league.

    Parameters
    ----------
    seed
        The same seed gives the same prices at the same time.
    league
        nba, nfl, mlb or nhl.
    year
        Year in which the season begins.

    Examples
    --------
    >>> season = FuturesSeason(7, "nba", 2026)
    >>> race = season.races(datetime(2026, 11, 1, tzinfo=UTC))[0]
    >>> race.market, len(race.selections), round(float(race.chances.sum()), 9)
    ('Championship Winner', 30, 1.0)
    """

    def __init__(self, seed: int, league: str = "nba", year: int = 2026) -> None:
        self._league = _LEAGUES[league]
        self.season = f"{year}-{(year + 1) % 100:02d}" if self._league.years == 2 else str(year)
        self.ends = datetime(year + self._league.years - 1, *self._league.ends, tzinfo=UTC)
        self.books = DEFAULT_BOOKS
        self._simulated_books = [simulated_book(name) for name in self.books]
        self._habits = Habits(self._simulated_books)
        rng = np.random.default_rng([seed, crc32(league.encode())])
        self.teams = kinds.contestants(league)
        self._strength = rng.standard_normal(len(self.teams))
        self._talent = 1.3 * rng.standard_normal(_PEOPLE)
        first, last = rng.integers(0, len(FIRST_NAMES), _PEOPLE), rng.permutation(len(LAST_NAMES))[:_PEOPLE]
        pairs = zip(first.tolist(), last.tolist(), strict=True)
        self.people = tuple(f"{FIRST_NAMES[a]} {LAST_NAMES[b]}" for a, b in pairs)
        self._phase = rng.uniform(0.0, 2.0 * np.pi, (2, len(_WAVES), max(len(self.teams), _PEOPLE)))
        self._subjects = np.argsort(-self._strength)[_BEST : _BEST + _SUBJECTS]
        self._lines = np.floor(self._league.games * self._shares(0.0)[self._subjects]) + 0.5

    def __repr__(self) -> str:
        return f"<FuturesSeason {self.season} of {self._league.id}, {len(self.books)} books>"

    # ---- truth ----

    def fields(self) -> tuple[Mapping[str, Any], ...]:
        """Fields to configure: the candidates for the award."""
        return (
            {
                "league": self._league.id, "market": "MVP", "season": self.season, "places": 1,
                "contestants": (*self.people, "Any other"),
            },
        )  # fmt: skip

    def races(self, now: datetime) -> list[Race]:
        """Return every market with its true chances at a time."""
        return self._races(_seconds(now))

    def _races(self, seconds: float, off: tuple[Floats, Floats] | None = None) -> list[Race]:
        """Return the markets with strengths of teams and people that are off by some errors."""
        strength = self._strength + self._drift(0, seconds, len(self.teams)) + (0.0 if off is None else off[0])
        talent = self._talent + self._drift(1, seconds, _PEOPLE) + (0.0 if off is None else off[1])
        title = _softmax(1.2 * strength)
        award = np.append(0.96 * _softmax(talent), 0.04)
        shares = self._shares(seconds, strength)
        races = [
            Race("Championship Winner", "TEAM", "", None, 1, self.teams, title),
            Race("To reach the final", "TEAM", "", None, 2, self.teams, _reaching(title, 2)),
            Race("MVP", "PLAYER", "", None, 1, (*self.people, "Any other"), award),
        ]
        playoffs = _logistic(2.2 * strength, self._league.playoffs)
        for at, line in zip(self._subjects.tolist(), self._lines.tolist(), strict=True):
            over = NormalDist().cdf((shares[at] - line / self._league.games) / _SPREAD)
            over = min(max(over, 0.02), 0.98)
            races.append(Race("Regular season wins", "OVER_UNDER", self.teams[at], line, 1, ("Over", "Under"),
                              np.array([over, 1.0 - over])))  # fmt: skip
            yes = min(max(float(playoffs[at]), 0.03), 0.97)
            races.append(Race("To make the playoffs", "YES_NO", self.teams[at], None, 1, ("Yes", "No"),
                              np.array([yes, 1.0 - yes])))  # fmt: skip
        return races

    def _drift(self, whose: int, seconds: float, n: int) -> Floats:
        angles = 2.0 * np.pi * seconds / np.array(_WAVES)[:, None] + self._phase[whose, :, :n]
        return np.asarray(_SWING * np.sin(angles).sum(axis=0))

    def _shares(self, seconds: float, strength: Floats | None = None) -> Floats:
        """Return the share of games that each team wins, on average one half."""
        of = self._strength + self._drift(0, seconds, len(self.teams)) if strength is None else strength
        lead = np.tanh(0.8 * of)
        return np.asarray(0.5 + _REACH * (lead - lead.mean()))

    # ---- books ----

    def quotes(self, now: datetime) -> list[dict[str, Any]]:
        """Return every book's prices at a time, as rows of a futures table."""
        rows: list[dict[str, Any]] = []
        for at, each in enumerate(self._simulated_books):
            rows += self._of_book(at, each, now)
        return rows

    def _of_book(self, at: int, each: SimulatedBook, now: datetime) -> list[dict[str, Any]]:
        voice = np.random.default_rng(crc32((each.book.feed or each.book.id).encode()))
        phase, short = voice.uniform(0.0, 2.0 * np.pi, (2, 40)), bool(voice.random() < 0.4)
        looked = _seconds(now) // (4.0 * each.poll) * 4.0 * each.poll  # time of its last update
        wave = each.noise * np.sin(2.0 * np.pi * looked / 7_200.0 + phase)
        off = wave[0, : len(self.teams)], wave[1, :_PEOPLE]
        rows = []
        for race in self._races(looked - 4.0 * each.lag, off):
            margin = each.margin * _MARGINS["two" if len(race.selections) == 2 else "field"]
            whole = race.places * (1.0 + margin) - 1.0  # `quoted` removes what is above one
            prices = quoted(race.chances, np.zeros(race.chances.size, np.int64), np.array([whole]))
            written = self._habits.written(np.full(prices.size, at, np.int64), prices)
            row = {
                "sportsbook": each.book.id, "sport": self._league.sport, "league": self._league.id,
                "market": self._market(race, generic=each.generic), "future_type": race.type,
                "season": self.season, "subject": race.subject or None, "line": race.line, "last_seen_at": now,
                "event_start_time": self.ends,
            }  # fmt: skip
            for name, chance, price in zip(race.selections, race.chances.tolist(), written.tolist(), strict=True):
                if not (short and len(race.selections) > 2 and chance < _LISTED):
                    text = self._text(race, name, generic=each.generic)
                    rows.append({**row, "selection": text, "odds_decimal": price})
        return rows

    def _market(self, race: Race, *, generic: bool) -> str:
        """Return a market's name; books with generic names use another."""
        return f"{self._league.id.upper()} {race.market} {self.season}" if generic else race.market

    def _text(self, race: Race, name: str, *, generic: bool) -> str:
        if race.type == "OVER_UNDER":
            return f"{name} {race.line:g}"
        team = catalog.team(name, self._league.sport, self._league.id) if generic and race.type == "TEAM" else None
        return team.aliases[0] if team is not None and team.aliases else name


def _seconds(now: datetime) -> float:
    return aware(now).timestamp()


def _softmax(values: Floats) -> Floats:
    whole = np.exp(values - values.max())
    return np.asarray(whole / whole.sum())


def _reaching(title: Floats, places: int) -> Floats:
    """Raise title chances to chances of one of several places; they sum to the number of places."""
    return _with_sum(lambda log_power: 1.0 - (1.0 - title) ** np.exp(log_power), places, 0.0, np.log(1e4))


def _logistic(values: Floats, places: int) -> Floats:
    return _with_sum(lambda shift: 1.0 / (1.0 + np.exp(-values - shift)), places, -50.0, 50.0)


def _with_sum(chances: Callable[[float], Floats], total: int, low: float, high: float) -> Floats:
    """Bisect for the chances that sum to a total; the sum increases with the argument."""
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(chances(middle).sum()) < total else (low, middle)
    return np.asarray(chances(high))
