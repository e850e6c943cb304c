"""Betfair on this machine: its stream, which takes and refuses what its schema does, and its catalogue of markets."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from oddsengine.testing.contract_check import ContractCheck
from oddsengine.testing.local_servers import Request, http, iso, now, tcp
from oddsengine.testing.source_server import Json, SourceServer

START = (now() + timedelta(hours=1)).replace(microsecond=0)
HOME, AWAY = "Boston Celtics", "Los Angeles Lakers"


def definition(number: int = 1, **more: Any) -> Json:
    """A market of two teams, without their names."""
    return {
        "eventId": f"e{number}", "eventTypeId": "7522", "status": "OPEN", "inPlay": False, "bettingType": "ODDS",
        "marketType": "MATCH_ODDS", "marketTime": iso(START), "marketBaseRate": 5.0, "betDelay": 0,
        "runners": [{"id": runner, "status": "ACTIVE", "sortPriority": runner} for runner in (1, 2)],
    } | more  # fmt: skip


def back(runner: int, price: float) -> Json:
    return {"id": runner, "batb": [[0, price, 50.0]]}


class Market:
    """A market: what the catalogue and the stream say of it."""

    def __init__(self, ident: str, start: datetime = START, matched: float = 0.0, odds: float = 1.8, **of: Any) -> None:
        self.ident, self.start, self.matched, self.odds = ident, start, matched, odds
        number = int(ident.partition(".")[2])
        self.names: Mapping[int, str] = {1: HOME, 2: AWAY}
        self.definition = definition(number, marketTime=iso(start), **of)

    def listed(self) -> Json:
        event = {"id": self.definition["eventId"], "name": " v ".join(self.names.values())}
        runners = [{"selectionId": one, "runnerName": name, "handicap": 0.0} for one, name in self.names.items()]
        return {
            "marketId": self.ident, "marketName": "Match Odds", "marketStartTime": iso(self.start), "event": event,
            "totalMatched": self.matched, "competition": {"id": "1", "name": "NBA"}, "runners": runners,
        }  # fmt: skip

    def image(self) -> Json:
        return {
            "id": self.ident, "img": True, "marketDefinition": self.definition,
            "rc": [back(1, self.odds), back(2, 2.2)],
        }  # fmt: skip


class Stream:
    """The socket. It answers subscriptions with images, and sends what a test says to all connections."""

    def __init__(self, *markets: Market) -> None:
        self.markets = {market.ident: market for market in markets}
        self.most = 200  # markets of a subscription
        self.closes = False  # whether it closes the connection after that error
        self.logins: list[Json] = []
        self.asked: list[Json] = []
        self.check = ContractCheck("betfair")
        self.expired = {"expired"}  # sessions
        self.clock = 0
        self.open: dict[asyncio.StreamWriter, Json] = {}  # the last subscription of each connection

    async def line(self, writer: asyncio.StreamWriter, **message: Any) -> None:
        with suppress(ConnectionError):  # that was closed meanwhile
            writer.write(json.dumps(message).encode() + b"\r\n")
            await writer.drain()

    async def status(self, writer: asyncio.StreamWriter, number: int, error: str = "", *, closed: bool = False) -> None:
        failed = {"errorCode": error, "errorMessage": "no"} if error else {}
        code = "FAILURE" if error else "SUCCESS"
        await self.line(writer, op="status", id=number, statusCode=code, connectionClosed=closed, **failed)

    async def mcm(self, writer: asyncio.StreamWriter, *changes: Any, number: int = 0, **more: Any) -> None:
        self.clock += 1
        stamp = int(now().timestamp() * 1000)
        number = number or self.open[writer]["id"]
        await self.line(writer, op="mcm", id=number, clk=f"c{self.clock}", pt=stamp, mc=list(changes), **more)

    async def change(self, *changes: Any, **more: Any) -> None:
        for writer in list(self.open):
            await self.mcm(writer, *changes, **more)

    async def beat(self) -> None:
        """A heartbeat: nothing has changed."""
        for writer, asked in list(self.open.items()):
            self.clock += 1
            stamp = int(now().timestamp() * 1000)
            await self.line(writer, op="mcm", id=asked["id"], clk=f"c{self.clock}", pt=stamp, ct="HEARTBEAT")

    async def close_market(self, ident: str) -> None:
        closed = self.markets.pop(ident)
        await self.change({"id": ident, "marketDefinition": closed.definition | {"status": "CLOSED"}})

    def cut(self) -> None:
        for writer in list(self.open):
            writer.close()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.line(writer, op="connection", connectionId="c")
        login = json.loads(await reader.readline())
        self.logins.append(login)
        self.check.message("stream", login)
        if login["session"] in self.expired:
            return await self.status(writer, login["id"], "INVALID_SESSION_INFORMATION", closed=True)
        await self.status(writer, login["id"])
        try:
            while line := await reader.readline():
                if not await self.subscribe(writer, json.loads(line)):
                    break
        finally:
            self.open.pop(writer, None)

    async def subscribe(self, writer: asyncio.StreamWriter, asked: Json) -> bool:
        """Answer a subscription. Returns whether the connection goes on."""
        self.asked.append(asked)
        if self.check.message("stream", asked) or not asked["marketFilter"].get("marketIds"):
            await self.status(writer, asked["id"], "INVALID_INPUT", closed=True)
            return False
        if len(asked["marketFilter"]["marketIds"]) > self.most:
            await self.status(writer, asked["id"], "SUBSCRIPTION_LIMIT_EXCEEDED", closed=self.closes)
            return not self.closes
        await self.status(writer, asked["id"])
        self.open[writer] = asked
        await self.image(writer, asked)
        return True

    async def image(self, writer: asyncio.StreamWriter, asked: Json) -> None:
        """Send the markets of a subscription; after its clock nothing, as nothing changes without a connection."""
        if "clk" in asked:
            return await self.mcm(writer, ct="RESUB_DELTA")
        wanted = asked["marketFilter"]["marketIds"]
        images = [self.markets[ident].image() for ident in wanted if ident in self.markets]
        await self.mcm(writer, *images, ct="SUB_IMAGE", initialClk="i1")


class Catalogue(SourceServer):
    """REST: sessions, and the markets that the stream has."""

    venue = "betfair"

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    def reply(self, request: Request) -> Any:
        if request.path.endswith("/login"):
            return {"token": f"fresh-token-{len(self.paths())}", "status": "SUCCESS"}
        if request.headers["x-authentication"] in self._stream.expired:
            return {"faultcode": "Client", "faultstring": "ANGX-0003"}, 400
        body = json.loads(request.body)
        assert body["sort"] == "FIRST_TO_START"
        listed = sorted(self._stream.markets.values(), key=lambda market: market.start)
        return [market.listed() for market in listed][: body["maxResults"]]

    def bodies(self) -> list[Json]:
        """What lists were asked for."""
        return [json.loads(request.body) for _, request in self.asked if request.path.endswith("Catalogue/")]


class Betfair(NamedTuple):
    """Both, and where they are."""

    stream: Stream
    catalogue: Catalogue
    urls: dict[str, Any]  # settings


@asynccontextmanager
async def betfair(*markets: Market, stream: Stream | None = None) -> AsyncIterator[Betfair]:
    """Serve Betfair."""
    one = Stream(*markets) if stream is None else stream
    lists = Catalogue(one)
    async with http(lists) as url, tcp(one) as port:
        rest = {"login_url": f"{url}/api/login", "catalogue_url": f"{url}/exchange/betting/rest/v1.0"}
        yield Betfair(one, lists, {"url": f"tcp://127.0.0.1:{port}", **rest})
    one.check.assert_kept()
