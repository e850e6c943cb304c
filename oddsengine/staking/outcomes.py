"""Joint outcomes of bets: the scenarios of each game, their probabilities, and the gain of each bet in them.

**One game, one score.** Moneyline, spread, total and team totals of a full game are functions of its margin M and total
T, so bets on them are correlated. Their joint distribution starts from the catalog's distributions for the sport, which
`tails` uses without a ladder of prices:

- Counts (soccer, hockey, baseball): the teams' scores are independent, Poisson or negative binomial, with the mean of
  the total, and the difference of the means, that fit the bets' own probabilities. A game that cannot end level is
  continued by one score, for each side in proportion to its probability of being ahead.
- Points (football, basketball and the like): margin and total are independent, with the shapes of `distributions`.

The distribution is then changed as little as possible, in relative entropy, such that every bet wins with its own fair
probability (given no push): scenario c has the weight w_c exp(sum over markets of lambda_m f_mc), where f_m has mean 0
exactly if market m is fair, and lambda minimises the log of the sum of weights, by Newton's method. The few bets of a
game partition its scores into few blocks with equal gains; those are the scenarios.

**Other markets** are separate: lines of one ladder (a player's points, corners) are functions of one number, and
outcomes without a line are exclusive. Markets of one game that are not functions of its score are treated as
independent of it and of each other, as are periods. If they are in fact correlated, stakes are too large.

**Unknown markets.** A bet whose market or outcome cannot be identified may include another, such as a double chance or
a top-ten finish, and a sport without a score distribution in the catalog has no joint distribution. Such bets of a game
are made to win and lose together as far as their markets allow: the scenarios of each market, most profitable first,
are coupled through one number. So none of them hedges another, and they share one stake.

Bets on one outcome at several books share its mean fair probability. If bets contradict each other, for example if the
higher of two totals is more likely, the weights are a compromise.

References: S. Kullback, "Probability densities with given marginals", Annals of Mathematical Statistics 39 (1968),
https://doi.org/10.1214/aoms/1177698249; I. Csiszar, "I-divergence geometry of probability distributions and
minimization problems", Annals of Probability 3 (1975), https://doi.org/10.1214/aop/1176996454.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from oddsengine import catalog
from oddsengine._jit import allocating, kernel
from oddsengine.catalog.reasons import CODES, GUARDS
from oddsengine.columns import Floats, Ints, Longs
from oddsengine.identity.table_identity import Identity, identify
from oddsengine.maths import distributions
from oddsengine.maths.shape_fitting import fit
from oddsengine.staking.portfolio import shrink
from oddsengine.tables.schema import OddsError, OddsTable

_COUNTS = ("poisson", "negative_binomial", "skellam")
_USUAL_TOTAL = {"soccer": 2.7, "hockey": 6.1, "baseball": 8.8, "futsal": 6.5}  # if no bet implies it
_SPREADS = 7.0  # range of scores, in standard deviations
_RIDGE = 1e-9  # regularises contradictory bets
_NEWTON = 60
_MIX = np.uint64(0x9E3779B97F4A7C15)
_FAR = 40.0  # maximum change of a weight's exponent per step
_SAME = 1e-10  # gradient at which Newton's method ends
_GAINED = 1e-9  # or the gain of a shortened step


@cache
def _shape(*values: Any) -> distributions.Shapes:
    """Return a cached `distributions.Shapes.of`."""
    return distributions.Shapes.of(*values)


def _margin_shape(scores: catalog.ScoreShapes, level: float) -> distributions.Shapes:
    """Return the shape of a margin of points."""
    assert scores.margin is not None
    weights = ((1.0, *(scores.key_weights if scores.margin.name == "normal_key" else ())),)
    return _shape(distributions.MARGIN, scores.margin.sd, level, 0, weights)


class Factor(NamedTuple):
    """Independent scenarios, and their effect on bets."""

    prob: Floats
    share: Floats  # (scenarios, bets), from -1 to 1
    bets: Longs
    law: str = ""  # what the bets depend on: "score", "number" (several lines), "outcome" (one market), or "unknown"


def factors(table: OddsTable, prob: Floats, error: Floats, odds: Floats) -> list[Factor]:
    """Split the bets of a table of prices, one per row, into independent factors.

    By bet, `prob` is the fair probability given no push, `error` its standard error (nan: none), and `odds` the price
    after commission.
    """
    identity = identify(table, frozenset(CODES[name] for name in GUARDS))
    g = identity.groups
    place = np.full(table.height, -1)
    place[g.row] = np.arange(g.row.size)
    keys: dict[tuple[object, ...], list[int]] = {}
    folded = [pl.col(name).str.strip_chars().str.to_lowercase() for name in ("market_type", "selection", "player_name")]
    unread = table.select("event_id", *folded, "line", "market_segment").rows()
    scored: dict[int, bool] = {}
    for bet, at in enumerate(place.tolist()):
        if at < 0:
            key: tuple[object, ...] = ("text", *unread[bet])
        else:
            ladder = int(g.ladder[g.market[at]])
            if ladder not in scored:
                scored[ladder] = _on_score(identity, ladder)
            key = ("score", int(g.event[ladder])) if scored[ladder] else ("ladder", ladder)
        keys.setdefault(key, []).append(bet)
    texts = {key: at for at, key in enumerate(key for key in keys if key[0] == "text")}
    market, side = np.zeros(table.height, np.int64), np.zeros(table.height, np.int64)
    read = place >= 0
    market[read], side[read] = g.market[place[read]], g.side[place[read]]
    for key, at in texts.items():
        market[keys[key]] = g.threshold.size + at
    outcomes = np.append(g.outcomes, np.full(len(texts), 2))
    targets = _targets(market, side, outcomes, prob, error, odds)
    made: list[Factor] = []
    tied: dict[str, list[Factor]] = {}  # of events with unknown bets
    of_event: dict[str, Factor] = {}
    for key, members in keys.items():
        bets, event_id = np.array(members), unread[members[0]][0]
        if key[0] == "text":
            factor = _exclusive(targets[market[bets[0]]], side[bets], bets, 2)
            tied.setdefault(event_id, []).append(factor._replace(law="unknown"))
            continue
        ladder = int(g.ladder[market[members[0]]])
        kind = identity.kinds[g.kind[ladder]]
        law = "score" if key[0] == "score" else "number" if kind.has_line else "outcome"
        factor = _of_markets(identity, place[bets], bets, targets)._replace(law=law)
        if key[0] == "score":
            of_event[event_id] = factor
        elif _has_law(identity, ladder):
            made.append(factor)
        else:
            tied.setdefault(event_id, []).append(factor)
    for event_id, factor in of_event.items():
        if event_id in tied:
            tied[event_id].append(factor)
        else:
            made.append(factor)
    return made + [_coupled(parts, odds) if len(parts) > 1 else parts[0] for parts in tied.values()]


def _coupled(parts: list[Factor], odds: Floats) -> Factor:
    """Couple factors with unknown correlation, such that their most profitable scenarios coincide."""
    order = [np.argsort(-profits(part.share, odds[part.bets]).sum(axis=1), kind="stable") for part in parts]
    ends = [np.cumsum(part.prob[by]) for part, by in zip(parts, order, strict=True)]
    marks = np.unique(np.concatenate([*ends, [0.0, 1.0]]).clip(0.0, 1.0))
    marks = marks[np.append(np.diff(marks) > _SAME, True)]  # merge values that differ by rounding only
    marks[0] = 0.0
    middles = 0.5 * (marks[1:] + marks[:-1])
    share = [
        part.share[by[np.minimum(np.searchsorted(end, middles), by.size - 1)]]
        for part, by, end in zip(parts, order, ends, strict=True)
    ]
    mass = np.diff(marks)
    whole = _gathered(mass / mass.sum(), np.concatenate(share, axis=1), np.concatenate([part.bets for part in parts]))
    return whole._replace(law="unknown")


def profits(share: Floats, odds: Floats) -> Floats:
    """Return the profit per unit staked, from the share of the stake won or lost."""
    return np.asarray(np.where(share > 0.0, share * (odds - 1.0), share))


def _has_law(identity: Identity, ladder: int) -> bool:
    """Whether the catalog has a score distribution for a ladder's sport."""
    sport, league = identity.sports[identity.groups.event[ladder]]
    scores = sport.scores_in(league)
    return scores.margin is not None and scores.total is not None


