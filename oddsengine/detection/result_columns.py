"""Columns of all result frames, and bets in words.

Columns have the names of the input's where they are the same. Polars prints the first four and the last four columns of
a frame, so these say what to bet and why; the input's own columns, which results keep, stand before the last four.
Percentages and American odds are named as such; nothing is rounded (that happens in output).
"""

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from oddsengine.identity.raw_labels import SIDES, numbered_side
from oddsengine.tables.casts import TIME
from oddsengine.tables.levels import BET_RULES

TEXTS = pl.List(pl.String)

_TERMS: dict[str, pl.DataType | type[pl.DataType]] = {
    "terms_differ": pl.Boolean,
    "terms_worst_case": pl.Float64,  # the least of `terms_results`
    "terms": TEXTS,  # cases in which the legs are known to settle differently, and what they settle on
    "terms_results": pl.List(pl.Float64),  # of these: percent of the total stake, null if nobody knows it beforehand
}

EV_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "event_name": pl.String,
    "selection": pl.String,
    "line": pl.Float64,
    "sportsbook": pl.String,
    "odds_american": pl.Float64,
    "net_odds": pl.Float64,
    "player_name": pl.String,
    "event_start_time": TIME,
    "is_live": pl.Boolean,
    "fair_probability": pl.Float64,
    "no_vig_odds": pl.Float64,
    "kelly_percent": pl.Float64,
    "max_bet": pl.Float64,  # of the price, as its book or feed has it
    "confidence_score": pl.Float64,
    "warnings": TEXTS,
    "push_probability": pl.Float64,
    "ev_per_stake": pl.Float64,
    "tie_probability": pl.Float64,  # of contracts that pay half in a tie
    # The reference.
    "reference": pl.String,  # "close", else the book or "consensus"
    "sharp_book": pl.String,
    "devig_method": pl.String,
    "market_width": pl.Float64,
    "book_count": pl.Int64,
    # Of the fair price at the close; null with another reference.
    "ev_vs_sharp": pl.Float64,
    "ev_low": pl.Float64,
    "ev_high": pl.Float64,
    "ev_error": pl.Float64,  # standard error of the EV at the close, in percent; 90 % are within 2.13
    "prob_positive": pl.Float64,
    "still_there": pl.Float64,  # probability that the price stands ten minutes on
    "kelly_shrunk": pl.Float64,
    "flags": TEXTS,
    "independent_books": pl.Int64,  # providers with complete prices on the line, without the row's own
    "agreeing_books": pl.Int64,  # those whose own prices give the row a positive EV
    # Of the price and its market.
    "possibly_stale": pl.Boolean,
    "oldest_odds_age_seconds": pl.Float64,
    "unconfirmed": pl.Boolean,
    "shared_feed": TEXTS,
    "arb_available": pl.Boolean,
    "arb_profit": pl.Float64,
    "selection_type": pl.String,
    "team_side": pl.String,
    "market_segment": pl.String,
    "stat_category": pl.String,
    "is_player_prop": pl.Boolean,
    "is_alternate_line": pl.Boolean,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "detected_at": TIME,
    "id": pl.String,
    "event_id": pl.String,
    "odds_id": pl.String,  # row of the price
    "external_event_id": pl.String,
    "selection_id": pl.String,
    "market_type": pl.String,
    "odds_decimal": pl.Float64,
    "ev_percentage": pl.Float64,
    "row": pl.UInt32,
}

LEG = pl.Struct(
    {
        "sportsbook": pl.String,
        "market_type": pl.String,  # that of the opportunity, or one in which the same bet has another name
        "selection": pl.String,
        "selection_type": pl.String,
        "line": pl.Float64,
        "odds_american": pl.Float64,
        "odds_decimal": pl.Float64,
        "net_odds": pl.Float64,
        "implied_probability": pl.Float64,
        "stake_percent": pl.Float64,
        "last_seen_at": TIME,
        "external_event_id": pl.String,
        "selection_id": pl.String,
        "market_id": pl.String,
        "odds_id": pl.String,
        "max_bet": pl.Float64,
        "row": pl.UInt32,
    }
)

ARBITRAGE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "event_name": pl.String,
    "market_type": pl.String,
    "line": pl.Float64,
    "profit_percent": pl.Float64,
    "implied_total": pl.Float64,
    "player_name": pl.String,
    "warnings": TEXTS,
    "game_state": pl.Struct({"period": pl.String, "clock": pl.String, "score_home": pl.Int64, "score_away": pl.Int64}),
    "ev_available": pl.Boolean,
    "ev_percentage": pl.Float64,
    "sharp_book": pl.String,
    "book_count": pl.Int64,
    "possibly_stale": pl.Boolean,
    "oldest_odds_age_seconds": pl.Float64,
    "unconfirmed": pl.Boolean,
    **_TERMS,
    "team_side": pl.String,
    "market_segment": pl.String,
    "stat_category": pl.String,
    "is_player_prop": pl.Boolean,
    "is_alternate_line": pl.Boolean,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "detected_at": TIME,
    "id": pl.String,
    "event_id": pl.String,
    "event_start_time": TIME,
    "is_live": pl.Boolean,
    "legs": pl.List(LEG),
}

_LINKS = pl.List(pl.Struct({"sportsbook": pl.String, "deep_link": pl.String}))

