"""Margin removal: the fair probabilities behind one book's prices for all outcomes of a market.

The question: a book quotes decimal odds d_i for the n outcomes of a market, of which exactly one happens.
The implied probabilities q_i = 1 / d_i sum to the book sum B, usually above 1; B - 1 is the margin. Which
p_i, summing to 1, did the book start from? Every method is a guess at how the margin was spread.

====================  ==================================================  ===================================
method                fair probability                                    one unknown, from sum p_i = 1
====================  ==================================================  ===================================
multiplicative        p_i = q_i / B                                       none
additive              p_i = q_i - (B - 1) / n                             none
power                 p_i = q_i ** k                                      k > 0
shin                  p_i = (sqrt(z^2 + 4 (1 - z) a_i) - z) / (2 (1 - z))  z < 1, the share of insiders
odds_ratio            p_i = 1 / (1 + c (d_i - 1))                         c > 0, the odds ratio
logarithmic           logit p_i = logit q_i - s                           s = log c
goto                  p_i = q_i - c sqrt(1 - q_i)                         c = (B - 1) / sum sqrt(1 - q_i)
probit                p_i = Phi(Phi^-1(q_i) - s)                          s, the shift of the normal scores
worst_case            min of multiplicative, additive, power, shin,       none; the sum is at most 1
                      odds_ratio, outcome by outcome
a blend               p_i = sum_m w_m p_i(m), sum w_m = 1                 none; w_m is the weight of method m
====================  ==================================================  ===================================

with a_i = q_i^2 / B, logit p = log(p / (1 - p)) and Phi the standard normal distribution function. In each solved
method every p_i is strictly monotone in the unknown, so the sum is too, and the solution is unique where it exists.
It exists for every B, below 1 as well: then k < 1, z < 0, c < 1, s < 0. Prices that sum to exactly 1 come back
unchanged from every method.

`goto` takes the same number of standard errors from every outcome: its authors give 1 / d the standard error
sqrt(q (1 - q) / q) = sqrt(1 - q), which is near 1 for long shots and near 0 for a strong favourite. `probit` is
`logarithmic` with the normal distribution in place of the logistic one; it is Wang's transform, which prices risks in
insurance, with the shift that makes the sum 1.

Names that coincide: `logarithmic` and `odds_ratio` are one method, (1 - p) / p = c (1 - q) / q written with
and without the logarithm; both names are in use (some authors call the power method logarithmic instead:
here that is `power`). Margin weights proportional to the odds (`wpo`, also called differential margin weighting) are
`additive`: the fair price is n d / (n - (B - 1) d), whose inverse is 1 / d - (B - 1) / n. For two outcomes `shin`
equals `additive`, `odds_ratio` has the closed form p_1 = 1 / (1 + sqrt((d_1 - 1) / (d_2 - 1))), and `probit` has s =
(Phi^-1(q_1) + Phi^-1(q_2)) / 2. `DEVIG_ALIASES` has the other names.

When it fails, the whole market is `nan`, and no other market is touched:

- a price is not finite or not above 1;
- a market of one outcome: a certain outcome is no market, and only one answer sums to 1 whatever the price;
- `additive` or `goto` leaves (0, 1), as they do for long shots at a wide margin; `additive` takes `worst_case` with it,
  and each of them any blend that contains it;
- an answer is not a double strictly between 0 and 1, or the solver did not converge.

How the unknown is found: many markets side by side, one lane each. Power takes L = log q and the moments
s_m = sum q^k L^m; a Householder step of order 4 on log s_0 from k = 1, where q^k = q needs no exponential,
lands close; after one exponential per outcome a second step is applied as a series in x = (change of k) L,
and repeated only where |x| is not small. Shin takes Halley steps from z = (B - 1) / (n - 1), and the odds
ratio the same steps as power on sum p_i. A lane that is not close after a few rounds is bisected. Probit, which
has no series as short, takes Halley steps one market at a time, between the shifts at which all p_i are at most, and
at least, 1 / n.

References
----------
- S. Clarke, S. Kovalchik, M. Ingram, "Adjusting bookmaker's odds to allow for overround", American Journal
  of Sports Science 5(6), 2017, https://doi.org/10.11648/j.ajss.20170506.12 (additive, multiplicative, power,
  Shin; Shin equals additive for two)
- H. S. Shin, "Prices of state contingent claims with insider traders, and the favourite-longshot bias", The
  Economic Journal 102, 1992, https://doi.org/10.2307/2234526; B. Jullien, B. Salanie, "Measuring the
  incidence of insider trading: a comment on Shin", The Economic Journal 104, 1994,
  https://doi.org/10.2307/2235458 (the formula for p_i)
- E. Strumbelj, "On determining probability forecasts from betting odds", International Journal of Forecasting
  30(4), 2014, https://doi.org/10.1016/j.ijforecast.2014.02.008
- K. Cheung, "Fixed-odds betting and traditional odds", 2015, as given by J. Buchdahl, "Using the wisdom of
  the crowd to find value in a football match betting market",
  https://www.football-data.co.uk/wisdom_of_crowd_bets (odds ratio; power under the name logarithmic)
- J. Buchdahl, "The Wisdom of the Crowd", 2015, at the same address (margin weights proportional to the odds)
- goto_conversion, "Gambling odds to outcome probabilities conversion", 2023,
  https://github.com/gotoConversion/goto_conversion (goto)
- S. S. Wang, "A class of distortion operators for pricing financial and insurance risks", Journal of Risk and Insurance
  67(1), 2000, https://doi.org/10.2307/253675 (the normal shift); "Probit vig removal in multi-way markets", 2025,
  https://wizardofvegas.com/forum/questions-and-answers/math/41747-probit-vig-removal-in-multi-way-markets (its use for
  margins, under the name probit)
- M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37(3), 1988,
  https://doi.org/10.2307/2347330 (Phi^-1)
- A. S. Householder, "The numerical treatment of a single nonlinear equation", McGraw-Hill, 1970

Arguments of the kernels:

- `odds`, `out` (float64 per outcome): prices, market after market, and the probabilities to write
- `n`: number of outcomes
- `starts` (int64 per market): where each market begins; empty if they follow each other
- `first`, `m`: the first market of a block, and the number of its markets, at most `_LANES`
- `cell` (float64, n by 2 by lanes): per outcome and lane, the price, later the probability; and a function of the
  price
- `i`: the lane
"""

