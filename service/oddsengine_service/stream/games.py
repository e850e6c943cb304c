"""Game states for subscribers with equal filters."""

from collections.abc import Iterable, Mapping
from typing import Any

from oddsengine.query import RowFilter
from oddsengine_service.board.wanted import which_match
from oddsengine_service.stream.events import Wire, forgotten, played
from oddsengine_service.stream.sse import frame


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
