"""Kalshi on this machine: what its lists, order books and messages look like, written by hand, and a server of them.

Only shapes are taken from the exchange: prices as dollar strings, bids only, teams as structured targets.
"""

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request as Handshake
from websockets.http11 import Response

from oddsengine.testing.contract_check import ContractCheck
from oddsengine.testing.local_servers import Answering, Request, accept_no_more, http, iso, now

Json = dict[str, Any]

START = (now() + timedelta(hours=1)).replace(microsecond=0)
SEATTLE, DALLAS, KUPP = (f"{n:08x}-0000-4000-8000-000000000000" for n in (1, 2, 3))
TARGETS = {SEATTLE: "Seattle", DALLAS: "Dallas", KUPP: "Cooper Kupp"}
EVENT = "KXNFLGAME-26AUG15DALSEA"
KEY_ID = "0b1c2d3e-key-of-the-tests"


def event(series: str, given: str = EVENT) -> str:
    """The event of a series of the same game."""
    return given.replace("KXNFLGAME", series)


def milestone(ident: str = "m1", events: tuple[str, ...] = (EVENT,), start: datetime = START, **more: Any) -> Json:
    details = {
        "league": "NFL", "status": "scheduled", "main_game_event_ticker": events[0], "home_team_id": SEATTLE,
        "away_team_id": DALLAS,
    }  # fmt: skip
    return {
        "id": ident, "category": "Sports", "type": "football_game", "title": "Dallas vs Seattle",
        "start_date": iso(start), "details": details, "primary_event_tickers": [events[0]],
        "related_event_tickers": list(events), "source_ids": {}, "notification_message": "",
        "last_updated_ts": iso(start),
    } | more  # fmt: skip


def event_page(*milestones: Json, cursor: str = "", nested: list[Json] | None = None) -> Json:
    events = [
        {
            "event_ticker": one["primary_event_tickers"][0],
            "series_ticker": one["primary_event_tickers"][0].split("-")[0],
            "title": one["title"], "sub_title": "", "category": "Sports", "mutually_exclusive": True,
            "collateral_return_type": "MECNET",
            "product_metadata": {"competition": "Pro Football", "competition_scope": "Game"},
            **({} if nested is None else {"markets": nested}),
        }
        for one in milestones
    ]  # fmt: skip
    return {"events": events, "milestones": list(milestones), "cursor": cursor}


def market(
    ticker: str, ask: str = "0.6000", bid: str = "0.5900", sizes: tuple[str, str] = ("1000.50", "200.25"),
    of: str | None = None, name: str = "Seattle", **more: Any,
) -> Json:  # fmt: skip
    """A market: the ask and bid of Yes, and the sizes of these."""
    return {
        "ticker": ticker, "event_ticker": of or ticker.rpartition("-")[0], "market_type": "binary", "status": "active",
        "title": f"Will {name} win?", "yes_sub_title": name, "no_sub_title": name, "strike_type": "structured",
        "custom_strike": {"football_team": SEATTLE if name == "Seattle" else DALLAS},
        "yes_bid_dollars": bid, "yes_ask_dollars": ask, "no_bid_dollars": "0", "no_ask_dollars": "0",
        "yes_ask_size_fp": sizes[0], "yes_bid_size_fp": sizes[1], "volume_fp": "2500.00", "volume_24h_fp": "100.00",
        "open_interest_fp": "900.00", "liquidity_dollars": "0.0000", "result": "",
        "occurrence_datetime": iso(START + timedelta(hours=3)), "close_time": iso(START + timedelta(days=2)),
        "expected_expiration_time": iso(START + timedelta(hours=3)),
    } | more  # fmt: skip


def winners(given: str = EVENT, **more: Any) -> list[Json]:
    """Two markets with one bet: Seattle is cheaper as No of Dallas."""
    return [
        market(f"{given}-SEA", "0.6100", "0.5900", **more),
        market(f"{given}-DAL", "0.4200", "0.4000", ("50.00", "300.00"), name="Dallas", **more),
    ]


def over(series: str, line: float, *, name: str = "Over", strike: str = "greater", **more: Any) -> Json:
    fields = {"custom_strike": None, "strike_type": strike, "floor_strike": line} | more
    return market(f"{event(series)}-{line:g}", of=event(series), name=name, **fields)


