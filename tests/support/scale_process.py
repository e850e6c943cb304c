"""A writer or a gateway in a process of its own, over a made-up world that is the same for every writer.

    python scale_process.py SETTINGS.toml STEP_SECONDS STEPS

The world begins at the time in WORLD_START. A writer that takes over goes on with the batch after the last one in the
log, so that what is in the log at the end is what one undisturbed writer would have put there.
"""

import faulthandler
import os
import signal
import sys
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from oddsengine.simulate import World
from oddsengine_service import server, tiers
from oddsengine_service.board.writer import StalledError
from oddsengine_service.demo import apply_batch, teams_of
from oddsengine_service.scale import lease, log_reader, log_writer
from oddsengine_service.settings import load, make_folder

TICK_S = 2.0  # of the world, between two steps


def world(events: int) -> World:
    """The world of every writer of a test."""
    start = datetime.fromisoformat(os.environ["WORLD_START"])
    return World(5, events=events, live=0.4, tick=TICK_S, hazards=True, start=start)


def feed(service: Any, pause_s: float, steps: int, events: int) -> None:
    """Step through the world from where the log ends; then stand still."""
    node, made = service.node, world(events)
    teams = teams_of(made)
    for batch in islice(made.run(1e9), node.engine.number, steps):
        if node.closing.wait(pause_s):
            return
        while True:
            try:
                node.write(apply_batch, node, batch, made.scores, teams, batch.now).result()
                break
            except StalledError:
                if node.closing.wait(0.2):
                    return
            except RuntimeError:  # the node closes
                if node.closing.wait(0.2):
                    return
                raise
    print(f"done {node.engine.number}", flush=True)


def main(config: str, pause_s: str, steps: str, events: str = "10") -> None:
    faulthandler.register(signal.SIGUSR2)  # where every thread is
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    log_writer.CHECK_S = float(os.environ.get("CHECK_S", "1"))
    if "NO_LIMITS" in os.environ:
        tiers.TIERS["enterprise"] = tiers.TIERS["enterprise"]._replace(rate=10**9, streams=10**6)
    if "NO_SNAPSHOTS" in os.environ:
        vars(log_reader)["fits"] = lambda *_: False
    if "IGNORES_LEASE" in os.environ:
        lease.LeaseHolder._renew = _keeps_on  # type: ignore[method-assign]
    server.demonstrate = lambda service: feed(service, float(pause_s), int(steps), int(events))
    served = server.Service.__init__

    def begun(self: Any, node: Any, *more: Any, **words: Any) -> None:
        served(self, node, *more, **words)
        signal.signal(signal.SIGUSR1, lambda *_: print(f"state {node.engine.number} {hashes(node)}", flush=True))

    server.Service.__init__ = begun  # type: ignore[method-assign]
    settings = load(config, os.environ)
    make_folder(settings)
    server.serve(settings, os.environ, demonstration=True, announce=lambda text: print(text.split()[2], flush=True))


def hashes(node: Any) -> str:
    """The state of a node's boards: now without views, and a minute ago."""
    late = [engine.state_hash(views=False) for engine in node.boards.late.values()]
    return "/".join([node.engine.state_hash(views=False), *late])


async def _keeps_on(self: Any) -> None:
    """A writer that does not mind whose the lease is."""


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main(*sys.argv[1:])
