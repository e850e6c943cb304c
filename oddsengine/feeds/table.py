"""Any table with the columns of this API, read once or watched: CSV, JSON, NDJSON, Parquet.

A file has all prices of its books, so prices missing from a later state of the file are removed, unless the file has
invalid lines, whose book is unknown. Books that are missing altogether can be found by comparing payloads
(`Payload.complete`).
"""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import polars as pl

from oddsengine.bounds import excerpt
from oddsengine.feeds.feed_names import market
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.tables.column_names import Columns
from oddsengine.tables.files import READABLE, read_table
from oddsengine.tables.levels import DEPTH_SCHEMA
from oddsengine.tables.schema import ODDS_SCHEMA, OddsError

_LIVE = "live"


def read(data: bytes, suffix: str, columns: Columns | None = None) -> Payload:
    r"""Parse a file by its suffix: .csv, .json, .ndjson, .jsonl or .parquet.

    `columns` is as for `check_odds`. Raises `FeedError` if it is not an odds table.

    Examples
    --------
    >>> text = b"sportsbook,event_id,market_type,selection,odds_american\na,e,moneyline,X,+150\n"
    >>> [(row["selection"], row["odds_decimal"]) for row in read(text, ".csv").quotes]
    [('X', 2.5)]
    """
    if suffix.lower() not in READABLE:
        raise FeedError(f"the suffix of a table must be one of {', '.join(READABLE)}, got {excerpt(suffix)}")
    try:
        table = read_table(data, suffix, columns)
        rows = table.with_columns(_sayable())
    except OddsError as error:
        raise FeedError(str(error)[:300]) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise FeedError(f"not an odds table: {str(error).splitlines()[0][:200]}") from None
    refused = Counter({str(reason): int(n) for reason, n in table.rejected.group_by("reason").len().iter_rows()})
    books = [] if refused else table["sportsbook"].unique(maintain_order=True).to_list()
    return Payload(_games(rows), _quotes(rows), [(book, None) for book in books], (), _unmapped(table), refused)


def _sayable() -> list[pl.Expr]:
    """Filter of times that Python can represent; a table may have any number of microseconds."""
    low, high = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
    times = [name for name, kind in ODDS_SCHEMA.items() if isinstance(kind, pl.Datetime)]
    return [pl.when(pl.col(name).is_between(low, high)).then(pl.col(name)).alias(name) for name in times]


def _quotes(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Build rows without null columns; redundant forms of the price are derived again by the engine."""
    names = [name for name in ODDS_SCHEMA if name not in ("odds_probability", "flap", "confirmed")]
    names += [name for name in DEPTH_SCHEMA if name in table.columns]
    filled = [name for name in names if table[name].null_count() < table.height]
    return table.select(filled).to_dicts()


def _games(table: pl.DataFrame) -> list[Game]:
    events = table.group_by("event_id", maintain_order=True).agg(
        pl.col("sport", "league", "home_team", "away_team", "event_start_time").drop_nulls().first(),
        live=pl.col("is_live").any(),
    )
    return [
        Game(event, sport or "", league or "", home or "", away or "", start, _LIVE if live else "")
        for event, sport, league, home, away, start, live in events.iter_rows()
    ]


def _unmapped(table: pl.DataFrame) -> Counter[tuple[str, str]]:
    kinds = table.group_by("sportsbook", "market_type", "sport", "stat_category").len()
    unmapped: Counter[tuple[str, str]] = Counter()
    for book, name, sport, stat, n in kinds.iter_rows():
        if not market(name, sport or "", stat or "").in_catalog:
            unmapped[book, name] += n
    return unmapped
