"""What views hold open after every step is, bit for bit, what a search of everything finds.

Another engine is restored from what the first one has, so it judges, estimates and searches everything anew. Ids,
figures, legs, prices and times of first detection are compared as bits: an estimate that a step should have renewed
usually differs only in the last digits.
"""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from live.test_engine import ASKED, SEEDS, WIDE, few, tape
from support.effort import less
from support.live_strategies import DISAGREEMENTS, feed

from oddsengine.detection.kinds import KINDS
from oddsengine.detection.opportunity_ids import hexadecimal
from oddsengine.detection.search import PROMISED
from oddsengine.live import searcher
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


@pytest.mark.parametrize("threads", [1, 3])
def test_what_a_step_promises_is_what_rows_say(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each +EV bet that is new or has changed; nothing for other kinds, or without an estimate of the close."""
    monkeypatch.setattr(searcher, "_LEAST_ROWS", 1)
    engine, said = Engine(threads=threads), {True: 0, False: 0}
    engine.keep_promised()
    views = [engine.view(**words, keep=True) for words in (ASKED[2], WIDE, WIDE | dict(include=["one_sided"]))]
    for batch in islice(World(5, events=4, live=0.3, hazards=True).run(60.0), 6):
        update = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        for view in views:
            change = update.of(view)
            rows = {row["id"][-16:]: row for row in view.opportunities(["ev"]).ev.iter_rows(named=True)}
            if not change.hits.size:
                continue
            assert change.promised is not None
            for kind, ident, promised in zip(
                change.hits.kind.tolist(), hexadecimal(change.hits.id), change.promised.tolist(), strict=True
            ):
                known = [None if np.isnan(value) else value for value in promised]
                is_ev = kind == KINDS.code("ev")
                assert known == ([rows[ident].get(name) for name in PROMISED] if is_ev else [None] * len(PROMISED))
                said[is_ev and known[0] is not None] += 1
    assert min(said.values()) > 20
