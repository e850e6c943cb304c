"""The fetcher of Kalshi against a local exchange: lists, tokens, the signed stream, gaps, and disconnects."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.kalshi import (
    EVENT,
    KEY_ID,
    KUPP,
    START,
    Exchange,
    Json,
    event,
    exchange,
    lifecycle,
    market,
    milestone,
    order_book,
    over,
    private_key,
    verify,
    winners,
)
from support.local_servers import game, new_hub, prices, running, until
from websockets.asyncio.server import ServerConnection

import oddsengine as oe
from oddsengine.feeds import tracking
from oddsengine.sources import kalshi_stream
from oddsengine.sources.failure import FetchError
from oddsengine.sources.kalshi_client import KalshiSource
from oddsengine.sources.polling import TokenBucket
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import KalshiSettings, SettingsError
from oddsengine.tables.schema import OddsWarning
from oddsengine.testing.local_servers import Answering, Request, served
from oddsengine_service.feeds.hub import Hub

QUICK: dict[str, Any] = dict(timeout=20.0, backoff=0.01, backoff_cap=0.05, rate=100_000.0)
NO_KEY = {"key_env": "", "private_key_env": ""}
SEA, DAL = f"{EVENT}-SEA", f"{EVENT}-DAL"
BOOKS = {
    SEA: order_book([("0.5700", "100.00")], [("0.4200", "200.00")]),
    DAL: order_book([("0.4100", "100.00")], [("0.5850", "50.00")]),
}
LISTED, STREAMED = {"Seattle": 0.6, "Dallas": 0.41}, {"Seattle": 0.58, "Dallas": 0.415}


def source(where: dict[str, str], env: dict[str, str] | None = None, **more: Any) -> KalshiSource:
    given: dict[str, Any] = {"name": "k", "kind": "kalshi", "sports": ("nfl",), "interval": 0.05, "refresh": 60.0}
    return KalshiSource(KalshiSettings(**{**QUICK, **given, **where, **more}), env or NO_KEY, Secrets())


def fetched(exchange_: Exchange, **settings: Any) -> Any:
    with served(exchange_) as url:
        return oe.fetch(
            "kalshi", **{"sport": "nfl", "url": f"{url}/trade-api/v2"} | QUICK | {"timeout": 20.0} | settings
        )


def cost(hub: Hub) -> dict[str, float]:
    """What a dollar costs, by team."""
    return {pick: round(1 / odds, 6) for (_, pick), odds in prices(hub).items()}


def active(hub: Hub) -> set[bool]:
    return set(hub.engine.table()["is_active"].to_list())


# ---- lists ----


def test_fetch_reads_a_league_in_one_line() -> None:
    served_ = Exchange()
    served_.events = [milestone(events=(EVENT, event("KXNFLTOTAL"), event("KXNFLRECYDS")))]
    served_.markets |= {
        "KXNFLTOTAL": [over("KXNFLTOTAL", 44.5)],
        "KXNFLRECYDS": [
            market(f"{event('KXNFLRECYDS')}-KUPP60", of=event("KXNFLRECYDS"), name="Cooper Kupp: 60+ receiving yards",
                   title="60+", strike_type="greater_or_equal", floor_strike=60, custom_strike={"p": KUPP})
        ],
    }  # fmt: skip
    odds = fetched(served_)
    assert sorted(odds.select("market_type", "selection", "line", "player_name").rows(), key=str) == [
        ("moneyline", "Dallas", None, None), ("moneyline", "Seattle", None, None),
        ("player_receiving_yards", "Over", 59.5, "Cooper Kupp"),
        ("player_receiving_yards", "Under", 59.5, "Cooper Kupp"),
        ("total_points", "Over", 44.5, None), ("total_points", "Under", 44.5, None),
    ]  # fmt: skip
    assert odds["sportsbook"].unique().to_list() == ["kalshi"]
    assert odds["event_start_time"].unique().to_list() == [START]
    assert served_.paths() == [
        "/events", "/structured_targets", "/series/KXNFLGAME", "/markets", "/series/KXNFLRECYDS", "/markets",
        "/structured_targets", "/series/KXNFLTOTAL", "/markets",
    ]  # fmt: skip


def test_only_the_series_that_are_wanted_are_read() -> None:
    served_ = Exchange()
    served_.events = [milestone(events=(EVENT, event("KXNFLTOTAL"), event("KXNFLSPREAD")))]
    fetched(served_, series=["KXNFLSPREAD"])
    read = [request.query["series_ticker"][0] for _, request in served_.asked if request.path.endswith("/markets")]
    assert read == ["KXNFLGAME", "KXNFLSPREAD"]


def test_all_pages_are_read() -> None:
    served_ = Exchange()
    served_.page = 1
    second = "KXNFLGAME-26AUG16NYJBUF"
    served_.events.append(milestone("m2", (second,)))
    served_.markets["KXNFLGAME"] += winners(second)
    odds = fetched(served_)
    assert odds["event_id"].n_unique() == 2
    assert served_.paths().count("/events") == 2
    assert served_.paths().count("/markets") == 4


def test_too_many_requests_are_repeated_later() -> None:
    """Without a time to wait; what was read before is not read again."""
    served_ = Exchange()
    refused: list[Request] = []

    async def busy(request: Request, answering: Answering) -> bool:
        if len(refused) < 3:
            refused.append(request)
            await answering.answer({"error": "too many requests"}, 429)
            return True
        return False

    served_.answers["/markets"] = busy
    assert fetched(served_).height == 2
    assert served_.paths() == ["/events", "/structured_targets", "/series/KXNFLGAME", *["/markets"] * 4]


def test_requests_keep_to_the_tokens() -> None:
    served_ = Exchange()
    served_.page = 1
    served_.events = [milestone(f"m{n}", (f"KXNFLGAME-{n}",)) for n in range(24)]
    fetched(served_, rate=200.0)
    times = [at for at, _ in served_.asked]
    assert len(times) >= 26
    burst = 200.0 / 10.0 + 1.0  # what was not spent in a second, and the first of the next
    for first, last in pairwise(range(0, len(times), 25)):
        assert times[last] - times[first] >= (25 - burst) * 10.0 / 200.0 - 0.05


def test_the_bucket_pauses_everybody() -> None:
    async def check() -> None:
        bucket, loop = TokenBucket(1000.0), asyncio.get_running_loop()
        began = loop.time()
        bucket.pause(0.2)
        await bucket.take(1.0)
        assert loop.time() - began >= 0.2

    asyncio.run(check())


def test_a_truncated_answer_is_read_again() -> None:
    served_ = Exchange()
    cut: list[int] = []

    async def truncated(_: Request, answering: Answering) -> bool:
        if not cut:
            cut.append(1)
            await answering.answer({"markets": winners(), "cursor": ""}, cut=40)
            return True
        return False

    served_.answers["/markets"] = truncated
    assert fetched(served_).height == 2
    assert cut


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "not a payload of Kalshi"),
        (b"[1]", "not a payload of Kalshi"),
        ({"events": None}, "it has no list of events"),
        ({"error": {"code": "x"}}, "it has no list of events"),
        ({"events": [], "cursor": "again"}, "the pages of /events do not end"),
    ],
)
def test_a_malformed_answer_is_said(body: Any, reason: str) -> None:
    served_ = Exchange()

    async def malformed(_: Request, answering: Answering) -> bool:
        await answering.answer(body)
        return True

    served_.answers["/events"] = malformed

    async def check() -> None:
        hub = new_hub()
        async with exchange(served_) as where, running(hub, source(where)):
            await until(lambda: reason in hub.statuses()[0].reason, "the reason")

    asyncio.run(check())


def test_order_books_come_in_batches_and_cost_their_items() -> None:
    served_ = Exchange()
    totals = [over("KXNFLTOTAL", 20.5 + n) for n in range(130)]
    served_.events = [milestone(events=(EVENT, event("KXNFLTOTAL")))]
    served_.markets["KXNFLTOTAL"] = totals
    served_.books = {one["ticker"]: order_book([("0.3000", "7")], [("0.6000", "5")]) for one in totals}
    odds = fetched(served_, order_books=True)
    batches = [r for _, r in served_.asked if r.path.endswith("/orderbooks")]
    assert [len(one.query["tickers"]) for one in batches] == [100, 32]
    over_ = odds.filter(odds["selection"] == "Over")
    assert over_["odds_decimal"].unique().to_list() == [2.5]
    assert over_["max_bet"].unique().to_list() == [2.0]


def test_order_books_that_need_a_key_are_done_without() -> None:
    served_ = Exchange()

    async def refused(_: Request, answering: Answering) -> bool:
        await answering.answer({"error": {"code": "unauthorized"}}, 401)
        return True

    served_.answers["/markets/orderbooks"] = refused
    with pytest.warns(oe.OddsWarning, match="order books need a key"):
        odds = fetched(served_, order_books=True)
    assert odds.height == 2


def test_polled_prices_follow_the_exchange() -> None:
    served_ = Exchange()

    async def check() -> None:
        hub = new_hub()
        async with exchange(served_) as where, running(hub, source(where)):
            await until(lambda: cost(hub) == LISTED, "prices")
            served_.markets["KXNFLGAME"] = [winners()[0] | {"yes_bid_dollars": "0.5400", "yes_ask_dollars": "0.5500"}]
            await until(lambda: cost(hub).get("Seattle") == 0.55, "the new price")
            served_.markets["KXNFLGAME"] = []
            await until(lambda: active(hub) == {False}, "suspended prices")
            served_.events = []
            await until(lambda: not prices(hub), "the end of the game")
            assert hub.statuses()[0].status == "ok"

    asyncio.run(check())


def test_a_table_of_kalshi_and_a_sportsbook_has_an_arbitrage() -> None:
    """Fetched together, the games are matched, and its fee counts."""

    async def both(request: Request, answering: Answering) -> None:
        if request.path.startswith("/trade-api"):
            await Exchange()(request, answering)
        elif request.path.endswith("/events"):
            await answering.answer([{"id": "g1", "commence_time": START.isoformat()}])
        else:
            books = game("g1", "Seattle Seahawks", "Dallas Cowboys", (1.5, 2.75))
            await answering.answer([books | {"sport_key": "americanfootball_nfl", "commence_time": START.isoformat()}])

    with served(both) as url:
        odds = oe.fetch(
            {
                "kalshi": {"sport": "nfl", "url": f"{url}/trade-api/v2"} | QUICK,
                "american": {"kind": "the_odds_api", "sport": "nfl", "key": "0123456789", "url": url, "timeout": 5.0},
            }
        )
    assert odds["event_id"].n_unique() == 1
    found = oe.find_all(odds).arbitrage
    assert {tuple(sorted(leg["sportsbook"] for leg in row["legs"])) for row in found.to_dicts()} >= {
        ("draftkings", "kalshi")
    }  # fmt: skip
    assert found["implied_total"].min() == pytest.approx(100 * (0.6 + 0.07 * 0.24 + 1 / 2.75), abs=0.01)


# ---- the stream ----


@contextmanager
def key(folder: Path) -> Iterator[tuple[Any, dict[str, str]]]:
    secret, path = private_key(folder)
    yield secret, {"key_env": KEY_ID, "private_key_env": str(path)}


def with_books() -> Exchange:
    served_ = Exchange()
    served_.books = dict(BOOKS)
    return served_


@asynccontextmanager
async def streaming(served_: Exchange, folder: Path, **more: Any) -> AsyncIterator[Hub]:
    """A node that has the prices of the stream."""
    hub = new_hub()
    with key(folder) as (_, env):
        async with exchange(served_) as where, running(hub, source(where, env, **more)):
            await until(lambda: cost(hub).items() >= STREAMED.items(), "prices of the stream")
            yield hub


def test_with_a_key_books_come_from_the_stream(tmp_path: Path) -> None:
    served_ = with_books()

    async def check() -> None:
        hub = new_hub()
        with key(tmp_path) as (secret, env):
            async with exchange(served_) as where, running(hub, source(where, env)):
                await until(lambda: len(served_.commands) == 2, "subscriptions")
                verify(secret, served_.handshakes[0])
                assert served_.handshakes[0].headers["KALSHI-ACCESS-KEY"] == KEY_ID
                books = served_.commands[1]["params"]
                assert books["market_tickers"] == [SEA, DAL]
                assert books["use_yes_price"] is True
                await until(lambda: cost(hub) == STREAMED, "prices of the stream")
                await served_.change(SEA, "0.4250", "3.00")
                await until(lambda: cost(hub).get("Seattle") == 0.575, "a change")
                await served_.change(SEA, "0.4250", "-3.00")
                await until(lambda: cost(hub) == STREAMED, "its end")
                assert [status.status for status in hub.statuses()] == ["ok"]

    asyncio.run(check())


def test_a_quiet_stream_renews_nothing_until_it_sends_a_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pings are answered, so only books show that changes would come."""
    monkeypatch.setattr(tracking, "ALL_S", 0.0)
    monkeypatch.setattr(kalshi_stream, "_TURN_S", 0.02)
    served_, held = with_books(), asyncio.Event()

    async def hold(_: Exchange, __: ServerConnection, command: Json) -> bool:
        if command["params"].get("action") == "get_snapshot":
            await held.wait()
        return False

    served_.acting = hold

    def seen(hub: Hub) -> Any:
        return hub.engine.table()["last_seen_at"].min()

    async def check() -> None:
        async with streaming(served_, tmp_path, quiet=0.2, timeout=5.0) as hub:
            await until(lambda: served_.commands[-1]["params"].get("action") == "get_snapshot", "a request")
            assert served_.commands[-1]["params"]["market_tickers"] == [SEA, DAL]
            before = seen(hub)
            await asyncio.sleep(0.2)
            assert seen(hub) == before
            served_.books[SEA] = order_book([("0.5700", "100.00")], [("0.4250", "1.00")])
            held.set()
            await until(lambda: seen(hub) > before and cost(hub)["Seattle"] == 0.575, "books")
            assert served_.connections == 1

    asyncio.run(check())


