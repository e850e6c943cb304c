"""Value of prices and bets: EV at the close of the other books (`oddsengine.history.closing_consensus`), and result."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.closes import CLOSE_S
from oddsengine.columns import Floats
from oddsengine.detection.question import hashes, prepare
from oddsengine.history.closing_consensus import closing_by_flag, fresh
from oddsengine.pricing import close_errors, close_table
from oddsengine.pricing.one_sided import ONE_SIDED
from oddsengine.query.values import league_id
from oddsengine.staking.outcomes import profits, settle, settled
from oddsengine.staking.stakes import bet_table
from oddsengine.tables.frames import IntoFrame, to_polars

THRESHOLDS = (0.0, 1.0, 2.0, 3.0, 5.0)
"""EV in percent: a price is graded when it first reaches each threshold."""

TOO_FEW = "too few other books at the close"
"""Why a bet whose event closed has no EV at the close."""

SHOWN_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "t": pl.Int64,  # unix seconds
    "event": pl.String,
    "league": pl.String,
    "market": pl.String,
    "period": pl.String,
    "selection": pl.String,
    "player": pl.String,
    "line": pl.Float64,
    "book": pl.String,
    "odds": pl.Float64,
    "ev": pl.Float64,
    "threshold": pl.Float64,
    "se": pl.Float64,  # logits
    "ev_low": pl.Float64,  # of the 90 % range shown
    "ev_high": pl.Float64,
    "still_there": pl.Float64,
    "hours": pl.Float64,
    "flags": pl.List(pl.String),
    "worth": pl.Float64,  # null: no close
    "error": pl.Float64,  # logits: close minus the probability shown
    "close": pl.String,  # "others" or "sharp"; "one_sided": others that quote one side, with an estimated margin
    "won": pl.Float64,  # 1, 0, between for half a stake; null for a push or an unknown result
}
"""Columns of the graded prices of an audit."""

BEFORE_START = ~pl.col("is_live") & (pl.col("event_start_time").to_physical() > pl.col("t"))
"""Whether a price was first shown before the start of its game; only those are graded."""

_TO_GRADE = (
    "ident", "t", "threshold", "ev", "fair", "net_odds", "odds", "flag", "ev_low", "ev_high", "ev_error", "still_there",
    "event_id", "sport", "league", "sportsbook", "market_type", "player_name", "event_start_time", "is_live", "family",
    "market", "period", "subject", "outcome", "threshold_", "side", "lined",
)  # fmt: skip


def with_closes(shown: pl.DataFrame, closes: pl.DataFrame | None, table: catalog.FairTable) -> pl.DataFrame:
    """Return of prices that were shown what `grade_shown` reads, with what the closes say.

    That is `closing`, in logits, and `who`, as of `closing_by_flag`.
    """
    if not shown.height:
        return shown.with_columns(closing=pl.lit(None, pl.Float64), who=pl.lit(None, pl.String))
    closing = closing_by_flag(shown, closes, table, shown["flag"] & int(ONE_SIDED) != 0)
    read = shown.select(*_TO_GRADE, *_later(shown))
    return read.with_columns(closing=closing["x"], who=closing["who"])


def _later(shown: pl.DataFrame) -> list[str]:
    """The columns of delays."""
    return [name for name in shown.columns if name.startswith(("there_", "shown_"))]


def grade_shown(
    shown: pl.DataFrame, results: pl.DataFrame | None, stats: pl.DataFrame | None, table: catalog.FairTable
) -> pl.DataFrame:
    """Grade prices first shown before the start; returns `SHOWN_SCHEMA`, and the columns of delays.

    `shown` has the columns of `with_closes`; `results` and `stats` are the history's final scores and players' numbers.
    """
    later = _later(shown)
    schema = SHOWN_SCHEMA | dict.fromkeys(later, pl.Boolean())
    if not shown.height:
        return pl.DataFrame(schema=schema)
    early = shown.filter(BEFORE_START)
    if not early.height:
        return pl.DataFrame(schema=schema)
    one_sided = early["flag"] & int(ONE_SIDED) != 0
    x, net, fair = (early[name].to_numpy() for name in ("closing", "net_odds", "fair"))
    worth = 100.0 * (net / (1.0 + np.exp(-x)) - 1.0)
    error = x - np.log(fair / (1.0 - fair))
    hours = (early["event_start_time"].to_physical() - early["t"]).to_numpy() / 3.6e9
    home = (pl.col("market") == "spread") & (pl.col("outcome") == "home")
    line = pl.when("lined").then(pl.col("threshold_") / 100.0 * pl.when(home).then(-1.0).otherwise(1.0) + 0.0)
    frame = pl.DataFrame(
        {
            "t": early["t"] // 1_000_000,
            "event": early["event_id"],
            "league": ids_of(
                early, "sport", "league", lambda sport, league: league_id(league, sport) if league else ""
            ),
            "market": early["market"],
            "period": early["period"],
            "selection": early["outcome"],
            "player": early["player_name"],
            "line": early.select(line).to_series(),
            "book": ids_of(early, "sportsbook", "sportsbook", lambda book, _: catalog.book(book).id),
            "odds": early["odds"],
            "ev": early["ev"],
            "threshold": early["threshold"],
            "se": np.where(
                one_sided,  # wider: the margin is estimated too
                early["ev_error"] / (100.0 * net * fair * (1.0 - fair)),
                close_errors.standard_errors(early["sport"], early["league"], hours, table),
            ),
            "ev_low": early["ev_low"],
            "ev_high": early["ev_high"],
            "still_there": early["still_there"],
            "hours": hours,
            "flags": pl.Series([close_table.named(f) for f in early["flag"].to_list()], dtype=pl.List(pl.String)),
            "worth": pl.Series(worth).fill_nan(None),
            "error": pl.Series(error).fill_nan(None),
            "close": early["who"],
            "won": pl.select(pl.coalesce(_won(early, results), _prop_won(early, stats))).to_series(),
        }
    ).hstack(early.select(later))
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def ids_of(rows: pl.DataFrame, first: str, second: str, name: Callable[[Any, Any], str]) -> pl.Series:
    """Return an id by two columns of texts; spellings of one league or book have one id."""
    pairs = list(zip(rows[first].to_list(), rows[second].to_list(), strict=True))
    known = {pair: name(*pair) for pair in dict.fromkeys(pairs)}
    return pl.Series([known[pair] for pair in pairs], dtype=pl.String)


def closing_probabilities(
    prices: pl.DataFrame, closes: pl.DataFrame | None, table: catalog.FairTable, one_sided: pl.Series | None = None
) -> pl.DataFrame:
    """Return fair probabilities of the rows of an odds table at the other books' close, and the source of each.

    The columns are `closing_probability`, null without a close, and `who`, as of `closing_by_flag`. `one_sided` are
    the flagged rows; None is none.
    """
    flagged = pl.repeat(value=False, n=prices.height, eager=True) if one_sided is None else one_sided
    found = closing_by_flag(located_prices(prices, table), closes, table, flagged)
    return found.select(closing_probability=1.0 / (1.0 + (-pl.col("x").fill_nan(None)).exp()), who="who")


def located_prices(prices: pl.DataFrame, constants: catalog.FairTable) -> pl.DataFrame:
    """Return the ladder position of prices, as `closing_consensus.Position` has it of a board's rows."""
    prepared = prepare(bet_table(prices), [])
    identity, g = prepared.identity, prepared.identity.groups
    of = close_table.estimator(identity.kinds, identity.sports, identity.books, constants)
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
    # A raw label without a market has no ladder, and so no votes.
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


