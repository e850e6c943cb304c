"""Worlds whose books follow each other, against what was measured of eleven US books: docs/truth.md has the table."""

from functools import cache

import numpy as np
import polars as pl
import pytest

import oddsengine as oe
from oddsengine import catalog
from oddsengine.backtesting.fitting import collect
from oddsengine.simulate import World
from oddsengine.simulate.simulated_leagues import LEAGUES

BOOKS = (
    "fanduel", "draftkings", "betmgm", "caesars", "bovada", "mybookie", "betonline", "lowvig", "betrivers", "fanatics",
    "hardrock",
)  # fmt: skip
SPREADS, TOTALS = ({names[at] for each in LEAGUES for names in (each.names, each.other_names)} for at in (0, 1))
MARKETS = {"moneyline", "h2h"} | SPREADS | TOTALS
SEEDS = range(3_000_011, 3_000_035)  # nothing was chosen on these
COLUMNS = (
    "sportsbook", "sport", "league", "home_team", "away_team", "market_type", "selection", "selection_type", "line",
    "odds_decimal", "odds_american", "event_start_time",
)  # fmt: skip


def prices(seed: int, hours: float = 8.0) -> pl.DataFrame:
    """A world as an odds table: main markets of games to come without a draw, a look every five minutes."""
    world = World(seed, events=20, books=BOOKS, live=0.0, tick=300.0, slow=10.0, main_lines=True)
    rows = [
        {name: quote.get(name) for name in COLUMNS}
        | {"event_id": f"{seed}-{quote['event_id']}", "last_seen_at": batch.now}
        for batch in world.run(hours * 3600.0)
        for quote in batch.quotes
        if quote["market_type"] in MARKETS and not quote["is_live"] and quote["sport"] != "soccer"
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


@cache
def worlds() -> pl.DataFrame:
    table = pl.concat([prices(seed) for seed in SEEDS], how="diagonal_relaxed")
    return table.sort("last_seen_at", maintain_order=True)


def logits(table: pl.DataFrame) -> pl.DataFrame:
    """Each book's first outcome after power de-vig at every look: event, market, line, book, t, left (h), x."""
    home = pl.col("selection_type").is_in(["home", "over"])
    american = pl.col("odds_american")
    odds = pl.when(american > 0).then(1.0 + american / 100.0).otherwise(1.0 - 100.0 / american)
    market = pl.col("market_type")
    family = pl.when(market.is_in(SPREADS)).then(1).when(market.is_in(TOTALS)).then(2).otherwise(0)
    side = pl.when(pl.col("selection_type") == "away").then(-1.0).otherwise(1.0)
    start = table.group_by("event_id").agg(start=pl.col("event_start_time").last())
    sides = (
        table.with_columns(
            market=family, at=(side * pl.col("line")).fill_null(0.0), odds=pl.coalesce("odds_decimal", odds)
        )
        .group_by("event_id", "market", "at", "sportsbook", t="last_seen_at")
        .agg(a=pl.col("odds").filter(home).last(), b=pl.col("odds").filter(~home).last())
        .drop_nulls()
        .join(start, on="event_id")
    )
    a, b = np.log(sides["a"].to_numpy()), np.log(sides["b"].to_numpy())
    k = np.ones(a.size)
    for _ in range(30):
        p, q = np.exp(-k * a), np.exp(-k * b)
        k += (p + q - 1.0) / (a * p + b * q)
    left = (pl.col("start") - pl.col("t")).dt.total_seconds() / 3600.0
    return sides.with_columns(left=left, x=pl.Series(np.log(np.exp(-k * a) / (1.0 - np.exp(-k * a)))))


def consensus(book: pl.DataFrame) -> pl.DataFrame:
    """The books' median at every look of a line that five quote, with its close and its move of half an hour."""
    of = ["event_id", "market", "at"]
    mean = (
        book.group_by(*of, "t").agg(pl.col("left").first(), n=pl.len(), m=pl.col("x").median()).filter(pl.col("n") > 4)
    )
    close = mean.filter(pl.col("left") <= 0.5).sort("t").group_by(of).agg(close=pl.col("m").last())
    ago = mean.select(*of, t=pl.col("t") + pl.duration(minutes=30), ago="m")
    return mean.join(close, on=of).join(ago, on=[*of, "t"], how="left")


def share_to_come(mean: pl.DataFrame, first: float, last: float) -> float:
    """By how much of its last half hour's move the market moves on until the close."""
    some = mean.filter(pl.col("left").is_between(first, last) & (pl.col("ago") - pl.col("m") != 0.0))
    moved, rest = (some["m"] - some["ago"]).to_numpy().clip(-0.25, 0.25), (some["close"] - some["m"]).to_numpy()
    return float(moved @ rest / (moved @ moved))


def within_twice(value: float, measured: float) -> bool:
    return 0.5 <= value / measured <= 2.0


def test_prices_of_slow_books_stand_and_a_market_has_one_line() -> None:
    book = logits(prices(1, 2.0)).sort("t")
    assert book.select(pl.struct("event_id", "market", "sportsbook", "t").is_unique().all()).item()
    same = ["event_id", "market", "at", "sportsbook"]
    before = book.with_columns(pl.col("t", "a", "b").shift().over(same).name.suffix("_ago"))
    before = before.filter(pl.col("t") - pl.col("t_ago") == pl.duration(minutes=5))
    changed = before.select(((pl.col("a") != pl.col("a_ago")) | (pl.col("b") != pl.col("b_ago"))).mean()).item()
    assert 0.005 < changed < 0.1


@pytest.mark.exhaustive
def test_slow_books_move_as_us_books_do() -> None:
    book = logits(worlds())
    mean = consensus(book)
    spread = book.join(mean.select("event_id", "market", "at", "t", "m"), on=["event_id", "market", "at", "t"])
    off = (spread["x"] - spread["m"]).abs()
    for quantile, measured in ((0.5, 0.009), (0.75, 0.023), (0.9, 0.044), (0.98, 0.074)):
        assert within_twice(float(off.quantile(quantile) or 0.0), measured), quantile
    for hours, measured in ((0.6, 0.025), (2.0, 0.046), (5.0, 0.067), (8.0, 0.082)):
        some = mean.filter((pl.col("left") - hours).abs() < 0.5)
        assert within_twice(float(np.std((some["close"] - some["m"]).to_numpy())), measured), hours
    assert within_twice(share_to_come(mean, 0.25, 3.0), 0.21)
    assert within_twice(share_to_come(mean, 3.0, 24.0), 0.6)


@pytest.mark.exhaustive
def test_in_slow_worlds_a_book_that_stands_out_knows_as_much_as_a_us_book() -> None:
    rows = collect(worlds(), catalog.fair_table(), 72.0)
    for family in (["moneyline"], ["spread"], ["total"], ["moneyline", "spread", "total"]):
        some = rows.filter(pl.col("family").is_in(family))
        ramp = ((some["hours"].to_numpy() - 1.0) / 5.0).clip(0.0, 1.0)
        moved = some["momentum"].to_numpy()
        terms = np.column_stack((some["own"].to_numpy(), moved * ramp, moved * (1.0 - ramp), some["fresh"].to_numpy()))
        weight = np.sqrt(some["weight"].to_numpy())
        left = (some["close"] - some["mean"]).to_numpy()
        own, *_ = np.linalg.lstsq(terms * weight[:, None], left * weight, rcond=None)[0]
        assert within_twice(own / 13.0, 0.13), family  # beside nine others


@pytest.mark.exhaustive
def test_in_slow_worlds_the_price_at_the_close_is_true_and_the_old_references_are_not() -> None:
    audit = oe.audit(worlds())
    cells = {(row["by"], row["value"]): row for row in audit.table.iter_rows(named=True) if row["threshold"] == 1.0}
    assert cells["all", ""]["graded"] > 200
    for at in (("all", ""), ("market", "moneyline"), ("market", "spread"), ("market", "total")):
        assert abs(cells[at]["bias"]) < 2.0 * cells[at]["bias_se"], at
    assert cells["all", ""]["bias_se"] < 0.4
    plain = {"own": {"weight": 0.0}, "momentum": {"far": 0.0, "near": 0.0}, "fresh": {"weight": 0.0}}
    mean = oe.audit(worlds(), fair=catalog.amended_fair_table(plain)).table.row(0, named=True)
    assert mean["bias"] > 2.0 * mean["bias_se"]
    for book in ("betonline", "fanduel"):
        single = oe.audit(worlds(), sharp=book, method="power").table.row(0, named=True)
        assert single["graded"] > 300
        assert single["bias"] > 5.0 * single["bias_se"]
        assert single["ratio"] < 0.44
