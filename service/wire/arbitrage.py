"""Arbitrages on the wire. Field order is the wire's."""

from collections.abc import Mapping
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.query import values
from oddsengine_service.wire.columns import Encoding
from oddsengine_service.wire.envelopes import Counted, GameState, Pagination
from oddsengine_service.wire.numbers import Number, american, exact, moment, rounded


class Leg(msgspec.Struct, frozen=True, kw_only=True):
    """One bet of an arbitrage."""

    sportsbook: str
    selection: str
    odds_american: float
    odds_decimal: float
    implied_probability: float
    stake_percent: float
    timestamp: str | None
    external_event_id: str | None
    selection_id: str | None
    market_id: str | None
    selection_type: str | None
    line: Number
    odds_id: str | None


class Arbitrage(msgspec.Struct, frozen=True, kw_only=True):
    """Bets on every outcome that cost less than they pay."""

    id: str
    event_id: str
    event_name: str
    sport: str
    league: str
    market_type: str
    line: Number
    profit_percent: float
    implied_total: float
    is_live: bool
    start_time: str | None
    is_alternate_line: bool
    possibly_stale: bool
    oldest_odds_age_seconds: Number
    warnings: list[str]
    unconfirmed: bool
    game_state: GameState | None
    ev_available: bool
    ev_percentage: Number
    is_player_prop: bool
    player_name: str | None
    player_id: str | None
    stat_category: str | None
    legs: list[Leg]
    detected_at: str
    ev_percent: Number
    devig_book: str | None
    team_side: str | None
    market_segment: str | None
    home_team: str | None
    away_team: str | None
    book_count: int


def arbitrage(row: Mapping[str, Any]) -> Arbitrage:
    """A row of an arbitrage frame as it goes out; the stakes as they are shown sum to 100."""
    edge = rounded(row["ev_percentage"])
    legs = row["legs"]
    stakes = [round(leg["stake_percent"], 4) for leg in legs[:-1]]
    stakes.append(round(100.0 - sum(stakes), 4))
    return Arbitrage(
        id=row["id"],
        event_id=row["event_id"],
        event_name=row["event_name"],
        sport=row["sport"] or "",
        league=row["league"] or "",
        market_type=row["market_type"],
        line=rounded(row["line"]),
        profit_percent=exact(row["profit_percent"]),
        implied_total=exact(row["implied_total"]),
        is_live=row["is_live"],
        start_time=moment(row["start_time"]),
        is_alternate_line=row["is_alternate_line"],
        possibly_stale=row["possibly_stale"],
        oldest_odds_age_seconds=rounded(row["oldest_odds_age_seconds"]),
        warnings=row["warnings"],
        unconfirmed=row["unconfirmed"],
        game_state=None if row["game_state"] is None else GameState(**row["game_state"]),
        ev_available=row["ev_available"],
        ev_percentage=edge,
        is_player_prop=row["is_player_prop"],
        player_name=row["player_name"],
        player_id=values.player_id(row["player_name"]),
        stat_category=row["stat_category"],
        legs=[_leg(leg, stake) for leg, stake in zip(legs, stakes, strict=True)],
        detected_at=moment(row["detected_at"]) or "",
        ev_percent=edge,
        devig_book=row.get("devig_book"),
        team_side=row["team_side"],
        market_segment=row["market_segment"],
        home_team=row["home_team"],
        away_team=row["away_team"],
        book_count=row["book_count"],
    )


def _leg(leg: Mapping[str, Any], stake: float) -> Leg:
    return Leg(
        sportsbook=catalog.book(leg["sportsbook"]).id,
        selection=leg["selection"],
        odds_american=american(leg["odds_american"]),
        odds_decimal=exact(leg["odds_decimal"], 6),
        implied_probability=exact(leg["implied_probability"], 6),
        stake_percent=stake,
        timestamp=moment(leg["timestamp"]),
        external_event_id=leg["external_event_id"],
        selection_id=leg["selection_id"],
        market_id=leg["market_id"],
        selection_type=leg["selection_type"],
        line=rounded(leg["line"]),
        odds_id=leg["odds_id"],
    )


ARBITRAGE = Encoding(Arbitrage, row=arbitrage)


class ArbitrageSummary(msgspec.Struct, frozen=True):
    """All rows that fit, in numbers."""

    count: int
    avg_profit: float
    max_profit: float
    by_market: dict[str, int]
    by_sport: dict[str, int]


class ArbitrageMeta(Counted, kw_only=True):
    """What an arbitrage list is of."""

    source: str
    summary: ArbitrageSummary
    filters: dict[str, Any]
    books_analyzed: int


class ArbitragePage(msgspec.Struct):
    """A page of the arbitrage list."""

    success: bool
    data: list[Arbitrage]
    pagination: Pagination
    meta: ArbitrageMeta
