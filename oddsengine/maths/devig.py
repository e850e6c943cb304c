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

`oddsengine.maths.margin_solvers` solves the power method, Shin's and the odds ratio, `oddsengine.maths.probit` finds
the normal shift, and `oddsengine.maths.closed_forms` has the rest, and pairs of outcomes.

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
"""

import math
from collections.abc import Callable, Collection, Mapping
from numbers import Real

import numpy as np
import numpy.typing as npt

from oddsengine.bounds import excerpt
from oddsengine.columns import Floats, Longs
from oddsengine.maths.closed_forms import ADDITIVE, MULTIPLICATIVE, ODDS_RATIO, goto, plain, two
from oddsengine.maths.lanes import LANES
from oddsengine.maths.margin_solvers import odds_ratio, power, shin
from oddsengine.maths.odds import decimal_odds
from oddsengine.maths.probit import probit

_SLICE = 32 * LANES  # markets of one pass of worst_case
_TOGETHER: Longs = np.empty(0, dtype=np.int64)  # no starts: markets lie one after the other
_Solver = Callable[[Floats, int, Longs, Floats], None]  # odds, outcomes, starts, out
Method = str | Mapping[str, float]
"""A method of margin removal: its name, or weights by name."""


def _together(odds: Floats, n: int, starts: Longs) -> tuple[Floats, Longs]:
    """Markets of n outcomes laid end to end, and the places they came from."""
    places = (starts[:, np.newaxis] + np.arange(n)).reshape(-1)
    return odds[places], places


def _fair_two(odds: Floats, starts: Longs, method: int, out: Floats) -> None:
    """Two outcomes, in place if they lie one after the other, gathered and put back otherwise."""
    if starts.size == 0:
        two(odds, method, out)
        return
    pairs, places = _together(odds, 2, starts)
    two(pairs, method, pairs)
    out[places] = pairs


def _by_size(method: int, solve: _Solver) -> _Solver:
    """Solve markets of two outcomes by `two`, larger ones by a solver of their own."""

    def fair(odds: Floats, n: int, starts: Longs, out: Floats) -> None:
        if n == 2:
            _fair_two(odds, starts, method, out)
        else:
            solve(odds, n, starts, out)

    return fair


_fair_multiplicative = _by_size(
    MULTIPLICATIVE, lambda odds, n, starts, out: plain(odds, n, starts, MULTIPLICATIVE, out)
)
_fair_additive = _by_size(ADDITIVE, lambda odds, n, starts, out: plain(odds, n, starts, ADDITIVE, out))
_fair_shin = _by_size(ADDITIVE, shin)
_fair_odds_ratio = _by_size(ODDS_RATIO, odds_ratio)


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
    power(odds, n, _TOGETHER, least)
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
    "power": power,
    "shin": _fair_shin,
    "odds_ratio": _fair_odds_ratio,
    "logarithmic": _fair_odds_ratio,
    "goto": goto,
    "probit": probit,
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
