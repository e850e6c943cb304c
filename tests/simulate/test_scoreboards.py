"""Scores in the simulated world: they suspend and move prices as in life, and books tell of them in time."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.effort import less, some

from oddsengine.feeds.merged_scores import Scoreboard
from oddsengine.live.engine import Engine
from oddsengine.simulate import FeedBatch, World

BOOKS = some(["pinnacle", "circa", "draftkings", "fanduel", "mybookie", "williamhill"], 4)
LATEST_S = 18  # how late a book may be, its pace included


def world(seed: int = 3, **more: Any) -> World:
    return World(seed, events=10, books=BOOKS, live=1.0, pace=8.0, **more)


def goals(made: World, seconds: int) -> Iterator[tuple[FeedBatch, dict[str, tuple[int, int]]]]:
    """Batches, and by how much each game's score moved in them."""
    games, before = made._games, None
    for batch in made.run(seconds):
        score = games.score[:, :2].copy()
        if before is None:
            before = score
        moved = np.flatnonzero((score != before).any(axis=1)).tolist()
        yield batch, {made.fixtures[at].id: tuple((score - before)[at].tolist()) for at in moved}
        before = score


def moneylines(engine: Engine) -> dict[str, list[tuple[bool, str, str, float]]]:
    """Each game's prices in play of who wins, by books that are heard: whether it is active, book, side and odds."""
    assert engine.now is not None
    live = pl.col("is_live") & (pl.col("last_seen_at") >= engine.now - timedelta(seconds=5))
    rows = engine.table().filter(live & pl.col("market_type").is_in(["moneyline", "h2h"]))
    out: dict[str, list[tuple[bool, str, str, float]]] = {}
    for event, *row in rows.select("event_id", "is_active", "sportsbook", "selection_type", "odds_decimal").rows():
        out.setdefault(event, []).append(tuple(row))
    return out


def test_a_goal_suspends_a_game_and_moves_its_prices() -> None:
    made, engine = world(), Engine()
    sports = {fixture.id: fixture.league.sport for fixture in made.fixtures}
    before: dict[str, dict[tuple[str, str], float]] = {}  # event -> book, side -> odds, while it was open
    waiting: dict[str, tuple[int, str]] = {}  # event -> when, and who, scored
    suspended = reopened = shorter = 0
    for second, (batch, moved) in enumerate(goals(made, less(150, 90))):
        engine.step(batch.quotes, batch.now, complete=batch.complete, events=batch.events)
        status = dict(zip(sports, made._games.status.tolist(), strict=True))
        prices = moneylines(engine)
        for event, (home, away) in moved.items():
            if sports[event] == "basketball" or status[event] != 1:
                continue
            rows = prices.get(event, [])
            assert not any(active for active, *_ in rows)
            suspended += len(rows)
            waiting.pop(event, None)
            if 0 in (home, away) and before.get(event):
                waiting[event] = second, "home" if home else "away"
        for event in sports:
            odds = {(book, side): price for active, book, side, price in prices.get(event, []) if active}
            if event in waiting and odds:
                since, side = waiting.pop(event)
                assert 6 <= second - since <= 14
                for key in odds.keys() & before[event].keys():
                    if key[1] == side:
                        reopened += 1
                        shorter += odds[key] < before[event][key]
            before[event] = odds or before.get(event, {})
    assert suspended > less(20, 15)
    assert reopened > less(10, 6)
    assert shorter > 0.9 * reopened  # who scored is likelier to win; a book's own opinion wanders meanwhile


def test_points_in_basketball_move_prices_and_suspend_nothing() -> None:
    made = world()
    sports = {fixture.id: fixture.league.sport for fixture in made.fixtures}
    scored, odds = 0, set()
    for batch, moved in goals(made, 60):
        scored += sum(sports[event] == "basketball" for event in moved)
        for row in batch.quotes:
            if sports[row["event_id"]] == "basketball" and row["is_live"]:
                assert row.get("is_active") is not False
                odds.add(row.get("odds_decimal"))
    assert scored > 20
    assert len(odds) > 20


def test_books_tell_scores_late_but_truly() -> None:
    made, board = world(), Scoreboard()
    at = {fixture.id: place for place, fixture in enumerate(made.fixtures)}
    past: dict[str, list[tuple[int, int]]] = {event: [] for event in at}
    told, right = 0, 0
    for batch, _ in goals(made, 400):
        for event, place in at.items():
            past[event].append(tuple(made._games.score[place, :2].tolist()))
        for reading in made.scores:
            assert reading.score in past[reading.event][-LATEST_S:]
            assert reading.seen == round(batch.now.timestamp() * 1e6)
            told += 1
        board.step(made.scores, round(batch.now.timestamp() * 1e6))
        right += sum((state.home, state.away) == past[event][-1] for event, state in board.states.items())
        assert all((state.home, state.away) in past[event][-60:] for event, state in board.states.items())
    assert told > 1000
    ended = [event for event, place in at.items() if made._games.status[place] == 2 and event in board.states]
    assert ended
    for event in ended:
        state, fixture = board.states[event], made.fixtures[at[event]]
        assert (state.period, state.over, state.clock) == ("FT", True, "")
        won = made.settle(2.0, event, "moneyline", fixture.home)
        assert (won > 0) == (state.home is not None and state.away is not None and state.home > state.away)


@pytest.mark.parametrize("hazards", [False, True])
def test_the_same_seed_tells_the_same(hazards: bool) -> None:
    first, second = (
        [made.scores for _ in made.run(30)] for made in (world(5, hazards=hazards), world(5, hazards=hazards))
    )
    assert first == second
    assert any(first)


@pytest.mark.exhaustive
def test_a_frozen_board_is_outvoted() -> None:
    """With errors of feeds some boards show an old score for minutes; what they come to is hardly ever old."""
    made, board = world(11, hazards=True), Scoreboard()
    for each in made._boards.boards:
        each.every = 1.0
    at = {fixture.id: place for place, fixture in enumerate(made.fixtures)}
    past: dict[str, list[tuple[int, int]]] = {event: [] for event in at}
    frozen = old = 0
    for batch, _ in goals(made, 600):
        for event, place in at.items():
            past[event].append(tuple(made._games.score[place, :2].tolist()))
        frozen += sum(reading.score not in past[reading.event][-LATEST_S:] for reading in made.scores)
        board.step(made.scores, round(batch.now.timestamp() * 1e6))
        old += sum((state.home, state.away) not in past[event][-LATEST_S:] for event, state in board.states.items())
    assert frozen > 50
    assert old < frozen / 10
