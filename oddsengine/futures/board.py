"""The futures board: the last price of each book on each selection.

Boards are immutable; `apply` returns a new one. Prices are keyed by market, selection and book. A later quote replaces
an earlier one, a late quote is ignored, and a time in the future is replaced by now. A price leaves when its source
removes it, or when it has not been seen for hours. A suspended price stays and is shown, but never used.
"""

import io
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import polars as pl

from oddsengine import catalog
from oddsengine.catalog import futures_catalog as kinds
from oddsengine.futures.fields import Field, FuturesField, fields_by_market
from oddsengine.futures.identity import FuturesLabel, FuturesMarket, UnreadableError, identify_price
from oddsengine.futures.sheets import Sheet, sheets_of
from oddsengine.tables.casts import TIME
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.schema import BAD_ROW_SCHEMA, NONE_REJECTED, check_odds

FUTURES_SCHEMA: dict[str, pl.DataType] = {
    "sportsbook": pl.String(),
    "sport": pl.String(),
    "league": pl.String(),
    "market": pl.String(),
    "season": pl.String(),
    "future_type": pl.String(),
    "subject": pl.String(),
    "selection": pl.String(),
    "line": pl.Float64(),
    "places": pl.Int64(),
    "odds_decimal": pl.Float64(),
    "odds_american": pl.Float64(),
    "event_start_time": TIME,
    "last_seen_at": TIME,
    "odds_changed_at": TIME,
    "is_active": pl.Boolean(),
    "deep_link": pl.String(),
    "id": pl.String(),
}
"""Columns of a table of futures. Required: `sportsbook`, `market`, `selection` and one form of the price.

`market` is what is decided, `subject` the team or player of an over/under or yes/no, `places` the number of winners;
`id` is the source's own, with which it can remove a price.
"""

_KEY = ["market_id", "pick_key", "book"]
_TEXTS = ("sport", "league", "market", "season", "future_type", "subject", "selection")
_OWN = {"market_id": pl.String(), "pick": pl.String(), "pick_key": pl.String(), "book": pl.String(),
        "source": pl.String(), "price_mismatch": pl.Boolean()}  # fmt: skip
_EMPTY = pl.DataFrame(schema={**FUTURES_SCHEMA, **_OWN})


class FuturesBoard:
    """Prices of futures at one time, and the contestants of their markets.

    Parameters
    ----------
    fields
        Contestants of markets for which the catalog and the market itself do not define them.

    Examples
    --------
    >>> from datetime import datetime, UTC
    >>> quote = {"sportsbook": "FanDuel", "league": "nba", "market": "Winner", "selection": "Lakers", "odds_decimal": 9}
    >>> board = FuturesBoard().apply([quote], datetime(2026, 11, 1, tzinfo=UTC))
    >>> [(market.name, market.type) for market in board.markets.values()]
    [('NBA Champion', 'TEAM')]
    """

    def __init__(self, fields: Sequence[FuturesField] = ()) -> None:
        self.number = 0
        self.now: datetime | None = None
        self.table = _EMPTY
        self.markets: Mapping[str, FuturesMarket] = {}
        self.rejected = NONE_REJECTED  # of the last batch
        self.fields: Mapping[str, Field] = fields_by_market(fields)

    def __len__(self) -> int:
        return self.table.height

    def apply(
        self, quotes: Sequence[Mapping[str, Any]] | IntoFrame, now: datetime, *, source: str = "",
        removed: Collection[str] = (),
    ) -> "FuturesBoard":  # fmt: skip
        """Return the board after a batch of quotes.

        Invalid rows are listed in `rejected`. Raises `OddsError` if a required column is missing.

        Parameters
        ----------
        quotes
            Rows with the columns of `FUTURES_SCHEMA`, or a frame of them.
        now
            The time of the batch.
        source
            The feed that the prices are from.
        removed
            The source's own ids of prices that are gone; they are applied before the quotes.
        """
        now = now.astimezone(UTC) if now.tzinfo else now.replace(tzinfo=UTC)
        now = now if self.now is None else max(now, self.now)
        markets = dict(self.markets)
        old = self.table
        if removed:
            old = old.filter(~((pl.col("source") == source) & pl.col("id").is_in(list(removed))))
        made = FuturesBoard.__new__(FuturesBoard)
        fresh, made.rejected = _read(quotes, markets, now, source)
        if fresh.height:
            fresh = _newer(fresh, old)
            old = pl.concat([old.join(fresh, on=_KEY, how="anti"), fresh.select(old.columns)])
        remaining = old.filter(pl.col("last_seen_at") >= now - timedelta(seconds=kinds.thresholds().forget_s)).sort(
            _KEY
        )
        market_ids = set(remaining["market_id"].unique().to_list())
        made.number, made.now, made.table, made.fields = self.number + 1, now, remaining, self.fields
        made.markets = {id_: market for id_, market in markets.items() if id_ in market_ids}
        return made

    def with_fields(self, fields: Sequence[FuturesField]) -> "FuturesBoard":
        """Return the same board with other fields."""
        made = FuturesBoard(fields)
        made.number, made.now, made.table, made.markets = self.number + 1, self.now, self.table, self.markets
        return made

    def dump(self) -> dict[str, Any]:
        """Serialise the board for `restore`."""
        table = io.BytesIO()
        # polars locks a frame while writing it and may release the GIL meanwhile; a reader then waits for that lock
        # while holding the GIL, a deadlock. A clone has a lock of its own and shares the columns.
        self.table.clone().write_ipc_stream(table, compression="zstd")
        return {
            "number": self.number, "now": self.now and self.now.isoformat(), "table": table.getvalue(),
            "markets": list(self.markets.values()), "fields": dict(self.fields),
        }  # fmt: skip

    @classmethod
    def restore(cls, held: Mapping[str, Any]) -> "FuturesBoard":
        """Restore a board from `dump`."""
        made = cls()
        made.number, made.now = held["number"], held["now"] and datetime.fromisoformat(held["now"])
        made.table = pl.read_ipc_stream(io.BytesIO(held["table"]))
        made.markets = {market[0]: FuturesMarket(*market) for market in held["markets"]}
        made.fields = {id_: Field(tuple(who), places, by) for id_, (who, places, by) in held["fields"].items()}
        return made

    @cached_property
    def ids(self) -> frozenset[tuple[str, str]]:
        """Each source's own ids of the current prices."""
        return frozenset(self.table.filter(pl.col("id").is_not_null()).select("source", "id").iter_rows())

    @cached_property
    def sheets(self) -> Mapping[str, Sheet]:
        """Prices of each market by selection and book, by market id."""
        return sheets_of(self.table, self.markets, self.fields)


