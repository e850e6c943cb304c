"""The Odds API: featured markets and scores of whole sports, props event by event, within the credits that are left.

Lists of events are free; with them the plan is made and its cost said before the first credit is spent.
"""

import asyncio
import logging
from collections.abc import Awaitable
from datetime import datetime
from math import inf

import msgspec

from oddsengine.feeds import FeedError
from oddsengine.feeds.the_odds_api import Asked, Scores, TheOddsApi
from oddsengine_service.feeds.credits import Plan, Target, plan, until_renewal
from oddsengine_service.feeds.retry import Backoff, keep_trying, parsed
from oddsengine_service.feeds.secrets import Secrets
from oddsengine_service.feeds.sink import Failure, Sink
from oddsengine_service.feeds.web import Answer, Web
from oddsengine_service.settings import TheOddsApi as Settings

_log = logging.getLogger("oddsengine.feeds")
_EVENTS_S = 1800.0  # between two lists of events
_DETAILS = ("includeLinks", "includeSids", "includeBetLimits")
_A_TURN = 20  # requests, before the plan is made anew
_BOOKS_A_REGION = 10  # so many bookmakers cost as much as a region
_SCORES, _SCORES_COST = "scores", 1  # without past days


class _Coming(msgspec.Struct):
    id: str
    commence_time: datetime


_coming = msgspec.json.Decoder(list[_Coming])


