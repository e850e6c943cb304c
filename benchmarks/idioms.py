"""The four kinds of opportunity with table expressions alone: baselines of the benchmarks.

Neither identity nor guards: keys are the source's own columns. Fair prices come from multiplicative de-vig of one
sharp book; middles from the best over at any lower line of the ladder.
"""

import polars as pl

_OVER = ("home", "over")


def keyed(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns for the expressions: side as over or under, and the home handicap as the line."""
    over = pl.col("selection_type").is_in(_OVER)
    spread = pl.col("market_type") == "point_spread"
    return frame.select(
        "event_id", "market_type", "player_name", "sportsbook", "selection_type", "odds_decimal",
        over.alias("over"),
        pl.when(spread & over).then(-pl.col("line")).otherwise("line").fill_null(0.0).alias("at"),
    )  # fmt: skip


def coded(frame: pl.DataFrame) -> pl.DataFrame:
    """The same with integers for strings: event and market in one key, books as small numbers."""
    return keyed(frame).select(
        pl.struct("event_id", "market_type", "player_name").rank("dense").cast(pl.Int32).alias("ladder"),
        (pl.col("at") * 100).cast(pl.Int32),
        pl.col("over"),
        pl.col("sportsbook").rank("dense").cast(pl.Int16).alias("book"),
        "odds_decimal",
    )


def four_kinds(rows: pl.LazyFrame, ladder: list[str], book: str, sharp: object) -> list[pl.LazyFrame]:
    """+EV, arbitrage, low hold and middles."""
    market = [*ladder, "at"]
    price = pl.col("odds_decimal")
    best = rows.group_by(*market, "over").agg(price.max().alias("best"), pl.col(book).get(price.arg_max()).alias("by"))
    sides = best.group_by(market).agg(
        (1.0 / pl.col("best")).sum().alias("total"),
        pl.len().alias("sides"),
        (1.0 / pl.col("best").filter("over").first()).alias("over"),
        (1.0 / pl.col("best").filter(~pl.col("over")).first()).alias("under"),
    )
    whole = sides.filter(pl.col("sides") == 2)
    arbitrage = whole.filter(pl.col("total") <= 1.0 / 1.005)
    low_hold = whole.filter(pl.col("total").is_between(1.0, 1.02))
    reference = rows.filter(pl.col(book) == sharp).select(*market, "over", (1.0 / price).alias("q"))
    fair = reference.with_columns((pl.col("q") / pl.col("q").sum().over(market)).alias("p"))
    ev = (
        rows.join(fair, on=[*market, "over"], nulls_equal=True)
        .with_columns((pl.col("p") * price - 1.0).alias("edge"))
        .filter((pl.col("edge") >= 0.0) & (pl.col(book) != sharp))
    )
    middles = (
        sides.sort(market)
        .with_columns(pl.col("over").cum_min().shift(1).over(ladder).alias("easier"))
        .filter(pl.col("easier") + pl.col("under") <= 1.0)
    )
    return [ev, arbitrage, low_hold, middles]
