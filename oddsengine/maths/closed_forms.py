"""Margins that need no solver: multiplicative, additive and goto, and pairs of outcomes.

The methods are those of `oddsengine.maths.devig`; for two outcomes Shin's method is the additive one, and the odds
ratio has a closed form.

Arguments of the kernels:

- `odds`, `out` (float64 per outcome): prices, market after market, and the probabilities to write
- `n`: number of outcomes
- `starts` (int64 per market): where each market begins; empty if they follow each other
"""

import numpy as np

from oddsengine._jit import allocating, fused
from oddsengine.columns import Floats, Longs
from oddsengine.maths.lanes import GREATEST, LANES, read, write

MULTIPLICATIVE, ADDITIVE, ODDS_RATIO = 0, 1, 2


@fused
def two(odds: Floats, method: int, out: Floats) -> None:
    """Solve pairs in closed form: `method` is `MULTIPLICATIVE`, `ADDITIVE` (also Shin) or `ODDS_RATIO`."""
    for i in range(odds.size // 2):
        a = odds[2 * i]
        b = odds[2 * i + 1]
        if method == MULTIPLICATIVE:
            w = 1.0 / (a + b)
            p, q = b * w, a * w
        elif method == ADDITIVE:
            w = 0.5 * (1.0 / a - 1.0 / b)
            p, q = 0.5 + w, 0.5 - w
        else:
            w = np.sqrt((a - 1.0) / (b - 1.0))
            p = 1.0 / (1.0 + w)
            q = w * p
        is_valid = (a > 1.0) & (a <= GREATEST) & (b > 1.0) & (b <= GREATEST)
        is_valid &= (p > 0.0) & (p < 1.0) & (q > 0.0) & (q < 1.0)
        out[2 * i] = p if is_valid else np.nan
        out[2 * i + 1] = q if is_valid else np.nan


@fused
@allocating
def plain(odds: Floats, n: int, starts: Longs, method: int, out: Floats) -> None:
    """Solve n outcomes in closed form: `method` is `MULTIPLICATIVE` or `ADDITIVE`."""
    cell = np.empty((n, 1, LANES))  # per outcome: odds, then probability
    lane = np.empty((3, LANES))  # sum of q, then what is taken off; factor; `nan` where there is no answer
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, LANES):
        m = markets - first if markets - first < LANES else LANES
        read(odds, n, starts, first, m, cell)
        for i in range(LANES):
            lane[0, i] = 0.0
        for j in range(n):
            for i in range(LANES):
                d = cell[j, 0, i]
                q = 1.0 / d if d > 1.0 and d <= GREATEST else np.nan
                cell[j, 0, i] = q
                lane[0, i] += q
        for i in range(LANES):
            total = lane[0, i]
            lane[0, i] = (total - 1.0) / n if method == ADDITIVE else 0.0
            lane[1, i] = 1.0 if method == ADDITIVE else 1.0 / total
            lane[2, i] = 0.0
        for j in range(n):
            for i in range(LANES):
                p = cell[j, 0, i] * lane[1, i] - lane[0, i]
                cell[j, 0, i] = p
                lane[2, i] = lane[2, i] if (p > 0.0) & (p < 1.0) else np.nan
        for j in range(n):
            for i in range(LANES):
                cell[j, 0, i] += lane[2, i]
        write(out, n, starts, first, m, cell)


@fused
@allocating
def goto(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve goto for all markets of n outcomes, at `starts` or, if empty, one after the other."""
    cell = np.empty((n, 2, LANES))  # per outcome: odds, then probability; standard error
    lane = np.empty((3, LANES))  # sums of q and of the errors, then c; `nan` where there is no answer
    markets = starts.size if starts.size > 0 else odds.size // n
    for first in range(0, markets, LANES):
        m = markets - first if markets - first < LANES else LANES
        read(odds, n, starts, first, m, cell)
        for i in range(LANES):
            lane[0, i] = lane[1, i] = lane[2, i] = 0.0
        for j in range(n):
            for i in range(LANES):
                d = cell[j, 0, i]
                q = 1.0 / d if d > 1.0 and d <= GREATEST else np.nan
                error = np.sqrt((d - 1.0) * q)
                cell[j, 0, i] = q
                cell[j, 1, i] = error
                lane[0, i] += q
                lane[1, i] += error
        for i in range(LANES):
            lane[1, i] = (lane[0, i] - 1.0) / lane[1, i]
        for j in range(n):
            for i in range(LANES):
                p = cell[j, 0, i] - lane[1, i] * cell[j, 1, i]
                cell[j, 0, i] = p
                lane[2, i] = lane[2, i] if (p > 0.0) & (p < 1.0) else np.nan
        for j in range(n):
            for i in range(LANES):
                cell[j, 0, i] += lane[2, i]
        write(out, n, starts, first, m, cell)
