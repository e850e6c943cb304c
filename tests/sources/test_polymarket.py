"""The fetcher of Polymarket against a local exchange: its lists over HTTP, and its books over a WebSocket."""

import asyncio
import json
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.local_servers import new_hub, prices, running, until
from support.polymarket import Exchange, change, event, match, offer, served, stamp, starts, three_way
from websockets.asyncio.server import ServerConnection

import oddsengine as oe
from oddsengine.feeds import tracking
from oddsengine.feeds.polymarket_events import LEAGUES
from oddsengine.sources import polymarket_client, read_feed
from oddsengine.sources.fetching import FetchedOdds
from oddsengine.sources.polymarket_client import LEAGUE_CODES, PolymarketSource
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import PolymarketSettings, SettingsError, SettingsTable
from oddsengine.tables.schema import OddsWarning
from oddsengine.testing.local_servers import Answering, Request, now
from oddsengine_service.feeds.hub import Hub

QUICK: dict[str, Any] = dict(timeout=20.0, backoff=0.01, backoff_cap=0.05, down_after=0.5)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of a tenth of those in use."""
    for name, seconds in (("_PING_S", 0.1), ("_FIRST_BOOK_S", 0.2), ("_SETTLE_S", 0.1), ("_LOOK_S", 0.02)):
        monkeypatch.setattr(polymarket_client, name, seconds)
    for name in ("_PAUSE_S", "_RELIST_S"):
        monkeypatch.setattr(polymarket_client, name, 0.01)


def source(where: dict[str, str], **more: Any) -> PolymarketSource:
    given: dict[str, Any] = dict(name="pm", kind="polymarket", sports=("nfl",), silence=20.0, **QUICK)
    return PolymarketSource(PolymarketSettings(**{**given, **where, **more}), {}, Secrets())


def status(hub: Hub) -> tuple[str, str]:
    (found,) = hub.statuses()
    return found.status, found.reason


def active(hub: Hub) -> list[float]:
    """Probabilities of the prices that are not suspended."""
    table = hub.engine.table()
    return sorted(round(1 / odds, 4) for odds in table.filter(table["is_active"])["odds_decimal"])


def last_seen(hub: Hub) -> datetime:
    value = hub.engine.table()["last_seen_at"].min()
    assert isinstance(value, datetime)
    return value


async def fetched(exchange: Exchange, **words: Any) -> FetchedOdds:
    async with served(exchange) as where:
        given = {"sport": "nfl", "progress": False, **QUICK, **where, **words}
        return await asyncio.to_thread(lambda: oe.fetch("polymarket", **given))


# ---- fetch ----


def test_one_line_reads_a_league() -> None:
    exchange = Exchange()
    odds = asyncio.run(fetched(exchange))
    assert sorted(odds.select("sportsbook", "selection", "max_bet").rows()) == [
        ("polymarket", "Arizona Cardinals", pytest.approx(18.8)),
        ("polymarket", "Carolina Panthers", pytest.approx(55.0)),
    ]
    assert odds["event_id"].unique().to_list() == ["77"]
    (listing,) = (request for request in exchange.requests if request.path == "/events/keyset")
    assert {name: values[0] for name, values in listing.query.items()} == {
        "series_id": "10187", "closed": "false", "limit": "100",
    }  # fmt: skip
    assert exchange.told[0] == [{"assets_ids": ["t1", "t2"], "type": "market", "custom_feature_enabled": True}]
    assert exchange.asked == [], "the stream has sent both books"


def test_our_ids_of_leagues_are_its_codes() -> None:
    assert {LEAGUE_CODES[league]: league for league in LEAGUE_CODES}.items() <= {
        code: league for code, (_, league) in LEAGUES.items()
    }.items()
    assert (LEAGUE_CODES["ncaaf"], LEAGUE_CODES["ncaab"], LEAGUE_CODES["england_premier_league"]) == (
        "cfb", "cbb", "epl",
    )  # fmt: skip


def test_a_league_may_have_another_code_or_only_a_tag() -> None:
    exchange = Exchange()
    asyncio.run(fetched(exchange, sport=["ncaab", "ufc"]))
    asked = [request.query for request in exchange.requests if request.path == "/events/keyset"]
    assert {"39"} == {values for query in asked for values in query.get("series_id", [])}
    assert {"ufc"} == {values for query in asked for values in query.get("tag_slug", [])}
    exchange = Exchange()
    asyncio.run(fetched(exchange, sport="tennis"))
    assert {values for request in exchange.requests for values in request.query.get("tag_slug", [])} == {"atp", "wta"}


@pytest.mark.parametrize("keyset", [True, False])
def test_all_pages_are_read(keyset: bool) -> None:
    """By offset, an event that closes moves the others forward; the overlap keeps them from being left out."""
    soon = starts(2)
    many = [
        event(offer("moneyline", ident=f"0x{n}", tokens=(f"a{n}", f"b{n}"), gameStartTime=soon), ident=str(n), gameId=n)
        for n in range(1, 231)
    ]
    exchange = Exchange(*many)
    calls: list[int] = []

    def shrinking(request: Request) -> Any:
        calls.append(int(request.query["offset"][0]))
        page = exchange.page(request)
        if len(calls) == 1:
            del exchange.events[:3]
        return page

    exchange.lists, exchange.keyset = shrinking, keyset
    exchange.books = {f"{side}{n}": dict(asks=[(0.6, 5)]) for n in range(1, 231) for side in "ab"}
    with nullcontext() if keyset else pytest.warns(OddsWarning, match="listed by offset"):
        odds = asyncio.run(fetched(exchange, sport="nfl"))
    assert calls == ([] if keyset else [0, 95, 190, 222])
    assert odds["event_id"].n_unique() == 230
    assert all(
        ("active" in request.query) is (request.path == "/events")
        for request in exchange.requests
        if request.path in ("/events", "/events/keyset") and keyset
    )
    assert [len(told[0]["assets_ids"]) for told in exchange.told] == [200, 200, 60]


def test_without_games_there_is_nothing_to_wait_for() -> None:
    exchange = Exchange()
    exchange.events = []
    assert asyncio.run(fetched(exchange)).height == 0
    assert exchange.told == []


def test_first_books_that_do_not_come_are_requested() -> None:
    exchange = Exchange()
    exchange.sends = False
    del exchange.books["t2"]
    odds = asyncio.run(fetched(exchange))
    assert exchange.asked == [["t1", "t2"]]
    assert sorted(odds["max_bet"]) == [pytest.approx(0.47 * 40), pytest.approx(55.0)], "a token without a book has none"


def test_polling_is_there_where_a_stream_is_not() -> None:
    exchange = Exchange()
    odds = asyncio.run(fetched(exchange, stream=False))
    assert odds.height == 2
    assert exchange.told == []


@pytest.mark.parametrize(("what", "kind"), [("/sports", "failed"), ("/events/keyset", "refused")])
def test_lists_that_fail(what: str, kind: str) -> None:
    class Broken(Exchange):
        async def answer(self, request: Request, answering: Answering) -> None:
            if request.path in (what, "/events"):
                await answering.answer({"error": "x"}, status=403 if kind == "refused" else 200)
            else:
                await super().answer(request, answering)

    with pytest.raises(oe.FetchError) as raised:
        asyncio.run(fetched(Broken(), timeout=0.5))
    assert raised.value.kind == kind


def test_a_stream_that_refuses_is_not_tried_again() -> None:
    class Closed(Exchange):
        def greet(self, connection: ServerConnection, _: Any) -> Any:
            return connection.respond(401, "no")

    with pytest.raises(oe.FetchError, match="status 401") as raised:
        asyncio.run(fetched(Closed(), timeout=5.0))
    assert raised.value.kind == "refused"


def test_pages_that_do_not_end_are_said() -> None:
    class Endless(Exchange):
        async def answer(self, request: Request, answering: Answering) -> None:
            if request.path == "/events/keyset":
                self.requests.append(request)
                await answering.answer({"events": self.events, "next_cursor": "again"})
            else:
                await super().answer(request, answering)

    exchange = Endless()
    with pytest.raises(oe.FetchError, match="the pages of nfl do not end"):
        asyncio.run(fetched(exchange, timeout=0.5, backoff=1e6, backoff_cap=1e6))
    assert [request.path for request in exchange.requests].count("/events/keyset") == 2


# ---- a node ----


def test_changes_arrive_and_sizes_are_totals() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            await until(lambda: status(hub)[0] == "ok", "a good status")
            await exchange.say(change("t1", "SELL", "0.54", "10", ("0.53", "0.54"), stamp()))
            await until(lambda: active(hub) == [0.47, 0.54], "a change")
            await until(lambda: exchange.pings >= 2, "pings")

    asyncio.run(check())


def test_wrong_hashes_mean_nothing_and_wrong_best_prices_a_new_book() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            exchange.books["t1"]["asks"] = [(0.52, 7)]
            exchange.books["t1"]["bids"] = [(0.51, 7)]
            exchange.books["t2"] = dict(bids=[(0.48, 7)], asks=[(0.49, 7)])
            exchange.answers.clear()
            await exchange.say(
                change("t1", "BUY", "0.51", "7", ("0.51", "0.52"), stamp()),
                change("t2", "BUY", "0.48", "7", ("0.48", "0.49"), stamp()),
            )
            await until(lambda: active(hub) == [], "suspended prices")
            assert hub.engine.table().height == 2
            exchange.answers.set()
            await until(lambda: active(hub) == [0.49, 0.52], "new books")
            assert [sorted(tokens) for tokens in exchange.asked] == [["t1", "t2"]]
            assert len(exchange.told) == 1, "the connection was kept"

    asyncio.run(check())


def test_a_connection_that_breaks_is_taken_up_again() -> None:
    """Its prices are suspended, are not requested while nobody follows them, and begin anew."""

    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            exchange.books["t1"] = dict(bids=[(0.58, 1)], asks=[(0.6, 1)])
            exchange.books["t2"] = dict(bids=[(0.4, 1)], asks=[(0.42, 1)])
            exchange.refuses = True
            await exchange.open[0].close()
            await until(lambda: active(hub) == [] and status(hub)[1] == "books 1: status 503", "suspended prices")
            await asyncio.sleep(3 * polymarket_client._FIRST_BOOK_S)
            assert exchange.asked == []
            exchange.refuses = False
            await until(lambda: active(hub) == [0.42, 0.6], "prices of the next connection")
        assert len(exchange.told) == 2

    asyncio.run(check())


def test_an_unexpected_error_restarts_every_connection() -> None:
    """Meanwhile its prices are suspended: nobody follows them."""

    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where:
            pm = source(where)
            read, broken = pm._reader.read, asyncio.Event()

            def fail_once(*given: Any) -> Any:
                if broken.is_set():
                    return read(*given)
                broken.set()
                raise ZeroDivisionError

            async with running(hub, pm):
                await until(lambda: active(hub) == [0.47, 0.55], "both prices")
                pm._reader.read = fail_once  # type: ignore[method-assign, assignment]
                exchange.sends = False
                exchange.answers.clear()
                await exchange.say({"event_type": "last_trade_price", "asset_id": "t1"})
                await until(lambda: len(exchange.told) == 2, "another connection")
                assert active(hub) == []
                exchange.answers.set()
                await until(lambda: active(hub) == [0.47, 0.55], "the prices again")

    asyncio.run(check())


def test_first_books_are_waited_for_before_they_are_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polymarket_client, "_FIRST_BOOK_S", 20.0)  # a busy machine sends nothing for 0.2 s

    async def act(connection: ServerConnection, number: int) -> None:
        await asyncio.sleep(0.1)
        await connection.send(json.dumps([exchange.book(token) for token in ("t1", "t2")]))

    exchange = Exchange()
    exchange.sends, exchange.act = False, act

    async def check() -> None:
        hub = new_hub()
        async with served(exchange) as where, running(hub, source(where)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            exchange.refuses = True
            await exchange.open[0].close()
            await asyncio.sleep(0.3)
            exchange.refuses = False
            await until(
                lambda: len(exchange.told) == 2 and active(hub) == [0.47, 0.55], "prices of the next connection"
            )
            assert exchange.asked == []

    asyncio.run(check())


def test_pages_by_cursor_that_are_refused_are_said() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        exchange.keyset = False
        async with served(exchange) as where, running(hub, source(where, events_interval=0.05)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            assert "events are listed by offset, as pages by cursor are refused: status 404" in hub.tracks["pm"].warning
            assert hub.tracks["pm"].public_warning == "events are listed by offset, as pages by cursor are refused"
            exchange.keyset = True
            await until(lambda: not hub.tracks["pm"].warning, "the end of it")

    asyncio.run(check())


@pytest.mark.parametrize("stream", [True, False])
def test_prices_hold_while_the_exchange_answers(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "ALL_S", 0.1)

    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        more = {"silence": 60.0} if stream else {"interval": 0.05}  # a silent connection is not given up here
        async with served(exchange) as where, running(hub, source(where, stream=stream, **more)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            before = last_seen(hub) + timedelta(seconds=0.1)
            await until(lambda: last_seen(hub) > before, "later times")
            if stream:
                exchange.silent, at = True, now()
                await until(lambda: now() - at > timedelta(seconds=0.5), "a while without an answer")
                pings = exchange.pings
                await until(lambda: exchange.pings >= pings + 2, "pings")  # what was answered before is read by then
                assert last_seen(hub) < at + timedelta(seconds=0.5), "as of the last message"

    asyncio.run(check())


@pytest.mark.parametrize("live", [False, True])
def test_a_pong_renews_no_price_of_a_connection_without_books(live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Books are read over REST instead, and what agrees is renewed; a change without a message opens it again."""
    monkeypatch.setattr(tracking, "ALL_S", 0.05)
    monkeypatch.setattr(polymarket_client, "_CHECK_S", 0.05)
    quiet = {"quiet_live": 0.3, "quiet_prematch": 1e6} if live else {"quiet_live": 1e6, "quiet_prematch": 0.3}

    async def check() -> None:
        hub, exchange = new_hub(), Exchange(event(offer("moneyline", gameStartTime=starts(-1 if live else 2))))
        async with served(exchange) as where, running(hub, source(where, interval=0.05, **quiet)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            exchange.answers.clear()
            await until(lambda: exchange.asked == [["t1", "t2"]], "a request for both books")
            before, pings = last_seen(hub), exchange.pings
            await until(lambda: exchange.pings > pings + 2, "pongs")
            assert last_seen(hub) == before
            exchange.answers.set()
            await until(lambda: last_seen(hub) > before, "books that agree")
            assert len(exchange.told) == 1
            exchange.books["t1"] = dict(bids=[(0.53, 40)], asks=[(0.54, 100)])
            exchange.books["t2"] = dict(bids=[(0.46, 100)], asks=[(0.47, 40)])
            await until(lambda: active(hub) == [0.47, 0.54], "the books of the exchange")
            await until(lambda: len(exchange.told) == 2 and active(hub) == [0.47, 0.54], "another connection")

    asyncio.run(check())


def test_a_connection_has_at_most_200_outcomes() -> None:
    given = {"kind": "polymarket", "sports": ["nfl"], "socket_tokens": 250}
    with pytest.raises(SettingsError, match="socket_tokens must be a whole number from 2 to 200, got 250"):
        read_feed(SettingsTable("test", "feeds.pm", given, {}, set()), "pm")


def test_an_exchange_that_goes_silent_is_noticed() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where, silence=0.3)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            exchange.silent, exchange.sends = True, False
            exchange.answers.clear()
            await until(lambda: active(hub) == [], "suspended prices")
            await until(lambda: len(exchange.told) >= 2, "another connection")
            await until(lambda: "no data within 0.3 s" in status(hub)[1], "the reason")

    asyncio.run(check())


