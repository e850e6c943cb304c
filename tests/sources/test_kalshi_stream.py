"""Kalshi's stream against a local exchange: errors of subscriptions, their limits, the scale of No, lines and fees."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sources.test_kalshi import DAL, SEA, STREAMED, active, cost, key, source, streaming, with_books
from support.kalshi import (
    EVENT,
    START,
    Exchange,
    Json,
    error,
    event,
    exchange,
    fee_changes,
    fee_update,
    lifecycle,
    markets_page,
    milestone,
    order_book,
    over,
    subscription,
    winners,
)
from support.local_servers import new_hub, running, until
from websockets.asyncio.server import ServerConnection

from oddsengine.sources import kalshi_stream
from oddsengine.testing.local_servers import Answering, Request, now
from oddsengine_service.feeds.hub import Hub


def subscribed(served_: Exchange) -> list[list[str]]:
    """The markets of each subscription of books that was requested."""
    return [one["params"]["market_tickers"] for one in served_.commands
            if one["cmd"] == "subscribe" and "market_tickers" in one["params"]]  # fmt: skip


def statuses_requested(served_: Exchange) -> int:
    return sum(one["params"].get("channels") == ["market_lifecycle_v2"] for one in served_.commands)


def fees(hub: Hub) -> set[float | None]:
    table = hub.engine.table()
    return set(table["contract_fee"].to_list()) if "contract_fee" in table.columns else {None}


@pytest.mark.parametrize("code", [10, 25])
def test_an_error_that_ends_a_subscription_does_not_end_the_connection(code: int, tmp_path: Path) -> None:
    served_, suspended = with_books(), []

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await served_.end(2, code)
            await until(lambda: len(subscribed(served_)) == 2, "the subscription once more")
            suspended.append(active(hub))
            await until(lambda: cost(hub) == STREAMED and active(hub) == {True}, "prices")
            await served_.change(SEA, "0.4250", "3.00")
            await until(lambda: cost(hub).get("Seattle") == 0.575, "a change")
        assert served_.connections == 1
        assert subscribed(served_) == [[SEA, DAL]] * 2

    asyncio.run(check())


def test_statuses_that_ended_are_requested_again_and_the_lists_read_at_once(tmp_path: Path) -> None:
    served_ = with_books()

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await served_.send(served_.sockets[0], lifecycle(SEA, served_.number(1), "deactivated"))
            await served_.send(served_.sockets[0], lifecycle(DAL, served_.number(1), "deactivated"))
            await until(lambda: active(hub) == {False}, "suspended prices")
            await served_.end(1)  # and meanwhile the markets open again
            await until(lambda: active(hub) == {True}, "the statuses of the lists")
        assert (served_.connections, statuses_requested(served_)) == (1, 2)

    asyncio.run(check())


@pytest.mark.parametrize("closes", ["before the loss", "after it"])
def test_lists_are_read_when_statuses_are_lost_and_when_they_come_again(closes: str, tmp_path: Path) -> None:
    """What changes until the subscription is answered comes with no message."""
    served_, again, lists = with_books(), asyncio.Event(), []

    async def slow(_: Exchange, __: ServerConnection, command: Json) -> bool:
        if statuses_requested(served_) == 2 and command is served_.commands[-1]:
            await again.wait()
        return False

    async def counted(*_: Any) -> bool:
        lists.append(1)
        return False

    served_.acting = slow

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await asyncio.sleep(0.2)  # the turn in which the stream began may be under way
            served_.answers["/markets"] = counted
            if closes == "before the loss":
                served_.markets["KXNFLGAME"] = []
            await served_.end(1)
            try:
                await until(lambda: len(lists) > 0, "a list at the loss")
                if closes == "after it":
                    served_.markets["KXNFLGAME"] = []
                    again.set()
                await until(lambda: active(hub) == {False}, "the statuses of the lists")
            finally:
                again.set()

    asyncio.run(check())


def test_a_market_that_closes_while_the_stream_connects_again_is_closed(tmp_path: Path) -> None:
    """The lists were read before, and its message was sent to nobody."""
    served_ = with_books()

    async def check() -> None:
        async with streaming(served_, tmp_path, interval=60.0) as hub:
            lists = served_.paths().count("/markets")

            async def paused(_: Exchange, __: ServerConnection, command: Json) -> bool:
                if statuses_requested(served_) == 2 and command is served_.commands[-1]:
                    await until(lambda: served_.paths().count("/markets") > lists, "the lists at the loss")
                    await until(lambda: active(hub) == {True}, "their prices")
                    served_.markets["KXNFLGAME"] = []
                return False

            served_.acting = paused
            await served_.sockets[0].close()
            await until(lambda: not served_.markets["KXNFLGAME"] and active(hub) == {False}, "closed markets")
            assert served_.connections == 2

    asyncio.run(check())


def test_statuses_that_are_lost_while_lists_are_read_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The list that is under way was made before the loss, and neither it nor the wait after it counts."""
    monkeypatch.setattr(kalshi_stream, "_WAIT_S", 0.01)
    served_, asked, held = with_books(), asyncio.Event(), asyncio.Event()

    async def older(_: Request, answering: Answering) -> bool:
        asked.set()
        await held.wait()
        del served_.answers["/markets"]
        await answering.answer(markets_page())
        return True

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            for ticker in (SEA, DAL):
                await served_.send(served_.sockets[0], lifecycle(ticker, served_.number(1), "deactivated"))
            await until(lambda: active(hub) == {False}, "suspended prices")
            served_.answers["/markets"] = older
            await served_.end(1)
            await until(asked.is_set, "a list")
            await until(lambda: len(served_.subscriptions) == 3, "the statuses once more")
            await served_.end(3)
            await until(lambda: len(served_.subscriptions) == 4, "the statuses a third time")
            served_.books[SEA] = order_book([("0.5700", "100.00")], [("0.4250", "1.00")])
            held.set()
            await until(lambda: active(hub) == {True} and cost(hub).get("Seattle") == 0.575, "the books after it")
            await served_.change(SEA, "0.4260", "3.00")
            await served_.change(DAL, "0.5860", "3.00")
            await until(lambda: cost(hub) == {"Seattle": 0.574, "Dallas": 0.414}, "changes")

    asyncio.run(check())


