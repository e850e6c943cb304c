"""Results of futures as frames: markets, prices and arbitrages, with published column names."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.detection import book_names as naming
from oddsengine.futures.board import FuturesBoard
from oddsengine.futures.evaluation import REASONS, Evaluation, evaluate
from oddsengine.futures.fields import FuturesField
from oddsengine.futures.identity import price_id
from oddsengine.maths.devig import Method, method_name
from oddsengine.pricing.references import Reference, book_list
from oddsengine.tables.casts import TIME
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.timestamps import micros

MARKETS_SCHEMA: dict[str, Any] = {
    "market_id": pl.String, "display_name": pl.String, "sport": pl.String, "league": pl.String, "season": pl.String,
    "future_type": pl.String, "subject": pl.String, "line": pl.Float64, "places": pl.Int64,
    "selection_count": pl.Int64, "books_available": pl.Int64, "field_size": pl.Int64, "field_source": pl.String,
    "is_complete": pl.Boolean, "incomplete_reason": pl.String, "hold_percentage": pl.Float64,
    "reference_book": pl.String, "reference_hold": pl.Float64,
}  # fmt: skip
PRICES_SCHEMA: dict[str, Any] = {
    "id": pl.String, "market_id": pl.String, "display_name": pl.String, "selection": pl.String, "sportsbook": pl.String,
    "odds_decimal": pl.Float64, "odds_american": pl.Float64, "line": pl.Float64, "is_active": pl.Boolean,
    "last_seen_at": TIME, "odds_changed_at": TIME, "rejected_because": pl.String, "fair_probability": pl.Float64,
    "ev_percentage": pl.Float64, "is_best": pl.Boolean,
}  # fmt: skip
LEG = {"selection": pl.String, "sportsbook": pl.String, "odds_decimal": pl.Float64, "stake_percent": pl.Float64}
ARBITRAGE_SCHEMA: dict[str, Any] = {
    "id": pl.String, "market_id": pl.String, "display_name": pl.String, "profit_percent": pl.Float64,
    "implied_total": pl.Float64, "legs": pl.List(pl.Struct(LEG)),
}  # fmt: skip


class Futures(NamedTuple):
    """Result of `find_futures`: markets, prices, arbitrages, and invalid rows."""

    markets: pl.DataFrame  # one row per market: its field, whether that is complete, its hold
    odds: pl.DataFrame  # one row per price, with its fair probability and EV
    arbitrage: pl.DataFrame  # of complete fields, with their legs
    rejected: pl.DataFrame  # invalid rows, with the reason


def find_futures(
    odds: IntoFrame, *, fields: Sequence[FuturesField] = (), books: Collection[str] | None = None,
    sharp: str | Sequence[str] | None = None, method: Method = "power", now: datetime | None = None,
    outliers: bool = True,
) -> Futures:  # fmt: skip
    """Find fair prices, holds and arbitrages of futures with complete fields.

    Parameters
    ----------
    odds
        A table with the columns of `FUTURES_SCHEMA`.
    fields
        Contestants of markets for which the catalog and the market itself do not define them.
    books
        Books that can be bet at; None is all.
    sharp
        A reference book, or several in order of preference; None is the catalog's sharp books.
    method
        One of `DEVIG_METHODS`, an alias, or weights of several, as in `oddsengine.devig`.
    now
        Time at which ages are evaluated; None is the newest time in the table.
    outliers
        Whether to reject prices far from those of the other providers.

    Examples
    --------
    >>> table = pl.DataFrame(
    ...     {
    ...         "sportsbook": ["pinnacle", "pinnacle", "fanduel", "fanduel"],
    ...         "league": "nba",
    ...         "market": "To make the playoffs 2026-27",
    ...         "subject": "Spurs",
    ...         "selection": ["Yes", "No", "Yes", "No"],
    ...         "odds_decimal": [1.5, 2.7, 1.65, 2.2],
    ...     }
    ... )
    >>> found = find_futures(table)
    >>> found.markets.select("display_name", "is_complete").rows()
    [('NBA to make the playoffs 2026-27: San Antonio Spurs', True)]
    >>> found.odds.filter(sportsbook="fanduel").select("selection", pl.col("ev_percentage").round(2)).rows()
    [('No', -23.18), ('Yes', 7.39)]
    """
    name = method_name(method)
    named = book_list(books)
    if isinstance(sharp, Mapping):
        raise ValueError(f"sharp must be a book or books in order of preference, got {excerpt(sharp)}")
    odds = to_polars(odds)
    board = FuturesBoard(fields).apply(odds, _newest(odds) if now is None else now)
    moment = board.now or datetime.fromtimestamp(0, UTC)
    naming.check(board.table["sportsbook"].unique().to_list(), named, sharp, None)
    book_ids = None if named is None else {catalog.book(book).id for book in named}
    preferred = None if sharp is None else [catalog.book(book).id for book in Reference.parse(sharp).order]
    sheets = [board.sheets[id_] for id_ in sorted(board.sheets)]
    judged = [evaluate(sheet, micros(moment), book_ids, preferred, name, outliers=outliers) for sheet in sheets]
    prices = pl.concat([prices_of(one, board) for one in judged]) if judged else pl.DataFrame(schema=PRICES_SCHEMA)
    return Futures(
        pl.DataFrame([market_row(one) for one in judged], schema=MARKETS_SCHEMA, orient="row"), prices,
        pl.DataFrame([row for one in judged if (row := _arbitrage_row(one))], schema=ARBITRAGE_SCHEMA, orient="row"),
        board.rejected,
    )  # fmt: skip


def _newest(odds: pl.DataFrame) -> datetime:
    """Return the newest time of a table; None if it has no times."""
    name = next((name for name in ("last_seen_at", "timestamp") if name in odds.columns), None)
    table = FuturesBoard().apply(odds, datetime(9999, 1, 1, tzinfo=UTC)).table if name else pl.DataFrame()
    newest = table["last_seen_at"].max() if table.height else None
    return newest if isinstance(newest, datetime) else datetime.fromtimestamp(0, UTC)


def market_row(judged: Evaluation) -> dict[str, Any]:
    market, field = judged.sheet.market, judged.sheet.field
    return {
        "market_id": market.id, "display_name": market.name, "sport": market.sport, "league": market.league,
        "season": market.season or None, "future_type": market.type, "subject": market.subject or None,
        "line": market.line, "places": judged.sheet.places or None, "selection_count": len(judged.sheet.names),
        "books_available": len(judged.sheet.books), "field_size": None if field is None else len(field.contestants),
        "field_source": None if field is None else field.source, "is_complete": judged.complete,
        "incomplete_reason": judged.why or None, "hold_percentage": _percent(judged.hold),
        "reference_book": judged.reference or None, "reference_hold": _percent(judged.margin),
    }  # fmt: skip


def prices_of(judged: Evaluation, board: FuturesBoard) -> pl.DataFrame:
    """Build the prices of one market, by selection and book."""
    sheet = judged.sheet
    i, j = np.nonzero(sheet.row >= 0)
    names = [sheet.names[at] for at in i.tolist()]
    books = [sheet.books[at] for at in j.tolist()]
    rows = board.table[sheet.row[i, j].tolist()]
    return pl.DataFrame(
        {
            "id": [price_id(sheet.market.id, *pair) for pair in zip(names, books, strict=True)],
            "market_id": sheet.market.id, "display_name": sheet.market.name, "selection": names, "sportsbook": books,
            "odds_decimal": rows["odds_decimal"], "odds_american": rows["odds_american"],
            "line": pl.Series([sheet.market.line] * i.size, dtype=pl.Float64), "is_active": rows["is_active"],
            "last_seen_at": rows["last_seen_at"], "odds_changed_at": rows["odds_changed_at"],
            "rejected_because": pl.Series(
                [REASONS[code] or None for code in judged.rejected[i, j].tolist()], dtype=pl.String
            ),
            "fair_probability": pl.Series(judged.fair[i]).fill_nan(None),
            "ev_percentage": pl.Series(100.0 * judged.edge[i, j]).fill_nan(None),
            "is_best": judged.best[i] == j,
        },
        schema=PRICES_SCHEMA,
    )  # fmt: skip


def _arbitrage_row(judged: Evaluation) -> Mapping[str, Any] | None:
    arbitrage, sheet = judged.arbitrage, judged.sheet
    if arbitrage is None or sheet.field is None:
        return None
    legs = [
        {
            "selection": sheet.names[place], "sportsbook": sheet.books[book],
            "odds_decimal": float(sheet.odds[place, book]), "stake_percent": 100.0 * share,
        }
        for place, book, share in zip(
            sheet.place.tolist(), arbitrage.book.tolist(), arbitrage.share.tolist(), strict=True
        )
    ]  # fmt: skip
    return {
        "id": arbitrage.id, "market_id": sheet.market.id, "display_name": sheet.market.name,
        "profit_percent": 100.0 * arbitrage.profit, "implied_total": 100.0 * arbitrage.implied, "legs": legs,
    }  # fmt: skip


def _percent(value: float) -> float | None:
    return None if np.isnan(value) else 100.0 * value
