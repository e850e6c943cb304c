"""Futures: markets over a whole season or tournament, on a board of their own.

They are never on the board of games: their markets have as many outcomes as contestants, and no two books list the
same. `find_futures` takes a table; `FuturesBoard` is the same for a service, one batch after another.

Reading order: identity (what a price is a price of), fields (who takes part), sheets (one market, selections by
books), winners (margin removal with several winners), judging (guards, fair prices, hold, arbitrage), board, found.
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