def test_a_connection_that_answers_stays_open_however_short_the_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polymarket_client, "_PING_S", 10.0)

    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where, silence=0.3)):
            await until(lambda: exchange.pings >= 2, "two pings")
            assert len(exchange.told) == 1

    asyncio.run(check())


@pytest.mark.parametrize("data", ["<html>", "[3]", '{"event_type":"book"', b"\xff\xfe"])
def test_what_is_no_message_ends_the_connection(data: str | bytes) -> None:
    async def act(connection: ServerConnection, number: int) -> None:
        if number == 1:
            await connection.send(data)

    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        exchange.act = act
        async with served(exchange) as where, running(hub, source(where)):
            await until(
                lambda: len(exchange.told) == 2 and active(hub) == [0.47, 0.55], "prices of the next connection"
            )
            assert hub.tracks["pm"].failures_total == 1

    asyncio.run(check())


def test_a_message_that_is_not_valid_costs_only_its_book() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            await exchange.say({"event_type": "price_change", "market": "0xm1", "price_changes": "none"})
            await until(lambda: exchange.asked, "a request")
            await until(lambda: active(hub) == [0.47, 0.55], "the prices again")
            assert len(exchange.told) == 1

    asyncio.run(check())


def test_new_markets_are_subscribed_to_and_old_ones_left() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where, events_interval=0.2)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            exchange.books |= {token: dict(asks=[(0.6, 5)]) for token in ("a", "b")}
            spread = offer("spreads", ident="0x2", tokens=("a", "b"), line=-1.5, gameStartTime=starts(2))
            exchange.events = [event(spread)]
            await until(lambda: active(hub) == [0.6, 0.6], "only the new market")
            assert [told[1:] for told in exchange.told] == [
                [
                    {"assets_ids": ["t1", "t2"], "operation": "unsubscribe"},
                    {"assets_ids": ["a", "b"], "operation": "subscribe"},
                ]
            ]

    asyncio.run(check())


