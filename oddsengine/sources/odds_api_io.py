"""Odds-API.io: the list of events of a sport or a league, and the odds of ten of them at a time.

A part is its name of a sport, or of a sport and a league within it: basketball/usa-nba.
"""

from collections.abc import Mapping

from oddsengine.feeds import Payload
from oddsengine.feeds.odds_api_io import LEAGUES, OddsApiIo, read_events
from oddsengine.sources.polling import PacedWeb, PolledSource, Query, chunks
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.settings import OddsApiIoSettings

__all__ = ["LEAGUES", "source"]

_EVENTS = 10  # of one request


def source(feed: OddsApiIoSettings, env: Mapping[str, str], secrets: Secrets) -> PolledSource:
    """Create the fetcher."""
    return PolledSource(feed, secrets, _Aggregator(feed, env["key_env"]).read)


class _Aggregator:
    def __init__(self, feed: OddsApiIoSettings, key: str) -> None:
        self._feed, self._key = feed, key
        self._reader = OddsApiIo()

    async def read(self, web: PacedWeb, part: str) -> Payload:
        """Read the odds of a part."""
        feed = self._feed
        key: Query = [("apiKey", self._key)]
        sport, _, league = part.partition("/")
        query: Query = [*key, ("sport", sport), *([("league", league)] if league else [])]
        listed = (await web.get("/events", query)).body
        events = await web.parsed([listed], lambda: read_events(listed, web.now(), feed.within))
        books: Query = [*key, ("bookmakers", ",".join(feed.books))]
        answers = [
            await web.get("/odds/multi", [*books, ("eventIds", ",".join(ids))]) for ids in chunks(events, _EVENTS)
        ]
        return await web.parsed([body for body, _ in answers], lambda: self._reader.read(part, answers))
