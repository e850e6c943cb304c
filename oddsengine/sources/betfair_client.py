"""The Betfair exchange: its TCP stream, and recordings of it.

The catalogue says which markets there are, and their names, which the stream does not have. A connection is greeted,
authenticates, subscribes to the markets that are next (`betfair_markets`), and then receives changes or heartbeats. A
new connection with the same markets resumes at the clock of the last one. Where other markets are next, a message
replaces the subscription, and an image of all its markets follows; until then the prices before it stand.
"""

import asyncio
import bz2
import contextlib
import gzip
import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.betfair import BetfairMarkets
from oddsengine.feeds.betfair_format import Catalogue, read_catalogue
from oddsengine.sources.betfair_markets import MarketChoice, catalogue_request
from oddsengine.sources.failure import Failure
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, alongside, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import BetfairHistorySettings, BetfairSettings
from oddsengine.sources.tcp_lines import Lines, connected
from oddsengine.sources.web import Web

_FIELDS = ("EX_BEST_OFFERS", "EX_TRADED_VOL", "EX_MARKET_DEF")
_FATAL = {"NO_APP_KEY", "INVALID_APP_KEY", "NOT_AUTHORIZED", "INVALID_INPUT", "INVALID_REQUEST"}
_EXPIRED = {"NO_SESSION", "INVALID_SESSION_INFORMATION"}
_OPEN: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open}
_EXPIRED_REST = ("INVALID_SESSION_INFORMATION", "NO_SESSION", "ANGX-0003")
_MOST_FILES = 500  # open files
_ALWAYS_S = 1e9
_BASIC = (
    "the files have prices of last trades (ltp) and no offers, so there are no prices to read: that is BASIC history; "
    "it takes ADVANCED or PRO"
)
_LINES = 500  # lines of files per read


class _Status(msgspec.Struct):
    op: str = ""
    id: int | None = None
    statusCode: str = ""  # noqa: N815
    errorCode: str = ""  # noqa: N815
    errorMessage: str = ""  # noqa: N815
    connectionClosed: bool = False  # noqa: N815


class _Session(msgspec.Struct):
    token: str = ""
    status: str = ""
    error: str = ""


class _Time(msgspec.Struct):
    pt: int = 0


_status = msgspec.json.Decoder(_Status)
_session = msgspec.json.Decoder(_Session)
_time = msgspec.json.Decoder(_Time)