def _read(
    quotes: Sequence[Mapping[str, Any]] | IntoFrame, markets: dict[str, FuturesMarket], now: datetime, source: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cast quotes, identify their market and selection, and list invalid ones; new markets are added to `markets`."""
    frame = _frame(quotes) if isinstance(quotes, Sequence) else to_polars(quotes)
    if not frame.height:
        return _EMPTY, NONE_REJECTED
    if "market" in frame.columns:
        frame = frame.with_columns(market_type=pl.col("market"))
    table = check_odds(frame.drop("row", strict=False).with_columns(event_id=pl.lit("futures")))
    rejected = table.rejected
    texts = [pl.col(name) if name in table.columns else pl.lit(None).alias(name) for name in _TEXTS]
    cast = [
        pl.col(name).cast(kind, strict=False) if name in table.columns else pl.lit(None, kind).alias(name)
        for name, kind in FUTURES_SCHEMA.items()
    ]
    raw_labels = table.select(*[text.cast(pl.String).fill_null("") for text in texts], "line").with_columns(
        places=table["places"].cast(pl.Int64, strict=False) if "places" in table.columns else pl.lit(None, pl.Int64),
        start=table["event_start_time"],
    )
    places: list[tuple[str, str, str] | None] = []
    bad = []
    for row, raw_label in zip(table["row"].to_list(), raw_labels.iter_rows(), strict=True):
        try:
            market, pick = identify_price(FuturesLabel(*raw_label))
        except UnreadableError as error:
            places.append(None)
            bad.append((row, "selection", raw_label[6], str(error), "unreadable"))
            continue
        markets.setdefault(market.id, market)
        places.append((market.id, pick, catalog.normalise(pick)))
    if bad:
        rejected = pl.concat([rejected, pl.DataFrame(bad, schema=BAD_ROW_SCHEMA, orient="row")])
    seen = pl.coalesce(pl.col("last_seen_at"), pl.lit(now, TIME))
    rows = (
        table.select(*cast, "price_mismatch")
        .with_columns(
            market_id=pl.Series([place and place[0] for place in places], dtype=pl.String),
            pick=pl.Series([place and place[1] for place in places], dtype=pl.String),
            pick_key=pl.Series([place and place[2] for place in places], dtype=pl.String),
            book=pl.Series([catalog.book(book).id or book for book in table["sportsbook"].to_list()], dtype=pl.String),
            source=pl.lit(source),
            last_seen_at=pl.min_horizontal(seen, pl.lit(now, TIME)),
        )
        .filter(pl.col("market_id").is_not_null())
    )
    return rows.select(_EMPTY.columns), rejected


def _frame(quotes: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Build a frame of rows; numbers and times may be texts."""
    names = [name for name in FUTURES_SCHEMA if any(name in quote for quote in quotes)]
    return pl.DataFrame(
        {name: pl.Series([quote.get(name) for quote in quotes], strict=False) for name in names}, strict=False
    )


def _newer(fresh: pl.DataFrame, old: pl.DataFrame) -> pl.DataFrame:
    """Return the newest quote of each price unless a newer one is known, with the time of the last change."""
    last = fresh.sort("last_seen_at", maintain_order=True).unique(_KEY, keep="last", maintain_order=True)
    before = old.select(*_KEY, was="odds_decimal", then="odds_changed_at", heard="last_seen_at")
    joined = last.join(before, on=_KEY, how="left").filter(
        pl.col("heard").is_null() | (pl.col("last_seen_at") >= pl.col("heard"))
    )
    own, then = pl.coalesce("odds_changed_at", "last_seen_at"), pl.col("then")
    unchanged = pl.col("odds_decimal") == pl.col("was")
    # A price cannot have changed before the one it replaces did.
    changed = pl.when(unchanged).then(then).when(own < then).then("last_seen_at").otherwise(own)
    return joined.with_columns(odds_changed_at=changed).select(old.columns)