def order_book(yes: list[tuple[str, str]], no: list[tuple[str, str]]) -> Json:
    return {"yes_dollars": [list(level) for level in yes], "no_dollars": [list(level) for level in no]}


def markets_page(*markets: Json, cursor: str = "") -> Json:
    return {"markets": list(markets), "cursor": cursor}


def changes_page(*changes: Json, cursor: str = "") -> Json:
    return {"event_fee_changes": list(changes), "cursor": cursor}


def targets_page(**more: str) -> Json:
    named = TARGETS | more
    return {"structured_targets": [{"id": ident, "name": name, "type": "x"} for ident, name in named.items()]}


def snapshot(ticker: str, seq: int, yes: list[tuple[str, str]], no: list[tuple[str, str]], sid: int = 2) -> Json:
    return {
        "type": "orderbook_snapshot", "sid": sid, "seq": seq,
        "msg": {
            "market_ticker": ticker, "market_id": "x", "yes_dollars_fp": [list(level) for level in yes],
            "no_dollars_fp": [list(level) for level in no],
        },
    }  # fmt: skip


def delta(ticker: str, seq: int, price: str, change: str, side: str = "no", sid: int = 2) -> Json:
    content = {"market_ticker": ticker, "price_dollars": price, "delta_fp": change, "side": side, "ts_ms": 1}
    return {"type": "orderbook_delta", "sid": sid, "seq": seq, "msg": content}


def lifecycle(ticker: str, seq: int, what: str, sid: int = 1, **more: Any) -> Json:
    content = {"market_ticker": ticker, "event_type": what} | more
    return {"type": "market_lifecycle_v2", "sid": sid, "seq": seq, "msg": content}


def fee_update(seq: int, kind: str | None, multiplier: float | None, event_ticker: str = EVENT, sid: int = 1) -> Json:
    content = {
        "event_ticker": event_ticker, "fee_type_override": kind, "fee_multiplier_override": multiplier
    }  # fmt: skip
    return {"type": "event_fee_update", "sid": sid, "seq": seq, "msg": content}


def subscription(ident: int, channel: str, sid: int) -> Json:
    """The answer to a command that subscribes."""
    return {"id": ident, "type": "subscribed", "msg": {"channel": channel, "sid": sid}}


def error(
    code: int, said: str = "no", sid: int | None = None, seq: int | None = None, ident: int | None = None
) -> Json:
    given = {"id": ident, "sid": sid, "seq": seq}
    return {"type": "error", "msg": {"code": code, "msg": said}} | {k: v for k, v in given.items() if v is not None}


Change = tuple[str, str | None, float | None]


def fee_changes(*, events: list[Change] = [], series: list[Change] = [], at: datetime = START) -> Json:  # noqa: B006
    """Both lists of announced changes: ticker, type and multiplier."""
    of_events = [
        {
            "id": f"e{n}", "event_ticker": ticker, "series_ticker": ticker.split("-")[0], "fee_type_override": kind,
            "fee_multiplier_override": multiplier, "scheduled_ts": iso(at),
        }
        for n, (ticker, kind, multiplier) in enumerate(events)
    ]  # fmt: skip
    of_series = [
        {"id": f"s{n}", "series_ticker": one, "fee_type": kind, "fee_multiplier": times, "scheduled_ts": iso(at)}
        for n, (one, kind, times) in enumerate(series)
    ]
    return {"event_fee_changes": of_events, "series_fee_change_arr": of_series, "cursor": ""}


# ---- the server ----


