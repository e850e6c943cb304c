"""Polymarket on this machine: events, books and messages in its shape, with invented teams and prices, and a server."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from oddsengine.testing.contract_check import ContractCheck
from oddsengine.testing.local_servers import Answering, Request, accept_no_more, http, now

START = "2026-08-07 20:00:00+00"
Json = dict[str, Any]


def offer(
    kind: str, outcomes: tuple[str, str] = ("Panthers", "Cardinals"), ident: str = "0xm1",
    tokens: tuple[str, str] = ("t1", "t2"), **more: Any,
) -> Json:  # fmt: skip
    """A market, with what is listed of one that can be traded."""
    return {
        "id": "1", "conditionId": ident, "question": "", "outcomes": json.dumps(outcomes),
        "outcomePrices": '["0.5", "0.5"]', "clobTokenIds": json.dumps(tokens), "sportsMarketType": kind,
        "gameStartTime": START, "active": True, "closed": False, "acceptingOrders": True, "enableOrderBook": True,
        "feesEnabled": True, "feeSchedule": {"exponent": 1, "rate": 0.03, "rebateRate": 0.25, "takerOnly": True},
        "clearBookOnStart": True, "negRisk": False, "orderMinSize": 5, "volumeNum": 1.5, "volume": "1.5",
    } | more  # fmt: skip


def team(name: str, side: str, alias: str = "", abbreviation: str = "") -> Json:
    named = {"name": name, "alias": alias or None, "abbreviation": abbreviation or None}
    return {"id": 1 if side == "home" else 2, "ordering": side, **named}


NFL = [
    team("Arizona Cardinals", "home", "Cardinals", "ari"),
    team("Carolina Panthers", "away", "Panthers", "car"),
]
SOCCER = [team("Fulham FC", "home"), team("Chelsea FC", "away")]


def event(*markets: Json, ident: str = "100", **more: Any) -> Json:
    """An event of an NFL game, unless told otherwise."""
    return {
        "id": ident, "slug": "nfl-car-ari-2026-08-07", "title": "Panthers vs. Cardinals", "gameId": 77,
        "startTime": "2026-08-07T20:00:00Z", "startDate": "2026-07-01T09:00:00Z", "teams": NFL, "negRisk": False,
        "negRiskAugmented": False, "live": False, "ended": False, "markets": list(markets),
    } | more  # fmt: skip


def match(*markets: Json, ident: str = "200", **more: Any) -> Json:
    """An event of a soccer match."""
    given = {"slug": "epl-ful-che-2026-08-24", "title": "Fulham FC vs. Chelsea FC", "teams": SOCCER, "gameId": "88"}
    return event(*markets, ident=ident, **given | more)


def three_way() -> list[Json]:
    """The three markets of a soccer result."""
    names = (
        ("Chelsea FC", "Will Chelsea FC win on 2026-08-24?"),
        ("Draw (Fulham FC vs. Chelsea FC)", "Will Fulham FC vs. Chelsea FC end in a draw?"),
        ("Fulham FC", "Will Fulham FC win on 2026-08-24?"),
    )
    return [
        offer(
            "moneyline", ("Yes", "No"), f"0xr{at}", (f"y{at}", f"n{at}"), groupItemTitle=title, question=question,
            negRisk=True,
        )
        for at, (title, question) in enumerate(names)
    ]  # fmt: skip


def levels(*pairs: tuple[Any, Any]) -> list[Json]:
    return [{"price": str(price), "size": str(size)} for price, size in pairs]


def book(token: str, bids: Any = (), asks: Any = (), stamp: int = 1_000, **more: Any) -> Json:
    """A complete book."""
    return {
        "event_type": "book", "asset_id": token, "market": "0xm1", "bids": levels(*bids), "asks": levels(*asks),
        "timestamp": str(stamp), "hash": "0xwhatever",
    } | more  # fmt: skip


def change(
    token: str, side: str, price: Any, size: Any, best: tuple[Any, Any] | None = None, stamp: int = 2_000
) -> Json:
    """A change of one level, as since 2025-09."""
    given: Json = {"asset_id": token, "price": price, "size": size, "side": side, "hash": "0xwrong"}
    if best is not None:
        given |= {"best_bid": best[0], "best_ask": best[1]}
    return {"event_type": "price_change", "market": "0xm1", "price_changes": [given], "timestamp": str(stamp)}


# ---- the servers ----


SPORTS = [
    {"sport": "nfl", "series": "10187", "tags": "1,450,100639", "ordering": "away"},
    {"sport": "ncaab", "series": "39", "ordering": "home"},
]
Act = Callable[[ServerConnection, int], Any]


def starts(hours: float) -> str:
    return (now() + timedelta(hours=hours)).strftime("%Y-%m-%d %H:%M:%S+00")


def stamp() -> int:
    return int(now().timestamp() * 1000)


class Exchange:
    """Both servers. `books` are what it has, by token, without those that it does not know."""

    def __init__(self, *events: Any) -> None:
        self.events = list(events) or [event(offer("moneyline", gameStartTime=starts(2)))]
        self.books: dict[str, Any] = {
            "t1": dict(bids=[(0.53, 40)], asks=[(0.55, 100)]), "t2": dict(bids=[(0.45, 100)], asks=[(0.47, 40)]),
        }  # fmt: skip
        self.check = ContractCheck("polymarket")
        self.requests: list[Request] = []
        self.asked: list[list[str]] = []  # tokens of each request for books
        self.told: list[list[Any]] = []  # messages of each connection
        self.pings = 0
        self.open: list[ServerConnection] = []
        self.lists: Callable[[Request], Any] = self.page
        self.sends = True  # initial books
        self.silent = False
        self.refuses = False  # connections
        self.status = 0  # of all answers, instead of these
        self.keyset = True
        self.answers = asyncio.Event()  # requests for books
        self.answers.set()
        self.act: Act | None = None

    def page(self, request: Request) -> Any:
        offset = int(request.query["offset"][0])
        return self.events[offset : offset + int(request.query["limit"][0])]

    def book(self, token: str) -> Any:
        return book(token, stamp=stamp(), **self.books[token])

    async def __call__(self, request: Request, answering: Answering) -> None:
        if refusal := self.check.refused(*request, asyncio.get_running_loop().time()):
            await answering.answer({"error": refusal.reason}, status=refusal.status)
        else:
            await self.answer(request, answering)

    async def answer(self, request: Request, answering: Answering) -> None:
        self.requests.append(request)
        if self.status:
            await answering.answer({"error": "no"}, status=self.status)
        elif request.path == "/sports":
            await answering.answer(SPORTS)
        elif request.path == "/events/keyset" and self.keyset:
            after = int(request.query.get("after_cursor", ["0"])[0])
            page = self.events[after : after + int(request.query["limit"][0])]
            more = {"next_cursor": str(after + len(page))} if after + len(page) < len(self.events) else {}
            await answering.answer({"events": page, **more})
        elif request.path == "/events":
            await answering.answer(self.lists(request))
        elif request.path == "/books" and request.method == "POST":
            tokens = [one["token_id"] for one in json.loads(request.body)]
            self.asked.append(tokens)
            await self.answers.wait()
            known = [self.book(token) for token in tokens if token in self.books]
            rules = {"min_order_size": "5", "tick_size": "0.01", "neg_risk": False, "last_trade_price": "0.5"}
            await answering.answer([{k: v for k, v in one.items() if k != "event_type"} | rules for one in known])
        else:
            await answering.answer({"error": "not found"}, status=404)

    def greet(self, connection: ServerConnection, _: Any) -> Any:
        return connection.respond(503, "busy") if self.refuses else None

    async def follow(self, connection: ServerConnection) -> None:
        self.told.append([])
        self.open.append(connection)
        number = len(self.told)
        try:
            async for data in connection:
                if data == "PING":
                    self.pings += 1
                    if not self.silent:
                        await connection.send("PONG")
                    continue
                message = json.loads(data)
                self.told[number - 1].append(message)
                self.check.message("stream", message)
                if self.sends and message.get("operation") != "unsubscribe":
                    known = [self.book(token) for token in message["assets_ids"] if token in self.books]
                    await connection.send(json.dumps(known))
                if self.act is not None:
                    await self.act(connection, number)
        except ConnectionClosed:
            pass
        finally:
            self.open.remove(connection)

    async def say(self, *messages: Any) -> None:
        for connection in self.open:
            await connection.send(json.dumps(messages[0] if len(messages) == 1 else messages))


@asynccontextmanager
async def served(exchange: Exchange) -> AsyncIterator[dict[str, str]]:
    """The settings that lead to a local exchange."""
    async with (
        http(exchange) as url,
        serve(exchange.follow, "127.0.0.1", 0, process_request=exchange.greet) as server,
    ):
        port = next(iter(server.sockets)).getsockname()[1]
        try:
            yield {"url": url, "books_url": url, "stream_url": f"ws://127.0.0.1:{port}/ws/market"}
        finally:
            await accept_no_more(server.sockets)
