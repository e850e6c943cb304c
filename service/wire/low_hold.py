"""Low holds on the wire. Field order is the wire's."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from oddsengine import catalog
from oddsengine.query import values
from oddsengine_service.wire.columns import Encoding
from oddsengine_service.wire.envelopes import GameState, ListMeta, Pagination
from oddsengine_service.wire.numbers import Number, american, exact, moment, rounded


class HoldOdds(msgspec.Struct, frozen=True):
    """A price in its forms, and the fair probability; `probability` is another name of the implied one."""

    american: float
    decimal: float
    implied_probability: float
    fair_probability: Number
    probability: float


class HoldSide(msgspec.Struct, frozen=True, kw_only=True):
    """One outcome, and all books that have its best price."""

    selection: str
    books: list[str]
    line: Number
    odds: HoldOdds
    deep_links: dict[str, str]
    odds_ids: dict[str, str]  # by book


class LowHold(msgspec.Struct, frozen=True, kw_only=True):
    """A market whose best prices sum to little more than one."""

    id: str
    event_id: str
    event_name: str
    sport: str
    league: str
    market_type: str
    line: Number
    home_team: str
    away_team: str
    start_time: str | None
    hold_percentage: float
    is_live: bool
    all_books: list[str]
    side1: HoldSide
    side2: HoldSide
    side3: HoldSide | None
    detected_at: str
    is_alternate_line: bool
    is_player_prop: bool
    player_name: str | None
    player_id: str | None
    stat_category: str | None
    confidence: float
    odds_age_seconds: Number
    possibly_stale: bool
    warnings: list[str]
    unconfirmed: bool
    team_side: str | None
    market_segment: str | None
    game_state: GameState | None = None  # for tiers that may know


def low_hold(row: Mapping[str, Any]) -> LowHold:
    """A row of a low-hold frame as it goes out."""
    sides = [None if side is None else _hold_side(side) for side in (row["side1"], row["side2"], row["side3"])]
    assert sides[0] is not None
    assert sides[1] is not None
    return LowHold(
        id=row["id"],
        event_id=row["event_id"],
        event_name=row["event_name"],
        sport=row["sport"] or "",
        league=row["league"] or "",
        market_type=row["market_type"],
        line=rounded(row["line"]),
        home_team=row["home_team"] or "",
        away_team=row["away_team"] or "",
        start_time=moment(row["start_time"]),
        hold_percentage=exact(row["hold_percentage"]),
        is_live=row["is_live"],
        all_books=[catalog.book(book).id for book in row["all_books"]],
        side1=sides[0],
        side2=sides[1],
        side3=sides[2],
        detected_at=moment(row["detected_at"]) or "",
        is_alternate_line=row["is_alternate_line"],
        is_player_prop=row["is_player_prop"],
        player_name=row["player_name"],
        player_id=values.player_id(row["player_name"]),
        stat_category=row["stat_category"],
        confidence=_confidence(row),
        odds_age_seconds=rounded(row["oldest_odds_age_seconds"]),
        possibly_stale=row["possibly_stale"],
        warnings=row["warnings"],
        unconfirmed=row["unconfirmed"],
        team_side=row["team_side"],
        market_segment=row["market_segment"],
    )


def _confidence(row: Mapping[str, Any]) -> float:
    """How much a low hold is worth believing, 0 to 100: it fades with the oldest price as that of a +EV row does."""
    limits = catalog.thresholds()
    age = row["oldest_odds_age_seconds"]
    fades = limits.confidence_age_live_s if row["is_live"] else limits.confidence_age_s
    return exact(100.0 * math.exp(-(limits.stale_prematch_s if age is None else age) / fades))


def _id(book: str) -> str:
    return catalog.book(book).id


def _hold_side(side: Mapping[str, Any]) -> HoldSide:
    odds = side["odds"]
    implied = exact(odds["implied_probability"], 6)
    return HoldSide(
        selection=side["selection"],
        books=list(map(_id, side["books"])),
        line=rounded(side["line"]),
        odds=HoldOdds(
            american(odds["american"]),
            exact(odds["decimal"], 6),
            implied,
            rounded(odds["fair_probability"], 6),
            implied,
        ),
        odds_ids=dict(zip(map(_id, side["books"]), side["odds_ids"], strict=True)),
        deep_links={catalog.book(link["sportsbook"]).id: link["deep_link"] for link in side["deep_links"]},
    )


LOW_HOLD = Encoding(LowHold, row=low_hold)


class LowHoldPage(msgspec.Struct):
    """A page of low holds."""

    success: bool
    data: list[LowHold]
    pagination: Pagination
    meta: ListMeta
