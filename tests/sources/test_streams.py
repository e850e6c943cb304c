"""Fetchers of streams against local servers: resumed, cut, silent, refused, changed."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.local_servers import new_hub, prices, running, until

from oddsengine.sources import node_client as interface
from oddsengine.sources.optic_client import OpticSource
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import InterfaceSettings, OpticSettings
from oddsengine.testing.local_servers import Answering, Checked, Request, http, iso, now
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.feeds.quarantine import PayloadQuarantine

START = (now() + timedelta(hours=1)).replace(microsecond=0)
QUICK: dict[str, Any] = dict(timeout=1.0, backoff=0.01, backoff_cap=0.05, down_after=0.3)
NO_KEY = {"key_env": ""}


def status(hub: Hub) -> tuple[str, str]:
    (found,) = hub.statuses()
    return found.status, found.reason


# ---- the interface's stream ----


def row(ident: str = "r1", odds: float = 1.9, pick: str = "Boston Celtics", **more: Any) -> dict[str, Any]:
    return {
        "id": ident, "sportsbook": "draftkings", "event_id": "nba_x", "sport": "basketball", "league": "nba",
        "home_team": "Boston Celtics", "away_team": "Los Angeles Lakers", "market_type": "moneyline", "selection": pick,
        "odds_decimal": odds, "event_start_time": iso(START), "is_live": False, "last_seen_at": iso(now()),
    } | more  # fmt: skip


def feed(url: str, **more: Any) -> InterfaceSettings:
    given: dict[str, Any] = {
        "name": "up",
        "kind": "interface",
        "url": url + "/api/v1",
        "silence": 20.0,
        "freshen": 60.0,
        "interval": 0.02,
    }
    return InterfaceSettings(**{**QUICK, **given, **more})


async def begin(answering: Answering, *rows: Mapping[str, Any], reconnected: bool = False) -> None:
    await answering.stream()
    await answering.event("connected", {"stream_id": "s", "channel": "odds", "reconnected": reconnected}, "evt_1")
    await answering.event("snapshot", {"odds": rows, "count": len(rows), "total": len(rows), "offset": 0}, "evt_2")
    await answering.event(
        "snapshot:complete", {"status": "ready", "books": ["draftkings"], "total_odds": len(rows)}, "evt_3"
    )


async def beat(answering: Answering, seconds: float = 60.0) -> None:
    for _ in range(int(seconds / 0.1)):
        await answering.event("heartbeat", {"timestamp": iso(now())})
        await asyncio.sleep(0.1)


def test_a_stream_that_breaks_is_taken_up_again() -> None:
    """What is gone meanwhile is gone on the board; what moved has moved; the key travels in a header."""
    asked: list[Request] = []
    updated = asyncio.Event()

    async def serve(request: Request, answering: Answering) -> None:
        asked.append(request)
        if len(asked) == 1:
            await begin(answering, row("r1"), row("r2", 2.0, "Los Angeles Lakers"))
            await answering.event("odds:update", {"odds": [{"id": "r1", "odds_decimal": 1.95}]}, "evt_4")
            await answering.send(b"event: odds:upd")  # and cut in the middle of a line
        else:
            await updated.wait()
            await begin(answering, row("r1", 1.85), reconnected=True)
            await beat(answering)

    async def check() -> None:
        hub = new_hub()
        async with http(serve) as url, running(hub, interface.source(feed(url), {"key_env": "sekret"}, Secrets())):
            await until(lambda: 1.95 in prices(hub).values(), "the update")
            updated.set()
            await until(lambda: prices(hub) == {("draftkings", "Boston Celtics"): 1.85}, "the second snapshot")
            await until(lambda: status(hub)[0] == "ok", "a good status")
            assert (asked[0].headers["x-api-key"], asked[0].query["channel"]) == ("sekret", ["odds"])
            assert asked[1].headers["last-event-id"] == "evt_4"
            assert hub.statuses()[0].failures_total == 1

    asyncio.run(check())


def test_a_stream_that_goes_silent_is_noticed() -> None:
    """Neither closed nor alive: after `silence` it is given up, and down when that goes on."""
    connections = []

    async def serve(_: Request, answering: Answering) -> None:
        connections.append(1)
        if len(connections) > 1:
            await answering.stream()
        else:
            await begin(answering, row())
        await asyncio.sleep(60)

    async def check() -> None:
        hub = new_hub()
        async with http(serve) as url, running(hub, interface.source(feed(url, silence=0.1), NO_KEY, Secrets())):
            await until(lambda: prices(hub), "prices")
            await until(lambda: status(hub)[0] == "down", "down")
            assert "no data within 0.1 s" in status(hub)[1]
            assert len(prices(hub)) == 1
            assert [one.status for one in hub.books() if one.book == "draftkings"] == ["down"]

    asyncio.run(check())


def test_an_upstream_without_word_of_ages_is_asked() -> None:
    """Heartbeats renew no price; all prices are asked for, and have the ages that the upstream tells."""
    seen = [now() - timedelta(seconds=100)]

    async def check() -> None:
        async def serve(request: Request, answering: Answering) -> None:
            price = row(last_seen_at=iso(seen[0]))
            if request.path.endswith("/odds"):
                await answering.answer({"data": [price], "pagination": {"has_more": False}})
                return
            assert request.query["seen"] == ["true"]
            await begin(answering, price)
            while True:
                await answering.event("heartbeat", {"timestamp": iso(now())})
                await asyncio.sleep(0.02)

        hub = new_hub()
        async with http(serve) as url:
            source = interface.source(feed(url, silence=5.0, freshen=0.05), NO_KEY, Secrets())
            async with running(hub, source, tick=0.01):
                await until(lambda: prices(hub), "prices")
                for _ in range(3):
                    await until(lambda: hub.engine.table()["last_seen_at"].item() == seen[0], "the upstream's time")
                    seen[0] += timedelta(seconds=20)
                assert status(hub) == ("ok", "")

    asyncio.run(check())


def test_a_payload_that_does_not_read_is_kept_and_the_stream_begun_anew(tmp_path: Path) -> None:
    connections = []

    async def serve(_: Request, answering: Answering) -> None:
        connections.append(1)
        await begin(answering, row(odds=1.9 if len(connections) == 1 else 1.7))
        if len(connections) == 1:
            await answering.event("odds:update", {"rows": "another form", "api_key": "topsecret"})
        await beat(answering)

    async def check() -> None:
        hub = new_hub(PayloadQuarantine(tmp_path, 5, 10_000, Secrets()))
        async with http(serve) as url, running(hub, interface.source(feed(url), NO_KEY, Secrets())):
            await until(lambda: 1.7 in prices(hub).values(), "the second snapshot")

    asyncio.run(check())
    (kept,) = tmp_path.glob("*.payload")
    assert b"another form" in kept.read_bytes()
    assert b"topsecret" not in kept.read_bytes()


@pytest.mark.parametrize("paged", ["offset", "cursor"])
def test_pages_then_what_changed(paged: str) -> None:
    """REST: all pages, then changes since the upstream's own time; a clamped answer asks for everything again."""
    asked: list[Request] = []
    seen = {deltas: asyncio.Event() for deltas in (2, 4)}

    async def serve(request: Request, answering: Answering) -> None:
        asked.append(request)
        query, meta = request.query, {"server_time": f"2026-01-01T00:00:{len(asked):02d}Z"}
        deltas = sum(one.path.endswith("/delta") for one in asked)
        snapshots = sum(one.path.endswith("/odds") and not {"offset", "cursor"} & set(one.query) for one in asked)
        if request.path.endswith("/delta"):
            if deltas in seen:  # a change stays until it was seen
                await seen[deltas].wait()
            rows = [row("r1", 2.5)] if deltas == 1 else []
            removed = [{"id": "r2", "sportsbook": "draftkings"}] if deltas == 2 else []
            body: dict[str, Any] = {
                "success": True,
                "data": rows,
                "removed": removed,
                "pagination": {"has_more": False},
            }
            await answering.answer(body | {"meta": meta | {"since_clamped": deltas == 4}})
        elif snapshots == 2:
            await answering.answer({"data": [row("r3", 1.4)], "pagination": {"has_more": False}, "meta": meta})
        elif "offset" in query or "cursor" in query:
            await answering.answer({"data": [row("r2", 2.0, "Los Angeles Lakers")], "pagination": {"has_more": False}})
        else:
            more = (
                {"has_more": True, "next_offset": 200} if paged == "offset" else {"has_more": True, "next_cursor": "c"}
            )
            await answering.answer({"data": [row("r1")], "pagination": more, "meta": meta})

    async def check() -> None:
        hub = new_hub()
        async with http(serve) as url, running(hub, interface.source(feed(url, stream=False), NO_KEY, Secrets())):
            await until(lambda: 2.5 in prices(hub).values(), "a change")
            seen[2].set()
            await until(lambda: len(prices(hub)) == 1, "a removal")
            seen[4].set()
            await until(lambda: list(prices(hub).values()) == [1.4], "everything again")
            assert next(r for r in asked if r.path.endswith("/delta")).query["since"] == ["2026-01-01T00:00:01Z"]
            assert status(hub) == ("ok", "")

    asyncio.run(check())


