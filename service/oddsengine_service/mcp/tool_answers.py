"""Answers for language models: few rows, the relevant columns, and names with units.

Names end in `_percent` (3.2 is 3.2 %), `_probability` or `_fraction` (0 to 1) or `_seconds`. Ages are counted up to the
moment of the answer, because a model does not know the time.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from oddsengine.detection.kinds import ARBITRAGE, EV, LOW_HOLD, MIDDLES, Kind, bets_of
from oddsengine.maths.rounding import AGE_DIGITS, exact

Row = dict[str, Any]
Shape = Callable[[Any, datetime], Any]
_RULES = ("min_bet", "bet_step", "bet_delay:bet_delay_seconds")
_QUOTE = ("sportsbook", "odds_american", "odds_decimal", "age_seconds")


def age(value: str | None, now: datetime) -> float | None:
    """Seconds since a time in a response.

    Examples
    --------
    >>> from datetime import UTC
    >>> age("2026-02-08T18:00:00.000000Z", datetime(2026, 2, 8, 18, 1, tzinfo=UTC))
    60.0
    """
    if value is None:
        return None
    return exact(max(0.0, (now - datetime.fromisoformat(value)).total_seconds()), AGE_DIGITS)


def chosen(row: Mapping[str, Any], *names: str) -> Row:
    """Some fields of a row, without null or empty ones.

    Examples
    --------
    >>> chosen({"id": "8c1f", "line": None, "sport": "soccer"}, "id:odds_id", "line", "sport")
    {'odds_id': '8c1f', 'sport': 'soccer'}
    """
    pairs = (name.partition(":") for name in names)
    out = {new or name: row.get(name) for name, _, new in pairs}
    return {name: value for name, value in out.items() if value is not None and value not in ([], "")}


def fields(*names: str) -> Shape:
    return lambda row, _: chosen(row, *names)


def price(row: Row, now: datetime) -> Row:
    out = chosen(
        row, "id:odds_id", "sportsbook", "event_id", "market_type", "selection", "line", "odds_american",
        "odds_decimal", "is_live", "market_segment", "player_name", "stat_category", "max_bet", "volume",
        "open_interest", *_RULES,
    )  # fmt: skip
    out["event"] = f"{row['away_team']} @ {row['home_team']}"
    out |= chosen(row, "event_start_time:starts_at", "odds_probability:implied_probability")
    if row.get("odds_decimal_net") not in (None, row["odds_decimal"]):
        out["odds_decimal_after_commission"] = row["odds_decimal_net"]
    out["age_seconds"] = age(row["last_seen_at"], now)
    out["can_be_bet"] = bool(row["is_active"]) and row["rejection"] is None
    if row["rejection"] is not None:
        out["rejected_because"] = row["rejection"]
    elif not row["is_active"]:
        out["rejected_because"] = "suspended by the book"
    return out


def event(row: Row, _: datetime) -> Row:
    out = chosen(row, "id:event_id", "sport", "league", "start_time", "status", "is_live", "book_count")
    return out | {"event": f"{row['away_team']} @ {row['home_team']}", "markets": row["markets"][:12]}


def opportunity(kind: Kind, shape: Shape) -> Shape:
    """Rows of a kind, with the names of our columns."""
    return lambda row, now: shape(kind.row(row), now)


_positive = fields(
    "id", "event_id", "event_name:event", "sport", "league", "event_start_time:starts_at", "is_live", "sportsbook",
    "market_type:market", "line", "selection", "odds_american", "odds_decimal", "ev_percentage:ev_percent",
    "fair_probability", "no_vig_odds:fair_odds_american", "kelly_percent:full_kelly_fraction",
    "kelly_shrunk:uncertain_kelly_fraction", "reference", "ev_vs_sharp:ev_vs_sharp_percent",
    "ev_low:ev_low_percent", "ev_high:ev_high_percent",
    "prob_positive:positive_probability", "still_there:still_there_probability", "flags", "confidence_score",
    "book_count", "independent_books",
    "agreeing_books", "oldest_odds_age_seconds:oldest_price_age_seconds", "possibly_stale", "unconfirmed", "warnings",
    "max_bet", *_RULES,
)  # fmt: skip
_TERMS = ("terms_differ", "terms", "terms_results:terms_results_percent")
_GAME = (
    "id",
    "event_id",
    "event_name:event",
    "sport",
    "league",
    "event_start_time:starts_at",
    "is_live",
    "market_type",
)


def _arbitrage(row: Row, now: datetime) -> Row:
    """One arbitrage, with the share of the total stake on each leg."""
    out = chosen(
        row, *_GAME, "profit_percent", "implied_total:implied_total_percent",
        "oldest_odds_age_seconds:oldest_price_age_seconds", "possibly_stale", "unconfirmed", "warnings", *_TERMS,
    )  # fmt: skip
    legs = []
    for leg in row["legs"]:
        names = ("sportsbook", "selection", "line", "odds_american", "odds_decimal", "stake_percent", "max_bet")
        legs.append(chosen(leg, *names, *_RULES) | {"age_seconds": age(leg["last_seen_at"], now)})
    return out | {"legs": legs}


def _middle(row: Row, _: datetime) -> Row:
    out = chosen(
        row, *_GAME, "middle_numbers:both_bets_win_on", "middle_probability", "expected_value:expected_value_percent",
        "worst_case_loss:worst_case_per_100_staked", "best_case_profit:best_case_per_100_staked",
        "is_guaranteed_profit", "odds_age_seconds:oldest_price_age_seconds", "unconfirmed", "warnings", *_TERMS,
    )  # fmt: skip
    return out | {"sides": [_side(side, "sportsbook") for side in bets_of(row)]}


def _low_hold(row: Row, _: datetime) -> Row:
    out = chosen(
        row, *_GAME, "hold_percentage:hold_percent", "oldest_odds_age_seconds:oldest_price_age_seconds",
        "possibly_stale", "unconfirmed", "warnings", *_TERMS,
    )  # fmt: skip
    return out | {"sides": [_side(side, "books:sportsbooks") for side in bets_of(row)]}


positive, arbitrage = opportunity(EV, _positive), opportunity(ARBITRAGE, _arbitrage)
middle, low_hold = opportunity(MIDDLES, _middle), opportunity(LOW_HOLD, _low_hold)


def registered(kind: Kind) -> Shape:
    """Rows of a kind that was registered: the bet or its legs, and the main figure in percent."""
    bet = ("sportsbook", "selection", "line", "odds_american", "odds_decimal", "max_bet", *_RULES)

    def shape(row: Row, _: datetime) -> Row:
        out = chosen(row, *_GAME, *(bet if kind.single else ()), "warnings", *_TERMS)
        out |= chosen(row, f"{kind.age}:oldest_price_age_seconds")
        out[f"{kind.value.removesuffix('_percentage').removesuffix('_percent')}_percent"] = row[kind.value]
        return out if kind.single else out | {"legs": [chosen(leg, *bet, "stake_percent") for leg in bets_of(row)]}

    return opportunity(kind, shape)


def _side(side: Row, books: str) -> Row:
    out = chosen(side, books, "selection", "line", "stake_percent", "max_bet", *_RULES)
    out |= {"max_bets": limits} if (limits := side.get("max_bets")) else {}
    return out | chosen(side, "odds_american", "odds_decimal", "fair_probability")


def _side_by_side(prices: Iterable[tuple[Hashable, Row, Row]]) -> list[Row]:
    """One row per key, from what all its prices share and each price; those that can be bet first, then the best."""
    out: dict[Hashable, Row] = {}
    for key, about, each in prices:
        quote = chosen(each, *_QUOTE, "can_be_bet", "rejected_because")
        out.setdefault(key, about | {"prices": []})["prices"].append(quote)
    for group in out.values():
        group["prices"].sort(key=lambda each: ("rejected_because" in each, -each["odds_decimal"]))
    return list(out.values())


def comparison(lists: Mapping[str, Sequence[Row]], now: datetime) -> list[Row]:
    """Prices of one event side by side: one row per selection, the best price first."""
    return _side_by_side(
        (
            (market, row["market_segment"], row["is_live"], row["line"], row["selection"], row["player_name"]),
            chosen(row, "market_type", "market_segment", "selection", "line", "is_live"),
            price(row, now),
        )
        for market, rows in lists.items()
        for row in rows
    )


def future(row: Row, now: datetime) -> Row:
    out = chosen(
        row, "future_market_id:market_id", "future_market_name:market", "selection", "sportsbook", "odds_american",
        "odds_decimal", "line", "fair_probability", "ev_percentage:ev_percent", "is_best",
        "set_aside:rejected_because", "probability:implied_probability",
    )  # fmt: skip
    return out | {"age_seconds": age(row["timestamp"], now)}


def futures_lines(rows: Sequence[Row], now: datetime) -> list[Row]:
    """Prices of futures side by side: one row per selection, the best price first."""
    return _side_by_side(
        (
            (row["future_market_id"], row["selection"]),
            chosen(row, "future_market_id:market_id", "future_market_name:market", "selection"),
            future(row, now),
        )
        for row in rows
    )


def closing(event: Row, _: datetime) -> list[Row]:
    """Closing lines of one event, one row per price."""
    return [
        {"sportsbook": book}
        | chosen(line, "market_type", "selection", "line", "odds_american", "odds_decimal", "fair_probability")
        for book, lines in event["books"].items()
        for line in lines
    ]
