"""Displayed prices of all books as flat columns, and their changes.

A screen is one book's prices of one event. Its rows are consecutive, sorted by ladder, line and outcome. A row belongs
to a position on a ladder, so its line moves with the ladder's centre.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oddsengine.columns import Bools, Floats, Longs, spans
from oddsengine.simulate.simulated_books import Habits, Opinions, SimulatedBook, quoted
from oddsengine.simulate.simulated_games import CENTRE, LIVE, OFFSETS, WIDTH, SimulatedGames
from oddsengine.simulate.simulated_leagues import HOME_TOTAL, LADDERS, LEAGUES, MONEYLINE

_COVERED = 0.9  # share of secondary ladders quoted by a book that quotes them at all
_UNLIKELY = 0.05  # lines with a less likely side are not shown
_LONG_SHOT = 0.015  # the same for a moneyline


class ScreenUpdate(NamedTuple):
    """The current rows of some screens, and the screens from which rows were removed."""

    rows: Longs
    changed: Bools  # new, repriced, suspended or resumed
    shown: Bools
    moved: Longs


class _Belief(NamedTuple):
    """What books believe of the rows of some markets, before margins."""

    quarters: Longs
    prob: Floats  # of a market they sum to 1
    visible: Bools
    market: Longs  # index of each row's market
    starts: Longs  # first row of each market


class Displayed(NamedTuple):
    """Columns of all rows of a world as its books display them."""

    shown: Bools
    active: Bools
    live: Bools
    quarters: Longs
    odds: Floats
    seen: Floats
    changed_at: Floats


class Screens:
    """Every price of a world, as last shown: `odds`, `quarters`, `seen`, `shown`, `live` and `active`."""

    def __init__(
        self, simulated_books: Sequence[SimulatedBook], games: SimulatedGames, rng: np.random.Generator
    ) -> None:
        self._games = games
        self._habits = Habits(simulated_books)
        self.events = games.league.size
        books, n = len(simulated_books), self.events
        depth = np.array([d.depth for d in simulated_books])
        covered = rng.random((books, n, LADDERS)) < _COVERED
        covered[..., :HOME_TOTAL] = True
        covered_lines = covered[..., None] & (np.abs(OFFSETS) <= depth[:, None, :, None])
        sides = np.zeros((n, LADDERS, WIDTH, 3), bool)
        sides[..., :2] = True
        draws = np.array([league.draws for league in LEAGUES])[games.league]
        sides[:, MONEYLINE, CENTRE] = np.stack([np.ones(n, bool), draws, np.ones(n, bool)], axis=-1)
        places = np.nonzero(covered_lines[..., None] & sides)
        self.book, self.event, self.ladder, self._slot, self.side = (np.ascontiguousarray(x) for x in places)
        plain = self.ladder != MONEYLINE
        self._sign = np.where(plain, 1 - 2 * self.side, 1 - self.side).astype(float)
        self._outcome = np.where(plain, self._slot, self.side)
        self.screen = self.book * n + self.event
        key = (self.screen * LADDERS + self.ladder) * WIDTH + self._slot
        self._first = np.concatenate([[True], key[1:] != key[:-1]])
        self.offsets = np.searchsorted(self.screen, np.arange(books * n + 1))
        self._can_live = self._habits.live[self.book] & (self.ladder < HOME_TOTAL)
        rows = self.book.size
        self.odds, self.seen = np.full(rows, np.nan), np.full(rows, -np.inf)
        self.changed_at = np.full(rows, -np.inf)
        self.quarters = np.zeros(rows, np.int64)
        self.shown, self.live, self.active = np.zeros((3, rows), bool)

    def look(self, screens: Longs, opinions: Opinions, suspended: Bools, now: float) -> ScreenUpdate:
        """Update some screens; `suspended` is per event."""
        rows = spans(self.offsets[screens], self.offsets[screens + 1])
        event = self.event[rows]
        live = self._games.status[event] == LIVE
        quarters, odds, visible = self._price(rows, live, opinions)
        active = ~suspended[event]
        suspended_rows = ~active
        quarters[suspended_rows], odds[suspended_rows] = (
            self.quarters[rows][suspended_rows],
            self.odds[rows][suspended_rows],
        )
        visible = np.where(suspended_rows, self.shown[rows] & self.live[rows], visible)
        was = self.shown[rows]
        same = was & (quarters == self.quarters[rows]) & (live == self.live[rows])
        left = was & ~(same & visible)
        changed = visible & ~(same & (odds == self.odds[rows]) & (active == self.active[rows]))
        self.changed_at[rows[changed]] = now
        self.odds[rows], self.quarters[rows], self.shown[rows] = odds, quarters, visible
        self.live[rows], self.active[rows] = live, active
        return ScreenUpdate(rows, changed, visible, np.unique(self.screen[rows[left]]))

    def two_way(self) -> Longs:
        """Return the first row of every market of two outcomes; the other one follows it."""
        starts = np.flatnonzero(self._first)
        return np.asarray(starts[np.diff(np.append(starts, self.book.size)) == 2])

    def displayed(self) -> Displayed:
        """Return a copy of what is shown now."""
        shown, active, live = self.shown.copy(), self.active.copy(), self.live.copy()
        times = self.seen.copy(), self.changed_at.copy()
        return Displayed(shown, active, live, self.quarters.copy(), self.odds.copy(), *times)

    def clear(self, screens: Longs) -> None:
        self.shown[spans(self.offsets[screens], self.offsets[screens + 1])] = False

    def fair(self, rows: Longs, opinions: Opinions) -> tuple[Longs, Floats, Bools]:
        """Return thresholds, the probabilities that books believe in, and what is quoted; `rows` are whole markets."""
        live = self._games.status[self.event[rows]] == LIVE
        belief = self._believe(rows, live, opinions)
        return belief.quarters, belief.prob, belief.visible

    def _price(self, rows: Longs, live: Bools, opinions: Opinions) -> tuple[Longs, Floats, Bools]:
        """Return threshold, odds and visibility of the rows of some screens."""
        book, ladder = self.book[rows], self.ladder[rows]
        quarters, prob, visible, market, starts = self._believe(rows, live, opinions)
        safe = np.clip(prob, 0.01, 0.99)
        margin = self._habits.margins(book[starts], ladder[starts], live[starts])
        odds = np.maximum(self._habits.written(book, quoted(safe, market, margin)), 1.01)
        return quarters, odds, visible

    def _believe(self, rows: Longs, live: Bools, opinions: Opinions) -> _Belief:
        games = self._games
        book, event, ladder = self.book[rows], self.event[rows], self.ladder[rows]
        at = event, ladder, self._outcome[rows]
        z = np.log(np.maximum(games.win[at], 1e-12)) - np.log(np.maximum(games.lose[at], 1e-12))
        upper = (ladder == MONEYLINE) | (self.side[rows] == 0)
        z = np.where(upper, z, -z)
        middle = np.where(ladder == MONEYLINE, 0, CENTRE)
        balance = games.win[event, ladder, middle] - games.lose[event, ladder, middle]
        off = opinions.of(book, event, ladder) + self._habits.taste(book, ladder, balance)
        prob = 1.0 / (1.0 + np.exp(-(z + self._sign[rows] * off)))
        first = self._first[rows]
        market = np.cumsum(first) - 1
        starts = np.flatnonzero(first)
        prob = prob / np.bincount(market, prob)[market]
        least = np.minimum.reduceat(prob, starts) if rows.size else prob
        limit = np.where(ladder[starts] == MONEYLINE, _LONG_SHOT, _UNLIKELY)
        visible = (least > limit)[market] & (~live | self._can_live[rows])
        return _Belief(games.line_of(event, ladder, self._slot[rows]), prob, visible, market, starts)
