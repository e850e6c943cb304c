"""A client of server-sent events that resumes after disconnects."""

import asyncio
from collections.abc import AsyncGenerator

from oddsengine.feeds import FeedError
from oddsengine.feeds.sse_parser import EventParser, ServerSentEvent
from oddsengine.sources.failure import Failure
from oddsengine.sources.web import Query, Web


class Stream:
    """One stream over several connections."""

    def __init__(self, silence: float, most: int) -> None:
        self._silence, self._most = silence, most
        self.last_id = ""

    async def connect(self, web: Web, url: str, query: Query) -> AsyncGenerator[ServerSentEvent | None, None]:
        """Yield the events of one connection, None for heartbeats; its end is a failure like others."""
        events = EventParser(self._most)
        sent = {"accept": "text/event-stream", "cache-control": "no-store"}
        if self.last_id:
            sent["last-event-id"] = self.last_id
        loop = asyncio.get_running_loop()
        async with web.stream(url, query, sent, self._silence) as chunks:
            last = loop.time()
            async for chunk in chunks:
                comments = events.comments
                try:
                    complete = events.feed(chunk)
                except FeedError as error:
                    raise Failure(str(error)) from error
                for event in complete:
                    self.last_id = event.id or self.last_id
                    yield event
                if events.comments > comments:
                    yield None
                if complete or events.comments > comments:
                    last = loop.time()
                elif loop.time() - last > self._silence:
                    raise Failure(f"no complete event within {self._silence:g} s")
        wait = None if events.retry is None else events.retry / 1000.0
        raise Failure("the stream ended", wait=wait)
