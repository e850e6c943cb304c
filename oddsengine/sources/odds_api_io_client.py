"""Odds-API.io: the list of events of a sport or a league, and the odds of ten of them at a time.

A part is its name of a sport, or of a sport and a league within it: basketball/usa-nba. This kind is in the form of a
plugin (docs/plugins.md): all that there is of it stands here, and in its parser and its contract.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta

from oddsengine.feeds import Payload
from oddsengine.feeds.odds_api_io import LEAGUES, OddsApiIo, read_events
from oddsengine.sources.polling import PacedWeb, PolledSource, Query, RequestWindow, chunks
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_kinds import SourceKind
from oddsengine.sources.source_settings import PolledSettings, Rate, Requests, Required, Seconds, Text, Url

_EVENTS = 10  # of one request
_HOUR = 3600.0
_LONGEST = timedelta(hours=12)  # a game since its start


class OddsApiIoSettings(PolledSettings, frozen=True, kw_only=True):
    """Odds-API.io; `sports` are its sports, or its leagues within them (basketball/usa-nba)."""

    key_env: Required
    books: Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of at least one of its bookmakers")]
    url: Url = "https://api2.odds-api.io/v3"
    interval: Seconds = 300.0  # between two turns
    rate: Rate = 1.0
    requests_an_hour: Requests = 100  # of the plan
    within: Seconds = 172_800.0


def source(feed: OddsApiIoSettings, env: Mapping[str, str], secrets: Secrets) -> PolledSource:
    """Create the fetcher."""
    return PolledSource(feed, secrets, _Aggregator(feed, env["key_env"]).read)


class _Aggregator:
    def __init__(self, feed: OddsApiIoSettings, key: str) -> None:
        self._feed, self._key = feed, key
        self._reader = OddsApiIo()
        self._window = RequestWindow(feed.requests_an_hour, _HOUR)
        self._requests: dict[str, int] = {}  # in a turn of each part

    async def read(self, web: PacedWeb, part: str) -> Payload:
        """Read the odds of a part."""
        feed = self._feed
        key: Query = [("apiKey", self._key)]
        sport, _, league = part.partition("/")
        begin, end = web.now() - _LONGEST, web.now() + timedelta(seconds=feed.within)
        query: Query = [
            *key, ("sport", sport), *([("league", league)] if league else []), ("status", "pending,live"),
            ("from", _text(begin)), ("to", _text(end)),
        ]  # fmt: skip
        listed = (await web.get("/events", query, window=self._window)).body
        events = await web.parsed([listed], lambda: read_events(listed, web.now(), feed.within))
        books: Query = [*key, ("bookmakers", ",".join(feed.books))]
        groups = chunks(events, _EVENTS)
        self._requests[part] = 1 + len(groups)
        web.takes(sum(self._requests.values()) / feed.requests_an_hour * _HOUR)
        answers = [
            await web.get("/odds/multi", [*books, ("eventIds", ",".join(ids))], window=self._window) for ids in groups
        ]
        return await web.parsed([body for body, _ in answers], lambda: self._reader.read(part, answers))


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


KIND = SourceKind(OddsApiIoSettings, source, variables={"key_env": "ODDS_API_IO_KEY"}, leagues=LEAGUES)
"""Registered by the entry point of this package, as a plugin registers its own."""
