"""Load kernels ahead of time, so that no request or measurement includes loading or compilation.

Those that neither come with the package nor are cached on disk (see `oddsengine._cache`) are compiled. Compilation is
mostly single-threaded Python, so a second process then compiles half of them: those of quotes, guards and maths
(`alongside`). This process compiles the estimator, the detectors and views. `compilation` makes all kernels.
"""

import contextlib
import gc
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from oddsengine import query
from oddsengine._jit import REPORTER, caching
from oddsengine.detection.finders import find_all
from oddsengine.guards import verdicts as guards
from oddsengine.live.engine import Engine
from oddsengine.maths import middle
from oddsengine.maths.devig import DEVIG_METHODS, devig, devig_groups
from oddsengine.pricing import momentum
from oddsengine.staking import portfolio
from oddsengine.tables.expressions import OddsExpr

_SECONDS = 300  # timeout of the second process
_done: list[bool] = []  # set once this process has all kernels


def load_kernels(report: Callable[[str], None] | None = None) -> None:
    """Load the kernels of finders, boards and margin removal; compile those that are neither prebuilt nor cached.

    Parameters
    ----------
    report
        Called with a message when compilation starts, when it ends, and if its result cannot be cached; None prints
        them to standard error.

    Examples
    --------
    In a process that answers requests, before the first of them:

    >>> load_kernels()
    """
    REPORTER.send = report
    if _done:
        return
    collects = gc.isenabled()
    gc.disable()  # compilation creates many objects and little garbage
    REPORTER.begin()
    try:
        _compile()
    finally:
        REPORTER.end()
        if collects:
            gc.enable()
    _done.append(True)
    REPORTER.say()


def _compile() -> None:
    other: subprocess.Popen[bytes] | None = None
    before = REPORTER.compiled
    devig([1.9, 2.1], "power")
    if REPORTER.compiled > before and caching():  # not cached, so the others are not either
        code = "import gc; gc.disable(); from oddsengine.compiling.loading import alongside; alongside()"
        with contextlib.suppress(OSError):  # no interpreter to start, as in an embedded one
            other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    search()
    if other is not None:
        try:
            other.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            other.kill()
            other.wait()
    guards.warm_up()  # load what the other process compiled, and compile the rest
    query.warm()
    momentum.warm_up()
    maths()


def search() -> None:
    """Run the estimator, the detectors and views."""
    rows = _rows()
    find_all(pl.DataFrame(rows), commission={"a": 0.01}, guards=[])
    live(rows, views=True)


def alongside() -> None:
    """Compile what the other process needs last, or not at all."""
    live(_rows(), views=False)
    guards.warm_up()
    maths()


def maths() -> None:
    """Run every kernel of the maths modules once."""
    prices = np.array([[1.9, 2.1], [1.5, 3.0]])
    devig(prices, "power")
    devig_groups(np.array([1.9, 2.1, 2.0, 3.0, 9.0]), np.array([0, 2, 5]), "power")
    pl.DataFrame({"by": [0, 1, 0, 1], "odds": 1.9}).select(OddsExpr(pl.col("odds")).devig(by="by"))
    even = portfolio.GameColumns.from_pairs([([0.6, 0.4], [[1.0], [-1.0]])])
    portfolio.best_stakes(even, portfolio.StakeLimits.none(1))
    shapes = middle.Shapes.of([0, 1, 2, 3, 4], 3.0)
    location = middle.fit(shapes, 250, 0.5)
    points = middle.window([250] * 5, [450] * 5).points
    middle.evaluate(250, 450, 1.9, 1.9, middle.tail(shapes, location, points))
    for method in DEVIG_METHODS:
        devig(prices, method)
        devig(np.array([2.0, 3.0, 9.0]), method)
        devig_groups(np.array([1.9, 2.1, 2.0, 3.0, 9.0]), np.array([0, 2, 5]), method)


def _rows() -> list[dict[str, Any]]:
    """Prices of a game."""
    quotes = [("pinnacle", 1.95, 1.95), ("a", 2.1, 1.8), ("b", 1.9, 1.9)]
    return [
        {
            "sportsbook": book,
            "event_id": "event",
            "sport": "basketball",
            "home_team": "Home",
            "away_team": "Away",
            "market_type": name,
            "selection": side,
            "odds_decimal": odds,
            "line": -line if side == "Away" else line,
        }
        for book, over, under in quotes
        for name, sides, lines in (
            ("total_points", ("Over", "Under"), (200.5, 202.5)),
            ("point_spread", ("Home", "Away"), (-2.5, -4.5)),
        )
        for side, odds in zip(sides, (over, under), strict=True)
        for line in lines
    ]


def live(rows: list[dict[str, Any]], *, views: bool) -> None:
    """Run every kernel of a live board once; without `views`, only those of its prices."""
    engine = Engine()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    engine.step(rows, moment)
    view = engine.view() if views else None
    dearer = [{**row, "odds_decimal": row["odds_decimal"] + 0.01} for row in rows]
    engine.step(dearer, moment + timedelta(seconds=1), complete=[("a", None)])
    engine.step([{**row, "is_live": True} for row in rows[:2]], moment + timedelta(seconds=20))
    engine.step(removed=engine.table()["row_id"].to_list(), now=moment + timedelta(seconds=30))
    engine.step(now=moment + timedelta(seconds=700))
    if view is not None:
        view.ids()
    engine.warm_up()
