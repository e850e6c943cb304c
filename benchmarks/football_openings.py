"""Value of the EV of football openings at Pinnacle's close, compared with the formula in plain Python.

The file has the columns of openings that `oddsengine audit` reads (docs/truth.md), with closing prices of Pinnacle.
"""

import argparse
import math
import time
from collections.abc import Mapping
from statistics import median

import numpy as np
import polars as pl

import oddsengine as oe
from oddsengine.backtesting.cells import clustered_mean
from oddsengine.maths.devig import devig_groups

SIDES = ("home", "draw", "away")
SHARP, SHARE, OWN, CLIP = "pinnacle", 0.75, 0.05, 0.10  # the constants of catalog/fair.toml
NO_BOOKS = ("market_average", "market_best")
AT_ONCE = 8_000  # games
Prices = tuple[float, float, float]
Game = dict[str, Prices]


def games(table: pl.DataFrame, when: str) -> dict[str, Game]:
    """Return complete prices by game and book, at the opening or the close, with a plausible sum."""
    columns = [pl.col(f"{when}_{side}") for side in SIDES]
    some = table.filter(~pl.col("book").is_in(NO_BOOKS)).drop_nulls([f"{when}_{side}" for side in SIDES])
    some = some.filter(pl.sum_horizontal(1.0 / column for column in columns).is_between(0.98, 1.25))
    name = pl.format("{} {} {} {}", "season", "division", "date", "home")
    found: dict[str, Game] = {}
    for game, book, *odds in some.select(name, "book", *columns).iter_rows():
        found.setdefault(game, {})[book] = (odds[0], odds[1], odds[2])
    return found


def fair_openings(opening: Mapping[str, Game]) -> dict[tuple[str, str], dict[str, float]]:
    """Return fair probabilities of `find_ev` by (game, book)."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    names = list(opening)
    words = dict(zip(SIDES, ("Home", "Draw", "Away"), strict=True))
    for begin in range(0, len(names), AT_ONCE):
        rows = [
            (game, book, side, words[side], price)
            for game in names[begin : begin + AT_ONCE]
            for book, prices in opening[game].items()
            for side, price in zip(SIDES, prices, strict=True)
        ]
        columns = ["event_id", "sportsbook", "selection_type", "selection", "odds_decimal"]
        board = pl.DataFrame(rows, columns, orient="row").with_columns(
            sport=pl.lit("soccer"), home_team=pl.lit("Home"), away_team=pl.lit("Away"),
            market_type=pl.lit("moneyline_3way"),
        )  # fmt: skip
        rated = oe.find_ev(board, min_ev=-100.0, include=("suspect",))
        columns = ["event_id", "sportsbook", "selection_type", "fair_probability"]
        for game, book, side, prob in rated.select(columns).iter_rows():
            found.setdefault((game, book), {})[side] = prob
    return found


def logits(some: Mapping[str, Game]) -> dict[str, dict[str, list[float]]]:
    """Return logits after power de-vig, by game and book."""
    odds = np.array([prices for books in some.values() for prices in books.values()], np.float64)
    prob = devig_groups(odds.ravel(), np.arange(0, odds.size + 1, len(SIDES)), "power")
    x = iter(np.log(prob / (1.0 - prob)).reshape(odds.shape).tolist())
    return {game: {book: next(x) for book in books} for game, books in some.items()}


def plain(x: Mapping[str, list[float]], judged: str) -> dict[str, float] | None:
    """The formula: clipped mean of soft books, most of the way to the sharp, with the judged book as evidence."""
    soft = [book for book in x if book not in (SHARP, judged)]
    if SHARP not in x or not soft:
        return None
    out = {}
    for k, side in enumerate(SIDES):
        centre = median(x[book][k] for book in soft)
        mean = sum(min(max(x[book][k], centre - CLIP), centre + CLIP) for book in soft) / len(soft)
        y = mean + SHARE * (x[SHARP][k] - mean) + OWN * (x[judged][k] - mean)
        out[side] = 1.0 / (1.0 + math.exp(-y))
    return out


def main() -> None:
    """Print both figures with errors clustered by game."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", help="a Parquet file of openings and closing prices")
    table = pl.read_parquet(parser.parse_args().games)
    opening, closing = games(table, "open"), games(table, "close")
    begin = time.process_time()
    rated = fair_openings(opening)
    seconds = time.process_time() - begin
    print(f"{len(opening):,} games, {len(rated):,} books rated by find_ev in {seconds:.1f} s of processor time")
    x, ends = logits(opening), logits(closing)
    shown: dict[str, list[tuple[str, float, float]]] = {"find_ev": [], "formula": []}
    for game, books in opening.items():
        end = ends.get(game, {}).get(SHARP)
        if end is None or SHARP not in books:
            continue
        for book, prices in books.items():
            for name, probs in (("find_ev", rated.get((game, book))), ("formula", plain(x[game], book))):
                if book == SHARP or probs is None or len(probs) < len(SIDES):
                    continue
                for side, price, at in zip(SIDES, prices, end, strict=True):
                    ev = 100.0 * (price * probs[side] - 1.0)
                    if 1.0 <= ev < 8.0 and price < 4.0:
                        shown[name].append((game, ev, 100.0 * (price / (1.0 + math.exp(-at)) - 1.0)))
    for name, rows in shown.items():
        codes = np.unique([game for game, _, _ in rows], return_inverse=True)[1]
        edges, worth = (np.array([row[at] for row in rows]) for at in (1, 2))
        (mean, error), (bias, bias_error) = clustered_mean(worth, codes), clustered_mean(edges - worth, codes)
        print(
            f"{name:<8} {len(rows):>6} prices  shown {edges.mean():.2f}  worth {mean:.2f} +-{error:.2f}  "
            f"bias {bias:+.2f} +-{bias_error:.2f}"
        )


if __name__ == "__main__":
    main()