class BetfairSource:
    """The fetcher of the live stream."""

    def __init__(self, feed: BetfairSettings, env: Mapping[str, str], secrets: Secrets) -> None:
        self.feed = feed
        self._env, self._secrets = env, secrets
        self._session = env["session_env"]
        self._reader = BetfairMarkets(feed.min_bet)
        self._choice = MarketChoice(feed.markets)
        self._listed: list[Catalogue] | None = None  # a list that is not applied yet
        self._listed_at = 0.0  # when the last one was requested
        self._refused: Counter[str] = Counter()  # of it
        self._unlisted = ""  # why the last request failed
        self._number = 0  # of the last message of this connection, which that to a subscription has
        self._subscribed_at = 0.0
        self._moment: datetime | None = None  # time of the last message

    async def run(self, receiver: Receiver) -> None:
        async with Web(self.feed, self._secrets, receiver) as web:
            await keep_trying(self.feed, receiver, lambda backoff: self._connection(web, receiver, backoff))

    async def _connection(self, web: Web, receiver: Receiver, backoff: Backoff) -> float:
        feed = self.feed
        if not self._choice.best():
            await self._list(web, receiver)
            await self._apply_list(receiver)
        if not self._choice.best():
            receiver.expect(feed.name, "", 2.0 * feed.refresh + feed.timeout)
            receiver.alive(feed.name)
            receiver.caught_up(feed.name)
            return feed.refresh
        receiver.expect(feed.name, "", feed.silence)
        if not self._session:
            await self._log_in(web)
        async with connected(feed.url, feed.timeout, feed.body_bytes) as lines:
            await self._authenticate(lines)
            await self._subscribe(lines, receiver)
            async with alongside(self._list_again(web, receiver)) as listing:
                while True:
                    line = await lines.receive(feed.silence)
                    if listing.done():
                        await listing
                    await self._take(line, lines, receiver, backoff)

    async def _take(self, line: bytes, lines: Lines, receiver: Receiver, backoff: Backoff) -> None:
        """Deliver what a line says, and change the subscription if other markets are next."""
        feed, reader = self.feed, self._reader
        if b'"op":"status"' in line.replace(b" ", b""):  # a response says nothing about prices
            if not self._accept(line):
                await self._subscribe(lines, receiver)
            return
        payload = await parsed(feed, receiver, line, reader.read, line, stream="stream")
        self._moment = payload.moment or self._moment
        await self._forward(receiver, payload)
        if reader.clk:
            backoff.reset()
            receiver.caught_up(feed.name)
        await self._renew(receiver)
        self._choice.close(reader.closed)
        await self._apply_list(receiver)
        now = asyncio.get_running_loop().time()
        if reader.clk and now >= self._subscribed_at + feed.pause and self._choice.is_due:
            await self._subscribe(lines, receiver)
        receiver.warn(feed.name, self._warning())

    def _warning(self) -> str:
        most, given = self._choice.most, self.feed.markets
        if self._reader.late:
            return "the exchange says that its prices are late"
        if self._unlisted:
            return f"no list of markets: {self._unlisted}"
        return f"the account may subscribe to fewer than {given} markets: {most} are read" if most < given else ""

    async def _renew(self, receiver: Receiver) -> None:
        """All prices hold as of the last message, by the exchange's clock, so that no later change is late."""
        payload = self._reader.alive(receiver.now())
        if payload.quotes and self._moment is not None:
            quotes = [row | {"last_seen_at": self._moment} for row in payload.quotes]
            await receiver.deliver(self.feed.name, payload._replace(quotes=quotes))

    async def _forward(self, receiver: Receiver, payload: Payload) -> None:
        if payload.quotes or payload.removed or payload.games:
            await receiver.deliver(self.feed.name, payload)
        else:
            receiver.alive(self.feed.name)

    async def _authenticate(self, lines: Lines) -> None:
        feed = self.feed
        hello = _decoded(await lines.receive(feed.timeout))
        if hello.op != "connection":
            raise Failure(f"unexpected greeting: {hello.op[:80]!r}")
        self._number = 1
        await lines.send(
            _line(op="authentication", id=self._number, appKey=self._env["key_env"], session=self._session)
        )
        self._accept(await lines.receive(feed.timeout))

    async def _subscribe(self, lines: Lines, receiver: Receiver) -> None:
        """Subscribe to the markets that are next, in place of those before; to changes only, if they are the same."""
        feed, reader = self.feed, self._reader
        anew = self._choice.take()
        self._number += 1
        self._subscribed_at = asyncio.get_running_loop().time()
        reader.subscribe(self._number, self._choice.held, anew=anew)
        await self._name(receiver)
        request: dict[str, Any] = {
            "marketFilter": {"marketIds": list(self._choice.held)},
            "marketDataFilter": {"fields": list(_FIELDS), "ladderLevels": feed.levels},
            "heartbeatMs": round(feed.heartbeat * 1000),
            "segmentationEnabled": True,
        }
        if reader.clk and reader.initial_clk:
            request |= {"initialClk": reader.initial_clk, "clk": reader.clk}
        await lines.send(_line(op="marketSubscription", id=self._number, **request))

    def _accept(self, line: bytes) -> bool:
        """Raise `Failure` for a request that was rejected. Returns False if the next one may have fewer markets."""
        status = _decoded(line)
        if status.op != "status" or status.statusCode == "SUCCESS":
            return True
        code = status.errorCode or "unknown"
        if code == "INVALID_CLOCK":
            self._reader.clk = self._reader.initial_clk = ""
        fatal = code in _FATAL
        if code == "SUBSCRIPTION_LIMIT_EXCEEDED":
            fatal = not self._choice.halve()
            if not (fatal or status.connectionClosed):
                return False
        again = code in _EXPIRED and bool(self._env["user_env"])
        if code in _EXPIRED:
            self._session = "" if again else self._session
        fatal |= code in _EXPIRED and not again
        raise Failure(
            f"Betfair rejected the request: {code}: {self._secrets.clean(status.errorMessage)[:200]}", fatal=fatal
        )

    async def _log_in(self, web: Web) -> None:
        env = self._env
        headers = {"x-application": env["key_env"], "accept": "application/json"}
        form = {"username": env["user_env"], "password": env["password_env"]}
        answer = await web.post(self.feed.login_url, headers, form)
        try:
            session = _session.decode(answer.body)
        except msgspec.MsgspecError:
            raise Failure("the login response is not valid") from None
        self._secrets.add(session.token)  # also one that is of no use
        if session.status != "SUCCESS" or not session.token:
            raise Failure(f"the login was rejected: {session.error[:80] or session.status[:80]}", fatal=True)
        self._session = session.token

    async def _list_again(self, web: Web, receiver: Receiver) -> None:
        """Request the list of markets from time to time. Without it, those that are held are read on."""
        feed, loop = self.feed, asyncio.get_running_loop()
        backoff = Backoff(feed.backoff, feed.backoff_cap)
        wait = self._listed_at + feed.refresh - loop.time()
        while True:
            await asyncio.sleep(max(wait, 0.0))
            try:
                await self._list(web, receiver)
            except Failure as failure:
                self._unlisted, wait = str(failure), backoff.wait(failure)
            else:
                self._unlisted, wait = "", feed.refresh
                backoff.reset()

    async def _list(self, web: Web, receiver: Receiver) -> None:
        """Request the list of markets."""
        feed, now = self.feed, asyncio.get_running_loop().time()
        body = msgspec.json.encode(catalogue_request(feed))
        if not self._session:
            await self._log_in(web)
        headers = {
            "x-application": self._env["key_env"], "x-authentication": self._session,
            "content-type": "application/json", "accept": "application/json",
        }  # fmt: skip
        try:
            answer = await web.post(f"{feed.catalogue_url.rstrip('/')}/listMarketCatalogue/", headers, body)
        except Failure as failure:
            if self._env["user_env"] and any(code in str(failure) for code in _EXPIRED_REST):
                self._session = ""
                raise Failure(str(failure), kind=failure.kind, status=failure.status) from None
            raise
        self._listed, self._refused = await parsed(feed, receiver, answer.body, read_catalogue, answer.body)
        self._listed_at = now

    async def _apply_list(self, receiver: Receiver) -> None:
        """Learn the names of a list, and which markets are next."""
        if self._listed is not None:
            self._choice.update(self._listed)
            self._listed = None
            await self._name(receiver)

    async def _name(self, receiver: Receiver) -> None:
        """Deliver what waited for the names of markets that are held."""
        payload = self._reader.name(self._choice.entries())
        payload, self._refused = payload._replace(refused=payload.refused + self._refused), Counter()
        if payload.quotes or payload.removed or payload.refused:
            await receiver.deliver(self.feed.name, payload)


