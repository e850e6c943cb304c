"""The demo: a simulated market in real time."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from oddsengine.games import Reading
from oddsengine.simulate import Batch, World
from oddsengine_service import futures
from oddsengine_service.log import Log
from oddsengine_service.node import Node, StalledError
from oddsengine_service.splits import EVERY_S, demonstrate
from oddsengine_service.wire.games import Teams

SEED = 7
EVENTS = 60
DISSENT, EXCHANGE_HOLD = 0.7, 3.0  # about as many opportunities as on real boards, and as small
SPLITS_H = 6  # hours of betting splits before the start
_A_DAY = 86_400.0


def take(node: Node, batch: Batch, scores: Sequence[Reading], teams: Mapping[str, Teams], now: datetime) -> None:
    """Apply a simulation's batch in the writer thread.

    Futures and game states come first, so that responses about the new board include them.
    """
    futures.demonstrate(node.futures, now)
    node.games.put(scores, now, {reading.event: teams[reading.event] for reading in scores})
    node.step(batch.quotes, now, complete=batch.complete, events=batch.events)


def teams_of(world: World) -> dict[str, Teams]:
    return {
        fixture.id: Teams(fixture.league.sport, fixture.league.id, fixture.home, fixture.away)
        for fixture in world.fixtures
    }


def run(node: Node, log: Log, *, seed: int = SEED, events: int = EVENTS, hazards: bool = False) -> None:
    """Run a simulation in real time until the node closes; a new one starts each day."""
    clock = node.clock
    due, hours = 0.0, SPLITS_H
    while not node.closing.is_set():
        world = World(
            seed,
            events=events,
            start=clock.now(),
            live=0.3,
            dissent=DISSENT,
            exchange_hold=EXCHANGE_HOLD,
            hazards=hazards,
        )
        teams = teams_of(world)
        for batch in world.run(_A_DAY):
            while (ahead := (batch.now - clock.now()).total_seconds()) > 0.0:
                if node.closing.wait(ahead):
                    return
            if node.closing.is_set():
                return
            now = max(batch.now, clock.now() - timedelta(seconds=5))
            while not node.closing.is_set():
                with suppress(StalledError):
                    node.write(take, node, batch, world.scores, teams, now).result()
                    break
                node.closing.wait(0.2)
            if time.monotonic() >= due:
                with suppress(StalledError):
                    demonstrate(node.splits, node.engine, clock.now(), seed=seed, hours=hours)
                    due, hours = time.monotonic() + EVERY_S, 0
        seed += 1
    log.event("demo ended", at_seed=seed, after_s=round(clock.time() - node.started, 1))
