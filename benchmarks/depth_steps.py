"""Steps of a live board with levels on a tenth of its prices, beside the same board without.

    python benchmarks/depth_steps.py --rounds 20

Two engines of 200,000 prices with one view over all books take the same batches in turns; a batch has 1,000 changes as
JSON. In the one, every tenth price has five levels and sends them with each change. With `--stake`, both views are for
a stake.
"""

import argparse
import gc
import statistics
import time
from typing import Any

import msgspec
import numpy as np
import polars as pl
from synthetic import NOW, board

from oddsengine.live.engine import Engine


def with_levels(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give every tenth price five levels, each a little worse than the one before."""
    out = []
    for at, row in enumerate(rows):
        odds = row["odds_decimal"]
        levels = [{"odds_decimal": 1.0 + (odds - 1.0) * 0.99**k, "stake": 100.0 * (k + 1)} for k in range(5)]
        out.append(row if at % 10 else row | {"levels": levels, "max_bet": 100.0})
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--changes", type=int, default=1_000)
    parser.add_argument("--stake", type=float)
    arguments = parser.parse_args()
    frame = board(arguments.rows).with_columns(pl.col("event_start_time", "last_seen_at").dt.to_string("iso:strict"))
    rows = frame.to_dicts()
    deep = with_levels(rows)
    print(f"{sum('levels' in row for row in deep) / len(deep):.1%} of {len(rows):,} prices have levels")
    engines = []
    for given in (rows, deep):
        engine = Engine(threads=1)
        more: dict[str, Any] = {} if arguments.stake is None else {"stake": arguments.stake}
        view = engine.view(keep=True, **more)
        began = time.perf_counter()
        engine.step(msgspec.json.encode(given), NOW)
        print(f"first step {time.perf_counter() - began:.2f} s")
        engines.append((engine, view))
    gc.collect()
    gc.freeze()
    rng = np.random.default_rng(5)
    times: list[list[float]] = [[], []]
    for number in range(arguments.rounds + 3):
        at = rng.choice(len(rows), arguments.changes, replace=False)
        factor = 1.0 + rng.random(at.size) * 0.01
        for which in (0, 1) if number % 2 else (1, 0):
            changed = [
                (rows, deep)[which][i] | {"odds_decimal": rows[i]["odds_decimal"] * f}
                for i, f in zip(at.tolist(), factor.tolist(), strict=True)
            ]
            text = msgspec.json.encode(changed)
            began = time.perf_counter()
            engines[which][0].step(text, NOW)
            if number >= 3:
                times[which].append(time.perf_counter() - began)
    medians = [statistics.median(each) * 1000.0 for each in times]
    ratio = statistics.median(b / a for a, b in zip(*times, strict=True))
    print(f"without levels {medians[0]:.2f} ms, with {medians[1]:.2f} ms: {ratio:.3f}")


if __name__ == "__main__":
    main()