import math
from collections.abc import Callable, Collection, Mapping
from numbers import Real

import numpy as np
import numpy.typing as npt

from oddsengine._jit import allocating, fused
from oddsengine.bounds import excerpt
from oddsengine.columns import Floats, Longs
from oddsengine.maths.odds import decimal_odds

_LANES = 128  # markets solved side by side
_SLICE = 32 * _LANES  # markets of one pass of worst_case
_ROUNDS = 4  # refinements of a block before its open lanes are bisected
_CLOSE = 3e-4  # relative change of a probability below which the last step is a short series
_CLOSE_Z = 3e-5  # the same for Shin, whose last step is Halley's
_BISECTIONS = 100  # enough to halve any bracket of doubles, in the logarithm, to one unit in the last place
_TOLERANCE = 1e-12  # a bisected market whose sum is farther than this from 1 did not converge
_LEAST = 1e-300  # probabilities below have left what the exponential can hold
_GREATEST = 1.7976931348623157e308  # largest finite price
_TOGETHER: Longs = np.empty(0, dtype=np.int64)  # no starts: markets lie one after the other
_SHIFT_CLOSE = 1e-8  # change of a probit's shift below which the last step leaves no error
_ROOT2, _DENSITY = math.sqrt(2.0), 1.0 / math.sqrt(2.0 * math.pi)
_Solver = Callable[[Floats, int, Longs, Floats], None]  # odds, outcomes, starts, out
Method = str | Mapping[str, float]
"""A method of margin removal: its name, or weights by name."""

_POWER, _SHIN, _ODDS_RATIO = 0, 1, 2
_MULTIPLICATIVE, _ADDITIVE = 0, 1  # closed forms; pairs have one for `_ODDS_RATIO`, too

# log(m) = s (2 + z (G1 + z (G2 + ...))) for m in [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1), z = s^2
_G1, _G2, _G3, _G4 = 0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149792
_G5, _G6, _G7 = 0.1818357216161805, 0.15313837699209373, 0.14798198605116586
# exp(r) = 1 + r + r^2 (E0 + r (E1 + ...)) for |r| <= log(2) / 2, interpolated at Chebyshev nodes
_E0, _E1, _E2, _E3 = 0.5, 0.166666666666483, 0.041666666666651364, 0.008333333353719415
_E4, _E5, _E6 = 0.001388888890587324, 0.00019841208752496622, 2.4801536405577107e-05
_E7, _E8 = 2.762510449699371e-06, 2.7613797387760627e-07
_LN2, _LN2_HIGH, _LN2_LOW = 0.6931471805599453, 0.6931471803691238, 1.9082149292705877e-10
_LOG2E = 1.4426950408889634
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves a rounded integer in the low bits
_SQRT_HALF = 0x3FE6A09E667F3BCD  # bits of sqrt(1/2)
_BIAS = 1023  # of a double's exponent
_LOWEST = -708.0  # smallest exponent whose exponential is a normal double


@fused
def _read(odds: Floats, n: int, starts: Longs, first: int, m: int, cell: Floats) -> None:
    """Prices of markets first .. first + m into cell[:, 0], an outcome per row; spare lanes get no price."""
    for j in range(n):
        for i in range(m, _LANES):
            cell[j, 0, i] = 0.0
    if starts.size == 0 and n == 2:
        pairs = odds[2 * first : 2 * (first + m)]
        for i in range(m):
            cell[0, 0, i] = pairs[2 * i]
            cell[1, 0, i] = pairs[2 * i + 1]
    elif starts.size == 0 and n == 3:
        triples = odds[3 * first : 3 * (first + m)]
        for i in range(m):
            cell[0, 0, i] = triples[3 * i]
            cell[1, 0, i] = triples[3 * i + 1]
            cell[2, 0, i] = triples[3 * i + 2]
    else:
        for j in range(n):
            for i in range(m):
                start = starts[first + i] if starts.size > 0 else (first + i) * n
                cell[j, 0, i] = odds[start + j]


@fused
def _write(out: Floats, n: int, starts: Longs, first: int, m: int, cell: Floats) -> None:
    """cell[:, 0] to the places that `_read` read."""
    if starts.size == 0 and n == 2:
        pairs = out[2 * first : 2 * (first + m)]
        for i in range(m):
            pairs[2 * i] = cell[0, 0, i]
            pairs[2 * i + 1] = cell[1, 0, i]
    elif starts.size == 0 and n == 3:
        triples = out[3 * first : 3 * (first + m)]
        for i in range(m):
            triples[3 * i] = cell[0, 0, i]
            triples[3 * i + 1] = cell[1, 0, i]
            triples[3 * i + 2] = cell[2, 0, i]
    else:
        for j in range(n):
            for i in range(m):
                start = starts[first + i] if starts.size > 0 else (first + i) * n
                out[start + j] = cell[j, 0, i]


