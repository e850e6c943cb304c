"""Closing line value (CLV): the value of a price by the closing line.

**Grade.** The close is the sharp reference's fair probability q of the same outcome, margin removed, from the last
prices before the start. An earlier price d (after commission) has

    CLV = d q - 1

as a fraction: the mean profit of the bet if the close is right. It is the formula of the edge with the closing
probability, so the two can be compared. If the close is efficient, q is the best estimate of the true probability, and
the probability at the time of the bet the best estimate of q. The mean CLV is then the mean true edge, and needs far
fewer bets than results do.

**Errors.** Bets on one event share its close: five books with the same side are not five independent bets. The standard
error of a mean is therefore clustered by event (Liang and Zeger 1986, Longitudinal data analysis using
generalized linear models, Biometrika 73, https://doi.org/10.1093/biomet/73.1.13): with n values x in G events and the
sums S of the deviations x - mean within each event,

    error = sqrt(G / (G - 1) sum S^2) / n

It is ``nan`` for fewer than two events, and too small for very few.

**Which close.** A reference graded by its own later price is biased: a lasting error counts as value. There is
therefore also the *other books'* close: all books except the bet's own and the books of its feed, without the highest
and lowest (`oddsengine.history.closing_consensus`).

**No close.** If no sharp book has a complete market at the close, CLV is ``nan``. Such bets are counted separately,
because omitting them would favour books with markets that nobody else quotes.
"""

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from oddsengine.bounds import excerpt
from oddsengine.columns import Floats, Longs
from oddsengine.maths.odds import probabilities
from oddsengine.maths.value import edge

STATES = ("graded", "without_close", "waiting", "in_play")
"""States of a bet: graded; closed without a reference; not closed yet; placed after the close."""
GROUPINGS = ("sportsbook", "sport", "league", "market", "day")

BETS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,
    "event_id": pl.String,
    "sportsbook": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "market": pl.String,
    "day": pl.String,  # of the start, US Eastern
    "state": pl.String,  # one of `STATES`
    "ev": pl.Float64,  # fraction, when first shown
    "price": pl.Float64,  # decimal, after commission, when first shown
    "best_price": pl.Float64,
    "closing": pl.Float64,  # fair probability at the close
    "others": pl.Float64,  # the same by all books except the bet's own and the books of its feed
    "gain": pl.Float64,  # share of the stake won or lost, -1 to 1; null if unknown
}

REPORT_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "group": pl.String,
    "count": pl.Int64,
    **dict.fromkeys(STATES, pl.Int64()),
    "events": pl.Int64,  # of graded bets
    "avg_ev": pl.Float64,  # percent, of graded bets, as are the following
    "avg_ev_error": pl.Float64,
    "avg_clv": pl.Float64,
    "avg_clv_error": pl.Float64,
    "beat_close": pl.Float64,  # share from 0 to 1
    "beat_close_error": pl.Float64,
    "avg_best_clv": pl.Float64,
    "avg_best_clv_error": pl.Float64,
    "others_graded": pl.Int64,  # before the close, with a close of the other books
    "avg_others_ev": pl.Float64,  # shown, of these
    "avg_others_clv": pl.Float64,
    "avg_others_clv_error": pl.Float64,
    "others_beat_close": pl.Float64,
    "won": pl.Int64,  # of bets before the close with a known result; half won counts as won
    "lost": pl.Int64,
    "pushed": pl.Int64,
    "avg_return": pl.Float64,
    "avg_return_error": pl.Float64,
}


class Means(NamedTuple):
    """By group: values, clusters, mean and standard error of the mean."""

    size: Longs
    clusters: Longs
    mean: Floats
    error: Floats


def clv(price: ArrayLike, closing: ArrayLike) -> Floats:
    """Return the closing line value of prices.

    Parameters
    ----------
    price : array_like of float
        Decimal odds, after commission.
    closing : array_like of float
        Fair probability of the same outcome at the close; ``nan`` if unknown.

    Returns
    -------
    ndarray of float
        Fractions; ``nan`` for a probability outside [0, 1] or odds of 1 or less. Percentages raise `ValueError`.

    Examples
    --------
    A price of 2.10 on an outcome that closed at 50 % fair, and at 45 %:

    >>> clv(2.10, [0.5, 0.45]).round(4).tolist()
    [0.05, -0.055]
    """
    return edge(probabilities(closing, "closing"), price)


