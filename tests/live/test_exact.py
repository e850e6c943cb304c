"""What views hold open after every step is, bit for bit, what a search of everything finds.

Another engine is restored from what the first one has, so it judges, estimates and searches everything anew. Ids,
figures, legs, prices and times of first detection are compared as bits: an estimate that a step should have renewed
usually differs only in the last digits.
"""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from live.test_engine import ASKED, SEEDS, WIDE, few, tape
from support.effort import less
from support.live_strategies import DISAGREEMENTS, feed

from oddsengine.live.engine import Engine
from oddsengine.live.snapshot import dump, restore
from oddsengine.live.view import View
from oddsengine.simulate import World

BOOKS = ("draftkings", "fanduel"), ("betmgm", "pinnacle", "circa")
BOTH = tuple(WIDE | dict(books=books, method=method) for books in BOOKS for method in ("close", "power"))


def held(view: View) -> dict[tuple[int, int], bytes]:
    """Everything that a view holds open, as bytes."""
    table, at = view.open.table, view.open.places()
    parts = zip(table.legs[at], table.figures[at], table.detected_at[at], strict=True)
    keys = zip(table.kind[at].tolist(), table.id[at].tolist(), strict=True)
    return dict(zip(keys, (b"".join(part.tobytes() for part in each) for each in parts), strict=True))


def anew(engine: Engine) -> Engine:
    """An engine that has searched everything that this one has."""
    other = Engine(guards=engine.guards, fair=engine.fair)
    restore(other, dump(engine))
    return other


def equal(engine: Engine) -> int:
    """Compare; returns how many opportunities are open."""
    other, opened = anew(engine), 0
    theirs = {view.wanted: view for view in other.views}
    rows, again = engine.state.board.rows, other.state.board.rows
    for name in ("reason", "rejected", "not_reference", "doubt"):
        ours = getattr(rows, name)[engine.state.board.on()]
        assert (ours == getattr(again, name)[other.state.board.on()]).all(), name
    for view in engine.views:
        now, whole = held(view), held(theirs[view.wanted])
        wrong = [key for key in now.keys() | whole.keys() if now.get(key) != whole.get(key)]
        assert not wrong, (
            f"{view!r}, kinds and ids {wrong[:5]}: {[(now.get(key), whole.get(key)) for key in wrong[:2]]}"
        )
        opened += len(now)
    return opened


@few(5)
@given(SEEDS)
def test_feeds_to_which_everything_happens(seed: int) -> None:
    engine, said = Engine(), feed(seed)
    for words in ASKED:
        engine.view(**words, keep=True)
    if seed % 3 == 0:
        said.happenings = DISAGREEMENTS
    for _ in tape(said, engine, 6):
        equal(engine)


WORLDS: dict[str, dict[str, Any]] = {
    "pregame": dict(events=4, live=0.0, tick=4.0, pace=20.0),
    "live": dict(events=2, live=1.0, tick=2.0, pace=30.0),
    "start": dict(events=3, live=0.3, tick=4.0, pace=30.0),
}


@pytest.mark.parametrize(
    "name", [name if name == "live" else pytest.param(name, marks=pytest.mark.exhaustive) for name in WORLDS]
)
def test_worlds_with_every_hazard(name: str) -> None:
    """Prices come in small batches, so that most of what a step leaves alone was searched many steps before."""
    engine, rng, opened, steps = Engine(), random.Random(name), 0, 0
    for words in (*BOTH, {}):
        engine.view(**words, keep=True)
    for batch in World(5, hazards=True, **WORLDS[name]).run(less(400, 28)):
        parts = [batch.quotes] if not steps else [*parted(batch.quotes, rng)]
        for at, quotes in enumerate(parts):
            whole = at == len(parts) - 1
            engine.step(
                quotes, batch.now, complete=batch.complete if whole else (), events=batch.events if whole else ()
            )
            steps += 1
            if steps % less(4, 12) == 1:
                opened += equal(engine)
    assert steps > 20
    assert opened > 100


def parted(quotes: list[Any], rng: random.Random) -> Iterator[list[Any]]:
    """The same in a few batches."""
    rest = iter(quotes)
    while part := list(islice(rest, rng.randint(1, 60))):
        yield part
    yield []
