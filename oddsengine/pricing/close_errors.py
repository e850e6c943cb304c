"""How far fair prices are from the close: standard errors, what follows from them, and whether a price still stands."""

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from oddsengine.catalog.fair_constants import OTHER, FairTable
from oddsengine.columns import Floats
from oddsengine.pricing.close_table import BITS, league_sigma

_CENTRAL = {  # standard errors on each side of a central range: normal, Student's t with 4 degrees of freedom
    90: (1.6448536269514722, 2.1318467863266500),
    50: (0.6744897501960817, 0.7406970841126829),
}


def errors_of(hours: Floats, sigma: Floats, table: FairTable) -> Floats:
    """Standard errors so many hours before the start; `sigma` has a row for each, its errors at the table's hours."""
    c, knots = table.constants, np.log(table.hours)
    x = np.clip(np.log(np.maximum(hours, table.hours[0])), knots[0], knots[-1])
    k = np.clip(np.searchsorted(knots, x, side="right"), 1, max(knots.size - 1, 1))
    low, high = k - 1, np.minimum(k, knots.size - 1)
    share = (x - knots[low]) / np.where(low == high, 1.0, knots[high] - knots[low])
    row = np.arange(hours.size)
    s = sigma[row, low] + share * (sigma[row, high] - sigma[row, low])
    return np.asarray(c.close_scale * s * np.cbrt(np.maximum(hours, c.close_least_h)))


def standard_errors(
    sports: Iterable[str | None], leagues: Iterable[str | None], hours: Floats, table: FairTable
) -> Floats:
    """Standard errors of fair prices in logits, by the sport, league and hours left of each; nan where unknown."""
    columns: dict[tuple[str | None, str | None], int] = {}
    pairs = zip(sports, leagues, strict=True)
    league = np.array([columns.setdefault(pair, len(columns)) for pair in pairs], np.int64)
    sigma = np.array([league_sigma(table, *pair) for pair in columns] or [table.sigma[OTHER]])
    return errors_of(hours, sigma[league], table)


def confidence(se: Floats, flags: npt.NDArray[np.uint16], table: FairTable) -> Floats:
    """Score from 0 to 100 that falls with the standard error and with every flag.

    Examples
    --------
    >>> from oddsengine import catalog
    >>> table = catalog.fair_table()
    >>> confidence(np.array([0.0, 0.15]), np.array([0, 1], np.uint16), table).round(1).tolist()
    [100.0, 25.8]
    """
    c = table.constants
    score = 100.0 * np.exp(-np.where(np.isnan(se), c.confidence_unknown_se, se) / c.confidence_scale)
    for factor, bit in zip(table.factor, BITS.values(), strict=True):
        score = np.where(flags & bit, score * factor, score)
    return score


def sigmoid(x: Floats) -> Floats:
    """The probability of a logit."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


_ERF = np.frompyfunc(math.erf, 1, 1)


def central_errors(percent: int, degrees: float) -> float:
    """Standard errors on each side of a central range of 50 or 90 %; `degrees` as in `below`."""
    return _CENTRAL[percent][degrees > 0.0]


def below(z: Floats, degrees: float) -> Floats:
    """Distribution function of Student's t with 4 degrees of freedom, or of a normal distribution (0).

    Examples
    --------
    >>> below(np.array([0.0, central_errors(90, 4.0)]), 4.0).round(6).tolist()
    [0.5, 0.95]
    """
    if degrees > 0.0:
        s = z / np.sqrt(z * z + 4.0)
        return np.asarray(0.5 + 0.25 * s * (3.0 - s * s))
    return 0.5 * (1.0 + np.asarray(_ERF(z / math.sqrt(2.0)), np.float64))


def still_there(ev: Floats, stood_s: Floats, hours: Floats, momentum: Floats, table: FairTable) -> Floats:
    """The probability that a price stands ten minutes on; nan if the start is unknown.

    Parameters
    ----------
    ev
        Percent.
    stood_s
        Seconds since the price changed.
    hours
        Before the start.
    momentum
        Of the market towards the bet, in logits.
    table
        The constants.
    """
    c = table.constants
    v = (
        c.stands_base
        + c.stands_stood * np.log1p(stood_s / c.stands_stood_s)
        + c.stands_hours * np.log(np.maximum(hours, c.stands_least_h))
        + c.stands_ev * (np.clip(ev, 0.0, c.stands_ev_most) - 1.0)
        + c.stands_momentum * np.clip(momentum, -c.stands_momentum_clip, c.stands_momentum_clip)
    )
    return sigmoid(v)
