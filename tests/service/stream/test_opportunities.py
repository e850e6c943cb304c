"""Which opportunities an update says have to be read again, and reading only these."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from support.effort import less, some
from support.rows import AWAY, HOME, MOMENT, total

from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.simulate import World
from oddsengine_service.stream.watched_view import Opportunity, Watch

BOOKS = ("pinnacle", "fanduel", "draftkings", "betmgm", "caesars")


def outdated(update: Update, view: View) -> set[int]:
    """Ids of opportunities that an update changes, or around which it moves prices."""
    change = update.of(view)
    return {*change.hits.id.tolist(), *change.affected.tolist(), *change.expired.tolist()}


def level(line: float, over: float, under: float, books: Sequence[str] = BOOKS[1:]) -> list[dict[str, Any]]:
    """A total at some books, by default all but the sharpest."""
    return [row for book in books for row in total(book, line, over, under)]


def later(seconds: float, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Any]:
    """Rows as a step gets them some seconds later."""
    moment = MOMENT + timedelta(seconds=seconds)
    return [row | {"last_seen_at": moment} for row in rows], moment


def everything(watch: Watch) -> dict[int, Opportunity]:
    """All open opportunities of a watch as they go out."""
    return watch.read_open(watch.ids()).open


@pytest.mark.parametrize("seed", some([4, 3], 1))
def test_every_row_that_differs_is_outdated(seed: int) -> None:
    """Whatever a step changes about a row, the update names it; and reading only those rows gives the same rows."""
    engine, told, differed, shown = Engine(), 0, 0, 0
    watch = Watch(engine, "close", None, 0.0, 0.5)
    view = watch._view
    assert view is not None
    before: dict[int, Opportunity] = {}
    for batch in World(seed, events=6, live=0.3, hazards=True).run(less(40, 20)):
        update = engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        after, named = everything(watch), outdated(update, view)
        assert named >= before.keys() ^ after.keys()
        moved = {id_ for id_ in before.keys() & after.keys() if before[id_].steady != after[id_].steady}
        assert named >= moved
        told, differed, shown = told + len(named), differed + len(moved), shown + len(after)
        some = set(random.Random(seed).sample(sorted(after), min(len(after), 20)))
        alone = watch.read_open(some).open
        assert alone.keys() == some
        assert all(alone[id_].raw == after[id_].raw for id_ in some)
        before = after
    assert differed > less(50, 25)
    assert told < 0.5 * shown  # most stay as they were


def test_a_low_hold_is_outdated_by_what_its_row_shows() -> None:
    """Another book's worse price is not part of its row; books that share the price and the fair price are."""
    engine = Engine()
    view = engine.view(sharp="pinnacle", max_hold=10.0, keep=True)
    engine.step([*level(220.5, 1.95, 1.93), *total("pinnacle", 220.5, 1.87, 1.87)], MOMENT)
    (id_,) = (int(hold, 16) for hold in view.ids()["low_hold"])

    def after(over: float, under: float, seconds: int) -> bool:
        moment = MOMENT + timedelta(seconds=seconds)
        rows = [row | {"last_seen_at": moment} for row in total("pinnacle", 220.5, over, under)]
        return id_ in outdated(engine.step(rows, moment), view)

    assert not after(1.871, 1.87, 1)
    assert after(1.871, 1.93, 2)  # it shares the price
    assert not after(1.872, 1.93, 3)
    assert after(1.872, 1.871, 4)  # and no more


def test_a_low_hold_is_outdated_by_its_fair_prices_and_the_main_line() -> None:
    engine = Engine()
    at_close = engine.view(max_hold=10.0, keep=True)
    beside_sharp = engine.view(sharp="pinnacle", max_hold=10.0, keep=True)
    engine.step([*level(220.5, 1.95, 1.93), *total("pinnacle", 220.5, 1.87, 1.87)], MOMENT)
    (id_,) = (int(hold, 16) for hold in at_close.ids()["low_hold"])
    moment = MOMENT + timedelta(seconds=1)
    sharp = [row | {"last_seen_at": moment} for row in total("pinnacle", 220.5, 1.901, 1.831)]
    assert id_ in outdated(engine.step(sharp, moment), beside_sharp)
    assert not at_close.opportunities().low_hold["is_alternate_line"].item()
    moment += timedelta(seconds=1)
    closer = [row | {"last_seen_at": moment} for book in BOOKS for row in total(book, 221.5, 1.91, 1.91)]
    update = engine.step(closer, moment)
    line = at_close.opportunities().low_hold.filter(line=220.5)
    assert line["is_alternate_line"].item()
    assert id_ in outdated(update, at_close)


