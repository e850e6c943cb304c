"""Matchbook: pages of the events of a sport, with all markets and prices. A part is a sport or a league."""

from collections.abc import Mapping
from datetime import timedelta

from oddsengine.feeds import Payload
from oddsengine.feeds.matchbook import MatchbookPrices, next_offset, read_sports
from oddsengine.sources.parts import sport_and_league
from oddsengine.sources.polling import PacedWeb, PolledSource, Query, parameter
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import MatchbookSettings

_SPORTS, _EVENTS = 500, 100  # of one request


def source(feed: MatchbookSettings, _: Mapping[str, str], secrets: Secrets) -> PolledSource:
    """Create the fetcher."""
    return PolledSource(feed, secrets, _Exchange(feed).read)


class _Exchange:
    def __init__(self, feed: MatchbookSettings) -> None:
        self._feed = feed
        self._reader = MatchbookPrices()

    async def read(self, web: PacedWeb, part: str) -> Payload:
        """Read the events of a part."""
        feed = self._feed
        listed = (await web.get("/lookups/sports", [("per-page", _SPORTS)])).body
        sports = await web.parsed([listed], lambda: read_sports(listed))
        number, league = sport_and_league(part, {sport: ident for ident, sport in sports.items()})
        query: Query = [
            ("sport-ids", number), ("states", "open,suspended"), ("exchange-type", "back-lay"),
            ("odds-type", "DECIMAL"), ("currency", feed.currency), ("include-prices", "true"),
            ("price-depth", feed.depth),
            ("before", int((web.now() + timedelta(seconds=feed.within)).timestamp())), ("per-page", _EVENTS),
            ("offset", 0),
        ]  # fmt: skip
        if feed.markets:
            query.append(("market-types", ",".join(feed.markets)))
        pages = await web.pages("/events", query, parameter("offset", next_offset))
        return await web.parsed(
            [page.body for page in pages], lambda: self._reader.read(part, pages, sports, web.now(), league)
        )
