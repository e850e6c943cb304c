"""Which opportunities an update says have to be read again, and reading only these."""

import random
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from effort import some
from rows import MOMENT, total

from oddsengine.engine import Engine
from oddsengine.simulate import World
from oddsengine.update import Update
from oddsengine.view import View
from oddsengine_service.stream.watch import Opportunity, Watch

BOOKS = ("pinnacle", "fanduel", "draftkings", "betmgm", "caesars")


def outdated(update: Update, view: View) -> set[int]:
    """Ids of opportunities that an update changes, or around which it moves prices."""
    change = update.of(view)
    return {*change.hits.id.tolist(), *change.touched.tolist(), *change.expired.tolist()}


def everything(watch: Watch) -> dict[int, Opportunity]:
    """All open opportunities of a watch as they go out."""
    return watch.read(watch.ids()).open


@pytest.mark.parametrize("seed", some([4, 3], 1))
def test_every_row_that_differs_is_outdated(seed: int) -> None:
    """Whatever a step changes about a row, the update names it; and reading only those rows gives the same rows."""
    engine, told, differed, shown = Engine(), 0, 0, 0
    watch = Watch(engine, "close", None, 0.0, 0.5)
    view = watch._view
    assert view is not None
    before: dict[int, Opportunity] = {}
    for batch in World(seed, events=6, live=0.3, hazards=True).run(40.0):
        update = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        after, named = everything(watch), outdated(update, view)
        assert named >= before.keys() ^ after.keys()
        moved = {id_ for id_ in before.keys() & after.keys() if before[id_].steady != after[id_].steady}
        assert named >= moved
        told, differed, shown = told + len(named), differed + len(moved), shown + len(after)
        some = set(random.Random(seed).sample(sorted(after), min(len(after), 20)))
        alone = watch.read(some).open
        assert alone.keys() == some
        assert all(alone[id_].raw == after[id_].raw for id_ in some)
        before = after
    assert differed > 50
    assert told < 0.7 * shown  # most stay as they were


def test_what_is_only_shown_outdates_its_market() -> None:
    """A link says nothing about a price, but rows show it."""
    engine = Engine()
    view = engine.view(max_hold=10.0, keep=True)
    quoted = [
        row | {"event_id": event}
        for event in ("one", "two")
        for book in BOOKS
        for row in total(book, 220.5, 1.95, 1.93)
    ]
    engine.step(quoted, MOMENT)
    (one,) = view.opportunities().low_hold.filter(event_id="one")["id"].to_list()
    link = quoted[2] | {"deep_link": "https://example.com/bet", "last_seen_at": MOMENT + timedelta(seconds=1)}
    update = engine.step([link], MOMENT + timedelta(seconds=1))
    assert int(one, 16) in outdated(update, view)
    assert all(id_ not in outdated(update, view) for id_ in map(_number, _of(view, "two")))


@pytest.mark.parametrize("ids", [["a82eaa812e35fde1"], [1], "a82eaa812e35fde1", np.array([1.0])])
def test_ids_are_those_of_changes(ids: Any) -> None:
    with pytest.raises(ValueError, match="ids must be an array of uint64"):
        Engine().view().opportunities(ids=ids)


def test_a_watch_is_released_once() -> None:
    """After an internal error a watch is closed, and again when its streams leave: whoever came meanwhile stays."""
    engine = Engine()
    engine.step([*total("fanduel", 220.5, 1.95, None), *total("draftkings", 220.5, None, 1.95)], MOMENT)
    old = Watch(engine, "close", None, 0.0, 0.5)
    old.close()
    new = Watch(engine, "close", None, 0.0, 0.5)
    old.close()
    engine.step([], MOMENT + timedelta(hours=1))
    assert engine.views == (new._view,)
    new.close()
    engine.step([], MOMENT + timedelta(hours=2))
    assert not engine.views


def _of(view: View, event: str) -> list[str]:
    frames = view.opportunities()
    return [*frames.low_hold.filter(event_id=event)["id"], *frames.ev.filter(game_id=event)["id"]]


def _number(id_: str) -> int:
    return int(id_[-16:], 16)
