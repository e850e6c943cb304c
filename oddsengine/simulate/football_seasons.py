"""Simulated football seasons in the format of football-data.co.uk, with the true chances behind every price.

**Goals.** A team's scoring rate is drawn from a Gamma distribution per match and never shown. Its mean is

    base_side exp(attack - defence of the other side)

Public information consists of reports, jumps of the same rate that do not count: some exposure before prices are
collected, more before the start. With n reports over exposure e, the rate is Gamma(prior + n, prior / mean + e) and
goals are negative binomial. Chances are a martingale: early chances are the mean of closing chances. Both are exact and
part of `Season.truth`. Nobody knows more than the closing chances.

**Prices.** A book's opinion at either time is, in log chances of each outcome, then scaled to sum to 1,

    log p + stale (log p_early - log p) + noise

The sharp book has little noise and no stale part. The margin is applied as a power, p^k, which the method `power`
inverts. Prices are truncated to hundredths. Books are sometimes missing for a match.

**Columns** are those of the seasons since 2019/20, in order, without referee and match statistics. `Max` and `Avg` are
over the books in the file (in real files over many more). Totals are at 2.5 goals, handicaps at the quarter line
closest to even. Early prices are those of Friday or Tuesday, closing ones have a `C`.
"""

import csv
import io
from collections.abc import Iterator
from datetime import date, timedelta
from math import isnan
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine.columns import Floats, Longs
from oddsengine.simulate.simulated_books import quoted
from oddsengine.simulate.simulated_games import shares

TEAMS = (
    "Arsenal", "Aston Villa", "Bournemouth", "Brentford", "Brighton", "Burnley", "Chelsea", "Crystal Palace", "Everton",
    "Fulham", "Leeds", "Liverpool", "Man City", "Man United", "Newcastle", "Nott'm Forest", "Sunderland", "Tottenham",
    "West Ham", "Wolves",
)  # fmt: skip
_DIVISION = "E0"
_GOALS = 1.55, 1.25  # home and away, between equal teams
_SPREAD = 0.33  # standard deviation of attack and defence, in log goals
_CARRIED_OVER = 0.8  # share of a team's strength carried to the next season
_PRIOR = 45.0  # prior weight of the mean rate, in goals
_REPORTS = 15.0, 9.0  # exposure in matches: until prices are collected, and from then to the start
_FIRST_HALF = 0.45  # share of goals
_MOST = 24  # maximum goals of a team
_MISSING = 0.01
_HANDICAPS = np.arange(-14, 15)  # home margin to beat, in quarters
_TOTAL = 10  # 2.5 goals, in quarters
_TRUTH = {
    "event_id": pl.String, "market_type": pl.String, "selection_type": pl.String, "line": pl.Float64,
    "closing": pl.Boolean, "win": pl.Float64, "lose": pl.Float64,
}  # fmt: skip
# Days after the weekend's Saturday, and London time.
_WEEKEND = (
    (-1, "20:00"), (0, "12:30"), (0, "15:00"), (0, "15:00"), (0, "15:00"), (0, "15:00"), (0, "17:30"), (1, "14:00"),
    (1, "14:00"), (1, "16:30"),
)  # fmt: skip
_MIDWEEK = ((3, "19:45"), (3, "19:45"), (3, "19:45"), (3, "20:00"), (3, "20:15"), *[(4, "20:00")] * 5)
_EVERY = 9  # every n-th round is midweek
_PAUSE = 8  # rounds between free weekends


class _Book(NamedTuple):
    """Parameters of a column prefix; `noise` and `margin` before the match and at its start."""

    code: str
    other: str | None  # prefix on totals and handicaps; None: no such columns
    margin: tuple[float, float]
    noise: tuple[float, float]
    stale: float


_BOOKS = (
    _Book("B365", "B365", (0.054, 0.052), (0.040, 0.028), 0.15),
    _Book("BW", None, (0.058, 0.056), (0.048, 0.034), 0.30),
    _Book("IW", None, (0.064, 0.062), (0.052, 0.040), 0.45),
    _Book("PS", "P", (0.027, 0.025), (0.015, 0.006), 0.0),
    _Book("WH", None, (0.060, 0.058), (0.048, 0.034), 0.25),
    _Book("VC", None, (0.056, 0.055), (0.044, 0.032), 0.20),
)


class _SimulatedMarket(NamedTuple):
    """Outcomes of one market in every match, at one time."""

    name: str
    sides: tuple[str, ...]
    line: Floats  # of the first side; nan for none
    win: Floats  # (matches, outcomes): shares of a stake
    lose: Floats


class Season(NamedTuple):
    """A generated file and the truth behind it."""

    name: str  # 2024/25
    data: bytes  # the CSV file
    truth: pl.DataFrame
    """One row per outcome and time (`closing` or not): expected shares of a stake that win and lose, given the public
    information at that time. A price is fair at p = win / (win + lose)."""


