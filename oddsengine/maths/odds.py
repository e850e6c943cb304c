"""Conversion of odds: decimal, American, fractional, and implied probability.

Nothing is rounded, and no margin is removed (see `oddsengine.maths.devig`).

Symbols and formulas, with d the decimal odds (payout per unit staked, stake included)::

    American     a = 100 (d - 1)       for d >= 2,     d = 1 + a / 100       for a >= 100
                 a = -100 / (d - 1)    for 1 < d < 2,  d = 1 + 100 / (-a)    for a <= -100
    probability  q = 1 / d                             d = 1 / q             for 0 < q < 1
    fractional   n / m = d - 1                         d = 1 + n / m         for n, m > 0

Even money is d = 2, a = +100, q = 1/2, 1/1; the American price -100 is equivalent and converts to d = 2.

Invalid prices become `nan`: decimal odds that are not finite or not above 1, American odds strictly between -100 and
+100, probabilities outside the open interval (0, 1), fractions that are not positive, and results that double precision
cannot distinguish from 1 or infinity. Every function is monotonic where it is defined.

Decimal odds of -100 or less, which can only be American, and decimal odds as text raise `ValueError` (`decimal_odds`);
so do probabilities above 1, which are percentages (`probabilities`).

Functions take array-likes of any shape (a scalar is an array of rank 0) and return that shape.

References: S. Cortis, "Expected values and variances in bookmaker payouts: a theoretical approach towards
setting limits on odds", Journal of Prediction Markets 9(1), 2015, https://doi.org/10.5750/jpm.v9i1.987
"""

import math
import re
from typing import cast

import numpy as np
import numpy.typing as npt

from oddsengine.columns import Floats
from oddsengine.maths.rounding import AMERICAN_DIGITS

Strings = npt.NDArray[np.str_]

_FRACTION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:[/:-]\s*(\d+(?:\.\d+)?)\s*)?", re.ASCII)
_ROUNDING = 1e-9  # by which a probability may exceed 1
_EVENS = frozenset({"evens", "even", "evs", "ev"})


def _answer(valid: npt.NDArray[np.bool_], value: npt.ArrayLike) -> Floats:
    """`value` where `valid` and finite, `nan` elsewhere; rank 0 becomes a scalar."""
    return cast(Floats, np.where(valid & np.isfinite(value), value, np.nan)[()])


def decimal_odds(odds: npt.ArrayLike) -> Floats:
    """Convert decimal odds to float64, and raise if they are clearly in another format.

    Parameters
    ----------
    odds : array_like
        Decimal odds. Other invalid prices, such as 0.5 or `nan`, do not raise.

    Returns
    -------
    ndarray
        The same numbers.

    Raises
    ------
    ValueError
        For text, and for finite numbers of -100 or less, which can only be American odds.

    Examples
    --------
    >>> decimal_odds([2.5, 1.5]).tolist()
    [2.5, 1.5]
    >>> decimal_odds([-110, 102])
    Traceback (most recent call last):
        ...
    ValueError: odds must be decimal, got -110, which is American: convert with american_to_decimal
    """
    given = np.asarray(odds)
    if given.dtype.kind in "US":
        raise ValueError(f"odds must be decimal numbers, got the string {str(given.ravel()[0])[:40]!r}")
    d = np.asarray(given, dtype=np.float64)
    american = (d <= -100.0) & (d > -np.inf)
    if american.any():
        first = d[american].ravel()[0]
        raise ValueError(f"odds must be decimal, got {first:g}, which is American: convert with american_to_decimal")
    return d


def probabilities(prob: npt.ArrayLike, name: str = "prob") -> Floats:
    """Convert probabilities to float64, and raise if they are percentages.

    Parameters
    ----------
    prob : array_like
        Probabilities. Other invalid ones, such as -0.5 or `nan`, do not raise.
    name : str
        The parameter, for the error.

    Returns
    -------
    ndarray
        The same numbers.

    Raises
    ------
    ValueError
        For finite numbers above 1, by more than rounding.

    Examples
    --------
    >>> probabilities([0.55, 0.45]).tolist()
    [0.55, 0.45]
    >>> probabilities(55)
    Traceback (most recent call last):
        ...
    ValueError: prob must be from 0 to 1, got 55: a probability of 55 % is 0.55
    """
    p = np.asarray(prob, dtype=np.float64)
    percent = (p > 1.0 + _ROUNDING) & (p < np.inf)
    if percent.any():
        first = p[percent].ravel()[0]
        raise ValueError(
            f"{name} must be from 0 to 1, got {first:g}: a probability of {first:g} % is {first / 100.0:g}"
        )
    return p


