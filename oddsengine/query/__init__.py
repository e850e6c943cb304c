"""Queries: which rows of a board fit, in which order, and which of them are on a page.

`asking` says what may be asked, `terms` knows the texts, `index` keeps the order beside a board, `reading` holds the
board still and answers; the loops are in `scan`.
"""

from datetime import UTC, datetime

from oddsengine.engine import Engine
from oddsengine.query.filter import CURSOR_PATTERN, LATEST, MOST_CURSOR, SORTS, Cursor, Filter
from oddsengine.query.index import Index
from oddsengine.query.reading import Found, Marks, Reading
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
    "CURSOR_PATTERN", "LATEST", "MOST_CURSOR", "SORTS", "Cursor", "Filter", "Found", "Index", "Marks", "Reading",
    "Terms", "warm",
]  # fmt: skip