# ---- OpticOdds ----


def fixture(*odds: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": "f1", "start_date": iso(START), "home_team_display": "Boston Celtics",
        "away_team_display": "Los Angeles Lakers", "status": "unplayed", "is_live": False,
        "sport": {"id": "basketball", "name": "Basketball"}, "league": {"id": "nba", "name": "NBA"}, "odds": odds,
    }  # fmt: skip


def offer(price: float, pick: str = "Boston Celtics") -> dict[str, Any]:
    return {
        "id": f"f1:{pick}", "sportsbook": "DraftKings", "market": "Moneyline", "market_id": "moneyline", "name": pick,
        "selection": pick, "normalized_selection": pick.lower().replace(" ", "_"), "selection_line": None,
        "price": price, "is_main": True, "timestamp": now().timestamp(), "grouping_key": "default", "points": None,
    }  # fmt: skip


def test_an_optic_stream_is_resumed_after_its_last_entry() -> None:
    streams: list[Request] = []

    async def serve(request: Request, answering: Answering) -> None:
        if request.path.endswith("/fixtures/active"):
            await answering.answer({"data": [fixture()], "page": 1, "total_pages": 1})
        elif request.path.endswith("/fixtures/odds"):
            assert request.query["sportsbook"] == ["DraftKings"]
            await answering.answer({"data": [fixture(offer(-150), offer(130, "Los Angeles Lakers"))]})
        else:
            streams.append(request)
            await answering.stream()
            await answering.event("connected", "ok go")
            entry, price = f"17300-{len(streams)}", -150 - 10 * len(streams)
            moved = offer(price) | {"fixture_id": "f1", "league": "NBA", "sport": "basketball", "is_live": False}
            await answering.event("odds", {"data": [moved], "entry_id": entry, "type": "odds"}, entry)
            if len(streams) > 1:
                for _ in range(600):
                    await answering.event("ping", iso(now()))
                    await asyncio.sleep(0.1)

    async def check() -> None:
        hub = new_hub()
        declared = OpticSettings(
            **QUICK, name="optic", kind="optic", key_env="K", sports=("basketball",), books=("DraftKings",),
            silence=20.0, url="",
        )  # fmt: skip
        async with http(Checked("optic", serve)) as url:
            source = OpticSource(msgspec.structs.replace(declared, url=url), {"key_env": "sekret"}, Secrets())
            async with running(hub, source):
                await until(lambda: len(streams) == 2, "a second connection")
                await until(lambda: prices(hub).get(("draftkings", "Boston Celtics")) == pytest.approx(1 + 100 / 170))
                assert len(prices(hub)) == 2
                await until(lambda: status(hub)[0] == "ok", "a good status")
        assert "last_entry_id" not in streams[0].query
        assert streams[1].query["last_entry_id"] == ["17300-1"]
        assert streams[1].headers["x-api-key"] == "sekret"

    asyncio.run(check())


