"""A board in a few lines: rows written by hand, and what the engine says of them.

Every helper takes a book, lines and prices; a price of None leaves that side out. Other fields of a row go by name:
`age` in seconds, anything of an odds table as it is.
"""

import warnings
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from support.boards import COLUMNS, frame
from support.hazards import NOW, SECOND, Row

import oddsengine

HOME, AWAY = "Boston Celtics", "Los Angeles Lakers"
MOMENT = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=NOW)
NBA: dict[str, Any] = dict(event_id="e", sport="basketball", league="nba", home_team=HOME, away_team=AWAY)
LA_LIGA: dict[str, Any] = dict(
    event_id="s", sport="soccer", league="spain_la_liga", home_team="Atlético Madrid", away_team="Torino"
)
NHL: dict[str, Any] = dict(
    event_id="h", sport="hockey", league="nhl", home_team="Utah Mammoth", away_team="Toronto Maple Leafs"
)
Rows = list[Row]


def row(
    book: str, market: str, selection: str, odds: float | None, line: float | None = None, age: float = 0.0,
    **fields: Any,
) -> Row:  # fmt: skip
    """One price."""
    empty: Row = dict.fromkeys(COLUMNS)
    own = dict(
        sportsbook=book, market_type=market, selection=selection, odds_decimal=odds, line=line, is_live=False,
        last_seen_at=NOW - round(age * SECOND), is_active=True, flap=False, rejected_upstream=False, confirmed=False,
    )  # fmt: skip
    return empty | NBA | own | fields


def both(book: str, market: str, sides: Iterable[tuple[str, float | None, float | None]], **fields: Any) -> Rows:
    """The sides of one market: selection, price, line."""
    return [row(book, market, text, odds, line, **fields) for text, odds, line in sides if odds is not None]


def total(
    book: str, line: float | None, over: float | None, under: float | None, market: str = "total_points",
    **fields: Any,
) -> Rows:  # fmt: skip
    return both(book, market, [("Over", over, line), ("Under", under, line)], **fields)


def spread(
    book: str, line: float, home: float | None, away: float | None, market: str = "point_spread", **fields: Any
) -> Rows:
    names = NBA | fields
    return both(book, market, [(names["home_team"], home, line), (names["away_team"], away, -line)], **fields)


def moneyline(
    book: str, home: float | None, away: float | None, draw: float | None = None, market: str = "moneyline",
    **fields: Any,
) -> Rows:  # fmt: skip
    names = NBA | fields
    sides = [(names["home_team"], home, None), ("Draw", draw, None), (names["away_team"], away, None)]
    return both(book, market, sides, **fields)


def prop(
    book: str, player: str, line: float, over: float | None, under: float | None, market: str = "player_points",
    **fields: Any,
) -> Rows:  # fmt: skip
    return total(book, line, over, under, market, player_name=player, **fields)


def team_total(book: str, side: str, line: float, over: float | None, under: float | None, **fields: Any) -> Rows:
    return total(book, line, over, under, "team_total", team_side=side, **fields)


def table(*parts: Row | Rows) -> pl.DataFrame:
    """Rows and lists of rows as one frame."""
    return frame([r for part in parts for r in (part if isinstance(part, list) else [part])])


def aside(odds: pl.DataFrame, **words: Any) -> dict[int, str]:
    """What is rejected: place in the table, from 0, and by which guard."""
    found = oddsengine.rejected(odds, now=MOMENT, **words)
    return dict(found.select("row", "guard").iter_rows())


def reason(odds: pl.DataFrame, place: int, **words: Any) -> str:
    """Why the row at a place is rejected."""
    found = oddsengine.rejected(odds, now=MOMENT, **words).filter(pl.col("row") == place)
    return str(found["reason"].item())


def ask(find: Callable[..., pl.DataFrame], odds: pl.DataFrame, **words: Any) -> list[dict[str, Any]]:
    """Rows of a finder at the boards' moment; +EV over a sharp reference, unless another method is named."""
    if getattr(find, "__name__", "") == "find_ev":
        words = {"method": "power"} | words
    return find(odds, **{"now": MOMENT, **words}).to_dicts()


def nothing(said: str) -> Any:
    """A context in which a finder returns nothing, and says why."""
    return pytest.warns(oddsengine.OddsWarning, match=said)


def whatever_is_found() -> Any:
    """A context for boards of any kind: some have nothing, and why is of no concern."""
    return warnings.catch_warnings(action="ignore", category=oddsengine.OddsWarning)


def legs(arb: dict[str, Any]) -> list[tuple[str, float]]:
    """Books and prices of an arbitrage."""
    return [(leg["sportsbook"], leg["odds_decimal"]) for leg in arb["legs"]]


def market_of(odds: pl.DataFrame, **words: Any) -> list[dict[str, Any]]:
    """The canonical markets of a table."""
    return oddsengine.markets(odds, now=MOMENT, **words).to_dicts()
