"""Which markets of Betfair are subscribed to: as many of the catalogue's as an account may, the next starts first.

An account may subscribe to 200 markets unless Betfair raises that, and learns of a lower limit only by a refusal. The
catalogue lists up to 1,000 markets that are not closed, in order of their starts; those in play come first.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from oddsengine.feeds.betfair_format import Catalogue, event_types, market_types
from oddsengine.feeds.decoding import moment
from oddsengine.sources.failure import REFUSED, Failure
from oddsengine.sources.source_settings import BetfairSettings

_LISTED = 1000  # the most markets of a response, if none of its parts has a weight
_PARTS = ("EVENT", "COMPETITION", "RUNNER_DESCRIPTION", "MARKET_START_TIME")  # these have none
_NEVER = datetime.max.replace(tzinfo=UTC)


def catalogue_request(feed: BetfairSettings) -> dict[str, Any]:
    """The body of a request for the list of markets.

    Raises `Failure` if a sport is none.
    """
    try:
        sports = event_types(feed.sports)
    except ValueError as error:
        raise Failure(str(error), fatal=True, kind=REFUSED) from None
    wanted = {
        "eventTypeIds": sports,
        "marketTypeCodes": feed.market_types or market_types(sports),
        "marketCountries": feed.countries,
    }
    return {
        "filter": {name: list(values) for name, values in wanted.items() if values}, "maxResults": _LISTED,
        "sort": "FIRST_TO_START", "marketProjection": list(_PARTS),
    }  # fmt: skip


class MarketChoice:
    """The markets of a subscription, and those that are next.

    Examples
    --------
    >>> choice = MarketChoice(2)
    >>> starts = {"1.1": datetime(2026, 1, 3), "1.2": datetime(2026, 1, 1), "1.3": datetime(2026, 1, 2)}
    >>> choice.update([Catalogue(name, start.replace(tzinfo=UTC)) for name, start in starts.items()])
    >>> choice.best(), choice.take()
    (('1.2', '1.3'), True)
    >>> choice.close(["1.2"])
    >>> choice.best(), choice.is_due
    (('1.3', '1.1'), True)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held: tuple[str, ...] = ()  # subscribed to
        self._listed: dict[str, Catalogue] = {}
        self._best: tuple[str, ...] | None = None

    def update(self, listed: Iterable[Catalogue]) -> None:
        """Replace the list of markets that are not closed."""
        self._listed, self._best = {entry.marketId: entry for entry in listed}, None

    def close(self, markets: Collection[str]) -> None:
        """Markets closed: they are not subscribed to again."""
        for market in markets:
            self._listed.pop(market, None)
            self._best = None

    def best(self) -> tuple[str, ...]:
        """The next starts, and of the same start those that are held, then the most traded ones."""
        if self._best is not None:
            return self._best
        held = set(self.held)

        def rank(entry: Catalogue) -> tuple[datetime, bool, float, str]:
            start = moment(entry.marketStartTime) or _NEVER
            return start, entry.marketId not in held, -(entry.totalMatched or 0.0), entry.marketId

        self._best = tuple(entry.marketId for entry in sorted(self._listed.values(), key=rank)[: self.most])
        return self._best

    @property
    def is_due(self) -> bool:
        """Whether a market is to be subscribed to that is not held."""
        return not set(self.best()) <= set(self.held)

    def take(self) -> bool:
        """Hold the best markets. Returns whether these are others than before."""
        before, self.held = set(self.held), self.best()
        return set(self.held) != before

    def entries(self) -> list[Catalogue]:
        """What the catalogue says of the markets that are held."""
        return [self._listed[market] for market in self.held if market in self._listed]

    def halve(self) -> bool:
        """Hold nothing, and at most half as many as until now. Returns False if that was one."""
        count = min(self.most, len(self.held)) or self.most
        self.held, self.most, self._best = (), max(1, count // 2), None
        return count > 1
