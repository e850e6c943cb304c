"""What middles and low holds share: sides, with their prices and links."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oddsengine.columns import Floats
from oddsengine_service.endpoints import Context
from oddsengine_service.views import Table
from oddsengine_service.wire.sides import with_links_in


def side_prices(table: Table, sides: Sequence[str]) -> tuple[Floats, Floats]:
    """The least and the largest American price of each row."""

    def spans() -> tuple[Floats, Floats]:
        every = np.stack([table.numbers(f"{side}.odds.american") for side in sides])
        return np.fmin.reduce(every), np.fmax.reduce(every)

    return table.kept("sides", spans)


def rows_in_state(context: Context, table: Table | None, rows: list[int]) -> list[Any]:
    """Rows with their links, for a state where one is asked for."""
    if table is None:
        return []
    state = context.query["state"]
    if state is None:
        return list(table.shown(rows))
    return [with_links_in(struct, state) for struct in table.structs(rows)]
