"""One node feeds another: what a node has is what the node has that listens to it, over the stream and over pages."""

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.effort import less
from support.local_servers import running, until
from support.service_running import Running

from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources import node_client as interface
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import InterfaceSettings
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub

BOOKS = ("draftkings", "pinnacle", "fanduel")
Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    server = Running(tmp_path_factory.mktemp("upstream"), seed=21, events=5).start()
    yield server
    server.stop()


def clock_of(service: Running) -> Callable[[], datetime]:
    """The upstream's time, which goes on also where its world stands still."""
    begin = time.monotonic()

    def clock() -> datetime:
        assert service.node.engine.now is not None
        return service.node.engine.now + timedelta(seconds=time.monotonic() - begin)

    return clock


def prices(engine: Engine) -> dict[Row, tuple[float, bool]]:
    """Prices that can be had, by all that says what they are of; events have ids of their own on each node."""
    return {
        (
            row["sportsbook"], row["sport"], row["league"], row["home_team"], row["away_team"], row["market_type"],
            row["selection"], row["line"], row["player_name"],
        ): (round(row["odds_decimal"], 5), row["is_live"])
        for row in engine.table().iter_rows(named=True)
        if row["is_active"] and row["sportsbook"] in BOOKS
    }  # fmt: skip


@pytest.mark.parametrize("stream", [True, False])
def test_what_one_node_has_another_one_has(upstream: Running, stream: bool) -> None:
    async def check() -> None:
        hub = Hub(Writer(Engine()), Matcher(), clock=clock_of(upstream))
        feed = InterfaceSettings(
            name="up", kind="interface", url=upstream.base, stream=stream, books=BOOKS, interval=0.1, freshen=0.05,
            backoff=0.05,
        )  # fmt: skip

        def same() -> bool:
            upstream.clock.pass_minute()
            return bool(prices(hub.engine)) and prices(hub.engine) == prices(upstream.node.engine)

        async with running(hub, interface.source(feed, {"key_env": "demo_enterprise"}, Secrets()), tick=0.1):
            await until(same, "what the upstream has")
            for _ in range(less(3, 1)):
                before = prices(hub.engine)
                await asyncio.to_thread(upstream.advance, 3)
                await until(same, "what it has next")
                assert prices(hub.engine) != before
            assert hub.statuses()[0].status == "ok", hub.statuses()[0].reason

    asyncio.run(check())
