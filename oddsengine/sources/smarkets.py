"""Smarkets: the matches of a sport, their markets, and contracts and quotes of these, some ids at a time.

A part is a sport or a league. Quotes are as old as the answer that has them.
"""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from oddsengine.feeds import Payload
from oddsengine.feeds.smarkets import TYPES, SmarketsPrices, next_page, read_events, read_markets
from oddsengine.feeds.turns import Received
from oddsengine.sources.parts import sport_and_league
from oddsengine.sources.polling import PacedWeb, PolledSource, Query, chunks
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.settings import SmarketsSettings

_EVENTS, _IDS = 100, 20  # of one request


def source(feed: SmarketsSettings, _: Mapping[str, str], secrets: Secrets) -> PolledSource:
    """Create the fetcher."""
    return PolledSource(feed, secrets, _Exchange(feed).read)


class _Exchange:
    def __init__(self, feed: SmarketsSettings) -> None:
        self._feed = feed
        self._reader = SmarketsPrices()

    async def read(self, web: PacedWeb, part: str) -> Payload:
        """Read the markets of a part."""
        feed = self._feed
        kind, league = sport_and_league(part, TYPES)
        seen: set[str] = set()

        def following(page: bytes) -> Query:
            return list(parse_qsl(urlsplit(next_page(page, seen)).query))

        query: Query = [
            ("type", kind), ("state", "upcoming"), ("state", "live"), ("sort", "start_datetime,id"), ("limit", _EVENTS),
        ]  # fmt: skip
        pages = [page.body for page in await web.pages("/events/", query, following)]
        listed = await web.parsed(pages, lambda: read_events(pages, web.now(), league=league, within=feed.within))
        lists = [
            (await web.get(f"/events/{','.join(ids)}/markets/", [])).body for ids in chunks(list(listed.games), _IDS)
        ]
        markets = await web.parsed(lists, lambda: read_markets(lists, listed, feed.markets))
        contracts: list[bytes] = []
        quotes: list[Received] = []
        for ids in chunks([market.id for market in markets], _IDS):
            contracts.append((await web.get(f"/markets/{','.join(ids)}/contracts/", [])).body)
            quotes.append(await web.get(f"/markets/{','.join(ids)}/quotes/", []))
        bodies = [*contracts, *(body for body, _ in quotes)]
        return await web.parsed(bodies, lambda: self._reader.read(part, listed, markets, contracts, quotes))
