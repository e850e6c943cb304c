"""One node feeds another: over the stream, with connections that break, the second holds what the first one does."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl
import pytest
from support.local_servers import running, until

from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.matching import Matcher
from oddsengine.simulate import World
from oddsengine.simulate.simulated_books import DEFAULT_BOOKS
from oddsengine.sources import node_client as interface
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import InterfaceSettings
from oddsengine.testing.local_servers import Answering, Request, http, iso
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub

CHUNK = 1000
SAME = (
    "sportsbook", "home_team", "away_team", "event_start_time", "market_type", "market_segment", "selection", "line",
    "player_name", "odds_decimal", "is_live",
)  # fmt: skip


class Upstream:
    """A node with the published stream; it stands in for ours until there is one."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.connections = 0
        self.refusing = False
        self._subscribers: dict[asyncio.Queue[list[tuple[str, Any]]], Answering] = {}

    def step(self, **batch: Any) -> None:
        """Apply a batch and tell everybody."""
        events = list(_events(self.engine.step(**batch)))
        for queue in self._subscribers:
            queue.put_nowait(events)

    def drop(self) -> None:
        """Break every connection."""
        for answering in self._subscribers.values():
            answering.writer.transport.abort()
        self._subscribers.clear()

    async def __call__(self, _: Request, answering: Answering) -> None:
        if self.refusing:
            await answering.answer({"error": {"code": "not_ready", "message": "starting"}}, 503)
            return
        self.connections += 1
        queue: asyncio.Queue[list[tuple[str, Any]]] = asyncio.Queue()
        rows = _snapshot(self.engine.table())
        self._subscribers[queue] = answering
        await answering.stream()
        again = self.connections > 1
        await answering.event("connected", {"stream_id": "s", "channel": "odds", "reconnected": again}, "evt_0")
        for at in range(0, len(rows), CHUNK):
            chunk = rows[at : at + CHUNK]
            told = {"odds": chunk, "count": len(chunk), "total": len(rows), "offset": at}
            await answering.event("snapshot", told | {"has_more": at + CHUNK < len(rows)})
        books = sorted({row["sportsbook"] for row in rows})
        await answering.event("snapshot:complete", {"status": "ready", "books": books, "total_odds": len(rows)})
        while True:
            for name, data in await queue.get():
                await answering.event(name, data, "evt_1")


def _snapshot(table: pl.DataFrame) -> list[dict[str, Any]]:
    return [_plain(row) for row in table.drop("id").rename({"row_id": "id"}).iter_rows(named=True)]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: iso(value) if isinstance(value, datetime) else value for name, value in row.items() if value is not None
    }


def _events(update: Update) -> list[tuple[str, Any]]:
    """An update in the published form; rows that are new come whole."""
    plain = update.plain()
    gone: dict[str, list[str]] = {}
    for book, row in update.removed.select("sportsbook", "id").iter_rows():
        gone.setdefault(book, []).append(row)
    events: list[tuple[str, Any]] = [
        ("odds:removed", {"ids": ids, "count": len(ids), "book": book}) for book, ids in gone.items()
    ]
    moved = [*plain["new"], *plain["changed"]]
    if moved:
        events.append(("odds:update", {"odds": moved, "count": len(moved), "book": "", "partial": False}))
    return events or [("heartbeat", {"timestamp": plain["now"]})]


def active(engine: Engine) -> Counter[tuple[Any, ...]]:
    return Counter(engine.table().filter("is_active").select(SAME).iter_rows())


@pytest.mark.exhaustive
def test_a_fed_node_holds_what_its_upstream_does() -> None:
    """Minutes of five games, some in play, with two breaks or more: the same active rows."""

    async def check() -> None:
        upstream, world = Upstream(), World(11, events=5, live=0.5, tick=2.0, pace=4.0, books=DEFAULT_BOOKS)
        batches = list(world.run(400))

        def clock() -> datetime:
            assert upstream.engine.now is not None
            return upstream.engine.now

        upstream.step(**batches[0]._asdict())
        hub = Hub(Writer(Engine()), Matcher(), clock=clock)
        async with http(upstream) as url:
            quick: dict[str, Any] = dict(backoff=0.01, backoff_cap=0.05, freshen=0.01, silence=5.0, timeout=5.0)
            feed = InterfaceSettings(name="up", kind="interface", url=url, **quick)
            async with running(hub, interface.source(feed, {"key_env": ""}, Secrets()), tick=0.05):
                await until(lambda: active(hub.engine) == active(upstream.engine), "the first snapshot")
                for at, batch in enumerate(batches[1:]):
                    upstream.step(**batch._asdict())
                    upstream.refusing = at % 50 in range(35, 45)
                    if at % 50 == 35:
                        upstream.drop()
                    await asyncio.sleep(0.004)
                moved = active(upstream.engine)
                await until(lambda: active(hub.engine) == moved, f"{len(moved)} equal rows")
                assert len(moved) > 500
                assert upstream.connections >= 3
                assert hub.applier.quarantined() == []

    asyncio.run(check())
