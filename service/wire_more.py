"""What crosses the wire beside prices: opportunities, reference data, events, splits. Field order is the wire's.

Numbers are rounded here, once: American prices to 2 digits, decimal ones and probabilities to 6, others to 4.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from oddsengine import catalog
from service.wire import Counted, Pagination

Number = float | None
Share = Annotated[float, Meta(ge=0.0, le=1.0)]


def moment(time: datetime | None) -> str | None:
    """A time of UTC as the wire writes it.

    Examples
    --------
    >>> from datetime import UTC
    >>> moment(datetime(2026, 2, 8, 18, 30, tzinfo=UTC))
    '2026-02-08T18:30:00.000000Z'
    """
    return None if time is None else time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def rounded(value: Number, digits: int = 4) -> Number:
    """A number as it is shown: never a minus zero."""
    return None if value is None else round(value, digits) + 0.0


def exact(value: float, digits: int = 4) -> float:
    """The same of a number that is always there."""
    return round(value, digits) + 0.0


def american(value: float) -> float:
    """An American price as it is shown; -100 is +100."""
    shown = round(value, 2)
    return 100.0 if shown == -100.0 else shown


# ---- opportunities ----


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
    stat_category: str | None
    possibly_stale: bool
    oldest_odds_age_seconds: Number
    warnings: list[str]
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
        stat_category=row["stat_category"],
        possibly_stale=row["possibly_stale"],
        oldest_odds_age_seconds=rounded(row["oldest_odds_age_seconds"]),
        warnings=row["warnings"],
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
    )


class GameState(msgspec.Struct, frozen=True):
    """How a game stands."""

    period: str | None
    clock: str | None
    score_home: int | None
    score_away: int | None


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
    game_state: GameState | None
    ev_available: bool
    ev_percentage: Number
    is_player_prop: bool
    player_name: str | None
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
        game_state=None if row["game_state"] is None else GameState(**row["game_state"]),
        ev_available=row["ev_available"],
        ev_percentage=edge,
        is_player_prop=row["is_player_prop"],
        player_name=row["player_name"],
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
    )


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
    stat_category: str | None
    is_team_total: bool
    team_name: str | None
    warnings: list[str]
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
        stat_category=row["stat_category"],
        is_team_total=whose is not None,
        team_name={"home": row["home_team"], "away": row["away_team"]}.get(whose or ""),
        warnings=row["warnings"],
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
    )


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
    stat_category: str | None
    confidence: float
    odds_age_seconds: Number
    possibly_stale: bool
    warnings: list[str]
    team_side: str | None
    market_segment: str | None


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
        stat_category=row["stat_category"],
        confidence=_confidence(row),
        odds_age_seconds=rounded(row["oldest_odds_age_seconds"]),
        possibly_stale=row["possibly_stale"],
        warnings=row["warnings"],
        team_side=row["team_side"],
        market_segment=row["market_segment"],
    )


def _confidence(row: Mapping[str, Any]) -> float:
    """How much a low hold is worth believing, 0 to 100: it fades with the oldest price as that of a +EV row does."""
    limits = catalog.thresholds()
    age = row["oldest_odds_age_seconds"]
    fades = limits.confidence_age_live_s if row["is_live"] else limits.confidence_age_s
    return exact(100.0 * math.exp(-(limits.stale_prematch_s if age is None else age) / fades))


def _hold_side(side: Mapping[str, Any]) -> HoldSide:
    odds = side["odds"]
    implied = exact(odds["implied_probability"], 6)
    return HoldSide(
        selection=side["selection"],
        books=[catalog.book(book).id for book in side["books"]],
        line=rounded(side["line"]),
        odds=HoldOdds(
            american(odds["american"]),
            exact(odds["decimal"], 6),
            implied,
            rounded(odds["fair_probability"], 6),
            implied,
        ),
        deep_links={catalog.book(link["sportsbook"]).id: link["deep_link"] for link in side["deep_links"]},
    )


class MiddlesSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Middles in numbers."""

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


# ---- reference data and events ----


class Sport(msgspec.Struct, frozen=True, kw_only=True):
    """A sport; counts are of what the caller sees."""

    id: str
    name: str
    event_count: int
    live_count: int
    leagues: list[str]
    slug: str
    active: bool


class League(msgspec.Struct, frozen=True, kw_only=True):
    """A competition."""

    id: str
    name: str
    sport: str
    event_count: int
    live_count: int
    slug: str
    active: bool
    sport_id: str
    country: str | None


class Sportsbook(msgspec.Struct, frozen=True, kw_only=True):
    """A book. `degraded` is one without news for a minute, `down` one whose prices are too old to be used."""

    id: str
    name: str
    display_name: str
    is_sharp: bool
    has_live_odds: bool
    has_player_props: bool
    regions: list[str]
    requires_tier: str
    status: str
    event_count: int
    last_update: str | None
    unlisted: bool
    slug: str
    active: bool


