"""Fills by a history against what simulated exchanges would have filled, of which every order of everyone is known."""

from datetime import datetime, timedelta
from math import floor
from typing import Any

import polars as pl
import pytest
from support.effort import less

import oddsengine as oe
from oddsengine.catalog import book
from oddsengine.execution.ladders import Ladder, Level
from oddsengine.execution.queues import Queue
from oddsengine.execution.taking import Taken
from oddsengine.simulate import SimulatedOrder

WORLDS = less(1000, 20)
SECONDS, TICK = 150.0, 5.0
BOOKS = ["pinnacle", "kalshi", "novig", "draftkings"]
_CERTAIN = 0.95
_LAG = 0.6  # s: how old a simulated exchange's ladder can be when it is recorded


def played(seed: int) -> tuple[oe.World, pl.DataFrame]:
    """A world, and what was recorded of it."""
    world = oe.World(
        seed, events=3, live=0.0, tick=TICK, traders=True, slow=3.0, main_lines=True, books=BOOKS, exchange_hold=0.5
    )  # fmt: skip
    rows = [{**quote, "last_seen_at": batch.now} for batch in world.run(SECONDS) for quote in batch.quotes]
    return world, pl.DataFrame(rows, infer_schema_length=None).filter(pl.col("sport") != "soccer")


def bounds(seed: int, **how: Any) -> pl.DataFrame:
    """Of the orders of each bound at exchanges: what the history says that they got, and what they would have got."""
    world, history = played(seed)
    if history.is_empty():
        return pl.DataFrame()
    found = oe.fills(
        history, kinds=["low_hold"], max_hold=4.0, stakes=[300.0], orders=True,
        **{"delays": {book: (least, most + _LAG) for book, (least, most) in world.delays.items()}, **how},
    )  # fmt: skip
    assert found.orders is not None
    known = world.now - timedelta(seconds=30)  # what comes later may be answered after the end
    orders = found.orders.filter(
        ~pl.col("is_hedge"), pl.col("sportsbook").is_in(list(world.delays)), pl.col("sent_at") < known
    )  # fmt: skip
    sent = [_order(row) for row in orders.iter_rows(named=True)]
    of = orders["bound"].to_list()
    truth: list[float] = [0.0] * len(sent)
    for bound in ("least", "most"):  # two players, who do not take from each other
        places = [at for at, name in enumerate(of) if name == bound]
        for at, filled in zip(places, world.filled([sent[at] for at in places]), strict=True):
            truth[at] = filled.contracts
    return orders.select("bound", "wanted", "units", truth=pl.Series(truth, dtype=pl.Float64))


def _order(row: dict[str, Any]) -> SimulatedOrder:
    contracts = row["wanted"]
    if row["sportsbook"] == "kalshi":
        contracts = max(float(floor(contracts + 1e-6)), 1.0)
    return SimulatedOrder(
        row["sportsbook"], row["event_id"], row["market_type"], row["selection"], row["line"], row["sent_at"],
        row["limit_odds"], contracts,
    )  # fmt: skip


def held(seeds: range, **how: Any) -> tuple[float, float]:
    """In which share of some worlds the truth is not below the lower bound, and not above the upper one."""
    lower, upper, worlds = 0, 0, 0
    for seed in seeds:
        orders = bounds(seed, **how)
        if orders.is_empty():
            continue
        worlds += 1
        least, most = (orders.filter(bound=name).select(pl.sum("units", "truth")).row(0) for name in ("least", "most"))
        lower += least[1] >= least[0] - 1.0  # a contract, for rounding
        upper += most[1] <= most[0] + 1.0
    assert worlds > len(seeds) / 2
    return lower / worlds, upper / worlds


def test_the_truth_is_between_the_bounds() -> None:
    assert min(held(range(WORLDS))) >= _CERTAIN


SOME = range(6)


def test_levels_that_are_used_twice_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Taken, "take", lambda *_: None)
    assert held(SOME)[0] < _CERTAIN


def test_a_delay_that_is_ignored_is_caught() -> None:
    """Orders that arrive at once get what was shown; the truth is that some of it was gone."""
    assert held(SOME, delays=0.0, legs="together")[0] < _CERTAIN


# ---- orders that rest ----


def _ladder(row: dict[str, Any] | None) -> Ladder:
    levels = row["levels"] if row else []
    some = [
        Level(each["odds_decimal"], 1 / each["odds_decimal"], 0.0, each["stake"] * each["odds_decimal"])
        for each in levels
    ]
    return Ladder(0, 0, book("novig"), tuple(some), True, False, 0, 0.01, 0.0, 0.0, 0.0, 0)


def queued(seed: int) -> tuple[float, float, float]:
    """What orders that join the best price got: at least, in truth, at most."""
    world, history = played(seed)
    novig = history.filter(pl.col("sportsbook") == "novig", pl.col("market_type") != "spreads")
    times = sorted(history["last_seen_at"].unique())
    total = [0.0, 0.0, 0.0]
    for _, rows in novig.group_by("event_id", "market_type", "line", maintain_order=True):
        looks: dict[str, list[tuple[datetime, dict[str, Any]]]] = {}
        for row in rows.iter_rows(named=True):
            looks.setdefault(row["selection"], []).append((row["last_seen_at"], row))
        if len(looks) != 2:
            continue

        def shown(side: str, when: datetime, looks: Any = looks) -> dict[str, Any] | None:
            row = next((row for time, row in reversed(looks[side]) if time <= when), None)
            return row if row and row.get("is_active") is not False and row["levels"] else None

        for own, other in ((side, next(each for each in looks if each != side)) for side in looks):
            for sent in times[3:-11:4]:
                offered = shown(other, sent)
                if offered is None or shown(own, sent) is None:
                    continue
                odds, until = 1.0 / (1.0 - 1.0 / offered["odds_decimal"]), sent + timedelta(seconds=40)
                first = looks[own][0][1]
                order = SimulatedOrder(
                    "novig", first["event_id"], first["market_type"], own, first["line"], sent, odds, 200.0, until=until
                )  # fmt: skip
                total[1] += world.filled([order])[0].contracts
                for at, least in ((0, True), (2, False)):
                    arrives = sent + timedelta(seconds=world.delays["novig"][least])
                    path = [time for time in times if arrives <= time <= until]
                    queue = Queue(odds, 200.0, _ladder(shown(other, path[0])), least=least)
                    for time in path[1:]:
                        queue.follow(_ladder(shown(other, time)), _ladder(shown(own, time)).levels)
                    total[at] += queue.filled
    return total[0], total[1], total[2]


def test_the_truth_of_queues_is_between_the_bounds() -> None:
    worlds = [queued(seed) for seed in range(less(200, 8))]
    some = [world for world in worlds if world[1] > 0.0]
    assert len(some) > len(worlds) / 2
    assert sum(least <= truth + 1.0 and truth <= most + 1.0 for least, truth, most in some) >= _CERTAIN * len(some)
    assert sum(world[0] for world in some) > 0.0
