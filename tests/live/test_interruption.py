"""A step that is interrupted anywhere is whole or not at all, for readers, names and delayed boards too."""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.effort import less, some

import oddsengine as oe
from oddsengine.board.codes import Books, Codes, HashedCodes
from oddsengine.board.events import Events, Votes
from oddsengine.board.names import Names
from oddsengine.board.partitions import PartitionCodes
from oddsengine.board.state import Board
from oddsengine.board.terms import Terms
from oddsengine.live.copies import Copies
from oddsengine.live.delayed import DelayedBoard
from oddsengine.live.engine import Engine
from oddsengine.live.replica import Replica
from oddsengine.live.view import View

NOW = datetime(2026, 2, 8, tzinfo=UTC)


def quote(selection: str = "X", odds: float = 1.95, book: str = "pinnacle", **fields: Any) -> dict[str, Any]:
    return {
        "sportsbook": book, "event_id": "e", "sport": "tennis", "home_team": "X", "away_team": "Y",
        "market_type": "moneyline", "selection": selection, "odds_decimal": odds, **fields,
    }  # fmt: skip


ARB = [quote("X", 2.2, "fanduel"), quote("Y", 2.2, "draftkings"), quote("X", 1.9), quote("Y", 1.9)]


class _Interrupted(BaseException):
    pass


def interrupted(engine: oe.Engine, at: int, inside: Callable[..., Any] | None = None, **words: Any) -> bool:
    """Make a step, and interrupt it before the line of this number (of one function); False where it ended before."""
    left = [at]

    def trace(frame: Any, event: str, _: Any) -> Any:
        if "oddsengine" not in frame.f_code.co_filename:
            return None
        if inside is not None and frame.f_code is not getattr(inside, "__code__", None):
            return trace
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise _Interrupted
        return trace

    sys.settrace(trace)
    try:
        engine.step(**words)
    except _Interrupted:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("start", some(range(7), 1))
def test_a_step_that_is_interrupted_anywhere_is_whole_or_not_at_all(start: int) -> None:
    """At lines all over the step, each time with new names, prices that move and rows that leave."""
    first = [*ARB, quote("X", 2.0, "bet365", event_id="other")]
    second: dict[str, Any] = {
        "quotes": [quote("X", 2.3, "fanduel"), quote("Z", 3.0, "new_book", event_id="new", league="other")],
        "now": NOW + timedelta(seconds=31), "complete": [("bet365", None)],
    }  # fmt: skip
    whole = oe.Engine()
    before = oe.Engine()
    for engine in (whole, before):
        engine.view(keep=True)
        engine.step(first, NOW)
    whole.step(**second)
    at = start + 1
    while True:
        engine = oe.Engine()
        view = engine.view(keep=True)
        engine.step(first, NOW)
        if not interrupted(engine, at, **second):
            break
        as_is = whole if engine.number == 2 else before
        assert engine.table().sort("row_id").equals(as_is.table().sort("row_id")), at
        assert view.ids() == as_is.views[0].ids(), at
        if engine.number == 1:
            engine.step(**second)
        assert engine.table().sort("row_id").equals(whole.table().sort("row_id")), at
        assert view.ids() == whole.views[0].ids(), at
        at += less(61, 127)


@pytest.mark.parametrize(
    "inside",
    [
        Votes.code,
        Votes.decide,
        Books._add,
        Codes._add,
        HashedCodes._add,
        Events.open,
        Events.move,
        PartitionCodes._code,
        Terms.append,
        Terms.swap,
        Names._append,
        Names.settle,
        Names._swap,
        Names._regroup,
    ],
    ids=lambda inside: inside.__qualname__,
)
def test_names_are_whole_wherever_a_change_of_them_is_interrupted(inside: Callable[..., Any]) -> None:
    """New books, events and markets, and an event whose teams and league most rows turn out to name otherwise."""
    new = [
        *(quote("Y", 1.9, book, home_team="Y", away_team="X", league="other") for book in ("b", "c", "d", "e", "f")),
        quote("Z", 3.0, "new", event_id="new", market_type="total_points", selection_type="over", line=2.5),
    ]  # fmt: skip
    if inside is Books._add:
        new = new[:1]  # a second book, or a new kind of market, would hide what the first one leaves
    last: dict[str, Any] = {"quotes": [quote("Y", 2.0, "g"), quote("X", 2.0, "g")], "now": NOW + timedelta(seconds=2)}

    def run(at: int = 0) -> tuple[oe.Engine, View, bool]:
        engine = oe.Engine()
        view, stopped = engine.view(keep=True), False
        engine.step(ARB, NOW)
        step: dict[str, Any] = {"quotes": new, "now": NOW + timedelta(seconds=1)}
        if at:
            stopped = interrupted(engine, at, inside, **step)
        if engine.number == 1:
            engine.step(**step)
        engine.step(**last)
        return engine, view, stopped

    whole, expected, _ = run()
    at = 1
    while True:
        engine, view, stopped = run(at)
        assert engine.state_hash(views=False) == whole.state_hash(views=False), at
        assert engine.table().sort("row_id").equals(whole.table().sort("row_id")), at
        assert view.ids() == expected.ids(), at
        if not stopped:
            break
        at += less(1, 3)
    assert at > 2


@pytest.mark.parametrize("inside", [Engine._commit, Copies.publish, Engine._follow, Replica.enqueue, Replica.follow])
def test_a_delayed_board_follows_every_step_once_wherever_one_is_interrupted(inside: Callable[..., Any]) -> None:
    def steps() -> Iterator[dict[str, Any]]:
        for second in range(9):
            new = quote("Z", 3.0, f"book {second}", event_id=f"new {second}", league="other")
            yield {
                "quotes": [quote("X", 2.1 + second / 100, "fanduel"), *ARB[1:], new],
                "now": NOW + timedelta(seconds=second),
            }

    def run(at: int = 0) -> tuple[oe.Engine, DelayedBoard, bool]:
        engine = oe.Engine()
        late, stopped = engine.delayed(2.0), False
        for number, step in enumerate(steps(), start=1):
            if number == 6 and at:
                stopped = interrupted(engine, at, inside, **step)
                # Not only after the next step, if this one is complete.
                assert late.number == max(0, engine.number - 2), at
            if engine.number < number:
                engine.step(**step)
        return engine, late, stopped

    whole, before, _ = run()
    assert before.number == 7
    at = 1
    while True:
        engine, late, stopped = run(at)
        assert engine.state_hash() == whole.state_hash(), at
        assert late.state_hash() == before.state_hash(), at
        if not stopped:
            break
        at += 1
    assert at > 2


def test_verdicts_that_changed_between_steps_outlive_an_interrupted_one() -> None:
    """The next update says which: wherever `judge` is interrupted, no other list of rows is dropped."""
    stale = [quote(side, 1.9, "bet365", last_seen_at=NOW - timedelta(hours=1)) for side in "XY"]
    late = quote("X", 1.9, "betmgm", last_seen_at=NOW - timedelta(hours=1))
    second = {"quotes": [late], "now": NOW + timedelta(seconds=1)}

    def begun() -> oe.Engine:
        engine = oe.Engine()
        engine.step([*ARB, *stale], NOW)
        engine.view(keep=True)  # judges
        return engine

    expected = begun().step(**second)  # type: ignore[arg-type]
    assert expected.judged.size
    at = 1
    while True:
        engine = begun()
        if not interrupted(engine, at, Board.judge, **second):
            break
        assert engine.step(**second).judged.tolist() == expected.judged.tolist(), at  # type: ignore[arg-type]
        at += 1
    assert at > 5
