"""Kalshi's WebSocket: a signed handshake, subscriptions of order books, and one of the statuses of markets.

A subscription has up to 400 markets, or fewer if the exchange says so. Some errors end one subscription, which is
requested again, later each time; of others the command is repeated after a while. All others are ours, and end the
connection.

Needs the extra `[kalshi]`.
"""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from websockets.asyncio.client import ClientConnection

from oddsengine.feeds.kalshi import ENDING
from oddsengine.sources.failure import Failure
from oddsengine.sources.sockets import opened
from oddsengine.sources.source_settings import KalshiSettings, SettingsError

_BOOKS, _STATUSES = "orderbook_delta", "market_lifecycle_v2"
_MARKETS = 400  # of one subscription, and of one command
_TURN_S = 1.0  # without a message, other work goes on after this
_REPLIES = (b'"subscribed"', b'"ok"', b'"error"')
_TOO_MANY_MARKETS, _AGAIN = 26, (1, 18, 27)  # codes of errors; the latter are of commands that can be repeated
_WAIT_S, _MOST_TRIES = 1.0, 5  # before a command is repeated the first time; the wait doubles
_CALM_S = 60.0  # a subscription that ends after more than this begins to count anew
_MOST_SENT = 1000  # commands whose answer may come


class _Content(msgspec.Struct):
    channel: str = ""
    sid: int | None = None
    code: int = 0
    msg: str = ""


class _Reply(msgspec.Struct):
    type: str = ""
    id: int = 0
    sid: int | None = None
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
            await connection.start()
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


class _Subscription:
    """Markets whose books one subscription sends."""

    def __init__(self, tickers: Iterable[str]) -> None:
        self.tickers = dict.fromkeys(tickers)
        self.sid: int | None = None
        self.asked_at = inf  # when it was requested, until it has its number

    def command(self) -> "_Command":
        """The command that requests it."""
        params = {"channels": [_BOOKS], "market_tickers": list(self.tickers), "use_yes_price": True}
        return _Command("subscribe", params, self)


class _Command(NamedTuple):
    cmd: str
    params: dict[str, Any]
    of: _Subscription | None  # None: statuses
    tries: int = 1


_STATUS_COMMAND = _Command("subscribe", {"channels": [_STATUSES]}, None)


