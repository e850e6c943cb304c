"""Streams in the format of OpticOdds: a connection per sport and ten leagues, resumed after the last entry.

The stream only has changes, of fixtures by id. Teams and existing prices are requested: for all fixtures when a stream
starts, later for unknown ones.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing

import msgspec

from oddsengine.feeds import Payload
from oddsengine.feeds.optic import OpticOdds
from oddsengine.sources.failure import Failure
from oddsengine.sources.polling import chunks
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import OpticSettings
from oddsengine.sources.sse_client import Stream
from oddsengine.sources.web import Web

_FIXTURES, _BOOKS = 5, 5  # of one request
_LEAGUES = 10  # of one connection
_MOST_PAGES = 100
Rows = list[tuple[str, str | int | float | bool | None]]


class _FixturePage(msgspec.Struct):
    data: list[msgspec.Raw] = []
    page: int = 1
    total_pages: int = 1


_listed = msgspec.json.Decoder(_FixturePage)


class OpticSource:
    """The fetcher."""

    def __init__(self, feed: OpticSettings, env: Mapping[str, str], secrets: Secrets) -> None:
        self.feed = feed
        self._key, self._secrets = env["key_env"], secrets

    async def run(self, receiver: Receiver) -> None:
        async with Web(self.feed, self._secrets, receiver, {"x-api-key": self._key}) as web:
            leagues = list(chunks(self.feed.leagues, _LEAGUES)) or [()]
            parts = [_Part(self.feed, sport, some, web) for sport in self.feed.sports for some in leagues]
            waiting = {part.name for part in parts}

            def begun(part: str) -> None:
                waiting.discard(part)
                if not waiting:
                    receiver.caught_up(self.feed.name)

            async with asyncio.TaskGroup() as group:
                for part in parts:
                    group.create_task(part.run(receiver, begun))


class _Part:
    """A connection: a sport, or some leagues of it."""

    def __init__(self, feed: OpticSettings, sport: str, leagues: Sequence[str], web: Web) -> None:
        self.name = " ".join([sport, *leagues]) if len(feed.leagues) > _LEAGUES else sport
        self._feed, self._sport, self._leagues, self._web = feed, sport, leagues, web
        self._stream = Stream(feed.silence, feed.body_bytes)
        self._reader = OpticOdds()
        self._begun = False

    async def run(self, receiver: Receiver, begun: Callable[[str], None]) -> None:
        await keep_trying(self._feed, receiver, lambda backoff: self._connection(receiver, backoff, begun), self.name)

    async def _connection(self, receiver: Receiver, backoff: Backoff, begun: Callable[[str], None]) -> float:
        feed, reader = self._feed, self._reader
        receiver.expect(feed.name, self.name, feed.silence)
        query: Rows = [("sportsbook", book) for book in feed.books]
        query += [("league", league) for league in self._leagues]
        query += [("market", market) for market in feed.markets]
        query += [("include_fixture_updates", "true")]
        if reader.last_entry:
            query.append(("last_entry_id", reader.last_entry))
        else:
            self._begun = False  # what changed since it began would never come
        url = f"{feed.url.rstrip('/')}/stream/odds/{self._sport}"
        try:
            async with aclosing(self._stream.connect(self._web, url, query)) as events:
                async for event in events:
                    if not self._begun:
                        await self._begin(receiver)
                        begun(self.name)
                    if event is None or event.event != "connected":
                        backoff.reset()
                    if event is not None and event.event in ("odds", "locked-odds", "fixture-status"):
                        payload = await parsed(
                            feed, receiver, event.data, reader.frame, event.event, event.data, stream="stream"
                        )
                        await receiver.deliver(feed.name, _on_arrival(payload), self.name)
                        await self._request_odds(receiver, list(reader.unknown))
                    elif event is None or event.event != "connected":
                        receiver.alive(feed.name, self.name)
                    renewed = reader.alive(receiver.now())
                    if renewed.quotes:
                        await receiver.deliver(feed.name, renewed, self.name)
        except Failure as failure:
            if failure.fatal:
                reader.last_entry = ""  # the entry may be the reason for the failure
            raise
        raise Failure("the stream ended")

    async def _begin(self, receiver: Receiver) -> None:
        """Request everything that is offered now."""
        feed = self._feed
        fixtures: list[str] = []
        for page in range(1, _MOST_PAGES + 1):
            query: Rows = [("sport", self._sport), *(("league", one) for one in self._leagues), ("page", str(page))]
            body = (await self._web.get(f"{feed.url.rstrip('/')}/fixtures/active", query)).body
            payload = await parsed(feed, receiver, body, self._reader.read, body)
            fixtures += [game.id for game in payload.games]
            if page >= _listed.decode(body).total_pages:
                break
        await self._request_odds(receiver, fixtures)
        self._begun = True

    async def _request_odds(self, receiver: Receiver, fixtures: Sequence[str]) -> None:
        feed = self._feed
        for batch in chunks(fixtures, _FIXTURES):
            for books in chunks(feed.books, _BOOKS):
                query: Rows = [("fixture_id", one) for one in batch]
                query += [("sportsbook", one) for one in books]
                query += [("market", one) for one in feed.markets] + [("odds_format", "AMERICAN")]
                body = (await self._web.get(f"{feed.url.rstrip('/')}/fixtures/odds", query)).body
                payload = await parsed(feed, receiver, body, self._reader.read, body, books, feed.markets or None)
                await receiver.deliver(feed.name, _on_arrival(payload), self.name)
            for one in batch:
                self._reader.unknown.pop(one, None)  # requested once, even if the source does not have it


def _on_arrival(payload: Payload) -> Payload:
    """Remove the times of quotes, so that they count as seen now.

    While a stream works, its prices are renewed at our own time. Its next message may carry an earlier time of the
    source, because of latency and clock differences; the board would consider it late and keep the old price.
    """
    quotes = [{name: value for name, value in row.items() if name != "last_seen_at"} for row in payload.quotes]
    return payload._replace(quotes=quotes)
