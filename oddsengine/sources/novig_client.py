"""Novig: the games of a league, their markets, and the order book of each, which needs one request.

A part is a league or a sport. Few requests are allowed, so games that start first are read first, and the prices of
each game are delivered at once.
"""

from collections.abc import Mapping
from datetime import timedelta

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.feeds import Game, Payload
from oddsengine.feeds.novig import (
    LEAGUES,
    OPEN,
    NovigMarket,
    NovigPrices,
    next_place,
    read_events,
    read_markets,
)
from oddsengine.feeds.turns import Received
from oddsengine.sources.failure import REFUSED, Failure
from oddsengine.sources.polling import PacedWeb, PolledSource, Query, parameter
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import NovigSettings

_PAGE = 500
_GONE = 404  # the status for a market that has just closed


def source(feed: NovigSettings, _: Mapping[str, str], secrets: Secrets) -> PolledSource:
    """Create the fetcher."""
    return PolledSource(feed, secrets, _Exchange(feed).read)


class _Exchange:
    def __init__(self, feed: NovigSettings) -> None:
        self._feed = feed
        self._reader = NovigPrices()
        self._requests: dict[str, int] = {}  # in a turn of each part

    async def read(self, web: PacedWeb, part: str) -> Payload:
        """Read the markets of a part."""
        feed = self._feed
        until = int((web.now() + timedelta(seconds=feed.within)).timestamp() * 1000)
        following = parameter("after", next_place)
        events: list[bytes] = []
        markets: list[bytes] = []
        for name in _leagues(part):
            query: Query = [("league", name), ("startsBefore", until), ("limit", _PAGE)]
            pages = await web.pages("/v3/public/catalog/events", [*query, ("status", ",".join(OPEN))], following)
            events += [page.body for page in pages]
            for kind in feed.markets:
                pages = await web.pages("/v3/public/catalog/markets", [*query, ("marketType", kind)], following)
                markets += [page.body for page in pages]
        listed = await web.parsed(events, lambda: read_events(events, web.now(), feed.within))
        wanted = await web.parsed(markets, lambda: read_markets(markets, listed, feed.lines))
        self._requests[part] = len(events) + len(markets) + len(wanted)
        web.takes(sum(self._requests.values()) / feed.rate)
        of_game: dict[str, list[NovigMarket]] = {game.id: [] for game in listed.by_start()}
        for market in wanted:
            of_game[market.game.id].append(market)
        for ident, own in of_game.items():  # also those without an open market, whose prices go
            await web.deliver(await self._prices(web, part, listed.games[ident], own))
        return self._reader.end(part, listed)

    async def _prices(self, web: PacedWeb, part: str, game: Game, markets: list[NovigMarket]) -> Payload:
        """Read the books of all markets of a game."""
        books: dict[str, Received] = {}
        for market in markets:
            try:
                books[market.id] = await web.get(f"/v3/public/catalog/markets/{market.id}/book", [])
            except Failure as failure:
                if failure.status != _GONE:
                    raise
        bodies = [book.body for book in books.values()]
        return await web.parsed(bodies, lambda: self._reader.read(part, {game.id: game}, markets, books))


def _leagues(part: str) -> list[str]:
    """Return what Novig calls the leagues of a part. Raises `Failure` if it has none."""
    if part in LEAGUES:
        return [LEAGUES[part]]
    known = catalog.leagues()
    found = [name for own, name in LEAGUES.items() if own in known and known[own].sport == part]
    if not found:
        raise Failure(
            f"{excerpt(part)} is not a league or sport that it has; leagues are {', '.join(sorted(LEAGUES))}",
            fatal=True,
            kind=REFUSED,
        )  # fmt: skip
    return found
