"""The probability that two bets on one number both win, from the distribution of a sport alone.

`find_middles` has prices: a ladder gives it the probability. Here there are only two lines. X, the total or the margin,
has the distribution that the catalog gives the sport (`oddsengine.maths.distributions` describes its shape), and one
fair price fixes its location: P(X > a) = p among the results that do not push at a line a. By default p is 1/2 and a is
half way between the lines, as if that were the line of the market.

The scale of a Skellam margin, the difference of two counts, is their expected sum times the ratio of variance to mean.
"""

import numpy as np
from numpy.typing import ArrayLike

from oddsengine import catalog
from oddsengine.bounds import check_number, excerpt
from oddsengine.columns import Floats
from oddsengine.detection.tails import form
from oddsengine.maths import distributions, middle
from oddsengine.maths.distributions import Integers
from oddsengine.maths.middle import MiddleValue
from oddsengine.maths.shape_fitting import fit

_QUARTER = 25  # hundredths


def _hundredths(lines: ArrayLike, name: str) -> Integers:
    """Lines in hundredths."""
    values = np.asarray(lines, np.float64)
    if not (np.isfinite(values) & (values * 4.0 == np.round(values * 4.0))).all():
        raise ValueError(f"{name} must be multiples of a quarter such as 2.5 or 2.75, got {values.tolist()}")
    return np.asarray(np.round(values * 100.0), np.int64)


def _distribution(
    sport: str, market_type: str, league: str, expected_total: float | None
) -> tuple[distributions.Shapes, bool]:
    """Distribution without its location, and whether it is that of a margin."""
    known = catalog.sport(sport)
    if known.id not in catalog.sports():
        raise ValueError(f"sport must be one of {', '.join(sorted(catalog.sports()))}, got {excerpt(sport)}")
    kind = catalog.market_type(market_type, known.id)
    family = catalog.families().get(kind.family)
    shape, scale, weights = form(kind.family, known.id, league or sport, kind.fraction)
    if family is None or np.isnan(scale):
        raise ValueError(
            "market_type must be a spread or total with a known distribution, such as total or spread; got "
            f"{market_type!r} in {known.name}"
        )
    if (shape == distributions.SKELLAM) != (expected_total is not None):
        needs = "needs" if expected_total is None else "does not use"
        raise ValueError(f"{market_type} in {known.name} {needs} expected_total, got {excerpt(expected_total)}")
    if expected_total is not None:
        check_number("expected_total", expected_total, above=0.0)
        scale *= expected_total
    is_margin = family.cuts == "margin"
    level = known.level if kind.family == "spread" and kind.period == catalog.FULL_GAME else None
    fixed = np.nan if level is None or shape not in (distributions.SKELLAM, distributions.MARGIN) else level
    return distributions.Shapes.of(shape, scale, fixed, 0, [[1.0, *weights]]), is_margin


def middle_value(
    sport: str, market_type: str, line1: ArrayLike, line2: ArrayLike, odds1: ArrayLike, odds2: ArrayLike, *,
    prob: ArrayLike = 0.5, at: ArrayLike | None = None, league: str = "", expected_total: float | None = None,
) -> MiddleValue:  # fmt: skip
    """Value of a middle as fractions of the total stake; the arguments are those of `middle_probability`, and odds.

    Examples
    --------
    >>> value = middle_value("football", "spread", -2.5, 3.5, 1.95, 1.95)
    >>> [round(float(figure), 4) for figure in value]
    [0.0895, 0.0622, -0.025, 0.95]
    """
    shapes, is_margin = _distribution(sport, market_type, league, expected_total)
    first, high = _hundredths(line1, "line1"), _hundredths(line2, "line2")
    low = -first if is_margin else first
    probs = np.asarray(prob, np.float64)
    if not ((probs > 0.0) & (probs < 1.0)).all():
        raise ValueError(f"prob must be above 0 and below 1, got {probs.tolist()}")
    if at is None:
        anchor = (low + high) // 2 // _QUARTER * _QUARTER
    else:
        anchor = _hundredths(at, "at") * (-1 if is_margin else 1)
    low, high, anchor = np.broadcast_arrays(low, high, anchor)
    location = fit(shapes, anchor, probs)
    low, high = np.broadcast_to(low, location.shape), np.broadcast_to(high, location.shape)
    tail = distributions.tail(shapes, location, middle.window(low, high).points)
    value = middle.evaluate(low, high, odds1, odds2, tail)
    empty = middle.window(low, high).size == 0
    return value._replace(prob=np.where(empty, 0.0, value.prob))


def middle_probability(
    sport: str, market_type: str, line1: ArrayLike, line2: ArrayLike, *,
    prob: ArrayLike = 0.5, at: ArrayLike | None = None, league: str = "", expected_total: float | None = None,
) -> Floats:  # fmt: skip
    """Probability that both bets of a middle win, from the distribution of scores in a sport.

    `find_middles` uses the prices of a board instead, which is better where there are any.

    Parameters
    ----------
    sport : str
        A sport, or a league such as ``"nfl"``, which then is also the `league`.
    market_type : str
        ``"total"``, ``"spread"`` or another market type with a line, such as ``"1st_half_total_points"``.
    line1, line2 : array_like of float
        Lines of the bets as books write them: over and under; or one team and the other, such as -2.5 and +3.5.
    prob : array_like of float
        Fair probability of the first bet at the line `at`, given that it does not push.
    at : array_like of float, optional
        The line of `prob`, as in `line1`. The default is half way between the two bets, rounded down to a quarter.
    league : str
        League with a distribution of its own, such as ``"ncaaf"``.
    expected_total : float, optional
        Expected sum of both sides, such as 2.7 goals: only for spreads of goals, runs and other counts, which need it.

    Returns
    -------
    ndarray of float
        Probabilities, of rank 0 for single lines; 0 where no result wins both bets, as with over 5 and under 6, and
        ``nan`` where the distribution cannot have that `prob`. Results that win half a bet count.

    Raises
    ------
    ValueError
        For an unknown sport, a market without a known distribution, lines that are not multiples of a quarter, a
        probability outside 0 to 1, or a missing or needless `expected_total`.

    Examples
    --------
    >>> middle_probability("nfl", "spread", -2.5, 3.5).round(4).item()  # a win by exactly 3
    0.0895
    >>> middle_probability("nba", "total", [220.5, 220.5], [222.5, 224.5], prob=0.52, at=221.5).round(4).tolist()
    [0.0435, 0.087]
    >>> middle_probability("soccer", "spread", -0.5, 1.5, expected_total=2.7).round(4).item()
    0.2523
    """
    return middle_value(
        sport, market_type, line1, line2, 2.0, 2.0, prob=prob, at=at, league=league, expected_total=expected_total
    ).prob  # fmt: skip