def test_a_gap_suspends_and_asks_for_the_books(tmp_path: Path) -> None:
    served_ = with_books()
    held = asyncio.Event()

    async def hold(exchange_: Exchange, _: ServerConnection, command: Json) -> bool:
        if command["params"].get("action") == "get_snapshot":
            await held.wait()
        return False

    served_.acting = hold

    async def check() -> None:
        async with streaming(served_, tmp_path, timeout=5.0) as hub:
            await served_.change(SEA, "0.4500", "3.00", skip=1)
            await until(lambda: active(hub) == {False}, "suspended prices")
            served_.books[SEA] = order_book([("0.5500", "1")], [("0.4400", "1")])
            held.set()
            await until(lambda: active(hub) == {True}, "prices")
            assert cost(hub)["Seattle"] == 0.56
            asked = [one["params"] for one in served_.commands if one["params"].get("action") == "get_snapshot"]
            assert [(one["sids"], set(one["market_tickers"])) for one in asked] == [([2], {SEA, DAL})]
            assert served_.connections == 1

    asyncio.run(check())


def test_a_snapshot_that_does_not_come_ends_the_connection(tmp_path: Path) -> None:
    served_ = with_books()

    async def ignore(_: Exchange, __: ServerConnection, command: Json) -> bool:
        return bool(command["params"].get("action") == "get_snapshot")

    served_.acting = ignore

    async def check() -> None:
        async with streaming(served_, tmp_path, timeout=0.3) as hub:
            await served_.change(SEA, "0.4500", "3.00", skip=1)
            await until(lambda: served_.connections == 2, "another connection")
            await until(lambda: active(hub) == {True}, "prices")

    asyncio.run(check())


