"""Enter a fair price of yours in the benchmark: what its EV is worth at the close, beside ours and others.

    $ python benchmark_method.py
    ours              35 prices, 2.67 shown, worth 2.26
    Pinnacle, power   42 prices, 2.84 shown, worth 1.99
    mine              28 prices, 2.46 shown, worth 2.41

`fair` gets the prices of one market and returns the probabilities of its outcomes; docs/benchmark.md has all that it
gets. On real seasons: oddsengine benchmark fair --method benchmark_method:fair, which fetches them, or with a folder of
files here: python benchmark_method.py FOLDER. Without a folder, a simulated season is used.
"""

import math
import sys
from pathlib import Path

import oddsengine as oe
from oddsengine.simulate.football_seasons import seasons

SHARP = 3.0  # votes of Pinnacle; the choice of one who has seen no result


def fair(prices: oe.MarketPrices) -> list[float] | None:
    """Mean of all books in log-odds, each without its margin, in which Pinnacle has several votes."""
    if len(prices.odds) < 3:
        return None  # no answer
    totals = [0.0] * len(prices.outcomes)
    for book, odds in prices.odds.items():
        weight = SHARP if book == "pinnacle" else 1.0
        for at, probability in enumerate(oe.devig(odds, "power")):
            totals[at] += weight * math.log(probability / (1.0 - probability))
    votes = len(prices.odds) + (SHARP - 1.0) * ("pinnacle" in prices.odds)
    shares = [1.0 / (1.0 + math.exp(-total / votes)) for total in totals]
    return [share / sum(shares) for share in shares]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        folder, years = sys.argv[1], None
    else:
        folder, years = "simulated", "2020"
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "E0.csv").write_bytes(b"".join(next(seasons(7)).data.splitlines(keepends=True)[:101]))
    result = oe.benchmark(folder, seasons=years, methods={"mine": fair})
    for row in result.table.filter(result.table["method"].is_in(["ours", "Pinnacle, power", "mine"])).to_dicts():
        print(f"{row['method']:<16} {row['graded']:>3} prices, {row['shown']:.2f} shown, worth {row['worth']:.2f}")