def _on_score(identity: Identity, ladder: int) -> bool:
    g = identity.groups
    kind = identity.kinds[g.kind[ladder]]
    return _scored(kind.family, kind.period, *identity.sports[g.event[ladder]])


def _scored(family: str, period: str, sport: catalog.Sport, league: str) -> bool:
    """Whether markets of a family are functions of the final score."""
    scores = sport.scores_in(league)
    if period != catalog.FULL_GAME or scores.margin is None or scores.total is None:
        return False
    if family in ("spread", "moneyline", "total"):
        return True
    counts = scores.total.name in _COUNTS
    if family in ("moneyline_3way", "moneyline_regulation"):
        return counts or sport.level is None
    return counts and family in ("team_total", "both_teams_to_score", "odd_even")


def _targets(
    market: Longs, side: Longs, outcomes: Longs, prob: Floats, error: Floats, odds: Floats
) -> list[dict[int, float]]:
    """Return target probabilities of each market by outcome, shrunk by their errors.

    Bets on one outcome at several prices have its mean probability and error, and the best price. If all outcomes are
    bet on, the probabilities sum to 1. `outcomes` is the number of outcomes by market; the others are by bet.
    """
    width = int(outcomes.max(initial=1)) + 1  # the last column is the rest
    cell, n = market * width + side, outcomes.size * width
    count, certain = np.bincount(cell, minlength=n), ~np.isnan(error)
    with np.errstate(invalid="ignore"):
        p = np.nan_to_num(np.bincount(cell, prob, n) / count).reshape(-1, width)
        e = np.bincount(cell[certain], error[certain], n) / np.bincount(cell[certain], minlength=n)
    best = np.zeros(n)
    np.maximum.at(best, cell, odds)
    bet = (count > 0).reshape(-1, width)
    total, whole = p.sum(axis=1), bet.sum(axis=1) == outcomes
    for m in np.flatnonzero(~whole & (total >= 1.0)).tolist():
        raise OddsError(
            f"fair_probability of {bet[m].sum()} of the {outcomes[m]} outcomes of a market must sum to less than 1, "
            f"got {' + '.join(f'{x:.4g}' for x in p[m][bet[m]].tolist())}"
        )
    p[whole] /= total[whole, None]
    p[~whole, -1] = 1.0 - total[~whole]
    p = shrink(p, np.where(bet, best.reshape(-1, width), np.nan), e.reshape(-1, width))
    return [
        {at: x for at, (x, certain) in enumerate(zip(*row, strict=True)) if certain}
        for row in zip(p.tolist(), bet.tolist(), strict=True)
    ]