def test_a_market_that_one_list_left_out_is_streamed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is still followed, but its book was given up: without a new one, the listed price would stay."""
    monkeypatch.setattr(kalshi_stream, "_TURN_S", 30.0)  # so that what is followed changes with the next message only
    served_ = with_books()

    async def check() -> None:
        async with streaming(served_, tmp_path, refresh=0.05) as hub:
            served_.markets["KXNFLGAME"] = winners()[:1]
            await until(lambda: cost(hub).get("Dallas") == 0.43, "No of the other market")
            served_.markets["KXNFLGAME"] = winners()
            await until(lambda: cost(hub).get("Dallas") == 0.42, "the listed price")
            for _ in range(2):
                await served_.change(SEA, "0.4100", "1.00")
            await until(lambda: cost(hub).get("Dallas") == 0.415, "its book")

    asyncio.run(check())


def test_a_market_that_reopens_is_followed_at_once(tmp_path: Path) -> None:
    """It was not in the lists while it was paused, so that its book was no longer followed."""
    served_ = with_books()

    async def held(*_: Any) -> None:
        await asyncio.Event().wait()

    async def check() -> None:
        async with streaming(served_, tmp_path, refresh=0.1) as hub:
            await served_.send(served_.sockets[0], lifecycle(SEA, served_.number(1), "deactivated"))
            served_.markets["KXNFLGAME"] = winners()[1:]
            await until(lambda: SEA not in served_.followed, "the end of its book")
            served_.markets["KXNFLGAME"] = winners()
            served_.answers["/markets"] = held
            served_.books[SEA] = order_book([("0.5700", "100.00")], [("0.4250", "1.00")])
            await served_.send(served_.sockets[0], lifecycle(SEA, served_.number(1), "activated"))
            await until(lambda: cost(hub).get("Seattle") == 0.575, "its book, before the next list")

    asyncio.run(check())


def many(served_: Exchange, count: int) -> list[str]:
    """Give the game totals at so many lines. Returns all markets."""
    totals = [over("KXNFLTOTAL", 20.5 + at) for at in range(count)]
    served_.events = [milestone(events=(EVENT, event("KXNFLTOTAL")))]
    served_.markets["KXNFLTOTAL"] = totals
    served_.books |= {one["ticker"]: order_book([("0.3000", "7")], [("0.6000", "5")]) for one in totals}
    return [SEA, DAL, *(one["ticker"] for one in totals)]


def everything_streamed(hub: Hub, count: int) -> bool:
    streamed = [row for row in hub.engine.table().to_dicts() if row["selection"] == "Over"]
    return len(streamed) == count and {round(1 / row["odds_decimal"], 6) for row in streamed} == {0.4}


def test_more_markets_than_one_subscription_takes_are_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(kalshi_stream, "_MARKETS", 5)
    served_ = with_books()
    tickers = many(served_, 10)

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await until(lambda: everything_streamed(hub, 10), "all books")
        assert [len(one) for one in subscribed(served_)] == [5, 5, 2]
        assert sorted(one for some in subscribed(served_) for one in some) == sorted(tickers)

    asyncio.run(check())


@pytest.mark.parametrize("most", [3, 8])
def test_a_limit_that_was_not_known_needs_further_subscriptions(most: int, tmp_path: Path) -> None:
    served_ = with_books()
    served_.most_markets = most
    many(served_, 10)

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await until(lambda: everything_streamed(hub, 10), "all books")
        assert served_.connections == 1
        assert max(Counter(served_.followed.values()).values()) <= most

    asyncio.run(check())


def test_markets_that_do_not_fit_a_subscription_get_another(tmp_path: Path) -> None:
    served_ = with_books()
    served_.most_markets = 2

    async def check() -> None:
        async with streaming(served_, tmp_path, refresh=0.1) as hub:
            many(served_, 1)
            await until(lambda: everything_streamed(hub, 1), "the book of a new market")
        assert (served_.connections, len(subscribed(served_))) == (1, 2)
        assert Counter(served_.followed.values()) == {2: 2, 3: 1}

    asyncio.run(check())


def test_too_many_commands_are_repeated_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kalshi_stream, "_WAIT_S", 0.02)
    monkeypatch.setattr(kalshi_stream, "_TURN_S", 0.02)
    served_ = with_books()
    refused = iter(range(3))

    async def busy(exchange_: Exchange, socket: ServerConnection, command: Json) -> bool:
        if next(refused, None) is None:
            return False
        await exchange_.send(socket, error(27, "too many requests", ident=command["id"]))
        return True

    served_.acting = busy

    async def check() -> None:
        async with streaming(served_, tmp_path):
            assert served_.connections == 1

    asyncio.run(check())


def test_an_exchange_that_stays_busy_ends_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kalshi_stream, "_WAIT_S", 0.001)
    monkeypatch.setattr(kalshi_stream, "_TURN_S", 0.01)
    served_ = with_books()

    async def busy(exchange_: Exchange, socket: ServerConnection, command: Json) -> bool:
        await exchange_.send(socket, error(27, "too many requests", ident=command["id"]))
        return True

    served_.acting = busy

    async def check() -> None:
        hub = new_hub()
        with key(tmp_path) as (_, env):
            async with exchange(served_) as where, running(hub, source(where, env)):
                await until(lambda: "27, too many requests" in hub.statuses()[0].reason, "the reason")

    asyncio.run(check())


@pytest.mark.parametrize("channel", ["orderbook_delta", "market_lifecycle_v2"])
def test_subscriptions_that_end_again_and_again_end_the_connection(
    channel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is requested again later and later, and not for ever."""
    monkeypatch.setattr(kalshi_stream, "_WAIT_S", 0.001)
    monkeypatch.setattr(kalshi_stream, "_TURN_S", 0.01)
    served_ = with_books()

    async def ending(exchange_: Exchange, socket: ServerConnection, command: Json) -> bool:
        if command["params"].get("channels") != [channel]:
            return False
        sid = 200 + command["id"]
        await exchange_.send(socket, subscription(command["id"], channel, sid))
        await exchange_.send(socket, error(25, "too slow", sid, 1))
        return True

    served_.acting = ending

    async def check() -> None:
        hub = new_hub()
        with key(tmp_path) as (_, env):
            async with exchange(served_) as where, running(hub, source(where, env)):
                await until(lambda: "25, too slow" in hub.statuses()[0].reason, "the reason")

    asyncio.run(check())
    asked = [one for one in served_.commands if one["params"].get("channels") == [channel]]
    assert len(asked) <= 6 * served_.connections


