"""Futures. Fields are in the order of the response; those of the published interface come first."""

import msgspec

from oddsengine_service.wire.envelopes import Moment, Share
from oddsengine_service.wire.numbers import Number


class FutureLeg(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant of an arbitrage; the implied probability is of the price after commission."""

    selection: str
    sportsbook: str
    odds_american: float
    odds_decimal: float
    implied_probability: Share
    stake_percent: float


class FutureArbitrage(msgspec.Struct, frozen=True, kw_only=True):
    """Stakes on every contestant of a complete field; `implied_total` is in percent per winner."""

    id: str
    profit_percent: float
    implied_total: float
    legs: list[FutureLeg]


class Future(msgspec.Struct, frozen=True, kw_only=True):
    """A market of futures. `is_complete` is null if its contestants are unknown; without it nothing is derived."""

    market_id: str
    display_name: str
    sport: str
    league: str
    future_type: str
    selection_count: int
    books_available: int
    season: str | None
    subject: str | None
    line: Number
    places: int | None
    event_start_time: Moment | None
    last_update: Moment | None
    books: list[str]
    field_size: int | None
    field_source: str | None
    is_complete: bool | None
    incomplete_reason: str | None
    hold_percentage: Number
    reference_book: str | None
    reference_hold: Number
    devig_method: str
    arbitrage: FutureArbitrage | None


class FutureOdds(msgspec.Struct, frozen=True, kw_only=True):
    """One book's price of a selection; `probability` is its implied probability, including the margin."""

    id: str
    selection: str
    sportsbook: str
    odds_american: float
    odds_decimal: float
    probability: Share
    line: Number
    future_market_id: str
    future_market_name: str
    event_start_time: Moment | None
    timestamp: Moment
    sport: str
    league: str
    future_type: str
    season: str | None
    subject: str | None
    sportsbook_name: str
    is_active: bool
    last_seen_at: Moment
    odds_changed_at: Moment
    deep_link: str | None
    is_complete: bool | None
    is_best: bool
    fair_probability: Share | None
    no_vig_odds: Number
    ev_percentage: Number
    set_aside: str | None