def test_a_lost_stream_is_suspended_then_listed_then_streamed_again(tmp_path: Path) -> None:
    served_ = with_books()

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await served_.change(SEA, "0.4250", "3.00")
            await until(lambda: cost(hub).get("Seattle") == 0.575, "a change")
            lists = served_.paths().count("/markets")
            served_.refuse = 503
            await served_.sockets[0].close()
            await until(lambda: served_.paths().count("/markets") > lists, "lists at once")
            await until(lambda: cost(hub) == LISTED and active(hub) == {True}, "prices of lists")
            served_.books[SEA] = order_book([("0.5500", "1")], [("0.4400", "1")])
            served_.refuse = 0
            await until(lambda: cost(hub).get("Seattle") == 0.56, "the stream")
            assert served_.connections == 2

    asyncio.run(check())


def test_an_unexpected_error_suspends_the_prices_of_the_stream(tmp_path: Path) -> None:
    served_ = with_books()

    async def unavailable(_: Request, answering: Answering) -> bool:
        await answering.answer({"error": "unavailable"}, 503)
        return True

    async def ignore(*_: Any) -> bool:
        return True

    async def check() -> None:
        hub = new_hub()
        with key(tmp_path) as (_, env):
            async with exchange(served_) as where:
                kalshi = source(where, env)
                read, broken = kalshi.reader.read, asyncio.Event()

                def fail_once(*given: Any) -> Any:
                    if broken.is_set():
                        return read(*given)
                    broken.set()
                    served_.acting, served_.answers["/events"] = ignore, unavailable
                    raise ZeroDivisionError

                async with running(hub, kalshi):
                    await until(lambda: cost(hub) == STREAMED, "prices of the stream")
                    kalshi.reader.read = fail_once  # type: ignore[method-assign, assignment]
                    await served_.change(SEA, "0.4200", "3.00")
                    await until(lambda: active(hub) == {False}, "suspended prices")
                    served_.acting = None
                    del served_.answers["/events"]
                    await served_.sockets[-1].close()
                    await until(lambda: cost(hub) == STREAMED and active(hub) == {True}, "prices of the stream again")

    asyncio.run(check())


