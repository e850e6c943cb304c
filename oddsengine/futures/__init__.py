"""Futures: markets over a whole season or tournament.

They have a board of their own, because their markets have as many outcomes as contestants and no two books list the
same ones. `find_futures` takes a table; `FuturesBoard` applies batches for a service.

Reading order: identity (what a price refers to), fields (contestants), sheets (one market, selections by books),
winners (de-vigging with several winners), evaluation (guards, fair prices, hold, arbitrage), board,
futures_frames (results).
"""

from oddsengine.futures.board import FUTURES_SCHEMA, FuturesBoard
from oddsengine.futures.evaluation import REASONS, Evaluation, evaluate
from oddsengine.futures.fields import FieldsError, FuturesField, parse_fields
from oddsengine.futures.futures_frames import Futures, find_futures
from oddsengine.futures.identity import FuturesMarket, price_id
from oddsengine.futures.sheets import Sheet

__all__ = [
    "FUTURES_SCHEMA",
    "REASONS",
    "Evaluation",
    "FieldsError",
    "Futures",
    "FuturesBoard",
    "FuturesField",
    "FuturesMarket",
    "Sheet",
    "evaluate",
    "find_futures",
    "parse_fields",
    "price_id",
]  # fmt: skip
