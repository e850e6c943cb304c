"""Fair probability, standard error, reference, hold and edge of every row of a table (`oddsengine.fair`).

With the method `close`, all of them come from the estimator, and the standard error is that of the close. With the
other methods they come from the reference, and the standard error measures the disagreement of the other books. With x
the log-odds of the fair probability p, and x_i those of the k >= 2 other books of different providers that quote the
whole market, each de-vigged on its own ::

    error = p (1 - p) sqrt(sum over i of (x_i - x)^2 / (k (k - 1)))

For a consensus of equal weights this is the standard error of the mean, converted from log-odds to probability.
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.catalog.reasons import CODES, NAMES
from oddsengine.columns import Floats, Ints, Longs
from oddsengine.detection import ev
from oddsengine.detection import question as board
from oddsengine.detection.market_fair import market_fair
from oddsengine.detection.question import CONSENSUS, NOBODY, OWN_MODEL, PreparedTable, Question
from oddsengine.pricing import close as fair_close
from oddsengine.pricing import close_table, votes

FAIR_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "fair_probability": pl.Float64,
    "fair_error": pl.Float64,
    "reference": pl.String,
    "hold": pl.Float64,
    "ev": pl.Float64,
    "net_odds": pl.Float64,
    "guard": pl.String,
}
"""The columns that `fair` adds."""


class Estimates(NamedTuple):
    """Fair figures for each row of the groups; `nan` and no reference if there is no fair price."""

    prob: Floats
    error: Floats  # standard error of `prob`
    reference: Ints  # book, -1 for none, -2 for a consensus
    judged: Longs  # rows whose price can be compared with `prob`
    capped: Longs  # rows above the EV cap


def estimate(question: Question) -> Estimates:
    """Estimate the fair probability of each row, leaving its own book out of the reference."""
    v, g = question.prices, question.prices.groups
    n = g.row.size
    hits = ev.find_hits(question)
    row = hits.row.astype(np.int64)
    over = ev.over_cap(question, hits)
    if v.close is not None and v.close.of_model:
        prob = v.close.row
        return Estimates(
            prob, prob * (1.0 - prob) * v.close.se, np.where(np.isnan(prob), NOBODY, OWN_MODEL), row[~over], row[over]
        )
    if v.close is not None and v.board is not None:
        # Rejected prices have no vote, so that the estimate of all books leaves theirs out.
        whole = v.close.segment[g.segments[g.market] + g.side]
        prob = np.where(np.isnan(v.close.row) & (v.columns.reason != 0), whole, v.close.row)
        alone = fair_close.SUSPECT | close_table.BITS["one_reference"]  # one reference that was not measured alone
        prob[(v.close.flags & alone == alone) & (v.columns.reason == 0)] = np.nan
        prob[row] = hits.fair
        sharpest = votes.sharpest(v.board.of, v.board.logits, v.traits, g.market.astype(np.int64), g.book)
        error = prob * (1.0 - prob) * v.close.se[g.ladder[g.market]]
        return Estimates(prob, error, np.where(np.isnan(prob), NOBODY, sharpest), row[~over], row[over])
    prob = np.full(n, np.nan)
    markets = np.flatnonzero(v.columns.reference != NOBODY)
    whole = np.full((v.columns.reference.size, v.widest), np.nan)
    whole[markets] = market_fair(v, markets)
    reference = v.columns.reference[g.market]
    # A member of the consensus needs other members to have a fair price of its own.
    member = (
        (reference == CONSENSUS)
        & (v.references.member[g.book] != 0)
        & (v.columns.trusted != 0)
        & ~np.isnan(v.columns.own)
    )
    rest = np.flatnonzero(~member)
    prob[rest] = whole[g.market[rest], g.side[rest]]
    prob[row] = hits.fair
    return Estimates(prob, _errors(question, prob), np.where(np.isnan(prob), NOBODY, reference), row[~over], row[over])


def _errors(question: Question, prob: Floats) -> Floats:
    """Compute standard errors from the other providers' own probabilities."""
    v, g = question.prices, question.prices.groups
    n = g.row.size
    segment = np.repeat(np.arange(g.rows.size - 1), np.diff(g.rows))
    provider = v.traits.provider[g.book].astype(np.int64)
    quoting = np.flatnonzero(~np.isnan(v.columns.own))
    key = segment[quoting] * (v.traits.provider.size + 1) + provider[quoting]
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    voice = quoting[first]  # one row per provider and outcome
    x = np.log(v.columns.own[voice] / (1.0 - v.columns.own[voice]))
    where = segment[voice]
    count, total, square = (np.bincount(where, w, g.rows.size - 1) for w in (None, x, x * x))
    own = np.full(n, np.nan)
    own[quoting] = x[of]
    mine = ~np.isnan(own)
    o = np.where(mine, own, 0.0)
    k = count[segment] - mine
    with np.errstate(all="ignore"):
        at = np.log(prob / (1.0 - prob))
        apart = square[segment] - o * o - 2.0 * at * (total[segment] - o) + k * at * at
        error = prob * (1.0 - prob) * np.sqrt(np.maximum(apart, 0.0) / (k * (k - 1)))
    return np.where(k >= 2, error, np.nan)


def columns(question: Question) -> pl.DataFrame:
    """Compute `FAIR_COLUMNS` for every row of the table, in table order."""
    v, g = question.prices, question.prices.groups
    prepared: PreparedTable = question.prepared
    estimates = estimate(question)
    edge = np.full(g.row.size, np.nan)
    edge[estimates.judged] = estimates.prob[estimates.judged] * v.columns.net[estimates.judged] - 1.0
    traded = np.array([catalog.book(book).last_traded for book in prepared.identity.books], np.bool_)
    edge[traded[g.book]] = np.nan  # no offers, also where the guard that says so is disabled
    verdict = np.asarray(prepared.identity.verdict).copy()
    verdict[g.row] = prepared.guarded.reason
    verdict[g.row[estimates.capped]] = CODES["ev_cap"]
    height = prepared.table.height

    def placed(values: Floats) -> pl.Series:
        out = np.full(height, np.nan)
        out[g.row] = values
        return board.nullable(out)

    code = np.full(height, NOBODY)
    code[g.row] = estimates.reference
    return board.frame(
        {
            "fair_probability": placed(estimates.prob),
            "fair_error": placed(estimates.error),
            "reference": question.labels.books[code],
            "hold": placed(np.where(prepared.guarded.reason == 0, v.columns.width, np.nan)),
            "ev": placed(edge),
            "net_odds": placed(v.columns.net),
            "guard": pl.Series([None, *NAMES[1:]], dtype=pl.String).gather(verdict),
        },
        FAIR_COLUMNS,
    )
