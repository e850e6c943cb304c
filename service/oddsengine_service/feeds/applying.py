"""Applying the payloads of feeds to the board."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import polars as pl

from oddsengine import catalog
from oddsengine.board.event_status import STATUSES
from oddsengine.feeds import Game, Payload
from oddsengine.feeds.merged_scores import swapped_sides
from oddsengine.live.update import Update
from oddsengine.matching import Decision, Matcher, Overrides, PlayerNames, QuarantinedGame, placed_quotes
from oddsengine_service.board.futures_board import NodeFutures
from oddsengine_service.board.game_store import GameBoard
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.feed_rows import RowIds
from oddsengine_service.feeds.source_games import SourceGames, listed_games
from oddsengine_service.feeds.status import Track
from oddsengine_service.replication import Replication
from oddsengine_service.wire.games_response import Teams

MOST_QUOTES = 2_000  # applied in one turn
NO_START = "no start time"
"""Why prices are set aside whose game cannot be matched without a start."""
_WORK = 10_000  # comparisons by the matcher in one turn, about 0.1 s
_COUNT_EVERY = timedelta(seconds=5)
_FORGET_EVERY = timedelta(hours=1)
_REMEMBERED = timedelta(days=3)  # after a game's start
Clock = Callable[[], datetime]


class AppliedPayload(NamedTuple):
    """What became of a payload."""

    events: set[str]  # events of the source that are matched
    doubtful: set[str]
    quotes: int
    books: set[str]
    refused: Counter[str]  # by reason

    def plus(self, other: "AppliedPayload") -> "AppliedPayload":
        """Both parts of a payload."""
        return AppliedPayload(
            self.events | other.events, self.doubtful | other.doubtful, self.quotes + other.quotes,
            self.books | other.books, self.refused + other.refused,
        )  # fmt: skip


class PayloadApplier:
    """Applies payloads, matches their games, and lets prices age; only for the writer's thread, but for `now`.

    The parameters are those of `Hub`; `tracks` has the state of each source.
    """

    def __init__(
        self, writer: Writer, matcher: Matcher, clock: Clock | None, scores: GameBoard | None, futures: NodeFutures,
        replication: Replication, tracks: Mapping[str, Track],
    ) -> None:  # fmt: skip
        self._writer, self._matcher, self.clock = writer, matcher, clock
        self._scores, self._futures, self._replication, self._tracks = scores, futures, replication, tracks
        self.most_quotes = min(replication.most_quotes or MOST_QUOTES, MOST_QUOTES)
        self.games = SourceGames()
        self._players = PlayerNames()
        self._rows = RowIds()
        self._forgot = self.now()
        self._counted = self.now() - _COUNT_EVERY

    def now(self) -> datetime:
        """Return the time: the clock's, or that of the newest payload."""
        return self.clock() if self.clock is not None else self._writer.engine.now or datetime.fromtimestamp(0, UTC)

    def adopt(self, decisions: Iterable[Decision]) -> None:
        """Continue from the matches and the board of another hub, before anything is delivered."""
        decisions = list(decisions)
        self._matcher.adopt(decisions)
        for one in decisions:
            if one.match.event_id is not None:
                self.games.adopt(one.key, one.game, one.match.event_id)
        named = self._writer.engine.table().select("event_id", "player_name").unique().drop_nulls()
        for event, player in named.iter_rows():
            self._players.add(event, player)

    def _step(
        self, quotes: Sequence[Mapping[str, Any]], more: Mapping[str, Any], moment: datetime | None = None
    ) -> Update:
        """Apply a batch; time does not go back, even if the clock does."""
        last = self._writer.engine.now
        now = self.clock() if self.clock is not None else moment
        if now is None and last is None and not any(quote.get("last_seen_at") for quote in quotes):
            now = datetime.fromtimestamp(0, UTC)
        if now is not None and last is not None:
            now = max(now, last)
        update = self._writer.step(quotes, now, **more)
        self._rows.follow(update)
        return update

    def pass_time(self) -> None:
        """Advance the time, and drop games that ended long ago."""
        now = self.now()
        if now - self._forgot > _FORGET_EVERY:
            self._forgot = now
            self._forget(now - _REMEMBERED)
            self._replication.decided(self._matcher)
        if self._scores is not None:
            self._scores.put((), now)
        self._step((), {})
        if not timedelta(0) <= now - self._counted < _COUNT_EVERY:
            self._counted = now
            self._count_stale()

    def _count_stale(self) -> None:
        """Count the prices on the board, and those rejected as stale, by feed."""
        quoted = [(source, game.event, book) for (source, _), game in self.games.known.items() for book in game.books]
        named = pl.DataFrame(
            quoted, {"source": pl.String, "event_id": pl.String, "sportsbook": pl.String}, orient="row"
        )
        board = self._writer.engine.rejected_by("stale")
        counted = named.unique().join(board, on=["event_id", "sportsbook"]).group_by("source")
        counts = {source: counts for source, *counts in counted.agg(pl.col("prices", "rejected").sum()).rows()}
        for source, track in self._tracks.items():
            track.prices, track.stale = counts.get(source, (0, 0))

    def _forget(self, before: datetime) -> None:
        self._matcher.forget(before)
        self._futures.apply((), self.now())
        starts = {key: known.game.start for key, known in self.games.known.items()}
        for key in [key for key, start in starts.items() if start is not None and start < before]:
            self._drop(*key)

    def _drop(self, source: str, event: str) -> None:
        """Drop a source's game."""
        self._players.forget(self.games.drop(source, event).event or "")
        if track := self._tracks.get(source):
            track.events.discard(event)
            track.doubtful.discard(event)

    def reload(self, overrides: Overrides) -> None:
        """Apply new overrides; prices are removed from events they no longer belong to."""
        moved = []
        changed = self._matcher.reload(overrides)
        self._replication.decided(self._matcher, ((source, event) for source, event, _ in changed))
        for source, event, match in changed:
            known = self.games.known.get((source, event))
            if known is not None and known.event is not None and known.event != match.event_id:
                moved += [(book, known.event) for book in sorted(known.books)]
                self._unsay(source, known.event)
                known.event, known.books = None, set()
        if moved:
            self._step((), {"complete": moved})

    def apply_at_once(
        self, source: str, payload: Payload, games: Sequence[Game]
    ) -> tuple[Sequence[Game], AppliedPayload | None]:
        """Apply a payload if that takes one turn; otherwise begin to match its games, and return the others."""
        self._make_room(source, payload)
        left = self.match_some(source, games)
        if left or len(payload.quotes) > self.most_quotes:
            return left, None
        return left, self.apply(source, payload)

    def _make_room(self, source: str, payload: Payload) -> None:
        """Drop games of a source that it mentioned longest ago, if it has too many."""
        unlisted = self.games.surplus(source, payload)
        for event in unlisted:
            self._drop(source, event)
            self._matcher.drop(source, event)
        self._replication.decided(self._matcher, [(source, event) for event in unlisted])

    def match_some(self, source: str, games: Sequence[Game]) -> Sequence[Game]:
        """Match games in one turn; return those that are left. The limit counts work, and is not a time."""
        limit = self._matcher.work + _WORK
        for at, game in enumerate(games):
            if self._matcher.work >= limit:
                return games[at:]
            if not self._matcher.knows(source, game):
                self._matcher.match(source, game)
        return ()

    def events_of(self, source: str, payload: Payload) -> tuple[dict[str, Game], dict[str, str]]:
        """Return the games of a payload, and our ids of those that are matched."""
        games = self.games.of(source, payload)
        return games, self._matched(source, games)[0]

    def apply_last(
        self, source: str, part: Payload, payload: Payload, quoted: Iterable[tuple[str, str]]
    ) -> AppliedPayload:  # fmt: skip
        """Apply the last part of a payload, and remove its complete books from events where it does not quote them."""
        books = {catalog.book(book).id for book, event in payload.complete if event is None}
        board = self._writer.engine.rejected_by("stale").select("sportsbook", "event_id") if books else pl.DataFrame()
        ours = self.events_of(source, part)[1]
        ours |= {
            event: known.event
            for _, event in quoted
            if (known := self.games.known.get((source, event))) and known.event
        }
        listed = {(catalog.book(book).id, ours.get(event)) for book, event in quoted}
        unlisted = [(book, event) for book, event in board.rows() if catalog.book(book).id in books]
        unlisted = [pair for pair in unlisted if (catalog.book(pair[0]).id, pair[1]) not in listed]
        return self.apply(source, part, unlisted, payload)

    def apply(
        self, source: str, payload: Payload, unlisted: Sequence[tuple[str, str]] = (), whole: Payload | None = None
    ) -> AppliedPayload:
        """Apply a payload, or a part of `whole`; `unlisted` are books and our events without prices."""
        games = self.games.of(source, payload)
        ours, doubtful = self._matched(source, games)
        quotes = placed_quotes(payload.quotes, ours, self._players)
        moved = self._moved(source, games, ours)
        complete = [
            (book, event and ours.get(event)) for book, event in payload.complete if event is None or event in ours
        ]
        events = [
            {"event_id": ours[game.id], "status": game.status, "event_start_time": game.start}
            for game in payload.games
            if game.id in ours and game.status in STATUSES
        ]
        quoted = quotes
        if payload.removed and whole is not None:
            quoted = placed_quotes(whole.quotes, self.events_of(source, whole)[1], self._players)
        more = {
            "removed": self._rows.removed(source, payload.removed, quoted),
            "complete": [*moved, *complete, *unlisted],
            "events": events,
        }
        now = self.clock() if self.clock is not None else payload.moment or self.now()
        with self._futures.applying(payload.futures, now, source=source, removed=payload.removed) as refused:
            update = self._step(quotes, more, payload.moment)
        self._put_scores(source, payload, ours, games)
        self.games.remember(source, games, ours, payload)
        self._rows.forget(source, payload.removed)
        self._rows.learn(source, quotes)
        books = {str(quote["sportsbook"]) for quote in (*payload.quotes, *payload.futures)}
        why = Counter([*update.rejected["guard"], *refused])
        if without := {event for event in doubtful if games[event].start is None}:
            why[NO_START] += sum(quote["event_id"] in without for quote in payload.quotes)
        return AppliedPayload(set(ours), doubtful, len(quotes) + len(payload.futures), books, why)

    def _put_scores(self, source: str, payload: Payload, ours: Mapping[str, str], games: Mapping[str, Game]) -> None:
        """Report the state of a source's games, under our events and their home and away teams."""
        if self._scores is None or not payload.scores:
            return
        readings, teams = [], {}
        for reading in payload.scores:
            event = ours.get(reading.event)
            if event is None:
                continue
            game, swapped = games[reading.event], self._matcher.match(source, games[reading.event]).swapped
            home, away = (game.away, game.home) if swapped else (game.home, game.away)
            readings.append((swapped_sides(reading) if swapped else reading)._replace(event=event, source=source))
            teams[event] = Teams(game.sport, game.league, home, away)
        self._scores.put(readings, self.now(), teams)

    def _unsay(self, source: str, event: str) -> None:
        """Drop the scores that a source reported for the wrong event."""
        if self._scores is not None:
            self._scores.drop(source, event)

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
            known = self.games.known.get(key)
            if known is not None and known.event is not None and known.event != match:
                left[key] = known.event
        for (other, _), old in left.items():
            self._unsay(other, old)
        return [(book, old) for key, old in left.items() for book in sorted(self.games.known[key].books)]

    def quarantined(self) -> list[QuarantinedGame]:
        """Return quarantined games."""
        return self._matcher.quarantined()


def divided(
    payload: Payload, games: Mapping[str, Game], ours: Mapping[str, str], most: int
) -> tuple[list[Payload], set[tuple[str, str]]]:
    """Divide a payload into parts of at most so many quotes, and return them with what it quotes, by book and event.

    An event is divided, by book, only if it has more. Each part lists the games of its events, and what is complete for
    them. Removals and futures are in the first part; scores in the last.
    """
    books = {book for book, event in payload.complete if event is None}
    listed = listed_games(payload)
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