def _exclusive(targets: Mapping[int, float], codes: Ints | Longs, bets: Longs, outcomes: int) -> Factor:
    """Return the scenarios of exclusive outcomes, and the rest."""
    p = np.zeros(outcomes)
    p[list(targets)] = list(targets.values())
    missing = np.setdiff1d(np.arange(outcomes), list(targets))
    p[missing] = max(0.0, 1.0 - p.sum()) / max(missing.size, 1)
    share = np.where(np.arange(outcomes)[:, None] == codes[None, :], 1.0, -1.0)
    return _gathered(p / p.sum(), share, bets)


def _gathered(p: Floats, share: Floats, bets: Longs) -> Factor:
    """Merge scenarios with equal gains for all bets."""
    first, of = _alike(share.T)
    mass = np.bincount(of, p, first.size)
    return Factor(mass / mass.sum(), share[first], bets)


def _alike(table: Floats) -> tuple[Longs, Longs]:
    """Return the first of each distinct column of a table of shares, and the group of each column."""
    factor = _MIX ** np.arange(1, table.shape[0] + 1, dtype=np.uint64)
    codes = np.rint(table * 1e4).astype(np.int64).view(np.uint64)  # lines are in hundredths
    _, first, of = np.unique(factor @ codes, return_index=True, return_inverse=True)
    return first, of.reshape(-1)