def test_an_optic_stream_that_ends_before_its_first_entry_begins_anew() -> None:
    """Nothing says after which entry it would be resumed, so that what has changed meanwhile would never come."""
    streams: list[Request] = []

    async def serve(request: Request, answering: Answering) -> None:
        if request.path.endswith("/fixtures/active"):
            await answering.answer({"data": [fixture()], "page": 1, "total_pages": 1})
        elif request.path.endswith("/fixtures/odds"):
            await answering.answer({"data": [fixture(offer(-150 - 10 * len(streams)))]})
        else:
            streams.append(request)
            await answering.stream()
            await answering.event("connected", "ok go")
            await asyncio.sleep(0.1)
            if len(streams) > 1:
                await answering.event("ping", iso(now()))
                await asyncio.sleep(60.0)

    async def check() -> None:
        hub = new_hub()
        async with http(Checked("optic", serve)) as url:
            declared = OpticSettings(
                **QUICK, name="optic", kind="optic", key_env="K", sports=("basketball",), books=("DraftKings",),
                silence=20.0, url=url,
            )  # fmt: skip
            async with running(hub, OpticSource(declared, {"key_env": "sekret"}, Secrets())):
                await until(lambda: prices(hub) == {("draftkings", "Boston Celtics"): pytest.approx(1 + 100 / 170)})

    asyncio.run(check())


def test_an_optic_connection_has_at_most_ten_leagues() -> None:
    asked: list[list[str]] = []
    listed: list[list[str]] = []

    async def serve(request: Request, answering: Answering) -> None:
        if request.path.endswith("/fixtures/active"):
            listed.append(request.query["league"])
            await answering.answer({"data": [], "page": 1, "total_pages": 1})
            return
        asked.append(request.query["league"])
        await answering.stream()
        await answering.event("connected", "ok go")
        for _ in range(600):
            await answering.event("ping", iso(now()))
            await asyncio.sleep(0.1)

    async def check() -> None:
        hub = new_hub()
        leagues = tuple(f"l{at}" for at in range(12))
        async with http(Checked("optic", serve)) as url:
            declared = OpticSettings(
                **QUICK, name="optic", kind="optic", key_env="K", sports=("soccer",), books=("DraftKings",),
                leagues=leagues, url=url,
            )  # fmt: skip
            async with running(hub, OpticSource(declared, {"key_env": "sekret"}, Secrets())):
                await until(hub.tracks["optic"].caught_up.is_set, "both parts")
        assert sorted(asked, key=len, reverse=True) == [[*leagues[:10]], [*leagues[10:]]]
        assert sorted(listed, key=len, reverse=True) == [[*leagues[:10]], [*leagues[10:]]]

    asyncio.run(check())