@fused
def _bisect(method: int, cell: Floats, n: int, i: int) -> None:
    """Solve lane i by bisection in log x, from cell[:, 1] into cell[:, 0]; `nan` if that fails.

    `method` is `_POWER`, `_SHIN` or `_ODDS_RATIO`.
    """
    low, high, x, factor, total = 0.0, np.inf, 1.0, 2.0, 0.0
    for _ in range(_BISECTIONS):
        total = 0.0  # falls as x rises from 0 to infinity; x is k, 1 / (1 - z) or c
        for j in range(n):
            value = cell[j, 1, i]
            if method == _POWER:
                p = math.exp(x * value)
            elif method == _SHIN:
                z = 1.0 - 1.0 / x
                r = math.sqrt(z * z + 4.0 * value / x)
                p = 0.5 * x * (r - z) if z < 0.0 else 2.0 * value / (r + z)
            else:
                p = 1.0 / (1.0 + x * value)
            cell[j, 0, i] = p
            total += p
        if total > 1.0:
            low = x
        else:
            high = x
        if low > 0.0 and high < np.inf:
            x = math.sqrt(low) * math.sqrt(high)
        else:
            x = x * factor if low > 0.0 else x / factor
            factor *= factor
    is_solved = abs(total - 1.0) <= _TOLERANCE
    for j in range(n):
        is_solved = is_solved and cell[j, 0, i] > 0.0 and cell[j, 0, i] < 1.0
    if not is_solved:
        for j in range(n):
            cell[j, 0, i] = np.nan


@fused
def _step(f: float, s0: float, s1: float, s2: float, s3: float) -> float:
    """Householder step of order 4 towards log s0 = 0, given f close to log s0 and its moments.

    The moments are `s0`, `s1`, `s2` and `s3`; `f` is close to log s0.
    """
    b = s2 * s0 - s1 * s1
    c = s0 * (s0 * s3 - 3.0 * s1 * s2) + 2.0 * s1 * s1 * s1
    return -f * s0 * (6.0 * s1 * s1 - 3.0 * f * b) / (6.0 * s1 * (s1 * s1 - f * b) + f * f * c)