@pytest.mark.parametrize("yes_scale", [True, False])
def test_prices_of_no_are_read_on_either_scale(yes_scale: bool, tmp_path: Path) -> None:
    served_ = with_books()
    served_.yes_scale = yes_scale

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await served_.change(SEA, "0.4250", "3.00")
            await until(lambda: cost(hub).get("Seattle") == 0.575, "a change")
        assert served_.connections == 1

    asyncio.run(check())


def test_a_line_that_moves_takes_its_old_prices_away(tmp_path: Path) -> None:
    served_ = with_books()
    many(served_, 1)
    seen: list[set[float]] = []

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await until(lambda: everything_streamed(hub, 1), "the book")
            ticker = f"{event('KXNFLTOTAL')}-20.5"

            def lines() -> set[float]:
                seen.append({row["line"] for row in hub.engine.table().to_dicts() if row["line"] is not None})
                return seen[-1]

            moved = lifecycle(ticker, served_.number(1), "metadata_updated", floor_strike=24.5)
            await served_.send(served_.sockets[0], moved)
            await until(lambda: lines() == {24.5}, "the new line")
            assert {20.5, 24.5} not in seen
            await served_.change(ticker, "0.6500", "3.00")
            await until(lambda: cost(hub).get("Over") == 0.35, "its price")

    asyncio.run(check())


def test_fees_change_over_the_stream_and_when_it_was_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    served_ = with_books()
    served_.changes = fee_changes(events=[(EVENT, None, 0.5)], series=[("KXNFLTOTAL", "flat", 1)], at=now())
    assert now() < START

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            await until(lambda: fees(hub) == {0.035}, "the announced fee")
            await served_.send(served_.sockets[0], fee_update(served_.number(1), None, 2))
            await until(lambda: fees(hub) == {0.14}, "the new fee")
            assert cost(hub) == STREAMED
            await served_.send(served_.sockets[0], fee_update(served_.number(1), "flat", None))
            await until(lambda: not hub.engine.table().height, "no price")

    asyncio.run(check())


def test_announcements_that_are_refused_are_said(tmp_path: Path) -> None:
    served_ = with_books()

    async def refuse(_: Any, answering: Any) -> bool:
        await answering.answer({"error": {"code": "not_found"}}, 404)
        return True

    served_.answers["/events/fee_changes"] = refuse

    async def check() -> None:
        async with streaming(served_, tmp_path) as hub:
            assert "announced changes of fees cannot be read: status 404" in str(hub.tracks["k"].warning)

    asyncio.run(check())
