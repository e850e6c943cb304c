"""Smarkets: the matches of a sport, their markets, and contracts and quotes of these, some ids at a time.

A part is a sport or a league. Quotes are as old as the answer that has them; few requests of them are allowed, so games
that start first are read first, and each answer is delivered at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from oddsengine.feeds import Game, Payload
from oddsengine.feeds.smarkets import (
    TYPES,
    SmarketsMarket,
    SmarketsPrices,
    next_page,
    read_events,
    read_markets,
)
from oddsengine.feeds.turns import ListedGames, Received
from oddsengine.sources.parts import sport_and_league
from oddsengine.sources.polling import PacedWeb, PolledSource, Query, RequestWindow, chunks
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import SmarketsSettings

_EVENTS, _IDS = 20, 50  # of one request
_MINUTE = 60.0


def source(feed: SmarketsSettings, _: Mapping[str, str], secrets: Secrets) -> PolledSource:
    """Create the fetcher."""
    return PolledSource(feed, secrets, _Exchange(feed).read)


class _Exchange:
    def __init__(self, feed: SmarketsSettings) -> None:
        self._feed = feed
        self._reader = SmarketsPrices()
        self._window = RequestWindow(feed.quotes_a_minute, _MINUTE)
        self._requests: dict[str, int] = {}  # of quotes, in a turn of each part

    async def read(self, web: PacedWeb, part: str) -> Payload:
        """Read the markets of a part."""
        feed = self._feed
        kind, league = sport_and_league(part, TYPES)
        seen: set[str] = set()
        until = (web.now() + timedelta(seconds=feed.within)).isoformat(timespec="seconds").replace("+00:00", "Z")
        query: Query = [
            ("type", kind), ("state", "upcoming"), ("state", "live"), ("sort", "start_datetime,id"), ("limit", _EVENTS),
            ("with_new_type", "false"), ("start_datetime_max", until),
        ]  # fmt: skip
        pages = [page.body for page in await web.pages("/events/", query, lambda page: [*next_page(page, seen)])]
        listed = await web.parsed(pages, lambda: read_events(pages, web.now(), league=league, within=feed.within))
        lists = [
            (await web.get(f"/events/{','.join(ids)}/markets/", [])).body for ids in chunks(list(listed.games), _IDS)
        ]
        markets = await web.parsed(lists, lambda: read_markets(lists, listed, feed.markets))
        groups = list(_groups(listed, markets))
        self._requests[part] = sum(len(chunks(own, _IDS)) for _, own in groups)
        web.takes(sum(self._requests.values()) / feed.quotes_a_minute * _MINUTE)
        for games, own in groups:
            await web.deliver(await self._prices(web, part, games, own))
        return self._reader.end(part, listed)

    async def _prices(
        self, web: PacedWeb, part: str, games: Mapping[str, Game], markets: Sequence[SmarketsMarket]
    ) -> Payload:  # fmt: skip
        """Read the prices of all markets of some games."""
        contracts: list[bytes] = []
        quotes: list[Received] = []
        for ids in chunks([market.id for market in markets], _IDS):
            # Contracts after the quotes, which may wait for long: none is older than what it decides about.
            quotes.append(await web.get(f"/markets/{','.join(ids)}/quotes/", [], window=self._window))
            contracts.append((await web.get(f"/markets/{','.join(ids)}/contracts/", [])).body)
        bodies = [*contracts, *(body for body, _ in quotes)]
        return await web.parsed(bodies, lambda: self._reader.read(part, games, markets, contracts, quotes))


def _groups(
    listed: ListedGames, markets: Sequence[SmarketsMarket]
) -> Iterator[tuple[dict[str, Game], list[SmarketsMarket]]]:  # fmt: skip
    """Divide the markets by requests, those of a game together; games that start first come first."""
    of_game: dict[str, list[SmarketsMarket]] = {ident: [] for ident in listed.games}
    for market in markets:
        of_game[market.game.id].append(market)
    games: dict[str, Game] = {}
    group: list[SmarketsMarket] = []
    for game in listed.by_start():
        if group and len(group) + len(of_game[game.id]) > _IDS:
            yield games, group
            games, group = {}, []
        games[game.id] = game
        group += of_game[game.id]
    if games:
        yield games, group