def american_to_decimal(american: npt.ArrayLike) -> Floats:
    """Convert American odds to decimal.

    Parameters
    ----------
    american : array_like
        American odds: +150 wins 150 on a stake of 100, -200 needs a stake of 200 to win 100.

    Returns
    -------
    ndarray
        Decimal odds; `nan` for American odds strictly between -100 and +100, `nan` or infinite.

    Examples
    --------
    >>> american_to_decimal([150, -200, 100, -100, 50]).tolist()
    [2.5, 1.5, 2.0, 2.0, nan]
    """
    a = np.asarray(american, dtype=np.float64)
    with np.errstate(all="ignore"):
        # A single rounding, so that +111 gives exactly 2.11.
        odds = (100.0 + np.abs(a)) / np.where(a > 0.0, 100.0, -a)
    return _answer((np.abs(a) >= 100.0) & np.isfinite(a) & (odds > 1.0), odds)


def decimal_to_american(odds: npt.ArrayLike) -> Floats:
    """Convert decimal odds to American, without rounding; 2.0 is +100.

    Parameters
    ----------
    odds : array_like
        Decimal odds.

    Returns
    -------
    ndarray
        American odds, at most -100 or at least +100; `nan` for odds that are not finite or not above 1.

    Examples
    --------
    >>> decimal_to_american([2.5, 1.5, 2.0, 1.0]).tolist()
    [150.0, -200.0, 100.0, nan]
    """
    d = decimal_odds(odds)
    with np.errstate(all="ignore"):
        american = np.where(d >= 2.0, (d - 1.0) * 100.0, -100.0 / (d - 1.0))
    return _answer(d > 1.0, american)


def even_money(american: npt.ArrayLike) -> Floats:
    """Return American odds with even money as +100: -100 is the same price, and only +100 is published.

    Examples
    --------
    >>> even_money([-100.0, 100.0, -110.0]).tolist()
    [100.0, 100.0, -110.0]
    """
    a = np.asarray(american, dtype=np.float64)
    return np.where(a == -100.0, 100.0, a)[()]


def round_american(american: npt.ArrayLike, digits: int = AMERICAN_DIGITS) -> Floats:
    """Round American odds; what rounds to -100 is +100.

    Examples
    --------
    >>> round_american([-100.001, 104.766, -110.0]).tolist(), float(round_american(-100.4, 0))
    ([100.0, 104.77, -110.0], 100.0)
    """
    return even_money(np.round(np.asarray(american, dtype=np.float64), digits))


def format_american(american: float | None) -> str:
    """Format American odds for people: whole, with a sign; empty if there are none.

    Examples
    --------
    >>> format_american(150.0), format_american(-114.94), format_american(-100.2), format_american(None)
    ('+150', '-115', '+100', '')
    """
    return "" if american is None or not math.isfinite(american) else f"{float(round_american(american, 0)):+.0f}"


def quoted_american(odds: Floats, quoted: Floats) -> Floats:
    """Return American odds as quoted, or converted from valid decimal odds if `quoted` is nan.

    Examples
    --------
    >>> quoted_american(np.array([2.1, 1.909, 2.0]), np.array([np.nan, -110.0, -100.0])).tolist()
    [110.00000000000001, -110.0, 100.0]
    """
    win = odds - 1.0
    made = np.where(odds >= 2.0, win * 100.0, -100.0 / win)
    return even_money(np.where(np.isnan(quoted), made, quoted))


def decimal_to_probability(odds: npt.ArrayLike) -> Floats:
    """Convert decimal odds to implied probability, including the margin.

    Parameters
    ----------
    odds : array_like
        Decimal odds.

    Returns
    -------
    ndarray
        1 / odds, in (0, 1); `nan` for odds that are not finite or not above 1.

    Examples
    --------
    >>> decimal_to_probability([4.0, 1.25, 1.0]).tolist()
    [0.25, 0.8, nan]
    """
    d = decimal_odds(odds)
    with np.errstate(all="ignore"):
        probability = 1.0 / d
    return _answer((d > 1.0) & (d < np.inf), probability)


def probability_to_decimal(prob: npt.ArrayLike) -> Floats:
    """Convert probabilities to break-even decimal odds.

    Parameters
    ----------
    prob : array_like
        Probabilities.

    Returns
    -------
    ndarray
        1 / prob; `nan` outside the open interval (0, 1). Percentages raise `ValueError`.

    Examples
    --------
    >>> probability_to_decimal([0.25, 0.8, 0.0, 1.0]).tolist()
    [4.0, 1.25, nan, nan]
    """
    q = probabilities(prob)
    with np.errstate(all="ignore"):
        odds = 1.0 / q
    return _answer((q > 0.0) & (q < 1.0) & (odds > 1.0), odds)


def fractional_to_decimal(numerator: npt.ArrayLike, denominator: npt.ArrayLike = 1.0) -> Floats:
    """Convert fractional odds to decimal; 5/2 wins 5 on a stake of 2.

    Parameters
    ----------
    numerator, denominator : array_like
        Profit and stake; they broadcast. `parse_fractional` parses both from text.

    Returns
    -------
    ndarray
        1 + numerator / denominator; `nan` if either is not finite or not positive.

    Examples
    --------
    >>> fractional_to_decimal([5, 1, 8, 0], [2, 1, 10, 1]).tolist()
    [3.5, 2.0, 1.8, nan]
    """
    n = np.asarray(numerator, dtype=np.float64)
    m = np.asarray(denominator, dtype=np.float64)
    with np.errstate(all="ignore"):
        odds = 1.0 + n / m
    return _answer((n > 0.0) & (m > 0.0) & (m < np.inf) & (odds > 1.0), odds)