def _of_markets(
    identity: Identity,
    rows: Longs,
    bets: Longs,
    targets: Sequence[Mapping[int, float]],
) -> Factor:
    """Return the scenarios of bets on one game's score, or on one ladder."""
    g = identity.groups
    markets = g.market[rows]
    side = g.side[rows].astype(np.int64)
    ladder = g.ladder[markets]
    by_market = {m: targets[m] for m in sorted(set(markets.tolist()))}
    kind = identity.kinds[g.kind[ladder[0]]]
    on_score = _on_score(identity, int(ladder[0]))
    if not on_score and not kind.has_line:
        return _exclusive(targets[markets[0]], side, bets, len(kind.outcomes))
    if on_score:
        weight, share = _score_lays(identity, by_market)
    else:
        weight, share = _ladder_lays(identity, by_market)
    places = {m: at for at, m in enumerate(by_market)}
    lays = np.concatenate(list(share.values()))
    first, of = _alike(lays)
    blocks, mass = lays[:, first], np.bincount(of, weight, first.size)
    starts = np.concatenate([[0], np.cumsum([lay.shape[0] for lay in share.values()])])
    conditions: list[Floats] = []
    for m, goal in by_market.items():
        lay = blocks[starts[places[m]] : starts[places[m] + 1]]
        two_way = lay.shape[0] == 2
        for outcome, p in goal.items():
            won, lost = np.maximum(lay[outcome], 0.0), np.maximum(-lay[outcome], 0.0)
            conditions.append(np.asarray(won * (1.0 - p) - lost * p, dtype=np.float64))
            if two_way:
                break
    mine_at = np.array([starts[places[m]] for m in markets.tolist()]) + side
    return _gathered(tilt(np.asarray(mass, dtype=np.float64), np.array(conditions)), blocks[mine_at].T, bets)


@kernel
def _law(log_weight: Floats, x: Floats, conditions: Floats, p: Floats) -> float:
    """Write the distribution with multipliers `x` to `p`; returns the log of the sum of its weights, with the ridge.

    `log_weight` (per scenario) and `conditions` (markets by scenarios) are the logs of w_c, and f_mc.
    """
    top, total, ridge = -np.inf, 0.0, 0.0
    for s in range(p.size):
        p[s] = log_weight[s]
        for k in range(x.size):
            p[s] += x[k] * conditions[k, s]
        top = max(top, p[s])
    for s in range(p.size):
        p[s] = np.exp(p[s] - top)
        total += p[s]
    for s in range(p.size):
        p[s] /= total
    for k in range(x.size):
        ridge += x[k] * x[k]
    return float(top + np.log(total) + 0.5 * _RIDGE * ridge)


@kernel
@allocating
def _tilt(weight: Floats, conditions: Floats) -> Floats:
    """`tilt`, by Newton's method with step halving.

    `weight` (per scenario) is w_c, `conditions` (markets by scenarios) f_mc. Returns probabilities.
    """
    n, size = conditions.shape
    log_weight = np.where(weight > 0.0, np.log(weight), -np.inf)
    x, p, next_x, next_p = np.zeros(n), np.empty(size), np.zeros(n), np.empty(size)
    mean, slope, step, hessian = np.empty(n), np.empty(n), np.empty(n), np.empty((n, n))
    value = _law(log_weight, x, conditions, p)
    for _ in range(_NEWTON):
        steepest = 0.0
        for k in range(n):
            mean[k] = 0.0
            for s in range(size):
                mean[k] += conditions[k, s] * p[s]
            slope[k] = mean[k] + _RIDGE * x[k]
            steepest = max(steepest, abs(slope[k]))
        if steepest < _SAME:
            break
        for k in range(n):
            for j in range(k + 1):
                total = 0.0
                for s in range(size):
                    total += conditions[k, s] * p[s] * conditions[j, s]
                hessian[k, j] = total - mean[k] * mean[j]
            hessian[k, k] += _RIDGE
        for k in range(n):  # Cholesky: positive definite because of the ridge
            for j in range(k + 1):
                total = hessian[k, j]
                for i in range(j):
                    total -= hessian[k, i] * hessian[j, i]
                hessian[k, j] = np.sqrt(max(total, 1e-3 * _RIDGE)) if j == k else total / hessian[j, j]
            total = slope[k]
            for i in range(k):
                total -= hessian[k, i] * step[i]
            step[k] = total / hessian[k, k]
        for k in range(n - 1, -1, -1):
            for i in range(k + 1, n):
                step[k] -= hessian[i, k] * step[i]
            step[k] /= hessian[k, k]
        largest_change, gain = 0.0, 0.0
        for s in range(size):
            change = 0.0
            for k in range(n):
                change += step[k] * conditions[k, s]
            largest_change = max(largest_change, abs(change))
        for k in range(n):
            gain += slope[k] * step[k]
        share = min(1.0, _FAR / largest_change)
        while True:
            for k in range(n):
                next_x[k] = x[k] - share * step[k]
            next_value = _law(log_weight, next_x, conditions, next_p)
            if next_value <= value - 1e-4 * share * gain or share < 1e-10:
                break
            share *= 0.5
        improvement, value = value - next_value, next_value
        x[:], p[:] = next_x, next_p
        if improvement < _GAINED and share < 1.0:
            break  # contradictory conditions: no further improvement
    return p


