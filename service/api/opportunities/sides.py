"""What middles and low holds share: sides, with their prices and links."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from oddsengine import catalog
from oddsengine.columns import Floats
from oddsengine_service.endpoints import Ask
from oddsengine_service.views import Table
from oddsengine_service.wire.low_hold import HoldSide


def side_prices(table: Table, sides: Sequence[str]) -> tuple[Floats, Floats]:
    """The least and the largest American price of each row."""

    def spans() -> tuple[Floats, Floats]:
        every = np.stack([table.numbers(f"{side}.odds.american") for side in sides])
        return np.fmin.reduce(every), np.fmax.reduce(every)

    return table.kept("sides", spans)


def localised(ask: Ask, table: Table | None, rows: list[int]) -> list[Any]:
    """Rows with their links, for a state where one is asked for."""
    if table is None:
        return []
    state = ask.query["state"]
    if state is None:
        return list(table.shown(rows))
    return [_in_state(struct, state) for struct in table.structs(rows)]


def _in_state(row: Any, state: str) -> Any:
    """A row whose links lead to a state's sites."""
    changed: dict[str, Any] = {}
    for name in ("side1", "side2", "side3"):
        side = getattr(row, name, None)
        if isinstance(side, HoldSide):
            links = {book: catalog.localised(link, state) for book, link in side.deep_links.items()}
            changed[name] = msgspec.structs.replace(side, deep_links={b: link for b, link in links.items() if link})
        elif side is not None and side.deep_link is not None:
            changed[name] = msgspec.structs.replace(side, deep_link=catalog.localised(side.deep_link, state) or None)
    return msgspec.structs.replace(row, **changed)
