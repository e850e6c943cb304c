"""The fetcher of Betfair against a local one: which markets it holds, what it resumes, how it takes refusals."""

import asyncio
import bz2
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.betfair import START, Betfair, Market, Stream, back, betfair, definition
from support.local_servers import new_hub, prices, running, until

from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources.betfair_client import BetfairFiles, BetfairSource
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import BetfairHistorySettings, BetfairSettings
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.feeds.quarantine import PayloadQuarantine

QUICK: dict[str, Any] = dict(timeout=20.0, backoff=0.01, backoff_cap=0.05, down_after=0.3, silence=20.0)
LIMIT = "SUBSCRIPTION_LIMIT_EXCEEDED"


def status(hub: Hub) -> tuple[str, str]:
    (found,) = hub.statuses()
    return found.status, found.reason


def settings(urls: dict[str, Any], **more: Any) -> BetfairSettings:
    given: dict[str, Any] = dict(
        name="bf", kind="betfair", key_env="K", session_env="S", sports=("basketball",), refresh=0.05, pause=0.0
    )
    return BetfairSettings(**{**QUICK, **given, **urls, **more})


def credentials(session: str = "session", user: str = "", password: str = "") -> dict[str, str]:
    return {"key_env": "key", "session_env": session, "user_env": user, "password_env": password}


def games(count: int, first: int = 1) -> list[Market]:
    """Markets an hour apart, of teams of their own."""
    out = []
    for number in range(first, first + count):
        market = Market(f"1.{number}", START + timedelta(hours=number))
        market.names = {1: f"Home {number}", 2: f"Away {number}"}
        out.append(market)
    return out


def held(at: Betfair) -> list[list[str]]:
    """The markets of each subscription."""
    return [asked["marketFilter"]["marketIds"] for asked in at.stream.asked]


async def beating(stream: Stream) -> None:
    while True:
        await asyncio.sleep(0.02)
        await stream.beat()


def run(
    do: Callable[[Betfair, Hub], Awaitable[None]], *markets: Market, stream: Stream | None = None,
    env: dict[str, str] | None = None, secrets: Secrets | None = None, **more: Any,
) -> None:  # fmt: skip
    """Run the fetcher against a local Betfair, which has heartbeats, while a test does something."""

    async def check() -> None:
        hub = new_hub()
        async with betfair(*markets, stream=stream) as at:
            source = BetfairSource(settings(at.urls, **more), env or credentials(), secrets or Secrets())
            async with asyncio.TaskGroup() as group, running(hub, source):
                beats = group.create_task(beating(at.stream))
                await do(at, hub)
                beats.cancel()

    asyncio.run(check())


def test_the_next_starts_are_subscribed_to() -> None:
    """By the ids of markets, at most as many as the account may; the catalogue is asked for types of the sports."""

    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(prices(hub)) == 6, "prices of three games")
        assert set(hub.engine.table()["min_bet"]) == {2.0}
        await until(lambda: len(at.catalogue.bodies()) > 2, "lists")
        assert held(at) == [["1.2", "1.3", "1.4"]]
        (asked,) = at.stream.asked
        assert asked["marketFilter"] == {"marketIds": ["1.2", "1.3", "1.4"]}
        assert asked["marketDataFilter"]["ladderLevels"] == 10
        wanted = at.catalogue.bodies()[0]["filter"]
        assert wanted["eventTypeIds"] == ["7522"]
        assert {"MATCH_ODDS", "HANDICAP", "COMBINED_TOTAL"} <= set(wanted["marketTypeCodes"])
        assert "ASIAN_HANDICAP" not in wanted["marketTypeCodes"]

    run(do, *reversed(games(5, first=2)), markets=3, min_bet=2.0)


