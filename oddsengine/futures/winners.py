"""Margin removal with several winners: fair probabilities from one book's prices of a whole field.

Of n contestants exactly w win (a title: 1; a top-4 finish: 4; to reach the final: 2). A book's implied probabilities
q_i = 1 / d_i sum to more than w, the fair ones to w. For w = 1 this is `oddsengine.maths.devig`; for w > 1 its
methods use w instead of 1:

==============  ==================================  =================================================
method          fair probability                    unknown, from sum p_i = w
==============  ==================================  =================================================
multiplicative  p_i = q_i w / B, B = sum q_i        none
additive        p_i = q_i - (B - w) / n             none
power           p_i = q_i ** k                      k > 0; the sum falls from n to 0 as k grows
odds_ratio      p_i = 1 / (1 + c (d_i - 1))         c > 0; the sum falls from n to 0 as c grows
logarithmic     the same as odds_ratio
goto            p_i = q_i - c sqrt(1 - q_i)         c = (B - w) / sum sqrt(1 - q_i)
probit          p_i = Phi(Phi^-1(q_i) - s)          s; the sum falls from n to 0 as s grows
worst_case      the least of multiplicative, additive, power and odds_ratio, outcome by outcome; the sum is at most w
a blend         the weighted mean of methods
==============  ==================================  =================================================

`shin` models one winner and is `nan` for more. Prices that sum to exactly w are returned unchanged.

The whole field is `nan` for an invalid price, fewer contestants than w + 1, a probability outside (0, 1)
(multiplicative, additive and goto, with strong favourites and many places), or a solver that does not converge.

Reference: the methods are those of `oddsengine.maths.devig`. Deriving probabilities of a place from those of a win is
another problem: D. A. Harville, "Assigning probabilities to the outcomes of multi-entry competitions", Journal of the
American Statistical Association 68, 1973,
https://doi.org/10.1080/01621459.1973.10482425.
"""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from oddsengine.columns import Floats
from oddsengine.maths.devig import Method, blend_weights, devig, method_name

_WIDEST = 600.0  # bracket, in the logarithm of the unknown
_BISECTIONS = 200  # enough to reach one unit in the last place
_TOLERANCE = 1e-9  # maximum error of a field's sum


def _multiplicative(odds: Floats, places: int) -> Floats:
    q = 1.0 / odds
    return np.asarray(q * (places / q.sum()))


def _additive(odds: Floats, places: int) -> Floats:
    q = 1.0 / odds
    return np.asarray(q - (q.sum() - places) / q.size)


def _power(odds: Floats, places: int) -> Floats:
    log = -np.log(odds)
    return _solved(lambda k: np.exp(k * log), places)


def _odds_ratio(odds: Floats, places: int) -> Floats:
    return _solved(lambda c: 1.0 / (1.0 + c * (odds - 1.0)), places)


def _goto(odds: Floats, places: int) -> Floats:
    q, error = 1.0 / odds, np.sqrt((odds - 1.0) / odds)
    return np.asarray(q - (q.sum() - places) / error.sum() * error)


def _probit(odds: Floats, places: int) -> Floats:
    quantile = NormalDist().inv_cdf
    scores = [quantile(1.0 / d) if d > 2.0 else -quantile((d - 1.0) / d) for d in odds.tolist()]

    def at(x: float) -> Floats:
        return np.array([0.5 * math.erfc((math.log(x) - score) / math.sqrt(2.0)) for score in scores])

    return _solved(at, places)


def _solved(at: Callable[[float], Floats], places: int) -> Floats:
    """Bisect the logarithm of the unknown; the sum decreases with it."""
    low, high = -_WIDEST, _WIDEST
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if float(at(float(np.exp(middle))).sum()) > places:
            low = middle
        else:
            high = middle
    probs = at(float(np.exp(0.5 * (low + high))))
    return probs if abs(float(probs.sum()) - places) <= _TOLERANCE * places else np.full(probs.size, np.nan)


def _worst_case(odds: Floats, places: int) -> Floats:
    return np.asarray(np.min([solve(odds, places) for solve in _PLAIN], axis=0))


_PLAIN = (_multiplicative, _additive, _power, _odds_ratio)
_SOLVERS: dict[str, Callable[[Floats, int], Floats]] = {
    "multiplicative": _multiplicative, "additive": _additive, "power": _power, "odds_ratio": _odds_ratio,
    "logarithmic": _odds_ratio, "goto": _goto, "probit": _probit, "worst_case": _worst_case,
}  # fmt: skip


def fair(odds: npt.ArrayLike, places: int = 1, method: Method = "power") -> Floats:
    """Return the fair probabilities of one whole field.

    Parameters
    ----------
    odds : array_like
        Decimal odds of every contestant.
    places : int
        Number of winners.
    method : str or mapping
        One of `DEVIG_METHODS`, an alias, or weights of several.

    Returns
    -------
    ndarray
        Probabilities in (0, 1) that sum to `places` (at most, for `worst_case`); all `nan` where there is no answer.

    Raises
    ------
    ValueError
        For an unknown method, or fewer places than 1.

    Examples
    --------
    >>> fair([2.7, 2.3, 4.4]).round(4).tolist()
    [0.3592, 0.4237, 0.2171]
    >>> fair([1.4, 1.6, 2.2, 3.5], places=2, method="power").round(4).tolist()
    [0.6988, 0.6061, 0.4318, 0.2633]
    >>> fair([1.4, 1.6, 2.2, 3.5], places=2, method="shin").tolist()
    [nan, nan, nan, nan]
    """
    name = method_name(method)
    if places < 1:
        raise ValueError(f"places must be at least 1, got {places}")
    prices = np.asarray(odds, np.float64)
    if prices.ndim != 1:
        raise ValueError(f"odds must be 1-D, one field, got {prices.ndim}-D")
    if places == 1:
        return devig(prices, name)
    none = np.full(prices.size, np.nan)
    if prices.size <= places or not ((prices > 1.0) & (prices < np.inf)).all():
        return none
    weights = blend_weights(name)
    total, probs = math.fsum(weights.values()), np.zeros(prices.size)
    for each, weight in weights.items():
        part = _SOLVERS[each](prices, places) if each in _SOLVERS else none
        probs += weight / total * np.where(((part > 0.0) & (part < 1.0)).all(), part, none)
    return probs