def test_a_market_that_the_stream_reports_is_listed_early() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            exchange.books |= {token: dict(asks=[(0.6, 5)]) for token in ("a", "b")}
            exchange.events[0]["markets"].append(
                offer("spreads", ident="0x2", tokens=("a", "b"), line=-1.5, gameStartTime=starts(2))
            )
            await exchange.say({"event_type": "new_market", "sports_market_type": "spreads", "assets_ids": ["a", "b"]})
            await until(lambda: active(hub) == [0.47, 0.55, 0.6, 0.6], "the new market")
            await exchange.say({"event_type": "market_resolved", "market": "0x2", "winning_asset_id": "a"})
            await until(lambda: active(hub) == [0.47, 0.55], "a market that is over")

    asyncio.run(check())


def test_a_socket_without_tokens_is_closed_and_those_of_a_market_are_together() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange(match(*three_way()))
        for one in exchange.events[0]["markets"]:
            one["gameStartTime"] = starts(2)
        exchange.books = {
            f"{side}{n}": dict(asks=[(ask, 5)]) for n in range(3) for side, ask in (("y", 0.4), ("n", 0.65))
        }
        async with served(exchange) as where, running(hub, source(where, events_interval=0.2, socket_tokens=3)):
            await until(lambda: active(hub) == [0.4, 0.4, 0.4], "three prices")
            assert [told[0]["assets_ids"] for told in exchange.told] == [["y0", "n0"], ["y1", "n1"], ["y2", "n2"]]
            exchange.events[0]["markets"][1:] = []
            await until(lambda: len(exchange.open) == 1, "two connections less")
            await until(lambda: active(hub) == [0.4], "one price")
            await until(lambda: status(hub)[0] == "ok", "a good status")
            assert len(exchange.told) == 3

    asyncio.run(check())


