"""The games behind the prices: scores that happen, and exactly what can be known of them before.

**Process.** Each team (and each player's statistic) is a lane that jumps at the times of a Poisson process whose rate
is drawn once from a Gamma law and never shown. Before the game *reports* come in, jumps of the same rate that do not
count; in the game the jumps score. All that is public about a rate is how many jumps a lane had, of either kind, over
how much exposure (1 is a whole game), so the rate given all that is public is

    Gamma(alpha, beta),   alpha = prior + jumps,   beta = prior / mean + exposure

and the points still to come over the exposure r have the generating function

    (1 + (r / beta) (1 - F(z)))^(-alpha),      F(z) = sum of share_j z^points_j over the marks of a jump.

**So every probability is exact and honest.** The law of the final score is this function times z^score, and what an
observer is told at any moment is a martingale by construction. Sums and differences of two teams are products of their
functions; one inverse Fourier transform on `League.size` points turns them into probabilities (the mass that wraps
around is negligible). A game that may not end level is then decided by a fair coin: the winner adds the bonus.

**Lines** are counted in quarters. A bet at threshold t wins if the score (home's margin for spreads) is above t; a
quarter line stands half on each neighbour. `win` and `lose` are the shares of a stake that win and lose, in
expectation: a price d returns win (d - 1) - lose, and d is fair at p = win / (win + lose).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine.groups import Floats, Longs
from oddsengine.simulate.leagues import (
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
    League,
)

Bools = npt.NDArray[np.bool_]
UPCOMING, LIVE, ENDED = range(3)
WIDTH = 5
"""Lines of a ladder that any book shows: its centre, and two on each side."""
CENTRE = WIDTH // 2
OFFSETS = np.arange(WIDTH) - CENTRE
HALF_POINT = 2  # the lowest line of anything that is counted
_HOUR = 3600.0
_REFRESH = 30.0  # s: without reports the probabilities of a game to come drift this long before they are renewed
_STAY = 0.08  # logit: the centre of a ladder moves when another line is balanced better by more
_TINY = 1e-9
_TEAMS = slice(0, 2)
_PLAYERS = slice(2, 2 + PLAYERS)
_LANES = 2 + PLAYERS


class Chances(NamedTuple):
    """Shares of a stake that win and that lose, in expectation; the rest is returned."""

    win: float
    lose: float

    @property
    def prob(self) -> float:
        """The probability at which a price is fair: of winning, given that the stake is not returned."""
        return self.win / (self.win + self.lose)

    def returns(self, odds: float) -> float:
        """Profit on a stake of 1 at decimal odds."""
        return self.win * (odds - 1.0) - self.lose


class News(NamedTuple):
    """How news of games to come arrives: all reports of `every` seconds together, at random times."""

    drift: float  # logits: standard deviation of what an hour does to an even moneyline
    every: float  # s, the mean between two of them, for each team and player


class Change(NamedTuple):
    """What some time did to the games: events, and how the probabilities moved."""

    started: Longs
    ended: Longs
    scored: Longs
    refreshed: Longs  # whose probabilities were computed anew
    moved: Floats  # (refreshed, LADDERS): by how much, in logits at the line that was the centre


def shares(cdf: Floats, quarters: Longs, origin: Longs | int) -> tuple[Floats, Floats]:
    """What wins and loses at thresholds (..., lines), where P(X <= k) stands at k + origin of the last axis."""
    last = cdf.shape[-1] - 1

    def up_to(k: Longs) -> Floats:
        place = k + origin
        return np.where(place < 0, 0.0, np.take_along_axis(cdf, np.clip(place, 0, last), -1))

    win, lose = np.zeros(quarters.shape), np.zeros(quarters.shape)
    for half in (quarters // 2, (quarters + 1) // 2):
        win += 0.5 * (1.0 - up_to(half // 2))
        lose += 0.5 * up_to((half + 1) // 2 - 1)
    return win, lose


class Games:
    """Every game of a world, as arrays over events.

    Parameters
    ----------
    league
        Places in `LEAGUES`, an event each.
    start
        When each begins, in seconds of the world's time.
    rng
        The only source of chance.
    pace
        How many times faster than in life a game runs.
    news
        None: reports trickle in, as often as `League.news` says. Otherwise many come at once, now and then.
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
        self.score = np.zeros((n, _LANES), np.int64)  # points, after overtime where there was one
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
        self._news = news
        self._reports = hourly / mean / _HOUR  # exposure that a second of reports is worth
        grid = np.array([x.grid for x in LEAGUES])[league]
        self._step, self._base = grid[..., 0], grid[..., 1]
        self.centre = np.zeros((n, LADDERS), np.int64)
        self.win, self.lose = np.full((2, n, LADDERS, WIDTH), 0.5)  # of over, home; a moneyline has its outcomes there
        self._renewed = np.full(n, -np.inf)
        self._laws: dict[int, Floats] = {}
        self._shares: dict[tuple[int, int, int], tuple[float, float]] = {}  # of `chances`, while no time passes
        self._now = 0.0

    def _of_league(self, field: str) -> Floats:
        return np.array([getattr(league, field) for league in LEAGUES], float)[self.league]

    def _means(self) -> Floats:
        """Expected jumps of every lane, before anything is known."""
        rng, n = self._rng, self.league.size
        mean = np.empty((n, _LANES))
        mean[:, 0], mean[:, 1] = self._of_league("home"), self._of_league("away")
        mean[:, _TEAMS] *= np.exp(rng.normal(0.0, 1.0, (n, 2)) * self._of_league("spread_of_strength")[:, None])
        mean[:, _PLAYERS] = self._of_league("stat_mean")[:, None] * np.exp(rng.normal(0.0, 0.25, (n, PLAYERS)))
        return mean

    # ---- time ----

    def advance(self, now: float, seconds: float) -> Change:
        """Let time pass until `now`: reports before the games, scores in them."""
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
        return Change(begun, ended, scored, due, self._renew(due))

    def finish(self) -> None:
        """Play every game to its end at once."""
        self._laws.clear()
        self._shares.clear()
        open_ = np.flatnonzero(self.status != ENDED)
        self._play(open_, np.ones(open_.size))

    def _report(self, events: Longs, seconds: Floats) -> Bools:
        """Reports on the games to come; tells which events had any."""
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
        """Play a share of some games; tells who scored, and whose game ended."""
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
        """What the jumps are worth; a player's count one each."""
        points = jumps.copy()
        for place, league in enumerate(LEAGUES):
            if len(league.marks) > 1:
                rows = self.league[events] == place
                worth, share = zip(*league.marks, strict=True)
                points[rows, _TEAMS] = self._rng.multinomial(jumps[rows, _TEAMS], share) @ np.array(worth)
        return points

    def _overtime(self, events: Longs) -> None:
        """A fair coin decides a game that may not end level."""
        bonus = self._of_league("bonus").astype(np.int64)[events]
        level = (self.score[events, 0] == self.score[events, 1]) & (bonus > 0)
        winner = self._rng.integers(0, 2, events.size)
        self.score[events[level], winner[level]] += bonus[level]

    # ---- what is true ----

    def quarters(self, events: Longs) -> Longs:
        """The thresholds that stand on the ladders: (events, LADDERS, WIDTH), in quarters."""
        at = self.centre[events][..., None] + OFFSETS
        return np.asarray(self._base[events][..., None] + self._step[events][..., None] * at)

    def line_of(self, event: Longs, ladder: Longs, slot: Longs) -> Longs:
        """The threshold, in quarters, of places on the ladders; 0 on a moneyline."""
        at = event, ladder
        line = self._base[at] + self._step[at] * (self.centre[at] + slot - CENTRE)
        return np.where(ladder == MONEYLINE, 0, line)

    def chances(self, event: int, ladder: int, side: int, quarters: int) -> Chances:
        """What a bet may expect now, or what became of it if the game has ended.

        `side` is 0 for over and home, 1 for under and away; of a moneyline 0, 1, 2 for home, draw, away.
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

    def _law(self, league: League, events: Longs) -> Floats:
        """P(X <= k) for what each ladder counts: (events, LADDERS, size); margins begin at -size / 2."""
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
        """Compute the probabilities of some events anew, and move the centres of their ladders."""
        moved = np.zeros((events.size, LADDERS))
        self._renewed[events] = self._now
        for place, league in enumerate(LEAGUES):
            rows = np.flatnonzero(self.league[events] == place)
            if rows.size:
                moved[rows] = self._renew_league(league, events[rows])
        return moved

    def _renew_league(self, league: League, events: Longs) -> Floats:
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
        """Write what wins and loses at the lines that stand now."""
        win, lose = shares(cdf, self.quarters(events), origin)
        home, away = shares(cdf[:, MONEYLINE], np.zeros((events.size, 1), np.int64), origin[:, MONEYLINE])
        results = np.concatenate([home, 1.0 - home - away, away], axis=-1)
        win[:, MONEYLINE, :3], lose[:, MONEYLINE, :3] = results, 1.0 - results
        self.win[events], self.lose[events] = np.maximum(win, 0.0), np.maximum(lose, 0.0)

    def _balance(self, events: Longs) -> Floats:
        """Where the ladders stand: the logit at their centres; of a moneyline half of home's less away's."""
        z = _weigh(self.win[events], self.lose[events])
        balance = z[..., CENTRE].copy()
        balance[:, MONEYLINE] = 0.5 * (z[:, MONEYLINE, 0] - z[:, MONEYLINE, 2])
        return balance


def _weigh(win: Floats, lose: Floats) -> Floats:
    """The logit at which a price is fair."""
    return np.asarray(np.log(np.maximum(win, _TINY)) - np.log(np.maximum(lose, _TINY)))


def _decide(pmf: Floats, bonus: int) -> None:
    """Take the games that end level out, and give the coin's winner the bonus."""
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