@fused
@allocating
def _power(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve the power method for all markets of n outcomes, at `starts` or, if empty, one after the other."""
    cell = np.empty((n, 2, _LANES))  # per outcome: odds, then probability; log of the implied probability
    bits = cell.view(np.int64)
    lane = np.empty((7, _LANES))  # moments s_0 .. s_3, zero between uses; k; its last change; s_0 - 1
    for i in range(_LANES):
        lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, _LANES):
        m = markets - first if markets - first < _LANES else _LANES
        _read(odds, n, starts, first, m, cell)
        for j in range(n):
            for i in range(_LANES):
                d = cell[j, 0, i]
                e = (bits[j, 0, i] - _SQRT_HALF) >> 52
                bits[j, 1, i] = bits[j, 0, i] - (e << 52)
                f = cell[j, 1, i] - 1.0
                s = f / (2.0 + f)
                z = s * s
                g = _G1 + z * (_G2 + z * (_G3 + z * (_G4 + z * (_G5 + z * (_G6 + z * _G7)))))
                L = -(e * _LN2 + s * (2.0 + z * g))
                p = 1.0 / d if d > 1.0 and d <= _GREATEST else np.nan
                cell[j, 1, i] = L
                lane[0, i] += p
                lane[1, i] += p * L
                lane[2, i] += p * L * L
                lane[3, i] += p * L * L * L
        for i in range(_LANES):
            e = lane[0, i] - 1.0
            e = 1.0 if e > 1.0 else e
            f = e * (1.0 - e * (1 / 2 - e * (1 / 3 - e * (1 / 4 - e * (1 / 5 - e * (1 / 6 - e * (1 / 7)))))))
            k = 1.0 + _step(f, lane[0, i], lane[1, i], lane[2, i], lane[3, i])
            k = 0.125 if k < 0.125 else k
            lane[4, i] = 8.0 if k > 8.0 else k
            lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
        for step in range(_ROUNDS):
            for j in range(n):
                for i in range(_LANES):
                    L = cell[j, 1, i]
                    x = lane[4, i] * L
                    x = _LOWEST if x < _LOWEST else x
                    cell[j, 0, i] = x * _LOG2E + _ROUND
                    t = cell[j, 0, i] - _ROUND
                    bits[j, 0, i] = (bits[j, 0, i] + _BIAS) << 52
                    r = (x - t * _LN2_HIGH) - t * _LN2_LOW
                    h = _E2 + r * (_E3 + r * (_E4 + r * (_E5 + r * (_E6 + r * (_E7 + r * _E8)))))
                    p = cell[j, 0, i] * (1.0 + r + r * r * (_E0 + r * (_E1 + r * h)))
                    cell[j, 0, i] = p
                    lane[0, i] += p
                    lane[1, i] += p * L
                    lane[2, i] += p * L * L
                    lane[3, i] += p * L * L * L
            n_open = 0
            for i in range(_LANES):
                e = lane[0, i] - 1.0
                e = 1.0 if e > 1.0 else e
                f = e * (1.0 - e * (1 / 2 - e * (1 / 3)))
                x = _step(f, lane[0, i], lane[1, i], lane[2, i], lane[3, i])
                k = lane[4, i]
                x = -0.5 * k if x < -0.5 * k else x
                x = k if x > k else x
                lane[5, i] = x
                lane[6, i] = e
                n_open += (e > 2.0 * _CLOSE) | (e < -2.0 * _CLOSE)
                lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
            for j in range(n):
                for i in range(_LANES):
                    x = lane[5, i] * cell[j, 1, i]
                    p = cell[j, 0, i]
                    p += p * x * (1.0 + x * (1 / 2 + x * (1 / 6)))
                    cell[j, 0, i] = p
                    n_open += (x > _CLOSE) | (x < -_CLOSE) | (p < _LEAST) | (p >= 1.0)
            if n_open == 0:
                break
            for i in range(m):
                for j in range(n):
                    p = cell[j, 0, i]
                    x = abs(lane[5, i] * cell[j, 1, i])
                    if x > _CLOSE or abs(lane[6, i]) > 2.0 * _CLOSE or p < _LEAST or p >= 1.0:
                        if step < _ROUNDS - 1:
                            lane[4, i] += lane[5, i]
                        else:
                            _bisect(_POWER, cell, n, i)
                        break
        _write(out, n, starts, first, m, cell)


@fused
@allocating
def _shin(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve Shin for all markets of n > 2 outcomes, at `starts` or, if empty, one after the other."""
    cell = np.empty((n, 2, _LANES))  # per outcome: odds, then probability; a
    lane = np.empty((7, _LANES))  # sums of p, of its two derivatives in z, of 1 / r, zero between uses; z; its
    # last change over the least r; 1 / B
    for i in range(_LANES):
        lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, _LANES):
        m = markets - first if markets - first < _LANES else _LANES
        _read(odds, n, starts, first, m, cell)
        for j in range(n):
            for i in range(_LANES):
                d = cell[j, 0, i]
                q = 1.0 / d if d > 1.0 and d <= _GREATEST else np.nan
                cell[j, 0, i] = q
                lane[0, i] += q
        for i in range(_LANES):
            lane[4, i] = (lane[0, i] - 1.0) / (n - 1)
            lane[5, i] = 1.0
            lane[6, i] = 1.0 / lane[0, i]
            lane[0, i] = 0.0
        for j in range(n):
            for i in range(_LANES):
                q = cell[j, 0, i]
                cell[j, 1, i] = q * q * lane[6, i]
        n_open = 0
        for _ in range(_ROUNDS):
            for j in range(n):
                for i in range(_LANES):
                    a = cell[j, 1, i]
                    z = lane[4, i]
                    r = np.sqrt(z * z + 4.0 * (1.0 - z) * a)
                    w = 1.0 / r
                    numerator = r - z if z < 0.0 else 2.0 * a
                    denominator = 2.0 - 2.0 * z if z < 0.0 else r + z
                    p = numerator / denominator
                    u = p * (1.0 - p) * w
                    lane[0, i] += p
                    lane[1, i] -= u
                    lane[2, i] += u * w * (1.0 - 2.0 * p + (z - 2.0 * a) * w)
                    lane[3, i] += w
            n_open = 0
            for i in range(_LANES):
                f = lane[0, i] - 1.0
                x = -2.0 * f * lane[1, i] / (2.0 * lane[1, i] * lane[1, i] - f * lane[2, i])
                z = lane[4, i]
                y = z + x if z + x < 1.0 else 0.5 * (1.0 + z)
                x *= lane[3, i]
                is_done = (lane[5, i] <= _CLOSE_Z) & (lane[5, i] >= -_CLOSE_Z)  # then nothing may move any more
                lane[4, i] = z if is_done else y
                lane[5, i] = x
                lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
                n_open += (x > _CLOSE_Z) | (x < -_CLOSE_Z)
            if n_open == 0:
                break
        for j in range(n):
            for i in range(_LANES):
                a = cell[j, 1, i]
                z = lane[4, i]
                r = np.sqrt(z * z + 4.0 * (1.0 - z) * a)
                numerator = r - z if z < 0.0 else 2.0 * a
                denominator = 2.0 - 2.0 * z if z < 0.0 else r + z
                p = numerator / denominator
                cell[j, 0, i] = p
                n_open += (p < _LEAST) | (p >= 1.0)
        if n_open > 0:
            for i in range(m):
                is_open = abs(lane[5, i]) > _CLOSE_Z
                for j in range(n):
                    is_open = is_open or cell[j, 0, i] < _LEAST or cell[j, 0, i] >= 1.0
                if is_open:
                    _bisect(_SHIN, cell, n, i)
        _write(out, n, starts, first, m, cell)


