"""Futures: markets over a whole season or tournament.

They have a board of their own, because their markets have as many outcomes as contestants and no two books list the
same ones. `find_futures` takes a table; `FuturesBoard` applies batches for a service.

Reading order: identity (what a price refers to), fields (contestants), sheets (one market, selections by books),
winners (de-vigging with several winners), judging (guards, fair prices, hold, arbitrage), board, found.
"""

from oddsengine.futures.board import FUTURES_SCHEMA, FuturesBoard
from oddsengine.futures.fields import FieldsError, FuturesField, parse_fields
from oddsengine.futures.found import Futures, find_futures
from oddsengine.futures.identity import Market, price_id
from oddsengine.futures.judging import REASONS, Judged, judge
from oddsengine.futures.sheets import Sheet

__all__ = [
    "FUTURES_SCHEMA", "REASONS", "FieldsError", "Futures", "FuturesBoard", "FuturesField", "Judged", "Market", "Sheet",
    "find_futures", "judge", "parse_fields", "price_id",
]  # fmt: skip
