"""The demo: a made-up world in real time, so that everything can be tried without a feed."""

import time
from datetime import UTC, datetime, timedelta

from oddsengine.simulate import World
from service.log import Log
from service.node import Node
from service.splits import EVERY_S, Splits, demonstrate

SEED = 7
EVENTS = 60
SPLITS_H = 6  # of betting splits before the beginning
_A_DAY = 86_400.0


def run(node: Node, log: Log, *, seed: int = SEED, events: int = EVENTS) -> None:
    """Let a world run at the clock's pace until the node closes; each day another one begins."""
    splits: Splits = node.parts.setdefault("splits", Splits())
    due, hours = 0.0, SPLITS_H
    while not node.closing.is_set():
        world = World(seed, events=events, start=datetime.now(UTC), live=0.3, hazards=True)
        for batch in world.run(_A_DAY):
            ahead = (batch.now - datetime.now(UTC)).total_seconds()
            if ahead > 0.0 and node.closing.wait(ahead):
                return
            if node.closing.is_set():
                return
            now = max(batch.now, datetime.now(UTC) - timedelta(seconds=5))
            node.write(node.step, batch.quotes, now, complete=batch.complete, events=batch.events).result()
            if time.monotonic() >= due:
                demonstrate(splits, node.engine, datetime.now(UTC), seed=seed, hours=hours)
                due, hours = time.monotonic() + EVERY_S, 0
        seed += 1
    log.say("demo ended", at_seed=seed, after_s=round(time.time() - node.started, 1))
