"""Columns of all result frames: published fields first, then additional ones; and bets in words.

Percentages and American odds are named as such; nothing is rounded (that happens in output).
"""

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

_TIME = pl.Datetime("us", "UTC")
TEXTS = pl.List(pl.String)

EV_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,
    "game_id": pl.String,
    "external_event_id": pl.String,
    "selection_id": pl.String,
    "ev_percentage": pl.Float64,
    "odds_american": pl.Float64,
    "odds_decimal": pl.Float64,
    "no_vig_odds": pl.Float64,
    "fair_probability": pl.Float64,
    "market_width": pl.Float64,
    "devig_method": pl.String,
    "sharp_book": pl.String,
    "selection": pl.String,
    "market": pl.String,
    "line": pl.Float64,
    "sportsbook": pl.String,
    "game": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "start_time": _TIME,
    "is_live": pl.Boolean,
    "confidence_score": pl.Float64,
    "kelly_percent": pl.Float64,
    "book_count": pl.Int64,
    "arb_available": pl.Boolean,
    "arb_profit": pl.Float64,
    "is_player_prop": pl.Boolean,
    "player_name": pl.String,
    "stat_category": pl.String,
    "possibly_stale": pl.Boolean,
    "oldest_odds_age_seconds": pl.Float64,
    "warnings": TEXTS,
    "detected_at": _TIME,
    # Deprecated names of the above, and additional columns.
    "ev_percent": pl.Float64,
    "devig_book": pl.String,
    "team_side": pl.String,
    "market_segment": pl.String,
    "selection_type": pl.String,
    "net_odds": pl.Float64,
    "push_probability": pl.Float64,
    "ev_per_stake": pl.Float64,
    "is_alternate_line": pl.Boolean,
    "shared_feed": TEXTS,
    "odds_id": pl.String,  # row of the price
    "unconfirmed": pl.Boolean,
    # Of the fair price at the close; null with another reference.
    "reference": pl.String,  # "close", else the book or "consensus"
    "ev_vs_sharp": pl.Float64,
    "ev_low": pl.Float64,
    "ev_high": pl.Float64,
    "ev_error": pl.Float64,  # standard error of the EV at the close, in percent
    "prob_positive": pl.Float64,
    "flags": TEXTS,
    "kelly_shrunk": pl.Float64,
    "independent_books": pl.Int64,  # feeds with complete prices on the line, without the row's own
    "agreeing_books": pl.Int64,  # those whose own prices give the row a positive EV
    "max_bet": pl.Float64,  # of the price, as its book or feed has it
}

LEG = pl.Struct(
    {
        "sportsbook": pl.String,
        "selection": pl.String,
        "selection_type": pl.String,
        "line": pl.Float64,
        "odds_american": pl.Float64,
        "odds_decimal": pl.Float64,
        "net_odds": pl.Float64,
        "implied_probability": pl.Float64,
        "stake_percent": pl.Float64,
        "timestamp": _TIME,
        "external_event_id": pl.String,
        "selection_id": pl.String,
        "market_id": pl.String,
        "odds_id": pl.String,
        "max_bet": pl.Float64,
    }
)

ARBITRAGE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,
    "event_id": pl.String,
    "event_name": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "market_type": pl.String,
    "line": pl.Float64,
    "profit_percent": pl.Float64,
    "implied_total": pl.Float64,
    "is_live": pl.Boolean,
    "start_time": _TIME,
    "is_alternate_line": pl.Boolean,
    "possibly_stale": pl.Boolean,
    "oldest_odds_age_seconds": pl.Float64,
    "warnings": TEXTS,
    "game_state": pl.Struct({"period": pl.String, "clock": pl.String, "score_home": pl.Int64, "score_away": pl.Int64}),
    "ev_available": pl.Boolean,
    "ev_percentage": pl.Float64,
    "devig_book": pl.String,
    "is_player_prop": pl.Boolean,
    "player_name": pl.String,
    "stat_category": pl.String,
    "legs": pl.List(LEG),
    "detected_at": _TIME,
    "home_team": pl.String,
    "away_team": pl.String,
    "team_side": pl.String,
    "market_segment": pl.String,
    "book_count": pl.Int64,
    "unconfirmed": pl.Boolean,
}

_LINKS = pl.List(pl.Struct({"sportsbook": pl.String, "deep_link": pl.String}))

HOLD_ODDS = pl.Struct(
    {
        "american": pl.Float64,
        "decimal": pl.Float64,
        "implied_probability": pl.Float64,
        "fair_probability": pl.Float64,
    }
)

HOLD_SIDE = pl.Struct(
    {
        "selection": pl.String,
        "books": TEXTS,
        "line": pl.Float64,
        "odds": HOLD_ODDS,
        "deep_links": _LINKS,
        "odds_ids": TEXTS,  # in the order of `books`
        "max_bets": pl.List(pl.Float64),  # likewise
    }
)