def tilt(weight: Floats, conditions: Floats) -> Floats:
    """Return the probabilities nearest to `weight` in relative entropy for which every condition has mean 0.

    Weights (scenarios,) are at least 0; conditions are (conditions, scenarios).
    """
    return _tilt(weight, np.ascontiguousarray(conditions))


def _two_way(distance: ArrayLike) -> Floats:
    """Return shares of over and under, (2, scenarios), given the distance above the line in hundredths."""
    u = np.clip(np.asarray(distance, dtype=np.float64) / 50.0, -1.0, 1.0)
    return np.stack([u, -u])


def _most_even(by_market: Mapping[int, Mapping[int, float]], markets: Iterable[int]) -> tuple[int, float] | None:
    """Return the two-way market whose first outcome is closest to even, and its probability."""
    candidates = [(m, by_market[m].get(0, 1.0 - by_market[m].get(1, math.nan))) for m in markets]
    return min(candidates, key=lambda pair: abs(pair[1] - 0.5), default=None)


def _score_lays(identity: Identity, by_market: Mapping[int, Mapping[int, float]]) -> tuple[Floats, dict[int, Floats]]:
    """Return the weights of a game's scores, and their effect on each market."""
    g = identity.groups
    kinds = {m: identity.kinds[g.kind[g.ladder[m]]] for m in by_market}
    line = {m: int(g.threshold[m]) for m in by_market}
    sport, league = identity.sports[g.event[g.ladder[next(iter(by_market))]]]
    scores = sport.scores_in(league)
    assert scores.margin is not None
    assert scores.total is not None
    level = math.nan if sport.level is None else sport.level
    counts = scores.total.name in _COUNTS
    total = _most_even(by_market, [m for m, k in kinds.items() if k.family == "total"])
    margin = _most_even(by_market, [m for m, k in kinds.items() if k.family in ("spread", "moneyline")])
    three = next((m for m, k in kinds.items() if len(k.outcomes) == 3), None)
    if margin is None and three is not None:
        home, away = by_market[three].get(0, math.nan), by_market[three].get(2, math.nan)
        p = home / (home + away) if home + away > 0.0 else (0.74 - away if math.isnan(home) else home + 0.13)
        margin = three, min(max(p, 0.02), 0.98) if not math.isnan(p) else 0.5
    mean, apart = _located(scores, level, counts, sport.id, total, margin, line)
    if counts:
        ratio = scores.total.variance_ratio
        means = np.maximum(0.5 * np.array([mean + apart, mean - apart]), 0.05)
        most = int((means + _SPREADS * np.sqrt(ratio * means) + 4.0).max())
        shape = _shape(distributions.NEGATIVE_BINOMIAL, max(ratio, 1.0))
        each = np.maximum(distributions.mass(shape, means, np.arange(most + 1)), 0.0)
        weight = np.outer(each[0], each[1]).ravel()
        h, a = (x.ravel() for x in np.indices((most + 1, most + 1)))
        regular = h - a
        if not math.isnan(level):
            # Level scores continue by one, for each side in proportion to its probability of being ahead.
            even, ahead = regular == 0, float(weight[h > a].sum())
            share = ahead / (ahead + float(weight[h < a].sum()))
            parts = [(weight[~even], h[~even], a[~even], regular[~even])]
            parts += [(weight[even] * share, h[even] + 1, a[even], regular[even])]
            parts += [(weight[even] * (1.0 - share), h[even], a[even] + 1, regular[even])]
            weight, h, a, regular = (np.concatenate(column) for column in zip(*parts, strict=True))
        x, t = h - a, h + a
    else:
        spread, wide = scores.margin.sd, scores.total.sd
        margins = np.arange(math.floor(apart - _SPREADS * spread), math.ceil(apart + _SPREADS * spread) + 1)
        totals = np.arange(math.floor(mean - _SPREADS * wide), math.ceil(mean + _SPREADS * wide) + 1)
        of_margin = np.maximum(distributions.mass(_margin_shape(scores, level), apart, margins), 0.0)
        of_total = np.maximum(distributions.mass(_shape(distributions.NORMAL, wide), mean, totals), 0.0)
        of_margin, margins = _cut(of_margin, margins, [line[m] for m, k in kinds.items() if k.family != "total"])
        of_total, totals = _cut(of_total, totals, [line[m] for m, k in kinds.items() if k.family == "total"])
        weight = np.outer(of_margin, of_total).ravel()
        x, t = np.repeat(margins, totals.size), np.tile(totals, margins.size)
        h = a = regular = x
    ends = Ends(h, a, x, t, regular)
    lays = {m: _lay(kind.family, int(g.subject[g.ladder[m]]), line[m], ends) for m, kind in kinds.items()}
    return weight, lays