def means(values: ArrayLike, group: ArrayLike, cluster: ArrayLike, groups: int) -> Means:
    """Return means of groups with clustered standard errors.

    Parameters
    ----------
    values : array_like of float
        Values; ``nan`` is ignored.
    group, cluster : array_like of int
        Codes from 0: the group and the cluster of each value.
    groups : int
        Number of groups.

    Returns
    -------
    Means
        The mean is ``nan`` for an empty group, the error for fewer than two clusters.

    Examples
    --------
    Four values of two events, whose deviations sum to -0.02 and 0.02:

    >>> found = means([0.01, 0.03, 0.02, 0.06], [0, 0, 0, 0], [0, 0, 1, 1], 1)
    >>> found.mean.round(4).tolist(), found.error.round(4).tolist()
    ([0.03], [0.01])
    """
    x = np.asarray(values, dtype=np.float64)
    valid = ~np.isnan(x)
    x, g = x[valid], np.asarray(group, dtype=np.int64)[valid]
    c = np.asarray(cluster, dtype=np.int64)[valid]
    count = np.bincount(g, minlength=groups)
    divisor = np.maximum(count, 1)
    mean = np.where(count > 0, np.bincount(g, x, groups) / divisor, np.nan)
    wide = int(c.max(initial=0)) + 1
    pairs, of = np.unique(g * wide + c, return_inverse=True)
    within = np.bincount(of, x - mean[g], pairs.size)
    clusters = np.bincount(pairs // wide, minlength=groups)
    squares = np.bincount(pairs // wide, within * within, groups)
    spread = np.sqrt(clusters / np.maximum(clusters - 1, 1) * squares) / divisor
    return Means(count, clusters, mean, np.where(clusters > 1, spread, np.nan))


def report(bets: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """Summarise bets against the close, by group.

    Means are over graded bets only, so that the EV shown and the CLV are of the same bets.

    Parameters
    ----------
    bets
        `BETS_SCHEMA`.
    by
        One of `GROUPINGS`; None is a single group.

    Returns
    -------
    polars.DataFrame
        `REPORT_SCHEMA`: by number of bets, descending, or by day.

    Examples
    --------
    >>> bets = pl.DataFrame(
    ...     {"event_id": ["a", "b", "c"], "sportsbook": ["x", "x", "y"], "state": ["graded", "graded", "waiting"],
    ...      "ev": [0.04, 0.02, 0.03], "price": [2.1, 3.0, 1.9], "best_price": [2.2, 3.0, 1.9],
    ...      "closing": [0.5, 0.33, None]})
    >>> report(bets, "sportsbook").select("group", "count", "graded", "avg_ev", pl.col("avg_clv").round(4)).rows()
    [('x', 2, 2, 3.0, 2.0), ('y', 1, 0, None, None)]
    """
    if by is not None and by not in GROUPINGS:
        raise ValueError(f"by must be one of {', '.join(GROUPINGS)}, got {excerpt(by)}")
    names = pl.repeat("all", bets.height, dtype=pl.String, eager=True) if by is None else bets[by].fill_null("")
    texts = names.unique().sort() if by is not None else pl.Series(["all"])
    n = texts.len()
    group = _codes(names, texts)
    event = _codes(bets["event_id"], bets["event_id"].unique())
    state = {name: (bets["state"] == name).to_numpy() for name in STATES}
    counts = {name: np.bincount(group[mask], minlength=n) for name, mask in state.items()}
    early = ~state["in_play"]
    closing = np.where(state["graded"], _numbers(bets, "closing"), np.nan)
    value, best = clv(bets["price"], closing), clv(bets["best_price"], closing)
    others = clv(bets["price"], np.where(early, _numbers(bets, "others"), np.nan))
    gain = np.where(early, _numbers(bets, "gain"), np.nan)
    figures = {  # values and their scale
        "avg_ev": (np.where(np.isnan(value), np.nan, bets["ev"]), 100.0),
        "avg_clv": (value, 100.0),
        "beat_close": (np.where(np.isnan(value), np.nan, value > 0.0), 1.0),
        "avg_best_clv": (best, 100.0),
        "avg_others_ev": (np.where(np.isnan(others), np.nan, bets["ev"]), 100.0),
        "avg_others_clv": (others, 100.0),
        "others_beat_close": (np.where(np.isnan(others), np.nan, others > 0.0), 1.0),
        "avg_return": (np.where(gain > 0.0, gain * (bets["price"].to_numpy() - 1.0), gain), 100.0),
    }
    averages = {name: means(values, group, event, n) for name, (values, _) in figures.items()}
    counts |= {
        name: np.bincount(group[mask], minlength=n)
        for name, mask in (("won", gain > 0.0), ("lost", gain < 0.0), ("pushed", gain == 0.0))
    }
    counts |= {"events": averages["avg_clv"].clusters, "others_graded": averages["avg_others_clv"].size}
    columns = {"group": texts, "count": np.bincount(group, minlength=n), **counts}
    for name, (_, scale) in figures.items():
        columns |= {name: averages[name].mean * scale, f"{name}_error": averages[name].error * scale}
    frame = pl.DataFrame(columns, schema_overrides={"group": pl.String}).select(*REPORT_SCHEMA)
    frame = frame.cast(dict(REPORT_SCHEMA)).with_columns(pl.col(pl.Float64).fill_nan(None))  # type: ignore[arg-type]
    return frame.sort("group") if by == "day" else frame.sort("count", "group", descending=[True, False])


def _numbers(bets: pl.DataFrame, name: str) -> Floats:
    if name not in bets.columns:
        return np.full(bets.height, np.nan)
    return np.asarray(bets[name].cast(pl.Float64).fill_null(np.nan).to_numpy())


def _codes(texts: pl.Series, distinct: pl.Series) -> Longs:
    place = pl.DataFrame({"text": distinct}).with_row_index("at")
    coded = pl.DataFrame({"text": texts}).join(place, on="text", how="left", maintain_order="left")
    return np.asarray(coded["at"].to_numpy(), dtype=np.int64)
