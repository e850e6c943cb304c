"""One-sided prices on the live board: the same rows as over the table, whatever changes first."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support.boards import unnumbered
from support.effort import less
from support.one_sided import NOW, Row, quotes_of, rows_of
from support.rows import whatever_is_found

import oddsengine as oe
from oddsengine.live.engine import Engine
from oddsengine.live.view import View
from oddsengine.tape import Tape, TapeWriter, play

SEEDS = st.integers(0, 2**32 - 1)
USUAL: dict[str, Any] = {"min_ev": -20.0, "kinds": ["ev"], "include": ["suspect"]}
ONE_SIDED: dict[str, Any] = USUAL | {"include": ["one_sided", "suspect"]}
PAUSES = (0, 1, 1, 5, 30, 60, 200)


def steps(seed: int, count: int) -> Iterator[tuple[list[Row], datetime]]:
    """Two games: all prices at first, then a few that move, come, or have their other side from now on."""
    rng, now = random.Random(seed), NOW
    board = [
        {**row, "player_name": f"{game} {row['player_name']}"}
        for game in ("a", "b")
        for quote in quotes_of(rng, large=True)
        for row in rows_of(quote.book, quote.market, quote.odds, event=game)
    ]
    late = [board.pop(rng.randrange(len(board))) for _ in range(min(3, len(board) - 1))]
    yield [dict(row) for row in board], now
    for _ in range(count):
        now += timedelta(seconds=rng.choice(PAUSES))
        some = rng.sample(board, min(len(board), rng.choice([0, 1, 1, 2, 5])))
        if rng.random() < 0.3:
            some = board  # seen again
        for row in rng.sample(some, min(len(some), 5)):
            row["odds_decimal"] = max(1.01, row["odds_decimal"] * rng.uniform(0.95, 1.05))
        said = [{**row, "last_seen_at": now} for row in some]
        if late and rng.random() < 0.4:
            board.append(late.pop())
            said.append({**board[-1], "last_seen_at": now})
        if rng.random() < 0.2 and board:
            gone = {**rng.choice(board), "last_seen_at": now, "is_active": rng.random() < 0.5}
            said.append(gone)
        yield said, now


def same_rows(view: View, engine: Engine, words: dict[str, Any]) -> pl.DataFrame:
    """What a view shows is what the finder says of the table."""
    own = {name: value for name, value in words.items() if name != "kinds"}
    with whatever_is_found():
        whole = oe.find_all(oe.prepare(engine.table(), now=engine.moment), **own).ev
    live = view.opportunities().ev
    ours, theirs = (unnumbered(frame).drop("detected_at").sort("id") for frame in (live, whole))
    assert ours["id"].to_list() == theirs["id"].to_list()
    assert_frame_equal(ours, theirs, check_exact=False, rel_tol=1e-12, abs_tol=1e-12)
    ids = view.ids()["ev"]
    assert ids == sorted(each[-16:] for each in live["id"])
    return live


@settings(max_examples=max(4, settings().max_examples // 2))
@given(SEEDS)
def test_what_is_open_is_what_the_table_holds(seed: int) -> None:
    engine = Engine()
    if seed % 2:
        engine.keep_replica()
    views = [(engine.view(**words, keep=True), words) for words in (USUAL, ONE_SIDED)]
    for quotes, now in steps(seed, less(12, 7)):
        engine.step(quotes, now)
        for view, words in views:
            same_rows(view, engine, words)
    late = engine.view(**ONE_SIDED, min_middle_ev=1.0)  # that begins now
    same_rows(late, engine, ONE_SIDED)


def test_the_boards_have_one_sided_opportunities() -> None:
    """So that the test above says something."""
    found = 0
    for seed in range(8):
        engine = Engine()
        view = engine.view(**ONE_SIDED, keep=True)
        for quotes, now in steps(seed, 4):
            engine.step(quotes, now)
        found += view.opportunities().ev.filter(pl.col("flags").list.contains("one_sided")).height
    assert found > 200


@pytest.mark.parametrize("seed", range(3))
def test_a_tape_replays_to_the_same_bytes(seed: int, tmp_path: Path) -> None:
    engine = Engine()
    view = engine.view(**ONE_SIDED, keep=True)
    told = []
    with TapeWriter(tmp_path) as writer:
        engine.record(writer)
        for quotes, now in steps(seed, 10):
            told.append(engine.step(quotes, now).json(view))
    again = Engine()
    same = again.view(**ONE_SIDED, keep=True)
    assert [update.json(same) for _, update in play(Tape(tmp_path), again)] == told
    assert any(b'"detected":[{' in each for each in told[1:])


@pytest.mark.parametrize("seed", range(3))
def test_other_views_are_told_the_same(seed: int) -> None:
    """Whether or not somebody looks at one-sided prices."""
    alone, beside = Engine(), Engine()
    views = [engine.view(**USUAL, keep=True) for engine in (alone, beside)]
    beside.view(**ONE_SIDED, keep=True)
    for quotes, now in steps(seed, 10):
        updates = [engine.step([dict(row) for row in quotes], now) for engine in (alone, beside)]
        assert updates[0].json(views[0]) == updates[1].json(views[1])
