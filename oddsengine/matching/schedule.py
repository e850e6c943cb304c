"""Which games of one pair are the same meeting, by their starts alone.

The pair may meet twice: doubleheaders, series, both legs of a cup. The source that lists the most games of it says
how many meetings there are (of several, the first by name); a game farther than 12 h from each of these is a meeting
too. Every other game belongs to the only meeting within 12 h, or, of several, to the only one within 90 minutes, if
its start agrees with that one clearly better than with the others: twice as well as with a later meeting, and six times
as well as with an earlier one, since games are delayed, and the first game of a doubleheader, delayed by hours, is
listed shortly before the second. If there is no such meeting the game is in doubt. Nothing here depends on the order
in which games became known.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

WINDOW = timedelta(hours=12)
CLOSE = timedelta(minutes=90)
_THAN_LATER, _THAN_EARLIER = 2, 6  # how many times nearer than other meetings

Key = tuple[str, str]
"""Source and the source's id."""


class Dated(NamedTuple):
    """A game and when it starts: as the source says now, and as it first did."""

    key: Key
    start: datetime
    first: datetime


class Meetings(NamedTuple):
    """Games by meeting, and those in doubt with the places of the meetings they may belong to."""

    games: list[list[Key]]
    doubts: dict[Key, tuple[int, ...]]


def gap(one: Dated, other: Dated) -> timedelta:
    """Time between two starts."""
    return abs(one.start - other.start)


def first_gap(one: Dated, other: Dated) -> timedelta:
    """Time between two starts, whichever way they have moved since."""
    return min(abs(a - b) for a in (one.start, one.first) for b in (other.start, other.first))


def _order(game: Dated) -> tuple[datetime, Key]:
    return game.start, game.key


def _leading(games: Iterable[Dated]) -> list[Dated]:
    """The games of the source that lists the most of different starts, one a start."""
    by_source: dict[str, dict[datetime, Dated]] = defaultdict(dict)
    for game in sorted(games, key=_order):
        by_source[game.key[0]].setdefault(game.start, game)
    if not by_source:
        return []
    most = min(by_source, key=lambda source: (-len(by_source[source]), source))
    return list(by_source[most].values())


def within(game: Dated, anchors: Sequence[Dated], limit: timedelta = WINDOW) -> tuple[int, ...]:
    """Places of the anchors near a game; by first starts only if none is near as things stand."""
    near = tuple(at for at, anchor in enumerate(anchors) if gap(game, anchor) <= limit)
    return near or tuple(at for at, anchor in enumerate(anchors) if first_gap(game, anchor) <= limit)


def arrange(games: Iterable[Dated], shut: Sequence[Dated] = (), named: Sequence[Dated] = ()) -> Meetings:
    """Share games out among meetings.

    Meetings that exist by a person's word come first: `shut`, which are none of those that the games make, and `named`,
    which stand for the nearest of them.
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
    groups: list[list[Dated]] = [[anchor] if at >= len(fixed) else [] for at, anchor in enumerate(anchors)]
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


def _clear(game: Dated, meeting: Dated, meetings: Iterable[Dated]) -> bool:
    """Whether a game's start agrees with one meeting clearly better than with the others near it."""
    apart = gap(game, meeting)
    return all(
        apart * (_THAN_EARLIER if other.start < game.start < meeting.start else _THAN_LATER) <= gap(game, other)
        for other in meetings
        if other.key != meeting.key
    )


def _twice(group: list[Dated], anchor: Dated) -> list[Dated]:
    """Games of one source at different times in one meeting, but for the nearest."""
    best: dict[str, Dated] = {}
    for game in sorted(group, key=lambda g: (g.key != anchor.key, gap(g, anchor), g.key)):
        best.setdefault(game.key[0], game)
    return [game for game in group if game.start != best[game.key[0]].start]
