"""The Odds API: featured markets and scores of whole sports, props event by event, within the remaining credits.

Lists of events are free; they are used to make a plan and to report its cost before the first credit is spent. If there
are too few credits to keep prices fresh, the source's status says which games are affected.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from datetime import datetime
from math import inf

import msgspec

from oddsengine import catalog
from oddsengine.feeds import FeedError
from oddsengine.feeds.feed_names import book
from oddsengine.feeds.the_odds_api import RequestScope, ScoresParser, TheOddsApi
from oddsengine.sources.credits import Target, nearness, plan, until_renewal
from oddsengine.sources.failure import HTTP_UNAUTHORIZED, RATE_LIMITED, TIMEOUT, Failure
from oddsengine.sources.polling_checks import too_slow
from oddsengine.sources.receiver import Receiver
from oddsengine.sources.retry import Backoff, keep_trying, parsed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_recording import Answer
from oddsengine.sources.source_settings import TheOddsApiSettings
from oddsengine.sources.web import Web

_log = logging.getLogger("oddsengine.feeds")
_EVENTS_S = 1800.0  # between two lists of events
_PLAN_S = 60.0  # maximum, since games come nearer
_DETAILS = ("includeLinks", "includeSids", "includeBetLimits")
_MULTIPLIERS, _PICKS = ("includeMultipliers",), "us_dfs"  # prices of picks, and the region of their books
_SPENT = ("credit", "limit", "quota")  # what a refusal says that is not about the key
_A_TURN = 20  # requests between two plans
_BOOKS_A_REGION = 10  # this many bookmakers cost as much as a region
_SCORES, _SCORES_COST = "scores", 1  # without past days
_GAMES = ("games within an hour or on", "games within 6 h", "games within 24 h", "games within 72 h", "later games")
_ROUND_S = (15, 30, 60, 120, 300, 600, 900, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400)


class _ListedEvent(msgspec.Struct):
    id: str
    commence_time: datetime


_coming = msgspec.json.Decoder(list[_ListedEvent])


class TheOddsApiSource:
    """The fetcher."""

    def __init__(self, feed: TheOddsApiSettings, env: Mapping[str, str], secrets: Secrets) -> None:
        self.feed = feed
        self._key, self._secrets = env["key_env"], secrets
        self._format = odds_format(feed)
        picks = any(catalog.book(book(key)).parlay_only for key in feed.books)
        self._multipliers = _MULTIPLIERS if picks or (not feed.books and _PICKS in feed.regions) else ()
        # American prices are recognised, should the source not follow the request.
        american = False if self._format == "decimal" else None
        self._reader = TheOddsApi(american=american, markets=(*feed.markets, *feed.props))
        self._scores = ScoresParser()
        self._coming: dict[str, list[_ListedEvent]] = {}
        self._due: dict[str, float] = {}
        self._requested_at: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._left: int | None = None
        self._used: int | None = None
        self._targets: dict[str, Target] = {}
        self._plan = plan((), feed.interval, None, inf)
        self._reported = ""

    async def run(self, receiver: Receiver) -> None:
        async with Web(self.feed, self._secrets, receiver) as web:
            await keep_trying(self.feed, receiver, lambda _: self._turn(web, receiver))

    async def _turn(self, web: Web, receiver: Receiver) -> float:
        """Send the requests that are due; returns the seconds until the next one."""
        now = asyncio.get_running_loop().time()
        for sport in self.feed.sports:
            if self._due.get(f"events of {sport}", 0.0) <= now:
                await self._guarded(receiver, f"events of {sport}", sport, self._list(web, receiver, sport))
        self._replan(receiver)
        planned = sorted((self._when(name, now), name) for name in self._requested())
        due = [name for moment, name in planned if moment <= now]
        for name in due[:_A_TURN]:
            if not self._affordable(name):
                continue
            await self._guarded(receiver, name, _part(name), self._request(web, receiver, name))
        self._replan(receiver)
        if not any(map(self._affordable, due[_A_TURN:])):
            receiver.caught_up(self.feed.name)
        now = asyncio.get_running_loop().time()
        waits = [self._due[f"events of {sport}"] - now for sport in self.feed.sports]
        waits += [self._when(name, now) - now for name in self._requested() if self._affordable(name)]
        return max(0.0, min(_PLAN_S, *waits))

    def _requested(self) -> set[str]:
        """Targets of the plan; and each sport once, so that its prices are available even with few credits."""
        listed = (sport for sport in self._coming if sport in self._targets and sport not in self._requested_at)
        return {*self._plan.every, *(sport for sport in listed if nearness(self._targets[sport].starts) is not None)}

    def _affordable(self, name: str) -> bool:
        """Whether a request leaves enough credits."""
        return self._left is None or self._left - self._targets[name].cost >= self.feed.credits_kept

    def _when(self, name: str, now: float) -> float:
        """When a target is due: according to the plan, but not before the wait after a failure."""
        if name not in self._requested_at:
            return self._due.get(name, now)
        return max(self._requested_at[name] + self._plan.every.get(name, inf), self._due.get(name, 0.0))

    async def _guarded(self, receiver: Receiver, name: str, part: str, work: Awaitable[None]) -> None:
        """Send one request; if it fails, only that request waits, except that "too many requests" delays all."""
        backoff = self._backoffs.setdefault(name, Backoff(self.feed.backoff, self.feed.backoff_cap))
        loop = asyncio.get_running_loop()
        try:
            await work
            backoff.reset()
        except Failure as failure:
            receiver.failed(self.feed.name, failure, part)
            self._due[name] = loop.time() + backoff.wait(failure)
            if failure.kind != TIMEOUT:  # what may have been answered is not asked again before its time
                self._requested_at.pop(name, None)
            if failure.wait is not None:
                for other in (*(f"events of {sport}" for sport in self.feed.sports), *self._plan.every):
                    self._due[other] = max(self._due.get(other, 0.0), loop.time() + failure.wait)

    async def _list(self, web: Web, receiver: Receiver, sport: str) -> None:
        """List the events of a sport, which is free."""
        answer = await self._get(web, f"/v4/sports/{sport}/events", {})

        def parse() -> list[_ListedEvent]:
            try:
                return _coming.decode(answer.body)
            except msgspec.MsgspecError as error:
                raise FeedError(f"not a list of events: {error}") from None

        self._coming[sport] = await parsed(self.feed, receiver, answer.body, parse)
        self._due[f"events of {sport}"] = asyncio.get_running_loop().time() + _EVENTS_S
        if not self._coming[sport]:
            receiver.expect(self.feed.name, sport, _EVENTS_S + self.feed.timeout)
            receiver.alive(self.feed.name, sport)

    async def _request(self, web: Web, receiver: Receiver, name: str) -> None:
        """Spend credits on one target: a sport, its scores, or one event of it."""
        feed = self.feed
        sport, _, event = name.partition("/")
        if event == _SCORES:
            await self._request_scores(web, receiver, name, sport)
            return
        markets = feed.props if event else feed.markets
        query: dict[str, str | int] = {"markets": ",".join(markets), "oddsFormat": self._format, "dateFormat": "iso"}
        if feed.details:
            query |= dict.fromkeys((*_DETAILS, *self._multipliers), "true")
        query |= {"bookmakers": ",".join(feed.books)} if feed.books else {"regions": ",".join(feed.regions)}
        path = f"/v4/sports/{sport}/events/{event}/odds" if event else f"/v4/sports/{sport}/odds"
        self._requested_at[name] = asyncio.get_running_loop().time()
        answer = await self._get(web, path, query)
        scope = RequestScope.of(
            markets, sport="" if event else sport, events=[event] if event else None, books=feed.books or None
        )
        payload = await parsed(feed, receiver, answer.body, self._reader.read, answer.body, scope, receiver.now())
        await receiver.deliver(feed.name, payload, sport)

    async def _request_scores(self, web: Web, receiver: Receiver, name: str, sport: str) -> None:
        self._requested_at[name] = asyncio.get_running_loop().time()
        body = (await self._get(web, f"/v4/sports/{sport}/scores", {"dateFormat": "iso"})).body
        payload = await parsed(self.feed, receiver, body, self._scores.read, body, sport)
        await receiver.deliver(self.feed.name, payload, _part(name))

    async def _get(self, web: Web, path: str, query: dict[str, str | int]) -> Answer:
        try:
            answer = await web.get(self.feed.url.rstrip("/") + path, {"apiKey": self._key, **query})
        except Failure as failure:
            if failure.status == HTTP_UNAUTHORIZED and any(word in str(failure).lower() for word in _SPENT):
                raise Failure(f"the plan is used up: {failure}", fatal=True, kind=RATE_LIMITED) from None
            raise
        self._left = _number(answer.headers.get("x-requests-remaining"), self._left)
        self._used = _number(answer.headers.get("x-requests-used"), self._used)
        return answer

    def _replan(self, receiver: Receiver) -> None:
        """Update the plan with the credits left, and log it if it changed."""
        feed, now = self.feed, receiver.now()
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
        self._targets = {target.name: target for target in targets}
        self._plan = plan(targets, feed.interval, left, until_renewal(now, feed.renews))
        receiver.credits(feed.name, self._left, self._used, self._plan.an_hour)
        for sport in self._coming:
            if sport in self._plan.every:
                receiver.expect(feed.name, sport, self._plan.every[sport] + feed.timeout, polled=True)
            elif left and nearness(self._targets[sport].starts) is not None:
                receiver.expect(feed.name, sport, inf, polled=True)  # not requested before its games are nearer
            scores = f"{sport}/{_SCORES}"
            if scores in self._requested_at or scores in self._plan.every:  # requested only while a game is on
                within = self._plan.every.get(scores, inf) + feed.timeout
                receiver.expect(feed.name, _part(scores), within, polled=True)
        self._report(receiver)

    def _report(self, receiver: Receiver) -> None:
        """Report what cannot be kept fresh, and the cost when it changes much."""
        plan_ = self._plan
        if self._targets and not any(map(self._affordable, self._targets)):
            kept = self.feed.credits_kept
            receiver.warn(self.feed.name, f"no credits to spend: {self._left} left, {kept} of them kept")
            return
        receiver.warn(self.feed.name, "")
        receiver.conflict(self.feed.name, too_slow(self.feed) or self._stale())
        if (figures := f"{plan_.an_hour:.1g} {plan_.a_day:.1g}") != self._reported:
            self._reported = figures
            _log.info("feeds.%s: %s", self.feed.name, self.cost())

    def _stale(self) -> str:
        """Which prices the credits cannot keep fresh, in one sentence; empty if they suffice."""
        intervals, limits = self._plan.intervals, catalog.thresholds()
        late = [f"{_GAMES[at]} {_often(intervals[at])}" for at in self._plan.stale]
        if late:
            return (
                f"too few credits to keep prices fresh ({limits.stale_prematch_s:g} s before the game): "
                f"requests for {', '.join(late)}"
            )
        live = any(not one.live and any(start <= 0.0 for start in one.starts) for one in self._targets.values())
        if live and intervals[0] > max(limits.stale_live_s, self.feed.interval):
            return (
                f"too few credits to keep prices in play fresh ({limits.stale_live_s:g} s): "
                f"requests {_often(intervals[0])}"
            )
        return ""

    def cost(self) -> str:
        plan_ = self._plan
        left = "an unknown number" if self._left is None else f"{self._left:,}"
        stale = self._stale()
        return (
            f"{plan_.an_hour:,.0f} credits an hour now, {plan_.a_day:,.0f} in 24 hours; {left} left"
            f"{stale and f'; {stale}'}"
        )


def odds_format(feed: TheOddsApiSettings) -> str:
    """The format to request: that of the books, since the source rounds what it converts.

    Decimal prices have two places, so that -700 becomes 1.14, which is -714, and -20000 becomes 1.
    """
    if feed.odds_format != "auto":
        return feed.odds_format
    if feed.books:
        american = all(catalog.book(book(key)).regions == ("US",) for key in feed.books)
    else:
        american = all(region.startswith("us") for region in feed.regions)
    return "american" if american else "decimal"


def _often(seconds: float) -> str:
    """An interval in round numbers, so that messages do not change with every plan."""
    most = next((step for step in _ROUND_S if seconds <= step * 1.001), None)
    if most is None:
        return "never" if seconds == inf else "less than once a day"
    if most < 120:
        return f"every {most} s"
    return f"every {most // 60} min" if most < 7_200 else f"every {most // 3_600} h"


def _part(name: str) -> str:
    """The part of the source that a target belongs to: a sport, or its scores."""
    sport, _, rest = name.partition("/")
    return f"scores of {sport}" if rest == _SCORES else sport


def _number(text: str | None, before: int | None) -> int | None:
    try:
        return before if text is None else int(float(text))
    except (ValueError, OverflowError):
        return before