def test_the_start_of_a_game_suspends_and_reads_the_books_again() -> None:
    async def check() -> None:
        soon = (now() + timedelta(seconds=1)).isoformat(sep=" ")
        hub, exchange = new_hub(), Exchange(event(offer("moneyline", gameStartTime=soon)))
        async with served(exchange) as where, running(hub, source(where)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            assert exchange.asked == []
            exchange.books = {"t1": dict(asks=[(0.7, 5)]), "t2": dict(bids=[(0.3, 5)])}
            await until(lambda: active(hub) == [0.7], "the price in play")
            assert hub.engine.table()["is_live"].to_list() == [True]
            assert exchange.asked

    asyncio.run(check())


def test_polled_books_are_followed() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where, stream=False, interval=0.05)):
            await until(lambda: active(hub) == [0.47, 0.55], "both prices")
            exchange.books["t1"] = dict(bids=[(0.58, 1)], asks=[(0.6, 1)])
            exchange.books["t2"] = dict(bids=[(0.4, 1)], asks=[(0.42, 1)])
            await until(lambda: active(hub) == [0.42, 0.6], "a change")
            exchange.books.clear()
            await until(lambda: prices(hub) == {}, "nothing")

    asyncio.run(check())


def test_slow_polls_are_reported() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where, running(hub, source(where, stream=False, interval=900.0)):
            await until(lambda: "interval is 900 s" in status(hub)[1], "a conflict")

    asyncio.run(check())


def test_a_stream_that_is_not_there() -> None:
    async def check() -> None:
        hub, exchange = new_hub(), Exchange()
        async with served(exchange) as where:
            for address, words in (
                ("ws://127.0.0.1:9/", "the stream cannot be reached"),
                (where["url"].replace("http", "ws") + "/none", "status 404"),
                ("ws://127.0.0.1:99999/", "the connection failed"),
            ):
                hub = new_hub()
                async with running(hub, source({**where, "stream_url": address})):
                    await until(lambda: words in status(hub)[1], words)  # noqa: B023  it is done before the next
            assert any("GET /none" in one for one in exchange.check.violations)
            exchange.check.violations.clear()

    asyncio.run(check())