class Exchange:
    """The exchange: `lists` by path and series, and what the stream does, which the test says."""

    def __init__(self) -> None:
        self.check = ContractCheck("kalshi", prefix="/trade-api/v2")
        self.events: list[Json] = [milestone()]
        self.markets: dict[str, list[Json]] = {"KXNFLGAME": winners()}
        self.series: dict[str, Json] = {}  # what differs, by ticker
        self.changes: Json = fee_changes()
        self.yes_scale = True  # of prices of No on the stream, if it is asked for
        self.page = 1000  # entries of a page
        self.asked: list[tuple[float, Request]] = []
        self.answers: dict[str, Callable[[Request, Answering], Any]] = {}  # by path, instead of what it would answer
        self.commands: list[Json] = []
        self.connections = 0
        self.handshakes: list[Handshake] = []
        self.refuse = 0  # the status of handshakes
        self.books: dict[str, Json] = {}
        self.acting: Callable[[Exchange, ServerConnection, Json], Any] | None = None
        self.most_markets = 10_000  # of a subscription
        self.subscriptions: dict[int, Json] = {}  # of the last connection, by sid: the parameters of its command
        self.followed: dict[str, int] = {}  # market -> sid
        self._sequences: dict[int, Iterator[int]] = {}
        self.sockets: list[ServerConnection] = []

    def paths(self) -> list[str]:
        """What was requested, without announced changes of fees, which are requested beside all else."""
        paths = [request.path.removeprefix("/trade-api/v2") for _, request in self.asked]
        return [path for path in paths if not path.endswith("/fee_changes")]

    async def __call__(self, request: Request, answering: Answering) -> None:
        at = asyncio.get_running_loop().time()
        self.asked.append((at, request))
        if refusal := self.check.refused(*request, at):
            await answering.answer({"error": {"code": "bad_request", "message": refusal.reason}}, refusal.status)
            return
        path, query = request.path.removeprefix("/trade-api/v2"), request.query
        special = self.answers.get(path)
        if special is not None and await special(request, answering):
            return
        series = query.get("series_ticker", [""])[0]
        if path == "/events":
            assert (query["status"], query["with_milestones"]) == (["open"], ["true"])
            await self._paged(
                request,
                answering,
                [one for one in self.events if one["primary_event_tickers"][0].split("-")[0] == series],
                event_page,
            )
        elif path == "/markets":
            assert (query["status"], query["mve_filter"]) == (["open"], ["exclude"])
            listed = [one for one in self.markets.get(series, []) if one["status"] == "active"]  # what it calls open
            await self._paged(request, answering, listed, markets_page)
        elif path == "/series/fee_changes":
            await answering.answer({name: self.changes[name] for name in ("series_fee_change_arr",)})
        elif path == "/events/fee_changes":
            await self._paged(request, answering, self.changes["event_fee_changes"], changes_page)
        elif path.startswith("/series/"):
            name = path.removeprefix("/series/")
            await answering.answer({"series": {"ticker": name, "fee_type": "quadratic"} | self.series.get(name, {})})
        elif path == "/structured_targets":
            known = [{"id": one, "name": TARGETS[one]} for one in query["ids"] if one in TARGETS]
            await answering.answer({"structured_targets": known, "cursor": ""})
        elif path == "/markets/orderbooks":
            books = [
                {"ticker": one, "orderbook_fp": self.books.get(one, order_book([], []))} for one in query["tickers"]
            ]
            await answering.answer({"orderbooks": books})
        else:
            await answering.answer({"error": {"code": "not_found"}}, 404)

    async def _paged(self, request: Request, answering: Answering, rows: list[Json], page: Callable[..., Json]) -> None:
        at = int(request.query.get("cursor", ["0"])[0])
        end = at + min(self.page, int(request.query["limit"][0]))
        await answering.answer(page(*rows[at:end], cursor=str(end) if end < len(rows) else ""))

    # ---- the stream ----

    def process(self, _: ServerConnection, handshake: Handshake) -> Response | None:
        self.handshakes.append(handshake)
        signed = {name.lower(): text for name, text in handshake.headers.raw_items() if "access" in name.lower()}
        self.check.refused("WEBSOCKET", handshake.path, {}, signed, b"", 0.0)
        return Response(self.refuse, "No", Headers(), b"no") if self.refuse else None

    async def talk(self, socket: ServerConnection) -> None:
        self.connections += 1
        self.subscriptions, self.followed = {}, {}
        self._sequences = {sid: itertools.count(1) for sid in range(1, 100)}
        self.sockets.append(socket)
        async for text in socket:
            command = json.loads(text)
            self.commands.append(command)
            self.check.message("stream", command)
            await self.obey(socket, command)

    async def send(self, socket: ServerConnection, message: Json) -> None:
        await socket.send(json.dumps(message))

    async def obey(self, socket: ServerConnection, command: Json) -> None:
        params, ident = command["params"], command["id"]
        if self.acting is not None and await self.acting(self, socket, command):
            return
        tickers = params.get("market_tickers", [])
        if command["cmd"] == "subscribe":
            (channel,) = params["channels"]
            assert bool(tickers) == (channel == "orderbook_delta")
            if len(tickers) > self.most_markets:
                await self.send(socket, error(26, "too many markets", ident=ident))
                return
            sid = len(self.subscriptions) + 1
            self.subscriptions[sid] = params
            await self.send(socket, subscription(ident, channel, sid))
        else:
            assert tickers
            (sid,) = params["sids"]
            own = [ticker for ticker, other in self.followed.items() if other == sid]
            if sid not in self.subscriptions:
                await self.send(socket, error(7, "unknown subscription", ident=ident))
                return
            if params["action"] == "add_markets" and len({*own, *tickers}) > self.most_markets:
                await self.send(socket, error(26, "too many markets", sid, self.number(sid), ident))
                return
            if params["action"] == "delete_markets":
                for ticker in tickers:
                    self.followed.pop(ticker, None)
            if params["action"] != "get_snapshot":
                after = {"market_tickers": [*own, *tickers]}
                await self.send(socket, {"id": ident, "type": "ok", "sid": sid, "seq": self.number(sid), "msg": after})
        if params.get("action", "add_markets") in ("add_markets", "get_snapshot"):
            for ticker in tickers:
                self.followed[ticker] = sid
                await self.image(socket, ticker)

    def number(self, sid: int) -> int:
        """The number of the next message of a subscription."""
        return next(self._sequences[sid])

    def on_scale(self, sid: int, price: str) -> str:
        """A price of No as the stream sends it."""
        turned = self.yes_scale and self.subscriptions[sid].get("use_yes_price", False)
        return f"{1 - Decimal(price):.4f}" if turned else price

    async def image(self, socket: ServerConnection, ticker: str) -> None:
        book, sid = self.books.get(ticker, order_book([], [])), self.followed[ticker]
        no = [(self.on_scale(sid, price), size) for price, size in book["no_dollars"]]
        await self.send(socket, snapshot(ticker, self.number(sid), book["yes_dollars"], no, sid))

    async def change(self, ticker: str, price: str, change: str, *, skip: int = 0) -> None:
        """Send a change of bids for No to the last connection, after so many that got lost."""
        sid = self.followed[ticker]
        for _ in range(skip):
            self.number(sid)
        await self.send(self.sockets[-1], delta(ticker, self.number(sid), self.on_scale(sid, price), change, sid=sid))

    async def end(self, sid: int, code: int = 25) -> None:
        """End a subscription of the last connection."""
        del self.subscriptions[sid]
        self.subscriptions[100 + sid] = {}  # numbers are not used again
        self.followed = {ticker: other for ticker, other in self.followed.items() if other != sid}
        await self.send(self.sockets[-1], error(code, "outbound buffer overflowed", sid, self.number(sid)))


@asynccontextmanager
async def exchange(served: Exchange) -> AsyncIterator[dict[str, str]]:
    """Serve an exchange; the settings to reach it."""
    async with http(served) as url, serve(
        served.talk, "127.0.0.1", 0, process_request=served.process, close_timeout=0.1
    ) as server:  # fmt: skip
        port = next(iter(server.sockets)).getsockname()[1]
        try:
            yield {"url": f"{url}/trade-api/v2", "stream_url": f"ws://127.0.0.1:{port}/trade-api/ws/v2"}
        finally:
            await accept_no_more(server.sockets)


def private_key(folder: Path) -> tuple[rsa.RSAPrivateKey, Path]:
    """Create a private key, and write it to a file."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path = folder / "kalshi.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key, path


def verify(key: rsa.RSAPrivateKey, handshake: Handshake) -> None:
    """Check the signature of a handshake; raises `InvalidSignature` if it is wrong."""
    signed = handshake.headers["KALSHI-ACCESS-TIMESTAMP"] + "GET" + "/trade-api/ws/v2"
    signature = base64.b64decode(handshake.headers["KALSHI-ACCESS-SIGNATURE"])
    scheme = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    key.public_key().verify(signature, signed.encode(), scheme, hashes.SHA256())
