"""The demo: a simulated market in real time."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from oddsengine.feeds.merged_scores import ScoreReading
from oddsengine.futures import FuturesField
from oddsengine.live.engine import Engine
from oddsengine.query import BoardStats
from oddsengine.simulate import FeedBatch, World
from oddsengine.simulate.simulated_futures import FuturesSeason
from oddsengine.simulate.simulated_splits import EVERY_S, SOURCES, splits
from oddsengine_service.board.futures_board import NodeFutures
from oddsengine_service.board.split_store import Splits
from oddsengine_service.board.writer import StalledError
from oddsengine_service.monitoring import log
from oddsengine_service.node import Node
from oddsengine_service.wire.games_response import Teams
from oddsengine_service.wire.splits_response import SplitsGiven

SEED = 7
EVENTS, DAYS = 60, 7  # games of a day, and days until a new simulation starts
FUTURES_LEAGUES = ("nba", "nfl")
FUTURES_S = 10.0  # seconds between two updates of futures
SPLITS_H = 6  # hours of betting splits before the start
TICK_S = 1.0
HISTORY_S, HISTORY_TICK_S = 600.0, 200.0  # of the first simulation, before the node is ready
OPENING = "the simulated market opens"  # what the node waits for meanwhile
_A_DAY = 86_400.0
_NAME = ("event_id", "market_type", "selection", "line", "player_name", "sportsbook")
_PRICE = ("odds_decimal", "odds_american", "is_live", "is_active")


def apply_batch(
    node: Node, batch: FeedBatch, scores: Sequence[ScoreReading], teams: Mapping[str, Teams], now: datetime
) -> None:
    """Apply a simulation's batch in the writer thread.

    Futures and game states come first, so that responses about the new board include them.
    """
    add_futures(node.futures, now)
    node.games.put(scores, now, {reading.event: teams[reading.event] for reading in scores})
    node.step(batch.quotes, now, complete=batch.complete, events=batch.events)


def simulation(
    seed: int, start: datetime, *, events: int = EVENTS, tick: float = TICK_S, hazards: bool = False
) -> World:
    """Return the demo's market: about as many opportunities as real boards have, and as small, and a few arbitrages."""
    return World(
        seed, events=events, days=DAYS, start=start, tick=tick, live=0.15, dissent=0.9, slow=12.0, news=0.55,
        exchange_hold=3.0, levels=True, hazards=hazards,
    )  # fmt: skip


def teams_of(world: World) -> dict[str, Teams]:
    return {
        fixture.id: Teams(fixture.league.sport, fixture.league.id, fixture.home, fixture.away)
        for fixture in world.fixtures
    }


@lru_cache(maxsize=8)
def _season(league: str, year: int) -> FuturesSeason:
    return FuturesSeason(SEED, league, year)


def add_futures(futures: NodeFutures, now: datetime) -> None:
    """Apply simulated futures at a time, if they are due; only in the writer."""
    if futures.board.now is not None and (now - futures.board.now).total_seconds() < FUTURES_S:
        return
    seasons = [_season(league, now.year if now.month > 6 else now.year - 1) for league in FUTURES_LEAGUES]
    if not futures.board.fields:
        futures.state([FuturesField(**dict(field)) for season in seasons for field in season.fields()])
    futures.apply([row for season in seasons for row in season.quotes(now)], now, source="demo")


def add_splits(store: Splits, board: Engine, now: datetime, *, seed: int = SEED, hours: int = 0) -> int:
    """Add simulated splits for every event of a board, including past hours. Returns the number of records added."""
    stats = BoardStats(board, None)
    taken = 0
    for back in range(hours * 3600 // EVERY_S, -1, -1):
        then = datetime.fromtimestamp(now.timestamp() - back * EVERY_S, now.tzinfo)
        for game, sport, league in zip(stats.games, stats.sports, stats.leagues, strict=True):
            about = {"sport": sport, "league": league, "home_team": game.home, "away_team": game.away}
            for book in SOURCES:
                record = {"event_id": game.id, "sportsbook": book, **about, "fetched_at": then}
                record |= splits(seed, game.id, sport, book, then)
                taken += store.put(msgspec.convert(record, SplitsGiven), now)
    return taken


def history(world: World) -> Iterator[FeedBatch]:
    """The opening board, and how it moved in `HISTORY_S`.

    Before the last batch, a price that did not move is left out, unless its book is complete for its event.
    """
    known: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    steps = round(HISTORY_S / HISTORY_TICK_S)
    for step, batch in enumerate(world.run(HISTORY_S, tick=HISTORY_TICK_S)):
        keys = [tuple(map(quote.get, _NAME)) for quote in batch.quotes]
        prices = [tuple(map(quote.get, _PRICE)) for quote in batch.quotes]
        whole = set(batch.complete)
        sent = [
            quote for quote, key, price in zip(batch.quotes, keys, prices, strict=True)
            if step == steps or known.get(key) != price or (quote["sportsbook"], quote["event_id"]) in whole
        ]  # fmt: skip
        known |= zip(keys, prices, strict=True)
        yield batch._replace(quotes=sent)


def run_world(node: Node, *, seed: int = SEED, events: int = EVENTS, hazards: bool = False) -> None:
    """Run a simulation in real time until the node closes; a new one starts each week.

    The first one starts in the past, so that its board has a history when the node is ready.
    """
    clock = node.clock
    due, hours = 0.0, SPLITS_H
    past = timedelta(seconds=HISTORY_S)
    while not node.closing.is_set():
        world = simulation(seed, clock.now() - past, events=events, hazards=hazards)
        teams = teams_of(world)
        if past:
            steps = []  # the writer applies one while the next one is made
            for batch in history(world):
                if node.closing.is_set():
                    return
                steps.append(node.write(apply_batch, node, batch, world.scores, teams, batch.now))
            for step in steps:
                with suppress(CancelledError, StalledError):  # the node closes, or its log is stalled
                    step.result()
            node.wait_for("")
            log.event("ready", seconds=round(clock.time() - node.started, 2))
            past = timedelta()
        for batch in world.run(DAYS * _A_DAY, tick=TICK_S):
            while (ahead := (batch.now - clock.now()).total_seconds()) > 0.0:
                if node.closing.wait(ahead):
                    return
            if node.closing.is_set():
                return
            now = max(batch.now, clock.now() - timedelta(seconds=5))
            while not node.closing.is_set():
                with suppress(StalledError):
                    node.write(apply_batch, node, batch, world.scores, teams, now).result()
                    break
                node.closing.wait(0.2)
            if time.monotonic() >= due:
                with suppress(StalledError):
                    add_splits(node.splits, node.engine, clock.now(), seed=seed, hours=hours)
                    due, hours = time.monotonic() + EVERY_S, 0
        seed += 1
    log.event("demo ended", at_seed=seed, after_s=round(clock.time() - node.started, 1))
