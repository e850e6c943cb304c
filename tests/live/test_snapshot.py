"""A restored engine goes on as the one that the snapshot was taken of."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from support.effort import less, some

from oddsengine.live.engine import Engine
from oddsengine.live.recorder import Recorder
from oddsengine.live.snapshot import dump, restore
from oddsengine.simulate import World


class Batches(Recorder):
    """A recorder that keeps what an engine applied."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def batch(self, batch: Any, slept: Any = ()) -> None:
        self.made.append(batch)


def through_msgpack(held: dict[str, Any]) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(held))


@pytest.mark.parametrize(("seed", "method"), some([(3, "close"), (3, "power"), (4, "power"), (4, "close")], 1))
def test_goes_on_alike(seed: int, method: str) -> None:
    recorder, engine = Batches(), Engine()
    engine.record(recorder)
    view = engine.view(method=method, keep=True)
    late = engine.delayed(60.0)
    copy: Engine | None = None
    for at, batch in enumerate(World(seed, events=less(8, 4), live=0.4, tick=5.0, hazards=True).run(less(260, 160))):
        update = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        if copy is None:
            if at == 20:
                copy = Engine()
                copy.view(method=method, keep=True)  # it may be active before
                behind = copy.delayed(60.0)
                restore(copy, through_msgpack(dump(engine)))
                assert copy.state_hash() == engine.state_hash()
            continue
        again = copy.feed(recorder.made[-1])
        assert again.json(copy.view(method=method, keep=True)) == update.json(view)
        assert copy.state_hash() == engine.state_hash()
        assert copy.state_hash(views=False) == engine.state_hash(views=False)
        assert again.judged.tolist() == update.judged.tolist()
    assert copy is not None
    assert late.number == behind.number > less(20, 15)
    assert late.state_hash() == behind.state_hash()
    assert copy.rejected_counts() == engine.rejected_counts()
    assert copy.table().equals(engine.table())
    first = copy.view(method=method).opportunities(("ev",)).ev
    assert first.equals(engine.view(method=method).opportunities(("ev",)).ev)


def test_a_delayed_board_follows_an_engine_restored_from_before_its_first_step() -> None:
    engine = Engine()
    late = engine.delayed(5)
    restore(engine, dump(Engine()))
    for second in range(0, 12, 3):
        engine.step([], datetime(2026, 2, 8, tzinfo=UTC) + timedelta(seconds=second))
    assert (engine.number, late.number) == (4, 2)


def test_what_does_not_fit_is_refused() -> None:
    engine = Engine()
    held = dump(engine)
    with pytest.raises(ValueError, match="format 99; this version reads format 3"):
        restore(Engine(), {**held, "form": 99})
    engine.step([], now=next(World(1, events=1).run(1.0)).now)
    with pytest.raises(ValueError, match="restore needs a new engine, got one at step 1"):
        restore(engine, held)
