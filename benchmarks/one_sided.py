"""One-sided prices against the two-sided ones that they were made of: hide the under of player props, and compare.

    python benchmarks/one_sided.py LOOKS.parquet TWO_SIDED_BOOK ...

LOOKS is a table of looks at player props (docs/truth.md): `event`, `sport`, `league`, `start`, `home`, `away`,
`player`, `market`, `line`, `book`, `look`, `over`, `under`, and `actual` if results are known. Hidden are

- `players`: the under of every book, for half of the players
- `books`: the under of all books but the named ones, and theirs for half of the players
- `long`: the under of players with a probability of over below 37 %

Each is compared with the fair price of the same row where nothing is hidden, on both halves of the looks by time: the
difference in log-odds, and what prices shown at an EV of 1 or more were worth by it, +- one standard error by game.
"""

import hashlib
import sys
from collections.abc import Container, Iterator

import numpy as np
import polars as pl

import oddsengine as oe

KEY = ("event", "market", "player", "line", "book")
LONG = 0.37


def share(*of: object) -> float:
    """A number from 0 to 1 that depends on some values only."""
    return int(hashlib.md5("|".join(map(str, of)).encode(), usedforsecurity=False).hexdigest()[:8], 16) / 2.0**32


def hidden(looks: pl.DataFrame, case: str, whole: Container[str]) -> pl.Series:
    """Whether the under of each price is hidden."""
    half = [share(*row) < 0.5 for row in looks.select(KEY[:4]).iter_rows()]
    if case == "players":
        return pl.Series(half)
    if case == "long":
        p = (1.0 / pl.col("over")) / (1.0 / pl.col("over") + 1.0 / pl.col("under"))
        return looks.select(p.median().over(KEY[:4]) < LONG).to_series()
    return pl.Series([book not in whole or h for book, h in zip(looks["book"], half, strict=True)])


def board(looks: pl.DataFrame) -> pl.DataFrame:
    """The odds table of the prices of one look."""
    sides = [
        looks.select(
            "i", "sport", "league", "hide", event_id="event", home_team="home", away_team="away", market_type="market",
            selection=pl.lit(side), player_name="player", line="line", sportsbook="book", odds_decimal=side.lower(),
            event_start_time="start", last_seen_at="look", is_live=pl.lit(value=False),
        )
        for side in ("Over", "Under")
    ]  # fmt: skip
    return pl.concat(sides)


def compared(looks: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """One-sided estimates of each look, beside those where nothing is hidden."""
    for now, some in looks.partition_by("look", as_dict=True).items():
        table = board(some)
        kept = table.filter(~pl.col("hide") | (pl.col("selection") == "Over"))
        words = {"min_ev": -99.0, "now": now[0]}
        columns = ["i", "selection", "fair_probability", "odds_decimal"]
        full = oe.find_ev(table, include=["suspect"], **words).select(columns[:3])
        ours = oe.find_ev(kept, include=["suspect", "one_sided"], **words).select(*columns, "flags")
        yield ours.join(full, on=["i", "selection"], suffix="_full")


def by_game(values: pl.Series, games: pl.Series) -> tuple[float, float]:
    """A mean, and its standard error clustered by game."""
    x, (_, at) = values.to_numpy(), np.unique(games.to_numpy(), return_inverse=True)
    return float(x.mean()), float(np.sqrt((np.bincount(at, x - x.mean()) ** 2).sum()) / x.size)


def report(case: str, part: str, found: pl.DataFrame) -> None:
    """Print the line of a case."""
    logit = [(pl.col(name) / (1.0 - pl.col(name))).log() for name in ("fair_probability", "fair_probability_full")]
    net = pl.col("odds_decimal")
    found = found.filter(net < 4.0, pl.col("flags").list.contains("one_sided")).with_columns(
        off=logit[0] - logit[1],
        ev=100.0 * (pl.col("fair_probability") * net - 1.0),
        worth=100.0 * (pl.col("fair_probability_full") * net - 1.0),
    )
    if not found.height:
        return
    off = found["off"].to_numpy()
    middle, most = np.quantile(np.abs(off), [0.5, 0.9])
    print(
        f"{case:8} {part:6} {found.height:6,} prices  off by {off.mean():+.4f} on average, {middle:.4f} in the middle, "
        f"{most:.4f} at most in nine of ten"
    )
    first = found.filter(pl.col("ev") >= 1.0, ~pl.col("flags").list.contains("suspect"))
    first = first.unique([*KEY, "selection"], keep="first", maintain_order=True)
    if first.height >= 10:
        worth, error = by_game(first["worth"], first["event"])
        print(f"{'':16}{first.height:6,} shown at {first['ev'].to_numpy().mean():.2f}, worth {worth:.2f} +-{error:.2f}")
    won = found.filter(pl.col("actual").is_not_null(), pl.col("actual") != pl.col("line"))
    won = won.unique([*KEY, "selection"], keep="first", maintain_order=True)
    if won.height >= 1000:
        hit = ((won["actual"] > won["line"]) == (won["selection"] == "Over")).cast(pl.Float64)
        more, error = by_game(hit - won["fair_probability"], won["event"])
        print(f"{'':16}{won.height:6,} results, {100.0 * more:+.2f} +-{100.0 * error:.2f} points more won than said")


def main() -> None:
    """Compare, case by case."""
    looks = pl.read_parquet(sys.argv[1]).unique([*KEY, "look"], keep="first", maintain_order=True).with_row_index("i")
    looks = looks.with_columns(actual=pl.col("actual") if "actual" in looks.columns else None)
    times = looks["look"].unique().sort()
    middle = times[times.len() // 2]
    for case in ("players", "books", "long"):
        some = looks.with_columns(hide=hidden(looks, case, sys.argv[2:]))
        facts = looks.select("i", "actual", "look", *KEY)
        found = pl.concat(compared(some)).join(facts, on="i", maintain_order="left")
        report(case, "first", found.filter(pl.col("look") < middle))
        report(case, "second", found.filter(pl.col("look") >= middle))


if __name__ == "__main__":
    main()
