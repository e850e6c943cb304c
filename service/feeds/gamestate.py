"""Game states of another node, from its stream or REST API.

They are a separate part of the feed, so prices are not affected if the upstream's key has no access to them.
"""

import asyncio
from contextlib import aclosing

from oddsengine.feeds.gamestate import GameStates, read_states
from oddsengine_service.feeds.retry import Backoff, alongside, keep_trying, parsed
from oddsengine_service.feeds.sink import Failure, Sink
from oddsengine_service.feeds.sse import Stream
from oddsengine_service.feeds.web import Web
from oddsengine_service.settings import Interface as Settings

PART = "gamestate"


class GameStateSource:
    """The fetcher of game states."""

    def __init__(self, feed: Settings) -> None:
        self._feed = feed
        fields = {"sport": feed.sports, "league": feed.leagues}
        self._query: dict[str, str | int] = {name: ",".join(values) for name, values in fields.items() if values}
        self._stream = Stream(feed.silence, feed.body_bytes)
        self._reader = GameStates()

    async def run(self, web: Web, sink: Sink) -> None:
        attempt = self._connection if self._feed.stream else self._turn
        await keep_trying(self._feed, sink, lambda backoff: attempt(web, sink, backoff), PART)

    async def _turn(self, web: Web, sink: Sink, backoff: Backoff) -> float:
        feed = self._feed
        sink.expect(feed.name, PART, feed.interval + feed.timeout)
        body = (await web.get(feed.url.rstrip("/") + "/gamestate", self._query)).body
        await sink.deliver(feed.name, await parsed(feed, sink, body, read_states, body), PART)
        backoff.reset()
        return feed.interval

    async def _connection(self, web: Web, sink: Sink, backoff: Backoff) -> float:
        feed = self._feed
        sink.expect(feed.name, PART, feed.silence)
        url = feed.url.rstrip("/") + "/stream/gamestate"
        async with (
            alongside(self._freshen(sink)) as freshening,
            aclosing(self._stream.connect(web, url, self._query)) as events,
        ):
            async for event in events:
                if freshening.done():
                    await freshening
                if event is None:
                    sink.alive(feed.name, PART)
                    continue
                payload = await parsed(feed, sink, event.data, self._reader.read, event.event, event.data)
                if payload.scores or payload.refused:
                    await sink.deliver(feed.name, payload, PART)
                    backoff.reset()
                else:
                    sink.alive(feed.name, PART)
        raise Failure("the stream ended")

    async def _freshen(self, sink: Sink) -> None:
        """Repeat the current states between two messages of the upstream."""
        while True:
            await asyncio.sleep(self._feed.freshen)
            payload = self._reader.alive()
            if payload.scores:
                await sink.deliver(self._feed.name, payload, PART)
