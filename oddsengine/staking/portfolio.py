"""Portfolios: growth-optimal stakes on many simultaneous bets, and shrinkage of uncertain probabilities.

**The problem.** Bets i = 1 .. n are open at once. Game g ends in one of its scenarios, s with probability P_gs, in
which a unit on bet i of the game gains r_is (the odds minus 1, -1, or a value in between if part of the stake is
returned). Games are independent. Which stakes f_i, as fractions of the bankroll, maximise ::

    G(f) = E log W        W = 1 + sum over games of X_g        X_g = sum over its bets of f_i r_is

with f_i from 0 to a limit, and limits on the stakes at each book and in total? G is concave, so the maximum is unique.
Stakes are paid when bets are placed, so they sum to at most 1.

**Independent games.** The joint scenarios of all games cannot be enumerated. But for w > 0 ::

    log w = integral over t > 0 of (exp(-t) - exp(-t w)) / t

(Frullani), and the expectation of exp(-t W) is exp(-t) times the product over games of phi_g(t) = sum over s of P_gs
exp(-t X_gs). So G is one integral in one variable, and with u = log t the trapezoidal rule converges exponentially:
with a step of h = 1/2 its error is below 1.1 |Gamma(2 pi i / h)| < 3e-9, whatever the distribution of W. Gradient and
Hessian are sums over the same nodes, of the games' tilted means ::

    dG/df_i        = sum_k h t_k Phi_k a_ik                          Phi(t) = E exp(-t W)
    d2G/df_i df_j  = - sum_k h t_k^2 Phi_k a_ik a_jk                  in different games
                   = - sum_k h t_k^2 Phi_k sum_s P_gs e^(-t X) r_is r_js / phi_g     in the same game

with a_ik the mean of r_i where scenario s has weight P_gs exp(-t_k X_gs) / phi_g(t_k). Nodes that
only matter for W below 1e-5 are omitted.

**Limits.** The maximum is found by a primal-dual interior point method: about fifteen Newton steps on the optimality
conditions within the feasible set. It starts with the bets that have an edge. Another bet would raise growth if its
slope dG/df_i exceeds the shadow prices of its limits; such bets are added and the maximum is computed again, until
there are none. A whole board thus costs little more than its good bets.

**Steps.** Stakes in whole steps start from the nearest ones within the limits and are changed by one step of one bet at
a time while growth increases.

**Uncertain probabilities.** Full Kelly on an estimated probability bets too much, because overbetting costs more growth
than underbetting. For one bet with probability p, standard error e and edge x = p d - 1, the best multiple of the Kelly
stake is, to second order ::

    k = x^2 / (x^2 + (d e)^2)

(Baker and McHale, equation 8, with its net odds d - 1 written out), which is the Kelly stake for the probability
1/d + k (p - 1/d): `shrink` moves every probability with an edge towards 1/d by that much, and distributes the
difference over the other outcomes of the market in proportion. The two legs of an arbitrage thus cancel each other.

References: J. L. Kelly, "A new interpretation of information rate", Bell System Technical Journal 35 (1956). L.
MacLean, E. Thorp and W. Ziemba (eds.), "The Kelly capital growth investment criterion", World Scientific (2011). R.
Baker and I. McHale, "Optimal betting under parameter uncertainty: improving the Kelly criterion", Decision Analysis
10 (2013), https://doi.org/10.1287/deca.2013.0271. L. N. Trefethen and J. A. C. Weideman, "The exponentially
convergent trapezoidal rule", SIAM Review 56 (2014), https://doi.org/10.1137/130932132. S. Boyd and L. Vandenberghe,
"Convex optimization", Cambridge (2004), section 11.7 (the primal-dual method).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddsengine._jit import allocating, fused
from oddsengine.columns import Floats, Longs
from oddsengine.maths.odds import decimal_odds

_STEP = 0.5  # of the trapezoidal rule, in log t
_NODES = np.exp(np.arange(-23.0, 14.0, _STEP))
_ITERATIONS = 80  # of the interior point method; usually about fifteen
_GAP = 1e-11  # growth gap at which it ends
_GAP_AT_END = 1e-7  # accepted gap if no further step is possible
_BACK = 0.98  # maximum step, as a share of the distance to the nearest limit
_NOTHING = 1e-7  # smaller stakes count as 0
_MANY = 256  # bets added at a time
_ROUNDS = 60
_GAIN = 1e-8  # minimum growth per unit staked for adding a bet
_SLACK = 1e-12  # tolerance of limits, and minimum increase of growth


class GameColumns(NamedTuple):
    """Independent games in flat columns: game g has `prob[scenario[g]:scenario[g + 1]]`, and its bets likewise.

    The gains of a game are a table of scenarios x bets in row order, from `gain_at[g]`.
    """

    prob: Floats
    gains: Floats
    scenario: Longs
    bet: Longs
    gain_at: Longs

    @classmethod
    def from_pairs(cls, games: Sequence[tuple[ArrayLike, ArrayLike]]) -> "GameColumns":
        """Build from pairs of scenario probabilities (scenarios,) and gains (scenarios, bets).

        Examples
        --------
        >>> GameColumns.from_pairs([([0.55, 0.45], [[1.0], [-1.0]])]).bet.tolist()
        [0, 1]
        """
        probs, gains = [], []
        for prob, gain in games:
            p, r = np.asarray(prob, dtype=np.float64), np.asarray(gain, dtype=np.float64)
            if p.ndim != 1 or r.shape[:1] != p.shape or r.ndim != 2:
                raise ValueError(f"a game needs (scenarios,) and (scenarios, bets), got shapes {p.shape} and {r.shape}")
            if not ((p >= 0.0).all() and abs(p.sum() - 1.0) < 1e-9 and (r >= -1.0).all() and np.isfinite(r).all()):
                raise ValueError("probabilities of a game must sum to 1, and gains be finite and at least -1")
            probs.append(p)
            gains.append(r)
        sizes = [[p.size for p in probs], [r.shape[1] for r in gains], [r.size for r in gains]]
        return cls(
            np.concatenate([np.empty(0), *probs]),
            np.concatenate([np.empty(0), *(r.ravel() for r in gains)]),
            *(np.concatenate([[0], np.cumsum(np.array(n, np.int64))]).astype(np.int64) for n in sizes),
        )


class StakeLimits(NamedTuple):
    """Maximum stakes, as fractions of the bankroll."""

    bet: Floats  # per bet; inf for none
    members: NDArray[np.bool_]  # (groups, bets): members of each group, such as a book
    group: Floats  # per group
    total: float = 1.0

    @classmethod
    def none(cls, bets: int) -> "StakeLimits":
        """Return no limits except the bankroll."""
        return cls(np.full(bets, np.inf), np.zeros((0, bets), bool), np.empty(0))


@fused
@allocating
def _moments(
    stakes: Floats, prob: Floats, gains: Floats, scenario: Longs, bet: Longs, gain_at: Longs, nodes: Floats,
    step: float, slope: Floats, tilted: Floats, hessian: Floats,
) -> float:  # fmt: skip
    """Return growth; write its gradient, weighted tilted means (nodes, bets), and same-game parts of minus the Hessian.

    Minus the Hessian between games is the product of `tilted` with itself.

    - `stakes` (per bet): fractions of the bankroll
    - `prob` (per scenario): probabilities; `scenario` and `bet` are the offsets of the games' scenarios and bets
    - `gains`, `gain_at`: gains of a unit on each bet in each scenario, game by game, and where each game begins
    - `nodes`, `step`: nodes of the integral, and its step
    - `slope` (per bet), `hessian` (bets by bets), `tilted` (nodes by bets): to write
    """
    games = scenario.size - 1
    game_gain = np.empty(prob.size)  # X of each scenario
    slope_weight = np.empty(prob.size)  # weight of a scenario's gains in the gradient
    hessian_weight = np.empty(prob.size)  # the same in the Hessian
    share = np.empty(prob.size)
    for g in range(games):
        n = bet[g + 1] - bet[g]
        for s in range(scenario[g], scenario[g + 1]):
            at = gain_at[g] + (s - scenario[g]) * n
            x = 0.0
            for j in range(n):
                x += stakes[bet[g] + j] * gains[at + j]
            game_gain[s] = x
            slope_weight[s] = hessian_weight[s] = 0.0
    growth = 0.0
    for k in range(nodes.size):
        t = nodes[k]
        log_phi = -t
        for g in range(games):
            top = -1e300
            for s in range(scenario[g], scenario[g + 1]):
                if prob[s] > 0.0:
                    top = max(top, -t * game_gain[s])
            total = 0.0
            for s in range(scenario[g], scenario[g + 1]):
                share[s] = prob[s] * np.exp(-t * game_gain[s] - top) if prob[s] > 0.0 else 0.0
                total += share[s]
            for s in range(scenario[g], scenario[g + 1]):
                share[s] /= total
            log_phi += top + np.log(total)
        phi = np.exp(log_phi)
        growth += step * (np.exp(-t) - phi)
        if log_phi < -300.0:  # negligible, and subnormal numbers are slow
            for i in range(stakes.size):
                tilted[k, i] = 0.0
            continue
        weight = step * t * phi
        root = np.sqrt(weight * t) if games > 1 else 0.0  # a single game is entirely in `hessian`
        for g in range(games):
            n = bet[g + 1] - bet[g]
            for j in range(n):
                tilted[k, bet[g] + j] = 0.0
            for s in range(scenario[g], scenario[g + 1]):
                p = share[s]
                slope_weight[s] += weight * p
                hessian_weight[s] += weight * t * p
                at = gain_at[g] + (s - scenario[g]) * n
                for j in range(n if games > 1 else 0):
                    tilted[k, bet[g] + j] += root * p * gains[at + j]
    for g in range(games):
        n = bet[g + 1] - bet[g]
        for i in range(n):
            slope[bet[g] + i] = 0.0
            for j in range(n):
                hessian[bet[g] + i, bet[g] + j] = 0.0
        for s in range(scenario[g], scenario[g + 1]):
            at = gain_at[g] + (s - scenario[g]) * n
            for i in range(n):
                r = gains[at + i]
                slope[bet[g] + i] += slope_weight[s] * r
                w = hessian_weight[s] * r
                if w != 0.0:
                    for j in range(i + 1):
                        hessian[bet[g] + i, bet[g] + j] += w * gains[at + j]
        for i in range(n):
            for j in range(i):
                hessian[bet[g] + j, bet[g] + i] = hessian[bet[g] + i, bet[g] + j]
    return growth


@fused
def _solve(bet: Longs, own: Floats, tilted: Floats, diagonal: Floats, rows: Floats, a: Floats, sides: Floats) -> None:
    """Solve (minus the Hessian + diagonal + rows^T rows) x = side for each side, in place, by Cholesky in `a`.

    The libraries behind numpy start threads for a matrix of this size, which wait for each other on a busy machine.

    - `bet`: offsets of the games' bets
    - `own`: same-game parts of minus the Hessian, and `tilted`: the means of which it is the product between games
    - `diagonal` (per bet), `rows` (any by bets): added
    - `a` (bets by bets): scratch array
    - `sides` (any by bets): the sides, replaced by the solutions
    """
    n = diagonal.size
    for g in range(bet.size - 1):
        for i in range(bet[g], bet[g + 1]):
            for j in range(i, n):
                a[i, j] = own[i, j] if j < bet[g + 1] else 0.0
            a[i, i] += diagonal[i]
    for k in range(tilted.shape[0]):
        row = tilted[k]
        for g in range(bet.size - 1):
            for i in range(bet[g], bet[g + 1]):
                x = row[i]
                if x != 0.0:
                    for j in range(bet[g + 1], n):
                        a[i, j] += x * row[j]
    for k in range(rows.shape[0]):
        row = rows[k]
        for i in range(n):
            x = row[i]
            if x != 0.0:
                for j in range(i, n):
                    a[i, j] += x * row[j]
    for k in range(n):
        root = np.sqrt(max(a[k, k], 1e-200))
        inverse = 1.0 / root
        for j in range(k, n):
            a[k, j] *= inverse
        pivot_row = a[k]
        for i in range(k + 1, n):
            x = pivot_row[i]
            if x != 0.0:
                for j in range(i, n):
                    a[i, j] -= x * pivot_row[j]
    for side in range(sides.shape[0]):
        y = sides[side]
        for i in range(n):
            y[i] /= a[i, i]
            for j in range(i + 1, n):
                y[j] -= a[i, j] * y[i]
        for i in range(n - 1, -1, -1):
            total = y[i]
            for j in range(i + 1, n):
                total -= a[i, j] * y[j]
            y[i] = total / a[i, i]


class _Growth:
    def __init__(self, games: GameColumns) -> None:
        self._games = games
        n = int(games.bet[-1])
        self._slope, self._tilted = np.empty(n), np.empty((_NODES.size, n))
        self._own, self._factor = np.zeros((n, n)), np.empty((n, n))

    def at(self, stakes: Floats) -> tuple[float, Floats]:
        growth = _moments(stakes, *self._games, _NODES, _STEP, self._slope, self._tilted, self._own)
        return float(growth), self._slope

    def bend(self) -> Floats:
        """Return minus the second derivative by each stake, at the last point of `at`."""
        return np.diag(self._own).copy()

    def solve(self, diagonal: Floats, rows: Floats, sides: Floats) -> Floats:
        """Solve (minus the Hessian + diagonal + rows^T rows) x = side for each row of `sides`."""
        out = sides.copy()
        _solve(self._games.bet, self._own, self._tilted, diagonal, rows, self._factor, out)
        return out


def growth(games: GameColumns, stakes: ArrayLike) -> float:
    """Return the mean log growth of the bankroll at given stakes.

    Parameters
    ----------
    games : Games
        Scenarios.
    stakes : array_like of float
        Fractions of the bankroll by bet, at least 0, with a sum below 1.

    Examples
    --------
    >>> even = GameColumns.from_pairs([([0.55, 0.45], [[1.0], [-1.0]])] * 2)
    >>> round(growth(even, [0.1, 0.0]), 6)
    0.005008
    """
    f = np.ascontiguousarray(stakes, dtype=np.float64)
    return _Growth(games).at(f)[0]


def best_stakes(games: GameColumns, limits: StakeLimits) -> Floats:
    """Return the stakes of maximal growth.

    Parameters
    ----------
    games : Games
        Scenarios.
    limits : Limits
        Maximum stakes.

    Returns
    -------
    ndarray of float
        Fractions of the bankroll; all `nan` if the method did not converge.

    Examples
    --------
    >>> even = GameColumns.from_pairs([([0.55, 0.45], [[1.0], [-1.0]])] * 2)
    >>> best_stakes(even, StakeLimits.none(2)).round(4).tolist()
    [0.099, 0.099]
    """
    out = np.zeros(int(games.bet[-1]))
    most = np.minimum(limits.bet, limits.total)
    for members, end in zip(limits.members, limits.group, strict=True):
        most[members] = np.minimum(most[members], end)
    sums = np.vstack([limits.members, np.ones((1, most.size), bool)]).astype(np.float64)
    ends = np.append(limits.group, limits.total * (1.0 - 1e-9))
    value, chosen = _Growth(games), np.zeros(most.size, bool)
    price = np.zeros(ends.size)  # shadow price of each limit, per unit
    for _ in range(_ROUNDS):
        gain = np.where((most > _NOTHING) & ~chosen, value.at(out)[1] - price @ sums, 0.0)
        late = np.flatnonzero(gain > _GAIN)
        if not late.size:
            break
        chosen[late[np.argsort(-gain[late], kind="stable")[:_MANY]]] = True
        bets = np.flatnonzero(chosen)
        used = sums[:, bets].any(axis=1)
        out[bets], price[used] = _interior(_only(games, bets), most[bets], sums[np.ix_(used, bets)], ends[used])
        if np.isnan(out).any():
            break
    return out


def _only(games: GameColumns, keep: Longs) -> GameColumns:
    """Return the games with a selection of their bets."""
    if keep.size == games.bet[-1]:
        return games
    parts = []
    for g in range(games.scenario.size - 1):
        n = games.bet[g + 1] - games.bet[g]
        table = games.gains[games.gain_at[g] : games.gain_at[g + 1]].reshape(-1, n)
        bets = keep[(keep >= games.bet[g]) & (keep < games.bet[g + 1])] - games.bet[g]
        parts.append((games.prob[games.scenario[g] : games.scenario[g + 1]], table[:, bets]))
    return GameColumns.from_pairs(parts)


def _interior(games: GameColumns, most: Floats, sums: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Primal-dual interior point method for 0 <= f <= most, sums f <= ends; Boyd and Vandenberghe, algorithm 11.2.

    Returns the stakes, nan if it did not converge, and the shadow price of each limit.
    """
    n = most.size
    share = ends / np.maximum(sums.sum(axis=1), 1.0)  # of each bet, if all bets of a group are equal
    f = 0.4 * np.minimum(most, np.where(sums > 0.0, share[:, None], np.inf).min(axis=0))
    value = _Growth(games)
    _, slope = value.at(f)
    gap = 0.1

    def slack(x: Floats) -> Floats:
        return np.concatenate([x, most - x, ends - sums @ x])

    room = slack(f)
    dual = gap / room / room.size
    for _ in range(_ITERATIONS):
        z_low, z_high, z_sum = dual[:n], dual[n : 2 * n], dual[2 * n :]
        pull = slope + z_low - z_high - z_sum @ sums
        gap = float(dual @ room)
        if gap < _GAP and np.abs(pull).max() < 1e-8 * max(1.0, np.abs(slope).max()):
            return np.where(f < _NOTHING, 0.0, f), z_sum
        mu = gap / room.size
        weight = dual / room
        # The direction is linear in the centring parameter, which follows from a step without centring (Mehrotra).
        lift = 1.0 / room
        sides = np.stack([slope, lift[:n] - lift[n : 2 * n] - lift[2 * n :] @ sums])
        rows = np.sqrt(weight[2 * n :])[:, None] * sums
        plain, centred = value.solve(weight[:n] + weight[n : 2 * n], rows, sides)
        if not np.isfinite(plain + centred).all():
            # Near a vertex, the last steps may be singular; they are not needed.
            return (np.where(f < _NOTHING, 0.0, f) if gap < _GAP_AT_END else np.full(n, np.nan)), z_sum
        aim = 0.0
        for last in (False, True):
            df = plain + aim * centred
            move = np.concatenate([df, -df, -(sums @ df)])
            dz = aim * lift - dual - weight * move
            step, step_dual = _BACK * _far(room, move), _BACK * _far(dual, dz)
            if not last:
                ahead = float(slack(f + step * df) @ (dual + step_dual * dz))
                aim = mu * min(1.0, max(ahead / gap, 0.0)) ** 3 + 1e-14
        f = f + step * df
        dual = dual + step_dual * dz
        room = slack(f)
        _, slope = value.at(f)
    return np.full(n, np.nan), dual[2 * n :]


