"""+EV opportunities on the wire. Field order is the wire's."""

from typing import Any

import msgspec
import polars as pl

from oddsengine import catalog
from oddsengine.query import values
from oddsengine_service.wire.columns import Encoding, american_of, mapped, moment_of, rounded_of
from oddsengine_service.wire.envelopes import Counted, Pagination
from oddsengine_service.wire.numbers import Number


class Ev(msgspec.Struct, frozen=True, kw_only=True):
    """A price that beats the fair probability."""

    id: str
    game_id: str | None
    external_event_id: str | None
    selection_id: str | None
    ev_percentage: float
    odds_american: float
    odds_decimal: float
    no_vig_odds: Number
    fair_probability: Number
    market_width: Number
    devig_method: str
    sharp_book: str
    selection: str
    market: str
    line: Number
    sportsbook: str
    game: str
    sport: str
    league: str
    home_team: str | None
    away_team: str | None
    start_time: str | None
    is_live: bool
    confidence_score: float
    kelly_percent: Number
    book_count: int
    arb_available: bool
    arb_profit: Number
    is_player_prop: bool
    player_name: str | None
    player_id: str | None
    stat_category: str | None
    possibly_stale: bool
    oldest_odds_age_seconds: Number
    warnings: list[str]
    unconfirmed: bool
    detected_at: str
    ev_percent: float
    devig_book: str
    team_side: str | None
    market_segment: str | None
    selection_type: str | None
    push_probability: Number
    ev_per_stake: Number
    is_alternate_line: bool
    shared_feed: list[str]
    odds_id: str | None
    odds_decimal_net: float
    reference: str
    ev_vs_sharp: Number
    ev_low: Number
    ev_high: Number
    ev_error: Number
    prob_positive: Number
    flags: list[str]
    kelly_shrunk: Number
    independent_books: int | None
    agreeing_books: int | None


_SIX = {
    "odds_decimal", "fair_probability", "kelly_percent", "push_probability", "odds_decimal_net", "prob_positive",
    "kelly_shrunk",
}  # fmt: skip
_FROM = {"ev_percent": "ev_percentage", "devig_book": "sharp_book", "odds_decimal_net": "net_odds"}
_AMERICAN = {"odds_american", "no_vig_odds"}
_TIMES = {"start_time", "detected_at"}


def _column(name: str, kind: Any) -> pl.Expr:
    """A field of `Ev` from columns of a +EV frame."""
    column = pl.col(_FROM.get(name, name))
    if name in _AMERICAN:
        column = american_of(column)
    elif kind in (float, Number):
        column = rounded_of(column, 6 if name in _SIX else 4)
    elif name in _TIMES:
        column = moment_of(column)
    if kind is str:
        column = column.fill_null("")
    elif name == "flags":
        column = column.fill_null(pl.lit([], pl.List(pl.String)))
    return column.alias(name)


_COLUMNS = [_column(field.name, field.type) for field in msgspec.structs.fields(Ev)]


def ev_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of a +EV frame as they go out, one column a field of `Ev`."""
    return frame.with_columns(
        mapped(frame["sportsbook"], lambda name: catalog.book(name).id),
        mapped(frame["player_name"], values.player_id).alias("player_id"),
    ).select(_COLUMNS)


EV = Encoding(Ev, columns=ev_columns)


class EvSummary(msgspec.Struct, frozen=True):
    """All rows that fit, in numbers."""

    count: int
    avg_ev: float
    max_ev: float
    by_sportsbook: dict[str, int]
    by_sport: dict[str, int]
    by_market: dict[str, int]


class EvMeta(Counted, kw_only=True):
    """What a +EV list is of."""

    source: str
    last_update: str | None
    summary: EvSummary
    filters: dict[str, Any]


class EvPage(msgspec.Struct):
    """A page of the +EV list."""

    success: bool
    data: list[Ev]
    pagination: Pagination
    meta: EvMeta
