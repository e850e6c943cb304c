"""The probit method of removing margins: one shift of the normal scores of all outcomes of a market.

p_i = Phi(Phi^-1(q_i) - s), as in `oddsengine.maths.devig`. It has no series as short as the other methods: s is found
by Halley steps, one market at a time, between the shifts at which all p_i are at most, and at least, 1 / n.

Reference: M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics
37(3), 1988, https://doi.org/10.2307/2347330 (Phi^-1).

Arguments of the kernels:

- `odds`, `out` (float64 per outcome): prices, market after market, and the probabilities to write
- `n`: number of outcomes
- `starts` (int64 per market): where each market begins; empty if they follow each other
"""

import math

import numpy as np

from oddsengine._jit import fused
from oddsengine.columns import Floats, Longs
from oddsengine.maths.lanes import GREATEST

_BISECTIONS = 100  # enough to halve any bracket of doubles to one unit in the last place
_SHIFT_CLOSE = 1e-8  # change of the shift below which the last step leaves no error
_ROOT2, _DENSITY = math.sqrt(2.0), 1.0 / math.sqrt(2.0 * math.pi)


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
def probit(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
    """Solve probit for all markets of n outcomes, at `starts` or, if empty, one after the other."""
    equal = _deviate(float(n))
    markets = starts.size if starts.size > 0 else odds.size // n
    for market in range(markets):
        start = starts[market] if starts.size > 0 else market * n
        low, high = np.inf, -np.inf
        best = start  # the favourite, whose tail keeps the digits that its probability loses near 1
        for k in range(start, start + n):
            d = odds[k]
            z = _deviate(d) if d > 1.0 and d <= GREATEST else np.nan
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
