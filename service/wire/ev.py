"""+EV opportunities on the wire. Field order is the wire's."""

from collections.abc import Mapping
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.query import values
from oddsengine_service.wire.envelopes import Counted, Pagination
from oddsengine_service.wire.numbers import Number, american, exact, moment, rounded


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


def ev(row: Mapping[str, Any]) -> Ev:
    """A row of a +EV frame as it goes out."""
    percent = exact(row["ev_percentage"])
    return Ev(
        id=row["id"],
        game_id=row["game_id"],
        external_event_id=row["external_event_id"],
        selection_id=row["selection_id"],
        ev_percentage=percent,
        odds_american=american(row["odds_american"]),
        odds_decimal=exact(row["odds_decimal"], 6),
        no_vig_odds=None if row["no_vig_odds"] is None else american(row["no_vig_odds"]),
        fair_probability=rounded(row["fair_probability"], 6),
        market_width=rounded(row["market_width"]),
        devig_method=row["devig_method"],
        sharp_book=row["sharp_book"],
        selection=row["selection"],
        market=row["market"],
        line=rounded(row["line"]),
        sportsbook=catalog.book(row["sportsbook"]).id,
        game=row["game"],
        sport=row["sport"] or "",
        league=row["league"] or "",
        home_team=row["home_team"],
        away_team=row["away_team"],
        start_time=moment(row["start_time"]),
        is_live=row["is_live"],
        confidence_score=exact(row["confidence_score"]),
        kelly_percent=rounded(row["kelly_percent"], 6),
        book_count=row["book_count"],
        arb_available=row["arb_available"],
        arb_profit=rounded(row["arb_profit"]),
        is_player_prop=row["is_player_prop"],
        player_name=row["player_name"],
        player_id=values.player_id(row["player_name"]),
        stat_category=row["stat_category"],
        possibly_stale=row["possibly_stale"],
        oldest_odds_age_seconds=rounded(row["oldest_odds_age_seconds"]),
        warnings=row["warnings"],
        unconfirmed=row["unconfirmed"],
        detected_at=moment(row["detected_at"]) or "",
        ev_percent=percent,
        devig_book=row["sharp_book"],
        team_side=row["team_side"],
        market_segment=row["market_segment"],
        selection_type=row["selection_type"],
        push_probability=rounded(row["push_probability"], 6),
        ev_per_stake=rounded(row["ev_per_stake"]),
        is_alternate_line=row["is_alternate_line"],
        shared_feed=row["shared_feed"],
        odds_id=row["odds_id"],
        odds_decimal_net=exact(row["net_odds"], 6),
        reference=row["reference"],
        ev_vs_sharp=rounded(row["ev_vs_sharp"]),
        ev_low=rounded(row["ev_low"]),
        ev_high=rounded(row["ev_high"]),
        ev_error=rounded(row["ev_error"]),
        prob_positive=rounded(row["prob_positive"], 6),
        flags=row["flags"] or [],
        kelly_shrunk=rounded(row["kelly_shrunk"], 6),
    )


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