def test_new_markets_are_followed_and_old_ones_are_not(tmp_path: Path) -> None:
    served_ = with_books()
    total = over("KXNFLTOTAL", 44.5)
    served_.events = [milestone(events=(EVENT, event("KXNFLTOTAL")))]
    served_.markets["KXNFLTOTAL"] = []

    async def check() -> None:
        async with streaming(served_, tmp_path, refresh=0.1) as hub:
            served_.books[total["ticker"]] = order_book([("0.3000", "7")], [("0.6000", "5")])
            served_.markets["KXNFLTOTAL"] = [total]
            await until(lambda: cost(hub).get("Over") == 0.4, "the book of a new market")
            served_.markets["KXNFLTOTAL"] = []

            def deleted() -> bool:
                return any(one["params"].get("action") == "delete_markets" for one in served_.commands)

            await until(deleted, "the end of it")

    asyncio.run(check())


def test_statuses_of_the_stream_suspend_and_a_gap_of_theirs_reconnects(tmp_path: Path) -> None:
    served_ = with_books()

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await served_.send(served_.sockets[0], lifecycle(SEA, 1, "deactivated"))
            await served_.send(served_.sockets[0], lifecycle(DAL, 2, "deactivated"))
            await until(lambda: active(hub) == {False}, "suspended prices")
            await served_.send(served_.sockets[0], lifecycle(SEA, 5, "activated"))
            await until(lambda: served_.connections == 2, "another connection")

    asyncio.run(check())


