"""SX Bet: lists of active markets, and the order book of each, which needs one request.

A part is a league or a sport. Its league ids come from the list of active leagues; a league that is not listed has no
markets now.
"""

from collections.abc import Mapping

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.feeds import Payload
from oddsengine.feeds.sx_bet import SxBetMarkets, SxLeague, next_key, read_leagues, read_markets
from oddsengine.feeds.turns import Received
from oddsengine.sources.failure import REFUSED, Failure
from oddsengine.sources.polling import PacedWeb, PolledSource, Query, parameter
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import SxBetSettings

_PAGE = 50  # markets, the most
_GONE = {400, 404}  # statuses for a market that has just closed


def source(feed: SxBetSettings, env: Mapping[str, str], secrets: Secrets) -> PolledSource:
    """Create the fetcher."""
    headers = {"x-sx-api-key": env["key_env"]} if env["key_env"] else None
    return PolledSource(feed, secrets, _Exchange(feed).read, headers)


class _Exchange:
    def __init__(self, feed: SxBetSettings) -> None:
        self._feed = feed
        self._reader = SxBetMarkets()

    async def read(self, web: PacedWeb, part: str) -> Payload:
        """Read the markets and books of a part."""
        feed, reader = self._feed, self._reader
        sports = (await web.get("/sports", [])).body
        active = (await web.get("/leagues/active", [])).body
        leagues = await web.parsed([sports, active], lambda: read_leagues(sports, active))
        pages: list[bytes] = []
        for chosen in _requests(leagues, part):
            query: Query = [chosen, ("pageSize", _PAGE)]
            if feed.main_lines:
                query.append(("onlyMainLine", "true"))
            following = parameter("paginationKey", next_key)
            pages += [page.body for page in await web.pages("/markets/active", query, following)]
        listing = await web.parsed(pages, lambda: read_markets(pages, leagues, web.now(), feed.within))
        books: dict[str, Received] = {}
        for market in listing.markets:
            try:
                books[market.hash] = await web.get("/orderbook-v3/snapshot", [("marketHash", market.hash)])
            except Failure as failure:
                if failure.status not in _GONE:
                    raise
        return await web.parsed([book.body for book in books.values()], lambda: reader.read(part, listing, books))


def _requests(leagues: list[SxLeague], part: str) -> list[tuple[str, int]]:
    """Return the parameter of each list of markets that a part needs: its sport, or its leagues."""
    of_sport = {league.sport_id for league in leagues if league.sport == part}
    if of_sport:
        return [("sportIds", number) for number in sorted(of_sport)]
    own = [league.id for league in leagues if part in (league.league, league.label)]
    if not own and part not in catalog.sports() and part not in catalog.leagues():
        raise Failure(f"{excerpt(part)} is not a known league or sport", fatal=True, kind=REFUSED)
    return [("leagueId", number) for number in own]
