"""How games stand, beside opportunities of them."""

from collections.abc import Sequence
from typing import Any

from oddsengine_service.endpoints import Context
from oddsengine_service.views import Table
from oddsengine_service.wire.games import Standing, beside


def states(context: Context) -> dict[str, Standing]:
    """How games stand for a caller, by event; none for who may not know."""
    return dict(context.node.games.rows(context.caller.tier.delay)) if "gamestate" in context.caller.features else {}


def with_games(context: Context, table: Table, rows: Sequence[int], shown: list[Any]) -> list[Any]:
    """Rows as they go out, with how their games stand for who may know that."""
    games, events = states(context), table.coded("event_id")
    for place, at in enumerate(rows if games else ()):
        game = games.get(events.values[events.codes[at]])
        if game is not None:
            row: Any = shown[place] if hasattr(shown[place], "game_state") else table.structs([at])[0]
            shown[place] = beside(row, game)
    return shown
