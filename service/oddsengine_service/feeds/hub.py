"""The hub applies the payloads of all feeds to one board, in order of arrival.

    Payload -> match its games -> quotes under our event ids -> Writer.step -> Update

A payload is applied completely or not at all. A failing source removes nothing. Historical files carry their own time
(`clock=None`).

The writer takes turns between sources: a payload with many new games is matched in several turns, and one with many
prices is applied in several parts, divided by event, so that no source waits long for another.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from oddsengine import catalog
from oddsengine.feeds import Game, Payload
from oddsengine.feeds.contract_types import NEW_FIELD
from oddsengine.feeds.display import displayable
from oddsengine.feeds.scores import turned_round
from oddsengine.live.update import Update
from oddsengine.matching import (
    Decision,
    Matcher,
    OverrideError,
    Overrides,
    PlayerNames,
    QuarantinedGame,
    parse_overrides,
    placed_quotes,
)
from oddsengine.sources import FeedSettings, Source
from oddsengine.sources.drift import Drift, venue_of
from oddsengine.sources.failure import Failure
from oddsengine.sources.freshness import too_slow, too_slow_in_play
from oddsengine.sources.retry import Backoff
from oddsengine_service.board.futures import NodeFutures
from oddsengine_service.board.games import GameBoard
from oddsengine_service.board.writer import StalledError, Writer
from oddsengine_service.feeds.quarantine import PayloadQuarantine
from oddsengine_service.feeds.rows import RowIds
from oddsengine_service.feeds.status import BookStatus, SourceStatus, Track, books_of, shortened
from oddsengine_service.replication import ALONE, Replication
from oddsengine_service.wire.games import Teams

_log = logging.getLogger("oddsengine.feeds")
_SAVE_EVERY_S = 10.0
MOST_QUOTES = 2_000  # applied in one turn
MOST_GAMES = 50_000  # of a source
_WORK = 10_000  # comparisons by the matcher in one turn, about 0.1 s
_MOST_QUARANTINED = 1_000  # in the saved state
_MOST_UNMAPPED = 10_000  # market names of a source
_AGAIN = timedelta(minutes=10)  # between two equal messages in the log
_COUNT_EVERY = timedelta(seconds=5)
_FORGET_EVERY = timedelta(hours=1)
_REMEMBERED = timedelta(days=3)  # after a game's start
_STATUSES = ("upcoming", "live", "ended", "postponed", "cancelled")
Clock = Callable[[], datetime]


class MessageThrottle:
    """The last message on each subject, and its time."""

    def __init__(self) -> None:
        self._logged: dict[str, tuple[str, datetime]] = {}

    def is_due(self, about: str, text: str, now: datetime) -> bool:
        """Whether to log a message: it is new, or was last logged long ago."""
        last = self._logged.get(about)
        if last is not None and last[0] == text and timedelta(0) <= now - last[1] < _AGAIN:
            return False
        self._logged[about] = text, now
        return True


class UnmappedMarket(NamedTuple):
    """A market name that is not in the catalog."""

    source: str
    book: str
    market: str
    times: int


@dataclass
class SourceGame:
    """A game of a source, as of its last payload."""

    game: Game
    event: str | None = None  # our id; None if the game is quarantined or excluded
    books: set[str] = field(default_factory=set)  # with prices under that id


class _AppliedPayload(NamedTuple):
    events: set[str]  # events of the source that are matched
    doubtful: set[str]
    quotes: int
    books: set[str]
    refused: Counter[str]  # by reason

    def plus(self, other: "_AppliedPayload") -> "_AppliedPayload":
        """Both parts of a payload."""
        return _AppliedPayload(
            self.events | other.events, self.doubtful | other.doubtful, self.quotes + other.quotes,
            self.books | other.books, self.refused + other.refused,
        )  # fmt: skip


class Hub:
    """Receives what fetchers deliver and report.

    Parameters
    ----------
    writer
        Applies the batches.
    matcher
        Its events are the engine's.
    clock
        The time, UTC; None takes it from the payloads.
    payloads
        Where payloads that failed to parse are saved; None discards them.
    overrides
        A file of an operator's decisions about games; changes are applied at once.
    games
        Receives scores.
    futures
        Receives futures.
    replication
        Receives decisions about games, and may limit the size of a step; larger payloads become several steps, divided
        by event.
    """

    def __init__(
        self, writer: Writer, matcher: Matcher, *, clock: Clock | None, payloads: PayloadQuarantine | None = None,
        overrides: Path | None = None, games: GameBoard | None = None, futures: NodeFutures | None = None,
        replication: Replication = ALONE, ages: bool = False,
    ) -> None:  # fmt: skip
        self.engine, self._writer, self.ages = writer.engine, writer, ages
        self._most_quotes = min(replication.most_quotes or MOST_QUOTES, MOST_QUOTES)
        self._replication = replication
        self._matcher, self._clock, self._payloads = matcher, clock, payloads
        self._standing, self._futures = games, NodeFutures() if futures is None else futures
        self.tracks: dict[str, Track] = {}
        self.games: dict[tuple[str, str], SourceGame] = {}  # by source and its id
        self._mentioned: dict[str, dict[str, None]] = {}  # source -> its ids in `games`, the last mentioned at the end
        self._players = PlayerNames()
        self._rows = RowIds()
        self._throttle = MessageThrottle()
        self._overrides, self._overridden = overrides, -1
        self._forgot = self.now()
        self._counted = self.now() - _COUNT_EVERY

    def adopt(self, decisions: Iterable[Decision]) -> None:
        """Continue from the matches and the board of another hub, before anything is delivered."""
        decisions = list(decisions)
        self._matcher.adopt(decisions)
        for one in decisions:
            if one.match.event_id is not None:
                self.games[one.key] = SourceGame(one.game, one.match.event_id)
                self._mentioned.setdefault(one.key[0], {})[one.key[1]] = None
        named = self.engine.table().select("event_id", "player_name").unique().drop_nulls()
        for event, player in named.iter_rows():
            self._players.add(event, player)

    # ---- running ----

    def add(self, feed: FeedSettings) -> Track:
        """Register a feed, so that its status is shown before its first payload."""
        track = self.tracks[feed.name] = Track(feed.name, feed.kind, self.now(), feed.down_after, declared=feed.books)
        track.drift = Drift(venue_of(feed))
        self.conflict(feed.name, slow := too_slow(feed))
        if not slow and (slow := too_slow_in_play(feed)):
            _log.warning("feeds.%s: %s", feed.name, slow)
        return track

    async def run(self, sources: Sequence[Source], *, tick: float = 1.0, state: Path | None = None) -> None:
        """Run all feeds until they end; also lets prices age and saves the state of feeds."""
        for source in sources:
            self.add(source.feed)
        others = [asyncio.create_task(self._ticking(tick))]
        if state is not None:
            others.append(asyncio.create_task(self._saving(state)))
        try:
            async with asyncio.TaskGroup() as group:
                for source in sources:
                    group.create_task(self._watched(source), name=source.feed.name)
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            if state is not None:
                await self.save(state)

    async def _watched(self, source: Source) -> None:
        """Run one feed; unexpected exceptions count as failures."""
        backoff = Backoff(source.feed.backoff, source.feed.backoff_cap)
        while True:
            try:
                await source.run(self)
                return
            except Exception as error:
                failure = Failure(f"internal error: {type(error).__name__}: {error}")
                if self._throttle.is_due(f"{source.feed.name} stopped", str(failure), self.now()):
                    _log.exception("feeds.%s stopped by an internal error", source.feed.name)
                self.failed(source.feed.name, failure)
                await asyncio.sleep(backoff.wait(failure))

    async def _ticking(self, seconds: float) -> None:
        """Advance the board's time."""
        while self._clock is not None:
            await self._override()
            with contextlib.suppress(StalledError):  # while the log is stalled, this is retried later
                await self._writer.written(self._pass_time)
            await asyncio.sleep(seconds)

    async def _override(self) -> None:
        if self._overrides is None:
            return
        try:
            stamp = self._overrides.stat().st_mtime_ns
            if stamp == self._overridden:
                return
            self._overridden = stamp
            decided = parse_overrides(self._overrides.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, OverrideError) as error:
            if self._throttle.is_due("overrides", str(error), self.now()):
                _log.warning("%s: %s; the previous overrides stay in use", self._overrides, error)
            return
        await self._writer.written(self._reload, decided)

    async def _saving(self, path: Path) -> None:
        while True:
            await asyncio.sleep(_SAVE_EVERY_S)
            await self.save(path)

    async def close(self) -> None:
        """Close the writer."""
        await asyncio.to_thread(self._writer.close)

    # ---- reports of fetchers ----

    def now(self) -> datetime:
        """Return the time: the clock's, or that of the newest payload."""
        return self._clock() if self._clock is not None else self.engine.now or datetime.fromtimestamp(0, UTC)

    async def deliver(self, source: str, payload: Payload, part: str = "") -> None:
        """Apply a payload; raises `Failure` if it is rejected. Of a large one, the parts before the failure stay."""
        track = self.tracks[source]
        async with track.delivering:
            payload = await asyncio.to_thread(displayable, payload)
            try:
                applied = await self._applied(source, payload)
            except (ValueError, StalledError) as error:
                raise Failure(f"the board rejected a payload: {error}") from error
            finally:
                track.behind = 0
        now, part_state = self.now(), track.part(part)
        part_state.well(now)
        part_state.books.update(dict.fromkeys(applied.books, now))
        self._share(track, applied.books)
        if strange := track.unknown_books(applied.books):
            _log.warning("feeds.%s: books not in the catalog: %s", source, shortened(strange, 50))
        track.last_payload = now
        track.payloads += 1
        track.quotes += applied.quotes
        for name, times in payload.unmapped.items():
            if name in track.unmapped or len(track.unmapped) < _MOST_UNMAPPED:
                track.unmapped[name] += times
        track.refused.update(payload.refused)
        track.refused.update(applied.refused)
        if (excess := len(payload.games) - MOST_GAMES) > 0:
            track.refused[f"more than {MOST_GAMES:,} games in a payload"] += excess
        track.events |= applied.events
        track.doubtful = (track.doubtful - applied.events) | applied.doubtful

    async def _applied(self, source: str, payload: Payload) -> _AppliedPayload:
        """Apply a payload in one turn of the writer, or in several if it is large."""
        track, games = self.tracks[source], list(_listed(payload).values())
        games.sort(key=lambda game: game.id)
        applied: _AppliedPayload | None
        games, applied = await self._writer.written(self._at_once, source, payload, games)
        if applied is not None:
            return applied
        while games:
            track.behind = len(games)
            games = await self._writer.written(self._match_some, source, games)
        known, ours = await self._writer.written(self._events_of, source, payload)
        parts, quoted = await asyncio.to_thread(_divided, payload, known, ours, self._most_quotes)
        track.behind = sum(len(part.games) for part in parts)
        done: list[_AppliedPayload] = []
        for part in parts[:-1]:
            done.append(await self._writer.written(self._apply, source, part, (), payload))
            track.behind -= len(part.games)
        done.append(await self._writer.written(self._apply_last, source, parts[-1], payload, quoted))
        return reduce(_AppliedPayload.plus, done)

    async def received(self, source: str, place: str, body: bytes) -> None:
        """Count what the contract of a feed does not know; values are logged once."""
        track = self.tracks[source]
        track.requests += " " in place  # a method and a path
        for one in await track.drift.look(place, body):
            if one.kind != NEW_FIELD:
                _log.warning("feeds.%s: not in its contract: %s", source, one)

    async def unreadable(self, source: str, body: bytes, reason: str) -> None:
        """Save a body that failed to parse."""
        if self._payloads is not None:
            try:
                await asyncio.to_thread(self._payloads.keep, source, body, reason, self.now())
            except OSError as error:
                if self._throttle.is_due(f"{source} kept", str(error), self.now()):
                    _log.warning("feeds.%s: a payload that failed to parse could not be saved: %s", source, error)

    def expect(self, source: str, part: str, within: float, *, polled: bool = False) -> None:
        """Set how often a part of a source is expected to report; `polled`: its payloads list all its books."""
        tracked = self.tracks[source].part(part)
        if tracked.seen_at is None and tracked.failing is None:
            tracked.since = self.now()
        tracked.within, tracked.polled = within, polled

    def alive(self, source: str, part: str = "") -> None:
        """Report that a feed is alive without new data."""
        self.tracks[source].part(part).well(self.now())

    def failed(self, source: str, failure: Failure, part: str = "") -> None:
        track = self.tracks[source]
        track.failures_total += 1
        track.has_failed.set()
        track.part(part).failed(failure, self.now())
        place = f"feeds.{source}" + (f" ({part})" if part else "")
        if self._throttle.is_due(place, str(failure), self.now()):
            _log.warning("%s: %s", place, failure)

    def warn(self, source: str, reason: str, public: str = "") -> None:
        """Report a problem of a source that keeps running; an empty reason clears it."""
        track = self.tracks[source]
        if reason and reason != track.warning:
            _log.warning("feeds.%s: %s", source, reason)
        track.warning, track.public_warning = reason, public

    def conflict(self, source: str, reason: str) -> None:
        """Report why a source's prices cannot be kept fresh; an empty reason clears it."""
        if reason and reason != self.tracks[source].conflict:
            _log.warning("feeds.%s: %s", source, reason)
        self.tracks[source].conflict = reason

    def takes(self, source: str, seconds: float) -> None:
        """Only a caller of `fetch` waits for all of it."""

    def credits(self, source: str, left: int | None, used: int | None, an_hour: float | None) -> None:
        """Report the credits left, used and spent per hour."""
        self.tracks[source].credits = (left, used, an_hour)

    def written(self, source: str, at: datetime | None) -> None:
        """Report when the oldest document of a source was written."""
        self.tracks[source].written_at = at

    def caught_up(self, source: str, *, ended: bool = False) -> None:
        """Report that the initial data has been delivered; `ended`: no more will follow."""
        self.tracks[source].caught_up.set()
        for part in self.tracks[source].parts.values():
            part.ended |= ended

    def _share(self, track: Track, books: Iterable[str]) -> None:
        """Warn once about books that another feed carries too, unless both are configured to (`books`)."""
        new = {catalog.book(book).id for book in books} - track.carried
        track.carried |= new
        for other in self.tracks.values():
            both = new & (other.carried | {catalog.book(book).id for book in other.declared})
            both -= track.shared.keys() & other.shared.keys()
            if other is track or not both or (track.declared and other.declared):
                continue
            one, two = sorted((track, other), key=lambda each: each.name)
            for book in both:
                one.shared[book] = two.shared[book] = None
            _log.warning(
                "feeds.%s and feeds.%s both carry %s: their prices replace each other; set `books` for both",
                one.name, two.name, shortened(sorted(both)),
            )  # fmt: skip

    # ---- the writer's thread ----

    def _step(
        self, quotes: Sequence[Mapping[str, Any]], more: Mapping[str, Any], moment: datetime | None = None
    ) -> Update:
        """Apply a batch; time does not go back, even if the clock does."""
        last = self.engine.now
        now = self._clock() if self._clock is not None else moment
        if now is None and last is None and not any(quote.get("last_seen_at") for quote in quotes):
            now = datetime.fromtimestamp(0, UTC)
        if now is not None and last is not None:
            now = max(now, last)
        update = self._writer.step(quotes, now, **more)
        self._rows.follow(update)
        return update

    def _pass_time(self) -> None:
        """Advance the time, and drop games that ended long ago."""
        now = self.now()
        if now - self._forgot > _FORGET_EVERY:
            self._forgot = now
            self._forget(now - _REMEMBERED)
            self._replication.decided(self._matcher)
        if self._standing is not None:
            self._standing.put((), now)
        self._step((), {})
        if not timedelta(0) <= now - self._counted < _COUNT_EVERY:
            self._counted = now
            self._count_stale()

    def _count_stale(self) -> None:
        """Count the prices on the board, and those rejected as stale, by feed."""
        quoted = [(source, game.event, book) for (source, _), game in self.games.items() for book in game.books]
        named = pl.DataFrame(
            quoted, {"source": pl.String, "event_id": pl.String, "sportsbook": pl.String}, orient="row"
        )
        board = self.engine.rejected_by("stale")
        counted = named.unique().join(board, on=["event_id", "sportsbook"]).group_by("source")
        counts = {source: counts for source, *counts in counted.agg(pl.col("prices", "rejected").sum()).rows()}
        for source, track in self.tracks.items():
            track.prices, track.stale = counts.get(source, (0, 0))

    def _forget(self, before: datetime) -> None:
        self._matcher.forget(before)
        self._futures.apply((), self.now())
        starts = {key: known.game.start for key, known in self.games.items()}
        for key in [key for key, start in starts.items() if start is not None and start < before]:
            self._drop(*key)

    def _drop(self, source: str, event: str) -> None:
        """Drop a source's game."""
        self._players.forget(self.games.pop((source, event)).event or "")
        del self._mentioned[source][event]
        if track := self.tracks.get(source):
            track.events.discard(event)
            track.doubtful.discard(event)

    def _reload(self, overrides: Overrides) -> None:
        """Apply new overrides; prices are removed from events they no longer belong to."""
        moved = []
        changed = self._matcher.reload(overrides)
        self._replication.decided(self._matcher, ((source, event) for source, event, _ in changed))
        for source, event, match in changed:
            known = self.games.get((source, event))
            if known is not None and known.event is not None and known.event != match.event_id:
                moved += [(book, known.event) for book in sorted(known.books)]
                self._unsay(source, known.event)
                known.event, known.books = None, set()
        if moved:
            self._step((), {"complete": moved})

    def _at_once(
        self, source: str, payload: Payload, games: Sequence[Game]
    ) -> tuple[Sequence[Game], _AppliedPayload | None]:
        """Apply a payload if that takes one turn; otherwise begin to match its games, and return the others."""
        self._make_room(source, payload)
        left = self._match_some(source, games)
        if left or len(payload.quotes) > self._most_quotes:
            return left, None
        return left, self._apply(source, payload)

    def _make_room(self, source: str, payload: Payload) -> None:
        """Drop games of a source that it mentioned longest ago, if it has too many."""
        known, listed = self._mentioned.get(source, {}), {game.id for game in payload.games}
        excess = len(known) + sum(event not in known for event in listed) - MOST_GAMES
        if excess <= 0:
            return
        gone = list(islice((event for event in known if event not in listed), excess))
        for event in gone:
            self._drop(source, event)
            self._matcher.drop(source, event)
        self._replication.decided(self._matcher, [(source, event) for event in gone])

    def _match_some(self, source: str, games: Sequence[Game]) -> Sequence[Game]:
        """Match games in one turn; return those that are left. The limit counts work, and is not a time."""
        limit = self._matcher.work + _WORK
        for at, game in enumerate(games):
            if self._matcher.work >= limit:
                return games[at:]
            if not self._matcher.knows(source, game):
                self._matcher.match(source, game)
        return ()

    def _games_of(self, source: str, payload: Payload) -> dict[str, Game]:
        """Return the games that a payload lists or mentions. Quotes of games that are not known cannot be matched."""
        mentioned = {str(quote["event_id"]) for quote in payload.quotes}
        mentioned.update(event for _, event in payload.complete if event is not None)
        mentioned.update(reading.event for reading in payload.scores)
        known = {event: self.games[source, event].game for event in mentioned if (source, event) in self.games}
        return known | _listed(payload)

    def _events_of(self, source: str, payload: Payload) -> tuple[dict[str, Game], dict[str, str]]:
        """Return the games of a payload, and our ids of those that are matched."""
        games = self._games_of(source, payload)
        return games, self._matched(source, games)[0]

    def _apply_last(
        self, source: str, part: Payload, payload: Payload, quoted: Iterable[tuple[str, str]]
    ) -> _AppliedPayload:  # fmt: skip
        """Apply the last part of a payload, and remove its complete books from events where it does not quote them."""
        books = {catalog.book(book).id for book, event in payload.complete if event is None}
        board = self.engine.rejected_by("stale").select("sportsbook", "event_id") if books else pl.DataFrame()
        ours = self._events_of(source, part)[1]
        ours |= {
            event: known.event for _, event in quoted if (known := self.games.get((source, event))) and known.event
        }
        listed = {(catalog.book(book).id, ours.get(event)) for book, event in quoted}
        gone = [(book, event) for book, event in board.rows() if catalog.book(book).id in books]
        gone = [pair for pair in gone if (catalog.book(pair[0]).id, pair[1]) not in listed]
        return self._apply(source, part, gone, payload)

    def _apply(
        self, source: str, payload: Payload, gone: Sequence[tuple[str, str]] = (), whole: Payload | None = None
    ) -> _AppliedPayload:
        """Apply a payload, or a part of `whole`; `gone` are books and our events without prices."""
        games = self._games_of(source, payload)
        ours, doubtful = self._matched(source, games)
        quotes = placed_quotes(payload.quotes, ours, self._players)
        moved = self._moved(source, games, ours)
        complete = [
            (book, event and ours.get(event)) for book, event in payload.complete if event is None or event in ours
        ]
        events = [
            {"event_id": ours[game.id], "status": game.status, "event_start_time": game.start}
            for game in payload.games
            if game.id in ours and game.status in _STATUSES
        ]
        quoted = quotes
        if payload.removed and whole is not None:
            quoted = placed_quotes(whole.quotes, self._events_of(source, whole)[1], self._players)
        more = {
            "removed": self._rows.removed(source, payload.removed, quoted),
            "complete": [*moved, *complete, *gone],
            "events": events,
        }
        now = self._clock() if self._clock is not None else payload.moment or self.now()
        with self._futures.applying(payload.futures, now, source=source, removed=payload.removed) as refused:
            update = self._step(quotes, more, payload.moment)
        self._score(source, payload, ours, games)
        self._remember(source, games, ours, payload)
        self._rows.forget(source, payload.removed)
        self._rows.learn(source, quotes)
        books = {str(quote["sportsbook"]) for quote in (*payload.quotes, *payload.futures)}
        why = Counter([*update.rejected["guard"], *refused])
        return _AppliedPayload(set(ours), doubtful, len(quotes) + len(payload.futures), books, why)

    def _score(self, source: str, payload: Payload, ours: Mapping[str, str], games: Mapping[str, Game]) -> None:
        """Report the state of a source's games, under our events and their home and away teams."""
        if self._standing is None or not payload.scores:
            return
        readings, teams = [], {}
        for reading in payload.scores:
            event = ours.get(reading.event)
            if event is None:
                continue
            game, turned = games[reading.event], self._matcher.match(source, games[reading.event]).turned
            home, away = (game.away, game.home) if turned else (game.home, game.away)
            readings.append((turned_round(reading) if turned else reading)._replace(event=event, source=source))
            teams[event] = Teams(game.sport, game.league, home, away)
        self._standing.put(readings, self.now(), teams)

    def _unsay(self, source: str, event: str) -> None:
        """Drop the scores that a source reported for the wrong event."""
        if self._standing is not None:
            self._standing.drop(source, event)

    def _matched(self, source: str, games: Mapping[str, Game]) -> tuple[dict[str, str], set[str]]:
        """Return our ids of a feed's events, and those that are quarantined or excluded."""
        ours: dict[str, str] = {}
        doubtful: set[str] = set()
        for event in sorted(games):
            match = self._matcher.match(source, games[event])
            if match.event_id is None:
                doubtful.add(event)
            else:
                ours[event] = match.event_id
        self._replication.decided(self._matcher, ((source, event) for event in games))
        return ours, doubtful

    def _moved(self, source: str, named: Iterable[str], ours: Mapping[str, str]) -> list[tuple[str, str]]:
        """Books whose prices leave an event because a game was matched to another one; also of other sources."""
        changed = self._matcher.changes()
        self._replication.decided(self._matcher, ((other, event) for other, event, _ in changed))
        matches = [((source, event), ours.get(event)) for event in named]
        matches += [((other, event), match.event_id) for other, event, match in changed]
        left: dict[tuple[str, str], str] = {}
        for key, match in matches:
            known = self.games.get(key)
            if known is not None and known.event is not None and known.event != match:
                left[key] = known.event
        for (other, _), old in left.items():
            self._unsay(other, old)
        return [(book, old) for key, old in left.items() for book in sorted(self.games[key].books)]

    def _remember(self, source: str, games: Mapping[str, Game], ours: Mapping[str, str], payload: Payload) -> None:
        mentioned = self._mentioned.setdefault(source, {})
        for event, game in games.items():
            mentioned.pop(event, None)
            mentioned[event] = None
            known = self.games.setdefault((source, event), SourceGame(game))
            known.game = game
            if known.event != ours.get(event):
                known.event, known.books = ours.get(event), set()
        for quote in payload.quotes:
            if quote["event_id"] in ours:
                self.games[source, quote["event_id"]].books.add(quote["sportsbook"])

    # ---- for the operator ----

    def statuses(self) -> list[SourceStatus]:
        now = self.now()
        return [self.tracks[name].status(now) for name in sorted(self.tracks)]

    def books(self) -> list[BookStatus]:
        return books_of(list(self.tracks.values()), self.now())

    def quarantined(self) -> list[QuarantinedGame]:
        """Return quarantined games; call it only while nothing is being written."""
        return self._matcher.quarantined()

    def unmapped(self) -> list[UnmappedMarket]:
        """Return market names that are not in the catalog, most frequent first."""
        names = [
            UnmappedMarket(track.name, book, market, times)
            for track in self.tracks.values()
            for (book, market), times in track.unmapped.items()
        ]
        return sorted(names, key=lambda one: (-one.times, one))

    async def save(self, path: Path) -> None:
        """Save the state of the feeds atomically."""
        quarantined = (await self._writer.written(self.quarantined))[:_MOST_QUARANTINED]
        state = {
            "at": self.now(), "sources": self.statuses(), "books": self.books(), "unmapped": self.unmapped(),
            "quarantined": quarantined,
        }  # fmt: skip
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            written = path.with_suffix(".new")
            written.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=1))
            written.replace(path)


