"""Middles on the wire. Field order is the wire's."""

from collections.abc import Mapping
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.query import values
from oddsengine_service.wire.columns import Encoding
from oddsengine_service.wire.envelopes import ListMeta, Pagination
from oddsengine_service.wire.numbers import Number, american, exact, moment, rounded


class MiddleOdds(msgspec.Struct, frozen=True):
    """A price in its forms, and the fair probability."""

    american: float
    decimal: float
    probability: float
    fair_probability: float


class MiddleSide(msgspec.Struct, frozen=True, kw_only=True):
    """One bet of a middle."""

    book: str
    selection: str
    line: float
    odds: MiddleOdds
    stake_percent: float
    odds_age_seconds: Number
    deep_link: str | None
    odds_id: str | None


class Middle(msgspec.Struct, frozen=True, kw_only=True):
    """Two lines that can both win. Money figures are per 100 staked; a loss is below 0."""

    id: str
    event_id: str
    event_name: str
    sport: str
    league: str
    market_type: str
    side1: MiddleSide
    side2: MiddleSide
    middle_size: float
    middle_numbers: list[int]
    middle_probability: float
    expected_value: float
    quality_score: float
    detected_at: str
    home_team: str | None
    away_team: str | None
    start_time: str | None
    roi_percentage: float
    worst_case_loss: float
    best_case_profit: float
    break_even_percent: float
    odds_age_seconds: Number
    is_guaranteed_profit: bool
    guaranteed_roi: Number
    key_numbers: list[int]
    key_number_probability: Number
    market_overround: float
    is_live: bool
    is_player_prop: bool
    player_name: str | None
    player_id: str | None
    stat_category: str | None
    is_team_total: bool
    team_name: str | None
    warnings: list[str]
    unconfirmed: bool
    team_side: str | None
    market_segment: str | None
    probability_source: str


def middle(row: Mapping[str, Any]) -> Middle:
    """A row of a middles frame as it goes out.

    `guaranteed_roi` is the worst case where that is a profit, else null. `market_overround` is what the two prices sum
    to above 100 percent. `key_number_probability` is that of the middle where every number in it is a key number, 0
    where none is, and null between, for no part of it is known alone.
    """
    first, second = row["side1"], row["side2"]
    value = exact(row["expected_value"])
    chance = exact(row["middle_probability"], 6)
    inside, key = row["middle_numbers"], row["key_numbers"]
    whose = row["team_side"]
    stake = round(first["stake_percent"], 4)
    return Middle(
        id=row["id"],
        event_id=row["event_id"],
        event_name=row["event_name"],
        sport=row["sport"] or "",
        league=row["league"] or "",
        market_type=row["market_type"],
        side1=_middle_side(first, stake),
        side2=_middle_side(second, round(100.0 - stake, 4)),
        middle_size=exact(row["middle_size"]),
        middle_numbers=inside,
        middle_probability=chance,
        expected_value=value,
        quality_score=exact(row["quality_score"]),
        detected_at=moment(row["detected_at"]) or "",
        home_team=row["home_team"],
        away_team=row["away_team"],
        start_time=moment(row["start_time"]),
        roi_percentage=value,
        worst_case_loss=exact(row["worst_case_loss"]),
        best_case_profit=exact(row["best_case_profit"]),
        break_even_percent=exact(row["break_even_percent"]),
        odds_age_seconds=rounded(row["odds_age_seconds"]),
        is_guaranteed_profit=row["is_guaranteed_profit"],
        guaranteed_roi=exact(row["worst_case_loss"]) if row["is_guaranteed_profit"] else None,
        key_numbers=key,
        key_number_probability=0.0 if not key else chance if set(inside) <= set(key) else None,
        market_overround=exact(100.0 * (first["odds"]["probability"] + second["odds"]["probability"] - 1.0)),
        is_live=row["is_live"],
        is_player_prop=row["is_player_prop"],
        player_name=row["player_name"],
        player_id=values.player_id(row["player_name"]),
        stat_category=row["stat_category"],
        is_team_total=whose is not None,
        team_name={"home": row["home_team"], "away": row["away_team"]}.get(whose or ""),
        warnings=row["warnings"],
        unconfirmed=row["unconfirmed"],
        team_side=whose,
        market_segment=row["market_segment"],
        probability_source=row["probability_source"],
    )


def _middle_side(side: Mapping[str, Any], stake: float) -> MiddleSide:
    odds = side["odds"]
    return MiddleSide(
        book=catalog.book(side["book"]).id,
        selection=side["selection"],
        line=exact(side["line"]),
        odds=MiddleOdds(
            american(odds["american"]),
            exact(odds["decimal"], 6),
            exact(odds["probability"], 6),
            exact(odds["fair_probability"], 6),
        ),
        stake_percent=stake,
        odds_age_seconds=rounded(side["odds_age_seconds"]),
        deep_link=side["deep_link"],
        odds_id=side["odds_id"],
    )


MIDDLE = Encoding(Middle, row=middle)


class MiddlesSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of middles."""

    total: int
    positive_ev_count: int
    guaranteed_profit_count: int
    player_prop_count: int
    by_sport: dict[str, int]
    by_market: dict[str, int]
    by_sportsbook: dict[str, int]
    avg_middle_size: float
    avg_probability: float
    avg_ev: float
    best_ev: "BestEv | None"
    has_key_numbers_count: int


class BestEv(msgspec.Struct, frozen=True):
    """The middle with the largest expected value."""

    ev: float
    sport: str
    market: str


class MiddlePage(msgspec.Struct):
    """A page of middles."""

    success: bool
    data: list[Middle]
    pagination: Pagination
    meta: ListMeta
