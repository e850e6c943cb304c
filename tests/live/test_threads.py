"""Steps that are searched by several threads are those of one: the same bytes, whatever the parts are."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from live.test_engine import ASKED, SEEDS, apply, few, tape
from live.test_exact import equal
from live.test_interruption import ARB, NOW, quote
from live.test_replica import Failing, FailureError, alike
from support import golden
from support.effort import some
from support.live_strategies import feed

from oddsengine.guards import verdicts
from oddsengine.live import searcher as module
from oddsengine.live.engine import Engine
from oddsengine.pricing.momentum import LadderSamples, Memory
from oddsengine.simulate import World


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step has parts."""
    monkeypatch.setattr(module, "_LEAST_ROWS", 1)


@pytest.mark.parametrize("name", some(["turned", "pregame"], 1))
def test_golden_tapes(name: str) -> None:
    for was, now in zip(golden.expected(name), golden.replayed(name, threads=4), strict=True):
        assert now == was


@few(8)
@given(SEEDS)
def test_equal_bytes(seed: int) -> None:
    """Of updates for every view, and of states; views come later, and some steps fail."""
    engines = Engine(), Engine(threads=3)
    engines[1].keep_replica()
    fails = [Failing(), Failing()]
    for engine, recorder in zip(engines, fails, strict=True):
        engine.record(recorder)
        engine.keep_judged()
    views = [[engine.view(**words, keep=True) for words in ASKED[::2]] for engine in engines]
    for at, (step, update) in enumerate(tape(feed(seed), engines[0], 6)):
        if at == 3:
            fails[1].next = True
            with pytest.raises(FailureError):
                apply(engines[1], step)
        other = apply(engines[1], step)
        assert [update.json(view) for view in views[0]] == [other.json(view) for view in views[1]]
        assert [update.of(view).affected.tolist() for view in views[0]] == [
            other.of(view).affected.tolist() for view in views[1]
        ]
        assert engines[0].state_hash() == engines[1].state_hash()
        alike(engines[1])
        if at == 2:
            for engine, own in zip(engines, views, strict=True):
                own.append(engine.view(**ASKED[1], keep=True))
    equal(engines[1])


def test_a_memory_that_grows_between_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next part's ladders are then elsewhere."""
    moved: list[bool] = []
    commit = Memory.commit

    def committed(self: Memory, made: LadderSamples) -> None:
        moved.append(made.slots_of != self._grown and bool((made.slots >= 0).any()))
        commit(self, made)

    monkeypatch.setattr(Memory, "commit", committed)
    engines = Engine(), Engine(threads=4)
    for engine in engines:
        engine.view(keep=True)
    first = next(iter(World(8, events=16).run(10.0)))
    old = [{**row, "event_id": f"old {row['event_id']}", "last_seen_at": None} for row in first.quotes[::4]]
    for engine in engines:
        engine.step(old, first.now - timedelta(hours=50))  # forgotten when room is needed
    books = sorted({row["sportsbook"] for row in first.quotes})
    for count in range(2, len(books) + 1, 2):  # every ladder gets more books, and needs more room
        quotes = [row for row in first.quotes if row["sportsbook"] in books[:count]]
        for engine in engines:
            engine.step(quotes, first.now)
        assert engines[0].state_hash() == engines[1].state_hash()
    assert any(moved)


def test_a_part_that_fails_costs_the_step_and_waits_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(threads=2)
    view = engine.view(keep=True)
    engine.step(ARB, NOW)
    before, held = engine.state_hash(), view.ids()
    judge, main = verdicts.judge, threading.current_thread()
    ended: list[bool] = []

    def judged(*args: Any) -> Any:
        if threading.current_thread() is main:
            raise FailureError
        out = judge(*args)
        ended.append(True)
        return out

    new = [quote("X", 2.0, book, event_id=event) for event in "fgh" for book in ("a", "b", "c")]
    second: dict[str, Any] = {"quotes": [*ARB[:1], *new], "now": NOW + timedelta(seconds=1)}
    with monkeypatch.context() as patch:
        patch.setattr(module, "judge", judged)
        with pytest.raises(FailureError):
            engine.step(**second)
    assert ended
    assert engine.state_hash() == before
    assert view.ids() == held
    engine.step(**second)
    equal(engine)


@pytest.mark.parametrize("threads", [0, 65, 1.5, "2", None])
def test_numbers_of_threads(threads: Any) -> None:
    with pytest.raises(ValueError, match="threads must be from 1 to 64, got"):
        Engine(threads=threads)