class TheOddsApiSource:
    """The fetcher."""

    def __init__(self, feed: Settings, key: str, secrets: Secrets) -> None:
        self.feed = feed
        self._key, self._secrets = key, secrets
        self._reader = TheOddsApi(american=False, markets=(*feed.markets, *feed.props))
        self._scores = Scores()
        self._coming: dict[str, list[_Coming]] = {}
        self._due: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._left: int | None = None
        self._used: int | None = None
        self._plan = Plan({}, 0.0, 0.0, 1.0)
        self._said = ""

    async def run(self, sink: Sink) -> None:
        """Ask for ever."""
        async with Web(self.feed, self._secrets) as web:
            await keep_trying(self.feed, sink, lambda _: self._turn(web, sink))

    async def _turn(self, web: Web, sink: Sink) -> float:
        """Ask for what is due; give the seconds until something else is."""
        now = asyncio.get_running_loop().time()
        for sport in self.feed.sports:
            if self._due.get(f"events of {sport}", 0.0) <= now:
                await self._guarded(sink, f"events of {sport}", sport, self._list(web, sink, sport))
        self._replan(sink)
        due = sorted((self._when(name, now), name) for name in self._plan.every)
        for moment, name in due[:_A_TURN]:
            if moment > now or self._spent():
                break
            await self._guarded(sink, name, _part(name), self._ask(web, sink, name))
        self._replan(sink)
        sink.caught_up(self.feed.name)
        now = asyncio.get_running_loop().time()
        waits = [self._due[f"events of {sport}"] - now for sport in self.feed.sports]
        waits += [self._when(name, now) - now for name in self._plan.every]
        return max(0.0, min(waits))

    def _spent(self) -> bool:
        return self._left is not None and self._left <= self.feed.credits_kept

    def _when(self, name: str, now: float) -> float:
        """When a target is due: as the plan says, but not before a failure's wait is over."""
        if self._plan.stretch == inf:
            return inf
        if name not in self._asked:
            return self._due.get(name, now)
        return max(self._asked[name] + self._plan.every[name], self._due.get(name, 0.0))

    async def _guarded(self, sink: Sink, name: str, part: str, work: Awaitable[None]) -> None:
        """Do one thing; if it fails, only that thing waits. Too many requests make all of them wait."""
        backoff = self._backoffs.setdefault(name, Backoff(self.feed.backoff, self.feed.backoff_cap))
        loop = asyncio.get_running_loop()
        try:
            await work
            backoff.reset()
        except Failure as failure:
            sink.failed(self.feed.name, failure, part)
            self._due[name] = loop.time() + backoff.wait(failure)
            if failure.wait is not None:
                for other in (*(f"events of {sport}" for sport in self.feed.sports), *self._plan.every):
                    self._due[other] = max(self._due.get(other, 0.0), loop.time() + failure.wait)

    async def _list(self, web: Web, sink: Sink, sport: str) -> None:
        """List the events of a sport; this costs nothing."""
        answer = await self._get(web, f"/v4/sports/{sport}/events", {})

        def parse() -> list[_Coming]:
            try:
                return _coming.decode(answer.body)
            except msgspec.MsgspecError as error:
                raise FeedError(f"This is no list of events: {error}.") from None

        self._coming[sport] = await parsed(self.feed, sink, answer.body, parse)
        self._due[f"events of {sport}"] = asyncio.get_running_loop().time() + _EVENTS_S
        if not self._coming[sport]:
            sink.expect(self.feed.name, sport, _EVENTS_S + self.feed.timeout)
            sink.alive(self.feed.name, sport)

    async def _ask(self, web: Web, sink: Sink, name: str) -> None:
        """Spend credits on one target: a sport, its scores, or one event of it."""
        feed = self.feed
        sport, _, event = name.partition("/")
        if event == _SCORES:
            await self._ask_scores(web, sink, name, sport)
            return
        markets = feed.props if event else feed.markets
        query: dict[str, str | int] = {"markets": ",".join(markets), "oddsFormat": "decimal", "dateFormat": "iso"}
        if feed.details:
            query |= dict.fromkeys(_DETAILS, "true")
        query |= {"bookmakers": ",".join(feed.books)} if feed.books else {"regions": ",".join(feed.regions)}
        path = f"/v4/sports/{sport}/events/{event}/odds" if event else f"/v4/sports/{sport}/odds"
        self._asked[name] = asyncio.get_running_loop().time()
        answer = await self._get(web, path, query)
        asked = Asked.of(
            markets, sport="" if event else sport, events=[event] if event else None, books=feed.books or None
        )
        payload = await parsed(feed, sink, answer.body, lambda: self._reader.read(answer.body, asked))
        await sink.deliver(feed.name, payload, sport)

    async def _ask_scores(self, web: Web, sink: Sink, name: str, sport: str) -> None:
        self._asked[name] = asyncio.get_running_loop().time()
        body = (await self._get(web, f"/v4/sports/{sport}/scores", {"dateFormat": "iso"})).body
        payload = await parsed(self.feed, sink, body, lambda: self._scores.read(body, sport))
        await sink.deliver(self.feed.name, payload, _part(name))

    async def _get(self, web: Web, path: str, query: dict[str, str | int]) -> Answer:
        answer = await web.get(self.feed.url.rstrip("/") + path, {"apiKey": self._key, **query})
        self._left = _number(answer.headers.get("x-requests-remaining"), self._left)
        self._used = _number(answer.headers.get("x-requests-used"), self._used)
        return answer

    def _replan(self, sink: Sink) -> None:
        """Plan anew with what is left, and say so where it is something else."""
        feed, now = self.feed, sink.now()
        width = -(-len(feed.books) // _BOOKS_A_REGION) if feed.books else len(feed.regions)
        targets = []
        for sport, coming in self._coming.items():
            starts = {event.id: (event.commence_time - now).total_seconds() for event in coming}
            targets.append(Target(sport, width * len(feed.markets), tuple(starts.values())))
            if feed.scores:
                targets.append(Target(f"{sport}/{_SCORES}", _SCORES_COST, tuple(starts.values()), live=True))
            if feed.props:
                targets += [
                    Target(f"{sport}/{event}", width * len(feed.props), (start,))
                    for event, start in starts.items()
                    if start <= feed.props_within
                ]
        left = None if self._left is None else max(0, self._left - feed.credits_kept)
        self._plan = plan(targets, feed.interval, left, until_renewal(now, feed.renews))
        sink.credits(feed.name, self._left, self._used, self._plan.an_hour)
        for sport in self._coming:
            if sport in self._plan.every and self._plan.stretch < inf:
                sink.expect(feed.name, sport, self._plan.every[sport] + feed.timeout, polled=True)
            scores = f"{sport}/{_SCORES}"
            if scores in self._asked or scores in self._plan.every:  # without a game that is on nobody asks
                within = self._plan.every.get(scores, inf) + feed.timeout
                sink.expect(feed.name, _part(scores), within, polled=True)
        self._say(sink, left)

    def _say(self, sink: Sink, left: int | None) -> None:
        """Say what it costs, when that changes by much."""
        found = self._plan
        if left is not None and found.stretch == inf:
            sink.warn(self.feed.name, f"no credits to spend: {self._left} left, {self.feed.credits_kept} of them kept")
            return
        sink.warn(self.feed.name, "")
        if (said := f"{found.an_hour:.1g} {found.stretch:.1g}") != self._said:
            self._said = said
            _log.info("feeds.%s: %s", self.feed.name, self.cost())

    def cost(self) -> str:
        """What it costs, in one sentence."""
        found = self._plan
        left = "an unknown number" if self._left is None else f"{self._left:,}"
        slow = f", looking {found.stretch:.1f} times less often than wished" if found.stretch > 1.0 else ""
        return f"{found.an_hour:,.0f} credits an hour now, {found.a_day:,.0f} in 24 hours{slow}; {left} left"


def _part(name: str) -> str:
    """The part of the source that a target is of: a sport, or its scores."""
    sport, _, rest = name.partition("/")
    return f"scores of {sport}" if rest == _SCORES else sport


def _number(text: str | None, before: int | None) -> int | None:
    try:
        return before if text is None else int(float(text))
    except (ValueError, OverflowError):
        return before
