"""SportsGameOdds: pages of the events of a league, each of which counts against the plan. A part is a league."""

from collections.abc import Mapping
from datetime import timedelta

from oddsengine.feeds import Payload
from oddsengine.feeds.sportsgameodds import LEAGUES, SportsGameOdds, next_cursor
from oddsengine.sources.polling import PacedWeb, PolledSource, Query, parameter
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.settings import SportsGameOddsSettings

__all__ = ["LEAGUES", "source"]

_EVENTS = 50  # of one request


def source(feed: SportsGameOddsSettings, env: Mapping[str, str], secrets: Secrets) -> PolledSource:
    """Create the fetcher."""
    return PolledSource(feed, secrets, _Aggregator(feed).read, {"x-api-key": env["key_env"]})


class _Aggregator:
    def __init__(self, feed: SportsGameOddsSettings) -> None:
        self._feed = feed
        self._reader = SportsGameOdds()

    async def read(self, web: PacedWeb, part: str) -> Payload:
        """Read the events of a league."""
        feed = self._feed
        until = (web.now() + timedelta(seconds=feed.within)).isoformat(timespec="seconds").replace("+00:00", "Z")
        query: Query = [
            ("leagueID", part), ("oddsAvailable", "true"), ("startsBefore", until), ("limit", _EVENTS),
        ]  # fmt: skip
        if feed.books:
            query.append(("bookmakerID", ",".join(feed.books)))
        if feed.alternates:
            query.append(("includeAltLines", "true"))
        pages = await web.pages("/events", query, parameter("cursor", next_cursor))
        return await web.parsed([page.body for page in pages], lambda: self._reader.read(part, pages))