LOW_HOLD_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,
    "event_id": pl.String,
    "event_name": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "market_type": pl.String,
    "line": pl.Float64,
    "home_team": pl.String,
    "away_team": pl.String,
    "start_time": _TIME,
    "hold_percentage": pl.Float64,
    "is_live": pl.Boolean,
    "all_books": TEXTS,
    "side1": HOLD_SIDE,
    "side2": HOLD_SIDE,
    "side3": HOLD_SIDE,
    "detected_at": _TIME,
    "is_alternate_line": pl.Boolean,
    "is_player_prop": pl.Boolean,
    "player_name": pl.String,
    "stat_category": pl.String,
    "team_side": pl.String,
    "market_segment": pl.String,
    "oldest_odds_age_seconds": pl.Float64,
    "possibly_stale": pl.Boolean,
    "warnings": TEXTS,
    "unconfirmed": pl.Boolean,
}

MIDDLE_ODDS = pl.Struct(
    {
        "american": pl.Float64,
        "decimal": pl.Float64,
        "probability": pl.Float64,
        "fair_probability": pl.Float64,
    }
)

MIDDLE_SIDE = pl.Struct(
    {
        "book": pl.String,
        "selection": pl.String,
        "line": pl.Float64,
        "odds": MIDDLE_ODDS,
        "stake_percent": pl.Float64,
        "odds_age_seconds": pl.Float64,
        "deep_link": pl.String,
        "odds_id": pl.String,
        "max_bet": pl.Float64,
    }
)

MIDDLES_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,
    "event_id": pl.String,
    "event_name": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "market_type": pl.String,
    "side1": MIDDLE_SIDE,
    "side2": MIDDLE_SIDE,
    "middle_size": pl.Float64,
    "middle_numbers": pl.List(pl.Int64),
    "middle_probability": pl.Float64,
    "expected_value": pl.Float64,
    "quality_score": pl.Float64,
    "detected_at": _TIME,
    # Not part of the stream.
    "home_team": pl.String,
    "away_team": pl.String,
    "start_time": _TIME,
    "is_live": pl.Boolean,
    "worst_case_loss": pl.Float64,
    "best_case_profit": pl.Float64,
    "break_even_percent": pl.Float64,
    "is_guaranteed_profit": pl.Boolean,
    "key_numbers": pl.List(pl.Int64),
    "probability_source": pl.String,
    "odds_age_seconds": pl.Float64,
    "is_player_prop": pl.Boolean,
    "player_name": pl.String,
    "stat_category": pl.String,
    "team_side": pl.String,
    "market_segment": pl.String,
    "warnings": TEXTS,
    "unconfirmed": pl.Boolean,
}

REJECTED_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "row": pl.UInt32,
    "guard": pl.String,
    "reason": pl.String,
    "field": pl.String,
    "value": pl.String,
    "sportsbook": pl.String,
    "event_id": pl.String,
    "market_type": pl.String,
    "selection": pl.String,
    "line": pl.Float64,
    "odds_decimal": pl.Float64,
    "is_live": pl.Boolean,
    "last_seen_at": _TIME,
}

MARKETS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "event_id": pl.String,
    "is_live": pl.Boolean,
    "period": pl.String,
    "family": pl.String,
    "subject": pl.String,
    "line": pl.Float64,
    "outcomes": TEXTS,
    "books": TEXTS,
    "book_count": pl.Int64,
    "complete_books": TEXTS,
    "is_complete": pl.Boolean,
    "is_main_line": pl.Boolean,
    "prices": pl.Int64,
    "set_aside": pl.Int64,
    "market_types": TEXTS,
}

_SAYS_SIDE = re.compile(r"\b(over|under|yes|no|odd|even|[ou])\b", re.IGNORECASE)


def number(value: float) -> str:
    """Format a line without trailing zeros.

    Examples
    --------
    >>> number(2.5), number(-3.0), number(2.25)
    ('2.5', '-3', '2.25')
    """
    return f"{value + 0.0:.10g}"


def bet(selection: str, line: float | None, player: str | None = None, team: str | None = None) -> str:
    """Describe an outcome: player or team, side and line.

    Examples
    --------
    >>> bet("Over", 8.5, player="Nikola Jokić"), bet("Boston Celtics", 3.5), bet("Over 221.5", 221.5)
    ('Nikola Jokić Over 8.5', 'Boston Celtics +3.5', 'Over 221.5')
    """
    text = selection
    for subject in (team, player):
        if subject and subject.casefold() not in text.casefold():
            text = f"{subject} {text}"
    if line is None:
        return text
    line_text = number(line)
    if re.search(rf"(?<![\d.]){re.escape(line_text.lstrip('-'))}(?![\d.]*\d)", selection):
        return text
    return f"{text} {line_text}" if _SAYS_SIDE.search(selection) or line == 0 else f"{text} {line:+.10g}"


def total_team(row: Mapping[str, Any]) -> str | None:
    """Return the team of a team total's selection."""
    return {"home": row.get("home_team"), "away": row.get("away_team")}.get(str(row.get("team_side")).lower())