class Market(msgspec.Struct, frozen=True, kw_only=True, rename={"has_line": "hasLine"}):
    """A market type."""

    id: str
    name: str
    description: str
    has_line: bool
    examples: list[str]
    event_count: int
    selection_count: int
    sports: list[str]


class Team(msgspec.Struct, frozen=True, kw_only=True):
    """A team that plays in an event of the board."""

    id: str
    name: str
    sport: str
    leagues: list[str]
    aliases: list[str]
    event_count: int
    live_count: int


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event. `status` is upcoming, live, ended, postponed or cancelled."""

    id: str
    external_ids: dict[str, str]
    sport: str
    league: str
    home_team: str
    away_team: str
    start_time: str | None
    status: str
    is_live: bool
    book_count: int
    markets: list[str]
    books: list[str]


# ---- splits ----


class Sides(msgspec.Struct, frozen=True):
    """A share of each team, 0 to 1."""

    away: Share
    home: Share


class OverUnder(msgspec.Struct, frozen=True):
    """A share of each side of a total, 0 to 1."""

    over: Share
    under: Share


class SpreadSplit(msgspec.Struct, frozen=True):
    """Shares on a spread; `away_odds` and `home_odds` are the lines, as the interface calls them."""

    away_odds: Number
    home_odds: Number
    handle_pct: Sides
    bets_pct: Sides


class TotalSplit(msgspec.Struct, frozen=True):
    """Shares on a total."""

    line: Number
    handle_pct: OverUnder
    bets_pct: OverUnder


class MoneylineSplit(msgspec.Struct, frozen=True):
    """Shares on a result; prices are American."""

    away_odds: Number
    home_odds: Number
    handle_pct: Sides
    bets_pct: Sides


class SplitsGame(msgspec.Struct, frozen=True, kw_only=True):
    """What the public bets on one event at one book, of money (`handle_pct`) and of bets."""

    event_id: str
    sport: str
    league: str
    sportsbook: str
    home_team: str
    away_team: str
    fetched_at: str
    spread: SpreadSplit | None
    total: TotalSplit | None
    moneyline: MoneylineSplit | None


class SpreadEntry(msgspec.Struct, frozen=True):
    """Shares on a spread."""

    away_line: Number
    home_line: Number
    handle_pct: Sides
    bets_pct: Sides


class SplitsHistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot; `timestamp` is `ts` in Unix seconds."""

    book: str
    ts: str
    timestamp: int
    spread: SpreadEntry | None
    total: TotalSplit | None
    moneyline: MoneylineSplit | None


Name = Annotated[str, Meta(min_length=1, max_length=200)]


class SplitsGiven(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One record as an operator's source posts it; without `fetched_at` it is of now."""

    event_id: Name
    sportsbook: Name
    sport: Annotated[str, Meta(max_length=200)] = ""
    league: Annotated[str, Meta(max_length=200)] = ""
    home_team: Annotated[str, Meta(max_length=200)] = ""
    away_team: Annotated[str, Meta(max_length=200)] = ""
    fetched_at: Annotated[datetime, Meta(tz=True)] | None = None
    spread: SpreadSplit | None = None
    total: TotalSplit | None = None
    moneyline: MoneylineSplit | None = None


class SplitsPosted(msgspec.Struct, frozen=True):
    """What is posted."""

    splits: Annotated[list[SplitsGiven], Meta(min_length=1, max_length=1000)]


class SplitsTaken(msgspec.Struct, frozen=True):
    """What became of it."""

    accepted: int
    ignored: int  # older than what is known, or than what is kept


class SplitsPage(msgspec.Struct, frozen=True):
    """Splits have an envelope of their own."""

    data: list[SplitsGame]
    pagination: Pagination
    updated_at: str | None
    meta: Counted


class HistoryMeta(msgspec.Struct, frozen=True, kw_only=True):
    """What a history holds; `total` are all that fit."""

    event_id: str
    total: int
    books: list[str]
    oldest: str | None
    newest: str | None
    updated_at: str
    ignored: list[str] | msgspec.UnsetType = msgspec.UNSET


class SplitsHistory(msgspec.Struct, frozen=True):
    """Snapshots of one event."""

    success: bool
    data: list[SplitsHistoryEntry]
    meta: HistoryMeta


# ---- lists of opportunities ----


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


class ListMeta(Counted, kw_only=True):
    """What a list is of."""

    source: str
    last_update: str | None
    filters: dict[str, Any]


class MiddlePage(msgspec.Struct):
    """A page of middles."""

    success: bool
    data: list[Middle]
    pagination: Pagination
    meta: ListMeta


class LowHoldPage(msgspec.Struct):
    """A page of low holds."""

    success: bool
    data: list[LowHold]
    pagination: Pagination
    meta: ListMeta


# ---- health ----


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check: `ok`, `degraded` or `down`."""

    status: str
    latency_ms: int | None = None
    message: str | None = None


class Health(msgspec.Struct, frozen=True):
    """How the node is."""

    status: str
    version: str
    timestamp: str
    checks: dict[str, Check]
