"""The demo: a made-up world in real time, so that everything can be tried without a feed."""

import time
from datetime import UTC, datetime, timedelta

from oddsengine.simulate import World
from service.log import Log
from service.node import Node

SEED = 7
EVENTS = 60
_A_DAY = 86_400.0


def run(node: Node, log: Log, *, seed: int = SEED, events: int = EVENTS) -> None:
    """Let a world run at the clock's pace until the node closes; each day another one begins."""
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
        seed += 1
    log.say("demo ended", at_seed=seed, after_s=round(time.time() - node.started, 1))
