"""Queries on a live board: filtering, sorting and pagination of rows.

>>> from oddsengine import Engine
>>> from oddsengine.query import Filter, Index
>>> from oddsengine.simulate import World
>>> batch = next(World(1, events=2).run(1.0))
>>> engine = Engine()
>>> _ = engine.step(batch.quotes, batch.now)
>>> with Index(engine).reading() as reading:
...     rows = reading.rows(Filter(market=("moneyline",)), unknown={})
...     slots, _ = reading.page(rows, sort="-odds_decimal", limit=2, offset=0, cursor=None)
...     found = reading.take(slots)
>>> len(found.id), bool(found.odds[0] >= found.odds[1])
(2, True)

`filter` defines filters and cursors, `terms` the texts of rows, `values` how filter values match them. `index`
maintains the sort order of a board, `reading` answers queries on a consistent state of it, and `scan` has the kernels.
`changes` turns an update into changes for subscribers; `stats` has statistics of events, books and markets.
"""

from datetime import UTC, datetime

from oddsengine.engine import Engine
from oddsengine.identity import WORDING, Wording
from oddsengine.query.changes import Changes, Chosen, Mirror, RowChanges, book_ids
from oddsengine.query.filter import CURSOR_PATTERN, LATEST, MOST_CURSOR, SORTS, Cursor, Filter
from oddsengine.query.index import Index
from oddsengine.query.reading import Event, Found, Leg, Marks, OwnTexts, Reading
from oddsengine.query.stats import BoardStats, Seen, StatsCache
from oddsengine.query.terms import Terms


def warm() -> None:
    """Run every kernel once."""
    engine = Engine()
    rows = [
        {
            "sportsbook": book, "event_id": "e", "sport": "basketball", "home_team": "Home", "away_team": "Away",
            "market_type": market, "selection": side, "odds_decimal": 1.9, "line": line,
        }
        for book in ("a", "b")
        for market, line in (("moneyline", None), ("total_points", 200.5), ("total_points", 201.5))
        for side in (("Home", "Away") if line is None else ("Over", "Under"))
    ]  # fmt: skip
    update = engine.step(rows, datetime(2026, 1, 1, tzinfo=UTC))
    index = Index(engine)
    index.follow(update)
    with index.reading(judged=True) as reading:
        found = reading.rows(Filter(main=True, low=-500.0), {})
        reading.take(reading.best(Filter(), {}))
        reading.states(found)


__all__ = [
    "CURSOR_PATTERN",
    "LATEST",
    "MOST_CURSOR",
    "SORTS",
    "WORDING",
    "BoardStats",
    "Changes",
    "Chosen",
    "Cursor",
    "Event",
    "Filter",
    "Found",
    "Index",
    "Leg",
    "Marks",
    "Mirror",
    "OwnTexts",
    "Reading",
    "RowChanges",
    "Seen",
    "StatsCache",
    "Terms",
    "Wording",
    "book_ids",
    "warm",
]  # fmt: skip