def test_markets_of_one_start_are_taken_by_what_is_matched() -> None:
    markets = games(4)
    for market, matched in zip(markets, (5.0, 900.0, 20.0, 0.0), strict=True):
        market.start, market.matched = START, matched

    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(prices(hub)) == 4, "prices of two games")
        assert held(at) == [["1.2", "1.3"]]
        markets[0].matched = 1e6  # of the same start, the ones that are held stay
        lists = len(at.catalogue.bodies())
        await until(lambda: len(at.catalogue.bodies()) > lists + 2, "lists")
        assert len(held(at)) == 1

    run(do, *markets, markets=2)


def test_the_next_market_takes_the_place_of_one_that_closes() -> None:
    """In a message on the same connection, without a clock; prices of the others are on the board all the time."""
    seen: list[set[str]] = []

    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(prices(hub)) == 4, "prices of two games")
        deliver = at.stream.image

        async def slowly(writer: asyncio.StreamWriter, asked: dict[str, Any]) -> None:
            """Changes for the old subscription still come; of the new one nothing yet."""
            await at.stream.mcm(writer, {"id": "1.2", "rc": [back(1, 1.95)]}, number=2)
            await until(lambda: prices(hub).get(("betfair_exchange", "Home 2")) == 1.95, "a change of the old one")
            seen.append({pick for _, pick in prices(hub)})
            at.stream.markets["1.2"].odds = 1.95
            await deliver(writer, asked)

        at.stream.image = slowly  # type: ignore[method-assign]
        await at.stream.close_market("1.1")
        await until(lambda: ("betfair_exchange", "Home 3") in prices(hub), "the next game")
        assert seen == [{"Home 2", "Away 2"}]
        assert held(at) == [["1.1", "1.2"], ["1.2", "1.3"]]
        assert [asked["id"] for asked in at.stream.asked] == [2, 3]
        assert "clk" not in at.stream.asked[1]
        assert len(at.stream.logins) == 1
        assert prices(hub)["betfair_exchange", "Home 2"] == 1.95

    run(do, *games(3), markets=2, refresh=60.0)


def test_no_price_that_stays_is_removed_in_between() -> None:
    removed: list[str] = []

    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(prices(hub)) == 4, "prices of two games")
        take = hub.deliver

        async def deliver(source: str, payload: Any, part: str = "") -> None:
            removed.extend(payload.removed)
            await take(source, payload, part)

        hub.deliver = deliver  # type: ignore[method-assign]
        sooner = Market("1.9", START)
        sooner.names = {1: "Home 9", 2: "Away 9"}
        at.stream.markets["1.9"] = sooner
        await until(lambda: ("betfair_exchange", "Home 9") in prices(hub), "a game that starts before the others")
        assert removed == ["1.2/1/0", "1.2/2/0"]
        assert sorted(prices(hub)) == [
            ("betfair_exchange", f"{side} {at}") for side in ("Away", "Home") for at in (1, 9)
        ]

    run(do, *games(2), markets=2)


@pytest.mark.parametrize("closes", [False, True])
def test_an_account_that_may_have_less_gets_half(closes: bool) -> None:
    stream = Stream(*games(9))
    stream.most, stream.closes = 3, closes

    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(prices(hub)) == 4, "prices of two games")
        assert [len(markets) for markets in held(at)] == [9, 4, 2]
        assert len(at.stream.logins) == (3 if closes else 1)
        await until(lambda: "fewer than 200 markets: 2 are read" in status(hub)[1], "a warning")

    run(do, stream=stream)


def test_an_account_that_may_have_nothing_is_down() -> None:
    stream = Stream(*games(2))
    stream.most = 0

    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: status(hub)[0] == "down" and LIMIT in status(hub)[1], "down")
        assert [len(markets) for markets in held(at)][:2] == [2, 1]

    run(do, stream=stream, down_after=60.0)


