"""Probabilities of the user's own model in place of the estimator's, by outcome or by price.

An outcome is a hash of its ladder, line and side (`outcomes`), which is the same on every board, so that a model is
read once for a table or a live board. If a model knows one side of a market of two outcomes, it knows the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oddsengine.columns import Floats, Longs, Words
from oddsengine.identity.groups import Groups, mix
from oddsengine.pricing.close import Fair

MODEL = "model"
"""The method that uses the probabilities of a model."""


@dataclass(frozen=True, eq=False)
class ModelPrices:
    """Probabilities of a model by outcome, in the order of `outcome`; `error` is nan where unknown.

    A live board may decide that an event's teams are the other way round; it then has to hide the event from the model,
    whose outcomes are those of its `teams`.
    """

    outcome: Words  # see `outcomes`
    prob: Floats  # of winning, given no push
    error: Floats  # standard error of `prob`, in log-odds
    teams: Mapping[int, tuple[str, str]]  # home and away, normalised, by the hash of the event's id

    def fair(self, g: Groups, ladder: Words) -> Fair:
        """Fair prices of a board, or of some of it; `ladder` has the hashes of its ladders."""
        market, side = sides(g)
        key = outcomes(g, ladder, market, side)
        at = np.minimum(np.searchsorted(self.outcome, key), max(self.outcome.size - 1, 0))
        known = self.outcome[at] == key if self.outcome.size else np.zeros(key.size, bool)
        prob, error = np.full(key.size, np.nan), np.full(key.size, np.nan)
        found = at[known]
        prob[known], error[known] = self.prob[found], self.error[found]
        return of_segments(g, prob, error)


def sides(g: Groups) -> tuple[Longs, Longs]:
    """Market and side of each segment."""
    counts = np.diff(g.segments).astype(np.int64)
    market = np.repeat(np.arange(counts.size), counts)
    return market, np.arange(market.size) - g.segments[market]


def outcomes(g: Groups, ladder: Words, market: Longs, side: Longs) -> Words:
    """Hashes of some sides of markets."""
    return mix(ladder[g.ladder[market]], g.threshold[market].astype(np.int64), side)


def of_segments(g: Groups, prob: Floats, error: Floats) -> Fair:
    """Fair prices from a probability and its error per segment; nan where the model has none."""
    market, side = sides(g)
    two = np.flatnonzero((g.outcomes[market] == 2) & (side == 0))
    for mine, other in ((two, two + 1), (two + 1, two)):
        lacks = np.isnan(prob[mine]) & ~np.isnan(prob[other])
        prob[mine[lacks]], error[mine[lacks]] = 1.0 - prob[other[lacks]], error[other[lacks]]
    segment = np.repeat(np.arange(market.size), np.diff(g.rows))
    n = segment.size
    return Fair(
        row=prob[segment], flags=np.zeros(n, np.uint16), others=np.zeros(n, np.int32), width=np.full(n, np.nan),
        se=error[segment], segment=prob, momentum=np.zeros((0, 2)), of_model=True,
    )  # fmt: skip


def first_known(g: Groups, prob: Floats) -> tuple[Longs, Longs]:
    """The outcomes of which a price has a probability, and the first such price of each."""
    known = np.flatnonzero(~np.isnan(prob))
    segment = np.repeat(np.arange(g.rows.size - 1), np.diff(g.rows))
    at, first = np.unique(segment[known], return_index=True)
    return at, known[first]


def of_rows(g: Groups, prob: Floats, error: Floats) -> Fair:
    """Fair prices from a probability and its error per row; an outcome has those of its first price that has one."""
    at, first = first_known(g, prob)
    of, e = np.full((2, g.rows.size - 1), np.nan)
    of[at], e[at] = prob[first], error[first]
    fair = of_segments(g, of, e)
    own = ~np.isnan(prob)
    return fair._replace(row=np.where(own, prob, fair.row), se=np.where(own, error, fair.se))
