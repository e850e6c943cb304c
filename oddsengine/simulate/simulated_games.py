"""Simulated games: scores, and exact probabilities given public information.

**Process.** Each team (and each player's statistic) is a lane that jumps at the times of a Poisson process, with a
hidden rate drawn once from a Gamma distribution. Before the game there are *reports*, jumps of the same rate that do
not count; in the game, jumps score. The public information about a rate is the number of jumps of a lane, of either
kind, over an exposure (1 is a whole game). Given that, the rate is

    Gamma(alpha, beta),   alpha = prior + jumps,   beta = prior / mean + exposure

and the remaining points over the exposure r have the generating function

    (1 + (r / beta) (1 - F(z)))^(-alpha),      F(z) = sum of share_j z^points_j over the marks of a jump.

**Probabilities are exact.** The generating function of the final score is this one times z^score, and probabilities
given public information are a martingale by construction. Sums and differences of two teams are products of their
functions; an inverse Fourier transform on `SimulatedLeague.size` points converts them to probabilities (aliasing is
negligible).
A game that cannot end level is decided by a fair coin; the winner adds the bonus.

**Lines** are counted in quarters. A bet at threshold t wins if the score (home's margin for spreads) is above t; a
quarter line is half on each neighbour. `win` and `lose` are the expected shares of a stake that win and lose: a price d
returns win (d - 1) - lose, and d is fair at p = win / (win + lose).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine.columns import Bools, Floats, Longs
from oddsengine.simulate.simulated_leagues import (
    AWAY_TOTAL,
    FIRST_PROP,
    HOME_TOTAL,
    LADDERS,
    LEAGUES,
    MONEYLINE,
    PART_TOTAL,
    PLAYER_NEWS,
    PLAYER_PRIOR,
    PLAYERS,
    SPREAD,
    TOTAL,
    SimulatedLeague,
)

UPCOMING, LIVE, ENDED = range(3)
WIDTH = 5
"""Maximum lines of a ladder: its centre, and two on each side."""
CENTRE = WIDTH // 2
OFFSETS = np.arange(WIDTH) - CENTRE
HALF_POINT = 2  # lowest line of any count
_HOUR = 3600.0
_REFRESH = 30.0  # s: without reports, probabilities of upcoming games are refreshed at this interval
_STAY = 0.08  # logit: a ladder's centre moves if another line is more balanced by this much
_TINY = 1e-9
_TEAMS = slice(0, 2)
_PLAYERS = slice(2, 2 + PLAYERS)
_LANES = 2 + PLAYERS


class Chances(NamedTuple):
    """Expected shares of a stake that win and that lose; the rest is returned."""

    win: float
    lose: float

    @property
    def prob(self) -> float:
        """Probability at which a price is fair: of winning, given that the stake is not returned."""
        return self.win / (self.win + self.lose)

    def returns(self, odds: float) -> float:
        """Return the expected profit on a stake of 1 at decimal odds."""
        return self.win * (odds - 1.0) - self.lose


class News(NamedTuple):
    """Arrival of news on upcoming games: all reports of `every` seconds arrive together, at random times."""

    drift: float  # logits: standard deviation of an even moneyline per hour
    every: float  # s: mean interval between reports, for each team and player
    props: bool  # whether an even prop has the same drift; otherwise several times it


class TickChanges(NamedTuple):
    """Events of one time step, and how probabilities moved."""

    started: Longs
    ended: Longs
    scored: Longs
    refreshed: Longs  # events with new probabilities
    moved: Floats  # (refreshed, LADDERS): change in logits at the previous central line


def shares(cdf: Floats, quarters: Longs, origin: Longs | int) -> tuple[Floats, Floats]:
    """Return winning and losing shares at thresholds (..., lines); P(X <= k) is at k + origin of the last axis."""
    last = cdf.shape[-1] - 1

    def up_to(k: Longs) -> Floats:
        place = k + origin
        return np.where(place < 0, 0.0, np.take_along_axis(cdf, np.maximum(np.minimum(place, last), 0), -1))

    win, lose = np.zeros(quarters.shape), np.zeros(quarters.shape)
    for half in (quarters // 2, (quarters + 1) // 2):
        win += 0.5 * (1.0 - up_to(half // 2))
        lose += 0.5 * up_to((half + 1) // 2 - 1)
    return win, lose


class SimulatedGames:
    """All games of a world, as arrays over events.

    `league` are indices in `LEAGUES`, `start` seconds of world time, `pace` is the speed of games relative to real
    time. Without `news`, reports arrive one by one at the rate `SimulatedLeague.news`; otherwise in groups.
    """

    def __init__(
        self, league: Longs, start: Floats, rng: np.random.Generator, pace: float, news: News | None = None
    ) -> None:
        n = league.size
        self._rng = rng
        self.league = league
        self.start = start
        self.status = np.full(n, UPCOMING)
        self.clock = np.zeros(n)  # share of the game played
        self.score = np.zeros((n, _LANES), np.int64)  # points, including overtime
        self.part_score = np.zeros((n, 2), np.int64)
        self._speed = pace / (60.0 * self._of_league("minutes"))
        self._part = self._of_league("part")
        mean = self._means()
        prior, hourly = np.full((n, _LANES), PLAYER_PRIOR), np.full((n, _LANES), PLAYER_NEWS)
        prior[:, _TEAMS], hourly[:, _TEAMS] = self._of_league("prior")[:, None], self._of_league("news")[:, None]
        self._rate = rng.gamma(prior, mean / prior)
        self._alpha, self._beta = prior, prior / mean
        if news is not None:
            hourly *= (news.drift / self._of_league("drift")[:, None]) ** 2
            if news.props:
                prop = 1.6 * np.sqrt(PLAYER_NEWS * self._of_league("stat_mean")[:, None]) / PLAYER_PRIOR
                hourly[:, _PLAYERS] = PLAYER_NEWS * (news.drift / prop) ** 2
        self._news = news
        self._reports = hourly / mean / _HOUR  # exposure per second of reports
        grid = np.array([x.grid for x in LEAGUES])[league]
        self._step, self._base = grid[..., 0], grid[..., 1]
        self.centre = np.zeros((n, LADDERS), np.int64)
        self.win, self.lose = np.full((2, n, LADDERS, WIDTH), 0.5)  # of over, home; or outcomes
        self._renewed = np.full(n, -np.inf)
        self._laws: dict[int, Floats] = {}
        self._shares: dict[tuple[int, int, int], tuple[float, float]] = {}  # cache of `chances` until time advances
        self._now = 0.0

    def _of_league(self, field: str) -> Floats:
        return np.array([getattr(league, field) for league in LEAGUES], float)[self.league]

    def _means(self) -> Floats:
        """Return the expected jumps of every lane, before any information."""
        rng, n = self._rng, self.league.size
        mean = np.empty((n, _LANES))
        mean[:, 0], mean[:, 1] = self._of_league("home"), self._of_league("away")
        mean[:, _TEAMS] *= np.exp(rng.normal(0.0, 1.0, (n, 2)) * self._of_league("spread_of_strength")[:, None])
        mean[:, _PLAYERS] = self._of_league("stat_mean")[:, None] * np.exp(rng.normal(0.0, 0.25, (n, PLAYERS)))
        return mean

    # ---- time ----

    def advance(self, now: float, seconds: float) -> TickChanges:
        """Advance time to `now`: reports before games, scores during games."""
        self._now = now
        self._laws.clear()
        self._shares.clear()
        open_ = np.flatnonzero(self.status != ENDED)
        played = np.clip(now - self.start[open_], 0.0, seconds)
        reports = self._report(open_, seconds - played)
        begun = open_[(played > 0.0) & (self.status[open_] == UPCOMING)]
        self.status[begun] = LIVE
        live = np.flatnonzero(self.status == LIVE)
        scored, ended = self._play(live, np.clip(now - self.start[live], 0.0, seconds) * self._speed[live])
        old = open_[(self._renewed[open_] < now - _REFRESH) | reports]
        due = np.union1d(np.setdiff1d(old, ended), np.setdiff1d(live, ended))
        return TickChanges(begun, ended, scored, due, self._renew(due))

    def finish(self) -> None:
        self._laws.clear()
        self._shares.clear()
        open_ = np.flatnonzero(self.status != ENDED)
        self._play(open_, np.ones(open_.size))

    def _report(self, events: Longs, seconds: Floats) -> Bools:
        """Draw reports on upcoming games; return the events that had any."""
        exposure = self._reports[events] * seconds[:, None]
        if self._news is not None:
            span = np.maximum(seconds, self._news.every)[:, None]
            come = self._rng.random(exposure.shape) * span < seconds[:, None]
            exposure = np.where(come, self._reports[events] * span, 0.0)
        jumps = self._rng.poisson(self._rate[events] * exposure)
        self._alpha[events] += jumps
        self._beta[events] += exposure
        return np.asarray(jumps.any(axis=1))

    def _play(self, events: Longs, share: Floats) -> tuple[Longs, Longs]:
        """Play a share of some games; return the events with scores, and those that ended."""
        share = np.minimum(share, 1.0 - self.clock[events])
        first = np.clip(self._part[events] - self.clock[events], 0.0, share)
        scored = np.zeros(events.size, bool)
        for exposure, in_part in ((first, True), (share - first, False)):
            jumps = self._rng.poisson(self._rate[events] * exposure[:, None])
            points = self._points(events, jumps)
            self._alpha[events] += jumps
            self._beta[events] += exposure[:, None]
            self.score[events] += points
            if in_part:
                self.part_score[events] += points[:, _TEAMS]
            scored |= points[:, _TEAMS].any(axis=1)
        self.clock[events] += share
        ended = events[self.clock[events] >= 1.0 - _TINY]
        self.status[ended] = ENDED
        self._overtime(ended)
        return events[scored], ended

    def _points(self, events: Longs, jumps: Longs) -> Longs:
        """Return the points of jumps; players' statistics count one each."""
        points = jumps.copy()
        for place, league in enumerate(LEAGUES):
            if len(league.marks) > 1:
                rows = self.league[events] == place
                worth, share = zip(*league.marks, strict=True)
                points[rows, _TEAMS] = self._rng.multinomial(jumps[rows, _TEAMS], share) @ np.array(worth)
        return points

    def _overtime(self, events: Longs) -> None:
        """Decide games that cannot end level by a fair coin."""
        bonus = self._of_league("bonus").astype(np.int64)[events]
        level = (self.score[events, 0] == self.score[events, 1]) & (bonus > 0)
        winner = self._rng.integers(0, 2, events.size)
        self.score[events[level], winner[level]] += bonus[level]

    # ---- truth ----

    def quarters(self, events: Longs) -> Longs:
        """Return the thresholds of the ladders: (events, LADDERS, WIDTH), in quarters."""
        at = self.centre[events][..., None] + OFFSETS
        return np.asarray(self._base[events][..., None] + self._step[events][..., None] * at)

    def line_of(self, event: Longs, ladder: Longs, slot: Longs) -> Longs:
        """Return the thresholds of ladder positions, in quarters; 0 for a moneyline."""
        at = event, ladder
        line = self._base[at] + self._step[at] * (self.centre[at] + slot - CENTRE)
        return np.where(ladder == MONEYLINE, 0, line)

    def chances(self, event: int, ladder: int, side: int, quarters: int) -> Chances:
        """Return the chances of a bet now, or its result if the game has ended.

        `side` is 0 for over and home, 1 for under and away; for a moneyline 0, 1, 2 for home, draw, away.
        """
        if self.status[event] == ENDED:
            win, lose = self._outcome(event, ladder, quarters)
        else:
            key = event, ladder, quarters
            if key not in self._shares:
                self._shares[key] = self._expected(*key)
            win, lose = self._shares[key]
        if ladder == MONEYLINE:
            won = (win, 1.0 - win - lose, lose)[side]
            return Chances(won, 1.0 - won)
        return Chances(win, lose) if side == 0 else Chances(lose, win)

    def _expected(self, event: int, ladder: int, quarters: int) -> tuple[float, float]:
        if event not in self._laws:
            self._laws[event] = self._law(LEAGUES[self.league[event]], np.array([event]))[0]
        origin = self._laws[event].shape[-1] // 2 if ladder in {MONEYLINE, SPREAD} else 0
        win, lose = shares(self._laws[event][ladder], np.array([quarters]), origin)
        return float(win[0]), float(lose[0])

    def _outcome(self, event: int, ladder: int, quarters: int) -> tuple[float, float]:
        home, away = self.score[event, _TEAMS]
        of_game = {MONEYLINE: home - away, SPREAD: home - away, TOTAL: home + away, HOME_TOTAL: home, AWAY_TOTAL: away}
        of_game[PART_TOTAL] = self.part_score[event].sum()
        count = of_game[ladder] if ladder < FIRST_PROP else self.score[event, 2 + ladder - FIRST_PROP]
        halves = (quarters // 2, (quarters + 1) // 2)
        return sum(0.5 * (2 * count > h) for h in halves), sum(0.5 * (2 * count < h) for h in halves)

    def _law(self, league: SimulatedLeague, events: Longs) -> Floats:
        """Return P(X <= k) of what each ladder counts: (events, LADDERS, size); margins start at -size / 2."""
        size = league.size
        turn = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
        mark = sum(share * turn**points for points, share in league.marks)
        left = 1.0 - self.clock[events]
        part = np.clip(self._part[events] - self.clock[events], 0.0, None)

        def law(lanes: slice, jump: npt.NDArray[np.complex128], exposure: Floats) -> npt.NDArray[np.complex128]:
            alpha, beta = self._alpha[events, lanes, None], self._beta[events, lanes, None]
            return np.asarray(np.exp(-alpha * np.log1p(exposure[:, None, None] / beta * (1.0 - jump))))

        teams = law(_TEAMS, mark, left) * turn ** self.score[events, _TEAMS, None]
        pmf = np.empty((events.size, LADDERS, size))
        invert = np.fft.irfft
        pmf[:, SPREAD] = np.roll(invert(teams[:, 0] * teams[:, 1].conj(), size), size // 2, axis=-1)
        pmf[:, TOTAL] = invert(teams[:, 0] * teams[:, 1], size)
        pmf[:, HOME_TOTAL : AWAY_TOTAL + 1] = invert(teams, size)
        halves = law(_TEAMS, mark, part) * turn ** self.part_score[events, :, None]
        pmf[:, PART_TOTAL] = invert(halves[:, 0] * halves[:, 1], size)
        pmf[:, FIRST_PROP:] = invert(law(_PLAYERS, turn, left) * turn ** self.score[events, _PLAYERS, None], size)
        if league.bonus:
            _decide(pmf, league.bonus)
        pmf[:, MONEYLINE] = pmf[:, SPREAD]
        return np.cumsum(pmf, axis=-1)

    def _renew(self, events: Longs) -> Floats:
        """Recompute probabilities of some events, and move the centres of their ladders."""
        moved = np.zeros((events.size, LADDERS))
        self._renewed[events] = self._now
        for place, league in enumerate(LEAGUES):
            rows = np.flatnonzero(self.league[events] == place)
            if rows.size:
                moved[rows] = self._renew_league(league, events[rows])
        return moved

    def _renew_league(self, league: SimulatedLeague, events: Longs) -> Floats:
        cdf = self._law(league, events)
        origin = np.zeros((1, LADDERS, 1), np.int64)
        origin[:, : SPREAD + 1] = league.size // 2
        before = self._balance(events)
        self._show(events, cdf, origin)
        moved = self._balance(events) - before
        step, base = self._step[events][..., None], self._base[events][..., None]
        middle = (cdf < 0.5).sum(axis=-1, keepdims=True) - origin
        near = np.rint((4 * middle - base) / step).astype(np.int64) + OFFSETS
        near[:, TOTAL:] = np.maximum(near[:, TOTAL:], -((base - HALF_POINT) // step)[:, TOTAL:])
        off = np.abs(_weigh(*shares(cdf, base + step * near, origin)))
        best = off.argmin(axis=-1)[..., None]
        now = np.abs(_weigh(self.win[events], self.lose[events]))[..., CENTRE]
        go = now > np.take_along_axis(off, best, -1)[..., 0] + _STAY
        self.centre[events] = np.where(go, np.take_along_axis(near, best, -1)[..., 0], self.centre[events])
        self._show(events, cdf, origin)
        return moved

    def _show(self, events: Longs, cdf: Floats, origin: Longs) -> None:
        """Store winning and losing shares at the current lines."""
        win, lose = shares(cdf, self.quarters(events), origin)
        home, away = shares(cdf[:, MONEYLINE], np.zeros((events.size, 1), np.int64), origin[:, MONEYLINE])
        results = np.concatenate([home, 1.0 - home - away, away], axis=-1)
        win[:, MONEYLINE, :3], lose[:, MONEYLINE, :3] = results, 1.0 - results
        self.win[events], self.lose[events] = np.maximum(win, 0.0), np.maximum(lose, 0.0)

    def _balance(self, events: Longs) -> Floats:
        """Return the logit at the centre of each ladder; for a moneyline half of home's minus away's."""
        z = _weigh(self.win[events], self.lose[events])
        balance = z[..., CENTRE].copy()
        balance[:, MONEYLINE] = 0.5 * (z[:, MONEYLINE, 0] - z[:, MONEYLINE, 2])
        return balance


def _weigh(win: Floats, lose: Floats) -> Floats:
    """Return the logit at which a price is fair."""
    return np.asarray(np.log(np.maximum(win, _TINY)) - np.log(np.maximum(lose, _TINY)))


def _decide(pmf: Floats, bonus: int) -> None:
    """Remove level results and give the winner of the coin toss the bonus."""
    size = pmf.shape[-1]
    level = pmf[:, HOME_TOTAL] * pmf[:, AWAY_TOTAL]
    pmf[:, SPREAD, [size // 2 - bonus, size // 2 + bonus]] += 0.5 * pmf[:, SPREAD, size // 2, None]
    pmf[:, SPREAD, size // 2] = 0.0
    half = level[:, : (size - bonus) // 2]
    pmf[:, TOTAL, 0 : 2 * half.shape[-1] : 2] -= half
    pmf[:, TOTAL, bonus : bonus + 2 * half.shape[-1] : 2] += half
    for team in (HOME_TOTAL, AWAY_TOTAL):
        pmf[:, team] -= 0.5 * level
        pmf[:, team, bonus:] += 0.5 * level[:, :-bonus]