def _far(value: Floats, move: Floats) -> float:
    """Return the largest multiple of `move` that keeps all values positive, at most 1, times `_BACK`."""
    falls = move < 0.0
    return min(1.0 / _BACK, float((-value[falls] / move[falls]).min(initial=np.inf)))


def whole_steps(games: GameColumns, stakes: ArrayLike, steps: ArrayLike, limits: StakeLimits) -> Floats:
    """Round stakes to whole steps such that changing one bet by one step does not improve growth.

    Parameters
    ----------
    games : Games
        Scenarios.
    stakes : array_like of float
        Best stakes, as fractions of the bankroll.
    steps : array_like of float
        Step of each bet, as a fraction of the bankroll.
    limits : Limits
        Maximum stakes.

    Examples
    --------
    >>> even = GameColumns.from_pairs([([0.55, 0.45], [[1.0], [-1.0]])])
    >>> whole_steps(even, [0.1], [0.04], StakeLimits.none(1)).tolist()
    [0.08]
    """
    f, step = np.asarray(stakes, dtype=np.float64), np.asarray(steps, dtype=np.float64)
    value = _Growth(games)
    n = f.size
    count = np.floor(f / step + 1e-9)
    members, ends = limits.members.astype(np.float64), np.append(limits.group, min(limits.total, 1.0 - 1e-9))
    members = np.vstack([members, np.ones((1, n))])

    def fits() -> NDArray[np.bool_]:
        now = count * step
        room = ends - members @ now + _SLACK
        over = (members * step > room[:, None]).any(axis=0)
        return np.asarray((now + step <= limits.bet + _SLACK) & ~over)

    part = f / step - count
    for i in np.argsort(-part, kind="stable")[: int((part > 0.5).sum())]:
        count[i] += float(fits()[i])
    best, slope = value.at(count * step)
    while True:
        # Growth is concave: without a first-order gain, a change cannot improve it.
        first = np.concatenate([np.where(fits(), slope, -1.0) * step, np.where(count > 0.0, -slope, -1.0) * step])
        bend = 0.5 * np.tile(value.bend() * step**2, 2)
        slope = slope.copy()
        for place in np.argsort(bend - first, kind="stable"):
            if first[place] <= 0.0:
                continue
            i, change = place % n, 1.0 if place < n else -1.0
            count[i] += change
            new, ahead = value.at(count * step)
            if new > best + _SLACK:
                best, slope = new, ahead
                break
            count[i] -= change
        else:
            return count * step