@fused
@allocating
def _odds_ratio(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve the odds ratio for all markets of n outcomes, at `starts` or, if empty, one after the other."""
    cell = np.empty((n, 2, _LANES))  # per outcome: odds, then probability; odds - 1
    lane = np.empty((6, _LANES))  # sums of p v^0 .. p v^3, v = 1 - p, zero between uses; c; its relative change
    for i in range(_LANES):
        lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, _LANES):
        m = markets - first if markets - first < _LANES else _LANES
        _read(odds, n, starts, first, m, cell)
        for i in range(_LANES):
            lane[4, i] = 1.0
        for j in range(n):
            for i in range(_LANES):
                d = cell[j, 0, i]
                cell[j, 1, i] = d - 1.0 if d > 1.0 and d <= _GREATEST else np.nan
        n_open = 0
        for step in range(_ROUNDS):
            for j in range(n):
                for i in range(_LANES):
                    b = lane[4, i] * cell[j, 1, i]
                    p = 1.0 / (1.0 + b)
                    v = b * p
                    cell[j, 0, i] = p
                    lane[0, i] += p
                    lane[1, i] += p * v
                    lane[2, i] += p * v * v
                    lane[3, i] += p * v * v * v
            n_open = 0
            for i in range(_LANES):
                e = lane[0, i] - 1.0
                a = lane[1, i]
                b = lane[2, i]
                x = e * (a * a - e * b) / (a * (a * a - 2.0 * e * b) + e * e * lane[3, i])
                x = -0.875 if x < -0.875 else x
                x = 7.0 if x > 7.0 else x
                c = lane[4, i]
                is_open = (x > _CLOSE) | (x < -_CLOSE)
                n_open += is_open
                lane[4, i] = c + c * x if is_open else c
                lane[5, i] = x
                lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
            if step > 0:
                for j in range(n):
                    for i in range(_LANES):
                        p = cell[j, 0, i]
                        x = lane[5, i] * (1.0 - p)
                        p *= 1.0 - x * (1.0 - x * (1.0 - x))
                        cell[j, 0, i] = p
                        n_open += (p < _LEAST) | (p >= 1.0)
                if n_open == 0:
                    break
        if n_open > 0:
            for i in range(m):
                for j in range(n):
                    p = cell[j, 0, i]
                    if abs(lane[5, i]) > _CLOSE or p < _LEAST or p >= 1.0:
                        _bisect(_ODDS_RATIO, cell, n, i)
                        break
        _write(out, n, starts, first, m, cell)


@fused
def _two(odds: Floats, method: int, out: Floats) -> None:
    """Solve pairs in closed form: `method` is `_MULTIPLICATIVE`, `_ADDITIVE` (also Shin) or `_ODDS_RATIO`."""
    for i in range(odds.size // 2):
        a = odds[2 * i]
        b = odds[2 * i + 1]
        if method == _MULTIPLICATIVE:
            w = 1.0 / (a + b)
            p, q = b * w, a * w
        elif method == _ADDITIVE:
            w = 0.5 * (1.0 / a - 1.0 / b)
            p, q = 0.5 + w, 0.5 - w
        else:
            w = np.sqrt((a - 1.0) / (b - 1.0))
            p = 1.0 / (1.0 + w)
            q = w * p
        is_valid = (a > 1.0) & (a <= _GREATEST) & (b > 1.0) & (b <= _GREATEST)
        is_valid &= (p > 0.0) & (p < 1.0) & (q > 0.0) & (q < 1.0)
        out[2 * i] = p if is_valid else np.nan
        out[2 * i + 1] = q if is_valid else np.nan


@fused
@allocating
def _plain(odds: Floats, n: int, starts: Longs, method: int, out: Floats) -> None:
    """Solve n outcomes in closed form: `method` is `_MULTIPLICATIVE` or `_ADDITIVE`."""
    cell = np.empty((n, 1, _LANES))  # per outcome: odds, then probability
    lane = np.empty((3, _LANES))  # sum of q, then what is taken off; factor; `nan` where there is no answer
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, _LANES):
        m = markets - first if markets - first < _LANES else _LANES
        _read(odds, n, starts, first, m, cell)
        for i in range(_LANES):
            lane[0, i] = 0.0
        for j in range(n):
            for i in range(_LANES):
                d = cell[j, 0, i]
                q = 1.0 / d if d > 1.0 and d <= _GREATEST else np.nan
                cell[j, 0, i] = q
                lane[0, i] += q
        for i in range(_LANES):
            total = lane[0, i]
            lane[0, i] = (total - 1.0) / n if method == _ADDITIVE else 0.0
            lane[1, i] = 1.0 if method == _ADDITIVE else 1.0 / total
            lane[2, i] = 0.0
        for j in range(n):
            for i in range(_LANES):
                p = cell[j, 0, i] * lane[1, i] - lane[0, i]
                cell[j, 0, i] = p
                lane[2, i] = lane[2, i] if (p > 0.0) & (p < 1.0) else np.nan
        for j in range(n):
            for i in range(_LANES):
                cell[j, 0, i] += lane[2, i]
        _write(out, n, starts, first, m, cell)


@fused
@allocating
def _goto(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve goto for all markets of n outcomes, at `starts` or, if empty, one after the other."""
    cell = np.empty((n, 2, _LANES))  # per outcome: odds, then probability; standard error
    lane = np.empty((3, _LANES))  # sums of q and of the errors, then c; `nan` where there is no answer
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, _LANES):
        m = markets - first if markets - first < _LANES else _LANES
        _read(odds, n, starts, first, m, cell)
        for i in range(_LANES):
            lane[0, i] = lane[1, i] = lane[2, i] = 0.0
        for j in range(n):
            for i in range(_LANES):
                d = cell[j, 0, i]
                q = 1.0 / d if d > 1.0 and d <= _GREATEST else np.nan
                error = np.sqrt((d - 1.0) * q)
                cell[j, 0, i] = q
                cell[j, 1, i] = error
                lane[0, i] += q
                lane[1, i] += error
        for i in range(_LANES):
            lane[1, i] = (lane[0, i] - 1.0) / lane[1, i]
        for j in range(n):
            for i in range(_LANES):
                p = cell[j, 0, i] - lane[1, i] * cell[j, 1, i]
                cell[j, 0, i] = p
                lane[2, i] = lane[2, i] if (p > 0.0) & (p < 1.0) else np.nan
        for j in range(n):
            for i in range(_LANES):
                cell[j, 0, i] += lane[2, i]
        _write(out, n, starts, first, m, cell)