def _prop_won(shown: pl.DataFrame, stats: pl.DataFrame | None) -> pl.Series:
    """Return the same for player props, by the player's number."""
    if stats is None:
        return pl.Series([None] * shown.height, dtype=pl.Float64)
    joined = shown.join(stats, on=["event_id", "player_name", "market_type"], how="left", maintain_order="left")
    beats = pl.col("actual") - pl.col("threshold_") / 100.0
    won = pl.when(pl.col("side") == 0).then(beats > 0.0).otherwise(beats < 0.0)
    sides = pl.col("outcome").is_in(["over", "under"]) & (beats != 0.0)
    return joined.select(pl.when(sides).then(won.cast(pl.Float64))).to_series()


# ---- bets ----


def closing_evs(bets: pl.DataFrame, closes: pl.DataFrame | None, table: catalog.FairTable) -> Floats:
    """Return the EV of each bet at the other books' close, a fraction; nan without one.

    Bets have `net_odds`, `placed_at`, `is_live` and `event_start_time` besides the columns of an odds table. Only those
    placed before the start have a close.
    """
    out = np.full(bets.height, np.nan)
    at = placed_before(bets).arg_true().to_numpy()
    if not at.size or closes is None:
        return out
    early = bets[at]
    fair = closing_probabilities(early, closes, table)["closing_probability"].fill_null(np.nan).to_numpy()
    out[at] = early["net_odds"].to_numpy() * fair - 1.0
    return out


