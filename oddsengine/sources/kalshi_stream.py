"""Kalshi's WebSocket: a signed handshake, one subscription of order books, and one of the statuses of markets.

Needs the extra `[kalshi]`.
"""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from websockets.asyncio.client import ClientConnection

from oddsengine.sources.failure import Failure
from oddsengine.sources.settings import KalshiSettings, SettingsError
from oddsengine.sources.sockets import opened

_BOOKS, _STATUSES = "orderbook_delta", "market_lifecycle_v2"
_TICKERS = 500  # of one command
_TURN_S = 1.0  # without a message, other work goes on after this
_REPLIES = (b'"subscribed"', b'"error"')


class _Content(msgspec.Struct):
    channel: str = ""
    sid: int = 0
    code: int = 0
    msg: str = ""


class _Reply(msgspec.Struct):
    type: str = ""
    msg: _Content = msgspec.field(default_factory=_Content)


_reply = msgspec.json.Decoder(_Reply)


class KalshiStream:
    """Opens connections with one key."""

    def __init__(self, feed: KalshiSettings, key: str, private_key: str) -> None:
        self._feed, self._key = feed, key
        try:
            secret = load_pem_private_key(Path(private_key).read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise SettingsError(f"{feed.name}: the private key cannot be read: {type(error).__name__}") from None
        if not isinstance(secret, rsa.RSAPrivateKey):
            raise SettingsError(f"{feed.name}: the private key is not an RSA key")
        self._secret = secret

    @asynccontextmanager
    async def connection(self) -> AsyncIterator["Connection"]:
        """Open a connection; whatever ends it is a `Failure`."""
        feed = self._feed
        headers = self.headers(int(time.time() * 1000))
        async with opened(feed, feed.stream_url, headers, ping=feed.silence / 2.0) as socket:
            connection = Connection(socket, feed.timeout)
            await connection.command("subscribe", {"channels": [_STATUSES]})
            yield connection

    def headers(self, milliseconds: int) -> dict[str, str]:
        """Return the headers that sign a handshake at a time."""
        text = f"{milliseconds}GET{urlsplit(self._feed.stream_url).path}".encode()
        scheme = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
        signature = self._secret.sign(text, scheme, hashes.SHA256())
        return {
            "KALSHI-ACCESS-KEY": self._key, "KALSHI-ACCESS-TIMESTAMP": str(milliseconds),
            "KALSHI-ACCESS-SIGNATURE": base64.b64encode(signature).decode(),
        }  # fmt: skip


class Connection:
    """One connection: its commands, and the markets that it follows."""

    def __init__(self, socket: ClientConnection, timeout: float) -> None:
        self._socket, self._timeout = socket, timeout
        self._last = 0  # id of the last command
        self._sid: int | None = None  # the subscription of order books
        self._wanted: list[str] = []
        self._pending: list[str] = []  # of these, those whose book may not have come
        self._followed: dict[str, None] = {}
        self._subscribing = False
        self._requested_at: dict[str, float] = {}  # market -> when its snapshot was requested

    async def command(self, cmd: str, params: Mapping[str, Any]) -> None:
        """Send a command."""
        self._last += 1
        await self._socket.send(msgspec.json.encode({"id": self._last, "cmd": cmd, "params": params}).decode())

    async def follow(self, tickers: Sequence[str]) -> None:
        """Follow the books of these markets, and no others."""
        self._wanted, self._pending = list(tickers), list(tickers)
        if self._sid is None:
            if self._wanted and not self._subscribing:  # without tickers it would be a subscription to all markets
                self._subscribing = True
                first = self._wanted[:_TICKERS]
                self._followed = dict.fromkeys(first)
                # Prices of No are those of No, whatever the default will be.
                await self.command(
                    "subscribe", {"channels": [_BOOKS], "market_tickers": first, "use_yes_price": False}
                )  # fmt: skip
            return
        new = [ticker for ticker in self._wanted if ticker not in self._followed]
        kept = set(self._wanted)
        old = [ticker for ticker in self._followed if ticker not in kept]
        await self._update("add_markets", new)
        await self._update("delete_markets", old)
        self._followed = dict.fromkeys(self._wanted)

    async def receive(self) -> bytes | None:
        """Return the next message about a market; None if there was none for a while."""
        try:
            async with asyncio.timeout(_TURN_S):
                text = await self._socket.recv(decode=False)
        except TimeoutError:
            return None
        message = bytes(text)
        if any(word in message[:200] for word in _REPLIES):
            await self._read_reply(message)
        return message

    async def repair(self, doubtful: Iterable[str]) -> None:
        """Request the books that are in doubt. Raises `Failure` if one did not come."""
        now = asyncio.get_running_loop().time()
        followed = [ticker for ticker in doubtful if ticker in self._followed]
        new = [ticker for ticker in followed if ticker not in self._requested_at]
        self._requested_at = {ticker: self._requested_at.get(ticker, now) for ticker in followed}
        if any(now - at > self._timeout for at in self._requested_at.values()):
            raise Failure(f"no snapshot of an order book within {self._timeout:g} s")
        await self._update("get_snapshot", new)

    def complete(self, is_streamed: Callable[[str], bool]) -> bool:
        """Whether the stream has the books of all markets to follow."""
        while self._pending and is_streamed(self._pending[-1]):
            self._pending.pop()
        return not self._pending

    async def _read_reply(self, message: bytes) -> None:
        try:
            reply = _reply.decode(message)
        except msgspec.MsgspecError:
            return  # the parser says what is wrong
        if reply.type == "error":
            raise Failure(f"Kalshi rejected a command: {reply.msg.code}, {reply.msg.msg[:200] or 'no reason given'}")
        if reply.type == "subscribed" and reply.msg.channel == _BOOKS:
            self._sid = reply.msg.sid
            await self.follow(self._wanted)

    async def _update(self, action: str, tickers: Sequence[str]) -> None:
        for at in range(0, len(tickers), _TICKERS):
            batch = list(tickers[at : at + _TICKERS])
            await self.command("update_subscription", {"sids": [self._sid], "market_tickers": batch, "action": action})
