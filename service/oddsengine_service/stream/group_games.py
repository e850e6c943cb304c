"""Game states for subscribers with equal filters."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from oddsengine.query import RowFilter
from oddsengine_service.board.matching_rows import which_match
from oddsengine_service.stream.sse import frame
from oddsengine_service.stream.stream_events import Wire, forgotten, played


class GameGroup:
    """Games of a filter."""

    def __init__(self, wanted: RowFilter, wire: Wire) -> None:
        self.wanted, self.wire = wanted, wire
        self.members = 0
        self.reached = 0  # number of the last update delivered; only in the event loop
        self._shown: set[str] = set()

    def fits(self, event: str, state: Mapping[str, Any]) -> bool:
        """Whether a game matches the filter."""
        sport, league = state.get("sport") or "", state.get("league") or ""
        return which_match(self.wanted, [sport], [league], [event])[0]

    def events(self, states: Mapping[str, Any], removed: Iterable[str]) -> list[bytes]:
        """Events of this group for some changes."""
        mine = {event: state for event, state in states.items() if self.fits(event, state)}
        self._shown.update(mine)
        lost = [event for event in removed if event in self._shown]
        self._shown.difference_update(lost)
        return [*played(mine), *forgotten(lost)]

    def beginning(self, states: Mapping[str, Any]) -> list[bytes]:
        """A frame with all game states."""
        mine = {event: state for event, state in states.items() if self.fits(event, state)}
        self._shown.update(mine)
        return [frame("gamestate:snapshot", mine)]


class GameGroups:
    """Groups of games by filter, and the states of all games; only for the hub's thread."""

    def __init__(self) -> None:
        self._groups: dict[tuple[RowFilter, Wire], GameGroup] = {}
        self._states: dict[str, Any] = {}
        self._removed: deque[tuple[int, str]] = deque()  # games, each with the update after which it was removed

    def enter(self, wanted: RowFilter, wire: Wire) -> GameGroup:
        """Add a member to the group of a filter."""
        group = self._groups.setdefault((wanted, wire), GameGroup(wanted, wire))
        group.members += 1
        return group

    def leave(self, group: GameGroup) -> None:
        """Remove a member of a group; without any, it ends."""
        group.members -= 1
        if not group.members and self._groups.get((group.wanted, group.wire)) is group:
            del self._groups[group.wanted, group.wire]

    def apply(
        self, states: Mapping[str, Any], removed: Iterable[str], number: int
    ) -> list[tuple[GameGroup, list[bytes]]]:
        """Note changes after an update. Returns the events of each group that has some."""
        self._states.update(states)
        for event in removed:
            self._states.pop(event, None)
            self._removed.append((number, event))
        return [(group, events) for group in self._groups.values() if (events := group.events(states, removed))]

    def beginning(self, group: GameGroup, since: int | None) -> list[bytes]:
        """Frames of a group's games, and of those removed since an update."""
        removed = [event for number, event in self._removed if since is not None and number >= since]
        return [*forgotten([event for event in removed if event not in self._states]), *group.beginning(self._states)]

    def forget(self, before: int) -> None:
        """Drop games that were removed before an update."""
        while self._removed and self._removed[0][0] < before:
            self._removed.popleft()

    def reset(self) -> None:
        """Remove all groups, and forget removed games."""
        self._groups.clear()
        self._removed.clear()