class Ends(NamedTuple):
    """Final scores: home, away, margin, total, and the margin before overtime."""

    home: Longs
    away: Longs
    margin: Longs
    total: Longs
    regular: Longs


def _lay(family: str, subject: int, line: int, ends: Ends) -> Floats:
    """Return the effect of final scores on the outcomes of a market: the share of the stake won or lost."""
    if family == "total":
        return _two_way(100.0 * ends.total - line)
    if family == "spread":
        return _two_way(100.0 * ends.margin - line)
    if family == "moneyline":
        return _two_way(100.0 * ends.margin)
    if family == "team_total":
        return _two_way(100.0 * (ends.home if subject == 1 else ends.away) - line)
    if family == "both_teams_to_score":
        return _two_way(np.where((ends.home > 0) & (ends.away > 0), 50.0, -50.0))
    if family == "odd_even":
        return _two_way(np.where(ends.total % 2 == 1, 50.0, -50.0))
    return np.where(np.array([1, 0, -1])[:, None] == np.sign(ends.regular)[None, :], 1.0, -1.0)


def settle(
    family: str, period: str, subject: int, threshold: int, side: int, sport: catalog.Sport, league: str,
    home: float, away: float,
) -> float:  # fmt: skip
    """Return the share of the stake won or lost by a final score; nan if undetermined. See `settled`.

    A market is given as in the groups of a board: family, period, subject, threshold, and side of the outcome.
    """
    if not (_scored(family, period, sport, league) and math.isfinite(home) and math.isfinite(away)):
        return math.nan
    if family in ("moneyline_3way", "moneyline_regulation") and sport.level is not None:
        return math.nan
    h, a = np.array([round(home)]), np.array([round(away)])
    return float(_lay(family, subject, threshold, Ends(h, a, h - a, h + a, h - a))[side, 0])


def settled(table: OddsTable, home: Floats, away: Floats, odds: Floats | None = None) -> Floats:
    """Return the share of each bet's stake won or lost by the final score.

    Parameters
    ----------
    table
        The bets, one per row, as prices.
    home, away
        Final scores including overtime; nan if unknown.
    odds
        Prices after fees. With them, a tie in which the book pays 0.50 is the share that has this profit.

    Returns
    -------
    ndarray of float
        From -1 (lost) to 1 (won); 0 for a push. nan if the score is unknown or does not determine the result: props,
        periods, three-way markets in a sport with overtime, and ties where the book does not return the stake.
    """
    identity = identify(table, frozenset(CODES[name] for name in GUARDS))
    g = identity.groups
    books = table["sportsbook"].to_list()
    out = np.full(table.height, np.nan)
    for at, row in enumerate(g.row.tolist()):
        ladder = int(g.ladder[g.market[at]])
        kind = identity.kinds[g.kind[ladder]]
        sport, league = identity.sports[g.event[ladder]]
        share = settle(
            kind.family, kind.period, int(g.subject[ladder]), int(g.threshold[g.market[at]]), int(g.side[at]),
            sport, league, home[row], away[row],
        )  # fmt: skip
        if share == 0.0 and kind.family == "moneyline":
            tie = catalog.terms(books[row], sport.id, kind.family, league, kind.period).tie
            if tie is not None and tie.pays != "void":
                share = _half_paid(odds[row]) if odds is not None and tie.pays == "half" else math.nan
        out[row] = share
    return out


