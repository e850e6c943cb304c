"""The published contract as data: the fields of every object, and which objects every endpoint answers with.

A field is `name kind`; `[kind]` is a list, `{kind}` lists by name; after it `?` says that it may be null, and `~` that
it may be absent. What is missing, or of another kind, is told by its name. Nothing here is taken from the service.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any


def table(text: str) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in text.strip().splitlines())


FIELDS = {
    "Sport": table("""
        id string
        name string
        event_count integer
        live_count integer
        leagues strings
        slug string
        active boolean
    """),
    "League": table("""
        id string
        name string
        sport string
        event_count integer
        live_count integer
        slug string
        active boolean
        sport_id string
        country string?
    """),
    "Sportsbook": table("""
        id string
        name string
        display_name string
        is_sharp boolean
        has_live_odds boolean
        has_player_props boolean
        regions regions
        requires_tier tier
        status book_status
        event_count integer
        last_update time
        unlisted boolean
        slug string
        active boolean
    """),
    "Market": table("""
        id string
        name string
        description string
        hasLine boolean
        examples strings
        event_count integer
        selection_count integer
        sports strings
    """),
    "Team": table("""
        id string
        name string
        sport string
        leagues strings
        aliases strings
        event_count integer
        live_count integer
    """),
    "Event": table("""
        id string
        external_ids texts
        sport string
        league string
        home_team string
        away_team string
        start_time time
        status string
        is_live boolean
        book_count integer
        markets strings
        books strings
    """),
    "Odds": table("""
        id string
        sportsbook string
        event_id string
        sport string
        league string
        home_team string
        away_team string
        market_type string
        selection string
        selection_type selection_type
        odds_american number
        odds_decimal price
        odds_probability share
        line number?
        event_start_time time
        is_live boolean
        last_seen_at time
        odds_changed_at time
        deep_link url
        sportsbook_name string
        probability share
        timestamp time
        is_active boolean
        is_main_line boolean?
        is_alternate_line boolean?
        player_name string?
        stat_category string?
        team_side string?
        market_segment string
        external_event_id string?
        market_id string?
        selection_id string?
        max_bet number?
        volume number?
        volume_24h number?
        open_interest number?
        exchange_token_id string?
        player_id string?
        source_market_type string?
        rejection Rejection?
    """),
    "Rejection": table("""
        guard string
        reason string
    """),
    "EventOdds": table("""
        event_id string
        event_name string
        sport string
        league string
        start_time time
        odds [Odds]
    """),
    "Removed": table("""
        id string
        sportsbook string
        removed_at time
    """),
    "Ev": table("""
        id string
        game_id string?
        external_event_id string?
        selection_id string?
        ev_percentage number
        odds_american number
        odds_decimal number
        no_vig_odds number?
        fair_probability share?
        market_width number?
        devig_method string
        sharp_book string
        selection string
        market string
        line number?
        sportsbook string
        game string
        sport lower
        league string
        home_team string?
        away_team string?
        start_time time?
        is_live boolean
        confidence_score percent
        kelly_percent share?
        book_count number
        arb_available boolean
        arb_profit number?
        is_player_prop boolean
        player_name string?
        player_id string?
        stat_category string?
        possibly_stale boolean
        oldest_odds_age_seconds number?
        warnings strings
        detected_at time
        ev_percent number
        devig_book string
        team_side string?
        market_segment string
        odds_id string
        max_bet number?
    """),
    "EvMeta": table("""
        count integer
        total integer
        source string
        last_update time
        summary EvSummary
        filters EvFilters
    """),
    "EvSummary": table("""
        count integer
        avg_ev number
        max_ev number
        by_sportsbook counts
        by_sport counts
        by_market counts
    """),
    "EvFilters": table("""
        sport strings?
        league strings?
        sportsbook strings?
        market strings?
        min_ev number?
        max_ev number?
        live boolean?
        sort string?
        include strings?
    """),
    "Arbitrage": table("""
        id string
        event_id string
        event_name string
        sport lower
        league string
        market_type string
        line number?
        profit_percent number
        implied_total number
        is_live boolean
        start_time time?
        is_alternate_line boolean
        possibly_stale boolean
        oldest_odds_age_seconds number?
        warnings arbitrage_warnings
        game_state GameState?
        ev_available boolean
        ev_percentage number?
        is_player_prop boolean
        player_name string?
        player_id string?
        stat_category string?
        legs [Leg]
        detected_at time
        ev_percent number?
        devig_book string?
        team_side string?
        market_segment string
    """),
    "GameState": table("""
        period string?
        clock string?
        score_home number?
        score_away number?
    """),
    "Leg": table("""
        sportsbook string
        selection string
        odds_american number
        odds_decimal number
        implied_probability share
        stake_percent number
        timestamp time?
        external_event_id string?
        selection_id string?
        market_id string?
        odds_id string
        max_bet number?
    """),
    "ArbitrageMeta": table("""
        count integer
        total integer
        source string
        summary ArbitrageSummary
        filters ArbitrageFilters
        books_analyzed integer
    """),
    "ArbitrageSummary": table("""
        count integer
        avg_profit number
        max_profit number
        by_market counts
        by_sport counts
    """),
    "ArbitrageFilters": table("""
        sport strings?
        league strings?
        sportsbook strings?
        market strings?
        live boolean?
        min_profit number
    """),
    "Middle": table("""
        id string
        event_id string
        event_name string
        sport string
        league string
        market_type string
        side1 MiddleSide
        side2 MiddleSide
        middle_size number
        middle_numbers integers
        middle_probability number
        expected_value number
        quality_score number
        detected_at time
        home_team string?
        away_team string?
        start_time time?
        roi_percentage number
        worst_case_loss number
        best_case_profit number
        break_even_percent number
        odds_age_seconds number
        is_guaranteed_profit boolean
        guaranteed_roi number?
        key_numbers integers
        key_number_probability number?
        market_overround number
        is_live boolean
        is_player_prop boolean
        player_name string?
        player_id string?
        stat_category string?
        is_team_total boolean
        team_name string?
        warnings middle_warnings
    """),
    "MiddleSide": table("""
        book string
        selection string
        line number
        odds MiddleOdds
        stake_percent number
        odds_age_seconds number
        deep_link url?
        odds_id string
        max_bet number?
    """),
    "MiddleOdds": table("""
        american number
        decimal number
        probability share
        fair_probability share
    """),
    "MiddlesSummary": table("""
        total integer
        positive_ev_count integer
        guaranteed_profit_count integer
        player_prop_count integer
        by_sport counts
        by_market counts
        by_sportsbook counts
        avg_middle_size number
        avg_probability number
        avg_ev number
        best_ev BestEv
        has_key_numbers_count integer
    """),
    "BestEv": table("""
        ev number
        sport string
        market string
    """),
    "LowHold": table("""
        id string
        event_id string
        event_name string
        sport string
        league string
        market_type string
        line number?
        home_team string
        away_team string
        start_time time
        hold_percentage number
        is_live boolean
        all_books strings
        side1 HoldSide
        side2 HoldSide
        side3 HoldSide?
        detected_at time
        is_alternate_line boolean
        is_player_prop boolean
        player_name string?
        player_id string?
        stat_category string?
        confidence number
        odds_age_seconds number?
        possibly_stale boolean
    """),
    "HoldSide": table("""
        selection string
        books strings
        line number?
        odds HoldOdds
        deep_links links
        odds_ids texts
    """),
    "HoldOdds": table("""
        american number
        decimal number
        implied_probability share
        fair_probability share
    """),
    "Splits": table("""
        event_id string
        sport string
        league string
        sportsbook string
        home_team string
        away_team string
        fetched_at time
        spread SpreadSplit?
        total TotalSplit?
        moneyline SpreadSplit?
    """),
    "SpreadSplit": table("""
        away_odds number?
        home_odds number?
        handle_pct Sides
        bets_pct Sides
    """),
    "TotalSplit": table("""
        line number?
        handle_pct OverUnder
        bets_pct OverUnder
    """),
    "Sides": table("""
        away share
        home share
    """),
    "OverUnder": table("""
        over share
        under share
    """),
    "History": table("""
        book string
        ts time
        timestamp integer
        spread HistorySpread?
        total TotalSplit?
        moneyline SpreadSplit?
    """),
    "HistorySpread": table("""
        away_line number?
        home_line number?
        handle_pct Sides
        bets_pct Sides
    """),
    "HistoryMeta": table("""
        event_id string
        total integer
        books strings
        oldest time
        newest time
        updated_at time
    """),
    "Account": table("""
        key_id string
        tier string
        rate_limit RateLimit
        features booleans
        streaming Streaming
        key AccountKey
        limits AccountLimits
        add_ons strings
    """),
    "RateLimit": table("""
        requests_per_minute integer
        max_books integer
    """),
    "Streaming": table("""
        enabled boolean
        max_connections integer
    """),
    "AccountKey": table("""
        id string
        id_masked string
    """),
    "AccountLimits": table("""
        requests_per_minute integer
        max_streams integer
        odds_delay_seconds integer
        max_books integer
    """),
    "Usage": table("""
        requests UsageRequests
        streams UsageStreams
        period UsagePeriod
    """),
    "UsageRequests": table("""
        today integer
        this_week integer
        this_month integer
        limit UsageLimit
    """),
    "UsageLimit": table("""
        per_minute integer
        remaining integer
        resets_at time
    """),
    "UsageStreams": table("""
        active integer
        max integer
    """),
    "UsagePeriod": table("""
        start time
        end time
    """),
    "Key": table("""
        id string
        id_masked string
        name text
        tier tier
        is_active boolean
        created_at time
        updated_at time
    """),
    "Health": table("""
        status check_status
        version version
        timestamp time
        checks Checks
        fair FairPrices
    """),
    "FairPrices": table("""
        reference string
        table string
        date string
        games integer?
        graded integer?
        avg_ev number?
        avg_clv number?
        avg_clv_error number?
    """),
    "Checks": table("""
        cache Check
        data Check
        schema Check
    """),
    "Check": table("""
        status check_status
        latency_ms integer~
        message string~
    """),
    "Pagination": table("""
        limit integer
        offset integer
        has_more boolean
        next_offset integer?
        next_cursor string?~
    """),
    "Counted": table("""
        count integer
        total integer
        unknown unknown~
        ignored strings~
    """),
    "Since": table("""
        count integer
        total integer
        server_time time
        since_clamped true~
    """),
    "Error": table("""
        error ErrorDetail
    """),
    "ErrorDetail": table("""
        code string
        message string
        docs string~
    """),
    "Closing": table("""
        event_id string
        sport string
        league string
        home_team string
        away_team string
        event_start_time time?
        captured_at time?
        books {ClosingLine}
    """),
    "ClosingLine": table("""
        sportsbook string
        market_type string
        market_segment string?
        selection string
        selection_type selection_type
        line number?
        player_name string?
        stat_category string?
        team_side string?
        odds_american number
        odds_decimal price
    """),
    "NewKey": table("""
        id string
        id_masked string
        key string
        name text
        tier tier
        is_active boolean
        created_at time
        updated_at time
    """),
    "DataEnvelope": table("""
        success true
    """),
    "Paginated": table("""
        success true
        pagination Pagination
    """),
}  # fmt: skip


FIELDS["BestOdds"] = FIELDS["Odds"] | {"odds_decimal_net": "price"}
TIERS = ("free", "hobby", "pro", "sharp", "enterprise")
REGIONS = ("US", "UK", "EU", "AU", "GLOBAL")
BOOK_STATUSES = ("active", "inactive", "degraded", "down")
ARBITRAGE_WARNINGS = (
    "LIVE_GAME", "LIVE_HIGH_PROFIT_SUSPICIOUS", "LOW_IMPLIED_TOTAL", "POTENTIALLY_STALE_ODDS", "VERY_STALE_ODDS",
    "UNCONFIRMED",  # ours
)  # fmt: skip
MIDDLE_WARNINGS = ("HIGH_PROBABILITY", "LARGE_GAP", "STALE_ODDS", "LIVE_GAME", "GUARANTEED_PROFIT", "UNCONFIRMED")
SELECTION_TYPES = ("home", "away", "draw", "over", "under", "yes", "no", "even", "odd", "none", "other")


def _number(value: Any) -> bool:
    """A number that was rounded."""
    return isinstance(value, int | float) and not isinstance(value, bool) and round(value, 6) == value


def _moment(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value) is not None


def _url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("https://")


def _each(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(type(each) is kind for each in value)


def _of(values: tuple[str, ...]) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, list) and set(v) <= set(values)


KINDS: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str) and v != "",
    "lower": lambda v: isinstance(v, str) and v != "" and v == v.lower(),
    "boolean": lambda v: isinstance(v, bool),
    "true": lambda v: v is True,
    "nothing": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": _number,
    "share": lambda v: _number(v) and 0.0 <= v <= 1.0,
    "percent": lambda v: _number(v) and 0.0 <= v <= 100.0,
    "time": _moment,
    "url": _url,
    "strings": lambda v: _each(v, str),
    "integers": lambda v: _each(v, int),
    "texts": lambda v: isinstance(v, dict) and all(isinstance(each, str) for each in v.values()),
    "booleans": lambda v: isinstance(v, dict) and all(type(each) is bool for each in v.values()),
    "counts": lambda v: isinstance(v, dict) and all(type(each) is int for each in v.values()),
    "price": lambda v: _number(v) and v > 1.0,
    "text": lambda v: isinstance(v, str),
    "tier": lambda v: v in TIERS,
    "regions": _of(REGIONS),
    "book_status": lambda v: v in BOOK_STATUSES,
    "selection_type": lambda v: isinstance(v, str) and set(v.split("_")) <= set(SELECTION_TYPES),
    "arbitrage_warnings": _of(ARBITRAGE_WARNINGS),
    "middle_warnings": _of(MIDDLE_WARNINGS),
    "check_status": lambda v: v in ("ok", "degraded", "down"),
    "version": lambda v: v == "v1",
    "unknown": lambda v: isinstance(v, dict) and all(_each(each, str) and each for each in v.values()),
    "links": lambda v: isinstance(v, dict) and all(map(_url, v.values())),
}


def faults(value: Any, kind: str, at: str) -> Iterator[str]:
    """What does not conform, by name."""
    kind = kind.removesuffix("~")
    if kind.endswith("?"):
        if value is None:
            return
        kind = kind[:-1]
    if kind.startswith("["):
        if not isinstance(value, list):
            yield f"{at} is no list: {value!r}"
            return
        for place, each in enumerate(value):
            yield from faults(each, kind[1:-1], f"{at}[{place}]")
    elif kind.startswith("{"):
        if not isinstance(value, dict):
            yield f"{at} is no object: {value!r}"
            return
        for name, each in value.items():
            yield from faults(each, f"[{kind[1:-1]}]", f"{at}.{name}")
    elif kind in FIELDS:
        if not isinstance(value, dict):
            yield f"{at} is no object: {value!r}"
            return
        for name, field in FIELDS[kind].items():
            if name not in value:
                if not field.endswith("~"):
                    yield f"{at}.{name} is missing"
            else:
                yield from faults(value[name], field, f"{at}.{name}")
    elif not KINDS[kind](value):
        yield f"{at} must be {kind}: {value!r}"


def check(body: Any, kind: str, at: str) -> None:
    found = list(faults(body, kind, at))
    assert not found, "\n".join([f"{len(found)} faults of {kind}", *found[:20]])


# Every endpoint: path, envelope, kind of `data`, kind of `meta`; {event} and the like are ids of the board.
READ = [
    ("/sports", "DataEnvelope", "[Sport]", ""),
    ("/sports?include_empty=true", "DataEnvelope", "[Sport]", ""),
    ("/sports/{sport}", "DataEnvelope", "Sport", ""),
    ("/leagues", "DataEnvelope", "[League]", ""),
    ("/leagues?include_empty=true", "DataEnvelope", "[League]", ""),
    ("/leagues/{league}", "DataEnvelope", "League", ""),
    ("/sportsbooks", "DataEnvelope", "[Sportsbook]", ""),
    ("/sportsbooks/{book}", "DataEnvelope", "Sportsbook", ""),
    ("/markets", "DataEnvelope", "[Market]", ""),
    ("/teams", "DataEnvelope", "[Team]", ""),
    ("/events?limit=200", "Paginated", "[Event]", "Counted"),
    ("/events/{event}", "DataEnvelope", "Event", ""),
    ("/events/{event}/markets", "DataEnvelope", "strings", ""),
    ("/events/{event}/odds?limit=200", "Paginated", "[Odds]", "Counted"),
    ("/odds?limit=200", "Paginated", "[Odds]", "Counted"),
    ("/odds?limit=200&market=props", "Paginated", "[Odds]", "Counted"),
    ("/odds?limit=200&live=true&sort=-odds_decimal", "Paginated", "[Odds]", "Counted"),
    ("/odds?group_by=event&limit=3", "Paginated", "[EventOdds]", "Counted"),
    ("/odds/best?limit=200", "Paginated", "[BestOdds]", "Counted"),
    ("/odds/delta?since={since}&limit=200", "Paginated", "[Odds]", "Since"),
    ("/odds/closing?event_id={closed}", "DataEnvelope", "Closing", ""),
    ("/splits?limit=200", "", "[Splits]", ""),
    ("/splits/history?event_id={event}", "DataEnvelope", "[History]", "HistoryMeta"),
    ("/opportunities/ev?limit=200", "Paginated", "[Ev]", "EvMeta"),
    ("/opportunities/arbitrage?limit=200&min_profit=-5", "Paginated", "[Arbitrage]", "ArbitrageMeta"),
    ("/opportunities/middles?limit=200&min_ev=-20", "Paginated", "[Middle]", "Counted"),
    ("/opportunities/middles/{middle}", "DataEnvelope", "Middle", ""),
    ("/opportunities/middles/summary", "DataEnvelope", "MiddlesSummary", ""),
    ("/opportunities/low_hold?limit=200&max_hold=10", "Paginated", "[LowHold]", "Counted"),
    ("/opportunities/low-hold?limit=200&max_hold=10", "Paginated", "[LowHold]", "Counted"),
    ("/account", "DataEnvelope", "Account", ""),
    ("/account/usage", "DataEnvelope", "Usage", ""),
    ("/account/keys", "DataEnvelope", "[Key]", ""),
]
FEATURES = {
    "/opportunities/ev": "ev", "/opportunities/arbitrage": "arbitrage", "/opportunities/middles": "middles",
    "/opportunities/low": "low_hold", "/historical/clv": "ev",
}  # fmt: skip
UNCHANGING = ("/account", "/splits")  # what follows hangs on more than the board
