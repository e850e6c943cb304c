"""`Tape.frame`: the prices of a tape as a history."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import oddsengine as oe
from oddsengine.backtesting.replay import engine_of, source, steps
from oddsengine.tables.schema import ODDS_SCHEMA
from oddsengine.tape import quote_rows as tape_rows
from oddsengine.tape.quote_rows import FRAME_SCHEMA

_BOOKS = ["pinnacle", "betonline", "draftkings", "fanduel"]


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> oe.Tape:
    """Forty minutes of a world with errors, removed prices and live games."""
    folder = tmp_path_factory.mktemp("frame") / "tape"
    engine, writer = oe.resume(folder)
    with writer:
        for batch in oe.World(3, events=4, live=0.5, tick=60.0, hazards=True, books=_BOOKS).run(2400):
            engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
    return oe.Tape(folder)


def active(engine: oe.Engine) -> list[Any]:
    """The prices on a board that can be bet."""
    table = engine.table().filter("is_active")
    return sorted(table.select("row_id", "odds_decimal", "is_live", "last_seen_at").rows())


def test_the_frame_replays_to_the_board_of_every_step(tape: oe.Tape) -> None:
    past, frame = source(tape), source(tape.frame())
    recorded, replayed = engine_of(past), engine_of(frame)
    count, removed = 0, 0
    for one, other in zip(steps(recorded, past), steps(replayed, frame), strict=True):
        assert one.now == other.now
        assert active(recorded) == active(replayed)
        count, removed = count + 1, removed + one.update.removed_rows.slot.size
    assert count == tape.steps
    assert removed > 20  # without their rows in the frame, the boards would differ


def test_every_quote_is_a_row_and_every_removal(tape: oe.Tape) -> None:
    frame = tape.frame()
    removed = 0
    last: dict[int, int] = {}

    def count(update: oe.Update) -> None:
        nonlocal removed
        removed += update.removed_rows.slot.size
        last[update.now] = update.removed_rows.slot.size

    oe.replay(tape, on_update=count)
    assert frame.height == tape.quotes + removed
    assert frame.schema == pl.Schema(FRAME_SCHEMA)
    assert set(frame.columns) - set(ODDS_SCHEMA) == {"recorded_at"}
    assert frame["recorded_at"].is_sorted()
    assert (frame["recorded_at"].min(), frame["recorded_at"].max()) == (tape.since, tape.until)
    assert oe.check_odds(frame.filter("is_active")).rejected.is_empty()


def test_a_condition_and_times_select_rows(tape: oe.Tape) -> None:
    whole = tape.frame()
    assert tape.since is not None
    low, high = tape.since + timedelta(minutes=10), tape.since + timedelta(minutes=20)
    condition = (pl.col("sportsbook") == "fanduel") & pl.col("is_active")
    wanted = whole.filter(condition, pl.col("recorded_at").is_between(low, high))
    assert 0 < wanted.height < whole.height
    assert tape.frame(condition, since=low, until=high).equals(wanted)
    assert pl.concat(tape_rows.price_rows(tape, oe.Engine(), piece=500)).equals(whole)
    assert tape.frame(since=high, until=low).schema == whole.schema
    assert tape.frame(pl.lit(value=False)).schema == whole.schema


def test_a_maximum_bet_is_kept(tmp_path: Path) -> None:
    engine, writer = oe.resume(tmp_path / "tape")
    quote = {"sportsbook": "a", "event_id": "e", "market_type": "moneyline", "selection": "x", "odds_decimal": 1.9}
    start = oe.World(1, events=1).now
    with writer:
        engine.step([{**quote, "max_bet": 250.0}, {**quote, "selection": "y"}], now=start)
        engine.step([{**quote, "odds_decimal": None, "is_active": False}], now=start + timedelta(seconds=1))
        engine.step([], now=start + timedelta(seconds=2), complete=[("a", "e")])
    frame = oe.Tape(tmp_path / "tape").frame()
    assert frame.select("selection", "max_bet", "odds_decimal", "is_active").rows() == [
        ("x", 250.0, 1.9, True),
        ("y", None, 1.9, True),
        ("x", None, None, False),
        ("x", 250.0, 1.9, False),
        ("y", None, 1.9, False),
    ]
    later = oe.Tape(tmp_path / "tape").frame(since=start + timedelta(seconds=2))  # nothing but removals
    assert later.equals(frame[3:])
