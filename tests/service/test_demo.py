"""The demo's market in virtual time: as many opportunities as on real boards, at any hour."""

from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from support.effort import less
from support.service_running import Running, until

from oddsengine.live.engine import Engine
from oddsengine.simulate.world import START
from oddsengine_service import demo
from oddsengine_service.demo import EVENTS, HISTORY_S, HISTORY_TICK_S, history, simulation
from oddsengine_service.server import demonstrate

GAMES = 12  # a day
SHARE = GAMES / EVENTS
HOURS = less(8, 3)
NAMES = ("sportsbook", "event_id", "market_type", "selection", "line", "odds_decimal")
ODD = START + timedelta(seconds=41, microseconds=123_456)


class Look(NamedTuple):
    """What a bettor sees before the games."""

    games: int
    ev: list[float]  # percent
    true: list[float]  # the same of the true probabilities
    arbitrages: set[str]


@cache
def looks() -> list[Look]:
    """A look every half hour at a small demo."""
    world = simulation(7, ODD, events=GAMES, tick=300.0)
    engine = Engine()
    view = engine.view(kinds=("ev", "arbitrage"), keep=True)
    seen = []
    for at, batch in enumerate(world.run(HOURS * 3600.0)):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        if at % 6 == 0:
            shown, to_come = view.opportunities(), ~pl.col("is_live")
            ev, arbitrages = shown.ev.filter(to_come), shown.arbitrage.filter(to_come)
            true = [
                100.0 * world.chances(r["event_id"], r["market_type"], r["selection"], r["line"]).returns(r["net_odds"])
                for r in ev.iter_rows(named=True)
            ]
            games = len({quote["event_id"] for quote in batch.quotes})
            seen.append(Look(games, ev["ev_percentage"].to_list(), true, set(arbitrages["id"])))
    return seen


def test_the_board_is_as_full_at_every_hour() -> None:
    games = [look.games for look in looks()]
    assert min(games) > 0.6 * max(games)


def test_a_few_prices_have_an_edge_at_every_hour_and_most_of_them_are_small() -> None:
    """The momentum of the estimator builds up within hours."""
    counts = [len(look.ev) for look in looks()]
    assert np.mean(counts) < 100.0 * SHARE
    assert max(counts) < 300.0 * SHARE
    ev = np.concatenate([look.ev for look in looks()])
    assert ev.size > 10.0 * SHARE * len(looks())
    assert np.mean(ev < 3.0) > 0.8


def test_few_arbitrages_are_open_at_once_and_few_come_in_an_hour() -> None:
    assert max(len(look.arbitrages) for look in looks()) <= 5  # one market's lines
    assert len(set().union(*(look.arbitrages for look in looks()))) <= 15.0 * SHARE * HOURS


def test_ev_shown_is_worth_about_as_much() -> None:
    shown, true = (np.concatenate([getattr(look, name) for look in looks()]) for name in ("ev", "true"))
    assert abs(np.mean(shown) - np.mean(true)) < 0.75


def test_the_history_of_the_board_is_that_of_all_batches() -> None:
    """Prices that did not move are left out in between, which changes no price."""
    boards = []
    for batches in (history, lambda world: world.run(HISTORY_S, tick=HISTORY_TICK_S)):
        engine, sent = Engine(), 0
        for batch in batches(simulation(7, ODD, events=3)):
            engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
            sent += len(batch.quotes)
        boards.append((engine.table().select(NAMES).sort(NAMES), engine.now, sent))
    (some, now, fewer), (every, same, most) = boards
    assert now == same == ODD + timedelta(seconds=HISTORY_S)
    assert some.rows() == every.rows()
    assert fewer < 0.9 * most


def test_the_demo_is_full_when_it_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "DAYS", 1)
    monkeypatch.setattr(demo, "run_world", partial(demo.run_world, events=GAMES))
    server = Running(tmp_path)
    server.service._run = demonstrate
    server.played.set()
    try:
        with server.start().client("enterprise") as client:
            until(lambda: client.get("/health").status_code == 200, "ready")
            assert client.get("/health").json()["status"] == "ok"
            assert client.get("/feeds").json()["meta"]["status"] == "green"
            assert client.get("/odds").json()["data"]
            since = client.get("/odds/movers?minutes=10").json()["meta"]["since"]
            assert datetime.now(UTC) - datetime.fromisoformat(since) > timedelta(seconds=0.9 * HISTORY_S)
    finally:
        server.stop()
