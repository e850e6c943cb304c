"""Value of a price: its EV at the close of the other books (`oddsengine.history.closing_consensus`)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.detection.question import hashes, prepare
from oddsengine.history.closing_consensus import closing_logits, votes_at
from oddsengine.pricing import close as fair_close
from oddsengine.query.values import league_id
from oddsengine.staking.outcomes import profits, settle
from oddsengine.staking.stakes import bet_table

THRESHOLDS = (0.0, 1.0, 2.0, 3.0, 5.0)
"""EV in percent: a price is graded when it first reaches each threshold."""

SHOWN_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "t": pl.Int64,  # unix seconds
    "event": pl.String,
    "league": pl.String,
    "market": pl.String,
    "period": pl.String,
    "selection": pl.String,
    "line": pl.Float64,
    "book": pl.String,
    "odds": pl.Float64,
    "ev": pl.Float64,
    "threshold": pl.Float64,
    "se": pl.Float64,
    "hours": pl.Float64,
    "flags": pl.List(pl.String),
    "worth": pl.Float64,  # null: no close
    "error": pl.Float64,  # logits: close minus the probability shown
    "close": pl.String,  # "others" or "sharp"
    "won": pl.Float64,  # 1, 0, between for half a stake; null for a push or an unknown result
}
"""Columns of the graded prices of an audit."""


def grade(
    shown: pl.DataFrame, closes: pl.DataFrame | None, results: pl.DataFrame | None, table: catalog.FairTable
) -> pl.DataFrame:
    """Grade prices first shown before the start; returns `SHOWN_SCHEMA`."""
    if not shown.height:
        return pl.DataFrame(schema=SHOWN_SCHEMA)
    start = pl.col("event_start_time").to_physical()
    early = shown.filter(~pl.col("is_live") & (start > pl.col("t")))
    if not early.height:
        return pl.DataFrame(schema=SHOWN_SCHEMA)
    closing = closing_logits(early, votes_at(closes, table))
    x, net, fair = (column.to_numpy() for column in (closing["x"], early["net_odds"], early["fair"]))
    worth = 100.0 * (net / (1.0 + np.exp(-x)) - 1.0)
    error = x - np.log(fair / (1.0 - fair))
    hours = (early["event_start_time"].to_physical() - early["t"]).to_numpy() / 3.6e9
    c = table.constants
    home = (pl.col("market") == "spread") & (pl.col("outcome") == "home")
    line = pl.when("lined").then(pl.col("threshold_") / 100.0 * pl.when(home).then(-1.0).otherwise(1.0) + 0.0)
    frame = pl.DataFrame(
        {
            "t": early["t"] // 1_000_000,
            "event": early["event_id"],
            "league": _ids(early, "sport", "league", lambda sport, league: league_id(league, sport) if league else ""),
            "market": early["market"],
            "period": early["period"],
            "selection": early["outcome"],
            "line": early.select(line).to_series(),
            "book": _ids(early, "sportsbook", "sportsbook", lambda book, _: catalog.book(book).id),
            "odds": early["odds"],
            "ev": early["ev"],
            "threshold": early["threshold"],
            "se": c.close_sigma * np.maximum(hours, c.close_least_h) ** (1.0 / 3.0),
            "hours": hours,
            "flags": pl.Series([fair_close.named(f) for f in early["flag"].to_list()], dtype=pl.List(pl.String)),
            "worth": pl.Series(worth).fill_nan(None),
            "error": pl.Series(error).fill_nan(None),
            "close": closing["who"],
            "won": _won(early, results),
        }
    )
    return frame.select(pl.col(name).cast(dtype) for name, dtype in SHOWN_SCHEMA.items())


def _ids(rows: pl.DataFrame, first: str, second: str, name: Callable[[Any, Any], str]) -> pl.Series:
    """Return an id by two columns of texts; spellings of one league or book have one id."""
    pairs = list(zip(rows[first].to_list(), rows[second].to_list(), strict=True))
    known = {pair: name(*pair) for pair in dict.fromkeys(pairs)}
    return pl.Series([known[pair] for pair in pairs], dtype=pl.String)


def closing_probabilities(prices: pl.DataFrame, closes: pl.DataFrame | None, table: catalog.FairTable) -> pl.Series:
    """Return fair probabilities of the rows of an odds table at the other books' close; null without one."""
    logits = closing_logits(located_prices(prices, table), votes_at(closes, table))["x"].fill_nan(None)
    return (1.0 / (1.0 + (-logits).exp())).alias("closing_probability")


def located_prices(prices: pl.DataFrame, constants: catalog.FairTable) -> pl.DataFrame:
    """Return the ladder position of prices, as `closing_consensus.located` does for a board's rows."""
    prepared = prepare(bet_table(prices), [])
    identity, g = prepared.identity, prepared.identity.groups
    of = fair_close.estimator(identity.kinds, identity.sports, identity.books, constants)
    ladder = g.ladder[g.market]
    kind, sport = g.kind[ladder], of.lines.sport[g.event[ladder]]
    priced = pl.DataFrame(
        {
            "at": g.row.astype(np.int64),
            "ladder": hashes(prepared).ladder[ladder],
            "threshold_": g.threshold[g.market],
            "side": g.side,
            "outcomes": g.outcomes[g.market],
            "slope": of.lines.slope[kind, sport],
            "reach": of.lines.reach[kind, sport],
        }
    )
    books = prices.select("sportsbook").with_columns(at=pl.int_range(pl.len()))
    joined = books.join(priced, on="at", how="left", maintain_order="left")
    # A wording without a market has no ladder, and so no votes.
    nothing = pl.col("ladder", "threshold_", "side", "outcomes", "reach").fill_null(0)
    return joined.with_columns(nothing, pl.col("slope").fill_null(np.nan))


def _won(shown: pl.DataFrame, results: pl.DataFrame | None) -> pl.Series:
    """Return the payout of a stake of 1 divided by the odds: 1 won, 0 lost, between for half a stake.

    Null for a push, and if the result is unknown or not determined by the final score.
    """
    if results is None:
        return pl.Series([None] * shown.height, dtype=pl.Float64)
    scores = results.select("event_id", home=pl.col("home_goals"), away=pl.col("away_goals"))
    scored = shown.join(scores, on="event_id", how="left", maintain_order="left").with_columns(
        pl.col("home", "away").cast(pl.Float64).fill_null(np.nan)
    )
    columns = ("family", "period", "subject", "threshold_", "side", "sport", "league", "home", "away")
    gain = np.array(
        [
            settle(family, period, subject, line, side, catalog.sport(sport or ""), league or "", home, away)
            for family, period, subject, line, side, sport, league, home, away in scored.select(columns).iter_rows()
        ]
    )  # fmt: skip
    odds = shown["net_odds"].to_numpy()
    won = (1.0 + profits(gain, odds)) / odds
    return pl.Series(np.where(gain == 0.0, np.nan, won)).fill_nan(None)