class Connection:
    """One connection: its subscriptions, and what is to be done if a command is rejected."""

    def __init__(self, socket: ClientConnection, timeout: float) -> None:
        self._socket, self._timeout = socket, timeout
        self._last = 0  # id of the last command
        self._sent: dict[int, _Command] = {}  # not answered
        self._waiting: list[tuple[float, _Command]] = []  # to be repeated, and when
        self._status_sid: int | None = None
        self._subscriptions: list[_Subscription] = []
        self._of: dict[str, _Subscription] = {}  # by market
        self._ended: dict[_Subscription | None, tuple[float, int]] = {}  # when last, and how often in a row
        self._most = _MARKETS  # of one subscription
        self._wanted: list[str] = []
        self._pending: list[str] = []  # of these, those whose book may not have come
        self._requested_at: dict[str, float] = {}  # market -> when its snapshot was requested
        self.lists_due = False  # statuses may have changed without a message; whoever reads the lists resets it

    async def start(self) -> None:
        """Subscribe to the statuses of markets."""
        await self._send(_STATUS_COMMAND)

    async def follow(self, tickers: Sequence[str]) -> None:
        """Follow the books of these markets, and no others."""
        self._wanted, self._pending = list(tickers), list(tickers)
        wanted = set(tickers)
        for subscription in self._subscriptions:
            old = [ticker for ticker in subscription.tickers if ticker not in wanted]
            if subscription.sid is not None:
                await self._update(subscription, "delete_markets", old)
                for ticker in old:
                    del subscription.tickers[ticker], self._of[ticker]
        new = [ticker for ticker in self._wanted if ticker not in self._of]
        for subscription in self._subscriptions:
            room = max(0, self._most - len(subscription.tickers)) if subscription.sid is not None else 0
            some, new = new[:room], new[room:]
            if some:
                self._take(subscription, some)
                await self._update(subscription, "add_markets", some)
                self._requested_at |= dict.fromkeys(some, asyncio.get_running_loop().time())  # their snapshots follow
        for at in range(0, len(new), self._most):
            subscription = _Subscription(())
            self._subscriptions.append(subscription)
            self._take(subscription, new[at : at + self._most])
            await self._subscribe(subscription)

    async def receive(self) -> bytes | None:
        """Return the next message about a market; None if there was none for a while."""
        await self._repeat()
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
        if any(now - one.asked_at > self._timeout for one in self._subscriptions):
            raise Failure(f"no answer to a subscription within {self._timeout:g} s")
        followed = [ticker for ticker in doubtful if ticker in self._of and self._of[ticker].sid is not None]
        new = [ticker for ticker in followed if ticker not in self._requested_at]
        self._requested_at = {ticker: self._requested_at.get(ticker, now) for ticker in followed}
        if any(now - at > self._timeout for at in self._requested_at.values()):
            raise Failure(f"no snapshot of an order book within {self._timeout:g} s")
        for subscription in self._subscriptions:
            await self._update(subscription, "get_snapshot", [one for one in new if self._of[one] is subscription])

    def complete(self, is_streamed: Callable[[str], bool]) -> bool:
        """Whether the stream has the books of all markets to follow."""
        while self._pending and is_streamed(self._pending[-1]):
            self._pending.pop()
        return not self._pending

    def _take(self, subscription: _Subscription, tickers: Iterable[str]) -> None:
        for ticker in tickers:
            subscription.tickers[ticker], self._of[ticker] = None, subscription

    async def _subscribe(self, subscription: _Subscription) -> None:
        """Request the books of a subscription, which has at least one market: without any it would be of all."""
        subscription.sid, subscription.asked_at = None, asyncio.get_running_loop().time()
        await self._send(subscription.command())

    async def _update(self, subscription: _Subscription, action: str, tickers: Sequence[str]) -> None:
        for at in range(0, len(tickers), _MARKETS):
            batch = list(tickers[at : at + _MARKETS])
            params = {"sids": [subscription.sid], "market_tickers": batch, "action": action}
            await self._send(_Command("update_subscription", params, subscription))

    async def _send(self, command: _Command) -> None:
        self._last += 1
        self._sent[self._last] = command
        if len(self._sent) > _MOST_SENT:
            del self._sent[next(iter(self._sent))]
        text = msgspec.json.encode({"id": self._last, "cmd": command.cmd, "params": command.params})
        await self._socket.send(text.decode())

    async def _repeat(self) -> None:
        """Send the commands again whose time has come, unless their subscription has ended meanwhile."""
        now = asyncio.get_running_loop().time()
        due = [command for at, command in self._waiting if at <= now]
        self._waiting = [(at, command) for at, command in self._waiting if at > now]
        for command in due:
            sids = command.params.get("sids")
            if sids is None or (command.of is not None and sids == [command.of.sid]):
                await self._send(command)

    async def _read_reply(self, message: bytes) -> None:
        try:
            reply = _reply.decode(message)
        except msgspec.MsgspecError:
            return  # the parser says what is wrong
        command = self._sent.pop(reply.id, None)
        if reply.type == "error":
            await self._rejected(reply, command)
        elif reply.type == "subscribed" and reply.msg.channel == _STATUSES:
            self.lists_due = True
            self._status_sid = reply.msg.sid
        elif reply.type == "subscribed" and command is not None and command.of is not None:
            command.of.sid, command.of.asked_at = reply.msg.sid, inf
            now = asyncio.get_running_loop().time()
            self._requested_at |= dict.fromkeys(command.of.tickers, now)  # its snapshots follow
            await self.follow(self._wanted)

    async def _rejected(self, reply: _Reply, command: _Command | None) -> None:
        """Do what an error needs. Raises `Failure` for one that cannot be helped."""
        code, now = reply.msg.code, asyncio.get_running_loop().time()
        failure = Failure(f"Kalshi rejected a command: {code}, {reply.msg.msg[:200] or 'no reason given'}")
        if code in ENDING:
            (sid,) = (reply.sid,) if reply.sid is not None or command is None else command.params.get("sids", (None,))
            if sid is None:
                raise failure
            if sid == self._status_sid:
                self.lists_due = True
                await self._again(None, failure)
            for ended in [one for one in self._subscriptions if one.sid == sid]:  # none if it was requested again
                if ended.tickers:
                    await self._again(ended, failure)
                else:
                    self._subscriptions.remove(ended)
        elif code == _TOO_MANY_MARKETS and command is not None and command.of is not None:
            await self._divide(command, failure)
        elif code in _AGAIN and command is not None and command.tries < _MOST_TRIES:
            wait = _WAIT_S * 2.0 ** (command.tries - 1)
            if command.of is not None and command.cmd == "subscribe":
                command.of.asked_at = now + wait
            self._waiting.append((now + wait, command._replace(tries=command.tries + 1)))
        else:
            raise failure

    async def _again(self, subscription: _Subscription | None, failure: Failure) -> None:
        """Request a subscription that has ended: at once, and if it ends again soon, after waits that double.

        Raises the failure if it ends too often.
        """
        now = asyncio.get_running_loop().time()
        before, tries = self._ended.get(subscription, (-inf, 0))
        tries = tries + 1 if now - before < _CALM_S else 1
        self._ended[subscription] = now, tries
        if tries > _MOST_TRIES:
            raise failure
        command = _STATUS_COMMAND if subscription is None else subscription.command()
        wait = 0.0 if tries == 1 else _WAIT_S * 2.0 ** (tries - 2)
        if subscription is not None:
            subscription.sid, subscription.asked_at = None, now + wait
        if wait:
            self._waiting.append((now + wait, command))
        else:
            await self._send(command)

    async def _divide(self, command: _Command, failure: Failure) -> None:
        """Follow the markets of a command by further subscriptions, as one has too many."""
        subscription, tickers = command.of, command.params["market_tickers"]
        assert subscription is not None
        for ticker in tickers:
            if self._of.get(ticker) is subscription:
                del subscription.tickers[ticker], self._of[ticker]
        if command.cmd == "subscribe":
            self._subscriptions.remove(subscription)
            self._most = min(self._most, len(tickers) // 2)
        else:
            self._most = min(self._most, len(subscription.tickers))
        if not self._most:
            raise failure
        await self.follow(self._wanted)