def test_a_connection_is_resumed_at_its_clock_if_the_markets_are_the_same() -> None:
    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(prices(hub)) == 4, "prices of two games")
        await at.stream.change({"id": "1.1", "rc": [back(1, 1.82)]})
        await until(lambda: prices(hub)["betfair_exchange", "Home 1"] == 1.82, "a change")
        before = at.stream.clock
        at.stream.cut()
        await until(lambda: len(at.stream.asked) == 2, "another connection")
        again = at.stream.asked[1]
        assert again["initialClk"] == "i1"
        assert int(again["clk"][1:]) >= before
        await until(lambda: status(hub)[0] == "ok", "a good status")
        assert len(prices(hub)) == 4
        del at.stream.markets["1.1"]  # the catalogue has it no more, and the next market comes at the next list
        at.stream.cut()
        await until(lambda: ("betfair_exchange", "Home 3") in prices(hub), "the next game")
        assert held(at)[-1] == ["1.2", "1.3"]
        assert "clk" not in at.stream.asked[-1]

    run(do, *games(3), markets=2)


def test_a_line_that_is_cut_is_read_again_on_the_next_connection() -> None:
    class Cut(Stream):
        async def image(self, writer: asyncio.StreamWriter, asked: dict[str, Any]) -> None:
            await super().image(writer, asked)
            if len(self.asked) == 1:
                writer.write(b'{"op":"mcm","id":2,"clk":"C","pt":')
                await writer.drain()
                writer.close()

    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(at.stream.asked) == 2, "another connection")
        assert at.stream.asked[1]["clk"] != "C"
        await until(lambda: len(prices(hub)) == 2, "prices")

    run(do, stream=Cut(*games(1)))


def test_without_markets_it_waits_for_some() -> None:
    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(at.catalogue.bodies()) > 2, "lists")
        assert status(hub)[0] == "ok"
        assert not at.stream.asked
        at.stream.markets["1.1"] = games(1)[0]
        await until(lambda: len(prices(hub)) == 2, "prices")

    run(do)


def test_a_catalogue_that_fails_leaves_the_prices() -> None:
    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(prices(hub)) == 2, "prices")

        async def broken(request: Any, answering: Any) -> bool:
            await answering.answer({"faultstring": "DSC-0018"}, 500)
            return True

        at.catalogue.special = broken
        await until(lambda: "status 500" in status(hub)[1], "the failure")
        await at.stream.change({"id": "1.1", "rc": [back(1, 1.7)]})
        await until(lambda: prices(hub)["betfair_exchange", "Home 1"] == 1.7, "a change")
        at.catalogue.special = None
        await until(lambda: status(hub)[0] == "ok", "a good status")
        assert len(at.stream.logins) == 1

    run(do, *games(1))


def test_an_exchange_that_goes_silent_is_noticed() -> None:
    async def check() -> None:
        hub = new_hub()
        async with betfair(*games(1)) as at:
            source = BetfairSource(settings(at.urls, silence=0.1), credentials(), Secrets())
            async with running(hub, source):
                await until(lambda: len(prices(hub)) == 2, "prices")
                at.stream.expired.add("session")  # no connection comes after it
                await until(lambda: status(hub)[0] == "down", "down")
                assert len(prices(hub)) == 2

    asyncio.run(check())


def test_a_session_is_opened_and_is_a_secret() -> None:
    secrets = Secrets()

    async def do(at: Betfair, hub: Hub) -> None:
        await until(lambda: len(prices(hub)) == 2, "prices")
        first, second = (request for _, request in at.catalogue.asked[:2])
        assert b"username=user" in first.body
        assert second.headers["x-authentication"] == at.stream.logins[0]["session"] == "fresh-token-1"
        assert secrets.clean("session fresh-token-1") == "session ***"
        at.stream.expired.add("fresh-token-1")  # the catalogue refuses it first: there is a new one for the rest
        await until(lambda: any(not path.endswith("/") for path in at.catalogue.paths()[2:]), "another login")
        at.stream.cut()
        await until(lambda: len(at.stream.logins) == 2, "another connection")
        await until(lambda: status(hub)[0] == "ok", "a good status")

    run(do, *games(1), env=credentials("", "user", "pass"), secrets=secrets, session_env="", user_env="U")


