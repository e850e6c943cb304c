"""Groups games of one pair into meetings by their starts.

A pair may meet repeatedly: doubleheaders, series, two-legged ties. The source with the most games of the pair
determines the meetings (the first by name among equals); a game more than 12 h from all of them is another meeting.
Other games belong to the only meeting within 12 h or, of several, to the only one within 90 minutes, provided the start
fits it clearly better: at least twice as well as a later meeting, and six times as well as an earlier one, because
games are delayed, and a delayed first game of a doubleheader is listed shortly before the second. Otherwise the game is
doubtful. The result does not depend on the order of arrival.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

WINDOW = timedelta(hours=12)
CLOSE = timedelta(minutes=90)
_THAN_LATER, _THAN_EARLIER = 2, 6  # required ratio of distances to other meetings

Key = tuple[str, str]
"""Source and the source's id."""


class DatedGame(NamedTuple):
    """A game with its current start and the first one given by the source."""

    key: Key
    start: datetime
    first: datetime


class Meetings(NamedTuple):
    """Games by meeting, and doubtful games with the indices of their possible meetings."""

    games: list[list[Key]]
    doubts: dict[Key, tuple[int, ...]]


def gap(one: DatedGame, other: DatedGame) -> timedelta:
    """Time between two current starts."""
    return abs(one.start - other.start)


def first_gap(one: DatedGame, other: DatedGame) -> timedelta:
    """Smallest time between two starts, current or first."""
    return min(abs(a - b) for a in (one.start, one.first) for b in (other.start, other.first))


def _order(game: DatedGame) -> tuple[datetime, Key]:
    return game.start, game.key


def _leading(games: Iterable[DatedGame]) -> list[DatedGame]:
    """Return the games of the source with the most distinct starts, one per start."""
    by_source: dict[str, dict[datetime, DatedGame]] = defaultdict(dict)
    for game in sorted(games, key=_order):
        by_source[game.key[0]].setdefault(game.start, game)
    if not by_source:
        return []
    most = min(by_source, key=lambda source: (-len(by_source[source]), source))
    return list(by_source[most].values())


def within(game: DatedGame, anchors: Sequence[DatedGame]) -> tuple[int, ...]:
    """Return the indices of anchors near a game, by first starts only if none is near by current ones."""
    near = tuple(at for at, anchor in enumerate(anchors) if gap(game, anchor) <= WINDOW)
    return near or tuple(at for at, anchor in enumerate(anchors) if first_gap(game, anchor) <= WINDOW)


def arrange(games: Iterable[DatedGame], shut: Sequence[DatedGame] = (), named: Sequence[DatedGame] = ()) -> Meetings:
    """Assign games to meetings.

    Meetings fixed by overrides come first: `shut` are separate from those of the games, `named` replace the nearest of
    them.
    """
    ordered = sorted(games, key=_order)
    leading = _leading(ordered)
    fixed = [*shut, *named]
    for anchor in named:
        near = [leading[at] for at in within(anchor, leading)]
        if near:
            leading.remove(min(near, key=lambda game: (gap(game, anchor), game.key)))
    anchors = [*fixed, *leading]
    for game in ordered:
        if not within(game, anchors):
            anchors.append(game)
    groups: list[list[DatedGame]] = [[anchor] if at >= len(fixed) else [] for at, anchor in enumerate(anchors)]
    taken = {game.key for group in groups for game in group}
    doubts: dict[Key, tuple[int, ...]] = {}
    for game in ordered:
        if game.key in taken:
            continue
        places = within(game, anchors)
        if len(places) > 1:
            close = tuple(at for at in places if gap(game, anchors[at]) <= CLOSE)
            if len(close) != 1 or not _clear(game, anchors[close[0]], [anchors[at] for at in places]):
                doubts[game.key] = places
                continue
            places = close
        groups[places[0]].append(game)
    for at, group in enumerate(groups):
        for game in _twice(group, anchors[at]):
            group.remove(game)
            doubts[game.key] = (at,)
    return Meetings([[game.key for game in group] for group in groups], doubts)


def _clear(game: DatedGame, meeting: DatedGame, meetings: Iterable[DatedGame]) -> bool:
    """Whether a game's start fits one meeting clearly better than the others near it."""
    apart = gap(game, meeting)
    return all(
        apart * (_THAN_EARLIER if other.start < game.start < meeting.start else _THAN_LATER) <= gap(game, other)
        for other in meetings
        if other.key != meeting.key
    )


def _twice(group: list[DatedGame], anchor: DatedGame) -> list[DatedGame]:
    """Return all but the nearest of a source's games at different times in one meeting."""
    best: dict[str, DatedGame] = {}
    for game in sorted(group, key=lambda g: (g.key != anchor.key, gap(g, anchor), g.key)):
        best.setdefault(game.key[0], game)
    return [game for game in group if game.start != best[game.key[0]].start]
