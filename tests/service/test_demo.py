"""The demo's market in virtual time: as many opportunities as on real boards, at any hour."""

from datetime import timedelta
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from support.effort import less

from oddsengine.live.engine import Engine
from oddsengine.simulate.world import START
from oddsengine_service.demo import EVENTS, simulation

GAMES = 12  # a day
SHARE = GAMES / EVENTS
HOURS = less(8, 3)
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
