"""The Betfair exchange: its TCP stream, and recordings of it.

A connection is greeted, authenticates, subscribes, and then receives changes or heartbeats. A new connection resumes at
the clock of the last one. The stream has no names of events; they are requested from the catalogue.
"""

import asyncio
import bz2
import contextlib
import gzip
import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.betfair import BetfairMarkets
from oddsengine.sources.failure import Failure
from oddsengine.sources.lines import Lines, connected
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.settings import BetfairHistorySettings, BetfairSettings
from oddsengine.sources.web import Web

_FIELDS = ("EX_BEST_OFFERS", "EX_TRADED_VOL", "EX_MARKET_DEF")
_FATAL = {
    "NO_APP_KEY", "INVALID_APP_KEY", "NOT_AUTHORIZED", "INVALID_INPUT", "INVALID_REQUEST",
    "SUBSCRIPTION_LIMIT_EXCEEDED",
}  # fmt: skip
_EXPIRED = {"NO_SESSION", "INVALID_SESSION_INFORMATION"}
_OPEN: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open}
_CATALOGUE = 100  # markets per request
_CATALOGUE_S = 30.0  # between two requests for the same market
_MOST_FILES = 500  # open files
_ALWAYS_S = 1e9
_LINES = 500  # lines of files per read


class _Status(msgspec.Struct):
    op: str = ""
    id: int | None = None
    statusCode: str = ""  # noqa: N815
    errorCode: str = ""  # noqa: N815
    errorMessage: str = ""  # noqa: N815


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
    """The fetcher of the live stream. `sports` are the exchange's event types: 1 is soccer."""

    def __init__(self, feed: BetfairSettings, env: Mapping[str, str], secrets: Secrets) -> None:
        self.feed = feed
        self._env, self._secrets = env, secrets
        self._session = env["session_env"]
        self._reader = BetfairMarkets()
        self._moment: datetime | None = None  # time of the last message
        self._requested_at: dict[str, float] = {}  # market -> time of the last request for its names

    async def run(self, receiver: Receiver) -> None:
        async with Web(self.feed, self._secrets, receiver) as web:
            await keep_trying(self.feed, receiver, lambda backoff: self._connection(web, receiver, backoff))

    async def _connection(self, web: Web, receiver: Receiver, backoff: Backoff) -> float:
        feed, reader = self.feed, self._reader
        receiver.expect(feed.name, "", feed.silence)
        if not self._session:
            await self._log_in(web)
        async with connected(feed.url, feed.timeout, feed.body_bytes) as lines:
            await self._subscribe(lines)
            while True:
                line = await lines.receive(feed.silence)
                if b'"op":"status"' in line.replace(b" ", b""):
                    self._accept(line)  # a response says nothing about prices
                    continue
                payload = await parsed(feed, receiver, line, reader.read, line)
                self._moment = payload.moment or self._moment
                await self._forward(receiver, payload)
                if reader.clk:
                    backoff.reset()
                    receiver.caught_up(feed.name)
                await self._name(web, receiver)
                await self._renew(receiver)
                receiver.warn(feed.name, "the exchange says that its prices are late" if reader.late else "")

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

    async def _subscribe(self, lines: Lines) -> None:
        """Authenticate, and subscribe to everything, or to changes after the last clock."""
        feed, reader = self.feed, self._reader
        hello = _decoded(await lines.receive(feed.timeout))
        if hello.op != "connection":
            raise Failure(f"unexpected greeting: {hello.op[:80]!r}")
        await lines.send(_line(op="authentication", id=1, appKey=self._env["key_env"], session=self._session))
        self._accept(await lines.receive(feed.timeout))
        wanted = {"eventTypeIds": feed.sports, "marketCountries": feed.countries, "marketTypeCodes": feed.market_types}
        request: dict[str, Any] = {
            "marketFilter": {name: list(values) for name, values in wanted.items() if values},
            "marketDataFilter": {"fields": list(_FIELDS), "ladderLevels": 1},
            "heartbeatMs": round(feed.heartbeat * 1000),
            "segmentationEnabled": True,
        }
        if reader.clk and reader.initial_clk:
            request |= {"initialClk": reader.initial_clk, "clk": reader.clk}
        await lines.send(_line(op="marketSubscription", id=2, **request))

    def _accept(self, line: bytes) -> None:
        status = _decoded(line)
        if status.op != "status" or status.statusCode == "SUCCESS":
            return
        code = status.errorCode or "unknown"
        if code == "INVALID_CLOCK":
            self._reader.clk = self._reader.initial_clk = ""
        again = code in _EXPIRED and bool(self._env["user_env"])
        if code in _EXPIRED:
            self._session = "" if again else self._session
        fatal = code in _FATAL or (code in _EXPIRED and not again)
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
        if session.status != "SUCCESS" or not session.token:
            raise Failure(f"the login was rejected: {session.error[:80] or session.status[:80]}", fatal=True)
        self._secrets.add(session.token)
        self._session = session.token

    async def _name(self, web: Web, receiver: Receiver) -> None:
        """Request the names of markets that lack them."""
        feed, now = self.feed, asyncio.get_running_loop().time()
        wanted = [
            one for one in self._reader.unnamed if self._requested_at.get(one, -_CATALOGUE_S) + _CATALOGUE_S <= now
        ]
        if not wanted or not feed.catalogue_url:
            return
        batch = wanted[:_CATALOGUE]
        self._requested_at = {one: at for one, at in self._requested_at.items() if one in self._reader.unnamed}
        self._requested_at |= dict.fromkeys(batch, now)
        body = {
            "filter": {"marketIds": batch}, "maxResults": len(batch),
            "marketProjection": ["EVENT", "COMPETITION", "RUNNER_DESCRIPTION"],
        }  # fmt: skip
        headers = {
            "x-application": self._env["key_env"], "x-authentication": self._session,
            "content-type": "application/json", "accept": "application/json",
        }  # fmt: skip
        try:
            answer = await web.post(
                f"{feed.catalogue_url.rstrip('/')}/listMarketCatalogue/", headers, msgspec.json.encode(body)
            )
            payload = await parsed(feed, receiver, answer.body, self._reader.add_catalogue, answer.body)
        except Failure as failure:
            receiver.failed(feed.name, failure, "names")
            return
        receiver.expect(feed.name, "names", _ALWAYS_S)
        receiver.alive(feed.name, "names")
        await self._forward(receiver, payload)


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