def own_closing(bets: pl.DataFrame, closes: pl.DataFrame | None, table: catalog.FairTable) -> pl.DataFrame:
    """Return the closing odds of each bet at its own book, null without, as `closing_odds`, and three flags.

    `readable`: the raw label of the bet is an outcome of a market. `market`: any book quoted the market at the close,
    on any line. `book`: its own book did.
    """
    here = located_prices(bets, table).select("ladder", "threshold_", "side", book=_book_ids(bets))
    if closes is None or not closes.height:
        nothing = pl.lit(value=False)
        return here.select(
            closing_odds=pl.lit(None, pl.Float64), readable=pl.col("ladder") != 0, market=nothing, book=nothing
        )  # fmt: skip
    last = fresh(closes)
    there = located_prices(last, table).select(
        "ladder", "threshold_", "side", book=_book_ids(last), odds=last["odds_decimal"], seen=last["last_seen_at"]
    )
    there = there.filter(pl.col("ladder") != 0)
    on = ["ladder", "threshold_", "side", "book"]
    prices = there.sort("seen", "odds", descending=True).unique(on, keep="first").select(*on, closing_odds="odds")
    flags = {"market": ["ladder"], "book": ["ladder", "book"]}
    joined = here.join(prices, on=on, how="left", maintain_order="left")
    for name, columns in flags.items():
        quoted = there.select(columns).unique().with_columns(pl.lit(value=True).alias(f"has_{name}"))
        joined = joined.join(quoted, on=columns, how="left", maintain_order="left")
    return joined.select(
        "closing_odds",
        readable=pl.col("ladder") != 0,
        **{name: pl.col(f"has_{name}").fill_null(value=False) for name in flags},
    )


def _book_ids(rows: pl.DataFrame) -> pl.Series:
    return ids_of(rows, "sportsbook", "sportsbook", lambda book, _: catalog.book(book).id)


def placed_before(bets: pl.DataFrame) -> pl.Series:
    """Return whether each bet was placed before the start of its event."""
    return (~bets["is_live"] & (bets["event_start_time"] > bets["placed_at"])).fill_null(value=False)


def why_no_close(closes: pl.DataFrame | None, closing: pl.Expr) -> pl.Expr:
    """Return why bets have no value at the close (`closing`); null for those that have one."""
    closed = [] if closes is None else closes["event_id"].unique().to_list()
    start = pl.col("event_start_time")
    return (
        pl.when(closing.is_not_null())
        .then(None)
        .when("is_live")
        .then(pl.lit("bet in play"))
        .when(start.is_null())
        .then(pl.lit("no start time"))
        .when(start <= pl.col("placed_at"))
        .then(pl.lit("placed after the start"))
        .when(~pl.col("event_id").is_in(closed))
        .then(pl.lit(f"no snapshot in the {CLOSE_S // 60} minutes before the start"))
        .otherwise(pl.lit(TOO_FEW))
    )


def bet_gains(bets: pl.DataFrame, scores: Mapping[str, tuple[float, float]]) -> Floats:
    """Return the profit per unit staked by final scores; nan if undetermined."""
    odds = bets["net_odds"].to_numpy()
    return profits(bet_shares(bets, scores, odds), odds)


def bet_shares(
    bets: pl.DataFrame, scores: Mapping[str, tuple[float, float]], odds: Floats | None = None
) -> Floats:  # fmt: skip
    """Return the share of each stake won or lost by final scores, from -1 to 1; nan if undetermined; see `settled`."""
    if not bets.height:
        return np.empty(0)
    table = bet_table(bets)
    nothing = (np.nan, np.nan)
    home, away = np.array([scores.get(event, nothing) for event in bets["event_id"].to_list()], np.float64).T
    return settled(table, home, away, odds)


def final_scores(results: IntoFrame | None) -> dict[str, tuple[float, float]]:
    """Return the scores of home and away by event; raise `ValueError` if a column is missing."""
    if results is None:
        return {}
    names = {"home_goals": "home_score", "away_goals": "away_score"}
    results = to_polars(results)
    frame = results.rename({a: b for a, b in names.items() if a in results.columns and b not in results.columns})
    missing = {"event_id", "home_score", "away_score"} - set(frame.columns)
    if missing:
        raise ValueError(
            f"results must have the columns event_id, home_score and away_score, got {', '.join(results.columns)}"
        )
    scored = frame.drop_nulls(["home_score", "away_score"])
    return {
        event: (float(h), float(a)) for event, h, a in scored.select("event_id", "home_score", "away_score").iter_rows()
    }
