"""`fetch` and a node have the same prices of a source after the same payloads."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from service.feeds.test_gamestate import declared

from oddsengine.feeds import Game, Payload
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources.fetching import SourcePrices
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub

NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
GAME = Game("g", "soccer", "x", "Arsenal", "Chelsea", NOW + timedelta(hours=3))
OTHER = Game("h", "soccer", "x", "Everton", "Fulham", NOW + timedelta(hours=3))
Row = tuple[str, str, float | None, float | None, datetime, bool]
Steps = list[Payload]


def quote(id_: str | None, odds: float | None, line: float | None = 2.5, **more: Any) -> dict[str, Any]:
    return {
        **GAME.fields, "id": id_, "sportsbook": "fanduel", "market_type": "total_goals", "selection": "Over",
        "selection_type": "over", "line": line, "odds_decimal": odds, **more,
    }  # fmt: skip


def of_a_node(steps: Steps) -> list[Row]:
    async def check() -> list[Row]:
        clock = [NOW]
        hub = Hub(Writer(Engine()), Matcher(), clock=lambda: clock[0])
        hub.add(declared("one"))
        for payload in steps:
            await hub.deliver("one", payload)
            clock[0] += timedelta(seconds=1)
        await hub.close()
        names = ["event_id", "sportsbook", "line", "odds_decimal", "last_seen_at", "is_active"]
        sources = {game.event: id_ for (_, id_), game in hub.applier.games.known.items()}
        return [(sources[event], *rest) for event, *rest in hub.engine.table().select(names).rows()]

    return sorted(asyncio.run(check()), key=str)


def of_fetch(steps: Steps) -> list[Row]:
    prices, now = SourcePrices(), NOW
    for payload in steps:
        prices.apply(payload, now)
        now += timedelta(seconds=1)
    rows = [
        (
            q["event_id"], q["sportsbook"].lower(), q["line"], q["odds_decimal"], q["last_seen_at"],
            q.get("is_active", True),
        )
        for q in prices.quotes()
    ]  # fmt: skip
    return sorted(rows, key=str)


def then(*rest: Payload) -> Steps:
    """A price under one id, and what follows."""
    return [Payload([GAME, OTHER], [quote("a", 1.9)]), *rest]


EARLIER = NOW - timedelta(minutes=1)
PAYLOADS: dict[str, Steps] = {
    "replaced": then(Payload(quotes=[quote("a", 2.0)])),
    "removed": then(Payload(removed=["a"])),
    "another id": then(Payload(quotes=[quote("b", 2.0)])),
    "another id, then its earlier one removed": then(Payload(quotes=[quote("b", 2.0)]), Payload(removed=["a"])),
    "another id, then that removed": then(Payload(quotes=[quote("b", 2.0)]), Payload(removed=["b"])),
    "removed and quoted": then(Payload(quotes=[quote("a", 2.0)], removed=["a"])),
    "removed and quoted under another id": then(Payload(quotes=[quote("b", 2.0)], removed=["a"])),
    "moved to another line": then(Payload(quotes=[quote("a", 2.0, 3.5)], removed=["a"])),
    "moved there, then removed": then(
        Payload(quotes=[quote("a", 2.0, 3.5)], removed=["a"]), Payload(removed=["a"])
    ),
    "not listed by the book": then(Payload(quotes=[quote("b", 2.0, 3.5)], complete=[("fanduel", None)])),
    "not listed by the book in another spelling": then(Payload(complete=[("FanDuel", None)])),
    "not listed by another book": then(Payload(complete=[("draftkings", None)])),
    "not listed in its game": then(Payload(complete=[("fanduel", "g")])),
    "not listed in another game": then(Payload(complete=[("fanduel", "h")])),
    "listed under another id": then(Payload(quotes=[quote("b", 2.0)], complete=[("fanduel", "g")])),
    "without an id": [Payload([GAME], [quote(None, 1.9)]), Payload(quotes=[quote(None, 2.0)])],
    "late": then(Payload(quotes=[quote("a", 2.0, last_seen_at=EARLIER)])),
    "late, but listed": then(
        Payload(quotes=[quote("a", 2.0, last_seen_at=EARLIER)], complete=[("fanduel", None)])
    ),
    "seen earlier": [Payload([GAME], [quote("a", 1.9, last_seen_at=EARLIER)])],
    "seen in the future": [Payload([GAME], [quote("a", 1.9, last_seen_at=NOW + timedelta(hours=1))])],
    "suspended without a price": then(Payload(quotes=[quote("a", None, is_active=False)])),
    "suspended with a price": then(Payload(quotes=[quote("a", 2.0, is_active=False)])),
}  # fmt: skip


@pytest.mark.parametrize("steps", PAYLOADS.values(), ids=PAYLOADS)
def test_both_apply_payloads_alike(steps: Steps) -> None:
    assert of_fetch(steps) == of_a_node(steps)


def test_a_payload_may_quote_a_price_twice_in_a_table() -> None:
    """It is judged later, as in any table; a board has the last."""
    twice = [Payload([GAME], [quote("a", 1.9), quote("a", 2.0)])]
    assert [row[3] for row in of_fetch(twice)] == [1.9, 2.0]
    assert [row[3] for row in of_a_node(twice)] == [2.0]
