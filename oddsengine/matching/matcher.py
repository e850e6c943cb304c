"""Assigns games of feeds to events, so that an event has one id in all feeds.

A game joins others of its league with similar names (`name_likeness`, `persons`) and starts (`doubleheaders`). Doubtful
games are quarantined without an event: a false match creates false arbitrages, a missing match only loses prices.
Decisions are revised: the second game of a doubleheader, a corrected start or a full name can release a game or move
it, which `Matcher.changes` reports. Only `overrides` are final.

The id of an event does not change while it has a game, even if the start moves.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from oddsengine import catalog
from oddsengine.feeds.payload import Game
from oddsengine.matching import event_ids, name_likeness
from oddsengine.matching.doubleheaders import CLOSE, Key, Meetings, arrange, gap
from oddsengine.matching.known_games import LONGEST, GameEntry, GameIndex, League, MatchedEvent, fit, to_utc
from oddsengine.matching.overrides import NEVER, NEW, NONE, Overrides

THRESHOLD = 0.8  # above: the same pair
DOUBT = 0.55  # below: different pairs; between: quarantined
# One full name, and a word shared by several teams.
CITY = round(0.7 * name_likeness.VAGUE + 0.3 * name_likeness.SURE, 4)
MOST_OF_SOURCE = 24  # games of one source between two teams within the window
_MOST = 200  # games of all sources between two teams, each within the window of another
_BETTER = 0.05  # minimum advantage over the second best
_RESERVED = timedelta(days=7)  # how long an id is reserved after its event was forgotten


class Match(NamedTuple):
    """Result of matching a game. Without an event it is quarantined, or excluded by an override."""

    event_id: str | None
    score: float
    reason: str
    swapped: bool = False  # home and away are swapped in the source
    candidates: tuple[str, ...] = ()  # event ids, or `source:id` of quarantined games
    new: bool = False  # first game of its event


class QuarantinedGame(NamedTuple):
    source: str
    game: Game
    match: Match


class Decision(NamedTuple):
    """The state of one game in a matcher, which another matcher can adopt."""

    key: Key
    game: Game
    league: League
    number: int  # order of arrival
    start: datetime | None
    first: datetime | None
    override: str
    match: Match
    event: tuple[str, str, str, str, str, int] | None  # id, sport, league, home, away, number


class Matcher:
    """Matches games of feeds, and revises matches when new games arrive.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> matcher, start = Matcher(), datetime(2026, 2, 9, 0, 30, tzinfo=UTC)
    >>> first = Game("17", "basketball", "nba", "Los Angeles Lakers", "Boston Celtics", start)
    >>> matcher.match("one", first).event_id
    'nba_celtics_lakers_2026-02-08'
    >>> again = matcher.match("two", Game("a", "basketball", "nba", "BOS Celtics", "LA Lakers", start))
    >>> again.event_id == matcher.match("one", first).event_id, again.swapped
    (True, True)
    """

    def __init__(self, overrides: Overrides = NONE, threshold: float = THRESHOLD) -> None:
        self._overrides = overrides
        self._threshold = threshold
        self._index = GameIndex()
        self._matches: dict[Key, Match] = {}
        self._changed: dict[Key, None] = {}
        self._numbers: dict[str, int] = {}  # the last number appended to an id

    def match(self, source: str, game: Game) -> Match:
        """Return the event of a feed's game; for an unchanged game this is a lookup."""
        key = source, game.id
        entry = self._index.entries.get(key)
        if entry is not None and entry.game[1:6] == game[1:6]:
            entry.is_recent = True
            return self._match_of(entry)
        entry = self._enter(key, game) if entry is None else self._renew(entry, game)
        if entry.leader is None:
            self._place(entry)
        self._retry()
        self._changed.pop(key, None)
        return self._match_of(entry)

    def knows(self, source: str, game: Game) -> bool:
        """Whether a feed's game was matched before and is unchanged, so that `match` compares nothing."""
        entry = self._index.entries.get((source, game.id))
        return entry is not None and entry.game[1:6] == game[1:6]

    @property
    def work(self) -> int:
        """How many names and games were compared so far: the time that matching takes, independent of the machine."""
        return self._index.work

    def changes(self) -> list[tuple[str, str, Match]]:
        """Return games that have moved to another event since the last call, other than by `match`."""
        changed, self._changed = self._changed, {}
        entries = self._index.entries
        return [(*key, self._match_of(entries[key])) for key in changed if key in entries]

    def quarantined(self) -> list[QuarantinedGame]:
        """Return all quarantined games by feed and id."""
        waiting = (e for e in self._index.entries.values() if e.head.event is None and e.override != NEVER)
        return [QuarantinedGame(e.key[0], e.game, self._match_of(e)) for e in sorted(waiting, key=lambda e: e.key)]

    def events(self) -> dict[str, MatchedEvent]:
        return dict(self._index.events)

    def games(self, event_id: str) -> list[tuple[str, Game, Match]]:
        """Return the games of an event in order of arrival."""
        event = self._index.events.get(event_id)
        leaders = [] if event is None else [self._index.entries[key] for key in event.members]
        members = [entry for leader in leaders for entry in (leader, *leader.followers.values())]
        return [(e.key[0], e.game, self._match_of(e)) for e in sorted(members, key=lambda e: e.number)]

    def reload(self, overrides: Overrides) -> list[tuple[str, str, Match]]:
        """Replace the overrides; returns the games that changed."""
        before, self._overrides = self._overrides, overrides
        entries = self._index.entries
        affected = [key for key in sorted({*before, *overrides}) if before.get(key) != overrides.get(key)]
        released = [entries[key] for key in affected if key in entries]
        matches = {entry.key: self._match_of(entry) for entry in released}
        for entry in released:
            self._remove(entry)
            entry.override = overrides.get(entry.key, "")
        for entry in released:
            self._index.insert(entry)
            if entry.leader is None:
                self._matches[entry.key] = matches[entry.key]
        for entry in sorted(released, key=lambda e: (not e.override, e.key)):
            if entry.leader is None:
                self._place(entry)
            elif _differ(matches[entry.key], self._match_of(entry)):
                self._changed[entry.key] = None
        waiting = [entry for entry in entries.values() if entry.leader is None and entry.event is None]
        self._again(entry for entry in waiting if not entry.override)
        self._retry()
        return self.changes()

    def forget(self, before: datetime) -> int:
        """Drop events whose games all start before a time, and quarantined games as old; return the number of games.

        A quarantined game without a start is dropped if it was not matched since the last call, and so is one that its
        source lists under another id, too.
        """
        before = to_utc(before)
        index, dropped = self._index, []
        latest: dict[str, datetime] = {}
        for entry in index.entries.values():
            if entry.event and entry.start:
                latest[entry.event] = max(latest.get(entry.event, entry.start), entry.start)
        for entry in index.entries.values():
            end = latest.get(entry.head.event or "") or entry.start
            if (end is not None and end < before) or not (entry.is_recent or (end and entry.leader is None)):
                dropped.append(entry)
            entry.is_recent = False
        for entry in sorted(dropped, key=lambda e: e.leader is None):
            self._remove(entry)
        self._retry()
        index.used = {id_: at for id_, at in index.used.items() if id_ in index.events or at >= before - _RESERVED}
        self._numbers = {stem: number for stem, number in self._numbers.items() if stem in index.used}
        return len(dropped)

    def drop(self, source: str, game: str) -> None:
        """Drop a feed's game; the id of its event is free if it was the last one."""
        entry = self._index.entries.get((source, game))
        if entry is not None:
            event = entry.event or ""
            self._remove(entry)
            self._changed.pop(entry.key, None)
            if event not in self._index.events:
                self._index.used.pop(event, None)
            self._retry()

    # ---- state for another matcher ----

    def decision(self, source: str, game: str) -> Decision | None:
        """Return the state of a feed's game; None if it is unknown."""
        entry = self._index.entries.get((source, game))
        if entry is None:
            return None
        event = self._index.events.get(entry.head.event or "")
        about = None if event is None else (event.id, event.sport, event.league, event.home, event.away, event.number)
        return Decision(
            entry.key, entry.game, entry.league, entry.number, entry.start, entry.first, entry.override,
            self._match_of(entry), about,
        )  # fmt: skip

    def adopt(self, decisions: Iterable[Decision]) -> None:
        """Adopt the state of another matcher; this one must not have matched anything yet."""
        index = self._index
        for one in sorted(decisions, key=lambda one: one.number):
            entry = GameEntry(one.key, one.game, one.league, one.number, one.start, one.first, override=one.override)
            index.insert(entry)
            index.reach(one.number)
            if entry.leader is not None:
                continue
            self._matches[one.key] = one.match
            if one.event is None:
                continue
            event = index.events.get(one.event[0]) or MatchedEvent(*one.event)
            index.reach(event.number)
            index.join(entry, event)
            if one.start is not None:
                index.used.setdefault(event.id, one.start)

    # ---- private ----

    def _match_of(self, entry: GameEntry) -> Match:
        match = self._matches[entry.head.key]
        if entry.leader is None or not match.new:
            return match
        return match._replace(score=1.0, reason="the same names, 0 min apart", new=False)

    def _remove(self, entry: GameEntry) -> None:
        """Remove a game; one that followed it takes its place."""
        follower = next(iter(entry.followers.values()), None)
        if follower is not None:
            self._matches[follower.key] = self._match_of(follower)
        self._index.remove(entry)
        self._matches.pop(entry.key, None)

    def _retry(self) -> None:
        """Place games again whose names were like too many others until some of those left."""
        for entry in self._index.retry():
            self._place(entry)

    def _enter(self, key: Key, game: Game) -> GameEntry:
        start = None if game.start is None else to_utc(game.start)
        league = _league(game)
        entry = GameEntry(key, game, league, self._index.count(), start, start, override=self._overrides.get(key, ""))
        self._index.insert(entry)
        return entry

    def _renew(self, entry: GameEntry, game: Game) -> GameEntry:
        """Update a game; it stays in its event unless its teams have changed."""
        index, event = self._index, self._index.events.get(entry.head.event or "")
        start = entry.start if game.start is None else to_utc(game.start)
        league = _league(game)
        first, keeps = entry.first or start, league == entry.league
        keeps = keeps and fit(league, entry.spelling, (game.home, game.away))[0] >= self._threshold
        before = self._match_of(entry)
        self._remove(entry)
        if not keeps:
            first = start
        renewed = GameEntry(entry.key, game, league, entry.number, start, first, override=entry.override)
        index.insert(renewed)
        if renewed.leader is None:
            self._matches[entry.key] = before
            if event is not None and keeps:
                index.join(renewed, event)
        return renewed

    def _place(self, entry: GameEntry) -> None:
        self._index.hide(entry, hidden=False)
        if entry.override:
            self._apply_override(entry)
            # Games nearby may have been matched before this one's override was known.
            others = (other for _, other in self._index.around(entry, self._threshold) if not other.override)
            if other := min(others, key=lambda e: e.number, default=None):
                self._compare(other, list(self._index.around(other, DOUBT)))
        elif max(map(len, entry.spelling)) > LONGEST:
            self._wait(entry, 0.0, f"a name of more than {LONGEST} characters")
        elif name_likeness.pending(entry.game.home) or name_likeness.pending(entry.game.away):
            two = entry.game.home or entry.game.away
            self._wait(entry, 0.0, "a team is not known yet" if two else "no game of two")
        elif entry.start is None:
            if entry.event is None:
                self._wait(entry, 0.0, "no start time")
        elif fit(entry.league, (entry.game.home,) * 2, (entry.game.away,) * 2)[0] >= self._threshold:
            self._wait(entry, 0.0, "both teams are the same")
        else:
            near = self._near(entry)
            if near is None:
                self._wait(entry, 0.0, "too many games between these teams around this time")
                self._index.hide(entry, hidden=True)
            elif not self._follow(entry, near):
                self._compare(entry, near)

    def _near(self, entry: GameEntry) -> list[tuple[float, GameEntry]] | None:
        """Return the games around that may be the same pair; None if they are too many."""
        near: list[tuple[float, GameEntry]] = []
        own = 0
        for scored in self._index.around(entry, DOUBT):
            near.append(scored)
            own += scored[1].key[0] == entry.key[0]
            if own >= MOST_OF_SOURCE or len(near) > _MOST:
                return None
        return near

    def _apply_override(self, entry: GameEntry) -> None:
        if entry.override == NEVER:
            self._index.leave(entry)
            self._set(entry, Match(None, 1.0, "override: never"))
        elif entry.override == NEW and entry.start is None:
            self._wait(entry, 1.0, "override: new, but no start time yet")
        elif entry.override == NEW:
            if entry.event is None:
                self._index.join(entry, self._create(entry))
            self._set(entry, Match(entry.event, 1.0, "override: new", new=True))
        else:
            event = self._index.events.get(entry.override) or self._create(entry, entry.override)
            self._index.join(entry, event)
            swapped = fit(entry.league, (event.home, event.away), entry.spelling)[1]
            self._set(entry, Match(event.id, 1.0, "override", swapped))

    def _follow(self, entry: GameEntry, near: Sequence[tuple[float, GameEntry]]) -> bool:
        """Fast path: no game nearby, or a single event at about this time, without doubts."""
        if entry.event is None and not near:
            self._index.join(entry, self._create(entry))
            self._explain(entry)
            return True
        if entry.event is not None or near[0][1].event is None:
            return False
        event = self._index.events[near[0][1].event]
        members = [self._index.entries[key] for key in event.members]
        plain = (
            all(score >= self._threshold and other.event == event.id for score, other in near)
            and len(near) == len(members)
            and all(
                not m.override and m.key[0] != entry.key[0] and m.start and gap(m.dated, entry.dated) <= CLOSE
                for m in members
            )
        )
        if plain:
            self._index.join(entry, event)
            self._explain(entry)
        return plain

    def _closure(self, entry: GameEntry, least: float) -> dict[Key, GameEntry]:
        """Return the games that are the same pair, transitively, with starts near each other, or more than `_MOST`."""
        index = self._index
        cluster, stack = {entry.key: entry}, [entry]
        while stack and len(cluster) <= _MOST:
            at = stack.pop()
            direct = least if at is entry else self._threshold
            reached = [other for score, other in index.around(at, direct)]
            event = index.events.get(at.event or "")
            reached += [] if event is None else [index.entries[key] for key in event.members]
            for other in reached:
                if other.key not in cluster and other.override != NEVER and other.start is not None:
                    cluster[other.key] = other
                    stack.append(other)
        return cluster

    def _contradict(self, league: League, entries: Iterable[GameEntry]) -> bool:
        """Whether two of these games cannot be the same pair."""
        spellings = list(dict.fromkeys(e.spelling for e in entries if not e.override))
        return any(
            fit(league, one, other)[0] < DOUBT for at, one in enumerate(spellings) for other in spellings[at + 1 :]
        )

    def _compare(self, entry: GameEntry, games: Iterable[tuple[float, GameEntry]]) -> None:
        near = sorted(games, key=lambda scored: (-scored[0], scored[1].key))
        near = [(score, other) for score, other in near if other.override != NEVER]
        best = near[0][0] if near else 0.0
        cluster = self._closure(entry, self._threshold)
        if len(cluster) > _MOST:
            self._wait(entry, best, "too many games between these teams around this time")
            self._index.hide(entry, hidden=True)
            return
        if self._contradict(entry.league, cluster.values()):
            cluster = self._closure(entry, max(self._threshold, best - _BETTER))
        if self._contradict(entry.league, cluster.values()):
            self._wait(entry, best, "fits games of different teams", near)
            return
        doubts = [(score, other) for score, other in near if score < self._threshold and other.key not in cluster]
        alone = all(other.event is None for other in cluster.values())
        if doubts and alone and (event := self._only(entry, doubts)) is not None:
            joined = dict(cluster)
            for key in event.members:
                joined |= self._closure(self._index.entries[key], self._threshold)
            if not self._contradict(entry.league, joined.values()):
                self._arrange(joined)
                return
        rivals = [other for _, other in doubts if alone and self._borrowed(other, entry)]
        for other in rivals:
            self._index.leave(other)
        if rivals:
            self._arrange(cluster)
            self._again(rivals)
            return
        if doubts and alone:
            for other in cluster.values():
                self._wait(other, doubts[0][0], "names alike, but not enough", doubts)
            return
        self._arrange(cluster)

    def _only(self, entry: GameEntry, doubts: list[tuple[float, GameEntry]]) -> MatchedEvent | None:
        """Return the only event around that time that matches one full name and a word of the other."""
        if not name_likeness.has_mascots(*entry.league) or any(score < CITY or o.event is None for score, o in doubts):
            return None
        events = {other.event for _, other in doubts}
        if len(events) != 1 or not any(gap(entry.dated, other.dated) <= CLOSE for _, other in doubts):
            return None
        return self._index.events[str(events.pop())]

    def _borrowed(self, other: GameEntry, entry: GameEntry) -> bool:
        """Whether a game is in its event only by a word that fits the teams of `entry` equally."""
        event = self._index.events.get(other.event or "")
        if event is None or other.override:
            return False
        members = [self._index.entries[key].spelling for key in event.members]
        owners = [each for each in members if fit(entry.league, each, entry.spelling)[0] < DOUBT]
        return bool(owners) and all(fit(entry.league, each, other.spelling)[0] < self._threshold for each in owners)

    def _arrange(self, cluster: dict[Key, GameEntry]) -> None:
        """Assign the games of one pair to meetings, and meetings to events."""
        index = self._index
        alive = [index.events[id_] for id_ in dict.fromkeys(e.event for e in cluster.values()) if id_ is not None]
        alive.sort(key=lambda event: event.number)
        free = [e for e in cluster.values() if not e.override]
        overridden = [event for event in alive if all(index.entries[key].override for key in event.members)]
        shut = [event for event in overridden if all(index.entries[key].override == NEW for key in event.members)]
        fixed = [*shut, *(event for event in overridden if event not in shut)]
        anchors = [next(cluster[key].dated for key in event.members if key in cluster) for event in fixed]
        meetings = arrange([e.dated for e in free], anchors[: len(shut)], anchors[len(shut) :])
        owners = self._owners(meetings, alive, fixed)
        for key in meetings.doubts:
            index.leave(index.entries[key])
        for at, group in enumerate(meetings.games):
            members = sorted((index.entries[key] for key in group), key=lambda e: e.number)
            if not members:
                continue
            event = owners.get(at) or self._create(members[0])
            owners[at] = event
            for entry in members:
                self._index.join(entry, event)
        for entry in sorted(free, key=lambda e: e.number):
            if entry.key not in meetings.doubts:
                self._explain(entry)
        for key, places in meetings.doubts.items():
            likely = tuple(dict.fromkeys(owners[at].id for at in places if at in owners))
            self._set(index.entries[key], Match(None, 1.0, _why(places), candidates=likely))

    def _owners(
        self, meetings: Meetings, alive: list[MatchedEvent], fixed: list[MatchedEvent]
    ) -> dict[int, MatchedEvent]:
        """Return the event of each meeting: that of its oldest game, else one that a game of it was in."""
        owners = dict(enumerate(fixed))
        place = {key: at for at, group in enumerate(meetings.games) for key in group}
        for oldest in (True, False):
            for event in alive:
                members = sorted(event.members, key=lambda key: self._index.entries[key].number)
                for key in members[:1] if oldest else members:
                    at = place.get(key)
                    if at is not None and at not in owners and event not in owners.values():
                        owners[at] = event
        return owners

    def _create(self, entry: GameEntry, id_: str = "") -> MatchedEvent:
        index, game = self._index, entry.game
        if not id_:
            assert entry.start is not None
            stem = event_ids.event_id(game._replace(sport=entry.league[0]), entry.league[1], entry.start)
            id_ = event_ids.free(stem, index.used, self._numbers)
        if entry.start is not None:
            index.used[id_] = entry.start
        event = MatchedEvent(id_, *entry.league, game.home, game.away, index.count())
        index.events[id_] = event
        return event

    def _explain(self, entry: GameEntry) -> None:
        index = self._index
        event = index.events[entry.event or ""]
        others = [index.entries[key] for key in event.members if key != entry.key]
        first = min(event.members, key=lambda key: index.entries[key].number)
        swapped = self._swapped(entry, event, others)
        if not others:
            self._set(entry, Match(event.id, 1.0, "new event", swapped, new=True))
            return
        scores = [(fit(entry.league, other.spelling, entry.spelling)[0], other) for other in others]
        score, nearest = max(scores, key=lambda scored: (scored[0], scored[1].key))
        apart = f"{_minutes(entry, nearest)} min apart"
        words = "the same names" if score == 1.0 else "names alike"
        if score < self._threshold:
            words = "a shortened name that fits no other game"
        note = ", home and away swapped" if swapped else ""
        match = Match(event.id, score, f"{words}, {apart}{note}", swapped, new=entry.key == first)
        self._set(entry, match)

    def _swapped(self, entry: GameEntry, event: MatchedEvent, others: list[GameEntry]) -> bool:
        score, swapped = fit(entry.league, (event.home, event.away), entry.spelling)
        if score >= DOUBT or not others:
            return swapped and score > 0.0
        fits = ((fit(entry.league, o.spelling, entry.spelling), o) for o in others if o.key in self._matches)
        (_, swapped), by = max(fits, key=lambda scored: (scored[0][0], scored[1].key), default=((0.0, False), entry))
        return swapped != (by.key in self._matches and self._matches[by.key].swapped)

    def _wait(self, entry: GameEntry, score: float, reason: str, near: Iterable[tuple[float, GameEntry]] = ()) -> None:
        self._index.leave(entry)
        likely = dict.fromkeys(other.event or ":".join(other.key) for _, other in near)
        self._set(entry, Match(None, score, reason, candidates=tuple(likely)))

    def _set(self, entry: GameEntry, match: Match) -> None:
        before = self._matches.get(entry.key)
        self._matches[entry.key] = match
        if before is not None and _differ(before, match):
            self._changed |= dict.fromkeys([entry.key, *entry.followers])

    def _again(self, entries: Iterable[GameEntry]) -> None:
        for entry in sorted(entries, key=lambda e: e.key):
            if entry.event is None:
                self._place(entry)


def _league(game: Game) -> League:
    """Return sport and league according to the catalog; an unknown league is returned unchanged."""
    league = catalog.league(game.league, game.sport)
    return league.sport or catalog.sport(game.sport).id, league.id


def _differ(one: Match, other: Match) -> bool:
    return (one.event_id, one.swapped) != (other.event_id, other.swapped)


def _minutes(one: GameEntry, other: GameEntry) -> int:
    return 0 if one.start is None or other.start is None else round(gap(one.dated, other.dated).total_seconds() / 60)


def _why(places: tuple[int, ...]) -> str:
    return "the pair meets more than once near this time" if len(places) > 1 else "a second game of its source"