@fused
def _deviate(odds: float) -> float:
    """Phi^-1(1 / odds) to one part in 1e16, Wichura's AS 241."""
    x = 1.0 / odds - 0.5
    if abs(x) <= 0.425:
        r = 0.180625 - x * x
        a = 3.3430575583588128105e4 + r * 2.5090809287301226727e3
        a = 1.3731693765509461125e4 + r * (4.5921953931549871457e4 + r * (6.7265770927008700853e4 + r * a))
        a = 3.3871328727963666080e0 + r * (1.3314166789178437745e2 + r * (1.9715909503065514427e3 + r * a))
        b = 2.8729085735721942674e4 + r * 5.2264952788528545610e3
        b = 5.3941960214247511077e3 + r * (2.1213794301586595867e4 + r * (3.9307895800092710610e4 + r * b))
        b = 1.0 + r * (4.2313330701600911252e1 + r * (6.8718700749205790830e2 + r * b))
        return x * a / b
    tail = 1.0 / odds if x < 0.0 else (odds - 1.0) / odds
    r = math.sqrt(-math.log(tail))
    if r <= 5.0:
        r -= 1.6
        a = 2.27238449892691845833e-2 + r * 7.74545014278341407640e-4
        a = 1.27045825245236838258e0 + r * (2.41780725177450611770e-1 + r * a)
        a = 5.76949722146069140550e0 + r * (3.64784832476320460504e0 + r * a)
        a = 1.42343711074968357734e0 + r * (4.63033784615654529590e0 + r * a)
        b = 5.47593808499534494600e-4 + r * 1.05075007164441684324e-9
        b = 1.48103976427480074590e-1 + r * (1.51986665636164571966e-2 + r * b)
        b = 1.67638483018380384940e0 + r * (6.89767334985100004550e-1 + r * b)
        b = 1.0 + r * (2.05319162663775882187e0 + r * b)
    else:
        r -= 5.0
        a = 2.71155556874348757815e-5 + r * 2.01033439929228813265e-7
        a = 2.65321895265761230930e-2 + r * (1.24266094738807843860e-3 + r * a)
        a = 1.78482653991729133580e0 + r * (2.96560571828504891230e-1 + r * a)
        a = 6.65790464350110377720e0 + r * (5.46378491116411436990e0 + r * a)
        b = 1.42151175831644588870e-7 + r * 2.04426310338993978564e-15
        b = 7.86869131145613259100e-4 + r * (1.84631831751005468180e-5 + r * b)
        b = 1.36929880922735805310e-1 + r * (1.48753612908506148525e-2 + r * b)
        b = 1.0 + r * (5.99832206555887937690e-1 + r * b)
    return -a / b if x < 0.0 else a / b


