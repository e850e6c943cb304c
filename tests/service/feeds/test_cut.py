"""A payload that is too large for one step becomes several, and the board is the same."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from service.feeds.test_gamestate import declared, quote

from oddsengine.feeds import Game, Payload
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.matching import Matcher
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.replication import Replication


class Limited(Replication):
    """Of a log that takes no larger steps."""

    def __init__(self, most: int | None) -> None:
        self.most_quotes = most


NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
GAMES = [
    Game(f"g{at}", "basketball", "nba", f"Home {at}", f"Away {at}", NOW + timedelta(days=1 + at)) for at in range(9)
]
COLUMNS = ["event_id", "sportsbook", "odds_decimal"]


@pytest.mark.parametrize("whole", [False, True], ids=["events", "books"])
@pytest.mark.parametrize("most", [None, 1, 4, 5])
def test_a_payload_in_parts(most: int | None, whole: bool) -> None:
    async def check() -> tuple[pl.DataFrame, list[int]]:
        heard: list[Update] = []
        hub = Hub(writer := Writer(Engine()), Matcher(), clock=lambda: NOW, replication=Limited(most))
        writer.followers.append(heard.append)
        hub.add(declared("one"))
        first = [quote(game, book) for game in GAMES for book in ("draftkings", "fanduel")]
        await hub.deliver("one", Payload(GAMES, first))
        complete: list[Any] = [("draftkings", None)] if whole else [("draftkings", game.id) for game in GAMES]
        second = [{**quote(game), "odds_decimal": 2.5} for game in GAMES[:6]]
        await hub.deliver("one", Payload(GAMES, second, complete=complete))
        await asyncio.sleep(0)
        await hub.close()
        return hub.engine.table().select(COLUMNS).sort(COLUMNS), [update.number for update in heard]

    table, numbers = asyncio.run(check())
    prices = table.filter(pl.col("sportsbook") == "draftkings")["odds_decimal"].to_list()
    assert prices == [2.5] * 6  # the other three are gone
    assert table.filter(pl.col("sportsbook") == "fanduel").height == 9
    parts = {None: 1, 1: 18, 4: 5, 5: 5}[most] + {None: 1, 1: 6, 4: 2, 5: 2}[most]
    assert numbers == list(range(1, parts + 1))
