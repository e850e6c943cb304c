"""The same jobs by this package and by penaltyblog and sports-betting, in one run.

    pip install '.[bench]' && python benchmarks/bench_packages.py

flumine is not timed: it runs strategies over recorded Betfair streams and has none of these functions.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import oddsengine as oe
from oddsengine.maths import scoring as scores


def best_of(function: Callable[[], Any], repeats: int) -> float:
    """Return the minimum time of several runs, without the first."""
    function()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def line(job: str, ours: Callable[[], Any], other: str, theirs: Callable[[], Any]) -> None:
    a, b = best_of(ours, 9), best_of(theirs, 2)
    print(f"{job:<46} {a * 1e3:>10.3f} ms   {other:<14} {b * 1e3:>10.1f} ms   {b / a:>8.0f} x", flush=True)


def penaltyblog() -> None:
    from penaltyblog import betting, implied  # noqa: PLC0415

    rng = np.random.default_rng(1)
    fair = rng.dirichlet(np.full(3, 3.0), 1000)
    odds = 1.0 / (fair * 1.05)
    rows = odds.tolist()

    def one_by_one(method: str) -> list[Any]:
        return [implied.calculate_implied(row, method) for row in rows]

    for method in ("power", "shin"):
        line(
            f"remove the margin, 1,000 three-way, {method}", partial(oe.devig, odds, method),
            "penaltyblog", partial(one_by_one, method),
        )  # fmt: skip
    prices = odds[:100] * 1.12
    line(
        "Kelly on exclusive outcomes, 100 events", lambda: oe.kelly_exclusive(fair[:100], prices),
        "penaltyblog",
        lambda: [betting.multiple_kelly_criterion(*e) for e in zip(prices.tolist(), fair[:100].tolist(), strict=True)],
    )  # fmt: skip
    line(
        "cover a refused leg", lambda: oe.cover([100.0, 0.0], [2.1, 2.05], [2.05, 1.9]),
        "penaltyblog", lambda: betting.arbitrage_hedge([100.0, 0.0], [2.1, 2.05], [2.05, 1.9]),
    )  # fmt: skip
    ours = oe.cover([100.0, 0.0], [2.1, 2.05], [2.05, 1.9]).filter(choice="level")["worst_case"].item()
    assert abs(ours - betting.arbitrage_hedge([100.0, 0.0], [2.1, 2.05], [2.05, 1.9]).guaranteed_profit) < 1e-9


def sports_betting() -> None:
    from sklearn.model_selection import TimeSeriesSplit  # noqa: PLC0415
    from sportsbet.dataloaders import DataLoader  # noqa: PLC0415
    from sportsbet.evaluation import OddsComparisonBettor, backtest  # noqa: PLC0415
    from sportsbet.sources import SampleSoccerOdds, SampleSoccerStats  # noqa: PLC0415

    loader = DataLoader(param_grid={"league": ["England"]}, stats=SampleSoccerStats(), odds=SampleSoccerOdds())
    x, y, o = loader.extract_train_data(odds_type="market_average")
    bettor = OddsComparisonBettor(betting_markets=["home_win", "draw", "away_win"])
    columns = [next(c for c in o.columns if name in c) for name in ("home_win", "draw", "away_win")]
    won = np.argmax(y.to_numpy()[:, :3], axis=1)

    def ours() -> Any:
        odds = o[columns].to_numpy()
        stakes = scores.flat_stakes(oe.devig(odds), odds * 1.05, least=0.0)
        return scores.returns(stakes, scores.gains(odds, won), seed=0)

    line(
        f"value bets over {len(x)} matches, with error bars", ours, "sports-betting",
        lambda: backtest(bettor, x, y, o, cv=TimeSeriesSplit(2), n_jobs=1),
    )  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for suite in (penaltyblog, sports_betting):
        suite()
