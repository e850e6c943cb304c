"""Joint probabilities of two bets from the prices of their four parlays.

**The question.** Two props of one game, such as a quarterback's yards and his receiver's, are not independent, and no
score says how they depend. A book that prices same-game parlays does: each prop has two sides, so there are four
parlays, of which exactly one wins ::

                     second wins    second loses
    first wins          d_11            d_10
    first loses         d_01            d_00

**The formula.** They are the outcomes of one market. So its margin is removed as that of any other (`devig`)::

    (q_11, q_10, q_01, q_00) = devig(d_11, d_10, d_01, d_00)

A side of a prop then has the sum of two of them, P(first) = q_11 + q_10, and the correlation (phi) is ::

    phi = (q_11 - P(first) P(second)) / sqrt(P(first) (1 - P(first)) P(second) (1 - P(second)))

**Limits.** All four prices have to be of one book and one moment, on lines that cannot push. The margin of same-game
parlays is large, and a book may load it on the combinations that are bet most:
methods differ more here than in a market of two prices. Compare P(first) and P(second) with the fair probabilities of
the props' own markets; far apart, the four prices are no better a guide to the correlation.

References: K. Pearson, "On the correlation of characters not quantitatively measurable", Philosophical Transactions A
195 (1900); for `devig`, see there.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from oddsengine.maths.devig import Method, devig

_LEAST, _MOST = 0.95, 2.0  # sum of implied probabilities of one book's four parlays


class JointProbabilities(NamedTuple):
    """Probabilities of the four results of two bets."""

    both: float  # that both win
    first_only: float  # that the first wins and the second loses
    second_only: float  # that the second wins and the first loses
    neither: float  # that both lose

    @property
    def first(self) -> float:
        """Probability that the first bet wins."""
        return self.both + self.first_only

    @property
    def second(self) -> float:
        """Probability that the second bet wins."""
        return self.both + self.second_only

    @property
    def correlation(self) -> float:
        """Correlation of the two results, from -1 to 1; 0 if they are independent."""
        a, b = self.first, self.second
        return (self.both - a * b) / sqrt(a * (1.0 - a) * b * (1.0 - b))


def joint_probabilities(prices: Sequence[float], method: Method = "power") -> JointProbabilities:
    """Return the joint probabilities of two bets by the prices of their four parlays at one book.

    Parameters
    ----------
    prices : sequence of float
        Decimal odds of four parlays: of both bets; of the first, and the other side of the second; of the other side of
        the first, and the second; of both other sides. For two overs: over and over, over and under, under and over,
        under and under. The lines must not be whole numbers, at which bets are pushed.
    method : str or mapping
        A method of `devig`, or weights of several.

    Returns
    -------
    JointProbabilities
        `both`, `first_only`, `second_only` and `neither`, which sum to 1, and their `first`, `second` and
        `correlation`. The fair price of a combination is 1 divided by its probability; `parlay` takes the result as
        `joint`.

    Raises
    ------
    ValueError
        For an unknown method or one whose probabilities do not sum to 1 (``"worst_case"``), another number of prices,
        or prices that are not decimal odds of four parlays of which one wins.

    Examples
    --------
    A quarterback's and his receiver's yards, over or under:

    >>> joint = joint_probabilities([2.6, 4.5, 4.5, 2.6])
    >>> [round(each, 4) for each in joint]
    [0.3275, 0.1725, 0.1725, 0.3275]
    >>> round(joint.first, 4), round(joint.correlation, 4), round(1.0 / joint.both, 4)
    (0.5, 0.3099, 3.0536)
    """
    odds = np.asarray(list(prices), np.float64)
    if odds.shape != (4,) or not ((odds > 1.0) & (odds < np.inf)).all():
        raise ValueError(f"prices must be the decimal odds of four parlays, each above 1, got {list(prices)}")
    implied = float((1.0 / odds).sum())
    if not _LEAST <= implied <= _MOST:
        raise ValueError(
            f"prices must be of four parlays of which exactly one wins, in decimal odds, which together imply somewhat "
            f"more than 1, got {implied:.4g}"
        )
    fair = devig(odds, method)
    if not abs(fair.sum() - 1.0) < 1e-6:
        raise ValueError(f"method {method!r} gives no probabilities that sum to 1, got {fair.tolist()}")
    return JointProbabilities(*fair.tolist())
