"""A node on this machine that fetches from local servers, and events of The Odds API."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

from support.effort import pause

from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources import Source
from oddsengine.testing.local_servers import iso, now
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.feeds.quarantine import PayloadQuarantine

PATIENCE_S = 8.0  # on a busy machine; nothing waits so long when all is well


def new_hub(payloads: PayloadQuarantine | None = None, *, ages: bool = False) -> Hub:
    return Hub(Writer(Engine()), Matcher(), clock=now, payloads=payloads, ages=ages)


@asynccontextmanager
async def running(hub: Hub, *sources: Source, tick: float = 60.0) -> AsyncIterator[asyncio.Task[None]]:
    """Run sources for a while."""
    task = asyncio.create_task(hub.run(sources, tick=tick))
    await asyncio.sleep(0)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await hub.close()


async def until(condition: Callable[[], Any], what: str = "it") -> None:
    """Wait until something holds."""
    end = (look := time.monotonic()) + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited too long for {what}"
        await asyncio.sleep(pause(look, 0.005))
        look = time.monotonic()


def game(
    ident: str = "g1", home: str = "Boston Celtics", away: str = "Los Angeles Lakers",
    prices: tuple[float, float] = (1.8, 2.1), books: tuple[str, ...] = ("draftkings", "fanduel"), hours: float = 0.5,
) -> dict[str, Any]:  # fmt: skip
    """One event of The Odds API."""
    seen = iso(now())
    outcomes = [{"name": home, "price": prices[0]}, {"name": away, "price": prices[1]}]
    market = {"key": "h2h", "last_update": seen, "outcomes": outcomes}
    return {
        "id": ident, "sport_key": "basketball_nba", "sport_title": "NBA", "home_team": home, "away_team": away,
        "commence_time": iso((now() + timedelta(hours=hours)).replace(microsecond=0)),
        "bookmakers": [{"key": book, "title": book, "last_update": seen, "markets": [market]} for book in books],
    }  # fmt: skip


def prices(hub: Hub) -> dict[tuple[str, str], float]:
    """Active prices on a board by book and selection."""
    frame = hub.engine.table().filter("is_active")
    return {
        (book, pick): odds for book, pick, odds in frame.select("sportsbook", "selection", "odds_decimal").iter_rows()
    }