def seasons(seed: int, count: int = 1, first: int = 2020) -> Iterator[Season]:
    """Generate consecutive seasons of one league with drifting team strengths.

    Parameters
    ----------
    seed
        The same seed gives the same bytes; a longer run starts with the shorter one.
    count
        Number of seasons.
    first
        Year in which the first season begins.

    Examples
    --------
    >>> season = next(seasons(1))
    >>> season.name, season.data.decode().splitlines()[1].split(",")[:8]
    ('2020/21', ['E0', '14/08/2020', '20:00', 'West Ham', 'Chelsea', '1', '1', 'D'])
    """
    if count < 0:
        raise ValueError(f"count must be 0 or more, got {count}")
    rng = np.random.default_rng(seed)
    strength = rng.normal(0.0, _SPREAD, (2, len(TEAMS)))
    for year in range(first, first + count):
        yield _season(year, strength, rng)
        strength = _CARRIED_OVER * strength + (1.0 - _CARRIED_OVER**2) ** 0.5 * rng.normal(0.0, _SPREAD, strength.shape)


def _season(year: int, strength: Floats, rng: np.random.Generator) -> Season:
    home, away, days, times = _fixtures(year, rng)
    attack, defence = strength
    means = np.exp(np.stack([attack[home] - defence[away], attack[away] - defence[home]])) * np.array(_GOALS)[:, None]
    rate = rng.gamma(_PRIOR, means / _PRIOR)
    alpha, beta = np.full(means.shape, _PRIOR), _PRIOR / means
    markets = []
    for exposure in _REPORTS:
        alpha, beta = alpha + rng.poisson(rate * exposure), beta + exposure
        markets.append(_markets(_goals(alpha, beta)))
    goals = np.minimum(rng.poisson(rate), _MOST - 1)
    half = rng.binomial(goals, _FIRST_HALF)
    columns: dict[str, list[str]] = {
        "Div": [_DIVISION] * home.size,
        "Date": [f"{day:%d/%m/%Y}" for day in days],
        "Time": times,
        "HomeTeam": [TEAMS[at] for at in home.tolist()],
        "AwayTeam": [TEAMS[at] for at in away.tolist()],
    }
    for prefix, (home_goals, away_goals) in (("FT", goals), ("HT", half)):
        columns[f"{prefix}HG"], columns[f"{prefix}AG"] = _texts(home_goals, 0), _texts(away_goals, 0)
        columns[f"{prefix}R"] = ["DHA"[sign] for sign in np.sign(home_goals - away_goals).tolist()]
    for closing in (False, True):
        columns |= _prices(markets[0], markets[closing], rng, closing=closing)
    event = [
        f"{_DIVISION}/{day.isoformat()}/{host}/{guest}"
        for day, host, guest in zip(days, columns["HomeTeam"], columns["AwayTeam"], strict=True)
    ]
    truth = pl.concat(
        [_truth(event, market, closing=closing) for closing in (False, True) for market in markets[closing]]
    )
    return Season(f"{year}/{(year + 1) % 100:02}", _file(columns), truth)


