"""The stream helpers of `sharpapi`, the client that users of the interface have, against a running server."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sharpapi import AsyncSharpAPI, SharpAPI
from sharpapi.exceptions import AuthenticationError, StreamError
from sharpapi.models import ArbitrageOpportunity, EVOpportunity, LowHoldOpportunity, MiddleOpportunity, OddsLine
from support.stream_running import Served, full_board, lasting, moment, price

KINDS: dict[str, Any] = {
    "ev:detected": EVOpportunity, "arb:detected": ArbitrageOpportunity, "middles:detected": MiddleOpportunity,
    "low_hold:detected": LowHoldOpportunity,
}  # fmt: skip
FIRST = ["__retry__", "connected"]
LAST = ["snapshot:complete", "heartbeat"]
HELPERS: list[tuple[str, list[str], dict[str, Any], list[str]]] = [
    ("odds", [], {"league": "nba", "sportsbook": ["draftkings", "fanduel"], "sport": "basketball", "market": "main"},
     ["snapshot"]),
    ("opportunities", [], {"min_ev": 0.5, "min_profit": 0.1, "league": ["nba"]}, ["snapshot", *KINDS]),
    ("opportunities", [], {}, ["snapshot", *KINDS]),
    ("all", [], {"sport": "basketball"}, ["snapshot", *KINDS, "gamestate:snapshot"]),
    ("event", ["client"], {"market": "moneyline"}, ["snapshot"]),
    ("gamestate", [], {}, ["gamestate:snapshot"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def served(served: Served) -> Served:
    served.step(full_board("client"), moment())
    return served


@pytest.fixture
def client(served: Served) -> Iterator[SharpAPI]:
    with SharpAPI(served.key("enterprise"), base_url=f"http://127.0.0.1:{served.port}") as made:
        yield made


@pytest.mark.parametrize(
    ("helper", "given", "words", "middle"),
    HELPERS,
    ids=["odds", "opportunities", "opportunities as they are", "all", "event", "gamestate"],
)
def test_every_helper_hears(
    client: SharpAPI, helper: str, given: list[str], words: dict[str, Any], middle: list[str]
) -> None:
    names, seen = [], {}
    for name, data in getattr(client.stream, helper)(*given, **words).iter_events():
        names.append(name)
        seen[name] = data
        if name == "heartbeat":
            break
    assert names[:2] == FIRST
    assert names[-2:] == LAST
    assert sorted(set(names[2:-2])) == sorted(set(middle))
    for name, model in KINDS.items():
        for row in seen.get(name, ()):
            model.model_validate(row)
    for row in seen.get("snapshot", {}).get("odds", ()):
        OddsLine.model_validate({**row, "probability": row["odds_probability"]})  # the one that deltas keep right
    assert seen["connected"]["channel"] == ("odds" if helper == "event" else helper)


def test_every_helper_is_tried(client: SharpAPI, served: Served) -> None:
    helpers = {name for name in dir(client.stream) if not name.startswith("_")}
    assert helpers == {each[0] for each in HELPERS}
    assert not hasattr(AsyncSharpAPI(served.key("enterprise")), "stream")  # so its users listen as below


def test_handlers_hold_the_board_and_come_back(client: SharpAPI, served: Served) -> None:
    """`connect` calls handlers, and connects again when the server ended the stream."""
    now = moment()
    served.step([price("handled", "fanduel", side, 1.9) for side in ("Home", "Away")], now)
    stream = client.stream.event("handled")
    odds: dict[str, dict[str, Any]] = {}
    counts = {"connected": 0, "heartbeat": 0}

    def connected(_: Any) -> None:
        odds.clear()
        counts["connected"] += 1

    def snapshot(data: Any) -> None:
        odds.update({row["id"]: row for row in data["odds"]})

    def update(data: Any) -> None:
        for row in data["odds"]:
            odds[row["id"]].update(row)

    def removed(data: Any) -> None:
        for id_ in data["ids"]:
            del odds[id_]

    def heartbeat(_: Any) -> None:
        counts["heartbeat"] += 1
        if counts["connected"] == 1:
            served.step([price("handled", "fanduel", "Home", 2.5)], now + timedelta(seconds=counts["heartbeat"]))
            if counts["heartbeat"] == 3:
                assert served.app.loop is not None
                served.app.loop.call_soon_threadsafe(served.hub.subscribers.end_all)
        elif counts["connected"] == 2:
            served.step([price("handled", "betmgm", "Away", 2.0)], now + timedelta(seconds=20))
            counts["connected"] += 1
        elif len(odds) == 3:
            stream.disconnect()

    stream.on("connected", connected)
    stream.on("snapshot", snapshot)
    stream.on("odds:update", update)
    stream.on("odds:removed", removed)
    stream.on("heartbeat", heartbeat)
    stream.connect()
    assert counts["connected"] == 3
    rows = served.rows("/odds", "enterprise", {"event": "handled"})
    assert set(odds) == set(rows)
    for id_, row in odds.items():
        assert lasting(row).items() <= rows[id_].items()


def test_refusals_are_the_clients_own_errors(served: Served) -> None:
    origin = f"http://127.0.0.1:{served.port}"
    with SharpAPI("sk_live_wrong", base_url=origin) as wrong, pytest.raises(AuthenticationError):
        wrong.stream.odds().connect()
    with SharpAPI(served.key("bare"), base_url=origin) as bare, pytest.raises(StreamError) as refused:
        bare.stream.odds().connect()
    assert refused.value.status == 403


def test_an_asynchronous_client_listens(served: Served) -> None:
    served.step(full_board("client"), moment())

    async def listen() -> list[str]:
        names = []
        headers = {"X-API-Key": served.key("enterprise")}
        address = f"http://127.0.0.1:{served.port}/api/v1/stream/all"
        async with (
            httpx2.AsyncClient(timeout=30) as web,
            web.stream("GET", address, headers=headers, params={"event": "client"}) as answer,
        ):
            name = ""
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    json.loads(line.removeprefix("data: "))
                    names.append(name)
                    if name == "heartbeat":
                        return names
        raise AssertionError("it ended")

    names = asyncio.run(listen())
    assert names[0] == "connected"
    assert {"snapshot", *KINDS, "snapshot:complete"} <= set(names)