def _line(**fields: Any) -> bytes:
    return msgspec.json.encode(fields)


def _decoded(line: bytes) -> _Status:
    try:
        return _status.decode(line)
    except msgspec.MsgspecError:
        raise Failure("invalid response") from None


class BetfairFiles:
    """The fetcher of recordings: lines of all files, merged by time."""

    def __init__(self, feed: BetfairHistorySettings, *_: object) -> None:
        self.feed = feed
        self._reader = BetfairMarkets()

    async def run(self, receiver: Receiver) -> None:
        """Read everything once. Invalid lines are saved and skipped."""
        feed = self.feed
        receiver.expect(feed.name, "", _ALWAYS_S)
        bad = 0
        try:
            lines = await asyncio.to_thread(self._merged)
            while batch := await asyncio.to_thread(lambda: list(itertools.islice(lines, _LINES))):
                for _, line in batch:
                    try:
                        payload = self._reader.read(line)
                    except FeedError as error:
                        bad += 1
                        await receiver.unreadable(feed.name, line, str(error))
                        receiver.warn(feed.name, f"{bad} lines cannot be read, the last one: {error}")
                        continue
                    await receiver.deliver(feed.name, payload)
            if self._reader.trades and not self._reader.offers:
                raise Failure(_BASIC, fatal=True)
        except (OSError, EOFError) as error:
            receiver.failed(feed.name, Failure(f"{feed.path} cannot be read further: {error}", fatal=True))
        except Failure as failure:
            receiver.failed(feed.name, failure)
        receiver.caught_up(feed.name, ended=True)

    def _merged(self) -> Iterator[tuple[int, bytes]]:
        root = Path(self.feed.path)
        files = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
        if len(files) > _MOST_FILES:
            raise Failure(f"{root} holds {len(files)} files; at most {_MOST_FILES} are allowed", fatal=True)
        return heapq.merge(*map(_timed, files), key=lambda one: one[0])


def _timed(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines of a file with their times; a line without one has the time of the line before."""
    last = 0
    with cast("BinaryIO", _OPEN.get(path.suffix.lower(), open)(path, "rb")) as file:
        for line in file:
            if line.strip():
                with contextlib.suppress(msgspec.MsgspecError):
                    last = max(last, _time.decode(line).pt)
                yield last, line
