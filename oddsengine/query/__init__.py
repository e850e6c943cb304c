"""Queries on a live board: filtering, sorting and pagination of rows.

>>> from oddsengine import Engine
>>> from oddsengine.query import Index, RowFilter
>>> from oddsengine.simulate import World
>>> batch = next(World(1, events=2).run(1.0))
>>> engine = Engine()
>>> _ = engine.step(batch.quotes, batch.now)
>>> with Index(engine).reader() as reader:
...     rows = reader.matching_rows(RowFilter(market=("moneyline",)), unknown={})
...     slots, _ = reader.page(rows, sort="-odds_decimal", limit=2, offset=0, cursor=None)
...     columns = reader.take(slots)
>>> len(columns.id), bool(columns.odds[0] >= columns.odds[1])
(2, True)

`filter` defines filters and cursors, `board_terms` the texts of rows, `values` how filter values match them. `index`
maintains the sort order of a board, `reader` answers queries on a consistent state of it, and `row_kernels` has the
kernels. `row_values` values rows, whatever their EV; `movers` finds what moved. `row_changes` turns an update into
changes for subscribers; `stats` has statistics of events, books and markets.
"""

from oddsengine.identity.raw_labels import RAW_LABEL, RawLabel
from oddsengine.query.board_terms import TermIndex, TermTexts
from oddsengine.query.filter import CURSOR_PATTERN, LATEST, MOST_CURSOR, SORTS, Cursor, RowFilter
from oddsengine.query.index import Index
from oddsengine.query.movers import ORDERS, Movers, find_movers, ordered
from oddsengine.query.reader import BoardEvent, BoardReader, LegPrice, Marks, OddsRows, OwnTexts
from oddsengine.query.row_changes import LastChanges, RowChanges, TermFilter, UpdateChanges, book_ids
from oddsengine.query.row_values import RowFair
from oddsengine.query.stats import BoardIds, BoardStats, StatsCache

__all__ = [
    "CURSOR_PATTERN",
    "LATEST",
    "MOST_CURSOR",
    "ORDERS",
    "RAW_LABEL",
    "SORTS",
    "BoardEvent",
    "BoardIds",
    "BoardReader",
    "BoardStats",
    "Cursor",
    "Index",
    "LastChanges",
    "LegPrice",
    "Marks",
    "Movers",
    "OddsRows",
    "OwnTexts",
    "RawLabel",
    "RowChanges",
    "RowFair",
    "RowFilter",
    "StatsCache",
    "TermFilter",
    "TermIndex",
    "TermTexts",
    "UpdateChanges",
    "book_ids",
    "find_movers",
    "ordered",
]  # fmt: skip
