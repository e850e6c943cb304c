"""SportsGameOdds: pages of the events of a league, each of which counts against the plan. A part is a league."""

from collections.abc import Mapping
from datetime import timedelta

from oddsengine.feeds import Payload
from oddsengine.feeds.sportsgameodds import LEAGUES, SportsGameOdds, next_cursor
from oddsengine.sources.polling import PacedWeb, PolledSource, Query, RequestWindow, parameter
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import SportsGameOddsSettings

__all__ = ["LEAGUES", "source"]

_EVENTS = 50  # of one request
_MINUTE = 60.0
_NOTHING = 404  # status of a page without events


def source(feed: SportsGameOddsSettings, env: Mapping[str, str], secrets: Secrets) -> PolledSource:
    """Create the fetcher."""
    return PolledSource(feed, secrets, _Aggregator(feed).read, {"x-api-key": env["key_env"]})


class _Aggregator:
    def __init__(self, feed: SportsGameOddsSettings) -> None:
        self._feed = feed
        self._reader = SportsGameOdds()
        self._window = RequestWindow(feed.requests_a_minute, _MINUTE)

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
        following = parameter("cursor", next_cursor)
        pages = await web.pages("/events/", query, following, window=self._window, nothing=_NOTHING)
        return await web.parsed([page.body for page in pages], lambda: self._reader.read(part, pages))