def _fixtures(year: int, rng: np.random.Generator) -> tuple[Longs, Longs, list[date], list[str]]:
    """Schedule a double round robin: teams, days and times, in order of time."""
    teams = len(TEAMS)
    order = rng.permutation(teams)
    august = date(year, 8, 10)
    saturday = august + timedelta(days=(5 - august.weekday()) % 7)
    played: list[tuple[date, str, int, int]] = []
    weekend = -1
    for number in range(2 * (teams - 1)):
        midweek = number % _EVERY == _EVERY - 1
        weekend += 0 if midweek else 2 if number % _PAUSE == _PAUSE - 1 else 1
        ring = [order[0], *np.roll(order[1:], number % (teams - 1))]  # circle method
        pairs = list(zip(ring[: teams // 2], ring[: teams // 2 - 1 : -1], strict=True))
        swap = number >= teams - 1
        for at, slot in enumerate(rng.permutation(len(pairs)).tolist()):
            after, clock = (_MIDWEEK if midweek else _WEEKEND)[slot]
            host, guest = pairs[at] if (at + number % (teams - 1)) % 2 == swap else pairs[at][::-1]
            played.append((saturday + timedelta(days=7 * weekend + after), clock, int(host), int(guest)))
    played.sort()
    days, times, hosts, guests = (list(column) for column in zip(*played, strict=True))
    return np.array(hosts), np.array(guests), days, times


def _goals(alpha: Floats, beta: Floats) -> Floats:
    """Return chances (2, matches, goals) of negative binomial goals."""
    chance = np.empty((*alpha.shape, _MOST))
    chance[..., 0] = (beta / (beta + 1.0)) ** alpha
    for goals in range(1, _MOST):
        chance[..., goals] = chance[..., goals - 1] * (alpha + goals - 1.0) / (goals * (beta + 1.0))
    return np.asarray(chance / chance.sum(-1, keepdims=True))


def _markets(goals: Floats) -> list[_SimulatedMarket]:
    """Return result, total and handicap of every match."""
    home, away = goals
    matches = home.shape[0]
    total, margin = np.zeros((2, matches, 2 * _MOST - 1))
    for scored in range(_MOST):  # by the home team
        total[:, scored : scored + _MOST] += home[:, scored, None] * away
        margin[:, scored : scored + _MOST] += home[:, scored, None] * away[:, ::-1]
    level = _MOST - 1  # index of a margin of 0
    result = np.stack([margin[:, level + 1 :].sum(-1), margin[:, level], margin[:, :level].sum(-1)], -1)
    over, under = shares(total.cumsum(-1), np.full((matches, 1), _TOTAL), 0)
    win, lose = shares(margin.cumsum(-1), np.broadcast_to(_HANDICAPS, (matches, _HANDICAPS.size)), level)
    even = np.abs(win - lose).argmin(-1)
    win, lose = (np.take_along_axis(share, even[:, None], -1) for share in (win, lose))
    totals = np.hstack([over, under]), np.hstack([under, over])
    handicaps = np.hstack([win, lose]), np.hstack([lose, win])
    return [
        _SimulatedMarket("moneyline_3way", ("home", "draw", "away"), np.full(matches, np.nan), result, 1.0 - result),
        _SimulatedMarket("total_goals", ("over", "under"), np.full(matches, _TOTAL / 4.0), *totals),
        _SimulatedMarket("asian_handicap", ("home", "away"), 0.0 - _HANDICAPS[even] / 4.0, *handicaps),
    ]


def _prices(
    early: list[_SimulatedMarket], now: list[_SimulatedMarket], rng: np.random.Generator, *, closing: bool
) -> dict[str, list[str]]:
    """Return the price columns of one collection time."""
    mark = "C" if closing else ""
    columns: dict[str, list[str]] = {}
    listed = rng.random((len(_BOOKS), now[0].line.size)) >= _MISSING
    for before, market, names in zip(early, now, (("H", "D", "A"), (">2.5", "<2.5"), ("AHH", "AHA")), strict=True):
        handicap = market.name == "asian_handicap"
        if handicap:
            columns[f"AH{mark}h"] = _texts(market.line, 2)
            before = market  # the early chances may be about another line  # noqa: PLW2901
        texts = {}
        for book, has in zip(_BOOKS, listed, strict=True):
            prefix = book.code if market.name == "moneyline_3way" else book.other
            if prefix is not None:
                texts[prefix] = np.where(has[:, None], _odds(book, before, market, rng, closing=closing), np.nan)
        table = np.ma.masked_invalid(np.stack(list(texts.values())))
        texts |= {"Max": table.max(0).filled(np.nan), "Avg": table.mean(0).filled(np.nan)}
        for prefix, odds in texts.items():
            columns |= {f"{prefix}{mark}{name}": _texts(odds[:, at], 2) for at, name in enumerate(names)}
    return columns


def _odds(
    book: _Book, before: _SimulatedMarket, now: _SimulatedMarket, rng: np.random.Generator, *, closing: bool
) -> Floats:
    """Return a book's odds, (matches, outcomes)."""
    old, new = (np.log(market.win / (market.win + market.lose)) for market in (before, now))
    chance = np.exp(new + book.stale * (old - new) + rng.normal(0.0, book.noise[closing], new.shape))
    chance /= chance.sum(-1, keepdims=True)
    matches, outcomes = chance.shape
    margin = np.full(matches, book.margin[closing])
    odds = quoted(chance.ravel(), np.repeat(np.arange(matches), outcomes), margin)
    return np.maximum(np.rint(odds.reshape(chance.shape) * 100.0) / 100.0, 1.01)


def _truth(event: list[str], market: _SimulatedMarket, *, closing: bool) -> pl.DataFrame:
    """Return the true chances of a market, one row per outcome."""
    frames = []
    for at, side in enumerate(market.sides):
        line = -market.line if side == "away" else market.line
        frames.append(
            pl.DataFrame(
                {
                    "event_id": event, "market_type": market.name, "selection_type": side,
                    "line": pl.Series(line + 0.0).fill_nan(None), "closing": closing, "win": market.win[:, at],
                    "lose": market.lose[:, at],
                },
                schema=_TRUTH,
            )
        )  # fmt: skip
    return pl.concat(frames)


def _texts(column: Floats | Longs, digits: int) -> list[str]:
    return ["" if isnan(x) else f"{x:.{digits}f}" for x in column.tolist()]


def _file(columns: dict[str, list[str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()