@fused
def _probit(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve probit for all markets of n outcomes, at `starts` or, if empty, one after the other."""
    equal = _deviate(float(n))
    markets = starts.size if starts.size > 0 else odds.size // n
    for market in range(markets):
        start = starts[market] if starts.size > 0 else market * n
        low, high = np.inf, -np.inf
        best = start  # the favourite, whose tail keeps the digits that its probability loses near 1
        for k in range(start, start + n):
            d = odds[k]
            z = _deviate(d) if d > 1.0 and d <= _GREATEST else np.nan
            best = k if z > high else best
            low = z if not z >= low else low  # also nan, which then fails every comparison
            high = z if z > high else high
            out[k] = z
        low, high = low - equal, high - equal
        s = 0.5 * (low + high) if n == 2 else min(max(0.0, low), high)
        is_solved = False
        for _ in range(_BISECTIONS):
            f, f1, f2 = 0.0, 0.0, 0.0  # sum of p less 1, and its first two derivatives, negated
            for k in range(start, start + n):
                x = out[k] - s
                f += -0.5 * math.erfc(x / _ROOT2) if k == best else 0.5 * math.erfc(-x / _ROOT2)
                density = _DENSITY * math.exp(-0.5 * x * x)
                f1 += density
                f2 += x * density
            if f > 0.0:
                low = s
            else:
                high = s
            step = 2.0 * f * f1 / (2.0 * f1 * f1 + f * f2)
            is_solved = abs(step) <= _SHIFT_CLOSE
            s = s + step if is_solved or low < s + step < high else 0.5 * (low + high)
            if is_solved:
                break
        for k in range(start, start + n):
            out[k] = 0.5 * math.erfc((s - out[k]) / _ROOT2)
            is_solved = is_solved and out[k] > 0.0 and out[k] < 1.0
        if not is_solved:
            for k in range(start, start + n):
                out[k] = np.nan


def _together(odds: Floats, n: int, starts: Longs) -> tuple[Floats, Longs]:
    """Markets of n outcomes laid end to end, and the places they came from."""
    places = (starts[:, np.newaxis] + np.arange(n)).reshape(-1)
    return odds[places], places


def _fair_two(odds: Floats, starts: Longs, method: int, out: Floats) -> None:
    """Two outcomes, in place if they lie one after the other, gathered and put back otherwise."""
    if starts.size == 0:
        _two(odds, method, out)
        return
    pairs, places = _together(odds, 2, starts)
    _two(pairs, method, pairs)
    out[places] = pairs


def _by_size(method: int, solve: _Solver) -> _Solver:
    """Solve markets of two outcomes by `_two`, larger ones by a solver of their own."""

    def fair(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
        if n == 2:
            _fair_two(odds, starts, method, out)
        else:
            solve(odds, n, starts, out)

    return fair


_fair_multiplicative = _by_size(0, lambda odds, n, starts, out: _plain(odds, n, starts, 0, out))
_fair_additive = _by_size(1, lambda odds, n, starts, out: _plain(odds, n, starts, 1, out))
_fair_shin = _by_size(1, _shin)
_fair_odds_ratio = _by_size(2, _odds_ratio)


def _sliced(solve: Callable[[Floats, int], Floats]) -> _Solver:
    """Solve by several methods, a slice of markets at a time so that it stays in cache."""

    def fair(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
        if starts.size > 0:
            markets, places = _together(odds, n, starts)
            fair(markets, n, _TOGETHER, markets)
            out[places] = markets
            return
        for first in range(0, odds.size, _SLICE * n):
            out[first : first + _SLICE * n] = solve(odds[first : first + _SLICE * n], n)

    return fair


def _least(odds: Floats, n: int) -> Floats:
    """Minimum of five methods."""
    least, other = np.empty_like(odds), np.empty_like(odds)
    _power(odds, n, _TOGETHER, least)
    for solve in (_fair_multiplicative, _fair_additive, _fair_shin, _fair_odds_ratio):
        solve(odds, n, _TOGETHER, other)
        np.minimum(least, other, out=least)
    return least


def _blend(weights: Mapping[str, float]) -> _Solver:
    """Weighted mean of methods."""
    total = math.fsum(weights.values())

    def mean(odds: Floats, n: int) -> Floats:
        fair, other = np.zeros_like(odds), np.empty_like(odds)
        for name, weight in weights.items():
            _SOLVERS[name](odds, n, _TOGETHER, other)
            fair += weight / total * other
        return fair

    return _sliced(mean)


_SOLVERS: dict[str, _Solver] = {
    "multiplicative": _fair_multiplicative,
    "additive": _fair_additive,
    "power": _power,
    "shin": _fair_shin,
    "odds_ratio": _fair_odds_ratio,
    "logarithmic": _fair_odds_ratio,
    "goto": _goto,
    "probit": _probit,
    "worst_case": _sliced(_least),
}
DEVIG_METHODS = tuple(_SOLVERS)
DEVIG_ALIASES = {
    "basic": "multiplicative",
    "proportional": "multiplicative",
    "wpo": "additive",
    "differential_margin_weighting": "additive",
    "logit": "odds_ratio",
    "or": "odds_ratio",
    "goto_conversion": "goto",
}
"""Other names of methods, in use elsewhere."""


def method_name(method: Method, others: Collection[str] = ()) -> str:
    """Resolve a method to the one name that it has in this package; that of a blend is `power=0.5,shin=0.5`.

    Parameters
    ----------
    method : str or mapping
        A name, an alias, weights by name, or the same as text: `shin=2,power=1`.
    others : collection of str
        Names that the caller accepts as well.

    Returns
    -------
    str
        A name of `DEVIG_METHODS` or `others`, or that of a blend, in the order of `DEVIG_METHODS`.

    Raises
    ------
    ValueError
        For an unknown method, a weight that is not a finite number above 0, or `worst_case` in a blend.

    Examples
    --------
    >>> method_name("wpo"), method_name({"shin": 2, "goto_conversion": 1})
    ('additive', 'shin=2.0,goto=1.0')
    """
    if isinstance(method, str) and "=" not in method:
        name = DEVIG_ALIASES.get(method, method)
        if name not in _SOLVERS and name not in others:
            raise ValueError(f"method must be {_choices(others)}, got {excerpt(method)}")
        return name
    weights = _weights(method)
    if len(weights) == 1:
        return next(iter(weights))
    return ",".join(f"{name}={weight!r}" for name, weight in weights.items())


def _choices(others: Collection[str] = ()) -> str:
    """The methods that can be chosen, for errors."""
    names = ", ".join((*DEVIG_METHODS, *others))
    return f"one of {names} (or an alias: {', '.join(DEVIG_ALIASES)}), or weights such as {{'shin': 0.5, 'power': 0.5}}"


def _weights(method: Method) -> dict[str, float]:
    """Weights of a blend by the names of its methods; those of aliases of one method are added."""
    if isinstance(method, str):
        parts = [part.partition("=") for part in method.split(",")]
        try:
            pairs = [(name.strip(), float(weight)) for name, _, weight in parts]
        except ValueError:
            raise ValueError(
                f"weights of methods must be written as in shin=0.5,power=0.5, got {excerpt(method)}"
            ) from None
    elif isinstance(method, Mapping) and method:
        pairs = list(method.items())
    else:
        raise ValueError(f"method must be {_choices()}, got {excerpt(method)}")
    weights: dict[str, float] = {}
    for given, weight in pairs:
        name = DEVIG_ALIASES.get(given, given)
        if name not in _SOLVERS or name == "worst_case":
            allowed = ", ".join(each for each in DEVIG_METHODS if each != "worst_case")
            raise ValueError(f"a blend must be of {allowed}, whose probabilities sum to 1, got {excerpt(given)}")
        if not (isinstance(weight, Real) and 0.0 < float(weight) < math.inf):
            raise ValueError(f"weights of methods must be finite numbers above 0, got {excerpt(weight)} for {given}")
        weights[name] = weights.get(name, 0.0) + float(weight)
    return {name: weights[name] for name in DEVIG_METHODS if name in weights}


def blend_weights(name: str) -> dict[str, float]:
    """Weights by method of a name from `method_name`; that of a method which is no blend is 1.

    Examples
    --------
    >>> blend_weights("shin=2.0,goto=1.0"), blend_weights("power")
    ({'shin': 2.0, 'goto': 1.0}, {'power': 1.0})
    """
    return _weights(name) if "=" in name else {name: 1.0}


def _solver(method: Method) -> _Solver:
    """Look a method up by its name; for a blend, make its solver."""
    solve = _SOLVERS.get(method) if isinstance(method, str) else None
    if solve is None:
        name = method_name(method)
        solve = _blend(_weights(name)) if "=" in name else _SOLVERS[name]
    return solve


def _fair(odds: Floats, offsets: Longs, method: Method, out: Floats) -> None:
    """Fair probabilities of ragged markets into `out`, for callers that keep their own columns.

    Market i is `odds[offsets[i]:offsets[i + 1]]`. Nothing is checked or converted: `odds` and `out` are flat,
    contiguous, writeable float64 of one length, `offsets` is int64 and does not fall. Places of `out` outside
    all markets are left alone; every other place is written. Markets of one size that lie one after the other
    are solved where they are; otherwise markets of each size are solved together, gathered by their starts.
    """
    solve = _solver(method)
    if offsets.size < 2:
        return
    sizes = np.diff(offsets)
    n = int(sizes[0])
    if (sizes == n).all():
        whole = slice(int(offsets[0]), int(offsets[-1]))
        _each(solve, odds[whole], n, _TOGETHER, out[whole])
        return
    for n in np.flatnonzero(np.bincount(sizes)).tolist():
        _each(solve, odds, n, offsets[np.flatnonzero(sizes == n)], out)


def _each(solve: _Solver, odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve markets of one size; a single outcome has no answer."""
    if n > 1:
        solve(odds, n, starts, out)
    elif n == 1:
        out[starts if starts.size else slice(None)] = np.nan


def devig(odds: npt.ArrayLike, method: Method = "power") -> Floats:
    """Fair probabilities of one market, or of many markets with equally many outcomes.

    Parameters
    ----------
    odds : array_like
        Decimal odds of one market, shape (outcomes,), or of many, shape (markets, outcomes).
    method : str or mapping
        One of `DEVIG_METHODS` or `DEVIG_ALIASES`, or weights of several: their weighted mean.

    Returns
    -------
    ndarray
        Fair probabilities in (0, 1), in the shape of `odds`; a market without an answer is all `nan`.

    Raises
    ------
    ValueError
        For an unknown method, weights that are not finite numbers above 0, or odds that are neither 1-D nor 2-D.

    Examples
    --------
    >>> devig([2.7, 2.3, 4.4]).round(6).tolist()
    [0.359171, 0.423731, 0.217098]
    >>> devig([[1.9, 1.9], [1.0, 3.0]], method="shin").tolist()
    [[0.5, 0.5], [nan, nan]]
    >>> devig([2.7, 2.3, 4.4], {"shin": 0.5, "power": 0.5}).round(6).tolist()
    [0.359258, 0.423487, 0.217255]
    """
    solve = _solver(method)
    prices = np.require(decimal_odds(odds), dtype=np.float64, requirements=["C", "A", "W"])
    if prices.ndim not in (1, 2):
        raise ValueError(f"odds must be 1-D (one market) or 2-D (markets x outcomes), got {prices.ndim}-D")
    out = np.empty_like(prices)
    if out.size:
        _each(solve, prices.reshape(-1), prices.shape[-1], _TOGETHER, out.reshape(-1))
    return out


def devig_groups(odds: npt.ArrayLike, offsets: npt.ArrayLike, method: Method = "power") -> Floats:
    """Fair probabilities of markets of any sizes, laid end to end in one flat array.

    Parameters
    ----------
    odds : array_like
        Decimal odds, shape (k,).
    offsets : array_like of int
        Market i is `odds[offsets[i]:offsets[i + 1]]`: starts at 0, never falls, ends at k.
    method : str or mapping
        One of `DEVIG_METHODS` or `DEVIG_ALIASES`, or weights of several: their weighted mean.

    Returns
    -------
    ndarray
        Fair probabilities in (0, 1), shape (k,); a market without an answer is all `nan`.

    Raises
    ------
    ValueError
        For an unknown method or invalid weights, odds that are not 1-D, or offsets that do not cover them.

    Examples
    --------
    >>> devig_groups([2.0, 2.0, 3.0, 3.0, 3.0], [0, 2, 5], method="multiplicative").round(4).tolist()
    [0.5, 0.5, 0.3333, 0.3333, 0.3333]
    """
    prices = np.require(decimal_odds(odds), dtype=np.float64, requirements=["C", "A", "W"])
    bounds = np.require(offsets, dtype=np.int64, requirements=["C", "A", "W"])
    if np.asarray(offsets).dtype.kind not in "iu" and not np.array_equal(bounds, offsets):
        raise ValueError(f"offsets must be whole numbers, got {np.asarray(offsets).tolist()}")
    if prices.ndim != 1 or bounds.ndim != 1:
        raise ValueError(f"odds and offsets must be 1-D, got {prices.ndim}-D and {bounds.ndim}-D")
    if bounds.size == 0 or bounds[0] != 0 or bounds[-1] != prices.size or (bounds[1:] < bounds[:-1]).any():
        raise ValueError(f"offsets must start at 0, not decrease, and end at the number of odds, {prices.size}")
    out = np.empty_like(prices)
    _fair(prices, bounds, method, out)
    return out