def test_a_session_that_is_refused_is_down_at_once() -> None:
    async def do(_: Betfair, hub: Hub) -> None:
        await until(lambda: status(hub)[0] == "down", "down")
        assert "ANGX-0003" in status(hub)[1]

    run(do, *games(1), env=credentials("expired"), down_after=60.0)


def test_a_sport_that_is_none_is_named() -> None:
    async def do(_: Betfair, hub: Hub) -> None:
        await until(lambda: status(hub)[0] == "down", "down")
        assert "got 'soker'" in status(hub)[1]

    run(do, *games(1), sports=("soker",), down_after=60.0)


# ---- recordings ----


BASE = 1_700_000_000_000


def lines(*messages: tuple[int, Any]) -> bytes:
    said = [{"op": "mcm", "clk": "c", "pt": BASE + at, "mc": [change]} for at, change in messages]
    return b"".join(json.dumps(message).encode() + b"\n" for message in said)


def recorded(path: Path, payloads: PayloadQuarantine | None = None) -> Hub:
    """What is on the board after a folder was read."""

    async def check() -> Hub:
        hub = Hub(Writer(Engine()), Matcher(), clock=None, payloads=payloads)
        await hub.run([BetfairFiles(BetfairHistorySettings(name="h", kind="betfair_history", path=str(path)))])
        await hub.close()
        return hub

    return asyncio.run(check())


def whole(ident: str, number: int, name: str) -> dict[str, Any]:
    names = name.split(" v ")
    runners = [{"id": at, "name": one, "status": "ACTIVE"} for at, one in enumerate(names, 1)]
    said = definition(number, eventName=name, runners=runners, marketTime="2023-11-15T00:00:00Z")
    return {"id": ident, "marketDefinition": said, "rc": [back(1, 1.8), back(2, 2.2)]}


def test_recorded_lines_are_read_in_order_of_time(tmp_path: Path) -> None:
    """Two files, one of them with a line that does not read; the time on the board is theirs."""
    early, late = whole("1.1", 1, "Boston Celtics v Los Angeles Lakers"), whole("1.2", 2, "Miami Heat v Chicago Bulls")
    (tmp_path / "a.bz2").write_bytes(bz2.compress(lines((0, early), (60_000, {"id": "1.1", "rc": [back(1, 1.5)]}))))
    (tmp_path / "b").write_bytes(lines((30_000, late)) + b"{no line\n")
    kept = tmp_path.parent / f"{tmp_path.name}-kept"
    hub = recorded(tmp_path, PayloadQuarantine(kept, 5, 10_000, Secrets()))
    assert hub.engine.number == 3
    assert hub.engine.now is not None
    assert round(hub.engine.now.timestamp() * 1000) == BASE + 60_000
    assert sorted(hub.engine.table()["odds_decimal"]) == [1.5, 1.8, 2.2, 2.2]
    assert status(hub)[1].startswith("1 lines cannot be read")
    assert len(list(kept.glob("*.payload"))) == 1


def test_history_without_offers_says_so(tmp_path: Path) -> None:
    """The price of the last trade is not an offer."""
    basic = whole("1.1", 1, "Boston Celtics v Los Angeles Lakers") | {"rc": [{"id": 1, "ltp": 1.8}]}
    (tmp_path / "a").write_bytes(lines((0, basic), (60_000, {"id": "1.1", "rc": [{"id": 1, "ltp": 1.5}]})))
    hub = recorded(tmp_path)
    assert hub.engine.table().is_empty()
    assert "that is BASIC history; it takes ADVANCED or PRO" in status(hub)[1]
    (tmp_path / "b").write_bytes(lines((0, whole("1.2", 2, "Miami Heat v Chicago Bulls"))))
    hub = recorded(tmp_path)
    assert hub.engine.table().height == 2
    assert "BASIC" not in status(hub)[1]
