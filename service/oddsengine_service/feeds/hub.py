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
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import msgspec

from oddsengine import catalog
from oddsengine.feeds import Payload
from oddsengine.feeds.contract_types import NEW_FIELD
from oddsengine.feeds.display import displayable
from oddsengine.matching import (
    Matcher,
    OverrideError,
    parse_overrides,
)
from oddsengine.plugins import described
from oddsengine.sources import FeedSettings, Source, contract_of
from oddsengine.sources.drift import Drift
from oddsengine.sources.failure import Failure
from oddsengine.sources.polling_checks import too_slow, too_slow_in_play
from oddsengine.sources.retry import Backoff
from oddsengine_service.board.futures_board import NodeFutures
from oddsengine_service.board.game_store import GameBoard
from oddsengine_service.board.writer import StalledError, Writer
from oddsengine_service.feeds.applying import NO_START, AppliedPayload, Clock, PayloadApplier, divided
from oddsengine_service.feeds.quarantine import PayloadQuarantine
from oddsengine_service.feeds.source_games import listed_games, refused_games
from oddsengine_service.feeds.status import BookStatus, SourceStatus, Track, books_of, shortened
from oddsengine_service.replication import ALONE, Replication

_log = logging.getLogger("oddsengine.feeds")
_SAVE_EVERY_S = 10.0
_MOST_QUARANTINED = 1_000  # in the saved state
_MOST_UNMAPPED = 10_000  # market names of a source
_AGAIN = timedelta(minutes=10)  # between two equal messages in the log


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
        self._payloads = payloads
        self.tracks: dict[str, Track] = {}
        futures = NodeFutures() if futures is None else futures
        self.applier = PayloadApplier(writer, matcher, clock, games, futures, replication, self.tracks)
        self._throttle = MessageThrottle()
        self._overrides, self._overridden = overrides, -1

    # ---- running ----

    def add(self, feed: FeedSettings) -> Track:
        """Register a feed, so that its status is shown before its first payload."""
        track = self.tracks[feed.name] = Track(feed.name, feed.kind, self.now(), feed.down_after, declared=feed.books)
        track.drift = Drift(contract_of(feed))
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
                    group.create_task(self.watch(source), name=source.feed.name)
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            if state is not None:
                await self.save(state)

    async def watch(self, source: Source) -> None:
        """Run one feed; whatever it raises counts as a failure, and it is run again."""
        backoff = Backoff(source.feed.backoff, source.feed.backoff_cap)
        task = asyncio.current_task()
        while True:
            try:
                await source.run(self)
                return
            except asyncio.CancelledError as error:
                if task is not None and task.cancelling():
                    raise
                failure = self._stopped(source.feed.name, error)
            except (Exception, SystemExit) as error:
                failure = self._stopped(source.feed.name, error)
            await asyncio.sleep(backoff.wait(failure))

    def _stopped(self, name: str, error: BaseException) -> Failure:
        """Report what a feed has raised."""
        failure = error if isinstance(error, Failure) else Failure(f"internal error: {described(error)}")
        if self._throttle.is_due(f"{name} stopped", str(failure), self.now()):
            _log.error("feeds.%s stopped by an error", name, exc_info=error)
        self.failed(name, failure)
        return failure

    async def _ticking(self, seconds: float) -> None:
        """Advance the board's time."""
        while self.applier.clock is not None:
            await self._override()
            with contextlib.suppress(StalledError):  # while the log is stalled, this is retried later
                await self._writer.written(self.applier.pass_time)
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
        await self._writer.written(self.applier.reload, decided)

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
        return self.applier.now()

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
        without = applied.refused[NO_START]
        if without and self._throttle.is_due(f"{source} start", NO_START, now):
            _log.warning(
                "feeds.%s: %d prices are set aside: their games have no start time (event_start_time)", source, without
            )
        track.refused.update(refused_games(payload))
        track.events |= applied.events
        track.doubtful = (track.doubtful - applied.events) | applied.doubtful

    async def _applied(self, source: str, payload: Payload) -> AppliedPayload:
        """Apply a payload in one turn of the writer, or in several if it is large."""
        track, games, applier = self.tracks[source], list(listed_games(payload).values()), self.applier
        games.sort(key=lambda game: game.id)
        applied: AppliedPayload | None
        games, applied = await self._writer.written(applier.apply_at_once, source, payload, games)
        if applied is not None:
            return applied
        while games:
            track.behind = len(games)
            games = await self._writer.written(applier.match_some, source, games)
        known, ours = await self._writer.written(applier.events_of, source, payload)
        parts, quoted = await asyncio.to_thread(divided, payload, known, ours, applier.most_quotes)
        track.behind = sum(len(part.games) for part in parts)
        done: list[AppliedPayload] = []
        for part in parts[:-1]:
            done.append(await self._writer.written(applier.apply, source, part, (), payload))
            track.behind -= len(part.games)
        done.append(await self._writer.written(applier.apply_last, source, parts[-1], payload, quoted))
        return reduce(AppliedPayload.plus, done)

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

    # ---- for the operator ----

    def statuses(self) -> list[SourceStatus]:
        now = self.now()
        return [self.tracks[name].status(now) for name in sorted(self.tracks)]

    def books(self) -> list[BookStatus]:
        return books_of(list(self.tracks.values()), self.now())

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
        quarantined = (await self._writer.written(self.applier.quarantined))[:_MOST_QUARANTINED]
        state = {
            "at": self.now(), "sources": self.statuses(), "books": self.books(), "unmapped": self.unmapped(),
            "quarantined": quarantined,
        }  # fmt: skip
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            written = path.with_suffix(".new")
            written.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=1))
            written.replace(path)