def _half_paid(odds: float) -> float:
    """Return the share of a bet that gets half of what a winner gets, a profit of `odds / 2 - 1`."""
    gain = odds / 2.0 - 1.0
    return float(gain / (odds - 1.0) if gain > 0.0 else gain)


def _located(
    scores: catalog.ScoreShapes, level: float, counts: bool, sport: str, total: tuple[int, float] | None,  # noqa: FBT001
    margin: tuple[int, float] | None, line: Mapping[int, int],
) -> tuple[float, float]:  # fmt: skip
    """Return means of total and margin that fit the most even market of each."""
    assert scores.margin is not None
    assert scores.total is not None
    mean, apart = (_USUAL_TOTAL.get(sport, 5.0) if counts else 0.0), 0.0
    ratio = max(scores.total.variance_ratio, 1.0)
    if total is not None:
        kind, scale = (distributions.NEGATIVE_BINOMIAL, ratio) if counts else (distributions.NORMAL, scores.total.sd)
        shape = _shape(kind, scale)
        mean = _or(float(fit(shape, line[total[0]], total[1])), line[total[0]] / 100.0 if counts else 0.0)
    if margin is not None:
        if counts:
            shape = distributions.Shapes.of(distributions.SKELLAM, max(scores.margin.variance_ratio * mean, 0.5), level)
        else:
            shape = _margin_shape(scores, level)
        apart = _or(float(fit(shape, line[margin[0]], margin[1])), 0.0)
        if counts:
            apart = min(max(apart, -0.95 * mean), 0.95 * mean)
    return mean, apart


def _or(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value


def _cut(weight: Floats, numbers: Longs, lines: list[int]) -> tuple[Floats, Longs]:
    """Merge numbers between the same lines: the weight of each run, and one of its numbers."""
    marks = {0, -1}  # of the moneyline
    for line in lines:
        below = line // 100
        marks |= {below - 1, below, below + 1}
    ends = np.searchsorted(numbers, sorted(marks), side="right")
    starts = np.unique(np.concatenate([[0], ends[ends < numbers.size]]))
    return np.add.reduceat(weight, starts), numbers[starts]


def _ladder_lays(identity: Identity, by_market: Mapping[int, Mapping[int, float]]) -> tuple[Floats, dict[int, Floats]]:
    """Return the weights of the number behind a ladder, roughly Normal, and its effect on each line."""
    g = identity.groups
    line = {m: int(g.threshold[m]) for m in by_market}
    first = next(iter(by_market))
    kind = identity.kinds[g.kind[g.ladder[first]]]
    sport, league = identity.sports[g.event[g.ladder[first]]]
    at = max(abs(value) for value in line.values()) / 100.0
    shape = catalog.shape(kind.family, sport.id, league)
    part = math.sqrt(kind.fraction) if kind.fraction > 0.0 else 1.0
    sd = max(1.0, math.sqrt(at)) if shape is None or shape.name in _COUNTS else max(1.0, shape.sd * part)
    anchor = _most_even(by_market, by_market)
    assert anchor is not None
    law = distributions.Shapes.of(distributions.NORMAL, sd)
    mean = _or(float(fit(law, line[anchor[0]], anchor[1])), line[anchor[0]] / 100.0)
    low, high = min(line.values()) / 100.0, max(line.values()) / 100.0
    numbers = np.arange(math.floor(min(low, mean) - _SPREADS * sd) - 1, math.ceil(max(high, mean) + _SPREADS * sd) + 2)
    weight, numbers = _cut(np.maximum(distributions.mass(law, mean, numbers), 0.0), numbers, list(line.values()))
    return weight, {m: _two_way(100.0 * numbers - line[m]) for m in by_market}
