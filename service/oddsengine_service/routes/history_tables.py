"""History as tables: a row for each closing line, each point of a price, each group of bets."""

from typing import Any

from oddsengine_service.http.tables import Table
from oddsengine_service.wire.envelopes import Moment
from oddsengine_service.wire.history_response import Closing, ClosingLine, ClvGroup, MovedPrice

_OF_EVENT = tuple(name for name in Closing.__struct_fields__ if name != "books")


class ClosingRow(ClosingLine, gc=False):
    """A closing line in a table: with its event."""

    event_id: str
    sport: str
    league: str
    home_team: str
    away_team: str
    event_start_time: Moment | None
    captured_at: Moment


class MovementRow(MovedPrice, gc=False):
    """A point of a movement in a table."""

    omitted: int
    at: Moment
    odds_american: float
    odds_decimal: float
    is_live: bool
    is_active: bool


def _closing_rows(events: Any) -> list[dict[str, Any]]:
    """Rows of the closing lines of one event, or of several."""
    return [
        {**line, **{name: event[name] for name in _OF_EVENT}}
        for event in (events if isinstance(events, list) else [events])
        for lines in event["books"].values()
        for line in lines
    ]


def _movement_rows(movements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each point, in order."""
    return [
        {**movement, **dict(zip(movement["points"], point, strict=True))}
        for movement in movements
        for point in zip(*movement["points"].values(), strict=True)
    ]


CLOSING = Table("closing", ClosingRow, _closing_rows)
MOVEMENTS = Table("history", MovementRow, _movement_rows)
CLV = Table("clv", ClvGroup)