def charged(odds: npt.ArrayLike, commission: npt.ArrayLike = 0.0, fee: npt.ArrayLike = 0.0) -> Floats:
    """Return decimal odds after a commission on winnings, and a fee of F p (1 - p) per contract; arguments broadcast.

    Examples
    --------
    >>> charged([2.0, 2.0, 2.0], [0.0, 0.02, 0.0], [0.0, 0.0, 0.07]).round(4).tolist()
    [2.0, 1.98, 1.9324]
    """
    net = 1.0 + (np.asarray(odds, np.float64) - 1.0) * (1.0 - np.asarray(commission, np.float64))
    p = 1.0 / net
    after_fee = 1.0 / (p + np.asarray(fee, np.float64) * p * (1.0 - p))
    return np.asarray(np.where(np.asarray(fee) > 0.0, after_fee, net))


def decimal_to_fractional(odds: npt.ArrayLike, max_denominator: int = 100) -> tuple[Floats, Floats]:
    """Convert decimal odds to the closest fractional odds, in lowest terms.

    Fractions with denominators up to `max_denominator` are recovered exactly. Odds below every such fraction
    become 1 / `max_denominator`, never 0.

    Parameters
    ----------
    odds : array_like
        Decimal odds.
    max_denominator : int
        Maximum denominator, at least 1.

    Returns
    -------
    numerator, denominator : ndarray
        Whole numbers as float64; both `nan` for odds that are not finite or not above 1.

    Examples
    --------
    >>> numerator, denominator = decimal_to_fractional([3.5, 2.0, 1.8, 1.0])
    >>> numerator.tolist(), denominator.tolist()
    ([5.0, 1.0, 4.0, nan], [2.0, 1.0, 5.0, nan])
    """
    if max_denominator < 1:
        raise ValueError(f"max_denominator must be at least 1, got {max_denominator}")
    d = decimal_odds(odds)
    valid = (d > 1.0) & (d < np.inf)
    profit = np.where(valid, d - 1.0, 1.0)
    numerator, denominator = np.maximum(np.rint(profit), 1.0), np.ones_like(profit)
    error = np.abs(profit - numerator)
    for m in range(2, max_denominator + 1):
        with np.errstate(over="ignore"):
            n = np.maximum(np.rint(profit * m), 1.0)
        closer = np.abs(profit - n / m) < error
        numerator, denominator = np.where(closer, n, numerator), np.where(closer, float(m), denominator)
        error = np.abs(profit - numerator / denominator)
    return _answer(valid, numerator), _answer(valid, denominator)


def parse_fractional(text: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Parse fractional odds.

    Accepts "5/2", "5-2", "5:2", "5" (to 1) and the words evens, even, evs and ev, in either case.

    Parameters
    ----------
    text : array_like of str
        Fractional odds.

    Returns
    -------
    numerator, denominator : ndarray
        As written, not reduced; both `nan` for invalid text.

    Examples
    --------
    >>> numerator, denominator = parse_fractional(["5/2", "evens", "100/30", "SP"])
    >>> numerator.tolist(), denominator.tolist()
    ([5.0, 1.0, 100.0, nan], [2.0, 1.0, 30.0, nan])
    """
    texts = np.asarray(text, dtype=np.str_)
    distinct, index = np.unique(texts, return_inverse=True)
    pairs = np.array([_pair(one) for one in distinct.tolist()], dtype=np.float64).reshape(-1, 2)
    parsed = pairs[index.reshape(texts.shape)]
    return parsed[..., 0][()], parsed[..., 1][()]


def _pair(text: str) -> tuple[float, float]:
    """Parse one text; `nan` twice if it is invalid."""
    if text.strip().lower() in _EVENS:
        return 1.0, 1.0
    match = _FRACTION.fullmatch(text)
    return (float(match[1]), float(match[2] or 1.0)) if match else (np.nan, np.nan)


def format_fractional(numerator: npt.ArrayLike, denominator: npt.ArrayLike = 1.0) -> Strings:
    """Format fractional odds, such as "5/2"; the inverse of `parse_fractional`.

    Parameters
    ----------
    numerator, denominator : array_like
        Profit and stake; they broadcast.

    Returns
    -------
    ndarray of str
        Empty if either is not finite or not positive.

    Examples
    --------
    >>> format_fractional([5.0, 4.5], [2.0, 1.0]).tolist()
    ['5/2', '4.5/1']
    """
    n, m = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64))
    texts = [
        f"{_plain(a)}/{_plain(b)}" if 0.0 < a < np.inf and 0.0 < b < np.inf else ""
        for a, b in zip(n.ravel().tolist(), m.ravel().tolist(), strict=True)
    ]
    return np.array(texts, dtype=np.str_).reshape(n.shape)[()]


def _plain(number: float) -> str:
    """Format a number without exponent or trailing `.0`."""
    return np.format_float_positional(number, trim="-")