def shrink(probs: ArrayLike, odds: ArrayLike, errors: ArrayLike) -> Floats:
    """Shrink the probabilities of a market's outcomes by their uncertainty.

    Parameters
    ----------
    probs : array_like of float
        Probabilities of all outcomes, along the last axis.
    odds : array_like of float
        Best decimal odds of each; `nan` for outcomes without a bet.
    errors : array_like of float
        Standard errors of the probabilities; `nan` counts as 0.

    Examples
    --------
    With an edge of 4 % and a standard error of 2 points, the stake is halved:

    >>> shrink([0.52, 0.48], [2.0, float("nan")], [0.02, 0.02]).round(4).tolist()
    [0.51, 0.49]
    """
    p, e = np.asarray(probs, dtype=np.float64), np.nan_to_num(np.asarray(errors, dtype=np.float64))
    d = np.where(np.isnan(np.asarray(odds, dtype=np.float64)), 1.0, decimal_odds(odds))
    x = np.maximum(p * d - 1.0, 0.0)
    with np.errstate(all="ignore"):
        factor = np.where(x > 0.0, x * x / (x * x + (d * e) ** 2), 1.0)
        lost = np.where(x > 0.0, (1.0 - factor) * (p - 1.0 / d), 0.0)
        handed = np.where(p < 1.0, lost / (1.0 - p), 0.0)
    return np.asarray(p - lost + p * (handed.sum(axis=-1, keepdims=True) - handed))