@pytest.mark.parametrize("text", ["{", '{"type": 5}', '{"type":"orderbook_delta","msg":{"market_ticker":7}}'])
def test_a_message_that_does_not_read_ends_the_connection(text: str, tmp_path: Path) -> None:
    served_ = with_books()

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await served_.sockets[0].send(text)
            await until(lambda: served_.connections == 2, "another connection")
            await until(lambda: cost(hub) == STREAMED and active(hub) == {True}, "prices")

    asyncio.run(check())


def test_errors_of_the_stream_are_said(tmp_path: Path) -> None:
    served_ = with_books()

    async def error(exchange_: Exchange, socket: ServerConnection, command: Json) -> bool:
        await exchange_.send(socket, {"id": command["id"], "type": "error", "msg": {"code": 25, "msg": "overflow"}})
        return True

    served_.acting = error

    async def check() -> None:
        hub = new_hub()
        with key(tmp_path) as (_, env):
            async with exchange(served_) as where, running(hub, source(where, env)):
                await until(lambda: "25, overflow" in hub.statuses()[0].reason, "the reason")
                assert cost(hub) == LISTED

    asyncio.run(check())


def test_a_silent_stream_is_given_up(tmp_path: Path) -> None:
    """A server that answers no pings."""
    served_ = with_books()

    async def check() -> None:
        async with streaming(served_, tmp_path, silence=0.2):
            served_.sockets[0].transport.pause_reading()
            await until(lambda: served_.connections == 2, "another connection")

    asyncio.run(check())