def test_a_low_hold_is_outdated_whenever_its_fair_prices_are_if_its_view_has_no_other_kind() -> None:
    """Such a view is searched without a reference."""
    engine = Engine()
    view = engine.view(sharp="pinnacle", max_hold=10.0, kinds=["low_hold"], keep=True)
    engine.step([*level(220.5, 1.95, 1.93), *total("pinnacle", 220.5, 1.87, 1.87)], MOMENT)
    (id_,) = (int(hold, 16) for hold in view.ids()["low_hold"])
    assert id_ in outdated(engine.step(*later(1, total("pinnacle", 220.5, 1.901, 1.831))), view)


def test_a_low_hold_is_outdated_by_a_main_line_that_comes_and_goes() -> None:
    """The first time only the other line is searched, the second time both."""
    engine = Engine()
    view = engine.view(sharp="pinnacle", max_hold=10.0, keep=True)

    def alternate() -> bool:
        line = view.opportunities().low_hold.filter(line=220.5)
        return bool(line["is_alternate_line"].item())

    engine.step(
        [*level(220.5, 1.95, 1.93), *total("pinnacle", 220.5, 1.87, 1.87), *level(221.5, 2.12, 1.72, BOOKS)], MOMENT
    )
    id_ = int(view.opportunities().low_hold.filter(line=220.5)["id"].item(), 16)
    assert not alternate()
    assert id_ in outdated(engine.step(*later(1, level(221.5, 1.915, 1.915, BOOKS))), view)
    assert alternate()
    back = [*level(221.5, 2.13, 1.715, BOOKS), *total("pinnacle", 220.5, 1.871, 1.87)]
    assert id_ in outdated(engine.step(*later(2, back)), view)
    assert not alternate()


def test_a_low_hold_is_outdated_by_the_order_of_the_teams() -> None:
    """Books with other markets of its event decide which team is at home."""
    engine = Engine()
    view = engine.view(max_hold=10.0, keep=True)
    engine.step(level(220.5, 1.95, 1.93), MOMENT)
    (id_,) = (int(hold, 16) for hold in view.ids()["low_hold"])
    swapped = {"home_team": AWAY, "away_team": HOME}
    others = [
        row | swapped for line in range(100, 110) for row in total("bet365", line, 1.9, 1.9, "1st_half_total_points")
    ]
    update = engine.step(others, MOMENT)
    assert view.opportunities().low_hold.select("home_team", "away_team").row(0) == (AWAY, HOME)
    assert id_ in outdated(update, view)


def test_a_low_hold_is_outdated_by_its_leg_even_if_its_book_has_the_price_twice() -> None:
    """The leg is the one that was seen with the other; the book's first row counts as sharing its price."""
    engine = Engine()
    view = engine.view(sharp="pinnacle", max_hold=10.0, keep=True)

    def under(seconds: float, market: str, american: float | None) -> list[dict[str, Any]]:
        rows = total("fanduel", 220.5, None, 1.93, market, is_live=True, odds_american=american)
        return later(seconds, rows)[0]

    both = total("draftkings", 220.5, 1.95, 1.5, is_live=True) + total("caesars", 220.5, 1.9, 1.8, is_live=True)
    engine.step([*later(5, both)[0], *under(3, "total_points", None), *under(6, "totals", -107.5)], later(7, [])[1])
    (id_,) = (int(hold, 16) for hold in view.ids()["low_hold"])
    update = engine.step(under(6.5, "totals", -107.6), later(8, [])[1])
    side = view.opportunities().low_hold["side2"]
    assert side.struct.field("odds_american").item() == -107.6
    assert id_ in outdated(update, view)


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
    return [*frames.low_hold.filter(event_id=event)["id"], *frames.ev.filter(event_id=event)["id"]]


def _number(id_: str) -> int:
    return int(id_[-16:], 16)
