"""Solvers of the power method, Shin's and the odds ratio: one unknown for each market, many markets side by side.

The methods are those of `oddsengine.maths.devig`. Power takes L = log q and the moments s_m = sum q^k L^m; a
Householder step of order 4 on log s_0 from k = 1, where q^k = q needs no exponential, lands close; after one
exponential per outcome a second step is applied as a series in x = (change of k) L, and repeated only where |x| is not
small. Shin takes Halley steps from z = (B - 1) / (n - 1), and the odds ratio the same steps as power on sum p_i. A lane
that is not close after a few rounds is bisected.

Reference: A. S. Householder, "The numerical treatment of a single nonlinear equation", McGraw-Hill, 1970.

Arguments of the kernels:

- `odds`, `out` (float64 per outcome): prices, market after market, and the probabilities to write
- `n`: number of outcomes
- `starts` (int64 per market): where each market begins; empty if they follow each other
- `cell` (float64, n by 2 by lanes): per outcome and lane, the price, later the probability; and a function of the
  price
- `i`: the lane
"""

import math

import numpy as np

from oddsengine._jit import allocating, fused
from oddsengine.columns import Floats, Longs
from oddsengine.maths.lanes import GREATEST, LANES, read, write

_ROUNDS = 4  # refinements of a block before its open lanes are bisected
_CLOSE = 3e-4  # relative change of a probability below which the last step is a short series
_CLOSE_Z = 3e-5  # the same for Shin, whose last step is Halley's
_BISECTIONS = 100  # enough to halve any bracket of doubles, in the logarithm, to one unit in the last place
_TOLERANCE = 1e-12  # a bisected market whose sum is farther than this from 1 did not converge
_LEAST = 1e-300  # probabilities below have left what the exponential can hold

_POWER, _SHIN, _ODDS_RATIO = 0, 1, 2

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
def power(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve the power method for all markets of n outcomes, at `starts` or, if empty, one after the other."""
    cell = np.empty((n, 2, LANES))  # per outcome: odds, then probability; log of the implied probability
    bits = cell.view(np.int64)
    lane = np.empty((7, LANES))  # moments s_0 .. s_3, zero between uses; k; its last change; s_0 - 1
    for i in range(LANES):
        lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, LANES):
        m = markets - first if markets - first < LANES else LANES
        read(odds, n, starts, first, m, cell)
        for j in range(n):
            for i in range(LANES):
                d = cell[j, 0, i]
                e = (bits[j, 0, i] - _SQRT_HALF) >> 52
                bits[j, 1, i] = bits[j, 0, i] - (e << 52)
                f = cell[j, 1, i] - 1.0
                s = f / (2.0 + f)
                z = s * s
                g = _G1 + z * (_G2 + z * (_G3 + z * (_G4 + z * (_G5 + z * (_G6 + z * _G7)))))
                L = -(e * _LN2 + s * (2.0 + z * g))
                p = 1.0 / d if d > 1.0 and d <= GREATEST else np.nan
                cell[j, 1, i] = L
                lane[0, i] += p
                lane[1, i] += p * L
                lane[2, i] += p * L * L
                lane[3, i] += p * L * L * L
        for i in range(LANES):
            e = lane[0, i] - 1.0
            e = 1.0 if e > 1.0 else e
            f = e * (1.0 - e * (1 / 2 - e * (1 / 3 - e * (1 / 4 - e * (1 / 5 - e * (1 / 6 - e * (1 / 7)))))))
            k = 1.0 + _step(f, lane[0, i], lane[1, i], lane[2, i], lane[3, i])
            k = 0.125 if k < 0.125 else k
            lane[4, i] = 8.0 if k > 8.0 else k
            lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
        for step in range(_ROUNDS):
            for j in range(n):
                for i in range(LANES):
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
            for i in range(LANES):
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
                for i in range(LANES):
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
        write(out, n, starts, first, m, cell)


@fused
@allocating
def shin(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve Shin for all markets of n > 2 outcomes, at `starts` or, if empty, one after the other."""
    cell = np.empty((n, 2, LANES))  # per outcome: odds, then probability; a
    lane = np.empty((7, LANES))  # sums of p, of its two derivatives in z, of 1 / r, zero between uses; z; its
    # last change over the least r; 1 / B
    for i in range(LANES):
        lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, LANES):
        m = markets - first if markets - first < LANES else LANES
        read(odds, n, starts, first, m, cell)
        for j in range(n):
            for i in range(LANES):
                d = cell[j, 0, i]
                q = 1.0 / d if d > 1.0 and d <= GREATEST else np.nan
                cell[j, 0, i] = q
                lane[0, i] += q
        for i in range(LANES):
            lane[4, i] = (lane[0, i] - 1.0) / (n - 1)
            lane[5, i] = 1.0
            lane[6, i] = 1.0 / lane[0, i]
            lane[0, i] = 0.0
        for j in range(n):
            for i in range(LANES):
                q = cell[j, 0, i]
                cell[j, 1, i] = q * q * lane[6, i]
        n_open = 0
        for _ in range(_ROUNDS):
            for j in range(n):
                for i in range(LANES):
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
            for i in range(LANES):
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
            for i in range(LANES):
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
        write(out, n, starts, first, m, cell)


@fused
@allocating
def odds_ratio(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve the odds ratio for all markets of n outcomes, at `starts` or, if empty, one after the other."""
    cell = np.empty((n, 2, LANES))  # per outcome: odds, then probability; odds - 1
    lane = np.empty((6, LANES))  # sums of p v^0 .. p v^3, v = 1 - p, zero between uses; c; its relative change
    for i in range(LANES):
        lane[0, i] = lane[1, i] = lane[2, i] = lane[3, i] = 0.0
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, LANES):
        m = markets - first if markets - first < LANES else LANES
        read(odds, n, starts, first, m, cell)
        for i in range(LANES):
            lane[4, i] = 1.0
        for j in range(n):
            for i in range(LANES):
                d = cell[j, 0, i]
                cell[j, 1, i] = d - 1.0 if d > 1.0 and d <= GREATEST else np.nan
        n_open = 0
        for step in range(_ROUNDS):
            for j in range(n):
                for i in range(LANES):
                    b = lane[4, i] * cell[j, 1, i]
                    p = 1.0 / (1.0 + b)
                    v = b * p
                    cell[j, 0, i] = p
                    lane[0, i] += p
                    lane[1, i] += p * v
                    lane[2, i] += p * v * v
                    lane[3, i] += p * v * v * v
            n_open = 0
            for i in range(LANES):
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
                    for i in range(LANES):
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
        write(out, n, starts, first, m, cell)