def test_fetch_with_a_key_waits_for_the_books(tmp_path: Path) -> None:
    served_ = with_books()
    served_.books[SEA] = order_book([("0.5500", "1")], [("0.4400", "1")])
    _, path = private_key(tmp_path)

    async def check() -> None:
        async with exchange(served_) as where:
            settings = {"sport": "nfl", "key": KEY_ID, "private_key": str(path)} | QUICK | {"timeout": 20.0} | where
            odds = await asyncio.to_thread(lambda: oe.fetch("kalshi", **settings))
            by_team = dict(odds.select("selection", "odds_decimal").rows())
            assert {name: round(1 / price, 6) for name, price in by_team.items()} == {"Seattle": 0.56, "Dallas": 0.415}
            assert odds["is_active"].all()

    asyncio.run(check())


def test_a_key_that_is_refused_is_said(tmp_path: Path) -> None:
    served_ = with_books()
    served_.refuse = 401
    _, path = private_key(tmp_path)

    async def check() -> None:
        async with exchange(served_) as where:
            settings = {"sport": "nfl", "key": KEY_ID, "private_key": str(path)} | QUICK | {"timeout": 20.0} | where
            began = asyncio.get_running_loop().time()
            with pytest.raises(FetchError, match="status 401; check the key"):
                await asyncio.to_thread(lambda: oe.fetch("kalshi", **settings))
            assert asyncio.get_running_loop().time() - began < 15.0, "at once, not after its timeout"

    asyncio.run(check())


def test_keys_are_whole(tmp_path: Path) -> None:
    _, path = private_key(tmp_path)
    with pytest.raises(SettingsError, match=re.escape("private_key_env must be given, since a key is its id and")):
        oe.fetch("kalshi", sport="nfl", key=KEY_ID)
    with pytest.raises(SettingsError, match="the private key cannot be read: FileNotFoundError"):
        oe.fetch("kalshi", sport="nfl", key=KEY_ID, private_key=str(tmp_path / "none.pem"))
    path.write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    with pytest.raises(SettingsError, match="the private key cannot be read: ValueError"):
        oe.fetch("kalshi", sport="nfl", key=KEY_ID, private_key=str(path))
    with pytest.raises(SettingsError, match="a list of at least one series of winners"):
        oe.fetch("kalshi", sports=[])


def test_the_fee_of_a_series_is_read_once_before_its_markets() -> None:
    served_ = Exchange()
    served_.series["KXNFLGAME"] = {"fee_multiplier": 0.5}
    table = fetched(served_)
    assert table["contract_fee"].to_list() == [0.035, 0.035]
    paths = served_.paths()
    assert paths.count("/series/KXNFLGAME") == 1
    assert paths.index("/series/KXNFLGAME") < paths.index("/markets")


def test_a_series_whose_fee_cannot_be_read_is_left_out() -> None:
    served_ = Exchange()
    served_.events = [milestone(events=(EVENT, event("KXNFLTOTAL")))]
    served_.markets["KXNFLTOTAL"] = [over("KXNFLTOTAL", 44.5)]

    async def none(_: Request, answering: Answering) -> bool:
        await answering.answer({"error": {"code": "not_found"}}, 404)
        return True

    served_.answers["/series/KXNFLTOTAL"] = none
    with pytest.warns(OddsWarning, match="the fee of KXNFLTOTAL cannot be read: status 404"):
        odds = fetched(served_)
    assert odds["market_type"].unique().to_list() == ["moneyline"]