def _listed(payload: Payload) -> dict[str, Game]:
    return {game.id: game for game in payload.games[:MOST_GAMES]}


def _divided(
    payload: Payload, games: Mapping[str, Game], ours: Mapping[str, str], most: int
) -> tuple[list[Payload], set[tuple[str, str]]]:
    """Divide a payload into parts of at most so many quotes, and return them with what it quotes, by book and event.

    An event is divided, by book, only if it has more. Each part lists the games of its events, and what is complete for
    them. Removals and futures are in the first part; scores in the last.
    """
    books = {book for book, event in payload.complete if event is None}
    listed = _listed(payload)
    quoted = {(quote["sportsbook"], quote["event_id"]) for quote in payload.quotes}
    events: dict[str, list[str]] = {}  # ours, or the source's if there is none -> the source's
    quotes: dict[str, list[dict[str, Any]]] = {}
    complete: dict[str, list[str]] = {}
    for event in games:
        events.setdefault(ours.get(event, event), []).append(event)
    for quote in payload.quotes:
        quotes.setdefault(quote["event_id"], []).append(quote)
    for book, whole in [*payload.complete, *((book, event) for book, event in sorted(quoted) if book in books)]:
        if whole is not None:
            complete.setdefault(whole, []).append(book)
    parts: list[tuple[list[Game], list[dict[str, Any]], list[tuple[str, str | None]]]] = [([], [], [])]
    for together in events.values():
        batch = [quote for event in together for quote in quotes.get(event, ())]
        whole_of: dict[str, list[tuple[str, str | None]]] = {}
        for event in together:
            for book in complete.get(event, ()):
                whole_of.setdefault(book, []).append((book, event))
        batches = {"": batch}
        if len(batch) > most:
            batches = {}
            for quote in batch:
                batches.setdefault(quote["sportsbook"], []).append(quote)
        named = [listed[event] for event in together if event in listed]
        for book, some in batches.items():
            if parts[-1][1] and len(parts[-1][1]) + len(some) > most:
                parts.append(([], [], []))
            parts[-1][0].extend(named)
            parts[-1][1].extend(some)
            parts[-1][2].extend(whole_of.pop(book, ()))
            named = []
        # Undivided, or books without quotes.
        parts[-1][2].extend(pair for pairs in whole_of.values() for pair in pairs)
    out = [Payload(*part, moment=payload.moment) for part in parts]
    out[0] = out[0]._replace(removed=payload.removed, futures=payload.futures)
    out[-1] = out[-1]._replace(scores=payload.scores)
    return out, quoted
