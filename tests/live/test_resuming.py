"""Views that are resumed: whatever fails on the way, they are suspended or active, and no other view loses anything."""

import gc
import threading
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from oddsengine.live.active import ActiveViews
from oddsengine.live.engine import Engine
from oddsengine.live.searcher import Searcher
from oddsengine.live.snapshot import dump

NOW = datetime(2026, 2, 8, tzinfo=UTC)


def step(engine: Engine, second: int) -> None:
    """Two books that disagree: an arbitrage, which is a low hold too."""
    prices = {("a", "X"): 2.08 + second / 100, ("a", "Y"): 1.7, ("b", "X"): 1.7, ("b", "Y"): 2.08}
    rows = [
        {
            "sportsbook": book, "event_id": "e", "sport": "tennis", "home_team": "X", "away_team": "Y",
            "market_type": "moneyline", "selection": side, "odds_decimal": odds,
        }
        for (book, side), odds in prices.items()
    ]  # fmt: skip
    engine.step(rows, NOW + timedelta(seconds=second))


def failing_once(patch: pytest.MonkeyPatch, of: type, name: str) -> None:
    real = getattr(of, name)

    def fail(*given: Any, **named: Any) -> Any:
        patch.setattr(of, name, real)
        raise KeyboardInterrupt

    patch.setattr(of, name, fail)


@pytest.mark.parametrize(("of", "name"), [(ActiveViews, "_dated"), (ActiveViews, "_show"), (Searcher, "keep")])
def test_a_view_whose_resuming_is_interrupted_is_resumed_by_the_next_read(
    of: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    step(engine, 0)
    view = engine.view(kinds=["arbitrage"])
    view.close()
    failing_once(monkeypatch, of, name)
    with pytest.raises(KeyboardInterrupt):
        view.ids()
    assert not view.active  # else the next read would wait for it for ever
    assert len(view.ids()["arbitrage"]) == 1


def test_a_view_that_was_not_resumed_gives_up_no_row_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    step(engine, 0)
    kept, other = engine.view(kinds=["arbitrage"], keep=True), engine.view(kinds=["low_hold", "arbitrage"])
    other.close()
    failing_once(monkeypatch, Searcher, "keep")
    with pytest.raises(KeyboardInterrupt):
        other.ids()
    failing_once(monkeypatch, Searcher, "keep")  # a step that is interrupted at its end: all views begin again
    with pytest.raises(KeyboardInterrupt):
        step(engine, 1)
    step(engine, 2)
    third = engine.view(kinds=["low_hold"], keep=True)
    other.ids()
    step(engine, 3)
    assert len({view.open.row for view in (kept, other, third)}) == 3
    assert [view.counts()["arbitrage"] for view in (kept, other, third)] == [1, 1, 0]


def test_a_snapshot_does_not_wait_for_a_reader_of_the_replica() -> None:
    engine = Engine()
    engine.keep_replica()
    step(engine, 0)
    engine.view(kinds=["arbitrage"], keep=True)
    written = threading.Event()

    def write() -> None:
        dump(engine)
        written.set()

    with engine.shown():
        threading.Thread(target=write, daemon=True).start()
        assert written.wait(30.0)


def test_an_engine_that_nobody_refers_to_is_freed_at_once() -> None:
    gc.disable()
    try:
        engine = Engine()
        step(engine, 0)
        gone = weakref.ref(engine)
        del engine
        assert gone() is None
    finally:
        gc.enable()
