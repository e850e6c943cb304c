"""Any table with the interface's columns, once or watched: CSV, JSON, NDJSON, Parquet.

A file is everything that its books quote, so a book's prices that a later state of the file does not list are gone;
unless a line of it does not read, for then nobody knows whose it was. Books that a file no longer names at all are in
the file's earlier payloads: whoever watches it compares (`Payload.complete`).
"""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import polars as pl

from oddsengine.feeds.names import market
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.schema import ODDS_SCHEMA, OddsError
from oddsengine.tables import READABLE, read_table

_LIVE = "live"


def read(data: bytes, suffix: str) -> Payload:
    r"""Read a table.

    Parameters
    ----------
    data
        What the file holds.
    suffix
        How its name ends: .csv, .json, .ndjson, .jsonl or .parquet.

    Raises
    ------
    FeedError
        If it is not an odds table.

    Examples
    --------
    >>> text = b"sportsbook,event_id,market_type,selection,odds_american\na,e,moneyline,X,+150\n"
    >>> [(row["selection"], row["odds_decimal"]) for row in read(text, ".csv").quotes]
    [('X', 2.5)]
    """
    if suffix.lower() not in READABLE:
        raise FeedError(f"The suffix of a table must be one of {', '.join(READABLE)}, got {suffix!r}.")
    try:
        table = read_table(data, suffix)
        held = table.with_columns(_sayable())
    except OddsError as error:
        raise FeedError(str(error)[:300]) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise FeedError(f"This is not an odds table: {str(error).splitlines()[0][:200]}.") from None
    refused = Counter({str(reason): int(n) for reason, n in table.rejected.group_by("reason").len().iter_rows()})
    books = [] if refused else table["sportsbook"].unique(maintain_order=True).to_list()
    return Payload(_games(held), _quotes(held), [(book, None) for book in books], (), _unmapped(table), refused)


def _sayable() -> list[pl.Expr]:
    """Times that Python has a date for; a table may hold any number of microseconds."""
    low, high = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
    times = [name for name, kind in ODDS_SCHEMA.items() if isinstance(kind, pl.Datetime)]
    return [pl.when(pl.col(name).is_between(low, high)).then(pl.col(name)).alias(name) for name in times]


def _quotes(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows without the columns that say nothing; the price in its other forms is derived again behind the door."""
    names = [name for name in ODDS_SCHEMA if name not in ("odds_probability", "flap", "confirmed")]
    some = [name for name in names if table[name].null_count() < table.height]
    return table.select(some).to_dicts()


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
        if not market(name, sport or "", stat or "").known:
            unmapped[book, name] += n
    return unmapped
