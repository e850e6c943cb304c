"""A receiver that keeps what a source delivers and reports, in order."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from oddsengine.feeds import Game, Payload
from oddsengine.matching import Price, price_of
from oddsengine.sources.failure import Failure
from oddsengine.sources.fetching import SourcePrices


class Delivery(NamedTuple):
    """A payload, and when it came."""

    at: float  # by the clock of the event loop
    now: datetime  # by that of the receiver
    part: str
    payload: Payload


class FailureReport(NamedTuple):
    """A failure, and when it was reported."""

    at: float
    part: str
    failure: Failure


class Promise(NamedTuple):
    """That a part reports within so many seconds."""

    at: float
    part: str
    within: float


class Recorder:
    """Receives what one source delivers and reports. Its time starts now, and goes on with that of the event loop.

    Examples
    --------
    >>> async def deliver(*payloads):
    ...     recorder = Recorder()
    ...     for payload in payloads:
    ...         await recorder.deliver("mine", payload)
    ...     return recorder.prices()
    >>> row = {"id": "p", "sportsbook": "a", "event_id": "1", "market_type": "moneyline", "odds_decimal": 1.9}
    >>> list(asyncio.run(deliver(Payload(quotes=[row]))).values())
    [1.9]
    >>> asyncio.run(deliver(Payload(quotes=[row]), Payload(removed=["p"])))
    {}
    """

    ages = True

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.failures: list[FailureReport] = []
        self.promises: list[Promise] = []
        self.signs: list[tuple[float, str]] = []  # of life, by part: deliveries and heartbeats
        self.unread: list[bytes] = []  # bodies that failed to parse
        self.texts: list[str] = []  # all that the operator or others may read
        self.complete = False  # all that there is at first has come
        self.ended = False
        self._prices = SourcePrices()
        self._began, self._changed = datetime.now(UTC), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()

    def prices(self) -> dict[Price, Any]:
        """Return the odds that are offered now, by what they are prices of."""
        return {
            price_of(quote): quote.get("odds_decimal") or quote.get("odds_american")
            for quote in self._prices.quotes()
            if quote.get("is_active", True) is not False
        }

    def games(self) -> dict[str, Game]:
        """Return the games by their ids."""
        return self._prices.games

    def quotes(self) -> list[dict[str, Any]]:
        """Return all prices, those that are suspended too."""
        return self._prices.quotes()

    async def until(self, condition: Callable[[], Any], seconds: float) -> bool:
        """Wait until something holds that reports change; return whether it did within so many seconds."""
        end = self._loop.time() + seconds
        while not condition():
            if (left := end - self._loop.time()) <= 0.0:
                return False
            self._changed.clear()
            waiting = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait({waiting}, timeout=left)
            waiting.cancel()
        return True

    def now(self) -> datetime:
        return self._began + timedelta(seconds=self._loop.time() - self._start)

    async def deliver(self, source: str, payload: Payload, part: str = "") -> None:
        self.deliveries.append(Delivery(self._loop.time(), self.now(), part, payload))
        self._prices.apply(payload, self.now())
        self._sign(part)

    async def received(self, source: str, place: str, body: bytes) -> None:
        self.texts.append(place)

    async def unreadable(self, source: str, body: bytes, reason: str) -> None:
        self.unread.append(body)

    def expect(self, source: str, part: str, within: float, *, polled: bool = False) -> None:
        self.promises.append(Promise(self._loop.time(), part, within))

    def alive(self, source: str, part: str = "") -> None:
        self._sign(part)

    def failed(self, source: str, failure: Failure, part: str = "") -> None:
        self.failures.append(FailureReport(self._loop.time(), part, failure))
        self._say(str(failure), failure.public)

    def warn(self, source: str, reason: str, public: str = "") -> None:
        self._say(reason, public)

    def conflict(self, source: str, reason: str) -> None:
        self._say(reason)

    def takes(self, source: str, seconds: float) -> None:
        """Only `fetch` waits as long."""

    def credits(self, source: str, left: int | None, used: int | None, an_hour: float | None) -> None:
        """Only a node shows them."""

    def written(self, source: str, at: datetime | None) -> None:
        """Only a node shows it."""

    def caught_up(self, source: str, *, ended: bool = False) -> None:
        self.complete, self.ended = True, self.ended or ended
        self._changed.set()

    def _sign(self, part: str) -> None:
        self.signs.append((self._loop.time(), part))
        self._changed.set()

    def _say(self, *texts: str) -> None:
        self.texts += filter(None, texts)
        self._changed.set()