HOLD_SIDE = pl.Struct(
    {
        "selection": pl.String,
        "books": TEXTS,
        "market_type": pl.String,  # as of the legs of an arbitrage
        "line": pl.Float64,
        "odds_american": pl.Float64,
        "odds_decimal": pl.Float64,
        "implied_probability": pl.Float64,
        "fair_probability": pl.Float64,
        "deep_links": _LINKS,
        "odds_ids": TEXTS,  # in the order of `books`
        "max_bets": pl.List(pl.Float64),  # likewise
        "rows": pl.List(pl.UInt32),  # likewise
        "row": pl.UInt32,  # the price that `selection` and other columns of the input are of
    }
)

LOW_HOLD_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "event_name": pl.String,
    "market_type": pl.String,
    "line": pl.Float64,
    "hold_percentage": pl.Float64,
    "player_name": pl.String,
    "event_start_time": TIME,
    "is_live": pl.Boolean,
    "warnings": TEXTS,
    "possibly_stale": pl.Boolean,
    "oldest_odds_age_seconds": pl.Float64,
    "unconfirmed": pl.Boolean,
    **_TERMS,
    "team_side": pl.String,
    "market_segment": pl.String,
    "stat_category": pl.String,
    "is_player_prop": pl.Boolean,
    "is_alternate_line": pl.Boolean,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "detected_at": TIME,
    "id": pl.String,
    "event_id": pl.String,
    "all_books": TEXTS,
    "side1": HOLD_SIDE,
    "side2": HOLD_SIDE,
    "side3": HOLD_SIDE,
}

MIDDLE_SIDE = pl.Struct(
    {
        "sportsbook": pl.String,
        "selection": pl.String,
        "line": pl.Float64,
        "odds_american": pl.Float64,
        "odds_decimal": pl.Float64,
        "implied_probability": pl.Float64,
        "fair_probability": pl.Float64,
        "stake_percent": pl.Float64,
        "odds_age_seconds": pl.Float64,
        "deep_link": pl.String,
        "odds_id": pl.String,
        "max_bet": pl.Float64,
        "row": pl.UInt32,
    }
)

MIDDLES_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "event_name": pl.String,
    "market_type": pl.String,
    "middle_size": pl.Float64,
    "expected_value": pl.Float64,
    "player_name": pl.String,
    "event_start_time": TIME,
    "is_live": pl.Boolean,
    "worst_case_loss": pl.Float64,
    "best_case_profit": pl.Float64,
    "break_even_percent": pl.Float64,
    "is_guaranteed_profit": pl.Boolean,
    "key_numbers": pl.List(pl.Int64),
    "probability_source": pl.String,
    "quality_score": pl.Float64,
    "odds_age_seconds": pl.Float64,
    "warnings": TEXTS,
    "unconfirmed": pl.Boolean,
    **_TERMS,
    "team_side": pl.String,
    "market_segment": pl.String,
    "stat_category": pl.String,
    "is_player_prop": pl.Boolean,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "detected_at": TIME,
    "id": pl.String,
    "event_id": pl.String,
    "middle_numbers": pl.List(pl.Int64),
    "middle_probability": pl.Float64,
    "side1": MIDDLE_SIDE,
    "side2": MIDDLE_SIDE,
}


def _names(schema: Mapping[str, Any]) -> set[str]:
    inner = (dtype.inner if isinstance(dtype, pl.List) else dtype for dtype in schema.values())
    return set(schema).union(*(set(dict(dtype)) for dtype in inner if isinstance(dtype, pl.Struct)))


RESULT_NAMES = frozenset().union(*map(_names, (EV_SCHEMA, ARBITRAGE_SCHEMA, LOW_HOLD_SCHEMA, MIDDLES_SCHEMA)))
"""Names that columns of the input cannot have in results."""

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
    "last_seen_at": TIME,
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
    "rejected": pl.Int64,
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


def outcome(row: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """Describe the outcome of a result, or of one of its legs; a side of a game is a team.

    Examples
    --------
    >>> game = {"home_team": "Lakers", "away_team": "Celtics", "player_name": None, "market_type": "point_spread"}
    >>> [outcome(game, {"selection": side, "line": line}) for side, line in (("2", 2.5), ("Home", None), ("X", None))]
    ['Celtics +2.5', 'Lakers', 'Draw']
    """
    text = one["selection"]
    at = numbered_side(text)
    side = SIDES[at] if at >= 0 else text.strip().lower()
    team = "Draw" if side == "x" else row.get(f"{side}_team")  # of a game, and not of other words
    return bet(team or text, one["line"], row["player_name"], total_team(row))


def accepted(leg: Mapping[str, Any]) -> str:
    """Describe which stakes on a bet its venue accepts, and how late in play; empty if nothing is known of it.

    Examples
    --------
    >>> accepted({"min_bet": 2.0, "bet_step": 0.01, "bet_delay": 5.0}), accepted({"min_bet": None, "bet_delay": 0.0})
    ('; minimum 2, in steps of 0.01, accepted after 5 s', '')
    """
    least, step, delay = (leg.get(name) for name in BET_RULES)
    rules = ", ".join(
        text.format(value)
        for text, value in (("minimum {:.10g}", least), ("in steps of {:.10g}", step), ("accepted after {:g} s", delay))
        if value
    )
    return f"; {rules}" if rules else ""


def total_team(row: Mapping[str, Any]) -> str | None:
    """Return the team of a team total's selection."""
    return {"home": row.get("home_team"), "away": row.get("away_team")}.get(str(row.get("team_side")).lower())
